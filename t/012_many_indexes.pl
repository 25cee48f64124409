
# A thousand indexes have entries in their logs, in two databases.  Each is read and
# inserted into as cheaply as when there are ten.  With too little memory short logs
# are read in place, indexes with longer logs lose their slots, and each answer is
# still right.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('many', <<EOF);
hybridindex.merge_floor = 1000000
hybridindex.background_merge = off
shared_buffers = 64MB
max_locks_per_transaction = 512
EOF

# Twenty unique indexes on each of 25 tables.
my $tables = <<'EOF';
CREATE EXTENSION hybridindex;
DO $$
BEGIN
	FOR t IN 1 .. 25 LOOP
		EXECUTE format('CREATE TABLE m%s (%s)', t, (SELECT string_agg(format('c%s int4', c), ', ') FROM generate_series(1, 20) c));
		FOR c IN 1 .. 20 LOOP
			EXECUTE format('CREATE UNIQUE INDEX ON m%s USING hybrid (c%s)', t, c);
		END LOOP;
		EXECUTE format('INSERT INTO m%s SELECT %s FROM generate_series(1, 400) g', t, (SELECT string_agg('g', ', ') FROM generate_series(1, 20)));
	END LOOP;
END $$;

-- buffers that a statement reads, when it is planned
CREATE FUNCTION buffers(statement text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' || statement INTO plan;
	RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::int + (plan->0->'Plan'->>'Shared Read Blocks')::int;
END $$;

-- the most that reading by one of the indexes takes
CREATE FUNCTION most_read(tables int) RETURNS int LANGUAGE sql AS $$
	SELECT max(buffers(format('SELECT c1 FROM m%s WHERE c%s = 7', t, c))) FROM generate_series(1, tables) t, generate_series(1, 20) c
$$;

-- the most that inserting a row takes: the table, and twenty indexes
CREATE FUNCTION most_inserted(tables int, k int) RETURNS int LANGUAGE sql AS $$
	SELECT max(buffers(format('INSERT INTO m%s VALUES (%s)', t, (SELECT string_agg(k::text, ', ') FROM generate_series(1, 20))))) FROM generate_series(1, tables) t
$$;
EOF
my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;';
my @databases = ('many1', 'many2');

foreach my $db (@databases)
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, $tables);
}

# Tables q1, q2, ... of the database, each with an index whose entries are all in the log.
sub make_small_indexes
{
	my ($db, $n) = @_;

	$node->safe_psql($db, <<EOF);
SET hybridindex.background_merge = off;
DO \$\$
BEGIN
	FOR t IN 1 .. $n LOOP
		EXECUTE format('CREATE TABLE q%s (k int)', t);
		EXECUTE format('CREATE INDEX q%s_k ON q%s USING hybrid (k)', t, t);
		EXECUTE format('INSERT INTO q%s SELECT g FROM generate_series(1, 1500) g', t);
	END LOOP;
END \$\$;
EOF
	return;
}

# ---- a few, and then all ----
my $read_few = $node->safe_psql('many1', "$settings SELECT most_read(1) < 0; SELECT most_read(1)");
my $inserted_few = $node->safe_psql('many1', "$settings SELECT most_inserted(1, 1001) < 0; SELECT most_inserted(1, 1002)");
s/^f\n// foreach $read_few, $inserted_few;
cmp_ok($read_few, '<=', 5, "a point query by one of few indexes reads $read_few buffers");

# twice over all of them in both databases, and then once more
foreach my $db (@databases, @databases)
{
	$node->safe_psql($db, "$settings SELECT most_read(25)");
}
foreach my $db (@databases)
{
	# what a session reads at first is of no interest
	my $read = $node->safe_psql($db, "$settings SELECT most_read(25) < 0; SELECT most_read(25)");
	my $inserted = $node->safe_psql($db, "$settings SELECT most_inserted(25, 2001) < 0; SELECT most_inserted(25, 2002)");
	s/^f\n// foreach $read, $inserted;
	is($read, $read_few, "$db: a point query reads as much with a thousand indexes in use");
	cmp_ok($inserted, '<=', $inserted_few + 1, "$db: so does a row inserted ($inserted, $inserted_few before)");
}
is($node->safe_psql('many1', "SELECT count(*) FROM hybrid_indexes WHERE tree_memory = 0"), 0, 'each index has its trees in shared memory');

