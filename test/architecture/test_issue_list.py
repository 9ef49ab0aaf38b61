"""test/issues/README.md names tests that exist."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "test" / "issues" / "README.md"


def absent(text, folder):
    """The files and tests that a text names and that are not below the folder; `path::test_x_...` is any with that beginning."""
    found = []
    for path, test in re.findall(r"`([\w/]+\.(?:py|cc|pml))(?:::(\w+))?", text):
        file = folder / path
        if not file.is_file():
            found.append(path)
        elif test and not re.search(rf"def {test}", file.read_text()):
            found.append(f"{path}::{test}")
    return found


def test_the_list_names_what_exists():
    assert absent(LIST.read_text(), ROOT / "test") == []


def test_the_rule_refuses(tmp_path):
    (tmp_path / "a.py").write_text("def test_R1_x():\n    pass\n")
    text = "`a.py::test_R1_x`, `a.py::test_R1_...`, `a.py::test_R2_...`, `b.cc`, `b.py::test_R1_x`"
    assert absent(text, tmp_path) == ["a.py::test_R2_", "b.cc", "b.py"]
