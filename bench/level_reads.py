#!/usr/bin/env python3
"""What reads pay for levels: YCSB C and E over an index of one level, and over
one with as many as it takes.

    bench/level_reads.py [--ratios 16,64] [--memory 512kB] [--warm 0.125]
                         [--seconds S] [--rounds N] [--scans N]
                         [--restart-command CMD [--callgrind PROGRAM --directory D]]

For each ratio of the index to hybridindex.dynamic_memory two tables of random int8
are loaded, one with levels = 1.  Then --warm of their rows more are inserted one
after the other, so that levels are what they are in the long run.  The methods take
turns in rounds, everything in shared_buffers:
* C reads a row
* E scans 1 to 100 rows (95 %) and inserts (5 %)
* "scans" are E's without inserts
* "keys" are the first ten keys of such a range, index-only

CPU is that of all processes of the server, merges included.

With --restart-command the server is restarted with shared_buffers of a
sixteenth of the index for *cold* scans of ten keys and look-ups: index blocks
read for each.  --callgrind PROGRAM counts the instructions of a backend for each
instead, from cache.  The server is started as that program, which runs postgres
under callgrind as ./dev instructions does (--dump-before=pg_backend_pid, files
DIRECTORY/%p as --directory names it).
"""
import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.protocol import Connection                 # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_levels"
ENTRY = 8.3                     # bytes of an int8 in a leaf
VARIANTS = {"one": "hybrid (k) WITH (levels = 1)", "auto": "hybrid (k)", "btree": "btree (k)"}
KEY = "hashint8extended(%s, 0)"
READS = {
    "C": "SELECT val FROM t_%(t)s WHERE k = " + KEY % "%(n)s",
    "scans": "SELECT count(val) FROM (SELECT k, val FROM t_%(t)s WHERE k >= " + KEY % "%(n)s" +
             " ORDER BY k LIMIT %(len)s) x",
    "keys": "SELECT count(*) FROM (SELECT k FROM t_%(t)s WHERE k >= " + KEY % "%(n)s" + " ORDER BY k LIMIT 10) x",
}


def megabytes(text):
    for unit, factor in (("kB", 1 / 1024), ("MB", 1)):
        if text.endswith(unit):
            return float(text[:-2]) * factor
    sys.exit("memory with a unit, please: 1MB")


