"""The variables that workers find in their environment, and where they come from."""

import os
import re
import socket
import textwrap

import pytest
from conftest import read_proc, read_some, wait_until

# The Python that the machine itself has, to test with an unchanged script of another library.
SYSTEM_PYTHON = "/usr/bin/python3"


def seen(job, rank=0):
    prefix = f"[{rank}]<stdout>:"
    lines = (line[len(prefix) :] for line in job.out.splitlines() if line.startswith(prefix))
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_x_takes_a_value_from_here_or_from_the_flag(run):
    env = {"FROM_HERE": "here", "OLDPWD": "/back"}
    job = run("-np", 2, "-x", "FROM_HERE", "-x", "GIVEN=a=b c", "-x", "OLDPWD", "-x", "EMPTY=", "env", env=env)
    assert job.code == 0, job.err
    for rank in range(2):
        variables = seen(job, rank)
        assert variables["FROM_HERE"] == "here" and variables["GIVEN"] == "a=b c"
        assert variables["OLDPWD"] == "/back" and variables["EMPTY"] == ""


@pytest.mark.parametrize("args, named", [(["-x", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"), (["-x", "=1"], "=1")])
def test_x_that_cannot_be_is_an_error(run, args, named):
    job = run(*args, "-np", 1, "true")
    assert job.code == 2 and named in job.err and len(job.err.splitlines()) == 1


def test_env_file_with_flags_winning(run, tmp_path):
    (tmp_path / "job.env").write_text("# settings\nA=file\nexport B='two words' # note\nC=\"x\\ty\"\n")
    job = run("-np", 1, "--env-file", tmp_path / "job.env", "-x", "A=flag", "env", env={"A": "inherited", "B": "inherited"})
    variables = seen(job)
    assert (variables["A"], variables["B"], variables["C"]) == ("flag", "two words", "x\ty")


def test_env_file_errors_name_file_and_line(run, tmp_path):
    (tmp_path / "job.env").write_text("A=1\nnonsense\n")
    job = run("-np", 1, "--env-file", tmp_path / "job.env", "true")
    assert job.code == 2 and f"{tmp_path}/job.env:2" in job.err and "nonsense" in job.err
    job = run("-np", 1, "--env-file", tmp_path / "none.env", "true")
    assert job.code == 2 and "none.env" in job.err


def test_bytes_arrive_as_they_are(run, tmp_path):
    values = {
        "TEST_NEWLINE": "a\nb",
        "TEST_QUOTES": "'\"`\\",
        "TEST_SHELL": "$(touch never) ${HOME} `id` ; | & *",
        "TEST_UTF8": "äöü→",
        "TEST_NAME.with.dots": "dots",
        "BASH_FUNC_f%%": "() { :; }",
    }
    script = "import os,sys;sys.stdout.buffer.write(b'|'.join(os.environb.get(n.encode(),b'-') for n in sys.argv[1:]))"
    job = run("-np", 1, SYSTEM_PYTHON, "-S", "-c", script, *values, env=values, cwd=tmp_path)
    expected = "|".join(values.values())
    assert job.out.replace("\n[0]<stdout>:", "\n") == f"[0]<stdout>:{expected}\n"
    assert not (tmp_path / "never").exists()


def test_a_large_environment_arrives(run):
    """200 kB in all, and one variable as long as the kernel takes."""
    large = {f"TEST_LARGE_{i}": str(i) * 1000 for i in range(90)}
    large["TEST_LONGEST"] = "y" * (128 * 1024 - len("TEST_LONGEST=") - 1)
    script = "import os;print(sum(len(v) for n,v in os.environ.items() if n.startswith('TEST_L')))"
    job = run("-np", 2, SYSTEM_PYTHON, "-S", "-c", script, env=large)
    total = sum(len(v) for v in large.values())
    assert total > 200_000
    assert sorted(job.out.splitlines()) == [f"[0]<stdout>:{total}", f"[1]<stdout>:{total}"]


def test_a_variable_longer_than_the_kernel_takes_is_named(run, tmp_path):
    (tmp_path / "job.env").write_text("TOO_LONG=" + "x" * 200_000 + "\n")
    job = run("-np", 1, "--env-file", tmp_path / "job.env", "true")
    assert job.code != 0 and "TOO_LONG" in job.err and "131071" in job.err


def test_slot_variables_win(run):
    """hvdrun inside a worker of hvdrun, and whatever else claims to know the rank."""
    claims = ["HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"]
    job = run("-np", 2, *[a for c in claims for a in ("-x", f"{c}=77")], "env", env={c: "99" for c in claims})
    for rank in range(2):
        variables = seen(job, rank)
        assert [variables[c] for c in claims] == [str(rank), "2", str(rank), str(rank), "2", str(rank), "2"]


def test_a_nested_job_has_its_own_slots(run):
    from conftest import hvdrun_path

    job = run("-np", 2, "-x", "MINE=yes", "sh", "-c", f'[ $RANK = 1 ] || {hvdrun_path()} -np 1 sh -c \'echo "$RANK of $WORLD_SIZE $MINE"\'')
    assert job.code == 0 and "[0]<stdout>:0 of 1 yes" in job.out


def test_print_env_shows_values_and_rules(run):
    env = {"TEST_KEPT": "yes\nno", "HVD_OLD": "x", "HOROVOD_RANK": "9", "OMP_NUM_THREADS": "3"}
    job = run("-np", 2, "--print-env", "-x", "TEST_X=1", "touch", "/no/such/place", env=env)
    assert job.code == 0 and job.err == ""
    assert "TEST_KEPT=yes\\nno  # inherited\n" in job.out
    assert "TEST_X=1  # -x or --env-file\n" in job.out
    assert "HOROVOD_RANK=0  # slot" in job.out and "RANK=0  # slot" in job.out
    assert "OMP_NUM_THREADS=3  # inherited\n" in job.out
    assert "# not passed on: HVD_OLD, because" in job.out
    assert "HVD_JOB_KEY=...  # a secret of the job, not shown\n" in job.out


def test_print_env_never_shows_the_key(run):
    """Nor one that was handed over, or that of the job around it."""
    key = "c0ffee" * 10
    job = run("-np", 1, "--print-env", "-x", f"HVD_JOB_KEY={key}", "true", env={"HVD_JOB_KEY": key})
    assert job.code == 0 and key not in job.out + job.err
    (line,) = [line for line in job.out.splitlines() if line.startswith("HVD_JOB_KEY=")]
    assert "secret" in line and not re.search("[0-9a-f]{64}", job.out)


def test_the_port_of_a_job_is_held_for_its_rank_0(start, tmp_path):
    """Nobody else is given it, and a server with SO_REUSEADDR may listen there."""
    script = f"echo $MASTER_ADDR $MASTER_PORT; until [ -e {tmp_path}/go ]; do sleep 0.02; done"
    jobs = [start("-np", 1, "sh", "-c", script) for _ in range(5)]
    ports = []
    for job in jobs:
        address, port = read_some(job.process.stdout).decode().partition(":")[2].split()
        ports.append(int(port))
        with socket.socket() as stranger, pytest.raises(OSError):
            stranger.bind((address, int(port)))
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((address, int(port)))
            server.listen()
            socket.create_connection((address, int(port))).close()
    assert len(set(ports)) == 5
    (tmp_path / "go").touch()
    assert [job.finish() for job in jobs] == [0] * 5


TORCH_SCRIPT = """
    import os, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    t = torch.full((4,), float(dist.get_rank() + 1))
    dist.all_reduce(t)
    print("sum", t.tolist(), "of", dist.get_world_size(), "local", os.environ["LOCAL_RANK"])
    dist.destroy_process_group()
"""


def test_an_unchanged_torch_distributed_script_runs(run, tmp_path):
    if os.system(f"{SYSTEM_PYTHON} -c 'import torch' 2> /dev/null") != 0:
        pytest.skip("no torch here")
    (tmp_path / "train.py").write_text(textwrap.dedent(TORCH_SCRIPT))
    job = run("-np", 2, SYSTEM_PYTHON, tmp_path / "train.py", env={"TORCHELASTIC_USE_AGENT_STORE": "True"})
    assert job.code == 0, job.err
    for rank in range(2):
        assert f"[{rank}]<stdout>:sum [3.0, 3.0, 3.0, 3.0] of 2 local {rank}\n" in job.out


def test_ranks_are_not_the_task_that_hvdrun_itself_is(run):
    """In a batch script or under `mpirun -np 1` all ranks would be number 0 to libraries that look there."""
    task = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "OMPI_COMM_WORLD_RANK": "0",
            "OMPI_COMM_WORLD_SIZE": "1", "PMIX_RANK": "0", "PMIX_NAMESPACE": "1"}
    names = " ".join(f"${{{name}--}}" for name in task)
    job = run("-np", 2, "--allocation", "never", "-x", "PMIX_NAMESPACE", "sh", "-c", f"echo {names}", env=task)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:0 0 0 - - - 1", "[1]<stdout>:1 1 0 - - - 1"], job.out


def test_exported_shell_functions_arrive(run):
    function = {"BASH_FUNC_module%%": "() {  echo loaded $1\n}"}
    job = run("-np", 1, "bash", "-c", "module torch", env=function)
    assert job.out == "[0]<stdout>:loaded torch\n", job.err
