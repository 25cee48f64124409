"""Random statements for sql.py."""
import random

TYPES = ("int2 int4 int8 text uuid bytea numeric float4 float8 date timestamp timestamptz interval time timetz inet cidr bool \"char\" name oid regclass regtype "
         "regnamespace xid8 tid pg_lsn money macaddr bit varbit bpchar varchar json jsonb tsvector tsquery int4range int4multirange int4[] text[] uuid[] "
         "point oidvector xml void unknown record cstring").split()
KEYS = {"int4": "7", "text": "'t3'", "uuid": "md5('1')::uuid", "numeric": "7", "int4[]": "'{1}'", "bytea": "'x'", "float8": "7", "date": "'2020-01-01'"}
COLUMNS = [("mine.t", "i", "int4"), ("mine.t", "t", "text"), ("mine.t", "u", "uuid"), ("mine.p", "i", "int4"), ("hers.t", "i", "int4"), ("hers.t", "u", "uuid"),
           ("hers.t", "t", "text"), ("hers.t", "n", "numeric")]
LITERALS = ["1", "'x'", "NULL", "''", "'{1,2}'", "'(1,x)'", "-1", "2147483648", "1e300", "'NaN'", "true", "'infinity'", "'2020-01-01'", "'{}'", "'[1,5)'",
            "md5('1')", "md5('1')::uuid", "now()", "'00'", "ROW()", "ARRAY[1]", "ARRAY[NULL::int]", "pg_sleep(0)", "textout('x')", "current_user", "random()"]


# What waits for no lock, as documents say, has this before it.
NO_WAIT = "/* waits for no lock */ "
TABLES = ["its.t", "its.t", "mine.r", "mine.r", "mine.t", "its.part", "its.part", "its.looked_up", "hers.t"]
MODES = ["ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE", "ACCESS EXCLUSIVE"]


class Catalog:
    """What the extension has, and what of the server's can be had with it."""

    def __init__(self, connection):
        def ask(sql):
            return connection.query(sql).rows
        members = "JOIN pg_depend d ON d.objid = o.oid AND d.deptype = 'e' JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'hybridindex'"
        self.routines = ask("""SELECT o.proname, o.prokind, COALESCE(string_agg(format_type(t, NULL), ',' ORDER BY n), '')
            FROM pg_proc o %s LEFT JOIN unnest(o.proargtypes) WITH ORDINALITY a(t, n) ON true GROUP BY o.oid ORDER BY 1, o.oid""" % members)
        self.routines = [(name, kind, args.split(",") if args else []) for name, kind, args in self.routines]
        self.views = [r[0] for r in ask("SELECT o.relname FROM pg_class o %s ORDER BY 1" % members)]
        self.classes = [r[0] for r in ask("SELECT opcname FROM pg_opclass o JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'hybrid' ORDER BY 1")]
        self.settings = [r[0] for r in ask("SELECT name FROM pg_settings WHERE name LIKE 'hybridindex.%' ORDER BY 1")]


