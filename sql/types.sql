--
-- Every type with a default operator class: all operators, both orders and NULL
-- tests, over the static stage, over the dynamic stage, and after a merge.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET timezone = 'Europe/Berlin';
SET datestyle = 'ISO';
CREATE TYPE hyb_color AS ENUM ('red', 'green', 'blue');
ALTER TYPE hyb_color ADD VALUE 'orange' AFTER 'red';
CREATE TYPE hyb_pair AS (a int, b text);
CREATE DOMAIN hyb_posint AS int CHECK (VALUE > 0);

-- All queries of one column type, each against the sequential scan; probes
-- are the given values.  Returns the number of queries whose answers differ.
CREATE FUNCTION check_queries(typ text, opclass text, vals text[])
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	opr		record;
	val		text;
	lt		text;
	gt		text;
	bad		int := 0;
	paths	text := 'index bitmap only';
BEGIN
	FOR opr IN
		SELECT o.amopstrategy AS s,
			format('OPERATOR(%s.%s)', n.nspname, p.oprname) AS op
		FROM pg_index i JOIN pg_opclass c ON c.oid = i.indclass[0]
			JOIN pg_amop o ON o.amopfamily = c.opcfamily
				AND o.amoplefttype = c.opcintype
				AND o.amoprighttype = c.opcintype
			JOIN pg_operator p ON p.oid = o.amopopr
			JOIN pg_namespace n ON n.oid = p.oprnamespace
		WHERE i.indexrelid = 'types_i'::regclass ORDER BY 1
	LOOP
		lt := CASE opr.s WHEN 1 THEN opr.op ELSE lt END;
		gt := CASE opr.s WHEN 5 THEN opr.op ELSE gt END;
		FOREACH val IN ARRAY vals
		LOOP
			-- (version 15 knows "v = true" as an index condition for btree
			-- only, and makes it of every comparison with a constant)
			IF NOT hyb_same(format(CASE WHEN typ = 'bool' THEN 'SELECT v FROM types_t WHERE v %s (SELECT %L::%s)'
								   ELSE 'SELECT v FROM types_t WHERE v %s %L::%s' END,
								   opr.op, val, typ), paths) THEN
				bad := bad + 1;
			END IF;
		END LOOP;
	END LOOP;
	IF NOT hyb_same(format('SELECT v FROM types_t WHERE v %s %L::%s AND v %s %L::%s',
						   gt, vals[1], typ, lt, vals[cardinality(vals)], typ),
					paths)
	THEN
		bad := bad + 1;
	END IF;
	-- for a composite type IS NULL is a test of its fields, not of the column
	IF (SELECT typtype <> 'c' FROM pg_type WHERE oid = split_part(typ, ' ', 1)::regtype) AND
		(NOT hyb_same('SELECT v FROM types_t WHERE v IS NULL', paths) OR
		 NOT hyb_same('SELECT v FROM types_t WHERE v IS NOT NULL', paths))
	THEN
		bad := bad + 1;
	END IF;
	-- the ordered scan never goes down, whatever the order of equal values is
	IF NOT hyb_same(format('SELECT coalesce(v %s lag(v) OVER (ORDER BY v USING %s), v IS NULL) FROM types_t',
						   lt, lt), 'order order_only') OR
		NOT hyb_same(format('SELECT coalesce(v %s lag(v) OVER (ORDER BY v USING %s), v IS NULL) FROM types_t',
							gt, gt), 'order order_only')
	THEN
		bad := bad + 1;
	END IF;
	RETURN bad;
END $$;

