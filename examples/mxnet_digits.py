"""Trains a classifier of handwritten digits (scikit-learn's, 1,797 images) with MXNet's gluon on all ranks.

    hvdrun -np 2 python examples/mxnet_digits.py
"""

import argparse

import horovod.mxnet as hvd
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from sklearn.datasets import load_digits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=10)
    parser.add_argument('--batch', type=int, default=32, help='images per rank and step')
    args = parser.parse_args()

    hvd.init()
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.data))  # the same on all ranks
    images, labels = (digits.data[order] / 16).astype('float32'), digits.target[order].astype('float32')
    mine = np.arange(297, len(images))[:1500 // hvd.size() * hvd.size()][hvd.rank()::hvd.size()]

    net = gluon.nn.Sequential()
    net.add(gluon.nn.Dense(64, activation='relu'), gluon.nn.Dense(10))
    net.initialize(mx.init.Xavier())
    hvd.broadcast_parameters(net.collect_params(), root_rank=0)  # each as soon as its shape is known
    trainer = hvd.DistributedTrainer(net.collect_params(), 'adam', {'learning_rate': 1e-3 * hvd.size()})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    for epoch in range(args.epochs):
        shuffled = np.random.RandomState(epoch).permutation(mine)
        for begin in range(0, len(shuffled) - args.batch + 1, args.batch):
            batch = shuffled[begin:begin + args.batch]
            with autograd.record():
                loss = loss_of(net(mx.nd.array(images[batch])), mx.nd.array(labels[batch]))
            loss.backward()
            trainer.step(args.batch)
    right = (net(mx.nd.array(images[:297])).argmax(axis=1) == mx.nd.array(labels[:297])).mean().asscalar()
    weights = {parameter.data().asnumpy().tobytes() for parameter in net.collect_params().values()}
    equal = len({frozenset(each) for each in hvd.allgather_object(weights)}) == 1
    if hvd.rank() == 0:
        print('accuracy {:.3f}; parameters are equal on all ranks: {}'.format(right, equal))


if __name__ == '__main__':
    main()
