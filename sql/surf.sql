--
-- Range filters of the static stage: answers are the same with and without them,
-- through merges, VACUUM and changes of the options.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;

-- options
CREATE TABLE sf (id int, k int8, s text COLLATE "C", ts timestamp, sensor int8, n numeric);
CREATE INDEX sf_bad ON sf USING hybrid (k) WITH (filter = 'bloom');
CREATE INDEX sf_bad ON sf USING hybrid (k) WITH (filter = grafite);
CREATE INDEX sf_bad ON sf USING hybrid (k) WITH (filter = surf, filter_range = 16);
CREATE INDEX sf_bad ON sf USING hybrid (k) WITH (filter = surf, filter_suffix = hash);
CREATE INDEX sf_bad ON sf USING hybrid (k) WITH (filter = surf, filter_suffix_bits = 33);
CREATE INDEX sf_k ON sf USING hybrid (k) WITH (filter = 'surf', filter_suffix_bits = 8);
CREATE INDEX sf_s ON sf USING hybrid (s DESC) WITH (filter = surf, filter_suffix_bits = 9);
CREATE UNIQUE INDEX sf_t ON sf USING hybrid (ts, sensor) INCLUDE (id) WITH (filter = surf, filter_suffix_bits = 0);
SET client_min_messages = notice;
CREATE INDEX sf_n ON sf USING hybrid (n) WITH (filter = surf);
REINDEX INDEX sf_n;
SET client_min_messages = warning;
CREATE FUNCTION sf_insert(lo int, hi int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO sf SELECT i, hashint8extended(i, 0), left(md5(i::text), 1 + i % 9),
		'2024-01-01'::timestamp + i * interval '7 s' + abs(hashint4(i)) % 5000000 * interval '1 us', i % 13, i / 8.0
	FROM generate_series(lo, hi) i
$$;
CREATE FUNCTION sf_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q)) FROM unnest(array[
		'SELECT id FROM sf WHERE k = (SELECT k FROM sf WHERE id = 77)',
		'SELECT id FROM sf WHERE k = 5',
		'SELECT id FROM sf WHERE k = ANY (ARRAY[1, 2, 3, 4] || (SELECT array_agg(k) FROM sf WHERE id % 700 = 0))',
		'SELECT id FROM sf WHERE k BETWEEN 10000000 AND 20000000',
		'SELECT id FROM sf WHERE k BETWEEN 0 AND 100000000000000000',
		'SELECT id FROM sf WHERE k < -9000000000000000000',
		'SELECT id FROM sf WHERE s = ''c''',
		'SELECT id FROM sf WHERE s = ''no''',
		'SELECT id FROM sf WHERE s > ''a8'' AND s < ''a80''',
		'SELECT id FROM sf WHERE s >= ''a8'' AND s < ''ac''',
		'SELECT id FROM sf WHERE s IS NULL',
		'SELECT id FROM sf WHERE ts = (SELECT ts FROM sf WHERE id = 77) AND sensor = 12',
		'SELECT id FROM sf WHERE ts > ''2024-01-01 01:10:00'' AND ts < ''2024-01-01 01:10:03''',
		'SELECT id FROM sf WHERE ts >= ''2024-01-01 01:10:00'' AND ts < ''2024-01-01 02:10:03'' AND sensor = 1',
		'SELECT id FROM sf WHERE n = 12.5']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order')) FROM unnest(array[
		'SELECT k FROM sf WHERE k > 9100000000000000000 ORDER BY k',
		'SELECT k FROM sf WHERE k BETWEEN 1 AND 900000000000000 ORDER BY k DESC',
		'SELECT s FROM sf WHERE s BETWEEN ''abc'' AND ''ac'' ORDER BY s',
		'SELECT s FROM sf WHERE s BETWEEN ''xbc'' AND ''yc'' ORDER BY s DESC',
		'SELECT ts, sensor FROM sf WHERE ts < ''2024-01-01 00:20:00'' ORDER BY ts, sensor']) q
