#!/usr/bin/env python3
"""Updates of one indexed column of a table with many indexes: CPU, WAL, and growth.

    HYBRID_SERVER=18-plain ./dev bench hot_updates.py [--rows N] [--transactions N]
        [--clients N] [--parts N] [--rounds N] [--variants NAMES]
    HYBRID_SERVER=18-plain ./dev bench hot_updates.py --reads [--growth MINUTES]
        [--autovacuum on|off] [--rows N] [--rounds N]

A table with a uuid as primary key, eight more indexes, and one on last_seen, which
clients of pgbench set by the key (fillfactor 85).  Variants take turns:
* btree: all indexes are btree
* hot: that on last_seen is hybrid_hot
* hybrid: the same, and the others are hybrid
* none: there is no index on last_seen

Each variant runs --parts parts of --transactions.  Reported for each part are CPU time of
all processes of the server, merges included, WAL, and the share of HOT updates.  So are
the sizes of last_seen's index and of the others.  At the end come medians of the rounds'
last parts, and their ratios to btree.

With --growth, instead: sizes of hot's index on last_seen, minute by minute.

With --reads, instead: CPU time of statements by hot's index, and by one of hybrid that is
made of the same table for it.  Both take turns --rounds times.  The statements are a
look-up, 100 rows in order, a bitmap scan of 5,000 rows, and ORDER BY last_seen DESC
LIMIT 20.  With --growth too, also after these minutes of updates.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.  With
--restart-command, which ./dev gives, the server has 1 GB of shared buffers, and no
checkpoints of its own; autovacuum is off except for --growth.
"""
import argparse
import contextlib
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.server import Method, Server               # noqa: E402

SCHEMA = "bench_hot_updates"
VARIANTS = {"btree": ("btree", "btree"), "hot": ("btree", "hybrid_hot"),
            "hybrid": ("hybrid", "hybrid_hot"), "none": ("btree", None)}
COLUMNS = ("a", "b", "c", "d", "e", "f", "g", "h")
LOAD = """
    DROP SCHEMA IF EXISTS {schema} CASCADE;
    CREATE SCHEMA {schema};
    SET search_path = {schema}, public;
    CREATE TABLE t (id uuid NOT NULL, a int8, b int8, c text COLLATE "C", d int4, e timestamptz, f numeric, g uuid, h int4,
        last_seen timestamptz, note text) WITH (fillfactor = 85);
    INSERT INTO t SELECT md5(i::text)::uuid, hashint8extended(i, 1), i, 'user.' || md5((i * 7)::text), abs(hashint4(i)) % 1000,
        timestamptz '2024-01-01 00:00:00+00' + abs(hashint4(i + 1)) % 60000000 * interval '1 second',
        abs(hashint4(i + 2)) % 1000000 / 100.0, md5((abs(hashint4(i + 3)) % 5000)::text)::uuid, abs(hashint4(i + 4)) % 7,
        timestamptz '2024-01-01 00:00:00+00' + abs(hashint4(i + 5)) * interval '0.03 seconds', 'a note on ' || i
        FROM generate_series(1, {rows}) i;
    CREATE UNIQUE INDEX t_id ON t USING {others} (id);"""
# The time as an application would take it ascends; the column's values lie at random.
UPDATE = """\\set i random(1, :rows)
\\set second random(0, 60000000)
UPDATE t SET last_seen = timestamptz '2024-01-01 00:00:00+00' + :second * interval '1 second'
    WHERE id = md5(:i::text)::uuid;
"""
LSN = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
SIZES = """
    SELECT coalesce(sum(pg_relation_size(indexrelid)) FILTER (WHERE indexrelid::regclass::text ~ 'last_seen'), 0),
        sum(pg_relation_size(indexrelid)) FILTER (WHERE indexrelid::regclass::text !~ 'last_seen')
    FROM pg_index WHERE indrelid = '%s.t'::regclass""" % SCHEMA
HOT = """
    SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE schemaname = '%s' AND relname = 't'""" % SCHEMA


