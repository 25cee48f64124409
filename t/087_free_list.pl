
# A free block that cannot be read stops no process that would overwrite it, but
# hybrid_index_check reports it.  Blocks that a crash left behind are found.  For
# that an index that has none of them is not read.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridPages;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('free_list', <<EOF, extra => ['--data-checksums']);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
restart_after_crash = on
EOF

# The blocks that the first free-list page names.
sub free_blocks
{
	my ($content) = @_;
	my $trunk = get32($content, 0, $meta{freelist});

	return map { get32($content, $trunk, 24 + 4 * $_) } 0 .. get32($content, $trunk, $trailer + 24) - 1;
}

my %queries = (
	'SELECT k FROM t WHERE k BETWEEN 100 AND 2000' => 'index bitmap',
	'SELECT k FROM t ORDER BY k' => 'order_only');

# ---- unreadable free blocks ----

$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (k int);
CREATE INDEX t_k ON t USING hybrid (k);
INSERT INTO t SELECT hashint4(g) % 100000 FROM generate_series(1, 20000) g;
SELECT hybrid_merge('t_k');
EOF
same_answers($node, 'before', \%queries, ['t']);
my $file = index_file($node, 't_k');
$node->stop;
my $content = slurp_file($file);
my @free = free_blocks(\$content);
cmp_ok(scalar(@free), '>=', 20, 'there are free blocks: ' . scalar(@free));
foreach my $block (@free)
{
	substr($content, $block * $block_size + 4000, 8) = "\xA5" x 8;
}
open(my $fh, '+<:raw', $file) or die $!;
print $fh $content;
close($fh) or die $!;
$node->start;

my ($ret, $out, $err) = $node->psql('postgres', "SELECT hybrid_index_check('t_k')");
like($err, qr/invalid page in block \d+/, 'the check reports free blocks that cannot be read');
same_answers($node, 'queries do not need them', \%queries, []);
($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO t SELECT hashint4(g) % 100000 FROM generate_series(20001, 24000) g');
is($ret, 0, 'insertions overwrite them') or diag $err;
($ret, $out, $err) = $node->psql('postgres', "SELECT hybrid_merge('t_k')");
is($ret, 0, 'merges overwrite them') or diag $err;
foreach my $round (1 .. 20)
{
	# as long as damaged blocks are left
	($ret, $out, $err) = $node->psql('postgres', "SELECT hybrid_index_check('t_k')");
	last if $ret == 0;
	$node->safe_psql('postgres', "INSERT INTO t SELECT hashint4(g) % 100000 FROM generate_series(1, 4000) g");
}
is($err, '', 'the check passes when all have been overwritten');
same_answers($node, 'after', \%queries, ['t']);

# ---- free blocks that another session keeps locked ----

# A comparison function that waits, under the lock of the leaf that it searches.
$node->safe_psql('postgres', <<'EOF');
CREATE TABLE w (k int);
CREATE FUNCTION w_cmp(a int, b int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('w.wait', true) = 'on' THEN
		PERFORM pg_advisory_xact_lock_shared(1);
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CALL hyb_operator_class('w');
CREATE INDEX w_k ON w USING hybrid (k w_ops);
INSERT INTO w SELECT g * 2 FROM generate_series(1, 600) g;
SELECT hybrid_merge('w_k');
EOF
my $owner = start_psql($node, "SELECT pg_advisory_lock(1);\n", 'SELECT pg_sleep(300);');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND granted");
my $reader = start_psql($node, "SET enable_seqscan = off; SET w.wait = on;\n", 'SELECT count(*) FROM w WHERE k = 601;');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
	'a search waits in a leaf');

# the leaf becomes free, and all free blocks are asked for, to become log pages,
# leaves, and pages of the free list
my $writer = start_psql($node, map { "INSERT INTO w SELECT g * 2 + 1 FROM generate_series(1, $_) g;\nSELECT hybrid_merge('w_k');\n" } 600, 600, 6000);
my $ended = 0;
foreach (1 .. 300)
{
	eval { $writer->{handle}->pump_nb };
	last if $ended = !$writer->{handle}->pumpable;
	select(undef, undef, undef, 0.1);
}
ok($ended, 'no session waits for the block of the former leaf');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
	'1', 'that block is still locked');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted");
