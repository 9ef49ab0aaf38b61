#!/usr/bin/env python3
"""Writes the figures of a run of bench.py into docs/benchmarks.md, so that none is copied by hand: what stands between the two marks
there is replaced. `bench.py --page FILE` does it at the end of a run; this program does it for figures that --json has kept."""
import argparse
import json
import os
import sys

BEGIN = "<!-- figures of one run, written by test/bench/page.py -->"
END = "<!-- end of the figures -->"
KEPT = 1  # the least ratio that counts as not slower


def size_name(size):
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def us(value):
    return f"{value:.2f} us" if value < 100 else f"{value:.0f} us" if value < 10000 else f"{value / 1000:.1f} ms"


def ratio(row):
    """The ratio with its range, of a row that has one."""
    if "ratio" not in row:
        return "-"
    return f"{row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})"


def table(head, rows):
    rows = [list(map(str, row)) for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows), ""]


# ---- the parts: each yields lines for its results, and (words, ratio, low, high) of each comparison for the list of those that are lost


def allreduce(tables):
    for result in tables:
        where = "one core each" if result["pinned"] else "not pinned"
        yield f"### Allreduce, {result['ranks']} ranks, {where}\n"
        words = [f"{result['rounds']} rounds"]
        if result["short"]:
            words.append("fewer than asked for, because the time was over")
        if result["filled_from_thrown"]:
            words.append(f"NOISY: in {result['filled_from_thrown']} of them the machine did not hold still")
        yield "; ".join(words) + ".\n"
        yield from table(["memory", "size", "ours", "Open MPI", "its setting", "ratio (range)", "of the limit"], (
            (row["measure"], size_name(row["bytes"]), us(row["us"]), us(row["peer_us"]) if "peer_us" in row else "-",
             row.get("peer_setting", "-"), ratio(row), f"{row['percent_of_limit']:.0f} %" if "percent_of_limit" in row else "-")
            for row in result["rows"]))


def collectives(tables):
    yield "### Other collectives, 2 ranks, one core each\n"
    for rows in tables:
        yield from table(["collective", "memory", "input", "ours", "Open MPI", "its setting", "ratio (range)", "runs"], (
            (row["collective"], memory(row), size_name(row["bytes"]), us(row["us"]), us(row["peer_us"]) if "peer_us" in row else "-",
             row.get("peer_setting", "-"), ratio(row), row["runs"]) for row in rows))


def memory(row):
    return "registered" if row["registered"] else "private"


def between(tables):
    for result in filter(None, tables):
        yield f"### Allreduce between leaders, {result['ranks']} processes over TCP on loopback\n"
        peers = list(result["ratios"])
        sizes = list(result["us"]["ours"])
        yield from table(["size", *peers], ([size_name(int(size)), *(f"{result['ratios'][peer][size]:.2f}" for peer in peers)] for size in sizes))


def cell(found):
    return f"{found['ratio']:.2f} ({found['low']:.2f} to {found['high']:.2f})" if found else "-"


def layouts(result):
    return list(dict.fromkeys((row["hosts"], row["ranks_of_a_host"]) for row in result.get("rows", [])))


def hosts(tables):
    for result in tables:
        yield "### Allreduce over hosts, private memory\n"
        if "left_out" in result:
            yield f"Left out: {result['left_out']}.\n"
            continue
        yield ("Namespaces joined by veth pairs, all on the cores of this machine. *Raw sockets* is one process a host that exchanges and "
               "adds as much as the hosts must, without a library: the floor.\n")
        peers = list(dict.fromkeys(peer for row in result["rows"] for peer in row["peers"]))
        yield from table(["hosts x ranks", "size", "ours", *peers], (
            [f"{row['hosts']} x {row['ranks_of_a_host']}", size_name(row["bytes"]), us(row["us"]),
             *(cell(row["peers"].get(peer)) for peer in peers)] for row in result["rows"]))
        if result["short"]:
            yield "No time was left for " + ", ".join("{} x {}".format(*layout) for layout in result["short"]) + ".\n"


