--
-- DDL that was written for btree, and settings made before the library is
-- loaded.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
CREATE TABLE dd (a int, t text COLLATE "C");
INSERT INTO dd SELECT i % 97, md5(i::text) FROM generate_series(1, 3000) i;

-- btree's storage parameters: checked as btree does, kept, without effect
SELECT w, hyb_error(format('CREATE INDEX ON dd USING hybrid (a) WITH (%s)', w)) AS hybrid, hyb_error(format('CREATE INDEX ON dd USING btree (a) WITH (%s)', w)) AS btree
FROM unnest(array['fillfactor = 9', 'fillfactor = 101', 'fillfactor = ''full''', 'fillfactor = 10', 'fillfactor = 100', 'deduplicate_items = 3', 'deduplicate_items', 'deduplicate_items = off', 'fillfactor = 70, deduplicate_items = false']) w;
CREATE INDEX dd_plain ON dd USING hybrid (a);
CREATE INDEX dd_a ON dd USING hybrid (a) WITH (fillfactor = 40, deduplicate_items = off, merge_ratio = 5);
SELECT pg_get_indexdef('dd_a'::regclass), pg_relation_size('dd_a') = pg_relation_size('dd_plain') AS same_size;
ALTER INDEX dd_a SET (fillfactor = 80, deduplicate_items = on);
SELECT hyb_error('ALTER INDEX dd_a SET (fillfactor = 5)');
ALTER INDEX dd_a RESET (deduplicate_items, merge_ratio);
SELECT reloptions FROM pg_class WHERE relname = 'dd_a';
REINDEX INDEX dd_a;
SELECT pg_relation_size('dd_a') = pg_relation_size('dd_plain') AS same_size, hyb_check('dd');

-- real is a type's name, and so another word to the grammar
CREATE INDEX dd_t ON dd USING hybrid (t) WITH (filter = surf, filter_suffix = real, filter_suffix_bits = 8);
CREATE INDEX dd_tq ON dd USING hybrid (t) WITH (filter = 'surf', filter_suffix = 'real', filter_suffix_bits = 8);
CREATE INDEX dd_th ON dd USING hybrid (t) WITH (filter = surf, filter_suffix = hash, filter_suffix_bits = 8);
ALTER INDEX dd_th SET (filter_suffix = real);
SELECT reloptions FROM pg_class WHERE relname = 'dd_th';
REINDEX INDEX dd_th;
SELECT pg_get_indexdef('dd_t'::regclass) AS def \gset
DROP INDEX dd_t;
:def;
SELECT s.filter_bytes = q.filter_bytes AND s.filter_bytes > 0 AS same_filter
FROM hybrid_index_stats('dd_t') s, hybrid_index_stats('dd_tq') q;
SELECT hyb_error('CREATE INDEX ON dd USING hybrid (t) WITH (filter_suffix = float8)');
SELECT hyb_same('SELECT a FROM dd WHERE t = md5(''7''::text)'), hyb_check('dd');

-- Settings are kept until the library is loaded, which checks them; in a
-- worker of a parallel query too, without a word.
CREATE FUNCTION dd_read() RETURNS text LANGUAGE plpgsql PARALLEL SAFE STABLE AS $$
BEGIN
	RETURN (SELECT count(*) FROM dd WHERE a = 7) || ' ' || current_setting('hybridindex.merge_floor');
END $$;
\c -
\set VERBOSITY terse
SET hybridindex.merge_floor = 7;
SET hybridindex.merge_step_pages = 4;
SET hybridindex.background_merge = off;
SELECT count(*) FROM (SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')) s;
SET enable_seqscan = off;
SELECT dd_read();
\c -
\set VERBOSITY terse
SET hybridindex.merge_floor = -1;
SET hybridindex.merge_step_pages = 129;
SET hybridindex.background_merge = 'perhaps';
LOAD 'hybridindex';
SELECT name, setting FROM pg_settings WHERE name IN ('hybridindex.merge_floor', 'hybridindex.merge_step_pages', 'hybridindex.background_merge') ORDER BY name COLLATE "C";

DROP FUNCTION dd_read;
DROP TABLE dd;
