--
-- DDL that was written for btree.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
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

SELECT hyb_same('SELECT t FROM dd WHERE a = 7'), hyb_check('dd');

DROP TABLE dd;
