/* hybridindex--1.1.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION hybridindex" to load this file. \quit

-- The schema may have functions and operators of other roles, which must not be
-- taken: names are of pg_catalog, or of this script, and the types of arguments
-- are exactly those of the function or operator that is meant.  Operators of
-- pg_catalog are found first where types are exact (t/112_schema_traps.pl).

CREATE FUNCTION hybridhandler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON FUNCTION hybridhandler(internal) IS
'hybrid index access method handler';

CREATE ACCESS METHOD hybrid TYPE INDEX HANDLER hybridhandler;

COMMENT ON ACCESS METHOD hybrid IS
'dual-stage compressed ordered index access method';

--
-- Key codecs: support function 7, how a type is stored in order-preserving
-- form, for each kind of order.  Types without one are stored as they are and
-- compared by support function 1.
--

CREATE FUNCTION hybrid_codec(internal) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION hybrid_codec_pattern(internal) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION hybrid_codec_hope(internal) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

CREATE FUNCTION hybrid_codec_pattern_hope(internal) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;

CREATE FUNCTION hybrid_hope_options(internal) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

--
-- Operator classes: btree's, under btree's names, with the same cross-type
-- members.  Strategies 1-5 and support function 1 mean what they do there.
-- Functions 2 to 4 are btree's as well.  bpchar goes without function 4:
-- values that differ in trailing blanks are equal, but not in their bytes.
--

--
-- Integers and other types stored as one
--

CREATE OPERATOR FAMILY integer_ops USING hybrid;

CREATE OPERATOR CLASS int2_ops
DEFAULT FOR TYPE int2 USING hybrid FAMILY integer_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btint2cmp(int2, int2),
	FUNCTION 2 btint2sortsupport(internal),
	FUNCTION 3 in_range(int2, int2, int2, bool, bool),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS int4_ops
DEFAULT FOR TYPE int4 USING hybrid FAMILY integer_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btint4cmp(int4, int4),
	FUNCTION 2 btint4sortsupport(internal),
	FUNCTION 3 in_range(int4, int4, int4, bool, bool),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS int8_ops
DEFAULT FOR TYPE int8 USING hybrid FAMILY integer_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btint8cmp(int8, int8),
	FUNCTION 2 btint8sortsupport(internal),
	FUNCTION 3 in_range(int8, int8, int8, bool, bool),
	FUNCTION 4 hybrid_codec(internal);

ALTER OPERATOR FAMILY integer_ops USING hybrid ADD
	OPERATOR 1 < (int2, int4), OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4), OPERATOR 5 > (int2, int4),
	FUNCTION 1 (int2, int4) btint24cmp(int2, int4),

	OPERATOR 1 < (int2, int8), OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8), OPERATOR 5 > (int2, int8),
	FUNCTION 1 (int2, int8) btint28cmp(int2, int8),

	OPERATOR 1 < (int4, int2), OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2), OPERATOR 5 > (int4, int2),
	FUNCTION 1 (int4, int2) btint42cmp(int4, int2),

	OPERATOR 1 < (int4, int8), OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8), OPERATOR 5 > (int4, int8),
	FUNCTION 1 (int4, int8) btint48cmp(int4, int8),

	OPERATOR 1 < (int8, int2), OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2), OPERATOR 5 > (int8, int2),
	FUNCTION 1 (int8, int2) btint82cmp(int8, int2),

	OPERATOR 1 < (int8, int4), OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4), OPERATOR 5 > (int8, int4),
	FUNCTION 1 (int8, int4) btint84cmp(int8, int4),

	FUNCTION 3 (int2, int4) in_range(int2, int2, int4, bool, bool),
	FUNCTION 3 (int2, int8) in_range(int2, int2, int8, bool, bool),
	FUNCTION 3 (int4, int2) in_range(int4, int4, int2, bool, bool),
	FUNCTION 3 (int4, int8) in_range(int4, int4, int8, bool, bool);

CREATE OPERATOR CLASS bool_ops
DEFAULT FOR TYPE bool USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btboolcmp(bool, bool),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS char_ops
DEFAULT FOR TYPE "char" USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btcharcmp("char", "char"),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS oid_ops
DEFAULT FOR TYPE oid USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btoidcmp(oid, oid),
	FUNCTION 2 btoidsortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS money_ops
DEFAULT FOR TYPE money USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 cash_cmp(money, money),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS pg_lsn_ops
DEFAULT FOR TYPE pg_lsn USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 pg_lsn_cmp(pg_lsn, pg_lsn),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS xid8_ops
DEFAULT FOR TYPE xid8 USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 xid8cmp(xid8, xid8),
	FUNCTION 4 hybrid_codec(internal);

-- a type of PostgreSQL 19
DO $$
BEGIN
	IF pg_catalog.to_regtype('pg_catalog.oid8') IS NOT NULL THEN
		CREATE OPERATOR CLASS oid8_ops
		DEFAULT FOR TYPE pg_catalog.oid8 USING hybrid AS
			OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
			FUNCTION 1 btoid8cmp(oid8, oid8),
			FUNCTION 2 btoid8sortsupport(internal),
			FUNCTION 4 hybrid_codec(internal);
	END IF;
END $$;

CREATE OPERATOR CLASS tid_ops
DEFAULT FOR TYPE tid USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 bttidcmp(tid, tid),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS macaddr_ops
DEFAULT FOR TYPE macaddr USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 macaddr_cmp(macaddr, macaddr),
	FUNCTION 2 macaddr_sortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS macaddr8_ops
DEFAULT FOR TYPE macaddr8 USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 macaddr8_cmp(macaddr8, macaddr8),
	FUNCTION 4 hybrid_codec(internal);

--
-- Numbers
--

CREATE OPERATOR FAMILY float_ops USING hybrid;

CREATE OPERATOR CLASS float4_ops
DEFAULT FOR TYPE float4 USING hybrid FAMILY float_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btfloat4cmp(float4, float4),
	FUNCTION 2 btfloat4sortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS float8_ops
DEFAULT FOR TYPE float8 USING hybrid FAMILY float_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btfloat8cmp(float8, float8),
	FUNCTION 2 btfloat8sortsupport(internal),
	FUNCTION 3 in_range(float8, float8, float8, bool, bool),
	FUNCTION 4 hybrid_codec(internal);

ALTER OPERATOR FAMILY float_ops USING hybrid ADD
	OPERATOR 1 < (float4, float8), OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8), OPERATOR 5 > (float4, float8),
	FUNCTION 1 (float4, float8) btfloat48cmp(float4, float8),

	OPERATOR 1 < (float8, float4), OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4), OPERATOR 5 > (float8, float4),
	FUNCTION 1 (float8, float4) btfloat84cmp(float8, float4),

	FUNCTION 3 (float4, float8) in_range(float4, float4, float8, bool, bool);

CREATE OPERATOR CLASS numeric_ops
DEFAULT FOR TYPE numeric USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 numeric_cmp(numeric, numeric),
	FUNCTION 2 numeric_sortsupport(internal),
	FUNCTION 3 in_range(numeric, numeric, numeric, bool, bool);

--
-- Date and time
--

CREATE OPERATOR FAMILY datetime_ops USING hybrid;

CREATE OPERATOR CLASS date_ops
DEFAULT FOR TYPE date USING hybrid FAMILY datetime_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 date_cmp(date, date),
	FUNCTION 2 date_sortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS timestamp_ops
DEFAULT FOR TYPE timestamp USING hybrid FAMILY datetime_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 timestamp_cmp(timestamp, timestamp),
	FUNCTION 2 timestamp_sortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS timestamptz_ops
DEFAULT FOR TYPE timestamptz USING hybrid FAMILY datetime_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 timestamptz_cmp(timestamptz, timestamptz),
	FUNCTION 2 timestamp_sortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

ALTER OPERATOR FAMILY datetime_ops USING hybrid ADD
	OPERATOR 1 < (date, timestamp), OPERATOR 2 <= (date, timestamp),
	OPERATOR 3 = (date, timestamp),
	OPERATOR 4 >= (date, timestamp), OPERATOR 5 > (date, timestamp),
	FUNCTION 1 (date, timestamp) date_cmp_timestamp(date, timestamp),

	OPERATOR 1 < (date, timestamptz), OPERATOR 2 <= (date, timestamptz),
	OPERATOR 3 = (date, timestamptz),
	OPERATOR 4 >= (date, timestamptz), OPERATOR 5 > (date, timestamptz),
	FUNCTION 1 (date, timestamptz) date_cmp_timestamptz(date, timestamptz),

	OPERATOR 1 < (timestamp, date), OPERATOR 2 <= (timestamp, date),
	OPERATOR 3 = (timestamp, date),
	OPERATOR 4 >= (timestamp, date), OPERATOR 5 > (timestamp, date),
	FUNCTION 1 (timestamp, date) timestamp_cmp_date(timestamp, date),

	OPERATOR 1 < (timestamp, timestamptz), OPERATOR 2 <= (timestamp, timestamptz),
	OPERATOR 3 = (timestamp, timestamptz),
	OPERATOR 4 >= (timestamp, timestamptz), OPERATOR 5 > (timestamp, timestamptz),
	FUNCTION 1 (timestamp, timestamptz) timestamp_cmp_timestamptz(timestamp, timestamptz),

	OPERATOR 1 < (timestamptz, date), OPERATOR 2 <= (timestamptz, date),
	OPERATOR 3 = (timestamptz, date),
	OPERATOR 4 >= (timestamptz, date), OPERATOR 5 > (timestamptz, date),
	FUNCTION 1 (timestamptz, date) timestamptz_cmp_date(timestamptz, date),

	OPERATOR 1 < (timestamptz, timestamp), OPERATOR 2 <= (timestamptz, timestamp),
	OPERATOR 3 = (timestamptz, timestamp),
	OPERATOR 4 >= (timestamptz, timestamp), OPERATOR 5 > (timestamptz, timestamp),
	FUNCTION 1 (timestamptz, timestamp) timestamptz_cmp_timestamp(timestamptz, timestamp),

	FUNCTION 3 (date, interval) in_range(date, date, interval, bool, bool),
	FUNCTION 3 (timestamp, interval) in_range(timestamp, timestamp, interval, bool, bool),
	FUNCTION 3 (timestamptz, interval) in_range(timestamptz, timestamptz, interval, bool, bool);

CREATE OPERATOR CLASS time_ops
DEFAULT FOR TYPE time USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 time_cmp(time, time),
	FUNCTION 4 hybrid_codec(internal);

ALTER OPERATOR FAMILY time_ops USING hybrid ADD
	FUNCTION 3 (time, interval) in_range(time, time, interval, bool, bool);

CREATE OPERATOR CLASS timetz_ops
DEFAULT FOR TYPE timetz USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 timetz_cmp(timetz, timetz),
	FUNCTION 4 btequalimage(oid);

ALTER OPERATOR FAMILY timetz_ops USING hybrid ADD
	FUNCTION 3 (timetz, interval) in_range(timetz, timetz, interval, bool, bool);

CREATE OPERATOR CLASS interval_ops
DEFAULT FOR TYPE interval USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 interval_cmp(interval, interval),
	FUNCTION 3 in_range(interval, interval, interval, bool, bool);

--
-- Strings; varchar is binary coercible to text and uses its classes
--

CREATE OPERATOR FAMILY text_ops USING hybrid;

CREATE OPERATOR CLASS text_ops
DEFAULT FOR TYPE text USING hybrid FAMILY text_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 bttextcmp(text, text),
	FUNCTION 2 bttextsortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS name_ops
DEFAULT FOR TYPE name USING hybrid FAMILY text_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btnamecmp(name, name),
	FUNCTION 2 btnamesortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS varchar_ops
FOR TYPE text USING hybrid FAMILY text_ops AS
	STORAGE text;

ALTER OPERATOR FAMILY text_ops USING hybrid ADD
	OPERATOR 1 < (text, name), OPERATOR 2 <= (text, name),
	OPERATOR 3 = (text, name),
	OPERATOR 4 >= (text, name), OPERATOR 5 > (text, name),
	FUNCTION 1 (text, name) bttextnamecmp(text, name),

	OPERATOR 1 < (name, text), OPERATOR 2 <= (name, text),
	OPERATOR 3 = (name, text),
	OPERATOR 4 >= (name, text), OPERATOR 5 > (name, text),
	FUNCTION 1 (name, text) btnametextcmp(name, text);

CREATE OPERATOR CLASS bpchar_ops
DEFAULT FOR TYPE bpchar USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 bpcharcmp(bpchar, bpchar),
	FUNCTION 2 bpchar_sortsupport(internal);

CREATE OPERATOR CLASS bytea_ops
DEFAULT FOR TYPE bytea USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 byteacmp(bytea, bytea),
	FUNCTION 2 bytea_sortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR CLASS bit_ops
DEFAULT FOR TYPE bit USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 bitcmp(bit, bit),
	FUNCTION 4 btequalimage(oid);

CREATE OPERATOR CLASS varbit_ops
DEFAULT FOR TYPE varbit USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 varbitcmp(varbit, varbit),
	FUNCTION 4 btequalimage(oid);

--
-- Strings in byte order, whatever the collation: for LIKE
--

CREATE OPERATOR FAMILY text_pattern_ops USING hybrid;

CREATE OPERATOR CLASS text_pattern_ops
FOR TYPE text USING hybrid FAMILY text_pattern_ops AS
	OPERATOR 1 ~<~, OPERATOR 2 ~<=~, OPERATOR 3 =, OPERATOR 4 ~>=~, OPERATOR 5 ~>~,
	FUNCTION 1 bttext_pattern_cmp(text, text),
	FUNCTION 2 bttext_pattern_sortsupport(internal),
	FUNCTION 4 hybrid_codec_pattern(internal);

CREATE OPERATOR CLASS varchar_pattern_ops
FOR TYPE text USING hybrid FAMILY text_pattern_ops AS
	STORAGE text;

CREATE OPERATOR CLASS bpchar_pattern_ops
FOR TYPE bpchar USING hybrid AS
	OPERATOR 1 ~<~, OPERATOR 2 ~<=~, OPERATOR 3 =, OPERATOR 4 ~>=~, OPERATOR 5 ~>~,
	FUNCTION 1 btbpchar_pattern_cmp(bpchar, bpchar),
	FUNCTION 2 btbpchar_pattern_sortsupport(internal),
	FUNCTION 4 hybrid_codec_pattern(internal);

--
-- Strings stored encoded, in order (HOPE); options scheme and dictionary.  The
-- classes are families of their own because their codecs differ.
--

CREATE OPERATOR FAMILY text_hope_ops USING hybrid;

CREATE OPERATOR CLASS text_hope_ops
FOR TYPE text USING hybrid FAMILY text_hope_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 bttextcmp(text, text),
	FUNCTION 2 bttextsortsupport(internal),
	FUNCTION 5 hybrid_hope_options(internal),
	FUNCTION 4 hybrid_codec_hope(internal);

CREATE OPERATOR CLASS varchar_hope_ops
FOR TYPE text USING hybrid FAMILY text_hope_ops AS
	STORAGE text;

-- as text_ops has them: the planner takes only such a family for btree's
ALTER OPERATOR FAMILY text_hope_ops USING hybrid ADD
	OPERATOR 1 < (name, name), OPERATOR 2 <= (name, name),
	OPERATOR 3 = (name, name),
	OPERATOR 4 >= (name, name), OPERATOR 5 > (name, name),
	FUNCTION 1 (name, name) btnamecmp(name, name),

	OPERATOR 1 < (text, name), OPERATOR 2 <= (text, name),
	OPERATOR 3 = (text, name),
	OPERATOR 4 >= (text, name), OPERATOR 5 > (text, name),
	FUNCTION 1 (text, name) bttextnamecmp(text, name),

	OPERATOR 1 < (name, text), OPERATOR 2 <= (name, text),
	OPERATOR 3 = (name, text),
	OPERATOR 4 >= (name, text), OPERATOR 5 > (name, text),
	FUNCTION 1 (name, text) btnametextcmp(name, text);

CREATE OPERATOR CLASS bpchar_hope_ops
FOR TYPE bpchar USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 bpcharcmp(bpchar, bpchar),
	FUNCTION 2 bpchar_sortsupport(internal),
	FUNCTION 5 hybrid_hope_options(internal),
	FUNCTION 4 hybrid_codec_hope(internal);

CREATE OPERATOR CLASS bytea_hope_ops
FOR TYPE bytea USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 byteacmp(bytea, bytea),
	FUNCTION 2 bytea_sortsupport(internal),
	FUNCTION 5 hybrid_hope_options(internal),
	FUNCTION 4 hybrid_codec_hope(internal);

CREATE OPERATOR CLASS text_pattern_hope_ops
FOR TYPE text USING hybrid AS
	OPERATOR 1 ~<~, OPERATOR 2 ~<=~, OPERATOR 3 =, OPERATOR 4 ~>=~, OPERATOR 5 ~>~,
	FUNCTION 1 bttext_pattern_cmp(text, text),
	FUNCTION 2 bttext_pattern_sortsupport(internal),
	FUNCTION 5 hybrid_hope_options(internal),
	FUNCTION 4 hybrid_codec_pattern_hope(internal);

--
-- Other scalar types; cidr is binary coercible to inet
--

CREATE OPERATOR CLASS uuid_ops
DEFAULT FOR TYPE uuid USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 uuid_cmp(uuid, uuid),
	FUNCTION 2 uuid_sortsupport(internal),
	FUNCTION 4 hybrid_codec(internal);

CREATE OPERATOR FAMILY network_ops USING hybrid;

CREATE OPERATOR CLASS inet_ops
DEFAULT FOR TYPE inet USING hybrid FAMILY network_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 network_cmp(inet, inet),
	FUNCTION 2 network_sortsupport(internal),
	FUNCTION 4 btequalimage(oid);

CREATE OPERATOR CLASS cidr_ops
FOR TYPE inet USING hybrid FAMILY network_ops AS
	STORAGE inet;

CREATE OPERATOR CLASS enum_ops
DEFAULT FOR TYPE anyenum USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 enum_cmp(anyenum, anyenum),
	FUNCTION 4 btequalimage(oid);

CREATE OPERATOR CLASS oidvector_ops
DEFAULT FOR TYPE oidvector USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btoidvectorcmp(oidvector, oidvector),
	FUNCTION 4 btequalimage(oid);

--
-- Composite types and documents
--

CREATE OPERATOR CLASS array_ops
DEFAULT FOR TYPE anyarray USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btarraycmp(anyarray, anyarray);

CREATE OPERATOR CLASS record_ops
DEFAULT FOR TYPE record USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btrecordcmp(record, record);

CREATE OPERATOR CLASS record_image_ops
FOR TYPE record USING hybrid AS
	OPERATOR 1 *<, OPERATOR 2 *<=, OPERATOR 3 *=, OPERATOR 4 *>=, OPERATOR 5 *>,
	FUNCTION 1 btrecordimagecmp(record, record);

CREATE OPERATOR CLASS range_ops
DEFAULT FOR TYPE anyrange USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 range_cmp(anyrange, anyrange);

CREATE OPERATOR CLASS multirange_ops
DEFAULT FOR TYPE anymultirange USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 multirange_cmp(anymultirange, anymultirange);

CREATE OPERATOR CLASS jsonb_ops
DEFAULT FOR TYPE jsonb USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 jsonb_cmp(jsonb, jsonb);

CREATE OPERATOR CLASS tsvector_ops
DEFAULT FOR TYPE tsvector USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 tsvector_cmp(tsvector, tsvector);

CREATE OPERATOR CLASS tsquery_ops
DEFAULT FOR TYPE tsquery USING hybrid AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 tsquery_cmp(tsquery, tsquery);

--
-- What btree's families have on this server beyond the above: support for
-- sorting ranges since 18.
--
CREATE FUNCTION hybrid_complete_operator_families() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

SELECT hybrid_complete_operator_families();

DROP FUNCTION hybrid_complete_operator_families();

-- Operator classes for types of other extensions, and users' own

CREATE FUNCTION hybrid_make_operator_classes(type regtype DEFAULT NULL,
	OUT operator_class text,
	OUT input_type regtype,
	OUT is_default boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'hybrid_make_operator_classes'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hybrid_make_operator_classes(regtype) IS
'make hybrid operator classes of the btree operator classes that have no counterpart yet, of one type or of all; returns them';

-- Inspection and maintenance functions

CREATE FUNCTION hybrid_version()
RETURNS text
AS 'MODULE_PATHNAME', 'hybrid_version'
LANGUAGE C STRICT STABLE PARALLEL SAFE;

COMMENT ON FUNCTION hybrid_version() IS
'version of the library that this session runs';

CREATE FUNCTION hybrid_merge(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'hybrid_merge'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hybrid_merge(regclass) IS
'move all entries of a hybrid index''s dynamic stage to the static stage now; returns how many';

CREATE FUNCTION hybrid_index_check(index regclass,
	heapallindexed boolean DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME', 'hybrid_index_check'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hybrid_index_check(regclass, boolean) IS
'raise an error if the structure of a hybrid index is damaged, or if a table row lacks its entry';

CREATE FUNCTION hybrid_index_stats(index regclass,
	nowait boolean DEFAULT false,
	OUT static_entries bigint,
	OUT static_tombstones bigint,
	OUT leaf_pages bigint,
	OUT inner_pages bigint,
	OUT static_bytes bigint,
	OUT height integer,
	OUT dynamic_entries bigint,
	OUT delta_pages bigint,
	OUT dynamic_bytes bigint,
	OUT free_pages bigint,
	OUT total_pages bigint,
	OUT total_bytes bigint,
	OUT bytes_per_entry double precision,
	OUT merges bigint,
	OUT merged_entries bigint,
	OUT merge_running boolean,
	OUT bloom_hits bigint,
	OUT bloom_misses bigint,
	OUT tree_memory bigint,
	OUT tree_entries bigint,
	OUT compact_entries bigint,
	OUT tree_rebuilds bigint,
	OUT tree_shared boolean,
	OUT filter_pages bigint,
	OUT filter_bytes bigint,
	OUT filter_checks bigint,
	OUT filter_negatives bigint,
	OUT filter_false_positives bigint,
	OUT unique_above bigint,
	OUT unique_absent bigint,
	OUT unique_present bigint,
	OUT unique_denied bigint,
	OUT unique_false_positives bigint,
	OUT membership_bytes bigint,
	OUT membership_making_bytes bigint,
	OUT fill double precision,
	OUT levels integer,
	OUT upper_entries bigint,
	OUT upper_bytes bigint,
	OUT moved_entries bigint,
	OUT written_bytes bigint,
	OUT write_amplification double precision,
	OUT heap_prefetches bigint,
	OUT hot_lookups bigint,
	OUT hot_hits bigint,
	OUT index_only_scans bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'hybrid_index_stats'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hybrid_index_stats(regclass, boolean) IS
'entries, pages and memory of both stages of a hybrid index; with nowait NULLs if it is gone or not to be had at once';

CREATE FUNCTION hybrid_dictionary_info(index regclass,
	OUT column_name name,
	OUT scheme text,
	OUT entries bigint,
	OUT bytes bigint,
	OUT memory bigint,
	OUT learned boolean,
	OUT sample_keys bigint,
	OUT compression double precision,
	OUT recent_keys bigint,
	OUT recent_compression double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'hybrid_dictionary_info'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION hybrid_dictionary_info(regclass) IS
'dictionaries of the encoded columns of a hybrid index, and what they reach';

CREATE FUNCTION hybrid_merge_progress_list(
	OUT dbid oid,
	OUT relid oid,
	OUT pid integer,
	OUT entries_total bigint,
	OUT entries_done bigint,
	OUT entries_moved bigint,
	OUT pass_level integer,
	OUT steps bigint,
	OUT started timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'hybrid_merge_progress_list'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW hybrid_merge_progress AS
SELECT d.datname, p.relid, p.pid, p.entries_total, p.entries_done,
	p.entries_moved, p.pass_level, p.steps, p.started
FROM hybrid_merge_progress_list() p
	LEFT JOIN pg_catalog.pg_database d ON d.oid = p.dbid;

COMMENT ON VIEW hybrid_merge_progress IS
'merges of hybrid indexes that are running, in all databases';

CREATE FUNCTION hybrid_memory_info(
	OUT dynamic_memory bigint,
	OUT limit_bytes bigint,
	OUT reserved_bytes bigint,
	OUT segments integer,
	OUT used_bytes bigint,
	OUT tree_bytes bigint,
	OUT indexes integer,
	OUT private_tree_bytes bigint,
	OUT slot_bytes bigint,
	OUT control_bytes bigint,
	OUT hot_bytes bigint,
	OUT hot_used_bytes bigint,
	OUT membership_bytes bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'hybrid_memory_info'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW hybrid_memory AS
SELECT * FROM hybrid_memory_info();

COMMENT ON VIEW hybrid_memory IS
'memory that all hybrid indexes of the server share';

--
-- Conversion: btree indexes become hybrid ones, and the other way round
--

CREATE FUNCTION hybrid_convert(index regclass, layout text DEFAULT NULL)
RETURNS regclass
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;

COMMENT ON FUNCTION hybrid_convert(regclass, text) IS
'make a btree index a hybrid one, or give a hybrid one this layout, with its table locked';

CREATE FUNCTION hybrid_revert(index regclass) RETURNS regclass
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

COMMENT ON FUNCTION hybrid_revert(regclass) IS
'make a hybrid index a btree one, with its table locked';

CREATE PROCEDURE hybrid_convert_concurrently(index regclass,
	layout text DEFAULT NULL)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE hybrid_convert_concurrently(regclass, text) IS
'make a btree index a hybrid one, or give a hybrid one this layout, while its table is read and written';

CREATE PROCEDURE hybrid_revert_concurrently(index regclass)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE hybrid_revert_concurrently(regclass) IS
'make a hybrid index a btree one, while its table is read and written';

CREATE PROCEDURE hybrid_convert_table(relation regclass)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE hybrid_convert_table(regclass) IS
'hybrid_convert_concurrently for all btree indexes of a table';

CREATE PROCEDURE hybrid_revert_table(relation regclass)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE hybrid_revert_table(regclass) IS
'hybrid_revert_concurrently for all hybrid indexes of a table';

CREATE PROCEDURE hybrid_convert_schema(schema regnamespace)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE hybrid_convert_schema(regnamespace) IS
'hybrid_convert_concurrently for all btree indexes of a schema';

CREATE PROCEDURE hybrid_revert_schema(schema regnamespace)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE hybrid_revert_schema(regnamespace) IS
'hybrid_revert_concurrently for all hybrid indexes of a schema';

-- Indexes that the caller may not look into or that are being built,
-- temporary ones of other sessions, and unlogged ones on a standby are left
-- out.  Nothing is waited for: of an index that is locked, or dropped
-- meanwhile, there is only the name.
CREATE VIEW hybrid_indexes AS
WITH readable AS MATERIALIZED (
	SELECT c.oid, n.nspname, t.relname AS tablename, c.relname
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_am am ON am.oid = c.relam AND am.amname IN ('hybrid', 'hybrid_hot')
		JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid AND i.indisready
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'i'
		AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
		AND (c.relpersistence = 'p' OR NOT pg_catalog.pg_is_in_recovery())
		AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')
			OR CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 170000
				THEN pg_catalog.has_table_privilege(t.oid, 'MAINTAIN') ELSE false END
			OR pg_catalog.has_table_privilege(t.oid, 'SELECT')
				AND NOT pg_catalog.row_security_active(t.oid)
			OR pg_catalog.pg_has_role('pg_stat_scan_tables', 'USAGE')))
SELECT r.nspname AS schemaname, r.tablename, r.relname AS indexname,
	r.oid AS indexrelid, s.*
FROM readable r, LATERAL hybrid_index_stats(r.oid::regclass, true) s;

COMMENT ON VIEW hybrid_indexes IS
'all hybrid indexes of the database that the caller may look into, with their hybrid_index_stats, NULL where these would have to wait';

GRANT SELECT ON hybrid_merge_progress, hybrid_indexes TO PUBLIC;

-- Privileges are those of the server's own statistics: docs/reliability.md.
-- Memory is shown as pg_shmem_allocations is.
REVOKE ALL ON FUNCTION hybrid_memory_info() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hybrid_memory_info() TO pg_read_all_stats;
GRANT SELECT ON hybrid_memory TO pg_read_all_stats;

--
-- What conversion would save
--

CREATE FUNCTION hybrid_estimate(index regclass,
	nowait boolean DEFAULT false,
	OUT entries bigint,
	OUT duplicates double precision,
	OUT btree_bytes bigint,
	OUT hybrid_bytes bigint,
	OUT pages_read bigint,
	OUT obstacle text,
	OUT trie_bytes bigint,
	OUT trie_obstacle text)
RETURNS record
AS 'MODULE_PATHNAME', 'hybrid_estimate'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION hybrid_estimate(regclass, boolean) IS
'size of a btree index as a hybrid one, estimated from a sample of its entries; with nowait NULLs if it is gone or not to be had at once';

-- Which indexes are there, and that nothing is waited for, is as in the view
-- hybrid_indexes.
CREATE VIEW hybrid_advice AS
WITH readable AS MATERIALIZED (
	SELECT c.oid, i.indrelid, i.indisunique, i.indisreplident, i.indisvalid,
		i.indisexclusion, i.indisclustered, c.relispartition, i.indnatts > i.indnkeyatts AS includes,
		pg_catalog.pg_stat_get_tuples_updated(i.indrelid) AS updates,
		pg_catalog.pg_stat_get_tuples_hot_updated(i.indrelid) AS hot_updates,
		pg_catalog.pg_stat_get_tuples_inserted(i.indrelid)
			+ pg_catalog.pg_stat_get_tuples_updated(i.indrelid)
			- pg_catalog.pg_stat_get_tuples_hot_updated(i.indrelid) AS writes,
		pg_catalog.pg_stat_get_numscans(c.oid) AS scans,
		pg_catalog.pg_stat_get_tuples_returned(c.oid) AS returned,
		pg_catalog.pg_stat_get_tuples_fetched(c.oid) AS fetched,
		pg_catalog.pg_stat_get_tuples_fetched(t.oid) AS by_bitmaps,
		(SELECT pg_catalog.sum(pg_catalog.pg_stat_get_tuples_returned(x.indexrelid) - pg_catalog.pg_stat_get_tuples_fetched(x.indexrelid))
			FROM pg_catalog.pg_index x WHERE x.indrelid = t.oid) AS not_fetched
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid AND i.indisready
		JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'i' AND c.relam = 403::oid AND c.oid >= 16384::oid
		AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema')
		AND NOT pg_catalog.starts_with(n.nspname::text, 'pg_toast_temp_')
		AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
		AND (c.relpersistence = 'p' OR NOT pg_catalog.pg_is_in_recovery())
		AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')
			OR CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 170000
				THEN pg_catalog.has_table_privilege(t.oid, 'MAINTAIN') ELSE false END
			OR pg_catalog.has_table_privilege(t.oid, 'SELECT')
				AND NOT pg_catalog.row_security_active(t.oid)
			OR pg_catalog.pg_has_role('pg_stat_scan_tables', 'USAGE')))
SELECT e.oid::regclass AS index,
	e.indrelid::regclass AS "table",
	e.btree_bytes AS size,
	e.hybrid_bytes AS hybrid_size,
	e.btree_bytes - e.hybrid_bytes AS saved,
	e.entries,
	pg_catalog.round(e.duplicates::numeric, 3) AS duplicates,
	e.indisunique AS is_unique,
	e.scans,
	e.writes,
	pg_catalog.round(e.writes::numeric / nullif(extract(epoch FROM pg_catalog.now() - d.stats_reset), 0::numeric), 3) AS writes_per_second,
	CASE WHEN e.why_not IS NOT NULL THEN e.why_not
		WHEN e.hybrid_bytes IS NULL THEN 'It is locked.'
		WHEN e.hybrid_bytes::numeric > 0.8 * e.btree_bytes::numeric THEN 'There is little to gain.'
		WHEN e.btree_bytes < 1048576 THEN 'It is small as it is.' END AS remark,
	CASE WHEN e.why_not IS NULL THEN
		pg_catalog.format(CASE WHEN e.indisexclusion
				THEN 'SELECT %I.hybrid_convert(%L::regclass%s)'
				ELSE 'CALL %I.hybrid_convert_concurrently(%L::regclass%s)' END,
			(SELECT n.nspname FROM pg_catalog.pg_extension x
				JOIN pg_catalog.pg_namespace n ON n.oid = x.extnamespace
				WHERE x.extname = 'hybridindex'),
			CASE WHEN e.relispartition
				THEN pg_catalog.pg_partition_root(e.oid::regclass)
				ELSE e.oid::regclass END,
			CASE WHEN e.index_only IN ('none', 'bitmaps') AND NOT e.relispartition
				THEN ', layout => ''trie''' ELSE '' END) END AS command,
	e.trie_bytes AS trie_size,
	CASE WHEN e.index_only IN ('none', 'bitmaps') THEN 'trie'
		WHEN e.index_only IS NOT NULL THEN 'columnar' END AS layout,
	CASE e.index_only
		WHEN 'impossible' THEN e.trie_obstacle
		WHEN 'useless' THEN 'The trie would save little.'
		WHEN 'unknown' THEN pg_catalog.format('Statistics of %s scans with %s entries do not tell whether there are index-only scans.', e.scans, e.returned)
		WHEN 'none' THEN pg_catalog.format('No index-only scans: of %s entries that scans returned, %s led to rows of the table.', e.returned, e.fetched)
		WHEN 'bitmaps' THEN pg_catalog.format('Probably no index-only scans: of %s entries that scans returned, %s led to rows of the table, and bitmap scans of the table fetched %s.', e.returned, e.fetched, e.by_bitmaps)
		WHEN 'some' THEN pg_catalog.format('Perhaps index-only scans, which the trie does not have: of %s entries that scans returned, %s led to rows of the table.', e.returned, e.fetched) END AS reason,
	CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 160000
			AND e.why_not IS NULL AND NOT e.indisunique AND NOT e.indisexclusion AND NOT e.indisclustered AND NOT e.includes
			AND e.updates >= 1000 AND e.hot_updates < e.updates / 2
		THEN pg_catalog.format('Of %s updates of the table %s were HOT. If they change this index''s columns and no others that have indexes, hybrid_hot leaves them HOT where blocks have room (fillfactor).', e.updates, e.hot_updates) END AS hot_updates
-- A condition on the index goes into subqueries, and so to an index before it is
-- estimated.  A plain scan fetches a row of the table for each entry that it
-- returns.  An index-only scan fetches few, and a bitmap scan counts them for the
-- table.
FROM (SELECT e.*,
		CASE WHEN e.why_not IS NOT NULL OR e.hybrid_bytes IS NULL THEN NULL
			WHEN e.trie_bytes IS NULL THEN 'impossible'
			WHEN e.trie_bytes::numeric > 0.8 * e.hybrid_bytes::numeric THEN 'useless'
			WHEN e.scans < 100 OR e.returned = 0 THEN 'unknown'
			WHEN (e.returned - e.fetched) * 100 <= e.returned THEN 'none'
			WHEN e.not_fetched * 100::numeric <= e.by_bitmaps::numeric * 101::numeric THEN 'bitmaps'
			ELSE 'some' END AS index_only
		FROM (SELECT r.*, e.*,
				CASE WHEN NOT r.indisvalid THEN 'It is not valid.'
					WHEN r.indisreplident
						AND pg_catalog.current_setting('server_version_num')::integer BETWEEN 170000 AND 179999
						THEN 'It is the replica identity, which has to be a btree index on PostgreSQL 17.'
					ELSE e.obstacle END AS why_not
			FROM readable r, LATERAL hybrid_estimate(r.oid::regclass, true) e) e) e
	LEFT JOIN pg_catalog.pg_stat_database d ON d.datname = pg_catalog.current_database();

COMMENT ON VIEW hybrid_advice IS
'all btree indexes of the database that the caller may look into: their size as hybrid indexes, estimated from samples, and the command to convert them';

CREATE FUNCTION hybrid_advise(index regclass DEFAULT NULL)
RETURNS SETOF hybrid_advice
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT * FROM hybrid_advice a
	WHERE hybrid_advise.index IS NULL OR a.index::oid = hybrid_advise.index::oid
	ORDER BY a.saved DESC NULLS LAST, a.index::text;
END;

COMMENT ON FUNCTION hybrid_advise(regclass) IS
'the view hybrid_advice, or its row about one index, largest savings first';

GRANT SELECT ON hybrid_advice TO PUBLIC;

-- Statements of sessions that have not loaded the library: it is loaded by
-- these, and takes part in the statement.  Others, and so DROP EXTENSION, can do
-- without a library that is not there.  They fire in every state of
-- session_replication_role, as the hook does that stands for them later.  Event
-- triggers fire in the order of their names: those of users have to see what the
-- last one leaves.
--
-- The tags are those of statements that make indexes, or make them again, or
-- look at their access methods: see concerns_us() in ddl/utility.c.  Of what
-- the grammar makes ALTER TABLE of, ALTER VIEW, MATERIALIZED VIEW and SEQUENCE
-- do nothing of it.  ALTER FOREIGN TABLE and ALTER TYPE do it to tables that
-- inherit, and CREATE SCHEMA by statements in it, which the hook sees.
CREATE FUNCTION hybrid_ddl_command()
RETURNS event_trigger
AS 'MODULE_PATHNAME', 'hybrid_ddl_command'
LANGUAGE C;

CREATE EVENT TRIGGER hybridindex_ddl_start ON ddl_command_start
WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE', 'ALTER FOREIGN TABLE',
	'CREATE INDEX', 'ALTER INDEX', 'CREATE SCHEMA', 'ALTER TYPE',
	'REFRESH MATERIALIZED VIEW')
EXECUTE FUNCTION hybrid_ddl_command();

CREATE EVENT TRIGGER _hybridindex_ddl_end ON ddl_command_end
WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE', 'ALTER FOREIGN TABLE',
	'CREATE INDEX', 'ALTER INDEX', 'CREATE SCHEMA', 'ALTER TYPE',
	'REFRESH MATERIALIZED VIEW')
EXECUTE FUNCTION hybrid_ddl_command();

ALTER EVENT TRIGGER hybridindex_ddl_start ENABLE ALWAYS;
ALTER EVENT TRIGGER _hybridindex_ddl_end ENABLE ALWAYS;

-- Indexes that leave updates HOT.  Servers before 16 know nothing of such.

DO $$
BEGIN
	IF pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.<) 160000 THEN
		RETURN;
	END IF;

	CREATE FUNCTION hybrid_hot_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C;

	COMMENT ON FUNCTION hybrid_hot_handler(internal) IS
	'hybrid_hot index access method handler';

	CREATE ACCESS METHOD hybrid_hot TYPE INDEX HANDLER hybrid_hot_handler;

	COMMENT ON ACCESS METHOD hybrid_hot IS
	'ordered index access method whose columns may change in HOT updates';
END $$;

CREATE FUNCTION hybrid_copy_operator_classes() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

SELECT hybrid_copy_operator_classes();

DROP FUNCTION hybrid_copy_operator_classes();

CREATE FUNCTION hybrid_convert_hot(index regclass) RETURNS regclass
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;

COMMENT ON FUNCTION hybrid_convert_hot(regclass) IS
'make an index one of access method hybrid_hot, in this transaction';

CREATE PROCEDURE hybrid_convert_hot_concurrently(index regclass)
AS 'MODULE_PATHNAME' LANGUAGE C;

COMMENT ON PROCEDURE hybrid_convert_hot_concurrently(regclass) IS
'make an index one of access method hybrid_hot while the table is written';
