--
-- Types without an operator class of their own that are coerced to another type
-- without a function: they get its class.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
\set VERBOSITY terse

-- Text without case, as contrib/citext makes it.  As long as the type has no
-- btree class of its own it is compared as text, with btree too.
CREATE TYPE co_mail;
CREATE FUNCTION co_mail_in(cstring) RETURNS co_mail LANGUAGE internal STRICT IMMUTABLE AS 'textin';
CREATE FUNCTION co_mail_out(co_mail) RETURNS cstring LANGUAGE internal STRICT IMMUTABLE AS 'textout';
CREATE TYPE co_mail (INPUT = co_mail_in, OUTPUT = co_mail_out, LIKE = text, CATEGORY = 'S', COLLATABLE = true);
CREATE CAST (co_mail AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (text AS co_mail) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE TABLE co_t (id int, mail co_mail COLLATE "C");
INSERT INTO co_t VALUES (1, 'Bob@x'), (2, 'bob@X'), (3, 'eve@x');
CREATE UNIQUE INDEX co_old ON co_t USING hybrid (mail);
SELECT hyb_check('co_t');

CREATE FUNCTION co_cmp(a co_mail, b co_mail) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS
	'BEGIN RETURN bttextcmp(lower(a::text) COLLATE "C", lower(b::text) COLLATE "C"); END';
CREATE FUNCTION co_lt(a co_mail, b co_mail) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN co_cmp(a, b) < 0; END';
CREATE FUNCTION co_le(a co_mail, b co_mail) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN co_cmp(a, b) <= 0; END';
CREATE FUNCTION co_eq(a co_mail, b co_mail) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN co_cmp(a, b) = 0; END';
CREATE FUNCTION co_ge(a co_mail, b co_mail) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN co_cmp(a, b) >= 0; END';
CREATE FUNCTION co_gt(a co_mail, b co_mail) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN co_cmp(a, b) > 0; END';
CREATE OPERATOR < (FUNCTION = co_lt, LEFTARG = co_mail, RIGHTARG = co_mail);
CREATE OPERATOR <= (FUNCTION = co_le, LEFTARG = co_mail, RIGHTARG = co_mail);
CREATE OPERATOR = (FUNCTION = co_eq, LEFTARG = co_mail, RIGHTARG = co_mail);
CREATE OPERATOR >= (FUNCTION = co_ge, LEFTARG = co_mail, RIGHTARG = co_mail);
CREATE OPERATOR > (FUNCTION = co_gt, LEFTARG = co_mail, RIGHTARG = co_mail);
CREATE OPERATOR CLASS co_mail_ops DEFAULT FOR TYPE co_mail USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 co_cmp(co_mail, co_mail);

-- Now text's class is another type's.  The index that has it: a warning, and
-- no way to build it again.
SELECT hyb_check('co_t');
SELECT hyb_error(s) FROM unnest(array[
	'REINDEX INDEX co_old',
	'REINDEX TABLE co_t',
	'ALTER TABLE co_t ALTER id TYPE int8',
	'TRUNCATE co_t',
	'CREATE UNIQUE INDEX ON co_t USING hybrid (mail)',
	'CREATE INDEX ON co_t USING hybrid (mail text_ops)',
	'CREATE INDEX ON co_t USING hybrid (mail text_pattern_ops)',
	'CREATE INDEX ON co_t USING hybrid (id, mail text_hope_ops)',
	'CREATE INDEX ON co_t USING hybrid ((coalesce(mail, ''x''::co_mail)))']) s;
DROP INDEX co_old;

-- a domain over it is compared as it is
CREATE DOMAIN co_dmail AS co_mail;
ALTER TABLE co_t ADD d co_dmail COLLATE "C";
SELECT hyb_error('CREATE INDEX ON co_t USING hybrid (d)');

-- an index whose column gets such a type becomes a btree one, as which it tells
-- what is equal; its rows stay where they are, so nothing would be built
CREATE TABLE co_change (a text COLLATE "C", b text COLLATE "C", id int);
CREATE UNIQUE INDEX co_a ON co_change USING hybrid (a);
CREATE INDEX co_b ON co_change USING hybrid (id, b text_pattern_ops);
CREATE INDEX co_id ON co_change USING hybrid (id) INCLUDE (a);
INSERT INTO co_change VALUES ('x', 'x', 1);
ALTER TABLE co_change ALTER a TYPE co_mail COLLATE "C",
	ALTER b TYPE co_mail COLLATE "C", ALTER id TYPE int8;
INSERT INTO co_change VALUES ('X', 'y', 2);
SELECT indexdef FROM pg_indexes WHERE tablename = 'co_change' ORDER BY 1;
DROP TABLE co_change;

-- unless the server is going to refuse the statement, for a child that is not
-- the caller's
CREATE ROLE regress_co;
CREATE TABLE co_change (a text COLLATE "C");
CREATE INDEX co_a ON co_change USING hybrid (a);
CREATE TABLE co_child () INHERITS (co_change);
ALTER TABLE co_change OWNER TO regress_co;
SET client_min_messages = notice;
SET ROLE regress_co;
ALTER TABLE co_change ALTER a TYPE co_mail COLLATE "C";
RESET ROLE;
ALTER TABLE co_change ALTER a TYPE co_mail COLLATE "C";
SET client_min_messages = warning;
DROP TABLE co_change, co_child;
DROP ROLE regress_co;

-- what stays btree keeps its operator classes
CREATE SCHEMA co_path;
CREATE TABLE co_path.co_stays (a text, m public.co_mail);
SET search_path = co_path;
SET hybridindex.replace_btree = on;
CREATE INDEX co_stay ON co_stays (a text_pattern_ops, m);
RESET hybridindex.replace_btree;
RESET search_path;
SELECT indexdef FROM pg_indexes WHERE tablename = 'co_stays' ORDER BY 1;
DROP SCHEMA co_path CASCADE;

-- what the hint says; and a payload is not compared
UPDATE co_t SET d = mail;
CREATE UNIQUE INDEX co_text ON co_t USING hybrid ((mail::text));
CREATE UNIQUE INDEX co_lower ON co_t USING hybrid (lower(mail::text), id);
CREATE INDEX co_include ON co_t USING hybrid (id) INCLUDE (mail, d);
SELECT hyb_error('CREATE UNIQUE INDEX ON co_t USING btree (mail)');
SELECT hyb_same('SELECT id FROM co_t WHERE mail::text = ''bob@X'''), hyb_same('SELECT id, mail, d FROM co_t WHERE id > 0', 'only'),
	hyb_check('co_t');
REINDEX TABLE co_t;

-- with classes of its own for the access method everything is as with btree
CREATE OPERATOR CLASS co_mail_ops DEFAULT FOR TYPE co_mail USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 co_cmp(co_mail, co_mail);
SELECT hyb_error('CREATE UNIQUE INDEX ON co_t USING hybrid (mail)');
DELETE FROM co_t WHERE id = 2;
CREATE UNIQUE INDEX co_own ON co_t USING hybrid (mail);
SELECT hyb_error('INSERT INTO co_t VALUES (4, ''BOB@X'')');
SELECT hyb_same('SELECT id FROM co_t WHERE mail = ''BOB@X'''), hyb_same('SELECT mail FROM co_t ORDER BY mail', 'order'), hyb_check('co_t');
CREATE INDEX co_explicit ON co_t USING hybrid (mail text_ops);
SELECT hyb_same('SELECT id FROM co_t WHERE mail::text = ''Bob@x'''), hyb_check('co_t');
DROP TABLE co_t;

-- An enum type with a class of its own is not just any enum.
CREATE TYPE co_size AS ENUM ('s', 'm', 'l');
CREATE TABLE co_s (s co_size);
INSERT INTO co_s VALUES ('l'), ('s'), ('m');
CREATE INDEX co_s_s ON co_s USING hybrid (s);
CREATE FUNCTION co_size_cmp(a co_size, b co_size) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN enum_cmp(b, a); END';
CREATE OPERATOR CLASS co_size_ops DEFAULT FOR TYPE co_size USING btree AS
	OPERATOR 1 > (anyenum, anyenum), OPERATOR 3 = (anyenum, anyenum), OPERATOR 5 < (anyenum, anyenum), FUNCTION 1 co_size_cmp(co_size, co_size);
SELECT hyb_check('co_s');
SELECT hyb_error('REINDEX INDEX co_s_s'), hyb_error('CREATE INDEX ON co_s USING hybrid (s)');
DROP TABLE co_s;
DROP TYPE co_size CASCADE;

-- Everything that shares a class in btree does so here: strings, aliases of
-- oid, networks, domains, polymorphic classes; also where the user names one.
CREATE TYPE co_enum AS ENUM ('b', 'a');
CREATE TYPE co_row AS (x int, y co_mail);
CREATE TYPE co_range AS RANGE (SUBTYPE = int8);
CREATE DOMAIN co_text AS varchar(20) COLLATE "C" CHECK (value <> '');
CREATE DOMAIN co_enums AS co_enum[];
CREATE TABLE co_all (v varchar(10), d co_text, dd name COLLATE "C", p "char", r regclass, g regrole, c cidr, i inet, e co_enum, ee co_enums, m co_mail[], w co_row, ra co_range, rm co_multirange, b bit(3), vb varbit(5), ov oidvector, iv int2vector, ts tsvector);
INSERT INTO co_all VALUES ('v', 'd', 'n', 'c', 'pg_class', 'pg_monitor', '10.1/16', '10.1.2.3', 'a', '{a,b}', '{X,y}', '(1,Q)', '[3,9)', '{[3,9)}', '101', '11', '1 2', '1 2', 'a b');
SELECT a.attname, hyb_error(format('CREATE INDEX ON co_all USING hybrid (%I)', a.attname)) AS hybrid
FROM pg_attribute a WHERE a.attrelid = 'co_all'::regclass AND a.attnum > 0 ORDER BY a.attnum;
SELECT s, hyb_error(format('CREATE INDEX ON co_all USING hybrid (%s)', s)) AS hybrid, hyb_error(format('CREATE INDEX ON co_all USING btree (%s)', s)) AS btree
FROM unnest(array['v varchar_ops', 'v text_pattern_ops', 'v varchar_pattern_ops', 'v bpchar_ops', 'v bpchar_pattern_ops', 'd text_ops', 'd varchar_pattern_ops', 'c cidr_ops', 'i cidr_ops', 'r oid_ops', 'w record_image_ops', 'e enum_ops', 'iv array_ops', 'b varbit_ops', 'vb bit_ops']) s;
SELECT hyb_check('co_all');
REINDEX TABLE co_all;
DROP TABLE co_all;
DROP TYPE co_row, co_range CASCADE;
DROP DOMAIN co_enums, co_text, co_dmail;
DROP TYPE co_enum, co_mail CASCADE;
