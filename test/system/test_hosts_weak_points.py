"""Weak points of jobs on several hosts: hostile neighbours, many launches at once, many hosts, containers."""

import ast
import json
import os
import pickle
import re
import signal
import socket
import struct
import subprocess
import sys

import pytest
from conftest import DEADLINE, REPO, hvdrun_path, read_proc, wait_until, foreign_worker as worker
from host_rig import WHY_NOT, HostRig, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

PACKAGE = REPO / "runtime" / "python"
PORTS = range(43000, 43020)


rig = rig_of(2)


def begin(hosts_start):
    job = hosts_start("-np", 2, "-H", "hvd1:1,hvd2:1", "--port-range", f"{PORTS[0]}-{PORTS[-1]}", *worker("init", "sum", "sums"))
    for _ in range(2):
        assert job.process.stdout.readline().endswith(b":sum 3\n")
    return job


def end(job, rig):
    assert job.process.poll() is None, "the job went on"
    os.kill(job.pid, signal.SIGTERM)
    assert job.finish() == 143, job.err
    rig.nothing_left()


def address_in(text):
    """Of /proc/net: words of 32 bits, each with its bytes turned round."""
    turned = b"".join(bytes.fromhex(text[at:at + 8])[::-1] for at in range(0, len(text), 8))
    return socket.inet_ntop(socket.AF_INET if len(turned) == 4 else socket.AF_INET6, turned)


def listeners(show):
    """(address, port) where somebody listens by TCP; `show` prints a file of /proc/net."""
    rows = [line.split() for table in ("tcp", "tcp6") for line in show(f"/proc/net/{table}").splitlines()[1:]]
    found = [row[1].split(":") for row in rows if row[3] == "0A"]
    return {(address_in(address), int(port, 16)) for address, port in found if int(port, 16) != 22}


def on_host(host):
    any_address = {"0.0.0.0": host.address, "::": host.rig.address6(host.number)}
    found = listeners(lambda file: host.run("cat", file))
    return {(any_address.get(address, address), port) for address, port in found}


def on_head(rig):
    return listeners(lambda file: subprocess.run(rig.on_head("cat", file), capture_output=True, text=True, check=True).stdout)


TALK = """
import socket, sys
def speak(to, pieces, heard):
    for piece in pieces:
        what, _, much = piece.partition(":")
        if what == "hear":
            while len(heard) < int(much) and (more := to.recv(65536)):
                heard += more
        elif what == "echo":
            to.sendall(heard[-int(much):])
        elif what == "flood":
            for _ in range(int(much)):
                to.sendall(b"x" * (1 << 20))
        else:
            to.sendall(bytes.fromhex(what))
    to.shutdown(socket.SHUT_WR)
    while more := to.recv(65536):
        heard += more
for pieces in sys.argv[3:]:
    to = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
    to.settimeout(30)
    end, heard = "closed", bytearray()
    try:
        speak(to, pieces.split(), heard)
    except TimeoutError:
        end = "left open"
    except OSError:
        pass  # a reset, or the other side was gone first
    print(end, len(heard))
"""


def talk(rig, place, *talks):
    """How many bytes somebody hears who says the pieces of each talk, one connection after the other, to their ends."""
    command = rig.on_head(sys.executable, "-S", "-E", "-c", TALK, *place, *talks)
    said = subprocess.run(command, capture_output=True, text=True, timeout=2 * DEADLINE)
    lines = said.stdout.splitlines()
    assert len(lines) == len(talks) and all(line.startswith("closed ") for line in lines), said.stdout + said.stderr
    return [int(line.split()[1]) for line in lines]


# ---- hostile neighbours


class Trap:
    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return os.mkdir, (self.witness,)


def hostile_bodies(witness):
    """The bodies that made Horovod's servers and helpers run the code of anybody who reached them."""
    trap = pickle.dumps(Trap(witness))
    bodies = []
    for path in ("/worker_addresses/0", "/runfunc/func", "/runfunc/result_0", "/"):
        for verb in ("PUT", "POST"):
            bodies.append(f"{verb} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(trap)}\r\n\r\n".encode() + trap)
    length = struct.pack("!i", len(trap))
    bodies += [b"GET /runfunc/func HTTP/1.1\r\nHost: x\r\n\r\n", trap, length + trap, bytes(32) + length + trap]
    return [body.hex() for body in bodies]


