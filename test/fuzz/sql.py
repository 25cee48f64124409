#!/usr/bin/env python3
"""Random SQL as a role with no privileges.  Nothing that it does may crash the server,
read its memory, meet an internal error, or run its code as another role.  None of its
statements may wait longer than it would with btree.

    sql.py --dir DIR --seconds N [--seed S] [--length N] [--postgres PROGRAM]
    sql.py --dir DIR --replay FILE          an episode that was kept

An episode is a sequence of statements from one seed, in a new copy of a database
in which the role "victim" has tables with indexes.  The role is "nothing", which
may create objects in its own schema only, or "granted", which may also read
victim's tables.  Statements call each function, procedure and view that the
catalogs have of the extension, from every place that can call a function.  Their
values have all kinds of types.  Casts, types, domains, operators and aggregates are
the role's own too.

In half of the episodes sessions of another role, "holder", hold locks meanwhile.  They
lock their own tables, row types and indexes, and what a comparison function reads.  They
lock tables of the first role, too.  They have cursors open, and a socket that is not
read.  A twin database has btree indexes in place of hybrid ones, and the same
statements run there at the same time.  The server's log says who waits for whom.

What is found is in the server's log, or a lost connection, or a wait:
* a statement waits for a lock of the holder, and succeeds in the twin without waiting;
  but for the tables of row types and functions, which sessions may need at other times
* what waits for no lock, as documents say, or VACUUM for these tables, does wait
* no timeout ends a statement, or one ends it that has waited for something but a lock,
  where it succeeds at once in the twin
The statements of the episode are kept in DIR/found.  PATH must begin with the server's
bin directory; not as root.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "ddl")]

from client import Connection, Lost                                     # noqa: E402
from sql_generator import NO_WAIT, Catalog, Generator                   # noqa: E402

PORT = 65451
VICTIM = (HERE / "sql_victim.sql").read_text()
HOLDER = (HERE / "sql_holder.sql").read_text()
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
deadlock_timeout = 20ms
log_lock_waits = on
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

# An internal error of the server, which has it without the extension too: a value
# cast to "unknown".
NOT_OURS = re.compile(r"failed to find conversion function from unknown")

# Two lines of the server's log: a process waits for a lock; these processes have it.
WAITS = re.compile(r"process (\d+) still waiting for (\w+ on .*?) after [\d.]+ ms\n(?:.*LOCATION.*\n)?.*holding the lock: ([\d, ]+)\.")

# Seconds in which a statement ends that any timeout can end: those of an episode with
# locks are much shorter.
LIMIT = 40
TIMEOUTS = ("lock_timeout = '100ms'", "statement_timeout = '5s'")


class Server:
    def __init__(self, directory, program):
        self.data, self.socket, self.log = directory / "data", directory, directory / "server.log"
        subprocess.run(["initdb", "-A", "trust", "-U", "postgres", "-N", "-D", str(self.data)], check=True, stdout=subprocess.DEVNULL)
        with open(self.data / "postgresql.conf", "a") as f:
            f.write(CONFIGURATION % (directory, PORT, 60 if program else 10))
        self.ctl("start", *(["-p", program] if program else []))
        self.read = self.read_waits = 0
        self.type_tables = ()

    def ctl(self, *words):
        environment = dict(os.environ)
        if environment.get("HYBRID_PRELOAD"):
            environment.update(LD_PRELOAD=environment["HYBRID_PRELOAD"], ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1", UBSAN_OPTIONS="print_stacktrace=1")
        subprocess.run(["pg_ctl", "-D", str(self.data), "-l", str(self.log), "-w", "-t", "300", "-m", "fast", *words], check=True, stdout=subprocess.DEVNULL, env=environment)

    def connect(self, user, database, options=""):
        for attempt in range(300):
            try:
                connection = Connection(str(self.socket), PORT, user, database, options)
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


    def waits(self):
        """Which processes have begun to wait since the last call: with lock, and its holders."""
        with open(self.log, "rb") as log:
            log.seek(self.read_waits)
            lines = log.read()
        self.read_waits += len(lines)
        return [(int(pid), lock, {int(n) for n in holders.split(",")}) for pid, lock, holders in WAITS.findall(lines.decode(errors="replace"))]


def as_btree(sql):
    """Statements for the twin database."""
    sql = re.sub(r"USING '?hybrid'?", "USING btree", sql).replace("text_hope_ops", "text_ops")
    sql = re.sub(r"(CALL|PERFORM|SELECT) hybrid_(convert|revert)\w*\(", r"\1 no_function(", sql.replace("hybridindex.replace_btree", "hybridindex.no_setting"))
    return re.sub(r" WITH \((filter|layout|levels|compression)[^)]*\)", "", sql)


class Alone:
    """The first role's session."""
    databases = {"fuzz": "stage"}

    def __init__(self, server, user):
        self.session = server.connect(user, "fuzz")
        self.found, self.counts = [], {}

    def execute(self, sql):
        """Returns the answer, and rolls a failed transaction back."""
        answer = self.session.query(sql)
        failed = self.session.status == "E"
        if failed:
            self.session.query("ROLLBACK")
        return answer, failed

    def close(self):
        self.session.close()


