--
-- REINDEX while hybridindex.replace_btree is on: btree indexes become hybrid.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET client_min_messages = notice;
\set SHOW_CONTEXT never
SET session_preload_libraries = 'hybridindex';
LOAD 'hybridindex';
CREATE SCHEMA rx;
SET search_path = rx, public;
CREATE FUNCTION kinds() RETURNS TABLE (index text, am name, valid bool) LANGUAGE sql AS $$
	SELECT c.relname::text, amname, indisvalid FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
	WHERE c.relnamespace = 'rx'::regnamespace ORDER BY c.relname COLLATE "C" $$;
CREATE TABLE t (id int PRIMARY KEY, s text, n int, EXCLUDE USING btree (n WITH =));
CREATE TABLE f (id int REFERENCES t);
INSERT INTO t SELECT i, 'value ' || i % 50, i * 2 FROM generate_series(1, 500) i;
INSERT INTO f SELECT generate_series(1, 100);
CREATE INDEX t_s ON t (s);
CREATE INDEX t_hash ON t USING hash (s);
CREATE INDEX t_expr ON t ((n + 1)) WHERE n > 10;
CREATE INDEX t_hybrid ON t USING hybrid (s, id);
COMMENT ON INDEX t_s IS 'kept';

-- off: as ever
REINDEX TABLE t;
SELECT * FROM kinds();
SET hybridindex.replace_btree = on;

-- one index, in a transaction that is rolled back, then one that is not
BEGIN;
REINDEX INDEX t_s;
SELECT * FROM kinds() WHERE am = 'hybrid';
ROLLBACK;
REINDEX INDEX t_s;
REINDEX (VERBOSE off) INDEX t_hybrid;
REINDEX INDEX t_hash;
SELECT * FROM kinds() WHERE am <> 'btree';
SELECT obj_description('t_s'::regclass);

-- what the server refuses stays refused
REINDEX INDEX no_such_index;
REINDEX INDEX t;
REINDEX TABLE t_s;
REINDEX (wrong) INDEX t_expr;
REINDEX (TABLESPACE no_such_space) INDEX t_expr;
BEGIN;
REINDEX INDEX CONCURRENTLY t_expr;
ROLLBACK;
BEGIN;
REINDEX SCHEMA rx;
ROLLBACK;
SET SESSION ROLE pg_monitor;
REINDEX INDEX rx.t_expr;
RESET ROLE;
BEGIN READ ONLY;
REINDEX INDEX t_expr;
ROLLBACK;
SELECT * FROM kinds() WHERE am = 'btree';

-- concurrently: all but the exclusion constraint; the others are built anew
CREATE TEMP TABLE files AS SELECT relname, relfilenode FROM pg_class WHERE relname IN ('t_hash', 't_hybrid');
REINDEX TABLE CONCURRENTLY t;
SELECT * FROM kinds();
SELECT count(*) FROM files JOIN pg_class USING (relname) WHERE files.relfilenode <> pg_class.relfilenode;
REINDEX TABLE CONCURRENTLY t;
REINDEX TABLE t;
SELECT * FROM kinds();
SELECT hyb_check('t');
INSERT INTO t VALUES (7);
INSERT INTO f VALUES (-7);

-- in a function, with what has gone before in the transaction
SELECT count(*) FROM (SELECT hybrid_revert(i) FROM unnest('{t_pkey,t_s,t_expr}'::regclass[]) i) s;
CREATE FUNCTION reindex() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO t SELECT i, 'new', i * 2 FROM generate_series(1001, 1100) i;
	REINDEX TABLE t;
END $$;
SELECT reindex();
SELECT * FROM kinds() WHERE am = 'btree';
SELECT hyb_check('t');
CREATE FUNCTION reindex_schema() RETURNS void LANGUAGE plpgsql AS 'BEGIN REINDEX SCHEMA rx; END';
SELECT reindex_schema();

-- triggers that are still to be fired, and a cursor: then it stays
CREATE TABLE later (id int REFERENCES t DEFERRABLE INITIALLY DEFERRED);
SET hybridindex.replace_btree = off;
CREATE INDEX later_id ON later (id);
SET hybridindex.replace_btree = on;
BEGIN;
INSERT INTO later VALUES (1);
REINDEX TABLE later;
COMMIT;
BEGIN;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT id FROM later WHERE id > 0;
FETCH c;
SAVEPOINT s;
REINDEX INDEX later_id;
ROLLBACK TO s;
FETCH c;
COMMIT;
SELECT * FROM kinds() WHERE index ~ '^later';
DROP TABLE later;

