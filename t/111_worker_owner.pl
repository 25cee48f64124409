
# A merge worker runs comparison functions as the owner of the table, not as the
# inserter.  So do hybrid_merge and VACUUM, whichever role calls them.  The
# comparison function of this test reports its role and its search path.  Workers and
# our functions run it security restricted, with a safe path.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('owner', <<EOF);
hybridindex.merge_floor = 900
log_line_prefix = '%m [%p] %b '
EOF

$node->safe_psql('postgres', <<EOF);
CREATE ROLE table_owner;
CREATE ROLE inserter LOGIN;
CREATE FUNCTION telling_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \$\$
BEGIN
	RAISE LOG 'compared by %', current_user;
	RAISE LOG 'compared with path %', pg_catalog.current_setting('search_path');
	IF pg_catalog.current_setting('test.escape', true) = 'on' THEN
		PERFORM pg_catalog.set_config('role', 'none', false);
	END IF;
	RETURN CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END;
END \$\$;
CALL hyb_operator_class('telling');
CREATE TABLE t (k int);
CREATE INDEX t_k ON t USING hybrid (k telling_ops);
ALTER TABLE t OWNER TO table_owner;
GRANT SELECT, INSERT ON t TO inserter;
EOF

# Which roles compared in a kind of process, since some place of the server's log, and
# how often.
sub comparing
{
	my ($kind, $from, $what) = @_;
	my %who;

	$what //= 'by (\w+)';

	foreach (split /\n/, substr(slurp_file($node->logfile), $from))
	{
		$who{$1}++ if /\] \Q$kind\E LOG:  compared $what/;
	}
	note "$kind: " . join(', ', map { "$_ $who{$_} times" } sort keys %who);
	return join(' ', sort keys %who);
}

# They fill a page of the log, for which a worker is asked.  From 1350 entries on the
# inserter would merge, before the worker comes.
my $insert = 'INSERT INTO t SELECT hashint4(i) % 1000 FROM generate_series(1, 1100) i';
my $from = -s $node->logfile;
foreach my $round (1 .. 20)
{
	my $merges = $node->safe_psql('postgres', "SELECT merges FROM hybrid_index_stats('t_k')");
	$node->safe_psql('postgres', $insert, extra_params => [ '-U', 'inserter' ]);
	$node->poll_query_until('postgres', "SELECT merges > $merges AND NOT merge_running FROM hybrid_index_stats('t_k')") or last;
	last if comparing('hybrid merge worker', $from) ne '';
}
is(comparing('hybrid merge worker', $from), 'table_owner', 'a merge worker compares as the owner of the table');
is(comparing('hybrid merge worker', $from, 'with path (.*)'), 'pg_catalog, pg_temp', '... with a safe search path');

# a superuser merges, and removes rows
$node->safe_psql('postgres', 'INSERT INTO t SELECT i FROM generate_series(1, 100) i; DELETE FROM t WHERE k % 3 = 0');
$from = -s $node->logfile;
$node->safe_psql('postgres', "SELECT hybrid_merge('t_k')");
is(comparing('client backend', $from), 'table_owner', 'hybrid_merge compares as the owner of the table');
is(comparing('client backend', $from, 'with path (.*)'), 'pg_catalog, pg_temp', '... with a safe search path');
$from = -s $node->logfile;
$node->safe_psql('postgres', "SELECT hybrid_index_check('t_k', true)");
is(comparing('client backend', $from), 'table_owner', 'hybrid_index_check compares as the owner of the table');
is(comparing('client backend', $from, 'with path (.*)'), 'pg_catalog, pg_temp', '... with a safe search path');
$node->safe_psql('postgres', 'INSERT INTO t SELECT i FROM generate_series(1, 100) i');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE k = 50'),
	$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM t WHERE k = 50'), 'the index answers');
$node->safe_psql('postgres', 'DELETE FROM t WHERE k % 4 = 0; ALTER INDEX t_k SET (merge_ratio = 1000)');
$from = -s $node->logfile;
$node->safe_psql('postgres', 'SET hybridindex.background_merge = off; SET hybridindex.merge_floor = 1; VACUUM (INDEX_CLEANUP on) t');
is(comparing('client backend', $from), 'table_owner', 'VACUUM compares as the owner of the table');
$from = -s $node->logfile;
$node->safe_psql('postgres', 'REINDEX INDEX t_k');
is(comparing('client backend', $from), 'table_owner', 'REINDEX compares as the owner of the table');
is($node->safe_psql('postgres', "SELECT hyb_check('t')"), 't', 'the index is right');

# What the functions may not do: leave the owner.  Workers have the setting from
# the database.
$node->safe_psql('postgres', 'INSERT INTO t SELECT i FROM generate_series(1, 100) i');
$node->safe_psql('postgres', "ALTER DATABASE postgres SET test.escape = 'on'");
foreach my $function ("hybrid_merge('t_k')", "hybrid_index_check('t_k')")
{
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT $function");
	like($stderr, qr/cannot set parameter "role" within security-restricted operation/, "$function is restricted");
}
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker'");
$from = -s $node->logfile;
my $refused = 0;
foreach my $round (1 .. 200)
{
	$node->safe_psql('postgres', $insert) if $round % 20 == 1;
	$refused = substr(slurp_file($node->logfile), $from) =~ /\] hybrid merge worker ERROR:  cannot set parameter "role" within security-restricted operation/;
	last if $refused;
	usleep(100_000);
}
ok($refused, 'a merge worker is restricted');
$node->safe_psql('postgres', "ALTER DATABASE postgres RESET test.escape");
is($node->safe_psql('postgres', "SELECT hyb_check('t')"), 't', 'the index is right');

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