# ---- less memory than they need, and short logs ----
$node->append_conf('postgresql.conf', "hybridindex.dynamic_memory = 1MB\nhybridindex.background_merge = on");
$node->restart;
my $key = 3001;
foreach my $db (@databases, @databases)
{
	my $read = $node->safe_psql($db, "$settings SELECT most_read(25) < 0; SELECT most_read(25)");
	my $inserted = $node->safe_psql($db, "$settings SELECT most_inserted(25, $key) < 0; SELECT most_inserted(25, $key + 1)");
	$key += 2;
	s/^f\n// foreach $read, $inserted;
	cmp_ok($read, '<=', $read_few + 1, "$db: a point query reads $read buffers with little memory");
	cmp_ok($inserted, '<=', $inserted_few + 20, "$db: a row inserted reads one more of each index at most ($inserted)");
	is($node->safe_psql($db, 'SELECT sum(merges) FROM hybrid_indexes'), 0, "$db: nothing had to be merged");
}
cmp_ok($node->safe_psql('postgres', "CREATE EXTENSION IF NOT EXISTS hybridindex; SELECT indexes FROM hybrid_memory"), '<', 100, 'few indexes have slots');

# ---- and longer ones ----
$node->append_conf('postgresql.conf', 'hybridindex.dynamic_memory = 64MB');
$node->restart;
foreach my $db (@databases)
{
	$node->safe_psql($db, join(';', map
		{ "INSERT INTO m$_ SELECT " . join(', ', ('g') x 20) . ' FROM generate_series(10001, 10700) g' } 1 .. 25));
}
$node->append_conf('postgresql.conf', 'hybridindex.dynamic_memory = 1MB');
$node->restart;
foreach my $round (1 .. 2)
{
	foreach my $db (@databases)
	{
		my $wrong = $node->safe_psql($db, <<'EOF');
SET enable_seqscan = off; SET enable_bitmapscan = off;
CREATE TEMP TABLE wrong (t int, c int);
DO $$
DECLARE n int;
BEGIN
	FOR t IN 1 .. 25 LOOP
		FOR c IN 1 .. 20 LOOP
			EXECUTE format('SELECT count(*) FROM m%s WHERE c%s BETWEEN 1 AND 400', t, c) INTO n;
			IF n <> 400 THEN
				INSERT INTO wrong VALUES (t, c);
			END IF;
		END LOOP;
	END LOOP;
END $$;
SELECT count(*) FROM wrong;
EOF
		is($wrong, 0, "$db: right answers while indexes lose their slots, $round");
	}
}
my $merged = 0;
foreach my $db (@databases)
{
	$node->poll_query_until($db, 'SELECT count(*) = 0 FROM hybrid_merge_progress');
	$merged += $node->safe_psql($db, 'SELECT count(*) FROM hybrid_indexes WHERE merges > 0');
}
cmp_ok($merged, '>=', 5, "indexes that lost their slots were merged ($merged)");
my ($ret, $out, $err) = $node->psql('many2', 'INSERT INTO m20 (c1) VALUES (7)');
like($err, qr/duplicate key value violates unique constraint/, 'uniqueness holds in an index that lost its slot');

# ---- trees that are lost again and again, with slots for all ----
make_small_indexes('many1', 100);
$node->restart;
$merged = 0;
foreach my $round (1 .. 12)
{
	is($node->safe_psql('many1', <<'EOF'), '150000', "lost trees, $round: right answers");
SET enable_seqscan = off; SET enable_bitmapscan = off;
CREATE FUNCTION pg_temp.count_rows(t int) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE n int8;
BEGIN
	EXECUTE format('SELECT count(*) FROM q%s WHERE k > 0', t) INTO n;
	RETURN n;
END $$;
SELECT sum(pg_temp.count_rows(t)) FROM generate_series(1, 100) t;
EOF
	$merged = $node->safe_psql('many1', "SELECT count(*) FROM hybrid_indexes WHERE indexname LIKE 'q%' AND merges > 0");
	last if $merged > 50;
	# trees that were read within a second are not lost to others
	sleep 1;
}
cmp_ok($merged, '>', 50, "indexes that lost their trees again and again were merged ($merged)");

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
