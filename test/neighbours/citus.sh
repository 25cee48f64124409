# extension: citus
# preload: citus hybridindex
# plugins: citus
# setting: listen_addresses = 'localhost'
# setting: citus.node_conninfo = 'sslmode=prefer'
. "$(dirname "$0")/common.sh"

# The cluster that psql connects to is the coordinator; two more are workers.
directory=$(mktemp -d)
stop_all() {
	rm -f "$directory/load"
	for port in 65433 65434; do
		pg_ctl -D "$directory/$port" -m immediate -w stop >/dev/null 2>&1 || true
	done
	rm -rf "$directory"
}
trap stop_all EXIT
sql -c 'CREATE EXTENSION citus'
version citus
sql -c "SELECT citus_set_coordinator_host('localhost', $PGPORT)" >/dev/null
# new minor releases have output_plugin_libraries
plugins=$(sql -c "SELECT format('%s = %L', name, setting) FROM pg_settings WHERE name = 'output_plugin_libraries'")
for port in 65433 65434; do
	initdb -D "$directory/$port" -U postgres -A trust --no-sync >/dev/null
	cat >>"$directory/$port/postgresql.conf" <<-EOF
		listen_addresses = 'localhost'
		unix_socket_directories = '$PGHOST'
		port = $port
		fsync = off
		wal_level = logical
		max_worker_processes = 16
		shared_preload_libraries = 'citus,hybridindex'
		citus.node_conninfo = 'sslmode=prefer'
		$plugins
	EOF
	pg_ctl -D "$directory/$port" -l "$directory/$port/server.log" -w start >/dev/null
	sql -p "$port" -c 'CREATE EXTENSION citus'
	sql -c "SELECT citus_add_node('localhost', $port)" >/dev/null
done