$$;
CREATE FUNCTION sf_check() RETURNS TABLE (k boolean, s boolean, t boolean, n boolean) LANGUAGE sql AS $$
	SELECT hybrid_index_check('sf_k', true), hybrid_index_check('sf_s', true),
		hybrid_index_check('sf_t', true), hybrid_index_check('sf_n', true);
	SELECT (SELECT filter_pages > 0 FROM hybrid_index_stats('sf_k')),
		(SELECT filter_pages > 0 FROM hybrid_index_stats('sf_s')),
		(SELECT filter_pages > 0 FROM hybrid_index_stats('sf_t')),
		(SELECT filter_pages > 0 FROM hybrid_index_stats('sf_n'))
$$;
CREATE FUNCTION sf_merge() RETURNS bigint LANGUAGE sql AS $$
	SELECT sum(hybrid_merge(i)) FROM unnest(array['sf_k', 'sf_s', 'sf_t', 'sf_n']::regclass[]) i
$$;

-- nothing, then entries of the dynamic stage only
SELECT hyb_same('SELECT id FROM sf WHERE k = 1'), hyb_same('SELECT id FROM sf WHERE k BETWEEN 1 AND 2');
SELECT sf_insert(1, 11000);
SELECT * FROM sf_queries();

-- merged, in small steps and in large ones; comparator columns have no filter
SET hybridindex.merge_step_pages = 1;
SELECT sf_merge() > 0;
SELECT * FROM sf_check();
SELECT * FROM sf_queries();
SELECT sf_insert(11001, 20000);
SELECT * FROM sf_queries();
RESET hybridindex.merge_step_pages;
SELECT sf_merge() > 0;
SELECT * FROM sf_check();
SELECT * FROM sf_queries();

-- built at once
REINDEX TABLE sf;
SELECT * FROM sf_check();
SELECT * FROM sf_queries();

-- deletions, and their space used again
DELETE FROM sf WHERE id % 3 = 0 OR id BETWEEN 5000 AND 9000;
SELECT * FROM sf_queries();
VACUUM sf;
SELECT sf_insert(30001, 36000);
SELECT sf_merge() > 0;
SELECT * FROM sf_check();
SELECT * FROM sf_queries();

-- the filter spares leaves
SELECT filter_checks AS c0, filter_negatives AS n0, filter_false_positives AS f0 FROM hybrid_index_stats('sf_k') \gset
SET enable_seqscan = off;
SELECT count((SELECT id FROM sf WHERE k = g LIMIT 1)) FROM generate_series(1, 1000) g;
SELECT count((SELECT id FROM sf WHERE k BETWEEN g * 1000 AND g * 1000 + 500 LIMIT 1)) FROM generate_series(1, 1000) g;
RESET enable_seqscan;
SELECT filter_checks - :c0 >= 1900 AS asked,
	filter_negatives - :n0 >= 1900 AS denied,
	filter_checks - :c0 = filter_negatives - :n0 + filter_false_positives - :f0 AS counted
FROM hybrid_index_stats('sf_k');

-- the uniqueness check asks it, and believes no more than it says
INSERT INTO sf (id, ts, sensor) SELECT 1, ts, sensor FROM sf WHERE id = 100;
INSERT INTO sf (id, ts, sensor) VALUES (40000, '2024-01-01 00:00:01', 0);
SELECT filter_negatives > 0 FROM hybrid_index_stats('sf_t');

-- Each key is found, though filters are asked, and deny most of the others.  Most leaves
-- of sf_t have too many keys for filters, and sf_n has a comparator column.
CREATE FUNCTION sf_lookups(index regclass, keys text, OUT wrong bigint, OUT asked boolean, OUT denied boolean) LANGUAGE sql AS $$
	SELECT wrong, checks > 0.95 * 6 * (present + absent), negatives > 3 * absent FROM hyb_lookups(index, keys)
