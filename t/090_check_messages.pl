
# hybrid_index_check finds each kind of damage, and says which.  For each of its
# messages an index file is damaged in a chosen place.  The files are copies of some
# templates, put in the place of those of empty tables.
#
# For these messages no damage of a file is known, because another comparison comes
# first or because a file is not enough:
# * an entry's length, and a malformed key: reading the log reports these, and leaves
#   are joined anew
# * the order of rows across leaves: fences are compared first
# * a child above the leaves with a filter: takes three levels
# * "cannot be searched" and "does not answer": need a version that changes
# * a filter that changed while it was looked at
# * a tree's own structure and order, and entries held twice: need damaged shared
#   memory
#
# Opening a leaf already compares the number of entries that it claims.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridPages;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $none = 0xFFFFFFFF;
my $conf = <<EOF;
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
EOF
my $node = new_node('messages', "${conf}ignore_checksum_failure = on\n");

# ---- templates ----

# The templates:
# * plain: several leaves under one internal node, some with tombstones, a log of two
#   pages, free blocks
# * frozen: the same, in the middle of a merge
# * surf: with range filters
# * points: with filters for points
# * text: leaves of strings
# * levels: two levels, the newer one with filters for points, in the middle of a pass
# * include: with an INCLUDE column
my $fill = 'SELECT hashint4(g), md5(g::text) FROM generate_series';
my %columns = (plain => '(k)', frozen => '(k)', surf => "(k, s) WITH (filter = 'surf')",
	points => '(k) WITH (filter = points)', text => '(s)', levels => '(k, s)', include => '(k) INCLUDE (s)');
foreach my $name (sort keys %columns)
{
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE $name (k int, s text COLLATE "C");
CREATE INDEX ${name}_i ON $name USING hybrid $columns{$name};
INSERT INTO $name $fill(1, 9000) g;
SELECT hybrid_merge('${name}_i');
INSERT INTO $name $fill(9001, 10000) g;
SELECT hybrid_merge('${name}_i');
DELETE FROM $name WHERE k BETWEEN 0 AND 10000000;
VACUUM (INDEX_CLEANUP on) $name;
INSERT INTO $name $fill(20001, 22000) g;
EOF
}
$node->safe_psql('postgres',
	pass_begun('levels_i', 'INSERT INTO levels SELECT hashint4(g * 200 + i), md5(i::text) FROM generate_series(100000, 100199) i'));

$node->safe_psql('postgres', "DELETE FROM text WHERE s = md5('20002')");

# payload: rows of one key with other INCLUDE columns; pairs: the same as keys of two
# columns, whose TIDs descend
my %rows = (payload => 'i', pairs => '400 - i');
@columns{ 'payload', 'pairs' } = ('(k) INCLUDE (s)', '(k, s)');
$node->safe_psql('postgres', <<EOF) foreach keys %rows;
CREATE TABLE $_ (k int, s text COLLATE "C");
INSERT INTO $_ SELECT 7, 'row ' || ($rows{$_}) + 1000 FROM generate_series(1, 300) i;
CREATE INDEX ${_}_i ON $_ USING hybrid $columns{$_};
EOF

# one step after a freeze; the next one comes when a page of the log is full
$node->safe_psql('postgres', <<EOF);
SET hybridindex.merge_floor = 1;
ALTER INDEX frozen_i SET (merge_ratio = 1000);
DO \$\$
BEGIN
	FOR i IN 1 .. 100 LOOP
		EXIT WHEN (SELECT merge_running FROM hybrid_index_stats('frozen_i'));
		INSERT INTO frozen SELECT hashint4(g), '' FROM generate_series(30000 + i * 50, 30049 + i * 50) g;
	END LOOP;
END \$\$;
EOF
is($node->safe_psql('postgres', "SELECT merge_running FROM hybrid_index_stats('frozen_i')"), 't', 'a merge is under way');

# ---- pages ----

sub child { return child_entry($_[0], root($_[0]), $_[1]); }
sub leaf { return get32($_[0], root($_[0]), child($_[0], $_[1])); }

# The same of the newer level, and the filter page of its first leaf.
sub newer_root { return root($_[0], newer('root')); }
sub newer_child { return child_entry($_[0], newer_root($_[0]), $_[1]); }
sub newer_filters { return get32($_[0], newer_root($_[0]), newer_child($_[0], 0) + 16 + 2); }

# Where the key of a child's separator begins; it has no TID.
sub separator
{
	my ($content, $child) = @_;
	my $filters = get16($content, root($content), $trailer + 28) & 4;

	die 'a separator with a TID' if get8($content, root($content), child($content, $child) + 15) == 0;
	return child($content, $child) + 16 + ($filters ? 8 : 0);
}

