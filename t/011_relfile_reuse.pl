
# The scenario of the server's recovery/032_relfilenode_reuse, with hybrid indexes.
# A database is dropped and copied again to the same OID, and moved between
# tablespaces and back.  Meanwhile long transactions in other databases write its
# dirty buffers out.  Primary and standby must not take old files or old shared state
# for the new ones.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 2000;
my $primary = new_node('primary', <<EOF, allows_streaming => 1);
full_page_writes = off
shared_buffers = 1MB
hybridindex.background_merge = off
hybridindex.merge_floor = 100000
EOF
my $standby = new_standby($primary, 'standby');


# A session that stays in a transaction of database postgres.
sub long_session
{
	my ($node) = @_;
	my %session = (in => '', out => '', err => '');

	$session{run} = IPC::Run::start(
		[ 'psql', '-X', '-A', '-t', '-q', '-d', $node->connstr('postgres'), '-f', '-' ],
		'<', \$session{in}, '>', \$session{out}, '2>', \$session{err},
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$session{in} = "BEGIN;\n";
	return \%session;
}

# Read more than the buffers hold, so that what is dirty is written out, by
# processes that have had its files open for long.
sub evict
{
	foreach my $session (@_)
	{
		$session->{out} = '';
		$session->{in} .= "SELECT 'read ' || count(*) FROM filler;\n";
		$session->{run}->pump until $session->{out} =~ /read \d+\n/;
	}
	return;
}

# Table and index say the same, on both nodes.
sub verify
{
	my ($value, $what) = @_;
	my $by_table = 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT datab, count(*) FROM large GROUP BY 1 ORDER BY 1';
	my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT datab, count(*) FROM large WHERE id > 0 GROUP BY 1 ORDER BY 1';
	my $by_value = "SET enable_seqscan = off; SELECT count(*), sum(id) FROM large WHERE datab = '$value'";

	$primary->wait_for_catchup($standby);
	foreach my $node ($primary, $standby)
	{
		my $name = $node->name;

		is($node->safe_psql('conflict', $_, timeout => 60), "$value|$rows", "$name: $what") foreach $by_table, $by_index;
		is($node->safe_psql('conflict', $by_value, timeout => 60), "$rows|" . $rows * ($rows + 1) / 2, "$name: $what, by value");
	}
	my ($ret, $out, $err) = $primary->psql('conflict', "SELECT hybrid_index_check(i, true) FROM unnest('{large_id,large_b}'::regclass[]) i; INSERT INTO large VALUES (3, 'x', 'x')");
	like($err, qr/^[^\n]*ERROR:  duplicate key value violates unique constraint "large_id"/, "primary: check and uniqueness, $what");
	return;
}

sub update
{
	my ($value) = @_;
	return $primary->safe_psql('conflict', "UPDATE large SET datab = $value", timeout => 60);
}

sub copy
{
	return $primary->safe_psql('postgres', 'CREATE DATABASE conflict TEMPLATE conflict_template OID = 50001');
}

$primary->safe_psql('postgres', 'CREATE DATABASE conflict_template OID = 50000; CREATE TABLE filler AS SELECT repeat(md5(g::text), 10) AS t FROM generate_series(1, 8000) g');
$primary->safe_psql('conflict_template', <<EOF);
CREATE EXTENSION hybridindex;
CREATE TABLE large (id int, dataa text, datab text) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX large_id ON large USING hybrid (id);
CREATE INDEX large_b ON large USING hybrid (datab COLLATE "C");
INSERT INTO large SELECT g, g, 1 FROM generate_series(1, $rows) g;
EOF
copy();
$primary->wait_for_catchup($standby);
my @long = map { long_session($_) } $primary, $standby;
evict(@long);

update(1);
verify(1, 'first contents');
evict(@long);
$primary->safe_psql('postgres', 'DROP DATABASE conflict');
copy();
verify(1, 'contents of a copy');
update(2);
evict(@long);
verify(2, 'an update of the copy');

$primary->safe_psql('conflict', 'VACUUM FULL large');
update(3);
verify(3, 'an update after VACUUM FULL');

# back and forth
$primary->safe_psql('postgres', "SET allow_in_place_tablespaces = on; CREATE TABLESPACE test_tablespace LOCATION ''");
update(4);
evict(@long);
$primary->safe_psql('postgres', 'ALTER DATABASE conflict SET TABLESPACE test_tablespace');
$primary->safe_psql('postgres', 'ALTER DATABASE conflict SET TABLESPACE pg_default');
update(5);
evict(@long);
verify(5, 'moved back and forth');
$primary->safe_psql('postgres', 'ALTER DATABASE conflict SET TABLESPACE test_tablespace');
update(6);
verify(6, 'moved, and an update there');
$primary->safe_psql('postgres', 'ALTER DATABASE conflict SET TABLESPACE pg_default');
verify(6, 'moved back');
update(7);
verify(7, 'an update after that');

$primary->safe_psql('postgres', 'DROP DATABASE conflict');
$primary->safe_psql('postgres', 'DROP TABLESPACE test_tablespace');
foreach my $session (@long)
{
	$session->{in} .= "COMMIT;\n\\q\n";
	IPC::Run::finish($session->{run});
}
$primary->wait_for_catchup($standby);
foreach my $node ($primary, $standby)
{
	no_crash($node, $node->name . ': nothing crashed');
	$node->stop;
}
done_testing();
