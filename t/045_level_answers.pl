
# An index of several static levels answers as one of a single level does.  Servers
# without assertions cannot make any, so they skip this.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('levels');
my ($ret) = $node->psql('postgres', 'SET hybridindex.test_levels = 2');
if ($ret != 0 || $node->safe_psql('postgres', 'SHOW debug_assertions') ne 'on')
{
	plan skip_all => 'this server has no assertions';
}
$node->append_conf('postgresql.conf', "hybridindex.test_levels = 3\nhybridindex.merge_floor = 100");
$node->reload;

# ---- by hand: each merge begins a level ----

$node->safe_psql('postgres', <<EOF);
CREATE TABLE l (k int, s text COLLATE "C", v int);
CREATE UNIQUE INDEX l_k ON l USING hybrid (k);
CREATE INDEX l_s ON l USING hybrid (s, k) INCLUDE (v) WITH (filter = surf);
CREATE INDEX l_v ON l USING hybrid (v DESC NULLS FIRST);
EOF
foreach my $round (0 .. 3)
{
	$node->safe_psql('postgres', <<EOF);
INSERT INTO l SELECT 4 * g + $round, md5((g % 300)::text), nullif(g % 50, 7) FROM generate_series(1, 4000) g;
SELECT hybrid_merge('l_k'), hybrid_merge('l_s'), hybrid_merge('l_v');
INSERT INTO l SELECT -4 * g - $round, md5((g % 300)::text), nullif(g % 50, 7) FROM generate_series(1, 300) g;
EOF
	is($node->safe_psql('postgres', "SELECT count(hybrid_index_check(i, true)) FROM unnest('{l_k, l_s, l_v}'::regclass[]) i"),
		3, "round $round: sound");
}
foreach my $index ('l_k', 'l_s', 'l_v')
{
	my ($ret, $out, $err) = $node->psql('postgres', "SET client_min_messages = debug1; SELECT hybrid_index_check('$index')");
	like($err, qr/leaves of index "$index": \d+, .* in 3 levels/, "$index has three levels");
}

my %queries = (
	'SELECT k FROM l WHERE k > -200 ORDER BY k' => '{order,order_only}',
	'SELECT k FROM l WHERE k < 300 ORDER BY k DESC' => '{order,order_only}',
	'SELECT s, k, v FROM l WHERE s >= $$9$$ ORDER BY s, k' => '{order,order_only}',
	'SELECT s, k, v FROM l WHERE s < $$3$$ AND k > 100 ORDER BY s DESC, k DESC' => '{order,order_only}',
	'SELECT k FROM l WHERE s = md5($$17$$)' => '{index,only,bitmap}',
	'SELECT k FROM l WHERE s IN (md5($$1$$), md5($$2$$), $$nothing$$) AND k > 0' => '{index,only,bitmap}',
	'SELECT v FROM l WHERE v IS NULL' => '{index,only,bitmap}',
	'SELECT v FROM l WHERE v BETWEEN 10 AND 12 ORDER BY v DESC' => '{order,order_only}');

same_answers($node, 'all paths over three levels', \%queries, ['l']);
my ($code, $out, $err) = $node->psql('postgres', 'INSERT INTO l SELECT 4 * 2000 + r, $$x$$, 1 FROM unnest(array[0, 1, 2, 3]) r');
like($err, qr/duplicate key value violates unique constraint "l_k"/, 'a unique index knows keys of each level');
$node->safe_psql('postgres', 'DELETE FROM l WHERE k % 3 = 0; VACUUM l');
same_answers($node, 'after VACUUM', \%queries, ['l']);
$node->safe_psql('postgres', 'INSERT INTO l SELECT 3 * g, md5((g % 300)::text), g % 50 FROM generate_series(1, 2000) g; SELECT hybrid_merge(i) FROM unnest(array[$$l_k$$, $$l_s$$, $$l_v$$]::regclass[]) i');
same_answers($node, 'line pointers used again', \%queries, ['l']);
$node->stop('immediate');
$node->start;
same_answers($node, 'after a crash', \%queries, ['l']);

# ---- a newer level with more nodes than the older one ----

# Long separators: a unit of the older level goes on beyond nodes of the newer one,
# where a step has to end.
my $pass = $node->safe_psql('postgres', <<EOF);
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
CREATE TABLE n (s text COLLATE "C");
INSERT INTO n SELECT md5(g::text) FROM generate_series(1, 3000) g;
CREATE INDEX n_s ON n USING hybrid ((repeat('x', 1200) || s));
INSERT INTO n SELECT md5((-g)::text) FROM generate_series(1, 8000) g;
SET hybridindex.test_levels = 2;
SELECT hybrid_merge('n_s') > 0;
SET hybridindex.test_levels = 1;
SELECT hybrid_merge('n_s');
SELECT levels, hybrid_index_check('n_s', true) FROM hybrid_index_stats('n_s');
DROP TABLE n;
EOF
is($pass, "t\n0\n1|", 'a pass over several nodes of the newer level');

# ---- the regression tests, but for those that show steps of merges, numbers of leaves, entries and sizes ----

$node->append_conf('postgresql.conf', 'hybridindex.merge_floor = 8192');
$node->reload;
my @tests = grep { !/^(?:compression|fill|filter_bounds|inspection|hope|killed|long_keys|merge|points|queue|shrink|surf|trie|trie_text|vacuum|vacuum_order|versions)$/ } map { m{([^/]+)\.sql$} } glob(test_root() . '/sql/*.sql');
is(join(' ', run_regress($node, @tests)), '', scalar(@tests) . ' regression tests over several levels');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
