"""The programs of the unit and contract tests, built for aarch64 (scripts/build_wheel.sh --arch aarch64 --tests), in the emulated Debian: each by
itself, judged by how it ends. not_emulated.txt has the tests that an emulator cannot pass, with the reason, and the others run."""

import json
import os
import pathlib
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = REPO / "build-aarch64"
LEFT_OUT = pathlib.Path(__file__).parent / "not_emulated.txt"
SLOWNESS = 10  # of the emulator: the tests' own limits are times this


def programs():
    """{name: what ctest would start, without the emulator} of the unit and contract tests."""
    if not (BUILD / "CTestTestfile.cmake").exists():
        return {}
    said = subprocess.run(["ctest", "--test-dir", BUILD, "-L", "unit|contract", "--show-only=json-v1"], stdout=subprocess.PIPE, check=True).stdout
    found = {}
    for test in json.loads(said)["tests"]:
        words = test.get("command", [])
        if words and os.path.basename(words[0]) == "qemu-aarch64":
            words = words[3:]  # qemu-aarch64 -L FOLDER
        found[test["name"]] = words
    return found


def left_out():
    """[(program, test, reason)]"""
    lines = [line.split(None, 2) for line in LEFT_OUT.read_text().splitlines() if line and not line.startswith("#")]
    assert all(len(line) == 3 for line in lines), "each line has a program, a test and a reason"
    return lines


PROGRAMS = programs()


def test_they_are_built():
    if not PROGRAMS:
        pytest.skip("scripts/build_wheel.sh --arch aarch64 --tests makes them")
    missing = [name for name, words in PROGRAMS.items() if not os.path.exists(next((word for word in words if word.startswith(str(BUILD))), ""))]
    assert missing == []


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_ends_well(bare_debian, name, tmp_path):
    words = PROGRAMS[name]
    program = next(word for word in words if word.startswith(str(BUILD)))
    out = [test for of, test, _ in left_out() if of == os.path.basename(program)]
    env = {"HVD_TEST_SLOWNESS": str(SLOWNESS), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if out:
        listed = bare_debian.start(program, "--gtest_list_tests", shown=REPO, capture_output=True, timeout=300).stdout
        suite, there = "", set()
        for line in listed.splitlines():
            test = line.split("#")[0].rstrip()
            if test.startswith("  "):
                there.add(suite + test.strip())
            else:
                suite = test
        assert [test for test in out if test not in there] == [], f"{LEFT_OUT.name} names tests that there are not"
        env["GTEST_FILTER"] = "-" + ":".join(out)
    with open(tmp_path / "said", "w+") as said:
        code = bare_debian.start(*words, shown=REPO, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=1800).returncode
        said.seek(0)
        text = said.read()
    assert code == 0, f"{name} ended with {code}\n" + "\n".join([line for line in text.splitlines() if "[  FAILED" in line] + text.splitlines()[-60:])
