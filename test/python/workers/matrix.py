"""A seeded list of collectives of every kind, against NumPy; the results of a process set must have equal bits.

    matrix.py SEED CASES

All ranks draw the same cases from the seed and know what every rank brings, so each can compute what it has to get.
Several cases are in flight at a time, are submitted in another order on each rank when they have names, and are
finished in another order on each rank.
"""

import hashlib
import random
import sys

import numpy as np

import horovod.numpy as hvd_numpy
from horovod.common import registered
from horovod.common.process_sets import ProcessSet, global_process_set

try:
    import torch
    import horovod.torch as hvd_torch
    torch.set_num_threads(1)
except ImportError:  # the matrix then has the types of NumPy
    torch = None

AVERAGE, SUM, ADASUM, MIN, MAX, PRODUCT = range(6)
OPS = {AVERAGE: 'average', SUM: 'sum', ADASUM: 'adasum', MIN: 'min', MAX: 'max', PRODUCT: 'product'}
INTEGERS = ['uint8', 'int8', 'uint16', 'int16', 'int32', 'int64']
FLOATS = ['float16', 'float32', 'float64']
TORCH_ONLY = ['bfloat16', 'float8_e4m3fn', 'float8_e5m2']
# Relative precision of one rounding.
PRECISION = {'float16': 2.0 ** -11, 'bfloat16': 2.0 ** -8, 'float8_e4m3fn': 2.0 ** -4, 'float8_e5m2': 2.0 ** -3,
             'float32': 2.0 ** -23, 'float64': 2.0 ** -52}
SIZES = {'none': (0, 0), 'one': (1, 1), 'small': (2, 130), 'medium': (1000, 20000), 'large': (100000, 400000)}


def torch_types():
    if torch is None:
        return []
    # The oldest releases have the types but cannot make tensors of them.
    return [name for name in TORCH_ONLY if hasattr(torch, name)]


def has_torch_type(dtype):
    return torch is not None and hasattr(torch, dtype)


