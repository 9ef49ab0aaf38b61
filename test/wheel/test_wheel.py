"""What the wheel promises: it installs in seconds, trains at once, brings nothing else along, and leaves no trace."""

import json
import os
import pathlib
import shutil
import subprocess
import time
import zipfile

import pytest
from conftest import DEBIAN, REPO, Environment, files_below, run
from slowness import scaled

TORCH_VENV = pathlib.Path(os.environ.get("HVD_TORCH_VENV") or pathlib.Path.home() / ".cache/hvdrun/torch-venv") / "bin/python"
# Of C types alone: no framework is installed in a fresh environment.
WORLD = "import horovod.common.basics as basics; hvd = basics.HorovodBasics(); hvd.init(); print(hvd.rank(), hvd.size()); hvd.shutdown()"
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


def python_of(version):
    """An interpreter of this version that can make an environment."""
    roots = [pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"]
    found = [shutil.which(f"python{version}", path="/usr/local/bin:/usr/bin")]
    found += [str(path) for root in roots for path in sorted(root.glob(f"{version}.*/bin/python{version}"))]
    for python in filter(None, found):
        if subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return python
    pytest.skip(f"this machine has no Python {version} that makes environments")


def world(hvdrun, python, size=2):
    out = run(hvdrun, "-np", str(size), "--prefix", "", python, "-c", WORLD)
    assert sorted(out.splitlines()) == [f"{rank} {size}" for rank in range(size)]


def test_digits_are_trained_by_the_pytorch_of_the_scripts_own_python(environment):
    out = run(environment.folder / "bin/hvdrun", "-np", "2", DEBIAN, REPO / "examples/pytorch_digits.py", "--check-hashes")
    assert "accuracy" in out, out


def test_digits_are_trained_by_the_newest_pytorch(environment):
    if not TORCH_VENV.exists():
        pytest.skip("there is no PyTorch of PyPI: scripts/install_deps.sh --pypi-torch installs it")
    out = run(environment.folder / "bin/hvdrun", "-np", "2", TORCH_VENV, REPO / "examples/pytorch_digits.py", "--check-hashes")
    assert "accuracy" in out, out


def test_workers_get_horovod_and_nothing_else_of_the_environment(environment):
    assert list((environment.folder / "lib").glob("python3*/site-packages/pip")), "what must not be seen is there"
    code = ("import os, sys, importlib.util as find\n"
            "first = os.environ['PYTHONPATH'].split(':')[0]\n"
            "print(sorted(name for name in os.listdir(first) if name != '__pycache__'))\n"
            "import horovod, horovod.runner.util, horovod.common.util as util\n"
            "print(horovod.__version__, horovod.__spec__.origin == horovod.__file__, callable(horovod.run))\n"
            "print(os.path.dirname(horovod.__file__) == os.path.dirname(os.path.dirname(util.__file__)), find.find_spec('pip'))\n")
    out = run(environment.folder / "bin/hvdrun", "-np", "1", "--prefix", "", DEBIAN, "-S", "-c", code).splitlines()
    assert out[0] == "['horovod']"
    assert out[1:] == ["0.28.1 True True", "True None"]


def test_the_package_is_found_without_hvdrun_and_under_its_old_name(environment):
    assert run(environment.python, "-c", WORLD) == "0 1\n"
    world(environment.folder / "bin/horovodrun", environment.python)
    text = run(environment.folder / "bin/hvdrun", "--check-build")
    assert "[X] Gloo" in text and "[X] PyTorch" in text, text
    version = run(environment.python, "-c", "from importlib.metadata import version; print(version('hvdrun'))").strip()
    assert run(environment.folder / "bin/hvdrun", "--version").startswith(f"hvdrun {version} ")


def test_installing_takes_seconds_and_uninstalling_leaves_no_trace(wheel, tmp_path):
    fresh = Environment(tmp_path / "venv", DEBIAN)
    before = files_below(fresh.folder)
    start = time.monotonic()
    fresh.install(wheel)
    took = time.monotonic() - start
    world(fresh.folder / "bin/hvdrun", fresh.python)
    fresh.pip("uninstall", "--quiet", "--yes", "hvdrun")
    assert files_below(fresh.folder) - before == set()  # pip leaves empty folders of share/
    assert took < scaled(5), f"installing took {took:.1f} s"


@pytest.mark.parametrize("how", ["--target", "--prefix"])
def test_other_places_work_as_well(environment, wheel, tmp_path, how):
    place = tmp_path / "some place"
    environment.pip("install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", how, place, wheel)
    hvdrun = next(path for path in place.rglob("bin/hvdrun") if path.is_file())
    out = run(hvdrun, "-np", "2", "--prefix", "", DEBIAN, "-c", WORLD + "; import horovod; print(horovod.__file__)")
    assert out.count(str(place)) == 2, out
    run(hvdrun, "-np", "2", DEBIAN, "-c", WORLD)


def test_ranks_that_something_else_starts_find_the_hvdrun_of_the_wheel(environment, wheel, tmp_path):
    """It is their agent. In an environment, and in a folder of its own."""
    place = tmp_path / "some place"
    environment.pip("install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", "--target", place, wheel)
    for python, more in ((environment.python, {}), (DEBIAN, {"PYTHONPATH": str(place)})):
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HVD_RUNTIME", "HVDRUN", "HVD_HVDRUN")}
        ranks = [subprocess.Popen([python, "-c", WORLD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**env, **more, "HOROVOD_RANK": str(rank), "HOROVOD_SIZE": "2", "HOROVOD_LOCAL_RANK": str(rank),
                                       "HOROVOD_LOCAL_SIZE": "2", "HOROVOD_CROSS_RANK": "0", "HOROVOD_CROSS_SIZE": "1", "HVD_JOB": "a job"})
                 for rank in range(2)]
        said = [rank.communicate(timeout=scaled(60)) for rank in ranks]
        assert [out for out, _ in said] == ["0 2\n", "1 2\n"], said


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
def test_each_python_installs_it(wheel, tmp_path, version):
    fresh = Environment(tmp_path / "venv", python_of(version))
    fresh.install(wheel)
    world(fresh.folder / "bin/hvdrun", fresh.python)
    assert run(fresh.python, "-c", WORLD) == "0 1\n"


def test_two_distributions_with_the_same_folder_are_said(wheel, tmp_path):
    fresh = Environment(tmp_path / "venv", DEBIAN)
    fresh.install(wheel)
    packages = next((fresh.folder / "lib").glob("python3*/site-packages"))
    (packages / "horovod-0.28.1.dist-info").mkdir()
    sentence = f"both installed in {packages}, and each has overwritten files of the other in its folder horovod; mend it with: pip uninstall -y"
    doctor = subprocess.run([fresh.folder / "bin/hvdrun", "doctor", "-np", "1", fresh.python], capture_output=True, text=True, timeout=100)
    assert doctor.stderr.count(sentence) == 1, doctor.stderr
    for command in ([fresh.folder / "bin/hvdrun", "-np", "2", fresh.python], [fresh.python]):
        done = subprocess.run([*command, "-c", WORLD], capture_output=True, text=True, timeout=100,
                              env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HVD_RUNTIME")})
        assert done.returncode == 0 and done.stderr.count(sentence) == 1, done.stderr


@pytest.fixture(scope="module")
def made_wheels(tmp_path_factory):
    """Those without a program: for other systems, and the one that stands for the distribution horovod."""
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("pure_wheel.py", "shim_wheel.py"):
        run(DEBIAN, REPO / "packaging/wheel" / name, folder)
    return folder


def test_macos_and_windows_get_a_world_of_one_and_a_sentence(made_wheels, tmp_path):
    """pip takes the wheel without a runtime there; it trains on one process and refuses to start several."""
    (wheel,) = made_wheels.glob("hvdrun-*-py3-none-any.whl")
    fresh = Environment(tmp_path / "venv", DEBIAN)
    before = files_below(fresh.folder)
    fresh.install(wheel)
    assert "A world of one process" in fresh.pip("show", "hvdrun")
    assert run(fresh.folder / "bin/hvdrun", "-np", "1", fresh.python, "-W", "ignore", "-c", WORLD) == "0 1\n"
    done = subprocess.run([fresh.folder / "bin/hvdrun", "-np", "2", fresh.python], capture_output=True, text=True)
    assert done.returncode == 2 and "has no runtime for" in done.stderr
    fresh.pip("uninstall", "--quiet", "--yes", "hvdrun")
    assert files_below(fresh.folder) - before == set()


def test_pip_prefers_the_wheel_with_a_runtime_where_there_is_one(wheel, made_wheels, tmp_path):
    fresh = Environment(tmp_path / "venv", DEBIAN)
    fresh.pip("install", "--quiet", "--no-deps", "--no-index", "--find-links", wheel.parent, "--find-links", made_wheels, "hvdrun")
    world(fresh.folder / "bin/hvdrun", fresh.python)


def test_a_requirement_of_horovod_is_met_by_the_distribution_that_stands_for_it(wheel, made_wheels, tmp_path):
    fresh = Environment(tmp_path / "venv", DEBIAN)
    found = ("--no-index", "--find-links", wheel.parent, "--find-links", made_wheels)
    fresh.pip("install", "--quiet", *found, next(made_wheels.glob("horovod-*.whl")))
    fresh.pip("install", "--quiet", *found, "horovod>=0.28", "hvdrun")
    assert "No broken requirements" in fresh.pip("check")
    done = subprocess.run([fresh.folder / "bin/hvdrun", "-np", "2", "--prefix", "", fresh.python, "-c", WORLD], capture_output=True, text=True)
    assert sorted(done.stdout.splitlines()) == ["0 2", "1 2"] and "both installed" not in done.stderr, done.stderr
    fresh.pip("uninstall", "--quiet", "--yes", "horovod")
    world(fresh.folder / "bin/hvdrun", fresh.python)


def test_links_to_its_programs_work(wheel, tmp_path):
    """uv installs tools into environments of their own, and links to their programs."""
    fresh = Environment(tmp_path / "tools/hvdrun", DEBIAN)
    fresh.install(wheel)
    links = tmp_path / "bin"
    links.mkdir()
    for name in ("hvdrun", "horovodrun"):
        (links / name).symlink_to(fresh.folder / "bin" / name)
        world(links / name, DEBIAN)


@pytest.mark.soak
def test_importing_it_adds_20_ms_at_most_to_importing_pytorch(environment):
    run(DEBIAN, REPO / "test/bench/imports.py", "--installed", environment.folder / "bin/hvdrun", "--most", "20")


@pytest.mark.soak
def test_its_speed_is_shown_beside_that_of_the_build_tree(wheel, tmp_path):
    if not (REPO / "build/bench/init_hvd").exists():
        pytest.skip("there is no build tree with benchmarks")
    run(DEBIAN, REPO / "test/bench/installed.py", "--wheel", wheel, "--runs", "1", "--minutes", "0", "--json", tmp_path / "figures")
    rows = json.loads((tmp_path / "figures").read_text())
    assert [row["unit"] for row in rows] == ["ms", "ms", "us", "us"] and all(row[key]["median"] > 0 for row in rows for key in ("ratio", "noise"))


COMPLAINTS = (f"import sys; sys.path.insert(0, {str(REPO / 'packaging/wheel')!r}); import check_wheel; "
              "print(list(check_wheel.complaints(*sys.argv[1:])))")


def test_what_is_in_it_was_checked(wheel, tools):
    """packaging/wheel/check_wheel.py finds what is wrong with a wheel."""
    tag = wheel.stem.split("-")[-1]
    assert run(tools, "-c", COMPLAINTS, tag, wheel) == "[]\n"
    older = run(tools, "-c", COMPLAINTS, "manylinux_2_5_x86_64", wheel)
    assert "libhvd.so needs GLIBC_2." in older and "its tag is not" in older


def test_one_without_gpus_is_made_on_purpose_only(wheel, tools, tmp_path):
    tag = wheel.stem.split("-")[-1]
    without = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(without, "w") as copy:
        for name in whole.namelist():
            if not name.endswith("/libhvd_cuda.so"):
                copy.writestr(name, whole.read(name) if name.endswith(("WHEEL", ".json")) else b"")
    said = run(tools, "-c", COMPLAINTS, tag, without, env={"HVD_WITH_CUDA": "AUTO"})
    assert "libhvd_cuda" in said and "nvcc" in said, said
    assert run(tools, "-c", COMPLAINTS, tag, without, env={"HVD_WITH_CUDA": "OFF"}) == "[]\n"
