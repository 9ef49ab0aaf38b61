"""hvdrun --detach: a job that outlives the terminal, and the verbs that find it again."""

import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import DEADLINE, children_of, hvdrun_path, is_alive, kill, parent_of, pids, read_proc, wait_until
from elastic_job import SCRIPT

COUNT = "i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo line $i; {pause}; done; {end}"


class Detached:
    """The detached jobs of a user with this state folder."""

    def __init__(self, folder):
        self.state = folder / "state"
        self.env = dict(os.environ, XDG_STATE_HOME=str(self.state))

    def run(self, *args, **more):
        return subprocess.run([hvdrun_path(), *map(str, args)], capture_output=True, text=True, env=self.env, timeout=DEADLINE,
                              **more)

    def begin(self, *args):
        """The name of a job whose workers run."""
        done = self.run("--detach", *args)
        assert done.returncode == 0, done
        return done.stdout.strip()

    def popen(self, *args, **more):
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([hvdrun_path(), *map(str, args)], text=True, env=self.env, **more)

    def folder(self, name):
        return self.state / "hvdrun" / "jobs" / name

    def facts(self, name):
        return json.loads((self.folder(name) / "job").read_text())

    def driver(self, name):
        return self.facts(name)["pid"]

    def keeper(self, name):
        return parent_of(self.driver(name))

    def family(self, name):
        """All processes of the job that live."""
        job_id = self.facts(name)["job"].encode()
        found = [int(p) for p in os.listdir("/proc") if p.isdigit() and b"HVD_JOB_ID=" + job_id in read_proc(p, "environ")]
        return [p for p in {*found, self.driver(name)} if is_alive(p)]

    def processes(self):
        """All processes of the user's jobs that live, their keepers and standbys, too."""
        state = b"XDG_STATE_HOME=" + os.fsencode(self.state) + b"\0"
        return [p for p in pids() if state in read_proc(p, "environ") and is_alive(p)]

    def await_end(self, name):
        wait_until("the end", lambda: (self.folder(name) / "end").exists() or not self.run("status", name))
        return json.loads((self.folder(name) / "end").read_text())

    def text(self, name, *options):
        done = self.run("logs", name, *options)
        assert done.returncode == 0, done
        return done.stdout


@pytest.fixture
def detached(tmp_path):
    jobs = Detached(tmp_path)
    yield jobs

    def none_is_left():  # a standby takes a job over while the others are killed
        left = jobs.processes()
        for pid in left:
            kill(pid)
        return not left

    wait_until("the end of the test's jobs", none_is_left)


def counting(lines, pause=":", end="exit 0"):
    return ["sh", "-c", COUNT.format(lines=lines, pause=pause, end=end)]


