"""What the guides tell people to type beside hvdrun itself: scripts, and commands of programs that no test can have, with stand-ins that
take their words as strictly as they do. test_docs.py has the commands of hvdrun."""

import base64
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys

import pytest
from conftest import DEADLINE, REPO, hvdrun_path, skip_without
from host_rig import WHY_NOT, HostRig
from test_allocations import RECORDED
from test_docs import lines_of_shell

SAYS_ITS_RANK = "#!/bin/sh\necho $1 is rank $HOROVOD_RANK of $HOROVOD_SIZE\n"


def page(name):
    return (REPO / "docs" / f"{name}.md").read_text()


def only(found):
    assert len(found) == 1, found
    return found[0]


def script_of(name, word):
    """The one script of a page that has this word."""
    return only([script for script in re.findall(r"```bash\n(#!/bin/bash\n.*?)```", page(name), re.S) if word in script])


@pytest.fixture
def programs(tmp_path):
    """programs(name=text): stand-ins, in front of PATH; hvdrun is the real one. Returns the environment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "hvdrun").symlink_to(hvdrun_path())

    def make(**texts):
        for name, text in texts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        return dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", HOME=str(tmp_path))

    return make


def shell(script, env, folder, **options):
    return subprocess.run(["bash", "-euc", script], env=env, cwd=folder, capture_output=True, text=True, timeout=DEADLINE, **options)


def ranks_said(job, count, script="train.py"):
    """A job whose ranks run SAYS_ITS_RANK."""
    assert job.returncode == 0, job.stdout + job.stderr
    assert sorted(job.stdout.splitlines()) == [f"[{rank}]<stdout>:{script} is rank {rank} of {count}" for rank in range(count)], job.stderr


# ---- the same command on every node


DOCKER = """#!/bin/bash
# docker run: a container that is no more than its variables, with one folder of the host's under another name
[[ $1 == run ]] || exit 125
shift
variables=()
while [[ $1 == -* ]]; do
  case $1 in
    --rm) shift 1 ;;
    --network) [[ $2 == host ]] || exit 125; shift 2 ;;
    -v) IFS=: read -r there here mode <<< "$2"; [[ $mode == ro ]] || exit 125; shift 2 ;;
    -e) variables+=("$2"); shift 2 ;;
    *) echo "unknown flag: $1" >&2; exit 125 ;;
  esac
done
[[ $1 == hvdrun:torch ]] || exit 125
shift
exec env "${variables[@]/=$here\\//=$there/}" "$@"
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def tony(node, port):
    tasks = {"worker": [f"localhost:{port}", f"localhost:{port + 1}"]}
    return script_of("several-hosts", "CLUSTER_SPEC"), {"CLUSTER_SPEC": json.dumps(tasks), "TASK_NUM": "2", "TASK_INDEX": str(node)}


def of_cloud(name):
    """What a row of clouds.md has typed before hvdrun, and the row."""
    row = only(re.findall(rf"^\| {name}.*$", page("clouds"), re.M))
    return only(re.findall(r"`((?:export|eval) [^`]*)`", row)) + "\nhvdrun python train.py\n", row


def azure(node, port):
    return of_cloud("Azure Machine Learning")[0], {
        "AZUREML_NODE_COUNT": "2", "NODE_RANK": str(node), "MASTER_ADDR": f"localhost:{port}", "HVD_JOB_KEY_FILE": "key", "HVD_NODE_SLOTS": "1"}


def aws(node, port):
    script, row = of_cloud("AWS Batch")
    env = {"AWS_BATCH_JOB_NUM_NODES": "2", "AWS_BATCH_JOB_NODE_INDEX": str(node), "HVD_JOB_KEY_FILE": "key", "HVD_NODE_SLOTS": "1"}
    if node == 0:
        of_main = only(re.findall(r"on the main node, which lacks the last one, `(.*?)`", row))
        return script.replace("HVD_LEADER=$AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS", of_main), env
    return script, dict(env, AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS="127.0.0.1")


