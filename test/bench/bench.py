"""Measures hvdrun and its collectives beside Open MPI, in one run, and prints tables. README.md beside this file says
what is measured and how. Never fails because something is slow: only because it failed or was wrong."""
import argparse
import json
import math
import os
import platform
import re
import shutil
import statistics
import sys
import time
import traceback

import collectives
import elastic
import hosts
import inter_host_comm
import launcher
import openmpi
import page
import processes
import python_calls
import timeline
import torch_backends
import torch_step
from budget import Budget, there_and_back
from page import size_name, us as us_name
from processes import Failed

MEASURES = {  # name -> (our memory, read back); the peer knows only malloc
    "registered, read-back": (True, True),
    "registered, not read": (True, False),
    "private, read-back": (False, True),
}
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = [8, 64, 1024, 8192, 65536, 1 << 20, 16 << 20, 64 << 20]
SIZES_4 = [64, 8192, 65536, 1 << 20, 16 << 20]
GROUPS = {"8 B-8 KiB": (8, 8192), "64 KiB-64 MiB": (65536, 64 << 20)}
PARTS = {  # name -> its share of the time
    "allreduce": 0.3, "collectives": 0.17, "inter_host_comm": 0.06, "hosts": 0.1, "start": 0.07, "python": 0.04, "python_calls": 0.06,
    "torch_step": 0.1, "torch_backends": 0.1, "footprint": 0.03, "log": 0.04, "elastic": 0.05, "timeline": 0.03}
MOVED = 0.10  # a round is thrown away when the fixed loop moved by more
GIVE_UP_AFTER_HANGS = 6


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values)) if values else float("nan")


# ---- the machine


def first_line(path):
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return "unknown"


def machine():
    model = "unknown"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    pages = "/sys/kernel/mm/transparent_hugepage/"
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model,
        "kernel": platform.release(),
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "huge_pages": first_line(pages + "enabled"),
        "huge_pages_of_shared_memory": first_line(pages + "shmem_enabled"),
        "load_at_start": os.getloadavg()[0],
    }


def command_of(argv):
    """The command that repeats this run, without the files that it wrote besides."""
    words = list(argv)
    if "--json" in words[:-1]:
        place = words.index("--json")
        del words[place:place + 2]
    return " ".join(["scripts/bench.sh", *(word.replace(os.path.expanduser("~"), "~") for word in words)])


def source():
    """The commit, and whether something was changed since."""
    found = processes.run(["git", "-C", ROOT, "describe", "--always", "--dirty=, changed"], 20)
    return found.stdout.strip() if found.ok else "no repository"


def peers(args, results):
    """Name -> version of those that this run measured."""
    found = {"Open MPI": results["machine"]["open_mpi"]} if "open_mpi" in results["machine"] else {}
    for table in results.get("torch_step", []) + results.get("torch_backends", []):
        if "torch" in table:
            found["PyTorch"] = table["torch"]
    for table in results.get("python_calls", []):
        for name in table["names"].values():
            if name.startswith("mpi4py"):
                found["mpi4py"] = name.partition(" ")[2]
    package = processes.run(["dpkg-query", "-W", "-f", "${Version}", "libgloo-dev"], 20) if shutil.which("dpkg-query") else None
    if package and package.ok and any(map(results.get, ("hosts", "inter_host_comm"))):
        found["Gloo"] = package.stdout
    return found


class Calibration:
    """The limits of the machine: every figure the median of all calibrations of this run."""

    def __init__(self, bench_dir):
        self.program = os.path.join(bench_dir, "calibrate")
        self.samples = []

    def _run(self, *flags):
        outcome = processes.run([self.program, *flags], 180)
        if not outcome.ok:
            raise Failed(f"calibrate ended with {outcome.code}: {outcome.stderr.strip()}")
        return json.loads(outcome.stdout)

    def measure(self):
        sample = self._run()
        self.samples.append(sample)
        return sample["fixed_loop_ms"]

    def value(self, *keys):
        values = []
        for sample in self.samples:
            for key in keys:
                sample = sample[key]
            values.append(sample)
        return statistics.median(values)

    def summary(self):
        first = self.samples[0]
        return {key: {k: self.value(key, k) for k in first[key]} if isinstance(first[key], dict)
                else self.value(key) for key in first}


