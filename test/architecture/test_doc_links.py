"""Links between the pages lead somewhere, and the guide lists every page."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(ROOT.glob("docs/*.md")) + sorted(ROOT.glob("*.md"))


def prose(text):
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


def anchors(text):
    """The anchors that headings make, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(text), re.M)
    return {re.sub(r"[^\w -]", "", title.replace("\\_", "_").lower()).replace(" ", "-") for title in titles}


def broken(page, text):
    """The links of a page that lead nowhere."""
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            found.append(target)
        elif anchor and anchor not in anchors(text if file == page else file.read_text()):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert broken(page, page.read_text()) == []


def test_F21_the_guide_lists_every_page():
    listed = set(re.findall(r"^\| \[([\w-]+\.md)\]", (ROOT / "docs" / "README.md").read_text(), re.M))
    assert listed == {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"}


def test_F21_there_are_pages_on_performance_and_frequent_questions():
    assert {"performance.md", "faq.md", "api.md"} <= {page.name for page in PAGES}


def test_the_rule_refuses(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# A b\n[x](b.md) [y](#no) [z](#a-b) [w](https://x.y)\n```\n[v](c.md)\n```\n")
    assert broken(page, page.read_text()) == ["b.md", "#no"]
