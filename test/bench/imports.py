"""How much longer a script takes to start that imports horovod.torch after torch: processor time and wall time of the import, medians
over processes with bytecode in a cache. Goal: 20 ms of processor time. imports.py [PYTHON] [PROCESSES]"""
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = """import time, torch
wall, cpu = time.perf_counter(), time.process_time()
import horovod.torch
print(time.process_time() - cpu, time.perf_counter() - wall)"""


def measure(python, processes, runtime):
    """Milliseconds of processor time and of wall time."""
    with tempfile.TemporaryDirectory() as cache:
        env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "runtime", "python"), HVD_RUNTIME=runtime, PYTHONPYCACHEPREFIX=cache)
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = [subprocess.run([python, "-c", CODE], env=env, capture_output=True, text=True, check=True).stdout.split()
                for _ in range(processes + 1)]
    return [statistics.median(1000 * float(run[at]) for run in runs[1:]) for at in (0, 1)]  # the first compiles


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    runtime = os.environ.get("HVD_RUNTIME", os.path.join(ROOT, "build", "lib", "libhvd.so"))
    cpu, wall = measure(python, processes, runtime)
    print(f"import horovod.torch after torch: {cpu:.1f} ms of processor time, {wall:.1f} ms; goal 20 ms")


if __name__ == "__main__":
    main()
