"""Containers of Docker on two machines: each has the address that all of them have, 172.17.0.2, behind the bridge of its machine, which
forwards a port to its sshd and a range of ports; /dev/shm is small, and ptrace and its kin are refused, as by strict profiles."""

import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import DEADLINE, WORKERS, hvdrun_path, read_until, skip_without, wait_until, foreign_worker as worker
from host_rig import WHY_NOT, HostRig, run
from test_hangs import LIMIT, STALLED, hang_worker, line_of, watched
from test_refused_calls import WHY_NOT as WHY_NO_FILTER

pytestmark = pytest.mark.skipif(bool(WHY_NOT or WHY_NO_FILTER), reason=WHY_NOT or WHY_NO_FILTER)

REFUSED = "ptrace,process_vm_readv,process_vm_writev,kcmp"
# It asks the kernel for what `py-spy dump --native` asks for, and says what that says.
PY_SPY = f"""#!{sys.executable} -SE
import ctypes, sys
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
pid = int(sys.argv[sys.argv.index("--pid") + 1])
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(PTRACE_ATTACH, pid, None, None):
    sys.exit("Error: Failed to get stack traces\\n\\nCaused by:\\n    0: Failed to suspend process\\n    1: EPERM: Operation not permitted")
libc.ptrace(PTRACE_DETACH, pid, None, None)
print(f'Process {{pid}}: python\\n\\nThread {{pid}} (idle): "MainThread"\\n    sleep (x.py:1)')
"""


def put_behind_a_machine(rig, host):
    """The host of the rig becomes a container, and gets a machine between it and the network of the rig."""
    machine = rig.spawn("unshare", "--net", "sleep", "100000").pid
    others = {os.readlink(f"/proc/{pid}/ns/net") for pid in ("self", rig.head.pid)}  # it begins in the first and passes the second
    wait_until("a network of the machine", lambda: os.readlink(f"/proc/{machine}/ns/net") not in others)
    inside = ["nsenter", "-t", machine, "-n"]
    number = host.number
    rig.ip(f"link set vh{number} nomaster netns {machine}", f"link add vm{number} type veth peer name eth0 netns {machine}",
           f"link set vm{number} master hvdbr up")
    run(*inside, "ip", "-b", "-", input=f"link set vh{number} name docker0\nlink set lo up\naddr add 172.17.0.1/16 dev docker0\nlink set docker0 up\n"
                                        f"addr add {host.address}/16 dev eth0\nlink set eth0 up\n")
    run(*inside, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    run(*inside, "nft", "-f", "-", input=(
        "table ip docker {\n chain in {\n type nat hook prerouting priority -100;\n iif eth0 tcp dport 2222 dnat to 172.17.0.2:22\n"
        " iif eth0 tcp dport 40000-40003 dnat to 172.17.0.2\n }\n chain out {\n type nat hook postrouting priority 100;\n oif eth0 masquerade\n }\n}\n"))
    host.ip("addr flush dev eth0", "addr add 172.17.0.2/16 dev eth0", "route add default via 172.17.0.1")
    host.run("mount", "-o", "remount,size=16m", "/dev/shm")


@pytest.fixture(scope="module")
def containers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rig")
    (folder / "py-spy").write_text(PY_SPY)
    (folder / "py-spy").chmod(0o755)
    # What sshd starts: the line of the one who logs in, under the filter.
    filtered = f"env PATH={folder}:$PATH {sys.executable} -S -E {WORKERS / 'refused_calls.py'} EPERM {REFUSED} -- sh -c"
    rig = HostRig(folder, 2, [f'ForceCommand exec {filtered} "$SSH_ORIGINAL_COMMAND"'])
    try:
        for host in rig.hosts:
            put_behind_a_machine(rig, host)
        rig.ip("neigh flush all")
        yield rig
    finally:
        rig.down()


@pytest.fixture
def begin(start, containers):
    """begin(*words): a job of two ranks in each container."""
    hosts = ["-np", 4, "-H", "hvd1:2,hvd2:2", "-p", 2222, "--port-range", "40000-40003"]
    return lambda *words: start(*hosts, *words, program=containers.on_head(hvdrun_path()))


def test_a_job_runs_over_containers_behind_forwarded_ports(begin, containers):
    """Their own addresses lead each of them to itself, so that their data go through hvdrun, which says so once."""
    job = begin(*worker("init", "world", "sum", "large", "shutdown"))
    assert job.finish() == 0, job.err
    assert job.out.count("sum 10") == 4 and job.out.count("large") == 4, job.out
    worlds = [f"world {rank} of 4 local {rank % 2} of 2 cross {rank // 2} of 2" for rank in range(4)]
    assert sorted(re.findall(r"world .*$", job.out, re.M)) == worlds, job.out
    told = r"^hvdrun: hosts hvd1 and hvd2 do not reach each other\. The data of their ranks go through this machine"
    assert len(re.findall(told, job.err, re.M)) == 1, job.err
    containers.nothing_left()


def test_a_hang_is_explained_where_no_process_may_look_into_another(begin, containers):
    """A rank writes its own stack, so that its line is told as anywhere."""
    skip_without("numpy")
    job = begin(*watched(limit=LIMIT), *hang_worker("sleep", 3))
    assert job.finish() == STALLED, job.err
    assert re.search(rf"rank 3 on host hvd2 \(pid \d+\) is blocked in the system call \w*nanosleep at {line_of('sleep')} in sleep", job.err), job.err
    containers.nothing_left()


def test_frames_that_only_ptrace_would_show_are_said_to_need_it(begin, containers):
    """By `hvdrun dump --native`, and once for all ranks; the job goes on."""
    job = begin(*worker("init", "sum", "sums"))
    read_until(job.process.stdout, "\n", count=4)
    dumped = subprocess.run(containers.on_head(hvdrun_path(), "dump", "--native"), capture_output=True, text=True, timeout=DEADLINE)
    reason = "no stacks; py-spy says: EPERM: Operation not permitted; docker run --cap-add SYS_PTRACE or sysctl kernel.yama.ptrace_scope=0 would allow it"
    assert dumped.stdout == f"ranks 0-3 on hosts hvd1, hvd2: {reason}\n", dumped
    job.process.send_signal(signal.SIGINT)
    assert job.finish() == 130, job.err
    containers.nothing_left()
