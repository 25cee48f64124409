# What documents say of standbys: their own trees, and what makes these valid; the
# primary's merge_running, about which the alarm is silent there; a dictionary that the
# primary learns, which cancels queries.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', <<EOF, allows_streaming => 1);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
EOF
$primary->safe_psql('postgres', <<'EOF');
CREATE TABLE t (k int);
CREATE INDEX t_k ON t USING hybrid (k);
CREATE TABLE m (k int);
INSERT INTO m SELECT hashint4(i) FROM generate_series(1, 5000) i;
CREATE INDEX m_k ON m USING hybrid (k) WITH (merge_ratio = 1000);
CREATE TABLE h (s text COLLATE "C");
CREATE INDEX h_s ON h USING hybrid (s text_hope_ops);
CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
EOF
my $standby = new_standby($primary, 'standby', "max_standby_streaming_delay = 100ms\n");

# What VACUUM and merges write last may not have been flushed yet.
sub catch_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

# The answer of a look-up in t on the standby, and what it says of its trees.
sub standby_has
{
	my ($query) = @_;
	my $answer = $standby->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $query");
	return "$answer " . $standby->safe_psql('postgres', "SELECT tree_shared, tree_entries, tree_rebuilds FROM hybrid_index_stats('t_k')");
}

# ---- trees ----

my $count = 'SELECT count(*) FROM t WHERE k > 0';
$primary->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 3000)');
catch_up();
is(standby_has($count), '3000 t|3000|1', 'a standby builds a shared tree');
is($primary->safe_psql('postgres', "SELECT tree_entries FROM hybrid_index_stats('t_k')"), '0', 'which is its own');
$primary->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(3001, 3100)');
catch_up();
is(standby_has($count), '3100 t|3100|1', 'it follows the log');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE k <= 100; VACUUM (INDEX_CLEANUP on) t');
catch_up();
is(standby_has($count), '3000 t|3000|2', 'VACUUM on the primary has it begun anew');
$primary->safe_psql('postgres', "SELECT hybrid_merge('t_k'); INSERT INTO t VALUES (5000)");
catch_up();
is(standby_has($count), '3001 t|1|2', 'after a merge it has a tree of the new log');

# ---- a merge of the primary ----

$primary->safe_psql('postgres', <<'EOF');
INSERT INTO m SELECT hashint4(i) FROM generate_series(5001, 6000) i;
SET hybridindex.merge_floor = 1;
INSERT INTO m SELECT hashint4(i) FROM generate_series(6001, 6050) i;
EOF
catch_up();

my $pages = test_root() . '/docs/guide';
my ($question) = slurp_file("$pages/monitoring.md") =~ /## 2\. Does a merge hang\?\n+```sql\n(.*?)```/s;
my $queries = slurp_file("$pages/prometheus/queries.yaml");
my ($running, $still) = slurp_file("$pages/prometheus/alerts.yaml") =~ /alert: HybridMergeHangs\n\s*expr: (\w+) == 1 and changes\((\w+)\[5m\]\) == 0\n/;

# What the queries of the alarms say of an index on a node.
sub metrics
{
	my ($node) = @_;
	my %metric;

	while ($queries =~ /^(\w+):\n  query: \|\n((?:    .*\n)+)/mg)
	{
		my ($name, $query) = ($1, $2);
		my @rows = split /\n/, $node->safe_psql('postgres', "SELECT key || ' ' || max(value::float8) FROM ($query) q, json_each_text(to_json(q)) WHERE value ~ '^[0-9.]+\$' GROUP BY key", extra_params => [ '-U', 'watcher' ]);
		$metric{"${name}_$_->[0]"} = $_->[1] foreach map { [split] } @rows;
	}
	return \%metric;
}

# Does the alarm's expression hold on a node, for two looks at it?
sub alarm_fires
{
	my ($node) = @_;
	my ($before, $after) = map { metrics($node) } 1 .. 2;

	return ($after->{$running} // 0) == 1 && $before->{$still} == $after->{$still};
}
my %node = (primary => $primary, standby => $standby);
foreach my $name (qw(primary standby))
{
	is($node{$name}->safe_psql('postgres', "SELECT merge_running FROM hybrid_index_stats('m_k')"), 't', "$name: merge_running");
	is($node{$name}->safe_psql('postgres', $question) ne '', $name eq 'primary', "$name: it is asked about a hanging merge");
	is(alarm_fires($node{$name}), $name eq 'primary', "$name: the alarm about a merge that does not go on");
}

# ---- a dictionary ----

$standby->safe_psql('postgres', 'ALTER SYSTEM SET hot_standby_feedback = on; SELECT pg_reload_conf()');
my $reader = start_psql($standby, "BEGIN; SET enable_seqscan = off; SELECT count(*) FROM h WHERE s > ''; SELECT 'reads'; SELECT pg_sleep(600);");
ok($standby->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND wait_event = 'PgSleep'"), 'a transaction of the standby has used the index');
$primary->safe_psql('postgres', "INSERT INTO h SELECT 'http://example.org/' || md5(i::text) FROM generate_series(1, 1000) i; SELECT hybrid_merge('h_s')");
is($primary->safe_psql('postgres', "SELECT learned FROM hybrid_dictionary_info('h_s')"), 't', 'the primary learns');
ok(!finish_psql($reader), 'the transaction of the standby is cancelled');
like($reader->{err}, qr/conflict with recovery.*User was holding a relation lock for too long/s, 'because of the lock');
catch_up();
is($standby->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM h WHERE s > 'http'"), '1000', 'then the standby has the index as learned');

# ---- promotion ----

$primary->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(4001, 4200)');
catch_up();
like(standby_has($count), qr/^3201 t\|201\|/, 'the standby has a tree');
$primary->stop;
$standby->promote;
is($standby->safe_psql('postgres', "SELECT tree_entries FROM hybrid_index_stats('t_k')"), '0', 'a promoted server does not use it');
like(standby_has($count), qr/^3201 t\|201\|/, 'and builds another one');

no_crash($_, $_->name . ': nothing crashed') foreach $primary, $standby;
$standby->stop;
done_testing();
