--
-- Row versions that updates leave behind in indexes that no session reads: merges
-- drop them without VACUUM.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET client_min_messages = warning;
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;

-- rows are updated through one index, a column of another changes
CREATE TABLE ver (id int, a int, b text, c int, v int, pad char(100) DEFAULT '') WITH (autovacuum_enabled = off);
INSERT INTO ver SELECT i, hashint4(i), md5(i::text), i % 7, 0 FROM generate_series(1, 1000) i;
CREATE INDEX ver_id ON ver USING hybrid (id);
CREATE INDEX ver_a ON ver USING hybrid (a) INCLUDE (id);
CREATE INDEX ver_b ON ver USING hybrid (b, a);
CREATE INDEX ver_c ON ver USING hybrid (c);
CREATE INDEX ver_v ON ver USING hybrid (v);
CREATE VIEW ver_entries AS
	SELECT relname AS index, static_entries BETWEEN 1000 AND 2500 AS few, dynamic_entries AS dynamic
	FROM pg_index i JOIN pg_class c ON c.oid = indexrelid, hybrid_index_stats(indexrelid)
	WHERE indrelid = 'ver'::regclass AND relname <> 'ver_v' ORDER BY relname;
SELECT hyb_quiet();
SET enable_seqscan = off;
CREATE PROCEDURE ver_update(n int, merge bool) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		UPDATE ver SET v = v + 1 WHERE id BETWEEN 101 AND 600;
		COMMIT;
		IF merge AND i % 4 = 0 THEN
			PERFORM hybrid_merge(indexrelid) FROM pg_index WHERE indrelid = 'ver'::regclass;
		END IF;
	END LOOP;
END $$;

-- all in the log, or in leaves as well
CALL ver_update(10, false);
SELECT hybrid_merge('ver_a') AS a, hybrid_merge('ver_b') AS b, hybrid_merge('ver_c') AS c, hybrid_merge('ver_id') AS id;
SELECT * FROM ver_entries;
CALL ver_update(20, true);
SELECT * FROM ver_entries;
SELECT hyb_check('ver'), hyb_same('SELECT id, v FROM ver WHERE a > 0', 'index bitmap'),
	hyb_same('SELECT id, b, v FROM ver WHERE b > ''4''', 'index bitmap'),
	hyb_same('SELECT c FROM ver WHERE c = 3', 'index only bitmap');

-- with tombstones in the leaves
DELETE FROM ver WHERE id > 900;
VACUUM ver;
INSERT INTO ver SELECT i, hashint4(i), md5(i::text), i % 7, 0 FROM generate_series(901, 1000) i;
CALL ver_update(20, true);
SELECT * FROM ver_entries;
SELECT hyb_check('ver'), hyb_same('SELECT id, v FROM ver WHERE a > 0', 'index bitmap'),
	hyb_same('SELECT c FROM ver WHERE c = 3', 'index only bitmap');

-- in an index that has nothing in leaves yet
CREATE TABLE fresh (id int, a int, v int) WITH (autovacuum_enabled = off);
CREATE INDEX fresh_id ON fresh USING hybrid (id);
CREATE INDEX fresh_a ON fresh USING hybrid (a);
CREATE INDEX fresh_v ON fresh USING hybrid (v);
INSERT INTO fresh SELECT i, -i, 0 FROM generate_series(1, 300) i;
DO $$
BEGIN
	FOR i IN 1 .. 20 LOOP
		UPDATE fresh SET v = v + 1 WHERE id > 0;
		COMMIT;
	END LOOP;
END $$;
SELECT hybrid_merge('fresh_a');
SELECT static_entries BETWEEN 300 AND 900 AS few FROM hybrid_index_stats('fresh_a');
SELECT hyb_check('fresh'), hyb_same('SELECT id FROM fresh WHERE a < -7', 'index bitmap');

-- rows that are there have entries, whatever their keys have in common
CREATE TABLE alike (k int, v int) WITH (autovacuum_enabled = off);
CREATE INDEX alike_k ON alike USING hybrid (k);
INSERT INTO alike SELECT i % 10, i FROM generate_series(1, 5000) i;
SELECT hybrid_merge('alike_k');
INSERT INTO alike SELECT i % 10, i FROM generate_series(5001, 10000) i;
SELECT hybrid_merge('alike_k');
SELECT static_entries FROM hybrid_index_stats('alike_k');
SELECT hyb_check('alike'), hyb_same('SELECT v FROM alike WHERE k = 5', 'index bitmap');

-- heap-only tuples: their line pointers are redirected, not dead
UPDATE alike SET v = -v WHERE k = 3 AND v > 9000;
VACUUM alike;
DO $$
BEGIN
	FOR i IN 1 .. 30 LOOP
		UPDATE alike SET v = v - 1 WHERE k = 3 AND v < -9000;
		COMMIT;
		PERFORM hybrid_merge('alike_k');
	END LOOP;
END $$;
SELECT static_entries BETWEEN 10000 AND 10500 AS few FROM hybrid_index_stats('alike_k');
SELECT hyb_check('alike'), hyb_same('SELECT v FROM alike WHERE k = 3', 'index bitmap');

DROP VIEW ver_entries;
DROP TABLE ver, fresh, alike;
DROP PROCEDURE ver_update;
RESET ALL;
