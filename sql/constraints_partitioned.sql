-- Primary keys of partitioned tables: hybrid from PostgreSQL 18 on (the other
-- expected file is that of older ones), and kept by ALTER TABLE.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS hybridindex;
RESET client_min_messages;
\c -
CREATE SCHEMA conp;
SET search_path = conp, public;
CREATE VIEW kinds AS
SELECT c.relname, c.relkind, am.amname, c.reloptions, i.indisvalid AS valid
FROM pg_class c JOIN pg_am am ON am.oid = c.relam
	JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = 'conp'::regnamespace
ORDER BY 1;

SET hybridindex.replace_btree = on;
CREATE TABLE pt (a int, b int, c text, PRIMARY KEY (a, b), UNIQUE (b, a))
	PARTITION BY RANGE (b);
CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (100);
CREATE TABLE pt2 PARTITION OF pt FOR VALUES FROM (100) TO (200)
	PARTITION BY LIST (b);
CREATE TABLE pt21 PARTITION OF pt2 DEFAULT;
CREATE TABLE pt3 (a int NOT NULL, b int NOT NULL, c text);
ALTER TABLE pt ATTACH PARTITION pt3 FOR VALUES FROM (200) TO (300);
CREATE INDEX ON pt (c);
RESET hybridindex.replace_btree;
INSERT INTO pt SELECT i, i % 300 FROM generate_series(1, 3000) i;
SELECT * FROM kinds;
ALTER TABLE pt ALTER a TYPE bigint;
ALTER TABLE pt ALTER c TYPE varchar;
CREATE TABLE pt4 PARTITION OF pt FOR VALUES FROM (300) TO (400);
SELECT * FROM kinds;
INSERT INTO pt VALUES (1, 1);

-- a foreign key to it, and from it
CREATE TABLE ref (a bigint, b int, FOREIGN KEY (a, b) REFERENCES pt);
INSERT INTO ref VALUES (1, 1), (2999, 299);
\set VERBOSITY terse
INSERT INTO ref VALUES (1, 2);
\set VERBOSITY default
ALTER TABLE ref ALTER a TYPE int;
CREATE TABLE target (id int PRIMARY KEY WITH (access_method = hybrid));
INSERT INTO target SELECT generate_series(0, 400);
ALTER TABLE pt ADD CONSTRAINT to_target FOREIGN KEY (b) REFERENCES target;
CREATE TABLE pt5 PARTITION OF pt FOR VALUES FROM (400) TO (500);
\set VERBOSITY terse
INSERT INTO pt VALUES (1, 401);
\set VERBOSITY default
ALTER TABLE target ALTER id TYPE bigint;
SELECT conrelid::regclass, conindid::regclass FROM pg_constraint
WHERE confrelid = 'target'::regclass AND contype = 'f' ORDER BY 1;
CREATE UNIQUE INDEX u ON pt (a, b);
ALTER TABLE pt ADD CONSTRAINT more UNIQUE USING INDEX u;
-- a partition's own
ALTER TABLE pt1 ADD CONSTRAINT own UNIQUE (c) WITH (access_method = hybrid);
SELECT * FROM kinds WHERE relname IN ('own', 'target_pkey');

