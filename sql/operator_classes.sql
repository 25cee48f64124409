--
-- Operator classes made from btree's.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
CREATE SCHEMA oc;
SET search_path = public, oc;

-- Two types of one family, one of them another's: members of two types too.
CREATE TYPE oc.num;
CREATE FUNCTION oc.num_in(cstring) RETURNS oc.num LANGUAGE internal STRICT IMMUTABLE AS 'int4in';
CREATE FUNCTION oc.num_out(oc.num) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE AS 'int4out';
CREATE TYPE oc.num (INPUT = oc.num_in, OUTPUT = oc.num_out, LIKE = int4);
DO $$
DECLARE
	o record;
	t record;
BEGIN
	FOR t IN SELECT * FROM (VALUES ('oc.num', 'oc.num', '4'), ('oc.num', 'int8', '48'), ('int8', 'oc.num', '84')) v (l, r, n) LOOP
		FOR o IN SELECT * FROM (VALUES ('<', 'lt'), ('<=', 'le'), ('=', 'eq'), ('>=', 'ge'), ('>', 'gt')) v (op, f) LOOP
			EXECUTE format('CREATE FUNCTION oc.%s(%s, %s) RETURNS bool LANGUAGE internal STRICT IMMUTABLE AS %L', o.f, t.l, t.r, 'int' || t.n || o.f);
			EXECUTE format('CREATE OPERATOR oc.%s (FUNCTION = oc.%s, LEFTARG = %s, RIGHTARG = %s, RESTRICT = scalarltsel)', o.op, o.f, t.l, t.r);
		END LOOP;
		EXECUTE format('CREATE FUNCTION oc.cmp(%s, %s) RETURNS int LANGUAGE internal STRICT IMMUTABLE AS %L', t.l, t.r, 'btint' || t.n || 'cmp');
	END LOOP;
END $$;
CREATE OPERATOR FAMILY oc."Num ops" USING btree;
CREATE OPERATOR CLASS oc."num'ops" DEFAULT FOR TYPE oc.num USING btree FAMILY oc."Num ops" AS
	OPERATOR 1 oc.<, OPERATOR 2 oc.<=, OPERATOR 3 oc.=, OPERATOR 4 oc.>=, OPERATOR 5 oc.>,
	FUNCTION 1 oc.cmp(oc.num, oc.num), FUNCTION 2 btint4sortsupport(internal), FUNCTION 4 btequalimage(oid);
CREATE TABLE oc_t (n oc.num, id int);
INSERT INTO oc_t SELECT (i * 37 % 1000)::text::oc.num, i FROM generate_series(1, 2000) i;

-- there is no class yet, and only some roles may make one
CREATE INDEX ON oc_t USING hybrid (n);
\set VERBOSITY default
CREATE INDEX ON oc_t USING hybrid (n);
-- btree has no class for these either: no hint at making one
CREATE TABLE oc_none (a int, p point, j json);
CREATE INDEX ON oc_none USING hybrid (a, p);
CREATE INDEX ON oc_none USING hybrid (j);
CREATE TABLE oc_none2 (p point PRIMARY KEY WITH (access_method = hybrid));
DROP TABLE oc_none;
\set VERBOSITY terse
CREATE ROLE regress_oc;
GRANT CREATE, USAGE ON SCHEMA oc TO regress_oc;
SET ROLE regress_oc;
SELECT hyb_error('SELECT * FROM hybrid_make_operator_classes()');
RESET ROLE;
REVOKE ALL ON SCHEMA oc FROM regress_oc;
DROP ROLE regress_oc;

-- one type's, all, and nothing twice
SELECT * FROM hybrid_make_operator_classes('int4');
SELECT * FROM hybrid_make_operator_classes('oc.num');
SELECT * FROM hybrid_make_operator_classes();
CREATE FUNCTION oc.difference() RETURNS TABLE (am name, member text) LANGUAGE sql AS $$
	WITH m AS (SELECT a.amname, f.opfname, o.amopstrategy::text || o.amopopr::regoperator AS member
		FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am a ON a.oid = f.opfmethod
		WHERE f.opfnamespace = 'oc'::regnamespace
		UNION ALL
		SELECT a.amname, f.opfname, concat(p.amprocnum, ' ', p.amproclefttype::regtype, ' ', p.amprocrighttype::regtype, ' ', p.amproc::regprocedure)
		FROM pg_amproc p JOIN pg_opfamily f ON f.oid = p.amprocfamily JOIN pg_am a ON a.oid = f.opfmethod
		WHERE f.opfnamespace = 'oc'::regnamespace)
	SELECT b.amname, b.member FROM m b WHERE NOT EXISTS (SELECT FROM m c WHERE c.amname <> b.amname AND c.opfname = b.opfname AND c.member = b.member)
