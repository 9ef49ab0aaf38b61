"""Random injuries, and what must come of each: README.md."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import checks  # noqa: E402
import changes  # noqa: E402, F401
import injuries  # noqa: E402
import phases  # noqa: E402, F401
import resources  # noqa: E402, F401
import weather  # noqa: E402, F401
from checks import Expected, Leftovers, Seen, faults, is_listed  # noqa: E402
from kinds import KINDS, NoVictim, kinds_on  # noqa: E402
from places import FAMILY, Hosts, Machine  # noqa: E402

from conftest import wait_until  # noqa: E402  # isort: skip
from host_rig import WHY_NOT  # noqa: E402  # isort: skip

EARLY_S = 0.15
MOST_WRONG = 10  # rounds; then it stops
SEED = int(os.environ.get("HVD_CHAOS_SEED", time.time()))
SOAK = os.environ.get("HVD_SOAK") == "1"
ROUNDS = int(os.environ.get("HVD_SOAK_ROUNDS", 500)) if SOAK else 18


def rounds():
    some = os.environ.get("HVD_CHAOS_ROUND")
    if some is None:
        return range(ROUNDS)
    first, _, last = some.partition("-")
    return range(int(first), int(last or first) + 1)


def kind_of(place, number):
    """All kinds have their turns, in an order that differs from turn to turn; every fourth round is an early one."""
    early = number % 4 == 3
    kinds = kinds_on(place.hosts is not None)
    one = os.environ.get("HVD_CHAOS_KIND")
    if one is not None:
        early = early and one in [kind.name for kind in kinds if kind.may_be_early]
        return next(kind for kind in kinds if kind.name == one), early
    kinds = [kind for kind in kinds if kind.may_be_early or not early]
    turn, which = divmod(number // 4 if early else number - number // 4, len(kinds))
    random.Random(f"{SEED} {place.name} {turn}").shuffle(kinds)
    return kinds[which], early


def begin(place, kind, early, chance):
    start = dict(kind.start)
    neighbour = None
    if start.pop("neighbour", False):
        neighbour = place.start()
        neighbour.wait_until_at_work(place.size)
    run = place.start(kind.command, **start)
    run.neighbour = neighbour
    if kind.begins_at_once:
        run.note_job_id()
    elif early:
        time.sleep(chance.uniform(0, EARLY_S))
        run.note_job_id()
    else:
        run.wait_until_at_work(place.size)
    return run


def injure(run, kind, early, chance):
    try:
        return kind.injure(run, chance, early)
    except NoVictim:
        run.note("there is no such victim yet")
        return injuries.hvdrun_dies(run, chance, early)


def end_neighbour(run):
    """Faults of the job beside it: nothing has happened to that one."""
    if run.neighbour is None:
        return []
    run.neighbour.job.process.terminate()
    found = [f"the job beside it: {sentence}" for sentence in faults(run.neighbour.finish(), Expected({143}))]
    run.neighbour.remove()
    return found


def play(place, number):
    """One round; what is wrong, with all that is needed to understand it and to play it again, or nothing."""
    kind, early = kind_of(place, number)
    chance = random.Random(f"{SEED} {place.name} {number}")
    run = begin(place, kind, early, chance)
    expected, trouble = Expected(set()), []
    try:
        expected = injure(run, kind, early, chance)
    except BaseException as error:  # what wait_until raises, too
        trouble = [f"{type(error).__name__}: {error}"]
        run.job.process.kill()
        if isinstance(error, KeyboardInterrupt):
            raise
    try:
        seen = run.finish()
        found = trouble or [*faults(seen, expected), *is_listed(run.job_id, place.listings())]
        found += end_neighbour(run)
    finally:
        place.heal()
        run.remove()
    if not found:
        return None
    one = f" HVD_CHAOS_KIND={kind.name}" if "HVD_CHAOS_KIND" in os.environ else ""
    return "\n  ".join([f"round {number} on {place.name}, {kind.name}{', early' if early else ''}:", *run.notes,
                        *(f"WRONG: {sentence}" for sentence in found), "hvdrun said:", *seen.words.splitlines()[-15:],
                        f"once more: HVD_CHAOS_SEED={SEED} HVD_CHAOS_ROUND={number}{one} python3 -m pytest -q test/chaos"])


def play_all(place, capsys):
    with capsys.disabled():
        print(f"\nchaos on {place.name}: seed {SEED}, {len(rounds())} rounds", flush=True)
    wrong = []
    for number in rounds():
        if found := play(place, number):
            wrong.append(found)
            with capsys.disabled():
                print(f"\n{found}", flush=True)
            if len(wrong) == MOST_WRONG:
                break
        if SOAK and number % 50 == 49:
            with capsys.disabled():
                print(f"{number + 1} rounds on {place.name}", flush=True)
    if wrong:
        pytest.fail(f"{len(wrong)} rounds went wrong:\n\n" + "\n\n".join(wrong), pytrace=False)


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
    environment = dict(os.environ, MARK_OF_HVDRUN_TEST=run.job.mark)
    orphan = subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True)
    run.job.process.terminate()
    seen = run.finish()
    run.remove()
    assert seen.code == 143 and any(str(orphan.pid) in sentence for sentence in seen.left), seen
    assert orphan.wait() == -signal.SIGKILL, "the next round finds nothing of it"


def test_a_job_that_does_not_end_is_found():
    place = Machine()
    run = place.start(FAMILY)
    run.wait_until_at_work(place.size)
    seen = run.finish(limit=0.1)
    run.remove()
    assert seen.code is None and faults(seen, Expected({0}))
    wait_until("nothing left", lambda: not run.processes())


SHORT_BLOCK = ("[1]<stderr>:\x1b[2J\n"
               "hvdrun: rank 1 on host a (pid 7) failed: exit code 1.\n    \\x1b[2J\n  2 other ranks were ended because of it.\n")


@pytest.mark.parametrize("words, wrong", [
    (SHORT_BLOCK, None),  # what is raw before the last block is the rank's own
    (SHORT_BLOCK + "\x1b[2J", "has the character '\\x1b'"),
    (SHORT_BLOCK + "a\rb", "has the character '\\r'"),
    (SHORT_BLOCK + "\x9b31m", "has the character '\\x9b'"),
    (SHORT_BLOCK + "x" * 20000, "characters"),
])
def test_a_bad_last_block_is_a_fault(words, wrong):
    seen = Seen(1, words, [])
    found = [*checks.control_characters(seen), *checks.no_longer_than(20000)(seen)]
    assert len(found) == (wrong is not None) and (not found or wrong in found[0]), found


@pytest.mark.parametrize("output, wrong", [
    ("[0]<stdout>:counted 300 items in 2 steps, size 2\n[1]<stdout>:counted 300 items in 2 steps, size 2\n", None),
    ("[0]<stdout>:counted 300 items in 2 steps, size 2\n", "the ranks have counted"),
    ("[0]<stdout>:counted 300 items in 2 steps, size 2\n[1]<stdout>:counted 666 items in 3 steps, size 2\n",
     "the ranks have counted"),
    ("[0]<stdout>:counted 301 items in 2 steps, size 1\n", "24 items make 301"),
    ("AssertionError\n[0]<stdout>:counted 300 items in 2 steps, size 1\n", "wrongly"),
    ("", "the ranks have counted"),
])
def test_a_wrong_count_is_a_fault(output, wrong):
    found = checks.wrongly_counted(output)
    assert len(found) == (wrong is not None) and (not found or wrong in found[0]), found


def test_half_a_report_is_a_fault(tmp_path):
    assert checks.broken_json(tmp_path / "t.json", False) == []
    assert checks.broken_json(tmp_path / "t.json", True) == ["there is no t.json"]
    (tmp_path / "t.json").write_text('[{"a": 1}]')
    assert checks.broken_json(tmp_path / "t.json", True) == []
    (tmp_path / "t.json").write_text('[{"a": 1},')
    assert "t.json is not JSON" in checks.broken_json(tmp_path / "t.json", False)[0]


def test_a_job_that_is_still_listed_is_a_fault():
    place = Machine()
    run = place.start()
    run.wait_until_at_work(place.size)
    assert len(checks.is_listed(run.job_id, place.listings())) == 1
    run.job.process.terminate()
    assert run.finish().code == 143 and checks.is_listed(run.job_id, place.listings()) == []
    run.remove()


def test_a_command_that_crashes_is_a_fault():
    place = types.SimpleNamespace(command=lambda *words: ["sh", "-c", "kill -6 $$"])
    run = types.SimpleNamespace(place=place, note=lambda words: None)
    assert len(resources.badly_ended([resources.begin_command(run, "ps")])) == 1


def test_a_daemon_that_outlives_its_job_is_found(monkeypatch):
    """It has no mark; a copy of one, since hvdrun itself ends them."""
    monkeypatch.setattr(checks, "GONE_LIMIT", 0.1)
    place = Machine()
    run = place.start()
    run.wait_until_at_work(place.size)
    orphan = subprocess.Popen(["sleep", "6000"], env={}, start_new_session=True)
    (run.folder / "daemons").mkdir()
    (run.folder / "daemons" / str(orphan.pid)).touch()
    run.job.process.terminate()
    seen = run.finish()
    run.remove()
    assert seen.code == 143 and any(str(orphan.pid) in sentence for sentence in seen.left), seen
    assert orphan.wait() == -signal.SIGKILL, "the next round finds nothing of it"


def test_all_kinds_have_names_of_their_own_and_are_counted():
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    counts = f"all {len(KINDS)} kinds of\ninjury ({sum('machine' in kind.on for kind in KINDS)} of them on one machine, "
    counts += f"{sum('hosts' in kind.on for kind in KINDS)} over hosts)"
    assert counts in (pathlib.Path(__file__).parent / "README.md").read_text(), counts
    assert f"{len(KINDS)} kinds of" in (pathlib.Path(__file__).parents[1] / "README.md").read_text()
