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
newest="SELECT sensor, value FROM measures WHERE sensor = 7 ORDER BY at DESC LIMIT 5"
check_chunks
scan_agrees "SELECT sum(value) FROM measures WHERE sensor = 7 AND at > '2026-01-04'"
scan_agrees "$newest"
sql -c 'SET enable_seqscan = off' -c "EXPLAIN $newest" | grep -q 'Index Scan.*measures_key'
worked "the newest rows of a sensor, by ordered scans of chunks"
upsert="INSERT INTO measures SELECT at, sensor, 0 FROM measures WHERE sensor < 5 ON CONFLICT (sensor, at) DO UPDATE SET value = measures.value + 1"
is_18=$(sql -c "SELECT current_setting('server_version_num')::int >= 180000")
if [ "$is_18" = t ]; then
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
sql -c "CALL hybrid_revert_table('measures')" >/dev/null
must_be 0 "$hybrid_of_chunks 'hybrid'"
sql -c "$upsert"
scan_agrees "$newest"
worked "hybrid_revert_table of the hypertable takes its chunks along; ON CONFLICT"
sql -c "CALL hybrid_convert_table('measures')" >/dev/null
must_be 0 "$hybrid_of_chunks 'btree'"
sql -c "INSERT INTO measures SELECT '2026-02-01'::timestamptz + i * interval '1 minute', i % 50, i FROM generate_series(1, 3000) i"
must_be 0 "$hybrid_of_chunks 'btree'"
check_chunks
worked "hybrid_convert_table of it, then new chunks"
chunk=$(sql -c "SELECT min(i.indexrelid::regclass::text) FROM pg_index i WHERE i.indrelid IN (SELECT show_chunks('measures')) AND i.indisunique")
refused "SELECT hybrid_revert('$chunk')"

# ---- keys, which TimescaleDB makes from the text of the hypertable's ----

# keyed NAME OPTIONS: a hypertable with a primary key, and chunks
keyed() {
	sql -c "CREATE TABLE $1 (at timestamptz NOT NULL, sensor int NOT NULL, value float8, PRIMARY KEY (sensor, at) $2)" \
		-c "SELECT create_hypertable('$1', 'at', chunk_time_interval => interval '1 day')" >/dev/null
	fill "$1" 2026-01-01
}
# fill NAME DAY: five days of rows, and upserts of them where they are possible
fill() {
	sql -c "INSERT INTO $1 SELECT '$2'::timestamptz + i * interval '1 hour', i % 5, i FROM generate_series(1, 120) i"
	[ "$is_18" != t ] && [ "$(keys "$1")" != btree ] ||
		sql -c "INSERT INTO $1 SELECT * FROM $1 ON CONFLICT (sensor, at) DO UPDATE SET value = $1.value + 1"
	scan_agrees "SELECT sum(value) FROM $1 WHERE sensor = 3"
}
# keys NAME: what the keys of a hypertable and its chunks are
keys() {
	sql -c "SELECT string_agg(DISTINCT m.amname, ' ') FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
		WHERE i.indisprimary AND (i.indrelid = '$1'::regclass OR i.indrelid IN (SELECT show_chunks('$1')))"
}
keyed marked 'WITH (access_method = hybrid)'
[ "$(keys marked)" = hybrid ]
worked "chunks of a hypertable with PRIMARY KEY WITH (access_method = hybrid), and upserts on 18"
keyed plain ''
[ "$(keys plain)" = btree ]
sql -c 'ALTER DATABASE postgres SET hybridindex.replace_btree = on'
fill plain 2026-03-01
[ "$(keys plain)" = btree ]
worked "new chunks of a btree hypertable with replace_btree, and upserts"
keyed replaced ''
[ "$(keys replaced)" = hybrid ]
worked "hypertables with replace_btree, and upserts on 18"
sql -c 'ALTER DATABASE postgres RESET hybridindex.replace_btree'
fill replaced 2026-03-01
[ "$(keys replaced)" = hybrid ]
worked "their new chunks without it"
sql -c "ALTER TABLE plain SET (timescaledb.compress, timescaledb.compress_segmentby = 'sensor')" \
	-c "SELECT compress_chunk(c) FROM show_chunks('plain', older_than => '2026-01-04'::timestamptz) c" \
	-c "CALL hybrid_convert_schema('public')" -c "CALL hybrid_convert_schema('_timescaledb_internal')" >/dev/null
[ "$(keys plain)" = hybrid ]
fill plain 2026-04-01
[ "$(keys plain)" = hybrid ]
must_be 0 "SELECT count(*) FROM hybrid_indexes WHERE tablename ~ 'compress'"
sql -c "INSERT INTO plain VALUES ('2026-01-02 00:00:30', 7, 1)" -c "SELECT compress_chunk(c, recompress => true) FROM show_chunks('plain', older_than => '2026-01-04'::timestamptz) c" >/dev/null
scan_agrees "SELECT sum(value) FROM plain WHERE sensor = 3"
check_chunks
worked "hybrid_convert_schema takes chunks along, leaves compressed ones btree; upserts on 18, recompression"

# ---- copies, and continuous aggregates ----

sql -c 'ALTER DATABASE postgres SET hybridindex.replace_btree = on'
keyed copied ''
sql -c "COPY (SELECT '2026-05-01'::timestamptz + i * interval '1 minute' AS at, i % 5 AS sensor, i AS value FROM generate_series(1, 14400) i) TO STDOUT" |
	sql -c 'COPY copied FROM STDIN'
[ "$(keys copied)" = hybrid ]
must_be 14520 'SELECT count(*) FROM copied'
scan_agrees "SELECT sum(value) FROM copied WHERE sensor = 3"
check_chunks
worked "COPY into a hypertable, which makes chunks"
sql -c "CREATE MATERIALIZED VIEW daily WITH (timescaledb.continuous) AS
	SELECT sensor, time_bucket('1 day', at) AS day, sum(value) AS total FROM copied GROUP BY 1, 2 WITH NO DATA" >/dev/null
refresh() {
	sql -c "CALL refresh_continuous_aggregate('daily', NULL, NULL)"
	must_be "$(sql -c "SELECT sensor, time_bucket('1 day', at), sum(value) FROM copied GROUP BY 1, 2 ORDER BY 1, 2")" \
		'SELECT * FROM daily ORDER BY 1, 2'
	check_chunks
}
refresh
sql -c "UPDATE copied SET value = -value WHERE at < '2026-05-03' AND sensor = 2" -c "DELETE FROM copied WHERE at > '2026-05-06' AND sensor = 4"
refresh
worked "a continuous aggregate with replace_btree, refreshed after changes"
sql -c "CALL hybrid_revert_schema('public')" -c "CALL hybrid_revert_schema('_timescaledb_internal')"
must_be 0 'SELECT count(*) FROM hybrid_indexes'
sql -c "UPDATE copied SET value = value + 1 WHERE sensor = 1"
refresh
sql -c "CALL hybrid_convert_schema('public')" -c "CALL hybrid_convert_schema('_timescaledb_internal')"
sql -c "UPDATE copied SET value = value + 1 WHERE sensor = 1"
refresh
worked "its indexes reverted and converted"
