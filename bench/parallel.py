#!/usr/bin/env python3
"""CREATE INDEX and counts over a whole index, by one process and by several.

    bench/parallel.py [--rows N] [--rounds N] [--keys DIR]

An unlogged table has random int8, uuids, and e-mail addresses (with a number
before them, where there are not enough).  Indexes are built with
max_parallel_maintenance_workers 0 and 1, at the server's maintenance_work_mem,
by btree and hybrid in turn.  Then the int8 are counted in index-only scans of
all-visible pages by one process, by a leader and a worker, and by two workers.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.samples import load_samples                # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_parallel"
METHODS = ("btree", "hybrid")
COLUMNS = {"random int8": "i", "uuid": "u", "e-mails": "e"}
PROCESSES = {"one": (0, "on"), "leader, 1 worker": (1, "on"), "2 workers": (2, "off")}
COUNT = "SELECT count(i) FROM t WHERE i > -9223372036854775807"


def load(server, args):
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    load_samples(server, SCHEMA, args.keys)
    server.psql("CREATE UNLOGGED TABLE t (i int8, u uuid, e text COLLATE \"C\") WITH (autovacuum_enabled = off)", schema=SCHEMA)
    server.psql("INSERT INTO t SELECT hashint8extended(i, 0), md5(i::text)::uuid, i / c.n || s "
                "FROM (SELECT count(*) AS n FROM emails) c, generate_series(1, %d) i JOIN emails e ON e.n = i %% "
                "(SELECT count(*) FROM emails)" % args.rows, schema=SCHEMA)
    server.psql("VACUUM (FREEZE, ANALYZE) t", schema=SCHEMA)


def milliseconds(server, settings, statement):
    """Of the statement, by the server's clock."""
    return float(server.psql("""LOAD 'hybridindex'; SET client_min_messages = error; %s;
        CREATE TEMP TABLE at AS SELECT clock_timestamp() AS t;
        %s;
        SELECT extract(epoch FROM clock_timestamp() - t) * 1000 FROM at""" % (settings, statement),
                             schema=SCHEMA)[-1][0])


def print_ratios(name, times):
    """times[method][processes]: milliseconds of each round."""
    median = {m: {p: statistics.median(t) for p, t in of.items()} for m, of in times.items()}
    for p in median["hybrid"]:
        print("| %s | %s | %.0f | %.0f | %.2f | %.2f | %.2f |" %
              (name, p, median["btree"][p], median["hybrid"][p], median["hybrid"][p] / median["btree"][p],
               median["btree"]["one"] / median["btree"][p], median["hybrid"]["one"] / median["hybrid"][p]), flush=True)


def builds(server, args, column):
    times = {m: {"one": [], "leader, 1 worker": []} for m in METHODS}
    for _ in range(args.rounds):
        for workers, processes in enumerate(times["hybrid"]):
            for method in METHODS:
                times[method][processes].append(milliseconds(
                    server, "SET max_parallel_maintenance_workers = %d" % workers,
                    "CREATE INDEX x ON t USING %s (%s)" % (method, column)))
                server.psql("DROP INDEX x", schema=SCHEMA)
    return times


def scans(server, args):
    times = {m: {p: [] for p in PROCESSES} for m in METHODS}
    for method in METHODS:
        server.psql("CREATE INDEX x ON t USING %s (i); VACUUM t" % method, schema=SCHEMA)
        for _ in range(2 * args.rounds + 1):
            for processes, (workers, leader) in PROCESSES.items():
                times[method][processes].append(milliseconds(
                    server, "SET enable_seqscan = off; SET enable_bitmapscan = off; SET parallel_setup_cost = 0; "
                    "SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; "
                    "SET max_parallel_workers_per_gather = %d; SET parallel_leader_participation = %s; %s" %
                    (workers, leader, COUNT), COUNT))
        server.psql("DROP INDEX x", schema=SCHEMA)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10000000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", help="directory of emails.txt.gz, package_names.txt.gz, paths.txt.gz")
    args = parser.parse_args()
    server = Server(None)
    load(server, args)
    print("| | processes | btree, ms | hybrid, ms | of btree | btree, times one process | hybrid |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for name, column in COLUMNS.items():
        print_ratios("build, " + name, builds(server, args, column))
    print_ratios("count, int8", scans(server, args))
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
