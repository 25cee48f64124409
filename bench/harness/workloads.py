"""The workloads.  Each loads one schema for each method and measures phases in
rounds, in which the methods take turns."""
import contextlib
import glob
import os
import time

from .limit import forget, try_limit
from .samples import sample_text
from .server import BENCH, BenchError


class Config:
    """Sizes and times; the command line may change each."""

    def __init__(self, quick=False):
        self.quick = quick
        self.rounds = 2 if quick else 3
        self.seconds = 3 if quick else 10
        self.clients = max(2, os.cpu_count() or 1)
        self.rows = 300_000 if quick else 1_000_000
        self.warehouses = 1 if quick else 4
        self.check = True
        self.seed = 42


class Run:
    """What a workload gets: server, methods, configuration, recorder."""

    def __init__(self, server, methods, config, recorder):
        self.server = server
        self.methods = methods
        self.config = config
        self.recorder = recorder

    def setup(self, schema, load=None, settle=True, **variables):
        """Makes every method's schema; the load counts as a phase."""
        for method in self.methods:
            self.server.create_schema(method)
            self.server.psql(file=schema, schema=method.schema,
                             variables={**method.variables(), **variables})
        if load:
            def fill(method, _):
                start = time.monotonic()
                self.server.psql(file=load, schema=method.schema, variables=variables)
                return {"seconds": time.monotonic() - start}, None
            self.phase("load", fill, rounds=1)

    def phase(self, name, measure, rounds=None, prepare=None):
        """Rounds of measure(method, round) -> (metrics, timeline)."""
        for number in range(rounds or self.config.rounds):
            order = self.methods if number % 2 == 0 else self.methods[::-1]
            for method in order:
                self.server.settle(method)
                self.server.psql("CHECKPOINT")
                if prepare:
                    prepare(method)
                before = self.server.counters(method)
                metrics, timeline = measure(method, number)
                self.server.settle(method)
                after = self.server.counters(method)
                metrics.update({key: after[key] - before[key] for key in before if key in after})
                work = metrics.get("transactions") or metrics.get("rows")
                if work:
                    metrics["wal_bytes_each"] = metrics["wal_bytes"] / work
                    if "cpu_seconds" in metrics:
                        metrics["cpu_ms_each"] = metrics["cpu_seconds"] * 1000 / work
                metrics.update(self.server.sizes(method))
                self.recorder.add(name, method, number, metrics, timeline)

    def pgbench(self, name, scripts, **variables):
        def measure(method, number):
            return self.server.pgbench(method.schema, scripts, self.config.seconds,
                                       self.config.clients, variables,
                                       self.config.seed + number)
        self.phase(name, measure)

    def check(self):
        """Every hybrid index must be in order, and hold what its heap holds."""
        if not self.config.check:
            return
        for method in self.methods:
            if method.am != "hybrid":
                continue
            rows = self.server.psql("""
                SELECT c.relname, hybrid_index_check(c.oid, true)::text
                FROM pg_class c JOIN pg_am a ON a.oid = c.relam AND a.amname = 'hybrid'
                WHERE c.relnamespace = '%s'::regnamespace""" % method.schema)
            self.recorder.check("%s: hybrid_index_check of %d indexes" % (method.name, len(rows)), True)

    def finish(self):
        self.check()
        for method in self.methods:
            self.server.drop_schema(method)

    def load_samples(self):
        """public.raw: the samples of test/data, numbered from 0."""
        self.server.psql("DROP TABLE IF EXISTS public.raw, public.raw_line; "
                         "CREATE UNLOGGED TABLE public.raw_line (kind text, k text COLLATE \"C\")")
        for kind, file in (("email", "emails"), ("package name", "package_names")):
            text = "".join("%s\t%s\n" % (kind, line.replace("\\", "\\\\").replace("\t", " "))
                           for line in sample_text(file).rstrip("\n").split("\n"))
            self.server.psql("COPY public.raw_line FROM STDIN", stdin=text)
        self.server.psql("""
            CREATE UNLOGGED TABLE public.raw AS
                SELECT kind, row_number() OVER (PARTITION BY kind ORDER BY hashtext(k)) - 1 AS n, k
                FROM (SELECT DISTINCT kind, k FROM public.raw_line) x;
            CREATE INDEX ON public.raw (kind, n);
            DROP TABLE public.raw_line;
            ANALYZE public.raw""")


def script(*files):
    return "".join((BENCH / file).read_text() for file in files)


