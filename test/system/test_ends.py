"""However a job ends, soon nothing of it is left: no process, no socket, no shared memory."""

import fcntl
import os
import pty
import shutil
import signal
import sys
import tempfile
import termios
import time

import pytest
from conftest import WORKERS, hvdrun_path, is_alive, kill, state_of, wait_until, worker

# Each rank: a child in the same session, a grandchild in a session of its own, both deaf to SIGTERM.
FAMILY = ["sh", str(WORKERS / "family.sh")]


def family_of(start, ranks=2):
    job = start("-np", ranks, *FAMILY)
    expected = ranks * 3
    wait_until("all workers and their children", lambda: len(sleepers(job)) >= expected)
    return job


def sleepers(job):
    own = {job.pid, job.warden, job.agent}
    return [p for p in job.processes() if p not in own]


@pytest.mark.parametrize("victims", ["hvdrun", "agent", "warden", "agent+warden", "hvdrun+agent", "worker"])
def test_kill_9_leaves_nothing(start, victims):
    job = family_of(start)
    job_id = job.job_id()
    known = {"hvdrun": job.pid, "agent": job.agent, "warden": job.warden}
    known["worker"] = job.workers[0]
    for victim in [known[name] for name in victims.split("+")]:
        kill(victim)  # a warden ends with its agent
    job.nothing_left(job_id)
    code = job.finish()
    if "hvdrun" not in victims:
        assert code == (137 if victims == "worker" else 1)
        assert "signal 9" in job.err  # the report names what happened


def test_kill_9_inside_an_generation_leaves_no_shared_memory(start, tmp_path):
    for victim in ("hvdrun", "agent", "warden"):
        job = start("-np", 2, *worker("link_worker.py", "join", "alloc=100000", "sleep"))
        wait_until("both ranks", lambda: job_has_pages(job, 2))
        job_id = job.job_id()
        os.kill(getattr(job, "pid" if victim == "hvdrun" else victim), signal.SIGKILL)
        job.nothing_left(job_id)
        job.finish()


