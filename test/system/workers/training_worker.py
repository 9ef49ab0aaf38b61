"""A rank that trains a small model by gradient descent and prints what came out, bit by bit; needs NumPy.

usage: training_worker.py STEP...   each step is one of
  train       50 steps of a logistic regression; prints a digest of the weights
  big         adds up 64 MiB over all ranks and checks every number
  talk        prints 20 lines after each of 100 sums of a megabyte
  again       leaves the world and begins a new one
  busy        adds up again and again until it fails; prints its pid first
"""

import hashlib
import os
import sys

import numpy as np

import horovod.numpy as hvd


def train():
    source = np.random.RandomState(hvd.rank())
    inputs = source.standard_normal((256, 64)).astype(np.float32)
    labels = (inputs[:, :8].sum(axis=1) > 0).astype(np.float32)
    weights = np.zeros(64, dtype=np.float32)
    for step in range(50):
        guess = 1 / (1 + np.exp(-(inputs @ weights)))
        gradient = inputs.T @ (guess - labels) / np.float32(len(labels))
        weights -= hvd.allreduce(gradient, name='gradient', op=hvd.Average)
    print('weights', hashlib.sha256(weights.tobytes()).hexdigest(), flush=True)


def big():
    count = 16 << 20
    numbers = np.arange(count, dtype=np.float32) % 1000 + hvd.rank()
    total = hvd.allreduce(numbers, name='big', op=hvd.Sum)
    size = hvd.size()
    expected = (np.arange(count, dtype=np.float32) % 1000) * size + size * (size - 1) / 2
    assert (total == expected).all()
    print('big', flush=True)


def talk():
    for step in range(100):
        assert (hvd.allreduce(np.ones(125_000), name='talk', op=hvd.Sum) == hvd.size()).all()
        for line in range(20):
            print('line', step, line, '.' * 200, flush=True)


def again():
    hvd.shutdown()
    hvd.init()


def busy():
    hvd.allreduce(np.ones(4), name='first')
    print('busy', hvd.rank(), os.getpid(), flush=True)
    try:
        while True:
            hvd.allreduce(np.ones(200_000), name='more')
    except hvd.HorovodInternalError as error:
        print('told:', error, flush=True)
        sys.exit(3)


hvd.init()
for word in sys.argv[1:]:
    {'train': train, 'big': big, 'talk': talk, 'again': again, 'busy': busy}[word]()
hvd.shutdown()
