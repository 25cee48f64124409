
# What a backend keeps of an index stays right while other sessions change it: lanes
# get their first page, merges run, the index gets other files.  Logs of one page a
# lane are read in place.  Servers with assertions can be told to take memory for
# short.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('short', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
EOF

# ---- what others have done is seen by who has read before ----

$node->safe_psql('postgres', <<EOF);
CREATE TABLE k (k int, s text COLLATE "C");
INSERT INTO k SELECT i, repeat('x', 100) || i FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX k_k ON k USING hybrid (k);
CREATE UNIQUE INDEX k_s ON k USING hybrid (s);
EOF
my $reader = $node->background_psql('postgres', on_error_stop => 0);
my $count = 'SELECT count(*), sum(k) FROM k WHERE k > 990';
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off');
foreach my $round (1 .. 3)
{
	my @before = split /\|/, $reader->query_safe($count);
	my $k = 1000 + 3 * $round;
	is($reader->query_safe($count), "$before[0]|$before[1]", "round $round: read again");
	$node->safe_psql('postgres', "INSERT INTO k VALUES ($k, 'a$k')");
	is($reader->query_safe($count), ($before[0] + 1) . '|' . ($before[1] + $k), 'the first entry of a generation is seen');
	$node->safe_psql('postgres', "INSERT INTO k VALUES ($k + 1, 'b$k')");
	is($reader->query_safe($count), ($before[0] + 2) . '|' . ($before[1] + 2 * $k + 1), 'the next one, too');
	my ($ret, $out, $err) = $node->psql('postgres', "INSERT INTO k VALUES ($k, 'c')");
	like($err, qr/duplicate key value violates unique constraint "k_k"/, 'uniqueness checks find it');
	$node->safe_psql('postgres', "SELECT hybrid_merge('k_k')");
	is($reader->query_safe($count), ($before[0] + 2) . '|' . ($before[1] + 2 * $k + 1), 'after a merge');
}
$node->safe_psql('postgres', 'REINDEX INDEX k_k');
is($reader->query_safe('SELECT count(*) FROM k WHERE k > 0'), '1006', 'after REINDEX');
$node->safe_psql('postgres', "BEGIN; TRUNCATE k; INSERT INTO k VALUES (1, 'x'); COMMIT");
is($reader->query_safe('SELECT count(*) FROM k WHERE k > 0'), '1', 'after TRUNCATE');
$reader->quit;

# the greatest key of the static stage, kept by its first bytes only
$node->safe_psql('postgres', <<EOF);
TRUNCATE k;
INSERT INTO k SELECT i, repeat('x', 100) || (100 + i) FROM generate_series(1, 800) i;
SELECT hybrid_merge('k_s');
EOF
my ($ret, $out, $err) = $node->psql('postgres', "INSERT INTO k VALUES (2001, repeat('x', 100) || '500')");
like($err, qr/duplicate key value violates unique constraint "k_s"/, 'keys that begin like the greatest one are looked for');

# ---- more roots than a session keeps copies of ----

$node->safe_psql('postgres', <<'EOF');
DO $$
BEGIN
	FOR t IN 1 .. 150 LOOP
		EXECUTE format('CREATE TABLE r%s (k int)', t);
		EXECUTE format('INSERT INTO r%s SELECT %s * 10000 + (i * 7919) %% 10000 FROM generate_series(1, 10000) i', t, t);
		EXECUTE format('CREATE INDEX r%s_k ON r%s USING hybrid (k)', t, t);
		COMMIT;
	END LOOP;
END $$;
EOF
is($node->safe_psql('postgres', <<'EOF'), '0|150', 'each index is read by its own root');
SET enable_seqscan = off; SET enable_bitmapscan = off;
CREATE TEMP TABLE wrong (t int);
DO $$
DECLARE
	n int;
	t int;
BEGIN
	-- all of them, then those that have no copies, until they have, then all
	FOR i IN 0 .. 2699 LOOP
		t := CASE WHEN i BETWEEN 450 AND 2249 THEN 129 + i % 22 ELSE 1 + i % 150 END;
		EXECUTE format('SELECT count(*) FROM r%s WHERE k IN (%s, %s)', t, t * 10000 + 17, t * 10000 + 9999 - i) INTO n;
		IF n <> 2 THEN INSERT INTO wrong VALUES (t); END IF;
		IF i % 100 = 0 THEN COMMIT; END IF;
	END LOOP;
