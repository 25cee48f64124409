
# A table's primary key is converted, gets another layout, and is reverted again and
# again.  Meanwhile clients
# insert, update, upsert and look up, and foreign keys refer to the table.  No client
# sees an error, none waits for a relation's lock for 200 ms, and the constraints
# hold after each round.  HYBRID_ROWS and HYBRID_ROUNDS make it longer, as ./dev
# conversions does.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $rows = $ENV{HYBRID_ROWS} // 20000;
my $rounds = $ENV{HYBRID_ROUNDS} // 2;
my $node = new_node('load', <<EOF);
max_connections = 40
shared_buffers = 256MB
max_wal_size = 4GB
hybridindex.merge_floor = 5000
log_lock_waits = on
deadlock_timeout = '200ms'
EOF
if ($node->pg_version < 18)
{
	$node->append_conf('postgresql.conf', "session_preload_libraries = 'hybridindex'");
	$node->reload;
}
my $amcheck = $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'");

$node->safe_psql('postgres', <<EOF);
CREATE FUNCTION key(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS \$\$ SELECT md5(n::text)::uuid \$\$;
CREATE TABLE item (id uuid, n int NOT NULL, s text, CONSTRAINT item_pkey PRIMARY KEY (id));
INSERT INTO item SELECT key(i), i % 100, 'item ' || i FROM generate_series(1, $rows) i;
CREATE TABLE ref_1 (item uuid NOT NULL REFERENCES item, n int);
CREATE TABLE ref_2 (item uuid REFERENCES item ON DELETE CASCADE, n int);
CREATE TABLE ref_3 (item uuid REFERENCES item ON UPDATE CASCADE ON DELETE SET NULL, n int);
CREATE INDEX ON ref_1 (item);
CREATE INDEX ON ref_2 (item);
CREATE INDEX ON ref_3 (item);
CREATE SEQUENCE ids START 100000000;
VACUUM ANALYZE;
EOF
$node->safe_psql('postgres', 'CREATE EXTENSION amcheck') if $amcheck;

# Rows up to `rows` stay; those of another range come and go.  A broken promise
# is a division by zero, which ends the client.
my %scripts = (
	insert => <<'EOF',
SELECT nextval('ids') AS k \gset
BEGIN;
INSERT INTO item VALUES (key(:k::bigint), 0, 'new');
INSERT INTO ref_1 VALUES (key(:k::bigint), 1);
INSERT INTO ref_2 VALUES (key(:k::bigint), 1);
INSERT INTO ref_3 VALUES (key(:k::bigint), 1);
COMMIT;
SELECT 1 / (count(*) = 1)::int FROM item WHERE id = key(:k::bigint);
EOF
	update => <<'EOF',
\set k random(1, :rows)
UPDATE item SET n = n + 1 WHERE id = key(:k::bigint);
UPDATE item SET s = 'changed' WHERE id = key(:k::bigint + 1);
EOF
	upsert => <<'EOF',
\set k random(1, 100)
INSERT INTO item VALUES (key(0 - :k::bigint), 0, 'upserted') ON CONFLICT (id) DO UPDATE SET n = item.n + 1;
INSERT INTO item VALUES (key(-100 - :k::bigint), 0, 'upserted') ON CONFLICT DO NOTHING;
INSERT INTO item VALUES (key(-200 - :k::bigint), 0, 'upserted') ON CONFLICT ON CONSTRAINT item_pkey DO NOTHING;
DELETE FROM item WHERE id = key(0 - :k::bigint);
DELETE FROM item WHERE id = key(-100 - :k::bigint);
EOF
	refer => <<'EOF',
\set k random(1, :rows)
INSERT INTO ref_1 VALUES (key(:k::bigint), 2);
INSERT INTO ref_3 VALUES (key(:k::bigint), 2);
DELETE FROM ref_1 WHERE item = key(:k::bigint) AND n = 2;
EOF
	look => <<'EOF',
\set k random(1, :rows)
SELECT 1 / (count(*) = 1)::int FROM item WHERE id = key(:k::bigint);
SELECT 1 / (count(*) <= 2)::int FROM item WHERE id IN (key(:k::bigint), key(-1));
EOF
	cascade => <<'EOF');
SELECT nextval('ids') AS k \gset
INSERT INTO item VALUES (key(:k::bigint), 0, 'gone soon');
INSERT INTO ref_3 VALUES (key(:k::bigint), 3);
UPDATE item SET id = key(0 - :k::bigint) WHERE id = key(:k::bigint);
INSERT INTO ref_2 VALUES (key(0 - :k::bigint), 3);
SELECT 1 / (count(*) = 1)::int FROM ref_3 WHERE item = key(0 - :k::bigint);
DELETE FROM item WHERE id = key(0 - :k::bigint);
SELECT 1 / (count(*) = 0)::int FROM ref_2 WHERE item = key(0 - :k::bigint);
EOF

# Clients come and go, so that there are always some that know nothing of the
# library yet, and some that have prepared their statements long ago.
my $dir = PostgreSQL::Test::Utils::tempdir();
my @files;
foreach my $name (sort keys %scripts)
{
	append_to_file("$dir/$name.sql", $scripts{$name});
	push @files, '-f', "$dir/$name.sql";
}
my $loop = 'cd "$1"; shift; while [ ! -e stop ]; do "$@" >> out 2>> err || { touch failed; break; }; done';
my @clients = map
{
	my ($protocol, $seconds) = @$_;
	my $run = "$dir/$protocol";
	mkdir $run;
	my $handle = IPC::Run::start(
		[
			'sh', '-c', $loop, 'sh', $run, 'pgbench', '-n', '-c', 3, '-T', $seconds, '-M', $protocol, '-D', "rows=$rows", '-l', '--log-prefix=latency',
			@files, $node->connstr('postgres') . ' application_name=client'
		]);
	{ handle => $handle, dir => $run }
} ([ 'prepared', 10 ], [ 'simple', 2 ]);

sub check_constraints
{
	my ($what, $am) = @_;
	my $check = $am eq 'hybrid' ? "hybrid_index_check('item_pkey', true)" : $amcheck ? "bt_index_check('item_pkey', true)" : "''";
	my ($ret, $out, $err) = $node->psql('postgres', <<EOF);
SELECT amname, indisprimary, indisvalid FROM pg_class c JOIN pg_am a ON a.oid = relam JOIN pg_index ON indexrelid = c.oid WHERE c.oid = 'item_pkey'::regclass;
SELECT count(*) FROM pg_constraint WHERE conindid = 'item_pkey'::regclass;
SELECT count(*) FROM pg_index WHERE indrelid = 'item'::regclass AND NOT indisvalid;
SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
SELECT count(*) - count(DISTINCT id) FROM item;
SELECT count(*) FROM (SELECT item FROM ref_1 UNION ALL SELECT item FROM ref_2 UNION ALL SELECT item FROM ref_3) r
	WHERE item IS NOT NULL AND NOT EXISTS (SELECT FROM item WHERE id = r.item);
SELECT $check;
EOF
	is("$out$err", "$am|t|t\n4\n0\n0\n0\n", $what);
	return;
}

sleep 2;
foreach my $round (1 .. $rounds)
{
	foreach my $direction ([ 'convert', 'hybrid', '' ], [ 'convert', 'hybrid', ", layout => 'trie'" ], [ 'revert', 'btree', '' ])
	{
		my ($verb, $am, $layout) = @$direction;
		my $begin = time;
		my ($ret, $out, $err) = $node->psql('postgres', "CALL hybrid_${verb}_concurrently('item_pkey'$layout)");
		is($ret, 0, "$verb $round$layout") or diag $err;
		note sprintf('%s %d: %.1f s', $verb, $round, time - $begin);
		check_constraints("constraints after $verb $round", $am);
		sleep 1;
	}
	last if grep { -e "$_->{dir}/failed" } @clients;
}

my @latencies;
foreach my $client (@clients)
{
	append_to_file("$client->{dir}/stop", '');
	IPC::Run::finish($client->{handle});
	ok(!-e "$client->{dir}/failed", "no error in any client ($client->{dir})") or diag slurp_file("$client->{dir}/err");
	foreach my $file (glob "$client->{dir}/latency.*")
	{
		# client, transaction, microseconds, script, ...
		push @latencies, map { (split ' ')[2] } grep { /^\d/ } split /\n/, slurp_file($file);
	}
}
@latencies = sort { $a <=> $b } @latencies;
cmp_ok(scalar @latencies, '>', 100, 'clients did something');
diag sprintf('%d transactions; milliseconds: half %.1f, 99 %% %.1f, 99.9 %% %.1f, longest %.1f',
	scalar @latencies, map { $latencies[ int($_ * $#latencies) ] / 1000 } (0.5, 0.99, 0.999, 1));

# Clients wait for each other's rows, too, but for no relation.
my @waits = grep { / client LOG: .*still waiting for \w+ on (?:relation|extension|page)/ } split /\n/, slurp_file($node->logfile);
is(join("\n", @waits), '', 'no client waited for a lock of a relation for 200 ms');
check_constraints('constraints in the end', 'btree');
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
