
# A role may create objects in a schema and has laid traps there before it runs CREATE
# EXTENSION in it.  The traps are functions and operators under the names that
# the script uses, for each combination of the types of its expressions, and types
# and tables.  SQL takes such a function where the script matches a name by coercion.
# Each object of the extension has to refer only to pg_catalog and to the extension.
# No trap runs when views and functions are used.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('traps', "hybridindex.background_merge = off\n");

# What the extension consists of, and what the views and SQL functions in it name:
# objects of pg_catalog leave no dependencies, so their expressions are read.
my $seen = <<'SQL';
CREATE SCHEMA seen;
CREATE VIEW seen.members AS
SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'hybridindex';

CREATE VIEW seen.fields AS
SELECT DISTINCT f[1] AS field, f[2]::oid AS id
FROM (SELECT r.ev_action::text FROM pg_rewrite r JOIN seen.members m ON m.classid = 'pg_class'::regclass AND m.objid = r.ev_class
	UNION ALL
	SELECT p.prosqlbody::text FROM pg_proc p JOIN seen.members m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid) trees (tree),
	regexp_matches(tree, ':([a-z]+) (\d+)\M', 'g') f;

-- in_expression: not merely a member of an operator family, which is looked up
-- by its exact types
CREATE VIEW seen.functions AS
SELECT p.oid, p.proname, p.prokind, p.prorettype, p.proretset, ARRAY (SELECT unnest(p.proargtypes)) AS arguments,
	(SELECT string_agg(format(', OUT %I %s', p.proargnames[i], format_type(p.proallargtypes[i], NULL)), '' ORDER BY i)
	FROM generate_subscripts(p.proallargtypes, 1) i WHERE p.proargmodes[i] = 'o') AS results,
	bool_or(names.in_expression) AS in_expression
FROM (SELECT objid, true FROM seen.members WHERE classid = 'pg_proc'::regclass
	UNION ALL SELECT id, true FROM seen.fields WHERE field = 'funcid'
	UNION ALL SELECT amproc, false FROM pg_amproc JOIN pg_opfamily f ON f.oid = amprocfamily JOIN pg_am m ON m.oid = f.opfmethod
		WHERE m.amname = 'hybrid') names (oid, in_expression)
	JOIN pg_proc p USING (oid)
GROUP BY p.oid;

CREATE VIEW seen.operators AS
SELECT o.oid, o.oprname, o.oprleft, o.oprright, o.oprresult, bool_or(names.in_expression) AS in_expression
FROM (SELECT id, true FROM seen.fields WHERE field = 'opno'
	UNION ALL SELECT amopopr, false FROM pg_amop JOIN pg_am m ON m.oid = amopmethod WHERE m.amname = 'hybrid') names (oid, in_expression)
	JOIN pg_operator o USING (oid)
GROUP BY o.oid;

CREATE VIEW seen.types AS
SELECT t.oid FROM pg_type t
WHERE t.typtype = 'b' AND t.typcategory NOT IN ('A', 'X', 'Z')
	AND (t.oid IN (SELECT id FROM seen.fields WHERE field LIKE '%type')
		OR EXISTS (SELECT FROM seen.functions f WHERE f.in_expression AND t.oid = ANY (f.arguments)));

-- what only C functions can have for an argument, only a superuser can make
CREATE VIEW seen.allowed AS
SELECT oid FROM pg_type WHERE oid < 16384 AND (typtype <> 'p' OR typname ~ '^any.' OR typname = 'record');
SQL

# The commands that lay the traps
my $traps = <<'SQL';
WITH varied AS (
	SELECT f, f.arguments FROM seen.functions f
	UNION ALL
	SELECT f, f.arguments[:i - 1] || t.oid || f.arguments[i + 1:]
	FROM seen.functions f, generate_subscripts(f.arguments, 1) i, seen.types t WHERE f.in_expression
	UNION ALL
	SELECT f, t.oid || (u.oid || f.arguments[3:])
	FROM seen.functions f, seen.types t, seen.types u WHERE f.in_expression AND cardinality(f.arguments) >= 2),
