#!/usr/bin/env python3
"""Figures of this machine, to send as an issue: hybrid beside btree, an hour.

    ./dev bench report.py DIRECTORY [--minutes N]   builds and installs nothing elsewhere
    bench/report.py DIRECTORY [--minutes N]         with a server that has hybridindex installed
    bench/report.py DIRECTORY --existing            on the server that libpq's variables name
    bench/report.py --plan                          what would run, and how long
                    --only PARTS                    names of parts, as a list

A server of our own is made in DIRECTORY, which should lie on the disk to measure, and
goes at the end.  DIRECTORY then has report.md, the page to send, and raw.tar.gz.  Neither
names this machine, its users or its network.  Keep the machine idle meanwhile.

The programs of bench/ run one after the other, with rows, clients and memory for the
machine and the time.  One that fails is reported, and the next one runs.  Ctrl-C writes
the page of what there is.

As root, memory is limited by control groups, so more is measured of what is larger
than memory; the server runs as user postgres.  With --existing the programs use a
database of their own, hybridindex_report, but change settings of the server and make
checkpoints.  That needs a superuser, and no one else should use the server.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.limit import try_limit                                     # noqa: E402
from harness.machine import facts, free_bytes, gigabytes, memory_bytes, output, processors     # noqa: E402
from harness.own_server import OwnServer                                # noqa: E402
from harness.parts import PARTS, RATE, Machine                          # noqa: E402
from harness.server import BENCH, BenchError, Server                    # noqa: E402

TOP = BENCH.parent
DATABASE = "hybridindex_report"
START = 20              # seconds until the first part
LATE = 30               # seconds that the last part may end late, rather than be left out
DISK = 250_000_000      # bytes for each minute
PROBE_ROWS = 1_000_000
PROBE = """CREATE TABLE probe (k int8); CREATE UNIQUE INDEX ON probe (k);
    INSERT INTO probe SELECT hashint8extended(i, 0) FROM generate_series(1, %d) i; CHECKPOINT""" % PROBE_ROWS
# Settings that say how the server works, and not where or for whom.
SETTINGS = """SELECT name, current_setting(name) FROM pg_settings
    WHERE (source NOT IN ('default', 'override') OR name IN ('fsync', 'full_page_writes', 'synchronous_commit'))
        AND (category ~ '^(Resource Usage|Write-Ahead Log / (Settings|Checkpoints)|Query Tuning|Autovacuum|Vacuuming)'
            OR name ~ '^hybridindex[.]' OR name IN ('max_connections', 'jit', 'data_checksums')) ORDER BY 1"""


class Done:
    """A part that was run."""

    def __init__(self, part, command):
        self.part, self.command = part, command
        self.result, self.seconds, self.output = "interrupted", 0, ""

    def figures(self):
        """A program that was cut, or that prints something new, has few or none."""
        try:
            return self.part.figures(self.output)
        except (ValueError, IndexError, KeyError, TypeError):
            return []


# ---- what is private ----

def private_words():
    """[word, what is said instead], longest first."""
    words = {os.uname().nodename: "HOST"}
    for name in ("HOME", "PGHOST", "PGHOSTADDR", "PGUSER", "USER", "SUDO_USER", "LOGNAME", "TMPDIR"):
        words.setdefault(os.environ.get(name, ""), name)
    dull = ("root", "postgres", "localhost", "server", "hybrid", "hybridindex", "btree", "bench", "/root", "/tmp", "/")
    return sorted(((word, name) for word, name in words.items() if len(word) > 2 and word not in dull),
                  key=lambda pair: -len(pair[0]))


def scrubbed(text, words):
    for word, name in words:
        text = re.sub(r"(?<![A-Za-z0-9_])%s(?![A-Za-z0-9_])" % re.escape(word), name, text)
    text = re.sub(r'(connection to server at) "[^"]*"( \([^)]*\))?', r"\1 HOST", text)
    return re.sub(r"\b\d{1,3}(\.\d{1,3}){3}\b", "ADDRESS", text)


# ---- a part ----

class Report:
    def __init__(self, options):
        self.options = options
        self.directory = Path(options.directory).resolve()
        self.begun = time.time()
        self.end = self.begun + 60 * options.minutes
        self.server = self.machine = self.own = None
        self.home = os.environ.get("PGDATABASE", "postgres")
        self.facts, self.settings, self.words = [], [], []
        self.done, self.waiting, self.left_out = [], [], []

    def say(self, text):
        print("[%3d min] %s" % ((time.time() - self.begun) / 60, text), flush=True)

    def raw(self, name):
        return self.directory / "raw" / name

    def prepare(self, own):
        """Learns about the server and the machine."""
        self.own = own
        self.server = Server(own.restart_command() if own else None)
        self.words = [(str(self.directory), "DIRECTORY"), (str(TOP), "SOURCE"), *private_words()]
        if self.server.psql("SELECT name FROM pg_available_extensions WHERE name = 'hybridindex'") == []:
            raise BenchError("the server%s has no hybridindex: make install, or ./dev bench report.py, which needs none" % (
                " of %s" % own.programs if own else ""))
        self.fresh({})
        version, buffers = map(int, self.server.psql(
            "SELECT current_setting('server_version_num')::int / 10000, setting::bigint * 8192 "
            "FROM pg_settings WHERE name = 'shared_buffers'")[0])
        start = time.monotonic()
        self.server.psql(PROBE)
        rate = PROBE_ROWS / (time.monotonic() - start)
        self.machine = Machine(processors(), rate, buffers, own is not None and can_limit(), version, own is not None)
        self.facts = facts(own.data if own else None)
        self.facts += [("probe", "%.0f rows a second, with a checkpoint (%d random int8 into a unique btree)" % (rate, PROBE_ROWS)),
                       ("server", self.server.value("SELECT version()")),
                       ("library", "%s, %s" % (self.server.value("SELECT hybrid_version()"), commit()))]
        self.settings = self.server.psql(SETTINGS)

    def fresh(self, settings):
        """A database without anything, on a server with these settings."""
        if self.own:
            self.own.restart(settings)
        self.drop()
        self.server.psql("CREATE DATABASE %s" % DATABASE)
        os.environ["PGDATABASE"] = DATABASE
        self.server.psql("CREATE EXTENSION hybridindex")

    def drop(self):
        os.environ["PGDATABASE"] = self.home
        self.server.psql("DROP DATABASE IF EXISTS %s WITH (FORCE)" % DATABASE)

    def run(self, part, seconds):
        command = part.command(seconds, self.machine)
        done = Done(part, command)
        self.done.append(done)
        self.say("%s (%.0f min): %s" % (part.title, max(1, seconds / 60), command))
        name = "%02d-%s" % (len(self.done), part.name)
        arguments = [str(BENCH / command.program), *command.arguments]
        if command.program == "run.py":
            arguments += ["--output", str(self.raw(name))]
        if command.restarts:
            arguments += ["--restart-command", self.own.restart_command()]
        begun = time.time()
        try:
            if not Path(arguments[0]).exists():
                raise BenchError("this tree does not have it")
            self.fresh(command.settings)
            self.program(done, arguments, self.raw(name + ".txt"),
                         min(max(1.7 * seconds, seconds + 60), self.end + 120 - time.time()))
        except BenchError as error:
            done.result = "failed: %s" % str(error).splitlines()[0]
        finally:
            done.seconds = time.time() - begun
        if done.result == "done" and not done.figures():
            done.result += ", but what it printed has no figures that we know"
        self.say(done.result)

    def program(self, done, arguments, path, most):
        """Runs a program, and stops it after `most` seconds.  What it prints is the part's
        output, and goes to a file with its errors."""
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **done.command.environment}
        command = ["sh", *arguments] if arguments[0].endswith(".sh") else [sys.executable, *arguments]
        with open(path, "w") as raw:
            child = subprocess.Popen(command, cwd=TOP, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=raw, text=True, start_new_session=True)
            teller = threading.Thread(target=tell, args=(child.stdout, raw, done), daemon=True)
            teller.start()
            try:
                child.wait(most)
                last = path.read_text().splitlines()[-1:]
                done.result = "done" if child.returncode == 0 else "failed, exit code %d: %s" % (
                    child.returncode, "".join(last)[:300])
            except subprocess.TimeoutExpired:
                done.result = "cut after %.1f minutes" % (most / 60)
                stop(child, 60)
            except KeyboardInterrupt:
                stop(child, 8)
                raise
            finally:
                teller.join(1)

    # ---- all parts ----

    def parts(self):
        """Runs what there is time for.  What parts take more or less than their share is
        taken from the later ones, or given to them."""
        self.waiting, self.left_out = choose(self.options.only, self.end - time.time(), self.machine)
        print_plan(self.waiting, self.left_out, self.end - time.time())
        while self.waiting:
            left = self.end - time.time()
            while self.waiting and sum(part.least for part in self.waiting) > left + LATE:
                self.left_out.append((self.waiting.pop(), "no time was left"))
            if self.waiting:
                seconds = share(self.waiting, left)
                self.run(self.waiting.pop(0), seconds)
                self.write()

    # ---- the page ----

    def write(self):
        lines = ["# hybridindex beside btree: %d processors, %s" % (processors(), gigabytes(memory_bytes())), "",
                 "%s, %.0f of %d minutes." % (time.strftime("%Y-%m-%d", time.gmtime(self.begun)),
                                              (time.time() - self.begun) / 60, self.options.minutes), "",
                 "| | |", "| --- | --- |"]
        lines += ["| %s | %s |" % row for row in self.facts]
        lines += ["", "Settings: " + ", ".join("`%s = %s`" % (name, value) for name, value in self.settings) + ".", "",
                  "## In short", "",
                  "Hybrid by btree. A rate above 1 and CPU, WAL and size below 1 are better than btree.", "",
                  "| what | rate | CPU | WAL | index size |", "| --- | ---: | ---: | ---: | ---: |"]
        for done in self.done:
            for name, *ratios in done.figures():
                lines.append("| %s: %s | %s |" % (done.part.title, name.removeprefix(done.part.name + ", "), " | ".join(ratios)))
        lines += ["", "## What was run", "", "| part | command | minutes | result |", "| --- | --- | ---: | --- |"]
        for done in self.done:
            lines.append("| %s | `%s` | %.1f | %s |" % (done.part.title, done.command, done.seconds / 60, done.result))
        for part, why in [*[(part, "interrupted") for part in self.waiting], *self.left_out]:
            lines.append("| %s | | | not run: %s |" % (part.title, why))
        for done in self.done:
            if done.output:
                lines += ["", "## " + done.part.title, "", done.output.strip()]
        (self.directory / "report.md").write_text(scrubbed("\n".join(lines) + "\n", self.words))

    def pack(self):
        """The page and what it was made of; nothing, if no part was run."""
        if self.done:
            self.write()
            if self.own:
                shutil.copyfile(self.own.log, self.raw("server.log"))
            for path in self.raw("").rglob("*.*"):
                path.write_text(scrubbed(path.read_text(errors="replace"), self.words))
            with tarfile.open(self.directory / "raw.tar.gz", "w:gz") as packed:
                packed.add(self.raw(""), "raw", filter=without_owner)
        shutil.rmtree(self.raw(""))
        if self.own:
            self.own.log.unlink()


def without_owner(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def tell(lines, raw, done):
    for line in lines:
        done.output += line
        raw.write(line)
        raw.flush()
        print("          | " + line, end="", flush=True)


def stop(child, patience):
    """As Ctrl-C does, so that it tidies up.  After `patience` seconds it is killed."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            if child.poll() is None:
                os.killpg(child.pid, number)
                child.wait(patience)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            pass


