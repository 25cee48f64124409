
# Pages of hybrid indexes as bytes (docs/format.md), for tests that damage them and
# for the one that reads them.  A content is a reference to the bytes of a file.

package HybridPages;

use strict;
use warnings;
no warnings 'portable';

use Exporter 'import';

our @EXPORT = qw($block_size $trailer %meta get8 set8 get16 set16 get32 set32 get64 set64
  kinds find_block root child_entry filter_page write_file newer pass_begun
  %models page_trailer page_content read_leaf read_node read_filters read_delta read_blocks read_dictionary byte_hash);

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
	my $one = unpack('H*', pack('S', 1));
	my $leaf = unpack('H*', pack('L', 1));

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
		IF pg_read_binary_file(file, $height, 4) NOT IN ('\\x00000000', '\\x$leaf') THEN
			SET LOCAL hybridindex.merge_step_pages = 1;
		END IF;
		EXIT WHEN pg_read_binary_file(file, $level, 2) = '\\x$one' AND
			pg_read_binary_file(file, $watermark, 2) <> '\\x0000' AND
			pg_read_binary_file(file, $height, 4) NOT IN ('\\x00000000', '\\x$leaf');
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
	return get32($content, root($content), child_entry($content, root($content), 0) + 16 + 2);
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

# ---- reading whole pages, by docs/format.md, the heads and structs that it names, and nothing else ----

# Sums, products and right shifts modulo 2^64 or of signed numbers.
sub add64 { my $sum = do { use integer; $_[0] + $_[1] }; return $sum & ~0; }
sub multiply64 { my $product = do { use integer; $_[0] * $_[1] }; return $product & ~0; }
sub shift_signed { my $shifted = do { use integer; $_[0] >> $_[1] }; return $shifted & ~0; }

# The hash of a byte string (src/algo/bits.h).
sub byte_hash
{
	my ($bytes) = @_;
	my $h = 0x9E3779B97F4A7C15 ^ length($bytes);

	foreach my $word (unpack('(a8)*', $bytes))
	{
		$h = multiply64($h ^ unpack('Q<', pack('a8', $word)), 0xFF51AFD7ED558CCD);
		$h ^= $h >> 32;
	}
	$h = multiply64($h, 0xC4CEB9FE1A85EC53);
	return $h ^ ($h >> 29);
}

# A reader of bytes, from first to last.
sub reader { my ($bytes) = @_; return { bytes => $bytes, at => 0 }; }

sub take
{
	my ($r, $n) = @_;

	die "bytes end at $r->{at}, $n more are wanted" if $r->{at} + $n > length($r->{bytes});
	$r->{at} += $n;
	return substr($r->{bytes}, $r->{at} - $n, $n);
}

# An integer of n bytes, little-endian.
sub take_int { my ($r, $n) = @_; return unpack('Q<', take($r, $n) . "\0" x (8 - $n)); }

sub take_varint
{
	my ($r) = @_;
	my ($value, $shift) = (0, 0);

	while (1)
	{
		my $byte = take_int($r, 1);
		$value |= ($byte & 0x7F) << $shift;
		return $value if $byte < 0x80;
		$shift += 7;
	}
}

# n bits as a string of 0 and 1, the lowest one of each byte first.
sub take_bits { my ($r, $n) = @_; return substr(unpack('b*', take($r, int(($n + 7) / 8))), 0, $n); }

# n integers of $bits bits.
sub take_packed
{
	my ($r, $n, $bits) = @_;
	my $string = take_bits($r, $n * $bits);

	return map { $bits == 0 ? 0 : unpack('Q<', pack('b64', substr($string, $_ * $bits, $bits) . '0' x (64 - $bits))) } 0 .. $n - 1;
}

# Where the ones of a string of bits are.
sub ones { my ($bits) = @_; return grep { substr($bits, $_, 1) } 0 .. length($bits) - 1; }

our %models;		# how many sequences, columns and codes of each form were read

sub take_sequence
{
	my ($r, $n) = @_;
	my $byte = take_int($r, 1);
	my $model = $byte & 3;
	my $base = take_int($r, $byte >> 2);

	$models{"sequence $model"}++;
	return ($base) x $n if $model == 0;
	my $bits = take_int($r, 1);
	if ($model == 1)
	{
		return map { add64($base, $_) } take_packed($r, $n, $bits);
	}
	elsif ($model == 2)
	{
		my $shift = take_int($r, 1);
		my $zigzag = take_int($r, take_int($r, 1));
		my $slope = ($zigzag >> 1) ^ ($zigzag & 1 ? ~0 : 0);
		my $i = 0;
		return map { add64(add64($base, shift_signed(multiply64($slope, $i++), $shift)), $_) } take_packed($r, $n, $bits);
	}
	my $high = take_int($r, 2);
	my @kept = map { take_int($r, 2) } 1 .. int(($n - 1) / 128);
	my @ones = ones(take_bits($r, $high));
	my @low = take_packed($r, $n, $bits);
	die 'a kept position is wrong' if grep { $kept[$_] != $ones[ 128 * ($_ + 1) ] } 0 .. $#kept;
	return map { add64($base, (($ones[$_] - $_) << $bits) + $low[$_]) } 0 .. $n - 1;
}

