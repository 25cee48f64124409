#!/usr/bin/env python3
"""Updates of an indexed column with few values: CPU and WAL a transaction.

    bench/indexed_updates.py [--rows N] [--values N] [--transactions N]
                             [--clients N] [--rounds N] [--variants btree,hybrid]

Tables with a primary key and an index on a column of --values values (1000).
Clients of pgbench set the column of random rows.  The variants take turns:
both indexes btree; only the other one hybrid (secondary); both hybrid.
Reported are CPU time of all processes of the server, merges included, WAL and
the size of the other index, and at the end medians and their ratios to btree.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.  Turn
autovacuum off, or it falls into some rounds.
"""
import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.server import Method, Server               # noqa: E402

SCHEMA = "bench_indexed_updates"
VARIANTS = {"btree": ("off", "btree"), "secondary": ("off", "hybrid"), "hybrid": ("on", "hybrid")}
LOAD = """
    DROP SCHEMA IF EXISTS {schema} CASCADE;
    CREATE SCHEMA {schema};
    LOAD 'hybridindex';
    SET hybridindex.replace_btree = {replace};
    CREATE TABLE {schema}.t (id int PRIMARY KEY, v int, filler text);
    INSERT INTO {schema}.t SELECT i, 1 + abs(hashint4(i)) % {values}, 'filler ' || i FROM generate_series(1, {rows}) i;
    CREATE INDEX t_v ON {schema}.t USING {am} (v);"""
UPDATE = "\\set id random(1, :rows)\n\\set v random(1, :values)\nUPDATE t SET v = :v WHERE id = :id;\n"
LSN = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"


def measure(server, options, variant, seed):
    replace, am = VARIANTS[variant]
    server.psql(LOAD.format(schema=SCHEMA, replace=replace, am=am, values=options.values, rows=options.rows))
    server.psql("VACUUM ANALYZE %s.t" % SCHEMA)
    server.psql("CHECKPOINT")
    cpu, wal = server.cpu_seconds(), float(server.value(LSN))
    done = server.pgbench(SCHEMA, [(UPDATE, 1)], 0, options.clients,
                          {"rows": options.rows, "values": options.values}, seed,
                          options.transactions // options.clients)[0]["transactions"]
    server.settle(Method(am))
    result = ((server.cpu_seconds() - cpu) * 1e6 / done, (float(server.value(LSN)) - wal) / done,
              float(server.value("SELECT pg_relation_size('%s.t_v')" % SCHEMA)) / 1e6)
    print("%-10s CPU %.1f us, WAL %.0f bytes a transaction, index %.1f MB" % ((variant,) + result), flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--values", type=int, default=1000)
    parser.add_argument("--transactions", type=int, default=300_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    options = parser.parse_args()
    variants = options.variants.split(",")
    server = Server()
    server.prepare()
    results = {variant: [] for variant in variants}
    for seed in range(1, options.rounds + 1):
        for variant in variants:
            results[variant].append(measure(server, options, variant, seed))
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)
    medians = {variant: [statistics.median(column) for column in zip(*results[variant])] for variant in variants}
    base = medians.get("btree", medians[variants[0]])
    for variant in variants:
        print("%-10s of %s: CPU %.2f, WAL %.2f, index %.2f" % (
            (variant, "btree" if "btree" in medians else variants[0]) +
            tuple(value / of for value, of in zip(medians[variant], base))))


if __name__ == "__main__":
    main()
