
# One role's requests for workers do not keep another role's from the list, whatever
# way they come.  Those that find no place there, or lose it, are served later.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

$PostgreSQL::Test::Utils::timeout_default = 60;
my $node = new_node('displaced', <<CONF);
hybridindex.max_merge_workers = 1
hybridindex.merge_floor = 90
hybridindex.quiet_time = 200
max_locks_per_transaction = 1024
CONF

# The list has 256 places.  Merges fail in sessions that say so, not in workers.
my $indexes = 320;
$node->safe_psql('postgres', <<SQL);
CREATE ROLE greedy LOGIN;
CREATE ROLE modest LOGIN;
CREATE SCHEMA greedy AUTHORIZATION greedy;
CREATE SCHEMA modest AUTHORIZATION modest;
CREATE FUNCTION failing_cmp(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \$\$
BEGIN
	IF pg_catalog.current_setting('displaced.fail', true) = 'on' THEN
		RAISE EXCEPTION 'this comparison fails';
	END IF;
	RETURN pg_catalog.bttextcmp(a, b);
END \$\$;
CALL hyb_operator_class('failing', 'text');
SET ROLE greedy;
DO \$\$ BEGIN FOR i IN 1 .. $indexes LOOP
	EXECUTE format('CREATE TABLE greedy.t%1\$s (k text COLLATE "C"); CREATE INDEX t%1\$s_k ON greedy.t%1\$s USING hybrid (k failing_ops)', i);
END LOOP; END \$\$;
SQL

# The session that has locked the greedy role's tables.
my $locker;

sub wait_until_locked
{
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'") or die "nothing is locked: $locker->{err}";
	return;
}

sub release_locks
{
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
	finish_psql($locker);
	return;
}

# What modest inserts is worth a merge only when the index has been quiet for some
# time, which is a worker's work.
sub fill_modest
{
	my ($table) = @_;
	$node->safe_psql('postgres', <<SQL, extra_params => [ '-U', 'modest' ]);
SET hybridindex.merge_floor = 1000000;
CREATE TABLE modest.$table (k int8);
INSERT INTO modest.$table SELECT hashint8extended(i, 0) FROM generate_series(1, 45000) i;
CREATE INDEX ${table}_k ON modest.$table USING hybrid (k);
INSERT INTO modest.$table SELECT hashint8extended(i, 1) FROM generate_series(1, 45000) i;
SQL
	return;
}

# All tables are locked.  The first 260 indexes are left to a worker by hybrid_merge,
# which fails, the others by insertions.
$locker = start_psql($node, <<SQL);
SET ROLE greedy;
BEGIN;
DO \$\$ BEGIN FOR i IN 1 .. $indexes LOOP EXECUTE format('LOCK TABLE greedy.t%s', i); END LOOP; END \$\$;
DO \$\$ BEGIN FOR i IN 1 .. $indexes LOOP
	PERFORM set_config('hybridindex.merge_floor', CASE WHEN i <= 260 THEN '1000000' ELSE '90' END, true);
	EXECUTE format('INSERT INTO greedy.t%s SELECT repeat(md5(i::text), 3) FROM generate_series(1, 90) i', i);
	BEGIN
		PERFORM set_config('displaced.fail', 'on', true);
		PERFORM hybrid_merge(format('greedy.t%s_k', i)::regclass) WHERE i <= 260;
	EXCEPTION WHEN raise_exception THEN
		RAISE NOTICE 'failed';
	END;
	PERFORM set_config('displaced.fail', 'off', true);
END LOOP; END \$\$;
SELECT pg_sleep(600);
SQL
wait_until_locked();

fill_modest('t');
ok($node->poll_query_until('postgres', merged('modest.t_k')),
	"a modest role's index is merged while the list is full of a greedy role's");
release_locks();
my $fails = () = $locker->{err} =~ /NOTICE:  failed/g;
is($fails, 260, 'merges that failed were left to a worker');

# Some 64 of them are not on the list.
my $merged = "SELECT count(*) FILTER (WHERE merges > 0 AND NOT merge_running) FROM generate_series(1, $indexes) i, hybrid_index_stats(format('greedy.t%s_k', i)::regclass)";
ok($node->poll_query_until('postgres', $merged, $indexes), "all of the greedy role's are merged when they are free");

# 256 roles have a place each, so no role has more than another one gets.
$node->safe_psql('postgres', <<SQL);
DO \$\$ BEGIN FOR i IN 1 .. 256 LOOP
	EXECUTE format('CREATE ROLE o%1\$s; GRANT CREATE ON SCHEMA greedy TO o%1\$s; ALTER TABLE greedy.t%1\$s OWNER TO o%1\$s', i);
END LOOP; END \$\$;
SQL
$locker = start_psql($node, <<SQL);
BEGIN;
DO \$\$ BEGIN FOR i IN 1 .. 256 LOOP EXECUTE format('LOCK TABLE greedy.t%s', i); END LOOP; END \$\$;
DO \$\$ BEGIN FOR i IN 1 .. 256 LOOP
	EXECUTE format('INSERT INTO greedy.t%s SELECT repeat(md5(i::text), 3) FROM generate_series(91, 180) i', i);
END LOOP; END \$\$;
SELECT pg_sleep(600);
SQL
wait_until_locked();
fill_modest('u');
release_locks();
ok($node->poll_query_until('postgres', "SELECT merges > 0 FROM hybrid_index_stats('modest.u_k')"),
	'a role whose request has found no place is served later');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
