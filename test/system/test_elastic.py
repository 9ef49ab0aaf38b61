"""The promises of an elastic job for when a part of it fails: weak points and pains of test/issues/README.md."""

import os
import re
import signal
import sys

import pytest
from conftest import REPO, kill, own_children, parent_of, read_until, skip_without, wait_until
from elastic_job import Training

skip_without("numpy")

TRAINS = """
import horovod.numpy as hvd
from horovod.common import elastic
hvd.init()
state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=0)
def train(state):
    while state.step < 5:
        state.step += 1
        state.commit()
train = elastic.run_fn(train, elastic.reset_world)
"""


def python(script, *args):
    return [sys.executable, "-c", script, *args]


def agents(job):
    """Of the hosts that one machine plays, in the order of their start."""
    return [agent for warden in own_children(job.pid) for agent in own_children(warden)]


def ranks_below(agent, training, size):
    return [pid for pid in training.worlds(size) if parent_of(pid) == agent]


# ---- one part fails


def test_one_failing_slot_loses_only_itself(start, tmp_path):
    """Its host keeps the healthy ranks, and a new worker starts in the slot."""
    training = Training(start, tmp_path, "-np", 3, "--min-np", 1)
    first = set(training.await_world(3))
    victim = training.victim(3, 1)
    kill(victim)
    wait_until("a new rank in its place", lambda: len(training.worlds(3)) == 4, told=training.text)
    others = set(training.worlds(3)) - {victim}
    wait_until("the others to train with it", lambda: all(
        re.search(rf"of 3 from step [1-9]\d* .* pid {pid}\n", training.text()) for pid in others), told=training.text)
    assert len(first & set(training.worlds(3))) == 3
    training.finish()
    finished = re.findall(r"finished after step \d+ as rank (\d+) of 3", training.text())
    assert sorted(finished) == ["0", "1", "2"], training.text()


@pytest.mark.parametrize("lost", [0, 1])
def test_an_agent_dies_and_the_other_host_trains_on(start, tmp_path, lost):
    training = Training(start, tmp_path, "-np", 4, "--min-np", 2, "--hosts-per-machine", 2)
    training.await_world(4)
    victim = agents(training.job)[lost]
    gone = ranks_below(victim, training, 4)
    staying = [pid for pid in training.worlds(4) if pid not in gone]
    assert len(gone) == len(staying) == 2, training.text()
    await_survivors = training.await_next_world(staying)
    kill(victim)
    await_survivors()
    training.await_text("2 ranks are gone with it")
    # P35: the host is used again after its cooldown.
    wait_until("the host to come back", lambda: len(training.worlds(4)) == 6, told=training.text)
    training.finish()


