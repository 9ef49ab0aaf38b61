"""Late gradients: those that stay where PyTorch put them until synchronize() exchanges them.

Where the ranks leave no core for threads that would exchange during backward(), and the script gives p.grad up in each
step, large gradients are late: the thread that waits in synchronize() exchanges them one by one, which takes less time
than a copy to registered memory and the reduction there.
"""

import threading

from horovod.common import _put_off
from horovod.torch import gradient_memory

# Steps in a row. One may be a metric that is combined now and then; several are a script that waits in each step, as
# SyncBatchNorm does within backward(). Gradients that leave early from private memory take longer than from registered.
MOST_EARLY_STEPS = 2


class LateGradients(object):
    """Those of one optimizer. Any thread may submit them early, also while that of the optimizer begins to exchange them."""

    __slots__ = ('waiting', 'lock', '_wanted', '_early_steps', '_in_time')

    def __init__(self):
        self.waiting = {}  # name -> (p, _Gradient, p.grad): both tensors live until they are exchanged
        self.lock = threading.Lock()  # held by the thread that submits them early
        self._wanted = None  # in this step; None: not known yet
        self._early_steps = 0  # in a row
        self._in_time = False  # synchronize() exchanges them

    def __len__(self):
        return len(self.waiting)

    def may_have(self, gradient):
        if gradient.home is None or len(gradient.group) > 1:
            return False
        if self._wanted is None:
            self._wanted = self._early_steps < MOST_EARLY_STEPS and gradient_memory.ranks_use_all_cores()
        return self._wanted

    def add(self, name, gradient, grad):
        self.waiting[name] = (gradient.parameter(), gradient, grad)

    def put_off(self, submit_all):
        """submit_all() is called before any other call that waits for ranks. Also where synchronize() did not come to its end."""
        self._in_time = False
        if self.waiting:
            _put_off.begin(self, submit_all)

    def remove(self, name):
        del self.waiting[name]

    def in_time(self):
        """All, each as (name, _Gradient, p.grad), for synchronize(); no other thread submits any of them from now on. In the order
        of their names, which is the same on all ranks."""
        _put_off.end(self)
        with self.lock:
            self._in_time = True
        if self.waiting:
            self._early_steps = 0
            _put_off.submit_all()  # those of other optimizers
        return self._in_order()

    def early(self):
        """The same for a thread that submits them before synchronize() and has the lock; none if that has begun. Later
        gradients of this step are not late."""
        if self._in_time:
            return []
        self._early_steps += 1
        self._wanted = False
        return self._in_order()

    def _in_order(self):
        return [(name,) + self.waiting[name][1:] for name in sorted(self.waiting)]

    def end_step(self):
        for _, gradient, _ in self.waiting.values():
            gradient.exchange = None
        self.waiting.clear()
        _put_off.end(self)
        self._wanted = None
        self._in_time = False
