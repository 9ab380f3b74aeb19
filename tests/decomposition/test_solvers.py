"""Every solver on exact and noisy tensors, and against plain references."""

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from thirdmoment.decomposition import SOLVERS, Status, decompose
from thirdmoment.decomposition.eig import best_draw, eig
from thirdmoment.decomposition.joint import joint
from thirdmoment.decomposition.power import power
from thirdmoment.decomposition.result import power_map, tensor_residual
from thirdmoment.decomposition.schur import joint_schur, schur
from thirdmoment.decomposition.tensor import jacobi, simultaneous
from thirdmoment.exceptions import ComplexSpectrum, InvalidInput
from thirdmoment.linalg import symmetrise

NAMES = [name for name in SOLVERS if name != "auto"]


def orthogonal_tensor(k, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((k, k)))[0]
    values = rng.uniform(1, 3, size=k)
    T = np.einsum("i,ai,bi,ci->abc", values, V, V, V)
    return T + noise * symmetrise(rng.standard_normal((k, k, k))), values, V


def worst_error(found, values, V):
    distance = np.linalg.norm(np.asarray(found.vectors)[:, :, None] - V[:, None, :], axis=0)
    rows, columns = linear_sum_assignment(distance)
    gap = np.abs(np.asarray(found.eigenvalues)[rows] - values[columns])
    return distance[rows, columns].max(), gap.max()


@pytest.mark.parametrize("solver", NAMES)
@pytest.mark.parametrize("k", [1, 2, 7])
def test_exact_tensors_give_their_components_back(solver, k):
    T, values, V = orthogonal_tensor(k, seed=k)
    found = decompose(T, solver, np.random.default_rng(0))
    assert max(worst_error(found, values, V)) < 1e-8
    assert found.residual < 1e-7
    assert found.status is Status.CONVERGED


