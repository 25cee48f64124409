# extension: pg_partman
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE SCHEMA partman' -c 'CREATE EXTENSION pg_partman SCHEMA partman'
version pg_partman
count() { # what the indexes of partitions of a table are
	sql -c "SELECT string_agg(DISTINCT m.amname, ' ') FROM pg_inherits h JOIN pg_index i ON i.indrelid = h.inhrelid
		JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam WHERE h.inhparent = '$1'::regclass"
}

# An index of the partitioned table that is hybrid: new partitions have it.
sql <<-'EOF'
	CREATE TABLE events (at int NOT NULL, what text COLLATE "C") PARTITION BY RANGE (at);
	CREATE INDEX ON events USING hybrid (what);
	SELECT partman.create_parent('public.events', 'at', 'native', '1000', p_premake := 3) \g /dev/null
	INSERT INTO events SELECT i, 'event ' || i FROM generate_series(0, 3500) i;
	SELECT partman.run_maintenance('public.events') \g /dev/null
EOF
must_be t "SELECT count(*) > 5 FROM pg_inherits WHERE inhparent = 'events'::regclass"
[ "$(count events)" = hybrid ]
agree
worked "partitions of a table with a hybrid index: all hybrid"

# Keys come from the template table before unique indexes of partitioned tables can be hybrid.
sql <<-'EOF'
	CREATE TABLE keyed (at int NOT NULL, id bigint) PARTITION BY RANGE (at);
	CREATE TABLE keyed_template (LIKE keyed);
	ALTER TABLE keyed_template ADD PRIMARY KEY (id) WITH (access_method = hybrid);
	SELECT partman.create_parent('public.keyed', 'at', 'native', '1000', p_premake := 3,
		p_template_table := 'public.keyed_template') \g /dev/null
EOF
echo "a template's PRIMARY KEY WITH (access_method = hybrid) makes: $(count keyed)"
sql <<-'EOF'
	ALTER DATABASE postgres SET hybridindex.replace_btree = on;
	ALTER DATABASE postgres SET session_preload_libraries = hybridindex;
	\c
	CREATE TABLE later (at int NOT NULL, id bigint) PARTITION BY RANGE (at);
	CREATE TABLE later_template (LIKE later);
	ALTER TABLE later_template ADD PRIMARY KEY (id);
	CREATE INDEX ON later_template (at);
	SELECT partman.create_parent('public.later', 'at', 'native', '1000', p_premake := 3,
		p_template_table := 'public.later_template') \g /dev/null
	INSERT INTO later SELECT i, i FROM generate_series(0, 3500) i;
	SELECT partman.run_maintenance('public.later') \g /dev/null
	INSERT INTO keyed SELECT i, i FROM generate_series(0, 3500) i;
	SELECT partman.run_maintenance('public.keyed') \g /dev/null
EOF
echo "with replace_btree a template's PRIMARY KEY and index make: $(count later)"
key=$(sql -c "SELECT min(i.indexrelid::regclass::text) FROM pg_inherits h JOIN pg_index i ON i.indrelid = h.inhrelid
	WHERE h.inhparent = 'keyed'::regclass AND i.indisprimary")
sql -c "SELECT hybrid_convert('$key')" >/dev/null
worked "hybrid_convert of the key of a partition: $(sql -c "SELECT amname FROM pg_am m JOIN pg_class c ON c.relam = m.oid WHERE c.relname = '$key'")"
sql -c "CALL partman.partition_data_proc('public.keyed')" >/dev/null
agree
worked "run_maintenance and partition_data_proc"