def job_has_pages(job, count):
    def holds_page(pid):
        try:
            return any("memfd:hvd-" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return False

    agent = job.agent
    return holds_page(agent) and len(sleepers(job)) >= count


def test_ctrl_c_ends_gracefully_with_130(start, tmp_path):
    script = f"trap 'echo asked; touch {tmp_path}/asked$HOROVOD_RANK; exit 0' INT; touch {tmp_path}/up$HOROVOD_RANK; "
    job = start("-np", 2, "sh", "-c", script + "while :; do sleep 0.05; done")
    wait_until("both ranks", lambda: all((tmp_path / f"up{r}").exists() for r in range(2)))
    job_id = job.job_id()
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130
    assert (tmp_path / "asked0").exists() and (tmp_path / "asked1").exists()
    assert "SIGINT" in job.err
    job.nothing_left(job_id)


def test_ctrl_c_twice_ends_those_who_do_not_listen(start, tmp_path):
    with open(tmp_path / "err", "wb") as err:
        job = start("-np", 2, "--verbose", "--terminate-grace", "600", *FAMILY, stderr=err)
    wait_until("all workers and their children", lambda: len(sleepers(job)) >= 6)
    job_id = job.job_id()
    os.kill(job.pid, signal.SIGINT)
    wait_until("the first to be heard", lambda: "asked to end by signal 2" in (tmp_path / "err").read_text())
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130
    job.nothing_left(job_id)


def test_sigterm_to_hvdrun_ends_the_job_with_143(start):
    job = start("-np", 2, "sleep", "600")
    wait_until("both ranks", lambda: len(sleepers(job)) == 2)
    os.kill(job.pid, signal.SIGTERM)
    assert job.finish() == 143
    job.nothing_left()


def test_a_worker_deaf_to_sigterm_is_killed_after_the_grace(run):
    job = run("-np", 2, "sh", "-c", "trap '' TERM; [ $HOROVOD_RANK = 0 ] && exit 6; while :; do sleep 1; done")
    assert job.code == 6
    job.nothing_left()


def test_what_a_good_worker_leaves_behind_is_ended_too(run, tmp_path):
    job = run("-np", 2, "sh", "-c", "setsid sleep 600 & sleep 600 >/dev/null 2>&1 & exit 0")
    assert job.code == 0, job.err
    job.nothing_left(within=5)  # hvdrun ends when all have ended


def test_fifty_short_jobs_never_hang(run):
    for _ in range(50):
        assert run("-np", 8, "true").code == 0


MEANS = ["", "cgroup", "pidfd", "memfd", "close_range", "futex_waitv", "cgroup,pidfd,memfd,close_range,futex_waitv"]


@pytest.mark.parametrize("without", MEANS)
@pytest.mark.parametrize("victim", ["hvdrun", "agent", "warden", "worker", "nobody"])
def test_no_orphans_with_each_means_forced_off(start, without, victim):
    job = start("--verbose", "-np", 2, *FAMILY, env={"HVD_TEST_WITHOUT": without})
    wait_until("all workers and their children", lambda: len(sleepers(job)) >= 6)
    job_id = job.job_id()
    if victim == "nobody":
        os.kill(job.pid, signal.SIGINT)
    else:
        known = {"hvdrun": job.pid, "agent": job.agent, "warden": job.warden}
        known["worker"] = job.workers[0]
        os.kill(known[victim], signal.SIGKILL)
    job.nothing_left(job_id)
    assert job.finish() == {"hvdrun": -9, "worker": 137, "nobody": 130}.get(victim, 1)
    if victim in ("worker", "nobody"):
        means = next(line for line in job.err.splitlines() if "cleanup is guaranteed by" in line)
        assert ("cgroup of its own" in means) == (MAY_MAKE_CGROUPS and "cgroup" not in without)
        assert ("pidfd" in means) == ("pidfd" not in without)
    assert not [f for f in cgroups_left() if job_id in f]


def cgroup2_folder():
    own = [line[3:] for line in open("/proc/self/cgroup").read().splitlines() if line.startswith("0::")]
    for line in open("/proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        if right.startswith("cgroup2 ") and own:
            return left.split()[4] + ("" if own[0] == "/" else own[0])
    return None


def may_make_cgroups():
    folder = cgroup2_folder()
    if folder is None:
        return False
    try:
        probe = tempfile.mkdtemp(prefix="hvd-probe-", dir=folder)  # not by the pid: test workers share the cgroup tree
        found = os.path.exists(os.path.join(probe, "cgroup.kill"))
        os.rmdir(probe)
        return found
    except OSError:
        return False


MAY_MAKE_CGROUPS = may_make_cgroups()


def cgroups_left():
    return [f for f in os.listdir(cgroup2_folder() or "/nowhere") if f.startswith("hvd-")] if cgroup2_folder() else []


@pytest.mark.parametrize("without", ["", "close_range", "memfd,futex_waitv"])
def test_without_some_means_a_job_still_works(run, without):
    job = run("-np", 2, "ls", "/proc/self/fd", env={"HVD_TEST_WITHOUT": without})
    for rank in range(2):
        assert [line.split(":", 1)[1] for line in job.out.splitlines() if line.startswith(f"[{rank}]")] == ["0", "1", "2", "3"]
    job = run("-np", 2, *worker("link_worker.py", "join", "alloc=100000", "goodbye"), env={"HVD_TEST_WITHOUT": without})
    assert job.code == 0, job.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize("victim", ["hvdrun", "agent", "warden", "worker"])
def test_no_orphans_as_an_ordinary_user(start, tmp_path, victim):
    binary = tmp_path / "bin" / "hvdrun"
    binary.parent.mkdir()
    shutil.copy(hvdrun_path(), binary)
    shutil.copy(FAMILY[1], tmp_path / "family.sh")
    for path in [tmp_path, *tmp_path.parents]:
        if str(path) != "/" and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o755)
    job = start("-np", 2, "sh", tmp_path / "family.sh", program=["setpriv", "--reuid", "65534", "--regid", "65534",
                                                                 "--clear-groups", str(binary)], cwd="/")
    wait_until("all workers and their children", lambda: len(job.processes()) >= 3 + 6)
    known = {"hvdrun": job.pid, "agent": job.agent, "warden": job.warden}
    known["worker"] = job.workers[0]
    os.kill(known[victim], signal.SIGKILL)
    job.nothing_left()
    assert job.finish() == {"hvdrun": -9, "worker": 137}.get(victim, 1)


def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_job(run):
    job = run("-np", 2, "sh", "-c", "[ $HOROVOD_RANK = 0 ] && { setsid sleep 600 & kill -9 $$; }; sleep 600")
    assert job.code == 137
    job.nothing_left(within=5)  # hvdrun ends when all have ended


def test_timeout_ends_the_job_with_124(run):
    job = run("-np", 2, "--timeout", "0.5", "sleep", "600")
    assert job.code == 124
    assert job.err == "hvdrun: the job did not end within the 0.5 s of --timeout; all ranks were ended.\n"
    job.nothing_left()
    assert run("-np", 2, "--timeout", "600", "true").code == 0


def test_ctrl_z_pauses_the_workers_and_fg_resumes_them(start, tmp_path):
    count = "import os,sys,time\nn = 0\nwhile True:\n  n += 1\n  open(f'{sys.argv[1]}/{os.environ[\"RANK\"]}', 'w').write(str(n))\n" \
            "  time.sleep(0.02)"  # spawns nothing: each rank is one process
    job = start("-np", 2, "--timeout", "600", sys.executable, "-S", "-E", "-c", count, tmp_path)
    numbers = lambda: [(tmp_path / str(r)).read_text() for r in range(2)]
    wait_until("both ranks", lambda: len(os.listdir(tmp_path)) == 2 and all(numbers()))
    os.kill(job.pid, signal.SIGTSTP)
    wait_until("hvdrun to stop", lambda: state_of(job.pid) == "T")
    workers = sleepers(job)
    assert len(workers) == 2
    wait_until("the workers to stop", lambda: all(state_of(p) == "T" for p in workers))
    before = numbers()
    time.sleep(0.3)
    assert numbers() == before
    os.kill(job.pid, signal.SIGCONT)
    wait_until("the workers to go on", lambda: numbers() != before and all(state_of(p) != "T" for p in workers))
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130
    job.nothing_left()


def test_a_stopped_worker_hears_the_end(start):
    job = start("-np", 2, "--terminate-grace", "60", "sleep", "600")
    wait_until("both ranks", lambda: len(sleepers(job)) == 2)
    os.kill(sleepers(job)[0], signal.SIGSTOP)
    os.kill(job.pid, signal.SIGTERM)
    assert job.finish() == 143
    job.nothing_left()


def test_a_closed_terminal_ends_the_job_and_leaves_nothing(start):
    leader, follower = pty.openpty()
    job = start("-np", 2, *FAMILY, stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(follower)
    wait_until("all workers and their children", lambda: len(sleepers(job)) >= 6)
    os.close(leader)
    job.nothing_left()
    assert job.finish() == 129


def test_nohup_stays_deaf_to_sighup(start, tmp_path):
    job = start("-np", 1, "sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done", program=["nohup", hvdrun_path()])
    wait_until("the worker", lambda: len(job.processes()) >= 4)
    os.kill(job.pid, signal.SIGHUP)
    (tmp_path / "go").touch()
    assert job.finish() == 0