$$;
SELECT * FROM sf_lookups('sf_k', 'SELECT k FROM sf UNION ALL SELECT hashint8extended(id, 9) FROM sf');
SELECT * FROM sf_lookups('sf_s', 'SELECT s FROM sf UNION ALL SELECT s || ''x'' FROM sf UNION ALL SELECT md5((-id)::text) FROM sf');
SELECT wrong FROM hyb_lookups('sf_t', 'SELECT ts, sensor FROM sf UNION ALL SELECT ts, 14 FROM sf');
SELECT wrong FROM hyb_lookups('sf_t', 'SELECT ts FROM sf UNION ALL SELECT ts + interval ''3 s'' FROM sf');
SELECT wrong, checks FROM hyb_lookups('sf_n', 'SELECT n FROM sf UNION ALL SELECT n + 0.03 FROM sf');
-- longer than any entry, which a shorter one may equal nevertheless
CREATE TABLE sf_long (t text COLLATE "C", b bpchar);
CREATE INDEX sf_long_t ON sf_long USING hybrid (t);
CREATE INDEX sf_long_h ON sf_long USING hybrid (t text_hope_ops);
CREATE INDEX sf_long_b ON sf_long USING hybrid (b);
INSERT INTO sf_long VALUES ('x', 'x');
SELECT string_agg(md5(i::text), '') AS long FROM generate_series(1, 300) i \gset
SELECT hyb_same(format('SELECT t FROM sf_long WHERE t = %L', :'long')), hyb_same('SELECT b FROM sf_long WHERE b = (''x'' || repeat('' '', 3000))::bpchar');
DROP INDEX sf_long_t;
SELECT hyb_same(format('SELECT t FROM sf_long WHERE t = %L', :'long')), hyb_same(format('SELECT t FROM sf_long WHERE t >= %L', :'long'));
DROP TABLE sf_long;

-- ranges with few rows or many, in both directions
CREATE TABLE sc AS SELECT hashint8extended(i, 1) AS k, i % 10 AS v FROM generate_series(1, 20000) i;
CREATE INDEX sc_k ON sc USING hybrid (k) WITH (filter = surf, filter_suffix_bits = 0);
CREATE FUNCTION sc_ranges(index regclass) RETURNS TABLE (ranges bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(format('SELECT k FROM sc WHERE k BETWEEN %s AND %s ORDER BY %s', lo, lo + width * 10000000000000000, direction), 'order'))
	FROM (SELECT a * 100000000000000000 AS lo FROM generate_series(-90, 90, 17) a) l, unnest(array[0, 0.03, 1, 20]) width, unnest(hyb_directions(index)) direction
$$;
SELECT * FROM sc_ranges('sc_k');
DROP INDEX sc_k;
CREATE INDEX sc_kd ON sc USING hybrid (k DESC NULLS LAST) WITH (filter = surf);
INSERT INTO sc SELECT hashint8extended(i, 1), i % 10 FROM generate_series(20001, 20100) i;
INSERT INTO sc VALUES (NULL, NULL);
SELECT * FROM sc_ranges('sc_kd');
SELECT * FROM sf_lookups('sc_kd', 'SELECT k FROM sc UNION ALL SELECT hashint8extended(i, g) FROM generate_series(1, 20000) i, generate_series(8, 9) g');
DROP TABLE sc;
DROP FUNCTION sc_ranges;

-- keys that are prefixes of one another, and of 0xFF
CREATE TABLE sp (b bytea, t text COLLATE "C", pad text);
CREATE INDEX sp_b ON sp USING hybrid (b) WITH (filter = surf);
CREATE INDEX sp_t ON sp USING hybrid (t DESC, b) INCLUDE (pad) WITH (filter = surf, filter_suffix_bits = 32);
INSERT INTO sp SELECT decode(repeat('ff', i % 40) || repeat('00', i / 40 % 20) || to_hex(16 + i % 239), 'hex'),
	repeat('a', i % 80) || chr(97 + i % 3), md5(i::text) FROM generate_series(0, 5000) i;
SELECT hybrid_merge('sp_b'), hybrid_merge('sp_t');
SELECT hybrid_index_check('sp_b', true), hybrid_index_check('sp_t', true);
SELECT bool_and(hyb_same(q)) FROM unnest(array[
	'SELECT b FROM sp WHERE b = ''\xff''', 'SELECT b FROM sp WHERE b > ''\xffffffff'' AND b <= ''\xffffffff10''',
	'SELECT b FROM sp WHERE b >= ''\xffff'' AND b < ''\xffff00''', 'SELECT b FROM sp WHERE b = ''''',
	'SELECT t FROM sp WHERE t = ''aa''', 'SELECT t FROM sp WHERE t > ''aab'' AND t < ''ab''',
	'SELECT t FROM sp WHERE t = ''b'' AND b > ''\xff''', 'SELECT t FROM sp WHERE t LIKE ''aaaaac%''']) q;
