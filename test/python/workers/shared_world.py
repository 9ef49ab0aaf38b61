"""A rank of a world that many tests share (worlds.py): imports PyTorch once, and runs one worker after the other.

    shared_world.py SOCKET

Each line that comes from SOCKET is a case as JSON: the script, its arguments, its environment. The script runs as by
`python SCRIPT ARGUMENTS`; then the world is shut down, and the outcome of this rank goes back. After a failure no
further case comes: the job is ended. What the runtime itself writes ends with a line of each rank, END_OF_CASE.
"""

import contextlib
import faulthandler
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import sys
import traceback
import warnings


def import_package():
    """Before the first worker: what it replaces in a module is put back only if the module was there before."""
    for name in ('horovod.numpy', 'horovod.torch', 'horovod.torch.elastic', 'horovod.torch.gradient_buckets',
                 'horovod.torch.gradient_memory'):
        try:
            importlib.import_module(name)
        except ImportError:  # there is no NumPy, or no PyTorch
            pass


def constants():
    """{module: what a worker may have replaced in it: constants and functions of the package}."""
    def is_kept(name, value):
        return name.isupper() or callable(value)

    return {module: {name: value for name, value in vars(module).items() if is_kept(name, value)}
            for path, module in sorted(sys.modules.items()) if path.split('.')[0] == 'horovod'}


@contextlib.contextmanager
def restored(case):
    """Puts back what a worker changes: environment, arguments, signal handlers, constants of the package, warnings."""
    environment, arguments, before = dict(os.environ), sys.argv, constants()
    for name, value in case['environment'].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    sys.argv = [case['script']] + case['arguments']
    try:
        with warnings.catch_warnings():
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sys.argv = arguments
        os.environ.clear()
        os.environ.update(environment)
        for module, values in before.items():
            vars(module).update(values)


def run(script):
    """None, or why the script failed."""
    own = os.getpid()
    try:
        runpy.run_path(script, run_name='__main__')
    except SystemExit as end:
        return None if end.code in (None, 0) else 'exit: {}'.format(end.code)
    except BaseException:
        return traceback.format_exc()
    finally:
        if os.getpid() != own:  # a child that the script has forked
            os._exit(0)


def outcome(case):
    output = io.StringIO()
    with restored(case), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        error = run(case['script'])
    gc.collect()
    if error is None:
        from horovod.common.basics import HorovodBasics
        HorovodBasics().shutdown()
        for name in ('horovod.numpy.mpi_ops', 'horovod.torch.mpi_ops'):  # handles that the worker left
            if name in sys.modules:
                sys.modules[name]._handle_map.clear()
    os.write(2, b'END_OF_CASE\n')
    return {'error': error, 'output': output.getvalue()}


def main(path):
    faulthandler.register(signal.SIGUSR1)  # where a rank hangs
    import_package()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    stream = connection.makefile('rw')

    def send(answer):
        stream.write(json.dumps(answer) + '\n')
        stream.flush()

    send({'rank': int(os.environ.get('RANK', 0)), 'pid': os.getpid()})
    for line in iter(stream.readline, ''):
        send(outcome(json.loads(line)))


main(sys.argv[1])
