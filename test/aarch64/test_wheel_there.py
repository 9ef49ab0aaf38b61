"""The wheel for aarch64, in a Debian of that processor that QEMU emulates: its tag is honoured, ranks meet and compute what they should, a death is
noticed though the emulator has no robust lists, PyTorch trains. scripts/test_aarch64.sh runs this after the unit and contract tests, by
root on x86-64. Speed means nothing here."""

import pathlib
import re
import shutil
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPO / "test"))
from installed import newest_wheel  # noqa: E402


@pytest.fixture(scope="module")
def debian(bare_debian):
    """The wheel is installed."""
    wheel = newest_wheel("aarch64")
    if wheel is None:
        pytest.skip("there is no wheel for aarch64: scripts/build_wheel.sh --arch aarch64 makes one")
    shutil.copy(wheel, bare_debian.root / "tmp")
    bare_debian.run("python3", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall", "--break-system-packages",
                    "--root-user-action=ignore", f"/tmp/{wheel.name}")
    shutil.copy(REPO / "examples/pytorch_digits.py", bare_debian.root / "tmp")
    return bare_debian


WORKER = """
import sys, numpy as np, horovod.numpy as hvd
hvd.init()
rank, size = hvd.rank(), hvd.size()
for count in (1, 1000, 300_001):
    for dtype in ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64"):
        # Whole numbers that each type holds, so that every order of adding gives the same.
        parts = [np.random.default_rng(r).integers(0, 8, count).astype(dtype) for r in range(size)]
        for op, exact in ((hvd.Sum, sum(parts)), (hvd.Min, np.minimum.reduce(parts)), (hvd.Max, np.maximum.reduce(parts))):
            np.testing.assert_array_equal(hvd.allreduce(parts[rank], op=op), exact)
        np.testing.assert_array_equal(hvd.allgather(parts[rank]), np.concatenate(parts))
        np.testing.assert_array_equal(hvd.broadcast(parts[rank], root_rank=size - 1), parts[size - 1])
with np.errstate(over="ignore"):
    halves = np.linspace(-70000, 70000, 9999, dtype="float32").astype("float16")  # with infinities, and sums that round
    np.testing.assert_array_equal(hvd.allreduce(halves, op=hvd.Sum), (halves.astype("float32") * size).astype("float16"))
pieces = np.arange(size * 5, dtype="int64") + 1000 * rank
got = hvd.alltoall(pieces)
got = got[0] if isinstance(got, tuple) else got
np.testing.assert_array_equal(got, np.concatenate([np.arange(5 * rank, 5 * rank + 5) + 1000 * r for r in range(size)]))
print("numbers are right on", rank, "of", size)
"""


def said(debian, *arguments, **options):
    (debian.root / "tmp/worker.py").write_text(WORKER)
    return sorted(debian.run("hvdrun", *arguments, "--prefix", "", "python3", "/tmp/worker.py", **options).stdout.splitlines())


def test_its_parts_are_found(debian):
    out = debian.run("hvdrun", "--check-build").stdout
    for part in ("MPI", "Gloo", "hvdrun", "shared memory"):
        assert f"[X] {part}" in out, out
    assert "kernels for sm_" in out, out


@pytest.mark.parametrize("size", [1, 2, 4])
def test_all_ranks_get_the_right_numbers(debian, size):
    assert said(debian, "-np", size) == [f"numbers are right on {rank} of {size}" for rank in range(size)]


def test_so_do_those_of_two_hosts(debian):
    """Two hosts that this machine plays: sums pass through Gloo."""
    assert said(debian, "-np", "4", "--hosts-per-machine", "2") == [f"numbers are right on {rank} of 4" for rank in range(4)]


def test_a_death_is_noticed_without_robust_lists(debian):
    (debian.root / "tmp/dies.py").write_text(
        "import os, signal, numpy as np, horovod.numpy as hvd\n"
        "hvd.init()\n"
        "hvd.allreduce(np.ones(3))\n"
        "if hvd.rank() == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
        "hvd.allreduce(np.ones(3))\n")
    done = debian.run("hvdrun", "-np", "2", "python3", "/tmp/dies.py", code=137, timeout=120)
    assert "rank 1 on host" in done.stderr and "signal 9 (SIGKILL)" in done.stderr, done.stderr


def test_digits_are_learned(debian):
    done = debian.run("hvdrun", "-np", "2", "--prefix", "", "python3", "/tmp/pytorch_digits.py", "--epochs", "4", "--check-hashes", timeout=1200)
    found = re.findall(r"test accuracy ([0-9.]+) %", done.stdout)
    assert found and float(found[-1]) > 90, done.stdout + done.stderr