# Statements, settings, and the text.  {low} is a value that a row has, {high} one of some
# 5,000 rows later.  They are constants: an expression would be computed for each row that
# the executor compares.
READS = {
    "look-up": (200_000, "", "SELECT note FROM t WHERE last_seen = '{low}'"),
    "100 in order": (20_000, "", "SELECT note FROM t WHERE last_seen >= '{low}' ORDER BY last_seen LIMIT 100"),
    "bitmap": (1000, "-c enable_indexscan=off", "SELECT count(note) FROM t WHERE last_seen BETWEEN '{low}' AND '{high}'"),
    "last 20": (40_000, "", "SELECT note FROM t ORDER BY last_seen DESC LIMIT 20"),
}
KEYS = 50           # one script each, which each client prepares once


def load(server, rows, variant):
    others, own = VARIANTS[variant]
    server.psql(LOAD.format(schema=SCHEMA, rows=rows, others=others))
    for column in COLUMNS:
        server.psql("CREATE INDEX t_%s ON %s.t USING %s (%s)" % (column, SCHEMA, others, column))
    if own:
        server.psql("CREATE INDEX t_last_seen ON %s.t USING %s (last_seen)" % (SCHEMA, own))
    server.psql("VACUUM ANALYZE %s.t" % SCHEMA)
    server.psql("CHECKPOINT")


def numbers(server, query):
    return [float(value) for value in server.psql(query)[0]]


