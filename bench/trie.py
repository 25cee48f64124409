#!/usr/bin/env python3
"""Indexes of prefixes (layout = trie) beside indexes of whole keys.

    bench/trie.py [--rows N] [--seconds S] [--rounds N] [--texts DIR]
                  [--keys int8,uuid,pair,emails,package_names,paths]
                  [--methods btree,columnar,trie] [--pad BYTES]
                  [--memory MB --restart-command CMD]

There is a table for each method and key type, with a unique index and 60 bytes a row
(--pad) beside the key.  The key types are random int8, random uuid, a pair of an int4
and a random int8, and text.  Texts are the samples of test/data, or of DIR, which may
be fewer than N.

The rate of inserts is that of a load in random order, 100 rows a statement, with the
index from the start.  The size of the index is measured right after that, at rest, and
after REINDEX.  Then rows are looked up by keys that are there, and ranges of ten rows
are read in order.  In each round the methods take turns.

--memory MB (root only) restarts the server in a control group of that size, page cache
included, with a quarter of it as shared_buffers.  Another two fifths of the rows are
inserted after the look-ups, with the merges that these begin.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.limit import begin_limit, end_limit         # noqa: E402
from harness.samples import NAMES as TEXTS, load_samples   # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_trie"
INDEX = {"btree": "USING btree (%s)", "columnar": "USING hybrid (%s)", "trie": "USING hybrid (%s) WITH (layout = trie)"}
# Columns, and keys of row i.
KEYS = {
    "int8": (["k int8"], ["hashint8extended(i, 0)"]),
    "uuid": (["k uuid"], ["md5(i::text)::uuid"]),
    "pair": (["a int4", "k int8"], ["i % 100", "hashint8extended(i, 0)"]),
}
TEXT = (['k text COLLATE "C"'], ["s"])
# Rows inserted with less memory, of those that there are: merges are to fall due several times.
INSERTED = 0.4
# Where rows [first, last) of a portion come from, whose keys are of i, or are s.
ROWS = "generate_series({first}, {last} - 1) i"
TEXT_ROWS = "{keys} WHERE n >= {first} AND n < {last}"
LOAD = """CREATE OR REPLACE PROCEDURE load_{m}(first bigint, last bigint) LANGUAGE plpgsql AS $$
BEGIN
    WHILE first < last LOOP
        INSERT INTO t_{m} SELECT {key}, repeat('x', {pad}) FROM {rows};
        COMMIT;
        first := first + 100;
    END LOOP;
END $$"""
LOOP = """CREATE OR REPLACE PROCEDURE {name}_{m}(seconds float8, rows bigint, INOUT n bigint) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
    i bigint;
    s text;
    found bigint;
    {variables};
BEGIN
    WHILE clock_timestamp() < until LOOP
        i := floor(random() * (rows - 20))::bigint;
        FOR {drawn} LOOP
            {draw}
            {query};
            n := n + found;
        END LOOP;
        COMMIT;
    END LOOP;
