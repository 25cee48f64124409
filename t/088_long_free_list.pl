
# Free lists of several pages.  Blocks are taken from them.  VACUUM sorts out those
# of the file's end, cannot cut it, begins again at another place, and cuts.  A
# standby replays each change from the logged bytes, and compares the result with the
# primary's pages.  No page is logged as a whole because of a checkpoint.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('long_list', <<EOF, allows_streaming => 1);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
wal_consistency_checking = 'generic'
full_page_writes = off
checkpoint_timeout = 1h
max_wal_size = 4GB
EOF
my $standby = new_standby($node, 'long_list_standby', 'max_standby_streaming_delay = -1');

# Three entries a leaf: what is behind the first sixteen bytes says nothing, and is of a
# type that is not compressed.
$node->safe_psql('postgres', <<'EOF');
CREATE FUNCTION noise() RETURNS text IMMUTABLE LANGUAGE sql AS
	$$ SELECT string_agg(md5(i::text), '') FROM generate_series(1, 160) i $$;
CREATE TABLE t (id int, s varbit) WITH (autovacuum_enabled = off);
ALTER TABLE t ALTER s SET STORAGE plain;
CREATE INDEX t_s ON t USING hybrid (s);
CREATE FUNCTION fill(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO t SELECT i, ('x' || md5(i::text) || noise)::varbit FROM generate_series(first, last) i, noise()
$$;
EOF

my %queries = (q{SELECT id FROM t WHERE s > 'x80' AND s < 'x81'} => 'index');

sub all_is_well
{
	my ($what) = @_;
	same_on_both($node, $standby, $what, \%queries, ['t']);
	is($standby->safe_psql('postgres', "SELECT pg_relation_size('t_s')"), value_of($node, "pg_relation_size('t_s')"), "$what: the standby's file is as long");
	return;
}

# a page of the free list names this number of blocks
my $page = 2040;

run($node, 'SELECT fill(1, 15000)', "SELECT hybrid_merge('t_s')");
cmp_ok(stats($node, 't_s', 'leaf_pages'), '>', 2.2 * $page, 'the index has many leaves');

# Most rows are deleted while a session has the index open and holds no snapshot.  The
# file cannot be cut, and its free blocks stay where they are.
my $dir = PostgreSQL::Test::Utils::tempdir();
my $reader = start_psql($node, <<EOF);
SET enable_seqscan = off; SET enable_bitmapscan = off;
BEGIN;
SELECT count(*) FROM t WHERE s > 'xfff0';
\\! touch $dir/open; while [ ! -e $dir/close ]; do sleep 0.1; done
COMMIT;
EOF
wait_file("$dir/open");
run($node, 'DELETE FROM t WHERE id % 50 <> 0', 'VACUUM (INDEX_CLEANUP ON) t');
my $free = stats($node, 't_s', 'free_pages');
cmp_ok($free, '>', 2.1 * $page, "the free list has three pages: $free blocks");
all_is_well('much is free');

# Blocks are taken from it, a page of the list among them.
run($node, 'SELECT fill(100001, 103500)', "SELECT hybrid_merge('t_s')", 'SELECT fill(200001, 203500)', "SELECT hybrid_merge('t_s')");
cmp_ok(stats($node, 't_s', 'free_pages'), '<', $free - 0.9 * $page, 'blocks were taken from two of its pages: ' . stats($node, 't_s', 'free_pages') . ' are left');
all_is_well('blocks were taken');

# The end of the file is sorted out again, from places further and further down.
# Free blocks that stay where they are follow what was to be cut off.  Where VACUUM
# can be held, it is at first held after each step, and the standby looked at: the
# moves that follow log pages of the list again that a step has not logged.
sub steps_of_vacuum
{
	my $vacuum = start_psql($node, 'VACUUM (INDEX_CLEANUP ON) t;');
	my $steps = 0;
	while (held_at($node, 'shrink-sifted', $vacuum))
	{
		run($node, 'SELECT txid_current()');	# what was logged is written
		$node->wait_for_catchup($standby);
		is($standby->safe_psql('postgres', "SELECT count(hybrid_index_check('t_s'))"), '1', 'the standby has all links of the list after step ' . ++$steps);
		$node->psql('postgres', "SELECT injection_points_wakeup('hybrid-shrink-sifted')");
	}
	ok(finish_psql($vacuum), 'VACUUM ends') or diag $vacuum->{err};
	return $steps;
}

foreach my $id (201500, 200000, 101500, 100000)
{
	run($node, "DELETE FROM t WHERE id > $id");
	if ($id == 201500 && has_points($node))
	{
		run($node, 'CREATE EXTENSION injection_points', "SELECT injection_points_attach('hybrid-shrink-sifted', 'wait')");
		cmp_ok(steps_of_vacuum(), '>', 5, 'VACUUM was held after each step');
		run($node, "SELECT injection_points_detach('hybrid-shrink-sifted')");
	}
	else
	{
		run($node, 'VACUUM (INDEX_CLEANUP ON) t');
	}
	all_is_well("rows above $id are gone");
}
run($node, 'SELECT fill(300001, 302000)', "SELECT hybrid_merge('t_s')");
all_is_well('the end was used again');

# Then it can be cut.
my $before = value_of($node, "pg_relation_size('t_s')");
append_to_file("$dir/close", '');
ok(finish_psql($reader), 'the reader ends');
run($node, 'VACUUM (INDEX_CLEANUP ON) t');
cmp_ok(value_of($node, "pg_relation_size('t_s')"), '<', 0.7 * $before, "the file was cut");
all_is_well('after the cut');
run($node, 'SELECT fill(400001, 402000)', "SELECT hybrid_merge('t_s')");
all_is_well('grown again');

foreach my $server ($node, $standby)
{
	no_crash($server, 'nothing crashed, replayed pages were those of the primary');
	$server->stop;
}
done_testing();
