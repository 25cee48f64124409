#!/usr/bin/env python3
"""Many small indexes, touched in turn by one session, hybrid beside btree:
buffers and time an operation, memory of the backend and shared memory, file
bytes an index.

    ./dev many-indexes                                  10,000 tables, 30,000 indexes of each method
    ./dev many-indexes --tables 1000 --memory 64MB      fewer, at one setting of hybridindex.dynamic_memory

Each table has a bigint primary key, a unique uuid and a text column with an
index.  "few" is the same with ten tables in use.  Buffers are those of the
execution of a statement (EXPLAIN), the table's included; "first" is what a
session does with indexes that it has not used yet.
"""
import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.server import BenchError, Method, Server                   # noqa: E402

FEW = 10
ROWS = 5                    # of a table when its indexes are built

# The tables of one method, with COMMIT so that few locks are held.
CREATE = """
CREATE SCHEMA {schema};
CREATE PROCEDURE {schema}.make(tables int) LANGUAGE plpgsql AS $$
BEGIN
    FOR t IN 1 .. tables LOOP
        EXECUTE format('CREATE TABLE {schema}.t%s (id int8 NOT NULL, u uuid NOT NULL, s text NOT NULL)', t);
        EXECUTE format('INSERT INTO {schema}.t%s SELECT i, md5(i::text)::uuid, md5(i::text) FROM generate_series(1, {rows}) i', t);
        EXECUTE format('CREATE UNIQUE INDEX t%1$s_id ON {schema}.t%1$s USING {am} (id)', t);
        EXECUTE format('CREATE UNIQUE INDEX t%1$s_u ON {schema}.t%1$s USING {am} (u)', t);
        EXECUTE format('CREATE INDEX t%1$s_s ON {schema}.t%1$s USING {am} (s COLLATE "C")', t);
        IF t % 50 = 0 THEN COMMIT; END IF;
    END LOOP;
END $$;
CALL {schema}.make({tables});
"""

FUNCTIONS = """
CREATE TABLE public.many_result (method text, setting text, step text, tables int,
    operations int, average numeric, most int, us numeric);

-- buffers that the execution of a statement takes
CREATE FUNCTION public.many_buffers(statement text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) ' || statement INTO plan;
    RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::int + (plan->0->'Plan'->>'Shared Read Blocks')::int;
END $$;

CREATE FUNCTION public.many_statement(kind text, schema text, t int, k int) RETURNS text LANGUAGE sql AS $$
    SELECT CASE kind
        WHEN 'id' THEN format('SELECT id FROM %I.t%s WHERE id = %s', schema, t, k)
        WHEN 'uuid' THEN format('SELECT id FROM %I.t%s WHERE u = %L', schema, t, md5(k::text)::uuid)
        WHEN 'text' THEN format('SELECT id FROM %I.t%s WHERE s = %L COLLATE "C"', schema, t, md5(k::text))
        WHEN 'insert' THEN format('INSERT INTO %I.t%s VALUES (%s, %L, %L)', schema, t, k, md5(k::text)::uuid, md5(k::text))
    END
$$;

-- A step over all tables in turn.  What EXPLAIN counts is not timed: a read is
-- done twice for that, an insert with another key.
CREATE PROCEDURE public.many_step(method text, setting text, name text, schema text, tables int, kinds text[], k int)
LANGUAGE plpgsql AS $$
DECLARE
    total int8 := 0;
    most int := 0;
    n int := 0;
    took float8 := 0;
    start timestamptz;
    found int;
    statement text;
    kind text;
BEGIN
    FOR t IN 1 .. tables LOOP
        FOREACH kind IN ARRAY kinds LOOP
            found := public.many_buffers(public.many_statement(kind, schema, t, k));
            total := total + found;
            most := greatest(most, found);
            n := n + 1;
        END LOOP;
        IF t % 50 = 0 THEN COMMIT; END IF;
    END LOOP;
    COMMIT;
    FOR t IN 1 .. tables LOOP
        FOREACH kind IN ARRAY kinds LOOP
            statement := public.many_statement(kind, schema, t, CASE kind WHEN 'insert' THEN k + 1 ELSE k END);
            start := clock_timestamp();
            EXECUTE statement;
            took := took + extract(epoch FROM clock_timestamp() - start);
        END LOOP;
        IF t % 50 = 0 THEN COMMIT; END IF;
    END LOOP;
    COMMIT;
    INSERT INTO public.many_result VALUES (method, setting, name, tables, n, total::numeric / n, most, took * 1e6 / n);
END $$;
"""

