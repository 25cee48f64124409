"""The server under test: psql, pgbench and counters, through libpq's variables."""
import glob
import os
import re
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent


class Method:
    """An access method to measure: am[:option=value,...], opclass=... for text."""

    def __init__(self, text):
        self.name = text
        self.am, _, rest = text.partition(":")
        options = dict(pair.split("=", 1) for pair in rest.split(",") if pair)
        self.textops = options.pop("opclass", "")
        self.with_options = ""
        if options:
            self.with_options = "WITH (%s)" % ", ".join(
                "%s = %s" % item for item in options.items())
        self.schema = "bench_" + re.sub(r"\W+", "_", text).lower()

    def variables(self):
        return {"am": self.am, "with": self.with_options, "textops": self.textops}


class BenchError(Exception):
    pass


class Server:
    def __init__(self, restart_command=None):
        self.restart_command = restart_command
        self.limit = None           # see limit.py
        self.postmaster = self.find_postmaster()

    # ---- running things ----

    def env(self, schema):
        env = dict(os.environ)
        options = env.get("PGOPTIONS", "")
        if schema:
            options += " -c search_path=%s,public" % schema
        env["PGOPTIONS"] = options + " -c client_min_messages=warning"
        return env

    def psql(self, sql=None, file=None, schema=None, variables=None, stdin=None):
        """Runs SQL text or a script; returns its rows as lists of strings."""
        command = ["psql", "-X", "-q", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1"]
        for name, value in (variables or {}).items():
            command += ["-v", "%s=%s" % (name, value)]
        if file:
            command += ["-f", str(BENCH / file)]
        elif stdin is not None:
            command += ["-c", sql]
            sql = stdin
        run = subprocess.run(command, env=self.env(schema), text=True, capture_output=True, input=sql)
        if run.returncode != 0:
            raise BenchError("psql %s: %s" % (file or sql, run.stderr.strip()))
        return [line.split("\t") for line in run.stdout.splitlines()]

    def value(self, sql, schema=None):
        rows = self.psql(sql, schema=schema)
        return rows[0][0] if rows else None

    def pgbench(self, schema, scripts, seconds, clients, variables, seed, transactions=None):
        """Runs weighted scripts [(text, weight)] for some seconds, or that many
        transactions of each client; returns metrics and a timeline.
        Plans are generic, so that planning is not what is measured."""
        with tempfile.TemporaryDirectory(prefix="hybbench") as tmp:
            command = ["pgbench", "-n", "-M", "prepared", "-c", str(clients),
                       "-j", str(min(clients, os.cpu_count() or 1)),
                       *(["-t", str(transactions)] if transactions else ["-T", str(seconds)]),
                       "--max-tries=20", "--log", "--log-prefix=%s/log" % tmp,
                       "--random-seed=%d" % seed]
            for name, value in variables.items():
                command += ["-D", "%s=%s" % (name, value)]
            for i, (script, weight) in enumerate(scripts):
                path = Path(tmp) / ("script%d.sql" % i)
                path.write_text(script)
                command += ["-f", "%s@%d" % (path, weight)]
            env = self.env(schema)
            env["PGOPTIONS"] += " -c plan_cache_mode=force_generic_plan"
            env["PGAPPNAME"] = schema
            run = subprocess.run(command, env=env, text=True, capture_output=True)
            match = re.search(r"tps = ([\d.]+)", run.stdout)
            if run.returncode != 0 or not match:
                raise BenchError("pgbench: %s%s" % (run.stdout[-500:], run.stderr[-2000:]))
            latencies, timeline = read_logs(glob.glob(tmp + "/log.*"))
        metrics = {"tps": float(match.group(1)), "transactions": len(latencies)}
        metrics.update(percentiles(latencies))
        return metrics, timeline

    def alter_system(self, settings):
        """Writes settings to postgresql.auto.conf (None: back to the default).  Before 17
        a session knows those of the library only when it has loaded the library."""
        for name, value in settings.items():
            self.psql("LOAD 'hybridindex'; ALTER SYSTEM %s" % (
                "RESET %s" % name if value is None else "SET %s = '%s'" % (name, value)))

    def configure(self, **settings):
        """Changes settings (None: back to the default) that need no restart."""
        self.alter_system(settings)
        self.psql("SELECT pg_reload_conf()")

    def restart(self, **settings):
        """Restarts our own cluster with settings (None: back to the default)."""
        self.alter_system(settings)
        subprocess.run(shlex.split(self.restart_command), check=True, cwd="/",
                       stdout=subprocess.DEVNULL)
        self.postmaster = self.find_postmaster()
        self.enter_limit()

    def enter_limit(self):
        if self.limit and self.postmaster:
            self.limit.add([self.postmaster] + [pid for pid, _ in self.children()])

    # ---- counters ----

    def find_postmaster(self):
        """The postmaster's process, if it runs here and we may know."""
        try:
            pid = int(self.value("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)"))
            name = Path("/proc/%d/comm" % pid).read_text().strip()
        except (BenchError, ValueError, TypeError, OSError):
            return None
        return pid if name.startswith("postgres") else None

    def cpu_seconds(self):
        """CPU time of all server processes, past and present.  A process that is
        reaped while we look may be missed, so look more than once."""
        if self.postmaster is None:
            return None
        looks = []
        for _ in range(3):
            time.sleep(0.05)
            looks.append(self.cpu_ticks())
        return max(looks) / os.sysconf("SC_CLK_TCK")

    def clients(self, schema):
        """Process ids in the server of pgbench's clients that run in a schema."""
        return [int(pid) for (pid,) in self.psql(
            "SELECT pid FROM pg_stat_activity WHERE application_name = '%s'" % schema)]

    @staticmethod
    def processes_cpu(pids):
        """CPU seconds of running processes."""
        return sum(int(Path("/proc/%d/schedstat" % pid).read_text().split()[0]) for pid in pids) / 1e9

    def read_bytes(self):
        """Bytes that all server processes, past and present, had from disk."""
        if self.postmaster is None:
            return None
        total = 0
        for pid in [self.postmaster] + [pid for pid, _ in self.children()]:
            try:
                total += int(re.search(r"^read_bytes: (\d+)", Path("/proc/%d/io" % pid).read_text(), re.M).group(1))
            except (OSError, AttributeError):       # gone, or not ours to read
                pass
        return total

    def children(self):
        """[process id, ticks] of the postmaster's children."""
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                fields = Path(path).read_text().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue
            if int(fields[1]) == self.postmaster:
                yield int(path.split("/")[2]), int(fields[11]) + int(fields[12])

    def cpu_ticks(self):
        own = Path("/proc/%d/stat" % self.postmaster).read_text().rsplit(")", 1)[1].split()
        return sum(int(x) for x in own[11:15]) + sum(ticks for _, ticks in self.children())

    def counters(self, method):
        rows = self.psql("""
            SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'),
                (SELECT wal_fpi FROM pg_stat_wal),
                coalesce((SELECT sum(idx_blks_read) FROM pg_statio_user_indexes WHERE schemaname = s), 0),
                coalesce((SELECT sum(idx_blks_hit) FROM pg_statio_user_indexes WHERE schemaname = s), 0),
                coalesce((SELECT sum(heap_blks_read) FROM pg_statio_user_tables WHERE schemaname = s), 0),
                (SELECT buffers_checkpoint + buffers_clean + buffers_backend FROM bench_written),
                coalesce((SELECT sum(merges) FROM pg_class c JOIN pg_am a ON a.oid = relam AND amname = 'hybrid',
                    hybrid_index_stats(c.oid) WHERE relnamespace = s::regnamespace), 0)
            FROM (SELECT '%s' AS s) x""" % method.schema)
        names = ("wal_bytes", "wal_fpi", "index_read", "index_hit", "heap_read", "written", "merges")
        result = {name: float(value) for name, value in zip(names, rows[0])}
        cpu = self.cpu_seconds()
        if cpu is not None:
            result["cpu_seconds"] = cpu
        return result

    def sizes(self, method):
        rows = self.psql("""
            SELECT coalesce(sum(pg_relation_size(c.oid)) FILTER (WHERE relkind = 'i'), 0),
                coalesce(sum(pg_relation_size(c.oid)) FILTER (WHERE relkind = 'r'), 0)
            FROM pg_class c WHERE relnamespace = '%s'::regnamespace""" % method.schema)
        return {"index_bytes": float(rows[0][0]), "heap_bytes": float(rows[0][1])}

    def settle(self, method, seconds=60):
        """Waits until the background merges that were asked for have ended."""
        if method.am != "hybrid":
            return
        self.psql("""
            DO $$ BEGIN
                FOR i IN 1 .. %d LOOP
                    EXIT WHEN NOT EXISTS (SELECT FROM hybrid_merge_progress);
                    PERFORM pg_sleep(0.1);
                END LOOP;
            END $$""" % (seconds * 10))

    def prepare(self):
        """What counters() needs, on any server version."""
        self.psql("CREATE EXTENSION IF NOT EXISTS hybridindex")
        version = int(self.value("SHOW server_version_num"))
        if version >= 170000:
            source = ("SELECT (SELECT buffers_written FROM pg_stat_checkpointer) AS buffers_checkpoint, "
                      "(SELECT buffers_clean FROM pg_stat_bgwriter), "
                      "(SELECT coalesce(sum(writes), 0) FROM pg_stat_io "
                      "WHERE backend_type NOT IN ('checkpointer', 'background writer')) AS buffers_backend")
        else:
            source = "SELECT buffers_checkpoint, buffers_clean, buffers_backend FROM pg_stat_bgwriter"
        self.psql("DROP VIEW IF EXISTS public.bench_written; CREATE VIEW public.bench_written AS " + source)

    def create_schema(self, method):
        self.psql("DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}".format(method.schema))

    def drop_schema(self, method):
        self.psql("DROP SCHEMA IF EXISTS %s CASCADE" % method.schema)


# ---- pgbench's logs ----

def read_logs(paths):
    """Latencies in ms, and [second, transactions, greatest latency, p99] by second."""
    latencies = []
    seconds = {}
    for path in paths:
        with open(path) as log:
            for line in log:
                fields = line.split()
                if not fields[2].isdigit():
                    continue        # failed or skipped
                ms = int(fields[2]) / 1000
                latencies.append(ms)
                seconds.setdefault(int(fields[4]), []).append(ms)
    first = min(seconds) if seconds else 0
    timeline = []
    for second in sorted(seconds):
        of = percentiles(seconds[second])
        timeline.append([second - first, len(seconds[second]), of["max"], of["p99"]])
    return latencies, timeline


def percentiles(latencies):
    if not latencies:
        return {}
    latencies = sorted(latencies)
    last = len(latencies) - 1
    result = {name: latencies[min(last, int(p * len(latencies)))]
              for name, p in (("p50", .5), ("p95", .95), ("p99", .99), ("p999", .999))}
    result["max"] = latencies[last]
    result["mean"] = sum(latencies) / len(latencies)
    return result
