"""A seeded storm over an elastic job on four hosts, repeated step by step: all results are the same, bit for bit.

HVD_STORM_SEED repeats a storm, HVD_SOAK=1 makes it 300 events long, HVD_STORM_EVENTS=N as long as wanted.
"""

import os
import random
import re
import signal
import sys
import time

import pytest
from conftest import WORKERS, hvdrun_path, is_alive, kill, parent_of, read_proc, skip_without, wait_until
from footprints import Footprints
from host_rig import WHY_NOT, rig_of
from layout_log import LayoutLog

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaced hosts: {WHY_NOT}")
skip_without("numpy")
rig = rig_of(4)

SEED = int(os.environ.get("HVD_STORM_SEED", 1))
EVENTS = int(os.environ.get("HVD_STORM_EVENTS", 300 if os.environ.get("HVD_SOAK") == "1" else 20))
MOST_SLOTS = 3
WORKER = WORKERS / "layout_training.py"
FLAGS = ["-np", 4, "--min-np", 2, "--max-np", 8, "--max-failures", 20 * EVENTS, "--elastic-timeout", 55,
         "--blacklist-cooldown-range", 1, 2, "--stall-check-warning-time-seconds", 2,
         "--stall-check-shutdown-time-seconds", 5, "--terminate-grace", 1]


