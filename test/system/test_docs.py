"""Commands in the documentation are commands: each one of hvdrun is read by hvdrun itself."""

import re
import shlex
import subprocess
import sys
import textwrap

import pytest
from conftest import DEADLINE, REPO, hvdrun_path, needs_the_build_tree, skip_without, wait_until
from elastic_job import SCRIPT
from test_autotune import SEARCH, train
from test_detached_jobs import detached  # noqa: F401

PAGES = sorted(REPO.glob("docs/*.md")) + [REPO / "README.md", REPO / "examples" / "README.md"]
VERBS = ("attach", "drain", "dump", "env", "explain", "forget", "logs", "ps", "scale", "status", "stop", "top", "trace", "tune")


# What runs the command behind its own words: options alone, options with a value, words before that command.
RUNNERS = {("uvx",): ([], ["--from", "--with"], 0), ("nsys", "profile"): ([], ["--trace"], 0), ("%sh",): ([], [], 0),
           ("docker", "run"): (["--rm"], ["--network", "-v", "-e", "--gpus"], 1), ("ssh",): ([], [], 1), ("systemd-run",): (["--user", "--scope"], [], 0)}


def behind(words):
    """What such a program is given to run, or []; an option that nobody knows here is an error."""
    for runner, (flags, valued, places) in RUNNERS.items():
        if tuple(words[:len(runner)]) == runner:
            words = words[len(runner):]
            while words and words[0].startswith("-"):
                assert words[0] in flags + valued, f"{' '.join(runner)} {words[0]}: no known option"
                words = words[1 + (words[0] in valued):]
            return words[places:]
    return []


