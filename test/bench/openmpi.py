"""Open MPI as the peer: its settings, and whether each is really in force on this machine."""
import os
import re
import shutil
from dataclasses import dataclass, field

import processes

# As root, mpirun starts only with both of these.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


@dataclass
class Setting:
    name: str
    flags: list = field(default_factory=list)
    proof: str = ""  # what the verbose output of a job holds when the setting is in force


def _tuned(name, algorithm):
    return Setting(f"tuned {name}", ["--mca", "coll_tuned_use_dynamic_rules", "1",
                                     "--mca", "coll_tuned_allreduce_algorithm", str(algorithm)],
                   rf"coll_tuned_allreduce_algorithm={name.replace(' ', '_')} \(environment\)")


# Choosing adapt needs tuned out of the way: adapt has reduce and broadcast, of which "basic" makes the allreduce,
# while tuned has an allreduce of its own that would never reach adapt.
SETTINGS = [
    Setting("default", [], r"selecting\s+tuned, priority\s+\d+, Enabled"),
    Setting("no CMA", ["--mca", "btl_vader_single_copy_mechanism", "none"],
            r"btl_vader_single_copy_mechanism=none \(environment\)"),
    Setting("coll sm", ["--mca", "coll_sm_priority", "100"], r"selecting\s+sm, priority 100, Enabled"),
    Setting("coll adapt", ["--mca", "coll_adapt_priority", "100", "--mca", "coll", "^tuned"],
            r"selecting\s+adapt, priority 100, Enabled"),
    Setting("coll han", ["--mca", "coll_han_priority", "100"], r"selecting\s+han, priority 100, Enabled"),
    _tuned("recursive doubling", 3),
    _tuned("ring", 4),
    _tuned("rabenseifner", 6),
]


def installed(bench_dir):
    return (shutil.which("mpirun") is not None
            and all(os.access(os.path.join(bench_dir, p), os.X_OK) for p in ("mpi_perf", "init_mpi")))


def version():
    outcome = processes.run(["mpirun", "--version"], 20, env=ENVIRONMENT)
    found = re.search(r"Open MPI\)? v?([\d.]+\S*)", outcome.stdout)
    return found.group(1) if found else "unknown"


def command(ranks, program, flags=(), binding=()):
    return ["mpirun", *flags, *binding, "--oversubscribe", "-np", str(ranks), *program]


def in_force(setting, ranks, bench_dir):
    """Starts a small job that says which components it chose, and looks."""
    show = ["--mca", "coll_base_verbose", "20", "--mca", "mpi_show_mca_params", "all"]
    program = [os.path.join(bench_dir, "init_mpi")]
    outcome = processes.run(command(ranks, program, [*setting.flags, *show]), 30, env=ENVIRONMENT)
    return outcome.ok and re.search(setting.proof, outcome.stdout + outcome.stderr) is not None
