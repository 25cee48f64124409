#!/usr/bin/env python3
"""Loads of tables with a primary key: time, CPU and WAL a row, table included.

    bench/primary_keys.py [--keys ascending,random,uuid] [--rows N] [--step N]
                          [--how statement|rows] [--variants btree,hybrid] [--rounds N]

A table of one column is filled in steps (--step, a million rows): by one statement
a step, or by single rows of one transaction each (rows; synchronous_commit = off).
Variants take turns, step by step.  For each step are reported: seconds, CPU time of
all processes of the server, WAL bytes a row, and the levels that the index has
then.  `heap` is a table without index.  Settings are the server's; checkpoints fall
where they fall.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.server import Server                       # noqa: E402

SCHEMA = "bench_primary_keys"
KEYS = {
    "ascending": ("int8", "i"),
    "random": ("int8", "hashint8extended(i, 0)"),
    "uuid": ("uuid", "md5(i::text)::uuid"),
}
INDEXES = {"heap": "", "btree": "btree", "hybrid": "hybrid"}
WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
ROWS = """CREATE OR REPLACE PROCEDURE fill_%s(first bigint, last bigint) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN first .. last LOOP
        INSERT INTO t_%s VALUES (%s);
        COMMIT;
    END LOOP;
END $$"""


class Load:
    def __init__(self, server, key, variant, how):
        self.server, self.variant, self.how = server, variant, how
        self.type, self.expression = KEYS[key]
        self.done = 0
        am = INDEXES[variant]
        server.psql("CREATE TABLE t_%s (k %s);%s" % (
            variant, self.type, "CREATE UNIQUE INDEX i_%s ON t_%s USING %s (k);" % (variant, variant, am) if am else ""),
            schema=SCHEMA)
        server.psql(ROWS % (variant, variant, self.expression), schema=SCHEMA)

    def step(self, rows):
        first, last = self.done + 1, self.done + rows
        self.done = last
        wal, cpu, start = float(self.server.value(WAL)), self.server.cpu_seconds(), time.time()
        if self.how == "statement":
            # before 17 a statement that loads the library does not gather its entries
            self.server.psql("LOAD 'hybridindex'; INSERT INTO t_%s SELECT %s FROM generate_series(%d, %d) i" % (
                self.variant, self.expression, first, last), schema=SCHEMA)
        else:
            self.server.psql("SET synchronous_commit = off; CALL fill_%s(%d, %d)" % (self.variant, first, last),
                             schema=SCHEMA)
        seconds = time.time() - start
        # merges that were asked for belong to the load
        while self.variant == "hybrid" and int(self.server.value("SELECT count(*) FROM hybrid_merge_progress")):
            time.sleep(0.1)
        levels = "" if self.variant != "hybrid" else self.server.value(
            "SELECT levels FROM hybrid_index_stats('i_hybrid')", SCHEMA)
        return (seconds, (self.server.cpu_seconds() - cpu) * 1e6 / rows, (float(self.server.value(WAL)) - wal) / rows,
                levels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", default=",".join(KEYS))
    parser.add_argument("--rows", type=int, default=5000000)
    parser.add_argument("--step", type=int, default=1000000)
    parser.add_argument("--how", choices=("statement", "rows"), default="statement")
    parser.add_argument("--variants", default="btree,hybrid")
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    server = Server()
    server.psql("CREATE EXTENSION IF NOT EXISTS hybridindex")
    variants = args.variants.split(",")
    print("| keys | rows, millions | index | seconds | CPU, µs a row | WAL a row | levels |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for key in args.keys.split(","):
        got = {}
        for _ in range(args.rounds):
            server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s" % (SCHEMA, SCHEMA))
            loads = [Load(server, key, variant, args.how) for variant in variants]
            for done in range(args.step, args.rows + 1, args.step):
                for load in loads:
                    got.setdefault((done, load.variant), []).append(load.step(args.step))
        for (done, variant), results in got.items():
            print("| %s | %g | %s | %.2f | %.2f | %.0f | %s |" % (
                key, done / 1e6, variant, *(statistics.median(r[i] for r in results) for i in range(3)), results[0][3]),
                flush=True)
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
