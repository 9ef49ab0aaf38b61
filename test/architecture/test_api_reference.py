"""docs/api.md names every public module of the package, and the docstrings of which the reference is made are complete."""
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runtime" / "python" / "horovod"
PAGE = ROOT / "docs" / "api.md"

# Not for scripts: the parts of the adapters.
INTERNAL = {
    "common/commit_store.py", "common/kept_commits.py", "common/objects.py", "common/operations.py", "common/registered.py", "torch/adasum_optimizer.py",
    "torch/agreement.py", "torch/autograd.py", "torch/closures.py", "torch/compiling.py", "torch/end_of_backward.py",
    "torch/framework.py", "torch/freed_memory.py", "torch/gradient_buckets.py", "torch/gradient_memory.py",
    "torch/parameters.py", "torch/wrapping.py", "runner/run_task.py", "tensorflow/native.py", "tensorflow/python_operations.py",
    "tensorflow/gradient_aggregation_eager.py", "_keras/callbacks.py", "_keras/elastic.py", "_keras/module.py",
    "keras/callbacks.py", "tensorflow/keras/callbacks.py", "tensorflow/keras/elastic.py", "tensorflow/python_operations.py",
    "jax/cluster.py", "jax/ending.py", "jax/host.py", "jax/native.py", "jax/primitive.py",
    "mxnet/compression.py",
    "torch/bucket_memory.py", "torch/group_members.py", "torch/group_places.py", "torch/group_work.py", "torch/offer_backend.py", "torch/process_group.py",
}



def is_public(name):
    return not name.startswith("_")


def definitions(tree):
    """{qualified name: node} of the public functions, classes and methods, in the order of the source."""
    found = {}

    def visit(body, prefix):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and is_public(node.name):
                found[prefix + node.name] = node
                if isinstance(node, ast.ClassDef):
                    visit(node.body, prefix + node.name + ".")

    visit(tree.body, "")
    return found


def constructor(node):
    """The function whose arguments a caller gives: __init__ for a class, None where it has none of its own."""
    if isinstance(node, ast.FunctionDef):
        return node
    return next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)


def parameters(node, is_method):
    """Names of the arguments that a caller gives."""
    function = constructor(node)
    if function is None:
        return []
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)
    names = [a.arg for a in function.args.args + function.args.kwonlyargs]
    if not static and (is_method or isinstance(node, ast.ClassDef)):
        names = names[1:]
    return names + [a.arg for a in (function.args.vararg, function.args.kwarg) if a is not None]


def described(docstring):
    """The names under `Args:` of a docstring."""
    found = re.search(r"^Args:\n((?:    .*\n?|\n)+)", docstring or "", re.M)
    return re.findall(r"^    (\w+): ", found.group(1), re.M) if found else []


def directives(text):
    """{(module, class or None): names or None} of the `:::` lines of a page: None stands for all that is public."""
    found = {}
    for name, members in re.findall(r"^::: (horovod[\w.]*)\n(?:    options:\n      members: \[(.*)\]\n)?", text, re.M):
        module, _, last = name.rpartition(".")
        key = (module, last) if last[:1].isupper() else (name, None)
        names = members.split(", ") if members else None
        known = found.get(key, [])
        found[key] = None if names is None or known is None else known + names
    return found


def module_of(path):
    """The dotted name of a file below the package."""
    return ".".join(["horovod", *path.with_suffix("").parts]).removesuffix(".__init__")


def shown(named, module, name):
    """Whether a page with these directives shows this definition of the module."""
    owner, _, last = name.rpartition(".")
    for key, of in (((module, None), name.partition(".")[0]), ((module, owner or name), last if owner else None)):
        if key in named and (named[key] is None or of in named[key]):
            return True
    return False


def incomplete(package, named):
    """A line for each public definition that has no docstring or does not describe one of its arguments, and for each file
    that is neither on the page nor internal."""
    faults = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        module = module_of(path)
        found = definitions(ast.parse(file.read_text(encoding="utf-8")))
        if path.as_posix() in INTERNAL or (file.name.startswith("_") and file.name != "__init__.py"):
            found = {name: node for name, node in found.items() if shown(named, module, name)}
        elif found and module not in {name for name, _ in named}:
            faults.append(f"{path}: {module} is not in docs/api.md")
        for name, node in found.items():
            docstring = ast.get_docstring(node)
            if not docstring:
                faults.append(f"{path}: {name} has no docstring")
                continue
            taken, told = parameters(node, "." in name), described(docstring)
            faults += [f"{path}: {name} does not describe {p}" for p in taken if p not in told]
            faults += [f"{path}: {name} describes {p}, which it does not take" for p in told if p not in taken]
    return faults


def exported(package):
    """__all__ of a package of horovod."""
    tree = ast.parse((PACKAGE / package / "__init__.py").read_text())
    assigned = [n for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]
    return ast.literal_eval(assigned[0].value)