def load(server, variants, rows, warm):
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    for t in variants:
        server.psql("CREATE TABLE t_{t} AS SELECT {key} AS k, repeat(md5(n::text), 3) AS val "
                    "FROM generate_series(1, {rows}) n; CREATE INDEX i_{t} ON t_{t} USING {index};"
                    "CREATE SEQUENCE s_{t} START {next}".format(
                        t=t, key=KEY % "n", rows=rows, index=VARIANTS[t], next=rows + 1), schema=SCHEMA)
        for _ in range(20):
            server.psql("INSERT INTO t_{t} SELECT {key}, repeat(md5(n::text), 3) FROM (SELECT nextval('s_{t}') AS n "
                        "FROM generate_series(1, {count})) x".format(t=t, key=KEY % "n", count=warm // 20), schema=SCHEMA)
        server.psql("VACUUM ANALYZE t_%s" % t, schema=SCHEMA)


def script(t, name, rows):
    head = "\\set n random(1, %d)\n\\set len random(1, 100)\n" % rows
    return head + READS[name] % {"t": t, "n": ":n", "len": ":len"} + ";\n"


def cached(server, variants, rows, options):
    insert = "INSERT INTO t_{t} SELECT {key}, repeat(md5(n::text), 3) FROM nextval('s_{t}') n;\n"
    print("| what | variant | round | a second | CPU, µs | p99, ms | merges |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for t in variants:          # into memory
        server.psql("SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(k) FROM t_%s WHERE k > 0 OR k <= 0;"
                    "SET enable_seqscan = on; SELECT count(val) FROM t_%s" % (t, t), schema=SCHEMA)
    for round in range(options.rounds):
        for name in ("C", "scans", "keys", "E"):
            for t in variants if round % 2 == 0 else variants[::-1]:
                scripts = [(script(t, "scans" if name == "E" else name, rows), 95)]
                if name == "E":
                    scripts.append((insert.format(t=t, key=KEY % "n"), 5))
                merges = "SELECT merges FROM hybrid_index_stats('i_%s')" % t
                before, first = server.cpu_seconds(), 0 if t == "btree" else int(server.value(merges, SCHEMA))
                got = server.pgbench(SCHEMA, scripts, options.seconds, 1, {}, round + 1)[0]
                time.sleep(1)
                print("| %s | %s | %d | %.0f | %.1f | %.2f | %d |" % (
                    name, t, round + 1, got["tps"], (server.cpu_seconds() - before) * 1e6 / got["transactions"],
                    got["p99"], 0 if t == "btree" else int(server.value(merges, SCHEMA)) - first), flush=True)


def parameters(name, number, rows, seed):
    return [((seed * 1000003 + i) * 7919 % rows + 1, i * 37 % 100 + 1) for i in range(number)]


def cold(server, variants, rows, options):
    size = int(server.value("SELECT pg_relation_size('i_%s')" % variants[0], SCHEMA))
    server.restart(shared_buffers="%dkB" % max(1024, size // 16 // 1024))
    print("| cold | variant | index blocks each |\n| --- | --- | ---: |")
    for name in ("C", "keys"):
        for t in variants:
            read = "SELECT idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = 'i_%s'" % t
            statement = READS[name] % {"t": t, "n": "n", "len": "len"}
            run = ("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;"
                   "DO $$ DECLARE n bigint; len int := 10; BEGIN FOR i IN %d .. %d LOOP n := 1 + i * 7919::bigint %% %d;"
                   "PERFORM * FROM (%s) y; END LOOP; END $$")
            server.psql(run % (1, 500, rows, statement), schema=SCHEMA)
            time.sleep(1)
            before = int(server.value(read, SCHEMA))
            server.psql(run % (1000, 1000 + options.scans, rows, statement), schema=SCHEMA)
            time.sleep(1)
            print("| %s | %s | %.3f |" % (name, t, (int(server.value(read, SCHEMA)) - before) / options.scans), flush=True)
    server.restart(shared_buffers=None)


def instructions(server, variants, rows, options):
    from instructions import counted
    normal = server.restart_command
    server.restart_command += " -t 300 -p " + options.callgrind
    server.restart()
    print("| instructions | variant | each |\n| --- | --- | ---: |")
    for name in ("C", "scans", "keys"):
        for t in variants:
            connection = Connection("-c search_path=%s,public -c plan_cache_mode=force_generic_plan "
                                    "-c hybridindex.background_merge=off" % SCHEMA)
            connection.prepare("mark", "SELECT pg_backend_pid()")
            cast = {"t": t, "n": "$1::bigint", "len": "50"}
            connection.prepare("statement", READS[name] % cast)
            total = 0
            for turn in range(2):
                connection.execute("mark")
                for n, _ in parameters(name, 300, rows, 1):
                    connection.execute("statement", [str(n)])
                connection.execute("mark")
                total = counted("%s/%d.%d" % (options.directory, connection.backend, 2 + 2 * turn))
            connection.close()
            print("| %s | %s | %.0f |" % (name, t, total / 300), flush=True)
    server.restart_command = normal
    server.restart()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratios", default="16,64")
    parser.add_argument("--memory", default="512kB")
    parser.add_argument("--warm", type=float, default=0.125)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--scans", type=int, default=5000)
    parser.add_argument("--variants", default="one,auto")
    parser.add_argument("--restart-command")
    parser.add_argument("--callgrind", metavar="PROGRAM")
    parser.add_argument("--directory", metavar="D")
    options = parser.parse_args()
    server = Server(options.restart_command)
    variants = options.variants.split(",")
    server.psql("CREATE EXTENSION IF NOT EXISTS hybridindex")
    server.configure(**{"hybridindex.dynamic_memory": options.memory})
    for ratio in (float(r) for r in options.ratios.split(",")):
        rows = int(ratio * megabytes(options.memory) * 2 ** 20 / ENTRY)
        load(server, variants, rows, int(rows * options.warm))
        print("\nratio %g, %d rows" % (ratio, rows))
        for t in variants:
            if t != "btree":
                print("%s: %s levels, %s of %s entries in newer ones, %s in the log, %s MB" % tuple([t] + server.psql(
                    "SELECT levels, upper_entries, static_entries, dynamic_entries, total_bytes / 1000000 "
                    "FROM hybrid_index_stats('i_%s')" % t, schema=SCHEMA)[0]), flush=True)
        if options.callgrind:
            instructions(server, variants, rows, options)
            continue
        cached(server, variants, rows, options)
        if options.restart_command:
            cold(server, variants, rows, options)
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)
    server.configure(**{"hybridindex.dynamic_memory": None})


if __name__ == "__main__":
    main()
