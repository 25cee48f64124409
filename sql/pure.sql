--
-- Comparisons that read a catalog or run a user's code, and those that do not.  Trees
-- in shared memory hold keys with pure comparisons only; what is not pure is read
-- through trees of the session's own.  The answers are the same.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on
\set settings 'SET hybridindex.background_merge = off; SET enable_seqscan = off; SET enable_bitmapscan = off;'
:settings

-- Each index is read by a query for its first row: is the tree that it leaves
-- behind shared?
CREATE FUNCTION qt_shared(tab text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows bigint;
	shared text;
BEGIN
	EXECUTE format('SELECT count(*) FROM %I WHERE k = (SELECT k FROM %1$I ORDER BY ctid OFFSET 100 LIMIT 1)', tab) INTO rows;
	SELECT CASE WHEN tree_memory = 0 THEN 'none' WHEN tree_shared THEN 'shared' ELSE 'private' END
	FROM hybrid_index_stats((tab || '_k')::regclass) INTO shared;
	RETURN rows || ' ' || shared;
END $$;
CREATE TYPE qt_row AS (a int, b text);
CREATE TYPE qt_row_range AS RANGE (subtype = qt_row);
CREATE TYPE qt_text_range AS RANGE (subtype = text, collation = "C");
CREATE TYPE qt_mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN qt_word AS text;
CREATE DOMAIN qt_words AS text[];
CREATE DOMAIN qt_row_domain AS qt_row;
CREATE FUNCTION qt_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN btint4cmp($1, $2); END';
CREATE OPERATOR CLASS qt_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 qt_cmp(int, int);
CREATE TABLE qt_kinds (n int, type text, value text);
INSERT INTO qt_kinds VALUES
	(1, 'int', 'i'), (2, 'float8', 'i'), (3, 'text COLLATE "C"', 'i::text'), (4, 'text', 'i::text'),
	(5, 'numeric', 'i / 7.0'), (6, 'char(9)', 'i::text'), (7, 'qt_word', 'i::text'), (8, 'interval', 'i * interval ''1 s'''),
	(9, 'inet', '''10.0.0.0''::inet + i'), (10, 'timetz', '''00:00+0''::timetz + i * interval ''1 s'''), (11, 'varbit', 'i::bit(20)::varbit'),
	(12, 'jsonb', 'to_jsonb(i)'), (13, 'int[]', 'ARRAY[i]'), (14, 'text[]', 'ARRAY[i::text, NULL]'), (15, 'qt_words', 'ARRAY[i::text]'),
	(16, 'qt_word[]', 'ARRAY[i::text::qt_word]'), (17, 'int4range', 'int4range(i, NULL)'), (18, 'int4multirange', 'int4multirange(int4range(i, i + 2), int4range(i + 3, i + 4))'),
	(19, 'qt_text_range', 'qt_text_range(i::text, NULL)'), (20, 'qt_mood', 'CASE i % 3 WHEN 0 THEN ''sad''::qt_mood WHEN 1 THEN ''ok'' ELSE ''happy'' END'),
	(22, 'name', 'i::text'), (23, 'tsvector', 'to_tsvector(''simple'', i::text)'),
	(30, 'qt_row', 'ROW(i, i::text)::qt_row'), (31, 'qt_row_domain', 'ROW(i, i::text)::qt_row::qt_row_domain'), (32, 'qt_row[]', 'ARRAY[ROW(i, i::text)::qt_row]'),
	(33, 'qt_row_range', 'qt_row_range(ROW(i, i::text)::qt_row, NULL)'), (34, 'qt_mood[]', 'ARRAY[''ok''::qt_mood, ''sad'']'),
	(35, 'int4range[]', 'ARRAY[int4range(i, NULL)]'), (36, 'int', 'i');
DO $$
DECLARE
	kind record;
BEGIN
	FOR kind IN SELECT * FROM qt_kinds ORDER BY n LOOP
		EXECUTE format('CREATE TABLE qt_%1$s (k %2$s); CREATE INDEX qt_%1$s_k ON qt_%1$s USING hybrid (k %4$s); INSERT INTO qt_%1$s SELECT %3$s FROM generate_series(1, 1000) i;', kind.n, kind.type, kind.value, CASE kind.n WHEN 36 THEN 'qt_ops' END);
	END LOOP;
END $$;
SELECT n, type, qt_shared('qt_' || n) FROM qt_kinds ORDER BY n;
SELECT type, hybrid_merge(('qt_' || n || '_k')::regclass) FROM qt_kinds WHERE n IN (4, 13, 20, 30, 36) ORDER BY n;
SELECT n, type, qt_shared('qt_' || n) FROM qt_kinds WHERE n IN (4, 13, 20, 30, 36) ORDER BY n;
SELECT string_agg(type, ',') FROM qt_kinds WHERE NOT hyb_check('qt_' || n);

-- A label that was put between others is compared by a catalog.  What is sought may be
-- one, with or without entries of it.
CREATE TABLE qt_moods (k qt_mood, v int);
CREATE INDEX qt_moods_k ON qt_moods USING hybrid (k, v);
INSERT INTO qt_moods SELECT k, i FROM qt_20 CROSS JOIN generate_series(1, 3) i;
SELECT qt_shared('qt_moods');
ALTER TYPE qt_mood ADD VALUE 'soso' BEFORE 'ok';
SELECT count(*) FROM qt_moods WHERE k = 'soso';
SELECT count(*) FROM qt_moods WHERE k BETWEEN 'soso' AND 'happy' AND v = 1;
SELECT k, v FROM qt_moods WHERE k < 'soso' ORDER BY k DESC, v DESC LIMIT 1;
SELECT hyb_same('SELECT v FROM qt_moods WHERE k > ''soso''', 'index bitmap');
SELECT qt_shared('qt_moods');
-- a session that knows neither the label nor the tree
\c
:settings
SELECT qt_shared('qt_moods');
SELECT count(*) FROM qt_moods WHERE k <= 'soso';
SELECT qt_shared('qt_moods');
INSERT INTO qt_moods SELECT 'soso', i FROM generate_series(1, 500) i;
\c
:settings
SELECT qt_shared('qt_moods');
SELECT count(*) FROM qt_moods WHERE k = 'soso' AND v < 100;
SELECT hyb_same('SELECT v FROM qt_moods WHERE k >= ''soso''', 'index bitmap');
DELETE FROM qt_moods WHERE k = 'soso' AND v % 2 = 0;
VACUUM qt_moods;
SELECT hyb_same('SELECT v FROM qt_moods WHERE k >= ''soso''', 'index bitmap'), hyb_check('qt_moods');
SELECT hybrid_merge('qt_moods_k');
SELECT hyb_same('SELECT v FROM qt_moods WHERE k >= ''soso''', 'index bitmap'), hyb_check('qt_moods');
INSERT INTO qt_moods SELECT 'ok', i FROM generate_series(2000, 3000) i;
\c
:settings
SELECT qt_shared('qt_moods');
SELECT count(*), min(k), max(k) FROM qt_moods WHERE k BETWEEN 'soso' AND 'ok';

-- The same of long arrays, which are packed.
INSERT INTO qt_13 SELECT ARRAY[i] FROM generate_series(1001, 1500) i;
INSERT INTO qt_13 VALUES (array_fill(7, ARRAY[2000])), ('{7}');
\c
:settings
SELECT qt_shared('qt_13'), hyb_check('qt_13'), hyb_same('SELECT k FROM qt_13 WHERE k BETWEEN ''{1}'' AND ''{10}''', 'index bitmap');

-- The default operator class of an array's elements may change to one with a user's
-- code, in a session that knows the index.  Then no key of it is pure.
SET client_min_messages = warning;
CREATE TYPE qt_mi;
CREATE FUNCTION qt_mi_in(cstring) RETURNS qt_mi LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION qt_mi_out(qt_mi) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE qt_mi (input = qt_mi_in, output = qt_mi_out, like = int4);
CREATE CAST (qt_mi AS int) WITHOUT FUNCTION;
DO $$
DECLARE
	op record;
BEGIN
	FOR op IN SELECT * FROM (VALUES ('<', 'lt'), ('<=', 'le'), ('=', 'eq'), ('>=', 'ge'), ('>', 'gt')) v (sign, name) LOOP
		EXECUTE format('CREATE FUNCTION qt_mi_%1$s(qt_mi, qt_mi) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS ''int4%1$s'';
			CREATE OPERATOR %2$s (leftarg = qt_mi, rightarg = qt_mi, function = qt_mi_%1$s)', op.name, op.sign);
	END LOOP;
END $$;
CREATE FUNCTION qt_mi_cmp(qt_mi, qt_mi) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
CREATE FUNCTION qt_mi_slow(qt_mi, qt_mi) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	BEGIN
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
	RETURN btint4cmp($1::int, $2::int);
END $$;
CREATE OPERATOR CLASS qt_mi_ops DEFAULT FOR TYPE qt_mi USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 qt_mi_cmp(qt_mi, qt_mi);
CREATE TABLE qt_mis (k qt_mi[], v int);
CREATE INDEX qt_mis_k ON qt_mis USING hybrid (k);
INSERT INTO qt_mis SELECT ARRAY[i::text::qt_mi], i FROM generate_series(1, 500) i;
SELECT qt_shared('qt_mis');
DROP OPERATOR CLASS qt_mi_ops USING btree;
CREATE OPERATOR CLASS qt_mi_ops DEFAULT FOR TYPE qt_mi USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 qt_mi_slow(qt_mi, qt_mi);
SELECT ARRAY['7'::qt_mi] < ARRAY['8'::qt_mi];
-- an inserter that meets such an entry frees the tree
INSERT INTO qt_mis SELECT ARRAY[i::text::qt_mi], i FROM generate_series(501, 600) i;
SELECT tree_memory FROM hybrid_index_stats('qt_mis_k');
SELECT count(*) FROM qt_mis WHERE k = ARRAY['550'::qt_mi];
SELECT count(*) FROM qt_mis WHERE k < ARRAY['550'::qt_mi];
SELECT qt_shared('qt_mis'), hyb_check('qt_mis');

-- A collation that the system has lost stops only what compares strings of it.
CREATE COLLATION qt_lost (provider = libc, locale = 'C.UTF-8');
CREATE TABLE qt_strings (id int, k text COLLATE qt_lost);
CREATE INDEX qt_strings_k ON qt_strings USING hybrid (k);
CREATE INDEX qt_strings_id ON qt_strings USING hybrid (id);
INSERT INTO qt_strings SELECT i, i::text FROM generate_series(1, 1000) i;
SELECT hybrid_merge('qt_strings_k');
INSERT INTO qt_strings SELECT i, i::text FROM generate_series(1001, 1500) i;
-- VACUUM cannot look for dead entries in the tree
SELECT qt_shared('qt_strings');
DELETE FROM qt_strings WHERE id % 10 = 0;
SET allow_system_table_mods = on;
UPDATE pg_collation SET collcollate = 'xx_YY.utf8', collctype = 'xx_YY.utf8' WHERE collname = 'qt_lost';
\c
:settings
VACUUM (FREEZE) qt_strings;
SELECT static_tombstones, dynamic_entries, tree_memory FROM hybrid_index_stats('qt_strings_k');
SELECT count(*) > 0 FROM hybrid_indexes;
SELECT tree_memory >= 0 FROM hybrid_index_stats('qt_strings_k');
SELECT count(*) FROM qt_strings WHERE id = 3;
SELECT hyb_error('SELECT count(*) FROM qt_strings WHERE k = $$7$$') ~ 'could not create locale';
SET allow_system_table_mods = on;
UPDATE pg_collation SET collcollate = 'C.UTF-8', collctype = 'C.UTF-8' WHERE collname = 'qt_lost';
\c
:settings
SELECT qt_shared('qt_strings'), hyb_check('qt_strings');

-- Values that cannot be compared are still found out.
CREATE TYPE qt_points AS (a int, p point[]);
CREATE TABLE qt_no (k qt_points);
CREATE INDEX qt_no_k ON qt_no USING hybrid (k);
SELECT hyb_error('INSERT INTO qt_no VALUES (ROW(1, ARRAY[point(1, 1)]))');

SET client_min_messages = warning;
DO $$
DECLARE
	name text;
BEGIN
	FOR name IN SELECT relname FROM pg_class WHERE relname ~ '^qt_[a-z0-9]+$' AND relkind = 'r' LOOP
		EXECUTE 'DROP TABLE ' || name;
	END LOOP;
END $$;
DROP FUNCTION qt_shared;
DROP TYPE qt_mi CASCADE;
DROP COLLATION qt_lost;
DROP OPERATOR FAMILY qt_ops USING hybrid;
DROP FUNCTION qt_cmp;
DROP TYPE qt_points, qt_row_range, qt_text_range;
DROP DOMAIN qt_word, qt_words, qt_row_domain;
DROP TYPE qt_row, qt_mood;
