"""What a kind of injury is, the list of all, and what many of them need."""

import dataclasses
import os
import signal
from typing import Callable

from checks import Expected
from places import SUMS

KILL, TERM, INT, HUP, QUIT, SEGV, ABRT = (getattr(signal, f"SIG{name}") for name in "KILL TERM INT HUP QUIT SEGV ABRT".split())
STOP, CONT, TSTP, USR1, USR2 = signal.SIGSTOP, signal.SIGCONT, signal.SIGTSTP, signal.SIGUSR1, signal.SIGUSR2
DEADLY = [KILL, TERM, INT, HUP, QUIT, SEGV, ABRT]
ASKS = [TERM, INT, HUP, QUIT]  # hvdrun takes these for a wish
ENDS_HVDRUN = [KILL, SEGV, ABRT]


class NoVictim(Exception):
    """It is too early: there is none yet."""


@dataclasses.dataclass
class Kind:
    name: str
    injure: Callable
    on: str = "machine hosts"
    command: list = dataclasses.field(default_factory=lambda: SUMS)
    start: dict = dataclasses.field(default_factory=dict)  # more for the start of the job
    may_be_early: bool = True
    needs_root: bool = False
    begins_at_once: bool = False  # the injury is of the start: all rounds are early ones, and nothing is waited for


KINDS = []


def kind(**more):
    def add(function):
        KINDS.append(Kind(function.__name__, function, **more))
        return function
    return add


def kinds_on(place_is_hosts):
    where = "hosts" if place_is_hosts else "machine"
    return [kind for kind in KINDS if where in kind.on and (os.geteuid() == 0 or not kind.needs_root)]


def one_of(chance, found):
    if not found:
        raise NoVictim()
    return chance.choice(found)


def some_worker(run, chance):
    return one_of(chance, run.place.workers(run))


def some_agent(run, chance):
    return one_of(chance, run.place.agents(run))


def either(*causes):
    return "(?:" + "|".join(causes) + ")"


def asked(run, chance, early):
    """The job goes on, and ends when it is asked to."""
    if not early or chance.random() < 0.5:
        run.wait_until_at_work(run.place.size)
    if run.ended():
        return Expected(set())  # for nothing
    run.strike(TERM, "hvdrun", run.job.pid)
    return asked_by(TERM, run, early)


def asked_by(number, run, early):
    """In its first milliseconds hvdrun does not listen yet, and ends as any program does. The last words on a terminal are
    lost when the process to which it belongs ends and nobody has read them yet."""
    codes = {128 + number, -number} if early else {128 + number}
    return Expected(codes, None if early or run.on_terminal else rf"hvdrun: ended by signal {number} ")