def python_calls(tables):
    for result in tables:
        yield "### `hvd.allreduce_` through Python, 2 ranks, private memory\n"
        yield ", ".join(dict.fromkeys(result["names"].values())) + ".\n"
        for words in result["left_out"]:
            yield f"Left out: {words}.\n"
        peers = list(dict.fromkeys(peer for row in result["rows"] for peer in row["peers"]))
        yield from table(["size", "ours", *peers, "runs"], (
            [size_name(row["bytes"]), us(row["us"]), *(cell(row["peers"].get(peer)) for peer in peers), row["runs"]] for row in result["rows"]))


def torch_step(tables):
    for result in tables:
        yield "### A training step with PyTorch, 2 processes\n"
        if "left_out" in result:
            yield f"Left out: {result['left_out']}.\n"
            continue
        yield (f"PyTorch {result['torch']}, {result['threads']} thread(s) each, SGD; DistributedDataParallel (DDP) over Gloo with gradients as "
               "views of its buckets. *Exchange* is what a step takes longer than the same step alone; *reduction* an allreduce of the same "
               "gradients and nothing else.\n")
        yield from table(["gradients", "set_to_none", "alone", "ours", "DDP", "DDP / ours (range)", "exchange, of a step", "of DDP", "reduction", "rounds"], (
            (row["set"], row["set_to_none"], *(f"{1e3 * row['seconds'][way]['median']:.1f} ms" for way in ("alone", "ours", "ddp")), spread(row["ratio"]),
             f"{1e3 * row['extra']['median']:.1f} ms, {row['share']['median']:.0%}", f"{1e3 * row['ddp_extra']['median']:.1f} ms",
             f"{1e3 * row['reduction']['median']:.1f} ms", row["rounds"]) for row in result["rows"]))


def torch_backends(tables):
    for result in tables:
        yield '### `init_process_group("hvd")` beside gloo, 2 processes\n'
        if "left_out" in result:
            yield f"Left out: {result['left_out']}.\n"
            continue
        yield (f"PyTorch {result['torch']}, {result['threads']} thread(s) each. Both backends are groups of one job and take turns. *Exchange* is what a "
               "step takes longer than the same step alone. The two hosts are played by one machine, over TCP. *Watching* is a job over gloo with "
               "`--stall-check-warning-time-seconds 2` (hvd) beside one with `--no-stall-check` (gloo).\n")
        yield from table(["what", "compared", "hvd", "gloo", "hvd / gloo (range)", "goal", "rounds"], (
            (row["what"], row["compared"], us(1e6 * row["ours"]["median"]), us(1e6 * row["gloo"]["median"]), spread(row["ratio"]),
             f"{row['goal_text']}: {'met' if row['is_met'] else 'missed'}", row["rounds"]) for row in result["rows"]))


def spread(values, form=".2f"):
    return f"{values['median']:{form}} ({values['low']:{form}} to {values['high']:{form}})"


def start(tables):
    yield "### Start and end, beside mpirun\n"
    for rows in tables:
        yield from table(["command", "ranks", "ours", "mpirun", "ratio (range)", "runs", "ours hung", "mpirun hung or failed"], (
            (row["what"], row["ranks"], f"{row['ms']:.1f} ms" if "ms" in row else "-", f"{row['peer_ms']:.1f} ms" if "peer_ms" in row else "-",
             ratio(row), row["runs"]["ours"], row["hangs"]["ours"], row["hangs"].get("peer", "-")) for row in rows))


def python(tables):
    yield "### Python workers, beside bare interpreters\n"
    for rows in tables:
        yield from table(["workers", "ours", "bare", "ours / bare (range)", "hvdrun of `pass` / bare", "runs"], (
            (row["ranks"], f"{row['ms']['ours']['median']:.1f} ms", f"{row['ms']['bare']['median']:.1f} ms", spread(row["ratio"]),
             f"{row['pass_ratio']['median']:.2f}", row["runs"]) for row in rows if row["ratio"]))


