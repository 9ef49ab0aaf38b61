"""hvdrun of a detached job is killed, and its standby goes on with the job: the workers notice nothing, the output is complete and
once, and the end is the one that the job comes to."""

import json
import os
import re
import signal
import sys
import time

import pytest
from conftest import DEADLINE, WORKERS, is_alive, kill, wait_until
from test_detached_jobs import counting, detached, lines_of, until  # noqa: F401

TAKEN = "goes on with the job"


def kill_driver(detached, name):
    """Ends hvdrun by SIGKILL; returns when another one has taken over."""
    before = detached.driver(name)
    os.kill(before, signal.SIGKILL)
    wait_until("another driver", lambda: detached.driver(name) != before, told=lambda: detached.text(name))
    return detached.driver(name)


def standby(detached, name):
    return json.loads((detached.folder(name) / "standby").read_text())["pid"]


def nothing_left(detached, name):
    wait_until("nothing left", lambda: not detached.family(name) and not is_alive(standby(detached, name)))


@pytest.mark.parametrize("code", [0, 3])
def test_a_job_goes_on_when_hvdrun_is_killed(detached, tmp_path, code):
    name = detached.begin("-np", 2, "sh", "-c", f"echo up; {until(tmp_path / 'go')}; echo down; exit {code}")
    wait_until("its output", lambda: detached.text(name).count("up") == 2)
    kill_driver(detached, name)
    (tmp_path / "go").write_text("")
    attached = detached.run("attach", name)
    assert attached.returncode == code, (attached, detached.text(name))
    text = detached.text(name)
    assert TAKEN in text
    assert [len(re.findall(rf"^\[{rank}\]<stdout>:{word}$", text, re.M)) for rank in (0, 1) for word in ("up", "down")] == \
        [1, 1, 1, 1] or code != 0, text
    assert (code == 0) == ("failed" not in text), text
    nothing_left(detached, name)


def test_output_is_complete_and_once(detached, tmp_path):
    """Killed again and again, at any moment."""
    name = detached.begin("-np", 2, *counting(20000, "case $i in *00) sleep 0.02;; esac"))
    for number in range(6):
        time.sleep(0.1 * number)
        kill_driver(detached, name)
    attached = detached.run("attach", name)
    assert attached.returncode == 0, attached
    text = detached.text(name)
    for rank in 0, 1:
        assert lines_of(text, rank) == list(range(1, 20001)), text[:2000]
        assert lines_of("".join(f"[{rank}]<stdout>:{line}" for line in
                                detached.run("logs", name, "--rank", rank).stdout.splitlines(True)), rank) == list(range(1, 20001))
    assert text.count(TAKEN) == 6
    nothing_left(detached, name)


def test_hvdrun_is_killed_as_soon_as_it_is_named(detached, tmp_path):
    """Each one that takes over is the job's hvdrun only once the next one waits."""
    name = detached.begin("-np", 1, "sh", "-c", f"echo up; {until(tmp_path / 'go')}; echo down")
    for _ in range(20):
        before = detached.driver(name)
        os.kill(before, signal.SIGKILL)
        limit = time.monotonic() + DEADLINE
        while detached.driver(name) == before:  # at once, so without a pause
            assert time.monotonic() < limit, detached.text(name)
    (tmp_path / "go").write_text("")
    assert detached.run("attach", name).returncode == 0, detached.text(name)
    assert re.findall(r"^\[0\]<stdout>:(.*)$", detached.text(name), re.M) == ["up", "down"]
    nothing_left(detached, name)


def test_a_line_that_is_not_over_goes_on_behind_its_beginning(detached, tmp_path):
    """More of it than the agent keeps back."""
    name = detached.begin("-np", 2, "sh", "-c", f"""[ $HOROVOD_RANK = 1 ] || printf begin; printf %050000d 0; {until(tmp_path / "go")}; echo end""")
    wait_until("its beginning", lambda: len(detached.text(name)) > 60000)
    kill_driver(detached, name)
    wait_until("the takeover", lambda: TAKEN in detached.text(name))
    (tmp_path / "go").write_text("")
    assert detached.run("attach", name).returncode == 0
    text = "".join(line for line in detached.text(name).splitlines(True) if not line.startswith(("hvdrun:", "[hvdrun")))
    for rank, begin in (0, "begin"), (1, ""):
        own = "".join(line.split(":", 1)[1] for line in text.split("\n") if line.startswith(f"[{rank}]<stdout>:"))
        assert own == begin + "0" * 50000 + "end", (len(own), text.replace("0" * 100, "~"))


def test_a_job_is_stopped_after_a_takeover(detached):
    name = detached.begin("-np", 2, "sh", "-c", "echo up; exec sleep 600")
    kill_driver(detached, name)
    assert detached.run("stop", name).returncode == 0
    assert detached.run("attach", name).returncode == 130
    nothing_left(detached, name)


