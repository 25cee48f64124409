--
-- What the planner reserves for btree's operator families: bare booleans, LIKE
-- over pattern classes, joins to unique keys that nobody asks for.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE pl (b bool, i int, p text, v varchar, c char(10), n name);
INSERT INTO pl SELECT i % 100 = 0, i, md5(i::text), md5(i::text), i, i FROM generate_series(1, 5000) i;
INSERT INTO pl VALUES (NULL);
CREATE INDEX pl_b ON pl USING hybrid (b DESC, i);
CREATE INDEX pl_p ON pl USING hybrid (p text_pattern_ops);
CREATE INDEX pl_v ON pl USING hybrid (v varchar_pattern_ops);
CREATE INDEX pl_c ON pl USING hybrid (c bpchar_pattern_ops);
CREATE INDEX pl_n ON pl USING hybrid (n);
CREATE UNIQUE INDEX pl_i ON pl USING hybrid (i);
VACUUM ANALYZE pl;

-- the condition of the index, and whether the answers are those of a table scan
CREATE FUNCTION pl_cond(condition text, OUT cond text, OUT same boolean) LANGUAGE sql AS $$
	SELECT jsonb_path_query_first((hyb_rows('SELECT i FROM pl WHERE ' || condition, 'index')).plan, '$.**."Index Cond"') #>> '{}',
		hyb_same('SELECT i FROM pl WHERE ' || condition, 'index bitmap')
$$;
SELECT c, p.* FROM unnest(array[
	'b', 'NOT b', 'b IS TRUE', 'b IS FALSE', 'b AND i > 4000',
	'p LIKE ''ab%''', 'v LIKE ''ab%3''', 'v ~ ''^abc''', 'c LIKE ''12%''',
	'n LIKE ''12%''', 'n = ''77''']) WITH ORDINALITY AS q(c, o), pl_cond(c) p ORDER BY o;

-- the order is that of the index, where the first column is fixed
EXPLAIN (COSTS off) SELECT i FROM pl WHERE b ORDER BY i LIMIT 3;

-- a join that finds one row at most, and is not asked for it
EXPLAIN (COSTS off) SELECT a.i FROM pl a LEFT JOIN pl b ON b.i = a.i WHERE a.i = 7;
EXPLAIN (COSTS off) SELECT a.i FROM pl a LEFT JOIN pl b ON b.p = a.p WHERE a.i = 7;

-- a family that has not all of the operators is not taken for btree's
CREATE OPERATOR CLASS pl_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
DROP INDEX pl_i, pl_b;
CREATE INDEX pl_i ON pl USING hybrid (i pl_ops);
SELECT c, p.* FROM unnest(array['i = 70', 'i > 10 AND i = 70::int8']) c, pl_cond(c) p;
DROP TABLE pl;
DROP OPERATOR FAMILY pl_ops USING hybrid;
DROP FUNCTION pl_cond;
