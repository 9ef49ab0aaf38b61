"""Bad input: one sentence on stderr, exit 2, nothing started."""

import os

import pytest

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
        ("--min-np", ["-np", "2", "--min-np", "3", "--max-np", "2"]),
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
        ("--autotune is not available yet", ["-np", "2", "--autotune"]),
        ("--mpi is not available yet", ["-np", "2", "--mpi"]),
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


@pytest.mark.parametrize("variable, scheduler", [("LSB_JOBID", "LSF"), ("SLURM_JOB_ID", "Slurm"), ("PBS_JOBID", "PBS")])
def test_inside_an_allocation_the_missing_number_is_explained(refused, variable, scheduler):
    refused(f"taking it from the allocation of {scheduler} ({variable} is set) is not available yet", env={variable: "7"})


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
        "controller: gloo\nparams:\n  fusion_threshold_mb: 32\n  cycle_time_mss: 5\n"
        "logging:\n  level: INFO\n  hide_timestamp: true\n"
    )
    job = run("-np", 1, "--config-file", file, "sh", "-c", "echo $HOROVOD_LOG_LEVEL")
    assert (job.code, job.out) == (0, "[0]<stdout>:INFO\n")
    warnings = [line for line in job.err.splitlines() if "warning" in line]
    assert len(warnings) == 2, job.err
    assert "job.yaml:4: params.cycle_time_mss is not a setting" in warnings[0]
    assert "did you mean params.cycle_time_ms?" in warnings[0]
    assert "no effect yet" in warnings[1] and "logging.hide_timestamp" in warnings[1]


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
    assert "    [X] PyTorch\n" in job.out and "    [ ] TensorFlow\n" in job.out
    assert run("-cb").out == job.out


def test_horovodrun_is_the_same_program():
    import subprocess

    from conftest import hvdrun_path

    old = os.path.join(os.path.dirname(hvdrun_path()), "horovodrun")
    done = subprocess.run([old, "-np", "1", "echo", "hi"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[0]<stdout>:hi\n")
