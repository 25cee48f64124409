
# Comparing rows needs the row type's table: a comparison waits while another
# transaction has that table locked, unless the session knows the type already.  It
# waits as any statement does, so it can be cancelled.  It holds nothing meanwhile that
# the transaction with the table waits for when it comes to the index, nor VACUUM.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('impure', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
EOF

# How many sessions of that name are there, waiting for a lock or not?
sub sessions
{
	my ($name, $more) = @_;
	return "SELECT count(*) FROM pg_stat_activity WHERE application_name = '$name' " . ($more // '');
}

$node->safe_psql('postgres', <<EOF);
CREATE TABLE part (a int, b int);
CREATE TYPE part_range AS RANGE (subtype = part);
CREATE DOMAIN part_domain AS part;
EOF

my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
my $seek = 'SELECT v FROM t WHERE k = (SELECT k FROM one)';
my $merge = "SELECT hybrid_merge('t_k') > 0";
my $lock = 'LOCK TABLE part';

# A kind of key, where its entries are, what locks the table, and what is done.
foreach my $case (
	[ 'ROW(i, i)::part', 'log', $lock, $seek ],
	[ 'ROW(i, i)::part', 'leaves', 'TRUNCATE part', $seek ],
	[ 'ROW(i, i)::part', 'log', $lock, 'INSERT INTO t SELECT k, 0 FROM one' ],
	[ 'ROW(i, i)::part', 'leaves', $lock, 'INSERT INTO t SELECT k, 0 FROM one' ],
	[ 'ROW(i, i)::part', 'log', $lock, $merge ],
	[ 'ARRAY[ROW(i, i)::part]', 'leaves', $lock, $seek ],
	[ 'part_range(ROW(i, i)::part, NULL)', 'log', $lock, $seek ],
	[ 'ROW(i, i)::part::part_domain', 'leaves', $lock, $seek ])
{
	my ($key, $where, $locks, $query) = @$case;
	my $what = "$key in the $where, $locks, $query";
	my $unique = $query =~ /^INSERT/ ? 'UNIQUE' : '';

	# two merges would be a deadlock that the server finds
	my $warm = $query eq $merge ? 'seek' : 'query';
	my $own = $query eq $merge ? $seek : $query;
	my $dir = PostgreSQL::Test::Utils::tempdir();

	$node->safe_psql('postgres', $_)
	  foreach (
		'DROP TABLE IF EXISTS t, one',
		"CREATE TABLE t AS SELECT $key AS k, i AS v FROM generate_series(1, 0) i",
		"CREATE $unique INDEX t_k ON t USING hybrid (k)",
		"INSERT INTO t SELECT $key, i FROM generate_series(1, 600) i",
		'CREATE TABLE one AS SELECT k FROM t WHERE v = 20',
		'DELETE FROM t WHERE v > 500',
		$where eq 'log' ? () : $merge);
	$node->safe_psql('postgres', 'DELETE FROM t WHERE v = 20; VACUUM t') if $unique;

	# sessions that have used the index, and have forgotten the type
	my %session;
	foreach my $name ('timed', 'waiting')
	{
		my $timeout = $name eq 'timed' ? '300ms' : '0';
		$session{$name} = start_psql($node, <<EOF);
SET application_name = $name;
$settings
PREPARE seek AS $seek;
PREPARE query AS $query;
EXECUTE seek;
BEGIN;
EXECUTE $warm;
ROLLBACK;
\\! touch $dir/$name
\\! for i in \$(seq 600); do [ -e $dir/locked ] && break; sleep 0.05; done
SET statement_timeout = '$timeout';
EXECUTE query;
EOF
		wait_file("$dir/$name");
	}
	$node->safe_psql('postgres', 'ALTER TABLE part SET (fillfactor = 80)');
	my $holder = start_psql($node, <<EOF);
BEGIN;
$locks;
\\! touch $dir/locked
\\! for i in \$(seq 600); do [ -e $dir/waits ] && break; sleep 0.05; done
$settings
$own;
\\! touch $dir/read
\\! for i in \$(seq 600); do [ -e $dir/done ] && break; sleep 0.05; done
ROLLBACK;
EOF
	wait_for($node, "the timeout ends: $what", sessions('timed', 'HAVING count(*) = 0') =~ s/count\(\*\)/true/r)
	  or $node->stop('immediate'), last;
	finish_psql($session{timed});
	like($session{timed}->{err}, qr/canceling statement due to statement timeout/, "a timeout ends the wait: $what");
	wait_for($node, "a session waits: $what", sessions('waiting', "AND wait_event_type = 'Lock' HAVING count(*) = 1") =~ s/count\(\*\)/true/r)
	  or $node->stop('immediate'), last;

	# the transaction that it waits for comes to the index, too
	append_to_file("$dir/waits", '');
	wait_file("$dir/read");
	is($node->psql('postgres', "SET statement_timeout = '20s'; VACUUM (INDEX_CLEANUP on) t"), 0, "VACUUM goes by: $what")
	  if $where eq 'log' && $query eq $seek;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'waiting'");
	finish_psql($session{waiting});
	append_to_file("$dir/done", '');
	ok(finish_psql($holder), "the transaction is not held up: $what") or diag $holder->{err};
	is($node->safe_psql('postgres', "$settings SELECT count(*) FROM ($seek) q"), $unique ? 0 : 1, "the answer is right: $what");
	is($node->safe_psql('postgres', "SELECT hyb_check('t')"), 't', "the index is sound: $what");
}

# Each session has a tree of its own of such a log, so the log is merged before it is
# long: 1 MB, as memory for shared trees is 64 MB.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE much (k part, n int, pad text);
CREATE INDEX much_k ON much USING hybrid (k) INCLUDE (pad);
CREATE INDEX much_n ON much USING hybrid (n) INCLUDE (pad);
INSERT INTO much SELECT ROW(i, i)::part, i, md5(i::text) || md5(i::text) FROM generate_series(1, 20000) i;
EOF
is($node->safe_psql('postgres', "SELECT merges > 0 FROM hybrid_index_stats('much_k')"), 't', 'the log of such an index is merged early');
is($node->safe_psql('postgres', "SELECT merges FROM hybrid_index_stats('much_n')"), '0', 'others are not');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
