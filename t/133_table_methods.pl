
# Tables that other extensions look after.  Indexes of other table access methods stay
# btree where the setting or a conversion would make them hybrid.  An access method that
# is heap by another name counts as heap.  Shards that queries do not show are converted
# with their schema.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $neighbour = neighbour();
my $node = new_node('methods', "session_preload_libraries = 'hybridindex'\nhybridindex.replace_btree = on\n");

# What a statement says to its client.
sub messages
{
	my ($statement) = @_;
	my (undef, undef, $err) = $node->psql('postgres', $statement);
	$err =~ s/^psql:\S+ //mg;
	return $err;
}

# The indexes of a table, in the order of their names.
sub methods
{
	my ($table) = @_;
	return run($node, <<EOF);
SELECT string_agg(c.relname || ' ' || a.amname, ', ' ORDER BY c.relname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
	JOIN pg_am a ON a.oid = c.relam WHERE i.indrelid = '$table'::regclass
EOF
}

sub notice
{
	my ($index, $table) = @_;
	return "NOTICE:  " . ($index ? "index \"$index\" of" : 'an index of') . " table \"$table\" will be of access method \"btree\"\n"
	  . 'DETAIL:  The table is of access method "neighbour", not "heap".';
}

run($node, <<EOF);
CREATE FUNCTION neighbour_handler(internal) RETURNS table_am_handler LANGUAGE C AS '$neighbour', 'neighbour_tableam_handler';
CREATE ACCESS METHOD neighbour TYPE TABLE HANDLER neighbour_handler;
CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler;
CREATE TABLE like_this (a int PRIMARY KEY WITH (layout = trie), b int UNIQUE, c int);
CREATE INDEX like_c ON like_this (c);
EOF

# ---- the setting ----

is(messages('CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c int, CONSTRAINT t_x EXCLUDE (c WITH =)) USING neighbour'),
	join("\n", notice('', 't'), notice('', 't'), notice('t_x', 't')), 'constraints of CREATE TABLE');
is(messages('CREATE INDEX t_c ON t (c)'), notice('t_c', 't'), 'CREATE INDEX');
is(messages('ALTER TABLE t ADD d int UNIQUE, ADD CONSTRAINT t_ab UNIQUE (a, b)'), join("\n", notice('', 't'), notice('t_ab', 't')), 'ALTER TABLE');
is(methods('t'), 't_ab btree, t_b_key btree, t_c btree, t_d_key btree, t_pkey btree, t_x btree', 'the indexes stay btree');
like(messages('CREATE TABLE l (LIKE like_this INCLUDING ALL) USING neighbour'), qr/^(NOTICE:  .*\nDETAIL:  The table is of .*\n?){3}$/, 'LIKE');
is(run($node, "SELECT DISTINCT amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE indrelid = 'l'::regclass"),
	'btree', 'what LIKE copies is btree');
is(messages('CREATE TABLE h (a int PRIMARY KEY, b int UNIQUE) USING heap2; CREATE INDEX h_ab ON h (a, b)'), '', 'heap by another name');
is(methods('h'), 'h_ab hybrid, h_b_key hybrid, h_pkey hybrid', 'has hybrid indexes');
is(messages('CREATE MATERIALIZED VIEW v USING neighbour AS SELECT 1 AS one; CREATE INDEX v_one ON v (one)'), notice('v_one', 'v'), 'a materialized view');
run($node, 'INSERT INTO t SELECT i, i, i FROM generate_series(1, 1000) i; INSERT INTO h SELECT i, i FROM generate_series(1, 1000) i');
is(messages('ALTER TABLE t ALTER a TYPE bigint'), '', 'ALTER COLUMN TYPE');
is(methods('t'), 't_ab btree, t_b_key btree, t_c btree, t_d_key btree, t_pkey btree, t_x btree', 'makes btree indexes again');

# an index of a partitioned table has one of each partition
run($node, <<'EOF');
CREATE TABLE q (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (1) TO (9) PARTITION BY RANGE (a);
CREATE TABLE q2 PARTITION OF q FOR VALUES FROM (9) TO (20);
CREATE INDEX q_before ON q (b);
CREATE TABLE q11 PARTITION OF q1 FOR VALUES FROM (1) TO (2) USING neighbour;
EOF
my $because = 'DETAIL:  Partition "q11": The table is of access method "neighbour", not "heap".';
is(messages('CREATE INDEX q_b ON q (b)'), "NOTICE:  index \"q_b\" of table \"q\" will be of access method \"btree\"\n$because", 'a partition of a partition');
is(methods('q') . ', ' . methods('q11'), 'q_b btree, q_before hybrid, q11_b_idx hybrid, q11_b_idx1 btree', 'its index is btree as well');
is(messages('CREATE INDEX q2_b ON q2 (b)'), '', 'another partition');
is(methods('q2'), 'q2_b hybrid, q2_b_idx hybrid, q2_b_idx1 btree', 'goes by itself');
if ($node->pg_version >= 18)
{
	is(messages('ALTER TABLE q ADD PRIMARY KEY (a)'), "NOTICE:  an index of table \"q\" will be of access method \"btree\"\n$because", 'a key');
	is(messages('CREATE TABLE w (a int PRIMARY KEY) PARTITION BY RANGE (a) USING neighbour; CREATE TABLE w1 PARTITION OF w FOR VALUES FROM (1) TO (2)'),
		notice('', 'w'), 'a partitioned table whose partitions will be of another access method');
	is(methods('w1'), 'w1_pkey btree', 'they are');
}

# ---- conversions ----

$node->append_conf('postgresql.conf', "hybridindex.replace_btree = off\n");
$node->reload;
my $refusal = "index \"t_c\" cannot be of access method \"hybrid\"\n"
  . "DETAIL:  The table is of access method \"neighbour\", not \"heap\".\nHINT:  Use ALTER TABLE public.t SET ACCESS METHOD heap first.";
is(messages("SELECT hybrid_convert('t_c')"), "ERROR:  $refusal", 'hybrid_convert');
is(messages("CALL hybrid_convert_concurrently('t_c')"), "ERROR:  $refusal", 'hybrid_convert_concurrently');
is(messages("CALL hybrid_convert_concurrently('t_c', 'trie')"), "ERROR:  $refusal", 'with a layout');
like(messages("CALL hybrid_convert_table('t')"), qr/^(NOTICE:  skipping index .*\n(DETAIL:  .*\n)?HINT:  .*\n?){6}$/, 'hybrid_convert_table skips them');
run($node, "CREATE SCHEMA s; CREATE TABLE s.t (a int PRIMARY KEY) USING neighbour; CREATE TABLE s.h (a int PRIMARY KEY) USING heap2");
like(messages("CALL hybrid_convert_schema('s')"),
	qr/NOTICE:  skipping index "t_pkey": index "t_pkey" cannot be.*\nDETAIL:  The table is of access method "neighbour", not "heap"\.\nHINT:  Use ALTER TABLE s\.t /,
	'hybrid_convert_schema');
is(methods('s.t') . ', ' . methods('s.h'), 't_pkey btree, h_pkey hybrid', 'converts the others');
like(run($node, "SELECT obstacle FROM hybrid_estimate('t_c')"), qr/^The table is of access method "neighbour", not "heap"\./, 'hybrid_estimate knows');

# a partition among others
run($node, <<'EOF');
CREATE TABLE p (a int, b int) PARTITION BY RANGE (a);
CREATE INDEX p_b ON p (b);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (2) USING neighbour;
CREATE TABLE p2 (a int, b int) USING neighbour;
CREATE INDEX p2_b ON p2 (b);
EOF
like(messages("CALL hybrid_convert_concurrently('p_b')"), qr/^ERROR:  index "p1_b_idx" cannot be .*\nDETAIL:  .*\nHINT:  .* public\.p1 SET/, 'a partition');
run($node, 'DROP TABLE p1');
run($node, "SELECT hybrid_convert('p_b')");
like(messages('ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (2) TO (3)'), qr/\nERROR:  index "p2_b" cannot be .*\nDETAIL:  .*\nHINT:  .* public\.p2 SET/,
	'ATTACH PARTITION');

# the hint helps
is(messages("ALTER TABLE t SET ACCESS METHOD heap; SELECT hybrid_convert('t_c')"), '', 'after SET ACCESS METHOD heap');

# ---- hybrid indexes that are there all the same ----

run($node, 'ALTER TABLE t SET ACCESS METHOD neighbour; INSERT INTO t SELECT i, i, i FROM generate_series(1001, 2000) i; DELETE FROM t WHERE a % 2 = 0; '
	. 'SELECT hybrid_merge(\'t_c\'); VACUUM t; INSERT INTO t SELECT i, i, i FROM generate_series(2001, 3000) i');
is(methods('t') =~ /t_c \w+/ && $&, 't_c hybrid', 'SET ACCESS METHOD changes no index');
run($node, "SELECT hybrid_index_check('t_c', true)");
is(run($node, "SELECT hyb_same('SELECT a FROM t WHERE c BETWEEN 500 AND 2500', 'index bitmap')"), 't', 'its answers are right');
is(messages("SELECT hybrid_revert('t_c')"), '', 'and it can be reverted');

# ---- shards ----

run($node, 'CREATE SCHEMA d; CREATE TABLE d.t (a int PRIMARY KEY); CREATE TABLE d.t_102008 (a int); ALTER TABLE d.t_102008 ADD CONSTRAINT t_pkey_102008 PRIMARY KEY (a)');
is(messages("LOAD '$neighbour'; SELECT 1 / count(*) FROM pg_class WHERE relname = 't_pkey_102008'"), 'ERROR:  division by zero', 'the shard is hidden');
is(messages("LOAD '$neighbour'; CALL hybrid_convert_schema('d')"),
	join("\n", map { "NOTICE:  index \"$_\" is of access method \"hybrid\" now" } 't_pkey', 't_pkey_102008'), 'hybrid_convert_schema finds it');
is(messages("LOAD '$neighbour'; CALL hybrid_revert_schema('d'); SELECT 1 / count(*) FROM pg_class WHERE relname = 't_pkey_102008'") =~ s/^NOTICE.*\n//mgr,
	'ERROR:  division by zero', 'and so does hybrid_revert_schema; then it is hidden again');
is(methods('d.t') . ', ' . methods('d.t_102008'), 't_pkey btree, t_pkey_102008 btree', 'both are btree again');

$node->stop;
done_testing();
