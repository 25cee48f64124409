
# A log of over 512 pages is not read in place: its readers enter portions into the
# tree until that is finished.  Other sessions append, remove entries, freeze and merge
# between two portions.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('long', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 10000000
autovacuum = off
EOF

my %queries = (
	'SELECT k FROM b WHERE k < -9000000000000000000 ORDER BY k' => '{order,order_only}',
	'SELECT k FROM b WHERE k > 9000000000000000000 ORDER BY k DESC' => '{order,order_only}',
	'SELECT s, n FROM b WHERE s < $$customer 01$$ ORDER BY s, n' => '{order,order_only}',
	'SELECT s, n FROM b WHERE s = $$customer $$ || md5($$17$$)' => '{index,only,bitmap}',
	'SELECT k FROM b WHERE k = hashint8extended(77, 1)' => '{index,only,bitmap}');

# A table with indexes whose logs no session has read.
sub fill
{
	run($node, 'DROP TABLE IF EXISTS b', <<EOF);
CREATE TABLE b (k int8, s text COLLATE "C", n int, u uuid);
CREATE INDEX b_k ON b USING hybrid (k) INCLUDE (u);
CREATE INDEX b_s ON b USING hybrid (s, n DESC) INCLUDE (k);
INSERT INTO b SELECT hashint8extended(g, 1), 'customer ' || md5((g % 20000)::text), g % 7, md5(g::text)::uuid FROM generate_series(1, 177000) g
EOF
	$node->restart;
	return;
}

fill();
my $entries = "SELECT string_agg(tree_entries::text, ' ' ORDER BY i) FROM unnest(array['b_k', 'b_s']) i, hybrid_index_stats(i::regclass)";
is($node->safe_psql('postgres', <<EOF), '177000 177000', 'a look-up finishes a tree');
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT FROM b WHERE k = 5;
SELECT FROM b WHERE s = 'x';
$entries
EOF
same_answers($node, 'all paths over it', \%queries, ['b']);
run($node, "INSERT INTO b SELECT hashint8extended(g, 2), 'customer ' || md5((g % 20000)::text), g % 7 FROM generate_series(1, 20000) g",
	'DELETE FROM b WHERE n = 3', 'VACUUM b',
	"INSERT INTO b SELECT hashint8extended(g, 3), 'customer ' || md5((g % 20000)::text), g % 7 FROM generate_series(1, 20000) g");
same_answers($node, 'changed since', \%queries, ['b']);
run($node, "SELECT hybrid_merge(i) FROM unnest(array['b_k', 'b_s']::regclass[]) i");
same_answers($node, 'merged', \%queries, ['b']);

# several readers enter portions in turns
fill();
$node->pgbench('-n -c 8 -j 2 -t 4', 0, [qr/processed: 32/], [qr/^(?!.*aborted)/s], 'several readers at once',
	{
		'037_read' => "SET enable_seqscan = off;\nSET enable_bitmapscan = off;\n\\set g random(1, 177000)\nSELECT 1 / (count(*) = 1)::int FROM b WHERE k = hashint8extended(:g, 1);\n"
		  . "SELECT 1 / (count(*) > 7)::int FROM b WHERE s = 'customer ' || md5((:g % 20000)::text);\n"
	});
is($node->safe_psql('postgres', $entries), '177000 177000', 'each entry is entered once');
same_answers($node, 'entered by several readers', \%queries, ['b']);

# too little memory for the tree
fill();
$node->append_conf('postgresql.conf', 'hybridindex.dynamic_memory = 2048');
$node->reload;
same_answers($node, 'little memory', \%queries, ['b']);
$node->append_conf('postgresql.conf', "hybridindex.dynamic_memory = '64MB'");
$node->reload;

# ---- meanwhile ----

my $points = has_points($node)
  && $node->psql('postgres', 'CREATE EXTENSION injection_points') == 0;
my %meanwhile = (
	'insertions' => ["INSERT INTO b SELECT hashint8extended(g, 4), 'new', g FROM generate_series(1, 5000) g"],
	'a merge' => ["SELECT hybrid_merge('b_k')"],
	'an insertion, a merge' => [ 'INSERT INTO b VALUES (7, NULL, 7)', "SELECT hybrid_merge('b_k')", 'INSERT INTO b VALUES (8, NULL, 8)' ],
	'VACUUM and reuse' => [
		'VACUUM (INDEX_CLEANUP on, TRUNCATE off) b',
		"INSERT INTO b SELECT hashint8extended(g, 5), 'again', g FROM generate_series(1, 15000) g" ]);
foreach my $what ($points ? sort keys %meanwhile : ())
{
	fill();
	run($node, 'DELETE FROM b WHERE n = 5');
	my $session = start_psql($node, <<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-in-place', 'wait');
SELECT count(*) FROM b WHERE k IN (hashint8extended(176999, 1), hashint8extended(177000, 1));
EOF
	ok(held_at($node, 'in-place', $session), "$what when a part of the log is entered");
	my ($part) = split / /, $node->safe_psql('postgres', $entries);
	cmp_ok($part, '<', 177000, "$what: the tree is not finished");
	cmp_ok($part, '>', 0, "$what: nor empty");
	run($node, @{ $meanwhile{$what} });
	leave_point($node, 'in-place');
	ok(finish_psql($session), "$what: done");
	is($session->{out} =~ s/\s//gr, '1', "$what: the row that is there");
	same_answers($node, "$what: the same answers", \%queries, ['b']);
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
