"""installed.py FOLDER: installs the newest wheel of dist/ (HVD_WHEEL: that one) into a virtual environment at FOLDER and prints its hvdrun, for

    HVD_INSTALLED=1 HVDRUN="$(python3 test/installed.py FOLDER)" python3 -m pytest test/system
"""
import os
import pathlib
import platform
import shutil
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parents[1]


def newest_wheel(processor=platform.machine()):
    """That of dist/ for the processor; None: there is none."""
    found = sorted((REPO / "dist").glob(f"hvdrun-*-manylinux_*_{processor}.whl"), key=os.path.getmtime)
    return found[-1] if found else None


PACKAGING = pathlib.Path(os.environ.get("HVD_PACKAGING_VENV") or pathlib.Path.home() / ".cache/hvdrun/packaging-venv") / "bin"


def packaging_tool(name):
    """The path of a program of test/packages/requirements.txt: this machine's, else that of the environment; None: there is none."""
    return shutil.which(name) or shutil.which(name, path=str(PACKAGING))


NO_TOOL = "is not installed: scripts/install_deps.sh --pypi-packaging"


def main(folder):
    wheel = os.environ.get("HVD_WHEEL") or newest_wheel() or sys.exit("there is no wheel: scripts/build_wheel.sh makes one")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", folder], check=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index", wheel],
                   check=True)
    print(folder / "bin/hvdrun")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
