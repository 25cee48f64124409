
# A streaming standby replays the pages to the same bytes (wal_consistency_checking),
# and queries give the same answers there.  When VACUUM removes entries on the
# primary, the standby's trees lose them too.  Then the standby is promoted.
#
# hot_standby_feedback is off, because VACUUM would remove next to nothing with it.
# The test asserts that VACUUM removes rows, and that other rows get their line
# pointers.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', <<EOF, allows_streaming => 1);
wal_consistency_checking = 'all'
hybridindex.merge_step_pages = 3
EOF
my $standby = new_standby($primary, 'standby', <<EOF);
hot_standby_feedback = off
max_standby_streaming_delay = 60s
EOF

$primary->safe_psql('postgres', <<EOF);
CREATE TABLE t (id int, k int8, s text COLLATE "C", n numeric) WITH (fillfactor = 50);
CREATE UNIQUE INDEX t_id ON t USING hybrid (id);
CREATE INDEX t_k ON t USING hybrid (k) INCLUDE (id);
CREATE INDEX t_s ON t USING hybrid (s, n DESC);
CREATE FUNCTION fill(lo int, hi int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT i, hashint4(i), md5((i / 2)::text), i % 100 / 4.0 FROM generate_series(lo, hi) i
\$\$;
EOF

my %queries = (
	'SELECT id, s FROM t WHERE id BETWEEN 100 AND 900' => 'index bitmap',
	'SELECT k, id FROM t WHERE k BETWEEN -100000000 AND 300000000' => 'index only bitmap',
	'SELECT id, n FROM t WHERE s = md5(\'77\')' => 'index bitmap',
	'SELECT id FROM t WHERE s > \'d\' AND s < \'e\' AND n > 5' => 'index bitmap',
	'SELECT k FROM t ORDER BY k' => 'order order_only',
	'SELECT id FROM t ORDER BY id DESC' => 'order order_only');

# VACUUM on the primary; how many rows it removed.
sub vacuum
{
	my ($table, $options) = @_;
	my ($ret, $out, $err) = $primary->psql('postgres', 'VACUUM (VERBOSE' . ($options // '') . ") $table");
	die $err if $ret != 0;
	return $err =~ /tuples: (\d+) removed/ ? $1 : -1;
}

# Delete rows, remove them, and insert others; some of these get their line
# pointers.
sub replace_rows
{
	my ($what, $condition, $insert) = @_;
	my $deleted = $primary->safe_psql('postgres', <<EOF);
DROP TABLE IF EXISTS gone;
CREATE TABLE gone (tid tid);
WITH d AS (DELETE FROM t WHERE $condition RETURNING ctid) INSERT INTO gone SELECT ctid FROM d;
SELECT count(*) FROM gone;
EOF
	cmp_ok(vacuum('t'), '>=', $deleted, "$what: VACUUM removes rows");
	$primary->safe_psql('postgres', $insert);
	cmp_ok($primary->safe_psql('postgres', 'SELECT count(*) FROM t JOIN gone ON t.ctid = gone.tid'),
		'>', $deleted / 4, "$what: line pointers are used again");
	return;
}

$primary->safe_psql('postgres', 'SELECT fill(1, 400)');
same_on_both($primary, $standby, 'a dynamic stage only', \%queries, ['t']);
$primary->safe_psql('postgres', 'SELECT fill(401, 600)');
same_on_both($primary, $standby, 'a dynamic stage that grew', \%queries, ['t']);
$primary->safe_psql('postgres', 'SELECT fill(601, 5000); SELECT hybrid_merge(\'t_k\'), hybrid_merge(\'t_s\')');
same_on_both($primary, $standby, 'after merges', \%queries, ['t']);
$primary->safe_psql('postgres', 'SELECT fill(5001, 6000); DELETE FROM t WHERE id % 7 = 3; UPDATE t SET k = k + 1 WHERE id % 11 = 0');
same_on_both($primary, $standby, 'deleted and updated rows', \%queries, ['t']);
replace_rows('entries in leaves', 'id BETWEEN 1000 AND 2500 OR id % 13 = 5', 'SELECT fill(6001, 8000)');
same_on_both($primary, $standby, 'VACUUM, and line pointers used again', \%queries, ['t']);

# the standby has trees in memory now; VACUUM changes what they hold
$primary->safe_psql('postgres', 'SELECT fill(10001, 10300)');
same_on_both($primary, $standby, 'entries that the standby has in memory', \%queries, ['t']);
replace_rows('entries in memory', 'id BETWEEN 10100 AND 10200', 'INSERT INTO t SELECT i, -i, \'new\', 0 FROM generate_series(20001, 20400) i');
same_on_both($primary, $standby, 'dynamic entries removed by VACUUM, line pointers used again', \%queries, ['t']);

# the same with an index that has nothing to merge: a merge would have the
# standby drop its tree
$primary->safe_psql('postgres', 'CREATE TABLE m (k int); CREATE INDEX m_k ON m USING hybrid (k); INSERT INTO m SELECT generate_series(1, 250)');
$primary->wait_for_catchup($standby);
my %dynamic = ('SELECT k FROM m WHERE k BETWEEN 50 AND 220' => 'index only bitmap', 'SELECT k FROM m ORDER BY k' => 'order order_only');
same_answers($standby, 'standby: a tree', \%dynamic, ['m']);
$primary->safe_psql('postgres', 'DELETE FROM m WHERE k BETWEEN 101 AND 200');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) m');
$primary->safe_psql('postgres', 'INSERT INTO m SELECT generate_series(1001, 1100)');
is($primary->safe_psql('postgres', "SELECT static_entries, (SELECT count(*) > 50 FROM m WHERE k > 1000 AND ctid < (SELECT ctid FROM m WHERE k = 250)) FROM hybrid_index_stats('m_k')"),
	'0|t', 'entries removed from a log that stays, line pointers used again');
$primary->wait_for_catchup($standby);
same_answers($standby, 'standby: without what VACUUM has removed', \%dynamic, ['m']);

# A page of the log without room for the next entry gets nothing but a link to the
# page that the entry goes to.
$primary->safe_psql('postgres', 'CREATE TABLE l (k text COLLATE "C"); CREATE INDEX l_k ON l USING hybrid (k)');
my $counts = '';
foreach my $i (1 .. 12)
{
	$primary->safe_psql('postgres', "INSERT INTO l SELECT string_agg(md5($i || '.' || j), '') FROM generate_series(1, 50) j");
	$primary->wait_for_catchup($standby);
	$counts .= ' ' . $standby->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(k) FROM l');
}
is($counts, join('', map { " $_" } 1 .. 12), 'standby: finds each of some long entries');
is($primary->safe_psql('postgres', "SELECT delta_pages > 1 FROM hybrid_index_stats('l_k')"), 't', 'the long entries are on several pages');

# an index-only scan of the standby is open while the primary vacuums
my $cursor = $standby->background_psql('postgres');
$cursor->query_safe(<<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE c NO SCROLL CURSOR FOR SELECT k, id FROM t ORDER BY k;
EOF
my $first = $cursor->query_safe('FETCH 100 FROM c');
my $total = $cursor->query_safe('SELECT count(*) FROM t');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = 1; SELECT fill(30001, 33000); SELECT hybrid_merge(\'t_k\')');
$primary->wait_for_catchup($standby);
my @rest = split /\n/, $cursor->query_safe('FETCH 500 FROM c');
# replay of what VACUUM removes waits for the cursor
cmp_ok(vacuum('t'), '>', 1000, 'VACUUM removes what the cursor sees');
$primary->safe_psql('postgres', 'SELECT hybrid_merge(\'t_k\')');
my $target = $primary->lsn('insert');
$standby->poll_query_until('postgres', "SELECT pg_last_wal_receive_lsn() >= '$target'::pg_lsn");
push @rest, split /\n/, $cursor->query_safe('FETCH ALL FROM c');
is(scalar(@rest) + 100, $total, 'a cursor of the standby returns its snapshot over merges and VACUUM');
$cursor->query_safe('COMMIT');
$cursor->quit;
same_on_both($primary, $standby, 'after the cursor', \%queries, ['t']);

# the planner asks the index for values beyond what ANALYZE has seen
$primary->safe_psql('postgres', 'ANALYZE t');
$primary->safe_psql('postgres', 'SELECT fill(90001, 93000)');
$primary->wait_for_catchup($standby);
my ($expected, $estimated) = map { $_->safe_psql('postgres', 'EXPLAIN SELECT FROM t WHERE id > 60000') =~ /rows=(\d+)/ ? $1 : 0 } $primary, $standby;
cmp_ok($estimated, '>', 1, 'standby: rows beyond what ANALYZE has seen are expected');
is($estimated, $expected, 'the standby expects as many of them as the primary');

# Rows that only a snapshot of the standby sees, whose entries a scan of the
# primary has found dead: a merge keeps them, as nothing has told the standby.
$primary->safe_psql('postgres', 'CREATE TABLE h (k int); CREATE INDEX h_k ON h USING hybrid (k); INSERT INTO h SELECT generate_series(1, 100)');
$primary->wait_for_catchup($standby);
$cursor = $standby->background_psql('postgres');
$cursor->query_safe(<<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
EOF
is($cursor->query_safe('SELECT count(*) FROM h WHERE k < 60'), 59, 'a snapshot of the standby');
$primary->safe_psql('postgres', 'DELETE FROM h WHERE k <= 50');
is($primary->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM h WHERE k < 60; SELECT count(*) FROM h WHERE k < 60; SELECT hybrid_merge('h_k')"),
	"9\n9\n100", 'the primary reads and merges entries of deleted rows');
$primary->wait_for_catchup($standby);
is($cursor->query_safe('SELECT count(*) FROM h WHERE k < 60'), 59, 'the same snapshot after a merge');
# the same with entries of a leaf
$primary->safe_psql('postgres', 'DELETE FROM h WHERE k BETWEEN 51 AND 55');
is($primary->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM h WHERE k < 60; SELECT count(*) FROM h WHERE k < 60; INSERT INTO h VALUES (101); SELECT hybrid_merge('h_k')"),
	"4\n4\n1", 'the primary reads and merges entries of a leaf');
$primary->wait_for_catchup($standby);
is($cursor->query_safe('SELECT count(*) FROM h WHERE k < 60'), 59, 'the same snapshot after another merge');
$cursor->query_safe('COMMIT');
$cursor->quit;

# rows deleted before the standby's snapshot, removed under its index-only scan
$primary->safe_psql('postgres', 'CREATE TABLE v (k int, pad char(900)); CREATE INDEX v_k ON v USING hybrid (k); INSERT INTO v SELECT i, 1 FROM generate_series(1, 200) i');
$primary->safe_psql('postgres', 'SELECT hybrid_merge(\'v_k\')');
$primary->safe_psql('postgres', 'VACUUM (DISABLE_PAGE_SKIPPING) v');
$primary->safe_psql('postgres', 'DELETE FROM v WHERE k > 9');
$primary->wait_for_catchup($standby);
$cursor = $standby->background_psql('postgres');
$cursor->query_safe(<<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT k FROM v ORDER BY k;
EOF
is($cursor->query_safe('FETCH 1 FROM c'), '1', 'index-only scan of the standby started');
is(vacuum('v', ', TRUNCATE false'), 191, 'VACUUM removes rows that are dead to the standby too');
$primary->wait_for_catchup($standby);
is($cursor->query_safe('FETCH ALL FROM c'), join("\n", 2 .. 9), 'rows that VACUUM removed on the primary do not come back');
$cursor->query_safe('COMMIT');
$cursor->quit;

# An error in a check on the standby ends the statement, not the session.
$primary->safe_psql('postgres', <<EOF);
CREATE FUNCTION may_fail(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
\$\$BEGIN RETURN \$1 + coalesce(current_setting('test.fail', true), '0')::int; END\$\$;
CREATE TABLE e AS SELECT i AS k FROM generate_series(1, 10) i;
CREATE INDEX e_k ON e USING hybrid (may_fail(k));
EOF
$primary->wait_for_catchup($standby);
my ($e_ret, $e_out, $e_err) = $standby->psql('postgres', <<'EOF', on_error_stop => 0);
SET test.fail = 'x';
SELECT hybrid_index_check('e_k', true);
SET test.fail = 0;
SELECT hybrid_index_check('e_k', true), 'goes on';
EOF
like($e_err, qr/invalid input syntax for type integer: "x"/, 'a check on the standby meets an error');
is($e_out, '|goes on', 'the session goes on');

# The check on the standby while the primary merges, extends its files and
# reuses blocks: it may give up, but takes nothing for damage.
$primary->safe_psql('postgres', <<EOF);
CREATE TABLE w (id serial, k int, s text COLLATE "C");
CREATE INDEX w_k ON w USING hybrid (k);
CREATE INDEX w_s ON w USING hybrid (s text_hope_ops) WITH (filter = 'surf');
INSERT INTO w (k, s) SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
EOF
$primary->wait_for_catchup($standby);
my $load = start_psql($primary, <<'EOF' x 40);
INSERT INTO w (k, s) SELECT hashint4(i), md5(random()::text) FROM generate_series(1, 400) i;
SELECT hybrid_merge('w_k'), hybrid_merge('w_s');
DELETE FROM w WHERE id % 10 = (random() * 9)::int;
VACUUM w;
EOF
my %states;
my $until = time() + 10;
while (time() < $until)
{
	foreach my $index ('w_k', 'w_s')
	{
		my ($ret, $out, $err) = $standby->psql('postgres',
			"\\set VERBOSITY sqlstate\nSELECT hybrid_index_check('$index', true)");
		$states{ $ret == 0 ? 'ok' : $err =~ /ERROR:\s+(\w{5})/ ? $1 : $err }++;
	}
}
finish_psql($load);
note "checks on the standby: " . join(', ', map { "$_: $states{$_}" } sort keys %states);
is(join(' ', grep { !/^(ok|40001)$/ } sort keys %states), '', 'the check on a standby that replays reports no damage');
$primary->wait_for_catchup($standby);
same_answers($standby, 'standby: after checks under replay',
	{ "SELECT id FROM w WHERE s > 'a' AND s < 'c'" => 'index bitmap', 'SELECT id FROM w WHERE k > 0' => 'index bitmap' }, ['w']);

# Blocks whose records a crash has lost are zeroes in the primary's file, and
# not in the standby's at all: when VACUUM adopts them it has to be told.
$primary->safe_psql('postgres', <<EOF);
CREATE TABLE lost AS SELECT i AS k FROM generate_series(1, 3000) i;
CREATE INDEX lost_k ON lost USING hybrid (k);
EOF
my $file = index_file($primary, 'lost_k');
$primary->stop;
open(my $fh, '>>', $file) or die "$file: $!";
binmode $fh;
print $fh "\0" x (5 * 8192);
close($fh);
$primary->start;
my $blocks = "SELECT pg_relation_size('lost_k') / 8192, free_pages FROM hybrid_index_stats('lost_k')";
my $before = $primary->safe_psql('postgres', $blocks);
$primary->safe_psql('postgres', 'VACUUM lost');
$primary->wait_for_catchup($standby);
like("$before " . $primary->safe_psql('postgres', $blocks), qr/^(\d+)\|0 \1\|5$/, 'VACUUM adopts lost blocks');
is($standby->safe_psql('postgres', $blocks), $primary->safe_psql('postgres', $blocks), 'the standby has them');
is($standby->safe_psql('postgres', "SELECT hyb_check('lost')"), 't', "the standby's free list is sound");

# a standby restart in the middle, then promotion
$primary->safe_psql('postgres', 'SELECT fill(40001, 42000)');
$standby->restart;
same_on_both($primary, $standby, 'after a restart of the standby', \%queries, ['t']);
$primary->safe_psql('postgres', 'SELECT fill(50001, 50700)');
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
$standby->promote;
same_answers($standby, 'after promotion', \%queries, ['t']);
$standby->safe_psql('postgres', 'SELECT fill(60001, 63000); DELETE FROM t WHERE id % 5 = 2; VACUUM t; SELECT hybrid_merge(\'t_k\'), hybrid_merge(\'t_id\')');
same_answers($standby, 'work goes on after promotion', \%queries, ['t']);

no_crash($primary, 'nothing crashed on the primary');
no_crash($standby, 'nothing crashed on the standby, pages were consistent');
$standby->stop;
done_testing();
