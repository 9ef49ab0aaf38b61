"""Which processes run where: -H, --hostfile, -np, and one machine that plays several hosts."""

import os
import signal
import socket

import pytest
from conftest import wait_until, worker

SHOW = 'echo "$HOROVOD_RANK $HOROVOD_SIZE $HOROVOD_LOCAL_RANK/$HOROVOD_LOCAL_SIZE $HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE $HOROVOD_HOSTNAME"'


def places(job):
    assert job.code == 0, job.err
    return sorted(line.split(":", 1)[1] for line in job.out.splitlines())


def test_np_is_a_cap(run):
    assert places(run("-np", 2, "-H", "localhost:4", "sh", "-c", SHOW)) == ["0 2 0/2 0/1 localhost", "1 2 1/2 0/1 localhost"]


def test_without_np_the_hosts_that_are_named_tell_it(run, tmp_path):
    job = run("-H", "localhost:3", "sh", "-c", SHOW)
    assert places(job) == [f"{r} 3 {r}/3 0/1 localhost" for r in range(3)]
    assert job.err == "hvdrun: -np 3: all slots of the hosts\n"
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=2\n")
    assert len(places(run("--hostfile", hosts, "sh", "-c", SHOW))) == 2
    job = run("-H", "192.0.2.77", "true")
    assert job.code == 2 and "-np is missing, and 192.0.2.77 is named without its slots" in job.err and job.err.count("\n") == 1
    for flags in ([], ["--elastic", "-H", "localhost:2"], ["--hosts-per-machine", 2]):
        job = run(*flags, "true")
        assert job.code == 2 and "-np is missing" in job.err, job.err


def test_slots_default_to_gpus_or_cores(run):
    gpus = [name for name in os.listdir("/dev") if name.startswith("nvidia") and name[6:].isdigit()]
    slots = len(gpus) or len(os.sched_getaffinity(0))
    assert run("-np", slots, "-H", "localhost", "true").code == 0
    job = run("-np", slots + 1, "-H", "localhost", "true")
    assert job.code == 2 and f"have {slots} slots" in job.err
    assert run("-np", slots + 1, "-H", "localhost", "--slots-per-host", slots + 1, "true").code == 0


def test_every_name_of_this_machine_is_one_host(run):
    names = f"localhost:1,127.0.0.1:1,{socket.gethostname()}:1"
    assert places(run("-np", 3, "-H", names, "sh", "-c", SHOW)) == [f"{r} 3 {r}/3 0/1 localhost" for r in range(3)]