def sagemaker(node, port):
    hosts = [f"localhost:{port}", "algo-2"]  # names alone there; the port keeps tests apart
    return of_cloud("SageMaker")[0], {"SM_HOSTS": json.dumps(hosts), "SM_CURRENT_HOST": hosts[node], "HVD_JOB_KEY_FILE": "key", "HVD_NODE_SLOTS": "1"}


def docker(node, port):
    command = only([line for line in lines_of_shell(page("containers")) if line.startswith("docker run") and "HVD_NODES" in line])
    for there, here in (("HVD_NODE_RANK=0", f"HVD_NODE_RANK={node}"), ("host-a", f"localhost:{port}"), ("/etc/hvd-job-key", "$PWD"),
                        ("python3 /examples/pytorch_digits.py", "python train.py")):
        assert there in command
        command = command.replace(there, here)
    return command, {"HVD_NODE_SLOTS": "1"}


def variables(node, port):
    text = page("kubernetes")
    lines = re.findall(r"^    (export HVD_JOB_KEY_FILE=.*|export HVD_NODES=.*\n    hvdrun .*)$", text, re.M)
    script = "\n".join(lines).replace("/etc/hvd-job-key/", "").replace("host-0:29400", f"localhost:{port}").replace("HVD_NODE_RANK=0", f"HVD_NODE_RANK={node}")
    return script.replace("HVD_NODES=4", "HVD_NODES=2"), {"HVD_NODE_SLOTS": "1"}


