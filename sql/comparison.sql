--
-- Comparison functions that run a subtransaction.  A function that catches an
-- error rolls it back, and with it go all lightweight locks: the search of an index
-- holds none.  A function that reads the index that it serves is refused while the
-- search is in the log.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on

SET hybridindex.background_merge = off;
CREATE TABLE cp (k int);
CREATE FUNCTION cp_cmp(a int, b int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	mode text := current_setting('cp.mode', true);
BEGIN
	IF mode = 'commit' THEN
		BEGIN
			PERFORM 1;
		EXCEPTION WHEN division_by_zero THEN
			RETURN 0;
		END;
	ELSIF mode IN ('abort', 'use') THEN
		BEGIN
			PERFORM 1 / 0;
		EXCEPTION WHEN division_by_zero THEN
		END;
	END IF;
	IF mode = 'use' THEN
		-- what the caller was searching changes
		PERFORM set_config('cp.mode', 'off', false);
		INSERT INTO cp SELECT g * 7 % 10000 FROM generate_series(1, 300) g;
		PERFORM k FROM cp WHERE k = 5;
		PERFORM set_config('cp.mode', 'use', false);
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS cp_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cp_cmp(int, int);
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- all of it in the log, too long to be read in place: it is entered into the tree, which is searched
CREATE INDEX cp_k ON cp USING hybrid (k cp_ops);
INSERT INTO cp SELECT g * 3 FROM generate_series(1, 3000) g;
SET cp.mode = 'abort';
SELECT hyb_error('SELECT k FROM cp WHERE k = 301');
SET cp.mode = 'use';
SELECT hyb_error('SELECT k FROM cp WHERE k = 301');
SET cp.mode = 'commit';
SELECT hyb_same('SELECT k FROM cp WHERE k BETWEEN 100 AND 200', 'index bitmap');
SET cp.mode = 'abort';
SELECT hyb_error('SELECT k FROM cp WHERE k = 301');
SET cp.mode = 'use';
SELECT hyb_error('SELECT k FROM cp WHERE k = 301');
INSERT INTO cp VALUES (301);
SELECT hyb_error('SELECT k FROM cp WHERE k = 301');
SET cp.mode = 'off';
SELECT hyb_same('SELECT k FROM cp WHERE k BETWEEN 100 AND 2000', 'index bitmap');
SELECT hyb_check('cp');

-- in leaves
SELECT hybrid_merge('cp_k') > 0 AS merged;
SET cp.mode = 'abort';
SELECT hyb_error('SELECT k FROM cp WHERE k = 301');
SET cp.mode = 'use';
-- what it has inserted is in the log
SELECT hyb_error('SELECT k FROM cp WHERE k = 301');
SET cp.mode = 'commit';
SELECT hyb_same('SELECT k FROM cp WHERE k BETWEEN 100 AND 2000', 'index bitmap');
SET cp.mode = 'off';
SELECT hyb_check('cp');

-- operators that are not bounds are called with nothing locked
CREATE FUNCTION cp_gt(a int, b int8) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
	END;
	RETURN a > b;
END $$;
CREATE OPERATOR @> (FUNCTION = cp_gt, LEFTARG = int, RIGHTARG = int8);
ALTER OPERATOR FAMILY cp_ops USING hybrid ADD OPERATOR 5 @> (int, int8);
SELECT hyb_same('SELECT k FROM cp WHERE k @> 301::int8', 'index bitmap');

-- uniqueness checks
CREATE TABLE cp_u (k int);
CREATE UNIQUE INDEX cp_u_k ON cp_u USING hybrid (k cp_ops);
INSERT INTO cp_u SELECT generate_series(1, 2000, 2);
SELECT hybrid_merge('cp_u_k');
INSERT INTO cp_u SELECT generate_series(2, 600, 2);
SET cp.mode = 'abort';
SELECT hyb_error('INSERT INTO cp_u VALUES (30)');
SELECT hyb_error('INSERT INTO cp_u VALUES (31)');
SELECT hyb_error('INSERT INTO cp_u VALUES (1500)');
SET cp.mode = 'off';
SELECT hyb_error('INSERT INTO cp_u VALUES (30)');
SELECT hyb_error('INSERT INTO cp_u VALUES (1500)');
SELECT count(*) FROM cp_u;
SELECT hyb_check('cp_u');
DROP TABLE cp, cp_u;
DROP OPERATOR FAMILY cp_ops USING hybrid;
DROP OPERATOR @> (int, int8);
DROP FUNCTION cp_cmp, cp_gt;

-- Arrays, composites and ranges look for their elements' comparison function when
-- they are compared.  btree does that with the second row.  Hybrid compares a row
-- with itself, so that each entry of the log has a place that a merge can find.
\set VERBOSITY default
CREATE TYPE cp_part AS (n int, p point);
CREATE TYPE cp_inner AS (n int, parts cp_part[]);
CREATE DOMAIN cp_points AS point[];
CREATE TABLE cp_types (id int, a point[], d cp_points, c cp_part, ca cp_part[], i cp_inner);
CREATE TYPE cp_range AS RANGE (subtype = cp_part);
CREATE TABLE cp_ranges (r cp_range, m cp_multirange);
DO $$
DECLARE
	tab text;
	col name;
	am name;
	part text := 'row(1, ''(1,1)'')::cp_part';
	value text;
	message text;
	said text;
BEGIN
	FOR tab, col, value IN VALUES ('cp_types', 'a', 'array[point(1,1)]'), ('cp_types', 'a', '''{}'''),
		('cp_types', 'd', 'array[point(1,1)]'), ('cp_types', 'c', part),
		('cp_types', 'ca', 'array[' || part || ']'), ('cp_types', 'i', 'row(1, array[' || part || '])'),
		('cp_ranges', 'r', 'cp_range(' || part || ', NULL)'),
		('cp_ranges', 'm', 'cp_multirange(cp_range(' || part || ', NULL))')
	LOOP
		FOREACH am IN ARRAY array['btree', 'hybrid'] LOOP
			EXECUTE format('CREATE INDEX cp_i ON %I USING %I (%I)', tab, am, col);
			message := 'none';
			BEGIN
				EXECUTE format('INSERT INTO %I (%I) VALUES (%s), (%3$s)', tab, col, value);
			EXCEPTION WHEN OTHERS THEN
				message := SQLSTATE || ' ' || SQLERRM;
			END;
			IF am = 'hybrid' AND message <> said THEN
				RAISE '% %: % instead of %', col, value, message, said;
			END IF;
			said := message;
			DROP INDEX cp_i;
		END LOOP;
		RAISE WARNING '% %: %', col, value, said;
	END LOOP;
END $$;
CREATE INDEX cp_types_i ON cp_types USING hybrid (id, a);
INSERT INTO cp_types (id) SELECT generate_series(1, 100);
INSERT INTO cp_types (id, a) VALUES (101, array[point(1,1)]);
SELECT hybrid_merge('cp_types_i'), hybrid_index_check('cp_types_i', true);
VACUUM cp_types;
DROP INDEX cp_types_i;
INSERT INTO cp_types (id, a) VALUES (101, array[point(1,1)]);
CREATE INDEX cp_types_i ON cp_types USING hybrid (id, a);
-- classes that compare bytes take all values; comparable types do as well
CREATE INDEX cp_images ON cp_types USING hybrid (c record_image_ops);
CREATE TABLE cp_plain (a int[], r int4range, m nummultirange, t text[][]);
CREATE INDEX cp_plain_i ON cp_plain USING hybrid (a, r, m, t);
INSERT INTO cp_types (c) VALUES (row(1, '(1,1)')), (row(1, '(1,2)'));
INSERT INTO cp_plain VALUES ('{1}', '[1,2)', '{[1.5,2]}', '{{a},{b}}'), ('{1}', '[1,2)', '{[1.5,2]}', '{{a},{c}}');
SELECT hybrid_merge('cp_images'), hybrid_merge('cp_plain_i'), hybrid_index_check('cp_images', true), hybrid_index_check('cp_plain_i', true);
-- An attribute that was dropped has no type, and is left out.
CREATE TYPE cp_drop AS (a int, b int);
ALTER TYPE cp_drop DROP ATTRIBUTE b;
CREATE TABLE cp_dropped (c cp_drop);
CREATE INDEX cp_dropped_c ON cp_dropped USING hybrid (c);
INSERT INTO cp_dropped SELECT ROW(g)::cp_drop FROM generate_series(1, 10) g;
SELECT hybrid_merge('cp_dropped_c'), hybrid_index_check('cp_dropped_c', true);
DROP TABLE cp_types, cp_ranges, cp_plain, cp_dropped;
DROP TYPE cp_drop;
