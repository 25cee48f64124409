--
-- INCLUDE columns as symbols and by LZ4, and the tuples of index-only scans.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;

-- a payload that repeats itself, with NULLs, empty and long values among it
CREATE TABLE comp (k int, doc text, j jsonb, t text COLLATE "C");
CREATE FUNCTION comp_rows(n int, seed int) RETURNS SETOF comp LANGUAGE sql AS $$
	SELECT hashint4(i + seed) % 5000,
		CASE i % 17 WHEN 3 THEN NULL WHEN 4 THEN '' ELSE
			format('{"id": %s, "email": "%s@example.org", "status": "%s", "visits": %s}', i, md5((i + seed)::text), (array['active', 'inactive'])[1 + i % 2], i % 1000) END,
		CASE WHEN i % 29 > 0 THEN jsonb_build_object('id', i, 'tags', array['red', 'green', 'blue'], 'created', date '2026-01-01' + i % 365) END,
		CASE i % 101 WHEN 0 THEN repeat(md5(i::text), 40) WHEN 1 THEN repeat('x', 600) ELSE 'page ' || i || ' of the book' END
	FROM generate_series(1, n) i
$$;
INSERT INTO comp SELECT * FROM comp_rows(6000, 1);
CREATE INDEX comp_lz4 ON comp USING hybrid (k) INCLUDE (doc, j, t);
CREATE FUNCTION comp_leaves(index regclass) RETURNS bigint LANGUAGE sql AS $$
	SELECT static_bytes / current_setting('block_size')::int FROM hybrid_index_stats(index)
$$;
CREATE FUNCTION comp_queries() RETURNS TABLE (ok boolean) LANGUAGE sql AS $$
	SELECT hyb_same(q, 'index only bitmap') FROM unnest(array[
		'SELECT k, doc FROM comp WHERE k = 77',
		'SELECT k, doc, j, t FROM comp WHERE k BETWEEN 20 AND 60',
		'SELECT k, doc, j, t FROM comp WHERE k BETWEEN -60 AND 4000',
		'SELECT t, j FROM comp WHERE k > 4000 AND doc LIKE ''%inactive%''',
		'SELECT k, j FROM comp WHERE k < 500 AND doc IS NULL']) q
	UNION ALL
	SELECT hyb_same(q, 'order_only') FROM unnest(array[
		'SELECT k FROM comp ORDER BY k',
		'SELECT count(*), sum(hashtext(s::text)::int8) FROM (SELECT k, doc, t FROM comp ORDER BY k DESC) s',
		'SELECT k FROM comp WHERE doc > ''{'' ORDER BY k DESC']) q
$$;
SELECT bool_and(ok), count(*) FROM comp_queries();
SELECT hybrid_index_check('comp_lz4', true);

-- less than four fifths of what it takes otherwise
CREATE TABLE comp_sizes AS SELECT comp_leaves('comp_lz4') AS lz4;
ALTER INDEX comp_lz4 SET (compression = none);
REINDEX INDEX comp_lz4;
SELECT bool_and(ok), count(*) FROM comp_queries();
SELECT comp_leaves('comp_lz4') > 1.3 * lz4 AS compressed FROM comp_sizes;

-- leaves of both kinds in one index: merges write them as the parameter says
ALTER INDEX comp_lz4 RESET (compression);
INSERT INTO comp SELECT * FROM comp_rows(700, 7) WHERE k < 1500;
SELECT hybrid_merge('comp_lz4') > 0;
SELECT bool_and(ok), count(*) FROM comp_queries();
SELECT hybrid_index_check('comp_lz4', true);
DELETE FROM comp WHERE k % 7 = 3;
SELECT hyb_quiet();
VACUUM comp;
SELECT bool_and(ok), count(*) FROM comp_queries();
INSERT INTO comp SELECT * FROM comp_rows(3000, 90);
UPDATE comp SET doc = doc || ' ' WHERE k % 50 = 1;
SELECT hybrid_merge('comp_lz4') > 0;
SELECT bool_and(ok), count(*) FROM comp_queries();
SELECT hybrid_index_check('comp_lz4', true);
SELECT comp_leaves('comp_lz4') < 1.7 * lz4 AS compressed FROM comp_sizes;

-- one value that many rows have; few rows; nothing but NULLs; values of a
-- page's third, so that a group has few of them
CREATE TABLE comp_few (k int, a text, b text, c bytea);
CREATE INDEX comp_few_i ON comp_few USING hybrid (k) INCLUDE (a, b, c);
INSERT INTO comp_few SELECT i, 'the same in all rows', NULL, NULL FROM generate_series(1, 3) i;
SELECT hybrid_merge('comp_few_i');
SELECT hyb_same('SELECT * FROM comp_few WHERE k > 0', 'index only bitmap');
INSERT INTO comp_few SELECT i % 40, 'the same in all rows', NULL,
	CASE WHEN i % 40 > 20 THEN convert_to(left(repeat(md5(i::text), 20), 300 + i % 300), 'UTF8') END FROM generate_series(1, 2000) i;
SELECT hybrid_merge('comp_few_i');
SELECT hyb_same('SELECT * FROM comp_few WHERE k > 0', 'index only bitmap'), hybrid_index_check('comp_few_i', true);

-- documents that LZ4 makes much shorter, beside others
CREATE TABLE comp_long (k int, a text, b text);
INSERT INTO comp_long SELECT hashint4(i) % 3000, (SELECT string_agg('<p class="' || i % 50 || '">' || md5((i % 50)::text) || md5((j * 7)::text) || '</p>', '') FROM generate_series(1, 5) j),
	CASE WHEN i % 3 > 0 THEN md5(i::text) END FROM generate_series(1, 1500) i;
