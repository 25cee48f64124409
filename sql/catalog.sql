--
-- The catalog: every operator class is sound, and each type with a default btree
-- class has a default hybrid one.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SELECT count(*) > 40 AS many, bool_and(amvalidate(c.oid)) AS valid
FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod WHERE a.amname = 'hybrid';
SELECT c.opcname FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname = 'hybrid' AND NOT amvalidate(c.oid);

-- btree operator classes of the core without a counterpart of ours
SELECT b.opcname, b.opcintype::regtype
FROM pg_opclass b
WHERE b.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')
	AND (b.opcdefault OR b.opcname LIKE '%pattern_ops')
	AND b.oid < 16384
	AND NOT EXISTS (SELECT FROM pg_opclass h
		WHERE h.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'hybrid')
			AND h.opcintype = b.opcintype AND h.opcdefault = b.opcdefault
			AND (b.opcdefault OR h.opcname = b.opcname))
ORDER BY 1;

-- operators of btree's families on the types of ours, and our members, are the same
CREATE FUNCTION family_members(am text) RETURNS TABLE (l regtype, r regtype, strategy smallint, op regoperator) LANGUAGE sql AS $$
	SELECT o.amoplefttype, o.amoprighttype, o.amopstrategy, o.amopopr
	FROM pg_amop o JOIN pg_am a ON a.oid = o.amopmethod JOIN pg_opfamily f ON f.oid = o.amopfamily
	WHERE a.amname = am AND o.amoppurpose = 's' AND (f.oid < 16384 OR am = 'hybrid')
		AND f.opfname NOT LIKE '%image%'
$$;
(SELECT 'missing', * FROM family_members('btree') EXCEPT SELECT 'missing', * FROM family_members('hybrid'))
UNION ALL
(SELECT 'extra', * FROM family_members('hybrid') EXCEPT SELECT 'extra', * FROM family_members('btree'))
ORDER BY 1, 2, 3, 4;

-- and so are functions that make something faster; support for ranges is there
-- since 18
SELECT f.opfname, p.amproc::regprocedure
FROM pg_amproc p JOIN pg_opfamily f ON f.oid = p.amprocfamily JOIN pg_am a ON a.oid = f.opfmethod
WHERE a.amname = 'btree' AND p.amprocnum IN (2, 3) AND f.oid < 16384
	AND NOT EXISTS (SELECT FROM pg_amproc q JOIN pg_opfamily g ON g.oid = q.amprocfamily JOIN pg_am b ON b.oid = g.opfmethod
		WHERE b.amname = 'hybrid' AND g.opfname = f.opfname AND q.amproclefttype = p.amproclefttype
			AND q.amprocrighttype = p.amprocrighttype AND q.amprocnum = p.amprocnum AND q.amproc = p.amproc);

-- properties the planner and tools ask for
SELECT p, pg_indexam_has_property(a.oid, p) FROM pg_am a,
	unnest('{can_order,can_unique,can_multi_col,can_exclude,can_include}'::text[]) p
WHERE a.amname = 'hybrid';
CREATE TABLE ct (a int, b text);
CREATE INDEX ct_i ON ct USING hybrid (a DESC, b) INCLUDE (b);
SELECT p, pg_index_has_property('ct_i', p) FROM unnest('{clusterable,index_scan,bitmap_scan,backward_scan}'::text[]) p;
SELECT c, p, pg_index_column_has_property('ct_i', c, p)
FROM generate_series(1, 3) c, unnest('{asc,desc,nulls_first,nulls_last,orderable,distance_orderable,returnable,search_array,search_nulls}'::text[]) p;
SELECT pg_get_indexdef('ct_i'::regclass);

-- a family of one's own: wrong members are told
CREATE OPERATOR FAMILY ct_fam USING hybrid;
SELECT regexp_replace(hyb_error(s), '[0-9]+$', 'N') FROM unnest(array[
	'ALTER OPERATOR FAMILY ct_fam USING hybrid ADD OPERATOR 6 = (int4, int4)',
	'ALTER OPERATOR FAMILY ct_fam USING hybrid ADD FUNCTION 9 (int4, int4) btint4cmp(int4, int4)']) s;
