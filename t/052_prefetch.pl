# Index scans ask for heap pages before they get to them: when, how many, and when
# not.  Pages are not in shared buffers after a restart.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('prefetch', <<EOF);
shared_buffers = 64MB
autovacuum = off
effective_io_concurrency = 16
enable_seqscan = off
enable_bitmapscan = off
max_parallel_workers_per_gather = 0
EOF
$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (k int8, g int4, pad text) WITH (fillfactor = 10);
INSERT INTO t SELECT hashint8extended(i, 0), hashint4(i) & 511, repeat('x', 100) FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t USING hybrid (k) INCLUDE (g);
CREATE INDEX t_g ON t USING hybrid (g);
ANALYZE t;
EOF

# Pages asked for by a statement, and what it returned, in a session of its own.
sub asked
{
	my ($query, $settings) = @_;
	$settings //= '';
	my $out = $node->safe_psql('postgres', <<EOF);
$settings
SELECT heap_prefetches AS before FROM hybrid_index_stats('t_k') \\gset
SELECT heap_prefetches AS before_g FROM hybrid_index_stats('t_g') \\gset
$query;
SELECT heap_prefetches - :before FROM hybrid_index_stats('t_k');
SELECT heap_prefetches - :before_g FROM hybrid_index_stats('t_g');
EOF
	my ($result, $k, $g) = $out =~ /^(.*)\n(-?\d+)\n(-?\d+)\z/s or die $out;
	return ($k + $g, $result);
}

my $all = 'SELECT md5(string_agg(pad || k, $$ $$)) FROM (SELECT k, pad FROM t WHERE k > 0 ORDER BY k LIMIT %d) s';
my $forward = sprintf($all, 2000);
my $backward = 'SELECT md5(string_agg(pad || k, $$ $$)) FROM (SELECT k, pad FROM t WHERE k < 0 ORDER BY k DESC LIMIT 2000) s';

foreach my $part (
	[ 'forward', $forward, '', sub { $_[0] > 500 } ],
	[ 'one row', sprintf($all, 1), '', sub { $_[0] == 0 } ],
	[ 'four rows', sprintf($all, 4), '', sub { $_[0] > 0 && $_[0] <= 7 } ],
	[ 'backward', $backward, '', sub { $_[0] > 500 } ],
	[ 'a cursor that turns round',
		"BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k FROM t WHERE k > 0 ORDER BY k;\nMOVE 500 FROM c; MOVE BACKWARD 300 FROM c; MOVE 1000 FROM c;\nFETCH 1 FROM c; COMMIT",
		'SET enable_indexonlyscan = off;', sub { $_[0] > 300 } ],
	[ 'the setting', $forward, 'SET hybridindex.prefetch = off;', sub { $_[0] == 0 } ],
	[ 'no concurrency', $forward, 'SET effective_io_concurrency = 0;', sub { $_[0] == 0 } ],
	[ 'index-only, nothing visible to all', 'SELECT sum(g) FROM (SELECT g FROM t WHERE k > 0 ORDER BY k LIMIT 2000) s', '', sub { $_[0] > 500 } ],
	[ 'inner side of a nested loop',
		'SELECT count(pad) FROM generate_series(1, 50) i JOIN t ON g = i', 'SET enable_hashjoin = off; SET enable_mergejoin = off;', sub { $_[0] > 500 } ],
	[ 'a point', 'SELECT count(pad) FROM generate_series(1, 50) i, LATERAL (SELECT pad FROM t WHERE g = i LIMIT 1) s', '', sub { $_[0] == 0 } ])
{
	my ($name, $query, $settings, $right) = @$part;

	$node->restart;
	my ($asked, $result) = asked($query, $settings);
	ok($right->($asked), "$name: pages asked for") or diag $asked;
	my ($again, $same) = asked($query, "$settings SET hybridindex.prefetch = off;");
	is($again, 0, "$name: without, none");
	is($same, $result, "$name: the same rows");
}

# ---- as much again ----

# Pages that each of some statements of one session asks for.
sub asked_each
{
	my ($index, @queries) = @_;
	my $stats = "SELECT 'asked ' || heap_prefetches FROM hybrid_index_stats('$index')";
	my @counts = $node->safe_psql('postgres', join(";\n", $stats, map { ($_, $stats) } @queries) . ';') =~ /^asked (\d+)$/mg;
	return map { $counts[$_] - $counts[$_ - 1] } 1 .. $#counts;
}

my $from = 'SELECT count(pad) FROM (SELECT pad FROM t WHERE k > %d ORDER BY k LIMIT %d) s';
my @limits = (40, 40, 40, 1, 1000, 40, 10);
$node->restart;
my @asked = asked_each('t_k', map { sprintf($from, ($_ - 3) * 2e18, $limits[$_]) } 0 .. $#limits);
cmp_ok($asked[0], '>', 45, 'the first scan does not know its end');
cmp_ok($asked[0], '<=', 80, 'it asks for twice as many pages at most');
cmp_ok($asked[2], '<=', 39, 'the third asks for what the two before it returned');
cmp_ok($asked[2], '>', 30, 'the third asks for all of that');
is($asked[3], 0, 'one row: none');
cmp_ok($asked[4], '>', 500, 'a longer one goes on');
cmp_ok($asked[5], '<=', 39, 'the shorter one of the two before counts');

# Ten rows a page each, one page after the other in the order of the index.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE groups (k int4, pad text);
INSERT INTO groups SELECT i / 10 * 7919 % 2000 * 10 + i % 10, repeat('x', 700) FROM generate_series(0, 19999) i;
CREATE INDEX groups_k ON groups USING hybrid (k);
ANALYZE groups;
EOF
$node->restart;
my @groups = map { s/\bt\b/groups/gr } map { sprintf($from, 2000 * $_, 50) } 1 .. 4;
@asked = asked_each('groups_k', @groups);
cmp_ok($asked[0], '>', 15, 'rows that share pages: the first scan goes far beyond its end');
cmp_ok($asked[3], '<=', 8, 'the fourth does not');

# ---- what is in shared buffers ----

$node->restart;
asked($forward);
my ($asked) = asked($forward);
is($asked, 0, 'nothing is asked for that is in shared buffers');
# ---- index-only scans of pages visible to all ----

$node->safe_psql('postgres', 'VACUUM t');
$node->restart;
($asked) = asked('SELECT sum(g) FROM (SELECT g FROM t WHERE k > 0 ORDER BY k LIMIT 2000) s');
is($asked, 0, 'index-only, all visible: none');

# ---- over several levels, and entries of the log ----

$node->safe_psql('postgres', <<EOF);
INSERT INTO t SELECT hashint8extended(i, 0), hashint4(i) & 511, repeat('y', 100) FROM generate_series(20001, 25000) i;
EOF
$node->restart;
my $result;
($asked, $result) = asked($forward);
cmp_ok($asked, '>', 500, 'entries of the log among them');
is((asked($forward, 'SET hybridindex.prefetch = off;'))[1], $result, 'the same rows');

# ---- EXPLAIN ----

SKIP:
{
	skip 'EXPLAIN has no hooks', 1 if $node->safe_psql('postgres', 'SHOW server_version_num') < 180000;
	$node->restart;
	like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS off) $forward"), qr/Heap Prefetches: [1-9]\d{2,}/, 'EXPLAIN shows them');
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
