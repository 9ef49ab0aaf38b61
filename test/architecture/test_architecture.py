"""The rules of the architecture. Every rule is a function from one fact to a list of complaints, and has a self-test below it
that feeds it something bad: a rule that cannot fail is no rule."""
import ast
import json
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = (".h", ".cc", ".c", ".inc", ".cu")
TEXT = CODE + (".md", ".py", ".sh", ".txt", ".json", ".toml", ".yaml", ".yml", ".cmake", ".map")
PRODUCT = ("cmd", "configs", "discovery", "launcher", "runtime", "autotune", "timeline")

# Lowest row first. A folder may include itself, any lower row, and the public header.
ROWS = [
    ["runtime/base"],
    ["configs", "runtime/segment", "runtime/net", "timeline", "autotune"],
    ["runtime/device"],  # its shared-memory heap stands on runtime/segment
    ["discovery", "runtime/backends"],
    ["launcher", "runtime/bootstrap", "runtime/core"],
    ["runtime/api"],
    ["cmd"],
]
# What the order alone would allow but the design forbids: hvdrun builds without CUDA, MPI or Gloo, and core sees the
# interfaces of the backends, never one of them.
FORBIDDEN = [
    ("launcher", "runtime/device"), ("launcher", "runtime/backends"), ("launcher", "runtime/core"),
    ("launcher", "runtime/bootstrap"), ("cmd/hvdrun", "runtime/bootstrap"), ("runtime/bootstrap", "runtime/backends"),
    ("cmd/hvdrun", "runtime/device"), ("cmd/hvdrun", "runtime/backends"), ("cmd/hvdrun", "runtime/core"),
    ("discovery", "runtime/device"), ("discovery", "runtime/segment"),
    ("runtime/core", "runtime/backends/shm"),
    ("runtime/core", "runtime/backends/gloo"), ("runtime/api", "runtime/backends/gloo"),
    ("runtime/backends/shm", "runtime/backends/gloo"),
    ("runtime/bootstrap", "configs"), ("runtime/core", "configs"), ("runtime/backends", "configs"), ("runtime/device", "configs"),
]
PUBLIC_HEADER = "runtime/include/hvd/"

