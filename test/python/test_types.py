"""What an editor or a type checker knows about the package, at no cost when a script runs."""

import ast
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


def checked(command, script, tmp_path):
    (tmp_path / "script.py").write_text(script)
    (tmp_path / "pyrightconfig.json").write_text('{"extraPaths": ["%s"]}' % PACKAGE)
    done = subprocess.run([*command, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=500,
                          env={**os.environ, "MYPYPATH": str(PACKAGE)})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_checker_finds_a_wrong_keyword_argument(checker, tmp_path):
    pytest.importorskip("torch")
    program = shutil.which(checker)
    if program is None:
        pytest.skip(f"{checker} is not installed here: pip install mypy 'pyright[nodejs]'")
    command = {"mypy": [program, "--follow-imports=silent", "--python-executable", sys.executable],
               "pyright": [program, "--pythonpath", sys.executable]}[checker]
    code, text = checked(command, RIGHT, tmp_path)
    assert code == 0, text
    code, text = checked(command, WRONG, tmp_path)
    assert code == 1, text
    wrong = {number: line.rpartition("# ")[2] for number, line in enumerate(WRONG.splitlines(), 1) if "# " in line}
    for number, argument in wrong.items():
        found = [line for line in text.splitlines() if f"script.py:{number}:" in line and "error" in line]
        assert any(f'"{argument}"' in line for line in found), text


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
