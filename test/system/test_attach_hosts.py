"""hvdrun attach -H over a real sshd whose connections break: what was printed is shown whole and once."""

import os
import random
import re
import signal
import subprocess
import time

import pytest
from conftest import DEADLINE, hvdrun_path, is_full, kill, wait_until
from host_rig import WHY_NOT, HostRig
from test_detached_jobs import Detached, lines_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
ROUNDS = int(os.environ.get("HVD_TEST_ATTACH_ROUNDS", 40 if os.environ.get("HVD_TEST_TIER") == "soak" else 5))


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rig")
    rig = HostRig(folder, 1, environment=f"XDG_STATE_HOME={folder}/state")
    yield rig
    rig.down()


class Far(Detached):
    """A job that prints numbered lines on a host, fast, until it is told to end; and machines from which it is looked at."""

    def __init__(self, rig, folder):
        super().__init__(rig.folder)
        self.rig, self.scratch, self.files = rig, folder, 0
        self.go = folder / "go"
        script = (f"i=0; while [ ! -e {self.go} ]; do for n in 1 2 3 4 5 6 7 8 9 10; do i=$((i+1)); echo line $i; done; "
                  "sleep 0.002; done; echo last $i; exit 3")
        said = rig.hosts[0].run("env", f"XDG_STATE_HOME={self.state}", f"PATH={os.environ['PATH']}", hvdrun_path(), "--detach",
                                "-np", "1", "sh", "-c", script)
        self.name = said.strip().splitlines()[-1]
        shown = self.folder(self.name) / "shown"  # by hvdrun --detach
        self.begun = int(shown.read_text().split()[0]) if shown.exists() else 0

    def state_of_machine(self, machine):
        return self.scratch / machine

    def attach(self, machine="here", stdout=None):
        """hvdrun attach on a machine with a state folder of its own; its output goes to a file, unless `stdout` is named."""
        self.files += 1
        file = self.scratch / f"shown.{self.files}"
        out = open(file, "wb") if stdout is None else stdout
        viewer = subprocess.Popen(self.rig.on_head(hvdrun_path(), "attach", self.name, "-H", "hvd1"), stdout=out, text=True,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  env=dict(self.env, XDG_STATE_HOME=str(self.state_of_machine(machine))))
        if stdout is None:
            out.close()
        viewer.file = file
        return viewer

    def await_shown(self, viewer, more):
        """`more` bytes, at least one."""
        wait_until("output", lambda: viewer.file.stat().st_size >= max(more, 1) or viewer.poll() is not None)

    def end(self, viewer):
        """The exit code, what it has shown, and what it has said."""
        said = viewer.communicate(timeout=DEADLINE)[1]
        return viewer.returncode, viewer.file.read_bytes().decode() if viewer.file.exists() else "", said

    def all_text(self):
        return self.rig.hosts[0].run("env", f"XDG_STATE_HOME={self.state}", hvdrun_path(), "logs", self.name)

    def finish(self, machine="here"):
        """Tells the job to end and looks at it until then: what is shown."""
        self.go.write_text("")
        code, text, said = self.end(self.attach(machine))
        assert code == 3 and "last " in text, (code, text[-500:], said)
        return text

    def records(self, machine="here"):
        return list((self.state_of_machine(machine) / "hvdrun" / "shown").glob("*"))


@pytest.fixture
def far(rig, tmp_path):
    yield Far(rig, tmp_path)
    for pid in rig.hosts[0].processes():
        kill(pid)


def whole(far, part):
    """`part` is all that the job has printed since it was detached, with nothing missing and nothing twice."""
    text = far.all_text()
    lines = lines_of(text)
    assert lines == list(range(1, len(lines) + 1))
    assert text[far.begun:] == part, (text[far.begun:][:200], part[:200])
    return True


