
# Static levels come and go by themselves, and ranges move from one to the next older
# one.  Wherever a process is stopped, the index is right.  Held points need a server
# with injection points (./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('moves', <<EOF);
hybridindex.background_merge = off
hybridindex.dynamic_memory = 64kB
hybridindex.merge_floor = 100
wal_consistency_checking = 'generic'
restart_after_crash = on
session_preload_libraries = 'hybridindex'
EOF

$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (k int8, s text COLLATE "C", n numeric, v int) WITH (autovacuum_enabled = off);
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT hashint8extended(r, 0), md5(r::text), (random() * 100000)::numeric(8, 2), r % 100
	FROM (SELECT (random() * 1e15)::int8 AS r FROM generate_series(1, n)) x
	ON CONFLICT DO NOTHING
\$\$;
INSERT INTO t SELECT hashint8extended(g, 0), md5(g::text), g % 10000 / 7.0, g % 100 FROM generate_series(1, 60000) g;
-- small freezes, for which there are always to be several levels
CREATE UNIQUE INDEX t_k ON t USING hybrid (k) WITH (merge_ratio = 300);
CREATE INDEX t_s ON t USING hybrid (s) INCLUDE (v) WITH (filter = surf, merge_ratio = 300);
CREATE INDEX t_n ON t USING hybrid (n, v) WITH (merge_ratio = 300);
-- long separators: many level-1 nodes, and so many units
CREATE INDEX t_p ON t USING hybrid ((repeat('x', 500) || s)) WITH (merge_ratio = 300);
-- the same, compared by a function
CREATE INDEX t_j ON t USING hybrid ((ARRAY[repeat('x', 500) || s])) WITH (merge_ratio = 300);
CREATE INDEX t_one ON t USING hybrid (s, k) WITH (levels = 1, merge_ratio = 300);
EOF
my @indexes = ('t_k', 't_s', 't_n', 't_p', 't_j', 't_one');
my %queries = (
	'SELECT k FROM t WHERE k > 0 ORDER BY k' => '{order,order_only}',
	'SELECT k FROM t WHERE k < 300 ORDER BY k DESC' => '{order,order_only}',
	'SELECT s, v FROM t WHERE s >= $$9$$ ORDER BY s' => '{order,order_only}',
	'SELECT n, v FROM t WHERE n BETWEEN 100 AND 900' => '{index,only,bitmap}',
	'SELECT n, v FROM t WHERE n > 1000 ORDER BY n DESC, v DESC' => '{order,order_only}',
	'SELECT s FROM t WHERE s IN (md5($$1$$), md5($$59999$$), $$nothing$$)' => '{index,only,bitmap}');

sub checked
{
	my ($what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', 'SELECT count(hybrid_index_check(i, true)) FROM unnest($${' . join(',', @indexes) . '}$$::regclass[]) i'),
		scalar(@indexes), "$what: sound");
}

# Insert until t_k has several levels, and entries in the newer ones.  A pass may have
# emptied the newest level, and be about to drop it: a merge would move nothing then.
sub several_levels
{
	my ($what) = @_;
	my $several = 'levels > 1 AND upper_entries > 0';
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach (1 .. 30)
	{
		$node->safe_psql('postgres', 'SELECT fill(700)');
		last if stats($node, 't_k', $several) eq 't';
	}
	is(stats($node, 't_k', $several), 't', "there are levels $what");
}

# ---- by themselves ----

my %seen;
foreach my $round (1 .. 24)
{
	$node->safe_psql('postgres', 'SELECT fill(700)');
	$seen{$_}{ stats($node, $_, 'levels') } = 1 foreach @indexes;
	if ($round % 6 == 0)
	{
		checked("round $round");
		$node->safe_psql('postgres', "DELETE FROM t WHERE v % 7 = $round / 6; VACUUM t");
		checked("round $round, after VACUUM");
	}
}
foreach my $index ('t_k', 't_s', 't_n', 't_p', 't_j')
{
	ok($seen{$index}{2} || $seen{$index}{3}, "$index has several levels");
	cmp_ok(stats($node, $index, 'moved_entries'), '>', 1000, 'entries have moved between levels');
	cmp_ok(stats($node, $index, 'write_amplification'), '>', 1, 'moved entries count as written');
}
is(join(',', keys %{ $seen{t_one} }), '1', 'one level where one is asked for');
is(stats($node, 't_one', 'upper_entries || $$ $$ || upper_bytes'), '0 0', 'an index of one level has nothing above it');
same_answers($node, 'all paths', \%queries, ['t']);

# hybrid_merge makes one level
$node->safe_psql('postgres', 'SELECT fill(700)');
$node->safe_psql('postgres', "SELECT hybrid_merge('$_')") foreach @indexes;
is(stats($node, $_, 'levels || $$ $$ || upper_entries || $$ $$ || dynamic_entries || $$ $$ || merge_running'), '1 0 0 false', "$_ is one level")
  foreach @indexes;
