
# What README.md shows a newcomer is true: its SQL runs, and the query uses the
# index. docs/reference.md names each setting with its default, each storage
# parameter, function and view, and each column of the views.  Links of documents
# lead to files and headings that exist, and functions of docs/entry.md are in the
# files that they link to.  The arrows of docs/pictures/states.svg are the rules of
# src/memtree/stage.c.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $readme = slurp_file(test_root() . '/README.md');
my $node = new_node('readme', "hybridindex.merge_floor = 8192\n");
$node->safe_psql('postgres', 'CREATE DATABASE newcomer');

my @blocks = $readme =~ /^```sql\n(.*?)^```/msg;
ok(@blocks > 0, 'there is SQL in README.md');
my $switches = 0;
foreach my $block (@blocks)
{
	# switching is about a database of that name, and may tell things
	my $switch = $block =~ /\bshop\b|hybrid_revert/;
	if ($switch && !$switches++)
	{
		$node->safe_psql('postgres', 'CREATE DATABASE shop');
		$node->safe_psql('shop', 'CREATE TABLE goods (id int PRIMARY KEY, name text UNIQUE)');
	}
	foreach my $statement (grep { /\S/ } split /;[^\n]*\n/, $block)
	{
		my ($ret, undef, $err) = $node->psql($switch ? 'shop' : 'newcomer', $statement, on_error_stop => 1);
		$err =~ s/^psql:\S+ (NOTICE|DETAIL):.*\n?//mg if $switch;
		is("$ret $err", '0 ', "runs: $statement");
	}
	next if !$switch;
	my $kinds = "SELECT string_agg(DISTINCT amname, ' ') FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE c.relnamespace = 'public'::regnamespace";
	is($node->safe_psql('shop', $kinds), $block =~ /revert/ ? 'btree' : 'hybrid', 'indexes are what they were made');
}

