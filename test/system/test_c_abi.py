"""The C interface: programs are built and run by pkg-config and CMake, and libhvd.so keeps to the interface that they were built for."""

import os
import re
import shutil
import subprocess

import pytest
from conftest import REPO, hvdrun_path, needs_the_build_tree

pytestmark = needs_the_build_tree("a wheel has nothing that C programs are linked with")

BUILD = os.path.dirname(os.path.dirname(os.path.realpath(hvdrun_path())))


def run(*command, **options):
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HVD_RUNTIME")}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, env=env, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed") / "hvd"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


WORLD_C = "#include <hvd/hvd.h>\nint main(void) { return hvd_abi_version() == HVD_ABI_VERSION ? 0 : 1; }\n"


def example_of_the_page():
    page = (REPO / "docs" / "c-api.md").read_text()
    return re.search(r"```c\n(/\* mean\.c.*?)```", page, re.S).group(1)


def test_the_c_example_of_the_documentation_runs(installed, tmp_path):
    """Built by pkg-config, and run with nothing that says where the library is."""
    pkg_config = shutil.which("pkg-config")
    if pkg_config is None:
        pytest.skip("pkg-config is not installed here")
    shutil.copytree(installed, tmp_path / "moved", symlinks=True)  # it is found from the file, wherever that lies
    (tmp_path / "mean.c").write_text(example_of_the_page())
    flags = subprocess.run([pkg_config, "--cflags", "--libs", "hvd"], capture_output=True, text=True, check=True,
                           env={**os.environ, "PKG_CONFIG_PATH": str(tmp_path / "moved/lib/pkgconfig")}).stdout
    run("sh", "-c", f"cc -Wall -Wextra -Werror -o mean mean.c {flags}", cwd=tmp_path)
    assert run(tmp_path / "mean") == "rank 0 of 1: mean 0.0\n"
    out = run(tmp_path / "moved/bin/hvdrun", "-np", 2, "--prefix", "", tmp_path / "mean")
    assert sorted(out.splitlines()) == ["rank 0 of 2: mean 0.5", "rank 1 of 2: mean 0.5"]
    run("sh", "-c", f"c++ -Wall -Wextra -Werror -x c++ -o mean++ mean.c {flags}", cwd=tmp_path)


def test_the_library_has_the_version_of_its_abi(installed):
    library = installed / "lib/libhvd.so"
    assert "SONAME" in run("readelf", "-dW", library) and "[libhvd.so.1]" in run("readelf", "-dW", library)
    assert os.path.samefile(library, installed / "lib/libhvd.so.1")
    names = re.findall(r" (?:GLOBAL|WEAK) +DEFAULT +\d+ (hvd_\w+)(@*\w*)", run("readelf", "--dyn-syms", "-W", library))
    assert len(names) > 30 and {version for _, version in names} == {"@@HVD_1"}, names


def test_c_programs_are_built_with_find_package(installed, tmp_path):
    (tmp_path / "world.c").write_text(WORLD_C)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(world LANGUAGES C)\nfind_package(hvd 0.1 REQUIRED)\n"
        "add_executable(world world.c)\ntarget_link_libraries(world PRIVATE hvd::hvd)\n")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build" / "world")


def test_the_interface_is_that_of_the_dump():
    """Types by abidiff, names by the library itself."""
    done = subprocess.run([REPO / "scripts/abi.sh"], capture_output=True, text=True, timeout=300)
    if done.returncode == 3:
        pytest.skip("abigail-tools is not installed here")
    assert done.returncode == 0, done.stdout
    promised = set(re.findall(r"<elf-symbol name='(\w+)' version='HVD_1'", (REPO / "runtime/api/hvd.abi").read_text()))
    there = re.findall(r" (?:GLOBAL|WEAK) +DEFAULT +\d+ (hvd_\w+)@@HVD_1", run("readelf", "--dyn-syms", "-W", os.path.join(BUILD, "lib/libhvd.so")))
    assert len(promised) > 30 and promised <= set(there), promised - set(there)


@pytest.mark.parametrize("pattern, by", [("HVD_FORKED = 9", "HVD_FORKED = 12"), ("HVD_EXPORT int32_t hvd_give_up(void);", ""),
                                         ("int32_t hvd_shutdown(void)", "int64_t hvd_shutdown(void)")])
def test_a_change_of_the_interface_is_found(tmp_path, pattern, by):
    for name in ("scripts/abi.sh", "scripts/common.sh", "runtime/include/hvd/hvd.h", "runtime/api/exports.map", "runtime/api/hvd.abi"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, tmp_path / name)
    header = tmp_path / "runtime/include/hvd/hvd.h"
    text = header.read_text()
    assert pattern in text
    header.write_text(text.replace(pattern, by))
    done = subprocess.run([tmp_path / "scripts/abi.sh"], capture_output=True, text=True, timeout=300)
    if done.returncode == 3:
        pytest.skip("abigail-tools is not installed here")
    assert done.returncode == 1 and "is not that of runtime/api/hvd.abi" in done.stdout, done.stdout
