#!/usr/bin/env python3
"""Unique random keys into an index larger than memory: leaves read for them.

    bench/unique_inserts.py [--rows N] [--inserts N] [--memory MB --restart-command CMD]
                            [--variants btree,none,auto]

Tables of random uuids, one for each variant: a btree index, hybrid ones with
filter = none and with filter = auto.  Then uuids are inserted, a hundred a
transaction, and keys looked up that are there, and that are not; after a
warm-up of a tenth.  Reported are rows and look-ups a second, and index blocks
that were not in shared_buffers for each of them.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.  Indexes
should be some eight times shared_buffers, or, with --memory (root only), the
memory of the control group that the server is restarted in by
--restart-command, page cache included.
"""
import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.limit import try_limit                     # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_unique"
INDEXES = {
    "btree": "btree (u)",
    "none": "hybrid (u) WITH (filter = none)",
    "auto": "hybrid (u)",
    "points": "hybrid (u) WITH (filter = points)",
}
INSERT = """DO $$ BEGIN FOR i IN 1 .. %d LOOP
    INSERT INTO t_%s SELECT gen_random_uuid() FROM generate_series(1, 100); COMMIT; END LOOP; END $$"""
LOOKUP = """SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT count((SELECT 1 FROM t_%s t WHERE t.u = q.u)) FROM %s q"""


def measure(server, variant, statement, count):
    """Statements a second, and index blocks read for each."""
    read = "SELECT idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = 'i_%s'" % variant
    time.sleep(1.5)
    before = int(server.value(read, SCHEMA))
    start = time.time()
    server.psql(statement, schema=SCHEMA)
    seconds = time.time() - start
    time.sleep(1.5)
    return count / seconds, (int(server.value(read, SCHEMA)) - before) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6000000)
    parser.add_argument("--inserts", type=int, default=200000)
    parser.add_argument("--lookups", type=int, default=50000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--variants", default="btree,none,auto")
    parser.add_argument("--memory", type=int)
    parser.add_argument("--restart-command")
    args = parser.parse_args()
    server = Server(args.restart_command)
    variants = args.variants.split(",")

    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    for variant in variants:
        server.psql("CREATE TABLE t_%s AS SELECT gen_random_uuid() AS u FROM generate_series(1, %d);"
                    "CREATE UNIQUE INDEX i_%s ON t_%s USING %s; VACUUM ANALYZE t_%s;"
                    "CREATE TABLE q_%s AS SELECT u FROM (SELECT u FROM t_%s TABLESAMPLE system (5)) s ORDER BY random() LIMIT %d" %
                    (variant, args.rows, variant, variant, INDEXES[variant], variant, variant, variant, args.lookups),
                    schema=SCHEMA)
    server.psql("CREATE TABLE absent AS SELECT gen_random_uuid() AS u FROM generate_series(1, %d)" % args.lookups, schema=SCHEMA)
    if args.memory:
        server.limit = try_limit(args.memory)
        if server.limit is None:
            sys.exit("no control group can be made here")
        server.restart()
    print("| index | MB | filters, MB | round | inserts/s | blocks | present/s | blocks | absent/s | blocks |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    try:
        for variant in variants:
            server.psql(INSERT % (args.inserts // 1000, variant), schema=SCHEMA)
        for round in range(args.rounds):
            for variant in variants:
                inserts = measure(server, variant, INSERT % (args.inserts // 100, variant), args.inserts)
                present = measure(server, variant, LOOKUP % (variant, "q_" + variant), args.lookups)
                absent = measure(server, variant, LOOKUP % (variant, "absent"), args.lookups)
                size = int(server.value("SELECT pg_relation_size('i_%s')" % variant, SCHEMA))
                filters = 0 if variant == "btree" else int(server.value(
                    "SELECT filter_bytes FROM hybrid_index_stats('i_%s')" % variant, SCHEMA))
                print("| %s | %.0f | %.1f | %d | %.0f | %.3f | %.0f | %.3f | %.0f | %.3f |" %
                      ((variant, size / 1e6, filters / 1e6, round + 1) + inserts + present + absent), flush=True)
    finally:
        if server.limit is not None:
            server.limit.remove()
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
