"""The job of the workers of tf.data's service: `hvdrun -np 4 python -m horovod.tensorflow.data.compute_worker service.json`."""

import argparse
import contextlib
import os

from horovod import numpy as hvd
from horovod.runner.common.service.compute_service import ComputeService
from horovod.runner.common.util import secret
from horovod.tensorflow.data.compute_service import TfDataServiceConfig, compute_worker_fn


def main(dispatchers, dispatcher_side, configfile, timeout):
    """Runs workers, and with dispatcher_side 'compute' dispatchers, until the training job ends them.

    Args:
        dispatchers: Number of dispatchers, which divides the number of ranks.
        dispatcher_side: The job whose ranks run the dispatchers: 'compute' or 'training'.
        configfile: The file that tells the training job, which rank 0 writes.
        timeout: How many seconds to wait for processes of the other job.

    Raises:
        ValueError: The number of ranks cannot be divided by that of dispatchers.
    """
    hvd.init()
    if dispatchers < 1 or hvd.size() % dispatchers:
        raise ValueError('The number of ranks, {}, cannot be divided by that of dispatchers, {}.'.format(hvd.size(), dispatchers))
    service, config = None, None
    if hvd.rank() == 0:
        workers_per_dispatcher = hvd.size() // dispatchers
        key = secret.make_secret_key()
        service = ComputeService(dispatchers, workers_per_dispatcher, key)
        config = TfDataServiceConfig(dispatchers, workers_per_dispatcher, dispatcher_side, service.addresses(), key, timeout)
        config.write(configfile)
    config = TfDataServiceConfig.from_dict(hvd.broadcast_object(config and config.to_dict(), 0))
    compute_worker_fn(config)
    hvd.barrier()  # the service answers until the last worker has been told
    if service is not None:
        service.shutdown()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(configfile)


def _parse():
    parser = argparse.ArgumentParser(prog='python -m horovod.tensorflow.data.compute_worker', description=main.__doc__.split('\n')[0])
    parser.add_argument('configfile', help='the file that tells the training job where the workers are')
    parser.add_argument('--dispatchers', type=int, default=1, help='number of dispatchers (default: 1)')
    parser.add_argument('--dispatcher-side', choices=('compute', 'training'), default='compute',
                        help='the job whose ranks run the dispatchers (default: compute)')
    parser.add_argument('--timeout', type=int, default=60, help='seconds to wait for processes of the other job (default: 60)')
    return parser.parse_args()


if __name__ == '__main__':
    _arguments = _parse()
    main(_arguments.dispatchers, _arguments.dispatcher_side, _arguments.configfile, _arguments.timeout)
