"""How much longer a script takes to start that imports horovod.torch after torch: processor time and wall time of the import, medians
over processes with bytecode in a cache. Where this user may, no other program gets the core meanwhile (SCHED_FIFO), so that the wall time
is the import's alone on a busy machine, too. Goal: 20 ms. --most MS: ends with 1 when the processor time is above, which load changes little.

    imports.py [--installed HVDRUN] [--most MS] [PYTHON] [PROCESSES]        # --installed: the horovod of that hvdrun, not the source tree's
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = """import os, time, torch
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    alone = 1
except OSError:
    alone = 0
wall, cpu = time.perf_counter(), time.process_time()
import horovod.torch
print(time.process_time() - cpu, time.perf_counter() - wall, alone)"""


def place_of(hvdrun):
    """The environment that leads to the horovod of an installed hvdrun; the source tree's without one."""
    if hvdrun is None:
        runtime = os.environ.get("HVD_RUNTIME", os.path.join(ROOT, "build", "lib", "libhvd.so"))
        return {"PYTHONPATH": os.path.join(ROOT, "runtime", "python"), "HVD_RUNTIME": runtime}
    said = subprocess.run(["bash", "-c", 'eval "$("$0" env)" && echo "$PYTHONPATH"', hvdrun], env=without_ours(), capture_output=True,
                          text=True, check=True).stdout
    return {"PYTHONPATH": said.strip()}


def without_ours():
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HVD_RUNTIME", "PYTHONDONTWRITEBYTECODE")}


def measure(python, processes, place):
    """Milliseconds of processor time and of wall time, and whether the core was this import's alone."""
    with tempfile.TemporaryDirectory() as cache:
        env = dict(without_ours(), **place, PYTHONPYCACHEPREFIX=cache)
        runs = [subprocess.run([python, "-c", CODE], env=env, capture_output=True, text=True, check=True).stdout.split()
                for _ in range(processes + 1)]
    cpu, wall = [statistics.median(1000 * float(run[at]) for run in runs[1:]) for at in (0, 1)]  # the first compiles
    return cpu, wall, all(run[2] == "1" for run in runs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--installed", metavar="HVDRUN")
    parser.add_argument("--most", type=float, metavar="MS")
    parser.add_argument("python", nargs="?", default=sys.executable)
    parser.add_argument("processes", nargs="?", type=int, default=10)
    args = parser.parse_args()
    cpu, wall, alone = measure(args.python, args.processes, place_of(args.installed))
    shared = "" if alone else " beside whatever else ran here"
    print(f"import horovod.torch after torch: {cpu:.1f} ms of processor time, {wall:.1f} ms on the clock{shared}; goal 20 ms")
    if args.most is not None and cpu > args.most:
        sys.exit(f"that is more than {args.most:g} ms of processor time")


if __name__ == "__main__":
    main()
