"""Deaths in named phases of a rank's life, and ways to die: chaos_worker.py injures itself where it is ordered to."""

import os

from checks import Expected, control_characters, no_longer_than
from kinds import ABRT, KILL, SEGV, either, kind, some_worker
from places import LIFE

from conftest import read_proc  # isort: skip

SIGNALS = [KILL, SEGV, ABRT]
EARLY = "before init", "in init"


def some_way(chance, ways=("signal", "_exit", "exit")):
    """(what to order, the exit code of the job, how hvdrun names it). 75 and 79 mean something of their own."""
    way = chance.choice(ways)
    if way == "signal":
        number = chance.choice(SIGNALS)
        return {"way": number.name}, 128 + number, f"signal {number.value} "
    code = chance.choice([1, 2, 7, 42, 74, 76, 126, 127, 128, 130, 137, 200, 254, 255])
    return {"way": way, "more": code}, code, rf"exit code {code}\b"


def ordered(run, chance, phase, ways=("signal", "_exit", "exit"), **more):
    victim = some_worker(run, chance)
    orders, code, how = some_way(chance, ways)
    run.order(rank=victim.rank, phase=phase, **orders, **more)
    return Expected({code}, victim.cause(how))


@kind(command=LIFE, may_be_early=False)
def a_worker_dies_before_init(run, chance, early):
    return ordered(run, chance, "before init")


@kind(command=LIFE, may_be_early=False)
def a_worker_dies_in_init(run, chance, early):
    """The others come later, so it is there for a while."""
    return ordered(run, chance, "in init", ("signal", "_exit"), after=chance.uniform(0, 0.15))


@kind(command=LIFE, may_be_early=False)
def a_worker_dies_between_collectives(run, chance, early):
    return ordered(run, chance, "between collectives", ("signal", "_exit"))


@kind(command=LIFE, may_be_early=False)
def a_worker_dies_in_shutdown(run, chance, early):
    return ordered(run, chance, "in shutdown", ("signal", "_exit"), after=chance.choice([0, 0.0005, 0.001, 0.003, 0.1]))


@kind(command=LIFE, may_be_early=False)
def a_worker_dies_after_shutdown(run, chance, early):
    """Its peers may have ended well by then; they make no success of it."""
    return ordered(run, chance, "after shutdown")


@kind(command=LIFE, may_be_early=False)
def a_worker_dies_in_an_atexit_handler(run, chance, early):
    return ordered(run, chance, "in an atexit handler", ("signal", "_exit"))


@kind(command=LIFE, may_be_early=False)
def a_worker_leaves_with_zero_in_the_middle(run, chance, early):
    victim = some_worker(run, chance)
    run.order(rank=victim.rank, phase="between collectives", way="_exit", more=0)
    return Expected({1}, victim.cause("").replace(" failed: ", " ended too early "))


@kind(command=LIFE, may_be_early=False)
def all_workers_die_at_once(run, chance, early):
    workers = run.place.workers(run)
    number = chance.choice(SIGNALS)
    run.order(rank="all", phase=chance.choice([*EARLY, "between collectives", "after shutdown"]), way=number.name, after=0.05)
    return Expected({128 + number}, either(*(worker.cause(f"signal {number.value} ") for worker in workers)))


def raised(run, chance, **orders):
    victim = some_worker(run, chance)
    run.order(rank=victim.rank, phase=chance.choice(["before init", "between collectives", "after shutdown"]), **orders)
    return victim.cause(r"exit code 1\.")


@kind(command=LIFE, may_be_early=False)
def a_worker_raises_a_long_message(run, chance, early):
    """Of its lines on stderr the last block has some, not a megabyte of them."""
    cause = raised(run, chance, way="a long message", more=chance.choice([5000, 70000, 1 << 20]))
    return Expected({1}, cause, also=no_longer_than(20000))


@kind(command=LIFE, may_be_early=False)
def a_worker_raises_control_characters(run, chance, early):
    return Expected({1}, raised(run, chance, way="control characters"), also=control_characters)


@kind(command=LIFE, may_be_early=False)
def a_worker_runs_out_of_memory(run, chance, early):
    return Expected({1}, raised(run, chance, way="memory"))


@kind(command=LIFE, may_be_early=False)
def a_worker_runs_out_of_descriptors(run, chance, early):
    return Expected({1}, raised(run, chance, way="descriptors"))


@kind(command=LIFE, may_be_early=False)
def a_worker_with_a_daemon_dies(run, chance, early):
    """The daemon has forked twice and has nothing of the job any more, neither its environment nor its descriptors."""
    victim = some_worker(run, chance)
    run.order(rank=victim.rank, phase=chance.choice(["before init", "between collectives"]), way="daemon")
    return Expected({137}, victim.cause("signal 9 "))


def resident(pid):
    return int((read_proc(pid, "statm").split() or [0, 0])[1])


@kind(command=LIFE, may_be_early=False)
def the_largest_worker_is_killed(run, chance, early):
    """As by the kernel for lack of memory."""
    victim = some_worker(run, chance)
    run.order(rank=victim.rank, before=["large"], stays=True)
    run.wait_for_words("at work\n", run.place.size)
    largest = max(run.place.workers(run), key=lambda worker: resident(worker.pid))
    run.strike(KILL, f"rank {largest.rank} of {largest.host}", largest.pid)
    return Expected({137}, victim.cause("signal 9 "))


@kind(command=LIFE, may_be_early=False)
def a_worker_dies_beside_a_flood(run, chance, early):
    """One prints as fast as it can, another dies: the last block is about that one."""
    flooder, victim = chance.sample(run.place.workers(run), 2)
    orders, code, how = some_way(chance, ("signal", "_exit"))
    run.order(rank=victim.rank, phase="between collectives", before=["flood"], flooder=flooder.rank, **orders)
    return Expected({code}, victim.cause(how) + r"(?!(?s:.)*\nhvdrun: rank)")


@kind(command=LIFE, may_be_early=False)
def a_worker_closes_its_descriptors(run, chance, early):
    """0 to 2 before hvd.init(): what it prints then goes nowhere, least of all into a connection of the runtime."""
    victim = some_worker(run, chance)
    run.order(rank=victim.rank, before=["closed"], stays=True)
    run.wait_for_words("at work\n", run.place.size - 1)
    if chance.random() < 0.5:
        run.strike(KILL, f"rank {victim.rank} of {victim.host}", victim.pid)
        return Expected({137}, victim.cause("signal 9 "))
    os.kill(run.job.pid, 15)
    return Expected({143}, "hvdrun: ended by signal 15 ")
