# Leaves of two layouts live in one index.  With layout = trie a leaf is columnar
# where its keys have too much in common for prefixes, or where whole keys are
# smaller.  Answers stay right through merges, VACUUM and crashes.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('layouts', 'hybridindex.merge_floor = 8192');

# The layouts of leaves in the file of an index, free pages included.
sub layouts
{
	my ($index) = @_;
	return $node->safe_psql('postgres', <<EOF);
CHECKPOINT;
SELECT string_agg(DISTINCT get_byte(f, b * 8192 + 28)::text, ' ')
FROM pg_read_binary_file(pg_relation_filepath('$index')) f, generate_series(0, length(f) / 8192 - 1) b
WHERE get_byte(f, b * 8192 + 8160 + 16) + get_byte(f, b * 8192 + 8160 + 17) = 2
EOF
}

# Half of the rows are in fifty groups, at the end of mix_u, the others alone.  The
# short texts are the same ones again and again, the long ones differ.
$node->safe_psql('postgres', <<'EOF');
CREATE FUNCTION grp(i int) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
	SELECT ('f' || substr(md5('group ' || i), 2))::uuid
$$;
CREATE FUNCTION mix_rows(lo int, hi int, turn int) RETURNS TABLE (g uuid, u uuid, s text, n int) LANGUAGE sql AS $$
	SELECT CASE WHEN i % 2 = 0 THEN grp(i % 100) ELSE ('0' || substr(md5(turn || '-' || i), 2))::uuid END,
		md5(turn || ' ' || i)::uuid,
		CASE WHEN i % 3 = 0 THEN 'b' || md5(turn || ' ' || i) ELSE 'a' || i % 700 END, i
	FROM generate_series(lo, hi) i
$$;
CREATE TABLE mix (g uuid, u uuid, s text COLLATE "C", n int, v text);
INSERT INTO mix SELECT *, 'value ' || n FROM mix_rows(1, 30000, 0);
CREATE INDEX mix_u ON mix USING hybrid (g, u) WITH (layout = trie, filter = points);
CREATE INDEX mix_s ON mix USING hybrid (s, n) WITH (layout = trie, filter = points);
EOF
my @indexes = qw(mix_u mix_s);
is(join(',', map { layouts($_) } @indexes), '1 2,1 3', 'built in two layouts each');

my %queries = (
	'SELECT * FROM mix WHERE g = grp(8)' => 'index bitmap',
	"SELECT g, u FROM mix WHERE g BETWEEN '0f000000-0000-0000-0000-000000000000' AND grp(12) ORDER BY g DESC, u DESC" => 'order',
	"SELECT v FROM mix WHERE g = grp(8) AND u > '80000000-0000-0000-0000-000000000000'" => 'index bitmap',
	"SELECT v FROM mix WHERE s = 'a77'" => 'index bitmap',
	"SELECT s, n FROM mix WHERE s BETWEEN 'a69' AND 'b4' ORDER BY s, n" => 'order');

# Turns of rows in some places or in all, of updates, and deletions.
foreach my $turn (1 .. 6)
{
	my $n = $turn % 3 ? 30 : 4000;

	$node->safe_psql('postgres', <<EOF);
INSERT INTO mix SELECT *, 'new ' || n FROM mix_rows(1, $n, $turn);
UPDATE mix SET v = v || '!' WHERE n % 997 = $turn;
SELECT hybrid_merge('mix_u'), hybrid_merge('mix_s');
DELETE FROM mix WHERE n % 31 = $turn;
SET enable_seqscan = off;
SELECT count(*) FROM mix WHERE g = grp(8);
EOF
	$node->safe_psql('postgres', 'VACUUM mix') if $turn % 2;
	if ($turn % 3 == 0)
	{
		$node->stop('immediate');
		$node->start;
	}
	same_answers($node, "turn $turn", \%queries, ['mix']);
}
is(join(',', map { layouts($_) } @indexes), '1 2,1 3', 'merged in two layouts each');

$node->safe_psql('postgres', 'REINDEX TABLE mix');
same_answers($node, 'built again', \%queries, ['mix']);
no_crash($node, 'no crash');
done_testing();
