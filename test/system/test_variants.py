"""test/variants.py: every variant of a test belongs to a part, and each part has one of each test."""

import collections

import pytest
from variants import of_part, pytest_collection_modifyitems

PARTS = 4


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
def test_the_parts_together_have_all_variants_and_each_has_one(count):
    parts = [of_part(list(range(count)), part, PARTS) for part in range(PARTS)]
    assert set().union(*parts) == set(range(count))
    assert all(parts)
    assert sum(map(len, parts)) == max(count, PARTS)


class Config:
    def __init__(self):
        self.hook, self.deselected = self, []

    def pytest_deselected(self, items):
        self.deselected += [item.nodeid for item in items]


Item = collections.namedtuple("Item", "nodeid")


def test_the_others_are_deselected_and_the_order_stays(monkeypatch):
    ids = ["a.py::one[2-x]", "a.py::one[3-x]", "a.py::other", "a.py::one[4-y[z]]", "b.py::one[2-x]"]
    for setting, kept in (({}, ids), ({"HVD_TEST_PARTS": "3", "HVD_TEST_PART": "1"}, [ids[1], ids[2], ids[4]])):
        for name in ("HVD_TEST_PARTS", "HVD_TEST_PART"):
            monkeypatch.delenv(name, raising=False)
        for name, value in setting.items():
            monkeypatch.setenv(name, value)
        items, config = [Item(nodeid) for nodeid in ids], Config()
        pytest_collection_modifyitems(config, items)
        assert [item.nodeid for item in items] == kept
        assert sorted(kept + config.deselected) == sorted(ids)