CREATE OPERATOR CLASS ct_ops FOR TYPE int4 USING hybrid FAMILY ct_fam AS
	OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 int4pl(int4, int4);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'ct_ops';
DROP OPERATOR CLASS ct_ops USING hybrid;
CREATE OPERATOR CLASS ct_ops FOR TYPE int4 USING hybrid FAMILY ct_fam AS STORAGE int4;
ALTER OPERATOR FAMILY ct_fam USING hybrid ADD OPERATOR 1 < (int2, int2);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'ct_ops';
DROP OPERATOR FAMILY ct_fam USING hybrid CASCADE;

-- functions that take other arguments than they would be called with
CREATE OPERATOR FAMILY ct_fam USING hybrid;
SELECT n, CASE WHEN e ~ '^42P17' THEN 'refused' ELSE e END AS result
FROM (SELECT n, hyb_error(format('ALTER OPERATOR FAMILY ct_fam USING hybrid ADD FUNCTION %s (int4, int4) %s', n, f)) AS e
	FROM (VALUES (1, 'hashint4(int4)'), (2, 'btint4cmp(int4, int4)'), (3, 'btint4cmp(int4, int4)'),
		(4, 'btint4cmp(int4, int4)'), (5, 'btint4cmp(int4, int4)'), (6, 'btint4cmp(int4, int4)'),
		(7, 'btint4cmp(int4, int4)')) v (n, f)
	UNION ALL SELECT 1, hyb_error('CREATE OPERATOR CLASS ct_ops FOR TYPE int4 USING hybrid FAMILY ct_fam AS FUNCTION 1 (int4, int4) btint8cmp(int8, int8)')) s
ORDER BY n;
DROP OPERATOR FAMILY ct_fam USING hybrid CASCADE;

-- an operator class of one's own works without a codec: reverse order
CREATE FUNCTION ct_revcmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS ct_rev_ops FOR TYPE int4 USING hybrid AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 ct_revcmp(int, int), FUNCTION 4 btequalimage(oid);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'ct_rev_ops';
CREATE TABLE ct_rev (a int);
INSERT INTO ct_rev SELECT i % 50 FROM generate_series(1, 500) i;
CREATE INDEX ct_rev_i ON ct_rev USING hybrid (a ct_rev_ops);
INSERT INTO ct_rev SELECT i % 60 FROM generate_series(1, 200) i;
SELECT hyb_same('SELECT a FROM ct_rev WHERE a > 10'), hyb_same('SELECT a FROM ct_rev WHERE a BETWEEN 5 AND 7'),
	hyb_same('SELECT a FROM ct_rev WHERE a = 55'), hyb_check('ct_rev');
SELECT hybrid_merge('ct_rev_i');
SELECT hyb_same('SELECT a FROM ct_rev WHERE a > 10'), hyb_same('SELECT a FROM ct_rev WHERE a = 55'), hyb_check('ct_rev');

-- what entries look like depends on these functions, so the family does not lose them
SELECT hyb_error(format('ALTER OPERATOR FAMILY ct_rev_ops USING hybrid DROP FUNCTION %s (int4, int4)', n)) ~ '^2BP01.* operator class ct_rev_ops' AS refused
FROM unnest(array[1, 4]) n;

-- uninstalling takes the indexes along
DROP TABLE ct;
DROP FUNCTION family_members;
SELECT hyb_error('DROP EXTENSION hybridindex') LIKE '2BP01%' AS refused;
BEGIN;
DROP EXTENSION hybridindex CASCADE;
SELECT count(*) FROM pg_class WHERE relname = 'ct_rev_i';
ROLLBACK;
DROP TABLE ct_rev;
DROP OPERATOR CLASS ct_rev_ops USING hybrid;
DROP OPERATOR FAMILY IF EXISTS ct_rev_ops USING hybrid;
DROP FUNCTION ct_revcmp;
