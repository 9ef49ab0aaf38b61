"""The laws of the house. Every rule is a function from one fact to a list of complaints, and has a self-test below it
that feeds it something bad: a rule that cannot fail is no rule."""
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = (".h", ".cc", ".c", ".inc", ".cu")
TEXT = CODE + (".md", ".py", ".sh", ".txt", ".json", ".toml", ".yaml", ".yml", ".cmake", ".map")
ROOM_PARENTS = ("cmd", "configs", "discovery", "launcher", "runtime", "autotune", "timeline")

# Lowest row first. A room may include itself, any lower row, and the public header.
ROWS = [
    ["runtime/base"],
    ["configs", "runtime/segment", "runtime/net", "timeline", "autotune"],
    ["runtime/device"],  # its shared-memory heap stands on runtime/segment
    ["discovery", "runtime/backends"],
    ["launcher", "runtime/core"],
    ["runtime/api"],
    ["cmd"],
]
# What the order alone would allow but the design forbids: hvdrun builds without CUDA, MPI or Gloo, and core sees the
# interfaces of the backends, never one of them.
FORBIDDEN = [
    ("launcher", "runtime/device"), ("launcher", "runtime/backends"), ("launcher", "runtime/core"),
    ("cmd/hvdrun", "runtime/device"), ("cmd/hvdrun", "runtime/backends"), ("cmd/hvdrun", "runtime/core"),
    ("discovery", "runtime/device"), ("discovery", "runtime/segment"),
    ("runtime/core", "runtime/backends/shm"), ("runtime/core", "runtime/backends/inproc"),
    ("runtime/core", "runtime/backends/gloo"), ("runtime/api", "runtime/backends/gloo"),
    ("runtime/backends/shm", "runtime/backends/gloo"), ("runtime/backends/inproc", "runtime/backends/gloo"),
    ("runtime/core", "configs"), ("runtime/backends", "configs"), ("runtime/device", "configs"),
]
PUBLIC_HEADER = "runtime/include/hvd/"

# Third party -> the only places that include it.
ADDRESSES = {
    r"CLI/": ["configs/option_parser.cc"],
    r"yaml-cpp/": ["configs/yaml_file.cc"],
    r"(spdlog|fmt)/": ["runtime/base/log.cc"],
    r"asio(\.hpp|/)": ["launcher/", "cmd/"],
    r"mpi\.h": ["runtime/backends/mpi/", "test/bench/", "cmd/hvd_perf/"],
    r"gloo/": ["runtime/backends/gloo/", "test/bench/"],
    r"openssl/": ["runtime/net/mesh_handshake.cc", "runtime/net/sealed_records.cc",
                  "discovery/ssh_key.cc", "launcher/packing.cc",
                  "launcher/record_seal.cc", "launcher/ssh/private_key.cc"],
    r"zlib\.h": ["launcher/packing.cc"],
    r"libssh2": ["launcher/ssh/ssh_session.cc"],
    r"cuda": ["runtime/device/", "runtime/backends/nccl/"],
}
# A call -> the only files that make it.
CALLS = {
    r"\b(secure_)?getenv\s*\(": ["runtime/base/env.cc"],
    r"_clock::now\s*\(": ["runtime/base/clock.cc"],
    r"\b(clock_gettime|gettimeofday)\s*\(": [
        "runtime/base/clock.cc",
        "runtime/segment/alive.cc",  # the kernel wants the deadline of a futex as an absolute time
    ],
}
# Written in two pieces so that this file passes its own rule.
MACHINE_PATH = re.compile(r"(?<![\w.$}/~-])/(?:" + "work" + "|" + "root" + r")(?:/|\b)")


def under(path, place):
    return path == place or path.startswith(place.rstrip("/") + "/")


def row_of(path):
    for number, rooms in enumerate(ROWS):
        for room in rooms:
            if under(path, room):
                return number, room
    return None


def includes(text):
    return re.findall(r'^\s*#\s*include\s*(["<][^">]+[">])', text, re.M)


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


# ---- rules

def order_complaints(path, text):
    here = row_of(path)
    if here is None:
        return []
    complaints = []
    for include in includes(text):
        target = include[1:-1]
        there = row_of(target)
        if there is None or target.startswith(PUBLIC_HEADER):
            continue
        if there[1] != here[1] and there[0] >= here[0]:
            complaints.append(f"{path} includes {target}: {here[1]} is not above {there[1]}")
        for user, used in FORBIDDEN:
            if under(path, user) and under(target, used):
                complaints.append(f"{path} includes {target}: {user} never sees {used}")
    return complaints


def address_complaints(path, text):
    return [f"{path} includes {include}: only {', '.join(places)} may"
            for include in includes(text) if include[0] == "<"
            for pattern, places in ADDRESSES.items()
            if re.match(pattern, include[1:-1]) and not any(path.startswith(p) for p in places)]


def call_complaints(path, text):
    code = without_comments(text)
    return [f"{path} calls {match.group(0).strip()}: only {', '.join(places)} may"
            for pattern, places in CALLS.items() if path not in places
            for match in re.finditer(pattern, code)]


def machine_path_complaints(path, text):
    return [f"{path}:{number}: names a path of one machine: {line.strip()}"
            for number, line in enumerate(text.split("\n"), 1) if MACHINE_PATH.search(line)]


def readme_complaints(folder, names):
    sources = [n for n in names if n.endswith(CODE + (".py", ".sh"))]
    return [f"{folder} has sources and no README.md"] if sources and "README.md" not in names else []


