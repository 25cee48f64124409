--
-- Look-ups of keys that are not among the entries that wait for a tree: they do not
-- catch the tree up, and find all the same.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE w (k int8, s text COLLATE "C", v int) WITH (autovacuum_enabled = off);
INSERT INTO w SELECT i, 'key ' || i % 500, 0 FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX w_k ON w USING hybrid (k);
CREATE INDEX w_s ON w USING hybrid (s);
CREATE FUNCTION in_trees(OUT k bigint, OUT s bigint) LANGUAGE sql AS $$
	SELECT (SELECT tree_entries FROM hybrid_index_stats('w_k')), (SELECT tree_entries FROM hybrid_index_stats('w_s'));
$$;
-- Rows that look-ups of keys from i to n find
CREATE FUNCTION by_key(i int, n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	found bigint := 0;
	r bigint;
BEGIN
	FOR j IN i .. n LOOP
		SELECT count(v) FROM w WHERE k = j INTO r;
		found := found + r;
		SELECT count(v) FROM w WHERE s = 'key ' || j INTO r;
		found := found + r;
	END LOOP;
	RETURN found;
END $$;
CREATE FUNCTION insert_each(i int, n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR j IN i .. n LOOP INSERT INTO w VALUES (j, 'key ' || j, 1); END LOOP;
END $$;
-- one entry: the tree is built
SELECT insert_each(1001, 1001);
SELECT by_key(1001, 1001);
SELECT * FROM in_trees();
-- few more, which other keys' look-ups leave where they are
SELECT insert_each(1002, 1021);
SELECT by_key(1, 10);
SELECT * FROM in_trees();
-- each is found, once it is there
DO $$
BEGIN
	FOR j IN 1022 .. 1500 LOOP
		PERFORM insert_each(j, j);
		IF by_key(j, j) <> 2 OR by_key(j - 1, j - 1) <> 2 OR by_key(j + 1, j + 1) <> 0 THEN
			RAISE 'after %: %, %, %', j, by_key(j - 1, j - 1), by_key(j, j), by_key(j + 1, j + 1);
		END IF;
	END LOOP;
END $$;
SELECT by_key(1001, 1500);
-- entries that come together, but for the first row's
INSERT INTO w SELECT i, 'key ' || i, 2 FROM generate_series(1501, 1520) i;
SELECT by_key(1511, 1520), by_key(1501, 1510), by_key(1521, 1530);
INSERT INTO w SELECT i, 'key ' || i, 2 FROM generate_series(1521, 3000) i;
SELECT by_key(1501, 3000);
-- a generation that is frozen, and one after it
SELECT insert_each(3001, 3010);
SELECT hybrid_merge('w_k') IS NOT NULL, hybrid_merge('w_s') IS NOT NULL;
SELECT by_key(3001, 3010);
SELECT insert_each(3011, 3020);
SELECT by_key(3001, 3020), by_key(1, 10);
-- a key that another one's uniqueness check asks for
INSERT INTO w VALUES (3020, 'again', 3);
INSERT INTO w VALUES (3020, 'again', 3) ON CONFLICT (k) DO UPDATE SET v = 4;
SELECT v FROM w WHERE k = 3020;
-- a range needs all; from then on inserters enter the pages that they fill
SELECT s AS before FROM in_trees() \gset
SELECT insert_each(3021, 4500);
SELECT s - :before AS entered FROM in_trees();
SELECT count(v) FROM w WHERE s BETWEEN 'key 3015' AND 'key 3025';
SELECT insert_each(4501, 6000);
SELECT s - :before > 2000 AS entered FROM in_trees();
SELECT by_key(3021, 6000);
SELECT hybrid_index_check('w_k', true), hybrid_index_check('w_s', true);
DROP TABLE w;
