--
-- Encoded columns of every operator class and scheme.  Indexes are built on full
-- and on empty tables, with other columns, unique, descending, merged and
-- reindexed.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
-- Keys: addresses, paths, repetitions, bytes that no sample has, prefixes of
-- each other.
CREATE TABLE hope_keys (k text COLLATE "C", n int);
INSERT INTO hope_keys SELECT format('%s.%s%s@%s', (array['anna', 'bob', 'carla', 'dietrich', 'eve'])[1 + i % 5],
	(array['smith', 'jones', 'li', 'garcia'])[1 + i % 4], i * 7 % 211, (array['example.com', 'example.org', 'mail.example.net'])[1 + i % 3]), i
	FROM generate_series(1, 900) i;
INSERT INTO hope_keys SELECT '/usr/share/doc/package-' || i * 31 % 97 || '/' || md5(i::text) || '.gz', i FROM generate_series(1, 300) i;
INSERT INTO hope_keys SELECT repeat(chr(97 + i % 3), i % 60), i FROM generate_series(0, 180) i;
INSERT INTO hope_keys SELECT repeat('ab', i) || chr(1 + i * 2), i FROM generate_series(0, 60) i;
INSERT INTO hope_keys SELECT chr(i) || 'x' || chr(i), i FROM generate_series(1, 126) i;
INSERT INTO hope_keys VALUES ('', 0), (NULL, 0), (' ', 1), ('  ', 2), (repeat('long ', 400), 3), (E'\x7f\x7f', 4);
-- characters of several bytes, which char(n) counts once each
INSERT INTO hope_keys SELECT repeat(chr(233), i), i FROM generate_series(1, 3) i WHERE getdatabaseencoding() = 'UTF8';

-- The same values under every access path, while the index changes.
CREATE FUNCTION hope_check(coltype text, opclass text, ops text, empty boolean, direction text DEFAULT '') RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	conv	text := CASE WHEN coltype = 'bytea' THEN 'convert_to(k, ''UTF8'')' ELSE 'k' END;
	probes	text[] := ARRAY['', 'abab', 'anna.smith', 'bob.jones14@example.com', '/usr/share/doc/package-3', E'\x01', repeat('long ', 400)];
	probe	text;
	op		text;
	ok		boolean := true;
	lim		text := CASE WHEN coltype LIKE 'char%' THEN 'length(k) < 100' ELSE 'true' END;
BEGIN
	EXECUTE format('CREATE TABLE hope_t (v %s %s, n int, x %1$s %2$s)', coltype, CASE WHEN coltype <> 'bytea' THEN 'COLLATE "C"' END);
	IF NOT empty THEN
		EXECUTE format('INSERT INTO hope_t SELECT %s, n, %1$s FROM hope_keys WHERE coalesce(%s, true)', conv, lim);
	END IF;
	EXECUTE format('CREATE INDEX hope_i ON hope_t USING hybrid (v %s %s)', opclass, direction);
	EXECUTE format('CREATE INDEX hope_m ON hope_t USING hybrid (n DESC, x %s %s) INCLUDE (n)', opclass, direction);
	FOR phase IN 1 .. 4 LOOP
		IF phase = 2 THEN
			EXECUTE format('INSERT INTO hope_t SELECT %s, n + 1, %1$s FROM hope_keys WHERE coalesce(%s, true) AND n %% 3 = 0', conv, lim);
			EXECUTE 'INSERT INTO hope_t SELECT v, n + 2, x FROM hope_t WHERE n % 5 = 0';
			EXECUTE 'DELETE FROM hope_t WHERE n % 7 = 1';
		ELSIF phase = 3 THEN
			PERFORM hybrid_merge('hope_i');
			PERFORM hybrid_merge('hope_m');
		ELSIF phase = 4 THEN
			REINDEX TABLE hope_t;
		END IF;
		EXECUTE 'ANALYZE hope_t';
		IF phase = 1 AND empty THEN
			CONTINUE;
		END IF;
		FOREACH op IN ARRAY string_to_array(ops, ' ') LOOP
			FOREACH probe IN ARRAY probes LOOP
				probe := CASE WHEN coltype = 'bytea' THEN quote_literal(convert_to(probe, 'UTF8')) ELSE quote_literal(probe) END;
				ok := hyb_same(format('SELECT v FROM hope_t WHERE v %s %s', op, probe), 'index only bitmap') AND
					hyb_same(format('SELECT x, n FROM hope_t WHERE n = 3 AND x %s %s', op, probe), 'only') AND ok;
			END LOOP;
		END LOOP;
		ok := hyb_same('SELECT v FROM hope_t WHERE v IS NULL', 'index') AND
			hyb_same('SELECT octet_length(v), v FROM hope_t WHERE v IS NOT NULL', 'only') AND
			hyb_check('hope_t') AND ok;
	END LOOP;
	DROP TABLE hope_t;
	RETURN ok;
