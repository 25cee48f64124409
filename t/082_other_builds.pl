
# Another build of the library, with another layout of shared memory, is installed
# while the server runs.  Older sessions go on with their build, answers and merges
# included.  A new session gets one error with its SQLSTATE wherever it uses a hybrid
# index, and otherwise goes on.  After a restart the new build works.  Where the
# library is preloaded nothing changes until then.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# ---- the builds ----

# ./dev has made them, or we do.
my $builds = $ENV{HYBRID_BUILDS} // '';
if ($builds eq '')
{
	my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
	my ($cc, $pgxs) = map { `$pg_config --$_` =~ s/\n//r } 'cc', 'pgxs';
	my $log;

	foreach my $program ('make', (split(/ /, $cc))[0])
	{
		plan(skip_all => "there is no $program to make other builds with")
		  if system("command -v '$program' >/dev/null 2>&1") != 0;
	}
	plan(skip_all => 'there is no PGXS to make other builds with') if !-e $pgxs;
	$builds = PostgreSQL::Test::Utils::tempdir();
	IPC::Run::run([ test_root() . '/test/dev/other_builds.sh', $pg_config, test_root(), $builds ], '>', \$log, '2>&1')
	  or die "other builds could not be made: $log";
}
my $libdir = `pg_config --pkglibdir` =~ s/\n//r;

# ---- the server ----

my $place = PostgreSQL::Test::Utils::tempdir();

# As packages do: the old file stays what it is for those that have it mapped.
sub put
{
	my ($name) = @_;
	my $file = $name eq 'installed' ? "$libdir/hybridindex.so" : "$builds/$name.so";
	system("cp '$file' '$place/new' && chmod 755 '$place/new' && mv '$place/new' '$place/hybridindex.so'") == 0
	  or die "could not install $name";
	return;
}

put('installed');
my $node = new_node('builds', <<EOF);
dynamic_library_path = '$place:\$libdir'
autovacuum_naptime = 1s
autovacuum_vacuum_threshold = 100
autovacuum_vacuum_scale_factor = 0
max_parallel_workers_per_gather = 0
min_parallel_table_scan_size = 0
min_parallel_index_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
hybridindex.merge_floor = 300
EOF
my $refused = qr/ERROR:  55000: hybridindex was updated while the server was running\n.*DETAIL:  .*\n.*HINT:  Restart the server\./;

$node->safe_psql('postgres', <<'EOF');
SET allow_system_table_mods = on;
UPDATE pg_proc SET probin = 'hybridindex' WHERE probin LIKE '%hybridindex';
RESET allow_system_table_mods;
CREATE TABLE t (id int, k int8, who int, v int DEFAULT 0);
CREATE UNIQUE INDEX t_id ON t USING hybrid (id);
CREATE INDEX t_k ON t USING hybrid (k) INCLUDE (id);
CREATE TABLE p (k int, l int) WITH (parallel_workers = 2);
CREATE INDEX p_k ON p USING hybrid (k);
CREATE INDEX p_l ON p USING hybrid (l);
INSERT INTO p SELECT g, g FROM generate_series(1, 20000) g;
CREATE TABLE plain (id int PRIMARY KEY);
CREATE SEQUENCE ids;
CREATE TABLE clients (who int PRIMARY KEY, rounds int, merges int8);
CREATE TABLE stop (c int);
CREATE FUNCTION key(i int) RETURNS int8 LANGUAGE sql IMMUTABLE AS 'SELECT hashint4(i)::int8 * 1000000 + i';

-- Change rows and look whether the indexes say so, until there is a row in stop.
CREATE PROCEDURE client(me int) LANGUAGE plpgsql AS $$
DECLARE
	first	int;
	i		int;
	n		int;
BEGIN
	SET enable_seqscan = off;
	INSERT INTO clients VALUES (me, 0, 0);
	LOOP
		first := 100 * nextval('ids');
		INSERT INTO t SELECT g, key(g), me FROM generate_series(first, first + 99) g;
		COMMIT;
		i := first + floor(random() * 100);
		SELECT count(*) INTO n FROM t WHERE k = key(i) AND id = i;
		IF n <> 1 THEN RAISE '% rows where k = key(%)', n, i; END IF;
		BEGIN
			INSERT INTO t VALUES (i, key(i), me);
			RAISE 'there are two rows where id = %', i;
		EXCEPTION WHEN unique_violation THEN
		END;
		UPDATE t SET k = -k, v = 1 WHERE id = i;
		GET DIAGNOSTICS n = ROW_COUNT;
		IF n <> 1 THEN RAISE '% rows updated where id = %', n, i; END IF;
		DELETE FROM t WHERE id BETWEEN first AND first + 49;
		COMMIT;
		SELECT count(*) INTO n FROM t WHERE id BETWEEN first AND first + 99;
		IF n <> 50 THEN RAISE '% rows between % and %', n, first, first + 99; END IF;
		IF EXISTS (SELECT FROM t WHERE k = key(i)) THEN RAISE 'an old version where k = key(%)', i; END IF;
		UPDATE clients SET rounds = rounds + 1, merges = (SELECT merges FROM hybrid_index_stats('t_k')) WHERE who = me;
		COMMIT;
		EXIT WHEN EXISTS (SELECT FROM stop);
	END LOOP;
END $$;
EOF
$node->append_conf('postgresql.conf', 'autovacuum = on');
$node->restart;

# Of a table that does not change meanwhile, and of all.
my %quiet = ('SELECT k FROM p WHERE k BETWEEN 17 AND 12000' => 'index only bitmap');
my %queries = (
	%quiet,
	'SELECT v FROM t WHERE id BETWEEN 100 AND 3000' => 'index bitmap',
	'SELECT k, id FROM t WHERE k BETWEEN 0 AND 100000000000000' => 'index only bitmap');

# What needs a hybrid index, and what does not.
my @with = (
	'SET enable_seqscan = off; SELECT count(*) FROM t WHERE id = 10',
	'SET enable_seqscan = off; SET enable_indexscan = off; SELECT count(*) FROM t WHERE id = 10',
	'SELECT k FROM t ORDER BY k LIMIT 1',
	'INSERT INTO t VALUES (-1, 1, 0)',
	'UPDATE t SET k = 0 WHERE id + 0 = (SELECT max(id + 0) FROM t)',
	'COPY t (id) FROM PROGRAM \'echo -2\'',
	'VACUUM t',
	'VACUUM (PARALLEL 2) p',
	'CREATE INDEX t_new ON t USING hybrid (v)',
	'CREATE TABLE new (k int PRIMARY KEY WITH (access_method = hybrid))',
	'CREATE TEMP TABLE new (k int); CREATE INDEX ON new USING hybrid (k)',
	'BEGIN; CREATE UNLOGGED TABLE new (k int); CREATE INDEX ON new USING hybrid (k)',
	'REINDEX INDEX p_k',
	'TRUNCATE p',
	'CLUSTER p USING p_k',
	'ALTER TABLE p ALTER k TYPE int8',
	'SELECT hybrid_merge(\'t_k\')',
	'SELECT hybrid_index_check(\'t_k\', true)',
	'SELECT * FROM hybrid_index_stats(\'t_k\')',
	'SELECT * FROM hybrid_memory',
	'SELECT * FROM hybrid_merge_progress',
	'SELECT * FROM hybrid_indexes');
push @with, 'INSERT INTO t VALUES (-1, 1, 0) ON CONFLICT (id) DO NOTHING' if $node->pg_version >= 18;
my @without = (
	'SELECT count(v) FROM t',
	'SELECT count(v) FROM t WHERE id + 0 = 1',
	'SET enable_seqscan = off; EXPLAIN SELECT * FROM p WHERE k = 1',
	'DELETE FROM t WHERE id + 0 = -1',
	'ANALYZE t',
	'COPY t TO PROGRAM \'cat >/dev/null\'',
	'INSERT INTO plain VALUES (1); DELETE FROM plain WHERE id = 1; VACUUM plain',
	'CREATE TABLE new (k int PRIMARY KEY); ALTER TABLE new ADD l int UNIQUE; DROP TABLE new',
	'CREATE EXTENSION IF NOT EXISTS hybridindex',
	'DROP INDEX dropped');

# Wait until each client has done its work $more more times.
sub wait_for_rounds
{
	my ($more, $what) = @_;
	my $n = $more + $node->safe_psql('postgres', 'SELECT coalesce(min(rounds), 0) FROM clients');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 2 FROM clients WHERE rounds >= $n"), $what);
	return;
}

# Statements that are not as they should be, each in a session of its own, and
# what they said.
sub wrong
{
	my ($right, @statements) = @_;
	my @wrong;

	foreach my $statement (@statements)
	{
		my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
		push @wrong, "$statement: $ret $err" if !$right->($ret, $err);
	}
	return join('', @wrong);
}

sub is_refused
{
	my ($what) = @_;
	is(wrong(sub { $_[0] != 0 && $_[1] =~ $refused }, @with), '', "$what: what uses a hybrid index is refused");
	return;
}

# Two clients, and a session that waits for $place/go and then has parallel
# workers started.
sub start_sessions
{
	my ($what) = @_;
	$node->safe_psql('postgres', 'TRUNCATE clients; TRUNCATE stop; CREATE INDEX dropped ON p USING hybrid (k, l)');
	my @clients = map { start_psql($node, "CALL client($_);\n") } 1, 2;
	my $parallel = start_psql($node, <<EOF);
\\set VERBOSITY verbose
SET enable_seqscan = off;
SELECT 'before', count(*) FROM p WHERE k > 0;
\\! touch $place/ready; for i in \$(seq 1200); do [ -e $place/go ] && break; sleep 0.05; done
\\set ON_ERROR_STOP 0
SET max_parallel_workers_per_gather = 2;
SELECT 'scan', count(*) FROM p WHERE k > 0;
CREATE INDEX p_new ON p USING hybrid (l, k);
VACUUM (PARALLEL 2) p;
SET max_parallel_workers_per_gather = 0;
SET max_parallel_maintenance_workers = 0;
SELECT 'after', count(*) FROM p WHERE k > 0;
CREATE INDEX p_alone ON p USING hybrid (l, k);
DROP INDEX p_alone;
EOF
	wait_file("$place/ready");
	wait_for_rounds(3, "$what: sessions are at work");
	return (\@clients, $parallel);
}

sub finish_parallel
{
	my ($session, $what) = @_;

	append_to_file("$place/go", '');
	finish_psql($session);
	unlink "$place/go", "$place/ready";
	is(join(' ', $session->{out} =~ /^(?:before|after)\|.*$/mg), "before|20000 after|20000", "$what: a session that was there reads by itself");
	unlike($session->{out}, qr/scan\|(?!20000$)/m, "$what: it reads nothing wrong with parallel workers");
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS p_new');
	return;
}

sub finish_clients
{
	my ($clients, $what) = @_;

	$node->safe_psql('postgres', 'INSERT INTO stop VALUES (1)');
	foreach my $client (@$clients)
	{
		ok(finish_psql($client), "$what: a session that was there ends") or diag $client->{err};
	}
	return;
}

# Errors in the log that the statements above do not ask for.  Parallel workers
# that come when their leader has gone find no shared memory of it.
sub other_errors
{
	my ($from) = @_;
	return join("\n", grep { !/hybridindex was updated while the server was running|terminating|canceling autovacuum|could not (?:map dynamic shared memory segment|attach to dynamic shared area)/ }
		  substr(slurp_file($node->logfile), $from) =~ /^.*(?:ERROR|FATAL|PANIC): .*$/mg);
}

my $worker_starts = "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker'";
my @chain = qw(installed larger installed shuffled installed reworded);
while (@chain > 1)
{
	my $old = shift @chain;
	my $new = $chain[0];
	my $what = "$old, then $new";
	my $log = -s $node->logfile;
	my ($clients, $parallel) = start_sessions($what);

	put($new);
	is_refused($what);
	is(wrong(sub { $_[0] == 0 }, @without), '', "$what: what uses none works");
	my $merges = $node->safe_psql('postgres', 'SELECT max(merges) FROM clients');
	finish_parallel($parallel, $what);
	my @errors = $parallel->{err} =~ /ERROR: .*/g;
	is(join("\n", grep { !/55000: hybridindex was updated/ } @errors), '', "$what: its parallel workers say why they fail");
	cmp_ok(scalar(@errors), '>', 0, "$what: and do");
	wait_for_rounds(20, "$what: sessions that were there go on");
	ok($node->poll_query_until('postgres', "SELECT max(merges) > $merges FROM clients"), "$what: and merge");

	if ($new eq 'reworded')
	{
		put($old);
		same_answers($node, "$what, then $old: answers", \%quiet, ['p']);
		ok($node->poll_query_until('postgres', $worker_starts), "$what, then $old: workers start again");
		put($new);
		is_refused("$what, then $old, then $new");
	}
	finish_clients($clients, $what);

	$node->stop;
	is(other_errors($log), '', "$what: no other error was logged");
	my @workers = substr(slurp_file($node->logfile), $log) =~ /LOG:  hybridindex was updated/g;
	cmp_ok(scalar(@workers), '<', 10, "$what: few workers were started in vain");
	$node->start;
	same_answers($node, "$what: answers after a restart", \%queries, [ 't', 'p' ]);
}

# ---- preloaded ----

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'hybridindex'");
$node->restart;
my $log = -s $node->logfile;
my ($clients, $parallel) = start_sessions('preloaded');
put('larger');
same_answers($node, 'preloaded: answers', \%quiet, ['p']);
my $merges = $node->safe_psql('postgres', 'SELECT max(merges) FROM clients');
finish_parallel($parallel, 'preloaded');
is($parallel->{err}, '', 'preloaded: parallel workers work');
ok($node->poll_query_until('postgres', "SELECT max(merges) > $merges FROM clients"), 'preloaded: merges go on');
ok($node->poll_query_until('postgres', $worker_starts), 'preloaded: workers start');
finish_clients($clients, 'preloaded');
unlike(substr(slurp_file($node->logfile), $log), qr/hybridindex was updated/, 'preloaded: nothing is refused');
is(other_errors($log), '', 'preloaded: no error was logged');
$node->restart;
same_answers($node, 'preloaded: answers after a restart', \%queries, [ 't', 'p' ]);

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
