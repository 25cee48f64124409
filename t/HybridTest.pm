
# Shared by the TAP tests: a node with the extension and the differential
# helpers of test/sql/helpers.sql in its database postgres, and the checks.

package HybridTest;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(is_32_bit has_icu has_points need_points attach_point release_point leave_point wake_all new_node new_standby
  run value_of error_of stats merged index_file held_at no_worker wait_for wait_for_restart same_answers same_on_both
  wait_file start_psql start_pgbench finish_psql hide_access_method no_crash run_regress test_root neighbour $waits_for_pin);

# Of pg_stat_activity: VACUUM waits for another's pin on a page.  19 has another name.
our $waits_for_pin = "wait_event IN ('BufferPin', 'BufferCleanup')";

# A test that hangs fails, and the servers stop as after any other failure.  A second
# alarm follows, in case the first one was caught by an eval.
my $limit = $ENV{HYBRID_TEST_LIMIT} // 900;
$SIG{ALRM} = sub { alarm 60; die "time limit of $limit seconds (HYBRID_TEST_LIMIT) exceeded" };
alarm $limit;

# Databases get the collation of LANG, since the server's modules unset LC_ALL.  Tests
# expect that it does not order text as "C" does, by bytes.
$ENV{LANG} = 'C.UTF-8' if ($ENV{LANG} // 'C') =~ /^(?:C|POSIX|)$/;

my $root = dirname(dirname(abs_path(__FILE__)));

sub test_root { return $root; }

# A server of 32 bits passes int8 by reference.
sub is_32_bit { return $_[0]->safe_psql('postgres', "SELECT NOT typbyval FROM pg_type WHERE typname = 'int8'") eq 't'; }

sub has_icu { return $_[0]->safe_psql('postgres', "SELECT count(*) > 0 FROM pg_collation WHERE collname = 'en-x-icu'") eq 't'; }

# Can sessions be held at points (HYB_POINT)?
sub has_points { return $_[0]->safe_psql('postgres', "SELECT count(*) > 0 FROM pg_available_extensions WHERE name = 'injection_points'") eq 't'; }

# The whole test holds sessions: it is skipped where it cannot.
sub need_points
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'CREATE EXTENSION injection_points') if has_points($node);
	$node->stop;
	plan(skip_all => 'this server has no injection points');
	return;
}

# Sessions that come to a point are held there.
sub attach_point
{
	my ($node, $point) = @_;

	$node->safe_psql('postgres', "SELECT injection_points_attach('hybrid-$point', 'wait')");
	return;
}

# No session is to be held at a point any more, and the one that is held goes on.
sub release_point
{
	my ($node, $point) = @_;

	$node->safe_psql('postgres', "SELECT injection_points_detach('hybrid-$point'); SELECT injection_points_wakeup('hybrid-$point')");
	return;
}

# The same, whether one is held there or not.
sub leave_point
{
	my ($node, $point) = @_;

	$node->psql('postgres', "SELECT injection_points_detach('hybrid-$point'); SELECT injection_points_wakeup('hybrid-$point')");
	return;
}

# Wake all that are held at a point from which the hold was taken.  A call may wake the one
# that was woken before.
sub wake_all
{
	my ($node, $point) = @_;

	return $node->poll_query_until('postgres', "SELECT count(injection_points_wakeup('hybrid-$point')::text) = 0 FROM pg_stat_activity WHERE wait_event = 'hybrid-$point'");
}

# The library of test/neighbours/library, without ".so".  ./dev has compiled it, or we do;
# without a compiler the test is skipped.
sub neighbour
{
	my $library = "$root/test/neighbours/library/neighbour";
	my $pg_config = $ENV{PG_CONFIG} // 'pg_config';

	plan(skip_all => 'there is nothing to compile a library with')
	  if !-e "$library.so" && system("make -s -C '$root/test/neighbours/library' PG_CONFIG='$pg_config' with_llvm=no >/dev/null 2>&1") != 0;
	return $library;
}

