"""What hvdrun and its ranks need and may lack: descriptors, room on disks, stdin; files of a job that dies; warnings; and other
hvdruns beside one that dies."""

import json
import os
import pathlib
import subprocess
import time

from checks import END_LIMIT, Expected, broken_json
from kinds import ABRT, KILL, SEGV, TERM, USR1, USR2, NoVictim, asked, asked_by, kind, one_of, some_worker
from places import CHATTER, LIFE

from conftest import hvdrun_path, wait_until  # isort: skip


def dies_or_is_asked(run, chance, early):
    if chance.random() < 0.5:
        return asked(run, chance, early)
    worker = some_worker(run, chance)
    run.strike(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)
    return Expected({137}, worker.cause("signal 9 "))


# ---- stdin


@kind(start={"wrapper": ["sh", "-c", 'exec "$@" <&-', "closed"]}, may_be_early=False)
def stdin_is_closed(run, chance, early):
    return dies_or_is_asked(run, chance, early)


@kind(start={"stdin": "/dev/zero"}, may_be_early=False)
def stdin_is_endless(run, chance, early):
    return dies_or_is_asked(run, chance, early)


@kind(start={"stdin": "/dev/zero", "options": ["--stdin", "all"]}, may_be_early=False)
def stdin_is_endless_for_all(run, chance, early):
    return dies_or_is_asked(run, chance, early)


# ---- limits


def works_or_says(run, chance, cause, codes):
    """It may be enough; if not, that is said."""
    size = run.place.size
    wait_until("work or an end", lambda: run.ended() or run.out().count("sum ") >= size, told=run.told)
    return Expected(codes, cause) if run.ended() else asked(run, chance, False)


def few_descriptors(count):
    return ["sh", "-c", f'ulimit -n {count}; exec "$@"', "few"]


# 1: hvdrun's own; 126: a host cannot start its ranks; 3: hvd.init() fails in them.
@kind(start={"wrapper": few_descriptors(10)}, begins_at_once=True, may_be_early=False)
def hvdrun_has_hardly_a_descriptor(run, chance, early):
    return works_or_says(run, chance, "Too many open files", {1})


@kind(start={"wrapper": few_descriptors(26)}, begins_at_once=True, may_be_early=False)
def hvdrun_has_few_descriptors(run, chance, early):
    return works_or_says(run, chance, "Too many open files", {1, 126, 3})


@kind(start={"wrapper": few_descriptors(34)}, begins_at_once=True, may_be_early=False)
def hvdrun_has_just_enough_descriptors(run, chance, early):
    return works_or_says(run, chance, "Too many open files", {1, 126, 3})


# ---- disks


@kind(on="machine", needs_root=True, command=CHATTER, may_be_early=False,
      start={"disk": "32k", "options": ["--output-filename", "{folder}/disk"]})
def the_disk_of_outputs_is_full(run, chance, early):
    """The job goes on, and it is said which file is not whole."""
    wait_until("its being said", lambda: run.ended() or "No space left on device" in run.err(), told=run.told)
    assert not run.ended(), run.told()
    worker = some_worker(run, chance)
    run.strike(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)
    return Expected({137}, worker.cause("signal 9 "))


@kind(on="machine", needs_root=True, may_be_early=False,
      start={"disk": "16k", "options": ["--timeline", "{folder}/disk/t.json", "--error-file", "{folder}/disk/e.json",
                                        "--dump-on-failure", "{folder}/disk/d.json"]})
def the_disk_of_reports_is_full(run, chance, early):
    (run.disk / "ballast").write_bytes(bytes(8192))  # what is left is enough for some of them
    worker = some_worker(run, chance)
    run.strike(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)
    return Expected({137}, worker.cause("signal 9 "), also=lambda seen: whole_or_absent(run.disk))


@kind(on="machine", needs_root=True, may_be_early=False, begins_at_once=True,
      start={"wrapper": ["unshare", "-m", "sh", "-c",
                         'mount -t tmpfs -o size=4k none /dev/shm && cat /dev/zero > /dev/shm/all 2>&-; exec "$@"', "full"]})
