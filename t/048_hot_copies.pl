# Hot copies are right beside writers, merges and VACUUM that gives TIDs to other
# rows.  Sessions are held at points where a copy would become wrong if a rule of
# docs/hot.md was missing. hybridindex.hot_memory changes meanwhile.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{HYBRID_SECONDS} // 8;
my $node = new_node('hot', <<EOF, allows_streaming => 1);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
autovacuum = off
plan_cache_mode = force_generic_plan
enable_seqscan = off
enable_bitmapscan = off
enable_indexonlyscan = off
EOF
my $has_points = has_points($node);

# Rows (k, v) with v = 'v' || k; a btree index on n, so that no update is HOT
$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (k int8, n int4, v text);
INSERT INTO t SELECT i, 1, 'v' || i FROM generate_series(1, 2000) i;
CREATE UNIQUE INDEX t_k ON t USING hybrid (k);
CREATE INDEX t_n ON t USING btree (n);
CREATE FUNCTION warm(first int, last int) RETURNS bigint LANGUAGE plpgsql AS \$\$
DECLARE
	bad bigint := 0;
	x text;
BEGIN
	FOR round IN 1 .. 2 LOOP
		FOR i IN first .. last LOOP
			SELECT v INTO x FROM t WHERE k = i;
			bad := bad + (x IS DISTINCT FROM 'v' || i)::int;
		END LOOP;
	END LOOP;
	RETURN bad;
END \$\$;
EOF

sub hits
{
	return $node->safe_psql('postgres', "SELECT hot_hits FROM hybrid_index_stats('t_k')");
}

is(run($node, 'SELECT warm(1, 2000)'), '0', 'rows are found');
my $before = hits();
is(run($node, 'SELECT warm(1, 2000)'), '0', 'rows are found again');
# what a session has not yet told is not counted
cmp_ok(hits() - $before, '>=', 3700, 'without leaves');

