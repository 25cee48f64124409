--
-- Filters for points: answers are the same with and without them, and leaves
-- that do not have a key are not read.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;

-- keys in the order of their bytes, keys in another one, keys that are equal
-- though their bytes differ
CREATE TYPE pt_mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE pt (id int, k int8, s text COLLATE "C", i inet, m pt_mood, n numeric, f float8);
SET client_min_messages = notice;
CREATE UNIQUE INDEX pt_k ON pt USING hybrid (k) WITH (filter = points);
CREATE INDEX pt_s ON pt USING hybrid (s DESC, id) INCLUDE (k) WITH (filter = 'points');
CREATE INDEX pt_i ON pt USING hybrid (i, m) WITH (filter = points);
CREATE INDEX pt_n ON pt USING hybrid (n) WITH (filter = points);
CREATE INDEX pt_f ON pt USING hybrid (id, f) WITH (filter = points);
CREATE INDEX pt_range ON pt USING hybrid (i) WITH (filter = surf);
DROP INDEX pt_range;
SET client_min_messages = warning;
CREATE FUNCTION pt_insert(lo int, hi int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO pt SELECT g, hashint8extended(g, 0) / 2 * 2, left(md5((g % 3000)::text), 1 + g % 9),
		'10.0.0.0'::inet + abs(hashint4(g)) % 16000000, (enum_range(NULL::pt_mood))[1 + g % 3], nullif(g % 13, 0), g / 8.0
	FROM generate_series(lo, hi) g
$$;
CREATE FUNCTION pt_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q)) FROM unnest(array[
		'SELECT id FROM pt WHERE k = (SELECT k FROM pt WHERE id = 77)',
		'SELECT id FROM pt WHERE k = 5',
		'SELECT id FROM pt WHERE k = ANY (ARRAY[1, 3, 5, 7] || (SELECT array_agg(k) FROM pt WHERE id % 700 = 0))',
		'SELECT id FROM pt WHERE k BETWEEN 0 AND 100000000000000000',
		'SELECT id FROM pt WHERE k IS NULL',
		'SELECT id FROM pt WHERE s = ''c''',
		'SELECT id FROM pt WHERE s = ''c'' AND id = 3',
		'SELECT id FROM pt WHERE s = ''c4'' AND id IN (1, 2, 12, 730)',
		'SELECT id FROM pt WHERE s > ''a8'' AND s < ''a80''',
		'SELECT id FROM pt WHERE i = (SELECT i FROM pt WHERE id = 900) AND m = ''sad''',
		'SELECT id FROM pt WHERE i = (SELECT i FROM pt WHERE id = 901) AND m = (SELECT m FROM pt WHERE id = 901)',
		'SELECT id FROM pt WHERE i = ''10.0.0.1/8'' AND m = ''ok''',
		'SELECT id FROM pt WHERE i << ''10.1.0.0/16'' AND m = ''ok''',
		'SELECT id FROM pt WHERE n = 3.00']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order')) FROM unnest(array[
		'SELECT k FROM pt WHERE k > 9100000000000000000 ORDER BY k',
		'SELECT s, id FROM pt WHERE s BETWEEN ''abc'' AND ''ac'' ORDER BY s DESC, id']) q
$$;
CREATE FUNCTION pt_merge() RETURNS boolean LANGUAGE sql AS $$
	SELECT sum(hybrid_merge(i)) > 0 FROM unnest(array['pt_k', 'pt_s', 'pt_i', 'pt_n', 'pt_f']::regclass[]) i
$$;
CREATE FUNCTION pt_check() RETURNS TABLE (index regclass, filters boolean) LANGUAGE sql AS $$
	SELECT hybrid_index_check(i, true) FROM unnest(array['pt_k', 'pt_s', 'pt_i', 'pt_n', 'pt_f']::regclass[]) i;
	SELECT i, (hybrid_index_stats(i)).filter_pages > 0
	FROM unnest(array['pt_k', 'pt_s', 'pt_i', 'pt_n', 'pt_f']::regclass[]) i
$$;

-- merged in small steps and in large ones
SELECT pt_insert(1, 9000);
SET hybridindex.merge_step_pages = 1;
SELECT pt_merge();
SELECT * FROM pt_check();
SELECT * FROM pt_queries();
RESET hybridindex.merge_step_pages;
SELECT pt_insert(9001, 20000);
SELECT pt_merge();
SELECT * FROM pt_check();
SELECT * FROM pt_queries();

-- at most ten bits a key, filter pages that are not full included
SELECT i, filter_bytes * 8.0 / static_entries < 10 AS small
FROM unnest(array['pt_k', 'pt_i']::regclass[]) i, hybrid_index_stats(i);

