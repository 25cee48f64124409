# Each of two serializable transactions reads what the other writes.  One has to
# fail, whatever happens to the index in between.  The first reads a range of an
# index, the second inserts into it.  They are held in the middle of that, while
# merges and VACUUM replace the leaves whose predicate locks stand for the range.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('held', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
max_prepared_transactions = 5
max_connections = 20
max_worker_processes = 4
max_pred_locks_per_transaction = 10
max_pred_locks_per_relation = 60
EOF
my $points = has_points($node);
my $dir = PostgreSQL::Test::Utils::tempdir();
my $pauses = 0;

run($node, 'CREATE EXTENSION injection_points') if $points;
run($node, <<EOF);
CREATE TABLE p (k numeric, pad text);
CREATE TABLE q (k int);
CREATE FUNCTION pad(i int) RETURNS text LANGUAGE sql AS
	\$\$ SELECT md5(i::text) || md5((-i)::text) || md5((i + 0.5)::text) \$\$;
CREATE FUNCTION locks(rel regclass) RETURNS bigint LANGUAGE sql AS
	\$\$ SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND relation = rel \$\$;
EOF

# The table p, with an index of some leaves.  Ranges and keys of a numeric column
# are locked by leaves, those of an integer one by their first bytes too.
sub fill
{
	my ($rows, $type) = (@_, 'numeric');
	run($node, 'DROP INDEX IF EXISTS p_k', 'TRUNCATE p, q', "ALTER TABLE p ALTER k TYPE $type", 'CREATE INDEX p_k ON p USING hybrid (k) INCLUDE (pad)',
		"INSERT INTO p SELECT i * 30, pad(i) FROM generate_series(1, $rows) i", "SELECT hybrid_merge('p_k')");
	return;
}

# A merge that replaces the leaves around 5000.
sub merge
{
	run($node, "INSERT INTO p SELECT v + i, pad(i) FROM generate_series(0, 29) i, (VALUES (4000), (5010)) v (v)",
		"SELECT hybrid_merge('p_k')");
	return;
}

# Lines of a script where it waits until it is told to go on.
sub pause
{
	my $name = "$dir/" . $pauses++;
	return ($name, "\\! touch $name; for i in \$(seq 1200); do [ -e $name.on ] && break; sleep 0.05; done\n");
}

sub go_on
{
	my ($name) = @_;
	append_to_file("$name.on", '');
	return;
}

my $settings = "SET enable_seqscan = off; SET enable_bitmapscan = off;\n";
my $range = 'SELECT k FROM p WHERE k BETWEEN 5001 AND 5009';
my $insertion = "INSERT INTO p VALUES (5005, 'new')";

sub attach
{
	my ($point) = @_;
	return defined $point
	  ? "SELECT injection_points_set_local(); SELECT injection_points_attach('hybrid-$point', 'wait');\n"
	  : '';
}

sub held
{
	my ($session, $point) = @_;
	held_at($node, $point, $session) or fail("held at $point: $session->{out} $session->{err}");
	return;
}

# The reader of the range; it stops at a point, or having read.
sub start_reader
{
	my ($read, $point) = @_;
	my ($name, $lines) = defined $point ? (undef, '') : pause();
	my $session = start_psql($node, $settings, attach($point),
		"BEGIN ISOLATION LEVEL SERIALIZABLE;\n$read;\n${lines}INSERT INTO q VALUES (1);\nCOMMIT;\n");
	$session->{pause} = $name;
	$session->{point} = $point;
	defined $point ? held($session, $point) : wait_file($name);
	return $session;
}

# The inserter; it stops when it has its snapshot, and then perhaps at a point.
sub start_inserter
{
	my ($insert, $point) = @_;
	my ($name, $lines) = pause();
	my $session = start_psql($node, $settings, attach($point),
		"BEGIN ISOLATION LEVEL SERIALIZABLE;\nSET LOCAL enable_seqscan = on;\nSELECT count(*) FROM q;\n$lines$insert;\nCOMMIT;\n");
	$session->{pause} = $name;
	wait_file($name);
	return $session;
}

# It goes on to its end: does it succeed?
sub let_end
{
	my ($session) = @_;
	defined $session->{point} ? leave_point($node, $session->{point}) : go_on($session->{pause});
	return finish_psql($session) ? 1 : 0;
}

sub one_fails
{
	my ($what, $successes, @sessions) = @_;
	is($successes, 1, "$what: one of the two fails");
	my @errors = grep { $_ ne '' } map { $_->{err} } @sessions;
	like($errors[0], qr/could not serialize access/, "$what: by a serialization failure") if @errors;
	return;
}