def measure_part(server, options, variant, seed):
    """CPU in us and WAL in bytes a transaction, the share of HOT updates, and two sizes in MB."""
    hot_before, updates_before = numbers(server, HOT)
    cpu, wal = server.cpu_seconds(), float(server.value(LSN))
    done = server.pgbench(SCHEMA, [(UPDATE, 1)], 0, options.clients, {"rows": options.rows}, seed,
                          options.transactions // options.clients)[0]["transactions"]
    server.settle(Method("hybrid"))
    cpu, wal = server.cpu_seconds() - cpu, float(server.value(LSN)) - wal
    hot, updates = numbers(server, HOT)
    own, others = numbers(server, SIZES)
    result = (cpu * 1e6 / done, wal / done, (hot - hot_before) / max(updates - updates_before, 1), own / 1e6, others / 1e6)
    print("%-8s CPU %.1f us, WAL %.0f bytes, HOT %.2f; last_seen %.1f MB, others %.1f MB" % ((variant,) + result),
          flush=True)
    return result


def compare(server, options):
    variants = options.variants.split(",")
    results = {variant: [] for variant in variants}
    for seed in range(1, options.rounds + 1):
        for variant in variants:
            load(server, options.rows, variant)
            for part in range(options.parts):
                result = measure_part(server, options, variant, seed * 100 + part)
            results[variant].append(result)
    medians = {variant: [statistics.median(column) for column in zip(*results[variant])] for variant in variants}
    base = medians.get("btree", medians[variants[0]])
    for variant in variants:
        found = medians[variant]
        print("%-8s CPU %.1f us (%.2f), WAL %.0f bytes (%.2f), HOT %.2f; last_seen %.1f MB, others %.1f MB" % (
            variant, found[0], found[0] / base[0], found[1], found[1] / base[1], *found[2:]))


@contextlib.contextmanager
def settings(text):
    """Of the sessions that are begun meanwhile."""
    before = os.environ.get("PGOPTIONS", "")
    os.environ["PGOPTIONS"] = "%s %s" % (before, text)
    try:
        yield
    finally:
        os.environ["PGOPTIONS"] = before


def read_cpu(server, options, index, seed):
    """CPU in us of each kind of statement; each has to use the index."""
    keys = server.psql("""
        SELECT last_seen, last_seen + (SELECT (max(last_seen) - min(last_seen)) / count(*) * 5000 FROM {0}.t)
        FROM {0}.t TABLESAMPLE BERNOULLI (10) REPEATABLE ({1}) LIMIT {2}""".format(SCHEMA, seed, KEYS))
    result = []
    for count, how, statement in READS.values():
        with settings("-c enable_seqscan=off -c jit=off -c max_parallel_workers_per_gather=0 " + how):
            texts = sorted({statement.format(low=low, high=high) for low, high in keys})
            scripts = [(text + ";\n", 1) for text in texts]
            plan = "\n".join(row[0] for row in server.psql("EXPLAIN " + texts[0], schema=SCHEMA))
            if index not in plan:
                sys.exit("%s is not used:\n%s" % (index, plan))
            server.pgbench(SCHEMA, scripts, 0, options.clients, {}, seed, 100)
            cpu = server.cpu_seconds()
            done = server.pgbench(SCHEMA, scripts, 0, options.clients, {}, seed, count // options.clients)[0]["transactions"]
            result.append((server.cpu_seconds() - cpu) * 1e6 / done)
    return result


def compare_reads(server, options, when):
    """The index of hybrid_hot, and one of hybrid, of the same table."""
    found = {"hybrid_hot": [], "hybrid": []}
    server.psql("VACUUM ANALYZE %s.t" % SCHEMA)
    server.settle(Method("hybrid"))
    for seed in range(1, options.rounds + 1):
        found["hybrid_hot"].append(read_cpu(server, options, "t_last_seen", seed))
        server.psql("CREATE INDEX t_other ON %s.t USING hybrid (last_seen)" % SCHEMA)
        found["hybrid"].append(read_cpu(server, options, "t_other", seed))
        server.psql("DROP INDEX %s.t_other" % SCHEMA)
    medians = {method: [statistics.median(column) for column in zip(*rounds)] for method, rounds in found.items()}
    for name, hybrid, hot in zip(READS, medians["hybrid"], medians["hybrid_hot"]):
        print("%s, %s: hybrid %.1f us, hybrid_hot %.1f us (%.2f)" % (when, name, hybrid, hot, hot / hybrid), flush=True)


def grow(server, options):
    load(server, options.rows, "hot")
    size = "SELECT pg_relation_size('%s.t_last_seen') / 1e6, " % SCHEMA
    entries = "static_entries, dynamic_entries, merges FROM hybrid_index_stats('%s.t_last_seen')" % SCHEMA
    server.psql("CREATE INDEX t_btree ON {0}.t (last_seen); DROP INDEX {0}.t_last_seen".format(SCHEMA))
    fresh = float(server.value("SELECT pg_relation_size('%s.t_btree') / 1e6" % SCHEMA))
    server.psql("CREATE INDEX t_last_seen ON {0}.t USING hybrid_hot (last_seen); DROP INDEX {0}.t_btree".format(SCHEMA))
    print("%d rows: btree, fresh, takes %.2f MB" % (options.rows, fresh))
    for minute in range(1, options.growth + 1):
        done = server.pgbench(SCHEMA, [(UPDATE, 1)], 60, options.clients, {"rows": options.rows}, minute)[0]["transactions"]
        print("minute %d, %d updates: %.2f MB, %.0f static and %.0f dynamic entries, %.0f merges" % (
            (minute, done) + tuple(numbers(server, size + entries))), flush=True)
    if options.reads:
        compare_reads(server, options, "after %d minutes" % options.growth)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--transactions", type=int, default=400_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--parts", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--growth", type=int, default=0, metavar="MINUTES")
    parser.add_argument("--reads", action="store_true")
    parser.add_argument("--autovacuum", choices=("on", "off"), help="for --growth: on by default")
    parser.add_argument("--restart-command", help=argparse.SUPPRESS)
    options = parser.parse_args()
    server = Server(options.restart_command)
    server.prepare()
    if options.restart_command:
        server.restart(shared_buffers="1GB", max_wal_size="20GB", checkpoint_timeout="1h", synchronous_commit="off",
                       autovacuum=options.autovacuum or ("on" if options.growth > 0 else "off"))
    if options.reads:
        load(server, options.rows, "hot")
        compare_reads(server, options, "fresh")
    if options.growth > 0:
        grow(server, options)
    elif not options.reads:
        compare(server, options)
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
