#!/usr/bin/env python3
"""Allreduce between leaders over TCP on loopback: libhvd_gloo beside stock Gloo and Open MPI, interleaved. Prints ratios;
fails when something failed or a sum was wrong, never because something was slow."""
import argparse
import os
import shutil
import statistics
import sys

import openmpi
import processes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = [65536, 1 << 20, 8 << 20, 64 << 20]
OVER_TCP = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]


def run(command, env=None):
    """Bytes -> microseconds."""
    outcome = processes.run(command, 300, env=env)
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


def measure(ranks, sizes, rounds, bench, progress):
    """Name -> bytes -> microseconds of each round."""
    times = {}
    for number in range(rounds):
        for name, command, env in commands(ranks, sizes, bench):
            progress.say(f"{ranks} processes, round {number + 1} of {rounds}, {name}")
            for size, us in run(command, env).items():
                times.setdefault(name, {}).setdefault(size, []).append(us)
    progress.clear()
    return times


def ratio(ours, theirs):
    """Median of the rounds' ratios, with their range."""
    each = sorted(their / our for our, their in zip(ours, theirs))
    return f"{statistics.median(each):6.2f} ({each[0]:.2f}-{each[-1]:.2f})"


def show(ranks, times):
    peers = [name for name in times if name != "ours"]
    print(f"allreduce, float32 sum, {ranks} processes over TCP on loopback; times of peers by ours, above 1 is good")
    print(f"{'bytes':>10} {'ours us':>10}" + "".join(f" {name:>22}" for name in peers))
    for size, ours in times["ours"].items():
        cells = "".join(f" {ratio(ours, times[name][size]):>22}" for name in peers)
        print(f"{size:>10} {statistics.median(ours):>10.0f}" + cells)


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
