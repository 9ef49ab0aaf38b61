"""Detached jobs where something around them is broken: full disks, damaged folders, small limits, readers that stop, jumping clocks,
and Ctrl-C before the job has a name."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import DEADLINE, REPO, hvdrun_path, is_alive, is_full, kill, wait_until
from test_detached_jobs import counting, detached, lines_of, until  # noqa: F401

needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
needs_other_user = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"),
                                      reason="needs root and setpriv for another user")


def fill(path):
    """Leaves no byte on the file system of `path`."""
    with open(path, "wb", buffering=0) as file:
        with pytest.raises(OSError):
            while True:
                file.write(b"x" * 4096)


@needs_mount
@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_kept_on_a_full_disk_after_the_keeper_was_killed(detached, tmp_path, code):
    detached.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", detached.state], check=True)
    try:
        name = detached.begin("--output-filename", tmp_path / "ranks", "-np", 1, "sh", "-c",
                              f"{until(tmp_path / 'go')}; exit {code}")
        keeper = detached.keeper(name)
        os.kill(keeper, signal.SIGKILL)
        wait_until("its end", lambda: not is_alive(keeper))
        assert detached.run("status", name).returncode == 0, "the next verb takes over"
        fill(detached.state / "ballast")
        (tmp_path / "go").write_text("")
        attached = detached.run("attach", name)
        assert attached.returncode == code, attached
        assert "killed" not in attached.stderr
    finally:
        subprocess.run(["umount", "-l", detached.state], check=True)


def test_output_after_the_death_of_the_keeper_is_kept_although_no_verb_was_called(detached, tmp_path):
    name = detached.begin("-np", 1, "sh", "-c", f"echo up; {until(tmp_path / 'go')}; echo down; exit 5")
    kill(detached.keeper(name))
    driver = detached.driver(name)
    (tmp_path / "go").write_text("")
    wait_until("the end of hvdrun", lambda: not is_alive(driver))
    attached = detached.run("attach", name)
    assert attached.returncode == 5 and "missing" not in attached.stderr, attached
    assert lines_of(detached.text(name).replace("up", "line 1").replace("down", "line 2")) == [1, 2], detached.text(name)


@needs_mount
def test_verbs_work_on_a_full_disk_after_the_keeper_was_killed(detached, tmp_path):
    """No file can be created any more."""
    detached.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k,nr_inodes=40", "none", detached.state], check=True)
    try:
        name = detached.begin("--output-filename", tmp_path / "ranks", "-np", 1, "sh", "-c", "echo up; exec sleep 600")
        wait_until("its output", lambda: "up" in detached.text(name))
        keeper = detached.keeper(name)
        os.kill(keeper, signal.SIGKILL)
        wait_until("its end", lambda: not is_alive(keeper))
        with pytest.raises(OSError):
            for number in range(100):
                (detached.state / f"file{number}").write_text("")
        assert "up" in detached.text(name)
        assert detached.run("status", name).returncode == 0
        assert detached.run("stop", name).returncode == 0
        assert detached.run("attach", name).returncode == 130
    finally:
        subprocess.run(["umount", "-l", detached.state], check=True)


@needs_mount
def test_the_newest_output_is_kept_on_a_full_disk_while_a_reader_is_attached(detached, tmp_path):
    """It has the oldest files open, whose room is needed. What is not there is counted."""
    detached.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", detached.state], check=True)
    try:
        name = detached.begin("--output-filename", tmp_path / "ranks", "--detached-output-limit", "10MB", "-np", 1,
                              *counting(100000, f"[ $i -lt 100000 ] || {until(tmp_path / 'go')}"))
        reader, writer = os.pipe()
        attached = detached.popen("attach", name, stdout=writer)  # nothing is read
        os.close(writer)
        wait_until("the last lines", lambda: 100000 in lines_of(detached.text(name)))
        (tmp_path / "go").write_text("")
        detached.await_end(name)
        os.close(reader)
        attached.wait(timeout=DEADLINE)
        text = detached.text(name)
        lost = sum(map(int, re.findall(r"^hvdrun: (\d+) lines? of older output", text, re.M)))
        assert len(lines_of(text)) + lost == 100000 and 100000 in lines_of(text), (lost, text[-500:])
    finally:
        subprocess.run(["umount", "-l", detached.state], check=True)


@needs_mount
@pytest.mark.parametrize("options", [f"size=600k,nr_inodes={inodes}" for inodes in range(4, 12)] +
                         [f"size={kilobytes}k" for kilobytes in (4, 12, 16, 20)])
def test_where_the_job_cannot_be_recorded_none_runs(detached, tmp_path, options):
    """It runs and is listed, or the command says why not and nothing is left."""
    detached.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", detached.state], check=True)
    try:
        done = detached.run("--detach", "--output-filename", tmp_path / "ranks", "--error-file", tmp_path / "error", "-np", 1,
                            "sleep", 600)
        if done.returncode == 0:
            assert [job["state"] for job in json.loads(detached.run("ps", "--json").stdout)] == ["running"]
            assert detached.run("stop", "sleep-1").returncode == 0
            assert detached.run("attach", "sleep-1").returncode == 130
        else:
            assert "No space left on device" in done.stderr and "damaged" not in done.stderr, done
            wait_until("nothing runs", lambda: not detached.processes())
            assert not list(detached.state.glob("hvdrun/jobs/*"))
    finally:
        subprocess.run(["umount", "-l", detached.state], check=True)


@pytest.mark.parametrize("verb", ["attach", "logs"])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_reader_that_stops_reading_does_not_hold_ctrl_c(detached, tmp_path, verb, sent):
    """hvdrun attach train-1 | less."""
    name = detached.begin("-np", 1, "sh", "-c", f"{until(tmp_path / 'go')}; i=0; while :; do i=$((i+1)); echo line $i; done")
    (tmp_path / "go").write_text("")
    reader, writer = os.pipe()
    watching = detached.popen(verb, *(["-f"] if verb == "logs" else []), name, stdout=writer)
    wait_until("the pipe is full", lambda: is_full(writer))
    os.close(writer)
    watching.send_signal(sent)
    try:
        code = watching.wait(timeout=10)
    except subprocess.TimeoutExpired:
        watching.kill()
        pytest.fail(f"hvdrun {verb} does not end")
    assert code == (130 if verb == "attach" else -sent)
    if verb == "attach":
        text = b""
        while piece := os.read(reader, 65536):
            text += piece
        detached.run("stop", name)
        rest = detached.run("attach", name).stdout
        shown = lines_of(text.decode() + rest)
        assert shown == list(range(shown[0], shown[0] + len(shown))), "what was shown is not shown again"
    os.close(reader)


def test_attach_into_a_reader_that_leaves_loses_no_line(detached):
    """hvdrun attach train-1 | head: what the pipe took counts as shown, and nothing after it."""
    name = detached.begin("-np", 1, *counting(60000))
    detached.await_end(name)
    text, taken = detached.text(name), b""
    for part in range(3):
        reader, writer = os.pipe()
        attached = detached.popen("attach", name, stdout=writer)
        os.close(writer)
        while len(taken) < 90000 * (part + 1):
            taken += os.read(reader, 100)
        attached.send_signal(signal.SIGINT)
        assert attached.wait(timeout=DEADLINE) == 130
        while piece := os.read(reader, 65536):
            taken += piece
        os.close(reader)
    rest = detached.run("attach", name).stdout
    assert text.endswith(taken.decode() + rest) and taken


def test_logs_of_a_job_that_prints_all_the_time_ends(detached, tmp_path):
    """The reader is slower than the job."""
    name = detached.begin("-np", 1, "sh", "-c", "yes line")
    wait_until("output", lambda: any(file.stat().st_size for file in detached.folder(name).glob("output.*")))
    reader, writer = os.pipe()
    logs = detached.popen("logs", name, stdout=writer)
    os.close(writer)
    limit, got = time.monotonic() + 20, 0
    while piece := os.read(reader, 4096):
        got += len(piece)
        time.sleep(0.002 if got < 4 << 20 else 0)
        if time.monotonic() > limit:
            logs.kill()
            pytest.fail(f"it goes on: {got} bytes")
    os.close(reader)
    assert logs.wait(timeout=DEADLINE) == 0 and got > 0


def test_since_accepts_any_number_of_days(detached):
    name = detached.begin("-np", 1, "echo", "here")
    detached.await_end(name)
    for since in ("40000d", "999999d", "4000000000d", "1000000h"):
        assert detached.text(name, "--since", since) == detached.text(name), since


def test_a_job_while_the_clock_is_set_back(detached, tmp_path):
    """An hour back: entries of the old time are an hour ahead of the new one."""
    library = tmp_path / "clock.so"
    source = REPO / "test" / "chaos" / "wall_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    ahead = tmp_path / "ahead"
    ahead.write_text("3600")
    detached.env |= {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(ahead)}
    name = detached.begin("-np", 1, "sh", "-c", f"echo first; {until(tmp_path / 'go')}; echo second; exec sleep 600")
    wait_until("the first line", lambda: "first" in detached.text(name))
    ahead.write_text("0")
    time.sleep(2.5)
    (tmp_path / "go").write_text("")
    wait_until("the second line", lambda: "second" in detached.text(name))
    assert "second" in detached.text(name, "--since", "1m")
    assert re.search("for 0:00:", detached.run("status", name).stdout)


@pytest.mark.parametrize("damage", ["empty folder", "empty", "cut", "garbage", "no folder"])
def test_a_damaged_job_is_named_and_can_be_forgotten(detached, damage):
    name = detached.begin("-np", 1, "true")
    detached.await_end(name)
    folder = detached.folder(name)
    file = folder / "job"
    if damage == "empty folder":
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        os.utime(folder, (0, 0))  # no job that is just being started
    elif damage == "no folder":
        shutil.rmtree(folder)
        folder.write_text("no folder")
    else:
        file.write_bytes({"empty": b"", "cut": file.read_bytes()[:40], "garbage": bytes(range(256))}[damage])
    good = detached.begin("-np", 1, "sleep", 600)
    assert [job["name"] for job in json.loads(detached.run("ps", "--json").stdout)] == [good]
    assert name in detached.run("ps").stderr, "it is not silent about it"
    for verb in ("status", "logs", "attach"):
        done = detached.run(verb, name)
        assert done.returncode == 2 and name in done.stderr and "hvdrun forget" in done.stderr, done
    forgotten = detached.run("forget", name)
    assert forgotten.returncode == 0 and not folder.exists(), forgotten
    assert detached.run("ps").stderr == ""


def test_forget_all_removes_damaged_ones(detached):
    running = detached.begin("-np", 1, "sleep", 600)
    old = detached.folder(running).parent / "old-1"
    old.mkdir()
    os.utime(old, (0, 0))
    assert detached.run("forget", "--all").returncode == 0
    assert [p.name for p in detached.folder(running).parent.iterdir()] == [running]


@needs_other_user
def test_a_folder_of_another_user_among_the_jobs_is_left_alone(detached):
    good = detached.begin("-np", 1, "sleep", 600)
    foreign = detached.folder("sleep-2")
    foreign.mkdir()
    shutil.copy(detached.folder(good) / "job", foreign / "job")
    os.chown(foreign, 65534, 65534)
    done = detached.run("ps", "--json")
    assert [job["name"] for job in json.loads(done.stdout)] == [good]
    for verb in ("status", "logs", "attach", "stop", "forget"):
        done = detached.run(verb, "sleep-2")
        assert done.returncode == 2 and "another user" in done.stderr, done
    assert foreign.exists() and is_alive(detached.driver(good))
    assert detached.begin("-np", 1, "sleep", 600) == "sleep-3"


@pytest.mark.parametrize("round", range(12))
def test_ctrl_c_at_any_moment_of_the_start_ends_the_job(detached, round):
    """At the terminal: all processes of the foreground group get it. Either the name was printed and the job runs, or none does."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's would go on with the test in the child, before hvdrun is there
    pid, leader = pty.fork()
    if pid == 0:
        os.execve(hvdrun_path(), [hvdrun_path(), "--detach", "-np", "1", "sleep", "600"], detached.env)
    signal.signal(signal.SIGINT, before)
    time.sleep(0.015 * round)
    os.write(leader, b"\x03")
    shown = b""
    try:
        while piece := os.read(leader, 65536):
            shown += piece
    except OSError:
        pass
    os.close(leader)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == 0:  # a terminal drops at Ctrl-C what was not read yet, perhaps the name
        assert is_alive(detached.driver("sleep-1")), shown
        return
    assert code in (130, -signal.SIGINT), (code, shown)
    wait_until("nothing runs", lambda: not detached.processes())
    assert all((folder / "end").exists() for folder in detached.state.glob("hvdrun/jobs/*")), shown


