-- Primary keys and other constraints with hybrid indexes: made by the setting
-- hybridindex.replace_btree or by the storage parameter access_method, kept by
-- ALTER TABLE, referenced by foreign keys.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS hybridindex;
RESET client_min_messages;
\c -
CREATE SCHEMA con;
SET search_path = con, public;

CREATE VIEW kinds AS
SELECT t.relname AS tablename, c.relname, am.amname,
	(SELECT string_agg(o, ' ' ORDER BY o) FROM unnest(c.reloptions) o) AS options, i.indisprimary AS pk,
	i.indisvalid AND i.indisready AS ok
FROM pg_class c JOIN pg_am am ON am.oid = c.relam
	JOIN pg_index i ON i.indexrelid = c.oid
	JOIN pg_class t ON t.oid = i.indrelid
WHERE c.relnamespace = 'con'::regnamespace
ORDER BY 1, 2;

-- without the setting: the parameter says what is hybrid
CREATE TABLE acc (id int PRIMARY KEY WITH (access_method = hybrid),
	email text, region int, UNIQUE (email) WITH (access_method = 'hybrid'),
	plain int UNIQUE);
SELECT * FROM kinds;
INSERT INTO acc SELECT i, 'user' || i, i % 7, i FROM generate_series(1, 3000) i;
INSERT INTO acc VALUES (17, 'x');
INSERT INTO acc VALUES (5000, 'user17');
INSERT INTO acc VALUES (NULL, 'x');
CREATE TABLE bad (id int PRIMARY KEY WITH (access_method = btree));
CREATE TABLE bad (id int PRIMARY KEY WITH (access_method = gist));
CREATE INDEX ON acc USING hybrid (region) WITH (access_method = btree);
CREATE TABLE bad (b box, UNIQUE (b) WITH (access_method = hybrid));
ALTER TABLE acc ADD CONSTRAINT acc_region UNIQUE (region, id)
	WITH (access_method = hybrid, merge_ratio = 5);
SELECT * FROM kinds WHERE tablename = 'acc';
-- what says it cannot be lost
ALTER INDEX acc_pkey RESET (access_method);
ALTER INDEX acc_region RESET (merge_ratio);
ALTER INDEX acc_region SET (merge_ratio = 6, filter = surf);
ALTER INDEX acc_pkey SET (access_method = btree);

-- foreign keys, made after and with the table
CREATE TABLE item (id int PRIMARY KEY WITH (access_method = hybrid),
	acc int REFERENCES acc ON DELETE CASCADE,
	email text REFERENCES acc (email) ON UPDATE CASCADE,
	parent int REFERENCES item);
ALTER TABLE item ADD CONSTRAINT item_pair FOREIGN KEY (parent, acc)
	REFERENCES acc (id, region);
ALTER TABLE item ADD CONSTRAINT item_pair FOREIGN KEY (parent, acc)
	REFERENCES acc (region, id) DEFERRABLE INITIALLY DEFERRED NOT VALID;
SELECT conname, conindid::regclass, convalidated FROM pg_constraint
WHERE connamespace = 'con'::regnamespace AND contype = 'f' ORDER BY 1;
INSERT INTO item SELECT i, i, 'user' || i FROM generate_series(1, 1000) i;
INSERT INTO item VALUES (1001, 5000, NULL);
INSERT INTO item VALUES (1001, 1, 'nobody');
UPDATE acc SET email = 'renamed' WHERE id = 5;
DELETE FROM acc WHERE id = 6;
SELECT count(*), max(email) FROM item WHERE id IN (5, 6);
ALTER TABLE item DROP CONSTRAINT item_pair;
-- refused as by the server
ALTER TABLE item ADD FOREIGN KEY (acc) REFERENCES acc (region);
\set VERBOSITY terse
ALTER TABLE item ADD FOREIGN KEY (email) REFERENCES acc (id);
\set VERBOSITY default
ALTER TABLE acc ADD COLUMN late int UNIQUE
	WITH (access_method = hybrid) DEFERRABLE;
