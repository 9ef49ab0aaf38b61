"""The cost of an allreduce through Python, for a lone call and for large ones: hvd.allreduce_ beside mpi4py, at the best setting of
Open MPI for each size, beside torch.distributed over Gloo, and beside itself by ctypes. Two ranks with a core each, interleaved A B C C B A."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import openmpi
import processes
from elastic import has_torch
from processes import Failed

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_calls_rank.py")
RANKS = 2
SIZES = (4, 8192, 1 << 20, 16 << 20, 64 << 20)
LOOPS = 3
MOST_ROUNDS = 2000  # calls of a loop
DEADLINE = 180
PROBE = ("import mpi4py, numpy; mpi4py.rc.initialize = False; from mpi4py import MPI; "
         "assert MPI.Get_library_version().startswith('Open MPI')")


def with_mpi4py(python):
    """The first interpreter that has mpi4py over Open MPI: it need not be the one that has PyTorch."""
    for candidate in dict.fromkeys((python, sys.executable, "/usr/bin/python3")):
        try:
            if subprocess.run([candidate, "-c", PROBE], capture_output=True).returncode == 0:
                return candidate
        except OSError:
            pass
    return None


class PythonCalls:
    """The part of bench.py."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        self.times = {}  # side -> bytes -> us of each run
        self.names, self.left_out, self.left_out_settings = {}, [], []
        self.sides = {}  # name -> (command for sizes, loops and a file; environment)
        self.sizes_of = {}

    def _prepare(self):
        hvdrun = [f"{self.args.bin_dir}/hvdrun", "-np", str(RANKS), "--prefix", ""]

        def by_hvdrun(side):
            return lambda sizes, loops, file: [*hvdrun, self.args.python, RANK, side, str(loops), str(MOST_ROUNDS), file, *map(str, sizes)]

        def by_mpirun(python, setting):
            return lambda sizes, loops, file: openmpi.command(
                RANKS, [python, RANK, "mpi4py", str(loops), str(MOST_ROUNDS), file, *map(str, sizes)], setting.flags, ["--bind-to", "none"])

        self.sides["ours"] = by_hvdrun("ours"), None
        if has_torch(self.args.python):
            self.sides["gloo"] = by_hvdrun("gloo"), None
            self.sides["ctypes"] = by_hvdrun("ctypes"), None
        else:
            self.left_out.append(f"torch.distributed: {self.args.python} has no PyTorch")
        python = with_mpi4py(self.args.python) if self.args.peer else None
        if python:
            settings, self.left_out_settings = openmpi.settings_in_force(RANKS, self.args.bench_dir)
            for setting in settings:
                self.sides[setting.name] = by_mpirun(python, setting), openmpi.ENVIRONMENT
        elif self.args.peer:
            self.left_out.append("mpi4py: no interpreter here has it over Open MPI (Debian: python3-mpi4py)")
        else:
            self.left_out.append("mpi4py: Open MPI is left out")

    def _run(self, side, sizes, loops):
        make, env = self.sides[side]
        with tempfile.TemporaryDirectory() as folder:
            command = make(sizes, loops, os.path.join(folder, "meeting"))
            outcome = processes.run(command, DEADLINE, env=env)
        lines = [json.loads(line) for line in outcome.stdout.splitlines() if line.startswith("{")]
        if not outcome.ok or {line["bytes"] for line in lines} != set(sizes):
            raise Failed(f"{' '.join(command)} ended with {outcome.code}: {(outcome.stderr or outcome.stdout).strip()[-2000:]}")
        self.names[side] = lines[0]["name"]
        return {line["bytes"]: line["us"] for line in lines}

    def _mpi(self):
        return [side for side in self.sides if side not in ("ours", "ctypes", "gloo")]

    def measure(self):
        self._prepare()
        found = {}
        for side in self._mpi():
            self.progress.say(f"calls through Python: looking at Open MPI '{side}'")
            found[side] = self._run(side, SIZES, 1)
        self.sizes_of = {"ours": SIZES, "ctypes": SIZES, "gloo": SIZES, **openmpi.worth_all_rounds(found)}
        order = [side for side in self.sides if self.sizes_of[side]]
        for turn in range(self.args.rounds):
            if turn > 0 and time.monotonic() > self.until:
                break
            for side in [*order, *reversed(order)]:
                self.progress.say(f"calls through Python, round {turn + 1} of {self.args.rounds}: {side}")
                for size, us in self._run(side, self.sizes_of[side], LOOPS).items():
                    self.times.setdefault(side, {}).setdefault(size, []).append(us)

    def rows(self):
        for size in SIZES:
            ours = self.times["ours"][size]
            row = {"bytes": size, "us": statistics.median(ours), "runs": len(ours), "peers": {}}
            mpi = {side: self.times[side][size] for side in self._mpi() if size in self.times.get(side, {})}
            best = min(mpi, key=lambda side: statistics.median(mpi[side])) if mpi else None
            for peer, side in (("mpi4py", best), ("torch.distributed", "gloo"), ("ours by ctypes", "ctypes")):
                if side in self.times:
                    theirs = self.times[side][size]
                    ratios = [b / a for a, b in zip(ours, theirs) if a > 0]
                    if ratios:
                        row["peers"][peer] = {"us": statistics.median(theirs), "ratio": statistics.median(ratios),
                                              "low": min(ratios), "high": max(ratios), "setting": side}
            yield row

    def report(self):
        rows = list(self.rows())
        print(f"\nhvd.allreduce_ through Python, float32 sum, {RANKS} ranks, one core each, private memory, result read back; medians of "
              f"{rows[0]['runs']} runs, times of peers by ours; load {os.getloadavg()[0]:.1f}")
        print(f"  ours: {self.names['ours']}; peers: {', '.join(sorted({n for s, n in self.names.items() if s != 'ours'})) or 'none'}")
        for words in self.left_out:
            print(f"  left out: {words}")
        if self.left_out_settings:
            print(f"  Open MPI settings that do not come into force here, left out: {', '.join(self.left_out_settings)}")
        for row in rows:
            cells = "".join(f"  {name} {peer['us']:.1f} us, {peer['ratio']:.2f} ({peer['low']:.2f}-{peer['high']:.2f})"
                            + (f" {peer['setting']}" if name == "mpi4py" else "") for name, peer in row["peers"].items())
            print(f"  {row['bytes']:>9} B  ours {row['us']:>10.1f} us{cells}")
        return {"rows": rows, "names": self.names, "left_out": self.left_out, "load": os.getloadavg()[0]}


if __name__ == "__main__":
    sys.exit("a part of bench.py: scripts/bench.sh --only python_calls")
