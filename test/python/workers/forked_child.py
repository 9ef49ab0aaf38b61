"""A forked child touches the API: one sentence for each call, and the parent's world lives on."""

import multiprocessing
import os
import sys

import torch

import horovod.torch as hvd


def touch(connection):
    answers = []
    for call in (lambda: hvd.allreduce(torch.ones(2), name='child'), hvd.init, hvd.barrier,
                 lambda: hvd.broadcast_object(1)):
        try:
            answers.append(('nothing', repr(call())))
        except Exception as error:
            answers.append((type(error).__name__, str(error)))
    answers.append((hvd.is_initialized(), hvd.rank(), hvd.size()))
    hvd.shutdown()
    connection.send(answers)
    connection.close()
    sys.exit(0)  # with exit handlers, which must not shut the parent's world down


def main():
    hvd.init()
    keep = hvd.allreduce(torch.ones(2), op=hvd.Sum, name='before')
    context = multiprocessing.get_context('fork')
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=touch, args=(sender,))
    child.start()
    answers = receiver.recv()
    child.join(30)
    assert child.exitcode == 0, child.exitcode
    for kind, text in answers[:-1]:
        assert kind == 'RuntimeError', (kind, text)
        assert 'forked' in text and '\n' not in text, text
    assert answers[-1] == (True, hvd.rank(), hvd.size()), answers[-1]
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    os.waitpid(pid, 0)
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum, name='after').tolist() == [hvd.size()] * 2
    assert keep.tolist() == [hvd.size()] * 2
    hvd.barrier()
    print('ok', flush=True)


main()
