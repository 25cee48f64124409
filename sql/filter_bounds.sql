--
-- Filters asked about bounds of fewer columns than the key has, about bounds at
-- NULL, in both directions, and by min and max: generated for keys of one, two
-- and three columns of several types.  A btree index says what is right.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
SET timezone = 'UTC';

-- Each expression has another value for each i.  Rows have values of even i, and
-- probes some of odd i, which are absent.
CREATE TABLE fb_types (n int, typ text, coll text, opclass text, forth text, back text, val text);
INSERT INTO fb_types VALUES
(0, 'int8', '', '', '', 'DESC', 'i * 1000003::int8 - 100000000'),
(1, 'timestamptz', '', '', 'DESC', '', 'timestamptz ''2025-01-01'' + i * interval ''37 s'''),
(2, 'text', 'COLLATE "C"', '', 'NULLS FIRST', 'DESC NULLS LAST', 'to_hex(i)'),
(3, 'uuid', '', '', 'DESC NULLS LAST', 'NULLS FIRST', 'md5(i::text)::uuid'),
(4, 'int2', '', '', 'NULLS FIRST', 'DESC NULLS LAST', '(i - 1000)::int2'),
(5, 'bytea', '', '', '', 'DESC', 'decode(repeat(''ff'', i % 3) || repeat(''00'', i % 5) || lpad(to_hex(i), 4, ''0''), ''hex'')'),
(6, 'text', 'COLLATE "C"', 'text_hope_ops', 'DESC', '', '''name '' || i'),
(7, 'inet', '', '', '', 'DESC', '''10.0.0.0''::inet + i');

-- One set of rows and probes.  A column but the last has few values, and one of
-- ten is NULL.  In half of the probes one column has an absent value.  The last
-- columns of other keys, one column or more, have only such values.
CREATE FUNCTION fb_make(first int, ncols int, OUT keys text, OUT shown text, OUT forth text, OUT back text) LANGUAGE plpgsql AS $$
DECLARE
	digits	text[] := (array[array['i', '', ''], array['i % 12', 'i / 12', ''], array['i % 5', 'i / 5 % 7', 'i / 35']])[ncols:ncols];
	columns	text;
	vals	text;
	probes	text;
	others	text;
BEGIN
	SELECT string_agg(format('%s %s %s', name, typ, coll), ', ' ORDER BY name),
		string_agg(format('CASE WHEN %s %% 10 <> 3 THEN (SELECT %s FROM (SELECT (%s) * 2 AS i) v) END', digit, val, digit), ', ' ORDER BY name),
		string_agg(format('(SELECT %s FROM (SELECT (%s) * 2 + (j %% %s = %s)::int AS i) v) AS %s, (SELECT %1$s FROM (SELECT (%2$s) * 2 + j AS i) v) AS %5$s_to',
						  val, digit, 2 * ncols, col, name), ', ' ORDER BY name),
		string_agg(format('(SELECT %s FROM (SELECT (%s) * 2 + (j >= %s)::int AS i) v) AS %s', val, digit, ncols - col, name), ', ' ORDER BY name),
		string_agg(concat_ws(' ', name, nullif(opclass, ''), t.forth), ', ' ORDER BY name),
		string_agg(concat_ws(' ', coalesce(nullif(opclass, ''), typ), nullif(t.forth, '')), ', ' ORDER BY name),
		string_agg(concat_ws(' ', name, t.forth), ', ' ORDER BY name), string_agg(concat_ws(' ', name, t.back), ', ' ORDER BY name)
	INTO columns, vals, probes, others, keys, shown, forth, back
	FROM generate_series(1, ncols) col, chr(96 + col) name, unnest(digits[1:1][col:col]) digit, fb_types t WHERE t.n = (first + col - 1) % 8;
	DROP TABLE IF EXISTS fb, fb_probes, fb_others;
	EXECUTE format('CREATE TABLE fb (%s, pad text)', columns);
	EXECUTE format('INSERT INTO fb SELECT %s, md5(i::text) || md5((-i)::text) FROM generate_series(0, 999) i', vals);
	EXECUTE format('CREATE TABLE fb_probes AS SELECT j, %s FROM (SELECT j, j * 37 AS i FROM generate_series(0, 23) j) g', probes);
	EXECUTE format('CREATE TABLE fb_others AS SELECT %s FROM generate_series(0, 999) i, generate_series(0, %s) j', others, ncols - 1);
	ANALYZE fb, fb_probes;
END $$;

-- What to ask: some first columns are equal, the next one is in a range.  Those
-- that find nothing most often come first, so that filters go on being asked.
CREATE FUNCTION fb_conditions(ncols int) RETURNS TABLE (condition text, col text) LANGUAGE sql AS $$
	WITH RECURSIVE equal (m, condition) AS (
		SELECT 0, 'true'
		UNION ALL
		SELECT m + 1, concat(condition, ' AND ', name, op)
		FROM equal, chr(97 + m) name, unnest(array[' = p.' || name, ' IS NULL']) op WHERE m < ncols)
	(SELECT concat(condition, ' AND ' || name || op), coalesce(name, 'a')
	FROM equal, LATERAL (SELECT CASE WHEN m < ncols THEN chr(97 + m) END AS name) c,
		unnest(array['', ' IS NULL', ' IS NOT NULL', ' < p.', ' <= p.', ' > p.', ' >= p.', ' BETWEEN p.']) sign,
		LATERAL (SELECT CASE WHEN sign LIKE '% p.' THEN sign || name ELSE nullif(sign, '') END ||
			CASE WHEN sign LIKE ' BETWEEN%' THEN format(' AND p.%s_to', name) ELSE '' END AS op) o
	WHERE sign = '' OR name IS NOT NULL
	ORDER BY m DESC, condition, sign)
	UNION ALL
	SELECT format('(a, b) %s (p.a, p.b)', op), 'a' FROM unnest(array['<', '<=', '>', '>=']) op WHERE ncols > 1
$$;

-- The answers for all probes: a number, the ends, and the rows at the ends.
CREATE FUNCTION fb_answers(ncols int, forth text, back text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	names	text := (array['a', 'a, b', 'a, b, c'])[ncols];
	typs	regtype[] := (SELECT array_agg(atttypid ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'fb'::regclass AND attnum > 0);
	q		record;
	ends	text;
	answer	text;
	answers	text[] := '{}';
BEGIN
	FOR q IN SELECT * FROM fb_conditions(ncols) LOOP
		ends := CASE WHEN to_regprocedure(format('max(%s)', typs[ascii(q.col) - 96])) IS NOT NULL THEN '(SELECT %3$s(%1$s) FROM fb WHERE %2$s)'
			ELSE '(SELECT %1$s FROM fb WHERE %2$s AND %1$s IS NOT NULL ORDER BY %1$s %4$s LIMIT 1)' END;
		EXECUTE format('SELECT string_agg(concat_ws(''|'', (SELECT count(*) FROM fb WHERE %1$s), %3$s, %4$s,
				(SELECT row(%2$s) FROM fb WHERE %1$s ORDER BY %5$s LIMIT 1), (SELECT row(%2$s) FROM fb WHERE %1$s ORDER BY %6$s LIMIT 1)), chr(10) ORDER BY j)
			FROM fb_probes p', q.condition, names, format(ends, q.col, q.condition, 'min', 'ASC'), format(ends, q.col, q.condition, 'max', 'DESC'), forth, back)
		INTO answer;
		answers := answers || concat_ws(chr(10), q.condition, answer);
	END LOOP;
	RETURN answers;
END $$;

-- The first difference between two lists of answers.
CREATE FUNCTION fb_difference(want text[], got text[]) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s of %s: %s', count(*) OVER (), cardinality(want), split_part(w, chr(10), 1))
	FROM unnest(want, got) WITH ORDINALITY u (w, g, o) WHERE w IS DISTINCT FROM g ORDER BY o LIMIT 1
$$;

-- How many look-ups by the first columns of a row, and of other keys, go wrong, and
-- whether filters answer most of those by all columns.
CREATE FUNCTION fb_lookups(ncols int, OUT asked bool, OUT missed numeric) LANGUAGE plpgsql AS $$
BEGIN
	SELECT bool_and(checks > 0.9 * 2 * (present + absent)) FILTER (WHERE m = ncols), sum(l.wrong) INTO asked, missed
	FROM generate_series(1, ncols) m, left('a, b, c', 3 * m - 2) names,
		hyb_lookups('fb_h'::regclass, format('SELECT %1$s FROM fb UNION ALL SELECT %1$s FROM fb_others', names)) l;
END $$;

-- A set of rows, with an index of each kind of filter.  That for points is asked
-- about ranges too once the parameter says surf.
CREATE FUNCTION fb_check(first int, ncols int)
RETURNS TABLE (keys text, filter text, asked bool, missed numeric, wrong text) LANGUAGE plpgsql AS $$
DECLARE
	made	record := fb_make(first, ncols);
	want	text[];
BEGIN
	EXECUTE format('CREATE INDEX fb_b ON fb (%s)', made.forth);
	want := fb_answers(ncols, made.forth, made.back);
	DROP INDEX fb_b;
	keys := made.shown;
	FOREACH filter IN ARRAY array['surf, filter_suffix_bits = ' || (array[4, 0, 9])[1 + first % 3], 'points'] LOOP
		EXECUTE format('CREATE INDEX fb_h ON fb USING hybrid (%s) INCLUDE (pad) WITH (filter = %s)', made.keys, filter);
		ALTER INDEX fb_h SET (filter = surf);
		wrong := fb_difference(want, fb_answers(ncols, made.forth, made.back));
		asked := filter_checks > 10 AND filter_negatives > 10 FROM hybrid_index_stats('fb_h');
		SELECT fb_check.asked AND l.asked, l.missed INTO asked, missed FROM fb_lookups(ncols) l;
		RETURN NEXT;
		DROP INDEX fb_h;
	END LOOP;
END $$;

SET enable_seqscan = off;
SET jit = off;
SET enable_bitmapscan = off;
SELECT n AS columns, c.* FROM generate_series(1, 3) n, generate_series(0, 7) t, fb_check(t, n) c WHERE n < 3 OR t % 2 = 0;
RESET enable_seqscan;
RESET jit;
RESET enable_bitmapscan;
DROP TABLE fb, fb_probes, fb_others;
DROP FUNCTION fb_check, fb_lookups, fb_difference, fb_answers, fb_conditions, fb_make;
DROP TABLE fb_types;
