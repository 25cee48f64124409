#!/usr/bin/env python3
"""Random DDL in two databases of one server, one of which makes hybrid what is
btree in the other.

    ddl.py --dir DIR --minutes N [--seed S] [--length N]
    ddl.py --dir DIR --replay FILE          an episode that was kept
    ddl.py --dir DIR --reduce FILE          and what of it still differs

An episode is a sequence of statements from one seed in two new databases.  In
"hybrid" hybridindex.replace_btree is on, indexes are converted and reverted
between statements, and sessions begin anew.  In "btree" the extension does not
exist.  Each statement has to end in the same way in both: error, messages, rows,
command tags, the state of the transaction.  Now and then, and at the end of an
episode, the catalogs are compared as users see them, and the rows of all tables,
and hybrid indexes are checked against their tables.  An episode ends with its
first difference; it is kept in DIR/found, reduced to the statements it needs.

PATH must begin with the server's bin directory; not as root.
"""
import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from client import Connection, Lost                                     # noqa: E402
from generator import SETUP, Generator                                  # noqa: E402

PORT = 65450
CATALOG = (HERE / "catalog.sql").read_text()
STATE = (HERE / "state.sql").read_text()
CONFIGURATION = """
listen_addresses = ''
unix_socket_directories = '%s'
port = %d
fsync = off
autovacuum = off
max_prepared_transactions = 4
allow_in_place_tablespaces = on
shared_buffers = 64MB
max_wal_size = 2GB
wal_level = logical
statement_timeout = 60s
lock_timeout = 20s
deadlock_timeout = 1s
jit = off
max_parallel_workers_per_gather = 0
max_parallel_maintenance_workers = 0
extra_float_digits = 0
log_line_prefix = '%%m [%%p] %%d '
log_statement = none
log_min_messages = log
log_min_error_statement = panic
hybridindex.dynamic_memory = 64kB
"""

# Notices of the extension alone, which are not compared.
OWN_NOTICES = re.compile("(will be|becomes one|stays|is) of access method|becomes one of access method|^skipping index|"
                         "is not kept$|are not kept$|has been left by an operation|"
                         "sessions that have not loaded the library")

# Differences that docs/switching.md and README's limits name: an episode ends
# with them, and that is all.
DOCUMENTED = [
    "ADD CONSTRAINT USING INDEX is not supported on partitioned tables",
    "cannot be used with INSERT ... ON CONFLICT into a partitioned table",
    "as replica identity",
    "ON CONFLICT is not supported on partitioned table",
]


class Difference(Exception):
    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind
        self.signature = kind + ": " + re.sub(r"\bN\b|\d+", "N", re.sub(r'"[^"]*"|\b[citk]\d+\w*', "X", text))[:150]


class Documented(Exception):
    pass


def normal(text):
    """What may differ is made the same."""
    if text is None:
        return None
    text = text.replace("hyb.", "").replace("pg_catalog.", "")
    text = re.sub(r"\bhybrid\b", "btree", text)
    text = re.sub(r",?\s*\"?access_method\"?='?btree'?", "", text)
    text = re.sub(r" WITH \(\)", "", text).replace("{}", "").replace("WITH (, ", "WITH (").replace("{,", "{")
    text = re.sub(r"\bcstring\b", "name", text)
    text = re.sub(r"pg_(toast_)?temp_\d+", r"pg_\1temp", text)
    return re.sub(r" +", " ", re.sub(r"(?<!ERROR )(?<!\d)\d{5,}", "N", text))


def outcome(answer):
    """What both databases have to agree on, a line for each fact."""
    facts = ["tag " + tag for tag in answer.tags]
    for told in answer.notices:
        if told["V"] in ("NOTICE", "WARNING", "INFO") and not OWN_NOTICES.search(told["M"]):
            facts += ["%s %s %s" % (told["V"], told["C"], told["M"])]
            facts += ["detail " + told["D"]] if "D" in told else []
            facts += ["hint " + told["H"]] if "H" in told else []
    if answer.error:
        facts.append("ERROR %s %s" % (answer.error["C"], answer.error["M"]))
        if answer.error["C"] not in ("23505", "23503"):
            facts += ["detail " + answer.error["D"]] if "D" in answer.error else []
            facts += ["hint " + answer.error["H"]] if "H" in answer.error else []
    return [normal(fact) for fact in facts] + sorted("row " + normal(str(row)) for row in answer.rows)


