
# Resources run out: files cannot grow, shared memory is full, no worker slot is
# free, and statements are cancelled at random moments.  Errors are clear, the server
# stays up, and the indexes are right.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $seconds = $ENV{HYBRID_SECONDS} // 5;

# Small WAL files, so that a limit of file sizes spares them.
my $node = new_node('resources', <<EOF, extra => ['--wal-segsize=1']);
hybridindex.merge_step_pages = 4
shared_buffers = 64MB
max_wal_size = 256MB
log_statement = none
log_min_duration_statement = -1
EOF

$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (id int, k int8, s text COLLATE "C") WITH (vacuum_truncate = off);
CREATE UNIQUE INDEX t_id ON t USING hybrid (id);
CREATE INDEX t_k ON t USING hybrid (k) INCLUDE (id);
CREATE INDEX t_s ON t USING hybrid (s, k DESC) INCLUDE (s) WITH (filter = surf, compression = none);
CREATE SEQUENCE ids;
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT nextval('ids'), floor((random() - 0.5) * 1e18)::int8, repeat(md5(random()::text), 4) FROM generate_series(1, n)
\$\$;
EOF
my %queries = (
	'SELECT s FROM t WHERE id BETWEEN 100 AND 30000' => 'index bitmap',
	'SELECT k, id FROM t WHERE k BETWEEN 0 AND 100000000000000000' => 'index only bitmap',
	'SELECT id FROM t WHERE s >= \'a\' AND s < \'b\'' => 'index bitmap',
	'SELECT id FROM t ORDER BY id DESC' => 'order_only');
my $merge = 'SELECT count(hybrid_merge(i)) FROM unnest(\'{t_id,t_k,t_s}\'::regclass[]) i;';

sub postmaster_pid
{
	my ($pid) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	return $pid;
}

# Sessions and workers that start from now on cannot make a file longer than
# this.  False if the limit cannot be set.
sub limit_files
{
	my ($bytes) = @_;
	return system_log('prlimit', '--pid', postmaster_pid(), "--fsize=$bytes:unlimited") == 0;
}

# ---- files that cannot grow ----
SKIP:
{
	skip 'there is no prlimit', 1 if !-x '/usr/bin/prlimit';

	# room in the table, none in its indexes
	$node->safe_psql('postgres', 'SET hybridindex.background_merge = off; SET hybridindex.merge_floor = 1000000; SELECT fill(22000); DELETE FROM t');
	$node->safe_psql('postgres', 'VACUUM t');
	$node->safe_psql('postgres', 'REINDEX TABLE t; SELECT fill(2000)');
	$node->safe_psql('postgres', 'VACUUM t; CHECKPOINT');
	ok(limit_files(2 * 1024 * 1024), 'a limit of 2 MB');

	my ($ret, $out, $err, $inserted);
	foreach my $way ('off', 'on')
	{
		my $file;
		foreach (1 .. 60)
		{
			($ret, $out, $err) = $node->psql('postgres', "SET hybridindex.background_merge = $way; SELECT fill(300)");
			last if $ret != 0;
			$inserted++;
		}
		like($err, qr/ERROR:  could not extend file "base\/\d+\/\d+[^"]*"/, "merges in the background $way: an insertion says what is wrong");
		($file) = $err =~ /file "([^"]+)"/;
		like($node->safe_psql('postgres', "SELECT pg_filenode_relation(0, regexp_replace('$file', '.*/(\\d+).*', '\\1')::oid)"), qr/^t_/, 'it is about an index')
		  if defined $file;
		same_answers($node, "merges in the background $way: answers while files cannot grow", \%queries, ['t']);
	}
	note "$inserted insertions of 300 rows before that";
	foreach my $statement ($merge, 'CREATE INDEX t_new ON t USING hybrid (s, id)',
		'CREATE INDEX CONCURRENTLY t_late ON t USING hybrid (s, id)', 'REINDEX INDEX t_s')
	{
		($ret, $out, $err) = $node->psql('postgres', $statement);
		like($ret == 0 ? 'done' : $err, qr/^done$|ERROR:  could not (extend|write)/, "$statement: success or a clear error");
	}
	($ret, $out, $err) = $node->psql('postgres', 'DELETE FROM t WHERE id % 3 = 1');
	is($ret, 0, 'rows can be deleted') or diag $err;
	($ret, $out, $err) = $node->psql('postgres', 'VACUUM t');
	is($ret, 0, 'VACUUM needs no room') or diag $err;
	same_answers($node, 'answers after that', \%queries, ['t']);

	limit_files('unlimited');
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS t_new, t_late');
	$node->safe_psql('postgres', "SELECT fill(3000); $merge");
	same_answers($node, 'work goes on when files can grow', \%queries, ['t']);
	limit_files(2 * 1024 * 1024);
	$node->psql('postgres', 'SELECT fill(20000)');
	$node->psql('postgres', $merge);
	$node->stop('immediate');
	$node->start;
	same_answers($node, 'a crash while files could not grow', \%queries, ['t']);
	$node->safe_psql('postgres', $merge);
	$node->safe_psql('postgres', 'VACUUM t');
	same_answers($node, 'work goes on after it', \%queries, ['t']);
}

