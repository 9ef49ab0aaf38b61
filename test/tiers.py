"""The tests of a tier (scripts/test.sh): HVD_TEST_TIER=core, ci, newest or soak. The choice depends on the tier and the names of the tests
alone, never on the date; without the variable, as in `pytest test/system/test_run.py -k name`, nothing is left out.

core    of test/system the files in CORE, no test marked `long`; of a parametrized test that starts jobs, two variants
ci      all files but those in SOAK, no test marked `soak`; of such a test, enough variants that each value of each parameter occurs; of a long one, one
newest  what CI runs with a second PyTorch: as core, without the tests marked `below_torch`, which ci has run with the first one
soak    everything, also the tests in test/quarantine.txt
"""

import collections
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))

# One or more files for each promise that users rely on: a start, output, an end, a death, hosts, elastic jobs, pages.
CORE = """test_bad_input test_completion test_damaged_page test_elastic test_ends test_environment test_exit_paths test_first_cause
    test_gpus test_hosts test_interrupts test_live test_output test_readme test_run test_ssh_hosts test_stdin test_timeline
    test_tiers""".split()
CORE_VARIANTS = 2
# Minutes each, and what they find a shorter test finds most of the time: random injuries, storms, benchmarks' smoke tests, pip.
SOAK = """test_bench test_bench_hosts test_chaos test_data_service test_elastic_storm test_elastic_storm_hosts
    test_install test_leaks test_silent_scripts test_soak test_torch_matrix""".split()
# They compute in the process of pytest or in a world that is there: a variant costs milliseconds.
CHEAP = "test_optimizer test_package test_runner test_runner_function test_tiers test_world_of_one".split()
# Open MPI's ranks compute while they wait: one such job at a time.
SPINNING = ["test_mpi_worlds"]


def quarantined(path=os.path.join(HERE, "quarantine.txt")):
    """{name of a test: why it is there}; a line is `DATE file.py::test_name REASON`."""
    found = {}
    with open(path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                date, name, reason = line.split(None, 2)
                found[name] = "since {}: {}".format(date, reason.strip())
    return found


def covering(variants, seed):
    """Few of the variants, each {parameter: value}, among which each value of each parameter occurs; indices in their order. The
    seed decides between equals, so that not all tests meet the same combinations."""
    missing = {(name, repr(value)) for variant in variants for name, value in variant.items()}
    order = list(range(len(variants)))
    random.Random(seed).shuffle(order)
    chosen = []
    while missing:
        best = max(order, key=lambda index: len(missing.intersection(pairs(variants[index]))))
        missing -= pairs(variants[best])
        chosen.append(best)
    return sorted(chosen or order[:1])


def pairs(variant):
    return {(name, repr(value)) for name, value in variant.items()}


def of_tier(tier, file, name, variants, long=False):
    """Indices of the variants that a tier runs of a test; `file` is the name of its module."""
    if tier == "soak" or len(variants) == 1 or file in CHEAP:
        return list(range(len(variants)))
    chosen = covering(variants, name)
    most = 1 if long else CORE_VARIANTS if tier in ("core", "newest") else len(chosen)
    return sorted(random.Random(name).sample(chosen, min(most, len(chosen))))


def module_of(item):
    return os.path.splitext(os.path.basename(item.nodeid.partition("::")[0]))[0]


def name_of(item):
    """test_run.py::test_name, without parameters."""
    path, _, name = item.nodeid.partition("[")[0].partition("::")
    return "{}::{}".format(os.path.basename(path), name)


def parameters_of(item):
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def left_out(item, tier, quarantine):
    """Whether a tier leaves out all variants of the test."""
    if tier == "soak":
        return False
    if module_of(item) in SOAK or name_of(item) in quarantine or item.get_closest_marker("soak") is not None:
        return True
    if tier == "newest" and item.get_closest_marker("below_torch") is not None:
        return True
    return tier in ("core", "newest") and (is_long(item) or in_system(item) and module_of(item) not in CORE)


def in_system(item):
    return "test/system/" in item.nodeid or os.path.basename(os.path.dirname(str(item.path))) == "system"


def is_long(item):
    return item.get_closest_marker("long") is not None


def chosen(items, tier, quarantine):
    tests = collections.OrderedDict()
    for item in items:
        if not left_out(item, tier, quarantine):
            tests.setdefault(name_of(item), []).append(item)
    kept = set()
    for name, variants in tests.items():
        parameters = [parameters_of(variant) for variant in variants]
        indices = of_tier(tier, module_of(variants[0]), name, parameters, any(is_long(variant) for variant in variants))
        kept.update(variants[index] for index in indices)
    return [item for item in items if item in kept]


def group_of(item):
    """Tests of one group run one after the other in one process: those that share hosts or a world. None: wherever there is room."""
    shared = getattr(item, "fixturenames", ())
    if "rig" in shared or module_of(item) in SPINNING:
        return module_of(item)
    if "in_world" in shared or "shared" in shared:
        ranks, hosts, gpus = world_of(item)
        return "world of {} on {}{}".format(ranks, hosts or 1, " with GPUs" if gpus else "")
    return None


def turn_of(item):
    """The groups first, then the long tests: no process is left alone with one of them, and a world starts once."""
    return group_of(item) or "~", not is_long(item)


def world_of(item):
    """(ranks, hosts, gpus) of the world in which a test of test/python runs: its parameters, else those of its marker `world`; hosts
    may be None."""
    parameters, marker = parameters_of(item), item.get_closest_marker("world")
    named = dict(zip(("ranks", "hosts", "gpus"), marker.args), **marker.kwargs) if marker else {}
    named.update({name: value for name, value in parameters.items() if name in ("ranks", "hosts")})
    return named["ranks"], named.get("hosts"), named.get("gpus", False)


def pytest_collection_modifyitems(config, items):
    tier = os.environ.get("HVD_TEST_TIER")
    if tier:
        kept = chosen(items, tier, quarantined())
        left = set(items).difference(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = kept
    if config.pluginmanager.hasplugin("xdist"):
        import pytest
        for item in items:
            group = group_of(item)
            if group:
                item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=turn_of)
