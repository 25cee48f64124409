-- Tables with an index each, for t/113_stored_formats.pl.  Table x has the index x_i
-- and takes rows lo to hi of x_rows(lo, hi).  Each row gets the same TID on every
-- server: rows are only appended, by one session, and pglz compresses them.
--
-- states: what hybrid_index_stats has to say of each index, and whether it can have
-- layout = trie.  queries: what is asked of it, and the access paths for hyb_same.

SET default_toast_compression = pglz;
SET hybridindex.background_merge = off;
SET hybridindex.merge_floor = 1000000;
SET hybridindex.merge_step_pages = 64;
CREATE TABLE states (index text, trie bool, state text);
CREATE TABLE queries (index text, query text, paths text);

-- ---- columnar leaves, INCLUDE, range filters, tombstones, free blocks, a log ----

CREATE TABLE columnar (k int8, s text COLLATE "C", j text);
CREATE FUNCTION columnar_rows(lo int, hi int) RETURNS SETOF columnar LANGUAGE sql AS $$
	SELECT CASE WHEN i % 50 > 0 THEN hashint4(i)::int8 * 8 END,
		CASE WHEN i % 60 > 0 THEN (array['alpha', 'beta ', 'gamma/', 'delta'])[1 + i % 4] || md5((i % 20)::text) END,
		format('{"number": %s, "name": "%s"}', i, (array['left', 'right', 'neither', 'both'])[1 + i % 4])
	FROM generate_series(lo, hi) i
$$;
INSERT INTO columnar SELECT * FROM columnar_rows(1, 700);
CREATE INDEX columnar_i ON columnar USING hybrid (k, s) INCLUDE (j) WITH (filter = surf);
INSERT INTO columnar SELECT * FROM columnar_rows(701, 760);
SELECT hybrid_merge('columnar_i');
INSERT INTO columnar SELECT * FROM columnar_rows(761, 880);
DELETE FROM columnar WHERE k BETWEEN 0 AND 1000000000;
VACUUM (INDEX_CLEANUP on) columnar;
DELETE FROM columnar WHERE k BETWEEN 2000000000 AND 2500000000;
INSERT INTO states VALUES ('columnar_i', false, 'static_tombstones > 20 AND dynamic_entries > 100 AND filter_pages > 0 AND free_pages > 0 AND levels = 1');
INSERT INTO queries VALUES
	('columnar_i', 'SELECT k, s FROM columnar ORDER BY k, s', 'order order_only'),
	('columnar_i', 'SELECT k, s FROM columnar ORDER BY k DESC, s DESC', 'order'),
	('columnar_i', 'SELECT k, s, j FROM columnar WHERE k BETWEEN -9000000000 AND 3000000000', 'index only bitmap'),
	('columnar_i', 'SELECT count(j) FROM columnar WHERE k = ANY (SELECT k FROM columnar_rows(1, 1200))', 'nest'),
	('columnar_i', 'SELECT s, j FROM columnar WHERE k IS NULL', 'index only bitmap');

-- ---- strings encoded with a dictionary ----

CREATE TABLE hope (s text COLLATE "C", n int);
CREATE FUNCTION hope_rows(lo int, hi int) RETURNS SETOF hope LANGUAGE sql AS $$
	SELECT (array['anna', 'bernhard', 'chris', 'dorothea', 'emil'])[1 + abs(hashint4(i)) % 5] || '.' || abs(hashint4(i + 7)) % 1000 ||
		(array['@example.org', '@mail.example.com', '@example.net'])[1 + i % 3], i
	FROM generate_series(lo, hi) i