def footprint(tables):
    yield "### hvdrun's own processes\n"
    for result in tables:
        yield from table(["", "2 workers", "512 workers", "for each of 512", "added by one"], (
            (row["what"], *(f"{row['workers'][count]['median']:.1f}" for count in row["workers"]), f"{row['per_worker']:.3f}",
             f"{row['added_by_one']:.3f}") for row in result["rows"]))


def log(tables):
    for result in tables:
        yield f"### Output of {result['workers']} workers, beside mpirun\n"
        rates, wrong = result["mb_per_s"], result["wrong"]
        yield from table(["", "MB/s (range)", "lost", "doubled", "damaged", "hung or failed"], (
            ({"ours": "hvdrun", "peer": "mpirun"}[name], spread(rates[name], ".0f") if rates[name] else "-", wrong[name]["lost"], wrong[name]["doubled"],
             wrong[name]["damaged"], result["hangs"][name]) for name in rates))


def elastic(tables):
    for result in tables:
        yield "### Elastic jobs, three ranks, one killed in each event\n"
        yield from table(["from the death to", "p50", "p99", "least", "events", "goal"], (
            (row["what"], *(f"{row[key]:.4g} {row['unit']}" for key in ("p50", "p99", "least")), row["events"],
             "-" if row["goal"] is None else f"{row['goal']:.4g} {row['unit']}") for row in result["rows"]))


def timeline(tables):
    for result in tables:
        yield "### The recorder and the timeline, times over those without\n"
        yield from table(["", "setting", "ratio (interval of 95 %)", "rounds", "goal"], (
            (row["what"], row["setting"], f"{row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f})", row["rounds"],
             "-" if row["goal"] is None else f"{row['goal']:.4f}") for row in result["rows"]))


PARTS = {"allreduce": allreduce, "collectives": collectives, "inter_host_comm": between, "hosts": hosts, "python_calls": python_calls,
         "torch_step": torch_step, "torch_backends": torch_backends, "start": start, "python": python, "footprint": footprint, "log": log, "elastic": elastic, "timeline": timeline}


# ---- every comparison with a peer, for the list of those that are lost


def compared(row):
    return row.get("ratio"), row.get("ratio_low"), row.get("ratio_high")


def comparisons(results):
    """(words, ratio, least, most) of each row that has a peer."""
    for result in results.get("allreduce", []):
        for row in result["rows"]:
            yield f"allreduce, {result['ranks']} ranks, {row['measure']}, {size_name(row['bytes'])}, Open MPI", *compared(row)
    for rows in results.get("collectives", []):
        for row in rows:
            yield f"{row['collective']}, {memory(row)}, {size_name(row['bytes'])}, Open MPI", *compared(row)
    for result in results.get("hosts", []):
        for row in result.get("rows", []):
            for peer, found in row["peers"].items():
                words = f"allreduce over {row['hosts']} hosts x {row['ranks_of_a_host']}, {size_name(row['bytes'])}, {peer}"
                yield words, found["ratio"], found["low"], found["high"]
    for result in results.get("python_calls", []):
        for row in result["rows"]:
            for peer, found in row["peers"].items():
                yield f"allreduce through Python, {size_name(row['bytes'])}, {peer}", found["ratio"], found["low"], found["high"]
    for result in results.get("torch_step", []):
        for row in result.get("rows", []):
            found = row["ratio"]
            yield f"PyTorch step, {row['set']}, set_to_none={row['set_to_none']}, DDP", found["median"], found["low"], found["high"]
    for result in results.get("torch_backends", []):
        for row in result.get("rows", []):
            if not row["what"].startswith("watching"):
                found = row["ratio"]
                yield f"torch.distributed, {row['what']}, {row['compared']}, gloo", 1 / found["median"], 1 / found["high"], 1 / found["low"]
    for rows in results.get("start", []):
        for row in rows:
            yield f"start and end, {row['what']} x {row['ranks']}, mpirun", *compared(row)
    for result in results.get("log", []):
        if result["ratio"]:
            yield "output of workers, mpirun", *(result["ratio"][key] for key in ("median", "low", "high"))
    for result in filter(None, results.get("inter_host_comm", [])):
        for peer, by_size in result["ratios"].items():
            for size, value in by_size.items():
                yield f"allreduce between leaders, {size_name(int(size))}, {peer}", value, None, None


