--
-- What our SQL functions refuse, and which roles they refuse.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE ROLE regress_hyb_other;
CREATE TABLE er (a int);
CREATE INDEX er_h ON er USING hybrid (a);
CREATE INDEX er_b ON er USING btree (a) WHERE a < 0;
CREATE VIEW er_v AS SELECT 1;
INSERT INTO er SELECT i FROM generate_series(1, 100) i;
SELECT f, o, hyb_error(format('SELECT %s(%L::regclass)', f, o))
FROM unnest('{hybrid_merge,hybrid_index_check,hybrid_index_stats}'::text[]) f, unnest('{er,er_b,er_v,er_h}'::text[]) o;
SELECT hyb_error('SELECT hybrid_merge(0::regclass)'),
	hyb_error('SELECT hybrid_index_check(4000000000::regclass)');
SELECT hyb_error('SELECT hybrid_index_stats(4000000000::regclass)'),
	hyb_error('SELECT hybrid_dictionary_info(4000000000::regclass)');
SELECT hyb_error('SELECT hybrid_merge(NULL)'), hyb_error('SELECT hybrid_index_stats(NULL)');
SET ROLE regress_hyb_other;
SELECT hyb_error('SELECT hybrid_merge(''er_h'')'), hyb_error('SELECT hybrid_index_check(''er_h'')');
RESET ROLE;
GRANT SELECT ON er TO regress_hyb_other;
SET ROLE regress_hyb_other;
SELECT hyb_error('SELECT hybrid_merge(''er_h'')');
SET enable_seqscan = off;
SELECT count(*) FROM er WHERE a > 50;
RESET ROLE;
RESET enable_seqscan;

-- read-only transactions
BEGIN READ ONLY;
SELECT hyb_same('SELECT a FROM er WHERE a > 50') FROM (SELECT 1) x WHERE hyb_error('DROP INDEX er_b') LIKE '25006%';
ROLLBACK;
DROP INDEX er_b;
BEGIN READ ONLY;
SELECT hyb_same('SELECT a FROM er WHERE a > 50'), hyb_check('er');
ROLLBACK;

-- an index that is not valid is left alone
CREATE TABLE er_dup AS SELECT 1 AS a FROM generate_series(1, 2);
CREATE UNIQUE INDEX CONCURRENTLY er_dup_i ON er_dup USING hybrid (a);
SELECT hyb_error('SELECT hybrid_merge(''er_dup_i'')'), hyb_error('SELECT hybrid_index_check(''er_dup_i'')');
INSERT INTO er_dup VALUES (2);
VACUUM er_dup;
UPDATE pg_index SET indisready = true WHERE indexrelid = 'er_dup_i'::regclass;
SELECT hyb_error('SELECT hybrid_index_check(''er_dup_i'')');
DROP TABLE er_dup;

-- partitioned and foreign things have no pages
CREATE TABLE er_part (a int) PARTITION BY RANGE (a);
CREATE INDEX er_part_i ON er_part USING hybrid (a);
CREATE TABLE er_part1 PARTITION OF er_part FOR VALUES FROM (0) TO (100);
CREATE TABLE er_part2 PARTITION OF er_part FOR VALUES FROM (100) TO (200);
INSERT INTO er_part SELECT i FROM generate_series(0, 199) i;
SELECT hyb_error('SELECT hybrid_merge(''er_part_i'')');
SELECT hyb_same('SELECT a FROM er_part WHERE a BETWEEN 90 AND 110'), hyb_same('SELECT a FROM er_part ORDER BY a', 'order'),
	hyb_check('er_part1'), hyb_check('er_part2');

DROP TABLE er_part, er CASCADE;
DROP ROLE regress_hyb_other;

-- Privileges: the owner maintains.  A role that may read the table sees statistics,
-- unless a policy hides rows from it.
CREATE ROLE regress_hyb_owner;
CREATE ROLE regress_hyb_reader;
CREATE ROLE regress_hyb_monitor IN ROLE pg_stat_scan_tables;
CREATE ROLE regress_hyb_none;
CREATE ROLE regress_hyb_stats IN ROLE pg_read_all_stats;
CREATE TABLE pr (a int, s text COLLATE "C");
INSERT INTO pr SELECT i, 'x' || i FROM generate_series(1, 500) i;
CREATE INDEX pr_a ON pr USING hybrid (a);
CREATE INDEX pr_s ON pr USING hybrid (s text_hope_ops);
ALTER TABLE pr OWNER TO regress_hyb_owner;
GRANT SELECT ON pr TO regress_hyb_reader;
CREATE FUNCTION pr_try() RETURNS TABLE (f text, answer text) LANGUAGE sql AS $$
	SELECT f, CASE WHEN e = 'no error' THEN e ELSE left(e, 5) END
	FROM unnest(ARRAY['SELECT hybrid_merge(''pr_a'')', 'SELECT hybrid_index_check(''pr_a'', true)',
		'SELECT hybrid_index_stats(''pr_a'')', 'SELECT hybrid_dictionary_info(''pr_s'')',
		'SELECT 1 / count(*) FROM hybrid_indexes WHERE indexname = ''pr_a''',
		'SELECT * FROM hybrid_merge_progress', 'SELECT * FROM hybrid_memory']) f, hyb_error(f) e
$$;
SET ROLE regress_hyb_owner;
SELECT * FROM pr_try();
SET ROLE regress_hyb_stats;
SELECT * FROM pr_try() WHERE f ~ 'progress|memory';
RESET ROLE;
-- a build tells no key of rows that row security hides from the owner
CREATE TABLE pr_dup AS SELECT 1 AS a FROM generate_series(1, 2);
ALTER TABLE pr_dup OWNER TO regress_hyb_owner;
ALTER TABLE pr_dup ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT hyb_error('CREATE UNIQUE INDEX ON pr_dup USING hybrid (a)');
DROP TABLE pr_dup;
SET ROLE regress_hyb_reader;
SELECT * FROM pr_try();
SET ROLE regress_hyb_monitor;
SELECT * FROM pr_try();
SET ROLE regress_hyb_none;
SELECT * FROM pr_try();
RESET ROLE;

-- a role that may maintain a table (from 17 on) sees statistics
SELECT current_setting('server_version_num')::integer >= 170000 AS has_maintain \gset
\if :has_maintain
GRANT MAINTAIN ON pr TO regress_hyb_none;
\endif
SET ROLE regress_hyb_none;
SELECT f, (answer = 'no error') = (f ~ 'progress' OR :'has_maintain' AND f !~ 'memory') AS as_documented
FROM pr_try();
RESET ROLE;
\if :has_maintain
REVOKE MAINTAIN ON pr FROM regress_hyb_none;
\endif

ALTER TABLE pr ENABLE ROW LEVEL SECURITY;
SET ROLE regress_hyb_reader;
SELECT * FROM pr_try();
RESET ROLE;
ALTER TABLE pr FORCE ROW LEVEL SECURITY;
SET ROLE regress_hyb_owner;
SELECT * FROM pr_try();
RESET ROLE;
DROP FUNCTION pr_try;
DROP TABLE pr;
REVOKE CREATE ON SCHEMA public FROM regress_hyb_reader;
DROP ROLE regress_hyb_owner, regress_hyb_reader, regress_hyb_monitor, regress_hyb_stats, regress_hyb_none;
