"""The chart and the manifests, without a cluster: Helm's own code renders, and Kubernetes' own schemas judge. test_chart_jobs.py runs what
the chart makes."""

import json
import os
import re
import shutil
import subprocess

import helm_python
import kubernetes_validate
import kubeflow_trainer_api.models as trainer
import pytest
import yaml
from chart import CHART, REPO, container_of, of_kind, pod_of, render
from pods import hvdrun, scaled

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


@pytest.mark.parametrize("values, said", [
    ({"worker": {"numbr": 2}}, "numbr"), ({"ssh": {"port": 0}}, "port"), ({"ssh": {"useSecrets": False}}, "useSecrets"),
    ({"image": {"tag": ""}}, "image.tag is missing"), ({"elastic": {"maxNp": 2}}, "set elastic.minNp, too"),
    ({"elastic": {"minNp": 4, "maxNp": 2}}, "elastic.maxNp is less than elastic.minNp"),
    ({"podLabels": {"app.kubernetes.io/component": "x"}}, "label app.kubernetes.io/component"),
])
def test_values_that_mean_nothing_are_refused(values, said):
    with pytest.raises(helm_python.HelmError, match=said):
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


def of_both(field):
    """A field of the pods of workers and launcher."""
    return lambda objects: [field(pod_of(objects, kind)) for kind in ("StatefulSet", "Job")]


def of_workers(field):
    return lambda objects: field(container_of(objects, "StatefulSet"))


def of_launcher(field):
    return lambda objects: field(container_of(objects, "Job"))


def volume(name):
    return of_both(lambda pod: [volume for volume in pod["volumes"] if volume["name"] == name])


def template(kind):
    return lambda objects: of_kind(objects, kind)["spec"]["template"]["metadata"]


def script(name):
    return lambda objects: of_kind(objects, "ConfigMap")["data"][name]


def argument(*words):
    return lambda objects: [word for word in container_of(objects, "Job")["args"] if word in words]


TOLERATIONS = [{"key": "gpu", "operator": "Exists"}]
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
    {"key": "zone", "operator": "In", "values": ["a"]}]}]}}}
GPUS = {"limits": {"nvidia.com/gpu": 2}}
MOUNT = {"name": "data", "mountPath": "/data"}
DATA = {"name": "data", "emptyDir": {}}
VARIABLE = [{"name": "A", "value": "1"}]
PULL_SECRETS = [{"name": "registry"}]

