
# Which features the server has for an index that is not a btree: ON CONFLICT on all
# versions.  From PostgreSQL 18 on also foreign keys, unique indexes of partitioned
# tables and replica identity.  Before 18 these are errors that say so.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('node', <<EOF, allows_streaming => 'logical');
wal_level = logical
hybridindex.merge_floor = 50
hybridindex.merge_step_pages = 1
enable_seqscan = off
EOF
my ($version) = $node->safe_psql('postgres', 'SHOW server_version_num') =~ /^(\d\d)/;

$node->safe_psql('postgres', <<EOF);
CREATE TABLE counter (k int, s text COLLATE "C", n int);
CREATE UNIQUE INDEX counter_k ON counter USING hybrid (k);
INSERT INTO counter SELECT i, 's' || i, 0 FROM generate_series(1, 100) i;
CREATE TABLE parted (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (1000) TO (2000);
EOF

if ($version < 18)
{
	# sessions that have not loaded the library before
	my $refusal = qr/the library "hybridindex", which INSERT \.\.\. ON CONFLICT needs for a unique hybrid index, was loaded too late.*DETAIL:.*HINT:  Try it again, or add/s;
	like(error_of($node, $_), $refusal, "first use: $_")
	  foreach 'INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING',
	  'WITH x AS (INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING RETURNING *) SELECT * FROM x',
	  "DO \$\$ BEGIN INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING; END \$\$",
	  'EXPLAIN ANALYZE INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING',
	  'PREPARE p AS INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING; EXECUTE p';
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET log_min_messages = panic; INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING");
	like($err, qr/ERROR:  55000: the library/, 'it is not an internal error, whatever is logged');
	is($node->safe_psql('postgres', <<EOF), '1', 'the error loads the library for the next statement');
\\set ON_ERROR_STOP off
INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING;
INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING;
SELECT count(*) FROM counter WHERE k = 1;
EOF
	is($node->safe_psql('postgres', 'INSERT INTO counter VALUES (1) ON CONFLICT (k) DO NOTHING RETURNING k'), '',
		'a clause that names the index loads it in time');
	is(error_of($node, $_), '', "nothing is executed: $_")
	  foreach 'EXPLAIN INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING',
	  'LOAD \'hybridindex\'; EXPLAIN INSERT INTO counter VALUES (1) ON CONFLICT DO NOTHING',
	  'EXPLAIN INSERT INTO counter VALUES (1) ON CONFLICT (k) DO UPDATE SET n = 1';
	is(error_of($node, 'CREATE TABLE child (k int REFERENCES counter (k)); INSERT INTO child SELECT k FROM counter LIMIT 1; DROP TABLE child'),
		'', 'foreign key');
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE itself (k int, up int, n int);
CREATE UNIQUE INDEX itself_k ON itself USING hybrid (k) INCLUDE (n);
INSERT INTO itself SELECT i, i, i FROM generate_series(1, 10) i;
ALTER TABLE itself ADD FOREIGN KEY (up) REFERENCES itself (k);
EOF
	is(($node->psql('postgres', 'BEGIN; ALTER TABLE itself DROP k CASCADE, ALTER n TYPE bigint; ROLLBACK'))[2],
		'psql:<stdin>:1: NOTICE:  drop cascades to constraint itself_up_fkey on table itself', 'an index that is dropped is left alone');
	like(error_of($node, 'BEGIN; DECLARE c CURSOR FOR SELECT FROM itself; FETCH c; ALTER TABLE itself ALTER k TYPE bigint; ROLLBACK'),
		qr/cannot ALTER TABLE "itself" because it is being used/, 'a table that is being read');
	like(($node->psql('postgres', 'ALTER TABLE itself ALTER k TYPE bigint'))[2],
		qr/NOTICE:  index "itself_k" becomes one of access method "btree"\nDETAIL:  Before PostgreSQL 18, a foreign key that ALTER TABLE makes again/,
		'an index that a foreign key references becomes btree when its column changes its type');
	is(error_of($node, "SET client_min_messages = error; SELECT hybrid_convert('itself_k'); ALTER TABLE itself ALTER up TYPE bigint"), '', 'and can be converted');
	like(error_of($node, 'INSERT INTO itself VALUES (11, 12)'), qr/violates foreign key constraint/, 'the foreign key still works');
	like(error_of($node, 'CREATE UNIQUE INDEX ON parted USING hybrid (k)'),
		qr/cannot match partition key to an index using access method "hybrid"/,
		'unique index of a partitioned table: an error');
	is(error_of($node, 'CREATE INDEX parted_k ON parted USING hybrid (k); INSERT INTO parted SELECT i, i FROM generate_series(0, 1999) i'),
		'', 'an index that is not unique works there');
	is(error_of($node, 'INSERT INTO parted VALUES (1, 0) ON CONFLICT DO NOTHING'), '',
		'ON CONFLICT works where no unique index is hybrid');
	# what a session knows of a table is forgotten when one comes
	is(error_of($node, "LOAD 'hybridindex'; BEGIN; INSERT INTO parted VALUES (1500, 0) ON CONFLICT DO NOTHING; CREATE UNIQUE INDEX ON parted2 USING hybrid (v, k); INSERT INTO parted VALUES (1500, 0) ON CONFLICT DO NOTHING"),
		'', 'once a partition gets one');
	$node->safe_psql('postgres', 'CREATE UNIQUE INDEX parted1_k ON parted1 USING hybrid (v, k)');
	like(error_of($node, "INSERT INTO parted VALUES (1, '1') ON CONFLICT DO NOTHING"),
		qr/"hybridindex", which INSERT \.\.\. ON CONFLICT needs for a unique hybrid index, was loaded too late.*DETAIL:.*HINT:/s,
		'the first statement of a session, through the partitioned table');
	is(error_of($node, "LOAD 'hybridindex'; INSERT INTO parted VALUES (1, '1') ON CONFLICT DO NOTHING"), '', 'a later statement says the same');
	is(error_of($node, "INSERT INTO parted1 VALUES (1, '1') ON CONFLICT (v, k) DO NOTHING"), '', 'an upsert on the partition works');
	$node->safe_psql('postgres', 'DROP INDEX parted1_k');
	same_answers($node, 'partitions', { 'SELECT * FROM parted1 WHERE k BETWEEN 5 AND 600' => 'index bitmap' },
		[ 'parted1', 'parted2' ]);
}
else
{
	# range filters in EXPLAIN (ANALYZE)
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE filtered AS SELECT hashint8extended(i, 0) AS k, i FROM generate_series(1, 20000) i;
CREATE INDEX filtered_k ON filtered USING hybrid (k) WITH (filter = surf, filter_suffix_bits = 16);
CREATE INDEX filtered_i ON filtered USING hybrid (i);
VACUUM ANALYZE filtered;
EOF
	my $explain = 'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off';
	like($node->safe_psql('postgres', "$explain) SELECT i FROM filtered WHERE k BETWEEN 1 AND 5"),
		qr/Index Scan using filtered_k .*Index Searches: 1\n *Range Filter Checks: 1\n *Leaves Skipped by Range Filter: 1$/s,
		'EXPLAIN: an empty range');
	like($node->safe_psql('postgres', "$explain) SELECT (SELECT i FROM filtered WHERE k = g) FROM generate_series(1, 10) g"),
		qr/Index Scan using filtered_k .*Range Filter Checks: 10\n *Leaves Skipped by Range Filter: 10$/s,
		'EXPLAIN: sum over loops');
	like($node->safe_psql('postgres', "SET enable_indexscan = off; $explain, FORMAT json) SELECT i FROM filtered WHERE k IN (1, 2, 3)"),
		qr/"Bitmap Index Scan".*"Range Filter Checks": 3,\s*"Leaves Skipped by Range Filter": 3\s/s,
		'EXPLAIN: bitmap scan, JSON');
	unlike($node->safe_psql('postgres', "$explain) SELECT * FROM filtered WHERE i = 0"),
		qr/Range Filter/, 'EXPLAIN: no filter, no word of it');
	unlike($node->safe_psql('postgres', 'EXPLAIN SELECT i FROM filtered WHERE k = 1'),
		qr/Range Filter/, 'EXPLAIN without ANALYZE');

	# filters for points
	$node->safe_psql('postgres', 'ALTER INDEX filtered_k SET (filter = points); REINDEX INDEX filtered_k');
	like($node->safe_psql('postgres', "$explain) SELECT (SELECT i FROM filtered WHERE k = 2 * g + 1) FROM generate_series(1, 3) g"),
		qr/Index Scan using filtered_k .*Point Filter Checks: 3\n *Leaves Skipped by Point Filter: 3$/s,
		'EXPLAIN: absent keys');
	like($node->safe_psql('postgres', "$explain) SELECT i FROM filtered WHERE k BETWEEN 1 AND 5"),
		qr/Index Scan using filtered_k .*Point Filter Checks: 0\n *Leaves Skipped by Point Filter: 0$/s,
		'EXPLAIN: a range');

	# foreign keys
	$node->safe_psql('postgres', <<EOF);
TRUNCATE counter; INSERT INTO counter SELECT i, 's' || i, 0 FROM generate_series(1, 100) i;
CREATE TABLE child (k int REFERENCES counter (k) ON DELETE CASCADE ON UPDATE CASCADE, v int);
CREATE INDEX child_k ON child USING hybrid (k);
INSERT INTO child SELECT i % 100 + 1, i FROM generate_series(1, 1000) i;
EOF
	like(error_of($node, 'INSERT INTO child VALUES (999, 1)'), qr/violates foreign key constraint/, 'foreign key: no such row');
	$node->safe_psql('postgres', 'UPDATE counter SET k = 555 WHERE k = 5; DELETE FROM counter WHERE k = 6');
	is($node->safe_psql('postgres', 'SELECT count(*) FILTER (WHERE k = 555), count(*) FILTER (WHERE k IN (5, 6)), count(*) FROM child'),
		'10|0|990', 'foreign key: cascades');
	same_answers($node, 'child', { 'SELECT v FROM child WHERE k BETWEEN 3 AND 30' => 'index bitmap' }, [ 'child', 'counter' ]);

	# a unique index on a partitioned table
	is(error_of($node, 'CREATE UNIQUE INDEX parted_k ON parted USING hybrid (k); INSERT INTO parted SELECT i, i FROM generate_series(0, 1999) i'),
		'', 'unique index of a partitioned table');
	like(error_of($node, 'INSERT INTO parted VALUES (1500, 2)'), qr/duplicate key value violates unique constraint/, 'it is unique');
	is($node->safe_psql('postgres', 'INSERT INTO parted VALUES (1500, \'new\') ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING v'),
		'new', 'ON CONFLICT on it');
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE ofparted (k int REFERENCES parted (k) ON DELETE SET NULL);
INSERT INTO ofparted SELECT i * 3 FROM generate_series(0, 600) i;
EOF
	like(error_of($node, 'INSERT INTO ofparted VALUES (5000)'), qr/violates foreign key constraint/, 'foreign key to a partitioned table');
	$node->safe_psql('postgres', 'DELETE FROM parted WHERE k % 9 = 0');
	is($node->safe_psql('postgres', 'SELECT count(*), count(k), count(*) FILTER (WHERE k % 9 = 0) FROM ofparted'), '601|400|0',
		'rows that refer to deleted ones');
	$node->safe_psql('postgres', 'DROP TABLE ofparted; INSERT INTO parted SELECT i, i FROM generate_series(0, 1999, 9) i');
	is($node->safe_psql('postgres', 'INSERT INTO parted VALUES (999, 9), (1, 1) ON CONFLICT DO NOTHING RETURNING k'),
		'', 'ON CONFLICT DO NOTHING on it');
	like(error_of($node, 'UPDATE parted SET k = 1500 WHERE k = 3'), qr/duplicate key value/, 'a row moved to another partition is checked there');

	like(error_of($node, 'CREATE UNIQUE INDEX ON parted USING hybrid (v)'),
		qr/unique constraint on partitioned table must include all partitioning columns/i, 'it must include the partition key');
	same_answers($node, 'partitions', { 'SELECT * FROM parted2 WHERE k BETWEEN 5 AND 1600' => 'index bitmap' },
		[ 'parted1', 'parted2' ]);
}

# ---- ON CONFLICT, on every version ----

my $load = "LOAD 'hybridindex'; ";
is($node->safe_psql('postgres', $load . 'INSERT INTO counter VALUES (1, \'x\', 7), (101, \'y\', 0) ON CONFLICT DO NOTHING RETURNING k'),
	'101', 'ON CONFLICT DO NOTHING');
is($node->safe_psql('postgres', 'INSERT INTO counter VALUES (1, \'x\', 7) ON CONFLICT (k) DO UPDATE SET n = counter.n + excluded.n RETURNING k, s, n'),
	'1|s1|7', 'ON CONFLICT DO UPDATE');
is($node->safe_psql('postgres', 'INSERT INTO counter VALUES (1) ON CONFLICT (k) DO UPDATE SET n = 0 WHERE false RETURNING k'),
	'', 'ON CONFLICT DO UPDATE WHERE');
like(error_of($node, 'INSERT INTO counter VALUES (7), (7) ON CONFLICT (k) DO UPDATE SET n = 1'),
	qr/cannot affect row a second time/, 'one row twice');
like(error_of($node, 'INSERT INTO counter VALUES (1) ON CONFLICT (s) DO NOTHING'),
	qr/no unique or exclusion constraint matching/, 'no matching index');
is($node->safe_psql('postgres', 'MERGE INTO counter c USING (VALUES (2), (202)) v(k) ON c.k = v.k WHEN MATCHED THEN UPDATE SET n = 1 WHEN NOT MATCHED THEN INSERT VALUES (v.k, NULL, 0); SELECT count(*), sum(n) FROM counter WHERE k IN (2, 202)'),
	'2|1', 'MERGE');

# upserts that race, with merges
$node->safe_psql('postgres', 'DROP TABLE IF EXISTS child; TRUNCATE counter; CREATE TABLE done (k int)');
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=hybridindex';
	$node->pgbench('-n -c 6 -j 2 -t 250', 0, [qr/processed: 1500/], [qr/^(?!.*aborted)/s],
		'racing upserts', {
			'upsert@4' => <<'EOF',
\set k random(1, 40)
BEGIN;
INSERT INTO counter VALUES (:k, 'u', 1) ON CONFLICT (k) DO UPDATE SET n = counter.n + 1;
INSERT INTO done VALUES (:k);
COMMIT;
EOF
			'nothing@1' => <<'EOF',
\set k random(1000, 1040)
INSERT INTO counter VALUES (:k, 'n', 0) ON CONFLICT DO NOTHING;
EOF
			'delete@1' => <<'EOF',
\set k random(1000, 1040)
DELETE FROM counter WHERE k = :k;
EOF
		});
}
is($node->safe_psql('postgres', 'SELECT sum(n) - (SELECT count(*) FROM done) FROM counter'), '0', 'no upsert was lost');
is($node->safe_psql('postgres', 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*) - count(DISTINCT k) FROM counter'),
	'0', 'no duplicate');
