"""Trains a classifier of handwritten digits (scikit-learn's, 1,797 images) with JAX on all ranks.

    hvdrun -np 2 python examples/jax_digits.py
"""

import argparse

import horovod.jax as hvd
import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits


def initial(key):
    sizes = [64, 64, 10]
    layers = []
    for number, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        weights = jax.random.normal(jax.random.fold_in(key, number), (inputs, outputs)) * (2 / inputs) ** 0.5
        layers.append((weights, jnp.zeros(outputs)))
    return layers


def logits(params, images):
    (w1, b1), (w2, b2) = params
    return jax.nn.relu(images @ w1 + b1) @ w2 + b2


def loss_of(params, images, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits(params, images), labels).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=15)
    parser.add_argument('--batch', type=int, default=32, help='images per rank and step')
    args = parser.parse_args()

    hvd.init()
    digits = load_digits()
    images, labels = jnp.asarray(digits.data / 16, jnp.float32), jnp.asarray(digits.target)
    order = jax.random.permutation(jax.random.key(0), len(images))  # the same on all ranks
    test, train = order[:297], order[297:]
    mine = train[:len(train) // hvd.size() * hvd.size()][hvd.rank()::hvd.size()]

    params = hvd.broadcast_parameters(initial(jax.random.key(hvd.rank())), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optax.adam(1e-3 * hvd.size()))
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params, opt_state, images, labels):
        loss, gradients = jax.value_and_grad(loss_of)(params, images, labels)
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, hvd.allreduce(loss)

    for epoch in range(args.epochs):
        shuffled = mine[jax.random.permutation(jax.random.key(epoch), len(mine))]
        for begin in range(0, len(shuffled) - args.batch + 1, args.batch):
            batch = shuffled[begin:begin + args.batch]
            params, opt_state, loss = step(params, opt_state, images[batch], labels[batch])
        if hvd.rank() == 0 and epoch % 5 == 4:
            print('epoch {}: loss {:.3f}'.format(epoch + 1, float(loss)))
    right = (logits(params, images[test]).argmax(axis=1) == labels[test]).mean()
    total = float(sum(jnp.abs(leaf).sum() for leaf in jax.tree_util.tree_leaves(params)))
    totals = hvd.allgather_object(total)
    if hvd.rank() == 0:
        print('accuracy {:.3f}; parameters are equal on all ranks: {}'.format(float(right), len(set(totals)) == 1))


if __name__ == '__main__':
    main()
