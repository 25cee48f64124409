"""Random statements, from what there is in a database.

A statement is a pair of where it is executed, "*" in both databases, "hybrid"
or "btree" in one, and the text.  `@am` and `@marker` in a text stand for what
is written where hybrid is asked for by name; see Runner.texts.
"""
import random
import re

WORDS = ["", "a", "A", "ab", "abc", "b", "B", "ba", "z", "zz", "Zoë", "x y", "10", "9", "%", "q'q"]
TYPES = ["integer", "integer", "integer", "bigint", "smallint", "text", "text", "character varying(20)", "numeric(8,2)",
         "numeric", "uuid", "date", "timestamp with time zone", "boolean", "character(4)", "bytea",
         "double precision", "oid", "name", "mood", "small", "pair", "integer[]", "int4range", "jsonb", "inet",
         "time", "interval", "citext_like", "point", "citext", "ltree", "\"Odd type\"", "int4range"]
ACTIONS = ["", "", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON DELETE SET DEFAULT", " ON UPDATE CASCADE",
           " ON DELETE RESTRICT", " ON DELETE CASCADE ON UPDATE CASCADE", " ON UPDATE SET NULL"]
DEFERRABLE = ["", "", "", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED", " NOT DEFERRABLE"]

SETUP = """
CREATE SCHEMA s1;
CREATE SCHEMA "S 2";
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN small AS integer CHECK (VALUE < 1000);
CREATE DOMAIN citext_like AS text COLLATE "C";
CREATE TYPE pair AS (a integer, b text);
CREATE TYPE row_type AS (c1 integer, c2 text, c3 bigint);
CREATE FUNCTION twice(x integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT x * 2';
CREATE FUNCTION loud(x integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN IF x = 29 THEN RAISE ''loud %'', x; END IF; RETURN x; END';
CREATE EXTENSION citext;
CREATE EXTENSION ltree;
CREATE EXTENSION btree_gist;
CREATE DOMAIN "Odd type" AS citext;
CREATE TABLE events (tag text, kind text, identity text);
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
GRANT ALL ON SCHEMA public, s1 TO joe;
GRANT INSERT ON events TO joe;
"""


def quote(text):
    return "'" + text.replace("'", "''") + "'"


class Generator:
    def __init__(self, seed, version):
        self.random = random.Random(seed)
        self.version = version
        self.tables = []
        self.status = "I"
        self.serial = 0
        self.prepared = []
        self.cursors = 0
        self.cold = True        # the session has not seen a hybrid index yet
        self.pure = False       # all that can be hybrid is to be

    # ---- choices ----

    def chance(self, p):
        return self.random.random() < p

    def one(self, of):
        return self.random.choice(of)

    def some(self, of, least=1, most=3):
        n = min(len(of), self.random.randint(least, most))
        return self.random.sample(of, n)

    def of_kind(self, kinds="rp"):
        found = [t for t in self.tables if t["kind"] in kinds and t["columns"]]
        return self.one(found) if found else None

    def any_index(self, test=lambda index: True):
        found = [(t, i) for t in self.tables for i in t["indexes"] if test(i)]
        return self.one(found) if found else (None, None)

    def schema(self):
        return self.one(["", "", "", "", "s1.", '"S 2".', "public."])

    def new_table(self):
        return self.schema() + "t%d" % self.random.randint(1, 9)

    def new_index(self):
        if self.chance(0.05):
            return self.one(["i" * 63, '"' + "ö" * 31 + '"', '"I.1 ""x"""', '"%s1"' % ("i" * 62)])
        return "i%d" % self.random.randint(1, 14)

    def new_column(self):
        return "c%d" % self.random.randint(1, 9) if self.chance(0.9) else '"C "" %d"' % self.random.randint(1, 3)

    def new_constraint(self):
        return "k%d" % self.random.randint(1, 12)

    def type(self):
        return self.one(TYPES)

    # ---- values and expressions ----

    def value(self, type):
        r = self.random
        if self.chance(0.08):
            return "NULL"
        if type.endswith("[]"):
            return "'{%s}'" % ",".join(str(r.randint(0, 3)) for _ in range(r.randint(0, 3)))
        if type in ("integer", "bigint", "smallint", "oid", "small"):
            return str(r.randint(0, 30))
        if type in ("numeric", "numeric(8,2)", "double precision", "real"):
            return "%d.%d" % (r.randint(0, 9), r.randint(0, 3))
        if type == "uuid":
            return "'00000000-0000-0000-0000-0000000000%02d'" % r.randint(0, 20)
        if type == "date":
            return "'2020-01-%02d'" % r.randint(1, 25)
        if type.startswith("timestamp"):
            return "'2020-01-%02d 10:00+00'" % r.randint(1, 25)
        if type.startswith("time"):
            return "'%02d:00'" % r.randint(1, 20)
        if type == "interval":
            return "'%d hours'" % r.randint(1, 20)
        if type == "boolean":
            return self.one(["true", "false"])
        if type == "bytea":
            return "'\\x%02d'" % r.randint(0, 20)
        if type == "mood":
            return quote(self.one(["sad", "ok", "happy"]))
        if type == "pair":
            return "'(%d,%s)'" % (r.randint(0, 5), self.one("abc"))
        if type == "int4range":
            return "'[%d,%d)'" % (r.randint(0, 5), r.randint(6, 9))
        if type == "jsonb":
            return self.one(["'1'", "'{\"a\": 1}'", "'[1,2]'", "'\"x\"'"])
        if type == "ltree":
            return quote(self.one(["a", "a.b", "b", "b.c"]))
        if type == "inet":
            return "'10.0.0.%d'" % r.randint(0, 20)
        if type == "point":
            return "'(%d,0)'" % r.randint(0, 5)
        if type.startswith("char"):
            return quote(self.one(WORDS)[:4])
        return quote(self.one(WORDS))

    def default(self, type):
        return "NULL" if type == "point" else self.value(type)

    def condition(self, table):
        column = self.one(table["columns"])
        name, type = column["name"], column["type"]
        if type == "point":
            return "%s IS NOT NULL" % name
        value = self.value(type)
        if type == "boolean" and self.chance(0.5):
            return self.one([name, "NOT " + name, name + " IS TRUE"])
        r = self.random.random()
        if r < 0.45:
            return "%s %s %s" % (name, self.one(["=", "=", "=", "<", ">", "<=", ">=", "<>"]), value)
        if r < 0.6:
            return "%s IS %sNULL" % (name, self.one(["", "NOT "]))
        if r < 0.75:
            return "%s IN (%s, %s)" % (name, value, self.value(type))
        if r < 0.85 and len(table["columns"]) > 1:
            other = self.one([c for c in table["columns"]])
            if other["type"] != "point":
                return "(%s, %s) %s (%s, %s)" % (name, other["name"], self.one(["<", ">", ">="]), value,
                                                 self.value(other["type"]))
        if type in ("text", "character varying", "name"):
            return "%s LIKE %s" % (name, self.one(["'a%'", "'%b'", "'ab'", "''"]))
        return "%s BETWEEN %s AND %s" % (name, value, self.value(type))

    def predicate(self, columns):
        column = self.one(columns)
        return "%s IS NOT NULL" % column[0] if column[1] in ("point", "jsonb") or self.chance(0.4) else \
            "%s > %s" % (column[0], self.value(column[1]).replace("NULL", "NULL::" + column[1]))

    # Columns here are pairs of name and type.
    def element(self, columns, simple=False):
        name, type = self.one(columns)
        if simple:
            return name
        text = type in ("text", "character varying", "character varying(20)", "citext_like")
        r = self.random.random()
        if r < 0.12:
            if type == "integer":
                name = self.one(["(%s + 1)", "twice(%s)", "abs(%s)", "(%s %% 3)", "loud(%s)"]) % name
            elif text:
                name = self.one(["lower(%s)", "(%s || 'x')", "length(%s)", "(%s COLLATE \"C\")", "upper(%s::text)"]) % name
                text = False
            elif type == "point":
                name = "(%s[0])" % name
        if text and self.chance(0.15):
            name += " COLLATE " + self.one(['"C"', '"POSIX"', "nocase", '"de-x-icu"'])
        if text and not name.endswith("nocase") and self.chance(0.15):
            name += " " + self.one(["text_pattern_ops", "text_ops", "varchar_ops", "varchar_pattern_ops"])
        elif type == "integer" and self.chance(0.08):
            name += " " + self.one(["int4_ops", "pg_catalog.int4_ops", "int8_ops", "no_ops"])
        elif type == "name" and self.chance(0.1):
            name += " name_ops"
        elif type == "jsonb" and self.chance(0.1):
            name += " jsonb_ops"
        if self.chance(0.2):
            name += self.one([" DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST"])
        return name

    def elements(self, columns):
        return ", ".join(self.element(columns) for _ in range(self.one([1, 1, 2, 2, 3])))

    def names(self, columns):
        return ", ".join(name for name, _ in self.some(columns))

    def include(self, columns):
        return " INCLUDE (%s)" % self.names(columns) if self.chance(0.12) else ""

    def options(self):
        if not self.chance(0.15):
            return ""
        return " WITH (%s)" % self.one(["fillfactor = 70", "deduplicate_items = off", "fillfactor = 50, deduplicate_items = on",
                                        "fillfactor = 200", "nonsense = 1"])

    def tablespace(self):
        return self.one([" TABLESPACE ts1", " TABLESPACE ts2", " TABLESPACE pg_default"]) if self.chance(0.06) else ""

    def index_tablespace(self):
        text = self.tablespace()
        return " USING INDEX" + text if text else ""

    # ---- constraints ----

    def references(self, columns):
        """A foreign key's REFERENCES, and how many columns it has."""
        target = self.of_kind()
        if target is None:
            return None
        unique = [i for i in target["indexes"] if i["unique"] and i["plain"]]
        if unique and self.chance(0.9):
            index = self.one(unique)
            wanted = index["columns"]
            if index["primary"] and self.chance(0.4):
                return " REFERENCES %s" % target["name"], wanted, target
            return " REFERENCES %s (%s)" % (target["name"], ", ".join(wanted)), wanted, target
        return " REFERENCES %s (%s)" % (target["name"], self.one(target["columns"])["name"]), ["x"], target

    def foreign_key(self, columns):
        found = self.references(columns)
        if found is None:
            return "CHECK (true)"
        text, wanted, target = found
        types = {c["name"]: c["type"] for c in target["columns"]}
        chosen = []
        for name in wanted:
            alike = [c for c in columns if c[1].split("(")[0] == types.get(name)]
            chosen.append(self.one(alike if alike and self.chance(0.95) else columns)[0])
        return "FOREIGN KEY (%s)%s%s%s%s" % (", ".join(chosen), text, self.one(["", "", "", " MATCH FULL"]),
                                           self.one(ACTIONS), self.one(DEFERRABLE))

    def table_constraint(self, columns):
        name = "CONSTRAINT %s " % self.new_constraint() if self.chance(0.5) else ""
        r = self.random.random()
        if r < 0.25:
            body = "PRIMARY KEY (%s)%s@marker%s%s" % (self.names(columns), self.include(columns), self.index_tablespace(),
                                                       self.one(DEFERRABLE))
        elif r < 0.55:
            body = "UNIQUE%s (%s)%s@marker%s%s" % (self.one(["", "", "", " NULLS NOT DISTINCT"]), self.names(columns),
                                                   self.include(columns), self.index_tablespace(), self.one(DEFERRABLE))
        elif r < 0.60 and self.version >= 18 and any(c[1] == "int4range" for c in columns):
            span = self.one([c for c in columns if c[1] == "int4range"])[0]
            body = "%s (%s%s WITHOUT OVERLAPS)" % (self.one(["UNIQUE", "PRIMARY KEY"]),
                                                   self.one(["", columns[0][0] + ", "]), span)
        elif r < 0.68:
            body = "EXCLUDE %s(%s)%s%s%s" % (
                self.one(["", "", "" if self.pure else "USING btree ", "USING @am ", "USING gist "]),
                ", ".join(self.element(columns) + " WITH " + self.one(["=", "=", "=", "=", "<>"])
                          for _ in range(self.one([1, 1, 2]))),
                self.include(columns), " WHERE (%s)" % self.predicate(columns) if self.chance(0.2) else "",
                self.one(DEFERRABLE))
        elif r < 0.78:
            body = "CHECK (%s IS NOT NULL OR true)" % self.one(columns)[0]
        else:
            body = self.foreign_key(columns)
        return name + body

    def column_constraint(self, type):
        r = self.random.random()
        if r < 0.12:
            return " PRIMARY KEY@marker" + self.index_tablespace() + self.one(DEFERRABLE)
        if r < 0.26:
            return self.one([" UNIQUE", " UNIQUE", " CONSTRAINT %s UNIQUE" % self.new_constraint(), " UNIQUE NULLS NOT DISTINCT"]) \
                + "@marker" + self.one(DEFERRABLE)
        if r < 0.34:
            return " NOT NULL"
        if r < 0.40:
            return " DEFAULT " + self.default(type)
        if r < 0.45 and type in ("integer", "bigint", "smallint"):
            return self.one([" GENERATED BY DEFAULT AS IDENTITY", " GENERATED ALWAYS AS IDENTITY"])
        if r < 0.50:
            found = self.references([])
            if found and len(found[1]) == 1:
                return found[0] + self.one(ACTIONS) + self.one(DEFERRABLE)
        return ""

    # ---- tables ----

    def create_table(self):
        r = self.random.random()
        exists = self.one(["", "", " IF NOT EXISTS"])
        kind = self.one(["", "", "", "", " UNLOGGED", " TEMP"])
        name = self.new_table()
        if kind == " TEMP":
            name = name.split(".")[-1] if self.chance(0.95) else name
        if r < 0.12 and self.of_kind():
            what = self.one(["INCLUDING ALL", "INCLUDING ALL", "INCLUDING INDEXES", "INCLUDING CONSTRAINTS", "",
                             "INCLUDING ALL EXCLUDING INDEXES", "INCLUDING INDEXES INCLUDING COMMENTS INCLUDING STATISTICS"])
            more = ", PRIMARY KEY (%s)@marker" % self.one(self.of_kind()["columns"])["name"] if self.chance(0.15) else ""
            return "CREATE%s TABLE%s %s (LIKE %s %s%s)" % (kind, exists, name, self.of_kind("rpmv")["name"], what, more)
        if r < 0.17:
            constraints = ", ".join(self.table_constraint([("c1", "integer"), ("c2", "text"), ("c3", "bigint")])
                                    for _ in range(self.one([1, 2])))
            return "CREATE%s TABLE%s %s OF row_type (%s)" % (kind, exists, name,
                                                            self.one([constraints, "c1 PRIMARY KEY@marker", "c1 WITH OPTIONS UNIQUE@marker"]))
        if r < 0.20:
            source = self.of_kind("rpm")
            if source:
                return "CREATE%s TABLE%s %s AS SELECT * FROM %s" % (kind, exists, name, source["name"])
        columns, texts = [], []
        for number in sorted(self.random.sample(range(1, 8), self.random.randint(2, 5))):
            type = self.type()
            column = "c%d" % number
            if type == "integer" and self.chance(0.06):
                texts.append("%s serial%s" % (column, self.column_constraint("serial")))
            elif columns and columns[0][1] == "integer" and type == "integer" and self.chance(0.1):
                texts.append("%s integer GENERATED ALWAYS AS (%s * 2) %s%s" % (column, columns[0][0], "VIRTUAL" if self.version >= 18 and self.chance(0.3) else "STORED",
                                                                                  self.one(["", " UNIQUE@marker"])))
            else:
                texts.append("%s %s%s" % (column, type, self.column_constraint(type)))
            columns.append((column, type))
        for _ in range(self.one([0, 0, 1, 1, 2])):
            texts.append(self.table_constraint(columns))
        tail = ""
        if r < 0.28 and self.of_kind("r"):
            tail += " INHERITS (%s)" % self.of_kind("r")["name"]
        elif r < 0.48 and kind != " UNLOGGED":
            by = self.one([c for c in columns if c[1] != "point"] or columns)
            if by[1] not in ("integer", "bigint", "smallint", "text"):
                by = self.one(columns)
            tail += " PARTITION BY %s (%s)" % (self.one(["RANGE", "LIST", "HASH"]), by[0])
        if kind == " TEMP":
            tail += self.one(["", " ON COMMIT DROP", " ON COMMIT DELETE ROWS", " ON COMMIT PRESERVE ROWS"])
        return "CREATE%s TABLE%s %s (%s)%s%s" % (kind, exists, name, ", ".join(texts), tail, self.tablespace())

    def bound(self, table):
        key = table["key"] or ""
        column = key[key.index("(") + 1:-1].split(",")[0] if "(" in key else ""
        type = next((c["type"] for c in table["columns"] if c["name"] == column), "integer")
        if self.chance(0.15):
            return "DEFAULT"
        if key.startswith("HASH"):
            return "FOR VALUES WITH (MODULUS %d, REMAINDER %d)" % (2, self.one([0, 1]))
        if key.startswith("LIST"):
            return "FOR VALUES IN (%s)" % ", ".join(self.value(type) for _ in range(self.one([1, 3, 6])))
        if type in ("integer", "bigint", "smallint", "small"):
            low = self.one([0, 10, 20])
            return "FOR VALUES FROM (%d) TO (%d)" % (low, low + self.one([10, 10, 20]))
        return "FOR VALUES FROM (MINVALUE) TO (MAXVALUE)" if self.chance(0.5) else \
            "FOR VALUES FROM (%s) TO (%s)" % (self.value(type), self.value(type))

    def create_partition(self):
        parent = self.of_kind("p")
        if parent is None:
            return self.create_table()
        columns = [(c["name"], c["type"]) for c in parent["columns"]]
        body = " (%s)" % self.table_constraint(columns) if self.chance(0.2) else ""
        tail = " PARTITION BY LIST (%s)" % self.one(columns)[0] if self.chance(0.1) else ""
        temp = " TEMP" if parent["persistence"] == "t" else ""
        name = self.new_table()
        return "CREATE%s TABLE %s PARTITION OF %s%s %s%s" % (temp, name.split(".")[-1] if temp else name, parent["name"], body,
                                                            self.bound(parent), tail)

    def create_index(self, inside=False):
        table = self.of_kind("rrrrpm")
        if table is None:
            return self.create_table()
        columns = [(c["name"], c["type"]) for c in table["columns"]]
        concurrently = " CONCURRENTLY" if not inside and self.chance(0.2) else ""
        unique = " UNIQUE" if self.chance(0.4) else ""
        name = " " + self.new_index() if self.chance(0.7) else ""
        exists = " IF NOT EXISTS" if name and self.chance(0.1) else ""
        using = self.one(["", "", "", "", "" if self.pure else " USING btree", " USING @am", " USING hash"])
        if using == " USING hash" and self.chance(0.7):
            using = ""
        body = "(%s)%s%s%s%s%s" % (self.elements(columns), self.include(columns),
                                   self.one(["", "", "", "", " NULLS NOT DISTINCT"]) if unique else "",
                                   self.options(), self.tablespace(),
                                   " WHERE " + self.predicate(columns) if self.chance(0.15) else "")
        only = "ONLY " if table["kind"] == "p" and self.chance(0.3) else ""
        return "CREATE%s INDEX%s%s%s ON %s%s%s %s" % (unique, concurrently, exists, name, only, table["name"], using, body)

    # ---- ALTER ----

    def subcommand(self, table):
        columns = [(c["name"], c["type"]) for c in table["columns"]]
        name, type = self.one(columns)
        cascade = self.one(["", "", " CASCADE"])
        free = [i for i in table["indexes"] if not i["constraint"]]
        constraints = table["constraints"]
        choices = [
            (4, lambda: "ADD COLUMN%s %s %s%s" % (self.one(["", " IF NOT EXISTS"]), self.new_column(), *self.typed())),
            (2, lambda: "DROP COLUMN %s%s" % (name, cascade)),
            (6, lambda: self.alter_type(name, type)),
            (2, lambda: "ALTER COLUMN %s %s NOT NULL" % (name, self.one(["SET", "DROP"]))),
            (1, lambda: "ALTER COLUMN %s SET DEFAULT %s" % (name, self.default(type))),
            (1, lambda: "ALTER COLUMN %s SET STATISTICS %d" % (name, self.one([-1, 10, 200]))),
            (1, lambda: "ALTER COLUMN %s SET STORAGE PLAIN" % name),
            (7, lambda: "ADD " + self.table_constraint(columns) + self.one(["", "", "", " NOT VALID"])),
            (1, lambda: "OWNER TO %s" % self.one(["joe", "postgres"])),
            (1, lambda: "SET (fillfactor = %d)" % self.one([50, 80])),
            (1, lambda: self.one(["ENABLE ROW LEVEL SECURITY", "DISABLE ROW LEVEL SECURITY", "DISABLE TRIGGER ALL", "ENABLE TRIGGER ALL"])),
            (1, lambda: self.one(["SET LOGGED", "SET UNLOGGED"])),
            # in a transaction the server itself leaves entries of a moved table's rows behind, in btree too
            (1 if self.status == "I" else 0, lambda: "SET TABLESPACE " + self.one(["ts1", "ts2", "pg_default"])),
            (1, lambda: self.one(["REPLICA IDENTITY FULL", "REPLICA IDENTITY DEFAULT", "SET WITHOUT CLUSTER", "NOT OF"])),
            (1, lambda: "ALTER COLUMN %s DROP DEFAULT" % name),
            (1, lambda: "ALTER COLUMN %s ADD GENERATED BY DEFAULT AS IDENTITY" % name),
            (2, lambda: "ALTER COLUMN %s SET EXPRESSION AS (%s)" % (name, self.value(type))),
            (2, lambda: "ADD CONSTRAINT %s NOT NULL %s" % (self.new_constraint(), name)),
            (3, self.new_with_constraint),
        ]
        if free:
            index = self.one(free)
            choices.append((5, lambda: "ADD %s%s USING INDEX %s%s" % (
                "CONSTRAINT %s " % self.new_constraint() if self.chance(0.6) else "",
                self.one(["UNIQUE", "UNIQUE", "PRIMARY KEY"]), index["bare"], self.one(DEFERRABLE))))
        if table["indexes"]:
            index2 = self.one(table["indexes"])
            choices.append((2, lambda: "CLUSTER ON " + index2["bare"]))
            choices.append((2, lambda: "REPLICA IDENTITY USING INDEX " + index2["bare"]))
        if constraints:
            constraint = self.one(constraints)["name"]
            choices.append((5, lambda: "DROP CONSTRAINT %s%s" % (constraint, cascade)))
            choices.append((3, lambda: self.renewed(table, constraint, free, cascade)))
            choices.append((2, lambda: "VALIDATE CONSTRAINT " + constraint))
            choices.append((2, lambda: "ALTER CONSTRAINT %s%s" % (constraint, self.one(DEFERRABLE[4:]))))
        return self.random.choices([c for _, c in choices], [w for w, _ in choices])[0]()

    def new_with_constraint(self):
        name, type = self.new_column(), self.type()
        return "ADD COLUMN %s %s, ADD %s" % (name, type, self.table_constraint([(name, type)]))

    def renewed(self, table, name, free, cascade):
        """A constraint that is dropped gives its name to another one."""
        columns = [(c["name"], c["type"]) for c in table["columns"]]
        body = re.sub(r"^CONSTRAINT \S+ ", "", self.table_constraint(columns))
        if free and self.chance(0.4):
            body = "%s USING INDEX %s" % (self.one(["UNIQUE", "PRIMARY KEY"]), self.one(free)["bare"])
        return "%sDROP CONSTRAINT %s%s, ADD CONSTRAINT %s %s" % (
            self.alter_type(*self.one(columns)) + ", " if self.chance(0.6) else "", name, cascade, name, body)

    def typed(self):
        type = self.type()
        return type, self.column_constraint(type)

    def alter_type(self, name, type):
        new = self.type() if self.chance(0.5) else {
            "integer": "bigint", "bigint": "numeric", "text": "character varying(20)", "character varying": "text",
            "smallint": "integer", "numeric": "text", "small": "integer"}.get(type, type)
        text = "ALTER COLUMN %s TYPE %s" % (name, new)
        if new in ("text", "citext_like") and self.chance(0.2):
            text += ' COLLATE "C"'
        if self.chance(0.5):
            text += " USING %s" % (name + "::text::" + new if self.chance(0.7) else "NULL::" + new)
        return text

    def alter_table(self):
        table = self.of_kind("rrrpm")
        if table is None:
            return self.create_table()
        only = self.one(["", "", "", "", "", "ONLY ", "IF EXISTS "])
        return "ALTER TABLE %s%s %s" % (only, table["name"],
                                        ", ".join(self.subcommand(table) for _ in range(self.one([1, 1, 1, 2, 3]))))

    def alter_alone(self):
        """ALTER TABLE with what must be the only subcommand."""
        table = self.of_kind("rrpm")
        if table is None:
            return self.create_table()
        column = self.one(table["columns"])["name"]
        constraint = self.one(table["constraints"])["name"] if table["constraints"] else "nonesuch"
        other = self.of_kind("r")
        return "ALTER TABLE %s %s" % (table["name"], self.one([
            "RENAME COLUMN %s TO %s" % (column, self.new_column()),
            "RENAME TO " + self.new_table().split(".")[-1],
            "RENAME CONSTRAINT %s TO %s" % (constraint, self.new_constraint()),
            "SET SCHEMA " + self.one(["s1", '"S 2"', "public"]),
            "INHERIT " + (other or table)["name"], "NO INHERIT " + (other or table)["name"], "OF row_type"]))

    def alter_partition(self, inside=False):
        parent, table = self.of_kind("p"), self.of_kind("rrp")
        if parent is None or table is None:
            return self.create_table()
        partitions = [t for t in self.tables if t["partition"]]
        if partitions and self.chance(0.5):
            return "ALTER TABLE %s DETACH PARTITION %s%s" % (parent["name"], self.one(partitions)["name"],
                                                            self.one(["", "", " CONCURRENTLY"]) if not inside else "")
        if self.chance(0.5):
            like = "CREATE TABLE %s (LIKE %s %s)" % (self.new_table(), parent["name"], self.one(["", "INCLUDING ALL", "INCLUDING INDEXES"]))
            return like + "; ALTER TABLE %s ATTACH PARTITION %s %s" % (parent["name"], like.split()[2], self.bound(parent))
        return "ALTER TABLE %s ATTACH PARTITION %s %s" % (parent["name"], table["name"], self.bound(parent))

    def alter_index(self):
        table, index = self.any_index()
        if index is None:
            return self.create_index()
        other = self.any_index(lambda i: i["partition"] or True)[1]
        return "ALTER INDEX %s %s" % (index["name"], self.one([
            "RENAME TO " + self.new_index(), "SET (fillfactor = 60)", "RESET (fillfactor)", "SET (deduplicate_items = off)",
            "SET TABLESPACE ts1", "SET TABLESPACE pg_default", "ALTER COLUMN 1 SET STATISTICS 50",
            "ATTACH PARTITION " + other["name"], "ATTACH PARTITION " + other["name"], "DEPENDS ON EXTENSION plpgsql",
            "NO DEPENDS ON EXTENSION plpgsql", "RESET (nonsense)"]))

    def drop(self):
        table = self.of_kind("rpmv")
        if table is None:
            return self.create_table()
        kind = {"r": "TABLE", "p": "TABLE", "m": "MATERIALIZED VIEW", "v": "VIEW"}
        if self.chance(0.35):
            return "DROP %s %s%s" % (kind[table["kind"]], table["name"], self.one(["", " CASCADE"]))
        index = self.any_index(lambda i: not i["constraint"] or self.chance(0.2))[1]
        if index is None:
            return self.create_index()
        return "DROP INDEX%s %s%s" % (self.one(["", "", " CONCURRENTLY"]) if self.status == "I" else "", index["name"],
                                      self.one(["", "", " CASCADE"]))

    def comment(self):
        table, index = self.any_index()
        if index is None:
            return self.create_table()
        if table["constraints"] and self.chance(0.5):
            return "COMMENT ON CONSTRAINT %s ON %s IS 'constraint %d'" % (self.one(table["constraints"])["name"], table["name"],
                                                                          self.random.randint(1, 9))
        return "COMMENT ON INDEX %s IS %s" % (index["name"], self.one(["NULL", "'index 1'", "'index 2'"]))

    # ---- maintenance ----

    def maintain(self, inside=False):
        table = self.of_kind("rrrpm")
        if table is None:
            return self.create_table()
        index = self.one(table["indexes"]) if table["indexes"] else None
        choices = ["TRUNCATE %s%s" % (table["name"], self.one(["", " CASCADE", " RESTART IDENTITY"])), "ANALYZE %s" % table["name"]]
        if index:
            choices += ["CLUSTER %s USING %s" % (table["name"], index["bare"])] * 2
            choices += ["REINDEX INDEX %s" % index["name"], "REINDEX TABLE %s" % table["name"]]
        if not inside:
            choices += ["VACUUM FULL %s" % table["name"], "VACUUM %s" % table["name"], "VACUUM (INDEX_CLEANUP on) %s" % table["name"], "CLUSTER"]
            if index:
                choices += ["REINDEX INDEX CONCURRENTLY %s" % index["name"], "REINDEX TABLE CONCURRENTLY %s" % table["name"],
                            "REINDEX (TABLESPACE ts1) INDEX %s" % index["name"], "REINDEX SCHEMA public"]
        return self.one(choices)

    def view(self):
        source = self.of_kind("rpm")
        if source is None:
            return self.create_table()
        views = [t for t in self.tables if t["kind"] == "m"]
        if views and self.chance(0.6):
            return "REFRESH MATERIALIZED VIEW%s %s%s" % (self.one(["", " CONCURRENTLY", " CONCURRENTLY"]), self.one(views)["name"],
                                                         self.one(["", "", "", " WITH NO DATA"]))
        columns = ", ".join(c["name"] for c in source["columns"])
        if self.chance(0.4):
            primary = [i for i in source["indexes"] if i["primary"]]
            by = ", ".join(primary[0]["columns"]) if primary else columns
            return "CREATE VIEW %s AS SELECT %s FROM %s GROUP BY %s" % (self.new_table(), columns, source["name"], by)
        return "CREATE MATERIALIZED VIEW %s AS SELECT %s FROM %s" % (self.new_table(), columns, source["name"])

    def others(self):
        table = self.of_kind("rp")
        if table is None:
            return self.create_table()
        column = self.one(table["columns"])["name"]
        return self.one([
            "ALTER TYPE mood ADD VALUE IF NOT EXISTS 'calm'", "ALTER TYPE row_type ALTER ATTRIBUTE c%d TYPE %s CASCADE" % (
                self.one([1, 2, 3]), self.one(["bigint", "text", "integer", "numeric"])),
            "ALTER TYPE row_type ADD ATTRIBUTE c%d integer CASCADE" % self.one([4, 5]),
            "ALTER TYPE row_type DROP ATTRIBUTE c%d CASCADE" % self.one([1, 2, 3, 4]),
            "ALTER TYPE row_type RENAME ATTRIBUTE c2 TO c6 CASCADE",
            "ALTER DOMAIN small ADD CHECK (VALUE >= 0)", "ALTER DOMAIN small RENAME TO small2",
            "GRANT %s ON %s TO joe" % (self.one(["ALL", "SELECT", "INSERT", "REFERENCES"]), table["name"]),
            "REVOKE ALL ON %s FROM joe" % table["name"], "ALTER DOMAIN small2 RENAME TO small",
            "CREATE STATISTICS ON %s FROM %s" % (", ".join(c["name"] for c in table["columns"][:3]), table["name"]),
            "CREATE PUBLICATION pub FOR TABLE %s" % table["name"], "DROP PUBLICATION pub",
            "CREATE RULE r1 AS ON INSERT TO %s DO ALSO INSERT INTO events VALUES ('rule')" % table["name"],
            "CREATE POLICY p1 ON %s USING (%s IS NOT NULL)" % (table["name"], column),
            "LOCK TABLE %s IN SHARE MODE" % table["name"],
            "ALTER FUNCTION twice(integer) RENAME TO twice", "DROP FUNCTION loud(integer)",
            "CREATE SCHEMA s3 CREATE TABLE a (x integer PRIMARY KEY@marker, y integer REFERENCES a) CREATE INDEX ON a (y) "
            "CREATE UNIQUE INDEX b ON a (y, x)", "DROP SCHEMA s3 CASCADE",
            "CREATE SCHEMA AUTHORIZATION joe CREATE TABLE t1 (x integer UNIQUE@marker)", "DROP SCHEMA joe CASCADE",
            "SECURITY LABEL ON TABLE %s IS 'x'" % table["name"], "REASSIGN OWNED BY joe TO postgres", "DROP OWNED BY joe",
            self.event_trigger(), self.event_trigger()])

    def event_trigger(self):
        event = self.one(["ddl_command_end", "sql_drop", "ddl_command_start"])
        name = "user_" + event
        source = {"ddl_command_end": "INSERT INTO public.events SELECT command_tag, object_type, object_identity FROM pg_event_trigger_ddl_commands()",
                  "sql_drop": "INSERT INTO public.events SELECT tg_tag, object_type, object_identity FROM pg_event_trigger_dropped_objects()",
                  "ddl_command_start": "INSERT INTO public.events VALUES (tg_tag)"}[event]
        return "CREATE OR REPLACE FUNCTION public.%s() RETURNS event_trigger LANGUAGE plpgsql AS $e$BEGIN %s; END$e$; " \
            "CREATE EVENT TRIGGER %s ON %s EXECUTE FUNCTION public.%s()" % (name, source, name, event, name)

    # ---- rows ----

    def row(self, columns):
        return "(%s)" % ", ".join("DEFAULT" if c["generated"] and self.chance(0.98) else self.value(c["type"]) for c in columns)

    def conflict(self, table):
        columns = table["columns"]
        unique = [i for i in table["indexes"] if i["unique"]]
        r = self.random.random()
        target = ""
        if unique and r < 0.6:
            index = self.one(unique)
            if index["constraint"] and self.chance(0.4):
                target = " ON CONSTRAINT " + index["bare"]
            else:
                target = " (%s)" % ", ".join(index["columns"])
                if index["where"]:
                    target += " WHERE " + index["where"]
        elif r < 0.7:
            target = " (%s)" % self.one(columns)["name"]
        if not target and self.cold:
            return ""
        if self.chance(0.5) or not target:
            return " ON CONFLICT%s DO NOTHING" % target
        settable = [c for c in columns if not c["generated"]] or columns
        column = self.one(settable)["name"]
        return " ON CONFLICT%s DO UPDATE SET %s = %s%s" % (
            target, column, self.one(["EXCLUDED." + column, "DEFAULT", "EXCLUDED." + column]),
            " WHERE EXCLUDED.%s IS NOT NULL" % column if self.chance(0.2) else "")

    def insert(self):
        table = self.of_kind("rrrpp")
        if table is None:
            return self.create_table()
        columns = table["columns"]
        if self.chance(0.05) and not self.cold:
            return "INSERT INTO %s SELECT * FROM %s ON CONFLICT DO NOTHING" % (table["name"], self.of_kind("rp")["name"])
        rows = ", ".join(self.row(columns) for _ in range(self.one([1, 1, 2, 4, 10])))
        conflict = self.conflict(table) if self.chance(0.6) else ""
        with_it = "WITH w AS (%s) SELECT count(*) FROM w" if self.chance(0.08) else "%s"
        return with_it % ("INSERT INTO %s (%s) VALUES %s%s%s" % (
            table["name"], ", ".join(c["name"] for c in columns), rows, conflict,
            self.one(["", "", " RETURNING *"]) if with_it == "%s" else " RETURNING 1"))

    def modify(self):
        table = self.of_kind("rrp")
        if table is None:
            return self.create_table()
        r = self.random.random()
        where = self.condition(table)
        if r < 0.4:
            return "DELETE FROM %s WHERE %s%s" % (table["name"], where, self.one(["", " RETURNING *"]))
        settable = [c for c in table["columns"] if not c["generated"]] or table["columns"]
        column = self.one(settable)
        if r < 0.8:
            return "UPDATE %s SET %s = %s WHERE %s" % (table["name"], column["name"], self.value(column["type"]), where)
        keys = [c for c in table["columns"] if c["type"] != "point"]
        if not keys:
            return "DELETE FROM " + table["name"]
        key = self.one(keys)
        return "MERGE INTO %s t USING (VALUES (%s::%s)) s (k) ON t.%s = s.k WHEN MATCHED THEN %s " \
            "WHEN NOT MATCHED THEN INSERT (%s) VALUES (s.k)" % (
                table["name"], self.value(key["type"]), key["type"], key["name"],
                self.one(["DELETE", "DO NOTHING", "UPDATE SET %s = %s" % (column["name"], self.value(column["type"]))]),
                key["name"])

    def copy(self):
        table = self.of_kind("rrp")
        if table is None:
            return self.create_table()
        columns = [c for c in table["columns"] if not c["generated"]]
        if not columns:
            return self.insert()
        rows = []
        for _ in range(self.one([1, 3, 20])):
            values = [self.value(c["type"]) for c in columns]
            rows.append("\t".join("\\N" if v == "NULL" else v.strip("'").replace("''", "'").replace("\\", "\\\\") for v in values))
        return "COPY %s (%s) FROM STDIN\n" % (table["name"], ", ".join(c["name"] for c in columns)) + "\n".join(rows) + "\n"

    def select(self):
        table = self.of_kind("rrpm")
        if table is None:
            return self.create_table()
        other = self.of_kind("rrpm")
        columns = [c["name"] for c in table["columns"] if c["type"] != "point"]
        r = self.random.random()
        if not columns or r < 0.5:
            return "SELECT * FROM %s WHERE %s" % (table["name"], self.condition(table))
        if r < 0.7:
            return "SELECT DISTINCT %s FROM %s ORDER BY 1" % (self.one(columns), table["name"])
        if r < 0.85:
            return "SELECT min(%s), max(%s), count(*) FROM %s WHERE %s" % (columns[0], columns[-1], table["name"], self.condition(table))
        return "SELECT count(*) FROM %s a JOIN %s b ON a.%s = b.%s" % (table["name"], other["name"], self.one(columns),
                                                                     self.one(other["columns"])["name"])

    # ---- sessions ----

    def prepare(self):
        if self.prepared and self.chance(0.65):
            return "EXECUTE " + self.one(self.prepared)
        name = "q%d" % self.random.randint(1, 5)
        if name in self.prepared:
            return "DEALLOCATE %s" % name if self.chance(0.3) else "EXECUTE " + name
        what = self.one([self.insert, self.insert, self.select, self.modify])()
        if what.split()[0] not in ("INSERT", "SELECT", "UPDATE", "DELETE", "MERGE", "WITH"):
            return what
        self.prepared.append(name)
        return "PREPARE %s AS %s" % (name, what)

    def cursor(self):
        self.cursors += 1
        return self.one(["DECLARE cu%d CURSOR FOR %s" % (self.cursors, self.select()), "CLOSE ALL", "FETCH 1 FROM cu%d" % (self.cursors - 1)])

    def setting(self):
        return self.one([
            "SET search_path = s1, public", "RESET search_path", "SET search_path = ''", 'SET search_path = "S 2", s1, public',
            "SET default_tablespace = ts1", "RESET default_tablespace", "SET enable_seqscan = off", "RESET enable_seqscan",
            "SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS ALL IMMEDIATE", "SET ROLE joe", "RESET ROLE", "RESET ROLE",
            "SET plan_cache_mode = force_generic_plan", "SET standard_conforming_strings = %s" % self.one(["off", "on"]),
            "SET check_function_bodies = off", "SET client_min_messages = %s" % self.one(["notice", "warning", "debug1"]),
            "SET quote_all_identifiers = %s" % self.one(["on", "off"]), "SET transform_null_equals = on", "RESET ALL"])

    def transaction(self):
        if self.status == "I":
            return self.one(["BEGIN", "BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE"])
        if self.status == "E":
            return self.one(["ROLLBACK", "ROLLBACK", "ROLLBACK TO a", "ROLLBACK TO b", "COMMIT"])
        return self.one(["COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT a", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO b",
                         "RELEASE a", "PREPARE TRANSACTION '@db'", "COMMIT AND CHAIN"])

    # ---- in one of the databases only ----

    def of_ours(self):
        table = self.of_kind("rrpm")
        index = self.one(table["indexes"]) if table and table["indexes"] else None
        choices = ["SET hybridindex.replace_btree = " + ("on" if self.pure else self.one(["on", "on", "off"]))]
        if self.cold:
            choices = ["LOAD 'hybridindex'"]
        if index and (self.status == "I" or self.chance(0.2)):
            name = quote(index["name"])
            choices += ["SELECT hyb.hybrid_convert(%s)" % name] * 2
            choices += ["SELECT hyb.hybrid_revert(%s)" % name] * (0 if self.pure else 2)
            choices += ["SELECT hyb.hybrid_merge(%s)" % name]
            if self.status == "I":
                choices += ["CALL hyb.hybrid_convert_concurrently(%s)" % name] * 2
                choices += ["CALL hyb.hybrid_revert_concurrently(%s)" % name, "CALL hyb.hybrid_revert_table(%s)" % quote(table["name"])] \
                    * (0 if self.pure else 1)
                choices += ["CALL hyb.hybrid_convert_table(%s)" % quote(table["name"]), "CALL hyb.hybrid_convert_schema('public')", "CALL hyb.hybrid_convert_schema('s1')"]
        return ("hybrid", self.one(choices))

    # ---- all ----

    def ddl(self, inside=False):
        return self.random.choices(
            [self.create_table, self.create_partition, lambda: self.create_index(inside), self.alter_table, self.alter_alone,
             lambda: self.alter_partition(inside), self.alter_index, self.drop, self.comment,
             lambda: self.maintain(inside), self.view, self.others],
            [8 if len(self.tables) < 6 else 3, 4, 8, 14, 3, 3, 4, 4 if len(self.tables) > 4 else 1, 2, 4, 4, 3])[0]()

    def wrapped(self):
        body = self.ddl(inside=True)
        if body.startswith("COPY"):
            return body
        how = self.random.randint(1, 5)
        if how == 1:
            return "DO $w$ BEGIN %s; END $w$" % body
        if how == 2:
            return "DO $w$ BEGIN EXECUTE %s; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%% %%', sqlstate, sqlerrm; END $w$" % quote(body)
        if how == 3:
            return "CREATE OR REPLACE FUNCTION public.work() RETURNS void LANGUAGE plpgsql AS $w$ BEGIN %s; END $w$; " \
                "SELECT public.work(); SELECT public.work()" % body
        if how == 4:
            return "/* CREATE INDEX USING hash */ %s; -- USING btree\n%s" % (body, self.ddl(inside=True))
        return "SET standard_conforming_strings = on; %s; %s" % (body, self.ddl(inside=True)) if self.chance(0.3) else \
            "%s; %s" % (self.insert() if self.chance(0.5) else self.select(), body)

    def statements(self):
        """The next ones."""
        if self.status == "E" and self.chance(0.6):
            return [("*", self.transaction())]
        r = self.random.random()
        if r < 0.40:
            text = self.ddl(self.status != "I")
            if self.chance(0.12):
                text = self.wrapped()
        elif r < 0.60:
            text = self.insert()
        elif r < 0.66:
            text = self.modify()
        elif r < 0.68:
            text = self.copy()
        elif r < 0.72:
            text = self.select()
        elif r < 0.76:
            text = self.prepare()
        elif r < 0.78:
            text = self.cursor()
        elif r < 0.82:
            text = self.setting()
        elif r < (0.90 if self.status != "I" else 0.86):
            text = self.transaction()
        elif r < 0.97:
            return [self.of_ours()]
        elif r < 0.985 and self.status == "I":
            return [("reconnect", self.one(["", "", "preloaded"]))]
        else:
            text = self.ddl(self.status != "I")
        if text.startswith("PREPARE TRANSACTION"):
            return [("*", text), ("*", self.one(["COMMIT", "ROLLBACK"]) + " PREPARED '@db'")]
        return [("*", text)]
