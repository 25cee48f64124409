--
-- Differential helpers, included by every regression test and by TAP tests.
--
-- hyb_same(query, paths) runs the query once by sequential scan and once by each of
-- the given access paths, and compares the answers.  EXPLAIN has to say that the path
-- was taken, with a hybrid index and no other one.  Paths:
--
--		index		plain index scan
--		only		index-only scan
--		bitmap		bitmap scan
--		order		plain index scan that delivers the query's order
--		order_only	index-only scan that delivers the query's order
--		merge		merge join fed by index scans without a sort
--		nest		nested loop with an inner index scan
--
-- Answers are compared as sequences for the order paths and as multisets
-- otherwise.  A difference is reported as a warning and the result is false;
-- a path not taken is an error.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS hybridindex;

-- The answer as an array of row texts, under the given path ('seq': none of
-- the index scans).  The settings end with the function.
CREATE OR REPLACE FUNCTION hyb_rows(query text, path text,
									OUT rows text[], OUT plan jsonb)
LANGUAGE plpgsql
SET enable_seqscan = on SET enable_indexscan = off
SET enable_indexonlyscan = off SET enable_bitmapscan = off
SET enable_sort = on SET enable_incremental_sort = off
SET enable_hashjoin = on SET enable_mergejoin = on SET enable_nestloop = on
SET enable_material = on SET enable_hashagg = on SET cpu_operator_cost = 0.0025
SET max_parallel_workers_per_gather = 0 SET jit = off
AS $$
DECLARE
	p		json;
BEGIN
	IF path <> 'seq' THEN
		PERFORM set_config('enable_seqscan', 'off', true);
		IF path = 'bitmap' THEN
			PERFORM set_config('enable_bitmapscan', 'on', true);
		ELSE
			PERFORM set_config('enable_indexscan', 'on', true);
		END IF;
		IF path IN ('only', 'order_only') THEN
			-- wherever one is possible, though making values takes longer
			PERFORM set_config('enable_indexonlyscan', 'on', true),
				set_config('cpu_operator_cost', '0', true);
		END IF;
		IF path IN ('order', 'order_only', 'merge') THEN
			PERFORM set_config('enable_sort', 'off', true);
		END IF;
		IF path = 'merge' THEN
			PERFORM set_config('enable_hashjoin', 'off', true),
					set_config('enable_nestloop', 'off', true),
					set_config('enable_material', 'off', true);
		END IF;
		IF path = 'nest' THEN
			PERFORM set_config('enable_hashjoin', 'off', true),
					set_config('enable_mergejoin', 'off', true);
		END IF;
	END IF;
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO p;
	plan := p::jsonb;
	EXECUTE format('SELECT coalesce(array_agg(q::text), ''{}'') FROM (%s) q',
				   query) INTO rows;
END $$;

-- Is there a plan node of this type?
CREATE OR REPLACE FUNCTION hyb_plan_has(plan jsonb, node text)
RETURNS boolean LANGUAGE sql AS $$
	SELECT jsonb_path_exists(plan, '$.** ? (@."Node Type" == $n)',
							 jsonb_build_object('n', node))
$$;

