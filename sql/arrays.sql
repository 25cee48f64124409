--
-- Array keys: = ANY with NULLs, duplicates and several arrays, inequalities
-- with ANY, both directions.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
CREATE TABLE ar (a int, b int8, t text COLLATE "C", n numeric);
CREATE FUNCTION ar_fill(n int, seed int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO ar SELECT nullif(h % 50, 0), h / 64 % 40, 'k' || h / 4096 % 30, nullif((h / 65536 % 20) / 2.0, 0)
	FROM generate_series(1, n) i, LATERAL (SELECT hashint8extended(i, seed) & 2147483647) x(h)
$$;
SELECT ar_fill(2500, 1);
CREATE INDEX ar_ab ON ar USING hybrid (a, b);
CREATE INDEX ar_ta ON ar USING hybrid (t DESC, a);
CREATE INDEX ar_n ON ar USING hybrid (n);
ANALYZE ar;
CREATE FUNCTION ar_queries() RETURNS TABLE (n bigint, ok boolean) LANGUAGE sql AS $$
	SELECT count(*), bool_and(hyb_same('SELECT a, b, t, n FROM ar WHERE ' || q)) FROM unnest(array[
		'a = ANY (''{3,1,2}'')',
		'a = ANY (''{3,3,NULL,3,1,NULL}'')',
		'a = ANY (''{NULL}'') AND b > 3',
		'a = ANY ((SELECT ''{}'')::int[])',
		'a = ANY ((SELECT NULL)::int[])',
		'a = ANY (''{-5,0,60,1000000}'')',
		'a = ANY (''{5,-5,49,48,47,50,51}'')',
		'a = ANY (array(SELECT generate_series(-10, 100)))',
		'a = 7 AND b = ANY (''{9,8,NULL,7,7,39,40}'')',
		'a = ANY (''{1,5,9}'') AND b = ANY (''{2,1,30}'')',
		'a = ANY (''{1,5,9}'') AND b > 35',
		'a = ANY (''{1,5,9}'') AND b BETWEEN 10 AND 12',
		'a > 40 AND b = ANY (''{1,2,3}'')',
		'a IS NULL AND b = ANY (''{1,2,3,4,5}'')',
		'a = ANY (''{1,2,3,4}'') AND a = ANY (''{3,4,5}'')',
		'a = ANY (''{1,2,3,4}'') AND a > 2',
		'a = ANY (''{1,2,3,4,5}'') AND a < 4 AND b = ANY (''{3}'')',
		'a < ANY (''{3,NULL,5}'')',
		'a >= ANY (''{48,NULL,46}'')',
		'a > ANY (''{NULL}'') AND b = 3',
		'a = ANY (''{4,3000000000}''::int8[])',
		'b = ANY (''{5,6}''::int2[]) AND a = ANY (''{1,-1,7}''::int2[])',
		't = ANY (''{k3,k1,zz,"",k11,NULL}'')',
		't = ANY (''{k3,k1,k22}'') AND a = ANY (''{9,1}'')',
		't = ANY (''{k3,k1,k22}'') AND a IS NULL',
		'n = ANY (''{1.0,1.00,2,NULL,9.5,100}'')',
		'n = ANY (''{1.50,2.5}'') AND n > 2']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'order')) FROM unnest(array[
		'SELECT a FROM ar WHERE a = ANY (''{9,3,NULL,3,30,1}'') ORDER BY a',
		'SELECT a FROM ar WHERE a = ANY (''{9,3,NULL,3,30,1}'') ORDER BY a DESC',
		'SELECT a FROM ar WHERE a = ANY (''{9,3,NULL,3,30,1}'') AND b > 20 ORDER BY a DESC LIMIT 30',
		'SELECT t FROM ar WHERE t = ANY (''{k3,k1,zz,"",k11,NULL}'') ORDER BY t',
		'SELECT t FROM ar WHERE t = ANY (''{k3,k1,zz,"",k11,NULL}'') ORDER BY t DESC',
		'SELECT n FROM ar WHERE n = ANY (''{3,1,2.5,1.0}'') ORDER BY n DESC']) q
	UNION ALL
	SELECT count(*), bool_and(hyb_same(q, 'nest')) FROM unnest(array[
		'SELECT v.x, ar.b FROM (VALUES (''{1,2}''::int[]), (NULL), (''{}''), (''{NULL,5}''), (''{7,7}'')) v(x) JOIN ar ON ar.a = ANY (v.x)',
		'SELECT v.x, ar.b FROM generate_series(0, 60, 3) v(x) JOIN ar ON ar.a = ANY (array[v.x, v.x + 1, NULL]) AND ar.b = v.x']) q
