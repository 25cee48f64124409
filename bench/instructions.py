#!/usr/bin/env python3
"""Instructions a statement, hybrid beside btree: what one backend executes
between two statements of its client, counted by callgrind.

    ./dev instructions                                  the whole table
    ./dev instructions ycsb-c --only hybrid             statements whose names begin so
    ./dev instructions --csv FILE                       and its numbers
    ./dev instructions --compare FILE                   ratios to those of an earlier run
    ./dev instructions ycsb-c --misses                  and mispredicted branches, and cache misses
    ./dev instructions --gate                           fail where one of GATE takes more than is kept
    ./dev instructions --gate --update                  keep what these take now

Tables are loaded by a server as it is, merged and vacuumed; then the server
runs under callgrind.  Each statement is prepared once, executed to warm up, and
counted twice.  Statements that only read have the same parameters in both
counts: their spread is noise.  Merges are the session's own
(hybridindex.background_merge is off), pages are not logged whole, autovacuum
and jit are off: the same build gives the same numbers but for some hundredths
of a per cent.  Left out are the insides of libc's allocator, whose work depends
on what was allocated before.

--misses has callgrind simulate first-level caches of 32 kB (instructions) and
48 kB (data), a second-level cache of 2 MB, and simple branch prediction.  Its
numbers say where two methods differ, not what a processor would count.

--gate counts six statements with hybrid indexes only, and compares them with
bench/instructions.expected.  That file has figures for each server version, and names
the compilers: other builds take other instructions.  The server has to be one without
assertions, since each new assertion would count.
"""
import argparse
import configparser
import csv
import os
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.protocol import Connection                                 # noqa: E402
from harness.server import BenchError, Method, Server                   # noqa: E402
from harness.workloads import KEY_TYPES, Run                            # noqa: E402

ROWS = 200_000              # of a YCSB table
EXECUTIONS = 1000           # in a count; of them two counts and a warm-up
LOADED = 100_000            # rows of a load
TOLERANCE = 1.01            # --compare, --gate: what is above fails
EXPECTED = Path(__file__).resolve().parent / "instructions.expected"

# Of --gate: what applications do most, and what is most often made slower by a rule
# for something else.
GATE = ("ycsb-c-random", "ycsb-c-missing", "ycsb-e-random", "ycsb-a-random", "upsert-random", "insert-random")

SETTINGS = {"jit": "off", "max_parallel_workers_per_gather": "0", "full_page_writes": "off",
            "plan_cache_mode": "force_generic_plan", "autovacuum": "off", "track_counts": "off"}
SESSION = "-c hybridindex.background_merge=off"

# A statement whose first act is a function that callgrind can be told of: it
# writes what was counted so far to a file, and starts from nothing.
MARK = "SELECT pg_backend_pid()"

# Not counted: what these take for a large block depends on where earlier ones
# lay, which differs between two servers by some thousandths of a statement.
ALLOCATOR = {"_int_malloc", "_int_free", "unlink_chunk", "malloc_consolidate", "sysmalloc", "systrim"}

MERGE = ("SELECT hybrid_merge(c.oid) FROM pg_class c JOIN pg_am a ON a.oid = c.relam AND a.amname = 'hybrid' "
         "WHERE c.relnamespace = current_schema()::text::regnamespace")


class Statement:
    """keys: a query for the parameters of i = first .. last, where reads have
    EXECUTIONS of them and writes as many for each count and the warm-up.
    warm: SQL that reads the pages which the statement may touch."""

    before = None               # SQL ahead of each count, not counted

    def __init__(self, name, label, table, sql, keys, writes=False, warm=None):
        self.name, self.label, self.table, self.sql = name, label, table, sql
        self.keys, self.writes, self.warm = keys, writes, warm

    def parameters(self, server, method):
        """Of the warm-up and of each count."""
        counts = 3 if self.writes else 1
        rows = server.psql(self.keys % {"first": 1, "last": counts * EXECUTIONS},
                           schema=self.table_schema(method))
        parts = [rows[i * EXECUTIONS:(i + 1) * EXECUTIONS] for i in range(counts)]
        return parts if self.writes else parts * 3

    def units(self, parameters):
        return len(parameters)

    def table_schema(self, method):
        return "%s_%s" % (method.schema, self.table)


