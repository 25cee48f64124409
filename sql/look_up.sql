--
-- Look-ups of whole keys in unique indexes, which go a short way.  They return what a
-- scan of the table returns: in every form of key, at each end of leaves, levels and
-- the log, with several row versions, and where the general way takes over.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
CREATE TABLE look (id int8, u uuid, s text COLLATE "C", a int2, b date, v int, w int) WITH (autovacuum_enabled = off);
CREATE FUNCTION look_row(i int) RETURNS look LANGUAGE sql AS $$
	SELECT i, md5(i::text)::uuid, 'key ' || i, i % 100, date '2000-01-01' + i / 100, i, 0;
$$;
INSERT INTO look SELECT (look_row(2 * i)).* FROM generate_series(1, 2000) i;
CREATE UNIQUE INDEX look_id ON look USING hybrid (id);
CREATE UNIQUE INDEX look_u ON look USING hybrid (u DESC) INCLUDE (v);
CREATE UNIQUE INDEX look_s ON look USING hybrid (s);
CREATE UNIQUE INDEX look_ab ON look USING hybrid (a, b DESC);
CREATE INDEX look_w ON look USING hybrid (w);
ANALYZE look;
-- Keys from 1 to n: how many rows have each index's look-ups found, and the right ones?
CREATE FUNCTION look_all(n int) RETURNS TABLE (index text, rows bigint, "right" bigint) LANGUAGE plpgsql AS $$
DECLARE
	got look;
	k look;
	q text;
BEGIN
	FOREACH index IN ARRAY ARRAY['id = $1.id', 'u = $1.u', 's = $1.s', 'a = $1.a AND b = $1.b'] LOOP
		rows := 0; "right" := 0;
		FOR i IN 1 .. n LOOP
			k := look_row(i);
			FOR got IN EXECUTE 'SELECT * FROM look WHERE ' || index USING k LOOP
				rows := rows + 1;
				"right" := "right" + (got.id = i AND got.v = i)::int;
			END LOOP;
		END LOOP;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM look_all(4010);
-- in the log, below, between and above what is static
INSERT INTO look SELECT (look_row(2 * i + 1)).* FROM generate_series(1, 100) i;
INSERT INTO look SELECT (look_row(i)).* FROM generate_series(4001, 4200) i;
SELECT * FROM look_all(4210);
-- in two levels
SET hybridindex.merge_floor = 50;
SELECT hybrid_merge(i) IS NOT NULL FROM unnest('{look_id,look_u,look_s,look_ab}'::regclass[]) i;
INSERT INTO look SELECT (look_row(2 * i + 1)).* FROM generate_series(101, 150) i;
SELECT * FROM look_all(4210);
-- Constants of other types, no values, and values that no column can have
SELECT v FROM look WHERE id = 20::int2;
SELECT v FROM look WHERE id = 20::numeric;
SELECT v FROM look WHERE a = 70000 AND b = '2000-01-01';
SELECT v FROM look WHERE a = 20::int8 AND b = timestamp '2000-01-01';
SELECT v FROM look WHERE s = 'key 20'::name;
SELECT v FROM look WHERE s = repeat('key 20', 100);
PREPARE by_id(int8) AS SELECT v FROM look WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_id(NULL);
EXECUTE by_id(20);
-- a join looks up with and without values, in turn
SELECT count(*), count(look.v), sum(look.v) FROM
	(SELECT nullif(i, i / 3 * 3)::int8 AS k FROM generate_series(1, 600) i) AS l LEFT JOIN look ON look.id = l.k;