# Of each value in values.yaml: another one, where it is seen, and what is there then.
EFFECTS = [
    ("useHostNetwork", True, of_both(lambda pod: (pod["hostNetwork"], pod.get("dnsPolicy"))), [(True, "ClusterFirstWithHostNet")] * 2),
    ("useHostPID", True, of_both(lambda pod: pod["hostPID"]), [True, True]),
    ("resources", GPUS, of_workers(lambda container: container.get("resources")), GPUS),
    ("resources", GPUS, lambda objects: script("hostfile")(objects).split("\n")[0][-7:], "slots=2"),
    ("ssh.port", 22, of_workers(lambda container: container["ports"][0]["containerPort"]), 22),
    ("ssh.port", 22, lambda objects: of_kind(objects, "Service")["spec"]["ports"][0]["port"], 22),
    ("ssh.port", 22, lambda objects: ("Port 22\n" in script("worker.sh")(objects), "Port 22\n" in script("launcher.sh")(objects)), (True, True)),
    ("ssh.hostKey", "PEM", lambda objects: of_kind(objects, "Secret")["stringData"]["key"], "PEM"),
    ("image.repository", "r", of_both(lambda pod: pod["containers"][0]["image"]), ["r:torch"] * 2),
    ("image.tag", "t", of_both(lambda pod: pod["containers"][0]["image"]), ["hvdrun:t"] * 2),
    ("image.pullPolicy", "Always", of_both(lambda pod: pod["containers"][0]["imagePullPolicy"]), ["Always"] * 2),
    ("imagePullSecrets", PULL_SECRETS, of_both(lambda pod: pod.get("imagePullSecrets")), [PULL_SECRETS] * 2),
    ("worker.number", 3, lambda objects: of_kind(objects, "StatefulSet")["spec"]["replicas"], 3),
    ("worker.number", 3, lambda objects: script("hostfile")(objects).count("slots="), 3),
    ("worker.slots", 4, lambda objects: script("hostfile")(objects).count("slots=4"), 2),
    ("worker.podManagementPolicy", "OrderedReady", lambda objects: of_kind(objects, "StatefulSet")["spec"]["podManagementPolicy"], "OrderedReady"),
    ("worker.image", {"tag": "t"}, of_both(lambda pod: pod["containers"][0]["image"]), ["hvdrun:t", "hvdrun:torch"]),
    ("worker.env", VARIABLE, of_both(lambda pod: pod["containers"][0].get("env")), [VARIABLE, None]),
    ("worker.privileged", True, of_both(lambda pod: pod["containers"][0]["securityContext"]["privileged"]), [True, False]),
    ("worker.nodeSelector", {"a": "b"}, of_both(lambda pod: pod.get("nodeSelector")), [{"a": "b"}, None]),
    ("worker.tolerations", TOLERATIONS, of_both(lambda pod: pod.get("tolerations")), [TOLERATIONS, None]),
    ("worker.affinity", AFFINITY, of_both(lambda pod: pod.get("affinity")), [AFFINITY, None]),
    ("worker.terminationGracePeriodSeconds", 99, of_both(lambda pod: pod["terminationGracePeriodSeconds"]), [99, 60]),
    ("worker.terminationGracePeriodSeconds", 99, lambda objects: "+ 94))" in script("leave.sh")(objects), True),
    ("driver.image", {"repository": "r"}, of_both(lambda pod: pod["containers"][0]["image"]), ["hvdrun:torch", "r:torch"]),
    ("driver.args", ["a", "b 'c\""], of_launcher(lambda container: container["args"][container["args"].index("--"):]), ["--", "a", "b 'c\""]),
    ("driver.hvdrunArgs", ["--fold", "--timeline=/o"], argument("--fold", "--timeline=/o"), ["--fold", "--timeline=/o"]),
    ("driver.env", VARIABLE, of_both(lambda pod: pod["containers"][0].get("env")), [None, VARIABLE]),
    ("driver.privileged", True, of_both(lambda pod: pod["containers"][0]["securityContext"]["privileged"]), [False, True]),
    ("driver.resources", GPUS, of_both(lambda pod: pod["containers"][0].get("resources")), [None, GPUS]),
    ("driver.nodeSelector", {"a": "b"}, of_both(lambda pod: pod.get("nodeSelector")), [None, {"a": "b"}]),
    ("driver.tolerations", TOLERATIONS, of_both(lambda pod: pod.get("tolerations")), [None, TOLERATIONS]),
    ("driver.affinity", AFFINITY, of_both(lambda pod: pod.get("affinity")), [None, AFFINITY]),
    ("driver.asWorker", True, lambda objects: script("hostfile")(objects).split("\n")[0], "localhost slots=1"),
    ("driver.backoffLimit", 9, lambda objects: of_kind(objects, "Job")["spec"]["backoffLimit"], 9),
    ("driver.startTimeout", 77, argument("--start-timeout=77"), ["--start-timeout=77"]),
    ("driver.startTimeout", 77, lambda objects: '-ge 77 ]' in script("launcher.sh")(objects), True),
    ("driver.terminationGracePeriodSeconds", 99, of_both(lambda pod: pod["terminationGracePeriodSeconds"]), [40, 99]),
    ("driver.terminationGracePeriodSeconds", 99, lambda objects: "+ 89))" in script("stop.sh")(objects), True),
    ("elastic.minNp", 3, argument("--num-proc=3", "--min-np=3", "--max-np=1000000"), ["--num-proc=3", "--min-np=3", "--max-np=1000000"]),
    ("elastic", {"minNp": 1, "maxNp": 5}, argument("--max-np=5"), ["--max-np=5"]),
    ("volumes", [DATA], volume("data"), [[DATA]] * 2),
    ("volumeMounts", [MOUNT], of_both(lambda pod: MOUNT in pod["containers"][0]["volumeMounts"]), [True, True]),
    ("podLabels", {"a": "b"}, lambda objects: [template(kind)(objects)["labels"].get("a") for kind in ("StatefulSet", "Job")], ["b", "b"]),
    ("podAnnotations", {"a": "b"}, lambda objects: [template(kind)(objects).get("annotations") for kind in ("StatefulSet", "Job")], [{"a": "b"}] * 2),
    *((f"podSecurityContext.{name}", value, of_both(lambda pod, name=name: pod["securityContext"][name]), [value] * 2)
      for name, value in (("runAsNonRoot", False), ("runAsUser", 7), ("runAsGroup", 7), ("fsGroup", 7))),
    ("podSecurityContext.seccompProfile.type", "Unconfined", of_both(lambda pod: pod["securityContext"]["seccompProfile"]["type"]), ["Unconfined"] * 2),
    ("shm.sizeLimit", "8Gi", volume("hvdrun-shm"), [[{"name": "hvdrun-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]] * 2),
]
# The only one that does nothing, and the one that may not be changed.
WITHOUT_EFFECT = {"ssh.hostKeyPub", "ssh.useSecrets"}


def test_an_elastic_job_waits_for_workers_that_it_lacks_as_long_as_at_its_start():
    args = container_of(render({"elastic": {"minNp": 1}, "driver": {"startTimeout": 77}}), "Job")["args"]
    assert {"--start-timeout=77", "--elastic-timeout=77", "--host-discovery-script=sh /etc/hvdrun/hosts.sh"} <= set(args)
    assert not any(word.startswith("--hostfile") for word in args)


def nested(name, value):
    for key in reversed(name.split(".")):
        value = {key: value}
    return value


def leaves(values, before=""):
    """{name: default} of all values; an empty one is a whole."""
    found = {}
    for key, value in values.items():
        found.update(leaves(value, f"{before}{key}.") if isinstance(value, dict) and value else {before + key: value})
    return found


OF_DEFAULTS = render({})
DEFAULTS = leaves(yaml.safe_load((CHART / "values.yaml").read_text()))


@pytest.mark.parametrize("name, value, seen, expected", EFFECTS, ids=[effect[0] for effect in EFFECTS])
def test_a_value_has_its_effect(name, value, seen, expected):
    objects = render(nested(name, value))
    assert seen(objects) == expected
    assert seen(OF_DEFAULTS) != expected, "the default does not do it"
    assert complaints([object for object in objects if object not in OF_DEFAULTS]) == []


def test_every_value_is_among_those_that_have_an_effect():
    tried = {name for effect in EFFECTS for name in leaves(nested(effect[0], effect[1]))} | {effect[0] for effect in EFFECTS}
    assert set(DEFAULTS) - tried == WITHOUT_EFFECT


@pytest.mark.parametrize("name", sorted({name if not name.startswith("podSecurityContext.") else "podSecurityContext" for name in DEFAULTS}))
def test_a_value_of_another_type_is_refused(name):
    with pytest.raises(helm_python.HelmError, match=f"at '/{name.replace('.', '/')}"):
        render(nested(name, 7.5 if isinstance(DEFAULTS.get(name), (list, dict, str)) else [{}] if name in DEFAULTS else "x"))


def test_a_launcher_that_runs_ranks_has_what_workers_have():
    objects = render({"resources": GPUS, "driver": {"asWorker": True}})
    assert container_of(objects, "Job")["resources"] == GPUS
    assert script("hostfile")(objects).startswith("localhost slots=2\n")
    other = render({"resources": GPUS, "driver": {"asWorker": True, "resources": {"limits": {"nvidia.com/gpu": 1}}}})
    assert script("hostfile")(other).startswith("localhost slots=1\n")


def test_an_upgrade_with_more_workers_leaves_the_pods_of_the_job_as_they_are():
    """Kubernetes refuses to change them, and the whole upgrade with it."""
    for values in ({}, {"elastic": {"minNp": 1}}):
        more = render({**values, "worker": {"number": 7}})
        assert of_kind(render(values), "Job") == of_kind(more, "Job")
        assert of_kind(render(values), "StatefulSet")["spec"]["template"] == of_kind(more, "StatefulSet")["spec"]["template"]


@pytest.mark.parametrize("values", [{}, {"elastic": {"minNp": 1}}], ids=["of fixed size", "elastic"])
def test_what_is_started_without_any_value_is_there(values):
    """In the image that the guide builds."""
    launcher = container_of(render(values), "Job")
    assert f"--target torch -t {launcher['image']} ." in (REPO / "docs/kubernetes.md").read_text()
    example = launcher["args"][-1]
    assert example.startswith("/examples/") and (REPO / example[1:]).exists()
    assert ("elastic" in example) == ("elastic" in values)


def test_the_values_that_the_chart_shows_for_checkpoints_are_ones():
    values = yaml.safe_load(re.search(r"  ```yaml\n(.*?)  ```", (CHART / "README.md").read_text(), re.S).group(1))
    objects = render(values)
    assert complaints(objects) == []
    folders = of_both(lambda pod: [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]])(objects)
    args = container_of(objects, "Job")["args"]
    example, option, path = args[args.index("python3") + 1:]
    assert all(path.rsplit("/", 1)[0] in mounts for mounts in folders)
    assert f"'{option}'" in (REPO / example[1:]).read_text()


def breaches(pod):
    """What the level "restricted" of Kubernetes' pod security admission would reject."""
    found = [field for field in ("hostNetwork", "hostPID", "hostIPC") if pod.get(field)]
    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    found += [f"volume {volume['name']}" for volume in pod.get("volumes", []) if not (set(volume) - {"name"}) <= allowed]
    for container in pod["containers"]:
        own, whole = container.get("securityContext", {}), pod.get("securityContext", {})
        both = {**whole, **own}
        found += ["privileged"] if own.get("privileged") else []
        found += ["allowPrivilegeEscalation"] if own.get("allowPrivilegeEscalation") is not False else []
        found += ["capabilities"] if own.get("capabilities") != {"drop": ["ALL"]} else []
        found += ["runAsNonRoot"] if both.get("runAsNonRoot") is not True or both.get("runAsUser") == 0 else []
        found += ["seccompProfile"] if both.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost") else []
    return found


def pods_of_manifest(name):
    object = yaml.safe_load((MANIFESTS / name).read_text())
    if object["kind"] == "MPIJob":
        return [spec["template"]["spec"] for spec in object["spec"]["mpiReplicaSpecs"].values()]
    return [job["template"]["spec"]["template"]["spec"] for job in object["spec"]["template"]["spec"]["replicatedJobs"]]


def test_hvdrun_starts_a_job_with_the_options_of_the_elastic_mpijob(tmp_path):
    """Around another command, with the operator's script as it is for one pod."""
    launcher = pods_of_manifest("mpijob-elastic.yaml")[0]["containers"][0]
    hosts = tmp_path / "discover_hosts.sh"
    hosts.write_text("#!/bin/sh\necho localhost\n")
    hosts.chmod(0o555)
    command = [*launcher["command"], *launcher["args"]][1:]
    options = [word.replace("/etc/mpi/discover_hosts.sh", str(hosts)) for word in command[:command.index("python3")]]
    assert any(str(hosts) in option for option in options)
    done = subprocess.run([hvdrun(), *options, "sh", "-c", 'echo "rank $HOROVOD_RANK of $HOROVOD_SIZE"'], capture_output=True, text=True,
                          env={**os.environ, "K_MPI_JOB_ROLE": "launcher", "OMPI_MCA_orte_set_default_slots": "1"}, timeout=scaled(60))
    assert done.returncode == 0 and "rank 0 of 1" in done.stdout, done.stdout + done.stderr


WITH_PODS = ["mpijob.yaml", "mpijob-elastic.yaml", "cluster-training-runtime.yaml"]


@pytest.mark.parametrize("name", WITH_PODS)
def test_pods_of_a_manifest_may_run_where_pods_are_restricted(name):
    for pod in pods_of_manifest(name):
        assert breaches(pod) == []
        assert pod["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}


@pytest.mark.parametrize("name", WITH_PODS)
def test_ranks_of_a_manifest_have_shared_memory(name):
    for pod in pods_of_manifest(name):
        runs_ranks = "hvdrun-worker" in pod["containers"][0]["command"] or name == "cluster-training-runtime.yaml"
        assert not runs_ranks or {"name": "shm", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]


@pytest.mark.parametrize("values", [{}, ELASTIC], ids=["defaults", "elastic"])
def test_pods_of_the_chart_may_run_where_pods_are_restricted(values):
    assert of_both(breaches)(render(values)) == [[], []]


@pytest.mark.parametrize("values, found", [
    ({"useHostNetwork": True}, ["hostNetwork"]), ({"useHostPID": True}, ["hostPID"]),
    ({"volumes": [{"name": "data", "hostPath": {"path": "/data"}}]}, ["volume data"]),
    ({"podSecurityContext": {"runAsNonRoot": False}}, ["runAsNonRoot"]),
    ({"podSecurityContext": {"seccompProfile": {"type": "Unconfined"}}}, ["seccompProfile"]),
    ({"worker": {"privileged": True}, "driver": {"privileged": True}}, ["privileged", "allowPrivilegeEscalation", "capabilities"]),
])
def test_what_is_asked_for_beyond_that_is_given(values, found):
    assert of_both(breaches)(render(values)) == [found, found]


def test_each_installation_has_a_key_of_its_own():
    keys = {of_kind(render({}), "Secret")["stringData"]["key"] for _ in range(3)}
    assert len(keys) == 3


@pytest.mark.parametrize("name, model", [
    ("cluster-training-runtime.yaml", "TrainerV1alpha1ClusterTrainingRuntime"), ("trainjob.yaml", "TrainerV1alpha1TrainJob"),
    ("torch-runtime.yaml", "TrainerV1alpha1ClusterTrainingRuntime"), ("torch-runtime-elastic.yaml", "TrainerV1alpha1ClusterTrainingRuntime"),
    ("jobset.yaml", "JobsetV1alpha2JobSet")])
def test_objects_of_kubeflow_trainer_and_jobset_have_their_fields_and_no_others(name, model):
    object = yaml.safe_load((MANIFESTS / name).read_text())
    parsed = getattr(trainer, model).from_dict(object)
    assert parsed.to_dict() == object


@pytest.mark.parametrize("name", ["torch-runtime.yaml", "torch-runtime-elastic.yaml"])
def test_the_head_of_a_torch_runtime_has_a_trainjob_of_it(name):
    text = (MANIFESTS / name).read_text()
    runtime = yaml.safe_load(text)
    head = re.findall(r"^#   (.*)$", text[text.index("# Its TrainJob"):], re.M)
    job = yaml.safe_load("\n".join(head))
    assert trainer.TrainerV1alpha1TrainJob.from_dict(job).to_dict() == job
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    # Trainer sets the variables of the torch policy only where there is a "trainer".
    assert job["spec"]["trainer"]["numNodes"] == runtime["spec"]["mlPolicy"]["numNodes"]


SYMMETRIC = ["torch-runtime.yaml", "torch-runtime-elastic.yaml", "jobset.yaml", "indexed-job.yaml"]


def job_of(name):
    """The Job that Kubernetes gets, and the object that says so."""
    object = list(yaml.safe_load_all((MANIFESTS / name).read_text()))[-1]
    if object["kind"] == "Job":
        return object, object
    parts = (object if object["kind"] == "JobSet" else object["spec"]["template"])["spec"]["replicatedJobs"]
    (part,) = parts
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": part["name"]}, "spec": part["template"]["spec"]}, object


@pytest.mark.parametrize("name", SYMMETRIC)
def test_jobs_without_ssh_are_valid(name):
    others = list(yaml.safe_load_all((MANIFESTS / name).read_text()))[:-1]
    assert complaints([job_of(name)[0], *others]) == []


@pytest.mark.parametrize("name", SYMMETRIC)
def test_pods_without_ssh_satisfy_the_restricted_level(name):
    pod = job_of(name)[0]["spec"]["template"]["spec"]
    of_pod = pod["securityContext"]
    assert of_pod["runAsNonRoot"] and of_pod["runAsUser"] > 0 and of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(pod.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    assert all(set(volume) - {"name"} <= {"emptyDir", "secret"} for volume in pod["volumes"])
    for container in pod["containers"]:
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_jobs_without_ssh_read_the_key_that_the_guide_makes(name):
    pod = job_of(name)[0]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    mount = next(mount for mount in container["volumeMounts"] if mount["name"] == "job-key")
    secret = next(volume for volume in pod["volumes"] if volume["name"] == "job-key")["secret"]
    guide = (REPO / "docs/kubernetes.md").read_text()
    command = f"openssl rand -hex 32 | kubectl create secret generic {secret['secretName']} --from-file=key=/dev/stdin\n"
    assert command in guide and "#   " + command in (MANIFESTS / name).read_text()
    assert variables["HVD_JOB_KEY_FILE"] == mount["mountPath"] + "/key"
    # Nobody but root and the pod's group, to which the user belongs.
    assert secret["defaultMode"] == 0o440 and pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]


@pytest.mark.parametrize("name", ["jobset.yaml", "indexed-job.yaml"])
def test_the_number_of_nodes_is_that_of_the_pods_and_the_first_leads(name):
    job, object = job_of(name)
    variables = {entry["name"]: entry["value"] for entry in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert int(variables["HVD_NODES"].split(":")[-1]) == job["spec"]["completions"] == job["spec"]["parallelism"]
    of = object["metadata"]["name"]
    assert variables["HVD_LEADER"] == (f"{of}-node-0-0.{of}" if object["kind"] == "JobSet" else f"{of}-0.{of}")


@pytest.mark.parametrize("name", ["mpijob.yaml", "mpijob-elastic.yaml"])
def test_pods_of_an_mpijob_are_valid(name):
    object = yaml.safe_load((MANIFESTS / name).read_text())
    assert (object["apiVersion"], object["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    for role, spec in object["spec"]["mpiReplicaSpecs"].items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": role.lower()},
               "spec": dict(spec["template"]["spec"], restartPolicy=spec["restartPolicy"])}
        assert complaints([pod]) == []


def test_the_json_schema_is_one():
    import jsonschema
    jsonschema.Draft7Validator.check_schema(json.loads((CHART / "values.schema.json").read_text()))


@pytest.mark.parametrize("values", [{}, ELASTIC], ids=["of fixed size", "elastic"])
def test_the_shell_scripts_have_no_finding(tmp_path, values):
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    scripts = [tmp_path / name for name in of_kind(render(values), "ConfigMap")["data"] if name.endswith(".sh")]
    for path in scripts:
        path.write_text(script(path.name)(render(values)))
    done = subprocess.run(["shellcheck", *scripts, REPO / "docker/hvdrun-worker"], capture_output=True, text=True)
    assert scripts and done.returncode == 0, done.stdout


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
