--
-- INCLUDE columns and index-only scans.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE inc (k int, v text, p point, j json, big text);
INSERT INTO inc SELECT i % 700, CASE WHEN i % 11 > 0 THEN 'value ' || i END, point(i, -i), json_build_object('i', i), repeat(md5(i::text), i % 20)
FROM generate_series(1, 3000) i;
CREATE INDEX inc_i ON inc USING hybrid (k) INCLUDE (v, p, j, big);
CREATE FUNCTION inc_queries() RETURNS TABLE (ok boolean) LANGUAGE sql AS $$
	SELECT hyb_same(q, 'index only bitmap') FROM unnest(array[
		'SELECT k, v FROM inc WHERE k = 77',
		'SELECT k, v, p::text, j::text, md5(big) FROM inc WHERE k BETWEEN 20 AND 60',
		'SELECT v, k FROM inc WHERE k > 600 AND v LIKE ''%7''',
		'SELECT k, v FROM inc WHERE k < 50 AND v IS NULL']) q
	UNION ALL
	SELECT hyb_same(q, 'order_only') FROM unnest(array[
		'SELECT k FROM inc ORDER BY k',
		'SELECT k FROM inc ORDER BY k DESC']) q
$$;
SELECT bool_and(ok), count(*) FROM inc_queries();
INSERT INTO inc SELECT i % 900, CASE WHEN i % 7 > 0 THEN 'more ' || i END, point(i, -i), NULL, repeat(md5(i::text), i % 30)
FROM generate_series(1, 1000) i;
UPDATE inc SET v = v || '!' WHERE k % 10 = 3;
DELETE FROM inc WHERE k % 13 = 5;
SELECT bool_and(ok), count(*) FROM inc_queries();
SELECT hybrid_merge('inc_i') > 0;
SELECT bool_and(ok), count(*) FROM inc_queries();

-- with the visibility map set an index-only scan does not go to the heap, and
-- finds the same in both stages
CREATE FUNCTION inc_heap_fetches(query text) RETURNS int LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
	p	json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO p;
	RETURN (jsonb_path_query_first(p::jsonb, '$.**."Heap Fetches"') #>> '{}')::int;
END $$;
SELECT hyb_quiet();
VACUUM (ANALYZE, DISABLE_PAGE_SKIPPING) inc;
SELECT bool_and(ok), count(*) FROM inc_queries();
SELECT inc_heap_fetches('SELECT k, v, big FROM inc WHERE k > 100'),
	inc_heap_fetches('SELECT count(*) FROM inc');
CREATE TABLE inc2 (a int, b text, c int);
CREATE INDEX inc2_i ON inc2 USING hybrid (a) INCLUDE (c, b);
INSERT INTO inc2 SELECT i % 50, 'b' || i, i FROM generate_series(1, 2000) i;
SELECT hyb_quiet();
VACUUM (ANALYZE, DISABLE_PAGE_SKIPPING) inc2;
SELECT inc_heap_fetches('SELECT a, b, c FROM inc2 WHERE a BETWEEN 10 AND 20'),
	hyb_same('SELECT a, b, c FROM inc2 WHERE a BETWEEN 10 AND 20', 'only');

-- index-only scans return what was stored, not what compares equal to it
CREATE TABLE inc_exact (f float8, n numeric, t char(8));
INSERT INTO inc_exact VALUES (0, 1, 'a'), ('-0', 1.0, 'a '), (0, 1.000, 'a'), ('-0', 1, 'a');
CREATE INDEX inc_exact_f ON inc_exact USING hybrid (f, n, t);
CREATE INDEX inc_exact_n ON inc_exact USING hybrid (n, f);
INSERT INTO inc_exact SELECT * FROM inc_exact;
SELECT hyb_same('SELECT f, n, t FROM inc_exact WHERE f = 0', 'only index'),
	hyb_same('SELECT n, f FROM inc_exact WHERE n = 1', 'only index');
SELECT hybrid_merge('inc_exact_f'), hybrid_merge('inc_exact_n');
SELECT hyb_same('SELECT f, n, t FROM inc_exact WHERE f = 0', 'only index'),
	hyb_same('SELECT n, f FROM inc_exact WHERE n = 1', 'only index');

-- The Bloom filter of the dynamic stage is asked for keys, not for entries:
-- entries that a tree is built from, and entries added to it one by one.
CREATE TABLE inc_bloom (k int, v int);
CREATE INDEX inc_bloom_k ON inc_bloom USING hybrid (k) INCLUDE (v);
CREATE FUNCTION inc_found(lo int, hi int) RETURNS bigint LANGUAGE sql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
	SELECT count(*) FROM generate_series(lo, hi) g, LATERAL (SELECT v FROM inc_bloom WHERE k = g OFFSET 0) x
$$;
SET hybridindex.background_merge = off;
INSERT INTO inc_bloom SELECT i, -i FROM generate_series(1, 2000) i;
SELECT inc_found(1, 2000);
SELECT bloom_hits >= 2000 AS asked FROM hybrid_index_stats('inc_bloom_k');
INSERT INTO inc_bloom SELECT i, -i FROM generate_series(2001, 2300) i;
SELECT inc_found(2001, 2300), dynamic_entries FROM hybrid_index_stats('inc_bloom_k');
RESET hybridindex.background_merge;
DROP TABLE inc_bloom;
DROP FUNCTION inc_found;

-- INCLUDE columns do not make a unique key
CREATE TABLE inc_u (a int, b int);
CREATE UNIQUE INDEX inc_u_i ON inc_u USING hybrid (a) INCLUDE (b);
INSERT INTO inc_u VALUES (1, 1), (2, 1);
SELECT hyb_error('INSERT INTO inc_u VALUES (1, 2)');
SELECT hyb_check('inc'), hyb_check('inc2'), hyb_check('inc_exact'), hyb_check('inc_u');
SELECT hyb_error('CREATE INDEX ON inc USING hybrid (k) INCLUDE (k DESC)');

-- Keys with several payloads, each of many rows: an entry that comes later goes
-- behind all of them, and scans go on among them.
CREATE TABLE inc_long (k int, v int);
INSERT INTO inc_long SELECT hashint4(i) & 1, i / 120 FROM generate_series(1, 220) i;
CREATE INDEX inc_long_k ON inc_long USING hybrid (k) INCLUDE (v);
INSERT INTO inc_long VALUES (0, 2), (1, 3);
SELECT hybrid_merge('inc_long_k'), hyb_check('inc_long'), hyb_same('SELECT k, v FROM inc_long WHERE k = 1', 'index only bitmap');
INSERT INTO inc_long SELECT hashint4(i) & 1, i / 1000 FROM generate_series(1, 20000) i;
SELECT hybrid_merge('inc_long_k') >= 0 AS merged, hyb_check('inc_long'), hyb_same('SELECT k, v FROM inc_long WHERE k = 1', 'index only bitmap'),
	hyb_same('SELECT k FROM inc_long ORDER BY k DESC', 'order_only');
DROP TABLE inc_long;

-- Line pointers with numbers beyond 255, which rows of nulls make.
CREATE TABLE inc_null (a int, b int);
INSERT INTO inc_null SELECT NULL, NULL FROM generate_series(1, 1000);
CREATE INDEX ON inc_null USING hybrid (a);
CREATE INDEX ON inc_null USING hybrid (a) INCLUDE (b);
SELECT max((ctid::text::point)[1]) > 255 AS two_bytes, hyb_check('inc_null') FROM inc_null;
DROP TABLE inc_null;

DROP TABLE inc, inc2, inc_exact, inc_u;
DROP FUNCTION inc_queries, inc_heap_fetches;
