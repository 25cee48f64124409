
# The owner of a database without superuser creates the extension, has all sessions
# load the library, switches, dumps, restores and removes.  What CREATE EXTENSION makes
# stays the superuser's.  A role may load the library in any database: it takes no
# shared memory there, and changes nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('owner', '');
my $libdir = `pg_config --pkglibdir` =~ s/\n//r;
$node->safe_psql('postgres', $_) foreach 'CREATE ROLE owner LOGIN; CREATE ROLE creator LOGIN; CREATE ROLE tenant LOGIN',
  'CREATE DATABASE shop OWNER owner', 'CREATE DATABASE copy OWNER owner', 'CREATE DATABASE plain', 'GRANT CREATE ON DATABASE shop, plain TO creator';

# What a role gets from a script in a session of its own: rows, or the error.
sub as_role
{
	my ($role, $database, $sql, %options) = @_;
	my ($ret, $out, $err) = $node->psql($database, $sql, extra_params => [ '-U', $role ], %options);

	return $ret == 0 ? $out : $err =~ s/^psql:\S+ //r;
}

sub refused
{
	my ($role, $sql, $error) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	like(as_role($role, 'shop', $sql), qr/ERROR:  $error/, "$role: $sql");
	return;
}

# ---- installation ----

refused('tenant', 'CREATE EXTENSION hybridindex', 'permission denied to create extension "hybridindex"');
is(as_role('creator', 'shop', 'CREATE SCHEMA c; CREATE EXTENSION hybridindex SCHEMA c; DROP EXTENSION hybridindex; DROP SCHEMA c'), '', 'CREATE on the database suffices');
is(as_role('owner', 'shop', 'CREATE EXTENSION hybridindex; SELECT extowner::regrole FROM pg_extension WHERE extname = \'hybridindex\''), 'owner', 'an owner creates the extension');
is( $node->safe_psql('shop', <<'EOS'), '', 'all that is in it belongs to the superuser');
SELECT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
	JOIN pg_shdepend s ON s.classid = d.classid AND s.objid = d.objid AND s.deptype = 'o' AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'hybridindex')
EOS
refused('owner', 'ALTER EVENT TRIGGER hybridindex_ddl_start DISABLE', 'must be owner of event trigger');
refused('owner', 'DROP EVENT TRIGGER hybridindex_ddl_start', 'must be owner of event trigger');
refused('owner', q(CREATE OR REPLACE FUNCTION hybrid_version() RETURNS text LANGUAGE sql STABLE AS 'SELECT 1'), 'must be owner of function');
refused('owner', 'ALTER EXTENSION hybridindex DROP FUNCTION hybrid_version()', 'must be owner of function');
refused('owner', 'ALTER OPERATOR FAMILY integer_ops USING hybrid RENAME TO mine', 'must be owner of operator family');
refused('owner', 'GRANT EXECUTE ON FUNCTION hybrid_memory_info() TO owner', 'permission denied for function');
refused('owner', 'CREATE ACCESS METHOD mine TYPE INDEX HANDLER hybridhandler', 'permission denied to create access method');
refused('owner', q(CREATE FUNCTION mine() RETURNS text AS '$libdir/hybridindex', 'hybrid_version' LANGUAGE C), 'permission denied for language c');
refused('tenant', 'DROP EXTENSION hybridindex', 'must be owner of extension');

# ---- types of other extensions ----

my $elsewhere = PostgreSQL::Test::Utils::tempdir();
SKIP:
{
	skip 'there is no citext', 1 if $node->safe_psql('postgres', q(SELECT count(*) FROM pg_available_extensions WHERE name = 'citext')) ne '1';
	as_role('owner', 'shop', 'CREATE EXTENSION citext');
	refused('owner', q(SELECT hybrid_make_operator_classes('citext')), 'must be superuser to create an operator family');
	skip 'this server looks for extensions in one place', 2 if $node->pg_version < 18;
	mkdir "$elsewhere/extension" or die "mkdir: $!";
	append_to_file("$elsewhere/extension/citext_hybrid.control", "default_version = '1'\nrequires = 'hybridindex, citext'\ntrusted = true\n");
	append_to_file("$elsewhere/extension/citext_hybrid--1.sql", "SELECT hybrid_make_operator_classes('citext');\n");
	$node->append_conf('postgresql.conf', "extension_control_path = '\$system:$elsewhere'");
	$node->reload;
	is(as_role('owner', 'shop', 'CREATE EXTENSION citext_hybrid; CREATE TABLE names (n citext); CREATE INDEX ON names USING hybrid (n)'), '', 'an extension brings them');
}

