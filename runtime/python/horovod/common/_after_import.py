"""Calls a function once a module has been imported, in whatever place of the script."""

import importlib.machinery
import sys

_expected = {}  # name of a module -> functions


class _Loader:
    """Loads as the module's own loader does."""

    def __init__(self, own, functions):
        self._own = own
        self._functions = functions

    def create_module(self, spec):
        return self._own.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._own
        self._own.exec_module(module)
        for function in self._functions:
            function()


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        functions = _expected.pop(name, None)
        if functions is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, functions)
        return spec


def call(name, function):
    """Has the function called once the module of this name, which is not there yet, is there."""
    functions = _expected.setdefault(name, [])
    if function not in functions:
        functions.append(function)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