ALTER TABLE item ADD FOREIGN KEY (id) REFERENCES acc (late);
SELECT * FROM kinds WHERE NOT ok;
-- a foreign key that is rolled back leaves nothing
BEGIN;
ALTER TABLE item ADD CONSTRAINT again FOREIGN KEY (acc) REFERENCES acc;
SELECT count(*) FROM acc WHERE id < 10;
INSERT INTO item VALUES (2001, 2999, NULL);
ROLLBACK;
SELECT * FROM kinds WHERE tablename IN ('acc', 'item');

-- types change, and everything that depends on them
ALTER TABLE acc ALTER id TYPE bigint;
ALTER TABLE item ALTER acc TYPE bigint;
ALTER TABLE item ALTER id TYPE numeric, ALTER parent TYPE numeric;
ALTER TABLE acc ALTER email TYPE varchar(20), ADD COLUMN extra int;
SELECT * FROM kinds WHERE tablename IN ('acc', 'item');
SELECT conname, conindid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'con'::regnamespace AND contype = 'f' ORDER BY 1;
INSERT INTO acc VALUES (17, 'x');
INSERT INTO item VALUES (1001, 5000, NULL);
ALTER TABLE acc ALTER region TYPE bigint;
SELECT * FROM kinds WHERE relname = 'acc_region';
ALTER TABLE acc DROP CONSTRAINT acc_region, ALTER region TYPE int;
SELECT count(*) FROM acc WHERE id BETWEEN 100 AND 199;

-- ADD CONSTRAINT ... USING INDEX
CREATE TABLE using_index (a int, b text, c text COLLATE "C");
INSERT INTO using_index SELECT i, i, i FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX ui_a ON using_index USING hybrid (a);
CREATE UNIQUE INDEX ui_b ON using_index USING hybrid (b) WITH (filter = surf);
CREATE UNIQUE INDEX ui_desc ON using_index USING hybrid (a DESC);
CREATE UNIQUE INDEX ui_partial ON using_index USING hybrid (a) WHERE a > 0;
CREATE UNIQUE INDEX ui_expr ON using_index USING hybrid ((a + 1));
CREATE UNIQUE INDEX ui_hope ON using_index USING hybrid (c text_hope_ops);
CREATE INDEX ui_plain ON using_index USING hybrid (a);
COMMENT ON INDEX ui_a IS 'kept';
ALTER TABLE using_index ADD PRIMARY KEY USING INDEX ui_a;
ALTER TABLE using_index ADD CONSTRAINT b_key UNIQUE USING INDEX ui_b
	DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE using_index ADD UNIQUE USING INDEX ui_desc;
ALTER TABLE using_index ADD UNIQUE USING INDEX ui_partial;
ALTER TABLE using_index ADD UNIQUE USING INDEX ui_expr;
ALTER TABLE using_index ADD UNIQUE USING INDEX ui_hope;
ALTER TABLE using_index ADD UNIQUE USING INDEX ui_plain;
ALTER TABLE using_index ADD UNIQUE USING INDEX ui_a;
-- what a failed build leaves may have duplicates, or lack rows
CREATE TABLE invalid (a int);
INSERT INTO invalid VALUES (1), (1);
CREATE UNIQUE INDEX CONCURRENTLY invalid_a ON invalid USING hybrid (a);
ALTER TABLE invalid ADD UNIQUE USING INDEX invalid_a;
DROP TABLE invalid;
SELECT * FROM kinds WHERE tablename = 'using_index';
SELECT obj_description('ui_a'::regclass);
-- a predicate that is always true counts as no predicate
CREATE UNIQUE INDEX ui_true ON using_index USING hybrid (b, a) WHERE 1 = 1;
ALTER TABLE using_index ADD UNIQUE USING INDEX ui_true;
BEGIN;
INSERT INTO using_index VALUES (101, '1');
COMMIT;
INSERT INTO using_index VALUES (1, 'x');

