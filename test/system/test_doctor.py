"""hvdrun doctor: all hosts and all stages in one run, over hosts with an sshd each."""

import json
import os
import re
import signal
import sys

import pytest
from conftest import INSTALLED, hvdrun_path, kill, needs_the_build_tree, parent_of, read_proc, wait_until
from host_rig import WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

PYTHON = sys.executable


rig = rig_of(4)


@pytest.fixture
def doctor(run, rig):
    return lambda *args, **kwargs: run("doctor", *args, program=rig.on_head(hvdrun_path()), **kwargs)


@pytest.fixture
def examined(doctor):
    """examined(*args): the finished run, and the facts of its JSON."""
    def examine(*args, **kwargs):
        job = doctor("--json", *args, **kwargs)
        job.report = json.loads(job.out)
        assert job.report["exit_code"] == job.code
        return job
    return examine


def on_head(rig, folder):
    """hvdrun where it runs, in a working directory of its own."""
    return ["nsenter", "-t", str(rig.head.pid), "-n", "-m", "-u", f"--wd={folder}", "--", hvdrun_path()]


def by_name(job):
    return {host["name"]: host for host in job.report["hosts"]}


def findings(job, kind):
    return [finding for finding in job.report["findings"] if finding["kind"] == kind]


def names(rig, count):
    return ",".join(host.name for host in rig.hosts[:count])


# ---- all well


def test_all_is_well(doctor, rig):
    job = doctor("-H", names(rig, 3), "--", PYTHON, "train.py")
    assert job.code == 0, job.out + job.err
    for host in rig.hosts[:3]:
        assert re.search(rf"^  {host.name} +ready after .*, clock [+-]?\d", job.out, re.M), job.out
    assert re.search(r"^  hvd1 - hvd2 +.*[um]s .*B/s there .*B/s back .*(10\.99|fd99)", job.out, re.M), job.out
    assert re.search(rf"^  Python +3\.\d+\.\d+ at {re.escape(PYTHON)}$", job.out, re.M), job.out
    assert "3 of 3 hosts can be used; 0 errors, " in job.out
    assert job.err == ""
    rig.nothing_left()


