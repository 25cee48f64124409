#!/usr/bin/env python3
"""Benchmarks of hybrid indexes beside btree, on the server that libpq's
variables (PGHOST, PGPORT, PGDATABASE, ...) name.

    bench/run.py quick              the headline table, in under three minutes
    bench/run.py tpcc ycsb ...      single workloads
    bench/run.py all                every workload

Needs a superuser (for CHECKPOINT and statistics), psql and pgbench in PATH;
matplotlib for charts.  Makes and drops the schemas bench_*.
"""
import argparse
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.report import Recorder                                     # noqa: E402
from harness.server import BENCH, BenchError, Method, Server            # noqa: E402
from harness.workloads import QUICK, WORKLOADS, YCSB, Config, Run, run_one    # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD",
                        help="quick, all, or of: " + ", ".join([*WORKLOADS, *YCSB]))
    parser.add_argument("--methods", default="btree hybrid",
                        help='what to compare with the first: "btree hybrid hybrid:merge_ratio=4 '
                             'hybrid:opclass=text_hope_ops" (an opclass is for text columns)')
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int, help="of one pgbench run")
    parser.add_argument("--clients", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--warehouses", type=int)
    parser.add_argument("--no-check", action="store_true", help="leave hybrid_index_check out")
    parser.add_argument("--output", help="directory of the results")
    parser.add_argument("--restart-command", help="restarts the server, if it is ours to restart")
    options = parser.parse_args()
    if not options.workloads:
        parser.print_help()
        sys.exit(2)
    for name in options.workloads:
        if name not in WORKLOADS and name not in YCSB and name not in ("quick", "all"):
            parser.error('unknown workload "%s": quick, all, %s' % (name, ", ".join([*WORKLOADS, *YCSB])))
    return options


def interrupt(number, frame):
    raise KeyboardInterrupt


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, interrupt)
    quick = "quick" in options.workloads
    names = [n for n in options.workloads if n in WORKLOADS or n in YCSB]
    if "all" in options.workloads:
        names = list(WORKLOADS)
    elif not names:
        names = list(QUICK)

    config = Config(quick)
    for name in ("rounds", "seconds", "clients", "rows", "warehouses"):
        if getattr(options, name) is not None:
            setattr(config, name, getattr(options, name))
    config.check = not options.no_check
    methods = [Method(text) for text in options.methods.split()]

    server = Server(options.restart_command)
    server.prepare()
    directory = options.output or BENCH / "results" / time.strftime("%Y%m%d-%H%M%S")
    recorder = Recorder(directory, methods, config, server)
    run = Run(server, methods, config, recorder)
    try:
        for name in names:
            run_one(name, run)
    except KeyboardInterrupt:
        recorder.say("interrupted: reporting what there is")
    finally:
        recorder.write()
        for method in methods:
            server.drop_schema(method)
        server.psql("DROP TABLE IF EXISTS public.raw; DROP VIEW IF EXISTS public.bench_written")

    print(recorder.headline())
    failed = [c for c in recorder.checks if not c["passed"]]
    print("\n%d checks, %d failed; details in %s/report.md" % (len(recorder.checks), len(failed), recorder.directory))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit("bench: %s" % error)
