
# Today's library reads, changes and merges index files that earlier libraries have
# written (test/formats).  Each stored file takes the place of an index of the same
# definition over the same rows.
#
# HYBRID_FORMATS=DIRECTORY writes the files of a new format instead, see
# test/formats/README.md.

use strict;
use warnings;

use Compress::Zlib;
use FindBin;
use lib $FindBin::RealBin;
use File::Basename;
use HybridPages;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($version) = `postgres --version` =~ / (\d+)/;
my $node = new_node('formats', <<'EOC', extra => $version >= 18 ? ['--no-data-checksums'] : []);
session_preload_libraries = 'hybridindex'
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
EOC
my $aligned = $node->safe_psql('postgres', 'SELECT max_data_alignment = 8 AND database_block_size = 8192 FROM pg_control_init()');
if ($aligned ne 't')
{
	$node->stop;
	plan skip_all => 'the stored files are of pages of 8192 bytes and of TIDs of 64-bit machines';
}

my $new = $ENV{HYBRID_FORMATS};

# a server reads the files of its byte order
my $big_endian = pack('S', 1) eq "\x00\x01";
my @sets = $new ? ($new) : grep { /-big-endian/ == $big_endian } sort glob(test_root() . '/test/formats/*/');
# those of hybrid_hot are read by servers that have it
@sets = grep { basename($_) !~ /^13/ } @sets if $version < 16;
my %indexes;		# of each set, with their definitions

# The database of a set: its tables, with indexes that this library has built.
sub make_database
{
	my ($set, $name) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, slurp_file(test_root() . '/test/sql/helpers.sql'));
	$node->safe_psql($name, slurp_file("$set/tables.sql"));
	$indexes{$name} = [ split /\n/, $node->safe_psql($name, 'SELECT index FROM states ORDER BY 1') ];
	return;
}


# Is each index in the state that its set is about?
sub states_are
{
	my ($database, $what) = @_;
	my @bad;

	foreach (split /^/, $node->safe_psql($database, q(SELECT index, regexp_replace(state, '\s+', ' ', 'g') FROM states)))
	{
		my ($index, $state) = /^(\w+)\|(.*)/;
		push @bad, "$index: not $state" if $node->safe_psql($database, "SELECT $state FROM hybrid_index_stats('$index')") ne 't';
	}
	is(join("\n", @bad), '', "$what: states of the indexes");
	return;
}

# Each query gives what a sequential scan gives, and each index is whole.
sub answers_are_right
{
	my ($database, $what, $prefixes) = @_;
	my $paths = $prefixes ? "array_to_string(array_remove(array_remove(string_to_array(paths, ' '), 'only'), 'order_only'), ' ')" : 'paths';
	my ($ret, $out, $err) = $node->psql($database, <<EOS);
SET client_min_messages = warning;
DO \$\$
DECLARE
	r	record;
BEGIN
	FOR r IN SELECT index, query, $paths AS paths FROM queries LOOP
		BEGIN
			IF NOT hyb_same(r.query, r.paths) THEN RAISE WARNING '%: another answer', r.query; END IF;
		EXCEPTION WHEN OTHERS THEN
			RAISE WARNING '%: %', r.query, SQLERRM;
		END;
	END LOOP;
	FOR r IN SELECT index FROM states LOOP
		BEGIN
			PERFORM hybrid_index_check(r.index::regclass, true);
		EXCEPTION WHEN OTHERS THEN
			RAISE WARNING '%: %', r.index, SQLERRM;
		END;
	END LOOP;
END \$\$;
EOS
	is("$ret$err", '0', "$what: answers and checks");
	return;
}

# A statement for each index of a database: %t is its table, %i the index.
sub for_each
{
	my ($database, $statement, @of) = @_;
	my @statements;

	foreach my $index (@of ? @of : @{ $indexes{$database} })
	{
		my $table = $index =~ s/_i$//r;
		push @statements, $statement =~ s/%i/$index/gr =~ s/%t/$table/gr;
	}
	return $node->safe_psql($database, join(";\n", @statements));
}

sub hot_indexes
{
	my ($database) = @_;
	return split /\n/, $node->safe_psql($database, q(SELECT index FROM states JOIN pg_class c ON c.oid = index::regclass JOIN pg_am a ON a.oid = relam WHERE amname = 'hybrid_hot'));
}

