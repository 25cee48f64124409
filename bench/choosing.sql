-- The sizes of docs/guide/choosing.md: kinds of keys with btree and with options of
-- hybrid, after a load and at rest (merged).  ./dev psql -qXf bench/choosing.sql
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS hybridindex;
DROP SCHEMA IF EXISTS choosing CASCADE;
CREATE SCHEMA choosing;
SET search_path = choosing, public;
SELECT setseed(0.5) \gset
CREATE TABLE k AS
SELECT g AS serial, g / 20 AS few_rows, md5(g::text)::uuid AS uuid,
	md5((g % 300)::text)::uuid AS tenant, (random() * 49)::int AS low,
	(ARRAY['anna', 'ben', 'carla', 'deniz', 'emil', 'fatima', 'goran', 'hana'])[1 + g % 8] || '.'
		|| substr(md5(g::text), 1, 6) || '@' || (ARRAY['example.org', 'mail.example.com', 'post.example.net'])[1 + g % 3] AS email,
	'/srv/www/customer' || g % 500 || '/images/2026/' || substr(md5(g::text), 1, 8) || '.jpeg' AS path,
	timestamptz '2026-01-01' + g * interval '1 second' AS at, g % 100 AS sensor,
	(random() * 1000000)::numeric(12, 2) AS price, random() AS float
FROM generate_series(1, 200000) g;
CREATE TABLE sizes (id serial, kind text, method text, loaded int8, rest int8, built int8);

-- twenty statements fill a table with one index
CREATE PROCEDURE try(kind text, source text, spec text, method text, options text DEFAULT '') LANGUAGE plpgsql AS $$
DECLARE
	n int;
BEGIN
	INSERT INTO sizes (kind, method) VALUES (kind, method || ' ' || options) RETURNING id INTO n;
	EXECUTE format('CREATE TABLE t%s AS %s WITH NO DATA', n, source);
	EXECUTE format('CREATE INDEX i%s ON t%1$s USING %s %s %s', n, method, spec, options);
	COMMIT;
	FOR i IN 0 .. 19 LOOP
		EXECUTE format('INSERT INTO t%s SELECT * FROM (%s) s OFFSET %s LIMIT 10000', n, source, i * 10000);
		COMMIT;
	END LOOP;
	UPDATE sizes SET loaded = pg_relation_size(format('i%s', n)) WHERE id = n;
	COMMIT;
END $$;

