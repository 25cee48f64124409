--
-- Another kind of filter, which only builds with assertions have, through the
-- same table of functions: the answers are those of a sequential scan.  Other
-- builds run the same with SuRF.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
CREATE FUNCTION fk_kind(test text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('debug_assertions')::bool THEN
		PERFORM set_config('hybridindex.test_filter', test, false);
	END IF;
END $$;
SELECT fk_kind('on');
-- no user meets it
SELECT count(*) FROM pg_settings WHERE name = 'hybridindex.test_filter';

CREATE TABLE fk (id int, k int8, s text COLLATE "C", n int);
CREATE INDEX fk_k ON fk USING hybrid (k) WITH (filter = surf);
CREATE INDEX fk_s ON fk USING hybrid (s DESC, n) INCLUDE (id) WITH (filter = surf);
CREATE FUNCTION fk_insert(lo int, hi int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO fk SELECT i, hashint8extended(i, 0) / 2 * 2, left(md5(i::text), 1 + i % 9), nullif(i % 13, 0)
	FROM generate_series(lo, hi) i
$$;
CREATE FUNCTION fk_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q)) FROM unnest(array[
		'SELECT id FROM fk WHERE k = (SELECT k FROM fk WHERE id = 77)',
		'SELECT id FROM fk WHERE k = 5',
		'SELECT id FROM fk WHERE k = ANY (ARRAY[1, 3, 5, 7] || (SELECT array_agg(k) FROM fk WHERE id % 700 = 0))',
		'SELECT id FROM fk WHERE k BETWEEN 10000000 AND 20000000',
		'SELECT id FROM fk WHERE k BETWEEN 0 AND 100000000000000000',
		'SELECT id FROM fk WHERE k < -9000000000000000000',
		'SELECT id FROM fk WHERE s = ''c''',
		'SELECT id FROM fk WHERE s = ''c'' AND n = 3',
		'SELECT id FROM fk WHERE s = ''no'' AND n = 3',
		'SELECT id FROM fk WHERE s > ''a8'' AND s < ''a80''',
		'SELECT id FROM fk WHERE s >= ''a8'' AND s < ''ac''',
		'SELECT id FROM fk WHERE s IS NULL']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order')) FROM unnest(array[
		'SELECT k FROM fk WHERE k > 9100000000000000000 ORDER BY k',
		'SELECT k FROM fk WHERE k BETWEEN 1 AND 900000000000000 ORDER BY k DESC',
		'SELECT s, n FROM fk WHERE s BETWEEN ''abc'' AND ''ac'' ORDER BY s DESC, n',
		'SELECT s, n FROM fk WHERE s BETWEEN ''xbc'' AND ''yc'' ORDER BY s, n DESC']) q
$$;
CREATE FUNCTION fk_check() RETURNS TABLE (k boolean, s boolean) LANGUAGE sql AS $$
	SELECT hybrid_index_check('fk_k', true), hybrid_index_check('fk_s', true);
	SELECT (SELECT filter_pages > 0 FROM hybrid_index_stats('fk_k')),
		(SELECT filter_pages > 0 FROM hybrid_index_stats('fk_s'))
$$;
CREATE FUNCTION fk_merge() RETURNS boolean LANGUAGE sql AS $$
	SELECT hybrid_merge('fk_k') + hybrid_merge('fk_s') > 0
$$;

-- merged in small steps and in large ones
SELECT fk_insert(1, 9000);
SET hybridindex.merge_step_pages = 1;
SELECT fk_merge();
SELECT * FROM fk_check();
SELECT * FROM fk_queries();
RESET hybridindex.merge_step_pages;
SELECT fk_insert(9001, 20000);
SELECT fk_merge();
SELECT * FROM fk_check();
SELECT * FROM fk_queries();

-- points are denied, and ranges by this kind only where they lie between leaves
SELECT filter_checks AS c0, filter_negatives AS n0 FROM hybrid_index_stats('fk_k') \gset
SET enable_seqscan = off;
SELECT count((SELECT id FROM fk WHERE k = 2 * g + 1 LIMIT 1)) FROM generate_series(1, 1000) g;
SELECT filter_checks > :c0 AS asked, filter_negatives - :n0 > 500 AS denied FROM hybrid_index_stats('fk_k');
SELECT filter_negatives AS n0 FROM hybrid_index_stats('fk_k') \gset
SELECT count((SELECT id FROM fk WHERE k BETWEEN g * 1000 AND g * 1000 + 500 LIMIT 1)) FROM generate_series(1, 1000) g;
SELECT filter_negatives - :n0 > 500 AS denied_by_surf, current_setting('debug_assertions')::bool AS has_kind
FROM hybrid_index_stats('fk_k') \gset
SELECT :'denied_by_surf'::bool <> :'has_kind'::bool AS as_expected;
RESET enable_seqscan;

-- questions about keys, and counts, where this kind has nothing to say
SELECT bool_and(hybrid_may_contain('fk_k', k) AND hybrid_may_contain('fk_s', s, n)) FROM fk;
SELECT hybrid_approx_count('fk_k', NULL::int8, NULL) = count(*) FROM fk;
SELECT bool_and(hybrid_approx_count('fk_k', lo, lo + 300000000000000000) BETWEEN c AND c + 2)
FROM (SELECT a * 100000000000000000 AS lo FROM generate_series(-90, 85, 17) a) r,
	LATERAL (SELECT count(*) AS c FROM fk WHERE k BETWEEN lo AND lo + 300000000000000000) q;

-- one tree with images of both kinds
SELECT fk_kind('off');
SELECT fk_insert(20001, 20050);
SELECT fk_merge();
SELECT * FROM fk_check();
SELECT * FROM fk_queries();
DELETE FROM fk WHERE id % 3 = 0 OR id BETWEEN 5000 AND 9000;
VACUUM fk;
SELECT fk_insert(30001, 31000);
SELECT fk_merge();
SELECT * FROM fk_check();
SELECT * FROM fk_queries();

-- built at once, of SuRF and of this kind
REINDEX TABLE fk;
SELECT * FROM fk_check();
SELECT * FROM fk_queries();
SELECT fk_kind('on');
REINDEX TABLE fk;
SELECT * FROM fk_check();
SELECT * FROM fk_queries();

DROP TABLE fk;
DROP FUNCTION fk_kind(text), fk_insert(int, int), fk_queries(), fk_check(), fk_merge();
