--
-- hybrid_index_check(index, true) finds an entry that leads to a row of another
-- key, or to a row that the index has nothing to do with, wherever it lies.
-- Chains of row versions and dead rows are not damage.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
CREATE TABLE ch (k int, n numeric, s text COLLATE "C", pad int) WITH (autovacuum_enabled = off);
CREATE INDEX ch_k ON ch USING hybrid (k);
CREATE INDEX ch_n ON ch USING hybrid (n);
CREATE INDEX ch_include ON ch USING hybrid (k) INCLUDE (s);
CREATE INDEX ch_expression ON ch USING hybrid (lower(s), k);
CREATE INDEX ch_partial ON ch USING hybrid (k) WHERE pad = 0;
CREATE INDEX ch_hope ON ch USING hybrid (s text_hope_ops) WITH (filter = 'surf');

-- Rows deleted and removed by VACUUM, and others inserted in their place,
-- while the indexes are hidden from both.
CREATE FUNCTION ch_ready(ready boolean) RETURNS void LANGUAGE sql AS $$
	UPDATE pg_index SET indisready = ready, indisvalid = ready WHERE indrelid = 'ch'::regclass;
	UPDATE pg_class SET relhasindex = true WHERE oid = 'ch'::regclass;
$$;
CREATE FUNCTION ch_checks() RETURNS TABLE (index name, alone text, with_heap text) LANGUAGE sql AS $$
	SELECT c.relname,
		regexp_replace(hyb_error(format('SELECT hybrid_index_check(%L)', c.relname)), '(block|offset) \d+', '\1 N', 'g'),
		regexp_replace(hyb_error(format('SELECT hybrid_index_check(%L, true)', c.relname)), '(block|offset) \d+', '\1 N', 'g')
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'ch'::regclass ORDER BY 1
$$;

-- no damage: versions in chains, dead ones, some that VACUUM has removed
INSERT INTO ch SELECT i, i, 'Name ' || i, 0 FROM generate_series(1, 300) i;
UPDATE ch SET pad = pad WHERE k % 3 = 0;
UPDATE ch SET pad = pad WHERE k % 6 = 0;
DELETE FROM ch WHERE k % 5 = 0;
SELECT * FROM ch_checks();
SELECT hyb_quiet();
VACUUM ch;
INSERT INTO ch SELECT i, i, 'again ' || i, i % 2 FROM generate_series(1000, 1050) i;
BEGIN;
UPDATE ch SET pad = 0 WHERE k % 7 = 0;
SAVEPOINT s;
UPDATE ch SET n = n + 0.5 WHERE k % 4 = 0;
ROLLBACK TO s;
UPDATE ch SET pad = pad WHERE k % 7 = 0;
SELECT * FROM ch_checks();
COMMIT;
SELECT hybrid_merge(indexrelid::regclass) > 0 AS merged FROM pg_index WHERE indrelid = 'ch'::regclass;
DELETE FROM ch WHERE k % 11 = 0;
SELECT * FROM ch_checks();

-- an entry of the static stage, then one of the log
TRUNCATE ch;
INSERT INTO ch SELECT i, i, 'Name ' || i, 0 FROM generate_series(1, 20) i;
SELECT hybrid_merge(indexrelid::regclass) > 0 AS merged FROM pg_index WHERE indrelid = 'ch'::regclass;
SELECT hyb_quiet();
SELECT ch_ready(false);
DELETE FROM ch WHERE k = 7;
VACUUM ch;
SELECT ch_ready(true);
INSERT INTO ch VALUES (77, 77, 'other', 0);
SELECT ctid, k FROM ch WHERE k = 77;
SELECT * FROM ch_checks();

TRUNCATE ch;
INSERT INTO ch SELECT i, i, 'Name ' || i, 0 FROM generate_series(1, 20) i;
SELECT hyb_quiet();
SELECT ch_ready(false);
DELETE FROM ch WHERE k = 7;
VACUUM ch;
SELECT ch_ready(true);
INSERT INTO ch VALUES (77, 77, 'other', 0);
SELECT * FROM ch_checks();

-- Rows that differ in a little only: the equal key of other bytes, the column
-- that is INCLUDEd, the column of the predicate.
TRUNCATE ch;
INSERT INTO ch SELECT i, i, 'Name ' || i, 0 FROM generate_series(1, 20) i;
SELECT hyb_quiet();
SELECT ch_ready(false);
DELETE FROM ch WHERE k = 7;
VACUUM ch;
SELECT ch_ready(true);
INSERT INTO ch VALUES (7, 7.0, 'NAME 7', 1);
SELECT * FROM ch_checks();

DROP TABLE ch;
DROP FUNCTION ch_ready, ch_checks;
