# Serializable transactions run at random while merges replace leaves all the time.
# Is there a serial order that gives what each has read?  How many fail without need,
# compared with btree?
#
# Each transaction notes its snapshot, what it has looked for and what it has found.
# Each row says which transaction wrote it.  The order of the row versions of a key
# is that in which their transactions committed.  So it is known afterwards which row
# version of each key a read should have found.  From that follows which transactions
# have to come before which other ones.  There is a serial order if these have no
# circle.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('serializable', <<EOF);
track_commit_timestamp = on
max_connections = 40
hybridindex.merge_floor = 50
hybridindex.merge_step_pages = 4
EOF

# Keys of the test are multiples of 10 below this; others belong to the merger.
my $keys = 20000;

# ---- what clients do ----

$node->safe_psql('postgres', <<EOF);
CREATE FUNCTION pad() RETURNS text LANGUAGE sql AS
	\$\$ SELECT md5(random()::text) || md5(random()::text) || md5(random()::text) \$\$;
CREATE TABLE h (k int, a int, b int, w int, pad text);
CREATE SEQUENCE ids START 2;

-- what committed transactions have looked for (kind, x, y) and found, or written
CREATE TABLE history (id int, xid text, snapshot text, kind text, x int, y int, found text);

CREATE FUNCTION look(id int, kind text, x int, y int) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	query text := 'SELECT k, w FROM h WHERE w > 0 AND ' || CASE kind
		WHEN 'range' THEN format('k BETWEEN %s AND %s', x, y)
		WHEN 'above' THEN format('k > %s', x)
		WHEN 'key' THEN format('k = %s', x)
		WHEN 'keys' THEN format('k = ANY (ARRAY[%s, %s])', x, y)
		WHEN 'prefix' THEN format('a = %s', x)
		WHEN 'within' THEN format('a = %s AND b >= %s', x, y)
		WHEN 'skip' THEN format('b = %s', x)
		WHEN 'first' THEN format('k >= %s ORDER BY k LIMIT 3', x)
		WHEN 'last' THEN format('k <= %s ORDER BY k DESC LIMIT 3', x)
	END;
	found text;
BEGIN
	EXECUTE format('SELECT string_agg(k || '':'' || w, '' '') FROM (%s) q', query) INTO found;
	INSERT INTO history VALUES (id, pg_current_xact_id(), pg_current_snapshot(), kind, x, y, found);
END \$\$;

-- Mostly two places of a few: one is read, the other written.
CREATE FUNCTION transaction() RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	id int := nextval('ids');
	place int := floor(random() * 12);
	wild bool := random() < 0.2;
	kind text;
	x int;
BEGIN
	FOR i IN 1 .. CASE WHEN wild THEN 3 ELSE 1 END LOOP
		kind := (ARRAY['range', 'range', 'range', 'key', 'keys', 'prefix', 'within', 'first', 'last', 'above', 'skip'])[1 + floor(random() * CASE WHEN wild THEN 11 ELSE 9 END)];
		x := CASE WHEN wild THEN random() * $keys ELSE place * 1600 + 10 * (random() * 4)::int END;
		PERFORM set_config('enable_indexscan', CASE WHEN random() < 0.3 THEN 'off' ELSE 'on' END, true);
		PERFORM look(id, kind,
			CASE WHEN kind IN ('prefix', 'within') THEN x / 100 WHEN kind = 'skip' THEN x % 10 * 10
				WHEN kind = 'above' THEN $keys - x / 20 WHEN kind LIKE 'key%' THEN x - x % 10 ELSE x END,
			CASE kind WHEN 'range' THEN x + (random() * 50)::int WHEN 'keys' THEN x - x % 10 + 10 ELSE x % 100 END);
		PERFORM pg_sleep(random() * 0.06);
	END LOOP;
	FOR i IN 1 .. CASE WHEN wild THEN 3 ELSE 1 END LOOP
		x := CASE WHEN wild THEN random() * $keys ELSE (place + floor(random() * 2)::int) % 12 * 1600 + 10 * (random() * 6)::int END;
		x := x - x % 10;
		PERFORM set_config('enable_indexscan', 'on', true);
		IF wild THEN
			PERFORM look(id, 'key', x, 0);
		END IF;
		kind := NULL;
		IF random() < 0.3 THEN
			UPDATE h SET w = id, pad = pad() WHERE k = x RETURNING 'write' INTO kind;
		ELSIF random() < 0.6 THEN
			DELETE FROM h WHERE k = x RETURNING 'remove' INTO kind;
		END IF;
		IF kind IS NULL THEN
			INSERT INTO h VALUES (x, x / 100, x % 100, id, pad()) ON CONFLICT DO NOTHING RETURNING 'write' INTO kind;
		END IF;
		IF kind IS NOT NULL THEN
			INSERT INTO history VALUES (id, pg_current_xact_id(), pg_current_snapshot(), kind, x);
		END IF;
	END LOOP;
