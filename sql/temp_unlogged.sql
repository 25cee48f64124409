--
-- Temporary and unlogged tables, and relations that come and go with their
-- transaction.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.merge_floor = 200;
CREATE TEMP TABLE tt (a int, b text) ON COMMIT PRESERVE ROWS;
CREATE UNIQUE INDEX tt_a ON tt USING hybrid (a);
CREATE INDEX tt_b ON tt USING hybrid (b);
INSERT INTO tt SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
CREATE FUNCTION tu_queries(tab text) RETURNS boolean LANGUAGE sql AS $$
	SELECT bool_and(hyb_same(replace(q, 'TAB', tab), p)) FROM (VALUES
		('SELECT a, b FROM TAB WHERE a BETWEEN 100 AND 250', 'index bitmap'), ('SELECT a FROM TAB WHERE b > ''c''', 'index bitmap'),
		('SELECT a FROM TAB ORDER BY a DESC', 'order order_only'), ('SELECT b FROM TAB ORDER BY b', 'order order_only')) v(q, p)
$$;
SELECT tu_queries('tt');
DELETE FROM tt WHERE a % 3 = 1;
SELECT hyb_error('INSERT INTO tt VALUES (3, ''dup'')');
INSERT INTO tt SELECT i, md5(i::text) FROM generate_series(5001, 7000) i;
SELECT tu_queries('tt');
VACUUM tt;
INSERT INTO tt SELECT -i, md5(i::text) FROM generate_series(1, 500) i;
SELECT tu_queries('tt'), hyb_check('tt');
SELECT hybrid_merge('tt_a') >= 0, hybrid_merge('tt_b') >= 0;
SELECT tu_queries('tt'), hyb_check('tt');
SELECT NOT tree_shared AS backend_memory FROM hybrid_index_stats('tt_a');
TRUNCATE tt;
SELECT tu_queries('tt');
INSERT INTO tt SELECT i, 'x' FROM generate_series(1, 100) i;
SELECT tu_queries('tt'), hyb_check('tt');

-- no worker can merge such an index: its session does, when a merge is due
SET hybridindex.merge_floor = 2000;
CREATE TEMP TABLE tm (k int);
CREATE INDEX tm_k ON tm USING hybrid (k);
INSERT INTO tm SELECT generate_series(1, 2600);
SELECT merges > 0 OR merge_running AS merging FROM hybrid_index_stats('tm_k');
DROP TABLE tm;

-- each row is found as it comes, the first one on each page of the log too
SET hybridindex.merge_floor = 100000;
CREATE TEMP TABLE tn (n numeric);
CREATE INDEX tn_n ON tn USING hybrid (n);
INSERT INTO tn SELECT generate_series(1, 5000);
SET enable_seqscan = off;
DO $$
BEGIN
	FOR i IN 5001 .. 7000 LOOP
		INSERT INTO tn VALUES (i);
		PERFORM FROM tn WHERE n = i;
		IF NOT FOUND THEN
			RAISE WARNING 'row % is not found', i;
		END IF;
	END LOOP;
END $$;
RESET enable_seqscan;
SELECT delta_pages > 8 AS pages, tree_entries > 6000 AS in_tree, NOT tree_shared AS backend_memory FROM hybrid_index_stats('tn_n');
SET hybridindex.merge_floor = 200;

-- rows vanish at commit
CREATE TEMP TABLE td (a int, b text) ON COMMIT DELETE ROWS;
CREATE INDEX td_a ON td USING hybrid (a);
CREATE INDEX td_b ON td USING hybrid (b);
BEGIN;
INSERT INTO td SELECT i, md5(i::text) FROM generate_series(1, 500) i;
SELECT tu_queries('td');
COMMIT;
SELECT tu_queries('td');
BEGIN;
INSERT INTO td SELECT i, md5(i::text) FROM generate_series(100, 700) i;
SELECT tu_queries('td'), hyb_check('td');
SAVEPOINT s;
INSERT INTO td SELECT i, md5(i::text) FROM generate_series(100, 700) i;
ROLLBACK TO s;
SELECT tu_queries('td'), hyb_check('td');
COMMIT;

-- unlogged, and changing persistence
CREATE UNLOGGED TABLE ul (a int, b text);
CREATE INDEX ul_a ON ul USING hybrid (a);
CREATE INDEX ul_b ON ul USING hybrid (b);
INSERT INTO ul SELECT i % 700, md5(i::text) FROM generate_series(1, 3000) i;
DELETE FROM ul WHERE a % 5 = 0;
VACUUM ul;
SELECT tu_queries('ul'), hyb_check('ul');
SELECT pg_relation_size('ul_a', 'init') > 0 AS init_fork;
SELECT hybrid_merge('ul_a') >= 0;
SELECT tu_queries('ul'), hyb_check('ul');
ALTER TABLE ul SET LOGGED;
INSERT INTO ul SELECT i % 800, md5(i::text) FROM generate_series(1, 500) i;
SELECT tu_queries('ul'), hyb_check('ul');
ALTER TABLE ul SET UNLOGGED;
INSERT INTO ul SELECT i % 900, md5(i::text) FROM generate_series(1, 500) i;
SELECT tu_queries('ul'), hyb_check('ul');

-- created, changed, rewritten and dropped inside transactions
BEGIN;
CREATE TABLE tx (a int, b text);
CREATE INDEX tx_a ON tx USING hybrid (a);
INSERT INTO tx SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
CREATE INDEX tx_b ON tx USING hybrid (b);
INSERT INTO tx SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
SELECT tu_queries('tx'), hyb_check('tx');
ROLLBACK;
BEGIN;
CREATE TABLE tx (a int, b text);
CREATE INDEX tx_a ON tx USING hybrid (a);
INSERT INTO tx SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
SAVEPOINT s;
CREATE INDEX tx_b ON tx USING hybrid (b);
ROLLBACK TO s;
CREATE INDEX tx_b ON tx USING hybrid (b);
SAVEPOINT s;
TRUNCATE tx;
INSERT INTO tx VALUES (1, 'one');
ROLLBACK TO s;
COMMIT;
INSERT INTO tx SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
SELECT tu_queries('tx'), hyb_check('tx');
ALTER TABLE tx ALTER a TYPE int8 USING a * 2;
SELECT tu_queries('tx'), hyb_check('tx');
BEGIN;
REINDEX TABLE tx;
INSERT INTO tx VALUES (0, 'rolled back');
ROLLBACK;
SELECT tu_queries('tx'), hyb_check('tx');
BEGIN;
DROP INDEX tx_a;
INSERT INTO tx VALUES (0, 'rolled back');
ROLLBACK;
SELECT tu_queries('tx'), hyb_check('tx');

DROP TABLE tt, tn, td, ul, tx;
DROP FUNCTION tu_queries;
