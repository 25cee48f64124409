
# Which role may call which function, procedure and view of the extension.  The
# catalogs list them, and a member that is not in the table below fails the test.  A
# refused call is refused at once, though another session has locked table and
# indexes: waiting would end with lock_timeout's SQLSTATE.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('privileges');
my $has_maintain = $node->safe_psql('postgres', "SELECT current_setting('server_version_num')::int >= 170000") eq 't';

# nothing has no right but USAGE on the schema; each other role has one more, and
# schemer owns the schema, but no table in it.  The table has row security: reader
# sees all rows, limited what policies show.
my @roles = qw(nothing reader limited monitor stats maintainer owner schemer);
my @maintain = $has_maintain ? qw(maintainer owner) : qw(owner);
my @statistics = (qw(reader monitor), @maintain);

# The answers to objects that a function is not for.
my %hybrid = (object => 'm_h', other => { 'm' => '42809', 'm_b' => '42809', 'p_h' => '42809', '0' => '42P01', '4000000000' => '42P01' });
my %btree = (object => 'm_b', other => { 'm' => '42809', 'm_h' => '42809', 'p_h' => '42809', '0' => '42P01', '4000000000' => '42P01' });
my %convert = (object => 'm_b', rights => ['owner'], other => { 'm' => '42809', '0' => '42704', '4000000000' => '42704' });
my %revert = (%convert, object => 'm_h');
# there is no such access method before 16
my %hot = $node->pg_version >= 16 ? %convert : ();
my %table = (object => 'm', rights => ['owner'], other => { 'm_h' => '42809', 'v' => '42809', '0' => '42P01', '4000000000' => '42P01' });
my %schema = (object => 'mat', rights => ['schemer'], locked => '00000', other => { 'pg_catalog' => '0A000', 'pg_toast' => '0A000', '0' => '3F000', '4000000000' => '3F000' });

# How each member is called; the roles that may, which are all if none are listed;
# how their calls end where all is locked: one that skips others' indexes succeeds.
my %members = (
	'hybrid_merge(regclass)' => { %hybrid, call => 'SELECT hybrid_merge(%s)', rights => \@maintain },
	'hybrid_index_check(regclass,boolean)' => { %hybrid, call => 'SELECT hybrid_index_check(%s, true)', rights => \@maintain },
	'hybrid_index_stats(regclass,boolean)' => { %hybrid, call => 'SELECT hybrid_index_stats(%s)', rights => \@statistics,
		nowait => 'SELECT total_pages FROM hybrid_index_stats(%s, true)' },
	'hybrid_dictionary_info(regclass)' => { %hybrid, call => 'SELECT hybrid_dictionary_info(%s)', rights => \@statistics },
	'hybrid_estimate(regclass,boolean)' => { %btree, call => 'SELECT hybrid_estimate(%s)', rights => \@statistics,
		nowait => 'SELECT hybrid_bytes FROM hybrid_estimate(%s, true)' },
	'hybrid_convert(regclass,text)' => { %convert, call => 'SELECT hybrid_convert(%s)' },
	'hybrid_revert(regclass)' => { %revert, call => 'SELECT hybrid_revert(%s)' },
	'hybrid_convert_concurrently(regclass,text)' => { %convert, call => 'CALL hybrid_convert_concurrently(%s)' },
	'hybrid_revert_concurrently(regclass)' => { %revert, call => 'CALL hybrid_revert_concurrently(%s)' },
	'hybrid_convert_hot(regclass)' => { %hot, call => 'SELECT hybrid_convert_hot(%s)' },
	'hybrid_convert_hot_concurrently(regclass)' => { %hot, call => 'CALL hybrid_convert_hot_concurrently(%s)' },
	'hybrid_convert_table(regclass)' => { %table, call => 'CALL hybrid_convert_table(%s)' },
	'hybrid_revert_table(regclass)' => { %table, call => 'CALL hybrid_revert_table(%s)' },
	'hybrid_convert_schema(regnamespace)' => { %schema, call => 'CALL hybrid_convert_schema(%s)' },
	'hybrid_revert_schema(regnamespace)' => { %schema, call => 'CALL hybrid_revert_schema(%s)' },

	# about the server as a whole, or about what the caller may see
	'hybrid_version()' => { call => 'SELECT hybrid_version()', locked => '00000' },
	'hybrid_merge_progress_list()' => { call => 'SELECT hybrid_merge_progress_list()' },
	'hybrid_memory_info()' => { call => 'SELECT hybrid_memory_info()', rights => ['stats'], locked => '00000' },
	'hybrid_make_operator_classes(regtype)' => { call => "SELECT hybrid_make_operator_classes('int4')" },
	'hybrid_advise(regclass)' => { call => "SELECT hybrid_advise('mat.m_b')", nowait => "SELECT count(*) FROM hybrid_advise('mat.m_b')" },
	'view hybrid_merge_progress' => { call => 'SELECT * FROM hybrid_merge_progress' },
	'view hybrid_memory' => { call => 'SELECT * FROM hybrid_memory', rights => ['stats'], locked => '00000' },
	'view hybrid_indexes' => { call => 'SELECT * FROM hybrid_indexes', nowait => 'SELECT count(*) FROM hybrid_indexes' },
	'view hybrid_advice' => { call => 'SELECT * FROM hybrid_advice', nowait => 'SELECT count(*) FROM hybrid_advice' });