def slower(results):
    """Lines: each comparison that we lose, and each whose range holds both."""
    lost, unclear = [], []
    for words, value, low, high in comparisons(results):
        if value is None:
            continue
        span = "" if low is None else f" ({low:.2f} to {high:.2f})"
        line = f"- {words}: {value:.2f}{span}"
        if value < KEPT:
            lost.append((value, line))
        elif low is not None and low < KEPT:
            unclear.append((value, line))
    yield "### Not faster\n"
    yield "Every comparison of this run in which a peer, or the floor, took less time than we did (ratio below 1):\n"
    yield from [line for _, line in sorted(lost)] or ["- none"]
    yield "\nEvery one whose rounds do not agree (the range includes 1):\n"
    yield from [line for _, line in sorted(unclear)] or ["- none"]
    yield ""


def machine(results):
    facts = results["machine"]
    yield from table(["", ""], [
        ("when", results["date"]), ("state of the source", results["source"]),
        ("machine", f"{facts['cpu']}, {facts['cores']} cores allowed, Linux {facts['kernel']}, pages of {facts['page_bytes']} B"),
        ("load", f"{facts['load_at_start']:.1f} at the start, {results['load_at_end']:.1f} at the end"),
        ("peers", ", ".join(f"{name} {version}" for name, version in results["peers"].items()) or "none"),
        ("settings of the peers", "Open MPI: for allreduce and the other collectives the best of those in [test/bench](../test/bench/README.md) for each "
                                  "size, over hosts as it comes, with TCP; Gloo: its ring over TCP"),
        ("command", f"`{results['command']}`"), ("took", f"{results['seconds'] / 60:.0f} minutes")])
    if facts["load_at_start"] > 0.5 * facts["cores"] or results["load_at_end"] > 2 * facts["cores"]:
        yield ("**The machine was busy with something else**: these figures are provisional, and say little about which side is faster.\n")
    missing = [part for part in PARTS if not results.get(part)]
    if missing:
        yield f"**Not in this run**, so neither faster nor slower here: {', '.join(f'`{part}`' for part in missing)}.\n"
    for failure in results["failures"]:
        yield "**FAILED**: " + " ".join(failure.split())[:300] + "\n"


def figures(results):
    lines = [*machine(results)]
    lines += ["Times are medians. *Ratio* is the peer's time by ours: above 1 we are faster.\n", *slower(results)]
    for part, write in PARTS.items():
        if results.get(part):
            lines += write(results[part])
    return "\n".join(lines).rstrip() + "\n"


def written(text, results):
    """The page with the figures of this run in it."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines '{BEGIN}' and '{END}'")
    return f"{before}{BEGIN}\n\n{figures(results)}\n{END}{after}"


def write(path, results):
    with open(path) as file:
        text = file.read()
    text = written(text, results)
    with open(path, "w") as file:
        file.write(text)


def main(argv):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", metavar="JSON", help="what bench.py --json wrote")
    parser.add_argument("page", metavar="PAGE", nargs="?", default=os.path.join(root, "docs", "benchmarks.md"), help="the page (docs/benchmarks.md)")
    args = parser.parse_args(argv)
    with open(args.json) as file:
        write(args.page, json.load(file))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
