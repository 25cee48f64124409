# Parallel scans run beside inserts, deletes, VACUUM and merges, and on a standby
# that replays these.  In one snapshot they return what a sequential scan does, each
# row once.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('parallel', <<EOF, allows_streaming => 1);
shared_buffers = 32MB
max_worker_processes = 16
max_parallel_workers = 8
max_parallel_workers_per_gather = 2
parallel_setup_cost = 0
parallel_tuple_cost = 0
cpu_tuple_cost = 1
min_parallel_table_scan_size = 0
min_parallel_index_scan_size = 0
enable_bitmapscan = off
hybridindex.merge_floor = 500
hybridindex.merge_step_pages = 2
EOF
$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (k int8, s text COLLATE "C") WITH (parallel_workers = 2);
CREATE INDEX t_k ON t USING hybrid (k);
CREATE INDEX t_s ON t USING hybrid (s, k DESC);
INSERT INTO t SELECT hashint8extended(i, 0) % 1000000, md5((i % 700)::text) FROM generate_series(1, 15000) i;
VACUUM ANALYZE t;
EOF

my $queries = join '', map { <<EOF } (
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL enable_seqscan = on;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL enable_indexscan = off;
SET LOCAL enable_indexonlyscan = off;
SELECT $_->[0] AS want FROM t WHERE $_->[1] \\gset
SET LOCAL enable_seqscan = off;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL $_->[2] = on;
SELECT $_->[0] AS got FROM t WHERE $_->[1] \\gset
SELECT 1 / (CASE WHEN ':want' = ':got' THEN 1 ELSE 0 END);
COMMIT;
EOF
	[ "count(*) || ' ' || coalesce(sum(k), 0)", 'k > -500000', 'enable_indexonlyscan' ],
	[ "count(*) || ' ' || coalesce(sum(k), 0)", 's > $$3$$', 'enable_indexonlyscan' ],
	[ "count(*) || ' ' || coalesce(sum(k + length(s)), 0)", 'k BETWEEN -700000 AND 700000', 'enable_indexscan' ]);
my $write = <<'EOF';
\set n random(1, 1000000000)
INSERT INTO t SELECT hashint8extended(i, :n) % 1000000, md5((i % 700)::text) FROM generate_series(1, 200) i;
DELETE FROM t WHERE k BETWEEN :n % 1000000 - 6000 AND :n % 1000000;
EOF

is( $node->safe_psql('postgres', <<EOF), 't', 'the plan is parallel');
CREATE FUNCTION plan(query text) RETURNS json LANGUAGE plpgsql AS 'DECLARE p json; BEGIN EXECUTE ''EXPLAIN (FORMAT JSON) '' || query INTO p; RETURN p; END';
SET enable_seqscan = off;
SELECT plan('SELECT count(*) FROM t WHERE k > -500000')::text LIKE '%"Parallel Aware": true%';
EOF

