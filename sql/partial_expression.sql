--
-- Partial indexes and indexes on expressions.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE pe (id int, a int, b int, t text COLLATE "C", j jsonb);
INSERT INTO pe SELECT i, i % 100, i % 37, CASE WHEN i % 9 > 0 THEN 'Name ' || i % 300 END, jsonb_build_object('k', i % 50, 's', md5(i::text))
FROM generate_series(1, 3000) i;
CREATE INDEX pe_partial ON pe USING hybrid (a) WHERE b < 10;
CREATE INDEX pe_partial_null ON pe USING hybrid (id) WHERE t IS NULL;
CREATE INDEX pe_lower ON pe USING hybrid (lower(t));
CREATE INDEX pe_sum ON pe USING hybrid ((a + b), id);
CREATE INDEX pe_json ON pe USING hybrid (((j ->> 'k')::int), (j ->> 's') COLLATE "C") WHERE a > 50;
ANALYZE pe;
CREATE FUNCTION pe_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q)) FROM unnest(array[
		'SELECT id, a FROM pe WHERE a = 5 AND b < 10',
		'SELECT id, a FROM pe WHERE a BETWEEN 5 AND 9 AND b < 5',
		'SELECT id FROM pe WHERE t IS NULL AND id < 500',
		'SELECT id FROM pe WHERE t IS NULL AND id = ANY (''{9,18,27,28}'')',
		'SELECT id, t FROM pe WHERE lower(t) = ''name 77''',
		'SELECT id, t FROM pe WHERE lower(t) >= ''name 20'' AND lower(t) < ''name 21''',
		'SELECT id, t FROM pe WHERE lower(t) IS NULL',
		'SELECT id FROM pe WHERE a + b = 60',
		'SELECT id FROM pe WHERE a + b > 120 AND id < 1000',
		'SELECT id FROM pe WHERE (j ->> ''k'')::int = 7 AND a > 50',
		'SELECT id FROM pe WHERE (j ->> ''k'')::int IN (7, 8) AND (j ->> ''s'') > ''8'' AND a > 60']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order')) FROM unnest(array[
		'SELECT lower(t) FROM pe ORDER BY lower(t)',
		'SELECT a + b, id FROM pe ORDER BY a + b DESC, id DESC',
		'SELECT a FROM pe WHERE b < 10 ORDER BY a']) q
$$;
SELECT * FROM pe_queries();
-- rows move into and out of the partial indexes
INSERT INTO pe SELECT i, i % 110, i % 31, CASE WHEN i % 5 > 0 THEN 'nAME ' || i % 200 END, jsonb_build_object('k', i % 60, 's', md5(i::text))
FROM generate_series(3001, 4500) i;
UPDATE pe SET b = 36 - b WHERE id % 4 = 0;
UPDATE pe SET t = CASE WHEN t IS NULL THEN 'NEW' END WHERE id % 10 = 1;
DELETE FROM pe WHERE id % 17 = 0;
SELECT * FROM pe_queries();
SELECT hybrid_merge(indexrelid::regclass) > 0 FROM pg_index WHERE indrelid = 'pe'::regclass ORDER BY indexrelid;
SELECT * FROM pe_queries();
VACUUM pe;
SELECT * FROM pe_queries();
SELECT hyb_check('pe');

-- an expression that fails makes the insert fail and leaves the index sound
CREATE TABLE pe_err (a int);
CREATE INDEX pe_err_i ON pe_err USING hybrid ((100 / a));
INSERT INTO pe_err SELECT i FROM generate_series(1, 100) i;
SELECT hyb_error('INSERT INTO pe_err VALUES (5), (0)');
SELECT hyb_same('SELECT a FROM pe_err WHERE 100 / a = 20'), hyb_check('pe_err');
INSERT INTO pe_err SELECT 3;
DROP INDEX pe_err_i;
INSERT INTO pe_err VALUES (0);
SELECT hyb_error('CREATE INDEX pe_err_i ON pe_err USING hybrid ((100 / a))');

DROP TABLE pe, pe_err;
DROP FUNCTION pe_queries;
