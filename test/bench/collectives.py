"""Broadcast, allgather, alltoall and reducescatter by size, in registered and in private memory, beside the best setting of Open MPI
for each size, interleaved A B C C B A. The allreduce has a table of its own in bench.py."""
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
MOST_ROUNDS = 10000  # calls of a loop; of large sizes it has fewer


def figures_of(name, command, sizes, env=None):
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
    if not outcome.ok or {key[0] for key in figures} != set(sizes):
        raise Failed(f"{' '.join(command)} ended with {outcome.code}: {outcome.stderr.strip()[-2000:]}")
    return figures


class Collectives:
    def __init__(self, args, progress, until):
        self.args, self.progress, self.until, self.rows = args, progress, until, []
        self.left_out = []
        self.left_out_settings = []

    def measure(self):
        for place, name in enumerate(NAMES):
            if place > 0 and time.monotonic() > self.until:
                self.left_out.append(name)
                continue
            until = time.monotonic() + (self.until - time.monotonic()) / (len(NAMES) - place)
            self._measure(name, until)

    def _command(self, name, setting, sizes, loops):
        flags = ["--json", "--loops", str(loops), "--most-rounds", str(MOST_ROUNDS), "--pin", "--collective", name, "--sizes", ",".join(map(str, sizes))]
        if setting is None:
            return [f"{self.args.bin_dir}/hvdrun", "-np", str(RANKS), f"{self.args.bin_dir}/hvd_perf", "--registered", "--private", *flags]
        return openmpi.command(RANKS, [f"{self.args.bench_dir}/mpi_perf", "--private", *flags], setting.flags, ["--bind-to", "core"])

    def _scout(self, name):
        """The settings of the peer with the sizes for which each goes on."""
        if not self.args.peer:
            return {}, {}
        self.progress.say(f"{name}: which settings of Open MPI are in force?")
        settings, missing = openmpi.settings_in_force(RANKS, self.args.bench_dir, name)
        self.left_out_settings += [f"{name}: {setting}" for setting in missing]
        found = {}
        for setting in settings:
            self.progress.say(f"{name}: looking at Open MPI '{setting.name}'")
            taken = figures_of(setting.name, self._command(name, setting, SIZES, 1), SIZES, openmpi.ENVIRONMENT)
            found[setting.name] = {size: taken[size, False] for size in SIZES}
        sizes_of = openmpi.worth_all_rounds(found)
        return {setting.name: setting for setting in settings if sizes_of[setting.name]}, sizes_of

    def _measure(self, name, until):
        settings, sizes_of = self._scout(name)
        taken = {side: {} for side in ["ours", *settings]}
        for turn in range(self.args.rounds):
            if turn > 0 and time.monotonic() > until:
                break
            for side in [*taken, *reversed(taken)]:
                self.progress.say(f"{name}, round {turn + 1} of {self.args.rounds}: {side}")
                setting, sizes = settings.get(side), sizes_of.get(side, SIZES)
                command, env = self._command(name, setting, sizes, 3), openmpi.ENVIRONMENT if setting else None
                for key, us in figures_of(side, command, sizes, env).items():
                    taken[side].setdefault(key, []).append(us)
        ours = taken.pop("ours")
        for (size, registered), times in sorted(ours.items()):
            self.rows.append(self._row(name, size, registered, times, {
                side: figures[size, False] for side, figures in taken.items() if (size, False) in figures}))

    @staticmethod
    def _row(name, size, registered, times, theirs):
        row = {"collective": name, "bytes": size, "registered": registered, "runs": len(times), "us": statistics.median(times)}
        if theirs:
            best = min(theirs, key=lambda side: statistics.median(theirs[side]))
            row.update(peer_us=statistics.median(theirs[best]), peer_setting=best)
            ratios = [b / a for a, b in zip(times, theirs[best]) if a > 0]
            if ratios:
                row.update(ratio=statistics.median(ratios), ratio_low=min(ratios), ratio_high=max(ratios))
        return row

    def report(self):
        print(f"\nOther collectives, float32, {RANKS} ranks, one core each, result read back; interleaved, medians of so "
              f"many runs; private memory of Open MPI, the best of its settings for each size")
        if self.left_out:
            print(f"  SHORT: no time was left for {', '.join(self.left_out)}; give more --minutes")
        if self.left_out_settings:
            print(f"  Open MPI settings that do not come into force here, left out: {', '.join(self.left_out_settings)}")
        print(f"  {'collective':<13}  {'input':>10}  {'memory':<10}  {'ours':>12}  {'Open MPI':>12}  {'ratio':>6}  "
              f"{'range':>13}  {'runs':>4}  best setting")
        for row in self.rows:
            peer = f"{row['peer_us']:.2f} us" if "peer_us" in row else "-"
            ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
            span = f"{row['ratio_low']:.2f}-{row['ratio_high']:.2f}" if "ratio" in row else "-"
            memory = "registered" if row["registered"] else "private"
            ours = f"{row['us']:.2f} us"
            print(f"  {row['collective']:<13}  {row['bytes']:>8} B  {memory:<10}  {ours:>12}  {peer:>12}  "
                  f"{ratio:>6}  {span:>13}  {row['runs']:>4}  {row.get('peer_setting', '-')}")
        return self.rows
