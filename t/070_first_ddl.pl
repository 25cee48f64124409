
# The first statement of a session that concerns constraints with hybrid indexes
# loads the library in time.  A session of its own runs each of these statements.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('first', '');
$node->safe_psql('postgres', <<'EOF');
ALTER DATABASE postgres SET hybridindex.replace_btree = on;
CREATE VIEW kinds AS
SELECT c.relname, a.amname, i.indisvalid AND i.indisready AS ok FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace;
EOF

# One statement, in a session that has not loaded the library, and the indexes
# that are there afterwards.
sub first_statement
{
	my ($statement, $expected, $what) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $statement);
	is($err, '', "$what: no message");
	is($node->safe_psql('postgres', "SELECT string_agg(relname || ' ' || amname, ', ' ORDER BY relname) FROM kinds"),
		$expected, $what);
	is($node->safe_psql('postgres', "SELECT count(*) FROM kinds WHERE NOT ok"), '0', "$what: all are valid");
	return;
}

is($node->safe_psql('postgres', "SHOW hybridindex.replace_btree"), 'on', 'the setting is known before the library');

first_statement('CREATE TABLE a (id int PRIMARY KEY, n int, s text)', 'a_pkey hybrid', 'CREATE TABLE');
first_statement('ALTER TABLE a ADD CONSTRAINT a_n UNIQUE (n)', 'a_n hybrid, a_pkey hybrid', 'ADD CONSTRAINT');
first_statement('CREATE INDEX a_s ON a (s)', 'a_n hybrid, a_pkey hybrid, a_s hybrid', 'CREATE INDEX');
first_statement('CREATE INDEX CONCURRENTLY a_ss ON a (s)',
	'a_n hybrid, a_pkey hybrid, a_s hybrid, a_ss hybrid', 'CREATE INDEX CONCURRENTLY');
first_statement('CREATE INDEX a_b ON a USING btree (s)',
	'a_b btree, a_n hybrid, a_pkey hybrid, a_s hybrid, a_ss hybrid', 'USING btree');
$node->safe_psql('postgres', 'DROP INDEX a_s, a_ss, a_b');
first_statement('ALTER TABLE a ALTER id TYPE bigint', 'a_n hybrid, a_pkey hybrid', 'ALTER COLUMN TYPE');
first_statement('CREATE TABLE b (id int REFERENCES a, up int REFERENCES a (n))', 'a_n hybrid, a_pkey hybrid', 'REFERENCES');
first_statement('ALTER TABLE b ADD FOREIGN KEY (up) REFERENCES a', 'a_n hybrid, a_pkey hybrid', 'ADD FOREIGN KEY');
first_statement('ALTER TABLE b ALTER up TYPE bigint', 'a_n hybrid, a_pkey hybrid', 'the type of a referencing column');

# a new key that a foreign key of the same command references
my $notice = qr/NOTICE:  an index of table "b" will be of access method "btree"\nDETAIL:  Before PostgreSQL 18, a foreign key of the same command can reference a btree index only\./;
my ($new_key, $what) = $node->pg_version < 18 ? ('btree', 'a notice') : ('hybrid', 'no message');
my ($ret, $out, $err) = $node->psql('postgres',
	'ALTER TABLE b ADD PRIMARY KEY (id) WITH (access_method = hybrid, merge_ratio = 5), ADD COLUMN x int REFERENCES b, ADD UNIQUE (up)');
like($err, $new_key eq 'btree' ? $notice : qr/^$/, "a foreign key to the new primary key: $what");
is($node->safe_psql('postgres', "SELECT string_agg(relname || ' ' || amname, ', ' ORDER BY relname) FROM kinds WHERE relname ~ '^b_'"),
	"b_pkey $new_key, b_up_key hybrid", 'the other new key is hybrid');
($ret, $out, $err) = $node->psql('postgres', 'ALTER TABLE b ADD COLUMN y int UNIQUE CONSTRAINT b_y REFERENCES b (y)');
like($err, $new_key eq 'btree' ? $notice : qr/^$/, "a column that references itself: $what");
is($node->safe_psql('postgres', "SELECT amname FROM kinds WHERE relname = 'b_y_key'"), $new_key, 'and its key');
first_statement('ALTER TABLE b ADD UNIQUE (id, up), ADD FOREIGN KEY (id) REFERENCES b (up)',
	"a_n hybrid, a_pkey hybrid, b_id_up_key hybrid, b_pkey $new_key, b_up_key hybrid, b_y_key $new_key",
	'a foreign key to another key than the new one');

