--
-- Comparison functions that run a subtransaction.  One that is rolled back, by
-- a function that catches an error, takes every lightweight lock with it, those
-- under which an index is searched included: an error, as with btree, and
-- nothing is lost.
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
SELECT hyb_error('SELECT k FROM cp WHERE k = 301');
SET cp.mode = 'commit';
SELECT hyb_same('SELECT k FROM cp WHERE k BETWEEN 100 AND 2000', 'index bitmap');
SET cp.mode = 'off';
SELECT hyb_check('cp');

-- operators that are no bounds are asked with nothing locked
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