# EXPLAIN says what came of it, where the server asks
if (run($node, "SELECT current_setting('server_version_num')::int >= 180000") eq 't')
{
	my $plan = run($node, 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT v FROM t WHERE k = 77');
	like($plan, qr/Hot Copies: 1/, 'EXPLAIN shows a hit');
}

# ---- held points ----

my $look = 'SELECT v FROM t WHERE k = 7';

# A session that is to publish key 7 is held at a point before it does, and goes on
# when a merge, or VACUUM, has made what it has read untrue.
sub publish_late
{
	my ($name, $point, $first, $seen, $change, $expect) = @_;

	run($node, 'SELECT warm(50, 100)');
	# a new version, without a copy
	run($node, 'UPDATE t SET n = n + 1 WHERE k = 7');
	run($node, 'VACUUM t');
	run($node, "SELECT hybrid_merge('t_k')");
	run($node, $first) if $first;
	my $session = start_psql($node, 'SELECT warm(50, 100);',
		"SELECT injection_points_set_local(), injection_points_attach('hybrid-$point', 'wait');\n", "$look;\n");
	my $pid = held_at($node, $point, $session);
	ok($pid, "$name: held") or diag $session->{err};
	if ($pid)
	{
		run($node, $_) foreach @$change;
		release_point($node, $point);
	}
	ok(finish_psql($session), "$name: finished") or diag $session->{err};
	$session->{out} =~ s/^0\n\|\n//;
	is($session->{out}, $seen, "$name: found what its snapshot sees");
	is(run($node, $look), $expect, "$name: then what is there now") foreach 1 .. 2;
	run($node, "SELECT hybrid_index_check('t_k', true)");
	return;
}

SKIP:
{
	skip 'this server has no injection points', 1 if !$has_points;
	run($node, 'CREATE EXTENSION injection_points');

	# held when it has read the leaves, and when it is about to publish
	my $key = 3001;
	foreach my $point ('dynamic-fetch', 'hot-publish')
	{
		publish_late("a merge of another version, $point", $point, '', "v7\n",
			[ 'UPDATE t SET n = n + 1 WHERE k = 7', "SELECT hybrid_merge('t_k')" ], 'v7');
		publish_late("VACUUM, and the TID used again, $point", $point, "DELETE FROM t WHERE v = 'v7'", '',
			[ 'VACUUM t', "INSERT INTO t SELECT i, 1, 'other' FROM generate_series($key, $key + 399) i" ], '');
		run($node, "INSERT INTO t VALUES (7, 1, 'v7')");
		$key += 400;
	}

	# the TID of a copy used again
	run($node, "SELECT hybrid_merge('t_k')");
	run($node, 'SELECT warm(1, 100)');
	run($node, 'DELETE FROM t WHERE k BETWEEN 1 AND 49');
	run($node, 'VACUUM t');
	run($node, "INSERT INTO t SELECT i, 1, 'other' FROM generate_series(3901, 4000) i");
	is(run($node, 'SELECT count(v) FROM generate_series(1, 49) i, LATERAL (SELECT v FROM t WHERE k = i) x'), '0', 'VACUUM clears copies');
	run($node, "INSERT INTO t SELECT i, 1, 'v' || i FROM generate_series(1, 49) i");

	# while copies are cleared and the version is not switched yet, nothing may be
	# published of the version that goes
	run($node, "SELECT hybrid_merge('t_k')");
	run($node, 'SELECT warm(1, 100)');
	run($node, 'UPDATE t SET n = n + 1 WHERE k = 7');
	attach_point($node, 'hot-cleared');
	my $session = start_psql($node, "SELECT hybrid_merge('t_k');");
	my $pid = held_at($node, 'hot-cleared', $session);
	ok($pid, 'a merge is held with copies cleared') or diag $session->{err};
	# one: a second one would find that the row is dead, and forget a wrong copy
	is(run($node, $look), 'v7', 'a look-up beside it');
	release_point($node, 'hot-cleared');
	ok(finish_psql($session), 'the merge has finished') or diag $session->{err};
	is(run($node, $look), 'v7', 'a look-up after it');
	is(run($node, 'SELECT warm(1, 100)'), '0', 'look-ups of other rows after it');

	# the end of the process there, and an error: the gate is opened
	run($node, 'UPDATE t SET n = n + 1 WHERE k = 7');
	attach_point($node, 'hot-cleared');
	$session = start_psql($node, "SELECT hybrid_merge('t_k');");
	$pid = held_at($node, 'hot-cleared', $session);
	run($node, "SELECT pg_terminate_backend($pid)") if $pid;
	finish_psql($session);
	like($session->{err}, qr/terminating connection/, 'a merge ends with the gate shut');
	run($node, "SELECT injection_points_detach('hybrid-hot-cleared')");
	run($node, 'SELECT warm(601, 700)');
	$before = hits();
	run($node, 'SELECT sum(warm(601, 700)) FROM generate_series(1, 10)');
	cmp_ok(hits() - $before, '>=', 1500, 'copies are made again');
	run($node, 'UPDATE t SET n = n + 1 WHERE k = 7');
	run($node, "SELECT injection_points_attach('hybrid-hot-cleared', 'error')");
	my $failing = $node->background_psql('postgres', on_error_stop => 0);
	$failing->query("SELECT hybrid_merge('t_k')");
	like($failing->{stderr}, qr/hybrid-hot-cleared/, 'a merge fails with the gate shut');
	run($node, "SELECT injection_points_detach('hybrid-hot-cleared')");
	is(run($node, 'SELECT warm(101, 200)'), '0', 'look-ups afterwards');
	run($node, 'UPDATE t SET n = n + 1 WHERE k BETWEEN 201 AND 300');
	run($node, "SELECT hybrid_merge('t_k')");
	is(run($node, 'SELECT warm(201, 300)'), '0', 'look-ups of keys that were moved');
	$before = hits();
	run($node, 'SELECT sum(warm(201, 300)) FROM generate_series(1, 10)');
	cmp_ok(hits() - $before, '>=', 1500, 'moved keys are published again');
	$failing->quit;
	run($node, "SELECT hybrid_index_check('t_k', true)");
}

# ---- many at a time ----

# Keys that are always there, under changing TIDs, and keys that come and go.
$node->append_conf('postgresql.conf', <<EOF);
hybridindex.background_merge = on
hybridindex.merge_floor = 200
hybridindex.merge_step_pages = 2
hybridindex.hot_memory = 128kB
EOF
$node->restart;
run($node, 'DROP TABLE t', 'CREATE TABLE t (k int8, n int4, v text) WITH (autovacuum_enabled = off)',
	"INSERT INTO t SELECT i, 1, 'v' || i FROM generate_series(1, 3000) i",
	'CREATE UNIQUE INDEX t_k ON t USING hybrid (k)', 'CREATE INDEX t_n ON t USING btree (n)', 'CREATE TABLE wrong (what text)');
my $reader = <<'EOF';
\set k random_zipfian(1, 3000, 1.1)
\set a random(3001, 6000)
WITH q AS MATERIALIZED (SELECT count(*) n, min(v) v FROM t WHERE k = :k::int8)
	INSERT INTO wrong SELECT format('key %s: %s rows, %s', :k::int8, n, v) FROM q WHERE n <> 1 OR v <> 'v' || :k::int8;
WITH q AS MATERIALIZED (SELECT count(*) n, min(v) v FROM t WHERE k = :a::int8)
	INSERT INTO wrong SELECT format('key %s: %s rows, %s', :a::int8, n, v) FROM q WHERE n > 1 OR v <> 'v' || :a::int8;
EOF
my $writer = <<'EOF';
\set k random_zipfian(1, 3000, 1.1)
\set a random(3001, 6000)
UPDATE t SET n = n + 1 WHERE k = :k;
DELETE FROM t WHERE k = :a;
\set a random(3001, 6000)
INSERT INTO t SELECT :a, 1, 'v' || :a::int8 WHERE NOT EXISTS (SELECT FROM t WHERE k = :a);
EOF
my $vacuum = "VACUUM (INDEX_CLEANUP on) t;\nSELECT hybrid_merge('t_k');\n\\sleep 20 ms\n";
my @running;
foreach my $client ([ 'reader', $reader, 3 ], [ 'writer', $writer, 1 ], [ 'vacuum', $vacuum, 1 ])
{
	my ($name, $script, $clients) = @$client;
	push @running, start_pgbench($node, $script, '-M', 'prepared', '-T', $seconds, '-c', $clients);
	$running[-1]->{name} = $name;
}
foreach my $run (@running)
{
	ok(finish_psql($run), "$run->{name}s") or diag $run->{err};
}
is(run($node, 'SELECT * FROM wrong LIMIT 5'), '', 'nothing wrong was found');
my ($lookups, $hits) = split /\|/, run($node, "SELECT hot_lookups, hot_hits FROM hybrid_index_stats('t_k')");
ok($hits > 0 || $lookups < 1000, 'copies were used') or diag "$lookups look-ups, $hits hits";
run($node, "SELECT hybrid_index_check('t_k', true)");

# ---- a standby, and what becomes of it ----

my $standby = new_standby($node, 'standby');
$node->wait_for_catchup($standby);
sub ask_standby
{
	return $standby->safe_psql('postgres', join('; ', @_));
}
my $counts = "SELECT hot_lookups, hot_hits FROM hybrid_index_stats('t_k')";
is(ask_standby('SELECT warm(1, 1000)', $counts), "0\n0|0", 'a standby uses leaves');
run($node, 'UPDATE t SET n = n + 1 WHERE k <= 1000');
run($node, "SELECT hybrid_merge('t_k')");
run($node, 'VACUUM t');
$node->wait_for_catchup($standby);
is(ask_standby('SELECT warm(1, 1000)', $counts), "0\n0|0", 'a standby finds what was replayed');
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
is(ask_standby('SELECT warm(1, 1000)', 'SELECT (SELECT hot_hits FROM hybrid_index_stats($$t_k$$)) > 500'), "0\nt", 'promoted, it has hot copies');
ask_standby('UPDATE t SET n = n + 1 WHERE k <= 1000');
is(ask_standby("SELECT count(hybrid_merge('t_k'))", 'SELECT warm(1, 1000)'), "1\n0", 'merges after the promotion clear copies');
ask_standby("SELECT hybrid_index_check('t_k', true)");
$standby->stop;

# ---- the setting ----

sub memory
{
	return run($node, 'SELECT hot_bytes FROM hybrid_memory');
}

# New sessions have the new value.
sub set_memory
{
	my ($value) = @_;
	run($node, "ALTER SYSTEM SET hybridindex.hot_memory = '$value'");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('hybridindex.hot_memory') = '$value'") or die;
	return;
}

# ---- copies that do not pay ----

# A session that hardly finds copies, and reads few blocks, asks in one of eight
# look-ups, until it finds them again.
run($node, 'CREATE TABLE many (k int8)', 'INSERT INTO many SELECT i FROM generate_series(1, 8000) i',
	'CREATE UNIQUE INDEX many_k ON many USING hybrid (k)', <<EOF);
CREATE FUNCTION look(keys int, n int) RETURNS bigint LANGUAGE plpgsql AS \$\$
DECLARE
	found_rows bigint := 0;
BEGIN
	FOR i IN 1 .. n LOOP
		PERFORM 1 FROM many WHERE k = 1 + i::bigint * 7919 % keys;
		found_rows := found_rows + found::int;
	END LOOP;
	RETURN found_rows;
END \$\$;
EOF
my $of_many = "FROM hybrid_index_stats('many_k')";
my $looking = $node->background_psql('postgres');
is($looking->query_safe('SELECT look(8000, 20000)'), '20000', 'rows of many keys');
cmp_ok(run($node, "SELECT hot_lookups $of_many"), '<', 12000, 'a session stops asking for most keys');
my $found = run($node, "SELECT hot_hits $of_many");
is($looking->query_safe('SELECT look(50, 20000)'), '20000', 'rows of few keys');
cmp_ok(run($node, "SELECT hot_hits $of_many") - $found, '>', 10000, 'it asks again when they are hot');
$looking->quit;

# not if it reads many
run($node, 'CREATE TABLE large (k int8, pad text)', "INSERT INTO large SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i",
	'CREATE UNIQUE INDEX large_k ON large USING hybrid (k)');
run($node, "SELECT count(*) FROM generate_series(1, 10000) i, LATERAL (SELECT 1 FROM large WHERE k = 1 + i * 7919 % 20000 OFFSET 0) x");
cmp_ok(run($node, "SELECT hot_lookups FROM hybrid_index_stats('large_k')"), '>', 9000, 'a session that reads blocks goes on asking');

my $all = 'SELECT warm(1, 2000)';
cmp_ok(memory(), '<=', 128 * 1024, 'no more memory than was set');
my $session = $node->background_psql('postgres');
is($session->query_safe($all), '0', 'look-ups');
set_memory('2MB');
is(run($node, "$all; $all"), "0\n0", 'look-ups after it was changed');
cmp_ok(memory(), '>', 1024 * 1024, 'more memory');
is($session->query_safe($all), '0', 'in a session that had the other table');
cmp_ok(memory(), '>', 1024 * 1024, 'the other table stays gone');
set_memory('0');
is(run($node, "$all; $all"), "0\n0", 'look-ups without hot copies');
is(memory(), '0', 'the memory was given back');
is($session->query_safe($all), '0', 'in a session that had them');
$session->quit;
$node->stop;
done_testing();
