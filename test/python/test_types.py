"""What an editor or a type checker knows about the package, at no cost when a script runs."""

import ast
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = REPO / "runtime" / "python"

RIGHT = '''
import torch
import horovod.torch as hvd

hvd.init()
model = torch.nn.Linear(2, 2)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                     named_parameters=model.named_parameters(), op=hvd.Sum)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
total: torch.Tensor = hvd.allreduce(torch.ones(2), op=hvd.Sum, name="total")
with optimizer.skip_synchronize():
    optimizer.step()
hvd.add_process_set(hvd.ProcessSet([0]))
count: int = hvd.rank() + hvd.size()


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    state.epoch += 1
    state.commit()
'''
# The line of each has one argument that the function has not.
WRONG = '''
import torch
import horovod.torch as hvd

hvd.allreduce(torch.ones(2), operation=hvd.Sum)  # operation
hvd.broadcast(torch.ones(2), root=0)  # root
hvd.DistributedOptimizer(torch.optim.SGD([torch.ones(2)], lr=0.1), named_params=None)  # named_params
hvd.init(process_set=None)  # process_set
hvd.grouped_allgather([torch.ones(2)], names="a")  # names
'''


STUBS = REPO / "test" / "python" / "stubs"  # as much of PyTorch and NumPy as the interface names: checkers read it in no time
TOOLS = os.environ.get("HVD_TOOLS_VENV") or os.path.expanduser("~/.cache/hvdrun/tools-venv")


def checker_at(name):
    """mypy, or the pyright that is a package of PyPI."""
    path = os.pathsep.join([os.path.join(TOOLS, "bin"), os.environ.get("PATH", "")])
    program = shutil.which({"pyright": "basedpyright"}.get(name, name), path=path)
    if program is None:
        pytest.skip(f"{name} is not installed here: scripts/install_deps.sh --pypi-tools")
    return program


def checked(checker, script, tmp_path, mode="standard"):
    """The exit code and the output of a checker for a script; with HVD_SOAK=1 it reads the PyTorch of this Python, not the stubs."""
    stubs = [] if os.environ.get("HVD_SOAK") == "1" and importlib.util.find_spec("torch") else [str(STUBS)]
    folders = [str(PACKAGE), *stubs]
    (tmp_path / "script.py").write_text(script)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": folders, "typeCheckingMode": mode}))
    program = checker_at(checker)
    python = os.path.join(os.path.dirname(program), "python") if stubs else sys.executable
    options = {"mypy": ["--follow-imports=silent", "--python-executable"], "pyright": ["--pythonpath"]}[checker]
    done = subprocess.run([program, *options, python, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=500,
                          env={**os.environ, "MYPYPATH": os.pathsep.join(folders)})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.below_torch
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_checker_finds_a_wrong_keyword_argument(checker, tmp_path):
    code, text = checked(checker, RIGHT, tmp_path)
    assert code == 0, text
    code, text = checked(checker, WRONG, tmp_path)
    assert code == 1, text
    wrong = {number: line.rpartition("# ")[2] for number, line in enumerate(WRONG.splitlines(), 1) if "# " in line}
    for number, argument in wrong.items():
        found = [line for line in text.splitlines() if f"script.py:{number}:" in line and "error" in line]
        assert any(f'"{argument}"' in line for line in found), text


def names_of(package):
    """Its __all__, without importing it."""
    for node in ast.parse((PACKAGE / "horovod" / package / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return []


@pytest.mark.below_torch
@pytest.mark.parametrize("package", ["torch", "numpy"])
def test_each_public_name_has_a_type_that_is_known_whole(package, tmp_path):
    names = names_of(package)
    assert len(names) > 40
    script = f"import horovod.{package} as hvd\n" + "".join(f"print(hvd.{name})\n" for name in names)
    code, text = checked("pyright", script, tmp_path, mode="strict")
    assert code == 0, text


@pytest.mark.below_torch
def test_a_type_that_is_not_known_whole_is_found(tmp_path):
    script = "def add(a, b: int) -> int:\n    return b\n\n\nprint(add)\n"
    code, text = checked("pyright", script, tmp_path, mode="strict")
    assert code == 1 and "partially unknown" in text, text


# Files of the public interface, and the functions of which a caller gives the arguments.
PUBLIC = ["torch/mpi_ops.py", "torch/functions.py", "numpy/mpi_ops.py", "common/basics.py"]


def public_functions(path):
    for node in ast.parse(path.read_text()).body:
        for function in node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]:
            if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
                yield function


@pytest.mark.parametrize("name", PUBLIC)
def test_public_functions_are_annotated(name):
    functions = list(public_functions(PACKAGE / "horovod" / name))
    assert len(functions) >= 4
    for function in functions:
        missing = [a.arg for a in function.args.args + function.args.kwonlyargs if a.annotation is None and a.arg not in ("self", "cls")]
        assert not missing and function.returns is not None, (function.name, missing)


def test_the_package_says_that_it_has_types():
    assert (PACKAGE / "horovod" / "py.typed").exists()


def test_annotations_cost_nothing_and_are_read_by_python_38():
    for path in (PACKAGE / "horovod").rglob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 8))
        imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        annotated = any(isinstance(node, ast.FunctionDef) and (node.returns is not None or any(a.annotation for a in node.args.args))
                        for node in ast.walk(tree))
        if annotated:
            assert any(getattr(node, "module", "") == "__future__" for node in imports), path
        assert not any(getattr(node, "module", "") == "typing" for node in imports), f"{path} imports typing when it runs"