@pytest.mark.parametrize("limit", ["-f 64", "-n 64", "-n 20"])
def test_small_limits(detached, limit):
    """ulimit: a sentence, or a job with all of its output."""
    command = f"ulimit -S {limit}; exec {hvdrun_path()} --detach -np 1 sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done'"
    started = subprocess.run(["bash", "-c", command], env=detached.env, capture_output=True, text=True, timeout=DEADLINE)
    if started.returncode != 0:
        assert "ulimit" in started.stderr or "descriptors" in started.stderr, started
        return
    attached = detached.run("attach", "sh-1")
    assert attached.returncode == 0
    assert lines_of(detached.text("sh-1")) == list(range(1, 20001))


def test_a_job_whose_machine_is_gone(detached):
    """Its home folder is shared, and the machine was given back."""
    name = detached.begin("-np", 1, "true")
    detached.await_end(name)
    (detached.folder(name) / "end").unlink()
    facts = detached.facts(name)
    facts["host"], facts["place"] = "node7", re.sub(r"[0-9a-f]{8}", "01234567", facts["place"], count=1)
    (detached.folder(name) / "job").write_text(json.dumps(facts))
    assert "node7" in detached.run("ps").stdout
    for verb in ("status", "logs", "attach", "stop", "forget"):
        done = detached.run(verb, name)
        assert done.returncode == 2 and "-H node7" in done.stderr and str(detached.folder(name)) in done.stderr, done


