
# A merge makes a dictionary for an index (text_hope_ops).  It does so beside
# sessions that use the index, under load, held and killed in the middle, and with a
# standby.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = new_node('hope', <<EOF, allows_streaming => 1);
wal_consistency_checking = 'generic'
hybridindex.merge_floor = 1000000
hybridindex.background_merge = off
restart_after_crash = on
EOF
$primary->safe_psql('postgres', <<EOF);
CREATE SEQUENCE ids;
CREATE TABLE t (id int, s text COLLATE "C", w text) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX t_s ON t USING hybrid (s text_hope_ops) INCLUDE (id);
CREATE INDEX t_w ON t USING hybrid (w text_pattern_hope_ops (scheme = '3-grams') DESC, id) WITH (filter = surf);
CREATE UNLOGGED TABLE u (s text COLLATE "C");
CREATE INDEX u_s ON u USING hybrid (s text_hope_ops);
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT i, 'key.' || md5(i::text) || '\@example.com', reverse(md5(i::text)) || '/index.html'
	FROM (SELECT nextval('ids')::int AS i FROM generate_series(1, n)) ids
\$\$;
EOF
my %queries = (
	'SELECT id, s FROM t WHERE s BETWEEN \'key.3\' AND \'key.5\'' => 'index only bitmap',
	'SELECT w, id FROM t WHERE w ~>=~ \'a\' AND w ~<~ \'b\'' => 'index only bitmap',
	'SELECT s FROM t ORDER BY s' => 'order order_only',
	'SELECT s FROM t ORDER BY s DESC' => 'order order_only');
my $merge = "SELECT hybrid_merge('t_s'), hybrid_merge('t_w');";

sub learned
{
	my ($node, @indexes) = @_;
	return join '', map { $node->safe_psql('postgres', "SELECT learned FROM hybrid_dictionary_info('$_')") } @indexes;
}

# Keys are plain again: 646 of them.
sub start_over
{
	$primary->safe_psql('postgres', "TRUNCATE t; ALTER SEQUENCE ids RESTART; SELECT fill(700); DELETE FROM t WHERE id % 13 = 5");
	return;
}

sub checkpointer
{
	return $primary->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
}

# Kill a backend, and wait until the server is back.
sub kill_backend
{
	my ($pid) = @_;
	my $old = checkpointer();
	kill 'KILL', $pid;
	foreach (1 .. 600)
	{
		my $new = eval { checkpointer() };
		return if defined $new && $new ne '' && $new ne $old;
		usleep(50_000);
	}
	die 'the server did not come back';
}

