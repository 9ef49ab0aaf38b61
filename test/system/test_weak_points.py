"""Known weak points of launchers of this kind, one test each, that fit no other file. test/issues/README.md lists all."""

import os
import pathlib
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import DEADLINE, children_of, hvdrun_path, is_alive, parent_of, read_proc, wait_until, worker

ALLOWED = sorted(os.sched_getaffinity(0))


def variables_of(job, rank=0):
    prefix = f"[{rank}]<stdout>:"
    lines = (line[len(prefix) :] for line in job.out.splitlines() if line.startswith(prefix))
    return dict(line.split("=", 1) for line in lines if "=" in line)


# ---- security


def listening_inodes():
    """Of TCP and UDP sockets that take something from anybody."""
    inodes = set()
    for name, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        try:
            lines = pathlib.Path("/proc/net", name).read_text().splitlines()[1:]
        except OSError:
            continue
        inodes.update(fields[9] for fields in map(str.split, lines) if fields[3] == state)
    return inodes


def socket_inodes(pid):
    inodes = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            if target.startswith("socket:["):
                inodes.add(target[len("socket:[") : -1])
    except OSError:
        pass  # it has just ended, or closed that one
    return inodes


def test_no_process_of_a_job_listens_to_the_network(start):
    with socket.create_server(("127.0.0.1", 0)):  # the look finds what is there
        assert socket_inodes(os.getpid()) & listening_inodes()
    job = start("-np", 2, *worker("link_worker.py", "join", "sleep"), stdout=subprocess.PIPE)
    seen, sockets, end = b"", 0, time.monotonic() + DEADLINE
    while seen.count(b"generation 1") < 2:
        assert time.monotonic() < end
        sockets += check_no_listener(job)
        os.set_blocking(job.process.stdout.fileno(), False)
        try:
            chunk = os.read(job.process.stdout.fileno(), 65536)
        except BlockingIOError:
            continue
        assert chunk, "the job ended"
        seen += chunk
    assert len(job.processes()) == 5
    sockets += check_no_listener(job)
    assert sockets > 0, "the links at least are sockets"


def check_no_listener(job):
    count = 0
    for pid in job.processes():
        inodes = socket_inodes(pid)
        count += len(inodes)
        assert not inodes & listening_inodes(), read_proc(pid, "cmdline")
    return count


class Trap:
    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return (open, (self.witness, "w"))


def picture(folder):
    return {str(p): (p.lstat().st_mtime_ns, p.lstat().st_size, p.lstat().st_mode) for p in folder.rglob("*")}


@pytest.mark.parametrize("program", ["hvdrun", "horovodrun"])
def test_no_cache_is_read_or_written(run, tmp_path, program):
    """A trapped cache, and pipes that hold up for ever whoever reads them."""
    home, witness = tmp_path / "home", tmp_path / "witness"
    (home / ".horovod").mkdir(parents=True)
    (home / ".cache").mkdir()
    (home / ".horovod" / "cache.bin").write_bytes(pickle.dumps(Trap(str(witness))))
    for pipe in (".horovod/cache.lock", ".horovod/config", ".hvdrun", ".hvdrunrc"):
        os.mkfifo(home / pipe)
    old = 1_000_000_000 * 10**9  # reading a file whose last reading is older than its last change is noted by the kernel
    os.utime(home / ".horovod" / "cache.bin", ns=(old, old + 1))
    before = picture(home)
    binary = pathlib.Path(hvdrun_path()).parent / program
    if not binary.exists():
        pytest.skip(f"no {program} here")
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "XDG_CONFIG_HOME": str(home / ".config")}
    for _ in range(2):
        job = run("-np", 2, *worker("init_worker.py"), program=[str(binary)], env=environment)
        assert job.code == 0 and job.out.count("joined") == 2, job.err
    assert (home / ".horovod" / "cache.bin").stat().st_atime_ns == old, "somebody read it"
    assert not witness.exists() and picture(home) == before


# ---- launcher