def allreduce_limit_us(calibration, size, registered=True, read_back=True, ranks=2):
    """The least time an allreduce of `size` bytes can take here, for P ranks with a core each.

    The limit model of "an intra-host allreduce of N bytes on P ranks, C cores":
      small: one exchange of flags with the payload in the flag line: L, the one-way line latency
      large: max( 2 N (P-1)/P / B_x , 2 P N / (C B_m) )
    B_x is what one core pulls out of the other's cache. The first half of that brings the inputs, the second the
    results, which stay in the other core's cache when nobody reads them back. Of the second half only what it takes
    longer than reading one's own data counts, because the loop without the collective, which is subtracted, reads as
    well. B_m is a core's streaming in bytes moved, so 2 P N bytes moved are P N bytes copied or changed in place,
    whichever is faster. Private buffers add a copy-in, again 2 P N bytes moved. Every figure is that of the
    calibrated size next to N.
    """
    sizes = [int(k) for k in calibration.samples[0]["pull_gb_per_s"]]
    near = str(min(sizes, key=lambda k: abs(math.log(k / max(size, 1)))))
    pull, own, copy, update = (calibration.value(key, near) * 1e3 for key in (  # bytes per us
        "pull_gb_per_s", "read_own_gb_per_s", "memcpy_gb_per_s", "update_gb_per_s"))
    part = size * (ranks - 1) / ranks
    pulled = part / pull + (part * max(0.0, 1 / pull - 1 / own) if read_back else 0)
    streamed = size / max(copy, update)  # C = P
    copied = 0 if registered else size / copy
    return calibration.value("line_one_way_ns") / 1e3 + max(pulled, streamed) + copied


# ---- allreduce by size


class Side:
    """One way to run the measuring loops: a command for a list of sizes."""

    def __init__(self, name, make_command, env=None):
        self.name, self.make_command, self.env = name, make_command, env
        self.times = []  # per round: {(size, registered, read_back): us}
        self.hangs = 0

    def run(self, sizes, **how):
        command = self.make_command(sizes, **how)
        for _ in range(3):
            outcome = processes.run(command, 120, env=self.env)
            if outcome.code != processes.HUNG:
                break
            self.hangs += 1
        figures = {}
        for line in outcome.stdout.splitlines():
            line = re.sub(r"^\[\d+\]<stdout>: ?", "", line)
            if not line.startswith("{"):
                continue
            record = json.loads(line)
            if not record["correct"]:
                raise Failed(f"{self.name}: wrong result: {line}")
            figures[record["bytes"], record["registered"], record["read_back"]] = record["us"]
        if not outcome.ok or {key[0] for key in figures} != set(sizes):
            tail = "\n".join((outcome.stderr or outcome.stdout).strip().splitlines()[-12:])
            raise Failed(f"{' '.join(command)} ended with {outcome.code}:\n{tail}")
        return figures


