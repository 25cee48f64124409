
# The first reader of a long log sorts it and builds its tree at once.  Other
# sessions append, remove entries, freeze and merge meanwhile.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('bulk', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 10000000
autovacuum = off
EOF

my %queries = (
	'SELECT k FROM b WHERE k < -9000000000000000000 ORDER BY k' => '{order,order_only}',
	'SELECT k FROM b WHERE k > 9000000000000000000 ORDER BY k DESC' => '{order,order_only}',
	'SELECT s, n FROM b WHERE s < $$customer 01$$ ORDER BY s, n' => '{order,order_only}',
	'SELECT s, n FROM b WHERE s = $$customer $$ || md5($$17$$)' => '{index,only,bitmap}',
	'SELECT k FROM b WHERE k = hashint8extended(77, 1)' => '{index,only,bitmap}');

# A table with indexes whose logs no session has read.
sub fill
{
	run($node, 'DROP TABLE IF EXISTS b', <<EOF);
CREATE TABLE b (k int8, s text COLLATE "C", n int, u uuid);
CREATE INDEX b_k ON b USING hybrid (k) INCLUDE (u);
CREATE INDEX b_s ON b USING hybrid (s, n DESC) INCLUDE (k);
INSERT INTO b SELECT hashint8extended(g, 1), 'customer ' || md5((g % 20000)::text), g % 7, md5(g::text)::uuid FROM generate_series(1, 177000) g
EOF
	$node->restart;
	return;
}

fill();
is($node->safe_psql('postgres', <<EOF), '177000|t|t', 'a sorted tree');
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT FROM b WHERE k = 5;
SELECT FROM b WHERE s = 'x';
SELECT tree_entries, tree_memory / tree_entries < 62, (SELECT tree_memory / tree_entries < 110 FROM hybrid_index_stats('b_s')) FROM hybrid_index_stats('b_k');
EOF
same_answers($node, 'all paths over it', \%queries, ['b']);
run($node, "INSERT INTO b SELECT hashint8extended(g, 2), 'customer ' || md5((g % 20000)::text), g % 7 FROM generate_series(1, 20000) g",
	'DELETE FROM b WHERE n = 3', 'VACUUM b',
	"INSERT INTO b SELECT hashint8extended(g, 3), 'customer ' || md5((g % 20000)::text), g % 7 FROM generate_series(1, 20000) g");
same_answers($node, 'changed since', \%queries, ['b']);
run($node, "SELECT hybrid_merge(i) FROM unnest(array['b_k', 'b_s']::regclass[]) i");
same_answers($node, 'merged', \%queries, ['b']);

# too little memory to sort, and for the tree
foreach my $setting ('maintenance_work_mem = 1024', 'hybridindex.dynamic_memory = 2048')
{
	fill();
	$node->append_conf('postgresql.conf', $setting);
	$node->reload;
	same_answers($node, $setting, \%queries, ['b']);
	$node->append_conf('postgresql.conf', "maintenance_work_mem = '64MB'\nhybridindex.dynamic_memory = '64MB'");
	$node->reload;
}

# ---- meanwhile ----

my $points = has_points($node)
  && $node->psql('postgres', 'CREATE EXTENSION injection_points') == 0;
my %meanwhile = (
	'insertions' => ["INSERT INTO b SELECT hashint8extended(g, 4), 'new', g FROM generate_series(1, 5000) g"],
	'a merge' => ["SELECT hybrid_merge('b_k')"],
	'an insertion, a merge' => [ 'INSERT INTO b VALUES (7, NULL, 7)', "SELECT hybrid_merge('b_k')", 'INSERT INTO b VALUES (8, NULL, 8)' ],
	'VACUUM and reuse' => [
		'VACUUM (INDEX_CLEANUP on, TRUNCATE off) b',
		"INSERT INTO b SELECT hashint8extended(g, 5), 'again', g FROM generate_series(1, 15000) g" ]);
foreach my $what ($points ? sort keys %meanwhile : ())
{
	fill();
	run($node, 'DELETE FROM b WHERE n = 5');
	my $session = start_psql($node, <<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-bulk-read', 'wait');
SELECT count(*) FROM b WHERE k BETWEEN 0 AND 1000000000000000;
EOF
	ok(held_at($node, 'bulk-read', $session), "$what while a log is sorted");
	run($node, @{ $meanwhile{$what} });
	leave_point($node, 'bulk-read');
	ok(finish_psql($session), "$what: done");
	same_answers($node, "$what: the same answers", \%queries, ['b']);
}

if ($points)
{
	my $sort = qr/notice triggered for injection point hybrid-bulk-read/;
	my $notice = <<EOF;
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-bulk-read', 'notice');
EOF

	# a session that has inserted knows the version from when the log was short;
	# the memory is all for its tree
	$node->restart;
	my ($ret, $out, $err) = $node->psql('postgres', <<EOF);
$notice
CREATE TABLE own (k int8, u uuid);
CREATE INDEX own_k ON own USING hybrid (k) INCLUDE (u);
INSERT INTO own SELECT hashint8extended(g, 1), md5(g::text)::uuid FROM generate_series(1, 178000) g;
SELECT count(*) FROM own WHERE k = 5;
EOF
	like($err, $sort, 'the session that has inserted sorts the log as well');

	# one of several readers that come at the same time sorts it
	fill();
	my $session = start_psql($node, $notice =~ s/'notice'/'wait'/r, 'SELECT count(*) FROM b WHERE k = 5');
	ok(held_at($node, 'bulk-read', $session), 'a log is sorted');
	# a tree that is not made of a sorted log has leaves that are not full
	is($node->safe_psql('postgres', <<EOF), '177000|t', 'other readers do not sort it, but wait for some time');
SET enable_seqscan = off;
SELECT FROM b WHERE k = 5;
SELECT tree_entries, tree_memory / tree_entries > 62 FROM hybrid_index_stats('b_k');
EOF
	$node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-bulk-read')");
	ok(finish_psql($session), 'done');
	same_answers($node, 'the same answers', \%queries, ['b']);
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
