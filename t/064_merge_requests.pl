
# A merge that was asked for is done, or stays on the list of requests.  No index
# stays half merged, or with entries in its log, without a worker, even if no session
# inserts again.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('requests', <<CONF);
hybridindex.merge_floor = 1000
hybridindex.max_merge_workers = 1
max_logical_replication_workers = 0
log_statement = none
CONF
my $points = has_points($node);
my $workers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker'";

# An index with a log that is to be merged.
sub make
{
	my ($db, $table, $rows) = @_;
	$node->safe_psql($db, <<SQL);
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
CREATE TABLE $table (k int8);
CREATE INDEX ${table}_k ON $table USING hybrid (k);
INSERT INTO $table SELECT hashint8(g) FROM generate_series(1, $rows) g;
SQL
	return;
}

# Fill a page of the log.
sub ask { return "INSERT INTO $_[0] SELECT hashint8(-g) FROM generate_series(1, 700) g"; }

sub settings
{
	$node->append_conf('postgresql.conf', "$_[0]\n");
	$node->reload;
	return;
}

# Is this process a worker that the postmaster has started?  No view shows one that
# has not yet connected.
sub is_worker
{
	my ($process, $postmaster) = @_;
	my %says = (status => '', cmdline => '');

	foreach my $what (keys %says)
	{
		open(my $file, '<', "/proc/$process/$what") or return 0;
		$says{$what} = join '', <$file>;
	}
	return $says{status} =~ /^PPid:\s+$postmaster$/m && $says{cmdline} =~ /hybrid merge worker/;
}

# Queries that sleep.
sub end_queries
{
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND backend_type = 'client backend' AND pid <> pg_backend_pid()");
	finish_psql($_) foreach @_;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'");
	return;
}

# ---- points ----

