"""Injuries of elastic jobs, above all while a world forms again: all that is counted is counted once, whatever happens."""

import time

from checks import Expected, wrongly_counted
from kinds import KILL, TERM, either, kind, some_agent, some_worker
from places import ELASTIC

from conftest import state_of, wait_until  # isort: skip


def kill_worker(run, chance):
    worker = some_worker(run, chance)
    run.strike_if_there(KILL, f"pid {worker.named_pid} of {worker.host}", worker.pid)
    return worker


def lost(run, worker):
    """Its number was another one when it was started, so it is named by its process."""
    return rf"hvdrun: rank \d+ on host {run.place.host_pattern} \(pid {worker.named_pid}\) failed: signal 9 "


def host_lost(run, pair):
    return rf"host {pair.host if run.place.hosts else run.place.host_pattern} was lost"


def worlds(run):
    return run.out().count(" begins as rank ") + run.out().count(">:begins as rank ")


def finishes(run, cause=None, before=None):
    """The job trains on, in another world if there was one `before`, and ends well."""
    if before is not None:
        wait_until("another world", lambda: run.ended() or worlds(run) > before, told=run.told)
    run.wait_for_progress()
    (run.folder / "finish").touch()
    run.note("it is to finish")
    return Expected({0}, cause, also=lambda seen: wrongly_counted(run.out()))


def break_world(run, chance):
    """Kills a worker; the world forms again from now on."""
    worker = kill_worker(run, chance)
    if chance.random() < 0.5:
        wait_until("its end", lambda: state_of(worker.pid) in "ZX")
    else:
        wait_until("its being said", lambda: run.ended() or f"(pid {worker.named_pid})" in run.err(), told=run.told)
    time.sleep(chance.choice([0, 0, 0.001, 0.01, 0.1]))
    return worker


def fewer(run, chance):
    hosts = list(run.place.elastic_hosts)
    which = chance.randrange(len(hosts))
    hosts[which] = (hosts[which][0], chance.choice([0, hosts[which][1] - 1]))
    return hosts


def more(run):
    return [(name, slots + 1) for name, slots in run.place.elastic_hosts]


@kind(command=ELASTIC, may_be_early=False)
def an_elastic_worker_dies(run, chance, early):
    before = worlds(run)
    worker = kill_worker(run, chance)
    return finishes(run, lost(run, worker), before)


@kind(command=ELASTIC, may_be_early=False)
def an_elastic_worker_dies_while_the_world_forms(run, chance, early):
    before = worlds(run)
    workers = [break_world(run, chance), kill_worker(run, chance)]
    return finishes(run, either(*(lost(run, worker) for worker in workers)), before)


@kind(command=ELASTIC, may_be_early=False)
def all_elastic_workers_die_at_once(run, chance, early):
    """Nobody has the state any more: the training begins again."""
    before = worlds(run)
    for worker in run.place.workers(run):
        run.strike_if_there(KILL, f"pid {worker.named_pid} of {worker.host}", worker.pid)
    return finishes(run, "signal 9 ", before)


@kind(command=ELASTIC, may_be_early=False)
def an_elastic_agent_dies_while_the_world_forms(run, chance, early):
    before = worlds(run)
    pair = some_agent(run, chance)
    break_world(run, chance)
    run.strike_if_there(KILL, f"the agent of {pair.host}", pair.agent)
    return finishes(run, host_lost(run, pair), before)


@kind(command=ELASTIC, may_be_early=False)
def an_elastic_warden_dies_while_the_world_forms(run, chance, early):
    before = worlds(run)
    pair = some_agent(run, chance)
    break_world(run, chance)
    run.strike_if_there(KILL, f"the warden of {pair.host}", pair.warden)
    return finishes(run, host_lost(run, pair), before)


@kind(command=ELASTIC, may_be_early=False)
def hvdrun_dies_while_the_world_forms(run, chance, early):
    break_world(run, chance)
    run.strike(KILL, "hvdrun", run.job.pid)
    return Expected({-KILL})