-- what is attached becomes what the partitioned table has
SET hybridindex.replace_btree = on;
INSERT INTO target VALUES (500);
CREATE TABLE to_attach (a int, b int, c text, PRIMARY KEY (a, b), UNIQUE (c));
CREATE UNIQUE INDEX ON to_attach (b, a);
INSERT INTO to_attach SELECT i, 500, i FROM generate_series(1, 100) i;
ALTER TABLE to_attach ALTER a TYPE bigint, ALTER c TYPE varchar;
ALTER TABLE pt ATTACH PARTITION to_attach FOR VALUES FROM (500) TO (501);
SELECT * FROM kinds WHERE relname LIKE 'to_attach%';
CREATE INDEX above_a ON ONLY pt USING btree (a);
CREATE INDEX below_a ON pt1 (a);
ALTER INDEX above_a ATTACH PARTITION below_a;
SELECT * FROM kinds WHERE relname IN ('above_a', 'below_a');
CREATE TABLE above (a int, b int) PARTITION BY LIST (a);
CREATE TABLE below (a int, b int, PRIMARY KEY (b, a));
ALTER TABLE above ATTACH PARTITION below DEFAULT;
ALTER TABLE above ADD PRIMARY KEY (b, a);
SELECT * FROM kinds WHERE relname ~ '^(above|below)_';
-- a key that comes later, with the access method that partitions do not have
RESET hybridindex.replace_btree;
CREATE TABLE later (id int, u int) PARTITION BY RANGE (id);
CREATE TABLE later1 PARTITION OF later FOR VALUES FROM (0) TO (10);
CREATE TABLE later2 PARTITION OF later FOR VALUES FROM (10) TO (20);
INSERT INTO later SELECT i, i FROM generate_series(0, 19) i;
ALTER TABLE later1 ADD PRIMARY KEY (id) WITH (access_method = hybrid);
ALTER TABLE later2 ADD PRIMARY KEY (id);
ALTER TABLE later ADD PRIMARY KEY (id);
SELECT relname, amname FROM kinds WHERE relname LIKE 'later%';
INSERT INTO later VALUES (7);
SET hybridindex.replace_btree = on;
CREATE TABLE itself (id int, up int);
ALTER TABLE itself ADD PRIMARY KEY (id), ADD FOREIGN KEY (up) REFERENCES itself,
	ADD COLUMN other int REFERENCES itself;
INSERT INTO itself VALUES (1, 1, 1);
INSERT INTO itself VALUES (2, 3, 1);
SELECT conname, conindid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = 'itself'::regclass AND contype = 'f' ORDER BY 1;
RESET hybridindex.replace_btree;

-- btree keys of partitioned tables stay so before PostgreSQL 18, without a word
CREATE TABLE was_btree (id int, u int, PRIMARY KEY (id, u)) PARTITION BY RANGE (id);
CREATE TABLE was_btree_1 PARTITION OF was_btree FOR VALUES FROM (0) TO (10);
ALTER TABLE was_btree_1 ADD UNIQUE (u);
SET hybridindex.replace_btree = on;
ALTER TABLE was_btree ALTER u TYPE bigint;
RESET hybridindex.replace_btree;
SELECT * FROM kinds WHERE relname LIKE 'was_btree%';

-- partitions may belong to others
SET client_min_messages = warning;
CREATE ROLE conp_above;
CREATE ROLE conp_below;
RESET client_min_messages;
GRANT ALL ON SCHEMA conp TO conp_above, conp_below;
CREATE TABLE parts (a int NOT NULL, b int NOT NULL) PARTITION BY RANGE (a);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
CREATE TABLE parts_3 (a int NOT NULL, b int NOT NULL);
CREATE UNIQUE INDEX one_a ON parts_1 USING hybrid (a);
CREATE UNIQUE INDEX two_a ON parts_2 USING btree (a);
CREATE UNIQUE INDEX one_ab ON parts_1 USING hybrid (a, b);
CREATE UNIQUE INDEX two_ab ON parts_2 USING btree (a, b);
CREATE UNIQUE INDEX three_a ON parts_3 USING hybrid (a);
CREATE UNIQUE INDEX one_ba ON parts_1 USING hybrid (b, a);
ALTER TABLE parts_1 ADD CONSTRAINT one_ba_key UNIQUE (b, a) WITH (access_method = hybrid);
CREATE INDEX one_b ON parts_1 USING hybrid (b);
INSERT INTO parts VALUES (1, 1), (11, 11);
ALTER TABLE parts OWNER TO conp_above;
ALTER TABLE parts_1 OWNER TO conp_below;
ALTER TABLE parts_2 OWNER TO conp_below;
ALTER TABLE parts_3 OWNER TO conp_below;
SET ROLE conp_above;
CREATE UNIQUE INDEX above_a_key ON parts USING btree (a);
CREATE UNIQUE INDEX above_ab_key ON parts USING btree (a, b);
ALTER TABLE parts ADD CONSTRAINT above_ba UNIQUE (b, a);
CREATE INDEX above_b ON ONLY parts (b);
ALTER INDEX above_b ATTACH PARTITION one_b;
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES FROM (20) TO (30);
SELECT hybrid_convert('one_b');
RESET ROLE;
SELECT c.relname, am.amname, pg_get_userbyid(c.relowner), c.relispartition
FROM pg_class c JOIN pg_am am ON am.oid = c.relam
WHERE c.relname ~ '^(one|two|three)_' AND c.relkind = 'i' ORDER BY 1;
DROP TABLE parts, parts_3;

