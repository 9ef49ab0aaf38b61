"""Packages of Debian, RPM and conda: built, unpacked without root's help, and started; that of Debian is also installed, on a machine of its own.
Of --soak."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import zipfile

import pytest
from machines import Machine, base

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPO / "test"))
from installed import NO_TOOL, PACKAGING, newest_wheel, packaging_tool  # noqa: E402

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


@pytest.fixture(scope="module")
def deb(tmp_path_factory):
    if shutil.which("dpkg-shlibdeps") is None:
        pytest.skip("dpkg-dev is not installed")
    return package("DEB", tmp_path_factory.mktemp("deb"))


def finds_horovod(root, line):
    """A line of a .pth file, as Python's own site module reads it."""
    code = "import site, sys; site.addsitedir(sys.argv[1]); import horovod; print(horovod.__file__)"
    where = run(DEBIAN, "-I", "-c", code, line.parent).strip()
    assert where == str(root / "usr/lib/hvdrun/python/horovod/__init__.py"), where


def test_the_debian_package_has_its_dependencies_and_starts(deb, tmp_path):
    file = deb
    depends = run("dpkg-deb", "--field", file, "Depends")
    assert "libc6 (>=" in depends and (not (BUILD / "lib/libhvd_gloo.so").exists() or "libgloo0" in depends), depends
    run("dpkg", "-x", file, tmp_path / "root")
    check(tmp_path / "root")
    finds_horovod(tmp_path / "root", tmp_path / "root/usr/lib/python3/dist-packages/hvdrun.pth")
    assert "License: Apache-2.0" in (tmp_path / "root/usr/share/doc/hvdrun/copyright").read_text()
    text = (tmp_path / "root/usr/bin/hvdrun").read_bytes() + b"".join(
        path.read_bytes() for path in (tmp_path / "root").rglob("__pycache__/basics.*.pyc"))
    assert str(tmp_path).encode() not in text and b"_CPack_Packages" not in text


def test_an_installed_debian_package_serves_every_python_script_and_is_removed_whole(deb, tmp_path):
    machine = Machine(tmp_path, [base("bookworm")])
    try:
        machine.join_the_network()
        machine.add_user()
        shutil.copy(deb, machine.root / "tmp/hvdrun.deb")
        machine.run("export DEBIAN_FRONTEND=noninteractive\napt-get update -q\n"
                    "dpkg -i /tmp/hvdrun.deb || apt-get install -q -y --no-install-recommends --fix-broken", user="0")
        assert machine.run("dpkg-query -W -f '${Status}' hvdrun") == "install ok installed"
        assert machine.run(f"python3 -c {shlex.quote(WORLD)}") == "0 1\n"
        assert sorted(machine.run(f"hvdrun -np 2 --prefix '' python3 -c {shlex.quote(WORLD)}").splitlines()) == ["0 2", "1 2"]
        assert machine.run("python3 -c 'import horovod; print(horovod.__file__)'") == "/usr/lib/hvdrun/python/horovod/__init__.py\n"
        machine.run("dpkg --purge hvdrun", user="0")
        assert machine.run("find /usr -name '*hvd*' -o -name '*horovod*'") == ""
    finally:
        machine.remove()


def test_the_rpm_package_starts(tmp_path):
    if shutil.which("rpmbuild") is None or shutil.which("rpm2archive") is None:
        pytest.skip(f"rpm {NO_TOOL}")
    file = package("RPM", tmp_path / "made")
    assert "libc.so.6" in run("rpm", "-qp", "--requires", file)
    folders = set(run("rpm", "-qpl", file).splitlines())
    assert "/usr/bin/hvdrun" in folders and not folders & {"/usr", "/usr/bin", "/usr/lib", "/usr/share/man/man1"}
    line = next(name for name in folders if name.endswith("/site-packages/hvdrun.pth"))
    assert not folders & {os.path.dirname(line), os.path.dirname(os.path.dirname(line))}  # Python's own
    root = tmp_path / "root"
    root.mkdir()
    run("rpm2archive", file)
    run("tar", "-xzf", f"{file}.tgz", "-C", root)
    check(root)
    finds_horovod(root, root / line[1:])


