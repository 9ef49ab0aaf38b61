"""A training step with PyTorch: horovod.torch beside DistributedDataParallel over Gloo and beside the same step without an
exchange, for the gradients of a ResNet-50 and of GPT-2, and for tensors so small that only the cost of each is left.

One job of two processes holds all three and takes turns (torch_step_rank.py), so that all meet the same machine. Exchange is what a
step takes longer than the one without. Of the reduction there is a figure of its own: an allreduce of the same gradients, nothing else."""
import json
import os
import statistics
import sys
import tempfile
import time

import processes
from elastic import has_torch
from processes import Failed

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_step_rank.py")
RANKS = 2
STEPS = {"ResNet-50": 5, "GPT-2": 2, "small": 40}  # of a block
SHARE = {"ResNet-50": 0.35, "GPT-2": 0.55, "small": 0.1}  # of the time
DEADLINE = 240
GOAL_SHARE = 0.05  # of a step, with set_to_none=True
GOAL_REDUCTION = 1.1  # times the reduction alone, with set_to_none=False


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


class TorchStep:
    """The part of bench.py."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        self.found, self.left_out = [], ""

    def command(self, name, seconds, folder):
        return [f"{self.args.bin_dir}/hvdrun", "-np", str(RANKS), "--prefix", "", self.args.python, RANK, name, str(STEPS[name]),
                str(self.args.rounds), f"{seconds:.1f}", os.path.join(folder, "meeting")]

    def measure(self):
        if not has_torch(self.args.python):
            self.left_out = f"{self.args.python} has no PyTorch; name one that has by --python"
            return
        names = list(SHARE)
        for place, name in enumerate(names):
            now = time.monotonic()
            seconds = max(0.0, self.until - now) * SHARE[name] / sum(SHARE[later] for later in names[place:])
            self.progress.say(f"PyTorch step, {name}")
            self.found.append(self._run(name, seconds))

    def _run(self, name, seconds):
        with tempfile.TemporaryDirectory() as folder:
            command = self.command(name, seconds, folder)
            outcome = processes.run(command, DEADLINE + seconds)
        lines = [line for line in outcome.stdout.splitlines() if line.startswith("{")]
        if not outcome.ok or len(lines) != 1:
            raise Failed(f"{' '.join(command)} ended with {outcome.code}: {(outcome.stderr or outcome.stdout).strip()[-2000:]}")
        return json.loads(lines[0])

    def rows(self):
        for found in self.found:
            for set_to_none in (True, False):
                alone, ours, ddp = (found["seconds"][f"{way} {set_to_none}"] for way in ("alone", "ours", "ddp"))
                extra = [a - b for a, b in zip(ours, alone)]
                reduction = found["seconds"]["reduction"]
                yield {"set": found["set"], "tensors": found["tensors"], "bytes": found["bytes"], "set_to_none": set_to_none,
                       "rounds": len(ours), "seconds": {"alone": spread(alone), "ours": spread(ours), "ddp": spread(ddp)},
                       "ratio": spread([b / a for a, b in zip(ours, ddp)]), "extra": spread(extra),
                       "ddp_extra": spread([a - b for a, b in zip(ddp, alone)]),
                       "share": spread([a / b for a, b in zip(extra, alone)]), "reduction": spread(reduction)}

    @staticmethod
    def verdict(row):
        if row["set"] == "small":
            return f"{1e6 * row['extra']['median'] / row['tensors']:.1f} us a tensor"
        if row["set_to_none"]:
            share = row["share"]["median"]
            return f"goal {GOAL_SHARE:.0%} of the step: " + ("met" if share <= GOAL_SHARE else "missed")
        times = row["extra"]["median"] / row["reduction"]["median"]
        return f"{times:.2f} of the reduction, goal {GOAL_REDUCTION:g}: " + ("met" if times <= GOAL_REDUCTION else "missed")

    def report(self):
        if self.left_out:
            print(f"\nPyTorch step: left out, {self.left_out}")
            return {"left_out": self.left_out}
        rows = list(self.rows())
        print(f"\nPyTorch {self.found[0]['torch'] if self.found else '-'} step, {RANKS} processes of {self.found[0]['threads'] if self.found else '-'} thread(s), "
              f"SGD; DistributedDataParallel over Gloo with gradients as views of its buckets; ms, medians; load {os.getloadavg()[0]:.1f}")
        print(f"  {'gradients':<10}  {'set_to_none':<11}  {'alone':>8}  {'ours':>8}  {'DDP':>8}  {'DDP/ours':>8}  {'range':>11}  "
              f"{'exchange: ours':>14}  {'of a step':>9}  {'DDP':>8}  {'reduction':>9}  {'rounds':>6}")
        for row in rows:
            ms = {name: 1e3 * values["median"] for name, values in row["seconds"].items()}
            span = f"{row['ratio']['low']:.2f}-{row['ratio']['high']:.2f}"
            print(f"  {row['set']:<10}  {str(row['set_to_none']):<11}  {ms['alone']:>8.2f}  {ms['ours']:>8.2f}  {ms['ddp']:>8.2f}  "
                  f"{row['ratio']['median']:>8.2f}  {span:>11}  {1e3 * row['extra']['median']:>14.2f}  {row['share']['median']:>9.1%}  "
                  f"{1e3 * row['ddp_extra']['median']:>8.2f}  {1e3 * row['reduction']['median']:>9.2f}  {row['rounds']:>6}  {self.verdict(row)}")
        return {"torch": self.found[0]["torch"], "threads": self.found[0]["threads"], "rows": rows, "seconds": self.found, "load": os.getloadavg()[0]}


if __name__ == "__main__":
    sys.exit("a part of bench.py: scripts/bench.sh --only torch_step")
