#!/usr/bin/env python3
"""How long elastic jobs stand still: from the death of a rank to the first correct allreduce of the others and of all,
beside torchrun, which starts the same script again; the same when a host is cut off; what growing costs the old ranks;
what a commit costs. Prints ratios; fails when something failed or a sum was wrong, never because something was slow."""
import argparse
import functools
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

import processes
from processes import Failed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "elastic_rank.py")
RANKS = 3
PEER = "torch.distributed, torchrun"
LEAST_EVENTS = 3
GIVE_UP_AFTER_HANGS = 2
DEADLINE = 120  # s, for what an event waits for
HEARTBEAT = 2  # s, of jobs over hosts
# It looks after its processes each 0.1 s instead of 5 s. Without a redirection torchrun 1.13 fails under Python 3.11.
TORCHRUN = ["torchrun", "--standalone", "--nproc_per_node", str(RANKS), "--max_restarts", "1000000",
            "--monitor_interval", "0.1", "--redirects", "2", "--tee", "2"]
READY = re.compile(r"ready (\d+)$")
WORLD = re.compile(r"world (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)(?: (\d+))?$")


@dataclass(frozen=True)
class Joined:
    """A rank's word that it has done its first allreduce in a world; times in ns."""

    generation: int
    rank: int
    size: int
    pid: int
    first: int
    last: int
    own: int = 0


