--
-- Range filters of kind "grafite": answers are the same with and without them.
-- What they save, and where they are not possible.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;

-- options
CREATE TABLE gf (id int, k int8, s text COLLATE "C", ts timestamp, sensor int2, u uuid, n numeric);
CREATE INDEX gf_bad ON gf USING hybrid (k) WITH (filter = grafite, filter_range = 0);
CREATE INDEX gf_k ON gf USING hybrid (k) WITH (filter = 'grafite', filter_range = 100);
CREATE INDEX gf_kd ON gf USING hybrid (k DESC NULLS LAST) WITH (filter = grafite);
CREATE UNIQUE INDEX gf_t ON gf USING hybrid (sensor, ts) INCLUDE (id) WITH (filter = grafite, filter_range = 1000000);
CREATE INDEX gf_s ON gf USING hybrid (s, sensor DESC) WITH (filter = grafite, filter_range = 4);
CREATE INDEX gf_u ON gf USING hybrid (u) WITH (filter = grafite, filter_range = 2147483647);
-- the last column has no fixed length, or keys are compared by functions
SET client_min_messages = notice;
CREATE INDEX gf_n ON gf USING hybrid (k, s) WITH (filter = grafite);
CREATE INDEX gf_n2 ON gf USING hybrid (n, k) WITH (filter = grafite);
REINDEX INDEX gf_n;
-- leaves with this number of entries have no filter of either kind; a REINDEX is silent
CREATE TABLE gf_dense (sensor int, ts timestamptz) WITH (parallel_workers = 2);
INSERT INTO gf_dense SELECT i % 10, '2024-01-01'::timestamptz + i / 10 * interval '1 s' FROM generate_series(0, 199999) i;
\set VERBOSITY terse
CREATE INDEX gf_dense_g ON gf_dense USING hybrid (sensor, ts) WITH (filter = grafite);
SET max_parallel_maintenance_workers = 0;
CREATE INDEX gf_dense_s ON gf_dense USING hybrid (sensor, ts) WITH (filter = surf);
CREATE INDEX gf_dense_p ON gf_dense USING hybrid (sensor, ts) WITH (filter = points);
RESET max_parallel_maintenance_workers;
REINDEX INDEX gf_dense_s;
CREATE INDEX gf_dense_auto ON gf_dense USING hybrid (sensor, ts);
\set VERBOSITY default
DROP TABLE gf_dense;
SET client_min_messages = warning;
DROP INDEX gf_n2;

CREATE FUNCTION gf_insert(lo int, hi int) RETURNS void LANGUAGE sql AS $$
	SELECT setseed(0.5);
	INSERT INTO gf SELECT i, CASE WHEN i % 50 > 0 THEN i::int8 * 1000 + hashint4(i) % 300 END,
		CASE WHEN i % 7 > 0 THEN left(md5((i / 9)::text), 1 + i % 9) END,
		CASE WHEN i % 60 > 0 THEN '2024-01-01'::timestamp + i * interval '7 s' + abs(hashint4(i)) % 5000000 * interval '1 us' END,
		nullif(i % 13, 12), CASE WHEN i % 40 > 0 THEN md5(i::text)::uuid END, i / 8.0
	FROM generate_series(lo, hi) i
$$;
-- Beside rows, and around them: ranges of all lengths, with bounds in and out.
CREATE FUNCTION gf_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q)) FROM (
		SELECT format('SELECT id FROM gf WHERE k %s %s AND k %s %s', lo, k + a, hi, k + a + b)
		FROM gf, unnest(array[-400, -1, 0, 1, 300]) a, unnest(array[0, 1, 2, 100, 5000]) b,
			(VALUES ('>', '<'), ('>=', '<'), ('>', '<='), ('>=', '<=')) o (lo, hi)
		WHERE id % 1999 = 7 AND k IS NOT NULL
		UNION ALL
		SELECT format('SELECT id FROM gf WHERE sensor = %s AND ts %s %L AND ts %s %L', sensor + c, lo, ts + a * interval '1 us', hi, ts + (a + b) * interval '1 us')
		FROM gf, unnest(array[-1000000, -1, 0, 1]) a, unnest(array[0, 1, 1000, 1000000, 100000000]) b, unnest(array[0, 1]) c,
			(VALUES ('>', '<'), ('>=', '<=')) o (lo, hi)
		WHERE id % 1999 = 7 AND sensor IS NOT NULL AND ts IS NOT NULL
		UNION ALL
		SELECT format('SELECT id FROM gf WHERE s = %L AND sensor >= %s AND sensor < %s', s, sensor + a, sensor + a + b)
		FROM gf, unnest(array[-2, -1, 0, 1]) a, unnest(array[0, 1, 2, 4]) b
		WHERE id % 1999 = 8 AND sensor IS NOT NULL AND s IS NOT NULL
		UNION ALL
		SELECT format('SELECT id FROM gf WHERE s = %L AND sensor IS NULL', s) FROM gf WHERE id % 1999 = 25 AND s IS NOT NULL
		UNION ALL
		SELECT format('SELECT id FROM gf WHERE u BETWEEN %L AND %L', u, left(u::text, 8 + c) || right('-ffff-ffff-ffff-ffffffffffff', 28 - c))
		FROM gf, unnest(array[0, 5, 20]) c WHERE id % 1999 = 9 AND u IS NOT NULL
		UNION ALL
		SELECT unnest(array['SELECT id FROM gf WHERE k < 5000', 'SELECT id FROM gf WHERE k > 19990000',
			'SELECT id FROM gf WHERE k IS NULL', 'SELECT id FROM gf WHERE sensor = 3 AND ts IS NULL',
			'SELECT id FROM gf WHERE sensor IS NULL AND ts = ''2024-01-01 00:01:24''', 'SELECT id FROM gf WHERE sensor = 5',
			'SELECT id FROM gf WHERE sensor = 5 AND ts < ''2024-01-01 10:00:00''',
			'SELECT id FROM gf WHERE (sensor, ts) > (5, ''2024-01-02 10:00:00'') AND (sensor, ts) < (6, ''2024-01-01 10:00:00'')',
			'SELECT id FROM gf WHERE k = ANY (ARRAY[1, 7013, 8000, 9000, 9001] || (SELECT array_agg(k) FROM gf WHERE id % 700 = 1))'])) q (q)