# ---- the library in all sessions, and the setting ----

refused('owner', q(ALTER DATABASE shop SET session_preload_libraries = 'hybridindex'), 'permission denied to set parameter');
refused('owner', q(SELECT hybrid_version(); ALTER DATABASE shop SET hybridindex.max_merge_workers = 32), 'parameter "hybridindex.max_merge_workers" cannot be changed now');
my $upsert = "INSERT INTO t VALUES (1, 'b') ON CONFLICT (id int8_ops) DO NOTHING";
as_role('owner', 'shop', q(CREATE TABLE t (id int8 PRIMARY KEY WITH (access_method = hybrid), s text COLLATE "C"); INSERT INTO t VALUES (1, 'a')));
refused('owner', $upsert, 'there is no unique or exclusion constraint');
is(as_role('owner', 'shop', q(ALTER DATABASE shop SET local_preload_libraries = 'hybridindex')), '', 'an owner has sessions load the library');
is(as_role('owner', 'shop', 'ALTER DATABASE shop SET hybridindex.replace_btree = on'), '', 'and then sets replace_btree');
is(as_role('owner', 'shop', $upsert), '', 'the first statement of a session has the library');
is(as_role('owner', 'shop', q(CREATE TABLE u (id int PRIMARY KEY); SELECT count(*) FROM hybrid_indexes WHERE tablename = 'u')), '1', 'new keys are hybrid');
is($node->safe_psql('shop', 'SHOW hybridindex.replace_btree'), 'on', 'the superuser gets in');

# ---- use ----

is( as_role('owner', 'shop', <<'EOS'), "0\n0", 'conversion and reversion');
SET client_min_messages = warning;
ALTER DATABASE shop RESET hybridindex.replace_btree;
SET hybridindex.replace_btree = off;
CREATE INDEX t_s ON t (s);
INSERT INTO t SELECT i, 's' || i FROM generate_series(2, 3000) i;
CALL hybrid_convert_schema('public');
SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE indrelid = 't'::regclass AND amname <> 'hybrid';
CALL hybrid_revert_table('u');
SELECT hybrid_convert('u_pkey') IS NULL \g /dev/null
SELECT hybrid_revert('u_pkey') IS NULL \g /dev/null
SELECT hybrid_merge(indexrelid), hybrid_index_check(indexrelid, true) FROM hybrid_indexes \g /dev/null
SELECT * FROM hybrid_advice \g /dev/null
SELECT count(*) FROM hybrid_indexes WHERE tablename = 'u';
EOS

# ---- another package while a session has the library ----

SKIP:
{
	skip 'this server finds the library in one place', 1 if $node->pg_version < 18;

	# as packages do: the old file stays what it is for a session that has it mapped
	my $put = "cp '$libdir/hybridindex.so' '$elsewhere/new' && chmod 755 '$elsewhere/new' && mv '$elsewhere/new' '$elsewhere/hybridindex.so'";
	system($put) == 0 or die 'no library';
	$node->append_conf('postgresql.conf', "dynamic_library_path = '$elsewhere:\$libdir'");
	$node->restart;
	my $session = start_psql($node, "\\c shop owner\n\\! touch $elsewhere/there\n\\! for i in \$(seq 600); do [ ! -e $elsewhere/go ] || break; sleep 0.1; done\n",
		"INSERT INTO t VALUES (1, 'c') ON CONFLICT DO NOTHING;\nSELECT hybrid_version();\nCREATE TABLE v (id int);\n");
	wait_file("$elsewhere/there");
	system($put) == 0 or die 'no other file';
	append_to_file("$elsewhere/go", '');
	ok(finish_psql($session), 'a session goes on with the library that it has') or diag $session->{err};
}

# ---- only some roles ----

