#!/usr/bin/env python3
"""Scans through an index that has no relation to the order of its table.

    bench/cold_scans.py --memory MB --restart-command CMD [--rows N] [--seconds S]
                        [--rounds N] [--concurrency N] [--keep] [--reuse]
    bench/cold_scans.py --warm [--rows N] ...

A table of rows of a kilobyte has btree and hybrid indexes over equal columns:
random numbers (k), and groups of ten rows that lie anywhere (g).  Scans begin at
random places for some seconds:
* ranges of 1 to 10,000 rows in order of k, and the same backward
* index-only scans of a table without an all-visible page
* a nested loop whose inner side finds ten rows each time

Each runs with btree, with hybrid, and with hybrid when hybridindex.prefetch is off.

--memory MB (root only) restarts the server in a control group of that size, page
cache included, with a quarter of it as shared_buffers.  The table should be ten
times as large.  --warm limits nothing and reads everything before: what does
prefetching cost where nothing has to be read?

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.limit import begin_limit, end_limit         # noqa: E402
from harness.query_loop import create_query_loop, queries_per_second     # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_cold"
SCANS = {
    "1 row": "SELECT count(pad) FROM (SELECT pad FROM t WHERE %(k)s >= $1 ORDER BY %(k)s LIMIT 1) s",
    "10 rows": "SELECT count(pad) FROM (SELECT pad FROM t WHERE %(k)s >= $1 ORDER BY %(k)s LIMIT 10) s",
    "100 rows": "SELECT count(pad) FROM (SELECT pad FROM t WHERE %(k)s >= $1 ORDER BY %(k)s LIMIT 100) s",
    "1000 rows": "SELECT count(pad) FROM (SELECT pad FROM t WHERE %(k)s >= $1 ORDER BY %(k)s LIMIT 1000) s",
    "10000 rows": "SELECT count(pad) FROM (SELECT pad FROM t WHERE %(k)s >= $1 ORDER BY %(k)s LIMIT 10000) s",
    "1000 rows, backward": "SELECT count(pad) FROM (SELECT pad FROM t WHERE %(k)s <= -$1 ORDER BY %(k)s DESC "
                           "LIMIT 1000) s",
    "1000 rows, index-only": "SELECT count(%(k)s) FROM (SELECT %(k)s FROM t WHERE %(k)s >= $1 ORDER BY %(k)s "
                             "LIMIT 1000) s",
    "nested loop, 100 times 10 rows": "SELECT count(pad) FROM generate_series(1, 100) i, LATERAL (SELECT pad FROM t "
                                      "WHERE %(g)s = ($1 %% 16777216 + i * 7919) %% (SELECT max(%(g)s) FROM t) "
                                      "ORDER BY %(g)s LIMIT 20) s",
}


def load(server, rows):
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    server.psql("SET maintenance_work_mem = '1GB';"
                "CREATE TABLE t (kb int8, kh int8, gb int4, gh int4, pad text) WITH (autovacuum_enabled = off);"
                "ALTER TABLE t ALTER pad SET STORAGE PLAIN;"
                "INSERT INTO t SELECT k, k, g, g, repeat('x', 1000) FROM (SELECT hashint8extended(i, 0) AS k, "
                "((hashint8extended(i, 1) & 2147483647) %% (%d / 10))::int AS g FROM generate_series(1, %d) i) s;"
                "SELECT count(*) FROM t; ANALYZE t;"
                "CREATE INDEX t_kb ON t USING btree (kb); CREATE INDEX t_gb ON t USING btree (gb);"
                "CREATE INDEX t_kh ON t USING hybrid (kh); CREATE INDEX t_gh ON t USING hybrid (gh)" % (rows, rows),
                schema=SCHEMA)
    create_query_loop(server, SCHEMA)
    server.psql("CHECKPOINT")


def measure(server, args, scan, method):
    """Scans a second."""
    column = {"k": "kb", "g": "gb"} if method == "btree" else {"k": "kh", "g": "gh"}
    settings = ("SET effective_io_concurrency = %d; SET enable_seqscan = off; SET enable_bitmapscan = off; "
                "SET enable_indexonlyscan = %s; LOAD 'hybridindex'; SET hybridindex.prefetch = %s" %
                (args.concurrency, "on" if "only" in scan else "off", "off" if method == "without" else "on"))
    return queries_per_second(server, SCHEMA, settings, SCANS[scan] % column, args.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1200000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=64, help="effective_io_concurrency")
    parser.add_argument("--memory", type=int)
    parser.add_argument("--restart-command")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--scans", help="names that begin so")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    server = Server(args.restart_command)
    if not args.reuse:
        load(server, args.rows)
    try:
        if args.memory:
            begin_limit(server, args.memory, shared_buffers="%dMB" % (args.memory // 4),
                        **{"hybridindex.dynamic_memory": "4MB"})
        elif args.warm:
            for index in "t_kb", "t_gb", "t_kh", "t_gh", "t":
                server.psql("CREATE EXTENSION IF NOT EXISTS pg_prewarm; SELECT pg_prewarm('%s')" % index, schema=SCHEMA)
        print("| scan | btree a second | hybrid | of btree (rounds) | prefetch off, of btree |")
        print("| --- | ---: | ---: | ---: | ---: |", flush=True)
        for scan in SCANS:
            if args.scans and not scan.startswith(args.scans):
                continue
            rates = {"btree": [], "hybrid": [], "without": []}
            for round in range(args.rounds):
                for method in list(rates)[::1 if round % 2 == 0 else -1]:
                    rates[method].append(measure(server, args, scan, method))
            ratios = [[a / b for a, b in zip(rates[m], rates["btree"])] for m in ("hybrid", "without")]
            print("| %s | %.1f | %.1f | %.2f (%.2f to %.2f) | %.2f |" %
                  (scan, statistics.median(rates["btree"]), statistics.median(rates["hybrid"]),
                   statistics.median(ratios[0]), min(ratios[0]), max(ratios[0]), statistics.median(ratios[1])),
                  flush=True)
    finally:
        end_limit(server, "shared_buffers", "hybridindex.dynamic_memory")
    if not args.keep:
        server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
