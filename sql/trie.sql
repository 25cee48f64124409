--
-- Indexes whose oldest level holds prefixes of keys (layout = trie).
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 500;
SET hybridindex.merge_step_pages = 4;

-- random keys, many and few rows a key, NULLs, keys that lie close together
CREATE TABLE tr (id int8, u uuid, d timestamp, k int2, v int) WITH (autovacuum_enabled = off);
CREATE FUNCTION tr_rows(lo int, hi int) RETURNS SETOF tr LANGUAGE sql AS $$
	SELECT CASE i % 3 WHEN 0 THEN i * 7 ELSE hashint8extended(i, 1) END,
		CASE WHEN i % 40 > 0 THEN md5((i % 9000)::text)::uuid END,
		CASE WHEN i % 11 > 0 THEN timestamp '2026-01-01' + (hashint4(i) % 700) * interval '1 minute' END,
		hashint4(i) % 60, i
	FROM generate_series(lo, hi) i
$$;
INSERT INTO tr SELECT * FROM tr_rows(1, 3000);
CREATE UNIQUE INDEX tr_id ON tr USING hybrid (id) WITH (layout = trie);
CREATE INDEX tr_u ON tr USING hybrid (u) WITH (layout = trie, merge_ratio = 2);
CREATE INDEX tr_dk ON tr USING hybrid (d DESC NULLS LAST, k) WITH (layout = trie);
CREATE INDEX tr_k ON tr USING hybrid (k DESC) WITH (layout = trie);
SET client_min_messages = notice;
CREATE INDEX tr_surf ON tr USING hybrid (k) WITH (layout = trie, filter = surf);
SET client_min_messages = warning;
DROP INDEX tr_surf;
CREATE INDEX tr_part ON tr USING hybrid (u, id) WITH (layout = trie, levels = 2) WHERE k > 0;

CREATE FUNCTION tr_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(ok) FROM (
		SELECT hyb_same(q, 'index bitmap') FROM unnest(array[
			'SELECT * FROM tr WHERE id = 21',
			'SELECT * FROM tr WHERE id = hashint8extended(1000, 1)',
			'SELECT * FROM tr WHERE id IN (21, 22, 42, 63, -5)',
			'SELECT * FROM tr WHERE id BETWEEN 100 AND 4000',
			'SELECT * FROM tr WHERE id > 9000000000000000000',
			'SELECT * FROM tr WHERE u = md5(''77'')::uuid',
			'SELECT * FROM tr WHERE u IS NULL',
			'SELECT * FROM tr WHERE u > ''ee000000-0000-0000-0000-000000000000''',
			'SELECT * FROM tr WHERE u = ANY (array[md5(''1'')::uuid, md5(''2'')::uuid, md5(''0'')::uuid])',
			'SELECT * FROM tr WHERE d = timestamp ''2026-01-01 01:00'' AND k = 5',
			'SELECT * FROM tr WHERE d = timestamp ''2026-01-01 01:00''',
			'SELECT * FROM tr WHERE d BETWEEN timestamp ''2026-01-01 01:00'' AND ''2026-01-01 03:00'' AND k IN (1, 2, 30)',
			'SELECT * FROM tr WHERE d IS NULL AND k < -50',
			'SELECT * FROM tr WHERE k = 7',
			'SELECT * FROM tr WHERE k IN (7, 8, -9) AND v % 2 = 0',
			'SELECT * FROM tr WHERE u < ''20000000-0000-0000-0000-000000000000'' AND id > 0 AND k > 0']) q
		UNION ALL
		SELECT hyb_same('SELECT * FROM tr WHERE id > 9000000000000000000 OR id < 1000 OR d = timestamp ''2026-01-01 01:00''', 'bitmap')
		UNION ALL
		SELECT hyb_same(q, 'order') FROM unnest(array[
			'SELECT id FROM tr ORDER BY id',
			'SELECT id FROM tr WHERE id > 5000 ORDER BY id DESC',
			'SELECT u FROM tr ORDER BY u',
			'SELECT u FROM tr ORDER BY u DESC LIMIT 3000',
			'SELECT d, k FROM tr ORDER BY d DESC NULLS LAST, k',
			'SELECT d, k FROM tr ORDER BY d NULLS FIRST, k DESC OFFSET 100',
			'SELECT k FROM tr WHERE k < 50 ORDER BY k',
			'SELECT u, id FROM tr WHERE k > 0 ORDER BY u, id']) q
		UNION ALL
		SELECT hyb_same('SELECT a.v, b.v FROM tr a JOIN tr b ON a.u = b.u WHERE a.u < ''20000000-0000-0000-0000-000000000000''', 'merge')
		UNION ALL
		SELECT hyb_same('SELECT a.v, b.v FROM (SELECT * FROM tr WHERE v % 97 = 0) a JOIN tr b ON a.u = b.u', 'nest')) q(ok)
