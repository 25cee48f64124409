
# The shared memory of dynamic stages is bounded, leaves room for other users of
# shared memory, is counted exactly, and is given back.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $mb = 1024 * 1024;
my $flag = PostgreSQL::Test::Utils::tempdir();

# The segments are files of the data directory, so that they can be measured.
my $node = new_node('memory', <<EOF);
dynamic_shared_memory_type = mmap
hybridindex.background_merge = off
hybridindex.merge_floor = 100000000
EOF
my $points = $node->pg_version >= 18 &&
  $node->psql('postgres', 'CREATE EXTENSION injection_points') == 0;

sub memory
{
	my ($column) = @_;
	return $node->safe_psql('postgres', "SELECT $column FROM hybrid_memory");
}

sub files
{
	my @files = glob($node->data_dir . '/pg_dynshmem/mmap.*');
	return @files;
}

sub disk_bytes
{
	my $bytes = 0;
	$bytes += ((stat $_)[12] // 0) * 512 foreach files();
	return $bytes;
}

# A query says "t" in the end.
sub comes_true
{
	my ($what, @query) = @_;
	return pass($what) if wait_for($node, $what, @query);
	diag run($node, 'SELECT * FROM hybrid_memory');
	return;
}

sub wait_for_file
{
	my ($name) = @_;
	foreach (1 .. 300)
	{
		return 1 if -e "$flag/$name";
		usleep(100_000);
	}
	return 0;
}

# Ten indexes of a table, rows for it, and a function of each index: the check
# reads the whole dynamic stage.
sub make_table
{
	my ($server, $name) = @_;
	$server->safe_psql('postgres', "CREATE TABLE $name (id int, s text COLLATE \"C\");"
		  . join('', map { "CREATE INDEX ${name}_$_ ON $name USING hybrid (s) INCLUDE (id);" } 1 .. 10));
	return;
}

sub fill
{
	my ($name, $n) = @_;
	return "INSERT INTO $name SELECT g, repeat(md5(g::text), 4) FROM generate_series(1, $n) g;\n";
}

sub on_all
{
	my ($name, $function) = @_;
	return join '', map { "SELECT $function('${name}_$_');\n" } 1 .. 10;
}

# ---- given back ----
my $files_before = files();
my $disk_before = disk_bytes();
is(memory('used_bytes'), '0', 'nothing is used before anything is read');
make_table($node, 'm');
make_table($node, 'n');
$node->safe_psql('postgres', fill('m', 10000) . on_all('m', 'hybrid_index_check'));

# a session that has mapped everything, and does nothing for as long as it likes
my $idle = start_psql($node,
	"SELECT hybrid_index_check('m_1');\n\\! touch $flag/ready\n\\! until [ -e $flag/go ]; do sleep 0.1; done\n",
	"SELECT hybrid_index_check('m_1');\n\\! touch $flag/done\n\\! until [ -e $flag/end ]; do sleep 0.1; done\n");
ok(wait_for_file('ready'), 'a session has read an index');
my ($reserved, $used, $trees, $segments) = split /\|/, memory('reserved_bytes, used_bytes, tree_bytes, segments');
cmp_ok($trees, '>', 12 * $mb, 'trees of ten indexes');
is($used, $trees, 'nothing but trees is in use');
cmp_ok($reserved, '<', $used * 1.25 + $mb, "it grows in modest steps ($reserved bytes in $segments segments)");
# and so is the control structure
is(scalar(files()) - $files_before, $segments + 1, 'each segment is a file');

# small trees, built last
$node->safe_psql('postgres', fill('n', 50) . on_all('n', 'hybrid_index_check'));
my $small = memory('tree_bytes') - $trees;
$node->safe_psql('postgres', on_all('m', 'hybrid_merge'));
cmp_ok(memory('used_bytes'), '<=', $small, 'what merges have moved is in use no more');
is(memory('used_bytes - tree_bytes'), '0', 'all memory in use is counted as trees');
comes_true('segments go', "SELECT hybrid_index_check('m_2'); SELECT reserved_bytes <= $mb FROM hybrid_memory");
cmp_ok(memory('segments'), '<=', 4, 'few segments are left');
same_answers($node, 'trees that were in the last segments can be built again',
	{ 'SELECT id FROM n WHERE s > \'5\'' => 'index only bitmap', 'SELECT id FROM m WHERE s > \'5\'' => 'index only bitmap' }, [ 'm', 'n' ]);

SKIP:
{
	my $probe = $node->data_dir . '/pg_dynshmem/probe';
	append_to_file($probe, 'x' x 65536);
	my $punches = system_log('fallocate', '-p', '-o', '0', '-l', '65536', $probe) == 0;
	unlink $probe;
	skip 'SKIPPED: this file system cannot free part of a file', 1 if !$punches;
	cmp_ok(disk_bytes() - $disk_before, '<=', 1.5 * $mb, 'an idle session keeps no memory of segments that have gone');
}
append_to_file("$flag/go", '');
ok(wait_for_file('done'), 'the idle session reads again');
is(scalar(files()) - $files_before, memory('segments') + 1, 'the idle session has let go of the segments');
append_to_file("$flag/end", '');
ok(finish_psql($idle), 'it ends well') or diag $idle->{err};

# again and again
foreach my $round (1 .. 3)
{
	$node->safe_psql('postgres', fill('m', 3000) . on_all('m', 'hybrid_index_check'));
	cmp_ok(memory('reserved_bytes'), '>', 3 * $mb, "round $round: memory is taken");
	$node->safe_psql('postgres', on_all('m', 'hybrid_merge'));
	comes_true("round $round: and given back", "SELECT hybrid_index_check('m_2'); SELECT reserved_bytes <= $mb FROM hybrid_memory");
}

# what was dropped
SKIP:
{
	skip 'SKIPPED: trees that are not read go after minutes; needs injection points of a server from 18 on', 2 if !$points;
	$node->safe_psql('postgres', fill('m', 3000) . on_all('m', 'hybrid_index_check') . 'DROP TABLE m');
	cmp_ok(memory('reserved_bytes'), '>', 3 * $mb, 'trees of indexes that were dropped');
	$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-idle-trees', 'notice')");
	comes_true('go when they are idle', "SELECT hybrid_index_check('n_1'); SELECT reserved_bytes <= $mb FROM hybrid_memory");
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-idle-trees')");
}

# ---- errors while a tree is built ----
$node->safe_psql('postgres', <<EOF);
CREATE FUNCTION fussy_cmp(a int, b int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$
BEGIN
	IF 4711 IN (a, b) AND current_setting('fussy.fail', true) = 'on' THEN
		RAISE 'not that one';
	END IF;
	RETURN btint4cmp(a, b);
END \$\$;
CALL hyb_operator_class('fussy');
CREATE TABLE fussy (a int);
CREATE INDEX fussy_a ON fussy USING hybrid (a fussy_ops);
SELECT hybrid_index_check('n_1');
EOF
my $read_fussy = 'SET enable_seqscan = off; SELECT count(*) FROM fussy WHERE a > 0';
my $fill_fussy = 'TRUNCATE fussy; INSERT INTO fussy SELECT g FROM generate_series(1, 3000) g; INSERT INTO fussy VALUES (4711)';
foreach my $round (1 .. 3)
{
	$node->safe_psql('postgres', $fill_fussy);
	my ($ret, $out, $err) = $node->psql('postgres', "SET fussy.fail = on; $read_fussy");
	like($err, qr/not that one/, "round $round: a session fails while it builds a tree");
	is(memory('used_bytes - tree_bytes'), '0', "round $round: what it had in hand is given back");
}
$node->safe_psql('postgres', $fill_fussy);
is($node->safe_psql('postgres', <<EOF), '0', 'memory of a failed subtransaction is given back at once');
SET fussy.fail = on;
SET enable_seqscan = off;
DO \$\$
BEGIN
	PERFORM count(*) FROM fussy WHERE a > 0;
EXCEPTION WHEN raise_exception THEN
	CREATE TEMP TABLE leaves AS SELECT used_bytes - tree_bytes AS bytes FROM hybrid_memory;
END \$\$;
SELECT bytes FROM leaves;
EOF
is($node->safe_psql('postgres', $read_fussy), '3001', 'another session can build the tree');

# ---- trees that did not fit, and then do ----
my $shared = "SELECT tree_shared AND tree_memory > 100000 FROM hybrid_index_stats('n_1')";
$node->safe_psql('postgres', on_all('n', 'hybrid_merge') . fill('n', 20000));
$node->append_conf('postgresql.conf', 'hybridindex.dynamic_memory = 128kB');
$node->restart;
my $patient = start_psql($node,
	"SELECT hybrid_index_check('n_1');\n$shared;\n\\! touch $flag/small\n",
	"\\! until [ -e $flag/large ]; do sleep 0.1; done\n",
	"SELECT hybrid_index_check('n_1');\n$shared;\nSELECT pg_sleep(0.5);\n" x 20);
ok(wait_for_file('small'), 'a tree does not fit shared memory');
is(memory('private_tree_bytes > 100000 AND used_bytes <= 128 * 1024'), 't', 'the tree is built in the backend');
$node->append_conf('postgresql.conf', 'hybridindex.dynamic_memory = 64MB');
$node->reload;
append_to_file("$flag/large", '');
ok(finish_psql($patient), 'a session goes on') or diag $patient->{err};
like($patient->{out}, qr/^\s*f\s.*\st\s*$/s, 'shared memory is tried again when there is more');
is($node->safe_psql('postgres', $shared), 't', 'all sessions share the tree');
is(memory('private_tree_bytes'), '0', 'memory of the backend is given back, and was counted');

# ---- no memory for a tree, shared or not: the log is read in its pages ----
SKIP:
{
	skip 'SKIPPED: needs injection points of a server from 18 on', 7 if !$points;
	$node->append_conf('postgresql.conf', 'hybridindex.dynamic_memory = 64kB');
	$node->restart;
	$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-few-chunks', 'notice')");
	is($node->psql('postgres', "SELECT hybrid_index_check('n_1')"), 0, 'the check goes on');
	is(memory('private_tree_bytes'), '0', 'memory of a tree that does not fit is given back');
	same_answers($node, 'queries are right', {
		"SELECT id FROM n WHERE s BETWEEN '3' AND '5'" => 'index bitmap',
		"SELECT s FROM n WHERE s > '7' ORDER BY s DESC" => 'order',
		"SELECT id FROM n WHERE s = repeat(md5('4711'), 4)" => 'index' }, []);
	is($node->psql('postgres', 'DELETE FROM n WHERE id % 7 = 0; VACUUM n;' . fill('n', 500)), 0, 'so are deletes, VACUUM and inserts');
	cmp_ok($node->safe_psql('postgres', "SELECT hybrid_merge('n_1')"), '>', 5000, 'and merges');
	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-few-chunks')");
	is($node->psql('postgres', "SELECT hybrid_index_check('n_1', true)"), 0, 'the index is right');
	is(memory('private_tree_bytes'), '0', 'memory of a backend that failed is given back');
}
my ($ret, $out, $err) = $node->psql('postgres', "LOAD 'hybridindex'; ALTER SYSTEM SET hybridindex.dynamic_memory = '17GB'");
like($err, qr/outside the valid range/, 'no more can be asked for than can be numbered');

# ---- names in the code that workers run ----
$node->append_conf('postgresql.conf', "hybridindex.background_merge = on\nhybridindex.merge_floor = 1000\nhybridindex.dynamic_memory = 64MB");
$node->reload;
$node->safe_psql('postgres', <<EOF);
CREATE SCHEMA evil;
ALTER DATABASE postgres SET search_path = evil, public;
CREATE TABLE told (a int);
CREATE FUNCTION telling_cmp(a int, b int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$
BEGIN
	RAISE LOG 'comparing with path (%) in a worker: %', current_setting('search_path'),
		(SELECT backend_type = 'hybrid merge worker' FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid());
	RETURN pg_catalog.btint4cmp(a, b);
END \$\$;
CALL hyb_operator_class('telling');
CREATE INDEX told_a ON told USING hybrid (a telling_ops);
EOF
# A session that has filled a page of the log asks for a worker.  It may merge itself all
# the same, so it fills further ones until a worker has compared.
$node->poll_query_until('postgres', "SELECT current_setting('hybridindex.background_merge') = 'on'") or die 'the settings have not changed';
my %paths;
foreach my $round (1 .. 60)
{
	$node->safe_psql('postgres', 'INSERT INTO public.told SELECT g FROM generate_series(1, 1100) g');
	foreach (1 .. 5)
	{
		my $log = slurp_file($node->logfile);
		$paths{$1}++ while $log =~ /comparing with path \((.*)\) in a worker: t/g;
		last if %paths;
		usleep(200_000);
	}
	last if %paths;
}
is(join(' or ', map { "<$_>" } sort keys %paths), '<pg_catalog, pg_temp>', 'what workers call looks for names where the server looks');
no_crash($node, 'no crash');
$node->stop;

# ---- beside a parallel join, in as little as a container has ----
SKIP:
{
	my $private = "mount -t tmpfs -o size=64m tmpfs /dev/shm && exec unshare -U --map-user=1000 --map-group=1000";
	skip 'SKIPPED: no user namespaces, in which to have a small /dev/shm', 5
	  if $^O ne 'linux' || system_log('unshare', '-Urm', 'sh', '-c', "$private true") != 0;
	my $other = new_node('small', <<EOF);
dynamic_shared_memory_type = posix
shared_buffers = 64MB
hybridindex.background_merge = off
hybridindex.merge_floor = 100000000
EOF
	$other->stop;
	is(system_log('unshare', '-Urm', 'sh', '-c', "$private pg_ctl -w -D '" . $other->data_dir . "' -l '" . $other->logfile . "' start"),
		0, 'a server with a /dev/shm of 64 MB');
	$other->_update_pid(1);
	make_table($other, 'm');
	$other->safe_psql('postgres', fill('m', 30000) . 'ANALYZE m;' . on_all('m', 'hybrid_index_check'));
	is($other->safe_psql('postgres', 'SELECT dynamic_memory, limit_bytes, reserved_bytes <= limit_bytes, reserved_bytes > limit_bytes / 2 FROM hybrid_memory'),
		join('|', 64 * $mb, 32 * $mb, 't', 't'), 'half of the memory is for other indexes');
	my $settings = <<EOF;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET work_mem = '24MB';
SET enable_mergejoin = off;
SET enable_nestloop = off;
EOF
	my $query = 'SELECT count(*) FROM m x JOIN m y ON x.id = y.id WHERE x.s >= y.s';
	like($other->safe_psql('postgres', "$settings EXPLAIN (COSTS off) $query"), qr/Parallel Hash Join/, 'a parallel hash join');
	my ($ret, $out, $err) = $other->psql('postgres', "$settings $query");
	is("$out $err", '30000 ', 'has the memory that it needs');
	no_crash($other, 'no crash');
	$other->stop;
}

done_testing();
