"""Workers of stock Horovod under hvdrun --stock-horovod: they meet through its HTTP rendezvous. The workers are a client of
the protocol written from its description (workers/stock_worker.py), and once our own package as that client."""

import http.client
import os
import re
import socket

import pytest
from conftest import foreign_worker, hvdrun_path, library, package_folder, read_until, worker

NOTICE = re.compile(r"workers of stock Horovod meet at (127\.0\.0\.1):(\d+): its protocol has no authentication")
MORE_THAN_IT_TAKES = 400  # connections


def stock(*steps):
    return worker("stock_worker.py", *steps)


def lines(job):
    return sorted(line.split(":", 1)[1] for line in job.out.splitlines())


def test_a_world_of_stock_workers_meets_and_adds_up(run):
    job = run("--stock-horovod", "-np", 3, *stock("init", "world", "sum", "shutdown", "init", "sum"))
    assert job.code == 0, job.out + job.err
    assert lines(job) == sorted([f"world {rank} of 3 local {rank} of 3 cross 0 of 1" for rank in range(3)] + ["sum 6"] * 6)
    assert len(NOTICE.findall(job.err)) == 1 and job.err.count("\n") == 1, job.err
    job.nothing_left()


def test_hosts_that_one_machine_plays_are_hosts_of_stock_workers(run):
    job = run("--stock-horovod", "--hosts-per-machine", 2, "-np", 3, *stock("init", "world", "sum"))
    assert job.code == 0, job.out + job.err
    assert [line for line in lines(job) if "world" in line] == [
        "world 0 of 3 local 0 of 2 cross 0 of 2", "world 1 of 3 local 1 of 2 cross 0 of 1",
        "world 2 of 3 local 0 of 1 cross 1 of 2"]


def test_our_package_meets_there_as_under_any_launcher_of_stock_horovod(run):
    ours = {"PYTHONPATH": package_folder(), "HVD_HVDRUN": hvdrun_path(),
            "HVD_RUNTIME": os.environ.get("HVD_RUNTIME", library("libhvd.so"))}
    flags = [word for name, value in ours.items() for word in ("-x", f"{name}={value}")]
    job = run("--stock-horovod", "-np", 2, *flags, *foreign_worker("init", "world", "sum", "shutdown"))
    assert job.code == 0, job.out + job.err
    assert lines(job)[:2] == ["sum 3", "sum 3"], job.out + job.err


def test_its_workers_get_the_environment_of_stock_horovod_and_nothing_of_ours(run):
    names = ["HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_GLOO_IFACE", "NCCL_SOCKET_IFNAME", "PYTHONUNBUFFERED",
             "HVD_RUNTIME", "HVD_JOB_KEY", "HVD_AGENT", "PYTHONPATH", "HOROVOD_CYCLE_TIME", "HOROVOD_CACHE_CAPACITY",
             "HOROVOD_HIERARCHICAL_ALLREDUCE", "HOROVOD_FUSION_THRESHOLD", "HOROVOD_TIMELINE", "HOROVOD_ELASTIC"]
    flags = ["--cycle-time-ms", "3.5", "--cache-capacity", "0", "--no-hierarchical-allreduce", "--fusion-threshold-mb", "2",
             "--timeline-filename", "t.json"]
    env = {"PYTHONPATH": "/mine", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "192.0.2.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": "1",
           "HVD_RUNTIME": "/old"}
    job = run("--stock-horovod", "-np", 1, *flags, *stock("init", *(f"env={name}" for name in names)), env=env)
    assert job.code == 0, job.out + job.err
    got = dict(line.split("=", 1) for line in lines(job))
    assert got == dict(zip(names, [
        "gloo", "gloo", "lo", "lo", "1", "None", "None", "None", "/mine", "3.5", "0", "0", str(2 << 20), "t.json", "None"]))
    assert "has no effect" not in job.err, job.err


def test_the_first_cause_is_named_when_a_stock_worker_dies(run):
    job = run("--stock-horovod", "-np", 3, *stock("init", "sum", "1:kill", "lost", "sleep"))
    assert job.code == 137, job.out + job.err
    assert re.search(r"rank 1 on host \S+ \(pid \d+\) failed: signal 9 \(SIGKILL\)", job.err), job.err
    job.nothing_left()


