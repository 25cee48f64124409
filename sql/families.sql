--
-- Users add members to operator families and drop them.  Plans over btree indexes
-- are as without the extension.  Plans over hybrid indexes stay as they were,
-- unless a query has types of these members.  All of it is rolled back.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE FUNCTION fm_plan(query text, OUT line text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		RETURN NEXT;
	END LOOP;
END
$$;

-- A type that is stored as int8, and its operators in btree's family, some of
-- them for both types, as the server's own test equivclass has them
CREATE FUNCTION fm_add() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	types	text[];
	o		record;
BEGIN
	CREATE TYPE fm_int;
	CREATE FUNCTION fm_in(cstring) RETURNS fm_int STRICT IMMUTABLE LANGUAGE internal AS 'int8in';
	CREATE FUNCTION fm_out(fm_int) RETURNS cstring STRICT IMMUTABLE LANGUAGE internal AS 'int8out';
	CREATE TYPE fm_int (INPUT = fm_in, OUTPUT = fm_out, LIKE = int8);
	CREATE CAST (int8 AS fm_int) WITHOUT FUNCTION;
	FOREACH types SLICE 1 IN ARRAY array[array['fm_int', 'fm_int'], array['int8', 'fm_int'], array['fm_int', 'int8']] LOOP
		FOR o IN SELECT * FROM (VALUES (1, '<', 'lt', '>'), (2, '<=', 'le', '>='), (3, '=', 'eq', '='), (4, '>=', 'ge', '<='), (5, '>', 'gt', '<')) o (n, op, f, commutator) LOOP
			EXECUTE format('CREATE FUNCTION fm_%s(%s, %s) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS %L', o.f, types[1], types[2], 'int8' || o.f);
			EXECUTE format('CREATE OPERATOR %s (FUNCTION = fm_%s, LEFTARG = %s, RIGHTARG = %s, COMMUTATOR = %s, RESTRICT = %s, JOIN = %s%s)',
				o.op, o.f, types[1], types[2], o.commutator, CASE o.n WHEN 3 THEN 'eqsel' ELSE 'scalarltsel' END,
				CASE o.n WHEN 3 THEN 'eqjoinsel' ELSE 'scalarltjoinsel' END, CASE o.n WHEN 3 THEN ', MERGES' ELSE '' END);
			EXECUTE format('ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR %s %s (%s, %s)', o.n, o.op, types[1], types[2]);
		END LOOP;
		EXECUTE format('CREATE FUNCTION fm_cmp(%s, %s) RETURNS int STRICT IMMUTABLE LANGUAGE internal AS ''btint8cmp''', types[1], types[2]);
		EXECUTE format('ALTER OPERATOR FAMILY integer_ops USING btree ADD FUNCTION 1 (%s, %s) fm_cmp(%1$s, %2$s)', types[1], types[2]);
	END LOOP;
END
$$;

CREATE TABLE fm_btree (id int8, n int8, s text);
CREATE TABLE fm (id int8, n int8, s text COLLATE "C");
INSERT INTO fm_btree SELECT i, i % 100, 'string ' || i FROM generate_series(1, 2000) i;
INSERT INTO fm SELECT * FROM fm_btree;
CREATE UNIQUE INDEX fm_btree_id ON fm_btree USING btree (id);
CREATE INDEX fm_btree_n ON fm_btree USING btree (n, id);
CREATE UNIQUE INDEX fm_id ON fm USING hybrid (id);
CREATE INDEX fm_n ON fm USING hybrid (n, id);
CREATE INDEX fm_s ON fm USING hybrid (s);
ANALYZE fm, fm_btree;
CREATE TABLE fm_queries (query text);
INSERT INTO fm_queries VALUES
	('SELECT * FROM tbl WHERE (n, id) > (98, 1900)'),
	('SELECT * FROM tbl WHERE id = 42::int4 AND s LIKE ''string 4%'''),
	('SELECT x.n FROM tbl x LEFT JOIN tbl y ON x.n = y.id WHERE x.id = 1942'),
	('SELECT count(*) FROM tbl x JOIN tbl y ON x.n = y.id WHERE y.id IN (1, 5) AND (x.n, x.id) <= (1, 100::int2)'),
	('SELECT max(n) FROM tbl WHERE id > 5 AND id + n = (SELECT min(id) FROM tbl WHERE n = 7::int2)');
CREATE VIEW fm_plans AS
SELECT tbl, query COLLATE "C" AS query, fm_plan(replace(query, 'tbl', tbl)) COLLATE "C" AS line FROM fm_queries, unnest(array['fm', 'fm_btree']) tbl;

-- Each pair of these conditions, with and without index
CREATE TABLE fm_conditions (condition text);
INSERT INTO fm_conditions VALUES ('(n, id) > (98, 1500)'), ('(id, n) <= (120, 20::int2)'), ('n = 42::int4'), ('n = 42::int2'), ('id = 142'), ('id > 1800::int2'),
	('id = ANY (''{42, 142, 7}''::int4[])'), ('id IN (SELECT n FROM fm_btree WHERE id < 300)'), ('id = (SELECT max(n) FROM fm_btree WHERE id < 200::int2)'),
	('s LIKE ''string 1%''');
CREATE FUNCTION fm_wrong(OUT query text, OUT by_index text, OUT by_table text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
	FOR query IN SELECT format('SELECT count(*) || '' '' || coalesce(sum(id), 0) FROM fm WHERE %s AND %s', a.condition, b.condition)
		FROM fm_conditions a JOIN fm_conditions b ON a.condition <= b.condition ORDER BY 1 LOOP
		SET LOCAL enable_seqscan = off;
		EXECUTE query INTO by_index;
		SET LOCAL enable_seqscan = on;
		SET LOCAL enable_indexscan = off;
		SET LOCAL enable_bitmapscan = off;
		EXECUTE query INTO by_table;
		RESET enable_indexscan;
		RESET enable_bitmapscan;
		CONTINUE WHEN by_index = by_table;
		RETURN NEXT;
	END LOOP;
END
$$;

-- The index of a partitioned table says what is unique.
SET hybridindex.replace_btree = on;
CREATE TABLE fm_part (a int, b int, c int, PRIMARY KEY (a, b)) PARTITION BY LIST (a);
CREATE TABLE fm_part_1 PARTITION OF fm_part FOR VALUES IN (1);
CREATE TABLE fm_part_2 PARTITION OF fm_part FOR VALUES IN (2);
RESET hybridindex.replace_btree;
EXPLAIN (COSTS off) SELECT a, b, c FROM fm_part GROUP BY a, b, c;
DROP TABLE fm_part;

BEGIN;
CREATE TEMP TABLE fm_before AS TABLE fm_plans;
SELECT fm_add();

-- what does not have the new type
SELECT count(*) > 20 AS some FROM fm_before;
TABLE fm_plans EXCEPT TABLE fm_before ORDER BY 1, 2, 3;
EXPLAIN (COSTS off) SELECT * FROM fm WHERE (n, id) > (98, 1900);

-- and what has it: our family has not
EXPLAIN (COSTS off) SELECT * FROM fm_btree WHERE id = n AND n = '42'::fm_int;
EXPLAIN (COSTS off) SELECT * FROM fm WHERE id = n AND n = '42'::fm_int;
EXPLAIN (COSTS off) SELECT * FROM fm WHERE (n, id) > (98, '1900'::fm_int);
INSERT INTO fm_conditions VALUES ('id = ''142''::fm_int'), ('n = ''42''::fm_int'), ('(n, id) > (98, ''1500''::fm_int)');
SELECT * FROM fm_wrong();
ROLLBACK;

-- members that ours has lost
BEGIN;
CREATE TEMP TABLE fm_before AS TABLE fm_plans;
ALTER OPERATOR FAMILY integer_ops USING hybrid DROP OPERATOR 3 (int8, int2), OPERATOR 5 (int8, int2);
TABLE fm_plans EXCEPT TABLE fm_before ORDER BY 1, 2, 3;
SELECT * FROM fm_wrong();
ROLLBACK;
SELECT * FROM fm_wrong();

DROP TABLE fm, fm_btree, fm_queries, fm_conditions CASCADE;
DROP FUNCTION fm_plan, fm_add, fm_wrong;
