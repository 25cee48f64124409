# extension: rum
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION rum'
version rum
sql <<-'EOF'
	ALTER TABLE orders ADD words tsvector;
	UPDATE orders SET words = to_tsvector('simple', note || ' ' || customer);
	CREATE INDEX orders_rum ON orders USING rum (words rum_tsvector_ops);
	DELETE FROM orders WHERE id % 11 = 0;
	VACUUM orders;
EOF
scan_agrees "SELECT count(*), sum(id) FROM orders WHERE words @@ to_tsquery('simple', '77') AND id > 10"
agree
worked "a rum index beside hybrid ones"
