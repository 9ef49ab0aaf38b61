"""A training job whose data come from the workers of another job: each element once to each rank, or once to all of them together."""

import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
import tensorflow as tf  # noqa: E402

import horovod.tensorflow as hvd  # noqa: E402
from horovod.tensorflow.data.compute_service import TfDataServiceConfig, tf_data_service  # noqa: E402

hvd.init()
config = TfDataServiceConfig.read(sys.argv[1], wait_for_file_creation=True)
RANK, SIZE = hvd.rank(), hvd.size()
# The workers run this function, which has no Python in it.
dataset = tf.data.Dataset.range(40).map(lambda x: x * x)

own = sorted(int(x) for x in dataset.send_to_data_service(config, RANK, SIZE))
assert own == [x * x for x in range(40)], own

if config.dispatchers == 1:  # ranks that have a dispatcher in common share its data
    shared = dataset.repeat(5).batch(2).send_to_data_service(config, RANK, SIZE, reuse_dataset=True)
    everything = sum(hvd.allgather_object([int(x) for batch in shared for x in batch]), [])
    assert sorted(everything) == sorted(5 * [x * x for x in range(40)]), len(everything)

with tf_data_service(config, RANK) as address:
    third = dataset.apply(tf.data.experimental.service.distribute('distributed_epoch', address))
    assert len(list(third)) == 40
try:
    dataset.send_to_data_service(config, RANK, round_robin=True)
    raise AssertionError('no error')
except ValueError as error:
    assert 'size' in str(error)
hvd.broadcast_object(None)  # all ranks are done
if RANK == 0:
    config.compute_client().shutdown()
print('ok', flush=True)
