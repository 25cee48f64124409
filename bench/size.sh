#!/bin/sh
# Index size, hybrid beside btree, over eight key sets.
#
#   bench/size.sh [ROWS]        uses libpq's variables (PGHOST, PGPORT, ...)
#
# Each set is loaded in random order into a table that has both indexes from
# the start (the ascending one in ascending order), so both see the same
# entries in the same order.  Text keys come from
# KEYS_DIR/{emails,package_names,paths}.txt.gz, by default the samples in test/data,
# which have fewer than ROWS.  Sizes are those of whole files, with the dynamic stage
# and the free list.  They are measured right after the load and at rest, when workers
# have found that inserts have ended: when the file has not changed for SIZE_REST seconds
# (28), or after a minute.
set -eu

rows=${1:-1000000}
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
keys=${KEYS_DIR:-$here/test/data}
out=${SIZE_CSV:-}
rest=${SIZE_REST:-28}
PSQL="psql -X -q -v ON_ERROR_STOP=1 -At"

$PSQL <<SQL
CREATE EXTENSION IF NOT EXISTS hybridindex;
DROP SCHEMA IF EXISTS hybrid_size CASCADE;
CREATE SCHEMA hybrid_size;
CREATE TABLE hybrid_size.result (n serial, name text, entries bigint, btree bigint,
	btree_reindexed bigint, hybrid bigint, hybrid_rest bigint, hybrid_reindexed bigint);
SQL

# NAME  COLUMN-DEFINITIONS  INDEX-COLUMNS  SELECT
measure() {
	name=$1 defs=$2 cols=$3 query=$4
	echo "loading $name" >&2
	$PSQL <<SQL
SET search_path = hybrid_size, public;
SET client_min_messages = warning;
DROP TABLE IF EXISTS t;
CREATE TABLE t ($defs);
CREATE INDEX t_btree ON t USING btree ($cols);
CREATE INDEX t_hybrid ON t USING hybrid ($cols);
SELECT setseed(0.5);
INSERT INTO t $query;
SQL
	# let the background merges that the load asked for come to an end
	for i in $(seq 1 600); do
		running=$($PSQL -c "SELECT merge_running FROM hybrid_index_stats('hybrid_size.t_hybrid')")
		[ "$running" = f ] && break
		sleep 0.1
	done
	$PSQL <<SQL
SET search_path = hybrid_size, public;
INSERT INTO result (name, entries, btree, hybrid)
	SELECT '$name', (SELECT count(*) FROM t), pg_relation_size('t_btree'), pg_relation_size('t_hybrid');
SQL
	# at rest: the file keeps its length
	same=0 last=
	for i in $(seq 1 60); do
		size=$($PSQL -c "SELECT pg_relation_size('hybrid_size.t_hybrid')")
		[ "$size" = "$last" ] && same=$((same + 1)) || same=0
		[ $same -ge "$rest" ] && break
		last=$size
		sleep 1
	done
	$PSQL <<SQL
SET search_path = hybrid_size, public;
UPDATE result SET hybrid_rest = pg_relation_size('t_hybrid') WHERE name = '$name';
SELECT hybrid_index_check('t_hybrid') \g /dev/null
REINDEX INDEX t_btree;
REINDEX INDEX t_hybrid;
UPDATE result SET btree_reindexed = pg_relation_size('t_btree'),
	hybrid_reindexed = pg_relation_size('t_hybrid') WHERE name = '$name';
DROP TABLE t;
SQL
}

text_set() {
	[ -r "$keys/$1.txt.gz" ] || { echo "skipping $1: no $keys/$1.txt.gz" >&2; return 0; }
	echo "SET client_min_messages = warning; DROP TABLE IF EXISTS hybrid_size.raw; CREATE UNLOGGED TABLE hybrid_size.raw (k text)" | $PSQL
	zcat "$keys/$1.txt.gz" | sed 's/\\/\\\\/g' | $PSQL -c "COPY hybrid_size.raw FROM STDIN"
	measure "$(echo "$1" | tr _ ' ')" 'k text COLLATE "C"' 'k' "SELECT k FROM (SELECT k FROM raw ORDER BY random() LIMIT $rows) s"
}

g="generate_series(1, $rows)"
measure 'random int8' 'k int8' 'k' "SELECT ((random() * 9007199254740992)::int8 << 10) # (random() * 1024)::int8 FROM $g"
measure 'ascending int8' 'k int8' 'k' "SELECT i FROM $g i"
measure 'random uuid' 'k uuid' 'k' "SELECT md5(random()::text || i)::uuid FROM $g i"
text_set emails
text_set package_names
text_set paths
measure '1000 distinct int4' 'k int4' 'k' "SELECT (random() * 999)::int4 FROM $g"
measure 'order line (four int4)' 'w int4, d int4, o int4, n int4' 'w, d, o, n' \
	"SELECT w, d, o, n FROM generate_series(1, greatest(1, $rows / 100000)) w, generate_series(1, 10) d, generate_series(1, 1000) o, generate_series(1, 10) n ORDER BY random()"

# bytes an entry, as the table of README.md
$PSQL <<SQL
SET search_path = hybrid_size, public;
SELECT '| key set | entries | btree | btree REINDEXed | hybrid | hybrid at rest | hybrid REINDEXed | hybrid / btree | at rest / btree | at rest / btree REINDEXed |'
	|| E'\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |';
SELECT format('| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |', name, to_char(entries, 'FM9,999,999'),
	round(btree::numeric / entries, 1), round(btree_reindexed::numeric / entries, 1),
	round(hybrid::numeric / entries, 1), round(hybrid_rest::numeric / entries, 1),
	round(hybrid_reindexed::numeric / entries, 1), round(hybrid::numeric / btree, 2),
	round(hybrid_rest::numeric / btree, 2), round(hybrid_rest::numeric / btree_reindexed, 2))
FROM result ORDER BY n;
SELECT format('| **geometric mean** | | | | | | | **%s** | **%s** | **%s** |',
	round(exp(avg(ln(hybrid::numeric / btree))), 3),
	round(exp(avg(ln(hybrid_rest::numeric / btree))), 3),
	round(exp(avg(ln(hybrid_rest::numeric / btree_reindexed))), 3))
FROM result;
SELECT format(E'\nWith both indexes REINDEXed: %s.',
	round(exp(avg(ln(hybrid_reindexed::numeric / btree_reindexed))), 3))
FROM result;
SQL
[ -z "$out" ] || $PSQL -c "COPY (SELECT * FROM hybrid_size.result ORDER BY n) TO STDOUT WITH CSV HEADER" > "$out"
$PSQL -c "SET client_min_messages = warning; DROP SCHEMA hybrid_size CASCADE"
