-- Bulk inserts that a foreign key checks, by the method of the keys.
-- HYBRID_SERVER=18-plain ./dev psql -qXf bench/foreign_keys.sql
-- A million parents get 300,000 children in each of five rounds.  Then a third of the
-- rows of a table is updated outside of its index, and read by the index.  The first
-- read prunes pages.  From 19 on it may mark them all-visible, too.  A superuser.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
CREATE EXTENSION IF NOT EXISTS hybridindex;
LOAD 'hybridindex';
DROP SCHEMA IF EXISTS foreign_keys CASCADE;
CREATE SCHEMA foreign_keys;
SET search_path = foreign_keys, public;
CREATE TABLE times (what text, method text, round int, ms float8);

CREATE PROCEDURE prepare(method text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('hybridindex.replace_btree', CASE method WHEN 'hybrid' THEN 'on' ELSE 'off' END, false);
	EXECUTE format('CREATE TABLE parent_%s (k int8 PRIMARY KEY)', method);
	EXECUTE format('CREATE TABLE child_%s (k int8 REFERENCES parent_%1$s)', method);
	EXECUTE format('INSERT INTO parent_%s SELECT hashint8extended(i, 0) FROM generate_series(1, 1000000) i', method);
	EXECUTE format('CREATE TABLE rows_%s (k int8 PRIMARY KEY, n int, pad text) WITH (fillfactor = 80, autovacuum_enabled = off)', method);
	EXECUTE format('INSERT INTO rows_%s SELECT i, 0, repeat(''x'', 60) FROM generate_series(1, 500000) i', method);
END $$;

CREATE PROCEDURE insert_children(method text, round int) LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz;
BEGIN
	EXECUTE format('TRUNCATE child_%s', method);
	start := clock_timestamp();
	EXECUTE format('INSERT INTO child_%s SELECT hashint8extended(1 + (hashint8extended(i, %s) & 1048575) %% 1000000, 0)
		FROM generate_series(1, 300000) i', method, round);
	COMMIT;
	INSERT INTO times VALUES ('foreign keys', method, round, 1000 * extract(epoch FROM clock_timestamp() - start));
END $$;

-- a read by the key
CREATE PROCEDURE read_rows(what text, method text, round int) LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz := clock_timestamp();
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE format('SELECT sum(n) FROM rows_%s WHERE k BETWEEN 1 AND 500000', method);
	INSERT INTO times VALUES (what, method, round, 1000 * extract(epoch FROM clock_timestamp() - start));
END $$;

CALL prepare('btree');
CALL prepare('hybrid');
VACUUM ANALYZE parent_btree, parent_hybrid, rows_btree, rows_hybrid;
SELECT format('CALL insert_children(%L, %s)', method, round)
FROM generate_series(0, 5) round, unnest(CASE round % 2 WHEN 0 THEN '{btree,hybrid}' ELSE '{hybrid,btree}' END::text[]) method
ORDER BY round \gexec
SELECT format('UPDATE rows_%1$s SET n = n + 1 WHERE k %% 3 = 0;', method),
	format('CALL read_rows(''first read after updates'', %L, %s)', method, round),
	format('CALL read_rows(''second read'', %L, %s)', method, round)
FROM generate_series(0, 5) round, unnest('{btree,hybrid}'::text[]) method ORDER BY round \gexec

SELECT what, round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) FILTER (WHERE method = 'btree')) AS "btree, ms",
	round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) FILTER (WHERE method = 'hybrid')) AS "hybrid, ms"
FROM times WHERE round > 0 GROUP BY what ORDER BY what;
DROP SCHEMA foreign_keys CASCADE;
