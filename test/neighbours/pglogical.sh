# extension: pglogical
# preload: pglogical
# plugins: pglogical_output, pglogical
# setting: track_commit_timestamp = on
. "$(dirname "$0")/common.sh"

make_node() { sql -c 'CREATE EXTENSION pglogical' -c "SELECT pglogical.create_node('$1', '${dsn}_$1')" >/dev/null; }

subscribe() {
	name=${1}_$2
	dsn="host=$PGHOST port=$PGPORT user=postgres dbname=$name"
	sql -c "CREATE DATABASE ${name}_pub" -c "CREATE DATABASE ${name}_sub"
	make_side "${name}_pub" "$1"
	make_node pub
	[ "$name" != hybrid_btree ] || version pglogical
	sql -c "SELECT pglogical.replication_set_add_table('default', 'orders')" >/dev/null
	make_side "${name}_sub" "$2"
	make_node sub
	sql -c "SELECT pglogical.create_subscription('s_$name', '${dsn}_pub')" >/dev/null
	must_become replicating "SELECT status FROM pglogical.show_subscription_status()"
	must_become t "SELECT count(*) > 0 AND bool_and(sync_status IN ('r', 'y')) FROM pglogical.local_sync_status"
	replicates "$name" "$1" "$2"
	# a row that is there already: the subscriber resolves the conflict by the key
	if [ "$2" = hybrid ]; then
		sql -c "INSERT INTO orders VALUES (500001, 1, 'mine')"
		PGDATABASE=${name}_pub sql -c "INSERT INTO orders VALUES (500001, 2, 'theirs')"
		must_become theirs "SELECT note FROM orders WHERE id = 500001"
		agree
	fi
	worked "$1 at the provider, $2 at the subscriber"
	sql -c "SELECT pglogical.drop_subscription('s_$name')" >/dev/null
}

pairs subscribe