# Rows with random keys, in one statement for each table.
GROW = """
DO $$
BEGIN
    FOR t IN 1 .. {tables} LOOP
        EXECUTE format('INSERT INTO {schema}.t%s SELECT {first} + hashint4(i), md5((-i)::text)::uuid, md5((-i)::text) '
            'FROM generate_series({first} + 1, {first} + {rows}) i', t);
        IF t % 50 = 0 THEN COMMIT; END IF;
    END LOOP;
END $$
"""

# What a session does, and what memory it has then.
SESSION = """
SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off; SET plan_cache_mode = force_custom_plan;
CALL public.many_step('{am}', '{setting}', '{prefix}reads, first', '{schema}', {tables}, '{{id, uuid, text}}', 3);
CALL public.many_step('{am}', '{setting}', '{prefix}reads', '{schema}', {tables}, '{{id, uuid, text}}', 4);
CALL public.many_step('{am}', '{setting}', '{prefix}inserts, first', '{schema}', {tables}, '{{insert}}', {k});
CALL public.many_step('{am}', '{setting}', '{prefix}inserts', '{schema}', {tables}, '{{insert}}', {k} + 2);
CALL public.many_step('{am}', '{setting}', '{prefix}reads of old rows', '{schema}', {tables}, '{{id, uuid, text}}', 4);
CALL public.many_step('{am}', '{setting}', '{prefix}reads of new rows', '{schema}', {tables}, '{{id, uuid, text}}', {k} + 1);
SELECT CASE WHEN ident LIKE 't%%\\_%%' AND name = 'index info' THEN 'index info' WHEN name LIKE 'hybrid%%' THEN name
        WHEN name IN ('TopMemoryContext', 'CacheMemoryContext', 'relation rules') THEN name ELSE 'other' END AS context,
    sum(used_bytes), sum(total_bytes)
FROM pg_backend_memory_contexts GROUP BY 1 ORDER BY 3 DESC;
"""