$node->safe_psql('postgres', 'DROP TABLE b; CREATE UNIQUE INDEX a_s ON a (s)');
($ret, $out, $err) = $node->psql('postgres', 'ALTER TABLE a ADD CONSTRAINT a_key UNIQUE USING INDEX a_s DEFERRABLE');
like($err, qr/^(psql:\S+ )?NOTICE:  ALTER TABLE \/ ADD CONSTRAINT USING INDEX will rename/, 'a notice of USING INDEX');
is($node->safe_psql('postgres', "SELECT amname FROM kinds WHERE relname = 'a_key'"), 'hybrid', 'the constraint that USING INDEX makes stays hybrid');
$node->safe_psql('postgres', <<'EOF');
CREATE MATERIALIZED VIEW mv AS SELECT 1 AS one;
CREATE UNIQUE INDEX mv_one ON mv (one);
EOF
first_statement('REFRESH MATERIALIZED VIEW CONCURRENTLY mv',
	'a_key hybrid, a_n hybrid, a_pkey hybrid, mv_one hybrid', 'REFRESH CONCURRENTLY');
$node->safe_psql('postgres', 'DROP MATERIALIZED VIEW mv; DROP TABLE a');

# Tables that inherit from foreign ones.  A change that rewrites them would be an
# error of servers with assertions: those expect no rewrite by this statement.
$node->safe_psql('postgres', <<'EOF');
CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;
CREATE FOREIGN TABLE far (id varchar(10), n int) SERVER s;
CREATE TABLE near (PRIMARY KEY (id)) INHERITS (far);
SET hybridindex.replace_btree = off;
CREATE TABLE near2 (PRIMARY KEY (id)) INHERITS (far);
EOF
first_statement('ALTER FOREIGN TABLE far ALTER id TYPE varchar(20)', 'near2_pkey hybrid, near_pkey hybrid', 'ALTER FOREIGN TABLE');
first_statement('ALTER TABLE far ALTER id TYPE varchar(30)', 'near2_pkey hybrid, near_pkey hybrid', 'ALTER TABLE of a foreign one');
first_statement('CREATE FOREIGN TABLE far2 (id int) SERVER s', 'near2_pkey hybrid, near_pkey hybrid', 'CREATE FOREIGN TABLE');

# composite types, and what else may have to do with indexes
$node->safe_psql('postgres', <<'EOF');
SET client_min_messages = warning;
DROP SERVER s CASCADE;
CREATE TYPE pair AS (a varchar(10), b int);
CREATE TABLE pairs OF pair (PRIMARY KEY (a));
CREATE MATERIALIZED VIEW mv AS SELECT 1 AS one;
CREATE UNIQUE INDEX mv_one ON mv (one);
CREATE VIEW v AS SELECT 1 AS one;
CREATE SEQUENCE numbers;
EOF
first_statement($_, 'mv_one hybrid, pairs_pkey hybrid', $_)
  foreach 'ALTER TYPE pair ALTER ATTRIBUTE a TYPE varchar(20) CASCADE', 'ALTER INDEX pairs_pkey SET (merge_ratio = 5)',
  'ALTER INDEX pairs_pkey SET TABLESPACE pg_default', 'ALTER TABLE pairs CLUSTER ON pairs_pkey', 'CLUSTER pairs', 'VACUUM FULL pairs',
  'REINDEX TABLE pairs', 'TRUNCATE pairs', 'ALTER MATERIALIZED VIEW mv ALTER one SET STATISTICS 5',
  'ALTER MATERIALIZED VIEW mv SET ACCESS METHOD heap', 'REFRESH MATERIALIZED VIEW mv', 'ALTER VIEW v SET (security_barrier)',
  'ALTER SEQUENCE numbers OWNER TO CURRENT_USER', 'CREATE TABLE tas AS SELECT * FROM pairs', 'SELECT * INTO sel FROM pairs',
  'CREATE MATERIALIZED VIEW mv2 AS SELECT * FROM pairs', 'ALTER TABLE pairs NOT OF';
