
# Index files are damaged.  Each query, hybrid_index_check, VACUUM, insert and merge
# gives a right answer or an error of class XX001 or XX002. hybrid_index_check finds
# the damage that queries do not notice.  Nothing crashes or hangs.
#
# Most of the damage is at random.  The last indexes are damaged in a chosen place,
# most of them in a block number.  There each error is XX002, and hybrid_index_check
# names a block.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridPages;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{HYBRID_SEED} // 42;
srand($seed);
note "seed $seed";

my $random_copies = 66;
my $node = new_node('corruption', <<EOF);
ignore_checksum_failure = on
hybridindex.background_merge = off
restart_after_crash = on
EOF

# Columns of the indexes, and the order of a query that they serve.  The fifth and the sixth
# have filter pages, and the fifth a dictionary; the last two are for a chosen
# damage only.
my @definitions = (
	[ '(k)', 'k, s' ], [ '(s, k)', 's, k' ], [ '(k, s)', 'k, s' ], [ '(s)', 's, k' ],
	[ "(s text_hope_ops (scheme = 'double-char'), k) WITH (filter = 'surf')", 's, k' ],
	[ "(k, s) WITH (filter = 'surf')", 'k, s' ],
	[ '(n, k)', 'n, k' ], [ '(k, s) WITH (filter = points)', 'k, s' ]);

# ---- damage in chosen places ----

# Each: what, number of the definition, how to damage the content.  With
# "frozen" in its name a merge is left half done, with "pass" a pass over two
# levels.
my @chosen;
my @wrong_numbers = (
	[ 'far away', sub { 0x7FFFFFF0 } ],
	[ 'just beyond the end', sub { length(${ $_[0] }) / $block_size } ],
	[ 'the metapage', sub { 0 } ]);