END $$"""


def prepare(server, keys, methods, texts, pad=60):
    """Returns how many rows there are, if it is known."""
    text = keys in TEXTS
    columns, key = TEXT if text else KEYS[keys]
    names = [c.split()[0] for c in columns]
    index = ", ".join(names)
    equal = " AND ".join("%s = v_%s" % (n, n) for n in names)
    above = "(%s) >= (%s)" % (index, ", ".join("v_" + n for n in names)) if len(names) > 1 else "k >= v_k"
    rows = (TEXT_ROWS if text else ROWS).format(keys=keys, first="first", last="least(first + 100, last)")
    drawn = "s IN SELECT x.s FROM %s x WHERE x.n >= i AND x.n < i + 20" % keys if text else "j IN 1 .. 20"
    draw = "" if text else "i := floor(random() * rows)::bigint;"
    draw += " ".join("v_%s := %s;" % pair for pair in zip(names, key))
    code = {"drawn": drawn, "draw": draw, "variables": "; ".join("v_" + c for c in columns)}
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    if text:
        load_samples(server, SCHEMA, texts)
    for m in methods:
        server.psql("CREATE TABLE t_%s (%s, pad text) WITH (autovacuum_enabled = off);"
                    "CREATE UNIQUE INDEX i_%s ON t_%s %s" % (m, ", ".join(columns), m, m, INDEX[m] % index), schema=SCHEMA)
        server.psql(LOAD.format(m=m, pad=pad, key=", ".join(key), rows=rows), schema=SCHEMA)
        query = "SELECT count(pad) INTO found FROM t_%s WHERE %s" % (m, equal)
        server.psql(LOOP.format(name="find", m=m, query=query, **code), schema=SCHEMA)
        query = ("SELECT count(pad) / 10 INTO found FROM (SELECT pad FROM t_%s WHERE %s ORDER BY %s LIMIT 10) x" %
                 (m, above, index))
        server.psql(LOOP.format(name="range", m=m, query=query, **code), schema=SCHEMA)
    return int(server.value("SELECT count(*) FROM %s" % keys, SCHEMA)) if text else None


def size(server, m):
    return int(server.value("SELECT pg_relation_size('i_%s')" % m, SCHEMA))


def load(server, m, first, last):
    start = time.time()
    server.psql("CALL load_%s(%d, %d)" % (m, first, last), schema=SCHEMA)
    return (last - first) / (time.time() - start)


def blocks_read(server, m):
    """Of the table and of its index, that were not in shared_buffers."""
    return [int(x) for x in server.psql("SELECT heap_blks_read, idx_blks_read FROM pg_statio_user_tables WHERE relid = 't_%s'::regclass" % m,
                                        schema=SCHEMA)[0]]


def wait_for_merges(server):
    """What one method's insertions have asked for is not to be done beside the other's."""
    while server.value("SELECT count(*) FROM hybrid_merge_progress") != "0":
        time.sleep(0.02)


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
    there = prepare(server, keys, methods, args.texts, args.pad)
    # some are for later insertions
    count = min(args.rows, there if not args.memory else int(there / (1 + INSERTED))) if there else args.rows
    inserted = int(count * INSERTED) // args.rounds * args.rounds
    parts = 10
    rates = {m: [] for m in methods}
    for part in range(parts):
        for m in methods[part % len(methods):] + methods[:part % len(methods)]:
            rates[m].append(load(server, m, count * part // parts, count * (part + 1) // parts))
    loaded = {m: size(server, m) for m in methods}
    print("\n%s, %d rows\n\n| | %s |\n| --- |%s" % (keys.replace("_", " "), count, " | ".join(methods), " ---: |" * len(methods)))
    table("rows inserted a second (of columnar)", methods, rates)
    settle(server, methods)
    rest = {m: size(server, m) for m in methods}
    # a sample that little memory holds
    server.psql("SET default_statistics_target = 10; VACUUM ANALYZE", schema=SCHEMA)
    for name, title in (("find", "look-ups a second"), ("range", "ranges of ten rows a second")):
        rates = {m: [] for m in methods}
        for _ in range(args.rounds):
            for m in methods:
                rates[m].append(loop(server, name, m, args.seconds, count))
        table(title, methods, rates)
    if args.memory:
        before = {m: blocks_read(server, m) for m in methods}
        rates = {m: [] for m in methods}
        more = inserted // args.rounds
        for part in range(args.rounds):
            for m in methods[::-1] if part % 2 else methods:
                start = time.time()
                load(server, m, count + part * more, count + (part + 1) * more)
                wait_for_merges(server)
                rates[m].append(more / (time.time() - start))
        # merges fall into some rounds: all together
        table("rows inserted a second", methods, {m: [len(r) / sum(1 / x for x in r)] for m, r in rates.items()})
        time.sleep(2)
        after = {m: blocks_read(server, m) for m in methods}
        print("| blocks read a row, table and index | %s |" % " | ".join(
            "%.3f, %.3f" % tuple((b - a) * 1.0 / inserted for a, b in zip(before[m], after[m]))
            for m in methods), flush=True)
    if not args.memory:
        for m in methods:
            server.psql("SELECT hybrid_index_check('i_%s', true)" % m if m != "btree" else "SELECT 1", schema=SCHEMA)
            server.psql("REINDEX INDEX i_%s" % m, schema=SCHEMA)
    again = {m: size(server, m) for m in methods}
    for title, sizes in (("bytes an entry right after the load", loaded), ("at rest", rest),
                         ("REINDEXed" if not args.memory else "at the end", again)):
        print("| %s (of btree) | %s |" % (title, " | ".join(
            "%.2f (%.3f)" % (sizes[m] / count, sizes[m] / sizes["btree"] if "btree" in methods else 0)
            for m in methods)), flush=True)
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", default=",".join([*KEYS, *TEXTS]))
    parser.add_argument("--methods", default=",".join(INDEX))
    parser.add_argument("--texts")
    parser.add_argument("--pad", type=int, default=60)
    parser.add_argument("--memory", type=int)
    parser.add_argument("--restart-command")
    args = parser.parse_args()
    server = Server(args.restart_command)
    if args.memory:
        begin_limit(server, args.memory, shared_buffers="%dMB" % (args.memory // 4),
                    **{"hybridindex.dynamic_memory": "%dMB" % max(args.memory // 16, 1), "hybridindex.hot_memory": "1MB"})
    try:
        for keys in args.keys.split(","):
            measure_keys(server, args, keys, args.methods.split(","))
    finally:
        if args.memory:
            end_limit(server, "shared_buffers", "hybridindex.dynamic_memory", "hybridindex.hot_memory")


if __name__ == "__main__":
    main()