# ---- everywhere ----

# A transaction that goes on for long does not fill the server's table of locks with
# copies: in the end they are one lock on the table.  What it has read before, and
# reads again, still counts.
{
	fill(0);
	run($node, "INSERT INTO p SELECT i * 60, pad(i) || pad(-i) || pad(7 * i) || pad(-7 * i) FROM generate_series(1, 10000) i", "SELECT hybrid_merge('p_k')");
	my $inserter = start_inserter($insertion);
	my $read = join '', map { "SELECT k FROM p WHERE k BETWEEN $_ AND $_ + 8;\n" } map { 5001 + 24000 * $_ } 0 .. 24;
	my ($name, $lines) = pause();
	my $reader = start_psql($node, $settings,
		"BEGIN ISOLATION LEVEL SERIALIZABLE;\n$read${lines}${read}INSERT INTO q VALUES (1);\nCOMMIT;\n");
	$reader->{pause} = $name;
	wait_file($name);
	my $most = 0;
	my $on_table = 0;
	foreach my $round (1 .. 60)
	{
		run($node, "INSERT INTO p SELECT $round + i * 750, pad(i) FROM generate_series(1, 800) i", "SELECT hybrid_merge('p_k')");
		my $locks = $node->safe_psql('postgres', "SELECT locks('p_k')");
		$most = $locks if $locks > $most;
		$on_table = $node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND relation = 'p'::regclass AND page IS NULL");
		last if $on_table;
	}
	cmp_ok($most, '>', 30, "locks are copied: $most");
	is($on_table, 1, 'they become one lock on the table');
	one_fails('locks on the table', let_end($reader) + let_end($inserter), $reader, $inserter);
}

# While a transaction goes on, leaves come to blocks that held leaves it has locked.
# They are not locked for that: what it has not read can be inserted.
{
	fill(3000);
	my $inserter = start_inserter("INSERT INTO p VALUES (80005, 'new')");
	my $reader = start_reader($range);
	foreach my $round (1 .. 10)
	{
		run($node, "INSERT INTO p SELECT $round + i * 300, pad(i) FROM generate_series(1, 300) i", "SELECT hybrid_merge('p_k')");
	}
	is(let_end($reader) + let_end($inserter), 2, 'blocks are used again: both succeed');
}

