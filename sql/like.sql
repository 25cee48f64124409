--
-- LIKE and starts-with: prefixes become index conditions on C-collated
-- columns; the pattern operator classes with their own operators.  (LIKE over
-- these is in planner.sql.)
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE lk (c text COLLATE "C", p text, v varchar COLLATE "C", b char(20) COLLATE "C", bp char(20));
\set file :abs_srcdir '/test/data/package_names.txt.gz'
\set names `gzip -dc :'file' | head -n 4000`
INSERT INTO lk SELECT t, t, t, left(t, 20), left(t, 20) FROM unnest(string_to_array(:'names', E'\n')) t;
INSERT INTO lk SELECT t, t, t, t, t FROM unnest(array['', 'a', 'ab', 'ab%', 'ab_', 'ab\c', 'ab c', 'abc', 'ac', 'A', 'AB', E'ab\u00ff', 'é', 'éa', 'zzzz', NULL]) t;
CREATE INDEX lk_c ON lk USING hybrid (c);
CREATE INDEX lk_p ON lk USING hybrid (p text_pattern_ops);
CREATE INDEX lk_v ON lk USING hybrid (v);
CREATE INDEX lk_b ON lk USING hybrid (b);
CREATE INDEX lk_bp ON lk USING hybrid (bp bpchar_pattern_ops);
ANALYZE lk;
CREATE FUNCTION lk_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(format('SELECT c, p FROM lk WHERE %s %s', col, op)))
	FROM unnest('{c,v,b}'::text[]) col, unnest(array[
		'LIKE ''a%''', 'LIKE ''ab%''', 'LIKE ''ab_''', 'LIKE ''abc''', 'LIKE ''lib%js''',
		'LIKE ''ab\%''', 'LIKE ''ab\_%''', 'LIKE ''ab!%%'' ESCAPE ''!''', 'LIKE ''é%''', 'LIKE ''nothing-there%''',
		'~ ''^ab''', '~ ''^react-''', '= ''abc''']) op
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q)) FROM unnest(array[
		'SELECT c FROM lk WHERE c ^@ ''ab''', 'SELECT p FROM lk WHERE starts_with(c, ''react'')',
		'SELECT c FROM lk WHERE c LIKE ''a%'' AND c > ''am''',
		'SELECT p FROM lk WHERE p ~>=~ ''m'' AND p ~<~ ''n''', 'SELECT p FROM lk WHERE p ~>~ ''re'' AND p ~<=~ ''react-7''',
		'SELECT p FROM lk WHERE p = ''abc''', 'SELECT p FROM lk WHERE bp ~>=~ ''ab'' AND bp ~<~ ''ac''', 'SELECT p FROM lk WHERE bp = ''abc''']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order')) FROM unnest(array[
		'SELECT c FROM lk WHERE c LIKE ''re%'' ORDER BY c',
		'SELECT c FROM lk WHERE c LIKE ''re%'' ORDER BY c DESC LIMIT 20',
		'SELECT p FROM lk WHERE p ~>=~ ''re'' ORDER BY p USING ~<~',
		'SELECT p FROM lk WHERE p ~<~ ''re'' ORDER BY p USING ~>~ LIMIT 50']) q
$$;
SELECT * FROM lk_queries();
INSERT INTO lk SELECT 'ab' || i, 'react-' || i, 'lib' || i || 'js', 'a' || i, 'ab' || i FROM generate_series(1, 500) i;
SELECT * FROM lk_queries();
SELECT hybrid_merge(indexrelid::regclass) > 0 FROM pg_index WHERE indrelid = 'lk'::regclass;
SELECT * FROM lk_queries();
SELECT hyb_check('lk');

-- the prefix is an index condition, not only a filter
CREATE FUNCTION lk_cond(query text) RETURNS text LANGUAGE sql AS $$
	SELECT jsonb_path_query_first((hyb_rows(query, 'bitmap')).plan, '$.**."Index Cond"') #>> '{}'
$$;
SELECT lk_cond('SELECT c FROM lk WHERE c LIKE ''reac%''');
SELECT lk_cond('SELECT c FROM lk WHERE v LIKE ''reac%''');
DROP TABLE lk;
DROP FUNCTION lk_queries, lk_cond;
