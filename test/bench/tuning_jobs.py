"""Whether --autotune finds what an exhaustive grid finds, and what it costs: one run for each job, in which the points of the grid, the
search and the defaults take turns. Jobs are sets of gradients over ranks of this host, and over hosts that are network namespaces with
shaped links (shaped_hosts.py; these need root).

Run by itself. For each job: the grid, then its best points and the choice of --autotune measured anew in turns, the verdict, and for
jobs of one host what --autotune costs in the first 200 steps. Times are those over the defaults of the same round, medians with an
interval of 95 %."""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass

import tuning
from budget import Budget
from processes import Failed
from shaped_hosts import WHY_NOT, ShapedHosts
from timeline import interval
from tuning_hosts import GRID, WINDOWS, HostsJob

MOST_STEPS = 80   # of a search
COST_STEPS = 200  # in which --autotune may cost COST_GOAL
COST_GOAL = 1.01
FINALISTS = 3     # points of the grid that are measured anew
FINAL_ROUNDS = (5, 25)  # the fewest, the most
COST_ROUNDS = (4, 40)
BASE_EACH = 3  # after so many points of the grid the defaults are run again
CHOICE = "--autotune's choice"
ONE_HOST_GRID = {"--chunk-kib": (32, 128, 512, 2048), "--wait-spins": (20, 400, 8000)}
BUSY_HOST_GRID = {"--chunk-kib": (32, 128, 512, 2048), "--wait-yields": (5, 50, 500)}


@dataclass(frozen=True)
class Work:
    """One job of the table."""
    which: str  # of gradient_sets.py
    ranks: int
    link: str = ""  # of shaped_hosts.py, one rank on each host; "": one host

    @property
    def name(self):
        place = f"{self.ranks} hosts, {self.link}" if self.link else f"{self.ranks} ranks on one host, shared memory"
        return f"{self.which}, {place}"

    def grid(self):
        if self.link:
            return GRID
        return ONE_HOST_GRID if self.ranks <= (os.cpu_count() or 1) else BUSY_HOST_GRID


SLOW, LOSSY = "1 Gbit/s, 5 ms", "1 Gbit/s, 1 ms, 0.01 % lost, Reno"
MODELS = ("ResNet-50", "GPT-2, scaled")
WORKS = [*(Work(which, 2, link) for link in (LOSSY, SLOW) for which in MODELS), *(Work(which, ranks) for ranks in (2, 4) for which in MODELS),
         *(Work(which, count, SLOW) for count in (3, 4) for which in reversed(MODELS))]


def summary(values):
    low, high = interval(values)
    return {"median": statistics.median(values), "low": low, "high": high, "runs": len(values)}


def said(found):
    return f"{found['median']:.3f} ({found['low']:.3f} to {found['high']:.3f}, {found['runs']} rounds)"


class Contest:
    """The points of a grid and the choice of a search, each beside the defaults of its own round."""

    def __init__(self, job, points, say):
        self.job, self.points, self.say = job, [tuple(point) for point in points], say
        self.base = []  # microseconds of all runs of the defaults
        self.ratios = {point: [] for point in self.points}

    def defaults(self):
        self.base.append(self.job.step([]))
        return self.base[-1]

    def explore(self, rounds, search):
        """The whole grid in rounds; `search` runs in the middle of the first, and is returned."""
        found = None
        for number in range(rounds):
            order = self.points if number % 2 == 0 else self.points[::-1]
            before = self.defaults()
            parts = [order[first:first + BASE_EACH] for first in range(0, len(order), BASE_EACH)]
            for place, part in enumerate(parts):
                if found is None and place == len(parts) // 2:
                    found = search()
                    self.say(found.sentence)
                    before = self.defaults()
                us = {point: self.job.step(point) for point in part}
                after = self.defaults()
                for point, taken in us.items():
                    self.ratios[point].append(2 * taken / (before + after))
                before = after
            self.say(f"round {number + 1} of {rounds} of the grid: the defaults take {before / 1e3:.1f} ms")
        return found

    def best(self):
        return sorted(self.points, key=lambda point: statistics.median(self.ratios[point]))

    def final(self, choice, until):
        """The best of the grid and the choice anew, forwards and backwards, by name."""
        least, most = FINAL_ROUNDS
        names = {CHOICE: tuple(choice), **{" ".join(point): point for point in self.best()[:FINALISTS]}}
        ratios = {name: [] for name in names}
        while len(ratios[CHOICE]) < least or (len(ratios[CHOICE]) < most and time.monotonic() < until):
            order = list(names) if len(ratios[CHOICE]) % 2 == 0 else list(names)[::-1]
            before = self.defaults()
            us = {name: self.job.step(names[name]) for name in order}
            base = (before + self.defaults()) / 2
            for name, taken in us.items():
                ratios[name].append(taken / base)
            self.say(f"round {len(ratios[CHOICE])} of {least} to {most}: {len(names)} choices anew")
        return ratios


