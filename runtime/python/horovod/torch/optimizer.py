"""DistributedOptimizer: an optimizer whose gradients are combined over all ranks while backward() still runs.

Each large gradient has a home in registered memory, where the ranks of a host reduce it in place. A hook on the parameter
copies the incoming gradient there and hands autograd the copy, which becomes p.grad, so that the framework's own
buffer is free at once (GradientHome). Small ones, and any that cannot be handled that way, such as a p.grad that is set
already, create_graph, compression, or odd strides, are reduced where they are, at the price of a copy in the runtime.
The smallest of neighbours travel together (small_together).

At the end of each backward() the ranks agree which gradients all of them have computed (agreement.py). Those are combined when
backward() returns. The others stay in flight, watched by a Guard, until step() or synchronize().
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
import weakref

import torch

from horovod.common import _library, _native
from horovod.common.operations import check_op, process_set_id
from horovod.common.process_sets import global_process_set
from horovod.torch import (
    agreement, closures, end_of_backward, framework, freed_memory, gradient_buckets, gradient_memory, mpi_ops, wrapping)
from horovod.torch.adasum_optimizer import _DistributedAdasumOptimizer
from horovod.torch.compression import Compression, NoneCompressor
from horovod.torch.mpi_ops import Adasum, Average, rocm_built, size
from horovod.torch.parameters import (
    after_gradient, apart_by_device, bytes_of_gradient, check_groups, default_name, groups_of, in_name_order,
    keep_travel_name, loses_hook, names_of, remove_hooks, small_together, travel_name)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ContextManager, Iterable, Optional, Sequence, Tuple, Type, Union
    from horovod.common.process_sets import ProcessSet
    from horovod.torch.compression import Compressor

    class WrappedOptimizer(torch.optim.Optimizer):
        """What DistributedOptimizer() returns: the optimizer itself, with these additional methods."""

        def synchronize(self) -> None: ...
        def skip_synchronize(self) -> ContextManager[Any]: ...
        def discard(self) -> None: ...
        def set_backward_passes_per_step(self, passes: int) -> None: ...


class _Exchange:
    """Gradients that were submitted together."""

    __slots__ = ('group', 'handle', 'wait', 'bucket')

    def __init__(self, group, handle, wait=None, bucket=None):
        self.group = group
        self.handle = handle  # None for a sparse one
        self.wait = wait  # returns the combined gradient of a sparse one
        self.bucket = bucket  # of which they are views



class _Gradient:
    """The gradient of one parameter, from autograd to step(). The parameter's hooks own it, so it holds the parameter
    weakly. A step looks at it some ten times, which attributes make cheaper than dictionaries of tensors, and each object that
    a step makes for a gradient brings the next run of the garbage collector nearer."""

    __slots__ = ('parameter', 'name', 'delay', 'is_combined', 'guard', 'follows', 'home', 'form', 'group', 'bucket', 'place', 'stream', 'request',
                 'exchange', 'tensor', 'context', 'sparse_dim', 'last', 'hook', 'lost_hook')

    def __init__(self, p, name, delay):
        self.parameter = weakref.ref(p)
        self.name = name
        self.delay = delay  # backward passes until it is exchanged
        self.is_combined = False  # in this step, since autograd last added to it
        self.follows = False  # that of another optimizer, which is combined first
        self.guard = None  # while it is not combined after the end of backward()
        self.home = None  # its registered memory
        self.form = None  # of the last one that was exchanged in place
        self.group = (self,)  # the gradients exchanged together
        self.bucket = None  # the buffer of which it is a view, and its offset there
        self.place = 0
        self.stream = None  # of a group on a device: where this one was ready
        self.request = None  # of a group's first one: (description of the tensors, number of the set, prepared request, group)
        self.exchange = None  # in flight
        self.tensor = None  # in use by the runtime meanwhile; None for a sparse one
        self.context = None  # of its compression
        self.sparse_dim = None  # of its gradients, if they are sparse
        self.hook = None  # of the parameter, after accumulation
        self.lost_hook = None  # of the parameter: whether the hook after accumulation is gone
        self.last = None  # weak reference to the one that was combined last, to which nothing may be added

    def forget_exchange(self):
        self.exchange = self.tensor = self.context = None


class _DistributedOptimizer:
    """The class that DistributedOptimizer() derives from the class of the optimizer it wraps."""

    def _hvd_setup(self, named_parameters, compression, backward_passes_per_step, op, gradient_predivide_factor,
                   groups, sparse_as_dense, process_set, gradient_as_bucket_view):
        self.backward_passes_per_step = backward_passes_per_step
        self.op = op
        self.gradient_predivide_factor = gradient_predivide_factor
        self.process_set = process_set
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._as_bucket_view = gradient_as_bucket_view
        self._parameter_names = names_of(self.param_groups, named_parameters)
        self._has_names = named_parameters is not None
        self._gradients = {}  # p -> _Gradient, in the order of param_groups
        self._under_way = {}  # _Exchange -> None, in order of submission
        self._incomplete = set()  # the first gradients of groups that wait for some of their members
        self._hvd_number = next(_numbers)  # in the order of wrapping
        self._agreement = None
        self._backward = None  # the thread in which a gradient came last
        self._has_failed = False  # the last backward(), by an exception
        self._rest = None  # of a round: (exchanges to wait for, tuples of gradients, whether the step is complete then)
        self._by_name = ()  # all gradients
        self._hooks = []
        self._synchronized = False
        self._should_synchronize = True
        # In an elastic job the existing ranks, and which of them are in the set, change from world to world.
        self._elastic = _native.is_elastic()
        self._hooked = self._elastic or (process_set.included() and size() > 1)
        if self._hooked:
            self._adopt_parameters()
            self._make_groups(groups)
            if self._gradients:
                self._agreement_now()
                if not self._elastic:
                    self._place_of_agreement()  # all ranks wrap their optimizers in the same order

    def _hvd_release(self):
        """Releases the parameters before they are adopted again."""
        begun = self._has_uncombined() or any([gradient.is_combined for gradient in self._gradients.values()])
        if begun and not self._elastic:
            raise ValueError('This optimizer is being wrapped again between backward() and step(), and would exchange the '
                             'gradients again; call step(), or discard() and zero_grad(), before.')
        self._finish_all(None, write=False)
        remove_hooks(self._hooks)

    def _make_groups(self, groups):
        parameters = list(self._gradients)
        if self._has_names:
            parameters = in_name_order(parameters, self._parameter_names)
        self._grouped_by_size = groups is None and not self._as_bucket_view
        if groups is None:
            groups = gradient_buckets.plan(parameters) if self._as_bucket_view else small_together(parameters)
        else:
            groups = groups_of(parameters, groups)
        for number, group in enumerate(apart_by_device(groups)):
            together = tuple([self._gradients[p] for p in group])
            bucket = gradient_buckets.GradientBucket(number, together) if self._as_bucket_view else None
            if bucket is not None:
                keep_travel_name(group[0], bucket.name, self.process_set)
            for place, gradient in enumerate(together):
                gradient.group, gradient.bucket, gradient.place = together, bucket, place

    def _plan(self):
        """The names of all parameters, and in brackets those that are exchanged together, in an order that is the same on all
        ranks if they are."""
        names = {p: gradient.name for p, gradient in self._gradients.items()}
        # In an elastic job the name of a gradient is assigned when it is used.
        name_of = (lambda gradient: gradient.name) if self._elastic else self._travel_name
        entries, written = [], set()
        for p in in_name_order(names, names) if self._has_names else names:
            group = self._gradients[p].group
            if group[0] not in written:
                written.add(group[0])
                together = [str(name_of(gradient)) for gradient in group]
                if len(group) > 1:
                    together[0], together[-1] = '(' + together[0], together[-1] + ')'
                entries += together
        return entries

    def _takes_part(self):
        """Whether this rank exchanges gradients in the present world."""
        if not self._elastic or self.process_set is global_process_set:
            return self._hooked
        return self.process_set.process_set_id is not None and self.process_set.included()

    # ---- names known from Horovod; copies, for reading

    @property
    def _requires_update(self):
        return set(self._gradients)

    @property
    def _allreduce_delay(self):
        return {p: gradient.delay for p, gradient in self._gradients.items()}

    @property
    def _handles(self):
        return {gradient.parameter(): exchange for exchange in self._under_way for gradient in exchange.group}

    # ---- hooks

    def _adopt_parameters(self):
        """Adds hooks to every parameter that requires gradients now and has none of our hooks yet: all at construction,
        later those that were unfrozen or added with add_param_group()."""
        adopted = []
        for i, group in enumerate(self.param_groups):
            for j, p in enumerate(group['params']):
                gradient = self._gradients.get(p)
                if gradient is None:
                    if p.requires_grad:
                        end_of_backward.note_wrapped(p, self)
                        name = self._parameter_names.setdefault(p, default_name(i, j))
                        self._gradients[p] = gradient = _Gradient(p, name, self.backward_passes_per_step)
                        keep_travel_name(p, name, self.process_set)
                        self._register_hooks(p, gradient)
                        adopted.append(gradient)
                elif gradient.lost_hook is not None and gradient.lost_hook(p):
                    self._hooks.remove(gradient.hook)
                    remove_hooks([gradient.hook])
                    gradient.hook = None  # otherwise the new one would be on the same node
                    self._hook_after(p, gradient)
                    adopted.append(gradient)
        if adopted:
            freed_memory.keep([bytes_of_gradient(p) for p in self._gradients if p.device.type == 'cpu'])
        return adopted

    def _follows(self, p, gradient):
        """Whether another optimizer has this parameter, too, and combines its gradient first. This one then combines what is the
        same on all ranks, which does not change an average any more."""
        reference, owner = _owners.get(id(p), (None, None))
        owner = owner() if reference is not None and reference() is p else None
        if owner is self:
            return False
        if owner is None or not owner._takes_part():
            _owners[id(p)] = (weakref.ref(p, lambda _, key=id(p): _owners.pop(key, None)), weakref.ref(self))
            return False
        if self.op != Average or owner.op != Average or owner.process_set is not self.process_set:
            raise AssertionError(
                'The gradient of {} belongs to two DistributedOptimizers, which goes only where both have op=hvd.Average and the '
                'same process set. Drop the other one before backward() (del), or give both the same arguments.'
                .format(gradient.name))
        return True

    def _register_hooks(self, p, gradient):
        this = weakref.ref(self)

        def before_accumulation(grad):
            optimizer = this()
            return None if optimizer is None else optimizer._bring_home(gradient, grad)

        at_home = self._compression is NoneCompressor and p.is_leaf and not self._as_bucket_view
        if at_home and gradient_memory.pays_for_a_home(p):
            before_accumulation.__torch_unserializable__ = True  # silences a warning when p is pickled
            gradient.home = gradient_memory.GradientHome(p)
            self._hooks.append(p.register_hook(before_accumulation))
        self._hook_after(p, gradient)

    def _hook_after(self, p, gradient):
        # Hooks outlive the optimizer, since the parameter owns them; they must not keep it alive.
        this = weakref.ref(self)

        def after_accumulation(*unused):
            if end_of_backward.may_find_garbage:
                end_of_backward.collect_garbage()
            optimizer = this()
            if optimizer is not None:
                optimizer._gradient_is_ready(gradient)

        gradient.lost_hook = loses_hook(p)
        gradient.hook = after_gradient(p, after_accumulation)
        self._hooks.append(gradient.hook)

    def _bring_home(self, gradient, grad):
        """Runs before autograd adds `grad` to p.grad: a copy in registered memory, or None to leave it alone."""
        p = gradient.parameter()
        if p is None or grad is None or p.grad is not None:
            return None
        # With grad mode on, the gradient itself is part of a graph (create_graph).
        if torch.is_grad_enabled() or not self._takes_part():
            return None
        home = gradient.home
        if grad.layout != torch.strided or not home.fits(grad):
            return None
        tensor = home.tensor(p)
        if tensor is None:
            return None
        tensor.copy_(grad)
        return tensor

    def _gradient_is_ready(self, gradient):
        """Runs after autograd added to p.grad."""
        p = gradient.parameter()
        if p is None or not self._takes_part():
            return
        if self._has_failed:
            self._recover_in_backward()
        if gradient.delay <= 0 or gradient.exchange is not None:
            raise AssertionError(_TOO_MANY.format(
                gradient.name, 'its gradient of the last backward() is not combined yet, since not all ranks have computed it'))
        if gradient.is_combined:
            self._compute_again(gradient, p)
        gradient.delay -= 1
        if gradient.bucket is not None:
            gradient.bucket.bring(gradient)
        if len(gradient.group) > 1:
            gradient.stream = framework.place_of_work(p)  # not always the stream of the last one, in which the group is submitted
        if gradient.delay == 0:
            (self._agreement or self._agreement_now()).is_complete = False
            self._backward = end_of_backward.expect(self, self._backward)
            gradient.follows = self._follows(p, gradient)
            if not gradient.follows and (len(gradient.group) == 1 or _all_ready(gradient.group)):
                self._submit_ready(gradient.group)
            else:
                self._incomplete.add(gradient.group[0])

    def _compute_again(self, gradient, p):
        """A second backward() has added to a gradient that is the same on all ranks. The average of the sum is that of the
        second gradient and the first; other operations would count the first one once for each rank."""
        gradient.is_combined = False
        if self.op != Average and gradient.last is not None and p.grad is gradient.last():
            raise AssertionError(_TOO_MANY.format(
                gradient.name, 'with another operation than hvd.Average its gradient would be combined twice'))

    def _submit_ready(self, group):
        try:
            self._submit(group)
        except mpi_ops.HorovodInternalError:  # the world has ended; the next one computes these again
            for gradient in group:
                if gradient.exchange is None:
                    gradient.delay = self.backward_passes_per_step
            raise

    # ---- exchange

    def _scaling(self):
        if self.op == Average:
            return 1.0 / self.gradient_predivide_factor, self.gradient_predivide_factor
        return 1.0, 1.0

    def _travel_name(self, gradient):
        return travel_name(gradient.parameter(), gradient.name, self.process_set)

    def _submit(self, group):
        """Starts the exchange of the gradients of a group of parameters."""
        self._incomplete.discard(group[0])
        dense, sparse = group, []
        if not self._sparse_as_dense:
            for gradient in group:
                if gradient.parameter().grad.layout is not torch.strided:
                    self._submit_sparse(gradient)
                    sparse.append(gradient)
            if sparse:
                dense = tuple([gradient for gradient in group if gradient not in sparse])
        if len(group) > 1:
            for place in {gradient.stream for gradient in group} - {None}:
                framework.adapter.follow(*place)
        if group[0].bucket is not None and group is group[0].group:
            self._submit_bucket(group[0].bucket, dense, sparse)
        elif dense:
            for gradient in dense:
                if gradient.bucket is not None:
                    gradient.bucket.bring(gradient)
            self._submit_dense(dense)

    def _submit_sparse(self, gradient):
        p = gradient.parameter()
        if p.grad._nnz() or gradient.sparse_dim is None:
            gradient.sparse_dim = p.grad.sparse_dim()
        else:
            p.grad = self._zeros(gradient)  # a gradient that torch sets to zero gets other sparse dimensions
        wait = mpi_ops.sparse_allreduce_async(p.grad, 'allreduce.{}'.format(self._travel_name(gradient)), self.op,
                                              self.process_set)
        self._begin(_Exchange((gradient,), None, wait))

    def _submit_dense(self, group):
        described, addresses = [], []
        for gradient in group:
            described.append(self._describe(gradient, gradient.parameter().grad))
            address = gradient.tensor.data_ptr()
            addresses += (address, address)
        self._begin_dense(group, self._request(group, described).submit(*addresses))

    def _begin_dense(self, group, handle):
        mpi_ops._handle_map[handle] = (group, group)  # which keep their tensors alive
        self._begin(_Exchange(group, handle))

    def _describe(self, gradient, grad):
        """Sets the tensor that is sent for a gradient, and returns its type and shape."""
        home, form = gradient.home, gradient.form
        if home is not None and home.holds(grad):
            gradient.tensor = grad
            return home.description
        if form is not None and form.fits(grad):
            gradient.tensor = grad
            return form.description
        p = gradient.parameter()
        gradient.tensor, gradient.context, description = self._travelling(p, grad)
        gradient.form = self._form_of(grad, gradient.tensor, description)
        return description

    def _submit_bucket(self, bucket, dense, sparse):
        """The whole bucket is sent, whatever gradients this rank has, since others may have more."""
        tensors, described = bucket.gather(sparse)
        addresses = []
        for tensor in tensors:
            address = tensor.data_ptr()
            addresses += (address, address)
        handle = self._request(bucket.gradients, described).submit(*addresses)
        mpi_ops._handle_map[handle] = (tensors, tensors)
        for gradient in dense:
            gradient.tensor = bucket.views[gradient.place]
        self._begin(_Exchange(dense, handle, bucket=bucket))

    def _travelling(self, p, grad):
        """The data that the runtime gets for a gradient outside its home: a tensor that it may write to, the context of
        the compression, and the tensor's description."""
        grad = grad.detach()
        if grad.layout != torch.strided:
            grad = grad.to_dense()
        tensor, ctx = self._compression.compress(grad)
        order = gradient_memory.travel_order(p)
        tensor = gradient_memory.in_order(tensor, order)
        dtype = mpi_ops._Torch.type_of(tensor)
        if dtype is None:
            mpi_ops._Torch._refuse('DistributedOptimizer', tensor, mpi_ops._DTYPES.get(tensor.dtype))
        return tensor, ctx, (dtype, gradient_memory.memory_shape(tensor.shape, order))

    def _form_of(self, grad, travelling, description):
        """The form of gradients that are sent as they are, which need not be examined again; None for any other."""
        if self._compression is not NoneCompressor or grad.layout != torch.strided or grad.requires_grad:
            return None
        if travelling.data_ptr() != grad.data_ptr():
            return None
        return gradient_memory.GradientForm(grad, description)

    def _begin(self, exchange):
        for gradient in exchange.group:
            gradient.exchange = exchange
        self._under_way[exchange] = None

    def _request(self, group, described):
        prepared = group[0].request
        number = self.process_set.process_set_id  # a new world may have another for the set
        if prepared is None or prepared[0] != described or prepared[1] != number or prepared[3] != group:
            prescale, postscale = self._scaling()
            prepared = group[0].request = (described, number, mpi_ops._operations.describe(
                _library.ALLREDUCE, self._exchange_name(group), described, self.op, 0, number, prescale, postscale, None,
                self._members_of(group)), group)
        return prepared[2]

    @staticmethod
    def _members_of(group):
        """What distinguishes the gradients of a group, of which all but the first are sent without their names."""
        return [gradient.name for gradient in group] if len(group) > 1 or group[0].bucket is not None else None

    def _exchange_name(self, group):
        first = group[0]
        if first.bucket is not None and group is first.bucket.gradients:
            return 'allreduce.{}'.format(travel_name(first.parameter(), first.bucket.name, self.process_set))
        name = 'allreduce.{}'.format(self._travel_name(first))
        return 'grouped_{}+{}'.format(name, len(group) - 1) if len(group) > 1 else name

    def _submit_zeros(self, group):
        for gradient in group:
            p = gradient.parameter()
            if p.grad is None:
                p.grad = self._zeros(gradient)
        self._submit(group)

    def _zeros(self, gradient):
        p = gradient.parameter()
        if gradient.sparse_dim is not None:
            return mpi_ops.sparse_zeros(p, gradient.sparse_dim)
        if gradient.bucket is not None:
            return gradient.bucket.zeros(gradient)
        home = gradient.home
        zeros = home.tensor(p) if home is not None and home.fits(p) else None
        return torch.zeros_like(p) if zeros is None else zeros.zero_()

    def _finish(self, exchange, write):
        """Waits for an exchange and, unless the step failed already, writes its gradients back."""
        operations = mpi_ops._operations
        handle = exchange.handle
        result = exchange.wait() if handle is None else operations.finish(handle, mpi_ops._handle_map[handle])
        if exchange.bucket is not None:
            exchange.bucket.note_exchanged()
        if not write:
            return
        for gradient in exchange.group:
            p = gradient.parameter()
            if p is None:
                continue
            if gradient.guard is not None:
                p.grad, gradient.guard = gradient.guard.original, None
            if gradient.tensor is None:
                p.grad = mpi_ops._sparse_gradient(result)
            else:
                self._write_back(p, gradient.tensor, gradient.context)
            gradient.is_combined = True
            gradient.delay = self.backward_passes_per_step
            if self.op != Average:
                gradient.last = weakref.ref(p.grad)

    def _write_back(self, p, tensor, ctx):
        grad = p.grad
        if grad is tensor:
            return  # it was reduced in place
        reduced = self._compression.decompress(tensor, ctx)
        if grad is None:
            p.grad = reduced
        elif grad.layout != torch.strided:
            p.grad = reduced.to_sparse(grad.sparse_dim())
        elif reduced.data_ptr() != grad.data_ptr():  # otherwise it was reduced in place
            grad.copy_(reduced)

    def synchronize(self):
        """Waits until the gradients of all ranks are combined, with zeros for those that this rank does not have.

        Usually they are when backward() returns. They are not if another rank has not computed a gradient
        in that backward(): there, call this before you read or change gradients, and then step() within
        skip_synchronize(). All ranks have to call it."""
        if self._takes_part():
            with torch.no_grad():
                self._synchronize()
        self._synchronized = True

    def _synchronize(self):
        self._has_failed = False  # whatever exists is exchanged
        self._resume()
        self._adopt_parameters()
        if not self._gradients or self._agreement_now().is_complete:
            return
        try:
            self._begin_round(agreement.STEP)
            self._agree(agreement.STEP)
        except mpi_ops.HorovodInternalError as error:
            self._drop_what_failed(error)
            raise
        self._reset_counters()
        self._agreement.is_complete = True

    def _drop_what_failed(self, error):
        """If the ranks cannot agree, usually because the world has ended, the gradients are computed again, perhaps in another world: an
        optimizer that is not part of an elastic state is not notified of that."""
        if self._agreement.is_refused:
            self._abandon()
        self._finish_all(error, write=False)
        self._reset_counters()

    # ---- agreement

    def _agreement_now(self):
        """The agreement, over the current parameters."""
        if self._agreement is None:
            this = weakref.ref(self)
            self._agreement = agreement.Agreement(lambda: this()._place_of_agreement(), self.process_set)
        if len(self._by_name) != len(self._gradients):
            self._by_name = tuple(sorted(self._gradients.values(), key=lambda gradient: gradient.name))
            self._agreement.set_members([gradient.name for gradient in self._by_name], self._plan())
        return self._agreement

    def _place_of_agreement(self):
        """The parameter that is the first by name, and a name with its number in the order of wrapping. It does not have the
        parameter's own name in it, since ranks whose parameters have other names must meet in an error; but for elastic jobs, where
        ranks from an earlier world wrap nothing in this one."""
        first = self._by_name[0]
        parameter = first.parameter()
        name = 'end of {}'.format(first.name) if self._elastic else 'gradients'
        return parameter, travel_name(parameter, 'backward.' + name, self.process_set)

    def _begin_end_of_backward(self):
        try:
            self._begin_round(agreement.BACKWARD)
        except mpi_ops.HorovodInternalError as error:
            self._drop_what_failed(error)
            raise

    def _end_backward(self):
        """Combines the gradients that all ranks have computed, and guards the others."""
        try:
            self._agree(agreement.BACKWARD)
        except mpi_ops.HorovodInternalError as error:
            self._drop_what_failed(error)
            raise
        finally:
            for exchange in self._under_way:
                self._watch(exchange.group, True)
            for first in self._incomplete:
                self._watch([gradient for gradient in first.group if gradient.delay == 0], False)

    @staticmethod
    def _watch(group, under_way):
        for gradient in group:
            p = gradient.parameter()
            if gradient.guard is None and p is not None and p.grad is not None:
                gradient.guard = end_of_backward.Guard(p, under_way)

    def _check_guards(self):
        for gradient in self._by_name:
            p = gradient.parameter()
            if gradient.guard is not None and p is not None and not gradient.guard.is_intact(p):
                raise RuntimeError(
                    'The gradient of {} was changed after backward(), but it was not combined yet, since some ranks have not '
                    'computed it in that backward(). Call optimizer.synchronize() on all ranks after backward(), then change '
                    'gradients, and then call optimizer.step() inside `with optimizer.skip_synchronize():`.'.format(gradient.name))

    def _begin_round(self, kind):
        self._resume()
        for gradient in self._adopt_parameters():  # unfrozen in the middle of a step
            if kind == agreement.BACKWARD and self.backward_passes_per_step == 1 and gradient.parameter().grad is not None:
                gradient.delay = 0
                self._incomplete.add(gradient.group[0])
        agreed = self._agreement_now()
        if kind != agreement.DROP:
            self._check_guards()
        at_step = kind == agreement.STEP
        ready, present = [], []
        for gradient in self._by_name:
            p = gradient.parameter()
            if at_step:
                has = not gradient.is_combined and p is not None and p.grad is not None
                ready.append(1)
            else:
                has = gradient.delay == 0 and (gradient.exchange is not None or p is not None and p.grad is not None)
                ready.append(int(has))
            present.append(self._presence(gradient, p) if has else 0)
        try:
            agreed.begin(kind, ready, present)
        except BaseException:
            agreed.close()
            raise

    def _presence(self, gradient, p):
        if gradient.exchange is None and not self._sparse_as_dense and p.grad.layout is not torch.strided:
            if p.grad._nnz() or gradient.sparse_dim is None:
                gradient.sparse_dim = p.grad.sparse_dim()
        return -1 if gradient.sparse_dim is None else -1 - gradient.sparse_dim

    def _agree(self, kind):
        """Ends the round that has begun, and holds more until everything that may be combined now is combined."""
        agreed, rounds = self._agreement, 1
        try:
            while True:
                outcome = self._outcome_of(agreed)
                self._conclude(kind, outcome)
                if kind == agreement.DROP:
                    if outcome.all_drop:
                        break
                elif kind == agreement.STEP:
                    if outcome.all_at_step or agreed.is_complete:
                        break
                elif not outcome.has_veto or rounds >= outcome.patience or not self._has_uncombined():
                    break
                rounds += 1
                self._begin_round(kind)
        finally:
            self._close_round()

    def _close_round(self):
        if self._rest is None and self._agreement.unfinished is None:  # otherwise _resume() does it
            self._agreement.close()

    def _outcome_of(self, agreed):
        try:
            return agreed.end()
        except mpi_ops.HorovodInternalError:
            if agreed.is_refused:
                self._abandon()
            raise

    def _has_uncombined(self):
        return bool(self._under_way or self._incomplete)

    def _conclude(self, kind, outcome):
        if kind != agreement.DROP:
            self._combine(outcome)
        elif outcome.all_drop:
            self._flush(outcome)

    def _resume(self):
        """Ends a round that a signal handler has interrupted by an exception, such as Ctrl-C's: the other ranks have acted on it."""
        if self._agreement is None or self._rest is None and self._agreement.unfinished is None:
            return
        if not self._agreement.is_of_this_world():
            self._rest = self._agreement.unfinished = None
            return
        if self._rest is not None:
            self._finish_rest(None)
        kind = self._agreement.unfinished
        if kind is not None:
            self._conclude(kind, self._agreement.end())
        self._close_round()

    def _combine(self, outcome):
        """Exchanges what the ranks agreed to, all in the same way, and waits for it."""
        first_error = None
        if outcome.alike and not self._incomplete and 0 not in outcome.present and None not in [
                gradient.exchange for gradient in self._by_name]:  # the usual case
            ready_groups, left, exchanges = [], False, dict(self._under_way)
        else:
            ready_groups, left = self._ready_groups(outcome)
            try:
                for group in ready_groups:
                    if any([gradient.exchange is None for gradient in group]):
                        self._submit_zeros(group)
            except mpi_ops.HorovodInternalError as error:
                first_error = error
            exchanges = dict.fromkeys([gradient.exchange for group in ready_groups for gradient in group])
        is_complete = not outcome.has_veto and (outcome.all_at_step or not left)
        self._rest = (exchanges, ready_groups, is_complete)
        self._finish_rest(first_error)

    def _finish_rest(self, first_error):
        """Waits for the exchanges of a round. May be repeated if a signal handler interrupted it."""
        exchanges, ready_groups, is_complete = self._rest
        while exchanges:
            exchange = next(iter(exchanges))
            if exchange in self._under_way:
                first_error = self._finish_one(exchange, first_error, True)
            exchanges.pop(exchange)
        self._rest = None
        for group in ready_groups:
            whole = group[0].group
            if all([gradient.is_combined or gradient.delay > 0 for gradient in whole]):
                self._incomplete.discard(whole[0])
        if first_error is not None:
            raise first_error
        self._agreement.is_complete = is_complete

    def _ready_groups(self, outcome):
        """Tuples of gradients that are exchanged together now, and whether others are left for later in this step."""
        agreed, absent, left = {}, set(), False
        for gradient, ready, present in zip(self._by_name, outcome.agreed, outcome.present):
            if not present:
                absent.add(gradient)
                left = left or not gradient.is_combined
            elif ready:
                agreed.setdefault(gradient.group[0], []).append(gradient)
            else:
                left = True
            if present < -1 and gradient.sparse_dim is None:
                gradient.sparse_dim = -1 - present
        ready_groups = []
        for first, members in agreed.items():
            if len(members) == len(first.group):
                ready_groups.append(first.group)
            elif absent.intersection(first.group):  # so no rank has sent the whole group
                ready_groups.append(tuple(members))
            else:
                left = True
        return ready_groups, left

    # ---- what is dropped

    def _backward_failed(self):
        """By an exception; autograd has dropped the callback."""
        self._has_failed = True

    def _recover_in_backward(self):
        """The first gradient after a backward() that failed, without zero_grad()."""
        for exchange in self._under_way:
            for gradient in exchange.group:
                p = gradient.parameter()
                if p is not None and _shares_memory(p.grad, gradient.tensor):
                    raise AssertionError(
                        'The last backward() failed while the gradient of {} was under way, which the next one must not add to. '
                        'Call optimizer.zero_grad() or optimizer.discard() first, on all ranks.'.format(gradient.name))
        with torch.no_grad():
            self._drop()

    def _drop(self, clear=False):
        """Drops what is not combined. If something is in flight, all ranks do. clear: also its part of p.grad."""
        self._has_failed = False
        self._resume()
        if clear:
            for gradient in self._gradients.values():
                p = gradient.parameter()
                if gradient.delay < self.backward_passes_per_step and p is not None and gradient.exchange is None:
                    p.grad = None
        if self._has_uncombined():
            self._begin_round(agreement.DROP)
            self._agree(agreement.DROP)
        self._reset_counters()

    def _flush(self, outcome):
        """Ends the exchanges that some ranks have begun, with zeros from the others."""
        begun = dict.fromkeys([gradient.group[0] for gradient in self._by_name])
        for gradient, present in zip(self._by_name, outcome.present):
            if not present:
                begun.pop(gradient.group[0], None)
        kept = []  # the part of p.grad that is not in flight
        for first in begun:
            if any([gradient.exchange is None for gradient in first.group]):
                for gradient in first.group:
                    p = gradient.parameter()
                    kept.append((p, p.grad))
                    p.grad = None
                self._submit_zeros(first.group)
        for exchange in self._under_way:
            for gradient in exchange.group:
                p = gradient.parameter()
                if p is not None and _shares_memory(p.grad, gradient.tensor):
                    p.grad = None
        first_error = self._finish_all(None, write=False)
        for p, grad in kept:
            p.grad = grad
        if first_error is not None:
            raise first_error

    def _abandon(self):
        """Drops what is in flight, which other ranks may never submit. Its tensors stay alive as long as the runtime may write to
        them."""
        _release_abandoned()
        for exchange in list(self._under_way):
            if exchange.handle is not None:
                _abandoned[exchange.handle] = mpi_ops._handle_map.pop(exchange.handle), [
                    gradient.tensor for gradient in exchange.group]
            self._forget(exchange)
        self._reset_counters()

    # ---- waits

    def _finish_all(self, first_error, write=True):
        """Waits for all exchanges, writes back until one has failed, and returns the first error."""
        while self._under_way:
            first_error = self._finish_one(next(iter(self._under_way)), first_error, write)
        return first_error

    def _finish_one(self, exchange, first_error, write):
        try:
            self._finish(exchange, write and first_error is None)
        except mpi_ops.HorovodInternalError as error:
            first_error = first_error or error
        self._forget(exchange)  # not reached when Ctrl-C ended the wait
        return first_error

    def _forget(self, exchange):
        for gradient in exchange.group:
            gradient.forget_exchange()
        self._under_way.pop(exchange, None)

    def _reset_counters(self):
        self._incomplete.clear()
        for gradient in self._gradients.values():
            gradient.delay = self.backward_passes_per_step
            gradient.guard = None

    def _end_step(self):
        """The next gradients are those of another step."""
        for gradient in self._gradients.values():
            gradient.is_combined = False
        if self._agreement is not None:
            self._agreement.begin_step()

    # ---- the public methods

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Inside it step() uses the gradients as they are; use it after synchronize()."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn('optimizer.step() called without optimizer.skip_synchronize() context after '
                              'optimizer.synchronize(). Gradients that are combined stay as they are; put the step into '
                              '`with optimizer.skip_synchronize():` to say that it is meant.',
                              stacklevel=2)
            if closure is None:
                self.synchronize()
            elif self._takes_part():
                if self._has_uncombined():
                    self.synchronize()
                closure = self._synchronized_closure(closure)
        self._synchronized = False
        result = super(_DistributedOptimizer, self).step() if closure is None else (
            super(_DistributedOptimizer, self).step(closure))
        self._synchronized = False
        if self._takes_part():
            self._end_step()
        _native.call('note_step')
        return result

    # Optimizer's constructor would wrap this method in one that runs step hooks, and wraps the base class's method, too.
    step.hooked = True

    def _synchronized_closure(self, closure):
        averages = closures.reads_value(type(self))

        def evaluate():
            loss = closure()
            self.synchronize()
            if averages:
                name = 'closure.{}'.format(self._agreement.name()) if self._gradients else None
                op = Average if self.op == Average else mpi_ops.Sum
                loss = closures.average(loss, name, op, self.process_set)
            return loss

        return evaluate

    def zero_grad(self, *args, **kwargs):
        if self._takes_part():
            if self._has_failed:
                with torch.no_grad():
                    self._drop()
            if self._has_uncombined():
                names = sorted([gradient.name for gradient in self._by_name if gradient.delay == 0])
                raise AssertionError(
                    'optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or '
                    'optimizer.synchronize(), while gradients are being exchanged: those of {} wait for ranks that have not '
                    'computed them. Call step() or synchronize() first, or optimizer.discard() on all ranks.'
                    .format(', '.join(names)))
            self._reset_counters()  # drops passes that did not reach step()
            for gradient in self._gradients.values():
                gradient.is_combined = False
        result = super(_DistributedOptimizer, self).zero_grad(*args, **kwargs)
        if self._takes_part():
            self._adopt_parameters()
        return result

    def discard(self):
        """Drops the gradients that are not combined yet, and restarts the count of backward_passes_per_step, if a script skips a
        batch. If a gradient is in flight, all ranks have to call it, since others wait for it. zero_grad() does
        it after a backward() that ended by an exception. Gradients that are combined stay in p.grad."""
        if self._takes_part():
            with torch.no_grad():
                self._drop(clear=True)

    def set_backward_passes_per_step(self, passes):
        """Sets the number of backward() calls whose gradients are added up before they are exchanged, from the next step on."""
        if passes <= 0:
            raise ValueError('backward_passes_per_step must be greater than 0, but is {}.'.format(passes))
        self.backward_passes_per_step = passes
        self._reset_counters()

    def load_state_dict(self, *args, **kwargs):
        # A gradient in flight belongs to the state that is being replaced.
        self._finish_all(None, write=False)
        self._synchronized = self._has_failed = False
        self._rest = None
        self._reset_counters()
        for gradient in self._gradients.values():
            gradient.is_combined = False
        return super(_DistributedOptimizer, self).load_state_dict(*args, **kwargs)


