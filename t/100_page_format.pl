# Pages are what docs/format.md says.  HybridPages.pm reads every kind of page by
# that description.  What it reads is what the table and hybrid_index_stats have.

use strict;
use warnings;
no warnings 'portable';
use FindBin;
use lib $FindBin::RealBin;
use HybridPages;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('format', 'hybridindex.background_merge = off');
plan skip_all => 'a server of 32 bits has another format' if is_32_bit($node);

# Columns of the indexes below: form, and whether descending.
my %type = (id => 'int', few => 'int', wide => 'int', t => 'text', u => 'fixed', j => 'text', w => 'text', same => 'text');
my %index = (
	fm_id => { keys => ['id'], include => [ 'j', 'w', 'same' ], filter => 1 },
	fm_few => { keys => ['few'], desc => 1 },
	fm_wide => { keys => ['id'], include => [ 'wide', 'few' ] },
	fm_t => { keys => [ 't', 'id' ], filter => 3 },
	fm_u => { keys => ['u'], filter => 1 },
	fm_numbers => { keys => ['u'], filter => 3, layout => 2 },
	fm_strings => { keys => [ 't', 'id' ], filter => 3, layout => 3 });
my $files = join(',', map { "'$_'" } sort keys %index);

$node->safe_psql('postgres', <<'EOF');
CREATE FUNCTION fm_rows(lo int, hi int) RETURNS TABLE (id int8, few int4, wide int8, t text, u uuid, j text, w text, same text) LANGUAGE sql AS $$
	SELECT CASE WHEN i % 50 > 0 THEN i::int8 * 17 + hashint4(i) % 9 END,
		CASE WHEN i % 40 > 0 THEN CASE WHEN i % 3 = 0 THEN 5 ELSE abs(hashint4(i)) % 60 END END,
		CASE i % 100 WHEN 0 THEN NULL WHEN 1 THEN 0 WHEN 2 THEN -1 ELSE hashint8extended(i, 0) END,
		CASE WHEN i % 60 > 0 THEN (array['alpha', 'beta ', 'gamma/', 'delta'])[1 + i % 4] || md5((i / 4)::text) END,
		md5('u' || i)::uuid,
		format('{"number": %s, "name": "%s"}', i, (SELECT string_agg(md5((i % 10)::text || n), ' ') FROM generate_series(1, 4) n)),
		CASE WHEN i % 30 > 0 THEN 'http://example.org/' || md5(i::text) || '/' || i % 100 END, 'one value'
	FROM generate_series(lo, hi) i
$$;
CREATE TABLE fm (id int8, few int4, wide int8, t text COLLATE "C", u uuid, j text COLLATE "C", w text COLLATE "C", same text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO fm SELECT * FROM fm_rows(1, 12000);
CREATE INDEX fm_id ON fm USING hybrid (id) INCLUDE (j, w, same) WITH (filter = surf);
CREATE INDEX fm_few ON fm USING hybrid (few DESC);
CREATE INDEX fm_wide ON fm USING hybrid (id) INCLUDE (wide, few);
CREATE INDEX fm_t ON fm USING hybrid (t, id) WITH (filter = points);
CREATE INDEX fm_u ON fm USING hybrid (u) WITH (filter = surf);
CREATE INDEX fm_numbers ON fm USING hybrid (u) WITH (filter = points, layout = trie);
CREATE INDEX fm_strings ON fm USING hybrid (t, id) WITH (filter = points, layout = trie);
CREATE INDEX fm_hope ON fm USING hybrid (t text_hope_ops (scheme = 'double-char'));
EOF

# ---- what is expected ----

# A value as leaves have it: the number of an integer, or a string with its flag.
sub value
{
	my ($column, $hex, $desc, $included) = @_;
	my $null = $desc ? "\x00" : "\x02";

	return $type{$column} eq 'int' ? undef : $null if $hex eq '';
	my $bytes = pack('H*', substr($hex, 1));
	$bytes ^= "\x80" . "\0" x (length($bytes) - 1) if $type{$column} eq 'int' && !$included;
	$bytes = ~$bytes if $desc;
	return $type{$column} eq 'int' ? unpack('Q>', "\0" x (8 - length($bytes)) . $bytes) : "\x01$bytes";
}

# The same in an entry.
sub entry_bytes
{
	my ($column, $hex, $desc, $included) = @_;

	return $desc ? "\x00" : "\x02" if $hex eq '';
	my $value = value($column, $hex, $desc, $included);
	return "\x01" . pack('L', length($value) - 1) . substr($value, 1) if $type{$column} eq 'text' && $included;
	return $value . ($type{$column} eq 'text' ? "\0" : '') if $type{$column} ne 'int';
	return "\x01" . substr(pack('Q>', $value), 8 - (length($hex) - 1) / 2);
}

# Rows of the table by TID.  A value is x and its bytes in hexadecimal, or nothing.
my %table;
my @columns = sort keys %type;

sub read_table
{
	my $send = join(', ', map { my $c = $_; "'x' || encode(" . ($type{$c} eq 'text' ? "convert_to($c, 'UTF8')" :
			$c eq 'u' ? 'uuid_send(u)' : $c eq 'few' ? 'int4send(few)' : "int8send($c)") . ", 'hex')" } @columns);

	%table = ();
	foreach (split /\n/, $node->safe_psql('postgres', "SELECT ctid, $send FROM fm"))
	{
		my ($tid, @values) = split /\|/, $_, -1;
		my %row;
		@row{@columns} = @values;
		$table{$tid} = \%row;
	}
	return;
}

sub key_of { my ($index, $row) = @_; return join('', map { entry_bytes($_, $row->{$_}, $index->{desc}) } @{ $index->{keys} }); }

# ---- what pages have ----

my $content;		# of the file at hand
sub page { my ($block) = @_; return substr($content, $block * $block_size, $block_size); }

sub read_index
{
	my ($name) = @_;
	my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "CHECKPOINT; SELECT pg_relation_filepath('$name')");
	$content = slurp_file($file);
	return;
}

