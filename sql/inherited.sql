--
-- Indexes of inheritance children: as their parents' where an extension makes them,
-- and converted with them.  TimescaleDB's chunks are such children.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET client_min_messages = notice;
\set SHOW_CONTEXT never
SET session_preload_libraries = 'hybridindex';
CREATE SCHEMA inh;
SET search_path = inh, public;
CREATE ROLE regress_inh_other;
GRANT ALL ON SCHEMA inh TO regress_inh_other;

-- What the indexes of tables are; m: with the marker.
CREATE FUNCTION methods(pattern text) RETURNS TABLE (index name, method text) LANGUAGE sql AS $$
	SELECT c.relname, a.amname || CASE WHEN 'access_method=hybrid' = ANY (c.reloptions) THEN ' m' ELSE '' END
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	WHERE c.relnamespace = 'inh'::regnamespace AND c.relkind = 'i' AND c.relname ~ pattern ORDER BY c.relname COLLATE "C"
$$;
-- As TimescaleDB makes the constraints of a chunk.
CREATE FUNCTION copy_constraints(parent regclass, child regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c record;
BEGIN
	FOR c IN SELECT conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint
		WHERE conrelid = parent AND contype IN ('p', 'u', 'x') ORDER BY conname COLLATE "C"
	LOOP
		EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s', child, replace(c.conname, parent::text, child::text), c.definition);
	END LOOP;
END
$$;

--
-- A constraint of a child follows its parent's in a function, whatever the setting.
--
CREATE TABLE h (id int, n int, s text COLLATE "C", at timestamptz,
	CONSTRAINT h_id PRIMARY KEY (id, at) WITH (access_method = hybrid),
	CONSTRAINT h_n UNIQUE (n),
	CONSTRAINT h_s UNIQUE (s) INCLUDE (n) WITH (access_method = hybrid) DEFERRABLE,
	CONSTRAINT h_x EXCLUDE USING hybrid (at WITH =),
	CONSTRAINT h_y EXCLUDE USING btree (n WITH =));
CREATE TABLE h1 () INHERITS (h);
CREATE TABLE h2 (extra int, more int, LIKE h) INHERITS (h);
ALTER TABLE h2 DROP extra;
SELECT copy_constraints('h', 'h1');
SET hybridindex.replace_btree = on;
SELECT copy_constraints('h', 'h2');
RESET hybridindex.replace_btree;
SELECT * FROM methods('^h\d');
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid IN ('h1'::regclass, 'h2'::regclass) AND conindid <> 0 ORDER BY conname;

-- a table that is made so, and a procedure
CREATE TABLE h3 (id int, n int, at timestamptz, PRIMARY KEY (id, at), UNIQUE (n)) INHERITS (h);
SELECT * FROM methods('^h3');
DROP TABLE h3;
SET hybridindex.replace_btree = on;
DO 'BEGIN CREATE TABLE h3 (id int, n int, at timestamptz, PRIMARY KEY (id, at), UNIQUE (n)) INHERITS (h); END';
RESET hybridindex.replace_btree;
CREATE PROCEDURE make_h4() LANGUAGE plpgsql AS 'BEGIN
	CREATE TABLE h4 (LIKE h) INHERITS (h);
	COMMIT;
	ALTER TABLE h4 ADD PRIMARY KEY (id, at);
END';
CALL make_h4();
SELECT * FROM methods('^h[34]');

-- what is not the parent's goes by the setting: other columns, another order or kind
CREATE TABLE h5 () INHERITS (h);
DO 'BEGIN ALTER TABLE h5 ADD CONSTRAINT h5_a UNIQUE (id, at), ADD CONSTRAINT h5_b PRIMARY KEY (at, id), ADD CONSTRAINT h5_c UNIQUE (s),
	ADD CONSTRAINT h5_d UNIQUE (s) INCLUDE (id), ADD CONSTRAINT h5_e UNIQUE (s) INCLUDE (n); END';
SELECT * FROM methods('^h5');
DROP TABLE h5;
CREATE TABLE h5 () INHERITS (h);
SET hybridindex.replace_btree = on;
DO 'BEGIN ALTER TABLE h5 ADD CONSTRAINT h5_f UNIQUE (n) INCLUDE (id), ADD CONSTRAINT h5_g UNIQUE (n); END';
RESET hybridindex.replace_btree;
SELECT * FROM methods('^h5');
-- the marker is stronger
DO 'BEGIN ALTER TABLE h5 ADD CONSTRAINT h5_h UNIQUE (n) WITH (access_method = hybrid); END';
SELECT * FROM methods('^h5_h');

-- a statement by itself is as it says: a dump prints it so
CREATE TABLE h6 () INHERITS (h);
ALTER TABLE h6 ADD CONSTRAINT h6_id PRIMARY KEY (id, at);
SET hybridindex.replace_btree = on;
ALTER TABLE h6 ADD CONSTRAINT h6_n UNIQUE (n);
RESET hybridindex.replace_btree;
SELECT * FROM methods('^h6');

-- a child of another role follows no parent
CREATE TABLE h7 () INHERITS (h);
ALTER TABLE h7 OWNER TO regress_inh_other;
SELECT copy_constraints('h', 'h7');
SELECT * FROM methods('^h7');

-- of two parents; one that has no such constraint
CREATE TABLE plain (id int, at timestamptz);
CREATE TABLE h8 () INHERITS (plain, h);
DO 'BEGIN ALTER TABLE h8 ADD PRIMARY KEY (id, at); END';
SELECT * FROM methods('^h8');
INSERT INTO h8 SELECT i, now(), i, 'x' || i FROM generate_series(1, 100) i;
SELECT hyb_error('INSERT INTO h8 SELECT id, at, 1, ''y'' FROM h8 WHERE id = 7') ~ '^23505', hyb_check('h8');
DROP TABLE h, plain CASCADE;

--
-- Conversions
--
CREATE TABLE p (a int NOT NULL, b text COLLATE "C", CONSTRAINT p_key PRIMARY KEY (a));
CREATE TABLE c1 (CONSTRAINT c1_key PRIMARY KEY (a)) INHERITS (p);
CREATE TABLE c2 (own int, CONSTRAINT c2_key PRIMARY KEY (a)) INHERITS (p);
CREATE TABLE c2_1 (CONSTRAINT c2_1_key PRIMARY KEY (a)) INHERITS (c2);
CREATE TABLE c3 (CONSTRAINT c3_key PRIMARY KEY (a)) INHERITS (p);
ALTER TABLE c3 OWNER TO regress_inh_other;
CREATE INDEX c1_ab_desc ON c1 (a, b DESC);
DO $$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['p', 'c1', 'c2', 'c2_1', 'c3'] LOOP
		EXECUTE format('CREATE INDEX %s_ab ON %1$s (a, b); CREATE INDEX %1$s_ba ON %1$s (upper(b), a) WHERE a %% 3 = 0', t);
		EXECUTE format('INSERT INTO %s (a, b) SELECT i, %L || i FROM generate_series(1, 500) i', t, t);
	END LOOP;
END
$$;
CREATE INDEX c2_own ON c2 (own);
CREATE INDEX p_ab_desc ON p (a, b DESC);

SELECT hybrid_convert('c1_key');
SELECT hybrid_convert('p_key');
SELECT hybrid_convert('p_key');
SELECT * FROM methods('_key$');
SELECT hybrid_revert('c2_key');
SELECT hybrid_convert('c2_key');
CALL hybrid_convert_concurrently('p_ab_desc');
SELECT * FROM methods('_ab');
CALL hybrid_convert_concurrently('c2_1_ba');
CALL hybrid_convert_table('p');
SELECT * FROM methods('');
SELECT hyb_check('p'), hyb_check('c1'), hyb_check('c2'), hyb_check('c2_1');
SELECT hyb_same('SELECT * FROM c2 WHERE a = 77', 'index'), hyb_same('SELECT a FROM c2 WHERE upper(b) = ''C2_177'' AND a % 3 = 0', 'bitmap');
SELECT hyb_error('INSERT INTO c2_1 VALUES (7, ''x'')');
INSERT INTO c1 VALUES (7, 'x') ON CONFLICT (a) DO UPDATE SET b = 'upserted' RETURNING *;

-- another layout: of all of them, or of one
SELECT hybrid_convert('p_ab', 'trie');
SELECT hybrid_convert('c1_ab', 'columnar');
SELECT relname, reloptions FROM pg_class WHERE relname ~ '_ab$' ORDER BY relname COLLATE "C";

-- one that was made later has the parent's access method afterwards
ALTER TABLE c1 DROP CONSTRAINT c1_key;
ALTER TABLE c1 ADD CONSTRAINT c1_key PRIMARY KEY (a);
ALTER TABLE c2_1 DROP CONSTRAINT c2_1_key;
ALTER TABLE c2_1 ADD CONSTRAINT c2_1_key PRIMARY KEY (a);
SELECT * FROM methods('_key');
SELECT hybrid_convert('c2_1_key');
CALL hybrid_convert_table('p');
SELECT * FROM methods('_key');

-- constraints that ALTER TABLE makes again stay what they are
ALTER TABLE p ADD CONSTRAINT p_u UNIQUE (b, a) WITH (access_method = hybrid);
ALTER TABLE c1 ADD CONSTRAINT c1_u UNIQUE (b, a);
ALTER TABLE c2 ADD CONSTRAINT c2_u UNIQUE (b, a) WITH (access_method = hybrid);
ALTER TABLE p ALTER b TYPE varchar COLLATE "C";
SELECT * FROM methods('_u');
SELECT hybrid_revert('p_ab');
CALL hybrid_revert_table('p');
SELECT * FROM methods('');

-- a schema
SET client_min_messages = warning;
CALL hybrid_convert_schema('inh');
SELECT * FROM methods('');
DROP TABLE c3;
CALL hybrid_revert_schema('inh');
SELECT DISTINCT method FROM methods('');
SET client_min_messages = notice;

-- nothing corresponds to an invalid index
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'c2_1_key'::regclass;
SELECT hybrid_convert('p_key');
SELECT * FROM methods('_key');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'c2_1_key'::regclass;
DROP TABLE p CASCADE;

-- what an interrupted conversion leaves at children, too
CREATE FUNCTION fails(int8) RETURNS int8 IMMUTABLE LANGUAGE plpgsql AS
	'BEGIN IF $1 = 300 AND current_setting(''inh.fail'', true) = ''on'' THEN RAISE ''failed''; END IF; RETURN $1; END';
CREATE TABLE i (a int8);
CREATE TABLE i1 () INHERITS (i);
INSERT INTO i1 SELECT generate_series(1, 500);
CREATE INDEX i_f ON i (fails(a));
CREATE INDEX i1_f ON i1 (fails(a));
SET inh.fail = on;
CALL hybrid_convert_concurrently('i_f');
RESET inh.fail;
CALL hybrid_convert_table('i');
-- nothing corresponds to what is left
CREATE TABLE i2 () INHERITS (i);
CREATE INDEX i2_f ON i2 USING hybrid (fails(a));
SELECT hybrid_revert('i2_f');
DROP TABLE i2;
CALL hybrid_convert_concurrently('i_f');
DROP INDEX i_f_ccnew, i1_f_ccnew;
SELECT * FROM methods('^i1?_');
DROP TABLE i CASCADE;
DROP FUNCTION fails;

-- a temporary child goes by itself, before its parent or after it
CREATE TABLE q (a int8);
CREATE TEMP TABLE q1 () INHERITS (q);
INSERT INTO q1 SELECT generate_series(1, 500);
CREATE INDEX q_a ON q (a);
CREATE INDEX q1_a ON q1 (a);
SELECT hybrid_convert('q1_a');
SELECT hybrid_revert('q1_a');
DO 'BEGIN ALTER TABLE q ADD CONSTRAINT q_key PRIMARY KEY (a) WITH (access_method = hybrid); ALTER TABLE q1 ADD CONSTRAINT q1_key PRIMARY KEY (a); END';
SELECT amname, relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname ~ '^q1?_key' ORDER BY relname;
ALTER TABLE q1 DROP CONSTRAINT q1_key;
ALTER TABLE q DROP CONSTRAINT q_key;
SELECT hybrid_convert('q_a');
SELECT amname, relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname IN ('q_a', 'q1_a') ORDER BY relname;
CALL hybrid_revert_table('q');
CALL hybrid_convert_table('q');
SELECT amname, relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname IN ('q_a', 'q1_a') ORDER BY relname;
SELECT count(*) FROM q WHERE a = 7;
DROP TABLE q CASCADE;

--
-- Compressed chunks of TimescaleDB stay btree.
--
CREATE SCHEMA _timescaledb_internal;
CREATE TYPE _timescaledb_internal.compressed_data AS (data bytea);
CREATE TABLE squeezed (gone int, first timestamptz, at _timescaledb_internal.compressed_data);
ALTER TABLE squeezed DROP gone;
CREATE INDEX squeezed_first ON squeezed (first);
SELECT hybrid_convert('squeezed_first');
CALL hybrid_convert_table('squeezed');
SELECT remark, command FROM hybrid_advise('squeezed_first');
CREATE INDEX ON squeezed USING hybrid (first);
CREATE INDEX ON squeezed USING hybrid (first timestamptz_ops);
SET hybridindex.replace_btree = on;
CREATE INDEX ON squeezed (first DESC);
ALTER TABLE squeezed ADD UNIQUE (first);
RESET hybridindex.replace_btree;
SELECT * FROM methods('squeezed');

SET client_min_messages = warning;
DROP SCHEMA _timescaledb_internal CASCADE;
DROP SCHEMA inh CASCADE;
DROP ROLE regress_inh_other;
