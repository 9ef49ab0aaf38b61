"""One machine plays several hosts that form one world: shared memory inside a host, libhvd_gloo.so between them."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import REPO, WORKERS, hvdrun_path, read_some, wait_until

PYTHON = "/usr/bin/python3"
GLOO = pathlib.Path(hvdrun_path()).resolve().parent.parent / "lib" / "libhvd_gloo.so"


def has_modules(*names):
    imports = ["-c", "import " + ", ".join(names)]
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, *imports], capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.skipif(not GLOO.exists(), reason="this build has no libhvd_gloo.so"),
    pytest.mark.skipif(not has_modules("numpy"), reason="the workers need NumPy"),
]


def hosts_worker(*args):
    return [PYTHON, WORKERS / "hosts_worker.py", *args]


def lines_with(word, text):
    return [line for line in text.splitlines() if word in line]


@pytest.mark.parametrize("ranks, hosts", [(2, 2), (3, 2), (4, 2), (3, 3)])
def test_every_operation_works_across_hosts(run, ranks, hosts):
    job = run("-np", ranks, "--hosts-per-machine", hosts, *hosts_worker("everything"))
    assert job.code == 0, job.out + job.err
    said = {line.split("everything")[1] for line in lines_with("everything", job.out)}
    assert len(lines_with("everything", job.out)) == ranks and len(said) == 1, "all name the same last rank"
    assert said.pop().split()[1] == "True"
    job.nothing_left()


@pytest.mark.parametrize("victim", [0, 1, 3])
def test_a_killed_rank_is_the_first_cause_on_all_hosts(run, victim):
    job = run("-np", 4, "--hosts-per-machine", 2, *hosts_worker("break", victim))
    assert job.code == 137, job.out + job.err
    told = lines_with("told after", job.out)
    assert told, job.out + job.err
    for line in told:
        assert "rank %d (pid" % victim in line, line
        assert float(re.search(r"told after ([0-9.]+) s", line).group(1)) < 20
    assert "hvdrun: rank %d on host host-%d" % (victim, victim // 2) in job.err
    job.nothing_left()


@pytest.mark.parametrize("victim", ["agent", "warden"])
def test_a_lost_host_ends_the_job_everywhere(start, victim):
    job = start("-np", 4, "--hosts-per-machine", 2, *hosts_worker("break", -1))
    assert b"busy" in read_some(job.process.stdout)
    os.kill(job.agent if victim == "agent" else job.warden, signal.SIGKILL)
    wait_until("the end of the job", lambda: job.process.poll() is not None)
    job.nothing_left()


def test_a_rank_that_leaves_fails_what_needs_it(run):
    job = run("-np", 4, "--hosts-per-machine", 2, *hosts_worker("leave"))
    assert job.code == 0, job.out + job.err
    told = lines_with("told:", job.out)
    assert len(told) == 3 and all(" left the world before it took part" in line for line in told), job.out


def test_without_the_library_init_says_what_is_missing(run, tmp_path):
    inside = pathlib.Path(hvdrun_path()).resolve().parent.parent
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    for part in ("bin/hvdrun", "lib/libhvd.so"):
        (tmp_path / part).write_bytes((inside / part).read_bytes())
        (tmp_path / part).chmod(0o755)
    (tmp_path / "lib/hvdrun").symlink_to(inside / "lib/hvdrun")
    program = [str(tmp_path / "bin/hvdrun")]
    job = run("-np", 2, "--hosts-per-machine", 2, *hosts_worker("everything"), program=program)
    assert job.code != 0
    assert "cannot load libhvd_gloo.so" in job.err
    job.nothing_left()


@pytest.mark.skipif(not has_modules("torch", "sklearn"), reason="the example needs PyTorch and scikit-learn")
def test_digits_learn_alike_on_one_host_and_on_two(run):
    curves = []
    for hosts in (1, 2):
        job = run("-np", 4, "--hosts-per-machine", hosts, PYTHON, REPO / "examples" / "pytorch_digits.py")
        assert job.code == 0, job.out + job.err
        curve = re.findall(r"loss ([0-9.]+)\s+test accuracy ([0-9.]+)", job.out)
        curves.append([(float(loss), float(accuracy)) for loss, accuracy in curve])
    one, two = curves
    assert len(one) == len(two) > 0
    for (loss, accuracy), (other_loss, other_accuracy) in zip(one, two):
        # Sums of sums round otherwise than one sum of all.
        assert abs(loss - other_loss) < 0.05 and abs(accuracy - other_accuracy) < 1.5, (one, two)