# Third party -> the only places that include it.
ADDRESSES = {
    r"CLI/": ["configs/option_parser.cc"],
    r"yaml-cpp/": ["configs/yaml_file.cc"],
    r"(spdlog|fmt)/": ["runtime/base/log.cc"],
    r"asio(\.hpp|/)": ["launcher/", "cmd/"],
    r"nlohmann/": ["launcher/job/error_file.cc", "launcher/doctor/doctor_json.cc"],
    r"mpi\.h": ["runtime/backends/mpi/", "test/bench/", "cmd/hvd_perf/"],
    r"gloo/": ["runtime/backends/gloo/", "test/bench/"],
    r"openssl/": ["runtime/net/mesh/mesh_handshake.cc", "runtime/net/sealed_records.cc",
                  "discovery/ssh_key.cc", "launcher/bundle/packing.cc",
                  "launcher/adopt/record_seal.cc", "launcher/channels/ssh/private_key.cc"],
    r"libssh2": ["launcher/channels/ssh/ssh_session.cc"],
    r"cuda": ["runtime/device/", "runtime/backends/nccl/"],
}
# A call -> the only files that make it.
CALLS = {
    r"\b(secure_)?getenv\s*\(": ["runtime/base/env.cc"],
    r"\bGetEnv\s*\(\s*\"HVD_TEST_": ["runtime/base/test_env.cc"],  # which packages do without
    r"_clock::now\s*\(": ["runtime/base/clock.cc"],
    r"\b(clock_gettime|gettimeofday)\s*\(": [
        "runtime/base/clock.cc",
        "runtime/segment/alive.cc",  # the kernel wants the deadline of a futex as an absolute time
    ],
}
# Decisions take the time as an argument; these files alone ask for it. A ratchet: the list only shrinks.
CLOCK_READERS = {
    "cmd/hvd_perf/measure.h", "cmd/hvdrun/doctor.cc", "launcher/adopt/adopt.cc", "launcher/adopt/rendezvous.cc",
    "launcher/agent/agent.cc", "launcher/agent/connectivity_probe.cc", "launcher/agent/driver_connection.cc",
    "launcher/agent/host_questions.cc", "launcher/agent/host_inspection.cc",
    "launcher/agent/pair_probe.cc", "launcher/channels/ssh/ssh_channel.cc", "launcher/doctor/doctor.cc",
    "launcher/driver/agent_connection.cc", "launcher/driver/agent_connection.h", "launcher/driver/driver.cc",
    "launcher/generation/host_generations.cc", "launcher/jobs/dead_jobs.cc", "launcher/jobs/driver_status.cc",
    "launcher/output/screen.cc", "launcher/process/cgroup.cc",
    "launcher/process/local_process_host.cc", "launcher/process/process_tree.cc", "launcher/relay/relay_end.cc",
    "launcher/tree/tree_links.cc", "runtime/api/session.cc", "runtime/api/world_joiner.cc",
    "runtime/backends/hosts/coordination_link.cc", "runtime/backends/hosts/host_leader_service.cc",
    "runtime/backends/hosts/result_publisher.cc",
    "runtime/backends/mpi/mpi_inter_host_comm.cc",
    "runtime/backends/mpi/mpi_library.cc", "runtime/backends/mpi/mpi_mailbox.cc", "runtime/backends/mpi/mpi_world.cc",
    "runtime/base/clock.cc", "runtime/base/clock.h", "runtime/base/read_file.cc", "runtime/bootstrap/agent_bootstrap.cc",
    "runtime/bootstrap/agent_link.cc", "runtime/net/mesh/mesh.cc", "runtime/net/mesh/mesh_resolver.cc",
    "runtime/segment/commit_point.cc",
    "timeline/ticks.cc",  # the recorder's clock, where the processor's counter is none
    "launcher/driver/timeline_service.cc",
}
# A mutex is a hvd::Mutex (runtime/base/mutex.h), whose fields scripts/thread_safety.sh checks; no file has a std::mutex
# outside of the folders below.
PLAIN_MUTEX_FOLDERS = ("launcher/agent/", "launcher/driver/", "runtime/bootstrap/", "runtime/core/")
MUTEX_CLASSES = {"runtime/base/mutex.h"}
COLUMNS = 100
CPP_FOLDERS = (*PRODUCT, "test")
PYTHON = "runtime/python/"
UNIT_TESTS_NEVER = re.compile(r"(?<![\w.])(?:::|std::this_thread::)?(v?fork|sleep_for|sleep_until|u?sleep|nanosleep)\s*\(")
# Written in two pieces so that this file passes its own rule.
MACHINE_PATH = re.compile(r"(?<![\w.$}/~-])/(?:" + "work" + "|" + "root" + r")(?:/|\b)")


def under(path, place):
    return path == place or path.startswith(place.rstrip("/") + "/")


def row_of(path):
    for number, folders in enumerate(ROWS):
        for folder in folders:
            if under(path, folder):
                return number, folder
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


def clock_complaints(path, text):
    reads = "SteadyNow()" in without_comments(text)
    if reads and path not in CLOCK_READERS:
        return [f"{path} asks for the time: take it as an argument, or add the file to CLOCK_READERS with good reason"]
    if not reads and path in CLOCK_READERS:
        return [f"{path} asks for the time no more: take it off CLOCK_READERS"]
    return []


def column_complaints(path, text):
    return [f"{path}:{number}: {len(line)} columns, {COLUMNS} are the limit"
            for number, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS]


def calls_in_unit_test_complaints(path, text):
    return [f"{path}:{text.count(chr(10), 0, match.start()) + 1}: a unit test calls {match.group(1)}: a test that needs "
            "processes or time to pass is a contract test" for match in UNIT_TESTS_NEVER.finditer(without_comments(text))]