$node->safe_psql('postgres', <<SQL);
CREATE ROLE nothing LOGIN;
CREATE ROLE reader LOGIN BYPASSRLS;
CREATE ROLE limited LOGIN;
CREATE ROLE monitor LOGIN IN ROLE pg_stat_scan_tables;
CREATE ROLE stats LOGIN IN ROLE pg_read_all_stats;
CREATE ROLE maintainer LOGIN;
CREATE ROLE owner LOGIN;
CREATE ROLE schemer LOGIN;
CREATE SCHEMA mat AUTHORIZATION schemer;
GRANT USAGE ON SCHEMA mat TO PUBLIC;
CREATE TABLE mat.m (a int);
INSERT INTO mat.m SELECT generate_series(1, 1000);
CREATE INDEX m_h ON mat.m USING hybrid (a);
CREATE INDEX m_b ON mat.m USING btree (a);
CREATE VIEW mat.v AS SELECT 1;
CREATE TABLE mat.p (a int) PARTITION BY RANGE (a);
CREATE INDEX p_h ON mat.p USING hybrid (a);
GRANT CREATE ON SCHEMA mat TO owner;
ALTER TABLE mat.m OWNER TO owner;
ALTER TABLE mat.p OWNER TO owner;
ALTER TABLE mat.m ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON mat.m TO reader, limited;
SQL
$node->safe_psql('postgres', 'GRANT MAINTAIN ON mat.m TO maintainer') if $has_maintain;

# what takes or returns "internal", and event triggers, cannot be called from SQL
is( $node->safe_psql('postgres', <<SQL), join("\n", sort keys %members), 'each function and view of the extension is known here');
SELECT name FROM (
	SELECT p.oid::regprocedure::text, 'pg_proc'::regclass, p.oid FROM pg_proc p
	WHERE 'internal'::regtype <> ALL (p.proargtypes) AND p.prorettype <> 'event_trigger'::regtype
	UNION ALL
	SELECT 'view ' || c.relname, 'pg_class', c.oid FROM pg_class c) o(name, class, oid)
JOIN pg_depend d ON d.classid = o.class AND d.objid = o.oid AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'hybridindex'
ORDER BY name COLLATE "C"
SQL

# A member's call, or its nowait form, with an object.
sub call_of
{
	my ($member, $form, $object) = @_;
	my $type = $member->{call} =~ /_schema/ ? 'regnamespace' : 'regclass';

	return $member->{$form} unless $member->{object};
	$object = "mat.$object" if $type eq 'regclass' && $object !~ /^\d/;
	return sprintf($member->{$form}, "'$object'::$type");
}

sub may
{
	my ($member, $role) = @_;
	return !$member->{rights} || grep { $_ eq $role } @{ $member->{rights} };
}

