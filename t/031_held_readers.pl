
# Readers, and inserters that look for duplicates, are held between two reads.
# Meanwhile a merge freezes, steps and finishes, VACUUM removes entries, and line
# pointers and pages are used again.  The reader's answer stays right.
#
# The first part needs only a cursor.  The rest needs a server with injection points
# (./dev pg 17, ./dev pg 18).  A session attaches a point for itself, is held there,
# and goes on when the other sessions are done.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('readers', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
EOF

# ---- a cursor on retired delta pages ----

# An index-only cursor reads backward and has read the keys from 457 to 1480
# ahead when it stands at 1000, on the second of three delta pages.  They are
# merged.  VACUUM passes the first page, with entries that were dead before the
# cursor began, and waits for the second.  The cursor goes on to the first page,
# which does not belong to the index any more: a pin there would hold nothing up.
# VACUUM finishes and sets the visibility map, and the dead must not come back.
{
	run($node,
		'CREATE TABLE rp (k int8, pad char(40))', 'CREATE INDEX rp_k ON rp USING hybrid (k)',
		"INSERT INTO rp SELECT i, 'x' FROM generate_series(1, 1800) i",
		'VACUUM rp', 'DELETE FROM rp WHERE k BETWEEN 500 AND 520');
	is($node->safe_psql('postgres', "SELECT delta_pages FROM hybrid_index_stats('rp_k')"), '3', 'the log has three pages');

	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $cursor = start_psql($node, <<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT k FROM rp ORDER BY k DESC;
FETCH 801 FROM c;
\\! touch $dir/at1000
\\! for i in \$(seq 600); do [ -e $dir/merged ] && break; sleep 0.1; done
FETCH 401 FROM c;
\\! touch $dir/at599
\\! for i in \$(seq 600); do [ -e $dir/vacuumed ] && break; sleep 0.1; done
FETCH ALL FROM c;
COMMIT;
EOF
	wait_file("$dir/at1000");
	is($node->safe_psql('postgres', "SELECT hybrid_merge('rp_k')"), '1800', 'entries under a cursor are merged');
	my $vacuum = start_psql($node, "VACUUM (INDEX_CLEANUP on, TRUNCATE false) rp;\n");
	wait_for($node, 'VACUUM waits for a pin',
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'VACUUM (INDEX%' AND $waits_for_pin)");
	append_to_file("$dir/merged", '');
	wait_file("$dir/at599");

	# Where the pin counts VACUUM waits on, and where not it is over soon.
	foreach (1 .. 20)
	{
		$vacuum->{handle}->pump_nb;
		last unless $vacuum->{handle}->pumpable;
		select(undef, undef, undef, 0.05);
	}
	append_to_file("$dir/vacuumed", '');
	ok(finish_psql($cursor), 'the cursor ends') or diag $cursor->{err};
	ok(finish_psql($vacuum), 'VACUUM ends') or diag $vacuum->{err};
	is($cursor->{out}, join('', map { "$_\n" } reverse(1 .. 499, 521 .. 1800)),
		'a cursor on retired delta pages gives each row once, and no dead ones');
}

if (!has_points($node))
{
	diag 'SKIPPED: this server has no injection points, no reader was held at one';
	no_crash($node, 'nothing crashed');
	$node->stop;
	done_testing();
	exit;
}
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');

# A session that is held at a point, which is attached for it alone.
sub start_held
{
	my ($point, $script) = @_;
	my $session = start_psql($node, <<EOF, $script);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-$point', 'wait');
EOF
	$session->{point} = $point;
	foreach (1 .. 400)
	{
		return $session
		  if $node->safe_psql('postgres',
			"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'InjectionPoint' AND wait_event = 'hybrid-$point'") > 0;
		$session->{handle}->pump_nb;
		last unless $session->{handle}->pumpable;
		select(undef, undef, undef, 0.05);
	}
	fail("a session was held at $point");
	diag "$session->{out} $session->{err}";
	return $session;
}

# It goes on, to its end.
sub let_go
{
	my ($session) = @_;
	leave_point($node, $session->{point});
	return finish_psql($session);
}

# ---- readers over changes of version, VACUUM and reuse ----

# Rows in leaves and others among them in the log; of both some were dead before
# the reader's snapshot.
sub fill_reader_table
{
	run($node,
		'DROP TABLE IF EXISTS r',
		'CREATE TABLE r (k int, v int, s text COLLATE "C")',
		'CREATE INDEX r_k ON r USING hybrid (k, s)',
		"INSERT INTO r SELECT i * 10, i, md5(i::text) FROM generate_series(1, 2000) i",
		"SELECT hybrid_merge('r_k')",
		"INSERT INTO r SELECT i * 10 + 5, i, md5(i::text) FROM generate_series(1, 1200) i",
		'VACUUM (FREEZE) r',
		'DELETE FROM r WHERE v % 70 < 10 AND k < 19000');
	return;
}

# The version changes, dead entries are removed, line pointers and pages are
# used again.  A merge that is held between two steps stays so while the reader
# goes on.
my %meanwhile = (
	'a freeze and a step' => [
		"INSERT INTO r SELECT i * 10 + 3, i, 'new' FROM generate_series(1, 400) i",
		'step', 'INSERT INTO r VALUES (77, 1, NULL), (17777, 2, NULL)' ],
	'a merge, VACUUM and reuse' => [
		"SELECT hybrid_merge('r_k')", 'VACUUM (INDEX_CLEANUP on, TRUNCATE false) r',
		"INSERT INTO r SELECT i * 10 + 7, i, 'again' FROM generate_series(1, 100) i",
		"SELECT hybrid_merge('r_k')",
		"INSERT INTO r SELECT i * 10 + 8, i, 'more' FROM generate_series(1, 600) i" ]);

# Under an MVCC snapshot the new row of a line pointer is invisible; index-only
# scans trust the visibility map.
my @readers = (
	[ 'descend', 'SELECT k, s FROM r WHERE k BETWEEN 100 AND 19500 ORDER BY k', 'order_only' ],
	[ 'descend', 'SELECT k, v, s FROM r ORDER BY k DESC', 'order' ],
	[ 'dynamic-fetch', 'SELECT k, s FROM r ORDER BY k DESC, s DESC', 'order_only' ],
	[ 'dynamic-fetch', 'SELECT * FROM r WHERE k BETWEEN 300 AND 9000', 'bitmap' ],
	[ 'delta-pin', 'SELECT k, s FROM r WHERE k > 40 ORDER BY k', 'order_only' ],
	[ 'delta-pin', 'SELECT k FROM r ORDER BY k DESC, s DESC', 'order_only' ]);

foreach my $what (sort keys %meanwhile)
{
	foreach my $reader (@readers)
	{
		my ($point, $query, $path) = @$reader;
		my $merge;

		fill_reader_table();
		my $session = start_held($point, <<EOF);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT hyb_same(\$q\$$query\$q\$, '$path');
COMMIT;
EOF
		foreach my $statement (@{ $meanwhile{$what} })
		{
			if ($statement eq 'step')
			{
				$merge = start_held('step-installed', "SELECT hybrid_merge('r_k');\n");
				next;
			}

			# VACUUM may wait for the reader's pin
			local $ENV{PGOPTIONS} = '-c statement_timeout=700';
			my ($ret, $out, $err) = $node->psql('postgres', $statement);
			fail("$statement: $err") if $ret != 0 && $statement !~ /^VACUUM/;
		}
		my $ok = let_go($session) && $session->{out} =~ /^t$/m;
		ok($ok, "$what while a reader ($path) is held at $point")
		  or diag "$session->{out} $session->{err}";
		ok(let_go($merge), 'the merge ends') if $merge;
	}
}
same_answers($node, 'the index is right afterwards',
	{ 'SELECT k, s FROM r ORDER BY k, s' => 'order_only' }, ['r']);

# An index-only scan has pinned a page of the log, and is to ask whether the page
# still belongs to the index.  VACUUM waits for that pin.  It would not for one that
# comes after the answer: the scan would then return a row that VACUUM has removed
# from a page of the table that it has marked all-visible.  The row's entry is on the
# second page of the log: the first one becomes a page of the free list.
{
	run($node, 'CREATE TABLE dp (k int)', 'CREATE INDEX dp_k ON dp USING hybrid (k)',
		'INSERT INTO dp SELECT generate_series(1, 1800)', 'VACUUM dp', 'DELETE FROM dp WHERE k = 900');
	my $session = start_held('delta-pinned',
		"SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT k FROM dp WHERE k BETWEEN 900 AND 902 ORDER BY k;\n");
	run($node, "SELECT hybrid_merge('dp_k')");
	my $vacuum = start_psql($node, "VACUUM (INDEX_CLEANUP on, TRUNCATE false) dp;\n");
	wait_for($node, 'VACUUM waits for a pin, or has ended', <<EOF);
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'VACUUM (INDEX%' AND $waits_for_pin)
	OR (SELECT reltuples = 1799 FROM pg_class WHERE relname = 'dp')
EOF
	ok(let_go($session), 'a scan is held with a page of the log pinned') or diag $session->{err};
	ok(finish_psql($vacuum), 'VACUUM ends') or diag $vacuum->{err};
	like($session->{out}, qr/^901\n902$/m, 'the scan returns the rows that are there');
	unlike($session->{out}, qr/^900$/m, 'the scan does not return the row that VACUUM has removed');
}