class Allreduce:
    def __init__(self, args, ranks, sizes, pinned, rounds, until, calibration, progress):
        self.args, self.ranks, self.sizes, self.pinned = args, ranks, sizes, pinned
        self.rounds, self.until = rounds, until
        self.calibration, self.progress = calibration, progress
        flags = ["--json"] + (["--pin"] if pinned else [])
        binding = ["--bind-to", "core" if pinned else "none"]
        bench_dir, bin_dir = args.bench_dir, args.bin_dir

        def sized(sizes, loops=3):
            return ["--loops", str(loops), "--sizes", ",".join(map(str, sizes))]

        self.ours = Side("hvdrun", lambda s: [
            f"{bin_dir}/hvdrun", "-np", str(ranks), f"{bin_dir}/hvd_perf", "--registered", "--private",
            *flags, *sized(s)])
        self.peers = []
        if args.peer:
            progress.say(f"{ranks} ranks: which settings of Open MPI are in force?")
        settings, self.left_out = openmpi.settings_in_force(ranks, bench_dir) if args.peer else ([], [])
        for setting in settings:
            self.peers.append(Side(
                setting.name, lambda s, loops=3, flags_of=setting.flags: openmpi.command(
                    ranks, [f"{bench_dir}/mpi_perf", "--private", *flags, *sized(s, loops)], flags_of, binding),
                openmpi.ENVIRONMENT))
        self.thrown = 0
        self.filled = 0
        self.short = False
        self.sizes_of = {peer.name: [] for peer in self.peers}

    def scout(self):
        """Which settings of the peer are worth all rounds, per size: those near the best of one run before."""
        found = {}
        for peer in self.peers:
            self.progress.say(f"{self.ranks} ranks: looking at Open MPI '{peer.name}'")
            found[peer.name] = peer.run(self.sizes, loops=1)
        for read_back in (True, False):  # a size goes on when it does for either
            worth = openmpi.worth_all_rounds({name: {size: times[size, False, read_back] for size in self.sizes}
                                              for name, times in found.items()})
            for name, sizes in worth.items():
                self.sizes_of[name] = [size for size in self.sizes if size in sizes or size in self.sizes_of[name]]

    def round(self):
        """A B B A: ours, every setting of the peer, the same backwards, ours. Means of the two. Also how far the
        machine was, before or after, from the quietest it has been in this run: a steady load is no better than one
        that comes and goes."""
        self.calibration.measure()
        peers = [peer for peer in self.peers if self.sizes_of[peer.name]]
        taken = {}
        for side in [self.ours, *peers, *reversed(peers), self.ours]:
            self.progress.say(f"{self.ranks} ranks: round {len(self.ours.times) + 1} of {self.rounds}, "
                              f"{self.thrown} thrown away: {side.name}")
            for key, us in side.run(self.sizes_of.get(side.name, self.sizes)).items():
                taken.setdefault(side.name, {}).setdefault(key, []).append(us)
        self.calibration.measure()
        fixed = [sample["fixed_loop_ms"] for sample in self.calibration.samples]
        moved = max(fixed[-2:]) / min(fixed) - 1
        figures = {name: {k: statistics.fmean(v) for k, v in f.items()} for name, f in taken.items()}
        return moved, figures

    def measure(self):
        self.scout()
        noisy = []
        while len(self.ours.times) < self.rounds and self.thrown < self.args.most_thrown:
            if self.ours.times + noisy and time.monotonic() > self.until:
                self.short = True
                break
            moved, figures = self.round()
            if moved > MOVED:
                self.thrown += 1
                noisy.append((moved, figures))
            else:
                self._keep(figures)
        for _, figures in sorted(noisy, key=lambda n: n[0])[:self.rounds - len(self.ours.times)]:
            self.filled += 1
            self._keep(figures)

    def _keep(self, figures):
        for side in [self.ours, *self.peers]:
            if side.name in figures:
                side.times.append(figures[side.name])

    def result(self, measure, size):
        registered, read_back = MEASURES[measure]
        ours = [times[size, registered, read_back] for times in self.ours.times]
        row = {"measure": measure, "bytes": size, "ranks": self.ranks, "us": statistics.median(ours)}
        if self.pinned:
            limit = allreduce_limit_us(self.calibration, size, registered, read_back, self.ranks)
            row["limit_us"], row["percent_of_limit"] = limit, 100 * limit / row["us"]
        key = (size, False, read_back)
        by_setting = {peer.name: [t[key] for t in peer.times] for peer in self.peers
                      if peer.times and key in peer.times[0]}
        if by_setting:
            best = min(by_setting, key=lambda name: statistics.median(by_setting[name]))
            ratios = [peer / own for peer, own in zip(by_setting[best], ours) if own > 0]
            if ratios:
                row.update(peer_us=statistics.median(by_setting[best]), peer_setting=best,
                           ratio=statistics.median(ratios), ratio_low=min(ratios), ratio_high=max(ratios))
        return row

    def report(self):
        rows = [self.result(measure, size) for measure in MEASURES for size in self.sizes]
        where = "one core each" if self.pinned else "not pinned"
        print(f"\nAllreduce, float32 sum, {self.ranks} ranks, {where}; {len(self.ours.times)} rounds "
              f"A B B A, medians; {self.thrown} rounds thrown away because the machine moved by more than "
              f"{MOVED:.0%}")
        if self.short:
            print(f"  SHORT: no more than {len(self.ours.times)} of {self.rounds} rounds within --minutes")
        if self.filled:
            print(f"  NOISY: {self.filled} of the {len(self.ours.times)} rounds are the least moved of those "
                  f"thrown away, because too few held still")
        if self.left_out:
            print(f"  Open MPI settings that do not come into force here, left out: {', '.join(self.left_out)}")
        for side in [self.ours, *self.peers]:
            if side.hangs:
                print(f"  {side.name} hung {side.hangs} times and was started again")
        means = {}
        for measure in MEASURES:
            mine = [row for row in rows if row["measure"] == measure]
            headline = " (headline)" if measure == next(iter(MEASURES)) else ""
            print(f"\n  {measure}{headline}")
            print(f"  {'size':>8}  {'ours':>10}  {'Open MPI':>10}  {'ratio':>6}  {'range':>13}  "
                  f"{'limit':>10}  {'% of limit':>10}  best setting of Open MPI")
            for row in mine:
                compared = "ratio" in row
                peer = us_name(row["peer_us"]) if compared else "-"
                ratio = f"{row['ratio']:.2f}" if compared else "-"
                span = f"{row['ratio_low']:.2f}-{row['ratio_high']:.2f}" if compared else "-"
                limit = us_name(row["limit_us"]) if "limit_us" in row else "-"
                percent = f"{row['percent_of_limit']:.0f} %" if "limit_us" in row else "-"
                print(f"  {size_name(row['bytes']):>8}  {us_name(row['us']):>10}  {peer:>10}  {ratio:>6}  "
                      f"{span:>13}  {limit:>10}  {percent:>10}  {row.get('peer_setting', '-')}")
            for group, (low, high) in GROUPS.items():
                ratios = [r["ratio"] for r in mine if "ratio" in r and low <= r["bytes"] <= high]
                if ratios:
                    means[f"{measure}, {group}"] = geometric_mean(ratios)
                    print(f"  geometric mean {group}: {means[f'{measure}, {group}']:.2f}x "
                          f"({len(ratios)} sizes)")
        return {"ranks": self.ranks, "pinned": self.pinned, "rounds": len(self.ours.times),
                "thrown": self.thrown, "filled_from_thrown": self.filled, "short": self.short,
                "left_out": self.left_out, "rows": rows, "geometric_means": means,
                "hangs": {side.name: side.hangs for side in [self.ours, *self.peers]}}


