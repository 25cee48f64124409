
# VACUUM moves the blocks at the end of an index's file to free blocks, and cuts the
# end off if no session has the index open.  Whatever other backends remember of
# blocks that are gone does no harm.  The file of a queue is bounded.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Shrinking;
use Test::More;

start_all();

# ---- one VACUUM ----

grow(60000);
my $before = value_of($node, "size('t')");
run($node, 'VACUUM t');
cmp_ok(value_of($node, "size('t')"), '<', $before / 3, "one VACUUM returns blocks: $before");
is(value_of($node, "too_many FROM pages('t')"), '0', 'all that are worth it');
all_is_well('after it');

run($node, 'DELETE FROM t', 'VACUUM t');
cmp_ok(value_of($node, "size('t')"), '<', 3 * 48, 'of an empty table, nearly all');
all_is_well('empty');

# what is left lies at the end, and stays as it is: nothing merges
run($node, 'SELECT fill(60000), merge()', 'DELETE FROM t WHERE id < (SELECT max(id) - 8000 FROM t)', 'VACUUM t');
is(value_of($node, "too_many FROM pages('t')"), '0', 'what lies at the end is moved');
all_is_well('moved');

# entries of the log that no merge has taken
run($node, 'SELECT fill(40000)', 'DELETE FROM t WHERE random() < 0.9', 'VACUUM t');
is(value_of($node, "too_many FROM pages('t')"), '0', 'the log shrinks as well');
all_is_well('after a long log');

# ---- the table's option ----

run($node, 'ALTER TABLE t SET (vacuum_truncate = off)');
grow();
$before = value_of($node, "size('t')");
run($node, 'VACUUM t');
cmp_ok(value_of($node, "size('t')"), '>=', $before, 'vacuum_truncate = off: no file shrinks');
run($node, 'ALTER TABLE t RESET (vacuum_truncate)', 'VACUUM t');
cmp_ok(value_of($node, "size('t')"), '<', $before / 2, 'reset: files do, with a second VACUUM');
all_is_well('by the option');

# ---- others that have the index open ----

grow(40000);
$before = value_of($node, "size('t')");
my $reader = $node->background_psql('postgres');
$reader->query_safe('SET enable_seqscan = off; BEGIN; DECLARE c CURSOR FOR SELECT n FROM t ORDER BY s');
$reader->query_safe('FETCH 10 FROM c');
run($node, 'VACUUM t');
cmp_ok(value_of($node, "size('t')"), '>', 0.8 * $before, 'nothing is cut off under a cursor');
all_is_well('under a cursor');
my @left = split /\n/, $reader->query_safe('FETCH ALL FROM c');
is(scalar(@left) + 10, value_of($node, 'count(*) FROM t'), 'the cursor goes on to all rows');

# what was about to be cut off is used again
run($node, 'SELECT fill(20000), merge()');
cmp_ok(value_of($node, "size('t')"), '<', 1.1 * $before, 'what was to be cut off is used again');
all_is_well('used again');
$reader->query_safe('COMMIT');
$reader->quit;
run($node, 'DELETE FROM t WHERE random() < 0.8', 'VACUUM t');
is(value_of($node, "too_many FROM pages('t')"), '0', 'cut off when the cursor has gone');
all_is_well('cut off at last');

# A session that remembers where the log ended, and how long the file was.
run($node, 'DELETE FROM t', 'VACUUM t', 'SELECT fill(40000), merge()');
my $writer = $node->background_psql('postgres');
$writer->query_safe("SELECT fill(10); SELECT count(*) FROM t WHERE s > 'a'");
run($node, 'DELETE FROM t', 'SELECT merge()', 'VACUUM t');
cmp_ok(value_of($node, "size('t')"), '<', 3 * 48, 'its blocks are gone');
$writer->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
$writer->query_safe('SELECT fill(5)');
is($writer->query_safe("SELECT count(*) FROM t WHERE s > '0'"), '5', 'it inserts and reads');
$writer->quit;
all_is_well('after a session that remembers');

# ---- a scan of the standby ----

run($node, 'SELECT fill(40000), merge()', 'DELETE FROM t WHERE id % 10 <> 0');
$node->wait_for_catchup($standby);
$before = $standby->safe_psql('postgres', "SELECT size('t')");
my $cursor = $standby->background_psql('postgres');
$cursor->query_safe('SET enable_seqscan = off; BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY s');
my $n = value_of($node, 'count(*) FROM t');
$cursor->query_safe('FETCH 10 FROM c');
run($node, 'VACUUM t');
is(value_of($node, "too_many FROM pages('t')"), '0', 'files shrink while the standby reads');
my @rest = split /\n/, $cursor->query_safe('FETCH ALL FROM c');
is(scalar(@rest) + 10, $n, 'the cursor on the standby gets all rows');
is($cursor->query_safe("SELECT size('t')"), $before, 'the standby keeps its files until the cursor ends');
$cursor->query_safe('COMMIT');
$cursor->quit;
all_is_well('after a scan of the standby');

# the lock is let go of there as well, although VACUUM goes on
SKIP:
{
	skip 'this server has no injection points', 3 unless $points;
	run($node, 'CREATE EXTENSION injection_points');
	grow();
	attach_point($node, 'shrink-cut');
	my $held = start_psql($node, 'VACUUM t;');
	ok($node->poll_query_until('postgres',
			"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-shrink-cut'"), 'VACUUM is held after a cut');
	$node->wait_for_catchup($standby);
	same_answers($standby, 'the standby reads meanwhile', \%queries, []);
	release_point($node, 'shrink-cut');
	ok(finish_psql($held), 'VACUUM goes on') or diag $held->{err};
}

