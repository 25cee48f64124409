# extension: pg_partman
. "$(dirname "$0")/common.sh"
make_orders
sql -c 'CREATE SCHEMA partman' -c 'CREATE EXTENSION pg_partman SCHEMA partman'
version pg_partman

# partition TABLE [ARGUMENT]: range partitions of 1000, in the words of 4.x or of 5.x
kind=range
[ "$(sql -c "SELECT extversion < '5' FROM pg_extension WHERE extname = 'pg_partman'")" = f ] || kind=native
partition() {
	sql -c "SELECT partman.create_parent(p_parent_table := 'public.$1', p_control := 'at', p_type := '$kind',
		p_interval := '1000', p_premake := 3${2:+, $2})" >/dev/null
}
maintain() { sql -c "SELECT partman.run_maintenance('public.$1')" >/dev/null; }

count() { # what the indexes of partitions of a table are
	sql -c "SELECT string_agg(DISTINCT m.amname, ' ') FROM pg_inherits h JOIN pg_index i ON i.indrelid = h.inhrelid
		JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam WHERE h.inhparent = '$1'::regclass"
}

# An index of the partitioned table that is hybrid: new partitions have it.
sql <<-'EOF'
	CREATE TABLE events (at int NOT NULL, what text COLLATE "C") PARTITION BY RANGE (at);
	CREATE INDEX ON events USING hybrid (what);
EOF
partition events
sql -c "INSERT INTO events SELECT i, 'event ' || i FROM generate_series(0, 3500) i"
maintain events
must_be t "SELECT count(*) > 5 FROM pg_inherits WHERE inhparent = 'events'::regclass"
[ "$(count events)" = hybrid ]
agree
worked "partitions of a table with a hybrid index: all hybrid"

# Keys come from the template table before unique indexes of partitioned tables can be hybrid.
sql <<-'EOF'
	CREATE TABLE keyed (at int NOT NULL, id bigint) PARTITION BY RANGE (at);
	CREATE TABLE keyed_template (LIKE keyed);
	ALTER TABLE keyed_template ADD PRIMARY KEY (id) WITH (access_method = hybrid);
EOF
partition keyed "p_template_table := 'public.keyed_template'"
echo "a template's PRIMARY KEY WITH (access_method = hybrid) makes: $(count keyed)"
sql <<-'EOF'
	ALTER DATABASE postgres SET hybridindex.replace_btree = on;
	ALTER DATABASE postgres SET session_preload_libraries = hybridindex;
	\c
	CREATE TABLE later (at int NOT NULL, id bigint) PARTITION BY RANGE (at);
	CREATE TABLE later_template (LIKE later);
	ALTER TABLE later_template ADD PRIMARY KEY (id);
	CREATE INDEX ON later_template (at);
EOF
partition later "p_template_table := 'public.later_template'"
for table in later keyed; do
	sql -c "INSERT INTO $table SELECT i, i FROM generate_series(0, 3500) i"
	maintain "$table"
done
echo "with replace_btree a template's PRIMARY KEY and index make: $(count later)"
key=$(sql -c "SELECT min(i.indexrelid::regclass::text) FROM pg_inherits h JOIN pg_index i ON i.indrelid = h.inhrelid
	WHERE h.inhparent = 'keyed'::regclass AND i.indisprimary")
sql -c "SELECT hybrid_convert('$key')" >/dev/null
worked "hybrid_convert of the key of a partition: $(sql -c "SELECT amname FROM pg_am m JOIN pg_class c ON c.relam = m.oid WHERE c.relname = '$key'")"
sql -c "CALL partman.partition_data_proc('public.keyed')" >/dev/null
agree
worked "run_maintenance and partition_data_proc"
