
# A standby replays merges into newer levels, and passes between levels, while
# queries run there.  In one snapshot indexes and sequential scans find the same
# rows, whatever the startup process does meanwhile.  The standby is restarted, and
# promoted in the middle of a pass.  Only a server with injection points makes sure
# that it is the middle (./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', <<EOF, allows_streaming => 1);
wal_consistency_checking = 'generic'
session_preload_libraries = 'hybridindex'
hybridindex.background_merge = off
hybridindex.dynamic_memory = 64kB
hybridindex.merge_floor = 100
EOF
my $standby = new_standby($primary, 'standby', <<EOF);
hot_standby_feedback = off
max_standby_streaming_delay = 60s
EOF

$primary->safe_psql('postgres', <<EOF);
CREATE TABLE t (k int8, s text COLLATE "C", n numeric, v int) WITH (autovacuum_enabled = off);
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT hashint8extended(r, 0), md5(r::text), (r % 100000) / 8.0, r % 100
	FROM (SELECT (random() * 1e15)::int8 AS r FROM generate_series(1, n)) x
	ON CONFLICT DO NOTHING
\$\$;
INSERT INTO t SELECT hashint8extended(g, 0), md5(g::text), g / 7.0, g % 100 FROM generate_series(1, 30000) g;
-- small freezes, for which there are to be several levels
CREATE UNIQUE INDEX t_k ON t USING hybrid (k) WITH (merge_ratio = 300, filter = points);
CREATE INDEX t_s ON t USING hybrid (s) INCLUDE (v) WITH (filter = surf, merge_ratio = 300);
CREATE INDEX t_n ON t USING hybrid (n DESC, v) WITH (merge_ratio = 300);
-- long separators: many level-1 nodes, and so many units
CREATE INDEX t_p ON t USING hybrid ((ARRAY[repeat('x', 500) || s])) WITH (merge_ratio = 300);
EOF
my @indexes = ('t_k', 't_s', 't_n', 't_p');
my %queries = (
	'SELECT k, v FROM t WHERE k BETWEEN -3000000000000000000 AND -2000000000000000000' => 'index bitmap',
	'SELECT k FROM t WHERE k = ANY (ARRAY(SELECT hashint8extended(g, 0) FROM generate_series(29000, 31000, 9) g))' => 'index only bitmap',
	'SELECT s, v FROM t WHERE s >= $$d$$ AND s < $$e$$ ORDER BY s DESC' => 'order order_only',
	'SELECT s FROM t WHERE s IN (md5($$1$$), md5($$29999$$), $$nothing$$)' => 'index only bitmap',
	'SELECT n, v FROM t WHERE n BETWEEN 1000 AND 1500' => 'index only bitmap',
	'SELECT n, v FROM t WHERE n > 11000 ORDER BY n DESC, v' => 'order order_only',
	'SELECT v FROM t WHERE ARRAY[repeat($$x$$, 500) || s] > ARRAY[repeat($$x$$, 500) || $$f7$$]' => 'index bitmap');

# A counter's sum over the indexes.
sub total
{
	my ($node, $counter) = @_;
	my $rows = join(' UNION ALL ', map { "SELECT * FROM hybrid_index_stats('$_')" } @indexes);
	return $node->safe_psql('postgres', "SELECT sum($counter) FROM ($rows) s");
}

