"""The backend hvd of torch.distributed beside gloo: DistributedDataParallel over the gradients of a ResNet-50 and of GPT-2, FSDP2 over a
small GPT, an allreduce of 4 bytes, and DistributedDataParallel between two hosts; and what watching for hangs costs a step.

Both backends are groups of one job of two processes and take turns (torch_backends_rank.py), so that both meet the same machine. Exchange
is what a step takes longer than the same step without one. The two hosts are played by one machine, over TCP (--hosts-per-machine 2).
Watching cannot be switched in a job: jobs with it and without it take turns."""
import json
import math
import os
import statistics
import sys
import time

import processes
from elastic import has_torch
from processes import Failed

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_backends_rank.py")
RANKS = 2
DEADLINE = 300
WATCH_ROUNDS = 20
# name -> (arguments of the rank, flags of hvdrun, share of the time, what is compared, goal of ours by gloo's)
MEASURES = {
    "DDP, ResNet-50": (("ddp", "ResNet-50"), (), 0.2, "exchange", 1 / 3),
    "DDP, GPT-2": (("ddp", "GPT-2"), (), 0.3, "exchange", 1 / 5),
    "FSDP2, small GPT": (("fsdp", "-"), (), 0.15, "step", 1 / 2),
    "all_reduce, 4 B": (("tiny", "-"), (), 0.05, "step", None),
    "DDP, ResNet-50, two hosts": (("ddp", "ResNet-50"), ("--hosts-per-machine", "2"), 0.2, "step", 1.0),
}
GOAL_TINY_US = 20
# The rank writes nothing for this long, of which all but a quarter of the warning time is watched.
WATCHED_SECONDS, WARNING_SECONDS = 4, 2


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


class TorchBackends:
    """The part of bench.py."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        self.found, self.watched, self.left_out = {}, [], ""

    def measure(self):
        if not has_torch(self.args.python):
            self.left_out = f"{self.args.python} has no PyTorch; name one that has by --python"
            return
        left = 1.0
        for name, (arguments, flags, share, *_) in MEASURES.items():
            now = time.monotonic()
            seconds = max(0.0, self.until - now) * share / left
            left -= share
            self.progress.say(f"torch.distributed, {name}")
            found = self._run(flags, *arguments, str(self.args.rounds), f"{seconds:.1f}")
            if "left_out" in found:
                self.left_out = found["left_out"]
                return
            self.found[name] = found
        for turn in range(WATCH_ROUNDS):
            if turn and time.monotonic() > self.until:
                break
            self.progress.say(f"torch.distributed, watching, round {turn + 1}")
            ways = ("watched", "alone") if turn % 2 == 0 else ("alone", "watched")
            flags = {"watched": ("--stall-check-warning-time-seconds", str(WARNING_SECONDS)), "alone": ("--no-stall-check",)}
            self.watched.append({way: self._run(flags[way], "silent", "-", "1", str(WATCHED_SECONDS))["seconds"]["gloo"][0] for way in ways})

    def _run(self, flags, *arguments):
        command = [f"{self.args.bin_dir}/hvdrun", "-np", str(RANKS), "--prefix", "", *flags, self.args.python, RANK, *arguments]
        outcome = processes.run(command, DEADLINE + float(arguments[-1]))
        lines = [line for line in outcome.stdout.splitlines() if line.startswith("{")]
        if not outcome.ok or len(lines) != 1:
            raise Failed(f"{' '.join(command)} ended with {outcome.code}: {(outcome.stderr or outcome.stdout).strip()[-2000:]}")
        return json.loads(lines[0])

    def rows(self):
        for name, found in self.found.items():
            *_, compared, goal = MEASURES[name]
            seconds = found["seconds"]
            ours, gloo = seconds["hvd"], seconds["gloo"]
            if compared == "exchange":
                ours, gloo = ([max(step - alone, 1e-9) for step, alone in zip(steps, seconds["alone"])] for steps in (ours, gloo))
            ratio = spread([a / b for a, b in zip(ours, gloo)])
            row = {"what": name, "compared": compared, "ours": spread(ours), "gloo": spread(gloo), "ratio": ratio, "goal": goal,
                   "rounds": len(ours), "step": {way: statistics.median(times) for way, times in seconds.items()}}
            row["goal_text"] = f"{goal:.2f} of gloo's" if goal else f"{GOAL_TINY_US} us"
            row["is_met"] = ratio["median"] <= goal if goal else 1e6 * row["ours"]["median"] <= GOAL_TINY_US
            yield row
        if self.watched:
            ratios = [each["watched"] / each["alone"] for each in self.watched]
            yield {"what": "watching, a step over gloo", "compared": "step", "ours": spread([each["watched"] for each in self.watched]),
                   "gloo": spread([each["alone"] for each in self.watched]), "ratio": spread(ratios), "goal": None, "goal_text": "no difference",
                   "rounds": len(ratios), "is_met": self.shows_nothing(ratios), "step": {}}

    @staticmethod
    def shows_nothing(ratios):
        """Whether chance alone makes so many rounds, or more, slower with watching: a sign test, at 5 %."""
        count, slower = len(ratios), sum(ratio > 1 for ratio in ratios)
        return sum(math.comb(count, k) for k in range(slower, count + 1)) / 2 ** count > 0.05

    def report(self):
        if self.left_out:
            print(f"\ntorch.distributed, hvd beside gloo: left out, {self.left_out}")
            return {"left_out": self.left_out}
        rows, any_found = list(self.rows()), next(iter(self.found.values()))
        print(f"\ntorch.distributed, PyTorch {any_found['torch']}, {RANKS} processes of {any_found['threads']} thread(s): the backend hvd beside gloo; "
              f"medians; load {os.getloadavg()[0]:.1f}")
        print(f"  {'what':<27}  {'compared':<8}  {'hvd':>10}  {'gloo':>10}  {'hvd/gloo':>8}  {'range':>11}  {'rounds':>6}")
        for row in rows:
            span = f"{row['ratio']['low']:.2f}-{row['ratio']['high']:.2f}"
            print(f"  {row['what']:<27}  {row['compared']:<8}  {1e6 * row['ours']['median']:>7.0f} us  {1e6 * row['gloo']['median']:>7.0f} us  "
                  f"{row['ratio']['median']:>8.3f}  {span:>11}  {row['rounds']:>6}  goal {row['goal_text']}: {'met' if row['is_met'] else 'missed'}")
        return {"torch": any_found["torch"], "threads": any_found["threads"], "rows": rows, "seconds": self.found, "watched": self.watched,
                "load": os.getloadavg()[0]}


if __name__ == "__main__":
    sys.exit("a part of bench.py: scripts/bench.sh --only torch_backends")
