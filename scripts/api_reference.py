#!/usr/bin/env python3
"""Writes docs/api.md from the docstrings of runtime/python/horovod. Imports nothing of the package, so no framework.

    scripts/api_reference.py            write docs/api.md
    scripts/api_reference.py --check    exit with 1 when it is not up to date or a docstring is incomplete
"""

import argparse
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'runtime' / 'python' / 'horovod'
PAGE = ROOT / 'docs' / 'api.md'

# Not for scripts: the parts of the adapters.
INTERNAL = {
    'common/objects.py', 'common/operations.py', 'common/registered.py', 'torch/adasum_optimizer.py',
    'torch/agreement.py', 'torch/autograd.py', 'torch/closures.py', 'torch/compiling.py', 'torch/end_of_backward.py',
    'torch/framework.py', 'torch/freed_memory.py', 'torch/gradient_buckets.py', 'torch/gradient_memory.py',
    'torch/parameters.py', 'torch/wrapping.py', 'runner/run_task.py', 'tensorflow/native.py', 'tensorflow/python_operations.py',
    'tensorflow/gradient_aggregation_eager.py', '_keras/callbacks.py', '_keras/elastic.py', '_keras/module.py',
    'keras/callbacks.py', 'tensorflow/keras/callbacks.py',
    'jax/cluster.py', 'jax/ending.py', 'jax/host.py', 'jax/native.py', 'jax/primitive.py',
    'mxnet/compression.py',
    'torch/group_members.py', 'torch/group_places.py', 'torch/group_work.py', 'torch/offer_backend.py', 'torch/process_group.py',
}

# title, sentence, and the entries: a file, or a file with the names to take from it in this order.
SECTIONS = [
    ('World, ranks and process sets', 'In `horovod.torch` and in `horovod.numpy`; here `hvd` stands for either.', 'hvd.', [
        ('common/basics.py', ['HorovodBasics.' + name for name in (
            'init', 'shutdown', 'is_initialized', 'rank', 'size', 'local_rank', 'local_size', 'cross_rank', 'cross_size',
            'is_homogeneous', 'should_stop')]),
        ('common/process_sets.py', None),
        ('common/operations.py', ['Operations.synchronize', 'Operations.poll']),
        ('common/basics.py', ['HorovodBasics.' + name for name in (
            'mpi_enabled', 'mpi_threads_supported', 'gloo_enabled', 'mpi_built', 'gloo_built', 'nccl_built', 'cuda_built',
            'rocm_built', 'ddl_built', 'ccl_built', 'start_timeline', 'stop_timeline')]),
    ]),
    ('Exceptions', 'In `horovod.common.exceptions`; `hvd.HorovodInternalError` is in `horovod.torch` too.', '', [
        ('common/exceptions.py', None)]),
    ('horovod.torch: training', '`import horovod.torch as hvd`', 'hvd.', [
        ('torch/optimizer.py', None), ('torch/functions.py', None), ('torch/compression.py', None),
        ('torch/sync_batch_norm.py', None)]),
    ('horovod.torch: collectives', '`import horovod.torch as hvd`. [Operations](operations.md) explains names, types and '
     'gradients; [numerics](numerics.md) what is computed.', 'hvd.', [('torch/mpi_ops.py', None)]),
    ('horovod.torch.elastic', 'Training that continues after a change of the world, under `hvdrun --elastic`. In a job of '
     'fixed size all of it works, too; there the first failure ends it.', 'hvd.elastic.', [
         ('torch/elastic/__init__.py', None), ('torch/elastic/state.py', None), ('torch/elastic/sampler.py', None)]),
    ('horovod.tensorflow: training', '`import horovod.tensorflow as hvd`; see [TensorFlow and Keras](tensorflow.md).', 'hvd.', [
        ('tensorflow/tape.py', ['DistributedGradientTape', 'PartialDistributedGradientTape']),
        ('tensorflow/optimizer.py', ['DistributedOptimizer']), ('tensorflow/functions.py', None),
        ('tensorflow/sync_batch_norm.py', ['SyncBatchNormalization']), ('tensorflow/compression.py', ['Compression']),
        ('tensorflow/gradient_aggregation.py', ['LocalGradientAggregationHelper'])]),
    ('horovod.tensorflow.data', 'Data that another job prepares; see [TensorFlow and Keras](tensorflow.md).', '', [
        ('tensorflow/data/compute_service.py', None), ('tensorflow/data/compute_worker.py', None),
        ('runner/common/service/compute_service.py', ['ComputeService', 'ComputeClient'])]),
    ('horovod.tensorflow: collectives', '`import horovod.tensorflow as hvd`', 'hvd.', [
        ('tensorflow/reduction.py', ['allreduce', 'grouped_allreduce', 'reducescatter', 'grouped_reducescatter']),
        ('tensorflow/mpi_ops.py', ['allgather', 'grouped_allgather', 'broadcast', 'broadcast_', 'alltoall', 'join', 'size_op',
                                   'rank_op', 'local_size_op', 'local_rank_op', 'process_set_included_op']),
        ('tensorflow/util.py', ['vars_to_refs', 'refs_to_vars'])]),
    ('horovod.tensorflow.elastic', 'Training that continues after a change of the world.', 'hvd.elastic.', [
        ('tensorflow/elastic.py', ['run', 'TensorFlowState', 'TensorFlowKerasState'])]),
    ('horovod.tensorflow.keras and horovod.keras', '`import horovod.tensorflow.keras as hvd`, or `import horovod.keras as hvd` for '
     'Keras on any of its backends.', 'hvd.', [('tensorflow/keras/__init__.py', None),
                                               ('_keras/__init__.py', ['broadcast_global_variables', 'allgather', 'broadcast',
                                                                       'reducescatter']),
                                               ('keras/__init__.py', ['PartialDistributedOptimizer']),
                                               ('keras/elastic.py', ['KerasState']), ('tensorflow/keras/elastic.py', [])]),
    ('horovod.numpy: collectives', '`import horovod.numpy as hvd`', 'hvd.', [('numpy/mpi_ops.py', None)]),
    ('horovod.jax', '`import horovod.jax as hvd`. [JAX](jax.md) explains names, types and gradients.', 'hvd.', [
        ('jax/mpi_ops.py', None), ('jax/optimizer.py', None), ('jax/functions.py', None)]),
    ('horovod.jax.elastic', 'As `horovod.torch.elastic`, with a state of pytrees.', 'hvd.elastic.', [('jax/elastic.py', None)]),
    ('horovod.mxnet', '`import horovod.mxnet as hvd`; see [MXNet](mxnet.md).', 'hvd.', [
        ('mxnet/mpi_ops.py', None), ('mxnet/optimizer.py', None), ('mxnet/functions.py', None), ('mxnet/compression.py', ['Compression'])]),
    ('horovod.common.elastic', 'The base of `horovod.torch.elastic`.', '', [('common/elastic.py', None)]),
    ('horovod.common.checkpoint', 'Checkpoints on disk that are there as a whole or not at all; `hvd.checkpoint` of `horovod.torch` and '
     '`horovod.numpy`.', 'hvd.checkpoint.', [('common/checkpoint.py', None)]),
    ('horovod.data', 'Loaders of batches.', '', [('data/data_loader_base.py', None)]),
    ('horovod.runner', 'The parts of the launcher that scripts import; `hvdrun` itself is a command.', '', [
        ('runner/__init__.py', None), ('runner/launch.py', None), ('runner/common/util/hosts.py', None),
        ('runner/common/util/env.py', None), ('runner/common/util/config_parser.py', None),
        ('runner/common/util/secret.py', None), ('runner/common/util/timeout.py', None), ('runner/util/threads.py', None),
        ('runner/http/http_server.py', None), ('runner/elastic/discovery.py', None)]),
    ('horovod.common.util and horovod.common.basics', 'Helpers that scripts written for Horovod import.', '', [
        ('common/util.py', None), ('common/basics.py', ['HorovodBasics', 'shared'])]),
]