-- absent points are denied, in any order of keys; ranges ask no filter
SET enable_seqscan = off;
SELECT filter_checks AS c0, filter_negatives AS n0 FROM hybrid_index_stats('pt_k') \gset
SELECT count((SELECT id FROM pt WHERE k = 2 * g + 1)) FROM generate_series(1, 1000) g;
SELECT filter_checks - :c0 AS asked, filter_negatives - :n0 > 970 AS denied FROM hybrid_index_stats('pt_k');
SELECT filter_negatives AS n0 FROM hybrid_index_stats('pt_i') \gset
SELECT count((SELECT id FROM pt WHERE i = '10.0.0.0/8'::inet + g AND m = 'ok')) FROM generate_series(1, 1000) g;
SELECT filter_negatives - :n0 > 970 AS denied FROM hybrid_index_stats('pt_i');
SELECT filter_checks AS c0 FROM hybrid_index_stats('pt_k') \gset
SELECT count((SELECT id FROM pt WHERE k BETWEEN g * 1000 AND g * 1000 + 500 LIMIT 1)) FROM generate_series(1, 1000) g;
SELECT filter_checks - :c0 AS asked FROM hybrid_index_stats('pt_k');

-- what finds something soon asks no more, which uniqueness checks do not mind
SELECT filter_checks AS c0 FROM hybrid_index_stats('pt_k') \gset
SELECT count(p.id) FROM pt g, LATERAL (SELECT id FROM pt WHERE k = g.k OFFSET 0) p WHERE g.id % 10 = 0;
SELECT filter_checks - :c0 < 200 AS seldom FROM hybrid_index_stats('pt_k');
SELECT filter_negatives AS n0 FROM hybrid_index_stats('pt_k') \gset
INSERT INTO pt SELECT 100000 + g, 2 * hashint4(g)::int8 * 1000003 + 1 FROM generate_series(1, 1000) g;
SELECT filter_negatives - :n0 > 970 AS denied FROM hybrid_index_stats('pt_k');
RESET enable_seqscan;
INSERT INTO pt SELECT -1, k FROM pt WHERE id = 4321;
INSERT INTO pt SELECT -1, k FROM pt WHERE id = 100321;

-- each key is found, also by a part of it, which is a range, for which leaves are read
CREATE FUNCTION pt_lookups(index regclass, keys text, OUT wrong bigint, OUT asked boolean, OUT denied boolean) LANGUAGE sql AS $$
	SELECT wrong, checks > 0.95 * 2 * (present + absent), negatives > 1.95 * absent FROM hyb_lookups(index, keys)
$$;
SELECT * FROM pt_lookups('pt_k', 'SELECT k FROM pt UNION ALL SELECT k + 1 FROM pt');
SELECT * FROM pt_lookups('pt_s', 'SELECT s, id FROM pt UNION ALL SELECT s, -id FROM pt UNION ALL SELECT ''z'' || s, id FROM pt');
SELECT * FROM pt_lookups('pt_i', 'SELECT i, m FROM pt UNION ALL SELECT set_masklen(i, 9), m FROM pt');
SELECT index, wrong FROM (VALUES ('pt_s', 'SELECT s FROM pt UNION ALL SELECT ''z'' || s FROM pt'), ('pt_i', 'SELECT i FROM pt UNION ALL SELECT set_masklen(i, 9) FROM pt')) v (index, keys), hyb_lookups(index, keys);

-- leaves of too many keys have no filter, whatever their neighbours have
CREATE TABLE pt_dense (k int8);
CREATE INDEX pt_dense_k ON pt_dense USING hybrid (k) WITH (filter = points);
INSERT INTO pt_dense SELECT g FROM generate_series(1, 60000) g;
INSERT INTO pt_dense SELECT hashint8extended(g, 1) FROM generate_series(1, 5000) g;
REINDEX INDEX pt_dense_k;
SELECT hybrid_index_check('pt_dense_k', true);
SELECT leaf_pages > 8 AS leaves, filter_pages BETWEEN 1 AND 3 AS few FROM hybrid_index_stats('pt_dense_k');
SELECT count(*), hyb_same('SELECT k FROM pt_dense WHERE k IN (1, 30000, 60000, 60001, 70000)')
FROM pt_dense a WHERE EXISTS (SELECT FROM pt_dense b WHERE b.k = a.k + 1);
DROP TABLE pt_dense;

-- trees with leaves of several kinds, and with leaves that have none
ALTER INDEX pt_k SET (filter = surf);
ALTER INDEX pt_i SET (filter = none);
SELECT pt_insert(20001, 20050);
SELECT pt_merge();
SELECT * FROM pt_check();
SELECT * FROM pt_queries();
ALTER INDEX pt_k SET (filter = points);
ALTER INDEX pt_i SET (filter = points);
DELETE FROM pt WHERE id % 3 = 0 OR id BETWEEN 5000 AND 9000;
VACUUM pt;
SELECT pt_insert(30001, 31000);
SELECT pt_merge();
SELECT * FROM pt_check();
SELECT * FROM pt_queries();

-- built at once
REINDEX TABLE pt;
SELECT * FROM pt_check();
SELECT * FROM pt_queries();

DROP TABLE pt;
DROP TYPE pt_mood;
DROP FUNCTION pt_insert(int, int), pt_queries(), pt_check(), pt_merge(), pt_lookups;