SELECT * FROM sf_lookups('sp_b', 'SELECT b FROM sp UNION ALL SELECT b || ''\xfe01'' FROM sp UNION ALL SELECT ''\x0a'' || decode(pad, ''hex'') FROM sp');
SELECT * FROM sf_lookups('sp_t', 'SELECT t, b FROM sp UNION ALL SELECT t, b || ''\xfe01'' FROM sp UNION ALL SELECT t, ''\x0a'' || decode(pad, ''hex'') FROM sp');
SELECT * FROM sf_lookups('sp_t', 'SELECT t FROM sp UNION ALL SELECT t || chr(g) FROM sp, generate_series(65, 90) g UNION ALL SELECT ''z'' || pad FROM sp');

-- options that change take effect leaf by leaf
ALTER INDEX sf_k SET (filter = none);
SELECT hybrid_index_check('sf_k', true);
SELECT sf_insert(50001, 60000);
SELECT hybrid_merge('sf_k') > 0 AS merged, filter_pages FROM hybrid_index_stats('sf_k');
SELECT * FROM sf_queries();
SELECT filter_pages FROM hybrid_index_stats('sf_k');
SELECT hybrid_index_check('sf_k', true);
ALTER INDEX sf_k SET (filter = surf, filter_suffix_bits = 0);
SELECT sf_insert(60001, 70000);
SELECT hybrid_merge('sf_k') > 0 AS merged;
SELECT filter_pages > 0 FROM hybrid_index_stats('sf_k');
SELECT hybrid_index_check('sf_k', true);
SELECT * FROM sf_queries();
-- filters of both kinds in one tree
ALTER INDEX sf_t SET (filter = points);
SELECT sf_insert(70001, 70050);
SELECT hybrid_merge('sf_t') > 0 AS merged;
SELECT hybrid_index_check('sf_t', true);
ALTER INDEX sf_t SET (filter = surf);
SELECT * FROM sf_queries();

DROP TABLE sf, sp;
DROP FUNCTION sf_insert, sf_queries, sf_check, sf_merge;

