"""Broadcast, allgather, alltoall and reducescatter by size beside Open MPI's default setting, interleaved A B B A. The
allreduce has a table of its own in bench.py, against every setting of the peer."""
import json
import re
import statistics
import time

import openmpi
import processes
from processes import Failed

NAMES = ("broadcast", "allgather", "alltoall", "reducescatter")
SIZES = (64, 8192, 65536, 1 << 20, 16 << 20)  # bytes of each rank's input
RANKS = 2


def figures_of(name, command, env=None):
    """{(bytes, registered): us}, the result read back, of one run of the measuring loops."""
    outcome = processes.run(command, 120, env=env)
    figures = {}
    for line in outcome.stdout.splitlines():
        line = re.sub(r"^\[\d+\]<stdout>: ?", "", line)
        if line.startswith("{"):
            record = json.loads(line)
            if not record["correct"]:
                raise Failed(f"{name}: wrong result: {line}")
            if record["read_back"]:
                figures[record["bytes"], record["registered"]] = record["us"]
    if not outcome.ok or {key[0] for key in figures} != set(SIZES):
        raise Failed(f"{' '.join(command)} ended with {outcome.code}: {outcome.stderr.strip()[-2000:]}")
    return figures


class Collectives:
    def __init__(self, args, progress, until):
        self.args, self.progress, self.until, self.rows = args, progress, until, []
        self.left_out = []

    def measure(self):
        for place, name in enumerate(NAMES):
            if place > 0 and time.monotonic() > self.until:
                self.left_out.append(name)
                continue
            until = time.monotonic() + (self.until - time.monotonic()) / (len(NAMES) - place)
            flags = ["--json", "--loops", "3", "--pin", "--collective", name,
                     "--sizes", ",".join(map(str, SIZES))]
            ours = [f"{self.args.bin_dir}/hvdrun", "-np", str(RANKS), f"{self.args.bin_dir}/hvd_perf",
                    "--registered", "--private", *flags]
            peer = openmpi.command(RANKS, [f"{self.args.bench_dir}/mpi_perf", "--private", *flags],
                                   binding=["--bind-to", "core"])
            self._measure(name, ours, peer, until)

    def _measure(self, name, ours, peer, until):
        taken = {"ours": {}, "peer": {}}
        order = ["ours", "peer", "peer", "ours"] if self.args.peer else ["ours"]
        for turn in range(self.args.rounds):
            if turn > 0 and time.monotonic() > until:
                break
            for side in order:
                self.progress.say(f"{name}, round {turn + 1} of {self.args.rounds}: {side}")
                command, env = (ours, None) if side == "ours" else (peer, openmpi.ENVIRONMENT)
                for key, us in figures_of(side, command, env).items():
                    taken[side].setdefault(key, []).append(us)
        for (size, registered), times in sorted(taken["ours"].items()):
            row = {"collective": name, "bytes": size, "registered": registered, "runs": len(times),
                   "us": statistics.median(times)}
            theirs = taken["peer"].get((size, False))
            if theirs:
                ratios = [b / a for a, b in zip(times, theirs) if a > 0]
                row.update(peer_us=statistics.median(theirs))
                if ratios:
                    row.update(ratio=statistics.median(ratios), ratio_low=min(ratios), ratio_high=max(ratios))
            self.rows.append(row)

    def report(self):
        print(f"\nOther collectives, float32, {RANKS} ranks, one core each, result read back; A B B A, medians of so "
              f"many runs; Open MPI as it comes")
        if self.left_out:
            print(f"  SHORT: no time was left for {', '.join(self.left_out)}; give more --minutes")
        print(f"  {'collective':<13}  {'input':>10}  {'memory':<10}  {'ours':>12}  {'Open MPI':>12}  {'ratio':>6}  "
              f"{'range':>13}  {'runs':>4}")
        for row in self.rows:
            peer = f"{row['peer_us']:.2f} us" if "peer_us" in row else "-"
            ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
            span = f"{row['ratio_low']:.2f}-{row['ratio_high']:.2f}" if "ratio" in row else "-"
            memory = "registered" if row["registered"] else "private"
            ours = f"{row['us']:.2f} us"
            print(f"  {row['collective']:<13}  {row['bytes']:>8} B  {memory:<10}  {ours:>12}  {peer:>12}  "
                  f"{ratio:>6}  {span:>13}  {row['runs']:>4}")
        return self.rows
