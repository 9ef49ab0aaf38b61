"""MASTER_PORT: held for rank 0's server, and looked after until that listens."""

import os
import socket
import sys

import pytest

STRANGER = 65534
TAKE = f"""
import os, socket, sys
if os.fork() == 0:
    os.setuid({STRANGER})
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    server.listen()
    import signal
    signal.pause()
os.wait()
"""
LISTEN = """
import os, socket, time
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
server.listen()
time.sleep(float(os.environ.get("STAY_S", "0")))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_V10_a_stranger_who_takes_master_port_ends_the_job(run):
    job = run("-np", 1, sys.executable, "-S", "-E", "-c", TAKE)
    assert job.code == 1, job.err
    last = job.err.splitlines()[-1]
    assert f"which MASTER_PORT names, was taken by another user (uid {STRANGER}) before rank 0" in last
    assert "-x MASTER_PORT=N" in last


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_V10_a_port_that_the_user_named_is_the_users_business(run):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    taken = TAKE.replace("os.wait()", "import time; time.sleep(3)")
    job = run("-np", 1, "-x", f"MASTER_PORT={port}", sys.executable, "-S", "-E", "-c", taken)
    assert job.code == 0, job.err


def test_V10_rank_0_may_listen_there(run):
    job = run("-np", 1, sys.executable, "-S", "-E", "-c", LISTEN, env={"STAY_S": "3"})
    assert job.code == 0, job.err
