--
-- Functions that indexes call and that come to the index themselves, and functions
-- that try to leave the role as which they run.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
CREATE ROLE regress_hyb_owner;
CREATE ROLE regress_hyb_hostile;
CREATE SCHEMA hostile AUTHORIZATION regress_hyb_hostile;
SET search_path = hostile, public;
SET ROLE regress_hyb_hostile;

-- A function of an index's expression comes to that index while it is built: it
-- cannot read it, nor merge what would be added to it.
CREATE TABLE own (a int);
INSERT INTO own SELECT generate_series(1, 1000);
CREATE FUNCTION intrude(stmt text) RETURNS text LANGUAGE plpgsql VOLATILE SET search_path = hostile, public AS $$
BEGIN
	EXECUTE stmt;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END $$;
CREATE FUNCTION intruder(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF a = 900 AND current_setting('hostile.own', true) <> '' THEN
		RAISE WARNING '%', hostile.intrude(current_setting('hostile.own'));
	END IF;
	RETURN a;
END $$;
DO $$
DECLARE
	stmt text;
BEGIN
	FOREACH stmt IN ARRAY ARRAY['SELECT hybrid_merge(''own_a'')', 'SELECT hybrid_index_check(''own_a'')',
		'SELECT hybrid_index_stats(''own_a'')', 'SELECT 1/count(*) FROM hybrid_indexes WHERE indexname = ''own_a'' AND total_pages IS NULL'] LOOP
		PERFORM set_config('hostile.own', stmt, true);
		CREATE INDEX own_a ON own USING hybrid (intruder(a));
		PERFORM set_config('hostile.own', '', true);
		PERFORM hybrid_index_check('own_a', true);
		DROP INDEX own_a;
	END LOOP;
END $$;
-- nor add to it, when another index is built in between
CREATE TABLE beside (a int);
INSERT INTO beside VALUES (1);
CREATE FUNCTION adder(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RAISE WARNING '%', hostile.intrude('INSERT INTO own VALUES (0)');
	RETURN a;
END $$;
SET hostile.own = 'CREATE INDEX beside_a ON beside USING hybrid (adder(a))';
CREATE INDEX own_a ON own USING hybrid (intruder(a));
RESET hostile.own;
SELECT hybrid_index_check('own_a', true), count(*) FROM own;
RESET ROLE;

-- Comparison functions run as the owner of the table, restricted, with a safe search
-- path.
CREATE FUNCTION public.telling_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	CASE pg_catalog.current_setting('hostile.mode', true)
		WHEN 'tell' THEN
			RAISE EXCEPTION 'compared by % with path %', current_user, pg_catalog.current_setting('search_path');
		WHEN 'escape' THEN
			PERFORM pg_catalog.set_config('role', 'none', false);
		WHEN 'stay' THEN
			PERFORM pg_catalog.set_config('search_path', 'hostile', false);
		ELSE
	END CASE;
	RETURN CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END;
END $$;
CREATE OPERATOR CLASS public.telling_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 public.telling_cmp(int, int);
-- a worker would merge what hybrid_merge could not
SET hybridindex.background_merge = off;
CREATE TABLE public.told (k int);
CREATE INDEX told_k ON public.told USING hybrid (k public.telling_ops);
INSERT INTO public.told SELECT i FROM generate_series(1, 50) i;
ALTER TABLE public.told OWNER TO regress_hyb_owner;
CREATE FUNCTION told_try(mode text) RETURNS TABLE (f text, answer text) LANGUAGE sql AS $$
	SELECT f, hyb_error(f) FROM set_config('hostile.mode', mode, false), unnest(ARRAY[
		'SELECT hybrid_index_check(''public.told_k'')', 'SELECT hybrid_merge(''public.told_k'')']) f
$$;
SET client_min_messages = notice;
SELECT * FROM told_try('tell');
SELECT * FROM told_try('escape');
-- what they set is gone when they return
SELECT set_config('hostile.mode', 'stay', false);
SELECT hybrid_index_check('public.told_k'), hybrid_merge('public.told_k'), current_setting('search_path');

RESET client_min_messages;
RESET search_path;
SET client_min_messages = warning;
DROP TABLE told;
DROP OPERATOR CLASS telling_ops USING hybrid;
DROP FUNCTION telling_cmp;
DROP FUNCTION hostile.told_try;
DROP SCHEMA hostile CASCADE;
DROP ROLE regress_hyb_owner, regress_hyb_hostile;
