
# The background worker merges by itself.  It can be terminated, and merges can be
# cancelled, at any point.  Where no worker can start, the inserting sessions merge.
# DROP under a merge does not hang.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('worker', <<EOF);
hybridindex.merge_floor = 1000
hybridindex.merge_step_pages = 1
EOF

$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (k int8, s text COLLATE "C");
CREATE INDEX t_k ON t USING hybrid (k);
CREATE INDEX t_s ON t USING hybrid (s);
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT floor((random() - 0.5) * 1e18)::int8, md5(random()::text) FROM generate_series(1, n)
\$\$;
EOF
my %queries = (
	'SELECT k FROM t WHERE k > 0 AND k < 100000000000000000' => 'index only bitmap',
	'SELECT k FROM t ORDER BY k' => 'order',
	'SELECT s FROM t ORDER BY s DESC' => 'order_only');
# What may wait in the log of an index that no merge is due for.
my $waits = 'greatest(3000, static_entries * 3 / 5)';
my $idle = "SELECT NOT bool_or(merge_running) AND bool_and(merges > 0) AND bool_and(dynamic_entries <= $waits) FROM unnest('{t_k,t_s}'::regclass[]) i, hybrid_index_stats(i)";

$node->safe_psql('postgres', "SELECT fill(500)") foreach 1 .. 20;
ok($node->poll_query_until('postgres', $idle), 'merges happen by themselves and come to an end');
same_answers($node, 'answers after background merges', \%queries, ['t']);
is($node->safe_psql('postgres', "SELECT count(*) FROM hybrid_merge_progress"), '0', 'no merge is reported when none runs');

# what a worker reports is of the generation that it merges, not of all of them
my $reported = start_psql($node, "SELECT fill(1000);\n" x 40);
my ($reports, $exceeding) = split /\|/, $node->safe_psql('postgres', <<EOF);
CREATE TEMP TABLE reports (done int8, total int8);
DO \$\$
BEGIN
	FOR i IN 1 .. 1500 LOOP
		INSERT INTO reports SELECT entries_done, entries_total FROM hybrid_merge_progress;
		PERFORM pg_sleep(0.001);
	END LOOP;
END \$\$;
SELECT count(*), count(*) FILTER (WHERE done > total) FROM reports;
EOF
ok(finish_psql($reported), 'insertions while merges are watched') or diag $reported->{err};
cmp_ok($reports, '>', 0, "merges were seen ($reports times)");
is($exceeding, 0, 'no merge reports more entries done than there are');

# terminate workers as they come
my $load = start_psql($node, "SELECT fill(1000);\n" x 60);
my $killed = $node->safe_psql('postgres', <<EOF);
CREATE TEMP TABLE killed (pid int);
DO \$\$
BEGIN
	FOR i IN 1 .. 1000 LOOP
		INSERT INTO killed SELECT pid FROM pg_stat_activity WHERE backend_type ILIKE '%hybrid%' AND pg_terminate_backend(pid);
		PERFORM pg_sleep(0.003), pg_stat_clear_snapshot();
	END LOOP;
END \$\$;
SELECT count(DISTINCT pid) FROM killed;
EOF
ok(finish_psql($load), 'insertions succeed while workers are terminated') or diag $load->{err};
cmp_ok($killed, '>', 0, "workers were terminated ($killed)");
same_answers($node, 'answers after terminated workers', \%queries, ['t']);
my $again = 0;
foreach (1 .. 120)
{
	# a worker that was killed at its start holds its place for some seconds
	$node->safe_psql('postgres', "SELECT fill(100)");
	sleep 1;
	$again = $node->safe_psql('postgres', $idle) eq 't' and last;
}
ok($again, 'merges go on afterwards');
same_answers($node, 'answers when they are done', \%queries, ['t']);

# merges in the foreground, cancelled after ever longer times
$node->append_conf('postgresql.conf', 'hybridindex.background_merge = off');
$node->reload;
my $cancelled = 0;
foreach my $ms (1, 2, 3, 5, 8, 12, 20, 30, 50)
{
	$node->safe_psql('postgres', 'SET hybridindex.merge_floor = 1000000; SELECT fill(2000)');
	my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '${ms}ms'; SELECT hybrid_merge('t_k'), hybrid_merge('t_s')");
	$cancelled++ if $err =~ /statement timeout/;
	$node->psql('postgres', "SET statement_timeout = '${ms}ms'; VACUUM t");
	$node->psql('postgres', "SET statement_timeout = '${ms}ms'; CREATE INDEX t_x ON t USING hybrid (s, k)");
	$node->psql('postgres', 'DROP INDEX IF EXISTS t_x');
}
cmp_ok($cancelled, '>', 0, "merges were cancelled ($cancelled)");
same_answers($node, 'answers after cancelled merges, vacuums and builds', \%queries, ['t']);
$node->safe_psql('postgres', "SELECT hybrid_merge('t_k'), hybrid_merge('t_s')");
same_answers($node, 'answers after complete merges', \%queries, ['t']);

