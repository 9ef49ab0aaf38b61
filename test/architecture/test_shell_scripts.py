"""Shell scripts: shellcheck has nothing to say of them, and the one that hvdrun carries is the one that people read."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REMOTE_INSTALL = ROOT / "launcher/channels/bundle/remote_install.sh"
EMBED = ROOT / "launcher/channels/bundle/embed_script.cmake"


def shell_scripts():
    built = lambda path: path.relative_to(ROOT).parts[0].startswith(("build", ".git", ".cache"))
    return sorted(path for path in ROOT.rglob("*.sh") if not built(path)) + [ROOT / ".ci/run"]


def shellcheck(*arguments):
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed: apt-get install shellcheck")
    return subprocess.run(["shellcheck", "--external-sources", "--source-path=SCRIPTDIR", *arguments],
                          capture_output=True, text=True, timeout=120)


def embedded(script, folder):
    output = folder / "script.inc"
    done = subprocess.run(["cmake", f"-DSCRIPT={script}", f"-DOUTPUT={output}", "-P", EMBED],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return re.fullmatch(r'R"sh\((.*)\)sh"\n', output.read_text(), re.S).group(1)


def as_bash_reads_it(text):
    """The program without its comments and its layout; line breaks and semicolons are the same."""
    done = subprocess.run(["bash"], input="f() {\n" + text + "\n}; declare -f f", capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    return re.sub(r"[ \t]+", " ", re.sub(r"\s*[;\n][;\s]*", ";", done.stdout))


def test_shellcheck_has_no_finding():
    scripts = shell_scripts()
    assert REMOTE_INSTALL in scripts and len(scripts) > 8
    done = shellcheck(*scripts)
    assert done.returncode == 0, done.stdout + done.stderr


def test_shellcheck_has_findings_of_a_bad_script(tmp_path):
    (tmp_path / "bad.sh").write_text("#!/bin/sh\nrm -rf $1/*\n")
    assert "SC2086" in shellcheck(tmp_path / "bad.sh").stdout


def test_the_embedded_script_is_the_readable_one_on_one_line(tmp_path):
    line = embedded(REMOTE_INSTALL, tmp_path)
    assert "\n" not in line
    assert as_bash_reads_it(line) == as_bash_reads_it(REMOTE_INSTALL.read_text())


def test_a_line_break_that_is_lost_is_noticed(tmp_path):
    line = embedded(REMOTE_INSTALL, tmp_path)
    changed = line.replace("set -f; ", "set -f ", 1)
    assert changed != line and as_bash_reads_it(changed) != as_bash_reads_it(line)


@pytest.mark.parametrize("code", ['echo "done!"', "echo 'x'", "echo \\\\"])
def test_what_a_login_shell_would_change_is_refused(tmp_path, code):
    (tmp_path / "a.sh").write_text("#!/bin/sh\n# It isn't code!\n" + code + "\n")
    done = subprocess.run(["cmake", f"-DSCRIPT={tmp_path}/a.sh", f"-DOUTPUT={tmp_path}/a.inc", "-P", EMBED],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "not every login shell" in done.stderr
