# Indexes of prefixes answer as other indexes do.  The regression tests run with
# layout = trie in each index that can have it.  Left out are tests whose outputs
# tell how large an index is, whether a scan reads the table, or that a look-up went the
# short way.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %other = map { $_ => 1 }
  qw(trie trie_text advise arrays check_heap ddl_options fill filter_bounds found_key killed layout like merge order_scan parallel planner points queue row_compare skip_scan surf);
my @regress = grep { !$other{$_} } map { m{([^/]+)\.sql$} ? $1 : () } sort glob(test_root() . '/sql/*.sql');

my $node = new_node('trie', <<EOF);
hybridindex.test_trie = on
hybridindex.merge_floor = 8192
max_prepared_transactions = 5
EOF
my ($missing) = $node->psql('postgres', "LOAD 'hybridindex'; SHOW hybridindex.test_trie");
plan skip_all => 'the library was built without assertions, and so without the setting for tests'
  if $missing;

sub regress_ok
{
	my ($name, @tests) = @_;
	my $outputs = PostgreSQL::Test::Utils::tempdir();
	my $passed = run_log([
			$ENV{PG_REGRESS}, '--bindir=', '--host=' . $node->host, '--port=' . $node->port,
			'--dbname=contrib_regression', '--inputdir=' . test_root(), "--outputdir=$outputs", @tests
		]);
	ok($passed, $name);
	diag(slurp_file("$outputs/regression.diffs")) if !$passed && -f "$outputs/regression.diffs";
	return;
}

regress_ok('regression tests with layout = trie', @regress);

# newer levels keep keys
$node->append_conf('postgresql.conf', "hybridindex.test_levels = 3\nhybridindex.merge_floor = 300");
$node->reload;
regress_ok('indexes of prefixes, and several levels', qw(constraints dml_random multicolumn types unique));

# Where the table does not fit shared_buffers rows with few entries are not read, but
# where their entries have no fingerprints.
$node->append_conf('postgresql.conf', "hybridindex.test_levels = 1\nhybridindex.merge_floor = 8192\nshared_buffers = 400kB\nmax_connections = 10\nmax_wal_senders = 0");
$node->restart;
regress_ok('indexes of prefixes, and few buffers', qw(dml_random multicolumn types unique));
$node->append_conf('postgresql.conf', 'hybridindex.test_trie = off');
$node->reload;
regress_ok('text, and few buffers', 'trie_text');
$node->append_conf('postgresql.conf', 'shared_buffers = 1MB');
$node->restart;
$node->safe_psql('postgres', <<EOF);
CREATE TABLE tg (t text COLLATE "C", b uuid, pad text) WITH (autovacuum_enabled = off);
INSERT INTO tg SELECT 'g' || md5(i::text), md5(i::text)::uuid, repeat('x', 900) FROM generate_series(1, 3000) i;
CREATE INDEX tg_t ON tg USING hybrid (t) WITH (layout = trie, filter = 'points');
CREATE INDEX tg_b ON tg USING hybrid (b) WITH (layout = trie);
EOF
# Pages of the table that a merge looks at, behind an insertion of what begins like all rows.
sub merge_reads
{
	my ($index, $insert) = @_;
	my $count = 'SELECT pg_stat_force_next_flush(); SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = $$tg$$';
	$node->safe_psql('postgres', $insert);
	my ($before) = $node->safe_psql('postgres', $count) =~ /(\d+)$/;
	$node->safe_psql('postgres', "SELECT hybrid_merge('$index')");
	my ($after) = $node->safe_psql('postgres', $count) =~ /(\d+)$/;
	$node->safe_psql('postgres', "SELECT hybrid_index_check('$index', true)");
	return $after - $before;
}
my $texts = "INSERT INTO tg (t) SELECT left(t, -1) || %d FROM tg WHERE length(pad) > 0";
my @reads = map { merge_reads('tg_t', sprintf($texts, $_)) } 1 .. 7;
note("pages read: @reads");
cmp_ok($reads[$_], '<', 300, 'a merge leaves ' . ($_ + 2) . ' entries of a row together') foreach 0 .. 5;
cmp_ok($reads[6], '>', 2500, 'a merge tells eight entries of a row apart');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*), count((SELECT max(x.t) FROM tg x WHERE x.t = tg.t)) FROM tg"),
	'24000|24000', 'each is found');
cmp_ok(merge_reads('tg_b', 'UPDATE tg SET b = b WHERE b IS NOT NULL AND length(pad) > 0 AND ctid < $$(100,1)$$'), '>', 200, 'numbers are told apart at once');

# Leaves keep more of keys there: of the same ones, beside rows that are longer.
$node->safe_psql('postgres', <<'EOF');
CREATE TABLE narrow AS SELECT left(md5(i::text), 12) COLLATE "C" AS t FROM generate_series(1, 16000) i;
CREATE TABLE wide AS SELECT t, repeat('x', 200) AS pad FROM narrow;
CREATE INDEX narrow_t ON narrow USING hybrid (t) WITH (layout = trie);
CREATE INDEX wide_t ON wide USING hybrid (t) WITH (layout = trie);
EOF
cmp_ok($node->safe_psql('postgres', "SELECT w.leaf_pages - n.leaf_pages FROM hybrid_index_stats('wide_t') w, hybrid_index_stats('narrow_t') n"),
	'>=', 2, 'leaves keep more of keys where rows are on disk');

# Rows whose values VACUUM has removed from the TOAST table: the xmin of a merge may
# be older, by a transaction of another database.
$node->safe_psql('postgres', "BEGIN; CREATE TABLE prepared (i int); PREPARE TRANSACTION 'old'");
my $toast = 'hybridindex_toast';
$node->safe_psql('postgres', "CREATE DATABASE $toast");
$node->safe_psql($toast, <<EOF);
CREATE EXTENSION hybridindex;
CREATE TABLE tw (t text COLLATE "C", v int);
ALTER TABLE tw ALTER t SET STORAGE EXTERNAL;
CREATE FUNCTION word(i int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT i % 50 || string_agg(md5((i / 50)::text || j), '''') || i FROM generate_series(1, 70) j';
INSERT INTO tw SELECT word(i), i FROM generate_series(1, 400) i;
CREATE INDEX tw_t ON tw USING hybrid (t) WITH (layout = trie);
CREATE TABLE tx (t text COLLATE "C", EXCLUDE USING hybrid (t WITH =) WITH (layout = trie));
ALTER TABLE tx ALTER t SET STORAGE EXTERNAL;
INSERT INTO tx SELECT t FROM tw WHERE v <= 40;
SELECT hybrid_merge('tx_t_excl');
DELETE FROM tw WHERE v % 3 = 0;
DELETE FROM tx WHERE t = word(7);
EOF
my $relations = $node->safe_psql($toast, "SELECT string_agg(reltoastrelid::regclass::text, ', ') FROM pg_class WHERE relname IN ('tw', 'tx')");
$node->safe_psql($toast, "VACUUM $relations");
is($node->psql($toast, "INSERT INTO tw SELECT word(i) || 'y', i + 1000 FROM generate_series(1, 400) i; SELECT hybrid_merge('tw_t')"),
	0, 'a merge meets rows without their values');
is($node->psql($toast, 'INSERT INTO tx SELECT word(7)'), 0, 'an exclusion constraint meets one');
$node->safe_psql($toast, "SELECT hybrid_index_check('tw_t', true), hybrid_index_check('tx_t_excl', true)");
$node->safe_psql('postgres', "ROLLBACK PREPARED 'old'");
done_testing();