$$;
SELECT * FROM tr_queries();
SELECT hyb_check('tr');

-- rounds of insertions, updates, deletions and VACUUM, with merges meanwhile
SELECT format('INSERT INTO tr SELECT * FROM tr_rows(%s, %s)', 3001 + r * 4000, 7000 + r * 4000),
	format('UPDATE tr SET v = -v WHERE v %% 13 = %s', r),
	format('UPDATE tr SET id = id + 1 WHERE v %% 29 = %s AND id %% 7 = 0', r),
	format('UPDATE tr SET k = k + 1 WHERE v %% 17 = %s', r),
	format('DELETE FROM tr WHERE v %% 31 = %s', r),
	CASE r % 2 WHEN 1 THEN 'VACUUM tr' ELSE 'SELECT hybrid_merge(c) >= 0 FROM unnest(array[''tr_id'', ''tr_u'', ''tr_dk'', ''tr_k'', ''tr_part'']::regclass[]) c' END,
	'SELECT * FROM tr_queries()', 'SELECT hyb_check(''tr'')'
FROM generate_series(0, 3) r \gexec

-- as it was built and as it has grown it is small
SELECT hybrid_merge('tr_id') >= 0;
CREATE INDEX tr_columnar ON tr USING hybrid (id);
SELECT a.static_bytes < 0.6 * b.static_bytes AS small, a.static_entries = b.static_entries + a.static_entries - b.static_entries AS counted
FROM hybrid_index_stats('tr_id') a, hybrid_index_stats('tr_columnar') b;
DROP INDEX tr_columnar;

-- an index with few entries keeps more of each: 33 bits and what pages take, where this number of entries alone needs 26
CREATE TABLE te AS SELECT hashint8extended(i, 7) AS k FROM generate_series(1, 16000) i;
CREATE INDEX te_k ON te USING hybrid (k) WITH (layout = trie);
SELECT static_bytes > 16000 * 4.3 AS more, static_bytes < 16000 * 5 AS not_all FROM hybrid_index_stats('te_k');

-- many rows of one key: lists of TIDs that go on in the next leaf
INSERT INTO tr SELECT i * 100000007::int8, NULL, NULL, 5, i FROM generate_series(1000001, 1030000) i;
SELECT hybrid_merge('tr_k') >= 0, hybrid_merge('tr_dk') >= 0;
SELECT hyb_same('SELECT v FROM tr WHERE k = 5'), hyb_same('SELECT v, k FROM tr WHERE d IS NULL AND k = 5'),
	hyb_same('SELECT k FROM tr WHERE k BETWEEN 4 AND 6 ORDER BY k DESC', 'order');
DELETE FROM tr WHERE v > 1000000 AND v % 3 > 0;
VACUUM tr;
INSERT INTO tr SELECT i * 100000007::int8 + 1, NULL, NULL, 5, i FROM generate_series(1000001, 1020000) i;
SELECT hybrid_merge('tr_k') >= 0, hyb_check('tr');
SELECT hyb_same('SELECT v FROM tr WHERE k = 5');

