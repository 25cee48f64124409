#!/usr/bin/env python3
"""Single statements, hybrid beside btree: CPU and WAL a transaction.

    HYBRID_SERVER=18-plain ./dev bench statements.py [--only NAMES] [--rows N]
        [--rounds N] [--slices N] [--seconds S] [--clients N] [--jobs N]
        [--checkpoint | --default-checkpoints] [--at-once]

Clients of pgbench run one statement a transaction, prepared, on tables of a million
rows with synchronous_commit = off; harness/paired.py says how slices of time take
turns.  All indexes of a table are of one method.  --only names some of:
* insert: a row into a table whose primary key is a uuid, in random order
* uuid, int8: the row with a random key
* unindexed, indexed: an update by the int8 key of a column without an index, and of
  one with 1,000 values that has one
* sessions: rows inserted a second, as with insert, by 500 clients, after the seconds
  in which these load the library
* first: milliseconds of a connection's first look-up, with the library loaded by
  that, by session_preload_libraries, and by shared_preload_libraries.  From 18 on
  a look-up through btree loads it, too, so a database without the extension joins in
* queue: a job is inserted, the oldest one is locked with SKIP LOCKED, updated and
  deleted (bench/queue).  No VACUUM runs between three rounds of --jobs each

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.  Without
--restart-command, which ./dev gives, shared_buffers stays as it is, and first omits
shared_preload_libraries.
"""
import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.paired import HYBRID, Paired, Table, head, line, parse                     # noqa: E402
from harness.protocol import Connection                                                 # noqa: E402
from harness.server import BenchError                                                   # noqa: E402
from harness.workloads import script                                                    # noqa: E402

SESSIONS = 500
SESSIONS_SECONDS, SESSIONS_WARM = 12, 4         # of a run, and those not counted
CONNECTIONS = 40                                # of each kind
WITHOUT = "bench_without_hybridindex"           # a database
UUIDS = Table("u uuid NOT NULL, v int, filler text", "u",
              "SELECT md5(i::text)::uuid, i, 'filler ' || i FROM generate_series(1, %d) i")
NUMBERS = Table("id int8 NOT NULL, v int, n int, filler text", "id",
                "SELECT i, i, 1 + abs(hashint4(i)) %% 1000, 'filler ' || i FROM generate_series(1, %d) i")
INDEXED = Table(NUMBERS.columns, NUMBERS.key, NUMBERS.select, ["n"])
INSERT = ("\\set k random(1000000000, 1000000000000000000)\n"
          "INSERT INTO t VALUES (md5(:k::text)::uuid, 1, 'filler');\n")
PICK = "\\set id random(1, :rows)\n"
STATEMENTS = {
    "insert": ("unique uuid insert", UUIDS, INSERT),
    "uuid": ("look-up, uuid", UUIDS, PICK + "SELECT v FROM t WHERE u = md5(:id::text)::uuid;\n"),
    "int8": ("look-up, int8", NUMBERS, PICK + "SELECT v FROM t WHERE id = :id;\n"),
    "unindexed": ("update, unindexed", NUMBERS, PICK + "UPDATE t SET v = v + 1 WHERE id = :id;\n"),
    "indexed": ("update, indexed", INDEXED,
                PICK + "\\set n random(1, 1000)\nUPDATE t SET n = :n WHERE id = :id;\n"),
}


def statements(paired, names):
    head()
    for name in names:
        title, table, text = STATEMENTS[name]
        paired.load(table, paired.methods)
        paired.compare(title, text)


