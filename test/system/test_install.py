"""An installation by `cmake --install` has everything, and Python finds the package in it. Those by pip: test/wheel."""

import os
import re
import subprocess
import sys

import pytest
from conftest import hvdrun_path

BUILD = os.path.dirname(os.path.dirname(os.path.realpath(hvdrun_path())))
WORLD = "import horovod.numpy as hvd; hvd.init(); print(hvd.rank(), hvd.size()); hvd.shutdown()"
FILES = ("lib/pkgconfig/hvd.pc", "bin/horovodrun", "share/man/man1/hvdrun.1", "share/bash-completion/completions/hvdrun", "share/doc/hvdrun/LICENSE",
         "share/doc/hvdrun/hvdrun.cdx.json", "include/hvd/hvd.h")


def run(*command, **options):
    env = dict(os.environ)
    for name in ("PYTHONPATH", "HVD_RUNTIME"):
        env.pop(name, None)
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, env=env, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    # The quote and the space are what shells trip over.
    prefix = tmp_path_factory.mktemp("it's installed") / "hvd run"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def test_cmake_installs_everything(installed):
    for name in ("bin/hvdrun", "bin/hvd_perf", "lib/libhvd.so"):
        assert ".debug_info" not in run("readelf", "-SW", installed / name), f"{name} is not stripped"
    for name in FILES:
        assert (installed / name).exists(), name
    out = run(installed / "bin/hvdrun", "-np", "2", "--prefix", "{rank}: ", sys.executable, "-c", WORLD)
    assert sorted(out.splitlines()) == ["0: 0 2", "1: 1 2"]


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