END \$\$;

-- other keys come and go, so that every merge moves the fences of leaves
CREATE PROCEDURE merger(seconds float) LANGUAGE plpgsql AS \$\$
DECLARE
	until timestamptz := clock_timestamp() + seconds * interval '1 second';
	x int;
BEGIN
	WHILE clock_timestamp() < until LOOP
		x := random() * $keys;
		DELETE FROM h WHERE k % 10 <> 0 AND k BETWEEN x - 1000 AND x;
		COMMIT;
		INSERT INTO h SELECT DISTINCT ON (k) k, k / 100, k % 100, 0, pad()
			FROM (SELECT 10 * (random() * $keys / 10)::int + 1 + (random() * 8)::int AS k FROM generate_series(1, 60)) q
			ON CONFLICT DO NOTHING;
		COMMIT;
		PERFORM hybrid_merge(i) FROM unnest(ARRAY['h_k', 'h_ab']::regclass[]) i ORDER BY random();
		COMMIT;
	END LOOP;
END \$\$;
EOF

# ---- what is found out afterwards ----

my %matches = (
	range => sub { $_[0] >= $_[1] && $_[0] <= $_[2] },
	above => sub { $_[0] > $_[1] },
	key => sub { $_[0] == $_[1] },
	keys => sub { $_[0] == $_[1] || $_[0] == $_[2] },
	prefix => sub { int($_[0] / 100) == $_[1] },
	within => sub { int($_[0] / 100) == $_[1] && $_[0] % 100 >= $_[2] },
	skip => sub { $_[0] % 100 == $_[1] },
	first => sub { $_[0] >= $_[1] && (!defined $_[3] || $_[0] <= $_[3]) },
	last => sub { $_[0] <= $_[1] && (!defined $_[3] || $_[0] >= $_[3]) });

sub sees
{
	my ($snapshot, $xid) = @_;
	my ($xmin, $xmax, @running) = split /[:,]/, $snapshot;
	return $xid < $xmax && !grep { $_ == $xid } @running;
}