# No row that is there can be inserted once more: each uniqueness check finds it.
sub uniqueness_holds
{
	my ($database, $what) = @_;
	my @unique = split /\n/, $node->safe_psql($database, 'SELECT index FROM states JOIN pg_index ON indexrelid = index::regclass WHERE indisunique');
	my @bad;

	foreach my $index (@unique)
	{
		my $table = $index =~ s/_i$//r;
		my $more = $node->safe_psql($database, "WITH more AS (INSERT INTO $table SELECT * FROM $table ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM more");
		push @bad, "$table: $more rows twice" if $more ne '0';
		foreach my $order (qw(ASC DESC))
		{
			my $error = ($node->psql($database, "INSERT INTO $table SELECT * FROM $table ORDER BY ctid::text $order LIMIT 1"))[2];
			push @bad, "$table: $error" if $error !~ /duplicate key value violates unique constraint "$index"/;
		}
	}
	is(join("\n", @bad), '', "$what: uniqueness");
	return;
}

# ---- a new set ----

if ($new)
{
	make_database($new, 'made');
	states_are('made', 'made');
	answers_are_right('made', 'made');
	$node->stop;
	$node->start;
	my %file = map { $_ => index_file($node, $_, 'made') } @{ $indexes{made} };
	$node->stop;
	foreach my $index (sort keys %file)
	{
		my $content = slurp_file($file{$index});

		# LSNs and checksums belong to the cluster
		for (my $block = 0; $block < length($content) / $block_size; $block++)
		{
			set64(\$content, $block, 0, 0);
			set16(\$content, $block, 8, 0);
		}
		append_to_file("$new/$index.gz", Compress::Zlib::memGzip($content));
		ok(-s "$new/$index.gz", "$index.gz");
	}
	done_testing();
	exit;
}

# ---- stored files take the places of new ones ----

my %stored;			# contents by path
my @databases;
foreach my $set (@sets)
{
	my ($format) = basename($set) =~ /^(\d+)/;
	my $database = "format_$format";

	push @databases, $database;
	make_database($set, $database);
	foreach my $index (@{ $indexes{$database} })
	{
		my $content = Compress::Zlib::memGunzip(slurp_file("$set/$index.gz"));
		die "$set$index.gz cannot be read" if !defined $content || length($content) % $block_size != 0;
		is(get32(\$content, 0, $meta{format}), $format, "format of $index.gz");
		$stored{ index_file($node, $index, $database) } = $content;
	}
}
$node->stop;
write_file($_, $stored{$_}) foreach keys %stored;
command_ok([ 'pg_checksums', '--enable', '--no-sync', '-D', $node->data_dir ], 'pages get their checksums');
$node->start;

foreach my $database (@databases)
{
	# a second copy, which is merged at once
	$node->safe_psql('postgres', "CREATE DATABASE ${database}_merged TEMPLATE $database");
	$indexes{"${database}_merged"} = $indexes{$database};

	states_are($database, $database);
	answers_are_right($database, "$database, as stored");
	uniqueness_holds($database, "$database, as stored");
	for_each($database, <<'EOS');
INSERT INTO %t SELECT * FROM %t_rows(100001, 100150);
DELETE FROM %t WHERE ctid IN (SELECT ctid FROM %t ORDER BY ctid OFFSET 40 LIMIT 60);
EOS
	for_each($database, 'VACUUM (INDEX_CLEANUP on) %t');
	for_each($database, 'INSERT INTO %t SELECT * FROM %t_rows(100151, 100200)');
	my @hot = hot_indexes($database);
	for_each($database, 'UPDATE %t SET k = k + 2 WHERE id % 3 = 0', @hot) if @hot;
	answers_are_right($database, "$database, vacuumed");

	my $merged = "${database}_merged";
	for_each($merged, "SELECT hybrid_merge('%i')");
	is($node->safe_psql($merged, 'SELECT string_agg(index, chr(44)) FROM states, hybrid_index_stats(index::regclass) WHERE dynamic_entries > 0 OR merge_running OR levels > 1'),
		'', "$merged: one level, and an empty log");
	answers_are_right($merged, $merged);
}

# ---- crash recovery over pages of stored files, merges, and other indexes made of them ----

