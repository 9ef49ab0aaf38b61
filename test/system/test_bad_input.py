"""Bad input: one sentence on stderr, exit 2, nothing started."""

import json
import os
import re
import socket

import pytest
from conftest import hvdrun_path, library

LONG = "x" * 10_000
CONTROL = "a\x1b[31m\r\n\x07\x7f"


@pytest.fixture
def refused(run, tmp_path):
    """refused(named, *args): the whole command line must be refused with one sentence that has `named` in it."""

    def check(named, *args, env=None):
        witness = tmp_path / "witness"
        job = run(*args, "touch", witness, env=env)
        assert job.code == 2, (job.code, job.err[:500])
        assert not witness.exists(), "the command was started"
        assert job.out == ""
        assert job.err.startswith("hvdrun: ") and job.err.endswith("\n")
        assert len(job.err.splitlines()) == 1, job.err[:500]
        assert all(c.isprintable() for c in job.err[:-1]), repr(job.err[:500])
        assert len(job.err) < 600, job.err[:700]
        assert named in job.err, job.err
        job.nothing_left()
        return job.err

    return check


@pytest.mark.parametrize(
    "named, args",
    [
        ("-np is missing", []),
        ("3", ["-np", "3", "-H", "localhost:2"]),
        ("':2'", ["-np", "2", "-H", ":2"]),
        ("two", ["-np", "2", "-H", "localhost:two"]),
        ("-H and --hostfile", ["-np", "2", "-H", "a", "--hostfile", "b"]),
        ("no-such-file", ["-np", "2", "--hostfile", "no-such-file"]),
        ("no-such-file", ["-np", "2", "--config-file", "no-such-file.yaml"]),
        ("out of range", ["-np", "0"]),
        ("-3", ["-np", "-3"]),
        ("999999999999999999999", ["-np", "999999999999999999999"]),
        ("--timeout -1", ["-np", "2", "--timeout", "-1"]),
        ("nan", ["-np", "2", "--timeout", "nan"]),
        ("--min-np 3", ["-np", "2", "--min-np", "3", "--max-np", "2"]),
        ("--max-np 1", ["-np", "2", "--elastic", "--max-np", "1"]),
        ("--max-failures 'x'", ["-np", "2", "--elastic", "--max-failures", "x"]),
        ("the lower one first", ["-np", "2", "--elastic", "--blacklist-cooldown-range", "9", "8"]),
        ("out of range", ["-np", "2", "--elastic", "--blacklist-cooldown-range", "9", "3601"]),
        ("exclude each other", ["-np", "2", "-H", "localhost", "--host-discovery-script", "hosts.sh"]),
        ("65", ["-np", "2", "--hosts-per-machine", "65"]),
        ("-np needs a value", ["-np", ""]),
        ("-H needs a value", ["-np", "2", "-H", ""]),
        ("--config-file needs a value", ["-np", "2", "--config-file="]),
        ("characters", ["-np", LONG]),
        ("characters", ["-np", "2", "--" + LONG]),
        ("characters", ["-np", "2", "-H", LONG + ":y"]),
        ("characters", ["-np", "2", "--config-file", LONG]),
        ("\\x1b", ["-np", CONTROL]),
        ("\\x1b", ["-np", "2", "--" + CONTROL]),
        ("\\x1b", ["-np", "2", "-H", CONTROL]),
        ("\\x1b", ["-np", "2", "--color", CONTROL]),
        ("did you mean --verbose", ["-np", "2", "--verbsoe"]),
        ("--verbose and --no-verbose", ["-np", "2", "--verbose", "--no-verbose"]),
        ("--mpi and --elastic exclude each other", ["-np", "2", "--elastic", "--mpi"]),
        ("--jsrun and --min-np exclude each other", ["-np", "2", "--jsrun", "--min-np", "1"]),
        ("--mpi and --host-discovery-script", ["-np", "2", "--mpi", "--host-discovery-script", "./hosts.sh"]),
    ],
)
def test_bad_arguments(refused, named, args):
    refused(named, *args)


@pytest.mark.parametrize("flag", ["-x", "--env-file", "--hostfile", "--error-file"])
@pytest.mark.parametrize("value, shown", [(LONG, "characters"), (CONTROL, "\\x1b")], ids=["long", "control"])
def test_values_that_the_launcher_reads(refused, flag, value, shown):
    # A folder that is not there: an error file may have any name.
    refused(shown, "-np", 2, flag, "no/" + value)


