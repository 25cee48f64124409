
# A client that does not read its socket stops its own session, and nothing else.
# While a session holds a lock that others need, no message goes to its client.  The
# client gets errors once the locks are gone.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('unread', <<EOF);
hybridindex.background_merge = off
deadlock_timeout = 100ms
log_lock_waits = on
EOF

# ---- sessions that speak the protocol ----

# Read messages up to the next ReadyForQuery; returns them, type and body.
sub read_replies
{
	my ($session) = @_;
	my @messages;

	while (!@messages || $messages[-1][0] ne 'Z')
	{
		my $buffer = '';
		foreach my $head (1, 0)
		{
			my $length = $head ? 5 : unpack('x N', $buffer) + 1;
			while (length($buffer) < $length)
			{
				sysread($session->{socket}, $buffer, $length - length($buffer), length($buffer))
				  or return @messages;
			}
		}
		push @messages, [ unpack('a x4 a*', $buffer) ];
	}
	return @messages;
}

sub send_query
{
	my ($session, $query) = @_;
	syswrite($session->{socket}, pack('a N Z*', 'Q', length($query) + 5, $query));
	return;
}

# The texts of the messages of one type: errors (E) or notices (N).
sub texts
{
	my ($type, @messages) = @_;
	return map { $_->[1] =~ /\0M([^\0]*)/ } grep { $_->[0] eq $type } @messages;
}

