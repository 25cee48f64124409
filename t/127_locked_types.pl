
# Workers, views and VACUUM wait for no lock that another session chooses to hold on
# what comparing keys needs: a row type's table, or a table that a function reads.
# Workers and views do not wait for tables and indexes either.  A worker does not wait
# long for another process that waits for such a lock with the merge lock held.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

$PostgreSQL::Test::Utils::timeout_default = 30;
my $node = new_node('locked', <<CONF);
hybridindex.max_merge_workers = 1
hybridindex.merge_floor = 100
hybridindex.log_merge_min_duration = 0
CONF

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE row_type (a int, b text);
CREATE TABLE looked_up (n int);
INSERT INTO looked_up VALUES (1);
CREATE FUNCTION looking_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN (SELECT n * btint4cmp(a, b) FROM public.looked_up);
END $$;
CALL hyb_operator_class('looking');
CREATE TABLE rows (k row_type) WITH (autovacuum_enabled = off);
CREATE INDEX rows_k ON rows USING hybrid (k);
CREATE INDEX rows_btree ON rows (k);
CREATE TABLE ints (k int) WITH (autovacuum_enabled = off);
CREATE INDEX ints_k ON ints USING hybrid (k looking_ops);
CREATE TABLE other (k int) WITH (autovacuum_enabled = off);
CREATE INDEX other_k ON other USING hybrid (k);
CREATE PROCEDURE fill(first int, n int) LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO rows SELECT ROW(i, i::text)::row_type FROM generate_series(first, first + n - 1) i;
	INSERT INTO ints SELECT generate_series(first, first + n - 1);
END $$;
SQL

# Wait until a worker has merged the index; inserts into the table meanwhile.
sub merged_by_worker
{
	my ($index, $table, $what, $from) = @_;
	my $found = 0;

	for (my $i = 0; $i < 200 && !$found; $i++)
	{
		$node->safe_psql('postgres', "INSERT INTO $table SELECT generate_series(1, 1000)") if $table;
		usleep(100_000);
		$found = substr(slurp_file($node->logfile), $from) =~ /merge of hybrid index "postgres.public.$index"/;
	}
	ok($found, $what);
	return;
}

my $n = 0;
my %reached = ('rows' => 'rows_k', 'row_type' => 'rows_k', 'ints' => 'ints_k', 'looked_up' => 'ints_k');
foreach my $relation (sort keys %reached)
{
	my $index = $reached{$relation};
	my $begun = -s $node->logfile;
	my $holder = $node->background_psql('postgres', on_error_stop => 1);

	# what it fills is merged later, and leaves a part of a merge behind for a view
	$holder->query_safe("SET hybridindex.merge_floor = 1000000; CALL fill($n, 1500)");
	$node->safe_psql('postgres', 'DELETE FROM rows WHERE (k).a % 10 > 0; DELETE FROM ints WHERE k % 10 > 0');
	$holder->query_safe("BEGIN; LOCK TABLE $relation IN ACCESS EXCLUSIVE MODE; RESET hybridindex.merge_floor; CALL fill($n + 1500, 1500)");
	foreach my $round (1, 2)
	{
		merged_by_worker('other_k', 'other', "$relation is locked: another index is merged, $round", -s $node->logfile);
	}
	foreach my $view ('hybrid_indexes', 'hybrid_advice', "hybrid_index_stats('$index', true)", "hybrid_estimate('rows_btree', true)", "hybrid_advise('rows_btree')")
	{
		my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '5s'; SELECT count(*) FROM (SELECT * FROM $view OFFSET 0) v");
		is($err, '', "$relation is locked: $view waits for no lock");
	}
	foreach my $table (grep { $_ ne $relation } 'rows', 'ints')
	{
		my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '10s'; VACUUM (FREEZE, INDEX_CLEANUP on, TRUNCATE off) $table");
		is($err, '', "$relation is locked: VACUUM of $table");
	}
	$holder->query_safe('COMMIT');
	$holder->quit;
	merged_by_worker($index, undef, "$relation is free: its index has been merged", $begun);
	$n += 3000;
}

