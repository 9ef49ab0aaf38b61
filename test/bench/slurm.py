#!/usr/bin/env python3
"""Jobs inside an allocation of a real Slurm, whose nodes are namespaces of this machine (test/system/slurm_rig.py): how long `true`
takes to start and end on all nodes under hvdrun, beside srun in the same allocation. Prints ratios; fails when something
failed, never because something was slow. Needs root and Slurm's packages."""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "system"))

import slurm_rig  # noqa: E402
from budget import there_and_back  # noqa: E402
from host_rig import WHY_NOT, HostRig  # noqa: E402

NODES = 4


def measure(hvdrun, rounds):
    """Inside the allocation: seconds of each run, by name."""
    commands = {"hvdrun": [hvdrun, "true"], "srun": ["srun", "true"]}
    taken = {name: [] for name in commands}
    for name, number in there_and_back(list(commands), rounds, float("inf")):
        begin = time.monotonic()
        subprocess.run(commands[name], check=True, timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        if number is not None:
            taken[name].append(time.monotonic() - begin)
    return taken


def in_allocation(hvdrun, rounds):
    """The same, in an allocation of all nodes of a Slurm of our own."""
    with tempfile.TemporaryDirectory(prefix="hvd-slurm-", ignore_cleanup_errors=True) as folder:  # slurmctld may still write
        hosts = HostRig(pathlib.Path(tempfile.mkdtemp(dir=folder)), NODES)
        os.mkdir(f"{folder}/slurm")
        slurm = slurm_rig.Slurm(f"{folder}/slurm", NODES, hosts)
        try:
            command = slurm.on_head("salloc", "-Q", f"-N{NODES}", f"-n{NODES}", sys.executable, __file__, "--inside",
                                    "--rounds", str(rounds), "--hvdrun", hvdrun)
            told = subprocess.run(command, env=dict(os.environ, **slurm.environment), check=True, capture_output=True, text=True,
                                  timeout=600)
            return json.loads(told.stdout)
        finally:
            slurm.stop()
            hosts.down()


def main(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hvdrun", default=str(ROOT / "build" / "bin" / "hvdrun"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.inside:
        print(json.dumps(measure(given.hvdrun, given.rounds)))
        return 0
    why = WHY_NOT or slurm_rig.why_not()
    if why:
        print(f"no Slurm here: {why}")
        return 0
    taken = in_allocation(shutil.which(given.hvdrun) or given.hvdrun, given.rounds)
    middle = {name: statistics.median(times) for name, times in taken.items()}
    print(f"Start and end of `true` on {NODES} nodes of a Slurm, {given.rounds} rounds; goal 1.5x of srun's time")
    for name, seconds in middle.items():
        print(f"  {name:8} {1e3 * seconds:7.1f} ms  {seconds / middle['srun']:5.2f}x of srun  "
              f"(least {1e3 * min(taken[name]):.1f}, most {1e3 * max(taken[name]):.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
