--
-- A queue: its dead entries lie side by side where each scan begins, and are
-- passed over.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SET enable_sort = off;
-- a worker's snapshot would keep rows from being dead to all
SET hybridindex.background_merge = off;
CREATE TABLE queue (state text COLLATE "C", run_at int, id int) WITH (autovacuum_enabled = off);
CREATE INDEX queue_next ON queue USING hybrid (state, run_at) INCLUDE (id);
CREATE FUNCTION first_job(direction text DEFAULT 'ASC') RETURNS SETOF int LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'SELECT run_at FROM queue WHERE state = ''new'' ORDER BY run_at ' || direction || ' LIMIT 1';
END $$;
-- Does a scan read few pages?  The first one finds dead rows, the second one leaves
-- of dead entries.
CREATE FUNCTION cheap(direction text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM first_job(direction), first_job(direction);
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT run_at FROM queue WHERE state = ''new'' ORDER BY run_at ' ||
		direction || ' LIMIT 1' INTO plan;
	RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int < 5;
END $$;

-- in the log
INSERT INTO queue SELECT 'new', i, i FROM generate_series(1, 3000) i;
DELETE FROM queue WHERE run_at BETWEEN 1 AND 2900;
SELECT hyb_quiet();
SELECT first_job(), first_job('DESC');
-- a job comes among those that are gone, and goes
INSERT INTO queue VALUES ('new', 1500, 1500);
SELECT first_job(), first_job('DESC');
DELETE FROM queue WHERE run_at = 1500;
SELECT hyb_quiet();
SELECT first_job(), first_job();
DELETE FROM queue;
SELECT first_job(), first_job('DESC'), first_job('DESC');

-- in leaves
INSERT INTO queue SELECT 'new', i, hashint4(i) FROM generate_series(1, 20000) i ORDER BY hashint4(i);
INSERT INTO queue SELECT 'old', i, i FROM generate_series(1, 100) i;
SELECT hybrid_merge('queue_next') > 0 AS merged;
SELECT leaf_pages > 8 AS leaves FROM hybrid_index_stats('queue_next');
DELETE FROM queue WHERE state = 'new' AND (run_at <= 9000 OR run_at > 11000);
SELECT hyb_quiet();
SELECT first_job(), first_job('DESC'), cheap('ASC'), cheap('DESC');
-- ranges that begin before a stretch, and in it
SELECT run_at FROM queue WHERE state = 'new' AND run_at <= 10500 ORDER BY run_at DESC LIMIT 1;
SELECT run_at FROM queue WHERE state = 'new' AND run_at <= 19000 ORDER BY run_at DESC LIMIT 1;
SELECT run_at FROM queue WHERE state = 'new' AND run_at >= 9500 ORDER BY run_at LIMIT 1;
-- in the log, then in a leaf
INSERT INTO queue VALUES ('new', 4000, 4000), ('new', 16000, 16000);
SELECT first_job(), first_job('DESC');
SELECT hybrid_merge('queue_next') > 0 AS merged;
SELECT first_job(), first_job('DESC');
-- a scan that turns round behind a stretch, and one within it
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT run_at FROM queue WHERE state = 'new' ORDER BY run_at;
FETCH 3 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH 2 FROM c;
CLOSE c;
COMMIT;
SELECT count(*), min(run_at), max(run_at) FROM queue WHERE state = 'new' AND run_at BETWEEN 3000 AND 8000;
SELECT count(*) FROM queue WHERE state = 'new' AND run_at BETWEEN 1000 AND 3000;
SELECT count(*) FROM queue WHERE state = 'new' AND run_at < 4000;
-- a stretch ends where the range does
DELETE FROM queue WHERE state = 'new';
SELECT first_job(), first_job(), first_job('DESC'), first_job('DESC');
SELECT count(*) FROM queue WHERE state >= 'new';
SELECT count(*) FROM queue WHERE state >= 'new';
INSERT INTO queue VALUES ('new', 5, 5);
SELECT hybrid_merge('queue_next') > 0 AS merged;
SELECT first_job(), first_job('DESC');

-- VACUUM's tombstones are passed over as well
VACUUM queue;
SELECT first_job(), first_job('DESC');
-- and leaves that have some, in which there is no room for hints
INSERT INTO queue SELECT 'new', i, hashint4(i) FROM generate_series(10, 2000) i ORDER BY hashint4(i);
SELECT hybrid_merge('queue_next') > 0 AS merged;
DELETE FROM queue WHERE run_at % 700 < 20;
VACUUM queue;
DELETE FROM queue WHERE run_at < 1900;
SELECT hyb_quiet();
SELECT first_job(), first_job(), cheap('ASC');
-- Merges put entries where a backend remembers that all is dead.  Blocks of roots come
-- again, so the backend looks after each merge, after each second and after each third.
CREATE TABLE again (state int, run_at int, pad text) WITH (autovacuum_enabled = off);
CREATE INDEX again_next ON again USING hybrid (state, run_at) INCLUDE (pad);
INSERT INTO again SELECT i % 3 + 1, i / 3, md5(i::text) || md5((-i)::text) FROM generate_series(1, 30000) i;
SELECT hybrid_merge('again_next') > 0 AS merged;
SELECT leaf_pages > 120 AS leaves FROM hybrid_index_stats('again_next');
DELETE FROM again WHERE run_at < 9990;
SELECT hyb_quiet();
CREATE FUNCTION first_again(s int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT run_at FROM again WHERE state = s ORDER BY run_at LIMIT 1);
END $$;
SELECT first_again(s), first_again(s) FROM generate_series(1, 3) s;
DO $$
BEGIN
	FOR i IN 1 .. 40 LOOP
		INSERT INTO again SELECT s, 9900 - 240 * i, '' FROM generate_series(1, 3) s;
		PERFORM hybrid_merge('again_next');
		FOR s IN 1 .. 3 LOOP
			IF i % s = 0 AND first_again(s) <> 9900 - 240 * i THEN
				RAISE WARNING 'merge %: the first of state % is %', i, s, first_again(s);
			END IF;
		END LOOP;
	END LOOP;
END $$;
SELECT state, count(*), min(run_at) FROM again GROUP BY state ORDER BY state;
DROP TABLE again;
DROP FUNCTION first_again;
RESET enable_sort;
SELECT hyb_check('queue');
SELECT hyb_same('SELECT * FROM queue WHERE state >= ''a''', 'index bitmap'),
	hyb_same('SELECT state, run_at FROM queue WHERE state >= ''a'' ORDER BY state, run_at', 'order order_only');
DROP TABLE queue;
DROP FUNCTION first_job, cheap;
