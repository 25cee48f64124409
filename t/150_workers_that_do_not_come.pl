
# Places of workers that never come go to others, and workers end when nothing is left
# to do, whatever several sessions have asked for at once.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

$PostgreSQL::Test::Utils::timeout_default = 40;
my $neighbour = neighbour();
my $libdir = `pg_config --pkglibdir` =~ s/\n//r;
my $place = PostgreSQL::Test::Utils::tempdir();
my $node = new_node('late', '');

# The library that workers find.  Sessions find those that the server has.
$ENV{PGOPTIONS} = '-c dynamic_library_path=$libdir';

sub put
{
	my ($file) = @_;
	unlink "$place/hybridindex.so";
	system("cp '$file' '$place/new' && chmod 755 '$place/new' && mv '$place/new' '$place/hybridindex.so'") == 0
	  or die "could not install $file";
	return;
}

# Fill pages of the log: a full page asks for a worker.  A session merges nothing itself
# of so few entries, unless no worker can come.
sub ask
{
	my ($db, $table) = @_;
	$node->safe_psql($db, "INSERT INTO $table SELECT repeat(md5(g::text), 3) FROM generate_series(1, 550) g");
	return;
}

# Ask once more.
sub ask_again
{
	my ($db, $table) = @_;
	$node->safe_psql($db, "VACUUM $table");
	return;
}

sub is_merged
{
	my ($db, $table, $what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($node->poll_query_until($db, "SELECT merges > 0 AND NOT merge_running AND dynamic_entries < 500 FROM hybrid_index_stats('${table}_k')"), $what);
}

SKIP:
{
	skip 'NOT TESTED: workers that come late, since this server has no injection points that can be asked', 1
	  if !has_points($node) || $node->pg_version < 18;
	run($node, 'CREATE EXTENSION injection_points');
	run($node, 'CREATE DATABASE other');
	$node->safe_psql('other', 'CREATE EXTENSION hybridindex');
	foreach my $db ('postgres', 'other')
	{
		$node->safe_psql($db, "CREATE TABLE $_ (k text COLLATE \"C\"); CREATE INDEX ${_}_k ON $_ USING hybrid (k)") foreach 'gone', 'away';
	}

	$node->append_conf('postgresql.conf', "dynamic_library_path = '$place'");
	$node->reload;
	$node->wait_for_log(qr/parameter "dynamic_library_path" changed/);

	# two processes that end at once, and do not come again
	put("$neighbour.so");
	ask($_, 'gone') foreach 'postgres', 'other';
	put("$libdir/hybridindex.so");
	# the limit is a second from here on
	run($node, "SELECT injection_points_attach('hybrid-late-workers', 'notice')", 'SELECT pg_sleep(1.1)');
	ask_again($_, 'gone') foreach 'postgres', 'other';
	is_merged($_, 'gone', "$_: workers that never came have their places taken") foreach 'postgres', 'other';

	# two processes that cannot start, others in their places, and then all of them
	no_worker($node, 'no worker is left');
	unlink "$place/hybridindex.so";
	my $from = -s $node->logfile;
	ask($_, 'away') foreach 'postgres', 'other';
	$node->wait_for_log(qr/could not access file "hybridindex".*could not access file "hybridindex"/s, $from);
	run($node, 'SELECT pg_sleep(1.1)');
	ask_again($_, 'away') foreach 'postgres', 'other';
	put("$libdir/hybridindex.so");
	is_merged($_, 'away', "$_: workers that could not start for long") foreach 'postgres', 'other';
	no_worker($node, 'all of them end');
}

# ---- two merges of one index ----

SKIP:
{
	skip 'NOT TESTED: a merge that is held between two steps, since this server has no injection points', 1 if !has_points($node);
	run($node, 'CREATE EXTENSION IF NOT EXISTS injection_points');
	# few leaves, so that they are not joined, which would be another merge
	foreach my $steps (1, 2)
	{
		run($node, join ";\n", 'SET hybridindex.background_merge = off', 'SET hybridindex.test_levels = 2', 'SET hybridindex.merge_floor = 100',
			'DROP TABLE IF EXISTS m', 'CREATE TABLE m (k text COLLATE "C") WITH (autovacuum_enabled = off)', 'CREATE INDEX m_k ON m USING hybrid (k)',
			map { "INSERT INTO m SELECT md5((g + $_)::text) FROM generate_series(1, 300) g" } 0, 10000, 20000);
		is(run($node, "SELECT levels, leaf_pages < 8 FROM hybrid_index_stats('m_k')"), '2|t', "$steps: an index has two levels");
		my $first = start_psql($node, <<'EOF');
SET hybridindex.merge_step_pages = 1;
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-merge-between', 'wait');
SELECT hybrid_merge('m_k');
EOF
		ok(held_at($node, 'merge-between', $first), "$steps: a merge is held between two steps") or diag $first->{err};
		foreach (2 .. $steps)
		{
			run($node, "SELECT injection_points_wakeup('hybrid-merge-between')", 'SELECT pg_sleep(0.1)');
			held_at($node, 'merge-between', $first);
		}
		run($node, "SELECT hybrid_merge('m_k')");
		release_point($node, 'merge-between');
		ok(finish_psql($first), "$steps: it goes on when another one has merged all") or diag $first->{err};
		run($node, 'VACUUM m');
		# when a worker has merged another index, it has looked at this one
		run($node, "CREATE TABLE after$steps (k text COLLATE \"C\")", "CREATE INDEX after${steps}_k ON after$steps USING hybrid (k)");
		ask('postgres', "after$steps");
		is_merged('postgres', "after$steps", "$steps: another index is merged");
		no_worker($node, "$steps: no worker is busy");
		is(run($node, "SELECT levels, dynamic_entries FROM hybrid_index_stats('m_k')"), '1|0', "$steps: all is merged");
	}
	same_answers($node, 'all answers', { "SELECT k FROM m WHERE k < '1'" => 'index only bitmap' }, ['m']);
}
no_crash($node, 'no crash');
$node->stop;
done_testing();
