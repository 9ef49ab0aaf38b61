"""The hvdrun of the wheel beside that of the build tree, in turns with the latter once more, which shows the noise: start of 8 ranks, the same with
init() and a barrier, an allreduce of 8 B and of 64 MiB between two ranks. installed.py [--wheel FILE] [--build-dir build] [--runs 21] [--json FILE]

Ratio: the time of the wheel by that of the build tree; *noise*: that of the build tree's second column by its first. Both have the programs of the
build tree that measure, since a wheel has none; the library that they load is each one's own."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import processes
from budget import there_and_back
from processes import Failed

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKS = 8
SIZES = (8, 64 << 20)
DEADLINE_S = 120
SIDES = ("wheel", "build", "again")


class Side:
    """A hvdrun and its library; `links` is an empty folder for the name by which programs look for it."""

    def __init__(self, hvdrun, library, links):
        self.hvdrun = str(hvdrun)
        links.mkdir()
        (links / "libhvd.so.1").symlink_to(library)
        self.env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HVD_RUNTIME", "HVDRUN")}
        self.env["LD_LIBRARY_PATH"] = str(links)

    def loads_its_own(self, program):
        said = subprocess.run(["ldd", program], env=self.env, capture_output=True, text=True, check=True).stdout
        if f"libhvd.so.1 => {self.env['LD_LIBRARY_PATH']}/libhvd.so.1 " not in said:
            raise Failed(f"{program} does not load the library in {self.env['LD_LIBRARY_PATH']}: {said}")

    def run(self, *command):
        outcome = processes.run([self.hvdrun, *map(str, command)], DEADLINE_S, env=self.env)
        if not outcome.ok:
            raise Failed(f"{self.hvdrun} {' '.join(map(str, command))} ended with {outcome.code}: {outcome.stderr.strip()[-2000:]}")
        return outcome


def started(*command):
    """Milliseconds from the start of hvdrun to its end."""
    return lambda side: side.run("-np", RANKS, "--prefix", "", *command).seconds * 1e3


def reduced(perf, size):
    """Microseconds of an allreduce, by the ranks' own clock."""

    def measure(side):
        out = side.run("-np", 2, "--prefix", "", perf, "--json", "--registered", "--pin", "--loops", 3, "--sizes", size).stdout
        rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        if not rows or not all(row["correct"] for row in rows):
            raise Failed(f"{side.hvdrun}: an allreduce of {size} bytes was wrong: {out[-500:]}")
        return rows[0]["us"]

    return measure


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def row(what, unit, measure, sides, runs, until):
    took = {name: [] for name in SIDES}
    for name, run in there_and_back(SIDES, runs, until):
        value = measure(sides[name])
        if run is not None:
            took[name].append(value)
    by_build = lambda name: spread([a / b for a, b in zip(took[name], took["build"])])
    return {"what": what, "unit": unit, "runs": len(took["build"]), "wheel": spread(took["wheel"]), "build": spread(took["build"]),
            "ratio": by_build("wheel"), "noise": by_build("again")}


def measured(args, folder):
    build = pathlib.Path(args.build_dir).resolve()
    env = {**os.environ, **({"HVD_WHEEL": args.wheel} if args.wheel else {})}
    installed = pathlib.Path(subprocess.run([sys.executable, ROOT / "test/installed.py", folder / "venv"], env=env, check=True,
                                            stdout=subprocess.PIPE, text=True).stdout.strip())
    package = next((folder / "venv/lib").glob("python3*/site-packages/horovod"))
    sides = {"wheel": Side(installed, package / "lib/libhvd.so", folder / "wheel")}
    sides["build"] = sides["again"] = Side(build / "bin/hvdrun", build / "lib/libhvd.so", folder / "build")
    perf, init = build / "bin/hvd_perf", build / "bench/init_hvd"
    for side in sides.values():
        side.loads_its_own(perf), side.loads_its_own(init)
    parts = [(f"start of {RANKS} `true`", "ms", started("true")), (f"start, `init()` and a barrier, {RANKS} ranks", "ms", started(init)),
             *((f"allreduce, 2 ranks, {size} B", "us", reduced(perf, size)) for size in SIZES)]
    for what, unit, measure in parts:
        yield row(what, unit, measure, sides, args.runs, time.monotonic() + args.minutes * 60 / len(parts))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", help="the file (default: the newest of dist/)")
    parser.add_argument("--build-dir", default=str(ROOT / "build"))
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory() as folder:
            print(f"load {os.getloadavg()[0]:.1f}; medians; ratio: the wheel by the build tree; noise: the build tree by itself")
            rows = []
            for made in measured(args, pathlib.Path(folder)):
                rows.append(made)
                number = lambda name: f"{made[name]['median']:.2f} ({made[name]['low']:.2f} to {made[name]['high']:.2f})"
                print(f"{made['what']}: wheel {made['wheel']['median']:.2f} {made['unit']}, build {made['build']['median']:.2f} {made['unit']}, "
                      f"ratio {number('ratio')}, noise {number('noise')}, {made['runs']} runs", flush=True)
    except Failed as failure:
        sys.exit(str(failure))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
