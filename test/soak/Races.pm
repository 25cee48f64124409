# Races.pm: three kinds of races of many sessions, beside the other work of soak.pl.
#
# * Row types: a session holds the tables of row types by ALTER TYPE, TRUNCATE or LOCK
#   TABLE, and comes to an index whose keys are such rows.  Other sessions read the
#   index, insert into it, merge and vacuum it.  They wait as long as the lock is held, or until a
#   timeout.  Monitoring waits for nothing.
# * Cursors: hundreds of index-only cursors stay open over several merges, beside
#   inserters.  Each cursor goes on with what its snapshot holds, and no insert fails.
# * Unread sockets: sessions that are sent every message insert, merge, vacuum and learn
#   dictionaries.  Their clients do not read until each of the others, which use the same
#   indexes, has had answers.
#
# A session is stuck if its statement has not ended after LIMIT seconds, unless it
# computes.  Statement timeouts and locks of these races are much shorter.
#
# One process has all sessions, and speaks the protocol itself.  A session's program is a
# function that returns the next query, and a function that looks at its answer.  When it
# returns nothing, it is asked again later.
package Races;

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;
use List::Util qw(max shuffle);
use Time::HiRes qw(time sleep);

# Seconds after which a session counts as stuck, and how long one may compute.
use constant LIMIT => 40;
use constant COMPUTING_LIMIT => 150;

use constant FIXED_ROWS => 600;     # of "typed", which are not deleted
use constant WIDE_ROWS => 16000;
use constant CURSORS => 150;        # of each of three sessions
use constant UNREAD_SECONDS => 1;   # at least

# Keys of "wide" are so long that a leaf has some 40 of them.
my $wide_key = join(' || ', map { "md5((g + 0.$_)::text)" } 1 .. 12);

sub tables { return qw(typed wide loud); }

sub setup_sql
{
	return <<EOF;
CREATE TABLE part (a int, b int);
CREATE TYPE bare AS (a int, b int);
CREATE TABLE typed_one AS SELECT g, ROW(g, g % 7)::part AS k, ROW(g / 3, g)::bare AS c FROM generate_series(1, @{[FIXED_ROWS]}) g;
CREATE TABLE typed (k part, c bare, n int);
CREATE SEQUENCE typed_n START 1000000;
INSERT INTO typed SELECT k, c, g FROM typed_one;
CREATE INDEX typed_k ON typed USING hybrid (k);
CREATE UNIQUE INDEX typed_c ON typed USING hybrid (c, n);
CREATE TABLE wide (k text COLLATE "C", n int);
INSERT INTO wide SELECT $wide_key, g FROM generate_series(1, @{[WIDE_ROWS]}) g;
CREATE INDEX wide_k ON wide USING hybrid (k);
CREATE FUNCTION loud_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \$\$
BEGIN
	IF a % 97 = 0 AND current_setting('race.loud', true) = 'on' THEN
		RAISE INFO '%', repeat('x', 5000);
	END IF;
	RETURN btint4cmp(a, b);
END \$\$;
CREATE OPERATOR CLASS loud_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 loud_cmp(int, int);
CREATE TABLE loud (s text COLLATE "C", n int);
CREATE INDEX loud_s ON loud USING hybrid (s text_hope_ops);
CREATE INDEX loud_n ON loud USING hybrid (n loud_ops);
EOF
}

# ---- sessions ----

# Sends as much as the socket takes, and keeps the rest.
sub send_bytes
{
	my ($session, $bytes) = @_;
	$session->{out} .= $bytes;
	my $written = syswrite($session->{socket}, $session->{out});
	substr($session->{out}, 0, $written, '') if $written;
	return;
}

sub send_queries
{
	my ($session, @queries) = @_;
	$session->{pending} = @queries;
	$session->{sent} = time;
	$session->{answer} = { rows => [], errors => [] };
	send_bytes($session, join('', map { pack('a N Z*', 'Q', length($_) + 5, $_) } @queries));
	return;
}

sub values_of
{
	my ($body) = @_;
	my ($at, @values) = (2);
	foreach (1 .. unpack('n', $body))
	{
		my $length = unpack('l>', substr($body, $at, 4));
		push @values, $length < 0 ? undef : substr($body, $at + 4, $length);
		$at += 4 + max($length, 0);
	}
	return \@values;
}