-- more of the key in the log than a batch takes at first
INSERT INTO tr SELECT i * 100000007::int8 + 2, NULL, NULL, 5, i FROM generate_series(1000001, 1000400) i;
SELECT hyb_same('SELECT v FROM tr WHERE k = 5'), hyb_same('SELECT v FROM tr WHERE d IS NULL AND k = 5');

-- ranges of a parallel build end where nothing that leaves hold goes on
CREATE TABLE tr_par AS SELECT hashint8extended(i, 5) AS k FROM generate_series(1, 60000) i;
ALTER TABLE tr_par SET (parallel_workers = 2);
CREATE INDEX tr_par_k ON tr_par USING hybrid (k) WITH (layout = trie);
SELECT hyb_check('tr_par'), hyb_same('SELECT k FROM tr_par ORDER BY k', 'order');
DROP TABLE tr_par;

-- uniqueness goes by keys, not by what leaves hold of them
SELECT hybrid_merge('tr_id') >= 0;
SELECT count(*) AS keys, count(*) FILTER (WHERE hyb_error(format('INSERT INTO tr (id) VALUES (%s)', id)) LIKE '23505 duplicate key value violates unique constraint "tr_id" / Key (id)=(%) already exists.') AS refused
FROM (SELECT id FROM tr WHERE id IS NOT NULL ORDER BY v LIMIT 300) x;
INSERT INTO tr (id, v) SELECT DISTINCT n.id, 5000000 FROM tr, LATERAL (VALUES (id - 2), (id + 2), (id # 64)) n(id)
WHERE v BETWEEN 10000 AND 11000 AND NOT EXISTS (SELECT FROM tr x WHERE x.id = n.id);
SELECT hyb_check('tr'), count(*) > 1000 AS inserted FROM tr WHERE v = 5000000;
SELECT count(*) FROM tr WHERE v = 5000000 AND hyb_error(format('INSERT INTO tr (id) VALUES (%s)', id)) NOT LIKE '23505%';
WITH i AS (INSERT INTO tr (id, v) SELECT id, 6000000 FROM tr WHERE v BETWEEN 12000 AND 12500 ON CONFLICT (id) DO UPDATE SET v = 6000000 RETURNING 1)
SELECT count(*) > 300 FROM i;
SELECT count(*) = count(DISTINCT id) FROM tr;

-- constraints
CREATE TABLE tr_con (a int PRIMARY KEY WITH (access_method = hybrid, layout = trie), b int, c int,
	UNIQUE (b) WITH (access_method = hybrid, layout = trie) DEFERRABLE INITIALLY DEFERRED,
	EXCLUDE USING hybrid (c WITH =) WITH (layout = trie));
INSERT INTO tr_con SELECT i, i * 3, i * 5 FROM generate_series(1, 5000) i;
SELECT sum(hybrid_merge(indexrelid)) >= 0 FROM pg_index WHERE indrelid = 'tr_con'::regclass;
INSERT INTO tr_con SELECT i, i * 3, i * 5 + 1 FROM generate_series(5001, 6000) i;
UPDATE tr_con SET b = b + 3;
SELECT hyb_error('INSERT INTO tr_con VALUES (70, -1, -1)'), hyb_error('INSERT INTO tr_con VALUES (-1, -1, 600)'),
	hyb_error('INSERT INTO tr_con VALUES (-2, 606, -2); SET CONSTRAINTS ALL IMMEDIATE');
INSERT INTO tr_con VALUES (70, -1, -1), (-4, -4, 603) ON CONFLICT (a) DO NOTHING;
SELECT hyb_check('tr_con'), count(*) FROM tr_con;
SELECT hyb_error('UPDATE tr_con SET a = a + 1');
CREATE TABLE tr_ref (a int REFERENCES tr_con);
INSERT INTO tr_ref SELECT i FROM generate_series(1, 6000, 7) i;
SELECT hyb_error('INSERT INTO tr_ref VALUES (6001)'), hyb_error('DELETE FROM tr_con WHERE a = 8');
CLUSTER tr_con USING tr_con_pkey;
SELECT hyb_check('tr_con'), hyb_same('SELECT * FROM tr_con WHERE a > 5900'), hyb_same('SELECT * FROM tr_con WHERE c = 1001');

-- row versions from before the index, with other keys in one chain
CREATE TABLE tr_hot (id int, k int, w text) WITH (fillfactor = 30, autovacuum_enabled = off);
INSERT INTO tr_hot SELECT i, i, 'a' FROM generate_series(1, 2000) i;
BEGIN;
UPDATE tr_hot SET k = k + 100000 WHERE id % 2 = 0;
ROLLBACK;
UPDATE tr_hot SET k = k + 1000000 WHERE id % 3 = 0;
CREATE INDEX tr_hot_k ON tr_hot USING hybrid (k) WITH (layout = trie);
UPDATE tr_hot SET w = 'b' WHERE id % 5 = 0;
SELECT hyb_same('SELECT * FROM tr_hot WHERE k > 1001000'), hyb_same('SELECT * FROM tr_hot WHERE k = 77'), hyb_check('tr_hot');
INSERT INTO tr_hot SELECT i, i - 1000000, 'c' FROM generate_series(1, 3000) i;
INSERT INTO tr_hot SELECT 1, k, 'd' FROM tr_hot WHERE id % 4 = 0;
SELECT hybrid_merge('tr_hot_k') >= 0, hyb_check('tr_hot');
SELECT hyb_same('SELECT * FROM tr_hot WHERE k > 900'), hyb_same('SELECT k FROM tr_hot ORDER BY k', 'order');

-- a chain with another key that begins alike, when keys are read to tell entries apart
CREATE TABLE tr_chain (k int8, v int) WITH (fillfactor = 30, autovacuum_enabled = off);
INSERT INTO tr_chain SELECT i * 1000000007::int8, i FROM generate_series(1, 60) i;
BEGIN;
UPDATE tr_chain SET k = k + 1;
CREATE INDEX tr_chain_k ON tr_chain USING hybrid (k) WITH (layout = trie);
INSERT INTO tr_chain SELECT k + 1, -v FROM tr_chain;
INSERT INTO tr_chain SELECT k + 1, -v FROM tr_chain WHERE v < 0;
SELECT hybrid_merge('tr_chain_k') >= 0;
COMMIT;
SELECT bool_and(hyb_same('SELECT * FROM tr_chain WHERE k = ' || k)), hyb_check('tr_chain') FROM tr_chain;

-- next versions with other keys and entries of their own, which are undone later
CREATE TABLE tr_undone (k int8, v int) WITH (fillfactor = 30, autovacuum_enabled = off);
INSERT INTO tr_undone SELECT i * 1000000007::int8, i FROM generate_series(1, 60) i;
CREATE INDEX tr_undone_k ON tr_undone USING hybrid (k) WITH (layout = trie);
BEGIN;
UPDATE tr_undone SET k = k + 1;
INSERT INTO tr_undone SELECT k + 1, -v FROM tr_undone;
INSERT INTO tr_undone SELECT k + 1, -v FROM tr_undone WHERE v < 0;
SELECT hybrid_merge('tr_undone_k');
ROLLBACK;
SELECT bool_and(hyb_same('SELECT * FROM tr_undone WHERE k = ' || k)), hyb_check('tr_undone') FROM tr_undone;

-- keys that begin alike are told apart: a look-up of one visits no other row
CREATE TABLE tr_apart AS SELECT i * 1000000007::int8 AS k FROM generate_series(1, 60) i;
CREATE INDEX tr_apart_k ON tr_apart USING hybrid (k) WITH (layout = trie);
INSERT INTO tr_apart SELECT k + 1 FROM tr_apart;
CREATE FUNCTION tr_visited(int8) RETURNS int LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	plan	json;
BEGIN
	EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM tr_apart WHERE k = %s', $1) INTO plan;
	RETURN coalesce((jsonb_path_query_first(plan::jsonb, '$.**."Rows Removed by Index Recheck"'))::int, 0);
END $$;
SELECT hybrid_merge('tr_apart_k') >= 0;
SELECT sum(tr_visited(k)) FROM tr_apart;

-- cursors that turn round, a count without columns
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c SCROLL CURSOR FOR SELECT id, v FROM tr WHERE id BETWEEN 5000 AND 6000 ORDER BY id;
FETCH 5 FROM c;
FETCH BACKWARD 3 FROM c;
MOVE 40 IN c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 30 FROM c;
FETCH RELATIVE -20 FROM c;
COMMIT;
VACUUM tr_con;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM tr_con;
SELECT count(*) FROM tr_con;
RESET enable_seqscan;

-- a parameter changes what is built next
CREATE FUNCTION tr_size(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT static_bytes FROM hybrid_index_stats($1)';
SELECT tr_size('tr_u') AS before \gset
ALTER INDEX tr_u SET (layout = columnar);
SELECT hyb_check('tr'), hyb_same('SELECT * FROM tr WHERE u = md5(''77'')::uuid');
REINDEX INDEX tr_u;
SELECT tr_size('tr_u') > 2 * :before AS keys_again, tr_size('tr_u') AS columnar \gset
SELECT :'keys_again';
SELECT hyb_same('SELECT u FROM tr WHERE u > ''ee000000-0000-0000-0000-000000000000''', 'index only');
ALTER INDEX tr_u RESET (layout);
ALTER INDEX tr_u SET (layout = trie);
INSERT INTO tr SELECT * FROM tr_rows(30000, 31000);
SELECT hyb_same('SELECT u FROM tr WHERE u > ''ee000000-0000-0000-0000-000000000000''', 'index only');
REINDEX INDEX CONCURRENTLY tr_u;
SELECT tr_size('tr_u') < 0.5 * :columnar AS prefixes_again, hyb_check('tr');
-- an EXPLAIN that fails leaves nothing to the next query
EXPLAIN SELECT u FROM tr WHERE u = md5((1 / 0)::text)::uuid;
SELECT count(*) FROM tr WHERE u = md5('77')::uuid;

-- conditions on later columns are asked of the table, and nothing is skipped
CREATE TABLE tr_plan AS SELECT i % 5 AS a, i AS b FROM generate_series(1, 20000) i;
CREATE INDEX tr_plan_ab ON tr_plan USING hybrid (a, b) WITH (layout = trie);
VACUUM ANALYZE tr_plan;
EXPLAIN (COSTS OFF) SELECT * FROM tr_plan WHERE b = 77;
SELECT hyb_same('SELECT * FROM tr_plan WHERE b = 77'), hyb_same('SELECT * FROM tr_plan WHERE a > 2 AND b IN (77, 78, 79)');
ALTER INDEX tr_plan_ab SET (layout = columnar);
REINDEX INDEX tr_plan_ab;
EXPLAIN (COSTS OFF) SELECT * FROM tr_plan WHERE b = 77;
DROP TABLE tr_plan;

-- where it is not possible
CREATE TABLE tr_not (t text, f float8, n numeric, i int, u uuid) ;
SELECT hyb_error(format('CREATE INDEX tr_not_i ON tr_not USING hybrid (%s) WITH (layout = %s)', c, l))
FROM (VALUES ('t', 'trie'), ('i, t', 'trie'), ('f', 'trie'), ('n', 'trie'), ('(i + 1)', 'trie'), ('i) INCLUDE (u', 'trie'), ('i', 'forest'), ('i, u', 'trie')) x(c, l);
SELECT hyb_error('ALTER INDEX tr_not_i SET (layout = plain)');
CREATE INDEX tr_not_t ON tr_not USING hybrid (t);
ALTER INDEX tr_not_t SET (layout = trie);
SELECT hyb_error('REINDEX INDEX tr_not_t');
SELECT hyb_same('SELECT t FROM tr_not WHERE t = ''x''', 'only');

-- the check reads rows: one removed and another in its place, while the index was hidden
CREATE TABLE tr_bad (k int8) WITH (autovacuum_enabled = off);
INSERT INTO tr_bad SELECT hashint8extended(i, 3) FROM generate_series(1, 50) i;
CREATE INDEX tr_bad_k ON tr_bad USING hybrid (k) WITH (layout = trie);
SELECT hyb_quiet();
UPDATE pg_index SET indisready = false, indisvalid = false WHERE indexrelid = 'tr_bad_k'::regclass;
DELETE FROM tr_bad WHERE k = hashint8extended(7, 3);
VACUUM tr_bad;
INSERT INTO tr_bad VALUES (hashint8extended(77, 3));
UPDATE pg_index SET indisready = true, indisvalid = true WHERE indexrelid = 'tr_bad_k'::regclass;
SELECT hyb_error('SELECT hybrid_index_check(''tr_bad_k'')') AS alone,
	regexp_replace(hyb_error('SELECT hybrid_index_check(''tr_bad_k'', true)'), '(block|position) \d+', '\1 N', 'g') AS with_table;
DROP TABLE tr_bad;

-- tables that end with the session, and that a crash empties
CREATE UNLOGGED TABLE tr_unlogged AS SELECT i, md5(i::text)::uuid AS u FROM generate_series(1, 3000) i;
CREATE INDEX ON tr_unlogged USING hybrid (u) WITH (layout = trie);
CREATE TEMP TABLE tr_temp AS SELECT * FROM tr_unlogged;
CREATE UNIQUE INDEX ON tr_temp USING hybrid (u) WITH (layout = trie);
INSERT INTO tr_temp SELECT i, md5(i::text)::uuid FROM generate_series(3001, 9000) i;
SELECT hyb_check('tr_unlogged'), hyb_check('tr_temp'), hyb_same('SELECT * FROM tr_temp WHERE u = md5(''4444'')::uuid'),
	hyb_same('SELECT u FROM tr_unlogged ORDER BY u', 'order');
DROP TABLE tr_con, tr_ref, tr_chain, tr_undone, tr_apart, tr_hot, tr_not, tr_unlogged;

-- versions of the time before the index, with other keys, and such as were undone:
-- rows keep their place in the order of CLUSTER, and merges know their keys
CREATE TABLE tp_chain (id int, k int8) WITH (autovacuum_enabled = off);
INSERT INTO tp_chain SELECT i, 5 FROM generate_series(1, 10) i;
INSERT INTO tp_chain SELECT i, i / 2 * 1000000007::int8 FROM generate_series(11, 60) i;
UPDATE tp_chain SET k = 777777777777 WHERE id <= 10;
BEGIN;
UPDATE tp_chain SET k = -k WHERE id % 4 < 2;
ROLLBACK;
CREATE INDEX tp_chain_k ON tp_chain USING hybrid (k) WITH (layout = trie);
UPDATE tp_chain SET id = -id WHERE id % 8 = 0;
SELECT count(*), sum(k), sum(id) FROM tp_chain;
SELECT hybrid_index_check('tp_chain_k', true);
CLUSTER tp_chain USING tp_chain_k;
SELECT count(*), sum(k), sum(id) FROM tp_chain;
SELECT bool_and(k >= before) FROM (SELECT k, lag(k) OVER (ORDER BY ctid) AS before FROM tp_chain) s;
-- more of one key than a page holds
CREATE TABLE tp_many (k int8, w text) WITH (autovacuum_enabled = off);
INSERT INTO tp_many VALUES (5, 'x'), (6, 'x');
UPDATE tp_many SET k = k + 2;
BEGIN;
UPDATE tp_many SET k = 8 WHERE k = 7;
ROLLBACK;
CREATE INDEX tp_many_k ON tp_many USING hybrid (k) WITH (layout = trie);
INSERT INTO tp_many SELECT 7, 'y' FROM generate_series(1, 12000);
SELECT hybrid_merge('tp_many_k') >= 0;
INSERT INTO tp_many SELECT 7, 'y' FROM generate_series(1, 12000);
SELECT hybrid_merge('tp_many_k') >= 0;
SELECT hybrid_index_check('tp_many_k', true);
SELECT hyb_same('SELECT w FROM tp_many WHERE k = ' || k) FROM generate_series(5, 8) k;
DROP TABLE tp_chain, tp_many;

-- many rows of each value of a wide first column: leaves keep keys there
CREATE TABLE tp_wide AS SELECT i, md5((i % 600)::text)::uuid AS a, (i / 600)::int8 AS b FROM generate_series(0, 29999) i;
CREATE UNIQUE INDEX tp_wide_ab ON tp_wide USING hybrid (a, b) WITH (layout = trie);
CREATE FUNCTION tp_removed(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN coalesce(plan #>> '{0,Plan,Rows Removed by Index Recheck}', '0')::int;
END
$$;
ANALYZE tp_wide;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT max(tp_removed(format('SELECT i FROM tp_wide WHERE a = %L AND b = %s', a, b))) < 5 FROM tp_wide WHERE i % 999 = 0;
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT hyb_check('tp_wide'), hyb_same('SELECT * FROM tp_wide WHERE a = md5(''77'')::uuid AND b = 7'),
	hyb_same('SELECT * FROM tp_wide WHERE a = md5(''77'')::uuid AND b > 40'),
	hyb_same('SELECT a, b FROM tp_wide WHERE a > ''e0000000-0000-0000-0000-000000000000'' ORDER BY a, b', 'order');
-- merges: of keys of their own, between those, and of other versions
INSERT INTO tp_wide SELECT i, md5((i % 2500)::text)::uuid, i FROM generate_series(100000, 120000) i;
UPDATE tp_wide SET i = -i WHERE i % 10 = 0;
DELETE FROM tp_wide WHERE i % 7 = 0;
SELECT hybrid_merge('tp_wide_ab') > 0;
VACUUM tp_wide;
SELECT hyb_error('INSERT INTO tp_wide SELECT 1, a, b FROM tp_wide WHERE i = 1') ~ 'duplicate key' AS known;
SELECT hyb_check('tp_wide'), hyb_same('SELECT * FROM tp_wide WHERE a = md5(''77'')::uuid AND b = 8'),
	hyb_same('SELECT * FROM tp_wide WHERE a = md5(''77'')::uuid AND b > 40'),
	hyb_same('SELECT * FROM tp_wide WHERE a = ANY (ARRAY[md5(''77''), md5(''1700''), md5(''x'')]::uuid[]) AND b IN (1, 2, 3, 104200, 106700)'),
	hyb_same('SELECT a, b FROM tp_wide WHERE a > ''e0000000-0000-0000-0000-000000000000'' ORDER BY a DESC, b DESC', 'order');
DROP TABLE tp_wide;

-- filters for points, of the beginnings of keys; range filters are not possible
CREATE TABLE tp_filter AS SELECT i, hashint8extended(i, 5) AS k, md5(i::text)::uuid AS u FROM generate_series(1, 20000) i;
INSERT INTO tp_filter VALUES (0, NULL, NULL);
CREATE UNIQUE INDEX tp_filter_k ON tp_filter USING hybrid (k) WITH (layout = trie, filter = points);
CREATE INDEX tp_filter_u ON tp_filter USING hybrid (u DESC, i) WITH (layout = trie, filter = points);
CREATE INDEX tp_filter_s ON tp_filter USING hybrid (i) WITH (layout = trie, filter = surf);
SELECT i, filter_pages > 0 AS has_filters FROM unnest('{tp_filter_k, tp_filter_u, tp_filter_s}'::regclass[]) i, hybrid_index_stats(i);
SELECT hyb_check('tp_filter');
CREATE FUNCTION tp_grow(lo int, hi int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO tp_filter SELECT i, hashint8extended(i, 5), md5(i::text)::uuid FROM generate_series(lo, hi) i;
	RETURN hybrid_merge('tp_filter_k') + hybrid_merge('tp_filter_u');
END
$$;
-- leaves grow, and rows lack bits that others have
SELECT tp_grow(n * 5000 + 1, n * 5000 + 5000) > 0 FROM generate_series(4, 13) n;
UPDATE tp_filter SET u = md5(u::text)::uuid WHERE i % 11 = 0;
DELETE FROM tp_filter WHERE i % 7 = 0;
SELECT tp_grow(80001, 85000) > 0;
VACUUM tp_filter;
SELECT hyb_check('tp_filter');
CREATE FUNCTION tp_filter_counts(OUT checks bigint, OUT negatives bigint) LANGUAGE sql AS 'SELECT filter_checks, filter_negatives FROM hybrid_index_stats(''tp_filter_k'')';
SELECT * FROM tp_filter_counts() \gset
SET enable_seqscan = off;
SELECT count((SELECT t.i FROM tp_filter t WHERE t.k = s.k)) FROM (SELECT hashint8extended(i, 6) AS k FROM generate_series(1, 2000) i) s;
SELECT c.checks - :checks AS asked, c.negatives - :negatives BETWEEN 0.98 * 2000 AND 2000 AS denied FROM tp_filter_counts() c;
SELECT count((SELECT t.i FROM tp_filter t WHERE t.k = s.k)) = 9000 - 9000 / 7 AS found FROM (SELECT hashint8extended(i, 5) AS k FROM generate_series(1, 9000) i) s;
SELECT count((SELECT t.i FROM tp_filter t WHERE t.u = s.u AND t.i = s.i)) FROM (SELECT i, u FROM tp_filter WHERE i BETWEEN 1 AND 3000) s;
RESET enable_seqscan;
-- a key that was found once is hot, and asks no filter again
SELECT wrong, checks > 0.98 * (present + 2 * absent) AS asked, negatives > 0.95 * 2 * absent AS denied
FROM (VALUES ('tp_filter_k', 'SELECT k FROM tp_filter WHERE i > 9000 AND i % 4 = 0 UNION ALL SELECT hashint8extended(i, 6) FROM tp_filter WHERE i % 4 = 1'),
	('tp_filter_u', 'SELECT u, i FROM tp_filter WHERE i > 9000 AND i % 4 = 0 UNION ALL SELECT md5(i::text || ''a'')::uuid, i FROM tp_filter WHERE i % 4 = 1')) v (index, keys), hyb_lookups(index, keys);
SELECT hyb_same('SELECT i FROM tp_filter WHERE k IS NULL'), hyb_same('SELECT i FROM tp_filter WHERE u IS NULL AND i = 0');
SELECT hyb_error(format('INSERT INTO tp_filter VALUES (1, %s)', k)) ~ 'duplicate key' AS known FROM tp_filter WHERE i IN (1, 30001, 80001);
DROP TABLE tp_filter;

-- leaves of prefixes without a filter
CREATE TABLE tp_may (k int8);
INSERT INTO tp_may SELECT hashint8extended(i, 7) FROM generate_series(1, 20000) i;
CREATE INDEX tp_may_k ON tp_may USING hybrid (k) WITH (layout = trie, filter = none);
SELECT wrong, checks FROM hyb_lookups('tp_may_k', 'SELECT hashint8extended(i, seed) AS k FROM generate_series(1, 2000) i, generate_series(7, 8) seed');
DROP TABLE tp_may;

-- what is known of the greatest key are the first bits that its leaf keeps
CREATE TABLE tp_top (k int8);
INSERT INTO tp_top SELECT hashint8extended(i, 0) FROM generate_series(1, 50000) i;
CREATE UNIQUE INDEX tp_top_k ON tp_top USING hybrid (k) WITH (layout = trie);
SELECT hyb_error('INSERT INTO tp_top SELECT max(k) FROM tp_top') ~ '^23505' AS refused;
INSERT INTO tp_top SELECT max(k) + 1 FROM tp_top;
SELECT hyb_check('tp_top');
DROP TABLE tp_top;
