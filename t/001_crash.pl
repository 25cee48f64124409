
# The server is stopped without a shutdown while it inserts, merges, vacuums and
# builds.  After recovery an index has what was committed, and a merge goes on where
# it was.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('crash', <<EOF);
hybridindex.merge_step_pages = 2
wal_consistency_checking = 'generic'
EOF

$node->safe_psql('postgres', <<EOF);
CREATE TABLE t (id int, k int8, s text COLLATE "C");
CREATE SEQUENCE ids;
CREATE UNIQUE INDEX t_id ON t USING hybrid (id);
CREATE INDEX t_k ON t USING hybrid (k);
CREATE INDEX t_s ON t USING hybrid (s, k DESC) INCLUDE (id);
CREATE INDEX t_f ON t USING hybrid (upper(s) text_hope_ops, id) WITH (filter = 'surf');
CREATE UNLOGGED TABLE u (k int);
CREATE INDEX u_k ON u USING hybrid (k);

CREATE PROCEDURE load(rounds int) LANGUAGE plpgsql AS \$\$
BEGIN
	FOR i IN 1 .. rounds LOOP
		INSERT INTO t SELECT nextval('ids'), floor((random() - 0.5) * 1e18)::int8, md5(random()::text) FROM generate_series(1, 150);
		INSERT INTO u SELECT i;
		IF i % 3 = 0 THEN
			UPDATE t SET k = k + 1, id = nextval('ids') WHERE id % 50 = i % 50;
		END IF;
		IF i % 5 = 0 THEN
			DELETE FROM t WHERE id % 20 = i % 20;
		END IF;
		COMMIT;
		IF i % 4 = 0 THEN
			INSERT INTO t SELECT nextval('ids'), i, 'rolled back' FROM generate_series(1, 50);
			ROLLBACK;
		END IF;
	END LOOP;
END \$\$;
EOF

my %queries = (
	'SELECT k, s FROM t WHERE id BETWEEN 100 AND 3000' => 'index bitmap',
	'SELECT id FROM t WHERE k > 0 AND k < 100000000000000000' => 'index bitmap',
	'SELECT id, s, k FROM t WHERE s >= \'a\' AND s < \'b\'' => 'index only bitmap',
	'SELECT id, k FROM t WHERE upper(s) >= \'A\' AND upper(s) < \'AB\'' => 'index bitmap',
	'SELECT k FROM t ORDER BY k' => 'order order_only',
	'SELECT id FROM t ORDER BY id DESC' => 'order order_only',
	'SELECT k FROM u WHERE k < 50' => 'index bitmap');
my $merge = "SELECT count(hybrid_merge(i)) FROM generate_series(1, 100), unnest('{t_id,t_k,t_s,t_f}'::regclass[]) i;\n";

# what runs beside the insertions when the server is stopped
my @scenarios = (
	[ 'insertions', '' ],
	[ 'background merges', 'SELECT pg_sleep(0.1);' ],
	[ 'merges in small steps', "SET hybridindex.merge_step_pages = 1;\n" . $merge x 50 ],
	[ 'VACUUM', "VACUUM t;\n" x 200 ],
	[ 'VACUUM and merges', ("VACUUM t;\n" . $merge) x 50 ],
	[ 'CREATE INDEX', "CREATE INDEX t_new ON t USING hybrid (s, id);\nDROP INDEX t_new;\n" x 100 ],
	[ 'REINDEX', "REINDEX INDEX t_s;\nREINDEX INDEX CONCURRENTLY t_k;\n" x 50 ],
	[ 'checkpoints', ("CHECKPOINT;\n" . $merge) x 50 ],
	# from here on without full page images, which make good what a record lacks
	[ 'merges without full page images', ($merge . "CHECKPOINT;\n") x 50 ],
	[ 'VACUUM without full page images', ("VACUUM t;\nCHECKPOINT;\n" . $merge) x 50 ]);

foreach my $scenario (@scenarios)
{
	my ($name, @script) = @$scenario;

	if ($name =~ /without full page images/)
	{
		$node->append_conf('postgresql.conf', "full_page_writes = off\nwal_consistency_checking = ''");
		$node->reload;
		$node->safe_psql('postgres', 'CHECKPOINT');
	}
	my @sessions = (start_psql($node, 'CALL load(2000);'));
	push @sessions, start_psql($node, @script) if "@script" ne '';
	usleep(300_000 + int(rand(700_000)));
	$node->stop('immediate');
	finish_psql($_) foreach @sessions;
	$node->start;
	$node->safe_psql('postgres', <<EOF);
DROP INDEX IF EXISTS t_new, t_k_ccnew, t_k_ccnew1, t_k_ccold;
EOF
	same_answers($node, "index agrees with its table after a crash in $name",
		\%queries, [ 't', 'u' ]);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM u'),
		'0', "unlogged table was reset after a crash in $name");
	$node->safe_psql('postgres', 'CALL load(10); SELECT count(hybrid_merge(i)) FROM unnest(\'{t_id,t_k,t_s,t_f}\'::regclass[]) i');
	same_answers($node, "work goes on after a crash in $name",
		\%queries, [ 't', 'u' ]);
}

# stopped twice in the same merge, then finished
is($node->safe_psql('postgres', 'SHOW full_page_writes'), 'off', 'the last crashes were without full page images');
$node->append_conf('postgresql.conf', <<EOF);
full_page_writes = on
wal_consistency_checking = 'generic'
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
EOF
$node->restart;
$node->safe_psql('postgres', 'CALL load(60)');
foreach my $again (1 .. 3)
{
	my $session = start_psql($node, "SET hybridindex.merge_step_pages = 1; SELECT hybrid_merge('t_s');");
	usleep(30_000 * $again);
	$node->stop('immediate');
	finish_psql($session);
	$node->start;
	same_answers($node, "index is right in the middle of a merge, $again",
		\%queries, ['t']);
}
$node->safe_psql('postgres', "SELECT hybrid_merge('t_s')");
is( $node->safe_psql('postgres', "SELECT dynamic_entries, merge_running FROM hybrid_index_stats('t_s')"),
	'0|f', 'the merge was finished');
same_answers($node, 'index is right after it', \%queries, ['t']);

# an orderly stop and start keeps everything too
$node->safe_psql('postgres', 'CALL load(5)');
$node->restart;
same_answers($node, 'index is right after a fast shutdown', \%queries,
	[ 't', 'u' ]);

no_crash($node, 'no process crashed by itself');
$node->stop;
done_testing();
