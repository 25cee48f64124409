#!/usr/bin/env python3
"""Indexes that hold the beginnings of keys (layout = trie) beside others.

    bench/trie.py [--rows N] [--seconds S] [--rounds N] [--keys int8,uuid,pair]
                  [--methods btree,columnar,trie]
                  [--memory MB --restart-command CMD]

For each key type (random int8, random uuid, a pair of an int4 and a random int8)
a table for each method, with a unique index and 60 bytes a row beside the key.
Loaded in random order, 100 rows a statement, with the index from the start (that
is the rate of insertions); sizes of the index right after that, when it is at
rest, and REINDEXed; then rows looked up by keys that are there, and ranges of
ten rows in order, all methods in turn in each round.

With --memory (root only) the server is restarted in a control group of so much
memory, page cache included, a quarter of it shared_buffers, for the look-ups and
for insertions of another tenth.

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

SCHEMA = "bench_trie"
INDEX = {"btree": "USING btree (%s)", "columnar": "USING hybrid (%s)", "trie": "USING hybrid (%s) WITH (layout = trie)"}
# Columns, key of the n-th row, condition on a key, condition on what follows it.
KEYS = {
    "int8": ("k int8", "k", "hashint8extended({n}, 0)", "k = hashint8extended({n}, 0)", "k >= hashint8extended({n}, 0)"),
    "uuid": ("k uuid", "k", "md5(({n})::text)::uuid", "k = md5(({n})::text)::uuid", "k >= md5(({n})::text)::uuid"),
    "pair": ("a int4, k int8", "a, k", "({n}) % 100, hashint8extended({n}, 0)",
             "a = (({n}) % 100)::int4 AND k = hashint8extended({n}, 0)",
             "(a, k) >= ((({n}) % 100)::int4, hashint8extended({n}, 0))"),
}
LOAD = """CREATE OR REPLACE PROCEDURE load_{m}(first bigint, last bigint) LANGUAGE plpgsql AS $$
BEGIN
    WHILE first < last LOOP
        INSERT INTO t_{m} SELECT {key}, repeat('x', 60) FROM generate_series(first, least(first + 100, last) - 1) i;
        COMMIT;
        first := first + 100;
    END LOOP;
END $$"""
LOOP = """CREATE OR REPLACE PROCEDURE {name}_{m}(seconds float8, rows bigint, INOUT n bigint) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
    i bigint;
    found bigint;
BEGIN
    WHILE clock_timestamp() < until LOOP
        FOR j IN 1 .. 20 LOOP
            i := floor(random() * rows)::bigint;
            {query};
            n := n + found;
        END LOOP;
        COMMIT;
    END LOOP;
END $$"""


def prepare(server, keys, methods):
    columns, index, key, equal, above = KEYS[keys]
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    for m in methods:
        server.psql("CREATE TABLE t_%s (%s, pad text) WITH (autovacuum_enabled = off);"
                    "CREATE UNIQUE INDEX i_%s ON t_%s %s" % (m, columns, m, m, INDEX[m] % index), schema=SCHEMA)
        server.psql(LOAD.format(m=m, key=key.format(n="i")), schema=SCHEMA)
        query = "SELECT count(pad) INTO found FROM t_%s WHERE %s" % (m, equal.format(n="i"))
        server.psql(LOOP.format(name="find", m=m, query=query), schema=SCHEMA)
        query = ("SELECT count(pad) / 10 INTO found FROM (SELECT pad FROM t_%s WHERE %s ORDER BY %s LIMIT 10) x" %
                 (m, above.format(n="i"), index))
        server.psql(LOOP.format(name="range", m=m, query=query), schema=SCHEMA)


def size(server, m):
    return int(server.value("SELECT pg_relation_size('i_%s')" % m, SCHEMA))


def load(server, m, first, last):
    start = time.time()
    server.psql("CALL load_%s(%d, %d)" % (m, first, last), schema=SCHEMA)
    return (last - first) / (time.time() - start)


def settle(server, methods):
    """Until no file has changed for half a minute."""
    sizes, same = None, 0
    while same < 28:
        time.sleep(1)
        now = [size(server, m) for m in methods]
        same = same + 1 if now == sizes else 0
        sizes = now


def loop(server, name, m, seconds, rows):
    start = time.time()
    n = int(server.psql("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;"
                        "SET enable_sort = off; CALL %s_%s(%f, %d, 0)" % (name, m, seconds, rows), schema=SCHEMA)[-1][0])
    return n / (time.time() - start)


def table(title, methods, rates):
    """Medians, and of each round's ratio to columnar."""
    print("| %s | %s |" % (title, " | ".join(
        "%.0f (%.2f)" % (statistics.median(rates[m]),
                         statistics.median(a / b for a, b in zip(rates[m], rates["columnar" if "columnar" in methods else m])))
        for m in methods)), flush=True)


def measure_keys(server, args, keys, methods):
    prepare(server, keys, methods)
    parts = 10
    rates = {m: [] for m in methods}
    for part in range(parts):
        for m in methods[part % len(methods):] + methods[:part % len(methods)]:
            rates[m].append(load(server, m, args.rows * part // parts, args.rows * (part + 1) // parts))
    loaded = {m: size(server, m) for m in methods}
    print("\n%s, %d rows\n\n| | %s |\n| --- |%s" % (keys, args.rows, " | ".join(methods), " ---: |" * len(methods)))
    table("rows inserted a second (of columnar)", methods, rates)
    settle(server, methods)
    rest = {m: size(server, m) for m in methods}
    server.psql("VACUUM ANALYZE", schema=SCHEMA)
    if args.memory:
        begin_limit(server, args.memory, shared_buffers="%dMB" % (args.memory // 4),
                    **{"hybridindex.dynamic_memory": "%dMB" % max(args.memory // 16, 1), "hybridindex.hot_memory": "1MB"})
    try:
        for name, title in (("find", "look-ups a second"), ("range", "ranges of ten rows a second")):
            rates = {m: [] for m in methods}
            for _ in range(args.rounds):
                for m in methods:
                    rates[m].append(loop(server, name, m, args.seconds, args.rows))
            table(title, methods, rates)
        if args.memory:
            rates = {m: [] for m in methods}
            for part in range(args.rounds):
                for m in methods:
                    more = args.rows // 10 // args.rounds
                    rates[m].append(load(server, m, args.rows + part * more, args.rows + (part + 1) * more))
            table("rows inserted a second", methods, rates)
    finally:
        if args.memory:
            end_limit(server, "shared_buffers", "hybridindex.dynamic_memory", "hybridindex.hot_memory")
    if not args.memory:
        for m in methods:
            server.psql("SELECT hybrid_index_check('i_%s', true)" % m if m != "btree" else "SELECT 1", schema=SCHEMA)
            server.psql("REINDEX INDEX i_%s" % m, schema=SCHEMA)
    again = {m: size(server, m) for m in methods}
    for title, sizes in (("bytes an entry right after the load", loaded), ("at rest", rest),
                         ("REINDEXed" if not args.memory else "at the end", again)):
        print("| %s (of btree) | %s |" % (title, " | ".join(
            "%.2f (%.3f)" % (sizes[m] / args.rows, sizes[m] / sizes["btree"] if "btree" in methods else 0)
            for m in methods)), flush=True)
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", default=",".join(KEYS))
    parser.add_argument("--methods", default=",".join(INDEX))
    parser.add_argument("--memory", type=int)
    parser.add_argument("--restart-command")
    args = parser.parse_args()
    server = Server(args.restart_command)
    for keys in args.keys.split(","):
        measure_keys(server, args, keys, args.methods.split(","))


if __name__ == "__main__":
    main()
