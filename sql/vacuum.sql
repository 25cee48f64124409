--
-- VACUUM removes dead entries from both stages before their line pointers are
-- reused, and its statistics are right.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE vc (k int, v text) WITH (autovacuum_enabled = off);
CREATE INDEX vc_k ON vc USING hybrid (k);
CREATE INDEX vc_v ON vc USING hybrid (v);
CREATE FUNCTION vc_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q, 'index only bitmap')) FROM unnest(array[
		'SELECT k FROM vc WHERE k BETWEEN 100 AND 300', 'SELECT k FROM vc WHERE k > 1000',
		'SELECT k FROM vc WHERE k = ANY (''{1,2,3,4,5,6,7,8,9,10}'')', 'SELECT v FROM vc WHERE v >= ''8''']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order order_only')) FROM unnest(array[
		'SELECT k FROM vc ORDER BY k', 'SELECT k FROM vc ORDER BY k DESC', 'SELECT v FROM vc ORDER BY v']) q
$$;

-- static entries become tombstones; their heap line pointers get other rows
INSERT INTO vc SELECT i, md5(i::text) FROM generate_series(1, 4000) i;
SELECT hybrid_merge('vc_k'), hybrid_merge('vc_v');
SELECT hyb_quiet();
DELETE FROM vc WHERE k % 3 = 0;
SELECT * FROM vc_queries();
VACUUM vc;
SELECT static_tombstones > 0 OR static_entries < 4000 AS removed FROM hybrid_index_stats('vc_k');
SELECT * FROM vc_queries();
SELECT hyb_check('vc');
INSERT INTO vc SELECT -i, md5(i::text) FROM generate_series(1, 2000) i;
SELECT count(*) = 0 AS no_reuse_found_by_old_key FROM vc WHERE k = 3 OR k = 6 OR k = 3999;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');
SELECT hybrid_merge('vc_k') > 0, hybrid_merge('vc_v') > 0;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');

-- entries of the delta log
INSERT INTO vc SELECT i, md5(i::text) FROM generate_series(10001, 12000) i;
DELETE FROM vc WHERE k % 4 = 1;
VACUUM vc;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');
INSERT INTO vc SELECT i, md5(i::text) FROM generate_series(20001, 21000) i;
SELECT * FROM vc_queries();
VACUUM vc;
VACUUM vc;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');

-- aborted insertions leave entries that VACUUM removes
BEGIN;
INSERT INTO vc SELECT i, 'aborted' FROM generate_series(30001, 33000) i;
ROLLBACK;
BEGIN;
INSERT INTO vc SELECT i, 'aborted' FROM generate_series(30001, 30500) i;
SELECT hybrid_merge('vc_k') > 0;
ROLLBACK;
SELECT * FROM vc_queries();
VACUUM vc;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');
SELECT count(*) FROM vc WHERE k > 30000;

-- killed entries (seen dead by an index scan) before VACUUM
UPDATE vc SET v = v || 'x' WHERE k BETWEEN 1 AND 1000;
DELETE FROM vc WHERE k BETWEEN 200 AND 400;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(k) FROM vc WHERE k BETWEEN 150 AND 450;
SELECT count(k) FROM vc WHERE k BETWEEN 150 AND 450;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT * FROM vc_queries();
SELECT hybrid_merge('vc_k') >= 0;
SELECT * FROM vc_queries();
VACUUM vc;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');

-- VACUUM keeps the statistics right; VACUUM FULL, CLUSTER and TRUNCATE build anew
VACUUM ANALYZE vc;
SELECT (SELECT reltuples FROM pg_class WHERE relname = 'vc_k') = (SELECT count(*) FROM vc) AS reltuples_right,
	(SELECT relpages FROM pg_class WHERE relname = 'vc_k') = pg_relation_size('vc_k') / current_setting('block_size')::int AS relpages_right;