class Job:
    """A command whose ranks say in which worlds they are."""

    def __init__(self, name, command):
        self.name = name
        self.passed = -1  # the last generation in which a rank was killed
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors,
                                        start_new_session=True, text=True, errors="replace")
        self.said, self.ready, self.news = [], set(), threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            found, ready = WORLD.search(line.rstrip("\n")), READY.search(line.rstrip("\n"))
            with self.news:
                if ready:
                    self.ready.add(int(ready[1]))
                if found:
                    self.said.append(Joined(*(int(number or 0) for number in found.groups())))
                self.news.notify_all()
        with self.news:
            self.news.notify_all()

    def fail(self, why):
        self.errors.seek(0)
        raise Failed(f"{self.name}: {why}: {self.errors.read().decode(errors='replace')[-2000:]}")

    def wait_for(self, what, find):
        """The result of `find` on all that was said."""
        until = time.monotonic() + DEADLINE
        with self.news:
            while True:
                found = find(self.said)
                if found:
                    return found
                if self.process.poll() is not None:
                    self.fail(f"it ended with {self.process.returncode} before {what}")
                if time.monotonic() > until:
                    self.fail(f"waited {DEADLINE} s for {what}")
                self.news.wait(0.5)

    def full_world(self, size, after=-1):
        """The ranks of the first world of this size after that generation."""
        def find(said):
            worlds = {}
            for joined in said:
                if joined.generation > after and joined.size == size:
                    worlds.setdefault(joined.generation, []).append(joined)
            return next((worlds[g] for g in sorted(worlds) if len(worlds[g]) == size), None)
        return self.wait_for(f"a world of {size} ranks after generation {after}", find)

    def next_worlds(self, pids, after):
        """The first world after that generation for each of these processes."""
        def find(said):
            found = {}
            for joined in said:
                if joined.pid in pids and joined.generation > after:
                    found.setdefault(joined.pid, joined)
            return list(found.values()) if len(found) == len(pids) else None
        return self.wait_for(f"the next world of {sorted(pids)}", find)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            code = None
        processes.end_session(self.process)
        if code is None or "WRONG" in self.text_of_errors():
            self.fail(f"it was asked to stop and ended with {code}")
        return code

    def text_of_errors(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")


def milliseconds(begin, worlds):
    return (max(joined.first for joined in worlds) - begin) / 1e6


def kill_one(job, number, chance, figures, survivors_stay, warm=False):
    """Kills a rank of a whole world; how long until the others, and all, were training."""
    world = job.full_world(RANKS, job.passed)
    generation = world[0].generation
    # A slot in which two workers in a row fail at once rests for a second.
    victim = chance.choice([joined for joined in world if joined.last or joined.rank == number % RANKS])
    if warm:
        job.wait_for("a spare that has done its imports", lambda said: job.ready - {joined.pid for joined in said})
    time.sleep(chance.uniform(0.02, 0.05))  # not always at the same place of the loop
    begin = time.time_ns()
    os.kill(victim.pid, signal.SIGKILL)
    if survivors_stay:
        others = job.next_worlds({joined.pid for joined in world} - {victim.pid}, generation)
        figures["survivors"].append(milliseconds(begin, others))
    whole = job.full_world(RANKS, generation)
    figures["all"].append(milliseconds(begin, whole))
    figures["own"] += [joined.own / 1e6 for joined in whole if joined.last == 0]
    if survivors_stay and whole[0].generation > others[0].generation:
        figures["pause"].append(max(joined.first - joined.last for joined in whole if joined.last) / 1e6)
    job.passed = generation


def measure_kills(name, command, events, until, progress, survivors_stay):
    """{"survivors": [ms], "all": [ms], "own": [ms], "pause": [ms], "rss_kb": of a rank, "hangs": jobs given up}.
    Where all ranks are started again, or a spare takes the place, each event has a job of its own."""
    figures = {"survivors": [], "all": [], "own": [], "pause": [], "rss_kb": 0, "hangs": 0}
    chance = random.Random(1)
    per_job = events if survivors_stay and "spare" not in name else 1
    for begin in range(0, events, per_job):
        if begin >= LEAST_EVENTS and time.monotonic() > until or figures["hangs"] >= GIVE_UP_AFTER_HANGS:
            break
        job = Job(name, command)
        try:
            for number in range(begin, begin + per_job):
                if number >= LEAST_EVENTS and time.monotonic() > until:
                    break
                progress.say(f"{name}: event {number + 1} of {events}")
                if "spare" in name:  # hvdrun starts one only after a loss, and another one only after the next
                    kill_one(job, 0, chance, {key: [] for key in figures}, survivors_stay)
                kill_one(job, number, chance, figures, survivors_stay, warm="spare" in name)
            rss = max(resident_kb(joined.pid) for joined in job.full_world(RANKS, job.passed))
            figures["rss_kb"] = max(figures["rss_kb"], rss)
            job.stop()
        except Failed as failed:
            processes.end_session(job.process)
            if name != PEER:
                raise
            figures["hangs"] += 1
            figures["hang"] = str(failed)
        except BaseException:
            processes.end_session(job.process)
            raise
    return figures


def resident_kb(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def measure_cuts(build, events, progress):
    """ms beyond the heartbeat's time, from the cut of one of three hosts to the others' training."""
    sys.path.insert(0, os.path.join(ROOT, "test", "system"))
    try:
        from host_rig import WHY_NOT, HostRig
    except ImportError as missing:
        return {"left out": str(missing)}
    if WHY_NOT:
        return {"left out": WHY_NOT}
    with tempfile.TemporaryDirectory() as folder:
        rig = HostRig(folder, RANKS)
        try:
            hosts = ",".join(f"{host.name}:1" for host in rig.hosts)
            flags = ["-np", RANKS, "--min-np", 2, "--max-failures", 1000, "--blacklist-cooldown-range", 1, 1]
            command = rig.on_head(f"{build}/bin/hvdrun", "--elastic", *flags, "--heartbeat-timeout", HEARTBEAT,
                                  "-H", hosts, f"{build}/bench/elastic_perf")
            return _cut_hosts(rig, Job("hosts that are cut off", command), events, progress)
        finally:
            rig.down()


def _cut_hosts(rig, job, events, progress):
    taken, generation = [], -1
    try:
        for number in range(events):
            world = job.full_world(RANKS, generation)
            generation = world[0].generation
            progress.say(f"a host is cut off: event {number + 1} of {events}")
            rig.hosts[1 + number % 2].cut()
            begin = time.time_ns()
            smaller = job.full_world(RANKS - 1, generation)
            taken.append(milliseconds(begin, smaller) - 1000 * HEARTBEAT)
            rig.hosts[1 + number % 2].join()
            generation = smaller[0].generation
        job.full_world(RANKS, generation)
        job.stop()
    except BaseException:
        processes.end_session(job.process)
        raise
    return {"beyond the heartbeat": taken}


def measure_commits(args):
    outcome = processes.run([f"{args.bin_dir}/hvdrun", "--elastic", "-np", "1", args.python, RANK, "commit"], DEADLINE)
    if not outcome.ok:
        raise Failed(f"commits ended with {outcome.code}: {outcome.stderr[-2000:]}")
    return json.loads(outcome.stdout[outcome.stdout.index("{"):])


def part_of(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class Elastic:
    """The part of bench.py."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        self.events, self.peer = args.events, getattr(args, "peer", True)
        self.kills, self.cuts, self.commits = {}, {}, {}
        self.folder = tempfile.TemporaryDirectory()  # of torchrun

    def commands(self):
        """name -> (command, survivors stay)."""
        native = f"{self.args.bench_dir}/elastic_perf"
        hvdrun = [f"{self.args.bin_dir}/hvdrun", "--elastic", "-np", str(RANKS), "--min-np", "2",
                  "--max-failures", "1000000"]
        spare = ["-H", f"localhost:{RANKS + 1}", "--spares", "1"]
        python = [self.args.python, RANK]
        yield "native", [*hvdrun, native], True
        yield "native, a spare", [*hvdrun, *spare, native], True
        if not has_torch(self.args.python):
            return
        yield "hvd.elastic.run", [*hvdrun, *python, "run"], True
        yield "hvd.elastic.run, a spare", [*hvdrun, *spare, *python, "run"], True
        yield "torch.distributed, hvdrun", [*hvdrun, *python, "distributed"], False
        if self.peer and shutil.which("torchrun"):
            yield PEER, [*TORCHRUN, "--log_dir", self.folder.name, RANK, "distributed"], False

    def measure(self):
        rows = list(self.commands())
        for place, (name, command, survivors_stay) in enumerate(rows):
            now = time.monotonic()
            until = now + (self.until - now) / (len(rows) + 1 - place)
            self.kills[name] = measure_kills(name, command, self.events, until, self.progress, survivors_stay)
        if has_torch(self.args.python):
            self.progress.say("commits")
            self.commits = measure_commits(self.args)
        if getattr(self.args, "cuts", 0):
            self.cuts = measure_cuts(os.path.dirname(self.args.bin_dir), self.args.cuts, self.progress)

    def rows(self):
        """(what, figures, goal of the median, goal of the 99th, unit)."""
        for name, figures in self.kills.items():
            native, spare = name.startswith("native"), "spare" in name
            if figures["survivors"]:
                goals = (8, 20) if native else (15, None)
                yield f"{name}: survivors train", figures["survivors"], *goals, "ms"
            own = statistics.median(figures["own"]) if figures["own"] else 0
            goal = None if "distributed" in name else 60 if spare else own + 60
            if figures["all"]:
                yield f"{name}: all ranks train", figures["all"], goal, None, "ms"
            if figures["pause"]:
                yield f"{name}: pause of the old ranks", figures["pause"], 20, None, "ms"
        if self.cuts.get("beyond the heartbeat"):
            yield "a host is cut off: beyond the heartbeat", self.cuts["beyond the heartbeat"], 50, None, "ms"
        if self.commits:
            ratios = [ours / theirs for ours, theirs in zip(self.commits["large"], self.commits["memcpy"])]
            yield "commit() of 100 MB by memcpy", ratios, 1.2, None, "x"
            for name, what in (("plain", "an ObjectState"), ("small", "a TorchState of one layer")):
                yield f"commit() of {what}", [1e6 * seconds for seconds in self.commits[name]], 20, None, "us"

    def report(self):
        print(f"\nElastic jobs, {RANKS} ranks, one killed in each event; to the first correct allreduce of 64 KiB; "
              f"load {os.getloadavg()[0]:.1f}")
        print(f"  {'':<46}  {'p50':>10}  {'p99':>10}  {'least':>10}  {'events':>6}  {'goal':>12}")
        table = []
        for what, values, goal, goal99, unit in self.rows():
            median, late = part_of(values, 50), part_of(values, 99)
            said = "-" if goal is None else f"{goal:.4g} {unit}" + (f"/{goal99}" if goal99 else "")
            met = goal is not None and median <= goal and (not goal99 or late <= goal99)
            verdict = "" if goal is None else "  met" if met else f"  {median / goal:.1f}x"
            cells = "".join(f"  {value:>7.4g} {unit:<2}" for value in (median, late, min(values)))
            print(f"  {what:<46}{cells}  {len(values):>6}  {said:>12}{verdict}")
            table.append({"what": what, "p50": median, "p99": late, "least": min(values), "events": len(values),
                          "goal": goal, "goal_p99": goal99, "unit": unit})
        for name, figures in self.kills.items():
            own = statistics.median(figures["own"] or [0])
            imports = f", imports done {own:.0f} ms after the start of a process" if own else ""
            print(f"  {name}: at most {figures['rss_kb'] / 1024:.1f} MiB resident in a rank{imports}"
                  + (f"; hung or failed {figures['hangs']} times: {figures['hang'][:200]}" if figures["hangs"] else ""))
        if "left out" in self.cuts:
            print(f"  hosts that are cut off: left out, {self.cuts['left out']}")
        ratios = self.ratios()
        for name, ratio in ratios.items():
            print(f"  {ratio:6.1f}x  {name}, beside torchrun")
        return {"rows": table, "ratios": ratios, "kills": self.kills, "cuts": self.cuts, "commits": self.commits,
                "load": os.getloadavg()[0]}

    def ratios(self):
        """Until all ranks train again, and until any do: how many times as fast as torchrun."""
        peer = self.kills.get(PEER)
        if not peer or not peer["all"]:
            return {}
        theirs = statistics.median(peer["all"])
        found = {}
        for name, figures in self.kills.items():
            if figures is not peer:
                found[f"{name}: all ranks train"] = theirs / statistics.median(figures["all"])
                if figures["survivors"]:
                    found[f"{name}: survivors train"] = theirs / statistics.median(figures["survivors"])
        return found


@functools.lru_cache(maxsize=None)
def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200, help="ranks that are killed in each job (200)")
    parser.add_argument("--cuts", type=int, default=10, help="hosts that are cut off (10); needs root")
    parser.add_argument("--minutes", type=float, default=30, help="about how long all of it may take (30)")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="the interpreter of the ranks")
    parser.add_argument("--build-dir", default=os.path.join(ROOT, "build"), metavar="DIR",
                        help="the build to measure (build)")
    parser.add_argument("--json", metavar="FILE", help="every figure")
    args = parser.parse_args(argv)
    build = os.path.abspath(args.build_dir)
    args.bin_dir, args.bench_dir = os.path.join(build, "bin"), os.path.join(build, "bench")
    progress = processes.Progress()
    part = Elastic(args, progress, time.monotonic() + 60 * args.minutes)
    try:
        part.measure()
    except Failed as failed:
        progress.clear()
        print(f"FAILED: {failed}", file=sys.stderr)
        return 1
    progress.clear()
    result = part.report()
    if args.json:
        with open(args.json, "w") as file:
            json.dump(result, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
