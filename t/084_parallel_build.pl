
# Several processes build an index together.  Errors in workers, cancels and kills
# leave neither an index nor files behind.  Without workers the index is built all
# the same.  A crash and a standby keep it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('parallelbuild', <<EOF, allows_streaming => 1);
hybridindex.background_merge = off
max_parallel_maintenance_workers = 2
maintenance_work_mem = 64MB
restart_after_crash = on
EOF

# The leader of a build says who it is, so that functions can tell workers, and
# waits a little, so that they get rows.
$node->safe_psql('postgres', <<'EOF');
CREATE TABLE t (id int, k int8, r int4range, v text COLLATE "C") WITH (parallel_workers = 2);
INSERT INTO t SELECT i, hashint8(i), int4range(i, i + 1), 'v' || i FROM generate_series(1, 60000) i;
CREATE FUNCTION is_leader() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
	AS $$ SELECT pg_backend_pid()::text = current_setting('test.leader') $$;
CREATE FUNCTION slow(k int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF k % 100 = 0 AND public.is_leader() THEN PERFORM pg_sleep(0.003); END IF;
	RETURN k;
END $$;
CREATE FUNCTION slow(r int4range) RETURNS int4range LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF lower(r) % 100 = 0 AND public.is_leader() THEN PERFORM pg_sleep(0.003); END IF;
	RETURN r;
END $$;
CREATE FUNCTION fails(k int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF NOT public.is_leader() THEN RAISE 'not here'; END IF;
	RETURN public.slow(k);
END $$;
CREATE FUNCTION sleeps(k int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	PERFORM pg_sleep(1);
	RETURN k;
END $$;
EOF
# (the check, in another session, evaluates them too)
my $leader = "SELECT set_config('test.leader', pg_backend_pid()::text, false)";
$node->safe_psql('postgres', "ALTER DATABASE postgres SET test.leader = ''");

sub temporary_files
{
	my $dir = $node->data_dir . '/base/pgsql_tmp';
	return -d $dir ? scalar(grep { !/^\./ } slurp_dir($dir)) : 0;
}

sub no_files
{
	my ($what) = @_;
	foreach (1 .. 100)
	{
		last if temporary_files() == 0;
		select(undef, undef, undef, 0.1);
	}
	is(temporary_files(), 0, "$what: no temporary files are left");
	return;
}

# Build, check, and tell what the leader says of its workers.
sub build
{
	my ($definition, $settings) = @_;
	my ($out, $err) = ('', '');
	$node->psql('postgres', <<EOF, stdout => \$out, stderr => \$err);
$leader;
@{[$settings // '']}
SET client_min_messages = debug1;
$definition;
SET client_min_messages = warning;
SET test.leader = '';
SELECT hyb_check('t');
DROP INDEX i;
EOF
	like($out, qr/^t$/m, "$definition: passes the check") or diag "$out$err";
	return $err =~ /built leaves of index "i" with (\d+) workers, which read (\d+) of (\d+) rows and wrote (\d+) of (\d+) ranges/;
}

# ---- workers take part ----

my ($workers, $read, $rows, $wrote, $ranges) = build('CREATE INDEX i ON t USING hybrid (slow(k))');
is($workers, 2, 'two workers');
is($rows, 60000, 'all rows were read');
cmp_ok($read, '>', 0, 'some of them by workers');
cmp_ok($ranges, '>', 1, 'there are ranges');
($workers, $read, $rows) = build('CREATE UNIQUE INDEX i ON t USING hybrid (slow(r))');
is($workers, 2, 'two workers, with comparison functions');
cmp_ok($read, '>', 0, 'they read rows');
($workers) = build('CREATE INDEX CONCURRENTLY i ON t USING hybrid (slow(k))');
is($workers, 2, 'two workers, concurrently');
($workers) = build('CREATE INDEX i ON t USING hybrid (k)', 'SET max_parallel_maintenance_workers = 1;');
is($workers, 1, 'as many as max_parallel_maintenance_workers');
($workers) = build('CREATE INDEX i ON t USING hybrid (k)', 'SET max_parallel_maintenance_workers = 0;');
is($workers, undef, 'or none');
$node->safe_psql('postgres', 'ALTER TABLE t RESET (parallel_workers)');
($workers) = build('CREATE INDEX i ON t USING hybrid (k)', "SET min_parallel_table_scan_size = 0; SET maintenance_work_mem = '64MB';");
is($workers, 1, 'each gets 32 MB of memory');
($workers) = build('CREATE INDEX i ON t USING hybrid (k)', "SET min_parallel_table_scan_size = 0; SET maintenance_work_mem = '63MB';");
is($workers, undef, 'too little memory for two');
$node->safe_psql('postgres', 'ALTER TABLE t SET (parallel_workers = 2)');
no_files('built');

# A worker comes to the last page, where a row has two versions, of which the index has
# the second only: older snapshots must not use it.
like($node->safe_psql('postgres', <<EOF), qr/^t$/m, 'what a worker finds of versions of rows counts');
$leader;
BEGIN;
UPDATE t SET k = -k WHERE id = 60000;
UPDATE t SET k = -k WHERE id = 60000;
CREATE INDEX i ON t USING hybrid (slow(k));
SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'i'::regclass;
ROLLBACK;
EOF

# Workers write leaves, too, where the leader is held at its first range.
SKIP:
{
	skip 'no injection points', 2
	  if !has_points($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');
	$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-build-range', 'wait')");
	my $session = start_psql($node, "$leader; SET client_min_messages = debug1; CREATE INDEX i ON t USING hybrid (slow(k));");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 3 FROM pg_stat_activity WHERE wait_event = 'hybrid-build-range'"),
		'leader and workers are at a range each');
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-build-range')");
	foreach (1 .. 100)
	{
		last if $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'hybrid-build-range'") == 0;
		$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-build-range')");
	}
	finish_psql($session);
	($wrote) = $session->{err} =~ /wrote (\d+) of \d+ ranges/;
	cmp_ok($wrote // 0, '>=', 2, 'workers write ranges') or diag $session->{err};
	$node->safe_psql('postgres', "SELECT hyb_check('t'); DROP INDEX i");
}

# Of one key there are two rows, wherever ranges part: that is swept over all keys.
# All rows are on one page, so one process sorts them.
$node->safe_psql('postgres', <<'EOF');
CREATE TABLE twice (i int) WITH (parallel_workers = 1);
CREATE FUNCTION build_twice() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	CREATE UNIQUE INDEX twice_i ON twice USING hybrid ((repeat(md5(i::text), 27) COLLATE "C"));
	RETURN true;
EXCEPTION WHEN unique_violation THEN
	RETURN false;
END $$;
CREATE FUNCTION unnoticed() RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
	FOR k IN 1 .. 200 LOOP
		TRUNCATE twice;
		INSERT INTO twice SELECT generate_series(1, 200);
		INSERT INTO twice VALUES (k);
		IF build_twice() THEN
			RETURN NEXT k;
			DROP INDEX twice_i;
		END IF;
	END LOOP;
	TRUNCATE twice;
	INSERT INTO twice SELECT generate_series(1, 200);
END $$;
EOF
is($node->safe_psql('postgres', 'SELECT * FROM unnoticed()'), '', 'a key that is there twice is noticed, whichever it is');
my ($built, $message) = ('', '');
$node->psql('postgres', 'SET client_min_messages = debug1; SELECT build_twice()', stdout => \$built, stderr => \$message);
is($built, 't', 'without one the index is built');
like($message, qr/with 1 workers, .* of 2 ranges/, 'there were two ranges');

# ---- errors, cancels, kills ----

my ($ret, $out, $err) = $node->psql('postgres', "$leader; CREATE INDEX i ON t USING hybrid (fails(k))");
like($err, qr/not here.*parallel worker/s, 'an error in a worker');
no_files('an error');

# The process of that type of a build that has workers.
sub process
{
	my ($type) = @_;
	foreach (1 .. 600)
	{
		my $pid = $node->safe_psql('postgres', "SELECT max(pid) FROM pg_stat_activity WHERE backend_type = '$type' AND query LIKE '%sleeps%' AND pid <> pg_backend_pid() AND EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep')");
		return $pid if $pid ne '';
		select(undef, undef, undef, 0.05);
	}
	die "there is no $type";
}

foreach my $case (
	[ 'pg_cancel_backend', 'client backend', qr/canceling statement due to user request/ ],
	[ 'pg_terminate_backend', 'client backend', qr/terminating connection/ ],
	[ 'pg_terminate_backend', 'parallel worker', qr/terminating/ ])
{
	my ($function, $type, $message) = @$case;
	my $session = start_psql($node, "CREATE INDEX i ON t USING hybrid (sleeps(k));");
	my $pid = process($type);
	$node->safe_psql('postgres', "SELECT $function($pid)");
	finish_psql($session);
	like($session->{err}, $message, "$function of a $type");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'"), 'no worker goes on');
	no_files("$function of a $type");
}
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'i'"), 0, 'there is no index');

# A worker that is killed takes the server down, as any process that is.
my $session = start_psql($node, "CREATE INDEX i ON t USING hybrid (sleeps(k));");
my $pid = process('parallel worker');
my $from = -s $node->logfile;
kill 'KILL', $pid;
finish_psql($session);
wait_for_restart($node, $from);
$node->restart;
no_files('a kill');
($workers) = build('CREATE INDEX i ON t USING hybrid (k)');
is($workers, 2, 'two workers after that');

# ---- a crash, a standby ----

my $standby = new_standby($node, 'parallelbuild_standby');
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX i ON t USING hybrid (k, id); CREATE INDEX j ON t USING hybrid (v) INCLUDE (r)');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT hyb_check('t')"), 't', 'the standby has what workers wrote');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT hyb_check('t')"), 't', 'the server has it after a crash');
$node->safe_psql('postgres', $_)
  foreach "INSERT INTO t (k, v) SELECT i + 10000000000, 'n' || i FROM generate_series(1, 5000) i",
  "SELECT hybrid_merge('i'), hybrid_merge('j')", 'VACUUM t', "SELECT hyb_check('t')", 'DROP INDEX i, j';
$standby->stop;

# ---- no workers to be had ----

$node->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$node->restart;
($workers) = build('CREATE INDEX i ON t USING hybrid (k)');
is($workers, undef, 'no worker processes: built alone');

# with wal_level = minimal what workers write is not logged
$node->append_conf('postgresql.conf', "max_worker_processes = 8\nwal_level = minimal\nmax_wal_senders = 0\n");
$node->restart;
$node->safe_psql('postgres', 'CREATE INDEX i ON t USING hybrid (k)');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT hyb_check('t')"), 't', 'an index that was not logged, after a crash');
$node->stop;
done_testing();
