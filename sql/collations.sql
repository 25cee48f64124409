--
-- Collations: C-like ones, ICU ones where the server has them, and a
-- nondeterministic one, in which different strings are equal.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE coll_words (w text);
INSERT INTO coll_words SELECT w FROM unnest('{"",a,A,aa,Aa,aA,AA,b,B,abc,ABC,"a b","a-b",ab,co-op,coop,CO-OP,résumé,resume,Résumé,ä,Ä,z,Z,ß,ss,øre,"ångström",日本,"  x",_x,10,9,1}'::text[]) w;
INSERT INTO coll_words SELECT (array['Alpha', 'beta', 'Gamma', 'delta-', '_eps'])[1 + i % 5] || i FROM generate_series(1, 400) i;

-- ICU needs a server built with it and a database encoding it knows
CREATE FUNCTION coll_create() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CREATE COLLATION hyb_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE COLLATION hyb_num (provider = icu, locale = 'und-u-kn-true');
EXCEPTION WHEN OTHERS THEN
	NULL;
END $$;
SELECT coll_create();

-- A collation that this database has not got passes without a test.
CREATE FUNCTION coll_check(coll text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	word	text;
	op		text;
	phase	int;
	ok		boolean := true;
BEGIN
	BEGIN
		EXECUTE format('SELECT ''a'' < ''b'' COLLATE %I', coll);
	EXCEPTION WHEN undefined_object THEN
		RETURN true;
	END;
	EXECUTE format('CREATE TABLE coll_t (v text COLLATE %I, n int)', coll);
	INSERT INTO coll_t SELECT w, i FROM coll_words, generate_series(1, 2) i;
	CREATE INDEX coll_i ON coll_t USING hybrid (v);
	CREATE INDEX coll_d ON coll_t USING hybrid (n DESC, v DESC);
	ANALYZE coll_t;
	FOR phase IN 1 .. 3 LOOP
		IF phase = 2 THEN
			INSERT INTO coll_t SELECT w, 3 FROM coll_words;
			INSERT INTO coll_t SELECT upper(w), 4 FROM coll_words;
			DELETE FROM coll_t WHERE n = 1 AND length(v) = 2;
			INSERT INTO coll_t VALUES (NULL, 1);
		ELSIF phase = 3 THEN
			PERFORM hybrid_merge('coll_i');
			PERFORM hybrid_merge('coll_d');
		END IF;
		FOREACH op IN ARRAY '{<,<=,=,>=,>}'::text[] LOOP
			FOREACH word IN ARRAY '{"",a,A,ab,"co-op",coop,Résumé,ä,ZZ,alpha50,10}'::text[] LOOP
				ok := hyb_same(format('SELECT v FROM coll_t WHERE v %s %L', op, word), 'index bitmap only') AND
					hyb_same(format('SELECT v FROM coll_t WHERE n = 2 AND v %s %L', op, word), 'index') AND ok;
			END LOOP;
		END LOOP;
		ok := hyb_same('SELECT coalesce(v < lag(v) OVER (ORDER BY v), v IS NULL) FROM coll_t', 'order order_only') AND
			hyb_same('SELECT coalesce(v > lag(v) OVER (ORDER BY v DESC), v IS NULL) FROM coll_t', 'order order_only') AND
			hyb_same('SELECT v FROM coll_t WHERE v = ANY (''{abc,coop,zzz,NULL,ABC}'')') AND
			hyb_same(format('SELECT v FROM coll_t WHERE v COLLATE %I > name ''ab''', coll), 'index bitmap') AND
			ok;
	END LOOP;
	PERFORM hyb_check('coll_t');
	DROP TABLE coll_t;
	RETURN ok;
END $$;
SELECT coll, coll_check(coll) FROM unnest('{C,POSIX,default,ucs_basic,und-x-icu,de-x-icu,hyb_num,hyb_ci}'::text[]) coll;

-- the operator of another collation cannot use the index
CREATE TABLE coll_t (v text COLLATE "C");
INSERT INTO coll_t SELECT w FROM coll_words;
CREATE INDEX coll_i ON coll_t USING hybrid (v COLLATE "POSIX");
SET enable_seqscan = off;
SELECT NOT hyb_plan_has((hyb_rows('SELECT v FROM coll_t WHERE v < ''b''', 'bitmap')).plan, 'Bitmap Index Scan') AS other_collation_not_used;
RESET enable_seqscan;
SELECT hyb_same('SELECT v FROM coll_t WHERE v COLLATE "POSIX" < ''b''');
DROP TABLE coll_t;

-- operator classes that order by bytes refuse collations that do not
CREATE TABLE coll_t (v text);
SELECT c, o, CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'hyb_ci') THEN hyb_error(format('CREATE INDEX ON coll_t USING hybrid (v COLLATE %I %I)', c, o)) LIKE '0A000 %' ELSE true END AS refused
FROM (VALUES ('und-x-icu', 'text_hope_ops'), ('hyb_ci', 'text_hope_ops'), ('hyb_ci', 'text_pattern_hope_ops'), ('hyb_ci', 'text_pattern_ops')) v (c, o);
DROP TABLE coll_t;