$$;
INSERT INTO hope SELECT * FROM hope_rows(1, 1000);
CREATE INDEX hope_i ON hope USING hybrid (s text_hope_ops (scheme = 'alm-improved', dictionary = 512), n DESC);
INSERT INTO hope SELECT * FROM hope_rows(1001, 1100);
INSERT INTO states VALUES ('hope_i', true, 'dynamic_entries = 100 AND (SELECT learned AND scheme = ''alm-improved'' FROM hybrid_dictionary_info(''hope_i''))');
INSERT INTO queries VALUES
	('hope_i', 'SELECT s, n FROM hope ORDER BY s, n DESC', 'order order_only'),
	('hope_i', 'SELECT n FROM hope WHERE s LIKE ''chris.1%''', 'index bitmap'),
	('hope_i', 'SELECT s FROM hope WHERE s > ''bernhard.3'' AND s < ''chris''', 'only'),
	('hope_i', 'SELECT n FROM hope WHERE s = ANY (SELECT s FROM hope_rows(1, 100))', 'nest');

-- ---- leaves that hold prefixes of numbers, and of strings ----

CREATE TABLE numbers (u uuid);
CREATE FUNCTION numbers_rows(lo int, hi int) RETURNS SETOF numbers LANGUAGE sql AS $$
	SELECT md5(i::text)::uuid FROM generate_series(lo, hi) i
$$;
INSERT INTO numbers SELECT * FROM numbers_rows(1, 2300);
CREATE UNIQUE INDEX numbers_i ON numbers USING hybrid (u) WITH (layout = trie, filter = points);
INSERT INTO numbers SELECT * FROM numbers_rows(2301, 2400);
INSERT INTO states VALUES ('numbers_i', true, 'dynamic_entries = 100 AND filter_pages > 0');
INSERT INTO queries VALUES
	('numbers_i', 'SELECT u FROM numbers ORDER BY u', 'order'),
	('numbers_i', 'SELECT count(*) FROM numbers WHERE u = ANY (SELECT u FROM numbers_rows(1, 3000))', 'nest'),
	('numbers_i', 'SELECT u FROM numbers WHERE u > ''a0000000-0000-0000-0000-000000000000''', 'index bitmap');

CREATE TABLE strings (t text COLLATE "C", n int);
CREATE FUNCTION strings_rows(lo int, hi int) RETURNS SETOF strings LANGUAGE sql AS $$
	SELECT (array['http://example.org/', '/usr/share/doc/', 'x'])[1 + i % 3] || abs(hashint4(i)), i FROM generate_series(lo, hi) i
$$;
INSERT INTO strings SELECT * FROM strings_rows(1, 1500);
CREATE INDEX strings_i ON strings USING hybrid (t, n) WITH (layout = trie, filter = points);
INSERT INTO strings SELECT * FROM strings_rows(1501, 1600);
INSERT INTO states VALUES ('strings_i', true, 'dynamic_entries = 100 AND filter_pages > 0');
INSERT INTO queries VALUES
	('strings_i', 'SELECT t, n FROM strings ORDER BY t, n', 'order'),
	('strings_i', 'SELECT count(n) FROM strings WHERE t = ANY (SELECT t FROM strings_rows(1, 2000))', 'nest'),
	('strings_i', 'SELECT n FROM strings WHERE t LIKE ''/usr/share/doc/1%''', 'index bitmap');

-- ---- one column of each form, ascending and descending, with NULLs ----

CREATE TABLE forms (b bool, c "char", i2 int2, i4 int4, o oid, f4 float4, f8 float8, d date, t time, ts timestamp, tz timestamptz,
	m money, l pg_lsn, x xid8, p tid, mac macaddr, mac8 macaddr8, u uuid, n name, bin bytea, v varchar(40) COLLATE "C", num numeric, net inet, bits varbit, a int[], bc char(12) COLLATE "C");
