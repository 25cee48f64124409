--
-- Names of the phases of CREATE INDEX.  A server of 32 bits answers NULL, with btree
-- as well: pg_indexam_progress_phasename takes its bigint for an int4.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SELECT pg_indexam_progress_phasename(oid, 1) IS NOT NULL AS server_has_names FROM pg_am WHERE amname = 'btree';
SELECT n, pg_indexam_progress_phasename(oid, n) FROM pg_am, generate_series(1, 6) n WHERE amname = 'hybrid' ORDER BY n;
