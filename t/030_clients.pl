
# Several clients work while merges and VACUUM run all the time, with the least
# dynamic memory.  Each snapshot sees what it must see.  In the end totals and
# uniqueness are right.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = $ENV{HYBRID_SECONDS} // 8;
my $node = new_node('clients', <<EOF);
hybridindex.dynamic_memory = 64kB
hybridindex.merge_floor = 50
hybridindex.merge_step_pages = 1
enable_seqscan = off
log_min_messages = warning
EOF

$node->safe_psql('postgres', <<EOF);
CREATE TABLE acc (id int, owner text COLLATE "C", balance int8, pad int) WITH (fillfactor = 60);
INSERT INTO acc SELECT i, 'owner ' || i % 50, 0 FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX acc_id ON acc USING hybrid (id);
CREATE INDEX acc_owner ON acc USING hybrid (owner, id) INCLUDE (balance);
CREATE INDEX acc_pad ON acc USING hybrid (pad);
CREATE TABLE hist (k int8, s text COLLATE "C");
CREATE INDEX hist_k ON hist USING hybrid (k);
CREATE INDEX hist_s ON hist USING hybrid (s, k DESC);
CREATE TABLE uniq (k int);
CREATE UNIQUE INDEX uniq_k ON uniq USING hybrid (k);
CREATE FUNCTION try_insert(x int) RETURNS boolean LANGUAGE plpgsql AS \$\$
BEGIN
	INSERT INTO uniq VALUES (x);
	RETURN true;
EXCEPTION WHEN unique_violation THEN
	RETURN false;
END \$\$;
EOF

# Scripts; a broken invariant is a division by zero, which ends the client.
my $transfer = <<'EOF';
\set a random(1, 1000)
\set b random(1, 1000)
\set d random(1, 100)
BEGIN;
UPDATE acc SET balance = balance - :d::int, pad = :d::int WHERE id = least(:a::int, :b::int);
UPDATE acc SET balance = balance + :d::int WHERE id = greatest(:a::int, :b::int);
COMMIT;
SELECT 1 / (count(*) = 1)::int FROM acc WHERE id = :a::int;
EOF
my $read = <<'EOF';
\set o random(0, 49)
\set a random(1, 990)
SELECT 1 / (count(*) = 20 AND count(DISTINCT id) = 20)::int FROM acc WHERE owner = 'owner ' || :o::int;
SELECT 1 / (count(*) = 11)::int FROM acc WHERE id BETWEEN :a::int AND :a::int + 10;
SELECT 1 / (count(*) = 4)::int FROM acc WHERE id = ANY (array[:a::int, :a::int + 3, NULL, :a::int, :a::int + 7, :a::int + 9, -1]);
SELECT 1 / (count(*) = 1000 AND sum(balance) = 0)::int FROM (SELECT id, balance FROM acc WHERE owner > '' ORDER BY owner, id) x;
EOF
my $history = <<'EOF';
\set k random(1, 5000)
INSERT INTO hist SELECT :k::int + g * 7, md5((:k::int + g)::text) FROM generate_series(1, 20) g;
DELETE FROM hist WHERE k BETWEEN :k::int AND :k::int + 30;
SELECT count(*) FROM hist WHERE s = md5(:k::int::text);
SELECT 1 / bool_and(ok)::int FROM (SELECT k >= coalesce(lag(k) OVER (ORDER BY k), k) AS ok FROM hist WHERE k < 1000) x HAVING count(*) > 0;
EOF
my $unique = <<'EOF';
\set k random(1, 800)
SELECT try_insert(:k::int);
DELETE FROM uniq WHERE k = :k::int + 1;
SELECT 1 / (count(*) <= 1)::int FROM uniq WHERE k = :k::int;
EOF

my @beside;
push @beside, start_psql($node, ("VACUUM acc;\nVACUUM hist;\nVACUUM uniq;\nSELECT pg_sleep(0.05);\n") x ($seconds * 6));
push @beside, start_psql($node, ("SELECT count(hybrid_merge(i)) FROM unnest('{acc_id,acc_owner,hist_k,uniq_k}'::regclass[]) i;\nSELECT pg_sleep(0.02);\n") x ($seconds * 12));
push @beside, start_psql($node, ("REINDEX INDEX CONCURRENTLY acc_pad;\nREINDEX INDEX CONCURRENTLY hist_s;\nSELECT pg_sleep(0.5);\n") x $seconds);

my %scripts = (
	'transfer@4' => $transfer, 'read@2' => $read,
	'history@3' => $history, 'unique@3' => $unique);
$node->pgbench("-n -c 6 -j 2 -T $seconds -M prepared",
	0, [qr/processed/], [qr/^(?!.*aborted)/s],
	'clients with merges, VACUUM and REINDEX beside them', \%scripts);
foreach my $session (@beside)
{
	my $ok = finish_psql($session);
	ok($ok, 'session beside the clients succeeded') or diag $session->{err};
}

is($node->safe_psql('postgres', 'SELECT count(*), sum(balance), count(DISTINCT id) FROM acc'),
	'1000|0|1000', 'totals are right');
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*) - count(DISTINCT k) FROM uniq'),
	'0', 'no duplicates');
my %queries = (
	'SELECT id, balance FROM acc WHERE id < 500' => 'index bitmap',
	'SELECT owner, id, balance FROM acc WHERE owner > \'owner 3\'' => 'index only bitmap',
	'SELECT id FROM acc WHERE pad BETWEEN 20 AND 30' => 'index bitmap',
	'SELECT id FROM acc WHERE pad IS NULL' => 'index bitmap',
	'SELECT k FROM hist ORDER BY k DESC' => 'order order_only',
	'SELECT s, k FROM hist ORDER BY s, k DESC' => 'order',
	'SELECT k FROM uniq WHERE k < 400' => 'index only');
same_answers($node, 'all paths agree afterwards', \%queries, [ 'acc', 'hist', 'uniq' ]);
$node->safe_psql('postgres', 'VACUUM acc; VACUUM hist; VACUUM uniq');
same_answers($node, 'after VACUUM', \%queries, [ 'acc', 'hist', 'uniq' ]);
cmp_ok($node->safe_psql('postgres', 'SELECT min(merges) FROM unnest(\'{acc_id,acc_owner,hist_k}\'::regclass[]) i, hybrid_index_stats(i)'),
	'>', 1, 'there were merges');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