def test_more_than_a_thousand_ranks_run_at_the_same_time(start, tmp_path):
    count = 1100
    with open(tmp_path / "out", "wb") as out:
        job = start("-np", count, "--stdin", "all", "--start-timeout", 120, "sh", "-c", "echo up; read line; echo down",
                    stdin=subprocess.PIPE, stdout=out)
        wait_until("all ranks at once", lambda: (tmp_path / "out").read_bytes().count(b"up\n") >= count,
                   limit=4 * DEADLINE)
        assert (tmp_path / "out").read_bytes().count(b"down\n") == 0, "each is still there"
        job.process.stdin.close()
        job.process.stdin = None
        assert job.finish() == 0, job.err
    lines = (tmp_path / "out").read_text().splitlines()
    assert sorted(lines) == sorted(f"[{rank}]<stdout>:{word}" for rank in range(count) for word in ("up", "down"))
    job.nothing_left()


def test_who_has_not_called_init_is_said_again_and_again(start, tmp_path):
    env = {"HVD_TEST_INIT_WATCH_MS": "100"}
    with open(tmp_path / "err", "wb") as err:
        job = start("-np", 4, *worker("link_worker.py", *[f"{r}:wait-file={tmp_path}/go" for r in (0, 2, 3)], "join", "goodbye"),
                    env=env, stderr=err)
        said = lambda: (tmp_path / "err").read_text().splitlines()
        wait_until("three lines", lambda: len(said()) >= 3)
        (tmp_path / "go").touch()
        assert job.finish() == 0
    workers = [w for w in said()[0].partition("pids ")[2].partition(")")[0].split(", ") if w.isdigit()]
    assert len(workers) == 3
    for line in said():
        assert line.startswith(f"hvdrun: ranks 0,2-3 (pids {', '.join(workers)}) have not called hvd.init(); "), line
        assert re.search(r"; 1 of 4 ranks waits there, the first for [0-9.]+ s$", line), line
    assert job.out.count("generation 1") == 4


def test_nothing_is_said_when_all_are_in_or_nobody_is(run, start, tmp_path):
    # Between one rank's join and the other's lies less than these two seconds, on the slowest machine.
    steps = [f"{r}:touch={tmp_path}/{r}" for r in range(2)] + [f"wait-file={tmp_path}/go", "join", "pause=2.2", "goodbye"]
    all_in = start("-np", 2, *worker("link_worker.py", *steps), env={"HVD_TEST_INIT_WATCH_MS": "2000"})
    wait_until("both ranks", lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists())
    (tmp_path / "go").touch()
    assert all_in.finish() == 0 and all_in.err == ""
    nobody = run("-np", 2, "sleep", "0.4", env={"HVD_TEST_INIT_WATCH_MS": "50"})
    assert nobody.code == 0 and nobody.err == ""


@pytest.mark.parametrize("args", [[], ["--print-env"]])
def test_what_is_not_set_is_not_passed_on(run, args):
    """No variable for a setting at its default, and no value that is the text of another language's nothing."""
    mine = {n: v for n, v in os.environ.items() if not n.startswith(("HOROVOD_", "HVD_"))}
    job = run("-np", 1, *args, "env")
    assert job.code == 0, job.err
    if args:
        lines = [line.partition("  # ")[0] for line in job.out.splitlines() if not line.startswith("#")]
        seen = dict(line.split("=", 1) for line in lines if "=" in line)
    else:
        seen = variables_of(job)
    assert seen["HOROVOD_SIZE"] == "1"
    added = {n: v for n, v in seen.items() if mine.get(n) != v}
    for name, value in added.items():
        assert value not in ("", "None", "(None,)", "null", "nan", "[]", "()", "False", "True"), (name, value)
        assert "None" not in value and not value.startswith(("(", "[", "{")), (name, value)
    for name in ("HOROVOD_CYCLE_TIME", "HOROVOD_CACHE_CAPACITY", "HOROVOD_FUSION_THRESHOLD", "HOROVOD_TIMELINE"):
        assert name in os.environ or name not in seen


