#!/usr/bin/env python3
"""Time series: closed ranges and points that are mostly not there.

Rows (timestamp, sensor), one a second on average.  A table of its own for each
index; three kinds of questions (10 ms ranges, 99 % of them empty; absent
points; 20 s ranges that find rows), asked in three ways:

    join      one nested loop of index-only scans
    plpgsql   a loop of statements in the server
    pgbench   one client, prepared statements

Uses the server that libpq's variables name, as a superuser, and makes and
drops the schema bench_timeseries.  With --memory and --restart-command the
server is restarted within a memory-limited control group (root only).  Blocks that
are neither in shared_buffers nor in the rest of that memory are read from disk then.
Without these options the operating system has them all.

    bench/surf/timeseries.py --shared-buffers 14MB --memory 32 --restart-command "pg_ctl -D DIR -w restart"
"""
import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.limit import forget, try_limit             # noqa: E402
from harness.server import BenchError, Server           # noqa: E402

SCHEMA = "bench_timeseries"

INDEXES = {
    "btree": "btree (ts, sensor)",
    "none": "hybrid (ts, sensor)",
    "base": "hybrid (ts, sensor) WITH (filter = surf, filter_suffix_bits = 0)",
    "real4": "hybrid (ts, sensor) WITH (filter = surf, filter_suffix_bits = 4)",
}

# condition on a row t, given the question's timestamp as {q}
QUESTIONS = {
    "empty": "t.ts >= {q} AND t.ts <= {q} + interval '10 ms'",
    "absent": "t.ts = {q} AND t.sensor = 17",
    "filled": "t.ts >= {q} AND t.ts <= {q} + interval '20 s'",
}

LOAD = """
CREATE TABLE q AS SELECT '2024-01-01'::timestamp + random() * {rows} * interval '1 s' AS q
    FROM generate_series(1, {queries});
CREATE TABLE src AS SELECT
    '2024-01-01'::timestamp + sum(-ln(1 - random())) OVER (ORDER BY g) * interval '1 s' AS ts,
    (random() * 2000)::int8 AS sensor FROM generate_series(1, {rows}) g;
"""

SETTINGS = """
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
SET max_parallel_workers_per_gather = 0; SET jit = off;
SET plan_cache_mode = force_generic_plan;
"""

# processor time in ms, and bytes that came from disk
OWN = """
CREATE OR REPLACE FUNCTION own_cpu() RETURNS float8 LANGUAGE sql AS
    $$ SELECT split_part(pg_read_file('/proc/' || pg_backend_pid() || '/schedstat'), ' ', 1)::float8 / 1e6 $$;
CREATE OR REPLACE FUNCTION own_disk() RETURNS float8 LANGUAGE sql AS
    $$ SELECT substring(pg_read_file('/proc/' || pg_backend_pid() || '/io') FROM 'read_bytes: (\\d+)')::float8 $$;
"""

