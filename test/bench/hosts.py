#!/usr/bin/env python3
"""Several hosts: namespaces of this machine with an sshd each (test/system/host_rig.py), joined by veth pairs. How long a job
takes to start and end, beside mpirun and the ssh program over the same sshds; and allreduce with one rank and with several on each
host, beside sockets alone (raw_perf), Open MPI over TCP and stock Gloo. Prints ratios; fails when something failed or was wrong,
never because something was slow. Needs root."""
import argparse
import itertools
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
import processes  # noqa: E402
from budget import there_and_back  # noqa: E402
from processes import Failed, Progress  # noqa: E402

try:
    from host_rig import WHY_NOT, HostRig  # noqa: E402
except ImportError as error:  # it needs pytest
    WHY_NOT, HostRig = f"the rig of hosts cannot be imported: {error}", None

START_HOSTS = 8
SIZES = [4, 8192, 65536, 1 << 20, 16 << 20, 64 << 20]
LAYOUTS = [(2, 1), (2, 2), (4, 1), (3, 2), (4, 2)]  # hosts, ranks on each
MOST_ROUNDS = 200  # of a loop: stock Gloo takes milliseconds where there are more ranks than cores
OVER_TCP = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "10.99.0.0/16"]
WITHIN_HOSTS = ["--mca", "btl", "tcp,vader,self", *OVER_TCP[3:]]
RAW = "raw sockets"
BESIDE = "other build"


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


def mpirun(rig, hosts, program, *flags, each=1):
    return rig.on_head("mpirun", "--mca", "plm_rsh_agent", "ssh", *flags, "--oversubscribe", "--bind-to", "none",
                       "-np", len(hosts) * each, "--host", ",".join(f"{host}:{each}" for host in hosts), *program)


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


def allreduce_commands(rig, build, hosts, each, folder, loops, sizes, beside):
    """Name -> command; ranks of stock Gloo and of raw_perf meet in `folder`. beside: the folder of another build, or None."""
    flags = ["--private", "--json", "--loops", loops, "--most-rounds", MOST_ROUNDS, "--sizes", ",".join(map(str, sizes))]

    def by_hvdrun(count, *program, build=build):
        slots = ",".join(f"{host}:{count}" for host in hosts)
        return rig.on_head(build / "bin/hvdrun", "-np", len(hosts) * count, "-H", slots, *program, *flags)

    def meeting(name):
        return "env", f"{name}_FOLDER={folder}", f"{name}_INTERFACE=eth0"

    found = {"ours": by_hvdrun(each, build / "bin/hvd_perf"),
             RAW: by_hvdrun(1, *meeting("RAW_PERF"), build / "bench/raw_perf")}
    if beside:
        found[BESIDE] = by_hvdrun(each, beside / "bin/hvd_perf", build=beside)
    if shutil.which("mpirun") and (build / "bench/mpi_perf").exists():
        found["Open MPI"] = mpirun(rig, hosts, [build / "bench/mpi_perf", *flags], *(OVER_TCP if each == 1 else WITHIN_HOSTS), each=each)
    if (build / "bench/gloo_perf").exists():
        found["stock Gloo"] = by_hvdrun(each, *meeting("GLOO_PERF"), build / "bench/gloo_perf")
    return found


def empty(folder):
    shutil.rmtree(folder, ignore_errors=True)
    pathlib.Path(folder).mkdir()


def allreduce(rig, build, layout, rounds, progress, folder, loops=3, peer=True, until=float("inf"), sizes=None, beside=None):
    """Name -> bytes -> microseconds of each run."""
    sizes = sizes or SIZES
    count, each = layout
    commands = allreduce_commands(rig, build, names(count), each, folder, loops, sizes, beside)
    if not peer:
        commands.pop("Open MPI", None)
    taken = {name: [] for name in commands}
    for turn in range(rounds):
        if turn > 0 and time.monotonic() > until:
            break
        for name in [*commands, *reversed(commands)]:
            progress.say(f"allreduce over {count} hosts, {each} ranks each: {name}")
            empty(folder)
            command = list(map(str, commands[name]))
            outcome = processes.run(command, 300, env=openmpi.ENVIRONMENT)
            figures = microseconds(outcome.stdout)
            if not outcome.ok or set(figures) != set(sizes):
                raise Failed(f"{' '.join(command)} ended with {outcome.code} and figures of {sorted(figures)} bytes: {outcome.stderr[-800:]}")
            taken[name].append(figures)
    progress.clear()
    return {name: {size: [figures[size] for figures in runs] for size in sizes} for name, runs in taken.items()}


