--
-- Functions of the library under declarations of other versions of the script: a row
-- has the columns that are declared, and those that the library does not know are NULL.
--
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/test/sql/helpers.sql'
\i :helpers
\set ECHO all
SET hybridindex.background_merge = off;
CREATE TABLE rr (a int, s text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO rr SELECT i, 'name ' || i FROM generate_series(1, 2000) i;
CREATE INDEX rr_a ON rr USING hybrid (a);
CREATE INDEX rr_b ON rr (a);
CREATE INDEX rr_s ON rr USING hybrid (s text_hope_ops);
CREATE FUNCTION rr_cmp(box, box) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END';
CREATE OPERATOR CLASS rr_ops DEFAULT FOR TYPE box USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 rr_cmp(box, box);

-- all functions of the library that return rows, and how they are called
CREATE VIEW rr_functions AS
SELECT p.proname::text AS name, p.prosrc, p.proretset AS set, oidvectortypes(p.proargtypes) AS arguments,
	(SELECT array_agg(format('%I %s', n, t::regtype) ORDER BY o) FROM unnest(p.proallargtypes, p.proargmodes, p.proargnames) WITH ORDINALITY u (t, m, n, o) WHERE m = 'o') AS columns,
	format('(%s)', (SELECT string_agg(CASE WHEN t = 'bool'::regtype THEN 'false' WHEN p.proname = 'hybrid_estimate' THEN '''rr_b''' WHEN p.proname = 'hybrid_dictionary_info' THEN '''rr_s'''
		WHEN p.proname = 'hybrid_make_operator_classes' THEN '''box''' ELSE '''rr_a''' END, ', ' ORDER BY o) FROM unnest(p.proargtypes) WITH ORDINALITY u (t, o))) AS call
FROM pg_proc p WHERE p.probin = '$libdir/hybridindex' AND 'o' = ANY (p.proargmodes);
SELECT name, set, cardinality(columns) AS columns, call FROM rr_functions ORDER BY name;

-- The rows of a statement, or its error.  What it does is undone.
CREATE FUNCTION rr_rows(query text, OUT rows jsonb, OUT error text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT coalesce(jsonb_agg(to_jsonb(q)), ''[]'') FROM (%s) q', query) INTO rows;
	RAISE EXCEPTION USING ERRCODE = 'P0099';
EXCEPTION
	WHEN SQLSTATE 'P0099' THEN NULL;
	WHEN OTHERS THEN error := format('%s %s', SQLSTATE, SQLERRM);
END $$;

-- The same of a function of the library, declared with this result.
CREATE FUNCTION rr_call(f rr_functions, result text, set bool) RETURNS record LANGUAGE plpgsql AS $$
DECLARE
	answer	record;
BEGIN
	EXECUTE format('CREATE FUNCTION rr_declared(%s) RETURNS %s %s AS ''$libdir/hybridindex'', %L LANGUAGE C', f.arguments, CASE WHEN set THEN 'SETOF' END, result, f.prosrc);
	answer := rr_rows('SELECT * FROM rr_declared' || f.call);
	EXECUTE format('DROP FUNCTION rr_declared(%s)', f.arguments);
	RETURN answer;
END $$;

-- Its rows are the library's in columns 1 to n, and NULL in the others.  Memory is
-- compared by its columns only.
CREATE FUNCTION rr_same(name text, whole jsonb, got jsonb, columns text[]) RETURNS bool LANGUAGE sql AS $$
	SELECT jsonb_array_length(whole) = jsonb_array_length(got) AND coalesce(bool_and(
		(SELECT bool_and(CASE WHEN name = 'hybrid_memory_info' AND w ? c THEN g -> c <> 'null' ELSE g -> c = coalesce(w -> c, 'null') END) FROM unnest(columns) c) AND
		(SELECT count(*) FROM jsonb_object_keys(g)) = cardinality(columns)), true)
	FROM (SELECT jsonb_array_elements(whole) AS w, jsonb_array_elements(got) AS g) x
$$;

CREATE FUNCTION rr_check() RETURNS TABLE (name text, n int, fewer bool, more bool, dropped bool, wrong_types bigint, no_row text, otherwise_set text) LANGUAGE plpgsql AS $$
DECLARE
	f		rr_functions;
	names	text[];
	whole	jsonb;
	got		record;
BEGIN
	FOR f IN SELECT * FROM rr_functions LOOP
		name := f.name;
		names := array(SELECT split_part(c, ' ', 1) FROM unnest(f.columns) WITH ORDINALITY u (c, o) ORDER BY o);
		whole := (rr_rows(format('SELECT * FROM %s%s', f.name, f.call))).rows;
		n := jsonb_array_length(whole);
		-- from one column to one less than there are
		fewer := true;
		FOR i IN 1 .. cardinality(names) - 1 LOOP
			EXECUTE format('CREATE TYPE rr_row AS (%s)', array_to_string(f.columns[1:i], ', '));
			got := rr_call(f, 'rr_row', f.set);
			fewer := fewer AND rr_same(name, whole, got.rows, names[1:i]);
			DROP TYPE rr_row;
		END LOOP;
		-- more, of any type
		EXECUTE format('CREATE TYPE rr_row AS (%s, one_more int8, of_tomorrow text)', array_to_string(f.columns, ', '));
		got := rr_call(f, 'rr_row', f.set);
		more := rr_same(name, whole, got.rows, names || '{one_more,of_tomorrow}'::text[]);
		-- dropped ones before, between and behind
		DROP TYPE rr_row;
		EXECUTE format('CREATE TYPE rr_row AS (x int, %s, y text, %s, z box)', f.columns[1], array_to_string(f.columns[2:], ', '));
		ALTER TYPE rr_row DROP ATTRIBUTE x, DROP ATTRIBUTE y, DROP ATTRIBUTE z;
		got := rr_call(f, 'rr_row', f.set);
		dropped := rr_same(name, whole, got.rows, names);
		DROP TYPE rr_row;
		-- another type, at each place
		wrong_types := 0;
		FOR i IN 1 .. cardinality(names) LOOP
			EXECUTE format('CREATE TYPE rr_row AS (%s)', (SELECT string_agg(CASE WHEN o = i THEN 'wrong point' ELSE c END, ', ' ORDER BY o) FROM unnest(f.columns) WITH ORDINALITY u (c, o)));
			got := rr_call(f, 'rr_row', f.set);
			wrong_types := wrong_types + (coalesce(got.error, '') = '42804 the function is not declared as the library has it')::int;
			DROP TYPE rr_row;
		END LOOP;
		got := rr_call(f, 'int8', f.set);
		no_row := left(got.error, 5);
		EXECUTE format('CREATE TYPE rr_row AS (%s)', array_to_string(f.columns, ', '));
		got := rr_call(f, 'rr_row', NOT f.set);
		otherwise_set := left(got.error, 5);
		DROP TYPE rr_row;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM rr_check() ORDER BY name;
CREATE FUNCTION rr_wrong(regclass, bool, OUT static_entries int8, OUT b int) AS '$libdir/hybridindex', 'hybrid_index_stats' LANGUAGE C;
SELECT hyb_error('SELECT rr_wrong(''rr_a'', false)');
DROP FUNCTION rr_wrong, rr_check, rr_same, rr_call, rr_rows;
DROP VIEW rr_functions;
DROP OPERATOR FAMILY rr_ops USING btree;
DROP FUNCTION rr_cmp;
DROP TABLE rr;
