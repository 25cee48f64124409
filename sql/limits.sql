--
-- Limits, at their edge and one beyond.  Other tests have the limits of their
-- subject: 32 columns (multicolumn), what btree takes and lengths of constants
-- (long_keys), indexes that one statement inserts into (gather).
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
LOAD 'hybridindex';
SET hybridindex.background_merge = off;

-- ---- an entry has 2704 bytes at most ----

-- bytes that cannot be compressed
CREATE FUNCTION li_bytes(len int) RETURNS bytea IMMUTABLE LANGUAGE sql AS
	$$ SELECT substr(string_agg(decode(md5(j::text), 'hex'), ''), 1, len) FROM generate_series(0, len / 16) j $$;
CREATE TABLE li (id int, b bytea, c text COLLATE "C", a bytea[], n numeric);
ALTER TABLE li ALTER b SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL, ALTER a SET STORAGE EXTERNAL;
CREATE FUNCTION li_insert(len int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO li SELECT len, b, translate(encode(b, 'base64'), E'\n', ''), array[b], 0 FROM li_bytes(len) b;
	RETURN 'no error';
EXCEPTION WHEN program_limit_exceeded THEN
	RETURN regexp_replace(sqlerrm, 'size \d+', 'size N');
END $$;

-- The most bytes that a row may have, whether they get into a new index too, and
-- are found and returned, from the log and from leaves; and what one more gets.
CREATE FUNCTION li_edge(def text, query text, OUT most int, OUT answers boolean, OUT more text, OUT built text) LANGUAGE plpgsql AS $$
DECLARE
	beyond int := 6000;
	len int;
BEGIN
	TRUNCATE li;
	EXECUTE 'CREATE INDEX li_i ON li USING hybrid ' || def;
	most := 100;
	WHILE beyond - most > 1 LOOP
		len := (most + beyond) / 2;
		IF li_insert(len) = 'no error' THEN most := len; ELSE beyond := len; END IF;
	END LOOP;
	answers := hyb_same(query, 'index bitmap') AND hyb_check('li');
	PERFORM hybrid_merge('li_i');
	answers := answers AND hyb_same(query, 'index bitmap') AND hyb_check('li');
	REINDEX TABLE li;
	answers := answers AND hyb_same(query, 'index bitmap') AND hyb_check('li');
	more := li_insert(most + 1);
	DROP INDEX li_i;
	PERFORM li_insert(most + 1);
	built := regexp_replace(hyb_error('CREATE INDEX li_i ON li USING hybrid ' || def), 'size \d+|tuple \(.*\)', 'N', 'g');
END $$;
SELECT def, e.most, e.answers, e.more, split_part(e.built, ' / ', 1) AS built
FROM (VALUES ('(b)', 'SELECT id FROM li WHERE b > ''\x00'''),
	('(b DESC, id)', 'SELECT id FROM li WHERE b > ''\x00'''),
	('(id, b, n)', 'SELECT id FROM li WHERE id > 3'),
	('(id) INCLUDE (b)', 'SELECT id FROM li WHERE id > 3'),
	('(id) INCLUDE (b) WITH (compression = none)', 'SELECT id FROM li WHERE id > 3'),
	('(b) WITH (layout = trie)', 'SELECT id FROM li WHERE b > ''\x00'''),
	('(b) WITH (filter = surf)', 'SELECT id FROM li WHERE b > ''\x00'''),
	('(a)', 'SELECT id FROM li WHERE a > ''{}'''),
	('(n, a, id)', 'SELECT id FROM li WHERE n = 0'),
	('(c)', 'SELECT id FROM li WHERE c > '''''),
	('(c text_hope_ops)', 'SELECT id FROM li WHERE c > '''''),
	('((b || b))', 'SELECT id FROM li WHERE b || b > ''\x00''')) v (def, query), li_edge(def, query) e;
DROP TABLE li;

-- Keys of all lengths around those where they are stored otherwise.
CREATE TABLE li AS SELECT i AS id, li_bytes(i) AS b, array[li_bytes(i)] AS a
FROM generate_series(0, 2640) i WHERE i < 280 OR i % 97 < 2 OR i BETWEEN 500 AND 520 OR i BETWEEN 630 AND 650;
CREATE INDEX li_b ON li USING hybrid (b) INCLUDE (id);
CREATE INDEX li_a ON li USING hybrid (a DESC, id);
CREATE FUNCTION li_same() RETURNS boolean LANGUAGE sql AS $$
	SELECT hyb_same('SELECT id, b FROM li ORDER BY b', 'order order_only') AND hyb_same('SELECT a FROM li ORDER BY a', 'order order_only')
		AND bool_and(hyb_same(format('SELECT id FROM li WHERE b = li_bytes(%s) OR a = array[li_bytes(%1$s)]', i), 'bitmap')) AND hyb_check('li')
	FROM unnest('{0, 1, 126, 127, 128, 255, 256, 509, 640, 641, 2619, 2640}'::int[]) i
$$;
SELECT li_same();
TRUNCATE li;
INSERT INTO li SELECT i, li_bytes(i), array[li_bytes(i)]
FROM generate_series(0, 2640) i WHERE i < 280 OR i % 97 < 2 OR i BETWEEN 500 AND 520 OR i BETWEEN 630 AND 650;
SELECT li_same();
SELECT count(hybrid_merge(i)) FROM unnest('{li_b, li_a}'::regclass[]) i;
SELECT li_same();
DROP TABLE li;

-- ---- a leaf has 16384 entries at most; a key has any number ----

CREATE TABLE li (k int, n int);
INSERT INTO li SELECT 0, i FROM generate_series(1, 100000) i;
CREATE INDEX li_k ON li USING hybrid (k);
CREATE INDEX li_n ON li USING hybrid (n);
SELECT relname, static_entries, leaf_pages FROM pg_class, hybrid_index_stats(oid) WHERE relname ~ '^li_[kn]$' ORDER BY 1;
SELECT hyb_same('SELECT n FROM li WHERE k = 0 AND n % 1000 = 0', 'index bitmap'), hyb_check('li');
DROP TABLE li;

-- ---- numbers of settings and storage parameters ----

CREATE TABLE li (k int, t text COLLATE "C");
INSERT INTO li SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
CREATE INDEX li_k ON li USING hybrid (k);
CREATE INDEX li_t ON li USING hybrid (t) WITH (filter = surf);
CREATE FUNCTION li_work() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM li WHERE k > 3000;
	INSERT INTO li SELECT 3000 + i, md5(i::text) FROM generate_series(1, 3000) i;
	PERFORM hybrid_merge('li_k'), hybrid_merge('li_t');
	RETURN hyb_same('SELECT k FROM li WHERE k > 2900', 'index') AND hyb_same('SELECT k FROM li WHERE t > ''8''', 'index bitmap') AND hyb_check('li');
END $$;
-- one below and one above are refused, and at both ends all works
SELECT name, hyb_error(format('SET %s = %s', name, min_val::int8 - 1)) LIKE '22023%' AS below, hyb_error(format('SET %s = %s', name, max_val::int8 + 1)) LIKE '22023%' AS above,
	set_config(name, min_val, false) = min_val AND li_work() AS least, set_config(name, max_val, false) = max_val AND li_work() AS most,
	set_config(name, boot_val, false) = boot_val AS reset
FROM pg_settings WHERE name ~ '^hybridindex' AND name !~ 'test' AND context = 'user' AND vartype = 'integer' ORDER BY name COLLATE "C";
\set VERBOSITY sqlstate
SELECT format('ALTER SYSTEM SET %s = %s', name, min_val::int8 - 1), format('ALTER SYSTEM SET %s = %s', name, max_val::int8 + 1)
FROM pg_settings WHERE name ~ '^hybridindex' AND context = 'sighup' AND vartype = 'integer' ORDER BY name COLLATE "C" \gexec
\set VERBOSITY default
CREATE FUNCTION li_rebuilt(option text, val bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	e text := hyb_error(format('ALTER INDEX li_t SET (%s = %s)', option, val));
BEGIN
	IF e = 'no error' THEN
		REINDEX INDEX li_t;
		e := li_work()::text;
	END IF;
	EXECUTE format('ALTER INDEX li_t RESET (%s)', option);
	RETURN e;
END $$;
SELECT option, least, li_rebuilt(option, least - 1) AS below, li_rebuilt(option, least) AS at_least, most, li_rebuilt(option, most) AS at_most, li_rebuilt(option, most + 1) AS above
FROM (VALUES ('merge_ratio', 1, 1000::bigint), ('levels', 1, 3), ('filter_suffix_bits', 0, 32)) v (option, least, most);
DROP TABLE li;
DROP FUNCTION li_bytes, li_insert, li_edge, li_same, li_work, li_rebuilt;

-- ---- 64 indexes have trees in a session's memory ----

CREATE FUNCTION li_trees(n int, OUT seen bigint, OUT trees bigint) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
	m bigint;
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE format('CREATE TEMP TABLE li%s (k numeric); CREATE INDEX ON li%1$s USING hybrid (k); INSERT INTO li%1$s SELECT generate_series(1, 700)', i);
	END LOOP;
	seen := 0;
	FOR i IN 1 .. 2 * n LOOP
		EXECUTE format('SELECT count(*) FROM li%s WHERE k > 100', i % n + 1) INTO m;
		seen := seen + m;
	END LOOP;
	SELECT count(*) INTO trees FROM pg_class, hybrid_index_stats(oid) WHERE relname ~ '^li\d+_k_idx$' AND tree_entries > 0;
END $$;
SELECT * FROM li_trees(66);
DISCARD TEMP;
DROP FUNCTION li_trees;

-- ---- a comparison function may search others, 64 indexes at a time ----

CREATE FUNCTION li_deep(a int, b int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	depth int := current_setting('li.depth');
	deepest int := current_setting('li.deepest');
BEGIN
	-- the first comparison in each index searches the next one
	PERFORM set_config('li.depth', CASE WHEN depth < deepest THEN depth + 1 ELSE 1000 END::text, false);
	IF depth < deepest THEN
		EXECUTE format('SELECT FROM li%s WHERE k = 1', depth + 1);
	END IF;
	RETURN (a > b)::int - (a < b)::int;
END $$;
CREATE OPERATOR CLASS li_deep_ops FOR TYPE int USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 li_deep(int, int);
SET li.depth = 1000;
SET li.deepest = 63;
DO $$
BEGIN
	FOR i IN 0 .. 64 LOOP
		EXECUTE format('CREATE TEMP TABLE li%s (k int); CREATE INDEX ON li%1$s USING hybrid (k li_deep_ops); INSERT INTO li%1$s SELECT generate_series(1, 700)', i);
	END LOOP;
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET li.depth = 0;
SELECT count(*) FROM li0 WHERE k = 1;
SET li.deepest = 64;
SET li.depth = 0;
SELECT hyb_error('SELECT count(*) FROM li0 WHERE k = 1');
SET li.depth = 1000;
SELECT count(*) FROM li64 WHERE k > 1;
DISCARD TEMP;
DROP OPERATOR FAMILY li_deep_ops USING hybrid;
DROP FUNCTION li_deep;
