"""Compiled plane rotations. The last axis is the stack of operators, contiguous in memory."""

import math

import numpy as np

from thirdmoment._array.compile import compiled


@compiled(inner=True)
def rotate(A, V, p, q, c, s):  # type: ignore[no-untyped-def]
    """A <- Jᵀ A J in the plane (p, q) for every operator, V <- V J."""
    k, m = A.shape[0], A.shape[2]
    for i in range(k):
        for e in range(m):
            x, y = A[p, i, e], A[q, i, e]
            A[p, i, e] = c * x + s * y
            A[q, i, e] = c * y - s * x
    for i in range(k):
        for e in range(m):
            x, y = A[i, p, e], A[i, q, e]
            A[i, p, e] = c * x + s * y
            A[i, q, e] = c * y - s * x
    for i in range(V.shape[0]):
        x, y = V[i, p], V[i, q]
        V[i, p] = c * x + s * y
        V[i, q] = c * y - s * x


@compiled(writes=("A", "V"))
def jacobi_sweeps(A, V, tol, max_sweeps):  # type: ignore[no-untyped-def]
    """Joint diagonalisation of symmetric A[:, :, e] (TF-14), in place; (sweeps, largest sine)."""
    k, m = A.shape[0], A.shape[2]
    sine = 0.0
    for sweep in range(1, max_sweeps + 1):
        sine = 0.0
        for p in range(k - 1):
            for q in range(p + 1, k):
                g00 = g01 = g11 = 0.0
                for e in range(m):
                    x = A[p, p, e] - A[q, q, e]
                    y = A[p, q, e] + A[q, p, e]
                    g00 += x * x
                    g01 += x * y
                    g11 += y * y
                on, off = g00 - g11, 2.0 * g01
                phi = 0.5 * math.atan2(off, on + math.hypot(on, off))
                s = math.sin(phi)
                if abs(s) > tol:
                    sine = max(sine, abs(s))
                    rotate(A, V, p, q, math.cos(phi), s)
        if sine <= tol:
            return sweep, sine
    return max_sweeps, sine


@compiled(inner=True)
def schur_profile(A, a, b, c, s):  # type: ignore[no-untyped-def]
    """Part of Σ‖lower(JᵀAJ)‖² that a rotation in the plane (a, b), a < b, changes."""
    total = 0.0
    for e in range(A.shape[2]):
        aa, ab, ba, bb = A[a, a, e], A[a, b, e], A[b, a, e], A[b, b, e]
        corner = c * c * ba - s * s * ab + c * s * (bb - aa)
        total += corner * corner
        for i in range(a + 1, b):
            low = c * A[b, i, e] - s * A[a, i, e]
            left = c * A[i, a, e] + s * A[i, b, e]
            total += low * low + left * left
    return total


@compiled(inner=True)
def schur_angle(A, a, b, to_coefficients):  # type: ignore[no-untyped-def]
    """Angle that minimises the profile: a trigonometric polynomial in 2φ of degree two."""
    f = np.empty(5)
    for i in range(5):
        phi = i * math.pi / 5
        f[i] = schur_profile(A, a, b, math.cos(phi), math.sin(phi))
    w = to_coefficients @ f
    best, angle = f[0], 0.0
    for i in range(-32, 33):
        phi = i * math.pi / 64
        value = (
            w[0]
            + w[1] * math.cos(2 * phi)
            + w[2] * math.sin(2 * phi)
            + w[3] * math.cos(4 * phi)
            + w[4] * math.sin(4 * phi)
        )
        if value < best:
            best, angle = value, phi
    for _ in range(20):
        c2, s2, c4, s4 = (
            math.cos(2 * angle),
            math.sin(2 * angle),
            math.cos(4 * angle),
            math.sin(4 * angle),
        )
        slope = -2 * w[1] * s2 + 2 * w[2] * c2 - 4 * w[3] * s4 + 4 * w[4] * c4
        bend = -4 * w[1] * c2 - 4 * w[2] * s2 - 16 * w[3] * c4 - 16 * w[4] * s4
        if bend <= 0:
            break
        move = slope / bend
        angle -= move
        if abs(move) < 1e-14:
            break
    return angle, f[0]


@compiled(writes=("A", "Q"))
def schur_sweeps(A, Q, tol, max_sweeps):  # type: ignore[no-untyped-def]
    """Joint triangularisation of A[:, :, e] (SC-10), in place; (sweeps, largest sine)."""
    k = A.shape[0]
    design = np.empty((5, 5))
    for i in range(5):
        phi = i * math.pi / 5
        design[i, 0] = 1.0
        design[i, 1], design[i, 2] = math.cos(2 * phi), math.sin(2 * phi)
        design[i, 3], design[i, 4] = math.cos(4 * phi), math.sin(4 * phi)
    to_coefficients = np.linalg.inv(design)
    sine = 0.0
    for sweep in range(1, max_sweeps + 1):
        sine = 0.0
        for a in range(k - 1):
            for b in range(a + 1, k):
                phi, before = schur_angle(A, a, b, to_coefficients)
                c, s = math.cos(phi), math.sin(phi)
                if abs(s) > tol and schur_profile(A, a, b, c, s) < before:
                    sine = max(sine, abs(s))
                    rotate(A, Q, a, b, c, s)
        if sine <= tol:
            return sweep, sine
    return max_sweeps, sine
