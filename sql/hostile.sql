--
-- What a role may give our SQL functions that can do nothing but create objects
-- of its own: values of any type, casts that return anything, operators.  It
-- crashes nothing, reads no memory, and runs nothing as another role.
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
GRANT EXECUTE ON FUNCTION hybrid_may_contain, hybrid_approx_count TO regress_hyb_hostile;
SET search_path = hostile, public;
SET ROLE regress_hyb_hostile;

CREATE TABLE h (i int, t text COLLATE "C", u uuid, b bytea, a int[]);
CREATE INDEX h_i ON h USING hybrid (i);
CREATE INDEX h_t ON h USING hybrid (t);
CREATE INDEX h_u ON h USING hybrid (u);
CREATE INDEX h_b ON h USING hybrid (b);
CREATE INDEX h_a ON h USING hybrid (a);
CREATE INDEX h_iu ON h USING hybrid (i, u);
CREATE INDEX h_id ON h USING hybrid (i, t DESC);
INSERT INTO h SELECT i, 't' || i, ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid, decode(lpad(i::text, 4, '0'), 'hex'), ARRAY[i]
FROM generate_series(1, 300) i;
SELECT hybrid_merge('h_i') > 0 AS merged;

-- Casts that return NULL, for each way in which values are passed: a key that is
-- NULL, and no bound
CREATE TYPE nothing AS ENUM ('x');
CREATE FUNCTION nothing_i(nothing) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT NULL::int';
CREATE FUNCTION nothing_t(nothing) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT NULL::text';
CREATE FUNCTION nothing_u(nothing) RETURNS uuid LANGUAGE sql IMMUTABLE AS 'SELECT NULL::uuid';
CREATE FUNCTION nothing_b(nothing) RETURNS bytea LANGUAGE sql IMMUTABLE AS 'SELECT NULL::bytea';
CREATE FUNCTION nothing_a(nothing) RETURNS int[] LANGUAGE sql IMMUTABLE AS 'SELECT NULL::int[]';
CREATE CAST (nothing AS int) WITH FUNCTION nothing_i AS IMPLICIT;
CREATE CAST (nothing AS text) WITH FUNCTION nothing_t AS IMPLICIT;
CREATE CAST (nothing AS uuid) WITH FUNCTION nothing_u AS IMPLICIT;
CREATE CAST (nothing AS bytea) WITH FUNCTION nothing_b AS IMPLICIT;
CREATE CAST (nothing AS int[]) WITH FUNCTION nothing_a AS IMPLICIT;
SELECT i, hybrid_may_contain(i, 'x'::nothing), hybrid_approx_count(i, 'x'::nothing, 'x'::nothing)
FROM unnest('{h_i,h_t,h_u,h_b,h_a,h_iu}'::regclass[]) i;
INSERT INTO h VALUES (NULL, NULL, NULL, NULL, NULL);
SELECT i, hybrid_may_contain(i, 'x'::nothing), hybrid_approx_count(i, 'x'::nothing, NULL)
FROM unnest('{h_i,h_t,h_u,h_b,h_a,h_iu}'::regclass[]) i;
DELETE FROM h WHERE i IS NULL;
SELECT hyb_error('SELECT hybrid_approx_count(''h_iu'', ROW(1, ''x''::nothing), ROW(2))');

-- casts that return values in a TOAST table, compressed ones, and ones that no
-- key is as long as
CREATE TYPE much AS (n int);
CREATE TABLE much_text (n int, plain text, packed text);
ALTER TABLE much_text ALTER plain SET STORAGE EXTERNAL;
INSERT INTO much_text SELECT n, t, t FROM (VALUES (1, repeat('s', 2600)), (2, repeat('p', 2600)), (3, repeat('l', 20000)), (4, repeat('h', 1000000))) v(n, t);
CREATE FUNCTION much_t(much) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT CASE n WHEN 1 THEN plain ELSE packed END FROM much_text WHERE n = ($1).n $$;
CREATE CAST (much AS text) WITH FUNCTION much_t AS IMPLICIT;
INSERT INTO h(t) SELECT plain FROM much_text WHERE n < 3;
SELECT n, hybrid_may_contain('h_t', ROW(n)::much), hyb_error(format('SELECT hybrid_approx_count(''h_t'', ROW(%s)::much, NULL)', n)),
	hybrid_may_contain('h_t', plain) AS plain, hybrid_may_contain('h_t', packed) AS packed FROM much_text ORDER BY n;