# ---- no shared memory ----
$node->safe_psql('postgres', 'TRUNCATE t');

# Memory of the operating system ends: the same limit holds for its files.  The
# table and its indexes have room, and nothing is merged.
SKIP:
{
	skip 'there is no prlimit', 1 if !-x '/usr/bin/prlimit';
	my $no_merges = 'SET hybridindex.background_merge = off; SET hybridindex.merge_floor = 1000000;';

	# segments of up to 1 MB can be had, 14 MB of them: long keys need more
	my $fill = sub { my ($n) = @_; return "INSERT INTO t SELECT nextval('ids'), floor((random() - 0.5) * 1e18)::int8, (SELECT string_agg(md5((random() + i + j)::text), '') FROM generate_series(1, 22) j) FROM generate_series(1, $n) i;" };
	$node->safe_psql('postgres', "$no_merges " . $fill->(16000) . "$merge DELETE FROM t");
	$node->safe_psql('postgres', 'ALTER TABLE t SET (vacuum_truncate = off)');
	$node->safe_psql('postgres', "VACUUM t; $merge");
	$node->restart;
	limit_files(1024 * 1024);
	my $filled = 0;
	foreach (1 .. 24)
	{
		$filled += $node->psql('postgres', "$no_merges " . $fill->(500)) == 0;
	}
	cmp_ok($filled, '>', 12, "insertions without more shared memory ($filled)");
	same_answers($node, 'answers without more shared memory', \%queries, ['t']);
	is($node->safe_psql('postgres', "SELECT min(tree_memory) FROM unnest('{t_id,t_k,t_s}'::regclass[]) i, hybrid_index_stats(i)"),
		'0', 'an index did without a tree in shared memory');
	limit_files('unlimited');
	$node->safe_psql('postgres', "SELECT fill(500); $merge");
	same_answers($node, 'answers with more shared memory', \%queries, ['t']);
}

# the least of ours, and memory of the server's main segment
foreach my $setting ("hybridindex.dynamic_memory = 64kB", "min_dynamic_shared_memory = 1MB\nhybridindex.dynamic_memory = 64MB")
{
	$node->append_conf('postgresql.conf', $setting);
	$node->restart;
	$node->safe_psql('postgres', "SELECT fill(500)") foreach 1 .. 8;
	$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 5 = 2');
	$node->safe_psql('postgres', 'VACUUM t; SELECT fill(1500)');
	same_answers($node, "answers with $setting", \%queries, ['t']);
}

# ---- all worker slots taken, by workers of our own for another index ----
$node->append_conf('postgresql.conf', "max_worker_processes = 2\nmax_parallel_workers = 2\nmax_logical_replication_workers = 0");
$node->restart;
$node->safe_psql('postgres', 'CREATE TABLE big (k int8); CREATE INDEX big_1 ON big USING hybrid (k); CREATE INDEX big_2 ON big USING hybrid (k); CREATE INDEX big_3 ON big USING hybrid (k)');
my @load;
foreach my $i (1 .. 3)
{
	push @load, start_psql($node, "INSERT INTO big SELECT hashint8(g) FROM generate_series(1, 2000) g;\nSELECT fill(300);\n" x 10);
}
ok(finish_psql($_), 'insertions into more indexes than there are workers') or diag $_->{err} foreach @load;
same_answers($node, 'answers after that', \%queries, [ 't', 'big' ]);
$node->safe_psql('postgres', 'DROP TABLE big');