class Server:
    def __init__(self, directory):
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "server.log"

    def start(self):
        if not self.data.exists():
            subprocess.run(["initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
                            "--no-sync"], check=True, stdout=subprocess.DEVNULL)
            with open(self.data / "postgresql.conf", "a") as conf:
                conf.write(CONFIGURATION % (self.directory, PORT))
            self.up()
            connection = self.connect("postgres")
            for sql in ("CREATE ROLE joe", "CREATE TABLESPACE ts1 LOCATION ''", "CREATE TABLESPACE ts2 LOCATION ''",
                        "GRANT CREATE ON TABLESPACE ts1 TO joe", "CREATE DATABASE template_hybrid", "CREATE DATABASE template_btree"):
                connection.query(sql)
            connection.close()
            for database in ("hybrid", "btree"):
                connection = self.connect("template_" + database)
                extension = "CREATE SCHEMA hyb; CREATE EXTENSION hybridindex SCHEMA hyb; GRANT USAGE ON SCHEMA hyb TO public;"
                answer = connection.query((extension if database == "hybrid" else "") + SETUP)
                assert not answer.failed(), answer.error
                connection.close()
        else:
            self.up()

    def up(self):
        subprocess.run(["pg_ctl", "-s", "-D", self.data, "-l", self.log, "-w", "start"], check=True)

    def stop(self):
        subprocess.run(["pg_ctl", "-s", "-D", self.data, "-m", "immediate", "stop"], check=False)

    def connect(self, database, options=""):
        for attempt in range(100):
            try:
                return Connection(str(self.directory), PORT, "postgres", database, options)
            except (OSError, Lost):
                if attempt == 99:
                    raise
                time.sleep(0.2)

    def version(self):
        connection = self.connect("postgres")
        number = int(connection.query("SHOW server_version_num").rows[0][0]) // 10000
        connection.close()
        return number


# Names of each table's indexes in the order of their OIDs, in which the server
# goes over them, and which a conversion changes as REINDEX CONCURRENTLY does.
ORDER = """
SELECT i.indrelid::regclass, string_agg(c.relname, ' ' ORDER BY c.oid) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid
WHERE c.oid >= 16384 AND c.relkind IN ('i', 'I') AND c.relname !~ '^pg_toast' AND NOT EXISTS (
    SELECT FROM pg_depend WHERE objid = i.indrelid AND deptype = 'e') GROUP BY 1 HAVING count(*) > 1 ORDER BY 1::text"""

PEEK = "; ".join("SET LOCAL " + setting for setting in (
    "ROLE postgres", "search_path = pg_catalog", "client_min_messages = warning", "quote_all_identifiers = off", "row_security = off",
    "standard_conforming_strings = on", "transform_null_equals = off", "enable_seqscan = on", "enable_indexscan = off",
    "enable_bitmapscan = off", "enable_indexonlyscan = off"))
ROWS_ONLY = re.compile(r"(INSERT|UPDATE|DELETE|SELECT|MERGE|COPY|EXECUTE|PREPARE q|FETCH|DECLARE|CLOSE|SET|RESET|WITH|SAVEPOINT|RELEASE|BEGIN)\b(?!.*;)")


