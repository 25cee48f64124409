
# Random work on whole databases of a running node.  They are created, copied, moved
# between tablespaces, renamed and dropped, and so are their tables and indexes.
# Meanwhile sessions in them insert, delete, merge and vacuum, and are terminated.
# The server is stopped without a shutdown now and then.

package DatabaseWork;

use strict;
use warnings;

use Exporter 'import';
use HybridTest;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time);

our @EXPORT = qw(make_tablespaces make_database check_database database_work);

my $indexes = "'{w_id,w_h,w_s,u_k}'::regclass[]";

# Tablespaces place1, place2, ...; returns their names.
sub make_tablespaces
{
	my ($node, $n) = @_;
	my @names = map { "place$_" } 1 .. $n;

	foreach my $name (@names)
	{
		my $dir = PostgreSQL::Test::Utils::tempdir();
		$node->safe_psql('postgres', "CREATE TABLESPACE $name LOCATION '$dir'");
	}
	return @names;
}

my $tables = <<'SQL';
CREATE EXTENSION hybridindex;
CREATE TABLE w (id int8 NOT NULL, h int8, s text);
CREATE UNIQUE INDEX w_id ON w USING hybrid (id);
CREATE INDEX w_h ON w USING hybrid (h) INCLUDE (id);
CREATE INDEX w_s ON w USING hybrid (s COLLATE "C") INCLUDE (id);
CREATE UNLOGGED TABLE u (k int8);
CREATE INDEX u_k ON u USING hybrid (k);
SQL

# A database with tables and hybrid indexes, which check_database knows.
sub make_database
{
	my ($node, $db) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, $tables);
	return;
}

# Each index has what its table has; a list of what is wrong.
sub check_database
{
	my ($node, $db) = @_;
	my %paths = (w_id => 'id > -1', w_h => 'h > -3000000000', w_s => "s >= '' COLLATE \"C\"");
	my $script = "SET client_min_messages = error;\nBEGIN ISOLATION LEVEL REPEATABLE READ;\n"
	  . "CREATE TEMP TABLE t AS SELECT (SELECT count(*) FROM w) AS w, (SELECT sum(id) FROM w) AS ids, (SELECT count(*) FROM u) AS u, (SELECT count(DISTINCT id) FROM w) AS keys;\n"
	  . "SELECT 'a key twice' FROM t WHERE w <> keys;\n"
	  . "SET enable_seqscan = off;\n";

	# through the index alone, and by bitmap
	foreach my $bitmap ('off', 'on')
	{
		$script .= "SET enable_bitmapscan = $bitmap; SET enable_indexscan = " . ($bitmap eq 'on' ? 'off' : 'on') . ";\n";
		foreach my $index (sort keys %paths)
		{
			$script .= "SELECT '$index: ' || n || ' rows for ' || w FROM (SELECT count(*) AS n, sum(id) AS ids FROM w WHERE $paths{$index}) x, t WHERE n <> w OR x.ids <> t.ids;\n";
		}
		$script .= "SELECT 'u_k: ' || n || ' rows for ' || u FROM (SELECT count(*) AS n FROM u WHERE k > -1) x, t WHERE n <> u;\n";
	}
	$script .= "COMMIT;\nSELECT hybrid_index_check(i, true) FROM unnest($indexes) i;\n";

	my $timed_out = 0;
	my ($ret, $out, $err) = $node->psql($db, $script, timeout => 120, timed_out => \$timed_out);
	my @bad = grep { $_ ne '' } split /\n/, $out;
	push @bad, 'no answer after two minutes' if $timed_out;
	push @bad, $err if $err ne '';
	return map { "database $db: $_" } @bad;
}

# Statements that sessions run in a database; %d is a number that never
# repeats, a thousand before the next one.
my %statements = (
	insert => 'INSERT INTO w SELECT g, hashint8(g), g FROM generate_series(%d, %d + (random() * 600)::int) g',
	unlogged => 'INSERT INTO u SELECT g FROM generate_series(%d, %d + (random() * 600)::int) g',
	rollback => 'BEGIN; INSERT INTO w SELECT g, g, g FROM generate_series(%d, %d + 300) g; ROLLBACK',
	delete => 'DELETE FROM w WHERE id % 7 = (random() * 6)::int',
	update => 'UPDATE w SET h = h + 1 WHERE id % 9 = (random() * 8)::int',
	vacuum => 'VACUUM w; VACUUM u',
	merge => "SELECT count(hybrid_merge(i)) FROM unnest($indexes) i",
	scan => 'SET enable_seqscan = off; SELECT count(*) FROM w WHERE h > 0; SELECT count(*) FROM w WHERE id > 0',
	reindex => 'REINDEX TABLE w',
	'index moves' => 'ALTER INDEX w_h SET TABLESPACE %s',
	'table moves' => 'ALTER TABLE w SET TABLESPACE %s');

# Errors that other work brings about.
my $expected = qr/is being accessed by other users|does not exist|terminating connection|server closed the connection|connection to server|connection to client lost|recovery mode|deadlock detected|is already in tablespace|already exists|canceling|some relations of database .* are already in tablespace|cannot assign new default tablespace/;