-- temporary tables
CREATE TEMP TABLE tmp_acc (id int PRIMARY KEY WITH (access_method = hybrid), other int);
CREATE TEMP TABLE tmp_item (acc int REFERENCES tmp_acc);
CREATE UNIQUE INDEX tmp_other ON tmp_acc USING hybrid (other);
ALTER TABLE tmp_acc ADD UNIQUE USING INDEX tmp_other;
INSERT INTO tmp_acc SELECT i, -i FROM generate_series(1, 100) i;
INSERT INTO tmp_acc VALUES (0, -7);
INSERT INTO tmp_item VALUES (5);
INSERT INTO tmp_item VALUES (0);
SELECT conname, amname FROM pg_constraint o JOIN pg_class c ON c.oid = conindid
	JOIN pg_am am ON am.oid = relam
WHERE conrelid IN ('tmp_acc'::regclass, 'tmp_item'::regclass) ORDER BY 1;
DROP TABLE tmp_item, tmp_acc;

-- operator classes are found where search_path does not lead to them
CREATE TABLE elsewhere (a text);
SET search_path = con;
CREATE INDEX elsewhere_a ON elsewhere USING hybrid (a text_pattern_ops);
ALTER TABLE elsewhere ADD EXCLUDE USING hybrid (a varchar_ops WITH =);
ALTER TABLE elsewhere ADD EXCLUDE USING hybrid (a no_ops WITH =);
SET search_path = con, public;
\d elsewhere
DROP TABLE elsewhere;

-- with a type that changes, so that both indexes are made anew
CREATE TABLE both_new (a int, b int);
CREATE UNIQUE INDEX both_a ON both_new USING hybrid (a);
CREATE UNIQUE INDEX both_b ON both_new USING hybrid (b);
INSERT INTO both_new SELECT i, -i FROM generate_series(1, 100) i;
ALTER TABLE both_new ADD PRIMARY KEY USING INDEX both_a,
	ADD CONSTRAINT b_unique UNIQUE USING INDEX both_b,
	ALTER a TYPE bigint, ALTER b TYPE numeric;
SELECT * FROM kinds WHERE tablename = 'both_new';
INSERT INTO both_new VALUES (7, 1);
INSERT INTO both_new VALUES (0, -7);

-- indexes of no constraint, referenced by foreign keys, among them its own
CREATE TABLE referenced (id int, up int, c text COLLATE "C", d text, n int NOT NULL);
CREATE UNIQUE INDEX r_id ON referenced USING hybrid (id) INCLUDE (d) WITH (fillfactor = 70);
CREATE UNIQUE INDEX r_cd ON referenced USING hybrid (c DESC, d COLLATE "C");
CREATE UNIQUE INDEX r_n ON referenced USING hybrid (n);
COMMENT ON INDEX r_cd IS 'kept';
CLUSTER referenced USING r_n;
INSERT INTO referenced SELECT i, i, i, i, i FROM generate_series(1, 100) i;
ALTER TABLE referenced ADD FOREIGN KEY (up) REFERENCES referenced (id);
CREATE TABLE refers (n int REFERENCES referenced (n), c text, d text,
	FOREIGN KEY (d, c) REFERENCES referenced (d, c));
INSERT INTO refers VALUES (7, '7', '7');
-- before 18 they become btree
SET client_min_messages = error;
ALTER TABLE referenced ALTER id TYPE bigint, ALTER c TYPE varchar(9) COLLATE "POSIX",
	ALTER d TYPE varchar(9), ALTER n TYPE numeric, ALTER up TYPE bigint;
CALL hybrid_convert_table('referenced');
ALTER TABLE referenced ALTER up TYPE int;
RESET client_min_messages;
SELECT * FROM kinds WHERE tablename = 'referenced';
SELECT indexrelid::regclass, indisclustered AS clustered, obj_description(indexrelid),
	pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = 'referenced'::regclass ORDER BY 3, 4;