first_statement('CREATE TABLE pairs2 (LIKE pairs INCLUDING ALL)', 'mv_one hybrid, pairs2_pkey hybrid, pairs_pkey hybrid', 'LIKE');
$node->safe_psql('postgres', <<'EOF');
SET client_min_messages = warning;
DROP TABLE pairs, pairs2, tas, sel CASCADE; DROP MATERIALIZED VIEW mv; DROP TYPE pair;
EOF

# exclusion constraints: their text is unknown in a function, and names may mislead
first_statement("DO 'BEGIN CREATE TABLE x1 (id int, EXCLUDE (id WITH =)); CREATE TABLE x2 (id int, EXCLUDE (id WITH =)); END'",
	'x1_id_excl hybrid, x2_id_excl hybrid', 'EXCLUDE in a DO block');
$node->safe_psql('postgres', 'DROP TABLE x1, x2');
first_statement('CREATE TABLE x1 (id int, CONSTRAINT exclude EXCLUDE USING btree (id WITH =))', 'exclude btree', 'a constraint called "exclude"');
first_statement('ALTER TABLE x1 DROP CONSTRAINT exclude, ADD CONSTRAINT exclude EXCLUDE USING btree (id WITH =)', 'exclude btree', 'added by ALTER TABLE');
first_statement('ALTER TABLE x1 DROP CONSTRAINT exclude, ADD CONSTRAINT exclude EXCLUDE (id WITH =)', 'exclude hybrid', 'without USING');
$node->safe_psql('postgres', 'DROP TABLE x1');

# in functions, schemas, transactions, and statements that fail
first_statement("DO 'BEGIN CREATE TABLE c (id int PRIMARY KEY); CREATE INDEX c_i ON c (id); END'",
	'c_i hybrid, c_pkey hybrid', 'in a DO block');
first_statement('CREATE SCHEMA s CREATE TABLE d (id int PRIMARY KEY REFERENCES d)', 'c_i hybrid, c_pkey hybrid', 'CREATE SCHEMA');
is($node->safe_psql('postgres', "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'd_pkey'"),
	'hybrid', 'its table has a hybrid index');
isnt($node->psql('postgres', 'CREATE TABLE e (id int REFERENCES c, x int REFERENCES nowhere)'), 0, 'a statement that fails');
first_statement('BEGIN; SAVEPOINT x; CREATE TABLE f (id int REFERENCES c); ROLLBACK TO x; CREATE TABLE f (id int PRIMARY KEY); COMMIT',
	'c_i hybrid, c_pkey hybrid, f_pkey hybrid', 'after a savepoint');

# From 19 on there are standard strings only.
if ($node->safe_psql('postgres', "SELECT current_setting('server_version_num')::int < 190000") eq 't')
{
	($ret, $out, $err) = $node->psql('postgres',
		"SET standard_conforming_strings = off; CREATE TABLE warned (a text DEFAULT 'x\\n'); DROP TABLE warned");
	is(() = $err =~ /WARNING/g, 1, 'one warning of a text that is read twice');

	# what strings are has changed since the server has read the text
	first_statement("CREATE TABLE f2 (s text)\\; SET standard_conforming_strings = off\\; "
		. "CREATE INDEX f2_s ON f2 USING btree (s) WHERE s <> 'a\\'; DROP TABLE f2; CREATE TABLE f2 (s text)",
		'c_i hybrid, c_pkey hybrid, f_pkey hybrid', 'a text that reads the same either way');
	first_statement("SET standard_conforming_strings = off\\; CREATE INDEX f2_s ON f2 USING btree (s) WHERE s <> 'a\\'",
		'c_i hybrid, c_pkey hybrid, f2_s btree, f_pkey hybrid', 'strings that are read otherwise by now');
	first_statement("DROP INDEX f2_s\\; SET standard_conforming_strings = off\\; CREATE INDEX f2_s ON f2 USING btree (s) WHERE s <> 'a\\\\b'",
		'c_i hybrid, c_pkey hybrid, f2_s btree, f_pkey hybrid', 'strings that can be read either way');
	$node->safe_psql('postgres', 'DROP TABLE f2');
}
$node->safe_psql('postgres', 'CREATE TABLE f2 (s text); CREATE INDEX f2_s ON f2 USING btree (s)');
first_statement("SET backslash_quote = off\\; DROP INDEX f2_s\\; CREATE INDEX f2_s ON f2 USING btree (s) WHERE s <> E'a\\'b'",
	'c_i hybrid, c_pkey hybrid, f2_s btree, f_pkey hybrid', 'strings that backslash_quote refuses');