def test_thread_affinity_has_no_effect_and_bind_to_does_it(run, tmp_path):
    job = run("-np", 1, "--thread-affinity", "1", "true")
    assert job.code == 0 and "--thread-affinity has no effect: " in job.err and "--bind-to core" in job.err
    # So it is with a file that has it for another launcher.
    (tmp_path / "job.yaml").write_text("library_options:\n  thread_affinity: 1\n")
    job = run("-np", 1, "--config-file", tmp_path / "job.yaml", "true")
    assert job.code == 0 and "no effect" in job.err and "library_options.thread_affinity" in job.err
    count = len(ALLOWED)
    job = run("-np", count, "--bind-to", "core", "grep", "Cpus_allowed_list", "/proc/self/status")
    own = [line.split()[-1] for line in job.out.splitlines()]
    assert job.code == 0 and sorted(own, key=int) == [str(cpu) for cpu in ALLOWED]


def test_check_build_is_true_and_imports_nothing(tmp_path):
    """A copy of the program between files that we choose, and a Python that would tell on it."""
    prefix, tell = tmp_path / "prefix", tmp_path / "tell"
    (prefix / "bin").mkdir(parents=True)
    tell.mkdir()
    shutil.copy(hvdrun_path(), prefix / "bin" / "hvdrun")
    for name in ("python", "python3", "sh"):
        (tell / name).write_text(f"#!/bin/sh\n: > {tmp_path}/started\n")
        (tell / name).chmod(0o755)
    for name in ("torch", "tensorflow", "mxnet", "horovod"):
        (tell / name).mkdir()
        (tell / name / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")

    def line_of(framework):
        done = subprocess.run([prefix / "bin" / "hvdrun", "--check-build"], capture_output=True, text=True, timeout=30,
                              env={"PATH": str(tell), "PYTHONPATH": str(tell)})
        assert done.returncode == 0 and done.stderr == ""
        return next(line.strip() for line in done.stdout.splitlines() if line.endswith(framework))

    binding = prefix / "lib" / "hvdrun" / "python" / "horovod" / "torch"
    assert line_of(" PyTorch") == "[ ] PyTorch"
    binding.mkdir(parents=True)
    (binding / "__init__.py").touch()
    assert line_of(" PyTorch") == "[ ] PyTorch"
    (binding / "mpi_ops.py").touch()
    assert line_of(" PyTorch") == "[ ] PyTorch", "the package alone can do nothing"
    (prefix / "lib" / "libhvd.so").touch()
    assert line_of(" PyTorch") == "[X] PyTorch"
    assert line_of(" TensorFlow") == "[ ] TensorFlow"
    shutil.rmtree(binding)
    assert line_of(" PyTorch") == "[ ] PyTorch"
    assert not (tmp_path / "started").exists() and not (tmp_path / "imported").exists()


def below(pid):
    return [p for child in children_of(pid) for p in [child, *below(child)]]


def test_each_job_has_a_cgroup_of_its_own(start):
    # Each rank has a child in its session, and one that has left it and forgotten its environment.
    family = ["sh", "-c", "sleep 600 & env -i setsid sleep 600 & wait"]
    first, second = (start("--verbose", "-np", 2, *family) for _ in range(2))
    for job in (first, second):
        wait_until("the workers and their children", lambda: len(below(job.agent)) == 6)

    def group_of(pid):
        lines = read_proc(pid, "cgroup").decode().splitlines()
        return next((line[3:] for line in lines if line.startswith("0::")), "")

    groups = []
    for job in (first, second):
        agent = job.agent
        assert len(below(agent)) == 6
        groups.append({group_of(p) for p in below(agent)})
    expected = [{f"hvd-{job.job_id()}" in group.rsplit("/", 1)[-1] for group in of} for job, of in zip((first, second), groups)]
    for job in (first, second):
        job.process.send_signal(signal.SIGINT)
        assert job.finish() == 130
    if "cleanup is guaranteed by: cgroup" not in first.err:
        pytest.skip("no cgroup can be made here: " + first.err.splitlines()[0])
    assert expected == [{True}, {True}] and groups[0] != groups[1]


def test_the_cgroup_ends_what_has_forgotten_the_job(start, run):
    """Neither descent nor the environment tell whose it is."""
    job = start("--verbose", "-np", 2, "sh", "-c", "env -i setsid sleep 600 & wait")
    wait_until("the ranks' children", lambda: len(below(job.agent)) == 4)
    own, workers = [job.pid, job.warden, job.agent], job.workers
    left = [p for p in below(job.agent) if p not in workers]
    if b"/hvd-" not in read_proc(left[0], "cgroup"):
        pytest.skip("no cgroup can be made here")
    for pid in own:
        os.kill(pid, signal.SIGSTOP)
    for pid in own:
        os.kill(pid, signal.SIGKILL)
    wait_until("the end of the ranks", lambda: not any(is_alive(p) for p in workers))
    assert run("-np", 1, "true").code == 0
    assert not any(is_alive(p) for p in left)


def test_slots_are_the_gpus_that_a_job_may_use(run, tmp_path):
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    mine = {"HVD_TEST_DEV": str(tmp_path)}

    def slots(env):
        refused = run("-np", 1000, "-H", "localhost", "true", env={**mine, **env})
        assert refused.code == 2
        return int(re.search(r"have (\d+) slots?", refused.err).group(1))

    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        assert slots({}) == 3
    assert slots({"CUDA_VISIBLE_DEVICES": "2,0"}) == 2
    assert slots({"CUDA_VISIBLE_DEVICES": "GPU-5ab6d9b0"}) == 1
    for none in ("", "-1"):
        assert slots({"CUDA_VISIBLE_DEVICES": none}) == len(ALLOWED), "no GPUs: the cores"
    assert run("-np", 2, "-H", "localhost", "true", env={**mine, "CUDA_VISIBLE_DEVICES": "2,0"}).code == 0


def test_the_list_of_gpus_reaches_the_workers_untouched(run):
    for value in ("1,0", "", "GPU-5ab6d9b0,MIG-1"):
        job = run("-np", 2, "sh", "-c", 'echo "[$CUDA_VISIBLE_DEVICES]"', env={"CUDA_VISIBLE_DEVICES": value})
        assert job.out.count(f":[{value}]\n") == 2


def test_an_empty_cgroup_of_a_job_killed_as_a_whole_is_removed_by_the_next(start, run):
    job = start("--verbose", "-np", 1, "sleep", 600)
    wait_until("the worker", lambda: job.workers)
    group = next((line[3:] for line in read_proc(job.workers[0], "cgroup").decode().splitlines() if line.startswith("0::")), "")
    if "hvd-" not in group:
        pytest.skip("no cgroup can be made here")
    folders = [pathlib.Path(line.split()[4]) / group.lstrip("/") for line in open("/proc/self/mountinfo") if " - cgroup2 " in line]
    folder = next(f for f in folders if f.exists())
    own = [job.pid, job.warden, job.agent]
    for pid in own:
        os.kill(pid, signal.SIGSTOP)
    for pid in own:
        os.kill(pid, signal.SIGKILL)
    job.nothing_left()
    assert run("-np", 1, "true").code == 0
    assert not folder.exists()


# ---- pains


ENDS = [
    # what rank 1 does (the others do: join, goodbye, end with 0), the code of the job, what is said
    ("exit 0 with goodbye", ["join", "goodbye", "exit=0"], 0, ""),
    ("exit 0 without goodbye, and nobody waits", ["join", "exit=0"], 0, "in the middle of the job, without hvd.shutdown()"),
    ("exit 3 with goodbye", ["join", "goodbye", "exit=3"], 3, "exit code 3"),
    ("exit 3 without goodbye", ["join", "exit=3"], 3, "exit code 3"),
    ("SIGKILL inside", ["join", "kill"], 137, "signal 9 (SIGKILL)"),
    ("SIGKILL after", ["join", "goodbye", "kill"], 137, "signal 9 (SIGKILL)"),
    ("SIGKILL before", ["kill"], 137, "signal 9 (SIGKILL)"),
]


@pytest.mark.parametrize("steps, code, said", [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_a_rank_succeeded_with_0_and_a_goodbye_only(run, steps, code, said):
    mine = [f"1:{step}" for step in steps]
    others = [f"{r}:{step}" for r in (0, 2) for step in ("join", "goodbye", "exit=0")]
    job = run("-np", 3, *worker("link_worker.py", *mine, *others))
    assert job.code == code, job.err
    assert said in job.err and (said == "") == (job.err == "")
    if code:
        assert "hvdrun: rank 1 on host" in job.err


def test_who_never_calls_init_needs_no_goodbye(run):
    assert run("-np", 2, "true").code == 0


def test_an_exit_handler_that_hangs_does_not_hide_the_code(run):
    code = "import atexit, os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" \
           "atexit.register(lambda: time.sleep(0 if os.environ['RANK'] == '1' else 600))\nsys.exit(int(os.environ['RANK']) * 4)"
    job = run("-np", 2, "--terminate-grace", "0.3", sys.executable, "-S", "-E", "-c", code)
    assert job.code == 4 and "rank 1 on host" in job.err
    job.nothing_left()


def test_a_canary_is_in_no_command_line_at_any_moment(start, tmp_path):
    """A megabyte of environment, looked for in every command line from the first moment on."""
    large = {f"TEST_CANARY_{i}": "tweet-tweet-" + "y" * 100_000 for i in range(10)}
    wait = f"until [ -e {tmp_path}/go ]; do sleep 0.02; done"
    job = start("-np", 2, "sh", "-c", f"echo ${{#TEST_CANARY_9}}; {wait}", env=large)
    looks, end = 0, time.monotonic() + DEADLINE
    while job.process.poll() is None:
        assert time.monotonic() < end
        seen = job.processes()
        for pid in seen:
            assert b"tweet-tweet" not in read_proc(pid, "cmdline")
        looks += len(seen) >= 5
        if looks == 5:
            (tmp_path / "go").touch()
    assert job.finish() == 0 and looks >= 5
    assert job.out.count(":100012\n") == 2


def test_two_megabytes_in_one_variable_are_refused_before_anything_starts(run, tmp_path):
    """The kernel takes 128 KiB of one: said with name and size, not when rank 7 of 8 cannot be started."""
    (tmp_path / "job.env").write_text("CONFIG_JSON=" + "x" * (2 << 20) + "\n")
    job = run("-np", 2, "--env-file", tmp_path / "job.env", "touch", tmp_path / "started")
    assert job.code == 2 and not (tmp_path / "started").exists()
    assert job.err.startswith(f"hvdrun: the variable CONFIG_JSON is {(2 << 20) + 12} bytes long, but the kernel takes at most 131071 ")
    assert len(job.err.splitlines()) == 1


def test_too_much_in_all_is_refused_before_anything_starts(run, tmp_path):
    (tmp_path / "job.env").write_text("".join(f"PART_{i}={'x' * 100_000}\n" for i in range(80)))
    job = run("-np", 2, "--env-file", tmp_path / "job.env", "touch", tmp_path / "started")
    assert job.code == 2 and not (tmp_path / "started").exists()
    assert "bytes long, but the kernel takes at most" in job.err and "of all" in job.err and len(job.err.splitlines()) == 1


@pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two cores")
def test_two_ranks_on_two_cores_have_one_each(run):
    show = "grep Cpus_allowed_list /proc/self/status; echo threads $OMP_NUM_THREADS"
    env = {"OMP_NUM_THREADS": "99"}
    two = lambda: os.sched_setaffinity(0, ALLOWED[:2])
    job = run("-np", 2, "--bind-to", "core", "sh", "-c", show, env=env, preexec_fn=two)
    own = [line.split()[-1] for line in job.out.splitlines() if "Cpus_allowed_list" in line]
    assert sorted(own, key=int) == [str(cpu) for cpu in ALLOWED[:2]], "one core each, inside the mask of hvdrun"
    for mask in ([ALLOWED[0]], [ALLOWED[1]]):
        frame = run("-np", 2, "--bind-to", "core", "sh", "-c", show, preexec_fn=lambda: os.sched_setaffinity(0, mask))
        own = [line.split()[-1] for line in frame.out.splitlines() if "Cpus_allowed_list" in line]
        assert own == [str(mask[0])] * 2, "a mask that hvdrun inherited is never left"
    for given, threads in (([], "99"), (["--omp-threads", "1"], "1"), (["--omp-threads", "-1"], "99")):
        job = run("-np", 2, "--bind-to", "core", *given, "sh", "-c", show, env=env, preexec_fn=two)
        assert job.out.count(f"threads {threads}\n") == 2, job.out
    without = {n: v for n, v in os.environ.items() if n != "OMP_NUM_THREADS"}
    done = subprocess.run([hvdrun_path(), "-np", "2", "--bind-to", "core", "sh", "-c", show], env=without, preexec_fn=two,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.count("threads 1\n") == 2
