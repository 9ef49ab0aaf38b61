"""--host-discovery-script in the programs that read it once."""

import json
import os
import subprocess
import time

import pytest
from conftest import REPO, is_alive, wait_until


@pytest.fixture
def examined(run, tmp_path):
    """examined(script): the finished hvdrun doctor that asked the script for hosts."""

    def examine(script, *args):
        path = tmp_path / "hosts.sh"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return run("doctor", "--host-discovery-script", str(path), *args)

    return examine


@pytest.mark.parametrize("first", ["exit 3", "exit 0", "echo '<html>502 Bad Gateway</html>'", "kill -9 $$"])
def test_a_job_waits_for_the_first_good_answer(run, tmp_path, first):
    script = tmp_path / "hosts.sh"
    script.write_text(f"#!/bin/sh\nif [ ! -e {tmp_path}/asked ]; then touch {tmp_path}/asked; {first}; exit; fi\necho localhost:2\n")
    script.chmod(0o755)
    job = run("-np", 2, "--host-discovery-script", script, "true")
    assert job.code == 0, job.err


@pytest.mark.parametrize("command, code", [("/no/such/script", 127), (str(REPO / "README.md"), 126)])
def test_a_script_that_cannot_be_run_ends_the_job_at_once(run, command, code):
    begin = time.monotonic()
    job = run("-np", 2, "--elastic-timeout", 600, "--host-discovery-script", command, "true")
    assert job.code == 1 and f"ended with exit code {code}" in job.err, job.err
    assert time.monotonic() - begin < 60


def test_a_script_that_never_answers_ends_the_job_after_elastic_timeout(run):
    job = run("-np", 2, "--elastic-timeout", 2, "--host-discovery-script", "echo no cluster >&2; exit 3", "true")
    assert job.code == 1 and "asked again until --elastic-timeout is over" in job.err, job.err
    assert "and said 'no cluster'" in job.err.splitlines()[-1], job.err


def test_doctor_examines_the_hosts_of_the_script(examined):
    job = examined("echo '# now'; echo localhost:3; echo 127.0.0.1:1\n", "--json")
    assert job.code == 0, job.out + job.err
    report = json.loads(job.out)
    # Two names of one machine are examined once, under the first one.
    assert [host["name"] for host in report["hosts"]][0] == "localhost", report


@pytest.mark.parametrize(
    "named, script",
    [
        ("ended with exit code 3, and said 'no such cluster'", "echo a:1; echo no such cluster >&2; exit 3\n"),
        ("line 2 ('what is this?')", "echo localhost:1; echo 'what is this?'\n"),
        ("\\x1b", "printf '\\033[31m\\n'\n"),
        ("printed more than 1048576 bytes", "exec yes localhost:1\n"),
        ("names no host now", "exit 0\n"),
    ],
)
def test_a_script_that_fails_or_lies_is_one_sentence(examined, named, script):
    job = examined(script)
    assert (job.code, job.out) == (2, ""), job.err
    assert named in job.err and job.err.count("\n") == 1, job.err


def test_what_the_script_leaves_behind_is_ended(examined, tmp_path):
    job = examined(f"sleep 600 & echo $! > {tmp_path}/child; echo localhost:1\n")
    assert job.code == 0, job.out + job.err
    child = int((tmp_path / "child").read_text())
    wait_until("the child of the script has ended", lambda: not is_alive(child))


def test_the_script_has_the_environment_and_no_stdin(examined, tmp_path, monkeypatch):
    monkeypatch.setenv("HVD_HOSTS_OF_THIS_TEST", "localhost:1")
    job = examined(f"readlink /proc/$$/fd/0 > {tmp_path}/stdin; echo $HVD_HOSTS_OF_THIS_TEST\n")
    assert job.code == 0, job.out + job.err
    assert (tmp_path / "stdin").read_text() == os.devnull + "\n"


def test_the_example_leaves_out_hosts_that_are_drained(tmp_path):
    def printed(expect=0):
        done = subprocess.run([REPO / "examples" / "elastic_hosts.sh"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == expect or expect is None and done.returncode != 0, done
        return done.stdout

    assert printed(expect=None) == ""  # no hosts.txt
    (tmp_path / "hosts.txt").write_text("# ours\nnode1:4\nnode10:4\nnode2 slots=2\n")
    assert printed() == "# ours\nnode1:4\nnode10:4\nnode2 slots=2\n"
    (tmp_path / "drained.txt").write_text("node1\nnode2\n")
    assert printed() == "# ours\nnode10:4\n"