# ---- cancelled and timed out at random moments ----
$node->append_conf('postgresql.conf', "max_worker_processes = 8\nhybridindex.merge_step_pages = 1\nhybridindex.merge_floor = 300");
$node->restart;
my @work = (
	[ 'insert', 'SELECT fill(400);' ], [ 'insert alone', 'SET hybridindex.background_merge = off; SELECT fill(400);' ],
	[ 'delete', 'DELETE FROM t WHERE id % 50 = (random() * 49)::int;' ], [ 'update', 'UPDATE t SET k = k + 1 WHERE id % 40 = (random() * 39)::int;' ],
	[ 'merge', $merge ], [ 'vacuum', 'VACUUM t;' ], [ 'vacuum', 'VACUUM t;' ],
	[ 'build', 'CREATE INDEX t_new ON t USING hybrid (s, id);' ],
	[ 'concurrently', 'CREATE INDEX CONCURRENTLY t_late ON t USING hybrid (s);' ],
	[ 'reindex', 'REINDEX INDEX t_k;' ], [ 'reindex', 'REINDEX INDEX CONCURRENTLY t_s;' ],
	[ 'check', 'SELECT hybrid_index_check(\'t_s\', true);' ],
	[ 'scan', 'SET enable_seqscan = off; SELECT count(s) FROM t WHERE s > \'1\'; SELECT sum(k) FROM t WHERE k > 0;' ]);
my (%interrupted, %unexpected);
my $until = time + $seconds;
while (time < $until || (keys %interrupted < 3 && time < $until + 60))
{
	my ($name, $script) = @{ $work[rand @work] };
	my $ms = int(exp(rand(log(200))));
	my ($ret, $out, $err) = $node->psql('postgres', (rand() < 0.7 ? "SET statement_timeout = '${ms}ms'; " : '') . $script);
	$interrupted{$name}++ if $err =~ /statement timeout/;
	$unexpected{$1}++ while $err =~ /^.*?((?:ERROR|FATAL): (?!.*(?:statement timeout|already exists)).*)$/mg;
	$node->psql('postgres', 'DROP INDEX IF EXISTS t_new, t_late, t_s_ccnew, t_s_ccold, t_s_ccnew1, t_s_ccold1');
}
is(join("\n", sort keys %unexpected), '', 'timeouts bring no other error');
note join(', ', map { "$_ $interrupted{$_}" } sort keys %interrupted);
cmp_ok(scalar(keys %interrupted), '>=', 3, 'several kinds of work were interrupted');
same_answers($node, 'answers after timeouts', \%queries, ['t']);

my @sessions;
foreach my $statement ('SELECT fill(50);', $merge, 'VACUUM t;', 'DELETE FROM t WHERE id % 90 = (random() * 89)::int;')
{
	push @sessions, start_psql($node, "\\set ON_ERROR_STOP 0\n" . "$statement\n" x 2000);
}
my $cancels = $node->safe_psql('postgres', <<EOF);
CREATE TEMP TABLE n AS SELECT 0 AS cancelled;
DO \$\$
BEGIN
	FOR i IN 1 .. 200 * $seconds LOOP
		UPDATE n SET cancelled = cancelled + (SELECT count(*) FROM
			(SELECT pid FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() OR backend_type ILIKE '%hybrid%' ORDER BY random() LIMIT 1) p
			WHERE pg_cancel_backend(pid));
		PERFORM pg_sleep(random() * 0.006), pg_stat_clear_snapshot();
	END LOOP;
END \$\$;
SELECT cancelled FROM n;
EOF
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
finish_psql($_) foreach @sessions;
cmp_ok($cancels, '>', 50, "statements were cancelled ($cancels)");
my @errors = map { $_->{err} =~ /^.*?((?:ERROR|FATAL|PANIC): (?!.*(?:user request|administrator command)).*)$/mg } @sessions;
is(join("\n", @errors), '', 'cancels bring no other error');
same_answers($node, 'answers after cancels', \%queries, ['t']);
$node->safe_psql('postgres', $merge);
$node->safe_psql('postgres', 'VACUUM t');
same_answers($node, 'answers after merges and VACUUM', \%queries, ['t']);

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