CREATE FUNCTION forms_rows(lo int, hi int) RETURNS SETOF forms LANGUAGE sql AS $$
	SELECT i % 2 = 0, chr(65 + i % 20)::"char", (i * 77 % 30000 - 15000)::int2, hashint4(i), abs(hashint4(i))::oid, (i - 300) / 7.0::float4,
		CASE i % 50 WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' ELSE (hashint4(i) / 1000.0)::float8 END,
		CASE WHEN i % 40 = 0 THEN 'infinity' ELSE date '2000-01-01' + hashint4(i) % 4000 END, time '00:00' + i * interval '77 s',
		timestamp '1999-01-01' + hashint4(i) * interval '1 s', timestamptz '1999-01-01 00:00+00' + hashint4(i) * interval '1 s', (hashint4(i) % 1000)::money,
		('0/' || to_hex(abs(hashint4(i))))::pg_lsn, abs(hashint4(i))::text::xid8, format('(%s,%s)', i * 7 % 1000, 1 + i % 90)::tid,
		('08002b' || left(md5(i::text), 6))::macaddr, ('08002b0102' || left(md5(i::text), 6))::macaddr8, md5(i::text)::uuid, ('n' || i * 7 % 1000)::name,
		CASE WHEN i % 30 > 0 THEN decode('0001' || left(md5(i::text), 8), 'hex') END, md5((i / 3)::text), hashint4(i) / 100.0, '10.0.0.0'::inet + i * 77,
		(i % 37)::bit(9)::varbit, CASE WHEN i % 30 > 0 THEN array[i % 7, i] END, 'c' || i % 60
	FROM generate_series(lo, hi) i
$$;
INSERT INTO forms SELECT * FROM forms_rows(1, 160);
CREATE INDEX forms_i ON forms USING hybrid (b, c DESC, i2, i4 DESC, o, f4, f8, d DESC, t, ts DESC, tz, m, l DESC, x, p, mac, mac8 DESC, u, n, bin, v, num, net, bits, a, bc);
INSERT INTO forms SELECT * FROM forms_rows(161, 180);
INSERT INTO states VALUES ('forms_i', false, 'static_entries = 160 AND dynamic_entries = 20');
INSERT INTO queries VALUES
	('forms_i', 'SELECT * FROM forms ORDER BY b, c DESC, i2, i4 DESC', 'order order_only'),
	('forms_i', 'SELECT f8, ts, num, a FROM forms WHERE b AND c > ''F''::"char" AND c < ''P''::"char"', 'index only bitmap'),
	('forms_i', 'SELECT * FROM forms WHERE b AND c = ''F'' AND i2 = ANY (SELECT i2 FROM forms_rows(1, 50))', 'nest');

-- ---- long values: compressed by pglz, and in order ----

CREATE TABLE long (bits varbit, t text COLLATE "C");
CREATE FUNCTION long_rows(lo int, hi int) RETURNS SETOF long LANGUAGE sql AS $$
	SELECT ('x' || repeat(md5(i::text) || md5((i % 5)::text), 17 + i % 4 * 6))::varbit, repeat('/' || md5((i % 9)::text), 10 + i % 10) || i
	FROM generate_series(lo, hi) i
$$;
INSERT INTO long SELECT * FROM long_rows(1, 90);
CREATE UNIQUE INDEX long_i ON long USING hybrid (bits, t) WITH (filter = points);
INSERT INTO long SELECT * FROM long_rows(91, 105);
INSERT INTO states VALUES ('long_i', false, 'static_entries = 90 AND dynamic_entries = 15 AND filter_pages > 0');
INSERT INTO queries VALUES
	('long_i', 'SELECT bits, t FROM long ORDER BY bits, t', 'order order_only'),
	('long_i', 'SELECT count(*), sum(length(a.t)) FROM long a JOIN long_rows(1, 300) b USING (bits, t)', 'nest');

-- ---- long values that pglz packs in two ways, as char is signed or not ----

CREATE TABLE packed (bits varbit);
CREATE FUNCTION packed_rows(lo int, hi int) RETURNS SETOF packed LANGUAGE sql AS $$
	SELECT (SELECT ('x' || string_agg(regexp_replace(substr(md5((i * 100 + j * j % 7)::text), 1 + j * j * 3 % 16, 3 + j % 9), '(.)', '\1\1', 'g'), '' ORDER BY j))::varbit FROM generate_series(1, 399) j)
	FROM generate_series(lo, hi) i