-- One type: half of the values are there when the index is built, all of them
-- are inserted afterwards, some are deleted; then a merge.
CREATE FUNCTION check_type(typ text, opclass text, gen text, vals text[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	bad1	int;
	bad2	int;
	bad3	int;
BEGIN
	DROP TABLE IF EXISTS types_t;
	EXECUTE format('CREATE TABLE types_t (v %s)', typ);
	EXECUTE format('INSERT INTO types_t SELECT %s FROM generate_series(1, 150) i',
				   coalesce(gen, 'NULL'));
	EXECUTE format('INSERT INTO types_t SELECT u::%s FROM unnest($1) WITH ORDINALITY w(u, o), generate_series(1, 2) WHERE o %% 2 = 0', typ)
		USING vals || NULL::text || NULL::text;
	EXECUTE format('CREATE INDEX types_i ON types_t USING hybrid (v %s)', opclass);
	ANALYZE types_t;
	bad1 := check_queries(typ, opclass, vals);
	EXECUTE format('INSERT INTO types_t SELECT u::%s FROM unnest($1) u, generate_series(1, 2)', typ)
		USING vals || NULL::text;
	EXECUTE format('INSERT INTO types_t SELECT %s FROM generate_series(100, 250) i',
				   coalesce(gen, 'NULL'));
	DELETE FROM types_t WHERE ctid IN (SELECT ctid FROM types_t ORDER BY md5(ctid::text) LIMIT 20);
	bad2 := check_queries(typ, opclass, vals);
	PERFORM hybrid_merge('types_i');
	bad3 := check_queries(typ, opclass, vals);
	PERFORM hyb_check('types_t');
	RETURN CASE WHEN bad1 + bad2 + bad3 = 0 THEN 'ok'
		   ELSE format('%s static, %s dynamic, %s merged differ', bad1, bad2, bad3) END;
END $$;

CREATE TABLE cases (n serial, typ text, opclass text, gen text, vals text[]);
INSERT INTO cases (typ, opclass, gen, vals) VALUES
('bool', '', 'i % 3 = 0', '{f,t}'),
('"char"', '', 'chr(1 + i % 126)::"char"', '{"",a,z,~," "}'),
('name', '', 'md5(i::text)', '{"",a,abc,abcd,zzz}'),
('int2', '', 'i * 7 - 500', '{-32768,-1,0,1,32767}'),
('int4', '', 'i * 1000003 % 100 - 50', '{-2147483648,-1,0,1,255,256,65536,2147483647}'),
('int8', '', 'i * 123456789012345', '{-9223372036854775808,-4294967296,-1,0,1,4294967296,9223372036854775807}'),
('oid', '', 'i * 17', '{0,1,2147483647,2147483648,4294967295}'),
('float4', '', '(i - 100) * 1.25', '{-Infinity,-3.4e38,-1.5,-1e-40,-0,0,1e-40,1.5,3.4e38,Infinity,NaN}'),
('float8', '', '(i - 100) / 3.0', '{-Infinity,-1.7e308,-1.5,-5e-324,-0,0,5e-324,1.5,1.7e308,Infinity,NaN}'),
('numeric', '', '(i - 100) / 7.0', '{-Infinity,-1e100,-1.50,-1.5,-0.001,0,0.00,1,1.0,1e-50,1e100,Infinity,NaN}'),
('text', '', 'md5(i::text)', '{"",a,A,"a b",ab,abc,zebra,ä,日本語,"  "}'),
('text COLLATE "C"', '', 'md5(i::text)', '{"",a,A,"a b",ab,abc,zebra,ä,日本語,"  "}'),
('varchar(40)', '', 'md5(i::text)', '{"",a,A,"a b",ab,abc,zebra,ä,"  "}'),
('char(10)', '', 'left(md5(i::text), i % 10)', '{"",a,A,"a b",ab,abc,zebra}'),
('char(10) COLLATE "C"', '', 'left(md5(i::text), i % 10)', '{"",a,A,"a b",ab,"a	",abc,zebra}'),
('text', 'text_pattern_ops', 'md5(i::text)', '{"",a,A,"a b",ab,abc,zebra,ä,日本語}'),
('varchar', 'varchar_pattern_ops', 'md5(i::text)', '{"",a,A,"a b",ab,abc,zebra,ä}'),
('char(10)', 'bpchar_pattern_ops', 'left(md5(i::text), i % 10)', '{"",a,A,"a b",ab,"a	",abc,zebra}'),
('bytea', '', 'decode(md5(i::text), ''hex'')', '{"\\x","\\x00","\\x0000","\\x0001","\\x01","\\x7f00ff","\\xff","\\xff00","\\xffff"}'),
('date', '', 'date ''2000-01-01'' + i - 100', '{-infinity,"4713-01-01 BC",1999-12-31,2000-01-01,5874897-12-31,infinity}'),
('time', '', 'time ''00:00'' + i * interval ''7 min''', '{00:00,00:00:00.000001,12:00,23:59:59.999999,24:00}'),
('timetz', '', '(time ''00:00'' + i * interval ''7 min'')::text::timetz', '{00:00+15:59,00:00-15:59,12:00+00,13:00+01,24:00-15:59,24:00+15:59}'),
('timestamp', '', 'timestamp ''2000-01-01'' + (i - 100) * interval ''1 day''', '{-infinity,"4713-01-01 00:00 BC","1999-12-31 23:59:59.999999",2000-01-01,"294276-12-31 23:59:59.999999",infinity}'),
('timestamptz', '', 'timestamptz ''2000-01-01'' + (i - 100) * interval ''1 day''', '{-infinity,"4713-01-01 00:00 BC","1999-12-31 23:59:59.999999",2000-01-01,"294276-12-31 20:59:59.999999",infinity}'),
('interval', '', 'i * interval ''5 hours''', '{"-178000000 years",-1 mon,-30 days,-1 us,0,1 us,24:00,1 day,30 days,1 mon,1 mon 1 us,"178000000 years"}'),
('uuid', '', 'md5(i::text)::uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,80000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}'),
('inet', '', '(''10.0.'' || i || ''.1/'' || 8 + i % 25)::inet', '{0.0.0.0/0,0.0.0.0,10.0.0.0/8,10.0.0.1/8,10.0.0.0/16,10.0.0.0,255.255.255.255,::/0,::1,10::/16,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff}'),
('cidr', '', '(''10.0.'' || i || ''.0/24'')::cidr', '{0.0.0.0/0,10.0.0.0/8,10.0.0.0/16,10.0.0.0/32,255.255.255.255/32,::/0,::1/128,10::/16}'),
('macaddr', '', 'left(md5(i::text), 12)::macaddr', '{00:00:00:00:00:00,08:00:2b:01:02:03,80:00:00:00:00:00,ff:ff:ff:ff:ff:ff}'),
('macaddr8', '', 'left(md5(i::text), 16)::macaddr8', '{00:00:00:00:00:00:00:00,08:00:2b:01:02:03:04:05,80:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}'),
('bit(5)', '', '(i % 32)::bit(5)', '{00000,00001,10000,11111}'),
('varbit', '', 'left((i % 32)::bit(5)::text, i % 6)::varbit', '{"",0,00,000000000,1,10,101010101,1111111111}'),
('money', '', '(i - 100)::money', '{"-92233720368547758.08",-1,0,0.01,92233720368547758.07}'),
('hyb_color', '', '((array[''red'', ''blue'', ''green'', ''orange''])[1 + i % 4])::hyb_color', '{red,orange,green,blue}'),
('int4[]', '', 'array[i % 7, i]', '{"{}","{NULL}","{1}","{1,2}","{1,NULL}","{{1},{2}}","{-1}"}'),
('text[]', '', 'array[md5(i::text)]', '{"{}","{NULL}","{\"\"}","{a}","{a,b}","{z}"}'),
('hyb_pair', '', 'row(i % 10, md5(i::text))::hyb_pair', '{"(,)","(1,)","(1,a)","(1,b)","(,a)","(2147483647,zzz)"}'),
('int4range', '', 'int4range(i, i + i % 5)', '{empty,"(,)","[1,2)","[1,3)","[1,)","(,5)"}'),
('int4multirange', '', 'int4multirange(int4range(i, i + i % 5))', '{"{}","{(,)}","{[1,2)}","{[1,2),[5,6)}","{[1,)}"}'),
('numrange', '', 'numrange(i, i + 1.5)', '{empty,"(,)","[1,2)","(1,2]","[1.0,2.00)"}'),
('jsonb', '', 'jsonb_build_object(''k'', i)', '{"null",true,1,1.00,"\"a\"","[]","{}","[1, 2]","{\"k\": 5}"}'),
('pg_lsn', '', '(''0/'' || to_hex(i * 99))::pg_lsn', '{0/0,0/1,1/0,FFFFFFFF/FFFFFFFF}'),
('tid', '', '(''('' || i || '',1)'')::tid', '{"(0,0)","(0,1)","(1,0)","(4294967295,65535)"}'),
('xid8', '', 'i::text::xid8', '{0,1,4294967296,18446744073709551615}'),
('tsvector', '', 'to_tsvector(''simple'', md5(i::text))', '{"","''a''","''a'' ''b''","''a'':1"}'),
('oidvector', '', 'array_to_string(array[i, i % 3], '' '')::oidvector', '{"","0","1 2","1 2 3"}'),
('hyb_posint', '', 'i', '{1,2,2147483647}');

SELECT n, typ, opclass, check_type(typ, opclass, gen, vals) FROM cases ORDER BY n;

-- a type of PostgreSQL 19
SELECT CASE WHEN to_regtype('oid8') IS NULL THEN 'ok'
	ELSE check_type('oid8', '', 'i::text::oid8', '{0,1,4294967296,18446744073709551615}') END AS oid8;

-- Cross-type operators: constants of every other member of the family, in
-- range, out of range and between two values of the column's type.
CREATE FUNCTION check_cross(coltyp text, colvals text[], typ text, vals text[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	op		text;
	val		text;
	n		int := 0;
	bad		int := 0;
BEGIN
	DROP TABLE IF EXISTS types_t;
	EXECUTE format('CREATE TABLE types_t (v %s)', coltyp);
	EXECUTE format('INSERT INTO types_t SELECT u::%s FROM unnest($1) u, generate_series(1, 2)', coltyp)
		USING colvals || NULL::text;
	CREATE INDEX types_i ON types_t USING hybrid (v);
	EXECUTE format('INSERT INTO types_t SELECT u::%s FROM unnest($1) u', coltyp)
		USING colvals || NULL::text;
	FOREACH op IN ARRAY '{<,<=,=,>=,>}'::text[]
	LOOP
		FOREACH val IN ARRAY vals
		LOOP
			n := n + 1;
			IF NOT hyb_same(format('SELECT v FROM types_t WHERE v %s %L::%s',
								   op, val, typ), 'index bitmap only') OR
				NOT hyb_same(format('SELECT v FROM types_t WHERE v %s ANY (%L::%s[])',
									op, array[val, NULL, vals[1]], typ), 'index bitmap')
			THEN
				bad := bad + 1;
			END IF;
		END LOOP;
	END LOOP;
	RETURN n || ' operators and values, ' || bad || ' differ';
END $$;

CREATE TABLE members (family text, typ text, vals text[]);
INSERT INTO members VALUES
('integer', 'int2', '{-32768,-2,0,1,7,32767}'),
('integer', 'int4', '{-2147483648,-32769,-32768,0,1,7,32767,32768,2147483647}'),
('integer', 'int8', '{-9223372036854775808,-2147483649,-32769,0,1,7,32768,2147483648,9223372036854775807}'),
('float', 'float4', '{-Infinity,-3.4028235e38,-1e-45,-0,0,0.1,1.5,16777216,3.4028235e38,Infinity,NaN}'),
('float', 'float8', '{-Infinity,-1.7e308,-3.4028235677973366e38,-1e-60,-0,0,0.1,0.10000000149011612,1.5,16777217,1.7e308,Infinity,NaN}'),
('datetime', 'date', '{-infinity,"4713-01-01 BC",1999-12-31,2000-01-01,2024-03-31,2024-10-27,5874897-12-31,infinity}'),
('datetime', 'timestamp', '{-infinity,"4713-01-01 00:00 BC","1999-12-31 23:59:59.999999",2000-01-01,"2000-01-01 00:00:00.000001","2024-03-31 02:30","2024-10-27 02:30","294276-12-31 23:59:59.999999",infinity}'),
('datetime', 'timestamptz', '{-infinity,"4713-01-01 00:00 BC","1999-12-31 23:59:59.999999",2000-01-01,"2000-01-01 00:00+00","2024-03-31 01:30+00","2024-10-27 00:30+00","2024-10-27 01:30+00",infinity}'),
('text', 'text COLLATE "C"', '{"",a,ab,"a ",z,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}'),
('text', 'name', '{"",a,ab,"a ",z,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}');
SELECT a.typ AS col, b.typ AS const,
	check_cross(a.typ, a.vals, split_part(b.typ, ' ', 1), b.vals)
FROM members a JOIN members b ON a.family = b.family AND a.typ <> b.typ
ORDER BY a.family, a.typ, b.typ;

DROP TABLE types_t, cases, members;
DROP FUNCTION check_queries, check_type, check_cross;
DROP DOMAIN hyb_posint;
DROP TYPE hyb_pair, hyb_color;
