
# Pages of hybrid indexes as bytes (docs/format.md), for the tests that damage
# them.  A content is a reference to the bytes of a file.

package HybridPages;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw($block_size $trailer %meta get8 set8 get16 set16 get32 set32 get64 set64
  kinds find_block root child_entry filter_page write_file newer pass_begun);

our $block_size = 8192;
our $trailer = $block_size - 32;

# Offsets in the metapage: page header, then HybMetaPage (src/store/meta.h); of
# the static levels those of the oldest one; each has $level_size bytes.
my $level_size = 56;
our %meta = (
	magic => 24, format => 24 + 4, next_stamp => 24 + 32, nlevels => 24 + 48, pass_level => 24 + 52, wanted_levels => 24 + 54,
	root_stamp => 24 + 56, root => 24 + 64, height => 24 + 68, static_tids => 24 + 72,
	static_tombstones => 24 + 80, leaf_pages => 24 + 88, inner_pages => 24 + 96, filter_pages => 24 + 104,
	active_number => 24 + 280, active_head => 24 + 288, active_tail => 24 + 304,
	active_npages => 24 + 320, active_nentries => 24 + 328,
	frozen_number => 24 + 336, frozen_head => 24 + 344, frozen_tail => 24 + 360,
	frozen_npages => 24 + 376, frozen_nentries => 24 + 384, retiring_number => 24 + 392,
	rewritten_tids => 24 + 464, earned_pages => 24 + 504,
	freelist => 24 + 512, free_blocks => 24 + 516, npending => 24 + 520, flags => 24 + 524,
	dictionary => 24 + 528, cut => 24 + 532, cut_list => 24 + 536, cut_blocks => 24 + 540, cut_end => 24 + 544,
	pending => 24 + 548,
	wm_len => 24 + 1828, wm_ncols => 24 + 1830, wm_tie => 24 + 1831,
	wm_key => 24 + 1838, pass_stamp => 24 + 5312, surveyed => 24 + 5320);

# Read and write integers of 8, 16, 32 and 64 bits.
sub get
{
	my ($content, $block, $at, $format, $size) = @_;
	return unpack($format, substr($$content, $block * $block_size + $at, $size));
}

sub set
{
	my ($content, $block, $at, $format, $size, $value) = @_;
	substr($$content, $block * $block_size + $at, $size) = pack($format, $value);
	return;
}

sub get8 { return get(@_[ 0 .. 2 ], 'C', 1); }
sub set8 { return set(@_[ 0 .. 2 ], 'C', 1, $_[3]); }
sub get16 { return get(@_[ 0 .. 2 ], 'S', 2); }
sub set16 { return set(@_[ 0 .. 2 ], 'S', 2, $_[3]); }
sub get32 { return get(@_[ 0 .. 2 ], 'L', 4); }
sub set32 { return set(@_[ 0 .. 2 ], 'L', 4, $_[3]); }
sub get64 { return get(@_[ 0 .. 2 ], 'Q', 8); }
sub set64 { return set(@_[ 0 .. 2 ], 'Q', 8, $_[3]); }

# Blocks by kind, the uint16 at byte 16 of the special space.
sub kinds
{
	my ($content) = @_;
	my %kinds;

	for (my $block = 0; $block < length($$content) / $block_size; $block++)
	{
		my $special = get16($content, $block, 16);
		my $kind = $special > 0 && $special < $block_size - 18 ? get16($content, $block, $special + 16) : 0;
		push @{ $kinds{$kind} }, $block;
	}
	return \%kinds;
}

# First block of a kind for which a condition holds.
sub find_block
{
	my ($content, $kind, $condition) = @_;

	foreach my $block (@{ kinds($content)->{$kind} // [] })
	{
		return $block if !$condition || $condition->($block);
	}
	die "no page of kind $kind to damage";
}

# Where the metapage has a field of the newer one of two levels.
sub newer
{
	my ($field) = @_;
	return $meta{$field} + $level_size;
}

# What takes an index to where it has two levels and is in the middle of a pass:
# an insertion that is repeated, of a page of the log each time.  Merges are of
# one step each until there are two levels, and of many then.
sub pass_begun
{
	my ($index, $insert) = @_;
	my ($level, $watermark, $height) = ($meta{pass_level}, $meta{wm_len}, newer('height'));

	return <<EOF;
SET hybridindex.merge_floor = 1;
SET hybridindex.merge_step_pages = 64;
ALTER INDEX $index SET (merge_ratio = 1000);
DO \$\$
DECLARE
	file text := pg_relation_filepath('$index');
BEGIN
	FOR g IN 1 .. 1000 LOOP
		$insert;
		CHECKPOINT;
		IF get_byte(pg_read_binary_file(file, $height, 1), 0) > 1 THEN
			SET LOCAL hybridindex.merge_step_pages = 1;
		END IF;
		EXIT WHEN get_byte(pg_read_binary_file(file, $level, 1), 0) = 1 AND
			get_byte(pg_read_binary_file(file, $watermark, 1), 0) > 0 AND
			get_byte(pg_read_binary_file(file, $height, 1), 0) > 1;
	END LOOP;
END \$\$;
EOF
}

# The root, which is the only internal node of the oldest level, or of another
# whose root the metapage has elsewhere.
sub root
{
	my ($content, $field) = @_;
	my $root = get32($content, 0, $field // $meta{root});

	die 'the root is a leaf' if get16($content, $root, $trailer + 16) != 3;
	return $root;
}

# Where the entry of a child begins in an internal node.
sub child_entry
{
	my ($content, $block, $child) = @_;
	return 24 + get16($content, $block, 24 + 2 * $child);
}

# The filter page of the first leaf.
sub filter_page
{
	my ($content) = @_;
	return get32($content, root($content), child_entry($content, root($content), 0) + 16 + 4);
}

sub write_file
{
	my ($file, $content) = @_;

	open(my $fh, '+<:raw', $file) or die $!;
	truncate($fh, 0) or die $!;
	print $fh $content;
	close($fh) or die $!;
	return;
}

1;
