"""The dialogue of a person with hvdrun: usage errors, exit codes, output."""

import ctypes
import os
import platform
import re
import stat
import struct
import subprocess
import sys

import pytest
from conftest import INSTALLED, hvdrun_path, read_proc, read_some, wait_for_standstill, worker


@pytest.mark.parametrize(
    "args, named",
    [
        (["-np", "0", "true"], "0"),
        (["-np", "x", "true"], "x"),
        (["-np", "-3", "true"], "-3"),
        (["-np", "2"], "command"),
        (["--frobnicate", "-np", "2", "true"], "--frobnicate"),
        (["-np"], "-np"),
        ([], ""),
    ],
)
def test_usage_errors_are_one_sentence_and_exit_2(run, args, named):
    job = run(*args)
    assert job.code == 2
    assert job.out == ""
    assert named in job.err
    assert len(job.err.strip().splitlines()) == 1, job.err


def test_a_command_that_does_not_exist_exits_127(run):
    job = run("-np", 2, "no-such-command-here")
    assert job.code == 127
    assert len(job.err.strip().splitlines()) == 1, job.err
    assert "'no-such-command-here'" in job.err and "PATH" in job.err


def test_a_missing_command_is_shown_without_control_characters_and_not_endlessly(run):
    job = run("-np", 1, "no\x1b[31m\nsuch" + "x" * 10_000)
    assert job.code == 127
    assert "no\\x1b[31m\\nsuch" in job.err and "\x1b" not in job.err and len(job.err) < 1000 and len(job.err.splitlines()) == 1


def test_a_path_that_does_not_exist_exits_127(run):
    job = run("-np", 2, "./no/such/program")
    assert job.code == 127
    assert "'./no/such/program' does not exist" in job.err


def test_a_file_that_is_not_executable_exits_126(run, tmp_path):
    script = tmp_path / "train"
    script.write_text("print('hi')\n")
    job = run("-np", 2, script)
    assert job.code == 126
    assert f"chmod +x {script}" in job.err


