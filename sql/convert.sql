--
-- Btree indexes become hybrid ones, and the other way round.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET client_min_messages = notice;
\set SHOW_CONTEXT never
SET session_preload_libraries = 'hybridindex';

-- What is known about the indexes of a schema: the statements that make them,
-- and what else hangs on them.
CREATE FUNCTION cv_state(schema text) RETURNS TABLE (index text, aspect text, value text) LANGUAGE sql AS $$
	SELECT c.relname::text, v.* FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid, LATERAL (VALUES
		('', regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING ', '')),
		('is', nullif(concat_ws(' ', CASE WHEN NOT indisvalid THEN 'invalid' END,
			CASE WHEN NOT indisready THEN 'not-ready' END,
			CASE WHEN indisprimary THEN 'primary' END, CASE WHEN indisunique THEN 'unique' END,
			CASE WHEN indisexclusion THEN 'exclusion' END, CASE WHEN NOT indimmediate THEN 'deferrable' END,
			CASE WHEN indisclustered THEN 'clustered' END, CASE WHEN indisreplident THEN 'identity' END,
			CASE WHEN c.relispartition THEN 'attached' END, CASE WHEN c.relhassubclass THEN 'parent' END), '')),
		('comment', obj_description(c.oid, 'pg_class')),
		('tablespace', (SELECT spcname::text FROM pg_tablespace WHERE oid = c.reltablespace)),
		('owner', nullif(c.relowner::regrole, current_user::regrole)::text),
		('statistics', (SELECT string_agg(attnum || '=' || attstattarget, ' ') FROM pg_attribute WHERE attrelid = c.oid AND attstattarget >= 0)),
		('constraints', (SELECT string_agg(conname || ' (' || contype::text || ')', ', ' ORDER BY conname COLLATE "C") FROM pg_constraint WHERE conindid = c.oid)),
		('triggers', (SELECT count(*)::text FROM pg_trigger WHERE tgconstrindid = c.oid HAVING count(*) > 0)),
		('attached to', (SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = c.oid)),
		('depends on', (SELECT string_agg(d, ', ' ORDER BY d COLLATE "C") FROM (
			SELECT DISTINCT pg_describe_object(refclassid, refobjid, refobjsubid) || ' (' || deptype::text || ')'
			FROM pg_depend WHERE objid = c.oid AND classid = 'pg_class'::regclass AND refclassid <> 'pg_collation'::regclass) d(d))),
		('needed by', (SELECT string_agg(d, ', ' ORDER BY d COLLATE "C") FROM (
			SELECT DISTINCT pg_describe_object(classid, objid, objsubid) || ' (' || deptype::text || ')'
			FROM pg_depend WHERE refobjid = c.oid AND refclassid = 'pg_class'::regclass) d(d)))) v(aspect, value)
	WHERE c.relnamespace = schema::regnamespace AND c.relname !~ '^pg_toast' AND v.value IS NOT NULL
	ORDER BY c.relname COLLATE "C", v.aspect COLLATE "C"
$$;
-- What differs from the state that was saved.
CREATE TABLE cv_before AS SELECT * FROM cv_state('public') LIMIT 0;
CREATE FUNCTION cv_diff(schema text) RETURNS TABLE (was text, index text, aspect text, value text) LANGUAGE sql AS $$
	SELECT * FROM (
		SELECT '-', * FROM (SELECT * FROM cv_before EXCEPT SELECT * FROM cv_state(schema)) d
		UNION ALL
		SELECT '+', * FROM (SELECT * FROM cv_state(schema) EXCEPT SELECT * FROM cv_before) d) d(sign, i, a, v)
	ORDER BY i COLLATE "C", a COLLATE "C", sign DESC
$$;

CREATE SCHEMA cv;
SET search_path = cv, public;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE cv_space LOCATION '';
CREATE TABLE parent (id uuid PRIMARY KEY, n int NOT NULL, s varchar COLLATE "C", t timestamptz, d numeric,
	CONSTRAINT parent_n UNIQUE (n) INCLUDE (d) USING INDEX TABLESPACE cv_space,
	CONSTRAINT parent_d UNIQUE (d) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO parent SELECT md5(i::text)::uuid, i, md5(i::text), now(), i FROM generate_series(1, 2000) i;
CREATE TABLE child (id int PRIMARY KEY, p uuid NOT NULL REFERENCES parent ON DELETE CASCADE, n int REFERENCES parent (n));
INSERT INTO child SELECT i, md5(i::text)::uuid, i FROM generate_series(1, 500) i;
CREATE UNIQUE INDEX parent_expr ON parent (s DESC NULLS LAST, lower(s) varchar_pattern_ops, (n % 7)) INCLUDE (t) WITH (fillfactor = 80, deduplicate_items = off) WHERE n > 3;
ALTER INDEX parent_expr ALTER COLUMN 2 SET STATISTICS 77;
CREATE INDEX parent_t ON parent (t, n DESC, s text_ops);
ALTER INDEX parent_t DEPENDS ON EXTENSION plpgsql;
CLUSTER parent USING parent_t;
COMMENT ON INDEX parent_pkey IS 'the key';
COMMENT ON CONSTRAINT parent_pkey ON parent IS 'the constraint';
CREATE VIEW grouped AS SELECT id, n, s FROM parent GROUP BY id;
CREATE UNIQUE INDEX child_p ON child (p, id);
ALTER TABLE child REPLICA IDENTITY USING INDEX child_pkey;
ALTER TABLE child REPLICA IDENTITY DEFAULT;
ANALYZE parent;
INSERT INTO cv_before SELECT * FROM cv_state('cv');
SELECT * FROM cv_before;

-- in one transaction, which can be rolled back
BEGIN;
SELECT hybrid_convert('parent_pkey'), hybrid_convert('parent_n'), hybrid_convert('parent_d'), hybrid_convert('parent_expr'), hybrid_convert('parent_t');
SELECT * FROM cv_diff('cv');
SELECT hyb_check('parent');
ROLLBACK;
SELECT * FROM cv_diff('cv');
SELECT hybrid_convert('parent_pkey');
SELECT hybrid_convert('parent_pkey');
SELECT hybrid_revert('parent_n');

-- while other sessions go on
CALL hybrid_convert_concurrently('parent_n');
CALL hybrid_convert_concurrently('parent_n');
CALL hybrid_convert_table('parent');
CALL hybrid_convert_table('parent');
CALL hybrid_convert_schema('cv');
SELECT * FROM cv_diff('cv');
SELECT hyb_check('parent'), hyb_check('child');
SELECT count(*) FROM pg_stats WHERE schemaname = 'cv' AND tablename = 'parent_expr';

-- all is as it was for users of the table
SELECT hyb_error('INSERT INTO parent VALUES (md5(''7'')::uuid, -1, ''x'', now(), -1)');
SELECT hyb_error('INSERT INTO parent VALUES (md5(''x'')::uuid, 7, ''x'', now(), -1)');
SELECT hyb_error('UPDATE parent SET id = NULL WHERE n = 7') ~ '^23502';
SELECT hyb_error('INSERT INTO child VALUES (1000, md5(''x'')::uuid, 1)');
SELECT hyb_error('INSERT INTO child VALUES (1000, md5(''1'')::uuid, 12345)');
SELECT hyb_error('DELETE FROM parent WHERE n = 8');
SELECT hyb_error('DROP INDEX parent_pkey');
SELECT hyb_error('ALTER TABLE parent DROP CONSTRAINT parent_pkey');
DELETE FROM parent WHERE n = 600;
INSERT INTO parent VALUES (md5('7')::uuid, -1, 'x', now(), -1) ON CONFLICT (id) DO UPDATE SET s = 'upserted' RETURNING n, s;
INSERT INTO parent VALUES (md5('9999')::uuid, 7, 'x', now(), -1) ON CONFLICT ON CONSTRAINT parent_n DO UPDATE SET s = 'upserted too' RETURNING n, s;
BEGIN;
UPDATE parent SET d = d + 1;
COMMIT;
BEGIN;
UPDATE parent SET d = 5 WHERE n = 6;
COMMIT;
SELECT count(*), count(DISTINCT id), count(DISTINCT n) FROM grouped;
EXPLAIN (COSTS OFF) SELECT * FROM parent WHERE id = md5('77')::uuid;
SELECT n FROM parent WHERE id = md5('77')::uuid;
SELECT hyb_check('parent');

-- and back
CALL hybrid_revert_concurrently('parent_pkey');
CALL hybrid_revert_table('parent');
SELECT hybrid_revert('child_p');
CALL hybrid_revert_schema('cv');
SELECT * FROM cv_diff('cv');
SELECT hyb_error('INSERT INTO parent VALUES (md5(''7'')::uuid, -1, ''x'', now(), -1)');
SELECT hyb_error('INSERT INTO child VALUES (1000, md5(''x'')::uuid, 1)');
SELECT n FROM parent WHERE id = md5('77')::uuid;

-- storage parameters and operator classes that btree has not
CREATE TABLE w (a text, b text COLLATE "C", c bytea, d char(10), e text);
INSERT INTO w SELECT md5(i::text), md5(i::text), md5(i::text)::bytea, i, i FROM generate_series(1, 100) i;
CREATE INDEX w_i ON w USING hybrid (a COLLATE "C" text_hope_ops (scheme = 'alm'), b varchar_hope_ops, c bytea_hope_ops, d COLLATE "C" bpchar_hope_ops, e text_pattern_hope_ops)
	WITH (filter = surf, merge_ratio = 5, fillfactor = 90);
CREATE INDEX w_j ON w (a varchar_ops, b text_pattern_ops, c, d bpchar_pattern_ops, e varchar_pattern_ops);
CALL hybrid_revert_concurrently('w_i');
SELECT hybrid_convert('w_j');
SELECT index, value FROM cv_state('cv') WHERE index ~ '^w_' AND aspect = '';
SELECT hyb_check('w');
SELECT hybrid_revert('w_j'), hybrid_convert('w_i');
SELECT index, value FROM cv_state('cv') WHERE index ~ '^w_' AND aspect = '';

-- a user's operator classes: what counts is the order, and the type
CREATE OPERATOR CLASS my_ops FOR TYPE int4 USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int4, int4);
CREATE FUNCTION my_backward(int4, int4) RETURNS int4 LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS backward_ops FOR TYPE int4 USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 my_backward(int4, int4);
CREATE TABLE o (a int, b int, c int[]);
INSERT INTO o SELECT i, i, array[i] FROM generate_series(1, 100) i;
CREATE INDEX o_a ON o (a my_ops, c);
CREATE INDEX o_b ON o (b backward_ops);
CALL hybrid_convert_table('o');
SELECT * FROM cv_state('cv') WHERE index ~ '^o_' AND aspect IN ('', 'depends on');
SELECT hybrid_convert('o_b');
CREATE OPERATOR CLASS backward_hybrid_ops FOR TYPE int4 USING hybrid AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 my_backward(int4, int4);
SELECT hybrid_convert('o_b');
SELECT * FROM cv_state('cv') WHERE index ~ '^o_' AND aspect IN ('', 'depends on');
SELECT hyb_error('DROP OPERATOR CLASS backward_hybrid_ops USING hybrid');
SELECT hyb_same('SELECT b FROM o WHERE b < 10', 'index bitmap'), hyb_check('o');
BEGIN;
DROP OPERATOR FAMILY backward_ops USING btree;
SELECT hybrid_revert('o_b');
ROLLBACK;
CALL hybrid_revert_table('o');
DROP OPERATOR CLASS backward_hybrid_ops USING hybrid;

-- REINDEX never changes an access method
SET hybridindex.replace_btree = on;
REINDEX INDEX o_a;
REINDEX TABLE o;
REINDEX TABLE CONCURRENTLY parent;
REINDEX SCHEMA cv;
RESET hybridindex.replace_btree;
SELECT index, value FROM cv_state('cv') WHERE index IN ('o_a', 'parent_pkey', 'w_i') AND aspect = '';

-- exclusion constraints: not concurrently
CREATE TABLE x (a int, EXCLUDE USING btree (a WITH =));
INSERT INTO x SELECT generate_series(1, 100);
CALL hybrid_convert_concurrently('x_a_excl');
CALL hybrid_convert_table('x');
SELECT hybrid_convert('x_a_excl');
SELECT * FROM cv_state('cv') WHERE index ~ '^x_';
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'x_a_excl';
SELECT hyb_error('INSERT INTO x VALUES (7)'), hyb_check('x');
INSERT INTO x VALUES (7) ON CONFLICT DO NOTHING;
CALL hybrid_revert_concurrently('x_a_excl');
SELECT hybrid_revert('x_a_excl');
SELECT hyb_error('INSERT INTO x VALUES (7)');

-- partitioned tables: what is attached goes along
CREATE TABLE pt (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE pt_1 PARTITION OF pt FOR VALUES FROM (0) TO (1000);
CREATE TABLE pt_2 PARTITION OF pt FOR VALUES FROM (1000) TO (3000) PARTITION BY LIST (b);
CREATE TABLE pt_2a PARTITION OF pt_2 FOR VALUES IN ('a');
CREATE TABLE pt_2b PARTITION OF pt_2 DEFAULT;
CREATE INDEX pt_b ON pt (b, a);
CREATE UNIQUE INDEX pt_2a_own ON pt_2a (a);
COMMENT ON INDEX pt_b IS 'comment';
INSERT INTO pt SELECT i, chr(97 + i % 3) FROM generate_series(0, 2999) i;
TRUNCATE cv_before;
INSERT INTO cv_before SELECT * FROM cv_state('cv');
SELECT hybrid_convert('pt_1_b_a_idx');
CALL hybrid_convert_concurrently('pt_2_b_a_idx');
SELECT hybrid_convert('pt_b');
SELECT * FROM cv_diff('cv');
SELECT hybrid_revert('pt_b');
SELECT * FROM cv_diff('cv');
CALL hybrid_convert_concurrently('pt_b');
SELECT hyb_check('pt_1'), hyb_check('pt_2a'), hyb_check('pt_2b');
CALL hybrid_convert_table('pt');
SELECT * FROM cv_diff('cv');
CREATE TABLE pt_3 PARTITION OF pt FOR VALUES FROM (3000) TO (4000);
SELECT pg_get_indexdef('pt_3_b_a_idx'::regclass);
CALL hybrid_revert_schema('cv');
DROP TABLE pt_3;
SELECT * FROM cv_diff('cv');
DROP INDEX pt_b;
SELECT * FROM cv_state('cv') WHERE index ~ '^pt_';

-- temporary and unlogged tables, materialized views
CREATE TEMP TABLE tmp (a int PRIMARY KEY);
INSERT INTO tmp SELECT generate_series(1, 100);
CALL hybrid_convert_concurrently('tmp_pkey');
SELECT hyb_error('INSERT INTO tmp VALUES (7)'), hyb_check('tmp');
SELECT hybrid_revert('tmp_pkey');
CREATE UNLOGGED TABLE ul (a int PRIMARY KEY);
INSERT INTO ul SELECT generate_series(1, 100);
CALL hybrid_convert_concurrently('ul_pkey');
SELECT hyb_error('INSERT INTO ul VALUES (7)'), hyb_check('ul');
CREATE MATERIALIZED VIEW mv AS SELECT a FROM x;
CREATE UNIQUE INDEX mv_a ON mv (a);
CALL hybrid_convert_table('mv');
SELECT hyb_check('mv');
REFRESH MATERIALIZED VIEW mv;

-- tables of extensions, which dumps leave to the extensions' scripts
CREATE SCHEMA cv_ext CREATE TABLE member (a int PRIMARY KEY) CREATE TABLE own (a int PRIMARY KEY);
ALTER EXTENSION plpgsql ADD TABLE cv_ext.member;
CALL hybrid_convert_schema('cv_ext');
CALL hybrid_convert_table('cv_ext.member');
CALL hybrid_revert_schema('cv_ext');
ALTER EXTENSION plpgsql DROP TABLE cv_ext.member;
DROP SCHEMA cv_ext CASCADE;

-- an error that one index meets each time: the others are reached by the next call
CREATE SCHEMA cv_bad;
CREATE TABLE cv_bad.large (b bytea);
INSERT INTO cv_bad.large SELECT string_agg(sha256(i::text::bytea), '')
FROM generate_series(1, 84) i;
INSERT INTO cv_bad.large SELECT sha256(i::text::bytea) FROM generate_series(1, 2000) i;
CREATE INDEX large_b ON cv_bad.large (b);
CREATE TABLE cv_bad.small (a int PRIMARY KEY);
CALL hybrid_convert_schema('cv_bad');
CALL hybrid_convert_schema('cv_bad');
DROP INDEX cv_bad.large_b_ccnew;
CALL hybrid_convert_table('cv_bad.large');
SELECT c.relname, am.amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam
WHERE c.relnamespace = 'cv_bad'::regnamespace AND c.relkind = 'i' ORDER BY 1;
DROP SCHEMA cv_bad CASCADE;

-- what cannot be converted
SELECT hybrid_convert('parent');
SELECT hybrid_convert(0);
SELECT hybrid_convert(NULL);
CALL hybrid_convert_concurrently('parent');
CALL hybrid_convert_concurrently(0);
CALL hybrid_convert_concurrently(NULL);
CALL hybrid_convert_table(NULL);
CALL hybrid_convert_table('parent_pkey');
CALL hybrid_convert_table('grouped');
CALL hybrid_convert_table('pg_sequence');
CALL hybrid_convert_table(0);
CALL hybrid_convert_schema(0);
CALL hybrid_convert_schema('pg_catalog');
SELECT hybrid_convert('pg_catalog.pg_class_oid_index');
CALL hybrid_convert_concurrently('pg_catalog.pg_class_oid_index');
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 'parent'::regclass \gset
SELECT (SELECT indexrelid FROM pg_index WHERE indrelid = :'toast'::regclass) AS toast_index \gset
\set VERBOSITY sqlstate
SELECT hybrid_convert(:toast_index);
\set VERBOSITY default
CREATE INDEX parent_hash ON parent USING hash (n);
SELECT hybrid_convert('parent_hash');
SELECT hybrid_revert('parent_hash');
CREATE TABLE dup (a int);
INSERT INTO dup VALUES (1), (1);
CREATE UNIQUE INDEX CONCURRENTLY dup_a ON dup (a);
SELECT hybrid_convert('dup_a');
CALL hybrid_convert_concurrently('dup_a');
REINDEX INDEX CONCURRENTLY dup_a;
SELECT hybrid_revert('dup_a');
DROP TABLE dup;

-- a transaction block, a function, an exception block; a procedure may
BEGIN;
CALL hybrid_convert_concurrently('parent_pkey');
ROLLBACK;
BEGIN;
CALL hybrid_convert_table('parent');
ROLLBACK;
DO $$ BEGIN CALL hybrid_convert_concurrently('cv.parent_pkey'); EXCEPTION WHEN division_by_zero THEN NULL; END $$;
CREATE FUNCTION in_function() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL hybrid_convert_concurrently('cv.parent_pkey'); END $$;
SELECT in_function();
CREATE PROCEDURE in_procedure() LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
	INSERT INTO cv.child VALUES (1000, md5('1')::uuid, 1);
	FOR r IN SELECT unnest(array['cv.parent_pkey', 'cv.parent_n']) AS i LOOP
		CALL hybrid_convert_concurrently(r.i::regclass);
	END LOOP;
	ROLLBACK;
END $$;
CALL in_procedure();
SELECT index, value FROM cv_state('cv') WHERE index ~ '^parent_' AND aspect = '' AND value ~ 'hybrid';
SELECT count(*) FROM child WHERE id = 1000;
START TRANSACTION READ ONLY;
SELECT hybrid_convert('parent_d');
ROLLBACK;
SET default_transaction_isolation = 'repeatable read';
CALL hybrid_revert_concurrently('parent_pkey');
SET default_transaction_isolation = 'serializable';
CALL hybrid_revert_concurrently('parent_n');
RESET default_transaction_isolation;
SELECT hyb_check('parent');

-- the table is being used
BEGIN;
DECLARE c CURSOR FOR SELECT 1 FROM parent;
FETCH c;
SELECT hybrid_convert('parent_n');
ROLLBACK;
BEGIN;
UPDATE parent SET d = 5 WHERE n = 6;
SELECT hybrid_convert('parent_d');
ROLLBACK;

-- others' indexes
CREATE ROLE regress_cv_other;
GRANT USAGE ON SCHEMA cv TO regress_cv_other;
GRANT ALL ON TABLE parent TO regress_cv_other;
CREATE TABLE theirs (a int PRIMARY KEY);
ALTER TABLE theirs OWNER TO regress_cv_other;
SET ROLE regress_cv_other;
SELECT hybrid_convert('parent_pkey');
CALL hybrid_convert_concurrently('parent_pkey');
CALL hybrid_convert_table('parent');
SELECT hybrid_convert('theirs_pkey');
CALL hybrid_revert_concurrently('theirs_pkey');
RESET ROLE;

-- code of the owner runs as the owner, who may not do more than in REINDEX
CREATE FUNCTION as_owner(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_user <> 'regress_cv_other' THEN
		RAISE NOTICE 'called by %', current_user;
	END IF;
	RETURN $1;
END $$;
INSERT INTO theirs VALUES (1);
CREATE INDEX theirs_f ON theirs ((as_owner(a) + as_owner(1)))
	WHERE a > as_owner(0);
\c -
SET search_path = cv, public;
CALL hybrid_convert_concurrently('theirs_f');
\c -
SET search_path = cv, public;
SELECT hybrid_revert('theirs_f');
\c -
SET search_path = cv, public;
SELECT hybrid_convert('theirs_f');

-- so does code of an index that is made for all partitions of a table
CREATE TABLE theirs_p (a int) PARTITION BY RANGE (a);
CREATE TABLE theirs_p1 PARTITION OF theirs_p FOR VALUES FROM (0) TO (10);
ALTER TABLE theirs_p OWNER TO regress_cv_other;
ALTER TABLE theirs_p1 OWNER TO regress_cv_other;
CREATE INDEX theirs_p_f ON theirs_p USING hybrid ((as_owner(a) + as_owner(1)))
	WHERE a > as_owner(0);

RESET search_path;
-- NULLS NOT DISTINCT stays, whichever way
SET client_min_messages = error;
CREATE TABLE cv.one_null (a int UNIQUE NULLS NOT DISTINCT);
INSERT INTO cv.one_null VALUES (NULL);
SELECT hybrid_convert('cv.one_null_a_key');
SELECT hyb_error('INSERT INTO cv.one_null VALUES (NULL)');
CALL hybrid_revert_concurrently('cv.one_null_a_key');
SELECT hyb_error('INSERT INTO cv.one_null VALUES (NULL)');
CALL hybrid_convert_concurrently('cv.one_null_a_key');
SELECT hyb_error('INSERT INTO cv.one_null VALUES (NULL)');
SET client_min_messages = warning;
DROP SCHEMA cv CASCADE;
DROP TABLESPACE cv_space;
DROP ROLE regress_cv_other;
DROP TABLE cv_before;
DROP FUNCTION cv_state, cv_diff;
