"""Jobs in the allocations of schedulers that no test can have: by recorded environments, with the batch scripts of the guide.
test_slurm.py has a real one."""

import re
import subprocess

import pytest
from conftest import REPO, hvdrun_path

THIS = "localhost"
# The variables that each scheduler sets; FILE is a file with the text beside it.
RECORDED = {
    "slurm": ({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": THIS, "SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "2"}, "",
              "Slurm job 7 gives 2 slots (one per task) on 1 host: localhost"),
    "lsf": ({"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": "FILE", "LSB_MCPU_HOSTS": "cut"}, f"{THIS}\n{THIS}\n",
            "LSF job 7 gives 2 slots"),
    "pbs": ({"PBS_JOBID": "7.server", "PBS_NODEFILE": "FILE", "PBS_O_WORKDIR": "/"}, f"{THIS}\n{THIS}\n",
            "PBS job 7.server gives 2 slots"),
    "grid engine": ({"JOB_ID": "7", "PE_HOSTFILE": "FILE"}, f"{THIS} 2 all.q@{THIS} UNDEFINED\n",
                    "Grid Engine job 7 gives 2 slots"),
    "kubernetes": ({"K_MPI_JOB_ROLE": "launcher", "OMPI_MCA_orte_default_hostfile": "FILE"}, f"{THIS} slots=2\n",
                   " gives 2 slots (one per slot of the operator) on 1 host: localhost"),
}
PAGES = {"slurm": ("slurm", 0), "lsf": ("lsf", 0), "pbs": ("pbs", 0), "grid engine": ("pbs", 1), "kubernetes": ("kubernetes", 0)}


@pytest.fixture(params=RECORDED)
def scheduler(request):
    return request.param


@pytest.fixture
def environment(scheduler, tmp_path):
    variables, text, _ = RECORDED[scheduler]
    (tmp_path / "hosts").write_text(text)
    return {name: str(tmp_path / "hosts") if value == "FILE" else value for name, value in variables.items()}


def batch_script(scheduler):
    page, number = PAGES[scheduler]
    scripts = re.findall(r"```bash\n(#!/bin/bash\n.*?)```", (REPO / "docs" / f"{page}.md").read_text(), re.S)
    return scripts[number]


def test_the_batch_script_of_the_guide_runs_without_flags(run, scheduler, environment, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho $1 is rank $HOROVOD_RANK of $HOROVOD_SIZE\n")
    python.chmod(0o755)
    (tmp_path / "hvdrun").symlink_to(hvdrun_path())
    (tmp_path / "script").write_text(batch_script(scheduler))
    environment["PATH"] = f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"
    job = run(tmp_path / "script", program=["bash"], env=environment)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == [f"[{i}]<stdout>:train.py is rank {i} of 2" for i in range(2)]
    said = job.err.splitlines()
    assert len(said) == 1 and RECORDED[scheduler][2] in said[0], job.err


def test_a_launcher_that_is_a_worker_needs_neither_a_name_server_nor_sshd(run, tmp_path):
    """The host file of the MPI Operator with runLauncherAsWorker, in a pod of that name."""
    hostname = ["unshare", "--user", "--map-root-user", "--uts", "sh", "-c", 'hostname train-launcher && exec "$@"', "sh"]
    if subprocess.run([*hostname, "true"], capture_output=True).returncode:
        pytest.skip("this user may make no namespaces")
    (tmp_path / "hosts").write_text("train-launcher.train.ns.svc slots=2\n")
    environment = {"K_MPI_JOB_ROLE": "launcher", "OMPI_MCA_orte_default_hostfile": str(tmp_path / "hosts")}
    job = run("--start-timeout", 20, "--prefix", "", "sh", "-c", "echo $HOROVOD_RANK of $HOROVOD_SIZE", program=[*hostname, hvdrun_path()], env=environment)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["0 of 2", "1 of 2"]


def test_flags_override_the_allocation(run, environment):
    job = run("-np", 1, "-H", "localhost:1", "echo", "here", env=environment)
    assert (job.code, job.out, job.err) == (0, "[0]<stdout>:here\n", "")


def test_the_allocation_is_where_the_settings_come_from(run, environment, scheduler):
    job = run("--print-config", env=environment)
    line = next(line for line in job.out.splitlines() if line.startswith("hosts "))
    assert f"{THIS}:2" in line and job.code == 0, job.out


def test_blaunch_is_the_way_to_the_hosts_of_LSF(run, tmp_path):
    blaunch = tmp_path / "blaunch"
    blaunch.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/asked\nshift\nexec sh -c "$*"\n')
    blaunch.chmod(0o755)
    environment = {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "node-1.invalid 1 node-2.invalid 1",
                   "PATH": f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"}
    job = run("echo", "here", env=environment)
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:here", "[1]<stdout>:here"]
    assert sorted((tmp_path / "asked").read_text().split()) == ["node-1.invalid", "node-2.invalid"]


def test_the_compute_nodes_of_CSM_are_the_hosts(run, tmp_path):
    """The output of its programs is recorded from the manual; the launch node is not among it."""
    said = {"nodes": "---\nlaunch_node_name: batch1\ncompute_nodes:\n - node-2.invalid\n - node-1.invalid\n...\n",
            "node": "---\nRecord_1:\n  discovered_cores: 44\n  discovered_gpus: 3\n...\n"}
    for name, text in said.items():
        (tmp_path / name).write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
        (tmp_path / name).chmod(0o755)
    environment = {"LSB_JOBID": "7", "LSB_HOSTS": "batch1 node-1.invalid", "CSM_ALLOCATION_ID": "9",
                   "CSM_ALLOCATION_QUERY": str(tmp_path / "nodes"), "CSM_NODE_ATTRIBUTES_QUERY": str(tmp_path / "node")}
    job = run("--print-config", env=environment)
    assert "node-1.invalid:3,node-2.invalid:3" in job.out and "batch1" not in job.out, job.out + job.err
    (tmp_path / "node").write_text("#!/bin/sh\necho no such node\n")
    job = run("true", env=environment)
    assert job.code == 2 and len(job.err.splitlines()) == 1 and "csm_node_attributes_query says nothing" in job.err, job.err