# VACUUM fails when it has flagged a page's dead entries, and before it marks
# them in the tree: scans find them dead on the page each time, and leave them
# out.
run($node,
	'CREATE TABLE d (k int)', 'CREATE UNIQUE INDEX d_k ON d USING hybrid (k)',
	'INSERT INTO d SELECT generate_series(1, 1000)', 'VACUUM d',
	'SELECT count(*) FROM d WHERE k = 5', 'DELETE FROM d WHERE k BETWEEN 200 AND 500',
	"SELECT injection_points_attach('hybrid-vacuum-flagged', 'error')");
my ($failed, $ignored, $error) = $node->psql('postgres', 'VACUUM (INDEX_CLEANUP on) d');
like($error, qr/error triggered/, 'VACUUM fails after a page was flagged');
run($node, "SELECT injection_points_detach('hybrid-vacuum-flagged')");
{
	local $ENV{PGOPTIONS} = '-c statement_timeout=20s';
	same_answers($node, 'scans end',
		{ 'SELECT k FROM d ORDER BY k' => 'order_only', 'SELECT k FROM d ORDER BY k DESC' => 'order_only' });
	run($node, 'INSERT INTO d SELECT generate_series(300, 310)', 'VACUUM (INDEX_CLEANUP on) d',
		'INSERT INTO d SELECT generate_series(2001, 2400)');
	is($node->safe_psql('postgres', 'SELECT count(*) > 200 FROM d WHERE k > 2000 AND ctid < (SELECT ctid FROM d WHERE k = 1000)'),
		't', 'the next VACUUM makes the line pointers free, and other rows get them');
	my $range = 'SELECT k FROM d WHERE k BETWEEN 100 AND 600';
	same_answers($node, 'answers are right when line pointers are used again',
		{ $range => 'index only bitmap', 'SELECT k FROM d ORDER BY k' => 'order_only' }, ['d']);
	run($node, "SELECT hybrid_merge('d_k')");
	same_answers($node, 'after a merge, too', { $range => 'index only bitmap' }, ['d']);
}

