--
-- CREATE INDEX and REINDEX with parallel workers.  That they take part is
-- shown in t/084_parallel_build.pl.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
CREATE TABLE pb (id int8, k int8, u uuid, v text COLLATE "C", w text, r int4range, big text)
	WITH (parallel_workers = 2);
INSERT INTO pb SELECT i, hashint8(i), md5(i::text)::uuid,
		CASE WHEN i % 17 > 0 THEN 'name' || i % 5003 || '@example.org' END, 'w' || i % 300,
		int4range(i % 1000, i % 1000 + i % 7), repeat(md5(i::text), i % 30)
	FROM generate_series(1, 30000) i;
DELETE FROM pb WHERE id % 10 = 3;

-- An index of this definition, checked against the table and in queries;
-- its entries.
CREATE FUNCTION pb_entries(definition text, VARIADIC queries text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	entries	bigint;
BEGIN
	EXECUTE 'CREATE ' || replace(definition, 'pb_i', 'INDEX pb_i');
	PERFORM hyb_check('pb');
	FOR i IN 1 .. cardinality(queries) LOOP
		IF NOT hyb_same(queries[i], 'index') THEN
			RAISE WARNING '%: % differs', definition, queries[i];
		END IF;
	END LOOP;
	entries := (SELECT static_entries FROM hybrid_index_stats('pb_i'));
	REINDEX INDEX pb_i;
	PERFORM hyb_check('pb');
	IF entries <> (SELECT static_entries FROM hybrid_index_stats('pb_i')) THEN
		RAISE WARNING '%: another number of entries', definition;
	END IF;
	DROP INDEX pb_i;
	RETURN entries;
END $$;
SELECT pb_entries('pb_i ON pb USING hybrid (k)', 'SELECT id FROM pb WHERE k BETWEEN 0 AND 100000000', 'SELECT id FROM pb WHERE k < -2000000000');
SELECT pb_entries('UNIQUE pb_i ON pb USING hybrid (id)', 'SELECT k FROM pb WHERE id > 25000');
SELECT pb_entries('UNIQUE pb_i ON pb USING hybrid (u) INCLUDE (k, big)', 'SELECT u, k, big FROM pb WHERE u < ''01000000-0000-0000-0000-000000000000''');
SELECT pb_entries('pb_i ON pb USING hybrid (v DESC NULLS LAST, id) INCLUDE (w)', 'SELECT id, v, w FROM pb WHERE v < ''name1100''', 'SELECT id FROM pb WHERE v IS NULL');
SELECT pb_entries('pb_i ON pb USING hybrid (w COLLATE "C")', 'SELECT id FROM pb WHERE w COLLATE "C" = ''w77''');
SELECT pb_entries('UNIQUE pb_i ON pb USING hybrid (k) WITH (filter = surf)', 'SELECT id FROM pb WHERE k BETWEEN 0 AND 10000000');
SELECT pb_entries('UNIQUE pb_i ON pb USING hybrid (k) WITH (filter = points)', 'SELECT id FROM pb WHERE k = hashint8(77)');
SELECT pb_entries('pb_i ON pb USING hybrid (v text_hope_ops)', 'SELECT id FROM pb WHERE v < ''name1200''');
SELECT pb_entries('pb_i ON pb USING hybrid (lower(v), id) WHERE id % 3 = 0', 'SELECT id FROM pb WHERE lower(v) < ''name1200'' AND id % 3 = 0');

-- rows of one key in several ranges
SELECT pb_entries('pb_i ON pb USING hybrid ((id % 2))', 'SELECT id FROM pb WHERE id % 2 = 1');

-- sorted with comparison functions
SELECT pb_entries('pb_i ON pb USING hybrid (r)', 'SELECT id FROM pb WHERE r < int4range(50, 60)');
SELECT pb_entries('UNIQUE pb_i ON pb USING hybrid (r, id) INCLUDE (v)', 'SELECT id, v FROM pb WHERE r = int4range(50, 53)');

-- an expression that workers must not evaluate
CREATE FUNCTION pb_restricted(v text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE
	AS $$ BEGIN RETURN upper(v); END $$;
SELECT pb_entries('pb_i ON pb USING hybrid (pb_restricted(v))', 'SELECT id FROM pb WHERE pb_restricted(v) = ''NAME77@EXAMPLE.ORG''');

-- runs that are merged, with the 64 kB that servers from 17 on allow in several passes
SELECT set_config('maintenance_work_mem', min_val, false) IS NOT NULL AS least FROM pg_settings WHERE name = 'maintenance_work_mem';
SELECT pb_entries('pb_i ON pb USING hybrid (v, u)', 'SELECT id FROM pb WHERE v < ''name1100''');
SET max_parallel_maintenance_workers = 0;
SELECT pb_entries('pb_i ON pb USING hybrid (v, u)', 'SELECT id FROM pb WHERE v < ''name1100''');
RESET maintenance_work_mem;
SET max_parallel_maintenance_workers = 2;

-- row versions of HOT chains; servers before 16 have plain rows
SELECT current_setting('server_version_num')::int >= 160000 AS hot_known \gset
\if :hot_known
\set hot hybrid_hot
\else
\set hot hybrid
\endif
CREATE TABLE pb_hot (id int, k int8, v text COLLATE "C", r int4range) WITH (parallel_workers = 2, fillfactor = 40);
INSERT INTO pb_hot SELECT id, k, v, r FROM pb;
CREATE INDEX pb_hot_k ON pb_hot USING :hot (k);
CREATE INDEX pb_hot_v ON pb_hot USING :hot (lower(v)) WHERE id % 3 > 0;
CREATE INDEX pb_hot_r ON pb_hot USING :hot (r);
BEGIN;
UPDATE pb_hot SET k = k + 1, v = v || 'x', r = '[1,5)' WHERE id % 4 = 0;
REINDEX TABLE pb_hot;
COMMIT;
SELECT hyb_check('pb_hot'), hyb_same('SELECT id FROM pb_hot WHERE k < -2000000000', 'index'),
	hyb_same('SELECT id FROM pb_hot WHERE lower(v) < ''name1200'' AND id % 3 > 0', 'index'),
	hyb_same('SELECT id FROM pb_hot WHERE r < int4range(50, 60)', 'index');
-- each version has an entry, for older snapshots
SELECT static_entries > 33000 OR :'hot' = 'hybrid' AS all_versions FROM hybrid_index_stats('pb_hot_k');
REINDEX INDEX CONCURRENTLY pb_hot_k;
SELECT hyb_check('pb_hot'), hyb_same('SELECT id FROM pb_hot WHERE k < -2000000000', 'index');
DROP TABLE pb_hot;

-- duplicates, wherever they meet
INSERT INTO pb (id, k, r) SELECT id, -1, r FROM pb WHERE id = 29990;
SELECT hyb_error('CREATE UNIQUE INDEX pb_u ON pb USING hybrid (id)');
SELECT hyb_error('CREATE UNIQUE INDEX pb_u ON pb USING hybrid (r, id)');
SELECT hyb_error('CREATE UNIQUE INDEX pb_u ON pb USING hybrid (k, id) INCLUDE (w)');
DROP INDEX pb_u;
DELETE FROM pb WHERE k = -1;

-- rows that this transaction has replaced do not count as duplicates
BEGIN;
UPDATE pb SET w = w || '!', r = r WHERE id % 4 = 0;
CREATE UNIQUE INDEX pb_u ON pb USING hybrid (id);
CREATE UNIQUE INDEX pb_r ON pb USING hybrid (r, id);
CREATE UNIQUE INDEX pb_inc ON pb USING hybrid (k) INCLUDE (w);
COMMIT;
SELECT hyb_check('pb');
SELECT hyb_same('SELECT k, w FROM pb WHERE k BETWEEN 0 AND 10000000', 'index');
SELECT hyb_error('INSERT INTO pb (id) VALUES (104)');
DROP INDEX pb_u, pb_r, pb_inc;

-- an index that was built goes on as any other
CREATE INDEX pb_k ON pb USING hybrid (k);
INSERT INTO pb (id, k) SELECT i, hashint8(i) FROM generate_series(30001, 36000) i;
SELECT hybrid_merge('pb_k') > 0;
DELETE FROM pb WHERE id % 5 = 1;
SELECT hyb_quiet();
VACUUM pb;
SELECT hyb_check('pb');
SELECT hyb_same('SELECT id FROM pb WHERE k BETWEEN 0 AND 100000000', 'index');

-- CONCURRENTLY
CREATE UNIQUE INDEX CONCURRENTLY pb_c ON pb USING hybrid (id);
REINDEX INDEX CONCURRENTLY pb_k;
SELECT hyb_check('pb');
DROP INDEX pb_k, pb_c;

-- few rows, none, tables that workers cannot or need not read
CREATE TABLE pb_few (a int) WITH (parallel_workers = 2);
CREATE INDEX pb_few_a ON pb_few USING hybrid (a);
SELECT hyb_check('pb_few');
INSERT INTO pb_few VALUES (1);
REINDEX TABLE pb_few;
SELECT hyb_check('pb_few'), static_entries, leaf_pages FROM hybrid_index_stats('pb_few_a');
INSERT INTO pb_few SELECT generate_series(2, 300);
REINDEX TABLE pb_few;
SELECT hyb_check('pb_few'), static_entries, leaf_pages FROM hybrid_index_stats('pb_few_a');
TRUNCATE pb_few;
SELECT hyb_check('pb_few'), static_entries FROM hybrid_index_stats('pb_few_a');
CREATE TEMP TABLE pb_temp (a int) WITH (parallel_workers = 2);
INSERT INTO pb_temp SELECT generate_series(1, 10000);
CREATE UNIQUE INDEX pb_temp_a ON pb_temp USING hybrid (a);
SELECT hyb_check('pb_temp');
CREATE UNLOGGED TABLE pb_unlogged (a int) WITH (parallel_workers = 2);
INSERT INTO pb_unlogged SELECT generate_series(1, 10000);
CREATE UNIQUE INDEX pb_unlogged_a ON pb_unlogged USING hybrid (a);
SELECT hyb_check('pb_unlogged');
-- CLUSTER does not look for duplicates, nor say which rows are dead
CREATE TABLE pb_dead (a int NOT NULL, r int4range) WITH (parallel_workers = 2);
INSERT INTO pb_dead SELECT i, int4range(i, i + 5) FROM generate_series(1, 60000) i;
CREATE UNIQUE INDEX pb_dead_a ON pb_dead USING hybrid (a);
CREATE UNIQUE INDEX pb_dead_r ON pb_dead USING hybrid (r);
ALTER TABLE pb_dead CLUSTER ON pb_dead_a;
BEGIN;
DELETE FROM pb_dead;
INSERT INTO pb_dead SELECT i, int4range(i, i + 5) FROM generate_series(1, 60000) i;
CLUSTER pb_dead;
COMMIT;
SELECT hyb_check('pb_dead'), static_entries FROM hybrid_index_stats('pb_dead_a');
REINDEX TABLE pb_dead;
SELECT hyb_check('pb_dead');
INSERT INTO pb_dead VALUES (77);
DROP TABLE pb_few, pb_unlogged, pb_temp, pb_dead, pb;