# The children of level-1 nodes, in order; counts of pages and heights on the way.
sub leaves_below
{
	my ($block, $stamp, $height, $seen) = @_;
	my $trailer = page_trailer(page($block));

	die "stamp of block $block" if $trailer->{stamp} != $stamp;
	die "node $block" if $trailer->{kind} != 3 || $trailer->{level} != $height - 1;
	$seen->{inner}++;
	return map { $height == 2 ? $_ : leaves_below(@$_{qw(block stamp)}, $height - 1, $seen) } read_node(page($block));
}

# Filters of leaves: each image names its leaf, in order.
sub check_filters
{
	my ($index, $leaves) = @_;
	my %pages;

	foreach my $leaf (grep { $_->{filter_block} != 0xFFFFFFFF } @$leaves)
	{
		my $page = $pages{ $leaf->{filter_block} } //= [ read_filters(page($leaf->{filter_block})) ];
		my $image = $page->[ $leaf->{image} ];
		die 'an image is of another leaf' if $image->{block} != $leaf->{block} || $image->{stamp} != $leaf->{stamp};
		die 'kind of a filter' if $image->{kind} != $index->{filter} || $image->{zero} != 0;
		my $prefixes = ($leaf->{layout} > 1 ? 1 : 0);
		die 'a filter is about something else' if ($image->{bits} > 0) != $prefixes ||
			$image->{fingerprints} != ($leaf->{layout} == 3 ? 1 : 0);
		$leaf->{lengths} = [ map { $image->{bits} / 8 + $_ } 0 .. $image->{more} ] if $leaf->{layout} == 3;
	}
	return scalar(keys %pages);
}