my $standby = new_standby($node, 'standby', "max_standby_streaming_delay = -1\neffective_io_concurrency = 16\nshared_buffers = 1MB\n");
my %clients;
foreach my $part ([ 'reader', $queries, 2, $node ], [ 'reader of the standby', $queries, 1, $standby ], [ 'writer', $write, 1, $node ],
	[ 'vacuum', "VACUUM t;\n\\sleep 300 ms\n", 1, $node ], [ 'merge', "SELECT hybrid_merge('t_k'), hybrid_merge('t_s');\n\\sleep 200 ms\n", 1, $node ])
{
	my ($name, $script, $clients, $server) = @$part;
	$clients{$name} = start_pgbench($server, $script, '-T', 12, '-c', $clients);
}
foreach my $name (sort keys %clients)
{
	my $client = $clients{$name};

	ok(finish_psql($client), "$name ends well") or diag $client->{err};
	my ($n) = $client->{out} =~ /number of transactions actually processed: (\d+)/;
	cmp_ok($n // 0, '>', 3, "$name did something");
}
my $sound = "SELECT hybrid_index_check('%s', true)";
ok(defined $node->safe_psql('postgres', sprintf($sound, $_)), "$_ is sound") foreach 't_k', 't_s';

# ---- a standby asks for heap pages as well ----

$node->wait_for_catchup($standby);
$standby->restart;
is($standby->safe_psql('postgres', <<EOF), "t\nt", 'a standby looks ahead, and returns the same');
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
SET enable_sort = off;
SELECT count(*) AS rows, sum(k + length(s)) AS sum FROM (SELECT k, s FROM t WHERE k > -900000 ORDER BY k) x \\gset
SELECT heap_prefetches > 20 FROM hybrid_index_stats('t_k');
SET enable_seqscan = on;
SET enable_indexscan = off;
SELECT count(*) = :rows AND sum(k + length(s)) = :sum FROM t WHERE k > -900000;
EOF
no_crash($standby, 'nothing crashed on the standby');
$standby->stop;

# ---- entries of the log, returned slowly while merges go through ----

# Both workers wait in the middle of what they have claimed, first of entries of the log
# that no leaf is pinned for.  All are merged then: a claim spans several leaves.  One of
# them waits once more, among leaves and other entries of the log; where the scan is
# ordered the leader may not take more from the other one.
$node->append_conf('postgresql.conf', 'hybridindex.merge_floor = 100000');
$node->reload;
$node->safe_psql('postgres', <<'EOF');
CREATE FUNCTION slow_key(i int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
	AS $$ SELECT to_char(i, 'FM00000000') || md5(i::text) || md5((-i)::text) $$;
CREATE FUNCTION slowly(k text, dir text) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS $$
DECLARE
	i	int := left(k, 8)::int;
	stage	text := CASE WHEN i BETWEEN 1500 AND 4500 THEN 'second' ELSE 'first' END;
BEGIN
	IF i % 250 = 125 AND pg_stat_file(dir || '/' || stage, true) IS NULL THEN
		RAISE LOG 'a worker waits for the % file', stage;
		WHILE pg_stat_file(dir || '/' || stage, true) IS NULL LOOP
			PERFORM pg_sleep(0.02);
		END LOOP;
	END IF;
	RETURN i;
END $$;
EOF
foreach my $order ('', 'ORDER BY k', 'ORDER BY k DESC')
{
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $what = $order || 'no order';
	my $from = -s $node->logfile;

	$node->safe_psql('postgres', $_) foreach 'DROP TABLE IF EXISTS slow',
	  'CREATE TABLE slow (k text COLLATE "C") WITH (parallel_workers = 2, autovacuum_enabled = off)',
	  'CREATE INDEX slow_k ON slow USING hybrid (k)',
	  'INSERT INTO slow SELECT slow_key(i) FROM generate_series(1, 6000) i', 'ANALYZE slow';
	my $settings = 'SET enable_seqscan = off; SET enable_sort = off; SET parallel_leader_participation = off;';
	my $query = "SELECT count(*), sum(i) FROM (SELECT slowly(k, '$dir') AS i FROM slow WHERE k > '' $order OFFSET 0) x";
	like($node->safe_psql('postgres', "$settings EXPLAIN $query"), qr/Parallel Index Only Scan/, "$what: the plan");
	my $scan = start_psql($node, "$settings $query;\n");
	foreach my $stage ('first', 'second')
	{
		my $least = $stage eq 'first' ? 2 : 1;
		my $waiting = 0;

		foreach (1 .. 600)
		{
			$waiting = () = slurp_file($node->logfile, $from) =~ /a worker waits for the $stage file/g;
			last if $waiting >= $least;
			select(undef, undef, undef, 0.05);
		}
		cmp_ok($waiting, '>=', $least, "$what: in the middle of a claim, the $stage time") or diag $scan->{err};
		$node->safe_psql('postgres', $_) foreach "SELECT hybrid_merge('slow_k')", 'DELETE FROM slow WHERE left(k, 8)::int % 3 = 1',
		  "INSERT INTO slow SELECT slow_key(i) || '$stage' FROM generate_series(1, 6000) i";
		append_to_file("$dir/$stage", '');
		$node->safe_psql('postgres', "SELECT hybrid_merge('slow_k')") if $stage eq 'second';
	}
	ok(finish_psql($scan), "$what: the scan ends") or diag $scan->{err};
	is($scan->{out}, "6000|18003000\n", "$what: it returns the rows of its snapshot");
}

# ---- an entry that moves while it is being returned ----

SKIP:
{
	skip 'this server has no injection points', 10
	  if !has_points($node);

	# The only worker has claimed a small first batch, without a leaf: a leaf's pin
	# would hold entries of the log as well.  When the log has been merged it loads
	# another batch, which has to end where the first one did.
	$node->append_conf('postgresql.conf', 'hybridindex.merge_floor = 100000');
	$node->reload;
	$node->safe_psql('postgres', <<EOF);
CREATE EXTENSION injection_points;
CREATE TABLE one (k int8) WITH (parallel_workers = 1, autovacuum_enabled = off);
CREATE INDEX one_k ON one USING hybrid (k);
INSERT INTO one SELECT i FROM generate_series(1, 8000) i;
ANALYZE one;
SELECT injection_points_attach('hybrid-delta-pin', 'wait');
EOF
	my $scan = start_psql($node, <<EOF);
SET enable_seqscan = off;
SET parallel_leader_participation = off;
SELECT count(*), sum(k) FROM one WHERE k > 0;
EOF
	ok(held_at($node, 'delta-pin', $scan), 'a scan is held') or diag $scan->{err};
	$node->safe_psql('postgres', "SELECT hybrid_merge('one_k')");
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-delta-pin')");
	$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-delta-pin')");
	ok(finish_psql($scan), 'it goes on') or diag $scan->{err};
	is($scan->{out}, "8000|32004000\n", 'the scan returns each row once');

	# while one worker reads the only batch, three wait for their turn.  The first
	# of them finds the end, and it is the end for the other two as well.  The plan
	# is made before, since the planner reads the index, too.
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE few (k int8) WITH (parallel_workers = 4, autovacuum_enabled = off);
CREATE INDEX few_k ON few USING hybrid (k);
INSERT INTO few SELECT i FROM generate_series(1, 10) i;
ANALYZE few;
EOF
	$scan = start_psql($node, <<EOF);
SET enable_seqscan = off;
SET parallel_leader_participation = off;
SET max_parallel_workers_per_gather = 4;
PREPARE few AS SELECT count(*), sum(k) FROM few WHERE k > 0;
EXECUTE few;
SELECT injection_points_attach('hybrid-dynamic-fetch', 'wait');
EXECUTE few;
EOF
	ok(held_at($node, 'dynamic-fetch', $scan) &&
		$node->poll_query_until('postgres', "SELECT count(*) = 3 FROM pg_stat_activity WHERE wait_event = 'HybridParallelScan'"),
		'three workers wait for one') or diag $scan->{err};
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-dynamic-fetch')");
	$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-dynamic-fetch')");
	ok(finish_psql($scan), 'all end') or diag $scan->{err};
	is($scan->{out}, "10|55\n\n10|55\n", 'each scan returned each row once');

	# the claimed block is not a leaf any more when it is read
	$node->append_conf('postgresql.conf', 'hybridindex.merge_floor = 500');
	$node->reload;
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE leaves (k int8) WITH (parallel_workers = 2, autovacuum_enabled = off);
INSERT INTO leaves SELECT hashint8extended(i, 0) % 1000000 FROM generate_series(1, 8000) i;
CREATE INDEX leaves_k ON leaves USING hybrid (k);
ANALYZE leaves;
EOF
	my $count = "SELECT count(*), sum(k) FROM leaves WHERE k > -900000";
	my $want = $node->safe_psql('postgres', $count);
	$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-claim-left', 'wait')");
	$scan = start_psql($node, "SET enable_seqscan = off;\nSET parallel_leader_participation = off;\n$count;\n");
	my $waiting = "FROM pg_stat_activity WHERE wait_event = 'hybrid-claim-left'";
	ok(held_at($node, 'claim-left', $scan) && $node->poll_query_until('postgres', "SELECT count(*) = 2 $waiting"),
		'workers are held before they read what they have claimed') or diag $scan->{err};
	$node->safe_psql('postgres', "INSERT INTO leaves SELECT hashint8extended(i, 1) % 1000000 FROM generate_series(1, 20000) i");
	$node->safe_psql('postgres', "SELECT hybrid_merge('leaves_k')");
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-claim-left')");
	ok(wake_all($node, 'claim-left'), 'they are woken');
	ok(finish_psql($scan), 'they go on') or diag $scan->{err};
	is($scan->{out}, "$want\n", 'the scan returns the rows of its snapshot');
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
