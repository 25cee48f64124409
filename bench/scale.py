#!/usr/bin/env python3
"""What an insert writes as the index outgrows the memory of its dynamic stage.

Random inserts go into a btree and a hybrid index of the same table, at several
ratios of the hybrid index to hybridindex.dynamic_memory.  Printed is their WAL, and
what the model of docs/levels.md says.

    bench/scale.py [--ratios 1,4,16,64,256] [--memory 4MB] [--keys int8|uuid|points]
                   [--unique] [--inserts N] [--checkpoint N] [--no-btree|--no-hybrid]

With only one of the indexes, pages that go to files are printed too: what the server
writes up to the checkpoint at the end, without the growth of the heap.

Uses libpq's variables (PGHOST, PGPORT, PGDATABASE, ...); a superuser of a
server of its own, since checkpoints are made and settings changed, with
pg_walinspect.  A ratio's table is loaded, and its indexes are built.  Before the
measurement inserts change an eighth of it (--warm), so that levels are what they
are in the long run.
"""
import argparse
import subprocess
import sys
import time

KEYS = {
    # type, key of number i in a table of n rows, bytes an entry of the leaves
    "int8": ("int8", "hashint8extended({i}, 0)", 8.3),
    "uuid": ("uuid", "md5(({i})::text)::uuid", 15.2),
    "points": ("int8", "CASE WHEN {i} < {n} THEN hashint8extended({i}, 0) ELSE "
                       "((hashint8extended({i} % 500, 1) >> 24) << 24) + ({i} - {n}) / 500 END", 8.3),
}


def psql(sql):
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"], input=sql,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return done.stdout.strip()


def number(sql):
    return float(psql(sql) or 0)


def wal_of(begin, end):
    """Bytes by resource manager, full page images included."""
    rows = psql("SELECT \"resource_manager/record_type\", combined_size FROM pg_get_wal_stats('%s', '%s')" % (begin, end))
    return {line.split("|")[0]: int(line.split("|")[1]) for line in rows.splitlines()}


def written():
    """Pages that the server wrote to files, after a checkpoint."""
    time.sleep(1)
    return number("SELECT sum(writes) FROM pg_stat_io" if number("SHOW server_version_num") >= 170000 else
                  "SELECT buffers_checkpoint + buffers_clean + buffers_backend FROM pg_stat_bgwriter")


def insert(keys, table, first, count, batch, checkpoint, already, rows_each):
    """Insert numbers [first, first + count); a checkpoint after each `checkpoint` of them."""
    done = 0
    expression = KEYS[keys][1]
    while done < count:
        n = min(batch, count - done)
        if rows_each:
            psql("DO $$ BEGIN FOR i IN %d::bigint .. %d LOOP INSERT INTO %s VALUES (%s); END LOOP; END $$" %
                 (first + done, first + done + n - 1, table, expression.format(i="i", n=table_rows[table])))
        else:
            psql("INSERT INTO %s SELECT %s FROM generate_series(%d::bigint, %d) i" %
                 (table, expression.format(i="i", n=table_rows[table]), first + done, first + done + n - 1))
        if (already + done) // checkpoint != (already + done + n) // checkpoint:
            psql("CHECKPOINT")
        done += n


table_rows = {}


def model(levels, freezes, entry, log):
    """Bytes an insertion: docs/levels.md, "Why"."""
    return log + entry * {1: freezes, 2: 1.4 * freezes ** (1 / 2), 3: 1.9 * freezes ** (1 / 3)}[levels]


