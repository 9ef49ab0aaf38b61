"""The costs of the launcher itself: Python workers beside bare interpreters, time and memory of hvdrun's own processes,
and how fast the workers' output gets through."""
import json
import os
import select
import shutil
import statistics
import subprocess
import tempfile
import time

import openmpi
import processes
from budget import there_and_back
from processes import Failed

LOG_WORKERS = 8
LOG_LINE = 100  # bytes, by log_writer
FOOTPRINT_WORKERS = (2, 512)
INIT = ("from horovod.common.basics import HorovodBasics; "
        "h = HorovodBasics(); h.init(); h.shutdown()")


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)} if values else None


def ratios_of(over, under):
    return spread([a / b for a, b in zip(over, under)])


def figure(values, digits=1):
    return "-" if values is None else f"{values['median']:.{digits}f}"


def span(values, digits=2):
    return "-" if values is None else f"{values['low']:.{digits}f}-{values['high']:.{digits}f}"


class PythonStart:
    """N Python workers that join and leave, beside as many bare interpreters that a tiny starter starts at once."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until, self.rows = args, progress, until, []

    def measure(self):
        for rows_left, ranks in ((2, 2), (1, 8)):
            until = time.monotonic() + (self.until - time.monotonic()) / rows_left
            python, hvdrun = self.args.python, [f"{self.args.bin_dir}/hvdrun", "-np", str(ranks)]
            self._row(ranks, until, {"ours": [*hvdrun, python, "-c", INIT],
                                     "bare": [f"{self.args.bench_dir}/start_all", str(ranks), python, "-c", "pass"],
                                     "pass": [*hvdrun, python, "-c", "pass"]})

    def _row(self, ranks, until, commands):
        times = {name: [] for name in commands}
        hangs = 0
        for name, run in there_and_back(commands, self.args.starts, until):
            self.progress.say(f"Python workers x {ranks}, run {run or 0}: {name}")
            outcome = processes.run(commands[name], 4 * self.args.start_deadline, keep_output=False)
            if outcome.code == processes.HUNG:
                hangs += 1
            elif not outcome.ok:
                raise Failed(f"{' '.join(commands[name])} ended with {outcome.code}: {outcome.stderr.strip()[-2000:]}")
            elif run is not None:
                times[name].append(outcome.seconds * 1e3)
        self.rows.append({
            "ranks": ranks, "hangs": hangs, "runs": len(times["ours"]), "load": os.getloadavg()[0],
            "ms": {name: spread(taken) for name, taken in times.items()},
            "ratio": ratios_of(times["ours"], times["bare"]),
            "extra_ms": spread([a - b for a, b in zip(times["ours"], times["bare"])]),
            "pass_ratio": ratios_of(times["pass"], times["bare"])})

    def report(self):
        print(f"\nPython workers, import horovod.common.basics + init + shutdown, beside bare interpreters; "
              f"{'/'.join(str(row['runs']) for row in self.rows)} runs each, interleaved, medians; goal: ours within "
              f"1.3 of bare")
        print(f"  {'workers':>7}  {'ours':>9}  {'bare':>9}  {'ours/bare':>9}  {'range':>11}  {'ours-bare':>10}  "
              f"{'range':>13}  {'hvdrun of pass':>14}  {'/bare':>5}  {'load':>4}  hung")
        for row in self.rows:
            ms = row["ms"]
            print(f"  {row['ranks']:>7}  {figure(ms['ours']):>6} ms  {figure(ms['bare']):>6} ms  "
                  f"{figure(row['ratio'], 2):>9}  {span(row['ratio']):>11}  {figure(row['extra_ms']):>7} ms  "
                  f"{span(row['extra_ms'], 1):>13}  {figure(ms['pass']):>11} ms  {figure(row['pass_ratio'], 2):>5}  "
                  f"{row['load']:>4.1f}  {row['hangs']}")
        return self.rows


# ---- time and memory of hvdrun's own processes


def cpu_ms(pid):
    """User and system time of one process without its children. The clock of a process counts in ns, its stat in ticks."""
    return time.clock_gettime((~pid << 3) | 2) * 1e3


def kilobytes(path, key):
    with open(path) as file:
        for line in file:
            if line.startswith(key):
                return int(line.split()[1])
    raise OSError(f"no {key} in {path}")


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += map(int, file.read().split())
    return found


def runs_program(pid, program):
    try:
        return os.path.samefile(f"/proc/{pid}/exe", program)
    except OSError:
        return False


def below(root):
    found = [root]
    for pid in found:
        try:
            found += children(pid)
        except OSError:
            pass
    return found


class Footprint:
    """hvdrun's own processes (driver, warden, agent) while so many workers run, and until their end."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        self.program, self.worker = f"{args.bin_dir}/hvdrun", shutil.which("cat")
        self.samples = {workers: [] for workers in FOOTPRINT_WORKERS}
        self.load = 0.0

    def measure(self):
        for workers, run in there_and_back(FOOTPRINT_WORKERS, self.args.footprints, self.until):
            self.progress.say(f"time and memory of hvdrun's processes: {workers} workers, run {run or 0}")
            sample = self._sample(workers)
            if run is not None:
                self.samples[workers].append(sample)
        self.load = os.getloadavg()[0]

    def _sample(self, workers):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
            gate = os.path.join(folder, "gate")
            os.mkfifo(gate)
            writer = os.open(gate, os.O_RDWR)  # each worker reads until this is closed
            process = subprocess.Popen(
                [self.program, "-np", str(workers), self.worker, gate], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
            try:
                own = self._wait_for(process, workers)
                time.sleep(0.3)  # until all is quiet, a heartbeat or so
                sample = {"processes": len(own), "running_ms": sum(map(cpu_ms, own)),
                          "peak_kb": sum(kilobytes(f"/proc/{pid}/status", "VmHWM:") for pid in own),
                          "pss_kb": sum(kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in own)}
                closed_by_follow, writer = writer, None
                sample["end_ms"] = self._follow(process, own, closed_by_follow)
                code = process.wait(1)
            except BaseException as failure:
                processes.end_session(process)
                if isinstance(failure, OSError):
                    raise Failed(f"hvdrun's processes with {workers} workers could not be read: {failure}")
                raise
            finally:
                if writer is not None:
                    os.close(writer)
            errors.seek(0)
            if code != 0:
                raise Failed(f"hvdrun with {workers} workers ended with {code}: {errors.read().decode()[-2000:]}")
            return sample

    def _wait_for(self, process, workers):
        """hvdrun's own processes, as soon as all workers run their program."""
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            pids = below(process.pid)
            own = [pid for pid in pids if runs_program(pid, self.program)]
            if sum(runs_program(pid, self.worker) for pid in pids) == workers:
                return own
            time.sleep(0.1)
        raise Failed(f"hvdrun: {workers} workers did not run within 60 s, or it ended with {process.returncode}")

    def _follow(self, process, own, writer):
        """Opens the gate and reads the clocks until hvdrun has ended. The time after a process's last reading is missing: 1 ms or so."""
        last = {pid: cpu_ms(pid) for pid in own}
        os.close(writer)
        fd = os.pidfd_open(process.pid)
        try:
            poller = select.poll()
            poller.register(fd, select.POLLIN)
            until = time.monotonic() + 60
            ended = False
            while not ended:
                ended = bool(poller.poll(1))  # not waited for yet: the driver's clock can be read after its end
                for pid in own:
                    try:
                        last[pid] = max(last[pid], cpu_ms(pid))
                    except OSError:
                        pass
                if time.monotonic() > until:
                    raise Failed("hvdrun did not end within 60 s after its workers")
        finally:
            os.close(fd)
        return sum(last.values())

    def report(self):
        print(f"\nhvdrun's own processes, children excluded, workers that wait and end; {len(self.samples[2])} runs "
              f"each, interleaved, medians (range); load {self.load:.1f}; goal: 0.3 ms and 100 kB per worker")
        keys = {"running_ms": "time, all run", "end_ms": "time, whole job", "peak_kb": "VmHWM", "pss_kb": "Pss"}
        print(f"  {'':<15}" + "".join(f"  {f'{w} workers':>28}" for w in FOOTPRINT_WORKERS)
              + f"  {'all / worker':>13}  {'added by one':>13}")
        few, many = FOOTPRINT_WORKERS
        result = {"load": self.load, "processes": None, "rows": []}
        if not all(self.samples.values()):
            return result
        for key, name in keys.items():
            unit = key.rpartition("_")[2].replace("kb", "kB")
            taken = {w: spread([sample[key] for sample in self.samples[w]]) for w in FOOTPRINT_WORKERS}
            per_worker = taken[many]["median"] / many
            added = (taken[many]["median"] - taken[few]["median"]) / (many - few)
            digits = 3 if unit == "ms" else 1
            cells = "".join(f"  {f'{figure(taken[w])} {unit} ({span(taken[w], 1)})':>28}" for w in FOOTPRINT_WORKERS)
            print(f"  {name:<15}{cells}  {per_worker:>10.{digits}f} {unit}  {added:>10.{digits}f} {unit}")
            result["rows"].append({"what": key, "workers": taken, "per_worker": per_worker, "added_by_one": added})
        result["processes"] = self.samples[many][0]["processes"]
        print(f"  {result['processes']} processes. Memory is summed over them; VmHWM counts what they "
              f"share once for each, Pss once.")
        return result


# ---- log throughput


class LogThroughput:
    """Workers that write flat out, through the launcher, into a pipe whose reader checks each line."""

    def __init__(self, args, progress, until):
        self.args, self.progress, self.until = args, progress, until
        writer = [f"{args.bench_dir}/log_writer", str(args.log_lines)]
        self.commands = {"ours": ([f"{args.bin_dir}/hvdrun", "-np", str(LOG_WORKERS), *writer], None)}
        if args.peer:
            self.commands["peer"] = (openmpi.command(LOG_WORKERS, writer, ["--tag-output"]), openmpi.ENVIRONMENT)
        self.rates = {name: [] for name in self.commands}
        self.wrong = {name: {"lost": 0, "doubled": 0, "damaged": 0} for name in self.commands}
        self.hangs = dict.fromkeys(self.commands, 0)
        self.load = 0.0

    def measure(self):
        reader = [f"{self.args.bench_dir}/log_reader", str(LOG_WORKERS), str(self.args.log_lines)]
        size = LOG_WORKERS * self.args.log_lines * LOG_LINE
        for name, run in there_and_back(self.commands, self.args.logs, self.until):
            self.progress.say(f"log throughput, run {run or 0}: {name}")
            command, env = self.commands[name]
            outcome = processes.run([*reader, *command], self.args.log_deadline, env=env)
            if outcome.code == processes.HUNG:
                self.hangs[name] += 1
                continue
            record = json.loads(outcome.stdout) if outcome.ok else {"status": outcome.code}
            if record["status"] != 0:
                if name == "ours":
                    raise Failed(f"{' '.join(command)} ended with {record['status']}: "
                                 f"{outcome.stderr.strip()[-2000:]}")
                self.hangs[name] += 1
                continue
            for kind in self.wrong[name]:
                self.wrong[name][kind] += record[kind]
            if run is not None:
                self.rates[name].append(size / record["seconds"] / 1e6)
        self.load = os.getloadavg()[0]
        if any(self.wrong["ours"].values()):
            raise Failed(f"hvdrun's output: {self.wrong['ours']}")

    def report(self):
        result = {"workers": LOG_WORKERS, "lines": self.args.log_lines, "load": self.load, "wrong": self.wrong,
                  "hangs": self.hangs, "mb_per_s": {name: spread(rates) for name, rates in self.rates.items()},
                  "ratio": ratios_of(self.rates["ours"], self.rates.get("peer", []))}
        print(f"\nLog throughput, {LOG_WORKERS} workers, {self.args.log_lines} lines of {LOG_LINE} B each, start and "
              f"end included; {len(self.rates['ours'])} runs each, interleaved, medians; load {self.load:.1f}; goal: 5x")
        print(f"  {'':<7}  {'MB/s':>7}  {'range':>13}  {'lost':>7}  {'doubled':>7}  {'damaged':>7}  hung "
              f"({self.args.log_deadline:.0f} s) or failed")
        for name, label in (("ours", "hvdrun"), ("peer", "mpirun")):
            if name in self.commands:
                rate, wrong = result["mb_per_s"][name], self.wrong[name]
                print(f"  {label:<7}  {figure(rate):>7}  {span(rate, 1):>13}  {wrong['lost']:>7}  "
                      f"{wrong['doubled']:>7}  {wrong['damaged']:>7}  {self.hangs[name]}")
        if result["ratio"]:
            print(f"  ratio {figure(result['ratio'], 2)} ({span(result['ratio'])})")
        return result