END $$;
SELECT (SELECT count(*) FROM wrong), (SELECT count(*) FROM pg_class WHERE relname ~ '^r\d+_k$' AND pg_relation_size(oid) > 3 * 8192);
EOF

# ---- logs that are read in place ----

if ($node->safe_psql('postgres', 'SHOW debug_assertions') ne 'on')
{
	no_crash($node, 'nothing crashed');
	$node->stop;
	done_testing();
	exit;
}
$node->append_conf('postgresql.conf', "hybridindex.test_short_logs = on\nsession_preload_libraries = 'hybridindex'");
$node->restart;

sub tree_memory
{
	my ($index) = @_;
	return $node->safe_psql('postgres', "SELECT tree_memory FROM hybrid_index_stats('$index')");
}

$node->safe_psql('postgres', <<EOF);
CREATE TABLE s (k int, s text COLLATE "C", v numeric);
INSERT INTO s SELECT 2 * i, md5((i % 100)::text), nullif(i % 50, 7) FROM generate_series(1, 3000) i;
CREATE UNIQUE INDEX s_k ON s USING hybrid (k) INCLUDE (v);
CREATE INDEX s_s ON s USING hybrid (s, k DESC);
CREATE INDEX s_v ON s USING hybrid (v DESC NULLS FIRST);
INSERT INTO s SELECT 2 * i + 1, md5((i % 100)::text), nullif(i % 50, 7) FROM generate_series(1, 100) i;
EOF
my %queries = (
	'SELECT k FROM s WHERE k > 100 ORDER BY k' => '{order,order_only}',
	'SELECT k, v FROM s WHERE k BETWEEN 17 AND 160 ORDER BY k DESC' => '{order,order_only}',
	'SELECT s, k FROM s WHERE s >= $$9$$ ORDER BY s, k DESC' => '{order,order_only}',
	'SELECT s, k FROM s WHERE s < $$3$$ AND k < 100 ORDER BY s DESC, k' => '{order,order_only}',
	'SELECT k FROM s WHERE s = md5($$17$$)' => '{index,only,bitmap}',
	'SELECT k FROM s WHERE k IN (1, 2, 3, 7, 200, 201, 5000)' => '{index,only,bitmap}',
	'SELECT v FROM s WHERE v IS NULL' => '{index,only,bitmap}',
	'SELECT v FROM s WHERE v BETWEEN 10 AND 12 ORDER BY v DESC' => '{order,order_only}');

same_answers($node, 'in place', \%queries);
is(join(' ', map { tree_memory("s_$_") } 'k', 's', 'v'), '0 0 0', 'no tree was built');
($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO s VALUES (33)');
like($err, qr/duplicate key value violates unique constraint "s_k"/, 'uniqueness');

# entries that VACUUM flags, and line pointers that are used again
$node->safe_psql('postgres', $_)
  foreach ('DELETE FROM s WHERE k % 2 = 1 AND k < 100', 'VACUUM (INDEX_CLEANUP on) s',
	'INSERT INTO s SELECT 2 * i + 1, md5((i % 100)::text), 77 FROM generate_series(200, 250) i');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*) FROM s WHERE k BETWEEN 3 AND 99'),
	'48', 'dead entries lead nowhere');
same_answers($node, 'after VACUUM', \%queries);

# a page more, in each index, of which a session has seen one
$reader = $node->background_psql('postgres');
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off');
is($reader->query_safe('SELECT count(*) FROM s WHERE v IN (77, 78)'), '51', 'a page is read');
$node->safe_psql('postgres', 'INSERT INTO s SELECT 2 * i + 1, md5((i % 100)::text), 78 FROM generate_series(1000, 2500) i');
is($reader->query_safe('SELECT count(*) FROM s WHERE v IN (77, 78)'), '1552', 'the next page is read');
$reader->quit;
same_answers($node, 'a longer log', \%queries, ['s']);
cmp_ok(tree_memory("s_$_"), '>', 0, "s_$_ has a tree") foreach ('k', 's', 'v');