def test_a_pickle_from_the_network_is_never_loaded(hosts_start, rig):
    """Against every port where something listens while ranks work, on the hosts and where hvdrun runs."""
    witness = rig.folder / "witness"
    job = begin(hosts_start)
    assert not on_head(rig), "hvdrun itself listens nowhere"
    for host in rig.hosts:
        places = on_host(host)
        assert places and {port for _, port in places} <= set(PORTS)
        for place in places:
            assert not any(talk(rig, place, *hostile_bodies(str(witness))))
    assert not witness.exists()
    end(job, rig)


def test_nor_while_the_hosts_look_for_each_other(hosts_start, rig):
    """The agents listen only then: packets to hvd2 are dropped, so that they have to wait."""
    witness = rig.folder / "witness"
    one, other = rig.hosts
    other.run("nft", "-f", "-", input="table inet f {\n chain i {\n type filter hook input priority 0;\n"
                                      f" tcp dport {PORTS[0]}-{PORTS[-1]} drop\n }}\n}}\n")
    try:
        job = hosts_start("-np", 2, "-H", "hvd1:1,hvd2:1", "--port-range", f"{PORTS[0]}-{PORTS[-1]}", *worker("init", "sum", "sums"))
        wait_until("a listener", lambda: on_host(one))
        for place in on_host(one):
            if place[0] not in ("127.0.0.1", "::1"):
                assert not any(talk(rig, place, *hostile_bodies(str(witness))))
    finally:
        other.run("nft", "delete", "table", "inet", "f")
    for _ in range(2):
        assert job.process.stdout.readline().endswith(b":sum 3\n")
    assert not witness.exists()
    end(job, rig)


def imports(file):
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


def test_the_package_unpickles_nothing_but_objects_of_its_own_ranks():
    """allgather_object and broadcast_object are pickles by contract; they come by collectives, from ranks with the job's key. So do
    the functions and results of horovod.run(), over a socket pair with hvdrun, and kept commits, in memory without a name that one
    agent hands to its workers."""
    files = {str(file.relative_to(PACKAGE)): imports(file) for file in PACKAGE.rglob("*.py")}
    assert len(files) > 20
    loads = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve"}
    assert sorted(name for name, used in files.items() if used & loads) == [
        "horovod/common/kept_commits.py", "horovod/common/objects.py", "horovod/runner/_function_job.py", "horovod/runner/run_task.py",
        "horovod/torch/elastic/_copies.py"]
    speaks = {"socket", "socketserver", "http", "urllib", "xmlrpc", "asyncio", "multiprocessing", "ssl"}
    both = [name for name, used in files.items() if used & loads and used & speaks]
    assert both == ["horovod/runner/_function_job.py"]


SNIFF = """
import signal, socket, sys
first, last = int(sys.argv[1]), int(sys.argv[2])
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE: hvdrun itself comes to the host, too, faster than it is read here
signal.signal(signal.SIGTERM, lambda *unused: tap.setblocking(False))  # the end comes after the last packet
print("on", flush=True)
while True:
    try:
        packet = tap.recv(1 << 17)
    except BlockingIOError:
        break
    if packet[0] >> 4 == 4 and packet[9] == 6:
        tcp = packet[(packet[0] & 15) * 4:int.from_bytes(packet[2:4], "big")]
        to = socket.inet_ntop(socket.AF_INET, packet[16:20])
    elif packet[0] >> 4 == 6 and packet[6] == 6:
        tcp = packet[40:40 + int.from_bytes(packet[4:6], "big")]
        to = socket.inet_ntop(socket.AF_INET6, packet[24:40])
    else:
        continue
    source, port = int.from_bytes(tcp[0:2], "big"), int.from_bytes(tcp[2:4], "big")
    said = tcp[(tcp[12] >> 4) * 4:]
    if said and first <= port <= last:
        print(to, source, port, said[:256].hex(), flush=True)
"""
HELLO, PROOF, CHALLENGE = 92, 32, 64  # PROTOCOL.md: the mesh