# Takes whole messages from what has come.
sub take_messages
{
	my ($session) = @_;
	my $at = 0;
	while (length($session->{in}) >= $at + 5)
	{
		my ($kind, $length) = unpack("x$at a N", $session->{in});
		last if length($session->{in}) < $at + $length + 1;
		my $body = substr($session->{in}, $at + 5, $length - 4);
		$at += $length + 1;
		if ($kind eq 'D') { push @{ $session->{answer}{rows} }, values_of($body); }
		elsif ($kind eq 'E') { push @{ $session->{answer}{errors} }, $body =~ /\0M([^\0]*)/; }
		elsif ($kind eq 'K') { $session->{pid} = unpack('N', $body); }
		elsif ($kind eq 'Z') { $session->{pending}--; }
	}
	substr($session->{in}, 0, $at, '');
	return;
}

# Reads what is there; false if the connection is lost.
sub receive
{
	my ($session) = @_;
	my $n = sysread($session->{socket}, $session->{in}, 1 << 18, length($session->{in}));
	return $!{EAGAIN} if !defined $n;
	take_messages($session);
	return $n > 0;
}

# Waits for the answers; false if there are none.
sub finish
{
	my ($session) = @_;
	while ($session->{pending})
	{
		return 0 if time - $session->{sent} > LIMIT || (IO::Select->new($session->{socket})->can_read(1) && !receive($session));
	}
	return !@{ $session->{answer}{errors} };
}

# Returns a new session that has run the queries, or undef if the server refuses it.
sub connected
{
	my ($races, $name, @queries) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $races->{path}) or return;
	my $start = pack('N (Z*)* x', 196608, user => 'postgres', database => 'postgres', application_name => "race: $name");
	my $session = { name => $name, socket => $socket, in => '', out => '', reads => 1, running => 0, answers => 0, may_fail => qr/^\z/, never => qr/^\z/ };

	$socket->blocking(0);
	send_queries($session);
	send_bytes($session, pack('N a*', length($start) + 4, $start));
	$session->{pending} = 1;
	foreach my $query (@queries, undef)
	{
		finish($session) or return;
		send_queries($session, $query) if defined $query;
	}
	return $session;
}

# ---- what is found ----

sub finding
{
	my ($races, $text) = @_;
	print { $races->{log} } "RACE $text\n";
	return;
}

