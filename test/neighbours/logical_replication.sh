# setting: max_logical_replication_workers = 8
. "$(dirname "$0")/common.sh"

# pair DATABASE: the table is hybrid in the publisher, the subscriber, or both; the
# other one has btree.
rows="SELECT count(*) || ' ' || sum(hashtextextended(o::text, 0)) FROM orders o"
for sides in 'hybrid btree' 'btree hybrid' 'hybrid hybrid'; do
	set -- $sides
	name=${1}_$2
	sql -c "CREATE DATABASE ${name}_pub" -c "CREATE DATABASE ${name}_sub"
	for side in pub sub; do
		export PGDATABASE=${name}_$side
		make_orders
		[ $side = pub ] || sql -c 'TRUNCATE orders'
		method=$1
		[ $side = pub ] || method=$2
		[ "$method" = hybrid ] || sql -c "CALL hybrid_revert_table('orders')"
	done
	export PGDATABASE=${name}_pub
	sql -c 'CREATE PUBLICATION p FOR TABLE orders' -c "SELECT pg_create_logical_replication_slot('$name', 'pgoutput')" >/dev/null
	PGDATABASE=${name}_sub sql -c "CREATE SUBSCRIPTION s CONNECTION 'host=$PGHOST port=$PGPORT user=postgres dbname=${name}_pub'
		PUBLICATION p WITH (create_slot = false, slot_name = '$name')"
	(
		export PGDATABASE=${name}_sub
		must_become 0 "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate NOT IN ('r', 's')"
	)
	sql <<-'EOF'
		INSERT INTO orders SELECT i, i % 1000, 'new ' || i FROM generate_series(30001, 40000) i;
		UPDATE orders SET note = note || '!' WHERE id % 3 = 0;
		UPDATE orders SET id = -id WHERE id % 50 = 1;
		DELETE FROM orders WHERE id % 11 = 0;
	EOF
	wanted=$(sql -c "$rows")
	for side in sub pub; do
		export PGDATABASE=${name}_$side
		must_become "$wanted" "$rows"
		agree_if=$1
		[ $side = pub ] || agree_if=$2
		[ "$agree_if" = btree ] || agree
	done
	PGDATABASE=${name}_sub sql -c 'DROP SUBSCRIPTION s'
	worked "$1 at the publisher, $2 at the subscriber: copy, INSERT, UPDATE, UPDATE of the key, DELETE"
done
# a hybrid index as replica identity
export PGDATABASE=hybrid_hybrid_pub
if sql -c 'CREATE UNIQUE INDEX orders_note ON orders USING hybrid (id, customer)' -c 'ALTER TABLE orders REPLICA IDENTITY USING INDEX orders_note'; then
	worked "REPLICA IDENTITY USING INDEX of a hybrid index"
fi