foreach my $wrong_number (@wrong_numbers)
{
	my ($name, $wrong) = @$wrong_number;
	my $in_meta = sub {
		my ($field) = @_;
		return sub { set32($_[0], 0, $meta{$field}, $wrong->($_[0])) };
	};

	push @chosen,
	  [ "root: $name", 0, $in_meta->('root') ],
	  [ "head of the log: $name", 1, $in_meta->('active_head') ],
	  [ "tail of the log: $name", 2, $in_meta->('active_tail') ],
	  [
		"head of the frozen log: $name", 3,
		sub {
			die 'no merge is running' if get32($_[0], 0, $meta{frozen_number}) == 0;
			set32($_[0], 0, $meta{frozen_head}, $wrong->($_[0]));
		}
	  ],
	  [ "free list: $name", 0, $in_meta->('freelist') ],
	  [
		"blocks of a free-list page: $name", 1,
		sub {
			my ($content) = @_;
			my $block = get32($content, 0, $meta{freelist});
			my $n = get32($content, $block, $trailer + 24);
			die 'the free list is empty' if $n == 0;
			set32($content, $block, 24 + 4 * $_, $wrong->($content)) foreach 0 .. $n - 1;
		}
	  ],
	  [
		"pending block: $name", 2,
		sub {
			set32($_[0], 0, $meta{npending}, 1);
			set32($_[0], 0, $meta{pending}, $wrong->($_[0]));
		}
	  ],
	  [
		"link of a delta page: $name", 3,
		sub {
			my ($content) = @_;
			my $block = get32($content, 0, $meta{active_head});
			die 'the log has one page' if get32($content, $block, $trailer + 20) == 0xFFFFFFFF;
			set32($content, $block, $trailer + 20, $wrong->($content));
		}
	  ],
	  [
		"child of an internal node: $name", 2,
		sub {
			my ($content) = @_;
			my $block = root($content);
			set32($content, $block, child_entry($content, $block, 1), $wrong->($content));
		}
	  ],
	  [
		"filter page of a leaf: $name", 5,
		sub {
			my ($content) = @_;
			my $block = root($content);
			set32($content, $block, child_entry($content, $block, 1) + 16 + 2, $wrong->($content));
		}
	  ],
	  [ "root of the newer level, in a pass: $name", 2, sub { set32($_[0], 0, newer('root'), $wrong->($_[0])) } ],
	  [
		"child of a node of the newer level, in a pass: $name", 2,
		sub {
			my ($content) = @_;
			my $root = root($content, newer('root'));
			set32($content, $root, child_entry($content, $root, 1), $wrong->($content));
		}
	  ],
	  [ "dictionary: $name", 4, $in_meta->('dictionary') ],
	  [
		"link of a dictionary page: $name", 4,
		sub { set32($_[0], find_block($_[0], 6), $trailer + 20, $wrong->($_[0])) }
	  ];
}
push @chosen,
  [
	'the newer level counts pages that it has not, in a pass', 2,
	sub { set64($_[0], 0, newer('leaf_pages'), 5 + get64($_[0], 0, newer('leaf_pages'))) }
  ],
  [
	'the newer level counts entries that it has not, in a pass', 2,
	sub { set64($_[0], 0, newer('static_tids'), 5 + get64($_[0], 0, newer('static_tids'))) }
  ],
  [
	'the watermark of a pass: no key', 6,
	sub { set8($_[0], 0, $meta{wm_key} + $_, 0xFF) foreach 0 .. 7 }
  ],
  [
	'the watermark of a frozen generation: no key', 6,
	sub { set8($_[0], 0, $meta{wm_key} + $_, 0xFF) foreach 0 .. 7 }
  ],
  [ 'a leaf of the newer level as a filter page, in a pass', 2,
	sub {
		my ($content) = @_;
		my $root = root($content, newer('root'));
		my $entry = child_entry($content, $root, 0);
		set32($content, $root, $entry + 16 + 2, get32($content, $root, $entry));
	}
  ],
  [
	'filters of the newer level without a header, in a pass', 2,
	sub {
		my ($content) = @_;
		my $root = root($content, newer('root'));
		my $block = get32($content, $root, child_entry($content, $root, 0) + 16 + 2);
		set8($content, $block, get16($content, $block, 28) + 8 + 2, 0);
	}
  ],
  [ 'separators of the newer level that descend, in a pass', 2, sub { swap_children($_[0], root($_[0], newer('root'))) } ],
  [ 'separators that descend', 2, sub { swap_children($_[0], root($_[0])) } ],
  [
	'separators with columns that they do not have', 1,
	sub {
		my ($content) = @_;
		my $root = root($content);
		set8($content, $root, child_entry($content, $root, $_) + 14, 2) foreach 1 .. get32($content, $root, $trailer + 24) - 1;
	}
  ],
  [ 'a separator with more columns than the index', 2, sub { set8($_[0], root($_[0]), child_entry($_[0], root($_[0]), 1) + 14, 200) } ],
  [
	'a separator longer than any key', 2,
	sub {
		my ($content) = @_;
		my $root = root($content);
		set16($content, $root, 12, 6000);
		set16($content, $root, child_entry($content, $root, $_) + 12, 3000) foreach 1 .. 3;
	}
  ],
  [ 'more children than an int holds', 1, sub { set32($_[0], root($_[0]), $trailer + 24, 0x80000001) } ],
  [ 'flags say that a merge runs, and none does', 1, sub { set32($_[0], 0, $meta{flags}, 0x14) } ],
  [ 'more pages of the log than any file has', 1, sub { set8($_[0], 0, $meta{active_npages} + 7, 1) } ],
  [ 'all flags', 1, sub { set32($_[0], 0, $meta{flags}, 0xFFFFFFFF) } ],
  [ 'the metapage without content', 1, sub { set16($_[0], 0, 12, 24) } ],
  [ 'a free-list page without content', 1, sub { set16($_[0], get32($_[0], 0, $meta{freelist}), 12, 24) } ],
  [
	'a free-list page links to itself', 1,
	sub { my $block = get32($_[0], 0, $meta{freelist}); set32($_[0], $block, $trailer + 20, $block) }
  ],
  [ 'root: none', 0, sub { set32($_[0], 0, $meta{root}, 0xFFFFFFFF) } ],
  [ 'more levels than there can be', 0, sub { set32($_[0], 0, $meta{nlevels}, 0x7FFFFFFF) } ],
  [
	'a leaf that is not the one its parent points to', 1,
	sub {
		my ($content) = @_;
		my $block = get32($content, root($content), child_entry($content, root($content), 0));
		set64($content, $block, $trailer + 8, get64($content, $block, $trailer + 8) + 1);
	}
  ],
  [
	'child of an internal node: none', 1,
	sub {
		my ($content) = @_;
		my $block = root($content);
		set32($content, $block, child_entry($content, $block, 0), 0xFFFFFFFF);
	}
  ],
  [
	'the log goes round in a circle', 2,
	sub {
		my ($content) = @_;
		set32($content, get32($content, 0, $meta{active_tail}), $trailer + 20,
			get32($content, 0, $meta{active_head}));
	}
  ],
  [
	'the frozen log goes round in a circle', 3,
	sub {
		my $block = get32($_[0], 0, $meta{frozen_head});
		set32($_[0], $block, $trailer + 20, $block);
	}
  ],
  [
	'the last page of the log links to itself', 4,
	sub {
		my $block = get32($_[0], 0, $meta{active_tail});
		set32($_[0], $block, $trailer + 20, $block);
	}
  ],
  [
	'the free list begins at the tail of the log', 3,
	sub { set32($_[0], 0, $meta{freelist}, get32($_[0], 0, $meta{active_tail})) }
  ],
  [
	'a filter lies outside of its page', 5,
	sub { set16($_[0], filter_page($_[0]), 24 + 4, 8000) }
  ],
  [
	'a filter without a header', 5,
	sub {
		my ($content) = @_;
		my $block = filter_page($content);
		substr($$content, $block * $block_size + get16($content, $block, 24 + 4) + 8, 32) = "\xFF" x 32;
	}
  ],
  [
	'a filter for points without a header', 7,
	sub {
		my ($content) = @_;
		my $block = filter_page($content);
		set8($content, $block, get16($content, $block, 24 + 4) + 8 + 2, 0);
	}
  ],
  [
	'a filter of an unknown kind', 5,
	sub {
		my ($content) = @_;
		my $block = filter_page($content);
		substr($$content, $block * $block_size + get16($content, $block, 24 + 4), 1) = "\xFE";
	}
  ],
  [
	'a byte of the dictionary', 4,
	sub {
		my ($content) = @_;
		set32($content, find_block($content, 6), 200, get32($content, find_block($content, 6), 200) ^ 0x1000);
	}
  ],
  [
	'rows that descend', 6,
	sub {
		my ($content, $other) = @_;
		my $block = get32($content, root($content), child_entry($content, root($content), 0));
		my $reverse = find_block($other, 2);

		# another index's leaf, in reverse order, under this one's trailer
		set16($content, $block, 12, get16($other, $reverse, 12));
		set32($content, $block, $trailer + 24, get32($other, $reverse, $trailer + 24));
		substr($$content, $block * $block_size + 24, $trailer - 24) =
		  substr($$other, $reverse * $block_size + 24, $trailer - 24);
	}
  ];

