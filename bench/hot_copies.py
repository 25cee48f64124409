#!/usr/bin/env python3
"""Look-ups of hot and other uuids, with less memory than the index takes.

    bench/hot_copies.py --memory MB --restart-command CMD [--rows N] [--seconds S]
                        [--rounds N] [--hot MB] [--buffers MB] [--patterns NAMES]
                        [--settle S] [--keep] [--reuse]

A table of rows with random uuids, in the order in which they were inserted, and
two equal columns of them, one with a btree index, one with a hybrid one.  Rows
are looked up by one uuid at a time, which comes from:
* the last 0.1, 1, 3, 10 or 30 % of the table (the recent rows of an application)
* all of the table by Zipf's law, the more recent the more often
* a window of 1 % that moves through the table once while it is measured

The server is restarted in a control group of --memory MB (root only), page cache
included, with a quarter of it, or --buffers, as shared_buffers.  The memory of hot
copies (--hot, a thirty-second of the memory) is taken from shared_buffers.
Three servers: btree, hybrid with hybridindex.hot_memory = 0, hybrid.  Each
pattern is run for --settle seconds before it is measured.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.limit import begin_limit, end_limit         # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_hot"
# The row that is looked up, counted back from the last one; u is random, done
# goes from 0 to 1 while it is measured.
PATTERNS = {
    "0.1 %": "u * 0.001 * n",
    "1 %": "u * 0.01 * n",
    "3 %": "u * 0.03 * n",
    "10 %": "u * 0.1 * n",
    "30 %": "u * 0.3 * n",
    "zipf 0.7": "n * u ^ (1 / 0.3)",
    "zipf 0.9": "n * u ^ (1 / 0.1)",
    "zipf 0.99": "n ^ u",
    "moving 1 %": "(0.99 * done + u * 0.01) * n",
    "all": "u * n",
}
RUN = """DROP PROCEDURE IF EXISTS run_%(name)s;
CREATE PROCEDURE run_%(name)s(seconds float8, n float8, INOUT hits bigint) LANGUAGE plpgsql AS $$
DECLARE
    begun timestamptz := clock_timestamp();
    done float8 := 0;
    u float8;
    r text;
BEGIN
    WHILE done < 1 LOOP
        FOR i IN 1 .. 20 LOOP
            u := random();
            SELECT pad INTO r FROM t WHERE %(column)s = md5((floor(n - (%(pattern)s))::bigint)::text)::uuid;
            hits := hits + (r IS NOT NULL)::int;
        END LOOP;
        COMMIT;
        done := extract(epoch FROM clock_timestamp() - begun) / seconds;
    END LOOP;
END $$"""


def names():
    return [(pattern, method, "%s_%d" % (method, number)) for number, pattern in enumerate(PATTERNS)
            for method in ("btree", "hybrid")]


def load(server, rows):
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    server.psql("SET maintenance_work_mem = '1GB';"
                "CREATE TABLE t (b uuid, h uuid, pad text) WITH (autovacuum_enabled = off);"
                "INSERT INTO t SELECT md5(i::text)::uuid, md5(i::text)::uuid, repeat('x', 60) "
                "FROM generate_series(1, %d) i;"
                "CREATE UNIQUE INDEX t_btree ON t USING btree (b);"
                "CREATE UNIQUE INDEX t_hybrid ON t USING hybrid (h); VACUUM ANALYZE t" % rows, schema=SCHEMA)


def procedures(server):
    for pattern, method, name in names():
        server.psql(RUN % {"name": name, "column": method[0], "pattern": PATTERNS[pattern]}, schema=SCHEMA)


def measure(server, args, method, name, rows):
    """Look-ups a second, and of those with hot copies the part that hit."""
    call = "CALL run_%s_%d(%%f, %d, 0)" % (method, list(PATTERNS).index(name), rows)
    settings = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; "
    stats = "SELECT hot_lookups, hot_hits FROM hybrid_index_stats('t_hybrid')"
    if args.settle:
        server.psql(settings + call % args.settle, schema=SCHEMA)
    before = server.psql(stats, schema=SCHEMA)[0]
    start = time.time()
    n = int(server.psql(settings + call % args.seconds, schema=SCHEMA)[0][0])
    rate = n / (time.time() - start)
    after = server.psql(stats, schema=SCHEMA)[0]
    asked = int(after[0]) - int(before[0])
    return rate, (int(after[1]) - int(before[1])) / n if asked else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10000000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--settle", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--memory", type=int)
    parser.add_argument("--buffers", type=int)
    parser.add_argument("--hot", type=int)
    parser.add_argument("--patterns", default=",".join(PATTERNS))
    parser.add_argument("--variants", default="btree,without,hybrid")
    parser.add_argument("--restart-command", required=True)
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    server = Server(args.restart_command)
    patterns = [p.strip() for p in args.patterns.split(",")]
    if not args.reuse:
        load(server, args.rows)
    procedures(server)
    rows = int(server.value("SELECT reltuples::bigint FROM pg_class WHERE oid = 't'::regclass", SCHEMA))
    hot = args.hot or max(args.memory // 32, 1)
    buffers = args.buffers or args.memory // 4
    sizes = server.psql("SELECT pg_size_pretty(pg_relation_size(r)) FROM unnest(ARRAY['t', 't_btree', 't_hybrid']) r",
                        schema=SCHEMA)
    print("%d rows; table %s, btree %s, hybrid %s; memory %d MB, shared_buffers %d MB, hot copies %d MB\n" %
          (rows, *[s[0] for s in sizes], args.memory, buffers, hot))
    results = {}
    try:
        for round in range(args.rounds):
            for variant in args.variants.split(","):
                copies = hot if variant == "hybrid" else 0
                begin_limit(server, args.memory, shared_buffers="%dMB" % (buffers - copies),
                            **{"hybridindex.dynamic_memory": "1MB", "hybridindex.hot_memory": "%dMB" % copies})
                for pattern in patterns:
                    results.setdefault((variant, pattern), []).append(
                        measure(server, args, "btree" if variant == "btree" else "hybrid", pattern, rows))
    finally:
        end_limit(server, "shared_buffers", "hybridindex.dynamic_memory", "hybridindex.hot_memory")

    def rate(variant, pattern):
        return statistics.median(r[0] for r in results.get((variant, pattern), [(0, 0)]))

    print("| asked for | btree a second | hybrid, hot_memory = 0 | hybrid | of that without | of btree | hits |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for pattern in patterns:
        b, w, h = (rate(v, pattern) for v in ("btree", "without", "hybrid"))
        print("| %s | %.0f | %.0f | %.0f | %.2f | %.2f | %.0f %% |" %
              (pattern, b, w, h, h / w if w else 0, h / b if b else 0,
               100 * statistics.median(r[1] for r in results.get(("hybrid", pattern), [(0, 0)]))))
    if not args.keep:
        server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