checked('after hybrid_merge');

# and so does the storage parameter, at a merge
several_levels('again');
my ($ret, $out, $err) = $node->psql('postgres', 'ALTER INDEX t_k SET (levels = 4)');
like($err, qr/invalid value for enum option "levels": 4.*\n.*Valid values are "auto", "1", "2" and "3"/, 'a number of levels that is not possible');
$node->safe_psql('postgres', 'ALTER INDEX t_k SET (levels = 1)');
foreach (1 .. 20)
{
	$node->safe_psql('postgres', 'SELECT fill(700)');
	last if stats($node, 't_k', 'levels') == 1;
}
is(stats($node, 't_k', 'levels'), 1, 'one level after the parameter was set');
checked('after the parameter was set');
$node->safe_psql('postgres', 'ALTER INDEX t_k RESET (levels)');

# a level of nothing but tombstones goes as well
$node->safe_psql('postgres', <<EOF);
CREATE TABLE d (k int8, g int) WITH (autovacuum_enabled = off);
INSERT INTO d SELECT hashint8extended(g, 0), 0 FROM generate_series(1, 60000) g;
CREATE INDEX d_k ON d USING hybrid (k);
EOF
foreach my $batch (0 .. 30)
{
	$node->safe_psql('postgres', "INSERT INTO d SELECT hashint8extended(100000 + $batch * 100 + g, 0), 1 FROM generate_series(1, 100) g");
	last if stats($node, 'd_k', 'upper_entries > 0 AND NOT merge_running') eq 't';
}
cmp_ok(stats($node, 'd_k', 'upper_entries'), '>', 0, 'entries wait in a newer level');
$node->safe_psql('postgres', 'DELETE FROM d WHERE g = 1');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) d');
$node->safe_psql('postgres', "SELECT hybrid_merge('d_k')");
is(stats($node, 'd_k', 'levels || $$ $$ || upper_entries || $$ $$ || static_entries'), '1 0 60000', 'of which nothing is left when they are dead');
is($node->safe_psql('postgres', "SELECT count(hybrid_index_check('d_k', true))"), 1, 'sound');

# Ascending keys need no second level.  There is one at first, as what merges
# will rewrite is not known yet, until it has what is worth moving.  Freezes are not
# much smaller than a leaf here; by default they are larger.
$node->append_conf('postgresql.conf', 'hybridindex.merge_floor = 1000');
$node->reload;
$node->safe_psql('postgres', <<EOF);
CREATE TABLE a (k int8) WITH (autovacuum_enabled = off);
INSERT INTO a SELECT g FROM generate_series(1, 60000) g;
CREATE INDEX a_k ON a USING hybrid (k);
CREATE SEQUENCE a_next START 60001;
EOF
my $ascending = "INSERT INTO a SELECT nextval('a_next') FROM generate_series(1, 5000)";
foreach my $batch (1 .. 30)
{
	$node->safe_psql('postgres', $ascending);
	last if $batch >= 4 && stats($node, 'a_k', 'levels') == 1;
}
is(stats($node, 'a_k', 'levels'), 1, 'ascending keys: one level');
my $merges = stats($node, 'a_k', 'merges');
foreach (1 .. 6)
{
	$node->safe_psql('postgres', $ascending);
	is(stats($node, 'a_k', 'levels'), 1, 'ascending keys: still one level');
}
cmp_ok(stats($node, 'a_k', 'merges'), '>', $merges, 'after merges');
$node->append_conf('postgresql.conf', 'hybridindex.merge_floor = 100');
$node->reload;

# ---- crashes ----

foreach my $round (1 .. 3)
{
	my $session = start_psql($node, 'SELECT fill(700);' x 20);
	select(undef, undef, undef, 0.2 * $round);
	$node->stop('immediate');
	finish_psql($session);
	$node->start;
	checked("crash $round");
}
same_answers($node, 'after crashes', \%queries, ['t']);

# ---- held ----

