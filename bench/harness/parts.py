"""The programs that bench/report.py runs: arguments that fill a given time on the machine
at hand, and ratios that their output has.

Ratios are hybrid by btree.  A figure is a name and ratios of the rate, of CPU and WAL of
each piece of work, and of the index's size, as texts; '' where there is none.
"""
import re
import statistics

# Rows a second of the probe of report.py where the costs below were taken, which are
# seconds of both methods for a million rows.
RATE = 250_000
# Bytes of a row and its indexes, of both methods: what is to be in memory.
WIDE_BYTES, STATEMENTS_BYTES, YCSB_BYTES = 1100, 400, 700
UUID_BYTES = 32         # of an entry of a btree that was built
WAREHOUSE = 13          # seconds of loading one, of both methods


# ---- what a machine can do in some seconds ----

class Machine:
    def __init__(self, processors, rate, buffers, can_limit, version, own):
        self.clients = max(2, processors)
        self.speed = rate / RATE
        self.buffers = buffers                  # bytes of shared_buffers
        self.can_limit = can_limit              # memory, by a control group
        self.version = version                  # major, of the server
        self.own = own                          # the server is ours to restart

    def rows(self, seconds, cost, most, least=100_000):
        """How many are loaded in this time; a number of two digits.  `cost` is the seconds
        of a million rows where costs were taken."""
        rows = int(max(least, min(seconds * 1e6 * self.speed / cost, most)))
        digits = 10 ** (len(str(rows)) - 2)
        return rows // digits * digits


class Command:
    """A program of bench/.  `settings` are those of the server that it needs, and
    `restarts` says that it is to have --restart-command."""

    def __init__(self, program, *arguments, restarts=False, settings=None, environment=None):
        self.program, self.arguments = program, [str(argument) for argument in arguments]
        self.restarts, self.settings = restarts, settings or {}
        self.environment = {name: str(value) for name, value in (environment or {}).items()}

    def __str__(self):
        text = " ".join(["%s=%s" % item for item in self.environment.items()] + ["bench/" + self.program] + self.arguments)
        return text + (", " + ", ".join("%s = %s" % item for item in self.settings.items()) if self.settings else "")


# ---- tables in what programs print ----

def tables(text):
    """[(cells of the head, [cells of a row])] of Markdown tables."""
    found = []
    lines = [[cell.strip(" *") for cell in line.split("|")[1:-1]] if line.startswith("|") else None
             for line in text.splitlines()]
    for number, cells in enumerate(lines):
        if not cells:
            continue
        if set("".join(cells)) <= set("-:") and "".join(cells) and number and lines[number - 1]:
            found.append((lines[number - 1], []))
        elif found and lines[number - 1]:
            found[-1][1].append(cells)
    return found


def ratio(hybrid, btree):
    return "%.2f" % (hybrid / btree) if btree > 0 else ""


def leading(cell):
    """A cell's first number, or None."""
    match = re.match(r"[\d,]+(\.\d+)?", cell)
    return float(match[0].replace(",", "")) if match else None


def compared(text, index, what, columns, methods=("btree", "hybrid"), last=False):
    """Figures of rows that have a method in the column `index`: medians, or the last row's.
    `columns` are those of (rate, CPU, WAL, size), None where there is none."""
    got = {}
    for head, rows in tables(text):
        for row in rows if index in head else []:
            cells = dict(zip(head, row))
            got.setdefault(cells[what].split(", to ")[0], {}).setdefault(cells[index].split(",")[0], []).append(
                [leading(cells[column]) if column else None for column in columns])
    figures = []
    for name, of in got.items():
        btree, hybrid = (list(zip(*of.get(method, []))) for method in methods)
        middle = (lambda values: values[-1]) if last else statistics.median
        if btree and hybrid:
            figures.append((name, *(ratio(middle(h), middle(b)) if None not in (*h, *b) else ""
                                    for b, h in zip(btree, hybrid))))
    return figures


def figures_of_run(text):
    """Of run.py."""
    return [(workload + ", " + phase, rate, cpu, wal, size)
            for head, rows in tables(text) if head[:2] == ["workload", "phase"]
            for workload, phase, rate, cpu, _, _, wal, size in rows]


def figures_of_pairs(text):
    """Of statements.py and wide_table.py."""
    rates = {name: ratio(float(hybrid), float(btree)) for name, btree, hybrid in re.findall(
        r"^(.+): btree (\d+) a second, hybrid (\d+)$", text, re.M)}
    figures = []
    for head, rows in tables(text):
        if head[-1] == "merges":
            figures += [(row[0], rates.get(row[0], ""), row[3], row[7], "") for row in rows if row[3]]
        elif head[1:2] == ["btree a second"]:
            figures += [(row[0], row[3], "", "", "") for row in rows]
    sizes = re.search(r"^indexes at the end: btree ([\d.]+) MB, hybrid ([\d.]+) MB", text, re.M)
    return figures + ([("all indexes", "", "", "", ratio(float(sizes[2]), float(sizes[1])))] if sizes else [])


