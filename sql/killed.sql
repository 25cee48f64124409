--
-- Entries of row versions that are gone: skipped once they are known to be
-- dead, and dropped by merges without VACUUM.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET client_min_messages = warning;
CREATE TABLE killed (k int, v int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX killed_k ON killed USING hybrid (k);
CREATE INDEX killed_v ON killed USING hybrid (v);
INSERT INTO killed SELECT i, i * 1000 FROM generate_series(1, 20) i;
SELECT hyb_quiet();

-- v is indexed, so each update adds an entry to both indexes
DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		UPDATE killed SET v = v + 1;
		COMMIT;
	END LOOP;
END $$;
SELECT dynamic_entries, static_entries FROM hybrid_index_stats('killed_k');

-- Updates prune the pages that they fill, and their uniqueness checks find
-- the entries of earlier row versions dead.  Nothing ever looks for old values
-- of v, since each comes only once.
SELECT hybrid_merge('killed_k') AS merged, hybrid_merge('killed_v') AS merged_v;
SELECT static_entries < 1500 AS dropped, dynamic_entries FROM hybrid_index_stats('killed_k');
SELECT static_entries FROM hybrid_index_stats('killed_v');

-- the same for entries that are in leaves already
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT count(*) FROM killed WHERE v < 20300;
SELECT count(*) FROM killed WHERE v < 20300;
UPDATE killed SET v = v - 301 WHERE k <= 10;
SELECT hybrid_merge('killed_v');
SELECT static_entries < 1500 AS dropped FROM hybrid_index_stats('killed_v');
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_indexonlyscan;

SELECT hyb_check('killed');
SELECT hyb_same('SELECT k, v FROM killed WHERE v >= 0', 'index bitmap'),
	hyb_same('SELECT k FROM killed ORDER BY k', 'order order_only');
INSERT INTO killed VALUES (7, 7);
VACUUM killed;
SELECT hyb_check('killed');
DROP TABLE killed;

-- what aborted subtransactions inserted goes with the next merge, in the midst
-- of the transaction
CREATE TABLE killed_sub (k int, v int);
CREATE UNIQUE INDEX killed_sub_k ON killed_sub USING hybrid (k);
CREATE FUNCTION killed_try(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		BEGIN
			INSERT INTO killed_sub VALUES (i % 10, i);
			RAISE EXCEPTION 'no';
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END $$;
BEGIN;
SELECT killed_try(2000);
INSERT INTO killed_sub SELECT i, i FROM generate_series(1, 20) i;
SELECT hybrid_merge('killed_sub_k');
SELECT static_entries < 60 AS dropped FROM hybrid_index_stats('killed_sub_k');
COMMIT;
SELECT hyb_same('SELECT k, v FROM killed_sub WHERE k > 0', 'index'), hyb_check('killed_sub');
VACUUM killed_sub;
INSERT INTO killed_sub SELECT i, i FROM generate_series(21, 2000) i;
SELECT hyb_same('SELECT k, v FROM killed_sub WHERE k > 0', 'index'), hyb_check('killed_sub');
DROP TABLE killed_sub;
DROP FUNCTION killed_try;

-- a merge under way has left out rows whose insertion failed: the check lets
-- that pass
CREATE TABLE killed_part (k int, v int);
INSERT INTO killed_part SELECT hashint4(g), 0 FROM generate_series(1, 60000) g;
CREATE INDEX killed_part_k ON killed_part USING hybrid (k) WITH (merge_ratio = 100, levels = 1);
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
BEGIN;
INSERT INTO killed_part SELECT hashint4(g), 1 FROM generate_series(60001, 64000) g;
ROLLBACK;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(v) FROM killed_part WHERE k > -2147483648;
SET hybridindex.merge_step_pages = 1;
SET hybridindex.merge_floor = 10;
INSERT INTO killed_part SELECT hashint4(g), 2 FROM generate_series(70001, 71000) g;
SELECT merge_running FROM hybrid_index_stats('killed_part_k');
SELECT hybrid_index_check('killed_part_k', true);
SET hybridindex.merge_floor = 1000000;
SELECT hybrid_merge('killed_part_k') < 5000 AS some_were_merged_before;
SELECT static_entries FROM hybrid_index_stats('killed_part_k');
SELECT hybrid_index_check('killed_part_k', true);
DROP TABLE killed_part;
RESET ALL;

-- A backend keeps the hints of some leaves with tombstones for itself.  When another
-- leaf gets the place of one, what was dead in the one is not in the other.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SET hybridindex.background_merge = off;
CREATE TABLE killed_own (k int, j int) WITH (autovacuum_enabled = off);
INSERT INTO killed_own SELECT i, hashint4(i) FROM generate_series(1, 20000) i;
CREATE INDEX killed_own_k ON killed_own USING hybrid (k, j);
DELETE FROM killed_own WHERE k % 50 = 0;
VACUUM killed_own;
DELETE FROM killed_own WHERE k % 997 < 100;
SELECT hyb_quiet();
-- one leaf or two at a time, so often that each gets a place
DO $$
BEGIN
	FOR r IN 0 .. 9 LOOP
		FOR i IN 1 .. 20 LOOP
			PERFORM count(*) FROM killed_own WHERE k BETWEEN r * 2000 AND r * 2000 + 1999;
		END LOOP;
	END LOOP;
END $$;
SELECT count(*) FROM killed_own WHERE k > 0;
SELECT hyb_same('SELECT k, j FROM killed_own WHERE k > 0', 'index'), hyb_check('killed_own');
DROP TABLE killed_own;
RESET ALL;
