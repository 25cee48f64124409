
# Blocks that were leaves may be pinned by scans for long.  Inserts, merges and VACUUM
# go on beside hundreds of such scans.  They take other blocks, so the file does not
# grow with each merge.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('pinned', <<CONF);
hybridindex.background_merge = off
CONF
my $flag = PostgreSQL::Test::Utils::tempdir();

# Rows with keys in random order; a leaf has some 40 of them.
sub rows { return "SELECT " . join(' || ', map { "md5((g + 0.$_)::text)" } 1 .. 12) . " FROM generate_series($_[0], $_[1]) g"; }

# A script that opens a cursor for each of the given keys, and fetches a row.  It keeps
# the page of the index pinned that the row was found on.
sub cursors
{
	my ($table, $keys) = @_;
	return <<SQL;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
\\o $flag/fetched
SELECT format('DECLARE c%s CURSOR FOR SELECT k FROM $table WHERE k >= %L ORDER BY k; FETCH 1 FROM c%s', i, k, i)
FROM ($keys) x (i, k) \\gexec
\\o
EXPLAIN (COSTS OFF) SELECT k FROM $table WHERE k >= '5' ORDER BY k;
SQL
}
my $spread = "SELECT i, lpad(to_hex(i * 160), 4, '0') FROM generate_series(0, 409) i";

# ---- leaves ----

# The file grows by what new rows take, and by some blocks that wait until they are
# free.  Merges that extend it for all their pages would add hundreds.
sub leaves
{
	my ($table, $kind) = @_;
	my $session = start_psql($node, <<SQL . cursors($table, $spread), <<SQL);
CREATE $kind TABLE $table (k text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO $table @{[ rows(1, 20500) ]};
CREATE INDEX ${table}_k ON $table USING hybrid (k);
SELECT leaf_pages > 420 FROM hybrid_index_stats('${table}_k');
SQL
INSERT INTO $table @{[ rows(20501, 21000) ]};
SELECT hybrid_merge('${table}_k') > 0;
SELECT total_pages + 120 AS pages FROM hybrid_index_stats('${table}_k') \\gset
@{[ map { "INSERT INTO $table @{[ rows(21001 + 100 * $_, 21100 + 100 * $_) ]}; SELECT hybrid_merge('${table}_k') > 0;\n" } 0 .. 4 ]}
SELECT total_pages <= :pages FROM hybrid_index_stats('${table}_k');
SELECT count(hybrid_index_check('${table}_k', true));
COMMIT;
SQL
	ok(finish_psql($session), "$table: inserts and merges go on beside cursors") or diag $session->{err};
	like($session->{out}, qr/^t\nIndex Only Scan.*\n.*\n(t\n){7}1\n$/, "$table: the file does not grow with each merge") or diag $session->{out};
	return;
}
leaves('t', '');
leaves('own', 'TEMP');

# ---- VACUUM, which moves pages and cuts the file ----

$node->safe_psql('postgres', 'TRUNCATE t; INSERT INTO t ' . rows(1, 20500));
my $session = start_psql($node, cursors('t', $spread), <<SQL);
DELETE FROM t WHERE k >= '3';
SELECT hybrid_merge('t_k') > 0;
\\! touch $flag/merged
\\! until [ -e $flag/vacuumed ]; do sleep 0.05; done
SELECT count(*) FROM t;
COMMIT;
SQL
wait_file("$flag/merged");
is($node->psql('postgres', 'VACUUM t'), 0, 'VACUUM goes on beside cursors');
append_to_file("$flag/vacuumed", '');
ok(finish_psql($session), 'the cursors are read on') or diag $session->{err};
is($node->psql('postgres', 'VACUUM t'), 0, 'VACUUM after them');
is($node->safe_psql('postgres', "SELECT count(hybrid_index_check('t_k', true))"), 1, 'the index is right');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
