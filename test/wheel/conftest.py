"""The finished wheel, installed as users do it. HVD_WHEEL names it; without that it is the newest of dist/."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from installed import NO_TOOL, newest_wheel, packaging_tool  # noqa: E402, F401
from tiers import pytest_collection_modifyitems  # noqa: E402, F401

REPO = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = "/usr/bin/python3"  # whose PyTorch is Debian's


def run(*command, **options):
    """The output of a command that succeeds, in an environment that leads to no other hvdrun."""
    env = {**os.environ, **options.pop("env", {})}
    for name in ("PYTHONPATH", "HVD_RUNTIME", "HVDRUN", "PIP_REQUIRE_VIRTUALENV"):
        env.pop(name, None)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env, **{"timeout": 600, **options})
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


class Environment:
    """A virtual environment."""

    def __init__(self, folder, python):
        self.folder = folder
        run(python, "-m", "venv", folder)
        self.python = folder / "bin/python"

    def pip(self, *arguments):
        return run(self.python, "-m", "pip", "--disable-pip-version-check", *arguments)

    def install(self, *arguments):
        self.pip("install", "--quiet", "--no-deps", "--no-index", *arguments)


@pytest.fixture(scope="session")
def wheel():
    path = os.environ.get("HVD_WHEEL") or newest_wheel()
    if not path:
        pytest.skip("there is no wheel: scripts/build_wheel.sh makes one")
    return pathlib.Path(path)


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    # The quote and the space are what shells trip over.
    made = Environment(tmp_path_factory.mktemp("it's") / "a venv", DEBIAN)
    made.install(wheel)
    return made


@pytest.fixture(scope="session")
def tools():
    """A Python with what scripts/build_wheel.sh makes and checks wheels with."""
    cache = pathlib.Path(os.environ.get("HVD_WHEEL_CACHE") or pathlib.Path.home() / ".cache/hvdrun/wheel")
    pythons = sorted(cache.glob("tools-*/bin/python"), key=os.path.getmtime)
    if not pythons:
        pytest.skip("scripts/build_wheel.sh has not run here")
    return pythons[-1]
