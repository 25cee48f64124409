
# Where shared memory is short, or comparisons may run any code, a backend has trees in
# its own memory.  It begins them anew when another session's VACUUM has removed entries
# that they hold.  The memory of trees that are gone is used again.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('private', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.dynamic_memory = 64kB
EOF

# ---- a private tree and VACUUM ----

# Two indexes take the shared memory that there is; the tree of a third is then
# built by the session that reads it, and stays private for as long as nothing
# is merged.  Trees that were not used for a second make room, so on a busy
# machine this may take more than one try.  Logs are longer than a page: a shorter
# one would be read without a tree.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE big (k int, l int, pad text DEFAULT repeat('x', 30));
CREATE INDEX big_k ON big USING hybrid (k) INCLUDE (pad);
CREATE INDEX big_l ON big USING hybrid (l) INCLUDE (pad);
INSERT INTO big SELECT i, i FROM generate_series(1, 500) i;
EOF
my $query = 'SELECT count(*), sum(k) FROM t WHERE k BETWEEN 100 AND 200';
my $reader = $node->background_psql('postgres');
my $private = 0;
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off');
foreach (1 .. 20)
{
	$node->safe_psql('postgres', <<EOF);
DROP TABLE IF EXISTS t;
CREATE TABLE t (k int, v int, pad text DEFAULT repeat('x', 30));
CREATE INDEX t_k ON t USING hybrid (k) INCLUDE (pad);
INSERT INTO t SELECT i, 0 FROM generate_series(1, 400) i;
EOF
	is( $reader->query_safe("SELECT (SELECT count(*) FROM big WHERE k > 0), (SELECT count(*) FROM big WHERE l > 0), (SELECT count(*) FROM t WHERE k > 0)"),
		'500|500|400', 'three indexes are read');
	$private = $reader->query_safe("SELECT tree_memory > 0 AND NOT tree_shared FROM hybrid_index_stats('t_k')") eq 't' and last;
}
ok($private, 'the tree of the last one is private');
is($node->safe_psql('postgres', "SELECT tree_memory FROM hybrid_index_stats('t_k')"), '0', 'no other session knows the private tree');
is($reader->query_safe($query), '101|15150', 'rows are found with it');

$node->safe_psql('postgres', $_)
  foreach ('DELETE FROM t WHERE k BETWEEN 100 AND 200', 'VACUUM (INDEX_CLEANUP on) t',
	'INSERT INTO t SELECT i, 1 FROM generate_series(1001, 1101) i');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE v = 1 AND ctid < (SELECT ctid FROM t WHERE k = 400)'),
	'101', 'other rows have got the line pointers');
is($reader->query_safe($query), '0|', 'the private tree does not lead to them');
is($reader->query_safe('SELECT count(*) FROM t WHERE k > 1000'), '101', 'the private tree leads to these rows by their own keys');
is($reader->query_safe("SELECT tree_memory > 0 AND NOT tree_shared FROM hybrid_index_stats('t_k')"), 't', 'the tree is still a private one');
$reader->quit;
same_answers($node, 'all answers', { 'SELECT k FROM t WHERE k > 50' => 'index only bitmap' }, [ 't', 'big' ]);

# ---- memory comes back ----

# Each round's tree takes a good part of what is allowed for all of them.
$node->append_conf('postgresql.conf', "hybridindex.dynamic_memory = 1MB\n");
$node->restart;
foreach my $round (1 .. 12)
{
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE r$round (k int);
CREATE INDEX r${round}_k ON r$round USING hybrid (k);
INSERT INTO r$round SELECT hashint4(i) FROM generate_series(1, 24000) i;
SET enable_seqscan = off;
SELECT count(*) FROM r$round WHERE k > 0;
EOF
	# trees of dropped tables give way when no session has read them for a second
	my $memory;
	foreach my $try (1 .. 100)
	{
		$memory = $node->safe_psql('postgres', <<EOF);
SET enable_seqscan = off;
DO \$\$ BEGIN PERFORM count(*) FROM r$round WHERE k > 0; END \$\$;
SELECT tree_memory FROM hybrid_index_stats('r${round}_k') WHERE tree_shared;
EOF
		last if ($memory || 0) > 250_000;
		select(undef, undef, undef, 0.1);
	}
	cmp_ok($memory || 0, '>', 250_000, "round $round: the tree is in shared memory");
	$node->safe_psql('postgres',
		$round % 2 ? "SELECT hybrid_merge('r${round}_k')" : "DROP TABLE r$round");
}

# ---- line pointers that go to rows which the index does not have ----

# Nothing is appended to the log after VACUUM.  Comparisons by PL/pgSQL have each session
# use a tree of its own, however much shared memory there is.
$node->append_conf('postgresql.conf', "hybridindex.dynamic_memory = 64MB\n");
$node->restart;
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION own_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN btint4cmp(a, b); END $$;
CALL hyb_operator_class('own');
CREATE TABLE partial (k int, kept bool) WITH (autovacuum_enabled = off);
CREATE INDEX partial_k ON partial USING hybrid (k own_ops) WHERE kept;
INSERT INTO partial SELECT i, true FROM generate_series(1, 400) i;
SQL
$query = 'SELECT count(*), sum(k) FROM partial WHERE kept AND k BETWEEN 100 AND 200';