# The last child of a node, and the one before, change places.
sub swap_children
{
	my ($content, $block) = @_;
	my $n = get32($content, $block, $trailer + 24);
	my @at = map { 24 + 2 * ($n - $_) } 1, 2;
	my @slots = map { get16($content, $block, $_) } @at;

	die 'there is one child' if $n < 2;
	set16($content, $block, $at[$_], $slots[ 1 - $_ ]) foreach 0, 1;
	return;
}

my $copies = $random_copies + @chosen;

sub chosen { return $_[0] > $random_copies ? $chosen[ $_[0] - $random_copies - 1 ] : undef; }
sub definition { return $definitions[ chosen($_[0]) ? chosen($_[0])->[1] : $_[0] % 6 ]; }

# ---- the indexes ----

# The template: several leaves under an internal node, tombstones, a delta log
# of several pages, free pages; some have two levels and are in the middle of a
# pass.
my $rows = "SELECT hashint4(g) % 10000, md5(g::text), hashint4(g) % 10000 FROM generate_series";
foreach my $i (1 .. $copies)
{
	my $sql = <<EOF;
CREATE TABLE t$i (k int, s text COLLATE "C", n numeric);
CREATE INDEX i$i ON t$i USING hybrid @{[ definition($i)->[0] ]};
INSERT INTO t$i $rows(1, 2500) g;
SELECT hybrid_merge('i$i');
INSERT INTO t$i $rows(2500, 3000) g;
SELECT hybrid_merge('i$i');
DELETE FROM t$i WHERE k % 10 = 3;
VACUUM t$i;
INSERT INTO t$i $rows(5000, 5450) g;
EOF
	if (chosen($i) && chosen($i)->[0] =~ /frozen/)
	{
		$sql .= <<EOF;
SET hybridindex.merge_floor = 100;
SET hybridindex.merge_step_pages = 1;
DO \$\$
BEGIN
	FOR g IN 10000 .. 30000 LOOP
		EXIT WHEN (SELECT merge_running FROM hybrid_index_stats('i$i'));
		INSERT INTO t$i SELECT g, md5(g::text);
	END LOOP;
END \$\$;
EOF
	}
	$sql .= pass_begun("i$i", "INSERT INTO t$i SELECT hashint4(g * 200 + i) % 10000, md5((g * 200 + i)::text), hashint4(g * 200 + i) % 10000 FROM generate_series(100000, 100199) i")
	  if chosen($i) ? chosen($i)->[0] =~ /a pass/ : $i % 4 == 0;
	$node->safe_psql('postgres', $sql);
}