$$;
CREATE FUNCTION gf_check() RETURNS TABLE (i regclass, ok boolean, has_filters boolean) LANGUAGE sql AS $$
	SELECT i, hybrid_index_check(i, true) IS NOT NULL, filter_pages > 0
	FROM unnest(array['gf_k', 'gf_kd', 'gf_t', 'gf_s', 'gf_u', 'gf_n']::regclass[]) i, hybrid_index_stats(i)
$$;
CREATE FUNCTION gf_merge() RETURNS bigint LANGUAGE sql AS $$
	SELECT sum(hybrid_merge(i)) FROM unnest(array['gf_k', 'gf_kd', 'gf_t', 'gf_s', 'gf_u', 'gf_n']::regclass[]) i
$$;
SELECT gf_insert(1, 12000);
SET hybridindex.merge_step_pages = 1;
SELECT gf_merge() > 0;
SELECT * FROM gf_check();
SELECT * FROM gf_queries();
RESET hybridindex.merge_step_pages;
SELECT gf_insert(12001, 20000);
SELECT gf_merge() > 0;
SELECT * FROM gf_check();
SELECT * FROM gf_queries();
REINDEX TABLE gf;
SELECT * FROM gf_check();
DELETE FROM gf WHERE id % 3 = 0;
VACUUM gf;
SELECT gf_merge() > 0;
SELECT * FROM gf_check();
SELECT * FROM gf_queries();

-- one tree with images of several kinds
ALTER INDEX gf_k SET (filter = surf);
ALTER INDEX gf_t SET (filter = points);
SELECT gf_insert(20001, 20050);
SELECT gf_merge() > 0;
SELECT * FROM gf_check();
ALTER INDEX gf_k SET (filter = points);
ALTER INDEX gf_t SET (filter = surf);
SELECT gf_insert(20051, 20100);
SELECT gf_merge() > 0;
SELECT * FROM gf_check();
SELECT * FROM gf_queries();

-- what they spare: ranges beside keys, in both directions, and absent keys
CREATE TABLE gc AS SELECT hashint8extended(i, 1) AS k FROM generate_series(1, 40000) i;
CREATE INDEX gc_k ON gc USING hybrid (k) WITH (filter = grafite);
VACUUM ANALYZE gc;
CREATE FUNCTION gc_spared(query text, OUT n bigint, OUT checks bigint, OUT spared bigint) LANGUAGE plpgsql AS $$
DECLARE
	before record;
BEGIN
	SELECT filter_checks, filter_negatives INTO before FROM hybrid_index_stats('gc_k');
	EXECUTE query INTO n;
	SELECT filter_checks - before.filter_checks, filter_negatives - before.filter_negatives
	INTO checks, spared FROM hybrid_index_stats('gc_k');
END
$$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT n, checks, spared > 0.97 * checks AS spared FROM gc_spared(
	'SELECT count((SELECT k FROM gc c WHERE c.k BETWEEN s.k + 1 AND s.k + 1024 LIMIT 1)) FROM (SELECT k FROM gc LIMIT 5000) s');
SELECT n, checks, spared > 0.97 * checks AS spared FROM gc_spared(
	'SELECT count((SELECT k FROM gc c WHERE c.k BETWEEN s.k - 1024 AND s.k - 1 ORDER BY k DESC LIMIT 1)) FROM (SELECT k FROM gc LIMIT 5000) s');
SELECT n, checks, spared > 0.999 * checks AS spared FROM gc_spared(
	'SELECT count((SELECT k FROM gc c WHERE c.k = s.k + 1)) FROM (SELECT k FROM gc LIMIT 5000) s');
-- longer ones less and less
SELECT n, spared BETWEEN 0.65 * checks AND 0.85 * checks AS spared FROM gc_spared(
	'SELECT count((SELECT k FROM gc c WHERE c.k BETWEEN s.k + 1 AND s.k + 16384 LIMIT 1)) FROM (SELECT k FROM gc LIMIT 5000) s');
-- the parameter says how long ranges may be
ALTER INDEX gc_k SET (filter_range = 16384);
REINDEX INDEX gc_k;
SELECT n, checks, spared > 0.97 * checks AS spared FROM gc_spared(
	'SELECT count((SELECT k FROM gc c WHERE c.k BETWEEN s.k + 1 AND s.k + 16384 LIMIT 1)) FROM (SELECT k FROM gc LIMIT 5000) s');
SELECT hybrid_may_contain('gc_k', k), hybrid_may_contain('gc_k', k + 1) FROM gc LIMIT 1;
SELECT hybrid_approx_count('gc_k', 0::int8, NULL) BETWEEN 19000 AND 21000;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE gf, gc;
