#!/usr/bin/env python3
"""Pages of small indexes, hybrid beside btree, while they grow and afterwards.

    bench/small_sizes.py [--rows 0,1,10,...] [--keys ascending,int8,uuid,text]
                         [--rest SECONDS] [--single]

For each key set and number of rows a table has both indexes from the start.  A
hundred statements load it, each a transaction of its own; with --single there is one
for each row.  After each statement both files are measured.  `worst` is the greatest
difference, with what both had then.  `rest` is after --rest seconds (60) without
inserts.  A file of zero blocks has been created, and not been written to.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...).
"""
import argparse
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.server import Server                       # noqa: E402

SCHEMA = "bench_small_sizes"
KEYS = {
    "ascending": ("int8", "{n}"),
    "int8": ("int8", "hashint8extended({n}, 0)"),
    "uuid": ("uuid", "md5(({n})::text)::uuid"),
    "text": ('text COLLATE "C"', "md5(({n})::text)"),
}
ROWS = "0,1,10,100,1000,3000,10000,30000,100000"
LOAD = """CREATE PROCEDURE load_{t}(total int, step int) LANGUAGE plpgsql AS $$
DECLARE
    first int := 1;
    h int;
    b int;
BEGIN
    WHILE first <= total LOOP
        INSERT INTO {t} SELECT {key} FROM generate_series(first, least(first + step - 1, total)) n;
        COMMIT;
        first := first + step;
        h := pg_relation_size('{t}_hybrid') / 8192;
        b := pg_relation_size('{t}_btree') / 8192;
        INSERT INTO seen VALUES ('{t}', least(first - 1, total), b, h);
    END LOOP;
END $$"""


def load(server, table, kind, rows, single):
    """Returns pages of both when it was worst, and at the end."""
    column, key = KEYS[kind]
    server.psql("""CREATE TABLE {t} (k {column});
        CREATE INDEX {t}_btree ON {t} USING btree (k);
        CREATE INDEX {t}_hybrid ON {t} USING hybrid (k)""".format(t=table, column=column), schema=SCHEMA)
    server.psql(LOAD.format(t=table, key=key.format(n="n::int8")), schema=SCHEMA)
    if rows > 0:
        server.psql("CALL load_%s(%d, %d)" % (table, rows, 1 if single else max(rows // 100, 1)), schema=SCHEMA)
    end = sizes(server, table)
    worst = server.psql("""SELECT rows, btree, hybrid FROM seen WHERE name = '%s'
        ORDER BY hybrid - btree DESC, rows LIMIT 1""" % table, schema=SCHEMA)
    return ([int(value) for value in worst[0]] if worst else [0] + end), end


def sizes(server, table):
    return [int(server.value("SELECT pg_relation_size('%s_%s') / 8192" % (table, method), schema=SCHEMA))
            for method in ("btree", "hybrid")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=ROWS)
    parser.add_argument("--keys", default=",".join(KEYS))
    parser.add_argument("--rest", type=int, default=60)
    parser.add_argument("--single", action="store_true")
    args = parser.parse_args()
    server = Server()
    server.psql("CREATE EXTENSION IF NOT EXISTS hybridindex")
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s" % (SCHEMA, SCHEMA))
    server.psql("CREATE TABLE seen (name text, rows int, btree int, hybrid int)", schema=SCHEMA)

    loaded = []
    for kind in args.keys.split(","):
        for rows in map(int, args.rows.split(",")):
            table = "%s_%d" % (kind, rows)
            loaded.append((kind, rows, table) + load(server, table, kind, rows, args.single))
    time.sleep(args.rest)

    print("| key set | rows | btree | hybrid, as loaded | worst while loading: rows, btree, hybrid | difference | btree, at rest | hybrid | of btree |")
    print("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    ratios = {}
    for kind, rows, table, worst, end in loaded:
        rest = sizes(server, table)
        ratios.setdefault(rows, []).append(rest[1] / max(rest[0], 1))
        print("| %s | %d | %d | %d | %d, %d, %d | %+d | %d | %d | %.2f |" %
              (kind, rows, end[0], end[1], worst[0], worst[1], worst[2], worst[2] - worst[1],
               rest[0], rest[1], rest[1] / max(rest[0], 1)))
        server.psql("SELECT hybrid_index_check('%s_hybrid', true)" % table, schema=SCHEMA)
    for rows, parts in ratios.items():
        if rows >= 100000:
            print("\nGeometric mean of %d rows at rest: %.3f." %
                  (rows, math.exp(sum(map(math.log, parts)) / len(parts))))
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
