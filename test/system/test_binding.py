"""Which cores workers use, and how many threads."""

import json
import os

import pytest
from conftest import hvdrun_path
from limited_group import limited_group

ALLOWED = sorted(os.sched_getaffinity(0))
SHOW = "grep Cpus_allowed_list /proc/self/status; echo threads $OMP_NUM_THREADS of $HVD_HOST_CORES"


def parse(job, count):
    cpus, threads = {}, {}
    for line in job.out.splitlines():
        rank, _, text = line[1:].partition("]<stdout>:")
        if text.startswith("Cpus_allowed_list:"):
            parts = (part.partition("-") for part in text.split()[1].split(","))
            cpus[int(rank)] = [c for first, _, last in parts for c in range(int(first), int(last or first) + 1)]
        elif text.startswith("threads"):
            threads[int(rank)] = text.removeprefix("threads ").strip()
    assert sorted(cpus) == list(range(count)) == sorted(threads)
    return cpus, threads


def run_shown(run, count, *args, **kwargs):
    job = run("-np", count, *args, "sh", "-c", SHOW, **kwargs)
    assert job.code == 0, job.err
    return (*parse(job, count), job)


def test_bind_to_core_gives_each_rank_its_own(run):
    cpus, threads, job = run_shown(run, len(ALLOWED), "--bind-to", "core", "--verbose")
    assert sorted(c for rank in cpus.values() for c in rank) == ALLOWED
    assert all(t == f"1 of {len(ALLOWED)}" for t in threads.values())
    assert "rank 0 is kept on CPUs" in job.err


def test_more_ranks_than_cores_share_them(run):
    cpus, threads, _ = run_shown(run, 2 * len(ALLOWED) + 1, "--bind-to", "core")
    assert all(len(c) == 1 and c[0] in ALLOWED for c in cpus.values())
    assert {c[0] for c in cpus.values()} == set(ALLOWED)


def test_bind_to_numa_and_none(run):
    cpus, _, _ = run_shown(run, 2, "--bind-to", "numa")
    assert all(set(c) <= set(ALLOWED) and c for c in cpus.values())
    cpus, _, _ = run_shown(run, 2)
    assert all(c == ALLOWED for c in cpus.values())


def test_agents_that_play_hosts_share_the_cores(run):
    cpus, threads, job = run_shown(run, 2, "--hosts-per-machine", 2, "--bind-to", "core", "--verbose")
    half = len(ALLOWED) // 2
    if half == 0:
        assert cpus[0] == cpus[1] == ALLOWED
        return
    assert sorted(cpus[0] + cpus[1]) == ALLOWED and not set(cpus[0]) & set(cpus[1])
    assert threads[0] == f"{half} of {half}"


def test_an_inherited_binding_is_the_frame(run):
    cpus, threads, _ = run_shown(run, 2, "--bind-to", "core", preexec_fn=lambda: os.sched_setaffinity(0, ALLOWED[-1:]))
    assert all(c == ALLOWED[-1:] for c in cpus.values())
    assert all(t == "1 of 1" for t in threads.values())


def test_threads_are_a_share_of_the_cores(run):
    _, threads, job = run_shown(run, 1, "--verbose")
    if "OMP_NUM_THREADS" not in os.environ:
        assert threads[0] == f"{len(ALLOWED)} of"
        assert "OMP_NUM_THREADS" in job.err
    _, threads, _ = run_shown(run, 2, "--omp-threads", 5)
    assert threads[1].startswith("5 of")
    _, threads, _ = run_shown(run, 1, env={"OMP_NUM_THREADS": "7"})
    assert threads[0].startswith("7 of")
    if "OMP_NUM_THREADS" not in os.environ:
        _, threads, _ = run_shown(run, 1, "--omp-threads", -1)
        assert threads[0] == "of"


@pytest.fixture
def quota_of_one_cpu():
    """A cgroup whose processes get the time of one CPU: the command of an hvdrun that runs inside."""
    with limited_group("cpu", ("cpu.cfs_quota_us", "100000"), ("cpu.max", "100000 100000")) as inside:
        yield [*inside, hvdrun_path()]


@pytest.mark.skipif(len(ALLOWED) < 2, reason="a quota of one CPU is no limit here")
def test_a_cpu_quota_limits_slots_and_threads(run, quota_of_one_cpu):
    job = run("-np", 1, "--verbose", "sh", "-c", SHOW, program=["env", "-u", "OMP_NUM_THREADS", *quota_of_one_cpu])
    assert job.code == 0, job.err
    cpus, threads = parse(job, 1)
    assert cpus[0] == ALLOWED and threads[0] == "1 of 1"
    assert f"workers share 1 cores (the CPU quota of their cgroup; {len(ALLOWED)} are allowed)" in job.err
    job = run("-np", 2, "-H", "localhost", "true", program=quota_of_one_cpu)
    assert job.code == 2 and "slot" in job.err, job.err
    job = run("doctor", "--json", program=quota_of_one_cpu)
    facts = json.loads(job.out)["hosts"][0]["facts"]
    assert (facts["cores"], facts["cpu_quota"]) == (len(ALLOWED), 1)
    job = run("doctor", program=quota_of_one_cpu)
    assert f"{len(ALLOWED)} (CPU quota of the cgroup: 1)" in job.out
