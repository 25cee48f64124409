
# The membership filter of a unique index: while it is made, grows, is given up or made
# anew, no duplicate gets in and no new key is refused.  Sessions and the worker are held
# at each step where the server has injection points (./dev pg 17, ./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

# before 18 a client's first statement may be one with ON CONFLICT only if the library is there
my $node = new_node('membership', "session_preload_libraries = 'hybridindex'\n");
my $points = has_points($node);

# Keys in random order, and keys that the index lacks or has twice.
$node->safe_psql('postgres', <<'EOF');
CREATE FUNCTION fill(name text, first int, last int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %I SELECT hashint8extended(g, 0) FROM generate_series(%s, %s) g', name, first, last);
END $$;
CREATE FUNCTION wrong(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	again bigint;
	twice bigint;
	key text;
BEGIN
	-- without ON CONFLICT, which looks for the key before it inserts
	FOR key IN EXECUTE format('SELECT k::text FROM %I WHERE k IS NOT NULL ORDER BY random() LIMIT 200', name) LOOP
		BEGIN
			EXECUTE format('INSERT INTO %I VALUES (%L)', name, key);
			RETURN key || ' gets in again';
		EXCEPTION WHEN unique_violation THEN
		END;
	END LOOP;
	EXECUTE format('WITH i AS (INSERT INTO %1$I SELECT k FROM %1$I WHERE k IS NOT NULL ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM i', name) INTO again;
	EXECUTE format('SELECT count(k) - count(DISTINCT k) FROM %I', name) INTO twice;
	RETURN again || '|' || twice;
END $$;
EOF

sub add { run($node, "SELECT fill('$_[0]', $_[1], $_[2])"); return; }

sub make_table
{
	my ($name, $rows) = @_;

	run($node, "CREATE TABLE $name (k bigint); CREATE UNIQUE INDEX ${name}_k ON $name USING hybrid (k)");
	add($name, 1, $rows // 20000);
	return;
}

# Numbers whose keys no table has.
my $spare = 10_000_000;

sub add_spare
{
	my ($name, $rows) = @_;

	add($name, $spare, $spare + $rows - 1);
	$spare += $rows;
	return;
}

# A worker is asked when a session fills a page.
sub has_filter
{
	my ($name, $what) = @_;
	my $found = 'f';

	foreach (1 .. 300)
	{
		$found = stats($node, "${name}_k", 'membership_bytes > 0 AND membership_making_bytes = 0');
		last if $found eq 't';
		add_spare($name, 1000);
		select(undef, undef, undef, 0.1);
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($found, 't', $what);
}

sub is_right
{
	my ($name, $what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(value_of($node, "wrong('$name')"), '0|0', "$what: no key gets in twice");
	is(error_of($node, "SELECT fill('$name', $spare, $spare + 99)"), '', "$what: new keys get in");
	$spare += 100;
	is(error_of($node, "SELECT hybrid_index_check('${name}_k', true)"), '', "$what: the check finds nothing");
	return;
}

# ---- it is made, answers, and grows ----

make_table('a');
has_filter('a', 'a worker makes a filter');
my $denied = stats($node, 'a_k', 'unique_denied');
add('a', 30001, 33000);
cmp_ok(stats($node, 'a_k', 'unique_denied') - $denied, '>=', 2000, 'it denies new keys');
cmp_ok(value_of($node, 'membership_bytes FROM hybrid_memory'), '>', 0, 'its memory is shown');
like(error_of($node, 'INSERT INTO a SELECT k FROM a LIMIT 1'), qr/duplicate key value violates unique constraint "a_k"/, 'a duplicate is an error');
is_right('a', 'made');

my $bytes = stats($node, 'a_k', 'membership_bytes');
foreach my $round (1 .. 300)
{
	last if stats($node, 'a_k', "membership_bytes > 4 * $bytes") eq 't';
	add_spare('a', $round <= 30 ? 10000 : 500);
	select(undef, undef, undef, 0.1);
}
is(stats($node, 'a_k', "membership_bytes > 4 * $bytes"), 't', 'it grows');
is_right('a', 'grown');
run($node, "SELECT hybrid_merge('a_k')");
is_right('a', 'merged');

# ---- other ways to insert ----

run($node, <<EOF);
BEGIN;
SAVEPOINT s;
INSERT INTO a VALUES (-1);
ROLLBACK TO s;
INSERT INTO a VALUES (-1);
COMMIT;
BEGIN;
INSERT INTO a VALUES (-2);
ROLLBACK;
INSERT INTO a VALUES (-2);
DELETE FROM a WHERE k = -2;
INSERT INTO a VALUES (-2), (-3), (-4);
INSERT INTO a VALUES (-4), (-5) ON CONFLICT DO NOTHING;
INSERT INTO a VALUES (NULL), (NULL);
EOF
like(error_of($node, 'INSERT INTO a VALUES (-6), (-7), (-6)'), qr/duplicate key/, 'twice in a statement');
is(error_of($node, 'INSERT INTO a VALUES (-6)'), '', 'the key of a failed statement gets in');
is_right('a', 'subtransactions, rows of one statement, NULLs');

make_table('t');
has_filter('t', 'a table to be written anew');
is(error_of($node, "BEGIN; TRUNCATE t; SELECT fill('t', 1, 100); COMMIT; SELECT fill('t', 101, 20000)"), '', 'TRUNCATE: old keys get in');
has_filter('t', 'TRUNCATE: a new filter');
is_right('t', 'TRUNCATE');
is(error_of($node, "BEGIN; TRUNCATE t; SELECT fill('t', 50001, 50100); ROLLBACK"), '', 'TRUNCATE is undone');
is_right('t', 'TRUNCATE undone');
is(error_of($node, "BEGIN; REINDEX INDEX t_k; SELECT fill('t', 50001, 50100); ROLLBACK; SELECT fill('t', 50001, 50100)"), '', 'REINDEX is undone');
is_right('t', 'REINDEX undone');
run($node, 'REINDEX INDEX t_k');
is_right('t', 'REINDEX');
has_filter('t', 'REINDEX: a new filter');
run($node, 'REINDEX INDEX CONCURRENTLY t_k');
is_right('t', 'REINDEX CONCURRENTLY');
run($node, "CALL hybrid_revert_concurrently('t_k')", "CALL hybrid_convert_concurrently('t_k')");
has_filter('t', 'converted: a new filter');
is_right('t', 'converted');

# keys get other bytes when a merge makes a dictionary
sub merge_floor
{
	$node->safe_psql('postgres', 'ALTER SYSTEM ' . (@_ ? "SET hybridindex.merge_floor = $_[0]" : 'RESET hybridindex.merge_floor'));
	$node->reload;
	return;
}

merge_floor(1000000);
run($node, 'CREATE TABLE l (k text COLLATE "C"); CREATE UNIQUE INDEX l_k ON l USING hybrid (k text_hope_ops)');
run($node, q(INSERT INTO l SELECT 'key.' || md5(g::text) || '@example.com' FROM generate_series(1, 9000) g));
has_filter('l', 'an index that has no dictionary yet');
isnt(value_of($node, "learned FROM hybrid_dictionary_info('l_k')"), 't', 'it has none');
run($node, "SELECT hybrid_merge('l_k')");
is(value_of($node, "learned AND scheme <> 'none' FROM hybrid_dictionary_info('l_k')"), 't', 'a merge makes one');
is_right('l', 'a dictionary');
has_filter('l', 'a dictionary: a new filter');
is_right('l', 'a dictionary and a new filter');

# entries in several levels, which only servers with assertions make of so few
if ($node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on')
{
	make_table('v', 4000);
	foreach my $part (1, 2)
	{
		run($node, "SET hybridindex.test_levels = 3; SELECT hybrid_merge('v_k')");
		add('v', 10000 * $part, 10000 * $part + 2999);
	}
	cmp_ok(stats($node, 'v_k', 'levels'), '>', 1, 'an index with levels');
	has_filter('v', 'levels: a filter');
	cmp_ok(stats($node, 'v_k', 'levels'), '>', 1, 'it still has levels');
	is_right('v', 'levels');
}
merge_floor();

# constraints that are checked later, and clients at once
run($node, 'CREATE TABLE d (k bigint, CONSTRAINT d_k UNIQUE (k) WITH (access_method = hybrid) DEFERRABLE INITIALLY DEFERRED)');
add('d', 1, 20000);
has_filter('d', 'a deferred constraint');
like(error_of($node, 'BEGIN; INSERT INTO d SELECT k FROM d LIMIT 1; COMMIT'), qr/duplicate key/, 'deferred: an error at commit');
run($node, 'BEGIN; INSERT INTO d VALUES (-1), (-1); DELETE FROM d WHERE ctid = (SELECT max(ctid) FROM d WHERE k = -1); COMMIT');
is(value_of($node, 'count(*) FROM d WHERE k = -1'), 1, 'deferred: a conflict that has gone');
like(error_of($node, 'INSERT INTO d VALUES (-1)'), qr/duplicate key/, 'deferred: and one that has not');

make_table('c');
has_filter('c', 'a table for many clients');
my $clients = start_pgbench($node, <<'EOF', '-c', 8, '-j', 2, '-T', 8);
\set k random(1, 100000)
INSERT INTO c VALUES (:k), (-:k) ON CONFLICT DO NOTHING;
EOF
foreach (1 .. 4)
{
	add_spare('c', 20000);
	run($node, "SELECT hybrid_merge('c_k')");
}
ok(finish_psql($clients), 'clients at once') or diag $clients->{err};
is_right('c', 'clients');

# ---- the end of the server, and of memory ----

$node->stop('immediate');
$node->start;
is(stats($node, 'a_k', 'membership_bytes'), 0, 'the filter goes with the server');
is_right('a', 'after a crash');
has_filter('a', 'it is made anew');
is_right('a', 'made anew');

$node->safe_psql('postgres', "ALTER SYSTEM SET hybridindex.dynamic_memory = '128kB'");
$node->restart;
add_spare('a', 2000);
select(undef, undef, undef, 1);
is(stats($node, 'a_k', 'membership_bytes + membership_making_bytes'), 0, 'one that does not fit its share is not made');
is_right('a', 'without memory');

# A slot whose filter goes with it, when another index takes its place: there is memory
# for 96.
$node->safe_psql('postgres', "ALTER SYSTEM SET hybridindex.dynamic_memory = '192kB'");
$node->restart;
make_table('s', 9000);
has_filter('s', 'a slot that changes hands');
run($node, <<'EOF');
DO $$ BEGIN
	FOR i IN 1 .. 120 LOOP
		EXECUTE format('CREATE TABLE e%1$s AS SELECT g AS k FROM generate_series(1, 100) g; CREATE UNIQUE INDEX e%1$s_k ON e%1$s USING hybrid (k)', i);
	END LOOP;
END $$;
EOF
# logs of several pages, which are not read in place, and are not merged: an index with
# an empty log loses its slot first
run($node, 'SET hybridindex.background_merge = off; SET hybridindex.merge_floor = 1000000; SET enable_seqscan = off; ' . join '', map { "INSERT INTO e$_ SELECT generate_series(1001, 2000); SELECT k FROM e$_ WHERE k < 3;" } 1 .. 120);
is(stats($node, 's_k', 'membership_bytes'), 0, 'the filter goes with the slot');
is(join(' ', grep { error_of($node, "INSERT INTO e$_ VALUES (50)") !~ /duplicate key/ } 1 .. 120), '', 'who has that slot now has none');

$node->safe_psql('postgres', 'ALTER SYSTEM RESET hybridindex.dynamic_memory');
$node->reload;
has_filter('a', 'one that fits is');
is_right('a', 'with memory again');

# Filters of indexes that are gone: they make room for others.
$node->safe_psql('postgres', "ALTER SYSTEM SET hybridindex.dynamic_memory = '1MB'");
$node->restart;
foreach my $i (1 .. 4)
{
	run($node, 'DROP TABLE IF EXISTS e');
	make_table('e', 40000);
	has_filter('e', "table $i has a filter") or last;
}
is_right('e', 'indexes that were dropped');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET hybridindex.dynamic_memory');
$node->restart;

if (!$points)
{
	no_crash($node, 'nothing crashed');
	done_testing();
	exit;
}

# ---- held sessions ----

$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');

sub worker_is_held
{
	my ($point) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker' AND wait_event = 'hybrid-$point'"),
		"$point: a worker is held");
	return;
}

# An inserter that is about to append when a filter is begun.  The filter answers only
# when that entry is in it.
make_table('h', 15000);
has_filter('h', 'a table for held sessions');
run($node, 'REINDEX INDEX h_k');
attach_point($node, 'membership-begins');
add_spare('h', 2000);
worker_is_held('membership-begins');
my $inserter = start_psql($node, <<EOF);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-append', 'wait');
INSERT INTO h VALUES (-1);
EOF
held_at($node, 'append', $inserter) or die 'no inserter is held';
release_point($node, 'membership-begins');
select(undef, undef, undef, 1);
is(stats($node, 'h_k', 'membership_bytes'), 0, 'a filter waits for an inserter that has not appended');
run($node, "SELECT injection_points_detach('hybrid-append'), injection_points_wakeup('hybrid-append')");
ok(finish_psql($inserter), 'it appends') or diag $inserter->{err};
has_filter('h', 'then it is made');
like(error_of($node, 'INSERT INTO h VALUES (-1)'), qr/duplicate key/, 'and has the key');

# Memory grows after the filter has said no, before it is told of the key.
run($node, 'CREATE TABLE grow (k bigint); CREATE INDEX grow_k ON grow USING hybrid (k)');
$inserter = start_psql($node, <<EOF);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-membership-denied', 'wait');
INSERT INTO h VALUES (-2);
EOF
held_at($node, 'membership-denied', $inserter) or die 'no inserter is held';
my $segments = value_of($node, 'segments FROM hybrid_memory');
foreach my $part (1 .. 20)
{
	run($node, "SET hybridindex.background_merge = off; SET enable_seqscan = off; SELECT fill('grow', $part * 100000, $part * 100000 + 50000); SELECT count(*) FROM grow WHERE k > 0");
	last if value_of($node, 'segments FROM hybrid_memory') > $segments;
}
cmp_ok(value_of($node, 'segments FROM hybrid_memory'), '>', $segments, 'memory grows after a no');
run($node, "SELECT injection_points_detach('hybrid-membership-denied'), injection_points_wakeup('hybrid-membership-denied')");
ok(finish_psql($inserter), 'and the key gets in') or diag $inserter->{err};
like(error_of($node, 'INSERT INTO h VALUES (-2)'), qr/duplicate key/, 'once');

# Keys that come when it is begun, and between two looks of the worker, while entries
# move to other levels.
foreach my $point ('membership-begun', 'membership-reads', 'membership-read')
{
	run($node, 'REINDEX INDEX h_k');
	attach_point($node, $point);
	add_spare('h', 2000);
	worker_is_held($point);
	add_spare('h', 500);
	is(stats($node, 'h_k', 'membership_bytes'), 0, "$point: it does not answer yet");
	run($node, "SET hybridindex.background_merge = off; SELECT hybrid_merge('h_k')");
	run($node, 'INSERT INTO h SELECT k + 1 FROM (SELECT k FROM h ORDER BY k LIMIT 500) s ON CONFLICT DO NOTHING');
	is_right('h', "$point: held");
	release_point($node, $point);
	has_filter('h', "$point: it is made");
	is_right('h', "$point: made");
}

# A worker that ends half way: another one goes on.
run($node, 'REINDEX INDEX h_k');
attach_point($node, 'membership-reads');
add_spare('h', 2000);
worker_is_held('membership-reads');
run($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker'");
leave_point($node, 'membership-reads');
has_filter('h', 'another worker goes on');
is_right('h', 'a worker that ended');

# An error at each point: the worker that comes then makes it.
foreach my $point ('membership-begins', 'membership-begun', 'membership-reads', 'membership-read')
{
	my $from = -s $node->logfile;

	run($node, 'REINDEX INDEX h_k', "SELECT injection_points_attach('hybrid-$point', 'error')");
	add_spare('h', 2000);
	ok($node->wait_for_log(qr/error triggered for injection point hybrid-$point/, $from), "$point: an error");
	is_right('h', "$point: after an error");
	run($node, "SELECT injection_points_detach('hybrid-$point')");
	has_filter('h', "$point: another worker makes it");
	is_right('h', "$point: made after an error");
}

# TRUNCATE while it is made.
run($node, 'REINDEX INDEX h_k');
attach_point($node, 'membership-read');
add_spare('h', 2000);
worker_is_held('membership-read');
my $truncate = start_psql($node, "TRUNCATE h; SELECT fill('h', 1, 15000);");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'");
release_point($node, 'membership-read');
ok(finish_psql($truncate), 'TRUNCATE while it is made') or diag $truncate->{err};
has_filter('h', 'TRUNCATE: it is made anew');
is_right('h', 'TRUNCATE while it was made');

no_crash($node, 'nothing crashed');
done_testing();
