#!/usr/bin/env perl
#
# soak.pl --dir DIR --minutes N [--seed S] [--indexes N] [--builds DIR]: random
# work of several clients on hybrid indexes while the server is killed again and
# again.
#
# One primary with tiny merge steps and the least dynamic memory, and one
# streaming standby with wal_consistency_checking = all.  In each round clients
# transfer, insert, delete and prepare transactions.  Sessions beside them vacuum,
# merge, rebuild, truncate and checkpoint.  Comparing sessions on both servers ask
# each query by sequential scan and through the indexes in one snapshot.  One to three
# races go on meanwhile (Races.pm): DDL on the row types of keys, hundreds of cursors
# beside merges, and sockets that are not read.  A round ends with a kill -9 of
# something, or an orderly restart; then the indexes are checked against their tables in
# both directions.  Between rounds whole databases are copied, moved, renamed, dropped
# and made anew with the same OIDs, and some of many small indexes are used.
#
# Some clients run serializable transactions, whose conditions no weaker level
# keeps.  Another session converts their tables to btree and back all the time.
# From server 16 on, the updates of one more table are HOT by hybrid_hot (HotTable.pm).
# In a quarter of the rounds another build of the library is installed under the
# running servers (--builds, made by other_builds.sh).  Sessions that start later
# are refused until the restart at the end of the round.
#
# These count as differences:
# * whatever a comparing session or hybrid_index_check reports
# * a broken invariant (a division by zero)
# * an error that ends a client
# * a session of a race that is stuck, fails, or has a wrong answer
# * an internal error or a report of corruption in a server's log
# * a session that is refused where no build was installed
# * a process that ended by a signal that this program did not send
#
# The exit status is 0 if there were none.
#
# PATH must begin with the server's bin directory; not as root.
#
use strict;
use warnings;

use File::Basename;
use Cwd qw(abs_path);
use FindBin;
use Getopt::Long;
use lib $FindBin::RealBin;
use HotTable;
use POSIX qw(:sys_wait_h setsid);
use Races;
use Time::HiRes qw(time sleep);

my %opt = (minutes => 1, seed => int(time), clients => 4, indexes => 1000);
GetOptions(\%opt, 'dir=s', 'minutes=f', 'seed=i', 'clients=i', 'indexes=i', 'builds=s') && $opt{dir}
  or die "usage: soak.pl --dir DIR --minutes N [--seed S] [--clients C] [--indexes N] [--builds DIR]\n";
my $dir = $opt{dir};
my $here = dirname(abs_path($0));
my $helpers = abs_path("$here/../sql/helpers.sql");
srand($opt{seed});
$| = 1;

delete @ENV{grep { /^PG/ } keys %ENV};
$ENV{PGUSER} = 'postgres';
$ENV{PGDATABASE} = 'postgres';
$ENV{PGHOST} = $dir;
$ENV{PGCONNECT_TIMEOUT} = 10;

my %port = (primary => 65440, standby => 65441);
my $has_hot = `postgres --version` =~ / (\d+)/ && $1 >= 16;
my @tables = (qw(acc hist uniq trunc pair booking), Races::tables(), $has_hot ? HotTable::tables() : ());
my %count = (
	rounds => 0, transactions => 0, merges => 0, primary_compared => 0,
	standby_compared => 0, checks => 0, cancelled => 0, prepared => 0,
	not_compared => 0, databases => 0, small_indexes => 0, serializable => 0,
	retried => 0, failed => 0, conversions => 0, builds => 0, raced => 0);
my (%kills, @bad);
my $started = time;
my $deadline = $started + $opt{minutes} * 60;

sub note { printf "[%6.1f] %s\n", time - $started, join(' ', @_); return; }

my %reported;

# Each kind of difference is shown once.
sub bad
{
	my ($what) = @_;
	(my $kind = $what) =~ s/\d+/N/g;
	$kind =~ s/after [\w ]+//;
	push @bad, $what;
	note("DIFFERENCE: $what") unless $reported{ substr($kind, 0, 200) }++;
	return;
}

sub read_file
{
	my ($path, $from) = @_;
	open(my $fh, '<', $path) or return '';
	seek($fh, $from // 0, 0);
	local $/;
	return scalar(<$fh>) // '';
}

sub write_file
{
	my ($path, $content) = @_;
	open(my $fh, '>', $path) or die "$path: $!";
	print $fh $content;
	close($fh);
	return;
}

# ---- processes ----

# Run in the background, in a process group of its own, output to a file.
sub spawn
{
	my ($log, @cmd) = @_;
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		setsid();
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>>', $log) or die;
		open(STDERR, '>&', \*STDOUT);
		exec(@cmd) or exit 127;
	}
	return $pid;
}

sub reap
{
	my ($pid, $seconds) = @_;
	my $until = time + $seconds;
	while (time < $until)
	{
		return $? if waitpid($pid, WNOHANG) == $pid;
		sleep(0.02);
	}
	kill 'KILL', -$pid;
	waitpid($pid, 0);
	return -1;
}

sub children
{
	my ($parent) = @_;
	my %found;
	foreach my $stat (glob '/proc/[0-9]*/stat')
	{
		my $line = read_file($stat);
		next unless $line =~ /^(\d+) \(.*\) \S (\d+) /s && $2 == $parent;
		my $pid = $1;
		($found{$pid} = read_file("/proc/$pid/cmdline")) =~ s/\0+/ /g;
	}
	return %found;
}

# ---- servers ----

sub data { return "$dir/$_[0]"; }

sub postmaster
{
	my ($server) = @_;
	my ($pid) = split /\n/, read_file(data($server) . '/postmaster.pid');
	return $pid && kill(0, $pid) ? $pid : undef;
}

