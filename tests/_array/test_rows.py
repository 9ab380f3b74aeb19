"""Sparse products against SciPy and torch, blocks, threads."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from thirdmoment._array import (
    CompiledRows,
    DenseRows,
    ShiftedRows,
    as_rows,
    content_signs,
    map_in_order,
    row_blocks,
    row_keys,
    row_signs,
)

PRODUCTS = ["dot", "tdot", "gram", "lengths", "weighted_sum", "second"]


def counts(n=40, d=17, seed=0):
    return sp.csr_array(np.random.default_rng(seed).poisson(0.6, size=(n, d)).astype(float))


def arguments(name, X, seed=1):
    rng = np.random.default_rng(seed)
    w, Q, Y = rng.random(X.shape[0]), rng.random((X.shape[1], 5)), rng.random((X.shape[0], 3))
    return {
        "dot": (Q,),
        "tdot": (w, Y),
        "gram": (w, Q),
        "lengths": (),
        "weighted_sum": (w,),
        "second": (w,),
    }[name]


def reference(name, X, *args):
    if name == "dot":
        return X @ args[0]
    if name == "tdot":
        return X.T @ (args[0][:, None] * args[1])
    if name == "gram":
        return X.T @ (args[0][:, None] * (X @ args[1]))
    if name == "second":
        X = X.toarray() if sp.issparse(X) else X
        return X.T @ (args[0][:, None] * X)
    return X.sum(axis=1) if name == "lengths" else X.T @ args[0]


@pytest.mark.parametrize("name", [*PRODUCTS, "dot_t", "left_dot", "columns", "toarray"])
def test_rows_less_a_thin_product_are_those_rows(name):
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=(40, 2)), sp.random_array((2, 17), density=0.5, rng=rng)
    rows = ShiftedRows(CompiledRows(counts()), left, sp.csr_array(right))
    written_out = DenseRows(counts().toarray() - left @ right.toarray())
    more = {
        "dot_t": (rng.random((3, 17)),),
        "left_dot": (rng.random((3, 40)),),
        "columns": (np.array([3, 0, 16]),),
        "toarray": (),
    }
    args = more[name] if name in more else arguments(name, counts())
    expected = getattr(written_out, name)(*args)
    np.testing.assert_allclose(getattr(rows, name)(*args), expected, rtol=1e-11, atol=1e-11)
    if name in PRODUCTS:
        np.testing.assert_allclose(expected, reference(name, written_out.X, *args), rtol=1e-12)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_products_agree_with_scipy(name, dtype):
    X = counts()
    args = arguments(name, X)
    result = getattr(as_rows(X).astype(dtype), name)(*args)
    # sums of fewer than 40·17 terms of size one: error below 680 roundings
    tolerance = 680 * np.finfo(dtype).eps
    np.testing.assert_allclose(result, reference(name, X, *args), rtol=tolerance)


@pytest.mark.parametrize("name", PRODUCTS)
def test_torch_products_agree_with_scipy(name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = counts()
    dense = torch.as_tensor(X.toarray())
    args = arguments(name, X)
    result = getattr(as_rows(dense.to_sparse_csr()), name)(*args)
    assert result.dtype == torch.float64
    np.testing.assert_allclose(result.numpy(), reference(name, X, *args), rtol=1e-12)


def test_zero_weight_removes_a_row():
    X = counts()
    w = np.ones(X.shape[0])
    w[::2] = 0
    Q = np.eye(X.shape[1])
    np.testing.assert_allclose(as_rows(X).gram(w, Q), (X[1::2].T @ X[1::2]).toarray())


def test_unsupported_rows_are_named():
    with pytest.raises(TypeError, match="list"):
        as_rows([[1, 2]])


def test_row_blocks_cover_every_row_once_and_balance_the_work():
    X = sp.random_array((5000, 300), density=0.3, format="csr", rng=np.random.default_rng(0))
    blocks = row_blocks(X)
    assert blocks[0][0] == 0
    assert blocks[-1][1] == 5000
    assert all(a[1] == b[0] for a, b in itertools.pairwise(blocks))
    assert len(blocks) == 8
    work = [X[start:stop].nnz for start, stop in blocks]
    assert max(work) < 1.1 * min(work)


def test_row_signs_do_not_depend_on_the_chunk_and_are_balanced():
    signs = row_signs(0, 10_000)
    np.testing.assert_array_equal(signs[137:421], row_signs(137, 421))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.sum()) < 4 * 100  # four standard deviations of a fair coin


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_tasks(n_threads):
    assert list(map_in_order(lambda i: i * i, range(50), n_threads=n_threads)) == [
        i * i for i in range(50)
    ]


def test_an_error_in_a_task_reaches_the_caller():
    def work(i):
        if i == 3:
            raise ValueError("task 3")
        return i

    with pytest.raises(ValueError, match="task 3"):
        list(map_in_order(work, range(5), n_threads=2))


def test_rows_of_every_kind_have_the_same_products():
    torch = pytest.importorskip("torch")
    from thirdmoment._array import DenseRows

    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((6, 4)), rng.standard_normal((3, 6))
    B, index = rng.standard_normal((3, 4)), np.array([2, 0])
    for rows in (DenseRows(X), as_rows(sp.csr_array(X)), as_rows(torch.tensor(X))):
        np.testing.assert_allclose(np.asarray(rows.dot_t(B)), B @ X.T)
        np.testing.assert_allclose(np.asarray(rows.left_dot(A)), A @ X)
        np.testing.assert_allclose(np.asarray(rows.columns(index)), X[:, index])
        np.testing.assert_allclose(np.asarray(rows.toarray()), X)
        np.testing.assert_allclose(np.asarray(rows.weighted_sum(A[0])), A[0] @ X)
        np.testing.assert_allclose(
            np.asarray(rows.gram(A[0], B.T)), X.T @ (A[0][:, None] * (X @ B.T))
        )


def test_halves_hang_on_content_and_equal_rows_are_tossed_apart():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.4, size=(3000, 6)).astype(float)  # many equal rows
    signs = content_signs(as_rows(X))
    assert abs(signs.mean()) < 4 / np.sqrt(3000)
    equal = X.sum(axis=1) == 0
    assert equal.sum() > 100
    assert abs(signs[equal].mean()) < 4 / np.sqrt(equal.sum())
    order = rng.permutation(3000)
    turned = content_signs(as_rows(X[order]))
    for half in (1, -1):  # the same rows, counted
        a, b = X[signs == half], X[order][turned == half]
        np.testing.assert_array_equal(a[np.lexsort(a.T)], b[np.lexsort(b.T)])


def test_keys_of_equal_rows_are_equal_and_of_others_differ():
    X = np.random.default_rng(0).poisson(2.0, size=(500, 30)).astype(float)
    keys = row_keys(as_rows(np.concatenate([X, X[::-1]])))
    np.testing.assert_array_equal(keys[:500], keys[500:][::-1])
    assert len(np.unique(keys)) == len(np.unique(X, axis=0))