END $$;

-- every scheme
SELECT s, hope_check('text', format('text_hope_ops (scheme = %L, dictionary = 1024)', s), '<= = >', false)
	FROM unnest('{single-char,double-char,3-grams,4-grams,alm,alm-improved}'::text[]) s;
SELECT s, hope_check('text', format('text_hope_ops (scheme = %L)', s), '< =', true)
	FROM unnest('{single-char,double-char,3-grams,4-grams,alm,alm-improved}'::text[]) s;

-- every operator class
SELECT hope_check('varchar', 'varchar_hope_ops', '< <= = >= >', false);
SELECT hope_check('char(120)', 'bpchar_hope_ops', '< <= = >= >', false);
SELECT hope_check('bytea', 'bytea_hope_ops', '< <= = >= >', false);
SELECT hope_check('text', 'text_pattern_hope_ops', '~<~ ~<=~ = ~>=~ ~>~', false);
SELECT hope_check('text', 'text_hope_ops', '< = >', false, 'DESC');
SELECT hope_check('bytea', 'bytea_hope_ops (scheme = ''alm-improved'')', '< = >', true, 'DESC NULLS LAST');

-- bytes of all values, and tails of zeroes
CREATE TABLE hope_bytes (b bytea);
INSERT INTO hope_bytes SELECT decode(repeat(lpad(to_hex(i), 2, '0'), j), 'hex') FROM generate_series(0, 255) i, generate_series(0, 4) j;
INSERT INTO hope_bytes SELECT decode(lpad(to_hex(i), 2, '0') || repeat('00', j), 'hex') FROM generate_series(0, 255) i, generate_series(0, 3) j;
CREATE INDEX hope_bytes_i ON hope_bytes USING hybrid (b bytea_hope_ops (scheme = '4-grams'));
ANALYZE hope_bytes;
SELECT hyb_same('SELECT b FROM hope_bytes ORDER BY b', 'order order_only');
SELECT hyb_same(format('SELECT b FROM hope_bytes WHERE b > %L', b), 'only') FROM unnest(ARRAY['\x00'::bytea, '\x0000', '\xff', '\xffff00', '\x7f00']) b;

-- order, patterns, uniqueness
CREATE TABLE hope_u (v text COLLATE "C", w text);
INSERT INTO hope_u SELECT DISTINCT ON (k) k, k FROM hope_keys;
CREATE UNIQUE INDEX hope_u_i ON hope_u USING hybrid (v text_hope_ops (scheme = '3-grams', dictionary = 4096));
CREATE INDEX hope_w_i ON hope_u USING hybrid (w text_pattern_hope_ops);
ANALYZE hope_u;
SELECT hyb_same('SELECT v FROM hope_u ORDER BY v', 'order order_only');
SELECT hyb_same('SELECT v FROM hope_u ORDER BY v DESC', 'order order_only');
SELECT hyb_same('SELECT v FROM hope_u WHERE v LIKE ''anna.%''', 'index only');
SELECT hyb_same('SELECT w FROM hope_u WHERE w ~>=~ ''/usr/share/doc/package-3'' AND w ~<~ ''/usr/share/doc/package-4''', 'index only');
SELECT hyb_same('SELECT v FROM hope_u WHERE v = ANY (''{anna,abab,"","bob.jones14@example.com"}'')', 'index only bitmap');
INSERT INTO hope_u VALUES ('anna.li2@example.org', ''), ('anna.li2@example.or', '');
INSERT INTO hope_u VALUES ('', '');
INSERT INTO hope_u VALUES ('anna.li2@example.or', '');
SELECT hyb_check('hope_u');

-- temporary and unlogged tables
CREATE TEMP TABLE hope_temp (v text COLLATE "C");
CREATE INDEX hope_temp_i ON hope_temp USING hybrid (v text_hope_ops);
CREATE UNLOGGED TABLE hope_unlogged (v text COLLATE "C");
CREATE INDEX hope_unlogged_i ON hope_unlogged USING hybrid (v text_hope_ops (scheme = 'alm'));
INSERT INTO hope_temp SELECT k FROM hope_keys;
INSERT INTO hope_unlogged SELECT k FROM hope_keys;
SELECT hyb_check('hope_temp'), hyb_check('hope_unlogged');

