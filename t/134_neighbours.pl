
# What test/neighbours asks of other extensions can be asked on this server, and under
# the setting a statement sends each message of the parser once.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('neighbours', "hybridindex.replace_btree = on\nlog_min_messages = notice\n");

$node->safe_psql('postgres', slurp_file(test_root() . '/test/neighbours/orders.sql') =~ s{\\g /dev/null}{;}r);
is($node->safe_psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT neighbours_agree('orders'); COMMIT"), '', 'indexes agree with the table');


# A name that is too long: how often does a session say so?
my $long = 'x' x 70;
foreach my $when ('the first statement of a session', 'the library is loaded')
{
	foreach my $statement (
		"CREATE TABLE t (a int, s text, CONSTRAINT $long EXCLUDE (a WITH =))",
		"ALTER TABLE t DROP CONSTRAINT x" . 'x' x 62 . ", ADD CONSTRAINT \"$long\" EXCLUDE USING btree (a WITH =)",
		"DROP TABLE t; CREATE TABLE $long (a int, s text)",
		"CREATE INDEX ON \"$long\" (a)",
		"CREATE INDEX ON $long USING btree (a) WHERE s <> 'a'",
		"CREATE INDEX i$long ON x" . 'x' x 62 . " (a, s)",
		"DROP TABLE $long")
	{
		my $from = -s $node->logfile;
		my ($ret, undef, $err) = $node->psql('postgres', $statement);
		my $logged = () = slurp_file($node->logfile, $from) =~ /NOTICE:  identifier/g;
		is("$ret " . (() = $err =~ /NOTICE:  identifier "i?x{70}" will be truncated/g) . " $logged", '0 1 1', "$when: " . substr($statement, 0, 40));
	}
	$node->safe_psql('postgres', "ALTER DATABASE postgres SET session_preload_libraries = 'hybridindex'");
}
is($node->safe_psql('postgres', 'SHOW client_min_messages') . ' ' . $node->safe_psql('postgres', 'CREATE TABLE t (a int); CREATE INDEX ON t (a); SHOW log_min_messages'),
	'notice notice', 'settings are as they were');

$node->stop;
done_testing();
