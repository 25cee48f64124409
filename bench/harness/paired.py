"""Single statements by clients of pgbench, hybrid beside btree: CPU and WAL a transaction.

A round is made of short slices, in which the methods take turns.  So what else the
machine does meets both.  A round's figure is the sum over its slices by the number
of transactions, and its ratio is that of two such figures.  Medians of the rounds
are reported.  CPU time is that of all processes of the server, those that have
ended among them.  A hybrid slice ends when the merges that it has asked for have
ended, and hybridindex.quiet_time is off: no merge falls into a slice of btree.

A first round does not count.  It follows a checkpoint, so it logs most pages whole.
With --checkpoint each round begins so, as if checkpoints were some seconds apart.  With
--default-checkpoints they come when the server's defaults have them come: after 5
minutes, or with 1 GB of WAL.  Rounds should be long enough to meet several.

With --at-once there are no slices: half of the clients run with each method all the
time.  Each method has one half of the CPUs for its clients and their processes of the
server, and the other half in the second part of a round.  Ratios scatter least then, by
some hundredths on an idle machine.  Only the clients' own processes are counted, so
neither merges nor WAL are.
"""
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from .server import BenchError, Method, Server

SEED = 42
WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
MERGES = """SELECT coalesce(sum(merges), 0) FROM pg_class c JOIN pg_am a ON a.oid = relam AND amname = 'hybrid',
    hybrid_index_stats(c.oid) WHERE relnamespace = '%s'::regnamespace"""
SETTINGS = {"autovacuum": "off", "synchronous_commit": "off", "jit": "off", "hybridindex.quiet_time": "-1"}
RESTARTED = {"shared_buffers": "1GB", "max_connections": "600"}
RARE = {"max_wal_size": "8GB", "checkpoint_timeout": "1h"}
EDGE = 1                # seconds at both ends of a part with --at-once that do not count
BTREE, HYBRID, NONE = "btree", "hybrid", "none"


def add_arguments(parser, rows=1_000_000):
    parser.add_argument("--rows", type=int, default=rows, help="of each table (%d)" % rows)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slices", type=int, default=5, help="of each method in a round (5)")
    parser.add_argument("--seconds", type=int, default=2, help="of a slice (2)")
    parser.add_argument("--clients", type=int, default=4)
    checkpoints = parser.add_mutually_exclusive_group()
    checkpoints.add_argument("--checkpoint", action="store_true", help="before each round, not only before a first one")
    checkpoints.add_argument("--default-checkpoints", action="store_true", help="when the server's defaults have them")
    parser.add_argument("--at-once", action="store_true", help="both methods at the same time; without merges and WAL")
    parser.add_argument("--restart-command", help="restarts the server; without it, shared_buffers is what it is")


def parse(parser, names):
    """Its options with those of add_arguments(), and which of the names --only has."""
    parser.add_argument("--only", default=",".join(names), metavar="NAMES")
    add_arguments(parser)
    options = parser.parse_args()
    wanted = options.only.split(",")
    for name in wanted:
        if name not in names:
            parser.error("unknown statement \"%s\": %s" % (name, ", ".join(names)))
    return options, wanted


