"""What is linked into the wheel comes from a mirror of Debian, and from the snapshot of its archive where the mirror has moved on. Of --soak: a network."""

import os
import pathlib
import re
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]


def mirror():
    """The mirror that apt has here, which stands for the snapshot: it has what third_parties.txt names, and is signed by Debian."""
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        found = path.is_file() and re.search(r"^(?:URIs: *|deb (?:\[[^]]*\] )?)(\S+/debian/?)(?:\s|$)", path.read_text(), re.M)
        if found:
            return found.group(1)
    pytest.skip("apt has no mirror of Debian here")


def build_zlib(folder, snapshot):
    """By a mirror without it: no list of one was read."""
    return subprocess.run([REPO / "packaging/wheel/third_parties.sh", folder / "made", "zlib"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "HVD_DEBIAN_SNAPSHOT": snapshot})


def test_a_source_that_the_mirror_has_no_more_comes_from_the_snapshot(tmp_path):
    done = build_zlib(tmp_path, mirror())
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "made/lib/libz.a").exists() and (tmp_path / "made/licenses/zlib/copyright").exists()


def test_one_that_neither_has_is_said(tmp_path):
    (tmp_path / "empty").mkdir()
    done = build_zlib(tmp_path, f"file:{tmp_path}/empty")
    assert done.returncode == 3 and "zlib 1:1.3.dfsg+really1.3.1-1 is not to be had any more, nor at file:" in done.stderr, done.stdout + done.stderr
