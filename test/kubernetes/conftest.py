"""The tests of a tier, as test/tiers.py chooses them."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tiers import pytest_collection_modifyitems  # noqa: E402, F401


def pytest_configure(config):
    config.addinivalue_line("markers", "soak: only in the tier soak")
