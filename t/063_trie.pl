# Indexes that hold the beginnings of keys answer as others do: the regression
# tests whose outputs do not tell how large an index is, or whether a scan reads
# the table, pass where each index that can has layout = trie.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %other = map { $_ => 1 }
  qw(trie trie_text advise arrays check_heap ddl_options fill filter_kind grafite killed like merge order_scan parallel planner points row_compare skip_scan surf);
my @regress = grep { !$other{$_} } map { m{([^/]+)\.sql$} ? $1 : () } sort glob(test_root() . '/sql/*.sql');

my $node = new_node('trie', <<EOF);
hybridindex.test_trie = on
hybridindex.merge_floor = 8192
EOF
my ($missing) = $node->psql('postgres', "LOAD 'hybridindex'; SHOW hybridindex.test_trie");
plan skip_all => 'the library was built without assertions, and so without the setting for tests'
  if $missing;

sub regress_ok
{
	my ($name, @tests) = @_;
	my $outputs = PostgreSQL::Test::Utils::tempdir();
	my $passed = run_log([
			$ENV{PG_REGRESS}, '--bindir=', '--host=' . $node->host, '--port=' . $node->port,
			'--dbname=contrib_regression', '--inputdir=' . test_root(), "--outputdir=$outputs", @tests
		]);
	ok($passed, $name);
	diag(slurp_file("$outputs/regression.diffs")) if !$passed && -f "$outputs/regression.diffs";
	return;
}

regress_ok('regression tests with layout = trie', @regress);

# newer levels keep keys
$node->append_conf('postgresql.conf', "hybridindex.test_levels = 3\nhybridindex.merge_floor = 300");
$node->reload;
regress_ok('and several levels', qw(constraints dml_random multicolumn types unique));
done_testing();
