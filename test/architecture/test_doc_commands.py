"""Commands of the guides that build, install and measure: scripts, their options, files, stages of the image and versions exist."""
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for pattern in ("docs/*.md", "docs/decisions/*.md", "*.md", "examples/**/README.md", "packaging/*/README.md", "configs/helm/*/README.md",
                                    "test/README.md", "test/*/README.md") for path in ROOT.glob(pattern))
FOLDERS = ("scripts", "packaging", "docker", "examples", "configs", "test")
OPTIONS_ARE_IN = {"scripts/bench.sh": "test/bench/bench.py"}


def commands(text):
    """Lines of blocks, and spans inside of sentences, as words; what is no command has no such words, and does no harm."""
    text = text.replace("\\\n", "")
    blocks = re.findall(r"```(?:console|sh|bash)\n(.*?)```", text, re.S) + re.findall(r"^ {4,6}(\S.*)$", text, re.M) + re.findall(r"`([^`\n]+)`", text)
    for line in "\n".join(blocks).split("\n"):
        for part in re.split(r"&&|\||;", line):
            try:
                words = shlex.split(part.removeprefix("$ "), comments=True)
            except ValueError:
                continue  # a sentence, with an apostrophe
            if words:
                yield words


def value_of(words, option):
    return words[words.index(option) + 1] if option in words[:-1] else None


def wrong(words, root=ROOT):
    """What is not so in this command."""
    found = []
    program = words[1] if words[0] in ("python3", "bash") and len(words) > 1 else words[0]
    for word in words:
        path = word.split("::")[0]
        if re.match(rf"(?:{'|'.join(FOLDERS)})/[\w./-]+$", path) and not (root / path).exists():
            found.append(f"there is no {path}")
    if re.match(r"(scripts|test|packaging|examples)/\S+\.(sh|py)$", program) and (root / program).exists():
        text = (root / OPTIONS_ARE_IN.get(program, program)).read_text()
        found += [f"{program} knows no {word}" for word in words if re.match(r"--\w", word) and not re.search(re.escape(word.split("=")[0]) + r"(?![\w-])", text)]
    if words[:2] == ["docker", "build"]:
        image = (root / value_of(words, "-f")).read_text()
        if f" AS {value_of(words, '--target')}\n" not in image:
            found.append("there is no such stage of the image")
    for argument in [value_of(words, "--build-arg")] if "--build-arg" in words else []:
        if f"\nARG {argument.split('=')[0]}=" not in (root / "docker/Dockerfile").read_text():
            found.append(f"the image has no argument {argument}")
    for word in words:
        defined = re.match(r"-D(HVD_\w+)=", word)
        if defined and not re.search(rf"^(?:set|option)\({defined[1]} ", (root / "CMakeLists.txt").read_text(), re.M):
            found.append(f"CMake knows no {defined[1]}")
        version = re.match(r"hvdrun[-_](\d[\w.]*?)[-_]", word)
        if version and f'\nversion = "{version[1]}"\n' not in (root / "pyproject.toml").read_text():
            found.append(f"{version[1]} is not the version")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_commands_name_exists(page):
    assert [f"{shlex.join(words)}: {what}" for words in commands(page.read_text()) for what in wrong(words)] == []


@pytest.mark.parametrize("command, what", [
    ("scripts/build_weel.sh", "there is no scripts/build_weel.sh"),
    ("python3 -m pytest test/system/test_rum.py::test_name", "there is no test/system/test_rum.py"),
    ("scripts/build_wheel.sh --arc aarch64", "scripts/build_wheel.sh knows no --arc"),
    ("scripts/bench.sh --minute 3", "scripts/bench.sh knows no --minute"),
    ("docker build -f docker/Dockerfile --target tensorflow .", "there is no such stage of the image"),
    ("docker build --build-arg PYTORCH=torch==2.8.0 -f docker/Dockerfile --target torch .", "the image has no argument PYTORCH=torch==2.8.0"),
    ("cmake -B build -DHVD_WITH_GLUE=ON", "CMake knows no HVD_WITH_GLUE"),
    ("pip install hvdrun-0.0.9-py3-none-any.whl", "0.0.9 is not the version")])
def test_what_does_not_exist_is_found(command, what):
    assert wrong(only(commands(f"\n    {command}\n"))) == [what]


def only(found):
    [one] = found
    return one


def test_the_pages_have_such_commands():
    every = [words for page in PAGES for words in commands(page.read_text())]
    assert sum(words[0].startswith("scripts/") for words in every) > 30 and sum(words[:2] == ["docker", "build"] for words in every) > 1