# An item of a leaf is the row of the table with its TID.
sub check_item
{
	my ($index, $leaf, $row, $item, $tid) = @_;
	my $wanted = $table{$tid} // die "no row $tid";
	my $key = key_of($index, $wanted);

	if ($leaf->{layout} == 1)
	{
		my @names = (@{ $index->{keys} }, @{ $index->{include} // [] });
		foreach my $i (0 .. $#names)
		{
			my $value = value($names[$i], $wanted->{ $names[$i] }, $index->{desc}, $i >= @{ $index->{keys} });
			my $have = $row->{columns}[$i];
			die "$names[$i] of $tid" if defined $value != defined $have || (defined $value && $value ne $have);
		}
	}
	else
	{
		die "prefix of $tid" if index(unpack('B*', $key), $row->{bits}) != 0;
		die "fingerprint of $tid" if $row->{fingerprints} && $row->{fingerprints}[$item] != byte_hash($key) >> 59;
	}
	return $key;
}

# All of an index against the table and hybrid_index_stats.
sub check_index
{
	my ($name) = @_;
	my $index = $index{$name};
	my (%seen, %tids, @keys);
	my $tombstones = 0;

	read_index($name);
	my ($magic, $format, $height, $block, $stamp) = (get32(\$content, 0, 24), get32(\$content, 0, 28),
		get32(\$content, 0, 24 + 68), get32(\$content, 0, 24 + 64), get64(\$content, 0, 24 + 56));
	die 'metapage' if $magic != 0x48594249 || $format != 12 || page_trailer(page(0))->{kind} != 1;
	my @leaves = leaves_below($block, $stamp, $height, \%seen);
	foreach my $i (0 .. $#leaves)
	{
		my $leaf = $leaves[$i];
		my $trailer = page_trailer(page($leaf->{block}));
		my $next = $i < $#leaves ? $leaves[ $i + 1 ] : undef;

		die "leaf $leaf->{block}" if $trailer->{kind} != 2 || $trailer->{stamp} != $leaf->{stamp};
		my $read = read_leaf(page($leaf->{block}), map { $type{$_} eq 'int' ? 1 : 0 } @{ $index->{keys} }, @{ $index->{include} // [] });
		$leaf->{layout} = $read->{layout};
		my $at = 0;
		foreach my $row (@{ $read->{rows} })
		{
			foreach my $item (0 .. $#{ $row->{tids} })
			{
				my $tid = '(' . join(',', @{ $row->{tids}[$item] }) . ')';
				if (substr($read->{tombstones}, $at++, 1) eq '1')
				{
					$tombstones++;
					next;
				}
				my $key = check_item($index, $leaf, $row, $item, $tid);
				die "$tid twice" if $tids{$tid}++;
				die "$tid lies before its leaf" if $leaf->{tie} == -1 && $key lt $leaf->{separator};
				die "$tid lies behind its leaf" if $next && $next->{tie} == -1 && $key ge $next->{separator};
			}
		}
		die 'TIDs of a leaf' if $at != $trailer->{count};
	}
	die 'rows are missing' if keys %tids != keys %table;
	my $filters = $index->{filter} ? check_filters($index, \@leaves) : 0;
	return join('|', keys(%tids) + $tombstones, $tombstones, scalar(@leaves), $seen{inner}, $height, $filters);
}

sub check_indexes
{
	my ($when) = @_;

	read_table();
	foreach my $name (sort keys %index)
	{
		my $have = eval { check_index($name) } // $@;
		is($have, $node->safe_psql('postgres', "SELECT concat_ws('|', static_entries, static_tombstones, leaf_pages, inner_pages, height, filter_pages) FROM hybrid_index_stats('$name')"),
			"$name, $when");
	}
	return;
}

check_indexes('built');

# ---- delta pages: entries of new rows ----

$node->safe_psql('postgres', 'INSERT INTO fm SELECT * FROM fm_rows(20001, 20300)');
read_table();
foreach my $name (sort keys %index)
{
	my $index = $index{$name};
	my $entries = 0;
	my $have = eval {
		read_index($name);
		foreach my $lane (0 .. 3)
		{
			my $block = get32(\$content, 0, 24 + 280 + 8 + 4 * $lane);
			for (; $block != 0xFFFFFFFF; $block = page_trailer(page($block))->{link})
			{
				my $trailer = page_trailer(page($block));
				die 'delta page' if $trailer->{kind} != 4 || $trailer->{stamp} != get64(\$content, 0, 24 + 280);
				foreach my $entry (read_delta(page($block)))
				{
					my $row = $table{ '(' . join(',', @{ $entry->{tid} }) . ')' } // die 'no such row';
					my $bytes = key_of($index, $row) . join('', map { entry_bytes($_, $row->{$_}, 0, 1) } @{ $index->{include} // [] });
					die 'an entry is another one' if $entry->{bytes} ne $bytes || $entry->{removed};
					$entries++;
				}
			}
		}
		$entries;
	} // $@;
	is($have, 300, "log of $name");
}

# ---- merges, tombstones and free blocks ----

$node->safe_psql('postgres', <<EOF);
SELECT hybrid_merge(c::regclass) FROM unnest(array[$files]) c;
DELETE FROM fm WHERE ctid IN (SELECT ctid FROM fm ORDER BY ctid OFFSET 500 LIMIT 40);
VACUUM (INDEX_CLEANUP ON) fm;
EOF
check_indexes('merged');
foreach my $name (sort keys %index)
{
	my $have = eval {
		my %blocks;
		read_index($name);
		for (my $block = get32(\$content, 0, 24 + 512); $block != 0xFFFFFFFF; $block = page_trailer(page($block))->{link})
		{
			die 'free-list page' if page_trailer(page($block))->{kind} != 5;
			$blocks{$_}++ foreach $block, read_blocks(page($block));
		}
		die 'free twice' if grep { $_ > 1 } values %blocks;
		join('|', scalar(keys %blocks), get32(\$content, 0, 24 + 516) == keys %blocks ? 't' : 'f');
	} // $@;
	is($have, $node->safe_psql('postgres', "SELECT free_pages || '|t' FROM hybrid_index_stats('$name')"), "free blocks of $name");
}

# ---- dictionary pages ----

my $have = eval {
	my $bytes = '';
	read_index('fm_hope');
	for (my $block = get32(\$content, 0, 24 + 528); $block != 0xFFFFFFFF; $block = page_trailer(page($block))->{link})
	{
		my $trailer = page_trailer(page($block));
		die 'dictionary page' if $trailer->{kind} != 6 || $trailer->{stamp} != 1;
		my $part = read_dictionary(page($block));
		die 'bytes of a page' if $trailer->{count} != length($part);
		$bytes .= $part;
	}
	my ($magic, $n, $number, $learned, $samples, $plain, $encoded, $size) = unpack('LLLLQQQQ', $bytes);
	die 'length' if length($bytes) != 48 + $size;
	sprintf('%x %d %d %d %d', $magic, $n, $number, $learned, $encoded < $plain);
} // $@;
is($have, '45504f48 1 0 1 1', 'dictionary');

# ---- was every form read? ----

my @forms = ('layout 1', 'layout 2', 'layout 3', (map { "sequence $_" } 0 .. 3), (map { "column $_" } 1 .. 7),
	'front', 'front, coded', 'fingerprints 5', 'TIDs 0', 'TIDs 1', 'TIDs 3');
note("$_: $models{$_}") foreach sort keys %models;
is(join(', ', grep { !$models{$_} } @forms), '', 'all forms were read');
no_crash($node, 'no crash');
done_testing();