-- a table that is not a partition, or an index that does not match, stays, whichever role owns it
CREATE TABLE victim (a int, b int);
CREATE INDEX victim_a ON victim USING hybrid (a);
ALTER TABLE victim OWNER TO conp_below;
SET ROLE conp_above;
CREATE TABLE mine (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE mine_1 PARTITION OF mine FOR VALUES FROM (0) TO (10);
CREATE TABLE mine_2 PARTITION OF mine FOR VALUES FROM (10) TO (20);
CREATE INDEX mine_a ON ONLY mine USING btree (a);
CREATE INDEX mine_h ON ONLY mine USING hybrid (a DESC, (b + 1)) WHERE b > 0;
CREATE INDEX mine_1_b ON mine_1 USING hybrid (b);
CREATE INDEX mine_1_t ON mine_1 USING hybrid (a int4_ops, b);
CREATE INDEX mine_1_a ON mine_1 USING btree (a);
CREATE INDEX mine_1_a2 ON mine_1 USING hybrid (a);
CREATE INDEX mine_1_h ON mine_1 USING btree (a DESC, (b + 1)) WHERE b > 1;
CREATE INDEX mine_1_h2 ON mine_1 USING btree (a DESC, (b + 1)) WHERE b > 0;
ALTER INDEX mine_a ATTACH PARTITION victim_a;
ALTER INDEX mine_a ATTACH PARTITION mine_1_b;
ALTER INDEX mine_a ATTACH PARTITION mine_1_t;
ALTER INDEX mine_a ATTACH PARTITION mine_1_a;
\set VERBOSITY terse
ALTER INDEX mine_a ATTACH PARTITION mine_1_a2;
\set VERBOSITY default
ALTER INDEX mine_a ATTACH PARTITION victim;
ALTER INDEX mine_a ATTACH PARTITION no_such_index;
ALTER INDEX mine_h ATTACH PARTITION mine_1_h;
ALTER INDEX mine_h ATTACH PARTITION mine_1_h2;
ALTER TABLE mine ATTACH PARTITION victim FOR VALUES FROM (20) TO (30);
RESET ROLE;
SELECT relname, amname FROM kinds WHERE relname ~ '^(mine|victim)' ORDER BY 1;
DROP TABLE mine, victim;
DROP OWNED BY conp_above, conp_below;
DROP ROLE conp_above, conp_below;

-- a partition that is attached gets the unique indexes of the partitioned table
CREATE TABLE of_btree (id int PRIMARY KEY, u int, UNIQUE (id, u))
	PARTITION BY RANGE (id);
SET hybridindex.replace_btree = on;
CREATE TABLE of_btree_1 (LIKE of_btree INCLUDING ALL);
INSERT INTO of_btree_1 VALUES (1, 1);
CREATE TABLE of_hybrid (id int PRIMARY KEY, u int, UNIQUE (id, u))
	PARTITION BY RANGE (id);
RESET hybridindex.replace_btree;
CREATE TABLE of_hybrid_1 (LIKE of_btree INCLUDING ALL);
INSERT INTO of_hybrid_1 VALUES (1, 1);
ALTER TABLE of_btree ATTACH PARTITION of_btree_1 FOR VALUES FROM (0) TO (10);
ALTER TABLE of_hybrid ATTACH PARTITION of_hybrid_1 FOR VALUES FROM (0) TO (10);
SELECT c.relname, am.amname, c.relispartition FROM pg_class c
	JOIN pg_am am ON am.oid = c.relam
WHERE c.relname LIKE 'of\_%' AND c.relkind IN ('i', 'I') ORDER BY 1;
INSERT INTO of_btree VALUES (1, 2);
INSERT INTO of_hybrid VALUES (1, 2);
DROP TABLE of_btree, of_hybrid;
-- LIKE copies unique indexes, to a partitioned table too
CREATE TABLE source (id int PRIMARY KEY WITH (access_method = hybrid, fillfactor = 80), c text);
CREATE UNIQUE INDEX ON source USING hybrid (id, c text_pattern_hope_ops)
	WITH (levels = 1, fillfactor = 70);
CREATE INDEX ON source USING hybrid (c);
CREATE TABLE like_source (LIKE source INCLUDING ALL) PARTITION BY RANGE (id);
SELECT pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = 'like_source'::regclass ORDER BY 1;
DROP TABLE source, like_source;

-- an index that partitions have of the other access method is attached, not made
-- again: whatever it is on
CREATE TABLE plain (id bigint, b int, c text) PARTITION BY RANGE (id);
CREATE TABLE plain1 PARTITION OF plain FOR VALUES FROM (0) TO (10);
CREATE TABLE plain2 PARTITION OF plain FOR VALUES FROM (10) TO (20)
	PARTITION BY RANGE (id);
CREATE TABLE plain21 PARTITION OF plain2 DEFAULT;
CREATE INDEX plain_b ON plain USING btree (b);
CREATE INDEX plain_e ON plain USING btree ((b + 1), c COLLATE "C") INCLUDE (id)
	WHERE b > 1 + 1;
SET hybridindex.replace_btree = on;
CREATE TABLE plain3 (LIKE plain INCLUDING ALL);
CREATE TABLE plain4 (more text, c text, b int, id bigint) PARTITION BY RANGE (id);
CREATE TABLE plain41 PARTITION OF plain4 DEFAULT;
CREATE INDEX ON plain41 (b);
ALTER TABLE plain4 DROP more;
ALTER TABLE plain ATTACH PARTITION plain3 FOR VALUES FROM (20) TO (30);
ALTER TABLE plain ATTACH PARTITION plain4 FOR VALUES FROM (30) TO (40);
CREATE TABLE plain5 (LIKE plain INCLUDING ALL);
ALTER TABLE plain5 DROP c;
\set VERBOSITY terse
ALTER TABLE plain ATTACH PARTITION plain5 FOR VALUES FROM (40) TO (50);
\set VERBOSITY default
DROP INDEX plain_b, plain_e;
CREATE INDEX one ON plain1 USING btree (c text_pattern_ops, lower(c) DESC) WHERE b > 5 - 1;
CREATE INDEX two ON plain21 USING btree (c text_pattern_ops, lower(c) DESC) WHERE b > 4;
CREATE INDEX no1 ON plain1 USING btree (c, lower(c)) WHERE b > 4;
CREATE INDEX no2 ON plain21 USING btree (c text_pattern_ops, lower(c)) WHERE b > 5;
CREATE INDEX no3 ON plain1 USING btree (c text_pattern_ops, lower(c)) INCLUDE (b) WHERE b > 4;
CREATE INDEX no4 ON plain1 USING btree (c text_pattern_ops, upper(c)) WHERE b > 4;
CREATE INDEX plain_above ON plain (c text_pattern_ops, lower(c)) WHERE b > 4;
CREATE INDEX IF NOT EXISTS plain_above ON plain (b);
SELECT relname, amname FROM kinds WHERE relname ~ '^(plain|one$|two$|no.$)' ORDER BY 1;

-- a statement that is cancelled meanwhile ends only itself
CREATE FUNCTION cancels(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$BEGIN RAISE query_canceled USING MESSAGE = 'cancelled'; END$$;
\set VERBOSITY terse
CREATE INDEX cancelled ON plain ((b + cancels(1)));
\set VERBOSITY default
SELECT count(*) FROM plain;
DROP FUNCTION cancels;

-- a statement that fails leaves no mark of an index on a table without partitions
CREATE TABLE alone (a int, b int) PARTITION BY LIST (a);
\set VERBOSITY terse
ALTER TABLE alone ADD UNIQUE (a, b), DROP b;
\set VERBOSITY default
SELECT relhasindex FROM pg_class WHERE oid = 'alone'::regclass;
DROP TABLE alone;
RESET hybridindex.replace_btree;
DROP TABLE plain, plain5;

SET client_min_messages = warning;
DROP SCHEMA conp CASCADE;
