
# An error at each point of the code that docs/developing.md lists, and a cancel at some
# of them.  Afterwards the same session reads, inserts, merges and vacuums, and the
# index is right.  Needs a server with injection points (./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('points', <<CONF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
max_parallel_workers_per_gather = 0
max_parallel_maintenance_workers = 0
enable_seqscan = off
enable_bitmapscan = off
CONF
need_points($node);
$node->append_conf('postgresql.conf', 'hybridindex.test_levels = 3');
$node->reload;

# What the documents list, by the place.
my ($table) = slurp_file(test_root() . '/docs/developing.md') =~ /^## Injection points\n(.*?)^## /ms;
my %listed;
while ($table =~ /^\| (\w[\w ]*) \| ((?:`[\w-]+`(?:, )?)+) \|$/mg)
{
	my ($place, $names) = ($1, $2);
	$listed{$place} = [ $names =~ /`([\w-]+)`/g ];
}

# Statements that pass the points of a place.
my $insert = "INSERT INTO t SELECT i, md5(i::text) FROM generate_series(30001, 30400) i; INSERT INTO t VALUES (0, 'a');";
my $merge = "SELECT hybrid_merge('t_k'), hybrid_merge('t_s');";
my $serializable = 'BEGIN ISOLATION LEVEL SERIALIZABLE;';
# rows that other sessions still see, as those that ask whether this one is held, stay
my $vacuum = 'DO $$ BEGIN WHILE EXISTS (SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND age(backend_xmin) > 0)'
  . ' LOOP PERFORM pg_sleep(0.01), pg_stat_clear_snapshot(); END LOOP; END $$; VACUUM t;';
my $look_up = 'SELECT s FROM t WHERE k = 7; ' x 3;
my %works = (
	insert => "$insert UPDATE t SET s = 'u' WHERE k = 500; UPDATE t SET s = 'v' WHERE k = 501; INSERT INTO t VALUES (500, 'a duplicate'); INSERT INTO t VALUES (500, 'none') ON CONFLICT DO NOTHING; $serializable INSERT INTO t VALUES (-2, 'b'), (-3, 'c'); COMMIT;",
	scan => "SELECT count(*) FROM t WHERE k > 0; $insert SELECT count(*) FROM t WHERE k > 0; INSERT INTO t VALUES (-4, 'd'); SELECT count(s) FROM t WHERE k IN (7, 70, -4, 30007);"
	  . " $merge $look_up $serializable SELECT count(*) FROM t WHERE k BETWEEN 50 AND 300; SELECT count(*) FROM t WHERE s BETWEEN '3' AND '9'; COMMIT;"
	  . ' SET enable_indexonlyscan = off; BEGIN; DECLARE c SCROLL CURSOR FOR SELECT s FROM t ORDER BY s; MOVE 50 IN c; MOVE BACKWARD 30 IN c; COMMIT; RESET enable_indexonlyscan;',
	merge => "$merge $insert $merge INSERT INTO t SELECT -i - 10, md5(i::text) FROM generate_series(1, 3000) i; $merge DELETE FROM t WHERE k < -5; $vacuum",
	VACUUM => "$look_up $insert DELETE FROM t WHERE k % 20 = 0; $vacuum",
	shrinking => $vacuum,
	learning => "SET hybridindex.merge_floor = 100; INSERT INTO l SELECT 'l' FROM generate_series(1, 400); DELETE FROM l WHERE s = 'l'; RESET hybridindex.merge_floor; SELECT hybrid_merge('l_s');",
	elsewhere => "REINDEX INDEX t_s; SELECT count(*) FROM t WHERE k > 0; SELECT hyb_check('t');");

# Only with other processes, or with more than a short test can have.
my %elsewhere = map { $_ => 1 } qw(survey-page build-scan build-range worker-done worker-leaves quiet-asked quiet-moved claim-left merge-help
	learn-lock delta-pin delta-pinned hot-publish shared-locked membership-denied membership-begins membership-begun membership-reads membership-read);