def test_a_script_without_interpreter_line_runs_under_sh(run, tmp_path):
    script = tmp_path / "plain"
    script.write_text("echo plain $1\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    job = run("-np", 1, script, "word")
    assert (job.code, job.out) == (0, "[0]<stdout>:plain word\n")


def test_a_missing_interpreter_is_named_as_the_reason(run, tmp_path):
    script = tmp_path / "odd"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    job = run("-np", 1, script)
    assert job.code == 127
    assert "interpreter" in job.err


def test_exit_code_of_the_first_failing_worker(run):
    job = run("-np", 3, "sh", "-c", "[ $HOROVOD_RANK = 1 ] && { echo why >&2; exit 3; }; sleep 600")
    assert job.code == 3
    assert "rank 1 on host" in job.err and "exit code 3" in job.err
    assert "    why\n" in job.err
    assert "2 other ranks were ended because of it" in job.err


def test_a_worker_ended_by_a_signal_exits_128_plus_n(run):
    job = run("-np", 2, "sh", "-c", "[ $HOROVOD_RANK = 1 ] && kill -9 $$; sleep 600")
    assert job.code == 137
    assert "signal 9 (SIGKILL)" in job.err


def test_the_report_keeps_the_last_lines_only(run):
    job = run("-np", 1, "sh", "-c", "seq 1000 >&2; exit 1")
    report = job.err[job.err.index("hvdrun: rank 0") :]
    assert "    1000\n" in report and "    981\n" in report and "    980\n" not in report


def test_output_is_whole_and_prefixed(run):
    count = 20000
    job = run("-np", 4, "sh", "-c", f"seq {count}; seq {count} >&2")
    assert job.code == 0
    for text, tag in ((job.out, "stdout"), (job.err, "stderr")):
        by_rank = {rank: [] for rank in range(4)}
        for line in text.splitlines():
            prefix, _, value = line.partition(f"]<{tag}>:")
            by_rank[int(prefix[1:])].append(int(value))
        for rank in range(4):
            assert by_rank[rank] == list(range(1, count + 1))


def test_bytes_pass_untouched(run, tmp_path):
    data = bytes(range(256)).replace(b"\n", b"").replace(b"\r", b"") * 3000  # one line of 762,000 bytes
    (tmp_path / "data").write_bytes(data + b"\n")
    job = run("-np", 1, "cat", tmp_path / "data")
    assert job.out.encode(errors="surrogateescape") == b"[0]<stdout>:" + data + b"\n"


def test_a_last_line_without_newline_gets_one(run):
    job = run("-np", 1, "printf", "abc")
    assert job.out == "[0]<stdout>:abc\n"


def test_a_carriage_return_ends_a_piece(run):
    job = run("-np", 1, "printf", "10%%\\r20%%\\rdone\\r\\nnext\\n")
    assert job.process.returncode == 0
    assert job.out == "[0]<stdout>:10%\r[0]<stdout>:20%\r[0]<stdout>:done\r\n[0]<stdout>:next\n"


def test_a_slow_reader_slows_the_workers_down(start, tmp_path):
    """The agent holds a bounded amount; the rest waits in the worker's pipe, so the worker waits, too."""
    job = start("-np", 1, "sh", "-c", f"seq 3000000; touch {tmp_path}/done")
    first = read_some(job.process.stdout, 100)
    assert first.startswith(b"[0]<stdout>:1\n")

    wait_for_standstill(job)
    assert not (tmp_path / "done").exists()
    assert job.finish() == 0
    assert (tmp_path / "done").exists()
    assert job.out.endswith("[0]<stdout>:3000000\n")


def test_worker_environment(run):
    inherited = {"HOROVOD_RANK": "77", "HVD_STALE": "x", "PYTHONPATH": "/mine", "KEPT": "yes"}
    job = run("-np", 2, "env", env=inherited)
    prefix = "[1]<stdout>:"
    seen = dict(line[len(prefix) :].split("=", 1) for line in job.out.splitlines() if line.startswith(prefix) and "=" in line)
    assert seen["HOROVOD_RANK"] == "1" and seen["HOROVOD_SIZE"] == "2"
    assert seen["HOROVOD_LOCAL_RANK"] == "1" and seen["HOROVOD_LOCAL_SIZE"] == "2"
    assert seen["HOROVOD_CROSS_RANK"] == "0" and seen["HOROVOD_CROSS_SIZE"] == "1"
    assert seen["HVD_SLOT"] == "1" and len(seen["HVD_JOB_KEY"]) == 64 and len(seen["HVD_JOB_ID"]) == 16
    assert seen["HVD_RUNTIME"].endswith("/lib/libhvd.so")
    assert seen["PYTHONPATH"].endswith(("/horovod/lib/python" if INSTALLED else "/lib/hvdrun/python") + ":/mine")
    assert seen["PYTHONUNBUFFERED"] == "1" and seen["KEPT"] == "yes"
    assert "HVD_STALE" not in seen


def test_workers_hold_no_descriptor_but_their_own_three(run):
    job = run("-np", 2, "ls", "/proc/self/fd")  # 3 is the folder that ls reads
    for rank in range(2):
        seen = [line.split(":", 1)[1] for line in job.out.splitlines() if line.startswith(f"[{rank}]")]
        assert seen == ["0", "1", "2", "3"]


def test_stdin_of_workers_is_empty(run):
    job = run("-np", 2, "readlink", "/proc/self/fd/0")
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:/dev/null", "[1]<stdout>:/dev/null"]


def test_verbose_says_how_nothing_is_left_behind(run):
    job = run("--verbose", "-np", 1, "true")
    assert "cleanup is guaranteed by" in job.err


def test_agents_and_wardens_are_called_hvdrun(start):
    job = start("-np", 1, "sleep", 600)
    assert {read_proc(pid, "comm") for pid in (job.pid, job.warden, job.agent)} == {b"hvdrun\n"}


def test_a_script_is_started_by_the_python_of_the_environment(run, tmp_path):
    (tmp_path / "train.py").write_text("import sys\nprint('hi', sys.argv[1:])\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    job = run("-np", 2, "--prefix", "", "train.py", "-x", cwd=tmp_path)
    assert (job.code, job.out) == (0, "hi ['-x']\n" * 2), job.err
    assert re.fullmatch(r"hvdrun: train\.py is started as python3? train\.py\n", job.err), job.err
    job = run("-np", 1, "--prefix", "", "-m", "pkg.train", "a", cwd=tmp_path)
    assert (job.code, job.out, job.err) == (0, "__main__ ['a']\n", ""), job.err


def test_a_script_that_runs_by_itself_is_left_alone(run, tmp_path):
    (tmp_path / "own.py").write_text("#!/bin/sh\necho shell\n")
    (tmp_path / "own.py").chmod(0o755)
    job = run("-np", 1, "--prefix", "", "own.py", cwd=tmp_path)
    assert (job.code, job.out, job.err) == (0, "shell\n", ""), job.err


def test_a_directory_for_the_ranks(run, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "t.py").write_text("import os; print(os.getcwd())\n")
    for words in (("--chdir", tmp_path / "sub"), ("--wdir", "sub"), ("-D", "./sub")):
        job = run("-np", 1, "--prefix", "", *words, "t.py", cwd=tmp_path)
        assert (job.code, job.out) == (0, f"{tmp_path}/sub\n"), job.err


def test_a_dry_run_prints_the_plan_and_starts_nothing(run, tmp_path):
    (tmp_path / "error.json").write_text("keep")
    job = run("--dry-run", "-np", 4, "--hosts-per-machine", 2, "--error-file", "error.json", "--output-filename", "logs",
              "touch", "started", "a b", cwd=tmp_path)
    assert (job.code, job.err) == (0, ""), job.err
    lines = job.out.splitlines()
    assert lines[0] == "4 ranks on 2 hosts:" and lines[-1] == "nothing was started", job.out
    assert [line.partition(": ")[2] for line in lines[1:3]] == ["ranks 0-1", "ranks 2-3"], job.out
    assert "command: touch started 'a b'" in lines and f"directory: {tmp_path}" in lines, job.out
    assert [path.name for path in tmp_path.iterdir()] == ["error.json"] and (tmp_path / "error.json").read_text() == "keep"


def test_quiet_leaves_errors_alone(run, tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit(3)\n")
    loud = run("-np", 1, "--cycle-time-ms", 5, "train.py", cwd=tmp_path)
    quiet = run("-np", 1, "-q", "--cycle-time-ms", 5, "train.py", cwd=tmp_path)
    assert "has no effect" in loud.err and "is started as" in loud.err
    assert quiet.code == loud.code == 3 and "has no effect" not in quiet.err and "is started as" not in quiet.err
    assert "rank 0" in quiet.err, quiet.err


def test_a_misspelt_verb_is_proposed(run):
    job = run("dcotor")
    assert job.code == 2 and "did you mean hvdrun doctor?" in job.err, job.err


def test_restarts_of_torchrun(run, tmp_path):
    script = f"echo >> {tmp_path}/starts; test $(wc -l < {tmp_path}/starts) -gt 2"
    job = run("-np", 1, "--max-restarts", 3, "sh", "-c", script)
    assert job.code == 0, job.err
    assert (tmp_path / "starts").read_text() == "\n" * 3


def test_help_and_version(run):
    assert len(run("-h").out.splitlines()) <= 24
    for words in (["-h"], ["--help"], ["help"], ["--help", "hosts"], ["doctor", "--help"], ["help", "tune"], ["stop", "--help"]):
        job = run(*words)
        assert job.code == 0 and not job.err and max(map(len, job.out.splitlines())) <= 80, words
    assert run("help", "hosts").out == run("--help", "hosts").out != run("--help").out
    assert run("help", "top").out == run("top", "--help").out
    assert run("help", "nonsense").code == 2
    assert re.fullmatch(r"hvdrun \d+\.\d+\.\d+( \([0-9a-f]{8}(-dirty)? \d{4}-\d\d-\d\d\))?, API of Horovod 0\.28\n", run("--version").out)


def test_line_ends_of_windows_are_named(run, tmp_path):
    script = tmp_path / "crlf.sh"
    script.write_bytes(b"#!/bin/sh\r\necho hi\r\n")
    script.chmod(0o755)
    job = run("-np", 1, "./crlf.sh", cwd=tmp_path)
    assert job.code == 127 and "'/bin/sh' with a carriage return behind it" in job.err, job.err


def test_an_empty_prefix_is_none(run):
    job = run("-np", 1, "--prefix", "", "echo", "plain")
    assert (job.code, job.out) == (0, "plain\n")


def test_a_key_file_that_is_not_there_is_refused(run):
    job = run("-np", 1, "-i", "/no/such/key", "true")
    assert job.code == 2 and "-i /no/such/key cannot be read: No such file" in job.err


def test_a_user_of_this_machine_is_not_ignored_in_silence(run):
    job = run("-np", 2, "-H", "somebody@localhost:2", "true")
    assert job.code == 0 and "somebody@localhost is this machine, where hvdrun does not log in" in job.err


def test_the_log_tells_the_story_of_a_start(run):
    """At INFO, in about ten lines on stderr; nothing of it without."""
    words = ("-np", 3, "--hosts-per-machine", 2, *worker("foreign_worker.py", "init", "shutdown"))
    told = run("--log-level", "INFO", *words)
    lines = told.err.splitlines()
    story = [r"job [0-9a-f]{16}: 3 ranks on 2 hosts: .*", r"agents run on all hosts: .*", "starting .*foreign_worker.*",
             "all workers are started", r"every rank called hvd\.init\(\): .*1", "all workers have ended", r"the job ended with exit code 0 after .* s"]
    assert told.code == 0 and len(lines) <= 10, told.err
    found = [next((i for i, line in enumerate(lines) if re.fullmatch("hvdrun: " + part, line)), None) for part in story]
    assert None not in found and found == sorted(found), told.err
    assert len(run("--log-level", "DEBUG", *words).err.splitlines()) > len(lines)
    quiet = run(*words)
    assert (quiet.code, quiet.err) == (0, "")


def test_an_agent_without_a_stream_ends_with_a_sentence():
    for job in ("0123456789abcdef", "nonsense"):
        done = subprocess.run([hvdrun_path(), "agent", "--job", job], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        assert done.returncode == 2 and re.fullmatch(r"hvdrun agent: started by hvdrun itself.*\n", done.stderr), done.stderr


@pytest.mark.parametrize("option", ["-E", "-I"])
def test_a_python_that_ignores_pythonpath_is_explained(run, option):
    job = run("-np", 2, sys.executable, option, "-c", "import horovod.torch")
    assert job.code == 1
    if "No module named 'horovod'" not in job.err:
        pytest.skip("this Python has a horovod of its own, so nothing fails")
    assert job.err.count(f"With {option} Python ignores PYTHONPATH") == 1, job.err


def test_words_of_torchrun(run, tmp_path):
    job = run("--nproc-per-node", 2, "--nnodes", 1, "--standalone", "--tee", 3, "--log-dir", tmp_path / "logs", "echo", "hi")
    assert (job.code, job.err) == (0, "") and job.out.count(":hi\n") == 2
    assert (tmp_path / "logs" / "rank.1" / "stdout").read_text() == "hi\n"
    for words, ours in ((("--nproc-per-node", 2, "-H", "localhost:2"), "-np"), (("-np", 2, "--nnodes", 2), "--master-addr")):
        job = run(*words, "touch", tmp_path / "started")
        assert job.code == 2 and ours in job.err and not (tmp_path / "started").exists(), job.err


def deny_getrandom():
    """A seccomp filter, as that of a sandbox: getrandom() fails with EPERM in this process and its children."""
    number, arch = {"x86_64": (318, 0xC000003E), "aarch64": (278, 0xC00000B7)}[platform.machine()]
    instructions = [(0x20, 0, 0, 4), (0x15, 0, 3, arch), (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no seccomp filter can be installed")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the numbers of system calls are not known here")
def test_a_sandbox_that_denies_getrandom_is_no_crash(run):
    job = run("-np", 2, "true", preexec_fn=deny_getrandom)
    assert job.code == 0, job.err
    if os.geteuid() == 0:
        script = 'mount --bind /dev/null /dev/urandom && exec "$@"'
        job = run("-np", 2, "true", program=["unshare", "--mount", "sh", "-c", script, "sh", hvdrun_path()], preexec_fn=deny_getrandom)
        assert job.code == 1 and "does a seccomp filter, of a container for example, deny getrandom?\n" in job.err, job.err
