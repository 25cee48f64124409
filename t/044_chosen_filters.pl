
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
	# without a worker no membership filter is made, which uniqueness checks ask first
	$node->append_conf('postgresql.conf', "hybridindex.test_levels = 3\nhybridindex.merge_floor = 100\nhybridindex.background_merge = off");
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

		# a level of a single leaf has nowhere to say where its filter is
		cmp_ok($checks, '<=', 1000 * $filtered, "$columns: asked are filters of $which of $levels levels");
		cmp_ok($checks, '>=', 1000 * ($filtered > 1 ? $filtered - 1 : $filtered), "$columns: of all that can have some");
		cmp_ok($negatives, '>=', 0.96 * $checks, "$columns: which spares as many leaves");
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

# ---- filter = auto ----

# Filter pages of an index, by the default.
sub filters { return $node->safe_psql('postgres', "SELECT filter_pages > 0 FROM hybrid_index_stats('$_[0]') WHERE hybrid_index_check('$_[0]', true) IS NOT NULL"); }
sub restart_with { $node->append_conf('postgresql.conf', "shared_buffers = $_[0]"); $node->restart; return; }

$node->append_conf('postgresql.conf', "hybridindex.background_merge = off\nhybridindex.merge_floor = 1000000\nautovacuum = off\nmax_connections = 10");
restart_with('1MB');
$node->safe_psql('postgres', <<EOF);
CREATE TABLE random (k int8);
INSERT INTO random SELECT hashint8extended(g, 0) FROM generate_series(1, 300000) g;
CREATE TABLE ascending (k int8);
INSERT INTO ascending SELECT g * 1099511627776 + hashint8(g) FROM generate_series(1, 200000) g;
CREATE TABLE inexact (k numeric);
INSERT INTO inexact SELECT k FROM random;
CREATE UNIQUE INDEX auto_i ON random USING hybrid (k);
CREATE UNIQUE INDEX none_i ON random USING hybrid (k) WITH (filter = none);
CREATE INDEX not_unique_i ON random USING hybrid (k) WITH (filter = auto);
CREATE UNIQUE INDEX small_i ON random USING hybrid (k) WHERE k BETWEEN 0 AND 500000000000000000;
CREATE UNIQUE INDEX ascending_i ON ascending USING hybrid (k);
CREATE UNIQUE INDEX inexact_i ON inexact USING hybrid (k);
EOF
is(filters('auto_i'), 't', 'built: a unique index larger than shared_buffers');
is(filters($_), 'f', "built: $_") foreach qw(none_i not_unique_i small_i ascending_i inexact_i);

# merges: filters of all or of none of the leaves, since all of them are rewritten
$node->safe_psql('postgres', <<EOF);
DROP INDEX none_i, not_unique_i, small_i;
CREATE TABLE grown (k int8, v int);
CREATE UNIQUE INDEX grown_i ON grown USING hybrid (k);
CREATE INDEX grown_v ON grown (v);
INSERT INTO grown SELECT k FROM random;
SELECT hybrid_merge('grown_i');
INSERT INTO ascending SELECT g * 1099511627776 + hashint8(g) FROM generate_series(200001, 300000) g;
SELECT hybrid_merge('ascending_i');
EOF
is(filters('grown_i'), 'f', 'merged: nothing was known');
is($node->safe_psql('postgres', "SELECT unique_above > 50000, unique_absent, unique_present FROM hybrid_index_stats('ascending_i')"),
	't|0|0', 'what uniqueness checks met is counted');
is(filters('ascending_i'), 'f', 'merged: keys that ascend');
$node->safe_psql('postgres', "INSERT INTO grown SELECT hashint8extended(g, 0) FROM generate_series(300001, 400000) g; SELECT hybrid_merge('grown_i')");
is(filters('grown_i'), 't', 'merged: keys that are not there');
$node->restart;
$node->safe_psql('postgres', "INSERT INTO grown SELECT hashint8extended(g, 0) FROM generate_series(400001, 400900) g; SELECT hybrid_merge('grown_i')");
my $few = $node->safe_psql('postgres', "SELECT filter_pages::float8 / leaf_pages FROM hybrid_index_stats('grown_i')");
is(filters('grown_i'), 't', 'a small merge, after a restart, keeps filters');
$node->safe_psql('postgres', 'UPDATE grown SET v = 1 WHERE ctid < $$(300,1)$$');
$node->safe_psql('postgres', "INSERT INTO grown SELECT hashint8extended(g, 0) FROM generate_series(500001, 500090) g; SELECT hybrid_merge('grown_i')");
cmp_ok($node->safe_psql('postgres', "SELECT filter_pages::float8 / leaf_pages FROM hybrid_index_stats('grown_i')"),
	'<', $few / 2, 'merged: keys that are there');
restart_with('32MB');
$node->safe_psql('postgres', "INSERT INTO random SELECT hashint8extended(g, 0) FROM generate_series(300001, 400000) g; SELECT hybrid_merge('auto_i')");
is(filters('auto_i'), 'f', 'merged: fits shared_buffers');
$node->safe_psql('postgres', "INSERT INTO random SELECT hashint8extended(g, 0) FROM generate_series(600001, 700000) g; SELECT hybrid_merge('auto_i')");
is(filters('auto_i'), 'f', 'merged again');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