# on a table so small that the planner has to be told
my ($query) = grep { /^SELECT/ } split /;\n/, $blocks[0];
ok(defined $query, 'the first block has a query');
like($node->safe_psql('newcomer', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query"),
	qr/Index Cond: \(email = /, 'the query uses the index');
is($node->safe_psql('newcomer', "SELECT amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid
	JOIN pg_am a ON a.oid = relam WHERE indrelid = 'accounts'::regclass"),
	'hybrid', 'the only one of the table, and hybrid');

my $reference = slurp_file(test_root() . '/docs/reference.md');
my %given = $reference =~ /^\| `(hybridindex\.\w+)` \(([-\w]+)\)/mg;
my %real = map { split /=/ } split /\n/, $node->safe_psql('newcomer', <<'EOF');
LOAD 'hybridindex';
SELECT name || '=' || CASE WHEN unit = '8kB' THEN pg_size_pretty(boot_val::int8 * 8192)
	WHEN unit = 'kB' THEN pg_size_pretty(boot_val::int8 * 1024)
	WHEN unit = 'ms' AND boot_val <> '-1' THEN boot_val::int / 1000 || 's' ELSE boot_val END
FROM pg_settings WHERE name LIKE 'hybridindex.%'
EOF
s/ //g foreach values %real;
is_deeply(\%given, \%real, 'the settings and their defaults');

# Handlers, support functions and what only views call are not for people.
my $names = $node->safe_psql('newcomer', <<'EOF');
SELECT proname FROM pg_depend JOIN pg_proc ON oid = objid
WHERE proname ~ '^hybrid_' AND classid = 'pg_proc'::regclass AND refclassid = 'pg_extension'::regclass
	AND prorettype <> 'event_trigger'::regtype AND proargtypes::text <> 'internal'::regtype::oid::text
	AND proname NOT IN ('hybrid_memory_info', 'hybrid_merge_progress_list')
UNION SELECT relname FROM pg_class WHERE relkind = 'v' AND relname ~ '^hybrid_'
UNION SELECT attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
WHERE relkind = 'v' AND relname ~ '^hybrid_' AND attnum > 0
EOF
my @parameters = map { slurp_file($_) =~ /^\t\t\{"(\w+)", RELOPT_TYPE/mg } glob(test_root() . '/src/*/*.c');
ok(@parameters > 7, 'there are storage parameters');
my @seen = map { slurp_file($_) =~ /HYB_(?:WAIT_EVENT|NEW_TRANCHE)\("(\w+)"\)/g } glob(test_root() . '/src/*/*.c');
ok(@seen > 7, 'there are wait events and LWLocks');
my @missing = grep { $reference !~ /(?:`|^### |^### .*, )$_\b/m } @parameters, @seen, split /\n/, $names;
is("@missing", '', 'each parameter, function, view, column and wait event is described');

# Of each message that is not a notice: four words in a row, or a whole piece between
# what differs, are in this page.
my $messages = slurp_file(test_root() . '/docs/guide/messages.md');
my @unknown;
foreach my $source (map { slurp_file($_) } glob(test_root() . '/src/*/*.c ' . test_root() . '/src/*/*/*.c'))
{
	while ($source =~ /ereport\((?:ERROR|WARNING|LOG|\w*level),[^;]*?\berrmsg(?:_plural)?\(\s*((?:"(?:\\.|[^"\\])*"\s*)+)/g)
	{
		my $message = $1 =~ s/"\s*"//gr =~ s/^"|"\s*$//gr;
		my @pieces = grep { length > 11 } split /\s*(?:\\"|%\w+|[(),:])+\s*/, $message;
		my @parts = map { /^(?:\S+ ){4}/ ? /(?=\b(\S+ \S+ \S+ \S+))/g : $_ } @pieces;
		push @unknown, $message if @parts && !grep { index($messages, $_) >= 0 } @parts;
	}
}
is(join("\n", @unknown), '', 'each error, warning and log line is described');

# The anchors that a document's headings have.
sub anchors
{
	my ($text) = @_;
	my %anchors;

	foreach my $heading ($text =~ /^#+ (.*)$/mg)
	{
		$heading = lc($heading =~ s/\[([^\]]*)\]\([^)]*\)/$1/gr);
		$heading =~ s/[^\w\- ]//g;
		$anchors{ $heading =~ tr/ /-/r } = 1;
	}
	return \%anchors;
}

my @broken;
foreach my $file (glob(test_root() . '/README.md ' . test_root() . '/docs/*.md ' . test_root() . '/docs/notes/*.md ' . test_root() . '/docs/guide/*.md'))
{
	my $text = slurp_file($file) =~ s/^```.*?^```//msgr;
	my $folder = $file =~ s{[^/]*$}{}r;

	# badges are pages beside the repository's files
	foreach my $link (grep { !m{^https?:|^\.\./\.\./actions/} } $text =~ /\]\(([^)\s]+)\)/g)
	{
		my ($path, $anchor) = split /#/, $link, 2;
		my $target = $path eq '' ? $file : "$folder$path";
		push @broken, "$file: $link" if !-e $target
		  || (defined $anchor && $target =~ /\.md$/ && !anchors(slurp_file($target) =~ s/^```.*?^```//msgr)->{$anchor});
	}
}
is("@broken", '', 'links lead somewhere');

# A function of docs/entry.md is defined in the file that it links to.
my @elsewhere;
my %defined = slurp_file(test_root() . '/docs/entry.md') =~ /\[`(\w+)`\]\(\.\.\/([^)]+\.c)\)/g;
ok(keys %defined > 15, 'there are functions in docs/entry.md');
foreach my $function (sort keys %defined)
{
	push @elsewhere, $function if slurp_file(test_root() . "/$defined{$function}") !~ /^$function\(/m;
}
is("@elsewhere", '', 'they are where it says');

# What the picture of a tree's states may leave out: rules that lead from a state to
# itself.  "any" is each state.
my $rules = slurp_file(test_root() . '/src/memtree/stage.c') =~ s{/\*.*?\*/}{}gsr;
my %next;
while ($rules =~ /^\t\[HYB_TREE_(\w+)\] = \{(.*?)^\t\}/msg)
{
	my ($from, $followers) = ($1, $2);
	$next{$from} = { $followers =~ /\[HYB_TREE_(\w+)\] = TO\((\w+)\)/g };
}
my (@table, @picture);
foreach my $from (keys %next)
{
	push @table, map { "$from $_ $next{$from}{$_}" } grep { $next{$from}{$_} ne $from } keys %{ $next{$from} };
}
ok(@table > 15, 'there are rules in src/memtree/stage.c');
foreach my $arrow (map { split /, / } slurp_file(test_root() . '/docs/pictures/states.svg') =~ /data-rule="([^"]*)"/g)
{
	my ($from, $event, $to) = split / /, $arrow;
	push @picture, map { "$_ $event $to" } $from eq 'any' ? grep { $_ ne $to } keys %next : $from;
}
is(join("\n", sort @picture), join("\n", sort @table), 'the picture of a tree\'s states has these rules');

$node->stop;
done_testing();
