
# One role's indexes do not keep another role's from being merged, however many of
# them wait for a worker, and whatever holds their merges up.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

$PostgreSQL::Test::Utils::timeout_default = 60;
my $node = new_node('fair', <<CONF);
hybridindex.max_merge_workers = 1
hybridindex.merge_floor = 90
hybridindex.quiet_time = 200
max_locks_per_transaction = 512
CONF

$node->safe_psql('postgres', <<'SQL');
CREATE ROLE greedy LOGIN;
CREATE ROLE modest LOGIN;
CREATE ROLE early;
CREATE SCHEMA greedy AUTHORIZATION greedy;
CREATE SEQUENCE comparisons;
GRANT USAGE ON SEQUENCE comparisons TO early, greedy;
-- A merge of 90 entries takes some 600 comparisons, less than a turn of a second.
-- The worker's first comparison waits for advisory lock 1, those after 5,000 for
-- lock 2.
CREATE FUNCTION slow_cmp(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	n int := CASE WHEN pg_catalog.current_setting('fair.client', true) IS NULL THEN pg_catalog.nextval('public.comparisons') END;
BEGIN
	LOOP
		PERFORM pg_catalog.pg_sleep(0.0005);
		EXIT WHEN pg_catalog.pg_try_advisory_xact_lock_shared(CASE WHEN n = 1 THEN 1 WHEN n > 5000 THEN 2 END) IS NOT FALSE;
	END LOOP;
	RETURN pg_catalog.bttextcmp(a, b);
END $$;
CALL hyb_operator_class('slow', 'text');
CREATE PROCEDURE tables(schema text, n int, class text) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE format('CREATE TABLE %I.t%s (k text COLLATE "C")', schema, i);
		EXECUTE format('CREATE INDEX t%1$s_k ON %2$I.t%1$s USING hybrid (k %3$s)', i, schema, class);
	END LOOP;
END $$;
CREATE PROCEDURE fill(schema text, n int) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('fair.client', 'on', false);
	FOR i IN 1 .. n LOOP
		EXECUTE format('INSERT INTO %I.t%s SELECT repeat(md5(i::text), 3) FROM generate_series(1, 90) i', schema, i);
	END LOOP;
END $$;
SQL
$node->safe_psql('postgres', 'CREATE SCHEMA modest AUTHORIZATION modest; ALTER ROLE modest SET hybridindex.merge_floor = 1000000');

# What modest inserts is not worth a merge before the index has been quiet for
# some time.  True if a worker comes to it then; what is to happen before is done.
sub modest_is_merged
{
	my ($table, @before) = @_;

	$node->safe_psql('postgres', <<SQL, extra_params => [ '-U', 'modest' ]);
CREATE TABLE modest.$table (k int8);
INSERT INTO modest.$table SELECT hashint8extended(i, 0) FROM generate_series(1, 45000) i;
CREATE INDEX ${table}_k ON modest.$table USING hybrid (k);
INSERT INTO modest.$table SELECT hashint8extended(i, 1) FROM generate_series(1, 45000) i;
SQL
	$_->() foreach @before;
	return $node->poll_query_until('postgres', "SELECT merges > 0 FROM hybrid_index_stats('modest.${table}_k')");
}

ok(modest_is_merged('alone'), 'alone');

# More indexes than one role has places on the list, all of them locked.
$node->safe_psql('postgres', "SET ROLE greedy; CALL tables('greedy', 240, 'text_ops')");
my $locker = start_psql($node, <<'SQL');
SET ROLE greedy;
BEGIN;
DO $$ BEGIN FOR i IN 1 .. 240 LOOP EXECUTE format('LOCK TABLE greedy.t%s', i); END LOOP; END $$;
CALL fill('greedy', 240);
SELECT pg_sleep(600);
SQL
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep.600.'") or die 'nothing is locked';
ok(modest_is_merged('locked'), 'beside many indexes that are locked');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep.600.'");
finish_psql($locker);

# Indexes that take long.  The worker is held at early's index until modest's is
# quiet.  Then greedy's turn begins, whose indexes have waited longer.  Each of them
# takes less than a turn, and only a few are merged before modest's turn comes.
my @gates = map { start_psql($node, "SELECT pg_advisory_lock($_); SELECT pg_sleep(600);") } 1, 2;
$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND granted") or die 'no gates';

sub open_gate
{
	my ($gate) = @_;

	$node->safe_psql('postgres', "SELECT pg_sleep(0.5), pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = $gate AND mode = 'ExclusiveLock'");
	finish_psql($gates[ $gate - 1 ]);
	return;
}

$node->safe_psql('postgres', "DROP SCHEMA greedy CASCADE; CREATE SCHEMA greedy AUTHORIZATION greedy; SET ROLE greedy; CALL tables('greedy', 30, 'slow_ops')");
$node->safe_psql('postgres', "CREATE SCHEMA early AUTHORIZATION early; SET ROLE early; CALL tables('early', 1, 'slow_ops'); CALL fill('early', 1)");
$node->poll_query_until('postgres', 'SELECT is_called FROM comparisons') or die 'no merge is held';
$node->safe_psql('postgres', "SET ROLE greedy; CALL fill('greedy', 30)");
ok(modest_is_merged('slow', sub { open_gate(1) }), 'beside many indexes that take long, and not after them');
open_gate(2);
$node->safe_psql('postgres', 'DROP SCHEMA greedy, early CASCADE');
no_crash($node, 'no process crashed');
done_testing();