SELECT conrelid::regclass, conindid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
WHERE confrelid = 'referenced'::regclass ORDER BY 1, 3;
\set VERBOSITY terse
INSERT INTO referenced VALUES (1, 1, 'x', 'x', 1000);
INSERT INTO referenced VALUES (1000, 1, '1', '1', 1000);
INSERT INTO referenced VALUES (1000, 1001, 'x', 'x', 1000);
DELETE FROM referenced WHERE n = 7;
\set VERBOSITY default
BEGIN;
DECLARE open_cursor CURSOR FOR SELECT FROM referenced;
FETCH open_cursor;
ALTER TABLE referenced ALTER id TYPE int;
ROLLBACK;
SET client_min_messages = error;
ALTER TABLE referenced DROP COLUMN c CASCADE, ALTER d TYPE text;
RESET client_min_messages;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'referenced'::regclass ORDER BY 1;

-- with the type of an attribute of the type that a table is of
CREATE TYPE attributes AS (a int, b text);
CREATE TABLE of_pair OF attributes (PRIMARY KEY (a) WITH (access_method = hybrid),
	b WITH OPTIONS UNIQUE WITH (access_method = hybrid));
CREATE TABLE to_pair (a int REFERENCES of_pair, b text REFERENCES of_pair (b));
INSERT INTO of_pair SELECT i, i FROM generate_series(1, 100) i;
ALTER TYPE attributes ALTER ATTRIBUTE a TYPE bigint;
ALTER TYPE attributes ALTER ATTRIBUTE a TYPE bigint CASCADE,
	ALTER ATTRIBUTE b TYPE varchar(9) CASCADE;
SELECT * FROM kinds WHERE tablename = 'of_pair';
INSERT INTO of_pair VALUES (7, 'x');
INSERT INTO to_pair VALUES (7, '8'), (101, '8');

-- everything by the setting
SET hybridindex.replace_btree = on;
CREATE TABLE every (id serial PRIMARY KEY, t text UNIQUE, v varchar, p point,
	EXCLUDE (v WITH =), EXCLUDE USING btree (id WITH =), r int4range,
	EXCLUDE USING gist (r WITH &&));
CREATE INDEX ON every (t text_pattern_ops, id DESC NULLS LAST) INCLUDE (p);
CREATE INDEX ON every (lower(t)) WHERE id > 0;
CREATE INDEX ON every USING btree (t);
CREATE INDEX /* USING btree ( */ "USING" ON ONLY every (t);
CREATE INDEX CONCURRENTLY ON every (v);
CREATE INDEX ON every USING hash (t);
CREATE INDEX ON every (p);
ALTER TABLE every ADD COLUMN more uuid UNIQUE, ADD UNIQUE (more, id),
	ADD EXCLUDE (more WITH =);
ALTER TABLE every ADD EXCLUDE (lower(t) WITH =, id WITH =);
CREATE TABLE copied (LIKE every INCLUDING ALL);
CREATE TABLE null_key (a int UNIQUE NULLS NOT DISTINCT);
INSERT INTO null_key VALUES (NULL);
INSERT INTO null_key VALUES (NULL);
SELECT * FROM kinds WHERE tablename IN ('every', 'copied', 'null_key');
-- what btree does not serve either is for the server to say
\set VERBOSITY terse
CREATE INDEX ON every (t no_ops);
CREATE INDEX ON every ((id + 1) no_schema.int4_ops);
ALTER TABLE every ADD EXCLUDE (t no_ops WITH =);
ALTER TABLE every ADD UNIQUE (p);
CREATE TABLE of_points (p point, EXCLUDE (p WITH ~=));
\set VERBOSITY default
-- types that it does not serve stay btree
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b int);
CREATE TABLE served (a positive PRIMARY KEY, b pair UNIQUE, c int[] UNIQUE);
CREATE OPERATOR FAMILY odd_ops USING btree;
CREATE OPERATOR CLASS odd_ops FOR TYPE int4 USING btree FAMILY odd_ops AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
	FUNCTION 1 btint4cmp(int4, int4);