$node->safe_psql('postgres', 'DROP TABLE f2');

# without event triggers the library is there when it is preloaded
$node->safe_psql('postgres', 'ALTER EVENT TRIGGER hybridindex_ddl_start DISABLE; ALTER EVENT TRIGGER _hybridindex_ddl_end DISABLE');
first_statement("SELECT hybrid_merge('c_pkey'); CREATE TABLE g (id int REFERENCES c PRIMARY KEY)",
	'c_i hybrid, c_pkey hybrid, f_pkey hybrid, g_pkey hybrid', 'a loaded library needs no event trigger');
like(($node->psql('postgres', 'ALTER TABLE c ALTER id TYPE int; ALTER TABLE c ALTER id TYPE int', on_error_stop => 0))[2],
	qr/^psql:\S+ ERROR:  unrecognized parameter "access_method"\nHINT:  The library "hybridindex".* try it again[^\n]*$/,
	'one that the statement loads is late once, and says so');
$node->append_conf('postgresql.conf', "session_preload_libraries = 'hybridindex'\n");
$node->reload;
first_statement('CREATE TABLE h (id int PRIMARY KEY REFERENCES c)',
	'c_i hybrid, c_pkey hybrid, f_pkey hybrid, g_pkey hybrid, h_pkey hybrid', 'a preloaded library is in time');
like(($node->psql('postgres', 'INSERT INTO c VALUES (1) ON CONFLICT ((id + 1)) DO NOTHING'))[2],
	qr/^psql:\S+ ERROR:  there is no unique [^\n]*$/, 'an error of its first statement is not that it came late');

# and in single-user mode, which has neither event triggers nor the database's settings
$node->stop;
my $keys = "CREATE TABLE s (id int PRIMARY KEY WITH (access_method = hybrid), n int UNIQUE)\nALTER TABLE s ALTER id TYPE bigint\n"
  . "SELECT string_agg(relname || ' ' || amname, ', ' ORDER BY relname) AS keys FROM kinds WHERE relname ~ '^s_'\nDROP TABLE s\n";
foreach my $way (
	[ $keys, 's_n_key btree, s_pkey hybrid', 'shared_preload_libraries=hybridindex' ],
	[ $keys, 's_n_key hybrid, s_pkey hybrid', 'session_preload_libraries=hybridindex', 'hybridindex.replace_btree=on' ],
	[ "LOAD 'hybridindex'\n$keys", 's_n_key btree, s_pkey hybrid' ])
{
	my ($sql, $expected, @settings) = @$way;
	my ($out, $err);
	IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, '-c', 'session_preload_libraries=', (map { ('-c', $_) } @settings), 'postgres' ],
		'<', \$sql, '>', \$out, '2>', \$err);
	like($out, qr/keys = "$expected"/, "single-user mode, @settings") or diag $err;
}
$node->start;

$node->safe_psql('postgres', 'ALTER EVENT TRIGGER hybridindex_ddl_start ENABLE ALWAYS; ALTER EVENT TRIGGER _hybridindex_ddl_end ENABLE ALWAYS');
$node->append_conf('postgresql.conf', "session_preload_libraries = ''\n");
$node->reload;

# a replica's session, and the script of another extension, which a test can bring along from 18 on
first_statement('SET session_replication_role = replica; ALTER TABLE h ADD n int UNIQUE',
	'c_i hybrid, c_pkey hybrid, f_pkey hybrid, g_pkey hybrid, h_n_key hybrid, h_pkey hybrid', 'session_replication_role');
