"""run_loops.py FOLDER NAME...: one rank of the job that runs the loops of these names, one after another.

Writes FOLDER/NAME.RANK for each: JSON with `ok`, `why` it is not, and a `digest` of the exact result. A loop that ends with an
exception ends the job, since its world may be in any state; the test starts another one for the rest.
"""

import functools
import gc
import hashlib
import importlib
import json
import math
import os
import random
import sys
import time
import traceback

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import horovod.torch as hvd  # noqa: E402


def flatten(value, place=''):
    """Pairs (place, tensor or number) of everything in a result."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value, key=str) for leaf in flatten(value[key], '{}[{}]'.format(place, key))]
    if isinstance(value, (list, tuple)):
        return [leaf for number, item in enumerate(value) for leaf in flatten(item, '{}[{}]'.format(place, number))]
    return [(place, value)]


def difference(name, result, expected, tolerance):
    """A sentence about the first value that is not as expected, or None."""
    result, expected = flatten(result), flatten(expected)
    if [place for place, _ in result] != [place for place, _ in expected]:
        return '{} returned {} but one process {}'.format(name, [p for p, _ in result], [p for p, _ in expected])
    for (place, got), (_, wanted) in zip(result, expected):
        if isinstance(got, torch.Tensor) or isinstance(wanted, torch.Tensor):
            got, wanted = torch.as_tensor(got), torch.as_tensor(wanted)
            equal = got.shape == wanted.shape and torch.allclose(
                got.to(torch.complex128 if got.is_complex() else torch.float64),
                wanted.to(torch.complex128 if wanted.is_complex() else torch.float64),
                rtol=tolerance, atol=tolerance, equal_nan=True)
        elif isinstance(wanted, float):
            equal = math.isclose(got, wanted, rel_tol=tolerance, abs_tol=tolerance)
        else:
            equal = got == wanted
        if not equal:
            return '{}: {} is {}, but one process has {}'.format(name, place or 'the result', got, wanted)
    return None


def digest(result):
    text = hashlib.sha256()
    for place, value in flatten(result):
        if isinstance(value, torch.Tensor):
            exact = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
            text.update(exact.double().contiguous().numpy().tobytes())
        text.update('{}={}'.format(place, '' if isinstance(value, torch.Tensor) else value).encode())
    return text.hexdigest()


def get_out_of_step(name):
    """Ranks come to backward() and to zero_grad() early or late, and find garbage at other times. Gives what puts back."""
    chance = random.Random('{} {}'.format(name, hvd.rank()))
    replaced = [(torch.Tensor, 'backward'), (torch.optim.Optimizer, 'zero_grad'), (torch.nn.Module, 'zero_grad')]
    before = [getattr(*place) for place in replaced]

    def late(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if chance.random() < 0.3:
                time.sleep(0.03 * chance.random())
            if chance.random() < 0.1:
                gc.collect()
            return function(*args, **kwargs)
        return call

    for (owner, attribute), function in zip(replaced, before):
        setattr(owner, attribute, late(function))
    (gc.disable if chance.random() < 0.5 else gc.enable)()

    def put_back():
        gc.enable()
        for (owner, attribute), function in zip(replaced, before):
            setattr(owner, attribute, function)

    return put_back


def run(folder, name):
    loop = importlib.import_module('loops.' + name)
    torch.manual_seed(0)
    answer = {'ok': False, 'why': None, 'digest': None, 'raised': False}
    put_back = get_out_of_step(name) if os.environ.get('LOOPS_OUT_OF_STEP') else lambda: None
    try:
        result = loop.distributed(hvd)
        put_back()
        torch.manual_seed(0)
        answer['why'] = difference(name, result, loop.alone(hvd.size()), getattr(loop, 'TOLERANCE', 1e-5))
        answer['ok'] = answer['why'] is None
        answer['digest'] = digest(result)
    except BaseException:
        answer.update(why=traceback.format_exc(), raised=True)
        raise
    finally:
        path = os.path.join(folder, '{}.{}'.format(name, hvd.rank()))
        with open(path + '.part', 'w') as file:
            json.dump(answer, file)
        os.rename(path + '.part', path)


def main():
    hvd.init()
    torch.set_num_threads(1)
    for name in sys.argv[2:]:
        print('loop', name, flush=True)
        run(sys.argv[1], name)
        hvd.barrier()


if __name__ == '__main__':
    main()
