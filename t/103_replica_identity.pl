
# Which servers take a hybrid index for the replica identity.  Where one does not, a
# subscriber still gets on.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('publisher', "wal_level = logical\n", allows_streaming => 'logical');
my ($version) = $node->safe_psql('postgres', 'SHOW server_version_num') =~ /^(\d\d)/;
my $can = $version != 17;

my $identity = "SELECT c.relname, c.relreplident, i.indexrelid::regclass FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisreplident WHERE c.relname = 'r'";

my $schema = <<EOF;
CREATE TABLE r (k int NOT NULL, s text COLLATE "C" NOT NULL, v int);
CREATE UNIQUE INDEX r_k ON r USING hybrid (s, k);
CREATE UNIQUE INDEX r_b ON r USING btree (s, k);
CREATE INDEX r_v ON r USING hybrid (v);
CREATE TABLE f (k int, v int);
CREATE INDEX f_k ON f USING hybrid (k);
ALTER TABLE f REPLICA IDENTITY FULL;
EOF
$node->safe_psql('postgres', $schema);

if ($can)
{
	is(error_of($node, 'ALTER TABLE r REPLICA IDENTITY USING INDEX r_k'), '', 'a hybrid index becomes the replica identity');
	is($node->safe_psql('postgres', $identity), 'r|i|r_k', 'it is');
}
else
{
	my $refusal = qr/cannot use index "r_k" of access method "hybrid" as replica identity.*DETAIL:.*HINT:.*REPLICA IDENTITY FULL/s;
	like(error_of($node, 'ALTER TABLE r REPLICA IDENTITY USING INDEX r_k'), $refusal, 'refused, in a session that has not loaded the library');
	like(error_of($node, 'SELECT FROM r WHERE v = 1; ALTER TABLE r REPLICA IDENTITY USING INDEX r_k'), $refusal, 'refused later too');
	like(error_of($node, 'ALTER TABLE r REPLICA IDENTITY USING INDEX r_b; ALTER TABLE r REPLICA IDENTITY USING INDEX r_k'), $refusal, 'it is refused in place of a btree index');
	is($node->safe_psql('postgres', $identity), 'r|i|r_b', 'the identity is what it was');

	# one that is the identity since an upgrade can be left alone, and given up
	$node->safe_psql('postgres', "UPDATE pg_index SET indisreplident = indexrelid = 'r_k'::regclass WHERE indrelid = 'r'::regclass");
	is(error_of($node, 'ALTER TABLE r CLUSTER ON r_k; ALTER TABLE r SET WITHOUT CLUSTER; REINDEX TABLE r; REINDEX INDEX CONCURRENTLY r_k'), '', 'an identity from before can be worked with');
	is($node->safe_psql('postgres', $identity), 'r|i|r_k', 'the identity stays');
}
is(error_of($node, 'ALTER TABLE r REPLICA IDENTITY NOTHING; ALTER TABLE r REPLICA IDENTITY FULL; ALTER TABLE r REPLICA IDENTITY DEFAULT; ALTER TABLE r REPLICA IDENTITY USING INDEX r_b'),
	'', 'other identities, on a table with hybrid indexes');
is($node->safe_psql('postgres', $identity), 'r|i|r_b', 'a btree index');

# Rows are found by a btree index, and without any.
my $subscriber = new_node('subscriber', '');
$subscriber->safe_psql('postgres', $schema . 'ALTER TABLE r REPLICA IDENTITY USING INDEX r_b');
$node->safe_psql('postgres', 'CREATE PUBLICATION pub FOR TABLE r, f; INSERT INTO r SELECT i, md5((i % 50)::text), i FROM generate_series(1, 500) i; INSERT INTO f SELECT i, i FROM generate_series(1, 200) i');
my $connstr = $node->connstr('postgres');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION \$c\$$connstr\$c\$ PUBLICATION pub");
$subscriber->wait_for_subscription_sync($node, 'sub');
$node->safe_psql('postgres', <<EOF);
UPDATE r SET v = v + 1 WHERE k % 3 = 0;
UPDATE r SET k = k + 10000 WHERE k % 7 = 1;
DELETE FROM r WHERE k % 5 = 2;
UPDATE f SET v = -v WHERE k % 2 = 0;
DELETE FROM f WHERE k % 3 = 0;
EOF
$node->wait_for_catchup('sub');
foreach my $table ('r', 'f')
{
	my $sum = "SET enable_seqscan = on; SET enable_indexscan = off; SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM $table x";
	is($subscriber->safe_psql('postgres', $sum), $node->safe_psql('postgres', $sum), "table $table is the same");
}
same_answers($subscriber, 'subscriber', { 'SELECT k FROM r WHERE v BETWEEN 100 AND 200' => 'index bitmap',
		'SELECT v FROM f WHERE k < 50' => 'index bitmap' }, [ 'r', 'f' ]);

