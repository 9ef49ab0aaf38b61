"""Late gradients: those that stay where PyTorch put them until synchronize() exchanges them.

Where the ranks leave no core for threads that would exchange during backward(), and the script gives p.grad up in each
step, large gradients are late: the thread that waits in synchronize() exchanges them one by one, which takes less time
than a copy to registered memory and the reduction there.
"""

from horovod.common import _put_off
from horovod.torch import gradient_memory

# Steps in a row. One may be a metric that is combined now and then; several are a script that waits in each step, as
# SyncBatchNorm does within backward(). Gradients that leave early from private memory take longer than from registered.
MOST_EARLY_STEPS = 2


class LateGradients(object):
    """Those of one optimizer."""

    __slots__ = ('waiting', '_wanted', '_early_steps')

    def __init__(self):
        self.waiting = {}  # name -> (p, _Gradient, p.grad): both tensors live until they are exchanged
        self._wanted = None  # in this step; None: not known yet
        self._early_steps = 0  # in a row

    def __len__(self):
        return len(self.waiting)

    def may_have(self, gradient):
        if gradient.home is None or len(gradient.group) > 1:
            return False
        if self._wanted is None:
            self._wanted = self._early_steps < MOST_EARLY_STEPS and gradient_memory.ranks_use_all_cores()
        return self._wanted

    def add(self, name, gradient, grad, submit_all):
        """submit_all() is called before a call that waits for other ranks."""
        self.waiting[name] = (gradient.parameter(), gradient, grad)
        _put_off.begin(self, submit_all)

    def in_order(self):
        """(name, _Gradient, p.grad) of all, in the order of their names, which is the same on all ranks."""
        return [(name,) + self.waiting[name][1:] for name in sorted(self.waiting)]

    def remove(self, name):
        del self.waiting[name]

    def in_time(self):
        """synchronize() begins to exchange them."""
        _put_off.end(self)
        if self.waiting:
            self._early_steps = 0
            _put_off.submit_all()  # those of other optimizers

    def early(self):
        """They leave before synchronize(), and what follows in this step is exchanged at once."""
        self._early_steps += 1
        self._wanted = False

    def end_step(self):
        for _, gradient, _ in self.waiting.values():
            gradient.exchange = None
        self.waiting.clear()
        _put_off.end(self)
        self._wanted = None
