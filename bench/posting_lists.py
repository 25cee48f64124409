#!/usr/bin/env python3
"""Bytes an entry of indexes whose keys have many rows each, beside what the
lists hold as information.

    bench/posting_lists.py [--rows N] [--lists N,N] [--keep]

Tables of int4 keys in random order, each with another number of rows a key, have
btree and hybrid indexes that CREATE INDEX has just built.  Sizes are those of whole
files, and of the hybrid one's leaves.  The bound is log2 of the number of ways to
choose a list's rows of all rows.  Leaves also keep space for a bit an entry for hints
and tombstones, which is printed beside it.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import sys
from math import lgamma, log
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.server import Server                       # noqa: E402

SCHEMA = "bench_posting_lists"


def bound(rows, length):
    """Bytes an entry of a list."""
    ways = lgamma(rows + 1) - lgamma(length + 1) - lgamma(rows - length + 1)
    return ways / log(2) / length / 8


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--lists", default="2,10,100,1000,100000")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    server = Server()
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    print("| rows a key | btree | hybrid | of btree | its leaves | bound | and a bit |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for length in map(int, args.lists.split(",")):
        table = "lists_%d" % length
        # every key has `length` rows: the numbers of rows in random order, divided
        server.psql("CREATE TABLE %s AS SELECT ((row_number() OVER (ORDER BY hashint8extended(i, 1)) - 1) / %d)::int4 AS k, i "
                    "FROM generate_series(1, %d) i ORDER BY i; ALTER TABLE %s DROP i; VACUUM FREEZE %s;"
                    "CREATE INDEX %s_b ON %s (k); CREATE INDEX %s_h ON %s USING hybrid (k)" %
                    (table, length, args.rows, table, table, table, table, table, table), schema=SCHEMA)
        sizes = [float(server.value("SELECT pg_relation_size('%s_%s')" % (table, method), SCHEMA)) / args.rows
                 for method in "bh"]
        leaves = float(server.value("SELECT static_bytes FROM hybrid_index_stats('%s_h')" % table, SCHEMA)) / args.rows
        least = bound(args.rows, length)
        print("| %d | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f |" %
              (length, sizes[0], sizes[1], sizes[1] / sizes[0], leaves, least, least + 0.125), flush=True)
    if not args.keep:
        server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
