#!/usr/bin/env python3
"""A unique index of random uuids that is many times the memory: builds, inserts until
the log has been merged many times, look-ups, VACUUM; hybrid beside btree.

    HYBRID_SERVER=18-plain ./dev bench large.py [--rows N] [--memory MB,...]
        [--merges N] [--seconds S] [--most S] [--methods btree,hybrid]

One table of --rows uuids (200 million: 9 GB) gets an index of one method after the
other.  An index is built with 1 GB of maintenance_work_mem.  Then, for each --memory,
the server runs in a control group with that many megabytes, page cache included; a
quarter is shared_buffers, a sixteenth hybridindex.dynamic_memory.  There, in turn:

* inserts, 10,000 rows a statement, in windows of --seconds / 4.  They end after
  --seconds, and with hybrid not before the index has had --merges merges (or after
  --most seconds).  Each window is a line, so a rate that falls is seen
* inserts of single rows by clients of pgbench
* look-ups by clients: of 24,000 keys again and again, of all keys, of keys that
  are not there
* VACUUM, after one row was deleted in each hundredth page
At the end hybrid_index_check reads the index, without the limit.

`blocks` are those of the index that were not in shared_buffers.  Checkpoints come
with --checkpoint seconds or 16 GB of WAL, and one begins each part of inserts;
synchronous_commit is off.  A superuser, and
root for control groups; uses libpq's variables, and --restart-command, which ./dev gives.
"""
import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.limit import begin_limit, end_limit                # noqa: E402
from harness.server import BenchError, Method, Server           # noqa: E402

SCHEMA = "bench_large"
BATCH = 10000
HOT_KEYS = 24000
ABSENT = 10 ** 15               # numbers of keys that are never inserted begin here
SINGLES = 10 ** 12              # and those of single rows here
WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
FILL = """CREATE OR REPLACE PROCEDURE fill(first bigint, seconds float8, INOUT rows bigint, INOUT longest float8)
LANGUAGE plpgsql AS $$
DECLARE
    started timestamptz := clock_timestamp();
    began timestamptz;
BEGIN
    WHILE clock_timestamp() < started + seconds * interval '1 second' LOOP
        began := clock_timestamp();
        INSERT INTO t SELECT md5(i::text)::uuid FROM generate_series(first + rows, first + rows + %d - 1) i;
        COMMIT;
        rows := rows + %d;
        longest := greatest(longest, extract(epoch FROM clock_timestamp() - began));
    END LOOP;
END $$""" % (BATCH, BATCH)
KEY = "md5((%s)::text)::uuid"
SINGLE = "\\set i random(%d, %d)\nINSERT INTO t VALUES (%s);\n" % (SINGLES, ABSENT - 1, KEY % ":i")
# the row is read, as by applications: no index-only scans, which use no hot copies
LOOKUP = "\\set i random(%s)\nSELECT xmin FROM t WHERE u = " + KEY % "%s" + ";\n"