# A merge remembers dead line pointers that it has seen in one generation.  Between
# two of its steps VACUUM makes them free, and other rows of the same keys get them.
# The same merge then takes the generation that has the entries of these rows: it
# must look at the table again.
{
	run($node,
		'CREATE TABLE rem (k int, v int)', 'INSERT INTO rem SELECT i % 10, i FROM generate_series(1, 1000) i',
		'CREATE INDEX rem_k ON rem USING hybrid (k)', 'DELETE FROM rem WHERE v % 2 = 0',
		'SELECT count(*) FROM rem', 'INSERT INTO rem SELECT i % 10, 0 FROM generate_series(1, 100) i',
		"SELECT injection_points_attach('hybrid-step-reserved', 'error')");
	my ($ret, $out, $err) = $node->psql('postgres', "SELECT hybrid_merge('rem_k')");
	like($err, qr/error triggered/, 'a merge fails with a frozen generation');
	run($node, "SELECT injection_points_detach('hybrid-step-reserved')", 'INSERT INTO rem VALUES (0, 0)');
	my $merge = start_held('merge-between', "SELECT hybrid_merge('rem_k');\n");
	run($node, 'VACUUM (INDEX_CLEANUP on, TRUNCATE false) rem', 'INSERT INTO rem SELECT i % 10, -i FROM generate_series(1, 300) i');
	is($node->safe_psql('postgres', 'SELECT count(*) > 100 FROM rem WHERE v < 0 AND ctid < (SELECT max(ctid) FROM rem WHERE v > 0)'),
		't', 'VACUUM makes line pointers free between two steps, and other rows get them');
	ok(let_go($merge), 'the merge ends with another generation') or diag $merge->{err};
	is($node->safe_psql('postgres', "SELECT dynamic_entries FROM hybrid_index_stats('rem_k')"), '0', 'it has merged all entries');
	same_answers($node, 'a merge takes no row for one that it has seen dead',
		{ 'SELECT k, count(*) FROM rem WHERE k >= 0 GROUP BY k ORDER BY k' => 'order bitmap' }, ['rem']);
}

