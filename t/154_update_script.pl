# A database whose extension was updated from 1.0 has what one has that began with the
# present version, and 1.0's objects go on working under the new library before that.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('update');
my ($version) = slurp_file(test_root() . '/hybridindex.control') =~ /^default_version = '(.*)'$/m;
my $hot = $node->pg_version >= 16;

sub sql
{
	my ($database, $query) = @_;
	return $node->safe_psql($database, $query);
}

# All objects of the extension, with what they are made of.
sub objects
{
	my ($database) = @_;
	return sql($database, <<'EOF');
SET search_path = pg_catalog;
SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend
	WHERE refclassid = 'pg_extension'::regclass AND deptype IN ('e', 'x') ORDER BY 1;
SELECT pg_get_functiondef(p.oid), obj_description(p.oid), p.proacl FROM pg_proc p WHERE proname ~ '^hybrid' AND prokind <> 'a'
	AND pronamespace <> 'pg_catalog'::regnamespace ORDER BY 1;
SELECT relname, pg_get_viewdef(oid), relacl, obj_description(oid) FROM pg_class WHERE relkind = 'v' AND relname ~ '^hybrid_' ORDER BY 1;
SELECT amname, amhandler::regproc, obj_description(oid) FROM pg_am WHERE amname ~ '^hybrid' ORDER BY 1;
SELECT amname, opcname, opcintype::regtype, opcdefault, opckeytype, opfname FROM pg_opclass JOIN pg_opfamily f ON f.oid = opcfamily
	JOIN pg_am a ON a.oid = opcmethod WHERE amname ~ '^hybrid' ORDER BY 1, 2, 3;
SELECT amname, opfname, amoplefttype::regtype, amoprighttype::regtype, amopstrategy, amopopr::regoperator FROM pg_amop
	JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = opfmethod WHERE amname ~ '^hybrid' ORDER BY 1, 2, 3, 4, 5;
SELECT amname, opfname, amproclefttype::regtype, amprocrighttype::regtype, amprocnum, amproc::regprocedure FROM pg_amproc
	JOIN pg_opfamily f ON f.oid = amprocfamily JOIN pg_am a ON a.oid = opfmethod WHERE amname ~ '^hybrid' ORDER BY 1, 2, 3, 4, 5;
EOF
}

# ---- 1.0's objects under the new library ----

