"""`tensorboard & exec hvdrun ...`: what hvdrun was born with is not its own, and neither is what that leaves behind."""

import os
import shlex
import signal
import subprocess
import uuid

import pytest
from conftest import DEADLINE, children_of, environ_has, hvdrun_path, is_alive, kill, pids, wait_until

STRANGER = "STRANGER_OF_HVDRUN_TEST"


class Strangers:
    """Processes that carry a mark of their own and no job's id."""

    def __init__(self):
        self.mark = uuid.uuid4().hex

    def all(self):
        return [p for p in pids() if is_alive(p) and environ_has(p, STRANGER, self.mark)]

    def before(self, command, more=""):
        """A shell that starts them and becomes `command`."""
        mark = f"env {STRANGER}={self.mark}"
        return ["sh", "-c", f"{{ {mark} sleep 600 & {mark} sh -c 'sleep 600 & sleep 600; :' & }} >/dev/null 2>&1; exec " + shlex.join(map(str, command)) + more]

    def before_hvdrun(self):
        """The same for hvdrun with the arguments that follow."""
        return [*self.before([hvdrun_path()], ' "$@"'), "sh"]


@pytest.fixture
def strangers():
    made = Strangers()
    yield made
    for pid in made.all():
        kill(pid)


def orphan_one(strangers):
    """Ends the shell among them, which leaves its children to hvdrun."""
    wait_until("the strangers", lambda: len(strangers.all()) == 4)
    shell = next(p for p in strangers.all() if children_of(p))
    left = children_of(shell)
    kill(shell)
    wait_until("the end of their shell", lambda: not is_alive(shell))
    assert len(strangers.all()) == 3 and all(is_alive(p) for p in left)


@pytest.mark.parametrize("rank, code", [("true", 0), ("exit 3", 3), ("setsid sleep 600 & exit 0", 0)])
def test_children_from_before_outlive_a_job(start, strangers, tmp_path, rank, code):
    rank = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; {rank}"
    job = start("-np", 2, "sh", "-c", rank, program=strangers.before_hvdrun())
    orphan_one(strangers)
    (tmp_path / "go").touch()
    assert job.finish() == code, job.err
    job.process.wait()
    assert len(strangers.all()) == 3
    ours = [p for p in job.processes() if p not in strangers.all()]
    assert not ours


def test_only_they_outlive_a_job_whose_warden_and_agent_are_killed(start, strangers):
    family = ["sh", "-c", "setsid sleep 600 & sleep 600"]
    job = start("-np", 2, *family, program=strangers.before_hvdrun())
    orphan_one(strangers)
    agent, warden = job.agent, job.warden
    wait_until("the ranks and their children", lambda: sum(len(children_of(p)) for p in children_of(agent)) == 4)
    for pid in (warden, agent):
        os.kill(pid, signal.SIGSTOP)
    for pid in (warden, agent):
        kill(pid)
    assert job.finish() == 1
    assert len(strangers.all()) == 3
    wait_until("the end of the job's own", lambda: not [p for p in job.processes() if p not in strangers.all()])


@pytest.mark.parametrize("verb", ["--job", "--clear"])
def test_an_agent_spares_what_its_login_shell_has_started(strangers, verb):
    job_id = uuid.uuid4().hex[:16]
    ended = subprocess.run(strangers.before([hvdrun_path(), "agent", verb, job_id]), input=b"", capture_output=True,
                           timeout=DEADLINE)
    assert ended.returncode == (0 if verb == "--clear" else 1)
    # On a busy machine it ends before they have all begun.
    wait_until("the strangers", lambda: len(strangers.all()) == 4)
