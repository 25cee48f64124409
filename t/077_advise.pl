
# hybrid_advise() estimates from samples what large indexes become.  It works on a
# standby, and where an index is locked.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Cwd qw(abs_path);
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', "autovacuum = off\nmax_parallel_maintenance_workers = 0\nmaintenance_work_mem = 256MB\nmax_wal_size = 4GB\nshared_buffers = 256MB\n", allows_streaming => 1);
my $standby = new_standby($node, 'standby');

my $data = abs_path("$FindBin::RealBin/../test/data");
$node->safe_psql('postgres', <<"SQL");
CREATE TABLE big (id int8, r int8, u uuid, d int, w int, l int, o int, v text);
INSERT INTO big SELECT i, hashint8extended(i, 1), md5(i::text)::uuid, i % 1000, i % 5, i % 3000, i / 10, 'payload ' || i % 5000 FROM generate_series(1, 400000) i;
CREATE INDEX big_ascending ON big (id);
CREATE INDEX big_u ON big (u);
CREATE INDEX big_d ON big (d);
CREATE INDEX big_line ON big (w, l, o, d);
CREATE INDEX big_include ON big (r) INCLUDE (v, d);
CREATE TABLE grown (r int8);
CREATE INDEX big_grown ON grown (r);
INSERT INTO grown SELECT hashint8extended(i, 7) FROM generate_series(1, 400000) i;
SQL
foreach my $file (qw(emails package_names paths))
{
	$node->safe_psql('postgres', "CREATE TABLE $file (k text COLLATE \"C\"); COPY $file FROM PROGRAM 'gzip -dc ''$data/$file.txt.gz''' WITH (FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02'); CREATE INDEX big_$file ON $file (k)");
}

$node->safe_psql('postgres', "CREATE TABLE advice AS SELECT index::text AS i, * FROM hybrid_advice WHERE index::text LIKE 'big%'");
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT count(*) FROM hybrid_advice a JOIN advice b ON a.index = b.index AND a.hybrid_size = b.hybrid_size"), '9', 'a standby says the same');
my ($most) = $node->safe_psql('postgres', "SELECT max(pages_read) FROM advice, hybrid_estimate(i::regclass)");
cmp_ok($most, '<=', 2400, 'reads are bounded');

foreach my $index (split /\n/, $node->safe_psql('postgres', 'SELECT i FROM advice ORDER BY i'))
{
	my $estimate = $node->safe_psql('postgres', "SELECT hybrid_size FROM advice WHERE i = '$index'");
	my $command = $node->safe_psql('postgres', "SELECT command FROM advice WHERE i = '$index'");
	$node->safe_psql('postgres', $command);
	my $size = $node->safe_psql('postgres', "SELECT pg_relation_size('$index')");
	ok(abs($estimate / $size - 1) < 0.15, sprintf("%s: %d estimated, %d it is, %.3f", $index, $estimate, $size, $estimate / $size));
}

# updates that are not HOT
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE seen (id int PRIMARY KEY, last_seen int, name text, note text) WITH (fillfactor = 50);
INSERT INTO seen SELECT i, i, 'name ' || i FROM generate_series(1, 2000) i;
CREATE INDEX seen_last ON seen (last_seen);
CREATE INDEX seen_name ON seen (name) INCLUDE (note);
UPDATE seen SET last_seen = last_seen + 1;
SELECT pg_stat_force_next_flush();
SQL
my $hot_updates = q(SELECT coalesce(string_agg(index::text || ': ' || hot_updates, '; '), 'none') FROM hybrid_advice WHERE "table" = 'seen'::regclass AND hot_updates IS NOT NULL);
is($node->safe_psql('postgres', $hot_updates), $node->pg_version < 16 ? 'none' :
	q(seen_last: Of 2000 updates of the table 0 were HOT. If they change this index's columns and no others that have indexes, hybrid_hot leaves them HOT where blocks have room (fillfactor).), 'hybrid_hot is thought of');
SKIP:
{
	skip 'servers before 16 have no hybrid_hot', 1 if $node->pg_version < 16;
	$node->safe_psql('postgres', q(SELECT hybrid_convert_hot('seen_last'); SELECT pg_stat_reset(); UPDATE seen SET last_seen = last_seen + 1; SELECT pg_stat_force_next_flush()));
	is($node->safe_psql('postgres', q(SELECT n_tup_hot_upd > 1500 FROM pg_stat_user_tables WHERE relname = 'seen')), 't', 'and does it');
	is($node->safe_psql('postgres', $hot_updates), 'none', 'other indexes need not change then');
}

# nothing is waited for
$node->safe_psql('postgres', 'CREATE INDEX locked ON emails (k)');
my $session = start_psql($node, 'BEGIN; LOCK emails IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600);');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE relation = 'emails'::regclass AND mode = 'AccessExclusiveLock' AND granted") or die;
is($node->safe_psql('postgres', "SET lock_timeout = 1000; SELECT coalesce(hybrid_size::text, remark) FROM hybrid_advice WHERE index::oid = (SELECT oid FROM pg_class WHERE relname = 'locked')"), 'It is locked.', 'a locked index');
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600)%'");
finish_psql($session);
no_crash($node, 'primary');

done_testing();