functions AS (
	SELECT DISTINCT ON ((f).proname, varied.arguments) (f).*,
		(SELECT string_agg(format_type(a, NULL), ', ' ORDER BY i) FROM unnest(varied.arguments) WITH ORDINALITY x (a, i)) AS list
	FROM varied
	WHERE varied.arguments <@ ARRAY (SELECT oid FROM seen.allowed)
		AND NOT EXISTS (SELECT FROM seen.functions m WHERE m.oid >= 16384 AND m.proname = (f).proname AND m.arguments = varied.arguments)),
operators AS (
	SELECT oprname, oprleft, oprright, oprresult FROM seen.operators
	UNION
	SELECT o.oprname, t.oid, u.oid, o.oprresult FROM seen.operators o, seen.types t, seen.types u WHERE o.in_expression
	UNION
	SELECT o.oprname, t.oid, t.oid, o.oprresult
	FROM seen.operators o, (VALUES ('anyelement'::regtype), ('anycompatible')) t (oid) WHERE o.in_expression)
SELECT format('CREATE %s %I(%s%s)%s LANGUAGE plpgsql AS %L',
	CASE prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, proname, list, results,
	CASE WHEN prokind <> 'p' THEN format(' RETURNS %s %s', CASE WHEN proretset THEN 'SETOF' END,
		CASE WHEN prorettype IN (SELECT oid FROM seen.allowed) THEN format_type(prorettype, NULL) ELSE 'text' END) END,
	format('BEGIN RAISE ''trap %%'', %L; END', format('%s(%s)', proname, list)))
FROM functions
UNION ALL
SELECT DISTINCT ON (oprname, oprleft, oprright)
	format('CREATE FUNCTION %I(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L; CREATE OPERATOR evil.%s (FUNCTION = %1$I, LEFTARG = %2$s, RIGHTARG = %3$s)',
		'operator ' || oprname, format_type(oprleft, NULL), format_type(oprright, NULL), format_type(oprresult, NULL),
		format('BEGIN RAISE ''trap %%'', %L; END', format('%s %s %s', oprleft::regtype, oprname, oprright::regtype)), oprname)
FROM operators
UNION ALL
SELECT format('CREATE DOMAIN evil.%I AS pg_catalog.text', typname)
FROM pg_type WHERE oid IN (SELECT oid FROM seen.types UNION ALL SELECT unnest(arguments) FROM seen.functions UNION ALL SELECT prorettype FROM seen.functions) AND oid < 16384 AND typname NOT LIKE '\_%'
UNION ALL
SELECT format('CREATE TABLE evil.%I ()', c.relname)
FROM seen.fields f JOIN pg_class c ON c.oid = f.id WHERE f.field = 'relid' AND f.id < 16384
SQL

# Everything that the extension has, as text in which a trap would show
my $definitions = <<'SQL';
SET search_path = pg_catalog;
SELECT format('%s: %s', c.relname, pg_get_viewdef(c.oid)) FROM seen.members m JOIN pg_class c ON c.oid = m.objid WHERE m.classid = 'pg_class'::regclass
UNION ALL
SELECT format('%s: %s', p.proname, pg_get_functiondef(p.oid)) FROM seen.members m JOIN pg_proc p ON p.oid = m.objid WHERE m.classid = 'pg_proc'::regclass
UNION ALL
SELECT format('%s: %s %s %s', f.opfname, o.amopstrategy, o.amopopr::regoperator, o.amopsortfamily) FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am a ON a.oid = f.opfmethod AND a.amname = 'hybrid'
UNION ALL
SELECT format('%s: %s %s %s %s', f.opfname, o.amprocnum, o.amproclefttype::regtype, o.amprocrighttype::regtype, o.amproc::regprocedure) FROM pg_amproc o JOIN pg_opfamily f ON f.oid = o.amprocfamily JOIN pg_am a ON a.oid = f.opfmethod AND a.amname = 'hybrid'
UNION ALL
SELECT format('%s: %s %s', o.opcname, o.opcintype::regtype, o.opckeytype::regtype) FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod AND a.amname = 'hybrid'
UNION ALL
SELECT format('%s: %s', evtname, evtfoid::regprocedure) FROM pg_event_trigger
UNION ALL
SELECT format('%s: %s', amname, amhandler) FROM pg_am;
SQL