def test_every_public_function_describes_its_arguments():
    assert incomplete(PACKAGE, directives(PAGE.read_text())) == []


def test_the_reference_names_things_that_exist():
    for (module, owner), names in directives(PAGE.read_text()).items():
        path = PACKAGE.parent / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        found = definitions(ast.parse(file.read_text()))
        wanted = [f"{owner}.{name}" if owner else name for name in names or []] + [owner] * (owner is not None)
        assert [name for name in wanted if name not in found] == [], module


@pytest.mark.parametrize("package", ["torch", "numpy"])
def test_the_reference_has_every_exported_name(package):
    named = directives(PAGE.read_text())
    present = set()
    for file in PACKAGE.rglob("*.py"):
        module = module_of(file.relative_to(PACKAGE))
        for name in definitions(ast.parse(file.read_text())):
            if shown(named, module, name):
                present.add(name.rpartition(".")[2])
    values = {"Average", "Sum", "Adasum", "Min", "Max", "Product", "elastic", "checkpoint"}
    missing = set(exported(package)) - present
    assert missing <= values | set(re.findall(r"`hvd\.(\w+)`", PAGE.read_text())), missing


@pytest.mark.parametrize("source, fault", [
    ("def f(a): pass", "m.py: f has no docstring"),
    ('def f(a, b=1):\n    """F.\n\n    Args:\n        a: A.\n    """', "m.py: f does not describe b"),
    ('def f():\n    """F.\n\n    Args:\n        a: A.\n    """', "m.py: f describes a, which it does not take"),
    ('class C:\n    """C."""\n    def __init__(self, *args): pass', "m.py: C does not describe args"),
    ('def f():\n    """F."""', "m.py: horovod.m is not in docs/api.md"),
])
def test_the_rule_refuses(tmp_path, source, fault):
    (tmp_path / "m.py").write_text(source)
    page = "# nothing\n" if "api.md" in fault else "::: horovod.m\n"
    assert incomplete(tmp_path, directives(page)) == [fault]


def test_directives_are_read():
    page = "::: horovod.a\n\n::: horovod.b.C\n    options:\n      members: [f, g]\n\n::: horovod.b.C\n    options:\n      members: [h]\n"
    assert directives(page) == {("horovod.a", None): None, ("horovod.b", "C"): ["f", "g", "h"]}
    named = directives(page)
    assert shown(named, "horovod.a", "x") and shown(named, "horovod.b", "C.h") and not shown(named, "horovod.b", "C.x")
    assert not shown(named, "horovod.b", "D")


# ---- torch and numpy: the same functions in the same words

OF_EACH = {"tensor", "tensors", "op", "splits", "device"}  # arguments that differ in what they take
SAME = [("torch/mpi_ops.py", "numpy/mpi_ops.py"), ("torch/functions.py", "numpy/mpi_ops.py")]


def entries(docstring):
    """{(section, name): text} of the lists `Args:` and `Raises:`; arrays are called tensors."""
    found, section, key = {}, None, None
    for line in re.sub(r"\barray(s?)\b", r"tensor\1", docstring.replace("an array", "a tensor")).split("\n"):
        if line and not line.startswith(" "):
            section = line.rstrip(":") if line in ("Args:", "Raises:") else None
        elif section and (entry := re.match(r"    (\w+): (.*)", line)):
            key = (section, entry.group(1))
            found[key] = entry.group(2)
        elif section and line.strip():
            found[key] += " " + line.strip()
    return found


def differences(one, other):
    """Arguments and exceptions of functions of both sources that are described differently."""
    one, other = (definitions(ast.parse(source)) for source in (one, other))
    faults = []
    for name in sorted(one.keys() & other.keys()):
        ours, theirs = (entries(ast.get_docstring(found[name])) for found in (one, other))
        faults += [f"{name}: {key[1]}" for key in ours.keys() & theirs.keys() if key[1] not in OF_EACH and ours[key] != theirs[key]]
    return faults


@pytest.mark.parametrize("one, other", SAME)
def test_torch_and_numpy_describe_the_same_argument_alike(one, other):
    sources = [(PACKAGE / path).read_text() for path in (one, other)]
    shared = set.intersection(*(set(definitions(ast.parse(source))) for source in sources))
    assert len(shared) >= (20 if "mpi_ops" in one else 2), shared
    assert differences(*sources) == []


def test_the_rule_of_like_descriptions_refuses():
    source = 'def f(name, tensor):\n    """F.\n\n    Args:\n        name: {}\n            end.\n        tensor: {}\n    """'
    assert differences(source.format("A tensor.", "One."), source.format("An array.", "Two.")) == ["f: name"]
    assert differences(source.format("Each tensor's", "One."), source.format("Each array's", "Two.")) == []
