"""Commands in the documentation are commands: each one of hvdrun is read by hvdrun itself."""

import re
import shlex
import subprocess
import sys
import textwrap

import pytest
from conftest import DEADLINE, REPO, hvdrun_path

PAGES = sorted(REPO.glob("docs/*.md")) + [REPO / "README.md", REPO / "examples" / "README.md"]
VERBS = ("attach", "drain", "dump", "env", "explain", "forget", "logs", "ps", "scale", "status", "stop", "top", "trace", "tune")


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
        if words and words[0] in VERBS:
            continue
        if words and words[0] == "doctor":
            words = words[1:]
        done = subprocess.run([hvdrun_path(), "--print-config", *words], capture_output=True, text=True, timeout=DEADLINE,
                              cwd=tmp_path)
        assert done.returncode == 0, f"hvdrun {shlex.join(words)}: {done.stderr}"


def test_the_tutorial_does_what_it_says(tmp_path):
    """Its first script, the failure, and the cure of its hang."""
    pytest.importorskip("torch", reason="PyTorch is not installed for this Python")
    page = (REPO / "docs" / "tutorial.md").read_text()
    script, _, cure = re.findall(r"```python\n(.*?)```", page, re.S)
    shown = re.findall(r"^\[\d\]<stdout>:.*", page, re.M)
    (tmp_path / "train.py").write_text(script + cure)
    done = subprocess.run([hvdrun_path(), "-np", "2", sys.executable, "train.py"], capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path)
    assert done.returncode == 0 and set(shown) <= set(done.stdout.splitlines()), done
    assert done.stdout.splitlines()[-1].startswith("[0]<stdout>:loss 0.0")
    fault = re.search(r"add `(.*?)` before the loop", page).group(1)
    (tmp_path / "train.py").write_text(script.replace("for step", f"{fault}\nfor step"))
    done = subprocess.run([hvdrun_path(), "-np", "2", sys.executable, "train.py"], capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.endswith("  1 other rank was ended because of it.\n  hvdrun explain HVD101\n"), done


# What a verb takes, from its help.
def test_commands_of_verbs_have_options_that_the_verb_takes():
    for page in PAGES:
        for words in commands(page.read_text()):
            if not words or words[0] not in VERBS:
                continue
            told = subprocess.run([hvdrun_path(), "help", words[0]], capture_output=True, text=True, timeout=DEADLINE).stdout
            unknown = [word for word in words[1:] if word.startswith("-") and word.partition("=")[0] not in re.findall(r"-[-\w]+", told)]
            assert not unknown, f"{page.name}: hvdrun {shlex.join(words)}"


def test_hvd_perf_explains_its_options():
    done = subprocess.run([str(hvdrun_path()).rsplit("/", 1)[0] + "/hvd_perf", "--help"], capture_output=True, text=True,
                          timeout=DEADLINE)
    page = (REPO / "cmd" / "hvd_perf" / "README.md").read_text()
    options = set(re.findall(r"`(--[\w-]+)`", page))
    assert done.returncode == 0 and done.stderr == "" and len(options) >= 7
    assert options - {word.strip(",") for word in done.stdout.split()} == set()
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
