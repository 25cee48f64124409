--
-- Leaves that hold prefixes of keys of varying length (layout = trie).
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 500;
SET hybridindex.merge_step_pages = 4;

-- words that begin alike, are beginnings of others, are empty or NULL; bytes of all values
CREATE TABLE tt (t text COLLATE "C", b bytea, s varchar COLLATE "C", n int, v int) WITH (autovacuum_enabled = off);
CREATE FUNCTION tt_rows(lo int, hi int) RETURNS SETOF tt LANGUAGE sql AS $$
	SELECT CASE i % 5 WHEN 0 THEN 'user' || i % 700 WHEN 1 THEN repeat('a', hashint4(i) % 7 + 7) || md5(i::text)
			WHEN 2 THEN left(md5((i % 3000)::text), abs(hashint4(i)) % 20) WHEN 3 THEN i || '@example.org' END,
		CASE WHEN i % 13 > 0 THEN decode(left(md5((i % 5000)::text), 2 * (abs(hashint4(i)) % 9)), 'hex') || '\x00ff00'::bytea END,
		'state ' || i % 4, i % 1000, i
	FROM generate_series(lo, hi) i
$$;
INSERT INTO tt SELECT * FROM tt_rows(1, 3000);
CREATE INDEX tt_t ON tt USING hybrid (t) WITH (layout = trie);
CREATE INDEX tt_b ON tt USING hybrid (b DESC NULLS LAST, n) WITH (layout = trie, merge_ratio = 2);
CREATE INDEX tt_s ON tt USING hybrid (s, n DESC) WITH (layout = trie);
CREATE UNIQUE INDEX tt_u ON tt USING hybrid (t, v) WITH (layout = trie, levels = 2) WHERE n > 0;
CREATE INDEX tt_h ON tt USING hybrid (t text_hope_ops) WITH (layout = trie);

CREATE FUNCTION tt_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(ok) FROM (
		SELECT hyb_same(q, 'index bitmap') FROM unnest(array[
			'SELECT * FROM tt WHERE t = ''user25''',
			'SELECT * FROM tt WHERE t = ''user2''',
			'SELECT * FROM tt WHERE t = ''''',
			'SELECT * FROM tt WHERE t IS NULL',
			'SELECT * FROM tt WHERE t = ''1008@example.org''',
			'SELECT * FROM tt WHERE t IN (''user25'', ''user699'', ''none'', ''user'', ''aaaaaa'')',
			'SELECT * FROM tt WHERE t LIKE ''user6%''',
			'SELECT * FROM tt WHERE t LIKE ''aaaa%''',
			'SELECT * FROM tt WHERE t BETWEEN ''user'' AND ''user3''',
			'SELECT * FROM tt WHERE t > ''user65'' AND v % 3 = 0',
			'SELECT * FROM tt WHERE t < ''1''',
			'SELECT * FROM tt WHERE b = ''\x00ff00''',
			'SELECT * FROM tt WHERE b = decode(left(md5(''7''), 8), ''hex'') || ''\x00ff00''::bytea',
			'SELECT * FROM tt WHERE b > ''\xee'' AND n = 77',
			'SELECT * FROM tt WHERE b IS NULL AND n BETWEEN 100 AND 200',
			'SELECT * FROM tt WHERE s = ''state 2'' AND n = 502',
			'SELECT * FROM tt WHERE s = ''state 3'' AND n > 990',
			'SELECT * FROM tt WHERE s > ''state 1'' AND n IN (2, 3, 998)',
			'SELECT * FROM tt WHERE t = ''user25'' AND v > 5 AND n > 0']) q
		UNION ALL
		SELECT hyb_same('SELECT * FROM tt WHERE t > ''user69'' OR b > ''\xf0'' OR (s = ''state 1'' AND n < 5)', 'bitmap')
		UNION ALL
		SELECT hyb_same(q, 'order') FROM unnest(array[
			'SELECT t FROM tt ORDER BY t',
			'SELECT t FROM tt WHERE t > ''user'' ORDER BY t DESC',
			'SELECT b, n FROM tt ORDER BY b DESC NULLS LAST, n',
			'SELECT b, n FROM tt ORDER BY b NULLS FIRST, n DESC OFFSET 100',
			'SELECT s, n FROM tt WHERE s < ''state 3'' ORDER BY s, n DESC',
			'SELECT t, v FROM tt WHERE n > 0 ORDER BY t, v']) q
		UNION ALL
		SELECT hyb_same('SELECT a.v, b.v FROM tt a JOIN tt b ON a.t = b.t WHERE a.t < ''5''', 'merge')
		UNION ALL
		SELECT hyb_same('SELECT a.v, b.v FROM (SELECT * FROM tt WHERE v % 97 = 0) a JOIN tt b ON a.t = b.t', 'nest')) q(ok)