def megabytes(text):
    for unit, factor in (("kB", 1 / 1024), ("MB", 1), ("GB", 1024)):
        if text.endswith(unit):
            return float(text[:-2]) * factor
    sys.exit("memory with a unit, please: 4MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratios", default="1,4,16,64,256")
    parser.add_argument("--memory", default="4MB")
    parser.add_argument("--keys", choices=KEYS, default="int8")
    parser.add_argument("--unique", action="store_true")
    parser.add_argument("--inserts", type=int, default=1000000)
    parser.add_argument("--warm", type=float, default=0.125)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--checkpoint", type=int, default=1000000)
    parser.add_argument("--options", default="", help="storage parameters of the hybrid index")
    parser.add_argument("--many", action="store_true", help="statements of --batch rows instead of single ones")
    parser.add_argument("--no-btree", action="store_true")
    parser.add_argument("--no-hybrid", action="store_true")
    options = parser.parse_args()
    hybrid_too, btree_too = not options.no_hybrid, not options.no_btree
    memory = megabytes(options.memory)
    kind, expression, entry = KEYS[options.keys]

    psql("CREATE EXTENSION IF NOT EXISTS hybridindex; CREATE EXTENSION IF NOT EXISTS pg_walinspect;"
         "LOAD 'hybridindex'; ALTER SYSTEM SET hybridindex.dynamic_memory = '%s'; SELECT pg_reload_conf()" % options.memory)
    print("ratio  rows_M levels upper%  fill | bytes of WAL an insertion: hybrid (model)   btree  ratio  file | "
          "pages written per 1000, moved/merged, entries a merge, entries a leaf", flush=True)
    for ratio in (float(r) for r in options.ratios.split(",")):
        rows = int(ratio * memory * 2 ** 20 / entry)
        table = "scale_t"
        table_rows[table] = rows
        unique = "UNIQUE" if options.unique else ""
        psql("DROP TABLE IF EXISTS scale_t; CREATE TABLE scale_t (k %s); "
             "INSERT INTO scale_t SELECT %s FROM generate_series(1, %d) i; VACUUM ANALYZE scale_t;"
             "SET maintenance_work_mem = '1GB';"
             "%s %s" %
             (kind, expression.format(i="i", n=rows + 1), rows,
              "CREATE %s INDEX scale_h ON scale_t USING hybrid (k) %s;" % (unique, options.options) if hybrid_too else "",
              "CREATE %s INDEX scale_b ON scale_t USING btree (k);" % unique if btree_too else ""))
        warm = int(max(rows * options.warm, 0))
        insert(options.keys, table, rows + 1, warm, options.batch, options.checkpoint, 0, False)
        psql("CHECKPOINT")
        stats = ("SELECT static_entries, merged_entries, moved_entries, written_bytes / 8192, merges, leaf_pages, "
                 "levels, upper_entries, fill FROM hybrid_index_stats('scale_h')")
        heap = "SELECT pg_relation_size('scale_t') / 8192"
        before = [float(x) for x in psql(stats).split("|")] if hybrid_too else []
        pages = written() - number(heap)
        begin = psql("SELECT pg_current_wal_flush_lsn()")
        inserts = min(options.inserts, rows // 2)
        insert(options.keys, table, rows + 1 + warm, inserts, options.batch, options.checkpoint, 1, not options.many)
        psql("CHECKPOINT")
        end = psql("SELECT pg_current_wal_flush_lsn()")
        pages = written() - number(heap) - pages
        after = [float(x) for x in psql(stats).split("|")] if hybrid_too else []
        per = {name: size / inserts for name, size in wal_of(begin, end).items()}
        file = "%5.0f" % (8192 * pages / inserts) if hybrid_too != btree_too else "    -"
        report(ratio, rows, per, file, before, after, entry, 20 if options.many else 75)


def report(ratio, rows, per, file, before, after, entry, log):
    """A line of the table."""
    hybrid, btree = per.get("Generic", 0), per.get("Btree", 0)
    if not after:
        print("%5g %7.2f %19s | %42s %7.0f %6s %s |" % (ratio, rows / 1e6, "", "", btree, "", file), flush=True)
        return
    merged = max(after[1] - before[1], 1)
    freeze = merged / max(after[4] - before[4], 1)
    print("%5g %7.2f %6d %6.1f %5.3f | %34.0f (%5.0f) %7.0f %6.3f %s | %.1f, %.2f, %d, %.2f" %
          (ratio, rows / 1e6, after[6], 100 * after[7] / after[0], after[8], hybrid,
           model(int(after[6]), after[0] / freeze, entry, log), btree, hybrid / btree if btree else 0, file,
           1000 * (after[3] - before[3]) / merged, (after[2] - before[2]) / merged, freeze, freeze / after[5]),
          flush=True)


if __name__ == "__main__":
    main()
