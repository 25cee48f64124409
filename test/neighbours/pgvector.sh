# extension: vector
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE EXTENSION vector'
version vector
sql <<-'EOF'
	ALTER TABLE orders ADD place vector(3);
	UPDATE orders SET place = ARRAY[id % 100, customer, id % 7]::int[]::vector;
	CREATE INDEX orders_hnsw ON orders USING hnsw (place vector_l2_ops);
	CREATE INDEX orders_ivf ON orders USING ivfflat (place vector_l2_ops);
	DELETE FROM orders WHERE id % 11 = 0;
	VACUUM orders;
EOF
must_be t "SELECT count(*) = 10 FROM (SELECT id FROM orders WHERE customer >= 0 ORDER BY place <-> '[1,2,3]' LIMIT 10) t"
agree
worked "hnsw and ivfflat indexes beside hybrid ones"
refused 'CREATE INDEX orders_place ON orders USING hybrid (place)'
sql -c 'SELECT * FROM hybrid_make_operator_classes()' >/dev/null
sql -c 'CREATE INDEX orders_place ON orders USING hybrid (place)'
agree
worked "the same after hybrid_make_operator_classes()"
sql -c 'DROP INDEX orders_place' -c 'DROP EXTENSION vector CASCADE'
agree
worked "DROP EXTENSION vector CASCADE"