$$;
INSERT INTO packed SELECT * FROM packed_rows(1, 25);
CREATE UNIQUE INDEX packed_i ON packed USING hybrid (bits) WITH (filter = points);
INSERT INTO packed SELECT * FROM packed_rows(26, 35);
INSERT INTO states VALUES ('packed_i', false, 'static_entries = 25 AND dynamic_entries = 10 AND filter_pages > 0');
INSERT INTO queries VALUES
	('packed_i', 'SELECT bits FROM packed ORDER BY bits', 'order order_only'),
	('packed_i', 'SELECT count(*) FROM packed WHERE bits = ANY (SELECT bits FROM packed_rows(1, 100))', 'nest');

-- ---- a merge that has done one step ----

SET hybridindex.merge_step_pages = 1;
CREATE TABLE merging (k int, s text COLLATE "C");
CREATE FUNCTION merging_rows(lo int, hi int) RETURNS SETOF merging LANGUAGE sql AS $$
	SELECT hashint4(i) >> 13, 's' || i % 10 FROM generate_series(lo, hi) i
$$;
INSERT INTO merging SELECT * FROM merging_rows(1, 4000);
CREATE INDEX merging_i ON merging USING hybrid (k);
INSERT INTO merging SELECT * FROM merging_rows(4001, 5000);
SET hybridindex.merge_floor = 1;
ALTER INDEX merging_i SET (merge_ratio = 1000);
INSERT INTO merging SELECT * FROM merging_rows(5001, 5050);
INSERT INTO states VALUES ('merging_i', true, 'merge_running AND static_entries > 4000 AND dynamic_entries > 200');
INSERT INTO queries VALUES
	('merging_i', 'SELECT k FROM merging ORDER BY k', 'order order_only'),
	('merging_i', 'SELECT k FROM merging WHERE k < 0', 'index only bitmap'),
	('merging_i', 'SELECT count(a.s) FROM merging a JOIN merging_rows(1, 6000) b USING (k)', 'nest');

-- ---- two levels, and ranges of the newer one on their way to the older one ----

CREATE TABLE levels (k int, s text COLLATE "C");
CREATE FUNCTION levels_rows(lo int, hi int) RETURNS SETOF levels LANGUAGE sql AS $$
	SELECT hashint4(i), repeat(md5((i % 10)::text), 3) FROM generate_series(lo, hi) i
$$;
INSERT INTO levels SELECT * FROM levels_rows(1, 600);
CREATE UNIQUE INDEX levels_i ON levels USING hybrid (k, s) WITH (merge_ratio = 1000);
SET hybridindex.merge_step_pages = 64;
INSERT INTO levels SELECT * FROM levels_rows(601, 700);
SET hybridindex.merge_step_pages = 1;
DO $$
BEGIN
	FOR i IN 0 .. 17 LOOP
		INSERT INTO levels SELECT * FROM levels_rows(701 + i * 40, 740 + i * 40);
	END LOOP;
END $$;
INSERT INTO states VALUES ('levels_i', true, 'levels = 2 AND upper_entries > 0 AND moved_entries > 0 AND NOT merge_running AND
	pg_read_binary_file(pg_relation_filepath(''levels_i''), 76, 2) IN (''\x0100'', ''\x0001'')');	-- the pass of the metapage, in either byte order
INSERT INTO queries VALUES
	('levels_i', 'SELECT k, s FROM levels ORDER BY k, s', 'order order_only'),
	('levels_i', 'SELECT k, s FROM levels WHERE k < 0', 'index only bitmap'),
	('levels_i', 'SELECT count(*) FROM levels a JOIN levels_rows(1, 2000) b USING (k, s)', 'nest');
CHECKPOINT;