-- the planner knows of filters: ranges expected to be empty cost less
CREATE TABLE sx AS SELECT hashint8extended(i, 2) AS k FROM generate_series(1, 20000) i;
CREATE TABLE sy AS TABLE sx;
CREATE INDEX sx_k ON sx USING hybrid (k) WITH (filter = surf);
CREATE INDEX sy_k ON sy USING hybrid (k);
VACUUM ANALYZE sx, sy;
CREATE FUNCTION sx_cost(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Total Cost';
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT width, f < n AS less, f = n AS same
FROM unnest(array[1000000, 10000000000, 100000000000000000]) width,
	LATERAL (SELECT sx_cost('SELECT k FROM sx WHERE k BETWEEN 5 AND ' || width) AS f,
		sx_cost('SELECT k FROM sy WHERE k BETWEEN 5 AND ' || width) AS n) c;
SELECT sx_cost('SELECT k FROM sx WHERE k = 5') = sx_cost('SELECT k FROM sy WHERE k = 5') AS points_same;

-- a range that begins between two leaves goes on where the filter of the first
-- has nothing, in both directions; empty ranges keep the filter in use
SELECT count(*) AS gaps, sum((SELECT count(*) FROM sx WHERE k BETWEEN a + d / 2 AND a + d / 2 + 1000)) AS inside,
	count(*) FILTER (WHERE (SELECT k FROM sx WHERE k BETWEEN a + d / 2 AND b ORDER BY k LIMIT 1) IS DISTINCT FROM b) AS forward_wrong,
	count(*) FILTER (WHERE (SELECT k FROM sx WHERE k BETWEEN a AND b - d / 4 ORDER BY k DESC LIMIT 1) IS DISTINCT FROM a) AS backward_wrong
FROM (SELECT k AS a, lead(k) OVER w AS b, lead(k) OVER w - k AS d FROM sx WINDOW w AS (ORDER BY k)) x WHERE b IS NOT NULL;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- The leaf behind one that a filter rules out ends at a TID, among equal keys.
CREATE TABLE sf_tid (k int, id int);
INSERT INTO sf_tid SELECT CASE WHEN i <= 5 THEN i WHEN i <= 24000 THEN 7 ELSE 100000 + abs(hashint4(i)) % 100000000 END, i FROM generate_series(1, 30000) i;
CREATE INDEX sf_tid_s ON sf_tid USING hybrid (k) WITH (filter = surf);
DELETE FROM sf_tid WHERE id BETWEEN 14000 AND 24000;
VACUUM sf_tid;
INSERT INTO sf_tid VALUES (24001, 0);
SELECT hybrid_merge('sf_tid_s'), hyb_check('sf_tid');
SELECT hyb_same('SELECT k FROM sf_tid WHERE k BETWEEN 6 AND 8 ORDER BY k DESC', 'order order_only'),
	hyb_same('SELECT k FROM sf_tid WHERE k BETWEEN 6 AND 8 ORDER BY k', 'order order_only');
SELECT filter_negatives > 0 AS asked FROM hybrid_index_stats('sf_tid_s');
DROP TABLE sf_tid;

-- entries of a value that are left begin in the leaf behind that where they began
CREATE TABLE sf_fence AS SELECT a, b, md5(b::text) AS pad FROM generate_series(1, 60) a, generate_series(1, 1000) b;
CREATE INDEX sf_fence_s ON sf_fence USING hybrid (a, b) INCLUDE (pad) WITH (filter = surf);
DELETE FROM sf_fence WHERE a % 3 = 0 AND b < 995;
VACUUM sf_fence;
SELECT * FROM sf_lookups('sf_fence_s', 'SELECT a FROM generate_series(1, 180) a');
DROP TABLE sf_fence;
DROP FUNCTION sf_lookups;

-- Leaves with many entries have no filter of either kind.  A REINDEX is silent.
CREATE TABLE sf_dense AS SELECT i % 4 AS sensor, timestamptz '2024-01-01 UTC' + i / 4 * interval '1 s' AS ts FROM generate_series(0, 79999) i;
SET client_min_messages = notice;
\set VERBOSITY terse
CREATE INDEX sf_dense_s ON sf_dense USING hybrid (sensor, ts) WITH (filter = surf);
CREATE INDEX sf_dense_p ON sf_dense USING hybrid (sensor, ts) WITH (filter = points);
REINDEX INDEX sf_dense_s;
CREATE INDEX sf_dense_auto ON sf_dense USING hybrid (sensor, ts);
\set VERBOSITY default
SET client_min_messages = warning;
DROP TABLE sf_dense;

-- An index whose stored parameters name a kind that is gone has what the default says.
SET client_min_messages = error;
CREATE TABLE sf_gone AS SELECT i AS k FROM generate_series(1, 5000) i;
CREATE UNIQUE INDEX sf_gone_k ON sf_gone USING hybrid (k) WITH (filter = surf);
UPDATE pg_class SET reloptions = '{filter=grafite,filter_range=16}' WHERE oid = 'sf_gone_k'::regclass;
SELECT hyb_same('SELECT k FROM sf_gone WHERE k BETWEEN 10 AND 20'), hyb_same('SELECT k FROM sf_gone WHERE k = 0');
INSERT INTO sf_gone VALUES (4000);
INSERT INTO sf_gone VALUES (0);
REINDEX INDEX sf_gone_k;
REINDEX INDEX CONCURRENTLY sf_gone_k;
VACUUM sf_gone;
SELECT hybrid_convert('sf_gone_k', 'trie');
SELECT reloptions, filter_pages, hyb_check('sf_gone') FROM pg_class, hybrid_index_stats('sf_gone_k') WHERE oid = 'sf_gone_k'::regclass;
ALTER INDEX sf_gone_k SET (merge_ratio = 5);
ALTER INDEX sf_gone_k RESET (filter_range);
ALTER INDEX sf_gone_k RESET (filter, filter_range);
SELECT reloptions FROM pg_class WHERE oid = 'sf_gone_k'::regclass;
UPDATE pg_class SET reloptions = '{filter=grafite,filter_range=16}' WHERE oid = 'sf_gone_k'::regclass;
SELECT hybrid_revert('sf_gone_k');
SELECT hybrid_convert('sf_gone_k');
UPDATE pg_class SET reloptions = '{filter=grafite,filter_range=16}' WHERE oid = 'sf_gone_k'::regclass;
DROP INDEX sf_gone_k;
DROP TABLE sf_gone;
SET client_min_messages = warning;
