"""Programs under a deadline, and lines that say what is going on."""
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HUNG = "hung"


class Failed(Exception):
    """Something failed or was wrong: the only reason why the benchmark fails."""


@dataclass
class Outcome:
    seconds: float
    code: object  # exit status, or HUNG
    stdout: str = ""
    stderr: str = ""

    @property
    def ok(self):
        return self.code == 0


def session_members(session):
    """Processes of the session that was started for one run, so that nothing of a hung run outlives it."""
    members = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            members.append(int(name))
    return members


def end_session(process):
    for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        targets = [process.pid] if number == signal.SIGTERM else session_members(process.pid)
        for pid in targets:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        until = time.monotonic() + patience
        while time.monotonic() < until and session_members(process.pid):
            process.poll()
            time.sleep(0.02)
        if not session_members(process.pid):
            break
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        pass


def run(command, deadline, keep_output=True, env=None):
    """Runs a command to its end or its deadline. The time is that from starting it to its exit."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out if keep_output else subprocess.DEVNULL, stderr=err,
            env=env, start_new_session=True)
        fd = os.pidfd_open(process.pid)
        try:
            poller = select.poll()
            poller.register(fd, select.POLLIN)
            ended = bool(poller.poll(deadline * 1000))
            seconds = time.perf_counter() - start
        except BaseException:
            end_session(process)
            raise
        finally:
            os.close(fd)
        if ended:
            code = process.wait()
        else:
            end_session(process)
            code = HUNG
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return Outcome(seconds, code, *texts)


class Progress:
    """One line on stderr that is written over, when stderr is a terminal."""

    def __init__(self):
        self.shown = sys.stderr.isatty()
        self.start = time.monotonic()

    def say(self, text):
        if self.shown:
            line = f"[{time.monotonic() - self.start:5.0f} s] {text}"
            sys.stderr.write("\r\033[K" + line[:150])
            sys.stderr.flush()

    def clear(self):
        if self.shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
