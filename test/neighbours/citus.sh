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

# check_shards NUMBER: the workers have that many hybrid indexes of shards, and no btree
# ones.  Each is checked against its shard.
check_shards() {
	indexes=0
	for port in 65433 65434; do
		on_worker "$port" -c "$check_all" >/dev/null
		indexes=$((indexes + $(on_worker "$port" -c "$of_shards 'hybrid'")))
		[ "$(on_worker "$port" -c "$of_shards 'btree'")" = 0 ]
	done
	[ "$indexes" = "$1" ] || {
		echo "$indexes hybrid indexes of shards, not $1" >&2
		exit 1
	}
}
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
