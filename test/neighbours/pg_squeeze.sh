# extension: pg_squeeze
# preload: pg_squeeze
# plugins: pg_squeeze
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION pg_squeeze'
version pg_squeeze
file() { sql -c "SELECT pg_relation_filenode('$1')"; }
squeeze() {
	before=$(file orders)
	sql -c "SELECT squeeze.squeeze_table('public', 'orders'$1)" >/dev/null
	[ "$(file orders)" != "$before" ]
	must_be t "SELECT reloptions = '{access_method=hybrid}' FROM pg_class WHERE relname = 'orders_pkey'"
	must_be hybrid "SELECT amname FROM pg_am m JOIN pg_class c ON c.relam = m.oid WHERE c.relname = 'orders_customer'"
	agree
}

# It asks for a replica identity that is a unique index: a hybrid one will do.
must_be d "SELECT relreplident FROM pg_class WHERE relname = 'orders'"
squeeze ''
worked "squeeze_table('public', 'orders')"
for i in $(seq 300); do
	echo "INSERT INTO orders VALUES (1000000 + $i, $i, 'new'); UPDATE orders SET customer = customer + 1 WHERE id % 300 = $i;"
	echo "DELETE FROM orders WHERE id = $i * 40 + 1;"
done | sql &
squeeze ''
wait $!
agree
worked "the same while others write"
refused "SELECT squeeze.squeeze_table('public', 'orders', 'orders_customer')"
agree