# VACUUM is held when it has flagged entries of the log's second page, and not
# yet marked them in the tree, so that a cursor still takes them from there.  The
# cursor has a leaf pinned, which VACUUM comes to later, and waits for.
{
	run($node,
		'CREATE TABLE fl (k int, v int)', 'INSERT INTO fl SELECT i, 0 FROM generate_series(2, 2000, 2) i',
		'CREATE INDEX fl_k ON fl USING hybrid (k)',
		'INSERT INTO fl SELECT i, 1 FROM generate_series(1, 1999, 2) i', 'VACUUM fl',
		'SET enable_seqscan = off; SELECT count(*) FROM fl WHERE k > 0',
		'DELETE FROM fl WHERE k BETWEEN 1601 AND 1699 AND v = 1');
	my $held = start_held('vacuum-flagged', "VACUUM (INDEX_CLEANUP on, TRUNCATE false) fl;\n");
	my $cursor = $node->background_psql('postgres');
	$cursor->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; BEGIN');
	$cursor->query_safe('DECLARE c NO SCROLL CURSOR FOR SELECT k FROM fl WHERE k > 0 ORDER BY k');
	my @keys = split /\n/, $cursor->query_safe('FETCH 1 FROM c');
	leave_point($node, $held->{point});
	wait_for($node, 'VACUUM waits for the pin on a leaf',
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'VACUUM (INDEX%' AND $waits_for_pin)");
	push @keys, split /\n/, $cursor->query_safe('FETCH ALL FROM c');
	$cursor->query_safe('COMMIT');
	$cursor->quit;
	ok(finish_psql($held), 'VACUUM ends') or diag $held->{err};
	is(join(' ', @keys), join(' ', grep { $_ < 1600 || $_ % 2 == 0 || $_ > 1700 } 1 .. 2000),
		'a cursor that took flagged entries from the tree returns none of them');
}

# ---- versions that are kept ----

