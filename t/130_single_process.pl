
# The server has one process for background workers.  What was asked for is merged
# all the same, in whatever database, and whatever happens to that process.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

$PostgreSQL::Test::Utils::timeout_default = 60;
my $node = new_node('single', <<CONF);
hybridindex.merge_floor = 500
max_worker_processes = 1
max_logical_replication_workers = 0
CONF
my $workers = "FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker'";

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION hybridindex');

# A session that inserts little merges nothing itself, also where no worker can start.
sub make
{
	my ($db, $table) = @_;
	$node->safe_psql($db, <<SQL);
SET hybridindex.background_merge = off;
CREATE TABLE $table (k text COLLATE "C");
CREATE INDEX ${table}_k ON $table USING hybrid (k);
SQL
	return;
}

# Fill some pages of the log.  The last one asks for a worker.
sub ask { return "INSERT INTO $_[0] SELECT repeat(md5(g::text), 3) FROM generate_series(1, 500) g;"; }

# ---- another database ----

make('postgres', $_) foreach 'first', 'third';
make('other', 'second');
$node->safe_psql('postgres', ask('first'));
$node->safe_psql('other', ask('second'));
ok($node->poll_query_until('other', merged('second_k')), 'the worker of one database makes room for that of another');
ok($node->poll_query_until('postgres', merged('first_k')), 'its own index is merged, too');

# ---- the same database ----

# The only request waits for a table, and the worker for that request.
no_worker($node, 'no worker is left');
my $locker = start_psql($node, 'BEGIN; LOCK TABLE third; ' . ask('third') . ' SELECT pg_sleep(600);');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'") or die 'nothing is locked';
ok($node->poll_query_until('postgres', "SELECT count(*) $workers AND state = 'idle'", '1'), 'a worker waits for a table');
is($node->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid, 10000)) $workers"), '1', 'it is terminated');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
finish_psql($locker);
ok($node->poll_query_until('postgres', merged('third_k')), 'what it waited for is merged when the table is free');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