sub ask
{
	my ($session, $query) = @_;
	send_queries($session, $query);
	finish($session);
	return join('; ', map { join(' ', map { $_ // '' } @$_) } @{ $session->{answer}{rows} });
}

# Reports what the session waits for, and what others do.
sub stuck
{
	my ($races, $session) = @_;
	my $seconds = time - $session->{sent};
	my $what = sprintf('%s, process %d, has not ended after %d s: %s', $session->{name}, $session->{pid}, $seconds, $session->{query});
	my $look = connected($races, 'look');
	my $waits = $look ? ask($look, "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = $session->{pid} AND state = 'active' AND wait_event_type <> 'IO'") : 'no session can look';

	return if $waits eq '' && $seconds < COMPUTING_LIMIT;
	$races->{over} = 1;
	return finding($races, "$what: waits for \"$waits\"") if !$look;
	my $activity = ask($look, <<'EOF');
SELECT concat_ws(' ', pid, application_name, state, wait_event_type, wait_event, 'blocked by', pg_blocking_pids(pid), left(query, 100))
FROM pg_stat_activity WHERE state <> 'idle' OR backend_type ~ 'hybrid' ORDER BY query_start
EOF
	my $locks = ask($look, <<'EOF');
SELECT concat_ws(' ', pid, locktype, relation::regclass, objid, mode, CASE WHEN granted THEN 'held' ELSE 'wanted' END)
FROM pg_locks WHERE NOT granted OR pid = ANY (SELECT unnest(pg_blocking_pids(w.pid)) FROM pg_locks w WHERE NOT w.granted) ORDER BY 1
EOF
	return finding($races, "$what: waits for \"$waits\" -- activity: $activity -- locks: $locks");
}

sub answered
{
	my ($races, $session) = @_;
	my @errors = @{ $session->{answer}{errors} };
	foreach my $error (grep { !/current transaction is aborted/ } @errors)
	{
		finding($races, "$session->{name}: $error: $session->{query}")
		  if $error =~ $session->{never} || ($error !~ $races->{excused} && $error !~ $session->{may_fail});
	}
	$races->{asked}++;
	$session->{answers}++;
	$session->{check}->($session->{answer}) if $session->{check} && !@errors;
	$session->{program} = $session->{restart}->() if @errors;
	return;
}

# ---- the loop ----

# Several queries are sent at once.
sub ask_next
{
	my ($session) = @_;
	my ($query, $check) = $session->{program}->() or return;
	my @queries = ref $query ? @$query : $query;
	$session->{query} = join('; ', map { substr($_, 0, 100) } @queries);
	$session->{check} = $check;
	$session->{running} = 1;
	send_queries($session, @queries);
	return;
}

# One turn over all sessions; false if a connection is lost.
sub turn
{
	my ($races) = @_;
	my $ready = IO::Select->new(map { $_->{socket} } grep { $_->{reads} && $_->{pending} } @{ $races->{sessions} });
	my %has = map { $_ => 1 } $ready->can_read(0.02);
	my $ends = -e $races->{stop};

	sleep(0.01) if !%has;
	foreach my $session (@{ $races->{sessions} })
	{
		send_bytes($session, '') if $session->{out} ne '';
		return 0 if $has{ $session->{socket} } && !receive($session);
		read_on($races, $session, $ends) if !$session->{reads};
		if (!$session->{pending} && $session->{running})
		{
			$session->{running} = 0;
			answered($races, $session);
		}
		if (!$session->{pending}) { ask_next($session) if !$ends; }
		elsif ($session->{reads} && time - $session->{sent} > LIMIT) { stuck($races, $session); }
	}
	return !$races->{over} && (!$ends || grep { $_->{pending} } @{ $races->{sessions} });
}

# Adds a session with a program.  After an error the program begins anew.
sub add
{
	my ($races, $name, $settings, $program, %more) = @_;
	my $session = connected($races, $name, @$settings) or return;
	$session->{restart} = sub {
		my $rolled_back = 0;
		my $next = $program->($session);
		return sub { return $rolled_back++ ? $next->() : 'ROLLBACK' };
	};
	$session->{$_} = $more{$_} foreach keys %more;
	$session->{program} = $session->{restart}->();
	push @{ $races->{sessions} }, $session;
	return $session;
}

# Runs one to three races on the server at the path, until the file $stop exists or a
# session is lost.  A race may meet errors that match $excused.
sub run
{
	my ($path, $stop, $log, $excused) = @_;
	my $races = { path => $path, stop => $stop, log => $log, excused => $excused, sessions => [], beside => [], merged => 0, asked => 0, over => 0 };
	my @kinds = shuffle(\&row_types, \&cursors, \&unread);

	local $SIG{PIPE} = 'IGNORE';
	$_->($races) foreach @kinds[ 0 .. rand(@kinds) ];
	1 while turn($races);
	print $log "asked $races->{asked}\n";
	return;
}

# ---- row types ----

my @by_index = map { "SET enable_$_ = off" } qw(seqscan bitmapscan sort);
my $timed_out = qr/canceling statement due to (statement|lock) timeout/;

# Plans are made, and values come from a table, so that comparisons are the first to
# need the type.
my @typed = (
	@by_index,
	'PREPARE seek AS SELECT count(*) FROM typed WHERE k = (SELECT k FROM typed_one WHERE g = $1) AND n < 1000000',
	'PREPARE span AS SELECT count(*) FROM typed WHERE k >= (SELECT k FROM typed_one WHERE g = $1) AND k <= (SELECT k FROM typed_one WHERE g = $1 + 9) AND n < 1000000',
	'PREPARE uniq AS SELECT count(*) FROM typed WHERE c = (SELECT c FROM typed_one WHERE g = $1) AND n = $1',
	"PREPARE ins AS INSERT INTO typed SELECT k, c, nextval('typed_n') FROM typed_one WHERE g = \$1",
	map { "EXECUTE $_(1)" } qw(seek span uniq));

sub typed_read
{
	my ($races) = @_;
	my ($name, $rows) = @{ ([ seek => 1 ], [ span => 10 ], [ uniq => 1 ])[ rand 3 ] };
	my $query = sprintf('EXECUTE %s(%d)', $name, 1 + rand(FIXED_ROWS - 9));
	return ($query, sub {
			my $got = $_[0]{rows}[0][0];
			finding($races, "$query gives $got instead of $rows") if $got != $rows;
	});
}

sub typed_insert { return sprintf('EXECUTE ins(%d)', 1 + rand(FIXED_ROWS)); }

my @type_changes = (
	'LOCK TABLE part', 'TRUNCATE part', 'ALTER TABLE part SET (fillfactor = 80)',
	'ALTER TABLE part ADD COLUMN c int', 'ALTER TABLE part DROP COLUMN IF EXISTS c',
	'ALTER TYPE bare ADD ATTRIBUTE c int', 'ALTER TYPE bare DROP ATTRIBUTE IF EXISTS c',
	'SAVEPOINT s; ALTER TYPE bare RENAME ATTRIBUTE a TO d; ROLLBACK TO s; LOCK TABLE part');

# One change in fifty is committed, since a type has at most 1600 attributes, dropped
# ones too.
sub typed_ddl
{
	my ($races) = @_;
	my ($step, $until) = (0, 0);
	return sub {
		return if time < $until;
		$until = time + rand(rand() < 0.1 ? 2 : 0.3);
		if ($step == 0)
		{
			$step = 1;
			return 'BEGIN; ' . $type_changes[ rand @type_changes ];
		}
		if ($step == 1)
		{
			$step = 2 if rand() < 0.5;
			return rand() < 0.5 ? typed_insert() : typed_read($races);
		}
		$step = 0;
		return rand() < 0.02 ? 'COMMIT' : 'ROLLBACK';
	};
}

sub row_types
{
	my ($races) = @_;
	my $turn = 0;
	my $merging = sub {
		return ("SELECT hybrid_merge('typed_k')", "SELECT hybrid_merge('typed_c')", 'VACUUM typed', 'VACUUM (FREEZE) typed',
			'DELETE FROM typed WHERE n >= 1000000')[ $turn++ % 5 ];
	};

	add($races, 'DDL on row types', \@typed, sub { typed_ddl($races) },
		may_fail => qr/can have at most|column "c" of relation .* already exists/, never => qr/deadlock/);
	foreach my $timeout ('statement_timeout = 300', 'statement_timeout = 5000', 'lock_timeout = 100')
	{
		my @more = (may_fail => $timed_out, never => qr/deadlock/);
		add($races, "reader of rows, $timeout", [ @typed, "SET $timeout" ], sub { sub { return typed_read($races) } }, @more);
		add($races, "inserter of rows, $timeout", [ @typed, "SET $timeout" ], sub { \&typed_insert }, @more);
	}
	add($races, 'merging rows', ['SET statement_timeout = 5000'], sub { $merging }, may_fail => $timed_out);
	# fails if it waits
	add($races, 'monitoring rows', ['SET lock_timeout = 200'], sub {
			sub { return "SELECT * FROM hybrid_index_stats('typed_k', true) a, hybrid_index_stats('typed_c', true) b" }
	});
	return;
}

# ---- cursors ----

# Compares the rows of an answer with the strings that are expected.
sub compare
{
	my ($races, $what, @expected) = @_;
	return sub {
		my @rows = map { $_->[0] } @{ $_[0]{rows} };
		my ($first) = grep { ($rows[$_] // '') ne ($expected[$_] // '') } 0 .. max($#rows, $#expected);
		finding($races, sprintf('%s: row %d is "%s" instead of "%s"', $what, $first, $rows[$first] // 'none', $expected[$first] // 'none'))
		  if defined $first;
	};
}

# Opens cursors, keeps them over three merges or three seconds, and reads on.
sub open_cursors
{
	my ($races) = @_;
	my ($step, $until, $merges, @keys, @at) = (0);
	my @steps = (
		sub {
			return ('BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on; SET LOCAL enable_indexscan = off; '
				  . 'SET LOCAL enable_indexonlyscan = off; SELECT left(k, 12) FROM wide ORDER BY k',
				sub { @keys = map { $_->[0] } @{ $_[0]{rows} } });
		},
		sub {
			@at = map { int(($_ + rand()) * (@keys - 41) / CURSORS) } 0 .. CURSORS - 1;
			# a cursor begins with the first of equal keys: two insertions may draw the same
			foreach (@at) { $_-- while $_ > 0 && $keys[ $_ - 1 ] eq $keys[$_]; }
			($merges, $until) = ($races->{merged} + 3, time + 3);
			return (join('; ', map({ "SET LOCAL enable_$_" } 'seqscan = off', 'sort = off', 'indexscan = on', 'indexonlyscan = on'),
					map { "DECLARE c$_ NO SCROLL CURSOR FOR SELECT left(k, 12) FROM wide WHERE k >= '$keys[$at[$_]]' ORDER BY k; FETCH 1 FROM c$_" } 0 .. $#at),
				compare($races, 'first rows of cursors', map { $keys[$_] } @at));
		},
		sub {
			return if $races->{merged} < $merges && time < $until;
			return (join('; ', map { "FETCH 40 FROM c$_" } 0 .. $#at),
				compare($races, 'rows of cursors after merges', map { @keys[ $_ + 1 .. $_ + 40 ] } @at));
		},
		sub { return 'COMMIT' });
	return sub {
		my ($query, $check) = $steps[$step]->() or return;
		$step = ($step + 1) % @steps;
		return ($query, $check);
	};
}

sub wide_insert
{
	my ($rows) = @_;
	my $from = WIDE_ROWS + int(rand(1e8));
	return sprintf('INSERT INTO wide SELECT %s, %d FROM generate_series(%d, %d) g', $wide_key, WIDE_ROWS + 1, $from, $from + $rows - 1);
}

# Each merge rewrites most leaves, whose old blocks the cursors keep pinned.
sub cursors
{
	my ($races) = @_;
	my $turn = 0;
	my $merging = sub {
		return wide_insert(500) if $turn++ % 2;
		return ("SELECT hybrid_merge('wide_k')", sub { $races->{merged}++ });
	};
	add($races, "cursors $_", \@by_index, sub { open_cursors($races) }) foreach 1 .. 3;
	add($races, "inserter $_ beside cursors", [], sub { sub { return wide_insert(1) } }) foreach 1 .. 2;
	add($races, 'merging beside cursors', [ 'SET hybridindex.merge_step_pages = 32', 'DELETE FROM wide WHERE n > ' . WIDE_ROWS ], sub { $merging });
	return;
}

# ---- sockets that are not read ----

# An unread session reads on when all sessions beside it have had two answers, or when the
# race ends.
sub read_on
{
	my ($races, $session, $ends) = @_;
	my $before = $session->{beside};
	return if !$ends && (time - $session->{sent} < UNREAD_SECONDS || grep { $_->{answers} < $before->{ $_->{name} } + 2 } @{ $races->{beside} });
	@{$session}{ 'reads', 'sent' } = (1, time);
	return;
}

# Sends work all at once.  A value of random length comes first, so that the socket is full
# at any place.  The server sends a line for each savepoint when the transaction's state
# changes, and a comparison function has messages, too.
sub unread_work
{
	my ($races, $session, $in_transaction) = @_;
	my $insert = "INSERT INTO loud SELECT 'some words of entry ' || md5((random() + g)::text), g FROM generate_series(1, 1500) g";
	my $saved = join('; ', map { "SAVEPOINT a_long_name_of_a_savepoint_$_" } 1 .. 20 + rand(400));
	my @work = shuffle($insert, 'VACUUM (TRUNCATE off) loud', "$insert; SELECT hybrid_merge('loud_s')", "$insert; SELECT hybrid_merge('loud_n')",
		"SELECT hybrid_index_check('loud_n')", 'SELECT count(*) FROM loud WHERE n > 20');
	my $fill = sprintf("SET race.loud = on; SET client_min_messages = debug5; SELECT repeat('x', %d)", rand(230000));

	$session->{reads} = 0;
	$session->{beside} = { map { $_->{name} => $_->{answers} } @{ $races->{beside} } };
	return [ $in_transaction ? ('BEGIN', $saved, $fill, $insert, 'COMMIT') : $fill, @work, 'RESET client_min_messages' ];
}

# The first session makes the table anew while the second one has nothing to do, so that
# it learns a dictionary.  Others merge later, or they would leave nothing to merge.
sub unread
{
	my ($races) = @_;
	my ($turn, $emptied, @unread) = (0, 0);
	my $learning = sub {
		return if $unread[1]{pending};
		return unread_work($races, $unread[0], 1) if !($emptied = !$emptied);
		return "TRUNCATE loud; INSERT INTO loud SELECT 'some words of entry ' || md5(g::text), g FROM generate_series(1, 400) g";
	};
	my @programs = (
		'inserter' => sub { return "INSERT INTO loud VALUES ('some words ' || random(), (random() * 1000)::int)" },
		'reader' => sub { return "SELECT count(*) FROM loud WHERE s > 'some words of entry f'; SELECT count(*) FROM loud WHERE n < 50" },
		'merging' => sub {
			return if !grep { !$_->{reads} && time - $_->{sent} > UNREAD_SECONDS } @unread;
			return "SELECT hybrid_merge('loud_" . ($turn++ % 2 ? 's' : 'n') . "')";
		});

	while (my ($name, $program) = splice(@programs, 0, 2))
	{
		push @{ $races->{beside} }, add($races, "$name beside unread sessions", \@by_index, sub { $program });
	}
	push @unread, add($races, 'unread session that learns', [], sub { $emptied = 0; return $learning });
	push @unread, add($races, 'unread session', [], sub {
			sub { return $unread[0]{reads} ? () : unread_work($races, $unread[1], rand() < 0.3) }
	});
	return;
}

1;