def shared_memory_is_full(run, chance, early):
    """Nothing of the job is there."""
    run.wait_until_at_work(run.place.size)
    return dies_or_is_asked(run, chance, False)


# ---- reports of a job that dies


REPORTS = ["--timeline", "{folder}/reports/t.json", "--error-file", "{folder}/reports/e.json",
           "--dump-on-failure", "{folder}/reports/d.json"]


def whole_or_absent(folder, needed=()):
    return [sentence for name in ("t.json", "e.json", "d.json") for sentence in broken_json(folder / name, name in needed)]


@kind(start={"options": REPORTS}, may_be_early=False)
def a_worker_of_a_reporting_job_dies(run, chance, early):
    """All reports are whole, and say the same as the screen."""
    worker, number = some_worker(run, chance), chance.choice([KILL, SEGV, ABRT])
    run.strike(number, f"rank {worker.rank} of {worker.host}", worker.pid)

    def also(seen):
        wrong = whole_or_absent(run.folder / "reports", ("t.json", "e.json", "d.json"))
        if not wrong:
            said = json.loads((run.folder / "reports" / "e.json").read_text())
            if (said["kind"], said["rank"], said["exit_code"]) != ("rank", worker.rank, 128 + number):
                wrong.append(f"the error file says {said}")
        return wrong

    return Expected({128 + number}, worker.cause(f"signal {number.value} "), also=also)


@kind(start={"options": REPORTS})
def a_reporting_hvdrun_dies(run, chance, early):
    """Nothing half is left."""
    number = chance.choice([KILL, SEGV])
    if chance.random() < 0.5 and not early:
        worker = some_worker(run, chance)
        run.strike(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)  # it writes its reports just then
        time.sleep(chance.uniform(0, 0.1))
    run.strike_if_there(number, "hvdrun", run.job.pid)  # which may end by itself in that moment
    return Expected({-number, 137}, also=lambda seen: whole_or_absent(run.folder / "reports"))


@kind(start={"options": REPORTS})
def a_reporting_hvdrun_is_asked(run, chance, early):
    run.strike(TERM, "hvdrun", run.job.pid)
    expected = asked_by(TERM, run, early)
    expected.also = lambda seen: whole_or_absent(run.folder / "reports")
    return expected


# ---- signals that warn


def warned(run, chance, handled):
    run.order(before=["handlers"] if handled else [], stays=True)
    run.wait_for_words("at work\n", run.place.size)
    number = chance.choice([USR1, USR2])
    run.strike(number, "hvdrun", run.job.pid)
    if handled:
        run.wait_for_words(f"got {number.name}\n", run.place.size)
    else:
        sentence = f"no rank handles signal {number.value} ({number.name})"
        wait_until("its being said", lambda: run.ended() or sentence in run.err(), told=run.told)
    return dies_or_is_told(run, chance)


def dies_or_is_told(run, chance):
    """As dies_or_is_asked(), of a job whose ranks are known to be at work."""
    assert not run.ended(), run.told()
    if chance.random() < 0.5:
        run.strike(TERM, "hvdrun", run.job.pid)
        return asked_by(TERM, run, False)
    worker = some_worker(run, chance)
    run.strike(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)
    return Expected({137}, worker.cause("signal 9 "))


@kind(command=LIFE, may_be_early=False)
def a_warning_is_handled(run, chance, early):
    return warned(run, chance, True)


@kind(command=LIFE, may_be_early=False)
def a_warning_is_not_handled(run, chance, early):
    return warned(run, chance, False)


# ---- other hvdruns


