"""GPUs of a host, as files and a library of NVIDIA's that play them: which GPU a rank sees, which cores are beside it, and what
hvdrun doctor says of them."""

import json
import os

import pytest
from conftest import hvdrun_path

ALLOWED = sorted(os.sched_getaffinity(0))
SEEN = "echo sees $CUDA_VISIBLE_DEVICES by $CUDA_DEVICE_ORDER on $(grep Cpus_allowed_list /proc/self/status)"
LIBRARIES = os.path.join(os.path.dirname(os.path.dirname(hvdrun_path())), "test", "gpu_libraries")


@pytest.fixture
def host(tmp_path):
    """host(count): variables with which this machine has so many GPUs, all on NUMA node 0."""
    def make(count, plays=""):
        for number in range(count):
            bus = f"0000:{number + 16:02x}:00.0"
            gpu = tmp_path / "proc/driver/nvidia/gpus" / bus
            gpu.mkdir(parents=True)
            (gpu / "information").write_text(f"GPU UUID: \t GPU-{number}\nDevice Minor: \t {number}\n")
            pci = tmp_path / "sys/bus/pci/devices" / bus
            pci.mkdir(parents=True)
            (pci / "numa_node").write_text("0\n")
            (tmp_path / "dev").mkdir(exist_ok=True)
            (tmp_path / f"dev/nvidia{number}").touch()
        return {"HVD_TEST_GPU_HOST": str(tmp_path), "HVD_FAKE_NVML": f"gpus={count} driver=580.65.06 cuda=13000 {plays}",
                "LD_LIBRARY_PATH": LIBRARIES}
    return make


def seen(run, *args, **kwargs):
    """The GPUs that each rank sees, by rank, and the job."""
    job = run(*args, "sh", "-c", SEEN, **kwargs)
    assert job.code == 0, job.err
    lines = (line[1:].partition("]<stdout>:sees ") for line in job.out.splitlines())
    return {int(rank): text.partition(" on ")[0] for rank, _, text in lines}, job


def test_each_rank_sees_its_gpu_alone(run, host):
    gpus, job = seen(run, "-np", 2, "--gpus", "one", env=host(2))
    assert gpus == {0: "0 by PCI_BUS_ID", 1: "1 by PCI_BUS_ID"}
    assert "GPU" not in job.err


def test_by_default_nothing_is_chosen(run, host):
    gpus, _ = seen(run, "-np", 2, env={**host(2), "CUDA_VISIBLE_DEVICES": "1,0"})
    assert gpus == {0: "1,0 by", 1: "1,0 by"}


def test_the_list_of_the_user_or_the_scheduler_is_shared_out_in_its_order(run, host):
    gpus, _ = seen(run, "-np", 2, "--gpus", "one", env={**host(4), "CUDA_VISIBLE_DEVICES": "3,GPU-1"})
    assert gpus == {0: "3 by PCI_BUS_ID", 1: "GPU-1 by PCI_BUS_ID"}
    gpus, _ = seen(run, "-np", 1, "--gpus", "one", "-x", "CUDA_VISIBLE_DEVICES=2", env={**host(0), "CUDA_VISIBLE_DEVICES": "3"})
    assert gpus == {0: "2 by PCI_BUS_ID"}


@pytest.mark.parametrize("gpus, says", [(1, "has 1 GPU for 2 ranks, which share them"), (0, "there is no GPU on host")])
def test_too_few_gpus_are_said_in_one_sentence(run, host, gpus, says):
    shown, job = seen(run, "-np", 2, "--gpus", "one", env=host(gpus))
    assert set(shown.values()) == {"0 by PCI_BUS_ID" if gpus else "by"}
    assert sum(says in line for line in job.err.splitlines()) == 1, job.err


def test_agents_that_play_hosts_have_gpus_of_their_own(run, host):
    gpus, _ = seen(run, "-np", 4, "--hosts-per-machine", 2, "--gpus", "one", env=host(4))
    assert sorted(gpus.values()) == [f"{gpu} by PCI_BUS_ID" for gpu in range(4)]