def mutex_complaints(path, text):
    if path.startswith(PLAIN_MUTEX_FOLDERS) or path in MUTEX_CLASSES:
        return []
    if re.search(r"std::(recursive_|shared_|timed_)?mutex\b", without_comments(text)):
        return [f"{path} has a std::mutex: use Mutex of runtime/base/mutex.h, and say what it guards by HVD_GUARDED_BY"]
    return []


def circles(uses):
    """The strongly connected parts of a graph (node -> nodes that it uses) with more than one node, by Tarjan."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for used in sorted(uses.get(node, ())):
            if used not in number:
                visit(used)
                low[node] = min(low[node], low[used])
            elif used in stack:
                low[node] = min(low[node], number[used])
        if low[node] == number[node]:
            part = set(stack[stack.index(node):])
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(uses):
        if node not in number:
            visit(node)
    return found


def include_graph(texts, node_of):
    """`texts`: path -> content. Edges between what node_of makes of the paths."""
    uses = {}
    for path, text in texts.items():
        here = uses.setdefault(node_of(path), set())
        for include in includes(text):
            if include[0] == '"' and (there := node_of(include[1:-1])) != node_of(path):
                here.add(there)
    return uses


def module_of(path):
    """runtime/python/horovod/torch/__init__.py -> horovod.torch"""
    parts = path[len(PYTHON):].split("/")
    return ".".join(parts)[:-len(".py")].removesuffix(".__init__")


def import_graph(texts):
    """`texts`: module -> source. Edges between modules, imports inside of functions included."""
    uses = {}
    for module, text in texts.items():
        here = uses.setdefault(module, set())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                here.update(alias.name for alias in node.names if alias.name in texts)
            elif isinstance(node, ast.ImportFrom):
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                here.update(name if name in texts else node.module for name in whole if {name, node.module} & set(texts))
        here.discard(module)
    return uses


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
    return [p for p in FILES if p.endswith(CODE) and p.split("/")[0] in PRODUCT]


def test_includes_follow_the_order():
    all_complaints(order_complaints, product_code())


def test_third_parties_have_one_address():
    all_complaints(address_complaints, product_code())


def test_getenv_and_now_have_one_file():
    all_complaints(call_complaints, product_code())


def test_only_shells_ask_for_the_time():
    all_complaints(clock_complaints, product_code())
    assert CLOCK_READERS <= set(FILES)


@pytest.mark.parametrize("what, node_of", [
    ("folders", os.path.dirname),
    ("files", lambda path: os.path.splitext(path)[0]),  # a header and its .cc are one
], ids=["folders", "files"])
def test_there_are_no_circles(what, node_of):
    found = circles(include_graph({path: read(path) for path in product_code()}, node_of))
    assert not found, f"{what} that include each other: {found}"


def test_python_modules_have_no_circles():
    texts = {module_of(path): read(path) for path in FILES if path.startswith(PYTHON) and path.endswith(".py")}
    assert "horovod.common.basics" in texts
    found = circles(import_graph(texts))
    assert not found, f"modules that import each other, inside of functions too: {found}"


def test_lines_have_at_most_100_columns():
    all_complaints(column_complaints, [p for p in FILES if p.endswith(CODE) and p.split("/")[0] in CPP_FOLDERS])


def test_mutexes_say_what_they_guard():
    all_complaints(mutex_complaints, product_code())


def test_unit_tests_neither_fork_nor_sleep():
    all_complaints(calls_in_unit_test_complaints, [p for p in FILES if p.startswith("test/unit/") and p.endswith(CODE)])


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


def test_faults_are_for_tests_alone():
    presets = {preset["name"]: preset for preset in json.loads(read("CMakePresets.json"))["configurePresets"]}
    for name, preset in presets.items():
        root = presets[preset.get("inherits", name)]
        faults = {**root["cacheVariables"], **preset["cacheVariables"]}["HVD_TESTING_FAULTS"]
        assert faults == ("OFF" if name == "product" else "ON"), name
    assert re.search(r"option\(HVD_TESTING_FAULTS .* OFF\)", read("CMakeLists.txt"))
    assert "HVD_TESTING_FAULTS" not in read("pyproject.toml")


def test_there_is_something_to_look_at():
    assert len(product_code()) > 20


# ---- each rule can fail

@pytest.mark.parametrize("path, target", [
    ("runtime/base/a.cc", "runtime/net/link.h"),
    ("runtime/net/a.cc", "configs/command_line.h"),
    ("configs/a.cc", "launcher/job/job.h"),
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
    ("runtime/net/mesh/mesh.cc", "openssl/hmac.h"),
])
def test_address_rule_refuses(path, include):
    assert address_complaints(path, f"#include <{include}>\n")


def test_address_rule_allows_the_address():
    assert not address_complaints("configs/option_parser.cc", "#include <CLI/CLI.hpp>\n")


@pytest.mark.parametrize("line", [
    'auto v = std::getenv("X");', 'GetEnv("HVD_TEST_X")', "auto t = std::chrono::steady_clock::now();",
    "clock_gettime(CLOCK_REALTIME, &t);",
])
def test_call_rule_refuses(line):
    assert call_complaints("launcher/a.cc", line)
    assert not call_complaints("launcher/a.cc", "// " + line)


def test_clock_rule_refuses():
    assert clock_complaints("launcher/job/job.cc", "auto now = SteadyNow();")
    assert clock_complaints("launcher/driver/driver.cc", "// SteadyNow() was here")
    assert not clock_complaints("launcher/driver/driver.cc", "auto now = SteadyNow();")


def test_circle_rule_refuses():
    texts = {"a/x.h": '#include "b/y.h"', "b/y.cc": '#include "b/y.h"\n#include "a/x.h"', "c/z.h": '#include "a/x.h"'}
    assert circles(include_graph(texts, os.path.dirname)) == [["a", "b"]]
    assert circles(include_graph(texts, lambda path: os.path.splitext(path)[0])) == [["a/x", "b/y"]]
    assert not circles(include_graph({"a/x.h": "", "c/z.h": '#include "a/x.h"'}, os.path.dirname))


def test_circle_rule_refuses_python_modules():
    texts = {"h.a": "from h import b", "h.b": "def f():\n    from h.a import x", "h.c": "import h.a", "h": "from os import path"}
    assert circles(import_graph(texts)) == [["h.a", "h.b"]]
    assert not circles(import_graph({**texts, "h.b": "import os"}))
    assert module_of(PYTHON + "horovod/torch/__init__.py") == "horovod.torch"


def test_column_rule_refuses():
    assert column_complaints("a.cc", "\n" + "x" * 101)
    assert not column_complaints("a.cc", "x" * 100 + "\n")


def test_mutex_rule_refuses():
    assert mutex_complaints("launcher/a.h", "std::mutex mutex_;")
    assert mutex_complaints("runtime/backends/mpi/mpi_streams.h", "std::recursive_mutex mutex_;")
    assert not mutex_complaints("launcher/a.h", "Mutex mutex_;  // a std::mutex")


@pytest.mark.parametrize("line", [
    "pid_t child = ::fork();", "if (vfork() == 0) {", "std::this_thread::sleep_for(1ms);", "::usleep(10);", "sleep(1);",
])
def test_unit_test_rule_refuses(line):
    assert calls_in_unit_test_complaints("test/unit/a.cc", "int a;\n" + line)
    assert not calls_in_unit_test_complaints("test/unit/a.cc", "// " + line)
    assert not calls_in_unit_test_complaints("test/unit/a.cc", "NotFork(); mesh.AfterFork(); forked(); machine.sleep(1);")


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
