--
-- Answers are the same before, between and after merges, also with the smallest
-- steps.  The pages that merges free are used again.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
CREATE TABLE mg (id int, k int8, s text COLLATE "C", n numeric);
CREATE INDEX mg_k ON mg USING hybrid (k);
CREATE INDEX mg_s ON mg USING hybrid (s, k DESC) INCLUDE (id);
CREATE INDEX mg_n ON mg USING hybrid (n) WITH (merge_ratio = 2);
CREATE FUNCTION mg_insert(lo int, hi int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO mg SELECT i, hashint8extended(i, 0) / 2, left(md5(i::text), 1 + i % 12), (i % 1000) / 8.0
	FROM generate_series(lo, hi) i
$$;
CREATE FUNCTION mg_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same(q)) FROM unnest(array[
		'SELECT id FROM mg WHERE k < -4000000000000000000',
		'SELECT id FROM mg WHERE k BETWEEN 0 AND 100000000000000000',
		'SELECT id FROM mg WHERE k = (SELECT k FROM mg WHERE id = 77)',
		'SELECT id FROM mg WHERE s = ''c''',
		'SELECT id FROM mg WHERE s >= ''a8'' AND s < ''ac'' AND k > 0',
		'SELECT id FROM mg WHERE n = 12.5',
		'SELECT id FROM mg WHERE n > 120']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order')) FROM unnest(array[
		'SELECT k FROM mg ORDER BY k',
		'SELECT k FROM mg ORDER BY k DESC',
		'SELECT s, k FROM mg ORDER BY s, k DESC',
		'SELECT trim_scale(n) FROM mg ORDER BY n DESC']) q
$$;

-- an empty index has nothing to merge
SELECT hybrid_merge('mg_k'), hybrid_merge('mg_s');
SELECT mg_insert(1, 3000);
SELECT * FROM mg_queries();
SELECT hybrid_merge('mg_k'), hybrid_merge('mg_s'), hybrid_merge('mg_n');
SELECT hybrid_merge('mg_k');
SELECT * FROM mg_queries();
SELECT hyb_check('mg');

-- merge into a static stage, one leaf a step
SET hybridindex.merge_step_pages = 1;
SELECT mg_insert(3001, 6000);
SELECT * FROM mg_queries();
SELECT hybrid_merge('mg_k'), hybrid_merge('mg_s'), hybrid_merge('mg_n');
SELECT * FROM mg_queries();
SELECT hyb_check('mg');

-- merges of its own accord, in the middle of statements, whatever a role without Citus sets
SET hybridindex.merge_floor = 0;
SET citus.version = '14.0.1';
SELECT mg_insert(6001, 12000);
SELECT * FROM mg_queries();
SELECT hyb_check('mg');
SELECT bool_and((hybrid_index_stats(i)).merges > 2) AS merged_by_itself FROM unnest('{mg_k,mg_s,mg_n}'::regclass[]) i;
SET hybridindex.merge_floor = 200;
SET hybridindex.merge_step_pages = 3;
INSERT INTO mg SELECT 10000 + i, i, 'zz' || i, -i FROM generate_series(1, 3000) i;
INSERT INTO mg SELECT 20000 + i, 9000000000000000000 - i, '', 0 FROM generate_series(1, 1000) i;
UPDATE mg SET k = k + 1, n = n + 1 WHERE id % 5 = 0;
DELETE FROM mg WHERE id % 7 = 0;
SELECT * FROM mg_queries();
VACUUM mg;
SELECT * FROM mg_queries();
SELECT hyb_check('mg');
RESET hybridindex.merge_floor;
RESET hybridindex.merge_step_pages;
SELECT hybrid_merge('mg_k') >= 0, hybrid_merge('mg_s') >= 0, hybrid_merge('mg_n') >= 0;
SELECT hyb_check('mg');

-- merging in a transaction that is rolled back is merged all the same
INSERT INTO mg SELECT 30000 + i, i * 1000, 'rb', i FROM generate_series(1, 500) i;
BEGIN;
INSERT INTO mg SELECT 40000 + i, i * 1001, 'rolled back', i FROM generate_series(1, 500) i;
SELECT hybrid_merge('mg_k') > 0;
SELECT * FROM mg_queries();
ROLLBACK;
SELECT * FROM mg_queries();
SELECT hyb_check('mg');
SELECT hybrid_merge('mg_k');

