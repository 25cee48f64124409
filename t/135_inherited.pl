
# A session whose first DDL is that of a function, in which a child's constraint
# follows its parent's, and one whose first DDL is a statement by itself.  Conversions
# of a parent's index wait for no child of another role.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('inherited', "max_prepared_transactions = 1\n");
$node->safe_psql('postgres', <<'EOF');
CREATE TABLE h (id int PRIMARY KEY WITH (access_method = hybrid), n int CONSTRAINT h_n UNIQUE);
CREATE FUNCTION run(statement text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE statement; END';
CREATE VIEW kinds AS SELECT c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'i';
EOF

# What a session's first DDL makes, in a database with the setting or without.
sub first_ddl
{
	my ($statement, $on, $expected, $what) = @_;
	$node->safe_psql('postgres', "ALTER DATABASE postgres SET hybridindex.replace_btree = $on");
	$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP TABLE IF EXISTS c');
	$node->safe_psql('postgres', 'CREATE TABLE c () INHERITS (h)') if $statement =~ /ALTER/;
	$node->safe_psql('postgres', "SET client_min_messages = warning; $statement");
	is($node->safe_psql('postgres', "SELECT string_agg(relname || ' ' || amname, ', ' ORDER BY relname) FROM kinds WHERE relname ~ '^c'"),
		$expected, "$what, replace_btree $on");
	return;
}

my $keys = 'CONSTRAINT c_id PRIMARY KEY (id), CONSTRAINT c_n UNIQUE (n), CONSTRAINT c_x UNIQUE (n, id)';
my $alter = 'ALTER TABLE c ADD ' . join(', ADD ', split /, (?=CONSTRAINT)/, $keys);
my $create = "CREATE TABLE c ($keys) INHERITS (h)";
foreach my $on (qw(off on))
{
	my $else = $on eq 'on' ? 'hybrid' : 'btree';
	first_ddl("SELECT run('$alter')", $on, "c_id hybrid, c_n btree, c_x $else", 'ALTER TABLE in a function');
	first_ddl("SELECT run('$create')", $on, "c_id hybrid, c_n btree, c_x $else", 'CREATE TABLE in a function');
	first_ddl($alter, $on, "c_id $else, c_n $else, c_x $else", 'ALTER TABLE by itself');
	first_ddl($create, $on, "c_id $else, c_n $else, c_x $else", 'CREATE TABLE by itself');
}

# Parts of CREATE SCHEMA.
foreach my $how ('in a function', 'by itself')
{
	my $create = "CREATE SCHEMA parts CREATE TABLE k (CONSTRAINT k_id PRIMARY KEY (id)) INHERITS (public.h)";
	$node->safe_psql('postgres', 'ALTER DATABASE postgres SET hybridindex.replace_btree = off');
	$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP SCHEMA IF EXISTS parts CASCADE');
	$node->safe_psql('postgres', $how eq 'by itself' ? $create : "SELECT run('$create')");
	is($node->safe_psql('postgres', "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 'k_id'"),
		$how eq 'by itself' ? 'btree' : 'hybrid', "CREATE SCHEMA $how");
}
$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP SCHEMA parts CASCADE');

# Another role holds its child.
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET hybridindex.replace_btree = off');
$node->safe_psql('postgres', <<'EOF');
CREATE ROLE other;
CREATE TABLE theirs (CONSTRAINT theirs_id PRIMARY KEY (id)) INHERITS (h);
ALTER TABLE theirs OWNER TO other;
CREATE TABLE ours (CONSTRAINT ours_id PRIMARY KEY (id) WITH (access_method = hybrid)) INHERITS (h);
INSERT INTO ours SELECT i, i FROM generate_series(1, 1000) i;
EOF
$node->safe_psql('postgres', "BEGIN; LOCK TABLE theirs; PREPARE TRANSACTION 'holder'");
foreach my $call ("SELECT hybrid_revert('h_pkey')", "CALL hybrid_convert_concurrently('h_pkey')", "CALL hybrid_revert_table('h')")
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=hybridindex -c lock_timeout=30s';
	my $method = $call =~ /convert/ ? 'hybrid' : 'btree';
	$node->safe_psql('postgres', $call);
	is($node->safe_psql('postgres', "SELECT string_agg(amname, ' ') FROM kinds WHERE relname IN ('h_pkey', 'ours_id')"),
		"$method $method", "$call while another role's child is locked");
}
$node->safe_psql('postgres', "ROLLBACK PREPARED 'holder'");
is($node->safe_psql('postgres', "SELECT amname FROM kinds WHERE relname = 'theirs_id'"), 'btree', 'that child stays as it is');

# Another session has a temporary child.
$node->safe_psql('postgres', 'CREATE TABLE p (a int); INSERT INTO p SELECT generate_series(1, 1000); CREATE INDEX p_a ON p (a)');
my $holder = start_psql($node, <<'EOF');
CREATE TEMP TABLE t () INHERITS (p);
INSERT INTO t SELECT generate_series(1, 1000);
CREATE INDEX t_a ON t (a);
SELECT pg_sleep(600);
EOF
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
  or die "no temporary child: $holder->{err}";
foreach my $call ("SELECT hybrid_convert('p_a')", "SELECT hybrid_revert('p_a')")
{
	my $method = $call =~ /convert/ ? 'hybrid' : 'btree';
	$node->safe_psql('postgres', "SET client_min_messages = warning; $call");
	is($node->safe_psql('postgres', "SELECT string_agg(relname || ' ' || amname, ', ' ORDER BY relname) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname IN ('p_a', 't_a')"),
		"p_a $method, t_a btree", "$call beside another session's temporary child");
}
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
finish_psql($holder);

done_testing();