CREATE INDEX comp_long_i ON comp_long USING hybrid (k) INCLUDE (a, b);
SELECT hyb_same(q, 'index only') FROM unnest(array['SELECT * FROM comp_long WHERE k > -3000', 'SELECT * FROM comp_long WHERE k = 7']) q;
SELECT hyb_same('SELECT sum(hashtext(s::text)::int8) FROM (SELECT k, b, a FROM comp_long ORDER BY k DESC) s', 'order_only');
CREATE INDEX comp_long_t ON comp_long USING hybrid (b COLLATE "C" DESC, k) INCLUDE (a);
SELECT hyb_same('SELECT b COLLATE "C", k, a FROM comp_long WHERE b COLLATE "C" > ''1''', 'only');
INSERT INTO comp_long SELECT k + 1, a, b FROM comp_long WHERE k % 20 = 1;
SELECT hybrid_merge('comp_long_i') > 0;
SELECT hyb_same('SELECT * FROM comp_long WHERE k > -3000', 'only'), hybrid_index_check('comp_long_i', true);
DROP TABLE comp_long;

SELECT hyb_error(s) FROM unnest(array[
	'CREATE INDEX ON comp USING hybrid (k) INCLUDE (doc) WITH (compression = zip)',
	'ALTER INDEX comp_lz4 SET (compression = 1)']) s;

--
-- Tuples of all kinds of columns, with and without NULLs
--
CREATE TYPE comp_color AS ENUM ('red', 'green', 'blue');
CREATE TABLE comp_types (id int, b bool, i2 int2, c "char", i8 int8, f4 float4, f8 float8, t text, v varchar(40),
	bp bpchar(12), by bytea, n numeric, jb jsonb, u uuid, i inet, na name, ts timestamptz, iv interval, p point, a int[], e comp_color,
	d date, o oid, ma macaddr, tx text COLLATE "C", ov oidvector);
ALTER TABLE comp_types ALTER v SET STORAGE PLAIN;
INSERT INTO comp_types SELECT g, g % 2 = 0, g % 3000, (g % 90 + 33)::"char", g::int8 * 99999999, g / 7.0, g / 3.0,
	repeat('t', g % 140), 'v' || g, 'bp' || g, decode(md5(g::text), 'hex'), round(g * 1.2345, g % 5), jsonb_build_object('g', g),
	md5(g::text)::uuid, ('10.1.' || g % 256 || '.7')::inet, ('name ' || g)::name, timestamptz '2026-01-01 00:00:00+00' + g * interval '1 second', g * interval '1 day',
	point(g, -g), array[g, NULL, g + 1], (array['red', 'green', 'blue'])[1 + g % 3]::comp_color, date '2026-01-01' + g, g, '08:00:2b:01:02:03'::macaddr, 'tx' || g, (g || ' 7 8')::oidvector
FROM generate_series(1, 600) g;
INSERT INTO comp_types (id, t, n, tx, u) SELECT g, CASE WHEN g % 2 = 0 THEN 'half' END, CASE WHEN g % 3 = 0 THEN g END, CASE WHEN g % 5 > 0 THEN 'x' END,
	CASE WHEN g % 7 > 0 THEN md5(g::text)::uuid END FROM generate_series(601, 900) g;
CREATE INDEX comp_types_include ON comp_types USING hybrid (id) INCLUDE (b, i2, c, i8, f4, f8, t, v, bp, by, n, jb, u, i, na, ts, iv, p, a, e, d, o, ma, tx, ov);
CREATE INDEX comp_types_uuid ON comp_types USING hybrid (u) INCLUDE (id, b, t, v, by, i, na, iv, p, a, jb, n);
CREATE INDEX comp_types_keys ON comp_types USING hybrid (t COLLATE "C", id DESC, b, i2 DESC, c, v COLLATE "C" DESC, by, n, u DESC, ts, e, f8, jb, na COLLATE "C", tx DESC);
SELECT hyb_same(q, 'only') FROM unnest(array[
	'SELECT id, b, i2, c, i8, f4, f8, t, v, bp, by, n, jb, u, i, na, ts, iv, p::text, a, e, d, o, ma, tx, ov::text FROM comp_types WHERE id > 0',
	'SELECT u, id, b, t, v, by, i, na, iv, p::text, a, jb, n FROM comp_types WHERE u > ''00000000-0000-0000-0000-000000000000''',
	'SELECT u, id, b, t, v, by, i, na, iv, p::text, a, jb, n FROM comp_types WHERE u IS NULL',
	'SELECT t COLLATE "C", id, b, i2, c, v, by, n, u, ts, e, f8, jb, na, tx FROM comp_types WHERE t COLLATE "C" >= '''' OR t IS NULL']) q;
SELECT hyb_same('SELECT id, b, i2, c, i8, f4, f8, t, v, bp, by, n, jb, u, i, na, ts, iv, p::text, a, e, d, o, ma, tx FROM comp_types WHERE id BETWEEN 590 AND 610', 'only');
SELECT hyb_same('SELECT id, b, i2, c, i8, f4, f8, t, v, bp, by, n, jb, u, i, na, ts, iv, p::text, a, e, d, o, ma, tx, ov::text FROM comp_types WHERE id BETWEEN 300 AND 305', 'only');
DROP TABLE comp, comp_few, comp_types CASCADE;
