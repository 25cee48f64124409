
# What an error, or a cancel, leaves behind in its session: nothing.  Settings are as
# they were, and a worker finishes the merge that a session began.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('left_behind', <<CONF);
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
hybridindex.background_merge = off
CONF
my $points = has_points($node);
my $flag = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points') if $points;

# ---- settings that merges change ----

$node->safe_psql('postgres', <<'SQL');
CREATE ROLE owner;
CREATE TABLE t (k int, s text COLLATE "C");
CREATE INDEX t_s ON t USING hybrid (s text_hope_ops);
ALTER TABLE t OWNER TO owner;
SQL
my $heard = 0;

# Whatever differs from what was there when the session began is printed.
sub unchanged
{
	my ($when) = @_;
	$heard++;
	return <<SQL;
SELECT '$when: changed: ' || s.name || ' = ' || s.setting FROM pg_catalog.pg_settings s JOIN pg_temp.was w USING (name) WHERE s.setting <> w.setting;
SELECT '$when: the user is ' || current_user WHERE current_user <> session_user;
SELECT '$when: locked: ' || l.mode FROM pg_catalog.pg_locks l WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'object';
CREATE TEMP TABLE may_be_made ();
DROP TABLE pg_temp.may_be_made;
DO \$\$ BEGIN RAISE NOTICE 'heard'; END \$\$;
SQL
}

my $learned = "SELECT learned FROM hybrid_dictionary_info('t_s');";
my $rows = "SELECT i, 'key.' || md5(i::text) FROM generate_series(1, 700) i";

# Three merges, each of keys that have no dictionary yet: in a subtransaction, in one
# of PL/pgSQL, and alone.  If they fail, a fourth one ends the last of them.
sub merges
{
	my ($name, $fails) = @_;
	my $again = "TRUNCATE t; INSERT INTO t $rows;";
	my $merge = "SELECT hybrid_merge('t_s') > 0 \\g /dev/null\n";

	return "$again BEGIN; SAVEPOINT a; $merge" . ($fails ? 'ROLLBACK TO a;' : $learned)
	  . unchanged("$name, in a subtransaction") . 'COMMIT;' . unchanged("$name, at its end")
	  . "$again BEGIN; DO \$\$ BEGIN PERFORM hybrid_merge('t_s'); @{[ $fails ? q{EXCEPTION WHEN internal_error THEN RAISE NOTICE 'caught';} : '' ]} END \$\$;"
	  . unchanged("$name, in a block") . 'COMMIT;' . ($fails ? '' : $learned)
	  . "$again $merge" . unchanged("$name, alone") . ($fails ? '' : $learned);
}
my $script = <<'SQL' . merges('learning', 0);
\set ON_ERROR_STOP 0
SET lock_timeout = '77s';
SET client_min_messages = notice;
SET search_path = public, pg_catalog;
CREATE TEMP TABLE was AS SELECT name, setting FROM pg_settings;
SQL
my @failing = $points ? ('learn-frozen', 'learn-reserved', 'learn-written', 'learn-installed', 'retire', 'merge-between') : ();
$script .= "SELECT injection_points_set_local() \\g /dev/null\n" if $points;
$script .= "SELECT injection_points_attach('hybrid-$_', 'error') \\g /dev/null\n" . merges($_, 1)
  . "SELECT injection_points_detach('hybrid-$_') \\g /dev/null\n" foreach @failing;
$script .= "SELECT hybrid_merge('t_s') >= 0; SELECT hyb_check('t');";

# The first one waits in vain for the cursor to go.
$script .= "TRUNCATE t; INSERT INTO t $rows; \\! touch $flag/used\n";
$script .= <<SQL . unchanged('a lock that is not to be had') . "$learned \\! touch $flag/merged\n";
\\! until [ -e $flag/held ]; do sleep 0.02; done
SELECT hybrid_merge('t_s');
SQL
my $session = start_psql($node, $script);
wait_file("$flag/used");
my $cursor = $node->background_psql('postgres');
$cursor->query_safe('BEGIN; SET LOCAL enable_seqscan = off; DECLARE c CURSOR FOR SELECT s FROM t ORDER BY s; FETCH 1 FROM c');
append_to_file("$flag/held", '');
wait_file("$flag/merged");
$cursor->quit;
finish_psql($session);
is($session->{out}, "t\n" x 3 . "t\n" x 2 . "700\nf\n", 'settings, the user and locks are as before');
my @said = $session->{err} =~ /(?:NOTICE: |ERROR: ) (heard|caught|.*triggered.*|(?!index "t_s" stores).*)$/mg;
is(scalar(grep { $_ eq 'heard' } @said), $heard, 'notices come to the client');
is(join(' ', grep { $_ ne 'heard' } @said), join(' ', map { ("error triggered for injection point hybrid-$_", 'caught', "error triggered for injection point hybrid-$_") } @failing),
	'merges failed where they were to');

