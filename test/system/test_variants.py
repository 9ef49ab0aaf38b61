"""test/variants.py: every variant of a test belongs to a part, and each part has one of each test that is not long."""

import collections

import pytest
from variants import of_part, of_the_long, pytest_collection_modifyitems

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


class Item(collections.namedtuple("Item", "nodeid marks", defaults=((),))):
    def get_closest_marker(self, name):
        return name if name in self.marks else None


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_two_parts_have_all_long_tests(count):
    tests = list(range(count))
    assert sorted(of_the_long(tests, 6) + of_the_long(tests, 7)) == tests


def test_every_other_long_test_is_deselected(monkeypatch):
    ids = ["a.py::one", "a.py::two[1]", "a.py::two[2]", "a.py::three", "a.py::short"]
    seen = []
    for part in range(4):
        monkeypatch.setenv("HVD_TEST_PARTS", "4")
        monkeypatch.setenv("HVD_TEST_PART", str(part))
        items = [Item(nodeid, () if nodeid.endswith("short") else ("long",)) for nodeid in ids]
        pytest_collection_modifyitems(Config(), items)
        seen.append([item.nodeid for item in items])
    assert seen == [[ids[0], ids[3], ids[4]], [ids[1], ids[4]], [ids[0], ids[3], ids[4]], [ids[2], ids[4]]]


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