# Rows are found by a hybrid primary key, or a table with a subscription gets
# none.  (On 17 one that it had before ends the apply worker with an
# error, or an assertion of the server's.)
my $h = 'CREATE TABLE h (id int NOT NULL, v int)';
my $key = 'ALTER TABLE h ADD PRIMARY KEY (id)';
$node->safe_psql('postgres', "$h; $key; INSERT INTO h SELECT i, i FROM generate_series(1, 1000) i; ALTER PUBLICATION pub ADD TABLE h");
$subscriber->safe_psql('postgres', $h);
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION');
$subscriber->wait_for_subscription_sync($node, 'sub');
my ($ret, $out, $err) = $subscriber->psql('postgres', "SET hybridindex.replace_btree = on; $key");
my $method = "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'h_pkey'";
if ($can)
{
	is($subscriber->safe_psql('postgres', $method), 'hybrid', 'a table with a subscription gets a hybrid primary key');
}
else
{
	like($err, qr/NOTICE: .*access method "btree"\n.*DETAIL:  Subscribers of this PostgreSQL version/, 'a table with a subscription stays with btree');
	is($subscriber->safe_psql('postgres', $method), 'btree', 'it has a btree index');
	like(($subscriber->psql('postgres', "SELECT hybrid_convert('h_pkey')"))[2], qr/cannot convert index "h_pkey" of a table with a subscription/,
		'hybrid_convert refuses that index');
}
$node->safe_psql('postgres', 'UPDATE h SET v = -v WHERE id % 3 = 0; DELETE FROM h WHERE id % 5 = 0');
$node->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', 'SELECT count(*), sum(v) FROM h'), $node->safe_psql('postgres', 'SELECT count(*), sum(v) FROM h'),
	'rows with a primary key are the same');

# A row is not taken for one whose key begins alike, and which comes first.
if ($can)
{
	my $sum = 'SELECT count(*), sum(v), sum(k * v) FROM p';

	$node->safe_psql('postgres', 'CREATE TABLE p (k int8 PRIMARY KEY, v int); INSERT INTO p SELECT i * 1000000007::int8, i FROM generate_series(1, 500) i; ALTER PUBLICATION pub ADD TABLE p');
	$subscriber->safe_psql('postgres', 'CREATE TABLE p (k int8 PRIMARY KEY WITH (access_method = hybrid, layout = trie), v int)');
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION');
	$subscriber->wait_for_subscription_sync($node, 'sub');
	$subscriber->safe_psql('postgres', "SELECT hybrid_merge('p_pkey')");
	$node->safe_psql('postgres', 'INSERT INTO p SELECT k + 1, v + 1000 FROM p WHERE v <= 200; UPDATE p SET v = -v WHERE v > 1000 AND v % 3 = 0; DELETE FROM p WHERE v > 1000 AND v % 5 = 0');
	$node->wait_for_catchup('sub');
	is($subscriber->safe_psql('postgres', $sum), $node->safe_psql('postgres', $sum), 'rows whose keys begin alike are the same');
	$subscriber->safe_psql('postgres', "SELECT hybrid_index_check('p_pkey', true)");
}

no_crash($_, 'nothing crashed') foreach $node, $subscriber;
$subscriber->stop;
$node->stop;
done_testing();
