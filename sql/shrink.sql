--
-- VACUUM moves the blocks at the end of a file to free blocks, and cuts the end
-- off.  Tests in t/ do that while other sessions have the index open, at crashes
-- and on standbys.  VACUUM by several processes leaves files to a worker, so it is
-- one process but where the test says so.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
SET max_parallel_maintenance_workers = 0;
CREATE TABLE sh (k int, s text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX sh_k ON sh USING hybrid (k) INCLUDE (s);
CREATE INDEX sh_s ON sh USING hybrid (s) INCLUDE (k) WITH (filter = 'surf');
CREATE INDEX sh_n ON sh USING hybrid (n, s);
CREATE FUNCTION sh_fill(lo int, hi int) RETURNS bigint LANGUAGE sql AS $$
	INSERT INTO sh SELECT i, md5(i::text), hashint4(i) FROM generate_series(lo, hi) i;
	SELECT hybrid_merge('sh_k') + hybrid_merge('sh_s') + hybrid_merge('sh_n')
$$;
-- of each index: its file, in pages; more than half as much again as is in use?
CREATE FUNCTION sh_pages(OUT pages bigint[], OUT too_many boolean[]) LANGUAGE sql AS $$
	SELECT array_agg(total_pages), array_agg(free_pages >= greatest(total_pages / 3, 64)) FROM (VALUES ('sh_k'), ('sh_s'), ('sh_n')) v(i), hybrid_index_stats(i)
$$;
CREATE FUNCTION sh_right() RETURNS boolean LANGUAGE sql AS $$
	SELECT hyb_check('sh') AND hyb_same('SELECT k FROM sh WHERE k BETWEEN 100 AND 50000', 'index bitmap')
		AND hyb_same('SELECT k, s FROM sh WHERE s >= ''c'' AND s < ''e''', 'index bitmap')
		AND hyb_same('SELECT n FROM sh ORDER BY n DESC', 'order order_only')
$$;

-- tombstones all over: VACUUM merges by itself
SELECT sh_fill(1, 60000) > 0;
SELECT hyb_quiet();
SELECT pages AS before FROM sh_pages() \gset
DELETE FROM sh WHERE k % 100 <> 0;
VACUUM sh;
SELECT too_many, (SELECT sum(p) < sum(b) / 3 FROM unnest(pages, :'before'::bigint[]) u(p, b)) AS smaller FROM sh_pages();
SELECT sh_right();
SELECT relpages = pg_relation_size(oid) / 8192 AS relpages_right FROM pg_class WHERE relname ~ '^sh_' AND relkind = 'i';

-- what is left lies at the end, and is not rewritten by the merge
SELECT sh_fill(100001, 160000) > 0;
SELECT hyb_quiet();
SELECT pages AS before FROM sh_pages() \gset
DELETE FROM sh WHERE k BETWEEN 200 AND 150000;
VACUUM sh;
SELECT too_many, (SELECT sum(p) < sum(b) / 2 FROM unnest(pages, :'before'::bigint[]) u(p, b)) AS smaller FROM sh_pages();
SELECT sh_right();

-- a log that was never merged; free blocks are used again
SET hybridindex.merge_floor = 1000000;
INSERT INTO sh SELECT i, md5(i::text), hashint4(i) FROM generate_series(200001, 240000) i;
SELECT sh_right();
SELECT hyb_quiet();
DELETE FROM sh WHERE k > 200001;
VACUUM sh;
SELECT too_many FROM sh_pages();
SELECT sh_right();
INSERT INTO sh SELECT i, md5(i::text), hashint4(i) FROM generate_series(200001, 240000) i;
SELECT sh_right();
RESET hybridindex.merge_floor;

-- emptied
SELECT hyb_quiet();
DELETE FROM sh;
VACUUM sh;
SELECT (SELECT bool_and(p < 70) FROM unnest(pages) p) AS small FROM sh_pages();
SELECT sh_right();
INSERT INTO sh SELECT i, md5(i::text), hashint4(i) FROM generate_series(1, 300) i;
SELECT sh_right();

-- a third of the file has to be free
SELECT sh_fill(301, 60000) > 0;
VACUUM sh;
SELECT hyb_quiet();
SELECT pages AS before FROM sh_pages() \gset
DELETE FROM sh WHERE k % 10 = 0;
VACUUM sh;
SELECT sh_fill(0, 0) >= 0;
VACUUM sh;
SELECT (SELECT bool_and(p >= b) FROM unnest(pages, :'before'::bigint[]) u(p, b)) AS as_large FROM sh_pages();

-- the table's option
ALTER TABLE sh SET (vacuum_truncate = off);
DELETE FROM sh WHERE k % 10 <> 0 OR k % 100 <> 0;
SELECT hyb_quiet();
VACUUM sh;
SELECT sh_fill(1, 1) >= 0;
VACUUM sh;
SELECT (SELECT bool_and(p >= b) FROM unnest(pages, :'before'::bigint[]) u(p, b)) AS as_large FROM sh_pages();
ALTER TABLE sh RESET (vacuum_truncate);
VACUUM sh;
SELECT too_many FROM sh_pages();
SELECT sh_right();

-- VACUUM that works on several indexes in parallel merges, and leaves the files
SELECT sh_fill(300001, 360000) > 0;
SELECT hyb_quiet();
SELECT pages AS before FROM sh_pages() \gset
DELETE FROM sh WHERE k % 100 <> 0;
SET min_parallel_index_scan_size = 0;
SET max_parallel_maintenance_workers = 2;
VACUUM (PARALLEL 2) sh;
SELECT too_many, (SELECT bool_and(p >= b) FROM unnest(pages, :'before'::bigint[]) u(p, b)) AS as_large FROM sh_pages();
RESET min_parallel_index_scan_size;
SET max_parallel_maintenance_workers = 0;
VACUUM sh;
SELECT too_many, (SELECT sum(p) < sum(b) / 3 FROM unnest(pages, :'before'::bigint[]) u(p, b)) AS smaller FROM sh_pages();
SELECT sh_right();

-- dictionary pages do not move: what lies behind them is cut off
CREATE TABLE sd (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX sd_s ON sd USING hybrid (s text_hope_ops);
SET hybridindex.merge_floor = 1000000;
INSERT INTO sd SELECT 'customer ' || md5(i::text) || ' of ' || i FROM generate_series(1, 20000) i;
SELECT hybrid_merge('sd_s') > 0;
INSERT INTO sd SELECT 'customer ' || md5(i::text) || ' of ' || i FROM generate_series(20001, 60000) i;
SELECT hybrid_merge('sd_s') > 0;
RESET hybridindex.merge_floor;
SELECT total_pages AS sd_pages FROM hybrid_index_stats('sd_s') \gset
SELECT hyb_quiet();
DELETE FROM sd;
VACUUM sd;
SELECT total_pages BETWEEN 80 AND :sd_pages / 2 AS shorter FROM hybrid_index_stats('sd_s');
INSERT INTO sd SELECT 'customer ' || i FROM generate_series(1, 1000) i;
SELECT hyb_check('sd'), hyb_same('SELECT s FROM sd WHERE s > ''customer 5''', 'index only bitmap');
DROP TABLE sh, sd;