# A started node; extra lines for postgresql.conf.  WAL is kept for standbys
# that are away while a primary that crashed starts again.
sub new_node
{
	my ($name, $conf, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	# some collations need it
	$node->init(%init, extra => [ '--encoding=UTF8', @{ $init{extra} // [] } ]);
	$node->append_conf('postgresql.conf', <<EOF . ($conf // ''));
autovacuum = off
fsync = off
max_worker_processes = 16
wal_keep_size = 512MB
log_line_prefix = '%m [%p] %q%a '
hybridindex.merge_floor = 500
hybridindex.quiet_time = -1
EOF
	$node->start;
	$node->safe_psql('postgres', slurp_file("$root/test/sql/helpers.sql"));
	return $node;
}

# A started standby that streams from the primary; extra lines for its
# postgresql.conf, beside those of the primary.
sub new_standby
{
	my ($primary, $name, $conf) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$primary->backup('base');
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', $conf // '');
	$standby->start;
	return $standby;
}

# Wait until the postmaster has restarted everything after the death of a
# process: it said so in the log since the given place, and takes sessions again.
# Until it has noticed that death, it would take them too.
sub wait_for_restart
{
	my ($node, $from) = @_;

	foreach (1 .. 1800)
	{
		if (substr(slurp_file($node->logfile), $from) =~ /all server processes terminated; reinitializing/)
		{
			# psql that cannot connect may be gone before it gets the query
			foreach (1 .. 100)
			{
				my $up = eval { $node->poll_query_until('postgres', 'SELECT true') };
				return $up if defined $up;
			}
		}
		select(undef, undef, undef, 0.1);
	}
	die 'the server did not restart';
}

# Run scripts, each in a session of its own; what the last one prints.
sub run
{
	my ($node, @scripts) = @_;
	my $out;

	$out = $node->safe_psql('postgres', $_) foreach @scripts;
	return $out;
}

# The value of an expression, or of several columns.
sub value_of { return run($_[0], "SELECT $_[1]"); }

# The error of a script that fails, or an empty string.
sub error_of
{
	my ($node, $script) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $script);

	return $ret == 0 ? '' : $err;
}

# The value of an expression over hybrid_index_stats.
sub stats
{
	my ($node, $index, $what) = @_;
	return value_of($node, "$what FROM hybrid_index_stats('$index')");
}

# A query: has an index been merged, with no merge of it under way?
sub merged { return "SELECT merges > 0 AND NOT merge_running FROM hybrid_index_stats('$_[0]')"; }

# The file of an index.
sub index_file
{
	my ($node, $index, $database) = @_;
	return $node->data_dir . '/' . $node->safe_psql($database // 'postgres', "SELECT pg_relation_filepath('$index')");
}

# Wait until a query, which may do something each time, says "t" in the end.
sub wait_for
{
	my ($node, $what, $query, $seconds) = @_;

	foreach (1 .. ($seconds // 30) * 10)
	{
		return 1 if run($node, $query) =~ /^t\z/m;
		select(undef, undef, undef, 0.1);
	}
	return fail("timed out waiting until $what");
}

# Merge workers end.
sub no_worker
{
	my ($node, $what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'hybrid merge worker'"), $what);
	return;
}

# Each query gives the same by the given paths as by a sequential scan, and
# the indexes of the tables pass the check.
sub same_answers
{
	my ($node, $what, $queries, $tables) = @_;
	my @bad;

	foreach my $query (sort keys %$queries)
	{
		my ($ret, $out, $err) = $node->psql('postgres',
			"SELECT hyb_same(\$q\$$query\$q\$, '$queries->{$query}')");
		push @bad, "$query: $out $err" if $ret != 0 || $out ne 't';
	}
	foreach my $table (@{ $tables // [] })
	{
		my ($ret, $out, $err) =
		  $node->psql('postgres', "SELECT hyb_check('$table')");
		push @bad, "hybrid_index_check on $table: $out $err"
		  if $ret != 0 || $out ne 't';
	}
	is(join("\n", @bad), '', $what);
	return @bad == 0;
}

# The same on a primary and, when that has caught up, on its standby.
sub same_on_both
{
	my ($primary, $standby, $what, $queries, $tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$primary->wait_for_catchup($standby);
	same_answers($primary, "primary: $what", $queries, $tables);
	same_answers($standby, "standby: $what", $queries, $tables);
	return;
}

# Wait until a session waits at a point; its pid, or nothing if it has ended.
sub held_at
{
	my ($node, $point, $session) = @_;

	foreach (1 .. 400)
	{
		my $pid = $node->safe_psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'InjectionPoint' AND wait_event = 'hybrid-$point'");
		return $pid if $pid ne '';
		eval { $session->{handle}->pump_nb };
		last unless $session->{handle}->pumpable;
		select(undef, undef, undef, 0.05);
	}
	return;
}

# Wait until a session's script has made a file.
sub wait_file
{
	my ($file) = @_;
	foreach (1 .. 600)
	{
		return if -e $file;
		select(undef, undef, undef, 0.05);
	}
	die "$file did not appear";
}

# A session in the background that runs a script, which may come in pieces; its
# output goes to the returned hash.
sub start_psql
{
	my ($node, @script) = @_;
	my %session = (out => '', err => '');
	my $file = PostgreSQL::Test::Utils::tempdir() . '/script.sql';

	# from a file: IPC::Run feeds a string only while the test pumps
	append_to_file($file, join('', @script));
	$session{handle} = IPC::Run::start(
		[
			'psql', '-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $file,
			'-d', $node->connstr('postgres')
		],
		'<', \undef, '>', \$session{out}, '2>', \$session{err});
	return \%session;
}

# The same of pgbench's clients, which all run that script.
sub start_pgbench
{
	my ($node, $script, @options) = @_;
	my %run = (out => '', err => '');
	my $file = PostgreSQL::Test::Utils::tempdir() . '/script.sql';

	append_to_file($file, $script);
	$run{handle} = IPC::Run::start([ 'pgbench', '-n', '-f', $file, @options, $node->connstr('postgres') ], '>', \$run{out}, '2>', \$run{err});
	return \%run;
}

# Wait for its end; true if it succeeded.
sub finish_psql
{
	my ($session) = @_;
	return IPC::Run::finish($session->{handle});
}

# The view of switching.md by which schema tools take hybrid indexes for btree ones.
# The extension is in the schema hybrid.
sub hide_access_method
{
	my ($node, $database) = @_;
	my ($recipe) = slurp_file("$root/docs/switching.md") =~ /^(CREATE VIEW hybridindex\.pg_am.*?)^```/ms;
	$recipe =~ s/\bhybridindex\b/hybrid/g;
	$recipe =~ s/ROLE migrations IN DATABASE shop/DATABASE $database/;
	$node->safe_psql($database, $recipe);
	return;
}

# No process of this node died of a signal or an assertion, and no page that was
# replayed differed from the primary's (where wal_consistency_checking is on).
sub no_crash
{
	my ($node, $what) = @_;
	my @lines = grep { /TRAP: |PANIC: |was terminated by signal (?!9)|inconsistent page/ }
	  split /\n/, slurp_file($node->logfile);
	is(join("\n", @lines), '', $what);
	return;
}

# Run regression tests (names in sql/) on a node, whose settings are to make no
# difference to what they print.  Returns the names of those that failed; the
# differences go to the log.
sub run_regress
{
	my ($node, @tests) = @_;
	my $out = $PostgreSQL::Test::Utils::tmp_check . '/regress_' . $node->name;
	my $log = '';

	# tests may have programs write to pipes that are not read to the end
	local $SIG{PIPE} = 'DEFAULT';
	mkdir $out;
	IPC::Run::run(
		[
			$ENV{PG_REGRESS}, '--bindir=', "--inputdir=$root", "--outputdir=$out",
			'--host=' . $node->host, '--port=' . $node->port, '--user=' . ($ENV{PGUSER} // getpwuid($<)),
			'--dbname=regress_' . $node->name, @tests
		],
		'>', \$log, '2>&1');
	my @failed = $log =~ /^(?:not ok \d+ +- |test )(\w+)\s+(?:\.\.\. FAILED|\d+ ms)/mg;
	my $ran = () = $log =~ /^(?:ok \d+ +- |not ok \d+ +- |test )\w+/mg;
	push @failed, "only $ran of " . @tests . ' tests ran' if $ran != @tests;
	if (@failed)
	{
		note $log;
		diag slurp_file("$out/regression.diffs") if -e "$out/regression.diffs";
	}
	return @failed;
}

1;