$$;
SELECT * FROM ar_queries();
SELECT ar_fill(1500, 2);
DELETE FROM ar WHERE b % 7 = 3;
SELECT * FROM ar_queries();
SELECT hybrid_merge('ar_ab') > 0, hybrid_merge('ar_ta') > 0, hybrid_merge('ar_n') > 0;
SELECT * FROM ar_queries();
SELECT hyb_check('ar');

-- a merge join goes back to a mark in the range of another array element
CREATE TABLE ar_l (a int);
CREATE TABLE ar_r (a int);
INSERT INTO ar_l SELECT i % 6 FROM generate_series(1, 30) i;
INSERT INTO ar_r SELECT i % 6 FROM generate_series(1, 60) i;
CREATE INDEX ON ar_l USING hybrid (a);
CREATE INDEX ar_r_a ON ar_r USING hybrid (a);
INSERT INTO ar_r SELECT i % 6 FROM generate_series(1, 60) i;
ANALYZE ar_l;
ANALYZE ar_r;
SELECT count(*), hyb_same('SELECT l.a, r.ctid FROM ar_l l JOIN ar_r r ON l.a = r.a WHERE l.a = ANY (''{1,2,4}'') AND r.a = ANY (''{1,2,4}'')', 'merge')
FROM ar_l l JOIN ar_r r ON l.a = r.a WHERE l.a = ANY ('{1,2,4}');

-- an array's cost is that of its ranges, as btree's is
CREATE TABLE ar_cost (h int, b int);
INSERT INTO ar_cost SELECT i % 100, i % 100 FROM generate_series(1, 20000) i;
CREATE INDEX ON ar_cost USING hybrid (h);
CREATE INDEX ON ar_cost (b);
VACUUM ANALYZE ar_cost;
CREATE FUNCTION ar_cost(query text) RETURNS float8 LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	plan	json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN (plan -> 0 -> 'Plan' ->> 'Total Cost')::float8;
END $$;
SELECT n, ar_cost(format('SELECT h FROM ar_cost WHERE h = ANY (%L)', list)) /
	ar_cost(format('SELECT b FROM ar_cost WHERE b = ANY (%L)', list)) BETWEEN 0.3 AND 1.5 AS like_btree
FROM unnest('{1,5,50}'::int[]) n, LATERAL (SELECT array(SELECT generate_series(1, n))) x(list);
DROP TABLE ar_l, ar_r, ar_cost;
DROP FUNCTION ar_cost;

-- a scrollable cursor turns round in the middle of the arrays
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE ar_small (a int);
INSERT INTO ar_small SELECT i % 10 FROM generate_series(1, 20) i;
CREATE INDEX ON ar_small USING hybrid (a);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a FROM ar_small WHERE a = ANY ('{7,3,5,NULL,3}') ORDER BY a;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH 4 FROM c;
FETCH BACKWARD 10 FROM c;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
COMMIT;

-- and goes back through two of them
CREATE TABLE ar_two (a int, b int);
INSERT INTO ar_two SELECT a, b FROM generate_series(1, 3) a, generate_series(1, 4) b;
CREATE INDEX ON ar_two USING hybrid (a, b);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b FROM ar_two WHERE a = ANY ('{3,1}') AND b = ANY ('{4,1,3}');
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
COMMIT;

-- Instants as constants and elements for columns without a time zone: around changes
-- of the clock one may equal no local time, or two.  What is read lies between the
-- least and the greatest element, or in the hours about the constant.
CREATE TABLE ar_zone (t timestamp, d date, i int);
INSERT INTO ar_zone SELECT t, t::date, 0 FROM unnest('{2011-12-30,2022-03-13,2022-03-27,2022-10-30,2022-11-06,2022-09-11,2022-04-03,1994-12-31}'::timestamp[]) day, generate_series(day - interval '1 day', day + interval '2 days', '30 minutes') t;
CREATE INDEX ar_zone_t ON ar_zone USING hybrid (t);
CREATE INDEX ar_zone_d ON ar_zone USING hybrid (d DESC, i);
CREATE TABLE ar_wide AS SELECT t, t::date AS d, i FROM generate_series(1, 30000) i, LATERAL (SELECT timestamp '2000-01-01' + (hashint8extended(i, 5) & 1048575) * interval '15 minutes') x(t);
CREATE INDEX ar_wide_t ON ar_wide USING hybrid (t);
CREATE INDEX ar_wide_d ON ar_wide USING hybrid (d DESC, i);
ANALYZE ar_zone, ar_wide;
CREATE FUNCTION ar_blocks(query text) RETURNS int LANGUAGE plpgsql SET enable_bitmapscan = on SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
DECLARE
	p		json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO p;
	RETURN jsonb_path_query_first(p::jsonb, '$.** ? (@."Node Type" == "Bitmap Index Scan")."Shared Hit Blocks"');
