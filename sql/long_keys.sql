--
-- Values that are too long to be stored as they are.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse
SET hybridindex.background_merge = off;
SET default_toast_compression = 'pglz'; -- for btree's part: lz4, 19's default, packs what repeats itself further

-- Texts that begin alike for a while, of lengths around those where they are
-- stored otherwise, up to what compresses a hundred times.
CREATE FUNCTION lk_text(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE i % 8
		WHEN 0 THEN repeat('x', 600 + i)
		WHEN 1 THEN repeat('x', 600 + i) || 'a'
		WHEN 2 THEN repeat('abc ' || i % 5, 100 + i * 7)
		WHEN 3 THEN repeat('x', 630 + i % 20) || repeat(md5((i % 3)::text), i % 40)
		WHEN 4 THEN md5(i::text)
		WHEN 5 THEN (SELECT string_agg('{"id": ' || j * i || ', "name": "n' || j % 9 || '"}', ', ') FROM generate_series(1, 20 + i % 100) j)
		WHEN 6 THEN repeat('y', i * 100)
		ELSE repeat('x', 639 + i % 4) || chr(97 + i % 26) END
$$;
CREATE TABLE lk (id int, c text COLLATE "C", b bytea, a text[], p text COLLATE "C");
INSERT INTO lk SELECT i, lk_text(i), lk_text(i)::bytea || '\x0001ff00'::bytea, array[lk_text(i), i::text], lk_text(i + 1) FROM generate_series(1, 120) i;
SELECT max(length(c)), count(DISTINCT c), count(*) FROM lk;
CREATE UNIQUE INDEX lk_c ON lk USING hybrid (c, id) WITH (filter = surf);
CREATE INDEX lk_cd ON lk USING hybrid (c DESC NULLS LAST, id);
CREATE INDEX lk_b ON lk USING hybrid (b) INCLUDE (id);
CREATE INDEX lk_a ON lk USING hybrid (a) INCLUDE (id);
CREATE INDEX lk_p ON lk USING hybrid (id) INCLUDE (p);
CREATE INDEX lk_pattern ON lk USING hybrid (p text_pattern_ops, c);
-- half of them in the log, some merged
INSERT INTO lk SELECT i, lk_text(i), lk_text(i)::bytea || '\x0001ff00'::bytea, array[lk_text(i), i::text], lk_text(i + 1) FROM generate_series(121, 170) i;
SELECT hybrid_merge('lk_c') >= 0, hybrid_merge('lk_cd') >= 0, hybrid_merge('lk_b') >= 0, hybrid_merge('lk_a') >= 0, hybrid_merge('lk_p') >= 0;
INSERT INTO lk SELECT i, lk_text(i), lk_text(i)::bytea || '\x0001ff00'::bytea, array[lk_text(i), i::text], lk_text(i + 1) FROM generate_series(171, 220) i;
INSERT INTO lk VALUES (221, NULL, NULL, NULL, NULL);
SELECT hyb_check('lk');

CREATE FUNCTION lk_compare() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q text;
BEGIN
	FOR q IN SELECT unnest(array[
		'SELECT c, id FROM lk ORDER BY c, id', 'SELECT c, id FROM lk ORDER BY c DESC, id DESC',
		'SELECT c, id FROM lk ORDER BY c DESC NULLS LAST, id',
		'SELECT b FROM lk ORDER BY b', 'SELECT a FROM lk ORDER BY a', 'SELECT a FROM lk ORDER BY a DESC'])
	LOOP
		IF NOT hyb_same(q, 'order order_only') THEN RETURN NEXT q; END IF;
	END LOOP;
	FOR q IN SELECT format(f, n) FROM generate_series(1, 220, 43) n, unnest(array[
		'SELECT id FROM lk WHERE c = lk_text(%s)', 'SELECT id FROM lk WHERE c < lk_text(%s) || ''!''',
		'SELECT id FROM lk WHERE c > left(lk_text(%s), 641)', 'SELECT id FROM lk WHERE b = lk_text(%s)::bytea || ''\x0001ff00''::bytea',
		'SELECT id FROM lk WHERE b >= lk_text(%s)::bytea', 'SELECT id FROM lk WHERE a = array[lk_text(%s), ''%1$s'']',
		'SELECT id FROM lk WHERE a < array[lk_text(%s)]', 'SELECT id FROM lk WHERE c = ANY (array[lk_text(%s), lk_text(%1$s + 1), ''x''])',
		'SELECT id FROM lk WHERE c LIKE left(lk_text(%s), 700) || ''%%''']) f
	LOOP
		IF NOT hyb_same(q, CASE WHEN q LIKE '%LIKE%' THEN 'index' ELSE 'index bitmap only' END) THEN RETURN NEXT left(q, 200); END IF;
	END LOOP;
	IF NOT hyb_same('SELECT id, p FROM lk WHERE id BETWEEN 5 AND 210', 'index only') THEN RETURN NEXT 'INCLUDE'; END IF;
END $$;
SELECT lk_compare();

-- a duplicate is one, whatever the value has been through
SELECT id, left(hyb_error('INSERT INTO lk SELECT id, c FROM lk WHERE id = ' || id), 64) FROM unnest('{6, 150, 190, 214}'::int[]) id;
-- compressed by others
-- only what VACUUM merges itself
SET hybridindex.background_merge = off;
ALTER TABLE lk ALTER c SET STORAGE EXTERNAL, ALTER a SET STORAGE EXTERNAL;
UPDATE lk SET c = c || '', a = a || '{}'::text[] WHERE id % 3 = 0;
DELETE FROM lk WHERE id % 7 = 0;
VACUUM lk;
SELECT hyb_check('lk');
SELECT hybrid_merge('lk_c') >= 0, hybrid_merge('lk_cd') >= 0, hybrid_merge('lk_b') >= 0, hybrid_merge('lk_a') >= 0, hybrid_merge('lk_p') >= 0;
SELECT hyb_check('lk');
SELECT lk_compare();
REINDEX TABLE lk;
SELECT hyb_check('lk');
SELECT lk_compare();

-- What btree takes, is taken: texts of many kinds and lengths, in one column
-- and in several, under both forms of storage.
CREATE TABLE lk_t2 (kind int, c text COLLATE "C", a text[]);
CREATE FUNCTION lk_kind(kind int, len int) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT left(CASE kind
		WHEN 0 THEN repeat('x', len)
		WHEN 1 THEN (SELECT string_agg(md5((j % 40)::text), '') FROM generate_series(1, len / 32 + 1) j)
		WHEN 2 THEN (SELECT string_agg('line ' || j || ' of file ' || j * 7919 % 1000 || E'\n', '') FROM generate_series(1, len / 15 + 1) j)
		WHEN 3 THEN (SELECT string_agg(prosrc || ' ' || proname || ' ' || coalesce(proargnames::text, ''), ' ' ORDER BY oid) FROM pg_proc WHERE oid BETWEEN 31 AND 2000)
		WHEN 4 THEN (SELECT string_agg(json_build_object('id', j, 'key', md5(j::text), 'at', timestamp '2020-01-01' + j * interval '1 hour')::text, ',') FROM generate_series(1, len / 80 + 1) j)
		ELSE (SELECT string_agg(substr('The quick brown fox jumps over the lazy dog and keeps running through fields of wheat.', 1 + j * 31 % 60, 5 + j * 17 % 30), ' ') FROM generate_series(1, len / 6 + 1) j) END, len)
$$;
CREATE FUNCTION lk_limit(indexes text[], row_of text) RETURNS TABLE (kind int, as_long_as_btree bool, text_of_btree int) LANGUAGE plpgsql AS $$
DECLARE
	at int[]; k int; lo int; hi int; mid int; i int;
BEGIN
	FOR k IN 0 .. 5 LOOP
		at := '{}';
		FOR i IN 1 .. 2 LOOP
			EXECUTE 'DROP INDEX IF EXISTS lk_one';
			EXECUTE indexes[i];
			lo := 500; hi := 260000;
			WHILE hi - lo > lo / 50 LOOP
				mid := (lo + hi) / 2;
				BEGIN
					EXECUTE format('INSERT INTO lk_t2 %s', replace(row_of, 'LONG', format('lk_kind(%s, %s)', k, mid)));
					lo := mid;
				EXCEPTION WHEN program_limit_exceeded THEN
					hi := mid;
				END;
			END LOOP;
			EXECUTE 'TRUNCATE lk_t2';
			at := at || lo;
		END LOOP;
		kind := k; as_long_as_btree := at[2] >= at[1]; text_of_btree := at[1] / 100 * 100;
		RETURN NEXT;
	END LOOP;
	EXECUTE 'DROP INDEX lk_one';
END $$;
SELECT kind, as_long_as_btree FROM lk_limit('{CREATE INDEX lk_one ON lk_t2 USING btree (c), CREATE INDEX lk_one ON lk_t2 USING hybrid (c)}', 'SELECT 1, LONG, NULL');
SELECT kind, as_long_as_btree FROM lk_limit('{"CREATE INDEX lk_one ON lk_t2 USING btree (c, kind, a)", "CREATE INDEX lk_one ON lk_t2 USING hybrid (c, kind, a)"}', 'SELECT 1, LONG, array[left(LONG, 3000)]');
SELECT kind, as_long_as_btree FROM lk_limit('{CREATE INDEX lk_one ON lk_t2 USING btree (a), CREATE INDEX lk_one ON lk_t2 USING hybrid (a)}', 'SELECT 1, NULL, array[LONG]');
SELECT kind, as_long_as_btree FROM lk_limit('{CREATE INDEX lk_one ON lk_t2 USING btree (kind) INCLUDE (c), CREATE INDEX lk_one ON lk_t2 USING hybrid (kind) INCLUDE (c)}', 'SELECT 1, LONG, NULL');

-- And beyond it is refused as btree refuses it; constants may be of any length.
CREATE INDEX lk_one ON lk_t2 USING hybrid (c);
CREATE INDEX lk_two ON lk_t2 USING hybrid (a);
\set VERBOSITY default
INSERT INTO lk_t2 SELECT 1, string_agg(md5(j::text), '') FROM generate_series(1, 1000) j;
INSERT INTO lk_t2 SELECT 1, NULL, array[string_agg(md5(j::text), '')] FROM generate_series(1, 1000) j;
INSERT INTO lk_t2 SELECT 1, repeat('x', 1000000);
\set VERBOSITY terse
INSERT INTO lk_t2 SELECT i, repeat(chr(96 + i), 3000) FROM generate_series(1, 26) i;
SELECT hyb_same('SELECT kind FROM lk_t2 WHERE c = repeat(''x'', 1000000)'), hyb_same('SELECT kind FROM lk_t2 WHERE c < repeat(''x'', 1000000)'),
	hyb_same('SELECT kind FROM lk_t2 WHERE c > (SELECT string_agg(md5(j::text), '''') FROM generate_series(1, 1000) j)'),
	hyb_same('SELECT kind FROM lk_t2 WHERE a < array[repeat(''x'', 10000000)]'), hyb_check('lk_t2');

-- Where comparison functions order an index, CREATE INDEX sorts as btree's does,
-- in tuples of 8191 bytes: what would not fit one is refused at once.
CREATE INDEX lk_mixed ON lk_t2 USING hybrid (kind, c, a);
SELECT left(hyb_error('INSERT INTO lk_t2 SELECT 30, repeat(lk_kind(2, 6000), 30)'), 75);
DROP INDEX lk_mixed;
INSERT INTO lk_t2 SELECT 30, repeat(lk_kind(2, 6000), 30);
SELECT left(hyb_error('CREATE INDEX lk_mixed ON lk_t2 USING hybrid (kind, c, a)'), 75);
REINDEX TABLE lk_t2;
SELECT hyb_same('SELECT c FROM lk_t2 WHERE c > ''k''', 'only'), hyb_check('lk_t2');

-- The same where the table compresses otherwise: REINDEX takes what INSERT took.
CREATE TABLE lk_lz (f numeric, c text COLLATE "C");
DO $$ BEGIN ALTER TABLE lk_lz ALTER c SET COMPRESSION lz4; EXCEPTION WHEN feature_not_supported THEN NULL; END $$;
CREATE INDEX lk_lz_i ON lk_lz USING hybrid (f, c);
CREATE FUNCTION lk_bits(n int) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT string_agg(chr(97 + (hashint4(j) & 1)), '' ORDER BY j) FROM generate_series(1, n) j $$;
SELECT max(n) > 10000 AS long_ones, bool_and(error = 'no error') AS all_of_them
FROM (SELECT n, hyb_error(format('INSERT INTO lk_lz VALUES ((repeat(''12345678'', 190) || %1$s)::numeric, lk_bits(%1$s))', n)) AS error FROM generate_series(1000, 20000, 500) n) x WHERE error !~ '^54000';
REINDEX INDEX lk_lz_i;
SELECT hyb_check('lk_lz'), hyb_same('SELECT c FROM lk_lz WHERE f > 10000', 'index bitmap');
DROP TABLE lk_lz;

-- Leaves of packed keys only: they are what separates the leaves.
CREATE TABLE lk_s AS SELECT array[repeat(md5(i::text), 60) || (SELECT string_agg(md5((i * 7 + j)::text), '') FROM generate_series(1, 20) j)] AS a FROM generate_series(1, 200) i;
CREATE INDEX lk_s_a ON lk_s USING hybrid (a);
SELECT leaf_pages > 5 FROM hybrid_index_stats('lk_s_a');
SELECT hyb_same('SELECT a FROM lk_s ORDER BY a', 'order order_only'), hyb_same('SELECT a FROM lk_s WHERE a > array[''8'']'), hyb_check('lk_s');

-- pglz compresses as it did when this was written: what indexes hold is looked
-- up by its bytes
CREATE TABLE lk_pg (v text COMPRESSION pglz);
INSERT INTO lk_pg VALUES (lk_kind(4, 2500)), (lk_kind(5, 4000)), (repeat('abcd', 2000));
SELECT pg_column_size(v) FROM lk_pg;
DROP TABLE lk, lk_t2, lk_s, lk_pg;
DROP FUNCTION lk_text, lk_kind, lk_compare, lk_limit, lk_bits;
