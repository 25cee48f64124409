# extension: pageinspect
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION pageinspect'
version pageinspect
refused "SELECT * FROM bt_metap('orders_pkey')"
refused "SELECT * FROM bt_page_stats('orders_pkey', 1)"
refused "SELECT * FROM bt_page_items('orders_pkey', 1)"
refused "SELECT * FROM bt_page_items(get_raw_page('orders_pkey', 1))"
must_be t "SELECT lower <= upper FROM page_header(get_raw_page('orders_pkey', 0))"
worked "get_raw_page and page_header"
agree
