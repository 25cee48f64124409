--
-- Random DML on a table whose columns have indexes of hybrid_hot, so that its updates are
-- HOT: with savepoints, rollbacks, row locks, cursors, vacuums, merges and builds.  After
-- each round every access path gives the sequential scan's answer.  Servers before 16
-- have no such access method (hot_random_1.out).
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SELECT current_setting('server_version_num')::int < 160000 AS too_old \gset
\if :too_old
SELECT amname FROM pg_am WHERE amname = 'hybrid_hot';
\quit
\endif

SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 100;
SET hybridindex.merge_step_pages = 2;
-- a is the only indexed column whose updates are not HOT
CREATE TABLE hr (a int, k int, t text COLLATE "C", n numeric, h text COLLATE "C", p int, w int, d int, pad text)
	WITH (fillfactor = 40, autovacuum_enabled = off);
CREATE INDEX hr_a ON hr (a);
CREATE INDEX hr_k ON hr USING hybrid_hot (k) WITH (merge_ratio = 3);
CREATE INDEX hr_t ON hr USING hybrid_hot (t);
CREATE INDEX hr_n ON hr USING hybrid_hot (n);
CREATE INDEX hr_h ON hr USING hybrid_hot (h text_hope_ops);
CREATE INDEX hr_part ON hr USING hybrid_hot (p) WHERE w % 3 = 0;
CREATE INDEX hr_expr ON hr USING hybrid_hot ((k % 10), length(t));
CREATE INDEX hr_two ON hr USING hybrid_hot (w, d DESC NULLS LAST);
CREATE SEQUENCE hr_ids;

