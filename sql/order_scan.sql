--
-- Ordered scans: both directions, scrollable cursors, LIMIT, min and max,
-- mark and restore under merge joins.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE os (a int, b text COLLATE "C", f float8);
CREATE FUNCTION os_fill(n int, seed int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO os SELECT nullif(h % 400, 7), md5((h / 512 % 100)::text), (h / 65536) / 3.0
	FROM generate_series(1, n) i, LATERAL (SELECT hashint8extended(i, seed) & 2147483647) x(h)
$$;
CREATE TABLE os_cursor (a int);
CREATE FUNCTION os_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q, 'order order_only')) FROM unnest(array[
		'SELECT a FROM os ORDER BY a', 'SELECT a FROM os ORDER BY a DESC',
		'SELECT a FROM os ORDER BY a LIMIT 10', 'SELECT a FROM os ORDER BY a DESC LIMIT 10 OFFSET 300',
		'SELECT a FROM os WHERE a > 200 ORDER BY a', 'SELECT a FROM os WHERE a > 200 ORDER BY a DESC',
		'SELECT a FROM os WHERE a >= 10 AND a < 30 ORDER BY a', 'SELECT a FROM os WHERE a >= 10 AND a < 30 ORDER BY a DESC',
		'SELECT a FROM os WHERE a <= 30 ORDER BY a', 'SELECT a FROM os WHERE a <= 30 ORDER BY a DESC',
		'SELECT a FROM os WHERE a IS NULL ORDER BY a', 'SELECT a FROM os WHERE a IS NOT NULL ORDER BY a DESC',
		'SELECT a FROM os WHERE a = 77 ORDER BY a DESC', 'SELECT a FROM os WHERE a > 1000 ORDER BY a',
		'SELECT b, a FROM os ORDER BY b, a DESC', 'SELECT b, a FROM os ORDER BY b DESC, a',
		'SELECT b, a FROM os WHERE b > ''8'' AND a < 300 ORDER BY b, a DESC LIMIT 100',
		'SELECT b, a FROM os WHERE b = md5(''5'') ORDER BY b, a DESC',
		'SELECT b, a FROM os WHERE b = md5(''5'') AND a > 100 ORDER BY a DESC',
		'SELECT min(a), max(a) FROM os', 'SELECT min(a) FROM os WHERE a > 50', 'SELECT max(b) FROM os',
		'SELECT max(a) FROM os WHERE b = md5(''9'')', 'SELECT min(f), max(f) FROM os']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order')) FROM unnest(array[
		'SELECT a, count(*) FROM os GROUP BY a ORDER BY a',
		'SELECT DISTINCT a FROM os ORDER BY a DESC',
		'SELECT a, row_number() OVER (ORDER BY a) FROM os']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'merge')) FROM unnest(array[
		'SELECT x.a, x.b, y.b FROM os x JOIN os y ON x.a = y.a WHERE x.a < 60 AND y.a < 90',
		'SELECT x.a, y.a FROM os x LEFT JOIN os_cursor y USING (a)',
		'SELECT x.a, y.a, y.b FROM os_cursor x JOIN os y ON x.a = y.a',
		'SELECT x.a, y.a FROM os x FULL JOIN os_cursor y ON x.a = y.a']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'nest')) FROM unnest(array[
		'SELECT x.a, y.b FROM os_cursor x JOIN os y ON y.a = x.a * 2',
		'SELECT x.a, y.b FROM generate_series(1, 500, 7) x(a) JOIN os y ON y.a = x.a AND y.b > ''c''']) q
$$;

