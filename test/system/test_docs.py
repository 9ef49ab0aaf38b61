"""Commands in the documentation are commands: each one of hvdrun is read by hvdrun itself."""

import re
import shlex
import subprocess
import textwrap

import pytest
from conftest import DEADLINE, REPO, hvdrun_path

PAGES = sorted(REPO.glob("docs/*.md")) + [REPO / "README.md", REPO / "examples" / "README.md"]
VERBS_WITHOUT_OPTIONS = ("dump", "env", "ps", "stop", "top", "trace")


def commands(text):
    """The commands of hvdrun in the blocks of a page, as words."""
    blocks = "\n".join(re.findall(r"```(?:console|sh|bash)\n(.*?)```", text, re.S)).replace("\n$ ", "\n")
    lines = re.findall(r"^    (.*)$", text, re.M) + blocks.removeprefix("$ ").split("\n")
    for line in lines:
        found = re.match(r"(?:\S*/)?(?:hvdrun|horovodrun) ([^|]*)", line)
        if found and not line.startswith("hvdrun:"):
            yield shlex.split(found.group(1), comments=True)


def test_the_reader_sees_commands_and_nothing_else():
    page = "    hvdrun -np 2 a  # why\n    hvdrun: host a is gone\n\n```console\n$ hvdrun ps\nhvdrun\n```\n    venv/bin/hvdrun -np 1 b\n"
    assert list(commands(page)) == [["-np", "2", "a"], ["-np", "1", "b"], ["ps"]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_the_documentation_are_understood(page, tmp_path):
    for name, content in re.findall(r"^    # (\w+\.yaml)\n((?:    .*\n)+)", page.read_text(), re.M):
        (tmp_path / name).write_text(textwrap.dedent(content))
    for words in commands(page.read_text()):
        if words and words[0] in VERBS_WITHOUT_OPTIONS:
            continue
        if words and words[0] == "doctor":
            words = words[1:]
        done = subprocess.run([hvdrun_path(), "--print-config", *words], capture_output=True, text=True, timeout=DEADLINE,
                              cwd=tmp_path)
        assert done.returncode == 0, f"hvdrun {shlex.join(words)}: {done.stderr}"


def test_hvd_perf_explains_its_options():
    done = subprocess.run([str(hvdrun_path()).rsplit("/", 1)[0] + "/hvd_perf", "--help"], capture_output=True, text=True,
                          timeout=DEADLINE)
    page = (REPO / "cmd" / "hvd_perf" / "README.md").read_text()
    options = set(re.findall(r"`(--[\w-]+)`", page))
    assert done.returncode == 0 and done.stderr == "" and len(options) >= 7
    assert options - {word.strip(",") for word in done.stdout.split()} == set()
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
