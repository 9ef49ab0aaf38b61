"""Elastic training. Not available yet: the names exist so that scripts can be imported."""


def run(func):
    raise NotImplementedError('hvd.elastic.run is not available yet; start a job of fixed size with '
                              '`hvdrun -np N`.')


class TorchState(object):
    def __init__(self, model=None, optimizer=None, **kwargs):
        raise NotImplementedError('hvd.elastic.TorchState is not available yet; save the state with torch.save.')


class ElasticSampler(object):
    def __init__(self, dataset, shuffle=True, seed=0):
        raise NotImplementedError('hvd.elastic.ElasticSampler is not available yet; use '
                                  'torch.utils.data.distributed.DistributedSampler.')
