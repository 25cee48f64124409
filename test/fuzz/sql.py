#!/usr/bin/env python3
"""Random SQL as a role with no privileges: nothing that it does may crash the
server, read its memory, meet an internal error, or run its code as another role.

    sql.py --dir DIR --seconds N [--seed S] [--length N] [--postgres PROGRAM]
    sql.py --dir DIR --replay FILE          an episode that was kept

An episode is a sequence of statements from one seed, in a new copy of a database
in which the role "victim" has tables with indexes.  The role is "nothing", which
may create objects in its own schema only, or "granted", which may also read
victim's tables and call hybrid_may_contain and hybrid_approx_count.  Statements
call each function, procedure and view that the catalogs have of the extension, from
every place that can call a function.  Their values have all kinds of types.  Casts,
types, domains, operators and aggregates are the role's own too.

What is found is in the server's log, or a lost connection; the statements of the
episode are kept in DIR/found.  PATH must begin with the server's bin
directory; not as root.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "ddl")]

from client import Connection, Lost                                     # noqa: E402
from sql_generator import Catalog, Generator                            # noqa: E402

PORT = 65451
VICTIM = (HERE / "sql_victim.sql").read_text()
MINE = (HERE / "sql_mine.sql").read_text()
CONFIGURATION = """
listen_addresses = ''
unix_socket_directories = '%s'
port = %d
fsync = off
autovacuum = off
shared_buffers = 64MB
max_worker_processes = 16
statement_timeout = %ds
lock_timeout = 5s
deadlock_timeout = 200ms
jit = off
log_line_prefix = '%%m [%%p] %%e '
log_error_verbosity = verbose
log_min_messages = warning
log_min_error_statement = error
hybridindex.merge_floor = 500
"""

# Lines of the log that are findings.
BAD = re.compile(r"TRAP:|PANIC|terminated by signal|\bXX\d\d\d (ERROR|FATAL)|(ERROR|FATAL):  XX\d\d\d|ESCALATED|TRAPPED|Sanitizer|runtime error:|stack smashing"
                 "|[Ii]nvalid memory alloc|chunk|corrupted|wrote past|leak(ed)?: |resource was not closed|WARNING:  .*(buffer refcount|relcache reference|TupleDesc reference|snapshot reference)")

# Internal errors of the server, which has them without the extension too:
# estimators that are made for other operators, and values cast to "unknown".
NOT_OURS = re.compile(r"patternsel called for operator without a negator|unrecognized operator \d+ for inet selectivity|failed to find conversion function from unknown")

class Server:
    def __init__(self, directory, program):
        self.data, self.socket, self.log = directory / "data", directory, directory / "server.log"
        subprocess.run(["initdb", "-A", "trust", "-U", "postgres", "-N", "-D", str(self.data)], check=True, stdout=subprocess.DEVNULL)
        with open(self.data / "postgresql.conf", "a") as f:
            f.write(CONFIGURATION % (directory, PORT, 60 if program else 10))
        self.ctl("start", *(["-p", program] if program else []))
        self.read = 0

    def ctl(self, *words):
        environment = dict(os.environ)
        if environment.get("HYBRID_PRELOAD"):
            environment.update(LD_PRELOAD=environment["HYBRID_PRELOAD"], ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1", UBSAN_OPTIONS="print_stacktrace=1")
        subprocess.run(["pg_ctl", "-D", str(self.data), "-l", str(self.log), "-w", "-t", "300", "-m", "fast", *words], check=True, stdout=subprocess.DEVNULL, env=environment)

    def connect(self, user, database):
        for attempt in range(300):
            try:
                connection = Connection(str(self.socket), PORT, user, database)
                connection.socket.settimeout(900)
                return connection
            except (OSError, Lost):
                if attempt == 299:
                    raise
                time.sleep(0.2)

    def run(self, user, database, *statements):
        connection = self.connect(user, database)
        for sql in statements:
            answer = connection.query(sql)
            if answer.failed():
                raise SystemExit("%s: %s" % (sql[:200], answer.error["M"]))
        return connection

    def bad_lines(self):
        """What is wrong in the log since the last call."""
        lines = self.log.read_bytes()[self.read:].decode(errors="replace")
        self.read += len(lines.encode())
        lines = lines.splitlines()
        return ["\n".join(lines[i:i + 6]) for i, line in enumerate(lines)
                if BAD.search(line) and not NOT_OURS.search(line) and not re.search(r"STATEMENT:|CONTEXT:|LOCATION:", line)]


def run_episode(server, user, statements, done, errors):
    """Executes them in a new database; what was found, or None."""
    server.run("postgres", "postgres", "DROP DATABASE IF EXISTS fuzz WITH (FORCE)", "CREATE DATABASE fuzz TEMPLATE stage").close()
    server.run(user, "fuzz", MINE).close()
    server.bad_lines()
    failed = 0
    try:
        session = server.connect(user, "fuzz")
        sql = next(statements)
        while sql:
            done.append(sql)
            answer = session.query(sql)
            if answer.failed():
                failed += 1
                errors[answer.error["C"] + " " + re.sub(r"[\w.]*\d+\w*", "N", answer.error["M"][:100])] += 1
            if session.status == "E":
                done.append("ROLLBACK")
                session.query("ROLLBACK")
            sql = statements.send(not answer.failed())
    except StopIteration:
        session.close()
    except Lost as lost:
        time.sleep(1)
        return failed, ["%s" % lost] + server.bad_lines()
    return failed, server.bad_lines()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--length", type=int, default=250)
    parser.add_argument("--errors", type=int, default=0, help="so many of the most frequent ones are shown")
    parser.add_argument("--postgres", help="the program to start, if not the server's own")
    parser.add_argument("--replay", type=Path)
    options = parser.parse_args()
    server = Server(options.dir.resolve(), options.postgres)
    roles = "CREATE ROLE victim LOGIN; CREATE ROLE nothing LOGIN; CREATE ROLE granted LOGIN"
    server.run("postgres", "postgres", roles, "CREATE DATABASE stage").close()
    stage = server.run("postgres", "stage", VICTIM)
    catalog = Catalog(stage)
    stage.close()
    try:
        return search(server, catalog, options)
    finally:
        server.ctl("stop")


def search(server, catalog, options):
    found = options.dir / "found"
    found.mkdir(exist_ok=True)
    counts = {"episodes": 0, "statements": 0, "failed": 0, "found": 0}
    errors = Counter()
    seed, until = options.seed, time.time() + options.seconds
    while time.time() < until:
        generator, done = Generator(seed, catalog), []
        user, statements = generator.pick("nothing", "granted", "granted"), generator.statements(options.length)
        if options.replay:
            user, kept = json.loads(options.replay.read_text())
            statements = (sql for sql in kept)
        failed, bad = run_episode(server, user, statements, done, errors)
        for key, n in (("episodes", 1), ("statements", len(done)), ("failed", failed), ("found", len(bad))):
            counts[key] += n
        if bad:
            (found / ("%d.json" % seed)).write_text(json.dumps([user, done], indent=0))
            print("seed %d, role %s, %d statements, the last one: %s\n%s" % (seed, user, len(done), done[-1], "\n".join(bad[:3])), flush=True)
        if options.replay:
            break
        seed += 1
    for error, n in errors.most_common(options.errors):
        print("%d times %s" % (n, error))
    print(", ".join("%d %s" % (n, key) for key, n in counts.items()))
    return 1 if counts["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
