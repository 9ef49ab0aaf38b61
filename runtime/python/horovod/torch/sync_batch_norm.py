"""Batch normalisation over all ranks. It needs allgather, which is not available yet."""


class SyncBatchNorm(object):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        raise NotImplementedError('hvd.SyncBatchNorm is not available yet; use torch.nn.BatchNorm1d, 2d or 3d.')
