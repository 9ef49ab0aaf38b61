"""The README shows what the commands really print."""

import re
import subprocess
import sys


from conftest import DEADLINE, REPO, hvdrun_path, skip_without

README = (REPO / "README.md").read_text()


def shown(block):
    """The lines of a marked console block, without the command."""
    found = re.search(rf"<!-- readme-test: {block} -->\n```console\n\$ ([^\n]*)\n(.*?)```", README, re.S)
    assert found, f"README.md has no block marked {block}"
    return found.group(2).splitlines()


def normal(line):
    """Numbers and host names differ from run to run; everything else may not."""
    line = re.sub(r"on host \S+", "on host HOST", line)
    return re.sub(r"[0-9]+(\.[0-9]+)?", "#", line)


def run(*command):
    return subprocess.run([hvdrun_path(), *command], cwd=REPO, capture_output=True, text=True, timeout=DEADLINE)


def test_normal_keeps_words():
    assert normal("rank 1 on host vm: 3.5 s") == normal("rank 2 on host node7: 12 s")
    assert normal("rank 1 died") != normal("rank 1 left")


def test_quickstart_prints_what_the_readme_shows():
    skip_without("torch")
    skip_without("sklearn")
    lines = shown("quickstart")
    example = re.search(r"build/bin/hvdrun (.*)$", lines[0]).group(1)
    script = (REPO / "scripts" / "quickstart.sh").read_text()
    assert lines[0].split("] ", 1)[1] in script and f"build/bin/hvdrun {example}" in script
    assert re.sub(r"[0-9]+ s$", "$((SECONDS - start)) s", lines[-1].split("] ", 1)[1]) in script
    done = run(*example.replace("/usr/bin/python3", sys.executable).split())
    assert done.returncode == 0, done.stderr
    assert [normal(line) for line in done.stdout.splitlines()] == [normal(line) for line in lines[1:-1]]
    accuracy = float(re.search(r"accuracy ([0-9.]+) %", done.stdout.splitlines()[-1]).group(1))
    assert accuracy >= 95


def test_test_script_prints_what_the_readme_shows():
    script = (REPO / "scripts" / "test.sh").read_text()
    for line in shown("tests"):
        assert f'say "{line.split("] ", 1)[1]}"' in script


def test_a_death_prints_what_the_readme_shows(tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, signal\n"
        "from horovod.common.basics import HorovodBasics\n"
        "hvd = HorovodBasics()\n"
        "hvd.init()\n"
        "if hvd.rank() == 1:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "signal.pause()\n"
    )
    done = run("-np", "3", sys.executable, str(worker))
    assert done.returncode == 128 + 9
    lines = shown("death")
    assert [normal(line) for line in done.stderr.splitlines()[-len(lines):]] == [normal(line) for line in lines]
