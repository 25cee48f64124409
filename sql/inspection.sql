--
-- Seeing inside: statistics, views and progress agree with the index.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
CREATE TABLE ip (a int, t text);
CREATE INDEX ip_a ON ip USING hybrid (a);
SELECT static_entries, static_tombstones, leaf_pages, inner_pages, static_bytes, height, dynamic_entries, merges, merged_entries, merge_running FROM hybrid_index_stats('ip_a');
INSERT INTO ip SELECT i, 'x' FROM generate_series(1, 5000) i;
SELECT static_entries, dynamic_entries, delta_pages > 0 AS delta, dynamic_bytes > 0 AS bytes, merges FROM hybrid_index_stats('ip_a');
SELECT hybrid_merge('ip_a');
SELECT static_entries, static_tombstones, leaf_pages > 0 AS leaves, height, dynamic_entries, merges, merged_entries FROM hybrid_index_stats('ip_a');
INSERT INTO ip SELECT i, 'y' FROM generate_series(1, 300) i;
DELETE FROM ip WHERE a BETWEEN 1000 AND 1999;
SELECT hyb_quiet();
VACUUM ip;
SELECT static_entries - static_tombstones AS static_live, dynamic_entries, merge_running FROM hybrid_index_stats('ip_a');
CREATE INDEX ip_ta ON ip USING hybrid (t, a);
INSERT INTO ip SELECT i, 'long ' || repeat(md5(i::text), 10) FROM generate_series(1, 3000) i;
SELECT hybrid_merge('ip_ta') > 0;

-- pages add up, as often as one looks
SELECT c.relname,
	total_pages = pg_relation_size(c.oid) / current_setting('block_size')::int AS pages,
	total_bytes = pg_relation_size(c.oid) AS bytes,
	leaf_pages + inner_pages + delta_pages + free_pages <= total_pages AS parts,
	static_bytes = (leaf_pages + inner_pages) * current_setting('block_size')::int AS static,
	dynamic_bytes = delta_pages * current_setting('block_size')::int AS dynamic,
	abs(bytes_per_entry - total_bytes / greatest(static_entries - static_tombstones + dynamic_entries, 1)::float8) < 1 AS per_entry,
	height > 0 AS height
FROM pg_class c, hybrid_index_stats(c.oid) s WHERE c.relname IN ('ip_a', 'ip_ta') ORDER BY 1;

-- point look-ups ask the Bloom filter of the dynamic stage
INSERT INTO ip SELECT 100000 + i, 'z' FROM generate_series(1, 1000) i;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM generate_series(1, 300) g(x), LATERAL (SELECT FROM ip WHERE a = g.x + 200000 OFFSET 0) y;
SELECT bloom_hits + bloom_misses >= 300 AS asked, bloom_misses > 200 AS mostly_no, tree_memory > 0 AS tree FROM hybrid_index_stats('ip_a');
SELECT count(*) FROM generate_series(1, 300) g(x), LATERAL (SELECT FROM ip WHERE a = g.x + 100000 OFFSET 0) y;
SELECT bloom_hits >= 300 AS found FROM hybrid_index_stats('ip_a');

-- reading the statistics changes no figure: what this session has counted is added once
CREATE TABLE ip_again (a int);
CREATE UNIQUE INDEX ip_again_a ON ip_again USING hybrid (a) WITH (filter = surf);
INSERT INTO ip_again SELECT i * 2 FROM generate_series(1, 5000) i;
SELECT hybrid_merge('ip_again_a');
INSERT INTO ip_again SELECT i FROM generate_series(1, 1200) i ON CONFLICT DO NOTHING;
SELECT count(*) FROM generate_series(1, 1500) g(x), LATERAL (SELECT FROM ip_again WHERE a = g.x OFFSET 0) y;
SELECT count(DISTINCT hybrid_index_stats('ip_again_a')::text) AS same FROM generate_series(1, 3);
SELECT bloom_misses > 0 AS bloom, unique_absent + unique_present > 0 AS unique FROM hybrid_index_stats('ip_again_a');
DROP TABLE ip_again;

-- the views
SELECT count(*) FROM hybrid_indexes WHERE hybrid_indexes::text LIKE '%ip_a%';
SELECT count(*) >= 2 AS lists_indexes FROM hybrid_indexes;
SELECT count(*) AS running FROM hybrid_merge_progress;
SELECT dynamic_memory = pg_size_bytes(current_setting('hybridindex.dynamic_memory')) AS setting, limit_bytes <= dynamic_memory AS bound,
	reserved_bytes <= limit_bytes AS reserved, used_bytes <= reserved_bytes AS used,
	tree_bytes > 0 AND tree_bytes <= used_bytes AS trees, segments > 0 AS segments,
	indexes >= 2 AS indexes, private_tree_bytes >= 0 AS private, control_bytes > 0 AS control
FROM hybrid_memory;

