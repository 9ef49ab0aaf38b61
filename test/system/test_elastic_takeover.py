"""hvdrun of a detached elastic job is killed: its standby goes on with the generation that runs, and with those that follow."""

import itertools
import os
import random
import re
import signal
import sys
import time

from conftest import is_alive, kill, read_proc, wait_until
from elastic_job import SCRIPT
from test_detached_jobs import detached, until  # noqa: F401
from test_takeover import TAKEN, kill_driver, nothing_left, standby


def begin(detached, tmp_path, *options):
    return detached.begin("--elastic", "-np", 2, "--min-np", 1, "--max-np", 3, *options, sys.executable, SCRIPT, tmp_path)


def await_world(detached, name, size, more_than=0):
    said = f"trains as rank 0 of {size} from step"
    wait_until(f"a world of {size}", lambda: detached.text(name).count(said) > more_than, told=lambda: detached.text(name))


def worlds(detached, name, size):
    return detached.text(name).count(f"trains as rank 0 of {size} from step")


def pids(detached, name):
    """Of all ranks that have trained."""
    return [int(pid) for pid in re.findall(r"trains as rank .* pid (\d+)$", detached.text(name), re.M)]


def workers(detached, name):
    """Those that live now."""
    return [pid for pid in detached.family(name) if read_proc(pid, "cmdline").split(b"\0")[1:2] == [bytes(SCRIPT)]]


def finish(detached, name, tmp_path, takeovers=1):
    (tmp_path / "finish").write_text("")
    attached = detached.run("attach", name)
    text = detached.text(name)
    assert attached.returncode == 0, text
    assert text.count(TAKEN) == takeovers, text
    nothing_left(detached, name)
    return text


def test_a_generation_goes_on_to_its_end(detached, tmp_path):
    name = begin(detached, tmp_path, "-H", "localhost:2")
    await_world(detached, name, 2)
    kill_driver(detached, name)
    wait_until("the takeover", lambda: TAKEN in detached.text(name))
    text = finish(detached, name, tmp_path)
    assert worlds(detached, name, 2) == 1 and "begins with" not in text, text


def test_a_worker_that_dies_after_a_takeover_is_replaced(detached, tmp_path):
    name = begin(detached, tmp_path, "-H", "localhost:2")
    await_world(detached, name, 2)
    kill_driver(detached, name)
    wait_until("the takeover", lambda: TAKEN in detached.text(name))
    kill(pids(detached, name)[0])
    await_world(detached, name, 2, more_than=1)
    text = finish(detached, name, tmp_path)
    assert "1 of 10 failures" in text and "generation 2 begins" in text, text


def test_a_worker_that_dies_while_there_is_no_hvdrun_is_replaced(detached, tmp_path):
    """The standby is stopped meanwhile."""
    name = begin(detached, tmp_path, "-H", "localhost:2")
    await_world(detached, name, 2)
    next_one = standby(detached, name)
    os.kill(next_one, signal.SIGSTOP)
    os.kill(detached.driver(name), signal.SIGKILL)
    lost = pids(detached, name)[0]
    kill(lost)
    wait_until("its end", lambda: not is_alive(lost))
    os.kill(next_one, signal.SIGCONT)
    await_world(detached, name, 2, more_than=1)
    assert "1 of 10 failures" in finish(detached, name, tmp_path)


def test_hosts_come_and_go_after_a_takeover(detached, tmp_path):
    """Discovery is a script, and asked anew; what hvdrun scale has said still holds."""
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:1\n")
    name = begin(detached, tmp_path, "--host-discovery-script", f"cat {hosts}", "-np", 1)
    await_world(detached, name, 1)
    kill_driver(detached, name)
    wait_until("the takeover", lambda: TAKEN in detached.text(name))
    hosts.write_text("localhost:3\n")
    await_world(detached, name, 3)
    kill_driver(detached, name)
    hosts.write_text("localhost:2\n")
    await_world(detached, name, 2)
    assert detached.run("scale", name, 1).returncode == 0
    await_world(detached, name, 1, more_than=1)
    kill_driver(detached, name)
    finish(detached, name, tmp_path, takeovers=3)


def test_hvdrun_is_killed_again_and_again_while_the_job_re_forms(detached, tmp_path):
    """At any moment: each worker that is killed is replaced, and the job ends as it would have."""
    chance = random.Random(7)
    name = begin(detached, tmp_path, "-H", "localhost:3", "--max-failures", 100)
    await_world(detached, name, 3)
    for number in range(8):
        wait_until("a worker", lambda: workers(detached, name), told=lambda: detached.text(name))
        kill(chance.choice(workers(detached, name)))
        time.sleep(chance.random() * 0.5)
        kill_driver(detached, name)
    wait_until("three ranks that train", lambda: {*workers(detached, name)} == {*pids(detached, name)[-3:]}, told=lambda: detached.text(name))
    finish(detached, name, tmp_path, takeovers=8)


def test_output_of_workers_that_are_replaced_is_complete_and_once(detached, tmp_path):
    """A script without generations, whose workers are started again together: each is another one for its agent."""
    name = detached.begin("--elastic", "-np", 2, "--min-np", 2, "--max-np", 2, "-H", "localhost:2", "--elastic-restart", "in-job", "sh", "-c", f"""
        me=$HOROVOD_LOCAL_RANK.$TORCHELASTIC_RESTART_COUNT
        i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $me line $i; case $i in *00) sleep 0.02;; esac; done
        [ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0
        touch {tmp_path}/$me
        [ $HOROVOD_LOCAL_RANK = 0 ] && exec sleep 600
        {until(f"{tmp_path}/0.$TORCHELASTIC_RESTART_COUNT")}; kill -9 $$""")
    for number in range(8):
        time.sleep(0.1 * number)
        if not (detached.folder(name) / "end").exists():
            kill_driver(detached, name)
    attached = detached.run("attach", name)
    text = detached.text(name)
    assert attached.returncode == 0, text[-3000:]
    for rank, restart in itertools.product("01", "012"):
        for shown in text, "".join(f"[{rank}]<stdout>:{line}" for line in detached.run("logs", name, "--rank", rank).stdout.splitlines(True)):
            said = re.findall(rf"^\[{rank}\]<stdout>:{rank}\.{restart} line (\d+)$", shown, re.M)
            assert said == [str(i) for i in range(1, 3001)], (rank, restart, len(said))
    nothing_left(detached, name)


def test_without_a_grace_the_job_ends_with_its_hvdrun(detached, tmp_path):
    name = begin(detached, tmp_path, "-H", "localhost:2", "--driver-grace", 0)
    await_world(detached, name, 2)
    family = detached.family(name)
    os.kill(detached.driver(name), signal.SIGKILL)
    assert detached.run("attach", name).returncode == 137
    assert "--driver-grace 0: no other hvdrun takes over" in detached.text(name)
    wait_until("nothing left", lambda: not [pid for pid in family if is_alive(pid)])
