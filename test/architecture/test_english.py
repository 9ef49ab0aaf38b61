"""Phrases that once read as a riddle, or as the opposite of what they meant, stay gone from pages, help and messages."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GONE = [
    "is left behind by means of", "asked for epoch", "memory that it does not have", "it gave up by itself",
    "the kernel did not run out of memory", "why is in the last lines", "failed: exit code 0", "is no number from",
    "a wait may last until it is said", "show so many updates", "passes messages on to so many",
    "where it cannot, the ssh program", "word that is no option", "What the hands know", "belongs into", "behind of ours",
    "looks like a slip", "in without a question", "says another number", "right port?.",
    "laws of the house", "The rooms", "this room",
]
WHAT_LATER = ["runtime/backends/gloo", "runtime/backends/hosts", "runtime/core"]  # begin comments with "What" still
TEXT = (".md", ".cc", ".h", ".py", ".sh")


def offences(text):
    """The phrases that are in a text, wherever its lines and string literals break."""
    flat = re.sub(r"\s+", " ", re.sub(r'"\s*\n\s*"', "", text))
    return [phrase for phrase in GONE if phrase in flat]


def texts():
    """The files that people read, but for tests, which may quote what is gone."""
    folders = ["autotune", "cmd", "configs", "discovery", "docs", "examples", "launcher", "runtime", "scripts", "timeline"]
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))] + sorted(ROOT.glob("*.md"))
    return [path for path in found if path.suffix in TEXT and path.name != "CHANGELOG.md"]


def test_F28_riddles_stay_gone():
    assert [(str(path.relative_to(ROOT)), found) for path in texts() if (found := offences(path.read_text()))] == []


def test_F28_pages_have_no_sentence_without_a_subject():
    """'Who waits is told' and 'What comes is kept' instead of 'A rank that waits': only questions begin so."""
    headless = []
    for path in [path for path in texts() if path.suffix == ".md"]:
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
        for found in re.finditer(r"(?:^|[.:;] |\| |- )((?:Who|Whoever|What)\s[^.?!|]*[.?!|])", text, re.M):
            if not found.group(1).endswith("?"):
                headless.append((path.name, found.group(1)))
    assert headless == []


def headless_comments(text):
    """Sentences of comments and docstrings that begin with 'Who', 'Whoever' or 'What' and ask nothing."""
    found = re.findall(r'(?:^\s*(?:#|//) |"""|[.;:] )((?:(?:Who|Whoever) [a-z]|What [\w`"/-]).*)', text, re.M)
    return [sentence for sentence in found if "?" not in sentence]


def test_F28_comments_have_no_sentence_without_a_subject():
    code = [path for path in texts() if path.suffix != ".md"]
    code += [path for path in sorted((ROOT / "test").rglob("*")) if path.suffix in (".cc", ".h", ".py") and path != Path(__file__)]
    found = [(str(path.relative_to(ROOT)), sentence) for path in code for sentence in headless_comments(path.read_text())]
    later = tuple(folder + "/" for folder in WHAT_LATER)
    assert [(path, said) for path, said in found if not (said.startswith("What") and path.startswith(later))] == []


def test_the_glossary_has_each_term_once_in_order():
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", (ROOT / "docs" / "glossary.md").read_text(), re.M)
    assert len(terms) > 50 and terms == sorted(set(terms), key=str.lower)


@pytest.mark.parametrize("text", ["// Who waits is told.", "#  x\n# Whoever comes", '"""Who asks."""', "// Told. Who waits",
                                  "// What is typed for an agent.", '"""What a rank sees."""', "#  x\n# What `ssh -G` says."])
def test_the_rule_of_comments_refuses(text):
    assert headless_comments(text)


@pytest.mark.parametrize("text", ['"the kernel did not run "\n    "out of memory"', "it belongs\n  into the agent"])
def test_the_rule_refuses(text):
    assert len(offences(text)) == 1