# The transactions that have to come after each one, and what reads did not find
# as their snapshots have it.
sub dependencies
{
	my ($initial, $rows) = @_;
	my (%versions, %after, @wrong);

	push @{ $versions{$_} }, { id => 1, xid => 0 } foreach @$initial;
	foreach my $row (@$rows)
	{
		my ($id, $xid, $snapshot, $kind, $x) = @$row;
		next unless $kind eq 'write' || $kind eq 'remove';
		my $list = $versions{$x} //= [];
		pop @$list if @$list && $list->[-1]{id} == $id;
		push @$list, { id => $id, xid => $xid, removed => $kind eq 'remove' };
	}
	foreach my $list (values %versions)
	{
		$after{ $list->[$_ - 1]{id} }{ $list->[$_]{id} } = 1 foreach 1 .. $#$list;
	}
	foreach my $row (@$rows)
	{
		my ($id, $xid, $snapshot, $kind, $x, $y, $text) = @$row;
		my $match = $matches{$kind} or next;
		my %found = map { split /:/ } split / /, $text;
		my $end = keys %found < 3 ? undef :
		  (sort { $kind eq 'first' ? $b <=> $a : $a <=> $b } keys %found)[0];

		foreach my $key (grep { $match->($_, $x, $y, $end) } keys %versions)
		{
			my $list = $versions{$key};
			my $i = -1;
			next if grep { $_->{id} == $id && ($found{$key} // 0) == $id } @$list;
			$i++ while $i < $#$list && sees($snapshot, $list->[ $i + 1 ]{xid});
			my $right = $i >= 0 && !$list->[$i]{removed} ? $list->[$i]{id} : 0;

			# what the transaction has written itself is another thing
			if ($right != ($found{$key} // 0))
			{
				push @wrong, "$id looked for $kind $x $y: found " . ($found{$key} // 0) . " at $key, not $right"
				  unless grep { $_->{id} == $id } @$list;
				next;
			}
			$after{ $list->[$i]{id} }{$id} = 1 if $i >= 0 && $list->[$i]{id} != $id;
			$after{$id}{ $list->[ $i + 1 ]{id} } = 1 if $i < $#$list && $list->[ $i + 1 ]{id} != $id;
		}
	}
	return (\%after, \@wrong);
}

# Transactions that come before themselves: what is left when all that come after
# nothing are taken away, again and again.
sub circles
{
	my ($after) = @_;
	my (%before, %count);

	foreach my $id (keys %$after)
	{
		$count{$id} //= 0;
		foreach my $next (keys %{ $after->{$id} })
		{
			$count{$next}++;
			push @{ $before{$id} }, $next;
		}
	}
	my @ready = grep { $count{$_} == 0 } keys %count;
	while (defined(my $id = shift @ready))
	{
		delete $count{$id};
		foreach my $next (@{ $before{$id} // [] })
		{
			push @ready, $next if --$count{$next} == 0;
		}
	}
	return sort { $a <=> $b } keys %count;
}

sub finish_clients
{
	my ($run, $what) = @_;
	finish_psql($run) or fail("$what: $run->{err}");
	my ($done) = $run->{out} =~ /actually processed: (\d+)/;
	my ($failed) = $run->{out} =~ /failed transactions: (\d+)/;
	return ($done, $failed);
}

sub random_histories
{
	my ($what, $type, $seconds) = @_;

	$node->safe_psql('postgres', <<EOF);
DROP INDEX IF EXISTS h_k, h_ab;
TRUNCATE h, history;
ALTER TABLE h ALTER k TYPE $type;
CREATE UNIQUE INDEX h_k ON h USING hybrid (k) INCLUDE (pad);
CREATE INDEX h_ab ON h USING hybrid (a, b) INCLUDE (pad);
INSERT INTO h SELECT k, k / 100, k % 100, 1, pad() FROM generate_series(0, $keys, 20) k;
INSERT INTO h SELECT k, k / 100, k % 100, 0, pad() FROM generate_series(5, $keys, 50) k;
SELECT hybrid_merge('h_k'), hybrid_merge('h_ab');
VACUUM ANALYZE h;
EOF
	my $initial = [ split /\n/, $node->safe_psql('postgres', 'SELECT k FROM h WHERE w = 1') ];
	my $merger = start_psql($node, "CALL merger($seconds + 1);");
	my $vacuum = start_psql($node, map { "SELECT pg_sleep(2);\nVACUUM h;\n" } 1 .. $seconds / 2);
	my $clients = start_pgbench($node, <<EOF, '-c', 10, '-j', 2, '-T', $seconds, '--max-tries=1');
SET enable_seqscan = off;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT transaction();
COMMIT;
EOF
	my ($done, $failed) = finish_clients($clients, $what);
	ok(finish_psql($merger), "$what: merges go on") or diag $merger->{err};
	ok(finish_psql($vacuum), "$what: VACUUM goes on") or diag $vacuum->{err};
	my ($after, $wrong) = dependencies($initial,
		[ map { [ split /\|/, $_, -1 ] }
			  split /\n/, $node->safe_psql('postgres',
				'SELECT * FROM history ORDER BY pg_xact_commit_timestamp(xid::text::xid), xid::text::bigint, ctid') ]);
	my @circle = circles($after);
	my $edges = 0;
	$edges += keys %$_ foreach values %$after;
	my $merges = $node->safe_psql('postgres', q{SELECT merges FROM hybrid_index_stats('h_k')});

	note "$what: $done transactions, $failed failed, $edges dependencies, $merges merges";
	cmp_ok($done, '>', 100, "$what: transactions commit");
	cmp_ok($merges, '>', 10, "$what: merges beside them");
	is(join("\n", @$wrong), '', "$what: reads find what their snapshots have");
	is(join(' ', @circle[ 0 .. ($#circle > 30 ? 30 : $#circle) ]), '', "$what: there is a serial order");
	is($node->safe_psql('postgres', q{SELECT hyb_check('h')}), 't', "$what: the indexes are right");
	return;
}

# keys that are locked by their first bytes, and such that are not
random_histories('integers', 'int', 8);
random_histories('numerics', 'numeric', 10);

# Servers with assertions can have several levels of any index.
my ($ret) = $node->psql('postgres', 'SET hybridindex.test_levels = 3');
if ($ret == 0)
{
	$node->append_conf('postgresql.conf', 'hybridindex.test_levels = 3');
	$node->restart;
	random_histories('three levels', 'numeric', 10);
}

# ---- transactions that share nothing ----

# Two concurrent ones have a conflict if one reads what the other writes, and one of
# them may fail if both do: of 100000 keys, next to never.
$node->safe_psql('postgres', <<EOF);
CREATE TABLE r_btree (k bigint, v int);
CREATE TABLE r_hybrid (k bigint, v int);
CREATE INDEX ON r_btree USING btree (k);
CREATE INDEX ON r_hybrid USING hybrid (k);
CREATE TABLE u_btree (id int, v int);
CREATE TABLE u_hybrid (id int, v int);
CREATE UNIQUE INDEX ON u_btree USING btree (id);
CREATE INDEX ON u_btree USING btree (v);
CREATE UNIQUE INDEX ON u_hybrid USING hybrid (id);
CREATE INDEX ON u_hybrid USING hybrid (v);
INSERT INTO r_btree SELECT i * 1000, i FROM generate_series(1, 100000) i;
INSERT INTO r_hybrid SELECT * FROM r_btree;
INSERT INTO u_btree SELECT i, i FROM generate_series(1, 100000) i;
INSERT INTO u_hybrid SELECT * FROM u_btree;
VACUUM ANALYZE;
EOF
my %work = (
	'look-ups beside insertions' => <<'EOF',
\set a random(1, 100000)
\set b random(1, 100000000)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT v FROM r_AM WHERE k = :a * 1000;
INSERT INTO r_AM VALUES (:b, 0);
COMMIT;
EOF
	'reads by key beside updates' => <<'EOF');
\set a random(1, 100000)
\set b random(1, 100000)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT v FROM u_AM WHERE id = :a;
UPDATE u_AM SET v = :a WHERE id = :b;
COMMIT;
EOF

foreach my $what (sort keys %work)
{
	my %share;
	foreach my $am ('btree', 'hybrid')
	{
		my ($done, $failed) = finish_clients(start_pgbench($node, $work{$what} =~ s/AM/$am/gr, '-c', 4, '-j', 2, '-T', 4, '--max-tries=1'), $what);
		cmp_ok($done, '>', 50, "$what, $am: transactions commit");
		$share{$am} = 100 * $failed / ($done + $failed);
		note sprintf('%s, %s: %d done, %d failed', $what, $am, $done, $failed);
	}
	cmp_ok($share{hybrid}, '<', $share{btree} + 1, "$what: no more than with btree fail");
}

no_crash($node, 'nothing crashed');
$node->stop;
done_testing();
