"""The costs of the recorder: a lone allreduce of 4 bytes and a set of tensors like the gradients of a ResNet-50, without
a recorder, with it, while somebody looks (hvdrun top), and with a timeline. The settings take turns, so that all of them
meet the same machine; ratios are of neighbours, with an interval of 95 % of their median."""
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import processes
from processes import Failed

RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "timeline_rank.py")
SETTINGS = ("off", "recorder", "looked at", "timeline")
DEADLINE = 60
GOALS = {("lone", "recorder"): 1.03, ("set", "recorder"): 1.0005, ("set", "timeline"): 1.003}


def interval(values, level=0.95, draws=2000):
    """Of the median, by drawing again from the values."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(draws))
    edge = int(draws * (1 - level) / 2)
    return medians[edge], medians[-1 - edge]


class Timeline:
    """The part of bench.py."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        self.folder = tempfile.TemporaryDirectory()
        self.times = {what: {setting: [] for setting in SETTINGS} for what in ("lone", "set")}

    def command(self, what, setting):
        flags = ["--timeline", os.path.join(self.folder.name, "out.json")] if setting == "timeline" else []
        work = ([f"{self.args.bin_dir}/hvd_perf", "--sizes", "4", "--registered", "--pin", "--json", "--loops", "5"]
                if what == "lone" else [self.args.python, RANK])
        return [f"{self.args.bin_dir}/hvdrun", "-np", "2", "--prefix", "", *flags, *work]

    def once(self, what, setting):
        """Microseconds of one operation, or of one step of the set."""
        env = dict(os.environ, HVD_TEST_NO_RECORDER="1") if setting == "off" else dict(os.environ)
        job = subprocess.Popen(self.command(what, setting), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
        top = None
        try:
            if setting == "looked at":
                top = subprocess.Popen([f"{self.args.bin_dir}/hvdrun", "top", self.job_of(job, what)], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            out, err = job.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            raise Failed(f"{what}, {setting}: hung for {DEADLINE} s") from None
        finally:
            processes.end_session(job)
            if top:
                top.send_signal(signal.SIGTERM)
                top.wait()
        if job.returncode != 0:
            raise Failed(f"{what}, {setting}: exit code {job.returncode}: {err[-300:]}")
        return json.loads(out.split("\n")[0])["us"]

    def job_of(self, job, what):
        """The id of the job that this hvdrun has begun."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and job.poll() is None:
            table = subprocess.run([f"{self.args.bin_dir}/hvdrun", "ps"], capture_output=True, text=True).stdout
            ours = " ".join(self.command(what, "looked at")[1:6])
            found = [line.split()[0] for line in table.splitlines() if ours in line]
            if found:
                return found[-1]
        return "none"

    def measure(self):
        has_numpy = subprocess.run([self.args.python, "-c", "import numpy"], capture_output=True).returncode == 0
        for what in ("lone", "set") if has_numpy else ("lone",):
            until = self.until if what == "set" or not has_numpy else time.monotonic() + (self.until - time.monotonic()) / 2
            rounds = 0
            while rounds < 2 or (time.monotonic() < until and rounds < 40):
                order = SETTINGS if rounds % 2 == 0 else SETTINGS[::-1]
                for setting in order:
                    self.progress.say(f"timeline: {what}, {setting}")
                    self.times[what][setting].append(self.once(what, setting))
                rounds += 1

    def report(self):
        print(f"\nThe recorder, 2 ranks; times of it over times without; load {os.getloadavg()[0]:.1f}")
        rows = []
        for what, name in (("lone", "a lone allreduce of 4 B"), ("set", "a step of 161 tensors, 102 MB")):
            base = self.times[what]["off"]
            if not base:
                continue
            print(f"  {name}: {statistics.median(base):.4g} us without a recorder")
            for setting in SETTINGS[1:]:
                ratios = [ours / theirs for ours, theirs in zip(self.times[what][setting], base)]
                low, high = interval(ratios)
                goal = GOALS.get((what, setting))
                said = "" if goal is None else f"  goal {goal:.4f}" + ("" if statistics.median(ratios) <= goal else ": missed")
                print(f"    {setting:<10} {statistics.median(ratios):.4f}  ({low:.4f} to {high:.4f}, {len(ratios)} rounds){said}")
                rows.append({"what": name, "setting": setting, "ratio": statistics.median(ratios), "low": low, "high": high,
                             "rounds": len(ratios), "goal": goal})
        return {"rows": rows, "times": self.times}


if __name__ == "__main__":
    sys.exit("a part of bench.py: scripts/bench.sh --only timeline")
