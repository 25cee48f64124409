--
-- Hot copies: look-ups of whole keys that read no leaf.  They return what a
-- look-up through the leaves returns, also after rows have changed.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
CREATE TABLE hot (id int8, u uuid, s text COLLATE "C", a int4, v int4) WITH (autovacuum_enabled = off);
INSERT INTO hot SELECT i, md5(i::text)::uuid, 'key ' || i || repeat(' long', i % 30), i % 50, 0 FROM generate_series(1, 3000) i;
CREATE UNIQUE INDEX hot_id ON hot USING hybrid (id);
CREATE UNIQUE INDEX hot_u ON hot USING hybrid (u) INCLUDE (id);
CREATE UNIQUE INDEX hot_s ON hot USING hybrid (s text_hope_ops);
CREATE INDEX hot_a ON hot USING hybrid (a, (id::int4) DESC NULLS FIRST);
-- Each row is looked up by each of its keys: which of them find v, and nothing else?
CREATE FUNCTION hot_look(n int) RETURNS TABLE (looked bigint, by_id bigint, by_u bigint, by_s bigint, by_a bigint) LANGUAGE plpgsql AS $$
DECLARE
	r record;
	got int[];
BEGIN
	looked := 0; by_id := 0; by_u := 0; by_s := 0; by_a := 0;
	FOR r IN SELECT * FROM hot WHERE v % n = 0 LOOP
		looked := looked + 1;
		got := array(SELECT v FROM hot WHERE id = r.id);
		by_id := by_id + (got = ARRAY[r.v])::int;
		got := array(SELECT v FROM hot WHERE u = r.u);
		by_u := by_u + (got = ARRAY[r.v])::int;
		got := array(SELECT v FROM hot WHERE s = r.s);
		by_s := by_s + (got = ARRAY[r.v])::int;
		got := array(SELECT v FROM hot WHERE a = r.a AND id::int4 = r.id);
		by_a := by_a + (got = ARRAY[r.v])::int;
	END LOOP;
	RETURN NEXT;
END $$;
-- Hits since this was called last, as a part of the look-ups; and are all copies right?
CREATE TABLE hot_before (i regclass, lookups bigint, hits bigint);
CREATE FUNCTION hot_hits() RETURNS TABLE (i regclass, asked boolean, most_hit boolean) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM hybrid_index_check(x) FROM unnest('{hot_id, hot_u, hot_s, hot_a}'::regclass[]) x;
	RETURN QUERY WITH now AS (SELECT x, hot_lookups, hot_hits FROM unnest('{hot_id, hot_u, hot_s, hot_a}'::regclass[]) x, hybrid_index_stats(x))
		SELECT x, hot_lookups > coalesce(lookups, 0),
			coalesce((n.hot_hits - coalesce(hits, 0)) * 10 >= (hot_lookups - coalesce(lookups, 0)) * 9, false)
		FROM now n LEFT JOIN hot_before b ON b.i = x ORDER BY x::text;
	DELETE FROM hot_before;
	INSERT INTO hot_before SELECT x, hot_lookups, s.hot_hits FROM unnest('{hot_id, hot_u, hot_s, hot_a}'::regclass[]) x, hybrid_index_stats(x) s;
