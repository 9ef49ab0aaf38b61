#!/usr/bin/env python3
"""Several hosts: namespaces of this machine with an sshd each (test/system/host_rig.py), joined by veth pairs. How long a job
takes to start and end, beside mpirun and the ssh program over the same sshds; and allreduce beside Open MPI over TCP
and stock Gloo. Prints ratios; fails when something failed or was wrong, never because something was slow. Needs root."""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "system"))

import openmpi  # noqa: E402
from budget import there_and_back  # noqa: E402
from host_rig import WHY_NOT, HostRig  # noqa: E402
from processes import Failed, Progress  # noqa: E402

START_HOSTS = 8
SIZES = [65536, 1 << 20, 16 << 20, 64 << 20]
OVER_TCP = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "10.99.0.0/16"]


def run(command, env=None, deadline=300):
    """(seconds, CPU seconds of the program and those it waited for, stdout)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - begin > deadline:
                process.kill()
                raise Failed(f"{' '.join(command)} did not end")
            time.sleep(0.0005)
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            raise Failed(f"{' '.join(command)} ended with {process.returncode}: {err.read()[-500:].decode(errors='replace')}")
        return seconds, used.ru_utime + used.ru_stime, out.read().decode()


def names(count):
    return [f"hvd{number}" for number in range(1, count + 1)]


def mpirun(rig, hosts, program, *flags):
    return rig.on_head("mpirun", "--mca", "plm_rsh_agent", "ssh", *flags, "--oversubscribe", "--bind-to", "none",
                       "-np", len(hosts), "--host", ",".join(hosts), *program)


def start_commands(rig, hvdrun):
    hosts = names(START_HOSTS)
    all_at_once = " ".join(f"ssh {host} true &" for host in hosts) + " wait"
    found = {"hvdrun": rig.on_head(hvdrun, "-np", START_HOSTS, "-H", ",".join(f"{h}:1" for h in hosts), "true"),
             "ssh in parallel": rig.on_head("sh", "-c", all_at_once)}
    if shutil.which("mpirun"):
        found["mpirun"] = mpirun(rig, hosts, ["true"], *OVER_TCP[6:])
    return found


def start(rig, hvdrun, rounds, progress):
    commands = start_commands(rig, hvdrun)
    taken = {name: [] for name in commands}
    for name, number in there_and_back(list(commands), rounds, float("inf")):
        progress.say(f"start and end on {START_HOSTS} hosts: {name}")
        outcome = run(commands[name], openmpi.ENVIRONMENT)
        if number is not None:
            taken[name].append(outcome[:2])
    progress.clear()
    print(f"\nStart and end of `true` on {START_HOSTS} hosts over sshd, {rounds} rounds; times of peers by ours, above 1 is good")
    ours = statistics.median(seconds for seconds, _ in taken["hvdrun"])
    for name, figures in taken.items():
        seconds = statistics.median(s for s, _ in figures)
        cpu = statistics.median(c for _, c in figures)
        print(f"{name:>18} {seconds * 1e3:8.0f} ms   {seconds / ours:5.2f}   CPU here {cpu * 1e3 / START_HOSTS:6.2f} ms a host")
    return {name: {"seconds": [s for s, _ in f], "cpu_seconds": [c for _, c in f]} for name, f in taken.items()}


def microseconds(text):
    """Bytes -> microseconds, private memory, read back."""
    lines = (re.sub(r"^\[\d+\]<stdout>: ?", "", line) for line in text.splitlines())
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    if not all(row["correct"] for row in rows):
        raise Failed(f"a wrong result: {text}")
    return {row["bytes"]: row["us"] for row in rows if row["read_back"]}


def allreduce_commands(rig, build, hosts, folder):
    """Name -> command; stock Gloo's ranks meet in `folder`."""
    flags = ["--private", "--json", "--loops", "3", "--sizes", ",".join(map(str, SIZES))]
    slots = ",".join(f"{host}:1" for host in hosts)

    def by_hvdrun(*program):
        return rig.on_head(build / "bin/hvdrun", "-np", len(hosts), "-H", slots, *program, *flags)

    found = {"ours": by_hvdrun(build / "bin/hvd_perf")}
    if shutil.which("mpirun") and (build / "bench/mpi_perf").exists():
        found["Open MPI"] = mpirun(rig, hosts, [build / "bench/mpi_perf", *flags], *OVER_TCP)
    if (build / "bench/gloo_perf").exists():
        told = [f"GLOO_PERF_FOLDER={folder}", "GLOO_PERF_INTERFACE=eth0"]
        found["stock Gloo"] = by_hvdrun("env", *told, build / "bench/gloo_perf")
    return found


def empty(folder):
    shutil.rmtree(folder)
    pathlib.Path(folder).mkdir()


def allreduce(rig, build, count, rounds, progress, folder):
    commands = allreduce_commands(rig, build, names(count), folder)
    taken = {name: [] for name in commands}
    for name, number in there_and_back(list(commands), rounds, float("inf")):
        progress.say(f"allreduce over {count} hosts: {name}")
        empty(folder)
        figures = microseconds(run(list(map(str, commands[name])), openmpi.ENVIRONMENT)[2])
        if set(figures) != set(SIZES):
            raise Failed(f"{name} over {count} hosts measured {sorted(figures)} bytes only")
        if number is not None:
            taken[name].append(figures)
    progress.clear()
    print(f"\nAllreduce, float32 sum, private memory, one rank on each of {count} hosts over veth, {rounds} rounds; "
          f"times of the peers over TCP by ours, above 1 is good")
    peers = [name for name in taken if name != "ours"]
    print(" " * 26 + "".join(f"   {name:<20}" for name in peers))
    for size in SIZES:
        ours = [figures[size] for figures in taken["ours"]]
        line = f"{size:>10} B {statistics.median(ours):>10.0f} us"
        for peer in peers:
            each = sorted(theirs[size] / our for our, theirs in zip(ours, taken[peer]))
            span = f"({each[0]:.2f}-{each[-1]:.2f})"
            line += f"   {statistics.median(each):5.2f} {span:<14}"
        print(line)
    return taken


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="interleaved rounds (6)")
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4], help="hosts of the allreduce (2 4)")
    parser.add_argument("--only", choices=["start", "allreduce"], help="one of the two")
    parser.add_argument("--build-dir", default=ROOT / "build", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--json", metavar="FILE", help="every figure")
    args = parser.parse_args(argv)
    if WHY_NOT:
        print(f"left out: {WHY_NOT}")
        return 0
    build, figures = args.build_dir.resolve(), {}
    with tempfile.TemporaryDirectory() as folder:
        rig, meeting = HostRig(folder, START_HOSTS), pathlib.Path(folder) / "meeting"
        meeting.mkdir()
        try:
            progress = Progress()
            if args.only != "allreduce":
                figures["start"] = start(rig, build / "bin/hvdrun", args.rounds, progress)
            for count in args.hosts if args.only != "start" else []:
                figures[f"allreduce {count}"] = allreduce(rig, build, count, args.rounds, progress, meeting)
        except Failed as failed:
            print(f"FAILED: {failed}", file=sys.stderr)
            return 1
        finally:
            rig.down()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
