#!/usr/bin/env python3
"""The dynamic stage's tree while memory is plentiful, and while it is short.

    bench/elastic.py [--rows N] [--keys int8,uuid,text] [--rounds N]

A table grows by hundreds of rows, with a look-up after each hundred, until its
index has --rows entries in its dynamic stage.  There are three indexes:
* btree
* plain: hybrid, with memory for all entries
* elastic: hybrid, while another index's tree has half of the memory, so that this
  one becomes compact as it grows

Then look-ups and short ranges are timed within the server, and a part is inserted
once more.  In the end the other index is dropped, and the table grows on with
plentiful memory (shrink: what is compact becomes plain again).

Reported are entries a megabyte, rates (a second of the backend's CPU, as a
multiple of plain), and the statements' latencies as a client sees them while the
tree grows and shrinks.  Nothing is merged meanwhile.

Uses libpq's variables (PGHOST, PGPORT, PGUSER, PGDATABASE); a superuser.
hybridindex.dynamic_memory is set and reset.
"""
import argparse
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.protocol import Connection                 # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_elastic"
KEYS = {
    "int8": ("int8", "hashint8extended(%s, %d)"),
    "uuid": ("uuid", "md5((%s)::text || '%d')::uuid"),
    "text": ("text COLLATE \"C\"", "'customers/' || md5((%s)::text || '%d')"),
}
BATCH = 100

# the trigger of merges is 35 % of the memory at 12 bytes an entry, and half of
# the memory makes trees compact (docs/memory.md); the table grows by a fifth
ELASTIC_BYTES = 12 * 1.4 / 0.35
PLAIN_BYTES = 400


