"""An optimizer and a trainer of gluon whose gradients are those of all ranks."""

from __future__ import annotations

import mxnet as mx

from horovod.common.process_sets import global_process_set
from horovod.mxnet.compression import Compression
from horovod.mxnet.mpi_ops import Average, allreduce_, grouped_allreduce_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional
    from horovod.common.process_sets import ProcessSet


def _parts(values, num_groups):
    """As many lists of about the same length."""
    size, rest = divmod(len(values), num_groups)
    begin = 0
    for number in range(num_groups):
        end = begin + size + (number < rest)
        if end > begin:
            yield values[begin:end]
        begin = end


def _reduce(named, num_groups, factor, process_set):
    """Averages pairs (name, array) in place."""
    scales = dict(op=Average, prescale_factor=1.0 / factor, postscale_factor=factor, process_set=process_set)
    if num_groups > 0:
        for number, part in enumerate(_parts(named, num_groups)):
            grouped_allreduce_([array for _, array in part], name='{}.{}'.format(part[0][0], number), **scales)
    else:
        for name, array in named:
            allreduce_(array, name=name, **scales)


class DistributedOptimizer(mx.optimizer.Optimizer):
    """An optimizer that averages the gradients of all ranks before each update.

    Args:
        optimizer: An mxnet.optimizer.Optimizer.
        gradient_predivide_factor: Gradients are divided by it before they are added up, and by the rest of the number
            of ranks afterwards.
        num_groups: Of an update of several parameters: in how many groups their gradients travel; 0: one by one.
        process_set: The ranks that take part.
    """

    def __init__(self, optimizer, gradient_predivide_factor=1.0, num_groups=0, process_set=global_process_set):
        self._optimizer = optimizer
        self._gradient_predivide_factor = gradient_predivide_factor
        self._num_groups = num_groups
        self._process_set = process_set

    def __getattr__(self, item):
        return getattr(self.__dict__['_optimizer'], item)

    def __setattr__(self, item, value):  # such as rescale_grad, which the inner one uses
        if item in ('_optimizer', '_gradient_predivide_factor', '_num_groups', '_process_set'):
            object.__setattr__(self, item, value)
        else:
            setattr(self._optimizer, item, value)

    def _average(self, index, grad):
        if isinstance(index, (tuple, list)):
            named = [(str(number), array) for number, array in zip(index, grad)]
            _reduce(named, self._num_groups, self._gradient_predivide_factor, self._process_set)
        else:
            _reduce([(str(index), grad)], 0, self._gradient_predivide_factor, self._process_set)

    def update(self, index, weight, grad, state):
        """Averages the gradients and updates the weights.

        Args:
            index: The number of the parameter, or a list of numbers.
            weight: The parameter, or a list.
            grad: Its gradient, or a list.
            state: What create_state() returned for it, or a list.
        """
        self._average(index, grad)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index, weight, grad, state):
        """As update(), with a float32 copy of the weights if the optimizer has one.

        Args:
            index: The number of the parameter, or a list of numbers.
            weight: The parameter, or a list.
            grad: Its gradient, or a list.
            state: What create_state_multi_precision() returned for it, or a list.
        """
        self._average(index, grad)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def create_state(self, index, weight):
        """The state of a parameter.

        Args:
            index: The number of the parameter.
            weight: The parameter.
        """
        return self._optimizer.create_state(index, weight)

    def create_state_multi_precision(self, index, weight):
        """The state of a parameter, with a float32 copy of it if the optimizer needs one.

        Args:
            index: The number of the parameter.
            weight: The parameter.
        """
        return self._optimizer.create_state_multi_precision(index, weight)

    def set_learning_rate(self, lr):
        """Sets the learning rate.

        Args:
            lr: The new one.
        """
        self._optimizer.set_learning_rate(lr)

    def set_lr_mult(self, args_lr_mult):
        """Sets factors of the learning rate.

        Args:
            args_lr_mult: A dict of factors by parameter.
        """
        self._optimizer.set_lr_mult(args_lr_mult)

    def set_wd_mult(self, args_wd_mult):
        """Sets factors of the weight decay.

        Args:
            args_wd_mult: A dict of factors by parameter.
        """
        self._optimizer.set_wd_mult(args_wd_mult)


class DistributedTrainer(mx.gluon.Trainer):
    """A trainer of gluon that averages the gradients of all ranks before each step.

    Args:
        params: What net.collect_params() returns, or a dict or a list of parameters.
        optimizer: The name of an optimizer, or one.
        optimizer_params: The arguments of the optimizer that is named.
        compression: hvd.Compression.none or fp16.
        gradient_predivide_factor: Gradients are divided by it before they are added up, and by the rest of the number
            of ranks afterwards.
        prefix: Prefix of the names of the gradients' collectives, if there are several trainers.
        num_groups: In how many groups gradients travel; 0: one by one.
        process_set: The ranks that take part.

    Raises:
        ValueError: optimizer is a DistributedOptimizer.

    Example:

        hvd.broadcast_parameters(net.collect_params(), root_rank=0)
        trainer = hvd.DistributedTrainer(net.collect_params(), 'sgd', {'learning_rate': 0.1})
    """

    def __init__(self, params: Any, optimizer: Any, optimizer_params: Optional[dict] = None, compression: Any = Compression.none,
                 gradient_predivide_factor: float = 1.0, prefix: Optional[str] = None, num_groups: int = 0,
                 process_set: ProcessSet = global_process_set) -> None:
        if isinstance(optimizer, DistributedOptimizer):
            raise ValueError('hvd.DistributedTrainer averages the gradients itself; give it the optimizer that is inside of the '
                             'DistributedOptimizer.')
        self._compression = compression
        self._gradient_predivide_factor = gradient_predivide_factor
        self._prefix = prefix or ''
        self._num_groups = num_groups
        self._process_set = process_set
        super(DistributedTrainer, self).__init__(params, optimizer, optimizer_params=optimizer_params, kvstore=None)

    def _allreduce_grads(self):
        gradients = []
        for number, parameter in enumerate(self._params):
            if parameter.grad_req == 'null':
                continue
            first, *others = parameter.list_grad()
            if first.stype != 'default':
                raise ValueError('The gradient of {} is sparse, which hvd.DistributedTrainer cannot average; make the layer without '
                                 'sparse_grad.'.format(parameter.name))
            for other in others:  # of the other devices of this rank
                first += other.as_in_context(first.context)
            gradients.append((self._prefix + str(number), first, others))
        packed = [(name, self._compression.compress(first)) for name, first, _ in gradients]
        _reduce([(name, tensor) for name, (tensor, _) in packed], self._num_groups, self._gradient_predivide_factor,
                self._process_set)
        for (_, first, others), (_, (tensor, context)) in zip(gradients, packed):
            if tensor is not first:
                first[:] = self._compression.decompress(tensor, context)
            for other in others:
                first.copyto(other)
