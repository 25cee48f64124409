
# A comparison function fails, once in each place that compares.  What the session
# does next goes well, and other sessions with it: a read, an insert, a VACUUM.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('failing', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.merge_step_pages = 1
EOF

# The function counts its calls in the session, and fails at one of them.
$node->safe_psql('postgres', <<'SQLEOF');
CREATE FUNCTION fail_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	n int := current_setting('fail.calls')::int;
BEGIN
	IF n > 0 THEN
		IF n = 1 THEN
			RAISE EXCEPTION 'failed';
		END IF;
		PERFORM set_config('fail.calls', (n - 1)::text, false);
	END IF;
	RETURN btint4cmp(a, b);
END $$;
ALTER DATABASE postgres SET fail.calls = 0;
CALL hyb_operator_class('fail');
SQLEOF

# Where keys lie, and what compares them there.
my $load = "INSERT INTO t SELECT i * 7 % 151, repeat(md5(i::text), 2) FROM generate_series(1, 150) i;";
my $index = 'CREATE UNIQUE INDEX t_k ON t USING hybrid (k fail_ops) INCLUDE (pad);';
my %states = (
	log => "$index $load",
	leaves => "$load $index",
	both => "$load $index INSERT INTO t SELECT k + 300, pad FROM t WHERE k % 5 = 0;");
my @works = (
	'SELECT count(*) FROM t WHERE k BETWEEN 30 AND 40',
	'SELECT k FROM t WHERE k > 100 ORDER BY k DESC LIMIT 3',
	'INSERT INTO t VALUES (5000)',
	'INSERT INTO t VALUES (50)',
	'UPDATE t SET k = k + 1000 WHERE k IN (7, 305)',
	"SELECT hybrid_merge('t_k')",
	"SELECT hybrid_index_check('t_k', true)",
	'VACUUM (INDEX_CLEANUP on) t',
	'REINDEX INDEX t_k');

my $failures = 0;
foreach my $state (sort keys %states)
{
	my $script = <<SQLEOF;
\\set ON_ERROR_STOP 0
SET client_min_messages = error;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE t ();
SQLEOF
	foreach my $work (@works)
	{
		# the first calls one by one, the others ever farther apart, up to the last one
		$script .= "\\set failed true\n";
		for (my $at = 1; $at < 5000; $at = int($at * 2.2) + 1)
		{
			$script .= <<SQLEOF;
\\if :failed
DROP TABLE t;
CREATE TABLE t (k int, pad text) WITH (autovacuum_enabled = off);
$states{$state}
DELETE FROM t WHERE k % 10 = 3;
SET fail.calls = $at;
\\o /dev/null
$work;
\\set failed :ERROR
\\o
SET fail.calls = 0;
SELECT :'failed';
SELECT 'wrong: ' || k FROM t WHERE k BETWEEN 31 AND 40 AND k % 10 = 3;
SELECT 'wrong number' WHERE (SELECT count(*) FROM t WHERE k BETWEEN 31 AND 40) <> 9;
INSERT INTO t VALUES (-$at);
VACUUM (INDEX_CLEANUP on) t;
SELECT 'wrong: no key' WHERE (SELECT count(*) FROM t WHERE k = -$at) <> 1;
SELECT 'wrong: the check' WHERE NOT hyb_check('t');
\\endif
SQLEOF
		}
	}
	my $session = start_psql($node, $script);
	finish_psql($session);
	$failures += () = $session->{out} =~ /^true$/mg;
	is($session->{out} =~ s/^(true|false)\n//mgr, '', "$state: what follows is right");
	my @errors = grep { /ERROR: / && !/ERROR:  (failed$|duplicate key value )/ } split /\n/, $session->{err};
	is("@errors", '', "$state: there are no other errors");
	$node->safe_psql('postgres', 'DROP TABLE t');
}
cmp_ok($failures, '>', 60, 'functions failed in many places');
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
