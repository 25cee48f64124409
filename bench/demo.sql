--
-- hybrid beside btree: the e-mail addresses of test/data and generated
-- integers in twin tables, both loaded row by row in random order with the
-- index in place.  Run by ./dev demo from the repository's root.
--
\set QUIET on
\pset footer off
\set ON_ERROR_STOP on
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET synchronous_commit = off;
\if :{?integers}
\else
	\set integers 2000000
\endif

CREATE EXTENSION IF NOT EXISTS hybridindex;
CREATE TEMP TABLE demo_result (n serial, keys text, what text, unit text, btree numeric, hybrid numeric, more_is_better boolean);

CREATE TABLE emails (k text COLLATE "C");
\copy emails FROM PROGRAM 'gzip -dc test/data/emails.txt.gz'
DO $$ BEGIN PERFORM setseed(0.42); END $$;
CREATE TABLE integers AS SELECT floor((random() - 0.5) * 1.8e19)::int8 AS k FROM generate_series(1, :integers);
SELECT count(*) AS emails FROM emails \gset
\echo :emails e-mail addresses and :integers random bigint keys, server :SERVER_VERSION_NAME

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

CREATE PROCEDURE demo_set(keys text, typ text, wide text) LANGUAGE plpgsql AS $$
DECLARE
	am		text;
	tab		text;
	src		text := keys;
	rows	int8;
	start	pg_lsn;
	seconds	float8;
BEGIN
	EXECUTE format('SELECT count(*) FROM %s', src) INTO rows;
	FOREACH am IN ARRAY '{btree,hybrid}'::text[] LOOP
		tab := keys || '_' || am;
		EXECUTE format('CREATE TABLE %s (LIKE %s) WITH (autovacuum_enabled = off)', tab, src);
		EXECUTE format('CREATE TABLE %s_probes AS SELECT k FROM %s TABLESAMPLE SYSTEM (100) WHERE random() < 15000.0 / %s', tab, src, rows);

		-- inserts; their WAL includes that of the merges they set off
		EXECUTE format('CREATE INDEX %1$s_k ON %1$s USING %2$s (k)', tab, am);
		COMMIT;
		CHECKPOINT;
		start := pg_current_wal_insert_lsn();
		seconds := demo_run(format('INSERT INTO %s SELECT k FROM %s', tab, src));
		COMMIT;
		CALL demo_note(keys, 'insert rate', 'rows/s', am, rows / seconds, true);
		WHILE am = 'hybrid' AND (SELECT merge_running FROM hybrid_index_stats((tab || '_k')::regclass)) LOOP
			PERFORM pg_sleep(0.05);
			COMMIT;
		END LOOP;
		CALL demo_note(keys, 'WAL of the inserts, heap included', 'MB', am, (pg_current_wal_insert_lsn() - start) / 1e6, false);
		CALL demo_note(keys, 'index size after the inserts', 'MB', am, pg_relation_size(tab || '_k') / 1e6, false);
		EXECUTE 'ANALYZE ' || tab;
		COMMIT;
		CALL demo_note(keys, 'point look-ups', '1/s', am, demo_lookups(tab, typ, 'k = p'), true);
		CALL demo_note(keys, 'range look-ups', '1/s', am, demo_lookups(tab, typ, wide), true);

		-- built at once
		EXECUTE format('DROP INDEX %s_k', tab);
		COMMIT;
		seconds := demo_run(format('CREATE INDEX %1$s_k ON %1$s USING %2$s (k)', tab, am));
		CALL demo_note(keys, 'build time', 's', am, seconds, false);
		CALL demo_note(keys, 'index size after the build', 'MB', am, pg_relation_size(tab || '_k') / 1e6, false);
		COMMIT;
	END LOOP;
END $$;

CREATE PROCEDURE demo_note(key_set text, what_ text, unit_ text, am text, val float8, more boolean) LANGUAGE plpgsql AS $$
BEGIN
	IF am = 'btree' THEN
		INSERT INTO demo_result (keys, what, unit, btree, more_is_better) VALUES (key_set, what_, unit_, val, more);
	ELSE
		UPDATE demo_result SET hybrid = val WHERE keys = key_set AND what = what_;
	END IF;
END $$;

CALL demo_set('emails', 'text', 'k >= p AND k < p || ''~'' ORDER BY k LIMIT 20');
CALL demo_set('integers', 'int8', 'k >= p ORDER BY k LIMIT 20');

\pset title 'hybrid beside btree'
SELECT keys, what,
	round(btree, CASE WHEN btree < 100 THEN 2 ELSE 0 END) AS btree,
	round(hybrid, CASE WHEN hybrid < 100 THEN 2 ELSE 0 END) AS hybrid, unit,
	round(hybrid / btree, 2) AS "hybrid : btree",
	CASE WHEN more_is_better THEN 'more' ELSE 'less' END AS better
FROM demo_result
ORDER BY keys, array_position('{index size after the inserts,index size after the build,build time,insert rate,"WAL of the inserts, heap included",point look-ups,range look-ups}'::text[], what);
