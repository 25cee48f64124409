
# Shared by the tests of files that shrink: a primary whose table t has indexes
# of several kinds, and a standby.

package Shrinking;

use strict;
use warnings;

use Exporter 'import';
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw($node $standby $points %queries start_all all_is_well grow end_all);

our ($node, $standby, $points);

our %queries = (
	'SELECT s FROM t WHERE id BETWEEN 100 AND 90000' => 'index bitmap',
	'SELECT s, id FROM t ORDER BY s' => 'order_only',
	"SELECT id FROM t WHERE s > 'd' AND s < 'e'" => 'index bitmap',
	'SELECT n FROM t ORDER BY n DESC' => 'order order_only');

# The servers.
sub start_all
{
	# VACUUM by several processes leaves files to a worker
	$node = new_node('shrink', <<EOF, allows_streaming => 1);
max_parallel_maintenance_workers = 0
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
wal_consistency_checking = 'generic'
restart_after_crash = on
EOF
	$standby = new_standby($node, 'shrink_standby', 'max_standby_streaming_delay = -1');

	$points = has_points($node);
	$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (id int, s text COLLATE "C", n numeric);
CREATE UNIQUE INDEX t_id ON t USING hybrid (id) INCLUDE (s);
CREATE INDEX t_s ON t USING hybrid (s) INCLUDE (id) WITH (filter = 'surf');
CREATE INDEX t_n ON t USING hybrid (n, s);
CREATE SEQUENCE ids;
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT id, md5(id::text), hashint4(id::int) FROM (SELECT nextval('ids') AS id FROM generate_series(1, n)) i
\$\$;
CREATE FUNCTION merge() RETURNS bigint LANGUAGE sql AS \$\$
	SELECT hybrid_merge('t_id') + hybrid_merge('t_s') + hybrid_merge('t_n')
\$\$;
-- pages of all indexes of a table that are in use, and free ones that are too many
CREATE FUNCTION pages(rel regclass, OUT used bigint, OUT too_many bigint) LANGUAGE sql AS \$\$
	SELECT sum(total_pages - free_pages), sum(greatest(free_pages - greatest(total_pages / 3, 64), 0))
	FROM pg_index, hybrid_index_stats(indexrelid) WHERE indrelid = rel
\$\$;
CREATE FUNCTION size(rel regclass) RETURNS bigint LANGUAGE sql AS \$\$
	SELECT sum(pg_relation_size(indexrelid) / 8192) FROM pg_index WHERE indrelid = rel
\$\$;
EOF
	return;
}

# Everything is right, here and on the standby, and the files are as long.
sub all_is_well
{
	my ($what) = @_;
	same_on_both($node, $standby, $what, \%queries, ['t']);
	is($standby->safe_psql('postgres', "SELECT size('t')"), value_of($node, "size('t')"), "$what: the standby's files are as long");
	return;
}

# Rows in all of the files, of which few are left, and none removed yet.
sub grow
{
	my ($rows) = @_;
	run($node, 'SELECT fill(' . ($rows // 30000) . ')', 'SELECT merge()', 'DELETE FROM t WHERE random() < 0.95');
	return;
}

# Nothing went wrong unnoticed.
sub end_all
{
	foreach my $server ($node, $standby)
	{
		no_crash($server, 'nothing crashed by itself, replayed pages were consistent');
		$server->stop if -e $server->data_dir . '/postmaster.pid';
	}
	done_testing();
	return;
}

1;
