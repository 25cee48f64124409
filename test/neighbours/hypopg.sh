# extension: hypopg
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION hypopg'
version hypopg
refused "SELECT * FROM hypopg_create_index('CREATE INDEX ON orders USING hybrid (note)')"
# HypoPG with hypopg.patch knows the method.
hypothetical="SELECT hypopg_create_index('CREATE INDEX ON orders USING hybrid (note)')"
if sql -c "$hypothetical" >/dev/null 2>&1; then
	sql -c "$hypothetical" -c "EXPLAIN SELECT * FROM orders WHERE note = 'a'" | grep -q 'Scan using .*hybrid_orders_note'
	sql -c "$hypothetical" -c "EXPLAIN SELECT note FROM orders ORDER BY note LIMIT 1" | grep -q 'Index Only Scan using .*hybrid_orders_note'
	worked "a hypothetical hybrid index: look-up, order, index-only scan"
fi
sql -c "SELECT hypopg_create_index('CREATE INDEX ON orders (note)')" \
	-c "EXPLAIN SELECT * FROM orders WHERE note = 'a'" | grep -q 'Scan using .*btree_orders_note'
worked "a hypothetical btree index on a table with hybrid indexes"
sql -c "SELECT hypopg_hide_index('orders_pkey'::regclass)" -c 'EXPLAIN SELECT * FROM orders WHERE id = 1' 2>/dev/null |
	grep -q 'Seq Scan' && worked "hiding a hybrid index" || echo "no hypopg_hide_index in this version"
sql -c "SET hybridindex.replace_btree = on" -c "SELECT hypopg_create_index('CREATE INDEX ON orders (note)')" >/dev/null
worked "a hypothetical index without USING, with hybridindex.replace_btree"
agree
