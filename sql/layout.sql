--
-- Choice of the layout: what hybrid_advise recommends, hybrid_convert with a layout.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET client_min_messages = notice;
\set SHOW_CONTEXT never
SET session_preload_libraries = 'hybridindex';
CREATE SCHEMA ly;
SET search_path = ly, public;
CREATE FUNCTION ly_key(i int) RETURNS int8 LANGUAGE sql IMMUTABLE AS 'SELECT hashint8extended(i, 0)';
-- a table for each way of reading it
CREATE FUNCTION ly_table(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %I (k int8, v text) WITH (autovacuum_enabled = off)', name);
	EXECUTE format('INSERT INTO %I SELECT ly.ly_key(i), ''v'' FROM generate_series(1, 20000) i', name);
	EXECUTE format('CREATE INDEX %I ON %I (k)', name || '_k', name);
END
$$;
CREATE FUNCTION ly_read(query text, VARIADIC scans text[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
BEGIN
	PERFORM set_config('enable_' || s, 'on', true) FROM unnest(scans) s;
	FOR i IN 1 .. 200 LOOP
		EXECUTE query USING i;
	END LOOP;
END
$$;
SELECT ly_table(x) FROM unnest('{plain,ios,bitmap,unread}'::text[]) x;
CREATE TABLE others (a int, b int8, f float8, e text, s text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO others SELECT i, ly_key(i), i, i, md5(i::text) FROM generate_series(1, 5000) i;
CREATE UNIQUE INDEX others_a ON others (a);
CREATE INDEX others_f ON others (f);
CREATE INDEX others_i ON others (b) INCLUDE (s);
CREATE INDEX others_e ON others (lower(e) COLLATE "C");
VACUUM ANALYZE plain, ios, bitmap, unread, others;
SELECT ly_read('SELECT v FROM plain WHERE k = ly_key($1)', 'indexscan');
SELECT ly_read('SELECT k FROM ios WHERE k = ly_key($1)', 'indexonlyscan', 'indexscan');
SELECT ly_read('SELECT v FROM bitmap WHERE k = ly_key($1)', 'bitmapscan');
SELECT pg_stat_force_next_flush();
SELECT index, trie_size < 0.6 * hybrid_size AS smaller, layout, reason, command FROM hybrid_advise() WHERE "table"::text ~ '^(plain|ios|bitmap|unread|others)$' ORDER BY index::text COLLATE "C";
SELECT trie_obstacle, trie_bytes FROM hybrid_estimate('others_i');

-- a wrong layout changes nothing, and is what ALTER INDEX says
CREATE INDEX others_h ON others USING hybrid (b);
ALTER INDEX others_h SET (layout = foo);
SELECT hybrid_convert('plain_k', layout => 'foo');
SELECT hybrid_convert('plain_k', layout => '');
CALL hybrid_convert_concurrently('plain_k', layout => 'columnar, filter=surf');
SELECT hybrid_convert('others_f', 'trie');
CALL hybrid_convert_concurrently('others_f', layout => 'trie');
SELECT hybrid_convert('others_i', 'trie');
SELECT hybrid_convert('others_e', 'trie');
SELECT hybrid_convert(NULL, 'trie');
CALL hybrid_convert_concurrently(NULL, 'trie');
SELECT hybrid_convert('others', 'trie');
CREATE INDEX others_hash ON others USING hash (b);
SELECT hybrid_convert('others_hash', 'trie');
BEGIN READ ONLY;
SELECT hybrid_convert('plain_k', 'trie');
ROLLBACK;
CREATE ROLE regress_ly;
GRANT USAGE ON SCHEMA ly TO regress_ly;
SET ROLE regress_ly;
SELECT hybrid_convert('plain_k', 'trie');
CALL hybrid_convert_concurrently('plain_k', 'trie');
RESET ROLE;
SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid IN ('plain'::regclass, 'others'::regclass) ORDER BY 1;

-- each way in, from btree and from the other layout, with a NOTICE where scans lose
SELECT hybrid_convert('plain_k', layout => 'trie');
SELECT hybrid_convert('plain_k', layout => 'TRIE');
SELECT hybrid_convert('plain_k', NULL);
CALL hybrid_convert_concurrently('ios_k', layout => 'trie');
CALL hybrid_convert_concurrently('unread_k');
CALL hybrid_convert_concurrently('unread_k', layout => 'columnar');
CALL hybrid_convert_concurrently('unread_k', layout => 'trie');
CALL hybrid_convert_concurrently('unread_k', layout => 'columnar');
SELECT ly_read('SELECT k FROM unread WHERE k = ly_key($1)', 'indexonlyscan', 'indexscan');
SELECT index_only_scans FROM hybrid_index_stats('unread_k');
SELECT pg_stat_force_next_flush();
CALL hybrid_convert_concurrently('unread_k', layout => 'trie');
-- the parameter alone is not the layout
ALTER INDEX plain_k SET (layout = columnar);
SELECT hybrid_convert('plain_k', layout => 'columnar');
SELECT hybrid_convert('plain_k', layout => 'trie');
SELECT hyb_check('plain'), hyb_check('ios'), hyb_check('unread');
SELECT present, absent, wrong FROM hyb_lookups('plain_k', 'SELECT ly_key(i) AS k FROM generate_series(-999, 1000) i');
SELECT indexname, total_bytes < 300000 AS small, index_only_scans FROM hybrid_indexes WHERE schemaname = 'ly' ORDER BY 1;

-- parameters of the index and of classes, constraints and what refers to them
CREATE TABLE child (s text COLLATE "C" REFERENCES others);
ALTER TABLE others ADD PRIMARY KEY (s);
CREATE TABLE child (s text COLLATE "C" REFERENCES others);
CREATE INDEX others_s ON others USING hybrid (s text_hope_ops (scheme = 'alm')) WITH (merge_ratio = 5);
CALL hybrid_convert_concurrently('others_pkey', layout => 'trie');
CALL hybrid_convert_concurrently('others_s', layout => 'trie');
CALL hybrid_convert_concurrently('others_pkey', layout => 'columnar');
SELECT hybrid_convert('others_pkey', layout => 'trie');
SELECT pg_get_indexdef(indexrelid), indisprimary, indisvalid FROM pg_index WHERE indexrelid IN ('others_pkey'::regclass, 'others_s'::regclass) ORDER BY 1;
SELECT hyb_error('INSERT INTO others (s) SELECT s FROM others LIMIT 1') ~ '^23505', hyb_error('INSERT INTO child VALUES (''none'')') ~ '^23503';
SELECT hyb_check('others');
CALL hybrid_revert_concurrently('others_pkey');
SELECT hybrid_revert('plain_k');

-- partitions: all together
CREATE TABLE part (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (1000);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (1000) TO (3000);
INSERT INTO part SELECT i, i FROM generate_series(0, 2999) i;
CREATE INDEX part_v ON part (v);
SELECT hybrid_convert('part_1_v_idx', 'trie');
CALL hybrid_convert_concurrently('part_v', layout => 'trie');
SELECT hybrid_convert('part_v', layout => 'trie');
CREATE TABLE part_3 PARTITION OF part FOR VALUES FROM (3000) TO (4000);
SELECT hybrid_convert('part_v', layout => 'columnar');
SELECT hybrid_convert('part_v', layout => 'columnar');
SELECT c.oid::regclass, reloptions FROM pg_class c WHERE relname ~ '^part_.*v' ORDER BY 1;
SELECT hyb_check('part_1'), hyb_check('part_3');

SET client_min_messages = error;
DROP SCHEMA ly CASCADE;
DROP ROLE regress_ly;
