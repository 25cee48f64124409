--
-- Defects that random work has found.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all

-- A compacting merge whose watermark is a fence between equal keys went back
-- to the leaf before the fence, for ever.
CREATE TABLE r1 (k int, n int);
CREATE INDEX r1_k ON r1 USING hybrid (k) INCLUDE (n);
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
SET hybridindex.merge_step_pages = 1;
INSERT INTO r1 SELECT g / 2000, g FROM generate_series(1, 20000) g;
SELECT hybrid_merge('r1_k') > 0 AS merged;
DELETE FROM r1 WHERE n % 3 = 0;
VACUUM r1;
INSERT INTO r1 SELECT g / 2000, g FROM generate_series(1, 20000, 7) g;
SET statement_timeout = '60s';
SELECT hybrid_merge('r1_k') > 0 AS merged;
RESET statement_timeout;
SELECT hyb_check('r1'), hyb_same('SELECT k, n FROM r1 WHERE k BETWEEN 2 AND 5', 'index only bitmap');

-- The filter of a leaf that is the root was written, though nothing can point
-- to it.
CREATE TABLE r2 (k int);
INSERT INTO r2 SELECT generate_series(1, 100);
CREATE INDEX r2_k ON r2 USING hybrid (k) WITH (filter = surf);
SELECT hyb_check('r2');
INSERT INTO r2 SELECT generate_series(1, 20000);
SELECT hybrid_merge('r2_k') > 0 AS merged;
DELETE FROM r2 WHERE k > 50;
VACUUM r2;
SELECT hybrid_merge('r2_k') >= 0 AS merged;
SELECT hyb_check('r2'), hyb_same('SELECT k FROM r2 WHERE k BETWEEN 20 AND 70', 'index bitmap');

-- Leaves whose filters would be too large lie between leaves that share a
-- filter page.
CREATE TABLE r3 (s text COLLATE "C", k int);
CREATE INDEX r3_s ON r3 USING hybrid (s, k) WITH (filter = surf);
SELECT setseed(0.5);
DO $$
BEGIN
	FOR i IN 1 .. 25 LOOP
		INSERT INTO r3 SELECT md5((g / 3)::text), g + i FROM generate_series(1, 6000) g WHERE random() < 0.1;
		INSERT INTO r3 SELECT md5(random()::text), g FROM generate_series(1, 50) g;
		PERFORM hybrid_merge('r3_s'), hybrid_index_check('r3_s', true);
	END LOOP;
END $$;
SELECT hyb_check('r3'), hyb_same('SELECT k FROM r3 WHERE s = md5(''7'')', 'index bitmap');

DROP TABLE r1, r2, r3;
