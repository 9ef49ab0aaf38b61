"""How much there is to gain, on links between hosts, by the settings that --autotune may choose, and whether it finds that: the step of
a set of gradients over hosts that are network namespaces with shaped links (shaped_hosts.py), with other values of one setting at a
time, or with --grid with all combinations of those that are tuned, and then with --autotune. All take turns with the defaults.

Run by itself, as root. Prints the time of each choice over that of the defaults beside it."""
import argparse
import itertools
import os
import pathlib
import statistics
import sys
import tempfile
import time

import tuning
from processes import Failed
from shaped_hosts import LINKS, ROOT, WHY_NOT, ShapedHosts

VALUES = {"--fusion-threshold-mb": (1, 8, 32), "--inter-host-piece-kib": (256, 1024, 16384), "--inter-host-pieces": (1, 2, 8),
          "--inter-host-stripes": (2, 4, 8)}
GRID = {"--fusion-threshold-mb": (8, 32, 128), "--inter-host-stripes": (1, 2, 4, 8)}  # the rows that --autotune changes
WINDOWS = ("--autotune-bayes-opt-max-samples", "16")  # of five steps
BASE_EACH = 3  # after so many choices the defaults are run again


class HostsJob(tuning.Job):
    """A set of gradients over hosts with one rank each."""

    def __init__(self, args, hosts, which):
        super().__init__(args, [], which)
        self.hosts, self.steps, self.always = hosts, args.steps, args.always
        self.slots = ",".join(f"hvd{number}:1" for number in range(1, hosts.count + 1))

    def command(self, flags, steps):
        return self.hosts.rig.on_head(
            self.hvdrun, "-np", self.hosts.count, "-H", self.slots, "--prefix", "", *self.always, *flags, "env", f"BENCH_STEPS={steps}",
            f"BENCH_SET={self.which}", self.python, tuning.RANK)


def words(choice):
    return [str(word) for pair in choice.items() for word in pair]


def beside_defaults(job, choices, rounds, say):
    """Ratios to the defaults before and after, by choice."""
    ratios = {tuple(words(choice)): [] for choice in choices}
    for number in range(rounds):
        before = job.step([])
        for first in range(0, len(choices), BASE_EACH):
            some = [(tuple(words(choice)), job.step(words(choice))) for choice in choices[first:first + BASE_EACH]]
            after = job.step([])
            for name, us in some:
                ratios[name].append(2 * us / (before + after))
            before = after
        say(f"round {number + 1} of {rounds}: the defaults take {before / 1e3:.0f} ms")
    return ratios, before


def show(ratios):
    print("\n| settings | time of the defaults | |\n|---|---|---|")
    for name, seen in sorted(ratios.items(), key=lambda pair: (pair[0][0::2], statistics.median(pair[1]))):
        low, high = min(seen), max(seen)
        mark = "gains" if high < 0.97 else "loses" if low > 1.03 else ""
        print(f"| `{' '.join(name)}` | {statistics.median(seen):.3f} ({low:.3f} to {high:.3f}) | {mark} |")
    sys.stdout.flush()


def one_at_a_time(job, args, say):
    choices = [{flag: value} for flag, values in VALUES.items() for value in values if flag not in job.always]
    ratios, base = beside_defaults(job, choices, args.rounds, say)
    given = f" with {' '.join(job.always)}" if job.always else ""
    print(f"\n{job.which}, defaults{given} {base / 1e3:.0f} ms a step, {args.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    show(ratios)


def grid_and_search(job, args, say):
    """The whole grid; then its best and the choice of --autotune beside the defaults; then the first steps of a search."""
    choices = [dict(zip(GRID, values)) for values in itertools.product(*GRID.values())]
    ratios, base = beside_defaults(job, choices, args.rounds, say)
    print(f"\n{job.which}, defaults {base / 1e3:.0f} ms a step, {args.rounds} rounds of a grid, load {os.getloadavg()[0]:.1f}")
    show(ratios)
    search(job, args, say, {"the grid's best": min(ratios, key=lambda name: statistics.median(ratios[name]))})


def search(job, args, say, beside=None):
    """The choice of --autotune in 80 steps, and other choices by name, beside the defaults."""
    found = job.search(args.search_steps, WINDOWS)
    say(found.sentence)
    choices = {**(beside or {}), "--autotune's choice": found.flags}
    ratios = {name: [] for name in choices}
    for _ in range(args.again):
        before = job.step([])
        for name, flags in choices.items():
            ratios[name].append(job.step(list(flags)) / before)
    for name, seen in ratios.items():
        print(tuning.row([name + ":", *choices[name]], seen))
    if beside:
        print(tuning.verdict(*ratios.values()))
    print(f"{found.sentence}; {found.steps()} steps of the search")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--python", default="/usr/bin/python3", help="of the ranks, with NumPy (/usr/bin/python3)")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5, help="of each run (5)")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--sets", nargs="+", default=["ResNet-50", "GPT-2, scaled"], help="of gradient_sets.py")
    parser.add_argument("--links", nargs="+", default=list(LINKS), choices=list(LINKS))
    parser.add_argument("--always", default=[], type=str.split, help="flags of all runs, those of the defaults, too: \"--inter-host-stripes 8\"")
    parser.add_argument("--grid", action="store_true", help="all combinations of the tuned settings, then --autotune")
    parser.add_argument("--search", action="store_true", help="--autotune, without a grid before it")
    parser.add_argument("--search-steps", type=int, default=120, help="of the job with --autotune (120)")
    parser.add_argument("--again", type=int, default=5, help="rounds that compare the grid's best and the choice of --autotune (5)")
    parser.add_argument("--quick", action="store_true", help="one round: shows that it works")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.steps, args.again = 1, 3, 2
    if WHY_NOT:
        print(f"left out: {WHY_NOT}")
        return
    with tempfile.TemporaryDirectory() as folder:
        hosts = ShapedHosts(folder, args.hosts, pathlib.Path(args.bin_dir).parent)
        try:
            for link, which in itertools.product(args.links, args.sets):
                hosts.shape(link)
                print(f"\n## {args.hosts} hosts, {link}", flush=True)
                begin = time.monotonic()
                (grid_and_search if args.grid else search if args.search else one_at_a_time)(HostsJob(args, hosts, which), args, say)
                say(f"{link}, {which}: {time.monotonic() - begin:.0f} s")
        finally:
            hosts.down()


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"tuning_hosts.py: {failure}")