finish_psql($owner);
ok(finish_psql($writer), 'insertions and merges succeed') or diag $writer->{err};
ok(finish_psql($reader), 'the search succeeds') or diag $reader->{err};
is($reader->{out}, "0\n", 'the search has the right answer');
same_answers($node, 'all rows are there', { 'SELECT k FROM w WHERE k BETWEEN 100 AND 900' => 'index bitmap' }, ['w']);

# ---- a session that fails before it has overwritten a block ----

SKIP:
{
	skip 'this server has no injection points', 2
	  if !has_points($node);
	$node->safe_psql('postgres', <<EOF);
CREATE EXTENSION injection_points;
CREATE EXTENSION pageinspect;
CREATE TABLE e (k int);
CREATE INDEX e_k ON e USING hybrid (k);
INSERT INTO e SELECT g FROM generate_series(1, 20000) g;
SELECT hybrid_merge('e_k');
EOF
	my $e_file = index_file($node, 'e_k');
	$node->restart;
	$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-delta-page', 'error')");
	($ret, $out, $err) = $node->psql('postgres', 'INSERT INTO e VALUES (0)');
	like($err, qr/error triggered for injection point hybrid-delta-page/, 'an insertion fails with a free block in hand');
	$content = slurp_file($e_file);
	my $zero = $node->safe_psql('postgres',
		'SELECT count(*) FROM unnest(ARRAY[' . join(',', free_blocks(\$content))
		  . "]) b WHERE get_raw_page('e_k', b) = decode(repeat('00', $block_size), 'hex')");
	is($zero, '0', 'a reader that still reads the free block does not find zeroes');
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-delta-page')");
}

# ---- blocks left by a crash ----

sub vacuum_reads
{
	my ($index) = @_;
	my $reads = "SELECT pg_stat_force_next_flush(); SELECT idx_blks_read + idx_blks_hit FROM pg_statio_all_indexes WHERE indexrelname = '$index'";
	my (undef, $before) = split /\n/, $node->safe_psql('postgres', $reads), -1;
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) ' . ($index =~ /^(\w+)_/)[0]);
	my (undef, $after) = split /\n/, $node->safe_psql('postgres', $reads), -1;
	return $after - $before;
}

$node->safe_psql('postgres', <<EOF);
CREATE TABLE h (s text COLLATE "C");
INSERT INTO h SELECT 'customer ' || hashint4(g) || ' of ' || md5(g::text) FROM generate_series(1, 150000) g;
CREATE INDEX h_s ON h USING hybrid (s text_hope_ops);
EOF
$node->safe_psql('postgres', $_) foreach 'VACUUM t', 'VACUUM h';
cmp_ok($node->safe_psql('postgres', "SELECT pg_relation_size('h_s') / $block_size"), '>', 400, 'an index with dictionary pages');
# it looks at some leaves, to see how full they are
cmp_ok(vacuum_reads('h_s'), '<', 150, 'VACUUM does not read it in search of lost blocks');
my %lost = (t_k => 3, h_s => 4);
my %files = map { $_ => index_file($node, $_) } keys %lost;
my %before = map { $_ => $node->safe_psql('postgres', "SELECT free_pages FROM hybrid_index_stats('$_')") } keys %lost;
$node->stop;
append_to_file($files{$_}, "\0" x ($block_size * $lost{$_})) foreach keys %lost;
$node->start;
foreach my $index (sort keys %lost)
{
	my $reads = vacuum_reads($index);
	cmp_ok($reads, '>', 50, "VACUUM looks for the lost blocks of $index");
	is($node->safe_psql('postgres', "SELECT free_pages - $before{$index} FROM hybrid_index_stats('$index')"),
		$lost{$index}, 'VACUUM gives lost blocks to the free list');
	cmp_ok(vacuum_reads($index), '<', $reads / 2, 'once');
	is($node->safe_psql('postgres', "SELECT hybrid_index_check('$index', true)"), '', 'the check passes');
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
