#!/usr/bin/env python3
"""Runs each structure over each set of keys under callgrind; prints a table.

    count.py BUILD-DIRECTORY INTEGERS

Counted is what happens in the functions measured_*, each an own part of
callgrind's output.  The caches that are simulated: 32 kB, and 1 MB behind it.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STRUCTURES = ("B+tree", "B+tree, compact", "ART", "skip list")
OPERATIONS = {"measured_insert": None, "measured_look_up": 20000, "measured_scan": 500 * 100}


def parts(directory):
    """Counts of the parts, in order: dictionaries of events."""
    found = []
    for path in sorted(directory.glob("callgrind.out.*"), key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)]):
        text = path.read_text()
        events = re.search(r"^events: (.*)$", text, re.M)
        totals = re.search(r"^(?:totals|summary): (.*)$", text, re.M)
        if events and totals:
            counts = [int(n) for n in totals.group(1).split()]
            found.append(dict(zip(events.group(1).split(), counts + [0] * 9)))
    return [part for part in found if part["Ir"] > 0]


def run(build, structure, arguments):
    with tempfile.TemporaryDirectory(prefix="structures") as tmp:
        command = ["valgrind", "--tool=callgrind", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64",
                   "--LL=1048576,16,64", "--callgrind-out-file=%s/callgrind.out" % tmp]
        for operation in OPERATIONS:
            command += ["--toggle-collect=%s" % operation, "--dump-after=%s" % operation]
        done = subprocess.run(command + [str(build / "structures"), structure] + arguments, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return done.stdout, parts(Path(tmp))


def main():
    build, integers = Path(sys.argv[1]), sys.argv[2]
    sets = {"random int8": ["--integers", integers]}
    sets.update({name: [str(build / (name + ".txt"))] for name in ("emails", "titles", "paths")})
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
