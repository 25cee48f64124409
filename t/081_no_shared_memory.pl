
# Any login role can use up the server's spare shared memory before a hybrid index is
# first used.  The library needs next to nothing of it.  Where the operating
# system gives no dynamic shared memory either, and the library is not preloaded,
# hybrid indexes do without shared memory: all works, and uniqueness holds.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('spare', <<EOF);
max_connections = 20
max_locks_per_transaction = 10
max_worker_processes = 4
max_wal_senders = 0
wal_level = replica
dynamic_shared_memory_type = mmap
max_parallel_workers_per_gather = 0
hybridindex.merge_floor = 300
EOF

$node->safe_psql('postgres', <<'EOF');
CREATE ROLE plain LOGIN;
CREATE TABLE t (id int, k int8, s text COLLATE "C");
CREATE UNIQUE INDEX t_id ON t USING hybrid (id);
CREATE INDEX t_k ON t USING hybrid (k) INCLUDE (id);
CREATE INDEX t_s ON t USING hybrid (s);
CREATE TABLE r (k int);
CREATE UNIQUE INDEX r_k ON r USING hybrid (k);
GRANT ALL ON t, r TO plain;
INSERT INTO t SELECT g, hashint8(g), md5(g::text) FROM generate_series(1, 2000) g;
-- one transaction each, so that nobody waits for the others' ends
CREATE PROCEDURE races(n int, step int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 0 .. n - 1 LOOP
		BEGIN
			INSERT INTO r VALUES (i * step % n);
		EXCEPTION WHEN unique_violation THEN
		END;
		COMMIT;
	END LOOP;
END $$;
EOF
my %queries = (
	'SELECT s FROM t WHERE id BETWEEN 100 AND 3000' => 'index bitmap',
	'SELECT k, id FROM t WHERE k BETWEEN 0 AND 1000000000' => 'index only bitmap',
	'SELECT id FROM t WHERE s >= \'a\' AND s < \'b\'' => 'index bitmap',
	'SELECT id FROM t ORDER BY id DESC' => 'order order_only');
my $points = has_points($node);
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points') if $points;

sub exhaust
{
	my ($ret, $out, $err) = $node->psql('postgres',
		'DO $$ BEGIN FOR i IN 1 .. 10000000 LOOP PERFORM pg_advisory_lock(i); END LOOP; END $$',
		extra_params => [ '-U', 'plain' ]);
	like($err, qr/ERROR:  out of shared memory/, 'an ordinary role used up the spare shared memory');

	# its session may still hold its locks, so that no other one can begin
	$node->poll_query_until('postgres', 'SELECT true') or die 'no session can begin';
	return;
}

sub works
{
	my ($statement, $what, %params) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $statement, %params);
	is($ret, 0, $what) or diag $err;
	return $out;
}

my $segments = $node->data_dir . '/pg_dynshmem';
my $next = 0;

