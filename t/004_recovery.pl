
# The server recovers to moments inside a merge.  Base backups are taken under load,
# standbys cascade, one is promoted in the middle of a merge, and pg_rewind takes the
# old primary back.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $conf = <<EOF;
wal_log_hints = on
hot_standby_feedback = on
hybridindex.background_merge = off
hybridindex.merge_step_pages = 1
EOF
my $primary = new_node('primary', "${conf}hybridindex.merge_floor = 1000000\n",
	allows_streaming => 1, has_archiving => 1);
my $hot = $primary->pg_version < 16 ? 'hybrid' : 'hybrid_hot';
$primary->safe_psql('postgres', <<EOF);
CREATE TABLE t (id int, k int8, s text COLLATE "C", u int) WITH (fillfactor = 70);
CREATE UNIQUE INDEX t_id ON t USING hybrid (id);
CREATE INDEX t_k ON t USING hybrid (k) INCLUDE (id);
CREATE INDEX t_s ON t USING hybrid (s, k DESC);
CREATE INDEX t_f ON t USING hybrid (s text_hope_ops, id) WITH (filter = 'surf');
CREATE INDEX t_u ON t USING $hot (u);
CREATE SEQUENCE ids;
CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS \$\$
	INSERT INTO t SELECT nextval('ids'), floor((random() - 0.5) * 1e18)::int8, md5(random()::text), random() * 1000 FROM generate_series(1, n);
	UPDATE t SET u = random() * 1000 WHERE id % 31 = n % 31;
\$\$;
SELECT fill(8000);
SELECT hybrid_merge('t_id'), hybrid_merge('t_k'), hybrid_merge('t_s');
EOF
my %queries = (
	'SELECT s FROM t WHERE id BETWEEN 100 AND 3000' => 'index bitmap',
	'SELECT k, id FROM t WHERE k > 0' => 'index only bitmap',
	'SELECT id FROM t WHERE s >= \'a\' AND s < \'c\'' => 'index bitmap',
	'SELECT s, k FROM t ORDER BY s, k DESC' => 'order_only',
	'SELECT id FROM t WHERE u BETWEEN 200 AND 300' => 'index bitmap');
my $merge = "SELECT hybrid_merge('t_s'), hybrid_merge('t_k'), hybrid_merge('t_id'), hybrid_merge('t_f'), hybrid_merge('t_u');";

# ---- a backup under load, and targets inside merges ----
my @load = (start_psql($primary, "SELECT fill(300);\nDELETE FROM t WHERE id % 37 = (random() * 36)::int;\n" x 400),
	start_psql($primary, ($merge . "\nVACUUM t;\n") x 400));
$primary->backup('loaded');
my @targets = split /\n/, $primary->safe_psql('postgres', <<EOF);
CREATE TEMP TABLE target (lsn pg_lsn);
DO \$\$
DECLARE
	found int := 0;
BEGIN
	FOR try IN 1 .. 10000 LOOP
		IF (SELECT bool_or(merge_running) FROM unnest('{t_s,t_k,t_id,t_f,t_u}'::regclass[]) i, hybrid_index_stats(i)) THEN
			INSERT INTO target SELECT pg_current_wal_insert_lsn();
			found := found + 1;
			EXIT WHEN found = 3;
			PERFORM pg_sleep(0.1);
		END IF;
		PERFORM pg_sleep(0.001);
	END LOOP;
END \$\$;
SELECT lsn FROM target;
EOF
usleep(200_000);
$primary->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ 'fill|hybrid_merge|VACUUM' AND pid <> pg_backend_pid()");
foreach my $session (@load)
{
	finish_psql($session);
	note $session->{err};
}
# How many of these moments fall into a merge depends on the machine.  One more
# certainly does: the inserter does a single step, and no further insert follows.
push @targets, $primary->safe_psql('postgres', <<EOF);
SELECT hybrid_merge('t_k');
SET hybridindex.merge_floor = 100;
DO \$\$
BEGIN
	FOR i IN 1 .. 1000 LOOP
		EXIT WHEN (SELECT merge_running FROM hybrid_index_stats('t_k'));
		PERFORM fill(100);
	END LOOP;
END \$\$;
SELECT pg_current_wal_insert_lsn();
EOF
$targets[-1] =~ s/.*\n//s;
note scalar(@targets) . ' moments chosen';
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
same_answers($primary, 'primary after the load', \%queries, ['t']);