same_answers($node, 'counters', { 'SELECT k, n FROM counter WHERE k < 1020' => 'index bitmap' }, ['counter']);

# which index decides: partial, by expression, of several
$node->safe_psql('postgres', <<EOF);
CREATE TABLE infer (a int, s text COLLATE "C", n int DEFAULT 0);
CREATE UNIQUE INDEX infer_part ON infer USING hybrid (a) WHERE s = 'live';
CREATE UNIQUE INDEX infer_expr ON infer USING hybrid (lower(s), a) NULLS NOT DISTINCT;
INSERT INTO infer SELECT i, 'live' FROM generate_series(1, 300) i;
SELECT hybrid_merge('infer_part'), hybrid_merge('infer_expr');
EOF
is($node->safe_psql('postgres', "INSERT INTO infer VALUES (7, 'live', 5) ON CONFLICT (a) WHERE s = 'live' DO UPDATE SET n = excluded.n RETURNING n"),
	'5', 'ON CONFLICT by a partial index');
is($node->safe_psql('postgres', "INSERT INTO infer VALUES (8, 'LIVE', 6) ON CONFLICT (lower(s), a) DO UPDATE SET n = excluded.n RETURNING a, s, n"),
	'8|live|6', 'ON CONFLICT by an index on an expression');
is($node->safe_psql('postgres', "$load INSERT INTO infer VALUES (NULL, NULL), (NULL, NULL), (9, 'dead') ON CONFLICT DO NOTHING RETURNING a, s"),
	"|\n9|dead", 'NULLs that are not distinct conflict');