$$;
SELECT * FROM tt_queries();
SELECT hyb_check('tt');

-- rounds of insertions, updates, deletions and VACUUM, with merges meanwhile
SELECT format('INSERT INTO tt SELECT * FROM tt_rows(%s, %s)', 3001 + r * 4000, 7000 + r * 4000),
	format('UPDATE tt SET v = -v WHERE v %% 13 = %s', r),
	format('UPDATE tt SET t = t || ''x'' WHERE v %% 29 = %s', r),
	format('UPDATE tt SET t = left(t, -1) WHERE v %% 31 = %s AND t <> ''''', r),
	format('UPDATE tt SET b = b || b WHERE v %% 17 = %s', r),
	format('DELETE FROM tt WHERE v %% 37 = %s', r),
	CASE r % 2 WHEN 1 THEN 'VACUUM tt' ELSE 'SELECT hybrid_merge(c) >= 0 FROM unnest(array[''tt_t'', ''tt_b'', ''tt_s'', ''tt_u'', ''tt_h'']::regclass[]) c' END,
	'SELECT * FROM tt_queries()', 'SELECT hyb_check(''tt'')'
FROM generate_series(0, 3) r \gexec

-- it is small, as it was built and as it has grown
SELECT sum(hybrid_merge(c)) >= 0 FROM unnest(array['tt_t', 'tt_s', 'tt_h']::regclass[]) c;
CREATE INDEX tt_columnar ON tt USING hybrid (t);
CREATE INDEX tt_pair ON tt USING hybrid (s, n DESC);
SELECT a.static_bytes < 0.65 * b.static_bytes AS small FROM hybrid_index_stats('tt_t') a, hybrid_index_stats('tt_columnar') b;
SELECT a.static_bytes < 1.2 * b.static_bytes AS small FROM hybrid_index_stats('tt_s') a, hybrid_index_stats('tt_pair') b;
DROP INDEX tt_columnar, tt_pair;

-- many rows of one word: lists of TIDs that go on in the next leaf
INSERT INTO tt SELECT 'the same', '\xabcd', 'state 9', 5, i FROM generate_series(1000001, 1030000) i;
SELECT hybrid_merge('tt_t') >= 0, hybrid_merge('tt_b') >= 0, hybrid_merge('tt_s') >= 0;
SELECT hyb_same('SELECT v FROM tt WHERE t = ''the same'''), hyb_same('SELECT v FROM tt WHERE b = ''\xabcd'''),
	hyb_same('SELECT s FROM tt WHERE s > ''state 3'' ORDER BY s DESC', 'order');
DELETE FROM tt WHERE v > 1000000 AND v % 3 > 0;
VACUUM tt;
INSERT INTO tt SELECT 'the same', '\xabcd', 'state 9', 6, -i FROM generate_series(1000001, 1010000) i;
SELECT hybrid_merge('tt_t') >= 0, hyb_check('tt');
SELECT hyb_same('SELECT v FROM tt WHERE t = ''the same'''), hyb_same('SELECT v FROM tt WHERE t LIKE ''the%''');
DROP INDEX tt_u, tt_h;

