#!/usr/bin/env python3
"""Unique random keys into an index larger than memory: rates, and leaves read.

    bench/unique_inserts.py [--rows N] [--seconds S] [--lookups N] [--rounds N]
                            [--variants btree,none,auto]
                            [--memory MB --restart-command CMD [--buffers MB] [--dynamic MB]]
                            [--keep] [--reuse]

Tables of random uuids, one for each variant: a btree index, hybrid ones with
filter = none, auto, and points, one of a single level (levels = 1), and a table
without index (heap).  Then uuids are inserted for some seconds, a hundred a
transaction, and keys looked up that are there, and that are not; after a
warm-up.  For each row and look-up are reported: index blocks that were not in
shared_buffers; of all processes of the server CPU time, bytes read from disk
and WAL.  With --clients N sessions insert rows, one a transaction, and
latencies are reported.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.  Indexes
should be some eight times shared_buffers.  With --memory (root only) --restart-command
restarts the server in a control group of that size, page cache included, and indexes
should be eight times that.  A half of it becomes shared_buffers (--buffers), a
sixteenth hybridindex.dynamic_memory (--dynamic).  Tables are loaded outside of the
group, and the operating system forgets them before.  --reuse takes the tables of an
earlier run with --keep.
"""
import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.limit import begin_limit, end_limit         # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_unique"
INDEXES = {
    "heap": "",
    "btree": "btree (u)",
    "none": "hybrid (u) WITH (filter = none)",
    "auto": "hybrid (u)",
    "points": "hybrid (u) WITH (filter = points)",
    "one": "hybrid (u) WITH (levels = 1)",
}
INSERT = """CREATE OR REPLACE PROCEDURE fill_%s(seconds float8, INOUT n bigint) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
BEGIN
    WHILE clock_timestamp() < until LOOP
        INSERT INTO t_%s SELECT gen_random_uuid() FROM generate_series(1, 100);
        COMMIT;
        n := n + 100;
    END LOOP;
END $$"""
LOOKUP = """CREATE OR REPLACE PROCEDURE find_%s(seconds float8, present boolean, INOUT n bigint) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
    first bigint := random() * (SELECT max(q.n) FROM q_%s q);
    k uuid;
BEGIN
    WHILE clock_timestamp() < until LOOP
        FOR k IN SELECT u FROM q_%s q WHERE q.n >= first LOOP
            IF NOT present THEN
                k := gen_random_uuid();
            END IF;
            PERFORM FROM t_%s t WHERE t.u = k;
            n := n + 1;
            EXIT WHEN n %% 10 = 0 AND clock_timestamp() >= until;
        END LOOP;
        first := 1;
    END LOOP;
END $$"""


