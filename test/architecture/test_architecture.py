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
    ["configs", "runtime/segment", "runtime/net", "runtime/trace", "autotune"],
    ["timeline", "runtime/device"],  # the heap of runtime/device stands on runtime/segment
    ["discovery", "runtime/backends"],
    ["launcher", "runtime/bootstrap", "runtime/core"],
    ["runtime/api"],
    ["cmd"],
]
# Includes that the order alone would allow but the design forbids: hvdrun builds without CUDA, MPI or Gloo, and core
# sees the interfaces of the backends, never one of them.
FORBIDDEN = [
    ("launcher", "runtime/device"), ("launcher", "runtime/backends"), ("launcher", "runtime/core"),
    ("launcher", "runtime/bootstrap"), ("cmd/hvdrun", "runtime/bootstrap"), ("runtime/bootstrap", "runtime/backends"),
    ("cmd/hvdrun", "runtime/device"), ("cmd/hvdrun", "runtime/backends"), ("cmd/hvdrun", "runtime/core"),
    ("discovery", "runtime/device"), ("discovery", "runtime/segment"),
    *[("runtime/core", f"runtime/backends/{backend}") for backend in ("shm", "hosts", "gloo", "mpi", "cuda", "nccl")],
    ("runtime/api", "runtime/backends/gloo"),  # it is a plug-in
    ("runtime/backends/shm", "runtime/backends/gloo"),
    ("runtime/bootstrap", "configs"), ("runtime/core", "configs"), ("runtime/backends", "configs"), ("runtime/device", "configs"),
]
# Folders that only decide: nothing that they include, near or far, opens connections or starts processes.
DECIDING = ("autotune", "configs", "launcher/job", "runtime/core", "runtime/trace", "timeline")
DOING = re.compile(r"asio(\.hpp|/)|sys/(socket|wait|epoll)\.h|spawn\.h")
PUBLIC_HEADER = "runtime/include/hvd/"