# The calls of %$expected, as a role, that do not end with the SQLSTATE (after
# the rows, if it has them) that they have there.
sub wrong
{
	my ($role, $expected) = @_;
	my $script = "SET lock_timeout = '100ms';\nSET client_min_messages = error;\n";
	my @calls = sort keys %$expected;
	my @wrong;

	$script .= "\\echo \@\@$_\n$calls[$_];\n\\echo :SQLSTATE\n" foreach 0 .. $#calls;
	my ($ret, $out) = $node->psql('postgres', $script, extra_params => [ '-U', $role ], on_error_stop => 0);
	my %outcome = "$out\n" =~ /^@@(\d+)\n(.*?)\n(?=@@|\z)/msg;
	foreach (0 .. $#calls)
	{
		my $got = $outcome{$_} // 'no answer';
		push @wrong, "$role: $calls[$_]: $got" if $got !~ /^(?:.*\n)?$expected->{$calls[$_]}\z/s;
	}
	return @wrong;
}

# nothing is locked: what would change something is called by others only
my @wrong;
foreach my $role (@roles)
{
	my %expected;

	foreach my $member (values %members)
	{
		my $may = may($member, $role);

		$expected{ call_of($member, 'call', $member->{object}) } = $may ? '00000' : '42501'
		  unless $may && $member->{call} =~ /convert|revert/;
		$expected{ call_of($member, 'nowait', $member->{object}) } = $may ? '\d+\n00000' : '\n?00000' if $member->{nowait};
	}
	push @wrong, wrong($role, \%expected);
}
is(join("\n", @wrong), '', 'each role can call what it has the right to call');

# all is locked by another session
my $locker = start_psql($node, "BEGIN; LOCK TABLE mat.m, mat.p IN ACCESS EXCLUSIVE MODE; REINDEX INDEX mat.m_h; REINDEX INDEX mat.m_b; SELECT pg_sleep(600);\n");
$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE granted AND mode = 'AccessExclusiveLock' AND c.relname IN ('m_h', 'm_b')")
  or die 'nothing is locked';
@wrong = ();
foreach my $role (@roles)
{
	my %expected;

	foreach my $member (values %members)
	{
		$expected{ call_of($member, 'call', $member->{object}) } = may($member, $role) ? $member->{locked} // '55P03' : '42501'
		  if $member->{rights};
		$expected{ call_of($member, 'nowait', $member->{object}) } = '\n?00000' if $member->{nowait};
	}
	push @wrong, wrong($role, \%expected);
}
is(join("\n", @wrong), '', 'a refusal waits for no lock, nor does a nowait form');

# what is not there, or is something else, is an error of its own, at once
my %expected;
foreach my $member (grep { $_->{other} } values %members)
{
	$expected{ call_of($member, 'call', $_) } = $member->{other}{$_} foreach keys %{ $member->{other} };
}
is(join("\n", wrong($node->safe_psql('postgres', 'SELECT current_user'), \%expected)), '', 'objects of other kinds');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()");
finish_psql($locker);

# A merge that runs, held by a comparison function that waits for a lock: all see
# that there is one, and how far it is those that the server lets see it.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION slow_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF pg_catalog.current_setting('test.slow', true) = 'on' THEN
		PERFORM pg_catalog.pg_advisory_xact_lock_shared(64);
	END IF;
	RETURN CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END;
END $$;
CALL hyb_operator_class('slow');
CREATE TABLE mat.s (a int);
CREATE INDEX s_h ON mat.s USING hybrid (a slow_ops);
ALTER TABLE mat.s OWNER TO owner;
GRANT SELECT ON mat.s TO reader;
INSERT INTO mat.s SELECT generate_series(1, 100);
SELECT hybrid_merge('mat.s_h');
INSERT INTO mat.s SELECT generate_series(1, 100);
SQL
# where the index has the same OID, and the same owner
$node->safe_psql('postgres', 'CREATE DATABASE other TEMPLATE postgres');
$locker = start_psql($node, "SELECT pg_advisory_lock(64); SELECT pg_sleep(600);\n");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory'") or die 'nothing is locked';
my $merger = start_psql($node, "SET test.slow = on; SELECT hybrid_merge('mat.s_h');\n");
my $progress = 'SELECT count(datname), count(pid), count(relid), count(entries_total), count(steps), count(started) FROM hybrid_merge_progress';
$node->poll_query_until('postgres', $progress, '1|1|1|1|1|1') or die 'no merge is held';
foreach my $role (@roles)
{
	is($node->safe_psql('postgres', $progress, extra_params => [ '-U', $role ]),
		$role =~ /owner|stats/ ? '1|1|1|1|1|1' : '1|1|0|0|0|0', "what $role sees of a merge");
}
is($node->safe_psql('other', "SELECT 'mat.s_h'::regclass::oid"), $node->safe_psql('postgres', "SELECT 'mat.s_h'::regclass::oid"), 'another database has an index of the same OID');
is($node->safe_psql('other', $progress, extra_params => [ '-U', $_ ]), $_ eq 'stats' ? '1|1|1|1|1|1' : '1|1|0|0|0|0', "what $_ sees from another database")
  foreach qw(owner stats);
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()");
finish_psql($locker);
finish_psql($merger);
no_crash($node, 'no process crashed');

done_testing();