# At a point: what is there before, what is done, and what follows.
sub at
{
	my ($place, $point, $action) = @_;
	my ($rows, $text) = $place eq 'shrinking' ? (20000, 'md5(i::text) || md5((-i)::text) || md5((i + 0.5)::text)') : (3000, 'md5(i::text)');
	return <<SQL;
SELECT 'at $point';
DROP TABLE t, l;
CREATE TABLE t (k int, s text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, $text FROM generate_series(1, $rows) i;
CREATE UNIQUE INDEX t_k ON t USING hybrid (k);
CREATE INDEX t_s ON t USING hybrid (s) INCLUDE (k) WITH (filter = surf);
CREATE TABLE l (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX l_s ON l USING hybrid (s text_hope_ops);
INSERT INTO l SELECT 'key.' || md5(i::text) FROM generate_series(1, 700) i;
DELETE FROM t WHERE k > 1000;
\\o /dev/null
SELECT injection_points_attach('hybrid-$point', '$action');
$works{$place}
ROLLBACK;
SELECT injection_points_detach('hybrid-$point');
\\o
SELECT 'wrong sum' WHERE (SELECT sum(k) FROM t WHERE k BETWEEN 401 AND 499 AND k % 10 > 0) <> (SELECT sum(i) FROM generate_series(401, 499) i WHERE i % 10 > 0);
INSERT INTO t VALUES (-1, 'x');
INSERT INTO l VALUES ('key.x');
SELECT 'wrong count' WHERE (SELECT count(*) FROM t WHERE k = -1) <> 1 OR (SELECT count(*) FROM l WHERE s >= 'key.' AND s < 'kez') <> 701;
VACUUM t, l;
SELECT 'no check' WHERE NOT hyb_check('t') OR NOT hyb_check('l');
SQL
}

# A session that runs these pieces.
sub session
{
	return start_psql($node, <<'SQL', @_);
\set ON_ERROR_STOP 0
SET client_min_messages = error;
SELECT injection_points_set_local() \g /dev/null
CREATE TABLE IF NOT EXISTS t ();
CREATE TABLE IF NOT EXISTS l ();
SQL
}

# What a session printed is right, and no error came but those expected.
sub right
{
	my ($session, $what, $expected) = @_;
	finish_psql($session);
	is($session->{out} =~ s/^at .*\n//mgr, '', "$what: what follows is right") or diag $session->{out};
	is(join("\n", grep { !/$expected/ } $session->{err} =~ /ERROR:  .*$/mg), '', "$what: there are no other errors");
	return;
}
my @wanted;
my @pieces;
foreach my $place (sort keys %works)
{
	my @here = grep { !$elsewhere{$_} } @{ $listed{$place} };
	push @pieces, map { at($place, $_, 'error') } @here;
	push @wanted, @here;
}
my $session = session(@pieces);
right($session, 'errors', qr/error triggered|duplicate key|current transaction is aborted/);
my %failed = map { $_ => 1 } $session->{err} =~ /error triggered for injection point hybrid-(\S+)/g;
is(join(' ', grep { !$failed{$_} } @wanted), '', 'errors came at all points');

# A cancel has another SQLSTATE.  The server has places for eight that do not go on.
my @cancelled = ([ scan => 'descend' ], [ merge => 'step-written' ], [ merge => 'merge-between' ],
	[ learning => 'learn-frozen' ], [ VACUUM => 'vacuum-flagged' ], [ shrinking => 'cut-begun' ]);
$session = session(map { at(@$_, 'wait') } @cancelled);
foreach my $case (@cancelled)
{
	my $pid = held_at($node, $case->[1], $session);
	ok($pid, "held at $case->[1]") or last;
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-$case->[1]'); SELECT pg_cancel_backend($pid)");
}
right($session, 'cancels', qr/canceling statement due to user request|could not detach|duplicate key/);
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
