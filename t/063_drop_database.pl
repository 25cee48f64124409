
# DROP DATABASE does not fail because of an idle merge worker, though a request waits
# for a worker of another database that is slow to start.  Requests for merges in the
# dropped database are forgotten.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('drop', <<EOF);
hybridindex.merge_floor = 1000
EOF
my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];

$node->safe_psql('postgres', 'CREATE TABLE t (k int8); CREATE INDEX t_k ON t USING hybrid (k); CREATE DATABASE gone');
$node->safe_psql('gone', 'CREATE EXTENSION hybridindex; CREATE TABLE t (k int8); CREATE INDEX t_k ON t USING hybrid (k)');

# The postmaster starts nothing while it is stopped.  One worker has to be there
# before that, and a place for another.  The rows are enough for one merge only:
# after it the inserter might ask again, for a second worker.  The inserter may have
# merged them before the worker comes.
my $session = start_psql($node, <<EOF);
\\c gone
INSERT INTO t SELECT hashint8(g) FROM generate_series(1, 1500) g;
DO \$\$
BEGIN
	WHILE (SELECT merges = 0 OR merge_running FROM hybrid_index_stats('t_k')) OR
		NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker' AND datname = 'gone') LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
END \$\$;
\\c postgres
\\! kill -STOP $postmaster
INSERT INTO t SELECT hashint8(g) FROM generate_series(1, 5000) g;
SELECT 'idle: ' || count(*) FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker' AND datname = 'gone';
DROP DATABASE gone;
EOF
my $dropped = finish_psql($session);
kill 'CONT', $postmaster;
ok($dropped, 'the database is dropped') or diag $session->{err};
like($session->{out}, qr/^idle: 1$/m, 'an idle worker was in it');
ok($node->poll_query_until('postgres', merged('t_k')), 'the other database gets its worker');
SKIP:
{
	skip 'NOT TESTED: requests of a dropped database, since this server has no injection points', 4
		if !has_points($node);

	# The only worker is held in another database, so the request is on the list
	# when its database is dropped.
	my $points = "FROM pg_stat_activity WHERE wait_event = 'hybrid-worker-done'";

	$node->append_conf('postgresql.conf', "hybridindex.max_merge_workers = 1\n");
	$node->reload;
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points; CREATE DATABASE gone');
	$node->safe_psql('gone', 'CREATE EXTENSION hybridindex; CREATE TABLE t (k int8); CREATE INDEX t_k ON t USING hybrid (k)');
	no_worker($node, 'no worker is left');
	attach_point($node, 'worker-done');
	$node->safe_psql('postgres', 'INSERT INTO t SELECT hashint8(g) FROM generate_series(5001, 10000) g');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 $points"), 'the only worker has merged an index');
	$node->safe_psql('gone', 'INSERT INTO t SELECT hashint8(g) FROM generate_series(1, 5000) g');
	$node->safe_psql('postgres', 'DROP DATABASE gone');
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-worker-done'); SELECT injection_points_wakeup('hybrid-worker-done') $points");
	my $merges = $node->safe_psql('postgres', "SELECT merges FROM hybrid_index_stats('t_k')");
	$node->safe_psql('postgres', 'INSERT INTO t SELECT hashint8(g) FROM generate_series(10001, 15000) g');
	ok($node->poll_query_until('postgres', "SELECT merges > $merges AND NOT merge_running FROM hybrid_index_stats('t_k')"), 'the worker goes on with its own database');
	no_worker($node, 'the worker ends when it has nothing to do');
}
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