DELETE FROM h WHERE i IS NULL;

-- a cast with code that needs a collation
CREATE DOMAIN shout AS text;
CREATE TYPE word AS (w text);
CREATE FUNCTION word_t(word) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower(($1).w)';
CREATE CAST (word AS text) WITH FUNCTION word_t AS IMPLICIT;
SELECT hybrid_may_contain('h_t', ROW('T7')::word), hybrid_may_contain('h_t', 't7'::shout), hybrid_may_contain('h_t', ROW('Z7')::word),
	hybrid_approx_count('h_t', ROW('T7')::word, ROW('T79')::word);

-- rows with dropped columns, of domains, with more columns than an index has,
-- as type record, as their own and as a domain
CREATE TYPE pair AS (gone bigint, i int, gone_too uuid, u uuid);
CREATE TABLE pairs (lo pair, hi pair);
INSERT INTO pairs VALUES (ROW(1, 5, NULL, NULL), ROW(281474976710657, 9, '11111111-1111-1111-1111-111111111111', 'ffffffff-0000-0000-0000-000000000000'));
CREATE FUNCTION any_row(p pair) RETURNS record LANGUAGE plpgsql AS 'DECLARE r record; BEGIN r := p; RETURN r; END';
ALTER TYPE pair DROP ATTRIBUTE gone CASCADE;
ALTER TYPE pair DROP ATTRIBUTE gone_too CASCADE;
CREATE DOMAIN pair_domain AS pair;
SELECT hyb_error('SELECT hybrid_approx_count(''h_iu'', lo, hi) FROM pairs');
UPDATE pairs SET lo.u = '00000000-0000-0000-0000-000000000000';
SELECT hybrid_approx_count('h_iu', lo, hi) AS own, hybrid_approx_count('h_iu', any_row(lo), any_row(hi)) AS as_record,
	hybrid_approx_count('h_iu', lo::pair_domain, hi::pair_domain) AS as_domain, hybrid_approx_count('h_iu', hi, lo) AS none FROM pairs;
SELECT hyb_error('SELECT hybrid_approx_count(''h_i'', any_row(lo), any_row(hi)) FROM pairs');
SELECT hyb_error('SELECT hybrid_approx_count(''h_u'', any_row(lo), any_row(hi)) FROM pairs');
SELECT hyb_error('SELECT hybrid_approx_count(''h_id'', ROW(1, ''x''), ROW(2, ''y''))');
ALTER TYPE pair DROP ATTRIBUTE i CASCADE;
SELECT hybrid_approx_count('h_u', any_row(lo), any_row(hi)) AS u_only, hyb_error('SELECT hybrid_approx_count(''h_i'', lo, hi) FROM pairs') FROM pairs;
ALTER TYPE pair DROP ATTRIBUTE u CASCADE;
SELECT hybrid_approx_count('h_u', any_row(lo), any_row(hi)) AS no_column_left FROM pairs;
DO $$ BEGIN EXECUTE (SELECT format('CREATE TABLE wide (%s)', string_agg('c' || g || ' int DEFAULT 7', ', ')) FROM generate_series(1, 100) g); END $$;
INSERT INTO wide DEFAULT VALUES;
SELECT hyb_error('SELECT hybrid_approx_count(''h_i'', wide, wide) FROM wide'), hyb_error('SELECT hybrid_may_contain(''h_i'', wide) FROM wide');
DO $$ BEGIN EXECUTE (SELECT format('ALTER TABLE wide %s', string_agg('DROP c' || g, ', ')) FROM generate_series(1, 99) g); END $$;
SELECT hybrid_approx_count('h_i', wide, wide) FROM wide;