-- a statement that uses more sets of dictionaries than a session keeps unused
CREATE TABLE hope_p (n int, v text COLLATE "C") PARTITION BY LIST (n);
DO $$ BEGIN FOR i IN 1 .. 12 LOOP EXECUTE format('CREATE TABLE hope_p%s PARTITION OF hope_p FOR VALUES IN (%1$s)', i); END LOOP; END $$;
INSERT INTO hope_p SELECT 1 + i % 12, 'key number ' || i FROM generate_series(1, 6000) i;
CREATE INDEX hope_p_i ON hope_p USING hybrid (v text_hope_ops);
ANALYZE hope_p;
SELECT bool_and(learned), count(*) FROM pg_partition_tree('hope_p_i'), hybrid_dictionary_info(relid) WHERE isleaf;
SELECT hyb_same('SELECT v FROM hope_p ORDER BY v', 'order order_only');
DROP TABLE hope_p;

-- what the dictionary is; a table of few rows does not teach
\unset VERBOSITY
SET client_min_messages = notice;
CREATE TABLE hope_info (a text COLLATE "C", n int, b text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX hope_info_i ON hope_info USING hybrid (a text_hope_ops, n, b text_hope_ops (scheme = 'single-char'));
INSERT INTO hope_info SELECT 'key number ' || i, i, repeat('z', i % 10) FROM generate_series(1, 1000) i;
SELECT column_name, scheme, entries, bytes, learned, compression, recent_keys, recent_compression FROM hybrid_dictionary_info('hope_info_i');
SELECT hybrid_merge('hope_info_i');
SELECT column_name, scheme, entries, learned, sample_keys, compression > 1.5 AS compressed, recent_keys FROM hybrid_dictionary_info('hope_info_i');
REINDEX INDEX hope_info_i;
-- the distribution changes
INSERT INTO hope_info SELECT upper(md5(i::text)), i, NULL FROM generate_series(1, 1000) i;
SELECT column_name, learned, sample_keys, compression > 1.5 AS compressed, recent_keys, recent_compression > 1.2 AS recent FROM hybrid_dictionary_info('hope_info_i');
SELECT hybrid_merge('hope_info_i');
SELECT column_name, recent_keys BETWEEN 50 AND 80 AS sampled, recent_compression > 1.2 AS recent FROM hybrid_dictionary_info('hope_info_i');
SET client_min_messages = warning;
TRUNCATE hope_info;
SELECT column_name, learned FROM hybrid_dictionary_info('hope_info_i');
CREATE INDEX hope_info_n ON hope_info USING hybrid (n);
SELECT * FROM hybrid_dictionary_info('hope_info_n');

-- keys that no scheme makes smaller are stored as they are
CREATE TABLE hope_none (v text COLLATE "C");
INSERT INTO hope_none SELECT md5(i::text) FROM generate_series(1, 2000) i;
CREATE INDEX hope_none_i ON hope_none USING hybrid (v text_hope_ops);
INSERT INTO hope_none SELECT md5(i::text) FROM generate_series(2001, 2500) i;
SELECT scheme, entries, bytes, memory, learned, sample_keys, recent_keys FROM hybrid_dictionary_info('hope_none_i');
ANALYZE hope_none;
SELECT hyb_same('SELECT v FROM hope_none WHERE v >= ''4'' AND v < ''5''', 'index only bitmap'), hyb_check('hope_none');

-- an index created empty: a merge learns, unless another session is using the index
CREATE TABLE hope_e (id int, v text COLLATE "C", w char(70) COLLATE "C") WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX hope_e_v ON hope_e USING hybrid (v text_hope_ops (scheme = 'alm-improved')) INCLUDE (id) WITH (filter = surf);
CREATE INDEX hope_e_w ON hope_e USING hybrid (id DESC, w bpchar_hope_ops DESC NULLS FIRST);
CREATE FUNCTION hope_e_same() RETURNS boolean LANGUAGE sql AS $$
	SELECT hyb_same('SELECT id, v FROM hope_e WHERE v >= ''b'' AND v < ''cc''', 'index only bitmap') AND
		hyb_same('SELECT v FROM hope_e ORDER BY v DESC', 'order order_only') AND
		hyb_same('SELECT id, w FROM hope_e WHERE id BETWEEN 40 AND 80 AND w > ''b''', 'index only bitmap') AND
		hyb_check('hope_e')
$$;
CREATE FUNCTION hope_learned(index regclass) RETURNS boolean LANGUAGE sql AS 'SELECT bool_and(learned) FROM hybrid_dictionary_info(index)';
-- no worker is to have one of the indexes open when an inserter wants to learn
SET hybridindex.background_merge = off;
INSERT INTO hope_e SELECT i, chr(97 + i % 26) || E'\x01' || md5(i::text), CASE WHEN i % 9 > 0 THEN md5(i::text) END FROM generate_series(1, 200) i;
SELECT hybrid_merge('hope_e_v'), hope_learned('hope_e_v'), hope_e_same();
INSERT INTO hope_e SELECT i, chr(97 + i % 26) || md5(i::text), CASE WHEN i % 9 > 0 THEN md5(i::text) END FROM generate_series(201, 500) i;
DELETE FROM hope_e WHERE id % 50 = 7;
SELECT hyb_quiet();
VACUUM (INDEX_CLEANUP ON) hope_e;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE up CURSOR FOR SELECT id FROM hope_e ORDER BY v;
DECLARE down SCROLL CURSOR FOR SELECT id FROM hope_e ORDER BY v DESC;
FETCH 2 FROM up;
FETCH 2 FROM down;
SELECT hybrid_merge('hope_e_v'), hope_learned('hope_e_v');
FETCH 2 FROM up;
FETCH 2 FROM down;
FETCH BACKWARD 2 FROM down;
CLOSE up;
CLOSE down;
SELECT hybrid_merge('hope_e_v'), hope_learned('hope_e_v');
SELECT hybrid_merge('hope_e_w'), hope_learned('hope_e_w');
ROLLBACK;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
SELECT hope_learned('hope_e_v'), hope_learned('hope_e_w'), hope_e_same();
INSERT INTO hope_e SELECT 0, v FROM hope_e WHERE id = 300;
INSERT INTO hope_e SELECT 0, v FROM hope_e WHERE id = 3;

-- entries that VACUUM has removed from the log, whose line pointers are other
-- rows' by the time that a merge learns from it
CREATE TABLE hope_d (v text COLLATE "C", id int) WITH (autovacuum_enabled = off);
CREATE INDEX hope_d_v ON hope_d USING hybrid (v text_hope_ops);
INSERT INTO hope_d SELECT 'old word ' || i, i FROM generate_series(1, 600) i;
DELETE FROM hope_d WHERE id % 3 = 0;
SELECT hyb_quiet();
VACUUM (INDEX_CLEANUP ON) hope_d;
INSERT INTO hope_d SELECT 'new word ' || i, -i FROM generate_series(1, 100) i;
SELECT count(*) > 0 AS reused FROM hope_d WHERE id < 0 AND ctid < (SELECT max(ctid) FROM hope_d WHERE id > 0);
SELECT hybrid_merge('hope_d_v'), hope_learned('hope_d_v'), hyb_check('hope_d'),
	hyb_same('SELECT v FROM hope_d WHERE v < ''p''', 'only');
DROP TABLE hope_d;

-- in the middle of one statement, which fails later, and of another
TRUNCATE hope_e;
SELECT hope_learned('hope_e_v');
INSERT INTO hope_e SELECT i % 19000, md5((i % 19000)::text) FROM generate_series(1, 20000) i;
SELECT hope_learned('hope_e_v'), hope_learned('hope_e_w'), hope_e_same();
INSERT INTO hope_e SELECT i, md5(i::text) FROM generate_series(1, 20000) i;
SELECT hope_e_same();
-- where long keys fill the log before the floor is reached
TRUNCATE hope_e;
SET hybridindex.merge_floor = 1000000;
INSERT INTO hope_e SELECT i, repeat(md5(i::text), 10), repeat(md5(i::text), 2) FROM generate_series(1, 8000) i;
RESET hybridindex.merge_floor;
SELECT hope_learned('hope_e_v'), hope_learned('hope_e_w'), hope_e_same();
-- where the transaction made the table, and a function goes on after an error
BEGIN;
CREATE TEMP TABLE hope_t (v text COLLATE "C");
CREATE INDEX hope_t_i ON hope_t USING hybrid (v text_hope_ops (scheme = '3-grams'));
DO $$
BEGIN
	FOR i IN 1 .. 12 LOOP
		BEGIN
			INSERT INTO hope_t SELECT md5((n * i)::text) || '@example.com' FROM generate_series(1, 1000) n;
			IF i % 3 = 0 THEN
				RAISE EXCEPTION 'roll back';
			END IF;
		EXCEPTION WHEN raise_exception THEN
		END;
	END LOOP;
END $$;
SELECT hope_learned('hope_t_i'), hyb_check('hope_t'), hyb_same('SELECT v FROM hope_t WHERE v > ''8''', 'only');
COMMIT;
-- Whether a row fits does not depend on what a merge has learned: keys that the
-- sample lacks have long codes, and a row that is refused is refused before, too.
CREATE TABLE hope_long (b bytea) WITH (autovacuum_enabled = off);
CREATE INDEX hope_long_i ON hope_long USING hybrid (b bytea_hope_ops);
CREATE FUNCTION hope_noise(n int) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT decode(string_agg(md5(i::text), ''), 'hex') FROM generate_series(1, n / 16) i $$;
INSERT INTO hope_long SELECT convert_to('same ' || i, 'UTF8') FROM generate_series(1, 2000) i;
INSERT INTO hope_long VALUES (hope_noise(2048)), ('\x00' || hope_noise(1024)), (convert_to(repeat('same ', 800), 'UTF8'));
SELECT hope_learned('hope_long_i'), split_part(hyb_error('INSERT INTO hope_long VALUES (hope_noise(2160))'), ' / ', 1);
SELECT hybrid_merge('hope_long_i'), hope_learned('hope_long_i'), hyb_check('hope_long'), hyb_same('SELECT b FROM hope_long WHERE b > ''same 5''', 'only');
SELECT split_part(hyb_error('INSERT INTO hope_long VALUES (hope_noise(2160))'), ' / ', 1);
INSERT INTO hope_long VALUES (hope_noise(2048)), ('\x00' || hope_noise(1024)), (convert_to(repeat('same ', 801), 'UTF8'));
INSERT INTO hope_long SELECT substr(hope_noise(2048), 1, n) FROM generate_series(170, 240) n;
INSERT INTO hope_long SELECT substr(hope_noise(2048), 1, n) || '\x00' FROM generate_series(170, 240) n;
INSERT INTO hope_long SELECT substr(hope_noise(2048), 1, n) || '\xffff' FROM generate_series(170, 240) n;
SELECT hyb_check('hope_long'), hyb_same('SELECT b FROM hope_long', 'only'), hyb_same('SELECT b FROM hope_long ORDER BY b', 'order order_only'),
	hyb_same('SELECT b FROM hope_long WHERE b > substr(hope_noise(2048), 1, 200)', 'index only'),
	hyb_same('SELECT b FROM hope_long WHERE b < substr(hope_noise(2048), 1, 200) || ''\x01''', 'index only');

-- bad input
CREATE INDEX ON hope_keys USING hybrid (k text_hope_ops (scheme = '5-grams'));
CREATE INDEX ON hope_keys USING hybrid (k text_hope_ops (dictionary = 100));
CREATE INDEX ON hope_keys USING hybrid (k text_hope_ops (dictionary = 'many'));
CREATE INDEX ON hope_keys USING hybrid (k text_hope_ops (size = 5));
-- (the server names the schema or not, depending on its version)
SELECT replace(hyb_error('CREATE INDEX ON hope_keys USING hybrid (k text_ops (scheme = ''alm''))'), 'public.', '');
CREATE TABLE hope_bad (b bpchar, t text COLLATE "C");
CREATE INDEX ON hope_bad USING hybrid (b COLLATE "C" bpchar_hope_ops);
INSERT INTO hope_bad (t) SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i;
CREATE INDEX ON hope_bad USING hybrid (t text_hope_ops);
CREATE INDEX hope_bad_i ON hope_bad USING hybrid (t text_hope_ops) WHERE length(t) < 5000;
INSERT INTO hope_bad (t) SELECT string_agg(md5(i::text), '') FROM generate_series(1, 154) i;
SELECT hyb_check('hope_bad');

DROP TABLE hope_keys, hope_bytes, hope_u, hope_temp, hope_unlogged, hope_info, hope_e, hope_t, hope_long, hope_bad, hope_none;
DROP FUNCTION hope_noise, hope_check, hope_e_same, hope_learned;
