
# Conversions where server versions differ, and where a server of its own is needed:
# partitioned primary keys, replica identities, subscribers, sessions that have not
# loaded the library, the extension's dependencies.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('publisher', "wal_level = logical\n", allows_streaming => 'logical');
my ($version) = $node->safe_psql('postgres', 'SHOW server_version_num') =~ /^(\d\d)/;

# Each call is a new session.
sub messages_of
{
	my ($script, $on) = @_;
	my ($ret, $out, $err) = ($on // $node)->psql('postgres', $script);
	return $err;
}

my $late = qr/WARNING:  sessions that have not loaded the library "hybridindex" may fail once in INSERT \.\.\. ON CONFLICT\n.*DETAIL:.*any ON CONFLICT while index.*HINT:.*session_preload_libraries/s;

# Sessions that come upon the index too late are warned of, where that matters.
run($node, 'CREATE TABLE w (a int PRIMARY KEY, b int); CREATE INDEX w_b ON w (b)');
my @warned = (messages_of("CALL hybrid_convert_concurrently('w_pkey')"), messages_of("SELECT hybrid_convert('w_pkey')"),
	messages_of("CALL hybrid_revert_concurrently('w_pkey')"), messages_of("BEGIN; SELECT hybrid_convert('w_pkey'); ROLLBACK"),
	messages_of("CALL hybrid_convert_concurrently('w_b')"));
if ($version < 18)
{
	like($warned[$_], $late, 'a unique index') foreach (0, 3);
	is($warned[$_], $_ == 1 ? 'psql:<stdin>:1: NOTICE:  index "w_pkey" is of access method "hybrid" already' : '', 'other calls give no warning') foreach (1, 2, 4);
}
else
{
	is($warned[$_], $_ == 1 ? 'psql:<stdin>:1: NOTICE:  index "w_pkey" is of access method "hybrid" already' : '', 'no warning') foreach (0 .. 4);
}
run($node, "ALTER DATABASE postgres SET session_preload_libraries = 'hybridindex'");
is(messages_of("CALL hybrid_convert_concurrently('w_pkey')"), '', 'no warning where the library is preloaded');
is(messages_of('INSERT INTO w VALUES (1) ON CONFLICT DO NOTHING'), '', 'no error where the library is preloaded');
run($node, "CALL hybrid_revert_schema('public')");

# The extension cannot go before the indexes, and can afterwards.
run($node, "CREATE DATABASE other");
$node->safe_psql('other', 'CREATE EXTENSION hybridindex; CREATE TABLE e (a int PRIMARY KEY, b text); CREATE INDEX e_b ON e (b, a, b)');
$node->safe_psql('other', "SELECT hybrid_convert('e_pkey'); CALL hybrid_convert_concurrently('e_b')");
my ($ret, $out, $err) = $node->psql('other', 'DROP EXTENSION hybridindex');
like($err, qr/cannot drop extension hybridindex because other objects depend on it\n.*DETAIL:  .*constraint e_pkey on table e depends on|index e_b depends on/s, 'the extension is needed');
$node->safe_psql('other', "CALL hybrid_revert_concurrently('e_pkey'); SELECT hybrid_revert('e_b')");
$node->safe_psql('other', 'DROP EXTENSION hybridindex');
is($node->safe_psql('other', "SELECT string_agg(amname || ' ' || indisvalid, ',') FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE indrelid = 'e'::regclass"),
	'btree true,btree true', 'nothing else went with it');

# A primary key of a partitioned table, which a foreign key refers to
run($node, <<EOF);
CREATE TABLE pp (a int, b int, PRIMARY KEY (a, b)) PARTITION BY RANGE (b);
CREATE TABLE pp_1 PARTITION OF pp FOR VALUES FROM (0) TO (100);
CREATE TABLE pp_2 PARTITION OF pp FOR VALUES FROM (100) TO (200) PARTITION BY LIST (a);
CREATE TABLE pp_2x PARTITION OF pp_2 DEFAULT;
CREATE TABLE pp_ref (a int, b int, FOREIGN KEY (a, b) REFERENCES pp);
INSERT INTO pp SELECT i, i % 200 FROM generate_series(1, 2000) i;
INSERT INTO pp_ref SELECT i, i % 200 FROM generate_series(1, 2000, 7) i;
EOF
my $tree = "SELECT string_agg(concat_ws(' ', c.relname, amname, indisvalid, inhparent::regclass,
	(SELECT count(*) FROM pg_constraint WHERE conindid = c.oid), reloptions::text), E'\\n' ORDER BY c.relname)
	FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam LEFT JOIN pg_inherits ON inhrelid = c.oid WHERE c.relname ~ '^pp'";
