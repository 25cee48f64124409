-- The lines of an order, and nothing else of it.
\set w random(1, :warehouses)
\set d random(1, 10)
INSERT INTO order_line
	SELECT :w, :d, o, n, 1 + (hashint8extended(o * 100 + n, 0) & 2147483647) % :items, :w, NULL, 5, 10, 'abcdefghijklmnopqrstuvwx'
	FROM nextval('line_orders') o, generate_series(1, 10) n;
