"""Injuries from outside: signals, terminals, readers, links. Each is a function that injures a run (places.py) and says what
must come of it."""

import os
import subprocess
import time

from checks import Expected
from kinds import (ABRT, ASKS, CONT, DEADLY, ENDS_HVDRUN, INT, KILL, QUIT, SEGV, STOP, TERM, TSTP, NoVictim, asked, asked_by,
                   either, kind, some_agent, some_worker)
from places import CHATTER, FAMILY

from conftest import state_of, wait_until  # isort: skip


# ---- one process dies


@kind()
def a_worker_dies(run, chance, early):
    worker, number = some_worker(run, chance), chance.choice([number for number in DEADLY if number != INT])
    run.strike(number, f"rank {worker.rank} of {worker.host}", worker.pid)
    return Expected({128 + number}, worker.cause(f"signal {number.value} "))


@kind()
def a_worker_leaves_with_an_exception(run, chance, early):
    """It is Python that ends it, and says goodbye to its peers on the way; they may be gone sooner."""
    worker = some_worker(run, chance)
    run.strike(INT, f"rank {worker.rank} of {worker.host}", worker.pid)
    if early:  # while Python starts: some of its code makes exit code 1 of it
        return Expected({130, 1}, worker.cause(""))
    return Expected({130}, worker.cause("signal 2 "))


@kind(command=FAMILY)
def a_worker_with_a_family_dies(run, chance, early):
    worker, number = some_worker(run, chance), chance.choice([KILL, SEGV, ABRT])
    run.strike(number, f"rank {worker.rank} of {worker.host}", worker.pid)
    return Expected({128 + number}, worker.cause(f"signal {number.value} "))


@kind()
def an_agent_dies(run, chance, early):
    pair, number = some_agent(run, chance), chance.choice(DEADLY)
    run.strike(number, f"the agent of {pair.host}", pair.agent)
    return Expected({1}, None if early else pair.cause(f"the agent was ended by signal {number.value}"))


@kind(command=FAMILY)
def an_agent_of_families_dies(run, chance, early):
    return an_agent_dies(run, chance, early)


@kind()
def a_warden_dies(run, chance, early):
    pair, number = some_agent(run, chance), chance.choice(DEADLY)
    run.strike(number, f"the warden of {pair.host}", pair.warden)
    return Expected({1}, None if early else pair.cause())


@kind()
def hvdrun_dies(run, chance, early):
    number = chance.choice(ENDS_HVDRUN)
    run.strike(number, "hvdrun", run.job.pid)
    return Expected({-number})


@kind(command=FAMILY)
def hvdrun_of_families_dies(run, chance, early):
    return hvdrun_dies(run, chance, early)


@kind()
def hvdrun_is_asked(run, chance, early):
    number = chance.choice(ASKS)
    run.strike(number, "hvdrun", run.job.pid)
    return asked_by(number, run, early)


@kind()
def the_group_is_signalled(run, chance, early):
    number = chance.choice(DEADLY)
    run.note(f"{number.name} to the process group")
    os.killpg(run.job.pid, number)
    return asked_by(number, run, early) if number in ASKS else Expected({-number})


# ---- several die


@kind()
def two_workers_die(run, chance, early):
    workers = run.place.workers(run)
    if len(workers) < 2:
        raise NoVictim()
    causes, codes = [], set()
    for worker in chance.sample(workers, 2):
        number = chance.choice([KILL, SEGV, ABRT])
        if run.strike_if_there(number, f"rank {worker.rank} of {worker.host}", worker.pid):
            codes.add(128 + number)
            causes.append(worker.cause(f"signal {number.value} "))
        time.sleep(chance.choice([0, 0.001, 0.005]))
    return Expected(codes, either(*causes))


@kind()
def a_pair_dies(run, chance, early):
    worker, pair = some_worker(run, chance), some_agent(run, chance)
    victims = {"worker": worker.pid, "agent": pair.agent, "warden": pair.warden, "hvdrun": run.job.pid}
    chosen = chance.sample(sorted(victims), 2)
    codes, causes = set(), []
    for name in chosen:
        number = chance.choice([KILL, SEGV, ABRT])
        if not run.strike_if_there(number, name, victims[name]):
            continue
        codes |= {"worker": {128 + number}, "hvdrun": {-number}}.get(name, {1})
        causes.append({"worker": worker.cause(""), "hvdrun": ""}.get(name, pair.cause()))
        time.sleep(chance.choice([0, 0.001, 0.003]))
    return Expected(codes, either(*causes))


