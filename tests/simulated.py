"""A GPU that the host plays, for tests of what has to be where, of waiting and of memory.

Its tensors say that they are on ``cuda:0``. NumPy cannot read them, they do not meet tensors of the
host, and all of them together have a limited memory, past which `torch.OutOfMemoryError` is raised
as on a GPU. What they compute, PyTorch computes on the host; plain operations stand in for kernels.
"""

import contextlib
import functools
import threading
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from thirdmoment._array import _triton as row_kernels
from thirdmoment._array import namespace, threads
from thirdmoment._array.torch_rows import TorchRows
from thirdmoment.likelihood import _triton as likelihood_kernels
from thirdmoment.likelihood.tensor_documents import entries, plain_fold_in
from thirdmoment.refinement import _triton as sweep_kernels
from thirdmoment.refinement.collapsed import plain_sweep

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)

MIXED = {"copy_", "to", "as_tensor", "tensor", "asarray"}
WAITING = {"nonzero", "unique", "masked_select"}  # for how many there are
TO_HOST = {"cpu", "item", "tolist", "__float__", "__int__", "__bool__", "__index__"}
REFUSED = {"numpy", "__array__", "__dlpack__"}
WRITTEN = {"copy_", "__setitem__"}


class GPU(TorchFunctionMode):
    """The device, with ``memory`` bytes; ``None`` is as much as is asked for.

    Attributes
    ----------
    calls : how often each function of torch, and each kernel, has run there
    waits : how often the host waited for a number or an array; sending one may take waiting, too
    peak : the most bytes that were in use at a time
    refusals : how often there was no room
    """

    def __init__(self, memory=None):
        super().__init__()
        self.memory, self.used, self.peak, self.refusals = memory, 0, 0, 0
        self.calls, self.waits = Counter(), 0
        self.lock, self.holders = threading.RLock(), Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = {name: one for name, one in (kwargs or {}).items() if name != "pin_memory"}
        name, there = getattr(func, "__name__", ""), holds_one(args) or holds_one(kwargs)
        if name in ("__get__", "__set__"):  # of a property
            return self._property(func, args) if there else func(*args)
        target = _target(name, args, kwargs)
        if not there and target != CUDA:
            return func(*args, **kwargs)
        if there:
            _refuse(name, (*args, *kwargs.values()))
            _refuse_in_a_fixed_order(name, args, kwargs)
        found = func(*_mapped(_inner, args), **_mapped(_inner, kwargs))
        self.calls[name] += 1
        if not there and isinstance(found, torch.Tensor):  # sent, which shares nothing
            found = found.clone()
        self.waits += name in WAITING or _by_mask(name, args)
        if name in TO_HOST or target == CPU or (name in WRITTEN and type(args[0]) is torch.Tensor):
            self.waits += 1
            return found.clone() if isinstance(found, torch.Tensor) else found
        return args[0] if name in WRITTEN else self.wrapped(found)

    def _property(self, func, args):
        return CUDA if func.__self__.__name__ == "device" else self.wrapped(func(args[0].inner))

    def wrapped(self, found):
        """Results as tensors of this device."""
        if isinstance(found, torch.Tensor):
            return found if isinstance(found, There) else There.of(found, self)
        if not isinstance(found, tuple | list) or isinstance(found, torch.Size):
            return found
        parts = [self.wrapped(one) for one in found]
        named = hasattr(found, "_fields")
        return type(found)(*parts) if named else type(found)(parts)

    def launched(self, name, stand_in):
        """What stands in for a kernel, given and giving tensors of this device."""

        @functools.wraps(stand_in)
        def there(*args, **kwargs):
            with torch._C.DisableTorchFunction():
                inside = [_argument(one) for one in args]
                found = stand_in(*inside, **kwargs)
                self.calls[name] += 1
                same = [one for one, own in zip(args, inside, strict=True) if own is found]
                return same[0] if same else self.wrapped(found)

        return there

    def take(self, held):
        """Count memory, told apart by where it is, until `free`; views share theirs."""
        with self.lock:
            size = sum(held[place] for place in held if not self.holders[place])
            if size and self.memory is not None and self.used + size > self.memory:
                self.refusals += 1
                raise torch.OutOfMemoryError(
                    f"CUDA out of memory. Tried to allocate {size} bytes; {self.used} of "
                    f"{self.memory} are in use."
                )
            self.used += size
            self.peak = max(self.peak, self.used)
            self.holders.update(held.keys())

    def free(self, held):
        with self.lock:
            self.holders.subtract(held.keys())
            self.used -= sum(held[place] for place in held if not self.holders[place])


class There(torch.Tensor):
    """A tensor of the device; ``inner`` is the one of the host that has its numbers."""

    @staticmethod
    def of(inner, gpu):
        held = _memory_of(inner)
        gpu.take(held)
        found = torch.Tensor._make_subclass(There, torch.empty(0))
        found.__dict__.update(inner=inner, gpu=gpu)
        weakref.finalize(found, gpu.free, held)
        return found

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """In threads that the context of the device does not reach."""
        gpu = next(one.gpu for one in _flat((args, kwargs or {})) if isinstance(one, There))
        return gpu.__torch_function__(func, types, args, kwargs)