-- leaves that keep keys beside leaves that do not: what was planned is what is written
CREATE TABLE tk (s text COLLATE "C", n int) WITH (autovacuum_enabled = off);
CREATE FUNCTION tk_word(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT 'b' || lpad(i::text, 6, '0') || string_agg(chr(97 + abs(hashint4(i * 50 + j)) % 9 * (abs(hashint4(i * 50 - j)) % 3) % 9), '') FROM generate_series(1, 12) j
$$;
CREATE FUNCTION tk_merges(words int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	TRUNCATE tk;
	INSERT INTO tk SELECT tk_word(i / 2), i % 2 FROM generate_series(1, words) i;
	INSERT INTO tk SELECT 'z' || md5(i::text) || md5((-i)::text), 7 FROM generate_series(1, 700) i;
	DROP INDEX IF EXISTS tk_s;
	CREATE INDEX tk_s ON tk USING hybrid (s, n) WITH (layout = trie, levels = 1);
	FOR r IN 1..6 LOOP
		INSERT INTO tk SELECT tk_word(abs(hashint4(i * r)) % words / 2), 100 + r FROM generate_series(1, 40) i;
		PERFORM hybrid_merge('tk_s');
	END LOOP;
	RETURN hyb_check('tk');
END
$$;
SELECT count(*), bool_and(tk_merges(words)) FROM generate_series(990, 1110, 5) words;

-- uniqueness goes by keys
CREATE TABLE tu (t text COLLATE "C" PRIMARY KEY WITH (access_method = hybrid, layout = trie), v int);
INSERT INTO tu SELECT md5((i / 3)::text) || i % 3, i FROM generate_series(1, 6000) i;
SELECT hybrid_merge('tu_pkey') >= 0;
SELECT count(*) AS keys, count(*) FILTER (WHERE hyb_error(format('INSERT INTO tu VALUES (%L)', t)) LIKE '23505 duplicate key value violates unique constraint "tu_pkey" / Key (t)=(%) already exists.') AS refused
FROM (SELECT t FROM tu ORDER BY v LIMIT 300) x;
INSERT INTO tu SELECT t || 'x', -v FROM tu WHERE v % 3 = 0;
INSERT INTO tu SELECT left(t, -1), -v FROM tu WHERE v % 3 = 1 AND v > 0;
SELECT hybrid_merge('tu_pkey') > 0, hyb_check('tu');
INSERT INTO tu SELECT t, 7 FROM tu WHERE v BETWEEN 10 AND 20 ON CONFLICT (t) DO UPDATE SET v = 7;
SELECT count(*), count(DISTINCT t), count(*) FILTER (WHERE v = 7) FROM tu;
CREATE TABLE tu_ref (t text COLLATE "C" REFERENCES tu);
INSERT INTO tu_ref SELECT t FROM tu WHERE v % 10 = 0;
SELECT hyb_error('INSERT INTO tu_ref VALUES (''no such'')'), hyb_error('DELETE FROM tu WHERE v % 10 = 0') ~ '^23503';
CLUSTER tu USING tu_pkey;
SELECT hyb_check('tu'), bool_and(t >= before) FROM (SELECT t, lag(t) OVER (ORDER BY ctid) AS before FROM tu) s;

-- merges read values that are kept out of line, and leave those of dead rows alone
CREATE TABLE tw (t text COLLATE "C", v int) WITH (autovacuum_enabled = off);
ALTER TABLE tw ALTER t SET STORAGE EXTERNAL;
CREATE FUNCTION tw_word(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT i % 50 || string_agg(md5((i / 50)::text || j), '') || i FROM generate_series(1, 70) j
$$;
INSERT INTO tw SELECT tw_word(i), i FROM generate_series(1, 400) i;
SELECT pg_relation_size(reltoastrelid) > 0 AS out_of_line FROM pg_class WHERE oid = 'tw'::regclass;
CREATE INDEX tw_t ON tw USING hybrid (t) WITH (layout = trie);
INSERT INTO tw SELECT t || 'x', -v FROM tw;
SELECT hybrid_merge('tw_t') > 0, hyb_check('tw');
SELECT hyb_same('SELECT v FROM tw WHERE t = tw_word(77)'), hyb_same('SELECT v FROM tw WHERE t > ''33''', 'index'), hyb_same('SELECT t FROM tw ORDER BY t', 'order');
DELETE FROM tw WHERE v % 3 = 0;
\set ECHO none
SELECT format('VACUUM pg_toast.%I', relname) FROM pg_class WHERE oid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'tw'::regclass) \gexec
\set ECHO all
INSERT INTO tw SELECT tw_word(i) || 'y', i + 1000 FROM generate_series(1, 400) i;
SELECT hybrid_merge('tw_t') > 0;
SELECT hyb_same('SELECT v FROM tw WHERE t = tw_word(77)'), hyb_same('SELECT t FROM tw ORDER BY t', 'order');
VACUUM tw;
SELECT hybrid_merge('tw_t') >= 0, hyb_check('tw');
CLUSTER tw USING tw_t;
SELECT hyb_check('tw'), count(*) FROM tw;

-- one dead row whose value is out of line, and gone, disturbs no statement
CREATE TABLE td (t text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO td SELECT 'a' || i FROM generate_series(1, 100) i;
INSERT INTO td SELECT 'https://' || string_agg(md5(j::text), '') FROM generate_series(1, 74) j;
CREATE INDEX td_t ON td USING hybrid (t) WITH (layout = trie);
DELETE FROM td WHERE t > 'b';
INSERT INTO td SELECT 'https://' || md5(i::text) FROM generate_series(1, 20000) i;
SELECT hybrid_merge('td_t') >= 0, hyb_check('td'), hyb_same('SELECT t FROM td WHERE t = ''https://'' || md5(''77'')', 'index');
DROP TABLE td;

-- a list that begins in a leaf of prefixes and goes on in one of keys
CREATE TABLE tl (a text COLLATE "C", n int);
INSERT INTO tl SELECT 'm', 5 FROM generate_series(1, 60000);
INSERT INTO tl SELECT 'a', i FROM generate_series(1, 3000) i;
INSERT INTO tl SELECT 'lx' || md5(i::text), i FROM generate_series(1, 3000) i;
INSERT INTO tl SELECT 'z', i FROM generate_series(1, 3000) i;
INSERT INTO tl SELECT 'm', 6 + i % 3 FROM generate_series(1, 3000) i;
CREATE INDEX tl_i ON tl USING hybrid (a, n) WITH (layout = trie);
SELECT hyb_check('tl'), hyb_same('SELECT * FROM tl WHERE a = ''m'' AND n > 4', 'index');
DROP TABLE tl;

-- text beside names, whose conditions are asked of values
CREATE TABLE tn AS SELECT ('user' || i) COLLATE "C" AS n, i AS v FROM generate_series(1, 3000) i;
CREATE INDEX tn_n ON tn USING hybrid (n) WITH (layout = trie);
SELECT bool_and(hyb_same(format('SELECT v FROM tn WHERE n %s %L::name', o, x), 'index bitmap'))
FROM unnest('{<,<=,=,>=,>}'::text[]) o, unnest('{user2,user2999,user,user29990}'::text[]) x;
DROP TABLE tn;

-- a dictionary that is yet to be learned needs keys
CREATE TABLE th (t text COLLATE "C");
CREATE INDEX th_t ON th USING hybrid (t text_hope_ops) WITH (layout = trie);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT t FROM th WHERE t = 'a';
INSERT INTO th SELECT i || '@example.org' FROM generate_series(1, 3000) i;
VACUUM th;
REINDEX INDEX th_t;
SELECT hybrid_merge('th_t') >= 0, hyb_check('th');
SELECT hyb_same('SELECT t FROM th WHERE t = ''77@example.org''', 'index'), hyb_same('SELECT t FROM th WHERE t > ''9''', 'index'), hyb_same('SELECT t FROM th ORDER BY t', 'order');
RESET enable_seqscan;
RESET enable_bitmapscan;

-- filters for points, asked for beginnings of each length; range filters are not possible
CREATE TABLE tf AS SELECT i, CASE WHEN i % 50 = 0 THEN repeat('long ', 10) ELSE '' END || left(md5(i::text), 3 + i % 20) || i AS t,
	'group ' || i % 7 AS g FROM generate_series(1, 12000) i;
INSERT INTO tf VALUES (0, NULL, NULL), (-1, '', '');
CREATE UNIQUE INDEX tf_t ON tf USING hybrid (t COLLATE "C") WITH (layout = trie, filter = points);
CREATE INDEX tf_g ON tf USING hybrid (g COLLATE "C" DESC, t COLLATE "C") WITH (layout = trie, filter = points);
CREATE INDEX tf_s ON tf USING hybrid (t COLLATE "C") WITH (layout = trie, filter = surf);
SELECT i, filter_pages > 0 AS has_filters FROM unnest('{tf_t, tf_g, tf_s}'::regclass[]) i, hybrid_index_stats(i);
SELECT hyb_check('tf');
CREATE FUNCTION tf_grow(lo int, hi int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO tf SELECT i, left(md5(i::text), 3 + i % 20) || i, 'group ' || i % 7 FROM generate_series(lo, hi) i;
	RETURN hybrid_merge('tf_t') + hybrid_merge('tf_g');
END $$;
SELECT sum(tf_grow(12001 + n * 3000, 15000 + n * 3000)) > 0 FROM generate_series(0, 3) n;
DELETE FROM tf WHERE i % 7 = 3;
VACUUM tf;
SELECT hyb_check('tf');
SET enable_seqscan = off;
CREATE FUNCTION tf_counts(OUT checks bigint, OUT negatives bigint) LANGUAGE sql AS 'SELECT filter_checks, filter_negatives FROM hybrid_index_stats(''tf_t'')';
SELECT * FROM tf_counts() \gset
-- keys that are not there, some of which begin like others; nearly all that begin like none are denied
SELECT count((SELECT f.i FROM tf f WHERE f.t = s.t COLLATE "C")) FROM (SELECT md5('no' || i) AS t FROM generate_series(1, 2000) i) s;
SELECT c.checks - :checks AS asked, c.negatives - :negatives BETWEEN 0.9 * 2000 AND 2000 AS denied FROM tf_counts() c;
SELECT count((SELECT f.i FROM tf f WHERE f.t = s.t || 'x' COLLATE "C")) FROM tf s;
SELECT count((SELECT f.i FROM tf f WHERE f.t = left(s.t, -1) COLLATE "C")) < 50 AS hardly_any FROM tf s WHERE i > 0;
-- all that are
SELECT count((SELECT f.i FROM tf f WHERE f.t = s.t COLLATE "C")) = count(t) AS all_found FROM tf s;
SELECT count((SELECT f.i FROM tf f WHERE f.t = s.t COLLATE "C" AND f.g = s.g COLLATE "C")) = count(t) AS all_found FROM tf s;
SELECT hyb_error(format('INSERT INTO tf VALUES (1, %L)', t)) ~ 'duplicate key' AS known FROM tf WHERE i IN (-1, 1, 50, 20001);
RESET enable_seqscan;
DROP FUNCTION tt_queries, tf_grow, tf_counts;
DROP TABLE tt, tu_ref, tu, tw, th, tf CASCADE;
