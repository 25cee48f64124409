
# After a restart each reader of a log enters a part of it into a tree, and reads
# the log in place until the tree is finished.  Other sessions append, remove
# entries, freeze and merge meanwhile.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('unfinished', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 10000000
autovacuum = off
EOF

my $collation = has_icu($node) ? 'en-x-icu' : 'C';
note 'NOT TESTED: text ordered by ICU, since this server has none' if $collation eq 'C';
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
my %queries = (
	'SELECT k FROM b WHERE k < -9200000000000000000 ORDER BY k' => '{order,order_only}',
	'SELECT k FROM b WHERE k > 9200000000000000000 ORDER BY k DESC' => '{order,order_only}',
	'SELECT k FROM b WHERE k = hashint8extended(7777, 1)' => '{index,only,bitmap}',
	'SELECT s, n FROM b WHERE s = $$customer $$ || md5($$17$$)' => '{index,only,bitmap}',
	'SELECT l FROM b WHERE l = md5($$777$$)' => '{index,only,bitmap}',
	'SELECT a FROM b WHERE a IN (1, 5000, 29999, 30001, 60001)' => '{index,only,bitmap}');

# Half of the entries are in leaves, half are in a log that no session has read.
sub fill
{
	run($node, 'DROP TABLE IF EXISTS b', <<EOF);
CREATE TABLE b (a int, k int8, s text COLLATE "C", n int, l text COLLATE "$collation");
INSERT INTO b SELECT g, hashint8extended(g, 1), 'customer ' || md5((g % 2000)::text), g % 7, md5((g % 4000)::text) FROM generate_series(1, 3000) g;
CREATE UNIQUE INDEX b_a ON b USING hybrid (a);
CREATE INDEX b_k ON b USING hybrid (k);
CREATE INDEX b_s ON b USING hybrid (s, n DESC) INCLUDE (k);
CREATE INDEX b_l ON b USING hybrid (l);
INSERT INTO b SELECT g, hashint8extended(g, 1), 'customer ' || md5((g % 2000)::text), g % 7, md5((g % 4000)::text) FROM generate_series(3001, 30000) g
EOF
	$node->restart;
	return;
}

sub tree_entries
{
	my ($index) = @_;
	return $node->safe_psql('postgres', "SELECT tree_entries FROM hybrid_index_stats('$index')");
}

# ---- look-ups finish a tree ----

fill();
is($node->safe_psql('postgres', "$by_index SELECT count(*) FROM b WHERE k = hashint8extended(30000, 1)"), '1', 'a look-up finds the last entry');
my @entries = (tree_entries('b_k'));
cmp_ok($entries[0], '<', 27000, 'the tree is not finished');
foreach my $look (1 .. 12)
{
	is($node->safe_psql('postgres', "$by_index SELECT count(*) FROM b WHERE k = hashint8extended(1000 + 2000 * $look, 1)"), '1', "look-up $look");
	push @entries, tree_entries('b_k');
}
is(join(' ', @entries), join(' ', sort { $a <=> $b } @entries), 'look-ups add to it');
is($entries[-1], '27000', 'look-ups finish it');

fill();
is($node->safe_psql('postgres', "$by_index SELECT count(*), sum(a) FROM b WHERE a > 3 AND a % 2 = 0"), '14999|225014998', 'a long scan');
is(tree_entries('b_a'), '27000', 'a long scan finishes the tree');

# ---- answers ----

fill();
same_answers($node, 'in place', \%queries);
my $last = "$by_index SELECT string_agg(a::text, ' ') FROM (SELECT a FROM b ORDER BY a DESC LIMIT 5) x";
fill();
is($node->safe_psql('postgres', $last), '30000 29999 29998 29997 29996', 'the last ones');
fill();
is($node->safe_psql('postgres', $last =~ s/ORDER BY a DESC/WHERE a > 4000 ORDER BY a/r), '4001 4002 4003 4004 4005', 'the first ones');

