#!/usr/bin/env python3
"""Draws the figures of the documents: docs/pictures/size, wal, cold_scans, latency.

    bench/pictures.py             from tables of README.md and docs/benchmarks.md, and
                                  from docs/pictures/latency.csv
    bench/pictures.py --latency   measures latency.csv first, four minutes: 4 clients
                                  insert random uuids into a unique index, a row a
                                  transaction, after a million rows

Needs matplotlib.  --latency uses libpq's variables (PGHOST, PGPORT, ...); a superuser.
The pictures have no background, and colours that are seen on white and on black.
"""
import argparse
import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.server import Server                       # noqa: E402

TOP = Path(__file__).resolve().parent.parent
PICTURES = TOP / "docs" / "pictures"
COLOURS = {"btree": "#8c959f", "hybrid": "#2f81f7", "hybrid at rest": "#79b8ff"}
INK = "#7d8590"
SCHEMA = "bench_pictures"
SECONDS = 90
INSERT = "INSERT INTO %s (u) VALUES (gen_random_uuid());"


def table_below(document, mark):
    """The first table after a mark in a document, as a list of rows of cells."""
    lines = (TOP / document).read_text(encoding="utf-8").split(mark, 1)[1].splitlines()
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip(" *") for cell in line.strip("|").split("|")])
        elif rows:
            break
    return [rows[0]] + rows[2:]


def number(cell):
    return float(cell.replace(",", ""))


def axes_of(plt, width, height, title):
    figure, axes = plt.subplots(figsize=(width, height))
    axes.set_title(title, fontsize=10, color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(INK)
    axes.tick_params(colors=INK, labelsize=8)
    return figure, axes


def save(plt, figure, axes, name, legend=True):
    if legend:
        axes.legend(fontsize=8, frameon=False, labelcolor=INK)
    figure.tight_layout()
    figure.savefig(PICTURES / (name + ".svg"), transparent=True, metadata={"Date": None})
    plt.close(figure)


def size(plt):
    head, *rows = table_below("README.md", "### Size")
    rows = [row for row in rows if row[1]]
    figure, axes = axes_of(plt, 7.4, 3.2, "Bytes an entry, right after the load and at rest")
    for i, column in enumerate(COLOURS):
        axes.bar([x + 0.27 * i for x in range(len(rows))], [number(row[head.index(column)]) for row in rows], 0.25,
                 label=column, color=COLOURS[column])
    axes.set_xticks([x + 0.27 for x in range(len(rows))])
    axes.set_xticklabels([row[0].replace(" (", "\n(") for row in rows], rotation=20)
    save(plt, figure, axes, "size")


def wal(plt):
    head, *rows = table_below("docs/benchmarks.md", "**Levels.**")
    figure, axes = axes_of(plt, 4.6, 2.8, "WAL for each random insert, bytes")
    for method in ("btree", "hybrid"):
        axes.plot([number(row[0]) for row in rows], [number(row[head.index(method)]) for row in rows], marker="o",
                  label=method, color=COLOURS[method])
    axes.set_xscale("log", base=4)
    axes.set_xticks([number(row[0]) for row in rows])
    axes.set_xticklabels([row[0] for row in rows])
    axes.set_xlabel("size of the index by memory", fontsize=8, color=INK)
    axes.set_ylim(bottom=0)
    save(plt, figure, axes, "wal")


def cold_scans(plt):
    head, *rows = table_below("docs/benchmarks.md", "**Cold scans**")
    figure, axes = axes_of(plt, 4.6, 2.8, "Cold scans: rate by that of btree")
    axes.bar(head[1:], [number(cell) for cell in rows[0][1:]], 0.5, color=COLOURS["hybrid"])
    axes.axhline(1, color=COLOURS["btree"], linewidth=1)
    axes.set_xlabel("rows of a scan", fontsize=8, color=INK)
    save(plt, figure, axes, "cold_scans", legend=False)


def latency(plt):
    figure, axes = axes_of(plt, 7.4, 2.8, "Single-row inserts of random uuids while merges run: p99 of each second, ms")
    with open(PICTURES / "latency.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for method in ("btree", "hybrid"):
        axes.plot([int(row["second"]) for row in rows], [float(row[method] or "nan") for row in rows], label=method,
                  color=COLOURS[method], linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds", fontsize=8, color=INK)
    save(plt, figure, axes, "latency")


def measure_latency():
    server = Server()
    server.prepare()
    timelines = {}
    server.psql("DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s" % (SCHEMA, SCHEMA))
    try:
        for method in ("btree", "hybrid"):
            server.psql("CREATE TABLE {0} (u uuid); CREATE UNIQUE INDEX {0}_u ON {0} USING {0} (u);"
                        "INSERT INTO {0} SELECT gen_random_uuid() FROM generate_series(1, 1000000); CHECKPOINT"
                        .format(method), schema=SCHEMA)
            metrics, timeline = server.pgbench(SCHEMA, [(INSERT % method, 1)], SECONDS, 4, {}, 1)
            timelines[method] = {second: "%.3f" % p99 for second, _, _, p99 in timeline[1:-1]}  # whole seconds only
            print("%s: %.0f transactions a second, p99 %.2f ms" % (method, metrics["tps"], metrics["p99"]))
    finally:
        server.psql("DROP SCHEMA %s CASCADE" % SCHEMA)
    with open(PICTURES / "latency.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["second", "btree", "hybrid"])
        for second in range(1, max(map(max, timelines.values())) + 1):
            # empty: no transaction ended in this second
            writer.writerow([second, *(timelines[method].get(second, "") for method in ("btree", "hybrid"))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", action="store_true")
    if parser.parse_args().latency:
        measure_latency()
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "hybridindex"})
    import matplotlib.pyplot as plt
    for draw in (size, wal, cold_scans, latency):
        draw(plt)


if __name__ == "__main__":
    main()
