# setting: max_logical_replication_workers = 8
. "$(dirname "$0")/common.sh"

# On 17 a subscriber looks for rows by btree and hash indexes only.
case $(sql -c 'SHOW server_version_num') in 17*) on_17=t ;; *) on_17= ;; esac

subscribe() {
	if [ -n "$on_17" ] && [ "$2" = hybrid ]; then
		echo "not tried on 17: $1 at the publisher, hybrid at the subscriber"
		return
	fi
	name=${1}_$2
	sql -c "CREATE DATABASE ${name}_pub" -c "CREATE DATABASE ${name}_sub"
	make_side "${name}_sub" "$2"
	make_side "${name}_pub" "$1"
	sql -c 'CREATE PUBLICATION p FOR TABLE orders' -c "SELECT pg_create_logical_replication_slot('$name', 'pgoutput')" >/dev/null
	export PGDATABASE=${name}_sub
	sql -c "CREATE SUBSCRIPTION s CONNECTION 'host=$PGHOST port=$PGPORT user=postgres dbname=${name}_pub'
		PUBLICATION p WITH (create_slot = false, slot_name = '$name')"
	must_become 0 "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate NOT IN ('r', 's')"
	replicates "$name" "$1" "$2"
	sql -c 'DROP SUBSCRIPTION s'
	worked "$1 at the publisher, $2 at the subscriber: copy, INSERT, UPDATE, UPDATE of the key, DELETE"
}

pairs subscribe
# a hybrid index as replica identity
export PGDATABASE=hybrid_btree_pub
if sql -c 'CREATE UNIQUE INDEX orders_note ON orders USING hybrid (id, customer)' -c 'ALTER TABLE orders REPLICA IDENTITY USING INDEX orders_note'; then
	worked "REPLICA IDENTITY USING INDEX of a hybrid index"
else
	echo "refused: REPLICA IDENTITY USING INDEX of a hybrid index"
fi