$node->safe_psql('postgres', 'CREATE ROLE attacker; CREATE DATABASE clean TEMPLATE template0; CREATE DATABASE trapped TEMPLATE template0');
foreach my $database (qw(clean trapped))
{
	$node->safe_psql($database, 'CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO attacker');
}
$node->safe_psql('clean', "CREATE EXTENSION hybridindex SCHEMA evil; $seen");
my @commands = split /\n/, $node->safe_psql('clean', $traps);
cmp_ok(scalar(grep { /$_/ } @commands), '>', 0, "traps: $_") foreach qr/ hybrid_index_stats\(oid, boolean\)/, qr/ hybrid_convert\(name\)/,
	qr/OPERATOR evil\.= .* regclass, RIGHTARG = regclass\)/, qr/OPERATOR evil\.\* .* numeric, RIGHTARG = bigint\)/, qr/DOMAIN evil.regclass/, qr/TABLE evil.pg_class/;
my $file = PostgreSQL::Test::Utils::tempdir() . '/traps.sql';
append_to_file($file, join(";\n", 'BEGIN; SET LOCAL ROLE attacker; SET LOCAL search_path = evil; SET LOCAL check_function_bodies = off', @commands, "COMMIT;\n"));
$node->safe_psql('trapped', "\\i $file");

my ($ret, $out, $err) = $node->psql('trapped', 'GRANT CREATE ON DATABASE trapped TO attacker; SET ROLE attacker; CREATE EXTENSION hybridindex SCHEMA evil');
is($err, '', 'the extension is created among traps') or die;
$node->safe_psql('trapped', $seen);
my %clean = map { $_ => 1 } split /\n/, $node->safe_psql('clean', $definitions);
my @trapped = split /\n/, $node->safe_psql('trapped', $definitions);
is(join("\n", grep { !$clean{$_} } @trapped), '', 'it has what it has without them');
delete @clean{@trapped};
is(join("\n", sort keys %clean), '', 'it lacks nothing that it has without them');
is($node->safe_psql('trapped', <<'SQL'), '', 'nothing in it names a trap');
SELECT f.field, f.id FROM seen.fields f
WHERE f.id >= 16384
	AND (f.field IN ('funcid', 'opfuncid') AND f.id IN (SELECT oid FROM pg_proc WHERE proowner = 'attacker'::regrole)
		OR f.field = 'opno' AND f.id IN (SELECT oid FROM pg_operator WHERE oprowner = 'attacker'::regrole)
		OR f.field = 'relid' AND f.id IN (SELECT oid FROM pg_class WHERE relowner = 'attacker'::regrole)
		OR f.field LIKE '%type' AND f.id IN (SELECT oid FROM pg_type WHERE typowner = 'attacker'::regrole))
SQL
is($node->safe_psql('trapped', <<'SQL'), '', 'nothing depends on a trap');
WITH theirs AS (
	SELECT 'pg_proc'::regclass::oid AS classid, oid AS objid FROM pg_proc WHERE proowner = 'attacker'::regrole
	UNION ALL SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprowner = 'attacker'::regrole
	UNION ALL SELECT 'pg_class'::regclass, oid FROM pg_class WHERE relowner = 'attacker'::regrole
	UNION ALL SELECT 'pg_type'::regclass, oid FROM pg_type WHERE typowner = 'attacker'::regrole)
SELECT pg_describe_object(d.classid, d.objid, d.objsubid), pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
FROM pg_depend d JOIN theirs ON theirs.classid = d.refclassid AND theirs.objid = d.refobjid
WHERE (d.classid, d.objid) NOT IN (SELECT * FROM theirs)
SQL

