# extension: amcheck
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION amcheck'
version amcheck
refused "SELECT bt_index_check('orders_pkey')"
refused "SELECT bt_index_parent_check('orders_customer', true)"
must_be 0 "SELECT count(*) FROM verify_heapam('orders')"
worked "verify_heapam on a table with hybrid indexes"
pg_amcheck --no-strict-names -d postgres >/dev/null
worked "pg_amcheck of the database (it passes over hybrid indexes)"
agree