# ---- levels; temporary and unlogged indexes ----

SKIP:
{
	my ($ret) = $node->psql('postgres', 'SET hybridindex.test_levels = 3');
	skip 'this server has no assertions', 1 if $ret != 0;
	run($node, 'DELETE FROM t', 'REINDEX TABLE t', 'SET hybridindex.test_levels = 3; ' . 'SELECT fill(15000), merge();' x 3,
		'DELETE FROM t WHERE id % 10 < 9', 'SET hybridindex.test_levels = 3; SELECT fill(30000)',
		'DELETE FROM t WHERE id > (SELECT max(id) - 30000 FROM t)', 'VACUUM t');
	is(value_of($node, "too_many FROM pages('t')"), '0', 'pages of all levels are moved');
	all_is_well('three levels');
	run($node, 'REINDEX TABLE t');
}

foreach my $kind ('TEMP', 'UNLOGGED')
{
	my @script = ("CREATE $kind TABLE u (i int, s text)", 'CREATE INDEX u_i ON u USING hybrid (i)', 'CREATE INDEX u_s ON u USING hybrid (s)');

	push @script, 'INSERT INTO u SELECT i, md5(i::text) FROM generate_series(1, 30000) i', "SELECT hybrid_merge('u_i') + hybrid_merge('u_s')",
	  "DELETE FROM u WHERE i % 50 <> $_", 'VACUUM u', "SELECT hyb_check('u')",
	  "SELECT sum(pg_relation_size(indexrelid)) / 8192 < 150 FROM pg_index WHERE indrelid = 'u'::regclass"
	  foreach 0 .. 3;
	push @script, "INSERT INTO u SELECT -i, 'x' FROM generate_series(1, 5000) i", "SELECT hyb_check('u')";
	my $session = start_psql($node, map { "$_;\n" } @script);
	ok(finish_psql($session), lc($kind) . ' indexes') or diag $session->{err};
	is(join(' ', grep { /^[tf]$/ } split /\n/, $session->{out}), join(' ', ('t') x 9), 'shrink, and are right');
}
run($node, 'DROP TABLE u');

# ---- while others work ----

run($node, <<EOF);
CREATE TABLE q (id bigserial, state text, at timestamptz DEFAULT clock_timestamp(), pad text);
CREATE UNIQUE INDEX q_id ON q USING hybrid (id);
CREATE INDEX q_state ON q USING hybrid (state, at);
CREATE INDEX q_pad ON q USING hybrid (pad) WITH (filter = 'surf');
EOF
my @workers = map { start_psql($node, <<EOF x 12) } 1 .. 2;
INSERT INTO q (state, pad) SELECT 'created', md5(random()::text) FROM generate_series(1, 1500);
UPDATE q SET state = 'active' WHERE id IN (SELECT id FROM q WHERE state = 'created' ORDER BY at LIMIT 800 FOR UPDATE SKIP LOCKED);
SET enable_seqscan = off;
DO 'BEGIN IF EXISTS (SELECT FROM (SELECT id, lag(id) OVER (ORDER BY id) AS l FROM q ORDER BY id) x WHERE id = l) THEN RAISE ''twice''; END IF; END';
SELECT pg_sleep(random() * 0.15);
DELETE FROM q WHERE state = 'active' AND id % 40 <> 7;
SELECT pg_sleep(random() * 0.15);
EOF
my ($shrunk, $last, $greatest, $failed) = (0, 0, 0, '');
while (grep { $_->{handle}->pumpable } @workers)
{
	foreach my $statement ('VACUUM q', "SELECT hyb_check('q')")
	{
		my ($ret, $out, $err) = $node->psql('postgres', $statement);
		$failed .= $err if $ret != 0;
	}
	my $size = value_of($node, "size('q')");
	$shrunk++ if $size < $last;
	$greatest = $size if $size > $greatest;
	$last = $size;
	eval { $_->{handle}->pump_nb } foreach @workers;
}
foreach my $worker (@workers)
{
	ok(finish_psql($worker), 'a worker succeeds') or diag $worker->{err};
}
is($failed, '', 'VACUUM and the check succeed');
note "files shrunk meanwhile: $shrunk times, from $greatest pages to $last";
run($node, 'DELETE FROM q WHERE id % 40 <> 7', 'VACUUM q');
is(value_of($node, "too_many FROM pages('q')"), '0', 'in the end all that is worth it is returned');
same_answers($node, 'after all that',
	{ "SELECT id FROM q WHERE pad > 'a' AND pad < 'd'" => 'index bitmap', 'SELECT id FROM q ORDER BY id' => 'order order_only' }, ['q']);
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT hyb_check('q')"), 't', 'the standby has the same');

# ---- a queue: the file is bounded ----

run($node, 'TRUNCATE q');
my @sizes;
foreach my $round (1 .. 8)
{
	run($node, "INSERT INTO q (state, pad) SELECT 'created', md5(random()::text) FROM generate_series(1, 6000)",
		"UPDATE q SET state = 'active' WHERE state = 'created'",
		"UPDATE q SET state = 'completed' WHERE state = 'active'",
		'DELETE FROM q WHERE id <= (SELECT max(id) - 1000 FROM q)', 'VACUUM q');
	push @sizes, value_of($node, "size('q')");
}
note "pages after each round of a queue: @sizes";
cmp_ok((sort { $b <=> $a } @sizes[ 4 .. 7 ])[0], '<=', 1.3 * (sort { $b <=> $a } @sizes[ 0 .. 3 ])[0], 'a queue stays as large as it is');
cmp_ok($sizes[7], '<', 400, 'the queue is small');

end_all();