-- two cursors read on over a merge, and see what they saw before
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_sort = off;
DECLARE up NO SCROLL CURSOR FOR SELECT k FROM mg WHERE k > 0 ORDER BY k;
DECLARE down NO SCROLL CURSOR FOR SELECT k FROM mg WHERE k > 0 ORDER BY k DESC;
MOVE 1000 FROM up;
MOVE 1000 FROM down;
INSERT INTO mg SELECT 50000 + i, i * 77777777777, 'later', i FROM generate_series(1, 2000) i;
SELECT hybrid_merge('mg_k') > 0;
MOVE 1000 FROM up;
MOVE 1000 FROM down;
INSERT INTO mg SELECT 60000 + i, i * 66666666666, 'later', i FROM generate_series(1, 2000) i;
MOVE 10 FROM up;
MOVE 10 FROM down;
SELECT hybrid_merge('mg_k') > 0;
CREATE TEMP TABLE mg_want AS SELECT count(*) AS n FROM mg WHERE k > 0 AND id < 50000;
CREATE TEMP TABLE mg_got (up int8, down int8);
DO $$
DECLARE
	up		refcursor := 'up';
	down	refcursor := 'down';
	n		int8 := 0;
	m		int8 := 0;
	last	int8;
	k		int8;
BEGIN
	LOOP
		FETCH NEXT FROM up INTO k;
		EXIT WHEN NOT FOUND;
		ASSERT last IS NULL OR k >= last;
		last := k;
		n := n + 1;
	END LOOP;
	last := NULL;
	LOOP
		FETCH NEXT FROM down INTO k;
		EXIT WHEN NOT FOUND;
		ASSERT last IS NULL OR k <= last;
		last := k;
		m := m + 1;
	END LOOP;
	INSERT INTO mg_got VALUES (n, m);
END $$;
SELECT n - up AS up_fetched_before, n - down AS down_fetched_before FROM mg_want, mg_got;
COMMIT;

-- churn: the size stays bounded, freed pages are used again
CREATE TABLE mg_churn (k int, pad text);
CREATE INDEX mg_churn_i ON mg_churn USING hybrid (k, pad);
INSERT INTO mg_churn SELECT hashint4(i), md5(i::text) FROM generate_series(1, 20000) i;
SELECT hybrid_merge('mg_churn_i') > 0;
CREATE TABLE mg_sizes (round int, size int8);
SELECT format('DELETE FROM mg_churn WHERE k %% 5 = %s', r % 5),
	'INSERT INTO mg_churn SELECT hashint4(i) - i % 3, md5(i::text) FROM generate_series(1, 4000) i',
	'VACUUM mg_churn',
	format('INSERT INTO mg_sizes SELECT %s, pg_relation_size(''mg_churn_i'') WHERE hybrid_merge(''mg_churn_i'') >= 0', r)
FROM generate_series(1, 15) r \gexec
SELECT count(*) FROM mg_sizes;
SELECT max(size) FILTER (WHERE round > 10) <= 1.2 * max(size) FILTER (WHERE round <= 5) AS bounded FROM mg_sizes;
SELECT hyb_check('mg_churn'),
	hyb_same('SELECT k FROM mg_churn WHERE k BETWEEN -1000000 AND 100000000'),
	hyb_same('SELECT k, pad FROM mg_churn ORDER BY k, pad', 'order_only');
DELETE FROM mg_churn;
VACUUM mg_churn;
SELECT hybrid_merge('mg_churn_i') >= 0;
INSERT INTO mg_churn SELECT hashint4(i), md5(i::text) FROM generate_series(1, 20000) i;
SELECT hybrid_merge('mg_churn_i') > 0;
SELECT pg_relation_size('mg_churn_i') <= 1.5 * max(size) AS bounded, hyb_check('mg_churn') FROM mg_sizes;

