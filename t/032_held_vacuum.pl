
# The pin of an index-only scan holds VACUUM up while merges go on beside it.  VACUUM
# finds dead entries wherever they have moved, waits for scans that may still return
# them, and marks those that a scan has read already.  The free list is right when
# blocks on it are pinned.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('held_vacuum', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
wal_consistency_checking = 'generic'
max_connections = 40
EOF

# A session with an index-only cursor over a query, opened.
sub open_cursor
{
	my ($query) = @_;
	my $session = $node->background_psql('postgres');

	$session->query_safe(<<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR $query;
EOF
	return $session;
}

sub fetch
{
	my ($session, $how) = @_;
	return split /\n/, $session->query_safe("FETCH $how FROM c");
}

sub close_cursor
{
	my ($session) = @_;
	$session->query_safe('COMMIT');
	$session->quit;
	return;
}

# VACUUM of a table in the background, which comes to wait for a pin.
sub held_vacuum
{
	my ($table) = @_;
	my $vacuum = start_psql($node, "VACUUM (TRUNCATE false, INDEX_CLEANUP on) $table;");

	ok($node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'VACUUM%$table%' AND $waits_for_pin AND pid <> pg_backend_pid()"),
		"VACUUM of $table waits for a pin");
	return $vacuum;
}

sub finished
{
	my ($vacuum, $what) = @_;
	ok(finish_psql($vacuum), $what) or diag $vacuum->{err};
	return;
}

# ---- entries that a merge moves behind VACUUM's first pass ----

# The cursor is at the first entry, on the first page of a log or the first leaf.
# Those of the log move to leaves, or those of leaves to other leaves that are
# written for entries among them, at the end of the file or in free blocks.
my %load = (
	'the log' => [ 2500, 3000, <<EOF ],
CREATE INDEX moved_k ON moved USING hybrid (k);
INSERT INTO moved SELECT i, 0 FROM generate_series(1, 1000) i;
INSERT INTO moved SELECT i, 0 FROM generate_series(2001, 4000) i;
EOF
	'leaves' => [ 20000, 1000, <<EOF ]);
INSERT INTO moved SELECT i, 0 FROM generate_series(1, 24000) i;
CREATE INDEX moved_k ON moved USING hybrid (k);
INSERT INTO moved SELECT i, 2 FROM generate_series(14010, 24000, 10) i;
EOF
$load{'leaves, with free blocks'} = [ 14200, 1000, $load{leaves}[2] =~ s/(?=INSERT.* 2 )/INSERT INTO moved SELECT i, 3 FROM generate_series(2001, 24000, 2) i; SELECT hybrid_merge('moved_k');\n/r ];
my $cursor;
my $vacuum;
foreach my $where (sort keys %load)
{
	my ($low, $merged, $load) = @{ $load{$where} };
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS moved; CREATE TABLE moved (k int, v int); $load");
	$node->safe_psql('postgres', "DELETE FROM moved WHERE k BETWEEN $low AND $low + 500 AND v = 0");
	$cursor = open_cursor('SELECT k FROM moved ORDER BY k');
	is(join(' ', fetch($cursor, 2)), '1 2', "a cursor on entries of $where");
	$vacuum = held_vacuum('moved');
	is($node->safe_psql('postgres', "SELECT hybrid_merge('moved_k')"), $merged, 'a merge moves all entries of the log');
	close_cursor($cursor);
	finished($vacuum, 'VACUUM of moved entries');
	$node->safe_psql('postgres', 'INSERT INTO moved SELECT i, 1 FROM generate_series(30001, 30501) i');
	is($node->safe_psql('postgres', "SELECT count(*) FROM moved WHERE v = 1 AND ctid < (SELECT max(ctid) FROM moved WHERE v = 0)"),
		501, 'line pointers are used again');
	same_answers($node, 'dead entries that had moved are gone',
		{ "SELECT k FROM moved WHERE k BETWEEN $low - 100 AND $low + 600" => 'index only bitmap', 'SELECT k FROM moved ORDER BY k' => 'order order_only' }, ['moved']);
}

# The same with more new leaves than VACUUM treats under one merge lock, each
# with dead entries.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE units (k text COLLATE "C", v int);
CREATE INDEX units_k ON units USING hybrid (k);
INSERT INTO units SELECT lpad(i::text, 8, '0'), 0 FROM generate_series(1, 500) i;
INSERT INTO units SELECT 'k' || md5(i::text) || md5('b' || i) || md5('c' || i) || md5('d' || i), i FROM generate_series(1, 6000) i;
DELETE FROM units WHERE v % 6 = 1;
EOF
$cursor = open_cursor('SELECT k FROM units ORDER BY k');
fetch($cursor, 2);
$vacuum = held_vacuum('units');
is($node->safe_psql('postgres', "SELECT hybrid_merge('units_k')"), 6500, 'a merge moves all entries');
cmp_ok($node->safe_psql('postgres', "SELECT leaf_pages FROM hybrid_index_stats('units_k')"), '>', 40, 'to many leaves');
close_cursor($cursor);
finished($vacuum, 'VACUUM of many new leaves');
$node->safe_psql('postgres', "INSERT INTO units SELECT 'z' || i, -1 FROM generate_series(1, 1000) i");
is($node->safe_psql('postgres', 'SELECT count(*) > 500 FROM units WHERE v = -1 AND ctid < (SELECT ctid FROM units WHERE v = 6000)'),
	't', 'line pointers are used again');
same_answers($node, 'dead entries are gone from all of them',
	{ "SELECT k FROM units WHERE k > 'k'" => 'index only bitmap', 'SELECT k FROM units ORDER BY k' => 'order order_only' }, ['units']);

# ---- entries that a scan has read when VACUUM flags them ----

# Keys above 1000 are on the first pages of the log, those below on later ones.
# The cursor is on the latter when it has read entries of both; it goes on to
# the former, which VACUUM has done with, and VACUUM finishes.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE flagged (k int, v int);
CREATE INDEX flagged_k ON flagged USING hybrid (k);
INSERT INTO flagged SELECT i, 0 FROM generate_series(1001, 1600) i;
INSERT INTO flagged SELECT i, 0 FROM generate_series(1, 1000) i;
EOF
$node->safe_psql('postgres', 'VACUUM (DISABLE_PAGE_SKIPPING) flagged');
$node->safe_psql('postgres', 'DELETE FROM flagged WHERE k BETWEEN 1200 AND 1500');
$cursor = open_cursor('SELECT k FROM flagged ORDER BY k');
my @keys = fetch($cursor, 990);
$vacuum = held_vacuum('flagged');
push @keys, fetch($cursor, 60);
finished($vacuum, 'VACUUM finishes when the cursor has gone on');
push @keys, fetch($cursor, 'ALL');
close_cursor($cursor);
is(join(' ', @keys), join(' ', 1 .. 1199, 1501 .. 1600), 'the scan does not return what VACUUM has removed');

# ---- a leaf that was built during the first pass is pinned ----

# A cursor holds VACUUM at the first page of the log; another one gets to a leaf
# that was built meanwhile, and has read dead entries from it: VACUUM waits for
# it too.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE late (k int, v int);
CREATE INDEX late_k ON late USING hybrid (k);
INSERT INTO late SELECT i, 0 FROM generate_series(1, 1000) i;
INSERT INTO late SELECT i, 0 FROM generate_series(2001, 4000) i;
EOF
$node->safe_psql('postgres', 'VACUUM (DISABLE_PAGE_SKIPPING) late');
$node->safe_psql('postgres', 'DELETE FROM late WHERE k BETWEEN 2020 AND 2100');
$cursor = open_cursor('SELECT k FROM late ORDER BY k');
fetch($cursor, 2);
$vacuum = held_vacuum('late');
$node->safe_psql('postgres', "SELECT hybrid_merge('late_k')");
my $second = open_cursor('SELECT k FROM late WHERE k > 2000 ORDER BY k');
@keys = fetch($second, 10);
close_cursor($cursor);
ok($node->poll_query_until('postgres', <<EOF), 'VACUUM has finished its second pass, and waits for the new leaf');
SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'VACUUM%late%' AND $waits_for_pin AND pid <> pg_backend_pid()
	AND (SELECT static_tombstones > 0 FROM hybrid_index_stats('late_k'))
EOF
push @keys, fetch($second, 'ALL');
close_cursor($second);
finished($vacuum, 'VACUUM of a new leaf');
is(join(' ', @keys), join(' ', 2001 .. 2019, 2101 .. 4000), 'the second cursor does not return what VACUUM has removed');
same_answers($node, 'after VACUUM of a new leaf',
	{ 'SELECT k FROM late WHERE k BETWEEN 2000 AND 2200' => 'index only bitmap' }, ['late']);

# ---- entries of the log that a leaf's pin holds ----

# The cursor is on an entry of the log, with only a leaf pinned.  The leaf's entries
# lie beside it in the order of keys, or none of them is between the scan's bounds.
foreach my $case ([ 'among those of a leaf', 'SELECT k FROM beside ORDER BY k' ],
	[ 'without any of a leaf', 'SELECT k FROM beside WHERE k > 2000 ORDER BY k' ])
{
	my ($what, $query) = @$case;
	$node->safe_psql('postgres', $_) foreach ('DROP TABLE IF EXISTS beside',
		'CREATE TABLE beside (k int, v int)',
		'INSERT INTO beside SELECT i, 0 FROM generate_series(2, 2000, 2) i',
		'CREATE INDEX beside_k ON beside USING hybrid (k)',
		'INSERT INTO beside SELECT i, 1 FROM generate_series(1, 3999, 2) i',
		'VACUUM (DISABLE_PAGE_SKIPPING) beside',
		'DELETE FROM beside WHERE v = 1 AND k % 20 = 11');
	my $expected = join("\n", grep { $query !~ /WHERE/ || $_ > 2000 } grep { $_ % 20 != 11 && ($_ < 2000 || $_ % 2) || $_ == 2000 } 1 .. 3999);
	$cursor = open_cursor($query);
	@keys = fetch($cursor, 1);
	$vacuum = held_vacuum('beside');
	push @keys, fetch($cursor, 'ALL');
	close_cursor($cursor);
	finished($vacuum, "VACUUM finishes when the cursor on entries $what is at its end");
	is(join("\n", @keys), $expected, "a cursor on entries $what does not return what VACUUM has removed");
	same_answers($node, 'later scans do not return it either', { 'SELECT k FROM beside WHERE k > 10' => 'index only bitmap' }, ['beside']);
}

# ---- the free list while its last blocks are pinned ----

# Some leaves are pinned, and retired by a merge.  They come to lie above other
# blocks in the free list, so that what is taken comes from below.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE pinned (k int, s text COLLATE "C");
CREATE INDEX pinned_k ON pinned USING hybrid (k, s);
INSERT INTO pinned SELECT i, md5(i::text) FROM generate_series(1, 4000) i;
SELECT hybrid_merge('pinned_k');
INSERT INTO pinned SELECT i * 2, md5(i::text) FROM generate_series(1, 2000) i;
SELECT hybrid_merge('pinned_k');
EOF
$node->safe_psql('postgres', 'VACUUM (DISABLE_PAGE_SKIPPING) pinned');
my ($leaves, $free) = split /\|/, $node->safe_psql('postgres', "SELECT leaf_pages, free_pages FROM hybrid_index_stats('pinned_k')");
cmp_ok($leaves, '>=', 4, "several leaves ($leaves)");
cmp_ok($free, '>', 10, "free blocks ($free)");
my @cursors = map { open_cursor("SELECT k FROM pinned WHERE k >= $_ ORDER BY k, s") } 1, 1300, 2600, 3900;
fetch($_, 1) foreach @cursors;
$node->safe_psql('postgres', 'CHECKPOINT');
$node->safe_psql('postgres', "INSERT INTO pinned SELECT i * 37, 'new' FROM generate_series(1, 110) i; SELECT hybrid_merge('pinned_k')");
$node->safe_psql('postgres', "INSERT INTO pinned SELECT i, md5(i::text) FROM generate_series(10001, 13000) i");
my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM pinned');
$node->stop('immediate');
$_->{run}->finish foreach @cursors;
ok($node->start, 'recovery of a free list that was taken from in the middle');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pinned'), $rows, 'the recovered index has all rows');
same_answers($node, 'after recovery', { 'SELECT k, s FROM pinned ORDER BY k, s' => 'order_only' }, ['pinned']);
$node->safe_psql('postgres', "INSERT INTO pinned SELECT i, md5(i::text) FROM generate_series(20001, 26000) i; SELECT hybrid_merge('pinned_k')");
same_answers($node, 'blocks of that free list are used', { 'SELECT k, s FROM pinned ORDER BY k, s' => 'order_only' }, ['pinned']);

# ---- the free list has pinned blocks only, and VACUUM has named an end of the file ----

# The cursor keeps the index open, so VACUUM names an end and cannot cut it off.
# Then it pins a leaf, which a merge retires.  Insertions use up the free list but
# for that leaf, and extend the file: the list stays where it is.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE named (k int, s text COLLATE "C");
CREATE INDEX named_k ON named USING hybrid (k, s);
INSERT INTO named SELECT i, md5(i::text) FROM generate_series(1, 30000) i;
SELECT hybrid_merge('named_k');
DELETE FROM named WHERE k % 2 = 0;
EOF
my $size = "SELECT pg_relation_size('named_k')";
$cursor = open_cursor('SELECT k FROM named WHERE k >= 1 ORDER BY k, s');
my $before = $node->safe_psql('postgres', $size);
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) named');
is($node->safe_psql('postgres', $size), $before, 'an end of the file is named, and not cut off');
fetch($cursor, 1);
$node->safe_psql('postgres', "INSERT INTO named SELECT i, 'new' FROM generate_series(1, 100) i; SELECT hybrid_merge('named_k')");
$node->safe_psql('postgres', "INSERT INTO named SELECT i, repeat(md5(i::text), 40) FROM generate_series(1, 2000) i");
cmp_ok($node->safe_psql('postgres', $size), '>', $before, 'insertions extend the file');
is(($node->psql('postgres', "SELECT hybrid_index_check('named_k', true)"))[2], '', 'every block is in use or on a list');
close_cursor($cursor);

no_crash($node, 'nothing crashed, replayed pages were consistent');
$node->stop;
done_testing();
