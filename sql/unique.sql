--
-- Unique indexes and exclusion constraints refuse what btree refuses over a twin
-- table, with the same words.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE uq_h (id int, a int, b text COLLATE "C");
CREATE TABLE uq_b (id int, a int, b text COLLATE "C");
CREATE UNIQUE INDEX uq_h_a ON uq_h USING hybrid (a);
CREATE UNIQUE INDEX uq_b_a ON uq_b (a);
CREATE UNIQUE INDEX uq_h_ab ON uq_h USING hybrid (b, id) WHERE id > 0;
CREATE UNIQUE INDEX uq_b_ab ON uq_b (b, id) WHERE id > 0;
CREATE UNIQUE INDEX uq_h_e ON uq_h USING hybrid ((a + 1), lower(b));
CREATE UNIQUE INDEX uq_b_e ON uq_b ((a + 1), lower(b));

-- Run a statement on both twins (%s is h or b); true if both fail or both
-- succeed, with the same words.
CREATE FUNCTION uq_twin(stmt text, OUT same boolean, OUT outcome text) LANGUAGE plpgsql AS $$
DECLARE
	b	text;
BEGIN
	outcome := hyb_error(replace(stmt, '%s', 'h'));
	b := hyb_error(replace(stmt, '%s', 'b'));
	same := regexp_replace(outcome, 'uq_([no]?)h', 'uq_\1b', 'g') = b;
	IF NOT same THEN
		RAISE WARNING 'hybrid: %, btree: %', outcome, b;
	END IF;
END $$;
SELECT t.* FROM unnest(array[
	'INSERT INTO uq_%s SELECT i, i, ''x'' || i FROM generate_series(1, 500) i',
	'INSERT INTO uq_%s VALUES (501, 77, ''y'')',
	'INSERT INTO uq_%s VALUES (77, 501, ''x77'')',
	'INSERT INTO uq_%s VALUES (-1, NULL, NULL), (-1, NULL, NULL)',
	'INSERT INTO uq_%s VALUES (601, 601, ''a''), (602, 601, ''b'')',
	'UPDATE uq_%s SET a = 10 WHERE a = 11',
	'UPDATE uq_%s SET a = a WHERE a < 100',
	'UPDATE uq_%s SET a = a + 1 WHERE a IS NOT NULL',
	'UPDATE uq_%s SET a = a + 1000 WHERE a IS NOT NULL',
	'DELETE FROM uq_%s WHERE a = 1005',
	'INSERT INTO uq_%s VALUES (5, 1005, ''x5'')',
	'INSERT INTO uq_%s VALUES (7, 9999, ''x7'')',
	'INSERT INTO uq_%s VALUES (-7, 1007, ''x7'')']) s, uq_twin(s) t;
SELECT hybrid_merge('uq_h_a') > 0, hybrid_merge('uq_h_ab') > 0, hybrid_merge('uq_h_e') > 0;
SELECT t.* FROM unnest(array[
	'INSERT INTO uq_%s VALUES (501, 1077, ''y'')',
	'INSERT INTO uq_%s VALUES (77, 5501, ''x77'')',
	'UPDATE uq_%s SET b = upper(b)',
	'DELETE FROM uq_%s WHERE a = 1008',
	'INSERT INTO uq_%s VALUES (8, 1008, ''x8'')',
	'INSERT INTO uq_%s VALUES (8, 1008, ''x8'')',
	'INSERT INTO uq_%s SELECT * FROM uq_%s',
	'INSERT INTO uq_%s VALUES (9000, NULL, ''x9'')']) s, uq_twin(s) t;

-- a key freed by its own transaction, by an abort, by a savepoint's abort
BEGIN;
DELETE FROM uq_h WHERE a = 1020;
INSERT INTO uq_h VALUES (20, 1020, 'x20');
SAVEPOINT s;
INSERT INTO uq_h VALUES (9001, 9001, 'q');
ROLLBACK TO s;
INSERT INTO uq_h VALUES (9001, 9001, 'q');
ROLLBACK;
INSERT INTO uq_h VALUES (9001, 9001, 'q');
DELETE FROM uq_h WHERE a = 9001;
SELECT hyb_error('INSERT INTO uq_h VALUES (20, 1020, ''x20'')');
VACUUM uq_h;
SELECT hyb_check('uq_h');
DELETE FROM uq_b WHERE a = 9001;
SELECT (SELECT array_agg(t::text ORDER BY t::text COLLATE "C") FROM uq_h t) =
	(SELECT array_agg(t::text ORDER BY t::text COLLATE "C") FROM uq_b t) AS twins_equal;

