--
-- Random mixed DML with savepoints, rollbacks, vacuums and merges in small
-- steps; after each round every access path gives the sequential scan's answer.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.merge_floor = 300;
SET hybridindex.merge_step_pages = 2;
CREATE TABLE dr (id int, k int, s text COLLATE "C", n numeric, d timestamp, pad text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX dr_id ON dr USING hybrid (id);
CREATE INDEX dr_k ON dr USING hybrid (k) WITH (merge_ratio = 3);
CREATE INDEX dr_sk ON dr USING hybrid (s, k DESC NULLS LAST);
CREATE INDEX dr_n ON dr USING hybrid (n, pad);
CREATE INDEX dr_d ON dr USING hybrid (d DESC) INCLUDE (pad, k);
CREATE INDEX dr_part ON dr USING hybrid (k, s) WHERE id % 3 = 0;
CREATE INDEX dr_expr ON dr USING hybrid (length(s), (k % 10));
CREATE SEQUENCE dr_ids;

CREATE FUNCTION dr_row(OUT k int, OUT s text, OUT n numeric, OUT d timestamp, OUT pad text) LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN random() < 0.95 THEN floor(random() ^ 3 * 500)::int END,
		CASE WHEN random() < 0.95 THEN repeat(chr(97 + floor(random() * 5)::int), floor(random() * 4)::int) || floor(random() * 40) END,
		CASE WHEN random() < 0.95 THEN round((random() * 100 - 50)::numeric, floor(random() * 3)::int) END,
		CASE WHEN random() < 0.95 THEN timestamp '2024-01-01' + floor(random() * 1000) * interval '1 hour' END,
		repeat('p', floor(random() * 30)::int)
$$;

-- One random statement.
CREATE FUNCTION dr_statement() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	x	float := random();
	p	int := floor(random() * 500)::int;
BEGIN
	IF x < 0.45 THEN
		INSERT INTO dr SELECT nextval('dr_ids'), r.* FROM generate_series(1, 1 + floor(random() * 60)::int) i, LATERAL (SELECT (dr_row()).* WHERE i > 0) r;
	ELSIF x < 0.60 THEN
		UPDATE dr SET k = (k + 7) % 500, s = s || 'u' WHERE id % 37 = p % 37;
	ELSIF x < 0.65 THEN
		UPDATE dr SET pad = pad || '+' WHERE k = p;
	ELSIF x < 0.72 THEN
		UPDATE dr SET n = -n, d = d + interval '1 day' WHERE k BETWEEN p AND p + 10;
	ELSIF x < 0.76 THEN
		UPDATE dr SET id = nextval('dr_ids') WHERE id % 41 = p % 41;
	ELSIF x < 0.90 THEN
		DELETE FROM dr WHERE id % 23 = p % 23 AND random() < 0.5;
	ELSIF x < 0.93 THEN
		DELETE FROM dr WHERE k BETWEEN p AND p + 20;
	ELSIF x < 0.96 THEN
		-- a duplicate: must fail, if the table is not empty
		INSERT INTO dr SELECT id FROM dr WHERE id >= p LIMIT 1;
		IF FOUND THEN
			RAISE EXCEPTION 'duplicate accepted' USING ERRCODE = 'assert_failure';
		END IF;
	ELSE
		PERFORM hybrid_merge(i) FROM unnest('{dr_id,dr_k,dr_sk,dr_n,dr_d,dr_part,dr_expr}'::regclass[]) i WHERE random() < 0.3;
	END IF;
END $$;

-- Statements, some inside savepoints, of which some are rolled back.
CREATE FUNCTION dr_round(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		BEGIN
			PERFORM dr_statement();
			IF random() < 0.2 THEN
				BEGIN
					PERFORM dr_statement();
					PERFORM dr_statement();
					IF random() < 0.5 THEN
						RAISE EXCEPTION 'back' USING ERRCODE = 'HY001';
					END IF;
				EXCEPTION WHEN SQLSTATE 'HY001' OR unique_violation THEN
					NULL;
				END;
			END IF;
			IF random() < 0.2 THEN
				RAISE EXCEPTION 'back' USING ERRCODE = 'HY001';
			END IF;
		EXCEPTION WHEN SQLSTATE 'HY001' OR unique_violation THEN
			NULL;
		END;
	END LOOP;
END $$;

CREATE FUNCTION dr_compare() RETURNS boolean LANGUAGE sql AS $$
	SELECT bool_and(ok) FROM (
		SELECT hyb_same(q) FROM unnest(array[
			'SELECT * FROM dr WHERE id BETWEEN 100 AND 700', 'SELECT * FROM dr WHERE id = 250',
			'SELECT * FROM dr WHERE id = ANY (array(SELECT generate_series(1, 2000, 7)))',
			'SELECT * FROM dr WHERE k = 3', 'SELECT * FROM dr WHERE k < 30', 'SELECT * FROM dr WHERE k IS NULL',
			'SELECT * FROM dr WHERE k > 100 AND k <= 200', 'SELECT * FROM dr WHERE s = ''aa3''',
			'SELECT * FROM dr WHERE s LIKE ''b%'' AND k > 20', 'SELECT * FROM dr WHERE s IS NULL AND k < 50',
			'SELECT * FROM dr WHERE n > 0 AND pad < ''pppppppp''', 'SELECT * FROM dr WHERE n = 5', 'SELECT * FROM dr WHERE n IS NULL AND pad > ''pppp''',
			'SELECT * FROM dr WHERE d >= ''2024-02-01''', 'SELECT * FROM dr WHERE k = 8 AND id % 3 = 0',
			'SELECT * FROM dr WHERE k < 20 AND s > ''c'' AND id % 3 = 0', 'SELECT * FROM dr WHERE length(s) = 3 AND k % 10 = 4']) q
		UNION ALL
		SELECT hyb_same(q, 'order') FROM unnest(array[
			'SELECT id FROM dr ORDER BY id', 'SELECT k FROM dr ORDER BY k DESC',
			'SELECT s, k FROM dr ORDER BY s, k DESC NULLS LAST', 'SELECT trim_scale(n), pad FROM dr WHERE n < 10 ORDER BY n DESC, pad DESC']) q
		UNION ALL
		SELECT hyb_same(q, 'order_only') FROM unnest(array[
			'SELECT id FROM dr ORDER BY id DESC', 'SELECT k FROM dr ORDER BY k', 'SELECT d FROM dr ORDER BY d DESC',
			'SELECT s, k FROM dr WHERE s > ''b'' ORDER BY s DESC, k NULLS FIRST', 'SELECT d FROM dr ORDER BY d LIMIT 100']) q
		UNION ALL
		SELECT hyb_same(q, 'only') FROM unnest(array[
			'SELECT d, pad, k FROM dr WHERE d < ''2024-01-10''', 'SELECT s, k FROM dr WHERE s = ''c5''', 'SELECT n, pad FROM dr WHERE n BETWEEN -3 AND 4.5']) q
		UNION ALL
		SELECT hyb_same('SELECT x.id, y.id FROM dr x JOIN dr y ON x.k = y.k WHERE x.k BETWEEN 50 AND 250', 'merge')
	) x(ok)
$$;

SELECT setseed(0.4711);
\pset tuples_only on
SELECT 'BEGIN', 'SELECT dr_round(12)', 'SELECT dr_compare()',
	CASE WHEN r % 7 = 3 THEN 'ROLLBACK' ELSE 'COMMIT' END,
	CASE WHEN r % 6 = 4 THEN 'VACUUM (FREEZE) dr' WHEN r % 2 = 0 THEN 'VACUUM dr' END,
	'SELECT dr_compare(), hyb_check(''dr'')'
FROM generate_series(1, 20) r \gexec
\pset tuples_only off
SELECT count(*) > 100 AS enough FROM dr;
SELECT min(merges) > 5 AS merged_often FROM unnest('{dr_id,dr_k,dr_sk,dr_n,dr_d,dr_part,dr_expr}'::regclass[]) i, hybrid_index_stats(i);
REINDEX TABLE dr;
SELECT dr_compare(), hyb_check('dr');

DROP TABLE dr;
DROP SEQUENCE dr_ids;
DROP FUNCTION dr_row, dr_statement, dr_round, dr_compare;
