"""An installation has everything, and Python finds the package in it: from `cmake --install` and from `pip install .`."""

import os
import re
import subprocess
import sys

import pytest
from conftest import REPO, hvdrun_path

BUILD = os.path.dirname(os.path.dirname(os.path.realpath(hvdrun_path())))
WORLD = "import horovod.numpy as hvd; hvd.init(); print(hvd.rank(), hvd.size()); hvd.shutdown()"
IN_BOTH = ("bin/horovodrun", "share/man/man1/hvdrun.1", "share/bash-completion/completions/hvdrun", "share/doc/hvdrun/LICENSE", "share/doc/hvdrun/hvdrun.cdx.json",
           "include/hvd/hvd.h")


def run(*command, **options):
    env = dict(os.environ)
    for name in ("PYTHONPATH", "HVD_RUNTIME"):
        env.pop(name, None)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, env=env, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(prefix, python, programs, files):
    for name in programs:
        assert ".debug_info" not in run("readelf", "-SW", prefix / name), f"{name} is not stripped"
    for name in files + IN_BOTH:
        assert (prefix / name).exists(), name
    out = run(prefix / "bin/hvdrun", "-np", "2", "--prefix", "{rank}: ", python, "-c", WORLD)
    assert sorted(out.split("\n")[:-1]) == ["0: 0 2", "1: 1 2"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    # The quote and the space are what shells trip over.
    prefix = tmp_path_factory.mktemp("it's installed") / "hvd run"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def test_cmake_installs_everything(installed):
    check(installed, sys.executable, ("bin/hvdrun", "bin/hvd_perf", "lib/libhvd.so"), ("lib/pkgconfig/hvd.pc",))


def test_what_cmake_installs_is_compiled_for_python3(installed):
    package = installed / "lib/hvdrun/python/horovod"
    tag = run("python3", "-c", "import sys; print(sys.implementation.cache_tag)").strip()
    for source in package.rglob("*.py"):
        assert (source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc").exists(), source


# Of libc alone; a library that is missing on a machine without a GPU is looked for when somebody
# asks.
LIBRARIES_OF_CUDA = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0"}


def test_the_library_for_gpus_needs_no_cuda(installed):
    if not (installed / "lib/libhvd_cuda.so").exists():
        pytest.skip("this build has no libhvd_cuda.so")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", installed / "lib/libhvd_cuda.so"))
    assert needed and set(needed) <= LIBRARIES_OF_CUDA
    shown = re.findall(r" (?:GLOBAL|WEAK) +DEFAULT +\d+ (\S+)", run("readelf", "--dyn-syms", "-W", installed / "lib/libhvd_cuda.so"))
    assert sorted(shown) == ["hvd_cuda_can_load", "hvd_cuda_describe", "hvd_cuda_open_backend", "hvd_cuda_open_device",
                             "hvd_plugin_interface"]


@pytest.mark.parametrize("where", ["installed", "build tree"])
def test_a_shell_finds_the_package_by_hvdrun_env(installed, where):
    hvdrun = installed / "bin/hvdrun" if where == "installed" else hvdrun_path()
    script = 'eval "$("$1" env)"; eval "$("$1" env)"; command -v hvdrun; echo "$PYTHONPATH"; "$2" -c "$3"'
    out = run("sh", "-c", script, "sh", hvdrun, sys.executable, WORLD).splitlines()
    assert os.path.samefile(out[0], hvdrun)
    assert ":" not in out[1], "the folder is there once"
    assert out[2] == "0 1"


def of_the_build(variable, otherwise):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
        found = re.search(rf"^{variable}:\w+=(.*)$", cache.read(), re.MULTILINE)
    return found.group(1) if found else otherwise


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--editable"]], ids=["", "editable"])
def test_pip_installs_everything(tmp_path, options):
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--system-site-packages", venv)
    download = subprocess.run([venv / "bin/pip", "download", "--quiet", "--no-deps", "--dest", tmp_path, "scikit-build-core"],
                              capture_output=True, text=True, timeout=120)
    if download.returncode != 0:
        pytest.skip("pip reaches no package index: " + download.stderr.strip().split("\n")[-1])
    before = sorted(os.listdir(os.path.join(BUILD, "lib")))
    # With the flags of the build that is tested the compiler cache has every object.
    subprocess.run([venv / "bin/pip", "install", "--quiet", *options, "--config-settings=cmake.define.HVD_WERROR=ON",
                    "--config-settings=cmake.define.CMAKE_UNITY_BUILD=" + of_the_build("CMAKE_UNITY_BUILD", "ON"),
                    "--config-settings=cmake.define.HVD_WITH_CUDA=OFF", REPO], check=True,
                   timeout=1500, env={**os.environ, "CCACHE_BASEDIR": str(REPO), "CCACHE_NOHASHDIR": "1", "CC": "cc", "CXX": "c++"})
    packages = next((venv / "lib").glob("python3*/site-packages")).relative_to(venv)
    sources = REPO / "runtime/python/horovod" if options else venv / packages / "horovod"
    check(venv, venv / "bin/python", ("bin/hvdrun", packages / "horovod/lib/libhvd.so"), (packages / "horovod/lib/python/horovod/__init__.py",))
    assert run(venv / "bin/python", "-c", WORLD, cwd=tmp_path) == "0 1\n"
    where = "; import horovod.common.basics as b; print(b.__file__)"
    assert run(venv / "bin/python", "-c", WORLD + where, cwd=tmp_path).splitlines()[-1] == str(sources / "common/basics.py")
    out = run(venv / "bin/hvdrun", "-np", "2", "--prefix", "", venv / "bin/python", "-c", WORLD + where, cwd=tmp_path)
    assert out.count(str(sources / "common/basics.py")) == 2
    assert len(run(venv / "bin/hvdrun", "agent", "--build").split()) == 2, "what is sent to other hosts is complete"
    assert sorted(os.listdir(os.path.join(BUILD, "lib"))) == before, "the tree of cmake is not pip's to write into"
