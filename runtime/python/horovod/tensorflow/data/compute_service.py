"""tf.data's own service under hvdrun: a job of dispatchers and workers that prepares the data of a training job.

A file that both jobs read says where the job of the workers has its ComputeService, by which dispatchers, workers and the training job
find each other. See docs/tensorflow.md.
"""

import contextlib
import dataclasses
import json
import os
import tempfile
import time

import tensorflow as tf

from horovod.runner.common.service.compute_service import ComputeClient
from horovod.runner.common.util.env import get_env_rank_and_size

_SIDES = ('training', 'compute')

# Those of this process. They run as long as it lives: ranks that have not finished may still use them.
_dispatchers = []


@dataclasses.dataclass(frozen=True)
class TfDataServiceConfig:
    """What the training job has to know about the job of the workers.

    Its values: `dispatchers`, the number of dispatchers; `workers_per_dispatcher`, the number of workers of each; `dispatcher_side`, the job
    whose ranks run the dispatchers, 'compute' or 'training'; `addresses`, what ComputeService.addresses() returns; `key`, the
    key of the service, bytes; `timeout`, how many seconds to wait for processes of the other job, 60 by default.
    """

    dispatchers: int
    workers_per_dispatcher: int
    dispatcher_side: str
    addresses: dict
    key: bytes = dataclasses.field(repr=False)
    timeout: int = 60

    def __post_init__(self):
        if self.dispatcher_side not in _SIDES:
            raise ValueError('dispatcher_side is {!r}; it has to be training or compute.'.format(self.dispatcher_side))

    def compute_client(self, verbose=1):
        """A client of the service.

        Args:
            verbose: Ignored; there for scripts written for Horovod.

        Returns: A ComputeClient.
        """
        return ComputeClient(self.addresses, self.key, verbose=verbose)

    def to_dict(self):
        """The same as a dictionary that JSON can carry.

        Returns: A dictionary.
        """
        config = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        config['addresses'] = {name: [list(address) for address in addresses] for name, addresses in self.addresses.items()}
        config['key'] = self.key.hex()
        return config

    @staticmethod
    def from_dict(config):
        """Undoes to_dict().

        Args:
            config: A dictionary.

        Returns: A TfDataServiceConfig.
        """
        config = dict(config)
        config['addresses'] = {name: [tuple(address) for address in addresses]
                               for name, addresses in config['addresses'].items()}
        config['key'] = bytes.fromhex(config['key'])
        return TfDataServiceConfig(**config)

    def write(self, filename):
        """Writes it to a file, at once, that the user alone may read: it has the key.

        Args:
            filename: The path.
        """
        folder = os.path.dirname(os.path.abspath(filename))
        descriptor, path = tempfile.mkstemp(dir=folder, prefix=os.path.basename(filename) + '.')
        try:
            with os.fdopen(descriptor, 'w') as file:
                json.dump(self.to_dict(), file)
            os.replace(path, filename)
        except BaseException:
            os.unlink(path)
            raise

    @staticmethod
    def read(filename, wait_for_file_creation=False):
        """Reads what write() wrote.

        Args:
            filename: The path.
            wait_for_file_creation: Whether to wait until there is such a file.

        Returns: A TfDataServiceConfig.
        """
        while wait_for_file_creation and not os.path.exists(filename):
            time.sleep(0.1)
        with open(filename) as file:
            return TfDataServiceConfig.from_dict(json.load(file))


def _start_dispatcher(compute, dispatcher_id):
    compute.connect()
    server = tf.data.experimental.service.DispatchServer(tf.data.experimental.service.DispatcherConfig(port=0))
    _dispatchers.append(server)
    port = server.target.rsplit(':', 1)[1]
    compute.register_dispatcher(dispatcher_id, 'grpc://{}:{}'.format(compute.own_address(), port))


