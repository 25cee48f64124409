--
-- Many small merges leave the leaves full, for all kinds of keys in all orders,
-- and nodes do not dwindle.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;

-- nothing to fill, one leaf, a packed index
CREATE TABLE fl (k int8);
CREATE INDEX fl_k ON fl USING hybrid (k);
SELECT leaf_pages, fill FROM hybrid_index_stats('fl_k');
INSERT INTO fl VALUES (1);
SELECT hybrid_merge('fl_k');
SELECT leaf_pages, fill > 0 AND fill < 0.1 AS nearly_empty FROM hybrid_index_stats('fl_k');
INSERT INTO fl SELECT hashint8extended(i, 0) FROM generate_series(1, 60000) i;
REINDEX INDEX fl_k;
SELECT leaf_pages > 50 AS many, fill > 0.98 AS packed FROM hybrid_index_stats('fl_k');

-- random keys, two for a leaf and merge: 8 % more entries
-- (small indexes take the small steps of a sixteenth of their leaves)
CREATE FUNCTION fl_random(merges int, entries int, growth float8) RETURNS TABLE (growth_ok boolean, full_ok boolean)
LANGUAGE plpgsql AS $$
DECLARE
	was		record;
BEGIN
	SELECT * INTO was FROM hybrid_index_stats('fl_k');
	FOR i IN 1 .. merges LOOP
		INSERT INTO fl SELECT hashint8extended((SELECT count(*) FROM fl) + j, 1) FROM generate_series(1, entries) j;
		PERFORM hybrid_merge('fl_k');
	END LOOP;
	RETURN QUERY SELECT s.leaf_pages <= was.leaf_pages * growth, s.fill > 0.85
		FROM hybrid_index_stats('fl_k') s;
END $$;
SELECT * FROM fl_random(40, 128, 1.15);
SELECT hyb_check('fl');
-- one for every fifth leaf; from packed leaves, too
SELECT * FROM fl_random(100, 13, 1.15);
REINDEX INDEX fl_k;
SELECT * FROM fl_random(10, 13, 1.2);
SELECT hyb_check('fl');

-- Steps of one leaf can take but one neighbour along.  Then merges of all,
-- and VACUUM, find the leaves too empty, and have all of them visited.
REINDEX INDEX fl_k;
SET hybridindex.merge_step_pages = 1;
SELECT growth_ok FROM fl_random(10, 13, 2);
SELECT fill < 0.75 AS empty FROM hybrid_index_stats('fl_k');
VACUUM fl;
SELECT merge_running FROM hybrid_index_stats('fl_k');
RESET hybridindex.merge_step_pages;
SELECT hybrid_merge('fl_k');
SELECT fill > 0.85 AS full FROM hybrid_index_stats('fl_k');
REINDEX INDEX fl_k;
SET hybridindex.merge_step_pages = 1;
SELECT growth_ok FROM fl_random(10, 13, 2);
RESET hybridindex.merge_step_pages;
SELECT hybrid_merge('fl_k');
SELECT fill > 0.85 AS full FROM hybrid_index_stats('fl_k');
-- with full leaves there is nothing to do
SELECT merges AS was FROM hybrid_index_stats('fl_k') \gset
SELECT hybrid_merge('fl_k');
VACUUM fl;
SELECT merges - :was AS more_merges FROM hybrid_index_stats('fl_k');
SELECT hyb_check('fl');

-- ascending keys: packed
CREATE TABLE fa (k int8, t text);
CREATE INDEX fa_k ON fa USING hybrid (k, t COLLATE "C");
DO $$
BEGIN
	FOR i IN 1 .. 60 LOOP
		INSERT INTO fa SELECT j, md5(j::text) FROM generate_series(i * 100, i * 100 + 99) j;
		PERFORM hybrid_merge('fa_k');
	END LOOP;
END $$;
SELECT leaf_pages > 10 AS some, fill > 0.9 AS packed FROM hybrid_index_stats('fa_k');
-- descending ones
DO $$
BEGIN
	FOR i IN 1 .. 60 LOOP
		INSERT INTO fa SELECT -j, md5(j::text) FROM generate_series(i * 100, i * 100 + 99) j;
		PERFORM hybrid_merge('fa_k');
	END LOOP;
END $$;
SELECT fill > 0.85 AS full FROM hybrid_index_stats('fa_k');
-- in between, at ten moving places
DO $$
BEGIN
	FOR i IN 1 .. 80 LOOP
		INSERT INTO fa SELECT p * 500, 'm' || to_char(i * 10 + j, '00000') || md5(j::text)
		FROM generate_series(1, 10) p, generate_series(1, 10) j;
		PERFORM hybrid_merge('fa_k');
	END LOOP;
END $$;
SELECT fill > 0.8 AS full FROM hybrid_index_stats('fa_k');
SELECT hyb_check('fa');

