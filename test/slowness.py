"""How much slower this machine is than the one on which the tests got their time limits; they are multiplied by it.

    python3 test/slowness.py     measures, and prints the factor for HVD_TEST_SLOWNESS: 1.0 or more

scripts/test.sh measures once, before it builds anything. Without the variable the factor is 1, times the number of pytest-xdist's
workers per processor, since tests beside each other wait for each other.
"""

import os
import subprocess
import sys
import time

REFERENCE_S = 0.15  # of measure() on two quiet processors of a small server
MOST = 5.0  # a limit that is never met is none


def measure():
    """Seconds of a fixed piece of work of the kind that tests wait for: processes that start, on all processors, and compute."""
    started = time.monotonic()
    for _ in range(4):
        both = [subprocess.Popen([sys.executable, "-S", "-E", "-c", "sum(range(600000))"]) for _ in range(2)]
        for process in both:
            process.wait()
    return time.monotonic() - started


def factor():
    machine = float(os.environ.get("HVD_TEST_SLOWNESS") or 1)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT") or 1)
    return machine * max(1.0, workers / (os.cpu_count() or 1))


def scaled(seconds):
    """A time limit of a test on this machine."""
    return seconds * factor()


if __name__ == "__main__":
    print("{:.1f}".format(min(MOST, max(1.0, min(measure() for _ in range(3)) / REFERENCE_S))))
