-- Server-side loops, without a client: each measures one thing as often as
-- told.  Variables: am, with, rows.
SELECT setseed(0.42) \g /dev/null
CREATE TABLE probe AS SELECT hashint8extended(i, 0) AS k FROM generate_series(1, :rows) i;
CREATE TABLE probe_order AS SELECT k FROM probe ORDER BY random();
CREATE TABLE uuids AS SELECT md5(k::text)::uuid AS k FROM probe;
CREATE TABLE emails AS SELECT k FROM public.raw WHERE kind = 'email';
CREATE TABLE target (k bigint);
INSERT INTO target SELECT k FROM probe;
CREATE INDEX target_k ON target USING :am (k) :with;
CREATE TABLE skips AS SELECT i % 100 AS a, i / 100 AS b FROM generate_series(1, :rows) i;
CREATE INDEX skips_ab ON skips USING :am (a, b) :with;
VACUUM ANALYZE;
ALTER FUNCTION micro_time(text) SET enable_hashjoin = off;
ALTER FUNCTION micro_time(text) SET enable_mergejoin = off;
ALTER FUNCTION micro_time(text) SET enable_material = off;
ALTER FUNCTION micro_time(text) SET enable_memoize = off;
ALTER FUNCTION micro_time(text) SET enable_bitmapscan = off;
ALTER FUNCTION micro_time(text) SET max_parallel_workers_per_gather = 0;
ALTER FUNCTION micro_time(text) SET max_parallel_maintenance_workers = 0;
ALTER FUNCTION micro_time(text) SET jit = off;