@kind(command=ELASTIC, may_be_early=False)
def an_elastic_job_is_asked_while_the_world_forms(run, chance, early):
    """75: its ranks left at a commit, which they may reach or not."""
    break_world(run, chance)
    run.strike(TERM, "hvdrun", run.job.pid)
    return Expected({75, 143}, "hvdrun: (?:the ranks left after their step|ended by signal 15)")


@kind(command=ELASTIC, may_be_early=False)
def a_host_leaves_while_the_world_forms(run, chance, early):
    before = worlds(run)
    break_world(run, chance)
    run.note("a host leaves the list")
    run.list_hosts(fewer(run, chance))
    return finishes(run, "signal 9 ", before)


@kind(on="hosts", command=ELASTIC, may_be_early=False)
def a_link_is_cut_while_the_world_forms(run, chance, early):
    before = worlds(run)
    break_world(run, chance)
    host = chance.choice(run.place.hosts)
    run.note(f"the link of {host.name} is cut")
    host.cut()
    return finishes(run, f"host {host.name} was lost", before)


# ---- discovery

BAD_SCRIPTS = ["exit 3\n", "echo a:b:c\n", "echo ' '; exit 1\n", "kill -9 $$\n", "printf 'hvd1:\\000\\n'\n",
               "seq 1000000\n", "exit 0\n"]


@kind(command=ELASTIC, may_be_early=False)
def the_discovery_fails(run, chance, early):
    """The last good list counts, also for the place of a worker that dies then."""
    run.write_discovery(chance.choice(BAD_SCRIPTS[:-1]))
    run.note("the discovery fails")
    wait_until("its being said", lambda: run.ended() or "the discovery script" in run.err(), told=run.told)
    before = worlds(run)
    worker = kill_worker(run, chance)
    return finishes(run, lost(run, worker), before)


@kind(command=ELASTIC, may_be_early=False)
def the_discovery_hangs(run, chance, early):
    run.write_discovery("sleep 1000 & setsid sleep 1000\n")
    run.note("the discovery hangs")
    time.sleep(chance.uniform(0, 2))
    before = worlds(run)
    worker = kill_worker(run, chance)
    return finishes(run, lost(run, worker), before)


@kind(command=ELASTIC, may_be_early=False)
def hvdrun_dies_while_its_discovery_hangs(run, chance, early):
    run.write_discovery("sleep 1000 & sleep 1000\n")
    time.sleep(chance.uniform(1, 2))
    run.strike(KILL, "hvdrun", run.job.pid)
    return Expected({-KILL})


@kind(command=ELASTIC, may_be_early=False)
def the_discovery_shrinks(run, chance, early):
    before = worlds(run)
    run.list_hosts(fewer(run, chance))
    run.note("the discovery has fewer slots")
    return finishes(run, None, before)


@kind(command=ELASTIC, may_be_early=False)
def the_discovery_grows(run, chance, early):
    before = worlds(run)
    run.list_hosts(more(run))
    run.note("the discovery has more slots")
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0.5, 2))
        worker = kill_worker(run, chance)  # an old one, or one that is on its way in
        return finishes(run, lost(run, worker), before)
    return finishes(run, None, before)


@kind(command=ELASTIC, may_be_early=False)
def the_discovery_flaps(run, chance, early):
    """Another list each second, or more often."""
    for _ in range(chance.randrange(3, 8)):
        run.list_hosts(chance.choice([fewer(run, chance), more(run), run.place.elastic_hosts]))
        time.sleep(chance.uniform(0.1, 1.2))
        if chance.random() < 0.2 and run.place.workers(run):
            kill_worker(run, chance)
    run.list_hosts(run.place.elastic_hosts)
    return finishes(run)


@kind(command=ELASTIC, may_be_early=False, begins_at_once=True)
def the_discovery_fails_at_the_start(run, chance, early):
    """It is asked again until it is well."""
    run.write_discovery(chance.choice([*BAD_SCRIPTS, "sleep 2; exit 1\n"]))
    time.sleep(chance.uniform(0, 2.5))
    run.list_hosts(run.place.elastic_hosts)
    run.note("the discovery is well")
    run.wait_until_at_work(run.place.size)
    return finishes(run)
