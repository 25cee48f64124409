
# What an insert or VACUUM does for the index beside its own work may fail.  The
# statement does not: the error is in the server's log, once, and a worker tries again.
# But a cancel and a timeout are the statement's.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('beside', "hybridindex.background_merge = off\n");
my $points = has_points($node);
my $flag = PostgreSQL::Test::Utils::tempdir();

# How often a merge beside a statement has failed, by the server's log.
sub failures
{
	my $log = slurp_file($node->logfile);
	return scalar(() = $log =~ /LOG:  could not merge index/g);
}

# Insert until the index is merged again; what has failed is not tried for a second.
sub goes_on
{
	my ($table) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $merged;
	foreach (1 .. 600)
	{
		$node->safe_psql('postgres', "INSERT INTO $table SELECT 'more' || hashint4(g) FROM generate_series(1, 400) g");
		last if ($merged = stats($node, "${table}_k", 'merges > 0')) eq 't';
		select(undef, undef, undef, 0.1);
	}
	is($merged, 't', "$table: inserts merge again");
	is($node->safe_psql('postgres', "SELECT count(hybrid_index_check('${table}_k', true))"), 1, "$table: the index is right");
	return;
}

# ---- a comparison function that fails ----

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION failing_cmp(text, text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('beside.fails', true) = 'on' THEN
		RAISE 'no comparison today';
	END IF;
	RETURN pg_catalog.bttextcmp($1, $2);
END $$;
CALL hyb_operator_class('failing', 'text');
CREATE TABLE compared (k text) WITH (autovacuum_enabled = off);
CREATE INDEX compared_k ON compared USING hybrid (k failing_ops);
INSERT INTO compared SELECT 'x' || hashint4(g) FROM generate_series(1, 300) g;
SELECT count(*) FROM (SELECT k FROM compared ORDER BY k) x;
SQL
my ($ret, $out, $err) = $node->psql('postgres', <<'SQL');
SET client_min_messages = debug5;
SET beside.fails = on;
BEGIN;
INSERT INTO compared SELECT 'y' || hashint4(g) FROM generate_series(1, 2000) g;
SAVEPOINT s;
INSERT INTO compared SELECT 'y' || hashint4(g) FROM generate_series(2001, 3000) g;
ROLLBACK TO s;
DO $$ BEGIN FOR i IN 3001 .. 5000 LOOP INSERT INTO compared VALUES ('y' || hashint4(i)); END LOOP; END $$;
COMMIT;
VACUUM compared;
SQL
is($ret, 0, 'inserts and VACUUM do not fail by a comparison');
unlike($err, qr/ERROR|could not merge/, 'their client learns nothing of it') or diag $err;
is(failures(), 1, 'the log does, once');
like(slurp_file($node->logfile), qr/could not merge index "compared_k" beside a statement: no comparison today/, 'and says what has failed');
is($node->safe_psql('postgres', 'SELECT count(*) FROM compared'), 4300, 'all rows are there');
is(stats($node, 'compared_k', 'merges'), 0, 'nothing was merged');
goes_on('compared');

# ---- what the server reports of a command stays ----

my $copy = start_psql($node, <<SQL);
CREATE TABLE copied (k text);
CREATE INDEX copied_k ON copied USING hybrid (k);
COPY copied FROM PROGRAM 'seq 1 40000; touch $flag/copied; until [ -e $flag/seen ]; do sleep 0.05; done; echo 0';
SQL
wait_file("$flag/copied");
ok($node->poll_query_until('postgres', 'SELECT tuples_processed > 10000 FROM pg_stat_progress_copy'), 'COPY that merges shows its progress');
append_to_file("$flag/seen", '');
ok(finish_psql($copy), 'it ends') or diag $copy->{err};

# ---- held and failing steps ----

SKIP:
{
	skip 'NOT TESTED: steps that fail, since this server has no injection points', 1 if !$points;
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');
	my $before = failures();
	foreach my $point ('step-written', 'step-switch', 'freeze-closed', 'merge-finish', 'learn-written')
	{
		my $table = $point =~ s/-/_/r;
		my ($ops, $rows) = $point =~ /learn/ ? ('text_hope_ops', 30000) : ('text_ops', 5000);
		$node->safe_psql('postgres', <<SQL);
CREATE TABLE $table (k text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX ${table}_k ON $table USING hybrid (k $ops);
SET hybridindex.merge_floor = 1000000;
INSERT INTO $table SELECT 'key ' || hashint4(g) FROM generate_series(1, $rows) g;
SQL
		($ret, $out, $err) = $node->psql('postgres', <<SQL);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-$point', 'error');
BEGIN;
INSERT INTO $table SELECT 'new' || hashint4(g) FROM generate_series(1, 3000) g;
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode IN ('ExclusiveLock', 'AccessExclusiveLock') AND locktype IN ('object', 'relation');
COMMIT;
VACUUM $table;
SQL
		is("$ret $out", "0 \n\n0", "$point: the insert does not fail, and holds no lock") or diag $err;
		is(failures(), ++$before, "$point: one line in the log");
		goes_on($table);
	}

	# a cancel, and a timeout, reach the statement
	$node->safe_psql('postgres', "CREATE TABLE held (k text); CREATE INDEX held_k ON held USING hybrid (k)");
	my $insert = "INSERT INTO held SELECT 'x' || hashint4(g) FROM generate_series(1, 3000) g;";
	my $attach = "SELECT injection_points_set_local(), injection_points_attach('hybrid-step-written', 'wait');";
	my $session = start_psql($node, $attach, $insert);
	my $pid = held_at($node, 'step-written', $session) or diag $session->{err};
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	ok(!finish_psql($session), 'an insert that merges is cancelled');
	like($session->{err}, qr/canceling statement due to user request/, 'and says so');
	$session = start_psql($node, $attach, "SET statement_timeout = 2000; $insert");
	ok(!finish_psql($session), 'it ends at its timeout');
	like($session->{err}, qr/canceling statement due to statement timeout/, 'and says so');
	is(failures(), $before, 'no merge has failed');
	goes_on('held');

	# where workers fail, inserts of other sessions do not try
	$node->append_conf('postgresql.conf', "hybridindex.background_merge = on\n");
	$node->reload;
	$node->safe_psql('postgres', <<SQL);
CREATE TABLE shared (k text);
CREATE INDEX shared_k ON shared USING hybrid (k);
SET hybridindex.merge_floor = 1000000;
INSERT INTO shared SELECT 'x' || hashint4(g) FROM generate_series(1, 30000) g;
SELECT injection_points_attach('hybrid-step-written', 'error');
SQL
	$insert =~ s/held/shared/;
	$node->safe_psql('postgres', $insert);
	ok($node->wait_for_log(qr/ERROR:  error triggered for injection point hybrid-step-written/, 0), 'a worker fails');
	$before = failures();
	$node->safe_psql('postgres', $insert) foreach 1 .. 10;
	is(failures(), $before, 'inserts leave the index to it');
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-step-written')");
	ok($node->poll_query_until('postgres', merged('shared_k')), 'it merges when it can');
	is($node->safe_psql('postgres', "SELECT count(hybrid_index_check('shared_k', true))"), 1, 'the index is right');
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
