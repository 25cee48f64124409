-- What many small merges make of a large index of random keys:
--   psql -X -f bench/fill.sql
-- Superuser not needed; takes a quarter of a minute.  First the index as
-- built, then after 40 times 2500 insertions, each followed by a merge.
\set QUIET on
\pset footer off
CREATE EXTENSION IF NOT EXISTS hybridindex;
SET hybridindex.background_merge = off;
BEGIN;
CREATE TABLE fill_bench (k int8 NOT NULL);
SELECT setseed(0.5) \g /dev/null
INSERT INTO fill_bench SELECT (random() * 9e18)::int8 FROM generate_series(1, 1200000);
CREATE INDEX fill_bench_k ON fill_bench USING hybrid (k);
COMMIT;
SELECT static_entries AS entries, leaf_pages AS leaves, inner_pages AS inner_nodes, total_pages AS pages, fill::numeric(4, 3)
FROM hybrid_index_stats('fill_bench_k');
SELECT pg_current_wal_insert_lsn() AS wal, clock_timestamp() AS start \gset
DO $$
BEGIN
	FOR i IN 1 .. 40 LOOP
		INSERT INTO fill_bench SELECT (random() * 9e18)::int8 FROM generate_series(1, 2500);
		PERFORM hybrid_merge('fill_bench_k');
		COMMIT;
	END LOOP;
END $$;
SELECT static_entries AS entries, leaf_pages AS leaves, inner_nodes, pages, fill,
	((pg_current_wal_insert_lsn() - :'wal') / 100000)::int AS "WAL bytes an insertion", date_trunc('milliseconds', clock_timestamp() - :'start') AS time
FROM (SELECT static_entries, leaf_pages, inner_pages AS inner_nodes, total_pages AS pages, fill::numeric(4, 3)
	FROM hybrid_index_stats('fill_bench_k')) s;
DROP TABLE fill_bench;
