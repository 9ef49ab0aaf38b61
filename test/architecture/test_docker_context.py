"""What docker/Dockerfile copies is in the build context that .dockerignore leaves, and what would only make the context large is not."""
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = (ROOT / ".dockerignore").read_text()


def pattern_of(text):
    """As Docker reads it: `*` and `?` stay within a folder, `**/` crosses any number of them."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(parts.get(part) or re.escape(part) for part in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", text)))


def is_ignored(path, rules):
    """The last rule that matches the path or a folder that it lies in decides."""
    names = [path, *map(str, Path(path).parents)]
    ignored = False
    for rule in rules.splitlines():
        rule = rule.strip()
        if rule and not rule.startswith("#") and any(pattern_of(rule.lstrip("!").strip("/")).fullmatch(name) for name in names if name != "."):
            ignored = not rule.startswith("!")
    return ignored


def copied(dockerfile):
    """The sources of each COPY from the context."""
    joined = re.sub(r"\\\n\s*", "", dockerfile)
    for line in re.findall(r"^(?:COPY|ADD) (.*)$", joined, re.M):
        words = shlex.split(line)
        if not any(word.startswith("--from=") for word in words):
            yield from [word for word in words if not word.startswith("--")][:-1]


def files_of(source):
    """Some files that the source stands for: those that git has, or a name that the pattern fits."""
    known = subprocess.run(["git", "ls-files", "--", source], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return known or [source.replace("*", "0")]


def left_out(dockerfile, rules):
    return [path for source in copied(dockerfile) for path in files_of(source) if is_ignored(path, rules)]


def test_everything_that_the_dockerfile_copies_is_in_the_context():
    text = (ROOT / "docker/Dockerfile").read_text()
    assert {"docker/ssh_config", "examples"} < set(copied(text))
    assert left_out(text, RULES) == []


def test_what_it_does_not_copy_stays_out():
    for path in (".git/HEAD", "build/bin/hvdrun", "build-asan/x.o", "runtime/python/horovod/__init__.py", "README.md",
                 "dist/hvdrun-0.1.0.tar.gz", "dist/other.whl", "examples/__pycache__/x.pyc"):
        assert is_ignored(path, RULES), path


@pytest.mark.parametrize("rules, wrong", [
    ("*\n!docker\n!examples\n", ["dist/hvdrun-0-manylinux_0.whl"]), ("docker\n", ["docker/ssh_config"]), ("**/ssh_config\n", ["docker/ssh_config"]),
    ("*\n!dist/*.whl\n!docker\n!examples\n", []), ("", [])])
def test_a_file_that_is_left_out_is_found(rules, wrong):
    dockerfile = "COPY dist/hvdrun-*-manylinux_*.whl /tmp/\nCOPY --from=other build /b\nCOPY --chmod=755 docker/ssh_config \\\n  /etc/\n"
    assert left_out(dockerfile, rules) == wrong