-- A scrollable cursor over an index scan, moved at random, against an array.
CREATE FUNCTION os_scroll(query text, use_only boolean, moves int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	want	int[] := translate((hyb_rows(query, 'seq')).rows::text, '()', '');
	c		refcursor;
	pos		int := 0;			-- 0: before the first row, n + 1: after the last
	n		int;
	got		int;
	k		int;
	bad		int := 0;
BEGIN
	n := cardinality(want);
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
		set_config('enable_bitmapscan', 'off', true), set_config('enable_indexonlyscan', use_only::text, true);
	OPEN c SCROLL FOR EXECUTE query;
	FOR i IN 1 .. moves LOOP
		CASE floor(random() * 8)::int
			WHEN 0, 1, 2 THEN FETCH NEXT FROM c INTO got; pos := least(pos + 1, n + 1);
			WHEN 3, 4 THEN FETCH PRIOR FROM c INTO got; pos := greatest(pos - 1, 0);
			WHEN 5 THEN
				k := floor(random() * 41)::int - 20;
				FETCH RELATIVE k FROM c INTO got; pos := least(greatest(pos + k, 0), n + 1);
			WHEN 6 THEN
				k := 1 + floor(random() * n)::int;
				FETCH ABSOLUTE k FROM c INTO got; pos := k;
			ELSE
				IF random() < 0.5 THEN
					FETCH LAST FROM c INTO got; pos := n;
				ELSE
					MOVE FORWARD ALL FROM c; FETCH PRIOR FROM c INTO got; pos := n;
				END IF;
		END CASE;
		IF got IS DISTINCT FROM want[pos] THEN
			bad := bad + 1;
		END IF;
	END LOOP;
	CLOSE c;
	RETURN bad || ' wrong of ' || moves;
END $$;
CREATE FUNCTION os_scrolls() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT os_scroll(q, o, 300) FROM unnest(array[
		'SELECT a FROM os_cursor ORDER BY a',
		'SELECT a FROM os_cursor ORDER BY a DESC',
		'SELECT a FROM os_cursor WHERE a BETWEEN 100 AND 220 ORDER BY a',
		'SELECT a FROM os_cursor WHERE a = ANY (''{5,15,300,301,302,NULL,11}'') ORDER BY a DESC']) q, unnest('{f,t}'::boolean[]) o
$$;

SELECT setseed(0.5);
SELECT os_fill(2000, 1);
INSERT INTO os_cursor SELECT i * 5 FROM generate_series(1, 300) i ORDER BY md5(i::text);
CREATE INDEX os_a ON os USING hybrid (a);
CREATE INDEX os_ba ON os USING hybrid (b, a DESC);
CREATE INDEX os_f ON os USING hybrid (f);
CREATE INDEX os_c ON os_cursor USING hybrid (a);
ANALYZE os;
ANALYZE os_cursor;
SELECT * FROM os_queries();
SELECT * FROM os_scrolls();
SELECT os_fill(2000, 2);
INSERT INTO os_cursor SELECT i * 5 + 1 FROM generate_series(1, 300) i ORDER BY md5(i::text);
DELETE FROM os WHERE a % 11 = 4;
SELECT * FROM os_queries();
SELECT * FROM os_scrolls();
SELECT hybrid_merge('os_a') > 0, hybrid_merge('os_ba') > 0, hybrid_merge('os_f') > 0, hybrid_merge('os_c') > 0;
SELECT os_fill(200, 3);
INSERT INTO os_cursor SELECT i * 50 + 2 FROM generate_series(1, 30) i ORDER BY md5(i::text);
SELECT * FROM os_queries();
SELECT * FROM os_scrolls();
SELECT hyb_check('os'), hyb_check('os_cursor');

-- an empty index, and one that became empty
CREATE TABLE os_empty (a int);
CREATE INDEX os_e ON os_empty USING hybrid (a);
SELECT hyb_same('SELECT a FROM os_empty ORDER BY a', 'order'), hyb_same('SELECT a FROM os_empty ORDER BY a DESC', 'order'),
	hyb_same('SELECT a FROM os_empty WHERE a = 1'), hyb_same('SELECT max(a) FROM os_empty', 'order_only');
INSERT INTO os_empty SELECT i FROM generate_series(1, 1000) i;
SELECT hybrid_merge('os_e') > 0;
DELETE FROM os_empty;
VACUUM os_empty;
SELECT hyb_same('SELECT a FROM os_empty ORDER BY a', 'order'), hyb_same('SELECT max(a) FROM os_empty', 'order_only');
SELECT hybrid_merge('os_e') >= 0;
SELECT hyb_same('SELECT a FROM os_empty ORDER BY a DESC', 'order'), hyb_same('SELECT a FROM os_empty WHERE a > 5'), hyb_check('os_empty');
INSERT INTO os_empty VALUES (5);
SELECT hyb_same('SELECT a FROM os_empty ORDER BY a', 'order'), hyb_check('os_empty');

-- An index-only cursor whose entries move from the log to leaves under it goes
-- on with the very next one, in both directions and when it turns round.
CREATE TABLE os_move (a int);
CREATE INDEX os_m ON os_move USING hybrid (a);
CREATE FUNCTION os_moved(query text, turn boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	want	int[];
	c		refcursor;
	got		int;
	bad		int := 0;
	step	int := CASE WHEN turn THEN -1 ELSE 1 END;
	pos		int;
BEGIN
	FOR at IN 1 .. 200 BY 7 LOOP
		TRUNCATE os_move;
		INSERT INTO os_move SELECT i * 2 FROM generate_series(1, 100) i;
		PERFORM hybrid_merge('os_m');
		INSERT INTO os_move SELECT i * 2 + 1 FROM generate_series(1, 100) i;
		want := translate((hyb_rows(query, 'seq')).rows::text, '()', '');
		OPEN c SCROLL FOR EXECUTE query;
		MOVE RELATIVE at FROM c;
		PERFORM hybrid_merge('os_m');
		pos := at;
		WHILE pos BETWEEN 1 AND 200 LOOP
			IF turn THEN
				FETCH PRIOR FROM c INTO got;
			ELSE
				FETCH NEXT FROM c INTO got;
			END IF;
			pos := pos + step;
			IF got IS DISTINCT FROM want[pos] THEN
				bad := bad + 1;
			END IF;
		END LOOP;
		CLOSE c;
	END LOOP;
	RETURN bad || ' wrong';
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT a FROM os_move ORDER BY a DESC;
SELECT q, turn, os_moved(q, turn) FROM unnest(array['SELECT a FROM os_move ORDER BY a', 'SELECT a FROM os_move ORDER BY a DESC']) q, unnest('{f,t}'::boolean[]) turn;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;

-- equal numbers, written in different ways and stored in different lengths, in
-- several leaves
CREATE TABLE os_equal (n numeric);
INSERT INTO os_equal SELECT CASE i % 3 WHEN 0 THEN 1 WHEN 1 THEN 1.00 ELSE ('1.' || repeat('0', 70))::numeric END FROM generate_series(1, 30000) i;
INSERT INTO os_equal VALUES (0.99), (1.01);
CREATE INDEX os_n ON os_equal USING hybrid (n);
SELECT op, length(v), hyb_same(format('SELECT trim_scale(n) FROM os_equal WHERE n %s %s ORDER BY n', op, v), 'order order_only') AS up,
	hyb_same(format('SELECT trim_scale(n) FROM os_equal WHERE n %s %s ORDER BY n DESC', op, v), 'order order_only') AS down
FROM unnest('{<,<=,>=,>}'::text[]) op, unnest(array['1', '1.' || repeat('0', 70)]) v;

-- all of what begins alike, in several leaves, in both directions; without and
-- with entries of the log among them; index-only scans of integers form their
-- tuples some rows at a time
CREATE TABLE os_range (a int, b int, c smallint);
INSERT INTO os_range SELECT i / 8000, CASE WHEN i % 11 > 0 THEN hashint4(i) & 1048575 END, i % 5 FROM generate_series(0, 23999) i;
CREATE INDEX os_ab ON os_range USING hybrid (a, b DESC, c);
VACUUM os_range;
CREATE FUNCTION os_ranges() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q, 'order order_only')) FROM unnest(array[
		'SELECT b, c FROM os_range WHERE a = 1 ORDER BY b DESC, c', 'SELECT b, c FROM os_range WHERE a = 1 ORDER BY b, c DESC',
		'SELECT b, c FROM os_range WHERE a = 2 AND b < 500000 ORDER BY b, c DESC LIMIT 3000', 'SELECT a, b, c FROM os_range ORDER BY a DESC, b, c DESC']) q
$$;
SELECT leaf_pages > 6 AS several, dynamic_entries FROM hybrid_index_stats('os_ab');
SELECT * FROM os_ranges();
INSERT INTO os_range SELECT i / 200, CASE WHEN i % 11 > 0 THEN hashint4(-i) & 1048575 END, i % 5 FROM generate_series(0, 599) i;
SELECT dynamic_entries FROM hybrid_index_stats('os_ab');
SELECT * FROM os_ranges();

DROP TABLE os, os_cursor, os_empty, os_move, os_equal, os_range;
DROP FUNCTION os_fill, os_queries, os_scroll, os_scrolls, os_moved, os_ranges;