CREATE INDEX odd ON served (a odd_ops);
SELECT * FROM kinds WHERE tablename = 'served';
-- so do types whose values btree takes until it has to compare them
CREATE TYPE half AS (n int, p point);
CREATE DOMAIN half_domain AS half;
CREATE TABLE halves (c half PRIMARY KEY, a half[] UNIQUE);
ALTER TABLE halves ADD d half_domain UNIQUE;
CREATE INDEX ON halves ((row((c).n, '(1,1)')::half));
INSERT INTO halves VALUES (row(1, '(1,1)')), (row(2, '(1,1)'));
CALL hybrid_convert_table('halves');
SELECT * FROM kinds WHERE tablename = 'halves';
DROP TABLE halves;
-- an index of a system catalog stays btree
BEGIN;
SET LOCAL allow_system_table_mods = on;
CREATE INDEX of_catalog ON pg_class (relname);
SELECT amname FROM pg_class c JOIN pg_am am ON am.oid = relam WHERE relname = 'of_catalog';
ROLLBACK;
RESET hybridindex.replace_btree;

-- once hybrid, always hybrid
ALTER TABLE every ALTER id TYPE bigint, ALTER t TYPE varchar;
TRUNCATE every;
VACUUM FULL every;
REINDEX TABLE every;
ALTER TABLE every RENAME CONSTRAINT every_pkey TO every_pk;
ALTER TABLE every SET UNLOGGED;
SELECT * FROM kinds WHERE tablename = 'every';
CREATE TABLE copied_again (LIKE acc INCLUDING ALL);
SELECT * FROM kinds WHERE tablename = 'copied_again';
SELECT pg_get_indexdef('acc_pkey'::regclass);

-- USING is read where several indexes are in one statement
SET hybridindex.replace_btree = on;
CREATE SCHEMA con_parts CREATE TABLE part (a int, b int)
	CREATE INDEX part_a ON part USING btree (a)
	CREATE INDEX part_b ON part (b);
SELECT relname, amname FROM pg_class c JOIN pg_am am ON am.oid = relam
WHERE relname IN ('part_a', 'part_b') ORDER BY 1;
RESET hybridindex.replace_btree;
DROP SCHEMA con_parts CASCADE;

-- a name that a dropped constraint had belongs to another index
SET hybridindex.replace_btree = on;
CREATE TABLE renewed (id int CONSTRAINT renewed_key PRIMARY KEY WITH (fillfactor = 50),
	n int NOT NULL, up int, a int, b int, CONSTRAINT renewed_ab UNIQUE (a, b) WITH (merge_ratio = 5));
CREATE UNIQUE INDEX renewed_n ON renewed USING btree (n);
CREATE UNIQUE INDEX renewed_up ON renewed USING btree (up);
ALTER TABLE renewed ALTER id TYPE bigint, DROP CONSTRAINT renewed_key,
	ADD CONSTRAINT renewed_key PRIMARY KEY USING INDEX renewed_n;
ALTER TABLE renewed ALTER b TYPE bigint, DROP COLUMN a,
	ADD CONSTRAINT renewed_ab UNIQUE USING INDEX renewed_up;
SELECT * FROM kinds WHERE tablename = 'renewed';
ALTER TABLE renewed ALTER n TYPE bigint, DROP CONSTRAINT renewed_key,
	ADD CONSTRAINT renewed_key PRIMARY KEY (id) WITH (merge_ratio = 7);
SELECT * FROM kinds WHERE tablename = 'renewed';
-- and foreign keys to it reference that one
INSERT INTO renewed VALUES (1, 10, 20), (2, 20, 10);
SET client_min_messages = warning;	-- before 18 a NOTICE
ALTER TABLE renewed DROP CONSTRAINT renewed_key, ADD CONSTRAINT renewed_key PRIMARY KEY (n),
	ADD CONSTRAINT renewed_up_fkey FOREIGN KEY (up) REFERENCES renewed;
