"""A part of the tests, for a machine that has not the time for all: HVD_TEST_PARTS=4 HVD_TEST_PART=1 runs every fourth variant of
a parametrized test, from the second one on, and at least one, and every other one of the tests that are marked as long. All other
tests without parameters always run."""

import collections
import os


def of_part(variants, part, parts):
    """The variants of one test that belong to a part."""
    first = part % min(parts, len(variants))
    return variants[first::parts]


def of_the_long(tests, part):
    """The long tests that belong to a part."""
    return tests[part % 2::2]


def is_long(variants):
    return any(item.get_closest_marker("long") for item in variants)


def pytest_collection_modifyitems(config, items):
    parts = int(os.environ.get("HVD_TEST_PARTS", "1"))
    if parts == 1:
        return
    part = int(os.environ["HVD_TEST_PART"])
    tests = collections.defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    long = [name for name, variants in tests.items() if is_long(variants)]
    for name in set(long).difference(of_the_long(long, part)):
        del tests[name]
    kept = {item for name, variants in tests.items()
            for item in (of_part(variants, part // 2, max(parts // 2, 1)) if name in long else of_part(variants, part, parts))}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