-- Raise an error unless the plan takes the path with hybrid indexes only.
CREATE OR REPLACE FUNCTION hyb_assert_path(query text, plan jsonb, path text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	node	text := CASE path WHEN 'only' THEN 'Index Only Scan'
							  WHEN 'order_only' THEN 'Index Only Scan'
							  WHEN 'bitmap' THEN 'Bitmap Index Scan'
							  ELSE 'Index Scan' END;
	other	text;
BEGIN
	-- indexes that hold the beginnings of keys have no index-only scans
	IF current_setting('hybridindex.test_trie', true) = 'on' AND node = 'Index Only Scan'
		AND NOT hyb_plan_has(plan, node) THEN
		node := 'Index Scan';
	END IF;
	IF NOT hyb_plan_has(plan, node) OR
		(path = 'merge' AND NOT hyb_plan_has(plan, 'Merge Join')) OR
		(path = 'nest' AND NOT hyb_plan_has(plan, 'Nested Loop')) OR
		(path LIKE 'order%' AND hyb_plan_has(plan, 'Sort')) OR
		(path = 'merge' AND hyb_plan_has(plan, 'Sort'))
	THEN
		RAISE EXCEPTION 'path "%" not taken by: %', path, query
			USING DETAIL = jsonb_pretty(plan);
	END IF;
	SELECT string_agg(i.name #>> '{}', ', ') INTO other
	FROM jsonb_path_query(plan, '$.**."Index Name"') i(name)
	WHERE NOT EXISTS (SELECT FROM pg_class c JOIN pg_am a ON a.oid = c.relam
					  WHERE c.relname = i.name #>> '{}' AND c.relkind = 'i'
						AND a.amname IN ('hybrid', 'hybrid_hot'));
	IF other IS NOT NULL THEN
		RAISE EXCEPTION 'other index % used by: %', other, query;
	END IF;
END $$;

CREATE OR REPLACE FUNCTION hyb_same(query text,
									paths text DEFAULT 'index bitmap')
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	want	text[];
	want_s	text[];
	got		record;
	path	text;
	ok		boolean := true;
BEGIN
	want := (hyb_rows(query, 'seq')).rows;
	want_s := array(SELECT unnest(want) COLLATE "C" ORDER BY 1);
	FOREACH path IN ARRAY string_to_array(paths, ' ')
	LOOP
		got := hyb_rows(query, path);
		PERFORM hyb_assert_path(query, got.plan, path);
		CONTINUE WHEN got.rows = want;
		IF path NOT LIKE 'order%' THEN
			CONTINUE WHEN want_s =
				array(SELECT unnest(got.rows) COLLATE "C" ORDER BY 1);
		END IF;
		ok := false;
		RAISE WARNING 'path "%" differs: %', path, query
			USING DETAIL = format('%s rows instead of %s, missing %s, extra %s',
								  cardinality(got.rows), cardinality(want),
								  (array(SELECT unnest(want) EXCEPT ALL
										 SELECT unnest(got.rows)))[1:3],
								  (array(SELECT unnest(got.rows) EXCEPT ALL
										 SELECT unnest(want)))[1:3]);
	END LOOP;
	RETURN ok;
END $$;

-- The order of an index, and the opposite one.
CREATE OR REPLACE FUNCTION hyb_directions(index regclass)
RETURNS text[] LANGUAGE sql AS $$
	SELECT array[string_agg(format('%s %s', k, CASE o WHEN 0 THEN 'ASC' WHEN 1 THEN 'DESC NULLS LAST' WHEN 2 THEN 'NULLS FIRST' ELSE 'DESC' END), ', ' ORDER BY n),
		string_agg(format('%s %s', k, CASE o WHEN 0 THEN 'DESC' WHEN 1 THEN 'NULLS FIRST' WHEN 2 THEN 'DESC NULLS LAST' ELSE 'ASC' END), ', ' ORDER BY n)]
	FROM pg_index i, unnest(i.indoption::int2[]) WITH ORDINALITY u (o, n), pg_get_indexdef(i.indexrelid, n::int, false) k
	WHERE i.indexrelid = index
$$;

-- Looks keys up by index scans, forward and backward: as points, in ranges from the key
-- to the next one, and in ranges from the one before it to the key.  `keys` is a query
-- for the first columns of the index, with their names.  A sequential scan says which
-- keys are present.  Absent ones come between these, so that filters go on being asked.
-- `wrong` counts keys about which an index scan says something else; `checks` and
-- `negatives` count the filters' answers.
CREATE OR REPLACE FUNCTION hyb_lookups(index regclass, keys text, OUT present bigint, OUT absent bigint,
									   OUT wrong bigint, OUT checks bigint, OUT negatives bigint)
LANGUAGE plpgsql
SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = off
SET enable_incremental_sort = off SET max_parallel_workers_per_gather = 0 SET jit = off
SET client_min_messages = warning
AS $$
DECLARE
	tab		regclass := (SELECT indrelid FROM pg_index WHERE indexrelid = index);
	cols	text[];
	last	text;
	nulls	int;
	query	text;
	plan	jsonb;
	counts	bigint[];
BEGIN
	SELECT filter_checks, filter_negatives INTO checks, negatives FROM hybrid_index_stats(index);
	EXECUTE format('CREATE TEMP TABLE hyb_wanted AS %s', keys);
	cols := array(SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = to_regclass('hyb_wanted') AND attnum > 0 ORDER BY attnum);
	last := cols[cardinality(cols)];
	EXECUTE format('CREATE TEMP TABLE hyb_keys AS
		SELECT *, (row_number() OVER same)::float8 / count(*) OVER (PARTITION BY there) AS place
		FROM (SELECT %1$s, bool_or(wanted) AS wanted, NOT bool_and(wanted) AS there, lead(%2$s) OVER near AS next, lag(%2$s) OVER near AS previous
			FROM (SELECT %1$s, true AS wanted FROM hyb_wanted UNION ALL SELECT %1$s, false FROM %3$s) a
			GROUP BY %1$s WINDOW near AS (PARTITION BY %4$s ORDER BY %2$s)) g
		WHERE wanted WINDOW same AS (PARTITION BY there ORDER BY hashtext(g::text))',
		array_to_string(cols, ', '), last, tab, array_to_string(array['true'] || cols[:cardinality(cols) - 1], ', '));
	present := (SELECT count(*) FROM hyb_keys WHERE there);
	absent := (SELECT count(*) FROM hyb_keys WHERE NOT there);
	wrong := 0;
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true),
		set_config('enable_indexonlyscan', 'on', true), set_config('enable_sort', 'off', true);
	-- a query for each set of columns that are NULL
	FOR nulls IN 0 .. (1 << cardinality(cols)) - 1 LOOP
		SELECT format('SELECT array[count(*), count(*) FILTER (WHERE there <> ANY (found))] FROM (SELECT there, array[%s] AS found
			FROM (SELECT * FROM hyb_keys k WHERE %s ORDER BY place OFFSET 0) k OFFSET 0) q',
			string_agg(format('CASE WHEN %s THEN coalesce((SELECT true FROM %s t WHERE %s ORDER BY %s LIMIT 1), false) ELSE there END',
							  possible, tab, condition, direction), ', '),
			(SELECT string_agg(format('k.%s IS %s', col, CASE WHEN nulls >> (n::int - 1) & 1 = 1 THEN 'NULL' ELSE 'NOT NULL' END), ' AND ')
			FROM unnest(cols) WITH ORDINALITY c (col, n)))
		INTO query
		FROM unnest(hyb_directions(index)) direction,
			(VALUES ('true', 't.%1$s = k.%1$s'), ('k.next IS NOT NULL', 't.%1$s >= k.%1$s AND t.%1$s < k.next'),
				('k.previous IS NOT NULL', 't.%1$s > k.previous AND t.%1$s <= k.%1$s')) v (possible, bounds),
			LATERAL (SELECT string_agg(format(CASE WHEN nulls >> (n::int - 1) & 1 = 1 THEN 't.%1$s IS NULL' WHEN n = cardinality(cols) THEN bounds
					ELSE 't.%1$s = k.%1$s' END, col), ' AND ') AS condition FROM unnest(cols) WITH ORDINALITY c (col, n)) d;
		EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
		IF EXISTS (SELECT FROM jsonb_path_query(plan, '$.**."Index Name"') i (name) WHERE i.name #>> '{}' <> (SELECT relname FROM pg_class WHERE oid = index)) THEN
			RAISE EXCEPTION 'index % was not used', index USING DETAIL = jsonb_pretty(plan);
		END IF;
		EXECUTE query INTO counts;
		wrong := wrong + counts[2];
	END LOOP;
	DROP TABLE hyb_wanted, hyb_keys;
	SELECT filter_checks - checks, filter_negatives - negatives INTO checks, negatives FROM hybrid_index_stats(index);
END $$;

-- The error a statement raises: "SQLSTATE message / detail / hint".
CREATE OR REPLACE FUNCTION hyb_error(stmt text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state	text;
	msg		text;
	detail	text;
	hint	text;
BEGIN
	EXECUTE stmt;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, msg = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' / ', state || ' ' || msg,
					 nullif(detail, ''), nullif(hint, ''));
END $$;

-- hybrid_index_check on every hybrid index of a table: true, or its error.
CREATE OR REPLACE FUNCTION hyb_check(tab regclass, heapall boolean DEFAULT true)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM hybrid_index_check(i.indexrelid::regclass, heapall)
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_am a ON a.oid = c.relam
	WHERE i.indrelid = tab AND a.amname IN ('hybrid', 'hybrid_hot');
	RETURN true;
END $$;

-- Wait until no other session of this database holds back what VACUUM may
-- remove (autovacuum's ANALYZE, say).
CREATE OR REPLACE FUNCTION hyb_quiet()
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity
							  WHERE datname = current_database()
								AND pid <> pg_backend_pid()
								AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL));
		PERFORM pg_sleep(0.1), pg_stat_clear_snapshot();
	END LOOP;
END $$;

-- An operator class NAME_ops of hybrid, which orders a type by the function NAME_cmp.
CREATE OR REPLACE PROCEDURE hyb_operator_class(name text, type text DEFAULT 'int')
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE OPERATOR CLASS %1$I FOR TYPE %2$s USING hybrid AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 %3$I(%2$s, %2$s)',
		name || '_ops', type, name || '_cmp');
END $$;