END $$;
CREATE FUNCTION ar_instants(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT quote_literal(array_agg(t)) || '::timestamptz[]' FROM generate_series(at - interval '1 day', at + interval '1 day', '30 minutes') t
$$;
CREATE FUNCTION ar_changes() RETURNS TABLE (zone text, at timestamptz, ok boolean) LANGUAGE plpgsql AS $$
BEGIN
	FOR zone, at IN VALUES ('UTC', timestamptz '2022-03-27 01:00Z'), ('Europe/Berlin', '2022-03-27 01:00Z'), ('Europe/Berlin', '2022-10-30 01:00Z'),
		('America/New_York', '2022-03-13 07:00Z'), ('America/New_York', '2022-11-06 06:00Z'), ('America/Santiago', '2022-04-03 03:00Z'), ('America/Santiago', '2022-09-11 04:00Z'),
		('Australia/Lord_Howe', '2022-04-02 15:00Z'), ('Pacific/Apia', '2011-12-30 10:00Z'), ('Pacific/Kiritimati', '1994-12-31 10:40Z'), ('Africa/Casablanca', '2022-03-27 02:00Z')
	LOOP
		PERFORM set_config('timezone', zone, true);
		ok := hyb_same('SELECT t, i FROM ar_zone WHERE t = ANY (' || ar_instants(at) || ')', 'index') AND
			hyb_same('SELECT d, i FROM ar_zone WHERE d = ANY (' || ar_instants(at) || ') AND i >= 0', 'index') AND
			hyb_same('SELECT t FROM ar_zone WHERE t < ANY (' || ar_instants(at) || ') AND t >= ANY (' || ar_instants(at - interval '3 days') || ')', 'index') AND
			hyb_same(format('SELECT d, i FROM ar_zone WHERE (d, i) <= (%L::timestamptz, 0)', at), 'index bitmap') AND
			hyb_same('SELECT t, x FROM unnest(' || ar_instants(at) || ') x, LATERAL (SELECT t FROM ar_zone WHERE t = x OFFSET 0) y', 'index') AND
			hyb_same('SELECT d, x FROM unnest(' || ar_instants(at) || ') x, LATERAL (SELECT d FROM ar_zone WHERE d = x OFFSET 0) y', 'index');
		RETURN NEXT;
	END LOOP;
END $$;
SELECT zone, count(*), bool_and(ok) FROM ar_changes() GROUP BY zone ORDER BY zone COLLATE "C";
SET timezone = 'Europe/Berlin';
-- two local times, one, none
SELECT hyb_same(format('SELECT t FROM ar_zone WHERE t = ANY (%L::timestamptz[])', v), 'index'), (SELECT array_agg(t ORDER BY t) FROM ar_zone WHERE t = ANY (v)) AS times
FROM (VALUES ('{2022-03-27 01:00Z}'::timestamptz[]), ('{2022-10-30 01:00Z}'), ('{2022-10-30 00:00Z}')) x(v);
SELECT q, b < all_of_it / 3 AS few FROM (SELECT ar_blocks($q$SELECT i FROM ar_wide WHERE t > '-infinity'$q$)) x(all_of_it),
	unnest(array[$q$t = ANY ('{2001-05-05 12:00Z,2002-07-01 00:00Z,2029-01-01 00:00Z}'::timestamptz[])$q$,
		$q$t = ANY ('{2022-01-05 12:00Z,2022-03-27 01:00Z,2022-10-30 01:00Z}'::timestamptz[])$q$,
		$q$t = timestamptz '2022-10-30 01:00Z'$q$,
		$q$d = ANY ('{2001-05-05 22:00Z,2022-03-27 01:00Z,2029-01-01 00:00Z}'::timestamptz[])$q$,
		$q$d = ANY ('{2022-01-05 23:00Z,2022-03-27 01:00Z,2022-10-29 22:00Z}'::timestamptz[])$q$,
		$q$d = timestamptz '2022-10-29 22:00Z'$q$,
		$q$t < ANY ('{2000-03-26 00:30Z,2000-03-01 12:00Z}'::timestamptz[])$q$]) q, ar_blocks('SELECT i FROM ar_wide WHERE ' || q) b;
-- the first instants have no local time west of Greenwich
SET timezone = 'America/New_York';
INSERT INTO ar_zone VALUES ('-infinity', '-infinity', 1), ('4714-11-24 00:00 BC', '4714-11-24 BC', 1);
SELECT op, hyb_same(format('SELECT t FROM ar_zone WHERE t %s timestamptz ''4714-11-24 00:00Z BC''', op), 'index'),
	hyb_same(format('SELECT d FROM ar_zone WHERE d %s timestamptz ''4714-11-24 00:00Z BC''', op), 'index')
FROM unnest('{<,<=,=,>=,>}'::text[]) op;
RESET timezone;

-- arrays of whose combinations few exist: the ranges between are not read
CREATE TABLE ar_jump (a int, b int8, c numeric);
INSERT INTO ar_jump SELECT nullif(i * 37 % 5003, 37), i * 91 % 499, i % 30 / 2.0 FROM generate_series(1, 3000) i;
CREATE INDEX ar_jump_ab ON ar_jump USING hybrid (a, b);
CREATE INDEX ar_jump_bca ON ar_jump USING hybrid (b DESC, c, a DESC NULLS LAST);
INSERT INTO ar_jump SELECT i * 41 % 5003, i * 97 % 499, i % 20 / 2.0 FROM generate_series(1, 500) i;
VACUUM ANALYZE ar_jump;
CREATE FUNCTION ar_some(last int, step int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT quote_literal(array_agg(i)) FROM generate_series(-20, last, step) i
$$;
CREATE FUNCTION ar_jumps() RETURNS TABLE (rows bigint, ok boolean) LANGUAGE plpgsql AS $$
DECLARE
	q		text;
	o		text;
BEGIN
	FOREACH q IN ARRAY array[
		'a = ANY (' || ar_some(6000, 17) || ') AND b = ANY (' || ar_some(600, 5) || ')',
		'a = ANY (' || ar_some(6000, 11) || ') AND b BETWEEN 100 AND 110',
		'a = ANY (' || ar_some(40, 1) || ') AND b > 490',
		'a = 74 AND b = ANY (' || ar_some(600, 2) || ')',
		'a IS NULL AND b = ANY (' || ar_some(600, 1) || ')',
		'b = ANY (' || ar_some(300, 29) || ') AND c = ANY (' || ar_some(20, 5) || ') AND a = ANY (' || ar_some(6000, 20) || ')',
		'b = ANY (' || ar_some(600, 1) || ') AND c = ANY (''{4,5,6,7,8,9}'')',
		'b = ANY (' || ar_some(600, 13) || ') AND c = 3.5 AND a = ANY (' || ar_some(6000, 9) || ')',
		'b = ANY (' || ar_some(600, 5) || ') AND c = ANY (''{0.5,1.5,100}'') AND a IS NULL']
	LOOP
		EXECUTE 'SELECT count(*) FROM ar_jump WHERE ' || q INTO rows;
		ok := hyb_same('SELECT * FROM ar_jump WHERE ' || q);
		FOREACH o IN ARRAY CASE WHEN q LIKE 'a%' THEN array['a, b', 'a DESC, b DESC'] ELSE array['b DESC, c, a DESC NULLS LAST', 'b, c DESC, a NULLS FIRST'] END
		LOOP
			ok := ok AND hyb_same(format('SELECT * FROM ar_jump WHERE %s ORDER BY %s', q, o), 'order');
		END LOOP;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM ar_jumps();
SELECT ar_blocks('SELECT * FROM ar_jump WHERE a = ANY (' || ar_some(6000, 7) || ') AND b = ANY (' || ar_some(600, 3) || ')') < 3500 AS few;
SELECT hybrid_merge('ar_jump_ab') > 0, hybrid_merge('ar_jump_bca') > 0;
SELECT * FROM ar_jumps();

-- a cursor that turns round
BEGIN;
DECLARE ar_c SCROLL CURSOR FOR SELECT a, b FROM ar_jump WHERE a = ANY (array(SELECT generate_series(-20, 4000, 7))) AND b = ANY (array(SELECT generate_series(-20, 600, 3))) ORDER BY a, b;
FETCH 3 FROM ar_c;
FETCH BACKWARD 2 FROM ar_c;
MOVE FORWARD ALL IN ar_c;
FETCH BACKWARD 2 FROM ar_c;
FETCH 2 FROM ar_c;
COMMIT;

DROP TABLE ar, ar_small, ar_two, ar_zone, ar_wide, ar_jump;
DROP FUNCTION ar_fill, ar_queries, ar_blocks, ar_instants, ar_changes, ar_some, ar_jumps;
