"""The manifests of examples/kubernetes: their pods run the commands that are written there, with what the controllers of an MPIJob, a
TrainJob, a JobSet and an indexed Job add: variables, files, keys, names. Hosts of the rig play the nodes."""

import os
import re
import subprocess

import pytest
from conftest import DEADLINE, REPO, skip_without, wait_until
from host_rig import WHY_NOT, rig_of

skip_without("yaml", "torch", "sklearn")

from pod_rig import Cluster, Volume, objects_of  # noqa: E402  (needs yaml)

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
rig = rig_of(2)


@pytest.fixture
def cluster(rig, tmp_path):
    """cluster({name: host}): its pods end with the test."""
    made = []

    def make(names, **options):
        made.append(Cluster(rig, tmp_path, names, **options))
        return made[-1]

    yield make
    for one in made:
        one.down()


def ssh_secret(folder):
    """As the MPI Operator and Kubeflow Trainer make it: ECDSA P-521 in PEM, readable by all, root's."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", "", "-f", folder / "made"], check=True)
    private, public = (folder / "made").read_text(), (folder / "made.pub").read_text()
    assert "BEGIN EC PRIVATE KEY" in private
    secret = Volume(folder / "ssh")
    secret.write({"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public})
    return secret.folder


OPEN_MPI = {"OMPI_MCA_orte_keep_fqdn_hostnames": "true", "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
            "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10", "OMPI_MCA_orte_set_default_slots": "1",
            "NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}


class MPIJob:
    def __init__(self, cluster, folder, name):
        self.object = objects_of(name)[0]
        self.name, spec = self.object["metadata"]["name"], self.object["spec"]
        self.pods = {role: replica["template"]["spec"] for role, replica in spec["mpiReplicaSpecs"].items()}
        self.workers = spec["mpiReplicaSpecs"]["Worker"]["replicas"]
        self.cluster = cluster({f"{pod}.{self.name}": number for number, pod in enumerate(
            [f"{self.name}-launcher", *(f"{self.name}-worker-{i}" for i in range(self.workers))])}, late=2)
        self.secret = (ssh_secret(folder), spec["sshAuthMountPath"])
        self.config = Volume(folder / "mpi")
        self.running = []
        self.write_config()

    def host(self, index):
        return f"{self.name}-worker-{index}.{self.name}.default.svc"

    def write_config(self):
        """Of the pods that run."""
        script = "#!/bin/sh\n" + "".join(f"echo {self.host(index)}\n" for index in sorted(self.running))
        hosts = "".join(f"{self.host(index)} slots=1\n" for index in range(self.workers))
        self.config.write({"hostfile": hosts, "discover_hosts.sh": script}, mode=0o555)

    def worker(self, index):
        pod = self.cluster.start(index + 1, f"{self.name}-worker-{index}", self.pods["Worker"],
                                 environment={"K_MPI_JOB_ROLE": "worker"}, mounts=[self.secret])
        self.running.append(index)
        self.write_config()
        return pod

    def launcher(self, *more):
        container = self.pods["Launcher"]["containers"][0]
        container = {**container, "args": [*container["args"], *more]}
        return self.cluster.start(0, f"{self.name}-launcher", self.pods["Launcher"], container,
                                  {"K_MPI_JOB_ROLE": "launcher", **OPEN_MPI}, mounts=[self.secret, (self.config.folder, "/etc/mpi")])


    def listening_worker(self, index):
        pod = self.worker(index)
        wait_until("its sshd", lambda: pod.listens(2222), told=self.cluster.said)
        return pod


@pytest.mark.parametrize("variables, kept", [({}, True), ({"K_MPI_JOB_ROLE": "launcher"}, False), ({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, False)])
def test_the_image_forgets_host_keys_in_pods_alone(variables, kept):
    done = subprocess.run(["ssh", "-G", "-F", REPO / "docker/ssh_config", "worker"], env={"PATH": os.environ["PATH"], **variables},
                          capture_output=True, text=True, check=True, timeout=DEADLINE)
    said = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    assert said["port"] == "2222" and (said["stricthostkeychecking"], said["userknownhostsfile"] == "/dev/null") == (
        ("accept-new", False) if kept else ("false", True)), said


def sizes(pod):
    """Of the world, at the end of each epoch so far."""
    return [int(size) for size in re.findall(r"epoch \d+/\d+  size (\d+) ", pod.out.read_text())]


def await_size(pod, size, cluster):
    """At the end of an epoch from now on."""
    before = len(sizes(pod))

    def is_there():
        assert pod.process.poll() is None, cluster.said()
        return size in sizes(pod)[before + 1 :]

    wait_until(f"a world of {size}", is_there, limit=DEADLINE, told=cluster.said)


def test_an_mpijob_trains(cluster, tmp_path):
    job = MPIJob(cluster, tmp_path, "mpijob.yaml")
    workers = [job.listening_worker(index) for index in range(job.workers)]
    launcher = job.launcher()
    assert launcher.finish(DEADLINE) == 0, job.cluster.said()
    assert "epoch 8/8" in launcher.out.read_text() and "gives 2 slots" in launcher.err.read_text(), job.cluster.said()
    assert all("Accepted publickey for hvdrun" in worker.err.read_text() for worker in workers), job.cluster.said()


@pytest.mark.soak
def test_workers_of_an_elastic_mpijob_come_and_go(cluster, tmp_path):
    """A worker that comes back has its name and another host key."""
    job = MPIJob(cluster, tmp_path, "mpijob-elastic.yaml")
    job.listening_worker(0)
    launcher = job.launcher("--epochs=1000000")
    await_size(launcher, 1, job.cluster)
    second = job.listening_worker(1)
    await_size(launcher, 2, job.cluster)
    second.lose()
    job.running.remove(1)
    job.write_config()
    await_size(launcher, 1, job.cluster)
    job.listening_worker(1)
    await_size(launcher, 2, job.cluster)
    launcher.delete()
    assert launcher.finish(DEADLINE) == 75, job.cluster.said()


def test_a_trainjob_over_ssh_trains(cluster, tmp_path):
    runtime, job = objects_of("cluster-training-runtime.yaml")[0]["spec"], objects_of("trainjob.yaml")[0]
    name, trainer = job["metadata"]["name"], job["spec"]["trainer"]
    nodes = [f"{name}-node-0-{i}" for i in range(trainer["numNodes"])]
    place = cluster({f"{node}.{name}": number for number, node in enumerate(nodes, 1)}, late=2)
    pods = {part["name"]: part["template"]["spec"]["template"]["spec"] for part in runtime["template"]["spec"]["replicatedJobs"]}
    secret = (ssh_secret(tmp_path), runtime["mlPolicy"]["mpi"]["sshAuthMountPath"])
    config = Volume(tmp_path / "mpi")
    config.write({"hostfile": "".join(f"{node}.{name} slots={runtime['mlPolicy']['mpi']['numProcPerNode']}\n" for node in nodes)})
    workers = [place.start(number, node, pods["node"], mounts=[secret]) for number, node in enumerate(nodes, 1)]
    for worker in workers:
        wait_until("its sshd", lambda worker=worker: worker.listens(2222), told=place.said)  # the launcher depends on it
    launcher = place.start(0, f"{name}-launcher-0-0", pods["launcher"], {**pods["launcher"]["containers"][0], "command": trainer["command"]},
                           OPEN_MPI, mounts=[secret, (config.folder, "/etc/mpi")])
    assert launcher.finish(DEADLINE) == 0, place.said()
    assert "epoch 8/8" in launcher.out.read_text() and "gives 2 slots" in launcher.err.read_text(), place.said()


class Nodes:
    """The pods of a manifest that starts the same command in each of them."""

    def __init__(self, cluster, folder, name):
        objects = objects_of(name)
        job = objects[-1]
        self.name, kind = job["metadata"]["name"], job["kind"]
        template = job["spec"] if kind == "Job" else (job["spec"] if kind == "JobSet" else job["spec"]["template"]["spec"])["replicatedJobs"][0]["template"]["spec"]
        self.spec = template["template"]["spec"]
        if kind == "Job":
            service = objects[0]
            assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {"batch.kubernetes.io/job-name": self.name}
            assert self.spec["subdomain"] == service["metadata"]["name"]
            self.pod_name, self.count = f"{self.name}-{{}}", template["completions"]
            self.variables = {"JOB_COMPLETION_INDEX": "{}"}
        elif kind == "JobSet":
            self.pod_name, self.count = f"{self.name}-node-0-{{}}", template["completions"]
            self.variables = {"JOB_COMPLETION_INDEX": "{}"}
        else:  # of a TrainJob "digits" of this runtime
            self.name, self.count = "digits", job["spec"]["mlPolicy"]["numNodes"]
            self.pod_name = "digits-node-0-{}"
            self.variables = {"JOB_COMPLETION_INDEX": "{}", "PET_NODE_RANK": "{}", "PET_NNODES": str(self.count), "PET_NPROC_PER_NODE": "1",
                              "PET_MASTER_ADDR": "digits-node-0-0.digits", "PET_MASTER_PORT": "29500"}
        self.cluster = cluster({f"{self.pod_name.format(i)}.{self.name}": i for i in range(3)}, late=2)
        key = Volume(folder / "key")
        key.write({"key": "0123456789abcdef0123456789abcdef"}, mode=0o440)
        self.volumes = {"job-key": key.folder}

    def start(self, index, *more):
        container = self.spec["containers"][0]
        container = {**container, "args": [*container.get("args", []), *more]}
        variables = {name: value.format(index) for name, value in self.variables.items()}
        return self.cluster.start(index, self.pod_name.format(index), self.spec, container, variables, self.volumes)


@pytest.mark.parametrize("name", [pytest.param("indexed-job.yaml", marks=pytest.mark.soak), "torch-runtime.yaml"])
def test_the_same_command_in_each_pod_trains(cluster, tmp_path, name):
    job = Nodes(cluster, tmp_path, name)
    assert job.count == 2
    follower, leader = job.start(1), job.start(0)
    assert (leader.finish(DEADLINE), follower.finish(DEADLINE)) == (0, 0), job.cluster.said()
    assert "epoch 8/8" in leader.out.read_text() and follower.out.read_text() == "", job.cluster.said()
    assert "2 hosts" in leader.err.read_text(), job.cluster.said()


@pytest.mark.soak
@pytest.mark.parametrize("name", ["jobset.yaml", "torch-runtime-elastic.yaml"])
def test_pods_of_an_elastic_job_without_ssh_come_and_go(cluster, tmp_path, name):
    job = Nodes(cluster, tmp_path, name)
    assert job.count == 4
    pods = {index: job.start(index, "--epochs=1000000") for index in (0, 1)}
    await_size(pods[0], 2, job.cluster)
    pods[2] = job.start(2, "--epochs=1000000")
    await_size(pods[0], 3, job.cluster)
    pods[1].lose()
    await_size(pods[0], 2, job.cluster)
    pods[1] = job.start(1, "--epochs=1000000")
    await_size(pods[0], 3, job.cluster)
    pods[0].delete()
    assert {index: pod.finish(DEADLINE) for index, pod in pods.items()} == {0: 75, 1: 75, 2: 75}, job.cluster.said()
