"""hvdrun on a terminal: prompts and answers, input typed ahead, progress bars, both streams on one line, narrow windows."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time

import pytest
from conftest import DEADLINE, REPO, hvdrun_path, read_some, state_of, wait_until

PYTHON = ["/usr/bin/python3", "-S", "-E", "-u"]


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *command, columns=0, **environment):
        self.pid, self.leader = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.environ.update({"TERM": "xterm", **environment})
            words = [str(word) for word in command]
            os.execvp(words[0], words)
        self.seen = ""

    def until(self, text):
        while text not in self.seen:
            data = read_some(self.leader)
            assert data, f"it ended without {text!r}: {self.seen!r}"
            self.seen += data.decode(errors="replace")

    def type(self, text):
        os.write(self.leader, text.encode())

    def end(self):
        while data := read_some(self.leader):
            self.seen += data.decode(errors="replace")
        _, status = os.waitpid(self.pid, 0)
        os.close(self.leader)
        return os.waitstatus_to_exitcode(status)


def on_terminal(*args, **kwargs):
    return Terminal(hvdrun_path(), "--color", "never", *args, **kwargs)


def lines_of(text):
    """The text left on a terminal: "\\r" goes back to the beginning of a line, and "\\x1b[K" erases from there."""
    shown = []
    for line in text.replace("\r\n", "\n").split("\n"):
        cells, at = [], 0
        for piece in re.findall(r"\x1b\[K|\r|[^\r\x1b]", line):
            if piece == "\r":
                at = 0
            elif piece == "\x1b[K":
                del cells[at:]
            else:
                cells[at:at + 1] = [piece]
                at += 1
        shown.append("".join(cells))
    return shown


# ---- prompts


@pytest.mark.parametrize("fold", [[], ["--fold"]], ids=["", "fold"])
def test_input_shows_its_prompt(fold):
    script = "import os\nif os.environ['RANK'] == '0':\n name = input('your name? ')\n print('hello', name)"
    terminal = on_terminal("-np", 2, *fold, *PYTHON, "-c", script)
    terminal.until("[0]<stdout>:your name? ")
    terminal.type("ann\n")
    assert terminal.end() == 0
    assert lines_of(terminal.seen)[-3:] == ["[0]<stdout>:your name? ann", "[0]<stdout>:hello ann", ""], terminal.seen


def test_a_debugger_can_be_used():
    script = "import os\nx = 40\nif os.environ['RANK'] == '0': breakpoint()\nprint('on')"
    terminal = on_terminal("-np", 2, *PYTHON, "-c", script)
    terminal.until("(Pdb) ")
    terminal.type("p x + 2\n")
    terminal.until("42")
    terminal.until("42\r\n[0]<stdout>:(Pdb) ")
    terminal.type("c\n")
    assert terminal.end() == 0
    assert "[0]<stdout>:42" in lines_of(terminal.seen), "an answer begins a line, and has its prefix"


def test_an_interactive_python():
    terminal = on_terminal("-np", 1, *PYTHON, "-i", "-q")
    terminal.until(">>> ")
    terminal.type("6 * 7\n")
    terminal.until("[0]<stdout>:42")
    terminal.type("raise SystemExit(3)\n")
    assert terminal.end() == 3


def test_a_rank_without_the_terminal_has_whole_lines():
    script = "import os,sys,time\nif os.environ['RANK'] == '1':\n sys.stdout.write('half'); time.sleep(1); print(' whole')\nelse:\n time.sleep(2)"
    terminal = on_terminal("-np", 2, *PYTHON, "-c", script)
    assert terminal.end() == 0
    assert "[1]<stdout>:half whole\r\n" in terminal.seen


def test_without_a_terminal_lines_are_whole(run):
    job = run("-np", 1, *PYTHON, "-c", "import sys,time\nfor i in range(3): sys.stdout.write('x'); time.sleep(0.2)")
    assert job.out == "[0]<stdout>:xxx\n"


def test_with_stdin_none_what_is_typed_ahead_reaches_the_shell(tmp_path):
    go = tmp_path / "go"
    wait = f"until [ -e {go} ]; do sleep 0.05; done"
    terminal = Terminal("sh", "-c", f"{hvdrun_path()} --stdin none -np 1 sh -c 'echo begun; {wait}'; read line; echo shell got $line")
    terminal.until("begun")
    terminal.type("typed ahead\n")
    time.sleep(0.5)  # a reader would have taken it by now
    go.touch()
    assert terminal.end() == 0
    assert "shell got typed ahead" in terminal.seen


# ---- progress bars and lines


BAR = """
import os, sys, time
rank = int(os.environ["RANK"])
for i in range(12):
    sys.stderr.write("bar %d " % rank + "#" * (40 - 3 * i) + "\\r"); sys.stderr.flush()
    time.sleep(0.1)