class Generator:
    """Statements, with the objects that earlier ones have made.  With `held` some are of
    other sessions, which hold locks: the session's name, its statements, and what a
    session of the twin database with the same locks is to do."""

    def __init__(self, seed, catalog, held=False):
        self.random = random.Random(seed)
        self.catalog = catalog
        self.n = 0
        self.made = {"y": [], "w": [], "o": [], "rows": [], "cast": []}   # types, functions, operators, rows, casts
        self.pending = []
        self.actions = [(10, self.call), (3, self.procedure), (4, self.cast), (4, self.type), (3, self.alter_type), (4, self.use_cast), (6, self.use_rows), (4, self.operator), (4, self.use_operator),
                        (1, self.aggregate), (2, self.index), (3, self.change), (2, self.ddl), (2, self.set), (2, self.view), (2, self.transaction), (2, self.scan),
                        (1, self.wrapper)]
        if held:
            self.actions += [(12, self.hold), (12, self.by_keys), (10, self.no_wait)]

    def pick(self, *choices):
        return self.random.choice(choices)

    def name(self, kind):
        self.n += 1
        name = "mine.%s%d" % (kind, self.n)
        if kind in self.made:
            self.pending.append((kind, name))
        return name

    def statements(self, n):
        """Yields them, and is sent whether the last one succeeded."""
        weights, actions = zip(*self.actions)
        for action in self.random.choices(actions, weights, k=n):
            self.pending = []
            if (yield action()):
                for kind, name in self.pending:
                    self.made[kind].append(name)

    # ---- values ----

    def type_name(self):
        return self.pick(*self.made["y"]) if self.made["y"] and self.random.random() < 0.5 else self.pick(*TYPES)

    def value(self, depth=0):
        r = self.random.random()
        if r < 0.3:
            return self.random.choice(LITERALS)
        if r < 0.45:
            return "%s::%s" % (self.random.choice(LITERALS), self.type_name())
        if r < 0.6 and self.made["y"]:
            return "%s::%s" % (self.pick("ROW(1,2)", "ROW(NULL,'x')", "'x'", "'(1,2)'", "'(,)'", "NULL", "ROW(1)", "7"), self.pick(*self.made["y"]))
        if r < 0.75 and depth < 3:
            return self.pick("ROW(%s)", "(SELECT %s)", "ARRAY[%s]", "COALESCE(%s, NULL)", "(%s)", "CASE WHEN true THEN %s END") % (
                ", ".join(self.value(depth + 1) for _ in range(self.pick(1, 1, 2))) if depth == 0 else self.value(depth + 1))
        if r < 0.85:
            return "(SELECT %s FROM mine.big OFFSET %d LIMIT 1)" % (self.pick("plain", "packed", "b", "big"), self.pick(0, 1, 2, 3, 4, 5, 6))
        if r < 0.95:
            return "(SELECT %s FROM mine.t LIMIT 1 OFFSET %d)" % (self.pick("i", "t", "u", "n", "a", "b", "f", "d", "t.*::mine.t", "ctid"), self.pick(0, 3, 99))
        return self.pick("(SELECT most_common_vals FROM pg_stats WHERE schemaname = 'mine' AND most_common_vals IS NOT NULL LIMIT 1)", "generate_series(1, 3)",
                         "(SELECT histogram_bounds FROM pg_stats WHERE histogram_bounds IS NOT NULL LIMIT 1)", "(SELECT c FROM pg_class c LIMIT 1)")

    def object(self):
        name = self.pick("mine_i", "mine_t", "mine_u", "mine_b", "mine_many", "mine_p", "t", "p", "big", "../hers_i", "../hers_u", "../hers_t", "../hers_n", "../hers_b",
                         "../hers_rls", "../hers_p", "../t", "../p", "../rls_pkey")
        if self.random.random() < 0.15:
            return self.pick("0::regclass", "4294967295::regclass", "NULL", "'pg_class'::regclass", "'pg_class_oid_index'::regclass", "'pg_stats'::regclass",
                             "(SELECT c.oid::regclass FROM pg_class c ORDER BY hashint4(oid::int4) LIMIT 1 OFFSET %d)" % self.random.randrange(400))
        return "'%s'::regclass" % ("hers." + name[3:] if name.startswith("../") else "mine." + name)

    def argument(self, of):
        if self.random.random() < 0.1:
            return self.value()
        if of == "regclass":
            return self.object()
        if of == "regnamespace":
            return self.pick("'mine'", "'hers'", "'pg_catalog'", "0", "NULL", "'public'") + "::regnamespace"
        if of == "regtype":
            return "'%s'::regtype" % self.type_name().replace("'", "''")
        if of == "boolean":
            return self.pick("true", "false", "NULL::boolean", "true", "'yes'")
        return self.value()

    def arguments(self, types):
        given = [self.argument(t) for t in types]
        if self.random.random() < 0.08 and given:
            given.pop()
        return ", ".join(given)

    def expression(self):
        if self.made["w"] and self.random.random() < 0.15:
            return "%s(%s)" % (self.pick(*self.made["w"]), self.value())
        name, _, types = self.pick(*(r for r in self.catalog.routines if r[1] == "f" or self.random.random() < 0.05))
        return "%s(%s)" % (name, self.arguments(types))

    # ---- what calls a function ----

    def call(self):
        call = self.expression()
        name = self.name("c")
        return self.pick(
            "SELECT %s", "SELECT %s", "SELECT %s", "SELECT * FROM %s AS f", "EXPLAIN (ANALYZE, COSTS off) SELECT %s", "SELECT count(*) FROM mine.t WHERE %s IS NOT NULL",
            "DO $d$ BEGIN PERFORM %s; EXCEPTION WHEN division_by_zero THEN NULL; END $d$", "DO $d$ DECLARE r record; BEGIN SELECT %s INTO r; END $d$",
            "CREATE VIEW " + name + " AS SELECT %s AS x; SELECT * FROM " + name, "CREATE TABLE " + name + " AS SELECT %s AS x",
            "CREATE TABLE " + name + " (a int CHECK (%s IS NOT NULL)); INSERT INTO " + name + " VALUES (1)",
            "CREATE TABLE " + name + " (a int, x text DEFAULT (%s)::text); INSERT INTO " + name + "(a) VALUES (1)",
            "CREATE INDEX ON mine.t USING hybrid ((%s))", "CREATE INDEX ON mine.t USING hybrid (i) WHERE %s IS NULL",
            "PREPARE q" + name[5:] + " AS SELECT %s; EXECUTE q" + name[5:], "SELECT array_agg(x) FROM (SELECT %s AS x FROM mine.t LIMIT 2) s",
            "SELECT (%s) FROM mine.t GROUP BY 1 LIMIT 2", "SELECT max(i) FILTER (WHERE %s IS NOT NULL) OVER () FROM mine.t LIMIT 2",
            "SELECT 1 FROM mine.t a JOIN LATERAL (SELECT %s AS x) s ON true LIMIT 2", "UPDATE mine.t SET i = i WHERE i = 3 AND %s IS NULL",
            "CREATE POLICY c%d ON mine.t USING (%%s IS NOT NULL)" % self.n, "DECLARE c%d CURSOR WITH HOLD FOR SELECT %%s" % self.n) % call

    def procedure(self):
        name, _, types = self.random.choice([r for r in self.catalog.routines if r[1] == "p"])
        call = "CALL %s(%s)" % (name, self.arguments(types))
        return self.pick("%s", "%s", "DO $d$ BEGIN %s; END $d$", "DO $d$ BEGIN %s; EXCEPTION WHEN OTHERS THEN RAISE; END $d$") % call

    def wrapper(self):
        name = self.name("w")
        return "CREATE FUNCTION %s(%s) RETURNS SETOF text LANGUAGE %s AS $f$ %s $f$" % ((name, self.pick("anyelement", "anycompatible", "anyarray", "record", "text", "VARIADIC anyarray")) + self.pick(
            ("sql", "SELECT (%s)::text" % self.expression()), ("plpgsql", "BEGIN RETURN NEXT (%s)::text; END" % self.expression())))

    def view(self):
        return self.pick("SELECT * FROM %s", "SELECT count(*) FROM %s v WHERE v IS NOT NULL", "SELECT v::text FROM %s v", "CREATE VIEW " + self.name("v") + " AS SELECT * FROM %s",
                         "EXPLAIN ANALYZE SELECT * FROM %s", "SELECT (SELECT v FROM %s v LIMIT 1)") % self.random.choice(self.catalog.views)

    # ---- what the role makes ----

    def type(self):
        name = self.name("y")
        if self.random.random() < 0.4:
            return self.rows(name)
        return self.pick(
            "CREATE TYPE %s AS ENUM ('x', '7')" % name,
            "CREATE DOMAIN %s AS %s" % (name, self.type_name()), "CREATE DOMAIN %s AS text CHECK (length(VALUE) < 5)" % name, "CREATE TYPE %s AS RANGE (subtype = text)" % name,
            "CREATE TABLE %s (%s)" % (name, ", ".join("c%d int DEFAULT %d" % (i, i) for i in range(self.pick(1, 3, 40, 200)))))

    def rows(self, name):
        """A composite type, and a table with values of it, some of them of the keys of an index."""
        types = [self.pick(*KEYS, "int8", "int8", "int8") for _ in range(self.pick(1, 2, 2, 3))]
        table = self.name("r")
        self.pending.append(("rows", (name, table)))
        return "CREATE TYPE %s AS (%s); CREATE TABLE %s AS SELECT ROW(%s)::%s AS r" % (name, ", ".join("%s %s" % (c, t) for c, t in zip("abcd", types)), table, ", ".join(
            self.pick(KEYS.get(t, "281474976710656"), KEYS.get(t, "281474976710656"), "NULL") for t in types), name)

    def use_rows(self):
        """An index of rows, and what comes to it, before and after their type loses a column."""
        if not self.made["rows"]:
            return self.type()
        name, table = self.pick(*self.made["rows"])
        row = "(SELECT r FROM %s LIMIT 1)" % table
        return self.pick(
            "CREATE INDEX ON %s USING hybrid (r)" % table, "INSERT INTO %s TABLE %s" % (table, table), "ALTER TYPE %s DROP ATTRIBUTE %s CASCADE" % (name, self.pick(*"aabc")),
            "SET enable_seqscan = off; SELECT count(*) FROM %s WHERE r %s %s" % (table, self.pick("=", "<", ">="), row), "SELECT r FROM %s ORDER BY r DESC" % table,
            "SET enable_seqscan = off; SELECT count(*) FROM mine.t WHERE (i, t) %s (SELECT (r).a, 't3' FROM %s LIMIT 1)" % (self.pick("=", "<", ">="), table), "VACUUM %s" % table)

    def alter_type(self):
        if not self.made["y"]:
            return self.type()
        name = self.pick(*self.made["y"])
        return self.pick("ALTER TYPE %s DROP ATTRIBUTE %s CASCADE" % (name, self.pick(*"abcd")), "ALTER TYPE %s DROP ATTRIBUTE a CASCADE" % name, "ALTER TABLE %s DROP c0" % name,
                         "ALTER TYPE %s ADD ATTRIBUTE z%d %s CASCADE" % (name, self.n, self.type_name()), "ALTER TYPE %s ADD VALUE 'v%d'" % (name, self.n),
                         "ALTER TYPE %s ALTER ATTRIBUTE a TYPE %s CASCADE" % (name, self.type_name()), "DROP TYPE %s CASCADE" % name, "INSERT INTO %s DEFAULT VALUES" % name,
                         "DROP TYPE %s" % name)

    def body(self, to):
        """A function's, in plpgsql, which tells if it runs as another role."""
        return "BEGIN IF current_user NOT IN ('nothing', 'granted') THEN RAISE LOG 'ESCALATED to %%', current_user; END IF; %s RETURN %s; END" % (
            self.pick("", "", "", "PERFORM set_config('search_path', 'mine', %s);" % self.pick("true", "false"), "PERFORM set_config('role', '%s', false);" % self.pick("victim", "none"),
                      "PERFORM %s;" % self.expression(), "PERFORM set_config('hybridindex.replace_btree', 'on', false);",
                      "EXECUTE '%s';" % self.pick("DROP INDEX IF EXISTS mine.mine_i", "REINDEX INDEX mine.mine_t", "TRUNCATE mine.t", "INSERT INTO mine.t(i) VALUES (7)",
                                                  "ALTER TABLE mine.t ADD x%d int" % self.n, "SET LOCAL search_path = mine", "CREATE TEMP TABLE x%d (a int)" % self.n)),
            self.pick("NULL", "NULL", "'x'", "7", "repeat('x', 10000)", "(SELECT packed FROM mine.big OFFSET 5 LIMIT 1)", "(SELECT plain FROM mine.big OFFSET 6 LIMIT 1)", "'{1}'",
                      "NULL::" + to, "'(1,2)'", "md5('1')", "1 / 0", "$1"))

    def cast(self):
        if not self.made["y"]:
            return self.type()
        of, to, name = self.pick(*self.made["y"]), self.pick(*KEYS) if self.random.random() < 0.8 else self.pick(*TYPES), self.name("f")
        self.pending.append(("cast", (of, to)))
        if self.random.random() < 0.3:
            return "CREATE CAST (%s AS %s) %s AS %s" % (of, to, self.pick("WITH INOUT", "WITH INOUT", "WITH FUNCTION hybrid_revert(regclass)", "WITHOUT FUNCTION"), self.pick("IMPLICIT", "ASSIGNMENT"))
        return "CREATE FUNCTION %s(%s) RETURNS %s LANGUAGE plpgsql IMMUTABLE AS $f$ %s $f$; CREATE CAST (%s AS %s) WITH FUNCTION %s(%s) AS IMPLICIT" % (
            name, of, to, self.body(to), of, to, name, of)

    def use_cast(self):
        if not self.made["cast"]:
            return self.cast()
        of, to = self.pick(*self.made["cast"])
        table, column = self.pick(*[c[:2] for c in COLUMNS if c[2] == to] or [self.pick(*COLUMNS)[:2]])
        value = "%s::%s" % (self.pick("'x'", "'7'", "ROW(NULL)", "ROW(1)", "ROW(NULL,NULL)", "ROW(1,'t3')", "ROW(NULL,NULL,NULL)"), of)
        return self.pick("SET enable_seqscan = off; SELECT count(*) FROM %s WHERE %s %s %s::%s" % (table, column, self.pick("=", "<", ">="), value, to),
                         "INSERT INTO %s (%s) VALUES (%s)" % (table, column, value), "SELECT hybrid_merge(%s::%s)" % (value, self.pick("text::regclass", "int4::regclass")))

    def operator(self):
        name, _, types = self.pick(*(r for r in self.catalog.routines if 1 <= len(r[2]) <= 2))
        sign = "mine." + "".join(self.pick(*"@#&|~<>%") for _ in range(4)) + "@"
        self.pending.append(("o", sign))
        sides = ["%s = %s" % side for side in zip(("RIGHTARG",) if len(types) == 1 else ("LEFTARG", "RIGHTARG"), types)]
        return "CREATE OPERATOR %s (%s, FUNCTION = %s)" % (sign, ", ".join(sides), name)

    def use_operator(self):
        if not self.made["o"]:
            return self.operator()
        sign = "OPERATOR(%s)" % self.pick(*self.made["o"])
        column = self.pick("i", "t", "u", "n", "a", "b", "f", "d", self.value())
        return self.pick(
            "EXPLAIN SELECT FROM mine.t WHERE %s %s %s" % (self.object(), sign, column), "SELECT count(*) FROM mine.t WHERE %s %s %s" % (self.object(), sign, column),
            "EXPLAIN SELECT FROM mine.t a, (SELECT c.oid::regclass AS r FROM pg_class c) b WHERE b.r %s a.%s" % (sign, self.pick("i", "t", "u")),
            "EXPLAIN SELECT FROM mine.t WHERE NOT (%s %s %s)" % (self.object(), sign, column), "SELECT %s %s %s" % (self.object(), sign, self.value()),
            "SELECT %s %s ANY (ARRAY[%s])" % (self.object(), sign, self.value()), "SELECT %s %s" % (sign, self.object()), "EXPLAIN SELECT FROM mine.t WHERE %s %s" % (sign, self.object()))

    def aggregate(self):
        name, _, types = self.random.choice([r for r in self.catalog.routines if r[2]])
        made = self.name("g")
        return "CREATE AGGREGATE %s (%s) (SFUNC = %s, STYPE = %s%s); SELECT %s(%s) FROM mine.t" % (
            made, ", ".join(types[1:]) or self.pick("*", "int"), name, self.pick(types[0], self.type_name()), self.pick("", ", INITCOND = 'mine.mine_i'", ", FINALFUNC = hybrid_convert"),
            made, ", ".join(self.argument(t) for t in types[1:]) or "*")

    def index(self):
        keys = ", ".join("%s %s %s" % (self.pick("i", "t", "u", "n", "a", "b", "f", "d", "(%s)" % self.value(), "(lower(t))"), self.pick("", "", "", self.random.choice(self.catalog.classes)),
                                       self.pick("", "DESC", "NULLS FIRST")) for _ in range(self.pick(1, 1, 2, 3)))
        return "CREATE %sINDEX ON mine.%s USING %s (%s)%s" % (self.pick("", "", "UNIQUE "), self.pick("t", "t", "big", "p"), self.pick("hybrid", "hybrid", "btree"), keys, self.pick(
            "", " INCLUDE (t)", " WITH (filter = '%s')" % self.pick("surf", "points", "none", "x"), " WITH (layout = %s)" % self.pick("trie", "columnar", "x"),
            " WITH (levels = %s, merge_ratio = %s)" % (self.pick(1, 2, 9), self.pick(0, 5, 1e9)), " WITH (compression = x)"))

    def change(self):
        return self.pick(
            "INSERT INTO mine.t(%s) VALUES (%s)" % (self.pick("i", "t", "u", "n", "a", "b"), self.value()), "DELETE FROM mine.t WHERE i = %d" % self.pick(1, 2, 9),
            "INSERT INTO mine.t SELECT g, repeat('t', g), md5(g::text)::uuid, g, ARRAY[g] FROM generate_series(1, %d) g" % self.pick(10, 300, 2000),
            "UPDATE mine.t SET t = t || 'x', i = i + 1 WHERE i < 3", "INSERT INTO hers.t(i) VALUES (1)", "VACUUM %smine.t" % self.pick("", "FULL ", "ANALYZE "), "ANALYZE mine.t",
            "INSERT INTO mine.p VALUES (5, 'x')", "INSERT INTO mine.t(t) SELECT %s FROM mine.big" % self.pick("plain", "packed"))

    def ddl(self):
        return self.pick(
            "ALTER INDEX mine.%s ATTACH PARTITION %s" % (self.pick("mine_p", "mine_i"), self.pick("hers.p1_i_idx", "hers.hers_i", "mine.mine_i", "mine.p1_i_idx")), "REINDEX TABLE mine.t",
            "REINDEX INDEX CONCURRENTLY mine.%s" % self.pick("mine_i", "mine_t"), "DROP INDEX mine.%s" % self.pick("mine_u", "mine_many"), "CLUSTER mine.t USING mine_i",
            "ALTER INDEX mine.mine_i SET (%s = %s)" % (self.pick("filter", "merge_ratio", "layout", "fillfactor", "levels", "access_method"), self.pick("1", "'surf'", "0.5", "trie", "hybrid")),
            "ALTER TABLE mine.t ADD CONSTRAINT x%d UNIQUE USING INDEX %s" % (self.n, self.pick("mine_i", "mine_u")), "ALTER TABLE mine.t ADD CONSTRAINT x%d UNIQUE (n)" % self.n,
            "ALTER TABLE mine.p ATTACH PARTITION %s FOR VALUES FROM (500) TO (600)" % self.pick("hers.t", "mine.t", "hers.p1"), "ALTER TABLE mine.t ALTER i TYPE %s USING 1" % self.type_name(),
            "CREATE OPERATOR CLASS mine.o%d FOR TYPE int USING hybrid AS OPERATOR 1 <, FUNCTION 1 hybrid_merge(regclass)" % self.n, "SELECT hybrid_make_operator_classes(NULL)",
            "CREATE TRIGGER g%d BEFORE INSERT ON mine.t EXECUTE FUNCTION hybrid_ddl_command()" % self.n, "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION hybrid_ddl_command()",
            "SELECT amvalidate(oid) FROM pg_opclass WHERE opcmethod = (SELECT oid FROM pg_am WHERE amname = 'hybrid') LIMIT 3")

    def set(self):
        name = self.random.choice(self.catalog.settings + ["search_path", "enable_seqscan", "row_security", "work_mem", "default_transaction_read_only", "role"])
        value = self.pick("mine", "hers, mine") if name == "search_path" else self.pick("0", "1", "on", "off", "-1", "64kB", "2147483647", "DEFAULT", "'x'", "none", "1ms")
        return self.pick("SET %s = %s" % (name, value), "SET LOCAL %s = %s" % (name, value), "RESET ALL")

    def transaction(self):
        return self.pick("BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "BEGIN READ ONLY", "COMMIT AND CHAIN", "DISCARD ALL")

    def scan(self):
        return "SELECT count(*) FROM mine.t WHERE %s %s %s" % (self.pick("i", "t", "u", "n", "a", "b"), self.pick("=", "<", ">=", "IS DISTINCT FROM", "= ANY"), self.pick(
            self.value(), "(ARRAY[%s])" % self.value()))

    # ---- beside sessions that hold locks ----

    def row_table(self):
        return self.pick("its.t", "mine.r", "mine.r")

    def by_keys(self):
        """Statements whose indexes compare values of the other role's types."""
        one = "(SELECT k FROM its.t WHERE n = %d LIMIT 1)" % self.random.randrange(50)
        return self.pick(
            "SET enable_seqscan = off; SELECT count(*) FROM %%s WHERE k %s %s" % (self.pick("=", "<", ">="), one), "SELECT n FROM %%s ORDER BY k LIMIT %d" % self.pick(1, 100),
            "SET enable_seqscan = off; SELECT count(*) FROM %%s WHERE n = %d" % self.random.randrange(60), "SELECT c, n FROM %s ORDER BY c, n LIMIT 5",
            "INSERT INTO %%s SELECT k, c, n FROM its.t LIMIT %d" % self.pick(1, 1, 30, 400), "DELETE FROM %%s WHERE n = %d" % self.random.randrange(60),
            "UPDATE %%s SET n = n + 1 WHERE n = %d" % self.random.randrange(60), "VACUUM mine.r", "VACUUM (FREEZE) mine.r", "VACUUM (PARALLEL 2) mine.r", "ANALYZE mine.r", "REINDEX TABLE mine.r",
            "SELECT hybrid_merge('%s')" % self.pick("mine.r_k", "mine.r_c", "mine.r_n"), "SELECT hybrid_index_check('%s')" % self.pick("mine.r_k", "mine.r_n"),
            "TRUNCATE mine.r").replace("%s", self.row_table())

    def no_wait(self):
        return NO_WAIT + self.pick("SELECT * FROM hybrid_indexes", "SELECT * FROM hybrid_advice", "SELECT count(*) FROM hybrid_merge_progress",
                                   "SELECT * FROM hybrid_index_stats('%s', true)" % self.pick("mine.r_k", "mine.r_c", "mine.r_n", "mine.mine_i"), "SELECT * FROM hybrid_estimate('%s', true)" % self.pick("mine.mine_b", "mine.s_k", "mine.s_k"))

    def hold(self):
        if self.random.random() < 0.2:
            return ["first", "", ""]    # a new session, which knows no type
        session = self.pick("holder 1", "holder 2", "unread")
        if self.random.random() < 0.3:
            return [session, "ROLLBACK", "ROLLBACK"]
        if session == "unread":
            return self.unread()
        if self.random.random() < 0.3:
            return [session] + ["BEGIN; " + sql for sql in self.used_by_holder()]
        sql = self.pick(
            "LOCK TABLE %s IN %s MODE" % (self.pick(*TABLES), self.pick(*MODES)), "LOCK TABLE its.part, its.looked_up", "LOCK TABLE its.part",
            "TRUNCATE %s" % self.pick("its.t", "its.part", "mine.r", "mine.t"), "ALTER TABLE its.part ADD COLUMN c int", "ALTER TABLE its.part SET (fillfactor = 80)",
            "ALTER TYPE its.bare ADD ATTRIBUTE c int", "ALTER TYPE its.bare DROP ATTRIBUTE b", "ALTER TYPE its.bare RENAME ATTRIBUTE a TO d", "ALTER FUNCTION its.cmp COST 7",
            "REINDEX INDEX its.%s" % self.pick("t_k", "t_n"), "DROP INDEX its.t_c", "CREATE INDEX ON its.t (n)", "ANALYZE its.t", "UPDATE mine.t SET n = n WHERE i = 3",
            "DECLARE c%d CURSOR FOR SELECT i FROM mine.t WHERE i >= 0 ORDER BY i; FETCH 1 FROM c%d" % (self.n, self.n))
        self.n += 1
        return [session, "BEGIN; " + sql, "BEGIN; " + sql]

    def used_by_holder(self):
        """What comes to an index, and the same locks without: btree compares with a page
        locked, and may end in a deadlock that nothing detects."""
        table = self.row_table()
        return self.pick(("SET LOCAL enable_seqscan = off; SELECT count(*) FROM %s WHERE k = (SELECT k FROM its.t LIMIT 1)" % table, "LOCK TABLE %s, its.t IN ACCESS SHARE MODE" % table),
                         ("INSERT INTO %s SELECT k, c, n FROM its.t LIMIT 100" % table, "LOCK TABLE %s IN ROW EXCLUSIVE MODE; LOCK TABLE its.t IN ACCESS SHARE MODE" % table),
                         ("SELECT hybrid_merge('its.%s')" % self.pick("t_k", "t_n"), "LOCK TABLE its.t IN ACCESS SHARE MODE"))

    def unread(self):
        """Has its socket filled before or amid its work, and is not read."""
        lock = "BEGIN; LOCK TABLE its.t, mine.r, mine.t IN ROW EXCLUSIVE MODE; "
        fill = "SELECT repeat('x', %d); "
        saved = "".join("SAVEPOINT a_long_name_of_a_savepoint_%d; " % i for i in range(self.pick(0, 20, 300)))
        work = "INSERT INTO %s SELECT k, c, n FROM its.t LIMIT 500; SELECT hybrid_merge('its.%s'); " % (self.row_table(), self.pick("t_k", "t_n"))
        return ["unread", lock + saved + "SET client_min_messages = debug5; " + fill % self.random.randrange(230000) + work + fill % 5000000, lock + fill % 5000000]
