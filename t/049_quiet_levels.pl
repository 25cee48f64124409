
# Indexes without inserts come to one level by themselves where that pays, in no
# other process's way.  The times are shorter than the defaults, which needs a server
# with assertions.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('quiet', <<CONF);
hybridindex.dynamic_memory = 64kB
hybridindex.merge_floor = 100
wal_consistency_checking = 'generic'
checkpoint_timeout = 1h
max_wal_size = 4GB
CONF
plan skip_all => 'this server has no settings for tests'
  if $node->safe_psql('postgres', 'SHOW debug_assertions') ne 'on';
$node->append_conf('postgresql.conf', 'hybridindex.quiet_time = 1500');
$node->reload;

$node->safe_psql('postgres', <<SQL);
CREATE TABLE t (k int8) WITH (autovacuum_enabled = off);
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT hashint8extended((random() * 1e15)::int8, 0) FROM generate_series(1, n) x
\$\$;
INSERT INTO t SELECT hashint8extended(g, 0) FROM generate_series(1, 60000) g;
CREATE INDEX t_k ON t USING hybrid (k);
SQL

sub workers
{
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker'");
}

# Merges have written what it takes to make one level, but have not done that:
# this comes not long before they would.
sub busy
{
	my ($what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($since, $moved) = (0, -1);
	foreach (1 .. 300)
	{
		$node->safe_psql('postgres', 'SELECT fill(300)');
		my @now = split /\|/, stats($node, 't_k', 'written_bytes, moved_entries, static_bytes, levels');
		($since, $moved) = @now[ 0, 1 ] if $now[1] != $moved;
		last if $now[3] > 1 && $now[0] - $since > 1.15 * $now[2];
	}
	cmp_ok(stats($node, 't_k', 'levels'), '>', 1, "$what: there are levels");
}

sub one_level
{
	my ($what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($node->poll_query_until('postgres', q(SELECT levels = 1 AND upper_entries = 0 AND NOT merge_running FROM hybrid_index_stats('t_k'))),
		"$what: one level");
	is(stats($node, 't_k', 'dynamic_entries'), 0, "$what: what was in the log is there as well");
	is($node->safe_psql('postgres', q(SELECT count(hybrid_index_check('t_k', true)))), 1, "$what: sound");
}

# one row now and then is enough
busy('trickle');
foreach (1 .. 30)
{
	$node->safe_psql('postgres', 'SELECT fill(1)');
	select(undef, undef, undef, 0.2);
}
cmp_ok(stats($node, 't_k', 'levels'), '>', 1, 'a trickle of inserts keeps several levels');

busy('busy');
one_level('quiet');
no_worker($node, 'the worker leaves');

# an application that pauses: levels stay until merges have written as much again
foreach (1 .. 40)
{
	last if stats($node, 't_k', 'levels > 1') eq 't';
	$node->safe_psql('postgres', 'SELECT fill(500)');
}
cmp_ok(stats($node, 't_k', 'levels'), '>', 1, 'a new level');
my $written = stats($node, 't_k', 'written_bytes');
no_worker($node, 'no worker waits for the index to be quiet');
cmp_ok(stats($node, 't_k', 'levels'), '>', 1, 'an index that is quiet too soon keeps its levels');
cmp_ok(stats($node, 't_k', 'written_bytes') - $written, '<', stats($node, 't_k', 'static_bytes / 2'), 'too little was written to rewrite the index');

# ---- held ----

SKIP:
{
	skip 'this server has no injection points', 1
	  if !has_points($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');

	# insertions come while a quiet index's entries are moved
	attach_point($node, 'quiet-asked');
	busy('busy again');
	$node->safe_psql('postgres', 'ALTER SYSTEM SET hybridindex.merge_step_pages = 2; SELECT pg_reload_conf()');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-quiet-asked'"),
		'the index is quiet');
	attach_point($node, 'pass-fetched');
	release_point($node, 'quiet-asked');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-pass-fetched'"),
		'its entries are moved');
	$node->safe_psql('postgres', "INSERT INTO t SELECT hashint8extended(g, 5) FROM generate_series(1, 700) g");
	release_point($node, 'pass-fetched');
	no_worker($node, 'the worker leaves again');
	cmp_ok(stats($node, 't_k', 'levels'), '>', 1, 'insertions end that');
	cmp_ok(stats($node, 't_k', 'upper_entries'), '>', 3000, 'entries that were not moved stay');
	is($node->safe_psql('postgres', q(SELECT count(hybrid_index_check('t_k', true)))), 1, 'sound');
}

# what was logged of all that is replayed, and compared
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', q(SELECT count(hybrid_index_check('t_k', true)))), 1, 'sound after a crash');
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
