--
-- A table with a hybrid primary key and a second hybrid index.  Both have entries in
-- leaves and in the log, and dead ones.
--
CREATE EXTENSION IF NOT EXISTS hybridindex;
CREATE TABLE orders (
	id bigint,
	customer int NOT NULL,
	note text COLLATE "C",
	PRIMARY KEY (id) WITH (access_method = hybrid));
CREATE INDEX orders_customer ON orders USING hybrid (customer, note);

INSERT INTO orders SELECT i, i * 7919 % 1000, 'note ' || i FROM generate_series(1, 20000) i;
SELECT hybrid_merge('orders_pkey'), hybrid_merge('orders_customer') \g /dev/null
INSERT INTO orders SELECT i, i * 7919 % 1000, 'note ' || i FROM generate_series(20001, 24000) i;
DELETE FROM orders WHERE id % 5 = 0;
UPDATE orders SET customer = customer + 1 WHERE id % 7 = 0;
ANALYZE orders;

-- Count rows and sum their hashes, by an index or by a sequential scan: the rows from the
-- least value of the column on.
CREATE FUNCTION neighbours_answer(tab regclass, col name, ind name) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	query text;
	least text;
	plan text;
	answer text;
BEGIN
	PERFORM set_config('enable_seqscan', (ind IS NULL)::text, true),
		set_config('enable_bitmapscan', 'false', true),
		set_config('enable_indexscan', (ind IS NOT NULL)::text, true),
		set_config('enable_indexonlyscan', (ind IS NOT NULL)::text, true);
	EXECUTE format('SELECT %I FROM %s ORDER BY 1 LIMIT 1', col, tab) INTO least;
	query := format('SELECT count(*) || '' '' || sum(hashtextextended(t::text, 0)) FROM %s t WHERE %I >= %L', tab, col, least);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	IF ind IS NOT NULL AND plan NOT LIKE '%"' || ind || '"%' THEN
		RAISE 'index % is not used: %', ind, plan;
	END IF;
	EXECUTE query INTO answer;
	RETURN answer;
END $$;

-- Fail if a hybrid index of this database is damaged, or if one of the table
-- answers something else than a sequential scan.
CREATE FUNCTION neighbours_agree(tab regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	index record;
BEGIN
	FOR index IN SELECT c.oid, c.relname, i.indrelid, a.attname
		FROM pg_class c JOIN pg_am m ON m.oid = c.relam AND m.amname = 'hybrid'
		JOIN pg_index i ON i.indexrelid = c.oid
		LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		WHERE c.relkind = 'i'
	LOOP
		PERFORM hybrid_index_check(index.oid, true);
		IF index.indrelid = tab THEN
			IF neighbours_answer(tab, index.attname, index.relname)
				IS DISTINCT FROM neighbours_answer(tab, index.attname, NULL) THEN
				RAISE 'index % gives another answer than a sequential scan', index.relname;
			END IF;
		END IF;
	END LOOP;
	IF NOT EXISTS (SELECT FROM hybrid_indexes WHERE format('%I.%I', schemaname, tablename)::regclass = tab) THEN
		RAISE 'table % has no hybrid index', tab;
	END IF;
END $$;
