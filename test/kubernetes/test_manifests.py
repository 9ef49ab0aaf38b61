"""The chart and the manifests, without a cluster: Helm's own code renders, Kubernetes' own schemas judge, and the scripts that the
chart mounts run for real, with two sshd of this user on one machine."""

import json
import os
import pathlib
import pwd
import shutil
import subprocess
import time

import helm_python
import kubernetes_validate
import kubeflow_trainer_api.models as trainer
import pytest
import yaml

REPO = pathlib.Path(__file__).resolve().parents[2]
CHART = REPO / "configs/helm/hvdrun"
MANIFESTS = REPO / "examples/kubernetes"
VERSIONS = ("1.31", "1.37")  # podFailurePolicy is stable since 1.31

# Every value that Horovod's chart has, each with another value than ours.
OLD_VALUES = {
    "useHostNetwork": True, "useHostPID": True, "resources": {"limits": {"nvidia.com/gpu": 2}},
    "ssh": {"port": 32222, "useSecrets": True, "hostKey": "", "hostKeyPub": "ssh-rsa AAAA"},
    "worker": {"number": 3, "podManagementPolicy": "OrderedReady", "image": {"repository": "r", "tag": "t", "pullPolicy": "Always"},
               "env": [{"name": "A", "value": "1"}], "privileged": True},
    "driver": {"image": {"repository": "d", "tag": "t", "pullPolicy": "Always"}, "args": ["python", "train.py", "a 'b\" c"],
               "env": [{"name": "B", "value": "2"}], "privileged": True},
    "volumes": [{"name": "data", "emptyDir": {}}], "volumeMounts": [{"name": "data", "mountPath": "/data"}],
}
ELASTIC = {"elastic": {"minNp": 1, "maxNp": 4}, "driver": {"asWorker": True}}


def render(values):
    chart = helm_python.Chart.load(str(CHART))
    chart.validate_schema(values)
    return [object for text in chart.render(values).values() for object in yaml.safe_load_all(text) if object]


def of_kind(objects, kind):
    return next(object for object in objects if object["kind"] == kind)