END $$;
SHOW hybridindex.hot_memory;
-- The first time leaves are read, then copies; of keys above 84 bytes there are none
SELECT * FROM hot_look(1);
SELECT * FROM hot_hits();
SELECT * FROM hot_look(1);
SELECT * FROM hot_hits();
SELECT hot_bytes > 0 AS made, hot_used_bytes > 3000 * 32 AS used FROM hybrid_memory;
-- New row versions, in the dynamic stage and then in leaves
UPDATE hot SET v = 1, id = id WHERE id % 3 = 0;
SELECT * FROM hot_look(1);
SELECT * FROM hot_hits();
UPDATE hot SET a = a + 1, v = 2 WHERE id % 3 = 1;
SELECT * FROM hot_look(1);
SELECT count(hybrid_merge(x)) FROM unnest('{hot_id, hot_u, hot_s, hot_a}'::regclass[]) x;
SELECT * FROM hot_look(1);
SELECT * FROM hot_hits();
SELECT * FROM hot_look(1);
-- Rows that went, their line pointers used again, and keys that came back
DELETE FROM hot WHERE id % 5 = 0;
VACUUM hot;
INSERT INTO hot SELECT i, md5(i::text)::uuid, 'key ' || i, i % 50, 3 FROM generate_series(3001, 3600) i;
SELECT count(*) AS gone FROM generate_series(5, 3000, 5) i, LATERAL (SELECT FROM hot WHERE id = i) x;
SELECT count(*) AS gone FROM generate_series(5, 3000, 5) i, LATERAL (SELECT FROM hot WHERE u = md5(i::text)::uuid) x;
SELECT * FROM hot_look(1);
INSERT INTO hot SELECT i, md5(i::text)::uuid, 'key again ' || i, i % 50, 4 FROM generate_series(5, 3000, 5) i;
SELECT * FROM hot_look(1);
SELECT count(hybrid_merge(x)) FROM unnest('{hot_id, hot_u, hot_s, hot_a}'::regclass[]) x;
SELECT * FROM hot_look(1);
SELECT * FROM hot_look(1);
SELECT * FROM hot_hits();
-- Insertions that are taken back, deletions by this transaction, savepoints
BEGIN;
DELETE FROM hot WHERE id BETWEEN 100 AND 200;
SELECT count(*) FROM generate_series(100, 200) i, LATERAL (SELECT FROM hot WHERE id = i) x;
SAVEPOINT s;
INSERT INTO hot SELECT i, md5(i::text)::uuid, 'back ' || i, i % 50, 5 FROM generate_series(100, 200) i;
SELECT sum(v) FROM generate_series(100, 200) i, LATERAL (SELECT v FROM hot WHERE id = i) x;
ROLLBACK TO s;
SELECT count(*) FROM generate_series(100, 200) i, LATERAL (SELECT FROM hot WHERE id = i) x;
ROLLBACK;
SELECT * FROM hot_look(1);
-- Other scans do not use them: values, both directions, cursors, parts of a key
SELECT hyb_same(q, 'index only bitmap') FROM unnest(array['SELECT id FROM hot WHERE u = md5(''77'')::uuid',
	'SELECT id FROM hot WHERE u = ANY (ARRAY[md5(''77''), md5(''78''), md5(''3'')]::uuid[])']) q;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM hot WHERE id = 77 ORDER BY id DESC;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
FETCH ALL FROM c;
COMMIT;
-- Keys with several rows have no copies, until one is left
CREATE TABLE hot_several (k int4, v int4) WITH (autovacuum_enabled = off);
INSERT INTO hot_several SELECT i % 100, i FROM generate_series(1, 300) i;
CREATE INDEX hot_several_k ON hot_several USING hybrid (k);
CREATE FUNCTION hot_count() RETURNS TABLE (rows bigint, hits bigint) LANGUAGE plpgsql AS $$
DECLARE
	before bigint := (SELECT hot_hits FROM hybrid_index_stats('hot_several_k'));
BEGIN
	rows := 0;
	FOR round IN 1 .. 3 LOOP
		FOR i IN 0 .. 99 LOOP
			rows := rows + (SELECT count(v) FROM hot_several WHERE k = i);
		END LOOP;
	END LOOP;
	hits := (SELECT hot_hits FROM hybrid_index_stats('hot_several_k')) - before;
	RETURN NEXT;
