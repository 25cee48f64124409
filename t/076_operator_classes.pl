
# Operator classes made from those of other extensions can be used, dumped and
# restored.  They go with either extension.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Extension, type, its schema, and how a number becomes its value
my @types = (
	[ 'citext', 'citext', 'public', "CASE WHEN i % 2 = 0 THEN 'Key' ELSE 'kEY' END || i" ],
	[ 'ltree', 'ltree', 'public', "'top.n' || i % 17 || '.m' || i" ],
	[ 'hstore', 'hstore', 'public', "'a=>' || i || ', b=>' || i % 7" ],
	[ 'isn', 'ean13', 'public', "'978' || lpad(i::text, 9, '0') || '?'" ],
	[ 'cube', 'cube', 'apart', "'(' || i % 13 || ',' || i || ')'" ],
	[ 'seg', 'seg', 'public', "i || ' .. ' || i + 10" ]);

my $node = new_node('origin', "hybridindex.background_merge = off\n");
my %there = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');
@types = grep { $there{ $_->[0] } } @types;
plan skip_all => 'none of the extensions is there' if !@types;

$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS hybridindex; CREATE SCHEMA apart');
foreach my $type (@types)
{
	my ($extension, $name, $schema) = @$type;
	$node->safe_psql('postgres', "CREATE EXTENSION $extension SCHEMA $schema");
	$node->safe_psql('postgres', "CREATE TABLE t_$name (id int, v $schema.$name)");
	my ($ret, $out, $err) = $node->psql('postgres', "CREATE INDEX ON t_$name USING hybrid (v)");
	like($err, qr/hybrid_make_operator_classes\(/, "$name: no index without a class");
}
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM hybrid_make_operator_classes() WHERE is_default'), '>=', scalar(@types), 'classes are made');
is($node->safe_psql('postgres', 'SELECT count(*) FROM hybrid_make_operator_classes()'), '0', 'nothing is made twice');

# A family of btree's that is not complete, as that of isn on some servers, is
# no reason to have less.
is($node->safe_psql('postgres', <<'SQL'), '', 'they are as valid as btree\'s');
SELECT h.opcname FROM pg_opclass h JOIN pg_am a ON a.oid = h.opcmethod AND a.amname = 'hybrid'
	JOIN pg_opclass b ON b.opcname = h.opcname AND b.opcintype = h.opcintype AND b.opcmethod = 403
WHERE amvalidate(b.oid) AND NOT amvalidate(h.oid)
SQL

# Answers by index, or without
sub answers
{
	my ($in, $name, $index) = @_;
	my $less = $name eq 'hstore' ? '#<#' : '<';
	my ($on, $off) = $index ? ('on', 'off') : ('off', 'on');
	return $node->safe_psql($in, <<"SQL");
SET enable_seqscan = $off;
SET enable_indexscan = $on;
SET enable_indexonlyscan = $on;
SET enable_sort = $off;
SET enable_bitmapscan = off;
SET search_path = public, apart;
SELECT string_agg(id::text, ' ' ORDER BY n) FROM (SELECT id, row_number() OVER () n FROM (SELECT id FROM t_$name ORDER BY v) x) y;
SELECT count(*), min(id) FROM t_$name WHERE v = (SELECT v FROM t_$name WHERE id = 77);
SELECT count(*), sum(id) FROM t_$name WHERE v $less (SELECT v FROM t_$name WHERE id = 133);
SQL
}

sub indexed
{
	my ($in, $name) = @_;
	return $node->safe_psql($in, "SELECT a.amname || ' ' || o.opcname || ' ' || o.opcdefault FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam JOIN pg_opclass o ON o.oid = i.indclass[0] WHERE i.indrelid = 't_$name'::regclass");
}

my %answer;
foreach my $type (@types)
{
	my ($extension, $name, $schema, $value) = @$type;
	my $fill = "INSERT INTO t_$name SELECT i, ($value)::$schema.$name FROM generate_series(FIRST, 400) i ORDER BY hashint4(i)";

	$node->safe_psql('postgres', $fill =~ s/FIRST/1/r . "; CREATE INDEX b_$name ON t_$name USING btree (v)");
	my $btree = answers('postgres', $name, 1);
	$node->safe_psql('postgres', "DROP INDEX b_$name; DELETE FROM t_$name WHERE id > 300; CREATE UNIQUE INDEX h_$name ON t_$name USING hybrid (v)");
	like(indexed('postgres', $name), qr/^hybrid .* true$/, "$name: the default class is used");
	$node->safe_psql('postgres', $fill =~ s/FIRST/301/r);
	is(answers('postgres', $name, 1), $btree, "$name: as btree");
	is(answers('postgres', $name, 0), $btree, "$name: as without an index");
	is($node->safe_psql('postgres', "SELECT tree_shared AND tree_memory > 0 FROM hybrid_index_stats('h_$name')"), 't', "$name: the tree is shared");
	my $again = $name eq 'citext' ? 'upper(v)' : 'v';
	my ($ret, $out, $err) = $node->psql('postgres', "INSERT INTO t_$name SELECT id, $again FROM t_$name WHERE id = 5");
	like($err, qr/duplicate key/, "$name: unique");
	$node->safe_psql('postgres', "SELECT hybrid_merge('h_$name'), hybrid_index_check('h_$name', true)");
	is(answers('postgres', $name, 1), $btree, "$name: as btree, merged");
	$answer{$name} = $btree;
}

# A dump has them, once the types are there
my $dump = "$PostgreSQL::Test::Utils::tmp_check/dump.sql";
$node->command_ok([ 'pg_dump', '-f', $dump, 'postgres' ], 'dump');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template0');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'copy' ], 'restore');
foreach my $type (@types)
{
	my $name = $type->[1];
	is(indexed('copy', $name), indexed('postgres', $name), "$name: the same class");
	$node->safe_psql('copy', "SELECT hybrid_index_check('h_$name', true)");
	is(answers('copy', $name, 1), $answer{$name}, "$name: the same answers");
}
is($node->safe_psql('copy', 'SELECT count(*) FROM hybrid_make_operator_classes()'), '0', 'nothing is missing in the copy');

# They may be those of another extension: a dump has its name then.  A test can bring
# one along from 18 on.
SKIP:
{
	my $elsewhere = $node->basedir;
	skip 'this server looks for extensions in one place', 4 if $node->safe_psql('postgres', 'SHOW server_version_num') < 180000;
	mkdir "$elsewhere/extension";
	append_to_file("$elsewhere/extension/classes.control", "default_version = '1'\nrequires = 'hybridindex, $types[0][0]'\n");
	append_to_file("$elsewhere/extension/classes--1.sql", "SELECT hybrid_make_operator_classes('$types[0][1]');");
	$node->append_conf('postgresql.conf', "extension_control_path = '\$system:$elsewhere'\n");
	$node->reload;
	$node->safe_psql('postgres', "CREATE DATABASE $_ TEMPLATE template0") foreach 'packed', 'unpacked';
	$node->safe_psql('packed', "CREATE EXTENSION classes CASCADE; CREATE TABLE t (v $types[0][1]); CREATE INDEX t_v ON t USING hybrid (v)");
	$node->command_ok([ 'pg_dump', '-f', $dump, 'packed' ], 'dump of an extension with classes');
	unlike(slurp_file($dump), qr/OPERATOR CLASS/, 'it has the extension alone');
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'unpacked' ], 'restore');
	is($node->safe_psql('unpacked', "SELECT amname FROM pg_class JOIN pg_am a ON a.oid = relam WHERE relname = 't_v'"), 'hybrid', 'and so is the index');
}

# Without the class there is no index either: nothing can be dropped below it
my ($ret, $out, $err) = $node->psql('postgres', "DROP EXTENSION $types[0][0]");
like($err, qr/because other objects depend on it/, 'an extension in use stays');

# They go with their type's extension, without CASCADE where none is in use
$node->safe_psql('postgres', join('', map { "DROP TABLE t_$_->[1];" } @types));
$node->safe_psql('postgres', "DROP EXTENSION $_->[0]") foreach @types;
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod WHERE amname = 'hybrid' AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = f.oid AND deptype = 'e')"), '0', 'the classes have gone');

# and with the access method's
$node->safe_psql('copy', join('', map { "DROP TABLE t_$_->[1];" } @types));
$node->safe_psql('copy', 'DROP EXTENSION hybridindex');
is($node->safe_psql('copy', 'SELECT count(*) FROM pg_opclass WHERE opcmethod <> ALL (SELECT oid FROM pg_am)'), '0', 'no class is left');

done_testing();
