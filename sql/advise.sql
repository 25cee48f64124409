--
-- hybrid_advise: what btree indexes would be as hybrid ones.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
CREATE SCHEMA ad;
SET search_path = public, ad;
CREATE TABLE ad.t (id int8, r int8, d int, u uuid, s text COLLATE "C", e text, n numeric, name name, a int[], long text COLLATE "C");
INSERT INTO ad.t SELECT i, hashint8extended(i, 1), i % 100, md5(i::text)::uuid, 'user' || i * 7919 % 30000 || '@example' || i % 50 || '.org', md5(i::text), i * 1.5, 'n' || i % 500, array[i % 7, i], CASE WHEN i % 20 = 0 THEN repeat('text ' || i, 300) END
FROM generate_series(1, 20000) i;
CREATE UNIQUE INDEX t_id ON ad.t (id);
CREATE INDEX t_r ON ad.t (r);
CREATE INDEX t_d ON ad.t (d);
CREATE INDEX t_u ON ad.t (u);
CREATE INDEX t_s ON ad.t (s DESC);
CREATE INDEX t_e ON ad.t (upper(e) COLLATE "C", d) WHERE id % 2 = 0;
CREATE INDEX t_n ON ad.t (n);
CREATE INDEX t_name ON ad.t (name);
CREATE INDEX t_a ON ad.t (a);
CREATE INDEX t_include ON ad.t (d, id) INCLUDE (e);
CREATE INDEX t_long ON ad.t (long, id);
CREATE INDEX t_old ON ad.t (r, d) WITH (deduplicate_items = off, fillfactor = 60);
CREATE TEMP TABLE ad_r AS SELECT a.index::text AS i, a.* FROM hybrid_advise() a WHERE a."table" = 'ad.t'::regclass;
SELECT i, entries, duplicates, is_unique, remark, command FROM ad_r ORDER BY i COLLATE "C";

-- as large as they get
CREATE TEMP TABLE ad_c (i text, size int8);
SET client_min_messages = error;
DO $$
DECLARE
	x text;
BEGIN
	FOR x IN SELECT i FROM ad_r LOOP
		PERFORM hybrid_convert(x::regclass);
		INSERT INTO ad_c VALUES (x, pg_relation_size(x));
		PERFORM hybrid_revert(x::regclass);
	END LOOP;
END $$;
SET client_min_messages = warning;
SELECT i, hybrid_size, c.size FROM ad_r r JOIN ad_c c USING (i) WHERE hybrid_size NOT BETWEEN 0.8 * c.size AND 1.25 * c.size;
SELECT bool_and(hybrid_size < ad_r.size AND saved = ad_r.size - hybrid_size) FROM ad_r;

-- of one index it looks at that one only, and the failure of one is its own
CREATE TYPE ad.pair AS (a int, b int);
CREATE TABLE ad.p (k ad.pair);
INSERT INTO ad.p SELECT ROW(i % 10000, i)::ad.pair FROM generate_series(1, 20000) i;
CREATE INDEX p_k ON ad.p (k);
ALTER TYPE ad.pair DROP ATTRIBUTE a;
SELECT remark, hybrid_size, command FROM hybrid_advise('p_k');
SELECT count(*) FROM hybrid_advice WHERE index = 't_id'::regclass OR index = 'p_k'::regclass;
SELECT hyb_error($$SELECT hybrid_estimate('p_k')$$);
CREATE FUNCTION ad.reads() RETURNS int8 LANGUAGE sql AS $$
	SELECT idx_blks_read + idx_blks_hit FROM pg_statio_all_indexes WHERE indexrelname = 't_id'
$$;
SELECT pg_stat_force_next_flush();
SELECT ad.reads() AS before \gset
SELECT count(*), pg_stat_force_next_flush() FROM hybrid_advise('p_k');
SELECT ad.reads() - :before AS others_read;
SELECT count(*), pg_stat_force_next_flush() FROM hybrid_advise('t_id');
SELECT ad.reads() > :before AS read;
DROP TABLE ad.p;

-- pages without entries, dead entries, nothing at all
DELETE FROM ad.t WHERE id % 3 > 0;
VACUUM ad.t;
SELECT entries FROM hybrid_advise('t_id');
TRUNCATE ad.t;
SELECT entries, duplicates, hybrid_size FROM hybrid_advise('t_id');