# operator classes, which the parser takes for btree's
$node->safe_psql('postgres', <<EOF);
CREATE TABLE classes (s text, t text, n int DEFAULT 0);
CREATE UNIQUE INDEX classes_s ON classes USING hybrid (s text_pattern_ops);
CREATE UNIQUE INDEX classes_ts ON classes USING hybrid (lower(t) text_pattern_hope_ops, s) INCLUDE (n);
CREATE UNIQUE INDEX classes_b ON classes USING btree (t text_pattern_ops);
INSERT INTO classes VALUES ('a', 'A'), ('b', 'B');
EOF
like(error_of($node, "INSERT INTO classes VALUES ('a', 'x') ON CONFLICT (s text_pattern_ops) DO NOTHING"),
	qr/no unique or exclusion constraint matching.*HINT:.*session_preload_libraries/s,
	'operator class of ON CONFLICT before the library is loaded: a hint');
is($node->safe_psql('postgres', "$load INSERT INTO classes VALUES ('a', 'x') ON CONFLICT (s text_pattern_ops) DO UPDATE SET n = 1 RETURNING t, n"),
	'A|1', 'ON CONFLICT with an operator class');
is($node->safe_psql('postgres', "$load INSERT INTO classes VALUES ('b', 'b') ON CONFLICT (lower(t) text_pattern_ops, s text_ops) DO UPDATE SET n = 2 RETURNING t, n"),
	'B|2', 'ON CONFLICT with operator classes, on an expression');
