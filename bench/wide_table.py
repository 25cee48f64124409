#!/usr/bin/env python3
"""A table with a uuid as primary key and six more indexes, hybrid beside btree: CPU and
WAL of an inserted row, and of an update of an indexed column.

    HYBRID_SERVER=18-plain ./dev bench wide_table.py [--only NAMES] [--rows N]
        [--rounds N] [--slices N] [--seconds S] [--clients N] [--baseline]
        [--checkpoint | --default-checkpoints] [--at-once]

Orders of customers, fillfactor 90, with indexes on (customer, created), (email),
(status, created), (created), (total) and (seller).  Clients of pgbench run one
statement a transaction, prepared, on a million rows with synchronous_commit = off;
harness/paired.py says how slices of time take turns.  --only names one of:
* insert: a row of random values
* update: another status, by the key
With --baseline a table without indexes takes part in the inserts.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.  Without
--restart-command, which ./dev gives, shared_buffers stays as it is.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.paired import BTREE, HYBRID, NONE, Paired, Table, head, median, parse    # noqa: E402
from harness.server import BenchError                                                   # noqa: E402

INDEXES = ("customer, created", "email", "status, created", "created", "total", "seller")
# A row by its number, and five random numbers: of a customer below 100,000, a status
# below 8, a second below 2^26 (two years), a total in cents, and a seller below 5,000.
ROW = ("md5({i}::text)::uuid, {customer}, 'user.' || md5({i}::text) || '@example.org', {status}, "
       "timestamptz '2024-01-01 00:00:00+00' + {second} * interval '1 second', {cents} / 100.0, "
       "md5({seller}::text)::uuid, 'a note on order ' || {i}::text")
LOAD = "SELECT " + ROW.format(
    i="i", customer="(random() * 99999)::int8", status="(random() * 7)::int2", second="floor(random() * 67108864)",
    cents="(random() * 999999)::int", seller="floor(random() * 5000)") + " FROM generate_series(1, %d) i"
ORDERS = Table('id uuid NOT NULL, customer int8, email text COLLATE "C", status int2, created timestamptz, '
               'total numeric(10,2), seller uuid, note text', "id", LOAD, INDEXES, 90)
INSERT = """\\set i random(1000000000, 1000000000000000000)
\\set customer random(0, 99999)
\\set status random(0, 7)
\\set second random(0, 67108863)
\\set cents random(0, 999999)
\\set seller random(0, 4999)
INSERT INTO t VALUES (%s);
""" % ROW.format(i=":i", customer=":customer", status=":status", second=":second::int8", cents=":cents::int", seller=":seller")
UPDATE = """\\set i random(1, :rows)
\\set status random(0, 7)
UPDATE t SET status = :status WHERE id = md5(:i::text)::uuid;
"""
STATEMENTS = {"insert": ("insert of a row", INSERT), "update": ("update of status", UPDATE)}


def rates(name, rounds, options):
    """By the slices: merges that a slice has asked for, and that end after it, are left out."""
    seconds = options.seconds * options.slices
    rate = {method: median([[r[method].transactions / seconds] for r in rounds], 0) for method in (BTREE, HYBRID)}
    return "%s: btree %.0f a second, hybrid %.0f" % (name, rate[BTREE], rate[HYBRID])


def sizes(paired):
    found = [float(paired.server.value(
        "SELECT sum(pg_relation_size(indexrelid)) / 1e6 FROM pg_index WHERE indrelid = 't'::regclass", method.schema))
        for method in paired.methods]
    print("indexes at the end: btree %.1f MB, hybrid %.1f MB" % tuple(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", action="store_true", help="inserts into a table without indexes, too")
    options, wanted = parse(parser, list(STATEMENTS))
    lines = []
    with Paired(options, "wide") as paired:
        head()
        for name in wanted:
            methods = [*paired.methods, paired.heap] if options.baseline and name == "insert" else paired.methods
            paired.load(ORDERS, methods)
            rounds = paired.compare(*STATEMENTS[name], methods)
            if len(methods) > 2:
                each = [r[NONE].each() for r in rounds]
                print("| the same without indexes | %.1f | | | | %.0f | | | |" % (median(each, 0), median(each, 1)))
            if not options.at_once:
                lines.append(rates(STATEMENTS[name][0], rounds, options))
        print("", *lines, sep="\n")
        sizes(paired)


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        sys.exit("wide_table: %s" % error)