def begin_command(run, *words):
    run.note(f"hvdrun {' '.join(map(str, words))}")
    return subprocess.Popen(run.place.command(hvdrun_path(), *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def badly_ended(commands):
    """Each has ended in time, well or with a sentence; none has crashed."""
    wrong = []
    for command in commands:
        try:
            output = command.communicate(timeout=END_LIMIT)[0]
        except subprocess.TimeoutExpired:
            command.kill()
            output = command.communicate()[0] + " and did not end"
        if command.returncode not in (0, 1, 2) or (command.returncode and "hvdrun" not in output):
            wrong.append(f"{command.args[-4:]} ended with {command.returncode}: {output[-500:]}")
    return wrong


@kind(may_be_early=False)
def a_worker_dies_while_others_look(run, chance, early):
    looks = [("ps",), ("top", "--once", run.job_id), ("top", "--once", "--json", run.job_id),
             ("dump", run.job_id, "-o", run.folder / "d.json")]
    chance.shuffle(looks)
    worker = some_worker(run, chance)
    commands = []
    for number, look in enumerate(looks):
        if number == 2:
            run.strike(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)
        commands.append(begin_command(run, *look))
        time.sleep(chance.choice([0, 0.001, 0.01]))
    return Expected({137}, worker.cause("signal 9 "),
                    also=lambda seen: [*badly_ended(commands), *broken_json(run.folder / "d.json", False)])


@kind(may_be_early=False)
def hvdrun_dies_while_others_look(run, chance, early):
    commands = [begin_command(run, *words) for words in
                [("dump", run.job_id, "-o", run.folder / "d.json"), ("top", "--once", run.job_id), ("stop", run.job_id)]]
    time.sleep(chance.uniform(0, 0.05))
    codes = {130, -KILL}
    run.strike_if_there(KILL, "hvdrun", run.job.pid)
    return Expected(codes, also=lambda seen: [*badly_ended(commands), *broken_json(run.folder / "d.json", False)])


@kind(may_be_early=False)
def a_job_is_stopped(run, chance, early):
    """By one or by several at once, which is a second Ctrl-C."""
    commands = [begin_command(run, "stop", run.job_id) for _ in range(chance.choice([1, 1, 3]))]
    return Expected({130}, "hvdrun: ended by signal 2 ", also=lambda seen: badly_ended(commands))


@kind(may_be_early=False)
def a_worker_of_a_stopped_job_dies(run, chance, early):
    """Whichever comes first is the reason."""
    commands = [begin_command(run, "stop", run.job_id)]
    time.sleep(chance.uniform(0, 0.03))
    worker = one_of(chance, run.place.workers(run)) if run.place.workers(run) else None
    if worker is not None:
        run.strike_if_there(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)
    return Expected({130, 137}, also=lambda seen: badly_ended(commands))


@kind(start={"neighbour": True})
def a_job_beside_another_dies(run, chance, early):
    """The other one goes on as if nothing had been."""
    worker = some_worker(run, chance)
    run.strike(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)
    return Expected({137}, worker.cause("signal 9 "), also=lambda seen: wrong_of_neighbour(run.neighbour))


@kind(start={"neighbour": True})
def hvdrun_beside_another_dies(run, chance, early):
    run.strike(KILL, "hvdrun", run.job.pid)
    return Expected({-KILL}, also=lambda seen: wrong_of_neighbour(run.neighbour))


def wrong_of_neighbour(neighbour):
    if neighbour.ended():
        return [f"the job beside it ended with {neighbour.job.process.returncode}: {neighbour.told()}"]
    if len(neighbour.place.workers(neighbour)) != neighbour.place.size:
        return ["the job beside it has lost ranks"]
    return []


# ---- the clock on the wall

CLOCK = pathlib.Path(__file__).resolve().parent / "wall_clock.c"
PRELOADED = ["sh", "-c", f'cc -shared -fPIC -O1 -o "$0/wall_clock.so" {CLOCK} && export LD_PRELOAD="$0/wall_clock.so"; '
             'CHAOS_CLOCK="$0/clock" exec "$@"', "{folder}"]


@kind(on="machine", start={"wrapper": PRELOADED}, may_be_early=False)
def the_wall_clock_jumps(run, chance, early):
    """By a day, there and back; limits and heartbeats do not look at it."""
    if not (run.folder / "wall_clock.so").exists():
        raise NoVictim()  # there is no compiler
    for seconds in chance.choice([[86400], [-86400], [86400, 0], [-86400, 86400], [3600 * 24 * 365 * 30]]):
        run.note(f"the clock on the wall jumps to {seconds} s from the time")
        (run.folder / "clock.part").write_text(f"{seconds}\n")
        os.replace(run.folder / "clock.part", run.folder / "clock")
        time.sleep(chance.uniform(0, 1.5))
    return dies_or_is_asked(run, chance, early)
