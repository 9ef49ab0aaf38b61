"""Every flag of horovodrun works under hvdrun, or says in one sentence what replaces it or why it has no effect."""

import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import hvdrun_path, needs_the_build_tree

# As its help lists them, each with a value that works.
WORK = """
-np=2 --num-proc=2 --disable-cache --start-timeout=60 --network-interfaces=lo --network-interface=lo --output-filename=logs --verbose
-p=22 --ssh-port=22 --fusion-threshold-mb=64 --min-np=1 --min-num-proc=1 --elastic-timeout=60
--timeline-filename=t.json --timeline-mark-cycles --no-timeline-mark-cycles --no-stall-check --stall-check
--stall-check-warning-time-seconds=30 --stall-check-shutdown-time-seconds=0 --gloo-timeout-seconds=30 --log-level=INFO
--log-without-timestamp --log-hide-timestamp --no-log-hide-timestamp -prefix-timestamp --prefix-output-with-timestamp
-H=localhost:2 --hosts=localhost:2 --host-discovery-script=true --gloo
--no-hierarchical-allreduce --no-hierarchical-allgather --no-torus-allreduce --slots-per-host=2 --slots=2
-hostfile=/dev/stdin --hostfile=/dev/stdin --config-file=/dev/null -i=key --ssh-identity-file=key --tcp --no-mpi-threads-disable
--autotune --no-autotune --autotune-log-file=log --autotune-warmup-samples=3 --autotune-steps-per-sample=10
--autotune-bayes-opt-max-samples=20
""".split()
NO_EFFECT = """
--cycle-time-ms=5 --cache-capacity=0 --hierarchical-allreduce --hierarchical-allgather --torus-allreduce --num-nccl-streams=2
--thread-affinity=1 --mpi-threads-disable --mpi-args=x --binding-args=x --autotune-gaussian-process-noise=0.8 --log-with-timestamp --max-np=2 --max-num-proc=2 --reset-limit=3 --blacklist-cooldown-range=10,100
""".split()


def words(flag):
    """As a person types it: `--flag value`; two words for a range."""
    name, _, value = flag.partition("=")
    return [name, *value.split("," if "range" in name else None)]


@pytest.mark.parametrize("flag", WORK)
def test_a_flag_works(run, flag):
    np = [] if flag.endswith(("np=2", "--num-proc=2")) and "-m" not in flag else ["-np", 2]
    job = run(*np, *words(flag), "--print-config")
    assert job.code == 0 and not job.err, job.err


@pytest.mark.parametrize("flag", NO_EFFECT)
def test_a_flag_without_effect_says_so_in_one_sentence(run, flag):
    job = run("-np", 1, *words(flag), "true")
    assert job.code == 0 and job.err.count("\n") == 1, job.err
    assert re.search(rf"{words(flag)[0]} has no effect(: | without )[\w-].*\w", job.err), job.err


@pytest.mark.parametrize("flags", [["-v"], ["--version"], ["-h"], ["--help"], ["-cb"], ["--check-build"], ["-np", "2", "-cb"]])
def test_a_flag_that_asks_is_answered(run, flags):
    job = run(*flags)
    assert job.code == 0 and job.out and not job.err, job.err


@pytest.mark.parametrize("path", [None, "/nowhere"])
def test_check_build_and_the_flags_agree_about_controllers(run, path):
    env = {"PATH": path} if path else None
    text = run("--check-build", env=env).out.split("Available Controllers:")[1].split("Available")[0]
    built = {line.strip()[4:]: "[X]" in line for line in text.splitlines() if line.strip()}
    assert built["hvdrun"] and run("-np", 1, "--gloo", "/bin/true", env=env).code == 0
    assert not built["MPI"] or run("-np", 1, "--mpi", "/bin/true", env=env).code == 0
    assert not path or not built["MPI"]


@needs_the_build_tree("it copies the folders of one")
def test_check_build_knows_no_mpi_where_the_plug_in_is_missing(tmp_path):
    """As hvd.mpi_built(): a copy of the installation without libhvd_mpi.so."""
    installed = pathlib.Path(hvdrun_path()).resolve().parents[1]
    copy = tmp_path / "installed"
    shutil.copytree(installed / "bin", copy / "bin", symlinks=True)
    shutil.copytree(installed / "lib", copy / "lib", symlinks=True, ignore=shutil.ignore_patterns("libhvd_mpi*", "*.a"))
    text = subprocess.run([copy / "bin" / "hvdrun", "--check-build"], capture_output=True, text=True, timeout=60).stdout
    assert "[X] hvdrun" in text and "[X] MPI" not in text, text


def test_every_flag_of_horovodrun_is_here():
    """The flags of its help and parser, but for those that suites of their own name (test_hvdrun_mpi.py, test_autotune.py)."""
    flags = set("""-h --help -v --version -np --num-proc -cb --check-build --disable-cache --start-timeout --network-interfaces
        --network-interface --output-filename --verbose --config-file -p --ssh-port -i --ssh-identity-file --fusion-threshold-mb
        --cycle-time-ms --cache-capacity --hierarchical-allreduce --no-hierarchical-allreduce --hierarchical-allgather
        --no-hierarchical-allgather --torus-allreduce --no-torus-allreduce --autotune --no-autotune --autotune-log-file
        --autotune-warmup-samples --autotune-steps-per-sample --autotune-bayes-opt-max-samples --autotune-gaussian-process-noise
        --min-np --min-num-proc --max-np --max-num-proc --slots-per-host --elastic-timeout --reset-limit --blacklist-cooldown-range
        --timeline-filename --timeline-mark-cycles --no-timeline-mark-cycles --no-stall-check --stall-check
        --stall-check-warning-time-seconds --stall-check-shutdown-time-seconds --mpi-threads-disable --no-mpi-threads-disable
        --mpi-args --tcp --binding-args --num-nccl-streams --thread-affinity --gloo-timeout-seconds --log-level --log-with-timestamp
        --log-without-timestamp --log-hide-timestamp --no-log-hide-timestamp -prefix-timestamp --prefix-output-with-timestamp
        -H --hosts -hostfile --hostfile --host-discovery-script --gloo --mpi --jsrun""".split())
    here = {flag.partition("=")[0] for flag in WORK + NO_EFFECT}
    asking = {"-h", "--help", "-v", "--version", "-cb", "--check-build"}
    assert flags - here - asking == {"--mpi", "--jsrun"}