# ---- TPC-C, Voter, Articles ----

TPCC_MIX = (("new_order", 45), ("payment", 43), ("order_status", 4), ("delivery", 4), ("stock_level", 4))


def tpcc_mix():
    return [(script("tpcc/%s.sql" % name), weight) for name, weight in TPCC_MIX]


def tpcc_check(run):
    for method in run.methods:
        for condition, violations in run.server.psql(file="tpcc/check.sql", schema=method.schema):
            run.recorder.check("%s: consistency condition %s" % (method.name, condition), violations == "0")


def tpcc(run):
    config = run.config
    variables = {"warehouses": config.warehouses, "items": 20_000 if config.quick else 100_000,
                 "customers": 1000 if config.quick else 3000}
    run.recorder.begin("tpcc", "%(warehouses)d warehouses of %(items)d items and 10 x %(customers)d customers"
                       % variables)
    run.setup("tpcc/schema.sql", "tpcc/load.sql", **variables)
    run.pgbench("mix", tpcc_mix(), **variables)
    tpcc_check(run)
    run.finish()


@contextlib.contextmanager
def in_little_memory(run, megabytes):
    """The server restarted in a control group, and nothing of its tables and
    indexes in the operating system's cache."""
    server = run.server
    server.limit = try_limit(megabytes)
    try:
        server.restart(shared_buffers="%dMB" % (megabytes // 3),
                       **{"hybridindex.dynamic_memory": "%dMB" % max(1, megabytes // 16)})
        for method in run.methods:
            drop_cached(run, method, "ri")
        yield
    finally:
        server.limit.remove()
        server.limit = None
        server.restart(shared_buffers=None, **{"hybridindex.dynamic_memory": None})


def tpcc_memory(run):
    """TPC-C's mix, and its order lines alone, on a server that has memory for
    about a sixth of a method's tables and indexes; order lines have an index by
    item as well."""
    server, config = run.server, run.config
    variables = {"warehouses": config.warehouses, "items": 100_000, "customers": 3000}
    megabytes = 64 + 8 * config.warehouses      # the server itself takes some 40
    limit = try_limit(megabytes) if server.restart_command else None
    if limit is None:
        run.recorder.skip("tpcc-memory", "memory cannot be limited here")
        return
    limit.remove()
    run.recorder.begin("tpcc-memory", "%d warehouses, server limited to %d MB, page cache included" %
                       (config.warehouses, megabytes))
    run.setup("tpcc/schema.sql", "tpcc/load.sql", **variables)
    for method in run.methods:
        server.psql(file="tpcc/beyond.sql", schema=method.schema, variables=method.variables())
        server.psql("VACUUM ANALYZE", schema=method.schema)
    with in_little_memory(run, megabytes):
        run.pgbench("mix", tpcc_mix(), **variables)
    tpcc_check(run)
    with in_little_memory(run, megabytes):
        run.pgbench("order lines", [(script("tpcc/lines.sql"), 1)], **variables)
    run.finish()


def voter(run):
    rows = run.config.rows
    run.recorder.begin("voter", "%d votes counted before" % rows)
    run.setup("voter/schema.sql", "voter/load.sql", rows=rows)
    run.pgbench("vote", [(script("voter/vote.sql"), 1)])
    run.finish()


def articles(run):
    rows = run.config.rows
    run.recorder.begin("articles", "%d comments on %d articles" % (rows, max(rows // 10, 1000)))
    run.load_samples()
    run.setup("articles/schema.sql", "articles/load.sql", rows=rows)
    mix = [(script("articles/%s.sql" % name), weight) for name, weight in
           (("read_article", 60), ("find_title", 10), ("add_comment", 20), ("add_article", 4),
            ("add_user", 2), ("update_user", 4))]
    run.pgbench("mix", mix, articles=max(rows // 10, 1000), users=max(rows // 20, 1000))
    run.finish()


# ---- queues ----

def queue(run):
    """A job is taken, done, and another one comes.  Each round has as many jobs,
    without VACUUM: does a job cost more in the last one than in the first?"""
    jobs = run.config.rows // 50
    clients = max(4, run.config.clients)
    run.recorder.begin("queue", "1000 jobs wait, %d are done in a round by %d clients" % (jobs, clients))
    run.setup("queue/schema.sql", waiting=1000)
    for name in ("plain", "kept", "deleted"):
        def work(method, number, name=name):
            return run.server.pgbench(method.schema, [(script("queue/%s.sql" % name), 1)], None, clients, {},
                                      run.config.seed + number, transactions=jobs // clients)
        run.phase(name, work)
    run.finish()


# ---- YCSB ----

KEY_TYPES = {"random": "bigint", "ascending": "bigint", "email": 'text COLLATE "C"', "uuid": "uuid"}


def load_chunk(run, rows, payload="repeat(md5(n::text), 3)"):
    """A measurement: that many more records."""
    def load(method, _):
        start = time.monotonic()
        run.server.psql(file="ycsb/load.sql", schema=method.schema,
                        variables={"rows": rows, "payload": payload})
        seconds = time.monotonic() - start
        return {"rows": rows, "seconds": seconds, "tps": rows / seconds}, None
    return load


NARROW = "''"                     # no payload: the index is larger than the table


def ycsb_tables(run, keys, rows, unique=True, **payload):
    """Loads in chunks, in which the methods take turns."""
    variables = {"keys": keys, "type": KEY_TYPES[keys], "unique": "UNIQUE" if unique else "",
                 "per_key": 1 if unique else 10}
    for method in run.methods:
        run.server.create_schema(method)
        own = method.variables()
        if keys != "email":
            own["textops"] = ""
        run.server.psql(file="ycsb/schema.sql", schema=method.schema, variables={**own, **variables})
    chunks = 5 if run.config.quick else 10
    run.phase("load", load_chunk(run, rows // chunks, **payload), rounds=chunks)
    for method in run.methods:
        run.server.psql("VACUUM ANALYZE %s.usertable" % method.schema)


def ycsb_mix(letter, pick):
    pick = "ycsb/pick_%s.sql" % pick
    read = script(pick, "ycsb/read.sql")
    insert = script("ycsb/insert.sql")
    return {
        "A": [(read, 50), (script(pick, "ycsb/update.sql"), 50)],
        "B": [(read, 95), (script(pick, "ycsb/update.sql"), 5)],
        "C": [(read, 1)],
        "D": [(script("ycsb/read_latest.sql"), 95), (insert, 5)],
        "E": [(script(pick, "ycsb/scan.sql"), 95), (insert, 5)],
        "F": [(read, 50), (script(pick, "ycsb/modify.sql"), 50)],
    }[letter]


def ycsb_one(run, keys, pick="zipf", letters="CABFDE", unique=True, name=None):
    rows = run.config.rows
    run.recorder.begin(name or "ycsb-%s" % keys, "%d records, keys %s, access %s, %s index" %
                       (rows, keys, pick, "primary" if unique else "secondary"))
    if keys == "email":
        run.load_samples()
    ycsb_tables(run, keys, rows, unique)
    for letter in letters:
        run.pgbench(letter, ycsb_mix(letter, pick), rows=rows)
    run.finish()


YCSB = {
    **{"ycsb-" + keys: dict(keys=keys) for keys in KEY_TYPES},
    "ycsb-random-uniform": dict(keys="random", pick="uniform", letters="CAE"),
    "ycsb-random-hotspot": dict(keys="random", pick="hotspot", letters="CAE"),
    "ycsb-random-secondary": dict(keys="random", letters="CAE", unique=False),
    "ycsb-email-secondary": dict(keys="email", letters="CAE", unique=False),
}


def ycsb(run):
    if run.config.quick:
        ycsb_one(run, "random", letters="CAE")
        return
    for name, options in YCSB.items():
        ycsb_one(run, name=name, **options)


# ---- server-side loops ----

MICRO = (
    ("point look-ups", "SELECT count(*) FROM probe_order JOIN target USING (k)"),
    ("100-row ranges", "SELECT sum(n) FROM (SELECT k FROM probe_order LIMIT %(rows)d / 50) p, LATERAL "
     "(SELECT count(*) AS n FROM (SELECT k FROM target WHERE k >= p.k ORDER BY k LIMIT 100) z) y"),
    ("skip scan", "SELECT sum(n) FROM generate_series(1, 100) p, LATERAL "
     "(SELECT count(*) AS n FROM (SELECT a, b FROM skips WHERE b = 7 * p) z) y"),
    ("whole index in order", "SELECT count(*) FROM (SELECT k FROM target ORDER BY k OFFSET 0) z"),
    ("build int8", "CREATE INDEX built ON probe USING %(am)s (k) %(with)s"),
    ("build uuid", "CREATE INDEX built ON uuids USING %(am)s (k) %(with)s"),
    ("build email", "CREATE INDEX built ON emails USING %(am)s (k %(textops)s) %(with)s"),
    ("insert random int8", "INSERT INTO fresh_int8 SELECT k FROM probe"),
    ("insert ascending int8", "INSERT INTO fresh_int8 SELECT i FROM generate_series(1, %(rows)d) i"),
    ("insert uuid", "INSERT INTO fresh_uuid SELECT k FROM uuids"),
    ("insert email", "INSERT INTO fresh_email SELECT k FROM emails"),
)


def micro(run):
    rows = 200_000 if run.config.quick else 1_000_000
    run.recorder.begin("micro", "%d keys, statements timed within the server" % rows)
    run.load_samples()
    for method in run.methods:
        run.server.create_schema(method)
        run.server.psql(file="micro/time.sql", schema=method.schema)
        run.server.psql(file="micro/schema.sql", schema=method.schema,
                        variables={**method.variables(), "rows": rows})
    for name, statement in MICRO:
        def measure(method, _):
            tables = "".join(
                "DROP TABLE IF EXISTS fresh_{0}; CREATE TABLE fresh_{0} (k {1}); "
                "CREATE INDEX ON fresh_{0} USING {2} (k {3}) {4};".format(
                    kind, KEY_TYPES[key], method.am, method.textops if kind == "email" else "",
                    method.with_options)
                for kind, key in (("int8", "random"), ("uuid", "uuid"), ("email", "email")))
            text = statement % {"rows": rows, **method.variables()}
            ms, cpu = run.server.psql("%s SELECT * FROM micro_time($bench$%s$bench$); DROP INDEX IF EXISTS built" %
                                      (tables if name.startswith("insert") else "", text),
                                      schema=method.schema)[0]
            metrics = {"ms": float(ms)}
            if cpu:
                metrics["cpu_ms"] = float(cpu)
            return metrics, None
        run.phase(name, measure, rounds=max(3, run.config.rounds))
    run.finish()


# ---- WAL over a checkpoint cycle ----

def wal(run):
    """Inserts into a loaded index right after a checkpoint: every page that is
    touched for the first time is logged whole."""
    for keys in ("random", "uuid"):
        rows = run.config.rows
        run.recorder.begin("wal-" + keys, "%d entries, each round a fiftieth more right after a checkpoint" % rows)
        ycsb_tables(run, keys, rows, unique=False, payload=NARROW)
        run.phase("insert", load_chunk(run, rows // 50, NARROW), rounds=10)
        run.finish()


# ---- larger than memory ----

def drop_cached(run, method, kinds="i"):
    """Lets the operating system forget the files of indexes, or of relations of
    other kinds, where we may."""
    run.server.psql("CHECKPOINT")
    paths = run.server.psql("""
        SELECT current_setting('data_directory') || '/' || pg_relation_filepath(oid) FROM pg_class
        WHERE relkind = ANY ('{%s}') AND relnamespace = '%s'::regnamespace""" % (",".join(kinds), method.schema))
    for (path,) in paths:
        forget([path, *glob.glob(path + ".*")])


def memory(run):
    """An index of eight times shared_buffers, in little memory where we may
    limit it."""
    server = run.server
    entry = 22                      # bytes of an entry of a btree just built
    if server.restart_command:
        rows = run.config.rows * 10
        server.restart(shared_buffers="%dkB" % max(128, rows * entry // 8 // 1024))
    buffers = int(server.value("SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'"))
    rows = 8 * buffers // entry
    if rows > 50 * run.config.rows:
        run.recorder.skip("memory", "shared_buffers is %d MB: lower it, or raise --rows" % (buffers >> 20))
        return
    megabytes = (2 * buffers >> 20) + 64
    limit = try_limit(megabytes) if server.restart_command else None
    run.recorder.begin("memory", "%d random int8, a btree of 8 times shared_buffers (%.1f MB), %s" %
                       (rows, buffers / 1048576, "server limited to %d MB, page cache included" % megabytes
                        if limit else "memory not limited: other reads come from the page cache"))
    try:
        for method in run.methods:
            server.create_schema(method)
            server.psql(file="ycsb/schema.sql", schema=method.schema, variables={
                **method.variables(), "textops": "", "keys": "random", "type": "bigint", "unique": "", "per_key": 1})
            server.psql("DROP INDEX usertable_key", schema=method.schema)
            server.psql(file="ycsb/load.sql", schema=method.schema, variables={"rows": rows, "payload": NARROW})

        def build(method, _):
            start = time.monotonic()
            server.psql("CREATE INDEX usertable_key ON usertable USING %s (k) %s" %
                        (method.am, method.with_options), schema=method.schema)
            return {"seconds": time.monotonic() - start}, None
        run.phase("build", build, rounds=1)
        for method in run.methods:
            server.psql("VACUUM ANALYZE %s.usertable" % method.schema)

        # restarting lets go of pages that are charged to no control group
        server.limit = limit
        if server.restart_command:
            server.restart()
            for method in run.methods:
                drop_cached(run, method)
        batch = script("ycsb/load.sql").replace(":rows", "100").replace(":payload", NARROW)
        each = max(1, rows // 10 // 100 // run.config.clients // run.config.rounds)

        def insert(method, number):
            return server.pgbench(method.schema, [(batch, 1)], None, run.config.clients, {},
                                  run.config.seed + number, transactions=each)
        run.phase("insert 100", insert)
        for method in run.methods:
            server.psql("VACUUM %s.usertable" % method.schema)
        count = "SELECT count(*) FROM (SELECT k FROM usertable WHERE k >= ycsb_key(:n) ORDER BY k LIMIT 10) x;\n"
        for name, pick in (("zipf reads", "zipf"), ("uniform reads", "uniform")):
            run.pgbench(name, [(script("ycsb/pick_%s.sql" % pick) + count, 1)], rows=rows)

        def shifting(method, number):
            part = rows // 10
            text = "\\set n %d + random(0, %d)\n" % (number % 10 * part, part - 1)
            return server.pgbench(method.schema, [(text + count, 1)], run.config.seconds,
                                  run.config.clients, {"rows": rows}, run.config.seed + number)
        run.phase("shifting working set", shifting, rounds=max(5, run.config.rounds))

        def cool(method):
            drop_cached(run, method)
            if server.restart_command:
                server.restart()

        def cold(method, number):
            text = script("ycsb/pick_uniform.sql") + count
            return server.pgbench(method.schema, [(text, 1)], run.config.seconds, run.config.clients,
                                  {"rows": rows}, run.config.seed + number)
        run.phase("cold reads", cold, prepare=cool)
        run.finish()
    finally:
        if limit:
            server.limit = None
            limit.remove()
        if server.restart_command:
            server.restart(shared_buffers=None)


# ---- bloat ----

def bloat(run):
    """Updates of keys and deletes, with autovacuum: size and speed over time."""
    rows = run.config.rows // 4
    slices = 5 if run.config.quick else 15
    run.recorder.begin("bloat", "%d rows, each slice of time half key updates, half deletes and inserts" % rows)
    ycsb_tables(run, "random", rows)
    for method in run.methods:
        run.server.psql("ALTER TABLE usertable SET (autovacuum_enabled = on, autovacuum_vacuum_scale_factor = 0.1)",
                        schema=method.schema)
    recent = "\\set back random_zipfian(1, :rows, 1.01)\n"
    key = "ycsb_key((SELECT last_value FROM ordinals) - :back + 1)"
    mix = [(recent + script("ycsb/churn_update.sql").replace("ycsb_key(:n)", key), 1),
           (recent + script("ycsb/churn_delete.sql").replace("ycsb_key(:n)", key), 1)]

    def churn(method, number):
        return run.server.pgbench(method.schema, mix, run.config.seconds, run.config.clients,
                                  {"rows": rows}, run.config.seed + number)
    run.phase("churn", churn, rounds=slices)
    run.pgbench("reads after", [("\\set n random(1, :rows)\n" + script("ycsb/read.sql").replace(
        ":n", "(SELECT last_value FROM ordinals) - :n + 1"), 1)], rows=rows)
    run.finish()


WORKLOADS = {"micro": micro, "tpcc": tpcc, "tpcc-memory": tpcc_memory, "voter": voter, "articles": articles, "queue": queue,
             "ycsb": ycsb,
             "wal": wal, "memory": memory, "bloat": bloat}
QUICK = ("micro", "tpcc", "ycsb")


def run_one(name, run):
    try:
        if name in WORKLOADS:
            WORKLOADS[name](run)
        else:
            ycsb_one(run, name=name, **YCSB[name])
    except BenchError as error:
        run.recorder.error(name, str(error))
