
# Merges overtake VACUUM, and the validation of an index, before they read their first
# page: all entries have moved to new blocks, and the old ones have other entries.
# VACUUM removes dead entries from there, and validation adds none a second time.  Needs
# a server with injection points (./dev pg 17, ./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('overtaken', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
EOF
need_points($node);

sub fill
{
	my ($table, $from, $to) = @_;
	return "INSERT INTO $table SELECT hashint4(i), md5(i::text) FROM generate_series($from, $to) i";
}

# What the index has now goes to leaves in new blocks, and the log's blocks get others.
sub overtake
{
	my ($table, $index) = @_;
	my $pages = "SELECT total_pages FROM hybrid_index_stats('$index')";
	my $before = $node->safe_psql('postgres', $pages);

	run($node, "SELECT hybrid_merge('$index')", fill($table, 10001, 14000));
	cmp_ok($node->safe_psql('postgres', "SELECT leaf_pages FROM hybrid_index_stats('$index')"), '>', 4, "$index: there are leaves");
	cmp_ok($node->safe_psql('postgres', "SELECT free_pages FROM hybrid_index_stats('$index')"), '<', $before / 2, "$index: blocks are used again");
	return;
}

my %queries = ('SELECT k, s FROM %s ORDER BY k' => 'order order_only', 'SELECT s FROM %s WHERE k > 0' => 'index bitmap');

sub right
{
	my ($what, $table) = @_;
	same_answers($node, $what, { map { (sprintf($_, $table) => $queries{$_}) } keys %queries }, [$table]);
	return;
}

# functions compare numbers of any length, so VACUUM goes another way
foreach my $type ('int', 'numeric')
{
	# VACUUM
	run($node, 'DROP TABLE IF EXISTS w, c', "CREATE TABLE w (k $type, s text) WITH (autovacuum_enabled = off)",
		'CREATE INDEX w_k ON w USING hybrid (k) INCLUDE (s)', fill('w', 1, 4000), 'DELETE FROM w WHERE k % 3 = 0');
	attach_point($node, 'vacuum-surveyed');
	my $vacuum = start_psql($node, "VACUUM (INDEX_CLEANUP on, TRUNCATE false) w;\n");
	ok(held_at($node, 'vacuum-surveyed', $vacuum), "$type: VACUUM is held before it reads the index") or diag $vacuum->{err};
	overtake('w', 'w_k');
	release_point($node, 'vacuum-surveyed');
	ok(finish_psql($vacuum), "$type: VACUUM ends") or diag $vacuum->{err};
	run($node, fill('w', 20001, 21000));
	right("$type: it has removed the entries of dead rows, whose line pointers have other rows", 'w');

	# validation, which a conversion does as CREATE INDEX CONCURRENTLY does
	run($node, "CREATE TABLE c (k $type, s text) WITH (autovacuum_enabled = off)", fill('c', 1, 100),
		'CREATE UNIQUE INDEX c_k ON c USING btree (k) INCLUDE (s)');
	attach_point($node, 'convert-built');
	my $conversion = start_psql($node, "CALL hybrid_convert_concurrently('c_k');\n");
	ok(held_at($node, 'convert-built', $conversion), "$type: a conversion is held with a new index that gets entries")
	  or diag $conversion->{err};
	run($node, fill('c', 101, 4000));
	attach_point($node, 'vacuum-surveyed');
	release_point($node, 'convert-built');
	ok(held_at($node, 'vacuum-surveyed', $conversion), "$type: and before it reads them") or diag $conversion->{err};
	overtake('c', 'c_k_ccnew');
	release_point($node, 'vacuum-surveyed');
	ok(finish_psql($conversion), "$type: the conversion ends") or diag $conversion->{err};
	right("$type: the new index has each entry once", 'c');
	is($node->safe_psql('postgres', "SELECT static_entries + dynamic_entries FROM hybrid_index_stats('c_k')"),
		$node->safe_psql('postgres', 'SELECT count(*) FROM c'), "$type: and no others");
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