def test_ranks_that_leave_while_others_come_hold_nobody_up(start, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1:2\n")
    training = Training(
        start, tmp_path, "-np", 2, "--min-np", 1, "--max-np", 3, "--host-discovery-script", f"cat {hosts}")
    old = set(training.await_world(2))
    hosts.write_text("127.0.0.1:1\n127.0.0.2:2\n")
    grown = set(training.await_world(3))
    assert grown & old, "an old rank has the state"
    hosts.write_text("127.0.0.2:2\n")
    wait_until("the new ones to go on alone", lambda: len(set(training.worlds(2)) - old) == 2, told=training.text)
    training.finish()
    assert "Traceback" not in training.text()


@pytest.mark.long
def test_nothing_piles_up_over_resets(start, tmp_path):
    training = Training(start, tmp_path, "-np", 3, "--min-np", 2, "--max-failures", 20)
    training.await_world(3)
    witness = training.victim(3, 0)
    watched = {"rank 0": witness, "the agent": training.job.agent, "hvdrun": training.job.pid}

    def lose_one():
        before = len(training.worlds(3))
        kill(training.victim(3, 2))
        wait_until("a new rank", lambda: len(training.worlds(3)) > before, told=training.text)

    def descriptors():
        return {name: len(os.listdir(f"/proc/{pid}/fd")) for name, pid in watched.items()}

    lose_one()
    before = descriptors()
    for _ in range(4):
        lose_one()
    after = descriptors()
    print(before, after)
    # A descriptor of a moment (an output that is read, a file of /proc) may come and go; one per reset would be more.
    assert all(after[name] < before[name] + 4 for name in watched), (before, after)
    training.finish()


# ---- how a job ends


def test_the_first_rank_that_is_done_stops_nobody(run):
    job = run("--elastic", "-np", 3, "--min-np", 1, "sh", "-c",
              "[ $HOROVOD_RANK = 0 ] || { sleep 1; echo rank $HOROVOD_RANK is done; }")
    assert job.code == 0, job.err
    assert sorted(re.findall(r"rank \d is done", job.out)) == ["rank 1 is done", "rank 2 is done"]
    job.nothing_left()


def test_a_rank_that_fails_after_another_is_done_is_not_replaced(run, tmp_path):
    done = tmp_path / "done"
    job = run("--elastic", "-np", 2, "--min-np", 1, "sh", "-c",
              f"echo start; [ $HOROVOD_RANK = 0 ] && exec touch {done}; "
              f"while ! [ -e {done} ]; do sleep 0.05; done; sleep 1; exit 7")
    assert job.code == 7 and job.out.count("start") == 2, job.out + job.err
    assert re.search(r"hvdrun: rank 1 .* failed: exit code 7", job.err), job.err
    job.nothing_left()


@pytest.mark.parametrize("flags, started", [(["--max-np", 3], 3), ([], 2)])
def test_as_many_start_as_there_are_up_to_the_limit(run, flags, started):
    job = run("-np", 2, *flags, "--host-discovery-script", "echo localhost:5",
              "sh", "-c", "echo rank $HOROVOD_RANK of $HOROVOD_SIZE")
    assert job.code == 0, job.err
    assert sorted(re.findall(r"rank \d of \d", job.out)) == [f"rank {rank} of {started}" for rank in range(started)]


@pytest.mark.parametrize("where", ["at once", "in training"])
def test_a_script_with_a_bug_ends_the_job_with_its_traceback(run, where):
    bug = "raise RuntimeError('a bug of ' + 'the script')\n"
    script = bug if where == "at once" else TRAINS.replace("        state.commit()\n", "        " + bug) + "train(state)"
    job = run("--elastic", "-np", 2, "--min-np", 1, *python(script))
    assert job.code == 1, job.err
    # A script that knows of no generations may go on from its checkpoint: the same words again end it.
    assert "generation 2" not in job.err and "(restart 2" not in job.err, job.err
    last = job.err[job.err.rindex("Its last lines on stderr:"):]
    assert re.match(r".*\n    Traceback \(most recent call last\):\n(    .*\n)*    RuntimeError: a bug of the script\n"
                    r"(  1 other rank was ended because of it\.\n|  Rank \d failed with the same words\.\n)?$", last), job.err
    job.nothing_left()


def test_the_budget_of_failures_counts_those_of_the_whole_job(start, tmp_path):
    training = Training(start, tmp_path, "-np", 3, "--min-np", 1, "--max-failures", 1)
    training.await_world(3)
    victim = training.victim(3, 2)
    kill(victim)
    wait_until("a new rank in its place", lambda: len(training.worlds(3)) == 4, told=training.text)
    kill(next(pid for pid in reversed(training.worlds(3)) if pid != victim))
    assert training.job.finish() == 137, training.text()
    assert "more failures than --max-failures allows" in training.text()
    training.job.nothing_left()


def test_a_limit_of_resets_ends_the_job(start, tmp_path):
    training = Training(start, tmp_path, "-np", 3, "--min-np", 1, "--reset-limit", 0)
    training.await_world(3)
    kill(training.victim(3, 1))
    assert training.job.finish() == 1, training.text()
    assert "Horovod was shutdown because number of resets during elastic job exceeded limit: 0" in training.text()
    training.job.nothing_left()


def test_a_script_of_torch_distributed_starts_again_as_a_whole(run, tmp_path):
    skip_without("torch")
    skip_without("sklearn")
    job = run("--elastic", "-np", 2, "--min-np", 1, sys.executable, REPO / "examples" / "pytorch_ddp_elastic.py",
              "--checkpoint", tmp_path / "digits.pt", "--epochs", 3, "--fail-in-epoch", 2)
    assert job.code == 0, job.err
    assert "start 0 with 2 processes after epoch 0" in job.out
    assert "start 1 with 2 processes after epoch 1" in job.out, job.out + job.err
    assert "after 1 restarts" in job.out
    job.nothing_left()


def test_all_processes_see_the_number_of_restarts(run, tmp_path):
    script = ("import os, time\n"
              "count, rank = os.environ['TORCHELASTIC_RESTART_COUNT'], os.environ['RANK']\n"
              "print('count', count, rank, flush=True)\n"
              "if count == '0' and rank == '0':\n"
              "    open(said, 'w').close()\n"
              "    time.sleep(600)\n"
              "while not os.path.exists(said):\n"
              "    time.sleep(0.01)\n"
              "os._exit(3 if count == '0' else 0)")
    job = run("--elastic", "-np", 2, *python(f"said = {str(tmp_path / 'said')!r}\n" + script))
    assert job.code == 0, job.err
    assert sorted(re.findall(r"count \d \d", job.out)) == ["count 0 0", "count 0 1", "count 1 0", "count 1 1"], job.out
    job.nothing_left()


@pytest.mark.parametrize("asked", ["hvdrun, SIGTERM", "agent, SIGTERM", "agent, SIGUSR1"])
def test_ranks_of_two_hosts_stop_at_the_same_commit(start, tmp_path, asked):
    training = Training(start, tmp_path, "-np", 4, "--hosts-per-machine", 2, options=["stop"])
    training.await_world(4)
    process, name = asked.split(", ")
    os.kill(training.job.pid if process == "hvdrun" else agents(training.job)[1], getattr(signal, name))
    assert training.job.finish() == 75, training.text()
    steps = re.findall(r"stops at step (\d+) of", training.text())
    assert len(steps) == 4 and len(set(steps)) == 1, training.text()
    training.job.nothing_left()


def test_a_second_signal_ends_the_agent(start, tmp_path):
    """A job whose ranks never commit; the signals are told apart by what hvdrun says after the first."""
    job = start("--elastic", "-np", 2, "--min-np", 1, "--hosts-per-machine", 2, *python(
        "import time, horovod.numpy as hvd\nhvd.init()\nprint('there', flush=True)\ntime.sleep(600)"))
    read_until(job.process.stdout, "there", 2)
    agent = agents(job)[1]
    os.kill(agent, signal.SIGTERM)
    read_until(job.process.stderr, "was asked to stop by signal 15")
    os.kill(agent, signal.SIGTERM)
    read_until(job.process.stderr, "was lost: ")
    job.process.send_signal(signal.SIGTERM)
    assert job.finish() == 143, job.err
    job.nothing_left()


def test_an_agent_of_a_job_of_fixed_size_ends_by_the_signal(start):
    job = start("-np", 2, *python("import time\nprint('there', flush=True)\ntime.sleep(600)"))
    read_until(job.process.stdout, "there", 2)
    os.kill(job.agent, signal.SIGTERM)
    assert job.finish() == 1, job.err
    assert "was lost" in job.err
    job.nothing_left()