-- statistics without waiting: what is not there has none
SELECT dynamic_entries, total_pages IS NULL AS unknown FROM hybrid_index_stats('ip_a', true);
SELECT count(*), count(s.total_pages), count(s.tree_memory) FROM hybrid_index_stats(1::oid, true) s;
SELECT hyb_error('SELECT hybrid_index_stats(''pg_class_oid_index'', true)');
SELECT hybrid_index_check('ip_a') IS NULL OR true AS checked, hybrid_index_check('ip_ta', true) IS NULL OR true AS checked_with_heap;

-- a table row that the index has not got is found by the check
CREATE TABLE ip_miss (a int);
INSERT INTO ip_miss SELECT i FROM generate_series(1, 100) i;
CREATE INDEX ip_miss_i ON ip_miss USING hybrid (a);
UPDATE pg_index SET indisready = false, indisvalid = false WHERE indexrelid = 'ip_miss_i'::regclass;
INSERT INTO ip_miss VALUES (4711);
UPDATE pg_index SET indisready = true, indisvalid = true WHERE indexrelid = 'ip_miss_i'::regclass;
SELECT left(hyb_error('SELECT hybrid_index_check(''ip_miss_i'')'), 8), left(hyb_error('SELECT hybrid_index_check(''ip_miss_i'', true)'), 5);

-- literals of types that share a class of many types, their arrays and domains
CREATE TYPE ip_enum AS ENUM ('red', 'green', 'blue');
CREATE TYPE ip_row AS (x int, y text COLLATE "C");
CREATE DOMAIN ip_dom AS ip_enum;
CREATE TABLE ip_any (e ip_enum, d ip_dom, a int[], r int4range, w ip_row, v varchar(5) COLLATE "C", n numeric, m int4multirange, da date);
INSERT INTO ip_any VALUES ('green', 'green', '{1,2}', '[3,9)', '(1,x)', 'vv', 1.5, '{[3,9)}', '2024-02-29');
CREATE INDEX ip_any_e ON ip_any USING hybrid (e, d);
CREATE INDEX ip_any_a ON ip_any USING hybrid (a, r);
CREATE INDEX ip_any_w ON ip_any USING hybrid (w);
CREATE INDEX ip_any_m ON ip_any USING hybrid (m, v);
CREATE INDEX ip_any_da ON ip_any USING hybrid (da, n);
SELECT hybrid_may_contain('ip_any_e', 'green', 'green') AS e, hybrid_may_contain('ip_any_e', 'red') AS e, hybrid_may_contain('ip_any_e', 'green'::ip_dom, 'blue'::ip_enum) AS e,
	hybrid_may_contain('ip_any_a', '{1,2}', '[3,9)') AS a, hybrid_may_contain('ip_any_a', '{1,3}') AS a, hybrid_may_contain('ip_any_a', '{1,2}'::int[], 'empty') AS a,
	hybrid_may_contain('ip_any_a', '{1,2}'::int[], int4range(3, 8, '[]')) AS a,
	hybrid_may_contain('ip_any_w', '(1,x)') AS w, hybrid_may_contain('ip_any_w', '(1,y)') AS w, hybrid_may_contain('ip_any_w', ROW(1, 'x')::ip_row) AS w,
	hybrid_may_contain('ip_any_m', '{[3,9)}', 'vv') AS m, hybrid_may_contain('ip_any_m', '{[3,9)}', 'vw'::bpchar) AS m,
	hybrid_may_contain('ip_any_da', '2024-02-29', 1.50) AS da, hybrid_may_contain('ip_any_da', '2024-02-29', 1) AS da;
SELECT replace(hyb_error(s), 'public.', '') FROM unnest(array[
	'SELECT hybrid_may_contain(''ip_any_e'', ''yellow'')',
	'SELECT hybrid_may_contain(''ip_any_e'', 1)',
	'SELECT hybrid_may_contain(''ip_any_a'', ''{x}'')',
	'SELECT hybrid_may_contain(''ip_any_a'', ''{1}''::text[])',
	'SELECT hybrid_may_contain(''ip_any_w'', ''(1)'')',
	'SELECT hybrid_may_contain(''ip_any_w'', ''(1,2)''::point)']) s;
DROP TABLE ip_any;
DROP TYPE ip_row, ip_enum CASCADE;

-- counts are not misled by keys that have many rows, in the static stage (with
-- filters and without) nor in the dynamic one
CREATE TABLE ip_skew AS SELECT CASE WHEN i % 3 = 0 THEN 70 WHEN i % 7 = 0 THEN 130 ELSE i END AS a FROM generate_series(1, 60000) i;
CREATE INDEX ip_skew_n ON ip_skew USING hybrid (a);
CREATE INDEX ip_skew_f ON ip_skew USING hybrid (a DESC) WITH (filter = surf);
CREATE TABLE ip_fresh (a int);
CREATE INDEX ip_fresh_n ON ip_fresh USING hybrid (a);
INSERT INTO ip_fresh SELECT i * i / 100 FROM generate_series(1, 4000) i;
SELECT lo, hi, (SELECT count(*) FROM ip_skew WHERE a BETWEEN lo AND hi), hybrid_approx_count('ip_skew_n', lo, hi) AS static, hybrid_approx_count('ip_skew_f', lo, hi) AS filter,
	(SELECT count(*) FROM ip_fresh WHERE a BETWEEN lo AND hi), hybrid_approx_count('ip_fresh_n', lo, hi) AS dynamic