def command_complaints(path, text, exists):
    named = re.findall(r"(?<![\w/.-])((?:scripts|examples|test)/[\w/.-]+\.(?:sh|py))\b", text)
    return [f"{path} names {command}, which does not exist" for command in named if not exists(command)]


# ---- the files of the repository

def repository_files():
    skipped = {".git", "__pycache__", ".cache", ".pytest_cache"}
    for folder, folders, names in os.walk(ROOT):
        relative = os.path.relpath(folder, ROOT)
        folders[:] = sorted(d for d in folders if d not in skipped
                            and not (relative == "." and d.startswith("build")))
        for name in sorted(names):
            yield os.path.normpath(os.path.join(relative, name))


FILES = list(repository_files())


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def all_complaints(rule, paths):
    complaints = [c for path in paths for c in rule(path, read(path))]
    assert not complaints, "\n" + "\n".join(complaints)


def product_code():
    return [p for p in FILES if p.endswith(CODE) and p.split("/")[0] in ROOM_PARENTS]


def test_includes_follow_the_order():
    all_complaints(order_complaints, product_code())


def test_third_parties_have_one_address():
    all_complaints(address_complaints, product_code())


def test_getenv_and_now_have_one_file():
    all_complaints(call_complaints, product_code())


def test_no_text_names_a_path_of_one_machine():
    all_complaints(machine_path_complaints, [p for p in FILES if p.endswith(TEXT)])


def test_folders_with_sources_have_a_readme():
    # A folder of tests or of one Python package is described by the README above it.
    folders = {}
    for path in FILES:
        folders.setdefault(os.path.dirname(path), []).append(os.path.basename(path))
    described = lambda f: f.startswith(("test/", "runtime/python/", "runtime/include", "."))
    complaints = [c for folder, names in folders.items() if folder and not described(folder)
                  for c in readme_complaints(folder, names)]
    assert not complaints, "\n" + "\n".join(complaints)


def test_named_commands_exist():
    exists = lambda command: (ROOT / command).exists()
    complaints = [c for p in FILES if p.endswith(".md") for c in command_complaints(p, read(p), exists)]
    assert not complaints, "\n" + "\n".join(complaints)


def test_there_is_something_to_look_at():
    assert len(product_code()) > 20


# ---- each rule can fail

@pytest.mark.parametrize("path, target", [
    ("runtime/base/a.cc", "runtime/net/link.h"),
    ("runtime/net/a.cc", "configs/command_line.h"),
    ("configs/a.cc", "launcher/job.h"),
    ("launcher/a.cc", "runtime/core/engine.h"),
    ("launcher/a.cc", "runtime/device/device.h"),
    ("cmd/hvdrun/a.cc", "runtime/core/engine.h"),
    ("runtime/core/a.cc", "runtime/backends/shm/shm.h"),
    ("runtime/core/a.cc", "runtime/api/session.h"),
])
def test_order_rule_refuses(path, target):
    assert order_complaints(path, f'#include "{target}"\n')


@pytest.mark.parametrize("path, target", [
    ("runtime/base/a.cc", "runtime/base/status.h"),
    ("runtime/device/a.cc", "runtime/segment/job_page.h"),
    ("runtime/base/a.cc", "runtime/include/hvd/hvd.h"),
    ("runtime/core/a.cc", "runtime/backends/backend.h"),
    ("launcher/a.cc", "runtime/segment/job_page.h"),
    ("cmd/hvdrun/a.cc", "configs/command_line.h"),
])
def test_order_rule_allows(path, target):
    assert not order_complaints(path, f'#include "{target}"\n')


@pytest.mark.parametrize("path, include", [
    ("launcher/a.cc", "CLI/CLI.hpp"), ("configs/command_line.cc", "yaml-cpp/yaml.h"),
    ("launcher/a.cc", "spdlog/spdlog.h"), ("runtime/net/a.cc", "asio.hpp"), ("runtime/core/a.cc", "mpi.h"),
    ("runtime/core/a.cc", "cuda_runtime.h"), ("runtime/backends/inter_host_loader.cc", "gloo/context.h"),
    ("runtime/net/mesh.cc", "openssl/hmac.h"),
])
def test_address_rule_refuses(path, include):
    assert address_complaints(path, f"#include <{include}>\n")


def test_address_rule_allows_the_address():
    assert not address_complaints("configs/option_parser.cc", "#include <CLI/CLI.hpp>\n")


@pytest.mark.parametrize("line", [
    'auto v = std::getenv("X");', "auto t = std::chrono::steady_clock::now();", "clock_gettime(CLOCK_REALTIME, &t);",
])
def test_call_rule_refuses(line):
    assert call_complaints("launcher/a.cc", line)
    assert not call_complaints("launcher/a.cc", "// " + line)


def test_machine_path_rule_refuses():
    assert machine_path_complaints("a.md", "see /" + "work/x")
    assert machine_path_complaints("a.py", "open('/" + "root')")
    assert not machine_path_complaints("a.md", "a net/" + "work, the /" + "workers and a/" + "root")


def test_readme_rule_refuses():
    assert readme_complaints("launcher", ["job.cc"])
    assert not readme_complaints("launcher", ["job.cc", "README.md"])


def test_command_rule_refuses():
    assert command_complaints("README.md", "run scripts/gone.sh now", lambda _: False)
    assert not command_complaints("README.md", "run scripts/test.sh now", lambda _: True)