def verdict(ratios, steps):
    """Whether the choice is as good as the best of the grid as far as these rounds tell, within the steps that a search may have."""
    choice = summary(ratios[CHOICE])
    best = min((name for name in ratios if name != CHOICE), key=lambda name: statistics.median(ratios[name]))
    top = summary(ratios[best])
    beside = summary([ours / theirs for ours, theirs in zip(ratios[CHOICE], ratios[best])])
    overlap, better = max(choice["low"], top["low"]) <= min(choice["high"], top["high"]), choice["high"] < top["low"]
    slower = beside["low"] > 1  # wide intervals overlap easily; the rounds themselves may tell
    words = "the choice is better" if better else "the choice is WORSE" if not overlap else "the intervals overlap"
    words += ", but in the same rounds the choice is SLOWER" if overlap and slower else ""
    words += "" if better or slower else f" (they leave up to {100 * beside['high'] - 100:.0f} % open)"
    words += f", {steps} steps" if steps <= MOST_STEPS else f", but TOO LATE: {steps} steps"
    return {"best": best, "of_best": top, "choice": choice, "choice_over_best": beside, "steps": steps,
            "holds": (better or (overlap and not slower)) and steps <= MOST_STEPS, "words": words}


def cost_by_windows(rows, steps):
    """The time of the first steps of a tuned run over that of as many like its own windows with the defaults; None where it has none. The
    warm-up counts as one with the defaults, which it has: its first steps are slow in any run."""
    def settings(row):
        return {name: value for name, value in row.items() if name not in ("score", "kind", "steps", "step_ms", "predicted_ms")}

    windows = [(int(row["steps"]), float(row["step_ms"]), settings(row) == settings(rows[0])) for row in rows if row["kind"] != "warm-up"]
    taken = sum(int(row["steps"]) for row in rows if row["kind"] == "warm-up")
    base, others = [], []  # milliseconds of steps
    for count, step_ms, has_defaults in windows:
        if taken + count > steps:
            break
        taken += count
        (base if has_defaults else others).extend([step_ms] * count)
    if not base:
        return None
    return 1 + sum(step_ms / statistics.mean(base) - 1 for step_ms in others) / taken


def costs(job, until, say, steps):
    """Ratios of the mean step, --autotune over plain: runs beside each other, and windows of the tuned runs beside their own defaults."""
    (least, most), beside, windows = COST_ROUNDS, [], []
    while len(beside) < least or (len(beside) < most and time.monotonic() < until):
        us = {}
        for tuned in (False, True) if len(beside) % 2 == 0 else (True, False):
            with tempfile.TemporaryDirectory() as folder:
                log = os.path.join(folder, "log.csv")
                flags = ["--autotune", "--no-autotune-memory", "--autotune-log-file", log] if tuned else []
                us[tuned] = job.run(flags, steps)[0]["mean_us"]
                if tuned and os.path.exists(log):
                    windows.append(cost_by_windows(tuning.log_rows(log), steps))
        beside.append(us[True] / us[False])
        say(f"round {len(beside)} of {least} to {most}: {steps} steps with --autotune and without: {beside[-1]:.3f}")
    windows = [ratio for ratio in windows if ratio is not None]
    found = {"steps": steps, "beside": summary(beside), "by_windows": summary(windows) if windows else None}
    low, high = found["beside"]["low"], found["beside"]["high"]
    found["words"] = "at most 1 %" if high <= COST_GOAL else "MORE than 1 %" if low > COST_GOAL else "these rounds do not tell whether it is 1 %"
    return found


def measure(work, job, args, until, say):
    """All figures of one job, for --json."""
    load, begin = os.getloadavg()[0], time.monotonic()
    contest = Contest(job, tuning.grid(tuning.coarse(work.grid()) if args.quick else work.grid()), say)
    found = contest.explore(args.rounds, lambda: job.search(args.search_steps, WINDOWS))
    left = max(0.0, until - time.monotonic())
    ratios = contest.final(found.flags, time.monotonic() + left / (1 if work.link else 2))
    result = {"name": work.name, "set": work.which, "ranks": work.ranks, "link": work.link, "steps_of_a_run": job.steps,
              "load": [load, os.getloadavg()[0]], "defaults_ms": summary([us / 1e3 for us in contest.base]),
              "grid": [{"flags": " ".join(point), **summary(contest.ratios[point])} for point in contest.best()],
              "search": {"flags": " ".join(found.flags), "sentence": found.sentence, "windows": found.rows}, "verdict": verdict(ratios, found.steps())}
    if not work.link:
        result["cost"] = costs(job, until, say, 60 if args.quick else COST_STEPS)
    result["load"][1] = os.getloadavg()[0]
    return {**result, "seconds": time.monotonic() - begin}


