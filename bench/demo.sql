--
-- hybrid beside btree in twin tables: e-mail addresses (test/data), random
-- integers, and orders by customer and time, loaded with the index in place.
-- Each is measured in three rounds, in which the methods take turns; the table shows
-- medians.  Run by ./dev demo from the repository's root.
--
\set QUIET on
\pset footer off
\set ON_ERROR_STOP on
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET synchronous_commit = off;
\if :{?rows}
\else
	\set rows 300000
\endif

CREATE EXTENSION IF NOT EXISTS hybridindex;
CREATE TEMP TABLE demo_result (keys text, what text, unit text, am text, val float8, more_is_better boolean);

CREATE TABLE emails (k text COLLATE "C");
\copy emails FROM PROGRAM 'gzip -dc test/data/emails.txt.gz'
DO $$ BEGIN PERFORM setseed(0.42); END $$;
CREATE TABLE integers AS SELECT floor((random() - 0.5) * 1.8e19)::int8 AS k FROM generate_series(1, :rows);
CREATE TABLE orders AS SELECT (:rows / 10 * random() ^ 2)::int4 AS k, timestamptz '2025-01-01' + i * interval '7 seconds' AS placed
	FROM generate_series(1, :rows) i;
SELECT count(*) AS emails FROM emails \gset
\echo
\echo :emails e-mail addresses, :rows random bigint, :rows orders (customer int4, placed timestamptz)
\echo PostgreSQL :SERVER_VERSION_NAME; three rounds, in loops within the server; one to three minutes