# Three leaves become one, and the server has room for two more locks: for one that is
# on the first leaf, and for the first of two on the second.  It removes both when the
# last has no room.  Then it has room for the one that is on the third leaf.
{
	my @tables = map { "z$_" } 1 .. 24;
	fill(480);
	run($node, 'DELETE FROM p WHERE k BETWEEN 300 AND 14100 AND k NOT BETWEEN 7100 AND 7300',
		map { "CREATE TABLE $_ WITH (fillfactor = 10) AS SELECT i, repeat(md5(i::text), 11) FROM generate_series(1, 50) i" } @tables);
	cmp_ok($node->safe_psql('postgres', "SELECT leaf_pages FROM hybrid_index_stats('p_k')"), '>', 2, 'there are several leaves');
	my $inserter = start_inserter("INSERT INTO p VALUES (45, 'new')");
	my $reader = start_reader('SELECT k FROM p WHERE k BETWEEN 40 AND 50');

	# these sessions only read
	my $start = sub {
		my ($name, $lines) = pause();
		my $session = start_psql($node, $settings, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;\n@_;\n${lines}ROLLBACK;\n");
		$session->{pause} = $name;
		wait_file($name);
		return $session;
	};
	my @others = map { $start->("SELECT k FROM p WHERE k BETWEEN $_ AND $_ + 9") } 7190, 7190, 14390;
	my $room = $start->(q{SELECT i FROM z24 WHERE ctid = '(0,1)'; SELECT i FROM z24 WHERE ctid = '(0,2)'});
	push @others, $start->(<<'EOF') foreach 1 .. 4;
DO $$
BEGIN
	FOR i IN 1 .. 23 LOOP
		FOR page IN 0 .. 24 LOOP
			EXECUTE format('SELECT i FROM z%s WHERE ctid = ANY (ARRAY[''(%s,1)'', ''(%s,2)'']::tid[])', i, page, page);
		END LOOP;
	END LOOP;
EXCEPTION WHEN out_of_memory THEN
END $$
EOF
	my $locks = sub { $node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock'") };
	my $all = $locks->();
	let_end($room);
	is($locks->(), $all - 2, 'there is room for two locks');
	run($node, 'VACUUM p', "INSERT INTO p VALUES (10, 'merged'), (14300, 'merged')", "SELECT hybrid_merge('p_k')");
	is($node->safe_psql('postgres', "SELECT leaf_pages FROM hybrid_index_stats('p_k')"), '1', 'one leaf is left');
	one_fails('no room for a lock', let_end($reader) + let_end($inserter), $reader, $inserter);
	let_end($_) foreach @others;
	run($node, 'DROP TABLE ' . join ', ', @tables);
}

# The second of two nodes loses its first leaves, of three entries each, and then the
# first node joins it: the node's first leaf goes on to stand for their range.
{
	run($node, 'TRUNCATE q', 'CREATE TABLE j (k numeric, pad bytea)', "INSERT INTO j SELECT i * 10, string_agg(decode(md5(i || '.' || n), 'hex'), '') FROM generate_series(1, 1500) i, generate_series(1, 160) n GROUP BY i",
		'CREATE INDEX j_k ON j USING hybrid (k) INCLUDE (pad)', 'DELETE FROM j WHERE k > 8700 AND k <= 10800', 'VACUUM j', "SELECT hybrid_merge('j_k')");
	is($node->safe_psql('postgres', "SELECT inner_pages FROM hybrid_index_stats('j_k')"), '3', 'there are two nodes');
	run($node, 'DELETE FROM j WHERE k < 8200');
	my $inserter = start_inserter('INSERT INTO j VALUES (10205)');
	my $reader = start_reader('SELECT k FROM j WHERE k BETWEEN 10201 AND 10209');
	run($node, 'VACUUM j', "SELECT hybrid_merge('j_k')");
	is($node->safe_psql('postgres', "SELECT inner_pages FROM hybrid_index_stats('j_k')"), '1', 'one is left');
	one_fails('joined nodes', let_end($reader) + let_end($inserter), $reader, $inserter);
}

# VACUUM moves leaves to the beginning of the file.
{
	fill(6000);
	run($node, 'DELETE FROM p WHERE k % 900 <> 0 AND (k < 4900 OR k > 5100)');
	my $reader = start_reader($range);
	my $inserter = start_inserter($insertion);
	run($node, 'VACUUM p', 'VACUUM p');
	my $locks = $node->safe_psql('postgres', "SELECT locks('p_k')");
	cmp_ok($locks, '>=', 2, "VACUUM has moved leaves: $locks locks");
	one_fails('moved leaves', let_end($reader) + let_end($inserter), $reader, $inserter);
}

# The index gets dictionaries, which change the bytes of all keys, when the reader
# has committed.
{
	run($node, 'CREATE TABLE s (k text COLLATE "C")', 'CREATE INDEX s_k ON s USING hybrid (k text_hope_ops)');
	run($node, "INSERT INTO s SELECT 'user.' || i || '\@example.com' FROM generate_series(1, 100) i", "SELECT hybrid_merge('s_k')");
	foreach my $read ("SELECT k FROM s WHERE k BETWEEN 'user.5000' AND 'user.5001'", "SELECT k FROM s WHERE k = 'user.50005'")
	{
		run($node, "TRUNCATE s, q", "INSERT INTO s SELECT 'user.' || i || '\@example.com' FROM generate_series(1, 100) i");
		my $inserter = start_inserter("INSERT INTO s VALUES ('user.50005')");
		my $reader = start_reader($read);
		my $successes = let_end($reader);
		is($successes, 1, 'the reader commits');
		run($node, "INSERT INTO s SELECT 'user.' || i || '\@example.com' FROM generate_series(101, 4000) i", "SELECT hybrid_merge('s_k')");
		is($node->safe_psql('postgres', "SELECT learned FROM hybrid_dictionary_info('s_k')"), 't', 'dictionaries were learned');
		one_fails('learned dictionaries', $successes + let_end($inserter), $reader, $inserter);
	}
}

# A prepared transaction keeps what it has read.
{
	fill(1000);
	my $inserter = start_inserter($insertion);
	run($node, "$settings; BEGIN ISOLATION LEVEL SERIALIZABLE; $range; INSERT INTO q VALUES (1); PREPARE TRANSACTION 'reader'");
	merge();
	my $success = let_end($inserter);
	run($node, "COMMIT PREPARED 'reader'");
	is($success, 0, 'a prepared transaction: the other one fails');
}

# Parallel workers lock what they read.
{
	fill(20000);
	my $inserter = start_inserter($insertion);
	my $reader = start_reader(<<EOF);
SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_index_scan_size = 0;
SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 3; SET LOCAL enable_indexonlyscan = on;
SET LOCAL parallel_leader_participation = off;
SELECT count(*) FROM p WHERE k BETWEEN 3000 AND 200000
EOF
	merge();
	one_fails('parallel scan', let_end($reader) + let_end($inserter), $reader, $inserter);
}

# ---- held at points ----

if (!$points)
{
	diag 'SKIPPED: this server has no injection points, nothing was held at one';
	no_crash($node, 'nothing crashed');
	$node->stop;
	done_testing();
	exit;
}

my $key = 'SELECT k FROM p WHERE k = 5005';
my @reads = ([ 'numeric', $range, 'lock-leaf' ], [ 'numeric', $range, 'locked-leaf' ],
	[ 'int', $key, 'lock-key' ], [ 'int', $range, 'lock-key' ]);

# The reader is held before it locks, or before it reads the log, while the other
# one does all it has to do, with merges before, after or not at all.
foreach my $case (@reads)
{
	my ($type, $read, $point) = @$case;
	foreach my $merges ('no merge', 'before', 'after')
	{
		fill(1000, $type);
		my $inserter = start_inserter($insertion);
		my $reader = start_reader($read, $point);
		merge() if $merges eq 'before';
		my $successes = let_end($inserter);
		merge() if $merges eq 'after';
		one_fails("reader held at $point, $type, $merges", $successes + let_end($reader), $reader, $inserter);
	}
}

# The inserter is held before it asks for locks on the key, or knowing the leaf that
# it will ask for, while a merge replaces that.
foreach my $point ('conflict-in', 'conflict-leaf')
{
	foreach my $case ([ 'numeric', $range ], [ 'int', $range ], [ 'int', $key ], [ 'numeric', $range, 1 ], [ 'int', $key, 1 ])
	{
		my ($type, $read, $meanwhile) = @$case;
		fill(1000, $type);
		my $reader = $meanwhile ? undef : start_reader($read);
		my $inserter = start_inserter($insertion, $point);
		go_on($inserter->{pause});
		held($inserter, $point);
		merge();
		$reader //= start_reader($read);
		merge();
		$inserter->{point} = $point;
		one_fails("inserter held at $point, $type, the other reads " . ($meanwhile ? 'meanwhile' : 'before'), let_end($inserter) + let_end($reader), $reader, $inserter);
	}
}

# A step is held before it hands the locks over, while the reader locks the leaf
# that goes.
foreach my $read ($range, 'SELECT k FROM p WHERE k BETWEEN 5001 AND 5009 ORDER BY k DESC')
{
	fill(1000);
	run($node, "INSERT INTO p SELECT v + i, pad(i) FROM generate_series(0, 29) i, (VALUES (4000), (5010)) v (v)");
	my $step = start_psql($node, attach('step-written'), "SELECT hybrid_merge('p_k');\n");
	$step->{point} = 'step-written';
	held($step, 'step-written');
	my $inserter = start_inserter($insertion);
	my $reader = start_reader($read);
	is(let_end($step), 1, 'the step goes on') or diag $step->{err};
	one_fails('step held before it hands over', let_end($inserter) + let_end($reader), $reader, $inserter);
}

# A reader has found its version current, and is to lock the leaf, when a step goes
# on to replace it.  The step hands the lock over: it waits for the reader, where it
# would have found no lock before.
foreach my $read ($range, 'SELECT k FROM p WHERE k BETWEEN 5001 AND 5009 ORDER BY k DESC')
{
	fill(1000);
	run($node, "INSERT INTO p SELECT v + i, pad(i) FROM generate_series(0, 29) i, (VALUES (4000), (5010)) v (v)");
	my $step = start_psql($node, attach('step-written'), attach('step-switch'), "SELECT hybrid_merge('p_k');\n");
	held($step, 'step-written');
	my $inserter = start_inserter($insertion);
	my ($name, $lines) = pause();
	my $reader = start_psql($node, $settings, attach('lock-current'),
		"BEGIN ISOLATION LEVEL SERIALIZABLE;\n$read;\n${lines}INSERT INTO q VALUES (1);\nCOMMIT;\n");
	$reader->{pause} = $name;
	held($reader, 'lock-current');
	leave_point($node, 'step-written');
	$node->poll_query_until('postgres', <<EOF) or die;
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT hybrid_merge%' AND
	(wait_event = 'hybrid-step-switch' OR wait_event_type IN ('LWLock', 'Buffer')))
EOF
	leave_point($node, 'lock-current');
	wait_file($name);
	held($step, 'step-switch');
	$step->{point} = 'step-switch';
	is(let_end($step), 1, 'a step goes on when a reader has locked a leaf') or diag $step->{err};
	one_fails('reader held before it locks a leaf of the current version', let_end($inserter) + let_end($reader), $reader, $inserter);
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