-- what cannot be converted, or not alone
CREATE TYPE ad.num;
CREATE FUNCTION ad.num_in(cstring) RETURNS ad.num LANGUAGE internal STRICT IMMUTABLE AS 'int4in';
CREATE FUNCTION ad.num_out(ad.num) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE AS 'int4out';
CREATE TYPE ad.num (INPUT = ad.num_in, OUTPUT = ad.num_out, LIKE = int4);
CREATE FUNCTION ad.lt(ad.num, ad.num) RETURNS bool LANGUAGE internal STRICT IMMUTABLE AS 'int4lt';
CREATE FUNCTION ad.cmp(ad.num, ad.num) RETURNS int LANGUAGE internal STRICT IMMUTABLE AS 'btint4cmp';
CREATE OPERATOR ad.< (FUNCTION = ad.lt, LEFTARG = ad.num, RIGHTARG = ad.num);
CREATE OPERATOR CLASS ad.num_ops DEFAULT FOR TYPE ad.num USING btree AS OPERATOR 1 ad.<, FUNCTION 1 ad.cmp(ad.num, ad.num);
CREATE TABLE ad.o (n ad.num, i int);
CREATE INDEX o_n ON ad.o (n);
ALTER TABLE ad.o ADD CONSTRAINT o_alone EXCLUDE USING btree (i WITH =);
CREATE TABLE ad.p (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE ad.p1 PARTITION OF ad.p FOR VALUES FROM (0) TO (100);
CREATE INDEX p_k ON ad.p (k);
SET search_path = public;
SELECT index, hybrid_size, remark, command FROM hybrid_advise() WHERE index IN ('ad.o_n'::regclass, 'ad.o_alone', 'ad.p1_k_idx') ORDER BY index::text;
SELECT command FROM hybrid_advise('ad.o_alone') \gexec
SET search_path = public, ad;
CREATE INDEX o_i ON ad.o USING hybrid (i);
SELECT count(*) FROM hybrid_advise('o_i');
SELECT hyb_error(format('SELECT hybrid_estimate(%L)', r)) FROM unnest('{ad.o,o_i,p_k}'::text[]) r;

-- roles that may look: owners, readers, pg_monitor; functions run as the owner
CREATE ROLE regress_ad_owner;
CREATE ROLE regress_ad_other;
CREATE ROLE regress_ad_monitor IN ROLE pg_monitor;
GRANT USAGE ON SCHEMA ad TO PUBLIC;
GRANT CREATE ON SCHEMA ad TO regress_ad_owner;
SET ROLE regress_ad_owner;
CREATE TABLE ad.mine (a int[]);
INSERT INTO ad.mine SELECT array[i] FROM generate_series(1, 10000) i;
CREATE INDEX mine_a ON ad.mine (a);
SELECT entries FROM hybrid_advise('mine_a');
SET ROLE regress_ad_other;
SELECT count(*) FROM hybrid_advice WHERE "table" = 'ad.mine'::regclass;
SELECT hyb_error('SELECT hybrid_estimate(''ad.mine_a'')');
SET ROLE regress_ad_monitor;
SELECT entries FROM hybrid_advice WHERE "table" = 'ad.mine'::regclass;
BEGIN READ ONLY;
SELECT entries FROM hybrid_advise('ad.mine_a');
COMMIT;
RESET ROLE;

-- a btree's storage parameters are not taken for those of the index to come:
-- the payload is compressed whatever they are
CREATE TABLE ad.payload (k int, doc text);
INSERT INTO ad.payload SELECT i, format('{"id": %s, "email": "%s@example.org", "status": "active", "visits": %s}', i, md5(i::text), i % 1000) FROM generate_series(1, 5000) i;
CREATE INDEX payload_plain ON ad.payload (k) INCLUDE (doc);
CREATE INDEX payload_fill ON ad.payload (k) INCLUDE (doc) WITH (fillfactor = 90);
CREATE INDEX payload_dup ON ad.payload (k) INCLUDE (doc) WITH (deduplicate_items = on);
CREATE INDEX payload_hybrid ON ad.payload USING hybrid (k) INCLUDE (doc);
SELECT count(DISTINCT hybrid_bytes), bool_and(hybrid_bytes BETWEEN 0.9 * pg_relation_size('ad.payload_hybrid') AND 1.1 * pg_relation_size('ad.payload_hybrid'))
FROM unnest('{payload_plain,payload_fill,payload_dup}'::text[]) i, hybrid_estimate(('ad.' || i)::regclass);
SET client_min_messages = error;
DROP SCHEMA ad CASCADE;
DROP ROLE regress_ad_owner, regress_ad_other, regress_ad_monitor;