sub cursor
{
	my ($node, @declare) = @_;
	my $session = $node->background_psql('postgres');
	$session->query_safe(join ' ', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; BEGIN ISOLATION LEVEL REPEATABLE READ;', @declare);
	return $session;
}

my $standby = new_standby($primary, 'hope_standby', "max_standby_streaming_delay = 120s\nhot_standby_feedback = on\n");

# another session's cursors
start_over();
my $cursor = cursor($primary,
	'DECLARE up NO SCROLL CURSOR FOR SELECT s FROM t ORDER BY s;',
	'DECLARE down NO SCROLL CURSOR FOR SELECT s FROM t ORDER BY s DESC;');
my @up = split /\n/, $cursor->query_safe('FETCH 100 FROM up');
my @down = split /\n/, $cursor->query_safe('FETCH 100 FROM down');
$primary->safe_psql('postgres', "$merge SELECT fill(300); $merge");
is(learned($primary, 't_s'), 'f', 'an index in use gets no dictionary');
same_on_both($primary, $standby, 'merged beside cursors', \%queries, ['t']);
push @up, split(/\n/, $cursor->query_safe('FETCH ALL FROM up'));
push @down, split(/\n/, $cursor->query_safe('FETCH ALL FROM down'));
is(scalar(@up), 646, 'a cursor returns its snapshot');
is("@up", join(' ', reverse @down), 'forward and backward');
$cursor->query_safe('COMMIT');
$primary->safe_psql('postgres', $merge);
is(learned($primary, 't_s', 't_w'), 'tt', 'the next merge learns');
same_on_both($primary, $standby, 'learned', \%queries, ['t']);
is(($primary->psql('postgres', 'INSERT INTO t SELECT * FROM t WHERE id = 77'))[0],
	3, 'unique afterwards');
is($cursor->query_safe('SELECT count(*) FROM t WHERE s LIKE \'key.%\''),
	'946', 'a session that used the index before');

# leaves share a filter page, on both sides of those of successive numbers, which
# have too many keys for a filter
$primary->safe_psql('postgres', <<EOF);
CREATE TABLE sides (n int8, s text COLLATE "C");
CREATE INDEX sides_s ON sides USING hybrid (n, s text_hope_ops) WITH (filter = points);
EOF
$cursor->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT n FROM sides ORDER BY n; FETCH c');
$primary->safe_psql('postgres', <<EOF);
INSERT INTO sides SELECT hashint8extended(i, 1), md5(i::text) FROM generate_series(1, 1000) i
UNION ALL SELECT i, 'm' FROM generate_series(1, 20000) i;
SELECT hybrid_merge('sides_s');
EOF
$cursor->query_safe('COMMIT');
is($primary->safe_psql('postgres', "SELECT filter_pages, leaf_pages > 3, learned FROM hybrid_index_stats('sides_s'), hybrid_dictionary_info('sides_s')"),
	'1|t|f', 'leaves share a filter page');
$primary->safe_psql('postgres', "INSERT INTO sides VALUES (0, 'n'); SELECT hybrid_merge('sides_s')");
is(learned($primary, 'sides_s'), 't', 'their index learns');
$primary->safe_psql('postgres', "SELECT hybrid_index_check('sides_s', true)");
$cursor->quit;

# a cursor of the standby holds up the replay, not the primary
start_over();
$primary->wait_for_catchup($standby);
$cursor = cursor($standby, 'DECLARE c NO SCROLL CURSOR FOR SELECT s FROM t ORDER BY s;');
@up = split /\n/, $cursor->query_safe('FETCH 100 FROM c');
$primary->safe_psql('postgres', "$merge SELECT fill(100)");
is(learned($primary, 't_s'), 't', 'learned while the standby reads');
push @up, split(/\n/, $cursor->query_safe('FETCH ALL FROM c'));
is(scalar(@up), 646, 'a cursor of the standby returns its snapshot');
$cursor->query_safe('COMMIT');
same_on_both($primary, $standby, 'replayed', \%queries, ['t']);
is($cursor->query_safe('SELECT count(*) FROM t WHERE s LIKE \'key.%\''),
	'746', 'a session of the standby that used the index before');

# in the middle of a long transaction: the standby need not wait for its end
$primary->safe_psql('postgres', 'TRUNCATE t');
my $long = $primary->background_psql('postgres');
$long->query_safe('SET hybridindex.merge_floor = 500; BEGIN; SELECT fill(5000)');
is(learned($primary, 't_s', 't_w'), 'tt', 'a statement learns in its middle');
my $target = $primary->safe_psql('postgres', 'SELECT txid_current(); SELECT pg_current_wal_insert_lsn()');
$target =~ s/.*\n//;
ok($standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$target'::pg_lsn"),
	'replayed before the transaction ends');
is($cursor->query_safe('SET statement_timeout = \'20s\'; SELECT count(*) FROM t WHERE s LIKE \'key.%\''),
	'0', 'the standby can read');
$long->query_safe('ROLLBACK');
$long->quit;
$cursor->quit;
same_on_both($primary, $standby, 'rolled back', \%queries, ['t']);

# several sessions insert and read while dictionaries are learned
foreach my $round (1 .. 2)
{
	$primary->safe_psql('postgres', 'TRUNCATE t');
	my @sessions = map {
		start_psql($primary, "SET hybridindex.merge_floor = 500; SET hybridindex.background_merge = on;\n" . join '',
			("SELECT fill(40);\n", "SELECT s FROM t WHERE s > 'key.4' LIMIT 3;\n",
				"DELETE FROM t WHERE id % 21 = $_;\n") x 40)
	} (1 .. 3);
	my @ended = map { finish_psql($_) } @sessions;
	is("@ended", '1 1 1', "sessions insert and read, round $round") or diag $sessions[0]->{err};

	# a worker may still be at it
	foreach (1 .. 50)
	{
		last if learned($primary, 't_s', 't_w') eq 'tt';
		$primary->safe_psql('postgres', $merge);
	}
	is(learned($primary, 't_s', 't_w'), 'tt', 'the indexes have learned');
	same_answers($primary, "learned under load, round $round", \%queries, ['t']);
}
same_on_both($primary, $standby, 'after load', \%queries, ['t']);

# stopped in the middle
foreach my $round (1 .. 3)
{
	$primary->safe_psql('postgres', 'TRUNCATE t; INSERT INTO u SELECT md5(i::text) FROM generate_series(1, 700) i; SELECT hybrid_merge(\'u_s\')');
	is(learned($primary, 'u_s'), 't', 'the unlogged index has learned');
	my $session = start_psql($primary, "SET hybridindex.merge_floor = 500;\n" . "SELECT fill(100);\n$merge\n" x 40);
	usleep(60_000 * $round);
	$primary->stop('immediate');
	finish_psql($session);
	$primary->start;
	is(learned($primary, 'u_s'), 'f', 'the unlogged index starts over');
	same_answers($primary, "stopped, round $round", \%queries, [ 't', 'u' ]);
	$primary->safe_psql('postgres', "SELECT fill(300); $merge");
	is(learned($primary, 't_s', 't_w'), 'tt', 'the next merge learns');
	same_answers($primary, 'work goes on', \%queries, ['t']);
}

my $points = has_points($primary);
$primary->safe_psql('postgres', 'CREATE EXTENSION injection_points') if $points;

# an index with more bytes of entries than a merge reads to learn stays as it is;
# 18 and later tell whether a point is attached
if ($points && $primary->safe_psql('postgres', 'SHOW server_version_num') >= 180000)
{
	start_over();
	my $reader = cursor($primary, 'DECLARE c CURSOR FOR SELECT s FROM t ORDER BY s; FETCH c');
	$primary->safe_psql('postgres', "SELECT fill(1000); $merge");
	$reader->query_safe('COMMIT');
	$reader->quit;
	$primary->safe_psql('postgres', "SELECT injection_points_attach('hybrid-few-bytes', 'notice')");
	$primary->safe_psql('postgres', "SELECT fill(10); $merge");
	is(learned($primary, 't_s', 't_w'), 'ff', 'leaves with too many bytes are merged as they are');
	$primary->safe_psql('postgres', "SELECT injection_points_detach('hybrid-few-bytes'); SELECT fill(10); $merge");
	is(learned($primary, 't_s', 't_w'), 'tt', 'leaves with fewer bytes are learned from');
	same_on_both($primary, $standby, 'read in portions', \%queries, ['t']);
}

# held at each point, and killed or failing there
foreach my $point ($points ? qw(learn-frozen learn-reserved learn-written learn-installed) : ())
{
	foreach my $how (qw(error wait))
	{
		start_over();
		$primary->safe_psql('postgres', "SELECT injection_points_attach('hybrid-$point', '$how')");
		my $session = start_psql($primary, $merge);
		if ($how eq 'wait')
		{
			my $held = "FROM pg_stat_activity WHERE wait_event = 'hybrid-$point'";
			$primary->poll_query_until('postgres', "SELECT count(*) = 1 $held");
			kill_backend($primary->safe_psql('postgres', "SELECT pid $held"));
		}
		ok(!finish_psql($session), "a merge ends at $point ($how)");
		$primary->safe_psql('postgres', "SELECT injection_points_detach('hybrid-$point')") if $how eq 'error';
		# a record that was written last may not have got to the disk
		like(learned($primary, 't_s'), $point ne 'learn-installed' ? qr/^f$/ : $how eq 'wait' ? qr/^[ft]$/ : qr/^t$/,
			"learned at $point");
		same_answers($primary, "after $how at $point", \%queries, ['t']);
		$primary->safe_psql('postgres', "SELECT fill(200); $merge");
		is(learned($primary, 't_s', 't_w'), 'tt', 'the next merge learns');
		same_answers($primary, "work goes on after $point", \%queries, ['t']);
	}
}

# promotion
start_over();
$primary->safe_psql('postgres', "$merge SELECT fill(100)");
same_on_both($primary, $standby, 'before promotion', \%queries, ['t']);
$primary->stop('immediate');
$standby->promote;
$standby->safe_psql('postgres', "SELECT fill(300); $merge");
same_answers($standby, 'after promotion', \%queries, ['t']);

foreach my $node ($primary, $standby)
{
	no_crash($node, 'nothing crashed by itself, replayed pages were consistent');
}
$standby->stop;
done_testing();
