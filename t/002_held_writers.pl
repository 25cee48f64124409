
# A backend is held at each point between two changes of pages: in a merge, in
# VACUUM, in an append and in a build.  There it is killed, or fails.  The index is
# right afterwards.  Needs a server with injection points (./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('held', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
wal_consistency_checking = 'generic'
restart_after_crash = on
EOF
need_points($node);

$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (id int, s text COLLATE "C");
CREATE UNIQUE INDEX t_id ON t USING hybrid (id);
CREATE INDEX t_s ON t USING hybrid (s) INCLUDE (id);
CREATE SEQUENCE ids;
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT nextval('ids'), md5(random()::text) FROM generate_series(1, n)
\$\$;
SELECT fill(3000);
SELECT hybrid_merge('t_id'), hybrid_merge('t_s');
EOF
my %queries = (
	'SELECT s FROM t WHERE id BETWEEN 100 AND 3000' => 'index bitmap',
	'SELECT s, id FROM t ORDER BY s' => 'order_only',
	'SELECT id FROM t ORDER BY id DESC' => 'order order_only');

# Point, what passes it, and what has to be done before
my $merge = "SELECT hybrid_merge('t_s'), hybrid_merge('t_id');";
my $vacuum = 'VACUUM t;';
my @points = (
	[ 'freeze-closed', $merge ], [ 'step-reserved', $merge ],
	[ 'step-written', $merge ], [ 'step-installed', $merge ],
	[ 'merge-finish', $merge ], [ 'retire', $merge ],
	[ 'space-settle', $merge ], [ 'space-extended', $merge, 'REINDEX TABLE t;' ],
	[ 'delta-page', 'SELECT fill(3000);' ], [ 'vacuum-recheck', $vacuum ],
	[ 'vacuum-count', $vacuum ],
	[ 'build-written', 'CREATE INDEX t_new ON t USING hybrid (s, id);' ]);

sub prepare
{
	my ($before) = @_;
	$node->safe_psql('postgres', ($before // '') . 'SELECT fill(700); DELETE FROM t WHERE id % 13 = (random() * 12)::int');
	return;
}

foreach my $item (@points)
{
	my ($point, $script, $before) = @$item;

	# killed there; other sessions are not asked while it holds locks
	prepare($before);
	$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-$point', 'wait')");
	my $session = start_psql($node, $script);
	my $pid = held_at($node, $point, $session);
	ok($pid, "a session was held at $point") or diag $session->{err};
	if ($pid)
	{
		my $from = -s $node->logfile;
		# what it has logged so far is in the file, as if others had committed
		$node->safe_psql('postgres', 'SELECT txid_current()');
		kill 'KILL', $pid;
		finish_psql($session);
		wait_for_restart($node, $from);
	}
	same_answers($node, "killed at $point", \%queries, ['t']);

	# an error there
	prepare($before);
	$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-$point', 'error')");
	my ($ret, $out, $err) = $node->psql('postgres', $script);
	like($err, qr/error triggered for injection point hybrid-$point/, "an error at $point");
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-$point')");
	same_answers($node, "after an error at $point", \%queries, ['t']);

	$node->safe_psql('postgres', "SELECT fill(200); $merge");
	$node->safe_psql('postgres', 'VACUUM t; DROP INDEX IF EXISTS t_new');
	same_answers($node, "work goes on after $point", \%queries, ['t']);
}

# readers and writers beside a session that is held between two steps
prepare();
$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-step-installed', 'wait')");
my $session = start_psql($node, $merge);
ok(held_at($node, 'step-installed', $session), 'a merge is held after a step');
$node->safe_psql('postgres', "SET statement_timeout = '20s'; SELECT fill(300); DELETE FROM t WHERE id % 17 = 3");
same_answers($node, 'readers and writers do not wait for a held merge', \%queries, []);
$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-step-installed'); SELECT injection_points_wakeup('hybrid-step-installed')");
ok(finish_psql($session), 'the merge goes on') or diag $session->{err};
same_answers($node, 'the merge ends', \%queries, ['t']);

# A merge fails after a step, and VACUUM removes all entries that were left to
# merge: the watermark of that generation is not taken for the next one's.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE wm (n numeric, id int);
CREATE INDEX wm_n ON wm USING hybrid (n);
INSERT INTO wm SELECT random() * 1000, i FROM generate_series(1, 40000) i;
SELECT injection_points_attach('hybrid-step-installed', 'error');
EOF
my ($wm_ret, $wm_out, $wm_err) = $node->psql('postgres', "SELECT hybrid_merge('wm_n')");
like($wm_err, qr/error triggered/, 'a merge fails after its first step');
$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-step-installed')");
my $merged = $node->safe_psql('postgres', "SELECT static_entries FROM hybrid_index_stats('wm_n')");
cmp_ok($merged, '<', 40000, 'the killed merge did not merge everything');
$node->safe_psql('postgres',
	"DELETE FROM wm WHERE n > (SELECT n FROM wm ORDER BY n OFFSET $merged - 1 LIMIT 1)");
$node->safe_psql('postgres', $_)
  foreach ('VACUUM wm', "SELECT hybrid_merge('wm_n')", "SELECT hybrid_index_check('wm_n', true)",
	'INSERT INTO wm SELECT random() * 1000, i FROM generate_series(1, 40000) i',
	"SELECT hybrid_merge('wm_n')");
same_answers($node, 'merges after that', { 'SELECT n FROM wm ORDER BY n' => 'order_only' }, ['wm']);

no_crash($node, 'nothing crashed by itself, replayed pages were consistent');
$node->stop;
done_testing();