sub configure
{
	my ($server, $extra) = @_;
	write_file(data($server) . '/soak.conf', <<EOF . ($extra // ''));
listen_addresses = ''
unix_socket_directories = '$dir'
port = $port{$server}
fsync = off
autovacuum = off
shared_buffers = 48MB
max_wal_size = 1GB
checkpoint_timeout = 30s
wal_level = replica
wal_keep_size = 256MB
max_slot_wal_keep_size = 8GB
max_prepared_transactions = 20
max_worker_processes = 16
wal_consistency_checking = 'generic'
hot_standby_feedback = on
max_standby_streaming_delay = 20s
wal_receiver_status_interval = 1s
allow_in_place_tablespaces = on
max_locks_per_transaction = 256
log_line_prefix = '%m [%p] %e %q%a '
log_min_messages = warning
deadlock_timeout = 200ms
dynamic_library_path = '$dir/lib:\$libdir'
jit = off
statement_timeout = 100s
max_parallel_workers_per_gather = 0
hybridindex.dynamic_memory = 64kB
hybridindex.merge_floor = 60
hybridindex.merge_step_pages = 1
EOF
	return;
}

sub start
{
	my ($server) = @_;
	foreach my $try (1 .. 60)
	{
		my $pid = spawn("$dir/pg_ctl.log", 'pg_ctl', '-s', '-D', data($server), '-l',
			"$dir/$server.log", '-w', '-t', '120', 'start');
		last if reap($pid, 150) == 0;
		# processes of the one before may not be gone yet
		$try < 60 or die "the $server did not start\n";
		sleep(0.5);
	}
	return wait_ready($server);
}

sub wait_ready
{
	my ($server) = @_;
	foreach (1 .. 600)
	{
		my ($rc) = sql($server, 'SELECT 1');
		return if $rc == 0;
		sleep(0.1);
	}
	die "the $server does not answer\n";
}

sub stop
{
	my ($server, $mode) = @_;
	system('pg_ctl', '-s', '-D', data($server), '-m', $mode, '-w', '-t', '120', 'stop');
	return;
}

# (exit status, output, errors)
my $calls = 0;
sub sql
{
	my ($server, $script, $timeout, $db) = @_;
	my $base = "$dir/sql." . $calls++ % 50;
	write_file("$base.in", $script);
	unlink "$base.out", "$base.err";
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		setsid();
		open(STDIN, '<', "$base.in");
		open(STDOUT, '>', "$base.out");
		open(STDERR, '>', "$base.err");
		exec('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-p', $port{$server}, '-d', $db // 'postgres')
		  or exit 127;
	}
	my $rc = reap($pid, $timeout // 300);
	return ($rc, read_file("$base.out"), read_file("$base.err"));
}

sub must
{
	my ($server, $script, $db) = @_;
	my ($rc, $out, $err) = sql($server, $script, undef, $db);
	$rc == 0 or die "on the $server: $script\n$err";
	chomp $out;
	return $out;
}

# ---- builds ----

# Files of the library; the first one is that of this tree.
my @builds = ((`pg_config --pkglibdir` =~ s/\n//r) . '/hybridindex.so', $opt{builds} ? glob("$opt{builds}/*.so") : ());
my $build = $builds[0];

# Has another build been installed in this round?
my $updated = 0;
my $refused = qr/hybridindex was updated while the server was running/;

# As packages do: the old file stays what it is for those that have it mapped.
sub install_build
{
	system('cp', $build, "$dir/lib/new") == 0 && rename("$dir/lib/new", "$dir/lib/hybridindex.so")
	  or die "could not install $build\n";
	return;
}

# ---- schema ----

sub setup
{
	reap(spawn("$dir/initdb.log", 'initdb', '-D', data('primary'), '-U', 'postgres', '-A', 'trust',
			'-E', 'UTF8', '--locale=C', '--no-sync'), 120) == 0
	  or die "initdb failed\n" . read_file("$dir/initdb.log");
	configure('primary');
	open(my $conf, '>>', data('primary') . '/postgresql.conf') or die;
	print $conf "include 'soak.conf'\n";
	close($conf);
	mkdir "$dir/lib";
	install_build();
	start('primary');
	must('primary', 'CREATE DATABASE base');
	must('primary', <<'EOF', $_) foreach qw(postgres base);
CREATE EXTENSION hybridindex;
SET allow_system_table_mods = on;
UPDATE pg_proc SET probin = 'hybridindex' WHERE probin LIKE '%hybridindex';
EOF
	must('primary', read_file($helpers));
	must('primary', Races::setup_sql());
	must('primary', HotTable::setup_sql()) if $has_hot;
	must('primary', <<'EOF');
SELECT pg_create_physical_replication_slot('soak');

CREATE TABLE acc (id int, owner text COLLATE "C", balance int8, pad int) WITH (fillfactor = 60);
INSERT INTO acc SELECT i, 'owner ' || i % 50, 0 FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX acc_id ON acc USING hybrid (id) WITH (filter = surf, layout = trie);
CREATE INDEX acc_owner ON acc USING hybrid (owner text_hope_ops, id) INCLUDE (balance);
CREATE INDEX acc_pad ON acc USING hybrid (pad DESC NULLS LAST) WITH (filter = surf);

CREATE TABLE hist (k int8, s text COLLATE "C", n numeric, d timestamptz, u uuid,
	w text COLLATE "C" GENERATED ALWAYS AS (left(s, 3) || (k % 100)::text || repeat('.', (k % 3)::int)) STORED);
CREATE INDEX hist_k ON hist USING hybrid (k) INCLUDE (n);
CREATE INDEX hist_s ON hist USING hybrid (s text_hope_ops, k DESC) WITH (filter = surf);
CREATE INDEX hist_n ON hist USING hybrid (n, s);
CREATE INDEX hist_u ON hist USING hybrid (u) WITH (filter = surf, filter_suffix_bits = 9, layout = trie);
CREATE INDEX hist_d ON hist USING hybrid (d) WITH (layout = trie);
CREATE INDEX hist_w ON hist USING hybrid (w DESC, d) WITH (layout = trie);
CREATE INDEX hist_h ON hist USING hybrid (w text_hope_ops) WITH (layout = trie);
CREATE INDEX hist_e ON hist USING hybrid (upper(s)) WHERE k % 3 = 0;

CREATE TABLE uniq (k int, v text);
CREATE UNIQUE INDEX uniq_k ON uniq USING hybrid (k) WITH (filter = surf, filter_suffix_bits = 16);
CREATE UNIQUE INDEX uniq_v ON uniq USING hybrid (v COLLATE "C", k) WITH (layout = trie);

CREATE TABLE trunc (k int, s text COLLATE "C");
CREATE INDEX trunc_k ON trunc USING hybrid (k) WITH (layout = trie);
CREATE INDEX trunc_s ON trunc USING hybrid (s text_hope_ops DESC) INCLUDE (k);

CREATE UNLOGGED TABLE unlog (k int);
CREATE INDEX unlog_k ON unlog USING hybrid (k) WITH (layout = trie);

CREATE TABLE pair (p int, side int, v int, PRIMARY KEY (p, side) INCLUDE (v));
INSERT INTO pair SELECT p, side, 50 FROM generate_series(1, 1000) p, generate_series(0, 1) side;
CREATE TABLE booking (k int, s text COLLATE "C");
CREATE INDEX booking_k ON booking USING hybrid (k) INCLUDE (s);
CREATE TABLE conversions (t regclass);
CREATE PROCEDURE change_method(t regclass) LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE indrelid = t AND amname = 'btree') THEN
		CALL hybrid_convert_table(t);
	ELSE
		CALL hybrid_revert_table(t);
	END IF;
	INSERT INTO conversions VALUES (t);
END $$;

CREATE FUNCTION try_insert(x int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO uniq VALUES (x, md5(x::text));
	RETURN true;
EXCEPTION WHEN unique_violation THEN
	RETURN false;
END $$;

CREATE FUNCTION add_history(x int8, rows int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO hist SELECT x + g * 7, md5((x + g)::text), (x % 97) / 4.0 + g, now(), md5(random()::text)::uuid
	FROM generate_series(1, rows) g
$$;
SELECT add_history(i * 10, 5) FROM generate_series(1, 600) i;
REINDEX TABLE hist;
REINDEX TABLE acc;
CREATE TABLESPACE place1 LOCATION '';
CREATE TABLESPACE place2 LOCATION '';
EOF
	must('primary', <<'EOF', 'base');
CREATE TABLE w (id int8, s text COLLATE "C");
CREATE UNIQUE INDEX w_id ON w USING hybrid (id) WITH (layout = trie);
CREATE INDEX w_s ON w USING hybrid (s text_hope_ops) INCLUDE (id) WITH (filter = surf);
CREATE INDEX w_h ON w USING hybrid (hashint8(id));
INSERT INTO w SELECT i, md5(i::text) FROM generate_series(1, 500) i;
EOF
	# many small indexes, four to a table
	must('primary', "CREATE TABLE small_$_ (k int, s text COLLATE \"C\");\n"
		  . "CREATE INDEX ON small_$_ USING hybrid (k);\nCREATE INDEX ON small_$_ USING hybrid (k DESC) INCLUDE (s);\n"
		  . "CREATE INDEX ON small_$_ USING hybrid (s, k) WITH (layout = trie);\nCREATE INDEX ON small_$_ USING hybrid (s) WITH (filter = surf);")
	  foreach 1 .. small_tables();
	system('pg_basebackup', '-D', data('standby'), '-p', $port{primary}, '-c', 'fast',
		'--no-sync', '-X', 'stream') == 0
	  or die "pg_basebackup failed\n";
	configure('standby', <<EOF);
primary_conninfo = 'host=$dir port=$port{primary} user=postgres'
primary_slot_name = 'soak'
EOF
	write_file(data('standby') . '/standby.signal', '');
	start('standby');
	return;
}

# ---- work ----

my %scripts = (
	'transfer@6' => <<'EOF',
\set a random(1, 1000)
\set b random(1, 1000)
\set d random(1, 100)
BEGIN;
UPDATE acc SET balance = balance - :d, pad = :d WHERE id = least(:a, :b);
UPDATE acc SET balance = balance + :d WHERE id = greatest(:a, :b);
COMMIT;
SELECT 1 / (count(*) = 1)::int FROM acc WHERE id = :a;
EOF
	'read@3' => <<'EOF',
\set o random(0, 49)
\set a random(1, 990)
SELECT 1 / (count(*) = 20 AND count(DISTINCT id) = 20)::int FROM acc WHERE owner = 'owner ' || :o;
SELECT 1 / (count(*) = 11)::int FROM acc WHERE id BETWEEN :a AND :a + 10;
SELECT 1 / (count(*) = 4)::int FROM acc WHERE id = ANY (array[:a, :a + 3, NULL, :a, :a + 7, :a + 9, -1]);
SELECT 1 / (count(*) = 1000 AND sum(balance) = 0)::int FROM (SELECT id, balance FROM acc WHERE owner > '' ORDER BY owner, id) x;
EOF
	'history@6' => <<'EOF',
\set k random(1, 6000)
\set n random(1, 40)
SELECT add_history(:k, :n);
DELETE FROM hist WHERE k BETWEEN :k AND :k + 40;
UPDATE hist SET n = n + 1 WHERE s = md5(:k::text);
SELECT 1 / coalesce(bool_and(ok)::int, 1) FROM (SELECT k >= coalesce(lag(k) OVER (ORDER BY k), k) AS ok FROM hist WHERE k < 500) x;
EOF
	'rollback@1' => <<'EOF',
\set k random(1, 6000)
BEGIN;
SELECT add_history(:k, 20);
SAVEPOINT a;
SELECT add_history(:k, 20);
ROLLBACK TO a;
SELECT add_history(:k, 5);
ROLLBACK;
EOF
	'unique@6' => <<'EOF',
\set k random(1, 2000)
SELECT try_insert(:k);
DELETE FROM uniq WHERE k = :k + 1;
SELECT 1 / (count(*) <= 1)::int FROM uniq WHERE k = :k;
EOF
	'prepare@1' => <<'EOF',
\set k random(1, 6000)
\set c random(0, 1)
BEGIN;
SELECT add_history(:k, 10);
SELECT try_insert(:k);
PREPARE TRANSACTION 'soak_:client_id';
\if :c
COMMIT PREPARED 'soak_:client_id';
\else
ROLLBACK PREPARED 'soak_:client_id';
\endif
EOF
	'trunc@2' => <<'EOF',
\set k random(1, 100000)
INSERT INTO trunc SELECT :k + g, md5((:k + g)::text) FROM generate_series(1, 30) g;
INSERT INTO unlog VALUES (:k);
SELECT count(*) FROM trunc WHERE k BETWEEN :k AND :k + 100;
EOF
	# Only a serial order keeps these conditions: the two rows of a pair have no
	# negative sum, and a key has one booking at most.
	'serial@10' => <<'EOF',
\set k random_zipfian(1, 1000, 1.5)
\set side random(0, 1)
\set d random(1, 100)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SET LOCAL enable_seqscan = off;
SELECT sum(v) >= :d AS enough, 1 / (sum(v) >= 0)::int AS one FROM pair WHERE p = :k \gset
SELECT count(*) = 0 AS free, 1 / (count(*) < 2)::int AS one FROM booking WHERE k = :k \gset
\sleep 5 ms
\if :enough
UPDATE pair SET v = v - :d WHERE p = :k AND side = :side;
\else
INSERT INTO pair VALUES (:k, :side, 0) ON CONFLICT (p, side) DO UPDATE SET v = pair.v + 50;
\endif
\if :free
INSERT INTO booking VALUES (:k, repeat(md5(:k::text), 3));
\else
DELETE FROM booking WHERE k = :k;
\endif
COMMIT;
EOF
	'cursor@1' => <<'EOF',
\set t random(1, 60)
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE c NO SCROLL CURSOR FOR SELECT id, balance FROM acc ORDER BY id;
DECLARE s NO SCROLL CURSOR FOR SELECT owner, id FROM acc WHERE owner > '' ORDER BY owner, id;
MOVE 300 FROM c;
MOVE 400 FROM s;
SELECT pg_sleep(:t / 100.0);
MOVE 600 FROM c;
MOVE ALL FROM s;
FETCH 200 FROM c;
COMMIT;
EOF
	$has_hot ? HotTable::scripts() : ());

# One of these at a time in the session beside the clients.
my @beside = (
	'VACUUM acc;', 'VACUUM hist;', 'VACUUM uniq;', 'VACUUM trunc;',
	'VACUUM (FREEZE) hist;', 'VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) acc;',
	'VACUUM hist;', 'VACUUM acc;', 'VACUUM pair;', 'VACUUM booking;', 'ANALYZE hist;', 'CHECKPOINT;',
	'SELECT count(hybrid_merge(i)) FROM unnest(\'{acc_id,acc_owner,hist_k,uniq_k,uniq_v}\'::regclass[]) i;',
	'SELECT count(hybrid_merge(i)) FROM unnest(\'{hist_n,hist_s,hist_u,hist_d,hist_e,hist_w,hist_h}\'::regclass[]) i;',
	'SET hybridindex.merge_step_pages = 32; SELECT hybrid_merge(\'hist_s\'); RESET hybridindex.merge_step_pages;',
	'REINDEX INDEX CONCURRENTLY hist_s;', 'REINDEX INDEX CONCURRENTLY hist_w;', 'REINDEX INDEX CONCURRENTLY acc_pad;',
	'REINDEX INDEX CONCURRENTLY uniq_k;', 'REINDEX INDEX hist_n;',
	'REINDEX TABLE CONCURRENTLY uniq;',
	'CREATE INDEX CONCURRENTLY IF NOT EXISTS hist_extra ON hist USING hybrid (s DESC, n);',
	'DROP INDEX CONCURRENTLY IF EXISTS hist_extra;',
	'CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS acc_extra ON acc USING hybrid (id, owner);',
	'DROP INDEX IF EXISTS acc_extra;',
	'TRUNCATE trunc;', 'TRUNCATE trunc; INSERT INTO trunc SELECT g, md5(g::text) FROM generate_series(1, 2000) g;',
	'BEGIN; TRUNCATE trunc; INSERT INTO trunc SELECT g, md5(g::text) FROM generate_series(1, 300) g; ROLLBACK;',
	'ALTER TABLE trunc ALTER COLUMN k TYPE int USING k;',
	'BEGIN; CREATE TABLE fresh AS SELECT * FROM hist LIMIT 500; CREATE INDEX fresh_s ON fresh USING hybrid (s, k); INSERT INTO fresh SELECT * FROM hist LIMIT 500; COMMIT; DROP TABLE fresh;',
	'BEGIN; CREATE INDEX gone ON hist USING hybrid (d, s); ROLLBACK;',
	'DELETE FROM hist WHERE k % 5 = 1 AND k > 3000;',
	'DELETE FROM hist WHERE ctid NOT IN (SELECT ctid FROM hist LIMIT 15000);',
	'SELECT hybrid_index_check(\'hist_k\', true);', 'SELECT hybrid_index_check(\'acc_owner\', true);',
	'SELECT hybrid_index_check(\'uniq_v\', true);',
	'SELECT pg_sleep(0.2);', 'SELECT pg_sleep(0.1);', $has_hot ? HotTable::beside() : ());

# Query and paths; :r is a random number of 1 to 6000.
my @queries = (
	[ 'SELECT id, balance FROM acc WHERE id < 500', 'index bitmap' ],
	[ 'SELECT owner, id, balance FROM acc WHERE owner > \'owner 3\'', 'index only bitmap' ],
	[ 'SELECT id FROM acc ORDER BY id DESC', 'order' ],
	[ 'SELECT id FROM acc WHERE pad BETWEEN 20 AND 30', 'index bitmap' ],
	[ 'SELECT id FROM acc WHERE pad IS NULL', 'index bitmap' ],
	[ 'SELECT k FROM hist ORDER BY k DESC', 'order order_only' ],
	[ 'SELECT k, n FROM hist WHERE k BETWEEN :r AND :r + 700', 'only index bitmap' ],
	[ 'SELECT s, k FROM hist ORDER BY s, k DESC', 'order_only' ],
	[ 'SELECT s FROM hist WHERE s = md5(:r::text)', 'index bitmap' ],
	[ 'SELECT k FROM hist WHERE n BETWEEN :r % 90 AND :r % 90 + 3', 'index bitmap' ],
	[ 'SELECT trim_scale(n) FROM hist ORDER BY n DESC', 'order' ],
	[ 'SELECT u FROM hist ORDER BY u', 'order' ],
	[ 'SELECT w, d FROM hist ORDER BY w DESC, d', 'order' ],
	[ 'SELECT k FROM hist WHERE w BETWEEN left(md5(:r::text), 3) AND left(md5(:r::text), 2) || \'g\'', 'index bitmap' ],
	[ 'SELECT k FROM hist WHERE w = left(md5(:r::text), 3) || :r % 100', 'index bitmap' ],
	[ 'SELECT k FROM hist WHERE k % 3 = 0 AND upper(s) >= \'C\' AND upper(s) < \'E\'', 'index bitmap' ],
	[ 'SELECT k FROM uniq WHERE k < :r / 3', 'index only bitmap' ],
	[ 'SELECT v FROM uniq WHERE k = ANY (array[1, 5, :r / 3, :r / 3 + 1, 77])', 'index bitmap' ],
	[ 'SELECT p, side, v FROM pair WHERE p < :r / 12', 'only bitmap' ],
	[ 'SELECT k, s FROM booking ORDER BY k', 'order order_only' ],
	[ 'SELECT k FROM trunc ORDER BY k', 'order' ],
	[ 'SELECT s, k FROM trunc WHERE s > \'8\'', 'only index' ],
	$has_hot ? HotTable::queries() : ());

sub same_script
{
	my (@which) = @_;
	my $script = "BEGIN ISOLATION LEVEL REPEATABLE READ;\n";
	my $r = 1 + int(rand(6000));
	# snapshots of some age, whose sessions hold no lock on the table meanwhile
	$script .= "SELECT count(pg_sleep(" . rand(2) . ")) FROM (SELECT FROM pg_am LIMIT 1) a;\n" if $which[0][0] =~ /FROM device/ && rand() < 0.3;
	foreach my $q (@which)
	{
		(my $query = $q->[0]) =~ s/:r/$r/g;
		$script .= "SELECT hyb_same(\$q\$$query\$q\$, '$q->[1]');\n";
	}
	return $script . "COMMIT;\n";
}

# What may meet any session while servers are killed, indexes rebuilt, and a
# standby replays: SQLSTATEs are not in psql's messages.
my $excused = qr/conflict with recovery|the connection to the server was lost|server closed the connection|could not connect|connection to server|terminating connection|the database system is|canceling statement due to user request|deadlock detected|could not serialize|could not obtain lock|does not exist|path "\w+" not taken|other index .* used|could not open relation with OID/;

# Which files the indexes of a server have now.
sub index_files
{
	my ($rc, $out) = sql($_[0], 'SELECT oid, relfilenode, (SELECT indisvalid FROM pg_index WHERE indexrelid = oid) FROM pg_class WHERE relkind = \'i\' AND relam IN (SELECT oid FROM pg_am WHERE amname LIKE \'hybrid%\') ORDER BY 1');
	return $rc == 0 ? $out : "$rc";
}

# A session that compares until $stop exists; writes what it found to $log.
sub comparing_process
{
	my ($server, $log, $stop) = @_;
	my $pid = fork() // die "fork: $!";
	return $pid if $pid;

	setsid();
	srand($opt{seed} + $$);
	$calls = 0;
	my $own = "$log.d";
	mkdir $own;
	$dir = $own;	# for the files of sql()
	open(my $out, '>>', $log) or exit 1;
	select((select($out), $| = 1)[0]);
	until (-e $stop)
	{
		my $q = $queries[rand @queries];
		my $before = index_files($server);
		my ($rc, $answer, $err) = sql($server, same_script($q, $queries[rand @queries]), 120);
		my $true = () = $answer =~ /^t$/mg;

		# An index built CONCURRENTLY lacks what was deleted before it became
		# valid.  The primary waits for its own snapshots that could still see that,
		# but not for a standby's snapshots, whatever the access method.
		if ($server eq 'standby' && index_files($server) ne $before)
		{
			print $out "none\n";
			next;
		}
		print $out "same\n" x $true;
		print $out "DIFF $q->[0]: $err\n" if $answer =~ /^f$/m;
		if ($rc != 0 && $answer !~ /^f$/m)
		{
			print $out $err =~ $excused || ($updated && $err =~ $refused) ? "none\n" : "ERR $err\n";
		}
		sleep(0.05);
	}
	POSIX::_exit(0);
}

# Races until $stop exists or the server ends a session; writes findings to $log.
sub racing_process
{
	my ($log, $stop) = @_;
	my $pid = fork() // die "fork: $!";
	return $pid if $pid;

	setsid();
	srand($opt{seed} + $$);
	open(my $out, '>>', $log) or POSIX::_exit(1);
	select((select($out), $| = 1)[0]);
	eval { Races::run("$dir/.s.PGSQL.$port{primary}", $stop, $out, qr/$excused|$refused/); 1 } or print $out "RACE ended: $@\n";
	POSIX::_exit(0);
}

sub collect_race
{
	my ($log, $pid, $stop) = @_;
	write_file($stop, '');
	reap($pid, 200) if $pid;
	my $text = read_file($log);
	$count{raced} += $1 while $text =~ /^asked (\d+)/mg;
	bad("race: $1") while $text =~ /^RACE (.*)/mg;
	unlink $log;
	return;
}

sub collect
{
	my ($server, $log, $pid, $stop) = @_;
	write_file($stop, '');
	reap($pid, 200);
	my $text = read_file($log);
	my $same = () = $text =~ /^same$/mg;
	my $none = () = $text =~ /^none$/mg;
	$count{"${server}_compared"} += $same;
	$count{not_compared} += $none;
	bad("comparing on the $server: $1") while $text =~ /^((?:DIFF|ERR) .*?)(?=^same$|^none$|^DIFF|^ERR|\z)/msg;
	unlink $log;
	return;
}

# ---- faults ----

my @faults = (
	[ postmaster => 4 ], [ backend => 3 ], [ worker => 4 ], [ frozen_backend => 2 ],
	[ checkpointer => 1 ], [ immediate => 1 ], [ fast => 1 ], [ standby => 2 ],
	[ standby_backend => 1 ]);

sub pick
{
	my $total = 0;
	$total += $_->[1] foreach @faults;
	my $n = rand($total);
	foreach my $fault (@faults)
	{
		return $fault->[0] if ($n -= $fault->[1]) < 0;
	}
	return 'postmaster';
}

# Kill postmaster and children at one blow.
sub kill_server
{
	my ($server) = @_;
	my $postmaster = postmaster($server) or return;
	my %kids = children($postmaster);
	kill 'KILL', $postmaster, keys %kids;
	foreach (1 .. 200)
	{
		last unless grep { kill 0, $_ } $postmaster, keys %kids;
		sleep(0.05);
	}
	return;
}

# A child process of a kind, waited for if need be; undef if none came.
sub find_child
{
	my ($server, $kind, $seconds) = @_;
	my $until = time + $seconds;
	do
	{
		my $postmaster = postmaster($server) or return;
		my %kids = children($postmaster);
		my @fit = grep { $kids{$_} =~ $kind } keys %kids;
		return $fit[rand @fit] if @fit;
		sleep(0.002);
	} while (time < $until);
	return;
}

my $client = qr/postgres: postgres postgres \[local\] (?!idle)/;
my $worker = qr/hybrid merge worker/;

# Kill one process; the postmaster restarts all others.
sub kill_child
{
	my ($server, $kind, $hold) = @_;
	my $pid = find_child($server, $kind, 3) or return 0;
	if ($hold)
	{
		kill 'STOP', $pid;
		sleep($hold);
	}
	kill 'KILL', $pid;
	sleep(0.3);
	wait_ready($server);
	return 1;
}

sub fault
{
	my $fault = $_[0] // pick();

	if ($fault eq 'postmaster')
	{
		kill_server('primary');
		start('primary');
	}
	elsif ($fault eq 'backend') { kill_child('primary', $client) or return; }
	elsif ($fault eq 'frozen_backend') { kill_child('primary', $client, rand(0.5)) or return; }
	elsif ($fault eq 'worker') { kill_child('primary', $worker) or return; }
	elsif ($fault eq 'checkpointer') { kill_child('primary', qr/checkpointer/) or return; }
	elsif ($fault eq 'standby_backend') { kill_child('standby', $client) or return; }
	elsif ($fault eq 'standby')
	{
		kill_server('standby');
		start('standby');
	}
	else
	{
		stop('primary', $fault);
		start('primary');
	}
	$kills{$fault}++;
	return $fault;
}

# Cancel, or terminate, some process: harmless, but everything must be let go of.
sub disturb
{
	my $kind = rand() < 0.4 ? $worker : $client;
	my $pid = find_child('primary', $kind, 0.2) or return;
	kill $kind == $worker && rand() < 0.7 ? 'TERM' : 'INT', $pid;
	$count{cancelled}++;
	return;
}

# After a new build, restart the servers whose postmaster the fault left.  A
# process that was to be killed may have ended by itself.
sub restart_updated
{
	my ($fault) = @_;
	foreach my $server ($fault eq 'standby' ? () : 'standby', $fault =~ /postmaster|immediate|fast/ ? () : 'primary')
	{
		stop($server, 'fast');
		start($server);
	}
	return;
}

# ---- checks ----

my %seen_log;
sub check_logs
{
	foreach my $server (sort keys %port)
	{
		my $from = $seen_log{$server} // 0;
		my $text = read_file("$dir/$server.log", $from);
		$seen_log{$server} = $from + length($text);
		foreach my $line (split /\n/, $text)
		{
			bad("$server log: $line") if $line =~ $refused && !$updated;
			bad("$server log: $line")
			  if $line !~ /could not open relation with OID/
			  # the server's own, if its postmaster goes while replay waits for a lock
			  && $line !~ m{TRAP: failed Assert\("false"\), File: ".*/storage/ipc/standby\.c"}
			  && $line =~ /PANIC|TRAP|terminated by signal (?!9:|15|2:|3:)|inconsistent page|\] (XX\w\d\d|22012|58P\d\d|53200) .*(ERROR|FATAL)|is corrupted/;
		}
	}
	return;
}

my %merges;
sub count_merges
{
	my ($rc, $out) = sql('primary', <<'EOF');
SELECT pg_relation_filenode(c.oid), s.merges FROM pg_class c JOIN pg_am a ON a.oid = c.relam,
	LATERAL hybrid_index_stats(c.oid) s WHERE a.amname LIKE 'hybrid%' AND c.relkind = 'i'
EOF
	foreach my $line (split /\n/, $out)
	{
		my ($file, $merges) = split /\|/, $line;
		my $before = $merges{$file} // 0;
		$count{merges} += $merges - $before if $merges > $before;
		$merges{$file} = $merges;
	}
	return;
}

sub check_server
{
	my ($server, $what) = @_;
	# The planner may prefer an index of the session beside, which ends the queries.  A
	# standby that replays merges all the time cannot check an index.
	my $excuse = $server eq 'standby' ? qr/conflict with recovery|changed while it was being checked|path "\w+" not taken/ : qr/path "\w+" not taken/;
	my ($rc, $out, $err) = sql($server, join('', map { "SELECT hyb_check('$_');\n" } @tables,
			$server eq 'primary' ? 'unlog' : ()) . same_script(@queries), 600);
	$count{"${server}_compared"} += () = $out =~ /^t$/mg;
	$count{checks}++;
	if ($rc != 0 && $out !~ /^f$/m && $err =~ $excuse)
	{
		$count{not_compared}++;
		return;
	}
	bad("$server, $what: $err") if $rc != 0 || $out =~ /^f$/m;
	return;
}

sub check_serializable
{
	my ($what) = @_;
	my $broken = must('primary', <<'EOF' . ($has_hot ? HotTable::broken_sql() : ''));
SELECT 'pair', p, sum(v), count(*) FROM pair GROUP BY p HAVING sum(v) < 0 OR count(*) <> 2
UNION ALL SELECT 'booking', k, 0, count(*) FROM booking GROUP BY k HAVING count(*) > 1
EOF
	bad("serializable transactions, $what: $broken") if $broken ne '';
	return;
}

sub finish_prepared
{
	my $gids = must('primary', 'SELECT gid FROM pg_prepared_xacts');
	foreach my $gid (split /\n/, $gids)
	{
		must('primary', (rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$gid'");
		$count{prepared}++;
	}
	return;
}

sub drop_invalid
{
	my $names = must('primary', 'SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid');
	must('primary', "DROP INDEX $_") foreach split /\n/, $names;
	must('primary', 'DROP TABLE IF EXISTS fresh; CALL hybrid_convert_table(\'pair\'); CALL hybrid_convert_table(\'booking\')');
	must('primary', HotTable::restore_sql()) if $has_hot;
	return;
}

sub wait_replayed
{
	my $lsn = must('primary', 'SELECT pg_current_wal_insert_lsn()');
	foreach (1 .. 1200)
	{
		my ($rc, $out) = sql('standby', "SELECT pg_last_wal_replay_lsn() >= '$lsn'");
		return 1 if $rc == 0 && $out =~ /^t/;
		if (!postmaster('standby'))
		{
			bad('the standby has stopped');
			start('standby');
		}
		sleep(0.1);
	}
	bad('the standby does not catch up');
	return 0;
}

# Without full-page images, recovery may find zeroes in place of pages of files that
# are dropped later.  The server's consistency check takes them for damage, so it is
# off while these images are, and until a checkpoint after that.
my $full_pages = 1;
sub toggle_full_page_writes
{
	$full_pages = !$full_pages;
	foreach my $set (
		$full_pages
		? ('full_page_writes = on', 'wal_consistency_checking = \'generic\'')
		: ('wal_consistency_checking = \'\'', 'full_page_writes = off'))
	{
		must('primary', "ALTER SYSTEM SET $set");
		must('primary', 'SELECT pg_reload_conf()');
		sleep(0.2);
		must('primary', 'CHECKPOINT');
	}
	return;
}

# ---- whole databases ----

# Databases copied from "base": name => [OID, tablespace].  OIDs are few, and
# come again.
my %databases;
my $database_names = 0;

sub small_tables { return int($opt{indexes} / 4); }

# Rows of a database by its table and by each of its indexes, and the check.
sub check_database
{
	my ($server, $db, $what) = @_;
	my ($rc, $out, $err) = sql($server, <<'EOF', 300, $db);
SET client_min_messages = error;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
SELECT 'table', count(*), sum(id) FROM w;
SET enable_seqscan = off; SET enable_indexscan = on;
SELECT 'w_id', count(*), sum(id) FROM w WHERE id > -1;
SELECT 'w_s', count(*), sum(id) FROM w WHERE s >= '';
SELECT 'w_h', count(*), sum(id) FROM w WHERE hashint8(id) >= -2147483648;
COMMIT;
SELECT hybrid_index_check(i, true) FROM unnest('{w_id,w_s,w_h}'::regclass[]) i;
EOF
	my %said = map { /^(\w+)\|(.*)/ ? ($1 => $2) : () } split /\n/, $out;
	$count{"${server}_compared"} += 3;
	if ($rc != 0 && $server eq 'standby' && $err =~ /conflict with recovery|terminating connection/)
	{
		$count{not_compared}++;
		return;
	}
	bad("$server, database $db $what: $err") if $rc != 0;
	bad("$server, database $db $what: $_ has $said{$_} for $said{table}")
	  foreach grep { $rc == 0 && $said{$_} ne $said{table} } qw(w_id w_s w_h);
	return;
}

# Some operations on whole databases, with work inside them.  True if one of
# them may have copied directories.
sub work_on_databases
{
	my $inserted = 1000 * (1 + int(rand(1 << 30)));
	my $copied = 0;
	my @done;

	foreach (1 .. 4 + int(rand(5)))
	{
		my @names = sort keys %databases;
		my $db = @names ? $names[rand @names] : undef;
		my $space = ('pg_default', 'place1', 'place2')[rand 3];
		my $what = rand();

		if (!defined $db || ($what < 0.3 && @names < 3))
		{
			my %used = map { $_->[0] => 1 } values %databases;
			my ($oid) = grep { !$used{$_} } 72001 .. 72004;
			my $new = 'd' . ++$database_names;
			my $strategy = rand() < 0.5 ? 'file_copy' : 'wal_log';

			must('primary', "CREATE DATABASE $new TEMPLATE base STRATEGY $strategy TABLESPACE $space OID = $oid");
			$databases{$new} = [ $oid, $space ];
			$copied = 1 if $strategy eq 'file_copy';
			push @done, "copy $new";
		}
		elsif ($what < 0.4)
		{
			must('primary', "DROP DATABASE $db WITH (FORCE)");
			delete $databases{$db};
			push @done, "drop $db";
		}
		elsif ($what < 0.6)
		{
			next if $databases{$db}[1] eq $space;
			must('primary', "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '$db'");
			# a worker may come in between
			my ($rc, $out, $err) = sql('primary', "ALTER DATABASE $db SET TABLESPACE $space");
			if ($rc == 0) { $databases{$db}[1] = $space; $copied = 1; }
			elsif ($err !~ /is being accessed by other users|are already in tablespace/) { bad("moving database $db: $err"); }
			push @done, "move $db to $space";
		}
		elsif ($what < 0.65)
		{
			my $new = 'd' . ++$database_names;
			must('primary', "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '$db'");
			my ($rc, $out, $err) = sql('primary', "ALTER DATABASE $db RENAME TO $new");
			if ($rc == 0) { $databases{$new} = delete $databases{$db}; }
			elsif ($err !~ /is being accessed by other users/) { bad("renaming database $db: $err"); }
			push @done, "rename $db to $new";
		}
		else
		{
			$inserted += 1000;
			must('primary', (
				"INSERT INTO w SELECT g, md5(g::text) FROM generate_series($inserted, $inserted + 400) g;",
				"DELETE FROM w WHERE id % 7 = 3;\nVACUUM w;",
				"SELECT count(hybrid_merge(i)) FROM unnest('{w_id,w_s,w_h}'::regclass[]) i;",
				"ALTER INDEX w_h SET TABLESPACE place" . (1 + int(rand(2))) . ";",
				"BEGIN;\nINSERT INTO w SELECT g, '' FROM generate_series($inserted, $inserted + 300) g;\nROLLBACK;")[rand 5], $db);
			push @done, "work in $db";
		}
		$count{databases}++;
	}
	check_database('primary', $_, 'after ' . join(', ', @done)) foreach sort keys %databases;
	return $copied;
}

# Some of the many small indexes.
sub work_on_small_indexes
{
	my $tables = small_tables() or return;

	foreach (1 .. 12)
	{
		my $table = 'small_' . (1 + int(rand($tables)));
		must('primary', <<EOF);
INSERT INTO $table SELECT g, md5(g::text) FROM generate_series(1, 1 + (random() * 80)::int) g;
DELETE FROM $table WHERE k % 5 = (random() * 4)::int;
EOF
		my $answer = must('primary', <<EOF . ($_ % 3 ? '' : "VACUUM $table;\n") . "SELECT hyb_check('$table');");
SELECT hyb_same('SELECT k FROM $table WHERE k > 20', 'index bitmap');
SELECT hyb_same('SELECT s, k FROM $table WHERE s > ''8''', 'index');
EOF
		bad("$table: $answer") if $answer ne "t\nt\nt";
		$count{small_indexes} += 4;
	}
	return;
}

# ---- rounds ----

sub round
{
	my ($number) = @_;
	my $seconds = 3 + rand(9);
	my $base = "$dir/round";
	my @files;
	my $clients_log = "$base.clients.log";
	my $beside_log = "$base.beside.log";
	my $converter_log = "$base.converter.log";
	my %compare = map { $_ => [ "$base.$_.log", "$base.$_.stop" ] } keys %port;

	unlink glob("$base.*.stop"), glob("$base.*.log");
	$updated = @builds > 1 && rand() < 0.25;
	foreach my $name (sort keys %scripts)
	{
		(my $file = "$dir/script.$name") =~ s/@(\d+)$//;
		my $weight = $1;
		write_file($file, $scripts{$name});
		push @files, '-f', "$file\@$weight";
	}
	my $clients = spawn($clients_log, 'pgbench', '-n', '-p', $port{primary}, '-c', $opt{clients},
		'-j', '2', '-T', int($seconds) + 30, '--max-tries=20', @files);

	my $beside_file = "$base.beside.sql";
	write_file($beside_file, join('', map { $beside[rand @beside] . "\n" } 1 .. 400));
	my $beside = spawn($beside_log, 'psql', '-XAtq', '-p', $port{primary}, '-f', $beside_file);
	write_file("$base.converter.sql", "CALL change_method('pair');\nCALL change_method('booking');\nSELECT pg_sleep(0.1);\n" x 200);
	my $converter = spawn($converter_log, 'psql', '-XAtq', '-p', $port{primary}, '-f', "$base.converter.sql");
	my %pids = map { $_ => comparing_process($_, @{ $compare{$_} }) } keys %port;
	my @race = ("$base.race.log", "$base.race.stop");
	my $race = racing_process(@race);

	my @until = map { time + $_ * $seconds } rand(), 1;
	foreach my $until (@until)
	{
		while (time < $until)
		{
			sleep(rand(1));
			disturb() if rand() < 0.5;
		}
		next unless $updated && $until == $until[0];
		$build = (grep { $_ ne $build } @builds)[rand(@builds - 1)];
		install_build();
		$count{builds}++;
	}
	toggle_full_page_writes() if rand() < 0.3;
	# In half of the rounds each statement of the race has to end before the fault.  No
	# fault but that of the postmaster is sure to end a session that is stuck.
	if (rand() < 0.5)
	{
		write_file($race[1], '');
		reap($race, 200);
		$race = undef;
	}
	my $fault = read_file($race[0]) =~ /^RACE/m ? fault('postmaster') : fault() // 'nothing';
	restart_updated($fault) if $updated;

	kill 'TERM', $beside, $converter;
	must('primary', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name ~ '^(psql|pgbench|race: .*)$' AND pid <> pg_backend_pid()});
	reap($_, 60) foreach $clients, $beside, $converter;
	my $text = read_file($clients_log);
	$count{transactions} += $1 if $text =~ /actually processed: (\d+)/;
	if ($text =~ /script\.serial\n.*?- (\d+) transactions.*?failed transactions: (\d+).*?transactions retried: (\d+)/s)
	{
		$count{serializable} += $1;
		$count{failed} += $2;
		$count{retried} += $3;
	}
	bad("clients: $1") while $text =~ /^(.*(?:division by zero|is corrupted|duplicate key|statement timeout).*)$/mg;
	$text =~ s/^.*(?:$excused).*$//mg;
	bad("clients: $1") while $text =~ /^(.*aborted in command.* ERROR: .*)/mg;
	$text = read_file($beside_log) . read_file($converter_log);
	bad("beside: $1") while $text =~ /^(.*(?:is corrupted|could not create unique index|lacks|missing|statement timeout).*)$/mg;
	collect($_, @{ $compare{$_} }[0], $pids{$_}, @{ $compare{$_} }[1]) foreach sort keys %port;
	collect_race($race[0], $race, $race[1]);

	finish_prepared();
	$count{conversions} = must('primary', 'SELECT count(*) FROM conversions');
	drop_invalid();
	check_serializable("after $fault");
	check_server('primary', "after $fault");
	count_merges();
	if (rand() < 0.3)
	{
		must('primary', join('', map { "VACUUM $_;\n" } @tables));
		check_server('primary', "after $fault and VACUUM");
	}
	my $copied = rand() < 0.5 && work_on_databases();
	work_on_small_indexes();
	# A standby that replays a copied directory twice may not find it where it
	# was, or with other files: the server protects only the primary from that.
	must('primary', 'CHECKPOINT') if $copied;
	if (wait_replayed())
	{
		must('standby', 'CHECKPOINT') if $copied;
		check_server('standby', "after $fault");
		check_database('standby', $_, "after $fault") foreach sort keys %databases;
	}
	check_logs();
	$count{rounds}++;
	note(sprintf 'round %d (%.0f s): %s; %s', $number, $seconds, $fault,
		join(', ', map { "$_ $count{$_}" } qw(transactions merges standby_compared)))
	  if $number % 10 == 0 || $opt{minutes} < 3;
	return;
}

sub report
{
	my $killed = 0;
	$killed += $kills{$_} foreach keys %kills;
	print "\n";
	printf "seed %d, %.1f minutes, %d rounds\n", $opt{seed}, (time - $started) / 60, $count{rounds};
	printf "%-28s %d (%s)\n", 'kills and restarts survived', $killed,
	  join(', ', map { "$_ $kills{$_}" } sort keys %kills);
	printf "%-28s %d\n", @$_
	  foreach [ 'cancelled or terminated', $count{cancelled} ],
	  [ 'transactions', $count{transactions} ], [ 'serializable ones', $count{serializable} ],
	  [ 'of them tried again', $count{retried} ], [ 'of them given up', $count{failed} ],
	  [ 'tables converted, reverted', $count{conversions} ],
	  [ 'other builds installed', $count{builds} ], [ 'merges', $count{merges} ],
	  [ 'queries of races', $count{raced} ],
	  [ 'comparisons, primary', $count{primary_compared} ],
	  [ 'comparisons, standby', $count{standby_compared} ],
	  [ 'comparisons cut short', $count{not_compared} ],
	  [ 'prepared, found after a kill', $count{prepared} ],
	  [ 'work on whole databases', $count{databases} ], [ 'small indexes worked on', $count{small_indexes} ],
	  [ 'whole checks', $count{checks} ], [ 'differences', scalar @bad ];
	return;
}

my $main = $$;
$SIG{INT} = $SIG{TERM} = sub { exit 1; };
END
{
	if (defined $main && $$ == $main)
	{
		my $status = $?;
		foreach my $server (keys %port)
		{
			stop($server, 'immediate') if postmaster($server);
		}
		$? = $status;
	}
}

note("seed $opt{seed}, " . `postgres --version`);
setup();
my $number = 0;
while (time < $deadline && @bad < 20)
{
	next if eval { round(++$number); 1 };
	bad("round $number was not finished: $@");
	last;
}
report();
exit(@bad ? 1 : 0);