# All views and functions, and what the extension does in DDL, as a superuser with
# this search_path, which the statements here do not need.
sub uses
{
	my ($path) = @_;
	($ret, $out, $err) = $node->psql('trapped', <<"SQL");
SET search_path = pg_catalog;
SET client_min_messages = error;
DROP SCHEMA IF EXISTS data CASCADE;
CREATE SCHEMA data;
CREATE TYPE data.mood AS ENUM ('a', 'b');
CREATE TABLE data.t (id int PRIMARY KEY, n bigint, s text COLLATE "C", u uuid, m data.mood);
INSERT INTO data.t SELECT i, i % 7, 'string ' || i, md5(i::text)::uuid, 'a' FROM generate_series(1, 3000) i;
CREATE INDEX t_n ON data.t (n);
CREATE INDEX t_s ON data.t USING hybrid (s evil.text_hope_ops);
CREATE INDEX t_u ON data.t USING hybrid (u);
CREATE INDEX t_m ON data.t USING hybrid (m);
CREATE TABLE data.p (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE data.p_1 PARTITION OF data.p FOR VALUES FROM (1) TO (2000);
CREATE INDEX p_k ON data.p (k);
CREATE FUNCTION data.backwards(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp(\$2, \$1)';
CREATE OPERATOR CLASS data.backwards FOR TYPE int USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
	FUNCTION 1 data.backwards(int, int);
SET search_path = $path;
TABLE evil.hybrid_indexes;
TABLE evil.hybrid_advice;
TABLE evil.hybrid_memory;
TABLE evil.hybrid_merge_progress;
SELECT * FROM evil.hybrid_advise();
SELECT * FROM evil.hybrid_advise('data.t_pkey'::pg_catalog.regclass);
SELECT evil.hybrid_merge('data.t_s'::pg_catalog.regclass);
SELECT evil.hybrid_index_check('data.t_s'::pg_catalog.regclass, true);
SELECT evil.hybrid_index_stats('data.t_s'::pg_catalog.regclass);
SELECT evil.hybrid_dictionary_info('data.t_s'::pg_catalog.regclass);
SELECT evil.hybrid_estimate('data.t_n'::pg_catalog.regclass);
SELECT evil.hybrid_make_operator_classes();
SELECT evil.hybrid_convert('data.t_n'::pg_catalog.regclass);
SELECT evil.hybrid_revert('data.t_n'::pg_catalog.regclass);
CALL evil.hybrid_convert_concurrently('data.t_n'::pg_catalog.regclass);
CALL evil.hybrid_revert_concurrently('data.t_n'::pg_catalog.regclass);
CALL evil.hybrid_convert_table('data.p'::pg_catalog.regclass);
CALL evil.hybrid_revert_table('data.p'::pg_catalog.regclass);
CALL evil.hybrid_convert_schema('data'::pg_catalog.regnamespace);
CALL evil.hybrid_revert_schema('data'::pg_catalog.regnamespace);
SET hybridindex.replace_btree = on;
ALTER TABLE data.t ALTER n TYPE pg_catalog.numeric, ADD CONSTRAINT u UNIQUE (s);
INSERT INTO data.t VALUES (1, 1, 'string 1') ON CONFLICT DO NOTHING;
REINDEX TABLE data.t;
VACUUM data.t;
DROP OPERATOR FAMILY data.backwards USING hybrid;
SQL
	is($err, '', "no trap runs, search_path = $path");
	return;
}
uses('pg_catalog');
uses('evil');
uses('evil, pg_catalog');

# Commands that the extension prints do what they say, whatever functions of the
# same name are there.
$node->safe_psql('trapped', 'CREATE INDEX t_command ON data.t (id); CREATE INDEX t_backwards ON data.t (id data.backwards)');
my ($command) = $node->safe_psql('trapped', "SELECT command FROM evil.hybrid_advice WHERE index = 'data.t_command'::regclass");
is($command, "CALL evil.hybrid_convert_concurrently('data.t_command'::regclass)", 'a command');
$node->safe_psql('trapped', "SET search_path = evil; $command");
($ret, $out, $err) = $node->psql('trapped', "SELECT evil.hybrid_convert('data.t_backwards'::regclass)");
like($err, qr/HINT:  Make one with SELECT evil\.hybrid_make_operator_classes\('integer'::regtype\)\./, 'a hint');
is($node->safe_psql('trapped', "SET search_path = evil; $1"), '(data.backwards,integer,f)', 'the hint can be followed') if $err =~ /(SELECT .*)\./;

# Where a function with default arguments leaves it open which one is meant, there
# is no extension.
$node->safe_psql('postgres', 'CREATE DATABASE ambiguous TEMPLATE template0');
foreach my $function (qw(hybrid_complete_operator_families hybrid_memory_info))
{
	$node->safe_psql('ambiguous', "CREATE SCHEMA evil; CREATE FUNCTION evil.$function(int DEFAULT 1) RETURNS int LANGUAGE sql AS 'SELECT 1 / 0'");
	($ret, $out, $err) = $node->psql('ambiguous', 'CREATE EXTENSION hybridindex SCHEMA evil');
	like($err, qr/ERROR:  function $function\(\) is not unique/, "$function with a default");
	$node->safe_psql('ambiguous', 'DROP SCHEMA evil CASCADE');
}
no_crash($node, 'traps');

done_testing();
