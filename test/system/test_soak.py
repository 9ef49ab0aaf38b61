"""Random ends at random moments, and jobs that run for long. A few rounds by default, hundreds with HVD_SOAK=1
(scripts/test.sh --soak)."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys

import pytest
from conftest import Job, WORKERS, hvdrun_path, kill, parent_of, skip_without, wait_until
from host_rig import WHY_NOT, rig_of

rig = rig_of(2)

SOAK = os.environ.get("HVD_SOAK") == "1"
ROUNDS = 300 if SOAK else 8
STARTS = 1000 if SOAK else 30
STEPS, LIMIT = (5000, 900) if SOAK else (500, 120)  # the limit in seconds, on a busy machine
PERF = str(pathlib.Path(hvdrun_path()).with_name("hvd_perf"))

# The processes and the signals that they get; a list is one after the other.
ENDS = {
    "hvdrun": [[signal.SIGKILL], [signal.SIGTERM], [signal.SIGINT], [signal.SIGHUP], [signal.SIGSTOP, signal.SIGKILL],
               [signal.SIGINT, signal.SIGINT]],
    "warden": [[signal.SIGKILL]],
    "agent": [[signal.SIGKILL]],
    "worker": [[signal.SIGKILL], [signal.SIGKILL], [signal.SIGTERM], [signal.SIGSEGV], [signal.SIGSTOP, signal.SIGKILL]],
}


def run_round(start, seed):
    """Starts a job that reduces without end, ends it in some way, and looks for leftovers."""
    chance = random.Random(seed)
    ranks = chance.choice([1, 2, 3, 4])
    sizes = chance.choice(["8", "8,65536", "1048576", "8388608"])
    perf = [PERF, "--sizes", sizes, "--loops", "1000"]
    family = chance.random() < 0.4
    command = ["sh", "-c", 'setsid sleep 600 & exec "$0" "$@"', *perf] if family else perf
    job = start("-np", ranks, *command)
    victim = chance.choice(["hvdrun", "hvdrun", "warden", "agent", "worker", "worker", "worker"])
    wait_until("the workers", lambda: len(workers_of(job)) >= ranks)
    job_id = job.job_id()
    chance_delay(job, chance.uniform(0, 0.3))
    known = {"hvdrun": job.pid, "warden": job.warden, "agent": job.agent}
    target = chance.choice(workers_of(job)) if victim == "worker" else known[victim]
    signals = chance.choice(ENDS[victim])
    stopped = chance.choice(workers_of(job)) if victim == "hvdrun" and chance.random() < 0.3 else None
    print(f"seed {seed}: {ranks} ranks, sizes {sizes}, {[s.name for s in signals]} to {victim} {target}, stopped {stopped}")
    if stopped:
        os.kill(stopped, signal.SIGSTOP)
    for how in signals:
        try:
            os.kill(target, how)
        except ProcessLookupError:
            assert how != signals[0]
    job.nothing_left(job_id, within=15)
    code = job.finish()
    how = signals[0] if victim == "hvdrun" and signals[0] != signal.SIGSTOP else signals[-1]
    if victim == "worker":
        assert code == 128 + how, job.err
        assert f"(pid {target}) failed: " in job.err, job.err
    elif victim != "hvdrun":
        assert code == 1, job.err
    else:
        assert code == (-9 if how == signal.SIGKILL else 128 + how), job.err


def workers_of(job):
    agent = job.agent
    return sorted(p for p in job.processes() if parent_of(p) == agent)


def chance_delay(job, seconds):
    """Lets the job run on for a while; ends early if it ends."""
    try:
        job.process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        pass  # it runs, as it should


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_a_random_end_leaves_nothing_and_names_the_cause(start, round_number):
    base = int(os.environ.get("HVD_SEED", random.SystemRandom().randrange(1 << 30)))
    run_round(start, base + round_number)


def test_short_jobs_never_hang():
    for _ in range(STARTS):
        job = Job("-np", "8", "true")
        assert job.finish() == 0
        for pid in job.processes():
            kill(pid)


@pytest.mark.long
def test_jobs_side_by_side_do_not_touch_each_other(start):
    jobs = [start("-np", 2, PERF, "--sizes", "8,65536", "--loops", "3") for _ in range(9)]
    doomed = start("-np", 2, PERF, "--sizes", "8388608", "--loops", "1000")
    wait_until("the doomed job's workers", lambda: len(doomed.processes()) >= 5)
    doomed_id = doomed.job_id()
    os.kill(doomed.pid, signal.SIGKILL)
    doomed.nothing_left(doomed_id)
    for job in jobs:
        assert job.finish() == 0, job.err
        assert "WRONG" not in job.out and job.out.count("verified") == 8


# ---- steps with fresh tensors

# Records of 4,096 names in the runtime, and descriptions of as many requests in Python.
MOST_GROWTH_KB = 24 << 10


def growth_of(job):
    """{rank: (KiB, descriptors, threads) that it has more at the end than after a tenth of the steps}"""
    assert job.code == 0, job.err
    looks = {}
    for line in job.out.splitlines():
        found = re.fullmatch(r"\[(\d+)\]<stdout>:(?:after the beginning|at the end): (\d+) (\d+) (\d+)", line)
        assert found, line
        looks.setdefault(int(found[1]), []).append([int(number) for number in found.groups()[1:]])
    return {rank: [last - first for first, last in zip(*both, strict=True)] for rank, both in looks.items()}


def check_growth(job, ranks):
    growth = growth_of(job)
    assert sorted(growth) == list(range(ranks))
    for rank, (kb, descriptors, threads) in growth.items():
        assert kb < MOST_GROWTH_KB, (rank, growth)
        assert descriptors <= 0, (rank, growth)
        assert threads <= 0, (rank, growth)


def memory_worker(framework, names):
    if framework == "torch":
        skip_without("torch")
    else:
        skip_without("numpy")
    return [sys.executable, str(WORKERS / "memory_worker.py"), framework, names, str(STEPS)]


@pytest.mark.parametrize("framework, names", [("torch", "unnamed"), ("torch", "named"), ("torch", "numbered"), ("torch", "metric"),
                                              ("numpy", "unnamed"), ("numpy", "named"), ("numpy", "numbered")])
def test_fresh_tensors_do_not_make_a_rank_grow(run, framework, names):
    check_growth(run("-np", 2, "-x", "OMP_NUM_THREADS=1", *memory_worker(framework, names), limit=LIMIT), 2)


@pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaced hosts: {WHY_NOT}")
@pytest.mark.parametrize("framework, names", [("torch", "unnamed"), ("torch", "numbered"), ("numpy", "numbered")])
def test_fresh_tensors_do_not_make_a_rank_grow_over_hosts(hosts_run, framework, names):
    job = hosts_run("-np", 4, "-H", "hvd1:2,hvd2:2", "-x", "OMP_NUM_THREADS=1", *memory_worker(framework, names), limit=LIMIT)
    check_growth(job, 4)
