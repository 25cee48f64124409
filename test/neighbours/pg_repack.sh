# extension: pg_repack
# program: pg_repack
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION pg_repack'
version pg_repack
hybrid="SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_class c JOIN pg_am m ON m.oid = c.relam
	WHERE m.amname = 'hybrid' AND c.relkind = 'i'"
kept() {
	must_be 'orders_customer orders_pkey' "$hybrid"
	must_be t "SELECT reloptions = '{access_method=hybrid}' FROM pg_class WHERE relname = 'orders_pkey'"
	agree
}

# Other sessions write while a table is repacked: pg_repack replays that by the key.
writers() {
	for i in $(seq 40); do
		echo "INSERT INTO orders VALUES (1000000 + $i * $1, $i, 'new') ON CONFLICT (id) DO UPDATE SET note = 'again';"
		echo "UPDATE orders SET customer = customer + 1 WHERE id % 40 = $i;"
		echo "DELETE FROM orders WHERE id = $i * 40 + 1;"
	done | sql
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
repack() {
	pg_repack "$@" postgres >"$log" 2>&1 || {
		cat "$log" >&2
		exit 1
	}
	kept
	worked "pg_repack $*"
}
file() { sql -c "SELECT pg_relation_filenode('$1')"; }

before=$(file orders)
writers 1 &
repack --no-order --table=orders
wait $!
agree
[ "$(file orders)" != "$before" ]
worked "the same while others write"
repack --table=orders --order-by=customer
before=$(file orders_customer)
repack --table=orders --only-indexes
repack --index=orders_customer
[ "$(file orders_customer)" != "$before" ]
sql -c 'CLUSTER orders USING orders_customer'
repack --table=orders