# workers_answer VALUE STATEMENT: both do.
workers_answer() {
	for port in 65433 65434; do
		PGPORT=$port must_be "$1" "$2"
	done
}
# Citus hides shards from sessions that look at catalogs.
on_worker() { PGOPTIONS="$PGOPTIONS -c citus.override_table_visibility=off" sql -p "$@"; }
# indexes_of_shards METHOD: how many all shards of orders have.
indexes_of_shards() {
	sum=0
	for port in 65433 65434; do
		sum=$((sum + $(on_worker "$port" -c "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
			JOIN pg_am a ON a.oid = c.relam WHERE i.indrelid::regclass::text ~ '^orders_[0-9]+\$' AND a.amname = '$1'")))
	done
	echo "$sum"
}
# check_shards HYBRID BTREE: each shard of orders has that many indexes.  The hybrid ones
# are checked against their shards.
check_shards() {
	shards=$(sql -c "SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = 'orders'::regclass")
	for port in 65433 65434; do
		on_worker "$port" -c "$check_all" >/dev/null
	done
	found="$(indexes_of_shards hybrid) $(indexes_of_shards btree)"
	[ "$found" = "$(($1 * shards)) $(($2 * shards))" ] || {
		echo "$found hybrid and btree indexes of $shards shards, not $1 and $2 each" >&2
		exit 1
	}
}

# ---- a distributed table ----

sql -c 'CREATE EXTENSION hybridindex'
workers_answer 1 "SELECT count(*) FROM pg_extension WHERE extname = 'hybridindex'"
worked "CREATE EXTENSION on the coordinator makes it on each node"
make_orders
rows="SELECT count(*) || ' ' || sum(hashtextextended(o::text, 0)) FROM orders o"
before=$(sql -c "$rows")
sql -c "SELECT create_distributed_table('orders', 'id', shard_count => 8)" >/dev/null
check_shards 2 0
must_be "$before" "$rows"
worked "a table with a hybrid primary key is distributed: 8 shards, each with its hybrid indexes"

sql <<-'EOF'
	INSERT INTO orders SELECT i, i % 1000, 'new ' || i FROM generate_series(30001, 34000) i;
	INSERT INTO orders SELECT i, 1, 'again' FROM generate_series(33001, 35000) i ON CONFLICT (id) DO UPDATE SET note = 'again';
	UPDATE orders SET note = note || '!' WHERE id % 3 = 0;
	DELETE FROM orders WHERE id % 11 = 0;
EOF
check_shards 2 0
sql -c 'EXPLAIN SELECT * FROM orders WHERE id = 31000' | grep -q 'Index Scan using orders_pkey_'
worked "inserts, ON CONFLICT, updates, look-ups through the coordinator"

# ---- moves, splits and rebalancing, while sessions write ----

sql -c 'CREATE TABLE ledger (id bigint)'
cat >"$directory/load.sql" <<-'EOF'
	\set new random(100000, 1000000000)
	\set id random(1, 35000)
	BEGIN;
	INSERT INTO orders VALUES (:new, :client_id, 'load') ON CONFLICT (id) DO UPDATE SET note = orders.note || '+';
	INSERT INTO ledger VALUES (:new);
	COMMIT;
	UPDATE orders SET customer = customer + 1 WHERE id = :id;
	SELECT count(*) FROM orders WHERE customer = :id % 1000;
EOF
begin_load() {
	touch "$directory/load"
	while [ -e "$directory/load" ]; do
		pgbench -n -c 4 -t 20 -f "$directory/load.sql" >"$directory/load.log" 2>&1 || exit 1
	done &
	load=$!
}
# end_load: nothing failed, and the table has exactly the rows that were committed.
end_load() {
	rm "$directory/load"
	wait "$load" || {
		cat "$directory/load.log" >&2
		exit 1
	}
	sql -c 'SELECT DISTINCT id FROM ledger ORDER BY 1' >"$directory/committed"
	sql -c 'SELECT id FROM orders WHERE id >= 100000 ORDER BY 1' | diff "$directory/committed" - >&2
}
# after_transfer: Citus drops what it has copied.
after_transfer() {
	sql -c 'CALL citus_cleanup_orphaned_resources()'
	must_become 0 "SELECT count(*) FROM pg_dist_cleanup"
}
shards_on="SELECT count(*) FROM pg_dist_placement JOIN pg_dist_node USING (groupid) JOIN pg_dist_shard USING (shardid)
	WHERE logicalrelid = 'orders'::regclass AND nodeport ="
first_shard="(SELECT min(shardid) FROM pg_dist_placement JOIN pg_dist_node USING (groupid) JOIN pg_dist_shard USING (shardid)
	WHERE logicalrelid = 'orders'::regclass AND nodeport = 65433)"
node() { sql -c "SELECT nodeid FROM pg_dist_node WHERE nodeport = $1"; }

for mode in block_writes force_logical; do
	wanted=$(($(sql -c "$shards_on 65434") + 1))
	begin_load
	sql -c "SELECT citus_move_shard_placement($first_shard, 'localhost', 65433, 'localhost', 65434, '$mode')" >/dev/null
	end_load
	must_be "$wanted" "$shards_on 65434"
	after_transfer
	check_shards 2 0
	worked "citus_move_shard_placement while others write, $mode"
done
# A part that stays on its node never catches up with updates, of btree indexes either.
for mode in block_writes force_logical; do
	wanted=$(($(sql -c "$shards_on 65434") + 2))
	begin_load
	sql -c "SELECT citus_split_shard_by_split_points(shardid,
		ARRAY[((shardminvalue::bigint + shardmaxvalue::bigint) / 2)::text], ARRAY[$(node 65434), $(node 65434)], '$mode')
		FROM pg_dist_shard WHERE shardid = $first_shard" >/dev/null
	end_load
	must_be "$wanted" "$shards_on 65434"
	after_transfer
	check_shards 2 0
	worked "citus_split_shard_by_split_points while others write, $mode"
done
begin_load
sql -c "SELECT citus_rebalance_start('by_shard_count', shard_transfer_mode => 'force_logical')" -c 'SELECT citus_rebalance_wait()' >/dev/null
end_load
must_be "$(sql -c "$shards_on 65434")" "$shards_on 65433"
after_transfer
check_shards 2 0
worked "citus_rebalance_start while others write"

# Rows pass through a node that has shards itself.  Citus answers each subtransaction there
# by a savepoint on the connections that it copies rows to, which would end the session.
sql -p 65433 -c "INSERT INTO orders SELECT i, 1, 'many' FROM generate_series(40001, 90000) i"
sql -c 'CREATE TABLE regions (id int PRIMARY KEY WITH (access_method = hybrid), name text)' \
	-c "SELECT create_reference_table('regions')" \
	-c "INSERT INTO regions SELECT i, 'many' FROM generate_series(1, 50000) i" >/dev/null
must_be 50000 "SELECT count(*) FROM regions"
check_shards 2 0
worked "INSERT ... SELECT through a node with shards, and into a reference table"

# ---- conversion ----

sql -c 'CREATE INDEX orders_note ON orders USING hybrid (note)'
check_shards 3 0
worked "CREATE INDEX USING hybrid on a distributed table"
# on_all STATEMENT: on the workers, then on the coordinator.
on_all() {
	sql -c "SELECT 1 / success::int FROM run_command_on_workers(\$\$$1\$\$)" >/dev/null
	sql -c 'SET citus.override_table_visibility = off' -c "$1"
}
begin_load
on_all "CALL hybrid_revert_schema('public')"
check_shards 0 3
must_be 0 "SELECT count(*) FROM hybrid_indexes"
on_all "CALL hybrid_convert_schema('public')"
end_load
check_shards 3 0
must_be 3 "SELECT count(*) FROM hybrid_indexes WHERE tablename = 'orders'"
worked "hybrid_revert_schema and hybrid_convert_schema on each node while others write"
for port in 65433 65434; do
	sql -p "$port" -c "CALL hybrid_revert_schema('public')"
done
check_shards 0 3
worked "the same by sessions that shards are hidden from"
sql -c "CALL hybrid_revert_schema('public')"

# ---- the setting ----

sql -c 'ALTER DATABASE postgres SET hybridindex.replace_btree = on'
workers_answer on 'SHOW hybridindex.replace_btree'
worked "ALTER DATABASE SET on the coordinator reaches each node"
sql -c 'CREATE INDEX orders_plain ON orders USING btree (note, id)'
must_be btree "SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'orders_plain'"
check_shards 0 4
worked "USING btree under the setting"
sql -c 'CREATE TABLE parts (id bigint, at int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)' \
	-c "SELECT create_distributed_table('parts', 'id', shard_count => 4)" \
	-c 'CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (1) TO (2)' \
	-c 'CREATE TABLE parts2 (id bigint, at int, PRIMARY KEY (id, at))' \
	-c 'ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (2) TO (3)' \
	-c 'INSERT INTO parts SELECT i, 1 + i % 2 FROM generate_series(1, 1000) i' >/dev/null
must_be 1000 'SELECT count(*) FROM parts WHERE id > 0'
worked "partitions of a distributed table under the setting"

if [ -n "$(sql -c "SELECT 1 FROM pg_available_extensions WHERE name = 'citus_columnar'")" ]; then
	sql -c 'CREATE EXTENSION IF NOT EXISTS citus_columnar' \
		-c 'CREATE TABLE packed (id int PRIMARY KEY, n int) USING columnar' -c 'CREATE INDEX packed_n ON packed (n)'
	must_be btree "SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname ~ '^packed_'"
	refused "SELECT hybrid_convert('packed_n')"
	worked "indexes of columnar tables stay btree"
fi