def test_bytes_of_any_kind_come_through(detached, tmp_path):
    payload = bytes(range(256)).replace(b"\r", b"").replace(b"\n", b"") * 3
    (tmp_path / "payload").write_bytes(payload + b"\n")
    name = detached.begin("--prefix", "", "-np", 1, "sh", "-c", f"{until(tmp_path / 'go')}; cat {tmp_path}/payload")
    (tmp_path / "go").write_text("")
    detached.await_end(name)
    raw = subprocess.run([hvdrun_path(), "logs", name], env=detached.env, capture_output=True, timeout=DEADLINE).stdout
    assert payload in raw
    status = subprocess.run([hvdrun_path(), "status", name], env=detached.env, capture_output=True, timeout=DEADLINE)
    assert status.returncode == 0 and b"\x1b" not in status.stdout
    json.loads(detached.run("status", name, "--json").stdout)


@pytest.mark.parametrize("command, name", [("./-x.py", "x-1"), ("../a b/c d.py", "c-d-1"), ("\x1b[31m.sh", "31m-sh-1"),
                                           ("äöü", "job-1")])
def test_names_are_plain(detached, tmp_path, command, name):
    file = tmp_path / "work" / command
    file.parent.mkdir(parents=True)
    file.parent.resolve().mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\necho here\n")
    file.chmod(0o755)
    done = detached.run("--detach", "-np", 1, "./" + command if "/" not in command else command, cwd=tmp_path / "work")
    assert done.stdout == name + "\n", done
    detached.await_end(name)
    assert "\x1b" not in detached.run("ps").stdout


