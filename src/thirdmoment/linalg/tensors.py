"""Symmetric tensors of order three in k dimensions (N-1 to N-3). Letters as in docs/notation."""

from __future__ import annotations

from thirdmoment._array import Array, array_namespace, on_gpu
from thirdmoment._constants import Work

# Slices of a cube that a GPU sums in one product.
TOGETHER: Work[int] = 10

# Rows whose cubes are summed at once, on the host and on a GPU.
BLOCK: Work[int] = 4096
GPU_BLOCK: Work[int] = 131_072


def blocks_of(Y: Array, size: int | None = None) -> list[slice]:
    """The rows of Y in blocks whose cubes are best summed at once, where Y is."""
    n, size = Y.shape[0], size or (GPU_BLOCK if on_gpu(Y) else BLOCK)
    return [slice(a, min(a + size, n)) for a in range(0, n, size)]


def contract(T: Array, A: Array, B: Array, C: Array) -> Array:
    """T(A, B, C)[a,b,c] = Σ T[i,j,l] A[i,a] B[j,b] C[l,c] (N-1). Cost O(k^4) for k×k matrices."""
    xp = array_namespace(T, A, B, C)
    T = xp.tensordot(T, C, axes=((2,), (0,)))
    T = xp.tensordot(xp.permute_dims(T, (0, 2, 1)), B, axes=((2,), (0,)))
    return xp.permute_dims(xp.tensordot(T, A, axes=((0,), (0,))), (2, 1, 0))


def symmetrise(T: Array) -> Array:
    """Average over the six axis permutations (N-3)."""
    xp = array_namespace(T)
    T = (T + xp.permute_dims(T, (1, 0, 2))) / 2
    return sum_of_axes(T) / 3


def sum_of_axes(A: Array) -> Array:
    """S3(A) of a tensor symmetric in its first two axes (N-2): the odd axis takes each place."""
    xp = array_namespace(A)
    return A + xp.permute_dims(A, (2, 0, 1)) + xp.permute_dims(A, (1, 2, 0))


def outer_sum(P: Array, m: Array) -> Array:
    """S3(P ⊗ m) of a symmetric matrix P (k,k) and a vector m (k,) (N-2)."""
    return sum_of_axes(P[:, :, None] * m[None, None, :])


def add_symmetric_cube(T: Array, weights: Array, Y: Array) -> Array:
    """Add Σ_a weights_a y_a⊗y_a⊗y_a to the upper part of T, in place, and return T.

    Y is (n, k). Only entries with b, c >= a of T[a, b, c] are kept (`fill_symmetric` completes
    them), so the cost is (2/3) n k^3 flops in k matrix products; on a GPU in fewer, larger ones.
    """
    k, step = T.shape[0], TOGETHER if on_gpu(Y) else 1
    for a in range(0, k, step):
        b, tail = min(a + step, k), Y[:, a:]
        T[a:b, a:, a:] += _product_sums(Y[:, a:b] * weights[:, None], tail, tail)
    return T


def add_symmetric_products(T: Array, W: Array, H: Array) -> Array:
    """Add Σ_j w_j⊗w_j⊗h_j over the rows of W and H (n, k) to T[a, b, :] with b >= a, in place."""
    k, step = T.shape[0], TOGETHER if on_gpu(W) else 1
    for a in range(0, k, step):
        b = min(a + step, k)
        T[a:b, a:, :] += _product_sums(W[:, a:b], W[:, a:], H)
    return T


def add_products(T: Array, A: Array, B: Array, C: Array) -> Array:
    """Add Σ a⊗b⊗c over the rows of A (n, p), B (n, q) and C (n, r) to T (p, q, r), in place."""
    p, step = T.shape[0], TOGETHER if on_gpu(A) else 1
    for i in range(0, p, step):
        own = slice(i, min(i + step, p))
        T[own, :, :] += _product_sums(A[:, own], B, C)
    return T


def _product_sums(A: Array, B: Array, C: Array) -> Array:
    """Σ a⊗b⊗c (p, q, r) over the rows of A (n, p), B (n, q) and C (n, r), by one product."""
    xp = array_namespace(A)
    pairs = xp.reshape(A[:, :, None] * B[:, None, :], (A.shape[0], A.shape[1] * B.shape[1]))
    return xp.reshape(pairs.T @ C, (A.shape[1], B.shape[1], C.shape[1]))


def fill_symmetric(T: Array) -> Array:
    """Complete a tensor from its entries with b, c >= a; inverse of keeping only those."""
    xp = array_namespace(T)
    if not on_gpu(T):  # slices are quicker than masks, and take no memory
        full = xp.zeros_like(T)
        for i in range(T.shape[0]):
            full[i, i:, i:] = full[i:, i, i:] = full[i:, i:, i] = T[i, i:, i:]
        return full
    a, b, c = _places(T)
    second = xp.where(b <= c, xp.permute_dims(T, (1, 0, 2)), xp.permute_dims(T, (1, 2, 0)))
    return xp.where((a <= b) & (a <= c), T, second)


def fill_pairs(T: Array) -> Array:
    """Complete a tensor that is symmetric in its first two axes from its entries with b >= a."""
    xp = array_namespace(T)
    a, b, _ = _places(T)
    return xp.where(a <= b, T, xp.permute_dims(T, (1, 0, 2)))


def _places(T: Array) -> tuple[Array, Array, Array]:
    """The three indices of each entry, to be compared with each other."""
    n = array_namespace(T).arange(T.shape[0], device=getattr(T, "device", None))
    return n[:, None, None], n[None, :, None], n[None, None, :]
