#!/usr/bin/env python3
"""VACUUM of indexes that are on disk.

    bench/cold_vacuum.py --restart-command CMD [--rows N] [--rounds N]
                         [--concurrency N] [--direct] [--keep] [--reuse]
    bench/cold_vacuum.py --parallel [--rows N] [--rounds N] [--workers N]

A table of random int8 with a btree index, and one with a hybrid index.  Rows
are deleted, either of a narrow range of keys, so that a few pages of the index
change, or spread over all of them, one in a hundred.  The server is restarted,
and the file of the index dropped from the operating system's cache, but not those
of the table.  Then VACUUM says how long it took over the index: btree, hybrid, and
hybrid when hybridindex.prefetch is off.  With --direct (16 and later) the server
reads past the operating system, which then does not read ahead either.

With --parallel, VACUUM of a table with four equal indexes, everything cached,
with a worker and without, instead.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import glob
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.server import Server                       # noqa: E402

SCHEMA = "bench_cold_vacuum"
WATCH = """CREATE OR REPLACE PROCEDURE watch(INOUT ms float8) LANGUAGE plpgsql AS $$
DECLARE
    begun timestamptz;
    now_in text;
BEGIN
    FOR i IN 1 .. 100000 LOOP
        PERFORM pg_stat_clear_snapshot();
        SELECT phase INTO now_in FROM pg_stat_progress_vacuum;
        IF begun IS NULL AND now_in = 'vacuuming indexes' THEN
            begun := clock_timestamp();
        ELSIF begun IS NOT NULL AND now_in IS DISTINCT FROM 'vacuuming indexes' THEN
            ms := extract(epoch FROM clock_timestamp() - begun) * 1000;
            RETURN;
        END IF;
        PERFORM pg_sleep(0.002);
    END LOOP;
END $$"""


def load(server, rows, indexes):
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    for method in "btree", "hybrid":
        server.psql("SET maintenance_work_mem = '1GB';"
                    "CREATE TABLE t_%s (id int4, k int8) WITH (autovacuum_enabled = off);"
                    "INSERT INTO t_%s SELECT i, hashint8extended(i, 0) FROM generate_series(1, %d) i;"
                    "VACUUM t_%s" % (method, method, rows, method), schema=SCHEMA)
        for i in range(indexes):
            server.psql("SET maintenance_work_mem = '1GB'; CREATE INDEX t_%s_%d ON t_%s USING %s (k)" %
                        (method, i, method, method), schema=SCHEMA)
    server.psql(WATCH, schema=SCHEMA)


def forget(server, index):
    """Drops the file of an index from the operating system's cache."""
    path = Path(server.value("SHOW data_directory"), server.value("SELECT pg_relation_filepath('%s')" % index, SCHEMA))
    size = 0
    for name in [str(path)] + glob.glob(str(path) + ".*"):
        fd = os.open(name, os.O_RDONLY)
        os.fsync(fd)
        size += os.fstat(fd).st_size
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
    return size


def vacuum(server, table, settings, options="PARALLEL 0"):
    """Milliseconds over the indexes."""
    env = server.env(SCHEMA)
    watch = subprocess.Popen(["psql", "-XqAt", "-c", "CALL watch(0)"], env=env, stdout=subprocess.PIPE, text=True)
    subprocess.run(["psql", "-XqAt", "-c", "LOAD 'hybridindex'", "-c", "SET maintenance_work_mem = '256MB'",
                    "-c", settings, "-c", "VACUUM (TRUNCATE off, INDEX_CLEANUP on, %s) %s" % (options, table)],
                   env=env, check=True)
    return float(watch.communicate()[0])


def delete(server, table, spread, round):
    if spread:
        where = "id %% 100 = %d" % round
    else:
        width = 2 ** 64 // 200
        low = -2 ** 63 + round * width
        where = "k >= %d AND k < %d" % (low, low + width)
    server.psql("SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM %s WHERE %s" % (table, where),
                schema=SCHEMA)


def cold(server, args):
    print("| deleted | btree, MB | ms (rounds) | hybrid, MB | ms (rounds) | prefetch off, ms | of that |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    at = {"narrow": 0, "spread": 0}
    for spread in "narrow", "spread":
        times = {"btree": [], "hybrid": [], "without": []}
        size = {}
        for round in range(args.rounds):
            for method in list(times)[::1 if round % 2 == 0 else -1]:
                table = "t_btree" if method == "btree" else "t_hybrid"
                delete(server, table, spread == "spread", at[spread])
                at[spread] += 1
                server.psql("SELECT count(*) FROM %s" % table, schema=SCHEMA)
                server.restart(**({"debug_io_direct": "data"} if args.direct else {}))
                size[table] = forget(server, table + "_0")
                settings = "SET maintenance_io_concurrency = %d; SET hybridindex.prefetch = %s" % (
                    args.concurrency, "off" if method == "without" else "on")
                times[method].append(vacuum(server, table, settings))
        median = {m: statistics.median(t) for m, t in times.items()}
        print("| %s | %.0f | %.0f (%.0f to %.0f) | %.0f | %.0f (%.0f to %.0f) | %.0f (%.0f to %.0f) | %.2f |" % (
            spread, size["t_btree"] / 2 ** 20, median["btree"], min(times["btree"]), max(times["btree"]),
            size["t_hybrid"] / 2 ** 20, median["hybrid"], min(times["hybrid"]), max(times["hybrid"]),
            median["without"], min(times["without"]), max(times["without"]),
            median["hybrid"] / median["without"]), flush=True)


def parallel(server, args):
    print("| | alone, ms (rounds) | with a worker | ratio |")
    print("| --- | ---: | ---: | ---: |")
    settings = "SET max_parallel_maintenance_workers = 2; SET min_parallel_index_scan_size = 0"
    at = 0
    for method in "btree", "hybrid":
        times = {0: [], args.workers: []}
        for round in range(args.rounds):
            for workers in list(times)[::1 if round % 2 == 0 else -1]:
                delete(server, "t_" + method, True, at)
                at += 1
                server.psql("CHECKPOINT")
                times[workers].append(vacuum(server, "t_" + method, settings, "PARALLEL %d" % workers))
        alone, together = (statistics.median(t) for t in times.values())
        print("| %s | %.0f (%.0f to %.0f) | %.0f (%.0f to %.0f) | %.2f |" % (
            method, alone, min(times[0]), max(times[0]), together, min(times[args.workers]), max(times[args.workers]),
            alone / together), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10000000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=64, help="maintenance_io_concurrency")
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--restart-command")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    server = Server(args.restart_command)
    if not args.reuse:
        load(server, args.rows, 4 if args.parallel else 1)
    (parallel if args.parallel else cold)(server, args)
    if args.direct:
        server.restart(debug_io_direct=None)
    if not args.keep:
        server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
