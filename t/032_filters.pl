
# Which leaves have filters.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('filters');

# ---- levels: a key that is not there costs no leaf of a newer one ----

# Servers without assertions cannot make any.
if ($node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on')
{
	$node->append_conf('postgresql.conf', "hybridindex.test_levels = 3\nhybridindex.merge_floor = 100");
	$node->reload;

	# Columns of the index, a search for absent keys, and how many of the levels have
	# filters: all, all but the oldest, none.
	my $absent = 'SELECT count((SELECT id FROM p WHERE u = 2 * g::int8 + 1)) FROM generate_series(1, 1000) g';
	foreach my $test (
		[ 'UNIQUE INDEX', '(u)', $absent, 'newer' ],
		[ 'UNIQUE INDEX', '(u)', 'INSERT INTO p SELECT -g, 2 * g::int8 + 1 FROM generate_series(1, 1000) g', 'newer' ],
		[ 'INDEX', '(u) WITH (filter = none)', $absent, 'newer' ],
		[ 'INDEX', '(u DESC) INCLUDE (id) WITH (filter = surf)', $absent, 'all' ],
		[ 'INDEX', '(w) WITH (filter = points)', 'SELECT count((SELECT id FROM p WHERE w = g::text)) FROM generate_series(1, 1000) g', 'all' ],
		[ 'INDEX', '(n)', 'SELECT count((SELECT id FROM p WHERE n = g + 0.5)) FROM generate_series(1, 1000) g', 'none' ])
	{
		my ($index, $columns, $search, $which) = @$test;
		my $counts = "SELECT 'counts', filter_checks, filter_negatives FROM hybrid_index_stats('p_i')";
		my $rows = 'SELECT g, hashint8extended(g, 0) / 2 * 2, hashint8extended(g, 1), md5(g::text) FROM generate_series';

		$node->safe_psql('postgres', <<EOF);
CREATE TABLE p (id int8, u int8, n numeric, w text COLLATE "C");
INSERT INTO p $rows(1, 10000) g;
CREATE $index p_i ON p USING hybrid $columns;
INSERT INTO p $rows(10001, 20000) g;
SELECT hybrid_merge('p_i');
EOF
		my ($ret, $out, $err) = $node->psql('postgres', "SET client_min_messages = debug1; SELECT hybrid_index_check('p_i', true)");
		my ($levels) = $err =~ /in (\d) levels/ or die $err;
		my $filtered = $which eq 'all' ? $levels : $which eq 'newer' ? $levels - 1 : 0;
		my @counts = map { /^counts\|(\d+)\|(\d+)$/ ? [ $1, $2 ] : () } split /\n/,
		  $node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $counts; $search; $counts");
		my ($checks, $negatives) = map { $counts[1][$_] - $counts[0][$_] } 0, 1;

		is($checks, 1000 * $filtered, "$columns: asked are filters of $which of $levels levels");
		cmp_ok($negatives, '>=', 960 * $filtered, "$columns: which spares as many leaves");
		if ($index =~ /UNIQUE/)
		{
			($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO p SELECT id, u FROM p WHERE id = 17001');
			like($err, qr/duplicate key value violates unique constraint "p_i"/, 'a key in a newer level is found');
		}
		$node->safe_psql('postgres', 'DROP TABLE p');
	}
	$node->append_conf('postgresql.conf', "hybridindex.test_levels = 1\nhybridindex.merge_floor = 8192");
	$node->reload;
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