class Storm:
    def __init__(self, start, rig, folder):
        self.chance = random.Random(SEED)
        self.rig, self.folder = rig, folder
        self.output, self.log = folder / "output", folder / "log"
        self.log.mkdir()
        self.events = []
        self.footprints = Footprints()
        self.slots = [2, 2, 1, 1]
        self.guard = None  # a rank that is spared: without one nobody would have the state
        self.list_hosts()
        with open(self.output, "wb") as file:
            command = [sys.executable, WORKER, "storm", folder]
            self.job = start("--elastic", *FLAGS, "--host-discovery-script", f"sh {folder / 'discover'}", *command,
                             stdout=file, stderr=file, program=rig.on_head(hvdrun_path()))

    def told(self):
        output = self.output.read_text(errors="replace")[-6000:]
        return "\n".join([f"HVD_STORM_SEED={SEED}", *self.events[-30:], output])

    # ---- what there is

    def write_script(self, text):
        part = self.folder / "discover.part"
        part.write_text(text)
        os.replace(part, self.folder / "discover")

    def list_hosts(self):
        named = [(host.name, count) for host, count in zip(self.rig.hosts, self.slots) if count]
        self.chance.shuffle(named)
        self.write_script("".join(f"echo {name}:{count}\n" for name, count in named))

    def ranks(self, host):
        own = set(host.agents())
        return [pid for pid in host.processes() if parent_of(pid) in own and pid not in own]

    def all_ranks(self):
        return [(host, pid) for host in self.rig.hosts for pid in self.ranks(host)]

    def log_of(self, host, pid):
        fields = [line for line in read_proc(pid, "status").decode().splitlines() if line.startswith("NSpid:")]
        return self.log / f"{host.name}.{fields[0].split()[-1]}" if fields else None

    def last_done(self, host, pid):
        """(generation, step) that this rank made last."""
        path = self.log_of(host, pid)
        try:
            with open(path, "rb") as file:
                file.seek(max(0, path.stat().st_size - 400))
                lines = file.read().decode().splitlines(keepends=True)
        except (OSError, TypeError):
            return None
        done = [line.split() for line in lines if line.startswith("done ") and line.endswith("\n")]
        return (int(done[-1][2]), int(done[-1][1])) if done else None

    def progress(self):
        """[((generation, step), host, pid), ...] of the ranks that are in the newest world."""
        found = [(self.last_done(host, pid), host, pid) for host, pid in self.all_ranks()]
        found = [rank for rank in found if rank[0]]
        newest = max((rank[0][0] for rank in found), default=None)
        return [rank for rank in found if rank[0][0] == newest]

    def await_progress(self, size=2):
        """Until so many ranks have made steps that were not made when it was asked for; then another rank is spared."""
        before = max((at[1] for at, _, _ in self.progress()), default=-1)

        def more():
            assert self.job.process.poll() is None, self.told()
            return len([at for at, _, _ in self.progress() if at[1] > before + 1]) >= size

        wait_until(f"two steps of {size} ranks", more, told=self.told)
        self.guard = self.chance.choice([(host, pid) for at, host, pid in self.progress() if at[1] > before + 1])

    def victims(self, count):
        others = [rank for rank in self.all_ranks() if rank != self.guard]
        return self.chance.sample(others, min(count, len(others)))

    def other_host(self):
        """With an agent, and not that of the rank that is spared."""
        others = [host for host in self.rig.hosts if host is not self.guard[0] and host.agents()]
        return self.chance.choice(others or [None])

    # ---- what happens

    def kill_one(self):
        self.signal_ranks(1, signal.SIGKILL)

    def kill_several(self):
        self.signal_ranks(self.chance.choice([2, 3]), signal.SIGKILL)

    def terminate_one(self):
        self.signal_ranks(1, signal.SIGTERM)

    def stop_one(self):
        self.signal_ranks(1, signal.SIGSTOP)  # for the stall limit

    def signal_ranks(self, count, number):
        for _, pid in self.victims(count):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                self.events[-1] += ", one was gone"

    def kill_agent(self):
        host = self.other_host()
        for pid in host.agents()[-1:] if host else []:
            kill(pid)

    def kill_host(self):
        host = self.other_host()
        for pid in host.processes() if host else []:
            kill(pid)

    def cut_host(self):
        """For less than the heartbeat allows, or for longer."""
        host = self.other_host()
        if host:
            host.cut()
            time.sleep(self.chance.choice([0.2, 1, 7]))
            host.join()

    def change_hosts(self):
        spared = self.rig.hosts.index(self.guard[0])
        for place in range(len(self.slots)):
            if place == spared:
                self.slots[place] = max(self.slots[place], self.chance.choice([2, 3]))
            else:
                self.slots[place] = self.chance.choice([0, 1, 2, 2, MOST_SLOTS])
        while sum(self.slots) < 5:
            self.slots[self.chance.randrange(len(self.slots))] += 1
        self.list_hosts()

    def break_script(self):
        self.write_script(self.chance.choice(["exit 3\n", "echo a:b:c\n", "echo ' '; exit 1\n", "sleep 1000\n",
                                              "echo hvd1:2 hvd2:2\n", "printf 'hvd1:2'; kill -9 $$\n"]))

    def repair_script(self):
        self.list_hosts()

    KINDS = (kill_one, kill_one, kill_several, terminate_one, stop_one, kill_agent, kill_host, cut_host, change_hosts,
             change_hosts, break_script, repair_script)

    def strike(self):
        what = self.chance.choice(self.KINDS)
        self.events.append(what.__name__.replace("_", " "))
        what(self)

    def look(self):
        moment = len(self.events)
        self.footprints.look(moment, "hvdrun", self.job.pid)
        for host in self.rig.hosts:
            for pid in host.agents():
                self.footprints.look(moment, "agent", pid)
            for pid in self.ranks(host):
                self.footprints.look(moment, "rank", pid)

    def rage(self):
        self.await_progress()
        for _ in range(EVENTS):
            self.strike()
            if self.chance.random() < 0.7:
                self.await_progress(size=self.chance.choice([2, 4]))
                self.look()
        self.slots = [2, 2, 2, 2]
        self.list_hosts()
        self.await_progress(size=6)

    def finish(self):
        job_id = self.job.job_id()
        (self.folder / "finish").write_text("")
        assert self.job.finish() == 0, self.told()
        text = self.output.read_text(errors="replace")
        assert "Traceback" not in text, self.told()
        self.job.nothing_left(job_id)
        self.rig.nothing_left()