sub pointers_pass_on
{
	my ($what, @vacuum) = @_;
	my $session = $node->background_psql('postgres');

	$node->safe_psql('postgres', 'TRUNCATE partial; INSERT INTO partial SELECT i, true FROM generate_series(1, 400) i');
	$session->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off');
	is($session->query_safe($query), '101|15150', "$what: rows are found with a private tree");
	is($session->query_safe("SELECT tree_memory > 0 AND NOT tree_shared FROM hybrid_index_stats('partial_k')"), 't', "$what: it is a private one");
	$node->psql('postgres', $_)
	  foreach ('DELETE FROM partial WHERE k BETWEEN 100 AND 200', @vacuum, 'VACUUM (INDEX_CLEANUP on) partial',
		'INSERT INTO partial SELECT i, false FROM generate_series(1001, 1101) i');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM partial WHERE NOT kept AND ctid < (SELECT ctid FROM partial WHERE k = 400)'),
		'101', "$what: rows that the index does not have have got the line pointers");
	is($session->query_safe($query), '0|', "$what: the private tree does not lead to them");
	$session->quit;
	return;
}
pointers_pass_on('VACUUM');

# ---- a comparison that reads another index ----

# Such a comparison while a scan sets a hint makes a tree of the other index, for which
# others have to go.  The one with the hint stays.
$node->append_conf('postgresql.conf', "hybridindex.dynamic_memory = 64kB\n");
$node->restart;
is($node->safe_psql('postgres', <<'SQL'), "3|15\n0|\n1|6", 'a tree stays while a scan sets hints in it');
CREATE FUNCTION reading_cmp(x int, y int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('test.reads', true) = 'on' THEN
		PERFORM count(*) FROM other WHERE k > 0;
	END IF;
	RETURN btint4cmp(x, y);
END $$;
CALL hyb_operator_class('reading');
CREATE TABLE hinted (k int) WITH (autovacuum_enabled = off);
CREATE INDEX hinted_k ON hinted USING hybrid (k reading_ops);
INSERT INTO hinted SELECT generate_series(1, 600);
CREATE TEMP TABLE other (k int);
CREATE INDEX other_k ON other USING hybrid (k);
INSERT INTO other SELECT generate_series(1, 2000);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT count(*), sum(k) FROM hinted WHERE k BETWEEN 4 AND 6;
DELETE FROM hinted WHERE k BETWEEN 1 AND 5;
SET test.reads = on;
SELECT count(*), sum(k) FROM hinted WHERE k BETWEEN 1 AND 5;
SET test.reads = off;
SELECT count(*), sum(k) FROM hinted WHERE k BETWEEN 1 AND 6;
SQL

$node->append_conf('postgresql.conf', "hybridindex.dynamic_memory = 64MB\n");
$node->restart;

# ---- an index-only scan beside VACUUM ----

# VACUUM has flagged an entry of the log, and passed the leaf, when the scan pins the
# leaf and takes the entry from its own tree.  That pin does not hold VACUUM up.
SKIP:
{
	skip 'NOT TESTED: VACUUM held behind its first pass, since this server has no injection points', 1
	  if !has_points($node);
	$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION injection_points;
CREATE TABLE passed (k int) WITH (autovacuum_enabled = off);
CREATE INDEX passed_k ON passed USING hybrid (k own_ops);
INSERT INTO passed VALUES (2), (4), (6);
SELECT hybrid_merge('passed_k');
INSERT INTO passed VALUES (5);
SQL
	my $scan = $node->background_psql('postgres');
	$scan->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off');
	is($scan->query_safe('SELECT k FROM passed ORDER BY k'), "2\n4\n5\n6", 'a session builds its tree');
	$node->safe_psql('postgres', 'DELETE FROM passed WHERE k = 5');
	my $vacuum = start_psql($node, "SELECT injection_points_set_local(), injection_points_attach('hybrid-vacuum-recheck', 'wait') \\g /dev/null\n",
		'VACUUM (INDEX_CLEANUP on) passed;');
	my $pid = held_at($node, 'vacuum-recheck', $vacuum);
	$scan->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT k FROM passed ORDER BY k');
	is($scan->query_safe('FETCH 1 FROM c'), '2', 'it reads behind the first pass of VACUUM');
	$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-vacuum-recheck')");
	ok(finish_psql($vacuum), 'VACUUM does not wait for it') or diag $vacuum->{err};
	is($node->safe_psql('postgres', "SELECT relallvisible FROM pg_class WHERE relname = 'passed'"), '1', 'the page is all visible');
	is($scan->query_safe('FETCH ALL FROM c'), "4\n6", 'the scan leaves the entry out that VACUUM has removed');
	$scan->quit;
	$node->safe_psql('postgres', "SELECT hybrid_index_check('passed_k', true)");

	# one that fails has flagged the entries, so the next one finds none to flag
	pointers_pass_on('two VACUUMs', "SELECT injection_points_set_local(), injection_points_attach('hybrid-vacuum-count', 'error');\nVACUUM (INDEX_CLEANUP on) partial");
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
