
# A standby is promoted while sessions of the primary are held between two changes of
# pages: in merges, in VACUUM, in an append, in the learning of a dictionary.  Each has
# an index of its own.  The promoted server reads the indexes, goes on with them, and
# accounts for each block.  Needs a server with injection points (./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', <<EOF, allows_streaming => 1);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
wal_consistency_checking = 'generic'
EOF
need_points($node);
my $standby = new_standby($node, 'standby');

# Point, what passes it, and what is done before.  Each table and its index have the
# name of the point.  The server holds eight sessions.
my $merge = "SELECT hybrid_merge('%s_i');";
my @points = (
	[ 'freeze-closed', $merge ], [ 'step-written', $merge ], [ 'space-settle', $merge ],
	# a file without free blocks
	[ 'space-extended', $merge, 'REINDEX INDEX %s_i' ], [ 'step-reserved', $merge, 'REINDEX INDEX %s_i' ],
	[ 'learn-written', $merge ],
	[ 'delta-page', 'INSERT INTO %1$s SELECT i, md5(i::text) FROM generate_series(10000, 13000) i;' ],
	[ 'vacuum-recheck', 'VACUUM (INDEX_CLEANUP on) %s;' ]);

sub table_of { return $_[0] =~ s/-/_/r; }

sub fill
{
	my ($table, $from, $to) = @_;
	return "INSERT INTO $table SELECT i, md5(i::text) FROM generate_series($from, $to) i";
}

sub right
{
	my ($what, @of) = @_;
	my %queries = map { ("SELECT s, id FROM $_ ORDER BY s" => 'order_only') } @of;

	same_answers($standby, $what, \%queries, \@of);
	return;
}

my @tables = map { table_of($_->[0]) } @points;
foreach my $point (@points)
{
	my ($name, undef, $before) = @$point;
	my $table = table_of($name);
	my $learns = $name =~ /^learn/;

	$node->safe_psql('postgres', $_) foreach
	  "CREATE TABLE $table (id int, s text COLLATE \"C\") WITH (autovacuum_enabled = off)",
	  "CREATE INDEX ${table}_i ON $table USING hybrid (s" . ($learns ? ' text_hope_ops' : '') . ') INCLUDE (id)',
	  fill($table, 1, 3000), ($learns ? () : "SELECT hybrid_merge('${table}_i')"),
	  ($before ? sprintf($before, $table) : ()), fill($table, 3001, 3700),
	  "DELETE FROM $table WHERE id % 13 = 5";
}

my @held;
foreach my $point (@points)
{
	my ($name, $statement) = @$point;
	my $session = start_psql($node, "SELECT injection_points_set_local();\nSELECT injection_points_attach('hybrid-$name', 'wait');\n",
		sprintf($statement, table_of($name)), "\n");

	ok(held_at($node, $name, $session), "a session is held at $name") or diag $session->{err};
	push @held, $session;
}

# what they have logged so far gets to the standby, as if other sessions had committed
$node->safe_psql('postgres', 'SELECT txid_current()');
$node->wait_for_catchup($standby);
# the session that learns has locked the index
right('the standby reads the indexes', grep { !/^learn/ } @tables);
$node->stop('immediate');
finish_psql($_) foreach @held;
$standby->promote;
right('and so it does after its promotion', @tables);

foreach my $table (@tables)
{
	$standby->safe_psql('postgres', $_) foreach fill($table, 4000, 5000), "DELETE FROM $table WHERE id % 7 = 3", "SELECT hybrid_merge('${table}_i')";
}
right('merges go on', @tables);
is($standby->safe_psql('postgres', join(' + ', map { "(SELECT dynamic_entries FROM hybrid_index_stats('${_}_i'))" } @tables) =~ s/^/SELECT /r),
	'0', 'to their ends');
$standby->safe_psql('postgres', "VACUUM (INDEX_CLEANUP on) $_") foreach @tables;
right('VACUUM does its work', @tables);

no_crash($_, 'nothing crashed, replayed pages were consistent') foreach $node, $standby;
$standby->stop;
done_testing();
