"""Packages of Debian, RPM and conda: built, unpacked without root's help, and started. Of --soak."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPO / "test"))
from installed import NO_TOOL, PACKAGING, packaging_tool  # noqa: E402

BUILD = pathlib.Path(os.environ.get("HVD_BUILD") or REPO / "build")
DEBIAN = "/usr/bin/python3"
WORLD = "from horovod.common.basics import shared; hvd = shared(); hvd.init(); print(hvd.rank(), hvd.size())"


def run(*command, **options):
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HVD_RUNTIME", "HVDRUN")}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, env=env, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def package(kind, folder):
    if not (BUILD / "CPackConfig.cmake").exists():
        pytest.skip(f"{BUILD} is no build folder")
    run("cpack", "-G", kind, "--config", BUILD / "CPackConfig.cmake", "-B", folder)
    return next(folder.glob(f"*.{kind.lower()}"))


def check(root):
    """Started where it was unpacked: nothing in it names /usr."""
    out = run(root / "usr/bin/hvdrun", "-np", "2", "--prefix", "", DEBIAN, "-c", WORLD)
    assert sorted(out.splitlines()) == ["0 2", "1 2"]
    assert run(root / "usr/bin/horovodrun", "--version").startswith("hvdrun ")
    for name in ("share/man/man1/hvdrun.1", "share/bash-completion/completions/hvdrun", "include/hvd/hvd.h", "lib/pkgconfig/hvd.pc"):
        assert (root / "usr" / name).exists(), name


def test_the_debian_package_has_its_dependencies_and_starts(tmp_path):
    if shutil.which("dpkg-shlibdeps") is None:
        pytest.skip("dpkg-dev is not installed")
    file = package("DEB", tmp_path / "made")
    depends = run("dpkg-deb", "--field", file, "Depends")
    assert "libc6 (>=" in depends and (not (BUILD / "lib/libhvd_gloo.so").exists() or "libgloo0" in depends), depends
    run("dpkg", "-x", file, tmp_path / "root")
    check(tmp_path / "root")
    text = (tmp_path / "root/usr/bin/hvdrun").read_bytes() + b"".join(
        path.read_bytes() for path in (tmp_path / "root").rglob("__pycache__/basics.*.pyc"))
    assert str(tmp_path).encode() not in text and b"_CPack_Packages" not in text


def test_the_rpm_package_starts(tmp_path):
    if shutil.which("rpmbuild") is None or shutil.which("rpm2archive") is None:
        pytest.skip("rpm is not installed")
    file = package("RPM", tmp_path / "made")
    assert "libc.so.6" in run("rpm", "-qp", "--requires", file)
    folders = set(run("rpm", "-qpl", file).splitlines())
    assert "/usr/bin/hvdrun" in folders and not folders & {"/usr", "/usr/bin", "/usr/lib", "/usr/share/man/man1"}
    root = tmp_path / "root"
    root.mkdir()
    run("rpm2archive", file)
    run("tar", "-xzf", f"{file}.tgz", "-C", root)
    check(root)


def conda_builder():
    """A Python with py-rattler-build."""
    for python in (sys.executable, str(PACKAGING / "python")):
        if os.path.exists(python) and subprocess.run([python, "-c", "import rattler_build"], capture_output=True).returncode == 0:
            return python
    pytest.skip(f"py-rattler-build {NO_TOOL}")


def test_the_conda_package_keeps_horovod_out_and_starts(tmp_path):
    """Built without a channel, and laid out as conda does it for a Python."""
    if not list((REPO / "dist").glob("hvdrun-*-manylinux_2_28_x86_64.whl")):
        pytest.skip("there is no wheel: scripts/build_wheel.sh makes one")
    code = ("import sys, rattler_build as rb\n"
            "for variant in rb.Stage0Recipe.from_file(sys.argv[1]).render():\n"
            "    variant.run_build(channels=[], output_dir=sys.argv[2])\n")
    run(conda_builder(), "-c", code, REPO / "packaging/conda/recipe.yaml", tmp_path / "made")
    with zipfile.ZipFile(next((tmp_path / "made").glob("linux-64/hvdrun-*.conda"))) as file:
        file.extractall(tmp_path)
    for kind in ("pkg", "info"):
        (tmp_path / kind).mkdir()
        run("tar", "--zstd", "-xf", next(tmp_path.glob(f"{kind}-*.tar.zst")), "-C", tmp_path / kind)
    index = json.loads((tmp_path / "info/info/index.json").read_text())
    assert index["constrains"] == ["horovod <0.0.0a0"] and "__glibc >=2.28" in index["depends"], index
    env = tmp_path / "pkg"
    (env / "lib/python3.11").mkdir(parents=True)
    (env / "site-packages").rename(env / "lib/python3.11/site-packages")
    (env / "python-scripts").rename(env / "bin")
    out = run(env / "bin/hvdrun", "-np", "2", "--prefix", "", DEBIAN, "-c", WORLD)
    assert sorted(out.splitlines()) == ["0 2", "1 2"]


def test_the_linter_of_dockerfiles_has_no_finding():
    linter = packaging_tool("hadolint")
    if linter is None:
        pytest.skip(f"hadolint {NO_TOOL}")
    run(linter, REPO / "docker/Dockerfile")