def recorded_handshakes(lines):
    """(address, port, hello, proof) of those who proved that they belong to the world, not only to the look for addresses."""
    said = {}
    for line in lines:
        address, source, port, data = line.split()
        said[address, source, port] = said.get((address, source, port), b"") + bytes.fromhex(data)
    whole = [(key[0], int(key[2]), talk[:HELLO], talk[HELLO:HELLO + PROOF]) for key, talk in said.items()
             if talk[:4] == b"HvMh" and len(talk) >= HELLO + PROOF]
    return [one for one in whole if one[2][8:16].strip(b"\0")]


@pytest.fixture
def recorded(hosts_start, rig):
    """A handshake of a running job's data connections, and where it can be played again."""
    host = rig.hosts[1]
    sniffer = subprocess.Popen(host.command(sys.executable, "-S", "-E", "-c", SNIFF, PORTS[0], PORTS[-1]),
                               stdout=subprocess.PIPE, text=True)
    try:
        assert sniffer.stdout.readline() == "on\n"
        job = begin(lambda *args: hosts_start("--network-interfaces", "eth0", *args))
    finally:
        for pid in [pid for pid in host.processes() if SNIFF.encode() in read_proc(pid, "cmdline")]:
            os.kill(pid, signal.SIGTERM)
    talks = recorded_handshakes(sniffer.stdout.read().splitlines())
    sniffer.wait()
    usable = [(host, *talk) for talk in talks for host in rig.hosts if talk[:2] in on_host(host)]
    assert usable, talks
    yield usable[0]
    end(job, rig)


def test_a_recorded_handshake_opens_nothing(recorded, rig):
    """It is answered by another nonce than the one it was made for, and then it is over."""
    _, address, port, hello, proof = recorded
    other = hello[:20] + bytes([hello[20] ^ 1]) + hello[21:]
    heard = talk(rig, (address, port), f"{hello.hex()} hear:{CHALLENGE} {proof.hex()} {'00' * 32}", (hello + proof).hex(), other.hex())
    assert heard[0] == CHALLENGE and heard[1] <= CHALLENGE
    assert heard[2] == 0, "not even a nonce for another hello"


def test_nobody_in_the_middle_gets_into_a_connection(recorded, rig):
    """Messages by one who hears every packet: a hello with any field changed, or to another port than the one it was made
    for (that of its maker among them); after a true one the other side's own proof, the hello's, an old one, or none."""
    _, address, port, hello, proof = recorded
    changed = [hello[:at] + bytes([hello[at] ^ 1]) + hello[at + 1:] for at in (0, 4, 8, 16, 20, 24, 28, 59, 60, HELLO - 1)]
    assert talk(rig, (address, port), *[f"{other.hex()} {proof.hex()}" for other in changed]) == [0] * len(changed)
    elsewhere = [place for host in rig.hosts for place in on_host(host) if place[1] != port]
    assert any(place[0] != address for place in elsewhere), "the maker of the hello listens, too"
    for place in elsewhere:
        assert talk(rig, place, f"{hello.hex()} {proof.hex()}") == [0], place
    # A bye with a reason would end the world.
    frame = b"HvMf" + struct.pack("<IQQQ32x", 3, 4, 0, 0) + b"lies"
    after = ["echo:32", hello[-32:].hex(), proof.hex(), frame.hex()]
    heard = talk(rig, (address, port), *[f"{hello.hex()} hear:{CHALLENGE} {piece} {frame.hex()}" for piece in after])
    assert heard == [CHALLENGE] * len(after), "a nonce and a proof, and then the end"


def resident_mib(pid):
    return int(re.search(rb"VmRSS:\s+(\d+)", read_proc(pid, "status")).group(1)) // 1024


