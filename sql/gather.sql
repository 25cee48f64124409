--
-- Statements that insert several rows gather their entries.  Each session that may
-- see the rows finds these entries, and they are gone with their rows.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE ga (id int, k int8, s text COLLATE "C");
CREATE INDEX ga_k ON ga USING hybrid (k);
CREATE INDEX ga_s ON ga USING hybrid (s) INCLUDE (id);
CREATE FUNCTION ga_right() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM hybrid_index_check('ga_k', true), hybrid_index_check('ga_s', true);
	RETURN hyb_same('SELECT id FROM ga WHERE k >= 0') AND hyb_same('SELECT id FROM ga WHERE s >= ''''');
END
$$;

-- one row, some, many pages, rows of different lengths
INSERT INTO ga VALUES (1, 1, 'a');
INSERT INTO ga VALUES (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd');
INSERT INTO ga SELECT i, i, md5(i::text) FROM generate_series(5, 4000) i;
INSERT INTO ga SELECT i, i, repeat(md5(i::text), i % 70) FROM generate_series(4001, 4200) i;
INSERT INTO ga SELECT i, NULL, NULL FROM generate_series(4201, 4300) i;
SELECT ga_right(), count(*) FROM ga;
UPDATE ga SET k = k + 10000 WHERE id % 7 = 0;
UPDATE ga SET s = s || 'x' WHERE k BETWEEN 100 AND 300;
SELECT ga_right(), count(*) FROM ga;

-- the statement's own functions and triggers read what it has inserted so far
CREATE TABLE gt (id int, k int8, before bigint);
CREATE INDEX gt_k ON gt USING hybrid (k);
CREATE TABLE gl (what text, n bigint);
CREATE FUNCTION gt_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.id % 300 < 3 THEN
		SELECT count(*) INTO NEW.before FROM gt WHERE k < NEW.k;
	END IF;
	RETURN NEW;
END
$$;
CREATE TRIGGER gt_before BEFORE INSERT ON gt FOR EACH ROW EXECUTE FUNCTION gt_before();
CREATE FUNCTION gt_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO gl SELECT 'statement', count(*) FROM gt WHERE k >= 0;
	RETURN NULL;
END
$$;
CREATE TRIGGER gt_after AFTER INSERT ON gt FOR EACH STATEMENT EXECUTE FUNCTION gt_after();
INSERT INTO gt SELECT i, i FROM generate_series(0, 1199) i;
SELECT id, before FROM gt WHERE before IS NOT NULL ORDER BY id;
SELECT * FROM gl;
DROP TRIGGER gt_before ON gt;

-- cursors see what was there when they were opened
BEGIN;
DECLARE old CURSOR FOR SELECT k FROM gt WHERE k > 1190 ORDER BY k;
FETCH old;
INSERT INTO gt SELECT i, i FROM generate_series(1200, 1210) i;
DECLARE new CURSOR FOR SELECT k FROM gt WHERE k > 1195 ORDER BY k;
FETCH ALL FROM old;
FETCH ALL FROM new;
COMMIT;

-- parallel workers read, too, by a plan that was made before
CREATE TABLE go (k int8);
INSERT INTO go SELECT i FROM generate_series(1, 2000) i;
ANALYZE go;
CREATE FUNCTION gt_count() RETURNS SETOF bigint LANGUAGE plpgsql
	SET enable_seqscan = on
	SET enable_hashjoin = off
	SET enable_mergejoin = off
	SET enable_material = off
	SET parallel_setup_cost = 0
	SET parallel_tuple_cost = 0
	SET min_parallel_table_scan_size = 0
	SET parallel_leader_participation = off
AS $$
BEGIN
	RETURN QUERY SELECT count(*) FROM go JOIN gt USING (k);
END
$$;
CREATE FUNCTION gt_parallel() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO gl SELECT 'workers', * FROM gt_count();
	RETURN NULL;
END
$$;
CREATE TRIGGER gt_parallel AFTER INSERT ON gt FOR EACH STATEMENT EXECUTE FUNCTION gt_parallel();
DROP TRIGGER gt_after ON gt;
TRUNCATE gt, gl;
INSERT INTO gt VALUES (1, 1);
INSERT INTO gt SELECT i, i FROM generate_series(2, 300) i;
SELECT * FROM gl;
DROP TRIGGER gt_parallel ON gt;

-- foreign keys
CREATE TABLE gp (id int PRIMARY KEY);
INSERT INTO gp SELECT generate_series(1, 50);
CREATE TABLE gf (id int, p int REFERENCES gp ON DELETE CASCADE);
CREATE INDEX gf_p ON gf USING hybrid (p);
BEGIN;
INSERT INTO gf SELECT i, 1 + i % 50 FROM generate_series(1, 500) i;
DELETE FROM gp WHERE id <= 10;
COMMIT;
SELECT count(*) FROM gf WHERE p > 0;
SELECT hybrid_index_check('gf_p', true);

-- subtransactions
CREATE FUNCTION ga_fails(lo int, hi int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ga SELECT i, i / (i - hi), 'fails' FROM generate_series(lo, hi) i;
	RETURN 'done';
EXCEPTION WHEN division_by_zero THEN
	RETURN 'failed';
END
$$;
BEGIN;
INSERT INTO ga SELECT i, i, 'outer' FROM generate_series(5001, 5050) i;
SELECT ga_fails(5051, 5100);
SAVEPOINT a;
INSERT INTO ga SELECT i, i, 'inner' FROM generate_series(5101, 5150) i;
SAVEPOINT b;
INSERT INTO ga SELECT i, i / (i - 5200), 'fails' FROM generate_series(5151, 5200) i;
ROLLBACK TO b;
INSERT INTO ga SELECT i, i, 'again' FROM generate_series(5151, 5200) i;
RELEASE a;
SELECT s, count(*) FROM ga WHERE s IN ('outer', 'fails', 'inner', 'again') GROUP BY s ORDER BY s;
COMMIT;
INSERT INTO ga SELECT 5200 + i, i, ga_fails(5301 + i, 5304 + i) FROM generate_series(1, 40) i;
VACUUM ga;
INSERT INTO ga SELECT i, i, 'reuse' FROM generate_series(5401, 5700) i;
SELECT ga_right(), count(*) FROM ga WHERE k >= 0;

-- ON CONFLICT of another index
CREATE UNIQUE INDEX ga_id ON ga (id);
INSERT INTO ga SELECT i, i + 1, 'nothing' FROM generate_series(5600, 5800) i ON CONFLICT DO NOTHING;
INSERT INTO ga SELECT i, i + 2, 'update' FROM generate_series(5750, 5900) i
	ON CONFLICT (id) DO UPDATE SET k = excluded.k, s = excluded.s;
SELECT s, count(*) FROM ga WHERE s IN ('nothing', 'update') GROUP BY s ORDER BY s;
INSERT INTO ga SELECT i, i, 'duplicate' FROM generate_series(5901, 6000) i UNION ALL SELECT 1, 1, 'duplicate';
SELECT count(*) FROM ga WHERE s = 'duplicate';
DROP INDEX ga_id;
SELECT ga_right(), count(*) FROM ga WHERE k >= 0;

-- exclusion constraints and unique indexes want every entry at once
CREATE TABLE ge (id int, k int8, CONSTRAINT ge_k EXCLUDE USING hybrid (k WITH =));
CREATE UNIQUE INDEX ge_id ON ge USING hybrid (id);
INSERT INTO ge VALUES (1, 1), (2, 2), (3, 3), (4, 2);
INSERT INTO ge VALUES (1, 1), (2, 2), (3, 3), (2, 4);
INSERT INTO ge VALUES (1, 1), (2, 2), (3, 3);
SELECT hybrid_index_check('ge_k', true), hybrid_index_check('ge_id', true), count(*) FROM ge;

-- DDL in the same transaction
BEGIN;
INSERT INTO ga SELECT i, i, 'ddl' FROM generate_series(7001, 7100) i;
SAVEPOINT a;
REINDEX INDEX ga_k;
INSERT INTO ga SELECT i, i, 'ddl' FROM generate_series(7101, 7200) i;
ROLLBACK TO a;
INSERT INTO ga SELECT i, i, 'ddl' FROM generate_series(7201, 7300) i;
ALTER TABLE ga ADD COLUMN extra int DEFAULT 0;
REINDEX TABLE ga;
INSERT INTO ga SELECT i, i, 'ddl' FROM generate_series(7301, 7400) i;
COMMIT;
SELECT ga_right(), count(*) FROM ga WHERE s = 'ddl';
BEGIN;
INSERT INTO ga SELECT i, i, 'truncated' FROM generate_series(8001, 8100) i;
TRUNCATE ga;
INSERT INTO ga SELECT i, i, 'truncated' FROM generate_series(8001, 8050) i;
TRUNCATE ga;
INSERT INTO ga SELECT i, i, 'kept' FROM generate_series(8001, 8020) i;
COMMIT;
SELECT ga_right(), count(*) FROM ga WHERE k > 0;

-- COPY, also of frozen rows
BEGIN;
TRUNCATE ga;
COPY ga (id, k, s) FROM stdin (FREEZE);
1	11	x
2	12	y
3	13	z
\.
COPY ga (id, k, s) FROM stdin;
4	14	x
5	15	y
6	16	z
\.
SELECT id, k FROM ga WHERE k > 11 ORDER BY k;
COMMIT;
SELECT ga_right(), count(*) FROM ga WHERE k > 0;

-- more partitions than memory is for; one after the other, and all at once
CREATE TABLE gx (id int, k int8) PARTITION BY LIST (id);
DO $$
BEGIN
	FOR i IN 0 .. 89 LOOP
		EXECUTE format('CREATE TABLE gx%s PARTITION OF gx FOR VALUES IN (%s)', i, i);
	END LOOP;
END
$$;
CREATE INDEX gx_k ON gx USING hybrid (k);
INSERT INTO gx SELECT i / 100, i FROM generate_series(0, 8999) i;
INSERT INTO gx SELECT (i * 7919) % 90, i FROM generate_series(0, 8999) i;
SELECT count(*), count(DISTINCT k), sum(k) FROM gx WHERE k >= 0;
SELECT count(hybrid_index_check(indexrelid, true)::text) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
WHERE relname ~ '^gx[0-9]+_k_idx$' AND relkind = 'i';

-- relations without WAL
CREATE TEMP TABLE gm (id int, k int8);
CREATE INDEX gm_k ON gm USING hybrid (k);
CREATE UNLOGGED TABLE gu (id int, k int8);
CREATE INDEX gu_k ON gu USING hybrid (k);
INSERT INTO gm SELECT i, i FROM generate_series(1, 2000) i;
INSERT INTO gu SELECT i, i FROM generate_series(1, 2000) i;
BEGIN;
INSERT INTO gm SELECT i, i / (i - 2100) FROM generate_series(2001, 2100) i;
ROLLBACK;
SELECT hybrid_index_check('gm_k', true), hybrid_index_check('gu_k', true);
SELECT (SELECT count(*) FROM gm WHERE k > 0), (SELECT count(*) FROM gu WHERE k > 0);

DROP TABLE ga, gt, gl, go, gf, gp, ge, gx, gm, gu;
DROP FUNCTION ga_right, ga_fails, gt_before, gt_after, gt_count, gt_parallel;

-- keys of a unique index are compared within the statement
CREATE TABLE gk (k int);
CREATE UNIQUE INDEX gk_k ON gk USING hybrid (k);
INSERT INTO gk VALUES (1), (2), (3), (2);
INSERT INTO gk SELECT i FROM generate_series(1, 300) i;
UPDATE gk SET k = k + 300;
UPDATE gk SET k = k / 2 WHERE k > 500;
SELECT count(*), count(DISTINCT k), hyb_check('gk') FROM gk;
DROP TABLE gk;

-- Entries of one row for several indexes that are not unique wait for each other.
-- The last index leaves out two rows of three, the one before it fails where e is 0.
CREATE TABLE gw (id int, a int, b text COLLATE "C", c int, d int, e int, p int);
CREATE UNIQUE INDEX gw_id ON gw USING hybrid (id);
CREATE INDEX gw_a ON gw USING hybrid (a);
CREATE INDEX gw_b ON gw USING hybrid (b) INCLUDE (id);
CREATE INDEX gw_c ON gw USING hybrid (c DESC, a);
CREATE INDEX gw_d ON gw USING hybrid (d);
CREATE INDEX gw_e ON gw USING hybrid ((100 / e));
CREATE INDEX gw_p ON gw USING hybrid (p) WHERE p IS NOT NULL;
CREATE FUNCTION gw_row(i int, e int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO gw VALUES (i, i, md5(i::text), i, i, e, CASE i % 3 WHEN 0 THEN i END);
END
$$;
CREATE FUNCTION gw_tries(i int, e int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM gw_row(i, e);
	RETURN 'done';
EXCEPTION WHEN division_by_zero THEN
	RETURN 'failed';
END
$$;
-- rows by each index; one number if all agree but for the last index
CREATE FUNCTION gw_found() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n	bigint[] := ARRAY[(SELECT count(*) FROM gw WHERE id > 0), (SELECT count(*) FROM gw WHERE a > 0),
		(SELECT count(*) FROM gw WHERE b >= ''), (SELECT count(*) FROM gw WHERE c > 0),
		(SELECT count(*) FROM gw WHERE d > 0), (SELECT count(*) FROM gw WHERE 100 / e >= 0)];
BEGIN
	RETURN (SELECT string_agg(DISTINCT x::text, ' ') FROM unnest(n) x) || ', ' || (SELECT count(*) FROM gw WHERE p > 0);
END
$$;

-- pages fill up; trees are there, and entries have to be in them or announced
DO $$
BEGIN
	FOR i IN 1 .. 2500 LOOP
		PERFORM gw_row(i, 1 + i % 7);
		IF i % 100 < 4 AND gw_found() <> i || ', ' || i / 3 THEN
			RAISE 'after % rows: %', i, gw_found();
		END IF;
	END LOOP;
END
$$;
SELECT gw_found(), hyb_check('gw');
SELECT hyb_same('SELECT id FROM gw WHERE c BETWEEN 100 AND 200') AND hyb_same('SELECT a FROM gw WHERE b < ''3''');

