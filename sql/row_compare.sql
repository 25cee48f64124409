--
-- Row comparisons as conditions of the index, on every server version.  They end
-- the range where they can, and are exact in any case.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE rc (a int, b text COLLATE "C", c numeric, d float4, e timestamptz, i int);
CREATE FUNCTION rc_fill(n int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO rc SELECT nullif((h % 9)::int, 0), nullif(chr(97 + (h / 32 % 6)::int), 'a'), nullif((h / 4096 % 6) / 2.0, 1),
		nullif((h / 65536 % 5) / 2.0, 1), nullif(timestamptz '2024-01-01 UTC' + (h / 1048576 % 5) * interval '12 hours', '2024-01-02 UTC'), i
	FROM generate_series(1, n) i, LATERAL (SELECT hashint4extended(i, n) & 2147483647) x(h)
$$;

-- constants, of other types too, and beyond what the columns can have
CREATE TABLE rc_constants (col text, val text);
INSERT INTO rc_constants VALUES ('a', '4'), ('a', '7'), ('a', '1::int8'), ('a', '3000000000'), ('a', '-3000000000'), ('a', '8::int2'), ('a', 'NULL'),
	('b', '''d'''), ('b', '''cx'''), ('b', '''b''::name'), ('b', 'NULL'), ('b', 'repeat(''d'', 5000)'),
	('c', '0.5'), ('c', '2'), ('c', 'NULL'), ('c', '''NaN'''),
	('d', '0.5'), ('d', '1.5::float8'), ('d', '0.7::float8'), ('d', '''-0'''),
	('e', '''2024-01-02 12:00 UTC'''), ('e', 'date ''2024-01-02'''), ('e', 'timestamp ''2024-01-02 12:00''');
CREATE FUNCTION rc_constant(col text, n int) RETURNS text LANGUAGE sql AS $$
	SELECT val FROM rc_constants k WHERE k.col = rc_constant.col ORDER BY hashtextextended(val, n) LIMIT 1
$$;

-- the n-th condition over these columns
CREATE FUNCTION rc_condition(cols text[], n int) RETURNS text LANGUAGE sql AS $$
	SELECT format('(%s) %s (%s)', string_agg(c, ', ' ORDER BY o), (array['<', '<=', '>', '>='])[1 + n % 4], string_agg(rc_constant(c, n + o::int * 1000), ', ' ORDER BY o))
	FROM unnest(cols) WITH ORDINALITY AS x(c, o)
$$;

-- Conditions over each list of columns, alone and with others, by all paths.
CREATE FUNCTION rc_check(cols text, lists text, OUT queries int, OUT bad int) LANGUAGE plpgsql AS $$
DECLARE
	names	text := regexp_replace(cols, ' [A-Z ]+', '', 'g');
	back	text;
	list	text;
	q		text;
	other	text;
BEGIN
	SELECT string_agg(CASE WHEN c ~ 'DESC' THEN split_part(c, ' ', 1) || CASE WHEN c ~ 'LAST' THEN ' NULLS FIRST' WHEN c ~ 'FIRST' THEN ' NULLS LAST' ELSE '' END
		ELSE split_part(c, ' ', 1) || ' DESC' || CASE WHEN c ~ 'FIRST' THEN ' NULLS LAST' ELSE '' END END, ', ' ORDER BY o) INTO back
	FROM unnest(string_to_array(cols, ', ')) WITH ORDINALITY AS x(c, o);
	queries := 0;
	bad := 0;
	EXECUTE 'CREATE INDEX rc_i ON rc USING hybrid (' || cols || ')';
	FOREACH list IN ARRAY string_to_array(lists, ' ') LOOP
		FOR n IN 1 .. 24 LOOP
			q := rc_condition(string_to_array(list, ','), n);
			other := (array['true', 'a = 4', 'a IN (2, 4, 7)', rc_condition(string_to_array(list, ','), n + 1), rc_condition(string_to_array(list, ','), n + 2), 'a < 6', 'c > 0.5', 'a > 4 AND a < 7', 'b = ''d'' AND a IS NOT NULL', 'a >= 7 AND a <= 7', 'c IN (0.5, 2)', 'b > ''c'''])[1 + (n * 7 + n / 12) % 12];
			CONTINUE WHEN other ~ ('\m[^' || replace(names, ', ', '') || '] (=|<|>|>=|<=|IN|IS) ');
			q := format('SELECT %s FROM rc WHERE %s AND %s', names, q, other);
			queries := queries + 1;
			CONTINUE WHEN hyb_same(q) AND hyb_same(format('%s ORDER BY %s', q, cols), 'order order_only') AND
				hyb_same(format('%s ORDER BY %s LIMIT 20', q, back), 'order');
			bad := bad + 1;
			RAISE WARNING '%', q;
		END LOOP;
	END LOOP;
	DROP INDEX rc_i;
END $$;
CREATE FUNCTION rc_all() RETURNS TABLE (cols text, queries int, bad int) LANGUAGE sql AS $$
	SELECT i.cols, r.queries, r.bad FROM (VALUES
		(1, 'a, b, c', 'a,b a,b,c b,a a,c a,a b,c,a'),
		(2, 'a DESC, b, c', 'a,b b,c'),
		(3, 'a DESC, b DESC, c', 'a,b a,b,c'),
		(4, 'a NULLS FIRST, b NULLS FIRST, c NULLS FIRST', 'a,b,c c,b,a'),
		(5, 'a DESC NULLS LAST, b DESC NULLS LAST', 'a,b b,a'),
		(6, 'c, a, e, d', 'c,a c,a,e,d a,e'),
		(7, 'e DESC, d DESC, b DESC', 'e,d,b e,d'),
		(8, 'd, a NULLS FIRST', 'd,a a,d')) AS i (n, cols, lists), rc_check(i.cols, i.lists) r ORDER BY n
$$;
SELECT rc_fill(800);
ANALYZE rc;
SELECT * FROM rc_all();

-- each column sorted either way, with its NULLs at either end
CREATE FUNCTION rc_sorts(OUT sorts int, OUT bad text[]) LANGUAGE plpgsql AS $$
DECLARE
	cols	text;
	op		text;
BEGIN
	sorts := 0;
	FOR cols IN SELECT format('a %s, b %s, c %s', x, y, z) FROM (SELECT unnest(array['', 'NULLS FIRST', 'DESC', 'DESC NULLS LAST'])) o(x),
		LATERAL (SELECT unnest(array['', 'NULLS FIRST', 'DESC', 'DESC NULLS LAST'])) p(y), LATERAL (SELECT unnest(array['', 'NULLS FIRST', 'DESC', 'DESC NULLS LAST'])) q(z)
	LOOP
		EXECUTE 'CREATE INDEX rc_i ON rc USING hybrid (' || cols || ')';
		FOREACH op IN ARRAY array['<', '>='] LOOP
			CONTINUE WHEN hyb_same(format('SELECT a, b, c FROM rc WHERE (a, b, c) %s (4, ''d'', 0.5)', op));
			bad := bad || (cols || ' ' || op);
		END LOOP;
		DROP INDEX rc_i;
		sorts := sorts + 1;
	END LOOP;
END $$;
SELECT * FROM rc_sorts();

-- the first column has one value, which is, or is not, that of the comparison
CREATE INDEX rc_e ON rc USING hybrid (a, b, c DESC);
SELECT q, hyb_same('SELECT a, b, c FROM rc WHERE ' || q) AS same, (hyb_rows('SELECT a, b, c FROM rc WHERE ' || q, 'seq')).rows <> '{}' AS some
FROM unnest(array['b = ''d'' AND (b, a) > (''d'', 4)', 'b = ''d'' AND (b, a) > (''c'', 4)', 'b = ''d'' AND (b, a) > (''e'', 4)', 'a = 4 AND (a, b) > (4, ''c'')', 'a = 4 AND (a, b, c) <= (4, ''d'', 1.5)',
	'a = 4 AND b = ''c'' AND (a, b) > (4, ''c'')', 'a = 4 AND b = ''c'' AND (a, b) >= (4, ''c'')', 'a = 4 AND (a, b) > (4, NULL)', 'a = 4 AND (a, b) > (3, NULL)', 'a = 4 AND (a, a, b) >= (4, 4, ''d'')',
	'(a, b) > (4, ''b'') AND (a, b) < (4, ''e'')', '(a, b) > (4, ''b'') AND (a, b) <= (4, ''b'')', '(a, b) >= (4, ''b'') AND (a, b, c) <= (4, ''b'', 2)', 'a IN (2, 4) AND (b, c) > (''c'', 1)', 'a IS NULL AND (b, c) > (''c'', 1)']) q;
DROP INDEX rc_e;

-- entries of both stages
CREATE FUNCTION rc_stages(cols text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'CREATE INDEX rc_s ON rc USING hybrid (' || cols || ')';
	PERFORM rc_fill(300);
	RETURN (SELECT bool_and(hyb_same('SELECT a, b, c FROM rc WHERE ' || rc_condition('{a,b,c}', n)) AND
			hyb_same('SELECT a, b, c FROM rc WHERE ' || rc_condition('{a,b,c}', n) || ' ORDER BY ' || cols || ' LIMIT 30', 'order order_only')) FROM generate_series(1, 40) n)
		AND hyb_check('rc');
END $$;
SELECT rc_stages('a, b, c');
DROP INDEX rc_s;
SELECT rc_stages('a DESC, b DESC NULLS LAST, c');
DROP INDEX rc_s;

-- what is said, and how much is read for it
CREATE TABLE rc_page (a int, b int, pad text);
INSERT INTO rc_page SELECT i / 5000, i % 5000, '' FROM generate_series(1, 20000) i;
CREATE INDEX rc_page_ab ON rc_page USING hybrid (a, b);
VACUUM ANALYZE rc_page;
CREATE FUNCTION rc_read(query text, OUT blocks int, OUT removed int) LANGUAGE plpgsql AS $$
DECLARE
	p	jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO p;
	p := p -> 0 -> 'Plan';
	blocks := (p ->> 'Shared Hit Blocks')::int + (p ->> 'Shared Read Blocks')::int;
	removed := coalesce(jsonb_path_query_first(p, '$.**."Rows Removed by Filter"')::int, 0);
END $$;
SELECT q, p.blocks < 10 AS few, p.removed FROM unnest(array[
	'SELECT * FROM rc_page WHERE (a, b) > (1, 4000) ORDER BY a, b LIMIT 20',
	'SELECT * FROM rc_page WHERE (a, b) < (1, 4000) ORDER BY a DESC, b DESC LIMIT 20',
	'SELECT a, b FROM rc_page WHERE (a, b) > (1, 4000) ORDER BY a, b LIMIT 20',
	'SELECT * FROM rc_page WHERE (a, b) > (1, 4000) AND (a, b) <= (1, 4010)',
	'SELECT * FROM rc_page WHERE a = 2 AND (a, b) > (2, 4990)',
	'SELECT * FROM rc_page WHERE (b, a) < (3, 1) AND a = 2']) q, rc_read(q) p;
EXPLAIN (COSTS off) SELECT * FROM rc_page WHERE (a, b) > (1, 4000) ORDER BY a, b LIMIT 20;
EXPLAIN (COSTS off) SELECT a, b FROM rc_page WHERE (a, b) > (1, 4000) AND (a, b) <= (1, 4010);
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT * FROM rc_page WHERE (3, 4000, 'x') < (a, b, pad) ORDER BY a, b LIMIT 1;
RESET enable_bitmapscan;
EXPLAIN (COSTS off) SELECT p.* FROM (VALUES (1, 7), (3, 100)) v (x, y), LATERAL (SELECT a, b FROM rc_page WHERE (a, b) > (x, y) ORDER BY a, b LIMIT 2) p;
SELECT p.* FROM (VALUES (1, 7), (3, 100)) v (x, y), LATERAL (SELECT a, b FROM rc_page WHERE (a, b) > (x, y) ORDER BY a, b LIMIT 2) p;
SELECT count(*) FROM (VALUES (0, 3), (3, 4990), (NULL, 2), (3, NULL)) v (x, y) JOIN rc_page ON (a, b) > (x, y);

-- prepared, with other parameters each time; within functions, cursors and subqueries
SET plan_cache_mode = force_generic_plan;
PREPARE rc_next (int, int) AS SELECT a, b FROM rc_page WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 2;
EXPLAIN (COSTS off) EXECUTE rc_next(0, 4999);
EXECUTE rc_next(0, 4999);
EXECUTE rc_next(2, 4998);
EXECUTE rc_next(2, NULL);
EXECUTE rc_next(NULL, 1);
EXPLAIN (COSTS off) EXECUTE rc_next(0, 4999);
PREPARE rc_locked (int, int) AS SELECT a, b FROM rc_page WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 2 FOR UPDATE;
EXECUTE rc_locked(0, 4999);
EXECUTE rc_locked(2, 4998);
EXPLAIN (COSTS off) EXECUTE rc_locked(0, 4999);
PREPARE rc_change (int, int) AS UPDATE rc_page SET pad = 'x' WHERE (a, b) >= ($1, $2) RETURNING a, b, pad;
EXECUTE rc_change(3, 4999);
EXECUTE rc_change(4, 0);
WITH u AS (UPDATE rc_page SET pad = 'y' WHERE (a, b) > (3, 4998) RETURNING a, b) SELECT count(*), max(b) FROM u;
RESET plan_cache_mode;
CREATE FUNCTION rc_after(x int, y int) RETURNS SETOF rc_page LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT * FROM rc_page WHERE (a, b) > (x, y) ORDER BY a, b LIMIT 1;
END $$;
SELECT rc_after(1, i) FROM generate_series(4996, 5001) i;
BEGIN;
DECLARE rc_c SCROLL CURSOR FOR SELECT a, b FROM rc_page WHERE (a, b) > (1, 4997) AND (a, b) < (2, 2) ORDER BY a, b;
FETCH 2 FROM rc_c;
FETCH BACKWARD 1 FROM rc_c;
FETCH ALL FROM rc_c;
FETCH BACKWARD ALL FROM rc_c;
COMMIT;

-- a worker that gets the plan from another process
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
CREATE TABLE rc_outer AS SELECT i % 4 AS x, 4990 + i % 9 AS y FROM generate_series(1, 40) i;
ALTER TABLE rc_outer SET (parallel_workers = 2);
ANALYZE rc_outer;
EXPLAIN (COSTS off) SELECT count(*) FROM rc_outer JOIN rc_page ON (a, b) > (x, y) AND a = x;
SELECT count(*), sum(b) FROM rc_outer JOIN rc_page ON (a, b) > (x, y) AND a = x;
SET max_parallel_workers_per_gather = 0;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(b) FROM rc_outer JOIN rc_page ON (a, b) > (x, y) AND a = x;
DROP FUNCTION rc_fill, rc_constant, rc_condition, rc_check, rc_all, rc_stages, rc_read, rc_after, rc_sorts;
DROP TABLE rc, rc_constants, rc_page, rc_outer;
