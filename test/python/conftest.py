"""Deadlines, and the things that the tests need to find: the package, the runtime, hvdrun, torch."""

import faulthandler
import os
import re
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.dirname(sys.path[0]))
import jobs  # noqa: E402
import tiers  # noqa: E402
import worlds  # noqa: E402
from slowness import scaled  # noqa: E402
from tiers import pytest_collection_modifyitems  # noqa: E402, F401

if jobs.PACKAGES not in sys.path:
    sys.path.insert(0, jobs.PACKAGES)
if jobs.find_runtime():
    os.environ['HVDRUN_STANDING_CONFIG'] = '0'  # what somebody set for the jobs of this machine is not tested
    os.environ['HVD_RUNTIME'] = jobs.find_runtime()

DEADLINE_S = 120


def pytest_addoption(parser):
    parser.addoption('--hosts-per-machine', type=int, default=1,
                     help='spread the ranks of each job over so many hosts, which this machine plays')


def pytest_configure(config):
    jobs.hosts_per_machine = config.getoption('--hosts-per-machine')
    config.addinivalue_line('markers', 'world(ranks, hosts=1, gpus=False): which shared world the test needs; gpus: on_fake_gpus.py')
    config.addinivalue_line('markers', 'below_torch: what it tests is the same with every PyTorch')
    config.addinivalue_line('markers', 'deadline(seconds): the test fails when it takes longer on a quiet machine (default {})'.format(
        DEADLINE_S))


def pytest_report_header(config):
    try:
        import torch
        version = torch.__version__
    except ImportError:
        version = 'none: tests that need it are skipped'
    return 'torch: {}; runtime: {}; hvdrun: {}'.format(version, jobs.find_runtime(), jobs.find_hvdrun())


@pytest.fixture(autouse=True)
def deadline(request):
    """Ends a test that hangs: by an exception where Python still runs, else by ending pytest with a traceback."""
    marker = request.node.get_closest_marker('deadline')
    seconds = int(scaled(marker.args[0] if marker else DEADLINE_S))

    def too_late(*unused):
        raise AssertionError('the test took longer than its deadline of {} s'.format(seconds))

    previous = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(seconds)
    faulthandler.dump_traceback_later(seconds + 30, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture(scope='session')
def runtime():
    path = jobs.find_runtime()
    if path is None:
        pytest.skip('there is no libhvd.so; build it or set HVD_RUNTIME')
    return path


@pytest.fixture(scope='session')
def hvdrun(runtime):
    if jobs.find_hvdrun() is None:
        pytest.skip('there is no hvdrun; build it or set HVDRUN')
    return jobs.find_hvdrun()


@pytest.fixture(scope='session')
def torch():
    return pytest.importorskip('torch', reason='PyTorch is not installed for this Python')


@pytest.fixture(scope='session')
def fake_gpus(hvdrun, torch):
    """The folder of the driver and the NCCL of test/fakes/gpu_libraries."""
    if torch.version.cuda is not None:
        pytest.skip('this PyTorch has an NCCL of its own, which is loaded before the fake one')
    if not os.path.isfile(os.path.join(os.path.dirname(jobs.find_runtime()), 'libhvd_cuda.so')):
        pytest.skip('this build has no libhvd_cuda.so, which nvcc makes')
    if not os.path.isfile(os.path.join(jobs.FAKE_GPUS, 'libnccl.so.2')):
        pytest.skip('this build has no ' + jobs.FAKE_GPUS)
    return jobs.FAKE_GPUS


@pytest.fixture
def in_world(request, hvdrun):
    """in_world(script, *arguments): runs a worker in the world that the tests of as many ranks and hosts share (worlds.py), and
    expects ok of every rank. The parameters `ranks` and `hosts` say which, or the marker `world`."""
    processes, hosts, gpus = tiers.world_of(request.node)
    if gpus:
        request.getfixturevalue('fake_gpus')

    def run(script, *arguments, **kwargs):
        pytest.importorskip('numpy' if script == 'matrix.py' else 'torch')
        result = worlds.run(processes, hosts, script, *arguments, gpus=gpus, **kwargs)
        assert result.returncode == 0, str(result)
        assert len(re.findall(r'\bok$', result.output, re.MULTILINE)) == processes, str(result)
        return result

    return run


@pytest.fixture(scope='session', autouse=True)
def end_of_worlds():
    yield
    worlds.end_all()


@pytest.fixture
def hvd(runtime, torch):
    """horovod.torch, initialised as a world of one."""
    if 'HVD_AGENT' in os.environ:
        pytest.skip('these tests need a world of one, but run inside a job')
    import horovod.torch
    horovod.torch.init()
    yield horovod.torch
    horovod.torch.init()  # a test may have shut it down


@pytest.fixture
def memory(request):
    """The descriptor of shared memory without a name, of as many bytes as the module's SIZE."""
    descriptor = os.memfd_create('hvd-commits')
    os.ftruncate(descriptor, request.module.SIZE)
    yield descriptor
    os.close(descriptor)
