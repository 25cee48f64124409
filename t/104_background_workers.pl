
# Background workers do not read session_preload_libraries.  Before 18 this has two
# effects, until the library is in shared_preload_libraries:
# * An upsert without a target on a unique hybrid index fails if it is the first
#   statement of such a worker.
# * A subscription whose trigger runs such an upsert stops.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = new_node('publisher', '', allows_streaming => 'logical');
my $subscriber = new_node('subscriber', "session_preload_libraries = 'hybridindex'\nwal_retrieve_retry_interval = 200ms\n");
my $version = int($subscriber->pg_version);

foreach my $node ($publisher, $subscriber)
{
	$node->safe_psql('postgres', 'CREATE TABLE s (k int, v int)');
}
$subscriber->safe_psql('postgres', <<'EOF');
CREATE TABLE seen (v int NOT NULL);
CREATE UNIQUE INDEX seen_v ON seen USING hybrid (v);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO public.seen VALUES (NEW.v) ON CONFLICT DO NOTHING;
	RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT ON s FOR EACH ROW EXECUTE FUNCTION note();
ALTER TABLE s ENABLE ALWAYS TRIGGER note;
EOF
my $connstr = $publisher->connstr('postgres');
$publisher->safe_psql('postgres', 'CREATE PUBLICATION pub FOR TABLE s');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION \$c\$$connstr\$c\$ PUBLICATION pub");
$subscriber->wait_for_subscription_sync($publisher, 'sub');
my $from = -s $subscriber->logfile;

$publisher->safe_psql('postgres', 'INSERT INTO s SELECT i, i % 10 FROM generate_series(1, 100) i');
if ($version < 18)
{
	# it starts anew, and fails again
	my $error = qr/ERROR:  the library "hybridindex", .* was loaded too late\n.*\n.*HINT:  Add "hybridindex" to "shared_preload_libraries" and restart the server/;
	my $log = '';
	foreach (1 .. 300)
	{
		$log = substr(slurp_file($subscriber->logfile), $from);
		last if $log =~ /$error.*$error/s;
		select(undef, undef, undef, 0.1);
	}
	like($log, qr/$error.*$error/s, 'the subscription stops, with a hint');
	is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM seen'), '0', 'before the first row');
	$subscriber->append_conf('postgresql.conf', "shared_preload_libraries = 'hybridindex'");
	$subscriber->restart;
}
$publisher->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', 'SELECT count(*), sum(v) FROM seen'), '10|45', 'the trigger has noted each value once');
is($subscriber->safe_psql('postgres', "SELECT hyb_check('seen')"), 't', "the subscriber's index is right");

no_crash($subscriber, 'nothing crashed');
$subscriber->stop;
$publisher->stop;
done_testing();
