
# A tree that was made of a sorted log, and is not used since something came in between,
# gives all its memory back, however often that happens.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('sorted', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 10000000
enable_seqscan = off
enable_bitmapscan = off
enable_indexonlyscan = off
EOF
need_points($node);

run($node, 'CREATE TABLE b (k text COLLATE "C", n int) WITH (autovacuum_enabled = off)', 'CREATE INDEX b_k ON b USING hybrid (k)');

# In the end another reader has built the tree, or the one that was held has.
my %meanwhile = (
	'VACUUM' => [ 'DELETE FROM b WHERE n % 7 = 3', 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) b' ],
	'another reader' => ["SELECT FROM b WHERE k = 'x'"],
	'VACUUM, and another reader' => [ 'DELETE FROM b WHERE n % 7 = 4', 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) b', "SELECT FROM b WHERE k = 'x'" ],
	'an error' => []);
my $of_first;
foreach my $what (map { sort keys %meanwhile } 1, 2)
{
	# a log of more than 512 pages
	run($node, "INSERT INTO b SELECT repeat(md5(g::text), 10), g FROM generate_series(1, 15000) g");
	my $action = $what eq 'an error' ? 'error' : 'wait';
	my $session = start_psql($node, <<EOF);
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-bulk-read', '$action');
SELECT FROM b WHERE k = 'y';
EOF
	ok($action eq 'error' || held_at($node, 'bulk-read', $session), "$what while a log is sorted") or diag $session->{err};
	run($node, $_) foreach @{ $meanwhile{$what} };
	release_point($node, 'bulk-read') if $action eq 'wait';
	is(finish_psql($session), $action eq 'wait', "$what: done") or diag $session->{err};
	run($node, "SELECT FROM b WHERE k = 'z'");
	is(run($node, "SELECT used_bytes - tree_bytes FROM hybrid_memory; SELECT tree_entries > 0 FROM hybrid_index_stats('b_k')"), "0\nt", "$what: all memory in use is the tree's");
	run($node, "SELECT hybrid_merge('b_k')");
	my $bytes = run($node, 'SELECT used_bytes FROM hybrid_memory');
	$of_first //= $bytes;
	is($bytes, $of_first, "$what: nothing more is in use once the log is merged");
}
same_answers($node, 'all answers', { "SELECT n FROM b WHERE k < '1'" => 'index bitmap' }, ['b']);
no_crash($node, 'no crash');
$node->stop;
done_testing();
