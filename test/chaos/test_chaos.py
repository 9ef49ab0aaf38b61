"""Random injuries, and what must come of each: README.md."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import checks  # noqa: E402
import injuries  # noqa: E402
from checks import Expected, Leftovers, Seen, faults  # noqa: E402
from places import FAMILY, Hosts, Machine  # noqa: E402

from conftest import wait_until  # noqa: E402  # isort: skip
from host_rig import WHY_NOT  # noqa: E402  # isort: skip

EARLY_S = 0.15
SEED = int(os.environ.get("HVD_CHAOS_SEED", time.time()))
SOAK = os.environ.get("HVD_SOAK") == "1"
ROUNDS = int(os.environ.get("HVD_SOAK_ROUNDS", 500)) if SOAK else 18


def rounds():
    one = os.environ.get("HVD_CHAOS_ROUND")
    return range(ROUNDS) if one is None else [int(one)]


def kind_of(place, number):
    """All kinds have their turns, in an order that differs from turn to turn; every fourth round is an early one."""
    early = number % 4 == 3
    kinds = [kind for kind in injuries.kinds_on(place.hosts is not None) if kind.may_be_early or not early]
    turn, which = divmod(number // 4 if early else number - number // 4, len(kinds))
    random.Random(f"{SEED} {place.name} {turn}").shuffle(kinds)
    return kinds[which], early


def begin(place, kind, early, chance):
    run = place.start(kind.command, **kind.start)
    if early:
        time.sleep(chance.uniform(0, EARLY_S))
        run.note_job_id()
    else:
        run.wait_until_at_work(place.size)
    return run


def injure(run, kind, early, chance):
    try:
        return kind.injure(run, chance, early)
    except injuries.NoVictim:
        run.note("there is no such victim yet")
        return injuries.hvdrun_dies(run, chance, early)


def play(place, number):
    """One round. Fails with all that is needed to understand it and to play it again."""
    kind, early = kind_of(place, number)
    chance = random.Random(f"{SEED} {place.name} {number}")
    run = begin(place, kind, early, chance)
    expected, trouble = Expected(set()), []
    try:
        expected = injure(run, kind, early, chance)
    except BaseException as error:  # what wait_until raises, too
        trouble = [f"{type(error).__name__}: {error}"]
        run.job.process.kill()
    notes = run.notes
    try:
        seen = run.finish()
    finally:
        place.heal()
    found = trouble or faults(seen, expected)
    if found:
        pytest.fail("\n  ".join([f"round {number} on {place.name}, {kind.name}{', early' if early else ''}:", *notes,
                                 *(f"WRONG: {sentence}" for sentence in found), "hvdrun said:", *seen.words.splitlines()[-15:],
                                 f"once more: HVD_CHAOS_SEED={SEED} HVD_CHAOS_ROUND={number} python3 -m pytest -q test/chaos"]),
                    pytrace=False)


def play_all(place, capsys):
    with capsys.disabled():
        print(f"\nchaos on {place.name}: seed {SEED}, {len(rounds())} rounds", flush=True)
    for number in rounds():
        play(place, number)
        if SOAK and number % 50 == 49:
            with capsys.disabled():
                print(f"{number + 1} rounds on {place.name}", flush=True)


@pytest.mark.long
def test_chaos_on_one_machine(capsys):
    play_all(Machine(), capsys)


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.long
def test_chaos_over_hosts_with_clocks_of_their_own(capsys, tmp_path):
    place = Hosts(tmp_path)
    try:
        play_all(place, capsys)
    finally:
        place.down()


# ---- the checker can fail


@pytest.mark.parametrize("seen, wrong", [
    (Seen(137, "hvdrun: rank 1 on host a (pid 7) failed: signal 9 (SIGKILL)", []), []),
    (Seen(None, "", []), ["did not end"]),
    (Seen(1, "hvdrun: rank 1 on host a (pid 7) failed: signal 9 (SIGKILL)", []), ["exit code is 1, not 137"]),
    (Seen(137, "hvdrun: rank 0 on host a (pid 6) failed: exit code 3", []), ["does not say"]),
    (Seen(137, "hvdrun: rank 1 on host a (pid 8) failed: signal 9 (SIGKILL)", []), ["does not say"]),
    (Seen(137, "hvdrun: rank 1 on host a (pid 7) failed: signal 9; innocent", []), ["hvdrun says"]),
    (Seen(137, "hvdrun: rank 1 on host a (pid 7) failed: signal 9", ["socket s is left"]), ["socket s"]),
])
def test_a_wrong_end_is_a_fault(seen, wrong):
    expected = Expected({137}, r"hvdrun: rank 1 on host a \(pid 7\) failed: signal 9", not_a_cause="innocent")
    found = faults(seen, expected)
    assert len(found) == len(wrong) and all(part in sentence for part, sentence in zip(wrong, found)), found


def test_what_is_left_is_found(tmp_path):
    job_id = "0123456789abcdef"
    leftovers = Leftovers(job_id, [tmp_path], [os.getpid()], lambda: [])
    assert leftovers.look() == []
    (tmp_path / "hvd.tmp").touch()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0hvd-{job_id}-x")
        found = leftovers.look_until_gone(limit=0.1)
    assert len(found) == 2 and "socket @hvd-" in found[0] and "hvd.tmp is left" in found[1], found
    folder = checks.cgroup_folder()
    if folder is not None and os.access(folder, os.W_OK):
        group = folder / f"hvd-{job_id}"
        group.mkdir()
        try:
            assert leftovers.of_cgroups() == [f"cgroup {group} is left"]
        finally:
            group.rmdir()


def test_a_process_that_outlives_its_job_is_found(monkeypatch):
    """A worker takes the mark of the job into a session of its own, and hvdrun with all its means is killed and cannot see it."""
    monkeypatch.setattr(checks, "GONE_LIMIT", 0.1)
    place = Machine()
    run = place.start()
    run.wait_until_at_work(place.size)
    environment = dict(os.environ, HVDRUN_TEST_MARK=run.job.mark)
    orphan = subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True)
    run.job.process.terminate()
    seen = run.finish()
    assert seen.code == 143 and any(str(orphan.pid) in sentence for sentence in seen.left), seen
    assert orphan.wait() == -signal.SIGKILL, "the next round finds nothing of it"


def test_a_job_that_does_not_end_is_found():
    place = Machine()
    run = place.start(FAMILY)
    run.wait_until_at_work(place.size)
    seen = run.finish(limit=0.1)
    assert seen.code is None and faults(seen, Expected({0}))
    wait_until("nothing left", lambda: not run.processes())