def test_a_length_that_nobody_proved_costs_no_memory(recorded, rig):
    """Half a gigabyte behind a frame that claims 2^31 bytes, and behind a hello that was recorded."""
    host, address, port, hello, _ = recorded
    ranks = [pid for pid in host.processes() if b"foreign_worker" in read_proc(pid, "cmdline")]
    before = {pid: resident_mib(pid) for pid in ranks}
    frame = b"HvMf" + struct.pack("<IQQQ32x", 1, 1 << 31, 1, 0)
    assert ranks
    floods = [f"{frame.hex()} flood:64", f"{hello.hex()} hear:{CHALLENGE} flood:64"] * 4
    talk(rig, (address, port), *floods)
    for pid in ranks:
        assert resident_mib(pid) < before[pid] + 48


# ---- launches


def poisoned_pythons(folder, witness):
    """A PATH without any Python that works: each leaves a witness."""
    folder.mkdir()
    for name in ("python", "python2", "python3", "python3.11", "env"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {witness}\nexit 9\n")
        (folder / name).chmod(0o755)
    (folder / "ssh").symlink_to("/usr/bin/ssh")
    return str(folder)


def test_hvdrun_needs_no_python(run, rig, tmp_path):
    witness = tmp_path / "witness"
    words = ["/usr/bin/env", "PATH=" + poisoned_pythons(tmp_path / "bin", witness), hvdrun_path()]
    job = run("-np", 2, "/bin/echo", "here", program=words)
    assert job.code == 0 and job.out.count(":here\n") == 2, job.err
    for client in ("auto", "program"):
        job = run("--ssh-client", client, "-np", 2, "-H", "hvd1:1,hvd2:1", "/bin/echo", "there", program=rig.on_head(*words))
        assert job.code == 0 and job.out.count(":there\n") == 2, job.err
    assert not witness.exists()


def test_launches_at_once_share_nothing_but_known_hosts(start, rig, tmp_path):
    """No cache in any usual place; and keys that all of them accept at the same time leave whole lines."""
    places = [tmp_path / name for name in ("home", "cache", "config", "data", "state", "runtime", "tmp")]
    for place in places:
        place.mkdir()
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
    env = dict(zip(names, map(str, places)))
    known = (rig.folder / "known_hosts").read_text()
    key = known.splitlines()[0].split(" ", 1)[1]
    try:
        for _ in range(3):
            rig.write("known_hosts", "")
            jobs = [start("-np", 2, "-H", "hvd1:1,hvd2:1", "--ssh-host-keys", "accept-new", *worker("init", "sum", "shutdown"),
                          program=rig.on_head(hvdrun_path()), env=env) for _ in range(4)]
            for job in jobs:
                assert job.finish() == 0 and job.out.count("sum 3") == 2, job.err
            lines = (rig.folder / "known_hosts").read_text()
            assert lines.endswith("\n")
            assert {line.split(" ", 1)[0] for line in lines.splitlines()} == {"hvd1", "hvd2"}
            assert all(line.split(" ", 1)[1] == key for line in lines.splitlines())
    finally:
        rig.write("known_hosts", known)
    assert [str(file) for place in places for file in place.rglob("*")] == []
    rig.nothing_left()


# ---- many hosts, and containers


@pytest.mark.parametrize("sshds", [1, 2])
def test_many_names_pass_a_strict_sshd_with_few_descriptors(tmp_path, start, sshds):
    """40 logins at one sshd, or two, that turn away whoever comes while two others log in; all are told to come again."""
    rig = HostRig(tmp_path, sshds, ["MaxStartups 2:100:2"])
    try:
        names = [f"n{number:02}" for number in range(40)]
        rig.ssh_config(*(line for number, name in enumerate(names) for line in (
            f"Host {name}", f" HostName hvd{number % sshds + 1}", f" HostKeyAlias hvd{number % sshds + 1}")))
        few = rig.on_head("bash", "-c", 'ulimit -n 256; exec "$@"', "few", hvdrun_path())
        job = start("-np", 40, "-H", ",".join(name + ":1" for name in names), "hostname", program=few)
        assert job.finish() == 0, job.err
        assert sorted(job.out.split("\n")[:-1]) == sorted(
            f"[{rank}]<stdout>:hvd{rank // (40 // sshds) + 1}" for rank in range(40)), job.out
        refused = sum((rig.folder / f"{host.name}.log").read_text().count("MaxStartups") for host in rig.hosts)
        assert refused > 0, "somebody was turned away, or this shows nothing"
        rig.nothing_left()
    finally:
        rig.down()


def test_a_relay_that_hangs_stops_no_other_host(run, rig):
    """Nothing comes out of the way to one of many names; the others get as far as they can."""
    names = [f"n{number}" for number in range(8)]
    rig.ssh_config("Host stuck", " ProxyCommand sleep 1000", *(line for number, name in enumerate(names) for line in (
        f"Host {name}", f" HostName hvd{number % 2 + 1}", f" HostKeyAlias hvd{number % 2 + 1}")))
    try:
        job = run("-np", 9, "-H", ",".join(["stuck:1", *(name + ":1" for name in names)]), "--stage-timeouts", "connect=15,kex=15",
                  "true", program=rig.on_head(hvdrun_path()))
    finally:
        rig.ssh_config()
    assert job.code == 1, job.err
    assert "1 of 9 hosts cannot be used, so nothing was started." in job.err, job.err
    assert re.search(r"^  stuck: (connecting|agreeing on keys): ", job.err, re.M), job.err
    assert f"  {', '.join(names)}: ready\n" in job.err, job.err
    job.nothing_left()
    rig.nothing_left()


def test_containers_with_an_odd_port_little_shared_memory_and_a_bridge(tmp_path, start):
    rig = HostRig(tmp_path, 2, ["Port 22", "Port 22022"])
    try:
        for host in rig.hosts:
            host.run("mount", "-o", "remount,size=64k", "/dev/shm")
            host.ip("link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up")
            host.run("nft", "-f", "-", input="table inet f {\n chain i {\n type filter hook input priority 0;\n"
                                             " tcp dport 22 reject with tcp reset\n }\n}\n")
        steps = worker("init", "sum", "large", "shutdown")
        for ways in (["-H", "hvd1:2,hvd2:2", "-p", 22022], ["-H", "[hvd1]:22022:2,[hvd2]:22022:2"]):
            job = start("-np", 4, *ways, *steps, program=rig.on_head(hvdrun_path()))
            assert job.finish() == 0, job.err
            assert job.out.count("sum 10") == 4 and job.out.count("large") == 4
        rig.nothing_left()
    finally:
        rig.down()


# ---- the same numbers


@pytest.fixture(scope="module")
def eight_hosts(tmp_path_factory):
    rig = HostRig(tmp_path_factory.mktemp("eight"), 8)
    yield rig
    rig.down()


@pytest.mark.long
@pytest.mark.parametrize("hosts, ranks", [(2, 4), (4, 4), (8, 8)])
def test_training_on_hosts_gives_the_numbers_of_as_many_agents_on_one(start, eight_hosts, tmp_path, hosts, ranks):
    """Every loss to the last bit, and so every parameter that went into it; on all ranks the same parameters."""
    named = ",".join(f"{host.name}:{ranks // hosts}" for host in eight_hosts.hosts[:hosts])
    ways = {"hosts": (["-H", named], eight_hosts.on_head(hvdrun_path())),
            "agents": (["--hosts-per-machine", hosts], None)}
    losses = {}
    for name, (args, program) in ways.items():
        file = tmp_path / name
        job = start("-np", ranks, *args, "/usr/bin/python3", REPO / "examples" / "pytorch_digits.py", "--epochs", 2, "--steps", 30,
                    "--check-hashes", "--log-losses", file, program=program)
        out, err = job.process.communicate(timeout=6 * DEADLINE)
        assert job.process.returncode == 0, out + err
        losses[name] = json.loads(file.read_text())
    assert len(losses["hosts"]) == 30 and losses["hosts"][0] > losses["hosts"][-1]
    assert losses["hosts"] == losses["agents"]
    eight_hosts.nothing_left()
