"""Nothing secret is in any command line, at any moment of a job, on any host of it: ps shows command lines to everybody."""

import os
import re
import subprocess
import threading
import time

import pytest
from conftest import DEADLINE, hvdrun_path, wait_until
from host_rig import WHY_NOT, rig_of

CANARY = "tweet-tweet-0123456789"
EVERY = 0.002
# Prints the job's key for the test to know, and does not name the other secrets. The test looks until it lets it go.
TELL = f"echo key $HVD_JOB_KEY; [ ${{#INHERITED}} -eq ${{#FROM_FILE}} ] && [ ${{#FROM_FILE}} = {len(CANARY) + 1} ] && echo has both; "

rig = rig_of(3)


class CommandLines:
    """All command lines of this machine, those of its containers included, looked at every 2 ms while the block runs."""

    def __enter__(self):
        self.seen, self.looks = set(), 0
        self.thread = threading.Thread(target=self.look_until_stopped)
        self.stopped = threading.Event()
        self.thread.start()
        return self

    def __exit__(self, *failure):
        self.stopped.set()
        self.thread.join()

    def look_until_stopped(self):
        born = {}
        while not self.stopped.wait(EVERY):
            now = time.monotonic()
            born = {name: born.get(name, now) for name in os.listdir("/proc") if name.isdigit()}
            all_of_them = self.looks % 50 == 0
            for name, since in born.items():
                if all_of_them or now - since < 1:  # the others were seen, and mostly do not change
                    self.look_at(name)
            self.looks += 1

    def look_at(self, name):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                self.seen.add(file.read())
        except OSError:
            pass  # it has ended

    def with_word(self, *words):
        return [line for line in self.seen if all(word.encode() in line for word in words)]


def test_the_test_itself_sees_a_process_of_some_milliseconds():
    """A secret that could not be seen anywhere would prove nothing."""
    number = 0
    end = time.monotonic() + DEADLINE
    with CommandLines() as lines:
        while not lines.with_word("decoy-") and time.monotonic() < end:
            number += 1
            subprocess.run(["sh", "-c", f": decoy-{number}; sleep 0.01"], check=True)
    assert lines.with_word("decoy-")


def until_it_was_looked(lines, folder):
    """A part of the command, and what lets it go on."""
    def let_go():
        began = lines.looks
        wait_until("the agent", lambda: lines.with_word("agent", "--job"))
        wait_until("some more looks", lambda: lines.looks > began + 50)
        (folder / "go").touch()
    return f"until [ -e {folder}/go ]; do sleep 0.05; done", let_go


def secrets_told(job):
    keys = set(re.findall(r"<stdout>:key ([0-9a-f]{64})$", job.out, re.M))
    assert keys, job.out
    return keys


def builds():
    said = subprocess.run([hvdrun_path(), "agent", "--build"], capture_output=True, text=True, check=True).stdout
    return {said.split()[-1]}


def assert_nothing_secret(lines, job, ranks):
    assert job.code == 0, job.err
    assert job.out.count("has both\n") == ranks, "the secrets were there"
    assert not lines.with_word(CANARY)
    for line in lines.seen:
        if hvdrun_path().encode() not in line:
            continue  # not of ours
        assert not [key for key in secrets_told(job) if key.encode() in line], line
        # Nor a key that the workers do not know: of the agents' own streams, of a connection that is made anew.
        long = set(re.findall(rb"(?<![0-9a-f])[0-9a-f]{32,}(?![0-9a-f])", line))
        assert not {word.decode() for word in long} - builds(), line


@pytest.fixture
def given(tmp_path):
    """The arguments and the environment that bring the canary in."""
    (tmp_path / "job.env").write_text(f"FROM_FILE={CANARY}2\n")
    return ["--env-file", tmp_path / "job.env", "-x", "INHERITED"], {"INHERITED": CANARY + "1"}


@pytest.mark.parametrize("hosts", [[], ["--hosts-per-machine", 2]], ids=["one agent", "two agents"])
def test_no_secret_is_in_a_command_line_of_this_machine(start, given, tmp_path, hosts):
    args, env = given
    with CommandLines() as lines:
        wait, let_go = until_it_was_looked(lines, tmp_path)
        job = start("-np", 2, *hosts, *args, "sh", "-c", TELL + wait, env=env)
        let_go()
        job.code = job.finish()
    assert_nothing_secret(lines, job, ranks=2)


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.parametrize("grace", [0, 5], ids=["", "driver grace"])
def test_no_secret_is_in_a_command_line_of_any_host(start, rig, client, given, tmp_path, grace):
    args, env = given
    with CommandLines() as lines:
        wait, let_go = until_it_was_looked(lines, tmp_path)
        job = start("--ssh-client", client, "-np", 6, "-H", "hvd1:2,hvd2:2,hvd3:2", "--tree-radix", 2, "--driver-grace", grace,
                    *args, "sh", "-c", TELL + wait, env=env, program=rig.on_head(hvdrun_path()))
        let_go()
        job.code = job.finish()
    assert_nothing_secret(lines, job, ranks=6)
    assert len(lines.with_word("agent", "--job")) >= 3, "one agent for each host"
    if client == "program":
        assert lines.with_word("ssh", "hvd2"), "the ssh program was seen"
    rig.nothing_left()


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_nor_of_an_agent_that_comes_back(start, rig, given, tmp_path):
    args, env = given
    with CommandLines() as lines:
        wait, let_go = until_it_was_looked(lines, tmp_path)
        job = start("-np", 2, "-H", "hvd1:1,hvd2:1", "--driver-grace", 30, *args, "sh", "-c", TELL + wait, env=env,
                    program=rig.on_head(hvdrun_path()))
        wait_until("the workers", lambda: rig.hosts[0].agents() and rig.hosts[1].agents() and
                   len(rig.hosts[0].processes()) > 2)
        rig.hosts[0].kill_sshd()
        wait_until("a visit", lambda: lines.with_word("agent", "--resume"))
        let_go()
        job.code = job.finish()
    assert_nothing_secret(lines, job, ranks=2)
    rig.nothing_left()