class Stuck(Exception):
    """No timeout ends a statement."""


class Pair:
    """A role's sessions in both databases."""

    def __init__(self, server, look, user, options=""):
        self.look = look
        self.sessions = [server.connect(user, database, options) for database in ("fuzz", "twin")]
        self.pids = [int(s.query("SELECT pg_backend_pid()").rows[0][0]) for s in self.sessions]
        self.pool = ThreadPoolExecutor(2)
        self.unread = False

    def query(self, sql, twin_sql):
        """Both answers; times that they took; what the first session was seen waiting for."""
        return self.both([lambda s=s, text=text: s.query(text) for s, text in zip(self.sessions, (sql, twin_sql))])

    def both(self, calls):
        begun, took, seen = time.time(), [0, 0], []

        def timed(n, call):
            answer = call()
            took[n] = time.time() - begun
            return answer
        answers = [self.pool.submit(timed, n, call) for n, call in enumerate(calls)]
        while wait(answers, 1 if not seen else 0.3).not_done:
            if not answers[0].done():
                seen.append(self.look.query("SELECT wait_event_type || ' ' || wait_event FROM pg_stat_activity WHERE pid = %d" % self.pids[0]).rows)
            if time.time() - begun > LIMIT:
                raise Stuck("the twin" if answers[0].done() else "process %d" % self.pids[0])
        return [a.result() for a in answers], took, [rows[0][0] or "" for rows in seen if rows]

    def send(self, sql, twin_sql):
        """Does not read what the sessions answer."""
        for session, text in zip(self.sessions, (sql, twin_sql)):
            session.send(b"Q", text.encode() + b"\0")
        self.unread = True

    def read(self):
        if self.unread:
            self.both([lambda s=s: s.finish(None) for s in self.sessions])
        self.unread = False

    def statuses(self):
        return [s.status for s in self.sessions]

    def close(self):
        for session in self.sessions:
            session.socket.close()
        self.pool.shutdown(wait=False)


class Held:
    """The first role's session, and those that hold locks, in the database and its twin."""
    databases = {"fuzz": "stage", "twin": "stage_twin"}

    def __init__(self, server, user):
        self.server = server
        self.found = []
        self.counts = Counter()
        self.look = server.connect("postgres", "postgres")
        for name in self.databases:
            for timeout in TIMEOUTS:
                self.look.query("ALTER DATABASE %s SET %s" % (name, timeout))
        self.user = user
        self.first = Pair(server, self.look, user)
        self.holders = {name: Pair(server, self.look, "holder") for name in ("holder 1", "holder 2", "unread")}

    def execute(self, item):
        try:
            return self.hold(*item) if isinstance(item, list) else self.compare(item)
        except Stuck as stuck:
            if "twin" not in str(stuck):
                self.found.append("%s: no timeout ends %s: %s" % (stuck, item, self.activity()))
            self.server.ctl("-m", "immediate", "restart")
            raise

    def activity(self):
        return [self.look.query(sql).rows for sql in (
            "SELECT pid, datname, usename, state, wait_event_type, wait_event, pg_blocking_pids(pid), left(query, 100) FROM pg_stat_activity WHERE state <> 'idle'",
            "SELECT pid, locktype, relation, mode FROM pg_locks WHERE NOT granted")]

    def hold(self, name, sql, twin_sql):
        if name == "first":
            self.first.close()
            self.first = Pair(self.server, self.look, self.user)
            return None, False
        pair = self.holders[name]
        pair.read()
        if name == "unread" and sql != "ROLLBACK":
            pair.query("ROLLBACK", "ROLLBACK")
            pair.send(sql, as_btree(twin_sql))
            time.sleep(0.05)
            return None, False
        answers = pair.query(sql, as_btree(twin_sql))[0]
        if "E" in pair.statuses() or answers[0].failed() != answers[1].failed():
            pair.query("ROLLBACK", "ROLLBACK")
        return None, False

    def compare(self, sql):
        self.server.waits()
        (answer, twin), took, seen = self.first.query(sql, as_btree(sql))
        waits = self.server.waits()
        holders = {pair.pids[0] for pair in self.holders.values()}
        mine = [lock for pid, lock, by in waits if pid == self.first.pids[0] and by & holders and not re.search(r"on (transaction|virtual|tuple)", lock)]
        others = [lock for lock in mine if not re.search(r"on relation (%s) " % "|".join(self.server.type_tables), lock)]
        code = answer.error["C"] if answer.failed() else None
        twin_waits = any(pid == self.first.pids[1] for pid, _, _ in waits)
        like_btree = not twin.failed() and not twin_waits
        self.counts.update(waits=bool(mine), twin_waits=twin_waits)
        events = Counter(event for event in seen if not re.match(r"$|Lock |IO |Timeout |Activity ", event))
        if sql.startswith(NO_WAIT) and (mine or code == "55P03"):
            self.found.append("waits, though for no lock: %s, %s" % (mine, code))
        elif re.match(r"VACUUM(?!.*ANALYZE)", sql) and like_btree and mine:
            self.found.append("VACUUM waits for %s, with btree for nothing" % mine)
        elif like_btree and others:
            self.found.append("waits for %s, with btree for nothing" % others)
        elif code == "57014" and not twin.failed() and took[1] < took[0] / 4 and len(seen) >= 8 and sum(events.values()) > len(seen) * 0.8 \
                and not (sql.startswith("VACUUM") and "BufferPin BufferPin" in events):
            self.found.append("a timeout ends a wait for %s after %.1f s, %.1f s with btree" % (events, *took))
        rolled_back = "E" in self.first.statuses() or self.first.statuses()[0] != self.first.statuses()[1]
        if rolled_back:
            self.first.query("ROLLBACK", "ROLLBACK")
        return answer, rolled_back

    def close(self):
        for pair in (self.first, *self.holders.values()):
            pair.close()
        self.look.close()


