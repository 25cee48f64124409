
# Places in shared memory pass to others: those of owners of hot copies, shared slots, and
# what inserters of one partition note of their keys.  What a session remembers of the
# one that had a place before is not taken for another's.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('places', <<EOF);
hybridindex.background_merge = off
hybridindex.merge_floor = 1000000
hybridindex.dynamic_memory = 64kB
plan_cache_mode = force_generic_plan
enable_seqscan = off
enable_bitmapscan = off
enable_indexonlyscan = off
EOF

# ---- hot copies of more indexes than there are places for ----

# There are 256 places.  All tables have the same keys, each in another order.
my $tables = 260;
run($node, <<EOF);
CREATE FUNCTION fill(t int, what text, step int) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	EXECUTE format('INSERT INTO t%s SELECT i, %L || i FROM generate_series(1, 20) i ORDER BY (i * %s + %s) %% 20', t, what || t || ' ', step, t);
END \$\$;
DO \$\$ BEGIN
	FOR t IN 1 .. $tables LOOP
		EXECUTE format('CREATE TABLE t%s (k int8, v text) WITH (autovacuum_enabled = off)', t);
		PERFORM fill(t, 'first ', 1);
		EXECUTE format('CREATE UNIQUE INDEX t%s_k ON t%s USING hybrid (k)', t, t);
		EXECUTE format('CREATE FUNCTION look%s() RETURNS text LANGUAGE plpgsql AS \$f\$
			DECLARE
				x text;
				found text;
			BEGIN
				FOR round IN 1 .. 24 LOOP
					found := '''';
					FOR i IN 1 .. 4 LOOP
						x := NULL;
						SELECT v INTO x FROM t%s WHERE k = i;
						found := found || '','' || coalesce(x, ''nothing'');
					END LOOP;
				END LOOP;
				RETURN found;
			END \$f\$', t, t);
	END LOOP;
END \$\$;
CREATE FUNCTION wrong(what text, tables int DEFAULT $tables) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	seen text;
	differ text := '';
BEGIN
	FOR t IN 1 .. tables LOOP
		EXECUTE format('SELECT look%s()', t) INTO seen;
		IF seen <> (SELECT string_agg(format(',%s%s %s', what, t, i), '' ORDER BY i) FROM generate_series(1, 4) i) THEN
			differ := differ || format('table %s: %s; ', t, seen);
		END IF;
	END LOOP;
	RETURN differ;
END \$\$;
EOF

sub replace_rows
{
	my ($what, $step) = @_;
	foreach my $t (1 .. 4)
	{
		run($node, "DELETE FROM t$t", "SELECT fill($t, '$what', $step)");
		run($node, "VACUUM (INDEX_CLEANUP on, TRUNCATE off) t$t");
		run($node, "SELECT hybrid_merge('t${t}_k')");
	}
	return;
}
replace_rows('first ', 1) foreach 1 .. 4;
my $session = $node->background_psql('postgres');
is($session->query_safe("SELECT wrong('first ')"), '', 'look-ups in all indexes') foreach 1, 2;
is(run($node, "SELECT count(*) BETWEEN 200 AND 256, sum(hot_hits) > 5000 FROM generate_series(1, $tables) t, hybrid_index_stats(format('t%s_k', t)::regclass) WHERE hot_lookups > 0"),
	't|t', 'most of them, and not all, have places, and find copies');

# Rows of the first tables go, and new rows get their line pointers.  Their indexes have
# no place among the owners any more.  No statistics change, so that the session
# keeps what it knows.
replace_rows('second ', 3);
replace_rows('third ', 7);
is($session->query_safe("SELECT wrong('third ', 4)"), '', 'look-ups of rows that have replaced others') foreach 1, 2;
$session->quit;
is(run($node, "SELECT wrong('third ', 4)"), '', 'and in another session');

# ---- a slot that another index takes ----

# A comparison that may read a table: each session has a tree of its own, and the slot
# says where the lanes of the log end.  A lane is opened while there is no slot.  A
# session that makes the slot tells of the first lane, and fails before the second.
# Another one, whose tree had all of the first lane, finds the second one.
SKIP:
{
	skip 'NOT TESTED: a slot that goes while a lane is opened, since this server has no injection points', 1 if !has_points($node);
	# inserters merge where memory is short, and slots go only there
	my $set_memory = sub {
		$node->append_conf('postgresql.conf', "hybridindex.dynamic_memory = $_[0]");
		$node->reload;
		$node->poll_query_until('postgres', "SELECT current_setting('hybridindex.dynamic_memory') = '$_[0]'") or die;
	};
	$set_memory->('64MB');
	# three rows fill a page of the log, but for what a small one takes
	run($node, 'CREATE EXTENSION injection_points', <<'EOF');
CREATE FUNCTION own_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
	IF current_setting('own.fails', true) = 'yes' AND 4 IN (a, b) THEN
		RAISE 'own_cmp fails';
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CALL hyb_operator_class('own');
CREATE FUNCTION wide(k int) RETURNS bytea LANGUAGE sql AS
	$$ SELECT decode(string_agg(md5(k || ' ' || i), ''), 'hex') FROM generate_series(1, 150) i $$;
CREATE TABLE p (k int, v bytea);
ALTER TABLE p ALTER v SET STORAGE EXTERNAL;
CREATE INDEX p_k ON p USING hybrid (k own_ops) INCLUDE (v);
INSERT INTO p SELECT k, wide(k) FROM generate_series(1, 3) k;
DO $$ BEGIN
	FOR i IN 1 .. 50 LOOP
		EXECUTE format('CREATE TABLE s%s (k int)', i);
		EXECUTE format('CREATE INDEX s%s_k ON s%s USING hybrid (k)', i, i);
		EXECUTE format('INSERT INTO s%s SELECT generate_series(1, 4000)', i);
	END LOOP;
END $$;
EOF
	my $reader = $node->background_psql('postgres');
	my $other = $node->background_psql('postgres');
	my $count = 'SELECT count(*), min(k) FROM p WHERE k > -100';
	$other->query_safe('INSERT INTO p VALUES (-1)');
	is($reader->query_safe($count), '4|-1', 'a session reads a log');
	is($reader->query_safe("SELECT tree_memory > 0 AND NOT tree_shared FROM hybrid_index_stats('p_k')"), 't', 'and has a tree of its own');

	# an inserter gets a lane of its own while another one adds a page
	attach_point($node, 'delta-page');
	my $first = start_psql($node, 'INSERT INTO p SELECT 4, wide(4);');
	ok(held_at($node, 'delta-page', $first), 'an inserter adds a page') or diag $first->{err};
	attach_point($node, 'delta-lane');
	$other->query_until(qr/started/, "\\echo started\nINSERT INTO p VALUES (-2);\n");
	ok(held_at($node, 'delta-lane', $first), 'another one is about to open a lane');
	release_point($node, 'delta-page');
	ok(finish_psql($first), 'the first one is done') or diag $first->{err};
	run($node, "SELECT injection_points_detach('hybrid-delta-lane')");
	is($reader->query_safe($count), '5|-1', 'the session has all of the first lane');

	# slots of indexes with something in their logs, which were used since
	$set_memory->('64kB');
	run($node, 'SELECT pg_sleep(0.2)', <<'EOF');
DO $$ BEGIN
	FOR i IN 1 .. 50 LOOP
		EXECUTE format('SELECT FROM s%s WHERE k = 7', i);
		EXECUTE format('INSERT INTO s%s VALUES (0)', i);
	END LOOP;
END $$;
EOF
	cmp_ok(run($node, 'SELECT indexes FROM hybrid_memory'), '<', 50, 'other indexes have taken its slot');
	$set_memory->('64MB');
	run($node, "SELECT injection_points_wakeup('hybrid-delta-lane')");
	$other->query_safe('SELECT');
	is(stats($node, 'p_k', 'delta_pages'), 3, 'the log has two pages and one');
	like(error_of($node, "SET own.fails = 'yes'; $count"), qr/own_cmp fails/, 'a session reads no more than the first lane');
	is($reader->query_safe($count), '6|-2', 'the session finds what was appended without a slot');
	same_answers($node, 'so do others', { 'SELECT k FROM p WHERE k < 5' => 'index only bitmap' }, ['p']);
	$_->quit foreach $reader, $other;

	# ---- a place in the ring of a partition ----
	run($node, 'CREATE TABLE u (k int, v text)', 'CREATE UNIQUE INDEX u_k ON u USING hybrid (k)', "INSERT INTO u SELECT i, 'old' FROM generate_series(1, 3000) i");
	my $late = start_psql($node, <<'EOF');
SELECT injection_points_set_local();
SELECT injection_points_attach('hybrid-unique-checked', 'wait');
INSERT INTO u VALUES (-1, 'late');
EOF
	ok(held_at($node, 'unique-checked', $late), 'an inserter has found that its key is not there') or diag $late->{err};
	run($node, "INSERT INTO u VALUES (-1, 'first')", "INSERT INTO u SELECT i, 'more' FROM generate_series(3001, 30000) i");
	release_point($node, 'unique-checked');
	ok(!finish_psql($late), 'it fails');
	like($late->{err}, qr/duplicate key/, 'since the key has come, and many others after it');
	same_answers($node, 'the key is there once', { 'SELECT v FROM u WHERE k = -1' => 'index bitmap' }, ['u']);
}

no_crash($node, 'no crash');
$node->stop;
done_testing();
