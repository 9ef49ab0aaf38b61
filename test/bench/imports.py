"""How much longer a script takes to start that imports horovod.torch after torch: processor time and wall time of the import, medians
over processes with bytecode in a cache. Where this user may, no other program gets the core meanwhile (SCHED_FIFO), so that the wall time
is the import's alone on a busy machine, too. Goal: 20 ms. imports.py [PYTHON] [PROCESSES]"""
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


def measure(python, processes, runtime):
    """Milliseconds of processor time and of wall time, and whether the core was this import's alone."""
    with tempfile.TemporaryDirectory() as cache:
        env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "runtime", "python"), HVD_RUNTIME=runtime, PYTHONPYCACHEPREFIX=cache)
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = [subprocess.run([python, "-c", CODE], env=env, capture_output=True, text=True, check=True).stdout.split()
                for _ in range(processes + 1)]
    cpu, wall = [statistics.median(1000 * float(run[at]) for run in runs[1:]) for at in (0, 1)]  # the first compiles
    return cpu, wall, all(run[2] == "1" for run in runs)


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    runtime = os.environ.get("HVD_RUNTIME", os.path.join(ROOT, "build", "lib", "libhvd.so"))
    cpu, wall, alone = measure(python, processes, runtime)
    shared = "" if alone else " beside whatever else ran here"
    print(f"import horovod.torch after torch: {cpu:.1f} ms of processor time, {wall:.1f} ms on the clock{shared}; goal 20 ms")


if __name__ == "__main__":
    main()
