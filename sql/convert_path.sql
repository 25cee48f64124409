--
-- A superuser converts indexes of another role, with a schema of a hostile role first
-- in the search path.  Functions of expressions and predicates find what the server
-- has, never what is in that schema.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
CREATE ROLE regress_hyb_owner;
CREATE ROLE regress_hyb_hostile;
GRANT CREATE ON SCHEMA public TO regress_hyb_owner;
CREATE SCHEMA trap AUTHORIZATION regress_hyb_hostile;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
CREATE SCHEMA kept AUTHORIZATION regress_hyb_owner;
SET ROLE regress_hyb_hostile;
CREATE FUNCTION trap.abs(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RAISE EXCEPTION 'code of regress_hyb_hostile is run by %', current_user; END $$;

SET ROLE regress_hyb_owner;
CREATE FUNCTION public.path_key(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN abs($1); END $$;
CREATE FUNCTION public.path_kept(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN abs($1) > 5; END $$;
CREATE TABLE kept.t (a int);
CREATE TABLE kept.parted (a int) PARTITION BY RANGE (a);
CREATE TABLE kept.part PARTITION OF kept.parted FOR VALUES FROM (-100) TO (1000);
CREATE TABLE kept.joins (a int);
INSERT INTO kept.t SELECT generate_series(-100, 500);
INSERT INTO kept.parted SELECT generate_series(-100, 500);
INSERT INTO kept.joins SELECT generate_series(1000, 1500);
-- the build calls both functions, and so does the validation for the rows left out
CREATE INDEX t_key ON kept.t (path_key(a)) WHERE path_kept(a) AND path_kept(7);
CREATE INDEX t_plain ON kept.t (a) WHERE path_kept(a) AND path_kept(7);
CREATE INDEX parted_key ON kept.parted (path_key(a)) WHERE path_kept(a);
CREATE INDEX joins_key ON kept.joins (path_key(a)) WHERE path_kept(a);
RESET ROLE;
CREATE TEMP TABLE own AS SELECT generate_series(-100, 500) AS a;
CREATE INDEX own_key ON own (path_key(a)) WHERE path_kept(a);

-- Which indexes are hybrid now?  Each is checked against its table.
CREATE FUNCTION state() RETURNS TABLE (index text, access_method text) LANGUAGE plpgsql SET search_path = public AS $$
BEGIN
	FOR index, access_method IN SELECT relname, concat_ws(' ', amname, reloptions) FROM pg_class c JOIN pg_am a ON a.oid = relam
		WHERE relname ~ '(t|parted|part|joins|own)_.*(key|plain)' ORDER BY relname COLLATE "C" LOOP
		IF access_method ~ 'hybrid' AND EXISTS (SELECT FROM pg_class WHERE relname = index AND relkind = 'i') THEN
			PERFORM hybrid_index_check((SELECT oid FROM pg_class WHERE relname = index)::regclass, true);
		END IF;
		RETURN NEXT;
	END LOOP;
END $$;
SET client_min_messages = notice;
SET search_path = trap, pg_catalog, public;
SELECT hyb_error('SELECT public.path_key(1)');

-- each path there and back
SELECT hybrid_convert('kept.t_key');
SELECT hybrid_convert('kept.t_plain', 'trie');
SELECT hybrid_convert('kept.parted_key'), hybrid_convert('pg_temp.own_key');
SELECT * FROM state();
SELECT hybrid_revert('kept.t_key'), hybrid_revert('kept.t_plain'), hybrid_revert('kept.parted_key'), hybrid_revert('pg_temp.own_key');
CALL hybrid_convert_concurrently('kept.t_key');
CALL hybrid_convert_concurrently('kept.t_plain', 'trie');
CALL hybrid_convert_concurrently('kept.t_plain', 'columnar');
CALL hybrid_convert_concurrently('kept.parted_key');
CALL hybrid_convert_concurrently('pg_temp.own_key');
SELECT * FROM state();
CALL hybrid_revert_concurrently('kept.t_key');
CALL hybrid_revert_concurrently('kept.t_plain');
CALL hybrid_revert_concurrently('kept.parted_key');
CALL hybrid_revert_concurrently('pg_temp.own_key');
CALL hybrid_convert_table('kept.t');
CALL hybrid_convert_table('kept.parted');
CALL hybrid_revert_table('kept.t');
CALL hybrid_revert_table('kept.parted');
SELECT * FROM state();
CALL hybrid_convert_schema('kept');
SELECT * FROM state();
CALL hybrid_revert_schema('kept');

-- indexes that are converted to be attached
SELECT hybrid_convert('kept.parted_key');
ALTER TABLE kept.parted ATTACH PARTITION kept.joins FOR VALUES FROM (1000) TO (2000);
SELECT * FROM state();

-- an index above takes that of the partition: its functions are simplified as its owner
SET ROLE regress_hyb_owner;
CREATE FUNCTION public.path_one() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
	IF current_user <> 'regress_hyb_owner' THEN
		RAISE EXCEPTION 'code of regress_hyb_owner is run by %', current_user;
	END IF;
	RETURN 1;
END $$;
CREATE INDEX part_one_key ON kept.part ((a + path_one())) WHERE a > path_one();
RESET ROLE;
SELECT hyb_error('SELECT public.path_one()');
CREATE INDEX parted_one_key ON kept.parted USING hybrid ((a + path_one())) WHERE a > path_one();
SELECT * FROM state() WHERE index ~ 'one';

-- the caller's path is as it was
SHOW search_path;
RESET search_path;
SET client_min_messages = warning;
DROP FUNCTION state;
DROP TABLE own;
DROP OWNED BY regress_hyb_owner, regress_hyb_hostile CASCADE;
DROP ROLE regress_hyb_owner, regress_hyb_hostile;
