"""Training loops as people write them give the numbers of one process, and the same ones on all ranks."""

import glob
import importlib
import json
import os
import shutil
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'python'))
sys.path.insert(0, HERE)
import jobs  # noqa: E402

torch = pytest.importorskip('torch')

NAMES = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, 'loops', '[a-z]*.py')))
SECONDS_FOR_ONE = 60  # beyond it a loop hangs
SOAK = os.environ.get('HVD_SOAK', '0') != '0'
WORLDS = [(2, 1)] + ([(3, 1), (4, 1), (2, 2), (3, 2), (4, 2)] if SOAK else [])
TORCH_VERSION = tuple(int(part) for part in torch.__version__.split('.')[:2])


def loop(name):
    return importlib.import_module('loops.' + name)


class World(object):
    """The results of loops with one number of ranks and hosts. The first test that asks starts a job with all loops of the
    session; a loop that ends the job costs those after it a new one."""

    def __init__(self, folder, ranks, hosts, names):
        self.folder, self.ranks, self.hosts = str(folder), ranks, hosts
        self.waiting = [name for name in names if not getattr(loop(name), 'OWN_WORLD', False)]

    def results(self, name):
        while not self.finished(name):
            names = list(self.waiting) if name in self.waiting else [name]
            self.run(names)
        return [self.read(name, rank) for rank in range(self.ranks)]

    def path(self, name, rank):
        return os.path.join(self.folder, '{}.{}'.format(name, rank))

    def finished(self, name):
        return all(os.path.exists(self.path(name, rank)) for rank in range(self.ranks))

    def read(self, name, rank):
        with open(self.path(name, rank)) as file:
            return json.load(file)

    def run(self, names):
        try:
            result = jobs.run_job(
                self.ranks, os.path.join(HERE, 'run_loops.py'), self.folder, *names, hosts=self.hosts, expect_success=False,
                timeout_s=SECONDS_FOR_ONE + 5 * len(names),
                HOROVOD_DYNAMIC_PROCESS_SETS='1', LOOPS_OUT_OF_STEP='1' if SOAK else None,
                flags=('--stall-check-warning-time-seconds', '10', '--stall-check-shutdown-time-seconds', '30'))
            outcome, failed = str(result), result.returncode != 0
        except AssertionError as error:
            outcome, failed = str(error), True
        explained = any([self.raised(name) for name in names])
        left = [name for name in names if not self.finished(name)]
        if left and not explained:
            self.blame(left.pop(0), 'ended the job:\n' + outcome[-4000:])
        elif failed and not explained:
            for rank in range(self.ranks):
                os.remove(self.path(names[-1], rank))
            self.blame(names[-1], 'was the last one of a job that failed behind it:\n' + outcome[-4000:])
        self.waiting = left  # which get another job

    def raised(self, name):
        """Whether the loop ended the job on the ranks that it ran on, and said why."""
        paths = [self.path(name, rank) for rank in range(self.ranks)]
        raised = [rank for rank, path in enumerate(paths) if os.path.exists(path) and self.read(name, rank)['raised']]
        if raised and not self.finished(name):
            self.blame(name, 'ended with the job, after rank {} raised an exception'.format(raised[0]))
        return bool(raised)

    def blame(self, name, why):
        for rank in range(self.ranks):
            if not os.path.exists(self.path(name, rank)):
                with open(self.path(name, rank), 'w') as file:
                    json.dump({'ok': False, 'why': why, 'digest': None, 'raised': False}, file)


@pytest.fixture(scope='session')
def worlds(request, tmp_path_factory):
    """(ranks, hosts) -> World, for the loops that this session runs."""
    wanted = {}
    for item in request.session.items:
        call = getattr(item, 'callspec', None)
        if call is not None and 'world' in call.params and not list(item.iter_markers('skip')):
            wanted.setdefault(call.params['world'], []).append(call.params['name'])
    made = {world: World(tmp_path_factory.mktemp('loops'), *world, names=names) for world, names in wanted.items()}
    yield made
    for world in made.values():
        shutil.rmtree(world.folder, ignore_errors=True)


def cases():
    for world in WORLDS:
        for name in NAMES:
            module = loop(name)
            if world[0] in getattr(module, 'RANKS', (2, 3, 4)) and world[1] in getattr(module, 'HOSTS', (1, 2)):
                too_old = TORCH_VERSION < getattr(module, 'TORCH', (0, 0))
                marks = [pytest.mark.xdist_group('loops-{}-{}'.format(*world))]  # one process has the results of a world
                if too_old:
                    marks.append(pytest.mark.skip(reason='PyTorch is too old for this loop'))
                yield pytest.param(world, name, id='{}-{}-ranks-{}-hosts'.format(name, *world), marks=marks)


@pytest.mark.skipif(not jobs.find_hvdrun(), reason='hvdrun is not built')
@pytest.mark.parametrize('world,name', list(cases()))
def test_a_loop_gives_the_numbers_of_one_process(worlds, world, name):
    results = worlds[world].results(name)
    wrong = ['rank {}: {}'.format(rank, result['why']) for rank, result in enumerate(results) if not result['ok']]
    assert not wrong, '\n'.join(wrong)
    if not getattr(loop(name), 'RANKS_DIFFER', False):
        assert len({result['digest'] for result in results}) == 1, 'the ranks ended with different bits'
