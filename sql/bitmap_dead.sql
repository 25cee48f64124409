--
-- Bitmap scans find entries of row versions that are gone: they leave them out
-- from then on, and merges drop them without VACUUM.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_indexscan = off;
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;

-- entries that the bitmap index scan of a query returns
CREATE FUNCTION bd_entries(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING off, FORMAT json) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, '$.**?(@."Node Type" == "Bitmap Index Scan")."Actual Rows"')::float;
END $$;

-- ten rows a key; the second index is of what changes, so no update is HOT
CREATE TABLE bd (k int, v int, pad char(200) DEFAULT '') WITH (autovacuum_enabled = off);
INSERT INTO bd SELECT i / 10, 0 FROM generate_series(0, 1999) i;
CREATE INDEX bd_k ON bd USING hybrid (k);
CREATE INDEX bd_v ON bd USING hybrid (v);
SELECT hyb_quiet();
DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		UPDATE bd SET v = v + 1 WHERE k = 50;
		COMMIT;
	END LOOP;
END $$;
SELECT dynamic_entries, static_entries FROM hybrid_index_stats('bd_k');
SELECT bd_entries('SELECT v FROM bd WHERE k = 50') BETWEEN 10 AND 150 AS few;
SELECT bd_entries('SELECT v FROM bd WHERE k = 51');
SELECT count(*), min(v), max(v) FROM bd WHERE k = 50;

-- merges drop them
SELECT hybrid_merge('bd_k');
SELECT static_entries - 2000 BETWEEN 0 AND 150 AS few FROM hybrid_index_stats('bd_k');
SELECT hyb_check('bd'), hyb_same('SELECT k, v FROM bd WHERE k BETWEEN 40 AND 60', 'index bitmap');

-- those in leaves, too
DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		UPDATE bd SET v = v + 1 WHERE k = 150;
		COMMIT;
		IF i % 100 = 0 THEN
			PERFORM hybrid_merge('bd_k');
		END IF;
	END LOOP;
END $$;
SELECT static_entries - 2000 BETWEEN 0 AND 250 AS few FROM hybrid_index_stats('bd_k');

-- where others made them the first scans may meet them all, later ones do not
SET enable_indexscan = on;
SET enable_bitmapscan = off;
DELETE FROM bd WHERE k BETWEEN 20 AND 29;
RESET enable_bitmapscan;
SET enable_indexscan = off;
SELECT count(*) FROM bd WHERE pad = '';
SELECT count(bd_entries('SELECT v FROM bd WHERE k BETWEEN 15 AND 34')) FROM generate_series(1, 70);
SELECT bd_entries('SELECT v FROM bd WHERE k BETWEEN 15 AND 34') BETWEEN 100 AND 110 AS few;
SELECT hyb_same('SELECT k, v FROM bd WHERE k BETWEEN 10 AND 40', 'bitmap');

-- a key of more entries than are looked at together
INSERT INTO bd SELECT 1000, i FROM generate_series(1, 1000) i;
SELECT hybrid_merge('bd_k');
DO $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		UPDATE bd SET v = v + 1 WHERE k = 1000;
		COMMIT;
	END LOOP;
END $$;
SELECT bd_entries('SELECT v FROM bd WHERE k = 1000') BETWEEN 1000 AND 5000 AS few;
SELECT hyb_check('bd'), hyb_same('SELECT k, v FROM bd WHERE k = 1000', 'bitmap');

-- rows that were never there: of a transaction that failed
BEGIN;
INSERT INTO bd SELECT 2000, i FROM generate_series(1, 50) i;
ROLLBACK;
SELECT count(bd_entries('SELECT v FROM bd WHERE k = 2000')) FROM generate_series(1, 70);
SELECT bd_entries('SELECT v FROM bd WHERE k = 2000');

-- heap-only tuples have entries of live line pointers
CREATE TABLE bd_hot (k int, v int) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO bd_hot SELECT i % 10, 0 FROM generate_series(1, 100) i;
CREATE INDEX bd_hot_k ON bd_hot USING hybrid (k);
DO $$
BEGIN
	FOR i IN 1 .. 200 LOOP
		UPDATE bd_hot SET v = v + 1 WHERE k = 5;
		COMMIT;
	END LOOP;
END $$;
SELECT bd_entries('SELECT v FROM bd_hot WHERE k = 5') BETWEEN 10 AND 40 AS few;
SELECT count(*), min(v), max(v) FROM bd_hot WHERE k = 5;
SELECT hyb_check('bd_hot'), hyb_same('SELECT k, v FROM bd_hot WHERE k = 5', 'bitmap');

VACUUM bd;
SELECT hyb_check('bd');
DROP TABLE bd, bd_hot;
DROP FUNCTION bd_entries;
RESET ALL;
