/* hybridindex--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION hybridindex UPDATE TO '1.1'" to load this file. \quit

-- Indexes that leave updates HOT.  Servers before 16 know nothing of such.

DO $$
BEGIN
	IF pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.<) 160000 THEN
		RETURN;
	END IF;

	CREATE FUNCTION hybrid_hot_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C;

	COMMENT ON FUNCTION hybrid_hot_handler(internal) IS
	'hybrid_hot index access method handler';

	CREATE ACCESS METHOD hybrid_hot TYPE INDEX HANDLER hybrid_hot_handler;

	COMMENT ON ACCESS METHOD hybrid_hot IS
	'ordered index access method whose columns may change in HOT updates';
END $$;

CREATE FUNCTION hybrid_copy_operator_classes() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

SELECT hybrid_copy_operator_classes();

DROP FUNCTION hybrid_copy_operator_classes();

CREATE FUNCTION hybrid_convert_hot(index regclass) RETURNS regclass
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;

COMMENT ON FUNCTION hybrid_convert_hot(regclass) IS
'make an index one of access method hybrid_hot, in this transaction';

CREATE PROCEDURE hybrid_convert_hot_concurrently(index regclass)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE hybrid_convert_hot_concurrently(regclass) IS
'make an index one of access method hybrid_hot while the table is written';

-- with indexes of both access methods

CREATE OR REPLACE VIEW hybrid_indexes AS
WITH readable AS MATERIALIZED (
	SELECT c.oid, n.nspname, t.relname AS tablename, c.relname
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_am am ON am.oid = c.relam AND am.amname IN ('hybrid', 'hybrid_hot')
		JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid AND i.indisready
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'i'
		AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
		AND (c.relpersistence = 'p' OR NOT pg_catalog.pg_is_in_recovery())
		AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')
			OR CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 170000
				THEN pg_catalog.has_table_privilege(t.oid, 'MAINTAIN') ELSE false END
			OR pg_catalog.has_table_privilege(t.oid, 'SELECT')
				AND NOT pg_catalog.row_security_active(t.oid)
			OR pg_catalog.pg_has_role('pg_stat_scan_tables', 'USAGE')))
SELECT r.nspname AS schemaname, r.tablename, r.relname AS indexname,
	r.oid AS indexrelid, s.*
FROM readable r, LATERAL hybrid_index_stats(r.oid::regclass, true) s;

-- with what hybrid_hot would save

CREATE OR REPLACE VIEW hybrid_advice AS
WITH readable AS MATERIALIZED (
	SELECT c.oid, i.indrelid, i.indisunique, i.indisreplident, i.indisvalid,
		i.indisexclusion, i.indisclustered, c.relispartition, i.indnatts > i.indnkeyatts AS includes,
		pg_catalog.pg_stat_get_tuples_updated(i.indrelid) AS updates,
		pg_catalog.pg_stat_get_tuples_hot_updated(i.indrelid) AS hot_updates,
		pg_catalog.pg_stat_get_tuples_inserted(i.indrelid)
			+ pg_catalog.pg_stat_get_tuples_updated(i.indrelid)
			- pg_catalog.pg_stat_get_tuples_hot_updated(i.indrelid) AS writes,
		pg_catalog.pg_stat_get_numscans(c.oid) AS scans,
		pg_catalog.pg_stat_get_tuples_returned(c.oid) AS returned,
		pg_catalog.pg_stat_get_tuples_fetched(c.oid) AS fetched,
		pg_catalog.pg_stat_get_tuples_fetched(t.oid) AS by_bitmaps,
		(SELECT pg_catalog.sum(pg_catalog.pg_stat_get_tuples_returned(x.indexrelid) - pg_catalog.pg_stat_get_tuples_fetched(x.indexrelid))
			FROM pg_catalog.pg_index x WHERE x.indrelid = t.oid) AS not_fetched
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid AND i.indisready
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'i' AND c.relam = 403::oid AND c.oid >= 16384::oid
		AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema')
		AND NOT pg_catalog.starts_with(n.nspname::text, 'pg_toast_temp_')
		AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
		AND (c.relpersistence = 'p' OR NOT pg_catalog.pg_is_in_recovery())
		AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')
			OR CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 170000
				THEN pg_catalog.has_table_privilege(t.oid, 'MAINTAIN') ELSE false END
			OR pg_catalog.has_table_privilege(t.oid, 'SELECT')
				AND NOT pg_catalog.row_security_active(t.oid)
			OR pg_catalog.pg_has_role('pg_stat_scan_tables', 'USAGE')))
SELECT e.oid::regclass AS index,
	e.indrelid::regclass AS "table",
	e.btree_bytes AS size,
	e.hybrid_bytes AS hybrid_size,
	e.btree_bytes - e.hybrid_bytes AS saved,
	e.entries,
	pg_catalog.round(e.duplicates::numeric, 3) AS duplicates,
	e.indisunique AS is_unique,
	e.scans,
	e.writes,
	pg_catalog.round(e.writes::numeric / nullif(extract(epoch FROM pg_catalog.now() - d.stats_reset), 0::numeric), 3) AS writes_per_second,
	CASE WHEN e.why_not IS NOT NULL THEN e.why_not
		WHEN e.hybrid_bytes IS NULL THEN 'It is locked.'
		WHEN e.hybrid_bytes::numeric > 0.8 * e.btree_bytes::numeric THEN 'There is little to gain.'
		WHEN e.btree_bytes < 1048576 THEN 'It is small as it is.' END AS remark,
	CASE WHEN e.why_not IS NULL THEN
		pg_catalog.format(CASE WHEN e.indisexclusion
				THEN 'SELECT %I.hybrid_convert(%L::regclass%s)'
				ELSE 'CALL %I.hybrid_convert_concurrently(%L::regclass%s)' END,
			(SELECT n.nspname FROM pg_catalog.pg_extension x
				JOIN pg_catalog.pg_namespace n ON n.oid = x.extnamespace
				WHERE x.extname = 'hybridindex'),
			CASE WHEN e.relispartition
				THEN pg_catalog.pg_partition_root(e.oid::regclass)
				ELSE e.oid::regclass END,
			CASE WHEN e.index_only IN ('none', 'bitmaps') AND NOT e.relispartition
				THEN ', layout => ''trie''' ELSE '' END) END AS command,
	e.trie_bytes AS trie_size,
	CASE WHEN e.index_only IN ('none', 'bitmaps') THEN 'trie'
		WHEN e.index_only IS NOT NULL THEN 'columnar' END AS layout,
	CASE e.index_only
		WHEN 'impossible' THEN e.trie_obstacle
		WHEN 'useless' THEN 'The trie would save little.'
		WHEN 'unknown' THEN pg_catalog.format('Statistics of %s scans with %s entries do not tell whether there are index-only scans.', e.scans, e.returned)
		WHEN 'none' THEN pg_catalog.format('No index-only scans: of %s entries that scans returned, %s led to rows of the table.', e.returned, e.fetched)
		WHEN 'bitmaps' THEN pg_catalog.format('Probably no index-only scans: of %s entries that scans returned, %s led to rows of the table, and bitmap scans of the table fetched %s.', e.returned, e.fetched, e.by_bitmaps)
		WHEN 'some' THEN pg_catalog.format('Perhaps index-only scans, which the trie does not have: of %s entries that scans returned, %s led to rows of the table.', e.returned, e.fetched) END AS reason,
	CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 160000
			AND e.why_not IS NULL AND NOT e.indisunique AND NOT e.indisexclusion AND NOT e.indisclustered AND NOT e.includes
			AND e.updates >= 1000 AND e.hot_updates < e.updates / 2
		THEN pg_catalog.format('Of %s updates of the table %s were HOT. If they change this index''s columns and no others that have indexes, hybrid_hot leaves them HOT where blocks have room (fillfactor).', e.updates, e.hot_updates) END AS hot_updates
-- A condition on the index goes into subqueries, and so to an index before it is
-- estimated.  A plain scan fetches a row of the table for each entry that it
-- returns.  An index-only scan fetches few, and a bitmap scan counts them for the
-- table.
FROM (SELECT e.*,
		CASE WHEN e.why_not IS NOT NULL OR e.hybrid_bytes IS NULL THEN NULL
			WHEN e.trie_bytes IS NULL THEN 'impossible'
			WHEN e.trie_bytes::numeric > 0.8 * e.hybrid_bytes::numeric THEN 'useless'
			WHEN e.scans < 100 OR e.returned = 0 THEN 'unknown'
			WHEN (e.returned - e.fetched) * 100 <= e.returned THEN 'none'
			WHEN e.not_fetched * 100::numeric <= e.by_bitmaps::numeric * 101::numeric THEN 'bitmaps'
			ELSE 'some' END AS index_only
		FROM (SELECT r.*, e.*,
				CASE WHEN NOT r.indisvalid THEN 'It is not valid.'
					WHEN r.indisreplident
						AND pg_catalog.current_setting('server_version_num')::integer BETWEEN 170000 AND 179999
						THEN 'It is the replica identity, which has to be a btree index on PostgreSQL 17.'
					ELSE e.obstacle END AS why_not
			FROM readable r, LATERAL hybrid_estimate(r.oid::regclass, true) e) e) e
	LEFT JOIN pg_catalog.pg_stat_database d ON d.datname = pg_catalog.current_database();

CREATE OR REPLACE FUNCTION hybrid_advise(index regclass DEFAULT NULL)
RETURNS SETOF hybrid_advice
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT * FROM hybrid_advice a
	WHERE hybrid_advise.index IS NULL OR a.index::oid = hybrid_advise.index::oid
	ORDER BY a.saved DESC NULLS LAST, a.index::text;
END;