class Large:
    def __init__(self, server, options):
        self.server, self.options = server, options
        self.next = options.rows + 1            # number of the next key

    def psql(self, sql):
        return self.server.psql(sql, schema=SCHEMA)

    def value(self, sql):
        return self.server.value(sql, schema=SCHEMA)

    def timed(self, sql):
        """Seconds and bytes of WAL of a statement."""
        wal, start = float(self.value(WAL)), time.monotonic()
        self.psql(sql)
        return time.monotonic() - start, float(self.value(WAL)) - wal

    def load(self):
        self.server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex"
                         % (SCHEMA, SCHEMA))
        self.psql("CREATE TABLE t (u uuid) WITH (autovacuum_enabled = off)")
        for first in range(1, self.options.rows + 1, 10 ** 7):
            self.psql("INSERT INTO t SELECT %s FROM generate_series(%d, %d) i" %
                      (KEY % "i", first, min(first + 10 ** 7 - 1, self.options.rows)))
        self.psql("VACUUM (FREEZE, ANALYZE) t")
        self.psql(FILL)
        say("%d rows, table %.1f GB" % (self.options.rows, float(self.value("SELECT pg_table_size('t')")) / 1e9))

    def build(self, method):
        self.psql("DROP INDEX IF EXISTS i; CHECKPOINT")
        seconds, wal = self.timed("SET maintenance_work_mem = '1GB'; CREATE UNIQUE INDEX i ON t USING %s (u)" % method)
        say("%s: built in %.0f s, %.2f GB of WAL; %.1f bytes a row" % (
            method, seconds, wal / 1e9, float(self.value("SELECT pg_relation_size('i')")) / self.rows()))

    def rows(self):
        return float(self.value("SELECT greatest(reltuples, %d) FROM pg_class WHERE relname = 't'" % (self.next - 1)))

    def counters(self):
        """WAL bytes, and blocks of the index that were read."""
        return [float(self.value(WAL)), float(self.value(
            "SELECT idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = 'i'"))]

    def merges(self, method):
        return 0 if method == "btree" else int(self.value("SELECT merges FROM hybrid_index_stats('i')"))

    # ---- what runs within the limit ----

    def batches(self, name, method):
        """Statements of many rows, window by window."""
        options, start, old_merges = self.options, time.monotonic(), self.merges(method)
        while True:
            before, began = self.counters(), time.monotonic()
            rows, longest = self.psql("CALL fill(%d, %f, 0, 0)" % (self.next, options.seconds / 4))[0]
            rows, took = int(rows), time.monotonic() - began
            self.next += rows
            merges = self.merges(method) - old_merges
            time.sleep(1.5)                 # statistics
            wal, blocks = [new - old for new, old in zip(self.counters(), before)]
            passed = time.monotonic() - start
            line(name, "inserts, 10,000 a statement, to %.0f s%s" % (
                passed, ", %d merges" % merges if method == "hybrid" else ""),
                rows / took, wal / rows, blocks / rows, 1000 * float(longest))
            if passed >= options.seconds and (method == "btree" or merges >= options.merges) or passed >= options.most:
                return

    def clients(self, name, what, script, seconds):
        """Single statements by clients of pgbench."""
        before = self.counters()
        got = self.server.pgbench(SCHEMA, [(script, 1)], seconds, self.options.clients, {}, int(time.time()))[0]
        self.server.settle(Method("hybrid"))
        time.sleep(1.5)
        wal, blocks = [new - old for new, old in zip(self.counters(), before)]
        n = got["transactions"]
        line(name, what, got["tps"], wal / n, blocks / n, got["max"])

    def lookups(self, name):
        rows, seconds = self.options.rows, self.options.seconds // 8
        for what, numbers, key in (
                ("look-ups of 24,000 keys", "1, %d" % HOT_KEYS, ":i * %d" % (rows // HOT_KEYS)),
                ("look-ups of all keys", "1, %d" % rows, ":i"),
                ("look-ups of absent keys", "%d, %d" % (ABSENT, 2 * ABSENT), ":i")):
            script = LOOKUP % (numbers, key)
            self.server.pgbench(SCHEMA, [(script, 1)], seconds, self.options.clients, {}, 1)    # warm up
            self.clients(name, what, script, seconds)

    def vacuum(self, name):
        self.psql("VACUUM t")
        self.psql("DELETE FROM t WHERE ctid = ANY (ARRAY(SELECT format('(%s,7)', b)::tid "
                  "FROM generate_series(0, pg_relation_size('t') / 8192 - 1, 100) b)); CHECKPOINT")
        seconds, wal = self.timed("VACUUM t")
        print("| %s | VACUUM, a row dead in each hundredth page: %.1f s, %.1f MB of WAL | | | | |" % (
            name, seconds, wal / 1e6), flush=True)

    def limited(self, method, megabytes):
        settings = {"shared_buffers": "%dMB" % (megabytes // 4), "max_wal_size": "16GB", "synchronous_commit": "off",
                    "checkpoint_timeout": "%ds" % self.options.checkpoint,
                    "hybridindex.dynamic_memory": "%dMB" % (megabytes // 16)}
        begin_limit(self.server, megabytes, **settings)
        name = "%s, %d MB" % (method, megabytes)
        self.psql("CHECKPOINT")
        self.batches(name, method)
        self.psql("CHECKPOINT")
        self.clients(name, "inserts of single rows", SINGLE, self.options.seconds // 2)
        self.lookups(name)
        self.vacuum(name)
        end_limit(self.server, *settings)


def say(text):
    print(text, flush=True)


def line(name, what, rate, wal, blocks, longest):
    print("| %s | %s | %.0f | %.0f | %.3f | %.0f |" % (name, what, rate, wal, blocks, longest), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000_000)
    parser.add_argument("--memory", default="512", help="megabytes of the server, as a list (512)")
    parser.add_argument("--merges", type=int, default=10, help="that the index has had when inserts end (10)")
    parser.add_argument("--seconds", type=int, default=200, help="of inserts, at least (200)")
    parser.add_argument("--most", type=int, default=1800, help="of inserts, at most (1800)")
    parser.add_argument("--checkpoint", type=int, default=300, help="seconds between checkpoints (300)")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--methods", default="btree,hybrid")
    parser.add_argument("--restart-command")
    options = parser.parse_args()
    server = Server(options.restart_command)
    server.prepare()
    large = Large(server, options)
    try:
        large.load()
        for method in options.methods.split(","):
            large.build(method)
            print("\n| index, memory | what | a second | WAL each | blocks each | longest, ms |")
            print("| --- | --- | ---: | ---: | ---: | ---: |", flush=True)
            for megabytes in options.memory.split(","):
                large.limited(method, int(megabytes))
            if method == "hybrid":
                say("\nhybrid_index_check: %.0f s" % large.timed("SELECT hybrid_index_check('i')")[0])
            say("%.1f bytes a row at the end\n" % (float(large.value("SELECT pg_relation_size('i')")) / large.rows()))
    finally:
        end_limit(server)
        server.psql("DROP SCHEMA IF EXISTS %s CASCADE; DROP VIEW IF EXISTS public.bench_written" % SCHEMA)


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit("large: %s" % error)
