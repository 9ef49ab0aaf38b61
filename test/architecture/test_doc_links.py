"""Links between the pages lead somewhere, what they name as files are files, and the guide lists every page."""
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


def test_the_source_layout_lists_every_folder():
    listed = re.findall(r"^\| \[`([\w]+)/`\]", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    assert sorted(listed) == sorted(path.parent.name for path in ROOT.glob("*/README.md")
                                    if not path.parent.name.startswith(("build", ".")))


OTHERS = {"cuda.h", "mpi.h"}  # headers of other projects
FOLDERS = ["autotune", "cmd", "configs", "discovery", "examples", "launcher", "runtime", "scripts", "test", "timeline"]


def lost_files(page, text, files):
    """Names of files in a page that the project has not: `x/y.h`, from the page's folder, from the root, or the end of a path."""
    names = set(re.findall(r"`([\w./-]+\.(?:h|cc|cu|md|py|sh|pml))`", text)) - OTHERS
    known = lambda name: (page.parent / name).exists() or any(("/" + file).endswith("/" + name) for file in files)
    return sorted(name for name in names if not known(name))


def test_pages_of_folders_name_files_that_exist():
    files = [str(path.relative_to(ROOT)) for folder in [*FOLDERS, "docs"] for path in (ROOT / folder).rglob("*.*")]
    pages = [page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md"))]
    assert len(pages) > 30
    assert {str(page.relative_to(ROOT)): lost for page in pages if (lost := lost_files(page, page.read_text(), files))} == {}


def test_the_guide_lists_every_page():
    listed = set(re.findall(r"^\| \[([\w-]+\.md)\]", (ROOT / "docs" / "README.md").read_text(), re.M))
    assert listed == {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"}


def test_six_errands_of_a_newcomer_are_one_link_from_the_readme():
    readme = (ROOT / "README.md").read_text()
    for page in ("install.md", "several-hosts.md", "slurm.md", "hangs.md", "performance.md", "moving.md#from-torchrun"):
        assert f"](docs/{page})" in readme, page
    assert readme.index("install_deps.sh --product") < readme.index("## ")


def test_there_are_pages_on_performance_and_frequent_questions():
    assert {"performance.md", "faq.md", "api.md"} <= {page.name for page in PAGES}


def test_the_rule_refuses(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# A b\n[x](b.md) [y](#no) [z](#a-b) [w](https://x.y)\n```\n[v](c.md)\n```\n")
    assert broken(page, page.read_text()) == ["b.md", "#no"]


def test_the_rule_of_files_refuses(tmp_path):
    (tmp_path / "a.h").write_text("")
    text = "`a.h`, `../x/b.h`, `c/d.cc`, `d.cc` and `e.cc`"
    assert lost_files(tmp_path / "README.md", text, ["m/c/d.cc"]) == ["../x/b.h", "e.cc"]


def test_the_glossary_has_each_term_once_in_order():
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    assert len(terms) > 50 and terms == sorted(set(terms), key=str.lower)
