--
-- Conditions on later columns of an index, with earlier ones free or in a range.
-- Scans skip what the conditions exclude, and find what a sequential scan finds.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
-- A table for each index, so that there is no choice between indexes.
CREATE TABLE sk_shape (name text, columns text, sorted text, options text);
INSERT INTO sk_shape VALUES
	('sk_ints', 'a,b,c', 'a,b,c', ''),
	('sk_mixed', 'a,b,c', 'a DESC NULLS LAST,b NULLS FIRST,c DESC', ''),
	('sk_texts', 't,a,u', 't,a DESC,u', 'WITH (filter = surf)'),
	('sk_procs', 'n,t,b', 'n DESC,t DESC,b', ''),
	('sk_floats', 'f,i,a,n', 'f DESC,i,a NULLS FIRST,n', ''),
	('sk_unique', 'b,k', 'b,k DESC', ''),
	('sk_part', 'c,a', 'c NULLS FIRST,a', 'INCLUDE (k)'),
	('sk_four', 'a,c,b,k', 'a,c DESC,b,k', 'WITH (filter = surf)');
CREATE FUNCTION sk_hash(seed int, i bigint, range int) RETURNS int LANGUAGE sql IMMUTABLE AS $$
	SELECT ((hashint8extended(i, seed) & 2147483647) % range)::int
$$;
CREATE FUNCTION sk_rows(seed int, n int) RETURNS TABLE (a int, b int8, c int2, t text, u text, n numeric, f float8, i interval, k int) LANGUAGE sql AS $$
	SELECT nullif(sk_hash(seed, g, 7), 3) * 10, nullif(sk_hash(seed + 1, g, 40), 0), nullif(sk_hash(seed + 2, g, 5), 4),
		nullif(substr('aabbabbbaa', 1 + sk_hash(seed + 3, g, 8), sk_hash(seed + 4, g, 3)), 'ab'), md5(sk_hash(seed + 5, g, 30)::text),
		nullif(sk_hash(seed + 6, g, 9), 2) / 2.0, nullif(sk_hash(seed + 7, g, 5) - 2, 2) * CASE sk_hash(seed + 8, g, 2) WHEN 0 THEN 1 ELSE -1 END * 0.5::float8,
		sk_hash(seed + 9, g, 4) * interval '12 hours', seed * 100000 + g
	FROM generate_series(1, n) g
