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

DROP TABLE ip, ip_miss;
