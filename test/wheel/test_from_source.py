"""The source archive, and packages that pip builds: of the archive and of the tree, which are one. Building is for --soak; what makes packages is that of
scripts/build_wheel.sh, so that nothing is loaded from a package index."""

import os
import pathlib
import random
import re
import shutil
import string
import subprocess
import tarfile
import zipfile

import pytest
from conftest import DEBIAN, REPO, Environment, run

BUILD = pathlib.Path(os.environ.get("HVD_BUILD") or REPO / "build")
WORLD = ("import horovod.common.basics as basics; hvd = basics.HorovodBasics(); hvd.init(); "
         "print(hvd.rank(), hvd.size(), basics.__file__); hvd.shutdown()")
LEFT_OUT = (".ci/", "test/", "docs/pictures/", "docs/images/")  # pyproject.toml


@pytest.fixture(scope="module")
def archive(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    run(tools, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, REPO)
    (path,) = folder.glob("hvdrun-*.tar.gz")
    return path


def test_the_source_archive_has_the_files_of_the_repository_but_for_tests(archive):
    listed = subprocess.run(["git", "-C", REPO, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("these sources are no checkout of git")
    files = {name for name in listed.stdout.split("\0") if name and (REPO / name).exists()}
    wanted = {name for name in files if not name.startswith(LEFT_OUT)}
    assert any(name.startswith("test/") for name in files - wanted), "there are tests to leave out"
    with tarfile.open(archive) as file:
        members = {member.name.partition("/")[2]: member for member in file.getmembers() if not member.isdir()}
        assert set(members) ^ wanted == {"PKG-INFO"}
        for name in ("CMakeLists.txt", "runtime/python/horovod/__init__.py", "scripts/build_wheel.sh"):
            assert file.extractfile(members[name]).read() == (REPO / name).read_bytes(), name
        assert members["scripts/build_wheel.sh"].mode & 0o100, "scripts can be run"


def of_the_build(variable, otherwise):
    """With the flags of the build the compiler cache has every object."""
    cache = BUILD / "CMakeCache.txt"
    found = re.search(rf"^{variable}:\w+=(.*)$", cache.read_text(), re.MULTILINE) if cache.exists() else None
    return found.group(1) if found else otherwise


def pip(tools, python, verb, sources, *options):
    """pip of a Python that has the build back end, on these sources."""
    settings = {"HVD_WERROR": "ON", "CMAKE_UNITY_BUILD": of_the_build("CMAKE_UNITY_BUILD", "ON"), "HVD_WITH_CUDA": "OFF"}
    env = {"CCACHE_BASEDIR": str(sources), "CCACHE_NOHASHDIR": "1", "CC": "cc", "CXX": "c++", "PATH": f"{tools.parent}:{os.environ['PATH']}",
           "GIT_DIR": "/no repository"}  # hvdrun --version names a commit where there is one
    run(python, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation",
        *(f"--config-settings=cmake.define.{name}={value}" for name, value in settings.items()), *options, sources, env=env, timeout=3000)


@pytest.fixture(scope="module")
def of_the_tree(tools, tmp_path_factory):
    """The wheel that `pip install .` makes and installs."""
    folder = tmp_path_factory.mktemp("tree")
    pip(tools, tools, "wheel", REPO, "--wheel-dir", folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def sources(archive):
    """The archive, unpacked in a folder with as long a name as the repository's: texts of failed checks name their file in full."""
    letters = len(str(REPO)) - len("/tmp/")
    if letters < 6:
        pytest.skip(f"no folder in /tmp has as long a name as {REPO}")
    folder = pathlib.Path("/tmp", "".join(random.choices(string.ascii_lowercase, k=letters)))
    with tarfile.open(archive) as file:
        file.extractall(folder.parent / f"{folder.name}.tar")
    try:
        next((folder.parent / f"{folder.name}.tar").iterdir()).rename(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder.parent / f"{folder.name}.tar")


def contents(wheel, sources, folder):
    """{name: bytes} but for what names the build: the id of each program, and where its sources were."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "RECORD":
            if path.read_bytes()[:4] == b"\x7fELF":
                run("objcopy", "--remove-section", ".note.gnu.build-id", path)
            found[str(path.relative_to(folder))] = path.read_bytes().replace(str(sources).encode(), b"...")
    return found


@pytest.mark.soak
def test_pip_makes_the_same_package_of_the_archive_and_of_the_tree(tools, sources, of_the_tree, wheel, tmp_path):
    pip(tools, tools, "wheel", sources, "--wheel-dir", tmp_path)
    (of_the_archive,) = tmp_path.glob("*.whl")
    assert of_the_archive.name == of_the_tree.name
    ours, theirs = contents(of_the_tree, REPO, tmp_path / "ours"), contents(of_the_archive, sources, tmp_path / "theirs")
    assert "horovod/lib/libhvd.so" in ours and set(ours) == set(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
    # The wheel for all distributions has the licences of what is linked into it besides, its bill of materials at another place, and what knows
    # GPUs, which the flags above leave out.
    with zipfile.ZipFile(wheel) as file:
        differ = set(file.namelist()) ^ set(ours)
    assert {name for name in differ if not re.search(r"/RECORD$|/licenses/|\.cdx\.json$", name)} <= {"horovod/lib/libhvd_cuda.so"}


@pytest.mark.soak
def test_pip_installs_everything(tools, of_the_tree, tmp_path):
    fresh = Environment(tmp_path / "venv", DEBIAN)
    fresh.install(of_the_tree)
    packages = next((fresh.folder / "lib").glob("python3*/site-packages"))
    check(fresh, packages / "horovod", (packages / "horovod/lib/python/horovod/__init__.py",))
    for program in (fresh.folder / "bin/hvdrun", packages / "horovod/lib/libhvd.so"):
        assert ".debug_info" not in run("readelf", "-SW", program), f"{program} is not stripped"


@pytest.mark.soak
def test_an_editable_installation_leaves_the_sources_where_they_are(tools, tmp_path):
    before = sorted(os.listdir(BUILD / "lib")) if BUILD.exists() else []
    fresh = Environment(tmp_path / "venv", DEBIAN)
    beside = next((tools.parent.parent / "lib").glob("python3*/site-packages"))
    (next((fresh.folder / "lib").glob("python3*/site-packages")) / "tools.pth").write_text(f"{beside}\n")
    pip(tools, fresh.python, "install", REPO, "--editable")
    check(fresh, REPO / "runtime/python/horovod", ())
    assert before == (sorted(os.listdir(BUILD / "lib")) if BUILD.exists() else []), "the tree of cmake is not pip's to write into"


def check(environment, sources, files):
    for name in ("bin/horovodrun", "share/man/man1/hvdrun.1", "share/bash-completion/completions/hvdrun", "share/doc/hvdrun/LICENSE",
                 "share/doc/hvdrun/hvdrun.cdx.json", "include/hvd/hvd.h", *files):
        assert (environment.folder / name).exists(), name
    ours = f"{sources}/common/basics.py"
    assert run(environment.python, "-c", WORLD, cwd="/") == f"0 1 {ours}\n"
    out = run(environment.folder / "bin/hvdrun", "-np", "2", "--prefix", "", environment.python, "-c", WORLD, cwd="/")
    assert sorted(out.splitlines()) == [f"0 2 {ours}", f"1 2 {ours}"]
    assert len(run(environment.folder / "bin/hvdrun", "agent", "--build").split()) == 2, "what is sent to other hosts is complete"