-- Time of a statement in seconds.
CREATE FUNCTION demo_run(stmt text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	t	timestamptz := clock_timestamp();
BEGIN
	EXECUTE stmt;
	RETURN extract(epoch FROM clock_timestamp() - t);
END $$;

-- Look-ups a second, in a loop inside the server, over a warm index: once
-- through all probes to warm up, then with the clock running.
CREATE FUNCTION demo_lookups(tab text, typ text, cond text) RETURNS float8 LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
	rate	float8;
BEGIN
	EXECUTE format($f$
		CREATE FUNCTION pg_temp.probe(keys %2$s[]) RETURNS int8 LANGUAGE plpgsql AS $b$
		DECLARE
			p	%2$s;
			n	int8;
			s	int8 := 0;
		BEGIN
			FOREACH p IN ARRAY keys LOOP
				SELECT count(*) INTO n FROM (SELECT FROM %1$s WHERE %3$s) x;
				s := s + n;
			END LOOP;
			RETURN s;
		END $b$ $f$, tab, typ, cond);
	EXECUTE format($f$
		SELECT 10000 / r.seconds
		FROM (SELECT array_agg(k) AS keys FROM (SELECT k FROM %1$s_probes ORDER BY md5(k::text) LIMIT 10000) y) p,
			LATERAL (SELECT pg_temp.probe(p.keys)) w(found),
			LATERAL (SELECT clock_timestamp() AS t WHERE w.found > 0 OFFSET 0) t,
			LATERAL (SELECT pg_temp.probe(p.keys) WHERE t.t IS NOT NULL OFFSET 0) v(found),
			LATERAL (SELECT extract(epoch FROM clock_timestamp() - t.t) WHERE v.found > 0 OFFSET 0) r(seconds)
		$f$, tab) INTO rate;
	DROP FUNCTION pg_temp.probe;
	RETURN rate;
END $$;

-- The merges that inserts set off belong to their cost.
CREATE PROCEDURE demo_wait_for_merges(index regclass) LANGUAGE plpgsql AS $$
BEGIN
	WHILE (SELECT merge_running FROM hybrid_index_stats(index)) LOOP
		PERFORM pg_sleep(0.05);
		COMMIT;
	END LOOP;
END $$;

CREATE PROCEDURE demo_round(keys text, cols text, typ text, point text, wide text, ams text[]) LANGUAGE plpgsql AS $$
DECLARE
	am		text;
	tab		text;
	rows	int8;
	loaded	int8;
	start	pg_lsn;
	seconds	float8;
BEGIN
	EXECUTE format('SELECT count(*) FROM %s', keys) INTO rows;
	loaded := rows * 9 / 10;
	FOREACH am IN ARRAY ams LOOP
		tab := keys || '_' || am;
		EXECUTE format('DROP TABLE IF EXISTS %1$s, %1$s_probes', tab);
		EXECUTE format('CREATE TABLE %s (LIKE %s) WITH (autovacuum_enabled = off)', tab, keys);
		EXECUTE format('CREATE TABLE %s_probes AS SELECT k FROM %s TABLESAMPLE SYSTEM (100) WHERE random() < 15000.0 / %s', tab, keys, rows);

		-- built at once
		EXECUTE format('INSERT INTO %s SELECT * FROM %s', tab, keys);
		COMMIT;
		seconds := demo_run(format('CREATE INDEX %1$s_k ON %1$s USING %2$s (%3$s)', tab, am, cols));
		CALL demo_note(keys, 'build time', 's', am, seconds, false);
		CALL demo_note(keys, 'index size after CREATE INDEX', 'MB', am, pg_relation_size(tab || '_k') / 1e6, false);
		EXECUTE format('TRUNCATE %s', tab);
		COMMIT;

		-- a load of nine tenths
		CHECKPOINT;
		start := pg_current_wal_insert_lsn();
		seconds := demo_run(format('INSERT INTO %s SELECT * FROM %s LIMIT %s', tab, keys, loaded));
		COMMIT;
		CALL demo_note(keys, 'rate of inserts', 'rows/s', am, loaded / seconds, true);
		IF am = 'hybrid' THEN
			CALL demo_wait_for_merges((tab || '_k')::regclass);
		END IF;
		CALL demo_note(keys, 'WAL of the load, table included', 'MB', am, (pg_current_wal_insert_lsn() - start) / 1e6, false);
		CALL demo_note(keys, 'index size after the load', 'MB', am, pg_relation_size(tab || '_k') / 1e6, false);

		-- the last tenth, after a checkpoint as a server makes one every few
		-- minutes; all of it merged, and nothing older
		IF am = 'hybrid' THEN
			PERFORM hybrid_merge((tab || '_k')::regclass);
			COMMIT;
		END IF;
		CHECKPOINT;
		start := pg_current_wal_insert_lsn();
		EXECUTE format('INSERT INTO %s SELECT * FROM %s OFFSET %s', tab, keys, loaded);
		COMMIT;
		IF am = 'hybrid' THEN
			PERFORM hybrid_merge((tab || '_k')::regclass);
			COMMIT;
		END IF;
		CALL demo_note(keys, 'WAL of a tenth more, after a checkpoint', 'MB', am, (pg_current_wal_insert_lsn() - start) / 1e6, false);

		EXECUTE 'ANALYZE ' || tab;
		COMMIT;
	END LOOP;

	-- what else the machine does meets both
	FOR i IN 1 .. 3 LOOP
		FOREACH am IN ARRAY ams LOOP
			tab := keys || '_' || am;
			CALL demo_note(keys, 'point look-ups', '1/s', am, demo_lookups(tab, typ, point), true);
			CALL demo_note(keys, 'range look-ups', '1/s', am, demo_lookups(tab, typ, wide), true);
		END LOOP;
	END LOOP;
END $$;

CREATE PROCEDURE demo_note(keys text, what text, unit text, am text, val float8, more boolean) LANGUAGE sql AS $$
	INSERT INTO demo_result VALUES (keys, what, unit, am, val, more)
$$;

CREATE PROCEDURE demo_set(keys text, cols text, typ text, point text, wide text) LANGUAGE plpgsql AS $$
BEGIN
	CALL demo_round(keys, cols, typ, point, wide, '{btree,hybrid}');
	CALL demo_round(keys, cols, typ, point, wide, '{hybrid,btree}');
	CALL demo_round(keys, cols, typ, point, wide, '{btree,hybrid}');
END $$;

CALL demo_set('emails', 'k', 'text', 'k = p', 'k >= p AND k < p || ''~'' ORDER BY k LIMIT 20');
CALL demo_set('integers', 'k', 'int8', 'k = p', 'k >= p ORDER BY k LIMIT 20');
CALL demo_set('orders', 'k, placed', 'int4', 'k = p AND placed < ''2025-02-01''', 'k = p ORDER BY placed DESC LIMIT 20');

\pset title 'hybrid beside btree'
SELECT keys, what,
	round(btree::numeric, CASE WHEN btree < 100 THEN 2 ELSE 0 END) AS btree,
	round(hybrid::numeric, CASE WHEN hybrid < 100 THEN 2 ELSE 0 END) AS hybrid, unit,
	round((hybrid / btree)::numeric, 2) AS "hybrid : btree",
	CASE WHEN more_is_better THEN 'more' ELSE 'less' END AS better
FROM (
	SELECT keys, what, unit, more_is_better,
		percentile_cont(0.5) WITHIN GROUP (ORDER BY val) FILTER (WHERE am = 'btree') AS btree,
		percentile_cont(0.5) WITHIN GROUP (ORDER BY val) FILTER (WHERE am = 'hybrid') AS hybrid
	FROM demo_result
	GROUP BY keys, what, unit, more_is_better) medians
ORDER BY keys, array_position('{index size after the load,index size after CREATE INDEX,build time,rate of inserts,"WAL of the load, table included","WAL of a tenth more, after a checkpoint",point look-ups,range look-ups}'::text[], what);
\echo You saw three pairs of equal indexes: sizes are exact, rates scatter on a busy machine.