def test_print_env_shows_the_gpu_of_rank_0(run, host):
    job = run("-np", 2, "--gpus", "one", "--print-env", "true", env=host(2))
    assert "CUDA_VISIBLE_DEVICES=0  # its GPU (--gpus one)" in job.out


def test_ranks_are_kept_beside_their_gpus(run, host):
    job = run("-np", 2, "--bind-to", "gpu", "--verbose", "true", env=host(2))
    assert job.code == 0, job.err
    # All CPUs of this machine that are on node 0, which each machine has.
    assert job.err.count("is kept on CPUs") == 2, job.err


def test_a_rank_gets_a_gpu_near_its_cores(run, host, tmp_path):
    far = host(3)
    for number in (0, 1):  # of a node that this machine has not
        (tmp_path / f"sys/bus/pci/devices/0000:{number + 16:02x}:00.0/numa_node").write_text("77\n")
    gpus, _ = seen(run, "-np", 1, "--gpus", "near", "--bind-to", "core", env=far)
    assert gpus == {0: "2 by PCI_BUS_ID"}
    gpus, _ = seen(run, "-np", 1, "--gpus", "near", env=far)
    assert gpus == {0: "0 by PCI_BUS_ID"}, "kept on no core, it has the first"
    job = run("-np", 1, "--gpus", "near", "--bind-to", "core", "--print-env", "true", env=far)
    assert "CUDA_VISIBLE_DEVICES=2  # its GPU (--gpus near)" in job.out


def test_without_gpus_nobody_is_bound_beside_one(run, host):
    job = run("-np", 2, "--bind-to", "gpu", "--verbose", "true", env=host(0))
    assert job.code == 0 and "is kept on CPUs" not in job.err


# ---- doctor


def examined(run, env):
    job = run("doctor", "--json", "-H", "localhost", env=env)
    report = json.loads(job.out)
    return report["hosts"][0]["facts"]["gpus"], [finding for finding in report["findings"] if finding["kind"] == "gpu"]


def test_the_doctor_tells_the_gpus_and_how_they_are_connected(run, host):
    gpus, findings = examined(run, host(3, "nvlink"))
    assert gpus["count"] == 3 and gpus["names"] == ["NVIDIA H100 80GB HBM3 81559 MiB"] * 3
    assert gpus["driver"] == "580.65.06" and gpus["cuda"] == "13.0" and gpus["links"] == {"NVLink": 3}
    assert gpus["trouble"] is None and not findings
    table = run("doctor", "-H", "localhost", env=host(0, "gpus=2"))
    assert "GPU" in table.out


def test_the_doctor_names_each_gpu_that_is_not_well(run, host):
    _, findings = examined(run, host(4, "ecc0=3 reset0 broken1 slowed2=64 process3=4711"))
    said = "\n".join(finding["what"] for finding in findings)
    for words in ("GPU 0 has had 3 uncorrected memory errors and replaces the bad rows", "GPU 1 has broken memory",
                  "GPU 2 is slowed down by heat", "GPU 3 is in use by process 4711"):
        assert words in said, said


def test_the_doctor_counts_the_gpus_of_a_container_that_has_the_last_one_alone(run, host, tmp_path):
    env = {**host(4), "HVD_FAKE_NVML": "gpus=1 driver=580.65.06 cuda=13000"}
    for number in range(3):
        (tmp_path / f"dev/nvidia{number}").unlink()
    gpus, _ = examined(run, env)
    assert gpus["count"] == 1 and gpus["driver"] == "580.65.06"


@pytest.mark.parametrize("plays, says", [
    ("refuse", "the driver does not answer: Unknown Error"),
    ("die", "the process that asked NVIDIA's driver has died"),
    ("hang", "NVIDIA's driver did not answer within 8 s"),
])
def test_a_driver_that_fails_or_hangs_delays_only_its_own_answer(run, host, plays, says):
    gpus, findings = examined(run, host(2, plays))
    assert says in gpus["trouble"] and gpus["count"] == 2
    assert any(says in finding["what"] for finding in findings)