HEAD = """# API reference

Made by `scripts/api_reference.py` from the docstrings; `help(hvd.allreduce)` shows the same. Every function may be called
from any thread, and the interpreter lock is released while a function waits. `hvd.Average`, `hvd.Sum`, `hvd.Adasum`,
`hvd.Min`, `hvd.Max` and `hvd.Product` are the values of `op`. `hvd.global_process_set` is the process set of all ranks, the
default of every `process_set`.
"""


def is_public(name):
    return not name.startswith('_')


def definitions(tree):
    """{qualified name: node} of the public functions, classes and methods, in the order of the source."""
    found = {}

    def visit(body, prefix):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and is_public(node.name):
                found[prefix + node.name] = node
                if isinstance(node, ast.ClassDef):
                    visit(node.body, prefix + node.name + '.')

    visit(tree.body, '')
    return found


def constructor(node):
    """The function whose arguments a caller gives: __init__ for a class, None where it has none of its own."""
    if isinstance(node, ast.FunctionDef):
        return node
    return next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == '__init__'), None)


def parameters(node, is_method):
    """Names of the arguments that a caller gives."""
    function = constructor(node)
    if function is None:
        return []
    static = any(isinstance(d, ast.Name) and d.id == 'staticmethod' for d in function.decorator_list)
    names = [a.arg for a in function.args.args + function.args.kwonlyargs]
    if not static and (is_method or isinstance(node, ast.ClassDef)):
        names = names[1:]
    return names + [a.arg for a in (function.args.vararg, function.args.kwarg) if a is not None]


def signature(node, is_method, source):
    """The arguments as a caller would write them, with their defaults."""
    function = constructor(node)
    if function is None:
        return ''
    arguments = function.args
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    wanted = set(parameters(node, is_method))
    shown = []
    for argument, default in zip(arguments.args, defaults):
        if argument.arg in wanted:
            shown.append(argument.arg if default is None else
                         '{}={}'.format(argument.arg, ast.get_source_segment(source, default)))
    shown += ['*' + arguments.vararg.arg] if arguments.vararg else []
    shown += ['**' + arguments.kwarg.arg] if arguments.kwarg else []
    return ', '.join(shown)