There.__module__ = "torch"  # as that of any tensor


def _memory_of(tensor):
    """Bytes of what a tensor holds, by where they are."""
    parts = [tensor]
    if tensor.layout == torch.sparse_csr:
        parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    storages = [part.untyped_storage() for part in parts]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


def _target(name, args, kwargs):
    """The device that a call names, None where it names none."""
    if name == "cuda":
        return CUDA
    given = [kwargs.get("device"), *(args[1:] if name == "to" else ())]
    return next((one for one in map(_device, given) if one is not None), None)


def _device(one):
    if isinstance(one, str) and one.split(":")[0] in ("cpu", "cuda"):
        one = torch.device(one)
    if not isinstance(one, torch.device):
        return None
    return CUDA if one.type == "cuda" else one


def _refuse(name, given):
    """Raise what torch raises where tensors of a GPU meet what is not there."""
    if name in REFUSED:
        raise TypeError(f"can't convert cuda:0 device type tensor to numpy ({name}).")
    if name in ("__getitem__", "__setitem__"):
        _refuse_index(*given)
        return
    for one in _flat(given) if name not in MIXED else ():
        if type(one) is torch.Tensor and one.ndim > 0:
            raise RuntimeError(f"Expected all tensors to be on the same device ({name}).")
        if isinstance(one, np.ndarray) and one.ndim > 0:
            raise TypeError(f"A tensor of cuda:0 and an array of NumPy ({name}).")


def _refuse_index(array, index, value=None):
    """Indices of a GPU are for its tensors; whole slices alone are copied from side to side."""
    places = [one for one in _flat([index]) if isinstance(one, torch.Tensor) and one.ndim > 0]
    if type(array) is torch.Tensor and holds_one(places):
        raise RuntimeError("indices should be on the same device as the indexed tensor (cpu).")
    both = isinstance(array, There), isinstance(value, There)
    if places and isinstance(value, torch.Tensor) and value.ndim > 0 and len(set(both)) > 1:
        raise RuntimeError("index_put_ with values of another device.")
    if isinstance(value, np.ndarray):
        raise TypeError("can't assign a numpy.ndarray to a tensor.")


def _by_mask(name, args):
    index = args[1] if name == "__getitem__" else None
    places = [one for one in _flat([index]) if isinstance(one, There)]
    return any(one.inner.dtype == torch.bool for one in places)


def _refuse_in_a_fixed_order(name, args, kwargs):
    """Raise what torch raises of sums that it cannot make in the same order every time."""
    if not torch.are_deterministic_algorithms_enabled():
        return
    weighed = name == "bincount" and (len(args) > 1 or "weights" in kwargs)
    weighed = weighed and (kwargs.get("weights") if len(args) < 2 else args[1]) is not None
    if weighed or (name == "cumsum" and args[0].inner.is_floating_point()):
        raise RuntimeError(f"{name}_cuda does not have a deterministic implementation")


def _flat(values):
    for one in values.values() if isinstance(values, dict) else values:
        if isinstance(one, tuple | list | dict):
            yield from _flat(one)
        else:
            yield one


def holds_one(values):
    return any(isinstance(one, There) for one in _flat(values))


def _mapped(change, values):
    if isinstance(values, dict):
        return {name: _mapped(change, one) for name, one in values.items()}
    if isinstance(values, tuple | list) and not isinstance(values, torch.Size):
        return type(values)(_mapped(change, one) for one in values)
    return change(values)


def _inner(one):
    """An argument on the host."""
    if isinstance(one, There):
        return one.inner
    return CPU if _device(one) == CUDA else one


# Kernels, on tensors of the host ------------------------------------------------------------------


class _Blocks(NamedTuple):
    begin: Any
    length: Any
    size: int


def _argument(one):
    """An argument of a kernel on the host."""
    if isinstance(one, TorchRows):  # kernels multiply in the precision of the products
        parts = one.indptr.inner, one.indices.inner, one.data.inner.to(one.dtype)
        return TorchRows.of(*parts, one.shape)
    if hasattr(one, "begin"):  # of sequences
        return _Blocks(one.begin.inner, one.length.inner, one.size)
    if isinstance(one, tuple):  # likelihoods of observations, or of symbols, and transitions
        rows, code, T = (part if part is None else part.inner for part in one)
        return (rows if code is None else rows[code.long()]), T
    if isinstance(one, torch.Tensor | np.ndarray) and not isinstance(one, There):
        raise TypeError("A kernel gets an array of the host.")
    return _inner(one)


def _dot(X, Q, out):
    return out.copy_(X.dot(Q))


def _tdot(X, weights, Y, out):
    return out.add_(X.tdot(weights, Y))


