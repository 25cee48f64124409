-- What VACUUM leaves of the files of indexes after most of their rows were deleted.
--
--   psql -X -f bench/shrink.sql
--   psql -X -v rows=1000000 -f bench/shrink.sql
--
-- Ten million rows by default, which take some minutes; then 99 in 100 are
-- deleted.  "live" is what an index of the rows that are left takes.
\set QUIET on
\pset footer off
\if :{?rows} \else \set rows 10000000 \endif
CREATE EXTENSION IF NOT EXISTS hybridindex;
SET hybridindex.background_merge = off;
CREATE TABLE shrink_bench (k int8 NOT NULL, a int8 NOT NULL) WITH (autovacuum_enabled = off);
CREATE INDEX shrink_bench_hybrid_random ON shrink_bench USING hybrid (k);
CREATE INDEX shrink_bench_hybrid_ascending ON shrink_bench USING hybrid (a);
CREATE INDEX shrink_bench_btree_random ON shrink_bench USING btree (k);
CREATE INDEX shrink_bench_btree_ascending ON shrink_bench USING btree (a);
INSERT INTO shrink_bench SELECT hashint8extended(i, 1), i FROM generate_series(1, :rows) i;
SELECT hybrid_merge('shrink_bench_hybrid_random'), hybrid_merge('shrink_bench_hybrid_ascending') \g /dev/null
CREATE TEMP TABLE sizes AS
	SELECT indexrelid, substr(relname, 14) AS index, pg_relation_size(indexrelid) / 8192 AS before
	FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = 'shrink_bench'::regclass;
DELETE FROM shrink_bench WHERE a % 100 <> 0;
SELECT pg_current_wal_insert_lsn() AS wal, clock_timestamp() AS start \gset
VACUUM shrink_bench;
ALTER TABLE sizes ADD one bigint, ADD two bigint, ADD live bigint;
UPDATE sizes SET one = pg_relation_size(indexrelid) / 8192;
SELECT date_trunc('milliseconds', clock_timestamp() - :'start') AS "VACUUM took", (pg_current_wal_insert_lsn() - :'wal') / 1048576 AS "MB of WAL";
VACUUM shrink_bench;
UPDATE sizes SET two = pg_relation_size(indexrelid) / 8192;
REINDEX TABLE shrink_bench;
UPDATE sizes SET live = pg_relation_size(indexrelid) / 8192;
SELECT index, before AS "pages before", one AS "after VACUUM", two AS "after a second", live, (one::float8 / live)::numeric(8, 2) AS "times live"
FROM sizes ORDER BY index;
DROP TABLE shrink_bench;
