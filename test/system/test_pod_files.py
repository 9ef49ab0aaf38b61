"""Hosts and slots from the files and variables that operators put into a pod: /etc/mpi of the MPI Operator, /etc/volcano."""

import re
import sys

import pytest
from conftest import hvdrun_path
from host_rig import WHY_NOT, rig_of

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

NAMES = "echo rank $HOROVOD_RANK of $HOROVOD_SIZE on $(hostname)"

rig = rig_of(2)


@pytest.fixture
def pod_run(run, rig, tmp_path):
    """pod_run({"mpi/hostfile": TEXT, ...}, *args): hvdrun on the head of the rig, which has these files below /etc."""

    def pod_run(files, *args, **kwargs):
        etc = tmp_path / "etc"
        script = [f"cp -a /etc {etc}"]
        for name, text in files.items():
            source = tmp_path / name.replace("/", "_")
            source.write_text(text)
            source.chmod(0o555 if text.startswith("#!") else 0o444)
            script.append(f"mkdir -p {etc}/{name.split('/')[0]} && cp {source} {etc}/{name}")
        script.append(f'mount --bind {etc} /etc && exec "$@"')
        return run(*args, program=rig.on_head("unshare", "--mount", "sh", "-c", " && ".join(script), "sh", hvdrun_path()), **kwargs)

    return pod_run


def ranks_by_host(job):
    assert job.code == 0, job.err
    found = re.findall(r"rank (\d) of (\d) on (\S+)", job.out)
    assert sorted(int(rank) for rank, _, _ in found) == list(range(len(found))), job.out
    return sorted(host for _, _, host in found)


@pytest.mark.parametrize("files", [{"volcano/mpiworker.host": "hvd1\nhvd2"}, {}])
def test_the_workers_of_a_job_of_volcano_are_the_hosts(pod_run, rig, files):
    """As its plug-in svc says them to the master: in a file that follows when the job is scaled, and in variables that do not."""
    workers = "hvd1" if files else "hvd1,hvd2"
    job = pod_run(files, "sh", "-c", NAMES,
                  env={"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "train-mpimaster-0", "VC_TASK_INDEX": "0",
                       "VC_MPIMASTER_HOSTS": "train-mpimaster-0.train", "VC_MPIMASTER_NUM": "1",
                       "VC_MPIWORKER_HOSTS": workers, "VC_MPIWORKER_NUM": str(workers.count("hvd"))})
    assert ranks_by_host(job) == ["hvd1", "hvd2"]
    source = "the host file /etc/volcano/mpiworker.host" if files else "VC_MPIWORKER_HOSTS"
    assert f"{source} of Volcano gives 2 slots (one per host; --slots-per-host says more) on 2 hosts: hvd1, hvd2" in job.err, job.err
    rig.nothing_left()


@pytest.mark.parametrize("dialect", ["hvd{}:2\n", "hvd{} slots=2\n"])
def test_the_script_of_the_operator_prints_names_and_the_host_file_has_their_slots(pod_run, rig, dialect):
    """MPICH's variables do not say the slots; by itself a host of the rig has one."""
    files = {"mpi/hostfile": dialect.format(1) + dialect.format(2), "mpi/discover_hosts.sh": "#!/bin/sh\necho hvd1\necho hvd2\n"}
    job = pod_run(files, "-np", 4, "--min-np", 4, "--elastic-timeout", 60, "--host-discovery-script", "/etc/mpi/discover_hosts.sh", sys.executable, "-c",
                  "import os, socket; print('rank', os.environ['HOROVOD_RANK'], 'of', os.environ['HOROVOD_SIZE'], 'on', socket.gethostname())",
                  env={"K_MPI_JOB_ROLE": "launcher", "HYDRA_HOST_FILE": "/etc/mpi/hostfile"})
    assert ranks_by_host(job) == ["hvd1", "hvd1", "hvd2", "hvd2"]
    rig.nothing_left()