def repeated(hosts_run, folder, schedule):
    """The results of a run without any disturbance, with the same layouts."""
    (folder / "schedule").write_text("".join(f"{steps} {' '.join(map(str, layout))}\n" for steps, layout in schedule))
    counts = [max([layout[place] for _, layout in schedule if place < len(layout)], default=0) for place in range(4)]
    hosts = ",".join(f"hvd{place + 1}:{count}" for place, count in enumerate(counts) if count)
    job = hosts_run("-np", sum(counts), "-H", hosts, sys.executable, WORKER, "repeat", folder)
    assert job.code == 0, job.out[-3000:] + job.err
    return re.findall(r"repeated \d+ (.*)", job.out)


def with_other_sums(schedule):
    """The same steps with as many ranks, but in one part two hosts are one: numbers are added in another order."""
    place = next(i for i, (_, layout) in enumerate(schedule) if len(layout) > 1 and layout[1] > 1)
    steps, (first, second, *others) = schedule[place]
    return [*schedule[:place], (steps, (first + second, *others)), *schedule[place + 1:]]


def check_flat(growth):
    """Bounds far above noise, far below a leak in each event."""
    for what, (lives, kb, fds, most_kb, most_fds) in growth.items():
        print(f"{what}: {lives} lives, most growth {kb} kB and {fds} descriptors, most ever {most_kb} kB and {most_fds}")
    for what, (_, kb, fds, _, _) in growth.items():
        assert kb < 8000 + 50 * EVENTS and fds < 40, growth


@pytest.mark.long
def test_a_storm_over_hosts_changes_no_bit_of_the_results(start, hosts_run, rig, tmp_path):
    print(f"HVD_STORM_SEED={SEED}")
    storm = Storm(start, rig, tmp_path)
    storm.rage()
    storm.finish()
    log = LayoutLog(storm.log)
    log.check_samples()
    again, begun_again = zip(*log.repeats().values())
    schedule = log.schedule()
    results = log.results()
    sizes = {sum(layout) for _, layout in schedule}
    print(f"{EVENTS} events, {len(results)} steps in {len(log.begun)} worlds of {min(sizes)} to {max(sizes)} ranks, "
          f"{len({layout for _, layout in schedule})} layouts; {sum(again)} steps were made again, and "
          f"{sum(begun_again) - sum(again)} that had begun")
    # A rank that was done may wait in the next step for one that was not, and that one's state may be what counts.
    assert max(again) <= 1 and max(begun_again) <= 2 and sum(again) <= EVENTS, (log.repeats(), storm.told())
    check_flat(storm.footprints.growth(settled=5))
    assert repeated(hosts_run, tmp_path, schedule) == results
    assert repeated(hosts_run, tmp_path, with_other_sums(schedule)) != results


def test_a_log_shows_what_must_not_happen(tmp_path):
    (tmp_path / "hvd1.1").write_text("begin 1 0 2 hvd1 0\ntake 0 1 0 1\ndone 0 1 aa bb\ntake 1 1 4 5\nbegin 2 0 1 hvd1 0\n"
                                     "take 0 2 0 1\ndone 0 2 aa bb\ntake 1 2 0 1\ndone 1 2 aa bb\n")
    (tmp_path / "hvd2.1").write_text("begin 1 1 2 hvd2 0\ntake 0 1 2 3\ndone 0 1 aa cc\ntake 1 1 6")  # killed as it wrote
    log = LayoutLog(tmp_path)
    assert log.schedule() == [(2, (1,))] and log.layout(1) == (1, 1)
    assert log.repeats() == {1: (0, 0), 2: (1, 2)}
    with pytest.raises(AssertionError, match=r"step 1 took \[0, 1\]"):
        log.check_samples()
    (tmp_path / "hvd1.2").write_text("done 1 2 aa cc\ndone 5 3 aa bb\n")
    with pytest.raises(AssertionError, match="step 1 of generation 2"):
        LayoutLog(tmp_path).results()
    with pytest.raises(AssertionError, match="each step was made"):
        LayoutLog(tmp_path).schedule()