$$;
SELECT * FROM oc.difference();
SELECT c.opcname, f.opfname, c.opcdefault, c.opcnamespace::regnamespace, amvalidate(c.oid)
FROM pg_opclass c JOIN pg_opfamily f ON f.oid = c.opcfamily JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname = 'hybrid' AND c.opcintype = 'oc.num'::regtype;

-- what btree's family gets later comes with the next call
ALTER OPERATOR FAMILY oc."Num ops" USING btree ADD
	OPERATOR 1 oc.< (oc.num, int8), OPERATOR 2 oc.<= (oc.num, int8), OPERATOR 3 oc.= (oc.num, int8), OPERATOR 4 oc.>= (oc.num, int8), OPERATOR 5 oc.> (oc.num, int8), FUNCTION 1 (oc.num, int8) oc.cmp(oc.num, int8),
	OPERATOR 1 oc.< (int8, oc.num), OPERATOR 2 oc.<= (int8, oc.num), OPERATOR 3 oc.= (int8, oc.num), OPERATOR 4 oc.>= (int8, oc.num), OPERATOR 5 oc.> (int8, oc.num), FUNCTION 1 (int8, oc.num) oc.cmp(int8, oc.num),
	OPERATOR 1 < (int8, int8), OPERATOR 2 <= (int8, int8), OPERATOR 3 = (int8, int8), OPERATOR 4 >= (int8, int8), OPERATOR 5 > (int8, int8), FUNCTION 1 (int8, int8) btint8cmp(int8, int8);
SELECT count(*) FROM oc.difference();
SELECT * FROM hybrid_make_operator_classes('oc.num');
SELECT * FROM oc.difference();
SELECT bool_and(amvalidate(c.oid)) FROM pg_opclass c WHERE c.opcnamespace = 'oc'::regnamespace;

-- indexes with them
CREATE INDEX oc_n ON oc_t USING hybrid (n);
CREATE INDEX oc_nd ON oc_t USING hybrid (n DESC, id);
INSERT INTO oc_t SELECT i::text::oc.num, i FROM generate_series(-20, 20) i;
SELECT hyb_same('SELECT id FROM oc_t WHERE n = ''37'''), hyb_same('SELECT id FROM oc_t WHERE n < ''20'' AND n >= ''-3'''),
	hyb_same('SELECT id FROM oc_t WHERE n < 20::int8'), hyb_same('SELECT id FROM oc_t WHERE n > 990::int8'),
	hyb_same('SELECT n FROM oc_t ORDER BY n', 'order'), hyb_same('SELECT n, id FROM oc_t ORDER BY n DESC, id', 'order'), hyb_check('oc_t');
SELECT hybrid_merge('oc_n') > 0, hybrid_merge('oc_nd') > 0;
SELECT hyb_same('SELECT id FROM oc_t WHERE n < 20::int8'), hyb_same('SELECT id FROM oc_t WHERE n = ANY (''{1,2,3}''::oc.num[])'),
	hyb_same('SELECT n, id FROM oc_t ORDER BY n DESC, id', 'order'), hyb_check('oc_t');

-- a second class of btree's: the same order under another name is there
-- already, another order is not; and names that are taken
CREATE OPERATOR CLASS oc.num_ops2 FOR TYPE oc.num USING btree AS
	OPERATOR 1 oc.<, OPERATOR 2 oc.<=, OPERATOR 3 oc.=, OPERATOR 4 oc.>=, OPERATOR 5 oc.>, FUNCTION 1 oc.cmp(oc.num, oc.num);