class Many:
    def __init__(self, server, tables, grow):
        self.server, self.tables, self.grow = server, tables, grow
        self.grown = 0
        self.methods = [Method("btree"), Method("hybrid")]
        self.k = 1000                   # next key to insert

    def create(self):
        self.server.psql("CREATE EXTENSION hybridindex")
        self.server.psql(FUNCTIONS)
        for method in self.methods:
            self.server.psql(CREATE.format(schema=method.schema, am=method.am, tables=self.tables, rows=ROWS))
        self.server.psql("VACUUM")

    def session(self, method, setting, tables, prefix):
        """Memory contexts of a session that has gone over the tables."""
        self.k += 10
        rows = self.server.psql(SESSION.format(am=method.am, setting=setting, prefix=prefix, schema=method.schema,
                                               tables=tables, k=self.k))
        return {name: (int(used), int(total)) for name, used, total in rows}

    def setting(self, setting):
        self.server.restart(**{"hybridindex.dynamic_memory": setting})
        memory = {}
        for method in self.methods:
            self.session(method, setting, FEW, "")
            memory[method.am, FEW] = self.session(method, setting, FEW, "warm: ")
            memory[method.am, self.tables] = self.session(method, setting, self.tables, "")
            if self.grow:
                self.server.psql(GROW.format(schema=method.schema, tables=self.tables, rows=self.grow,
                                             first=self.grown))
                for i in range(1, 4):
                    self.session(method, setting, FEW, "grown, %d: " % i)
                    self.session(method, setting, self.tables, "grown, %d: " % i)
        self.grown += self.grow
        yield "\n### dynamic_memory = %s, %d tables\n" % (setting, self.tables)
        yield from self.operations(setting)
        yield from self.backend_memory(memory)
        yield "\nshared memory: " + ", ".join("%s %s" % tuple(row) for row in self.server.psql(
            "SELECT key, value FROM hybrid_memory m, json_each_text(to_json(m))"))
        yield "merges: " + self.server.value("SELECT sum(merges) FROM hybrid_indexes")

    def operations(self, setting):
        rows = self.server.psql("""
            SELECT step, method, tables, round(average, 2), most, round(us, 1) FROM public.many_result
            WHERE setting = '%s'""" % setting)
        found = {(step, method, int(tables)): (average, most, us) for step, method, tables, average, most, us in rows}
        yield "| buffers an operation: average (most), us | btree, few | btree | hybrid, few | hybrid |"
        yield "| --- | ---: | ---: | ---: | ---: |"
        for step in dict.fromkeys(row[0] for row in rows):
            if step.startswith("warm: "):
                continue
            cells = []
            for method in ("btree", "hybrid"):
                for tables in (FEW, self.tables):
                    cells.append("%s (%s), %s" % found[step, method, tables])
            yield "| %s | %s |" % (step, " | ".join(cells))

    def backend_memory(self, memory):
        yield "\n| bytes of the backend for each index more (in use) | btree | hybrid | difference |"
        yield "| --- | ---: | ---: | ---: |"
        indexes = 3 * (self.tables - FEW)
        names = dict.fromkeys(name for m in memory.values() for name in m)
        sums = {}
        for name in names:
            cells = []
            for am in ("btree", "hybrid"):
                used, total = (memory[am, self.tables].get(name, (0, 0))[i] - memory[am, FEW].get(name, (0, 0))[i]
                               for i in (0, 1))
                cells.append((total / indexes, used / indexes))
                sums[am] = tuple(a + b for a, b in zip(sums.get(am, (0, 0)), cells[-1]))
            yield "| %s | %.0f (%.0f) | %.0f (%.0f) | %.0f (%.0f) |" % (
                name, *cells[0], *cells[1], *(h - b for h, b in zip(cells[1], cells[0])))
        yield "| **all** | %.0f (%.0f) | %.0f (%.0f) | **%.0f** (%.0f) |" % (
            *sums["btree"], *sums["hybrid"], *(h - b for h, b in zip(sums["hybrid"], sums["btree"])))

    def sizes(self):
        rows = self.server.psql("""
            SELECT right(relname, -strpos(relname, '_')), amname, round(avg(pg_relation_size(c.oid)))
            FROM pg_class c JOIN pg_am a ON a.oid = relam AND amtype = 'i' WHERE relnamespace::regnamespace::text LIKE 'bench%'
            GROUP BY 1, 2 ORDER BY 1, 2""")
        yield "\nfile bytes an index: " + ", ".join("%s %s %s" % tuple(row) for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10000, help="of each method (10000)")
    parser.add_argument("--memory", action="append", help="hybridindex.dynamic_memory (64MB, then 4MB)")
    parser.add_argument("--grow", type=int, default=0, metavar="ROWS",
                        help="then insert so many rows into each table, and go over them three times more")
    parser.add_argument("--restart-command", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    server = Server(options.restart_command)
    server.restart(max_locks_per_transaction=512, autovacuum="off", shared_buffers="2GB",
                   shared_preload_libraries="hybridindex")
    many = Many(server, options.tables, options.grow)
    many.create()
    for line in many.sizes():
        print(line)
    for setting in options.memory or ["64MB", "4MB"]:
        for line in many.setting(setting):
            print(line, flush=True)
    for line in many.sizes():
        print(line)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit("many_indexes: %s" % error)