class Bench:
    def __init__(self, server, args):
        self.server, self.args = server, args

    def load(self, variants):
        psql = self.server.psql
        rows = self.args.rows
        psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
             (SCHEMA, SCHEMA))
        for variant in variants:
            psql("SET maintenance_work_mem = '1GB';"
                 "CREATE TABLE t_%s AS SELECT gen_random_uuid() AS u FROM generate_series(1, %d);%s VACUUM ANALYZE t_%s;"
                 "CREATE TABLE q_%s AS SELECT row_number() OVER () AS n, u FROM (SELECT u FROM t_%s "
                 "TABLESAMPLE bernoulli (%f) ORDER BY random()) s; VACUUM ANALYZE q_%s" %
                 (variant, rows, "CREATE UNIQUE INDEX i_%s ON t_%s USING %s;" % (variant, variant, INDEXES[variant])
                  if INDEXES[variant] else "", variant, variant, variant, min(100, 100 * self.args.lookups / rows),
                  variant), schema=SCHEMA)

    def limit(self, megabytes):
        begin_limit(self.server, megabytes, shared_buffers="%dMB" % (self.args.buffers or megabytes // 2),
                    **{"hybridindex.dynamic_memory": "%dMB" % (self.args.dynamic or megabytes // 16)})

    def counters(self, variant):
        server = self.server
        read = "SELECT idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = 'i_%s'" % variant
        wal = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
        return [int(server.value(read, SCHEMA) or 0), server.cpu_seconds() or 0, server.read_bytes() or 0,
                float(server.value(wal))]

    def measure(self, variant, work):
        """Rate, and blocks, CPU in µs, kB read and WAL for each."""
        time.sleep(1.5)
        before = self.counters(variant)
        start = time.time()
        count = work(variant)
        seconds = time.time() - start
        time.sleep(1.5)
        blocks, cpu, kb, wal = [a - b for a, b in zip(self.counters(variant), before)]
        return count / seconds, blocks / count, cpu * 1e6 / count, kb / 1024 / count, wal / count

    def insert(self, variant, seconds=None):
        return int(self.server.value("CALL fill_%s(%f, 0)" % (variant, seconds or self.args.seconds), SCHEMA))

    def lookup(self, present):
        return lambda variant: int(self.server.value(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; CALL find_%s(%f, %s, 0)" %
            (variant, self.args.seconds, present), SCHEMA))

    def size(self, variant):
        if not INDEXES[variant]:
            return 0, 0
        size = int(self.server.value("SELECT pg_relation_size('i_%s')" % variant, SCHEMA))
        filters = 0 if variant == "btree" else int(self.server.value(
            "SELECT filter_bytes FROM hybrid_index_stats('i_%s')" % variant, SCHEMA))
        return size / 1e6, filters / 1e6

    def rounds(self, variants):
        print("| index | MB | filters, MB | round | of | a second | blocks | CPU, µs | kB read | WAL |")
        print("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
        for variant in variants:
            self.server.psql(INSERT % (variant, variant), schema=SCHEMA)
            self.server.psql(LOOKUP % ((variant,) * 4), schema=SCHEMA)
            self.insert(variant, self.args.warm)
        for round in range(self.args.rounds):
            for variant in variants:
                kinds = [("inserts", self.insert)]
                if INDEXES[variant] and self.args.lookups:
                    kinds += [("present", self.lookup("true")), ("absent", self.lookup("false"))]
                for name, work in kinds:
                    print("| %s | %.0f | %.1f | %d | %s | %.0f | %.3f | %.0f | %.2f | %.0f |" %
                          ((variant,) + self.size(variant) + (round + 1, name) + self.measure(variant, work)), flush=True)

    def latencies(self, variants):
        print("| index | round | inserts/s | blocks | CPU, µs | kB read | WAL | p50, ms | p99 | p99.9 | greatest |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        got = {}

        def one(variant):
            text = "INSERT INTO t_%s VALUES (gen_random_uuid());\n" % variant
            got.update(self.server.pgbench(SCHEMA, [(text, 1)], self.args.seconds, self.args.clients, {}, 1)[0])
            return got["transactions"]
        for round in range(self.args.rounds):
            for variant in variants:
                row = self.measure(variant, one)
                print("| %s | %d | %.0f | %.3f | %.0f | %.2f | %.0f | %.2f | %.2f | %.2f | %.1f |" %
                      ((variant, round + 1) + row + tuple(got[p] for p in ("p50", "p99", "p999", "max"))), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6000000)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--warm", type=float, default=5)
    parser.add_argument("--lookups", type=int, default=50000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--variants", default="btree,none,auto")
    parser.add_argument("--memory", type=int)
    parser.add_argument("--buffers", type=int)
    parser.add_argument("--dynamic", type=int)
    parser.add_argument("--restart-command")
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    server = Server(args.restart_command)
    bench = Bench(server, args)
    variants = args.variants.split(",")
    if not args.reuse:
        bench.load(variants)
    try:
        if args.memory:
            bench.limit(args.memory)
        (bench.latencies if args.clients else bench.rounds)(variants)
    finally:
        end_limit(server)
    if not args.keep:
        server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
