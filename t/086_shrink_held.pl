
# VACUUM is held at each point of a cut between two changes of pages.  There it is
# killed, or fails, or the standby is promoted.  The index is right afterwards, all
# blocks are accounted for, and the next VACUUM finishes the cut.  Needs a server
# with injection points (./dev pg 18).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Shrinking;
use Test::More;

start_all();

if (!$points)
{
	$_->stop foreach $node, $standby;
	plan skip_all => 'this server has no injection points';
}
run($node, 'CREATE EXTENSION injection_points');

# ---- held, killed and failing at each point ----

# Insertions after the fault, where free blocks are few; and all is returned.
sub goes_on
{
	my ($after) = @_;
	run($node, 'SELECT fill(12000)');
	all_is_well("insertions after $after");
	run($node, 'DELETE FROM t WHERE random() < 0.6', 'VACUUM t', 'VACUUM t');
	is(value_of($node, "too_many FROM pages('t')"), '0', "what is left free after $after is returned");
	all_is_well("VACUUM after $after");
	return;
}

foreach my $point ('shrink-sifted', 'move-written', 'move-installed', 'shrink-moved', 'cut-begun', 'cut-made')
{
	grow();
	attach_point($node, $point);
	my $session = start_psql($node, 'VACUUM t;');
	my $pid = held_at($node, $point, $session);
	ok($pid, "VACUUM was held at $point") or diag $session->{err};
	if ($pid)
	{
		my $from = -s $node->logfile;
		run($node, 'SELECT txid_current()');
		kill 'KILL', $pid;
		finish_psql($session);
		wait_for_restart($node, $from);
	}
	all_is_well("killed at $point");
	goes_on("a kill at $point");

	grow();
	run($node, "SELECT injection_points_attach('hybrid-$point', 'error')");
	my ($ret, $out, $err) = $node->psql('postgres', 'VACUUM t');
	like($err, qr/error triggered for injection point hybrid-$point/, "an error at $point");
	run($node, "SELECT injection_points_detach('hybrid-$point')");
	all_is_well("after an error at $point");
	goes_on("an error at $point");
}

# ---- promotion between the records of a cut ----

grow();
attach_point($node, 'cut-begun');
my $vacuum = start_psql($node, 'VACUUM t;');
ok(held_at($node, 'cut-begun', $vacuum), 'VACUUM is held before it cuts');
run($node, 'SELECT txid_current()');
$node->wait_for_catchup($standby);
$node->stop('immediate');
finish_psql($vacuum);
$standby->promote;
same_answers($standby, 'after promotion', \%queries, ['t']);
$standby->safe_psql('postgres', 'SELECT fill(12000)');
same_answers($standby, 'insertions', \%queries, ['t']);
$standby->safe_psql('postgres', $_) foreach 'DELETE FROM t WHERE random() < 0.7', 'VACUUM t', 'VACUUM t';
is($standby->safe_psql('postgres', "SELECT too_many FROM pages('t')"), '0', 'what was to be cut off is returned');
same_answers($standby, 'answers on the standby are right', \%queries, ['t']);

end_all();