# Nothing is replayed meanwhile: both servers have the same rows, by each path.
sub both
{
	my ($what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$primary->wait_for_catchup($standby);
	same_answers($primary, "primary: $what", \%queries, ['t']);
	same_answers($standby, "standby: $what", \%queries, ['t']);
	my $sums = 'SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t';
	is($standby->safe_psql('postgres', $sums), $primary->safe_psql('postgres', $sums), "the same rows: $what");
	return;
}

# Insert until the index has several levels, with $entries in the newer ones.
sub several_levels
{
	my ($index, $entries) = @_;
	my $several = "levels > 1 AND upper_entries > $entries";
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach (1 .. 60)
	{
		$primary->safe_psql('postgres', 'SELECT fill(400)');
		last if stats($primary, $index, $several) eq 't';
	}
	is(stats($primary, $index, $several), 't', 'there are levels');
	return;
}

several_levels('t_k', 0);
both('several levels');

# ---- queries while merges, passes and VACUUM are replayed ----

my %seen = (newer => 0);
my ($compared, $cancelled, @bad) = (0, 0);

# Compare until the session has ended.  Answers to one query are of one snapshot.
sub compare_while
{
	my ($session) = @_;
	my @order = sort keys %queries;
	my $n = 0;

	while ($session->{handle}->pumpable)
	{
		my $query = $order[$n++ % @order];
		my ($ret, $out, $err) = $standby->psql('postgres', <<EOF);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT hyb_same(\$q\$$query\$q\$, '$queries{$query}');
SELECT levels, merge_running, upper_entries > 0 FROM hybrid_index_stats('t_k');
COMMIT;
EOF
		if ($ret != 0 && $err =~ /conflict with recovery/) { $cancelled++; }
		elsif ($ret != 0 || $out !~ /^t\n(\d)\|(\w)\|(\w)$/) { push @bad, "$query: $out $err"; }
		else
		{
			$compared++;
			$seen{"levels $1"}++;
			$seen{unfinished}++ if $2 eq 't';
			$seen{newer}++ if $3 eq 't';
		}
		eval { $session->{handle}->pump_nb };
	}
	ok(finish_psql($session), 'the work beside succeeds') or diag $session->{err};
	return;
}

my $work = join('', map { "SELECT fill(350);\nUPDATE t SET n = n + 1 WHERE v = $_;\n"
	  . ($_ % 4 ? '' : "DELETE FROM t WHERE v = $_ + 50;\nVACUUM t;\n") } 1 .. 16);
my ($merges, $moved) = map { total($standby, $_) } 'merges', 'moved_entries';
compare_while(start_psql($primary, $work));
is(join("\n", @bad), '', 'answers on the standby while it replays');
note("compared $compared, cancelled $cancelled; " . join(', ', map { "$_: $seen{$_}" } sort keys %seen));
cmp_ok($compared, '>=', 5, 'there are answers to compare');
cmp_ok($seen{newer}, '>', 0, 'some were read while newer levels had entries');
both('after merges, passes and VACUUM');
cmp_ok(total($standby, 'merges'), '>', $merges + 5, 'merges were replayed');
cmp_ok(total($standby, 'moved_entries'), '>', $moved, 'passes were replayed');

# ---- scans that are open over passes ----

my $cursor = $standby->background_psql('postgres');
$cursor->query_safe(<<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE a NO SCROLL CURSOR FOR SELECT k FROM t ORDER BY k;
DECLARE b NO SCROLL CURSOR FOR SELECT n, v FROM t ORDER BY n, v DESC;
EOF
my %want = (
	a => $cursor->query_safe('SET enable_sort = on; SELECT k FROM t ORDER BY k + 0'),
	b => $cursor->query_safe('SELECT n, v FROM t ORDER BY n + 0, v DESC'));
my %got = (a => '', b => '');
foreach my $round (1 .. 6)
{
	$got{$_} .= $cursor->query_safe("FETCH 2500 FROM $_") . "\n" foreach 'a', 'b';
	$primary->safe_psql('postgres', 'SELECT fill(500)') foreach 1 .. 2;
	# levels become one, and several again
	$primary->safe_psql('postgres', "SELECT hybrid_merge('$_')") foreach $round == 3 ? @indexes : ();
	$primary->wait_for_catchup($standby);
}
$got{$_} .= $cursor->query_safe("FETCH ALL FROM $_") foreach 'a', 'b';
$cursor->query_safe('COMMIT');
$cursor->quit;
ok($got{$_} eq $want{$_}, "cursor $_ of the standby returns its snapshot over merges and passes") foreach 'a', 'b';
both('after the cursors');

# ---- a restart in the middle ----

foreach my $mode ('fast', 'immediate')
{
	my $session = start_psql($primary, "SELECT fill(350);\n" x 12);
	select(undef, undef, undef, 0.4);
	$standby->stop($mode);
	$standby->start;
	ok(finish_psql($session), 'the work beside succeeds') or diag $session->{err};
	both("after a restart of the standby ($mode)");
}

# ---- promotion in the middle ----

several_levels('t_p', 500);
my $session;
if (has_points($primary))
{
	$primary->safe_psql('postgres', 'CREATE EXTENSION injection_points; ALTER SYSTEM SET hybridindex.merge_step_pages = 4; SELECT pg_reload_conf()');

	# hold a step that has moved entries between levels, and is not the last one
	foreach (1 .. 5)
	{
		my $moved_before = stats($primary, 't_p', 'moved_entries');
		my $pid;

		$primary->safe_psql('postgres', "SELECT injection_points_attach('hybrid-step-installed', 'wait')");
		$session = start_psql($primary, "SELECT hybrid_merge('t_p');");
		while ($pid = held_at($primary, 'step-installed', $session))
		{
			last if stats($primary, 't_p', "levels > 1 AND moved_entries > $moved_before AND EXISTS (SELECT FROM hybrid_merge_progress WHERE relid = 't_p'::regclass AND pass_level IS NOT NULL)") eq 't';
			$primary->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-step-installed')");
			select(undef, undef, undef, 0.1);
		}
		last if $pid;
		finish_psql($session);
		$primary->safe_psql('postgres', "SELECT injection_points_detach('hybrid-step-installed')");
		several_levels('t_p', 500);
	}
	$primary->wait_for_catchup($standby);
	is(stats($standby, 't_p', 'levels > 1'), 't', 'a pass is under way');
	same_answers($standby, 'standby: in the middle of a pass', \%queries, ['t']);
}
else
{
	$session = start_psql($primary, "SELECT fill(350);\n" x 20);
	select(undef, undef, undef, 0.5);
}
$primary->stop('immediate');
finish_psql($session);
$standby->promote;
same_answers($standby, 'after promotion', \%queries, ['t']);
$standby->safe_psql('postgres', 'SELECT fill(400)') foreach 1 .. 8;
$standby->safe_psql('postgres', 'DELETE FROM t WHERE v % 9 = 4');
$standby->safe_psql('postgres', 'VACUUM t');
same_answers($standby, 'work goes on after promotion', \%queries, ['t']);
$standby->safe_psql('postgres', "SELECT hybrid_merge('$_')") foreach @indexes;
is(stats($standby, $_, 'levels || $$ $$ || upper_entries || $$ $$ || dynamic_entries'), '1 0 0', "$_ is one level") foreach @indexes;
same_answers($standby, 'at the end', \%queries, ['t']);

no_crash($primary, 'nothing crashed on the primary');
no_crash($standby, 'nothing crashed on the standby, pages were consistent');
$standby->stop;
done_testing();
