# Leaves have a layout, which only its own functions know.  A second layout,
# in servers with assertions only, shows that: the regression tests whose
# outputs do not tell how large an index is pass with it, and leaves of both
# layouts live in one index, through merges, VACUUM and crashes.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @regress = qw(types unique merge multicolumn include vacuum arrays skip_scan order_scan
  partial_expression regressions comparison check_heap collations temp_unlogged);

my $node = new_node('layouts', <<EOF);
hybridindex.test_layout = on
hybridindex.merge_floor = 8192
EOF
my ($missing) = $node->psql('postgres', "LOAD 'hybridindex'; SHOW hybridindex.test_layout");
plan skip_all => 'the library was built without assertions, and so without the layout for tests'
  if $missing;

# ---- regression tests ----

my $outputs = PostgreSQL::Test::Utils::tempdir();
my $passed = run_log([
		$ENV{PG_REGRESS}, '--bindir=', '--host=' . $node->host, '--port=' . $node->port,
		'--dbname=contrib_regression', '--inputdir=' . test_root(), "--outputdir=$outputs", @regress
	]);
ok($passed, 'regression tests with the layout for tests');
diag(slurp_file("$outputs/regression.diffs")) if !$passed && -f "$outputs/regression.diffs";

# ---- both layouts in one index ----

# The layouts of leaves in the file of an index, free pages included.
sub layouts
{
	my ($index) = @_;
	return $node->safe_psql('postgres', <<EOF);
CHECKPOINT;
SELECT string_agg(DISTINCT get_byte(f, b * 8192 + 28)::text, ' ')
FROM pg_read_binary_file(pg_relation_filepath('$index')) f, generate_series(0, length(f) / 8192 - 1) b
WHERE get_byte(f, b * 8192 + 8160 + 16) = 2
EOF
}

$node->safe_psql('postgres', <<EOF);
SET hybridindex.test_layout = off;
CREATE TABLE mix (k int8, s text COLLATE "C", v text);
INSERT INTO mix SELECT hashint8extended(i, 0), 'key ' || i % 5000 || md5(i::text), 'value ' || i
FROM generate_series(1, 30000) i;
CREATE INDEX mix_k ON mix USING hybrid (k) WITH (filter = 'surf');
CREATE INDEX mix_s ON mix USING hybrid (s text_hope_ops) INCLUDE (v);
CREATE INDEX mix_few ON mix USING hybrid ((k % 300));
EOF
my @indexes = qw(mix_k mix_s mix_few);
is(join(',', map { layouts($_) } @indexes), '1,1,1', 'built in one layout');

my %queries = (
	'SELECT * FROM mix WHERE k > 0' => 'index bitmap',
	'SELECT k FROM mix WHERE k BETWEEN -1000000000000000000 AND 10 ORDER BY k DESC' => 'order order_only',
	'SELECT k FROM mix WHERE k IN (hashint8extended(3, 0), hashint8extended(4, 0), 5)' => 'index only',
	"SELECT s, v FROM mix WHERE s >= 'key 3' ORDER BY s" => 'order order_only',
	'SELECT v FROM mix WHERE k % 300 = 7' => 'index bitmap');

# In turns of layout: rows in some places or in all, updates, and deletions.
# What a merge does not touch keeps its layout.
foreach my $turn (1 .. 6)
{
	my $layout = $turn % 2 ? 'on' : 'off';
	my $n = $turn % 3 ? 30 : 4000;

	$node->safe_psql('postgres', <<EOF);
SET hybridindex.test_layout = $layout;
INSERT INTO mix SELECT hashint8extended(i, $turn), 'key ' || $turn || i, 'new ' || i FROM generate_series(1, $n) i;
UPDATE mix SET v = v || '!' WHERE k % 997 = $turn;
SELECT hybrid_merge(c) FROM unnest(array['mix_k', 'mix_s', 'mix_few']::regclass[]) c;
DELETE FROM mix WHERE k % 31 = $turn;
SET enable_seqscan = off;
SELECT count(*) FROM mix WHERE k % 300 = 7;
EOF
	is(layouts('mix_k'), '1 4', 'two layouts in one index') if $turn == 1;
	$node->safe_psql('postgres', 'VACUUM mix') if $turn % 2;
	if ($turn % 3 == 0)
	{
		$node->stop('immediate');
		$node->start;
	}
	same_answers($node, "turn $turn", \%queries, ['mix']);
}

$node->safe_psql('postgres', 'REINDEX TABLE mix');
is(join(',', map { layouts($_) } @indexes), '4,4,4', 'built in the other layout');
same_answers($node, 'after that', \%queries, ['mix']);
no_crash($node, 'no crash');
done_testing();
