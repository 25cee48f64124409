# extension: postgis
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION postgis'
version postgis
sql <<-'EOF'
	ALTER TABLE orders ADD place geometry(Point, 4326);
	UPDATE orders SET place = ST_SetSRID(ST_MakePoint(id % 180, customer % 90), 4326);
	CREATE INDEX orders_gist ON orders USING gist (place);
	CREATE INDEX orders_brin ON orders USING brin (place);
	DELETE FROM orders WHERE id % 11 = 0;
	VACUUM orders;
EOF
scan_agrees "SELECT sum(id) FROM orders WHERE place && ST_MakeEnvelope(5, 5, 9, 9, 4326) AND customer > 50"
agree
worked "gist and brin indexes beside hybrid ones"
refused 'CREATE INDEX orders_place ON orders USING hybrid (place)'
sql -c 'SELECT * FROM hybrid_make_operator_classes()' >/dev/null
sql -c 'CREATE INDEX orders_place ON orders USING hybrid (place)'
agree
scan_agrees "SELECT count(*) FROM orders WHERE place = ST_SetSRID(ST_MakePoint(31, 12), 4326)"
worked "the same after hybrid_make_operator_classes()"
sql -c 'CREATE TABLE shapes AS SELECT place::geography AS place FROM orders' -c 'CREATE INDEX ON shapes USING hybrid (place)' &&
	worked "geography"
agree