class Episode:
    """Two databases, what was executed in them, and how it came out."""

    def __init__(self, server, version):
        self.server = server
        self.version = version
        self.done = []
        self.sessions = {}
        self.own_errors = {}
        self.messages = {}      # of statements that fail in both, but not in the same way
        self.reordered = False
        admin = server.connect("postgres")
        self.backend = None
        for database in ("hybrid", "btree"):
            for gid in admin.query("SELECT gid FROM pg_prepared_xacts WHERE database = '%s'" % database).rows:
                other = server.connect(database)
                other.query("ROLLBACK PREPARED '%s'" % gid[0])
                other.close()
            for sql in ("DROP DATABASE IF EXISTS %s WITH (FORCE)" % database,
                        "CREATE DATABASE %s TEMPLATE template_%s" % (database, database)):
                answer = admin.query(sql)
                if answer.failed():
                    raise Lost(sql + ": " + answer.error["M"])
        admin.query("ALTER DATABASE hybrid SET hybridindex.replace_btree = on")
        admin.close()
        self.reconnect("preloaded")

    def reconnect(self, preloaded):
        for session in self.sessions.values():
            session.close()
        options = "-c session_preload_libraries=hybridindex" if preloaded else ""
        self.sessions = {"hybrid": self.server.connect("hybrid", options), "btree": self.server.connect("btree")}

    def close(self):
        for session in self.sessions.values():
            session.close()

    @property
    def status(self):
        return self.sessions["btree"].status

    def text(self, database, sql):
        mine = database == "hybrid"
        if re.search("citext|ltree|Odd type", sql):                      # and so for types without a class
            sql = sql.replace("@marker", "").replace("@am", "btree")
        if self.version < 18 and ("PARTITION" in sql or not re.search(r"CREATE( TEMP| UNLOGGED)? TABLE", sql)):
            sql = sql.replace("@marker", "").replace("@am", "btree")     # refused for partitioned tables
        return sql.replace("@am", database).replace("@marker", " WITH (access_method = hybrid)" if mine else "").replace("@db", database)

    def execute(self, target, sql):
        """Executes it where it is for, and raises what differs."""
        self.done.append([target, sql])
        try:
            if target == "reconnect":
                self.reconnect(sql)
            elif target == "*":
                self.both(sql)
            else:
                self.alone(target, sql)
        except Lost as lost:
            raise Difference("lost", "%s: %s" % (sql, lost))

    def both(self, sql):
        head, _, copied = sql.partition("\n") if sql.startswith("COPY") else (sql, "", None)
        answers = {name: session.query(self.text(name, head), copied) for name, session in self.sessions.items()}
        facts = {name: outcome(answer) for name, answer in answers.items()}
        error = answers["hybrid"].error
        if error and error["C"] == "XX000":
            other = answers["btree"].error
            if not other or other["M"] != error["M"]:
                raise Difference("internal error", error["M"])
        if facts["hybrid"] != facts["btree"]:
            self.look_at_order()
            if self.reordered and re.search("23505|23P01", str(facts)):
                raise Documented("another order of indexes")
            for known in DOCUMENTED:
                if known in "".join(facts["hybrid"]):
                    raise Documented(known)
            if "@" in sql and "operator class" in "".join(facts["hybrid"]):
                raise Documented("asked for by name, and refused")
            if not error or not answers["btree"].failed():
                raise Difference("statement", lines_of(facts["hybrid"], facts["btree"]))
            kind = Difference("", "%s, btree: %s" % (error["M"], answers["btree"].error["M"])).signature
            self.messages[kind] = self.messages.get(kind, 0) + 1
        if self.sessions["hybrid"].status != self.sessions["btree"].status:
            raise Difference("transaction", "%s, %s" % (self.sessions["hybrid"].status, self.sessions["btree"].status))
        self.failed = answers["btree"].failed()
        self.changed = not self.failed and not ROWS_ONLY.match(sql)
        if self.changed:
            self.look_at_order()

    def look_at_order(self):
        if self.status != "E" and self.sessions["hybrid"].status != "E" and not self.reordered:
            self.reordered = self.peek("hybrid", ORDER) != self.peek("btree", ORDER)

    def alone(self, database, sql):
        """In a transaction of both, its error is not to end that."""
        session = self.sessions[database]
        inside = session.status == "T"
        if session.status == "E":
            return
        if inside:
            session.query("SAVEPOINT alone")
        before = self.index_oids() if database == "hybrid" and session.status == "I" else None
        answer = session.query(self.text(database, sql))
        if before is not None:
            self.as_order(before)
        if inside:
            session.query("ROLLBACK TO alone; RELEASE alone" if answer.failed() else "RELEASE alone")
        self.failed = answer.failed()
        if answer.failed():
            kind = "%s %s" % (answer.error["C"], re.sub(r'"[^"]*"', "X", answer.error["M"]))
            self.own_errors[kind] = self.own_errors.get(kind, 0) + 1
            if answer.error["C"].startswith(("XX", "23")):
                raise Difference("internal error", answer.error["M"])

    def index_oids(self):
        return dict(self.peek("hybrid", "SELECT indexrelid::regclass, indexrelid::int8 FROM pg_index WHERE indexrelid >= 16384 AND "
                              "NOT indisexclusion AND indexrelid::regclass::text !~ '^pg_toast'"))

    def as_order(self, before):
        """Indexes that have got another OID get another one over there."""
        changed = [(int(oid), name) for name, oid in self.index_oids().items() if before.get(name, oid) != oid]
        if changed:
            other = self.server.connect("btree", "-c session_replication_role=replica")    # no event triggers
            for _, name in sorted(changed):
                other.query("REINDEX INDEX CONCURRENTLY " + name)
            other.close()

    # ---- comparisons ----

    def peek(self, database, sql):
        """A query of ours, whatever the session's settings and role are."""
        session = self.sessions[database]
        begin, end = ("SAVEPOINT peek", "ROLLBACK TO peek; RELEASE peek") if session.status == "T" else ("BEGIN", "ROLLBACK")
        answer = session.query("%s; %s; %s; %s" % (begin, PEEK, sql, end))
        if answer.failed():
            session.query(end)
        if answer.failed():
            raise Difference("comparison", "%s: %s" % (answer.error["M"], sql[:200]))
        return answer.rows

    def compare(self):
        self.done.append(["compare", ""])
        try:
            self.compare_catalogs()
            self.compare_rows()
            self.check_indexes()
        except Lost as lost:
            raise Difference("lost", "comparison: %s" % lost)

    def compare_catalogs(self):
        facts = {name: [normal(row[0]) for row in self.peek(name, CATALOG)] for name in self.sessions}
        if sorted(facts["hybrid"]) != sorted(facts["btree"]):
            if self.reordered:
                raise Documented("another order of indexes")
            raise Difference("catalog", lines_of(sorted(facts["hybrid"]), sorted(facts["btree"])))

    def compare_rows(self):
        tables = [row[0] for row in self.peek("btree", "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                                             "WHERE (relkind = 'r' OR relkind = 'm' AND relispopulated) AND nspname !~ '^(pg_(catalog|toast)|information_schema)' ORDER BY 1")]
        for table in tables:
            sql = "SELECT t::text FROM %s t" % re.sub(r"pg_temp_\d+", "pg_temp", table)
            rows = {name: sorted(normal(row[0]) for row in self.peek(name, sql)) for name in self.sessions}
            if rows["hybrid"] != rows["btree"]:
                raise Difference("rows", "%s: %s" % (table, lines_of(rows["hybrid"], rows["btree"])))

    def check_indexes(self):
        found = self.peek("hybrid", """
            SELECT i.indexrelid::int8, i.indexrelid::regclass, c.relkind, o.oid IS NOT NULL AS key,
                coalesce('access_method=hybrid' = ANY (c.reloptions), false) AS marked, indisvalid, c.relpersistence
            FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
            LEFT JOIN pg_constraint o ON o.conindid = i.indexrelid AND o.contype IN ('p', 'u') WHERE a.amname = 'hybrid'""")
        self.hybrid_indexes = len(found)
        for oid, name, kind, key, marked, valid, persistence in found:
            if key != marked:
                raise Difference("marker", "%s: constraint %s, marked %s" % (name, key, marked))
            if kind == "i" and valid == "t":
                try:
                    self.peek("hybrid", "SELECT hyb.hybrid_index_check(%s::regclass, true)" % oid)
                except Difference as difference:
                    if "is being used by active queries" not in str(difference):
                        raise Difference("check", "%s: %s" % (name, difference))
        if self.pure_violations():
            raise Difference("btree", ", ".join(self.pure_violations()))

    pure = False

    def pure_violations(self):
        if not self.pure:
            return []
        return [row[0] for row in self.peek("hybrid", """
            SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
            JOIN pg_am a ON a.oid = relam JOIN pg_namespace n ON n.oid = relnamespace
            WHERE amname = 'btree' AND nspname !~ '^(pg_(catalog|toast)|information_schema)' AND NOT EXISTS (
                SELECT FROM pg_opclass o WHERE o.oid = ANY (indclass) AND opcname ~ 'citext|ltree')""")]


def lines_of(mine, theirs):
    more = [line for line in mine if line not in theirs]
    less = [line for line in theirs if line not in mine]
    if not more and not less:
        return "another order or number of lines: %s" % mine[:3]
    return "\n  hybrid " + "\n  hybrid ".join(more[:4]) + "\n  btree  " + "\n  btree  ".join(less[:4])


def replay(server, version, statements, pure=False):
    """The difference that these statements make, or None."""
    episode = Episode(server, version)
    episode.pure = pure
    try:
        for target, sql in statements:
            if target == "compare":
                if episode.status == "I":
                    episode.compare()
            else:
                episode.execute(target, sql)
        if episode.status == "E":
            episode.execute("*", "ROLLBACK")
        episode.compare()
    except Difference as difference:
        return difference
    except Documented:
        return None
    finally:
        episode.close()
    return None


def reduce(server, version, statements, signature, pure, deadline):
    """Fewer statements that make the same difference."""
    statements = [s for s in statements if s[0] != "compare"]
    size = max(len(statements) // 2, 1)
    while True:
        at, removed = 0, False
        while at < len(statements):
            if time.time() > deadline:
                return statements
            fewer = statements[:at] + statements[at + size:]
            found = replay(server, version, fewer, pure)
            if found is not None and found.signature == signature:
                statements, removed = fewer, True
            else:
                at += size
        if size == 1 and not removed:
            return statements
        size = max(size // 2, 1)


def save(path, difference, statements, pure):
    with open(path, "w") as file:
        json.dump({"difference": difference.kind + ": " + str(difference), "signature": difference.signature, "pure": pure,
                   "statements": statements}, file, indent=1)


def run_episode(server, version, seed, length, counts):
    generator = Generator(seed, version)
    episode = Episode(server, version)
    generator.pure = episode.pure = generator.chance(0.3)
    generator.cold = False
    if version < 18:
        episode.pure = False
    episode.failed, episode.changed = False, True

    def look():
        if episode.status != "E" and episode.changed:
            try:
                # in both, since it touches temporary tables
                episode.peek("hybrid", STATE)
                generator.tables = [json.loads(row[0]) for row in episode.peek("btree", STATE)]
            except Lost as lost:
                raise Difference("lost", str(lost))

    try:
        for number in range(length):
            generator.status = episode.status
            for target, sql in generator.statements():
                episode.execute(target, sql)
                counts["statements"] += 1
                counts["failed"] += episode.failed
                if target == "reconnect":
                    generator.cold, generator.prepared = sql == "", []
                elif target == "hybrid" and not episode.failed and ("hyb." in sql or "LOAD" in sql):
                    generator.cold = False
            look()
            if number % 25 == 24 and episode.status == "I":
                episode.compare()
        while episode.status != "I":
            episode.execute("*", "ROLLBACK" if episode.status == "E" else "COMMIT")
        episode.compare()
        counts["indexes"] += episode.hybrid_indexes
        return None, episode
    except Difference as difference:
        return difference, episode
    except Documented as documented:
        kind = "documented: " + str(documented)[:60]
        counts[kind] = counts.get(kind, 0) + 1
        return None, episode
    finally:
        episode.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--length", type=int, default=150)
    parser.add_argument("--replay")
    parser.add_argument("--reduce")
    parser.add_argument("--no-reduce", action="store_true")
    options = parser.parse_args()
    server = Server(options.dir.resolve())
    server.start()
    version = server.version()
    try:
        if options.replay or options.reduce:
            kept = json.loads(Path(options.replay or options.reduce).read_text())
            if options.reduce:
                kept["statements"] = reduce(server, version, kept["statements"], kept["signature"], kept["pure"], time.time() + 600)
            print(*("%-9s %s" % tuple(s) for s in kept["statements"]), sep="\n")
            print(replay(server, version, kept["statements"], kept["pure"]))
            return 0
        return search(server, version, options)
    finally:
        server.stop()


def search(server, version, options):
    found = options.dir / "found"
    found.mkdir(exist_ok=True)
    counts = {"episodes": 0, "statements": 0, "failed": 0, "indexes": 0}
    seen, own_errors, messages = {}, {}, {}
    seed = options.seed
    started = time.time()
    while time.time() < started + options.minutes * 60:
        difference, episode = run_episode(server, version, seed, options.length, counts)
        counts["episodes"] += 1
        for mine, all_of in ((episode.own_errors, own_errors), (episode.messages, messages)):
            for kind, n in mine.items():
                all_of[kind] = all_of.get(kind, 0) + n
        if difference is not None:
            first = difference.signature not in seen
            seen[difference.signature] = seen.get(difference.signature, 0) + 1
            if first:
                path = found / ("%d.json" % seed)
                statements = episode.done
                save(path, difference, statements, episode.pure)
                print("[%6.1f] seed %d, after %d statements: %s: %s" % (
                    time.time() - started, seed, len(statements), difference.kind, difference), flush=True)
                if not options.no_reduce:
                    statements = reduce(server, version, statements, difference.signature, episode.pure, time.time() + 90)
                    save(path, difference, statements, episode.pure)
                print(*("    %-9s %s" % tuple(s) for s in statements[-12:]), sep="\n", flush=True)
        seed += 1
    print("%.1f minutes, PostgreSQL %d: %s" % ((time.time() - started) / 60, version,
                                              ", ".join("%d %s" % (n, name) for name, n in counts.items())))
    for title, kinds in (("errors of conversions:", own_errors), ("statements that fail in both with another message:", messages)):
        print(title, *("  %d times %s" % (n, kind) for kind, n in sorted(kinds.items(), key=lambda e: -e[1])), sep="\n")
    print("%d differences, %d kinds" % (sum(seen.values()), len(seen)))
    for signature, n in sorted(seen.items(), key=lambda e: -e[1]):
        print("  %d times %s" % (n, signature.replace("\n", " ")))
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
