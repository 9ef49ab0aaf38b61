"""horovod.jax: all checks of workers/jax_checks.py in one job of two ranks, with the handlers of libhvd_jax.so and without."""

import ast
import os
import re
import sys

import jobs
import pytest

WORKER = jobs.worker('jax_checks.py')

pytestmark = [pytest.mark.xdist_group('jax'), pytest.mark.deadline(240)]


def names_of_checks():
    with open(WORKER) as source:
        tree = ast.parse(source.read())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)
            and any(isinstance(decorator, ast.Name) and decorator.id == 'check' for decorator in node.decorator_list)]


@pytest.fixture(scope='module')
def needs_jax(hvdrun):
    pytest.importorskip('jax', reason='JAX is not installed for this Python')
    pytest.importorskip('optax', reason='optax is not installed for this Python')
    jobs.skip_without('libhvd_jax.so', 'has the handlers for JAX')


@pytest.fixture(scope='module')
def checked(needs_jax):
    """{way of calling: the result of the job with all checks}, each run once."""
    results = {}

    def run(callbacks):
        if callbacks not in results:
            results[callbacks] = jobs.run_job(2, WORKER, expect_success=False, timeout_s=200, XLA_FLAGS=None, JAX_PLATFORMS='cpu',
                                              HOROVOD_DYNAMIC_PROCESS_SETS='1', HOROVOD_JAX_CALLBACKS='1' if callbacks else None)
        return results[callbacks]

    return run


@pytest.mark.parametrize('name', names_of_checks())
def test_check(checked, name):
    result = checked(False)
    assert len(re.findall(r'\bpass {}$'.format(name), result.output, re.MULTILINE)) == 2, str(result)


def test_all_checks_end(checked):
    result = checked(False)
    assert result.returncode == 0, str(result)
    import jax
    if not jax.__version__.startswith('0.4.'):  # which calls Python
        assert 'take longer' not in result.output, str(result)


def test_callbacks_of_python_do_the_same(checked):
    result = checked(True)
    assert result.returncode == 0, str(result)
    assert len(re.findall(r'\bpass \w+$', result.output, re.MULTILINE)) == 2 * len(names_of_checks()), str(result)
    assert result.output.count('take longer: HOROVOD_JAX_CALLBACKS is 1') == 1, str(result)


@pytest.mark.parametrize('threads', [1, 2])
def test_many_collectives_with_few_threads_of_xla(needs_jax, threads):
    jobs.run_job(2, WORKER, 'many_collectives_in_one_program', JAX_PLATFORMS='cpu',
                 NPROC=str(threads), XLA_FLAGS='--xla_cpu_multi_thread_eigen=false' if threads == 1 else None)


def test_a_peer_that_dies_is_the_cause(needs_jax):
    result = jobs.run_job(2, WORKER, 'peer_dies', expect_success=False, JAX_PLATFORMS='cpu')
    assert result.returncode != 0
    assert 'rank 1 on host' in result.output and 'SIGKILL' in result.output, str(result)
    assert 'died in the middle of the job' in result.output, str(result)


def test_a_script_may_end_while_its_last_program_runs(needs_jax):
    result = jobs.run_job(2, WORKER, 'unfinished_at_the_end', JAX_PLATFORMS='cpu')
    assert 'Traceback' not in result.output and 'rror' not in result.output, str(result)


def test_jax_distributed_finds_its_coordinator(needs_jax):
    jobs.run_job(2, WORKER, 'coordinator', JAX_PLATFORMS='cpu')


def test_a_world_of_one(needs_jax):
    code = ('import sys, jax, jax.numpy as jnp, horovod.jax as hvd; assert "optax" not in sys.modules; hvd.init(); '
            'print(jax.jit(hvd.allreduce)(jnp.ones(2)).tolist(), hvd.allgather(jnp.ones(2)).tolist())')
    result = jobs.run([sys.executable, '-c', code], 60, HVD_AGENT=None, JAX_PLATFORMS='cpu')
    assert result.returncode == 0 and '[1.0, 1.0] [1.0, 1.0]' in result.output, str(result)


def test_a_package_without_a_runtime_has_a_world_of_one(needs_jax, tmp_path):
    code = ('import jax, jax.numpy as jnp, horovod.jax as hvd; hvd.init(); x = jnp.ones((2, 2))\n'
            'for f in (hvd.allreduce, hvd.allgather, hvd.reducescatter, hvd.alltoall, lambda x: hvd.broadcast(x, 0)):\n'
            '    assert (f(x) == 1).all() and (jax.jit(f)(x) == 1).all()\n'
            'print("size", hvd.size())')
    result = jobs.run([sys.executable, '-c', code], 60, HVD_AGENT=None, HVD_RUNTIME=None, JAX_PLATFORMS='cpu',
                      PYTHONPATH=jobs.package_without_runtime(tmp_path))
    assert result.returncode == 0 and 'size 1' in result.output, str(result)


def test_before_init_a_call_is_refused(needs_jax):
    code = ('import jax, jax.numpy as jnp, horovod.jax as hvd\n'
            'for f in (hvd.allreduce, jax.jit(hvd.allreduce)):\n'
            '    try: f(jnp.ones(2))\n'
            '    except ValueError as error: print("refused:", error)')
    result = jobs.run([sys.executable, '-c', code], 60, HVD_AGENT=None, JAX_PLATFORMS='cpu')
    assert result.output.count('refused: Horovod has not been initialized') == 2, str(result)


def test_the_example_learns(needs_jax):
    pytest.importorskip('sklearn', reason='scikit-learn is not installed for this Python')
    result = jobs.run_job(2, os.path.join(jobs.ROOT, 'examples', 'jax_digits.py'), JAX_PLATFORMS='cpu')
    accuracy = float(re.search(r'accuracy ([\d.]+)', result.output).group(1))
    assert accuracy > 0.9 and 'equal on all ranks: True' in result.output, str(result)


def test_elastic_training_goes_on_after_a_death_inside_of_jit(needs_jax, tmp_path):
    result = jobs.run_job(2, jobs.worker('jax_elastic.py'), str(tmp_path / 'died'), flags=('--elastic', '--min-np', '1'),
                          JAX_PLATFORMS='cpu')
    assert re.search(r'ok 0 2$', result.output, re.MULTILINE) and re.search(r'ok 1 2$', result.output, re.MULTILINE), str(result)