# ---- start and end


class Start:
    """Wall time from starting the command to its exit, runs interleaved A B B A."""

    def __init__(self, args, calibration, progress, until):
        self.args, self.calibration, self.progress, self.until = args, calibration, progress, until
        self.rows = []

    def measure(self):
        bin_dir, bench_dir = self.args.bin_dir, self.args.bench_dir
        init_hvd, init_mpi = [f"{bench_dir}/init_hvd"], [f"{bench_dir}/init_mpi"]
        rows = [(what, ranks, flags, ours, peer) for what, flags, counts, ours, peer in (
            ("true", [], (2, 8, 32), ["true"], ["true"]), ("init + barrier", [], (2, 8, 32), init_hvd, init_mpi),
            ("... by --mpi", ["--mpi"], (2, 8) if self.args.peer else (), init_hvd, init_mpi),
            ("... with MPI_Init", ["--mpi"], (2, 8) if self.args.peer else (), init_mpi, init_mpi))
            for ranks in counts]
        for place, (what, ranks, flags, ours, peer) in enumerate(rows):
            if place > 0 and time.monotonic() > self.until + 30:
                print(f"SHORT: no time was left for start and end of {what} x {ranks}; give more --minutes")
                continue
            until = time.monotonic() + (self.until - time.monotonic()) / (len(rows) - place)
            self._row(what, ranks, [f"{bin_dir}/hvdrun", *flags, "-np", str(ranks), *ours], openmpi.command(ranks, peer), until)

    def _row(self, what, ranks, ours, peer, until):
        commands = {"ours": (ours, None), "peer": (peer, openmpi.ENVIRONMENT)}
        if not self.args.peer:
            del commands["peer"]
        times = {name: [] for name in commands}
        hangs = dict.fromkeys(commands, 0)
        for name, run in there_and_back(commands, self.args.starts, until):
            if hangs[name] >= GIVE_UP_AFTER_HANGS:
                continue
            self.progress.say(f"start and end: {what} x {ranks}, run {run or 0}: {name}")
            command, env = commands[name]
            outcome = processes.run(command, self.args.start_deadline, keep_output=False, env=env)
            if outcome.code == processes.HUNG:
                hangs[name] += 1
            elif not outcome.ok:
                if name == "ours":
                    raise Failed(f"{' '.join(command)} ended with {outcome.code}: "
                                 f"{outcome.stderr.strip()[-2000:]}")
                hangs[name] += 1
            elif run is not None:
                times[name].append(outcome.seconds * 1e3)
        row = {"what": what, "ranks": ranks, "hangs": hangs, "runs": {n: len(t) for n, t in times.items()},
               "floor_ms": ranks * self.calibration.value("spawn_in_batch_us") / 1e3}
        if times["ours"]:
            row["ms"] = statistics.median(times["ours"])
        if times.get("peer"):
            row["peer_ms"] = statistics.median(times["peer"])
        ratios = [b / a for a, b in zip(times["ours"], times.get("peer", []))]
        if ratios:
            row.update(ratio=statistics.median(ratios), ratio_low=min(ratios), ratio_high=max(ratios))
        self.rows.append(row)

    def report(self):
        print(f"\nStart and end, wall time of the whole command, up to {self.args.starts} runs each, interleaved, "
              f"medians")
        print(f"  {'command':<15}  {'ranks':>5}  {'ours':>9}  {'mpirun':>9}  {'ratio':>6}  {'range':>13}  "
              f"{'runs':>4}  {'spawn floor':>11}  hung ({self.args.start_deadline:.0f} s) or failed (ours / mpirun)")
        for row in self.rows:
            def ms(key):
                return f"{row[key]:.1f} ms" if key in row else "-"
            ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
            span = f"{row['ratio_low']:.2f}-{row['ratio_high']:.2f}" if "ratio" in row else "-"
            peer_hangs, peer_runs = row["hangs"].get("peer"), row["runs"].get("peer")
            hung = f"{row['hangs']['ours']} of {row['hangs']['ours'] + row['runs']['ours']} / "
            hung += "-" if peer_hangs is None else f"{peer_hangs} of {peer_hangs + peer_runs}"
            if peer_hangs == GIVE_UP_AFTER_HANGS:
                hung += ", given up"
            print(f"  {row['what']:<15}  {row['ranks']:>5}  {ms('ms'):>9}  {ms('peer_ms'):>9}  {ratio:>6}  "
                  f"{span:>13}  {row['runs']['ours']:>4}  {ms('floor_ms'):>11}  {hung}")
        print("  Runs that hung or failed are in no median. The floor is posix_spawn + exec + exit of /bin/true, 32 "
              "at a time, by the calibration.")
        return self.rows