SKIP:
{
	skip 'this server has no injection points', 1
	  if !has_points($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points; ALTER SYSTEM SET hybridindex.merge_step_pages = 4; SELECT pg_reload_conf()');

	# VACUUM finds entries dead that a step has fetched, and treats them where
	# the step has brought them
	several_levels('before VACUUM beside a move');
	$node->safe_psql('postgres', 'DELETE FROM t WHERE v % 3 = 0');
	attach_point($node, 'pass-fetched');
	my $merge = start_psql($node, "SELECT hybrid_merge('t_k');");
	ok(held_at($node, 'pass-fetched', $merge), 'a move is held') or diag $merge->{err};
	my $vacuum = start_psql($node, 'VACUUM t;');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND objsubid = 18521"),
		'VACUUM has found what is dead');
	release_point($node, 'pass-fetched');
	ok(finish_psql($merge), 'the merge goes on') or diag $merge->{err};
	ok(finish_psql($vacuum), 'VACUUM goes on') or diag $vacuum->{err};
	$node->safe_psql('postgres', 'SELECT fill(2000)');
	checked('VACUUM beside a move');
	same_answers($node, 'VACUUM beside a move', \%queries, ['t']);

	# hybrid_merge makes one level, too, if others freeze what it is about
	foreach (1 .. 200)
	{
		$node->safe_psql('postgres', 'SELECT fill(100)');
		last if stats($node, 't_k', 'levels > 1 AND merge_running') eq 't';
	}
	is(stats($node, 't_k', 'levels > 1 AND merge_running'), 't', 'a merge is unfinished');
	$merges = stats($node, 't_k', 'merges + 1');
	attach_point($node, 'merge-between');
	$merge = start_psql($node, "SELECT hybrid_merge('t_k');");
	ok(held_at($node, 'merge-between', $merge), 'hybrid_merge is held after a step') or diag $merge->{err};
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-merge-between')");
	foreach (1 .. 200)
	{
		$node->safe_psql('postgres', 'SELECT fill(100)');
		last if stats($node, 't_k', "merges = $merges AND merge_running") eq 't';
	}
	is(stats($node, 't_k', "merges = $merges AND merge_running"), 't', 'another session has frozen the active log');
	$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-merge-between')");
	ok(finish_psql($merge), 'it goes on') or diag $merge->{err};
	is(stats($node, 't_k', 'levels'), 1, 'the merge leaves one level');
	checked('merges beside hybrid_merge');

	# dictionaries are not learned while a pass is under way
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE h (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX h_s ON h USING hybrid (s text_hope_ops);
EOF
	my $settings = "SET hybridindex.test_levels = 2; SET hybridindex.merge_floor = 100;";
	my $reader = start_psql($node, "BEGIN; SET enable_seqscan = off; SELECT count(*) FROM h WHERE s = 'x'; SELECT pg_sleep(3);");
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE relation = 'h_s'::regclass");
	$node->safe_psql('postgres', "$settings INSERT INTO h SELECT md5(g::text) FROM generate_series(1, 6000) g");
	$node->safe_psql('postgres', "$settings INSERT INTO h SELECT md5(g::text) FROM generate_series(6001, 7500) g");
	finish_psql($reader);
	my $learner = start_psql($node, "$settings SELECT injection_points_set_local(); SELECT injection_points_attach('hybrid-learn-lock', 'wait'); INSERT INTO h SELECT md5((100000 + g)::text) FROM generate_series(1, 1500) g;");
	ok(held_at($node, 'learn-lock', $learner), 'an inserter is about to learn') or diag $learner->{err};
	my $log_end = -s $node->logfile;
	$node->safe_psql('postgres', <<EOF);
$settings
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-pass-advance', 'error');
INSERT INTO h SELECT md5((300000 + g)::text) FROM generate_series(1, 600) g;
INSERT INTO h SELECT md5((400000 + g)::text) FROM generate_series(1, 600) g;
INSERT INTO h SELECT md5((500000 + g)::text) FROM generate_series(1, 600) g;
EOF
	like(slurp_file($node->logfile, $log_end),
		qr/could not merge index "h_s" beside a statement: error triggered for injection point hybrid-pass-advance/, 'another one leaves a pass unfinished');
	release_point($node, 'learn-lock');
	ok(finish_psql($learner), 'the first one goes on') or diag $learner->{err};
	is($node->safe_psql('postgres', "SELECT count(hybrid_index_check('h_s', true))"), 1, 'sound');

	foreach my $point ('step-reserved', 'step-cut', 'step-written', 'step-installed', 'pass-advance', 'merge-finish')
	{
		several_levels("before $point");
		attach_point($node, $point);
		my $session = start_psql($node, "SELECT hybrid_merge('t_k');");
		my $pid = held_at($node, $point, $session);
		ok($pid, "a session was held at $point") or diag $session->{err};
		if ($pid)
		{
			my $from = -s $node->logfile;
			$node->safe_psql('postgres', 'SELECT txid_current()');
			kill 'KILL', $pid;
			finish_psql($session);
			wait_for_restart($node, $from);
		}
		checked("killed at $point");

		several_levels("again before $point");
		$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-$point', 'error')");
		($ret, $out, $err) = $node->psql('postgres', "SELECT hybrid_merge('t_k')");
		like($err, qr/error triggered for injection point hybrid-$point/, "an error at $point");
		$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-$point')");
		checked("after an error at $point");
		same_answers($node, "around $point", \%queries, ['t']);
	}
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