def test_the_json_has_the_documented_keys(examined, rig):
    job = examined("-H", names(rig, 2), "--", PYTHON, "train.py")
    assert job.code == 0, job.out
    report = job.report
    assert report["version"] == 1 and report["interpreter"] == PYTHON and report["directory"] == os.getcwd()
    assert report["interrupted"] is False and report["all_pairs"] is True
    for host in report["hosts"]:
        assert host.keys() == {"name", "other_names", "remote", "usable", "stage", "trouble", "seconds", "hvdrun", "clock", "facts"}
        assert host["usable"] and host["remote"] and host["stage"] == "ready" and host["trouble"] is None
        assert abs(host["clock"]["skew_seconds"]) <= host["clock"]["uncertainty_seconds"] + 0.001
        facts = host["facts"]
        assert facts.keys() == {
            "complete", "system", "kernel", "cores", "cpu_quota", "memory", "memory_available", "limits", "logind", "python", "gpus",
            "rdma", "directory", "disks", "interfaces"}
        assert facts["complete"] and facts["directory"] == "ok" and facts["cores"] == (1 if INSTALLED else len(os.sched_getaffinity(0)))
        assert facts["python"]["path"] == PYTHON
        assert facts["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
        assert "numpy" in facts["python"]["libraries"]
        assert facts["interfaces"][0]["name"] == "eth0" and facts["interfaces"][0]["mtu"] == 1500
    pair, = report["pairs"]
    assert (pair["a"], pair["b"], pair["trouble"]) == ("hvd1", "hvd2", None)
    assert 0 < pair["round_trip_seconds"] < 1
    assert pair["a_to_b_bytes_per_second"] > 1e6 and pair["b_to_a_bytes_per_second"] > 1e6
    assert re.match(r"10\.99|fd99", pair["address_a"]) and re.match(r"10\.99|fd99", pair["address_b"])


def test_good_hosts_raise_no_alarm(examined, rig):
    """HVD_SOAK=1: 50 runs, and no pair is called slow either."""
    soak = os.environ.get("HVD_SOAK") == "1"
    here = {"nofile", "nproc", "disk", "shm"}  # this machine may be short of them in truth
    for _ in range(50 if soak else 2):
        job = examined("-H", names(rig, 4), "--", PYTHON, "train.py")
        kinds = {finding["kind"] for finding in job.report["findings"]} - here
        assert job.code == 0 and kinds <= (set() if soak else {"latency", "speed"}), job.out
    rig.nothing_left()


def test_this_machine_alone(run):
    job = run("doctor", "--json", "-np", 4, PYTHON, "train.py")
    report = json.loads(job.out)
    assert job.code == 0 and len(report["hosts"]) == 1 and report["pairs"] == []
    host = report["hosts"][0]
    assert host["usable"] and not host["remote"] and host["facts"]["python"]["path"] == PYTHON
    job.nothing_left()


def test_a_usage_error_is_2(run):
    for args in (["--bogus"], ["-H", "a:b:c:d"], ["--port-range", "x"], ["--stage-timeouts", "x=1"], ["-H", "a:1", "b:1"]):
        job = run("doctor", *args)
        assert job.code == 2 and job.out == "" and job.err.count("\n") == 1, job.err
    job = run("-np", 1, "--json", "true")
    assert job.code == 2 and "--json" in job.err


# ---- hosts that cannot be used


@pytest.mark.long
def test_bad_hosts_are_found_before_a_job_is_and_keep_nobody_from_being_examined(examined, rig):
    """One with a wrong host key, one that refuses, one that does not exist; two that work."""
    known = (rig.folder / "known_hosts").read_text()
    other = (rig.folder / "id.pub").read_text().split()[1]
    try:
        rig.write("known_hosts", known.replace("hvd2,", "") + f"hvd2 ssh-ed25519 {other}\n")
        job = examined("-H", "hvd1,hvd2,[hvd3]:2222,nohost1,hvd4")
    finally:
        rig.write("known_hosts", known)
    assert job.code == 1
    hosts = by_name(job)
    assert {name: host["stage"] for name, host in hosts.items()} == {
        "hvd1": "ready", "hvd2": "hostkey", "hvd3": "connect", "nohost1": "resolve", "hvd4": "ready"}
    assert [name for name, host in hosts.items() if host["usable"]] == ["hvd1", "hvd4"]
    for name, cure in (("hvd2", "ssh-keygen -R"), ("hvd3", "sshd"), ("nohost1", "check the spelling")):
        assert cure in hosts[name]["trouble"], hosts[name]
        assert any(f["hosts"] == [name] and f["severity"] == "error" for f in findings(job, "host"))
    for name in ("hvd1", "hvd4"):
        assert hosts[name]["facts"]["complete"]
    pair, = job.report["pairs"]
    assert (pair["a"], pair["b"], pair["trouble"]) == ("hvd1", "hvd4", None)
    rig.nothing_left()


def test_a_firewall_between_two_hosts_is_named(examined, rig):
    host = rig.hosts[1]
    host.run("nft", "-f", "-", input="table inet f {\n chain i {\n type filter hook input priority 0;\n"
                                     " tcp dport 50000-50009 reject with tcp reset\n }\n}\n")
    try:
        job = examined("-H", names(rig, 3), "--port-range", "50000-50009")
    finally:
        host.run("nft", "delete", "table", "inet", "f")
    assert job.code == 1
    assert any("it cannot reach hvd2" in f["what"] and f["hosts"] == ["hvd2"] for f in findings(job, "path")), job.out
    ways = {(pair["a"], pair["b"]): pair["trouble"] for pair in job.report["pairs"]}
    assert ways["hvd1", "hvd3"] is None and ways["hvd1", "hvd2"] and ways["hvd2", "hvd3"], job.out
    assert all(host["facts"]["complete"] for host in job.report["hosts"])
    rig.nothing_left()


def test_a_host_that_is_lost_in_the_middle_is_cleaned_up_and_summarised(start, rig):
    """Its agent dies while a slow Python is examined; the other is examined to the end."""
    slow = rig.folder / "python3"
    slow.write_text(f"#!/bin/sh\nsleep 3\nexec {PYTHON} \"$@\"\n")
    slow.chmod(0o755)
    job = start("doctor", "--json", "-H", names(rig, 2), "--", slow, "train.py", program=rig.on_head(hvdrun_path()))
    host = rig.hosts[1]
    wait_until("the examination of hvd2",
               lambda: any(b"\0--examine\0" in read_proc(pid, "cmdline") for pid in host.processes()))
    agents = [pid for pid in host.agents() if b"\0--job\0" in read_proc(pid, "cmdline")]
    kill(next(pid for pid in agents if parent_of(pid) in agents))
    assert job.finish() == 1, job.err
    job.report = json.loads(job.out)
    hosts = by_name(job)
    assert hosts["hvd1"]["usable"] and hosts["hvd1"]["facts"]["complete"]
    assert not hosts["hvd2"]["usable"] and "lost while it was examined" in hosts["hvd2"]["trouble"], job.out
    assert findings(job, "host")[0]["hosts"] == ["hvd2"]
    rig.nothing_left()


def test_a_host_that_is_cut_off_is_noticed(start, rig):
    slow = rig.folder / "python3.9"
    slow.write_text("#!/bin/sh\nsleep 100\n")
    slow.chmod(0o755)
    job = start("doctor", "--json", "-H", names(rig, 2), "--heartbeat-timeout", 2, "--", slow, "train.py",
                program=rig.on_head(hvdrun_path()))
    host = rig.hosts[1]
    wait_until("the examination of hvd2",
               lambda: any(b"\0--examine\0" in read_proc(pid, "cmdline") for pid in host.processes()))
    host.cut()
    try:
        assert job.finish() == 1, job.err
        job.report = json.loads(job.out)
        hosts = by_name(job)
        assert "silent for 2 s" in hosts["hvd2"]["trouble"], job.out
        assert "did not answer within 8 s" in hosts["hvd1"]["facts"]["python"]["trouble"], job.out
        rig.nothing_left()
    finally:
        host.join()


def test_ctrl_c_leaves_nothing_and_shows_what_is_known(start, rig):
    slow = rig.folder / "python3"
    slow.write_text("#!/bin/sh\nsleep 100\n")
    slow.chmod(0o755)
    job = start("doctor", "-H", names(rig, 2), "--", slow, "train.py", program=rig.on_head(hvdrun_path()))
    for host in rig.hosts[:2]:
        wait_until("the slow Python", lambda: any(b"sleep" in read_proc(pid, "cmdline") for pid in host.processes()))
    os.kill(job.pid, signal.SIGINT)
    assert job.finish() == 130
    assert "hvd1" in job.out and job.out.splitlines()[-1].endswith("interrupted before the end."), job.out
    rig.nothing_left()


def test_a_killed_doctor_leaves_nothing(start, rig):
    slow = rig.folder / "python3"
    slow.write_text("#!/bin/sh\nsleep 100\n")
    slow.chmod(0o755)
    job = start("doctor", "-H", names(rig, 2), "--", slow, "train.py", program=rig.on_head(hvdrun_path()))
    for host in rig.hosts[:2]:
        wait_until("the slow Python", lambda: any(b"sleep" in read_proc(pid, "cmdline") for pid in host.processes()))
    kill(job.pid)
    rig.nothing_left()


# ---- hosts that can be used, and something will hurt


def agent_command(rig, **on_host):
    """An --rsh-agent that runs a line of shell before the agent on the hosts that are named."""
    agent = rig.folder / "rsh"
    agent.write_text("#!/bin/sh\nhost=$1; shift\nbefore=:\n" + "".join(
        f"[ $host = {name} ] && before='{line}'\n" for name, line in on_host.items()) + "".join(
        f'[ $host = {h.name} ] && exec {" ".join(h.command())} /bin/sh -c "$before; $*"\n' for h in rig.hosts))
    agent.chmod(0o755)
    return agent


@needs_the_build_tree("it knows no faults that tests make")
def test_a_clock_that_is_wrong(examined, rig):
    agent = agent_command(rig, hvd2="export HVD_TEST_FAULT=clock-ahead")
    job = examined("-H", names(rig, 3), "--rsh-agent", agent, "--", PYTHON)
    assert job.code == 0, job.out
    finding, = findings(job, "clock")
    assert finding["hosts"] == ["hvd2"] and "100 s ahead" in finding["what"], finding
    assert 99 < by_name(job)["hvd2"]["clock"]["skew_seconds"] < 101


def test_another_python_other_limits_no_directory(run, rig, tmp_path):
    agent = agent_command(rig, hvd2="ulimit -n 1000")
    host = rig.hosts[2]
    host.run("mount", "-t", "tmpfs", "none", tmp_path)
    wrapper = tmp_path / "python3"
    wrapper.write_text("#!/bin/sh\necho python.path=/opt/python\necho python.version=3.7.1\n")
    wrapper.chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    try:
        host.run("sh", "-c", f"printf '#!/bin/sh\\necho python.path=/opt/other\\necho python.version=3.7.2\\n' > {wrapper}")
        host.run("chmod", "755", wrapper)
        job = run("doctor", "--json", "-H", names(rig, 3), "--rsh-agent", agent, "--", wrapper,
                  program=on_head(rig, folder))
    finally:
        host.run("umount", tmp_path)
    job.report = json.loads(job.out)
    assert job.code == 1
    assert [f["hosts"] for f in findings(job, "nofile")] == [["hvd2"]], job.out
    finding, = findings(job, "directory")
    assert finding["hosts"] == ["hvd3"] and "No such file" in finding["what"] and finding["severity"] == "error"
    assert [f["hosts"] for f in findings(job, "python")] == [["hvd3"], ["hvd3"]]
    assert "3.7.2, where most have 3.7.1" in findings(job, "python")[0]["what"]


def test_a_small_shm(examined, rig):
    host = rig.hosts[0]
    host.run("mount", "-o", "remount,size=16m", "/dev/shm")
    try:
        job = examined("-H", names(rig, 2))
    finally:
        host.run("mount", "-o", "remount,size=50%", "/dev/shm")
    assert [f["hosts"] for f in findings(job, "shm")] == [["hvd1"]], job.out


def test_a_full_disk(rig, run, tmp_path):
    host = rig.hosts[1]
    host.run("mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path)
    try:
        host.run("sh", "-c", f"head -c 1040000 /dev/zero > {tmp_path}/checkpoint")
        job = run("doctor", "--json", "-H", names(rig, 3), program=on_head(rig, tmp_path))
    finally:
        host.run("umount", tmp_path)
    job.report = json.loads(job.out)
    finding, = findings(job, "disk")
    assert job.code == 0 and finding["hosts"] == ["hvd2"] and "of 1.0 MiB are free" in finding["what"], finding


def test_a_different_mtu(examined, rig):
    rig.hosts[1].ip("link set eth0 mtu 1400")
    try:
        job = examined("-H", names(rig, 3))
    finally:
        rig.hosts[1].ip("link set eth0 mtu 1500")
    finding, = findings(job, "mtu")
    assert job.code == 0 and finding["hosts"] == ["hvd2"] and "eth0 is 1400, where most have 1500" in finding["what"]


def test_large_packets_that_vanish_end_at_a_deadline_and_are_said_so(examined, rig):
    """ICMP is filtered and something on the way has a smaller MTU: small messages pass, large ones do not."""
    host = rig.hosts[1]
    host.run("nft", "-f", "-", input="table inet f {\n chain i {\n type filter hook input priority 0;\n"
                                     " tcp dport 50000-50009 meta length > 1200 drop\n }\n}\n")
    try:
        job = examined("-H", names(rig, 3), "--port-range", "50000-50009")
    finally:
        host.run("nft", "delete", "table", "inet", "f")
    assert job.code == 1
    path = findings(job, "path")
    assert path and all("hvd2" in f["hosts"] for f in path), job.out
    assert "MTU" in path[0]["what"], path
    ways = {(pair["a"], pair["b"]): pair["trouble"] for pair in job.report["pairs"]}
    assert ways["hvd1", "hvd3"] is None
    rig.nothing_left()


def test_a_slow_link_is_found_and_its_host_named(examined, rig):
    """20 Mbit/s at hvd3: all of its pairs are slow, and it is the one that they have in common."""
    host = rig.hosts[2]
    host.run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "20mbit", "burst", "32kb", "latency", "50ms")
    try:
        job = examined("-H", names(rig, 4))
    finally:
        host.run("tc", "qdisc", "del", "dev", "eth0", "root")
    assert job.code == 0, job.out
    finding, = findings(job, "speed")
    assert finding["hosts"] == ["hvd3"] and "is common to 3 bad pairs of 3" in finding["what"], finding


def test_two_names_of_one_machine_are_one_host(doctor, examined, rig):
    job = doctor("-H", "hvd1,hvd1-v6,hvd2", "--", PYTHON, "train.py")
    assert "2 of 2 hosts can be used" in job.out, job.out
    assert re.search(r"^  hvd1 +ready after .*, also named hvd1-v6$", job.out, re.M), job.out
    assert "hvd1-v6 -" not in job.out and "- hvd1-v6" not in job.out
    job = examined("-H", "hvd2,hvd1,hvd1-v6")
    assert [(host["name"], host["other_names"]) for host in job.report["hosts"]] == [("hvd2", []), ("hvd1", ["hvd1-v6"])]
    assert [(pair["a"], pair["b"]) for pair in job.report["pairs"]] == [("hvd2", "hvd1")]
    rig.nothing_left()