-- a row is a value where the column is of its type
CREATE TYPE cell AS (x int, y int);
CREATE TABLE cells AS SELECT ROW(i, -i)::cell AS c FROM generate_series(1, 100) i;
CREATE INDEX cells_c ON cells USING hybrid (c);
SELECT hybrid_approx_count('cells_c', ROW(5, 0)::cell, ROW(9, 0)::cell), hybrid_may_contain('cells_c', ROW(5, -5)::cell), hybrid_may_contain('cells_c', ROW(5, 5)::cell);

-- Operators made of our functions: selectivity estimators call these without an
-- expression, so types are not known
CREATE TABLE probes AS SELECT i % 5 AS n, ('00000000-0000-0000-0000-' || lpad((i % 5)::text, 12, '0'))::uuid AS u, (i % 5)::text AS t FROM generate_series(1, 1000) i;
ANALYZE probes;
CREATE OPERATOR @@@ (LEFTARG = regclass, RIGHTARG = "any", FUNCTION = hybrid_may_contain, RESTRICT = eqsel, JOIN = eqjoinsel);
SELECT c, hyb_error(format('EXPLAIN SELECT FROM probes WHERE ''%s''::regclass @@@ %s', i, c))
FROM unnest('{n,u,t}'::text[]) c, unnest('{h_i,h_u,h_t}'::regclass[]) i;
CREATE TABLE names AS SELECT 'h_u'::regclass AS r FROM generate_series(1, 100);
ANALYZE names;
SELECT hyb_error('EXPLAIN SELECT FROM names, probes WHERE r @@@ n');
CREATE OPERATOR @@? (LEFTARG = regclass, RIGHTARG = "any", FUNCTION = hybrid_may_contain, RESTRICT = scalarltsel);
SELECT hyb_error('EXPLAIN SELECT FROM probes WHERE ''h_t''::regclass @@? n');
SELECT 'h_i'::regclass @@@ 7 AS seven, 'h_i'::regclass @@@ 777 AS no, 'h_t'::regclass @@@ 't7' AS literal;

-- values of types that nothing can be made of
SELECT q, hyb_error(format('SELECT hybrid_may_contain(''h_t'', %s)', q))
FROM unnest('{pg_sleep(0),textout(''x''),ROW(1),current_timestamp,(SELECT NULL)}'::text[]) q;
SELECT hyb_error($$SELECT hybrid_may_contain('h_a', most_common_vals) FROM pg_stats WHERE tablename = 'probes' AND attname = 'n'$$);
SELECT hyb_error('SELECT hybrid_may_contain(''h_t'', VARIADIC ARRAY[''a''])');
SELECT i, hyb_error(format('SELECT hybrid_approx_count(%L, ''no'', ''number'')', i)) FROM unnest('{h_i,h_t,h_u,h_a}'::regclass[]) i;
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

-- Whatever a caller's casts do, comparison functions run as the owner of the
-- table, restricted, with a safe search path.
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
GRANT SELECT ON public.told TO regress_hyb_hostile;
SET ROLE regress_hyb_hostile;
CREATE TYPE sly AS (x int);
CREATE FUNCTION sly_cast(sly) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'cast by % with path %', current_user, current_setting('search_path');
	PERFORM set_config('search_path', 'hostile', false);
	PERFORM set_config('hostile.mode', current_setting('hostile.next'), false);
	RETURN $1.x;
END $$;
CREATE CAST (sly AS int) WITH FUNCTION sly_cast AS IMPLICIT;
RESET ROLE;
CREATE FUNCTION told_try(mode text) RETURNS TABLE (f text, answer text) LANGUAGE sql AS $$
	SELECT f, hyb_error(f) FROM set_config('hostile.mode', mode, false), unnest(ARRAY[
		'SELECT hybrid_may_contain(''public.told_k'', 7)', 'SELECT hybrid_approx_count(''public.told_k'', 7, 9)',
		'SELECT hybrid_index_check(''public.told_k'')', 'SELECT hybrid_merge(''public.told_k'')']) f
