
# A scan of an array jumps over elements that are not there: it asks all runs for the
# next key.  It is held between two of these, or in front of a leaf, while a merge
# installs its steps, VACUUM removes entries, and other rows get their line pointers.
# It returns what its snapshot shows.  Needs a server with injection points (./dev pg
# 17, ./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('jumps', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
EOF
need_points($node);

# Most elements are not there.  1000 and 1100 are in a leaf; in the log 700 lies below
# them, and others above.  1000 and 1300 are dead before the scan begins, and 1400 is
# deleted afterwards.
my $definition = 'CREATE INDEX j_i ON j USING hybrid (%s)';
my %condition = (
	'k' => 'k = ANY (ARRAY(SELECT generate_series(1, 2000)))',
	'g, k' => 'g IN (1, 2) AND k = ANY (ARRAY(SELECT generate_series(1, 2000)))');
my @changes = (
	"SELECT hybrid_merge('j_i')", 'DELETE FROM j WHERE k = 1400', 'VACUUM (INDEX_CLEANUP on, TRUNCATE false) j',
	'INSERT INTO j SELECT 1, i FROM generate_series(1, 2000, 100) i', "SELECT hybrid_merge('j_i')");

foreach my $columns (sort keys %condition)
{
	foreach my $order ('ASC', 'DESC')
	{
		foreach my $point ($columns eq 'k' ? 'descend' : (), 'dynamic-fetch')
		{
			my $what = "($columns) $order, at $point";

			run($node,
				'DROP TABLE IF EXISTS j', 'CREATE TABLE j (g int, k int) WITH (autovacuum_enabled = off)',
				sprintf($definition, $columns),
				'INSERT INTO j SELECT 1, -1 - abs(hashint4(i) % 1000000) FROM generate_series(1, 3000) i',
				'INSERT INTO j SELECT 1, 10001 + abs(hashint4(i) % 1000000) FROM generate_series(1, 3000) i',
				'INSERT INTO j VALUES (1, 1000), (1, 1100)',
				"SELECT hybrid_merge('j_i')",
				'INSERT INTO j VALUES (1, 700), (1, 1300), (1, 1400), (1, 1800)', 'ANALYZE j',
				'DELETE FROM j WHERE k IN (1000, 1300)');
			my $scan = start_psql($node, <<EOF);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-jump', 'wait');
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
SELECT string_agg(k::text, ' ') FROM (SELECT k FROM j WHERE $condition{$columns} ORDER BY @{[$columns =~ s{\b(\w)\b}{$1 $order}gr]} OFFSET 0) x;
EOF
			ok(held_at($node, 'jump', $scan), "$what: a scan is about to jump") or diag $scan->{err};
			attach_point($node, $point);
			release_point($node, 'jump');
			ok(held_at($node, $point, $scan), "$what: it is held") or diag "$scan->{out} $scan->{err}";
			run($node, "SELECT injection_points_detach('hybrid-$point')", @changes, "SELECT injection_points_wakeup('hybrid-$point')");
			ok(finish_psql($scan), "$what: it goes on") or diag $scan->{err};
			is((split /\n/, $scan->{out})[-1], join(' ', $order eq 'ASC' ? (700, 1100, 1400, 1800) : (1800, 1400, 1100, 700)),
				"$what: it returns what its snapshot shows");
		}
	}
}
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