END $$;
SELECT * FROM hot_count();
DELETE FROM hot_several WHERE v > 100;
SELECT rows FROM hot_count();
SELECT rows, hits > 250 AS hit FROM hot_count();
UPDATE hot_several SET k = (k + 1) % 100;
SELECT rows FROM hot_count();
SELECT hybrid_merge('hot_several_k');
SELECT rows FROM hot_count();
SELECT sum(v) FROM generate_series(0, 99) i, LATERAL (SELECT v FROM hot_several WHERE k = i) x;
-- VACUUM, of an index that has few copies
SELECT rows FROM hot_count();
DELETE FROM hot_several WHERE k < 50;
VACUUM hot_several;
INSERT INTO hot_several SELECT 1000 + i, i FROM generate_series(1, 300) i;
SELECT rows FROM hot_count();
DELETE FROM hot_several WHERE k > 1000;
INSERT INTO hot_several SELECT i, i FROM generate_series(0, 49) i;
SELECT rows FROM hot_count();
-- NULLs are keys too; a truncated table, a rebuilt index
INSERT INTO hot_several VALUES (NULL, 1000);
SELECT hybrid_merge('hot_several_k');
SELECT sum(x.v) FROM generate_series(1, 40) i, LATERAL (SELECT v FROM hot_several WHERE k IS NULL AND i > 0) x;
REINDEX INDEX hot_several_k;
SELECT rows FROM hot_count();
TRUNCATE hot_several;
SELECT rows FROM hot_count();
INSERT INTO hot_several SELECT i, -i FROM generate_series(0, 99) i;
SELECT rows FROM hot_count();
SELECT hybrid_merge('hot_several_k');
SELECT sum(v) FROM generate_series(0, 99) i, LATERAL (SELECT v FROM hot_several WHERE k = i) x;
-- A scan that takes several batches asks for the copy once, with the first of them
CREATE TABLE hot_log (k int4, v int4) WITH (autovacuum_enabled = off);
INSERT INTO hot_log VALUES (1, 0);
CREATE INDEX hot_log_k ON hot_log USING hybrid (k);
SELECT count(*) FROM generate_series(1, 40) i, LATERAL (SELECT v FROM hot_log WHERE k = 1 AND i > 0 OFFSET 0) x;
SELECT hot_hits > 0 AS hit FROM hybrid_index_stats('hot_log_k');
INSERT INTO hot_log SELECT 1, i FROM generate_series(1, 3000) i;
SELECT count(v), count(DISTINCT v) FROM (SELECT v FROM hot_log WHERE k = 1 OFFSET 0) x;
-- Two zeroes that are equal, values that differ in their bytes: no copies
CREATE TABLE hot_float (f float8, n numeric) WITH (autovacuum_enabled = off);
INSERT INTO hot_float SELECT i, i / 10.0 FROM generate_series(1, 1000) i;
INSERT INTO hot_float VALUES ('-0', 0.00), ('0', 0);
CREATE INDEX hot_float_f ON hot_float USING hybrid (f);
CREATE INDEX hot_float_n ON hot_float USING hybrid (n);
SELECT count(*) FROM generate_series(1, 40) i, LATERAL (SELECT FROM hot_float WHERE f = '0' AND i > 0 OFFSET 0) x;
SELECT count(*) FROM generate_series(1, 40) i, LATERAL (SELECT FROM hot_float WHERE n = 0.0 AND i > 0 OFFSET 0) x;
SELECT hot_lookups FROM hybrid_index_stats('hot_float_f') UNION ALL SELECT hot_lookups FROM hybrid_index_stats('hot_float_n');
-- Keys of any length, of one to three places, and longer ones, which have no copies
CREATE TABLE hot_long (s text COLLATE "C", v int4) WITH (autovacuum_enabled = off);
INSERT INTO hot_long SELECT left(repeat(md5(i::text), 4), 3 + i % 110), i FROM generate_series(1, 2200) i;
CREATE INDEX hot_long_s ON hot_long USING hybrid (s);
SELECT hot_used_bytes AS before FROM hybrid_memory \gset
CREATE FUNCTION hot_length() RETURNS TABLE (rows bigint, hits bigint) LANGUAGE plpgsql AS $$
DECLARE
	before bigint := (SELECT hot_hits FROM hybrid_index_stats('hot_long_s'));
	r record;
BEGIN
	rows := 0;
	FOR r IN SELECT * FROM hot_long LOOP
		rows := rows + (SELECT count(v) FROM hot_long WHERE s = r.s AND v = r.v);
	END LOOP;
	hits := (SELECT hot_hits FROM hybrid_index_stats('hot_long_s')) - before;
	RETURN NEXT;
END $$;
SELECT rows FROM hot_length();
SELECT rows, hits BETWEEN 1400 AND 1650 AS only_shorter_ones_hit FROM hot_length();
SELECT hot_used_bytes - :before > 100000 AS used FROM hybrid_memory;
UPDATE hot_long SET v = -v;
-- of a key there are two entries then, in two leaves here and there
SELECT hybrid_merge('hot_long_s') > 2000 AS merged;
SELECT hot_used_bytes - :before < 10000 AS given_back FROM hybrid_memory;
SELECT rows FROM hot_length();
SELECT rows FROM hot_length();
SELECT hybrid_index_check('hot_long_s');
-- A dictionary that is learned gives keys other bytes
CREATE TABLE hot_learn (s text COLLATE "C", v int4) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX hot_learn_s ON hot_learn USING hybrid (s text_hope_ops);
INSERT INTO hot_learn SELECT 'name' || i || '@example.org', i FROM generate_series(1, 200) i;
SELECT hybrid_merge('hot_learn_s');
SELECT count(*), sum(x.v) FROM generate_series(1, 3) round, generate_series(1, 200) i, LATERAL (SELECT v FROM hot_learn WHERE s = 'name' || i || '@example.org') x;
SELECT hot_lookups > 0 AS asked FROM hybrid_index_stats('hot_learn_s');
INSERT INTO hot_learn SELECT 'name' || i || '@example.org', i FROM generate_series(201, 5000) i;
SELECT hybrid_merge('hot_learn_s');
SELECT bool_or(learned) FROM hybrid_dictionary_info('hot_learn_s');
SELECT hot_lookups FROM hybrid_index_stats('hot_learn_s');
SELECT count(*), sum(x.v) FROM generate_series(1, 3) round, generate_series(1, 5000) i, LATERAL (SELECT v FROM hot_learn WHERE s = 'name' || i || '@example.org') x;
SELECT hybrid_index_check('hot_learn_s', true);
DROP TABLE hot, hot_before, hot_several, hot_log, hot_float, hot_long, hot_learn;
