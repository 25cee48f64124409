-- What a user sees of a database's objects, a line for each fact, with names in
-- place of OIDs, but for those of the extension.
WITH mine AS (
	SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname !~ '^(pg_(catalog|toast)|information_schema$|hyb$)' AND c.relname !~ '^hybrid'
)
SELECT 'relation ' || name || ' ' || concat_ws(' ', relkind, relpersistence, relispartition, relhasindex,
	relreplident, relhasrules, relhastriggers, relrowsecurity, pg_get_userbyid(relowner),
	(SELECT spcname FROM pg_tablespace t WHERE t.oid = reltablespace), 'options', reloptions,
	'acl', relacl, 'of', nullif(reloftype, 0)::regtype, 'comment', obj_description(mine.oid, 'pg_class'),
	'bound', pg_get_expr(relpartbound, mine.oid))
FROM mine
UNION ALL
SELECT 'column ' || name || '.' || attname || ' ' || concat_ws(' ', attnum, format_type(atttypid, atttypmod),
	attnotnull, attidentity, attgenerated, attislocal, attinhcount, attcollation::regcollation, attstorage,
	'target', nullif(attstattarget, -1), 'acl', attacl, 'default', pg_get_expr(adbin, adrelid),
	'comment', col_description(mine.oid, attnum))
FROM mine JOIN pg_attribute a ON attrelid = mine.oid AND attnum > 0 AND NOT attisdropped
	LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
WHERE relkind NOT IN ('t', 'S')
UNION ALL
SELECT 'index ' || name || ' ' || concat_ws(' ', indrelid::regclass, pg_get_indexdef(i.indexrelid),
	indnatts, indnkeyatts, 'unique', indisunique, 'nulls', indnullsnotdistinct, 'primary', indisprimary,
	'exclusion', indisexclusion, 'immediate', indimmediate, 'clustered', indisclustered,
	'valid', indisvalid, indisready, indislive, 'identity', indisreplident, 'columns', indkey, indoption,
	array(SELECT x::regcollation FROM unnest(indcollation::oid[]) WITH ORDINALITY u(x, k) ORDER BY k),
	array(SELECT opcname FROM unnest(indclass::oid[]) WITH ORDINALITY u(x, k) JOIN pg_opclass o ON o.oid = x ORDER BY k),
	pg_get_expr(indexprs, indrelid), 'where', pg_get_expr(indpred, indrelid))
FROM mine JOIN pg_index i ON i.indexrelid = mine.oid
UNION ALL
SELECT 'parent ' || inhrelid::regclass || ' ' || inhparent::regclass || ' ' || inhseqno || ' ' || inhdetachpending
FROM pg_inherits
UNION ALL
SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || concat_ws(' ', connamespace::regnamespace,
	contype, condeferrable, condeferred, convalidated, contypid::regtype, 'index', conindid::regclass,
	'of', (SELECT p.conname FROM pg_constraint p WHERE p.oid = c.conparentid), confrelid::regclass,
	conislocal, coninhcount, connoinherit, conkey, confkey, conpfeqop::regoperator[], conexclop::regoperator[],
	pg_get_constraintdef(c.oid), 'comment', obj_description(c.oid, 'pg_constraint'))
FROM pg_constraint c WHERE connamespace::regnamespace::text !~ '^(pg_catalog|information_schema|hyb)'
UNION ALL
SELECT 'trigger ' || tgrelid::regclass || ' ' || regexp_replace(tgname, '\d+', 'N') || ' ' || concat_ws(' ', tgfoid::regproc,
	tgtype, tgenabled, tgisinternal, tgdeferrable, tginitdeferred, tgconstrrelid::regclass, tgconstrindid::regclass,
	(SELECT conname FROM pg_constraint c WHERE c.oid = tgconstraint))
FROM pg_trigger
UNION ALL
SELECT 'depends ' || depender.type || ' ' || depender.identity || ' on ' || referenced.identity || ' ' || deptype::text
FROM pg_depend, pg_identify_object(classid, objid, objsubid) depender,
	pg_identify_object(refclassid, refobjid, refobjsubid) referenced
WHERE refclassid NOT IN ('pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_am'::regclass, 'pg_namespace'::regclass)
	AND deptype NOT IN ('e') AND classid NOT IN ('pg_amop'::regclass, 'pg_amproc'::regclass, 'pg_opfamily'::regclass)
	AND depender.identity !~ 'hybrid|hyb\.|pg_toast|information_schema' AND referenced.identity !~ 'hybrid|hyb\.'
UNION ALL
SELECT 'view ' || name || ' ' || pg_get_viewdef(oid) FROM mine WHERE relkind IN ('v', 'm')
UNION ALL
SELECT 'sequence ' || name || ' ' || concat_ws(' ', pg_sequence_parameters(oid)) FROM mine WHERE relkind = 'S'
UNION ALL
SELECT 'statistics ' || stxname || ' ' || pg_get_statisticsobjdef(oid) FROM pg_statistic_ext
ORDER BY 1