def figures_of_size(text):
    return [figure for head, rows in tables(text) for row in rows if row[0] == "geometric mean" for figure in (
        ("after a load", "", "", "", row[head.index("hybrid / btree")]),
        ("at rest", "", "", "", row[head.index("at rest / btree")]),
        ("at rest, btree REINDEXed", "", "", "", row[head.index("at rest / btree REINDEXed")]))]


def figures_of_scans(text):
    return [(row[0], row[3].split()[0], "", "", "") for head, rows in tables(text) if head[0] == "scan" for row in rows]


def figures_of_tries(text):
    """Of the layout trie beside btree."""
    figures = []
    names = re.findall(r"^(\w[\w ]*), \d+ rows$", text, re.M)
    for name, (head, rows) in zip(names, tables(text)):
        btree, trie = head.index("btree"), head.index("trie")
        for row in rows:
            of = ratio(leading(row[trie]), leading(row[btree]))
            title = "%s: %s" % (name, re.sub(r" \(.*", "", row[0]))
            figures.append((title, "", "", "", of) if "bytes" in title or "rest" in title or "REINDEX" in title
                           else (title, of, "", "", ""))
    return figures


def figures_of_loads(text):
    """Of primary_keys.py: seconds are the other way round."""
    return [(name, ratio(1, float(seconds)) if seconds else "", cpu, wal, size)
            for name, seconds, cpu, wal, size in compared(
                text, "index", "keys", ("seconds", "CPU, µs a row", "WAL a row", None), last=True)]


# ---- the programs, with arguments that fill the given seconds ----

def size(seconds, machine):
    rest = 28 if seconds > 8 * 40 else 10           # seconds for each of eight key sets
    rows = machine.rows(seconds - 8 * (rest + 3), 20, 1_000_000)
    return Command("size.sh", rows, environment={"SIZE_REST": rest} if rest < 28 else {})


def micro(seconds, machine):
    return Command("run.py", *(["quick"] if seconds * machine.speed < 120 else []), "micro")


def wide(seconds, machine):
    return Command("wide_table.py", "--default-checkpoints", *in_slices(seconds / 2, machine, 30, WIDE_BYTES))


def statements(seconds, machine):
    names = ["insert", "uuid", "int8", "unindexed", "indexed"] if seconds > 150 else ["insert", "uuid", "indexed"]
    return Command("statements.py", "--only", ",".join(names), *(["--at-once"] if machine.clients >= 2 else []),
                   *in_slices(seconds / len(names), machine, 12, STATEMENTS_BYTES))