def ask(port, request):
    """The answer's first line, and all of it."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return answer.split(b"\r\n", 1)[0].decode(), answer


def test_a_stranger_gets_no_files_and_is_refused_in_the_words_of_http(start, tmp_path):
    done = tmp_path / "done"
    job = start("--stock-horovod", "-np", 1, *stock("init", "sum", f"wait={done}"))
    port = int(NOTICE.search(read_until(job.process.stderr, "disturb the job").decode()).group(2))
    assert ask(port, b"HEAD /README.md/x HTTP/1.1\r\n\r\n")[0] == "HTTP/1.1 405 Method Not Allowed"
    assert ask(port, b"GET /one HTTP/1.1\r\n\r\n")[0] == "HTTP/1.1 400 Bad Request"
    assert ask(port, b"GET /../../etc/passwd HTTP/1.1\r\n\r\n")[0] == "HTTP/1.1 400 Bad Request"
    assert ask(port, b"PUT /a/b HTTP/1.1\r\n\r\n")[0] == "HTTP/1.1 411 Length Required"
    assert ask(port, b"PUT /a/b HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")[0] == "HTTP/1.1 413 Content Too Large"
    assert ask(port, b"GET /a/" + b"x" * 9000)[0].startswith("HTTP/1.1 431 ")
    assert ask(port, b"\x16\x03\x01\x02\r\n\r\n")[0] == "HTTP/1.1 400 Bad Request"
    # Values of any bytes, by a client of the library.
    value = bytes(range(256)) * 100
    for method, code in (("PUT", 200), ("GET", 200), ("DELETE", 200), ("GET", 404)):
        server = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        server.request(method, "/mine/key", value if method == "PUT" else None)
        answer = server.getresponse()
        body = answer.read()
        assert answer.status == code
        assert body == value or method != "GET" or code == 404
    with open("/proc/net/tcp") as table:
        listening = [line.split()[1] for line in table if f":{port:04X} " in line and " 0A " in line]
    assert listening == [f"0100007F:{port:04X}"], "it listens at the loopback address alone"
    # Those that say nothing, or half of it, hold up nobody, however many they are: the oldest one has to go.
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MORE_THAN_IT_TAKES)]
    for connection in silent[::2]:
        connection.sendall(b"GET /mine/key HT")
    assert ask(port, b"GET /mine/key HTTP/1.1\r\n\r\n")[0] == "HTTP/1.1 404 Not Found"
    done.write_text("")
    assert job.finish() == 0, job.err
    for connection in silent:
        connection.close()
    job.nothing_left()


def test_a_port_that_is_taken_is_one_sentence(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        job = run("--stock-horovod", "-np", 2, "--port-range", f"{port}-{port}", *stock("init"))
    assert job.code == 1, job.err
    assert f"cannot listen at 127.0.0.1, port {port} to {port}: Address already in use" in job.err
    job.nothing_left()


def test_elastic_stock_workers_are_started_again_together_and_told_their_places(run):
    # The survivor asks for its place, as stock Horovod does, and is ended before the next world begins.
    job = run("--stock-horovod", "--elastic", "--terminate-grace", 1, "-np", 2,
              *stock("env=HOROVOD_ELASTIC", "0:first=stay", "init", "notices", "place", "sum", "1:first=kill", "0:first=lost;place",
                     "world"))
    assert job.code == 0, job.out + job.err
    assert "running workers are not told of hosts that are added" in job.err
    assert "all ranks are started again (restart 1" in job.err
    said = lines(job)
    assert [said.count(line) for line in ("HOROVOD_ELASTIC=1", "sum 3", "notices 200", "lost")] == [4, 4, 4, 1]
    assert [line for line in said if "place" in line] == ["place 0,2,0,2,0,1"] * 2 + ["place 1,2,1,2,0,1"] * 2
    assert [line for line in said if "world" in line] == [f"world {rank} of 2 local {rank} of 2 cross 0 of 1" for rank in (0, 1)]
    job.nothing_left()


@pytest.mark.parametrize("flags", [["--spares", "1"], ["--keep-commits", "64"], ["--elastic-restart", "in-process"]])
def test_what_stock_workers_cannot_do_is_refused(run, flags):
    job = run("--stock-horovod", "--elastic", *flags, "-np", 2, "true")
    assert job.code == 2 and job.err.count("\n") == 1, job.err
    assert "exclude each other" in job.err and "--stock-horovod" in job.err


def test_print_env_shows_where_stock_workers_meet(run):
    job = run("--stock-horovod", "--print-env", "-np", 2, "true")
    assert job.code == 0 and "HOROVOD_GLOO_RENDEZVOUS_ADDR=...  # for stock Horovod: wins over everything" in job.out
    assert "HVD_RUNTIME" not in job.out
