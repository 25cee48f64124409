#!/usr/bin/env python3
"""Which key ranges move on from a newer level, simulated: ski rental, as
src/merge/policy.c has it, beside watermarks and access density, as in
IndeXY (ICDE 2024).

    bench/level_policies.py [--leaves N] [--freezes N]

Two levels.  A merge brings a freeze of entries to the newer one and rewrites
the leaves that they fall into.  Then units (what lies below a level-1 node of the
older level) move, which rewrites the leaves of that.  Ski rental moves a unit
when the rewriting of its entries has cost what moving them costs.  With
watermarks, units move when the newer level has more than a share of the index
(high), until it has less than 0.8 of that.  "cold" moves the units that had the
fewest inserts for their size lately, as IndeXY unloads.  "dense" moves those that
bring each leaf most.  Printed: pages written per 1000 entries, and how large the newer
level is in per cent of the index, over the second half.
"""
import argparse
import bisect
import itertools
import random

LEAF = 800                      # entries of a leaf
UNIT = 200                      # leaves of a unit
PATH = 3                        # what a move writes besides leaves
POLICIES = [("ski", 0)] + [(name, high) for name in ("cold", "dense") for high in (0.02, 0.05, 0.1, 0.2, 0.4)]


def workload(name, leaves, rng):
    """A function: the leaf of the older level that the next entry falls into."""
    if name == "uniform":
        return lambda: rng.randrange(leaves)
    if name == "points":
        points = [rng.randrange(leaves) for _ in range(500)]
        return lambda: points[rng.randrange(500)]
    if name == "moving points":
        state = {"n": 0, "points": []}

        def moving():
            if state["n"] % 200000 == 0:
                state["points"] = [rng.randrange(leaves) for _ in range(500)]
            state["n"] += 1
            return state["points"][rng.randrange(500)]
        return moving
    # Zipf over ranges of keys: some are hot as a whole
    places = list(range(leaves))
    rng.shuffle(places)
    sums = list(itertools.accumulate(1 / (i + 1) ** 0.9 for i in range(leaves)))
    if name == "zipf ranges":
        places.sort(key=lambda p: (p // UNIT * 7919) % 1009)
    return lambda: places[bisect.bisect_left(sums, rng.random() * sums[-1])]


class Level:
    """The newer level: entries for each leaf of the older one, by unit."""

    def __init__(self, leaves):
        self.units = [dict() for _ in range(leaves // UNIT + 1)]
        self.content = [0] * len(self.units)
        self.rent = [0.0] * len(self.units)
        self.recent = [0.0] * len(self.units)
        self.written = 0.0

    def merge(self, entries):
        by_unit = {}
        for leaf in entries:
            counts = by_unit.setdefault(leaf // UNIT, {})
            counts[leaf] = counts.get(leaf, 0) + 1
        self.recent = [r * 0.9 for r in self.recent]
        for u in sorted(by_unit):
            counts, unit = by_unit[u], self.units[u]
            pages, before = set(), 0
            added = sum(counts.values())
            for leaf in sorted(set(unit) | set(counts)):
                if leaf in counts:
                    pages.add(before // LEAF)
                    pages.add((before + unit.get(leaf, 0)) // LEAF)
                before += unit.get(leaf, 0)
            touched = min(len(pages), self.content[u] / LEAF)
            self.written += touched + added / LEAF
            self.rent[u] += touched
            self.recent[u] += added
            for leaf, n in counts.items():
                unit[leaf] = unit.get(leaf, 0) + n
            self.content[u] += added

    def price(self, u):
        return len(self.units[u])

    def move(self, u):
        self.written += self.price(u) + self.content[u] / LEAF + PATH
        self.units[u], self.content[u], self.rent[u] = {}, 0, 0.0

    def pass_over(self, policy, high, total):
        if policy == "ski":
            for u, content in enumerate(self.content):
                if content > 0 and max(self.rent[u], content / LEAF) >= self.price(u) + PATH:
                    self.move(u)
            return
        if sum(self.content) <= high * total:
            return
        key = {"cold": lambda u: self.recent[u] / self.content[u],
               "dense": lambda u: -self.content[u] / (self.price(u) + PATH)}[policy]
        left = sum(self.content)
        for u in sorted((u for u, c in enumerate(self.content) if c > 0), key=key):
            if left <= 0.8 * high * total:
                break
            left -= self.content[u]
            self.move(u)


def run(name, policy, high, options, q):
    rng = random.Random(5)
    next_leaf = workload(name, options.leaves, rng)
    level = Level(options.leaves)
    total = options.leaves * LEAF
    freeze = total // q
    sizes, start = [], 0
    for i in range(options.freezes):
        if i == options.freezes // 2:
            start = level.written
        level.merge([next_leaf() for _ in range(freeze)])
        level.pass_over(policy, high, total)
        if i >= options.freezes // 2:
            sizes.append(sum(level.content) / total)
    inserted = freeze * (options.freezes - options.freezes // 2)
    return 1000 * (level.written - start) / inserted, 100 * sum(sizes) / len(sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leaves", type=int, default=4000)
    parser.add_argument("--freezes", type=int, default=120)
    parser.add_argument("--q", default="64,256")
    options = parser.parse_args()
    print("| q | insertions | " + " | ".join("%s%s" % (p, " %g %%" % (100 * h) if h else "") for p, h in POLICIES) + " |")
    for q in (int(x) for x in options.q.split(",")):
        for name in ("uniform", "zipf keys", "zipf ranges", "points", "moving points"):
            cells = ["%.1f (%.1f)" % run(name, policy, high, options, q) for policy, high in POLICIES]
            print("| %d | %s | " % (q, name) + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