# ---- all of it


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds A B B A of the allreduce (7)")
    parser.add_argument("--starts", type=int, default=15, help="runs of each start (15)")
    parser.add_argument("--quick", action="store_true", help="few runs of each: is it alive, not how fast")
    parser.add_argument("--minutes", type=float, default=8,
                        help="how long all of it may take; each part stops in time, with fewer rounds if need be (8)")
    parser.add_argument("--footprints", type=int, default=5, help="runs of hvdrun's own time and memory (5)")
    parser.add_argument("--logs", type=int, default=7, help="runs of the log throughput (7)")
    parser.add_argument("--log-lines", type=int, default=100000, metavar="N",
                        help="lines that each worker writes for the log throughput (100000)")
    parser.add_argument("--events", type=int, default=6, help="ranks that are killed in each elastic job (6)")
    parser.add_argument("--only", choices=list(PARTS), nargs="+", default=list(PARTS), help="only these parts")
    parser.add_argument("--python", default=sys.executable, metavar="FILE",
                        help="the interpreter of the Python workers (that of bench.py)")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"), metavar="DIR",
                        help="the build to measure (build)")
    parser.add_argument("--json", metavar="FILE", help="also write everything as JSON")
    parser.add_argument("--page", metavar="FILE", help="also write the figures into this page (docs/benchmarks.md)")
    parser.add_argument("--no-peer", action="store_true", help="leave Open MPI out")
    parser.add_argument("--start-deadline", type=float, default=5.0, metavar="SECONDS",
                        help="a start that takes longer has hung (5); of Python workers, four times that")
    parser.add_argument("--log-deadline", type=float, default=60.0, metavar="SECONDS",
                        help="a run of the log throughput that takes longer has hung (60)")
    args = parser.parse_args(argv)
    if args.quick:
        args.rounds, args.starts, args.footprints, args.logs, args.events = 2, 3, 1, 2, 3
    if min(args.rounds, args.starts, args.footprints, args.logs, args.log_lines, args.events) < 1:
        parser.error("--rounds, --starts, --footprints, --logs, --log-lines and --events are at least 1")
    args.most_thrown = args.rounds
    build = os.path.abspath(args.build_dir)
    args.bin_dir, args.bench_dir = os.path.join(build, "bin"), os.path.join(build, "bench")
    for program in ("bin/hvdrun", "bin/hvd_perf", "bench/calibrate", "bench/elastic_perf", "bench/init_hvd", "bench/start_all",
                    "bench/log_writer", "bench/log_reader"):
        if not os.access(os.path.join(build, program), os.X_OK):
            parser.error(f"no {program} in {args.build_dir}; scripts/build.sh release makes it")
    return args


