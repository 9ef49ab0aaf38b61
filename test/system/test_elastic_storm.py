"""A seeded storm over an elastic job: ranks and agents die, several at once, are stopped, hosts come, go and change.

HVD_STORM_SEED repeats a storm, HVD_SOAK=1 makes it 300 events long, HVD_STORM_EVENTS=N as long as wanted.
"""

import os
import random
import re
import signal
import sys
import time

import pytest
from conftest import WORKERS, children_of, is_alive, kill, own_children, skip_without, state_of, wait_until

skip_without("torch")

SEED = int(os.environ.get("HVD_STORM_SEED", time.time()))
EVENTS = int(os.environ.get("HVD_STORM_EVENTS", 300 if os.environ.get("HVD_SOAK") == "1" else 20))
HOSTS = ("127.0.0.1", "127.0.0.2")
FLAGS = ["-np", 3, "--min-np", 2, "--max-np", 6, "--max-failures", 10 * EVENTS, "--elastic-timeout", 55,
         "--blacklist-cooldown-range", 1, 2]


class Storm:
    def __init__(self, start, folder):
        self.chance = random.Random(SEED)
        self.folder = folder
        self.output = folder / "output"
        self.events = []
        self.list_hosts(2, 2)
        with open(self.output, "wb") as file:
            self.job = start("--elastic", *FLAGS, "--host-discovery-script", f"sh {folder / 'discover'}",
                             sys.executable, WORKERS / "storm_worker.py", folder, stdout=file, stderr=file)

    def told(self):
        return "\n".join([f"HVD_STORM_SEED={SEED}", *self.events, self.output.read_text(errors="replace")[-6000:]])

    def progress(self):
        """(steps, size of the world) at the last commit."""
        try:
            steps, size = (self.folder / "progress").read_text().split()
        except OSError:
            return 0, 0
        return int(steps), int(size)

    def write_script(self, text):
        part = self.folder / "discover.part"
        part.write_text(text)
        os.replace(part, self.folder / "discover")

    def list_hosts(self, *slots):
        self.write_script("".join(f"echo {host}:{count}\n" for host, count in zip(HOSTS, slots) if count))

    def agents(self):
        return [agent for warden in own_children(self.job.pid) for agent in own_children(warden)]

    def ranks(self):
        return [rank for agent in self.agents() for rank in children_of(agent)]

    def await_progress(self):
        """Until some step is committed that was not when it was asked for."""
        # A world that nobody survived begins at step 0 again.
        before = self.progress()
        wait_until("a commit", lambda: self.progress() != before or self.job.process.poll() is not None, told=self.told)
        assert self.job.process.poll() is None, self.told()

    def pick(self, count):
        found = self.ranks()
        return self.chance.sample(found, min(count, max(len(found) - 1, 0)))

    # ---- what happens

    def kills_ranks(self, count):
        for pid in self.pick(count):
            kill(pid)

    def stops_a_rank(self):
        for pid in self.pick(1):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.chance.uniform(0, 0.2))
            if state_of(pid) == "T" and self.chance.random() < 0.5:
                os.kill(pid, signal.SIGCONT)
            elif is_alive(pid):
                kill(pid)

    def loses_an_agent(self):
        agents = self.agents()
        if len(agents) > 1:
            kill(self.chance.choice(agents))

    def changes_hosts(self):
        self.list_hosts(*self.chance.choice([(2, 2), (3, 3), (1, 2), (2, 1), (3, 1), (3, 0), (0, 3), (1, 3), (2, 3)]))

    def has_a_bad_script(self):
        self.write_script(self.chance.choice(["exit 3\n", "echo a:b:c\n", "echo ' '; exit 1\n", "sleep 1000\n"]))

    def strike(self):
        kinds = [lambda: self.kills_ranks(1), lambda: self.kills_ranks(2), self.stops_a_rank, self.loses_an_agent,
                 self.changes_hosts, self.changes_hosts, self.has_a_bad_script]
        names = ["kill one", "kill two", "stop", "agent", "hosts", "hosts", "bad script"]
        which = self.chance.randrange(len(kinds))
        self.events.append(f"{names[which]} at {self.progress()}")
        try:
            kinds[which]()
        except ProcessLookupError:
            self.events[-1] += ": it was gone"


@pytest.mark.long
def test_a_storm_is_survived_and_each_item_counted_once(start, tmp_path):
    storm = Storm(start, tmp_path)
    print(f"HVD_STORM_SEED={SEED}")
    storm.await_progress()
    for _ in range(EVENTS):
        storm.strike()
        if storm.chance.random() < 0.7:
            storm.await_progress()
        time.sleep(storm.chance.uniform(0, 0.5))
    storm.list_hosts(2, 2)
    storm.await_progress()
    job_id = storm.job.job_id()
    (tmp_path / "finish").write_text("")
    assert storm.job.finish() == 0, storm.told()
    text = storm.output.read_text(errors="replace")
    assert "AssertionError" not in text, storm.told()
    counted = re.findall(r"counted (\d+) items in (\d+) steps, size (\d+)", text)
    assert len(set(counted)) == 1 and len(counted) == int(counted[0][2]), storm.told()
    most = max([text.count(f"repeats step {step} ") for step in set(re.findall(r"repeats step (\d+) ", text))], default=0)
    repeats = {pid: len(re.findall(rf"repeats step \d+ pid {pid}\n", text)) for pid in re.findall(r"pid (\d+)\n", text)}
    print(f"{counted[0][1]} steps, {text.count('begins with')} generations after the first, most repeats of a step {most}")
    assert all(count <= EVENTS for count in repeats.values()), (repeats, storm.told())
    storm.job.nothing_left(job_id)
