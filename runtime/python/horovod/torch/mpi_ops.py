"""The collectives on torch tensors, blocking and not, in place and not.

Nothing here is compiled: the runtime gets pointers. The blocking calls that are not in place are differentiable;
what their gradients are is in autograd.py.
"""

from __future__ import annotations

import torch

from horovod.common import basics as _common_basics
from horovod.common.exceptions import HorovodInternalError  # noqa: F401 (part of the interface)
from horovod.common.process_sets import (  # noqa: F401 (part of the interface)
    ProcessSet, add_process_set, global_process_set, remove_process_set)
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.torch import framework
from horovod.torch.autograd import (
    HorovodAllgather, HorovodAllreduce, HorovodAlltoall, HorovodBroadcast, HorovodGroupedAllgather,
    HorovodGroupedAllreduce, HorovodGroupedReducescatter, HorovodReducescatter)
from horovod.torch.compression import Compression

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Sequence, Type, Union
    from horovod.torch.compression import Compressor

_basics = _common_basics.shared()

init = _basics.init
shutdown = _basics.shutdown
should_stop = _basics.should_stop
is_initialized = _basics.is_initialized
start_timeline = _basics.start_timeline
stop_timeline = _basics.stop_timeline
size = _basics.size
local_size = _basics.local_size
cross_size = _basics.cross_size
rank = _basics.rank
local_rank = _basics.local_rank
cross_rank = _basics.cross_rank
is_homogeneous = _basics.is_homogeneous
mpi_threads_supported = _basics.mpi_threads_supported
mpi_enabled = _basics.mpi_enabled
mpi_built = _basics.mpi_built
gloo_enabled = _basics.gloo_enabled
gloo_built = _basics.gloo_built
nccl_built = _basics.nccl_built
ddl_built = _basics.ddl_built
ccl_built = _basics.ccl_built
cuda_built = _basics.cuda_built
rocm_built = _basics.rocm_built

Average = _basics.Average
Sum = _basics.Sum
Adasum = _basics.Adasum
Min = _basics.Min
Max = _basics.Max
Product = _basics.Product

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun(_basics)

_DTYPES = framework.DTYPES
_Torch = framework.Torch
_operations = framework.operations
_handle_map = _operations.pending

poll = _operations.poll
synchronize = _operations.synchronize


def _check_has_gpu():
    return torch.cuda.is_available()


def _wants_gradient(*tensors):
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
            return torch.is_grad_enabled()
    return False


# Newer releases require this argument; the indices come from sparse tensors.
_UNCHECKED = {'check_invariants': False} if hasattr(torch.sparse, 'check_sparse_tensor_invariants') else {}


def sparse_zeros(p: torch.Tensor, sparse_dim: int, entries: int = 0) -> torch.Tensor:
    """Makes a sparse tensor of zeros, for a parameter without a sparse gradient in this step.

    Args:
        p: The tensor whose shape, dtype and device the result has.
        sparse_dim: How many of the first dimensions are sparse.
        entries: How many explicit zeros it has, 0 or 1.

    Returns: A sparse COO tensor.
    """
    return torch.sparse_coo_tensor(torch.zeros(sparse_dim, entries, dtype=torch.int64, device=p.device),
                                   p.new_zeros((entries,) + p.shape[sparse_dim:]), p.shape, device=p.device,
                                   **_UNCHECKED)


# SparseAdam of PyTorch 1 cannot read an empty gradient, except in the form that zero_grad() gives it.
_one = torch.zeros(1, 1, device='cpu')
_DENSE_DIMENSIONS_NEED_ENTRIES = _one.sparse_mask(sparse_zeros(_one, 1).coalesce())._values().dim() != 2


def _sparse_gradient(combined):
    """A combined sparse gradient in a form that the optimizers of this release can read.

    Args:
        combined: A sparse tensor of the COO layout.

    Returns:
        That tensor, or, where it has no entries and this release needs it, one without dense dimensions.
    """
    if _DENSE_DIMENSIONS_NEED_ENTRIES and not combined._nnz():
        return torch.sparse_coo_tensor(combined.shape, dtype=combined.dtype, device=combined.device)
    return combined


# ---- allreduce


