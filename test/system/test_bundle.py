"""hvdrun on hosts that do not have it: found there, or sent once and kept."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import hvdrun_path, kill, needs_the_build_tree, foreign_worker as worker
from host_rig import WHY_NOT, HostRig
from sentences import not_sent

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

SENT = "receiving hvdrun"


def installation():
    return pathlib.Path(hvdrun_path()).resolve().parents[1]


def build_here():
    version, build = subprocess.run([hvdrun_path(), "agent", "--build"], capture_output=True, text=True, check=True).stdout.split()
    return version, build


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


class Pod:
    """A host behind --rsh-agent: this file system without this installation, a home and a PATH of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.path = folder / "path"  # in front of the usual PATH
        self.only_path = False
        self.before = ""  # what happens in its mount namespace first
        for place in (self.home, self.path, folder / "tmp", folder / "var_tmp"):
            place.mkdir()

    @property
    def cache(self):
        return self.home / ".cache" / "hvdrun"

    def agent(self):
        lines = [
            "shift",
            *[f"mount -t tmpfs none {installation() / part} || exit 1" for part in ("bin", "lib")],
            f"mount --bind {self.folder}/var_tmp /var/tmp || exit 1",
            self.before,
            f"export HOME={self.home} TMPDIR={self.folder}/tmp PATH={self.path}{'' if self.only_path else ':/usr/bin:/bin'}",
            'unset XDG_CACHE_HOME; exec /bin/sh -c "$*"']
        inside = script(self.folder / "inside", "\n".join(lines) + "\n")
        return script(self.folder / "agent", f'exec unshare --mount {inside} "$@"\n')


@pytest.fixture
def pod(tmp_path):
    return Pod(tmp_path)


@pytest.fixture
def pod_run(run, pod):
    return lambda *args: run("-np", 2, "-H", "pod:2", "--rsh-agent", pod.agent(), "--verbose", *args)


def entries(cache):
    return sorted(entry.name for entry in cache.iterdir())


def test_it_is_sent_once_and_then_found(pod, pod_run):
    first = pod_run("printenv", "HVD_RUNTIME")
    assert first.code == 0 and SENT in first.err, first.err
    kept = pod.cache / build_here()[1]
    assert first.out.count(f">:{kept}/lib/libhvd.so\n") == 2, first.out
    assert pod.cache.stat().st_mode & 0o777 == 0o700 and entries(pod.cache) == [kept.name]
    for program in [*kept.rglob("*.so"), kept / "bin" / "hvdrun"]:
        assert b".debug_info" not in program.read_bytes(), f"{program} is not stripped"
    assert not list(kept.rglob("*.debug"))
    second = pod_run("printenv", "HVD_RUNTIME")
    assert second.code == 0 and SENT not in second.err and second.out.count(str(kept)) == 2, second.err


def test_a_script_trains_with_the_package_that_was_sent(pod, pod_run, tmp_path):
    train = tmp_path / "train.py"
    train.write_text("""
import horovod, horovod.torch as hvd, torch
hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
model(torch.ones(1, 2) * hvd.rank()).sum().backward()
optimizer.step()
print("trained by", hvd.size(), "from", horovod.__file__)
""")
    job = pod_run("/usr/bin/python3", train)
    assert job.code == 0, job.err
    assert job.out.count(f"trained by 2 from {pod.cache / build_here()[1]}/lib/hvdrun/python/horovod/__init__.py") == 2, job.out