# The rows of the last one in reverse, in leaves that are full: a merge cannot but
# cut them in two, which is where it notices.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE reverse (k int, s text COLLATE "C", n numeric);
INSERT INTO reverse SELECT k, s, n FROM t$copies;
CREATE INDEX reverse_i ON reverse USING hybrid (n DESC, k DESC);
EOF

my (%file, %table_file);
foreach my $i (1 .. $copies)
{
	$table_file{$i} = $node->safe_psql('postgres', "SELECT pg_relation_filepath('t$i')");
	$file{$i} = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('i$i')");
}
my $reverse_file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('reverse_i')");
$node->stop;
my $reverse = slurp_file($reverse_file);

# The server's checksums, on by default since 18, would find all of it first;
# this fails where they are off.
$node->run_log([ 'pg_checksums', '--disable', '--no-sync', '-D', $node->data_dir ]);

my %damage;
foreach my $i (1 .. $random_copies)
{
	my $content = slurp_file($file{$i});
	my $kinds = kinds(\$content);
	my @kinds = sort { $a <=> $b } keys %$kinds;
	my $kind = $kinds[ $i % @kinds ];
	my @blocks = @{ $kinds->{$kind} };
	my $block = $blocks[ int(rand(@blocks)) ];
	my $page = substr($content, $block * $block_size, $block_size);
	my $how = int($i / @kinds) % 9;
	my $what;

	if ($how == 0)
	{
		$what = 'zeroed';
		$page = "\0" x $block_size;
	}
	elsif ($how == 1)
	{
		$what = 'random bytes after the header';
		substr($page, 24, $block_size - 24 - 40) = join('', map { chr(int(rand(256))) } 1 .. $block_size - 24 - 40);
	}
	elsif ($how == 2)
	{
		my $other = int(rand(length($content) / $block_size));
		$what = "replaced by block $other";
		$page = substr($content, $other * $block_size, $block_size);
	}
	elsif ($how == 3)
	{
		$what = 'bytes flipped in the special space';
		substr($page, $block_size - 1 - int(rand(40)), 1) ^= chr(1 + int(rand(255))) foreach 1 .. 2;
	}
	elsif ($how == 4)
	{
		$what = 'bytes flipped in the page header';
		substr($page, int(rand(24)), 1) ^= chr(1 + int(rand(255))) foreach 1 .. 2;
	}
	elsif ($how == 5)
	{
		$what = 'bytes flipped just after the header';
		substr($page, 24 + int(rand(64)), 1) ^= chr(1 + int(rand(255))) foreach 1 .. 3;
	}
	elsif ($how == 6)
	{
		$what = 'the tail of the file cut off';
		$content = substr($content, 0, ($block > 0 ? $block : 1) * $block_size);
		$page = undef;
	}
	else
	{
		my $flips = $how == 7 ? 1 : 16;
		$what = "$flips bytes flipped anywhere";
		substr($page, int(rand($block_size)), 1) ^= chr(1 + int(rand(255))) foreach 1 .. $flips;
	}
	substr($content, $block * $block_size, $block_size) = $page if defined $page;
	write_file($file{$i}, $content);
	$damage{$i} = "index $i, block $block of kind $kind: $what";
}
foreach my $i ($random_copies + 1 .. $copies)
{
	my ($name, undef, $apply) = @{ chosen($i) };
	my $content = slurp_file($file{$i});

	$apply->(\$content, \$reverse);
	write_file($file{$i}, $content);
	$damage{$i} = "index $i: $name";
}
$node->start;

