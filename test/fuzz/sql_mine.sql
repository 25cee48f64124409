-- What the role that sql.py plays has of its own.
CREATE TABLE mine.t (i int, t text COLLATE "C", u uuid, n numeric, a int[], b bytea, f float8, d date);
INSERT INTO mine.t SELECT g % 5, 't' || g % 7, md5((g % 9)::text)::uuid, g, ARRAY[g % 3], decode(md5((g % 4)::text), 'hex'), g % 6, '2020-01-01'::date + g % 8
FROM generate_series(1, 700) g;
CREATE INDEX mine_i ON mine.t USING hybrid (i);
CREATE INDEX mine_t ON mine.t USING hybrid (t, i);
CREATE INDEX mine_u ON mine.t USING hybrid (u, t, b);
CREATE INDEX mine_b ON mine.t USING btree (b);
CREATE INDEX mine_many ON mine.t USING hybrid (i, t DESC, u, n, a, f, d);
CREATE TABLE mine.big (plain text, packed text, b bytea);
ALTER TABLE mine.big ALTER plain SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL;
INSERT INTO mine.big SELECT repeat('x', (10 ^ n)::int), repeat('y', (10 ^ n)::int), decode(repeat('00', (10 ^ n)::int), 'hex') FROM generate_series(0, 6) n;
CREATE TABLE mine.p (i int, t text) PARTITION BY RANGE (i);
CREATE TABLE mine.p1 PARTITION OF mine.p FOR VALUES FROM (0) TO (100);
CREATE INDEX mine_p ON mine.p USING hybrid (i);
CREATE FUNCTION mine.trap() RETURNS void LANGUAGE sql AS '';
ANALYZE mine.t;
CREATE TABLE mine.r AS SELECT * FROM its.t;
CREATE INDEX r_k ON mine.r USING hybrid (k);
CREATE INDEX r_c ON mine.r USING hybrid (c, n);
CREATE INDEX r_n ON mine.r USING hybrid (n its.int_ops);
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON mine.t, mine.r TO holder;
CREATE TABLE mine.s AS SELECT * FROM its.t;
CREATE INDEX s_k ON mine.s USING btree (k);
CREATE INDEX s_n ON mine.s USING hybrid (n its.int_ops);