_TOO_MANY = ('Gradients were computed more than backward_passes_per_step times before step() was called: {}: {}. Call step() or '
             'synchronize() between, or give DistributedOptimizer a larger backward_passes_per_step.')


def _shares_memory(grad, tensor):
    if grad is None or tensor is None or grad.layout is not torch.strided:
        return False
    return grad.data_ptr() == tensor.data_ptr()


def _is_over(handle):
    try:
        return _library.poll(handle)
    except (mpi_ops.HorovodInternalError, ValueError):  # from an earlier world
        return True


_abandoned = {}  # handle -> (its entry in _handle_map, tensors that the runtime may still use)


def _release_abandoned():
    """Frees the tensors of abandoned exchanges that are over. The GPU may be behind: the next user of their memory has to come after
    the stream in which the exchange was started."""
    for handle in [handle for handle in _abandoned if _is_over(handle)]:
        kept = _abandoned.pop(handle)
        mpi_ops._operations.follow(handle, kept[1])


_numbers = itertools.count()
_owners = {}  # id of a parameter -> (weak reference to it, to the optimizer that combines its gradients first)


def _all_ready(group):
    for gradient in group:
        if gradient.delay > 0 or gradient.follows:
            return False
    return True


def DistributedOptimizer(optimizer: torch.optim.Optimizer,
                         named_parameters: Optional[Iterable[Tuple[str, torch.Tensor]]] = None,
                         compression: Type[Compressor] = Compression.none, backward_passes_per_step: int = 1,
                         op: int = Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
                         groups: Union[int, Sequence[Sequence[torch.Tensor]], None] = None,
                         sparse_as_dense: bool = False, process_set: ProcessSet = global_process_set,
                         gradient_as_bucket_view: bool = False) -> WrappedOptimizer:
    """Has an optimizer combine gradients over all ranks before each step.

    Gradients are exchanged while backward() runs, and combined when it returns: clip or unscale
    them as in one process. A gradient that not all ranks compute is combined in step(); where ranks
    use other parameters, call synchronize() before you change gradients, and step() inside
    `with optimizer.skip_synchronize():`. After an exception in backward() on all ranks, zero_grad()
    or discard() drops the batch.

    There is one optimizer, before and after: the object keeps its state, parameter groups, hooks and
    attributes, and only its class is extended. So schedulers may be made before or after the call,
    and whatever else holds the optimizer calls the step() that exchanges gradients. Copies and
    pickles of it are ordinary optimizers. Wrapping it again replaces the arguments of the first call.

    Args:
        optimizer: The torch.optim.Optimizer to wrap.
        named_parameters: Pairs (name, parameter) of all its parameters, usually
            model.named_parameters(). Ranks find each other's gradients by these names, in whatever
            order the optimizer has its parameters, and get an error where names or groups differ. None:
            by the place in the optimizer, so give all ranks the same order: parameters of one shape in
            another order on a rank cannot be detected.
        compression: hvd.Compression.none, or hvd.Compression.fp16 or bf16 to send gradients in 16 bits.
        backward_passes_per_step: The gradients of this many backward() calls are added up locally
            before they are exchanged, at the end of the last one. zero_grad() restarts.
        op: hvd.Average, hvd.Sum or hvd.Adasum. Adasum combines what each rank's own step would
            change, not gradients; it does not go with groups, gradient_predivide_factor, sparse
            gradients or process sets.
        gradient_predivide_factor: With Average: divide by this number before adding up, and by
            size() / this number afterwards.
        num_groups: Deprecated: a number of groups, as groups.
        groups: A list of lists of parameters, or a number of groups, into which the parameters are cut
            in the order of their names. The gradients of a group are exchanged as one operation, once all
            of them are there; those on several devices as one for each device. None: gradients on the CPU of up to 16 KiB, neighbours of up to 64 KiB
            together; all others one by one.
        sparse_as_dense: Exchange sparse gradients as dense ones.
        process_set: The ranks that train together. On other ranks the optimizer is an ordinary one;
            in an elastic job each world decides again.
        gradient_as_bucket_view: As of PyTorch's DistributedDataParallel: gradients are views of
            buckets that are exchanged as they are, up to 25 MiB of parameters each, or those of
            `groups`. Best where gradients stay: with zero_grad(set_to_none=False), or several
            backward passes a step. A gradient that a script keeps changes in the next step: clone
            it. Not with compression or op=hvd.Adasum. The same on all ranks.

    Returns: The same optimizer. Its class is now derived from the one it had.

    Raises:
        ValueError: Arguments are wrong or do not go together, the process set is not registered, or an
            optimizer is wrapped again while its gradients are being exchanged.
        NotImplementedError: op=hvd.Adasum with a process set.
        HorovodInternalError: From step() and synchronize(): the ranks disagree about a gradient, or
            a rank left or died.

    Example:

        optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    """
    if gradient_predivide_factor != 1.0:
        if rocm_built():
            raise ValueError('gradient_predivide_factor is not supported with ROCm.')
        if op != Average:
            raise ValueError('gradient_predivide_factor needs op=hvd.Average, since it says when to divide.')
    if backward_passes_per_step <= 0:
        raise ValueError('backward_passes_per_step must be greater than 0, but is {}.'
                         .format(backward_passes_per_step))
    if num_groups != 0:
        warnings.warn('The argument num_groups is deprecated; use groups instead.', DeprecationWarning, stacklevel=2)
        if groups is None:
            groups = num_groups
    check_groups(groups)
    check_op(op)
    if gradient_as_bucket_view and (compression is not NoneCompressor or op == Adasum):
        raise ValueError('gradient_as_bucket_view goes neither with compression nor with op=hvd.Adasum, which send something '
                         'else than the gradients.')
    if not _native.is_elastic():  # a set may have no ranks for some time
        process_set_id(process_set)
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError('DistributedOptimizer(op=hvd.Adasum) works on the whole world only, not on {}.'
                                  .format(process_set))
    if named_parameters is not None:
        named_parameters = list(named_parameters)
    names_of(optimizer.param_groups, named_parameters)  # raises its errors while the optimizer is unchanged
    before = set(vars(optimizer)).difference(vars(optimizer).get('_hvd_attributes', ()))
    with_adasum = op == Adasum and size() > 1
    wrapping.extend(optimizer, _DistributedAdasumOptimizer if with_adasum else _DistributedOptimizer)
    if with_adasum:
        optimizer._hvd_setup(named_parameters, compression, backward_passes_per_step)
    else:
        optimizer._hvd_setup(named_parameters, compression, backward_passes_per_step, op, gradient_predivide_factor,
                             groups, sparse_as_dense, process_set, gradient_as_bucket_view)
    optimizer._hvd_attributes = {'_hvd_attributes'}.union(vars(optimizer)).difference(before)
    return optimizer
