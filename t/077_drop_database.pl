
# DROP DATABASE does not fail because of an idle merge worker, though something
# waits for a worker of another database that is slow to start.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('drop', <<EOF);
hybridindex.merge_floor = 1000
EOF
my $postmaster = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];

$node->safe_psql('postgres', 'CREATE TABLE t (k int8); CREATE INDEX t_k ON t USING hybrid (k); CREATE DATABASE gone');
$node->safe_psql('gone', 'CREATE EXTENSION hybridindex; CREATE TABLE t (k int8); CREATE INDEX t_k ON t USING hybrid (k)');

# The postmaster starts nothing while it is stopped.
my $session = start_psql($node, <<EOF);
\\c gone
INSERT INTO t SELECT hashint8(g) FROM generate_series(1, 5000) g;
DO \$\$
BEGIN
	WHILE (SELECT merges = 0 OR merge_running FROM hybrid_index_stats('t_k')) LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
END \$\$;
\\c postgres
\\! kill -STOP $postmaster
INSERT INTO t SELECT hashint8(g) FROM generate_series(1, 5000) g;
SELECT 'idle: ' || count(*) FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker' AND datname = 'gone';
DROP DATABASE gone;
EOF
my $dropped = finish_psql($session);
kill 'CONT', $postmaster;
ok($dropped, 'the database is dropped') or diag $session->{err};
like($session->{out}, qr/^idle: 1$/m, 'an idle worker was in it');
ok($node->poll_query_until('postgres', "SELECT merges > 0 AND NOT merge_running FROM hybrid_index_stats('t_k')"), 'the other database gets its worker');
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