# A new session, which has run these queries.
sub connected
{
	my (@queries) = @_;
	my $start = pack('N (Z*)* x', 196608, user => scalar($ENV{PGUSER} // getpwuid($<)), database => 'postgres');
	my %session = (socket => IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port));

	die "no connection: $!" if !$session{socket};
	syswrite($session{socket}, pack('N a*', length($start) + 4, $start));
	foreach my $message (read_replies(\%session))
	{
		$session{pid} = unpack('N', $message->[1]) if $message->[0] eq 'K';
	}
	foreach my $query (@queries)
	{
		send_query(\%session, $query);
		my @errors = texts('E', read_replies(\%session));
		die "$query: @errors" if @errors;
	}
	die "no session" if !$session{pid};
	return \%session;
}

# A session runs a query, and its client reads nothing until the session is done, or
# waits for its client.  The session holds no lock then but on the relations that it
# uses, and other sessions go on.  Returns what the session has sent.
sub unread
{
	my ($what, $session, $query, @others) = @_;

	send_query($session, $query);
	$node->poll_query_until('postgres', "SELECT wait_event = 'ClientWrite' OR state <> 'active' FROM pg_stat_activity WHERE pid = $session->{pid}")
	  or die "$what: the session does not come to a stop";
	is($node->safe_psql('postgres', <<EOF), '', "$what: it holds no lock that others need");
SELECT string_agg(locktype || ' ' || mode, ', ' ORDER BY 1) FROM pg_locks
WHERE pid = $session->{pid} AND (locktype = 'object' OR mode = 'AccessExclusiveLock')
EOF
	my @running = map { start_psql($node, "SET statement_timeout = '5s'; $_;") } @others;
	foreach (1 .. 160)
	{
		eval { $_->{handle}->pump_nb } foreach @running;
		last if !grep { $_->{handle}->pumpable } @running;
		usleep(50_000);
	}
	is(join(', ', map { $others[$_] } grep { $running[$_]{handle}->pumpable } 0 .. $#running), '', "$what: other sessions go on");
	my @replies = read_replies($session);
	is(join("\n", map { finish_psql($_) ? () : $_->{err} } @running), '', "$what: they succeed");
	return @replies;
}

# ---- lines of the server's own, while a dictionary is learned ----

# Each change of the transaction's state is told for each savepoint.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE learning (s text COLLATE "C");
CREATE INDEX learning_s ON learning USING hybrid (s text_hope_ops);
INSERT INTO learning SELECT 'some words of entry ' || md5(g::text) FROM generate_series(1, 400) g;
CREATE ROLE inserter;
GRANT INSERT ON learning TO inserter;
SQL
my $session = connected(
	'SET SESSION AUTHORIZATION inserter; BEGIN',
	join('; ', map { "SAVEPOINT a_long_name_of_a_savepoint_$_" } 1 .. 3000),
	'SET client_min_messages = debug5');
my @replies = unread('an insert that learns a dictionary', $session,
	"INSERT INTO learning SELECT 'some words of entry ' || md5((-g)::text) FROM generate_series(1, 3000) g",
	"SELECT count(*) FROM learning WHERE s = 'x'", "INSERT INTO learning VALUES ('x')", "SELECT hybrid_merge('learning_s')");
is(join('', texts('E', @replies)), '', 'the insert succeeds');
is($node->safe_psql('postgres', "SELECT learned FROM hybrid_dictionary_info('learning_s')"), 't', 'it has learned one');
send_query($session, 'RESET client_min_messages; COMMIT');
is(join('', texts('E', read_replies($session))), '', 'it commits');
close $session->{socket};

# ---- a timeout while messages are sent ----

# The server sends a line for each savepoint when a merge begins a subtransaction in an
# insert.  A cancel there would end the session.
$node->safe_psql('postgres', 'CREATE TABLE timed (k int); CREATE INDEX timed_k ON timed USING hybrid (k)');
$session = connected(
	'BEGIN', join('; ', map { "SAVEPOINT a_long_name_of_a_savepoint_$_" } 1 .. 3000),
	'SET hybridindex.merge_floor = 100', "SET statement_timeout = '300ms'", 'SET client_min_messages = debug5');
send_query($session, 'INSERT INTO timed SELECT generate_series(1, 3000)');
$node->poll_query_until('postgres', "SELECT wait_event = 'ClientWrite' OR state <> 'active' FROM pg_stat_activity WHERE pid = $session->{pid}")
  or die 'the session does not come to a stop';
usleep(600_000);
read_replies($session);
send_query($session, 'ROLLBACK');
is(join('', grep { /[CEZ]/ } map { $_->[0] } read_replies($session)), 'CZ', 'the session goes on after a timeout in a merge');
close $session->{socket};

# ---- messages of a comparison function ----

# One message is larger than what the operating system keeps for a client.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION loud_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF 4242 IN (a, b) AND current_setting('test.loud', true) = 'info' THEN
		RAISE INFO '%', repeat('x', 2000000);
	ELSIF 4242 IN (a, b) AND current_setting('test.loud', true) = 'error' THEN
		RAISE EXCEPTION '%', repeat('y', 2000000);
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CALL hyb_operator_class('loud');
CREATE TABLE loud (k int) WITH (autovacuum_enabled = off);
CREATE INDEX loud_k ON loud USING hybrid (k loud_ops);
INSERT INTO loud SELECT g FROM generate_series(4000, 4499) g;
SELECT hybrid_merge('loud_k');
INSERT INTO loud SELECT g FROM generate_series(4000, 4499) g;
SQL
foreach my $how ('info', 'error')
{
	foreach my $statement ("SELECT hybrid_merge('loud_k')", 'SELECT count(*) FROM loud WHERE k = 4242', "SELECT hybrid_index_check('loud_k')")
	{
		$node->safe_psql('postgres', 'INSERT INTO loud SELECT g FROM generate_series(4200, 4299) g');
		$session = connected("SET test.loud = '$how'; SET enable_seqscan = off; SET enable_bitmapscan = off");
		@replies = unread("$how, $statement", $session, $statement,
			'SET enable_seqscan = off; SELECT count(*) FROM loud WHERE k = 4000', 'INSERT INTO loud VALUES (4000)', 'VACUUM loud', "SELECT hybrid_merge('loud_k')");
		ok(join('', texts('E', @replies)) eq ($how eq 'error' ? 'y' x 2000000 : ''), "$how, $statement: its client gets errors");
		send_query($session, "RESET test.loud; DO \$\$ BEGIN RAISE NOTICE 'heard'; END \$\$");
		is(join('', texts('N', read_replies($session))), 'heard', "$how, $statement: then its client gets messages again");
		close $session->{socket};
	}
}

# an error that is caught ends the silence, too
$node->safe_psql('postgres', 'INSERT INTO loud VALUES (4242)');
$session = connected("SET test.loud = 'error'");
send_query($session, <<'SQL');
DO $$
BEGIN
	BEGIN
		PERFORM hybrid_merge('loud_k');
	EXCEPTION WHEN raise_exception THEN
		RAISE NOTICE 'caught';
	END;
	RAISE NOTICE 'went on';
END $$
SQL
is(join(', ', texts('N', read_replies($session))), 'caught, went on', 'messages after an error that was caught');
close $session->{socket};

# ---- an error of a comparison under an LWLock ----

# Only comparisons of the server's own run there.  One of query trees recurses, and looks
# how deep the stack is.  A session calls a function that calls itself, each time once
# more, and reads the log then.  At first all of that fits the stack, in the end not even
# the statement does.  In between, what fails is a comparison of deep trees as they are
# entered into the tree that all sessions share, since a statement with flat ones
# succeeds at that depth.  The error has its text as the context, which is larger than
# what the operating system keeps for a client.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE deep (k tsquery) WITH (autovacuum_enabled = off);
CREATE TABLE flat (k tsquery) WITH (autovacuum_enabled = off);
CREATE INDEX deep_k ON deep USING hybrid (k);
CREATE INDEX flat_k ON flat USING hybrid (k);
CREATE FUNCTION fill_queries() RETURNS void LANGUAGE sql AS $$
	-- no inserter enters them into a tree that is there
	TRUNCATE deep, flat;
	INSERT INTO deep SELECT (repeat('!(', 150) || 'w' || g || repeat(')', 150))::tsquery FROM generate_series(1000, 1040) g;
	INSERT INTO flat SELECT ('w' || g)::tsquery FROM generate_series(1000, 1040) g;
$$;
CREATE FUNCTION read_at(depth int, what text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int;
BEGIN
	IF depth > 0 THEN
		RETURN read_at(depth - 1, what);
	END IF;
	EXECUTE format('/* %s */ SELECT count(*) FROM %s WHERE k = ''w1007''', repeat('z', 2000000), what) INTO n;
	RETURN n;
END $$;
SQL
my $depth = 1;
my $settings = 'SET max_stack_depth = 100; SET enable_seqscan = off; SET enable_bitmapscan = off';
foreach my $try (1 .. 200)
{
	$node->safe_psql('postgres', 'SELECT fill_queries()');
	last if $node->psql('postgres', "$settings; SELECT read_at($depth, 'deep')") != 0;
	$depth++;
}
$node->safe_psql('postgres', 'SELECT fill_queries()');
is($node->psql('postgres', "$settings; SELECT read_at($depth, 'flat')"), 0, "at depth $depth a statement fits the stack, but for deep comparisons");
$session = connected(split /; /, $settings);
@replies = unread('an error of a comparison under an LWLock', $session, "SELECT read_at($depth, 'deep')",
	'SET enable_seqscan = off; SELECT count(*) FROM deep', q{INSERT INTO deep VALUES ('w1')}, 'VACUUM deep', "SELECT hybrid_merge('deep_k')");
is(join('', texts('E', @replies)), 'stack depth limit exceeded', 'its client gets the error');
close $session->{socket};

# ---- a termination ----

SKIP:
{
	skip 'NOT TESTED: a session terminated in a merge, since this server has no injection points', 2 if !has_points($node);
	$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION injection_points;
SELECT injection_points_attach('hybrid-step-installed', 'wait');
SQL
	my $merge = start_psql($node, "SELECT hybrid_merge('loud_k')");
	my $pid = held_at($node, 'step-installed', $merge);
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid), injection_points_detach('hybrid-step-installed')");
	ok(!finish_psql($merge), 'a session is terminated in a merge');
	like($merge->{err}, qr/terminating connection due to administrator command/, 'its client is told');
}

$node->safe_psql('postgres', "SELECT hybrid_merge('loud_k'), hybrid_index_check('loud_k', true), hybrid_index_check('learning_s', true)");
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