def can_limit():
    limit = try_limit(64)
    if limit:
        limit.remove()
    return limit is not None


def commit():
    """Of the sources beside us, and whether they were changed."""
    git = ["git", "-c", "safe.directory=%s" % TOP, "-C", str(TOP)]
    found = output(*git, "rev-parse", "--short=12", "HEAD")
    if not found:
        return "sources that are no clone"
    return "commit %s%s" % (found, ", changed" if output(*git, "status", "--porcelain", "-uno") else "")


# ---- time ----

def choose(only, seconds, machine):
    """Parts that run, and those that do not, with why."""
    chosen, left_out = [], []
    for part in [part for part in PARTS if part.name in only]:
        needed = sum(p.most if part.last else p.least for p in chosen) + part.least
        if (part.own or part.limited) and not machine.own:
            left_out.append((part, "it restarts its server"))
        elif part.limited and not machine.can_limit:
            left_out.append((part, "it limits memory by control groups, as root"))
        elif needed > seconds:
            left_out.append((part, "it needs %d minutes more" % ((needed - seconds) / 60 + 1)))
        else:
            chosen.append(part)
    return chosen, left_out


def share(parts, seconds):
    """Of the first part: its least, and of what is left over by what each could use."""
    least, most = sum(part.least for part in parts), sum(part.most for part in parts)
    over = max(0, min((seconds - least) / (most - least), 1))
    return parts[0].least + over * (parts[0].most - parts[0].least)