# SQLSTATE of a statement, or '' if it succeeded; and its output.  A session
# that neither ends nor heeds its timeout is ended with the server.
#
# Where a heap TID leads beyond the end of the table, the server reports that of the
# table's file, as with btree.  The SQLSTATE is XX001, that of a missing file (58P01),
# or XX000 where the server does not say why.
sub state_of
{
	my ($sql, $table) = @_;
	my $timed_out;
	my ($ret, $out, $err);

	eval {
		($ret, $out, $err) = $node->psql('postgres',
			"SET statement_timeout = '10s';\n\\set VERBOSITY verbose\n$sql",
			on_error_stop => 1, timeout => 40, timed_out => \$timed_out);
	};
	if ($timed_out)
	{
		my @pids = split /\n/, $node->safe_psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()");
		kill('QUIT', @pids);
		sleep 1;
		$node->poll_query_until('postgres', 'SELECT true');
		return ('hang', '');
	}
	return ('', $out) if $ret == 0;
	return ('XX001', $out) if $err =~ /ERROR:\s+\w{5}: could not open file "\Q$table\E\.\d+" \(target block \d+\)/;
	return ($1, $out) if $err =~ /ERROR:\s+(\w{5})/;
	$node->poll_query_until('postgres', 'SELECT true');
	return ("crash: $err", $out);
}

my $noticed = 0;
foreach my $i (1 .. $copies)
{
	my @bad;
	my $wrong = 0;
	my $expected = chosen($i) ? qr/^(XX002)?$/ : qr/^(XX00[12])?$/;
	my $settings = "SET enable_seqscan = off; SET enable_sort = off;";
	my %queries = (
		'range' => "SELECT count(*), sum(k) FROM t$i WHERE k BETWEEN -500 AND 4000 AND s >= '2' AND s < 'e'",
		'points' => "SELECT count(*) FROM t$i a JOIN (SELECT hashint4(g) % 10000 AS k, md5(g::text) AS s FROM generate_series(1, 5300, 50) g) b ON a.k = b.k AND a.s = b.s",
		'order' => "SELECT md5(string_agg(x::text, ',')) FROM (SELECT k, s FROM t$i ORDER BY " . definition($i)->[1] . ") x");

	foreach my $name (sort keys %queries)
	{
		my ($state0, $want) = state_of("SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $queries{$name}", $table_file{$i});
		last if grep { /57014/ } @bad;
		foreach my $path ('SET enable_bitmapscan = off;', 'SET enable_indexscan = off; SET enable_indexonlyscan = off;')
		{
			my ($state, $got) = state_of("$settings $path $queries{$name}", $table_file{$i});
			push @bad, "query \"$name\" ($path): $state" if $state !~ $expected;
			$wrong++ if $state eq '' && $got ne $want;
		}
	}
	my ($check) = state_of("SELECT hybrid_index_check('i$i', true)", $table_file{$i});
	push @bad, "hybrid_index_check: $check" unless $check =~ $expected;
	push @bad, "$wrong wrong answers, not noticed by hybrid_index_check" if $wrong && $check eq '';
	$noticed++ if $check ne '';
	if (chosen($i))
	{
		my ($ret, $out, $err) = $node->psql('postgres', "SELECT hybrid_index_check('i$i')");
		push @bad, "hybrid_index_check names no block: $err"
		  if $err !~ /index "i$i" is corrupted at block \d+/;
	}
	foreach my $sql (
		"INSERT INTO t$i SELECT g, md5(g::text), g FROM generate_series(1, 1200) g",
		"DELETE FROM t$i WHERE k % 10 = 4", "VACUUM t$i",
		"SELECT count(*) FROM hybrid_dictionary_info('i$i')",
		"SELECT hybrid_merge('i$i')", "SELECT hybrid_index_stats('i$i')",
		"SELECT hybrid_index_check('i$i')")
	{
		my ($state) = state_of($sql, $table_file{$i});
		push @bad, "$sql: $state" unless $state =~ $expected;
		push @bad, "$sql did not notice"
		  if $damage{$i} =~ /rows that descend/ && $sql =~ /hybrid_merge/ && $state eq '';
	}
	my ($state) = state_of("REINDEX INDEX i$i", $table_file{$i});
	push @bad, "REINDEX: $state" if $state ne '';
	($state) = state_of("SELECT hybrid_index_check('i$i', true)", $table_file{$i});
	push @bad, "check after REINDEX: $state" if $state ne '';
	is(join("\n", @bad), '', $damage{$i});
}
# the rest hit bytes that nothing depends on
cmp_ok($noticed - @chosen, '>', $random_copies / 3,
	"the check noticed $noticed of $copies damaged indexes");
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