foreach my $where ('not preloaded', 'no dynamic memory', 'preloaded')
{
	my $without = $where eq 'no dynamic memory';
	my ($ret, $out, $err);

	$next += 10000;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'hybridindex'") if $where eq 'preloaded';
	$node->restart;
	my $log = -s $node->logfile;
	# the server's statistics, and the points, have segments of their own
	$node->safe_psql('postgres', $points ? 'SELECT injection_points_set_local()' : 'SELECT 1');
	exhaust();

	my @plain = (extra_params => [ '-U', 'plain' ]);
	chmod 0500, $segments or die if $without;
	my $rows = works('SET enable_seqscan = off; SELECT count(*) FROM t WHERE id BETWEEN 1 AND 2000', "$where: a query first", @plain);
	is($rows, $node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id + 0 BETWEEN 1 AND 2000'), "$where: its answer");
	works("INSERT INTO t SELECT g, g, g FROM generate_series($next, $next + 999) g", "$where: insertions", @plain);
	($ret, $out, $err) = $node->psql('postgres', "INSERT INTO t VALUES ($next + 5, 0, '')", @plain);
	like($err, qr/duplicate key value violates unique constraint "t_id"/, "$where: uniqueness");
	works("INSERT INTO t VALUES ($next + 5, 0, '') ON CONFLICT (id) DO UPDATE SET k = 1", "$where: ON CONFLICT", @plain)
	  if $node->pg_version >= 18;
	works('DELETE FROM t WHERE id % 3 = 1', "$where: deletion", @plain);
	works('VACUUM t', "$where: VACUUM");
	works("SELECT count(hybrid_merge(i)) FROM unnest('{t_id,t_k,t_s}'::regclass[]) i", "$where: hybrid_merge");
	same_answers($node, "$where: answers", \%queries, ['t']);
	works('REINDEX INDEX t_k; CREATE INDEX t_new ON t USING hybrid (s, id); DROP INDEX t_new', "$where: REINDEX, CREATE and DROP INDEX");
	works("INSERT INTO t SELECT g, g, g FROM generate_series($next + 1000, $next + 3999) g", "$where: insertions that bring merges", @plain);
	works('SELECT count(*) FROM hybrid_indexes; SELECT count(*) FROM hybrid_merge_progress', "$where: the views");
	same_answers($node, "$where: answers after that", \%queries, ['t']);

	my $shared = $node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM t WHERE id = 8; SELECT tree_shared FROM hybrid_index_stats('t_id')");
	$shared =~ s/^\d+\n//;
	# whether locks have left the hundred bytes that it takes depends on the server's build
	like($shared, $where eq 'not preloaded' ? qr/^[ft]$/ : $without ? qr/^f$/ : qr/^t$/, "$where: whether trees are in shared memory");
	my $message = slurp_file($node->logfile, $log) =~ /LOG:  hybridindex works without shared memory/;
	is($message ? 'yes' : 'no', $shared eq 'f' ? 'yes' : 'no', "$where: whether the log says that indexes do without it");

	# many at a time
	$node->safe_psql('postgres', 'TRUNCATE r');
	my @sessions = map { start_psql($node, "CALL races(400, $_);\n") } 1, 7, 1, 399;
	ok(finish_psql($_), "$where: a racing session") or diag $_->{err} foreach @sessions;
	is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT k) FROM r'), '400|400', "$where: each key once");

	# one that waits for a transaction, while other sessions insert
	{
		my $dir = PostgreSQL::Test::Utils::tempdir();
		my $wait = sub { return "\\! for i in \$(seq 600); do [ -e $dir/$_[0] ] && break; sleep 0.1; done\n"; };
		my $limit = "SET statement_timeout = '30s';\n";

		my $holder = start_psql($node, "${limit}BEGIN; INSERT INTO r VALUES (1001);\n\\! touch $dir/begun\n", $wait->('go'),
			"INSERT INTO r VALUES (1002); COMMIT;\n");
		wait_file("$dir/begun");
		my $waiting = start_psql($node, "INSERT INTO r VALUES (1001);\n");
		ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO r%' AND wait_event = 'transactionid'"),
			"$where: an inserter waits for a transaction");
		works("${limit}INSERT INTO r VALUES (1003)", "$where: another one inserts meanwhile");
		append_to_file("$dir/go", '');
		ok(finish_psql($holder), "$where: and so does the transaction") or diag $holder->{err};
		ok(!finish_psql($waiting), "$where: the one that waits fails");
		like($waiting->{err}, qr/duplicate key value violates unique constraint "r_k"/, "$where: since its key is there");
	}

	# one that has found no conflict, and has not yet appended its entry
  SKIP:
	{
		skip 'this server has no injection points', 3 if !$points;
		$node->safe_psql('postgres', "TRUNCATE r; SELECT injection_points_attach('hybrid-unique-checked', 'wait')");
		my $first = start_psql($node, "INSERT INTO r VALUES (1);\n");
		my $held = $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'hybrid-unique-checked'");
		ok($held, "$where: an inserter is held after its check");
		$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-unique-checked')");
		my $second = start_psql($node, "SET lock_timeout = '100ms'; INSERT INTO r VALUES (1);\n");
		$node->poll_query_until('postgres', "SELECT count(*) = 1 OR EXISTS (SELECT 1 FROM r WHERE k = 1) FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
		$node->safe_psql('postgres', "SELECT pg_sleep(0.3), injection_points_wakeup('hybrid-unique-checked')");
		my $won = grep { finish_psql($_) } $first, $second;
		unlike($second->{err}, qr/lock timeout/, "$where: lock_timeout does not count");
		is($won . ' ' . $node->safe_psql('postgres', 'SELECT count(*) FROM r'), '1 1', "$where: one of two gets in");
	}

	# An index-only scan is held on its way to a leaf while a VACUUM goes by,
	# which knows nothing of the backend's own tree of the log.
  SKIP:
	{
		skip 'this server has no injection points', 4 if !$points;
		$node->safe_psql('postgres', $_) foreach ('DROP TABLE IF EXISTS w', 'CREATE TABLE w (s text COLLATE "C", v int)',
			'INSERT INTO w SELECT md5(i::text), 0 FROM generate_series(1, 3000) i', 'CREATE INDEX w_s ON w USING hybrid (s)',
			"INSERT INTO w SELECT '!' || repeat(md5('w' || i), 3), 1 FROM generate_series(1, 250) i",
			'VACUUM w');

		# It has its tree before rows die, so that it knows of none, and is planned
		# before it is held, since the planner goes down to leaves, too.
		my $dir = PostgreSQL::Test::Utils::tempdir();
		my $reader = start_psql($node, <<EOF);
SET enable_seqscan = off; SET enable_sort = off;
PREPARE q AS SELECT count(*) FROM (SELECT s FROM w ORDER BY s OFFSET 0) x;
EXECUTE q;
\\! touch $dir/read
\\! for i in \$(seq 600); do [ -e $dir/deleted ] && break; sleep 0.1; done
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-descend', 'wait');
EXECUTE q;
EOF
		wait_file("$dir/read");
		$node->safe_psql('postgres', 'DELETE FROM w WHERE v = 1 AND hashtext(s) % 2 = 0');
		my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM w WHERE v >= 0');
		append_to_file("$dir/deleted", '');
		ok(held_at($node, 'descend', $reader), "$where: a reader is held on its way to a leaf");
		works('VACUUM (INDEX_CLEANUP on, TRUNCATE false) w', "$where: VACUUM beside it");
		$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-descend'); SELECT injection_points_wakeup('hybrid-descend')");
		ok(finish_psql($reader), "$where: the reader ends") or diag $reader->{err};
		is(join(' ', grep { $_ ne '' } split(/\n/, $reader->{out})), "3250 $rows", "$where: and returns no row that VACUUM has removed");
	}
	chmod 0700, $segments or die;
}
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