$$;
CREATE FUNCTION sk_fill(seed int, n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	s	sk_shape;
BEGIN
	FOR s IN SELECT * FROM sk_shape LOOP
		EXECUTE format('INSERT INTO %I SELECT * FROM sk_rows(%s, %s)', s.name, seed, n);
	END LOOP;
END $$;
DO $$
DECLARE
	s	sk_shape;
BEGIN
	FOR s IN SELECT * FROM sk_shape LOOP
		EXECUTE format('CREATE TABLE %I (a int, b int8, c int2, t text COLLATE "C", u text COLLATE "C", n numeric, f float8, i interval, k int) WITH (autovacuum_enabled = off)', s.name);
		EXECUTE format('CREATE %s INDEX %I ON %I USING hybrid (%s) %s', CASE s.name WHEN 'sk_unique' THEN 'UNIQUE' END, s.name || '_idx', s.name, s.sorted, s.options);
	END LOOP;
	PERFORM sk_fill(10, 3000);
	FOR s IN SELECT * FROM sk_shape LOOP
		PERFORM hybrid_merge((s.name || '_idx')::regclass);
		EXECUTE format('ANALYZE %I', s.name);
	END LOOP;
END $$;

-- a constant like a column's values, or beside them
CREATE FUNCTION sk_value(col text, seed int, i int) RETURNS text LANGUAGE sql AS $$
	SELECT CASE col WHEN 'a' THEN (sk_hash(seed, i, 17) * 5 - 10)::text
		WHEN 'b' THEN (sk_hash(seed, i, 46) - 3)::text
		WHEN 'c' THEN (sk_hash(seed, i, 7) - 1)::text
		WHEN 't' THEN quote_literal(substr('aabbabbbaa', 1 + sk_hash(seed, i, 8), sk_hash(seed + 1, i, 4)))
		WHEN 'u' THEN quote_literal(md5(sk_hash(seed, i, 34)::text))
		WHEN 'n' THEN (sk_hash(seed, i, 24) / 4.0 - 1)::numeric(9, 2)::text
		WHEN 'f' THEN quote_literal((sk_hash(seed, i, 14) / 4.0 - 1.5)::float8) || '::float8'
		WHEN 'i' THEN quote_literal(sk_hash(seed, i, 7) * interval '8 hours') || '::interval'
		ELSE (1000000 + sk_hash(seed, i, 4000))::text END
$$;
CREATE FUNCTION sk_condition(col text, seed int, i int) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN x < 5 THEN format('%s = %s', col, v) WHEN x = 5 THEN format('%s >= %s', col, v)
		WHEN x = 6 THEN format('%s < %s', col, v) WHEN x = 7 THEN format('%s > %s AND %1$s <= %s', col, v, w)
		WHEN x = 8 THEN format('%s BETWEEN %s AND %s', col, v, w) WHEN x = 9 THEN col || ' IS NULL' WHEN x = 10 THEN col || ' IS NOT NULL'
		WHEN x < 14 THEN format('%s IN (%s, %s, %s)', col, v, w, sk_value(col, seed + 9, i)) END
	FROM sk_hash(seed, i, 32) x, sk_value(col, seed + 5, i) v, sk_value(col, seed + 7, i) w
$$;
CREATE FUNCTION sk_reverse(sorted text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(split_part(c, ' ', 1) || CASE WHEN c LIKE '% DESC%' THEN ' ASC' ELSE ' DESC' END ||
		CASE WHEN c LIKE '%NULLS FIRST' OR (c LIKE '%DESC' AND c NOT LIKE '%NULLS%') THEN ' NULLS LAST' ELSE ' NULLS FIRST' END, ', ' ORDER BY o)
	FROM unnest(string_to_array(sorted, ',')) WITH ORDINALITY x(c, o)
$$;
CREATE FUNCTION sk_queries(seed int, queries int) RETURNS TABLE (name text, n int, answers boolean, ok boolean) LANGUAGE plpgsql AS $$
DECLARE
	s		sk_shape;
	cols	text[];
	conds	text;
	query	text;
	found	bigint := 0;
	rows	bigint;
BEGIN
	FOR s IN SELECT * FROM sk_shape LOOP
		cols := string_to_array(s.columns, ',');
		name := s.name;
		n := 0;
		ok := true;
		answers := false;
		FOR i IN 1 .. queries LOOP
			conds := coalesce((SELECT string_agg(c, ' AND ') FROM unnest(cols) WITH ORDINALITY x(col, o), sk_condition(col, seed + 20 * o::int, i) c),
				format('%s = %s', cols[2], sk_value(cols[2], seed, i)));
			IF i % 6 = 5 THEN
				conds := format('%s AND (%s, %s) %s (%s, %s)', conds, cols[1], cols[2], (array['<', '<=', '>', '>='])[1 + i % 4], sk_value(cols[1], seed + 1, i), sk_value(cols[2], seed + 1, i));
			END IF;
			query := format('SELECT %s FROM %I WHERE %s', replace(s.columns, 'f', 'f + 0'), s.name, conds);
			ok := ok AND hyb_same(query, CASE i % 3 WHEN 0 THEN 'bitmap' WHEN 1 THEN 'index' ELSE 'only' END);
			ok := ok AND hyb_same(format('%s ORDER BY %s', query, CASE i % 2 WHEN 0 THEN s.sorted ELSE sk_reverse(s.sorted) END),
				CASE i % 5 WHEN 0 THEN 'order_only' ELSE 'order' END);
			n := n + 1;
			IF NOT answers THEN
				EXECUTE format('SELECT count(*) FROM (%s) x', query) INTO rows;
				answers := rows BETWEEN 1 AND 1500;
			END IF;
		END LOOP;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM sk_queries(1000, 25);
-- with entries in the log, and dead ones
SELECT sk_fill(20, 700);
DELETE FROM sk_ints WHERE b % 5 = 2;
DELETE FROM sk_mixed WHERE b % 5 = 2;
DELETE FROM sk_four WHERE b % 5 = 2;
SELECT * FROM sk_queries(2000, 25);
-- all of it in the log, then in leaves with tombstones
DELETE FROM sk_ints WHERE k < 1000000 + 1500;
DELETE FROM sk_texts WHERE k < 1000000 + 1500;
VACUUM sk_ints, sk_mixed, sk_texts;
SELECT * FROM sk_queries(3000, 10);
TRUNCATE sk_ints, sk_mixed, sk_texts, sk_procs, sk_floats, sk_unique, sk_part, sk_four;
SELECT sk_fill(30, 1500);
SELECT * FROM sk_queries(4000, 10);

-- Few leaves are read: one, or two, for each value of the free columns.
CREATE TABLE sk_wide AS SELECT g % 10 AS a, ('v' || g % 5) COLLATE "C" AS t, g % 4 AS b, md5((g / 10)::text) COLLATE "C" AS u FROM generate_series(1, 40000) g;
CREATE INDEX sk_wide_au ON sk_wide USING hybrid (a, u);
CREATE INDEX sk_wide_tu ON sk_wide USING hybrid (t DESC, u DESC);
CREATE INDEX sk_wide_tbu ON sk_wide USING hybrid (t, b, u);
VACUUM ANALYZE sk_wide;
CREATE FUNCTION sk_blocks(query text, node text) RETURNS int LANGUAGE plpgsql SET enable_seqscan = off SET enable_sort = off SET enable_incremental_sort = off AS $$
DECLARE
	p		json;
BEGIN
	PERFORM set_config(CASE node WHEN 'Index Only Scan' THEN 'enable_bitmapscan' ELSE 'enable_indexscan' END, 'off', true);
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO p;
	RETURN jsonb_path_query_first(p::jsonb, '$.** ? (@."Node Type" == $n)."Shared Hit Blocks"', jsonb_build_object('n', node));
END $$;
CREATE FUNCTION sk_few() RETURNS TABLE (q text, few boolean) LANGUAGE plpgsql AS $$
DECLARE
	blocks	int;
	most	int;
BEGIN
	FOR q, most IN VALUES ('SELECT a, u FROM sk_wide WHERE u = md5(''77'')', 45),
		('SELECT a, u FROM sk_wide WHERE u = md5(''77'') AND a BETWEEN 3 AND 6', 25),
		('SELECT a, u FROM sk_wide WHERE u IN (md5(''77''), md5(''3001''), md5(''1234''))', 105),
		('SELECT a, u FROM sk_wide WHERE u < ''02'' ORDER BY a DESC, u DESC', 60),
		('SELECT t, u FROM sk_wide WHERE u = md5(''77'') ORDER BY t DESC', 45),
		('SELECT t, u FROM sk_wide WHERE u = md5(''77'') ORDER BY t', 45),
		('SELECT t, b, u FROM sk_wide WHERE u = md5(''77'') AND t >= ''v2'' ORDER BY t, b, u', 90)
	LOOP
		blocks := sk_blocks(q, CASE WHEN q LIKE '%ORDER%' THEN 'Index Only Scan' ELSE 'Bitmap Index Scan' END);
		few := blocks <= most;
		IF few IS NOT TRUE THEN
			RAISE WARNING 'blocks: %', blocks;
		END IF;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM sk_few();
INSERT INTO sk_wide SELECT g % 10, 'v' || g % 5, g % 4, md5((g / 10)::text) FROM generate_series(1, 3000) g;
SELECT hyb_same('SELECT a, u FROM sk_wide WHERE u IN (md5(''77''), md5(''3001''))', 'index bitmap'),
	hyb_same('SELECT t, b, u FROM sk_wide WHERE u > ''f8'' AND t >= ''v2'' ORDER BY t DESC, b DESC, u DESC', 'order');

-- Scans jump backward, too, through arrays with few elements that exist.
CREATE TABLE sk_jump AS SELECT g * 100 AS a, g % 7 AS b, (g * 100)::text COLLATE "C" AS t FROM generate_series(1, 60) g;
CREATE INDEX ON sk_jump USING hybrid (a, b);
CREATE INDEX ON sk_jump USING hybrid (t DESC, b);
INSERT INTO sk_jump SELECT g * 100 + 50, g % 7, (g * 100 + 50)::text FROM generate_series(1, 60) g;
-- of these values there is one row more, above or below the one that is found
INSERT INTO sk_jump SELECT a, b + 10, t || 'x' FROM sk_jump WHERE b IN (1, 2);
VACUUM ANALYZE sk_jump;
SELECT q, sk_blocks(q, 'Index Only Scan') < 900 AS few, hyb_same(q, 'order_only') FROM (VALUES
	('SELECT a, b FROM sk_jump WHERE a = ANY (array(SELECT generate_series(-3000, 9000))) AND b > 2 ORDER BY a DESC'),
	('SELECT a, b FROM sk_jump WHERE a = ANY (array(SELECT generate_series(-3000, 9000))) AND b > 2 ORDER BY a'),
	('SELECT a, b FROM sk_jump WHERE a = ANY (array(SELECT generate_series(-3000, 9000))) AND b = 1 ORDER BY a DESC'),
	('SELECT a, b FROM sk_jump WHERE a = ANY (array(SELECT generate_series(-3000, 9000))) AND b = 12 ORDER BY a'),
	('SELECT t FROM sk_jump WHERE t = ANY (array(SELECT g::text FROM generate_series(-3000, 9000) g)) ORDER BY t')) v(q);

-- The planner knows: such scans are chosen where they pay, and cost what the
-- searches take.
CREATE TABLE sk_plan AS SELECT g % 8 AS x, g % 5000 AS a, g AS id, g % 3 AS y, 'w' || g % 20 AS t FROM generate_series(1, 60000) g;
CREATE INDEX ON sk_plan USING hybrid (x, a, id);
CREATE INDEX ON sk_plan USING hybrid (id, y);
CREATE INDEX ON sk_plan USING hybrid (lower(t), (a + 1));
VACUUM ANALYZE sk_plan;
CREATE FUNCTION sk_cost(query text, OUT node text, OUT cost float8) LANGUAGE plpgsql AS $$
DECLARE
	p		json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO p;
	node := p -> 0 -> 'Plan' ->> 'Node Type';
	cost := p -> 0 -> 'Plan' ->> 'Total Cost';
END $$;
SELECT q, node, cost BETWEEN least AND most AS right FROM (VALUES
	('SELECT x FROM sk_plan WHERE a = 500', 15, 60),
	('SELECT x FROM sk_plan WHERE a IN (500, 600, 700)', 30, 160),
	('SELECT x FROM sk_plan WHERE x BETWEEN 2 AND 4 AND a = 500', 8, 30),
	('SELECT x FROM sk_plan WHERE x > 2 AND a BETWEEN 500 AND 502 AND id < 30000', 10, 100),
	('SELECT x, a FROM sk_plan WHERE a = 500 ORDER BY x DESC, a DESC LIMIT 1', 1, 20),
	('SELECT id FROM sk_plan WHERE y = 2 AND id BETWEEN 100 AND 300', 5, 15),
	('SELECT id FROM sk_plan WHERE y = 2 ORDER BY id', 350, 1500),
	('SELECT sum(id) FROM sk_plan WHERE lower(t) > ''w5'' AND a + 1 = 77', 5, 500)) v(q, least, most), sk_cost(q);
-- the whole index would be read
SELECT node FROM sk_cost('SELECT id, t FROM sk_plan WHERE y >= 0');

-- A cursor turns round, and goes on while merges come between.
CREATE TABLE sk_turn (a int, t text COLLATE "C", b int) WITH (autovacuum_enabled = off);
INSERT INTO sk_turn SELECT g % 9, md5((g % 8)::text), g % 300 FROM generate_series(1, 20000) g;
CREATE INDEX ON sk_turn USING hybrid (a, t, b);
INSERT INTO sk_turn SELECT g % 9, md5((g % 8)::text), g % 300 FROM generate_series(20001, 22000) g;
ANALYZE sk_turn;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION sk_fetches(query text, seed int, n int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	want	text[] := (hyb_rows(query, 'seq')).rows;
	c		refcursor;
	got		record;
	at		int := 0;
	up		boolean;
BEGIN
	OPEN c SCROLL FOR EXECUTE query;
	FOR i IN 1 .. n LOOP
		up := sk_hash(seed, i / 12, 5) > 1;
		IF up THEN
			FETCH NEXT FROM c INTO got;
			at := least(at + 1, cardinality(want) + 1);
		ELSE
			FETCH PRIOR FROM c INTO got;
			at := greatest(at - 1, 0);
		END IF;
		IF got::text IS DISTINCT FROM want[at] AND NOT (want[at] IS NULL AND got IS NULL) THEN
			RAISE WARNING 'step % at %: % instead of %', i, at, got, want[at];
			RETURN false;
		END IF;
		CONTINUE WHEN i % 50 <> 0;
		INSERT INTO sk_turn SELECT g % 9, md5((g % 8)::text), g % 300 FROM generate_series(i, i + 400) g;
		IF i % 200 = 0 THEN
			PERFORM hybrid_merge('sk_turn_a_t_b_idx');
		END IF;
	END LOOP;
	CLOSE c;
	RETURN true;
END $$;
SELECT sk_fetches('SELECT a, t, b FROM sk_turn WHERE b = 70 ORDER BY a, t, b', 1, 1000);
SELECT sk_fetches('SELECT a, t, b FROM sk_turn WHERE a BETWEEN 2 AND 7 AND b IN (3, 70, 71, 299) ORDER BY a DESC, t DESC, b DESC', 2, 1000);
SELECT sk_fetches('SELECT a, t, b FROM sk_turn WHERE t > ''c'' AND b > 290 ORDER BY a, t, b', 3, 1000);
SELECT hyb_check('sk_turn'), hyb_check('sk_wide');

-- The first and the last value of types, beyond which there is none to go to.
-- The rows that are found lie in the middle of many leaves of each value, so
-- scans go past both ends of each value from a leaf that is not the last one.
CREATE FUNCTION sk_ends(type text, first text, last text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	same	boolean := true;
	sorted	text;
	o		text;
BEGIN
	EXECUTE format('CREATE TABLE sk_end AS SELECT v, n %% 2 AS k, n, md5(n::text) || md5((-n)::text) AS u FROM unnest(%L::%s[]) v, generate_series(1, 1200) n', array[first, last, NULL], type);
	FOREACH sorted IN ARRAY array['v,n', 'k,v DESC,n'] LOOP
		EXECUTE 'CREATE INDEX sk_end_i ON sk_end USING hybrid (' || sorted || ') INCLUDE (u)';
		same := same AND hyb_same('SELECT v, n FROM sk_end WHERE n IN (600, 607)');
		FOREACH o IN ARRAY array[sorted, sk_reverse(sorted)] LOOP
			same := same AND hyb_same('SELECT v, n FROM sk_end WHERE n IN (600, 607) ORDER BY ' || o, 'order order_only');
		END LOOP;
		DROP INDEX sk_end_i;
	END LOOP;
	DROP TABLE sk_end;
	RETURN same;
END $$;
SELECT type, sk_ends(type, first, last) AS same FROM (VALUES ('bool', 'f', 't'), ('"char"', '\000', '\377'), ('"char"', '\200', '\177'), ('int2', '-32768', '32767'), ('int4', '-2147483648', '2147483647'),
	('int8', '-9223372036854775808', '9223372036854775807'), ('oid', '0', '4294967295'), ('money', '-92233720368547758.08', '92233720368547758.07'), ('pg_lsn', '0/0', 'FFFFFFFF/FFFFFFFF'),
	('xid8', '0', '18446744073709551615'), ('tid', '(0,0)', '(4294967295,65535)'), ('macaddr', '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff'), ('macaddr8', '00:00:00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff:ff:ff'),
	('float4', '-infinity', 'NaN'), ('float8', '-infinity', 'NaN'), ('date', '-infinity', 'infinity'), ('time', '00:00', '24:00'), ('timestamp', '-infinity', 'infinity'), ('timestamptz', '-infinity', 'infinity'),
	('uuid', '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'), ('bytea', '\x', '\xffffffff')) v(type, first, last);

DROP TABLE sk_shape, sk_ints, sk_mixed, sk_texts, sk_procs, sk_floats, sk_unique, sk_part, sk_four, sk_wide, sk_turn, sk_jump, sk_plan;
DROP FUNCTION sk_hash, sk_rows, sk_fill, sk_value, sk_condition, sk_reverse, sk_queries, sk_blocks, sk_few, sk_cost, sk_fetches, sk_ends;
