
# A session keeps at most 1 kB more for each hybrid index that it has used than for a
# btree index.  Partitions are used in turn, by scans of each index and by changes of
# rows.  A session that has used 200 more partitions is compared with another one.
# What it keeps of an index goes with the index's entry in the relation cache, and what
# it keeps of a merge with the merge.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HybridTest;
use Test::More;

use constant { FEW => 50, MANY => 250, INDEXES => 3 };

my $node = new_node('memory', "max_locks_per_transaction = 1000\n");

$node->safe_psql('postgres', <<'EOF');
CREATE PROCEDURE make(am text, partitions int) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %s (id int8, sensor text, ts timestamptz, kind int, part uuid) PARTITION BY RANGE (id)', am);
	EXECUTE format('CREATE INDEX ON %s USING %1$s (sensor, ts)', am);
	EXECUTE format('CREATE INDEX ON %s USING %1$s (kind, part, sensor, ts)', am);
	FOR i IN 0 .. partitions - 1 LOOP
		EXECUTE format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES FROM (%3$s) TO (%4$s)', am, i, i * 10, i * 10 + 10);
		-- before 18 a partitioned table has no unique hybrid index
		EXECUTE format('CREATE UNIQUE INDEX ON %1$s_%2$s USING %1$s (id)', am, i);
		IF i % 50 = 0 THEN COMMIT; END IF;
	END LOOP;
	EXECUTE format('INSERT INTO %s SELECT i, ''s'' || i, now(), i FROM generate_series(0, %s, 2) i', am, partitions * 10 - 1);
END $$;
CREATE PROCEDURE use(am text, partitions int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 0 .. partitions - 1 LOOP
		EXECUTE format('SELECT kind FROM %s_%s WHERE id = %s', am, i, i * 10 + 2);
		EXECUTE format('SELECT kind FROM %s_%s WHERE sensor = ''s%s''', am, i, i * 10 + 4);
		EXECUTE format('SELECT id FROM %s_%s WHERE kind = %s', am, i, i * 10 + 6);
		EXECUTE format('INSERT INTO %1$s_%2$s (id) SELECT coalesce(max(id), 0) + 1 FROM %1$s_%2$s WHERE id < %3$s', am, i, i * 10 + 8);
		EXECUTE format('DELETE FROM %s_%s WHERE id = %s', am, i, i * 10 + 7);
		IF i % 50 = 0 THEN COMMIT; END IF;
	END LOOP;
END $$;
EOF
foreach my $am ('btree', 'hybrid')
{
	$node->safe_psql('postgres', "CALL make('$am', " . MANY . ')');
}
$node->safe_psql('postgres', 'VACUUM ANALYZE');

# Bytes that a session holds.  Contexts of one index have blocks of their own; of
# those that all share, whose blocks double, what is in use.  With assertions chunks are
# larger, and so blocks are not those of other servers: what is in use, too.
sub memory
{
	my ($am, $partitions) = @_;
	return $node->safe_psql('postgres', <<"EOF");
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_custom_plan;
CALL use('$am', $partitions);
SELECT sum(CASE WHEN name = 'index info' AND NOT current_setting('debug_assertions')::bool THEN total_bytes ELSE used_bytes END)
FROM pg_backend_memory_contexts;
EOF
}

my %bytes;
foreach my $am ('btree', 'hybrid')
{
	$bytes{$am} = (memory($am, MANY) - memory($am, FEW)) / ((MANY - FEW) * INDEXES);
}
note(sprintf('bytes of a session an index, a third of the table included: btree %.0f, hybrid %.0f', $bytes{btree}, $bytes{hybrid}));
cmp_ok($bytes{hybrid} - $bytes{btree}, '<=', 1024, 'a session keeps at most 1 kB more of an index than of a btree index');

# ---- indexes whose entries in the relation cache go ----

# Each ANALYZE that finds more rows has the session read the index's description anew.
my $grown = $node->safe_psql('postgres', <<'EOF');
SET enable_seqscan = off;
CREATE TABLE again (k int);
CREATE INDEX again_k ON again USING hybrid (k);
INSERT INTO again SELECT generate_series(1, 100);
CREATE PROCEDURE analyze_often(rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. rounds LOOP
		PERFORM count(*) FROM again WHERE k = i;
		INSERT INTO again VALUES (i);
		ANALYZE again;
		COMMIT;
	END LOOP;
END $$;
CALL analyze_often(50);
SELECT used_bytes AS before FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext' \gset
CALL analyze_often(300);
SELECT (used_bytes - :before) / 300 FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext';
EOF
cmp_ok($grown, '<', 64, 'a session that reads the description of an index again and again does not grow');

# ---- merges that fail, since no worker comes before them ----

$grown = $node->safe_psql('postgres', <<'EOF');
SET hybridindex.background_merge = off;
CREATE FUNCTION fails_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_setting('memory.fails', true) = 'on' THEN
		RAISE EXCEPTION 'this comparison fails';
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CALL hyb_operator_class('fails');
CREATE TABLE f (k int);
CREATE INDEX f_k ON f USING hybrid (k fails_ops);
INSERT INTO f SELECT generate_series(1, 300);
CREATE PROCEDURE fail_often(rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. rounds LOOP
		BEGIN
			PERFORM hybrid_merge('f_k');
			RAISE 'it has not failed';
		EXCEPTION WHEN raise_exception THEN
			IF sqlerrm <> 'this comparison fails' THEN RAISE; END IF;
		END;
		COMMIT;
	END LOOP;
END $$;
SET memory.fails = on;
CALL fail_often(5);
-- Twice, since the catalog's rows that the query reads stay in the session.  It
-- subtracts, so that it reads those of the last query.
SELECT sum(used_bytes) - 0 AS before FROM pg_backend_memory_contexts \gset
SELECT sum(used_bytes) - 0 AS before FROM pg_backend_memory_contexts \gset
CALL fail_often(100);
SELECT (sum(used_bytes) - :before) / 100 FROM pg_backend_memory_contexts;
EOF
cmp_ok($grown, '<', 512, 'a session whose merges fail again and again does not grow');

$node->stop;
done_testing();