# A comparison that fails, with whatever error, is an error of one index.
SKIP:
{
	skip 'NOT TESTED: half a merge, and a worker that shrinks a file, since this server has no injection points', 5 if !has_points($node);
	$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION injection_points;
CREATE FUNCTION failing_cmp(int, int) RETURNS int LANGUAGE internal IMMUTABLE AS 'btint4cmp';
CALL hyb_operator_class('failing');
CREATE TABLE half (k int) WITH (autovacuum_enabled = off);
INSERT INTO half SELECT generate_series(1, 20000);
CREATE INDEX half_k ON half USING hybrid (k failing_ops);
SQL
	my ($ret, $out, $err) = $node->psql('postgres', <<'SQL');
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
SET hybridindex.merge_step_pages = 1;
INSERT INTO half SELECT generate_series(1, 20000);
SELECT injection_points_set_local(), injection_points_attach('hybrid-step-installed', 'error');
SELECT hybrid_merge('half_k');
SQL
	like($err, qr/hybrid-step-installed/, 'half a merge');
	foreach my $state ('55000', '42809', '22012')
	{
		$node->safe_psql('postgres', "CREATE OR REPLACE FUNCTION failing_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RAISE SQLSTATE ''$state''; END'");
		is($node->safe_psql('postgres', 'SELECT indexname, total_pages > 0 FROM hybrid_indexes ORDER BY 1'), "half_k|\nints_k|t\nother_k|t\nrows_k|t",
			"the view has NULLs for an index whose comparison raises $state");
	}
	$node->safe_psql('postgres', 'DROP TABLE half');

	# hybrid_merge waits with the merge lock held, which a worker that shrinks the file needs
	my $sifting = "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-shrink-sifted' AND query ~ 'rows_k'";
	$node->safe_psql('postgres', <<'SQL');
TRUNCATE rows;
INSERT INTO rows SELECT ROW(i, md5(i::text))::row_type FROM generate_series(1, 40000) i;
SELECT hybrid_merge('rows_k');
DELETE FROM rows WHERE (k).a % 4 = 0;
ALTER SYSTEM SET hybridindex.quiet_time = 100;
SELECT pg_reload_conf();
SELECT injection_points_attach('hybrid-shrink-sifted', 'wait');
VACUUM (TRUNCATE off, INDEX_CLEANUP on) rows;
SQL
	for (my $i = 0; $i < 200 && $node->safe_psql('postgres', $sifting) ne 't'; $i++)
	{
		# it may come to another index first
		$node->psql('postgres', "SELECT injection_points_wakeup('hybrid-shrink-sifted') FROM pg_stat_activity WHERE wait_event = 'hybrid-shrink-sifted' AND query !~ 'rows_k'");
		usleep(100_000);
	}
	my $holder = $node->background_psql('postgres', on_error_stop => 1);
	$holder->query_safe("SET hybridindex.merge_floor = 1000000; INSERT INTO rows VALUES (ROW(1, 'x')); BEGIN; LOCK TABLE row_type");
	my $merge = start_psql($node, "SELECT hybrid_merge('rows_k')");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'SELECT hybrid_merge'") or die $merge->{err};
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-shrink-sifted'), injection_points_wakeup('hybrid-shrink-sifted')");
	merged_by_worker('other_k', 'other', 'a worker does not wait for hybrid_merge that waits', -s $node->logfile);
	$holder->query_safe('COMMIT');
	$holder->quit;
	ok(finish_psql($merge), 'hybrid_merge goes on') or diag $merge->{err};
}

my $log = slurp_file($node->logfile);
unlike($log, qr/lock timeout/, 'no worker failed of that');
foreach my $index ('rows_k', 'ints_k', 'other_k')
{
	is($node->safe_psql('postgres', "SELECT hybrid_index_check('$index', true)"), '', "the check of $index");
}
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
