"""Trains a classifier of handwritten digits with Keras on several processes.

    hvdrun -np 2 python examples/tensorflow_digits.py

Needs TensorFlow and scikit-learn, which has the data: 1,797 scans of 8 x 8 pixels. Without hvdrun the script trains alone.
"""

import argparse

import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import horovod.tensorflow.keras as hvd


def main():
    parser = argparse.ArgumentParser(description='Handwritten digits with horovod.tensorflow.keras')
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=64, help='samples per step, of all processes together')
    arguments = parser.parse_args()

    hvd.init()
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split((images - 8.0) / 8.0, labels, test_size=0.2, random_state=0, stratify=labels)
    # Each process has its own part; the same number of steps on each.
    share = len(train_x) // hvd.size()
    mine = slice(hvd.rank() * share, (hvd.rank() + 1) * share)

    model = tf.keras.Sequential([
        tf.keras.Input((64,)), tf.keras.layers.Dense(128, activation='relu'), tf.keras.layers.Dense(64, activation='relu'),
        tf.keras.layers.Dense(10)])
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1, momentum=0.9)),
                  loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=['accuracy'])
    model.fit(train_x[mine], train_y[mine], batch_size=arguments.batch_size // hvd.size(), epochs=arguments.epochs,
              verbose=2 if hvd.rank() == 0 else 0,
              callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()])
    accuracy = hvd.allreduce(model.evaluate(test_x, test_y, verbose=0)[1])
    if hvd.rank() == 0:
        print('test accuracy: {:.4f}'.format(accuracy), flush=True)


if __name__ == '__main__':
    main()
