--
-- What the planner reserves for btree and its operator families: bare booleans,
-- LIKE over pattern classes, joins to unique keys that the query does not use,
-- values beyond what ANALYZE has seen.  Row comparisons are in row_compare.
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

-- of strings that are stored encoded, too
ALTER TABLE pl ADD hp text COLLATE "C", ADD hv varchar COLLATE "C";
UPDATE pl SET hp = p, hv = p;
CREATE INDEX pl_hv ON pl USING hybrid (hv varchar_hope_ops, i);
CREATE INDEX pl_hp ON pl USING hybrid (hp text_hope_ops);
VACUUM ANALYZE pl;
SELECT c, p.* FROM unnest(array[
	'hv = ''c81e728d9d4c2f636f067f89cc14862c''', 'hv = ''c81e728d9d4c2f636f067f89cc14862c''::name', 'hv >= ''fff''::name',
	'hp = ANY (''{c81e728d9d4c2f636f067f89cc14862c,x}''::name[])', 'hp > ''ffe''::name AND hp < ''fff''', '(hv, i) > (''fff''::text, 3)']) WITH ORDINALITY AS q(c, o), pl_cond(c) p ORDER BY o;
DROP INDEX pl_hv, pl_hp;

-- beyond what ANALYZE has seen the index is asked: the same rows are expected as
-- of a btree
CREATE TABLE pl_end (i int8, d date);
CREATE FUNCTION pl_rows(condition text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	p	json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM pl_end WHERE ' || condition INTO p;
	RETURN (p -> 0 -> 'Plan' ->> 'Plan Rows')::numeric;
END $$;
CREATE FUNCTION pl_estimates() RETURNS numeric[] LANGUAGE sql AS $$
	SELECT array_agg(pl_rows(c) ORDER BY o) FROM unnest(array['i > 40000', 'i > 12000 AND i < 13000', 'i < -100', 'i >= 59000', 'd > ''2030-01-01''', 'd <= ''1999-01-01''']) WITH ORDINALITY x(c, o)
$$;
INSERT INTO pl_end SELECT i, date '2000-01-01' + (i / 10)::int FROM generate_series(1, 10000) i;
VACUUM ANALYZE pl_end;
INSERT INTO pl_end SELECT i, date '2000-01-01' + (i / 10)::int FROM generate_series(-10000, 60000) i WHERE i NOT BETWEEN 1 AND 10000;
CREATE INDEX pl_end_i ON pl_end USING btree (i);
CREATE INDEX pl_end_d ON pl_end USING btree (d DESC);
CREATE TABLE pl_expected AS SELECT pl_estimates() AS e;
DROP INDEX pl_end_i, pl_end_d;
CREATE INDEX pl_end_i ON pl_end USING hybrid (i);
CREATE INDEX pl_end_d ON pl_end USING hybrid (d DESC);
SELECT pl_estimates() = e AS same, e[1] > 100 AS more FROM pl_expected;
DROP TABLE pl_end, pl_expected;
DROP FUNCTION pl_estimates, pl_rows;

-- a family that lacks operators is taken for btree's if the query needs none of them
CREATE OPERATOR CLASS pl_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
DROP INDEX pl_i, pl_b;
CREATE INDEX pl_i ON pl USING hybrid (i pl_ops);
SELECT c, p.* FROM unnest(array['i = 70', 'i > 10 AND i = 70::int8']) c, pl_cond(c) p;

-- then an index with one is, too, and serves row comparisons; otherwise joins only
CREATE INDEX pl_ip ON pl USING hybrid (i pl_ops, p);
DROP INDEX pl_i;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT count(*) FROM (VALUES (1), (2)) v (x) JOIN pl ON i = x;
EXPLAIN (COSTS off) SELECT i, p FROM pl WHERE (i, p) > (4990, 'x') ORDER BY i, p;
EXPLAIN (COSTS off) SELECT i, p FROM pl WHERE (i, p) > (4990::int8, 'x') ORDER BY i, p;
DROP TABLE pl;
DROP OPERATOR FAMILY pl_ops USING hybrid;
DROP FUNCTION pl_cond;

-- what a condition on a column with duplicates returns is estimated as for btree
CREATE TABLE pl_dup (k int, u int);
INSERT INTO pl_dup SELECT i % 4, i FROM generate_series(1, 28000) i;
CREATE FUNCTION pl_dup_rows(method text) RETURNS TABLE (condition text, plan_rows numeric, cost numeric) LANGUAGE plpgsql AS $$
DECLARE
	p	json;
BEGIN
	EXECUTE format('CREATE INDEX pl_dup_k ON pl_dup USING %s (k)', method);
	EXECUTE format('CREATE UNIQUE INDEX pl_dup_u ON pl_dup USING %s (u, k)', method);
	ANALYZE pl_dup;
	FOR condition IN SELECT unnest(array['k = 1', 'k IN (1, 2)', 'k = 1 AND u > 10000', 'u = 5 AND k = 1', 'k < 2']) LOOP
		EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM pl_dup WHERE ' || condition INTO p;
		plan_rows := jsonb_path_query_first(p::jsonb, '$.** ? (@."Index Name" like_regex "^pl_dup")."Plan Rows"');
		cost := jsonb_path_query_first(p::jsonb, '$.** ? (@."Index Name" like_regex "^pl_dup")."Total Cost"');
		RETURN NEXT;
	END LOOP;
	DROP INDEX pl_dup_k, pl_dup_u;
END $$;
SET enable_seqscan = off;
SET enable_indexscan = off;
CREATE TABLE pl_expected AS SELECT * FROM pl_dup_rows('btree');
SELECT h.condition, h.plan_rows = b.plan_rows AS same, h.cost BETWEEN b.cost / 3 AND b.cost * 1.5 AS near
FROM pl_dup_rows('hybrid') h JOIN pl_expected b USING (condition);
DROP TABLE pl_dup, pl_expected;
DROP FUNCTION pl_dup_rows;

-- a unique index has any number of NULLs: finding them costs what it does in an
-- index that is not unique
CREATE TABLE pl_null (k int);
INSERT INTO pl_null SELECT CASE WHEN i % 50 = 0 THEN i END FROM generate_series(1, 28000) i;
CREATE FUNCTION pl_null_cost(kind text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	p	json;
BEGIN
	EXECUTE format('CREATE %s INDEX pl_null_k ON pl_null USING hybrid (k)', kind);
	ANALYZE pl_null;
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM pl_null WHERE k IS NULL' INTO p;
	DROP INDEX pl_null_k;
	RETURN jsonb_path_query_first(p::jsonb, '$.** ? (@."Index Name" == "pl_null_k")."Total Cost"');
END $$;
SELECT pl_null_cost('UNIQUE') = pl_null_cost('') AS same;
DROP TABLE pl_null;
DROP FUNCTION pl_null_cost;