-- no worker, steps as small as can be, wide keys in random order: the inserter
-- keeps what is not merged bounded by a share of the static stage
CREATE TABLE mg_pace (k text COLLATE "C");
CREATE INDEX mg_pace_k ON mg_pace USING hybrid (k) WITH (merge_ratio = 50);
CREATE TABLE mg_backlog (round int, entries int8, static int8);
SET hybridindex.merge_step_pages = 1;
SET hybridindex.merge_floor = 200;
DO $$
BEGIN
	FOR r IN 1 .. 30 LOOP
		INSERT INTO mg_pace
		SELECT string_agg(md5(format('%s %s', i, j)), '')
		FROM generate_series(1, 7) j, generate_series(r * 500, r * 500 + 499) i
		GROUP BY i;
		INSERT INTO mg_backlog SELECT r, dynamic_entries, static_entries FROM hybrid_index_stats('mg_pace_k');
	END LOOP;
END $$;
RESET hybridindex.merge_step_pages;
RESET hybridindex.merge_floor;
SELECT max(entries * 1.0 / static) FILTER (WHERE round > 10) < 0.3 AS bounded FROM mg_backlog;
SELECT hyb_check('mg_pace');

-- One key only, so that all fences are at heap TIDs: each row is deleted, and
-- its TID used again, in one of the rounds, those at the fences too.
CREATE TABLE mg_few (k int, id int) WITH (autovacuum_enabled = off);
CREATE INDEX mg_few_k ON mg_few USING hybrid (k);
INSERT INTO mg_few SELECT 1, i FROM generate_series(1, 60000) i;
SELECT hybrid_merge('mg_few_k') > 0;
SELECT leaf_pages > 3 AS several_leaves FROM hybrid_index_stats('mg_few_k');
SELECT hyb_quiet();
SET hybridindex.merge_step_pages = 1;
CREATE TABLE mg_fences (round int, reused boolean, rows bigint);
SELECT format('DELETE FROM mg_few WHERE (id - 1) %% 7 = %s', r),
	'VACUUM mg_few',
	format($$WITH new AS (INSERT INTO mg_few SELECT 1, i FROM generate_series(1, 60000) i WHERE (i - 1) %% 7 = %s RETURNING ctid)
		INSERT INTO mg_fences SELECT %s, count(*) FILTER (WHERE ctid <= (SELECT max(ctid) FROM mg_few)) > 4000 FROM new$$, r, r),
	format('UPDATE mg_fences SET rows = (SELECT count(*) FROM mg_few WHERE k = 1) WHERE round = %s AND hybrid_merge(''mg_few_k'') > 0', r),
	'SELECT hyb_same(''SELECT id FROM mg_few WHERE k = 1'', ''index bitmap''), hyb_check(''mg_few'')'
FROM generate_series(0, 6) r \gexec
SELECT * FROM mg_fences ORDER BY round;
RESET hybridindex.merge_step_pages;
DROP TABLE mg_few, mg_fences;

-- Long lists in random order: entries go among the TIDs of keys in the middle of
-- a leaf.
CREATE TABLE mg_lists (k int, id int) WITH (autovacuum_enabled = off);
INSERT INTO mg_lists SELECT hashint4(i) % 20, i FROM generate_series(1, 20000) i;
CREATE INDEX mg_lists_k ON mg_lists USING hybrid (k);
DELETE FROM mg_lists WHERE id % 5 = 2;
VACUUM mg_lists;
INSERT INTO mg_lists SELECT hashint4(i) % 20, i FROM generate_series(30001, 33000) i;
SELECT hybrid_merge('mg_lists_k') > 0;
SELECT hyb_same('SELECT k, id FROM mg_lists WHERE k IN (-7, 3, 11)', 'index bitmap'), hyb_check('mg_lists');
DROP TABLE mg_lists;

-- Separators so long that a node holds three, and a tree with few leaves is
-- high; a generation with more pages than one step frees.
CREATE TABLE mg_wide (k numeric);
SELECT string_agg(translate(md5(i::text), 'abcdef', '012345'), '') AS digits FROM generate_series(1, 162) i \gset
CREATE INDEX mg_wide_k ON mg_wide USING hybrid (k);
INSERT INTO mg_wide SELECT :digits * 1e8 + i * 10 FROM generate_series(1, 20000) i;
REINDEX INDEX mg_wide_k;
INSERT INTO mg_wide SELECT :digits * 1e8 + i * 160 + 5 FROM generate_series(1, 1200) i;
SELECT delta_pages > 320 AS many_pages FROM hybrid_index_stats('mg_wide_k');
SELECT hybrid_merge('mg_wide_k'), hyb_check('mg_wide');
SELECT height >= 4 AS high FROM hybrid_index_stats('mg_wide_k');
DROP TABLE mg_wide;

