"""Results: collected while running, written as JSON, CSV and Markdown."""
import csv
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

# metric, title, better when lower
COLUMNS = (
    ("tps", "per second", False),
    ("ms", "ms", True),
    ("cpu_ms", "CPU ms", True),
    ("seconds", "s", True),
    ("p50", "p50 ms", True),
    ("p99", "p99 ms", True),
    ("p999", "p99.9 ms", True),
    ("max", "max ms", True),
    ("cpu_ms_each", "CPU ms each", True),
    ("wal_bytes_each", "WAL B each", True),
    ("wal_bytes", "WAL bytes", True),
    ("wal_fpi", "page images", True),
    ("index_read", "index reads", True),
    ("index_bytes", "index bytes", True),
)


# Work that comes in lumps (merges, checkpoints): all rounds together count,
# not the middle one.
SUMMED = ("cpu_ms_each", "cpu_seconds", "wal_bytes_each", "wal_bytes", "wal_fpi", "index_read")


class Recorder:
    def __init__(self, directory, methods, config, server):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.methods = methods
        self.rows = []
        self.checks = []
        self.notes = []
        self.about = {}
        self.workload = None
        self.started = time.time()
        self.environment = {
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "server": server.value("SELECT version()"),
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "processor": processor(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2 ** 30, 1),
            "load_at_start": os.getloadavg(),
            "rounds": config.rounds, "seconds": config.seconds, "clients": config.clients, "rows": config.rows,
            "settings": dict(server.psql("""SELECT name, current_setting(name) FROM pg_settings
                WHERE name IN ('shared_buffers', 'max_wal_size', 'checkpoint_timeout', 'fsync', 'autovacuum',
                    'full_page_writes', 'synchronous_commit', 'maintenance_work_mem', 'wal_level')
                    OR name LIKE 'hybridindex.%' ORDER BY 1""")),
        }

    # ---- while running ----

    def begin(self, workload, about):
        self.workload = workload
        self.about[workload] = about
        self.say("%s: %s" % (workload, about))

    def say(self, text):
        print("[%4d s] %s" % (time.time() - self.started, text), file=sys.stderr, flush=True)

    def add(self, phase, method, number, metrics, timeline):
        self.rows.append({"workload": self.workload, "phase": phase, "method": method.name,
                          "round": number, "metrics": metrics, "timeline": timeline})
        main = next((m for m, _, _ in COLUMNS if m in metrics), None)
        self.say("  %-22s round %d  %-12s %s %.6g" % (phase, number + 1, method.name, main,
                                                      metrics.get(main, 0)))
        self.write_json()

    def check(self, what, passed):
        self.checks.append({"workload": self.workload, "what": what, "passed": passed})
        if not passed:
            self.say("  FAILED: " + what)

    def error(self, workload, text):
        self.checks.append({"workload": workload, "what": text, "passed": False})
        self.say("FAILED: %s: %s" % (workload, text))

    def skip(self, workload, why):
        self.notes.append("%s skipped: %s" % (workload, why))
        self.say(self.notes[-1])

    # ---- evaluation ----

    def phases(self):
        seen = {}
        for row in self.rows:
            seen.setdefault((row["workload"], row["phase"]), None)
        return list(seen)

    def values(self, workload, phase, method, metric):
        return [row["metrics"][metric] for row in self.rows
                if (row["workload"], row["phase"], row["method"]) == (workload, phase, method)
                and row["metrics"].get(metric) is not None]

    def median(self, workload, phase, method, metric):
        values = self.values(workload, phase, method, metric)
        if metric in ("index_bytes", "heap_bytes") and values:
            return values[-1]
        if metric in SUMMED and values:
            return statistics.mean(values)
        return statistics.median(values) if values else None

    def ratios(self, workload, phase, method, metric):
        """Median of the rounds' ratios to the first method, least and greatest;
        for what is summed, the ratio of the sums."""
        base = self.values(workload, phase, self.methods[0].name, metric)
        mine = self.values(workload, phase, method, metric)
        if metric in ("index_bytes", "heap_bytes"):
            base, mine = base[-1:], mine[-1:]
        elif metric in SUMMED and base and mine:
            base, mine = [statistics.mean(base)], [statistics.mean(mine)]
        pairs = [m / b for m, b in zip(mine, base) if b > 0]
        if not pairs:
            return None
        return statistics.median(pairs), min(pairs), max(pairs)

    # ---- output ----

    def write_json(self):
        with open(self.directory / "results.json", "w") as out:
            json.dump({"environment": self.environment, "about": self.about, "checks": self.checks,
                       "notes": self.notes, "rows": self.rows}, out, indent=1)

    def write_csv(self):
        names = sorted({name for row in self.rows for name in row["metrics"]})
        with open(self.directory / "results.csv", "w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["workload", "phase", "method", "round"] + names)
            for row in self.rows:
                writer.writerow([row["workload"], row["phase"], row["method"], row["round"]] +
                                [row["metrics"].get(name, "") for name in names])

    def headline(self):
        """One line a phase: the ratios that matter, first method = 1."""
        metrics = [("tps", "throughput"), ("cpu_ms_each", "CPU"), ("p99", "p99"), ("max", "max"),
                   ("wal_bytes", "WAL"), ("index_bytes", "index size")]
        lines = []
        for method in self.methods[1:]:
            lines += ["", "%s, as a multiple of %s (medians of rounds; CPU and WAL: of all rounds together):" % (method.name, self.methods[0].name), "",
                      "| workload | phase | " + " | ".join(title for _, title in metrics) + " |",
                      "| --- | --- |" + " ---: |" * len(metrics)]
            for workload, phase in self.phases():
                cells = []
                for metric, _ in metrics:
                    names = {"tps": ("tps", "ms", "seconds"), "cpu_ms_each": ("cpu_ms_each", "cpu_ms", "cpu_seconds")}
                    cell = ""
                    for name in names.get(metric, (metric,)):
                        ratio = self.ratios(workload, phase, method.name, name)
                        if ratio:
                            value = ratio[0]
                            if metric == "tps" and name != "tps":
                                value = 1 / value if value > 0 else 0
                            cell = "%.2f" % value
                            break
                    if metric == "wal_bytes" and self.median(workload, phase, self.methods[0].name, metric) is not None \
                            and self.median(workload, phase, self.methods[0].name, metric) < 1e6:
                        cell = ""
                    if metric == "index_bytes" and workload == "micro":
                        cell = ""
                    cells.append(cell)
                lines.append("| %s | %s | %s |" % (workload, phase, " | ".join(cells)))
        return "\n".join(lines[1:] if lines else [])

    def markdown(self, charts):
        env = self.environment
        lines = ["# Benchmark results", "",
                 "%s, %s; %s, %s cores, %s GB. Rounds: %s of %s s, %s clients." %
                 (env["date"], env["server"].split(" on ")[0], env["processor"], env["cores"], env["memory_gb"],
                  env["rounds"], env["seconds"], env["clients"]), "",
                 "Settings: " + ", ".join("%s = %s" % item for item in env["settings"].items()) + ".", "",
                 self.headline()]
        for workload in self.about:
            lines += ["", "## " + workload, "", self.about[workload] + ".", ""]
            phases = [p for w, p in self.phases() if w == workload]
            for phase in phases:
                columns = [c for c in COLUMNS if any(
                    self.values(workload, phase, m.name, c[0]) for m in self.methods)]
                lines += ["### " + phase, "",
                          "| method | " + " | ".join(c[1] for c in columns) + " |",
                          "| --- |" + " ---: |" * len(columns)]
                for method in self.methods:
                    cells = []
                    for metric, _, _ in columns:
                        value = self.median(workload, phase, method.name, metric)
                        values = self.values(workload, phase, method.name, metric)
                        cell = "" if value is None else number(value)
                        if metric in ("tps", "ms", "cpu_ms") and len(values) > 1:
                            cell += " (%s-%s)" % (number(min(values)), number(max(values)))
                        cells.append(cell)
                    lines.append("| %s | %s |" % (method.name, " | ".join(cells)))
                lines.append("")
            for title, file in charts.get(workload, []):
                lines += ["![%s](%s)" % (title, file), ""]
        lines += ["", "## Checks", ""]
        failed = [c for c in self.checks if not c["passed"]]
        lines.append("%d checks, %d failed." % (len(self.checks), len(failed)))
        lines += ["- failed: %(workload)s: %(what)s" % c for c in failed]
        lines += ["- " + note for note in self.notes]
        return "\n".join(lines) + "\n"

    def write(self):
        from . import charts
        self.environment["load_at_end"] = os.getloadavg()
        self.write_json()
        self.write_csv()
        drawn = charts.draw(self)
        (self.directory / "report.md").write_text(self.markdown(drawn))


def number(value):
    if value >= 1000:
        return "{:,.0f}".format(value)
    return "%.3g" % value


def processor():
    try:
        for line in open("/proc/cpuinfo"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
