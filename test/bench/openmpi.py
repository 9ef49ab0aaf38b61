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


def _tuned(name, algorithm, collective="allreduce"):
    return Setting(f"tuned {name}", ["--mca", "coll_tuned_use_dynamic_rules", "1",
                                     "--mca", f"coll_tuned_{collective}_algorithm", str(algorithm)],
                   rf"coll_tuned_{collective}_algorithm={name.replace(' ', '_')} \(environment\)")


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

# Of the other collectives of two ranks: the ways of tuned that differ there.
SETTINGS_OF = {
    "broadcast": [*SETTINGS[:3], _tuned("basic linear", 1, "bcast"), _tuned("pipeline", 3, "bcast"), _tuned("binomial", 6, "bcast")],
    "allgather": [*SETTINGS[:2], _tuned("linear", 1, "allgather"), _tuned("two proc", 6, "allgather")],
    "alltoall": [*SETTINGS[:2], _tuned("linear", 1, "alltoall"), _tuned("pairwise", 2, "alltoall"), _tuned("two proc", 5, "alltoall")],
    "reducescatter": [*SETTINGS[:2], _tuned("recursive halving", 3, "reduce_scatter_block"),
                      _tuned("basic linear", 1, "reduce_scatter_block")],
}
SCOUT_MARGIN = 1.5  # a setting goes on for the sizes at which it came so near to the best


def installed(bench_dir):
    return (shutil.which("mpirun") is not None
            and all(os.access(os.path.join(bench_dir, p), os.X_OK) for p in ("mpi_perf", "init_mpi")))


def version():
    outcome = processes.run(["mpirun", "--version"], 20, env=ENVIRONMENT)
    found = re.search(r"Open MPI\)? v?([\d.]+\S*)", outcome.stdout)
    return found.group(1) if found else "unknown"


def command(ranks, program, flags=(), binding=()):
    return ["mpirun", *flags, *binding, "--oversubscribe", "-np", str(ranks), *program]


_in_force = {}  # (flags, ranks) -> whether they were found in force before


def in_force(setting, ranks, bench_dir):
    """Starts a small job that says which components it chose, and looks; once for each setting."""
    key = (*setting.flags, ranks)
    if key not in _in_force:
        _in_force[key] = _look(setting, ranks, bench_dir)
    return _in_force[key]


def _look(setting, ranks, bench_dir):
    show = ["--mca", "coll_base_verbose", "20", "--mca", "mpi_show_mca_params", "all"]
    program = [os.path.join(bench_dir, "init_mpi")]
    outcome = processes.run(command(ranks, program, [*setting.flags, *show]), 30, env=ENVIRONMENT)
    return outcome.ok and re.search(setting.proof, outcome.stdout + outcome.stderr) is not None


def settings_in_force(ranks, bench_dir, collective="allreduce"):
    """(settings worth a try, names of those that do not come into force here)."""
    known = SETTINGS if collective == "allreduce" else SETTINGS_OF[collective]
    found = [setting for setting in known if in_force(setting, ranks, bench_dir)]
    return found, [setting.name for setting in known if setting not in found]


def worth_all_rounds(found, margin=SCOUT_MARGIN):
    """Name of a setting -> the keys for which it goes on, of name -> {key: time} of one run of each: where it came near to the best.
    The default goes on for all."""
    def best(key):
        return min(times[key] for times in found.values())
    return {name: [key for key in times if name == "default" or times[key] <= margin * best(key)] for name, times in found.items()}