def test_hvdrun_is_killed_while_it_stops_the_job(detached, tmp_path):
    """The end is that of the stop."""
    name = detached.begin("-np", 1, "--terminate-grace", 3, "sh", "-c", f"trap 'touch {tmp_path}/asked' INT TERM; echo up; while :; do sleep 0.1; done")
    wait_until("up", lambda: "up" in detached.text(name))
    os.kill(detached.driver(name), signal.SIGINT)
    wait_until("the signal", lambda: (tmp_path / "asked").exists())
    kill_driver(detached, name)
    assert detached.run("attach", name).returncode == 130, detached.text(name)
    nothing_left(detached, name)


def test_a_worker_that_is_killed_after_a_takeover_is_the_first_cause(detached):
    name = detached.begin("-np", 2, "sh", "-c", "echo pid $$; exec sleep 600")
    wait_until("pids", lambda: detached.text(name).count("pid ") == 2)
    kill_driver(detached, name)
    wait_until("the takeover", lambda: TAKEN in detached.text(name))
    os.kill(int(re.search(r"^\[1\]<stdout>:pid (\d+)$", detached.text(name), re.M).group(1)), signal.SIGKILL)
    attached = detached.run("attach", name)
    assert attached.returncode == 137 and "rank 1" in detached.text(name), detached.text(name)
    nothing_left(detached, name)


def test_a_worker_fails_while_there_is_no_hvdrun(detached):
    """The standby is stopped meanwhile."""
    name = detached.begin("-np", 2, "sh", "-c", "echo pid $$; exec sleep 600")
    wait_until("pids", lambda: detached.text(name).count("pid ") == 2)
    worker = int(re.search(r"^\[1\]<stdout>:pid (\d+)$", detached.text(name), re.M).group(1))
    next_one = standby(detached, name)
    os.kill(next_one, signal.SIGSTOP)
    os.kill(detached.driver(name), signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    wait_until("its end", lambda: not is_alive(worker))
    os.kill(next_one, signal.SIGCONT)
    attached = detached.run("attach", name)
    assert attached.returncode == 137 and "rank 1" in detached.text(name), detached.text(name)
    nothing_left(detached, name)


def test_without_a_takeover_in_time_the_job_ends(detached):
    name = detached.begin("--driver-grace", 1, "-np", 2, "sh", "-c", "echo up; exec sleep 600")
    family = detached.family(name)
    next_one = standby(detached, name)
    os.kill(next_one, signal.SIGKILL)
    wait_until("its end", lambda: not is_alive(next_one))
    os.kill(detached.driver(name), signal.SIGKILL)
    attached = detached.run("attach", name)
    assert attached.returncode == 137 and "hvdrun itself was killed" in attached.stderr + attached.stdout, attached
    wait_until("nothing left", lambda: not [pid for pid in family if is_alive(pid)])


def test_the_keeper_and_hvdrun_are_killed(detached, tmp_path):
    name = detached.begin("-np", 1, "sh", "-c", f"echo up; {until(tmp_path / 'go')}; echo down; exit 5")
    wait_until("up", lambda: "up" in detached.text(name))
    kill(detached.keeper(name))
    kill_driver(detached, name)
    (tmp_path / "go").write_text("")
    attached = detached.run("attach", name)
    assert attached.returncode == 5, (attached, detached.text(name))
    assert detached.text(name).count("up") == detached.text(name).count("down") == 1
    nothing_left(detached, name)


def test_worlds_begin_and_end_after_takeovers(detached, tmp_path):
    """hvdrun is killed while a rank is awaited in hvd.init(), in the middle of a world, and between two."""
    worlds = 3
    name = detached.begin("-np", 3, sys.executable, WORKERS / "generations_worker.py", tmp_path, worlds)
    for world in range(worlds):
        for place in f"init.{world}", f"sum.{world}":
            wait_until(place, lambda: f"at {place}\n" in detached.text(name), told=lambda: detached.text(name))
            kill_driver(detached, name)
            (tmp_path / place).write_text("")
    attached = detached.run("attach", name)
    assert attached.returncode == 0, detached.text(name)
    text = detached.text(name)
    assert len(re.findall(r"^\[\d\]<stdout>:done$", text, re.M)) == 3 and text.count("at init.1") == 1, text
    nothing_left(detached, name)


def test_status_and_the_live_view_work_after_a_takeover(detached, tmp_path):
    name = detached.begin("-np", 2, sys.executable, WORKERS / "generations_worker.py", tmp_path, 1)
    (tmp_path / "init.0").write_text("")
    wait_until("the world", lambda: "at sum.0" in detached.text(name), told=lambda: detached.text(name))
    kill_driver(detached, name)
    wait_until("the takeover", lambda: TAKEN in detached.text(name))
    wait_until("its ranks", lambda: json.loads(detached.run("status", name, "--json").stdout)["view"].get("generation") == 1,
               told=lambda: detached.run("status", name, "--json").stdout)
    assert [job["state"] for job in json.loads(detached.run("ps", "--json").stdout)] == ["running"]
    (tmp_path / "sum.0").write_text("")
    assert detached.run("attach", name).returncode == 0
    nothing_left(detached, name)