def lines(result):
    """The figures of one job as they are printed."""
    defaults, found = result["defaults_ms"], result["verdict"]
    yield f"\n## {result['name']}\n"
    yield (f"Defaults {defaults['median']:.1f} ms a step ({defaults['low']:.1f} to {defaults['high']:.1f}, {defaults['runs']} runs of "
           f"{result['steps_of_a_run']} steps), load {result['load'][0]:.0f} to {result['load'][1]:.0f}, {result['seconds']:.0f} s\n")
    yield "| settings | time of the defaults |\n|---|---|"
    for row in result["grid"]:
        yield f"| `{row['flags']}` | {said(row)} |"
    yield f"\nAnew, in turns:\n\n| settings | time of the defaults |\n|---|---|\n| the grid's best, `{found['best']}` | {said(found['of_best'])} |"
    yield f"| {CHOICE}, `{result['search']['flags']}` | {said(found['choice'])} |"
    yield f"| the choice over the grid's best | {said(found['choice_over_best'])} |\n"
    yield f"VERDICT: {'holds' if found['holds'] else 'does not hold'}: {found['words']}"
    if "cost" in result:
        cost = result["cost"]
        own = f"; by its own windows {said(cost['by_windows'])}" if cost["by_windows"] else ""
        yield f"COST of the first {cost['steps']} steps: {said(cost['beside'])} of a plain job's{own}: {cost['words']}"
    yield result["search"]["sentence"]


def table(results):
    """One row for each job."""
    yield ("\n| job | defaults, ms | the grid's best | --autotune's choice | steps | verdict | first 200 steps |\n"
           "|---|---|---|---|---|---|---|")
    for result in results:
        found, cost = result["verdict"], result.get("cost")
        yield (f"| {result['name']} | {result['defaults_ms']['median']:.0f} | `{found['best']}` {said(found['of_best'])} | "
               f"`{result['search']['flags']}` {said(found['choice'])} | {found['steps']} | {'holds' if found['holds'] else 'does not hold'} | "
               f"{said(cost['beside']) if cost else '-'} |")


class Rigs:
    """Jobs of works; hosts and their links are kept while the next work needs the same."""

    def __init__(self, args, folder):
        self.args, self.folder, self.hosts, self.link = args, folder, None, None

    def job(self, work):
        if not work.link:
            job = tuning.Job(self.args, ["-np", str(work.ranks)], work.which)
            job.steps = self.args.steps
            return job
        if self.hosts is None or self.hosts.count != work.ranks:
            self.down()
            self.hosts = ShapedHosts(pathlib.Path(tempfile.mkdtemp(dir=self.folder)), work.ranks, pathlib.Path(self.args.bin_dir).parent)
        if self.link != work.link:
            self.hosts.shape(work.link)
            self.link = work.link
        job = HostsJob(self.args, self.hosts, work.which)
        job.steps = self.args.steps_between_hosts
        return job

    def down(self):
        if self.hosts:
            self.hosts.down()
        self.hosts = self.link = None


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", default=os.path.join(tuning.ROOT, "build", "bin"))
    parser.add_argument("--python", default="/usr/bin/python3", help="of the ranks, with NumPy (/usr/bin/python3)")
    parser.add_argument("--minutes", type=float, default=90, help="for all jobs together (90); each makes its fewest rounds in any case")
    parser.add_argument("--rounds", type=int, default=2, help="of each grid (2)")
    parser.add_argument("--steps", type=int, default=25, help="of each run on one host (25)")
    parser.add_argument("--steps-between-hosts", type=int, default=5, help="of each run over hosts (5)")
    parser.add_argument("--search-steps", type=int, default=120, help="of the job with --autotune (120)")
    parser.add_argument("--only", nargs="+", default=[""], help="jobs whose name contains one of these")
    parser.add_argument("--list", action="store_true", help="names the jobs and ends")
    parser.add_argument("--json", help="file for all figures, written after each job")
    parser.add_argument("--quick", action="store_true", help="coarse grids and few rounds: shows that it works")
    parser.set_defaults(always=[])
    args = parser.parse_args(argv)
    if args.quick:
        args.rounds, args.minutes = 1, 0
    return args


def say(text):
    print(text, file=sys.stderr, flush=True)


def write(path, results, failures):
    if not path:
        return
    figures = {"date": f"{datetime.date.today():%d %B %Y}", "cores": os.cpu_count(), "jobs": results, "failures": failures}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=1)


def main(argv=None, works=None):
    args = parse(argv)
    works = [work for work in works or WORKS if any(part in work.name for part in args.only)]
    if args.list:
        print("\n".join(work.name for work in works))
        return 0
    if WHY_NOT and any(work.link for work in works):
        print(f"jobs over hosts are left out: {WHY_NOT}")
        works = [work for work in works if not work.link]
    budget = Budget({work: 1 for work in works}, args.minutes)
    results, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        rigs = Rigs(args, folder)
        try:
            for number, work in enumerate(works):
                say(f"job {number + 1} of {len(works)}: {work.name}")
                try:
                    results.append(measure(work, rigs.job(work), args, budget.until(work), say))
                    print("\n".join(lines(results[-1])), flush=True)
                except (Failed, OSError) as failure:
                    failures.append(f"{work.name}: {failure}")
                    print(f"\nFAILED: {failures[-1]}", flush=True)
                write(args.json, results, failures)
        finally:
            rigs.down()
    print("\n".join(table(results)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