# Add to the value in a separator, just behind the flag byte.
sub move_separator
{
	my ($content, $child, $by) = @_;
	my $at = separator($content, $child) + 1;

	set8($content, root($content), $at, get8($content, root($content), $at) + $by);
	return;
}

# Where entry i of a page of the log lies, of an int4 and with a TID near that of the
# page's first entry, which has a whole one.
sub log_entry { return $_[0] == 0 ? 24 : 24 + 12 + 8 * ($_[0] - 1); }

sub log_page { return get32($_[0], 0, $meta{active_head}); }
sub bump { return set64($_[0], 0, $meta{ $_[1] }, get64($_[0], 0, $meta{ $_[1] }) + ($_[2] // 1)); }
sub in_trailer { return set16($_[0], $_[1], $trailer + $_[2], $_[3]); }
sub lower { return get16($_[0], $_[1], 12); }

# Append the same child once more to the root, with another separator.
sub new_first_separator
{
	my ($content, $bytes) = @_;
	my $root = root($content);
	my $end = lower($content, $root);
	my $entry = substr($$content, $root * $block_size + child($content, 0), 16);

	substr($entry, 12, 2) = pack('S', length($bytes));
	substr($$content, $root * $block_size + $end, 16 + length($bytes)) = $entry . $bytes;
	set16($content, $root, 24, $end - 24);
	set16($content, $root, 12, $end + 16 + length($bytes));
	return;
}

# Key and TID of a row of the leaves of "plain", as an entry has them.
my ($row) = $node->safe_psql('postgres', <<'EOF');
SELECT to_hex(k::int8 + 2147483648), (ctid::text::point)[0]::int, (ctid::text::point)[1]::int FROM plain WHERE k = hashint4(1)
EOF
my ($row_key, $row_block, $row_offset) = split /\|/, $row;
my $row_entry = pack('C', 5) . pack('SSS', $row_block >> 16, $row_block & 0xFFFF, $row_offset) . "\x01" . pack('N', hex($row_key));

# ---- damage ----

# Template, what the check says, how to damage.
my %template;
my @damage = (
	# blocks
	[ 'plain', qr/points to block \d+ as a leaf, outside the index of/, sub { set32($_[0], root($_[0]), child($_[0], 1), 0x7FFFFFF0) } ],
	[ 'plain', qr/points to block \d+ as a leaf, but that is a leaf already/, sub { set32($_[0], root($_[0]), child($_[0], 1), leaf($_[0], 0)) } ],
	[ 'plain', qr/points to block \d+ as a leaf, but that is a free block already/, sub { set32($_[0], root($_[0]), child($_[0], 1), get32($_[0], 0, $meta{freelist})) } ],
	[ 'plain', qr/points to block \d+ as a delta page, but that is a delta page already/, sub { set32($_[0], log_page($_[0]), $trailer + 20, log_page($_[0])) } ],
	[ 'plain', qr/points to it as a page of kind 2, but it is of kind 4/, sub { in_trailer($_[0], leaf($_[0], 1), 16, 4) } ],
	[ 'plain', qr/expects stamp \d+, but it has stamp/, sub { set64($_[0], leaf($_[0], 1), $trailer + 8, 1) } ],
	[ 'plain', qr/expects level 1, but it has level 2/, sub { in_trailer($_[0], root($_[0]), 18, 2) } ],
	[ 'plain', qr/It is of kind \d, but nothing points to it/, sub {
		my ($content) = @_;
		my $list = find_block($content, 5, sub { get32($content, $_[0], $trailer + 24) > 0 });
		set32($content, $list, $trailer + 24, get32($content, $list, $trailer + 24) - 1);
		set32($content, 0, $meta{free_blocks}, get32($content, 0, $meta{free_blocks}) - 1);
	} ],
	[ 'plain', qr/The page is all zeroes/, sub { substr(${ $_[0] }, leaf($_[0], 1) * $block_size, $block_size) = "\0" x $block_size } ],
	[ 'plain', qr/The page header is not that of a hybrid index/, sub { set16($_[0], leaf($_[0], 1), $_, 8144) foreach 14, 16 } ],
	[ 'plain', qr/The page trailer is not that of a hybrid index/, sub { in_trailer($_[0], leaf($_[0], 1), 30, 0) } ],
	[ 'plain', qr/The page belongs to another index/, sub { set64($_[0], leaf($_[0], 1), $trailer, 77) } ],
	[ 'plain', qr/The page header's bounds are out of order/, sub { set16($_[0], leaf($_[0], 1), 12, 10) } ],

	# metapage
	[ 'plain', qr/The metapage header is not that of a hybrid index/, sub { set16($_[0], 0, $_, 8144) foreach 14, 16 } ],
	[ 'plain', qr/The metapage header is not that of a hybrid index/, sub { set16($_[0], 0, 12, 3000) } ],
	[ 'plain', qr/The metapage is not that of a hybrid index/, sub { set32($_[0], 0, $meta{magic}, 1) } ],
	[ 'plain', qr/has format version 99, but this hybridindex reads version \d+\n.*HINT:  A newer hybridindex wrote it/s, sub { set32($_[0], 0, $meta{format}, 99) } ],
	[ 'plain', qr/A counter of the metapage is out of range/, sub { set32($_[0], 0, $meta{npending}, 400) } ],
	[ 'plain', qr/In the metapage, height and root contradict each other/, sub { set32($_[0], 0, $meta{root}, $none) } ],
	[ 'plain', qr/In the metapage, the root's stamp lies in the future/, sub { set64($_[0], 0, $meta{next_stamp}, get64($_[0], 0, $meta{root_stamp})) } ],
	[ 'plain', qr/In the metapage, there are static entries without a tree/, sub { set32($_[0], 0, $meta{root}, $none); set32($_[0], 0, $meta{height}, 0) } ],
	[ 'plain', qr/In the metapage, there are more tombstones than entries/, sub { set64($_[0], 0, $meta{static_tombstones}, 1000000) } ],
	[ 'plain', qr/In the metapage, the generation numbers are out of order/, sub { set64($_[0], 0, $meta{active_number}, 1000) } ],
	[ 'frozen', qr/In the metapage, the generation numbers are out of order/, sub { set64($_[0], 0, $meta{retiring_number}, get64($_[0], 0, $meta{frozen_number})) } ],
	[ 'plain', qr/In the metapage, the watermark has columns but no key/, sub { set8($_[0], 0, $meta{wm_ncols}, 1) } ],
	[ 'plain', qr/In the metapage, there is a watermark without a frozen generation/, sub { set16($_[0], 0, $meta{wm_len}, 5) } ],
	[ 'plain', qr/A counter of the metapage is out of range/, sub { set16($_[0], 0, $meta{pass_level}, 1) } ],
	[ 'plain', qr/A counter of the metapage is out of range/, sub { set16($_[0], 0, $meta{pass_level} + 2, 2) } ],
	[ 'frozen', qr/In the metapage, there is a pass over levels beside a frozen generation/, sub { set32($_[0], 0, $meta{nlevels}, 2); set16($_[0], 0, $meta{pass_level}, 1) } ],
	[ 'surf', qr/The child at position 0 has rent, but is no leaf of a newer level/, sub { set16($_[0], root($_[0]), child($_[0], 0) + 16, 1) } ],
	[ 'frozen', qr/The separator at position 0 is malformed/, sub { set8($_[0], 0, $meta{wm_tie}, 7) } ],
	[ 'plain', qr/In the metapage, there are flags without a meaning/, sub { set32($_[0], 0, $meta{flags}, 0x100) } ],
	[ 'include', qr/leaves do not hold keys, of an index that needs them/, sub { set32($_[0], 0, $meta{flags}, 0x80) } ],
	[ 'plain', qr/In the metapage, there is a visit of all leaves without a frozen generation/, sub { set32($_[0], 0, $meta{flags}, 0x4) } ],
	[ 'plain', qr/In the metapage, a unit is being moved without a pass over levels/, sub { set32($_[0], 0, $meta{flags}, 0x10) } ],
	[ 'plain', qr/In the metapage, there is a quiet merge without a frozen generation/, sub { set32($_[0], 0, $meta{flags}, 0x20) } ],
	[ 'plain', qr/In the metapage, there is the rest of a quiet merge without a frozen generation/, sub { set32($_[0], 0, $meta{flags}, 0x40) } ],
	[ 'plain', qr/In the metapage, fewer pages were written than earned/, sub { bump($_[0], 'earned_pages', 1000000) } ],

	# levels, and a pass over them
	[ 'levels', qr/In the metapage, there is a watermark without a frozen generation/, sub { set16($_[0], 0, $meta{pass_level}, 0) } ],
	[ 'levels', qr/The separator at position 0 is malformed/, sub { set8($_[0], 0, $meta{wm_tie}, 7) } ],
	[ 'levels', qr/The separator at position 0 is malformed/, sub { set8($_[0], 0, $meta{wm_ncols}, 2); set8($_[0], 0, $meta{wm_key}, 0x77) } ],
	[ 'levels', qr/In the metapage, the stamp of the pass lies in the future/, sub { set64($_[0], 0, $meta{pass_stamp}, 1 + get64($_[0], 0, $meta{next_stamp})) } ],
	[ 'levels', qr/In the metapage, the stamp of a whole pass lies in the future/, sub { set64($_[0], 0, $meta{surveyed} + 8, 1 + get64($_[0], 0, $meta{next_stamp})) } ],
	[ 'levels', qr/It is of kind \d, but nothing points to it/, sub {
		set32($_[0], 0, $meta{nlevels}, 1);
		set16($_[0], 0, $meta{pass_level}, 0);
		set16($_[0], 0, $meta{wanted_levels}, 1);
		set16($_[0], 0, $meta{wm_len}, 0);
		set8($_[0], 0, $meta{wm_ncols}, 0);
		set8($_[0], 0, $meta{wm_tie}, 0xFF);
		set32($_[0], 0, $meta{flags}, 0);
	} ],
	[ 'levels', qr/The height is 4294967295/, sub { set32($_[0], 0, newer('height'), $none) } ],
	[ 'levels', qr/points to block \d+ as an internal node, outside the index of/, sub { set32($_[0], 0, newer('root'), 0x7FFFFFF0) } ],
	[ 'levels', qr/points to block \d+ as an internal node, but that is an internal node already/, sub { set32($_[0], 0, newer('root'), root($_[0])) } ],
	[ 'levels', qr/In the metapage, the root's stamp lies in the future/, sub { set64($_[0], 0, newer('root_stamp'), get64($_[0], 0, $meta{next_stamp})) } ],
	[ 'levels', qr/In the metapage, there are more tombstones than entries/, sub { set64($_[0], 0, newer('static_tombstones'), 1000000) } ],
	[ 'levels', qr/The leaves hold \d+ heap TIDs, but the metapage counts/, sub { set64($_[0], 0, newer('static_tids'), 1) } ],
	[ 'levels', qr/There are \d+ leaves and \d+ internal nodes, but the metapage counts/, sub { set64($_[0], 0, newer('leaf_pages'), 1) } ],
	[ 'levels', qr/There are \d+ leaves and \d+ internal nodes, but the metapage counts/, sub { set64($_[0], 0, newer('inner_pages'), 77) } ],
	[ 'levels', qr/There are \d+ filter pages, but the metapage counts/, sub { set64($_[0], 0, newer('filter_pages'), 77) } ],
	[ 'levels', qr/The filter at position 0 is damaged: the header/, sub { my $p = newer_filters($_[0]); set8($_[0], $p, get16($_[0], $p, 28) + 8 + 2, 8) } ],
	[ 'levels', qr/The filter at position 0 is of leaf \d+, not/, sub { set32($_[0], newer_filters($_[0]), 24, 77) } ],
	[ 'levels', qr/The filters are not in the order of their leaves/, sub { set16($_[0], newer_root($_[0]), newer_child($_[0], 0) + 22, 1) } ],
	[ 'plain', qr/In the metapage, the link to the dictionary does not fit the columns/, sub { set32($_[0], 0, $meta{dictionary}, 1) } ],

	# free list
	[ 'plain', qr/In the metapage, the end that is to be cut off does not begin anywhere/, sub { set32($_[0], 0, $meta{cut_end}, 5) } ],
	[ 'plain', qr/In the metapage, the end that is to be cut off is not what it was/, sub { set32($_[0], 0, $meta{$_}, 5) foreach 'cut', 'cut_end' } ],
	[ 'plain', qr/Free block \d+ at position -1 lies before block 2147483632, from where on the file is to be cut off/, sub {
		my ($content) = @_;
		set32($content, 0, $meta{cut_list}, get32($content, 0, $meta{freelist}));
		set32($content, 0, $meta{cut_blocks}, get32($content, 0, $meta{free_blocks}));
		set32($content, 0, $meta{freelist}, 0xFFFFFFFF);
		set32($content, 0, $meta{free_blocks}, 0);
		set32($content, 0, $meta{cut}, 0x7FFFFFF0);
	} ],
	[ 'plain', qr/Free block \d+ at position \d+ lies outside the index/, sub { set32($_[0], get32($_[0], 0, $meta{freelist}), 24, 0x7FFFFFF0) } ],
	[ 'plain', qr/Free block \d+ at position \d+ is listed twice/, sub { set32($_[0], get32($_[0], 0, $meta{freelist}), 28, get32($_[0], get32($_[0], 0, $meta{freelist}), 24)) } ],
	[ 'plain', qr/Block \d+ of the free list is not a free-list page/, sub { set32($_[0], 0, $meta{freelist}, leaf($_[0], 0)) } ],
	[ 'plain', qr/A free-list page claims to hold \d+ blocks/, sub { set16($_[0], get32($_[0], 0, $meta{freelist}), 12, 24) } ],
	[ 'plain', qr/A free-list page claims to hold \d+ blocks/, sub { set16($_[0], get32($_[0], 0, $meta{freelist}), 14, 4000) } ],
	[ 'plain', qr/A free-list page claims to hold 60000 blocks/, sub { set32($_[0], get32($_[0], 0, $meta{freelist}), $trailer + 24, 60000) } ],
	[ 'plain', qr/The free list holds \d+ blocks, but the metapage counts/, sub { set32($_[0], 0, $meta{free_blocks}, 1 + get32($_[0], 0, $meta{free_blocks})) } ],

	# internal nodes
	[ 'plain', qr/An internal node has a link to block 3 and flags/, sub { set32($_[0], root($_[0]), $trailer + 20, 3) } ],
	[ 'plain', qr/An internal node has a link to block \d+ and flags 0x0080/, sub { in_trailer($_[0], root($_[0]), 28, 0x80) } ],
	[ 'plain', qr/An internal node has \d+ children/, sub { set32($_[0], root($_[0]), $trailer + 24, 0x80000001) } ],
	[ 'plain', qr/An internal node has 0 children/, sub { set32($_[0], root($_[0]), $trailer + 24, 0) } ],
	[ 'plain', qr/An internal node has more children than fit its content/, sub { set16($_[0], root($_[0]), 12, 25) } ],
	[ 'plain', qr/A child entry lies outside the content of its internal node/, sub { set16($_[0], root($_[0]), 26, 8000) } ],
	[ 'plain', qr/A separator lies outside the content of its internal node/, sub { set16($_[0], root($_[0]), child($_[0], 1) + 12, 4000) } ],
	[ 'plain', qr/The separator at position 1 is malformed/, sub { set8($_[0], root($_[0]), child($_[0], 1) + 15, 5) } ],
	[ 'plain', qr/The separator at position 2 is not above the one before it/, sub { set8($_[0], root($_[0]), separator($_[0], 2) + 1, 0) } ],
	[ 'plain', qr/The separator at position 1 is not below the node's upper fence/, sub {
		my ($content) = @_;
		set16($content, root($content), child($content, 1) + 12, 0);
		set8($content, root($content), child($content, 1) + 14, 0);
		set8($content, root($content), child($content, 1) + 15, 1);
		set32($content, root($content), $trailer + 24, 2);
	} ],
	[ 'plain', qr/The child at position 1 is younger than its parent/, sub { set64($_[0], root($_[0]), child($_[0], 1) + 4, 1000000) } ],
	[ 'plain', qr/The separator at position 0 of a leftmost node is not the lowest of all/, sub { new_first_separator($_[0], "\0") } ],
	[ 'plain', qr/The height is 200/, sub { set32($_[0], 0, $meta{height}, 200) } ],

	# leaves
	[ 'plain', qr/lies below the leaf's lower fence/, sub { move_separator($_[0], 1, 1) } ],
	[ 'plain', qr/does not lie below the leaf's upper fence/, sub { move_separator($_[0], 1, -1) } ],
	[ 'payload', qr/TIDs of items 0 and 1 do not ascend/, sub {
		my ($to, $from) = ($_[0], \$template{pairs});
		my ($leaf, $other) = map { get32($_, 0, $meta{root}) } $to, $from;

		set16($to, $leaf, 12, lower($from, $other));
		substr($$to, $leaf * $block_size + 24, $trailer - 24) = substr($$from, $other * $block_size + 24, $trailer - 24);
	} ],
	[ 'plain', qr/A leaf has a link to block 3/, sub { set32($_[0], leaf($_[0], 1), $trailer + 20, 3) } ],
	[ 'plain', qr/A leaf has flags 0x0040/, sub { in_trailer($_[0], leaf($_[0], 0), 28, 0x40) } ],
	[ 'plain', qr/The leaf's header is wrong/, sub { set32($_[0], leaf($_[0], 0), $trailer + 24, 1 + get32($_[0], leaf($_[0], 0), $trailer + 24)) } ],
	[ 'plain', qr/The leaf has layout 77, which is not known/, sub { set8($_[0], leaf($_[0], 0), 24 + 4, 77) } ],
	[ 'plain', qr/content has \d+ bytes, \d+ of them used/, sub { set16($_[0], leaf($_[0], 0), 12, 8 + lower($_[0], leaf($_[0], 0))) } ],
	[ 'plain', qr/The leaves hold \d+ heap TIDs, but the metapage counts/, sub { bump($_[0], 'static_tids') } ],
	[ 'plain', qr/The leaves hold \d+ tombstones, but the metapage counts/, sub { bump($_[0], 'static_tombstones') } ],
	[ 'plain', qr/There are \d+ leaves and \d+ internal nodes, but the metapage counts/, sub { bump($_[0], 'leaf_pages') } ],
	[ 'plain', qr/There are \d+ leaves and \d+ internal nodes, but the metapage counts/, sub { bump($_[0], 'inner_pages') } ],
	[ 'surf', qr/There are \d+ filter pages, but the metapage counts/, sub { set32($_[0], 0, $meta{filter_pages}, 77) } ],

	# the log
	[ 'plain', qr/An entry of a delta page has a wrong length/, sub { set16($_[0], log_page($_[0]), 24, 0xFF4F) } ],
	[ 'plain', qr/The entries of a delta page do not end where the page does/, sub { set16($_[0], log_page($_[0]), 24, 0) } ],
	[ 'plain', qr/The entry at position \d+ is malformed/, sub { set8($_[0], log_page($_[0]), 24 + 7, 9) } ],
	[ 'plain', qr/The heap TID at position \d+ is invalid/, sub { set16($_[0], log_page($_[0]), 24 + 5, 0) } ],
	[ 'plain', qr/has the key and heap TID \(\d+,\d+\) of another one/, sub { my $at = log_page($_[0]) * $block_size + log_entry(2); substr(${ $_[0] }, $at, 8) = substr(${ $_[0] }, $at - 8, 8) } ],
	[ 'plain', qr/is in the dynamic stage as well, at offset/, sub { substr(${ $_[0] }, log_page($_[0]) * $block_size + 24, 12) = $row_entry } ],
	[ 'plain', qr/A delta page has flags 0x0100/, sub { in_trailer($_[0], log_page($_[0]), 28, 0x100) } ],
	[ 'plain', qr/A delta page has \d+ entries, but claims/, sub { set32($_[0], log_page($_[0]), $trailer + 24, 3) } ],
	[ 'plain', qr/Lane 0 of generation \d+ has a tail, but no head/, sub { set32($_[0], 0, $meta{active_head}, $none) } ],
	[ 'plain', qr/The chain of lane 0 of generation \d+ ends here, not at its tail/, sub { set32($_[0], log_page($_[0]), $trailer + 20, $none) } ],
	[ 'plain', qr/Generation \d+ has \d+ pages, but the metapage counts/, sub { bump($_[0], 'active_npages') } ],
	[ 'plain', qr/Generation \d+ has \d+ entries and \d+ on its last pages, but the metapage counts/, sub { bump($_[0], 'active_nentries', 100000) } ],
	[ 'frozen', qr/Generation \d+ has \d+ entries and \d+ on its last pages, but the metapage counts/, sub { bump($_[0], 'frozen_nentries') } ],
	[ 'frozen', qr/The last page of lane 0 of frozen generation \d+ is not closed/, sub { in_trailer($_[0], get32($_[0], 0, $meta{frozen_tail}), 28, 0) } ],
	[ 'frozen', qr/The last page of lane 0 of generation \d+ has a link to block 3/, sub { set32($_[0], get32($_[0], 0, $meta{frozen_tail}), $trailer + 20, 3) } ],

	# filters
	[ 'surf', qr/points to it as a filter page, but it is of kind 2/, sub { in_trailer($_[0], filter_page($_[0]), 16, 2) } ],
	[ 'surf', qr/The trailer of a filter page is damaged/, sub { in_trailer($_[0], filter_page($_[0]), 18, 1) } ],
	[ 'surf', qr/A filter page has \d+ filters, but \d+ leaves of block \d+ use it/, sub { set32($_[0], filter_page($_[0]), $trailer + 24, 1 + get32($_[0], filter_page($_[0]), $trailer + 24)) } ],
	[ 'surf', qr/The filters are not in the order of their leaves/, sub { set16($_[0], root($_[0]), child($_[0], 0) + 22, 1) } ],
	[ 'surf', qr/The filter at position 0 lies outside the content of its page/, sub { set16($_[0], filter_page($_[0]), 24 + 4, 8000) } ],
	[ 'surf', qr/The filter at position 0 is of leaf \d+, not/, sub { set32($_[0], filter_page($_[0]), 24, 77) } ],
	[ 'surf', qr/The filter at position 0 is damaged: the header/, sub { my $p = filter_page($_[0]); substr(${ $_[0] }, $p * $block_size + get16($_[0], $p, 28) + 8, 32) = "\xFF" x 32 } ],
	[ 'points', qr/The filter at position 0 is damaged: the header/, sub { my $p = filter_page($_[0]); set8($_[0], $p, get16($_[0], $p, 28) + 8 + 2, 8) } ],
	[ 'points', qr/The filter at position 0 is damaged: the header/, sub { my $p = filter_page($_[0]); my $at = get16($_[0], $p, 28) + 8; set16($_[0], $p, $at, get16($_[0], $p, $at) + 8) } ],
	[ 'points', qr/The filter at position 0 denies the key at position 0 of leaf/, sub { my $p = filter_page($_[0]); my $at = get16($_[0], $p, 28) + 8 + 3; set8($_[0], $p, $at, get8($_[0], $p, $at) ^ 0x11) } ],
	[ 'surf', qr/A filter page has bytes that are not in use/, sub { set16($_[0], filter_page($_[0]), 12, 8 + lower($_[0], filter_page($_[0]))) } ]);

# Bytes of filters, where some make it unsound and others deny keys, and bytes of a
# leaf of strings.  The test collects what is found there.
my @flips;
foreach my $i (0 .. 29)
{
	push @flips, map { [ $_, sub {
		my ($content) = @_;
		my $page = filter_page($content);
		my $first = get16($content, $page, 28);
		my $at = $first + int(get16($content, $page, 30) * ($i + 1) / 31);
		set8($content, $page, $at, get8($content, $page, $at) ^ 0x24);
	} ] } qw(surf points);
	push @flips, [ 'text', sub {
		my ($content) = @_;
		my $leaf = leaf($content, 1);
		my $at = 24 + int((lower($content, $leaf) - 24) * ($i + 1) / 31);
		set8($content, $leaf, $at, get8($content, $leaf, $at) ^ 0x24);
	} ];
}

# ---- doing it ----

my @indexes = ((map { [ $_->[0], $_->[2], $_->[1] ] } @damage), @flips);
$node->safe_psql('postgres', join('', map {
	my $i = $_;
	"CREATE TABLE d$i (k int, s text COLLATE \"C\"); CREATE INDEX d${i}_i ON d$i USING hybrid $columns{ $indexes[$i][0] };\n"
} 0 .. $#indexes));
my %path = map { split /\|/ } split /\n/, $node->safe_psql('postgres', "SELECT relname, pg_relation_filepath(oid) FROM pg_class WHERE relname ~ '_i\$'");
$node->stop;
$node->run_log([ 'pg_checksums', '--disable', '--no-sync', '-D', $node->data_dir ]);
%template = map { $_ => slurp_file($node->data_dir . '/' . $path{"${_}_i"}) } keys %columns;
foreach my $i (0 .. $#indexes)
{
	my ($name, $apply) = @{ $indexes[$i] };
	my $content = $template{$name};

	eval { $apply->(\$content); 1 } or die "damage $i: $@";
	write_file($node->data_dir . '/' . $path{"d${i}_i"}, $content);
}

# What was merged is missing: a watermark above everything, in the index of a
# table that has the rows.
{
	my $content = $template{frozen};

	set16(\$content, 0, $meta{wm_len}, 0);
	set8(\$content, 0, $meta{wm_ncols}, 0);
	set8(\$content, 0, $meta{wm_tie}, 1);
	write_file($node->data_dir . '/' . $path{frozen_i}, $content);
}
# The second entry of the log, of a row that is deleted, leads to no block of its
# table: the greatest one that is near that of the first entry.
{
	my $content = $template{text};
	my $block = log_page(\$content);
	my $second = 24 + 2 + 6 + get8(\$content, $block, 25);

	die 'entries of more than 255 bytes, or less than 32' if get8(\$content, $block, 24) != 0x40;
	die 'a whole TID' if get8(\$content, $block, $second) != 0x60;
	set8(\$content, $block, $second + 2, 0xFF);
	write_file($node->data_dir . '/' . $path{text_i}, $content);
}
$node->start;

# All in one session; the answers in order.
my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n" . join('',
	map { "\\warn == $_\nSELECT hybrid_index_check('$_');\n" } (map { "d${_}_i" } 0 .. $#indexes), 'frozen_i', 'plain_i', 'surf_i', 'points_i', 'text_i', 'levels_i', 'include_i', 'payload_i', 'pairs_i'),
	on_error_stop => 0);
my %said = map { /^(\S+)\n?(.*)/s ? ($1 => $2) : () } split /^== /m, $err;
foreach my $i (0 .. $#damage)
{
	my $what = $said{"d${i}_i"} // '';

	like($what, $damage[$i][1], "$damage[$i][0]: $damage[$i][1]");
	like($what, qr/XX002/, 'the message has its SQLSTATE') if $what !~ /XX002/;
}
# a pass goes on, and reads the level
my ($high) = grep { $damage[$_][1] =~ /4294967295/ } 0 .. $#damage;
($ret, $out, $err) = $node->psql('postgres', "SELECT hybrid_merge('d${high}_i')");
like($err, qr/index "d${high}_i".*The tree's height is out of range/s, 'a merge notices a height that is out of range');
like($said{frozen_i}, qr/The frozen entry at offset \d+ lies below the watermark, but is not in the static stage/, 'entries that a merge has lost');
is($said{"${_}_i"}, '', "template $_ is sound") foreach qw(plain surf points text levels include payload pairs);
($ret, $out, $err) = $node->psql('postgres', "SELECT hybrid_index_check('text_i', true)");
like($err, qr/index "text_i" has an entry that leads to heap tuple \(\d+,\d+\) of table "text" but is not that tuple's.*The table has no such block/s,
	'an entry that leads beyond the table');
my $flipped = join('', map { $said{"d${_}_i"} } $#damage + 1 .. $#indexes);
like($flipped, $_, "flipped bytes: $_")
  foreach (qr/The filter at position \d+ is damaged: /, qr/The filter at position \d+ denies the key at position \d+ of leaf/,
	qr/DETAIL:  row \d+ sorts above row \d+|DETAIL:  .*(string|column|malformed)/);
is(join(' ', grep { $indexes[$_][0] ne 'text' && $said{"d${_}_i"} eq '' } $#damage + 1 .. $#indexes), '', 'each flipped byte of a filter is noticed');
no_crash($node, 'nothing crashed');
$node->stop;

# ---- a tree in shared memory that the log does not say ----

# Few buffers, so that a page is read from the file again.
my $small = new_node('buffers', "${conf}shared_buffers = 128kB\nmax_connections = 10\nmax_wal_senders = 0\n");
$small->stop;
$small->run_log([ 'pg_checksums', '--disable', '--no-sync', '-D', $small->data_dir ]);
$small->start;
$small->safe_psql('postgres', <<EOF);
CREATE TABLE a (k int);
CREATE INDEX a_i ON a USING hybrid (k);
INSERT INTO a SELECT i FROM generate_series(1, 300) i;
CREATE TABLE b AS TABLE a;
CREATE INDEX b_i ON b USING hybrid (k);
CREATE TABLE c AS TABLE a;
INSERT INTO c SELECT i FROM generate_series(1, 200000) i;
CREATE INDEX ON c (k);
SELECT hybrid_merge('b_i');
DELETE FROM b;
INSERT INTO b SELECT i FROM generate_series(1, 300) i;
SET enable_seqscan = off;
SELECT count(*) FROM a WHERE k > 0;
SELECT count(*) FROM b WHERE k > 0;
CREATE TABLE d (k int);
CREATE INDEX d_i ON d USING hybrid (k);
INSERT INTO d SELECT i FROM generate_series(1, 300) i;
SELECT count(*) FROM d WHERE k > 0;
DELETE FROM d WHERE k = 100;
SELECT hyb_quiet();
VACUUM (INDEX_CLEANUP on) d;
CHECKPOINT;
EOF
my %file = map { $_ => $small->data_dir . '/' . $small->safe_psql('postgres', "SELECT pg_relation_filepath('${_}_i')") } qw(a b d);
foreach my $name (qw(a b d))
{
	my $content = slurp_file($file{$name});
	my $page = log_page(\$content);

	if ($name eq 'a')
	{
		# another key
		set8(\$content, $page, log_entry(100) + 7, 0x77);
	}
	elsif ($name eq 'd')
	{
		# an entry in the middle that VACUUM has removed is alive again
		my $flags = get8(\$content, $page, log_entry(99));
		cmp_ok($flags & 0x80, '>', 0, 'VACUUM has flagged an entry of the log');
		set8(\$content, $page, log_entry(99), $flags & 0x7F);
	}
	else
	{
		# one entry more
		substr($content, $page * $block_size + log_entry(300), 12) = pack('CS3', 5, 0, 0, 299) . "\x01" . pack('N', 0x80000000 + 1000000);
	}
	open(my $fh, '+<:raw', $file{$name}) or die $!;
	seek($fh, $page * $block_size, 0);
	print $fh substr($content, $page * $block_size, $block_size);
	close($fh);
}
# all buffers are used anew: a scan of a whole table would use two
$small->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM c WHERE k > 0');
foreach my $case (
	[ 'a', qr/The dynamic stage's tree and the log differ about the entry at offset 828/ ],
	[ 'b', qr/The live entry at offset \d+ is missing from the dynamic stage's tree/ ],
	[ 'd', qr/The live entry at offset 820 is missing from the dynamic stage's tree/ ])
{
	my ($name, $message) = @$case;

	($ret, $out, $err) = $small->psql('postgres', "SELECT hybrid_index_check('${name}_i')");
	like($err, $message, "a tree and its log: $message");
}
no_crash($small, 'nothing crashed');
$small->stop;
done_testing();