class Table:
    """The same statements for each method: a table with a primary key `key`, and
    indexes (lists of columns), loaded by `select`, where %d is the number of rows."""

    def __init__(self, columns, key, select, indexes=(), fillfactor=100):
        self.columns, self.key, self.select = columns, key, select
        self.indexes, self.fillfactor = indexes, fillfactor

    def load(self, server, method, rows):
        """Rows come after the indexes, as an application's do.  All indexes are of the
        method: hybridindex.replace_btree decides.  There are none with NONE."""
        indexes = "" if method.name == NONE else "".join(
            ["ALTER TABLE t ADD PRIMARY KEY (%s);" % self.key] +
            ["CREATE INDEX ON t (%s);" % columns for columns in self.indexes])
        server.create_schema(method)
        server.psql("LOAD 'hybridindex'; SET hybridindex.replace_btree = %s;"
                    "CREATE TABLE t (%s) WITH (fillfactor = %d); %s INSERT INTO t %s" % (
                        "on" if method.name == HYBRID else "off", self.columns, self.fillfactor, indexes,
                        self.select % rows), schema=method.schema)
        server.settle(Method(HYBRID))
        # VACUUM marks pages all-visible whose commits are on disk; look-ups would set hints else
        server.psql("CHECKPOINT")
        server.psql("VACUUM ANALYZE %s.t" % method.schema)
        found = [row[0] for row in server.psql(
            "SELECT amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam "
            "WHERE indrelid = 't'::regclass", schema=method.schema)]
        expected = [] if method.name == NONE else [method.name] * (1 + len(self.indexes))
        if found != expected:
            raise BenchError("indexes of %s are %s" % (method.schema, found))


class Slice:
    """What slices took: CPU seconds, WAL bytes, transactions; they can be added."""

    def __init__(self, cpu=0.0, wal=0.0, transactions=0):
        self.cpu, self.wal, self.transactions = cpu, wal, transactions

    def __add__(self, other):
        return Slice(self.cpu + other.cpu, self.wal + other.wal, self.transactions + other.transactions)

    def each(self):
        """CPU in microseconds and WAL bytes a transaction."""
        return self.cpu * 1e6 / self.transactions, self.wal / self.transactions