# The index changes when a session has read the counter of changes, and is about
# to read the metapage.  What it keeps must not pass for the version of a later
# count: its next look-up would miss the row.
foreach my $changes ([], ["SELECT hybrid_merge('vc_k')"])
{
	run($node,
		'DROP TABLE IF EXISTS vc', 'CREATE TABLE vc (k int, v text)',
		"INSERT INTO vc SELECT i, 'old' FROM generate_series(1, 2000) i",
		'CREATE INDEX vc_k ON vc USING hybrid (k)',
		(@$changes ? "INSERT INTO vc VALUES (6, 'in the log')" : ()));
	my $look = "SELECT string_agg(v, ' ' ORDER BY v) FROM vc WHERE k = 5;\n";
	my $session = start_held('version-counted', "SET enable_seqscan = off; SET statement_timeout = '20s';\n$look$look");
	run($node, @$changes, "INSERT INTO vc VALUES (5, 'new')");
	ok(let_go($session), 'a session is held before it reads the metapage') or diag $session->{err};
	is((split /\n/, $session->{out})[-1], 'new old',
		'its next look-up sees the log\'s first page' . (@$changes ? ' after a merge' : ''));
}

# ---- lanes of the log ----

# While one session is held with the last page of the first lane locked, another
# opens a lane, which it keeps to.  What it appends there later is read, though
# nothing comes to the first lane.
{
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $go_on = sub { return "\\! touch $dir/$_[0]\n\\! for i in \$(seq 600); do [ -e $dir/$_[1] ] && break; sleep 0.1; done\n"; };

	run($node, 'CREATE TABLE l (n numeric)', 'CREATE INDEX l_n ON l USING hybrid (n)');
	my $other = start_psql($node, "SET application_name = 'other'; INSERT INTO l VALUES (-1);\n", $go_on->('first', 'second'),
		"INSERT INTO l VALUES (-2);\n", $go_on->('opened', 'third'), "INSERT INTO l VALUES (-3);\n");
	wait_file("$dir/first");
	my $filler = start_held('delta-page', "INSERT INTO l SELECT generate_series(1, 2000);\n");
	append_to_file("$dir/second", '');
	wait_for($node, 'another inserter waits for the metapage',
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'other' AND wait_event_type IN ('LWLock', 'Buffer'))");
	ok(let_go($filler), 'a session that was held with a full page goes on') or diag $filler->{err};
	wait_file("$dir/opened");
	my %query = ('SELECT n FROM l WHERE n < 5' => 'index only bitmap');
	same_answers($node, 'entries of two lanes are found', \%query);
	append_to_file("$dir/third", '');
	ok(finish_psql($other), 'the second lane gets another entry') or diag $other->{err};
	same_answers($node, 'the new entry of the second lane is found', \%query, ['l']);
}

# A row's entries for three indexes, while the only tail of the first one is locked: the
# other two get theirs under one record, and the inserter waits with no tail locked.
{
	run($node, 'CREATE TABLE m (a int, b int, c int)', map { "CREATE INDEX m_$_ ON m USING hybrid ($_)" } qw(a b c));
	my $other = $node->background_psql('postgres');
	$other->query_safe("SET application_name = 'several'; INSERT INTO m VALUES (-1, -1, -1)");
	my $filler = start_held('delta-page', "INSERT INTO m SELECT i, i, i FROM generate_series(1, 2000) i;\n");
	my $entries = "sum(dynamic_entries) FROM unnest('{m_b,m_c}'::regclass[]) i, hybrid_index_stats(i)";
	my $before = value_of($node, $entries);
	$other->query_until(qr/start/, "\\echo start\nINSERT INTO m VALUES (-2, -2, -2);\n");
	wait_for($node, 'another inserter waits for the metapage',
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'several' AND wait_event_type IN ('LWLock', 'Buffer'))");
	is(value_of($node, $entries), $before + 2, 'the other indexes have got their entries');
	run($node, "SET statement_timeout = '20s'; SELECT hybrid_merge('m_b'), hybrid_merge('m_c')");
	ok(let_go($filler), 'the session that was held goes on') or diag $filler->{err};
	$other->query_safe('SELECT 1');
	$other->quit;
	same_answers($node, 'the row is found by each index', { map { ("SELECT $_ FROM m WHERE $_ < 5" => 'index only bitmap') } qw(a b c) }, ['m']);
}

# ---- uniqueness checks ----