# Work for some seconds.  Returns {bad => differences and unexpected errors,
# done => how often each kind of work was done, seed => ...}.
sub database_work
{
	my ($node, %options) = @_;
	my $seed = $options{seed} // int(rand(1 << 30));
	my @spaces = ('pg_default', @{ $options{spaces} });
	my $most = $options{databases} // 4;
	my $until = time + $options{seconds};
	my (%oids, @sessions, @bad, %done);
	my $number = 10000000;
	my $names = 0;

	srand($seed);
	$node->safe_psql('postgres', 'CREATE DATABASE base');
	$node->safe_psql('base', $tables);

	my $run = sub
	{
		my ($kind, $db, $script) = @_;
		my $timed_out = 0;
		my ($ret, $out, $err) = $node->psql($db, $script, timeout => 120, timed_out => \$timed_out);

		$done{$kind}++ if $ret == 0;
		push @bad, "$kind in $db: no answer after two minutes" if $timed_out;
		push @bad, "$kind in $db: $_" foreach grep { /ERROR|FATAL|PANIC/ && $_ !~ $expected } split /\n/, $err;
		return $ret == 0;
	};
	my $statement = sub
	{
		my ($kind) = @_;
		my $script = $statements{$kind};
		my $space = $spaces[rand @spaces];

		$number += 1000;
		$script =~ s/%d/$number/g;
		$script =~ s/%s/$space/g;
		return $script;
	};

	# on a busy machine until databases were compared
	while (!@bad && (time < $until || ($done{check} // 0) < 2))
	{
		my @databases = sort keys %oids;
		my $db = @databases ? $databases[rand @databases] : undef;
		my $space = $spaces[rand @spaces];
		my $what = rand(100);

		if (!defined $db || ($what < 12 && @databases < $most))
		{
			# OIDs are few, so they come again
			my %used = reverse %oids;
			my ($oid) = grep { !exists $used{$_} } 72001 .. 72001 + $most;
			my $new = 'd' . ++$names;
			my $strategy = rand() < 0.5 ? 'file_copy' : 'wal_log';
			my $template = defined $db && rand() < 0.5 ? $db : 'base';

			# The server asks whether the template has files in the new tablespace, and
			# then waits for the template's sessions, which may move a table there.
			$run->('end sessions', 'postgres', "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '$template'");
			$oids{$new} = $oid
			  if $run->("copy $strategy", 'postgres', "CREATE DATABASE $new TEMPLATE $template STRATEGY $strategy TABLESPACE $space OID = $oid");
		}
		elsif ($what < 18)
		{
			my $how = rand() < 0.5 ? ' WITH (FORCE)' : '';
			delete $oids{$db} if $run->('drop', 'postgres', "DROP DATABASE $db$how");
		}
		elsif ($what < 30)
		{
			$run->('end sessions', 'postgres', "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '$db'") if rand() < 0.7;
			$run->('move', 'postgres', "ALTER DATABASE $db SET TABLESPACE $space");
		}
		elsif ($what < 34)
		{
			my $new = 'd' . ++$names;
			$oids{$new} = delete $oids{$db} if $run->('rename', 'postgres', "ALTER DATABASE $db RENAME TO $new");
		}
		elsif ($what < 40)
		{
			# a session that works on while other things happen
			if (@sessions >= 3)
			{
				my $old = shift @sessions;
				finish_psql($old);
				push @bad, "session: $_" foreach grep { /ERROR|FATAL|PANIC/ && $_ !~ $expected } split /\n/, $old->{err};
			}
			push @sessions, start_psql_in($node, $db, join(";\n", map { $statement->($_) } map { (sort keys %statements)[rand keys %statements] } 1 .. 12) . ";\n");
			$done{session}++;
		}
		elsif ($what < 42)
		{
			$node->stop('immediate');
			$node->start;
			$done{crash}++;
		}
		elsif ($what < 50)
		{
			push @bad, check_database($node, $db);
			$done{check}++;
		}
		else
		{
			my $kind = (sort keys %statements)[rand keys %statements];
			$run->($kind, $db, $statement->($kind));
		}
	}
	foreach my $session (@sessions)
	{
		finish_psql($session);
		push @bad, "session: $_" foreach grep { /ERROR|FATAL|PANIC/ && $_ !~ $expected } split /\n/, $session->{err};
	}
	foreach my $db (sort keys %oids)
	{
		push @bad, check_database($node, $db);
		$done{check}++;
	}
	$node->safe_psql('postgres', "DROP DATABASE $_ WITH (FORCE)") foreach 'base', sort keys %oids;
	return { bad => \@bad, done => \%done, seed => $seed };
}

# start_psql, in a database other than postgres; its errors do not end it.
sub start_psql_in
{
	my ($node, $db, $script) = @_;
	return start_psql($node, "\\set ON_ERROR_STOP 0\n\\connect $db\n", $script);
}

1;
