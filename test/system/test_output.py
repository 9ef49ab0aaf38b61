"""The output of workers: on the screen, folded, with times and colours, and in files."""

import json
import os
import pty
import re
import sys
import time

import pytest
from conftest import DEADLINE, read_some, wait_for_standstill, wait_until, worker

WRITE_BYTES = "import os,sys;d=bytes.fromhex(sys.argv[1]);os.write(1,d)"


def test_timestamps_have_the_known_form(run):
    job = run("-np", 2, "-prefix-timestamp", "sh", "-c", "echo out; echo err >&2")
    stamp = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d \d{4}"
    assert sorted(re.sub(stamp, "T", line) for line in job.out.splitlines()) == ["T[0]<stdout>:out", "T[1]<stdout>:out"]
    assert re.search(f"^{stamp}\\[1\\]<stderr>:err$", job.err, re.M)


def test_colors_only_where_wanted(run):
    job = run("-np", 2, "echo", "hi")
    assert "\x1b" not in job.out
    job = run("-np", 2, "--color", "always", "echo", "hi")
    assert sorted(job.out.splitlines()) == ["\x1b[31m[0]<stdout>:\x1b[0mhi", "\x1b[32m[1]<stdout>:\x1b[0mhi"]


def on_a_terminal(start, *args, env=None, when=None):
    """The picture of a terminal on which hvdrun runs. `when`: a text, and what to do as soon as it is shown."""
    master, slave = pty.openpty()
    job = start(*args, env=dict({"TERM": "xterm", "NO_COLOR": ""}, **(env or {})), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    while data := read_some(master):
        seen += data
        if when and when[0].encode() in seen:
            when[1]()
    os.close(master)
    assert job.process.wait(DEADLINE) == 0
    return seen.decode()


def test_colors_on_a_terminal(start):
    assert "\x1b[31m[0]<stdout>:\x1b[0mhi" in on_a_terminal(start, "-np", 1, "echo", "hi")
    assert "\x1b[31m" not in on_a_terminal(start, "-np", 1, "echo", "hi", env={"NO_COLOR": "1"})
    assert "\x1b[31m" not in on_a_terminal(start, "-np", 1, "--color", "never", "echo", "hi")


def test_what_went_wrong_is_red_and_a_warning_has_a_colour(run):
    red = "\x1b[31mhvdrun:\x1b[0m "
    plain = run("-np", 1, "false")
    assert plain.code == 1 and "\x1b" not in plain.err and plain.err.startswith("hvdrun: rank 0"), plain.err
    forced = {"FORCE_COLOR": "1"}
    failed = run("-np", 1, "false", env=forced).err
    assert failed.startswith(red + "rank 0 on host") and failed.count("\x1b") == 2, failed
    assert run("-np", 1, "echo", "hi", env=forced).out == "\x1b[31m[0]<stdout>:\x1b[0mhi\n"
    assert run("-np", "x", "true", env=forced).err.startswith(red + "-np x is not a whole number")
    warning = run("-np", 1, "--mpi-args", "a", "true", env=forced).err
    assert re.match(r"\[hvdrun \x1b\[33m[^w]*warning\x1b\[m\] --mpi-args has no effect", warning), warning
    for nowhere in ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"FORCE_COLOR": "0"}, {"FORCE_COLOR": ""}):
        assert "\x1b" not in run("-np", 1, "false", env=nowhere).err


def test_bytes_that_are_no_text_stop_nothing(run):
    """One byte that is no UTF-8, then much more than a pipe holds."""
    script = "import os;os.write(1,b'\\xff\\xfe\\x80\\n');[os.write(1,b'x'*999+b'\\n') for i in range(1000)];os.write(2,b'\\xc3\\n')"
    job = run("-np", 2, "/usr/bin/python3", "-S", "-c", script)
    assert job.code == 0
    raw = job.out.encode(errors="surrogateescape")
    for rank in range(2):
        assert b"[%d]<stdout>:\xff\xfe\x80\n" % rank in raw
        assert raw.count(b"[%d]<stdout>:x" % rank) == 1000
        assert b"[%d]<stderr>:\xc3\n" % rank in job.err.encode(errors="surrogateescape")


def test_a_grandchild_that_holds_the_pipe_holds_nobody_up(run):
    job = run("-np", 2, "sh", "-c", "[ $RANK = 1 ] || sleep 600; sleep 600 & exit 3")
    assert job.code == 3
    job.nothing_left()


