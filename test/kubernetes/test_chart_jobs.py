"""Jobs of the chart: the commands, scripts and preStop that it makes run in pods of this machine (pods.py), around a training whose
right result is known at every step (test/system/workers/elastic_worker.py)."""

import re
import subprocess

import pytest
from chart import REPO, render
from pods import Cluster, wait_until, why_not

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
PYTHON = "/usr/bin/python3"
HOST = "release-name-hvdrun-"


@pytest.fixture
def cluster(tmp_path):
    clusters = []

    def begin(values):
        clusters.append(Cluster(tmp_path, render(values)))
        return clusters[-1]

    yield begin
    for cluster in clusters:
        cluster.down()


HEADROOM = {"startTimeout": 100}
FOR_EVER = 9999  # a preStop that waits in vain does not end


def training(folder, **values):
    """Values of an elastic job."""
    if subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True).returncode != 0:
        pytest.skip(f"{PYTHON} has no numpy")
    script = REPO / "test/system/workers/elastic_worker.py"
    return {"elastic": {"minNp": 1}, "driver": {"args": [PYTHON, str(script), str(folder / "shared"), "host", "stop"], **HEADROOM}, **values}


def worlds(launcher, worker):
    """[(size, first step, how often this process has got its state)] of the worlds in which a rank of this worker trained."""
    found, begun = [], {}
    for rank, line in re.findall(r"^\[(\d+)\]<stdout>:(.*)$", launcher.text(), re.M):
        trains = re.search(r"trains as rank \d+ of (\d+) from step (\d+) after (\d+) syncs", line)
        if trains:
            begun[rank] = tuple(map(int, trains.groups()))
        elif re.search(rf"is one of \d+ on {HOST}{worker} pid", line):
            found.append(begun[rank])
    return found


def await_worlds(launcher, worker, *sizes):
    wait_until(f"worlds of {sizes} with worker {worker}", lambda: [size for size, _, _ in worlds(launcher, worker)] == list(sizes), launcher.text)
    return worlds(launcher, worker)


def finish(launcher, folder):
    (folder / "shared/finish").write_text("")
    assert launcher.wait() == 0, launcher.text()
    assert "AssertionError" not in launcher.text(), launcher.text()


def went_on(found):
    """Whether these are worlds of one process: another one begins at step 0, or gets the state for the first time."""
    return all(step >= before[1] and (syncs > before[2] or size < before[0]) for before, (size, step, syncs) in zip(found, found[1:]))


@pytest.mark.parametrize("host_pids", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["own processes", "useHostPID"])
def test_an_elastic_job_goes_on_without_a_worker_that_goes_and_takes_in_those_that_come(cluster, tmp_path, host_pids):
    values = training(tmp_path, useHostPID=host_pids, worker={"terminationGracePeriodSeconds": FOR_EVER})
    pods = cluster(values)
    launcher = pods.launcher()
    pods.worker(0)
    await_worlds(launcher, 0, 1)  # with the worker that minNp needs: nobody waits for the other
    goes = pods.worker(1)
    await_worlds(launcher, 1, 2)
    assert goes.end() == (0, "")
    await_worlds(launcher, 0, 1, 2, 1)
    pods.worker(1)  # another pod by the same name, with another address
    await_worlds(launcher, 1, 2, 2)
    pods.upgrade(render({**values, "worker": {**values["worker"], "number": 3}}))
    pods.worker(2)
    await_worlds(launcher, 2, 3)
    assert went_on(await_worlds(launcher, 0, 1, 2, 1, 2, 3))
    finish(launcher, tmp_path)
    for word in ("lost", "failed", "repeats step"):
        assert word not in launcher.text(), launcher.text()


def test_all_ranks_of_an_elastic_job_leave_after_their_step_before_its_launcher_goes(cluster, tmp_path):
    pods = cluster(training(tmp_path))
    launcher = pods.launcher()
    workers = [pods.worker(0), pods.worker(1)]
    wait_until("a world of two", lambda: (2 in [size for size, _, _ in worlds(launcher, 1)]), launcher.text)
    launcher.pre_stop()
    assert launcher.wait() == 75, launcher.text()
    assert len(re.findall(r"stops at step \d+ of", launcher.text())) == 2, launcher.text()
    again = pods.launcher()  # as the Job does
    wait_until("a world of two", lambda: (2 in [size for size, _, _ in worlds(again, 1)]), again.text)
    assert all(worker.process.poll() is None for worker in workers)


@pytest.mark.parametrize("least", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_worker_that_is_lost_comes_back_by_its_name(cluster, tmp_path, least):
    """Without notice; and where minNp needs its ranks, which stay until it is gone."""
    pods = cluster(training(tmp_path, elastic={"minNp": least}, worker={"terminationGracePeriodSeconds": 8}))
    launcher = pods.launcher()
    pods.worker(0)
    if least == 1:
        await_worlds(launcher, 0, 1)
    lost = pods.worker(1)
    await_worlds(launcher, 1, 2)
    if least == 1:
        lost.kill()
        await_worlds(launcher, 0, 1, 2, 1)
    else:
        assert lost.end() == (0, ""), "preStop ends, after 3 s"
    pods.worker(1)
    await_worlds(launcher, 1, 2, 2)
    assert went_on(await_worlds(launcher, 0, *([1, 2, 1, 2] if least == 1 else [2, 2])))
    finish(launcher, tmp_path)


UNTIL_ASKED = """
import sys, numpy, horovod.numpy as hvd
hvd.init()
print('trains', flush=True)
while not hvd.should_stop():
    hvd.allreduce(numpy.ones(1), name='x')
sys.exit(75)
"""


@pytest.mark.parametrize("goes", ["worker", "launcher"])
def test_ranks_of_a_job_of_fixed_size_are_asked_to_stop_before_a_pod_goes(cluster, tmp_path, goes):
    training(tmp_path)
    pods = cluster({"driver": {"args": [PYTHON, "-c", UNTIL_ASKED], **HEADROOM}, "worker": {"terminationGracePeriodSeconds": FOR_EVER}})
    workers = [pods.worker(0), pods.worker(1)]
    launcher = pods.launcher()
    wait_until("training", lambda: launcher.text().count("trains") == 2, launcher.text)
    (workers[1] if goes == "worker" else launcher).pre_stop()
    assert launcher.wait() == 75, launcher.text()


@pytest.mark.parametrize("values", [{}, pytest.param({"ssh": {"port": 22}}, marks=pytest.mark.soak), {"driver": {"asWorker": True}}], ids=["defaults", "port 22", "asWorker"])
def test_a_job_of_fixed_size_runs_on_all_workers_though_they_come_after_the_launcher(cluster, values):
    driver = {**values.get("driver", {}), **HEADROOM, "args": ["sh", "-c", 'echo "rank $HOROVOD_RANK on $(uname -n) has $FROM_THE_DRIVER"'],
              "env": [{"name": "FROM_THE_DRIVER", "value": 'a "b" c'}]}
    pods = cluster({**values, "driver": driver})
    launcher = pods.launcher()
    wait_until("a launcher that waits", lambda: "waiting for sshd" in launcher.text(), launcher.text)
    for number in (0, 1):
        pods.worker(number)
    assert launcher.wait() == 0, launcher.text()
    hosts = ["launcher"] * (len(values.get("driver", {}))) + [f"{HOST}0", f"{HOST}1"]
    for rank, host in enumerate(hosts):
        assert f'rank {rank} on {host} has a "b" c' in launcher.text(), launcher.text()