-- Line pointers with greater numbers than any in the leaf, of rows with the
-- leaf's key: they come behind those of their heap block only.
CREATE TABLE mg_off (k int, wanted bool, pad text) WITH (autovacuum_enabled = off);
INSERT INTO mg_off SELECT 1, i % 10 = 1, repeat('f', 750) FROM generate_series(1, 1000) i;
CREATE INDEX mg_off_k ON mg_off USING hybrid (k) WHERE wanted;
DELETE FROM mg_off WHERE (ctid::text::point)[1] = 8;
VACUUM mg_off;
INSERT INTO mg_off SELECT 1, true, repeat('f', 750) FROM generate_series(1, 50);
SELECT (ctid::text::point)[1] AS line_pointer, count(*) FROM mg_off WHERE wanted GROUP BY 1 ORDER BY 2;
SELECT hybrid_merge('mg_off_k'), hyb_check('mg_off');
DROP TABLE mg_off;

-- Blocks that cursors have pinned are passed over, however many of those that
-- a step has reserved they are.
CREATE TABLE mg_pins (k int, s text COLLATE "C");
INSERT INTO mg_pins SELECT i, md5(i::text) FROM generate_series(1, 4000) i;
CREATE INDEX mg_pins_k ON mg_pins USING hybrid (k, s);
SELECT leaf_pages > 8 AS many_leaves FROM hybrid_index_stats('mg_pins_k');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
SELECT format('DECLARE pin%s CURSOR FOR SELECT k FROM mg_pins WHERE k >= %s ORDER BY k, s', i, i * 350),
	format('FETCH FROM pin%s', i)
FROM generate_series(1, 10) i \gexec
SELECT format('INSERT INTO mg_pins SELECT i * 40 + %s, ''new'' FROM generate_series(1, 99) i', r),
	'SELECT hybrid_merge(''mg_pins_k'')'
FROM generate_series(1, 4) r \gexec
FETCH FROM pin1;
FETCH FROM pin10;
COMMIT;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
SELECT hyb_check('mg_pins'), hyb_same('SELECT k, s FROM mg_pins ORDER BY k, s', 'order_only');
DROP TABLE mg_pins;

-- A backend that has met a root twice keeps a copy.  Merges then go on until
-- the root is in that block again, without its looking.
CREATE TABLE mg_root (k int);
INSERT INTO mg_root SELECT i * 10 FROM generate_series(1, 30000) i;
CREATE INDEX mg_root_k ON mg_root USING hybrid (k);
CREATE FUNCTION mg_root_seen(round int, merges int) RETURNS bool LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	seen	bool := true;
	v		int;
BEGIN
	FOR i IN 1 .. 3 LOOP
		SELECT k INTO v FROM mg_root WHERE k = 10;
	END LOOP;
	FOR i IN 1 .. merges LOOP
		INSERT INTO mg_root VALUES (100 * round + 10 * i + 1);
		PERFORM hybrid_merge('mg_root_k');
	END LOOP;
	FOR i IN 1 .. merges LOOP
		SELECT k INTO v FROM mg_root WHERE k = 100 * round + 10 * i + 1;
		seen := seen AND FOUND;
	END LOOP;
	RETURN seen;
END $$;
SELECT count(*), bool_and(mg_root_seen(round, 1 + round % 6)) AS seen FROM generate_series(1, 60) round;
DROP TABLE mg_root;
DROP FUNCTION mg_root_seen;

DROP TABLE mg_pace, mg_backlog;
DROP TABLE mg, mg_churn, mg_sizes, mg_want, mg_got;
DROP FUNCTION mg_insert, mg_queries;

-- entries of a page of the log whose rows lie far apart in the table
CREATE TABLE far (k int) WITH (fillfactor = 90, autovacuum_enabled = off);
INSERT INTO far SELECT generate_series(1, 60000);
CREATE INDEX far_k ON far USING hybrid (k);
UPDATE far SET k = -k WHERE k % 7919 = 1;
SELECT count(*), bool_and(ok) FROM (SELECT hyb_same('SELECT k FROM far WHERE k < 0', 'index bitmap') AS ok) s;
SELECT hybrid_index_check('far_k', true);
DROP TABLE far;