# A canonical Huffman code: bytes by their codes, as strings of 0 and 1.
sub take_huffman
{
	my ($r) = @_;
	my @counts = map { take_int($r, 1) } 1 .. take_int($r, 1);
	my (%bytes, $code);

	$code = 0;
	foreach my $length (1 .. @counts)
	{
		$code <<= 1;
		$bytes{ sprintf("%0*b", $length, $code++) } = take($r, 1) foreach 1 .. $counts[ $length - 1 ];
	}
	return \%bytes;
}

sub decode_huffman
{
	my ($code, $bytes) = @_;
	my ($string, $prefix) = ('', '');

	foreach my $bit (split //, unpack('B*', $bytes))
	{
		$prefix .= $bit;
		($string, $prefix) = ($string . $code->{$prefix}, '') if exists $code->{$prefix};
	}
	die 'a coded string does not end with ones' if $prefix =~ /0/;
	return $string;
}

# n front-coded strings, without what all begin with.
sub take_front
{
	my ($r, $n) = @_;
	my $byte = take_int($r, 1);
	my ($shared_bits, $coded) = ($byte & 7, $byte & 8);
	my $length = take_int($r, 2);
	my $code = $coded ? take_huffman($r) : undef;
	my @restarts = map { take_int($r, 2) } 1 .. int(($n - 1) / 16);
	my $data = reader(take($r, $length));
	my @strings;

	$models{ $coded ? 'front, coded' : 'front' }++;
	foreach my $i (0 .. $n - 1)
	{
		my ($shared, $rest) = (0, 0);
		if ($i % 16 == 0)
		{
			die 'the offset of a whole string is wrong' if $i > 0 && $data->{at} != $restarts[ $i / 16 - 1 ];
			$rest = take_varint($data);
		}
		else
		{
			my $lengths = take_int($data, 1);
			my ($most_shared, $most_rest) = ((1 << $shared_bits) - 1, (1 << 8 - $shared_bits) - 1);
			($shared, $rest) = ($lengths >> 8 - $shared_bits, $lengths & $most_rest);
			$shared += take_varint($data) if $shared == $most_shared;
			$rest += take_varint($data) if $rest == $most_rest;
		}
		my $bytes = take($data, $rest);
		push @strings, ($shared ? substr($strings[-1], 0, $shared) : '') . ($coded ? decode_huffman($code, $bytes) : $bytes);
	}
	return @strings;
}

sub take_symbols
{
	my ($r, $n) = @_;
	my @counts = map { take_int($r, 1) } 1 .. 8;
	my @symbols = map { my $length = $_; map { take($r, $length) } 1 .. $counts[ $length - 1 ] } 1 .. 8;
	my @ends = take_sequence($r, $n);
	my $codes = reader(take($r, $ends[-1]));

	return map {
		my ($end, $string) = ($_, '');
		while ($codes->{at} < $end)
		{
			my $code = take_int($codes, 1);
			$string .= $code == 255 ? take($codes, 1) : $symbols[$code];
		}
		$string;
	} @ends;
}

# An LZ4 block, behind what it may copy from.
sub decode_lz4
{
	my ($bytes, $before) = @_;
	my $r = reader($bytes);
	my $out = $before;
	my $more = sub {
		my ($length) = @_;
		return $length if $length < 15;
		while (1)
		{
			my $byte = take_int($r, 1);
			$length += $byte;
			return $length if $byte < 255;
		}
	};

	while (1)
	{
		my $token = take_int($r, 1);
		$out .= take($r, $more->($token >> 4));
		last if $r->{at} == length($bytes);
		my $offset = take_int($r, 2);
		my $length = $more->($token & 15) + 4;
		$out .= substr($out, -$offset, 1) foreach 1 .. $length;
	}
	return substr($out, length($before));
}

sub take_groups
{
	my ($r, $n) = @_;
	my $shift = take_int($r, 1);
	my @ends = take_sequence($r, $n);
	my @data_ends = map { take_int($r, 2) } 0 .. ($n - 1) >> $shift;
	my $data = reader(take($r, $data_ends[-1]));
	my ($all, $first) = ('', '');

	foreach my $group (0 .. $#data_ends)
	{
		my $last = (($group + 1) << $shift) - 1;
		my $length = $ends[ $last < $n ? $last : $n - 1 ] - length($all);
		my $bytes = take($data, $data_ends[$group] - $data->{at});
		$bytes = decode_lz4($bytes, $first) if length($bytes) != $length;
		die 'a group has another length' if length($bytes) != $length;
		$first = $bytes if $group == 0;
		$all .= $bytes;
	}
	my $start = 0;
	return map { my $string = substr($all, $start, $_ - $start); $start = $_; $string } @ends;
}

# A column of n rows: integers (undef: NULL), or strings with their flag bytes.
sub take_column
{
	my ($r, $n, $is_int) = @_;
	my $encoding = take_int($r, 1);

	$models{"column $encoding"}++;
	return (undef) x $n if $encoding == 0;
	return take_sequence($r, $n) if $encoding == 1;
	if ($encoding == 2)
	{
		my @bitmap = split(//, take_bits($r, $n));
		my @integers = take_sequence($r, $n);
		return map { $bitmap[$_] ? undef : $integers[$_] } 0 .. $n - 1;
	}
	return take_groups($r, $n) if $encoding == 6;
	my $prefix = take($r, take_varint($r));
	return ($prefix) x $n if $encoding == 3;
	return map { $prefix . $_ } take_front($r, $n) if $encoding == 4;
	return map { $prefix . $_ } take_symbols($r, $n) if $encoding == 7;
	die "encoding $encoding" if $encoding != 5;
	my $length = take_varint($r);
	my $head = $length < 8 ? $length : 8;
	my @heads = map { substr(pack('Q>', $_), 8 - $head) } take_sequence($r, $n);
	return map { $prefix . $heads[$_] . take($r, $length - $head) } 0 .. $n - 1;
}

# The content of a columnar leaf: columns, first items of rows, TIDs as [block, offset].
sub take_columnar
{
	my ($r, $rows, $items, @is_int) = @_;
	my $flags = take_int($r, 1);
	my @columns = map { [ take_column($r, $rows, $_) ] } @is_int;
	my @starts = $rows < $items ? take_sequence($r, $rows) : 0 .. $rows - 1;
	my $factor = take_int($r, 2);
	my ($origin, $span) = $flags & 1 ? (take_int($r, 8), take_int($r, 8)) : (0, 0);
	my @elements;

	$models{"TIDs $flags"}++;
	if ($flags & 2)
	{
		my $blocks = int(($items + 127) / 128);
		my @ends = map { take_int($r, 2) } 1 .. $blocks;
		my $begin = $r->{at};
		foreach my $block (0 .. $blocks - 1)
		{
			push @elements, take_sequence($r, $block < $blocks - 1 ? 128 : $items - 128 * $block);
			die 'a block of TIDs ends elsewhere' if $r->{at} != $begin + $ends[$block];
		}
	}
	else
	{
		@elements = take_sequence($r, $items);
	}
	@elements = map { $origin + $_ % $span } @elements if $flags & 1;
	return (\@columns, \@starts, [ map { [ int($_ / $factor), $_ % $factor + 1 ] } @elements ]);
}

sub page_trailer
{
	my ($page) = @_;
	my %trailer;

	@trailer{qw(incarnation stamp kind level link count flags id)} = unpack('QQSSLLSS', substr($page, 8160, 32));
	die 'no trailer' if $trailer{id} != 0xFFB7;
	return \%trailer;
}

# What lies from byte 24 to pd_lower.
sub page_content { my ($page) = @_; return substr($page, 24, unpack('S', substr($page, 12, 2)) - 24); }

# A leaf: layout, its rows with what the layout has of each, and its tombstones.
sub read_leaf
{
	my ($page, @is_int) = @_;
	my $content = page_content($page);
	my $trailer = page_trailer($page);
	my %leaf = (tombstones => '');
	my ($rows, $items);

	($rows, $items, $leaf{layout}) = unpack('S<S<C', $content);
	die 'count' if $items != $trailer->{count};
	my $bitmap = int(($items + 7) / 8);
	$leaf{tombstones} = substr(unpack('b*', substr($content, -$bitmap, $bitmap, '')), 0, $items) if $trailer->{flags} & 2;
	my $r = reader(substr($content, 5));
	$models{"layout $leaf{layout}"}++;
	my ($columns, $starts, $tids, @fingerprints);
	my @have = map { {} } 1 .. $rows;
	if ($leaf{layout} == 1)
	{
		($columns, $starts, $tids) = take_columnar($r, $rows, $items, @is_int);
		foreach my $row (0 .. $rows - 1)
		{
			$have[$row]{columns} = [ map { $_->[$row] } @$columns ];
		}
	}
	else
	{
		my $common = take($r, take_varint($r));
		if ($leaf{layout} == 2)
		{
			my $depth = take_int($r, 1);
			($columns, $starts, $tids) = take_columnar($r, $rows, $items, 1, 1);
			foreach my $row (0 .. $rows - 1)
			{
				my ($number, $lacks) = map { $_->[$row] } @$columns;
				my $bits = substr(sprintf('%064b', $number), 64 - $depth);
				die 'bits that a row lacks are not 0' if $lacks > 0 && substr($bits, -$lacks, $lacks, '') =~ /1/;
				$have[$row]{bits} = unpack('B*', $common) . $bits;
			}
		}
		else
		{
			my @strings = take_front($r, $rows);
			$have[$_]{bits} = unpack('B*', $common . $strings[$_]) foreach 0 .. $rows - 1;
			(undef, $starts, $tids) = take_columnar($r, $rows, $items);
			my $bits = take_int($r, 1);
			$models{"fingerprints $bits"}++;
			@fingerprints = take_packed($r, $items, $bits) if $bits > 0;
		}
	}
	die 'bytes are left' if $r->{at} != length($r->{bytes});
	foreach my $row (0 .. $rows - 1)
	{
		my ($first, $end) = ($starts->[$row], $row + 1 < $rows ? $starts->[ $row + 1 ] : $items);
		$have[$row]{tids} = [ @$tids[ $first .. $end - 1 ] ];
		$have[$row]{fingerprints} = [ @fingerprints[ $first .. $end - 1 ] ] if @fingerprints;
	}
	$leaf{rows} = \@have;
	return \%leaf;
}

# The children of an internal node.
sub read_node
{
	my ($page) = @_;
	my $content = page_content($page);
	my $trailer = page_trailer($page);

	return map {
		my $r = reader(substr($content, $_));
		my %child = (block => take_int($r, 4), stamp => take_int($r, 8), length => take_int($r, 2), ncols => take_int($r, 1));
		$child{tie} = unpack('c', take($r, 1));
		@child{qw(rent filter_block image)} = (take_int($r, 2), take_int($r, 4), take_int($r, 2)) if $trailer->{flags} & 4;
		$child{tid} = [ unpack('SSS', take($r, 6)) ] if $child{tie} == 0;
		$child{separator} = take($r, $child{length});
		\%child;
	} unpack('S' . $trailer->{count}, $content);
}

# The images of a filter page.
sub read_filters
{
	my ($page) = @_;
	my $content = page_content($page);
	my $count = page_trailer($page)->{count};
	my $at = 24 + 16 * $count;

	return map {
		my %image;
		@image{qw(block offset length stamp)} = unpack('LSSQ', substr($content, 16 * $_, 16));
		die 'an image lies elsewhere' if $image{offset} != $at;
		@image{qw(kind fingerprints bits more zero)} = unpack('CCSSS', substr($page, $at, 8));
		$at += ($image{length} + 7) & ~7;
		\%image;
	} 0 .. $count - 1;
}

# The entries of a delta page: removed, TID as [block, offset], bytes.
sub read_delta
{
	my ($page) = @_;
	my $r = reader(page_content($page));
	my ($base, @entries);

	while ($r->{at} < length($r->{bytes}) && (my $byte = take_int($r, 1)))
	{
		my $length = $byte & 0x1F;
		$length = $length << 8 | take_int($r, 1) if $byte & 0x40;
		my ($high, $low, $offset) = $byte & 0x20 ? (0, take_int($r, 1) + ($base // die) - 64, take_int($r, 1)) : unpack('SSS', take($r, 6));
		$base //= $high << 16 | $low;
		push @entries, { removed => $byte & 0x80 ? 1 : 0, tid => [ $high << 16 | $low, $offset ], bytes => take($r, $length) };
	}
	return @entries;
}

# The block numbers of a free-list page.
sub read_blocks { my ($page) = @_; return unpack('L' . page_trailer($page)->{count}, page_content($page)); }

# The bytes of a dictionary page.
sub read_dictionary
{
	my ($page) = @_;
	my ($crc, $length) = unpack('LL', substr($page, 24, 8));
	my $check = 0xFFFFFFFF;

	foreach my $byte (unpack('C*', substr($page, 28, 4 + $length)))
	{
		$check ^= $byte;
		$check = $check & 1 ? $check >> 1 ^ 0x82F63B78 : $check >> 1 foreach 1 .. 8;
	}
	die 'CRC' if ($check ^ 0xFFFFFFFF) != $crc;
	return substr($page, 32, $length);
}

1;
