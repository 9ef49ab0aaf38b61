"""Bad networks: what is lost, doubled, slow, too large, passes in one direction only, or ends while the job starts."""

import time

from checks import Expected
from kinds import TERM, asked, either, kind
from places import LARGE

from conftest import wait_until  # isort: skip
from slowness import scaled  # isort: skip
from injuries import some_host  # isort: skip


def another_host_lost(run, host):
    return either(*(f"host {other.name} was lost" for other in run.place.hosts if other is not host))


@kind(on="hosts", may_be_early=False)
def packets_are_lost(run, chance, early):
    host, percent = some_host(run, chance), chance.choice([1, 3, 5])
    run.note(f"{percent} % of the packets of {host.name} are lost")
    chains = "".join(f" chain {hook} {{\n type filter hook {hook} priority 0;\n"
                     f" {device} != lo numgen random mod 100 < {percent} drop\n }}\n"
                     for hook, device in (("input", "iif"), ("output", "oif")))
    host.run("nft", "-f", "-", input=f"table inet chaos {{\n{chains}}}\n")
    time.sleep(chance.uniform(0, 2))
    return asked(run, chance, early)


@kind(on="hosts", may_be_early=False)
def packets_are_doubled(run, chance, early):
    """Each one to the other host arrives twice."""
    host = some_host(run, chance)
    run.note(f"the packets of {host.name} are doubled")
    rules = "".join(f" ip daddr {other} dup to {other} device \"eth0\"\n"
                    for other in [run.place.rig.address(0), *(peer.address for peer in run.place.hosts if peer is not host)])
    chain = f" chain p {{\n type filter hook postrouting priority 0;\n{rules} }}\n"
    host.run("nft", "-f", "-", input=f"table ip chaos {{\n{chain}}}\n")
    time.sleep(chance.uniform(0, 2))
    return asked(run, chance, early)


@kind(on="hosts", may_be_early=False)
def a_link_is_slow(run, chance, early):
    host, rate = some_host(run, chance), chance.choice(["500kbit", "2mbit", "20mbit"])
    run.note(f"the link of {host.name} has {rate}")
    run.place.slow_down(host, rate)
    time.sleep(chance.uniform(0, 2))
    return asked(run, chance, early)


@kind(on="hosts", may_be_early=False)
def packets_become_smaller(run, chance, early):
    """The MTU of a link changes at both ends, and back again."""
    host = some_host(run, chance)
    for size in (chance.choice([576, 1000, 1280]), 1500, 1280):
        run.note(f"the MTU of {host.name} is {size}")
        run.place.set_mtu(host, size)
        time.sleep(chance.uniform(0, 0.6))
    return asked(run, chance, early)


@kind(on="hosts", command=LARGE, may_be_early=False)
def large_packets_vanish_for_a_moment(run, chance, early):
    """One end of the link takes less than the other sends: what is small passes, heartbeats too."""
    host = some_host(run, chance)
    run.note(f"large packets to {host.name} vanish")
    host.filter("meta length > 1000 drop")
    time.sleep(chance.uniform(0.1, 2))
    host.filter()
    run.note("and pass again")
    return asked(run, chance, early)


@kind(on="hosts", may_be_early=False)
def a_link_passes_one_direction_only(run, chance, early):
    host = some_host(run, chance)
    run.note(f"nothing reaches {host.name} any more, what it sends passes")
    host.filter("drop")
    # Whichever notices first: hvdrun its host, or the hosts each other.
    return Expected({1, 3}, host.name, not_a_cause=either(r"hvdrun: rank \d+ .* failed: signal", another_host_lost(run, host)))


@kind(on="hosts", start={"options": ["--start-timeout", "5"]}, begins_at_once=True, may_be_early=False)
def a_link_is_cut_in_the_start(run, chance, early):
    """An agent that was just started has heard nothing of its driver yet, and waits a minute."""
    run.gone_limit = scaled(90)
    host = some_host(run, chance)
    time.sleep(chance.uniform(0, 0.7))
    run.note(f"the link of {host.name} is cut")
    host.cut()
    return Expected({1}, host.name, not_a_cause=another_host_lost(run, host))


@kind(on="hosts", start={"options": ["--start-timeout", "5"]}, begins_at_once=True, may_be_early=False)
def a_session_dies_in_the_start(run, chance, early):
    """It is tried again, or said."""
    host = some_host(run, chance)
    wait_until("a session", lambda: run.ended() or host.sessions(), told=run.told)
    time.sleep(chance.choice([0, 0, 0.01, 0.05, 0.1, 0.3]))
    run.note(f"the sshd sessions of {host.name} are killed")
    host.kill_sshd()
    wait_until("work or an end", lambda: run.ended() or run.out().count("sum ") >= run.place.size, told=run.told)
    run.strike_if_there(TERM, "hvdrun", run.job.pid)  # 1: at work or not, it had lost the host before
    return Expected({1, 143}, either(host.name, "hvdrun: ended by signal 15 "), not_a_cause=another_host_lost(run, host))
