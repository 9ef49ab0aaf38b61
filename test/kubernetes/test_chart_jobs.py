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


def await_ranks(launcher, size, count, worker):
    """The processes that trained on this worker in a world of this size, once there are so many."""
    def found():
        return set(re.findall(rf"is one of {size} on {HOST}{worker} pid (\d+)\n", launcher.text()))

    wait_until(f"{count} ranks of worker {worker} in a world of {size}", lambda: len(found()) >= count, launcher.text)
    return found()


@pytest.mark.parametrize("shared", [False, True], ids=["own processes", "useHostPID"])
def test_an_elastic_job_goes_on_without_a_worker_that_goes_and_takes_in_those_that_come(cluster, tmp_path, shared):
    values = training(tmp_path, useHostPID=shared, worker={"terminationGracePeriodSeconds": FOR_EVER})
    pods = cluster(values)
    launcher = pods.launcher()
    pods.worker(0)
    first = await_ranks(launcher, 1, 1, 0)  # with the worker that minNp needs: nobody waits for the other
    lost = pods.worker(1)
    await_ranks(launcher, 2, 1, 1)
    before = launcher.text()

    assert lost.end() == (0, "")
    wait_until("a world without that worker", lambda: launcher.text().count(f"of 1 on {HOST}0 pid") == 2, launcher.text)
    assert await_ranks(launcher, 1, 1, 0) == first, "the other's rank is the same process"
    since = launcher.text()[len(before):]
    assert "lost" not in since and "failed" not in since, since

    pods.worker(1)  # another pod by the same name, with another address
    await_ranks(launcher, 2, 1, 1)
    pods.upgrade(render({**values, "worker": {**values["worker"], "number": 3}}))
    pods.worker(2)
    await_ranks(launcher, 3, 1, 2)
    (tmp_path / "shared/finish").write_text("")
    assert launcher.wait() == 0, launcher.text()
    assert "repeats step" not in launcher.text() and "AssertionError" not in launcher.text(), launcher.text()


def test_all_ranks_of_an_elastic_job_leave_after_their_step_before_its_launcher_goes(cluster, tmp_path):
    pods = cluster(training(tmp_path))
    launcher = pods.launcher()
    workers = [pods.worker(0), pods.worker(1)]
    await_ranks(launcher, 2, 1, 1)
    launcher.pre_stop()
    assert launcher.wait() == 75, launcher.text()
    assert len(re.findall(r"stops at step \d+ of", launcher.text())) == 2, launcher.text()
    again = pods.launcher()  # as the Job does
    await_ranks(again, 2, 1, 1)
    assert all(worker.process.poll() is None for worker in workers)


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


@pytest.mark.parametrize("values", [{}, {"ssh": {"port": 22}}, {"driver": {"asWorker": True}}], ids=["defaults", "port 22", "asWorker"])
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