# Third party -> the only places that include it.
ADDRESSES = {
    r"CLI/": ["configs/option_parser.cc"],
    r"yaml-cpp/": ["configs/yaml_file.cc"],
    r"spdlog/": ["runtime/base/log.cc"],
    r"fmt/": ["runtime/base/text/format.h", "runtime/base/text/format.cc"],
    r"asio(\.hpp|/)": ["launcher/", "cmd/"],
    r"nlohmann/": ["launcher/detached/detached_job.cc", "launcher/job/error_file.cc", "launcher/doctor/doctor_json.cc", "launcher/live/view_json.cc",
                   "launcher/output/text/json_field.h",
                   "launcher/tuning/tuning_memory.cc", "launcher/tuning/tuning_report.cc",
                   "launcher/tuning/tuning_text.cc", "timeline/report/report_json.cc"],
    r"Eigen/": ["autotune/gaussian_process.cc"],
    r"mpi\.h": ["runtime/backends/mpi/", "test/bench/", "cmd/hvd_perf/"],
    r"gloo/": ["runtime/backends/gloo/", "test/bench/"],
    r"openssl/": ["runtime/net/mesh/mesh_handshake.cc", "runtime/net/sealed_records.cc",
                  "discovery/ssh_key.cc", "launcher/channels/bundle/bundle.cc",
                  "launcher/external/adopt/record_seal.cc", "launcher/channels/ssh/keys/private_key.cc"],
    r"libssh2": ["launcher/channels/ssh/ssh_session.cc"],
    r"cuda": ["runtime/device/", "runtime/backends/nccl/", "runtime/backends/cuda/"],
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
# A mutex is a hvd::Mutex (runtime/base/mutex.h), whose fields the build asan checks; no other file has a std::mutex.
MUTEX_CLASSES = {"runtime/base/mutex.h"}
COLUMNS = 100
CPP_FOLDERS = (*PRODUCT, "test")
PYTHON = "runtime/python/"
UNIT_TESTS_NEVER = re.compile(r"(?<![\w.])(?:::|std::this_thread::)?(v?fork|sleep_for|sleep_until|u?sleep|nanosleep)\s*\(")
# Written in two pieces so that this file passes its own rule.
MACHINE_PATH = re.compile(r"(?<![\w.$}/~-])/(?:" + "work" + "|" + "root" + r")(?:/|\b)")


def under(path, place):
    return path == place or path.startswith(place.rstrip("/") + "/")


def under_any(path, places):
    return any(under(path, place) for place in places)


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


def closure(path, texts):
    """What a file includes, near or far -> the file that includes it."""
    found, left = {}, [path]
    while left:
        here = left.pop()
        for include in includes(texts.get(here, "")):
            if include[1:-1] not in found:
                found[include[1:-1]] = here
                left.append(include[1:-1])
    return found


def doing_complaints(path, texts):
    if not under_any(path, DECIDING):
        return []
    return [f"{path} includes {include} by {by}: a folder that decides opens no connections and starts no processes"
            for include, by in closure(path, texts).items() if DOING.match(include)]


def classes_of(text):
    """(name, names of its bases, body) of each class, those in classes too."""
    code = without_comments(text)
    for found in re.finditer(r"\b(?:class|struct)\s+(?:HVD_\w+\s+)?((?:\w+::)*\w+)(?:\s+final)?\s*(:[^:;{(][^;{(]*)?\{", code):
        depth, end = 1, found.end()
        while depth and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        bases = re.sub(r"\b(?:public|private|protected|virtual)\b", "", found.group(2) or "").lstrip(":").split(",")
        yield found.group(1).split("::")[-1], {base.split("<")[0].split("::")[-1].strip() for base in bases}, code[found.end():end]


def seam_complaints(texts, plugins=()):
    """`texts`: path -> content of product and tests. `plugins`: the folders of libraries that are loaded when they are asked for."""
    seams, users = {}, {}
    for path, text in texts.items():
        for name, bases, body in classes_of(text):
            for base in bases:
                users.setdefault(base, set()).add((path, name))
            if under_any(path, PRODUCT) and re.search(r"\bvirtual\b[^;{}]*=\s*0\s*;", body):
                seams[name] = path
    return [f"{path}: {name} has {len(users.get(name, ()))} implementations: an interface has two, one of which may be a fake of a test"
            for name, path in sorted(seams.items()) if len(users.get(name, ())) < 2
            and not any(under_any(user, plugins) for user, _ in users.get(name, ()))]


def without_literals(text):
    return re.sub(r'"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', "0", without_comments(text))


def types_of_all(text):
    """The types that other files can name: those in named namespaces, not in other types or functions."""
    scopes = []
    for found in re.finditer(r"\b(inline )?namespace\s*([\w:]*)\s*\{"
                             r"|\b(?:struct|class|enum(?: class| struct)?|union)\s+(?:HVD_\w+(?:\([^()]*\))?\s+)?((?:\w+::)*\w+)"
                             r"(?:\s+final)?\s*(?::[^;{}()]*)?\{|[{}]", without_literals(text)):
        if found.group(0) == "}":
            del scopes[-1:]
            continue
        if found.group(3) and "::" not in found.group(3) and all(scopes):
            yield found.group(3)
        scopes.append(found.group(2))


def type_complaints(texts):
    """Two types of one name in one program are undefined behaviour, of which neither compiler nor linker says a word."""
    homes = {}
    for path, text in texts.items():
        for name in types_of_all(text):
            homes.setdefault(name, set()).add(path)
    return [f"{name} is a type of {', '.join(sorted(paths))}: one name, one type" for name, paths in sorted(homes.items())
            if len(paths) > 1]


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


def column_complaints(path, text):
    return [f"{path}:{number}: {len(line)} columns, {COLUMNS} are the limit"
            for number, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS]


# "a " + std::to_string(b), and std::to_string(b) + " a".
TORN_TEXT = re.compile(r'"\s*\+\s*std::to_string\(|std::to_string\([^()]*\)\s*\+\s*"')


def torn_text_complaints(path, text):
    return [f"{path}:{text.count(chr(10), 0, match.start()) + 1}: a text is torn around a number: use Format() of "
            "runtime/base/text/format.h" for match in TORN_TEXT.finditer(text)]


def calls_in_unit_test_complaints(path, text):
    return [f"{path}:{text.count(chr(10), 0, match.start()) + 1}: a unit test calls {match.group(1)}: a test that needs "
            "processes or time to pass is a contract test" for match in UNIT_TESTS_NEVER.finditer(without_comments(text))]


def mutex_complaints(path, text):
    if path in MUTEX_CLASSES:
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


def test_folders_that_decide_do_nothing():
    texts = {path: read(path) for path in product_code()}
    complaints = [c for path in texts for c in doing_complaints(path, texts)]
    assert not complaints, "\n" + "\n".join(complaints)
    assert all(any(under(path, folder) for path in texts) for folder in DECIDING)


def test_interfaces_have_two_implementations():
    texts = {path: read(path) for path in FILES if path.endswith(CODE) and path.split("/")[0] in CPP_FOLDERS}
    plugins = {os.path.dirname(path) for path in FILES if path.startswith("runtime/") and path.endswith("/exports.map")}
    complaints = seam_complaints(texts, plugins)
    assert not complaints, "\n" + "\n".join(complaints)


def test_types_of_different_files_have_different_names():
    complaints = type_complaints({path: read(path) for path in product_code()})
    assert not complaints, "\n" + "\n".join(complaints)


def test_third_parties_have_one_address():
    all_complaints(address_complaints, product_code())


def test_getenv_and_now_have_one_file():
    all_complaints(call_complaints, product_code())


@pytest.mark.parametrize("what, node_of", [
    ("folders", os.path.dirname),
    ("files", lambda path: os.path.splitext(path)[0]),  # a header and its .cc are one
], ids=["folders", "files"])
def test_there_are_no_circles(what, node_of):
    found = circles(include_graph({path: read(path) for path in product_code()}, node_of))
    assert not found, f"{what} that include each other: {found}"


def folder_to(depth):
    """launcher/job/state/job_state.h -> launcher/job, at depth 2: a folder with all that is in it."""
    return lambda path: "/".join(os.path.dirname(path).split("/")[:depth])


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_there_are_no_circles_at_any_depth(depth):
    texts = {path: read(path) for path in product_code()}
    found = circles(include_graph(texts, folder_to(depth)))
    assert not found, f"folders, with all that is in them, that include each other: {found}"


def test_python_modules_have_no_circles():
    texts = {module_of(path): read(path) for path in FILES if path.startswith(PYTHON) and path.endswith(".py")}
    assert "horovod.common.basics" in texts
    found = circles(import_graph(texts))
    assert not found, f"modules that import each other, inside of functions too: {found}"


def test_lines_have_at_most_100_columns():
    all_complaints(column_complaints, [p for p in FILES if p.endswith(CODE) and p.split("/")[0] in CPP_FOLDERS])


def test_texts_are_whole():
    all_complaints(torn_text_complaints, product_code())


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
    described = lambda f: f.startswith(("test/", "runtime/python/", "runtime/include", "packaging/wheel/", "."))
    complaints = [c for folder, names in folders.items() if folder and not described(folder)
                  for c in readme_complaints(folder, names)]
    assert not complaints, "\n" + "\n".join(complaints)


def test_named_commands_exist():
    exists = lambda command: (ROOT / command).exists()
    complaints = [c for p in FILES if p.endswith(".md") for c in command_complaints(p, read(p), exists)]
    assert not complaints, "\n" + "\n".join(complaints)


def preset_variables():
    """{preset: its variables, with those it inherits}."""
    presets = {preset["name"]: preset for preset in json.loads(read("CMakePresets.json"))["configurePresets"]}

    def variables(name):
        inherited = variables(presets[name]["inherits"]) if "inherits" in presets[name] else {}
        return {**inherited, **presets[name]["cacheVariables"]}

    return {name: variables(name) for name in presets}


def test_faults_are_for_tests_alone():
    for name, variables in preset_variables().items():
        assert variables["HVD_TESTING_FAULTS"] == ("OFF" if name == "product" else "ON"), name
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
    ("runtime/core/a.cc", "runtime/backends/cuda/cuda_plugin.h"),
    ("runtime/core/a.cc", "runtime/api/session.h"),
    ("runtime/trace/a.cc", "timeline/read/trace_event.h"),
])
def test_order_rule_refuses(path, target):
    assert order_complaints(path, f'#include "{target}"\n')