def sessions(paired):
    paired.load(UUIDS, paired.methods)
    rates = {method.name: [] for method in paired.methods}
    paired.server.psql("CHECKPOINT")
    for number in range(1 + paired.options.rounds):
        paired.checkpoint()
        for method in paired.methods if number % 2 == 0 else paired.methods[::-1]:
            timeline = paired.pgbench(method, INSERT, clients=SESSIONS, seconds=SESSIONS_SECONDS)[1]
            counted = [second[1] for second in timeline[SESSIONS_WARM:-1]]
            if number > 0:
                rates[method.name].append(statistics.mean(counted))
            paired.server.settle(method)
    btree, hybrid = rates.values()
    ratios = [h / b for b, h in zip(btree, hybrid)]
    print("\n| %d clients | btree a second | hybrid | ratio | of rounds |" % SESSIONS)
    print("| --- | ---: | ---: | ---: | --- |")
    print("| unique uuid insert | %.0f | %.0f | %.2f | %.2f to %.2f |" % (
        statistics.median(btree), statistics.median(hybrid), statistics.median(ratios), min(ratios), max(ratios)),
        flush=True)


# ---- a connection's first statement ----

def connect(schema, options, database):
    """Of a new connection: ms until it is there, of its first look-up and the next one,
    and the CPU time of its process after both."""
    start = time.perf_counter()
    connection = Connection("-c search_path=%s %s" % (schema, options), database)
    times = [time.perf_counter() - start]
    for _ in range(2):
        start = time.perf_counter()
        connection.query("SELECT v FROM t WHERE u = md5('17')::uuid")
        times.append(time.perf_counter() - start)
    connection.wait()
    # nanoseconds; /proc/PID/stat counts hundredths of a second
    cpu = int(Path("/proc/%d/schedstat" % connection.backend).read_text().split()[0]) / 1e9
    connection.close()
    return [1000 * seconds for seconds in (*times, cpu)]


def connections(preload, kinds, options=""):
    """kinds: {title: (schema, database)}, which take turns."""
    taken = {title: [] for title in kinds}
    for _ in range(CONNECTIONS):
        for title, (schema, database) in kinds.items():
            taken[title].append(connect(schema, options, database))
    for title, values in taken.items():
        print("| %s | %s | %s |" % (preload, title, " | ".join(
            "%.2f" % statistics.median(column) for column in zip(*values))), flush=True)


def first(paired):
    server = paired.server
    paired.load(UUIDS, paired.methods)
    kinds = {method.name: (method.schema, None) for method in paired.methods}
    try:
        server.psql("DROP DATABASE IF EXISTS %s" % WITHOUT)
        server.psql("SELECT format('CREATE DATABASE %s TEMPLATE %%I', current_database()) \\gexec" % WITHOUT)
        server.psql("\\connect %s\nDROP EXTENSION hybridindex CASCADE" % WITHOUT)
        print("\n| preload | index | connect, ms | first look-up | second | CPU of all |")
        print("| --- | --- | ---: | ---: | ---: | ---: |")
        connections("none", {"btree, no extension": (paired.methods[0].schema, WITHOUT), **kinds})
        connections("session", kinds, "-c session_preload_libraries=hybridindex")
        if paired.options.restart_command:
            server.restart(shared_preload_libraries="hybridindex")
            connections("shared", kinds)
    finally:
        if paired.options.restart_command:
            server.restart(shared_preload_libraries=None)
        server.psql("DROP DATABASE IF EXISTS %s" % WITHOUT)


# ---- jobs ----

def queue(paired):
    server, options = paired.server, paired.options
    for method in paired.methods:
        server.create_schema(method)
        server.psql(file="queue/schema.sql", schema=method.schema, variables={**method.variables(), "waiting": 1000})
    print()
    head("queue, a job")
    for number in range(1, 4):
        merges = paired.merges(paired.methods)
        sums = paired.round(paired.methods, script("queue/deleted.sql"), slices=1,
                            transactions=options.jobs // options.clients)
        print(line("round %d" % number, [sums], paired.merges(paired.methods) - merges), flush=True)


OTHERS = {"sessions": sessions, "first": first, "queue": queue}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=30000, help="in a round of the queue (30000)")
    options, wanted = parse(parser, [*STATEMENTS, *OTHERS])
    with Paired(options, "statements") as paired:
        single = [name for name in wanted if name in STATEMENTS]
        if single:
            statements(paired, single)
        for name in wanted:
            if name in OTHERS:
                OTHERS[name](paired)


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit("statements: %s" % error)