def tables_of(part, args, calibration, progress, until):
    """Those of one part, each made when the one before is measured."""
    if part == "allreduce":
        half = time.monotonic() + 0.6 * (until - time.monotonic())
        yield Allreduce(args, 2, SIZES, True, args.rounds, half, calibration, progress)
        if time.monotonic() > until:
            print("SHORT: no time was left for the allreduce of 4 ranks; give more --minutes")
            return
        yield Allreduce(args, 4, SIZES_4, False, args.rounds, until, calibration, progress)
    elif part == "start":
        yield Start(args, calibration, progress, until)
    else:
        make = {"collectives": collectives.Collectives, "inter_host_comm": inter_host_comm.InterHostComm,
                "hosts": hosts.Hosts, "python": launcher.PythonStart, "python_calls": python_calls.PythonCalls,
                "torch_step": torch_step.TorchStep, "torch_backends": torch_backends.TorchBackends, "footprint": launcher.Footprint, "log": launcher.LogThroughput,
                "elastic": elastic.Elastic, "timeline": timeline.Timeline}[part]
        yield make(args, progress, until)


def side_by_side(results):
    """Every comparison in one line each: how many times as fast as the peer we are."""
    lines = []
    for table in results.get("allreduce", []):
        for name, mean in table["geometric_means"].items():
            lines.append((f"allreduce, {table['ranks']} ranks, {name}", mean))
    for rows in results.get("collectives", []):
        for collective in collectives.NAMES:
            for memory in (True, False):
                ratios = [row["ratio"] for row in rows
                          if row["collective"] == collective and row["registered"] == memory and "ratio" in row]
                if ratios:
                    lines.append((f"{collective}, {'registered' if memory else 'private'}", geometric_mean(ratios)))
    for table in filter(None, results.get("inter_host_comm", [])):
        for peer, by_size in table["ratios"].items():
            lines.append((f"allreduce between leaders, {peer}", geometric_mean(by_size.values())))
    for table in results.get("hosts", []):
        for layout in dict.fromkeys((row["hosts"], row["ranks_of_a_host"]) for row in table.get("rows", [])):
            rows = [row for row in table["rows"] if (row["hosts"], row["ranks_of_a_host"]) == layout]
            for peer in rows[0]["peers"]:
                ratios = [row["peers"][peer]["ratio"] for row in rows if peer in row["peers"]]
                lines.append(("allreduce over {} hosts, {} rank(s) each, {}".format(*layout, peer), geometric_mean(ratios)))
    for table in results.get("python_calls", []):
        for peer in dict.fromkeys(peer for row in table["rows"] for peer in row["peers"]):
            ratios = [row["peers"][peer]["ratio"] for row in table["rows"] if peer in row["peers"]]
            lines.append((f"allreduce through Python, {peer}", geometric_mean(ratios)))
    for table in results.get("torch_step", []):
        lines += [(f"PyTorch step, {row['set']}, set_to_none={row['set_to_none']}, DistributedDataParallel", row["ratio"]["median"])
                  for row in table.get("rows", [])]
    for table in results.get("torch_backends", []):
        lines += [(f"torch.distributed, {row['what']}, gloo's {row['compared']}", 1 / row["ratio"]["median"]) for row in table.get("rows", [])
                  if not row["what"].startswith("watching")]
    for rows in results.get("start", []):
        lines += [(f"start and end, {row['what']} x {row['ranks']}", row["ratio"]) for row in rows if "ratio" in row]
    for rows in results.get("python", []):
        lines += [(f"Python workers x {row['ranks']}, bare interpreters", 1 / row["ratio"]["median"])
                  for row in rows if row["ratio"]]
    for table in results.get("elastic", []):
        lines += [(f"after the death of a rank, {name}, torchrun", ratio) for name, ratio in table["ratios"].items()]
    for table in results.get("log", []):
        if table["ratio"]:
            lines.append(("log throughput", table["ratio"]["median"]))
    return lines