def complaints(objects):
    found = []
    for object in objects:
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(object, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                found.append(f"{object['kind']} {object['metadata']['name']}, {version}: {error.message}")
    return found


def test_lint_has_nothing_to_say():
    result = helm_python.lint(str(CHART))
    assert [m for m in result["messages"] if m["error"] != "icon is recommended"] == [] and result["errors"] == []


@pytest.mark.parametrize("values", [{}, OLD_VALUES, ELASTIC], ids=["defaults", "values of the old chart", "elastic"])
def test_what_the_chart_makes_is_valid(values):
    assert complaints(render(values)) == []


def test_a_field_that_does_not_exist_is_found():
    job = of_kind(render({}), "Job")
    job["spec"]["podFailurePolicys"] = {}
    assert "podFailurePolicys" in complaints([job])[0]


@pytest.mark.parametrize("values", [{"worker": {"numbr": 2}}, {"ssh": {"port": 0}}, {"ssh": {"useSecrets": False}}])
def test_values_that_mean_nothing_are_refused(values):
    with pytest.raises(helm_python.HelmError):
        render(values)


def test_values_of_the_old_chart_do_what_they_did():
    objects = render(OLD_VALUES)
    workers, job = of_kind(objects, "StatefulSet")["spec"], of_kind(objects, "Job")["spec"]
    pod = workers["template"]["spec"]
    assert workers["replicas"] == 3 and workers["podManagementPolicy"] == "OrderedReady"
    assert pod["hostNetwork"] and pod["hostPID"] and pod["containers"][0]["image"] == "r:t"
    assert pod["containers"][0]["ports"][0]["containerPort"] == 32222 and pod["containers"][0]["securityContext"]["privileged"]
    assert {"name": "data", "mountPath": "/data"} in pod["containers"][0]["volumeMounts"]
    launcher = job["template"]["spec"]["containers"][0]
    assert launcher["image"] == "d:t" and launcher["args"][-3:] == ["python", "train.py", "a 'b\" c"]
    files = of_kind(objects, "ConfigMap")["data"]
    name = of_kind(objects, "Service")["metadata"]["name"]
    assert files["hostfile"].split("\n")[:3] == [f"{name}-{i}.{name} slots=2" for i in range(3)]


def test_the_job_is_started_again_by_the_exit_codes_of_hvdrun():
    rules = of_kind(render({}), "Job")["spec"]["podFailurePolicy"]["rules"]
    by_code = {code: rule["action"] for rule in rules if "onExitCodes" in rule for code in rule["onExitCodes"]["values"]}
    assert by_code == {2: "FailJob", 126: "FailJob", 127: "FailJob", 75: "Ignore"}
    documented = (REPO / "docs/errors.md").read_text()
    assert all(f"| {code} |" in documented or f"{code}, " in documented or f", {code} |" in documented for code in by_code)


def test_an_elastic_job_leaves_after_its_step_before_a_pod_goes():
    objects = render(ELASTIC)
    for kind in ("StatefulSet", "Job"):
        assert "preStop" in of_kind(objects, kind)["spec"]["template"]["spec"]["containers"][0]["lifecycle"]
        assert "lifecycle" not in of_kind(render({}), kind)["spec"]["template"]["spec"]["containers"][0]
    assert of_kind(objects, "ConfigMap")["data"]["hostfile"].startswith("localhost slots=1\n")


def test_each_installation_has_a_key_of_its_own():
    keys = {of_kind(render({}), "Secret")["stringData"]["key"] for _ in range(3)}
    assert len(keys) == 3


@pytest.mark.parametrize("name, model", [("cluster-training-runtime.yaml", "ClusterTrainingRuntime"), ("trainjob.yaml", "TrainJob")])
def test_objects_of_kubeflow_trainer_have_its_fields_and_no_others(name, model):
    object = yaml.safe_load((MANIFESTS / name).read_text())
    parsed = getattr(trainer, "TrainerV1alpha1" + model).from_dict(object)
    assert parsed.to_dict() == object


@pytest.mark.parametrize("name", ["mpijob.yaml", "mpijob-elastic.yaml"])
def test_pods_of_an_mpijob_are_valid(name):
    object = yaml.safe_load((MANIFESTS / name).read_text())
    assert (object["apiVersion"], object["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    for role, spec in object["spec"]["mpiReplicaSpecs"].items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": role.lower()},
               "spec": dict(spec["template"]["spec"], restartPolicy=spec["restartPolicy"])}
        assert complaints([pod]) == []


def hvdrun():
    path = os.environ.get("HVDRUN") or REPO / "build/bin/hvdrun"
    if not os.path.exists(path):
        pytest.skip("hvdrun is not built; HVDRUN names another one")
    return path


def pod_script(text, folder):
    """With the folders of the test in the place of the pod's."""
    for path in ("hvdrun-ssh", "hvdrun"):
        text = text.replace(f"/etc/{path}/", f"{folder}/etc/{path}/")
    return text


class Pod:
    """A network namespace with an address of its own, as a pod has one; in it runs worker.sh."""

    NAME, ADDRESS, HERE = "hvd-pod", "10.99.0.2", "10.99.0.1"

    def __enter__(self):
        for command in (f"netns add {self.NAME}", f"link add hvd-host type veth peer name hvd-pod netns {self.NAME}",
                        f"addr add {self.HERE}/24 dev hvd-host", "link set hvd-host up", "link set lo up",
                        f"-n {self.NAME} addr add {self.ADDRESS}/24 dev hvd-pod", f"-n {self.NAME} link set hvd-pod up",
                        f"-n {self.NAME} link set lo up"):
            subprocess.run(["ip", *command.split()], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", self.NAME])

    def start(self, command, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.NAME, "unshare", "--uts", "sh", "-c", 'hostname pod && exec "$@"', "sh", *command],
                                **options)


def alone():
    """Whether this network is the test's own (test/isolated.sh): rigs appear in no other."""
    devices = set(os.listdir("/sys/class/net")) if os.path.isdir("/sys/class/net") else set()
    interfaces = {line.split(":")[0].strip() for line in open("/proc/self/net/dev").read().splitlines()[2:]}
    return os.getuid() == 0 and interfaces == {"lo"} or devices == {"lo"}


def test_the_scripts_of_the_chart_start_a_job(tmp_path):
    """worker.sh in a pod of its own, and launcher.sh here."""
    if not os.path.exists("/usr/sbin/sshd") or not alone():
        pytest.skip("this needs openssh-server and a network of its own: test/isolated.sh python3 -m pytest ...")
    os.makedirs("/run/sshd", exist_ok=True)
    objects = render({})
    files = of_kind(objects, "ConfigMap")["data"]
    home = tmp_path / "home"
    for folder in ("etc/hvdrun", "etc/hvdrun-ssh", "home/.ssh"):
        (tmp_path / folder).mkdir(parents=True)
    key = tmp_path / "etc/hvdrun-ssh/key"
    key.write_text(of_kind(objects, "Secret")["stringData"]["key"])
    key.chmod(0o440)
    (tmp_path / "etc/hvdrun/hostfile").write_text(f"{Pod.ADDRESS} slots=2\n")
    for name in ("worker.sh", "launcher.sh"):
        (tmp_path / name).write_text(pod_script(files[name], tmp_path))
    environment = {**os.environ, "HOME": str(home), "PATH": f"{pathlib.Path(hvdrun()).parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    with Pod() as pod, (tmp_path / "sshd.log").open("w") as log:
        # The launcher comes first, as it may: it waits for sshd. ssh reads the configuration of the account, not of HOME.
        inside = ["unshare", "--mount", "sh", "-c", 'mkdir -p ~/.ssh && mount --bind "$1" ~/.ssh && shift && exec "$@"', "sh", home / ".ssh"]
        launcher = subprocess.Popen([*inside, "/bin/sh", tmp_path / "launcher.sh", f"--hostfile={tmp_path}/etc/hvdrun/hostfile", "--start-timeout=100",
                                     "--", "sh", "-c", 'echo "rank $HOROVOD_RANK on $(uname -n) has $FROM_THE_DRIVER"'], text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, env={**environment, "HOME": pwd.getpwuid(os.getuid()).pw_dir, "FROM_THE_DRIVER": "a \"b\" c"})
        time.sleep(2)
        assert launcher.poll() is None, launcher.communicate()
        worker = pod.start(["/bin/sh", tmp_path / "worker.sh"], env=environment, stdout=log, stderr=log)
        try:
            out = launcher.communicate(timeout=120)[0]
            assert launcher.returncode == 0, out + (tmp_path / "sshd.log").read_text()
            assert 'rank 0 on pod has a "b" c' in out and 'rank 1 on pod has a "b" c' in out, out
        finally:
            worker.terminate()
            worker.wait()
            launcher.kill()


def test_the_json_schema_is_one():
    import jsonschema
    jsonschema.Draft7Validator.check_schema(json.loads((CHART / "values.schema.json").read_text()))


def test_the_shell_scripts_have_no_finding(tmp_path):
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    files = of_kind(render({}), "ConfigMap")["data"]
    for name in ("worker.sh", "launcher.sh"):
        (tmp_path / name).write_text(files[name])
    done = subprocess.run(["shellcheck", tmp_path / "worker.sh", tmp_path / "launcher.sh", REPO / "docker/hvdrun-worker"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_report_of_progress_is_one_of_trainers_api(monkeypatch):
    """horovod.kubeflow, by the model of the request (test/python/test_kubeflow.py has the rest)."""
    monkeypatch.syspath_prepend(str(REPO / "runtime/python"))
    from horovod import kubeflow
    status = kubeflow._status(45.5, 12.1, {"loss": 0.25})
    body = {"trainerStatus": {**status, "lastUpdatedTime": "2026-01-02T03:04:05Z"}}
    read = trainer.TrainerV1alpha1UpdateTrainJobStatusRequest.from_json(json.dumps(body)).trainer_status
    assert (read.progress_percentage, read.estimated_remaining_seconds) == (45, 13)
    assert [(metric.name, metric.value) for metric in read.metrics] == [("loss", "0.25")] and read.last_updated_time.year == 2026
    assert set(status) <= {field.alias or name for name, field in trainer.TrainerV1alpha1TrainerStatus.model_fields.items()}