def holds(pid, path):
    try:
        return str(path) in [os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False


def until(path):
    return f"while [ ! -e {path} ]; do sleep 0.02; done"


def lines_of(text, rank=0):
    return [int(n) for n in re.findall(rf"^\[{rank}\]<stdout>:line (\d+)$", text, re.M)]


def test_detach_prints_the_name_once_the_workers_run(detached, tmp_path):
    done = detached.run("--detach", "-np", 2, "sh", "-c", f"echo up; {until(tmp_path / 'go')}; echo down; exit 3")
    assert done.returncode == 0 and done.stdout == "sh-1\n", done
    assert "hvdrun attach sh-1" in done.stderr
    listed = json.loads(detached.run("ps", "--json").stdout)
    assert [(job["name"], job["state"]) for job in listed] == [("sh-1", "running")]
    status = detached.run("status", "sh-1").stdout
    assert "2 ranks on 1 host" in status and "up" in status
    assert json.loads(detached.run("status", "sh-1", "--json").stdout)["view"]["size"] == 2
    (tmp_path / "go").write_text("")
    attached = detached.run("attach", "sh-1")
    assert attached.returncode == 3 and "down" in attached.stdout and "exit code 3" in attached.stdout
    status = json.loads(detached.run("status", "sh-1", "--json").stdout)
    assert status["state"] == "failed" and status["end"]["exit_code"] == 3 and "exit code 3" in status["report"]
    assert not detached.family("sh-1")


@pytest.mark.parametrize("args, code, reason", [
    (["-np", 1, "nosuchprogram"], 127, "not found"), (["-np", 2, "-H", "localhost:1", "true"], 2, "slots"),
    (["-np", 1, "sh", "-c", "exit 7"], 7, "exit code 7"), (["-np", 1, "-H", "a..b:1", "true"], 1, "a..b")])
def test_a_start_that_fails_says_why(detached, args, code, reason):
    done = detached.run("--detach", *args)
    if code == 7 and done.returncode == 0:  # it was seen to run first
        assert detached.run("attach", done.stdout.strip()).returncode == 7
        return
    assert done.returncode == code and done.stdout == "" and reason in done.stderr, done


def test_usage_errors_leave_nothing(detached):
    done = detached.run("--detach", "-np", "x", "true")
    assert done.returncode == 2 and not detached.state.exists()


def test_the_command_that_detached_holds_no_pipe_open(detached, tmp_path):
    """name=$(hvdrun --detach ...) returns."""
    shell = subprocess.run(["sh", "-c", f"name=$({hvdrun_path()} --detach -np 1 sleep 600 2>&1 3>{tmp_path}/f); echo \"[$name]\""],
                           env=detached.env, capture_output=True, text=True, timeout=DEADLINE)
    assert shell.stdout.endswith("sleep-1]\n")
    for pid in (detached.driver("sleep-1"), detached.keeper("sleep-1")):
        assert str(tmp_path / "f") not in [os.readlink(p) for p in pathlib.Path(f"/proc/{pid}/fd").iterdir()]


def test_closing_the_terminal_does_not_end_it(detached, tmp_path):
    pid, leader = pty.fork()
    if pid == 0:
        os.execve(hvdrun_path(), [hvdrun_path(), "--detach", "-np", "2", "sh", "-c", f"{until(tmp_path / 'go')}; echo over"],
                  detached.env)
    wait_until("the name", lambda: b"runs detached" in os.read(leader, 4096))
    os.close(leader)
    os.waitpid(pid, 0)
    (tmp_path / "go").write_text("")
    attached = detached.run("attach", "sh-1")
    assert attached.returncode == 0 and attached.stdout.count("over") == 2


def test_attach_shows_what_came_since_it_was_left(detached, tmp_path):
    name = detached.begin("-np", 1, *counting(300, "sleep 0.01"))
    text = ""
    for number in range(5):
        file = tmp_path / str(number)
        with open(file, "wb") as out:
            attached = detached.popen("attach", name, stdout=out)
        wait_until("a line", lambda: file.stat().st_size > 0)
        attached.send_signal(signal.SIGINT)
        assert "continues" in attached.communicate(timeout=DEADLINE)[1] and attached.returncode == 130
        text += file.read_text()
    last = detached.run("attach", name)
    shown = lines_of(text + last.stdout)
    assert last.returncode == 0 and shown == list(range(shown[0], 301)), "from where the start was left, each line once"
    assert lines_of(detached.text(name)) == list(range(1, 301))
    assert detached.run("attach", name).stdout == "", "all was shown"


def on_terminal(detached, name, keys, *more):
    """What hvdrun attach prints at a terminal where Ctrl-C and then `keys` are typed; and its exit code."""
    pid, leader = pty.fork()
    if pid == 0:
        os.execve(hvdrun_path(), [hvdrun_path(), "attach", name, *more], detached.env)
    shown = b""
    while b"line 5" not in shown:
        shown += os.read(leader, 65536)
    os.write(leader, b"\x03")
    while b"[d]" not in shown:
        shown += os.read(leader, 65536)
    os.write(leader, keys)
    with pytest.raises(OSError):
        while True:
            shown += os.read(leader, 65536)
    os.close(leader)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_ctrl_c_asks_whether_to_detach_or_to_stop(detached):
    name = detached.begin("-np", 1, *counting(100000, "sleep 0.01"))
    shown, code = on_terminal(detached, name, b"d\n")
    assert code == 0 and "continues" in shown and is_alive(detached.driver(name))
    wait_until("more", lambda: "line 5" in detached.text(name))
    shown, code = on_terminal(detached, name, b"\n")
    assert code == 0 and is_alive(detached.driver(name)), "to detach is the default"
    shown, code = on_terminal(detached, name, b"s\n")
    assert code == 130 and not is_alive(detached.driver(name))


def test_stop_ends_it_and_attach_has_its_exit_code(detached):
    name = detached.begin("-np", 2, "sleep", 600)
    stopped = detached.run("stop", name)
    assert stopped.returncode == 0 and name in stopped.stdout
    assert detached.run("attach", name).returncode == 130
    assert detached.run("stop", name).returncode == 1
    wait_until("the end", lambda: not detached.family(name))


def test_logs_of_one_rank_and_since_a_time(detached, tmp_path):
    name = detached.begin("-np", 2, "sh", "-c", f"echo old of $HOROVOD_RANK; echo err >&2; {until(tmp_path / 'go')}; echo new")
    wait_until("the old lines", lambda: detached.text(name).count("old") == 2)
    time.sleep(2.2)
    (tmp_path / "go").write_text("")
    detached.await_end(name)
    one = detached.run("logs", name, "--rank", 1)
    assert one.stdout == "old of 1\nnew\n" and one.stderr == "err\n"
    assert detached.run("logs", name, "--rank", 2).returncode == 2
    new = detached.text(name, "--since", "1s") if time.time() - os.path.getmtime(detached.folder(name) / "end") < 0.5 else None
    assert new is None or ("new" in new and "old" not in new)
    assert detached.text(name, "--since", "1h") == detached.text(name)
    assert detached.run("logs", name, "--since", "never").returncode == 2
    followed = detached.run("logs", name, "-f")
    assert followed.returncode == 0 and followed.stdout == detached.text(name)


def test_kept_output_is_bounded_and_what_fell_off_is_counted(detached):
    name = detached.begin("--detached-output-limit", "64kB", "-np", 1, *counting(20000))
    detached.await_end(name)
    text = detached.text(name)
    lost = int(re.match(r"hvdrun: (\d+) lines of older output were not kept", text).group(1))
    assert lines_of(text) == list(range(lost + 1, 20001))
    kept = sum(p.stat().st_size for p in detached.folder(name).iterdir() if p.name.startswith("output."))
    assert kept < 80000


def test_forget_removes_it_and_old_ones_are_forgotten(detached):
    first = detached.begin("-np", 1, "true")
    detached.await_end(first)
    running = detached.begin("-np", 1, "sleep", 600)
    assert detached.run("forget", running).returncode == 2
    assert detached.run("forget", first).returncode == 0 and not detached.folder(first).exists()
    second = detached.begin("-np", 1, "true")
    detached.await_end(second)
    time.sleep(1.1)
    detached.begin("--detached-keep", 0, "-np", 1, "sleep", 600)
    assert not detached.folder(second).exists() and detached.folder(running).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
@pytest.mark.parametrize("full_before_the_end", [False, True])
def test_on_a_full_disk_the_job_goes_on_and_missing_lines_are_counted(detached, tmp_path, full_before_the_end):
    detached.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", detached.state], check=True)
    try:
        name = detached.begin("--output-filename", tmp_path / "ranks", "-np", 1,
                              *counting(60000, end=until(tmp_path / "go") + "; exit 3"))
        wait_until("the last line", lambda: "line 60000\n" in (tmp_path / "ranks" / "rank.0" / "stdout").read_text())
        ballast = detached.state / "ballast"
        if full_before_the_end:
            file = os.open(ballast, os.O_WRONLY | os.O_CREAT)
            with pytest.raises(OSError):
                while True:
                    os.write(file, b"x" * 4096)
            os.close(file)
        (tmp_path / "go").write_text("")
        attached = detached.run("attach", name)
        assert attached.returncode == 3
        if ballast.exists():
            ballast.unlink()
        text, expected = detached.text(name), 1
        for lost, line in re.findall(r"^(?:hvdrun: (\d+) lines? of older output|\[0\]<stdout>:line (\d+)$)", text, re.M):
            if lost:
                expected += int(lost)
            else:
                assert int(line) == expected
                expected += 1
        assert text.startswith("hvdrun: ") and 1000 < expected <= 60004, text[:300] + text[-300:]  # with the report
        assert detached.run("forget", name).returncode == 0
    finally:
        subprocess.run(["umount", "-l", detached.state], check=True)


@pytest.mark.parametrize("victim", ["hvdrun", "keeper", "both", "agent", "warden", "worker"])
def test_a_death_is_told_and_no_output_is_lost(detached, tmp_path, victim):
    name = detached.begin("-np", 2, "sh", "-c", f"echo before; {until(tmp_path / 'go')}; echo after; exit 4")
    wait_until("the first lines", lambda: detached.text(name).count("before") == 2)
    driver, keeper = detached.driver(name), detached.keeper(name)
    warden = children_of(driver)[0]
    agent = children_of(warden)[0]
    worker = children_of(agent)[0]
    for pid in {"hvdrun": [driver], "keeper": [keeper], "both": [keeper, driver], "agent": [agent], "warden": [warden],
                "worker": [worker]}[victim]:
        os.kill(pid, signal.SIGKILL)
    if victim in ("keeper", "hvdrun", "both"):
        assert detached.run("status", name).returncode == 0, "the next verb takes over, and the standby of hvdrun"
        (tmp_path / "go").write_text("")
    attached = detached.run("attach", name)
    text = detached.text(name)
    assert text.count("before") == 2
    if victim in ("keeper", "hvdrun", "both"):
        assert attached.returncode == 4 and "after" in text and "exit code 4" in text
    else:
        assert attached.returncode == (137 if victim == "worker" else 1), attached
        assert re.search("SIGKILL|killed|agent", text)
    wait_until("the end of all", lambda: not detached.family(name))


@pytest.mark.parametrize("revived", [False, True])
def test_what_a_shutdown_of_the_machine_asks_for_is_kept(detached, revived):
    """hvdrun and its keeper get SIGTERM."""
    name = detached.begin("-np", 1, "sh", "-c", "trap 'echo saved; exit 1' TERM; echo up; while :; do sleep 0.01; done")
    keepers = [detached.keeper(name)]
    if revived:
        os.kill(keepers[0], signal.SIGKILL)
        wait_until("its end", lambda: not is_alive(keepers[0]))
        assert detached.run("status", name).returncode == 0
        facts = detached.folder(name) / "lock"
        keepers = [int(p) for p in os.listdir("/proc") if p.isdigit() and holds(p, facts)]
    for pid in [*keepers, detached.driver(name)]:
        os.kill(pid, signal.SIGTERM)
    attached = detached.run("attach", name)
    assert keepers and attached.returncode == 143 and "SIGTERM" in detached.text(name), attached


def test_without_a_keeper_the_job_waits_for_the_next_verb(detached, tmp_path):
    """More than the pipe holds is printed while nobody reads it."""
    go = tmp_path / "go"
    name = detached.begin("-np", 1, "sh", "-c", f"{until(go)}; {COUNT.format(lines=300000, pause=':', end='exit 5')}")
    os.kill(detached.keeper(name), signal.SIGKILL)  # with nothing in its hands, which would be lost
    go.touch()
    attached = detached.run("attach", name)
    shown = lines_of(detached.text(name))
    assert attached.returncode == 5 and shown == list(range(1, 300001))


def test_two_at_once_have_their_own_names(detached):
    started = [detached.popen("--detach", "-np", 1, "sleep", 600) for _ in range(4)]
    names = sorted(job.communicate(timeout=DEADLINE)[0].strip() for job in started)
    assert names == ["sleep-1", "sleep-2", "sleep-3", "sleep-4"]


def test_nothing_secret_is_kept_and_all_is_private(detached):
    name = detached.begin("-np", 1, "sleep", 600)
    old = os.umask(0)
    try:
        other = detached.begin("-np", 1, "sleep", 600)
    finally:
        os.umask(old)
    for job in (name, other):
        folder = detached.folder(job)
        assert folder.stat().st_mode & 0o777 == 0o700 and folder.parent.stat().st_mode & 0o777 == 0o700
        for file in folder.iterdir():
            assert file.is_dir() or file.stat().st_mode & 0o777 == 0o600, file
            if file.is_file():
                assert not re.search(rb"[0-9a-f]{64}", file.read_bytes()), "no key"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv for another user")
def test_another_user_can_do_nothing(detached, tmp_path):
    name = detached.begin("-np", 1, "sleep", 600)
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    for words in (["status", name], ["logs", name], ["attach", name], ["stop", name], ["forget", name], ["scale", name, "3"]):
        done = subprocess.run([*other, hvdrun_path(), *words], capture_output=True, text=True, env=detached.env, timeout=DEADLINE)
        if "Permission denied" in done.stderr and done.returncode == 127:
            pytest.skip("the build is out of reach of other users")
        assert done.returncode == 2 and "sleep 600" not in done.stdout + done.stderr, done
    listed = subprocess.run([*other, hvdrun_path(), "ps", "--json"], capture_output=True, text=True, env=detached.env, timeout=DEADLINE)
    assert (listed.returncode, listed.stdout) == (2, "") and "detached jobs are not shown: " in listed.stderr, listed
    reading = subprocess.run([*other, "cat", detached.folder(name) / "job"], capture_output=True, timeout=DEADLINE)
    assert reading.returncode != 0
    assert is_alive(detached.driver(name))


def test_an_elastic_job_is_scaled_and_drained(detached, tmp_path):
    name = detached.begin("--elastic", "-np", 2, "--min-np", 1, "--max-np", 3, "-H", "localhost:3", sys.executable, SCRIPT, tmp_path)

    def worlds(size):
        return detached.text(name).count(f"of {size} from step")

    def await_world(size, more_than=0):
        wait_until(f"a world of {size}", lambda: worlds(size) > more_than, told=lambda: detached.text(name))

    await_world(3)
    done = detached.run("scale", name, 1)
    assert done.returncode == 0 and "at most 1" in done.stdout
    await_world(1)
    before = worlds(3)
    assert detached.run("scale", name, 3).returncode == 0
    await_world(3, more_than=before)
    for bad in (["scale", name], ["scale", name, "0"], ["scale", name, "x"], ["drain", name], ["drain", name, "a b"]):
        assert detached.run(*bad).returncode == 2
    (tmp_path / "finish").write_text("")
    assert detached.run("attach", name).returncode == 0


def test_a_job_of_fixed_size_cannot_be_scaled(detached):
    name = detached.begin("-np", 1, "sleep", 600)
    for words in (["scale", name, 2], ["drain", name, "localhost"]):
        done = detached.run(*words)
        assert done.returncode == 2 and "not elastic" in done.stderr


@pytest.fixture
def ssh(detached, tmp_path):
    """An ssh that runs the command on this machine, through the login shell, and writes down its words."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f"""#!/bin/sh
printf '%s\\n' "$@" >>{tmp_path}/words
while [ "$1" != -- ]; do shift; done
[ "$2" = down ] && {{ echo "ssh: connect to host down port 22: Connection refused" >&2; exit 255; }}
exec sh -c "$3"
""")
    (folder / "ssh").chmod(0o755)
    detached.env["PATH"] = f"{folder}:{detached.env['PATH']}"
    return lambda: (tmp_path / "words").read_text()


def test_the_verbs_work_from_another_machine(detached, ssh, tmp_path):
    name = detached.begin("-np", 1, "sh", "-c", f"{until(tmp_path / 'go')}; echo here; exit 3")
    (tmp_path / "go").write_text("")
    attached = detached.run("attach", name, "-H", "bob@node1")
    assert attached.returncode == 3 and "exit code 3" in attached.stdout, attached
    words = ssh().splitlines()
    assert words[words.index("--") + 1] == "node1" and words[words.index("-l") + 1] == "bob" and "-t" not in words
    assert detached.run("logs", name, "--rank", 0, "--hosts=node1").stdout == detached.text(name, "--rank", 0)
    listed = detached.run("ps", "--hosts", "a,b")
    assert listed.returncode == 0 and re.findall(r"^host (\w+):$", listed.stdout, re.M) == ["a", "b"]
    assert listed.stdout.count(name) == 2
    assert detached.run("status", "nosuch ' job", "-H", "node1").returncode == 2
    for bad in (["attach", name, "-H"], ["attach", name, "-H", "a,b"], ["status", name, "-H", "-oProxyCommand=x"]):
        done = detached.run(*bad)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    done = detached.run("ps", "-H", "down,node1")
    assert done.returncode == 255 and "refused" in done.stderr and name in done.stdout
    done = detached.run("ps", "--json", "--hosts", "node1,down,node2")
    lists = json.loads(done.stdout)
    assert done.returncode == 255 and list(lists) == ["node1", "down", "node2"] and lists["down"] is None
    assert [job["name"] for job in lists["node1"]] == [name] and lists["node1"] == lists["node2"]
    assert detached.run("forget", name, "-H", "node1").returncode == 0 and not detached.folder(name).exists()


def test_ctrl_c_asks_here_about_a_job_of_another_host(detached, ssh):
    name = detached.begin("-np", 1, *counting(100000, "sleep 0.01"))
    shown, code = on_terminal(detached, name, b"d\n", "-H", "node1")
    assert code == 0 and f"hvdrun attach {name} -H node1" in shown and is_alive(detached.driver(name))
    assert "-T" in ssh().splitlines() and "-t" not in ssh().splitlines(), "its bytes come as they are"
    shown, code = on_terminal(detached, name, b"s\n", "-H", "node1")
    assert code == 130 and not is_alive(detached.driver(name))


def test_notes_about_missing_lines_are_no_part_of_the_output(detached, ssh):
    name = detached.begin("--detached-output-limit", "64kB", "-np", 1, *counting(20000))
    detached.await_end(name)
    shown = detached.run("attach", name, "-H", "node1").stdout
    lost = int(re.match(r"hvdrun: (\d+) lines of older output were not kept", shown).group(1))
    assert lost > 1000 and lines_of(shown)[-1] == 20000 and len(shown.splitlines()) - 1 >= len(lines_of(shown))
    assert detached.run("attach", name, "-H", "node1").stdout == detached.run("attach", name).stdout == "", "all was shown"


def test_this_machine_remembers_what_the_host_cannot_record(detached, ssh):
    name = detached.begin("-np", 1, *counting(2000))
    detached.await_end(name)
    shown = detached.folder(name) / "shown"
    shown.unlink(missing_ok=True)
    shown.mkdir()
    first = detached.run("attach", name, "-H", "node1")
    assert first.returncode == 0 and lines_of(first.stdout) == list(range(1, 2001)) and "cannot record" in first.stderr, first
    assert detached.run("attach", name, "-H", "node1").stdout == ""
    shown.rmdir()
    assert detached.run("attach", name, "-H", "node1").stdout == "", "and tells it"
    assert detached.run("attach", name).stdout == "" and not list((detached.state / "hvdrun" / "shown").iterdir())


@pytest.mark.parametrize("there, code, words", [
    ("echo welcome; exec sh -c \"$3\"", 3, "exit code 3"),
    ("echo welcome; exit 0", 1, "another version"),
    ("echo welcome; echo no such command >&2; exit 127", 127, "no such command"),
    ("printf 'hvdrun-viewer 1\\n%0100d' 0", 1, "no frame"),
    ("yes welcome", 1, "welcome")])
def test_what_is_not_hvdrun_is_told_from_it(detached, ssh, tmp_path, there, code, words):
    name = detached.begin("-np", 1, "sh", "-c", f"{until(tmp_path / 'go')}; exit 3")
    (tmp_path / "go").write_text("")
    program = tmp_path / "bin" / "ssh"
    program.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n' + there + "\n")
    attached = detached.run("attach", name, "-H", "node1")
    assert attached.returncode == code and words in attached.stdout + attached.stderr, attached
    assert "welcome" not in attached.stdout and len(attached.stderr.splitlines()) == (0 if code == 3 else 1)


ROUNDS = int(os.environ.get("HVD_TEST_DETACHED_ROUNDS", 200 if os.environ.get("HVD_TEST_TIER") == "soak" else 12))


@pytest.mark.parametrize("round", range(ROUNDS))
def test_any_death_at_any_moment_leaves_each_line_once(detached, round):
    """Output is a prefix of what each rank prints, without gaps or doubles, shown over several attaches; the end is recorded; and
    nothing is left."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    name = detached.begin("-np", 2, *counting(400, "sleep 0.003", end="exit 6"))
    driver, keeper = detached.driver(name), detached.keeper(name)
    before = detached.text(name)
    victim = chance.choice(["none", "hvdrun", "keeper", "warden", "agent", "worker", "attach"])
    shown = ""
    time.sleep(chance.random() * 0.6)
    warden = (children_of(driver) or [0])[0]
    agent = (children_of(warden) or [0])[0] if warden else 0
    worker = (children_of(agent) or [0])[0] if agent else 0
    attached = detached.popen("attach", name) if chance.random() < 0.5 or victim == "attach" else None
    pid = {"none": 0, "hvdrun": driver, "keeper": keeper, "warden": warden, "agent": agent, "worker": worker,
           "attach": attached.pid if attached else 0}[victim]
    if pid and is_alive(pid):
        os.kill(pid, signal.SIGKILL)
    else:
        victim = "none"
    if attached:
        shown = attached.communicate(timeout=DEADLINE)[0]
    last = detached.run("attach", name)
    text = detached.text(name)
    for rank in (0, 1):
        assert lines_of(text, rank) == list(range(1, len(lines_of(text, rank)) + 1)), victim
    assert text.startswith(before)
    if victim in ("none", "keeper", "attach", "hvdrun"):
        assert 400 in (len(lines_of(text, 0)), len(lines_of(text, 1))), "the first rank to end has printed all"
    if victim != "attach":
        assert text.endswith(shown + last.stdout)
    expected = {"none": {6}, "keeper": {6}, "attach": {6}, "hvdrun": {6}, "worker": {137, 6}, "warden": {1, 6}, "agent": {1, 6}}
    assert last.returncode in expected[victim], (victim, last)
    wait_until("the end of all", lambda: not detached.family(name))
    assert detached.run("forget", name).returncode == 0
    assert not list(detached.state.glob("hvdrun/jobs/*"))