def main(argv):
    args = parse(argv)
    progress = processes.Progress()
    started = time.monotonic()
    facts = machine()
    args.peer = not args.no_peer and openmpi.installed(args.bench_dir)
    print(f"Machine: {facts['cores']} cores allowed, {facts['cpu']}, Linux {facts['kernel']}, pages of "
          f"{facts['page_bytes']} B, huge pages {facts['huge_pages']}, for shared memory "
          f"{facts['huge_pages_of_shared_memory']}; load {facts['load_at_start']:.1f}")
    if args.peer:
        facts["open_mpi"] = openmpi.version()
        print(f"Peer: Open MPI {facts['open_mpi']}, per size the best of its settings")
    else:
        why = "left out by --no-peer" if args.no_peer else "missing (or was missing when this was built)"
        print(f"Peer: Open MPI is {why}: NO COMPARISON, only our own times; scripts/install_deps.sh installs it")
    if facts["load_at_start"] > 0.5 * facts["cores"]:
        print("NOTE: the machine is busy with something else; ratios below are worth little")

    calibration = Calibration(args.bench_dir)
    results = {"machine": facts, "rounds": args.rounds, "starts": args.starts, "date": time.strftime("%d %B %Y").lstrip("0"),
               "source": source(), "command": command_of(argv)}
    failures = []
    tables = []  # those that were measured
    try:
        progress.say("calibrating")
        calibration.measure()
    except Failed as failure:
        failures.append(str(failure))
    else:
        budget = Budget({part: share for part, share in PARTS.items() if part in args.only}, args.minutes)
        for part in budget.parts():
            if (tables or failures) and budget.over():
                print(f"SHORT: no time was left for the part {part}; give more --minutes, or name it with --only")
                continue
            for table in tables_of(part, args, calibration, progress, budget.until(part)):
                try:
                    table.measure()
                    tables.append((part, table))
                except Failed as failure:  # the other parts go on
                    failures.append(f"{part}: {failure}")
                except Exception:  # a mistake in one part must not lose the figures of the others
                    failures.append(f"{part}: {traceback.format_exc()}")
    progress.clear()

    if calibration.samples:
        c = results["calibration"] = calibration.summary()
        pull = ", ".join(f"{size_name(int(k))} {v:.1f}" for k, v in c["pull_gb_per_s"].items())
        copy = ", ".join(f"{size_name(int(k))} {v:.1f}" for k, v in c["memcpy_gb_per_s"].items())
        fixed = [s["fixed_loop_ms"] for s in calibration.samples]
        print(f"Calibration, median of {len(fixed)}: line one way {c['line_one_way_ns']:.0f} ns; pulled from the "
              f"other core, GB/s per core: {pull}; memcpy, GB/s per core, both at once: {copy}; yield "
              f"{c['yield_ns']:.0f} ns; spawn + exec + exit {c['spawn_us']:.0f} us, in batches of 32 "
              f"{c['spawn_in_batch_us']:.0f} us each; fixed loop {min(fixed):.0f}-{max(fixed):.0f} ms")
    for kind, table in tables:
        results.setdefault(kind, []).append(table.report())
    results["side_by_side"] = side_by_side(results)
    if results["side_by_side"]:
        print("\nSide by side: times as fast as the peer (Open MPI where no other is named), geometric means")
        for what, ratio in results["side_by_side"]:
            print(f"  {ratio:6.2f}  {what}")
    results["seconds"] = time.monotonic() - started
    results["load_at_end"] = os.getloadavg()[0]
    results["peers"] = peers(args, results)
    results["failures"] = failures
    print(f"\nTook {results['seconds']:.0f} s")
    for failure in failures:
        print(f"FAILED: {failure}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
    if args.page:
        # As figures that --json has kept: numbers that are keys are text there.
        page.write(args.page, json.loads(json.dumps(results)))
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nbench.py: interrupted, nothing is reported")
