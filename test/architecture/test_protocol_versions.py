"""The pages of the protocols, and the tests' program that speaks one, name the version that the sources have."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def names_its_version(page, words, source, constant):
    """Whether the page names one version, in these words, and it is that of the source."""
    return re.findall(words, page, re.M) == re.findall(rf"\b{constant} = (\d+);", source) != []


@pytest.mark.parametrize("page, words, header, constant", [
    ("runtime/net/PROTOCOL.md", r"version of the stream \(u32: (\d+)\)", "runtime/net/stream.h", "kStreamVersion"),
    ("runtime/net/PROTOCOL.md", r"\(`HVD_JOB_KEY`\)\. Version (\d+)\.", "runtime/net/link.h", "kLinkVersion"),
    ("test/system/workers/link_worker.py", r"^LINK = (\d+) ", "runtime/net/link.h", "kLinkVersion"),
    ("runtime/net/PROTOCOL.md", r"^\| version \| 4 \| (\d+) \|", "runtime/net/mesh/mesh_handshake.h", "kMeshVersion"),
    ("runtime/segment/SEGMENT.md", r"Layout version (\d+)\.", "runtime/segment/job_page.h", "kLayoutVersion"),
])
def test_pages_name_the_version_of_the_sources(page, words, header, constant):
    assert names_its_version((ROOT / page).read_text(), words, (ROOT / header).read_text(), constant)


def test_another_version_and_none_are_seen():
    assert names_its_version("Version 5.", r"Version (\d+)\.", "kVersion = 5;", "kVersion")
    assert not names_its_version("Version 4.", r"Version (\d+)\.", "kVersion = 5;", "kVersion")
    assert not names_its_version("", r"Version (\d+)\.", "kVersion = 5;", "kVersion")
    assert not names_its_version("", r"Version (\d+)\.", "", "kVersion")
