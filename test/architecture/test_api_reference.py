"""docs/api.md is made from the docstrings, and the docstrings are complete."""
import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("api_reference", ROOT / "scripts" / "api_reference.py")
api_reference = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(api_reference)


def exported(package):
    """__all__ of a package of horovod."""
    tree = ast.parse((api_reference.PACKAGE / package / "__init__.py").read_text())
    assigned = [n for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]
    return ast.literal_eval(assigned[0].value)


def test_every_public_function_describes_its_arguments():
    assert api_reference.incomplete() == []


def test_the_reference_is_up_to_date():
    assert api_reference.PAGE.read_text() == api_reference.page(), "run scripts/api_reference.py"


@pytest.mark.parametrize("package", ["torch", "numpy"])
def test_the_reference_has_every_exported_name(package):
    page = api_reference.page().replace("\\_", "_")
    values = {"Average", "Sum", "Adasum", "Min", "Max", "Product", "elastic", "checkpoint"}
    missing = [name for name in exported(package)
               if f"### hvd.{name}\n" not in page and f"### {name}\n" not in page and f"`hvd.{name}`" not in page]
    assert set(missing) <= values, missing


@pytest.mark.parametrize("source, fault", [
    ("def f(a): pass", "m.py: f has no docstring"),
    ('def f(a, b=1):\n    """F.\n\n    Args:\n        a: A.\n    """', "m.py: f does not describe b"),
    ('def f():\n    """F.\n\n    Args:\n        a: A.\n    """', "m.py: f describes a, which it does not take"),
    ('class C:\n    """C."""\n    def __init__(self, *args): pass', "m.py: C does not describe args"),
    ('def f():\n    """F."""', "m.py: not in SECTIONS of scripts/api_reference.py"),
])
def test_the_rule_refuses(tmp_path, monkeypatch, source, fault):
    (tmp_path / "m.py").write_text(source)
    monkeypatch.setattr(api_reference, "PACKAGE", tmp_path)
    sections = [] if "SECTIONS" in fault else [("T", "S", "", [("m.py", None)])]
    monkeypatch.setattr(api_reference, "SECTIONS", sections)
    assert api_reference.incomplete() == [fault]