def described(docstring):
    """The names under `Args:` of a docstring."""
    found = re.search(r'^Args:\n((?:    .*\n?|\n)+)', docstring or '', re.M)
    return re.findall(r'^    (\w+): ', found.group(1), re.M) if found else []


def markdown(docstring):
    """A docstring as Markdown: its lists under `Args:` and `Raises:` become lists, its example a block."""
    out = []
    lines = docstring.split('\n')
    heads = {'Args:': '**Arguments**', 'Raises:': '**Errors**', 'Example:': '```python'}
    head = None
    paragraph = []

    def flush():
        if paragraph:
            out.append(' '.join(paragraph))
            paragraph.clear()

    for position, line in enumerate(lines):
        if line in heads:
            flush()
            head = line
            if out and out[-1] != '':
                out.append('')
            out.append(heads[line])
            if line != 'Example:':
                out.append('')
        elif head == 'Example:':
            if line or (out[-1] != '```python' and position + 1 < len(lines)):
                out.append(line[4:])
        elif not line:
            flush()
            head = None
            out.append('')
        elif head and re.match(r'    \w+: ', line):
            flush()
            name, text = line.strip().split(': ', 1)
            paragraph.append('- `{}`: {}'.format(name, text))
        else:
            if line.startswith('Returns: '):
                line = '**Returns** ' + line[len('Returns: '):]
            paragraph.append(line.strip())
    flush()
    if head == 'Example:':
        out.append('```')
    return '\n'.join(out)


def entries():
    """(section title, sentence, [(shown name, signature, docstring)]) for each section."""
    for title, sentence, prefix, sources in SECTIONS:
        shown = []
        for path, names in sources:
            source = (PACKAGE / path).read_text(encoding='utf-8')
            found = definitions(ast.parse(source))
            for name in names or [n for n in found if not (path == 'torch/mpi_ops.py' and n == 'sparse_zeros')]:
                node = found[name]
                owner, _, last = name.rpartition('.')
                own_class = owner in ('HorovodBasics', 'Operations')
                text = prefix + (last if own_class else name)
                call = '' if isinstance(node, ast.ClassDef) and constructor(node) is None else '({})'.format(
                    signature(node, bool(owner), source))
                shown.append((text, call, ast.get_docstring(node) or ''))
        yield title, sentence, shown


def page():
    """The text of docs/api.md."""
    out = [HEAD]
    out.append('\n'.join('- [{}](#{})'.format(title, re.sub(r'[^\w -]', '', title.lower()).replace(' ', '-'))
                         for title, _, _, _ in SECTIONS) + '\n')
    for title, sentence, shown in entries():
        out.append('## {}\n\n{}\n'.format(title, sentence))
        for name, call, docstring in shown:
            out.append('### {}\n\n```python\n{}{}\n```\n\n{}\n'.format(
                name.replace('_', '\\_'), name, call, markdown(docstring)))
    return '\n'.join(out)


def incomplete():
    """A line for each public definition that has no docstring or does not describe one of its arguments, and for each file
    that is neither in the reference nor internal."""
    faults = []
    covered = {path for _, _, _, sources in SECTIONS for path, _ in sources}
    for file in sorted(PACKAGE.rglob('*.py')):
        path = file.relative_to(PACKAGE).as_posix()
        found = definitions(ast.parse(file.read_text(encoding='utf-8')))
        if path in INTERNAL or (file.name.startswith('_') and file.name != '__init__.py'):
            found = {name: node for name, node in found.items()
                     if name in [n for _, _, _, sources in SECTIONS for p, names in sources if p == path for n in names or []]}
        elif found and path not in covered:
            faults.append('{}: not in SECTIONS of scripts/api_reference.py'.format(path))
        for name, node in found.items():
            docstring = ast.get_docstring(node)
            if not docstring:
                faults.append('{}: {} has no docstring'.format(path, name))
                continue
            missing = [p for p in parameters(node, '.' in name) if p not in described(docstring)]
            extra = [p for p in described(docstring) if p not in parameters(node, '.' in name)]
            faults += ['{}: {} does not describe {}'.format(path, name, p) for p in missing]
            faults += ['{}: {} describes {}, which it does not take'.format(path, name, p) for p in extra]
    return faults


def main():
    parser = argparse.ArgumentParser(description='Writes docs/api.md from the docstrings of runtime/python/horovod.')
    parser.add_argument('--check', action='store_true', help='change nothing; exit with 1 when something is not up to date')
    arguments = parser.parse_args()
    faults = incomplete()
    for fault in faults:
        print(fault, file=sys.stderr)
    if not arguments.check:
        PAGE.write_text(page(), encoding='utf-8')
    elif not PAGE.exists() or PAGE.read_text(encoding='utf-8') != page():
        faults.append('stale')
        print('docs/api.md is not up to date: run scripts/api_reference.py', file=sys.stderr)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