# ---- lock_timeout, which a comparison function sets in a merge ----

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION setting_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM set_config('lock_timeout', '5s', true) WHERE current_setting('test.set', true) <> '';
	IF current_setting('test.set', true) = 'and fail' THEN
		RAISE EXCEPTION 'fails';
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CALL hyb_operator_class('setting');
CREATE TABLE setting (k int) WITH (autovacuum_enabled = off);
CREATE INDEX setting_k ON setting USING hybrid (k setting_ops);
SQL
foreach my $how ('locally', 'and fail')
{
	foreach my $statement ('INSERT INTO setting SELECT generate_series(1, 5000)', 'VACUUM setting')
	{
		is($node->safe_psql('postgres', <<SQL), '77s', "lock_timeout that a comparison has set, $how: $statement");
SET hybridindex.merge_floor = 10;
SET test.set = '$how';
SET lock_timeout = '77s';
$statement;
SHOW lock_timeout;
SQL
	}
}

# ---- a wait for another session's merge, which is cancelled ----

# A comparison function holds the first merge up, in its merge lock.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION held_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1) WHERE current_setting('left_behind.held', true) = 'on';
	RETURN btint4cmp(a, b);
END $$;
CALL hyb_operator_class('held');
CREATE TABLE h (k int) WITH (autovacuum_enabled = off);
CREATE INDEX h_k ON h USING hybrid (k held_ops);
INSERT INTO h SELECT generate_series(1, 100);
DELETE FROM h WHERE k > 50;
SQL
my $holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my $held = start_psql($node, "SET left_behind.held = 'on'; SELECT hybrid_merge('h_k');");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") or die "no merge is held: $held->{err}";
my $waits = "SET statement_timeout = '500ms'; SELECT hybrid_merge('h_k'); RESET statement_timeout;";
$session = start_psql($node, <<SQL);
\\set ON_ERROR_STOP 0
SET lock_timeout = '77s';
$waits
SHOW lock_timeout;
BEGIN;
SAVEPOINT a;
$waits
ROLLBACK TO a;
SHOW lock_timeout;
COMMIT;
SET statement_timeout = '500ms';
VACUUM (INDEX_CLEANUP on) h;
SHOW lock_timeout;
SQL
finish_psql($session);
is(scalar(() = $session->{err} =~ /due to statement timeout/g), 3, 'two merges and VACUUM are cancelled while they wait for a merge');
is($session->{out}, "77s\n" x 3, 'lock_timeout is what it was');
$holder->quit;
ok(finish_psql($held), 'the merge ends') or diag $held->{err};

# ---- a merge that ends early ----

# No insertion follows, and nothing else asks for a worker.  A transaction that catches
# the error goes on until a worker has come.
$node->append_conf('postgresql.conf', 'hybridindex.background_merge = on');
$node->reload;
$node->safe_psql('postgres', 'CREATE TABLE m (a int) WITH (autovacuum_enabled = off); CREATE INDEX m_a ON m USING hybrid (a)');

sub merge_ends
{
	my ($how, @script) = @_;

	unlink "$flag/finished";
	# several leaves, so there are several steps
	$node->safe_psql('postgres', "INSERT INTO m SELECT hashint4(i) FROM generate_series(1, 20000) i; SELECT hybrid_merge('m_a')");
	$node->safe_psql('postgres', 'INSERT INTO m SELECT hashint4(-i) FROM generate_series(1, 5000) i');

	# the first read of an index asks for a worker, if it needs one
	$node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM m WHERE a > 0');
	my $early = start_psql($node, "SELECT injection_points_set_local() \\g /dev/null\n", @script);
	if ($how =~ /_backend/)
	{
		my $pid = held_at($node, 'merge-between', $early);
		$node->safe_psql('postgres', "SELECT $how($pid)");
	}
	wait_file("$flag/caught") if $how =~ /caught/;
	ok($node->poll_query_until('postgres', "SELECT NOT merge_running AND dynamic_entries = 0 FROM hybrid_index_stats('m_a')"),
		"$how: a worker finishes the merge");
	append_to_file("$flag/finished", '');
	finish_psql($early);
	like($early->{err}, qr/hybrid-merge-between|canceling|terminating/, "$how: the merge ended early");
	$node->safe_psql('postgres', 'TRUNCATE m');
	return;
}
SKIP:
{
	skip 'NOT TESTED: merges that end early, since this server has no injection points', 1 if !$points;
	my $merge = "SELECT hybrid_merge('m_a');";
	my ($fail, $wait) = map { "SELECT injection_points_attach('hybrid-merge-between', '$_') \\g /dev/null\n" } 'error', 'wait';

	merge_ends('an error', $fail, $merge);
	merge_ends('an error that is caught', $fail, "BEGIN; DO \$\$ BEGIN PERFORM hybrid_merge('m_a'); EXCEPTION WHEN internal_error THEN RAISE WARNING '%', sqlerrm; END \$\$;
\\! touch $flag/caught
\\! until [ -e $flag/finished ]; do sleep 0.02; done
COMMIT;");
	merge_ends('pg_cancel_backend', $wait, $merge);
	merge_ends('pg_terminate_backend', $wait, $merge);
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