CREATE FUNCTION hr_insert(n int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO hr SELECT nextval('hr_ids'), CASE WHEN random() < 0.95 THEN floor(random() * 400)::int END,
		repeat(chr(97 + floor(random() * 5)::int), floor(random() * 4)::int) || floor(random() * 40),
		CASE WHEN random() < 0.95 THEN round((random() * 60 - 30)::numeric, floor(random() * 3)::int) END,
		'key ' || floor(random() * 300), floor(random() * 100), floor(random() * 12), nullif(floor(random() * 9), 8), repeat('p', 60)
	FROM generate_series(1, n) i
$$;

CREATE FUNCTION hr_merge(share float) RETURNS bigint LANGUAGE sql AS $$
	SELECT sum(hybrid_merge(i::regclass)) FROM unnest('{hr_k,hr_t,hr_n,hr_h,hr_part,hr_expr,hr_two}'::text[]) i WHERE random() < share
$$;

-- One random statement; z chooses the rows.
CREATE FUNCTION hr_statement() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	x	float := random();
	z	int := floor(random() * 97)::int;
BEGIN
	IF x < 0.14 THEN
		UPDATE hr SET k = (k + 7) % 400 WHERE a % 11 = z % 11;
	ELSIF x < 0.22 THEN
		-- keys that come back when this is repeated
		UPDATE hr SET k = 400 - k, d = 7 - d WHERE a % 13 = z % 13;
	ELSIF x < 0.29 THEN
		UPDATE hr SET t = chr(97 + z % 5) || z WHERE a % 13 = z % 13;
	ELSIF x < 0.36 THEN
		UPDATE hr SET h = 'key ' || (z * 3 + a) % 300 WHERE a % 9 = z % 9;
	ELSIF x < 0.40 THEN
		-- equal keys of other bytes
		UPDATE hr SET n = n * 1.0 WHERE a % 7 = z % 7 AND scale(n) < 9;
	ELSIF x < 0.44 THEN
		UPDATE hr SET n = trim_scale(-n) WHERE n BETWEEN -z / 5.0 AND z / 7.0;
	ELSIF x < 0.52 THEN
		-- into the partial index and out of it, with an equal key
		UPDATE hr SET w = (w + 1) % 12 WHERE a % 5 = z % 5;
	ELSIF x < 0.56 THEN
		UPDATE hr SET p = 100 - p WHERE w % 3 = 0 AND p BETWEEN z AND z + 15;
	ELSIF x < 0.60 THEN
		UPDATE hr SET k = NULL WHERE k BETWEEN z * 4 AND z * 4 + 9;
	ELSIF x < 0.64 THEN
		UPDATE hr SET k = k, t = t, w = w WHERE a % 17 = z % 17;
	ELSIF x < 0.67 THEN
		UPDATE hr SET pad = repeat('q', z) WHERE a % 6 = z % 6;
	ELSIF x < 0.70 THEN
		-- these are not HOT
		UPDATE hr SET a = nextval('hr_ids'), k = 5 WHERE a % 19 = z % 19;
	ELSIF x < 0.80 THEN
		PERFORM hr_insert(z);
	ELSIF x < 0.86 THEN
		DELETE FROM hr WHERE a % 5 = z % 5 AND random() < 0.4;
	ELSIF x < 0.92 THEN
		-- a locker and an updater make a multixact, if this is in a subtransaction
		PERFORM FROM hr WHERE a % 5 = z % 5 FOR SHARE;
		UPDATE hr SET k = k + 1 WHERE a % 10 = z % 10;
	ELSIF x < 0.95 THEN
		PERFORM FROM hr WHERE k BETWEEN z AND z + 30 FOR UPDATE;
	ELSE
		PERFORM hr_merge(0.4);
	END IF;
END $$;

-- Runs a statement inside savepoints.  Some savepoints are rolled back.
CREATE FUNCTION hr_statements() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM hr WHERE a % 4 = 1 AND random() < 0.3 FOR KEY SHARE;
	PERFORM hr_statement();
	BEGIN
		PERFORM hr_statement();
		PERFORM hr_statement();
		IF random() < 0.4 THEN
			RAISE EXCEPTION 'back' USING ERRCODE = 'HY001';
		END IF;
	EXCEPTION WHEN SQLSTATE 'HY001' THEN
		PERFORM hr_statement();
	END;
	IF random() < 0.2 THEN
		RAISE EXCEPTION 'back' USING ERRCODE = 'HY001';
	END IF;
EXCEPTION WHEN SQLSTATE 'HY001' THEN
	NULL;
END $$;

-- Transactions, so that old row versions are pruned between them.
CREATE PROCEDURE hr_round(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		PERFORM hr_statements();
		COMMIT;
	END LOOP;
END $$;

-- A cursor returns what its snapshot sees, whatever comes between.
CREATE FUNCTION hr_cursor() RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
	z		int := floor(random() * 300)::int;
	query	text := format('SELECT k FROM hr WHERE k BETWEEN %s AND %s ORDER BY k', z, z + 80);
	want	int[];
	got		int[];
	one		int;
	c		refcursor;
BEGIN
	EXECUTE format('SELECT array(%s)', query) INTO want;
	OPEN c FOR EXECUTE query;
	LOOP
		FETCH c INTO one;
		EXIT WHEN NOT FOUND;
		got := got || one;
		IF cardinality(got) % 20 = 1 THEN
			PERFORM hr_statements();
		END IF;
	END LOOP;
	RETURN coalesce(got, '{}') = want;
END $$;

CREATE FUNCTION hr_compare() RETURNS boolean LANGUAGE sql AS $$
	SELECT bool_and(hyb_same(format(q, z, z + 40, z % 10), paths)) FROM CAST(floor(random() * 360) AS int) z, (VALUES
		('SELECT a, k FROM hr WHERE k = %1$s', 'index bitmap'), ('SELECT a, k FROM hr WHERE k BETWEEN %1$s AND %2$s', 'index bitmap'),
		('SELECT a, k FROM hr WHERE k IN (%1$s, %2$s, 3, 5, 390)', 'index bitmap'), ('SELECT a FROM hr WHERE k IS NULL', 'index bitmap'),
		('SELECT k FROM hr ORDER BY k', 'order'), ('SELECT k FROM hr ORDER BY k DESC', 'order'),
		('SELECT max(k) FROM hr WHERE k < %1$s', 'index'),
		('SELECT a, t FROM hr WHERE t BETWEEN ''a%3$s'' AND ''b%3$s''', 'index bitmap'), ('SELECT a, t FROM hr WHERE t LIKE ''aa%3$s%%''', 'index bitmap'),
		('SELECT a FROM hr WHERE n = %3$s', 'index bitmap'), ('SELECT a, n FROM hr WHERE n > %3$s - 5 AND n <= %3$s + 5.5', 'index bitmap'),
		('SELECT trim_scale(n) FROM hr ORDER BY n', 'order'),
		('SELECT a FROM hr WHERE h = ''key %1$s''', 'index bitmap'), ('SELECT a, h FROM hr WHERE h BETWEEN ''key %3$s'' AND ''key %1$s''', 'index bitmap'),
		('SELECT a FROM hr WHERE w %% 3 = 0 AND p = %3$s * 4', 'index bitmap'), ('SELECT a, p FROM hr WHERE w %% 3 = 0 AND p < 30', 'index bitmap'),
		('SELECT a FROM hr WHERE k %% 10 = %3$s AND length(t) = 3', 'index bitmap'), ('SELECT a FROM hr WHERE k %% 10 < 3', 'index bitmap'),
		('SELECT a, d FROM hr WHERE w = %3$s AND d < 5', 'index bitmap'), ('SELECT w, d FROM hr ORDER BY w DESC, d NULLS FIRST', 'order'),
		('SELECT x.a, y.a FROM hr x JOIN hr y ON x.k = y.k WHERE x.k BETWEEN %1$s AND %2$s',
			-- it has no marks, and 19 counts Materialize as disabled
			CASE WHEN current_setting('server_version_num')::int < 190000 THEN 'merge nest' ELSE 'nest' END)) AS v (q, paths)
$$;

SELECT setseed(0.1147);
\pset tuples_only on
SELECT hr_insert(800);
SELECT 'CALL hr_round(8)', 'SELECT hr_compare()',
	'BEGIN', 'SELECT hr_statements()', 'SELECT hr_compare()', 'SELECT hr_cursor()', CASE WHEN r % 4 = 3 THEN 'ROLLBACK' ELSE 'COMMIT' END,
	CASE r % 6 WHEN 1 THEN 'VACUUM (FREEZE) hr' WHEN 3 THEN 'REINDEX INDEX CONCURRENTLY hr_part' WHEN 5 THEN 'REINDEX INDEX hr_k' ELSE 'VACUUM hr' END,
	-- the end of the table is cut off, and entries lead beyond it
	CASE WHEN r % 5 = 2 THEN 'DELETE FROM hr WHERE ctid > (SELECT max(ctid) FROM (SELECT ctid FROM hr LIMIT 500) x)' END,
	CASE WHEN r % 5 = 2 THEN 'VACUUM (TRUNCATE) hr' END,
	CASE r % 10 WHEN 4 THEN 'SELECT hybrid_convert(''hr_t'')' WHEN 5 THEN 'SELECT hybrid_convert_hot(''hr_t'')' END,
	'SELECT hr_compare(), hyb_check(''hr'')'
FROM generate_series(1, 12) r \gexec
\pset tuples_only off

-- Was anything tested?  Most updates were HOT.
SELECT pg_stat_force_next_flush() \gset ignored_
SELECT count(*) > 300 AS rows_left FROM hr;
SELECT n_tup_hot_upd > 5000 AS many, n_tup_hot_upd > n_tup_upd * 0.6 AS most FROM pg_stat_user_tables WHERE relname = 'hr';
SELECT min(merges) > 3 AS merged_often FROM unnest('{hr_n,hr_h,hr_expr,hr_two}'::regclass[]) i, hybrid_index_stats(i);

-- Merges drop stale entries: each row has had nine keys, and an index far fewer entries.
SELECT hyb_quiet() \gset ignored_
DO $$
BEGIN
	FOR i IN 1 .. 8 LOOP
		UPDATE hr SET k = k + 1001, t = repeat('t', i) || t, n = n + 200, h = h || i, p = p + 100, d = d + 10;
		COMMIT;
		PERFORM hr_merge(1);
		COMMIT;
	END LOOP;
END $$;
SELECT hr_compare(), hyb_check('hr');
CREATE TABLE hr_entries AS SELECT i, static_entries + dynamic_entries AS n
	FROM unnest('{hr_k,hr_t,hr_n,hr_h,hr_part,hr_expr,hr_two}'::text[]) i, hybrid_index_stats(i::regclass);
REINDEX TABLE hr;
SELECT bool_and(n BETWEEN static_entries AND 4 * static_entries) AS dropped, bool_or(n > static_entries) AS some_left
FROM hr_entries, hybrid_index_stats(i::regclass);
SELECT hr_compare(), hyb_check('hr');

DROP TABLE hr, hr_entries;
DROP SEQUENCE hr_ids;
DROP FUNCTION hr_insert, hr_merge, hr_statement, hr_statements, hr_cursor, hr_compare;
DROP PROCEDURE hr_round;