$node->stop('immediate');
$node->start;
foreach my $database (@databases)
{
	answers_are_right($database, "$database, recovered");
	uniqueness_holds($database, "$database, recovered");
	for_each($database, "SELECT hybrid_merge('%i')");
	answers_are_right($database, "$database, merged");

	my $merged = "${database}_merged";
	for_each($merged, 'REINDEX INDEX %i');
	answers_are_right($merged, "$merged, made anew");

	my @trie = split /\n/, $node->safe_psql($database, 'SELECT index FROM states WHERE trie');
	for_each($database, "SELECT hybrid_convert('%i', 'trie')", @trie) if @trie;
	is($node->safe_psql($database, q(SELECT count(*) FROM pg_class WHERE reloptions @> '{layout=trie}')), scalar(@trie), "$database: layout = trie");
	$node->safe_psql($database, 'DELETE FROM queries WHERE index IN (SELECT index FROM states WHERE NOT trie)');
	answers_are_right($database, "$database, layout = trie", 1);
	for_each($database, "SELECT hybrid_revert('%i')");
	is($node->safe_psql($database, q(SELECT string_agg(DISTINCT amname, ' ') FROM states JOIN pg_class c ON c.oid = to_regclass(index) JOIN pg_am a ON a.oid = relam)),
		'btree', "$database: btree again");
}

# ---- files that this library cannot read ----

# By index: what is done to its metapage, and what each use of it says.  A server
# refuses a whole cluster of another byte order or page size; these are single files.
my %foreign = (
	numbers_i => [
		sub { set32($_[0], 0, $meta{format}, 11) },
		qr/ERROR:  XX002: index "numbers_i" has format version 11, but this hybridindex reads version 12\nHINT:  Please REINDEX it\./ ],
	merging_i => [
		sub { set32($_[0], 0, $meta{format}, 13) },
		qr/ERROR:  XX002: index "merging_i" has format version 13, but this hybridindex reads version 12\nHINT:  A newer hybridindex wrote it: install that one and restart the server, or REINDEX the index\./ ],
	levels_i => [
		sub { substr(${ $_[0] }, 0, $block_size) = pack('n*', unpack('v*', substr(${ $_[0] }, 0, $block_size))) },
		qr/ERROR:  XX001: invalid page in block 0 of relation/ ],
	strings_i => [
		sub { set16($_[0], 0, 18, 16384 | 4); set16($_[0], 0, $_, 16384 - 32) foreach 14, 16 },
		qr/ERROR:  XX001: invalid page in block 0 of relation/ ],
	hope_i => [
		sub { set32($_[0], 0, $meta{magic}, unpack('N', pack('V', 0x48594249))) },
		qr/ERROR:  XX002: index "hope_i" is corrupted at block 0\nDETAIL:  The metapage is not that of a hybrid index\.\nHINT:  Please REINDEX it\./ ]);
my $database = "$databases[0]_merged";
my %path = map { $_ => index_file($node, $_, $database) } keys %foreign;
my (%foreign_content, @said);

$node->stop;
command_ok([ 'pg_checksums', '--disable', '--no-sync', '-D', $node->data_dir ], 'without checksums, which would tell first');
foreach my $index (keys %foreign)
{
	my $content = slurp_file($path{$index});
	$foreign{$index}[0]->(\$content);
	write_file($path{$index}, $content);
	$foreign_content{$index} = $content;
}
$node->start;
foreach my $index (sort keys %foreign)
{
	my $table = $index =~ s/_i$//r;
	my ($column) = $node->safe_psql($database, "SELECT attname FROM pg_attribute WHERE attrelid = '$index'::regclass AND attnum = 1");
	foreach my $statement ("SELECT count(*) FROM $table WHERE $column > (SELECT $column FROM ${table}_rows(1, 1))",
		"INSERT INTO $table SELECT * FROM ${table}_rows(200001, 200001)", "VACUUM (INDEX_CLEANUP on) $table", "SELECT hybrid_merge('$index')",
		"SELECT hybrid_index_check('$index', true)", "SELECT hybrid_index_stats('$index')")
	{
		my $error = ($node->psql($database, "\\set VERBOSITY verbose\nSET enable_seqscan = off;\n$statement"))[2] =~ s/^LOCATION: .*\n?//mgr =~ s/^psql:<stdin>:\d+: //mgr;
		push @said, "$statement: $error" if $error !~ $foreign{$index}[1];
	}
}
is(join("\n", @said), '', 'each use of a file that cannot be read says why');
$node->safe_psql($database, 'CHECKPOINT');
is(join(' ', grep { slurp_file($path{$_}) ne $foreign_content{$_} } sort keys %foreign), '', 'and writes nothing to it');
for_each($database, 'REINDEX INDEX CONCURRENTLY %i', sort keys %foreign);
answers_are_right($database, 'made anew');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
