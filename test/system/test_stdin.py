"""Input that is typed or piped into hvdrun reaches the workers that are to read it."""

import hashlib
import os
import pty
import subprocess
import time

import pytest
from conftest import read_some, wait_until

PIPE = {"stdin": subprocess.PIPE}
SUM = "import sys,hashlib;print(hashlib.md5(sys.stdin.buffer.read()).hexdigest())"


def finish_with(job, data):
    out, err = job.process.communicate(data, timeout=60)
    job.out, job.err = out.decode(), err.decode()
    return job.process.returncode


def test_rank_0_reads_it_and_the_others_see_none(start):
    job = start("-np", 3, "sh", "-c", "echo $RANK: $(cat)", **PIPE)
    assert finish_with(job, b"typed\nlines\n") == 0
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:0: typed lines", "[1]<stdout>:1:", "[2]<stdout>:2:"]


@pytest.mark.parametrize("to, readers", [("rank0", [0]), ("all", [0, 1, 2]), ("none", [])])
def test_who_reads_it(start, to, readers):
    job = start("-np", 3, "--stdin", to, "sh", "-c", "echo $RANK: $(cat)", **PIPE)
    assert finish_with(job, b"x\n") == 0
    assert sorted(job.out.splitlines()) == [f"[{r}]<stdout>:{r}:{' x' if r in readers else ''}" for r in range(3)]


def test_megabytes_arrive_whole(start):
    data = os.urandom(8_000_000)
    job = start("-np", 2, "--stdin", "all", "/usr/bin/python3", "-S", "-c", SUM, **PIPE)
    assert finish_with(job, data) == 0
    digest = hashlib.md5(data).hexdigest()
    assert sorted(job.out.splitlines()) == [f"[0]<stdout>:{digest}", f"[1]<stdout>:{digest}"]


def test_it_is_live(start):
    job = start("-np", 2, "sh", "-c", "[ $RANK = 1 ] || while read line; do echo got $line; done", **PIPE)
    for word in ("one", "two"):
        os.write(job.process.stdin.fileno(), word.encode() + b"\n")
        assert read_some(job.process.stdout, 100) == f"[0]<stdout>:got {word}\n".encode()
    assert finish_with(job, b"") == 0


def test_a_worker_that_reads_nothing_holds_up_who_writes(start):
    job = start("-np", 1, "sleep", "600", **PIPE)
    os.set_blocking(job.process.stdin.fileno(), False)
    written, idle = 0, 0
    while idle < 50:
        try:
            written += os.write(job.process.stdin.fileno(), b"x" * 65536)
            idle = 0
        except BlockingIOError:
            idle += 1
            time.sleep(0.01)
        assert written < 2_000_000
    assert job.process.poll() is None
    job.process.terminate()
    os.close(job.process.stdin.fileno())
    job.process.stdin = None
    job.finish()
    job.nothing_left()


def test_a_worker_that_closes_it_or_ends_holds_up_nobody(start):
    job = start("-np", 2, "--stdin", "all", "sh", "-c", '[ $RANK = 1 ] && exit 0; wc -c', **PIPE)
    assert finish_with(job, b"x" * 3_000_000) == 0
    assert job.out == "[0]<stdout>:3000000\n"


@pytest.mark.parametrize("to", ["rank0", "all"])
def test_input_without_an_end_that_no_rank_reads_ends_with_the_job(start, to):
    for _ in range(6):  # it hung most times
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
            job = start("-np", 1, "--stdin", to, "sh", "-c", "exit 3", stdin=endless.stdout)
            endless.stdout.close()
            assert job.finish() == 3, job.err
            endless.kill()


def test_a_loop_of_the_shell_keeps_the_lines_that_no_rank_reads(tmp_path):
    from conftest import hvdrun_path

    (tmp_path / "lines").write_text("one\ntwo\nthree\n")
    script = f'while read word; do {hvdrun_path()} -np 2 sh -c "echo $word $RANK" ; done < {tmp_path}/lines'
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    words = [line.split(":")[1].split()[0] for line in said.stdout.splitlines()]
    assert sorted(words) == ["one", "one", "three", "three", "two", "two"], said.stdout + said.stderr


def test_rank_0_leaves_what_it_does_not_read(tmp_path):
    from conftest import hvdrun_path

    (tmp_path / "lines").write_text("one\ntwo\n")
    script = f"{hvdrun_path()} -np 1 sh -c 'read word; echo rank $word'; read word; echo shell $word"
    with open(tmp_path / "lines") as lines:
        said = subprocess.run(["sh", "-c", script], stdin=lines, capture_output=True, text=True, timeout=60)
    assert said.stdout == "[0]<stdout>:rank one\nshell two\n", said.stderr


def test_an_open_stdin_does_not_keep_a_finished_job(start):
    job = start("-np", 2, "true", **PIPE)
    wait_until("the end", lambda: job.process.poll() is not None)
    assert job.process.returncode == 0


def test_a_regular_file(start, tmp_path):
    (tmp_path / "data").write_bytes(b"y\n" * 100_000)
    with open(tmp_path / "data") as data:
        job = start("-np", 1, "wc", "-l", stdin=data)
        assert job.finish() == 0
    assert job.out == "[0]<stdout>:100000\n"


def test_a_closed_stdin(start):
    job = start("-np", 1, "cat", preexec_fn=lambda: os.close(0))
    assert job.finish() == 0 and job.out == ""


def test_a_terminal_in_the_background_stops_nothing(tmp_path):
    """A shell with job control puts hvdrun in the background of a terminal; it must not be stopped by reading it."""
    from conftest import hvdrun_path

    pid, master = pty.fork()
    if pid == 0:
        script = f"set -m; {hvdrun_path()} -np 2 sh -c 'sleep 1; echo done >> {tmp_path}/$RANK' & wait"
        os.execv("/bin/bash", ["bash", "-c", script])
    wait_until("both ranks", lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists())
    os.waitpid(pid, 0)
    os.close(master)


def test_a_terminal_in_the_foreground_is_read(tmp_path):
    from conftest import hvdrun_path

    pid, master = pty.fork()
    if pid == 0:
        os.execv(hvdrun_path(), ["hvdrun", "-np", "1", "sh", "-c", f"read line; echo $line > {tmp_path}/got"])
    os.write(master, b"typed\n")
    wait_until("the line", lambda: (tmp_path / "got").exists() and (tmp_path / "got").read_text() == "typed\n")
    os.waitpid(pid, 0)
    os.close(master)
