"""A part of the variants of each test, for a machine that has not the time for all: HVD_TEST_PARTS=4 HVD_TEST_PART=1 runs every
fourth variant of a parametrized test, from the second one on, and at least one. Tests without parameters always run."""

import collections
import os


def of_part(variants, part, parts):
    """The variants of one test that belong to a part."""
    first = part % min(parts, len(variants))
    return variants[first::parts]


def pytest_collection_modifyitems(config, items):
    parts = int(os.environ.get("HVD_TEST_PARTS", "1"))
    if parts == 1:
        return
    tests = collections.defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    kept = {item for variants in tests.values() for item in of_part(variants, int(os.environ["HVD_TEST_PART"]), parts)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