-- Several row versions: each snapshot sees its own
CREATE FUNCTION look_update(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP UPDATE look SET w = w + 1 WHERE id IN (40, 4200); END LOOP;
END $$;
SELECT look_update(3);
SELECT id, v, w FROM look WHERE id = 40 UNION ALL SELECT id, v, w FROM look WHERE u = md5('4200')::uuid;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT w FROM look WHERE id = 40;
SAVEPOINT a;
SELECT look_update(20);
SELECT w FROM look WHERE id = 40 UNION ALL SELECT w FROM look WHERE u = md5('4200')::uuid;
ROLLBACK TO a;
SELECT w FROM look WHERE id = 40 UNION ALL SELECT w FROM look WHERE u = md5('4200')::uuid;
COMMIT;
SELECT look_update(20);
SELECT w FROM look WHERE id = 40 UNION ALL SELECT w FROM look WHERE u = md5('4200')::uuid;
-- The first look-up leaves hints for dead row versions: the second one visits none
CREATE FUNCTION look_buffers(q text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || q INTO plan;
	RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::int + (plan->0->'Plan'->>'Shared Read Blocks')::int;
END $$;
SELECT hybrid_merge('look_id') IS NOT NULL;
SELECT look_buffers('SELECT v FROM look WHERE id = 40') > look_buffers('SELECT v FROM look WHERE id = 40') AS fewer;
SELECT w FROM look WHERE id = 40;
-- the same of entries in the log
UPDATE look SET w = w + 1 WHERE id > 60;
DO $$ BEGIN FOR i IN 1 .. 3 LOOP UPDATE look SET w = w + 1 WHERE id = 100; END LOOP; END $$;
CREATE TABLE look_cost AS SELECT 1 AS n, look_buffers('SELECT v FROM look WHERE id = 100') AS buffers;
INSERT INTO look_cost SELECT 2, look_buffers('SELECT v FROM look WHERE id = 100');
INSERT INTO look_cost SELECT 3, look_buffers('SELECT v FROM look WHERE id = 100');
SELECT max(buffers) FILTER (WHERE n = 1) > max(buffers) FILTER (WHERE n = 3) AS fewer FROM look_cost;
DELETE FROM look WHERE id = 42;
SELECT v FROM look WHERE id = 42;
SELECT v FROM look WHERE id = 42;
INSERT INTO look SELECT (look_row(42)).*;
SELECT v FROM look WHERE id = 42;
VACUUM (INDEX_CLEANUP on) look;
SELECT * FROM look_all(4210);
-- and the same in a leaf that has tombstones
CREATE TABLE look_tombs (id int8, v int) WITH (autovacuum_enabled = off);
INSERT INTO look_tombs SELECT i, i FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX look_tombs_id ON look_tombs USING hybrid (id);
DELETE FROM look_tombs WHERE id = 54;
VACUUM (INDEX_CLEANUP on) look_tombs;
SELECT static_tombstones FROM hybrid_index_stats('look_tombs_id');
DELETE FROM look_tombs WHERE id = 52;
SELECT look_buffers('SELECT v FROM look_tombs WHERE id = 52') > look_buffers('SELECT v FROM look_tombs WHERE id = 52') AS fewer;
DROP TABLE look_tombs;
-- Four entries of each key, which leaves end between
BEGIN;
UPDATE look SET w = w + 1;
UPDATE look SET w = w + 1;
UPDATE look SET w = w + 1;
SELECT hybrid_merge(i) IS NOT NULL FROM unnest('{look_id,look_u,look_s,look_ab}'::regclass[]) i;
SELECT * FROM look_all(4210);
ROLLBACK;
SELECT * FROM look_all(4210);
-- Cursors turn round, and come back from the end
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT v FROM look WHERE id = 44;
FETCH NEXT c;
FETCH PRIOR c;
FETCH NEXT c;
FETCH NEXT c;
FETCH NEXT c;
FETCH PRIOR c;
FETCH PRIOR c;
FETCH LAST c;
FETCH FIRST c;
FETCH BACKWARD 2 c;
FETCH FORWARD 2 c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT v FROM look WHERE id = 43000;
FETCH NEXT c;
FETCH PRIOR c;
FETCH NEXT c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT v FROM look WHERE id = 44;
FETCH LAST c;
FETCH PRIOR c;
CLOSE c;
COMMIT;
-- A deferred constraint lets two rows in for a while
CREATE TABLE look_deferred (id int8, v int);
INSERT INTO look_deferred SELECT i, i FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX look_deferred_id ON look_deferred USING hybrid (id);
ALTER TABLE look_deferred ADD UNIQUE USING INDEX look_deferred_id DEFERRABLE;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO look_deferred SELECT 44, i FROM generate_series(1001, 1003) i;
DECLARE c SCROLL CURSOR FOR SELECT v FROM look_deferred WHERE id = 44;
FETCH FORWARD 3 c;
FETCH BACKWARD 2 c;
FETCH FORWARD 10 c;
FETCH BACKWARD 1 c;
FETCH FORWARD 1 c;
FETCH BACKWARD ALL c;
ROLLBACK;
DROP TABLE look_deferred;
-- each look-up is one scan, also if the general way takes over
SELECT pg_stat_force_next_flush();
SELECT idx_scan AS before FROM pg_stat_user_indexes WHERE indexrelname = 'look_id' \gset
SELECT v FROM look WHERE id = 46;
UPDATE look SET w = w + 1 WHERE id = 46;
SELECT v FROM look WHERE id = 46;
SELECT v FROM look WHERE id = 46;
SELECT pg_stat_force_next_flush();
SELECT idx_scan - :before AS scans FROM pg_stat_user_indexes WHERE indexrelname = 'look_id';
-- a partial index, one that has learned codes, and one that is not unique
CREATE UNIQUE INDEX look_part ON look USING hybrid (v) WHERE w = 0;
SELECT v FROM look WHERE v = 48 AND w = 0;
SELECT v FROM look WHERE v = 40 AND w = 0;
CREATE UNIQUE INDEX look_hope ON look USING hybrid ((s || '!') text_hope_ops);
SELECT v FROM look WHERE s || '!' = 'key 48!';
SELECT count(*) FROM look WHERE w = 0;
-- indexes that are not unique: keys of some rows, of more than a look-up keeps, and of NULL
CREATE TABLE look_some (k int, m int, v int) WITH (autovacuum_enabled = off);
INSERT INTO look_some SELECT i / 3, i % 7, i FROM generate_series(0, 2999) i;
CREATE INDEX look_some_k ON look_some USING hybrid (k DESC);
CREATE INDEX look_some_m ON look_some USING hybrid (m, k);
INSERT INTO look_some SELECT i, i % 7, 10000 + i FROM generate_series(1, 1000, 2) i;
INSERT INTO look_some SELECT 600, i, 20000 + i FROM generate_series(1, 5) i;
INSERT INTO look_some VALUES (NULL, 1, -1);
DELETE FROM look_some WHERE v % 11 = 3;
CREATE FUNCTION look_some() RETURNS TABLE (rows bigint, "right" bigint, backward bigint) LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	got look_some;
BEGIN
	rows := 0; "right" := 0; backward := 0;
	FOR i IN 0 .. 1000 LOOP
		FOR got IN SELECT * FROM look_some WHERE k = i LOOP
			rows := rows + 1;
			"right" := "right" + (got.k = i)::int;
		END LOOP;
		OPEN c SCROLL FOR SELECT * FROM look_some WHERE k = i;
		MOVE FORWARD ALL FROM c;
		LOOP
			FETCH PRIOR FROM c INTO got;
			EXIT WHEN NOT FOUND;
			backward := backward + 1;
		END LOOP;
		CLOSE c;
		-- two columns, in between
		PERFORM v FROM look_some WHERE m = i % 7 AND k = i;
	END LOOP;
	RETURN NEXT;
END $$;
SELECT * FROM look_some();
SELECT count(*) FROM look_some WHERE k IS NOT NULL;
SELECT hybrid_merge('look_some_k') IS NOT NULL;
UPDATE look_some SET v = v + 1, k = k + 0 WHERE k % 5 = 0;
SELECT * FROM look_some();
SELECT v FROM look_some WHERE k IS NULL;
-- a merge join marks its place
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT count(*) FROM look_some a JOIN look_some b ON a.k = b.k WHERE a.k = 600 AND b.k = 600;
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT count(hybrid_index_check(i, true)) FROM unnest('{look_some_k,look_some_m}'::regclass[]) i;
DROP TABLE look_some;
-- serializable transactions and sessions that have gathered rows
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT v FROM look WHERE id = 48;
COMMIT;
CREATE FUNCTION look_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE INFO 'found %', (SELECT count(*) FROM look WHERE id = NEW.id);
	RETURN NEW;
END $$;
CREATE TRIGGER look_inserted AFTER INSERT ON look FOR EACH ROW EXECUTE FUNCTION look_inserted();
INSERT INTO look SELECT (look_row(i)).* FROM generate_series(5001, 5003) i;
SELECT count(hybrid_index_check(i, true)) FROM unnest('{look_id,look_u,look_s,look_ab,look_part,look_hope}'::regclass[]) i;
DROP TABLE look CASCADE;