NUMBERS = """SELECT 'N', pg_stat_get_xact_blocks_fetched(i) - pg_stat_get_xact_blocks_hit(i),
    own_disk() / 8192, own_cpu(), extract(epoch FROM clock_timestamp()) * 1000
    FROM CAST('{0}_i' AS regclass) i;"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--indexes", default=" ".join(INDEXES))
    parser.add_argument("--questions", default=" ".join(QUESTIONS))
    parser.add_argument("--ways", default="join plpgsql pgbench")
    parser.add_argument("--memory", type=int, help="limit of the server's memory, page cache included, in MB")
    parser.add_argument("--shared-buffers", help="for the measurement; needs --restart-command")
    parser.add_argument("--restart-command")
    parser.add_argument("--loaded", action="store_true", help="the schema is there from a run before")
    parser.add_argument("--keep", action="store_true", help="leave the schema for another run")
    return parser.parse_args()


def load(server, options, indexes):
    server.psql("DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}".format(SCHEMA))
    server.psql("CREATE EXTENSION IF NOT EXISTS hybridindex; SELECT setseed(0.4);" +
                LOAD.format(rows=options.rows, queries=options.queries) + OWN, schema=SCHEMA)
    for name in indexes:
        server.psql("CREATE TABLE {0} AS SELECT * FROM src ORDER BY ts; "
                    "CREATE INDEX {0}_i ON {0} USING {1};".format(name, INDEXES[name]), schema=SCHEMA)
        server.psql("VACUUM (ANALYZE, FREEZE) {0}".format(name), schema=SCHEMA)
    server.psql("DROP TABLE src; VACUUM (ANALYZE, FREEZE) q", schema=SCHEMA)
    server.psql("CHECKPOINT")


def forget_cached(server):
    """Drops the operating system's copies of the schema's files, where they can be read."""
    directory = Path(server.value("SHOW data_directory"))
    for (path,) in server.psql("SELECT pg_relation_filepath(oid) FROM pg_class WHERE relkind IN ('r', 'i') "
                               "AND relnamespace = '%s'::regnamespace" % SCHEMA):
        forget([directory / path, *directory.glob(path + "[._]*")])


def restart(server, options):
    """Restarts with the settings asked for, inside the limit."""
    if options.memory:
        server.limit = try_limit(options.memory)
        if server.limit is None:
            raise BenchError("this machine does not let us limit memory")
    server.restart(shared_buffers=options.shared_buffers)
    forget_cached(server)


def statement(name, way, question):
    condition = QUESTIONS[question]
    if way == "join":
        return "SELECT count(*) FROM q CROSS JOIN %s t WHERE %s;" % (name, condition.format(q="q.q"))
    return ("DO $$ DECLARE r record; BEGIN FOR r IN SELECT q FROM q LOOP "
            "PERFORM count(*) FROM %s t WHERE %s; END LOOP; END $$;" % (name, condition.format(q="r.q")))


def in_server(server, name, way, question):
    """Asks all questions twice; the second time counts: blocks read, of these
    from disk, ms of processor time, ms."""
    sql = statement(name, way, question)
    numbers = NUMBERS.format(name)
    rows = server.psql(SETTINGS + "BEGIN;" + sql + numbers + sql + numbers + "COMMIT;", schema=SCHEMA)
    before, after = ([float(x) for x in row[1:]] for row in rows if row[0] == "N")
    return [b - a for a, b in zip(before, after)]


def by_client(server, options, name, question, seed):
    """The same from pgbench: only the time is known."""
    script = ("\\set us random(0, %d)\nSELECT count(*) FROM %s t WHERE %s;\n" % (
        options.rows * 1_000_000 - 1, name,
        QUESTIONS[question].format(q="('2024-01-01'::timestamp + :us * interval '1 us')")))
    settings = " ".join("-c %s=%s" % (key, value) for key, value in re.findall(r"SET (\w+) = (\w+);", SETTINGS))
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        env = server.env(SCHEMA)
        env["PGOPTIONS"] += " " + settings
        run = subprocess.run(["pgbench", "-n", "-M", "prepared", "-c", "1", "-t", str(options.queries),
                              "--random-seed=%d" % seed, "-f", file.name], env=env, text=True, capture_output=True)
    match = re.search(r"tps = ([\d.]+)", run.stdout)
    if run.returncode != 0 or not match:
        raise BenchError("pgbench: " + run.stderr)
    return [float("nan"), float("nan"), float("nan"), 1000 * options.queries / float(match.group(1))]


def measure(server, options, indexes):
    ways = options.ways.split()
    results = {}
    for number in range(options.rounds):
        for way in ways:
            for question in options.questions.split():
                for name in indexes if number % 2 == 0 else indexes[::-1]:
                    numbers = (by_client(server, options, name, question, number) if way == "pgbench" else
                               in_server(server, name, way, question))
                    results.setdefault((way, question, name), []).append(numbers)
        print("round %d of %d" % (number + 1, options.rounds), file=sys.stderr, flush=True)
    return results


def report(results):
    """Medians, and least and greatest time."""
    print("%-8s %-7s %-6s %8s %8s %8s %8s %17s" % ("way", "ask", "index", "blocks", "disk", "cpu ms", "ms", ""))
    for (way, question, name), rounds in results.items():
        blocks, disk, cpu, ms = (statistics.median(column) for column in zip(*rounds))
        times = [row[3] for row in rounds]
        print("%-8s %-7s %-6s %8.0f %8.0f %8.1f %8.1f %8.1f-%8.1f" % (
            way, question, name, blocks, disk, cpu, ms, min(times), max(times)))


def main():
    options = arguments()
    if (options.memory or options.shared_buffers) and not options.restart_command:
        sys.exit("--memory and --shared-buffers need --restart-command")
    indexes = options.indexes.split()
    server = Server(options.restart_command)
    if not options.loaded:
        load(server, options, indexes)
    try:
        if options.restart_command:
            restart(server, options)
        for name, size in server.psql("SELECT relname, pg_size_pretty(pg_relation_size(oid)) FROM pg_class "
                                      "WHERE relkind = 'i' AND relnamespace = '%s'::regnamespace" % SCHEMA):
            print(name, size)
        report(measure(server, options, indexes))
    finally:
        if server.limit:
            server.limit.remove()
            server.limit = None
        if options.shared_buffers:
            server.restart(shared_buffers=None)
        if not options.keep:
            server.psql("DROP SCHEMA IF EXISTS %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit("timeseries: %s" % error)
