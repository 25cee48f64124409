--
-- Parallel index scans: plain and index-only, forward and backward, ranges,
-- arrays, skip scans, over static levels, the log, and both; by workers with
-- and without the leader; begun again.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE pl (k int8, a int4, b text COLLATE "C", c int4, pad text) WITH (parallel_workers = 3, autovacuum_enabled = off);
CREATE FUNCTION pl_fill(first int, last int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO pl SELECT nullif(hashint8extended(i, 1) % 100000, 7), hashint4(i) & 15, md5((i % 5000)::text), i % 1000, repeat('x', 20)
	FROM generate_series(first, last) i
$$;
SELECT pl_fill(1, 15000);
CREATE INDEX pl_k ON pl USING hybrid (k) INCLUDE (a);
CREATE INDEX pl_ab ON pl USING hybrid (a, b DESC);
CREATE INDEX pl_ac ON pl USING hybrid (a, c, k, b);
CREATE INDEX pl_b ON pl USING hybrid (b text_hope_ops);
ANALYZE pl;

CREATE TABLE pl_queries (n int, query text, node text);
INSERT INTO pl_queries SELECT row_number() OVER (), * FROM (VALUES
	('SELECT count(*), sum(k), count(k) AS keys FROM pl', 'Index Only Scan'),
	('SELECT count(*), sum(k) FROM pl WHERE k > 0', 'Index Only Scan'),
	('SELECT k, a FROM pl WHERE k BETWEEN -50000 AND 50000 ORDER BY k, a', 'Index Only Scan'),
	('SELECT k, pad FROM pl WHERE k > 1000 ORDER BY k', 'Index Scan'),
	('SELECT k, pad FROM pl WHERE k < 1000 ORDER BY k DESC', 'Index Scan'),
	('SELECT k FROM pl ORDER BY k DESC', 'Index Only Scan'),
	('SELECT k FROM pl WHERE k IS NULL', 'Index Only Scan'),
	('SELECT k FROM pl WHERE k > 200000', 'Index Only Scan'),
	('SELECT k FROM pl WHERE k > 5 AND k < 4', 'Index Only Scan'),
	((SELECT format('SELECT k, pad FROM pl WHERE k = ANY (%L::int8[])', array_agg(i * 7)) FROM generate_series(-3000, 3000) i), 'Index Scan'),
	('SELECT a, b FROM pl WHERE a = ANY (''{3,5,11,99}'') ORDER BY a, b DESC', 'Index Only Scan'),
	('SELECT a, b FROM pl WHERE a = ANY (''{3,5,11,99}'') AND b > ''8'' ORDER BY a DESC, b', 'Index Only Scan'),
	('SELECT a, b FROM pl WHERE b >= ''f'' ORDER BY a, b DESC', 'Index Only Scan'),
	('SELECT a, c FROM pl WHERE a > 2 AND c BETWEEN 100 AND 200', 'Index Only Scan'),
	('SELECT a, c, k FROM pl WHERE a = ANY (''{3,5,11,14}'') AND c > 200 AND k > 50000', 'Index Only Scan'),
	('SELECT a, count(*) FROM pl GROUP BY a ORDER BY a', 'Index Only Scan'),
	('SELECT b, pad FROM pl WHERE b < ''3'' ORDER BY b', 'Index Scan'),
	('SELECT min(b), max(b), count(DISTINCT b) FROM pl WHERE b > ''1''', 'Index Only Scan')) v(query, node);

-- Rows of a query, in order where it has one.
CREATE FUNCTION pl_rows(result text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows	text;
BEGIN
	EXECUTE format('SELECT md5(string_agg(q::text, '' '' ORDER BY %s)) || '' '' || count(*) FROM %I q',
		CASE WHEN query ~ 'ORDER BY [^()]*$' THEN 'ctid' ELSE 'q::text' END, result) INTO rows;
	RETURN rows;
END $$;
-- Is the index scan of a plan parallel?
CREATE FUNCTION pl_parallel(query text, node text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan	json;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_exists(plan::jsonb, '$.** ? (@."Node Type" == $n && @."Parallel Aware" == true)',
		jsonb_build_object('n', node));
END $$;
-- What each query gives, the plans being what the settings make them.
CREATE TABLE pl_results (round int, n int, want text, got text, parallel boolean);
CREATE FUNCTION pl_settings(parallel boolean) RETURNS void LANGUAGE sql AS $$
	SELECT set_config(name, CASE WHEN parallel THEN yes ELSE no END, false) FROM (VALUES
		('max_parallel_workers_per_gather', '3', '0'), ('enable_seqscan', 'off', 'on'), ('enable_indexscan', 'on', 'off'),
		('enable_indexonlyscan', 'on', 'off'), ('enable_bitmapscan', 'off', 'off'), ('enable_sort', 'off', 'on'),
		('cpu_tuple_cost', '1', '0.01'), ('parallel_setup_cost', '0', '1000'), ('parallel_tuple_cost', '0', '0.1'),
		('min_parallel_table_scan_size', '0', '8MB'), ('min_parallel_index_scan_size', '0', '512kB')) v(name, yes, no)
$$;
SET max_parallel_workers = 8;


-- The statements of a round, one by one, since functions run without workers.
CREATE FUNCTION pl_round(round int) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT 'DO ''BEGIN PERFORM pl_settings(false); END''' UNION ALL
	(SELECT format('CREATE TABLE pl_want_%s AS %s', n, query) FROM pl_queries ORDER BY n) UNION ALL
	SELECT 'DO ''BEGIN PERFORM pl_settings(true); END''' UNION ALL
	(SELECT format('CREATE TABLE pl_got_%s AS %s', n, query) FROM pl_queries ORDER BY n) UNION ALL
	SELECT format('INSERT INTO pl_results SELECT %s, n, pl_rows(''pl_want_'' || n, query), pl_rows(''pl_got_'' || n, query), pl_parallel(query, node) FROM pl_queries', round) UNION ALL
	SELECT 'DO ''BEGIN PERFORM pl_settings(false); END''' UNION ALL
	SELECT format('DROP TABLE pl_want_%1$s, pl_got_%1$s', n) FROM pl_queries
$$;
CREATE FUNCTION pl_report(this int, OUT queries bigint, OUT same bigint, OUT parallel bigint, OUT other text) LANGUAGE sql AS $$
	SELECT count(*), count(*) FILTER (WHERE want IS NOT DISTINCT FROM got), count(*) FILTER (WHERE r.parallel),
		string_agg(concat_ws(': ', n, query, want, got, r.parallel), ', ' ORDER BY n) FILTER (WHERE want IS DISTINCT FROM got OR NOT r.parallel)
	FROM pl_results r JOIN pl_queries USING (n) WHERE round = this
$$;
-- static
\set ECHO none
SELECT pl_round(1) \gexec
\set ECHO all
SELECT * FROM pl_report(1);
-- static and the log
SELECT pl_fill(15001, 20000);
\set ECHO none
SELECT pl_round(2) \gexec
\set ECHO all
SELECT * FROM pl_report(2);
-- only workers
SET parallel_leader_participation = off;
\set ECHO none
SELECT pl_round(3) \gexec
\set ECHO all
SELECT * FROM pl_report(3);
-- after deletions and VACUUM: index-only scans that need not see the table
DELETE FROM pl WHERE k % 3 = 0;
VACUUM pl;
\set ECHO none
SELECT pl_round(4) \gexec
\set ECHO all
SELECT * FROM pl_report(4);
-- merged
SELECT count(hybrid_merge(i)) FROM unnest(array['pl_k', 'pl_ab', 'pl_ac', 'pl_b']::regclass[]) i;
RESET parallel_leader_participation;
\set ECHO none
SELECT pl_round(5) \gexec
\set ECHO all
SELECT * FROM pl_report(5);
-- the log alone
TRUNCATE pl;
SELECT pl_fill(1, 8000);
\set ECHO none
SELECT pl_round(6) \gexec
\set ECHO all
SELECT * FROM pl_report(6);

-- begun again: a Gather on the inner side of a join
SELECT pl_settings(true) \g /dev/null
SET enable_material = off;
SELECT x, count, sum FROM (SELECT count(*), sum(k) FROM pl WHERE k > 0) s RIGHT JOIN (VALUES (1), (2), (3)) v(x) ON true;
SELECT count(*), sum(k) FROM pl WHERE k > 0;
-- a scan that is left before its end
SELECT count(*) FROM (SELECT k FROM pl WHERE k > 0 ORDER BY k LIMIT 10) s;
SELECT pl_settings(false) \g /dev/null
SELECT hyb_check('pl');
DROP TABLE pl, pl_queries, pl_results;
DROP FUNCTION pl_fill, pl_rows, pl_parallel, pl_settings, pl_round, pl_report;