CREATE FUNCTION oc.num_back(oc.num, oc.num) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT oc.cmp($2, $1)';
CREATE OPERATOR CLASS oc.num_back_ops FOR TYPE oc.num USING btree AS
	OPERATOR 1 oc.>, OPERATOR 2 oc.>=, OPERATOR 3 oc.=, OPERATOR 4 oc.<=, OPERATOR 5 oc.<, FUNCTION 1 oc.num_back(oc.num, oc.num);
CREATE OPERATOR CLASS oc.num_back_ops FOR TYPE int2 USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint2cmp(int2, int2);
SELECT * FROM hybrid_make_operator_classes('oc.num');
SELECT * FROM hybrid_make_operator_classes();
CREATE INDEX oc_back ON oc_t USING hybrid (n num_back_ops_1);
DROP INDEX oc_n, oc_nd;
SELECT hyb_same('SELECT id FROM oc_t WHERE n < ''20'' AND n >= ''-3'''), hyb_check('oc_t');

-- a class for a type of the server's: with btree's name, where it is not used
CREATE FUNCTION oc.int_back(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS oc.int_back_ops FOR TYPE int4 USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 oc.int_back(int, int);
SELECT * FROM hybrid_make_operator_classes();
CREATE INDEX oc_ids ON oc_t USING hybrid (id oc.int_back_ops);
SELECT hyb_same('SELECT id FROM oc_t WHERE id < 7'), hyb_check('oc_t');

-- nothing in pg_temp is copied
CREATE OPERATOR CLASS pg_temp.oc_temp_ops FOR TYPE int4 USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 oc.int_back(int, int);
DROP OPERATOR CLASS oc.int_back_ops USING hybrid CASCADE;
DROP OPERATOR FAMILY oc.int_back_ops USING hybrid;
DROP OPERATOR CLASS oc.int_back_ops USING btree;
SELECT * FROM hybrid_make_operator_classes();
DROP OPERATOR CLASS pg_temp.oc_temp_ops USING btree;

-- Types that have classes of polymorphic types, or of their base type: as
-- btree has them.
CREATE TYPE oc.size AS ENUM ('s', 'm', 'l');
ALTER TYPE oc.size ADD VALUE 'xs' BEFORE 's';
CREATE TYPE oc.pair AS (a oc.size, b oc.num);
CREATE TYPE oc.nums AS RANGE (SUBTYPE = oc.num, MULTIRANGE_TYPE_NAME = oc.nums_multi);
CREATE DOMAIN oc.d_size AS oc.size CHECK (value <> 's');
CREATE DOMAIN oc.d_num AS oc.num;
CREATE DOMAIN oc.d_d_num AS oc.d_num;
CREATE DOMAIN oc.d_nums AS oc.nums;
CREATE DOMAIN oc.d_sizes AS oc.size[];
CREATE DOMAIN oc.d_pair AS oc.pair;
CREATE DOMAIN oc.d_text AS text COLLATE "C";
CREATE TABLE oc_all (id int, size oc.size, pair oc.pair, nums oc.nums, multi oc.nums_multi, d_size oc.d_size, d_num oc.d_num, d_d_num oc.d_d_num, d_nums oc.d_nums, d_sizes oc.d_sizes, d_pair oc.d_pair, num_a oc.num[], d_num_a oc.d_num[], pair_a oc.pair[], nums_a oc.nums[], d_text_a oc.d_text[]);
INSERT INTO oc_all
SELECT i, s, ROW(s, n)::oc.pair, r, oc.nums_multi(r), CASE WHEN s = 's' THEN 'l' ELSE s END, n, n, r, array[s, 's'], ROW(s, n)::oc.pair, array[n, n], array[n], array[ROW(s, n)::oc.pair], array[r], array[s::text, n::text]
FROM generate_series(1, 300) i, LATERAL (SELECT (enum_range(NULL::oc.size))[1 + i % 4] AS s, (i * 7 % 100)::text::oc.num AS n) v,
	LATERAL (SELECT CASE WHEN i % 10 > 0 THEN oc.nums(n, (i * 7 % 100 + i % 10)::text::oc.num) END AS r) w;
CREATE FUNCTION oc.compare(col text, as_type text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b text[]; h text[]; r text := '';
BEGIN
	EXECUTE format('CREATE INDEX oc_one ON oc_all USING btree (%I, id)', col);
	b := (hyb_rows(format('SELECT %I, id FROM oc_all ORDER BY %1$I, id', col), 'order')).rows;
	DROP INDEX oc_one;
	EXECUTE format('CREATE INDEX oc_one ON oc_all USING hybrid (%I, id)', col);
	h := (hyb_rows(format('SELECT %I, id FROM oc_all ORDER BY %1$I, id', col), 'order')).rows;
	IF h <> b OR cardinality(h) <> 300 THEN r := 'order '; END IF;
	IF NOT hyb_same(format('SELECT id FROM oc_all WHERE %I%s = (SELECT %1$I%2$s FROM oc_all WHERE id = 17)', col, as_type)) THEN r := r || 'equality '; END IF;
	IF NOT hyb_same(format('SELECT id FROM oc_all WHERE %I%s < (SELECT %1$I%2$s FROM oc_all WHERE id = 33)', col, as_type)) THEN r := r || 'range '; END IF;
	PERFORM hyb_check('oc_all');
	DROP INDEX oc_one;
	RETURN CASE WHEN r = '' THEN 'as btree' ELSE r END;
END $$;
SELECT attname, oc.compare(attname, CASE attname WHEN 'd_size' THEN '::oc.size' ELSE '' END) FROM pg_attribute WHERE attrelid = 'oc_all'::regclass AND attnum > 1 ORDER BY attnum;

-- An enum with an order of its own
CREATE FUNCTION oc.size_cmp(a oc.size, b oc.size) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN enum_cmp(b, a); END';
CREATE FUNCTION oc.size_before(a oc.size, b oc.size) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN enum_cmp(b, a) < 0; END';
CREATE FUNCTION oc.size_not_after(a oc.size, b oc.size) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN enum_cmp(b, a) <= 0; END';
CREATE FUNCTION oc.size_is(a oc.size, b oc.size) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN enum_cmp(b, a) = 0; END';
CREATE FUNCTION oc.size_not_before(a oc.size, b oc.size) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN enum_cmp(b, a) >= 0; END';
CREATE FUNCTION oc.size_after(a oc.size, b oc.size) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN enum_cmp(b, a) > 0; END';
CREATE OPERATOR oc.< (FUNCTION = oc.size_before, LEFTARG = oc.size, RIGHTARG = oc.size);
CREATE OPERATOR oc.<= (FUNCTION = oc.size_not_after, LEFTARG = oc.size, RIGHTARG = oc.size);
CREATE OPERATOR oc.= (FUNCTION = oc.size_is, LEFTARG = oc.size, RIGHTARG = oc.size);
CREATE OPERATOR oc.>= (FUNCTION = oc.size_not_before, LEFTARG = oc.size, RIGHTARG = oc.size);
CREATE OPERATOR oc.> (FUNCTION = oc.size_after, LEFTARG = oc.size, RIGHTARG = oc.size);
CREATE OPERATOR CLASS oc.size_ops DEFAULT FOR TYPE oc.size USING btree AS
	OPERATOR 1 oc.<, OPERATOR 2 oc.<=, OPERATOR 3 oc.=, OPERATOR 4 oc.>=, OPERATOR 5 oc.>, FUNCTION 1 oc.size_cmp(oc.size, oc.size);
SELECT hyb_error('CREATE INDEX ON oc_all USING hybrid (size)');
SELECT * FROM hybrid_make_operator_classes('oc.size');
SELECT attname, oc.compare(attname, CASE attname WHEN 'd_size' THEN '::oc.size' ELSE '' END) FROM pg_attribute WHERE attrelid = 'oc_all'::regclass AND attname IN ('size', 'd_size') ORDER BY attnum;

-- They go with the access method, and with their types; no index, no CASCADE.
DROP TABLE oc_t, oc_all;
BEGIN;
DROP EXTENSION hybridindex;
SELECT count(*) FROM pg_opclass c WHERE c.opcnamespace = 'oc'::regnamespace AND c.opcmethod <> (SELECT oid FROM pg_am WHERE amname = 'btree');
ROLLBACK;
SET client_min_messages = error;
DROP SCHEMA oc CASCADE;
SELECT count(*) FROM pg_opclass c WHERE c.opcnamespace NOT IN ('public'::regnamespace, 'pg_catalog'::regnamespace);