class Case(object):
    def __init__(self, number, rng, sets, window):
        self.number = number
        self.kind = rng.choice(['allreduce'] * 4 + ['allgather', 'broadcast', 'alltoall', 'reducescatter', 'barrier'])
        self.set = rng.choice(sets)
        members = self.set.ranks
        dtypes = ['bool'] + INTEGERS + FLOATS + torch_types()
        self.op = SUM
        if self.kind == 'allreduce':
            self.op = rng.choice(list(OPS))
        elif self.kind == 'reducescatter':
            self.op = rng.choice([SUM, AVERAGE])
        if self.op == ADASUM:
            dtypes = FLOATS + ['bfloat16'] * ('bfloat16' in dtypes)
        elif self.op == AVERAGE:
            dtypes.remove('bool')
        grouped = self.kind in ('allreduce', 'allgather', 'reducescatter') and rng.random() < 0.25
        self.grouped = grouped
        self.parts = []
        for _ in range(rng.randint(1, 5) if grouped else 1):
            dtype = rng.choice(dtypes)
            low, high = SIZES[rng.choices(list(SIZES), (1, 2, 6, 3, 0 if grouped else 1))[0]]
            width = rng.choice([1, 1, 3, 16])
            rows = -(-rng.randint(low, high) // width)
            if self.kind == 'alltoall' or (self.kind == 'allgather' and rng.random() < 0.7):
                rows = {rank: rng.randint(0, 2 * rows) for rank in members}
            else:
                rows = dict.fromkeys(members, rows)
            self.parts.append((dtype, rows, (width,) if width > 1 or rng.random() < 0.5 else ()))
        scaled = self.kind in ('allreduce', 'reducescatter') and self.op in (SUM, AVERAGE) and rng.random() < 0.3
        self.prescale = rng.choice([0.5, 2.0]) if scaled else 1.0
        self.postscale = rng.choice([0.5, 4.0]) if scaled else 1.0
        self.root = rng.choice(members)
        self.splits = None
        if self.kind == 'alltoall':
            self.draw_splits(rng)
        self.in_place = self.kind in ('allreduce', 'broadcast') and rng.random() < 0.4
        self.registered = rng.random() < 0.4
        self.library = 'torch' if torch is not None and (rng.random() < 0.5 or any(
            part[0] in TORCH_ONLY for part in self.parts)) else 'numpy'
        if self.library == 'torch' and not all(has_torch_type(part[0]) for part in self.parts):
            self.library = 'numpy'
        if any(part[0] in TORCH_ONLY for part in self.parts) and self.library == 'numpy':  # uint16 with bfloat16
            self.parts = [part for part in self.parts if part[0] not in TORCH_ONLY]
        self.name = 'case.{}'.format(number) if window else None

    def draw_splits(self, rng):
        dtype, rows, width = self.parts[0]
        members = self.set.ranks
        if rng.random() < 0.4:  # equal shares
            self.parts[0] = (dtype, {rank: n // len(members) * len(members) for rank, n in rows.items()}, width)
            return
        self.splits = {}
        for rank in members:
            cuts = sorted(rng.randint(0, rows[rank]) for _ in members)
            if rng.random() < 0.7:
                cuts[-1] = rows[rank]
            self.splits[rank] = [end - begin for begin, end in zip([0] + cuts, cuts)]

    def __str__(self):
        return 'case {}: {}{} {} of {} on {}, {}{}{}{}, scales {} {}, root {}, splits {}'.format(
            self.number, 'grouped ' if self.grouped else '', self.kind, OPS[self.op],
            [(dtype, sorted(set(rows.values())), width) for dtype, rows, width in self.parts], self.set.ranks,
            self.library, ' in place' if self.in_place else '', ' registered' if self.registered else '',
            ' named' if self.name else ' unnamed', self.prescale, self.postscale, self.root, self.splits)

    # ---- what everybody brings, as float64 arrays

    def brought(self, part, rank):
        """Values of which every type holds sums exactly, so that the order of additions does not matter."""
        dtype, rows, width = self.parts[part]
        shape = (rows[rank],) + width
        random_state = np.random.RandomState((7919 * self.number + 31 * part + rank) % (1 << 31))
        if dtype == 'bool':
            return random_state.randint(0, 2, shape).astype(np.float64)
        if self.op == ADASUM:
            return (random_state.randint(-64, 65, shape) / 64.0).astype(np.float64)
        if self.op == PRODUCT:
            low, high = 1, 3
        elif self.op in (AVERAGE, SUM) and dtype in INTEGERS:  # sums of them overflow, but in int64, which is no double
            bits = min(np.iinfo(dtype).bits, 48)
            low = 0 if dtype.startswith('uint') else -2 ** (bits - 1)
            high = low + 2 ** bits
        else:
            low, high = (0 if dtype.startswith('uint') else -2), 3
        return random_state.randint(low, high, shape).astype(np.float64)

    # ---- what this rank has to get

    def expected(self, rank):
        """(values as float64, allowed relative error) of each output."""
        if self.kind == 'barrier':
            return []
        return [getattr(self, 'expected_' + self.kind)(part, rank) for part in range(len(self.parts))]

    def reduced(self, part):
        dtype = self.parts[part][0]
        inputs = [self.brought(part, rank) for rank in self.set.ranks]
        integer = dtype in INTEGERS
        if self.op == ADASUM:
            return adasum(inputs), 8 * PRECISION[dtype] + 1e-7
        if dtype == 'bool':
            combine_all = np.logical_or if self.op in (SUM, MAX) else np.logical_and
            return combine_all.reduce(inputs).astype(np.float64), 0
        scaled = [x * self.prescale for x in inputs]
        if integer:
            scaled = [np.trunc(x) for x in scaled]
        if self.op in (MIN, MAX):
            total = (np.min if self.op == MIN else np.max)(scaled, 0)
        elif self.op == PRODUCT:
            total = np.prod(scaled, 0)
        else:
            total = np.sum(scaled, 0)
        total = total * self.postscale / (len(inputs) if self.op == AVERAGE else 1)
        if not integer:
            return total, 2 * PRECISION[dtype]
        return np.trunc(total).astype(np.int64).astype(dtype).astype(np.float64), 0  # integers wrap round

    def expected_allreduce(self, part, rank):
        return self.reduced(part)

    def expected_reducescatter(self, part, rank):
        total, error = self.reduced(part)
        members = self.set.ranks
        each, more = divmod(len(total), len(members))
        index = members.index(rank)
        begin = index * each + min(index, more)
        return total[begin:begin + each + (1 if index < more else 0)], error

    def expected_allgather(self, part, rank):
        return np.concatenate([self.brought(part, r) for r in self.set.ranks]), 0

    def expected_broadcast(self, part, rank):
        return self.brought(part, self.root), 0

    def splits_of(self, rank):
        if self.splits is not None:
            return self.splits[rank]
        return [self.parts[0][1][rank] // len(self.set.ranks)] * len(self.set.ranks)

    def expected_alltoall(self, part, rank):
        index = self.set.ranks.index(rank)
        pieces = []
        for sender in self.set.ranks:
            splits = self.splits_of(sender)
            begin = sum(splits[:index])
            pieces.append(self.brought(part, sender)[begin:begin + splits[index]])
        return np.concatenate(pieces), 0

    # ---- running it

    def start(self, rank):
        """Gives a function that waits for the outputs."""
        hvd = hvd_torch if self.library == 'torch' else hvd_numpy
        if self.kind == 'barrier':
            hvd.barrier(process_set=self.set)
            return lambda: []
        self.tensors = [self.tensor(part, rank) for part in range(len(self.parts))]
        kwargs = {'name': self.name, 'process_set': self.set}
        if self.kind in ('allreduce', 'reducescatter'):
            kwargs.update(op=self.op, prescale_factor=self.prescale, postscale_factor=self.postscale)
        if self.kind == 'broadcast':
            kwargs['root_rank'] = self.root
        if self.kind == 'alltoall':
            kwargs['splits'] = None if self.splits is None else self.splits[rank]
        name = ('grouped_' if self.grouped else '') + self.kind + '_async' + ('_' if self.in_place else '')
        handle = getattr(hvd, name)(self.tensors if self.grouped else self.tensors[0], **kwargs)

        def wait():
            result = hvd.synchronize(handle)
            if self.kind == 'alltoall':
                result, received = result
                index = self.set.ranks.index(rank)
                want = [self.splits_of(sender)[index] for sender in self.set.ranks]
                assert received.tolist() == want, (str(self), received, want)
            return list(result) if self.grouped else [result]

        return wait

    def tensor(self, part, rank):
        dtype = self.parts[part][0]
        values = self.brought(part, rank)
        if self.library == 'numpy':
            tensor = values.astype(dtype)
            if self.registered and tensor.size:
                home = np.frombuffer(registered.allocate(tensor.nbytes), dtype, tensor.size).reshape(tensor.shape)
                home[...] = tensor
                return home
            return tensor
        tensor = torch.from_numpy(values).to(getattr(torch, dtype))
        if self.registered and tensor.numel():
            home = torch.frombuffer(registered.allocate(tensor.numel() * tensor.element_size()), dtype=tensor.dtype,
                                    count=tensor.numel()).view(tensor.shape)
            home.copy_(tensor)
            return home
        return tensor

    def check(self, outputs, rank):
        """A hash of the bytes."""
        digest = hashlib.sha256()
        for output, (want, error) in zip(outputs, self.expected(rank)):
            got = output.to(torch.float64).numpy() if self.library == 'torch' else output.astype(np.float64)
            assert got.shape == want.shape, (str(self), got.shape, want.shape)
            close = np.abs(got - want) <= error * np.maximum(np.abs(want), 1 if self.op == ADASUM else 0)
            assert close.all(), '{}\nrank {} got {}\nbut wants {}'.format(
                self, rank, got[~close][:8], want[~close][:8])
            digest.update(got.tobytes())
        if not self.in_place and self.kind != 'barrier':
            for part, tensor in enumerate(self.tensors):
                own = tensor.to(torch.float64).numpy() if self.library == 'torch' else tensor.astype(np.float64)
                assert np.array_equal(own, self.brought(part, rank)), (str(self), 'the input changed')
        return digest.hexdigest()

    def same_everywhere(self):
        return self.kind in ('allreduce', 'allgather', 'broadcast')


def adasum(vectors):
    """Pairs level by level; the odd one passes."""
    while len(vectors) > 1:
        level = [combine(a, b) for a, b in zip(vectors[::2], vectors[1::2])]
        vectors = level + ([vectors[-1]] if len(vectors) % 2 else [])
    return vectors[0]


def combine(a, b):
    dot, of_a, of_b = (a * b).sum(), (a * a).sum(), (b * b).sum()
    return (1 - dot / (2 * of_a) if of_a else 1.0) * a + (1 - dot / (2 * of_b) if of_b else 1.0) * b


def make_sets(size):
    """The even ranks, the odd ones, and some that overlap with both."""
    lists = [list(range(0, size, 2)), list(range(1, size, 2)), list(range(size // 2 + 1)), [size - 1]]
    sets = []
    for ranks in lists:
        if ranks and ranks not in [s.ranks for s in sets] and len(ranks) < size:
            sets.append(ProcessSet(ranks))
    return sets


def run_window(cases, rank, own_order):
    """Runs cases that are in flight together; gives their hashes."""
    mine = [case for case in cases if rank in case.set.ranks]
    if all(case.name for case in mine) and not any(case.kind == 'barrier' for case in mine):
        own_order.shuffle(mine)
    waits = [(case, case.start(rank)) for case in mine]
    own_order.shuffle(waits)
    return {case.number: case.check(wait(), rank) for case, wait in waits}


def main(seed, count):
    hvd_numpy.init()
    size = hvd_numpy.size()
    sets = make_sets(size)
    hvd_numpy.init(process_sets=sets)
    rank = hvd_numpy.rank()
    rng, own_order = random.Random(seed), random.Random(1000 * seed + rank)
    sets = [global_process_set] * 2 + sets
    number = 0
    while number < count:
        named = rng.random() < 0.7
        cases = []
        for _ in range(rng.choice([1, 1, 4, 12])):
            cases.append(Case(number, rng, sets, named))
            number += 1
        try:
            hashes = run_window(cases, rank, own_order)
        except Exception:
            print('rank {}, seed {}, in flight:\n  {}'.format(rank, seed, '\n  '.join(map(str, cases))), flush=True)
            raise
        everywhere = hvd_numpy.allgather_object(hashes)
        for case in cases:
            found = {one[case.number] for one in everywhere if case.number in one}
            assert not case.same_everywhere() or len(found) == 1, 'ranks differ: {}'.format(case)
    sys.stdout.write('ok\n')  # in one write: mpirun mixes those of several ranks
    sys.stdout.flush()


main(int(sys.argv[1]), int(sys.argv[2]))