def allreduce_async(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
                    op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> int:
    """Starts an allreduce() and returns at once.

    Do not change the tensor before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same shape and dtype on every rank.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum. Cannot be
            combined with op.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns a new tensor.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.

    Example:

        handle = hvd.allreduce_async(x, name='x')
        ...
        x = hvd.synchronize(handle)
    """
    op = handle_average_backwards_compatibility(op, average)
    return _operations.allreduce_async(tensor, False, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
                     op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> int:
    """Starts an allreduce_(), which is in place, and returns at once.

    Do not change the tensor before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same shape and dtype on every rank. It is
            overwritten with the result.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum. Cannot be
            combined with op.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the tensor itself.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    op = handle_average_backwards_compatibility(op, average)
    return _operations.allreduce_async(tensor, True, name, op, prescale_factor, postscale_factor, process_set)


def allreduce(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
              compression: Type[Compressor] = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Combines the tensors of all ranks into a new one on every rank. Differentiable.

    The result has the same bits on every rank.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same shape and dtype on every rank.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum. Cannot be
            combined with op.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        compression: hvd.Compression.none, or hvd.Compression.fp16 or bf16 to send floating point
            data in 16 bits.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A new tensor of the same shape and dtype.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.

    Example:

        mean = hvd.allreduce(loss, name='loss')
    """
    op = handle_average_backwards_compatibility(op, average)
    compressed, ctx = compression.compress(tensor)
    if _wants_gradient(compressed):
        reduced = HorovodAllreduce.apply(compressed, None, name, op, prescale_factor, postscale_factor, process_set)
    else:
        reduced = _operations.allreduce(compressed, False, name, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, ctx)


def allreduce_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
               op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Combines the tensors of all ranks in place.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same shape and dtype on every rank. It is
            overwritten with the result.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum. Cannot be
            combined with op.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The same tensor.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    op = handle_average_backwards_compatibility(op, average)
    return _operations.allreduce(tensor, True, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async(tensors: Sequence[torch.Tensor], average: Optional[bool] = None,
                            name: Optional[str] = None, op: Optional[int] = None, prescale_factor: float = 1.0,
                            postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> int:
    """Starts a grouped_allreduce() and returns at once.

    Do not change the tensors before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensors: A list of dense, contiguous tensors on the CPU or one GPU, at least one, in the same order
            on every rank: members are matched by their places. Each has the same shape and dtype on
            every rank; the dtypes of the members may differ.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum. Cannot be
            combined with op.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: One handle for poll() and synchronize(); synchronize(handle) returns a tuple of new
        tensors.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    op = handle_average_backwards_compatibility(op, average)
    return _operations.grouped_allreduce_async(tensors, False, name, op, prescale_factor, postscale_factor,
                                               process_set)


def grouped_allreduce_async_(tensors: Sequence[torch.Tensor], average: Optional[bool] = None,
                             name: Optional[str] = None, op: Optional[int] = None, prescale_factor: float = 1.0,
                             postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> int:
    """Starts a grouped_allreduce_(), which is in place, and returns at once.

    Do not change the tensors before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensors: A list of dense, contiguous tensors on the CPU or one GPU, at least one. Each has the same
            shape and dtype on every rank; the dtypes of the members may differ. They are
            overwritten with the results.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum. Cannot be
            combined with op.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: One handle for poll() and synchronize(); synchronize(handle) returns a tuple of the
        same tensors.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    op = handle_average_backwards_compatibility(op, average)
    return _operations.grouped_allreduce_async(tensors, True, name, op, prescale_factor, postscale_factor,
                                               process_set)


def grouped_allreduce(tensors: Sequence[torch.Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                      compression: Type[Compressor] = Compression.none, op: Optional[int] = None,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """Combines several tensors of all ranks as one operation. Differentiable.

    The ranks agree about all of them at once; all succeed or all fail.

    Args:
        tensors: A list of dense, contiguous tensors on the CPU or one GPU, at least one, in the same order
            on every rank: members are matched by their places. Each has the same shape and dtype on
            every rank; the dtypes of the members may differ.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum. Cannot be
            combined with op.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        compression: hvd.Compression.none, or hvd.Compression.fp16 or bf16 to send floating point
            data in 16 bits.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list of new tensors, in the same order.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    op = handle_average_backwards_compatibility(op, average)
    compressed, contexts = zip(*[compression.compress(t) for t in tensors]) if len(tensors) else ((), ())
    if _wants_gradient(*compressed):
        reduced = HorovodGroupedAllreduce.apply(None, name, op, prescale_factor, postscale_factor, process_set,
                                                *compressed)
    else:
        reduced = synchronize(_operations.grouped_allreduce_async(compressed, False, name, op, prescale_factor,
                                                                  postscale_factor, process_set))
    return [compression.decompress(t, ctx) for t, ctx in zip(reduced, contexts)]


def grouped_allreduce_(tensors: Sequence[torch.Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                       op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """Combines several tensors of all ranks as one operation, in place.

    Args:
        tensors: A list of dense, contiguous tensors on the CPU or one GPU, at least one. Each has the same
            shape and dtype on every rank; the dtypes of the members may differ. They are
            overwritten with the results.
        average: Deprecated: True means op=hvd.Average, False op=hvd.Sum. Cannot be
            combined with op.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average, Sum, Min, Max, Product or Adasum. None means hvd.Average.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A list of the same tensors.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    return list(synchronize(grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor,
                                                     process_set)))


def sparse_allreduce_async(tensor: torch.Tensor, name: str, op: int,
                           process_set: ProcessSet = global_process_set) -> Callable[[], torch.Tensor]:
    """Starts a sum or average of sparse tensors and returns at once.

    The entries travel, not the zeros between them.

    Args:
        tensor: A sparse COO tensor on the CPU or a GPU; the same shape and dtype on every rank, with any
            number of entries.
        name: Matches the calls of the ranks; None as for allreduce().
        op: hvd.Average or hvd.Sum.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A function without arguments that waits and returns the sparse result. It raises
        HorovodInternalError if the operation fails.

    Raises:
        ValueError: Another op, or a tensor that is not sparse COO.

    Example:

        result = hvd.sparse_allreduce_async(gradient, name='embedding', op=hvd.Average)()
    """
    if op not in (Average, Sum):
        raise ValueError('hvd.sparse_allreduce_async takes op=hvd.Average or hvd.Sum, but {!r} was given.'.format(op))
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.sparse_coo:
        raise ValueError('hvd.sparse_allreduce_async takes a sparse COO tensor; use hvd.allreduce_async for others.')
    tensor = tensor.detach().coalesce()
    indices = tensor.indices().t().contiguous()
    handle = grouped_allgather_async([indices, tensor.values().contiguous()], name, process_set)

    def wait():
        all_indices, values = synchronize(handle)
        if op == Average:
            values = values / process_set.size()
        return torch.sparse_coo_tensor(all_indices.t(), values, tensor.shape, device=values.device, **_UNCHECKED)

    return wait


# ---- allgather


def allgather_async(tensor: torch.Tensor, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Starts an allgather() and returns at once.

    Do not change the tensor before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same dtype and dimensions on every rank,
            except for dimension 0.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the concatenated
        tensor.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    return _operations.allgather_async(tensor, name, process_set)


def allgather(tensor: torch.Tensor, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Concatenates the tensors of all ranks along dimension 0. Differentiable.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same dtype and dimensions on every rank,
            except for dimension 0.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A new tensor on every rank: the rows of the first rank of the set, then those of the
        next.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.

    Example:

        predictions = hvd.allgather(own_predictions)  # ranks may bring different numbers of rows
    """
    if _wants_gradient(tensor):
        return HorovodAllgather.apply(tensor, name, process_set)
    return synchronize(allgather_async(tensor, name, process_set))


def grouped_allgather_async(tensors: Sequence[torch.Tensor], name: Optional[str] = None,
                            process_set: ProcessSet = global_process_set) -> int:
    """Starts a grouped_allgather() and returns at once.

    Do not change the tensors before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensors: A list of dense, contiguous tensors on the CPU or one GPU, at least one. Each has the same
            dtype and dimensions on every rank, except for dimension 0; the dtypes of the members
            may differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: One handle for poll() and synchronize(); synchronize(handle) returns a tuple of
        tensors.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    return _operations.grouped_allgather_async(tensors, name, process_set)


def grouped_allgather(tensors: Sequence[torch.Tensor], name: Optional[str] = None,
                      process_set: ProcessSet = global_process_set) -> List[torch.Tensor]:
    """Concatenates several tensors of all ranks as one operation. Differentiable.

    Args:
        tensors: A list of dense, contiguous tensors on the CPU or one GPU, at least one. Each has the same
            dtype and dimensions on every rank, except for dimension 0; the dtypes of the members
            may differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A tuple of new tensors, in the same order.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    if _wants_gradient(*tensors):
        return HorovodGroupedAllgather.apply(name, process_set, *tensors)
    return synchronize(grouped_allgather_async(tensors, name, process_set))


# ---- broadcast


def broadcast_async(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> int:
    """Starts a broadcast() and returns at once.

    Do not change the tensor before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same shape and dtype on every rank.
        root_rank: The rank whose tensor is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns a new tensor.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    return _operations.broadcast_async(tensor, False, root_rank, name, process_set)


def broadcast_async_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> int:
    """Starts a broadcast_(), which is in place, and returns at once.

    Do not change the tensor before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same shape and dtype on every rank. It is
            overwritten with the root's on the other ranks.
        root_rank: The rank whose tensor is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the tensor itself.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    return _operations.broadcast_async(tensor, True, root_rank, name, process_set)


def broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Broadcasts the root\'s tensor to every rank. Differentiable.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same shape and dtype on every rank.
        root_rank: The rank whose tensor is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A new tensor on every rank.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    if _wants_gradient(tensor):
        return HorovodBroadcast.apply(tensor, root_rank, name, process_set)
    return _operations.broadcast(tensor, False, root_rank, name, process_set)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Overwrites the tensor with the root's.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same shape and dtype on every rank. It is
            overwritten with the root's on the other ranks.
        root_rank: The rank whose tensor is sent: its rank in the world, also within a process set.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The same tensor.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    return _operations.broadcast(tensor, True, root_rank, name, process_set)


# ---- alltoall


def alltoall_async(tensor: torch.Tensor, splits: Union[torch.Tensor, Sequence[int], None] = None,
                   name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> int:
    """Starts an alltoall() and returns at once.

    Do not change the tensor before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same dtype and dimensions on every rank,
            except for dimension 0.
        splits: How many rows go to each member of the set, in order of rank: a list of integers, or
            an int32 tensor of one dimension. None: equal shares.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the pair of received
        tensor and received splits, also when splits is None.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    return _operations.alltoall_async(tensor, splits, name, process_set)


def alltoall(tensor: torch.Tensor, splits: Union[torch.Tensor, Sequence[int], None] = None, name: Optional[str] = None,
             process_set: ProcessSet = global_process_set) -> Any:
    """Sends rows of the tensor to each rank and returns the rows that were sent to this one. Differentiable.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. The same dtype and dimensions on every rank,
            except for dimension 0.
        splits: How many rows go to each member of the set, in order of rank: a list of integers, or
            an int32 tensor of one dimension. None: equal shares.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        process_set: The ranks that take part; this rank must be one of them.

    Returns: The received rows, in order of the rank that sent them. With splits, a pair of that
        tensor and the number of rows from each rank (int32).

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.

    Example:

        received, rows = hvd.alltoall(x, splits=[1, 3])  # on two ranks: row 0 goes to rank 0, rows 1-3 to rank 1
    """
    if _wants_gradient(tensor):
        received, received_splits = HorovodAlltoall.apply(tensor, splits, name, process_set)
    else:
        received, received_splits = synchronize(alltoall_async(tensor, splits, name, process_set))
    return received if splits is None else (received, received_splits)


# ---- reducescatter


def reducescatter_async(tensor: torch.Tensor, name: Optional[str] = None, op: int = Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0) -> int:
    """Starts a reducescatter() and returns at once.

    Do not change the tensor before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. At least one dimension; the same shape and
            dtype on every rank.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average or hvd.Sum; any other is a HorovodInternalError on every rank.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A handle for poll() and synchronize(); synchronize(handle) returns the rows of this
        rank.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    framework.check_scattered(tensor)
    return _operations.reducescatter_async(tensor, name, op, prescale_factor, postscale_factor, process_set)


def reducescatter(tensor: torch.Tensor, name: Optional[str] = None, compression: Type[Compressor] = Compression.none,
                  op: int = Average, process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> torch.Tensor:
    """Combines the tensors of all ranks and scatters the rows of the result. Differentiable.

    Dimension 0 is shared equally; if that is not possible, the first ranks get one more row.

    Args:
        tensor: A dense, contiguous tensor on the CPU or a GPU. At least one dimension; the same shape and
            dtype on every rank.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        compression: hvd.Compression.none, or hvd.Compression.fp16 or bf16 to send floating point
            data in 16 bits.
        op: hvd.Average or hvd.Sum; any other is a HorovodInternalError on every rank.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A new tensor with the rows of this rank.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    compressed, ctx = compression.compress(tensor)
    if _wants_gradient(compressed):
        framework.check_scattered(compressed)
        reduced = HorovodReducescatter.apply(compressed, name, op, process_set, prescale_factor, postscale_factor)
    else:
        reduced = synchronize(reducescatter_async(compressed, name, op, process_set, prescale_factor,
                                                  postscale_factor))
    return compression.decompress(reduced, ctx)


def grouped_reducescatter_async(tensors: Sequence[torch.Tensor], name: Optional[str] = None, op: int = Average,
                                process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> int:
    """Starts a grouped_reducescatter() and returns at once.

    Do not change the tensors before synchronize(), which raises HorovodInternalError if the
    operation fails.

    Args:
        tensors: A list of dense, contiguous tensors on the CPU or one GPU, at least one. Each has at least one
            dimension and the same shape and dtype on every rank; the dtypes of the members may
            differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        op: hvd.Average or hvd.Sum; any other is a HorovodInternalError on every rank.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: One handle for poll() and synchronize(); synchronize(handle) returns a tuple of
        tensors.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    framework.check_scattered(*tensors)
    return _operations.grouped_reducescatter_async(tensors, name, op, prescale_factor, postscale_factor, process_set)


def grouped_reducescatter(tensors: Sequence[torch.Tensor], name: Optional[str] = None,
                          compression: Type[Compressor] = Compression.none, op: int = Average,
                          process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> List[torch.Tensor]:
    """A reducescatter() of several tensors as one operation. Differentiable.

    Args:
        tensors: A list of dense, contiguous tensors on the CPU or one GPU, at least one. Each has at least one
            dimension and the same shape and dtype on every rank; the dtypes of the members may
            differ.
        name: Matches the calls of the ranks. Unique among the operations that are in flight. None:
            unnamed calls are matched in the order in which each rank makes them.
        compression: hvd.Compression.none, or hvd.Compression.fp16 or bf16 to send floating point
            data in 16 bits.
        op: hvd.Average or hvd.Sum; any other is a HorovodInternalError on every rank.
        process_set: The ranks that take part; this rank must be one of them.
        prescale_factor: Each input is multiplied by this number first.
        postscale_factor: The result is multiplied by this number.

    Returns: A list of new tensors, in the same order.

    Raises:
        ValueError: An argument is wrong, the name is in flight, hvd.init() has not been called, or
            this rank is not in the process set. Nothing was submitted.
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        NotImplementedError: A tensor is on another device, or on a GPU that cannot be used.
    """
    compressed, contexts = zip(*[compression.compress(t) for t in tensors]) if len(tensors) else ((), ())
    if _wants_gradient(*compressed):
        framework.check_scattered(*compressed)
        reduced = HorovodGroupedReducescatter.apply(name, op, process_set, prescale_factor, postscale_factor,
                                                    *compressed)
    else:
        reduced = synchronize(grouped_reducescatter_async(compressed, name, op, process_set, prescale_factor,
                                                          postscale_factor))
    return [compression.decompress(t, ctx) for t, ctx in zip(reduced, contexts)]


# ---- without tensors


def join(device: int = -1) -> int:
    """Announces that this rank has no more data and waits until every rank has announced the same.

    Meanwhile the allreduces of the other ranks continue without this one, which contributes zeros to sums
    and averages and is left out of Min, Max and Product. Other collectives raise
    HorovodInternalError.

    Args:
        device: Ignored; there for scripts written for Horovod.

    Returns: The rank that joined last, the same number on every rank.

    Raises:
        HorovodInternalError: The ranks disagree about the operation, or a rank left or died.
        ValueError: hvd.init() has not been called.

    Example:

        last = hvd.join()
        hvd.broadcast_parameters(model.state_dict(), root_rank=last)
    """
    return _operations.join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until every rank of the set has called barrier().

    Args:
        process_set: The ranks that take part; this rank must be one of them.

    Raises:
        ValueError: hvd.init() has not been called, or this rank is not in the process set.
        HorovodInternalError: A rank of the set left or died.
    """
    _operations.barrier(process_set)
