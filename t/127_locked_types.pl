
# Workers, views and VACUUM wait for no lock that another session chooses to hold on
# what comparing keys needs: a row type's table, or a table that a function reads.
# Workers and views do not wait for tables and indexes either.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

$PostgreSQL::Test::Utils::timeout_default = 30;
my $node = new_node('locked', <<CONF);
hybridindex.max_merge_workers = 1
hybridindex.merge_floor = 100
hybridindex.log_merge_min_duration = 0
CONF

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE row_type (a int, b text);
CREATE TABLE looked_up (n int);
INSERT INTO looked_up VALUES (1);
CREATE FUNCTION looking_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN (SELECT n * btint4cmp(a, b) FROM public.looked_up);
END $$;
CREATE OPERATOR CLASS looking_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 looking_cmp(int, int);
CREATE TABLE rows (k row_type) WITH (autovacuum_enabled = off);
CREATE INDEX rows_k ON rows USING hybrid (k);
CREATE INDEX rows_btree ON rows (k);
CREATE TABLE ints (k int) WITH (autovacuum_enabled = off);
CREATE INDEX ints_k ON ints USING hybrid (k looking_ops);
CREATE TABLE other (k int) WITH (autovacuum_enabled = off);
CREATE INDEX other_k ON other USING hybrid (k);
CREATE PROCEDURE fill(first int, n int) LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO rows SELECT ROW(i, i::text)::row_type FROM generate_series(first, first + n - 1) i;
	INSERT INTO ints SELECT generate_series(first, first + n - 1);
END $$;
SQL

# Wait until a worker has merged the index; inserts into the table meanwhile.
sub merged_by_worker
{
	my ($index, $table, $what, $from) = @_;
	my $found = 0;

	for (my $i = 0; $i < 200 && !$found; $i++)
	{
		$node->safe_psql('postgres', "INSERT INTO $table SELECT generate_series(1, 1000)") if $table;
		usleep(100_000);
		$found = substr(slurp_file($node->logfile), $from) =~ /merge of hybrid index "postgres.public.$index"/;
	}
	ok($found, $what);
	return;
}

my $n = 0;
my %reached = ('rows' => 'rows_k', 'row_type' => 'rows_k', 'ints' => 'ints_k', 'looked_up' => 'ints_k');
foreach my $relation (sort keys %reached)
{
	my $index = $reached{$relation};
	my $begun = -s $node->logfile;
	my $holder = $node->background_psql('postgres', on_error_stop => 1);

	# what it fills is merged later, and leaves a part of a merge behind for a view
	$holder->query_safe("SET hybridindex.merge_floor = 1000000; CALL fill($n, 3000)");
	$node->safe_psql('postgres', 'DELETE FROM rows WHERE (k).a % 10 > 0; DELETE FROM ints WHERE k % 10 > 0');
	$holder->query_safe("BEGIN; LOCK TABLE $relation IN ACCESS EXCLUSIVE MODE; RESET hybridindex.merge_floor; CALL fill($n + 3000, 3000)");
	foreach my $round (1, 2)
	{
		merged_by_worker('other_k', 'other', "$relation is locked: another index is merged, $round", -s $node->logfile);
	}
	foreach my $view ('hybrid_indexes', 'hybrid_advice', "hybrid_index_stats('$index', true)", "hybrid_estimate('rows_btree', true)", "hybrid_advise('rows_btree')")
	{
		my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '5s'; SELECT count(*) FROM (SELECT * FROM $view OFFSET 0) v");
		is($err, '', "$relation is locked: $view waits for no lock");
	}
	foreach my $table (grep { $_ ne $relation } 'rows', 'ints')
	{
		my ($ret, $out, $err) = $node->psql('postgres', "SET statement_timeout = '10s'; VACUUM (FREEZE, INDEX_CLEANUP on, TRUNCATE off) $table");
		is($err, '', "$relation is locked: VACUUM of $table");
	}
	$holder->query_safe('COMMIT');
	$holder->quit;
	merged_by_worker($index, undef, "$relation is free: its index has been merged", $begun);
	$n += 6000;
}

my $log = slurp_file($node->logfile);
unlike($log, qr/lock timeout/, 'no worker failed of that');
foreach my $index ('rows_k', 'ints_k', 'other_k')
{
	is($node->safe_psql('postgres', "SELECT hybrid_index_check('$index', true)"), '', "the check of $index");
}
no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
