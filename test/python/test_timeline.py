"""Timelines that the script begins itself, and those of processes that no hvdrun started."""

import json
import os

import pytest

import jobs

pytestmark = pytest.mark.below_torch


def read(path):
    with open(str(path)) as file:
        return json.load(file)


def named(events, name):
    return [event for event in events if event.get('name') == name]


@pytest.fixture(autouse=True)
def needs(runtime, torch):
    pass


@pytest.mark.parametrize('processes', [1, 3])
def test_a_script_begins_and_ends_timelines(hvdrun, processes, tmp_path):
    jobs.run_job(processes, jobs.worker('timeline.py'), tmp_path, HOROVOD_TIMELINE='DYNAMIC')
    assert sorted(os.listdir(str(tmp_path))) == ['first.json', 'second.json']


def test_a_script_begins_one_beside_that_of_hvdrun(hvdrun, tmp_path):
    jobs.run_job(2, jobs.worker('timeline.py'), tmp_path, flags=['--timeline', str(tmp_path / 'job.json')])
    assert len(named(read(tmp_path / 'job.json'), 'ALLREDUCE')) >= 6


def test_without_the_variable_a_timeline_is_refused(runtime, torch, monkeypatch):
    import horovod.torch as hvd
    monkeypatch.delenv('HOROVOD_TIMELINE', raising=False)
    hvd.shutdown()
    hvd.init()
    with pytest.raises(ValueError, match='Set HOROVOD_TIMELINE=DYNAMIC to enable dynamic timeline usage'):
        hvd.start_timeline('never.json')
    hvd.stop_timeline()
    hvd.shutdown()
    with pytest.raises(ValueError, match='init'):
        hvd.start_timeline('never.json')


def test_a_process_alone_writes_what_its_environment_names(runtime, torch, tmp_path):
    script = 'import os; os.environ["HOROVOD_TIMELINE"] = {!r}\n' \
             'import torch, horovod.torch as hvd\n' \
             'hvd.init()\n' \
             'hvd.allreduce(torch.ones(2), name="alone")\n'.format(str(tmp_path / 'alone.json'))
    path = tmp_path / 'alone.py'
    path.write_text(script)
    jobs.run_alone(str(path))
    events = read(tmp_path / 'alone.json')
    assert len(named(events, 'ALLREDUCE')) == 1 and events[-1]['name'] == 'events_lost'


def test_a_path_of_the_environment_that_cannot_be_written_stops_nobody(runtime, torch, tmp_path):
    path = tmp_path / 'alone.py'
    path.write_text('import torch, horovod.torch as hvd\nhvd.init()\nprint(hvd.allreduce(torch.ones(2)).tolist())\n')
    result = jobs.run_alone(str(path), HOROVOD_TIMELINE=str(tmp_path / 'no' / 'such.json'))
    assert '[1.0, 1.0]' in result.output and 'cannot be written' in result.output