# The row of key 1 is dead, so that after VACUUM its line pointer goes to a row
# that is inserted next; its entry is in a leaf, or in the log.  Returns its TID.
sub fill_unique_table
{
	my ($merged) = @_;
	run($node,
		'DROP TABLE IF EXISTS u', 'CREATE TABLE u (k int, v text)',
		'CREATE UNIQUE INDEX u_k ON u USING hybrid (k)',
		"INSERT INTO u SELECT i, 'old' FROM generate_series(2, 20000) i",
		"INSERT INTO u VALUES (1, 'old')",
		($merged ? ("SELECT hybrid_merge('u_k')", "INSERT INTO u VALUES (0, 'in the log')") : ())
	);
	my $tid = $node->safe_psql('postgres', 'SELECT ctid FROM u WHERE k = 1');
	run($node, 'DELETE FROM u WHERE k = 1');
	return $tid;
}

my @reuse = (
	"SELECT hybrid_merge('u_k')", 'VACUUM (INDEX_CLEANUP on, TRUNCATE false) u',
	"INSERT INTO u VALUES (50001, 'reused')");

sub check_reuse
{
	my ($what) = @_;
	is($node->safe_psql('postgres', "SELECT string_agg(k || ' ' || v, ', ' ORDER BY k) FROM u WHERE k IN (1, 50001)"),
		'1 new, 50001 reused', $what);
	return;
}

# The candidate's row is another's by the time that it is looked at.
foreach my $case ([ 'descend', 1 ], [ 'dynamic-fetch', 1 ], [ 'dynamic-fetch', 0 ],
	[ 'unique-candidate', 0 ])
{
	my ($point, $merged) = @$case;
	my $where = "$point, with the candidate in " . ($merged ? 'a leaf' : 'the log');

	my $tid = fill_unique_table($merged);
	my $session = start_held($point, "INSERT INTO u VALUES (1, 'new');\n");
	run($node, @reuse);
	is($node->safe_psql('postgres', 'SELECT ctid FROM u WHERE k = 50001'), $tid,
		"the line pointer is used again while an insert is held at $where");
	ok(let_go($session), 'no false conflict') or diag $session->{err};
	check_reuse('both rows are there');
	same_answers($node, 'the unique index is right', { 'SELECT k FROM u ORDER BY k' => 'order_only' }, ['u']);
}

# ON CONFLICT looks with a dirty snapshot, and updates what it finds.
{
	my $tid = fill_unique_table(0);
	my $session = start_held('delta-pin',
		"INSERT INTO u VALUES (1, 'new') ON CONFLICT (k) DO UPDATE SET v = 'updated';\n");
	run($node, @reuse);
	is($node->safe_psql('postgres', 'SELECT ctid FROM u WHERE k = 50001'), $tid,
		'the line pointer is used again');
	ok(let_go($session), 'ON CONFLICT is held before a pin') or diag $session->{err};
	check_reuse('ON CONFLICT does not update the row that got the line pointer');
}

# A look-up goes the short way, and has read the levels when its entry moves there.
{
	fill_unique_table(1);
	run($node, "INSERT INTO u VALUES (60001, 'moves')");
	my $session = start_held('dynamic-fetch', <<EOF);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT 'found ' || v FROM u WHERE k = 60001;
EOF
	run($node, "SELECT hybrid_merge('u_k')");
	ok(let_go($session), 'a look-up is held before it reads the log') or diag $session->{err};
	like($session->{out}, qr/^found moves$/m, 'it finds the entry that a merge has moved meanwhile');
}