-- an error comes before the row's last index; other rows get the places
SELECT gw_row(3001, 0);
SELECT gw_tries(3002, 0), gw_tries(3003, 1), gw_tries(3004, 1), gw_tries(3005, 0);
BEGIN;
SELECT gw_row(3011);
SAVEPOINT a;
SELECT gw_row(3012), gw_row(3013);
ROLLBACK TO a;
SELECT gw_row(3014), gw_tries(3015, 0);
SELECT gw_found();
ROLLBACK TO a;
SELECT gw_tries(3016, 1);
RELEASE a;
COMMIT;
SELECT gw_found();
VACUUM gw;
SELECT count(gw_row(i)) FROM generate_series(3021, 3030) i;
SELECT gw_found(), hyb_check('gw');

-- what a row's own statement reads
CREATE FUNCTION gw_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT count(*) FROM gw WHERE a = NEW.a) <> 1 OR (SELECT count(*) FROM gw WHERE d = NEW.d) <> 1 THEN
		RAISE 'row % is not found', NEW.id;
	END IF;
	RETURN NULL;
END
$$;
CREATE TRIGGER gw_after AFTER INSERT ON gw FOR EACH ROW EXECUTE FUNCTION gw_after();
SELECT count(gw_row(i)) FROM generate_series(3031, 3060) i;
WITH w AS (INSERT INTO gw VALUES (3061, 3061, 'w', 3061, 3061, 1, 3061) RETURNING id)
INSERT INTO gw SELECT id + 1, id + 1, 'x', id + 1, id + 1, 1, NULL FROM w;
SELECT gw_found(), hyb_check('gw');
DROP TRIGGER gw_after ON gw;