RESET client_min_messages;
SELECT conname, conindid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = 'renewed'::regclass AND contype IN ('p', 'f') ORDER BY 1;
CREATE UNIQUE INDEX renewed_id ON renewed USING btree (id);
ALTER TABLE renewed ALTER n TYPE int, ALTER up TYPE bigint,
	DROP CONSTRAINT renewed_key CASCADE, ADD CONSTRAINT renewed_key PRIMARY KEY USING INDEX renewed_id;
SELECT * FROM kinds WHERE tablename = 'renewed';
INSERT INTO renewed VALUES (1, 1, 1);
RESET hybridindex.replace_btree;

-- an event trigger whose own DDL fails, between the hook and the extension's
CREATE FUNCTION con.failing_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE con.missing_type (a con.no_type);
EXCEPTION WHEN undefined_object THEN NULL;
END $$;
CREATE EVENT TRIGGER a_failing ON ddl_command_start WHEN TAG IN ('ALTER TABLE')
EXECUTE FUNCTION con.failing_ddl();
CREATE TABLE kept (id int PRIMARY KEY WITH (access_method = hybrid, fillfactor = 60));
ALTER TABLE kept ALTER id TYPE bigint;
SELECT * FROM kinds WHERE tablename = 'kept';
DROP EVENT TRIGGER a_failing;

-- event triggers of others see what the statement leaves
CREATE FUNCTION con.show_kinds() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '%: %', tg_tag, (SELECT string_agg(relname || ' ' || amname || ' ' || ok, ', ')
		FROM con.kinds WHERE tablename LIKE 'seen%');
END $$;
CREATE TABLE seen (id int PRIMARY KEY WITH (access_method = hybrid), n int);
CREATE UNIQUE INDEX seen_n ON seen USING hybrid (n);
CREATE EVENT TRIGGER a_showing ON ddl_command_end WHEN TAG IN ('ALTER TABLE')
EXECUTE FUNCTION con.show_kinds();
CREATE TABLE seen_ref (id int, n int);
ALTER TABLE seen_ref ADD FOREIGN KEY (id) REFERENCES seen;
ALTER TABLE seen ALTER id TYPE bigint;
ALTER TABLE seen ADD UNIQUE USING INDEX seen_n;
DROP EVENT TRIGGER a_showing;

-- a column that there is not, of a table with an index of an expression
CREATE TABLE expression (n int);
CREATE INDEX ON expression USING hybrid ((n + 1));
ALTER TABLE expression ALTER nosuch TYPE int;

-- a materialized view that is refreshed by a hybrid index
CREATE MATERIALIZED VIEW mv AS SELECT id, email FROM acc;
CREATE UNIQUE INDEX mv_id ON mv USING hybrid (id);
INSERT INTO acc VALUES (7001, 'x'), (7002, 'y');
DELETE FROM acc WHERE id = 9;
REFRESH MATERIALIZED VIEW CONCURRENTLY mv;
SELECT count(*), max(id), count(*) FILTER (WHERE id = 9) FROM mv;
CREATE MATERIALIZED VIEW mv_bad AS SELECT region FROM acc WHERE id < 3;
CREATE UNIQUE INDEX mv_region ON mv_bad USING hybrid (region);
UPDATE acc SET region = 1 WHERE id < 3;
REFRESH MATERIALIZED VIEW CONCURRENTLY mv_bad;
SELECT * FROM kinds WHERE tablename LIKE 'mv%';

SELECT tablename, relname, hybrid_index_check(relname::regclass, true)
FROM kinds WHERE amname = 'hybrid' AND tablename IN ('acc', 'item', 'mv', 'using_index', 'referenced');

SET client_min_messages = warning;
DROP SCHEMA con CASCADE;