FROM (VALUES (1, 10), (70, 70), (69, 71), (71, 129), (130, 130), (1, 1000), (131, 50000), (59990, 70000)) v(lo, hi);

-- nodes know how many rows are below, whatever keys these have: after merges too
CREATE TABLE ip_counts AS SELECT (i::int8 * i % 4000 * (i % 4000) / 40000)::int AS a, i % 500 AS b, i AS c FROM generate_series(1, 30000) i;
CREATE INDEX ip_counts_a ON ip_counts USING hybrid (a);
CREATE INDEX ip_counts_ab ON ip_counts USING hybrid (a, b) INCLUDE (c);
CREATE INDEX ip_counts_d ON ip_counts USING hybrid (a DESC, b DESC);
CREATE INDEX ip_counts_f ON ip_counts USING hybrid (a, b) WITH (filter = surf);
CREATE INDEX ip_counts_m ON ip_counts USING hybrid (a, b DESC);
CREATE FUNCTION ip_differ() RETURNS TABLE (index regclass, ranges bigint, differ bigint) LANGUAGE sql AS $$
	SELECT i, count(*), count(*) FILTER (WHERE hybrid_approx_count(i, lo, hi) <> n)
	FROM unnest(array['ip_counts_a', 'ip_counts_ab', 'ip_counts_d', 'ip_counts_f', 'ip_counts_m']::regclass[]) i,
		(SELECT lo, hi, (SELECT count(*) FROM ip_counts WHERE a BETWEEN lo AND hi) AS n
		FROM generate_series(0, 380, 60) lo, unnest(array[lo, lo + 7, 200, 400]) hi) r
	GROUP BY i UNION ALL
	SELECT i, count(*), count(*) FILTER (WHERE hybrid_approx_count(i, ROW(lo, x), ROW(hi, y)) <> n)
	FROM unnest(array['ip_counts_ab', 'ip_counts_d', 'ip_counts_f']::regclass[]) i,
		(SELECT lo, hi, x, y, (SELECT count(*) FROM ip_counts WHERE (a, b) >= (lo, x) AND (a, b) <= (hi, y)) AS n
		FROM generate_series(0, 380, 120) lo, unnest(array[lo, lo + 7, 400]) hi, unnest(array[0, 200, 499]) x, unnest(array[30, 250]) y) r
	GROUP BY i ORDER BY 1, 2
$$;
SELECT * FROM ip_differ();
INSERT INTO ip_counts SELECT i % 90 * (i % 4), i % 500, i FROM generate_series(1, 15000) i;
SELECT count(hybrid_merge(i)), bool_and(hybrid_index_check(i, true) IS NOT NULL) FROM unnest(array['ip_counts_a', 'ip_counts_ab', 'ip_counts_d', 'ip_counts_f', 'ip_counts_m']::regclass[]) i;
SELECT * FROM ip_differ();
-- rows of fewer columns, of other types, on one side only; rows that cannot be
SELECT hybrid_approx_count('ip_counts_ab', ROW(5), ROW(9)) - hybrid_approx_count('ip_counts_ab', 5, 9) AS same,
	hybrid_approx_count('ip_counts_ab', ROW(5, '20'), ROW(6::int2)) - (SELECT count(*) FROM ip_counts WHERE (a, b) >= (5, 20) AND a <= 6) AS same,
	hybrid_approx_count('ip_counts_ab', NULL, ROW(6, 20)) - (SELECT count(*) FROM ip_counts WHERE (a, b) <= (6, 20)) AS same,
	hybrid_approx_count('ip_counts_ab', ROW(6, 20), ROW(6, 19)) AS none;
SELECT hyb_error(s) FROM unnest(array[
	'SELECT hybrid_approx_count(''ip_counts_ab'', ROW(1, 2, 3), ROW(2))',
	'SELECT hybrid_approx_count(''ip_counts_ab'', ROW(1, NULL), ROW(2))',
	'SELECT hybrid_approx_count(''ip_counts_ab'', ROW(1, ''x''::text), ROW(2))',
	'SELECT hybrid_approx_count(''ip_counts_m'', ROW(1), ROW(2, 3))']) s;
DROP TABLE ip_counts;
DROP FUNCTION ip_differ;

DROP TABLE ip, ip_miss, ip_skew, ip_fresh;