def run_episode(server, user, statements, held, done, errors, counts):
    """Executes them in new databases; returns how many failed, and what was found."""
    kind = Held if held else Alone
    for name, template in kind.databases.items():
        server.run("postgres", "postgres", "DROP DATABASE IF EXISTS %s WITH (FORCE)" % name, "CREATE DATABASE %s TEMPLATE %s" % (name, template)).close()
        server.run(user, name, MINE if name == "fuzz" else as_btree(MINE)).close()
    server.bad_lines()
    failed, episode = 0, None
    try:
        episode = kind(server, user)
        sql = next(statements)
        while sql and not episode.found:
            done.append(sql)
            answer, rolled_back = episode.execute(sql)
            if answer and answer.failed():
                failed += 1
                errors[answer.error["C"] + " " + re.sub(r"[\w.]*\d+\w*", "N", answer.error["M"][:100])] += 1
            if rolled_back:
                done.append("ROLLBACK")
            sql = statements.send(not (answer and answer.failed()))
    except (StopIteration, Stuck):
        pass
    except Lost as lost:
        time.sleep(1)
        return failed, ["%s" % lost] + server.bad_lines()
    episode.close()
    counts.update(episode.counts)
    return failed, episode.found + server.bad_lines()


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
    roles = "CREATE ROLE victim LOGIN; CREATE ROLE nothing LOGIN; CREATE ROLE granted LOGIN; CREATE ROLE holder LOGIN"
    server.run("postgres", "postgres", roles, "CREATE DATABASE stage", "CREATE DATABASE stage_twin").close()
    server.run("postgres", "stage_twin", as_btree(VICTIM), as_btree(HOLDER)).close()
    stage = server.run("postgres", "stage", VICTIM, HOLDER)
    catalog = Catalog(stage)
    server.type_tables = [row[0] for row in stage.query("SELECT oid FROM pg_class WHERE relnamespace = 'its'::regnamespace AND relname IN ('part', 'bare', 'looked_up')").rows]
    stage.close()
    try:
        return search(server, catalog, options)
    finally:
        server.ctl("stop")


def search(server, catalog, options):
    found = options.dir / "found"
    found.mkdir(exist_ok=True)
    counts = Counter(episodes=0, statements=0, failed=0, waits=0, twin_waits=0, found=0)
    errors = Counter()
    seed, until = options.seed, time.time() + options.seconds
    while time.time() < until:
        held, done = seed % 2 == 0, []
        generator = Generator(seed, catalog, held)
        user, statements = generator.pick("nothing", "granted", "granted"), generator.statements(options.length)
        if options.replay:
            user, kept = json.loads(options.replay.read_text())
            held, statements = any(isinstance(item, list) for item in kept), (item for item in kept)
        failed, bad = run_episode(server, user, statements, held, done, errors, counts)
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
    print(", ".join("%d %s" % (n, key.replace("twin_", "twin's ")) for key, n in counts.items()))
    return 1 if counts["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
