# extension: timescaledb
# preload: timescaledb hybridindex
# setting: timescaledb.telemetry_level = off
. "$(dirname "$0")/common.sh"
sql -c 'CREATE EXTENSION timescaledb' -c 'CREATE EXTENSION hybridindex'
version timescaledb
sql <<-'EOF' >/dev/null
	CREATE TABLE measures (at timestamptz NOT NULL, sensor int NOT NULL, value float8);
	SELECT create_hypertable('measures', 'at', chunk_time_interval => interval '1 day', create_default_indexes => false);
	CREATE UNIQUE INDEX measures_key ON measures USING hybrid (sensor, at);
	CREATE INDEX measures_at ON measures USING hybrid (at DESC);
	INSERT INTO measures SELECT '2026-01-01'::timestamptz + i * interval '1 minute', i % 50, i
		FROM generate_series(1, 14400) i;
EOF
hybrid_of_chunks="SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
	WHERE i.indrelid IN (SELECT show_chunks('measures')) AND a.amname ="
must_be 22 "$hybrid_of_chunks 'hybrid'"
must_be 0 "$hybrid_of_chunks 'btree'"
worked "chunks of a hypertable get its hybrid indexes, unique ones too"

check_chunks() { sql -c "$check_all" >/dev/null; }
# of_each PROCEDURE: call it for the hypertable and each of its chunks
of_each() {
	for table in measures $(sql -c "SELECT show_chunks('measures')"); do
		sql -c "CALL $1('$table')" >/dev/null
	done
}
newest="SELECT sensor, value FROM measures WHERE sensor = 7 ORDER BY at DESC LIMIT 5"
check_chunks
scan_agrees "SELECT sum(value) FROM measures WHERE sensor = 7 AND at > '2026-01-04'"
scan_agrees "$newest"
sql -c 'SET enable_seqscan = off' -c "EXPLAIN $newest" | grep -q 'Index Scan.*measures_key'
worked "the newest rows of a sensor, by ordered scans of chunks"
upsert="INSERT INTO measures SELECT at, sensor, 0 FROM measures WHERE sensor < 5 ON CONFLICT (sensor, at) DO UPDATE SET value = measures.value + 1"
if [ "$(sql -c "SELECT current_setting('server_version_num')::int >= 180000")" = t ]; then
	sql -c "$upsert"
	check_chunks
	worked "ON CONFLICT DO UPDATE"
else
	refused "$upsert"
	sql -c "INSERT INTO measures SELECT at, sensor, 0 FROM measures WHERE sensor < 5 ON CONFLICT DO NOTHING" >/dev/null 2>&1 && worked "ON CONFLICT DO NOTHING" || echo "refused: ON CONFLICT DO NOTHING"
fi
sql -c "SELECT reorder_chunk(c, (SELECT i.indexrelid FROM pg_index i WHERE i.indrelid = c AND i.indisunique)) FROM show_chunks('measures') c LIMIT 1" >/dev/null
check_chunks
worked "reorder_chunk by a hybrid index"
sql -c "ALTER TABLE measures SET (timescaledb.compress, timescaledb.compress_segmentby = 'sensor')" \
	-c "SELECT compress_chunk(c) FROM show_chunks('measures', older_than => '2026-01-04'::timestamptz) c" >/dev/null
must_be 14400 'SELECT count(*) FROM measures'
sql -c "INSERT INTO measures VALUES ('2026-01-02 00:00:30', 7, 1)" -c "SELECT decompress_chunk(c) FROM show_chunks('measures', older_than => '2026-01-03'::timestamptz) c" >/dev/null
check_chunks
scan_agrees "SELECT sum(value) FROM measures WHERE sensor = 7"
worked "compressed chunks, inserts into them, decompression"
sql -c "SELECT drop_chunks('measures', older_than => '2026-01-05'::timestamptz)" >/dev/null
check_chunks
scan_agrees "$newest"
worked "drop_chunks"
of_each hybrid_revert_table
must_be 0 "$hybrid_of_chunks 'hybrid'"
sql -c "$upsert"
scan_agrees "$newest"
worked "hybrid_revert_table of the hypertable and its chunks, then ON CONFLICT"
of_each hybrid_convert_table
must_be 0 "$hybrid_of_chunks 'btree'"
sql -c "INSERT INTO measures SELECT '2026-02-01'::timestamptz + i * interval '1 minute', i % 50, i FROM generate_series(1, 3000) i"
must_be 0 "$hybrid_of_chunks 'btree'"
check_chunks
worked "hybrid_convert_table of them, then new chunks"
