"""Output that cannot be written: limits of files, readers that do not read or have left, full disks, closed descriptors."""

import os
import pty
import resource
import signal
import subprocess
import threading
import time

import pytest
from conftest import DEADLINE, read_some, read_until, wait_for_standstill, wait_until, worker
from slowness import scaled

FULL = "No space left on device"
SUCCESS = ["sh", "-c", "echo out; echo err >&2"]


def limit_of_files(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


# ---- a limit of file sizes


def test_a_limit_of_file_sizes_is_said_and_kills_nobody(start, tmp_path):
    """`ulimit -f` sends SIGXFSZ to a process that writes beyond it, unless that looks at its errors itself."""
    with open(tmp_path / "out", "wb") as out:
        job = start("-np", 2, "sh", "-c", "seq 20000; echo kept >&2", stdout=out, preexec_fn=limit_of_files(65536))
        code = job.finish()
    assert code == 1, (code, job.err)
    assert "hvdrun: stdout cannot be written: File too large" in job.err, job.err
    assert job.err.count("<stderr>:kept\n") == 2, "the job went on"
    assert (tmp_path / "out").stat().st_size == 65536
    job.nothing_left()


def test_agents_and_wardens_live_with_it_too(run):
    """The page of a job and the segment of its tensors are files for the kernel; a limit that they do not fit is said."""
    job = run("-np", 2, *worker("link_worker.py", "join", "alloc=100000", "goodbye"), preexec_fn=limit_of_files(1024))
    assert (job.code, job.err) == (0, ""), "the worker tells what hvd.init() would raise, and ends well"
    told = [line for line in job.out.splitlines() if "]<stdout>:broken" in line]
    assert len(told) == 2 and all("File too large" in line and "ulimit -f" in line for line in told), job.out
    job.nothing_left()


def test_a_rank_that_dies_of_it_is_explained(run, tmp_path):
    """Ranks get the usual disposition of the signal, whatever hvdrun has."""
    job = run("-np", 1, "sh", "-c", f"ulimit -f 1; exec head -c 100000 /dev/zero > {tmp_path}/big")
    assert job.code == 128 + signal.SIGXFSZ, (job.code, job.err)
    assert "signal 25 (SIGXFSZ): it wrote a file larger than its limit allows (ulimit -f)" in job.err


def test_files_of_ranks_that_reach_the_limit_are_said_once(run, tmp_path):
    job = run("-np", 2, "--output-filename", tmp_path, "sh", "-c", "seq 20000; echo kept >&2", preexec_fn=limit_of_files(65536))
    assert job.code == 0, (job.code, job.err)
    assert len(job.out.splitlines()) == 40000
    assert job.err.count("File too large") == 1 and "/stdout" in job.err
    assert (tmp_path / "rank.0" / "stderr").read_bytes() == b"kept\n"
    assert (tmp_path / "rank.0" / "stdout").stat().st_size == 65536


# ---- a reader that does not read


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
def test_one_signal_ends_it_though_nobody_reads(start, number):
    job = start("-np", 2, "--terminate-grace", "1", "sh", "-c", "seq 10000000")
    read_some(job.process.stdout, 100)
    wait_for_standstill(job)
    began = time.monotonic()
    job.process.send_signal(number)
    assert job.process.wait(DEADLINE) == 128 + number
    assert time.monotonic() - began < scaled(20), "the graces are 1 s and 3 s"
    err = job.process.stderr.read().decode()
    assert f"hvdrun: ended by signal {int(number)}" in err, err
    assert "hvdrun: nobody reads stdout, so the last of the output is lost: " in err, err
    job.nothing_left()


def test_neither_stdout_nor_stderr_is_read(start):
    job = start("-np", 2, "--terminate-grace", "1", "sh", "-c", "seq 10000000 & seq 10000000 >&2")
    wait_for_standstill(job)
    job.process.terminate()
    assert job.process.wait(DEADLINE) == 128 + signal.SIGTERM
    job.nothing_left()


def test_a_stopped_terminal_does_not_hold_it(start):
    """Ctrl-S, and then the end: a terminal takes nothing while it is stopped."""
    leader, follower = pty.openpty()
    job = start("-np", 1, "--terminate-grace", "1", "sh", "-c", "seq 10000000", stdin=follower, stdout=follower, stderr=follower)
    read_some(leader, 100)
    os.write(leader, b"\x13")
    wait_for_standstill(job)
    job.process.terminate()
    assert job.process.wait(DEADLINE) == 128 + signal.SIGTERM
    job.nothing_left()
    os.close(leader)
    os.close(follower)


def test_a_timeout_does_not_wait_for_a_reader(start):
    job = start("-np", 2, "--timeout", "1", "--terminate-grace", "1", "sh", "-c", "seq 10000000")
    assert job.process.wait(DEADLINE) == 124
    assert "is lost" in job.process.stderr.read().decode()
    job.nothing_left()


def test_a_job_that_ended_waits_for_its_reader(start):
    """A pager is read when somebody has the time."""
    job = start("-np", 1, "sh", "-c", "seq 30000; exit 3")
    wait_until("the end of the worker", lambda: len(job.processes()) == 1)
    time.sleep(6)  # longer than the graces
    assert job.process.poll() is None
    assert job.finish() == 3
    assert job.out.endswith("[0]<stdout>:30000\n")


def test_what_was_printed_before_the_signal_is_whole_where_it_is_read(start):
    job = start("-np", 2, "sh", "-c", "seq 30000; echo all; sleep 600")
    seen = read_until(job.process.stdout, "all\n", 2)
    job.process.terminate()
    assert job.finish() == 143
    assert seen.count(b"\n") == 60002 and "lost" not in job.err


# ---- stdout that takes nothing


@pytest.mark.parametrize("fold", [[], ["--fold"]], ids=["plain", "fold"])
def test_a_full_disk_is_not_success(run, fold):
    with open("/dev/full", "wb") as full:
        job = run("-np", 2, *fold, *SUCCESS, stdout=full)
    assert job.code == 1
    assert f"hvdrun: stdout cannot be written: {FULL}" in job.err and "<stderr>:err" in job.err
    assert len([line for line in job.err.splitlines() if line.startswith("hvdrun:")]) == 1


def test_nor_is_a_full_stderr(run):
    with open("/dev/full", "wb") as full:
        job = run("-np", 2, *SUCCESS, stderr=full)
    assert job.code == 1 and job.out.count("out\n") == 2


def test_a_closed_stdout_is_a_failure_only_where_something_was_printed(run):
    closed = lambda: os.close(1)
    job = run("-np", 2, *SUCCESS, stdout=None, preexec_fn=closed)
    assert job.code == 1 and "hvdrun: stdout cannot be written: Bad file descriptor" in job.err
    assert run("-np", 2, "true", stdout=None, preexec_fn=closed).code == 0
    job = run("-np", 2, *SUCCESS, stderr=None, preexec_fn=lambda: os.close(2))
    assert job.code == 0, "a closed stderr is a wish"


def test_the_code_of_a_job_that_failed_wins(run):
    with open("/dev/full", "wb") as full:
        job = run("-np", 2, "sh", "-c", "echo out; exit $((RANK + 3))", stdout=full)
    assert job.code in (3, 4) and FULL in job.err


def test_a_reader_that_left_gives_the_code_of_a_broken_pipe(start):
    """As with any other program under `| head` and `pipefail`; but hours of work do not end with a pager."""
    job = start("-np", 2, "sh", "-c", "seq 100000; echo at the end >&2")
    read_some(job.process.stdout, 100)
    job.process.stdout.close()
    job.process.stdout = None
    _, err = job.process.communicate(timeout=DEADLINE)
    assert job.process.returncode == 141
    assert err.count(b"<stderr>:at the end\n") == 2
    told = [line for line in err.decode().splitlines() if line.startswith("hvdrun:")]
    assert len(told) == 1 and "the reader of stdout has gone" in told[0] and "the job goes on" in told[0], told


def test_it_is_said_when_it_happens(start, tmp_path):
    """The shell's prompt does not come back: the reason is on the screen."""
    job = start("-np", 1, "sh", "-c", f"while ! [ -e {tmp_path}/go ]; do echo x; sleep 0.05; done")
    read_some(job.process.stdout, 10)
    job.process.stdout.close()
    job.process.stdout = None
    read_until(job.process.stderr, "has gone")
    (tmp_path / "go").touch()
    job.process.communicate(timeout=DEADLINE)
    assert job.process.returncode == 141


def test_head_and_the_shell(tmp_path):
    from conftest import hvdrun_path

    script = f"set -o pipefail; {hvdrun_path()} -np 1 sh -c 'seq 100000' | head -n 1; echo $?"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=DEADLINE)
    assert done.stdout == "[0]<stdout>:1\n141\n", done


def test_texts_that_cannot_be_printed(run):
    with open("/dev/full", "wb") as full:
        job = run("--help", stdout=full)
    assert job.code == 1 and FULL in job.err
    job = run("--version", stdout=None, preexec_fn=lambda: os.close(1))
    assert job.code == 1 and "Bad file descriptor" in job.err


# ---- reports without room


def test_a_report_without_room_is_said_and_is_no_half_file(run, tmp_path):
    flags = ["--timeline", tmp_path / "t.json", "--dump-on-failure", tmp_path / "d.json"]
    job = run("-np", 1, *flags, "sh", "-c", "exit 3", preexec_fn=limit_of_files(65536))
    assert job.code == 3, job.err
    timeline, dump = [line for line in job.err.splitlines() if "cannot be written" in line]
    assert "t.json cannot be written: File too large; the job goes on without it" in timeline, job.err
    assert dump.endswith("d.json cannot be written: File too large"), "it has failed by then: " + job.err
    assert list(tmp_path.iterdir()) == []
