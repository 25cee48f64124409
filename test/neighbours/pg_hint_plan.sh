# extension: pg_hint_plan
# preload: pg_hint_plan
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION pg_hint_plan'
version pg_hint_plan

# plan HINT NODE: the hint must lead to that node
plan() {
	sql -c "/*+ $1 */ EXPLAIN SELECT count(*) FROM orders WHERE customer < 900 AND id > 5" | grep -q "$2"
	worked "$1: $2"
}
plan 'SeqScan(orders)' 'Seq Scan on orders'
plan 'IndexScan(orders orders_customer)' 'Index Scan using orders_customer'
plan 'IndexScan(orders orders_pkey)' 'Index Scan using orders_pkey'
plan 'BitmapScan(orders orders_customer)' 'Bitmap Index Scan on orders_customer'
sql -c "/*+ IndexOnlyScan(orders orders_customer) */ EXPLAIN SELECT customer FROM orders WHERE customer > 5" |
	grep -q 'Index Only Scan using orders_customer'
worked 'IndexOnlyScan(orders orders_customer)'
sql -c '/*+ IndexScanRegexp(orders .*pkey) */ EXPLAIN SELECT * FROM orders WHERE id > 5' | grep -q 'Index Scan using orders_pkey'
worked 'IndexScanRegexp(orders .*pkey)'
agree