-- In one transaction: a key that goes and comes back, rows that keep their keys,
-- rows that ON CONFLICT updates twice, and what a savepoint undoes.  The rows
-- are in the log first, then in leaves.
CREATE TABLE uq_oh (a int, v int) WITH (autovacuum_enabled = off);
CREATE TABLE uq_ob (a int, v int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX uq_oh_a ON uq_oh USING hybrid (a);
CREATE UNIQUE INDEX uq_ob_a ON uq_ob (a);
CREATE INDEX uq_oh_v ON uq_oh USING hybrid (v);
CREATE INDEX uq_ob_v ON uq_ob (v);
INSERT INTO uq_oh SELECT i, i FROM generate_series(1, 100) i;
INSERT INTO uq_ob SELECT i, i FROM generate_series(1, 100) i;
CREATE FUNCTION uq_own() RETURNS TABLE (same boolean, outcome text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT t.* FROM unnest(array[
		'DELETE FROM uq_o%s WHERE a = 20', 'INSERT INTO uq_o%s VALUES (20, 0)',
		'DELETE FROM uq_o%s WHERE a = 20', 'INSERT INTO uq_o%s VALUES (20, 1)', 'INSERT INTO uq_o%s VALUES (20, 2)',
		'UPDATE uq_o%s SET a = a, v = v + 1 WHERE a < 30', 'UPDATE uq_o%s SET a = 20 WHERE a = 20', 'UPDATE uq_o%s SET a = 20 WHERE a = 21',
		'INSERT INTO uq_o%s VALUES (40, 0) ON CONFLICT (a) DO UPDATE SET v = uq_o%s.v + 1',
		'INSERT INTO uq_o%s VALUES (40, 0), (101, 0) ON CONFLICT (a) DO UPDATE SET v = uq_o%s.v + 1',
		'INSERT INTO uq_o%s VALUES (101, 0) ON CONFLICT (a) DO UPDATE SET v = uq_o%s.v + 1',
		'INSERT INTO uq_o%s VALUES (101, 0) ON CONFLICT DO NOTHING', 'DELETE FROM uq_o%s WHERE a = 101']) s, uq_twin(s) t;
	BEGIN
		DELETE FROM uq_oh WHERE a = 50;
		INSERT INTO uq_oh VALUES (50, 0), (102, 0);
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
	END;
	RETURN QUERY SELECT t.* FROM unnest(array[
		'INSERT INTO uq_o%s VALUES (50, 0)', 'INSERT INTO uq_o%s VALUES (102, 0)', 'DELETE FROM uq_o%s WHERE a = 102',
		'INSERT INTO uq_o%s VALUES (102, 1)', 'DELETE FROM uq_o%s WHERE a = 102']) s, uq_twin(s) t;
END $$;
SELECT same, outcome, count(*) FROM uq_own() GROUP BY 1, 2 ORDER BY 3;
SELECT same, outcome, count(*) FROM uq_own() GROUP BY 1, 2 ORDER BY 3;
SELECT hybrid_merge('uq_oh_a') > 0;
SELECT same, outcome, count(*) FROM uq_own() GROUP BY 1, 2 ORDER BY 3;
SELECT hyb_check('uq_oh'), count(*), bool_and(h.v = b.v) AS same FROM uq_oh h FULL JOIN uq_ob b USING (a);
DROP TABLE uq_oh, uq_ob;
DROP FUNCTION uq_own;

-- NULLS NOT DISTINCT
CREATE TABLE uq_nh (a int, b int);
CREATE TABLE uq_nb (a int, b int);
CREATE UNIQUE INDEX uq_nh_i ON uq_nh USING hybrid (a, b) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX uq_nb_i ON uq_nb (a, b) NULLS NOT DISTINCT;
SELECT t.* FROM unnest(array[
	'INSERT INTO uq_n%s VALUES (NULL, NULL), (NULL, 1), (1, NULL), (1, 1)',
	'INSERT INTO uq_n%s VALUES (NULL, NULL)',
	'INSERT INTO uq_n%s VALUES (NULL, 1)',
	'INSERT INTO uq_n%s VALUES (1, NULL)',
	'INSERT INTO uq_n%s VALUES (2, NULL)',
	'UPDATE uq_n%s SET a = NULL WHERE a = 2']) s, uq_twin(s) t;
SELECT hybrid_merge('uq_nh_i') > 0;
SELECT t.* FROM unnest(array[
	'INSERT INTO uq_n%s VALUES (NULL, NULL)',
	'INSERT INTO uq_n%s VALUES (2, NULL)']) s, uq_twin(s) t;
SELECT hyb_error('INSERT INTO uq_nb VALUES (NULL, NULL)') LIKE '23505%', hyb_check('uq_nh');

-- building over duplicates
CREATE TABLE uq_dh (a int, b text);
CREATE TABLE uq_db (a int, b text);
INSERT INTO uq_dh VALUES (1, 'x'), (2, 'y'), (2, 'z'), (NULL, 'x'), (NULL, 'z');
INSERT INTO uq_db SELECT * FROM uq_dh;
SELECT hyb_error('CREATE UNIQUE INDEX uq_dh_i ON uq_dh USING hybrid (a)') = replace(hyb_error('CREATE UNIQUE INDEX uq_db_i ON uq_db (a)'), 'uq_db', 'uq_dh') AS same;
SELECT hyb_error('CREATE UNIQUE INDEX uq_dh_i ON uq_dh USING hybrid (b)');
SELECT hyb_error('CREATE UNIQUE INDEX uq_dh_i ON uq_dh USING hybrid ((a IS NULL)) NULLS NOT DISTINCT');
DELETE FROM uq_dh WHERE b = 'z';
SELECT hyb_error('CREATE UNIQUE INDEX uq_dh_i ON uq_dh USING hybrid (a) NULLS NOT DISTINCT');
SELECT hyb_error('INSERT INTO uq_dh VALUES (NULL, ''w'')');

-- concurrent builds
CREATE TABLE uq_ch (a int);
INSERT INTO uq_ch SELECT i FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX CONCURRENTLY uq_ch_i ON uq_ch USING hybrid (a);
SELECT hyb_error('INSERT INTO uq_ch VALUES (500)');
INSERT INTO uq_ch VALUES (1001);
REINDEX INDEX CONCURRENTLY uq_ch_i;
SELECT hyb_error('INSERT INTO uq_ch VALUES (1001)');
INSERT INTO uq_ch VALUES (1002);
REINDEX INDEX uq_ch_i;
REINDEX TABLE CONCURRENTLY uq_ch;
SELECT hyb_error('INSERT INTO uq_ch VALUES (1002)');
SELECT hyb_same('SELECT a FROM uq_ch WHERE a > 990'), hyb_check('uq_ch'),
	count(*), bool_and(indisvalid AND indisready AND indisunique) FROM pg_index WHERE indrelid = 'uq_ch'::regclass;
DROP INDEX uq_ch_i;
INSERT INTO uq_ch VALUES (7);
CREATE UNIQUE INDEX CONCURRENTLY uq_ch_i ON uq_ch USING hybrid (a);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'uq_ch_i'::regclass;
DELETE FROM uq_ch WHERE ctid = (SELECT max(ctid) FROM uq_ch WHERE a = 7);
REINDEX INDEX CONCURRENTLY uq_ch_i;
SELECT indisvalid, hyb_check('uq_ch') FROM pg_index WHERE indexrelid = 'uq_ch_i'::regclass;

-- exclusion constraints, immediate and deferred
CREATE TABLE uq_x (a int, b int,
	EXCLUDE USING hybrid (a WITH =) WHERE (a > 0),
	CONSTRAINT uq_x_def EXCLUDE USING hybrid (b WITH =, a WITH =) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO uq_x SELECT i, i % 10 FROM generate_series(1, 200) i;
SELECT hyb_error('INSERT INTO uq_x VALUES (50, 99)');
INSERT INTO uq_x VALUES (50, 98) ON CONFLICT DO NOTHING;
SELECT count(*) FROM uq_x WHERE a = 50;
BEGIN;
INSERT INTO uq_x VALUES (-1, 1), (-1, 1), (-1, 1);
DELETE FROM uq_x WHERE ctid IN (SELECT ctid FROM uq_x WHERE a = -1 OFFSET 1);
COMMIT;
BEGIN;
INSERT INTO uq_x VALUES (-1, 1);
SET CONSTRAINTS uq_x_def IMMEDIATE;
ROLLBACK;
BEGIN;
INSERT INTO uq_x VALUES (-1, 1);
COMMIT;
SELECT hybrid_merge(indexrelid::regclass) > 0 FROM pg_index WHERE indrelid = 'uq_x'::regclass;
SELECT hyb_error('INSERT INTO uq_x VALUES (51, 99)');
BEGIN;
INSERT INTO uq_x VALUES (-1, 1);
COMMIT;
SELECT count(*), hyb_check('uq_x') FROM uq_x WHERE a = -1;
SELECT hyb_error('ALTER TABLE uq_x ADD EXCLUDE USING hybrid (a WITH <)');
SELECT hyb_error('ALTER TABLE uq_x ADD EXCLUDE USING hybrid (b WITH =)');

-- The checks of a deferrable unique constraint (UNIQUE_CHECK_PARTIAL and
-- UNIQUE_CHECK_EXISTING).  SQL makes such constraints with btree only, so one
-- is put together in the catalogs.
CREATE TABLE uq_def (a int);
CREATE UNIQUE INDEX uq_def_i ON uq_def USING hybrid (a);
CREATE CONSTRAINT TRIGGER uq_def_recheck AFTER INSERT OR UPDATE ON uq_def
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION unique_key_recheck();
UPDATE pg_trigger SET tgconstrindid = 'uq_def_i'::regclass WHERE tgname = 'uq_def_recheck';
UPDATE pg_index SET indimmediate = false WHERE indexrelid = 'uq_def_i'::regclass;
INSERT INTO uq_def SELECT i FROM generate_series(1, 100) i;
UPDATE uq_def SET a = a + 1;
BEGIN;
INSERT INTO uq_def VALUES (50);
DELETE FROM uq_def WHERE ctid = (SELECT min(ctid) FROM uq_def WHERE a = 50);
COMMIT;
BEGIN;
INSERT INTO uq_def VALUES (50), (1), (51);
COMMIT;
SELECT hybrid_merge('uq_def_i') > 0;
BEGIN;
INSERT INTO uq_def VALUES (50);
COMMIT;
UPDATE uq_def SET a = 102 - a;
SELECT count(*), count(DISTINCT a), min(a), max(a), hyb_check('uq_def') FROM uq_def;

-- versions of a key fill several leaves, and only the last one is there
BEGIN;
INSERT INTO uq_def SELECT 77 FROM generate_series(1, 20000);
SELECT hybrid_merge('uq_def_i') > 0;
DELETE FROM uq_def WHERE a = 77 AND ctid <> (SELECT max(ctid) FROM uq_def WHERE a = 77);
COMMIT;
BEGIN;
INSERT INTO uq_def VALUES (77);
COMMIT;
SELECT count(*) FROM uq_def WHERE a = 77;

-- While a merge is under way, keys that it has moved, keys that wait for it,
-- and those inserted since are all found.
CREATE TABLE uq_merge (k int);
CREATE UNIQUE INDEX uq_merge_k ON uq_merge USING hybrid (k) WITH (merge_ratio = 1000);
SET hybridindex.background_merge = off;
INSERT INTO uq_merge SELECT i * 7919 % 100003 FROM generate_series(1, 20000) i;
SELECT hybrid_merge('uq_merge_k') > 0;
SET hybridindex.merge_floor = 100;
SET hybridindex.merge_step_pages = 1;
DO $$
BEGIN
	FOR i IN 1 .. 50 LOOP
		INSERT INTO uq_merge SELECT j * 7919 % 100003 FROM generate_series(20000 + i * 100, 20099 + i * 100) j;
		EXIT WHEN (SELECT merge_running FROM hybrid_index_stats('uq_merge_k'));
	END LOOP;
END $$;
INSERT INTO uq_merge SELECT i * 7919 % 100003 FROM generate_series(40001, 40050) i;
CREATE FUNCTION uq_accepted(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	key			int;
	accepted	int := 0;
BEGIN
	FOR key IN SELECT k FROM uq_merge ORDER BY ctid DESC LIMIT n LOOP
		BEGIN
			INSERT INTO uq_merge VALUES (key);
			accepted := accepted + 1;
		EXCEPTION WHEN unique_violation THEN
		END;
	END LOOP;
	RETURN accepted;
END $$;
SELECT uq_accepted(2500) AS accepted, merge_running FROM hybrid_index_stats('uq_merge_k');
SELECT count(*) = count(DISTINCT k) AS different, hyb_check('uq_merge') FROM uq_merge;
RESET hybridindex.background_merge;
RESET hybridindex.merge_floor;
RESET hybridindex.merge_step_pages;
DROP TABLE uq_merge;
DROP FUNCTION uq_accepted;

-- An entry that VACUUM has removed, from a leaf or the log, does not conflict,
-- though another row has got its line pointer.
CREATE TABLE uq_vac (k int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX uq_vac_k ON uq_vac USING hybrid (k);
INSERT INTO uq_vac SELECT i FROM generate_series(1, 500) i;
SELECT hybrid_merge('uq_vac_k');
INSERT INTO uq_vac SELECT i FROM generate_series(501, 600) i;
SELECT hyb_quiet();
DELETE FROM uq_vac WHERE k IN (100, 550);
VACUUM (INDEX_CLEANUP on) uq_vac;
INSERT INTO uq_vac VALUES (1001), (1002);
SELECT count(*) AS reused FROM uq_vac WHERE k > 1000 AND ctid < (SELECT max(ctid) FROM uq_vac);
INSERT INTO uq_vac VALUES (100), (550);
SELECT hyb_error('INSERT INTO uq_vac VALUES (100)'), hyb_error('INSERT INTO uq_vac VALUES (1002)'), hyb_check('uq_vac');
DROP TABLE uq_vac;

-- The row may be behind more than 64 entries of its key that wait for a merge:
-- each update of another indexed column leaves one.
CREATE TABLE uq_many (k int, v int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX uq_many_k ON uq_many USING hybrid (k);
CREATE INDEX uq_many_v ON uq_many USING hybrid (v);
INSERT INTO uq_many VALUES (1, 0);
DO $$ BEGIN FOR i IN 1 .. 200 LOOP UPDATE uq_many SET v = v + 1; END LOOP; END $$;
SELECT dynamic_entries FROM hybrid_index_stats('uq_many_k');
SELECT hyb_error('INSERT INTO uq_many VALUES (1, 0)'), hyb_check('uq_many');
DROP TABLE uq_many;

-- CREATE UNIQUE INDEX where a single row is recently dead: its entry is kept,
-- and does not count as a duplicate.
CREATE TABLE uq_dead (k int);
INSERT INTO uq_dead SELECT generate_series(1, 100);
BEGIN;
DELETE FROM uq_dead WHERE k = 50;
INSERT INTO uq_dead VALUES (50);
SELECT hyb_error('CREATE UNIQUE INDEX uq_dead_k ON uq_dead USING hybrid (k)');
COMMIT;
SELECT hyb_error('INSERT INTO uq_dead VALUES (50)'), hyb_check('uq_dead');
DROP TABLE uq_dead;

-- ON CONFLICT
INSERT INTO uq_ch VALUES (7), (2000) ON CONFLICT DO NOTHING RETURNING a;
INSERT INTO uq_ch VALUES (7), (2001) ON CONFLICT (a) DO UPDATE SET a = -excluded.a RETURNING a;
SELECT hyb_error('INSERT INTO uq_ch VALUES (8), (8) ON CONFLICT (a) DO UPDATE SET a = 8');

DROP TABLE uq_h, uq_b, uq_nh, uq_nb, uq_dh, uq_db, uq_ch, uq_x, uq_def;
DROP FUNCTION uq_twin;
