-- Initial population, clause 4.3.3.  Variables: warehouses, items (100000 in
-- the standard), customers (of a district: 3000).
SELECT setseed(0.42) \g /dev/null
INSERT INTO item SELECT i, rnd(1, 10000), rnd_text(14, 24), rnd(100, 10000) / 100.0, rnd_text(26, 50)
	FROM generate_series(1, :items) i;
INSERT INTO warehouse SELECT w, rnd_text(6, 10), rnd_text(10, 20), rnd_text(10, 20), rnd_text(10, 20),
	rnd_text(2, 2), '123411111', rnd(0, 2000) / 10000.0, 100 * :customers
	FROM generate_series(1, :warehouses) w;
INSERT INTO district SELECT w, d, rnd_text(6, 10), rnd_text(10, 20), rnd_text(10, 20), rnd_text(10, 20),
	rnd_text(2, 2), '123411111', rnd(0, 2000) / 10000.0, 10 * :customers, :customers + 1
	FROM generate_series(1, :warehouses) w, generate_series(1, 10) d;
INSERT INTO stock SELECT w, i, rnd(10, 100), t, t, t, t, t, t, t, t, t, t, 0, 0, 0, rnd_text(26, 50)
	FROM generate_series(1, :warehouses) w, generate_series(1, :items) i,
		LATERAL (SELECT left(md5((w, i)::text), 24) AS t) x;
INSERT INTO customer SELECT w, d, c, rnd_text(8, 16), 'OE',
	last_name(CASE WHEN c <= 1000 THEN c - 1 ELSE nurand(255, 0, 999, 123) END),
	rnd_text(10, 20), rnd_text(10, 20), rnd_text(10, 20), 'CA', '123411111', '0123456789012345', now(),
	CASE WHEN random() < 0.1 THEN 'BC' ELSE 'GC' END, 50000, rnd(0, 5000) / 10000.0, -10, 10, 1, 0,
	rnd_text(300, 500)
	FROM generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) c;
INSERT INTO history SELECT c_id, c_d_id, c_w_id, c_d_id, c_w_id, now(), 10, rnd_text(12, 24) FROM customer;
INSERT INTO orders SELECT w, d, o, c, now(), CASE WHEN o <= 0.7 * :customers THEN rnd(1, 10) END, rnd(5, 15), 1
	FROM generate_series(1, :warehouses) w, generate_series(1, 10) d,
		LATERAL (SELECT row_number() OVER () AS o, c
			FROM (SELECT c FROM generate_series(1, :customers) c ORDER BY hashint4(c + 100000 * d + 7000000 * w)) s) p;
INSERT INTO order_line SELECT o_w_id, o_d_id, o_id, n, rnd(1, :items), o_w_id,
	CASE WHEN o_carrier_id IS NOT NULL THEN o_entry_d END, 5,
	CASE WHEN o_carrier_id IS NOT NULL THEN 0 ELSE rnd(1, 999999) / 100.0 END, left(md5(random()::text), 24)
	FROM orders, generate_series(1, o_ol_cnt) n;
INSERT INTO new_order SELECT o_w_id, o_d_id, o_id FROM orders WHERE o_carrier_id IS NULL;
VACUUM ANALYZE;