def simple_commands(line):
    """The commands of a line of shell, each as its words: also those in $(...), and those of a line that ssh takes along."""
    inner = re.findall(r"\$\(([^()]*)\)", line)
    lexer = shlex.shlex(re.sub(r"\$\([^()]*\)", "VALUE", line), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = []
    for word in [*lexer, ";"]:
        if not word or not set(word) <= set("();<>|&"):
            words.append(word)
            continue
        while words and re.match(r"\w+=", words[0]):
            del words[0]
        if words:
            yield words
        if " " in (behind(words) or [""])[0]:
            yield from simple_commands(behind(words)[0])
        words = []
    for line in inner:
        yield from simple_commands(line)


def lines_of_shell(text):
    """Those of blocks, also indented ones, and what stands as a command of hvdrun inside of a sentence."""
    text = text.replace("\\\n", "")
    for block in re.findall(r"```(?:console|sh|bash)\n(.*?)```", text, re.S):
        yield from [line.removeprefix("$ ") for line in block.split("\n")]
    yield from re.findall(r"^ {4}(?:  )?(\S.*)$", text, re.M)
    yield from [span for span in re.findall(r"`((?:hvdrun -|docker run|systemd-run|%sh)[^`]*)`", text) if not re.search(r"\.\.\.|\[", span)]


def commands(text):
    """The commands of hvdrun on a page, as words."""
    for line in lines_of_shell(text):
        if line.startswith("hvdrun:") or not re.search(r"(?:hvdrun|horovodrun)\b", line):
            continue
        try:
            found = list(simple_commands(line))
        except ValueError:
            continue  # a sentence, with an apostrophe
        for words in found:
            words = behind(words) or words
            if re.fullmatch(r"(?:\S*/)?(?:hvdrun|horovodrun)", words[0]) and words[1:]:
                yield words[1:]


def test_the_reader_sees_commands_and_nothing_else():
    page = ("    hvdrun -np 2 a  # why\n    hvdrun: host a is gone\n\n```console\n$ hvdrun ps\nhvdrun\n```\n    venv/bin/hvdrun -np 1 b\n"
            "    docker run --rm -v a:b \\\n        -e A=1 hvdrun:torch hvdrun c\n    pip install hvdrun && A=1 hvdrun d | tee e\n"
            "    job=$(hvdrun --detach f) && ssh g 'cd h && hvdrun i'\n      uvx --from hvdrun.whl hvdrun j\n `hvdrun -np 1`, `hvdrun -x ...`\n"
            "    helm install k configs/helm/hvdrun --set l\n")
    assert list(commands(page)) == [["ps"], ["-np", "2", "a"], ["-np", "1", "b"], ["c"], ["d"], ["i"], ["--detach", "f"], ["j"], ["-np", "1"]]
    with pytest.raises(AssertionError, match="docker run --cpu: no known option"):
        list(commands("    docker run --cpu 4 a hvdrun b\n"))


def test_the_verbs_are_those_of_the_help():
    told = subprocess.run([hvdrun_path(), "help"], capture_output=True, text=True, timeout=DEADLINE).stdout
    listed = re.findall(r"^  (\w+) ", told[told.index("\nVerbs\n"):told.index("\nJob\n")], re.M)
    assert sorted(listed) == sorted([*VERBS, "doctor", "help"]), "a verb that is unknown here is read as a command of ranks"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_the_documentation_are_understood(page, tmp_path):
    for name, content in re.findall(r"^    # (\w+\.yaml)\n((?:    .*\n)+)", page.read_text(), re.M):
        (tmp_path / name).write_text(textwrap.dedent(content))
    for words in commands(page.read_text()):
        if words and words[0] in VERBS:
            continue
        if words and words[0] == "doctor":
            words = words[1:]
        done = subprocess.run([hvdrun_path(), "--print-config", *words], capture_output=True, text=True, timeout=DEADLINE,
                              cwd=tmp_path)
        assert done.returncode == 0, f"hvdrun {shlex.join(words)}: {done.stderr}"


def test_the_tutorial_does_what_it_says(tmp_path):
    """Its first script, the failure, and the cure of its hang."""
    skip_without("torch")
    page = (REPO / "docs" / "tutorial.md").read_text()
    script, _, cure = re.findall(r"```python\n(.*?)```", page, re.S)
    shown = re.findall(r"^\[\d\]<stdout>:.*", page, re.M)
    (tmp_path / "train.py").write_text(script + cure)
    done = subprocess.run([hvdrun_path(), "-np", "2", sys.executable, "train.py"], capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path)
    assert done.returncode == 0 and set(shown) <= set(done.stdout.splitlines()), done
    of_rank_0 = [line for line in done.stdout.splitlines() if line.startswith("[0]")]  # the other one may print last
    assert of_rank_0[-1].startswith("[0]<stdout>:loss 0.0")
    fault = re.search(r"add `(.*?)` before the loop", page).group(1)
    (tmp_path / "train.py").write_text(script.replace("for step", f"{fault}\nfor step"))
    done = subprocess.run([hvdrun_path(), "-np", "2", sys.executable, "train.py"], capture_output=True, text=True, timeout=DEADLINE, cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.endswith("  1 other rank was ended because of it.\n  hvdrun explain HVD101\n"), done


# What a verb takes, from its help.
def test_commands_of_verbs_have_options_that_the_verb_takes():
    for page in PAGES:
        for words in commands(page.read_text()):
            if not words or words[0] not in VERBS:
                continue
            told = subprocess.run([hvdrun_path(), "help", words[0]], capture_output=True, text=True, timeout=DEADLINE).stdout
            unknown = [word for word in words[1:] if word.startswith("-") and word.partition("=")[0] not in re.findall(r"-[-\w]+", told)]
            assert not unknown, f"{page.name}: hvdrun {shlex.join(words)}"


@needs_the_build_tree("a wheel has no hvd_perf")
def test_hvd_perf_explains_its_options():
    done = subprocess.run([str(hvdrun_path()).rsplit("/", 1)[0] + "/hvd_perf", "--help"], capture_output=True, text=True,
                          timeout=DEADLINE)
    page = (REPO / "cmd" / "hvd_perf" / "README.md").read_text()
    options = set(re.findall(r"`(--[\w-]+)`", page))
    assert done.returncode == 0 and done.stderr == "" and len(options) >= 7
    assert options - {word.strip(",") for word in done.stdout.split()} == set()
    assert max(len(line) for line in done.stdout.splitlines()) <= 100


# Where a job lives on other hosts: test_detached_hosts.py has them.
OF_OTHER_HOSTS = ("ps --hosts node1,node3", "attach train-1 -H node1")
NAMES_OF_TOOLS = ("trace report",)
# For names and abbreviations of the pages; the job of the test is train-1, as on the pages.
FOR = {"JOB": "train-1", "$job": "train-1", "CODE": "HVD101", "ID": "--all", "[ID]": "", "[--json]": "--json", "FILE": "tuned.yaml", "node2": "localhost", "...": "localhost:2",
       "node1,node2": "localhost:2", "node1:8,node2:8": "localhost:2", "t.json": "timeline.json", "COMMAND": "./hosts.sh", "python": sys.executable}
# In this order; the job ends with `stop`.
WHILE_IT_RUNS = ("ps", "status", "logs", "top", "dump", "scale", "drain", "stop")
AFTERWARDS = ("attach", "doctor", "env", "explain", "help", "trace", "tune", "forget")


def verbs_on_the_pages():
    """The different commands of verbs, also those inside of sentences, as words; those that only a rig of hosts can run are left out."""
    found = {}
    for page in PAGES:
        text = page.read_text()
        spans = [shlex.split(span) for span in re.findall(r"`hvdrun ([a-z][^`:]*)`", text)]
        for words in [*commands(text), *spans]:
            if words and words[0] in WHILE_IT_RUNS + AFTERWARDS and shlex.join(words) not in OF_OTHER_HOSTS + NAMES_OF_TOOLS:
                found.setdefault(tuple(filter(None, (FOR.get(word, word) for word in words))), page.name)
    return found


def completed(words):
    """The command for the one job of the test: others may run beside it, and nobody types q."""
    verb = words[0]
    if verb == "top" or words[1:2] == ("tail",):
        words += ("--once",)
    if words == ("doctor",):
        words += ("-H", "localhost:2")
    if "--after-step" in words:
        words += ("train-2",)
    elif verb in ("top", "dump", "stop", "attach", "status", "logs", "scale", "drain") and "train-1" not in words:
        words += ("train-1",)
    return words


def test_the_commands_of_verbs_on_the_pages_run(start, detached, tmp_path, monkeypatch):  # noqa: F811
    """One elastic job, train-1, and what is asked of it in turn; the timeline and the result of a search are those of an earlier job."""
    skip_without("numpy")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    detached.env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    train(start, tmp_path, *SEARCH, "--timeline", tmp_path / "timeline.json", windows=9)
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.pt.trace.json").write_text('{"traceEvents": [], "baseTimeNanoseconds": 0, "distributedInfo": {"rank": %d}}' % rank)
    (tmp_path / "hosts.sh").write_text("#!/bin/sh\necho localhost:2\n")
    (tmp_path / "hosts.sh").chmod(0o755)
    (tmp_path / "train.py").write_text(SCRIPT.read_text())

    def begin():
        job = ("--elastic", "-np", 2, "--min-np", 1, "--max-np", 2, "-H", "localhost:2", sys.executable, "train.py", tmp_path)
        return detached.run("--detach", *job, cwd=tmp_path).stdout.strip()

    assert begin() == "train-1"
    wait_until("its first lines", lambda: detached.text("train-1"))

    on_pages = verbs_on_the_pages()
    assert {words[0] for words in on_pages} == set(WHILE_IT_RUNS + AFTERWARDS)
    order = WHILE_IT_RUNS + AFTERWARDS
    for words in sorted({*map(completed, on_pages)}, key=lambda words: (order.index(words[0]), "forget" in words, words)):
        assert "train-2" not in words or begin() == "train-2"
        asked = detached.run(*words, cwd=tmp_path)
        # Ctrl-C ended the job; py-spy may not be installed.
        expected = 130 if words[0] == "attach" else 1 if words[0] == "dump" and "pip install py-spy" in asked.stdout else 0
        assert asked.returncode == expected, f"{on_pages.get(words, 'a page')}: hvdrun {shlex.join(words)}: {asked.stdout}{asked.stderr}"
        assert asked.stdout + asked.stderr or "forget" in words, words
    files = ("dump.json", "report.html", "page.html", "merged.json", "timeline.pftrace", "rank3.json", "tuned.yaml")
    assert [name for name in files if not (tmp_path / name).stat().st_size] == []