def _gram(X, weights, Q, out):
    return out.add_(X.gram(weights, Q))


def _sums(Y, rows, values, ptr):
    counts = ptr.diff()
    own = torch.arange(len(counts)).repeat_interleave(counts)
    each = Y[rows[int(ptr[0]) : int(ptr[-1])].long()]
    each = each if values is None else each * values[:, None]
    return Y.new_zeros(len(counts), Y.shape[1]).index_add_(0, own, each)


def _fold_in(X, words, prior, H, n_steps, tol):
    for a, b in X.ranges(words.shape[1]):
        H[a:b] = plain_fold_in(*entries(X, a, b), words, prior, H[a:b], n_steps, tol)
    return H


def _log_likelihood(X, words, H):
    each = X.data * torch.log((H[X.numbers] * words[X.indices.long()]).sum(1))
    return H.new_zeros(X.shape[0]).index_add_(0, X.numbers, each)


def _sweep_documents(*given):
    plain_sweep(*given)


def _sweep_words(X, weights, N, *given):
    return plain_sweep(X, weights, N.clone(), *given)


def _chain_forward(chain, blocks, entry, *, units=False):
    rows, T = chain
    k, begin, length = len(T), blocks.begin, blocks.length
    if units:
        begin, length = begin.repeat_interleave(k), length.repeat_interleave(k)
    a = torch.eye(k, dtype=T.dtype).repeat(blocks.size, 1) if units else entry.clone()
    alpha, logs, least = torch.zeros_like(rows), torch.zeros_like(a[:, 0]), torch.ones_like(a[:, 0])
    for t in range(int(length.max())):
        here = t < length
        at = begin[here] + t
        moved = (a[here] @ T if t else a[here]) * rows[at]
        norm = moved.sum(1)
        least[here] = torch.minimum(least[here], norm)
        norm = torch.where(norm > 0, norm, 1.0)
        a[here] = moved / norm[:, None]
        logs[here] += norm.log()
        if not units:
            alpha[at] = a[here]
    return alpha, a, logs, least


def _chain_backward(chain, blocks, leave, alpha):
    rows, T = chain
    begin, length = blocks.begin, blocks.length
    beta, after, least = leave.clone(), torch.zeros_like(leave), torch.ones_like(leave[:, 0])
    pairs = torch.zeros_like(T)
    for s in range(int(length.max())):
        here = s < length
        at = begin[here] + length[here] - 1 - s
        a = alpha[at].clone()
        if s:
            weighted = after[here] * beta[here]
            moved = weighted @ T.T
            pairs += a.T @ (weighted / (a * moved).sum(1)[:, None])
            norm = moved.sum(1)
            least[here] = torch.minimum(least[here], norm)
            beta[here] = moved / norm[:, None]
        product = a * beta[here]
        whole = product.sum(1)
        least[here] = torch.minimum(least[here], whole)
        alpha[at] = product / whole[:, None]
        after[here] = rows[at]
    return beta, pairs, least


def _drawn(out, seed):
    out.inner.normal_(generator=torch.Generator().manual_seed(seed))
    return out


KERNELS = {
    row_kernels: {"dot": _dot, "tdot": _tdot, "gram": _gram, "sums": _sums},
    likelihood_kernels: {
        "fold_in": _fold_in,
        "log_likelihood": _log_likelihood,
        "chain_forward": _chain_forward,
        "chain_backward": _chain_backward,
    },
    sweep_kernels: {
        "sweep": plain_sweep,
        "sweep_documents": _sweep_documents,
        "sweep_words": _sweep_words,
    },
}


class _Workers(ThreadPoolExecutor):
    """Threads whose tasks are on the device: a mode is one of its thread alone."""

    def __init__(self, gpu, n_threads):
        super().__init__(n_threads)
        self.gpu = gpu

    def submit(self, work, /, *args, **kwargs):
        def there():
            with self.gpu:  # left with the task: a thread must not end with it
                return work(*args, **kwargs)

        return super().submit(there)


@contextlib.contextmanager
def simulated_gpu(memory=None):
    """Context in which there is one GPU, with so many bytes."""
    gpu, patch = GPU(memory), mock.patch.object
    with contextlib.ExitStack() as stack:

        @functools.cache
        def pool(pid, n_threads, name):
            return stack.enter_context(_Workers(gpu, n_threads))

        for module, stand_ins in KERNELS.items():
            for name, stand_in in stand_ins.items():
                stack.enter_context(patch(module, name, gpu.launched(name, stand_in)))
        for name, instead in (
            ("is_available", lambda: True),
            ("device_count", lambda: 1),
            ("empty_cache", lambda: None),
            ("device", lambda device: contextlib.nullcontext()),
        ):
            stack.enter_context(patch(torch.cuda, name, instead))
        stack.enter_context(patch(namespace, "_drawn_there", _drawn))
        stack.enter_context(patch(threads, "_pool", pool))
        yield stack.enter_context(gpu)