# A bitmap scan has found a row dead, and is to leave a hint.
{
	run($node,
		'DROP TABLE IF EXISTS bh', 'CREATE TABLE bh (k int, v int, pad char(400)) WITH (autovacuum_enabled = off)',
		'CREATE INDEX bh_k ON bh USING hybrid (k)',
		"INSERT INTO bh SELECT i, 0, '' FROM generate_series(1, 120) i",
		"SELECT count(*) FROM bh WHERE pad = ''");
	my $where = 'SET enable_seqscan = off; SET enable_indexscan = off; SELECT v, ctid FROM bh WHERE k = 50';
	my $tid = $node->safe_psql('postgres', $where) =~ s/^0\|//r;
	run($node, 'DELETE FROM bh WHERE k = 50', "SELECT count(*) FROM bh WHERE pad = ''");
	my $session = start_held('delta-pin',
		"SET enable_seqscan = off; SET enable_indexscan = off; SELECT count(v) FROM bh WHERE k BETWEEN 49 AND 51;\n");
	run($node, 'VACUUM (INDEX_CLEANUP on, TRUNCATE false) bh', "INSERT INTO bh VALUES (50, 1, '')");
	ok(let_go($session), 'a bitmap scan is held before it leaves a hint') or diag $session->{err};
	like($session->{out}, qr/^2$/m, 'it has seen what its snapshot shows');
	is($node->safe_psql('postgres', $where), "1|$tid", 'the row that got the line pointer has no hint');
}

# Of two with one key the second finds the first, wherever that is by then.
foreach my $between ('', "SELECT hybrid_merge('u_k')")
{
	fill_unique_table(1);
	my $session = start_held('unique-checked', "INSERT INTO u VALUES (1, 'looked first');\n");

	# nothing is held that others would need
	run($node, "SET statement_timeout = '20s'; INSERT INTO u VALUES (1, 'came first'), (40001, 'other')");
	run($node, $between) if $between;
	ok(!let_go($session), 'a key that came in after the check' . ($between ? ' and was merged' : ''));
	like($session->{err}, qr/duplicate key value violates unique constraint "u_k"/, 'is found');
	is($node->safe_psql('postgres', 'SELECT v FROM u WHERE k = 1'), 'came first', 'the row is the only one');
}

# Of two with one key the second waits until the entry of the first is in the log:
# its search would miss the entry before.
{
	my $first = start_held('append', "INSERT INTO u VALUES (60001, 'came first');\n");
	my $second = start_psql($node, "SET application_name = 'second'; INSERT INTO u VALUES (60001, 'came second');\n");
	wait_for($node, 'the second inserter waits, or has inserted', <<EOF);
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'second' AND wait_event_type = 'LWLock')
	OR EXISTS (SELECT FROM u WHERE k = 60001)
EOF
	ok(let_go($first), 'the first of two inserters appends') or diag $first->{err};
	ok(!finish_psql($second), 'the second one fails');
	like($second->{err}, qr/duplicate key value violates unique constraint "u_k"/, 'since it finds the key');
	is($node->safe_psql('postgres', 'SELECT string_agg(v, $$ $$) FROM u WHERE k = 60001'), 'came first', 'there is one row');
}

# More appends than are remembered.
{
	fill_unique_table(1);
	my $session = start_held('unique-checked', "INSERT INTO u VALUES (1, 'looked first');\n");
	run($node, "INSERT INTO u VALUES (1, 'came first')",
		'INSERT INTO u SELECT i FROM generate_series(100000, 120000) i');
	ok(!let_go($session), 'a key that came in long ago');
	like($session->{err}, qr/duplicate key value violates unique constraint "u_k"/, 'is found');
}

# About as many appends as are remembered, all in the partition of the key:
# such keys are found by computing what the partition is chosen by.
{
	run($node, 'CREATE TABLE p (k text COLLATE "C")', 'CREATE UNIQUE INDEX p_k ON p USING hybrid (k)');
	my @keys = split /\n/, $node->safe_psql('postgres', <<'EOF');
SELECT k FROM (
	SELECT k, uuid_hash_extended(('01' || encode(k::bytea, 'hex') || '00')::uuid, 0) AS h
	FROM generate_series(1, 100000) i, to_char(i, 'FM00000000000000') k) x,
	(SELECT hashoidextended(pg_relation_filenode('p_k'), oid::int8) FROM pg_database WHERE datname = current_database()) f(h)
WHERE (x.h & 1023) # (((f.h & 1023) + x'e3'::int + (x.h >> 7 & 1023)) & 1023) = 0
EOF
	foreach my $others (8, 9, 10)
	{
		my $key = shift @keys;
		my $session = start_held('unique-checked', "INSERT INTO p VALUES ('$key');\n");
		run($node, "INSERT INTO p VALUES ('$key')",
			join(';', map { "INSERT INTO p VALUES ('$_')" } splice(@keys, 0, $others)));
		ok(!let_go($session), "a key that came in $others appends ago");
		like($session->{err}, qr/duplicate key value violates unique constraint "p_k"/, 'is found');
	}
	cmp_ok(scalar(@keys), '>', 0, 'there were enough keys');
}