@pytest.mark.parametrize("solver", NAMES)
def test_a_seed_fixes_the_answer(solver):
    T, _, _ = orthogonal_tensor(5, noise=0.02)
    a, b = (decompose(T, solver, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(a.vectors, b.vectors)


def test_negative_components_come_back_with_positive_values():
    T, values, V = orthogonal_tensor(4)
    found = decompose(-T, "tensor", np.random.default_rng(0))
    assert np.all(found.eigenvalues > 0)
    assert max(worst_error(found, values, -V)) < 1e-8


def test_joint_solvers_beat_deflation_under_noise():
    errors = {"jacobi": [], "simultaneous": [], "power": []}
    for seed in range(10):
        T, values, V = orthogonal_tensor(15, seed=seed, noise=0.05)
        rng = np.random.default_rng(seed)
        for name, found in (
            ("jacobi", jacobi(T)),
            ("simultaneous", simultaneous(T, rng)),
            ("power", power(T, rng)),
        ):
            errors[name].append(worst_error(found, values, V)[0])
    median = {name: np.median(value) for name, value in errors.items()}
    assert median["jacobi"] < 0.75 * median["power"]
    assert median["simultaneous"] < 0.75 * median["power"]


def plain_jacobi(T, sweeps=30):
    """Reference: the same rotations in plain NumPy (TF-14)."""
    k = T.shape[0]
    A, V = T.transpose(2, 0, 1).copy(), np.eye(k)
    for _ in range(sweeps):
        for p in range(k - 1):
            for q in range(p + 1, k):
                h = np.stack([A[:, p, p] - A[:, q, q], 2 * A[:, p, q]])
                g = h @ h.T
                on, off = g[0, 0] - g[1, 1], 2 * g[0, 1]
                phi = 0.5 * math.atan2(off, on + math.hypot(on, off))
                J = np.eye(k)
                J[[p, p, q, q], [p, q, p, q]] = (
                    math.cos(phi),
                    -math.sin(phi),
                    math.sin(phi),
                    math.cos(phi),
                )
                A, V = J.T @ A @ J, V @ J
    return V


def test_compiled_jacobi_agrees_with_the_plain_reference():
    T, _, _ = orthogonal_tensor(6, noise=0.1)
    ours, reference = jacobi(T).vectors, plain_jacobi(T)
    overlap = np.abs(ours.T @ reference)
    np.testing.assert_allclose(overlap.max(axis=0), 1, atol=1e-12)


def test_jacobi_from_a_near_start_ends_at_the_same_point():
    T, _, _ = orthogonal_tensor(8, noise=0.02)
    cold = jacobi(T)
    warm = jacobi(T, start=cold.vectors)
    assert warm.iterations <= 2
    np.testing.assert_allclose(np.abs(warm.vectors.T @ cold.vectors), np.eye(8), atol=1e-8)


def test_residual_is_the_share_left_off_the_diagonal():
    T, _, V = orthogonal_tensor(5)
    assert tensor_residual(T, V) < 1e-7
    rotated = np.einsum("abc,ai,bj,cl->ijl", T, np.eye(5), np.eye(5), np.eye(5))
    diagonal = np.einsum("iii->i", rotated)
    expected = math.sqrt(1 - (diagonal**2).sum() / (T**2).sum())
    assert tensor_residual(T, np.eye(5)) == pytest.approx(expected, abs=1e-12)


def test_matrix_free_iterations_equal_those_on_the_formed_tensor():
    T, _, _ = orthogonal_tensor(6, noise=0.02)
    formed = simultaneous(T, np.random.default_rng(1))
    free = simultaneous(np.empty((6, 6)), np.random.default_rng(1), apply=lambda V: power_map(T, V))
    np.testing.assert_allclose(formed.vectors, free.vectors, atol=1e-12)
    assert math.isnan(free.residual)


class TestOperators:
    """Operators B_c = R diag(l_c) R⁻¹ with a common, non-orthogonal basis."""

    def stack(self, k=4, m=6, seed=0, noise=0.0):
        rng = np.random.default_rng(seed)
        R = rng.standard_normal((k, k))
        readout = rng.random((m, k))
        B = np.stack([R @ np.diag(row) @ np.linalg.inv(R) for row in readout])
        return B + noise * rng.standard_normal(B.shape), readout

    @pytest.mark.parametrize("solver", [eig, schur, joint_schur, joint])
    def test_exact_operators_give_their_spectra_back(self, solver):
        B, readout = self.stack()
        found = solver(B, np.random.default_rng(0))
        distance = np.linalg.norm(found.eigenvalues[:, :, None] - readout[:, None, :], axis=0)
        rows, columns = linear_sum_assignment(distance)
        assert distance[rows, columns].max() < 1e-8
        assert found.real_draws == found.draws == 20

    def test_joint_diagonalisation_lowers_the_residual_of_one_draw(self):
        for seed in range(5):
            B, _ = self.stack(seed=seed, noise=1e-3)
            one = eig(B, np.random.default_rng(0))
            many = joint(B, np.random.default_rng(0))
            assert many.residual < one.residual

    def test_joint_schur_lowers_the_residual_of_plain_schur(self):
        for seed in range(5):
            B, _ = self.stack(seed=seed, noise=1e-3)
            one = schur(B, np.random.default_rng(0))
            many = joint_schur(B, np.random.default_rng(0))
            assert many.residual <= one.residual
            np.testing.assert_allclose(many.vectors.T @ many.vectors, np.eye(4), atol=1e-12)

    def test_the_best_draw_has_the_largest_gap(self):
        B, _ = self.stack()
        many = best_draw(B, np.random.default_rng(0), n_draws=50, max_draws=50)
        one = best_draw(B, np.random.default_rng(0), n_draws=1, max_draws=1)
        assert many.gap >= one.gap
        spectrum = np.sort(np.linalg.eigvals(np.tensordot(many.theta, B, axes=1)).real)
        assert many.gap == pytest.approx(np.diff(spectrum).min())

    @pytest.mark.parametrize("solver", [eig, schur])
    def test_a_spectrum_without_real_draw_is_refused(self, solver):
        turn = np.array([[0.0, -1.0], [1.0, 0.0]])
        with pytest.raises(ComplexSpectrum, match="None of 200 random combinations"):
            solver(np.stack([turn, 2 * turn]), np.random.default_rng(0))

    def test_complex_spectra_are_flagged_where_they_are_allowed(self):
        turn = np.array([[0.0, -1.0], [1.0, 0.0]])
        B = np.stack([turn, 2 * turn])
        assert schur(B, np.random.default_rng(0), allow_complex=True).status is Status.COMPLEX
        assert joint(B, np.random.default_rng(0)).status is Status.COMPLEX


def test_unknown_solvers_are_refused_by_name():
    with pytest.raises(InvalidInput, match=r"solver='newton' is unknown\. Choose one of 'auto'"):
        decompose(np.zeros((2, 2, 2)), "newton", np.random.default_rng(0))


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("solver", NAMES)
def test_solvers_follow_the_array_library(library, solver):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    T, values, V = orthogonal_tensor(4)
    found = decompose(module.asarray(T), solver, np.random.default_rng(0))
    assert type(found.vectors) is type(module.asarray(T))
    assert max(worst_error(found, values, V)) < 1e-8


def test_single_precision_stays_single_precision():
    T, values, V = orthogonal_tensor(5)
    for solver in ("tensor", "power"):
        found = decompose(T.astype(np.float32), solver, np.random.default_rng(0))
        assert found.vectors.dtype == np.float32
        assert max(worst_error(found, values, V)) < 1e-4
