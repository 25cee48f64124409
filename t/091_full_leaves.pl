# Thousands of small merges leave the leaves full, for all kinds of keys in all
# orders. hybrid_index_check says exactly how full they are.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('fill', <<EOF);
hybridindex.background_merge = off
synchronous_commit = off
max_wal_size = 4GB
EOF

# A table is loaded with this number of rows: about twenty leaves of random int8.
# A merge rewrites most of them, or one.
my $rows = 20000;

# Each case has the columns and options of the index, and row i of the load.  Then the
# number of rows of a merge, and each as an expression in i, which goes on from $rows,
# and m, the number of the merge.
my @cases = (
	{   name => 'random int8', key => 'k', merges => 400, entries => 20,
		cols => 'k int8', first => 'hashint8extended(i, 0)', then => 'hashint8extended(i, 0)', fill => 0.85 },
	{   name => 'random int8, one at a time', key => 'k', merges => 1000, entries => 1,
		cols => 'k int8', first => 'hashint8extended(i, 1)', then => 'hashint8extended(i, 1)', fill => 0.85 },
	{   name => 'random text', key => 'k', merges => 150, entries => 20,
		cols => 'k text COLLATE "C"', first => 'md5(i::text)', then => 'md5(i::text)', fill => 0.85 },
	{   name => 'text in one place', key => 'k', merges => 150, entries => 20,
		cols => 'k text COLLATE "C"', first => 'md5(i::text)', then => q('88' || md5(i::text)), fill => 0.85 },
	{   name => 'ascending', key => 'k, t', merges => 150, entries => 20,
		cols => 'k int, t text COLLATE "C"', first => 'i, md5(i::text)', then => 'i, md5(i::text)', fill => 0.9 },
	{   name => 'descending', key => 'k, t', merges => 150, entries => 20,
		cols => 'k int, t text COLLATE "C"', first => 'i, md5(i::text)', then => '-i, md5(i::text)', fill => 0.85 },
	{   name => 'moving places', key => 'k, n, x', merges => 200, entries => 20,
		cols => 'k int, n int, x int8', first => 'i % 50, i / 50, hashint8extended(i, 0)',
		then => 'i % 5 * 9, i / 5, hashint8extended(i, 0)', fill => 0.8 },
	{   name => 'duplicates', key => 'k', merges => 150, entries => 50,
		cols => 'k int', first => 'i % 300', then => 'hashint4(i) % 300', fill => 0.8 },
	{   name => 'filters', key => 'k', with => q(WITH (filter = 'surf')), merges => 150, entries => 20,
		cols => 'k int8', first => 'hashint8extended(i, 2)', then => 'hashint8extended(i, 2)', fill => 0.85 },
	{   name => 'dictionary', key => 'k text_hope_ops', merges => 100, entries => 20,
		cols => 'k text COLLATE "C"', first => q('user.' || md5(i::text) || '@example.org'),
		then => q('user.' || md5(i::text) || '@example.org'), fill => 0.85 },
	{   name => 'deletions', key => 'k', merges => 400, entries => 20, delete => 16,
		cols => 'k int8', first => 'hashint8extended(i, 3)', then => 'hashint8extended(i, 3)', fill => 0.8 },
	{   name => 'deletions in places', key => 'k', merges => 300, entries => 20, delete => 40, places => 1,
		cols => 'k int8', first => 'hashint8extended(i, 4)', then => 'hashint8extended(i, 4)', fill => 0.8 });

my $merges = 0;

foreach my $case (@cases)
{
	my $t = 'f' . ++$merges;
	my $with = $case->{with} // '';
	my $delete = '';

	# of the oldest rows, or of those in one range of keys
	if ($case->{delete})
	{
		$delete = $case->{places}
		  ? "DELETE FROM $t WHERE ctid IN (SELECT ctid FROM $t WHERE k > hashint8extended(m / 10, 9) ORDER BY k LIMIT $case->{delete});"
		  : "DELETE FROM $t WHERE i BETWEEN m * $case->{delete} AND (m + 1) * $case->{delete} - 1;";
	}
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE $t (i int, $case->{cols});
INSERT INTO $t SELECT i, $case->{first} FROM generate_series(1, $rows) i;
CREATE INDEX ${t}_k ON $t USING hybrid ($case->{key}) $with;
EOF

	# VACUUM comes by every fiftieth merge where rows are deleted
	my $step = $delete ? 50 : $case->{merges};
	for (my $m = 0; $m < $case->{merges}; $m += $step)
	{
		my $to = $m + $step - 1;

		$node->safe_psql('postgres', <<EOF);
DO \$\$ BEGIN
	FOR m IN $m .. $to LOOP
		$delete
		INSERT INTO $t SELECT i, $case->{then}
		FROM generate_series($rows + m * $case->{entries} + 1, $rows + (m + 1) * $case->{entries}) i;
		PERFORM hybrid_merge('${t}_k');
		COMMIT;
	END LOOP;
END \$\$;
EOF
		$node->safe_psql('postgres', "VACUUM $t") if $delete;
	}
	$node->safe_psql('postgres', "SELECT hybrid_merge('${t}_k')");

	my ($ret, $out, $err) = $node->psql('postgres',
		"SET client_min_messages = debug1; SELECT hybrid_index_check('${t}_k', true)");
	is($ret, 0, "$case->{name}: check");
	my ($leaves, $fill) = $err =~ /leaves of index "${t}_k": (\d+), ([\d.]+) full/
	  or diag($err);
	my ($merged, $static, $shown) = split /\|/, $node->safe_psql('postgres',
		"SELECT merges, static_entries, fill FROM hybrid_index_stats('${t}_k')");
	cmp_ok($merged, '>=', $case->{merges}, "$case->{name}: $merged merges");
	cmp_ok($fill, '>', $case->{fill}, "$case->{name}: $static entries in $leaves leaves, $fill full");
	cmp_ok(abs($fill - $shown), '<', $leaves > 256 ? 0.1 : 0.0002, "$case->{name}: what hybrid_index_stats shows ($shown)");
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