sys.stderr.write("done %d\\n" % rank)
"""


def screen_of(text, columns):
    """The text left on a terminal so narrow that longer lines wrap: "\\r" leads to the beginning of the last row alone."""
    rows, row, at = [[]], 0, 0
    for piece in re.findall(r"\x1b\[K|\x1b\[\d*m|\r\n|[\r\n]|[^\r\n\x1b]", text):
        if piece in ("\r\n", "\n"):
            row, at = row + 1, 0
            rows.append([])
        elif piece == "\r":
            at = 0
        elif piece == "\x1b[K":
            del rows[row][at:]
        elif not piece.startswith("\x1b"):
            if at == columns:
                row, at = row + 1, 0
                rows.append([])
            rows[row][at:at + 1] = [piece]
            at += 1
    return ["".join(cells) for cells in rows]


def test_the_narrow_screen_wraps():
    assert screen_of("abcdef\rX\x1b[K\r\ny", 4) == ["abcd", "X", "y"]


LATE = """
import os, sys, time
sys.path.insert(0, "%s")
from horovod.common import basics
if os.environ["RANK"] == "0": time.sleep(2.5)
world = basics.HorovodBasics(); world.init(); world.shutdown()
""" % (REPO / "runtime" / "python")


@pytest.mark.parametrize("fold", [[], ["--fold"]], ids=["", "fold"])
def test_nothing_wraps_or_remains_on_forty_columns(fold):
    start = on_terminal("-np", 4, *fold, *PYTHON, "-c", LATE, columns=40)
    assert start.end() == 0
    assert "hvdrun: starting: workers" in start.seen, "the line of the start was not shown"
    assert not "".join(screen_of(start.seen, 40)).strip(), start.seen
    bars = on_terminal("-np", 2, *fold, *PYTHON, "-c", BAR, columns=40)
    assert bars.end() == 0
    left = [line for line in screen_of(bars.seen, 40) if line and not line.startswith("hvdrun: ")]
    assert sorted(left) == ["[0]<stderr>:done 0", "[1]<stderr>:done 1"], bars.seen


@pytest.mark.parametrize("fold", [[], ["--fold"]], ids=["", "fold"])
def test_a_bar_leaves_no_remains(fold):
    terminal = on_terminal("-np", 2, *fold, *PYTHON, "-c", BAR)
    assert terminal.end() == 0
    left = [line for line in lines_of(terminal.seen) if line and not line.startswith("hvdrun: ")]
    assert sorted(left) == ["[0]<stderr>:done 0", "[1]<stderr>:done 1"], terminal.seen


def test_the_bars_of_two_ranks_do_not_alternate():
    terminal = on_terminal("-np", 2, *PYTHON, "-c", BAR)
    assert terminal.end() == 0
    shown = re.findall(r"\[(\d)\]<stderr>:bar", terminal.seen)
    changes = sum(a != b for a, b in zip(shown, shown[1:]))
    assert len(shown) >= 5 and changes <= 3, shown


def test_a_bar_fits_a_narrow_terminal():
    """A bar that wraps cannot be replaced: "\\r" leads to the beginning of its last line."""
    terminal = on_terminal("-np", 1, *PYTHON, "-c", BAR.replace("40 - 3", "200 - 3"), columns=40)
    assert terminal.end() == 0
    bars = [piece for piece in re.split(r"[\r\n]|\x1b\[K", terminal.seen) if "bar 0" in piece]
    assert bars and all(len(bar) < 40 for bar in bars), bars
    whole = on_terminal("-np", 1, "sh", "-c", "printf '%0100d\\n' 0", columns=40)
    assert whole.end() == 0 and "0" * 100 in whole.seen, "lines are never cut"


def test_two_streams_in_one_pipe_have_lines_of_their_own():
    script = "import sys,time\nsys.stdout.write('half'); sys.stdout.flush(); sys.stderr.write('10%\\r'); sys.stderr.flush()\n" \
             "time.sleep(0.3); sys.stderr.write('err\\n'); sys.stderr.flush(); time.sleep(0.3); print(' whole')"
    done = subprocess.run(["bash", "-c", f"{hvdrun_path()} -np 1 /usr/bin/python3 -S -c \"$SCRIPT\" 2>&1 | cat"],
                          env=dict(os.environ, SCRIPT=script), capture_output=True, text=False, timeout=DEADLINE)
    lines = done.stdout.decode().replace("\r\n", "\n").split("\n")
    assert not [line for line in lines if "<stdout>" in line and "<stderr>" in line], done.stdout
    assert "[0]<stdout>:half whole" in lines, done.stdout
    script = script.replace("sys.stderr.write('err\\n'); sys.stderr.flush(); ", "")
    done = subprocess.run(["bash", "-c", f"{hvdrun_path()} -np 1 /usr/bin/python3 -S -c \"$SCRIPT\" 2>&1 | cat"],
                          env=dict(os.environ, SCRIPT=script), capture_output=True, text=False, timeout=DEADLINE)
    assert done.stdout == b"[0]<stderr>:10%\r\n[0]<stdout>:half whole\n", "a bar without an end is ended"


# ---- an error on all ranks


def test_an_import_error_on_all_ranks_is_shown_once_with_the_ranks(run, tmp_path):
    # All of them fail before hvdrun, which ends the others at once, can have heard of the first.
    script = f"import os,signal,time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('{tmp_path}/' + os.environ['RANK'], 'w')\nwhile not all(os.path.exists('{tmp_path}/%d' % r) for r in range(4)):" \
             " time.sleep(0.01)\nimport no_such_module"
    job = run("-np", 4, "/usr/bin/python3", "-S", "-c", script)
    assert job.code == 1
    before, report = job.err.split("hvdrun: rank ", 1)
    shown = re.findall(r"^\[([0-9,-]+)\]<stderr>:ModuleNotFoundError", before, re.M)
    assert len(shown) == 1 and len(shown[0]) > 1, job.err
    assert report.count("Traceback") == 1 and report.count("ModuleNotFoundError") == 1


def test_a_traceback_of_one_rank_is_whole_and_first(run):
    script = "import os,sys\nif os.environ['RANK'] == '1':\n print('before', file=sys.stderr)\n raise ValueError('why')"
    job = run("-np", 2, "/usr/bin/python3", "-S", "-c", script)
    lines = [line for line in job.err.splitlines() if line.startswith("[1]")]
    assert lines[0] == "[1]<stderr>:before" and lines[1] == "[1]<stderr>:Traceback (most recent call last):"
    assert lines[-1] == "[1]<stderr>:ValueError: why"


# ---- the end of a failed job


CAUSE = "import os\nif os.environ['RANK'] == '1': raise ValueError('no data')\nimport time\ntime.sleep(60)"


def test_a_traceback_is_shown_once():
    terminal = on_terminal("-np", 2, *PYTHON, "-c", CAUSE)
    assert terminal.end() == 1
    assert terminal.seen.count("Traceback") == 1, terminal.seen
    assert "  Its traceback is above; it ends with:\r\n    ValueError: no data\r\n" in terminal.seen


def test_a_traceback_that_has_scrolled_away_is_shown_again():
    later = CAUSE.replace("raise", "import atexit; atexit.register(lambda: print('line\\n' * 40)); raise")
    terminal = on_terminal("-np", 2, *PYTHON, "-c", later)
    assert terminal.end() == 1
    assert terminal.seen.count("Traceback") == 2, terminal.seen


def test_a_traceback_stays_in_the_block_where_stderr_is_no_terminal(tmp_path):
    script = f"{hvdrun_path()} -np 2 {' '.join(PYTHON)} -c \"$0\" 2>{tmp_path / 'err'}"
    assert Terminal("sh", "-c", script, CAUSE).end() == 1
    assert (tmp_path / "err").read_text().count("Traceback") == 2
