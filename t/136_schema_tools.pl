
# Schema tools compare hybrid indexes with a model that says nothing of access methods.
# With the view pg_am of switching.md they change nothing.
#
# HYBRID_SCHEMA_TOOLS is a directory with what "./dev applications" makes of
# test/applications/schema_tools: packages of Node.js, and a program in Go.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('tools', '');
my $directory = test_root() . '/test/applications/schema_tools';
my $packages = $ENV{HYBRID_SCHEMA_TOOLS};

# What tools ask: unqualified names.
my $asked = <<'EOF';
SELECT string_agg(DISTINCT am.amname, ' ') FROM pg_index idx JOIN pg_class i ON i.oid = idx.indexrelid
	JOIN pg_am AS am ON am.oid = i.relam WHERE i.relnamespace = 'public'::regnamespace
EOF
my $true = $asked =~ s/pg_am /pg_catalog.pg_am /r;

sub new_database
{
	my ($name, $kind) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE template0");
	return if $kind eq 'btree';
	$node->safe_psql($name, 'CREATE SCHEMA hybrid; CREATE EXTENSION hybridindex SCHEMA hybrid');
	$node->safe_psql('postgres', "ALTER DATABASE $name SET hybridindex.replace_btree = on");
	hide_access_method($node, $name) if $kind eq 'hidden';
	return;
}

# The view itself.  A role without privileges makes tables in public; a dump has the view.
new_database('shop', 'hidden');
$node->safe_psql('shop', <<'EOF');
CREATE ROLE migrations; GRANT USAGE ON SCHEMA hybrid TO migrations; GRANT CREATE ON SCHEMA public TO migrations;
SET ROLE migrations;
CREATE TABLE goods (id int PRIMARY KEY, name text);
CREATE INDEX ON goods (name);
EOF
is($node->safe_psql('shop', "SET ROLE migrations; $asked"), 'btree', 'tools see btree');
is($node->safe_psql('shop', $true), 'hybrid', 'the indexes are hybrid');
my $dump = $node->basedir . '/dump.sql';
command_ok([ 'pg_dump', '-x', '-f', $dump, '-d', $node->connstr('shop') ], 'pg_dump');
new_database('again', 'btree');
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('again') ], 'the dump is read');
is($node->safe_psql('again', "SET search_path = public, hybrid, pg_catalog; $asked"), 'btree', 'it has the view');

# What each tool changes, or its error, when it compares again.
sub changes
{
	my ($kind, $command, @tools) = @_;
	my ($out, $err) = ('', '');

	new_database("${_}_$kind", $kind) foreach @tools;
	IPC::Run::run([ @$command, 'create', $kind ], '<', \undef, '>', \$out, '2>', \$err);
	my $created = $out =~ s/^.*Pulling schema.*\n//mgr;
	unlike($created, qr/^\w+: /m, "$kind: tables are made") or diag $created, $err;
	foreach my $tool ($kind eq 'btree' ? () : @tools)
	{
		$node->safe_psql("${tool}_$kind", 'SET client_min_messages = error; CALL hybrid.hybrid_convert_schema($$public$$)');
	}
	IPC::Run::run([ @$command, 'again', $kind ], '<', \undef, '>', \$out, '2>', \$err);
	return { $out =~ /^(\w+): (.*)/mg };
}

sub compare
{
	my ($command, $untouched, $touched) = @_;
	my @tools = (@$untouched, @$touched);

	is_deeply(changes('btree', $command, @tools), { map { ($_ => 0) } @tools }, 'btree: nothing changes');
	my $hybrid = changes('hybrid', $command, @tools);
	is($hybrid->{$_}, 0, "$_: hybrid indexes stay") foreach @$untouched;

	# switching.md says so; once this fails it need not
	isnt($hybrid->{$_}, 0, "$_: hybrid indexes are changed") foreach @$touched;
	is_deeply(changes('hidden', $command, @tools), { map { ($_ => 0) } @tools }, 'with the view nothing changes');
	is($node->safe_psql("${_}_hidden", $true), 'hybrid', "$_: all are hybrid") foreach @tools;
	return;
}

$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGUSER} = $node->safe_psql('postgres', 'SELECT current_user');

SKIP:
{
	skip 'no packages of npm (./dev applications fetches them)', 1
	  if !defined $packages || !-d "$packages/node_modules";
	symlink("$packages/node_modules", "$directory/node_modules");
	compare([ 'node', "$directory/tools.mjs" ], ['sequelize'], [qw(typeorm mikro_orm drizzle_kit)]);
	unlink "$directory/node_modules";
}

SKIP:
{
	skip 'no schema tools in Go (./dev applications builds them)', 1
	  if !defined $packages || !-x "$packages/go_tools";
	compare(["$packages/go_tools"], ['xorm'], ['ent']);
}

done_testing();