def rows_of(layout, taken):
    for size in taken["ours"]:
        ours = taken["ours"][size]
        row = {"hosts": layout[0], "ranks_of_a_host": layout[1], "bytes": size, "us": statistics.median(ours), "runs": len(ours), "peers": {}}
        for peer, theirs in taken.items():
            ratios = [b / a for a, b in zip(ours, theirs[size]) if a > 0]
            if peer != "ours" and ratios:
                row["peers"][peer] = {"us": statistics.median(theirs[size]), "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
        yield row


def show(layout, rows):
    count, each = layout
    print(f"\nAllreduce, float32 sum, private memory, result read back, {each} rank(s) on each of {count} hosts over veth, {rows[0]['runs']} runs; "
          f"times of the peers over TCP by ours, above 1 is good; {RAW}: one process a host, the floor; load {os.getloadavg()[0]:.1f}")
    peers = list(rows[0]["peers"])
    print(" " * 26 + "".join(f"   {name:<20}" for name in peers))
    for row in rows:
        line = f"{row['bytes']:>10} B {row['us']:>10.1f} us"
        for peer in peers:
            found = row["peers"].get(peer)
            span = f"({found['low']:.2f}-{found['high']:.2f})" if found else ""
            line += f"   {found['ratio'] if found else float('nan'):5.2f} {span:<14}"
        print(line)


class Hosts:
    """The part of bench.py: allreduce over 2 to 4 hosts with one rank and with several on each."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        self.rows, self.left_out, self.short = [], WHY_NOT, []

    def measure(self):
        if self.left_out:
            return
        build = pathlib.Path(self.args.bin_dir).parent
        with tempfile.TemporaryDirectory() as folder:
            try:
                rig = HostRig(folder, max(hosts for hosts, _ in LAYOUTS))
            except (OSError, AssertionError, subprocess.CalledProcessError) as error:  # a container without the right to make them
                self.left_out = f"namespaces could not be made: {error}"
                return
            try:
                self._measure(rig, build, pathlib.Path(folder) / "meeting")
            finally:
                rig.down()

    def _measure(self, rig, build, meeting):
        rounds, loops = max(1, self.args.rounds // 2), 1 if self.args.rounds <= 2 else 3
        for place, layout in enumerate(LAYOUTS):
            now = time.monotonic()
            if place > 0 and now > self.until:
                self.short.append(layout)
                continue
            until = now + (self.until - now) / (len(LAYOUTS) - place)
            taken = allreduce(rig, build, layout, rounds, self.progress, meeting, loops, self.args.peer, until)
            self.rows += rows_of(layout, taken)

    def report(self):
        if self.left_out:
            print(f"\nAllreduce over hosts: left out, {self.left_out}")
            return {"left_out": self.left_out}
        for layout in LAYOUTS:
            rows = [row for row in self.rows if (row["hosts"], row["ranks_of_a_host"]) == layout]
            if rows:
                show(layout, rows)
        for hosts, each in self.short:
            print(f"SHORT: no time was left for {hosts} hosts with {each} rank(s) each; give more --minutes")
        return {"rows": self.rows, "short": self.short, "load": os.getloadavg()[0]}


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="interleaved rounds (6)")
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4], help="hosts of the allreduce (2 4)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1], help="ranks on each host of the allreduce (1)")
    parser.add_argument("--only", choices=["start", "allreduce"], help="one of the two")
    parser.add_argument("--build-dir", default=ROOT / "build", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--beside", type=pathlib.Path, metavar="DIR", help="another build, whose allreduce takes turns with this one's")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="BYTES", help="of the allreduce")
    parser.add_argument("--json", metavar="FILE", help="every figure")
    args = parser.parse_args(argv)
    if WHY_NOT:
        print(f"left out: {WHY_NOT}")
        return 0
    build, figures = args.build_dir.resolve(), {}
    with tempfile.TemporaryDirectory() as folder:
        rig, meeting = HostRig(folder, START_HOSTS), pathlib.Path(folder) / "meeting"
        try:
            progress = Progress()
            if args.only != "allreduce":
                figures["start"] = start(rig, build / "bin/hvdrun", args.rounds, progress)
            for layout in itertools.product(args.hosts, args.ranks) if args.only != "start" else []:
                taken = allreduce(rig, build, layout, args.rounds, progress, meeting, sizes=args.sizes,
                                  beside=args.beside and args.beside.resolve())
                rows = list(rows_of(layout, taken))
                show(layout, rows)
                figures["allreduce of {} hosts with {} ranks".format(*layout)] = rows
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