@pytest.mark.long
@pytest.mark.parametrize("broken", ["sshd", "link", "ssh", "viewer's host"])
def test_connections_that_break_at_any_moment_leave_each_line_once(far, rig, broken):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance, shown = random.Random(seed), ""
    for round in range(min(ROUNDS, 2) if broken == "link" else ROUNDS):
        viewer = far.attach()
        far.await_shown(viewer, chance.choice([0, 1000, 20000, 100000, 300000]))
        time.sleep(chance.random() * 0.05)
        if broken == "sshd":
            rig.hosts[0].kill_sshd()
        elif broken == "link":
            rig.hosts[0].cut()
        else:
            for pid in [p for p in rig.hosts[0].processes() if b"--for-viewer" in open(f"/proc/{p}/cmdline", "rb").read()] \
                    if broken == "viewer's host" else ssh_of(viewer):
                kill(pid)
        code, text, said = far.end(viewer)
        if broken == "link":
            rig.hosts[0].join()
            rig.wait_for_sshd(rig.hosts[0])
        shown += text
        assert code == 255, said
        assert re.search(rf"^hvdrun attach: .*hvd1 broke; job {far.name} .*hvdrun attach {far.name} -H hvd1", said, re.M), said
        assert len(far.records()) == 1
    shown += far.finish()
    assert whole(far, shown)
    assert far.records() == [], "the host knows"


def ssh_of(viewer):
    """The ssh that hvdrun attach has started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                name, rest = stat.read().split(") ")
        except OSError:
            continue
        if name.endswith("(ssh") and int(rest.split()[1]) == viewer.pid:
            found.append(int(pid))
    return found


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_detach_at_any_moment_is_known_on_every_machine(far, sent):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance, shown = random.Random(seed), ""
    for round in range(ROUNDS):
        viewer = far.attach(f"machine{round}")
        far.await_shown(viewer, chance.choice([0, 1000, 30000, 100000]))
        time.sleep(chance.random() * 0.05)
        viewer.send_signal(sent)
        code, text, said = far.end(viewer)
        assert code == 130 and f"hvdrun attach {far.name} -H hvd1" in said, (code, said)
        assert far.records(f"machine{round}") == []
        shown += text
    shown += far.finish("the last one")
    assert whole(far, shown)


def test_after_a_connection_that_broke_another_machine_misses_nothing(far, rig):
    viewer = far.attach("one")
    far.await_shown(viewer, 400_000)
    rig.hosts[0].kill_sshd()
    code, text, _ = far.end(viewer)
    assert code == 255
    rest = far.finish("another one")
    again = len(text + rest) - len(far.all_text()[far.begun:])
    assert 0 <= again < len(text), "it goes on behind the last word that came through"
    assert whole(far, text + rest[again:])
    assert text.endswith(rest[:again])


@pytest.mark.parametrize("end", ["connection", "Ctrl-C", "kill"])
def test_what_a_slow_reader_has_not_taken_is_shown_later(far, rig, end):
    """hvdrun attach train-1 -H node1 | less, and nobody reads."""
    reader, writer = os.pipe()
    viewer = far.attach(stdout=writer)
    wait_until("the pipe is full", lambda: is_full(writer))
    os.close(writer)
    if end == "connection":
        rig.hosts[0].kill_sshd()
    else:
        viewer.send_signal(signal.SIGINT if end == "Ctrl-C" else signal.SIGKILL)
        viewer.wait(timeout=DEADLINE)
    taken = b""
    while piece := os.read(reader, 65536):
        taken += piece
    os.close(reader)
    code, _, said = far.end(viewer)
    assert code == {"connection": 255, "Ctrl-C": 130, "kill": -9}[end], said
    assert len(far.records()) == (0 if end == "Ctrl-C" else 1)
    assert whole(far, taken.decode() + far.finish())
    assert far.records() == []


def test_a_machine_that_cannot_record_says_so(far):
    far.state_of_machine("here").write_text("no folder")
    viewer = far.attach()
    far.await_shown(viewer, 1000)
    viewer.send_signal(signal.SIGINT)
    code, text, said = far.end(viewer)
    assert code == 130 and "cannot record what it shows" in said and "Not a directory" in said
    assert whole(far, text + far.finish("another one"))