@pytest.mark.parametrize(
    "named, text",
    [
        ("job.yaml:2:1", "logging: [\n"),
        ("job.yaml:2:", "logging:\n\tlevel: INFO\n"),
        ("job.yaml:1:1", "- a\n- b\n"),
        ("job.yaml:2: logging.level: loud", "logging:\n  level: loud\n"),
        ("job.yaml:1: launcher.num_proc: -2", "launcher: {num_proc: -2}\n"),
        ("job.yaml:3:", "logging:\n  level: INFO\n  level: INFO\n"),
    ],
)
def test_bad_files(refused, tmp_path, monkeypatch, named, text):
    (tmp_path / "job.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    refused(named, "-np", 2, "--config-file", "job.yaml")


SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a", "SLURM_JOB_CPUS_PER_NODE": "2"}


@pytest.mark.parametrize(
    "named, env",
    [
        ("SLURM_JOB_NODELIST is not", {"SLURM_JOB_NODELIST": ""}),
        ("is no list of nodes", {"SLURM_JOB_NODELIST": "node[1-"}),
        ("more than the 100000 hosts", {"SLURM_JOB_NODELIST": "n[1-1000000]"}),
        ("is no list of nodes", {"SLURM_JOB_NODELIST": "[" * (1 << 16)}),
        ("\\x1b", {"SLURM_JOB_NODELIST": CONTROL}),
        ("does not tell the CPUs of each of the 1 nodes", {"SLURM_JOB_CPUS_PER_NODE": "2(x1000000000)"}),
        ("task 3 of the 4 that srun started",
         {"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"}),
        ("3", {"SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "2"}),
        ("no-such-file", {"SLURM_JOB_ID": "", "LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": "no-such-file"}),
        ("PBS_NODEFILE is not", {"SLURM_JOB_ID": "", "PBS_JOBID": "7"}),
        ("no-such-file", {"SLURM_JOB_ID": "", "PE_HOSTFILE": "no-such-file"}),
    ],
)
def test_bad_allocations(refused, named, env):
    refused(named, "-np", 3, env=dict(SLURM, **env))


def test_one_task_of_mpirun_is_not_the_place_for_hvdrun(refused):
    env = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    refused("task 1 of the 2 that mpirun started", "-np", 2, env=env)


def test_LSB_JOBID_alone_makes_the_number_optional(run):
    job = run("--slots-per-host", 2, "echo", "here", env={"LSB_JOBID": "7"})
    assert job.code == 0 and "[0]<stdout>:here\n" in job.out, job.err
    assert job.err.startswith("hvdrun: LSF job 7 gives "), job.err


def test_an_allocation_is_ignored_on_demand(run):
    job = run("-np", 1, "--allocation", "never", "true", env={"SLURM_JOB_ID": "7"})
    assert (job.code, job.err) == (0, "")


def test_folders_huge_and_unreadable_files(refused, tmp_path):
    refused("is a directory", "-np", 2, "--config-file", tmp_path)
    (tmp_path / "huge.yaml").write_text("#" * (1 << 21))
    refused("longer than 1 MiB", "-np", 2, "--config-file", tmp_path / "huge.yaml")
    if os.geteuid() != 0:  # root reads everything
        secret = tmp_path / "secret.yaml"
        secret.write_text("")
        secret.chmod(0)
        refused("cannot be read", "-np", 2, "--config-file", secret)


@pytest.mark.parametrize(
    "name, value",
    [
        ("HOROVOD_START_TIMEOUT", "soon"),
        ("HOROVOD_STALL_CHECK_TIME_SECONDS", "-5"),
        ("HOROVOD_STALL_CHECK_DISABLE", "perhaps"),
        ("HOROVOD_LOG_LEVEL", "loud"),
        ("HVD_TERMINATE_GRACE_SECONDS", LONG),
    ],
)
def test_bad_variables(refused, name, value):
    refused(f"{name}=", "-np", 2, env={name: value})


def test_a_file_of_horovodrun_keeps_working(run, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(
        "controller: gloo\nparams:\n  cache_capacity: 32\n  cycle_time_mss: 5\n"
        "logging:\n  level: INFO\n  hide_timestamp: true\n"
    )
    job = run("-np", 1, "--config-file", file, "sh", "-c", "echo $HOROVOD_LOG_LEVEL")
    assert (job.code, job.out) == (0, "[0]<stdout>:INFO\n")
    warnings = [line for line in job.err.splitlines() if "warning" in line]
    assert len(warnings) == 2, job.err
    assert "job.yaml:4: params.cycle_time_mss is not a setting" in warnings[0]
    assert "did you mean params.cycle_time_ms?" in warnings[0]
    assert "job.yaml:3: params.cache_capacity has no effect: " in warnings[1]


def test_settings_of_horovodrun_never_kill_a_job(run, tmp_path):
    """A site's profile sets them for everybody; each says once why it does nothing, and the job runs."""
    profile = {"HOROVOD_AUTOTUNE": "1", "HOROVOD_HIERARCHICAL_ALLREDUCE": "1",
               "HOROVOD_CPU_OPERATIONS": "ccl", "HOROVOD_CYCLE_TIME": "0.1"}
    flags = ["--gloo", "--cache-capacity", "0", "--no-autotune", "--no-hierarchical-allreduce", "--disable-cache"]
    job = run("-np", 1, *flags, "true", env=profile)
    assert job.code == 0, job.err
    told = [line for line in job.err.splitlines() if "no effect" in line]
    for name in set(profile) - {"HOROVOD_AUTOTUNE", "HOROVOD_HIERARCHICAL_ALLREDUCE"} | {"--cache-capacity"}:
        assert sum(name in line for line in told) == 1, (name, job.err)
    # The flag wins over the variable, and asks for what happens anyway.
    assert not any("HOROVOD_AUTOTUNE" in line or "HIERARCHICAL" in line for line in told), told


def test_the_stall_limit_has_a_flag(run):
    job = run("-np", 1, "--stall-check-shutdown-time-seconds", 7, "sh", "-c", "echo $HOROVOD_STALL_SHUTDOWN_TIME_SECONDS")
    assert (job.code, job.out) == (0, "[0]<stdout>:7\n")


def test_hosts_may_stand_in_the_file(run, tmp_path):
    (tmp_path / "job.yaml").write_text("launcher:\n  hosts: localhost:2\n  ssh_port: 2222\n  num_proc: 2\n")
    job = run("--config-file", tmp_path / "job.yaml", "true")
    assert job.code == 0 and "not a setting" not in job.err, job.err


def test_settings_of_the_user_are_read_unless_others_may_write_them(run, tmp_path):
    file = tmp_path / "hvdrun" / "config.yaml"
    file.parent.mkdir(mode=0o755)
    file.write_text("launcher:\n  num_proc: 2\n")
    file.chmod(0o644)
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "HVDRUN_STANDING_CONFIG": "1"}
    job = run("sh", "-c", "echo $HOROVOD_SIZE", env=environment)
    assert (job.code, job.out.count(":2\n"), job.err) == (0, 2, "")
    file.chmod(0o666)
    job = run("-np", 1, "sh", "-c", "echo $HOROVOD_SIZE", env=environment)
    assert (job.code, job.out) == (0, "[0]<stdout>:1\n") and "may be written by others" in job.err


def test_an_empty_file_is_a_file(run, tmp_path):
    file = tmp_path / "empty.yaml"
    file.write_text("")
    job = run("-np", 1, "--config-file", file, "true")
    assert (job.code, job.out, job.err) == (0, "", "")


def test_check_build_is_in_the_known_shape(run):
    job = run("--check-build")
    assert job.code == 0
    heads = [line for line in job.out.splitlines() if line.startswith("Available")]
    assert heads == [
        "Available Frameworks:",
        "Available Controllers:",
        "Available Tensor Operations:",
    ]
    assert "    [X] PyTorch\n" in job.out and "    [X] TensorFlow\n" in job.out
    assert run("-cb").out == job.out


def test_check_build_and_print_config_as_json(run):
    build = json.loads(run("--check-build", "--json").out)
    assert build["frameworks"]["torch"] is True and build["controllers"]["hvdrun"] is True
    assert set(build) == {"version", "frameworks", "controllers", "operations", "gpu"}
    config = json.loads(run("--print-config", "--json", "-np", "3", "true").out)
    assert config["num-proc"] == {"value": "3", "from": "-np"}
    assert config["hostfile"] == {"value": None, "from": "default"}
    job = run("--json", "-np", "1", "true")
    assert job.code == 2 and "--json is for --print-config" in job.err


def test_a_code_is_explained(run):
    assert run("explain", "HVD102").out == run("explain", "rank-signal").out != ""
    assert run("explain", "79").out.startswith("Exit code 79: A collective took longer")
    job = run("explain", "HVD999")
    assert (job.code, job.out) == (2, "") and job.err.startswith("hvdrun explain: 'HVD999' is neither a code")


def test_check_build_says_what_there_is_for_a_gpu(run):
    """Here without a driver, so that each line is a reason, and nothing is said to work that does not."""
    job = run("--check-build")
    head, gpu = job.out.split("\nGPU:\n")
    assert "    [ ] NCCL\n" in head
    lines = gpu.splitlines()
    if not library("libhvd_cuda.so").exists():
        assert lines == ["    libhvd_cuda.so is not in this build"]
        return
    assert len(lines) == 3 and lines[0].startswith("    kernels for sm_75, sm_80, "), gpu
    assert re.match("    (CUDA cannot be used because|driver of CUDA) ", lines[1]), gpu
    assert re.match("    NCCL (cannot be used because|2[.])", lines[2]), gpu


def test_horovodrun_is_the_same_program():
    import subprocess

    old = os.path.join(os.path.dirname(hvdrun_path()), "horovodrun")
    done = subprocess.run([old, "-np", "1", "echo", "hi"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[0]<stdout>:hi\n")


# ---- files that never end, or never begin


@pytest.mark.parametrize("flag, limit", [("--env-file", 16), ("--hostfile", 16), ("--config-file", 1)])
def test_a_file_without_an_end_is_refused(refused, flag, limit):
    refused(f"is longer than {limit} MiB", "-np", 2, flag, "/dev/zero")


@pytest.mark.parametrize("flag", ["--env-file", "--hostfile", "--config-file"])
def test_a_pipe_that_nobody_writes_to_is_refused(refused, tmp_path, flag):
    os.mkfifo(tmp_path / "fifo")
    refused("has not ended within 10 s", "-np", 2, flag, tmp_path / "fifo")


def test_a_pipe_that_ends_is_a_file(run):
    """`--env-file <(vault read ...)`"""
    read, write = os.pipe()
    os.write(write, b"FROM_PIPE=yes\n")
    os.close(write)
    job = run("-np", 1, "--env-file", f"/dev/fd/{read}", "sh", "-c", "echo $FROM_PIPE", pass_fds=[read])
    os.close(read)
    assert (job.code, job.out) == (0, "[0]<stdout>:yes\n"), job.err


@pytest.mark.parametrize("what", ["link to a file", "dangling link", "fifo", "fifo with a reader", "folder", "socket"])
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_output_files_are_files_of_our_own(refused, tmp_path, what, name):
    """Their names can be guessed: in a folder where others may write, anything can wait there."""
    logs, victim = tmp_path / "logs", tmp_path / "victim"
    place = logs / "rank.1" / name
    place.parent.mkdir(parents=True)
    reader = None
    if what == "link to a file":
        victim.write_text("precious")
        place.symlink_to(victim)
    elif what == "dangling link":
        place.symlink_to(victim)
    elif what == "folder":
        place.mkdir()
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
    else:
        os.mkfifo(place)
        if what == "fifo with a reader":
            reader = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    refused(str(place), "-np", 2, "--output-filename", logs)
    if what == "link to a file":
        assert victim.read_text() == "precious"
    else:
        assert not victim.exists()
    if reader is not None:
        os.close(reader)


def test_nor_is_a_link_followed_to_another_folder(refused, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank.1").symlink_to(tmp_path / "elsewhere")
    refused(str(tmp_path / "logs" / "rank.1"), "-np", 2, "--output-filename", tmp_path / "logs")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_named_folder_itself_may_be_a_link(run, tmp_path):
    """A link of the user's own, to a larger disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "logs").symlink_to(tmp_path / "disk")
    assert run("-np", 1, "--output-filename", tmp_path / "logs", "echo", "x").code == 0
    assert (tmp_path / "disk" / "rank.0" / "stdout").read_text() == "x\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.parametrize("flag", ["--timeline", "--dump-on-failure"])
def test_a_strangers_link_is_not_followed_by_any_output_file(run, tmp_path, flag):
    victim, place = tmp_path / "victim", tmp_path / "out"
    victim.write_text("precious")
    place.symlink_to(victim)
    os.lchown(place, 65534, 65534)
    fails = "import horovod.torch as hvd; hvd.init(); hvd.barrier(); raise SystemExit(3)"
    job = run("-np", 2, flag, place, "/usr/bin/python3", "-c", fails)
    assert "is a link of another user (uid 65534)" in job.err
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("what", ["fifo", "folder", "link to a fifo"])
def test_the_error_file_is_an_ordinary_file(refused, tmp_path, what):
    place = tmp_path / "error.json"
    if what == "folder":
        place.mkdir()
    elif what == "fifo":
        os.mkfifo(place)
    else:
        os.mkfifo(tmp_path / "fifo")
        place.symlink_to(tmp_path / "fifo")
    refused("is not an ordinary file", "-np", 2, "--error-file", place)
