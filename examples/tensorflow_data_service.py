"""Trains a classifier of handwritten digits whose samples another job shuffles, distorts and puts into batches.

    hvdrun -np 2 python -m horovod.tensorflow.data.compute_worker service.json &
    hvdrun -np 2 python examples/tensorflow_data_service.py service.json

Needs TensorFlow and scikit-learn, which has the data: 1,797 scans of 8 x 8 pixels. The two jobs may run on different hosts, if both
can read the file.
"""

import argparse

import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import horovod.tensorflow.keras as hvd
from horovod.tensorflow.data.compute_service import TfDataServiceConfig


def distorted(images, labels):
    return images + tf.random.normal(tf.shape(images), stddev=0.05, dtype=images.dtype), labels


def main():
    parser = argparse.ArgumentParser(description='Handwritten digits with the data service of horovod.tensorflow')
    parser.add_argument('service', help='the file that the job of the workers writes')
    parser.add_argument('--epochs', type=int, default=8)
    parser.add_argument('--batch-size', type=int, default=64, help='samples per step, of all processes together')
    arguments = parser.parse_args()

    hvd.init()
    service = TfDataServiceConfig.read(arguments.service, wait_for_file_creation=True)
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split((images - 8.0) / 8.0, labels, test_size=0.2, random_state=0, stratify=labels)
    # Without an end: each process takes as many steps as the others.
    dataset = (tf.data.Dataset.from_tensor_slices((train_x, train_y)).repeat().shuffle(len(train_x)).map(distorted)
               .batch(arguments.batch_size // hvd.size())
               .send_to_data_service(service, hvd.rank(), hvd.size(), reuse_dataset=True)
               .prefetch(tf.data.AUTOTUNE))

    model = tf.keras.Sequential([
        tf.keras.Input((64,)), tf.keras.layers.Dense(128, activation='relu'), tf.keras.layers.Dense(64, activation='relu'),
        tf.keras.layers.Dense(10)])
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1, momentum=0.9)),
                  loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=['accuracy'])
    model.fit(dataset, steps_per_epoch=len(train_x) // arguments.batch_size, epochs=arguments.epochs,
              verbose=2 if hvd.rank() == 0 else 0,
              callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()])
    accuracy = hvd.allreduce(model.evaluate(test_x, test_y, verbose=0)[1])
    if hvd.rank() == 0:
        print('test accuracy: {:.4f}'.format(accuracy), flush=True)
        service.compute_client().shutdown()  # the workers end


if __name__ == '__main__':
    main()