# A reader drops what is farthest while it reads.  Here the greatest keys come first.
run($node, 'CREATE TABLE c (a int)', 'CREATE INDEX c_a ON c USING hybrid (a)', 'INSERT INTO c SELECT generate_series(30000, 1, -1)');
$node->restart;
is($node->safe_psql('postgres', $last =~ s/FROM b/FROM c/r), '30000 29999 29998 29997 29996', 'the last ones, which come first in the log');
cmp_ok(tree_entries('c_a'), '<', 30000, 'they were read in place');
fill();
my ($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO b (a) VALUES (29999)');
like($err, qr/duplicate key value violates unique constraint "b_a"/, 'uniqueness');

# entries that VACUUM flags, and line pointers that are used again
fill();
run($node, 'DELETE FROM b WHERE n = 3', "$by_index SELECT FROM b WHERE k = 5", 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) b',
	"INSERT INTO b SELECT g, hashint8extended(g, 2), 'again', 8, 'again' FROM generate_series(40001, 43000) g");
is($node->safe_psql('postgres', "$by_index SET enable_indexonlyscan = off; SELECT count(*) FROM b WHERE k IN (SELECT hashint8extended(g, 1) FROM generate_series(20000, 20006) g)"),
	'6', 'dead entries lead nowhere');
same_answers($node, 'with dead entries', \%queries, ['b']);
my %k = map { $_ => $queries{$_} } grep { /SELECT k/ } keys %queries;

# many readers at once
fill();
$node->pgbench('-n -c 8 -j 2 -t 40', 0, [qr/processed: 320/], [qr/^(?!.*aborted)/s], 'readers and writers at once',
	{
		'039_read@20' => "SET enable_seqscan = off;\nSET enable_bitmapscan = off;\n\\set k random(1, 29990)\nSELECT 1 / (count(*) = 10)::int FROM b WHERE a BETWEEN :k AND :k + 9;\n",
		'039_insert@5' => "INSERT INTO b (a) SELECT 100000 + max(a) FROM b WHERE a > 29990 ON CONFLICT DO NOTHING;\n",
		'039_vacuum@1' => "VACUUM (INDEX_CLEANUP on) b;\n"
	});
same_answers($node, 'the same answers', \%queries);

# ---- meanwhile ----

my $points = has_points($node)
  && $node->psql('postgres', 'CREATE EXTENSION injection_points') == 0;
my %meanwhile = (
	'insertions' => ["INSERT INTO b SELECT g, hashint8extended(g, 4), 'new', g FROM generate_series(30001, 31000) g"],
	'a merge, an insertion' => [ "SELECT hybrid_merge('b_k')", 'INSERT INTO b VALUES (40001, 8)' ],
	'VACUUM and reuse' => [
		'VACUUM (INDEX_CLEANUP on, TRUNCATE off) b',
		"INSERT INTO b SELECT g, hashint8extended(g, 5), 'again', 9 FROM generate_series(50001, 54000) g" ]);
foreach my $what ($points ? sort keys %meanwhile : ())
{
	fill();
	run($node, 'DELETE FROM b WHERE n = 5');
	my $session = start_psql($node, <<EOF);
$by_index
SET enable_indexonlyscan = off;
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-in-place', 'wait');
SELECT a, n FROM b WHERE k IN (hashint8extended(29999, 1), hashint8extended(30000, 1));
EOF
	ok(held_at($node, 'in-place', $session), "$what before a log is read in place");
	run($node, @{ $meanwhile{$what} });
	leave_point($node, 'in-place');
	ok(finish_psql($session), "$what: done");
	is($session->{out} =~ s/\s//gr, '29999|4', "$what: the row that is there");
	same_answers($node, "$what: the same answers", \%k);
}

# a merge that has done one step when the server ends
if ($points)
{
	fill();
	my $merger = start_psql($node, <<EOF);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-step-installed', 'wait');
SET hybridindex.merge_step_pages = 1;
SELECT hybrid_merge('b_k');
EOF
	ok(held_at($node, 'step-installed', $merger), 'a merge is held after a step');
	$node->stop('immediate');
	finish_psql($merger);
	$node->start;
	my @keys = map { "hashint8extended(10 * $_, 1)" } 1 .. 2999;
	is($node->safe_psql('postgres', "$by_index SELECT count(*) FROM b WHERE k IN ($keys[$_ * 29], $keys[$_ * 41])"), $_ == 0 ? '1' : '2', "part of the frozen log is merged, look-up $_")
	  foreach 0 .. 3;
	same_answers($node, 'part of the frozen log is merged', \%k, ['b']);
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
