
# Inserts end as they do with btree, whether merges run or not.  No insert waits for
# a lock that lock_timeout ends.  No insert becomes the victim of a deadlock over
# such a lock.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('lock_timeout', <<CONF);
hybridindex.merge_floor = 1000
deadlock_timeout = 5ms
CONF

# ---- beside a worker ----

# One session, so nothing is waited for in the table.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t (k int8, s text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING hybrid (k);
CREATE INDEX t_s ON t USING hybrid (s);
CREATE UNIQUE INDEX t_n ON t USING hybrid (n);
SQL
foreach my $rows (20000, 500)
{
	my ($ret, $out, $err) = $node->psql('postgres', <<SQL);
SET lock_timeout = '10ms';
DO \$\$
DECLARE
	failed int := 0;
BEGIN
	FOR i IN 1 .. 600000 / $rows LOOP
		BEGIN
			INSERT INTO t SELECT hashint8extended(g, i), md5((g * i)::text), $rows + i * 100000 + g FROM generate_series(1, $rows) g;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			failed := failed + 1;
		END;
		COMMIT;
	END LOOP;
	RAISE NOTICE 'failed: %', failed;
END \$\$;
SQL
	like($err, qr/failed: 0$/, "no statement of $rows rows failed beside merges");
}
cmp_ok($node->safe_psql('postgres', "SELECT merges FROM hybrid_index_stats('t_k')"), '>', 1, 'there were merges');
same_answers($node, 'answers', { "SELECT k FROM t WHERE k < 0" => 'index bitmap' }, ['t']);

# ---- beside a step that takes long ----

SKIP:
{
	skip 'NOT TESTED: a step that takes long, since this server has no injection points', 1
	  if !has_points($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE u (k int8) WITH (autovacuum_enabled = off);
CREATE INDEX u_k ON u USING hybrid (k);
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
INSERT INTO u SELECT hashint8(g) FROM generate_series(1, 30000) g;
SELECT injection_points_attach('hybrid-step-installed', 'wait');
-- as many as a worker is asked for, and too few for this session to help
RESET hybridindex.background_merge;
SET hybridindex.merge_floor = 35000;
INSERT INTO u SELECT hashint8(-g) FROM generate_series(1, 1000) g;
SQL
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker' AND wait_event = 'hybrid-step-installed'"),
		'a worker is held in a step');
	my ($ret, $out, $err) = $node->psql('postgres',
		"SET lock_timeout = '100ms'; SET statement_timeout = '100s'; INSERT INTO u SELECT hashint8(g + 100000) FROM generate_series(1, 20000) g");
	is($ret, 0, 'an insertion of many rows goes on') or diag $err;
	my @sessions = map { start_psql($node, "SET lock_timeout = '100ms'; $_;") }
	  "SELECT hybrid_index_check('u_k')", "SELECT hybrid_merge('u_k')", 'DELETE FROM u WHERE k % 3 = 0; VACUUM (INDEX_CLEANUP on) u';
	ok($node->poll_query_until('postgres', "SELECT count(*) >= 2 FROM pg_locks WHERE locktype = 'object' AND NOT granted"),
		'the check, a merge and VACUUM wait for the held merge');
	usleep(300_000);
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-step-installed'); SELECT injection_points_wakeup('hybrid-step-installed')");
	ok(finish_psql($_), 'the check, the merge and VACUUM come to their end') or diag $_->{err} foreach @sessions;
	same_answers($node, 'answers', { "SELECT k FROM u WHERE k < 0" => 'index bitmap' }, ['u']);
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
