"""MASTER_PORT: held for rank 0's server, and looked after until that listens."""

import os
import socket
import sys

import pytest
from conftest import read_until

STRANGER = 65534
TAKE = f"""
import os, socket, sys
ready, said = os.pipe()
if os.fork() == 0:
    os.setuid({STRANGER})
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    server.listen()
    os.write(said, b"1")
    import signal
    signal.pause()
os.read(ready, 1)
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
def until_warned():
    import time
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.02)
"""
LISTEN = """
import os, socket, time
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
server.listen()
time.sleep(float(os.environ.get("STAY_S", "0")))
"""
WARNING = f"another user (uid {STRANGER}) listens on port "
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def until_warned(job, tmp_path):
    said = read_until(job.process.stderr, "\n").decode()
    (tmp_path / "go").touch()
    job.finish()
    job.code, job.err = job.process.returncode, said + job.err
    return job


def start_and_wait_for_the_warning(start, tmp_path, script):
    """A job whose script goes on once hvdrun has warned of the stranger."""
    job = start("-np", 1, "-x", f"GO={tmp_path}/go", sys.executable, "-S", "-E", "-c", TAKE + script)
    return until_warned(job, tmp_path)


@only_root
def test_a_stranger_who_listens_on_master_port_does_not_end_a_job_that_never_uses_it(start, tmp_path):
    job = start_and_wait_for_the_warning(start, tmp_path, "until_warned()")
    assert job.code == 0, job.err
    assert job.err.count(WARNING) == 1 and "-x MASTER_PORT=N" in job.err


@only_root
def test_a_rank_that_connects_to_a_strangers_server_ends_the_job(run):
    stay = "peer = socket.create_connection(place); import signal; signal.pause()"
    job = run("-np", 1, sys.executable, "-S", "-E", "-c", TAKE + stay)
    assert job.code == 1, job.err
    last = job.err.splitlines()[-1]
    assert "a rank on host" in last and f"another user (uid {STRANGER}) listens there" in last
    assert "-x MASTER_PORT=N" in last


@only_root
def test_a_connection_of_the_stranger_does_not_end_the_job(start, tmp_path):
    joins = TAKE.replace("    import signal\n", "    peer = socket.create_connection(server.getsockname())\n    import signal\n")
    assert joins != TAKE
    job = start("-np", 1, "-x", f"GO={tmp_path}/go", sys.executable, "-S", "-E", "-c",
                joins + "until_warned(); import time; time.sleep(2.5)")
    job = until_warned(job, tmp_path)
    assert job.code == 0, job.err


@only_root
def test_the_report_names_the_stranger_when_rank_0_cannot_listen(start, tmp_path):
    job = start_and_wait_for_the_warning(start, tmp_path, "until_warned(); socket.create_server(place)")
    assert job.code == 1, job.err
    assert "Its port may be taken: another user" in job.err.splitlines()[-1]


@only_root
def test_a_port_that_the_user_named_is_the_users_business(run):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    taken = TAKE + "peer = socket.create_connection(place); import time; time.sleep(3)"
    job = run("-np", 1, "-x", f"MASTER_PORT={port}", sys.executable, "-S", "-E", "-c", taken)
    assert job.code == 0, job.err
    assert WARNING not in job.err


def test_rank_0_may_listen_there(run):
    job = run("-np", 1, sys.executable, "-S", "-E", "-c", LISTEN, env={"STAY_S": "3"})
    assert job.code == 0, job.err
