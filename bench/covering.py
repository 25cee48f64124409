#!/usr/bin/env python3
"""Covering indexes: keys with a payload of some 200 bytes in INCLUDE.

    bench/covering.py [--rows N] [--seconds S] [--rounds N] [--payloads P,P]
                      [--memory MB --restart-command CMD] [--keep] [--reuse]

Tables whose rows come in random order of an int8 key have a btree and a hybrid
index with the payload, and a hybrid one WITH (compression = none):

    json    a user profile as JSON in a column of type text
    jsonb   the same as jsonb
    names   a list of package names: text without any structure
    event   what an event log has: a type, a page, an address, an agent (four columns)

E-mail addresses, package names and paths in them are the samples of test/data.  Printed
are sizes half a minute after the load and after REINDEX, and index-only scans of one row, of
100, and of 10,000 a second, of an all-visible table.  For the scans --memory MB (root
only) restarts the server in a control group of that size, page cache included, with
a quarter of it as shared_buffers.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.limit import begin_limit, end_limit         # noqa: E402
from harness.query_loop import create_query_loop, queries_per_second     # noqa: E402
from harness.samples import load_samples                # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_covering"
PROFILE = """format('{"id": %s, "email": "%s", "status": "%s", "plan": "%s", "created_at": "%s", "last_page": "%s", "visits": %s, "verified": %s}',
    i::int8 * 7919, e.s, (ARRAY['active', 'inactive', 'pending', 'suspended'])[1 + r % 4],
    (ARRAY['free', 'pro', 'team', 'enterprise'])[1 + r / 4 % 4],
    to_char(timestamp '2020-01-01' + r * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), left(p.s, 60), r % 1000,
    CASE WHEN r % 3 = 0 THEN 'true' ELSE 'false' END)"""
PAYLOADS = {
    "json": ("doc text COLLATE \"C\"", "doc", PROFILE),
    "jsonb": ("doc jsonb", "doc", PROFILE + "::jsonb"),
    "names": ("doc text", "doc", "left((SELECT string_agg(s, ' ') FROM package_names WHERE n BETWEEN r % 19000 AND r % 19000 + 11), 200)"),
    "event": ("kind text, page text, host inet, agent text", "kind, page, host, agent",
              "(ARRAY['page_view', 'click', 'purchase', 'sign_in', 'sign_out', 'search'])[1 + r % 6], p.s, "
              "('10.' || r % 256 || '.' || r / 256 % 256 || '.' || r / 65536 % 256)::inet, "
              "'Mozilla/5.0 (' || (ARRAY['X11; Linux x86_64', 'Windows NT 10.0; Win64; x64', 'Macintosh; Intel Mac OS X 10_15_7'])[1 + r % 3] "
              "|| ') AppleWebKit/537.36 (KHTML, like Gecko) Chrome/' || 90 + r % 40 || '.0.0.0 Safari/537.36'"),
}
METHODS = ("btree", "hybrid", "none")
SCANS = {"1 row": 1, "100 rows": 100, "10000 rows": 10000}


def prepare(server):
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    load_samples(server, SCHEMA)
    create_query_loop(server, SCHEMA)


def load(server, payload, rows):
    definition, columns, expression = PAYLOADS[payload]
    for method in METHODS:
        server.psql("CREATE TABLE %s_%s (k int8, %s) WITH (autovacuum_enabled = off);"
                    "CREATE INDEX ON %s_%s USING %s (k) INCLUDE (%s)%s" %
                    (payload, method, definition, payload, method, "btree" if method == "btree" else "hybrid", columns,
                     " WITH (compression = none)" if method == "none" else ""), schema=SCHEMA)
        server.psql("INSERT INTO %s_%s SELECT hashint8extended(i, 0), %s FROM (SELECT i, hashint8extended(i, 1) & 2147483647 AS r "
                    "FROM generate_series(1, %d) i) g JOIN emails e ON e.n = i %% (SELECT count(*) FROM emails) "
                    "JOIN paths p ON p.n = r %% (SELECT count(*) FROM paths) ORDER BY i" %
                    (payload, method, expression, rows), schema=SCHEMA)
        server.psql("VACUUM (FREEZE, ANALYZE) %s_%s" % (payload, method), schema=SCHEMA)


def sizes(server, payload):
    return [int(server.value("SELECT sum(pg_relation_size(indexrelid)) FROM pg_index WHERE indrelid = '%s_%s'::regclass" %
                             (payload, method), SCHEMA)) for method in METHODS]


def measure(server, args, payload, scan, method):
    """Scans a second."""
    columns = PAYLOADS[payload][1]
    # the payload has to be read, not only to be there
    query = ("SELECT max(k) + count(%s::text) FROM (SELECT k, %s FROM %s_%s WHERE k >= $1 ORDER BY k LIMIT %d) s" %
             (columns.split(", ")[-1], columns, payload, method, SCANS[scan]))
    return queries_per_second(server, SCHEMA, "SET enable_seqscan = off; SET enable_bitmapscan = off; "
                              "SET max_parallel_workers_per_gather = 0", query, args.seconds, lowest=-9e18)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300000)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rest", type=float, default=30, help="seconds between the load and the first sizes")
    parser.add_argument("--payloads", default=",".join(PAYLOADS))
    parser.add_argument("--memory", type=int)
    parser.add_argument("--restart-command")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    payloads = args.payloads.split(",")
    server = Server(args.restart_command)
    if not args.reuse:
        prepare(server)
        print("| payload | rows | btree, bytes a row | hybrid, of btree | compression = none | REINDEXed: btree | hybrid | none |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
        for payload in payloads:
            load(server, payload, args.rows)
        time.sleep(args.rest)
        for payload in payloads:
            loaded = sizes(server, payload)
            for method in METHODS:
                server.psql("REINDEX TABLE %s_%s" % (payload, method), schema=SCHEMA)
            built = sizes(server, payload)
            print("| %s | %d | %.1f | %.2f | %.2f | %.1f | %.2f | %.2f |" %
                  (payload, args.rows, loaded[0] / args.rows, loaded[1] / loaded[0], loaded[2] / loaded[0],
                   built[0] / args.rows, built[1] / built[0], built[2] / built[0]), flush=True)
        print()
    try:
        if args.memory:
            begin_limit(server, args.memory, shared_buffers="%dMB" % (args.memory // 4),
                        **{"hybridindex.dynamic_memory": "4MB"})
        print("| payload | index-only scan | btree a second | hybrid, of btree (rounds) | compression = none |")
        print("| --- | --- | ---: | ---: | ---: |", flush=True)
        for payload in payloads:
            for scan in SCANS:
                rates = {method: [] for method in METHODS}
                for round in range(args.rounds):
                    for method in METHODS[::1 if round % 2 == 0 else -1]:
                        rates[method].append(measure(server, args, payload, scan, method))
                ratios = [[a / b for a, b in zip(rates[m], rates["btree"])] for m in METHODS[1:]]
                print("| %s | %s | %.1f | %.2f (%.2f to %.2f) | %.2f |" %
                      (payload, scan, statistics.median(rates["btree"]), statistics.median(ratios[0]), min(ratios[0]),
                       max(ratios[0]), statistics.median(ratios[1])), flush=True)
    finally:
        if args.memory:
            end_limit(server, "shared_buffers", "hybridindex.dynamic_memory")
    if not args.keep:
        server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
