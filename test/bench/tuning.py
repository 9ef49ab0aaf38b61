"""How much there is to gain by the settings that --autotune chooses, whether it finds that, and what it costs: the step of a ResNet-50's
gradients with each value of a grid, then the choices of a random search, of Optuna's TPE (where the Python that runs this has optuna)
and of --autotune. All take turns with the defaults.

Run by itself. Prints the time of each choice over that of the defaults beside it, with an interval of 95 % of the median: a
setting gains where the whole interval is below 1."""
import argparse
import csv
import itertools
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import processes
from processes import Failed
from timeline import RANK, interval

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLINE = 120
ONE_HOST = {"--chunk-kib": (16, 32, 64, 128, 256, 512, 2048), "--wait-spins": (1, 100, 400, 1600, 20000)}
BUSY_HOST = {"--chunk-kib": (16, 32, 64, 128, 256, 512, 2048), "--wait-yields": (1, 10, 50, 200, 2000)}
TWO_HOSTS = {"--fusion-threshold-mb": (1, 4, 16, 64, 128, 256)}
DEFAULTS = ["--chunk-kib", "128", "--wait-spins", "400", "--wait-yields", "50", "--fusion-threshold-mb", "128"]
LAYOUTS = {"one host, a core for each rank": (["-np", "2"], ONE_HOST),
           "one host, two ranks for each core": (["-np", str(2 * (os.cpu_count() or 1))], BUSY_HOST),
           "two hosts, played by this machine": (["-np", "2", "--hosts-per-machine", "2"], TWO_HOSTS)}


def coarse(axes):
    """The ends and the middle of each axis."""
    return {axis: (values[0], values[len(values) // 2], values[-1]) for axis, values in axes.items()}


def grid(axes):
    return [[str(word) for pair in zip(axes, values) for word in pair] for values in itertools.product(*axes.values())]


@dataclass
class Search:
    """A run with --autotune whose search came to its end."""
    flags: list      # what it chose
    sentence: str
    rows: list       # of its log

    def steps(self):
        """Steps of the search, without those to warm up."""
        return sum(int(row["steps"]) for row in itertools.takewhile(lambda row: row["kind"] not in ("best", "check"), self.rows)
                   if row["kind"] != "warm-up")


def log_rows(path):
    """The windows of --autotune-log-file."""
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["step_ms"]]


def flags_in(sentence):
    """["--chunk-kib", "512", ...] of the sentence about a search."""
    return re.findall(r"--[a-z-]+|\b\d+\b", re.search(r"((?:--[a-z-]+ \d+ ?)+)", sentence)[1])


class Job:
    """Runs of one layout."""

    def __init__(self, args, layout, which="ResNet-50"):
        self.hvdrun, self.python, self.layout, self.which = f"{args.bin_dir}/hvdrun", args.python, layout, which
        self.steps, self.rounds = (8, 1) if args.quick else (25, 3)  # the fewest rounds

    def command(self, flags, steps):
        return [self.hvdrun, *self.layout, "--prefix", "", *flags, "env", f"BENCH_STEPS={steps}", f"BENCH_SET={self.which}",
                self.python, RANK]

    def step(self, flags):
        """Microseconds of a step."""
        return self.run(list(flags), self.steps)[0]["us"]

    def run(self, flags, steps, deadline=DEADLINE):
        """The words of rank 0 about its steps, and those of hvdrun."""
        job = subprocess.Popen(self.command(flags, steps), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
        try:
            out, err = job.communicate(timeout=deadline)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(flags)}: hung for {deadline} s") from None
        finally:
            processes.end_session(job)
        if job.returncode != 0:
            raise Failed(f"{' '.join(flags)}: exit code {job.returncode}: {err[-300:]}")
        return json.loads(out.split("\n")[0]), err

    def search(self, steps, flags=()):
        """A search in a job of so many steps, without the results of others."""
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log.csv")
            tuned = ["--autotune", "--no-autotune-memory", *flags, "--autotune-log-file", log]
            err = self.run(tuned, steps, deadline=20 * DEADLINE)[1]
            rows = log_rows(log)
        found = re.search(r"tuning found.*", err)
        if not found:
            raise Failed(f"the search was not over after {steps} steps; more of them may do")
        return Search(flags_in(found[0]), found[0], rows)

    def ratio(self, flags, steps=None, beside=(), what="us"):
        """The time with these flags over that with the others, one after the other."""
        steps = steps or self.steps
        base = self.run(list(beside), steps)[0][what]
        return self.run(flags, steps)[0][what] / base


def random_search(axes, trials, ratio):
    """The best of random points, and all ratios."""
    chance, tried = random.Random(1), []
    for _ in range(trials):
        flags = []
        for axis, values in axes.items():
            flags += [axis, str(round(math.exp(chance.uniform(math.log(values[0]), math.log(values[-1])))))]
        tried.append((ratio(flags), flags))
    return min(tried)[1], [seen for seen, _ in tried]


def optuna_tpe(axes, trials, ratio):
    """The same by Optuna's TPE; None without optuna."""
    try:
        import optuna  # only some machines have it
    except ImportError:
        return None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study, tried = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1)), []
    for _ in range(trials):
        trial, flags = study.ask(), []
        for axis, values in axes.items():
            flags += [axis, str(trial.suggest_int(axis, values[0], values[-1], log=True))]
        tried.append((ratio(flags), flags))
        study.tell(trial, tried[-1][0])
    return min(tried)[1], [seen for seen, _ in tried]


