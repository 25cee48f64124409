--
-- VACUUM of an index whose comparisons fail, or whose order is not what it was: it
-- deletes what it has to and finishes.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
CREATE FUNCTION vo_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_setting('vo.mode', true) = 'fails' THEN
		RAISE EXCEPTION 'values cannot be compared';
	END IF;
	RETURN CASE WHEN current_setting('vo.mode', true) = 'turned' THEN btint4cmp(b, a) ELSE btint4cmp(a, b) END;
END $$;
CREATE OPERATOR CLASS vo_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 vo_cmp(int, int);
CREATE TABLE vo (k int, n int) WITH (autovacuum_enabled = off);
CREATE INDEX vo_k ON vo USING hybrid (k vo_ops);
CREATE FUNCTION vo_fill(rows int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO vo SELECT hashint4(g) % 100000, g FROM generate_series(1, rows) g
$$;

-- VACUUM froze the table and marked as many entries as rows were deleted; rows that
-- take the places of those are found.
CREATE FUNCTION vo_vacuumed(deleted int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	frozen bool := age(relfrozenxid) < 10 FROM pg_class WHERE relname = 'vo';
	marked int8 := static_tombstones FROM hybrid_index_stats('vo_k');
BEGIN
	SET vo.mode = 'off';
	PERFORM vo_fill(deleted);
	RETURN format('frozen %s, marked %s, sound %s, right %s', frozen, marked, hyb_check('vo'),
		hyb_same('SELECT k FROM vo WHERE k BETWEEN 100 AND 70000', 'index'));
END $$;

-- leaves, and the log
SELECT vo_fill(4000), hybrid_merge('vo_k') > 0 AS merged;
SELECT vo_fill(1000);
DELETE FROM vo WHERE n % 10 = 1;
SET vo.mode = 'fails';
VACUUM (FREEZE, INDEX_CLEANUP on) vo;
SELECT vo_vacuumed(500);
DELETE FROM vo WHERE n % 10 = 2;
SET vo.mode = 'turned';
VACUUM (FREEZE, INDEX_CLEANUP on) vo;
SELECT vo_vacuumed(500);

-- a merge that has come half-way
SET vo.mode = 'fails';
SELECT hyb_error($$SELECT hybrid_merge('vo_k')$$);
SELECT merge_running FROM hybrid_index_stats('vo_k');
DELETE FROM vo WHERE n % 10 = 3;
VACUUM (FREEZE, INDEX_CLEANUP on) vo;
SELECT vo_vacuumed(500);
SELECT hybrid_merge('vo_k') > 0 AS merged;
SELECT hyb_check('vo');

-- several levels
DO $$ BEGIN
	SET hybridindex.test_levels = 3;
EXCEPTION WHEN undefined_object OR invalid_name THEN
	-- a server without assertions
END $$;
SELECT vo_fill(2000);
SELECT hybrid_merge('vo_k') > 0 AS merged;
DO $$ BEGIN
	RESET hybridindex.test_levels;
EXCEPTION WHEN undefined_object OR invalid_name THEN
END $$;
DELETE FROM vo WHERE n % 10 = 4;
SET vo.mode = 'turned';
VACUUM (FREEZE, INDEX_CLEANUP on) vo;
SELECT frozen FROM (SELECT age(relfrozenxid) < 10 AS frozen FROM pg_class WHERE relname = 'vo') f;
SET vo.mode = 'off';
SELECT hyb_check('vo');

-- a tree of several nodes
CREATE FUNCTION vo_text_cmp(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN public.vo_cmp(bttextcmp(a, b), 0);
END $$;
CREATE OPERATOR CLASS vo_text_ops FOR TYPE text USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 vo_text_cmp(text, text);
CREATE TABLE vo_t (k text COLLATE "C", n int) WITH (autovacuum_enabled = off);
CREATE INDEX vo_t_k ON vo_t USING hybrid (k vo_text_ops);
INSERT INTO vo_t SELECT repeat('x', 900) || md5(g::text), g FROM generate_series(1, 5000) g;
SELECT hybrid_merge('vo_t_k') > 0 AS merged;
SELECT inner_pages > 2 AS nodes FROM hybrid_index_stats('vo_t_k');
DELETE FROM vo_t WHERE n % 10 = 1;
SET vo.mode = 'fails';
VACUUM (FREEZE, INDEX_CLEANUP on) vo_t;
SET vo.mode = 'off';
SELECT static_tombstones FROM hybrid_index_stats('vo_t_k');
SELECT hyb_check('vo_t');
DROP TABLE vo_t;

-- a file to shrink, and so everything to merge; entries are long, as comparisons are slow
DROP TABLE vo;
CREATE FUNCTION vo_pad() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 10)
$$;
CREATE TABLE vo (k int, n int, pad text DEFAULT vo_pad()) WITH (autovacuum_enabled = off);
CREATE INDEX vo_k ON vo USING hybrid (k vo_ops) INCLUDE (pad);
SELECT vo_fill(5000);
SELECT hybrid_merge('vo_k') > 0 AS merged;
SELECT total_pages > 128 AS large FROM hybrid_index_stats('vo_k');
DELETE FROM vo WHERE n % 10 > 0;
SET vo.mode = 'fails';
VACUUM (FREEZE, INDEX_CLEANUP on) vo;
SET vo.mode = 'turned';
VACUUM (FREEZE, INDEX_CLEANUP on) vo;
SET vo.mode = 'off';
SELECT hyb_check('vo');
-- what was done in the other order counts as done
DELETE FROM vo WHERE n % 20 = 0;
VACUUM (INDEX_CLEANUP on) vo;
SELECT total_pages < 40 AS shrunk FROM hybrid_index_stats('vo_k');

-- the same in parallel
SET min_parallel_index_scan_size = 0;
CREATE INDEX vo_n ON vo USING hybrid (n);
CREATE INDEX vo_kn ON vo USING hybrid (k vo_ops, n) INCLUDE (pad);
SELECT vo_fill(5000);
SELECT hybrid_merge('vo_k') > 0 AS merged, hybrid_merge('vo_kn') > 0 AS merged;
DELETE FROM vo WHERE n % 10 > 0;
SET vo.mode = 'fails';
SET client_min_messages = error;
VACUUM (FREEZE, INDEX_CLEANUP on, PARALLEL 2) vo;
RESET client_min_messages;
SET vo.mode = 'off';
SELECT hyb_check('vo');
DROP TABLE vo;

-- an order that ALTER TYPE changes
CREATE TYPE vo_pair AS (a int, b int);
CREATE TABLE vo_p (k vo_pair) WITH (autovacuum_enabled = off);
CREATE INDEX vo_p_k ON vo_p USING hybrid (k);
INSERT INTO vo_p SELECT ROW(g % 10, g)::vo_pair FROM generate_series(1, 30000) g;
SELECT hybrid_merge('vo_p_k') > 0 AS merged;
INSERT INTO vo_p SELECT ROW(g % 10, g)::vo_pair FROM generate_series(1, 3000) g;
ALTER TYPE vo_pair DROP ATTRIBUTE a;
DELETE FROM vo_p WHERE (k).b % 10 > 0;
VACUUM (FREEZE, INDEX_CLEANUP on) vo_p;
SELECT age(relfrozenxid) < 10 AS frozen FROM pg_class WHERE relname = 'vo_p';
REINDEX INDEX vo_p_k;
SELECT hyb_check('vo_p');
VACUUM (FREEZE, INDEX_CLEANUP on) vo_p;
