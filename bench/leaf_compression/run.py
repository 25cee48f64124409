#!/usr/bin/env python3
"""Would general compression of whole leaves make an index smaller?

    bench/leaf_compression/run.py [--rows N] [--keys DIR]

For six sets of keys it prints the bytes an entry of a hybrid index that was just
built, and what LZ4 and zstd make of its leaves, one by one and eight together.  It
does the same for pages of the entries as they are, and of front coded ones.
compress.c does the work; it needs liblz4 and libzstd.  Runs where the server's files can be read; uses libpq's
variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness.samples import load_samples                # noqa: E402
from harness.server import Server                       # noqa: E402

SCHEMA = "bench_leaf_compression"
SETS = {
    "random int8": ("int8", "hashint8extended(i, 0)", "int8send(k)"),
    "uuid": ("uuid", "md5(i::text)::uuid", "uuid_send(k)"),
    "1000 distinct int4": ("int4", "(hashint8extended(i, 0) & 2147483647)::int % 1000", "int4send(k)"),
    "emails": ("text", None, "convert_to(k, 'UTF8')"),
    "package_names": ("text", None, "convert_to(k, 'UTF8')"),
    "paths": ("text", None, "convert_to(k, 'UTF8')"),
}


def measure(server, program, name, rows):
    kind, expression, send = SETS[name]
    source = ("SELECT %s FROM generate_series(1, %d) i ORDER BY hashint8extended(i, 1)" % (expression, rows) if expression
              else "SELECT s FROM %s ORDER BY hashtext(s) LIMIT %d" % (name, rows))
    server.psql("DROP TABLE IF EXISTS t; CREATE TABLE t (k %s%s); INSERT INTO t %s; "
                "CREATE INDEX t_k ON t USING hybrid (k); CHECKPOINT" %
                (kind, ' COLLATE "C"' if kind == "text" else "", source), schema=SCHEMA)
    path = Path(server.value("SHOW data_directory")) / server.value("SELECT pg_relation_filepath('t_k')", SCHEMA)
    with tempfile.TemporaryFile("w+") as entries:
        for key, tid in server.psql("SELECT encode(%s, 'hex'), ctid FROM t ORDER BY k, ctid" % send, schema=SCHEMA):
            entries.write("%s\t%s\n" % (key, tid))
        entries.seek(0)
        run = subprocess.run([program, path], stdin=entries, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    for line in run.stdout.splitlines():
        form, plain, *compressed = line.split("\t")
        print("| %s | %s | %s | %s |" % (name.replace("_", " "), form, plain, " | ".join(compressed)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300000)
    parser.add_argument("--keys", help="directory of emails.txt.gz, package_names.txt.gz, paths.txt.gz")
    args = parser.parse_args()
    server = Server(None)
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s; CREATE EXTENSION IF NOT EXISTS hybridindex" %
                (SCHEMA, SCHEMA))
    load_samples(server, SCHEMA, args.keys)
    with tempfile.TemporaryDirectory() as tmp:
        program = Path(tmp) / "compress"
        subprocess.run(["cc", "-O2", "-Wall", "-o", program, HERE / "compress.c", "-llz4", "-lzstd"], check=True)
        print("| keys | form | bytes an entry | LZ4 | LZ4 over 8 leaves | zstd | zstd over 8 |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
        for name in SETS:
            measure(server, program, name, args.rows)
    server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)


if __name__ == "__main__":
    main()