@pytest.mark.parametrize("path, target", [
    ("runtime/base/a.cc", "runtime/base/status.h"),
    ("runtime/device/a.cc", "runtime/segment/job_page.h"),
    ("timeline/report/a.cc", "runtime/trace/chrome_text.h"),
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


def test_circle_rule_refuses():
    texts = {"a/x.h": '#include "b/y.h"', "b/y.cc": '#include "b/y.h"\n#include "a/x.h"', "c/z.h": '#include "a/x.h"'}
    assert circles(include_graph(texts, os.path.dirname)) == [["a", "b"]]
    assert circles(include_graph(texts, lambda path: os.path.splitext(path)[0])) == [["a/x", "b/y"]]
    assert not circles(include_graph({"a/x.h": "", "c/z.h": '#include "a/x.h"'}, os.path.dirname))


def test_circle_rule_refuses_circles_through_sub_folders():
    texts = {"l/a/x.h": '#include "l/b/c/y.h"', "l/b/z.h": '#include "l/a/x.h"', "l/b/c/y.h": ""}
    assert not circles(include_graph(texts, os.path.dirname))
    assert circles(include_graph(texts, folder_to(2))) == [["l/a", "l/b"]]
    texts = {"r/base/x.h": "", "t/y.h": '#include "r/base/x.h"', "r/api/z.h": '#include "t/y.h"'}
    assert circles(include_graph(texts, folder_to(1))) == [["r", "t"]] and not circles(include_graph(texts, folder_to(2)))


def test_circle_rule_refuses_python_modules():
    texts = {"h.a": "from h import b", "h.b": "def f():\n    from h.a import x", "h.c": "import h.a", "h": "from os import path"}
    assert circles(import_graph(texts)) == [["h.a", "h.b"]]
    assert not circles(import_graph({**texts, "h.b": "import os"}))
    assert module_of(PYTHON + "horovod/torch/__init__.py") == "horovod.torch"


def test_column_rule_refuses():
    assert column_complaints("a.cc", "\n" + "x" * 101)
    assert not column_complaints("a.cc", "x" * 100 + "\n")


def test_torn_text_rule_refuses():
    assert torn_text_complaints("a.cc", 'return "rank " +\n   std::to_string(rank);')
    assert torn_text_complaints("a.cc", 'return std::to_string(seconds) + " s";')
    assert not torn_text_complaints("a.cc", 'v["RANK"] = {std::to_string(rank), kTorch};')


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


def test_doing_rule_refuses():
    texts = {"launcher/job/a.cc": '#include "launcher/job/a.h"', "launcher/job/a.h": '#include "launcher/live/b.h"',
             "launcher/live/b.h": "#include <asio/io_context.hpp>", "launcher/job/c.h": "#include <sys/stat.h>"}
    assert "by launcher/live/b.h" in doing_complaints("launcher/job/a.cc", texts)[0]
    assert not doing_complaints("launcher/live/b.h", texts) and not doing_complaints("launcher/job/c.h", texts)


def test_seam_rule_refuses():
    seam = "class A {\n public:\n  virtual ~A() = default;\n  virtual void F() = 0;\n};\nclass B { virtual ~B() = default; };\n"
    one = {"launcher/a.h": seam, "launcher/c.h": "class C final : public A, private D::E {\n};\nclass A;\nenum class F : int { kA };\n"}
    assert [c.split(":")[0] for c in seam_complaints(one)] == ["launcher/a.h"]
    assert not seam_complaints({**one, "test/f.cc": "struct Fake final : hvd::A {\n};"})
    assert not seam_complaints(one, ["launcher"])
    assert not seam_complaints({"test/a.h": seam})


def test_type_rule_refuses():
    shared = "namespace hvd {\nstruct A {\n  int b = 0;\n};\nclass B final : public C<int> {\n  struct Inner {};\n};\n}\n"
    private = "namespace hvd {\nnamespace {\nstruct A {};\n}\nvoid F() {\n  struct B {};\n}\nstruct B::Inner {\n};\nclass A;\n}\n"
    assert list(types_of_all(shared)) == ["A", "B"] and not list(types_of_all(private))
    assert type_complaints({"a.h": shared, "b.h": "namespace hvd {\nenum class B { kA };\n}\n"})
    assert not type_complaints({"a.h": shared, "a.cc": private})


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


def number_complaints(path, text):
    return [f"{path}: {name} is named by a number; say the behaviour"
            for name in re.findall(r"\bTEST(?:_F|_P)?\(\w+,\s*([A-Z]\d+[a-z]?_\w+)\)|^\s*def (test_[A-Z]\d+[a-z]?_\w+)", text, re.M) for name in name if name]


def test_names_of_tests_say_a_behaviour():
    all_complaints(number_complaints, [p for p in FILES if p.startswith("test/") and p.endswith((".cc", ".py")) and "architecture" not in p])


def test_name_rule_refuses():
    assert number_complaints("a.cc", "TEST_F(Job, P40_Ends) {")
    assert number_complaints("a.py", "def test_V15a_ends():")
    assert not number_complaints("a.cc", "TEST(Counts, Beyond32Bits) {\nTEST(Fields, V13) {")


def mutant_complaints(path, place, text):
    whole = place.replace("«", "").replace("»", "")
    return [] if text.count(whole) == 1 else [f"test/mutants/catalogue.py: {whole!r} occurs {text.count(whole)} times in {path}"]


def test_each_mutant_is_in_one_place():
    names = {}
    exec(read("test/mutants/catalogue.py"), names)
    assert len(names["MUTANTS"]) >= 40
    complaints = [c for path, place, _ in names["MUTANTS"] for c in mutant_complaints(path, place, read(path))]
    assert not complaints, "\n" + "\n".join(complaints)


def test_mutant_rule_refuses():
    assert mutant_complaints("a.cc", "if («a») {", "if (b) {")
    assert mutant_complaints("a.cc", "if («a») {", "if (a) { if (a) {")
    assert not mutant_complaints("a.cc", "if («a») {", "  if (a) {")