is($node->safe_psql('postgres', "$load WITH x AS (INSERT INTO classes VALUES ('a', 'y') ON CONFLICT (s varchar_pattern_ops) DO UPDATE SET n = 3 RETURNING *) SELECT t, n FROM x"),
	'A|3', 'ON CONFLICT with an operator class in WITH');
is($node->safe_psql('postgres', "$load INSERT INTO classes VALUES ('c', 'A') ON CONFLICT (t text_pattern_ops) DO UPDATE SET n = 4 RETURNING s, n"),
	'a|4', 'ON CONFLICT with an operator class of a btree index');
like(error_of($node, "$load INSERT INTO classes VALUES ('a') ON CONFLICT (s text_ops) DO NOTHING"),
	qr/no unique or exclusion constraint matching/, 'another operator class');
same_answers($node, 'classes', { "SELECT n FROM classes WHERE s ~<~ 'b'" => 'index bitmap' }, ['classes']);

like(error_of($node, "INSERT INTO infer VALUES (10, 'LIVE'), (9, 'dead') ON CONFLICT (a) WHERE s = 'live' DO NOTHING"),
	qr/duplicate key value violates unique constraint "infer_expr"/, 'another index raises an error');
same_answers($node, 'after conflicts', { "SELECT a FROM infer WHERE a < 100 AND s = 'live'" => 'index bitmap',
		"SELECT n FROM infer WHERE lower(s) = 'live' AND a > 200" => 'index bitmap' }, ['infer']);