# Recovered servers begin timelines of their own, which must not get into the
# archive that the next one is recovered from.
my $n = 0;
my $in_merge = 0;
foreach my $target (@targets)
{
	my $node = PostgreSQL::Test::Cluster->new('pitr' . ++$n);
	$node->init_from_backup($primary, 'loaded', has_restoring => 1);
	$node->append_conf('postgresql.conf', "recovery_target_lsn = '$target'\nrecovery_target_action = 'promote'\nrecovery_target_timeline = 'current'\narchive_mode = off\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
	$in_merge += $node->safe_psql('postgres', "SELECT bool_or(merge_running)::int FROM unnest('{t_s,t_k,t_id,t_f,t_u}'::regclass[]) i, hybrid_index_stats(i)");
	same_answers($node, "recovered to moment $n", \%queries, ['t']);
	$node->safe_psql('postgres', "SELECT fill(500); DELETE FROM t WHERE id % 11 = 3; $merge");
	$node->safe_psql('postgres', 'VACUUM t');
	same_answers($node, "work goes on after moment $n", \%queries, ['t']);
	no_crash($node, "nothing crashed after moment $n");
	$node->stop;
}
cmp_ok($in_merge, '>', 0, "moments in the middle of a merge were recovered to ($in_merge)");

my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($primary, 'loaded', has_restoring => 1, standby => 0);
$copy->append_conf('postgresql.conf', "archive_mode = off\n");
$copy->start;
$copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
same_answers($copy, 'a base backup taken under load', \%queries, ['t']);
$copy->stop;

# ---- a cascade, promotion in the middle of a merge, rewind ----
my $standby = PostgreSQL::Test::Cluster->new('standby');
$primary->backup('base');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$standby->backup('cascade');
my $cascade = PostgreSQL::Test::Cluster->new('cascade');
$cascade->init_from_backup($standby, 'cascade', has_streaming => 1);
$cascade->append_conf('postgresql.conf', "recovery_target_timeline = 'latest'\n");
$cascade->start;

my $session = start_psql($primary, "SELECT fill(1000);\n$merge\n" x 500);
$primary->poll_query_until('postgres', "SELECT bool_or(merge_running) FROM unnest('{t_s,t_k,t_id,t_f,t_u}'::regclass[]) i, hybrid_index_stats(i)");
usleep(20_000);
$primary->stop('immediate');
finish_psql($session);
$standby->promote;
same_answers($standby, 'promoted in the middle of a merge', \%queries, ['t']);
$standby->safe_psql('postgres', "SELECT fill(1000); DELETE FROM t WHERE id % 5 = 2; $merge");
$standby->safe_psql('postgres', 'VACUUM t; SELECT fill(400)');
same_answers($standby, 'the new primary goes on', \%queries, ['t']);
$standby->wait_for_catchup($cascade);
same_answers($cascade, 'the standby of the standby follows', \%queries, ['t']);

# the old primary diverges, and is rewound; up to 15 pg_rewind reads the source's
# timeline from its last checkpoint
$standby->safe_psql('postgres', 'CHECKPOINT');
$primary->start;
$primary->safe_psql('postgres', "SELECT fill(500); $merge");
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = 1; VACUUM t; SELECT fill(100)');
same_answers($primary, 'the old primary on its own', \%queries, ['t']);
$primary->stop;
my $old_conf = slurp_file($primary->data_dir . '/postgresql.conf');
command_ok(
	[
		'pg_rewind', '--source-server', $standby->connstr('postgres'),
		'--target-pgdata', $primary->data_dir, '--no-sync'
	],
	'pg_rewind');
open(my $fh, '>', $primary->data_dir . '/postgresql.conf') or die;
print $fh $old_conf;
close($fh);
$primary->enable_streaming($standby);
$primary->append_conf('postgresql.conf', "archive_mode = off\n");
$primary->start;
$standby->safe_psql('postgres', "SELECT fill(300); $merge");
$standby->wait_for_catchup($primary);
same_answers($primary, 'the rewound primary as a standby', \%queries, ['t']);
same_answers($standby, 'the new primary', \%queries, ['t']);

foreach my $node ($primary, $standby, $cascade)
{
	no_crash($node, 'nothing crashed on ' . $node->name);
	$node->stop;
}
done_testing();