def test_hostfile_with_blank_lines_comments_and_max_slots(run, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("# one machine\n\n   \nlocalhost slots=2 max_slots=4   # here\n\n127.0.0.1:1\n")
    assert len(places(run("-np", 3, "--hostfile", hosts, "sh", "-c", SHOW))) == 3
    job = run("-np", 4, "--hostfile", hosts, "true")
    assert job.code == 2 and "3 slots" in job.err
    hosts.write_text("localhost\nlocalhost slots=x\n")
    job = run("-np", 1, "--hostfile", hosts, "true")
    assert job.code == 2 and "line 2" in job.err


@pytest.mark.parametrize(
    "args",
    [
        ["-np", "3", "-H", "localhost:2"],
        ["-np", "1", "-H", ":2"],
        ["-np", "1", "-H", "localhost:two"],
        ["-np", "1", "-H", "localhost:0"],
        ["-np", "1", "-H", "localhost:-1"],
        ["-np", "1", "-H", "localhost,"],
        ["-np", "1", "-H", "a", "--hostfile", "b"],
        ["-np", "1", "--hostfile", "/no/such/file"],
        ["-np", "1", "--hostfile", "/dev/null"],
        ["-np", "1", "-H", "192.0.2.77:2", "--stage-timeouts", "knock=3"],
        ["-np", "1", "-H", "192.0.2.77:2", "--port-range", "5-4"],
        ["-np", "1", "-H", "localhost,192.0.2.77:2", "--hosts-per-machine", "2"],
        ["-np", "1", "-H", "-x:2"],
        ["-np", "1", "-H", "a\x1b[31m:2"],
        ["-np", "1", "-H", "x" * 10000],
        ["-np", "1", "-H", "localhost:" + "9" * 10000],
        ["-np", "1", "-H", "[::1]:2"],
        ["-np", "1", "-H", "ssh://localhost:22"],
        ["-np", "1", "-H", "./no/such/file"],
        ["-np", "1", "-H", "/dev"],
        ["-np", "1", "-H", "node[1-999999]:8"],
        ["-np", "1", "-H", "node[3-1]:8"],
        ["-np", "1", "--hostfile", "/dev/zero"],
    ],
)
def test_bad_hosts_are_one_sentence_and_exit_2(run, tmp_path, args):
    job = run(*args, "touch", tmp_path / "started")
    assert job.code == 2 and job.out == ""
    assert len(job.err.strip().splitlines()) == 1 and len(job.err) < 700, job.err
    assert "\x1b" not in job.err
    assert not (tmp_path / "started").exists()


def test_hosts_with_a_space_between_are_told_the_right_spelling(run):
    job = run("-np", 2, "-H", "localhost:1", "localhost:1", "true")
    assert job.code == 2 and len(job.err.splitlines()) == 1
    assert "'localhost:1' stands where the command begins" in job.err and "-H localhost:1,localhost:1\n" in job.err
    job = run("-np", 1, "-H", "localhost:1", "./localhost:1")
    assert job.code == 127, "with a path it is a command"


@pytest.mark.parametrize(
    "text",
    [
        "localhost slots=2\n127.0.0.1 slots=2\n",
        "# Open MPI\nlocalhost slots = 2 max_slots=4 // here\n127.0.0.1 count=2\n",
        "localhost:2 binding=core\n\n127.0.0.1:2 # MPICH\n",
        "localhost\nlocalhost\n127.0.0.1\n127.0.0.1\n",
        "bob@localhost slots=2\r\n[127.0.0.[1-2]]:2222 slots=1\r\n",
    ],
    ids=["horovod-deepspeed", "openmpi", "mpich", "machinefile", "user-port-range"],
)
def test_host_files_of_every_dialect(run, tmp_path, text):
    hosts = tmp_path / "hosts"
    hosts.write_text(text)
    assert len(places(run("-np", 4, "--hostfile", hosts, "sh", "-c", SHOW))) == 4
    job = run("-np", 5, "--hostfile", hosts, "true")
    assert job.code == 2 and "4 slots" in job.err


def test_lists_of_hosts_in_every_form(run):
    for hosts in ("localhost,localhost", "bob@localhost:2", "[localhost]:2222:2", "[::1]::2", "127.0.0.[1-2]:1"):
        assert len(places(run("-np", 2, "-H", hosts, "sh", "-c", SHOW))) == 2
        job = run("-np", 3, "-H", hosts, "true")
        assert job.code == 2 and "2 slots" in job.err, hosts


def test_a_host_file_given_to_H_is_read_and_said(run, tmp_path):
    hosts = tmp_path / "my-hosts"
    hosts.write_text("localhost slots=2\n")
    job = run("-np", 2, "-H", hosts, "true")
    assert job.code == 0 and job.err == f"hvdrun: -H {hosts} is a file and is read as a host file (--hostfile)\n"
    job = run("-np", 2, "-H", "my-hosts", "true", cwd=tmp_path)
    assert job.code == 0 and "read as a host file" in job.err
    (tmp_path / "localhost").write_text("no host at all\n")
    job = run("-np", 1, "-H", "localhost", "true", cwd=tmp_path)
    assert job.code == 0 and job.err == "", "a name of this machine is a host, whatever files there are"
    hosts.write_text("localhost slots=two\n")
    job = run("-np", 2, "-H", hosts, "true")
    assert job.code == 2 and len(job.err.splitlines()) == 1 and f"{hosts}, line 1" in job.err


OPTIONS = ["-oProxyCommand=touch${IFS}STARTED", "-x", "--", "-lroot@localhost", "[-x]:2222", "[-x[1-2]]:22"]


@pytest.mark.parametrize("line", [*(f"{o} slots=1" for o in [*OPTIONS, "bob@-x"]), *(f"localhost user={o}" for o in OPTIONS)])
def test_no_host_and_no_user_can_pass_for_an_option(run, tmp_path, line):
    line = line.replace("STARTED", str(tmp_path / "started"))
    hosts = tmp_path / "hosts"
    hosts.write_text(line + "\n")
    ways = [["--hostfile", hosts]]
    if "user=" not in line:
        ways.append(["--hosts=" + line.split(" ")[0]])
    for args in ways:
        job = run("-np", 1, *args, "touch", tmp_path / "started")
        assert job.code == 2 and job.out == "" and len(job.err.strip().splitlines()) == 1, job.err
        assert not (tmp_path / "started").exists()


def test_one_machine_plays_two_hosts(run):
    job = run("-np", 3, "--hosts-per-machine", 2, "sh", "-c", SHOW)
    assert places(job) == ["0 3 0/2 0/2 host-0", "1 3 1/2 0/1 host-0", "2 3 0/1 1/2 host-1"]


def test_played_hosts_end_together_and_leave_nothing(start):
    for victim in ("agent", "warden", "hvdrun", "worker"):
        job = start("-np", 4, "--hosts-per-machine", 2, "sh", "-c", "setsid sleep 600 & sleep 600")
        wait_until("two agents, two wardens, workers and children", lambda: len(job.processes()) >= 1 + 4 + 12)
        known = {"hvdrun": job.pid, "warden": job.warden, "agent": job.agent, "worker": job.workers[0]}
        os.kill(known[victim], signal.SIGKILL)
        job.nothing_left()
        assert job.finish() == {"hvdrun": -9, "worker": 137}.get(victim, 1), job.err


def test_a_host_that_ends_well_does_not_disturb_the_other(run):
    job = run("-np", 2, "--hosts-per-machine", 2, "sh", "-c", "[ $HOROVOD_RANK = 1 ] && sleep 0.5; echo done")
    assert job.code == 0 and job.out.count("done") == 2


def test_init_between_hosts_joins_them_or_says_what_is_missing(run):
    job = run("-np", 2, "--hosts-per-machine", 2, *worker("init_worker.py"))
    connected = job.code == 0 and job.out.count("joined") == 2
    assert connected or "cannot load libhvd_gloo.so" in job.err
    job.nothing_left()
