
# Files of whole databases are copied, moved, dropped and made anew under the same
# names, while other databases of the server are in use.  What shared memory says of
# an index must not outlive the files that it describes.
#
# Random work runs for HYBRID_SECONDS (8).  HYBRID_SEED repeats that of an earlier
# run, which prints its seed.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use DatabaseWork;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{HYBRID_SECONDS} // 8;
# With wal_level = minimal, what CREATE DATABASE copies of an unlogged relation's
# init fork is not logged, and a crash loses it, for any kind of index.
my $node = new_node('databases', <<EOF);
wal_level = replica
hybridindex.background_merge = off
hybridindex.merge_floor = 100000
EOF
my @spaces = make_tablespaces($node, 2);
my $inserted = 0;

sub right
{
	my ($db, $what) = @_;
	return is(join("\n", check_database($node, $db)), '', $what);
}

sub insert
{
	my ($db, $n) = @_;
	my $from = $inserted + 1;
	$inserted += $n;
	return $node->safe_psql($db, "INSERT INTO w SELECT g, g, g FROM generate_series($from, $inserted) g");
}

# Each look is a session that reads all of an index, and leaves trees and the
# ends of the log behind in shared memory.
sub look
{
	my ($db, $condition) = @_;
	$condition //= 'h > -1';
	return $node->safe_psql($db, "SET enable_seqscan = off; SELECT count(*) FROM w WHERE $condition");
}

# ---- moved, changed, moved back ----
make_database($node, 'moved');
insert('moved', 3000);
is(look('moved'), 3000, 'before any move');
$node->safe_psql('postgres', "ALTER DATABASE moved SET TABLESPACE $spaces[0]");
insert('moved', 1500);
is(look('moved'), 4500, 'moved and changed');
$node->safe_psql('postgres', 'ALTER DATABASE moved SET TABLESPACE pg_default');
is(look('moved'), 4500, 'moved back: an index scan finds every row');
my ($ret, $out, $err) = $node->psql('moved', "INSERT INTO w VALUES (3700, 0, '')");
like($err, qr/duplicate key value violates unique constraint "w_id"/, 'a unique index knows the rows of the other place');
insert('moved', 500);
right('moved', 'the database is right after that');

# trees hold entries that VACUUM removes at the other place
$node->safe_psql('moved', 'DELETE FROM w WHERE id <= 2000');
look('moved');
$node->safe_psql('postgres', "ALTER DATABASE moved SET TABLESPACE $spaces[1]");
$node->safe_psql('moved', 'VACUUM w');
$node->safe_psql('moved', 'INSERT INTO w SELECT g + 100000, g + 100000, g FROM generate_series(1, 2000) g');
$node->safe_psql('postgres', 'ALTER DATABASE moved SET TABLESPACE pg_default');
right('moved', 'VACUUM, and line pointers used again, at the other place');

# ---- dropped, and copied to the same OID ----
make_database($node, 'original');
insert('original', 2000);
look('original');
foreach my $strategy ('file_copy', 'wal_log')
{
	# the copies get as many entries each, of the same lengths, but others
	foreach my $round (1 .. 3)
	{
		my $first = $round * 1000 + 200000;

		$node->safe_psql('postgres', "CREATE DATABASE copied TEMPLATE original STRATEGY $strategy OID = 70001");
		look('copied');
		$node->safe_psql('copied', "INSERT INTO w SELECT g, g, g FROM generate_series($first, $first + 299) g; INSERT INTO u SELECT generate_series($first, $first + 50)");
		is(look('copied'), 2300, "$strategy, copy $round: an index scan finds every row");
		is(look('copied', "id = $first + 7"), 1, "$strategy, copy $round: its own row is found");
		right('copied', "$strategy, copy $round: the database is right");
		$node->safe_psql('postgres', 'DROP DATABASE copied' . ($round == 2 ? ' WITH (FORCE)' : ''));
	}
}
$node->safe_psql('postgres', 'DROP DATABASE original');

# ---- tables and indexes that move within a database ----
$node->safe_psql('moved', "ALTER INDEX w_h SET TABLESPACE $spaces[0]");
$node->safe_psql('moved', 'INSERT INTO w SELECT g + 300000, g, g FROM generate_series(1, 300) g');
look('moved');
$node->safe_psql('moved', "ALTER INDEX w_h SET TABLESPACE pg_default; ALTER TABLE w SET TABLESPACE $spaces[1]");
$node->psql('moved', "BEGIN; ALTER INDEX w_h SET TABLESPACE $spaces[1]; INSERT INTO w SELECT g + 400000, g, g FROM generate_series(1, 300) g; SELECT count(*) FROM w WHERE h > 0; ROLLBACK");
$node->safe_psql('moved', 'INSERT INTO w SELECT g + 500000, g, g FROM generate_series(1, 300) g');
right('moved', 'a table and indexes moved');
$node->safe_psql('postgres', 'DROP DATABASE moved');

# ---- anything, at random, with kills ----
$node->append_conf('postgresql.conf', "hybridindex.background_merge = on\nhybridindex.merge_floor = 500");
$node->reload;
my $result = database_work($node, seconds => $seconds, seed => $ENV{HYBRID_SEED}, spaces => \@spaces);
is(join("\n", @{ $result->{bad} }), '', 'random work on whole databases: no difference');
note "seed $result->{seed}: ", join(', ', map { "$_ $result->{done}{$_}" } sort keys %{ $result->{done} });
cmp_ok($result->{done}{check} // 0, '>', 1, 'databases were compared');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
