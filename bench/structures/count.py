#!/usr/bin/env python3
"""Runs each structure over each set of keys under callgrind; prints a table.

    count.py BUILD-DIRECTORY INTEGERS

Counted is what happens in the functions measured_*: callgrind writes what it has
before and after each.  The caches that are simulated: 32 kB, and 1 MB behind it.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STRUCTURES = ("B+tree", "B+tree, compact", "ART", "skip list")
OPERATIONS = {"measured_insert": None, "measured_look_up": 20000, "measured_scan": 500 * 100}


def counts_of(directory, operation):
    """What was counted from the beginning of the function to its end."""
    for path in directory.iterdir():
        text = path.read_text()
        if re.search(r"^desc: Trigger: --dump-after=%s$" % operation, text, re.M):
            events = re.search(r"^events: (.*)$", text, re.M).group(1).split()
            counts = [int(n) for n in re.search(r"^totals: (.*)$", text, re.M).group(1).split()]
            return dict(zip(events, counts + [0] * len(events)))
    sys.exit("callgrind has not counted %s" % operation)


def run(build, structure, arguments):
    with tempfile.TemporaryDirectory(prefix="structures") as tmp:
        command = ["valgrind", "--tool=callgrind", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64",
                   "--LL=1048576,16,64", "--callgrind-out-file=%s/callgrind.out" % tmp]
        for operation in OPERATIONS:
            command += ["--dump-before=%s" % operation, "--dump-after=%s" % operation]
        done = subprocess.run(command + [str(build / "structures"), structure] + arguments, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return done.stdout, [counts_of(Path(tmp), operation) for operation in OPERATIONS]


def main():
    build, integers = Path(sys.argv[1]), sys.argv[2]
    sets = {"random int8": ["--integers", integers]}
    sets.update({name.replace("_", " "): [str(build / (name + ".txt"))] for name in ("emails", "package_names", "paths")})
    print("| keys | structure | bytes a key | without the key | insert: instructions | misses | beyond 1 MB "
          "| look-up | misses | beyond 1 MB | entry of a scan | misses | beyond 1 MB |")
    print("| --- | --- |" + " ---: |" * 11, flush=True)
    for keys, arguments in sets.items():
        for structure in STRUCTURES:
            memory, counts = run(build, structure, arguments)
            n, a_key, key = re.match(r"(\d+) keys, ([\d.]+) bytes a key, of these the key itself ([\d.]+)", memory).groups()
            cells = ["%s (%s)" % (keys, n), structure, a_key, "%.1f" % (float(a_key) - float(key))]
            for (operation, times), part in zip(OPERATIONS.items(), counts):
                times = times or int(n)
                cells += ["%.0f" % (part["Ir"] / times), "%.1f" % ((part["D1mr"] + part["D1mw"]) / times),
                          "%.1f" % ((part["DLmr"] + part["DLmw"]) / times)]
            print("| %s |" % " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
