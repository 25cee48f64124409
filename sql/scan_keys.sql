--
-- Scan keys of every kind, made systematically over indexes of every direction,
-- in both stages: operators, constants (of other types, NULL, beyond what the
-- column can have), arrays, NULL tests and row comparisons.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET timezone = 'Europe/Berlin';

CREATE TABLE sk (a int4, b int8, t timestamp, z timestamptz, d date, u uuid, y bytea);

-- Few values, so that each is in many rows; NULLs; the ends of each type.  The
-- clocks of Berlin go from 2 to 3 on March 31, and from 3 to 2 on October 27.
CREATE FUNCTION sk_fill(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO sk SELECT
		(array[NULL, 1, 3, 3, 5, 7, 8, 2147483647, -2147483648])[1 + h % 9],
		(array[NULL, 1, 3, 4, 7, 9223372036854775807, -9223372036854775808])[1 + h / 16 % 7],
		(array[NULL, '2024-03-31 01:59', '2024-03-31 02:30', '2024-03-31 03:00', '2024-10-27 01:30', '2024-10-27 02:30', '2024-10-27 03:30', '-infinity', 'infinity', '294276-12-31 23:59:59'])[1 + h / 128 % 10]::timestamp,
		(array[NULL, '2024-03-31 00:30 UTC', '2024-03-31 01:00 UTC', '2024-03-31 01:30 UTC', '2024-10-27 00:30 UTC', '2024-10-27 01:30 UTC', '2024-10-27 02:30 UTC', '-infinity', 'infinity'])[1 + h / 2048 % 9]::timestamptz,
		(array[NULL, '2024-03-31', '2024-04-01', '2024-10-27', '-infinity', 'infinity', '5874897-12-31', '294277-01-01', '294276-12-31', '4713-01-01 BC'])[1 + h / 32768 % 10]::date,
		(array[NULL, '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'ffffffff-ffff-ffff-0000-000000000000', 'fffffffe-ffff-ffff-ffff-ffffffffffff', '7fffffff-ffff-ffff-ffff-ffffffffffff'])[1 + h / 524288 % 6]::uuid,
		(array[NULL, '', '\xff', '\xffff', '\xffffffffffffffffff', '\xffffffffffffffffff00', '\xfe', '\x00'])[1 + h / 4194304 % 8]::bytea
	FROM generate_series(first, last) i, LATERAL (SELECT hashint4(i) & 2147483647) x(h)
$$;

-- What the columns are compared with.
CREATE TABLE sk_constants (col text, val text);
INSERT INTO sk_constants VALUES
	('a', '3'), ('a', '4::int2'), ('a', '8::int8'), ('a', '2147483647'), ('a', '-2147483648'), ('a', '2147483648'), ('a', '-9223372036854775808'), ('a', 'NULL::int4'),
	('b', '3'), ('b', '5::int2'), ('b', '9223372036854775807'), ('b', '-9223372036854775808'), ('b', 'NULL::int8'),
	('t', 'timestamp ''2024-03-31 02:30'''), ('t', 'timestamptz ''2024-03-31 01:00 UTC'''), ('t', 'timestamptz ''2024-10-27 00:30 UTC'''), ('t', 'timestamptz ''2024-10-27 01:30 UTC'''), ('t', 'date ''2024-10-27'''), ('t', 'date ''infinity'''), ('t', 'date ''5874897-12-31'''), ('t', 'timestamptz ''-infinity'''), ('t', 'timestamptz ''294276-12-31 23:59:59 UTC'''),
	('z', 'timestamptz ''2024-10-27 01:30 UTC'''), ('z', 'timestamp ''2024-10-27 02:30'''), ('z', 'timestamp ''2024-03-31 02:30'''), ('z', 'date ''2024-10-27'''), ('z', 'date ''294277-01-01'''), ('z', 'timestamp ''infinity'''), ('z', 'NULL::timestamptz'),
	('d', 'date ''2024-03-31'''), ('d', 'timestamp ''2024-03-31 00:00'''), ('d', 'timestamp ''2024-10-27 12:00'''), ('d', 'timestamptz ''2024-10-26 22:00 UTC'''), ('d', 'timestamptz ''2024-10-27 12:00 UTC'''), ('d', 'date ''5874897-12-31'''), ('d', 'timestamp ''294276-12-31 23:59:59'''), ('d', 'timestamptz ''294276-12-31 23:59:59 UTC'''), ('d', 'timestamp ''infinity'''), ('d', 'timestamptz ''-infinity'''),
	('u', 'uuid ''ffffffff-ffff-ffff-ffff-ffffffffffff'''), ('u', 'uuid ''ffffffff-ffff-ffff-ffff-fffffffffffe'''), ('u', 'uuid ''00000000-0000-0000-0000-000000000000'''), ('u', 'uuid ''7fffffff-ffff-ffff-ffff-ffffffffffff'''),
	('y', 'bytea ''\xff'''), ('y', 'bytea ''\xffffffffffffffffff'''), ('y', 'bytea ''\xfffffffffffffffffffffe'''), ('y', 'bytea ''''');

-- Arrays of them: unordered, with duplicates, NULLs, nothing, one element.
CREATE TABLE sk_arrays (col text, val text);
INSERT INTO sk_arrays VALUES
	('a', '''{3,7}''::int4[]'), ('a', '''{7,3,3,NULL,1}''::int4[]'), ('a', '''{}''::int4[]'), ('a', '''{NULL}''::int4[]'), ('a', '''{8,-32768,4}''::int2[]'), ('a', '''{3000000000,5,-3000000000}''::int8[]'), ('a', '''{2147483647,-2147483648}''::int4[]'),
	('b', '''{7,4}''::int8[]'), ('b', '''{3}''::int4[]'), ('b', '''{9223372036854775807,NULL,-9223372036854775808}''::int8[]'),
	('t', '''{2024-10-27 02:30,infinity,2024-03-31 02:30}''::timestamp[]'), ('t', '''{2024-10-27 01:30 UTC,2024-10-27 00:30 UTC}''::timestamptz[]'), ('t', '''{5874897-12-31,2024-10-27}''::date[]'),
	('z', '''{2024-10-27 01:30 UTC,-infinity}''::timestamptz[]'), ('z', '''{2024-10-27 02:30,2024-03-31 02:30}''::timestamp[]'),
	('d', '''{2024-10-27,infinity,5874897-12-31}''::date[]'), ('d', '''{2024-10-27 12:00,2024-03-31 00:00}''::timestamp[]'),
	('u', '''{ffffffff-ffff-ffff-ffff-ffffffffffff,00000000-0000-0000-0000-000000000000}''::uuid[]'),
	('y', 'array[bytea ''\xffff'', ''\xff'', '''']');

-- All conditions on one column.  Half of the constants are known only when the
-- query runs, so is NULL: the planner makes short work of a NULL that it sees.
CREATE FUNCTION sk_conditions(col text) RETURNS TABLE (cond text) LANGUAGE sql AS $$
	SELECT CASE WHEN val ~ 'NULL' OR md5(val || op) < '8'
			THEN format('%s %s (SELECT %s)', col, op, val)
			ELSE format('%s %s %s', col, op, val) END
	FROM sk_constants k, unnest(array['<', '<=', '=', '>=', '>']) op WHERE k.col = sk_conditions.col
	UNION ALL
	SELECT format('%s %s ANY (%s)', col, op, val)
	FROM sk_arrays k, unnest(array['<', '<=', '=', '>=', '>']) op WHERE k.col = sk_conditions.col
	UNION ALL
	SELECT format('%s IS %s', col, n) FROM unnest(array['NULL', 'NOT NULL']) n
$$;

-- Row comparisons over two columns, n of each operator.
CREATE FUNCTION sk_rows(col1 text, col2 text, n int) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT format('(%s, %s) %s (%s, %s)', col1, col2, op, x.val, y.val)
	FROM unnest(array['<', '<=', '>=', '>']) op, LATERAL (
		SELECT x.val, y.val AS other FROM sk_constants x, sk_constants y
		WHERE x.col = col1 AND y.col = col2 AND x.val !~ 'NULL'
		ORDER BY md5(op || x.val || y.val) LIMIT n) x (val, other), LATERAL (SELECT x.other) y (val)
$$;

-- The same direction backward.
CREATE FUNCTION sk_back(cols text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(split_part(c, ' ', 1) ||
		CASE WHEN c ~ 'DESC' THEN '' ELSE ' DESC' END ||
		CASE WHEN c ~ 'FIRST' THEN ' NULLS LAST' WHEN c ~ 'LAST' THEN ' NULLS FIRST' ELSE '' END, ', ' ORDER BY o)
	FROM unnest(string_to_array(cols, ', ')) WITH ORDINALITY x(c, o)
$$;

-- One index: each condition on its first column, row comparisons, and of the
-- pairs of conditions on its two columns one in `sample`.
CREATE FUNCTION sk_check(cols text, sample int, OUT queries int, OUT bad int) LANGUAGE plpgsql AS $$
DECLARE
	col1	text := split_part(split_part(cols, ', ', 1), ' ', 1);
	col2	text := split_part(split_part(cols, ', ', 2), ' ', 1);
	names	text := concat_ws(', ', col1, nullif(col2, ''));
	cond	text;
	q		text;
BEGIN
	queries := 0;
	bad := 0;
	TRUNCATE sk;
	PERFORM sk_fill(1, 400);
	EXECUTE 'CREATE INDEX sk_i ON sk USING hybrid (' || cols || ')';
	PERFORM sk_fill(401, 500);
	FOR cond IN
		SELECT c.cond FROM sk_conditions(col1) c
		UNION ALL SELECT r FROM sk_rows(col1, col2, 6) r WHERE col2 <> ''
		UNION ALL SELECT r FROM sk_rows(col2, col1, 2) r WHERE col2 <> ''
		UNION ALL SELECT c1.cond || ' AND ' || c2.cond FROM sk_conditions(col1) c1, sk_conditions(coalesce(nullif(col2, ''), col1)) c2
			WHERE ('x' || left(md5(c1.cond || c2.cond || cols), 4))::bit(16)::int % sample = 0
				-- of two conditions on one column the planner may see that they exclude each other
				AND (col2 <> '' OR c1.cond || c2.cond !~ 'IS | = .* = ')
	LOOP
		q := format('SELECT %s FROM sk WHERE %s', names, cond);
		queries := queries + 1;
		CONTINUE WHEN hyb_same(q, 'index bitmap only')
			AND hyb_same(format('%s ORDER BY %s', q, cols), 'order')
			AND hyb_same(format('%s ORDER BY %s LIMIT 15', q, sk_back(cols)), 'order');
		bad := bad + 1;
		RAISE WARNING '%', q;
	END LOOP;
	PERFORM hybrid_index_check('sk_i', true);
	DROP INDEX sk_i;
END $$;

SELECT sk_fill(1, 500);
ANALYZE sk;
SELECT cols, sample, c.* FROM (VALUES
	(1, 'a', 60), (2, 'a DESC', 60), (3, 'a NULLS FIRST', 90), (4, 'a DESC NULLS LAST', 90),
	(5, 'a, b', 40), (6, 'a DESC, b', 40), (7, 'a, b DESC', 40), (8, 'a DESC, b DESC', 40), (9, 'a NULLS FIRST, b DESC NULLS LAST', 40),
	(10, 't', 80), (11, 't DESC', 80), (12, 'z, t', 80), (13, 'z DESC, t DESC', 80), (14, 't, z', 80), (15, 't DESC, z', 80),
	(16, 'd', 80), (17, 'd DESC', 80), (18, 'd, z', 80), (19, 'd DESC, t DESC', 80),
	(20, 'u', 20), (21, 'u DESC', 20), (22, 'u, y', 20), (23, 'u DESC, y DESC', 20), (24, 'y', 20), (25, 'y DESC', 20), (26, 'y DESC, a', 40)) AS i (n, cols, sample),
	sk_check(i.cols, i.sample) c ORDER BY n;

DROP TABLE sk, sk_constants, sk_arrays;
DROP FUNCTION sk_fill, sk_conditions, sk_rows, sk_back, sk_check;
