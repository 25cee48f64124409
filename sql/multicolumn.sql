--
-- Several key columns: mixed encodings, directions and NULL placements, quals
-- on any of them, and the limit of 32 columns.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE mc (a int, b text COLLATE "C", c numeric, d timestamp);
CREATE FUNCTION mc_fill(n int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO mc
	SELECT nullif((h % 20)::int, 0), nullif(chr(97 + (h / 32 % 20)::int) || repeat('x', (h / 1024 % 3)::int), 'a'),
		nullif((h / 4096 % 12) / 4.0, 1), nullif(timestamp '2024-01-01' + (h / 65536 % 10) * interval '1 day', '2024-01-01')
	FROM generate_series(1, n) i, LATERAL (SELECT hashint4extended(i, n) & 2147483647) x(h)
$$;
CREATE TABLE mc_queries (q text);
INSERT INTO mc_queries VALUES
('a = 3'), ('a = 3 AND b = ''cx'''), ('a = 3 AND b > ''m'''), ('a = 3 AND b >= ''d'' AND b < ''f'' AND c = 0.5'),
('a > 3 AND b = ''c'''), ('a > 15 AND b < ''d'' AND c > 1'), ('a BETWEEN 5 AND 7'), ('a >= 5 AND a <= 7 AND b IS NULL'),
('a IS NULL'), ('a IS NULL AND b IS NULL'), ('a IS NULL AND b = ''d'''), ('a = 4 AND b IS NULL AND c IS NULL'),
('a IS NOT NULL AND b = ''exx'''), ('a < 3 AND b IS NOT NULL'), ('b = ''hx'''), ('c = 0.25 AND a = 2'), ('c > 2 AND d IS NULL'),
('a = 3 AND a > 2'), ('a = 3 AND a = (SELECT 4)'), ('a > 3 AND a > 10 AND a < 19 AND a <= 12'), ('a >= 5 AND a > 5 AND a < 9 AND a <= 9'), ('a > 5 AND a >= 5 AND a <= 9 AND a < 9'), ('a < 9 AND b >= ''d'' AND b > ''d'' AND b <= ''h'' AND b < ''h'''), ('a = (SELECT NULL::int)'), ('a > 5 AND b > (SELECT NULL)'),
('b >= ''b'' AND b < ''c'' AND c = 2.50'), ('d = ''2024-01-04'' AND c = 1.5'), ('d > ''2024-01-09'' AND a = 7'),
('a IN (1, 5, 9, 100) AND b = ''c'''), ('a = 2 AND b IN (''b'', ''cx'', ''zz'') AND c < 1'), ('a IN (3, 4) AND b IN (''d'', ''e'')');

-- One index at a time: static, then with a dynamic stage, then merged.
-- Returns the number of answers that differ.
CREATE FUNCTION mc_check(cols text, fwd text, bwd text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	phase	int;
	bad		int := 0;
	res		text := '';
	names	text := regexp_replace(cols, ' [A-Z ]+', '', 'g');
BEGIN
	DELETE FROM mc;
	PERFORM mc_fill(1500);
	EXECUTE 'CREATE INDEX mc_i ON mc USING hybrid (' || cols || ')';
	ANALYZE mc;
	FOR phase IN 1 .. 3 LOOP
		IF phase = 2 THEN
			PERFORM mc_fill(1000);
			DELETE FROM mc WHERE a = 3 AND b < 'f';
		ELSIF phase = 3 THEN
			PERFORM hybrid_merge('mc_i');
		END IF;
		SELECT count(*) INTO bad FROM mc_queries
		WHERE q ~ ('\m[' || replace(names, ', ', '') || '] ') AND
			NOT hyb_same('SELECT a, b, c, d FROM mc WHERE ' || q);
		IF NOT hyb_same(format('SELECT %s FROM mc ORDER BY %s', names, fwd), 'order') OR
			NOT hyb_same(format('SELECT %s FROM mc ORDER BY %s', names, bwd), 'order') OR
			NOT hyb_same(format('SELECT %s FROM mc ORDER BY %s LIMIT 500', names, fwd), 'order_only') OR
			NOT hyb_same(format('SELECT %s FROM mc ORDER BY %s LIMIT 500', names, bwd), 'order_only')
		THEN
			bad := bad + 1;
		END IF;
		res := res || bad || ' ';
	END LOOP;
	PERFORM hyb_check('mc');
	DROP INDEX mc_i;
	RETURN res;
END $$;

CREATE TABLE mc_indexes (n serial, cols text, fwd text, bwd text);
INSERT INTO mc_indexes (cols, fwd, bwd) VALUES
('a, b', 'a, b', 'a DESC, b DESC'),
('a DESC, b', 'a DESC, b', 'a, b DESC'),
('a, b DESC', 'a, b DESC', 'a DESC, b'),
('a NULLS FIRST, b DESC NULLS LAST', 'a NULLS FIRST, b DESC NULLS LAST', 'a DESC NULLS LAST, b NULLS FIRST'),
('a DESC NULLS LAST, b NULLS FIRST, c', 'a DESC NULLS LAST, b NULLS FIRST, c', 'a NULLS FIRST, b DESC NULLS LAST, c DESC'),
('c, a', 'c, a', 'c DESC, a DESC'),
('c DESC, b NULLS FIRST', 'c DESC, b NULLS FIRST', 'c, b DESC NULLS LAST'),
('b, c, a, d', 'b, c, a, d', 'b DESC, c DESC, a DESC, d DESC'),
('b DESC NULLS LAST, c NULLS FIRST, a DESC, d', 'b DESC NULLS LAST, c NULLS FIRST, a DESC, d', 'b NULLS FIRST, c DESC NULLS LAST, a, d DESC'),
('d, c, b, a', 'd, c, b, a', 'd DESC, c DESC, b DESC, a DESC'),
('a, a, b', 'a, b', 'a DESC, b DESC');
SELECT cols, mc_check(cols, fwd, bwd) FROM mc_indexes ORDER BY n;

-- row comparisons are conditions or filters, as the server version has it
CREATE INDEX mc_ab ON mc USING hybrid (a, b);
SELECT hyb_same('SELECT a, b FROM mc WHERE (a, b) > (5, ''d'') AND a < 8'),
	hyb_same('SELECT a, b FROM mc WHERE (a, b) <= (5, ''d'') AND a >= 4');

-- numbers from end to end of int8, in several runs
CREATE TABLE mc_ends (a int, b int8);
INSERT INTO mc_ends SELECT i % 3, hashint8extended(i, 0) FROM generate_series(1, 600) i;
INSERT INTO mc_ends VALUES (1, '-9223372036854775808'), (1, '9223372036854775807');
CREATE INDEX mc_e ON mc_ends USING hybrid (a, b);
SELECT hyb_same('SELECT a, b FROM mc_ends WHERE a = 1 AND b > 0', 'index only bitmap'), hyb_same('SELECT a, b FROM mc_ends ORDER BY a, b', 'order order_only'),
	hyb_check('mc_ends');

-- 32 key columns are the server's limit
SELECT format('CREATE TABLE wide (%s)', string_agg('c' || i || ' int', ', ')) FROM generate_series(1, 33) i \gexec
INSERT INTO wide SELECT i % 2, i % 3, i % 5, i % 7 FROM generate_series(1, 1000) i;
UPDATE wide SET c31 = c1 + c2, c32 = CASE WHEN c3 > 0 THEN c3 + c4 END, c10 = c3;
SELECT format('CREATE INDEX wide_i ON wide USING hybrid (%s)', string_agg('c' || i, ', ')) FROM generate_series(1, 32) i \gexec
INSERT INTO wide SELECT * FROM wide WHERE c3 > 1;
SELECT hyb_same('SELECT * FROM wide WHERE c1 = 1 AND c2 = 1 AND c3 > 2'),
	hyb_same('SELECT * FROM wide WHERE c32 = 7'),
	hyb_same('SELECT * FROM wide WHERE c1 = 0 AND c32 IS NULL'),
	hyb_same('SELECT c1, c2, c3, c4 FROM wide ORDER BY c1, c2, c3, c4', 'order order_only');
SELECT hybrid_merge('wide_i') >= 0;
SELECT hyb_same('SELECT * FROM wide WHERE c32 = 7'),
	hyb_same('SELECT c1, c2, c3, c4 FROM wide ORDER BY c1, c2, c3, c4', 'order order_only'),
	hyb_check('wide');
SELECT hyb_error(format('CREATE INDEX ON wide USING hybrid (%s)', string_agg('c' || i, ', '))) FROM generate_series(1, 33) i;

-- Values below and above all those of a leaf that has nulls, next to the nulls
-- too: here no null beside them finds the place.  The zeroes of floats.  Values
-- shorter and longer than strings of one length.
CREATE TABLE mc_edge (k int, f float8, s text COLLATE "C", b bytea);
CREATE FUNCTION mc_edge(col text, how text, probes text[]) RETURNS TABLE (before bigint, after bigint, ok boolean) LANGUAGE plpgsql AS $$
DECLARE
	wrong	text := format('SELECT count(*) FROM unnest(%L::text[]) v, unnest(array[''<'', ''<='', ''='', ''>='', ''>'']) o
		WHERE NOT hyb_same(format(''SELECT * FROM mc_edge WHERE %s %%s %%L'', o, v))',
		CASE WHEN col = 'b' THEN array(SELECT '\x' || v FROM unnest(probes) v) ELSE probes END, col);
BEGIN
	TRUNCATE mc_edge;
	INSERT INTO mc_edge SELECT nullif(i % 50, 0) + 100, nullif(i % 50, 1), lpad((i % 50)::text, 2, '0'),
		decode(left(md5((i % 50)::text), 24), 'hex') FROM generate_series(1, 1000) i;
	EXECUTE format('CREATE INDEX mc_edge_i ON mc_edge USING hybrid (%s %s)', col, how);
	EXECUTE wrong INTO before;
	INSERT INTO mc_edge VALUES (3, '-0', '250', '\x8e296a067a37563370ded05f00'), (200, 200, '2', '\x8e296a067a37563370ded0'), (100, -1, '', ''), (150, 50, 'x', '\xff');
	PERFORM hybrid_merge('mc_edge_i');
	EXECUTE wrong INTO after;
	ok := hyb_same(format('SELECT %s FROM mc_edge ORDER BY %s %s', replace(col, 'f', 'f + 0'), col, how), 'order order_only');
	PERFORM hyb_check('mc_edge');
	DROP INDEX mc_edge_i;
	RETURN NEXT;
END $$;
SELECT col, how, e.* FROM (VALUES ('k', '{3,99,100,101,148,149,150,200}'::text[]), ('f', '{0,-0,-1,1,2,48,49,50}'), ('s', '{"",2,25,250,2x,49,490}'),
	('b', '{"",8e,8e296a067a37563370ded0,8e296a067a37563370ded05f,8e296a067a37563370ded05f00,8e296a067a37563370ded060}')) v (col, probes),
	unnest(array['NULLS FIRST', 'DESC', '', 'DESC NULLS LAST']) how, mc_edge(col, how, probes) e;
DROP FUNCTION mc_edge;
DROP TABLE mc_edge;

-- Leaves in which a column is null throughout are split by a merge.
CREATE TABLE mc_void (a int, b int, c int);
INSERT INTO mc_void SELECT i * 3, NULL, NULL FROM generate_series(1, 20000) i;
CREATE INDEX mc_void_abc ON mc_void USING hybrid (a, b DESC, c);
SET hybridindex.merge_floor = 1000000;
INSERT INTO mc_void SELECT i * 3 + 1, NULL, NULL FROM generate_series(1, 15000) i;
SELECT hybrid_merge('mc_void_abc') > 0, hyb_check('mc_void');
SELECT hyb_same('SELECT a, b, c FROM mc_void WHERE a < 1000 ORDER BY a', 'only order_only');
DROP TABLE mc_void;
RESET hybridindex.merge_floor;

DROP TABLE mc, mc_queries, mc_indexes, mc_ends, wide;
DROP FUNCTION mc_fill, mc_check;
