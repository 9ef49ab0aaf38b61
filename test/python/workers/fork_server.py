"""Has imported PyTorch, and forks processes that run a script as `python SCRIPT ARGUMENTS` does, so that each of them starts at once.

    fork_server.py FD

Each line from the socket FD is a request as JSON, and each gets one number as an answer:
{"run": [script, argument...], "environment": {...}, "output": path}    the pid
{"poll": pid}, {"wait": pid}                                            the return code as of subprocess; null while it runs
"""

import json
import os
import runpy
import signal
import socket
import sys

import torch  # noqa: F401


def code_of(status):
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def serve(connection, stream):
    """Returns in each forked process alone: its request."""
    running = set()
    for line in iter(stream.readline, ''):
        request = json.loads(line)
        if 'run' in request:
            answer = os.fork()
            if answer == 0:
                connection.detach()
                os.close(int(sys.argv[1]))
                return request
            running.add(answer)
        else:
            pid, flags = (request['poll'], os.WNOHANG) if 'poll' in request else (request['wait'], 0)
            found, status = os.waitpid(pid, flags)
            answer = code_of(status) if found else None
            running.discard(found)
        stream.write(json.dumps(answer) + '\n')
        stream.flush()
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


def become(request):
    os.setsid()
    output = os.open(request['output'], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(output)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(request['environment'])
    sys.argv = request['run']
    sys.path[0] = os.path.dirname(sys.argv[0])


connection = socket.socket(fileno=int(sys.argv[1]))
become(serve(connection, connection.makefile('rw')))
runpy.run_path(sys.argv[0], run_name='__main__')
