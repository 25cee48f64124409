
# After a while without inserts, a worker merges the log of an index and cuts its
# file.  It does so without VACUUM, and in no other process's way.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('quiet_files', <<CONF, allows_streaming => 1);
hybridindex.quiet_time = 300
restart_after_crash = on
CONF
my $points = has_points($node);

$node->safe_psql('postgres', <<SQL);
CREATE FUNCTION make(name text) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	EXECUTE format('CREATE TABLE %I (k int8, s text COLLATE "C") WITH (autovacuum_enabled = off)', name);
	EXECUTE format('CREATE INDEX %I ON %I USING hybrid (k)', name || '_k', name);
	EXECUTE format('CREATE INDEX %I ON %I USING hybrid (s) INCLUDE (k)', name || '_s', name);
END
\$\$;
CREATE FUNCTION fill(name text, n int) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	EXECUTE format('INSERT INTO %I SELECT hashint8extended((random() * 1e15)::int8, 0), md5(g::text || random()) FROM generate_series(1, %s) g', name, n);
END
\$\$;
CREATE FUNCTION fill_locked(name text, n int, times int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	EXECUTE format('LOCK TABLE %I', name);
	FOR i IN 1 .. times LOOP
		PERFORM fill(name, n);
	END LOOP;
END
\$\$;
CREATE VIEW files AS
	SELECT c.relname, relnamespace, s.* FROM pg_class c JOIN pg_am a ON a.oid = c.relam AND amname = 'hybrid',
		hybrid_index_stats(c.oid) s;
SQL

# fill_locked keeps workers away until it commits.  On a busy machine a statement may
# pause for longer than quiet_time.  A merge of its first rows would be right, but the
# rest may be too few for another one.

# Pages of a table's indexes.
sub pages { return value_of($node, "sum(total_pages) FROM files WHERE relname ~ '^$_[0]_[ks]\$'"); }

sub sound
{
	my ($what, $table) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	same_answers($node, $what,
		{ "SELECT k FROM $table ORDER BY k" => 'order', "SELECT s, k FROM $table WHERE s < '8' ORDER BY s" => 'index bitmap' }, [$table]);
	return;
}

# Nothing is left in the logs, and little of the files is free.
sub comes_to_rest
{
	my ($what, $table) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($node->poll_query_until('postgres', <<SQL), "$what: nothing is left in the logs, and little is free") or diag value_of($node, "string_agg(f::text, ' ') FROM files f");
SELECT bool_and(dynamic_entries = 0 AND NOT merge_running AND free_pages < greatest(20, total_pages / 12))
FROM files WHERE relname ~ '^${table}_[ks]\$'
SQL
	sound($what, $table);
	return;
}

# ---- after a load ----

$node->safe_psql('postgres', "SELECT make('loaded')");
$node->safe_psql('postgres', "SELECT fill('loaded', 500)") foreach 1 .. 60;

# from here on only what is quiet is merged
$node->append_conf('postgresql.conf', 'hybridindex.merge_floor = 1000000');
$node->reload;
$node->safe_psql('postgres', "SELECT fill_locked('loaded', 27000)");
my $before = pages('loaded');
comes_to_rest('loaded', 'loaded');
my $after = pages('loaded');
cmp_ok($after, '<', $before, 'the files are shorter');
$node->safe_psql('postgres', 'REINDEX TABLE loaded');
cmp_ok($after, '<', 1.3 * pages('loaded'), 'the files are hardly longer than after REINDEX');
no_worker($node, 'the worker leaves');

# few rows, which no merge was asked for
$node->safe_psql('postgres', "SELECT make('small')");
$node->safe_psql('postgres', "SELECT fill_locked('small', 200, 135)");
comes_to_rest('few rows', 'small');

# ---- while rows come ----

# A page of the log is no reason for a merge.
my $merges = value_of($node, "sum(merges) FROM files WHERE relname ~ '^small'");
foreach (1 .. 20)
{
	$node->safe_psql('postgres', "SELECT fill('small', 1)");
	select(undef, undef, undef, 0.1);
}
select(undef, undef, undef, 1.5);
is(value_of($node, "sum(merges) FROM files WHERE relname ~ '^small'"), $merges, 'a page of the log is not worth a merge');

# An application that pauses again and again has a short log beside a large index.
# The log is left alone too, until merges would have written as much.
my $written = value_of($node, "sum(written_bytes) FROM files WHERE relname ~ '^loaded'");
foreach (1 .. 6)
{
	$node->safe_psql('postgres', "SELECT fill('loaded', 500)");
	select(undef, undef, undef, 0.8);
}
is(value_of($node, "sum(written_bytes) FROM files WHERE relname ~ '^loaded'"), $written, 'some pages with entries for many leaves are not merged');

# ---- what is not to be cut, and what cannot be ----

$node->safe_psql('postgres', "SELECT make('whole')");
$node->safe_psql('postgres', 'ALTER TABLE whole SET (vacuum_truncate = off)');
$node->safe_psql('postgres', "SELECT fill_locked('whole', 27000)");
ok($node->poll_query_until('postgres', "SELECT bool_and(dynamic_entries = 0) FROM files WHERE relname ~ '^whole'"),
	'a table whose files are not to be cut: merged');
my $length = pages('whole');

# A transaction that has read the indexes holds the cut up, and nothing else.  The table
# cannot be locked beside it.
$node->append_conf('postgresql.conf', 'hybridindex.quiet_time = 2000');
$node->reload;
$node->safe_psql('postgres', "SELECT make('held')");
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN');
$reader->query_safe("SET enable_seqscan = off; SELECT count(k) FROM held WHERE k > 0; SELECT count(s) FROM held WHERE s > ''");
$node->safe_psql('postgres', "SELECT fill('held', 27000)");
ok($node->poll_query_until('postgres', "SELECT bool_and(dynamic_entries = 0) FROM files WHERE relname ~ '^held'"),
	'a session has the indexes open: merged');
select(undef, undef, undef, 3.0);
my $held = pages('held');
$reader->query_safe('COMMIT');
$reader->quit;
comes_to_rest('held no more', 'held');
cmp_ok(pages('held'), '<', $held, 'the file shrinks when the session is gone');
is(pages('whole'), $length, 'the table whose files are not to be cut has them whole');
sound('whole', 'whole');

# turned off
$node->append_conf('postgresql.conf', 'hybridindex.quiet_time = -1');
$node->reload;
$node->safe_psql('postgres', "SELECT make('off')");
$node->safe_psql('postgres', "SELECT fill_locked('off', 27000)");
$node->safe_psql('postgres', 'VACUUM off');
no_worker($node, 'the worker leaves');
is(value_of($node, "sum(dynamic_entries) FROM files WHERE relname ~ '^off_'"), '54000', 'turned off');

# VACUUM has a worker look
$node->append_conf('postgresql.conf', 'hybridindex.quiet_time = 300');
$node->reload;
$node->safe_psql('postgres', 'VACUUM off');
comes_to_rest('VACUUM asks', 'off');

# a synchronous standby that is away keeps no worker: cutting takes a transaction ID
{
	local $ENV{PGOPTIONS} = '-c synchronous_commit=local';
	$node->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'");
	$node->reload;
	$node->safe_psql('postgres', "SELECT make('away')");
	$node->safe_psql('postgres', "SELECT fill_locked('away', 27000)");
	comes_to_rest('no synchronous standby', 'away');
	is(value_of($node, "count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"), '0', 'no worker waits for it');
	$node->append_conf('postgresql.conf', "synchronous_standby_names = ''");
	$node->reload;
}

# ---- held ----

SKIP:
{
	skip 'this server has no injection points', 1 if !$points;
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');

	my $rests = "SELECT bool_and(dynamic_entries = 0 AND free_pages < 20) FROM files WHERE relname =";

	# a worker that shrinks a file, held at a point
	my $hold = sub {
		my ($table, $point) = @_;
		$node->safe_psql('postgres', "SELECT make('$table')");
		$node->safe_psql('postgres', "DROP INDEX ${table}_s");
		attach_point($node, $point);
		$node->safe_psql('postgres', "SELECT fill_locked('$table', 27000)");
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-$point'"),
			"$table: held at $point");
		return;
	};
	my $let_go = sub {
		my ($point) = @_;
		release_point($node, $point);
		return;
	};

	# VACUUM does not take the worker's snapshot for that of a query
	$node->safe_psql('postgres', "SELECT make('seen'); ALTER TABLE seen SET (vacuum_truncate = off); SELECT injection_points_attach('hybrid-merge-between', 'wait')");
	$node->safe_psql('postgres', "INSERT INTO seen SELECT g, g FROM generate_series(1, 27000) g");
	ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'hybrid-merge-between'"),
		'a worker is held in a merge');
	$node->safe_psql('postgres', "INSERT INTO seen SELECT g, g FROM generate_series(1, 1000) g");
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-merge-between')");
	$node->safe_psql('postgres', 'VACUUM seen');
	is(value_of($node, "relallvisible = relpages FROM pg_class WHERE relname = 'seen'"), 't', 'VACUUM finds all rows visible to all');
	ok(wake_all($node, 'merge-between'), 'the workers go on');

	# DDL that waits for the table or the index gets it before the file is cut, and
	# the file is cut later
	foreach my $ddl ('ALTER TABLE ddl1 ALTER k SET STATISTICS 10', 'ALTER INDEX ddl2_k SET TABLESPACE pg_default')
	{
		my ($table) = $ddl =~ /(ddl\d)/;
		$hold->($table, 'shrink-moved');
		attach_point($node, 'quiet-moved');
		my $session = start_psql($node, "$ddl;");
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER%'"),
			"waits: $ddl");
		$let_go->('shrink-moved');
		ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'ALTER%$table%'"),
			'the worker gives up for it');
		finish_psql($session);
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-quiet-moved'"),
			'the worker comes back');
		$let_go->('quiet-moved');
		ok($node->poll_query_until('postgres', "$rests '${table}_k'"), 'cut after all');
		same_answers($node, 'cut after all', { "SELECT k FROM $table ORDER BY k" => 'order' }, [$table]);
	}

	# rows that come between the moves and the cut
	$hold->('rows', 'quiet-moved');
	$node->safe_psql('postgres', "SELECT fill('rows', 3000)");
	$let_go->('quiet-moved');
	same_answers($node, 'rows came before the cut', { 'SELECT k FROM rows ORDER BY k' => 'order' }, ['rows']);
	$node->safe_psql('postgres', "SELECT fill_locked('rows', 27000)");
	ok($node->poll_query_until('postgres', "$rests 'rows_k'"), 'the file shrinks the next time');
	same_answers($node, 'it shrank', { 'SELECT k FROM rows ORDER BY k' => 'order' }, ['rows']);

	# killed
	foreach my $point ('shrink-moved', 'quiet-moved', 'cut-begun', 'cut-made')
	{
		(my $table = "killed_$point") =~ s/-/_/;
		$hold->($table, $point);
		my $from = -s $node->logfile;
		my $pid = value_of($node, "pid FROM pg_stat_activity WHERE wait_event = 'hybrid-$point'");
		$node->safe_psql('postgres', 'SELECT txid_current()');
		kill 'KILL', $pid;
		wait_for_restart($node, $from);
		same_answers($node, "killed at $point", { "SELECT k FROM $table ORDER BY k" => 'order' }, [$table]);
		$node->safe_psql('postgres', "SELECT fill_locked('$table', 27000)");
		ok($node->poll_query_until('postgres', "$rests '${table}_k'"), 'the file shrinks the next time');
		same_answers($node, "after a kill at $point", { "SELECT k FROM $table ORDER BY k" => 'order' }, [$table]);
	}
}

no_crash($node, 'nothing crashed by itself');
$node->stop;
done_testing();