sub held
{
	my ($point, $what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-$point'"), $what);
	return;
}

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION hybridindex');
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points') if $points;

# ---- a table that is locked ----

make('postgres', 'locked', 400000);
settings('hybridindex.merge_step_pages = 1');
# The lock is asked for when the merge is seen to run, and had after a step; where
# that was the last step, another merge is asked for.
my $locker;
foreach my $try (1 .. 10)
{
	$node->safe_psql('postgres', ask('locked'));
	$locker = start_psql($node, <<'SQL');
BEGIN;
DO $$
BEGIN
	-- the merge may be over before this begins
	WHILE NOT (SELECT merge_running FROM hybrid_index_stats('locked_k')) AND clock_timestamp() < now() + interval '10 s' LOOP
	END LOOP;
	LOCK TABLE locked;
END $$;
SELECT merge_running FROM hybrid_index_stats('locked_k');
SELECT pg_sleep(4);
SQL
	ok(finish_psql($locker), "a table was locked for longer than a worker stays ($try)");
	last if $locker->{out} =~ /^t/;
	$node->safe_psql('postgres', "SELECT hybrid_merge('locked_k'); INSERT INTO locked SELECT hashint8(g + $try * 400000) FROM generate_series(1, 100000) g");
}
is($locker->{out}, "t\n\n", 'a table was locked in the middle of a merge');
ok($node->poll_query_until('postgres', merged('locked_k')), 'the merge is finished when the table is free');
settings('hybridindex.merge_step_pages = 16');

# ---- a quiet index while the worker goes elsewhere ----

settings('hybridindex.quiet_time = 2000');
make('postgres', 'quiet', 40000);
settings('hybridindex.merge_floor = 1000000');
$node->safe_psql('postgres', 'VACUUM quiet');
ok($node->poll_query_until('postgres', "$workers AND datname = 'postgres'", '1'), 'a worker waits for the index to be quiet');
settings('hybridindex.merge_floor = 1000');
make('other', 'busy', 5000);
$node->safe_psql('other', ask('busy'));
ok($node->poll_query_until('other', merged('busy_k')), 'another database gets the only worker');
ok($node->poll_query_until('postgres', "SELECT dynamic_entries = 0 AND NOT merge_running FROM hybrid_index_stats('quiet_k')"),
	'the quiet index is merged all the same');
settings('hybridindex.quiet_time = -1');

# ---- a worker that is ended while it connects ----

no_worker($node, 'no worker is left');
make('postgres', 'connecting', 150000);
settings('post_auth_delay = 2');
$node->safe_psql('postgres', ask('connecting'));
my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
my $pid;
foreach (1 .. 100)
{
	($pid) = grep { is_worker($_, $postmaster) } map { /(\d+)/ } glob '/proc/[0-9]*';
	last if defined $pid;
	usleep(10_000);
}
ok(defined $pid && kill('TERM', $pid), 'a worker is ended while it connects');
settings('post_auth_delay = 0');
ok($node->poll_query_until('postgres', merged('connecting_k')), 'what it was started for is merged all the same');

# ---- no process to spare ----

# First a worker of another database has the only process, then one of a query.  A
# request for a worker that could not start is not forgotten when the next index is
# asked for.  A worker that cannot start another one tries again.
no_worker($node, 'no worker is left');
$node->append_conf('postgresql.conf', "max_worker_processes = 2\nmax_parallel_workers = 2\nhybridindex.max_merge_workers = 1\n");
$node->restart;
my $parallel = $node->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
make('postgres', 'starved', 150000);
make('postgres', 'next', 5000);
make('other', 'elsewhere', 150000);
my @busy = map { start_psql($node, "SET $parallel = on; SELECT pg_sleep(600);") } 1, 2;
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'parallel worker'"), 'queries have all processes');
$node->safe_psql('postgres', ask('starved'));
is($node->safe_psql('postgres', $workers), '0', 'no worker could start');
end_queries(@busy);
@busy = start_psql($node, "SET $parallel = on; SELECT pg_sleep(600);");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'parallel worker'"), 'a query has one of them');
$node->safe_psql('postgres', ask('next'));
ok($node->poll_query_until('postgres', merged("${_}_k")), "$_ is merged when the next one is asked for") foreach 'next', 'starved';
$node->safe_psql('other', ask('elsewhere'));
end_queries(@busy);
ok($node->poll_query_until('other', merged('elsewhere_k')), 'a worker waits for a process that it can start');
no_worker($node, 'no worker is left');

# ---- a restart ----

# A step at a time is what an inserter does without workers.
make('postgres', 'restarted', 100000);
make('postgres', 'behind', 2000);
$node->safe_psql('postgres', 'SET hybridindex.background_merge = off; SET hybridindex.merge_step_pages = 1; ' . ask('restarted'));
my $state = "SELECT merge_running, dynamic_entries > 50000 FROM hybrid_index_stats('restarted_k')";
is($node->safe_psql('postgres', $state), 't|t', 'an index is half merged');
$node->append_conf('postgresql.conf', "max_worker_processes = 16\n");
$node->restart;

# The worker that looks at all indexes comes to this one while it is locked.
my $locked = start_psql($node, 'BEGIN; LOCK TABLE restarted; SELECT pg_sleep(600);');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'") or die "nothing is locked: $locked->{err}";
$node->safe_psql('postgres', 'INSERT INTO next VALUES (1)');
ok($node->poll_query_until('postgres', merged('behind_k')), 'after a restart the first one that uses another index has an index merged');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
finish_psql($locked);
ok($node->poll_query_until('postgres', merged('restarted_k')), 'and one that was locked, when it is free');

SKIP:
{
	skip 'NOT TESTED: held processes, since this server has no injection points', 1 if !$points;

	# ---- a decision that is old when it is carried out ----

	make('postgres', 'old', 20000);
	attach_point($node, 'merge-help');
	my $inserter = start_psql($node, ask('old') . ';');
	held('merge-help', 'an inserter is to help');
	$node->safe_psql('postgres', "SELECT hybrid_merge('old_k')");
	no_worker($node, 'no worker is left');
	$node->safe_psql('postgres', 'INSERT INTO old VALUES (1)');
	leave_point($node, 'merge-help');
	ok(finish_psql($inserter), 'it goes on when all is merged') or diag $inserter->{err};
	no_worker($node, 'no worker is left');
	is($node->safe_psql('postgres', "SELECT merge_running FROM hybrid_index_stats('old_k')"), 'f', 'the session has frozen nothing');

	# where a merge is wanted by then, for a worker that has gone as well
	make('postgres', 'still', 20000);
	attach_point($node, 'merge-help');
	$inserter = start_psql($node, 'SET hybridindex.merge_step_pages = 1;' . ask('still') . ';');
	held('merge-help', 'an inserter is to help');
	$node->safe_psql('postgres', "SELECT hybrid_merge('still_k')");
	no_worker($node, 'no worker is left');
	$node->safe_psql('postgres', 'SET hybridindex.background_merge = off; SET hybridindex.merge_floor = 1000000; INSERT INTO still SELECT hashint8(g + 100000) FROM generate_series(1, 30000) g');
	leave_point($node, 'merge-help');
	ok(finish_psql($inserter), 'it goes on when there is something else to merge') or diag $inserter->{err};
	ok($node->poll_query_until('postgres', "SELECT merges > 1 AND NOT merge_running FROM hybrid_index_stats('still_k')"),
		'that index is merged to its end');

	# ---- a request while a worker is done with the one before ----

	no_worker($node, 'no worker is left');
	make('postgres', 'meanwhile', 5000);
	attach_point($node, 'worker-done');
	$node->safe_psql('postgres', ask('meanwhile'));
	held('worker-done', 'a worker has merged an index');
	$node->safe_psql('postgres', 'INSERT INTO meanwhile SELECT hashint8(g + 100000) FROM generate_series(1, 1300) g');
	leave_point($node, 'worker-done');
	ok($node->poll_query_until('postgres', "SELECT dynamic_entries < 1000 AND NOT merge_running FROM hybrid_index_stats('meanwhile_k')"),
		'what has been inserted since is merged as well');

	# ---- hybrid_merge that is cancelled ----

	make('postgres', 'cancelled', 50000);
	my $merge = start_psql($node, "SELECT injection_points_set_local(), injection_points_attach('hybrid-step-installed', 'wait');\n", "SELECT hybrid_merge('cancelled_k');");
	my $pid = held_at($node, 'step-installed', $merge);
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	ok(!finish_psql($merge), 'hybrid_merge is cancelled');
	ok($node->poll_query_until('postgres', merged('cancelled_k')), 'a worker finishes what it has begun');

	make('postgres', 'caught', 50000);
	$merge = start_psql($node, "SELECT injection_points_set_local(), injection_points_attach('hybrid-step-installed', 'wait');\n", <<'SQL');
DO $$ BEGIN
	PERFORM hybrid_merge('caught_k');
EXCEPTION WHEN query_canceled THEN
	PERFORM injection_points_detach('hybrid-step-installed');
	PERFORM hybrid_merge('cancelled_k');
END $$;
SQL
	$pid = held_at($node, 'step-installed', $merge);
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	ok(finish_psql($merge), 'hybrid_merge is cancelled, and called for another index') or diag $merge->{err};
	ok($node->poll_query_until('postgres', merged('caught_k')), 'a worker finishes the first one');

	# ---- workers that wait for their database ----

	# The only worker is held elsewhere, so no session is in the database that is
	# renamed.  Then it starts the next worker there, which waits.
	my $waits = "locktype = 'object' AND database = 0 AND NOT granted";
	no_worker($node, 'no worker is left');
	make('other', 'ended', 50000);
	make('postgres', 'before', 5000);
	attach_point($node, 'merge-between');
	$node->safe_psql('postgres', ask('before'));
	held('merge-between', 'a worker merges');
	$node->safe_psql('other', ask('ended'));
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'other'");
	my $ddl = start_psql($node, 'BEGIN; ALTER DATABASE other RENAME TO renamed; SELECT pg_sleep(600);');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"), 'another database is locked') or diag $ddl->{err};
	leave_point($node, 'merge-between');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE $waits"), 'the next worker waits for its database');
	make('postgres', 'beside', 5000);
	$node->safe_psql('postgres', ask('beside'));
	ok($node->poll_query_until('postgres', merged('beside_k')), 'a worker that waits for its database makes room for another one');
	foreach my $end ('cancel', 'terminate')
	{
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM (SELECT pg_${end}_backend(pid) FROM pg_locks WHERE $waits) s"), "$end a worker");
	}
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
	finish_psql($ddl);
	ok($node->poll_query_until('other', merged('ended_k')), 'the index is merged by another one');

	# ---- an error while another index is asked for ----

	settings("hybridindex.quiet_time = 300\nhybridindex.merge_floor = 1000000");
	make('postgres', 'erring', 40000);
	make('postgres', 'handed', 5000);
	attach_point($node, 'quiet-asked');
	$node->safe_psql('postgres', 'VACUUM erring');
	held('quiet-asked', 'a worker looks at a quiet index');
	$node->safe_psql('postgres', "SET hybridindex.merge_floor = 1000; " . ask('handed'));
	my $from = -s $node->logfile;
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-quiet-asked'); SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'hybrid-quiet-asked'");
	ok($node->poll_query_until('postgres', merged("${_}_k")), "$_ is merged") foreach 'handed', 'erring';
	like(substr(slurp_file($node->logfile), $from), qr/ERROR:  canceling statement due to user request/, 'after an error');
	settings("hybridindex.quiet_time = -1\nhybridindex.merge_floor = 1000");
}

no_worker($node, 'no worker is left');
no_crash($node, 'nothing crashed');

# ---- a crash where the library is preloaded ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'hybridindex'\nrestart_after_crash = on\n");
$node->restart;
my $session = start_psql($node, 'SELECT pg_sleep(60);');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
my $from = -s $node->logfile;
kill 'KILL', $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
finish_psql($session);
wait_for_restart($node, $from);
is($node->safe_psql('postgres', "SELECT count(*) = 0 FROM locked WHERE k IS NULL"), 't', 'the server starts again');
$node->stop;
done_testing();