SKIP:
{
	my $elsewhere = $node->basedir;
	skip 'this server looks for extensions in one place', 3 if $node->safe_psql('postgres', 'SHOW server_version_num') < 180000;
	mkdir "$elsewhere/extension";
	append_to_file("$elsewhere/extension/other.control", "default_version = '1'\n");
	append_to_file("$elsewhere/extension/other--1.sql", 'CREATE TABLE o (id int PRIMARY KEY, EXCLUDE (id WITH =)); CREATE TABLE p (id int, EXCLUDE (id WITH =));');
	$node->append_conf('postgresql.conf', "extension_control_path = '\$system:$elsewhere'\n");
	$node->reload;
	first_statement('CREATE EXTENSION other', 'c_i hybrid, c_pkey hybrid, f_pkey hybrid, g_pkey hybrid, h_n_key hybrid, h_pkey hybrid, '
		. 'o_id_excl hybrid, o_pkey hybrid, p_id_excl hybrid', 'another extension');
	$node->safe_psql('postgres', 'DROP EXTENSION other');
}

# ---- roles that are not superusers ----
$node->safe_psql('postgres', <<'EOF');
CREATE ROLE owner LOGIN; CREATE ROLE guest LOGIN; CREATE SCHEMA own AUTHORIZATION owner; GRANT USAGE ON SCHEMA own TO guest;
EOF
sub as_role
{
	my ($role, $statement) = @_;
	return ($node->psql('postgres', $statement, extra_params => [ '-U', $role ]))[2];
}
is(as_role('owner', 'CREATE TABLE own.t (id int PRIMARY KEY, s text); GRANT REFERENCES ON own.t TO guest'), '', 'a role with a table');
is(as_role('guest', 'CREATE TEMP TABLE x (id int PRIMARY KEY)'), '', 'a temporary table');
is(as_role('owner', 'CREATE TABLE own.u (id int REFERENCES own.t)'), '', 'a reference of its owner');
like(as_role('guest', 'CREATE INDEX ON own.t (s)'), qr/must be owner of table t/, 'another role cannot make an index');
like(as_role('guest', 'ALTER TABLE own.t ALTER id TYPE bigint'), qr/must be owner of table t/, 'another role cannot change a type');
like(as_role('guest', 'ALTER TABLE own.u ADD FOREIGN KEY (id) REFERENCES own.t'), qr/must be owner of table u/, 'another role cannot add a foreign key');
like(as_role('guest', 'CREATE TABLE own.v (id int REFERENCES own.t)'), qr/permission denied for schema own/, 'another role cannot make a table');
$node->safe_psql('postgres', 'GRANT CREATE ON SCHEMA own TO guest; CREATE TABLE own.w (id int PRIMARY KEY)');
is(as_role('guest', 'CREATE TABLE own.v (id int REFERENCES own.t)'), '', 'a role with the privilege can add a reference');
like(as_role('guest', 'CREATE TABLE own.y (id int REFERENCES own.w)'), qr/permission denied for table w/, 'a role without the privilege cannot add a reference');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_index WHERE NOT indisvalid"), '0', 'nothing is left behind');

# what an index has of its owner's functions runs as its owner
is(as_role('owner', <<'EOF'), '', 'an index with a function of its owner');
CREATE FUNCTION own.tell() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_user <> 'owner' THEN RAISE 'runs as %', current_user; END IF;
	RETURN true;
END $$;
CREATE MATERIALIZED VIEW own.mv AS SELECT 1 AS one;
CREATE UNIQUE INDEX ON own.mv (one) WHERE own.tell();
EOF
is(($node->psql('postgres', 'REFRESH MATERIALIZED VIEW CONCURRENTLY own.mv'))[2], '', 'another role can refresh the view');

# nothing is found through an index that stands in for another one
is(($node->psql('postgres', <<'EOF'))[2], '', 'a foreign key that is validated by index scans');
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_sort = off;
CREATE TABLE big (id int PRIMARY KEY);
INSERT INTO big SELECT generate_series(1, 1000);
CREATE TABLE refers (id int);
INSERT INTO refers SELECT generate_series(1, 1000);
ALTER TABLE refers ADD FOREIGN KEY (id) REFERENCES big;
EOF

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