def compared(job, choices, until, say):
    """Ratios to the defaults beside them, by choice; rounds until the time is over."""
    ratios = [[] for _ in choices]
    for number in itertools.count():
        if number >= job.rounds and time.monotonic() > until:
            return ratios
        for place, flags in enumerate(choices):
            ratios[place].append(job.ratio(flags))
        say(f"round {number + 1} of {len(choices)} choices")


def row(flags, ratios):
    low, high = interval(ratios)
    mark = "" if len(ratios) < 3 else "gains" if high < 1 else "loses" if low > 1 else ""
    return f"| `{' '.join(flags)}` | {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}) | {mark} |"


def verdict(best, chosen):
    """Whether the choice of --autotune is as good as the best of the grid, as far as these ratios tell."""
    (low, high), (chosen_low, chosen_high) = interval(best), interval(chosen)
    if max(low, chosen_low) <= min(high, chosen_high):
        return "the intervals of the grid's best and of --autotune's choice overlap"
    return f"--autotune's choice is {'better' if chosen_high < low else 'worse'} than the grid's best: their intervals do not overlap"


def costs(job, rounds, steps):
    """Ratios of the mean step: with --autotune in its first steps, and where it has nothing left to choose."""
    os.environ["XDG_CACHE_HOME"] = "/nonexistent"
    first = [job.ratio(["--autotune", "--no-autotune-memory"], steps, what="mean_us") for _ in range(rounds)]
    idle = [job.ratio(["--autotune", *DEFAULTS], beside=DEFAULTS, what="mean_us") for _ in range(rounds)]
    return row([f"first {steps} steps of --autotune, mean"], first) + "\n" + row(["--autotune with nothing to choose, mean"], idle)


def measure(job, axes, args, until, say):
    """The table of one layout."""
    choices = grid(coarse(axes) if args.quick or args.coarse else axes)
    best = sorted(zip(choices, compared(job, choices, until, say)), key=lambda pair: statistics.median(pair[1]))
    found, lost = {"grid:": best[0][0]}, {}
    for name, search in (("random search:", random_search), ("TPE:", optuna_tpe)) if args.trials else ():
        result = search(axes, args.trials, job.ratio)
        if result is None:
            print("optuna is not installed: no TPE", flush=True)
        else:
            found[name], lost[name] = result
        say(name)
    searched = job.search(args.steps)
    found["--autotune:"], sentence = searched.flags, searched.sentence
    say(sentence)
    chosen = compared(job, list(found.values()), time.monotonic() + (0 if args.quick else 60 * args.again), say)
    print(f"\n{len(choices)} choices of a grid, its best three and its worst; then what each search chose, compared anew\n\n"
          "| settings | time | |\n|---|---|---|")
    for pair in [*best[:3], best[-1]]:
        print(row(*pair))
    for (name, flags), ratios in zip(found.items(), chosen):
        print(row([name, *flags], ratios))
    print(f"\n{verdict(chosen[0], chosen[-1])}\n")
    print(costs(job, 3 if args.quick else args.cost_rounds, 60 if args.quick else 200))
    for name, tried in lost.items():
        print(f"{name} a mean trial took {statistics.mean(tried):.2f} of the time of the defaults, the worst {max(tried):.2f}")
    print(f"\n{sentence}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--python", default=sys.executable, help="of the ranks, with NumPy (this one)")
    parser.add_argument("--minutes", type=float, default=20, help="for the grids of all layouts together (20)")
    parser.add_argument("--steps", type=int, default=1500, help="of the job with --autotune (1500)")
    parser.add_argument("--trials", type=int, default=16, help="of the other searches (16); 0: none")
    parser.add_argument("--coarse", action="store_true", help="the ends and the middle of each axis instead of the whole grid")
    parser.add_argument("--again", type=float, default=2, help="minutes to compare the choices of all searches anew (2)")
    parser.add_argument("--cost-rounds", type=int, default=10, help="rounds of what --autotune costs (10)")
    parser.add_argument("--quick", action="store_true", help="coarse grids and few rounds: shows that it works")
    parser.add_argument("--only", help="layouts whose name contains this")
    args = parser.parse_args()
    chosen = {name: layout for name, layout in LAYOUTS.items() if not args.only or args.only in name}
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; time of a step over that with the defaults", flush=True)
    for name, (layout, axes) in chosen.items():
        print(f"\n{name}", flush=True)
        until = time.monotonic() + 60 * args.minutes / len(chosen)
        measure(Job(args, layout), axes, args, until, lambda text: print(text, file=sys.stderr, flush=True))


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"tuning.py: {failure}")
