-- Indexes of hybrid_hot: their columns change in HOT updates, and each answer is that of
-- a sequential scan.  Servers before 16 have no such access method (hot_updates_1.out).
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SELECT current_setting('server_version_num')::int < 160000 AS too_old \gset
\if :too_old
SELECT amname FROM pg_am WHERE amname = 'hybrid_hot';
\quit
\endif

SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1;

-- Each path of the planner gives the rows of a sequential scan, in order for ranges.
CREATE FUNCTION hot_paths(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	expected text;
	found text;
	path text;
BEGIN
	PERFORM set_config('enable_indexscan', 'off', true);
	PERFORM set_config('enable_bitmapscan', 'off', true);
	PERFORM set_config('enable_seqscan', 'on', true);
	EXECUTE 'SELECT coalesce(string_agg(q::text, '','' ORDER BY q::text), '''') FROM (' || query || ') q' INTO expected;
	FOREACH path IN ARRAY ARRAY['enable_indexscan', 'enable_bitmapscan']
	LOOP
		PERFORM set_config('enable_seqscan', 'off', true);
		PERFORM set_config('enable_indexscan', 'off', true);
		PERFORM set_config('enable_bitmapscan', 'off', true);
		PERFORM set_config(path, 'on', true);
		EXECUTE 'SELECT coalesce(string_agg(q::text, '','' ORDER BY q::text), '''') FROM (' || query || ') q' INTO found;
		IF found IS DISTINCT FROM expected THEN
			RETURN path || ': ' || left(found, 200) || ' instead of ' || left(expected, 200);
		END IF;
	END LOOP;
	RETURN 'same';
END $$;

CREATE TABLE hot (id int PRIMARY KEY, a int, k int, v text) WITH (fillfactor = 30, autovacuum_enabled = off);
INSERT INTO hot SELECT i, i, hashint4(i) % 500, 'row ' || i FROM generate_series(1, 2000) i;
CREATE INDEX hot_a ON hot (a);
CREATE INDEX hot_k ON hot USING hybrid_hot (k);
CREATE INDEX hot_part ON hot USING hybrid_hot (v) WHERE k % 2 = 0;
CREATE INDEX hot_expr ON hot USING hybrid_hot ((k * 2), v);

CREATE FUNCTION hot_updates() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT pg_stat_get_xact_tuples_hot_updated('hot'::regclass) $$;

-- updates of their columns are HOT
BEGIN;
UPDATE hot SET k = k + 1 WHERE id % 3 = 0;
UPDATE hot SET k = k - 2, v = v || '!' WHERE id % 5 = 0;
SELECT hot_updates() = (SELECT count(*) FILTER (WHERE id % 3 = 0) + count(*) FILTER (WHERE id % 5 = 0) FROM hot) AS all_hot;
SELECT hot_paths('SELECT id, k FROM hot WHERE k = 7');
SELECT hot_paths('SELECT id, k FROM hot WHERE k BETWEEN 5 AND 30');
COMMIT;
-- ... and others too, whose entries need not be added again
BEGIN;
SELECT hot_updates() AS before \gset
UPDATE hot SET v = v || '?' WHERE id % 7 = 0;
SELECT hot_updates() - :before = count(*) AS all_hot FROM hot WHERE id % 7 = 0;
COMMIT;

CREATE FUNCTION hot_same() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT hot_paths(q) FROM (VALUES
		('SELECT id, k FROM hot WHERE k = 7'),
		('SELECT id, k FROM hot WHERE k IN (7, 8, 9, 400, -3)'),
		('SELECT id, k FROM hot WHERE k BETWEEN 5 AND 30'),
		('SELECT id, k FROM hot WHERE k > 480 OR k IS NULL'),
		('SELECT id, k FROM hot WHERE k IS NULL'),
		('SELECT id, v FROM hot WHERE k % 2 = 0 AND v BETWEEN ''row 2'' AND ''row 3'''),
		('SELECT id, v FROM hot WHERE k % 2 = 0 AND v = ''row 202'''),
		('SELECT id, v FROM hot WHERE k * 2 = 14'),
		('SELECT id, v FROM hot WHERE k * 2 BETWEEN 10 AND 60')) AS t (q)
$$;

SELECT * FROM hot_same();
-- in order, and backward
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT array_agg(k) = array_agg(k ORDER BY k) AS ordered, count(*) FROM (SELECT k FROM hot WHERE k BETWEEN 5 AND 100 ORDER BY k) t;
SELECT array_agg(k) = array_agg(k ORDER BY k DESC) AS ordered, count(*) FROM (SELECT k FROM hot WHERE k BETWEEN 5 AND 100 ORDER BY k DESC) t;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM hot WHERE k BETWEEN 5 AND 6 ORDER BY k;
FETCH ALL c;
FETCH BACKWARD ALL c;
FETCH 2 c;
FETCH BACKWARD 1 c;
COMMIT;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- NULLs and keys that come back
UPDATE hot SET k = NULL WHERE id % 11 = 0;
UPDATE hot SET k = id WHERE id % 22 = 0;
UPDATE hot SET k = NULL WHERE id % 22 = 0;
SELECT * FROM hot_same();

-- an update that brings rows into a partial index, or out of it, with an equal key
UPDATE hot SET k = k + 1 WHERE id % 2 = 0;
UPDATE hot SET k = k + 1 WHERE id % 4 = 0;
SELECT * FROM hot_same();

-- a row that has left the index, but not its entry
UPDATE hot SET k = 4, v = 'left' WHERE id = 200;
UPDATE hot SET k = 5 WHERE id = 200;
SELECT hot_paths('SELECT id, v FROM hot WHERE k % 2 = 0 AND v = ''left''');

-- what merges leave, and leave out
SELECT hybrid_index_check(i::regclass, true) FROM unnest('{hot_k,hot_part,hot_expr}'::text[]) i;
SELECT sum(hybrid_merge(i::regclass)) > 0 AS merged FROM unnest('{hot_k,hot_part,hot_expr}'::text[]) i;
SELECT * FROM hot_same();
SELECT hybrid_index_check(i::regclass, true) FROM unnest('{hot_k,hot_part,hot_expr}'::text[]) i;
VACUUM hot;
SELECT * FROM hot_same();

-- stale entries go once there are enough of them, by merges of the statements that add them
DO $$
BEGIN
	FOR i IN 1 .. 10 LOOP
		UPDATE hot SET k = k + i WHERE id % 2 = i % 2;
		COMMIT;
	END LOOP;
END $$;
SELECT merges > 0 AS merged, static_entries < 7000 AS few FROM hybrid_index_stats('hot_k');
VACUUM hot;
SELECT hybrid_merge('hot_k') >= 0 AS merged;
UPDATE hot SET k = k WHERE false;
SELECT levels > 1 OR static_entries <= 2 * 2000 AS few, dynamic_entries FROM hybrid_index_stats('hot_k');
SELECT * FROM hot_same();
SELECT hybrid_index_check(i::regclass, true) FROM unnest('{hot_k,hot_part,hot_expr}'::text[]) i;

-- undone updates
BEGIN;
UPDATE hot SET k = 10000;
SAVEPOINT s;
UPDATE hot SET k = 20000 WHERE id < 100;
ROLLBACK TO s;
SELECT count(*) FROM hot WHERE k = 10000;
ROLLBACK;
SELECT * FROM hot_same();
BEGIN;
SAVEPOINT s;
UPDATE hot SET k = 30000 WHERE id < 100;
ROLLBACK TO s;
UPDATE hot SET k = 30000 WHERE id < 50;
COMMIT;
SELECT hot_paths('SELECT id FROM hot WHERE k = 30000');

-- deleted rows, and line pointers that are used again
DELETE FROM hot WHERE id % 3 = 1;
VACUUM hot;
INSERT INTO hot SELECT 10000 + i, i, hashint4(i + 7) % 500, 'row ' || i FROM generate_series(1, 900) i;
SELECT * FROM hot_same();
SELECT hybrid_index_check(i::regclass, true) FROM unnest('{hot_k,hot_part,hot_expr}'::text[]) i;
SELECT sum(hybrid_merge(i::regclass)) > 0 AS merged FROM unnest('{hot_k,hot_part,hot_expr}'::text[]) i;
SELECT * FROM hot_same();

-- the table's end is cut off: entries outlive it
DELETE FROM hot WHERE id >= 600;
VACUUM (TRUNCATE) hot;
SELECT * FROM hot_same();
SELECT hybrid_index_check(i::regclass, true) FROM unnest('{hot_k,hot_part,hot_expr}'::text[]) i;

-- builds: each row version that a snapshot may see has an entry
UPDATE hot SET k = k + 1000 WHERE id % 2 = 1;
REINDEX INDEX hot_k;
SELECT * FROM hot_same();
REINDEX INDEX CONCURRENTLY hot_k;
REINDEX INDEX CONCURRENTLY hot_part;
SELECT * FROM hot_same();
CREATE INDEX CONCURRENTLY hot_ck ON hot USING hybrid_hot (k DESC NULLS LAST, id);
-- validation inserts each row again, and finds the entries of the build
SELECT static_entries > 0 AS built, dynamic_entries FROM hybrid_index_stats('hot_ck');
SELECT hot_paths('SELECT id, k FROM hot WHERE k BETWEEN 5 AND 300 ORDER BY k DESC NULLS LAST, id');
SELECT hybrid_index_check(i::regclass, true) FROM unnest('{hot_k,hot_part,hot_expr,hot_ck}'::text[]) i;
SELECT indexrelid::regclass, indisvalid, indcheckxmin FROM pg_index WHERE indrelid = 'hot'::regclass ORDER BY indexrelid::regclass::text;

-- types whose equal values have different bytes, and long ones
CREATE TABLE hot_types (id int PRIMARY KEY, n numeric, f float8, t text COLLATE "C", l text)
	WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO hot_types SELECT i, i, i, 'text ' || i, repeat(md5(i::text), 50) FROM generate_series(1, 300) i;
CREATE INDEX hot_n ON hot_types USING hybrid_hot (n);
CREATE INDEX hot_f ON hot_types USING hybrid_hot (f);
CREATE INDEX hot_t ON hot_types USING hybrid_hot (t text_hope_ops);
CREATE INDEX hot_l ON hot_types USING hybrid_hot (l);
UPDATE hot_types SET n = n + 0.0, f = -f, t = t || 'x', l = l || 'y' WHERE id % 2 = 0;
UPDATE hot_types SET n = n * 1.00, f = 0 WHERE id % 3 = 0;
UPDATE hot_types SET f = '-0' WHERE id % 6 = 0;
SELECT hot_paths(q) FROM (VALUES
	('SELECT id, n FROM hot_types WHERE n = 12'),
	('SELECT id, n FROM hot_types WHERE n BETWEEN 12 AND 40'),
	('SELECT id, f FROM hot_types WHERE f = 0'),
	('SELECT id, f FROM hot_types WHERE f BETWEEN -20 AND 20'),
	('SELECT id, t FROM hot_types WHERE t BETWEEN ''text 1'' AND ''text 2'''),
	('SELECT id FROM hot_types WHERE l BETWEEN ''2'' AND ''4''')) AS t (q);
SELECT sum(hybrid_merge(i::regclass)) > 0 AS merged FROM unnest('{hot_n,hot_f,hot_t,hot_l}'::text[]) i;
SELECT hybrid_index_check(i::regclass, true) FROM unnest('{hot_n,hot_f,hot_t,hot_l}'::text[]) i;

-- a dictionary that is learned of keys that came back to their chains
CREATE TABLE hot_learned (id int PRIMARY KEY, v text COLLATE "C") WITH (fillfactor = 10, autovacuum_enabled = off);
CREATE INDEX hot_v ON hot_learned USING hybrid_hot (v text_hope_ops (scheme = 'alm-improved'));
SET hybridindex.merge_floor = 100000;
INSERT INTO hot_learned SELECT i, 'customer number and something ' || i || ' of the land' FROM generate_series(1, 800) i;
UPDATE hot_learned SET v = v || 'x';
UPDATE hot_learned SET v = 'customer number and something ' || id || ' of the land';
SET client_min_messages = warning;
SELECT hybrid_merge('hot_v');
RESET client_min_messages;
SELECT hybrid_index_check('hot_v', true), learned FROM hybrid_dictionary_info('hot_v');
SET hybridindex.merge_floor = 1;
SELECT hot_paths($$SELECT id FROM hot_learned WHERE v < 'customer number and something 3'$$);

-- the check finds a lost entry, also where equal keys have several forms
CREATE FUNCTION hot_loses(index regclass, change text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	UPDATE pg_index SET indisready = false WHERE indexrelid = index;
	EXECUTE change;
	UPDATE pg_index SET indisready = true WHERE indexrelid = index;
	PERFORM hybrid_index_check(index, true);
	RETURN 'nothing found';
EXCEPTION WHEN index_corrupted THEN
	RETURN regexp_replace(SQLERRM, '[(][0-9,]+[)]', '(...)');
END $$;
SELECT hot_loses('hot_k', 'UPDATE hot SET k = 77777 WHERE id = 9');
SELECT hot_loses('hot_expr', 'UPDATE hot SET k = 88888 WHERE id = 9');
SELECT hot_loses('hot_n', 'UPDATE hot_types SET n = 77777 WHERE id = 7');
SELECT hot_loses('hot_n', 'UPDATE hot_types SET n = n + 0.000 WHERE id = 7');
SELECT hot_loses('hot_f', 'UPDATE hot_types SET f = 77777 WHERE id = 7');
SELECT hot_loses('hot_f', 'UPDATE hot_types SET f = -f WHERE f = 0');

CREATE TABLE hot_count (id int, k int) WITH (fillfactor = 50);
INSERT INTO hot_count SELECT i, i FROM generate_series(1, 1000) i;

-- look-ups go the short way: a key that came back is in the log and in levels, and its row
-- comes once, in either direction
SET hybridindex.merge_floor = 1000000;
CREATE TABLE hot_look (id int, k int, j int) WITH (fillfactor = 10, autovacuum_enabled = off);
INSERT INTO hot_look SELECT i, i, i / 10 FROM generate_series(1, 300) i;
CREATE INDEX hot_look_k ON hot_look USING hybrid_hot (k);
CREATE INDEX hot_look_id ON hot_look USING hybrid_hot (id) WHERE j <> 3;
UPDATE hot_look SET k = k + 1000, j = 7;
UPDATE hot_look SET k = k - 1000, j = id / 10;
UPDATE hot_look SET k = 42 WHERE id IN (7, 70, 150);
UPDATE hot_look SET j = 3 WHERE id = 200;
SELECT static_entries, dynamic_entries FROM hybrid_index_stats('hot_look_k');
SELECT hot_paths('SELECT id FROM hot_look WHERE k = ' || k) FROM unnest('{7,8,42,150,1042,1300,-1}'::int[]) k
	UNION SELECT hot_paths('SELECT j FROM hot_look WHERE j <> 3 AND id = ' || id) FROM unnest('{30,42,200}'::int[]) id;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM hot_look WHERE k = 42;
FETCH 2 c;
FETCH BACKWARD 1 c;
FETCH ALL c;
FETCH BACKWARD ALL c;
FETCH ALL c;
COMMIT;
-- a chain that is dead to all is hinted at, and its line pointer used again
DELETE FROM hot_look WHERE k = 42;
SELECT id FROM hot_look WHERE k = 42;
SELECT id FROM hot_look WHERE k = 42;
VACUUM hot_look;
INSERT INTO hot_look SELECT 1000 + i, 42, 0 FROM generate_series(1, 3) i;
SELECT id FROM hot_look WHERE k = 42 ORDER BY id;
SELECT hot_paths('SELECT id FROM hot_look WHERE k = 42');
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE hot_look;
SET hybridindex.merge_floor = 1;

-- scans call functions of expressions, but not in workers unless these are parallel safe
CREATE FUNCTION hot_unsafe(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN k; END $$;
CREATE FUNCTION hot_safe(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$ BEGIN RETURN k; END $$;
CREATE INDEX hot_count_unsafe ON hot_count USING hybrid_hot (k, hot_unsafe(id));
SET debug_parallel_query = on;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(id) FROM hot_count WHERE k BETWEEN 7 AND 500;
DROP INDEX hot_count_unsafe;
CREATE INDEX hot_count_safe ON hot_count USING hybrid_hot (k, hot_safe(id));
EXPLAIN (COSTS OFF) SELECT count(id) FROM hot_count WHERE k BETWEEN 7 AND 500;
SELECT count(id) FROM hot_count WHERE k BETWEEN 7 AND 500;
RESET debug_parallel_query;
-- an index-only scan, where no column is asked for, looks at the rows, and the planner knows
CREATE INDEX hot_count_btree ON hot_count (id);
VACUUM ANALYZE hot_count;
EXPLAIN (COSTS OFF) SELECT count(*) FROM hot_count;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- it reads the ends of a column from the index
EXPLAIN (COSTS OFF) SELECT id FROM hot_count WHERE k > 999;

-- conversions
CREATE SCHEMA hot_schema;
CREATE TABLE hot_schema.c (id int PRIMARY KEY, t text COLLATE "C", k int, j int, EXCLUDE USING btree (j WITH =));
INSERT INTO hot_schema.c SELECT i, 'text ' || i, i, i FROM generate_series(1, 1000) i;
SET client_min_messages = warning;
CREATE INDEX c_t ON hot_schema.c USING hybrid (t text_hope_ops (scheme = 'alm-improved'));
RESET client_min_messages;
CREATE INDEX c_trie ON hot_schema.c USING hybrid (k) WITH (layout = trie);
CREATE INDEX c_btree ON hot_schema.c (k, t);
SET client_min_messages = warning;
SELECT hybrid_convert_hot(i::regclass) FROM unnest('{hot_schema.c_t,hot_schema.c_btree}'::text[]) i;
RESET client_min_messages;
SELECT hybrid_convert_hot('hot_schema.c_trie');
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'hot_schema.c'::regclass ORDER BY 1;
SET client_min_messages = warning;
SELECT hybrid_convert('hot_schema.c_t');
SELECT pg_get_indexdef('hot_schema.c_t'::regclass);
SELECT hybrid_convert_hot('hot_schema.c_t');
RESET client_min_messages;
SELECT hybrid_convert_hot('hot_schema.c_pkey');
SELECT hybrid_convert_hot('hot_schema.c_j_excl');
CALL hybrid_convert_hot_concurrently('hot_schema.c_j_excl');
SELECT hybrid_convert_hot(NULL);
BEGIN;
CALL hybrid_convert_hot_concurrently('hot_schema.c_t');
ROLLBACK;
SET client_min_messages = warning;
CALL hybrid_revert_table('hot_schema.c');
RESET client_min_messages;
SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relnamespace = 'hot_schema'::regnamespace AND relkind = 'i';
-- a child's index stays what its parent's is
CREATE TABLE hot_schema.p (k int);
CREATE TABLE hot_schema.child () INHERITS (hot_schema.p);
CREATE INDEX p_k ON hot_schema.p USING hybrid_hot (k);
CREATE INDEX child_k ON hot_schema.child USING hybrid_hot (k);
SELECT hybrid_revert('hot_schema.child_k');
SELECT hybrid_convert('hot_schema.child_k');
SET client_min_messages = warning;
DROP SCHEMA hot_schema CASCADE;
RESET client_min_messages;

-- what it cannot do
CREATE UNIQUE INDEX ON hot USING hybrid_hot (k);
CREATE INDEX ON hot USING hybrid_hot (k) INCLUDE (v);
CREATE TABLE hot_excluded (k int, EXCLUDE USING hybrid_hot (k WITH =));
CLUSTER hot USING hot_k;
CREATE INDEX ON hot USING hybrid_hot (k) WITH (layout = trie);
EXPLAIN (COSTS OFF) SELECT k FROM hot WHERE k = 5;

DROP TABLE hot, hot_types, hot_learned, hot_count;
DROP FUNCTION hot_paths, hot_same, hot_updates, hot_loses, hot_safe, hot_unsafe;