is(error_of($node, 'CREATE TABLE pk (k int NOT NULL); CREATE UNIQUE INDEX pk_k ON pk USING hybrid (k); ALTER TABLE pk ADD PRIMARY KEY USING INDEX pk_k'),
	'', 'a constraint takes over the index');

# Settings are kept until the library is loaded, which checks them.
sub output_of
{
	my ($script) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $script);
	return ($out, $err);
}
$node->safe_psql('postgres', <<'EOF');
CREATE FUNCTION floor_there() RETURNS text LANGUAGE plpgsql PARALLEL SAFE STABLE AS $$
BEGIN
	RETURN (SELECT count(*) FROM counter WHERE k = 7) || ' ' || current_setting('hybridindex.merge_floor');
END $$;
EOF
my ($out, $err) = output_of(<<'EOF');
SET hybridindex.merge_floor = -1;
SET hybridindex.merge_step_pages = 129;
SET hybridindex.background_merge = 'perhaps';
SET hybridindex.no_such_setting = 1;
LOAD 'hybridindex';
SELECT name, setting FROM pg_settings WHERE name ~ '^hybridindex.*(floor|pages|background)' ORDER BY name COLLATE "C";
EOF
is($out, "hybridindex.background_merge|on\nhybridindex.merge_floor|50\nhybridindex.merge_step_pages|1", 'what is out of range is not taken');
my $warnings = () = $err =~ /WARNING: /g;
is($warnings, 4, 'each value out of range has a warning');
($out, $err) = output_of(<<'EOF');
SET hybridindex.merge_floor = 7;
SET hybridindex.merge_step_pages = 4;
SET hybridindex.background_merge = off;
SELECT count(*) FROM (SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')) s;
EXPLAIN (COSTS off) SELECT floor_there();
SELECT floor_there();
EOF
like($out, qr/Gather.*\n[01] 7$/s, 'a worker of a parallel query loads the library and has the settings');
is($err, '', 'without a warning');

# Replica identity, and apply through a hybrid index.  Server 17 finds
# rows through btree (and hash) indexes only.
if ($version != 17)
{
	my $subscriber = new_node('subscriber', <<EOF);
hybridindex.merge_floor = 50
hybridindex.merge_step_pages = 1
EOF
	my $schema = <<EOF;
CREATE TABLE r (k int NOT NULL, s text COLLATE "C" NOT NULL, v int);
CREATE UNIQUE INDEX r_k ON r USING hybrid (s, k);
CREATE INDEX r_v ON r USING hybrid (v);
ALTER TABLE r REPLICA IDENTITY USING INDEX r_k;
CREATE TABLE f (k int, v int);
CREATE INDEX f_k ON f USING hybrid (k);
ALTER TABLE f REPLICA IDENTITY FULL;
EOF
	$_->safe_psql('postgres', $schema) foreach $node, $subscriber;
	$node->safe_psql('postgres', 'CREATE PUBLICATION pub FOR TABLE r, f; INSERT INTO r SELECT i, md5((i % 50)::text), i FROM generate_series(1, 2000) i; INSERT INTO f SELECT i, i FROM generate_series(1, 300) i');
	my $connstr = $node->connstr('postgres');
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION \$c\$$connstr\$c\$ PUBLICATION pub");
	$subscriber->wait_for_subscription_sync($node, 'sub');
	$node->safe_psql('postgres', <<EOF);
UPDATE r SET v = v + 1 WHERE k % 3 = 0;
UPDATE r SET k = k + 10000, s = md5(k::text) WHERE k % 7 = 1;
DELETE FROM r WHERE k % 5 = 2;
INSERT INTO r SELECT i, md5(i::text), i FROM generate_series(30001, 31000) i;
UPDATE f SET v = -v WHERE k % 2 = 0;
DELETE FROM f WHERE k % 3 = 0;
EOF
	$node->wait_for_catchup('sub');
	foreach my $table ('r', 'f')
	{
		my $sum = "SET enable_seqscan = on; SET enable_indexscan = off; SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM $table x";
		is($subscriber->safe_psql('postgres', $sum), $node->safe_psql('postgres', $sum),
			"logical replication of table $table");
	}
	cmp_ok($subscriber->safe_psql('postgres', 'SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = \'r_k\''),
		'>', 100, 'rows were found through the hybrid index')
	  if $subscriber->poll_query_until('postgres', 'SELECT idx_scan > 100 FROM pg_stat_user_indexes WHERE indexrelname = \'r_k\'');
	if ($version >= 18)
	{
		ok($subscriber->poll_query_until('postgres', 'SELECT idx_scan > 100 FROM pg_stat_user_indexes WHERE indexrelname = \'f_k\''),
			'rows of a table without an identity were found through it too');

		# a row that is there already stops the apply, until it is gone
		my $log = -s $subscriber->logfile;
		$subscriber->safe_psql('postgres', "INSERT INTO r VALUES (77777, 'mine', 0)");
		$node->safe_psql('postgres', "INSERT INTO r VALUES (77777, 'mine', 1)");
		$subscriber->wait_for_log(qr/conflict detected on relation "public.r": conflict=insert_exists.*Key already exists in unique index "r_k"/s, $log);
		$subscriber->safe_psql('postgres', "DELETE FROM r WHERE s = 'mine'");
		$node->wait_for_catchup('sub');
		is($subscriber->safe_psql('postgres', "SELECT v FROM r WHERE s = 'mine'"), '1', 'a conflict is reported, and applied when it is solved');
	}
	same_answers($subscriber, 'subscriber',
		{ 'SELECT k FROM r WHERE s = md5(\'7\') AND k > 10' => 'index only bitmap',
			'SELECT k FROM r WHERE v BETWEEN 100 AND 200' => 'index bitmap' }, [ 'r', 'f' ]);
	no_crash($subscriber, 'nothing crashed on the subscriber');
	$subscriber->stop;
}

# rows that are routed to a partition with a unique index of ours, and to a
# foreign table, which is to skip duplicates as well
SKIP:
{
	skip 'no postgres_fdw', 2 if error_of($node, 'CREATE EXTENSION postgres_fdw') ne '';
	my ($host, $port) = ($node->host, $node->port);
	$node->safe_psql('postgres', <<EOF);
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER self;
CREATE TABLE remote (a int UNIQUE, b int);
CREATE TABLE mixed (a int, b int) PARTITION BY LIST (b);
CREATE TABLE mixed1 PARTITION OF mixed FOR VALUES IN (1);
CREATE UNIQUE INDEX mixed1_a ON mixed1 USING hybrid (a);
CREATE FOREIGN TABLE mixed2 PARTITION OF mixed FOR VALUES IN (2) SERVER self OPTIONS (table_name 'remote');
EOF
	my $insert = 'INSERT INTO mixed SELECT a, b FROM generate_series(1, 3) a, generate_series(1, 2) b ON CONFLICT DO NOTHING';
	is(error_of($node, "LOAD 'hybridindex'; $insert; $insert"), '', 'duplicates in a partition and in a foreign table');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM mixed'), '6', 'are skipped');
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
