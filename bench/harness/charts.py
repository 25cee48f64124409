"""Charts of a run, SVG and PNG; none where matplotlib is missing."""
COLOURS = ("#7f7f7f", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#d62728")


def draw(recorder):
    """Draws what the results hold; returns {workload: [(title, file)]}."""
    try:
        import matplotlib
    except ImportError:
        recorder.notes.append("no charts: matplotlib is not installed")
        return {}
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    charts = {}

    def save(figure, workload, title):
        name = "%s-%s" % (workload, title.replace(" ", "-"))
        figure.tight_layout()
        for kind in ("svg", "png"):
            figure.savefig(recorder.directory / ("%s.%s" % (name, kind)), dpi=120)
        plt.close(figure)
        charts.setdefault(workload, []).append((title, name + ".svg"))

    def bars(workload, phases, metric, title, unit):
        figure, axes = plt.subplots(figsize=(1.5 + 1.3 * len(phases), 3.2))
        width = 0.8 / len(recorder.methods)
        for i, method in enumerate(recorder.methods):
            values = [recorder.median(workload, phase, method.name, metric) or 0 for phase in phases]
            spread = [recorder.values(workload, phase, method.name, metric) or [0] for phase in phases]
            errors = [[max(0, v - min(s)) for v, s in zip(values, spread)],
                      [max(0, max(s) - v) for v, s in zip(values, spread)]]
            axes.bar([x + i * width for x in range(len(phases))], values, width, label=method.name,
                     color=COLOURS[i % len(COLOURS)], yerr=None if metric == "index_bytes" else errors, capsize=2)
        axes.set_xticks([x + 0.4 - width / 2 for x in range(len(phases))])
        axes.set_xticklabels(phases, rotation=20 if len(phases) > 4 else 0, fontsize=8)
        axes.set_ylabel(unit)
        axes.set_title("%s: %s" % (workload, title), fontsize=10)
        axes.legend(fontsize=8)
        save(figure, workload, title)

    for workload in recorder.about:
        phases = [p for w, p in recorder.phases() if w == workload]
        timed = [p for p in phases if recorder.values(workload, p, recorder.methods[0].name, "tps")]
        if timed:
            bars(workload, timed, "tps", "throughput", "per second")
        loops = [p for p in phases if recorder.values(workload, p, recorder.methods[0].name, "ms")]
        if loops:
            metric = "cpu_ms" if recorder.values(workload, loops[0], recorder.methods[0].name, "cpu_ms") else "ms"
            bars(workload, loops, metric, "time", "ms")
        latency = [p for p in phases if recorder.values(workload, p, recorder.methods[0].name, "p99")]
        if latency:
            latencies(plt, recorder, workload, latency[0], save)
            timeline(plt, recorder, workload, latency[0], save)
        if phases and workload != "micro":
            bars(workload, [phases[-1]], "index_bytes", "index bytes", "bytes")
        if workload == "bloat":
            over_time(plt, recorder, save)
    return charts


def latencies(plt, recorder, workload, phase, save):
    names = ("p50", "p95", "p99", "p999", "max")
    figure, axes = plt.subplots(figsize=(5, 3.2))
    for i, method in enumerate(recorder.methods):
        axes.plot(names, [recorder.median(workload, phase, method.name, n) for n in names], marker="o",
                  label=method.name, color=COLOURS[i % len(COLOURS)])
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.set_title("%s %s: latency" % (workload, phase), fontsize=10)
    axes.legend(fontsize=8)
    save(figure, workload, "latency")


def timeline(plt, recorder, workload, phase, save):
    """Transactions of each second, rounds one after the other."""
    figure, axes = plt.subplots(figsize=(6, 3.2))
    for i, method in enumerate(recorder.methods):
        counts = []
        for row in recorder.rows:
            if (row["workload"], row["phase"], row["method"]) == (workload, phase, method.name) and row["timeline"]:
                counts += [second[1] for second in row["timeline"][1:-1]]
        axes.plot(range(len(counts)), counts, label=method.name, color=COLOURS[i % len(COLOURS)])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds measured")
    axes.set_ylabel("transactions in the second")
    axes.set_title("%s %s: timeline" % (workload, phase), fontsize=10)
    axes.legend(fontsize=8)
    save(figure, workload, "timeline")


def over_time(plt, recorder, save):
    figure, axes = plt.subplots(figsize=(6, 3.2))
    for i, method in enumerate(recorder.methods):
        sizes = recorder.values("bloat", "churn", method.name, "index_bytes")
        axes.plot(range(1, len(sizes) + 1), [s / 2 ** 20 for s in sizes], label=method.name, marker=".",
                  color=COLOURS[i % len(COLOURS)])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("slice of time")
    axes.set_ylabel("index, MB")
    axes.set_title("bloat: size over time", fontsize=10)
    axes.legend(fontsize=8)
    save(figure, "bloat", "size over time")