-- updates, also of a row that the statement's transaction has made
UPDATE gw SET c = c + 10000 WHERE id = 77;
UPDATE gw SET p = 1 WHERE id = 3029;
BEGIN;
SELECT gw_row(3063);
UPDATE gw SET e = 2, b = 'updated' WHERE a = 3063;
SELECT c, b FROM gw WHERE 100 / e = 50 AND d = 3063;
COMMIT;
SELECT gw_found(), hyb_check('gw');
-- an index that comes or goes
DROP INDEX gw_p;
SELECT gw_row(3064), gw_row(3065);
CREATE INDEX gw_p2 ON gw USING hybrid (p);
SELECT gw_row(3066), gw_row(3067);
SELECT gw_found(), hyb_check('gw');
DROP TABLE gw;
-- keys with a NULL are in conflict with none; pages of the two logs are full at other times
CREATE TABLE gn (k int, v text);
CREATE UNIQUE INDEX gn_k ON gn USING hybrid (k);
CREATE INDEX gn_v ON gn USING hybrid (v);
DO $$
BEGIN
	FOR i IN 1 .. 4000 LOOP INSERT INTO gn VALUES (CASE WHEN i % 50 = 0 THEN i END, 'v' || i); END LOOP;
END
$$;
SELECT hyb_check('gn'), hyb_same('SELECT v FROM gn WHERE k IS NULL'), hyb_same('SELECT k FROM gn WHERE v > ''v5''');
DROP TABLE gn;
DROP FUNCTION gw_row, gw_tries, gw_found, gw_after;