def test_a_long_line_is_whole(run):
    size = 20_000_000
    job = run("-np", 1, "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x; echo; echo end")
    assert job.code == 0 and len(job.out) == size + 2 * len("[0]<stdout>:") + len("\nend\n")
    assert job.out.startswith("[0]<stdout>:xxx") and job.out.endswith("x\n[0]<stdout>:end\n")
    assert job.out.count("x") == size


def test_lines_are_whole_and_in_order(run):
    """Random partial writes of numbered lines and no newline at the end."""
    script = (
        "import os,random;r=random.Random(int(os.environ['RANK']));d=b''.join(b'%d\\n'%i for i in range(20000))[:-1]\n"
        "while d:\n n=r.randrange(1,5000);os.write(r.choice([1]),d[:n]);d=d[n:]"
    )
    job = run("-np", 4, "/usr/bin/python3", "-S", "-c", script)
    lines = job.out.split("\n")
    assert lines.pop() == ""
    for rank in range(4):
        prefix = f"[{rank}]<stdout>:"
        assert [line[len(prefix) :] for line in lines if line.startswith(prefix)] == [str(i) for i in range(20000)]
    assert len(lines) == 80000


# ---- the prefix


def test_the_prefix_is_a_template(run):
    job = run("-np", 4, "--hosts-per-machine", 2, "--prefix", "{host}/{local_rank} rank {rank} {stream}{{}}: ", "sh", "-c",
              "echo out; echo err >&2")
    assert job.code == 0, job.err
    for stream, text in (("out", job.out), ("err", job.err)):
        assert sorted(text.splitlines()) == [f"host-{r // 2}/{r % 2} rank {r} std{stream}{{}}: {stream}" for r in range(4)]
    job = run("-np", 1, "--prefix", "{time}|", "echo", "x")
    assert re.fullmatch(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d \d{4}\|x\n", job.out), job.out


def test_a_folded_line_of_many_hosts_has_a_star(run):
    job = run("-np", 2, "--hosts-per-machine", 2, "--fold", "--prefix", "{host}:{rank}:", "echo", "same")
    assert job.out in ("*:0-1:same\n", "host-0:0:same\nhost-1:1:same\n", "host-1:1:same\nhost-0:0:same\n"), job.out


@pytest.mark.parametrize("bad", ["{name}", "{rank", "rank}", "a\x1b[31m", "{" + "x" * 5000 + "}"])
def test_a_wrong_template_is_one_sentence(run, tmp_path, bad):
    job = run("-np", 1, "--prefix", bad, "touch", tmp_path / "started")
    assert job.code == 2 and len(job.err.splitlines()) == 1 and len(job.err) < 600 and "\x1b" not in job.err
    assert not (tmp_path / "started").exists()


# ---- progress bars

BARS = """
import os, time
for bar in range(2):
    for i in range(1, 2001):
        os.write(1, b"%d %d/2000\\r" % (bar, i))
    os.write(1, b"\\n" if bar == 0 else b"")
"""


def test_progress_bars_are_throttled_and_end_as_they_ended(run, tmp_path):
    job = run("-np", 2, "--output-filename", tmp_path, "/usr/bin/python3", "-S", "-E", "-c", BARS)
    assert job.code == 0, job.err
    pieces = re.findall(r"\[(\d)\]<stdout>:(\d) (\d+)/2000\r", job.out)
    for rank in "01":
        for bar in "01":
            shown = [int(number) for r, b, number in pieces if (r, b) == (rank, bar)]
            assert shown == sorted(shown) and shown[-1] == 2000 and len(shown) < 1000, shown
        everything = "".join(f"{bar} {i}/2000\r" + ("\n" if (bar, i) == (0, 2000) else "") for bar in range(2) for i in range(1, 2001))
        assert (tmp_path / f"rank.{rank}" / "stdout").read_bytes() == everything.encode(), "files have all of it"
    job = run("-np", 1, "--progress-rate", 0, "/usr/bin/python3", "-S", "-E", "-c", BARS)
    assert job.out.count("/2000\r") == 4000


def test_the_last_update_does_not_wait_for_the_next(start):
    script = "i=0; while [ $i -lt 200 ]; do printf '%d%%\\r' $i; i=$((i + 1)); done; sleep 600"
    job = start("-np", 1, "--progress-rate", 5, "sh", "-c", script)
    seen = b""
    while b":199%\r" not in seen:
        seen += read_some(job.process.stdout)
    assert seen.count(b"\r") < 200
    job.process.terminate()
    job.finish()


# ---- a start that takes time


def test_a_slow_start_shows_progress_on_a_terminal(start, tmp_path):
    line = "\r\x1b[Khvdrun: starting: workers started 2/2, in init 0/2"
    script = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done; [ $RANK = 1 ] || echo out"
    shown = on_a_terminal(start, "-np", 2, "sh", "-c", script, when=(line, (tmp_path / "go").touch))
    assert shown.split(line)[-1] == "\r\x1b[K\x1b[31m[0]<stdout>:\x1b[0mout\r\n"


def test_the_progress_line_says_who_is_missing(start, tmp_path):
    steps = [f"0:wait-file={tmp_path}/go", f"2:wait-file={tmp_path}/go", "join", "goodbye"]
    line = "workers started 4/4, in init 2/4, not yet: ranks 0,2"
    shown = on_a_terminal(start, "-np", 4, *worker("link_worker.py", *steps), when=(line, (tmp_path / "go").touch))
    assert line in shown and shown.count("generation 1") == 4


def test_no_progress_without_a_terminal(run):
    assert run("-np", 1, "sleep", "1").err == ""


# ---- files


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_files_of_one_rank(run, tmp_path):
    job = run("-np", 1, "--output-filename", tmp_path / "logs" / "deep", "sh", "-c", "echo out; printf err >&2")
    assert job.code == 0
    assert files_of(tmp_path / "logs" / "deep") == {"rank.0/stdout": b"out\n", "rank.0/stderr": b"err"}
    assert job.out == "[0]<stdout>:out\n" and job.err == "[0]<stderr>:err\n"


def test_file_names_are_padded_and_hold_no_prefix(run, tmp_path):
    (tmp_path / "rank.03").mkdir()
    (tmp_path / "rank.03" / "stdout").write_text("of the job before\n" * 100)
    job = run("-np", 11, "-prefix-timestamp", "--output-filename", tmp_path, "sh", "-c", "echo $RANK")
    assert job.code == 0 and len(job.out.splitlines()) == 11
    expected = {f"rank.{rank:02}/stdout": b"%d\n" % rank for rank in range(11)}
    assert files_of(tmp_path) == {**expected, **{f"rank.{rank:02}/stderr": b"" for rank in range(11)}}


def test_files_have_the_same_bytes(run, tmp_path):
    data = os.urandom(3_000_000)
    (tmp_path / "data").write_bytes(data)
    job = run("-np", 2, "--output-filename", tmp_path / "logs", "--fold", "cat", tmp_path / "data", stdout=open(os.devnull, "w"))
    assert job.code == 0
    for rank in range(2):
        assert (tmp_path / "logs" / f"rank.{rank}" / "stdout").read_bytes() == data


def test_files_are_kept_when_hvdrun_is_killed(start, tmp_path):
    job = start("-np", 1, "--output-filename", tmp_path, "sh", "-c", "echo before; sleep 600")
    wait_until("the line", lambda: (tmp_path / "rank.0" / "stdout").exists() and (tmp_path / "rank.0" / "stdout").read_bytes())
    job.process.kill()
    job.nothing_left()
    assert (tmp_path / "rank.0" / "stdout").read_bytes() == b"before\n"


def test_files_are_rotated_at_line_ends(run, tmp_path):
    (tmp_path / "rank.0").mkdir()
    (tmp_path / "rank.0" / "stderr.1").write_text("of the job before")
    job = run("-np", 2, "--output-filename", tmp_path, "--output-limit", "100kB", "seq", 100000, stdout=open(os.devnull, "w"))
    assert job.code == 0, job.err
    for rank in range(2):
        folder = tmp_path / f"rank.{rank}"
        newest, older = (folder / "stdout").read_text(), (folder / "stdout.1").read_text()
        assert 0 < len(newest) <= 102400 and 0 < len(older) <= 102400
        numbers = [int(line) for line in (older + newest).splitlines()]
        assert numbers == list(range(numbers[0], 100001)) and newest.endswith("100000\n")
    assert not (tmp_path / "rank.0" / "stderr.1").exists()


def test_files_that_cannot_be_made_are_an_error(run, tmp_path):
    (tmp_path / "file").write_text("")
    job = run("-np", 1, "--output-filename", tmp_path / "file", "touch", tmp_path / "started")
    assert job.code == 2 and str(tmp_path / "file") in job.err and len(job.err.splitlines()) == 1
    assert not (tmp_path / "started").exists()


# ---- folded


def test_equal_lines_are_folded(run):
    job = run("-np", 4, "--fold", "sh", "-c", 'echo same; [ $RANK = 1 ] || echo odd; [ $RANK != 2 ] || echo "mine"; echo e >&2')
    lines = job.out.splitlines()
    assert "[0-3]<stdout>:same" in lines and "[0,2-3]<stdout>:odd" in lines and "[2]<stdout>:mine" in lines
    assert len(lines) == 3 and "[0-3]<stderr>:e" in job.err


def test_folded_counts_match(run):
    count = 5000
    job = run("-np", 4, "--fold", "seq", count)
    seen = [0] * 4
    for line in job.out.splitlines():
        label, _, number = line[1:].partition("]<stdout>:")
        for part in label.split(","):
            first, _, last = part.partition("-")
            for rank in range(int(first), int(last or first) + 1):
                seen[rank] += 1
                assert seen[rank] == int(number)
    assert seen == [count] * 4


def test_folded_output_is_live(start):
    job = start("-np", 3, "--fold", "sh", "-c", "[ $RANK = 0 ] || sleep 600; echo now; sleep 600")
    assert read_some(job.process.stdout, 100) == b"[0]<stdout>:now\n"  # long before the other two ranks end
    job.process.terminate()
    job.finish()


# ---- slow readers


def test_a_reader_that_stops_holds_up_workers_but_no_signal(start):
    """hvdrun | less: nothing is read for longer than a heartbeat takes, then the job is ended."""
    job = start("-np", 2, "sh", "-c", "seq 10000000")
    read_some(job.process.stdout, 100)
    wait_for_standstill(job)
    time.sleep(3)  # longer than the time between heartbeats
    assert job.process.poll() is None
    job.process.terminate()
    wait_until("the end of the workers", lambda: len(job.processes()) <= 3)  # hvdrun, warden, agent
    job.finish()
    job.nothing_left()


def test_a_rank_that_floods_stderr_blocks_nobody(run):
    script = "[ $RANK = 0 ] && { head -c 30000000 /dev/zero | tr '\\0' x >&2; exit 0; }; seq 1000"
    job = run("-np", 2, "sh", "-c", script)
    assert job.code == 0 and job.err.count("x") == 30_000_000
    assert job.out.count("[1]<stdout>:") == 1000


@pytest.mark.skipif(not os.environ.get("HVD_SOAK"), reason="set HVD_SOAK=1")
def test_a_line_of_200_MB(start):
    size = 200_000_000
    job = start("-np", 1, "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x")
    total = 0
    while data := read_some(job.process.stdout, 1 << 20):
        total += data.count(b"x")
    assert total == size and job.finish() == 0


LONG_LINES = """
import os, sys
rank = os.environ["HOROVOD_RANK"]
for number in range(20):
    sys.stdout.write('{"rank": %s, "number": %d, "x": "%s"}\\n' % (rank, number, rank * 200_000))
    sys.stdout.flush()
"""


def test_long_lines_of_several_ranks_are_not_torn(run):
    job = run("-np", 4, sys.executable, "-S", "-E", "-c", LONG_LINES)
    assert job.code == 0, job.err
    found = []
    for line in job.out.splitlines():
        rank, _, text = line[1:].partition("]<stdout>:")
        record = json.loads(text)
        assert record["rank"] == int(rank) and record["x"] == rank * 200_000
        found.append((record["rank"], record["number"]))
    assert sorted(found) == [(rank, number) for rank in range(4) for number in range(20)]


def test_a_line_without_an_end_does_not_starve_others(start):
    """Rank 0 writes one line for ever; rank 1 is shown all the same."""
    job = start("-np", 2, "sh", "-c", "if [ $HOROVOD_RANK = 0 ]; then while printf %020000d 0; do :; done; else sleep 0.5; echo here; sleep 600; fi")
    seen = b""
    while b"[1]<stdout>:here\n" not in seen[-200_000:]:
        seen = seen[-200_000:] + read_some(job.process.stdout)
    job.process.terminate()
    while read_some(job.process.stdout):
        pass