-- entries go: a fifth at a time, with few new ones
SELECT format('DELETE FROM fl WHERE k %% 40 BETWEEN -%s AND %s', i * 3, i * 3), 'VACUUM fl',
	format('INSERT INTO fl SELECT hashint8extended(%s, j) FROM generate_series(1, 20) j', i),
	$$DO 'BEGIN PERFORM hybrid_merge(''fl_k''); END'$$
FROM generate_series(1, 10) i \gexec
SELECT fill > 0.75 AS full, static_tombstones * 5 <= static_entries AS tombstones_ok FROM hybrid_index_stats('fl_k');
SELECT hyb_check('fl');

-- The leftmost level-1 node loses all its leaves and no other does: for one
-- of these numbers of leaves it ends where the deleted ones do.
CREATE TABLE fn_rows AS
	SELECT i, convert_to(to_char(i, 'fm000000'), 'UTF8') || string_agg(decode(md5((i * 100 + j)::text), 'hex'), '') AS k
	FROM generate_series(1, 4800) i, generate_series(1, 60) j GROUP BY i;
CREATE TABLE fn (i int, k bytea);
CREATE INDEX fn_k ON fn USING hybrid (k);
CREATE TABLE fn_inner (n bigint);
SELECT 'TRUNCATE fn', 'DROP INDEX fn_k', 'INSERT INTO fn SELECT * FROM fn_rows ORDER BY i',
	'CREATE INDEX fn_k ON fn USING hybrid (k)', format('DELETE FROM fn WHERE i <= %s', leaves * 8), 'VACUUM fn',
	$$DO 'BEGIN PERFORM hybrid_merge(''fn_k''), hybrid_index_check(''fn_k'', true); END'$$,
	$$INSERT INTO fn_inner SELECT inner_pages FROM hybrid_index_stats('fn_k')$$
FROM generate_series(323, 327) leaves \gexec
SELECT min(n) < max(n) AS node_went FROM fn_inner;
SELECT count(*), min(i) FROM fn WHERE k > '';

-- The second node loses its first leaves, and entries come where they were:
-- below the node's first separator.  They are found when the first node joins.
TRUNCATE fn;
INSERT INTO fn SELECT * FROM fn_rows ORDER BY i;
REINDEX INDEX fn_k;
DELETE FROM fn WHERE i BETWEEN 2561 AND 2680 OR i > 4000;
VACUUM fn;
SELECT hybrid_merge('fn_k');
INSERT INTO fn SELECT * FROM fn_rows WHERE i BETWEEN 2620 AND 2625;
SELECT hybrid_merge('fn_k');
SELECT inner_pages FROM hybrid_index_stats('fn_k');
DELETE FROM fn WHERE i < 2300;
VACUUM fn;
SELECT hybrid_merge('fn_k');
SELECT inner_pages FROM hybrid_index_stats('fn_k');
SELECT hyb_same('SELECT i FROM fn WHERE k > ''002610'' AND k < ''002700''');
SELECT hyb_check('fn');

-- The same when the second node joins the first.
TRUNCATE fn;
INSERT INTO fn SELECT * FROM fn_rows ORDER BY i;
REINDEX INDEX fn_k;
DELETE FROM fn WHERE i < 1300 OR i BETWEEN 2561 AND 2680;
VACUUM fn;
SELECT hybrid_merge('fn_k');
INSERT INTO fn SELECT * FROM fn_rows WHERE i BETWEEN 2620 AND 2625;
SELECT hybrid_merge('fn_k');
SELECT inner_pages FROM hybrid_index_stats('fn_k');
DELETE FROM fn WHERE i > 2900;
VACUUM fn;
SELECT hybrid_merge('fn_k');
SELECT inner_pages FROM hybrid_index_stats('fn_k');
SELECT hyb_same('SELECT i FROM fn WHERE k > ''002610'' AND k < ''002700''');
SELECT hyb_check('fn');

-- The same with many entries, which make leaves of their own.
TRUNCATE fn;
INSERT INTO fn SELECT * FROM fn_rows ORDER BY i;
REINDEX INDEX fn_k;
DELETE FROM fn WHERE i BETWEEN 2500 AND 2900;
VACUUM fn;
SELECT hybrid_merge('fn_k');
INSERT INTO fn SELECT * FROM fn_rows WHERE i BETWEEN 2500 AND 2900;
SELECT hybrid_merge('fn_k');
SELECT hyb_same('SELECT i FROM fn WHERE k > ''002410'' AND k < ''003000''');
SELECT hyb_check('fn');

-- nodes with few leaves left join others
TRUNCATE fn;
INSERT INTO fn SELECT i + 4800 * n, convert_to(n::text, 'UTF8') || k FROM fn_rows, generate_series(1, 2) n;
REINDEX INDEX fn_k;
SELECT inner_pages > 3 AS many FROM hybrid_index_stats('fn_k');
DELETE FROM fn WHERE i % 1000 > 40;
VACUUM fn;
SELECT hybrid_merge('fn_k');
SELECT inner_pages <= 2 AS few, fill > 0.8 AS full FROM hybrid_index_stats('fn_k');
SELECT hyb_check('fn');
DROP TABLE fl, fa, fn, fn_rows, fn_inner;
