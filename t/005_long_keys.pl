
# Indexes with long values are right after a crash, on a standby, and while they are
# rebuilt.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', "hybridindex.background_merge = off\nautovacuum = off\n", allows_streaming => 1);
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE l (id int, c text COLLATE "C", a text[]);
CREATE FUNCTION long(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT repeat('prefix ', 80 + i % 20) || string_agg('item ' || j * i % 97 || ' of list ' || i % 13, ', ') FROM generate_series(1, 20 + i * 7 % 200) j
$$;
CREATE UNIQUE INDEX l_c ON l USING hybrid (c, id);
CREATE INDEX l_a ON l USING hybrid (a) INCLUDE (c);
INSERT INTO l SELECT i, long(i), array[long(i + 1)] FROM generate_series(1, 300) i;
SELECT hybrid_merge('l_c'), hybrid_merge('l_a');
INSERT INTO l SELECT i, long(i), array[long(i + 1)] FROM generate_series(301, 500) i;
SQL
my $standby = new_standby($node, 'standby');

my @queries = (
	'SELECT count(*), sum(id), sum(hashtext(c)) FROM l WHERE c > long(77)',
	'SELECT count(*), sum(hashtext(c)) FROM l WHERE a <= array[long(200)]',
	'SELECT id FROM l WHERE c = long(444)',
	"SELECT string_agg(id::text, ' ') FROM (SELECT id FROM l ORDER BY c, id) x");

sub same
{
	my ($in, $what) = @_;
	foreach my $query (@queries)
	{
		my ($by_index, $without) = map {
			$in->safe_psql('postgres', "SET enable_seqscan = $_; SET enable_sort = $_; SET enable_bitmapscan = off; "
				. ($_ eq 'on' ? 'SET enable_indexscan = off; SET enable_indexonlyscan = off; ' : '') . $query)
		} 'off', 'on';
		is($by_index, $without, "$what: " . substr($query, 0, 60));
	}
	return;
}

sub check
{
	my ($in) = @_;
	$in->safe_psql('postgres', "SELECT hybrid_index_check('l_c', true), hybrid_index_check('l_a', true)");
	return;
}

same($node, 'at first');
$node->stop('immediate');
$node->start;
same($node, 'after a crash');
check($node);
$node->safe_psql('postgres', "UPDATE l SET c = c || '!' WHERE id % 3 = 0; DELETE FROM l WHERE id % 5 = 0");
$node->safe_psql('postgres', 'VACUUM l');
$node->safe_psql('postgres', "SELECT hybrid_merge('l_c'), hybrid_merge('l_a')");
$node->stop('immediate');
$node->start;
same($node, 'merged, after a crash');
check($node);
$node->wait_for_catchup($standby);
same($standby, 'standby');
$node->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY l');
same($node, 'rebuilt');
check($node);
my ($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO l SELECT id, c FROM l WHERE id = 499');
like($err, qr/duplicate key/, 'unique');

# The planner asks for a column's extreme values, which may be long
$node->safe_psql('postgres', "ANALYZE l; INSERT INTO l SELECT 1000 + i, repeat('z', 9000 + i) FROM generate_series(1, 30) i");
like($node->safe_psql('postgres', "EXPLAIN SELECT * FROM l WHERE c > repeat('y', 1000)"), qr/rows=/, 'estimate at the end');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT length(max(c)), length(min(c)) > 500 FROM l"), '9030|t', 'extreme values');
no_crash($node, 'primary');

done_testing();
