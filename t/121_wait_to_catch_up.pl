
# A reader that waited for another to enter what is new in the log into the trees
# reads them together with others, not alone.  Needs a server with injection points
# (./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

$PostgreSQL::Test::Utils::timeout_default = 60;
my $node = new_node('catch_up', <<CONF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
CONF

need_points($node);

# Look-ups of such keys wait for their tree: they are not found by their bytes.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE t (k numeric);
CREATE INDEX t_k ON t USING hybrid (k);
INSERT INTO t SELECT i FROM generate_series(1000, 6000) i;
SQL
sub look_up { return "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT k FROM t WHERE k = $_[0]"; }
is($node->safe_psql('postgres', look_up(2000)), '2000', 'there is a tree');
is($node->safe_psql('postgres', "SELECT tree_shared FROM hybrid_index_stats('t_k')"), 't', 'in shared memory');
$node->safe_psql('postgres', 'INSERT INTO t VALUES (13), (15), (20)');

sub waits { return $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE $_[0] AND pid <> pg_backend_pid()"); }
sub go_on { return $node->safe_psql('postgres', "SELECT injection_points_wakeup('hybrid-$_[0]')"); }
sub held { return 'SELECT injection_points_set_local();' . join('', map { "SELECT injection_points_attach('hybrid-$_', 'wait');" } @_); }

# one has seen that there is something to enter, another enters it
my $waits = start_psql($node, held('catch-up', 'read-tree'), look_up(14));
ok(held_at($node, 'catch-up', $waits), 'one is to enter what is new');
my $enters = start_psql($node, held('enter-tree'), look_up(20));
ok(held_at($node, 'enter-tree', $enters), 'another enters it');
go_on('catch-up');
ok(waits("wait_event_type = 'LWLock' AND query LIKE '%k = 14'"), 'the first waits for it');

# the first has nothing left to enter, and is held while it reads
go_on('enter-tree');
finish_psql($enters);
ok(held_at($node, 'read-tree', $waits), 'the first reads');
$node->psql('postgres', look_up(20), stdout => \my $out, timeout => 30, timed_out => \my $late);
is($out, '20', 'together with others');
go_on('read-tree');
finish_psql($waits);
no_crash($node, 'no crash');
$node->stop;
done_testing();