# read often
$node->safe_psql('postgres', 'CREATE TABLE o (k int); CREATE INDEX o_k ON o USING hybrid (k); INSERT INTO o SELECT i FROM generate_series(1, 100) i');
$node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM o WHERE k = 5');
is(tree_memory('o_k'), '0', 'read once');
$node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SELECT count(*) FROM generate_series(1, 400) g JOIN o ON k = g');
cmp_ok(tree_memory('o_k'), '>', 0, 'a log that is read often gets a tree');

# a merge of a short log, held after its first step
if (has_points($node))
{
	$node->safe_psql('postgres', <<EOF);
CREATE EXTENSION injection_points;
CREATE TABLE m (k int);
INSERT INTO m SELECT 2 * ((i * 7919) % 50000) FROM generate_series(1, 50000) i;
CREATE INDEX m_k ON m USING hybrid (k);
INSERT INTO m SELECT 500 * i + 1 FROM generate_series(0, 199) i;
EOF
	my $merger = start_psql($node, <<EOF);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-step-installed', 'wait');
SET hybridindex.merge_step_pages = 1;
SELECT hybrid_merge('m_k');
EOF
	my $held = "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-step-installed'";
	ok($node->poll_query_until('postgres', $held), 'a merge is held after a step');
	my %m = (
		'SELECT k FROM m WHERE k > 0 ORDER BY k' => '{order,order_only}',
		'SELECT k FROM m WHERE k > 0 ORDER BY k DESC' => '{order,order_only}',
		'SELECT k FROM m WHERE k IN (1, 501, 99501)' => '{index,only,bitmap}');
	same_answers($node, 'entries below the watermark are left out', \%m);
	$node->safe_psql('postgres', 'INSERT INTO m VALUES (3), (77777), (99999)');
	same_answers($node, 'two generations', \%m);
	is(tree_memory('m_k'), '0', 'no tree');
	foreach (1 .. 1000)
	{
		last if $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%hybrid_merge(%' AND pid <> pg_backend_pid()") eq '0';
		$node->psql('postgres', "SELECT injection_points_wakeup('hybrid-step-installed')");
	}
	finish_psql($merger);
	same_answers($node, 'merged', \%m, ['m']);
}

# ---- many clients: rows change their places, keys stay ----

$node->safe_psql('postgres', <<EOF);
CREATE TABLE c (k int, v int);
INSERT INTO c SELECT i, i FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX c_k ON c USING hybrid (k);
CREATE INDEX c_v ON c USING hybrid (v);
EOF
my %c = (
	'SELECT k FROM c WHERE k > 0 ORDER BY k' => '{order,order_only}',
	'SELECT v FROM c WHERE v = 0' => '{index,only,bitmap}');
$node->pgbench('-n -c 4 -j 2 -t 1500', 0, [qr/processed: 6000/], [qr/^(?!.*aborted)/s], 'short logs under load',
	{
		'033_update@10' => "\\set k random(1, 1000)\nUPDATE c SET v = v + 1 WHERE k = :k;\n",
		'033_insert@10' => "\\set k random(1001, 1500)\nINSERT INTO c VALUES (:k, 0) ON CONFLICT DO NOTHING;\n",
		'033_delete@5' => "\\set k random(1001, 1500)\nDELETE FROM c WHERE k = :k;\n",
		'033_read@20' => "SET enable_seqscan = off;\nSET enable_bitmapscan = off;\n\\set k random(1, 990)\nSELECT 1 / (count(*) = 10)::int FROM c WHERE k BETWEEN :k AND :k + 9;\n",
		'033_merge@2' => "SELECT hybrid_merge('c_k'), hybrid_merge('c_v');\n",
		'033_vacuum@1' => "VACUUM (INDEX_CLEANUP on) c;\n"
	});
same_answers($node, 'afterwards', \%c, ['c']);
$node->stop('immediate');
$node->start;
same_answers($node, 'after a crash', \%c, ['c']);
same_answers($node, 'after a crash', \%queries, ['s']);

# ---- regression tests that go over the log ----

$node->append_conf('postgresql.conf', 'hybridindex.merge_floor = 8192');
$node->reload;
my @tests = qw(arrays comparison include merge multicolumn unique vacuum);
is(join(' ', run_regress($node, @tests)), '', scalar(@tests) . ' regression tests with short logs');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