def all_three(run, chance, early):
    pair = some_agent(run, chance)
    three = [("hvdrun", run.job.pid), ("the agent", pair.agent), ("the warden", pair.warden)]
    chance.shuffle(three)
    for what, pid in three:
        run.strike_if_there(KILL, what, pid)
    wait_until("the end of all three", lambda: run.ended() and state_of(pair.agent) in "ZX" and state_of(pair.warden) in "ZX")
    run.place.clear_up()
    return Expected({-KILL, 1})  # 1: on a busy machine hvdrun heard of the others' end before its own turn came


@kind()
def all_three_die(run, chance, early):
    return all_three(run, chance, early)


@kind(command=FAMILY)
def all_three_die_and_leave_a_family(run, chance, early):
    return all_three(run, chance, early)


# ---- stopped


@kind()
def a_worker_pauses(run, chance, early):
    worker = some_worker(run, chance)
    run.strike(chance.choice([STOP, TSTP]), f"rank {worker.rank} of {worker.host}", worker.pid)
    time.sleep(chance.uniform(0, 0.5))
    run.strike(CONT, f"rank {worker.rank}", worker.pid)
    return asked(run, chance, early)


@kind()
def a_job_with_a_stopped_worker_is_asked(run, chance, early):
    worker = some_worker(run, chance)
    run.strike(STOP, f"rank {worker.rank} of {worker.host}", worker.pid)
    run.strike(TERM, "hvdrun", run.job.pid)
    return asked_by(TERM, run, early)


@kind()
def an_agent_pauses(run, chance, early):
    pair = some_agent(run, chance)
    victim = chance.choice([pair.agent, pair.warden])
    run.strike(STOP, f"the agent or warden of {pair.host}", victim)
    time.sleep(chance.uniform(0, 0.5))
    run.strike(CONT, f"the agent or warden of {pair.host}", victim)
    return asked(run, chance, early)


@kind(may_be_early=False)
def an_agent_stays_stopped(run, chance, early):
    pair = some_agent(run, chance)
    for pid in chance.choice([[pair.agent], [pair.warden, pair.agent]]):
        run.strike(STOP, f"the agent or warden of {pair.host}", pid)
    return Expected({1}, pair.cause("its agent has been silent for 3 s"))


@kind()
def the_driver_of_a_stopped_agent_dies(run, chance, early):
    run.strike(STOP, "the agent", some_agent(run, chance).agent)
    run.strike(KILL, "hvdrun", run.job.pid)
    return Expected({-KILL})


def pause_until_continued(run):
    """Since the signal that stops it was sent. In its first milliseconds hvdrun is deaf to Ctrl-Z: nobody would continue it."""
    end = time.monotonic() + 2
    while state_of(run.job.pid) != "T" and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.1)
    run.strike(CONT, "hvdrun", run.job.pid)
    wait_until("hvdrun to go on", lambda: state_of(run.job.pid) != "T")


@kind()
def hvdrun_pauses(run, chance, early):
    run.strike(chance.choice([STOP, TSTP]), "hvdrun", run.job.pid)
    pause_until_continued(run)
    return asked(run, chance, early)


# ---- terminal and reader


@kind(on="machine", start={"terminal": True}, may_be_early=False)
def the_terminal_is_closed(run, chance, early):
    run.close_terminal()
    return Expected({129})


@kind(on="machine", start={"terminal": True}, may_be_early=False)
def a_key_is_pressed(run, chance, early):
    key = chance.choice(["Ctrl-C", "Ctrl-\\", "Ctrl-Z"])
    run.press(bytes([ord(key[-1]) & 0x1F]), key)
    if key != "Ctrl-Z":
        return asked_by(INT if key == "Ctrl-C" else QUIT, run, early)
    pause_until_continued(run)
    return asked(run, chance, early)


