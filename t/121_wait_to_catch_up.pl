
# A reader that waited for another to enter what is new in the log into the trees
# reads them together with others, not alone.  Needs a server with injection points
# (./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

$PostgreSQL::Test::Utils::timeout_default = 60;
my $node = new_node('catch_up', <<CONF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
CONF

if (!has_points($node))
{
	$node->stop;
	plan skip_all => 'this server has no injection points';
}

# A comparison with 13 or 14 waits while advisory lock 13 or 14 is taken.
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION injection_points;
CREATE FUNCTION waiting_cmp(a int4, b int4) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	x	int4;
BEGIN
	FOREACH x IN ARRAY ARRAY[a, b] LOOP
		WHILE x IN (13, 14) AND NOT pg_try_advisory_xact_lock_shared(x) LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
	END LOOP;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS waiting_ops FOR TYPE int4 USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 waiting_cmp(int4, int4);
CREATE TABLE t (k int4);
CREATE INDEX t_k ON t USING hybrid (k waiting_ops);
INSERT INTO t SELECT i FROM generate_series(1000, 6000) i;
SQL
sub look_up { return "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT k FROM t WHERE k = $_[0]"; }
is($node->safe_psql('postgres', look_up(2000)), '2000', 'there is a tree');
is($node->safe_psql('postgres', "SELECT tree_shared FROM hybrid_index_stats('t_k')"), 't', 'in shared memory');
$node->safe_psql('postgres', 'INSERT INTO t VALUES (13), (15), (20)');

my $holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(13)');
$holder->query_safe('SELECT pg_advisory_lock(14)');

sub wait_for { return $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE $_[0] AND pid <> pg_backend_pid()"); }

# one has seen that there is something to enter, another enters it
my $waits = start_psql($node, "SELECT injection_points_set_local(); SELECT injection_points_attach('hybrid-catch-up', 'wait');", look_up(14));
ok(held_at($node, 'catch-up', $waits), 'one is to enter what is new');
my $enters = start_psql($node, look_up(20));
ok(wait_for("wait_event = 'PgSleep' AND query LIKE '%k = 20'"), 'another enters it');
$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-catch-up')");
ok(wait_for("wait_event_type = 'LWLock' AND query LIKE '%k = 14'"), 'the first waits for it');

# the first has nothing left to enter, and is held while it reads
$holder->query_safe('SELECT pg_advisory_unlock(13)');
finish_psql($enters);
ok(wait_for("wait_event = 'PgSleep' AND query LIKE '%k = 14'"), 'the first reads');
$node->psql('postgres', look_up(20), stdout => \my $out, timeout => 30, timed_out => \my $late);
is($out, '20', 'together with others');
$holder->query_safe('SELECT pg_advisory_unlock(14)');
finish_psql($waits);
$holder->quit;
no_crash($node, 'no crash');
$node->stop;
done_testing();