$$;
SET client_min_messages = notice;
SELECT * FROM told_try('tell');
SELECT * FROM told_try('escape');
-- what they set is gone when they return
SELECT set_config('hostile.mode', 'stay', false);
SELECT hybrid_may_contain('public.told_k', 7), hybrid_approx_count('public.told_k', 7, 9), hybrid_index_check('public.told_k'),
	hybrid_merge('public.told_k'), current_setting('search_path');
SET ROLE regress_hyb_hostile;
SELECT * FROM told_try('tell') WHERE answer !~ 'must be owner';
SELECT * FROM told_try('escape') WHERE answer !~ 'must be owner';
SELECT set_config('hostile.mode', '', false), set_config('hostile.next', 'tell', false);
SELECT hybrid_may_contain('public.told_k', ROW(7)::sly), hybrid_approx_count('public.told_k', ROW(7)::sly, ROW(9)::sly);
SELECT current_setting('search_path'), current_setting('hostile.mode'), current_user;
SELECT set_config('hostile.mode', 'tell', false);
SELECT hybrid_may_contain('public.told_k', ROW(7)::sly);
RESET hostile.mode;

-- A role with more privileges names an index, and does not see what the types of
-- its columns have for code: nothing of it runs unless the values are cast.
CREATE FUNCTION trap_check(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'domain checked by %', current_user; END $$;
CREATE FUNCTION trap_cast(int) RETURNS cell LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'cast by %', current_user; END $$;
CREATE CAST (int AS cell) WITH FUNCTION trap_cast AS IMPLICIT;
CREATE DOMAIN checked AS int CHECK (trap_check(value));
CREATE TYPE checked_row AS (c checked);
CREATE TABLE trapped (a checked[], r checked_row, e nothing, d checked, m int, c cell);
CREATE INDEX trapped_a ON trapped USING hybrid (a);
CREATE INDEX trapped_r ON trapped USING hybrid (r);
CREATE INDEX trapped_e ON trapped USING hybrid (e);
CREATE INDEX trapped_d ON trapped USING hybrid (d);
CREATE INDEX trapped_mc ON trapped USING hybrid (m, c);
RESET ROLE;
SELECT q, hyb_error('SELECT hybrid_' || q) FROM unnest(ARRAY[
	'may_contain(''cells_c'', 5)', 'approx_count(''cells_c'', 5, 9)', 'may_contain(''trapped_a'', ''{1}'')', 'may_contain(''trapped_a'', ''{1}''::int[])',
	'may_contain(''trapped_r'', ''(1)'')', 'approx_count(''trapped_mc'', ROW(1, 2), NULL)', 'may_contain(''public.told_k'', ROW(7)::sly)',
	'may_contain(''cells_c'', 5::cell)', 'may_contain(''trapped_a'', ''{1}''::checked[])']) q;
SELECT hybrid_may_contain('cells_c', ROW(5, -5)::cell), hybrid_approx_count('cells_c', ROW(5, 0)::cell, ROW(9, 0)::cell), hybrid_may_contain('trapped_e', 'x'),
	hybrid_may_contain('trapped_d', 1);

RESET client_min_messages;
RESET search_path;
SET client_min_messages = warning;
DROP TABLE told;
DROP OPERATOR CLASS telling_ops USING hybrid;
DROP FUNCTION telling_cmp;
DROP FUNCTION hostile.told_try;
DROP SCHEMA hostile CASCADE;
REVOKE EXECUTE ON FUNCTION hybrid_may_contain, hybrid_approx_count FROM regress_hyb_hostile;
DROP ROLE regress_hyb_owner, regress_hyb_hostile;