my $before = run($node, $tree);
foreach my $statement ("SELECT hybrid_convert('pp_pkey')", "CALL hybrid_convert_concurrently('pp_pkey')")
{
	my $error = messages_of($statement);
	if ($version < 18)
	{
		like($error, qr/ERROR:  cannot convert unique index "pp_pkey" of a partitioned table\n.*DETAIL:  Before PostgreSQL 18.*\n.*HINT:  /, "refused: $statement");
		is(run($node, $tree), $before, 'nothing has changed');
		next;
	}
	is($error, '', $statement);
	(my $expected = $before) =~ s/ btree (.*)/ hybrid $1 {access_method=hybrid}/g;
	is(run($node, $tree), $expected, 'all of the tree is converted');
	is(run($node, "SELECT hyb_check('pp_1'), hyb_check('pp_2x')"), 't|t', 'the converted indexes are right');
	like(messages_of('INSERT INTO pp VALUES (7, 7)'), qr/duplicate key value violates unique constraint "pp_1_pkey"/, 'unique');
	like(messages_of('INSERT INTO pp_ref VALUES (1, 2)'), qr/violates foreign key constraint/, 'referred to');
	like(messages_of('DELETE FROM pp WHERE a = 8'), qr/violates foreign key constraint/, 'rows are looked up in it');
	run($node, 'INSERT INTO pp VALUES (7, 7) ON CONFLICT (a, b) DO UPDATE SET b = 7; CREATE TABLE pp_3 PARTITION OF pp FOR VALUES FROM (200) TO (300)');
	is(run($node, "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'pp_3_pkey'"), 'hybrid', 'a new partition');
	run($node, "ALTER TABLE pp DETACH PARTITION pp_3; DROP TABLE pp_3");
	run($node, $statement =~ s/convert/revert/r);
	is(run($node, $tree), $before, 'all of the tree is reverted');
}

# The index that is the replica identity
run($node, "CREATE TABLE r (k int NOT NULL, v int); CREATE UNIQUE INDEX r_k ON r (k); ALTER TABLE r REPLICA IDENTITY USING INDEX r_k; INSERT INTO r SELECT i, i FROM generate_series(1, 500) i");
my $identity = "SELECT t.relreplident, indexrelid::regclass, amname FROM pg_class t JOIN pg_index i ON indrelid = t.oid AND indisreplident JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = c.relam WHERE t.relname = 'r'";
foreach my $statement ("SELECT hybrid_convert('r_k')", "CALL hybrid_convert_concurrently('r_k')")
{
	my $error = messages_of($statement);
	if ($version == 17)
	{
		like($error, qr/ERROR:  cannot convert index "r_k", which is the replica identity of its table\n.*DETAIL:  .*\n.*HINT:  .*REPLICA IDENTITY FULL/, "refused: $statement");
		is(run($node, $identity), 'i|r_k|btree', 'nothing has changed');
		is(run($node, "SELECT count(*) FROM pg_index WHERE indrelid = 'r'::regclass"), 1, 'nothing was built');
		next;
	}
	is($error, '', $statement);
	is(run($node, $identity), 'i|r_k|hybrid', 'it stays the identity');
	run($node, $statement =~ s/convert/revert/r);
	is(run($node, $identity), 'i|r_k|btree', 'the identity is reverted');
}

# A subscriber finds rows through the primary key: it goes on, or the index
# cannot be converted there.
my $subscriber = new_node('subscriber', "session_preload_libraries = 'hybridindex'\n");
my $connstr = $node->connstr('postgres');
run($node, 'CREATE TABLE s (k int PRIMARY KEY, v int); INSERT INTO s SELECT i, i FROM generate_series(1, 500) i; CREATE PUBLICATION pub FOR TABLE s');
$subscriber->safe_psql('postgres', 'CREATE TABLE s (k int PRIMARY KEY, v int)');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION \$c\$$connstr\$c\$ PUBLICATION pub");
$subscriber->wait_for_subscription_sync($node, 'sub');
my @errors = map { messages_of($_, $subscriber) } ("SELECT hybrid_convert('s_pkey')", "CALL hybrid_convert_concurrently('s_pkey')");
if ($version == 17)
{
	like($_, qr/ERROR:  cannot convert index "s_pkey" of a table with a subscription\n.*DETAIL:  .*\n.*HINT:  /, 'refused on a subscriber') foreach @errors;
}
else
{
	is($errors[0], '', 'converted on a subscriber');
}
run($node, 'UPDATE s SET v = -v WHERE k % 3 = 0; UPDATE s SET k = k + 1000 WHERE k % 7 = 0; DELETE FROM s WHERE k % 5 = 0');
$node->wait_for_catchup('sub');
my $sum = "SET enable_seqscan = on; SET enable_indexscan = off; SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM s x";
is($subscriber->safe_psql('postgres', $sum), run($node, $sum), 'the subscriber has the same rows');
run($node, "SELECT hybrid_convert('s_pkey')");
run($node, 'DELETE FROM s WHERE k % 11 = 0');
$node->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', $sum), run($node, $sum), 'the subscriber has the same rows after the publisher converts');

# A snapshot from before a conversion in a transaction sees the rows that it saw,
# through the new index.
run($node, 'CREATE TABLE old (k int PRIMARY KEY, v int) WITH (fillfactor = 50); INSERT INTO old SELECT i, i FROM generate_series(1, 1000) i; VACUUM ANALYZE old');
my $old = IPC::Run::start([ 'psql', '-XAtq', '-d', $connstr ], '<', \my $in, '>', \my $answers, '2>', \my $complaints, IPC::Run::timeout(60));
$in = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'began';\n";
$old->pump until $answers =~ /began/;
run($node, "UPDATE old SET v = -v WHERE k <= 500; DELETE FROM old WHERE k > 900; SELECT hybrid_convert('old_pkey')");
run($node, 'VACUUM old');
$in = "SET enable_seqscan = off; SELECT sum(v) FROM old WHERE k > 0; EXPLAIN (COSTS OFF) SELECT sum(v) FROM old WHERE k > 0; COMMIT;\\q\n";
$old->finish;
like($answers, qr/^500500$/m, 'an older snapshot sees its rows');
like($answers, qr/old_pkey/, 'through the index');

no_crash($_, 'nothing crashed') foreach $node, $subscriber;
$subscriber->stop;
$node->stop;
done_testing();