-- partitions: with the index that theirs is attached to, alone they stay
CREATE TABLE p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (100) TO (200);
INSERT INTO p SELECT i % 200, i FROM generate_series(1, 1000) i;
SET hybridindex.replace_btree = off;
CREATE INDEX p_b ON p (b);
CREATE INDEX p_1_own ON p_1 (b, a);
SET hybridindex.replace_btree = on;
REINDEX INDEX p_1_b_idx;
REINDEX TABLE p_1;
SELECT * FROM kinds() WHERE index ~ '^p';
\set SHOW_CONTEXT errors
BEGIN;
REINDEX INDEX p_b;
ROLLBACK;
\set SHOW_CONTEXT never
REINDEX INDEX p_b;
SELECT hybrid_revert('p_b');
REINDEX INDEX CONCURRENTLY p_b;
SELECT * FROM kinds() WHERE index ~ '^p';
SELECT hybrid_revert('p_b');
REINDEX TABLE p;
SELECT hyb_check('p_1'), hyb_check('p_2');

-- a schema: with an invalid index, temporary ones, one that cannot be hybrid
SELECT hybrid_revert(i) IS NULL AS reverted FROM unnest('{p_b,p_1_own,t_s,t_pkey}'::regclass[]) i;
CREATE TABLE d (k int);
INSERT INTO d VALUES (1), (1);
SET hybridindex.replace_btree = off;
CREATE UNIQUE INDEX CONCURRENTLY d_k ON d (k);
CREATE TABLE o (v tsvector);
CREATE INDEX o_v ON o (v);
CREATE TEMP TABLE tt (k int PRIMARY KEY);
CREATE MATERIALIZED VIEW m AS SELECT id, s FROM t;
CREATE UNIQUE INDEX m_id ON m (id);
SET hybridindex.replace_btree = on;
REINDEX INDEX CONCURRENTLY tt_pkey;
REINDEX SCHEMA CONCURRENTLY rx;
SELECT * FROM kinds();
DELETE FROM d;
REINDEX SCHEMA rx;
SELECT * FROM kinds() WHERE am = 'btree';
REINDEX INDEX d_k;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'tt_pkey';
SELECT hyb_check('t'), hyb_check('m'), hyb_check('p_1');

-- TABLESPACE builds once more; schemas of the server are no business of ours
SELECT hybrid_revert('t_s');
REINDEX (TABLESPACE pg_default) INDEX t_s;
REINDEX (TABLESPACE pg_default, CONCURRENTLY) TABLE m;
REINDEX INDEX pg_am_oid_index;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname IN ('t_s', 'm_id', 'pg_am_oid_index') ORDER BY 1;

-- who owns neither the schema nor the database, and may not use pg_toast
CREATE ROLE regress_rx;
GRANT USAGE, CREATE ON SCHEMA rx TO regress_rx;
CREATE SCHEMA rx_own AUTHORIZATION regress_rx;
SELECT current_database() AS database \gset
SET hybridindex.replace_btree = off;
SET ROLE regress_rx;
CREATE TABLE rx.theirs (id int PRIMARY KEY, s text);
CREATE INDEX theirs_s ON rx.theirs USING hash (s);
CREATE TABLE rx_own.theirs (id int PRIMARY KEY, s text);
SET hybridindex.replace_btree = on;
REINDEX SCHEMA rx;
\set VERBOSITY sqlstate
REINDEX DATABASE :"database";
\set VERBOSITY default
SELECT * FROM kinds() WHERE index ~ '^theirs';
REINDEX TABLE rx.theirs;
SELECT hybrid_revert('rx.theirs_pkey') IS NULL AS reverted;
REINDEX TABLE CONCURRENTLY rx.theirs;
SELECT * FROM kinds() WHERE index ~ '^theirs';
REINDEX SCHEMA rx_own;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid = 'rx_own.theirs_pkey'::regclass;
RESET ROLE;
RESET hybridindex.replace_btree;
SET client_min_messages = warning;
DROP SCHEMA rx, rx_own CASCADE;
DROP ROLE regress_rx;