@pytest.mark.parametrize("where", [tony, azure, aws, sagemaker, docker, variables], ids=lambda where: where.__name__)
def test_what_a_page_has_every_node_type_starts_one_job(where, programs, tmp_path):
    """Two nodes, which are both this machine; the secret is made as the page says."""
    env = programs(python=SAYS_ITS_RANK, docker=DOCKER)
    make_key = only(re.findall(r"`(\(umask 077; .*?)`", page("kubernetes")))
    assert shell(make_key, env, tmp_path).returncode == 0
    (tmp_path / ".hvd-job-key").rename(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    port = free_port()
    nodes = []
    for node in (1, 0):
        script, more = where(node, port if where is not aws else 29400)
        nodes.append(subprocess.Popen(["bash", "-euc", script], env=dict(env, **more), cwd=tmp_path, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    try:
        (silent, said_by_1), (out, said) = [one.communicate(timeout=DEADLINE) for one in nodes]
    finally:
        for one in nodes:
            one.kill()
    assert [one.returncode for one in nodes] == [0, 0] and silent == "", said + said_by_1
    assert sorted(out.splitlines()) == [f"[{rank}]<stdout>:train.py is rank {rank} of 2" for rank in range(2)], said


def test_a_secret_of_kubernetes_is_made_as_the_page_and_the_message_say(run, tmp_path):
    if not shutil.which("kubectl"):
        pytest.skip("there is no kubectl")
    of_page = only([line for line in lines_of_shell(page("kubernetes")) if "kubectl create secret" in line])
    job = run("--nnodes", 2, "--node-rank", 0, "--master-addr", "localhost", "true", env={"HVD_JOB_KEY_FILE": ""})
    assert job.code == 2 and f"`{of_page}`" in job.err, job.err
    made = shell(f"{of_page} --dry-run=client -o json", dict(os.environ), tmp_path)
    assert made.returncode == 0, made.stderr
    secret = json.loads(made.stdout)
    assert (secret["kind"], secret["metadata"]["name"], list(secret["data"])) == ("Secret", "hvd-job-key", ["key"])
    assert len(base64.b64decode(secret["data"]["key"])) >= 16
    assert "HVD_JOB_KEY_FILE=/etc/hvd-job-key/key" in page("kubernetes"), "the name of the file is that of the key"


# ---- ways to hosts that are not SSH


# Each takes a container and a program with its arguments, and runs no shell; what is in the container knows nothing of our variables.
CONTAINER_PROGRAMS = {
    "kubectl exec -i": """#!/bin/bash
[[ $# -ge 5 && $1 == exec && $2 == -i && $4 == -- ]] || { echo "error: exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead"; exit 1; } >&2
shift 4
exec env -i PATH=/usr/bin:/bin "$@"
""",
    "docker exec -i": """#!/bin/bash
[[ $# -ge 4 && $1 == exec && $2 == -i && $4 != -- ]] || exit 125
shift 3
exec env -i PATH=/usr/bin:/bin "$@"
"""}


@pytest.mark.parametrize("command", CONTAINER_PROGRAMS)
def test_programs_that_start_a_program_in_a_container_are_a_way_to_it(command, run, programs):
    assert f"`--rsh-agent '{command}'`" in page("several-hosts")
    env = programs(**{command.split()[0]: CONTAINER_PROGRAMS[command]})
    job = run("-np", 2, "-H", "pod:2", "--rsh-agent", command, "sh", "-c", "echo rank $HOROVOD_RANK 'of two'", env={"PATH": env["PATH"]})
    assert job.code == 0, job.err
    assert sorted(job.out.splitlines()) == ["[0]<stdout>:rank 0 of two", "[1]<stdout>:rank 1 of two"]


def test_the_discovery_script_for_pods_names_those_that_kubectl_names(programs, tmp_path):
    block = only(re.findall(r"^    (#!/bin/sh\n    # pods.sh\n(?:    .*\n)+)", page("elastic"), re.M))
    env = programs(kubectl='#!/bin/sh\n[ "$1 $2 $3 $5 $6 $7" = "get pods -l --field-selector=status.phase=Running -o name" ] || exit 1\n'
                           "echo pod/train-0; echo pod/train-1\n")
    (tmp_path / "pods.sh").write_text(re.sub(r"^    ", "", block, flags=re.M))
    (tmp_path / "pods.sh").chmod(0o755)
    command = only([line for line in lines_of_shell(page("elastic")) if "./pods.sh" in line])
    planned = shell(command.replace("hvdrun", "hvdrun --dry-run", 1), env, tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert [line.strip() for line in planned.stdout.splitlines()[:3]] == ["16 ranks on 2 hosts:", "train-0: ranks 0-7", "train-1: ranks 8-15"], planned.stdout


@pytest.mark.parametrize("nodes", [4, 1])
def test_the_steps_of_srun_are_those_of_the_page(nodes, run, programs, tmp_path):
    """One for all nodes, and one for a node alone."""
    shown = only([line for line in lines_of_shell(page("slurm")) if line.startswith(f"srun --nodes={nodes} ")])
    names = ",".join(f"node{number}" for number in range(1, nodes + 1))
    shown = re.sub(r"--nodelist=\S+", f"--nodelist={names}", shown).removesuffix(" sh -c '...'")
    env = programs(srun=f"#!/bin/sh\necho \"srun $*\" | head -n 1 >> {tmp_path}/asked\nexit 1\n")
    asked = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": names, "SLURM_NTASKS": str(nodes), "SLURM_TASKS_PER_NODE": f"1(x{nodes})", "PATH": env["PATH"]}
    assert run("true", env=asked).code == 1
    step = (tmp_path / "asked").read_text().splitlines()[0]
    assert step.startswith(shown.removesuffix(" ...")) and " sh -c " in step, step
    assert shown.endswith(" ...") or step.startswith(f"{shown} sh -c "), step


# ---- Apptainer


# As a user without root has it: a user namespace and a file system of its own, and the processes and the network of the host.
APPTAINER = """#!/bin/bash
[[ $1 == exec ]] || exit 255
shift
binds=(/dev /etc /proc /sys /tmp /usr "$HOME" "$PWD" PYTHON)
while [[ $1 == -* ]]; do
  case $1 in
    --nv) shift ;;
    --bind) binds+=("$2"); shift 2 ;;
    *) echo "Error for command \\"exec\\": unknown flag: $1" >&2; exit 255 ;;
  esac
done
[[ $1 == *.sif && -e $1 ]] || { echo "FATAL: could not open image $1" >&2; exit 255; }
shift
enter='mount -t tmpfs image /mnt && cd /mnt && ln -s usr/bin usr/lib usr/lib64 usr/sbin . &&
  for folder in "${@:2:$1}"; do mkdir -p ".$folder" && mount --rbind "$folder" ".$folder" || exit 255; done &&
  exec chroot . env -C "$PWD_OUTSIDE" "${@:2+$1}"'
PWD_OUTSIDE=$PWD exec unshare --user --map-current-user --keep-caps --mount bash -c "$enter" bash ${#binds[@]} "${binds[@]}" "$@"
"""
PYTHON = " ".join(shlex.quote(prefix) for prefix in {sys.prefix, sys.base_prefix} if not prefix.startswith("/usr"))  # is part of the image
IN_A_CONTAINER = """
import os
import horovod.numpy as hvd
import numpy
hvd.init()
total = hvd.allreduce(numpy.full(1 << 20, float(hvd.rank() + 1)), op=hvd.Sum)
inside = os.readlink("/proc/self/ns/user") != os.environ["USER_NAMESPACE_OUTSIDE"]
print("rank", hvd.rank(), "of", hvd.size(), "sum", int(total[-1]), "inside", inside, "of the host", os.path.exists("/var"), flush=True)
"""


def of_apptainer(name):
    return only([line for line in lines_of_shell(page(name)) if "apptainer exec" in line])


def installed():
    """The folders of which hvdrun is made: where it was built, and the sources of the package."""
    build = pathlib.Path(hvdrun_path()).resolve().parents[1]
    package = subprocess.run([hvdrun_path(), "-np", "1", "--prefix", "", sys.executable, "-c", "import horovod; print(horovod.__path__[0])"],
                             capture_output=True, text=True, timeout=DEADLINE, check=True).stdout.strip()
    return [build, pathlib.Path(package).resolve().parent]


@pytest.fixture
def apptainer(programs, tmp_path):
    """The environment in which the page's command runs, and that command with the folders to bind, which the page says have to be named."""
    skip_without("numpy")
    works = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "mount", "-t", "tmpfs", "image", "/mnt"]
    if subprocess.run(works, capture_output=True).returncode:
        pytest.skip("this user may make no namespaces")
    assert "`--bind /opt/hvdrun`, where hvdrun is installed" in page("containers")
    env = programs(apptainer=APPTAINER.replace(" PYTHON)", f" {PYTHON})"), python=f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "image.sif").touch()
    (tmp_path / "train.py").write_text(IN_A_CONTAINER)
    env["USER_NAMESPACE_OUTSIDE"] = os.readlink("/proc/self/ns/user")
    return env, lambda command: command.replace("--nv", " ".join(["--nv", *(f"--bind {shlex.quote(str(folder))}" for folder in installed())]))


def in_containers(done, count):
    assert done.returncode == 0, done.stdout + done.stderr
    total = count * (count + 1) // 2
    assert sorted(done.stdout.splitlines()) == [
        f"[{rank}]<stdout>:rank {rank} of {count} sum {total} inside True of the host False" for rank in range(count)], done.stderr


def test_ranks_in_containers_of_apptainer_share_memory_with_the_agent_outside(apptainer, tmp_path):
    env, with_binds = apptainer
    in_containers(shell(with_binds(of_apptainer("slurm")), dict(env, **RECORDED["slurm"][0]), tmp_path), 2)


def test_and_those_of_several_hosts_find_each_other(apptainer, tmp_path):
    if WHY_NOT:
        pytest.skip(WHY_NOT)
    env, with_binds = apptainer
    command = of_apptainer("containers")
    assert command.startswith("hvdrun -np 8 -H node1:4,node2:4 ")
    rig = HostRig(tmp_path, 2)
    try:
        command = with_binds(command).replace("-np 8 -H node1:4,node2:4", "-np 4 -H hvd1:2,hvd2:2")
        in_containers(subprocess.run(rig.on_head("env", "-C", tmp_path, "bash", "-euc", command), env=env, capture_output=True, text=True, timeout=DEADLINE), 4)
        rig.nothing_left()
    finally:
        rig.down()


# ---- launchers of one's own, and what is left after training


def test_a_launcher_of_ones_own_starts_four_ranks_with_the_secret_of_the_page(programs, tmp_path):
    text = page("started-by-others")
    loop = only(re.findall(r"^    (for r in 0 1 2 3; do\n.*?^    done; wait)$", text, re.S | re.M))
    make_secret = only(re.findall(r"`(umask 077; openssl [^`]*)`", text))
    (tmp_path / "train.py").write_text("from horovod.common.basics import shared\nhvd = shared()\nhvd.init()\n"
                                       "import sys\nsys.stdout.write('rank %d of %d\\n' % (hvd.rank(), hvd.size()))\nhvd.shutdown()\n")
    env = programs(python=f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    done = shell(f'{make_secret}\nexport HVD_WORLD_SECRET_FILE=~/.hvd-secret\neval "$(hvdrun env)"\n{loop}', env, tmp_path)
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == [f"rank {rank} of 4" for rank in range(4)], done.stdout + done.stderr
    assert (tmp_path / ".hvd-secret").stat().st_mode & 0o777 == 0o600


MODEL = """
import torch
def Net(norm=torch.nn.BatchNorm2d):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), norm(3), torch.nn.Flatten(), torch.nn.Linear(3 * 36, 2))
"""
TRAIN = MODEL + """
import horovod.torch as hvd
hvd.init()
torch.set_num_threads(1)
model = Net(hvd.SyncBatchNorm)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())
for step in range(3):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.rand(4, 1, 8, 8)), torch.tensor([0, 1, 0, 1])).backward()
    optimizer.step()
right, total = ((3, 4), (1, 10))[hvd.rank()]
SAVE
EVALUATE
print("right", int(right), "of", int(total), "by rank", hvd.rank(), "sees", round(model.eval()(torch.ones(1, 1, 8, 8)).sum().item(), 5), flush=True)
"""
LOAD = """
import sys
class NoHorovod:
    def find_spec(self, name, path=None, target=None):
        assert name.partition(".")[0] != "horovod", "the file asks for horovod"
sys.meta_path.insert(0, NoHorovod())
""" + MODEL + """
BLOCK
print("sees", round(model(torch.ones(1, 1, 8, 8)).sum().item(), 5))
"""


def test_what_two_ranks_saved_is_loaded_where_there_is_no_horovod(run, tmp_path):
    """The three blocks of the page, in this order: rank 0 saves, all ranks count, and Python alone loads."""
    skip_without("torch")
    save, load, evaluate = re.findall(r"```python\n(.*?)```", page("inference"), re.S)
    (tmp_path / "train.py").write_text(TRAIN.replace("SAVE", save).replace("EVALUATE", evaluate))
    job = run("-np", 2, "--prefix", "", sys.executable, "train.py", cwd=tmp_path)
    assert job.code == 0, job.err
    said = dict(line.split(" sees ") for line in job.out.splitlines())
    assert sorted(said) == [f"right 4 of 14 by rank {rank}" for rank in range(2)] and len(set(said.values())) == 1, job.out
    alone = subprocess.run([sys.executable, "-I", "-c", LOAD.replace("BLOCK", load)], capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path)
    assert alone.stdout.split() == ["sees", *set(said.values())], alone.stderr