VACUUM (INDEX_CLEANUP OFF) vc;
VACUUM (PARALLEL 2) vc;
DELETE FROM vc WHERE k % 2 = 0;
VACUUM (PARALLEL 0, FREEZE) vc;
SELECT * FROM vc_queries();
VACUUM FULL vc;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');
CREATE TABLE vc_copy AS TABLE vc;
TRUNCATE vc;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');
INSERT INTO vc TABLE vc_copy;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');
BEGIN;
TRUNCATE vc;
INSERT INTO vc SELECT * FROM vc_copy LIMIT 10;
SELECT * FROM vc_queries();
ROLLBACK;
SELECT * FROM vc_queries();
SELECT hyb_check('vc');

-- VACUUM asks for all leaves to be visited while a merge has some behind it:
-- the next merge visits those
SET hybridindex.background_merge = off;
SET hybridindex.merge_step_pages = 1;
SET hybridindex.merge_floor = 1000000;
CREATE TABLE vm (k int) WITH (autovacuum_enabled = off);
INSERT INTO vm SELECT i FROM generate_series(1, 100000) i;
CREATE INDEX vm_k ON vm USING hybrid (k) WITH (merge_ratio = 1000, levels = 1);
INSERT INTO vm SELECT i * 50 FROM generate_series(1, 2000) i;
SET hybridindex.merge_floor = 1500;
INSERT INTO vm SELECT 1000000 + i FROM generate_series(1, 700) i;
SET hybridindex.merge_floor = 1000000;
SELECT merge_running, merges, merged_entries > 0 AS begun FROM hybrid_index_stats('vm_k');
DELETE FROM vm WHERE k % 10 < 4;
VACUUM vm;
SELECT static_tombstones > 20000 AS tombstones FROM hybrid_index_stats('vm_k');
SELECT hybrid_merge('vm_k') > 0 AS merged;
SELECT merge_running, static_tombstones FROM hybrid_index_stats('vm_k');
SELECT hyb_check('vm');
-- the same of an index that then learns its dictionaries, which writes all anew
CREATE TABLE vl (s text COLLATE "C", k int) WITH (autovacuum_enabled = off);
CREATE INDEX vl_s ON vl USING hybrid (s text_hope_ops);
INSERT INTO vl VALUES ('name of 0', 0);
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off;
DECLARE c CURSOR FOR SELECT s FROM vl ORDER BY s;
FETCH 1 FROM c;
INSERT INTO vl SELECT 'name of ' || i, i FROM generate_series(1, 5000) i;
SELECT hybrid_merge('vl_s') AS merged, learned FROM hybrid_dictionary_info('vl_s');
COMMIT;
DELETE FROM vl WHERE k % 2 = 0;
VACUUM vl;
SELECT merge_running, static_tombstones > 0 AS tombstones FROM hybrid_index_stats('vl_s');
DELETE FROM vl WHERE k % 4 = 1;
VACUUM vl;
SELECT merge_running, static_tombstones > 0 AS tombstones FROM hybrid_index_stats('vl_s');
INSERT INTO vl SELECT 'name of ' || i, i FROM generate_series(10000, 12000) i;
SELECT hybrid_merge('vl_s') > 0 AS merged;
SELECT learned FROM hybrid_dictionary_info('vl_s');
SELECT hyb_check('vl');
INSERT INTO vl SELECT 'name of ' || i, i FROM generate_series(1000, 3000) i;
SELECT hybrid_merge('vl_s');
SELECT hyb_check('vl');
RESET hybridindex.background_merge;
RESET hybridindex.merge_step_pages;
RESET hybridindex.merge_floor;
DROP TABLE vm, vl;

-- many rounds, everything dead in the end
SELECT format('INSERT INTO vc SELECT i + %s, md5(i::text) FROM generate_series(1, 500) i', r * 100),
	format('DELETE FROM vc WHERE k %% 6 = %s', r), 'VACUUM vc', 'SELECT hyb_check(''vc'')'
FROM generate_series(0, 5) r \gexec
SELECT * FROM vc_queries();
SELECT hyb_quiet();
DELETE FROM vc;
VACUUM vc;
SELECT hyb_check('vc');
SELECT static_entries - static_tombstones + dynamic_entries AS live FROM hybrid_index_stats('vc_k');

DROP TABLE vc, vc_copy;
DROP FUNCTION vc_queries;
