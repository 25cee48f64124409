--
-- An update takes what its look-up has found of the key for its uniqueness check.
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
CREATE TABLE f (id int8, s text COLLATE "C", n int) WITH (autovacuum_enabled = off, fillfactor = 20);
INSERT INTO f SELECT 2 * i, 'key ' || i, 0 FROM generate_series(1, 1000) i;
CREATE UNIQUE INDEX f_id ON f USING hybrid (id);
CREATE UNIQUE INDEX f_s ON f USING hybrid (s);
CREATE INDEX f_n ON f USING hybrid (n);
-- Searches of checks that found entries of the key, of each index
CREATE FUNCTION searches(OUT id bigint, OUT s bigint) LANGUAGE sql AS $$
	SELECT (SELECT unique_present FROM hybrid_index_stats('f_id')), (SELECT unique_present FROM hybrid_index_stats('f_s'));
$$;
CREATE FUNCTION update_all(by text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 1000 LOOP
		EXECUTE format('UPDATE f SET n = n + 1 WHERE %s', by) USING i;
	END LOOP;
END $$;
SELECT * FROM searches();
-- by the one key: the other one's checks search
SELECT update_all('id = 2 * $1::int8');
SELECT id <= 2 AS id, s FROM searches();
SELECT update_all('s = ''key '' || $1');
SELECT id, s <= 1002 AS s FROM searches();
SELECT hybrid_index_check('f_id', true), hybrid_index_check('f_s', true), hybrid_index_check('f_n', true);
SELECT count(*), min(n), max(n) FROM f;
-- A trigger looks a key up that is not there, or only dead, and gives it to the row
CREATE FUNCTION other_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM n FROM f WHERE id = 1;
	IF NEW.n = -2 THEN INSERT INTO f VALUES (1, 'one', 0); END IF;
	IF NEW.n < 0 THEN NEW.id := 1; END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER f_other BEFORE UPDATE ON f FOR EACH ROW EXECUTE FUNCTION other_key();
UPDATE f SET n = -1 WHERE id = 2;
SELECT * FROM f WHERE id IN (1, 2);
DELETE FROM f WHERE id = 1;
UPDATE f SET n = -2 WHERE id = 4;
UPDATE f SET n = -1 WHERE id = 4;
UPDATE f SET n = -1 WHERE id = 6;
SELECT id, n FROM f WHERE id IN (1, 4, 6);
BEGIN;
DELETE FROM f WHERE id = 1;
UPDATE f SET n = -1 WHERE id = 6;
ROLLBACK;
SELECT id, n FROM f WHERE id IN (1, 4, 6);
SELECT hybrid_index_check('f_id', true);
-- What was looked up before a REINDEX does not count
BEGIN;
SELECT n FROM f WHERE id = 8;
REINDEX INDEX f_id;
UPDATE f SET n = 8 WHERE s = 'key 4';
COMMIT;
SELECT hybrid_index_check('f_id', true);
-- nor before the end of its subtransaction, whose lock on the table goes with it
SELECT unique_present AS before FROM hybrid_index_stats('f_id') \gset
BEGIN;
SAVEPOINT a;
SELECT n FROM f WHERE id = 10;
ROLLBACK TO a;
UPDATE f SET n = 10 WHERE s = 'key 5';
COMMIT;
SELECT unique_present - :before AS searches FROM hybrid_index_stats('f_id');
DROP TABLE f;