class Load(Statement):
    """Many rows in one statement, into an empty table; counted by row."""

    before = "TRUNCATE usertable"

    def __init__(self, name, label, table):
        super().__init__(name, label, table, "INSERT INTO usertable SELECT ycsb_key(n), '' "
                         "FROM generate_series(1, $1::bigint) n", None, True)

    def parameters(self, server, method):
        return [[[str(LOADED // 10)]], [[str(LOADED)]], [[str(LOADED)]]]

    def units(self, parameters):
        return int(parameters[0][0])


def statements():
    """In the order in which they run: reads of a table before writes."""
    existing = ("SELECT ycsb_key(1 + (hashint8extended(i, 7) & 9223372036854775807) %% {0}) "
                "FROM generate_series(%(first)d, %(last)d) i").format(ROWS)
    changed = existing.replace(" FROM", ", repeat(md5(i::text), 3) FROM")
    new = ("SELECT ycsb_key({0} + i), repeat(md5(i::text), 3) "
           "FROM generate_series(%(first)d, %(last)d) i").format(ROWS)
    missing = ("SELECT ycsb_key({0} + i) FROM generate_series(%(first)d, %(last)d) i").format(10 * ROWS)
    read = "SELECT val FROM usertable WHERE k = $1"
    scan = "SELECT count(val) FROM (SELECT k, val FROM usertable WHERE k >= $1 ORDER BY k LIMIT 50) x"
    warm = ("SELECT count(val) FROM usertable; SET enable_seqscan = off; SET enable_bitmapscan = off; "
            "SELECT count(*) FROM (SELECT k FROM usertable ORDER BY k OFFSET 0) x; RESET ALL")
    for keys, label in (("random", "random"), ("ascending", "ascending"), ("email", "e-mails")):
        yield Statement("ycsb-c-" + keys, "YCSB C, " + label, keys, read, existing)
    yield Statement("ycsb-c-missing", "YCSB C, keys that are not there", "random", read, missing)
    for keys, label in (("random", "random"), ("email", "e-mails")):
        yield Statement("ycsb-e-" + keys, "YCSB E, 50 rows, " + label, keys, scan, existing)
    for keys, label in (("random", "random"), ("email", "e-mails")):
        yield Statement("ycsb-e-waiting-" + keys, "YCSB E, 50 rows, a fifth waits for a merge, " + label, keys, scan,
                        existing, warm="INSERT INTO usertable SELECT ycsb_key(%d + i), repeat(md5(i::text), 3) "
                        "FROM generate_series(1, %d) i; " % (2 * ROWS, ROWS // 4) + warm)
    yield Statement("ycsb-c-secondary", "YCSB C, random, ten rows a key", "secondary", read, existing)
    yield Statement("ycsb-a-secondary", "YCSB A, update of ten rows a key", "secondary",
                    "UPDATE usertable SET val = $2 WHERE k = $1", changed, True, warm)
    yield Statement("ycsb-a-random", "YCSB A, update, random", "random",
                    "UPDATE usertable SET val = $2 WHERE k = $1", changed, True, warm)
    yield Statement("upsert-random", "insert of a key that is there, ON CONFLICT DO UPDATE", "random",
                    "INSERT INTO usertable VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET val = excluded.val",
                    changed, True, warm)
    for keys in ("random", "ascending"):
        yield Statement("insert-" + keys, "insert into a unique index, " + keys, keys,
                        "INSERT INTO usertable VALUES ($1, $2)", new, True, warm)
    key = "hashint8extended(i, %d) & 1073741823"
    district = "1, 1 + (%s) %%%% 10" % (key % 1)
    row = "SELECT %s, %s FROM generate_series(%%(first)d, %%(last)d) i"
    number = "1 + (%s) %%%% 3000" % (key % 2)
    yield Statement("tpcc-order-lines", "TPC-C, ten order lines", "tpcc",
                    "SELECT sum(ol_quantity) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
                    row % (district, number))
    yield Statement("tpcc-customer", "TPC-C, customer by key", "tpcc",
                    "SELECT c_balance, c_first, c_middle, c_last FROM customer "
                    "WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3", row % (district, number))
    yield Statement("tpcc-last-order", "TPC-C, last order", "tpcc",
                    "SELECT o_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 "
                    "ORDER BY o_id DESC LIMIT 1", row % (district, number))
    yield Statement("tpcc-names", "TPC-C, customers by name", "tpcc",
                    "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
                    row % (district, "last_name(((%s) %%%% 1000)::int)" % (key % 3)))
    yield Statement("tpcc-insert", "TPC-C, insert of an order line", "tpcc",
                    "INSERT INTO order_line VALUES ($1, $2, $3, $4, 1, 1, NULL, 5, 10, 'abcdefghijklmnopqrstuvwx')",
                    row % ("1, 1 + i / 10 %% 10", "4000 + i / 100, 1 + i %% 10"), True)
    yield Statement("vote", "Voter, a vote", "voter", "SELECT vote($1, $2, 2)",
                    row % ("(200 + (%s) %%%% 300) * 10000000 + (%s) %%%% 10000000" % (key % 1, key % 2),
                           "1 + i %% 6"), True, "SELECT count(*) FROM votes")
    for keys in ("random", "ascending"):
        yield Load("load-" + keys, "load in one statement, merges included, a row, " + keys, "load_" + keys)


# ---- the tables ----

def load(server, method, table):
    schema = "%s_%s" % (method.schema, table)
    server.psql("CREATE SCHEMA %s" % schema)
    variables = method.variables()
    if table == "tpcc":
        variables.update(warehouses=1, items=1000, customers=3000)
        server.psql(file="tpcc/schema.sql", schema=schema, variables=variables)
        server.psql(file="tpcc/load.sql", schema=schema, variables=variables)
    elif table == "voter":
        server.psql(file="voter/schema.sql", schema=schema, variables=variables)
        server.psql(file="voter/load.sql", schema=schema, variables={"rows": ROWS})
    else:
        secondary = table == "secondary"
        keys = "random" if secondary else table.replace("load_", "")
        variables.update(keys=keys, type=KEY_TYPES[keys], unique="" if secondary else "UNIQUE",
                         per_key=10 if secondary else 1)
        if keys != "email":
            variables["textops"] = ""
        server.psql(file="ycsb/schema.sql", schema=schema, variables=variables)
        if not table.startswith("load_"):
            server.psql(file="ycsb/load.sql", schema=schema,
                        variables={"rows": ROWS, "payload": "repeat(md5(n::text), 3)"})
    server.psql(MERGE, schema=schema)


# ---- counting ----

# --misses: which of callgrind's events are what, added up
MISSES = {"mispredicted branches": ("Bcm", "Bim"), "misses, instructions": ("I1mr",),
          "misses, data": ("D1mr", "D1mw"), "misses, second level": ("ILmr", "DLmr", "DLmw")}


def counted(path):
    """The instructions of one of callgrind's files, but for ALLOCATOR's own;
    and what MISSES names, of all functions, 0 if it was not simulated."""
    names, function, call, total, left_out = {}, None, False, None, 0
    events = []
    with open(path) as lines:
        for line in lines:
            if line[0] in "0123456789+-*":
                if not call and function in ALLOCATOR:
                    left_out += int(line.split()[1])
                call = False
            elif line.startswith("calls="):
                call = True             # the next line has the costs of the callee
            elif line.startswith("fn="):
                number, _, name = line[3:].strip().partition(" ")
                function = names.setdefault(number, name).partition(".")[0].partition("'")[0]
            elif line.startswith("cfn="):
                number, _, name = line[4:].strip().partition(" ")
                names.setdefault(number, name)
            elif line.startswith("events:"):
                events = line.split()[1:]
            elif line.startswith(("summary:", "totals:")):
                total = [int(n) for n in line.split()[1:]]
    if total is None:
        raise BenchError("there is no sum in %s" % path)
    sums = dict(zip(events, total))
    return [sums["Ir"] - left_out] + [sum(sums.get(e, 0) for e in parts) for parts in MISSES.values()]


def measure(statement, parameters, method, directory):
    """What counted() says, a statement, of both counts."""
    connection = Connection("-c search_path=%s,public %s" % (statement.table_schema(method), SESSION))
    connection.prepare("mark", MARK)
    connection.prepare("statement", statement.sql)
    if method.am == "hybrid":
        connection.query(MERGE)
    if statement.warm:
        connection.query(statement.warm)
    marks = 0

    def mark():
        nonlocal marks
        connection.execute("mark")
        marks += 1
        return counted("%s/%d.%d" % (directory, connection.backend, marks))

    counts = []
    for values in parameters:
        if statement.before:
            connection.query(statement.before)
        mark()
        for row in values:
            connection.wait()
            connection.execute("statement", row)
        there = mark()
        counts.append([(a - b) / statement.units(values) for a, b in zip(there, mark())])
    connection.close()
    return counts[1:]


# ---- the report ----

def compare(results, path):
    """Lines with the ratio to an earlier run, and whether one is too great."""
    with open(path, newline="") as file:
        before = {(row["statement"], row["method"]): float(row["instructions"]) for row in csv.DictReader(file)}
    worse = False
    yield "\n| statement | method | before | after | after / before |\n| --- | --- | ---: | ---: | ---: |"
    for (statement, method), (instructions, _) in results.items():
        if (statement.name, method) not in before:
            continue
        earlier = before[statement.name, method]
        ratio = instructions / earlier
        above = ratio > TOLERANCE and method != "btree"
        worse = worse or above
        yield "| %s | %s | %.0f | %.0f | %.4f%s |" % (statement.label, method, earlier, instructions, ratio,
                                                      " **above**" if above else "")
    yield "\nsome are above %.2f" % TOLERANCE if worse else "\nnone is above %.2f" % TOLERANCE


def table(results, methods):
    head = [*methods, *("%s / %s" % (m, methods[0]) for m in methods[1:]), "greatest spread"]
    yield "| statement | %s |" % " | ".join(head)
    yield "| --- |%s" % (" ---: |" * len(head))
    for statement in dict.fromkeys(statement for statement, _ in results):
        counts = [results[statement, method] for method in methods]
        cells = ["{:,.0f}".format(count) for count, _ in counts]
        cells += ["%.3f" % (count / counts[0][0]) for count, _ in counts[1:]]
        yield "| %s | %s | %.2f %% |" % (statement.label, " | ".join(cells), 100 * max(s for _, s in counts))


# ---- the gate ----

def this_build(server):
    """The section of EXPECTED for this server, and what has compiled it and us."""
    version = int(server.value("SHOW server_version_num")) // 10000
    compiler = subprocess.run(["cc", "--version"], check=True, capture_output=True, text=True).stdout
    return str(version), "%s; extension: %s" % (server.value("SELECT version()"), compiler.splitlines()[0])


def read_expected():
    expected = configparser.ConfigParser(interpolation=None)
    expected.read(EXPECTED)
    return expected


def gate(results, server):
    """Lines that compare with what is kept, and whether one is too great."""
    expected = read_expected()
    section, build = this_build(server)
    if section not in expected:
        raise BenchError("%s has no figures for server %s: --gate --update writes them" % (EXPECTED.name, section))
    worse = False
    yield "\n| statement | kept | now | now / kept |\n| --- | ---: | ---: | ---: |"
    for (statement, _), (instructions, _) in results.items():
        kept = expected.getfloat(section, statement.name)
        above = instructions / kept > TOLERANCE
        worse = worse or above
        yield "| %s | %.0f | %.0f | %.4f%s |" % (statement.name, kept, instructions, instructions / kept,
                                                 " **above**" if above else "")
    yield "\nsome are above %.2f" % TOLERANCE if worse else "\nnone is above %.2f" % TOLERANCE
    if expected[section]["build"] != build:
        yield "Kept with another build: %s\nThis one: %s" % (expected[section]["build"], build)


def keep(results, server):
    expected = read_expected()
    section, build = this_build(server)
    expected[section] = {"build": build,
                         **{statement.name: "%.1f" % count for (statement, _), (count, _) in results.items()}}
    with open(EXPECTED, "w") as file:
        file.write("# Instructions a statement with hybrid indexes, for each server version.\n"
                   "# ./dev instructions --gate fails above %.2f of these; --gate --update writes them.\n\n" % TOLERANCE)
        expected.write(file)


def misses_table(misses):
    yield "\n| statement | method | %s |\n| --- | --- |%s" % (" | ".join(MISSES), " ---: |" * len(MISSES))
    for (statement, method), counts in misses.items():
        yield "| %s | %s | %s |" % (statement.label, method, " | ".join("{:,.0f}".format(n) for n in counts))


def write_csv(results, path):
    """After each statement: what was counted is kept if a later one fails."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["statement", "method", "instructions", "spread"])
        for (statement, method), (instructions, spread) in results.items():
            writer.writerow([statement.name, method, "%.1f" % instructions, "%.5f" % spread])


def arguments():
    names = [statement.name for statement in statements()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("statements", nargs="*", metavar="STATEMENT",
                        help="the first letters of one or more of: " + ", ".join(names))
    parser.add_argument("--only", metavar="METHOD", help="btree, hybrid, or hybrid:option=value,...")
    parser.add_argument("--csv", metavar="FILE", help="write the numbers")
    parser.add_argument("--compare", metavar="FILE",
                        help="print the ratio to the numbers of FILE; above %.2f is a failure" % TOLERANCE)
    parser.add_argument("--gate", action="store_true",
                        help="count %s, and fail where one is above %.2f of what is kept" % (", ".join(GATE), TOLERANCE))
    parser.add_argument("--update", action="store_true", help="with --gate: keep what is counted")
    parser.add_argument("--misses", action="store_true", help="simulate caches and branch prediction")
    parser.add_argument("--directory", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--restart-command", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for wanted in options.statements:
        if not any(name.startswith(wanted) for name in names):
            parser.error('no statement "%s": %s' % (wanted, ", ".join(names)))
    if options.gate and (options.statements or options.only):
        parser.error("--gate has statements and a method of its own")
    if options.update and not options.gate:
        parser.error("--update goes with --gate")
    if options.gate:
        options.statements, options.only = GATE, "hybrid"
    return options


def main():
    options = arguments()
    methods = [Method(options.only)] if options.only else [Method("btree"), Method("hybrid")]
    wanted = [s for s in statements()
              if not options.statements or s.name.startswith(tuple(options.statements))]
    os.environ["PGOPTIONS"] = SESSION
    server = Server(options.restart_command)
    if options.gate and server.value("SHOW debug_assertions") == "on":
        raise BenchError("--gate needs a server without assertions, which would count")
    server.psql("CREATE EXTENSION hybridindex")
    server.configure(**SETTINGS)
    if any(s.table == "email" for s in wanted):
        Run(server, methods, None, None).load_samples()
    for method in methods:
        for name in dict.fromkeys(s.table for s in wanted):
            load(server, method, name)
    server.psql("VACUUM (FREEZE, ANALYZE)")
    parameters = {(s, m): s.parameters(server, m) for s in wanted for m in methods}
    subprocess.run(shlex.split(options.restart_command), check=True, cwd="/", stdout=subprocess.DEVNULL)

    results, misses = {}, {}
    for statement in wanted:
        for method in methods:
            first, second = measure(statement, parameters[statement, method], method, options.directory)
            results[statement, method.name] = ((first[0] + second[0]) / 2, abs(first[0] - second[0]) / first[0])
            misses[statement, method.name] = [(a + b) / 2 for a, b in zip(first[1:], second[1:])]
        print(".", end="", file=sys.stderr, flush=True)
        if options.csv:
            write_csv(results, options.csv)
    print(file=sys.stderr)
    print("\n".join(table(results, [method.name for method in methods])))
    if options.misses:
        print("\n".join(misses_table(misses)))
    if options.compare:
        lines = list(compare(results, options.compare))
        print("\n".join(lines))
        return 1 if "**above**" in "".join(lines) else 0
    if options.update:
        keep(results, server)
    elif options.gate:
        lines = list(gate(results, server))
        print("\n".join(lines))
        return 1 if "**above**" in "".join(lines) else 0
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit("instructions: %s" % error)
