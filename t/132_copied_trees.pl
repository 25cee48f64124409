
# A hook that is called after ours passes on a copy of each statement, and fills in
# names.  Event triggers then see another tree than our hook has seen: each statement
# is still handled once, and with its text.
#
# A statement that copies rows to other nodes cannot begin a subtransaction, so it does
# not merge.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $neighbour = neighbour();
my $node = new_node('copied', "shared_preload_libraries = '$neighbour'\nhybridindex.replace_btree = on\nneighbour.savepoints = on\n");

# Indexes of other operator classes stay btree, and a NOTICE says so.
$node->safe_psql('postgres', <<'EOF');
CREATE FUNCTION down(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS down_ops FOR TYPE int USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 down(int, int);
EOF

# The statements, each in a session of its own, and the indexes that are there then.
sub runs
{
	my ($sql, $expected, $what, $notice) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $sql);

	is($ret, 0, $what);
	$err =~ s/^psql:\S+ //mg;
	is($err, $notice // '', "$what: messages");
	is($node->safe_psql('postgres', <<'EOF'), $expected, "$what: indexes");
SELECT coalesce(string_agg(concat_ws(' ', c.relname, a.amname, CASE WHEN reloptions::text ~ 'trie' THEN 'trie' END), ', ' ORDER BY c.relname), '')
FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relkind IN ('i', 'I') AND c.relnamespace = 'public'::regnamespace
EOF
	return;
}

foreach my $when ('the first statement of a session', 'the library is loaded')
{
	my $default = "NOTICE:  an index of table \"t\" will be of access method \"btree\"\n"
	  . "DETAIL:  Access method \"hybrid\" has no operator class like \"down_ops\".";

	note($when);
	runs("CREATE TABLE t (a int, PRIMARY KEY (a) WITH (layout = trie))", 't_pkey hybrid trie', 'CREATE TABLE');
	runs('CREATE INDEX t_b ON t USING btree (a)', 't_b btree, t_pkey hybrid trie', 'USING btree');
	runs('DROP INDEX t_b; CREATE INDEX t_b ON t (a)', 't_b hybrid, t_pkey hybrid trie', 'CREATE INDEX');
	runs('DROP INDEX t_b; CREATE INDEX ON t (a down_ops)', 't_a_idx btree, t_pkey hybrid trie', 'a class that hybrid has not', $default);
	runs('DROP INDEX t_a_idx', 't_pkey hybrid trie', 'DROP INDEX');
	runs('ALTER TABLE t ALTER a TYPE bigint', 't_pkey hybrid trie', 'ALTER COLUMN TYPE');
	runs('ALTER TABLE t ADD CONSTRAINT x EXCLUDE USING btree (a WITH =)', 't_pkey hybrid trie, x btree', 'EXCLUDE USING btree');
	runs('ALTER TABLE t DROP CONSTRAINT x, ADD CONSTRAINT x EXCLUDE (a WITH =)', 't_pkey hybrid trie, x hybrid', 'EXCLUDE');
	runs('ALTER TABLE t DROP CONSTRAINT x; CREATE UNIQUE INDEX u ON t (a)', 't_pkey hybrid trie, u hybrid', 'a unique index');
	runs('ALTER TABLE t ADD CONSTRAINT u UNIQUE USING INDEX u', 't_pkey hybrid trie, u hybrid', 'USING INDEX');
	runs('CREATE TABLE r (a bigint REFERENCES t)', 't_pkey hybrid trie, u hybrid', 'REFERENCES');
	runs('ALTER TABLE r ADD FOREIGN KEY (a) REFERENCES t (a), ALTER a TYPE int', 't_pkey hybrid trie, u hybrid', 'FOREIGN KEY');
	runs('DROP TABLE t, r', '', 'DROP TABLE');
	runs('CREATE TABLE p (a int, b int) PARTITION BY RANGE (a); CREATE INDEX p_b ON p (b)', 'p_b hybrid', 'a partitioned table');
	runs('CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (2)', 'p1_b_idx hybrid, p_b hybrid', 'PARTITION OF');
	runs('CREATE TABLE p2 (a int, b int); CREATE INDEX p2_b ON p2 USING btree (b)', 'p1_b_idx hybrid, p2_b btree, p_b hybrid', 'a table with a btree index');
	runs('ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (2) TO (3)', 'p1_b_idx hybrid, p2_b hybrid, p_b hybrid', 'ATTACH PARTITION',
		"NOTICE:  index \"p2_b\" becomes one of access method \"hybrid\"\nDETAIL:  It is attached to an index of that access method.");
	runs("CREATE MATERIALIZED VIEW v AS SELECT 1 AS one; CREATE UNIQUE INDEX v_one ON v (one)",
		'p1_b_idx hybrid, p2_b hybrid, p_b hybrid, v_one hybrid', 'CREATE MATERIALIZED VIEW');
	runs('REFRESH MATERIALIZED VIEW CONCURRENTLY v', 'p1_b_idx hybrid, p2_b hybrid, p_b hybrid, v_one hybrid', 'REFRESH CONCURRENTLY');
	runs('DROP TABLE p; DROP MATERIALIZED VIEW v', '', 'DROP TABLE');
	$node->append_conf('postgresql.conf', "session_preload_libraries = 'hybridindex'\n");
	$node->reload;
}

my $merges = "SELECT merges > 0 FROM hybrid_index_stats('c_pkey')";
run($node, 'CREATE TABLE c (k int PRIMARY KEY)', 'SET hybridindex.background_merge = off; SET hybridindex.merge_floor = 0; SET neighbour.copies = on; INSERT INTO c SELECT generate_series(1, 30000)');
is(run($node, $merges), 'f', 'a statement that copies rows merges nothing');

$node->stop;
done_testing();
