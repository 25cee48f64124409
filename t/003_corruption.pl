
# Damaged index files: every query, the check, VACUUM, insertions and merges
# give a right answer or an error of class XX001 or XX002; what is wrong and
# not noticed by a query is noticed by hybrid_index_check; nothing crashes or
# hangs.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{HYBRID_SEED} // 42;
srand($seed);
note "seed $seed";

my $copies = 56;
my $block_size = 8192;
my $node = new_node('corruption', <<EOF);
hybridindex.background_merge = off
restart_after_crash = on
EOF

# The template: several leaves under an internal node, tombstones, a delta log,
# free pages.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE damage (n int, kind text);
DO \$\$
BEGIN
	FOR i IN 1 .. $copies LOOP
		EXECUTE format('CREATE TABLE t%s (k int, s text COLLATE "C")', i);
		EXECUTE format('CREATE INDEX i%s ON t%s USING hybrid (%s)', i, i, (array['k', 's, k', 'k, s', 's'])[1 + i % 4]);
		EXECUTE format('INSERT INTO t%s SELECT hashint4(g) %% 10000, md5(g::text) FROM generate_series(1, 2500) g', i);
		PERFORM hybrid_merge(format('i%s', i)::regclass);
		EXECUTE format('INSERT INTO t%s SELECT hashint4(g) %% 10000, md5(g::text) FROM generate_series(2500, 3000) g', i);
		PERFORM hybrid_merge(format('i%s', i)::regclass);
		EXECUTE format('DELETE FROM t%s WHERE k %% 10 = 3', i);
	END LOOP;
END \$\$;
EOF
$node->safe_psql('postgres', 'VACUUM');
$node->safe_psql('postgres', <<EOF);
DO \$\$
BEGIN
	FOR i IN 1 .. $copies LOOP
		EXECUTE format('INSERT INTO t%s SELECT hashint4(g) %% 10000, md5(g::text) FROM generate_series(5000, 5300) g', i);
	END LOOP;
END \$\$;
EOF
my %file;
foreach my $i (1 .. $copies)
{
	$file{$i} = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('i$i')");
}
$node->stop;

# Page kinds by block, from the special space (docs/format.md): kind is the
# uint16 at byte 16 of it.
sub kinds
{
	my ($content) = @_;
	my %kinds;
	for (my $block = 0; $block < length($content) / $block_size; $block++)
	{
		my $page = substr($content, $block * $block_size, $block_size);
		my $special = unpack('S', substr($page, 16, 2));
		my $kind = $special > 0 && $special < $block_size - 18 ? unpack('S', substr($page, $special + 16, 2)) : 0;
		push @{ $kinds{$kind} }, $block;
	}
	return \%kinds;
}

my %damage;
foreach my $i (1 .. $copies)
{
	my $content = slurp_file($file{$i});
	my $kinds = kinds($content);
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
	open(my $fh, '+<:raw', $file{$i}) or die $!;
	truncate($fh, 0) or die $!;
	print $fh $content;
	close($fh) or die $!;
	$damage{$i} = "index $i, block $block of kind $kind: $what";
}
$node->start;

# SQLSTATE of a statement, or '' if it succeeded; and its output.  A session
# that neither ends nor heeds its timeout is ended with the server.
sub state_of
{
	my ($sql) = @_;
	my $timed_out;
	my ($ret, $out, $err);

	eval {
		($ret, $out, $err) = $node->psql('postgres',
			"SET statement_timeout = '10s';\n\\set VERBOSITY sqlstate\n$sql",
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
	return ($1, $out) if $err =~ /ERROR:\s+(\w{5})/;
	$node->poll_query_until('postgres', 'SELECT true');
	return ("crash: $err", $out);
}

my $noticed = 0;
foreach my $i (1 .. $copies)
{
	my @bad;
	my $wrong = 0;
	my $settings = "SET enable_seqscan = off; SET enable_sort = off;";
	my %queries = (
		'range' => "SELECT count(*), sum(k) FROM t$i WHERE k BETWEEN -500 AND 4000 AND s >= '2' AND s < 'e'",
		'points' => "SELECT count(*) FROM t$i a JOIN (SELECT hashint4(g) % 10000 AS k, md5(g::text) AS s FROM generate_series(1, 5300, 50) g) b ON a.k = b.k AND a.s = b.s",
		'order' => "SELECT md5(string_agg(x::text, ',')) FROM (SELECT k, s FROM t$i ORDER BY "
		  . ('k, s', 's, k', 'k, s', 's, k')[ $i % 4 ] . ") x");

	foreach my $name (sort keys %queries)
	{
		my ($state0, $want) = state_of("SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $queries{$name}");
		last if grep { /57014/ } @bad;
		foreach my $path ('SET enable_bitmapscan = off;', 'SET enable_indexscan = off; SET enable_indexonlyscan = off;')
		{
			my ($state, $got) = state_of("$settings $path $queries{$name}");
			if ($state eq '')
			{
				$wrong++ if $got ne $want;
			}
			elsif ($state !~ /^XX00[12]$/)
			{
				push @bad, "query \"$name\" ($path): $state";
			}
		}
	}
	my ($check) = state_of("SELECT hybrid_index_check('i$i', true)");
	push @bad, "hybrid_index_check: $check" unless $check =~ /^(XX00[12])?$/;
	push @bad, "$wrong wrong answers, not noticed by hybrid_index_check" if $wrong && $check eq '';
	$noticed++ if $check ne '';
	foreach my $sql (
		"INSERT INTO t$i SELECT g, md5(g::text) FROM generate_series(1, 400) g",
		"DELETE FROM t$i WHERE k % 10 = 4", "VACUUM t$i",
		"SELECT hybrid_merge('i$i')", "SELECT hybrid_index_stats('i$i')",
		"SELECT hybrid_index_check('i$i')")
	{
		my ($state) = state_of($sql);
		push @bad, "$sql: $state" unless $state =~ /^(XX00[12])?$/;
	}
	my ($state) = state_of("REINDEX INDEX i$i");
	push @bad, "REINDEX: $state" if $state ne '';
	($state) = state_of("SELECT hybrid_index_check('i$i', true)");
	push @bad, "check after REINDEX: $state" if $state ne '';
	is(join("\n", @bad), '', $damage{$i});
}
# the rest hit bytes that nothing depends on
cmp_ok($noticed, '>', $copies / 3, "the check noticed $noticed of $copies damaged indexes");
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
