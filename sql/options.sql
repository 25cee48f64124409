--
-- Storage parameters, settings, and keys that are too large.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
LOAD 'hybridindex';
CREATE TABLE op (a int, t text COLLATE "C");
INSERT INTO op SELECT i, md5(i::text) FROM generate_series(1, 500) i;
CREATE INDEX op_a ON op USING hybrid (a) WITH (merge_ratio = 1);
CREATE INDEX op_t ON op USING hybrid (t) WITH (merge_ratio = 1000);
SELECT relname, reloptions FROM pg_class WHERE relname IN ('op_a', 'op_t') ORDER BY 1;
ALTER INDEX op_a SET (merge_ratio = 20);
ALTER INDEX op_t RESET (merge_ratio);
SELECT relname, reloptions FROM pg_class WHERE relname IN ('op_a', 'op_t') ORDER BY 1;
SELECT hyb_error(s) FROM unnest(array[
	'CREATE INDEX ON op USING hybrid (a) WITH (merge_ratio = 0)',
	'CREATE INDEX ON op USING hybrid (a) WITH (merge_ratio = 1001)',
	'CREATE INDEX ON op USING hybrid (a) WITH (merge_ratio = many)',
	'CREATE INDEX ON op USING hybrid (a) WITH (pages_per_range = 4)',
	'ALTER INDEX op_a SET (merge_ratio = -1)',
	'ALTER INDEX op_a SET (no_such_option = 1)']) s;

-- settings
SELECT name, vartype, unit, min_val, max_val, boot_val, context FROM pg_settings
WHERE name LIKE 'hybridindex.%' ORDER BY name COLLATE "C";
SELECT count(*) AS without_description FROM pg_settings WHERE name LIKE 'hybridindex.%' AND coalesce(short_desc, '') = '';
SET hybridindex.merge_floor = 100;
SET hybridindex.merge_step_pages = 1;
SET hybridindex.background_merge = off;
SELECT hyb_error(s) FROM unnest(array[
	'SET hybridindex.merge_floor = -1',
	'SET hybridindex.merge_step_pages = 0',
	'SET hybridindex.background_merge = maybe',
	'SET hybridindex.dynamic_memory = ''1MB''',
	'SET hybridindex.no_such_setting = 1']) s;
RESET ALL;
SET client_min_messages = warning;

-- the ratio decides how often an index is merged
CREATE TABLE op_ratio (a int, b int);
CREATE INDEX op_ratio_1 ON op_ratio USING hybrid (a) WITH (merge_ratio = 1);
CREATE INDEX op_ratio_10 ON op_ratio USING hybrid (a);
CREATE INDEX op_ratio_1000 ON op_ratio USING hybrid (a) WITH (merge_ratio = 1000);
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 100;
INSERT INTO op_ratio SELECT hashint4(i) FROM generate_series(1, 20000) i;
DO $$
BEGIN
	PERFORM hybrid_merge(i) FROM unnest('{op_ratio_1,op_ratio_10,op_ratio_1000}'::regclass[]) i;
	FOR i IN 1 .. 40 LOOP
		INSERT INTO op_ratio SELECT hashint4(j) FROM generate_series(i * 1000000, i * 1000000 + 499) j;
	END LOOP;
END $$;
SELECT a.merges < b.merges AND b.merges < c.merges AS in_order
FROM hybrid_index_stats('op_ratio_1') a, hybrid_index_stats('op_ratio_10') b, hybrid_index_stats('op_ratio_1000') c;
RESET hybridindex.background_merge;
RESET hybridindex.merge_floor;
DROP TABLE op_ratio;

-- operator classes and clauses that do not fit
SELECT hyb_error(s) FROM unnest(array[
	'CREATE INDEX ON op USING hybrid (a text_pattern_ops)',
	'CREATE INDEX ON op USING hybrid ((row(1)))',
	'CREATE TABLE op_p (p point); CREATE INDEX ON op_p USING hybrid (p)',
	'CREATE TABLE op_p (p json); CREATE INDEX ON op_p USING hybrid (p)']) s;

-- Keys up to a third of a page fit; larger ones are refused, in the words and
-- with the code of btree.  The limit counts the compressed, stored form.
CREATE TABLE op_big (t text COLLATE "C", b bytea, n numeric);
ALTER TABLE op_big ALTER t SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL;
CREATE INDEX op_big_t ON op_big USING hybrid (t);
CREATE INDEX op_big_b ON op_big USING hybrid (b);
INSERT INTO op_big SELECT repeat(chr(97 + i % 26), 2600) || i, convert_to(repeat(chr(97 + i % 26), 2600) || i, 'SQL_ASCII'), i FROM generate_series(1, 60) i;
SELECT hyb_same('SELECT n FROM op_big WHERE t > ''m'''), hyb_same('SELECT t FROM op_big ORDER BY t DESC', 'order order_only'),
	hyb_same('SELECT n FROM op_big WHERE b = convert_to(repeat(''c'', 2600) || ''2'', ''SQL_ASCII'')');
SELECT hybrid_merge('op_big_t'), hybrid_merge('op_big_b');
SELECT hyb_same('SELECT n FROM op_big WHERE t > ''m'''), hyb_same('SELECT t FROM op_big ORDER BY t DESC', 'order order_only'),
	hyb_same('SELECT n FROM op_big WHERE b = convert_to(repeat(''c'', 2600) || ''2'', ''SQL_ASCII'')');
SELECT regexp_replace(hyb_error('INSERT INTO op_big SELECT string_agg(md5(i::text), '''') FROM generate_series(1, 250) i'), '[0-9]{4}|\([0-9]+,[0-9]+\)', 'N', 'g');
SELECT left(hyb_error('INSERT INTO op_big SELECT ''x'', convert_to(string_agg(md5(i::text), ''''), ''SQL_ASCII'') FROM generate_series(1, 4000) i'), 5);
SELECT hyb_check('op_big');
DROP INDEX op_big_t;
INSERT INTO op_big SELECT string_agg(md5(i::text), '') FROM generate_series(1, 280) i;
SELECT left(hyb_error('CREATE INDEX op_big_t ON op_big USING hybrid (t)'), 5);
SELECT count(*) FROM pg_class WHERE relname = 'op_big_t';
CREATE TABLE op_fits AS SELECT * FROM op_big WHERE length(t) < 8000;
CREATE INDEX op_fits_t ON op_fits USING hybrid (t);
SELECT hyb_same('SELECT t FROM op_fits ORDER BY t', 'order'), hyb_check('op_fits');

DROP TABLE op, op_big, op_fits;