# A key that is in the frozen generation only, with a merge between two steps.
run($node,
	'CREATE TABLE f (k int, n numeric)',
	'CREATE UNIQUE INDEX f_k ON f USING hybrid (k)',
	'CREATE UNIQUE INDEX f_n ON f USING hybrid (n)',
	'INSERT INTO f SELECT i, i FROM generate_series(1, 30000) i');
foreach my $index ('f_k', 'f_n')
{
	my $merge = start_held('step-installed', "SELECT hybrid_merge('$index');\n");
	my $static = $node->safe_psql('postgres', "SELECT static_entries FROM hybrid_index_stats('$index')");
	my @accepted;

	ok($static > 0 && $static < 29000, "the merge of $index is held after a step, at $static entries");
	foreach my $key (1, int($static / 2), $static, $static + 1, 29000, 30000)
	{
		my $row = $index eq 'f_k' ? "($key, -$key)" : "(-$key, $key.0)";
		my ($ret, $out, $err) = $node->psql('postgres', "INSERT INTO f VALUES $row");
		push @accepted, "$key $err" if $err !~ /violates unique constraint "$index"/;
	}
	is(join("\n", @accepted), '', "no duplicate of a merged or frozen key in $index");
	ok(let_go($merge), 'the merge goes on');
}
same_answers($node, 'the indexes are right', { 'SELECT k FROM f ORDER BY k' => 'order_only' }, ['f']);

# All keys of an index on numeric meet, so that any append has a check repeated.
# An inserter that has lost some times gets a turn, and the other inserters wait.
{
	run($node,
		'CREATE TABLE n (n numeric)', 'CREATE UNIQUE INDEX n_n ON n USING hybrid (n)',
		'INSERT INTO n SELECT generate_series(1, 100)');
	my $session = start_held('unique-checked', <<EOF);
BEGIN;
INSERT INTO n VALUES (1000.5);
SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'object' AND objid = 'n_n'::regclass AND pid = pg_backend_pid();
COMMIT;
EOF
	my $held = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_class'::regclass AND objid = 'n_n'::regclass AND granted)";
	my $i = 0;

	while ($i < 40 && $node->safe_psql('postgres', $held) eq 'f')
	{
		run($node, 'INSERT INTO n VALUES (' . (2000 + $i++) . ')');
		$node->psql('postgres', "SELECT injection_points_wakeup('hybrid-unique-checked')");
		select(undef, undef, undef, 0.05);
	}
	is($node->safe_psql('postgres', $held), 't', 'an inserter that searches in vain again and again gets a turn');
	wait_for($node, 'it is held again', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'hybrid-unique-checked')");
	my $other = start_psql($node, "SET application_name = 'other'; INSERT INTO n VALUES (1000.50);\n");
	wait_for($node, 'another inserter waits for it',
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'other' AND wait_event_type = 'Lock')");
	my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '300ms'; INSERT INTO n VALUES (3000)");
	like($err, qr/statement timeout/, 'an inserter that waits for the turn can be cancelled');
	ok(let_go($session), 'its next search counts') or diag $session->{err};
	like($session->{out}, qr/^0$/m, 'the inserter gives up its turn before its transaction ends');
	ok(!finish_psql($other), 'the other one goes on');
	like($other->{err}, qr/duplicate key value violates unique constraint "n_n"/, 'the next inserter finds the key');
	is($node->safe_psql('postgres', $held), 'f', 'no session has the turn in the end');
	run($node, 'INSERT INTO n VALUES (3000)');
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