def _address_of_dispatcher(compute, config, rank):
    """The address of the dispatcher for this rank of the training job; starts it if that is this rank's task."""
    if config.dispatcher_side == 'training' and rank < config.dispatchers and not _dispatchers:
        _start_dispatcher(compute, rank)
    dispatcher_id = rank % config.dispatchers
    address = compute.wait_for_dispatcher_registration(dispatcher_id, config.timeout)
    compute.wait_for_dispatcher_worker_registration(dispatcher_id, config.timeout)
    return address


@contextlib.contextmanager
def tf_data_service(compute_config, rank):
    """In a training job: gives the address of the dispatcher that serves a rank, once its workers are ready.

    Args:
        compute_config: A TfDataServiceConfig.
        rank: The rank of the training job.

    Returns: A context manager; its value is an address for tf.data.experimental.service.distribute().

    Raises:
        TimeoutException: A process of the other job has not come.

    Example:

        with tf_data_service(config, hvd.rank()) as address:
            dataset = dataset.apply(tf.data.experimental.service.distribute('distributed_epoch', address))
    """
    yield _address_of_dispatcher(compute_config.compute_client(verbose=2), compute_config, rank)


def send_to_data_service(dataset, compute_config, rank, size=None, processing_mode='distributed_epoch', reuse_dataset=False,
                         round_robin=False):
    """Has what a dataset does so far done by the workers. Also a method of tf.data.Dataset, once this module is imported.

    Args:
        dataset: A tf.data.Dataset.
        compute_config: A TfDataServiceConfig.
        rank: The rank of the training job.
        size: Number of ranks of it; for round_robin.
        processing_mode: See tf.data.experimental.service.distribute.
        reuse_dataset: Whether all ranks share one pass over the data, of which each gets a part; otherwise each gets all data.
        round_robin: Whether shared data go to the ranks in turn. The dataset has to be infinite then.

    Returns: A dataset.

    Raises:
        ValueError: round_robin without size, or without reuse_dataset.
        TimeoutException: A process of the other job has not come.

    Example:

        dataset = dataset.map(decode).batch(64).send_to_data_service(config, hvd.rank(), hvd.size(), reuse_dataset=True)
    """
    if round_robin and (size is None or not reuse_dataset):
        raise ValueError('round_robin=True needs the argument size, and reuse_dataset=True.')
    with tf_data_service(compute_config, rank) as address:
        return dataset.apply(tf.data.experimental.service.distribute(
            processing_mode=processing_mode, service=address, job_name='job' if reuse_dataset else None,
            consumer_index=rank if round_robin else None, num_consumers=size if round_robin else None))


tf.data.Dataset.send_to_data_service = send_to_data_service


def compute_worker_fn(compute_config):
    """What each rank of the job of the workers runs: a worker, and on some ranks a dispatcher, until the training job ends it.

    Args:
        compute_config: A TfDataServiceConfig. The job has dispatchers * workers_per_dispatcher ranks.

    Raises:
        ValueError: It has another number of ranks.
        TimeoutException: The dispatcher, of the training job, has not come.
    """
    rank, size = get_env_rank_and_size()
    workers = compute_config.workers_per_dispatcher
    if size != compute_config.dispatchers * workers:
        raise ValueError('The job has {} ranks, but {} dispatchers with {} workers each need {}.'.format(
            size, compute_config.dispatchers, workers, compute_config.dispatchers * workers))
    compute = compute_config.compute_client(verbose=2)
    dispatcher_id = rank // workers
    if compute_config.dispatcher_side == 'compute' and rank % workers == 0:
        _start_dispatcher(compute, dispatcher_id)
    address = compute.wait_for_dispatcher_registration(dispatcher_id, compute_config.timeout)
    worker = tf.data.experimental.service.WorkerServer(tf.data.experimental.service.WorkerConfig(
        dispatcher_address=address.split('://', 1)[-1], worker_address='{}:%port%'.format(compute.own_address()), port=0))
    compute.register_worker_for_dispatcher(dispatcher_id, rank)
    compute.wait_for_shutdown()
    del worker
