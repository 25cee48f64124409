-- What there is for the generator to choose from, one JSON object for each
-- table, view or partitioned table.
SELECT json_build_object('name', format('%I.%I', s.name, c.relname), 'schema', s.name, 'kind', c.relkind,
	'persistence', c.relpersistence, 'partition', c.relispartition,
	'key', CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END,
	'columns', (SELECT coalesce(json_agg(json_build_object('name', quote_ident(attname), 'type', format_type(atttypid, NULL),
			'generated', attgenerated <> '' OR attidentity = 'a') ORDER BY attnum), '[]')
		FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
	'indexes', (SELECT coalesce(json_agg(json_build_object('name', format('%I.%I', s.name, x.relname),
			'bare', quote_ident(x.relname), 'unique', indisunique, 'primary', indisprimary,
			'constraint', o.oid IS NOT NULL, 'partition', x.relispartition, 'plain', indexprs IS NULL AND indpred IS NULL,
			'where', pg_get_expr(indpred, indrelid),
			'columns', ARRAY(SELECT pg_get_indexdef(indexrelid, k, true) FROM generate_series(1, indnkeyatts) k)) ORDER BY x.relname), '[]')
		FROM pg_index i JOIN pg_class x ON x.oid = indexrelid LEFT JOIN pg_constraint o ON o.conindid = indexrelid AND o.contype IN ('p', 'u', 'x')
		WHERE indrelid = c.oid),
	'constraints', (SELECT coalesce(json_agg(json_build_object('name', quote_ident(conname), 'type', contype) ORDER BY conname), '[]')
		FROM pg_constraint WHERE conrelid = c.oid))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
	LATERAL (SELECT regexp_replace(n.nspname, '^pg_temp_.*', 'pg_temp') AS name) s
WHERE c.relkind IN ('r', 'p', 'm', 'v') AND s.name IN ('public', 's1', 'S 2', 'pg_temp') AND c.relname <> 'events' AND c.relname !~ '^hybrid'
ORDER BY n.nspname, c.relname