class Paired:
    """Measures on a server, with the options of add_arguments()."""

    def __init__(self, options, prefix):
        self.options = options
        self.server = Server(options.restart_command)
        if self.server.postmaster is None:
            raise BenchError("the server does not run on this machine, or its processes cannot be seen")
        self.server.prepare()
        self.methods = [self.method(name, prefix) for name in (BTREE, HYBRID)]
        self.heap = self.method(NONE, prefix)
        self.number = 0                 # of slices so far: each has another seed

    @staticmethod
    def method(name, prefix):
        method = Method(name)
        method.schema = "bench_%s_%s" % (prefix, name)
        return method

    # ---- the server, around all measurements ----

    def __enter__(self):
        self.change(SETTINGS, {**RESTARTED, **({} if self.options.default_checkpoints else RARE)})
        print("%s; shared_buffers %s; %d rows, %d clients, %d rounds of %d slices of %d s, "
              "checkpoints: %s\n" % (
            self.server.value("SELECT split_part(version(), ' on ', 1)"), self.server.value("SHOW shared_buffers"),
            self.options.rows, self.options.clients, self.options.rounds, self.options.slices, self.options.seconds,
                  "each round" if self.options.checkpoint else "by the server's defaults"
                  if self.options.default_checkpoints else "before a first round that does not count"))
        return self

    def __exit__(self, *error):
        for method in [*self.methods, self.heap]:
            self.server.drop_schema(method)
        self.server.psql("DROP VIEW IF EXISTS public.bench_written")
        self.change(dict.fromkeys(SETTINGS), dict.fromkeys({**RESTARTED, **RARE}))

    def change(self, settings, restarted):
        if self.options.restart_command:
            self.server.restart(**settings, **restarted)
        else:
            self.server.configure(**settings)

    # ---- measuring ----

    def load(self, table, methods):
        for method in methods:
            table.load(self.server, method, self.options.rows)

    def pgbench(self, method, script, **how):
        """One run of --seconds, or of as many transactions of each client."""
        self.number += 1
        return self.server.pgbench(method.schema, [(script, 1)], how.get("seconds", self.options.seconds),
                                   how.get("clients", self.options.clients), {"rows": self.options.rows},
                                   SEED + self.number, how.get("transactions"))

    def slice(self, method, script, **how):
        server = self.server
        wal, cpu = float(server.value(WAL)), server.cpu_seconds()
        transactions = self.pgbench(method, script, **how)[0]["transactions"]
        server.settle(Method(HYBRID))           # with btree too, since to ask takes CPU
        cpu = server.cpu_seconds() - cpu
        return Slice(cpu, float(server.value(WAL)) - wal, transactions)

    def part_at_once(self, methods, script, cpus):
        """{name: Slice} of the half of a round in which a method has the CPUs at its place."""
        seconds = self.options.seconds * self.options.slices
        clients = max(self.options.clients // len(methods), 1)

        def run(method, on):
            os.sched_setaffinity(0, on)         # of this thread, and so of its pgbench
            return self.pgbench(method, script, clients=clients, seconds=seconds)

        with ThreadPoolExecutor() as pool:
            runs = [pool.submit(run, method, on) for method, on in zip(methods, cpus)]
            time.sleep(EDGE)
            clients_of = [self.server.clients(method.schema) for method in methods]
            for pids, on in zip(clients_of, cpus):
                for pid in pids:
                    os.sched_setaffinity(pid, on)
            start = time.monotonic()
            before = [self.server.processes_cpu(pids) for pids in clients_of]
            time.sleep(seconds - 2 * EDGE)
            took = time.monotonic() - start
            cpu = [self.server.processes_cpu(pids) - old for pids, old in zip(clients_of, before)]
            rates = [run.result()[0]["tps"] for run in runs]
        self.server.settle(Method(HYBRID))
        return {method.name: Slice(c, 0, rate * took) for method, c, rate in zip(methods, cpu, rates)}

    def at_once(self, methods, script):
        """{name: Slice} of one round with --at-once."""
        cpus = sorted(os.sched_getaffinity(0))
        halves = [cpus[:len(cpus) // 2] or cpus, cpus[len(cpus) // 2:]]
        parts = [self.part_at_once(methods, script, on) for on in (halves, halves[::-1])]
        return {method.name: parts[0][method.name] + parts[1][method.name] for method in methods}

    def round(self, methods, script, slices=None, **how):
        """{name: Slice} of one round."""
        self.checkpoint()
        if self.options.at_once and not how:
            return self.at_once(methods, script)
        sums = {method.name: Slice() for method in methods}
        for number in range(slices or self.options.slices):
            for method in methods if number % 2 == 0 else methods[::-1]:
                sums[method.name] += self.slice(method, script, **how)
        return sums

    def checkpoint(self):
        if self.options.checkpoint:
            self.server.psql("CHECKPOINT")

    def merges(self, methods):
        return sum(int(self.server.value(MERGES % method.schema)) for method in methods)

    def compare(self, name, script, methods=None):
        """All rounds; prints a line of the table that head() begins."""
        methods = methods or self.methods
        self.server.psql("CHECKPOINT")
        self.round(methods, script)
        merges = self.merges(methods)
        rounds = [self.round(methods, script) for _ in range(self.options.rounds)]
        print(line(name, rounds, self.merges(methods) - merges), flush=True)
        return rounds


def head(first="statement"):
    print("| %s | btree, µs | hybrid, µs | ratio | of rounds | WAL: btree | hybrid | ratio | merges |" % first)
    print("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |")


def line(name, rounds, merges):
    each = {method: [r[method].each() for r in rounds] for method in (BTREE, HYBRID)}
    (cpu, cpus), (wal, _) = (ratio(each, column) for column in (0, 1))
    return "| %s | %.1f | %.1f | %s | %.2f to %.2f | %.0f | %.0f | %s | %d |" % (
        name, median(each[BTREE], 0), median(each[HYBRID], 0), cpu, min(cpus), max(cpus),
        median(each[BTREE], 1), median(each[HYBRID], 1), wal, merges)


def median(each, column):
    return statistics.median(values[column] for values in each)


def ratio(each, column):
    """The median of the rounds' ratios, as text, and all of them.  Look-ups have no ratio
    of WAL: other processes write the few bytes."""
    ratios = [h[column] / b[column] if b[column] > 0 else 0 for b, h in zip(each[BTREE], each[HYBRID])]
    return ("%.2f" % statistics.median(ratios) if median(each[BTREE], column) >= 10 else ""), ratios
