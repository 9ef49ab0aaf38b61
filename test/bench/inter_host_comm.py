#!/usr/bin/env python3
"""Allreduce between leaders over TCP on loopback: libhvd_gloo beside stock Gloo and Open MPI, interleaved. Prints ratios;
fails when something failed or a sum was wrong, never because something was slow."""
import argparse
import os
import shutil
import statistics
import sys
import time

import openmpi
import processes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = [65536, 1 << 20, 8 << 20, 64 << 20]
OVER_TCP = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]


def run(command, env=None, deadline=300):
    """Bytes -> microseconds."""
    outcome = processes.run(command, deadline, env=env)
    if not outcome.ok:
        raise processes.Failed(f"{' '.join(command)} ended with {outcome.code}: {outcome.stderr[-500:]}")
    return {int(size): float(us) for size, us in (line.split() for line in outcome.stdout.splitlines())}


def commands(ranks, sizes, bench):
    words = [str(size) for size in sizes]
    cross = os.path.join(bench, "cross_perf")
    yield "ours", [cross, "auto", str(ranks), *words], None
    yield "Gloo", [cross, "stock", str(ranks), *words], None
    mpi = os.path.join(bench, "cross_mpi_perf")
    if os.access(mpi, os.X_OK) and shutil.which("mpirun"):
        yield "Open MPI", openmpi.command(ranks, [mpi, *words], OVER_TCP), openmpi.ENVIRONMENT


def measure(ranks, sizes, rounds, bench, progress, until=float("inf")):
    """Name -> bytes -> microseconds of each round."""
    times = {}
    for number in range(rounds):
        if number > 0 and time.monotonic() > until:
            break
        for name, command, env in commands(ranks, sizes, bench):
            progress.say(f"{ranks} processes over TCP, round {number + 1} of {rounds}, {name}")
            for size, us in run(command, env).items():
                times.setdefault(name, {}).setdefault(size, []).append(us)
    progress.clear()
    return times


def ratios(ours, theirs):
    """Of each round, ascending."""
    return sorted(their / our for our, their in zip(ours, theirs))


def show(ranks, times):
    peers = [name for name in times if name != "ours"]
    rounds = len(next(iter(times["ours"].values())))
    print(f"\nAllreduce between leaders, float32 sum, {ranks} processes over TCP on loopback; {rounds} rounds; "
          f"times of peers by ours, above 1 is good")
    print(f"{'bytes':>10} {'ours us':>10}" + "".join(f" {name:>22}" for name in peers))
    for size, ours in times["ours"].items():
        cells = ""
        for name in peers:
            each = ratios(ours, times[name][size])
            cells += f" {f'{statistics.median(each):.2f} ({each[0]:.2f}-{each[-1]:.2f})':>22}"
        print(f"{size:>10} {statistics.median(ours):>10.0f}" + cells)


class InterHostComm:
    """The part of bench.py: two processes, since stock Gloo stalls where there are more than cores."""

    RANKS = 2

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        self.times = {}

    def measure(self):
        if os.access(os.path.join(self.args.bench_dir, "cross_perf"), os.X_OK):
            self.times = measure(self.RANKS, SIZES, self.args.rounds, self.args.bench_dir, self.progress, self.until)

    def report(self):
        if not self.times:
            print("\nAllreduce between leaders: left out, no cross_perf (libgloo-dev was missing when this was built)")
            return None
        show(self.RANKS, self.times)
        return {"ranks": self.RANKS, "us": self.times, "ratios": {
            name: {size: statistics.median(ratios(self.times["ours"][size], times[size])) for size in times}
            for name, times in self.times.items() if name != "ours"}}


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], help="processes (2 4)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="bytes")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (5)")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"), metavar="DIR",
                        help="the build to measure (build)")
    args = parser.parse_args(argv)
    progress = processes.Progress()
    try:
        for ranks in args.ranks:
            bench = os.path.join(args.build_dir, "bench")
            show(ranks, measure(ranks, args.sizes, args.rounds, bench, progress))
    except processes.Failed as failed:
        print(f"FAILED: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