my ($recipe) = slurp_file(test_root() . '/docs/guide/providers.md') =~ /^```sql\n(.*?)^```/ms;
$node->safe_psql('plain', $recipe);
$node->safe_psql('plain', 'CREATE ROLE member LOGIN IN ROLE hybrid_users; GRANT CREATE ON SCHEMA public TO tenant, member; CREATE TABLE hybrid (id int PRIMARY KEY WITH (access_method = hybrid)); GRANT SELECT ON hybrid TO PUBLIC');
as_role($_, 'plain', "CREATE TABLE ${_}_1 (id int PRIMARY KEY)") foreach qw(tenant member);
foreach my $statement (
	'CREATE INDEX ON %s_1 USING hybrid (id)',
	'CREATE INDEX CONCURRENTLY ON %s_1 USING hybrid (id)',
	'CREATE TABLE %s_2 (id int PRIMARY KEY WITH (access_method = hybrid))',
	'ALTER TABLE %s_1 ADD UNIQUE (id) WITH (access_method = hybrid)',
	'SET hybridindex.replace_btree = on; CREATE TABLE %s_3 (id int, UNIQUE (id))',
	'CREATE TABLE %s_4 (LIKE hybrid INCLUDING INDEXES)',
	'DO $$ BEGIN CREATE INDEX ON %s_1 USING hybrid (id); END $$')
{
	like(as_role('tenant', 'plain', sprintf($statement, 'tenant')), qr/ERROR:  hybrid indexes are for members of hybrid_users/, sprintf("refused: $statement", 'tenant'));
	is(as_role('member', 'plain', sprintf($statement, 'member')), '', sprintf("not refused: $statement", 'member'));
}
like(as_role('tenant', 'plain', $_), qr/ERROR:  permission denied for (?:function|procedure) hybrid_convert/, $_)
  foreach "SELECT hybrid_convert('tenant_1_pkey')", "CALL hybrid_convert_concurrently('tenant_1_pkey')", "CALL hybrid_convert_table('tenant_1')", "CALL hybrid_convert_schema('public')";
$node->safe_psql('plain', 'DROP INDEX tenant_1_id_idx');
is(as_role('tenant', 'plain', 'ALTER TABLE tenant_1 ALTER id TYPE int8; REINDEX TABLE tenant_1; TRUNCATE tenant_1'), '', 'btree indexes are as ever');
$node->safe_psql('plain', 'DROP EVENT TRIGGER may_use_hybrid; DROP TABLE hybrid, member_1, member_2, member_3, member_4; DROP EXTENSION hybridindex');

# ---- any role in any database ----

my $memory = q(SELECT count(*) FROM pg_shmem_allocations WHERE name LIKE 'hybrid%');
$node->restart;
is( as_role('tenant', 'plain', <<'EOS'), "64MB\non\nt", 'a role loads the library');
LOAD '$libdir/plugins/hybridindex';
SHOW hybridindex.dynamic_memory;
SET hybridindex.replace_btree = on;
SHOW hybridindex.replace_btree;
CREATE TEMP TABLE x (id int PRIMARY KEY, s text);
CREATE INDEX ON x (s);
INSERT INTO x VALUES (1, 'a'), (2, 'b') ON CONFLICT DO NOTHING;
SELECT bool_and(indexdef LIKE '%USING btree%') FROM pg_indexes WHERE tablename = 'x';
EOS
is($node->safe_psql('plain', $memory), '0', 'it takes no shared memory');
like(as_role('tenant', 'plain', "LOAD 'hybridindex'"), qr/access to library "hybridindex" is not allowed/, 'by no other path');

# ---- dump, restoration and removal ----

my $dump = "$elsewhere/dump.sql";
is(as_role('owner', 'shop', 'DROP EXTENSION IF EXISTS citext_hybrid CASCADE; DROP EXTENSION IF EXISTS citext CASCADE', on_error_stop => 1), '', 'what else there was');
$node->command_ok([ 'pg_dump', '-U', 'owner', '-f', $dump, $node->connstr('shop') ], 'an owner dumps');
$node->command_ok([ 'psql', '-X', '-q', '-U', 'owner', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('copy') ], 'and restores');
is(as_role('owner', 'copy', 'SELECT count(*) FROM hybrid_indexes'), '2', 'hybrid indexes are restored');
refused('owner', 'DROP EXTENSION hybridindex', 'cannot drop extension hybridindex because other objects depend on it');
is( as_role('owner', 'shop', <<'EOS'), '0', 'an owner removes the extension');
SET client_min_messages = warning;
CALL hybrid_revert_schema('public');
ALTER DATABASE shop RESET local_preload_libraries;
DROP EXTENSION hybridindex;
SELECT (SELECT count(*) FROM pg_proc WHERE probin ~ 'hybridindex') + (SELECT count(*) FROM pg_event_trigger) + (SELECT count(*) FROM pg_am WHERE amname = 'hybrid');
EOS

no_crash($node, 'no process crashed');
$node->stop;
done_testing();