@needs_the_build_tree("it copies the folders of one")
def test_the_same_build_on_path_is_taken_and_nothing_is_sent(pod, pod_run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(installation() / "lib", copy / "lib")
    (copy / "bin").mkdir()
    shutil.copy(hvdrun_path(), copy / "bin")
    subprocess.run(["strip", copy / "bin" / "hvdrun", copy / "lib" / "libhvd.so"], check=True)  # as packages do
    (pod.path / "hvdrun").symlink_to(copy / "bin" / "hvdrun")
    job = pod_run("printenv", "HVD_RUNTIME")
    assert job.code == 0 and SENT not in job.err and job.out.count(f">:{copy}/lib/libhvd.so") == 2, job.err


def test_another_version_on_path_is_not_used(pod, pod_run):
    script(pod.path / "hvdrun", 'test "$1" = --version && echo 0.0.7 && exit 0; echo used >&2; exit 2\n')
    job = pod_run("--bundle", "never", "true")
    assert job.code == 1 and SENT not in job.err, job.err
    assert re.search(rf"starting the agent: it has hvdrun 0\.0\.7 \({pod.path}/hvdrun\) and this is hvdrun {build_here()[0]}; "
                     r"install .*--bundle auto", job.err), job.err
    job = pod_run("printenv", "HVD_RUNTIME")
    assert job.code == 0 and SENT in job.err and job.out.count(str(pod.cache)) == 2, job.err


def test_another_build_of_the_version_is_used_only_where_nothing_can_be_sent(pod, pod_run):
    """A stand-in that says what another build would, and becomes the agent that was sent before."""
    pod_run("true")
    script(pod.path / "hvdrun",
           f'test "$2" = --build && echo {build_here()[0]} 0123 && exit 0\nexec {pod.cache}/*/bin/hvdrun "$@"\n')
    job = pod_run("--bundle", "never", "echo", "here")
    assert job.code == 0 and job.out.count(">:here") == 2, job.err
    script(pod.path / "uname", "echo riscv64\n")
    (pod.cache / build_here()[1]).rename(pod.cache / "old")
    job = pod_run("echo", "here")
    assert job.code == 0 and SENT not in job.err and job.out.count(">:here") == 2, job.err


def test_several_at_once_into_an_empty_cache(pod, start):
    agent = pod.agent()
    for _ in range(3):
        subprocess.run(["rm", "-rf", pod.cache], check=True)
        jobs = [start("-np", 1, "-H", "pod", "--rsh-agent", agent, "printenv", "HVD_RUNTIME") for _ in range(3)]
        for job in jobs:
            assert job.finish() == 0 and str(pod.cache) in job.out, job.err
        assert entries(pod.cache) == [build_here()[1]]
        assert entries(pod.cache / build_here()[1]) == ["bin", "lib", "used"]


@pytest.mark.parametrize("part", ["bin/hvdrun", "lib/libhvd.so", "lib/hvdrun/python/horovod/__init__.py"])
def test_what_is_damaged_in_the_cache_is_replaced(pod, pod_run, part):
    assert pod_run("true").code == 0
    file = pod.cache / build_here()[1] / part
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    job = pod_run("echo", "here")
    assert job.code == 0 and SENT in job.err and job.out.count(">:here") == 2, job.err
    assert entries(pod.cache) == [build_here()[1]]
    job = pod_run("echo", "here")
    assert job.code == 0 and SENT not in job.err, job.err


def test_bytes_that_do_not_arrive_as_they_were_sent_are_not_run(pod, pod_run):
    script(pod.path / "head", '/usr/bin/head "$@" | tr x y\n')
    job = pod_run("touch", pod.folder / "started")
    assert job.code == 1 and not (pod.folder / "started").exists()
    assert "other bytes came than were sent" in job.err and f"install hvdrun {build_here()[0]} there" in job.err, job.err
    assert entries(pod.cache) == []


def test_a_home_that_cannot_be_written_is_no_hindrance(pod, pod_run):
    pod.before = f"mount -t tmpfs -o ro none {pod.home}"
    job = pod_run("printenv", "HVD_RUNTIME")
    assert job.code == 0 and job.out.count(f">:{pod.folder}/tmp/hvdrun-{os.getuid()}/") == 2, job.err


def test_a_home_from_which_nothing_may_be_run_is_no_hindrance(pod, pod_run):
    pod.before = f"mount -t tmpfs -o noexec none {pod.home}"
    job = pod_run("printenv", "HVD_RUNTIME")
    assert job.code == 0 and job.out.count(f">:{pod.folder}/tmp/hvdrun-{os.getuid()}/") == 2, job.err


def test_a_disk_that_is_full_is_no_hindrance_or_is_named(pod, pod_run):
    pod.before = f"mount -t tmpfs -o size=4m none {pod.home}"
    job = pod_run("printenv", "HVD_RUNTIME")
    assert job.code == 0 and job.out.count(f">:{pod.folder}/tmp/hvdrun-{os.getuid()}/") == 2, job.err
    subprocess.run(["rm", "-rf", *(pod.folder / "tmp").iterdir()], check=True)
    pod.before += "".join(f" && mount -t tmpfs -o size=4m none {place}" for place in (pod.folder / "tmp", "/var/tmp"))
    job = pod_run("true")
    assert job.code == 1 and re.search(not_sent(rf"{pod.cache}: .*No space left on device.*; install"), job.err), job.err


def test_a_folder_in_which_others_may_write_is_not_used(pod, pod_run):
    pod.before = f"mount -t tmpfs -o ro none {pod.home}"
    for place in ("tmp", "var_tmp"):
        folder = pod.folder / place / f"hvdrun-{os.getuid()}"
        folder.mkdir()
        folder.chmod(0o777)
    job = pod_run("true")
    assert job.code == 1 and job.err.count("others may write there") >= 2, job.err


@pytest.mark.parametrize("spoil", ["chown 12345 {file}", "chown 12345 {folder}", "chmod 777 {folder}", "chmod o+w {file}"])
def test_what_strangers_may_have_put_at_our_path_is_not_run(pod, pod_run, spoil):
    """The path of hvdrun on this machine, on a host where somebody else may write to it."""
    file, witness = pathlib.Path(hvdrun_path()), pod.folder / "witness"
    version, build = build_here()
    script(pod.folder / "strangers", f'echo "$*" >>{witness}; test "$2" = --build && echo {version} {build}; exit 3\n')
    pod.before = f"cp {pod.folder}/strangers {file} && chmod 755 {file} && " + spoil.format(file=file, folder=file.parent)
    for sent in (True, False):  # what was sent before is found
        job = pod_run("printenv", "HVD_RUNTIME")
        assert job.code == 0 and job.out.count(str(pod.cache)) == 2, job.err
        assert (SENT in job.err) == sent, job.err
        assert not witness.exists(), witness.read_text()
        assert len(re.findall(rf"host pod: hvdrun does not run {file}, because .*{file.parent}.*; only the user and root may own", job.err)) == 1, job.err
    job = pod_run("--bundle", "never", "true")
    assert job.code == 1 and re.search(rf"starting the agent: hvdrun at {file} is not run, because .*; install hvdrun", job.err), job.err
    assert not witness.exists(), witness.read_text()


@pytest.mark.parametrize("tools, sentence", [
    ({"uname": "echo riscv64"}, r"it is built for \S+ and the host is riscv64"),
    ({"tar": None}, "the host has no tar"),
    ({"sha256sum": None, "shasum": None, "openssl": None}, "the host has no sha256sum"),
])
def test_a_host_to_which_it_cannot_be_sent_is_told_why(pod, pod_run, tools, sentence):
    pod.only_path = True
    for name in ("sh", "id", "ls", "tar", "head", "gzip", "sha256sum", "mv", "mkdir", "rm", "cat", "chmod", "find", "uname", "true"):
        if tools.get(name, "") is not None and name not in tools:
            (pod.path / name).symlink_to(f"/usr/bin/{name}")
    for name, text in tools.items():
        if text is not None:
            script(pod.path / name, text + "\n")
    job = pod_run("true")
    assert job.code == 1 and SENT not in job.err, job.err
    assert re.search(not_sent(f"{sentence}; install hvdrun {build_here()[0]} there"), job.err), job.err


def test_a_host_without_gzip_gets_it_as_it_is_and_others_hash_it(pod, pod_run):
    pod.only_path = True
    for name in ("sh", "id", "ls", "tar", "head", "openssl", "mv", "mkdir", "rm", "cat", "chmod", "uname"):
        (pod.path / name).symlink_to(f"/usr/bin/{name}")
    job = pod_run("/usr/bin/printenv", "HVD_RUNTIME")
    assert job.code == 0 and job.out.count(str(pod.cache)) == 2, job.err


@pytest.mark.parametrize("tools, reason", [
    (("unshare", "mount", "gzip"), r"the command 'tar' was not found in PATH \(\S+\)"),
    (("unshare", "mount", "tar"), r"[^;]*gzip: not found"),
])
def test_a_machine_that_cannot_pack_hvdrun_says_why(run, pod, tools, reason):
    here = pod.folder / "here"
    here.mkdir()
    for tool in tools:
        (here / tool).symlink_to(f"/usr/bin/{tool}")
    job = run("-np", 1, "-H", "pod", "--rsh-agent", pod.agent(), "true", env={"PATH": str(here)})
    assert job.code == 1 and re.search(
        rf"hvdrun cannot be sent there: tar cannot pack it here: {reason}; install GNU tar and gzip here, or install hvdrun there",
        job.err), job.err


def test_what_was_not_used_for_a_month_goes_when_something_new_comes(pod, pod_run):
    assert pod_run("true").code == 0
    cache, month = pod.cache, 31 * 24 * 3600
    for name, age in (("a" * 32, month), ("b" * 32, 0), ("new.1", month), ("new.2", 0)):
        (cache / name).mkdir()
        used = cache / name / "used"
        used.touch()
        for path in (used, cache / name):
            os.utime(path, (path.stat().st_mtime - age,) * 2)
    (cache / "theirs" / "deep").mkdir(parents=True)  # of somebody else
    for name in ("used", "new.3"):
        (cache / "theirs" / "deep" / name).touch()
        os.utime(cache / "theirs" / "deep" / name, (used.stat().st_mtime - 2 * month,) * 2)
    subprocess.run(["rm", "-rf", cache / build_here()[1]], check=True)
    assert pod_run("true").code == 0
    assert entries(cache) == sorted([build_here()[1], "b" * 32, "new.2", "theirs"])
    assert entries(cache / "theirs" / "deep") == ["new.3", "used"]


# ---- over SSH


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rig")
    for name in ("cache", "tmp"):
        (folder / name).mkdir()
    rig = HostRig(folder, 3, environment=f"XDG_CACHE_HOME={folder}/cache TMPDIR={folder}/tmp")
    for host in rig.hosts:
        for place in (installation() / "bin", installation() / "lib", folder / "cache"):
            host.run("mount", "-t", "tmpfs", "none", place)
    yield rig
    rig.down()


@pytest.mark.parametrize("client", ["auto", "program"])
def test_hosts_without_hvdrun_are_sent_it_over_ssh_all_at_once(run, rig, client):
    for host in rig.hosts:
        host.run("rm", "-rf", rig.folder / "cache" / "hvdrun")
    for sent in (3, 0):
        job = run("--ssh-client", client, "-np", 3, "-H", "hvd1,hvd2,hvd3", "--verbose", *worker("init", "sum", "shutdown"),
                  program=rig.on_head(hvdrun_path()), env={"PYTHONPATH": ""})
        assert job.code == 0 and job.out.count("sum 6") == 3, job.err
        assert len(re.findall(rf"host hvd\d: {SENT}\n", job.err)) == sent, job.err
        rig.nothing_left()


@pytest.fixture
def slow_host(rig):
    """8 Mbit/s."""
    host = rig.hosts[0]
    host.run("rm", "-rf", rig.folder / "cache" / "hvdrun")
    queue = ["dev", f"vh{host.number}", "root"]
    subprocess.run(rig.on_head("tc", "qdisc", "add", *queue, "tbf", "rate", "8mbit", "burst", "32k", "limit", "64k"), check=True)
    yield host
    subprocess.run(rig.on_head("tc", "qdisc", "del", *queue), check=True)


def test_a_slow_transfer_has_time_as_long_as_it_moves(run, rig, slow_host):
    job = run("-np", 1, "-H", "hvd1", "--stage-timeouts", "bundle=6,exec=6", "true", program=rig.on_head(hvdrun_path()))
    assert job.code == 0 and "hvdrun is being sent to hvd1" in job.err, job.err
    rig.nothing_left()


@pytest.mark.parametrize("client", ["auto", "program"])
def test_a_transfer_that_stands_ends_the_job(start, rig, slow_host, client):
    job = start("--ssh-client", client, "-np", 1, "-H", "hvd1", "--stage-timeouts", "bundle=2", "true",
                program=rig.on_head(hvdrun_path()))
    assert b"hvdrun is being sent to hvd1" in job.process.stderr.readline()
    slow_host.cut()
    try:
        assert job.finish() == 1
        assert "receiving hvdrun: it took longer than 2 s" in job.err and "--stage-timeouts bundle=N" in job.err, job.err
    finally:
        slow_host.join()
    slow_host.kill_sshd()  # it would wait for those that do not come back
    rig.nothing_left()


def test_hvdrun_that_is_killed_while_it_sends_leaves_nothing(start, rig, slow_host):
    job = start("-np", 1, "-H", "hvd1", "true", program=rig.on_head(hvdrun_path()))
    assert b"hvdrun is being sent to hvd1" in job.process.stderr.readline()
    kill(job.pid)
    rig.nothing_left()
    assert slow_host.run("ls", "-A", rig.folder / "cache" / "hvdrun") == ""


@pytest.mark.long
def test_py_spy_travels_with_hvdrun_where_it_lies_beside_it(run, pod, tmp_path):
    """As pip installs both; the agent finds it there though it is not on PATH."""
    copy = tmp_path / "copy"
    shutil.copytree(installation() / "lib", copy / "lib", symlinks=True)
    (copy / "bin").mkdir()
    shutil.copy(hvdrun_path(), copy / "bin")
    line = "/home/ann/train.py:7"
    script(copy / "bin" / "py-spy", f"printf 'Process %s: python\\nThread %s (idle): \"MainThread\"\\n    step ({line})\\n' $5 $5")
    pod.before = f"mount -t tmpfs none {copy} || exit 1"
    job = run("-np", 1, "-H", "pod:1", "--rsh-agent", pod.agent(), "--verbose", "sh", "-c", "$(dirname $HVD_RUNTIME)/../bin/hvdrun dump --stacks",
              program=[copy / "bin" / "hvdrun"])
    assert job.code == 0 and SENT in job.err, job.err
    kept = next(pod.cache.iterdir())
    assert (kept / "bin" / "py-spy").read_text() == (copy / "bin" / "py-spy").read_text()
    assert f"step ({line})" in job.out, job.out + job.err