class Arm:
    def __init__(self, server, name, key, rows):
        self.server, self.name, self.rows = server, name, rows
        self.type, self.key = KEYS[key]
        self.table = "e_" + name
        self.latencies = []
        self.server.psql("CREATE TABLE %s (k %s) WITH (autovacuum_enabled = off); CREATE INDEX %s_k ON %s USING %s (k)" %
                         (self.table, self.type, self.table, self.table,
                          "btree" if name == "btree" else "hybrid"), schema=SCHEMA)
        self.connection = Connection("-c search_path=%s,public" % SCHEMA)
        for setting in ("enable_seqscan = off", "enable_bitmapscan = off", "plan_cache_mode = force_generic_plan", "jit = off",
                        "synchronous_commit = off"):
            self.connection.query("SET " + setting)
        self.connection.prepare("i", "INSERT INTO %s SELECT %s FROM generate_series($1::int8, $1::int8 + %d) g" %
                                (self.table, self.value("g"), BATCH - 1))
        self.connection.prepare("s", "SELECT k FROM %s WHERE k = %s" % (self.table, self.value("$1::int8")))

    def value(self, number, seed=1):
        return self.key % (number, seed)

    def cpu(self):
        """Seconds that the backend has had a processor."""
        with open("/proc/%d/stat" % self.connection.backend) as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def grow(self, first, last):
        """Inserts rows; returns seconds of CPU, and appends latencies."""
        started = self.cpu()
        for i in range(first, last, BATCH):
            for name, values in (("i", [str(i)]), ("s", [str(i // 2)])):
                begin = time.perf_counter()
                self.connection.execute(name, values)
                self.latencies.append(time.perf_counter() - begin)
        return self.cpu() - started

    def timed(self, sql):
        begin = self.cpu()
        self.connection.query(sql)
        return self.cpu() - begin

    def lookups(self, count, seed):
        return count / self.timed(
            "SELECT count((SELECT 1 FROM %s e WHERE e.k = q.k LIMIT 1)) FROM (SELECT %s k FROM generate_series(1, %d) g) q" %
            (self.table, self.value("(g * 7919::int8 %% %d)" % self.rows, seed), count))

    def ranges(self, count):
        return count / self.timed(
            "SELECT sum(n) FROM generate_series(1, %d) g, LATERAL (SELECT count(*) n FROM "
            "(SELECT k FROM %s e WHERE e.k > %s ORDER BY k LIMIT 100) z) y" % (count, self.table, self.value("g", 3)))

    def stats(self):
        return [int(v) for v in self.server.psql(
            "SELECT tree_entries, compact_entries, tree_memory FROM hybrid_index_stats('%s_k')" % self.table, schema=SCHEMA)[0]]

    def take_latencies(self):
        values = sorted(self.latencies)
        self.latencies = []
        return ["%.2f" % (1000 * v) for v in (statistics.median(values), values[int(len(values) * 0.999)], values[-1])]


def set_memory(server, size):
    server.configure(**{"hybridindex.dynamic_memory": "%dkB" % (size // 1024)})
    time.sleep(1.5)


def ballast(server, key, rows):
    """Another index, whose tree takes half of the memory."""
    kind, value = KEYS[key]
    server.psql("CREATE TABLE ballast (k %s) WITH (autovacuum_enabled = off); CREATE INDEX ballast_k ON ballast USING hybrid (k);"
                "SET hybridindex.merge_floor = 1000000000; INSERT INTO ballast SELECT %s FROM generate_series(1, %d) g;"
                "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM ballast WHERE k = %s" %
                (kind, value % ("g", 9), rows, value % ("0", 9)), schema=SCHEMA)


def run(server, name, key, rows, lookups):
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s" % (SCHEMA, SCHEMA))
    set_memory(server, int(rows * (ELASTIC_BYTES if name == "elastic" else PLAIN_BYTES)))
    if name == "elastic":
        ballast(server, key, int(rows))
    arm = Arm(server, name, key, rows)
    result = {"grow": rows / arm.grow(0, rows)}
    result["latency"] = arm.take_latencies()
    if name != "btree":
        entries, compact, memory = arm.stats()
        result["entries"] = entries / memory * 1e6
        result["compact"] = compact / entries
    result["present"] = arm.lookups(lookups, 1)
    result["absent"] = arm.lookups(lookups, 2)
    result["ranges"] = arm.ranges(lookups // 50)
    tenth = rows // 10
    arm.latencies = []
    result["insert"] = tenth / arm.grow(rows, rows + tenth)
    if name != "btree" and int(server.value("SELECT merges FROM hybrid_index_stats('%s_k')" % arm.table, SCHEMA)) > 0:
        sys.exit("there was a merge")
    if name == "elastic":
        arm.latencies = []
        server.psql("DROP TABLE ballast", schema=SCHEMA)
        set_memory(server, int(rows * PLAIN_BYTES))
        arm.grow(rows + tenth, rows + 2 * tenth)
        result["shrink"] = arm.take_latencies()
        result["left"] = arm.stats()[1] / arm.stats()[0]
    arm.connection.close()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500000)
    parser.add_argument("--lookups", type=int, default=100000)
    parser.add_argument("--keys", default="int8,uuid,text")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    server = Server()
    server.psql("CREATE EXTENSION IF NOT EXISTS hybridindex")
    server.configure(**{"hybridindex.merge_floor": 1000000000})
    print("| key | tree | entries/MB | compact | grow | insert | present | absent | ranges | ms: median, p99.9, max | shrink |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |")
    try:
        for key in args.keys.split(","):
            for _ in range(args.rounds):
                results = {name: run(server, name, key, args.rows, args.lookups) for name in ("btree", "plain", "elastic")}
                for name, r in results.items():
                    base = results["plain"]
                    ratios = ["%.2f" % (r[what] / base[what]) for what in ("grow", "insert", "present", "absent", "ranges")]
                    print("| %s | %s | %s | %s | %s | %s | %s |" % (
                        key, name, "%.0f" % r["entries"] if "entries" in r else "",
                        "%.2f" % r["compact"] if "compact" in r else "", " | ".join(ratios), ", ".join(r["latency"]),
                        ", ".join(r["shrink"]) + " (%.2f left)" % r["left"] if "shrink" in r else ""), flush=True)
    finally:
        server.configure(**{"hybridindex.dynamic_memory": None, "hybridindex.merge_floor": None})
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