sql('postgres', 'DROP EXTENSION hybridindex CASCADE');
sql('postgres', 'CREATE DATABASE updated TEMPLATE template0');
sql('updated', q(CREATE EXTENSION hybridindex VERSION '1.0'));
sql('updated', <<EOF);
CREATE TABLE t (k int, s text COLLATE "C");
INSERT INTO t SELECT i, 'name ' || i FROM generate_series(1, 2000) i;
CREATE INDEX t_k ON t USING hybrid (k);
CREATE INDEX t_s ON t USING hybrid (s text_hope_ops);
CREATE VIEW my_indexes AS SELECT indexname, entries FROM hybrid_indexes, LATERAL (SELECT static_entries + dynamic_entries AS entries) e;
EOF
is(sql('updated', q(SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM hybrid_indexes)), 't_k t_s', 'the view of 1.0 works');
is(sql('updated', q(SELECT hybrid_merge('t_k') >= 0, count(*) FROM hybrid_make_operator_classes())), 't|0', 'functions of 1.0 work');
is(sql('updated', q(SELECT count(*) FROM pg_am WHERE amname = 'hybrid_hot')), '0', 'and make no access method of later');
# a user's class, with its copy
sql('updated', <<'EOF');
CREATE FUNCTION down(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS down_ops FOR TYPE int USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 down(int, int);
SELECT hybrid_make_operator_classes();
EOF

# ---- the update ----

sql('updated', 'ALTER EXTENSION hybridindex UPDATE');
is(sql('updated', q(SELECT extversion FROM pg_extension WHERE extname = 'hybridindex')), $version, 'the extension is updated');
sql('postgres', 'CREATE DATABASE new TEMPLATE template0');
sql('new', 'CREATE EXTENSION hybridindex');
is(sql('updated', q(SELECT string_agg(amname, ' ') FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE opcname = 'down_ops')), 'btree hybrid', 'not with classes of users');
sql('updated', 'SELECT hybrid_make_operator_classes(); CREATE INDEX t_down ON t USING hybrid' . ($hot ? '_hot' : '') . ' (k down_ops)');
is(sql('updated', q(SELECT count(*) FROM pg_depend d JOIN pg_opclass c ON c.oid = objid AND classid = 'pg_opclass'::regclass WHERE opcname = 'down_ops' AND deptype = 'e')), '0', 'which come later, and are no part of the extension');
sql('updated', 'DROP FUNCTION down CASCADE');
is(sql('updated', q(SELECT count(*) FROM pg_opclass WHERE opcname = 'down_ops') . ' UNION ALL ' . q(SELECT count(*) FROM pg_extension WHERE extname = 'hybridindex')), "0\n1", 'they go with their functions, and it stays');
sql('updated', $_) foreach map { "DROP OPERATOR FAMILY down_ops USING $_" } 'btree', 'hybrid', $hot ? 'hybrid_hot' : ();
is(objects('updated'), objects('new'), 'it has what a new one has');
is(sql('updated', 'SELECT count(*) FROM my_indexes'), '2', q(a user's view of the extension's stays));
is(sql('updated', q(SELECT hybrid_index_check('t_k', true), hybrid_index_check('t_s', true))), '|', 'indexes are as they were');

SKIP:
{
	skip 'servers before 16 have no hybrid_hot', 1 if !$hot;
	sql('updated', <<EOF);
CREATE INDEX t_hot ON t USING hybrid_hot (k);
UPDATE t SET k = k + 1 WHERE k < 100;
EOF
	is(sql('updated', q(SET enable_seqscan = off; SELECT count(*) FROM t WHERE k < 50)), '48', 'what is new works');
	is(sql('updated', q(SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM hybrid_indexes)), 't_hot t_k t_s', 'views have its indexes');

}

SKIP:
{
	skip 'scripts are found only in the directory of the server', 1 if $node->pg_version < 18;

	# as pg_upgrade from 15 leaves it
	my $place = PostgreSQL::Test::Utils::tempdir();
	my $share = `pg_config --sharedir` =~ s/\n//r;
	my $script = slurp_file("$share/extension/hybridindex--$version.sql");
	$script =~ s/ 160000 THEN/ 990000 THEN/ or die 'no condition';
	mkdir("$place/extension") or die "mkdir: $!";
	append_to_file("$place/extension/hybridindex.control", slurp_file("$share/extension/hybridindex.control"));
	append_to_file("$place/extension/hybridindex--$version.sql", $script);
	$node->append_conf('postgresql.conf', "extension_control_path = '$place'");
	$node->reload;
	sql('postgres', 'CREATE DATABASE upgraded TEMPLATE template0');
	sql('upgraded', 'CREATE EXTENSION hybridindex');
	is(sql('upgraded', q(SELECT count(*) FROM pg_am WHERE amname = 'hybrid_hot')), '0', 'a database that comes from 15 lacks hybrid_hot');
	sql('upgraded', 'SELECT hybrid_make_operator_classes()');
	is(sql('upgraded', q(SELECT count(*) > 40 FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'hybrid_hot')), 't', 'what is missing is made');
	is(sql('upgraded', q(SELECT count(*) FROM pg_am a JOIN pg_depend d ON d.objid = a.oid WHERE amname = 'hybrid_hot' AND deptype = 'e')),
		'1', 'and belongs to the extension');
	is(sql('upgraded', q(SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'hybrid_hot' AND NOT EXISTS
		(SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e') OR amname = 'hybrid_hot' AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = opcfamily AND deptype = 'e'))),
		'0', '... with its operator classes');
	is(objects('upgraded') =~ s/\$place/SHARE/gr, objects('new'), '... as in a database of this server');
	sql('upgraded', 'CREATE TABLE t AS SELECT generate_series(1, 100) AS k; CREATE INDEX t_hot ON t USING hybrid_hot (k)');
	is(sql('upgraded', q(SET enable_seqscan = off; SELECT count(*) FROM t WHERE k < 50)), '49', 'and works');
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