# sessions terminated in the middle of insertions and merges
foreach my $round (1 .. 5)
{
	my @sessions = (
		start_psql($node, "SELECT fill(500);\n" x 100),
		start_psql($node, "SELECT hybrid_merge('t_k'), hybrid_merge('t_s');\n" x 100));
	usleep(100_000 + 50_000 * $round);
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ 'fill|hybrid_merge' AND pid <> pg_backend_pid()");
	finish_psql($_) foreach @sessions;
}
same_answers($node, 'answers after terminated sessions', \%queries, ['t']);

# dropped while merges run
$node->append_conf('postgresql.conf', 'hybridindex.background_merge = on');
$node->reload;
foreach my $round (1 .. 6)
{
	$node->safe_psql('postgres', "CREATE TABLE d (k int8); CREATE INDEX d_k ON d USING hybrid (k);");
	$node->safe_psql('postgres', "INSERT INTO d SELECT hashint8(g) FROM generate_series(1, 6000) g");
	my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '60s'; "
		  . ('DROP TABLE d', 'TRUNCATE d', 'REINDEX TABLE d', 'DROP INDEX d_k', 'VACUUM FULL d', 'ALTER TABLE d ALTER k TYPE numeric')[ $round - 1 ]);
	is($ret, 0, "round $round: no wait for a merge") or diag $err;
	same_answers($node, "round $round: answers", { 'SELECT k FROM d WHERE k > 0' => 'index' }, ['d'])
	  if $round =~ /[2356]/;
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS d');
}
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', "CREATE EXTENSION hybridindex; CREATE TABLE d (k int8); CREATE INDEX d_k ON d USING hybrid (k);");
$node->safe_psql('other', "INSERT INTO d SELECT hashint8(g) FROM generate_series(1, 6000) g");
$node->safe_psql('postgres', 'DROP DATABASE other');
pass('a database is dropped though a worker may be in it');

# A worker that has nothing left to do is given the next index; it waits for
# that two seconds, which may pass unused on a busy machine, hence the rounds.
my $handed_over = 0;
foreach my $round (1 .. 20)
{
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE a$round (k int8);
CREATE INDEX a${round}_k ON a$round USING hybrid (k);
CREATE TABLE b$round (k int8);
CREATE INDEX b${round}_k ON b$round USING hybrid (k);
INSERT INTO a$round SELECT hashint8(g) FROM generate_series(1, 3000) g;
EOF
	my $merged = "SELECT merges > 0 AND NOT merge_running FROM hybrid_index_stats('%s${round}_k')";
	my $worker = "SELECT pid, state_change FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker'";
	$node->poll_query_until('postgres', sprintf($merged, 'a')) or last;
	my %first = $node->safe_psql('postgres', $worker) =~ /^(\d+)\|(.+)$/mg;
	$node->safe_psql('postgres', "INSERT INTO b$round SELECT hashint8(g) FROM generate_series(1, 3000) g");
	$node->poll_query_until('postgres', sprintf($merged, 'b')) or last;
	my %second = $node->safe_psql('postgres', $worker) =~ /^(\d+)\|(.+)$/mg;
	# the same process, which was at work meanwhile
	$handed_over = grep { defined $second{$_} && $second{$_} ne $first{$_} } keys %first and last;
}
ok($handed_over, 'a worker merges one index after the other');
no_worker($node, 'the worker ends when there is nothing left');

# no worker slots, then a preloaded library
$node->append_conf('postgresql.conf', "max_worker_processes = 0\nhybridindex.merge_step_pages = 8");
$node->restart;
my $left;
foreach (1 .. 200)		# how much the terminated sessions have left is chance
{
	$node->safe_psql('postgres', "SELECT fill(500)");
	$left = $node->safe_psql('postgres', "SELECT string_agg(format('%s of %s entries', dynamic_entries, static_entries), ', ') FROM unnest('{t_k,t_s}'::regclass[]) i, hybrid_index_stats(i) WHERE dynamic_entries > $waits");
	last if $left eq '';
}
is($left, '', 'without worker slots the inserting sessions merge');
same_answers($node, 'answers without worker slots', \%queries, ['t']);
$node->append_conf('postgresql.conf', "max_worker_processes = 8\nshared_preload_libraries = 'hybridindex'");
$node->restart;
$node->safe_psql('postgres', "SELECT fill(500)") foreach 1 .. 10;
ok($node->poll_query_until('postgres', $idle), 'merges end with the library preloaded');
same_answers($node, 'answers with the library preloaded', \%queries, ['t']);

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