def print_plan(parts, left_out, seconds):
    print("\nWhat runs, with minutes:")
    for number, part in enumerate(parts):
        of_this = share(parts[number:], seconds)
        print("  %4.1f  %s" % (of_this / 60, part.title))
        seconds -= of_this
    for part, why in left_out:
        print("     -  %s: %s" % (part.title, why))
    print(flush=True)


# ---- the command ----

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", metavar="DIRECTORY", help="on the disk to measure; new, or empty")
    parser.add_argument("--minutes", type=int, default=60, help="in all, 10 or more (60)")
    parser.add_argument("--only", default=",".join(part.name for part in PARTS), metavar="PARTS")
    parser.add_argument("--existing", action="store_true", help="use the server that libpq's variables name")
    parser.add_argument("--plan", action="store_true", help="print what would run on a server of our own, and end")
    options = parser.parse_args()
    if options.plan:
        options.directory = options.directory or "."
    elif not options.directory:
        parser.error("which DIRECTORY?  It should lie on the disk to measure")
    if options.minutes < 10 and options.only == parser.get_default("only"):
        parser.error("in less than 10 minutes figures say nothing")
    options.only = options.only.split(",")
    return options


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(number, frame):
    """Once: what follows is not to be interrupted."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    options = arguments()
    if options.plan:
        seconds = 60 * options.minutes - START
        print_plan(*choose(options.only, seconds, Machine(processors(), RATE, 0, can_limit(), 0, True)), seconds)
        return 0
    # ./dev has us ignore SIGINT, which we send to what we start
    for number in SIGNALS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    report = Report(options)
    directory = report.directory
    directory.mkdir(exist_ok=True)
    if any(directory.iterdir()):
        raise BenchError("%s is not empty" % directory)
    if not options.existing and free_bytes(directory) < options.minutes * DISK:
        raise BenchError("%s has less than %s free" % (directory, gigabytes(options.minutes * DISK)))
    report.raw("").mkdir()
    try:
        measure(report)
    except KeyboardInterrupt:
        report.say("interrupted")
    finally:
        report.pack()
    if not report.done:
        return 1
    print("\n%s/report.md is the page.  Please read it, and send it with raw.tar.gz as an issue (template: Figures)." %
          directory)
    return 0


def measure(report):
    minutes = report.options.minutes
    if report.options.existing:
        report.say("on the server that is there; %d minutes" % minutes)
        try:
            report.prepare(None)
            report.parts()
        finally:
            if report.server:
                report.drop()
    else:
        report.say("making a server; %d minutes in all" % minutes)
        with OwnServer(report.directory) as own:
            report.prepare(own)
            report.parts()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit("report: %s" % error)