def test_a_home_is_needed(detached, tmp_path):
    for gone in ("XDG_STATE_HOME", "HOME"):
        detached.env.pop(gone, None)
    detached.env.pop("XDG_RUNTIME_DIR", None)
    done = detached.run("--detach", "-np", 1, "true")
    assert done.returncode == 2 and "XDG_STATE_HOME or HOME" in done.stderr
    assert detached.run("ps").returncode == 0
    for verb in ("status", "logs", "attach", "stop", "forget"):
        done = detached.run(verb, "true-1")
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    detached.env["HOME"] = str(tmp_path / "home")
    assert detached.begin("-np", 1, "true") == "true-1"


def test_many_short_jobs_at_once(detached):
    started = [detached.popen("--detach", "-np", 1, "sh", "-c", f"echo job {number}; exit {number % 3}") for number in range(20)]
    names = {}
    for number, job in enumerate(started):
        out, err = job.communicate(timeout=DEADLINE)
        name = out.strip() or re.search(r"job (sh-\d+) failed", err).group(1)
        names[name] = number
    assert len(names) == 20
    for name, number in names.items():
        attached = detached.run("attach", name)
        assert attached.returncode == number % 3
        assert f"job {number}\n" in detached.text(name)
    assert detached.run("forget", "--all").returncode == 0
    assert not list(detached.state.glob("hvdrun/jobs/*"))
    wait_until("the end of all their processes", lambda: not detached.processes(),
               told=lambda: subprocess.run(["ps", "-eo", "pid,ppid,stat,etimes,args"], capture_output=True, text=True).stdout)
