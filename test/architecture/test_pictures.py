"""The pictures are made from the texts beside them."""
import importlib.util
import xml.etree.ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("pictures", ROOT / "scripts" / "pictures.py")
pictures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pictures)
TEXTS = sorted(pictures.FOLDER.glob("*.txt"))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)
def test_F25_pictures_are_up_to_date_and_embedded(text):
    made = pictures.Picture(text.read_text()).svg()
    assert text.with_suffix(".svg").read_text() == made, "run scripts/pictures.py"
    xml.etree.ElementTree.fromstring(made)
    assert "prefers-color-scheme: dark" in made
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    assert any(f"pictures/{text.stem}.svg)" in page.read_text() for page in pages)


def test_F25_there_are_pictures_of_a_job_and_of_a_tensor():
    assert {"job", "tensor"} <= {text.stem for text in TEXTS}


def test_an_element_that_is_none_is_refused():
    with pytest.raises(ValueError, match="line 2: 'circle' is not an element"):
        pictures.Picture("size 1 1\ncircle a 0 0\n")


def test_lines_end_at_the_edge_of_a_box():
    drawn = pictures.Picture("size 10 2\nbox a 0 0 2 2 A\nbox b 8 0 2 2 <B>\narrow a b x\n").svg()
    assert 'x1="32.0" y1="16.0" x2="128.0" y2="16.0"' in drawn and "&lt;B&gt;" in drawn