def in_slices(seconds, machine, cost, row_bytes):
    """Options of harness/paired.py for one statement: half of the time is for the load.
    A slice of 2 seconds takes 3, and a round that does not count comes first."""
    slices = 5 if seconds > 90 else 3
    return ["--rows", machine.rows(seconds / 2, cost, machine.buffers // row_bytes), "--clients", machine.clients,
            "--slices", slices, "--rounds", between(1, int(seconds / 2 / (slices * 2 * 3)) - 1, 5)]


def sessions(seconds, machine):
    return Command("statements.py", "--only", "sessions", "--rows", machine.rows(10, 12, 5_000_000),
                   "--rounds", between(1, int((seconds - 10) / 30) - 1, 5))


def ycsb(seconds, machine):
    names = ["ycsb-random", "ycsb-uuid"] if seconds > 300 else ["ycsb-uuid"]
    seconds /= len(names)
    return Command("run.py", *names, "--rows", machine.rows(seconds / 3, 25, machine.buffers // YCSB_BYTES),
                   *in_rounds(seconds * 2 / 3 / 6, machine))


def tpcc(seconds, machine):
    warehouses = between(1, int(seconds / 2 * machine.speed / WAREHOUSE), 4 * machine.clients)
    return Command("run.py", "tpcc", "--warehouses", warehouses, *in_rounds(seconds / 2, machine))


def in_rounds(seconds, machine):
    """Options of run.py for one phase of two methods."""
    rounds = 3 if seconds > 60 else 1
    return ["--clients", machine.clients, "--rounds", rounds, "--seconds", between(2, int(seconds / 2 / rounds) - 1, 30)]


def memory(seconds, machine):
    """With a control group, or else on a server with little memory that, from 16 on,
    reads past the operating system's cache."""
    rows = machine.rows(seconds * 0.4, 12, 100_000_000)
    megabytes = max(64, rows * UUID_BYTES // 8 >> 20)
    rounds = 2 if seconds > 200 else 1
    arguments = ["--variants", "btree,auto", "--rows", rows, "--rounds", rounds,
                 "--seconds", between(3, int(seconds * 0.4 / 6 / rounds) - 3, 30)]
    if machine.can_limit:
        return Command("unique_inserts.py", *arguments, "--memory", megabytes, "--buffers", megabytes // 3, restarts=True)
    direct = {"debug_io_direct": "data"} if machine.version >= 16 else {}
    return Command("unique_inserts.py", *arguments, settings={"shared_buffers": "%dMB" % (megabytes // 3), **direct})


def scans(seconds, machine):
    rows = machine.rows(seconds * 0.4, 60, 20_000_000)
    rounds = 3 if seconds > 150 else 1
    return Command("cold_scans.py", "--memory", max(64, rows * 1000 // 10 >> 20), "--rows", rows, "--rounds", rounds,
                   "--seconds", between(1, int(seconds * 0.6 / 24 / rounds), 5), restarts=True)


def loads(seconds, machine):
    rows = machine.rows(seconds, 30, 20_000_000)
    return Command("primary_keys.py", "--rows", rows, "--step", rows)


def single_rows(seconds, machine):
    rows = machine.rows(seconds, 250, 500_000, 50_000)
    return Command("primary_keys.py", "--how", "rows", "--rows", rows, "--step", rows)


def checkpoints(seconds, machine):
    return Command("run.py", "wal", "--rows", machine.rows(seconds - 50, 40, 10_000_000))


def tries(seconds, machine):
    keys = ["int8", "uuid", "emails"] if seconds > 200 else ["uuid"]
    seconds = seconds / len(keys) - 35              # at rest
    rounds = 3 if seconds > 40 else 1
    return Command("trie.py", "--keys", ",".join(keys), "--rows", machine.rows(seconds / 2, 40, 10_000_000),
                   "--rounds", rounds, "--seconds", between(1, int(seconds / 2 / 6 / rounds), 5))


def large(seconds, machine):
    rows = machine.rows(seconds * 0.5, 10, 1_000_000_000)
    return Command("large.py", "--rows", rows, "--memory", max(256, rows * UUID_BYTES // 16 >> 20),
                   "--clients", machine.clients, "--seconds", int(seconds / 10), "--most", int(seconds / 5), restarts=True)


def between(least, number, most):
    return max(least, min(number, most))


class Part:
    """`least` and `most` are seconds: in less it has no worth, and more says nothing new.
    `own`: only on a server of our own; `limited`: and with a control group.  `last`: only
    where the others have their most."""

    def __init__(self, name, title, command, figures, least, most, own=False, limited=False, last=False):
        self.name, self.title, self.command, self.figures = name, title, command, figures
        self.least, self.most, self.own, self.limited, self.last = least, most, own, limited, last


UNIQUE = ("a second", "CPU, µs", "WAL", None)
LARGE = ("a second", None, "WAL each", None)

# In the order in which they run: first those that README.md has figures of.
PARTS = (
    Part("size", "Sizes of eight key sets", size, figures_of_size, 120, 360),
    Part("micro", "Statements within the server", micro, figures_of_run, 40, 150),
    Part("wide", "A table of seven indexes", wide, figures_of_pairs, 90, 600),
    Part("statements", "Single statements from clients", statements, figures_of_pairs, 60, 420),
    Part("memory", "Unique inserts, index larger than memory", memory,
         lambda text: compared(text, "index", "of", UNIQUE, ("btree", "auto")), 80, 480, own=True),
    Part("scans", "Cold scans, table larger than memory", scans, figures_of_scans, 50, 240, limited=True),
    Part("single-rows", "Growing indexes, a row a transaction", single_rows, figures_of_loads, 30, 150),
    Part("loads", "Growing indexes, one statement", loads, figures_of_loads, 20, 240),
    Part("tries", "Prefixes of keys (layout = trie)", tries, figures_of_tries, 60, 300),
    Part("checkpoints", "Inserts right after checkpoints", checkpoints, figures_of_run, 80, 200),
    Part("ycsb", "YCSB", ycsb, figures_of_run, 60, 600),
    Part("tpcc", "TPC-C", tpcc, figures_of_run, 40, 420),
    Part("sessions", "500 clients", sessions, figures_of_pairs, 75, 130),
    Part("large", "An index sixteen times the memory", large,
         lambda text: compared(text, "index, memory", "what", LARGE), 2400, 20000, limited=True, last=True),
)