@kind(command=CHATTER, start={"reader": True}, may_be_early=False)
def the_reader_goes_away(run, chance, early):
    """Then nobody needs what the workers say; that the job ends by itself of it is as good as that it goes on."""
    run.close_reader()
    time.sleep(chance.uniform(0, 0.3))
    run.strike(TERM, "hvdrun", run.job.pid)
    return Expected({143, 141, 1})


@kind(command=CHATTER, start={"reader": True}, may_be_early=False)
def the_reader_blocks_and_a_worker_dies(run, chance, early):
    worker = some_worker(run, chance)
    run.strike(KILL, f"rank {worker.rank} of {worker.host}", worker.pid)
    time.sleep(0.1)
    run.close_reader()  # or its last lines would wait for ever
    return Expected({137}, worker.cause("signal 9 "))


@kind(command=CHATTER, start={"reader": True}, may_be_early=False)
def the_reader_blocks_and_the_job_is_asked(run, chance, early):
    time.sleep(chance.uniform(0, 0.3))
    run.strike(TERM, "hvdrun", run.job.pid)
    return Expected({143})


# ---- links between hosts


def some_host(run, chance):
    return chance.choice(run.place.hosts)


@kind(on="hosts", may_be_early=False)
def a_link_is_cut(run, chance, early):
    host = some_host(run, chance)
    run.note(f"the link of {host.name} is cut")
    host.cut()
    return Expected({1}, f"hvdrun: host {host.name} was lost: its agent has been silent for 3 s")


@kind(on="hosts", may_be_early=False)
def a_link_is_cut_and_healed(run, chance, early):
    host = some_host(run, chance)
    run.note(f"the link of {host.name} is cut")
    host.cut()
    time.sleep(chance.uniform(0.1, 1))
    host.join()
    run.note("and healed")
    time.sleep(chance.uniform(0, 0.5))
    return asked(run, chance, early)


@kind(on="hosts", start={"options": ["--driver-grace", "60"]}, may_be_early=False)
def a_link_is_healed_within_the_grace(run, chance, early):
    host = some_host(run, chance)
    run.note(f"the link of {host.name} is cut")
    host.cut()
    wait_until("the loss", lambda: f"the connection to host {host.name} was lost" in run.err())
    host.join()
    run.note("and healed")
    wait_until("its return", lambda: f"host {host.name} is back after" in run.err(), told=run.err)
    return asked(run, chance, early)


@kind(on="hosts", may_be_early=False)
def a_session_dies(run, chance, early):
    host = some_host(run, chance)
    run.note(f"the sshd session of {host.name} is killed")
    host.kill_sshd()
    return Expected({1}, f"hvdrun: host {host.name} was lost: .*connection")


DATA_PORTS = "43000-43999"


def drop_data_ports(run, host):
    run.note(f"the data ports of {host.name} are dropped")
    rules = "".join(f" chain {hook} {{\n type filter hook {hook} priority 0;\n tcp dport {DATA_PORTS} drop\n"
                    f" tcp sport {DATA_PORTS} drop\n }}\n" for hook in ("input", "output"))
    host.run("nft", "-f", "-", input=f"table inet chaos {{\n{rules}}}\n")


@kind(on="hosts", start={"options": ["--port-range", DATA_PORTS]}, may_be_early=False)
def data_ports_are_dropped(run, chance, early):
    """SSH still works; the ranks do not reach each other any more, and no rank is to blame."""
    drop_data_ports(run, some_host(run, chance))
    # The code of the first rank that ended because of it (the workers': 3), or 1 when hvdrun had to end them.
    return Expected({1, 3}, "hvd1.*hvd2|hvd2.*hvd1", not_a_cause=r"hvdrun: rank \d+ .* failed")


@kind(on="hosts", start={"options": ["--port-range", DATA_PORTS]}, may_be_early=False)
def data_ports_are_dropped_for_a_moment(run, chance, early):
    host = some_host(run, chance)
    drop_data_ports(run, host)
    time.sleep(chance.uniform(0.1, 1))
    subprocess.run(host.command("nft", "delete", "table", "inet", "chaos"), check=True)
    run.note("and let through again")
    time.sleep(chance.uniform(0, 0.5))
    return asked(run, chance, early)
