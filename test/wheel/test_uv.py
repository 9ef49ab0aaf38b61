"""`uvx hvdrun` in a project of uv: the ranks have the project's environment, hvdrun one of its own. Of --soak: uv is a package of PyPI
(test/packages/requirements.txt). Nothing is loaded from a package index."""

import os
import subprocess
import zipfile

import pytest
from conftest import DEBIAN, NO_TOOL, packaging_tool

pytestmark = pytest.mark.soak

PROJECT = """
[project]
name = "digits"
version = "1"
requires-python = ">=3.8"
dependencies = ["only-here"]
[tool.uv.sources]
only-here = {{ path = {wheel!r} }}
"""
TRAIN = """
import os, sys, only_here
import horovod.common.basics as basics
hvd = basics.HorovodBasics()
hvd.init()
print(hvd.rank(), hvd.size(), only_here.__file__, basics.__file__, sep="|")
hvd.shutdown()
"""


def wheel_of(folder, name, text):
    """A wheel with one module."""
    path = folder / f"{name}-1-py3-none-any.whl"
    info = f"{name}-1.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", text)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


@pytest.fixture
def uv(tmp_path):
    """uv(folder, words): what it says, on stdout and on stderr."""
    program = packaging_tool("uv")
    if program is None:
        pytest.skip(f"uv {NO_TOOL}")
    own = {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_OFFLINE": "1", "UV_PYTHON": DEBIAN, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1",
           "PATH": f"{os.path.dirname(program)}:/usr/bin:/bin"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV", "HVD")) and name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def start(folder, *words):
        done = subprocess.run([program, *map(str, words)], cwd=folder, env={**kept, **own}, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, done.stderr

    return start


@pytest.fixture
def project(tmp_path, uv):
    """Its environment has a module that no other has, and no hvdrun."""
    folder = tmp_path / "a project"
    (folder / "src").mkdir(parents=True)
    module = wheel_of(tmp_path, "only_here", "")
    (folder / "pyproject.toml").write_text(PROJECT.format(wheel=str(module)))
    (folder / "src/train.py").write_text(TRAIN)
    uv(folder, "sync", "--quiet")
    return folder


def ranks(out):
    """[(rank, size)], and where the ranks found the project's module and ours."""
    lines = sorted(line.split("|") for line in out.splitlines())
    return [(int(line[0]), int(line[1])) for line in lines], {line[2] for line in lines}, {line[3] for line in lines}


RUN = ("hvdrun", "-np", "2", "--prefix", "")


@pytest.mark.parametrize("before", [[], ["run", "--quiet", "uv"]], ids=["", "under uv run"])
@pytest.mark.parametrize("command", [["python", "train.py"], ["train.py"]], ids=["python", "script"])
def test_uv_tool_run_starts_the_python_of_the_project(uv, project, wheel, before, command):
    out, err = uv(project / "src", *before, "tool", "run", "--quiet", "--from", wheel, *RUN, *command)
    worlds, theirs, ours = ranks(out)
    assert worlds == [(0, 2), (1, 2)], out + err
    assert all(path.startswith(f"{project}/.venv/") for path in theirs) and not any(path.startswith(str(project)) for path in ours), out
    assert err.count(f"python is that of {project}/.venv") == 1, err


def test_uv_run_with_hvdrun_starts_the_python_of_the_project(uv, project, wheel):
    out, err = uv(project / "src", "run", "--quiet", "--with", wheel, *RUN, "python", "train.py")
    worlds, theirs, _ = ranks(out)
    assert worlds == [(0, 2), (1, 2)] and all(path.startswith(f"{project}/.venv/") for path in theirs) and err == "", out + err


def test_what_uv_puts_beside_hvdrun_is_there_outside_of_a_project(uv, tmp_path, wheel):
    module = wheel_of(tmp_path, "only_here", "")
    (tmp_path / "train.py").write_text(TRAIN)
    out, err = uv(tmp_path, "tool", "run", "--quiet", "--with", module, "--from", wheel, *RUN, "python", "train.py")
    worlds, theirs, ours = ranks(out)
    assert worlds == [(0, 2), (1, 2)] and err == "", out + err
    assert {os.path.dirname(path) for path in theirs} == {path.removesuffix("/horovod/common/basics.py") for path in ours}, out
