"""on_done of the C ABI, in a program in C (workers/callbacks.c): one thread delivers every end once, also those of a shutdown and of a
death; a forked child has none; a program that does not use it has no thread for it."""

import pathlib
import subprocess

import pytest
from conftest import REPO, WORKERS, hvdrun_path, needs_the_build_tree, scaled

pytestmark = needs_the_build_tree("a wheel has nothing that C programs are linked with")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("callbacks") / "callbacks"
    folder = pathlib.Path(hvdrun_path()).parents[1] / "lib"
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{REPO}/runtime/include", "-o", made, WORKERS / "callbacks.c",
                    f"{folder}/libhvd.so", f"-Wl,-rpath,{folder}", "-pthread"], check=True)
    return made


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=scaled(60))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_end_is_delivered_once(program, ranks):
    done = run(hvdrun_path(), "-np", str(ranks), program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("whole") == ranks


def test_a_world_of_one_without_a_launcher_has_callbacks(program):
    done = run(program)
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr


def test_a_death_is_delivered_with_its_cause(program):
    done = run(hvdrun_path(), "-np", "2", program, "death")
    assert done.returncode == 3, done.stderr
    assert "line" not in done.stderr