-- equal under the collation is equal to a unique index
CREATE FUNCTION coll_unique() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	e1	text;
	e2	text;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'hyb_ci') THEN
		RETURN true;
	END IF;
	CREATE TABLE coll_u (v text COLLATE hyb_ci);
	CREATE UNIQUE INDEX coll_ui ON coll_u USING hybrid (v);
	INSERT INTO coll_u VALUES ('abc'), ('abd');
	e1 := hyb_error('INSERT INTO coll_u VALUES (''ABC'')');
	PERFORM hybrid_merge('coll_ui');
	e2 := hyb_error('INSERT INTO coll_u VALUES (''ABD'')');
	DROP TABLE coll_u;
	RETURN e1 = '23505 duplicate key value violates unique constraint "coll_ui" / Key (v)=(ABC) already exists.'
		AND e2 = '23505 duplicate key value violates unique constraint "coll_ui" / Key (v)=(ABD) already exists.';
END $$;
SELECT coll_unique();

-- a name under such a collation is sought by a text, of any length
CREATE FUNCTION coll_names() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	ok		boolean;
	plan	json;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'hyb_ci') THEN
		RETURN true;
	END IF;
	CREATE TABLE coll_n (n name COLLATE hyb_ci);
	INSERT INTO coll_n SELECT md5(i::text) || repeat('ß', i % 9) FROM generate_series(1, 3000) i;
	INSERT INTO coll_n VALUES (''), ('c4ca'), (repeat('C', 63));
	CREATE INDEX coll_ni ON coll_n USING hybrid (n);
	ANALYZE coll_n;
	SELECT bool_and(hyb_same('SELECT n FROM coll_n WHERE n ' || q, 'index')) INTO ok FROM unnest(ARRAY[
		$q$= 'C4CA'::text$q$, $q$< '01'::text$q$, $q$= ANY ('{C4CA,"",cccc,x}'::text[])$q$, $q$>= 'ff'::text$q$, $q$= ''::text$q$,
		$q$> repeat('c', 62)::text AND n < 'cd'::text$q$, $q$= repeat('c', 63)::text$q$, $q$> repeat('c', 64)::text AND n < 'cd'::text$q$,
		$q$= repeat('c', 64)::text$q$, $q$< ANY (ARRAY['01'::text, '001'])$q$, $q$= ANY (ARRAY[repeat('c', 63), repeat('c', 100)])$q$]) q;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT n FROM coll_n WHERE n = ''c4ca''::text' INTO plan;
	ok := ok AND jsonb_path_query_first(plan::jsonb, '$.** ? (@."Node Type" == "Bitmap Index Scan")."Shared Hit Blocks"')::int < 10;
	DROP TABLE coll_n;
	RETURN ok;
END $$;
SELECT coll_names();

-- Classes of encoded strings refuse collations with a hint that helps: what it
-- names is accepted.
CREATE FUNCTION coll_hint(coll text, class text, expected text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	hint	text;
BEGIN
	EXECUTE format('CREATE TABLE coll_h (v text COLLATE %I)', coll);
	BEGIN
		EXECUTE format('CREATE INDEX ON coll_h USING hybrid (v %s)', class);
		hint := 'accepted';
	EXCEPTION WHEN feature_not_supported THEN
		GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	END;
	DROP TABLE coll_h;
	RETURN hint = expected;
EXCEPTION WHEN undefined_object THEN
	RETURN true;
END $$;
SET client_min_messages = warning;
SELECT coll_hint('hyb_num', 'text_hope_ops', 'Add COLLATE "C" to the index column, or use operator class "text_pattern_hope_ops".') AS num,
	coll_hint('hyb_num', 'text_pattern_hope_ops', 'accepted') AS num_pattern,
	coll_hint('hyb_ci', 'text_hope_ops', 'Add COLLATE "C" to the index column.') AS ci,
	coll_hint('hyb_ci', 'text_pattern_hope_ops', '') AS ci_pattern,
	coll_hint('hyb_ci', 'text_pattern_ops', '') AS ci_plain_pattern,
	coll_hint('hyb_ci', 'COLLATE "C" text_hope_ops', 'accepted') AS ci_c;

DROP TABLE coll_words;
DROP FUNCTION coll_create, coll_check, coll_unique, coll_names, coll_hint;
DROP COLLATION IF EXISTS hyb_ci;
DROP COLLATION IF EXISTS hyb_num;
RESET client_min_messages;
