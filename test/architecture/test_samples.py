"""The output of hvdrun that the pages quote is in the sources: each piece between two names or numbers of a
quoted message is in a string of the sources, so a sample that nothing prints any more fails."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [p for folder in ("cmd", "configs", "discovery", "launcher", "runtime")
           for suffix in ("*.cc", "*.h", "*.py", "*.sh") for p in sorted((ROOT / folder).rglob(suffix))]
PAGES = sorted(ROOT.glob("docs/*.md")) + [ROOT / "README.md"]

STRING = r'"((?:[^"\\\n]|\\.)*)"' + r"|'((?:[^'\\\n]|\\.)*)'"
# Names, numbers and words in capitals that stand for what a user sees there.
STANDS_FOR_ANYTHING = re.compile(
    r"/[\w./-]+\.py:\d+ in \w+|\bclock_nanosleep\b|\.\.\.|(?<!\S)--?[a-z][\w-]*|\bslots=\?|\d[\d.,:]*|"
    r"\b[A-Z][A-Z0-9_]*\b(?:=[A-Z]\b)?|'[^']*'|\bnode[\w.]*|\bhosts\.txt\b|\bvm\b|\[[^]]*\]|\bpython\b|"
    r"\b(?:launcher|stall_check)\.\w+|\bKB/s|\bMB/s|\bGB/s")
OF_THE_C_LIBRARY = {"Connection refused", "Permission denied", "Read-only file system", "No space left on device"}


def strings(text):
    """The strings of a source, adjacent ones joined, without the places that are filled in."""
    text = re.sub(r"^\s*(//|#).*$", "", text, flags=re.M)
    joined = re.sub(r'(?<!\\)"\s*\+?\s*"', "", text)
    joined = re.sub(r"'\s*\n\s*'", "", joined)
    for found in re.finditer(STRING, joined):
        yield re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m.group(1), m.group(1)), found.group(1) or found.group(2) or "")


def pieces(message):
    """The parts of a quoted message that have to be in the sources: two words or more."""
    parts = re.split(r"[;:().]\s|[;:()]$|\s\(", STANDS_FOR_ANYTHING.sub("\0", message).replace("\0", ": "))
    parts = [part.strip(" :;,.()`-") for part in parts]
    return [part for part in parts if len(part.split()) >= 2 and part not in OF_THE_C_LIBRARY]


def blocks(text):
    """The blocks of a page that show output."""
    return re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M) + re.findall(r"(?:^    .*\n)+", text, re.M)


def quoted(text):
    """The messages of a page: lines of blocks that begin with `hvdrun: ` and those below them, and the first cells of tables
    that list what hvdrun says."""
    found = []
    for block in blocks(text):
        at = re.search(r"^ *hvdrun(?: \w+)?: ", block, re.M)
        if at:
            lines = block[at.start():].splitlines()
            found += [re.sub(r"^ *hvdrun(?: \w+)?: ", "", line).strip() for line in lines if not line.startswith(("$ ", "    $ "))]
    for table in re.findall(r"^\| (?:it says|you see) \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M):
        for row in table.splitlines():
            found += [cell.replace("\\|", "|") for cell in re.findall(r"`([^`]+)`", re.split(r"(?<!\\)\|", row)[1])]
    return found


# Words that the sources put in themselves, as the number of ranks asks for it.
VERBS = r"\b(?:is|are|it|has|have|was|were|gets?|does|do|waits?|say|not)\b"
VERBS_AND_NOUNS = VERBS + r"|\b(?:ranks?|hosts?)\b"


def known(piece):
    """Whether a piece is in the sources, as a whole or as what is left of it without the words above."""
    if piece in CORPUS:
        return True
    for words in (VERBS, VERBS_AND_NOUNS):
        parts = [part.strip() for part in re.split(words, piece)]
        parts = [part for part in parts if len(part.split()) >= 2]
        if parts and parts != [piece] and all(part in CORPUS for part in parts):
            return True
    return False


CORPUS = "\0".join(text for source in SOURCES for text in strings(source.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_F24_quoted_messages_are_in_the_sources(page):
    stale = [(message, piece) for message in quoted(page.read_text()) for piece in pieces(message) if not known(piece)]
    assert stale == []


def test_the_rule_refuses_what_no_source_prints():
    page = "    hvdrun: host node2 is back after 3.2 s\n    hvdrun: the moon is full of cheese\n"
    assert quoted(page) == ["host node2 is back after 3.2 s", "the moon is full of cheese"]
    assert [piece for message in quoted(page) for piece in pieces(message) if not known(piece)] == ["the moon is full of cheese"]
    assert quoted("| it says | do |\n|---|---|\n| `no such \\| thing`, `other` (1) | x |\n") == ["no such | thing", "other"]


def test_there_are_samples():
    assert sum(len(pieces(message)) for page in PAGES for message in quoted(page.read_text())) > 100
