
# Two conditions that meet in a unique index.  An inserter that has lost several times
# has its turn, and finds that another transaction has inserted its key: it waits for
# that transaction without the turn.  A key comes in between the check and the append
# of an inserter that only notes whether there may be a conflict.  Needs a server with
# injection points (./dev pg 17, ./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('turns', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
EOF
need_points($node);

# All keys of an index on numeric meet, so that any append has a check repeated.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE n (n numeric, who text);
CREATE UNIQUE INDEX n_n ON n USING hybrid (n);
INSERT INTO n SELECT i, 'old' FROM generate_series(1, 100) i;
EOF
my $other_key = 2000;

# A session that is held in each search, and after it.
sub start_inserter
{
	my ($key) = @_;
	my $session = start_psql($node, <<EOF);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-dynamic-fetch', 'wait');
SELECT injection_points_attach('hybrid-unique-checked', 'wait');
INSERT INTO n VALUES ($key, 'inserter');
EOF
	go_on($session, undef, 'dynamic-fetch');
	go_on($session, 'dynamic-fetch', 'unique-checked');
	return $session;
}

# It leaves a point, and comes to another one.
sub go_on
{
	my ($session, $from, $to) = @_;
	$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-$from')") if defined $from;
	held_at($node, $to, $session) or die "no session came to $to: $session->{err}";
	return;
}

sub let_go
{
	my ($session, $from) = @_;
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-dynamic-fetch'), injection_points_detach('hybrid-unique-checked'), injection_points_wakeup('hybrid-$from')");
	return finish_psql($session);
}

sub has_turn
{
	return $node->safe_psql('postgres',
		"SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'object' AND objid = 'n_n'::regclass AND granted)") eq 't';
}

# After this number of searches in vain it gets its turn.
my $losses = 0;
my $session = start_inserter('1000.5');
while (!has_turn())
{
	die 'an inserter gets no turn' if $losses++ == 50;
	$node->safe_psql('postgres', 'INSERT INTO n VALUES (' . $other_key++ . ')');
	go_on($session, 'unique-checked', 'dynamic-fetch');
	last if has_turn();
	go_on($session, 'dynamic-fetch', 'unique-checked');
}
ok(let_go($session, 'dynamic-fetch'), 'an inserter that has its turn inserts') or diag $session->{err};

foreach my $end ('COMMIT', 'ROLLBACK')
{
	my $key = $end eq 'COMMIT' ? '1001.5' : '1002.5';
	my $holder = $node->background_psql('postgres');

	$session = start_inserter($key);
	foreach (2 .. $losses)
	{
		$node->safe_psql('postgres', 'INSERT INTO n VALUES (' . $other_key++ . ')');
		go_on($session, 'unique-checked', 'dynamic-fetch');
		go_on($session, 'dynamic-fetch', 'unique-checked');
	}
	$holder->query_safe("SET statement_timeout = '30s'");
	$holder->query_safe("BEGIN");
	$holder->query_safe("INSERT INTO n VALUES (${key}0, 'holder')");
	go_on($session, 'unique-checked', 'dynamic-fetch');
	ok(has_turn(), "$end: an inserter has its turn when its key is there");
	$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-dynamic-fetch')");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO n VALUES ($key,%' AND wait_event = 'transactionid'"),
		"$end: it waits for a transaction");
	ok(!has_turn(), "$end: and has no turn meanwhile");
	is($node->psql('postgres', "SET statement_timeout = '30s'; INSERT INTO n VALUES (" . $other_key++ . ')'), 0, "$end: another session inserts");
	$holder->query_safe('INSERT INTO n VALUES (' . $other_key++ . ')');
	$holder->query_safe($end);
	$holder->quit;
	go_on($session, undef, 'dynamic-fetch');
	my $inserted = let_go($session, 'dynamic-fetch');
	if ($end eq 'ROLLBACK')
	{
		ok($inserted, "$end: it inserts");
		is($session->{err}, '', "$end: and says nothing");
	}
	else
	{
		ok(!$inserted, "$end: it fails");
		like($session->{err}, qr/^\S+ ERROR:  duplicate key value violates unique constraint "n_n"/, "$end: since the key is there");
	}
	is($node->safe_psql('postgres', "SELECT who FROM n WHERE n = $key"), $end eq 'COMMIT' ? 'holder' : 'inserter', "$end: there is one row");
	ok(!has_turn(), "$end: no session has the turn in the end");
}
same_answers($node, 'the index is right', { 'SELECT n FROM n WHERE n > 0 ORDER BY n' => 'order' }, ['n']);

# ---- checks that only note a conflict ----

$node->safe_psql('postgres', <<EOF);
CREATE TABLE d (k int, who text, CONSTRAINT d_k UNIQUE (k) WITH (access_method = hybrid) DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE c (k int, who text);
CREATE UNIQUE INDEX c_k ON c USING hybrid (k);
EOF

# A session is held between its check and its append, while another one inserts the key
# and does something more.
sub start_checked
{
	my ($insert) = @_;
	my $first = start_psql($node, <<EOF);
LOAD 'hybridindex';
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-unique-checked', 'wait');
BEGIN;
$insert;
COMMIT;
EOF
	held_at($node, 'unique-checked', $first) or die "no session is held: $first->{err}";
	return $first;
}

my $key = 0;
foreach my $more ('', "SELECT hybrid_merge('d_k')", 'ROLLBACK')
{
	my $what = 'a deferred check' . ($more ? ", $more" : '');
	my $first = start_checked('INSERT INTO d VALUES (' . ++$key . ", 'first')");
	my $second = $node->background_psql('postgres');

	$second->query_safe('BEGIN');
	$second->query_safe("INSERT INTO d VALUES ($key, 'second')");
	$second->query_safe('COMMIT') if $more ne 'ROLLBACK';
	$node->safe_psql('postgres', $more) if $more =~ /merge/;
	release_point($node, 'unique-checked');
	if ($more eq 'ROLLBACK')
	{
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query = 'COMMIT;' AND wait_event = 'transactionid'"),
			"$what: the commit waits for the other transaction");
		$second->query_safe('ROLLBACK');
		ok(finish_psql($first), "$what: and succeeds") or diag $first->{err};
	}
	else
	{
		ok(!finish_psql($first), "$what: the commit fails");
		like($first->{err}, qr/duplicate key value violates unique constraint "d_k"/, "$what: since the key came in");
	}
	$second->quit;
	is($node->safe_psql('postgres', "SELECT who FROM d WHERE k = $key"), $more eq 'ROLLBACK' ? 'first' : 'second', "$what: there is one row");
}
foreach my $action ('NOTHING', "UPDATE SET who = c.who || ' ' || excluded.who")
{
	my $first = start_checked('INSERT INTO c VALUES (' . ++$key . ", 'first') ON CONFLICT (k) DO $action");

	$node->safe_psql('postgres', "INSERT INTO c VALUES ($key, 'second')");
	release_point($node, 'unique-checked');
	ok(finish_psql($first), 'ON CONFLICT succeeds when its key came in after the check') or diag $first->{err};
	is($node->safe_psql('postgres', "SELECT who FROM c WHERE k = $key"), $action eq 'NOTHING' ? 'second' : 'second first', "and does $action");
}
same_answers($node, 'the indexes are right', { 'SELECT k FROM c WHERE k > 0 ORDER BY k' => 'order', 'SELECT k FROM d WHERE k > 0 ORDER BY k' => 'order' }, [ 'c', 'd' ]);
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