CALL try('uuid keys', $q$SELECT uuid FROM k$q$, $q$(uuid)$q$, 'btree');
CALL try('uuid keys', $q$SELECT uuid FROM k$q$, $q$(uuid)$q$, 'hybrid');
CALL try('uuid keys', $q$SELECT uuid FROM k$q$, $q$(uuid)$q$, 'hybrid', 'WITH (layout = trie)');
CALL try('bigserial keys', $q$SELECT serial::int8 AS id FROM k$q$, $q$(id)$q$, 'btree');
CALL try('bigserial keys', $q$SELECT serial::int8 AS id FROM k$q$, $q$(id)$q$, 'hybrid');
CALL try('bigserial keys', $q$SELECT serial::int8 AS id FROM k$q$, $q$(id)$q$, 'hybrid', 'WITH (layout = trie)');
CALL try('e-mails', $q$SELECT email FROM k ORDER BY uuid$q$, $q$(email COLLATE "C")$q$, 'btree');
CALL try('e-mails', $q$SELECT email FROM k ORDER BY uuid$q$, $q$(email COLLATE "C")$q$, 'hybrid');
CALL try('e-mails', $q$SELECT email FROM k ORDER BY uuid$q$, $q$(email COLLATE "C")$q$, 'hybrid', 'WITH (layout = trie)');
CALL try('e-mails, hope', $q$SELECT email FROM k ORDER BY uuid$q$, $q$(email COLLATE "C" text_hope_ops)$q$, 'hybrid');
CALL try('e-mails, en', $q$SELECT email FROM k ORDER BY uuid$q$, $q$(email COLLATE "en-x-icu")$q$, 'btree');
CALL try('e-mails, en', $q$SELECT email FROM k ORDER BY uuid$q$, $q$(email COLLATE "en-x-icu")$q$, 'hybrid');
CALL try('paths', $q$SELECT path FROM k ORDER BY uuid$q$, $q$(path COLLATE "C")$q$, 'btree');
CALL try('paths', $q$SELECT path FROM k ORDER BY uuid$q$, $q$(path COLLATE "C")$q$, 'hybrid');
CALL try('paths', $q$SELECT path FROM k ORDER BY uuid$q$, $q$(path COLLATE "C")$q$, 'hybrid', 'WITH (layout = trie)');
CALL try('paths, en', $q$SELECT path FROM k ORDER BY uuid$q$, $q$(path COLLATE "en-x-icu")$q$, 'btree');
CALL try('paths, en', $q$SELECT path FROM k ORDER BY uuid$q$, $q$(path COLLATE "en-x-icu")$q$, 'hybrid');
CALL try('time series', $q$SELECT sensor, at FROM k$q$, $q$(sensor, at)$q$, 'btree');
CALL try('time series', $q$SELECT sensor, at FROM k$q$, $q$(sensor, at)$q$, 'hybrid');
CALL try('time series', $q$SELECT sensor, at FROM k$q$, $q$(sensor, at)$q$, 'hybrid', 'WITH (filter = surf)');
CALL try('time only', $q$SELECT at FROM k$q$, $q$(at)$q$, 'btree');
CALL try('time only', $q$SELECT at FROM k$q$, $q$(at)$q$, 'hybrid');
CALL try('covering', $q$SELECT serial, email, price FROM k$q$, $q$(serial) INCLUDE (email, price)$q$, 'btree');
CALL try('covering', $q$SELECT serial, email, price FROM k$q$, $q$(serial) INCLUDE (email, price)$q$, 'hybrid');
CALL try('covering', $q$SELECT serial, email, price FROM k$q$, $q$(serial) INCLUDE (email, price)$q$, 'hybrid', 'WITH (compression = none)');
CALL try('few distinct', $q$SELECT low FROM k$q$, $q$(low)$q$, 'btree');
CALL try('few distinct', $q$SELECT low FROM k$q$, $q$(low)$q$, 'hybrid');
CALL try('tenant and number', $q$SELECT tenant, serial FROM k ORDER BY uuid$q$, $q$(tenant, serial)$q$, 'btree');
CALL try('tenant and number', $q$SELECT tenant, serial FROM k ORDER BY uuid$q$, $q$(tenant, serial)$q$, 'hybrid');
CALL try('tenant and number', $q$SELECT tenant, serial FROM k ORDER BY uuid$q$, $q$(tenant, serial)$q$, 'hybrid', 'WITH (layout = trie)');
CALL try('numeric', $q$SELECT price FROM k$q$, $q$(price)$q$, 'btree');
CALL try('numeric', $q$SELECT price FROM k$q$, $q$(price)$q$, 'hybrid');
CALL try('float8', $q$SELECT float FROM k$q$, $q$(float)$q$, 'btree');
CALL try('float8', $q$SELECT float FROM k$q$, $q$(float)$q$, 'hybrid');
SELECT pg_sleep(30) \gset
UPDATE sizes SET rest = pg_relation_size(format('i%s', id));
REINDEX SCHEMA choosing;
UPDATE sizes SET built = pg_relation_size(format('i%s', id));
SELECT kind, method, loaded / 1024 AS loaded_kb, rest / 1024 AS rest_kb, built / 1024 AS reindexed_kb,
	round(rest::numeric / first_value(rest) OVER (PARTITION BY split_part(kind, ',', 1) ORDER BY id), 2) AS by_btree
FROM sizes ORDER BY id;
DROP SCHEMA choosing CASCADE;