def conda_builder():
    """A Python with py-rattler-build."""
    for python in (sys.executable, str(PACKAGING / "python")):
        if os.path.exists(python) and subprocess.run([python, "-c", "import rattler_build"], capture_output=True).returncode == 0:
            return python
    pytest.skip(f"py-rattler-build {NO_TOOL}")


MAKE_CONDA = """import json, pathlib, sys, rattler_build as rb
recipe, folder, target = sys.argv[1:]
how = rb.RenderConfig(platform=rb.PlatformConfig(target_platform=target))
for variant in rb.Stage0Recipe.from_file(recipe).render(render_config=how):
    variant.run_build(channels=[], output_dir=folder)
file = next((pathlib.Path(folder) / target).glob("hvdrun-*.conda"))
print(json.dumps([str(file), [line for test in rb.Package.from_file(file).tests for line in test.script]]))
"""


def conda_package(folder, processor):
    """Made without a channel from the wheel in dist/. The folders that it unpacks to, pkg and info, and the commands of the recipe's tests."""
    if newest_wheel(processor) is None:
        pytest.skip(f"there is no wheel: scripts/build_wheel.sh --arch {processor} makes one")
    target = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}[processor]
    made = run(conda_builder(), "-c", MAKE_CONDA, REPO / "packaging/conda/recipe.yaml", folder / "made", target)
    file, tests = json.loads(made.splitlines()[-1])
    with zipfile.ZipFile(file) as parts:
        parts.extractall(folder)
    for kind in ("pkg", "info"):
        (folder / kind).mkdir()
        run("tar", "--zstd", "-xf", next(folder.glob(f"{kind}-*.tar.zst")), "-C", folder / kind)
    return folder / "pkg", folder / "info/info", tests


def test_the_conda_package_keeps_horovod_out_and_passes_the_tests_of_its_recipe(tmp_path):
    """Laid out as conda does it for a Python."""
    package, info, tests = conda_package(tmp_path, "x86_64")
    index = json.loads((info / "index.json").read_text())
    assert index["constrains"] == ["horovod <0.0.0a0"] and "__glibc >=2.28" in index["depends"], index
    licenses = {str(path.relative_to(info / "licenses")) for path in (info / "licenses").rglob("*") if path.is_file()}
    assert {"LICENSE", "NOTICE", "THIRD_PARTY.md", "licenses/openssl/copyright", "licenses/gloo/copyright"} <= licenses, licenses
    env = tmp_path / "env"
    run(DEBIAN, "-m", "venv", "--without-pip", env)
    site_packages = next((env / "lib").glob("python3*/site-packages"))
    shutil.copytree(package / "site-packages", site_packages, dirs_exist_ok=True)
    shutil.copytree(package / "python-scripts", env / "bin", dirs_exist_ok=True)
    assert len(tests) == 2, tests
    for command in tests:
        run("env", f"PATH={env}/bin:/usr/bin:/bin", "bash", "-ec", command)
    assert run(env / "bin/python", "-c", "import horovod; print(horovod.__file__)").startswith(str(site_packages))


def test_the_conda_package_for_the_other_processor_has_the_wheel_of_that_one(tmp_path):
    package, info, _ = conda_package(tmp_path, "aarch64")
    assert json.loads((info / "index.json").read_text())["subdir"] == "linux-aarch64"
    assert (package / "site-packages/horovod/lib/libhvd.so").read_bytes()[18:20] == bytes([183, 0])  # EM_AARCH64


def test_the_linter_of_dockerfiles_has_no_finding():
    linter = packaging_tool("hadolint")
    if linter is None:
        pytest.skip(f"hadolint {NO_TOOL}")
    run(linter, REPO / "docker/Dockerfile")
