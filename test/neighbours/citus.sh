# extension: citus
# preload: citus hybridindex
# setting: listen_addresses = 'localhost'
# setting: citus.node_conninfo = 'sslmode=prefer'
. "$(dirname "$0")/common.sh"

# The cluster that psql connects to is the coordinator; two more are workers.
directory=$(mktemp -d)
stop_workers() {
	for port in 65433 65434; do
		pg_ctl -D "$directory/$port" -m immediate -w stop >/dev/null 2>&1 || true
	done
	rm -rf "$directory"
}
trap stop_workers EXIT
sql -c 'CREATE EXTENSION citus' -c 'CREATE EXTENSION hybridindex'
version citus
sql -c "SELECT citus_set_coordinator_host('localhost', $PGPORT)" >/dev/null
for port in 65433 65434; do
	initdb -D "$directory/$port" -U postgres -A trust --no-sync >/dev/null
	cat >>"$directory/$port/postgresql.conf" <<-EOF
		listen_addresses = 'localhost'
		unix_socket_directories = '$PGHOST'
		port = $port
		fsync = off
		wal_level = logical
		shared_preload_libraries = 'citus,hybridindex'
		citus.node_conninfo = 'sslmode=prefer'
	EOF
	pg_ctl -D "$directory/$port" -l "$directory/$port/server.log" -w start >/dev/null
	sql -p "$port" -c 'CREATE EXTENSION citus' -c 'CREATE EXTENSION hybridindex'
	sql -c "SELECT citus_add_node('localhost', $port)" >/dev/null
done

# check_shards_are HYBRID BTREE: the workers have that many indexes of shards.  Each
# hybrid one is checked against its shard.
check_shards_are() {
	hybrid=0 btree=0
	for port in 65433 65434; do
		on_worker "$port" -c "$check_all" >/dev/null
		hybrid=$((hybrid + $(on_worker "$port" -c "$of_shards 'hybrid'")))
		btree=$((btree + $(on_worker "$port" -c "$of_shards 'btree'")))
	done
	[ "$hybrid $btree" = "$1 $2" ] || {
		echo "$hybrid hybrid and $btree btree indexes of shards, not $1 and $2" >&2
		exit 1
	}
}
check_shards() { check_shards_are "$1" 0; }
# Citus hides shards from sessions that look at catalogs.
on_worker() { PGOPTIONS="$PGOPTIONS -c citus.override_table_visibility=off" sql -p "$@"; }
of_shards="SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
	WHERE i.indrelid::regclass::text ~ '^orders_[0-9]+\$' AND a.amname ="

make_orders
rows="SELECT count(*) || ' ' || sum(hashtextextended(o::text, 0)) FROM orders o"
before=$(sql -c "$rows")
sql -c "SELECT create_distributed_table('orders', 'id', shard_count => 8)" >/dev/null
check_shards 16
must_be "$before" "$rows"
worked "a table with a hybrid primary key is distributed: 8 shards, each with its hybrid indexes"

sql <<-'EOF'
	INSERT INTO orders SELECT i, i % 1000, 'new ' || i FROM generate_series(30001, 34000) i;
	INSERT INTO orders SELECT i, 1, 'again' FROM generate_series(33001, 35000) i ON CONFLICT (id) DO UPDATE SET note = 'again';
	UPDATE orders SET note = note || '!' WHERE id % 3 = 0;
	DELETE FROM orders WHERE id % 11 = 0;
EOF
check_shards 16
sql -c 'EXPLAIN SELECT * FROM orders WHERE id = 31000' | grep -q 'Index Scan using orders_pkey_'
worked "inserts, ON CONFLICT, updates, look-ups through the coordinator"

after=$(sql -c "$rows")
on_the_second="SELECT count(*) FROM citus_shards WHERE nodeport = 65434 AND table_name = 'orders'::regclass"
shards=$(sql -c "$on_the_second")
for mode in block_writes force_logical; do
	sql -c "SELECT citus_move_shard_placement(shardid, 'localhost', 65433, 'localhost', 65434, '$mode')
		FROM citus_shards WHERE nodeport = 65433 AND table_name = 'orders'::regclass ORDER BY shardid LIMIT 1" >/dev/null
	shards=$((shards + 1))
	must_be "$shards" "$on_the_second"
	sql -c 'CALL citus_cleanup_orphaned_resources()'
	must_become 0 "SELECT count(*) FROM pg_dist_cleanup"
	check_shards 16
	must_be "$after" "$rows"
	worked "citus_move_shard_placement, $mode"
done
sql -c 'CREATE INDEX orders_note ON orders USING hybrid (note)'
check_shards 24
worked "CREATE INDEX USING hybrid on a distributed table"

# on_all STATEMENT: on the coordinator, and through it on the workers.
on_all() {
	sql -c "$1"
	sql -c "SELECT 1 / success::int FROM run_command_on_workers(\$\$$1\$\$)" >/dev/null
}

on_all "CALL hybrid_revert_schema('public')"
check_shards_are 0 24
on_all "CALL hybrid_convert_schema('public')"
check_shards_are 24 0
must_be "$after" "$rows"
worked "hybrid_revert_schema and hybrid_convert_schema on each node"
for port in 65433 65434; do
	sql -p "$port" -c "CALL hybrid_revert_schema('public')"
done
check_shards_are 0 24
worked "the same by sessions that shards are hidden from"
sql -c "CALL hybrid_revert_schema('public')"

setting='SET hybridindex.replace_btree = on'
sql -c "$setting" -c 'CREATE INDEX orders_plain ON orders USING btree (note, id)'
must_be btree "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'orders_plain'"
check_shards_are 0 32
worked "USING btree under the setting"
sql -c "$setting" -c 'CREATE TABLE parts (id bigint, at int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)' \
	-c "SELECT create_distributed_table('parts', 'id', shard_count => 4)" \
	-c 'CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (1) TO (2)' \
	-c 'CREATE TABLE parts2 (id bigint, at int, PRIMARY KEY (id, at))' \
	-c 'ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (2) TO (3)' \
	-c 'INSERT INTO parts SELECT i, 1 + i % 2 FROM generate_series(1, 1000) i' >/dev/null
must_be 1000 'SELECT count(*) FROM parts WHERE id > 0'
worked "partitions of a distributed table under the setting"

if [ -n "$(sql -c "SELECT 1 FROM pg_available_extensions WHERE name = 'citus_columnar'")" ]; then
	sql -c 'CREATE EXTENSION IF NOT EXISTS citus_columnar' -c "$setting" \
		-c 'CREATE TABLE packed (id int PRIMARY KEY, n int) USING columnar' -c 'CREATE INDEX packed_n ON packed (n)'
	must_be btree "SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname ~ '^packed_'"
	refused "SELECT hybrid_convert('packed_n')"
	worked "indexes of columnar tables stay btree"
fi
