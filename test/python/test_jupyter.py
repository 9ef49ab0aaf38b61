"""horovod.run() in a real Jupyter kernel: results, output in the cell, the exception of a rank, an interrupt, all in one kernel. With the
interpreter of an environment that has ipykernel and cloudpickle (scripts/install_deps.sh --pypi-jupyter); of --soak."""

import os
import queue
import re
import time

import pytest

import jobs
from slowness import scaled

jupyter_client = pytest.importorskip('jupyter_client', reason='jupyter_client is missing: scripts/install_deps.sh --pypi-jupyter')
pytest.importorskip('ipykernel', reason='ipykernel is missing: scripts/install_deps.sh --pypi-jupyter')
pytest.importorskip('cloudpickle', reason='cloudpickle is missing: scripts/install_deps.sh --pypi-jupyter')


class Cell:
    """What a cell did: its stdout and stderr, the repr of its value, and the name and text of its exception."""

    def __init__(self):
        self.stdout = self.stderr = self.value = self.exception = self.traceback = ''


class Kernel:
    def __init__(self, hvdrun):
        environment = {**jobs.environment(), 'PATH': os.path.dirname(hvdrun) + os.pathsep + os.environ['PATH']}
        self.manager, self.client = jupyter_client.manager.start_new_kernel(env=environment, startup_timeout=scaled(60))

    def begin(self, code):
        return self.client.execute(code)

    def end(self, message, cell, until='idle', timeout_s=90):
        """Reads what the kernel publishes; until: that text in stdout, or that the cell is done."""
        deadline = time.monotonic() + scaled(timeout_s)
        while time.monotonic() < deadline:
            try:
                told = self.client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if told['parent_header'].get('msg_id') != message:
                continue
            content = told['content']
            if told['msg_type'] == 'stream':
                setattr(cell, content['name'], getattr(cell, content['name']) + content['text'])
            elif told['msg_type'] == 'execute_result':
                cell.value = content['data']['text/plain']
            elif told['msg_type'] == 'error':
                cell.exception, cell.traceback = content['ename'], '\n'.join(content['traceback'])
            elif told['msg_type'] == 'status' and content['execution_state'] == 'idle':
                return cell
            if until != 'idle' and until in cell.stdout:
                return cell
        raise AssertionError(f'the cell did not come to {until}: {vars(cell)}')

    def run(self, code):
        return self.end(self.begin(code), Cell())

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(hvdrun):
    made = Kernel(hvdrun)
    yield made
    made.close()


@pytest.mark.deadline(240)
def test_a_notebook_runs_functions_of_its_cells(kernel):
    assert kernel.run('import horovod').exception == ''
    # Of the notebook itself, with a value of an earlier cell.
    kernel.run('factor = 10\n'
               'def place(x):\n'
               '    import horovod.common.basics as basics\n'
               '    hvd = basics.shared()\n'
               '    hvd.init()\n'
               '    print("rank", hvd.rank(), "is here", flush=True)\n'
               '    return hvd.rank() * factor + x')
    cell = kernel.run('horovod.run(place, (1,), num_proc=3)')
    assert cell.value == '[1, 11, 21]', vars(cell)
    shown = re.sub('\x1b\\[[0-9;]*m', '', cell.stdout)  # a notebook shows colours
    assert all(f'[{rank}]<stdout>:rank {rank} is here' in shown for rank in range(3)), vars(cell)
    # The exception of a rank, with its traceback; the kernel goes on.
    cell = kernel.run('def fails():\n    raise ValueError("no such thing")\nhorovod.run(fails, num_proc=2)')
    assert cell.exception == 'RuntimeError' and 'no such thing' in cell.traceback and 'ValueError' in cell.traceback, vars(cell)
    # The stop button.
    cell, message = Cell(), kernel.begin('def waits():\n    import time\n    print("waiting", flush=True)\n    time.sleep(600)\n'
                                         'horovod.run(waits, num_proc=2)')
    kernel.end(message, cell, until='waiting')
    kernel.manager.interrupt_kernel()
    assert kernel.end(message, cell).exception == 'KeyboardInterrupt', vars(cell)
    assert kernel.run('horovod.run(place, (2,), num_proc=2)').value == '[2, 12]'
