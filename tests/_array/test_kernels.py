"""Every kernel compiles for a GPU; what they compute is tested elsewhere.

Triton's interpreter runs a kernel as Python does. What only its compiler refuses (types that do not
meet in a loop, values that are not known in time) shows here, and no GPU is needed for it.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

ARCHITECTURE = 90  # of the GPU that docs/gpu.md measures
SHARED = 227 * 1024  # bytes of its shared memory that a program may have

# Pointers of whole numbers by their names; all others are to the numbers of the data.
WHOLE = {"ptr": "*i64", "ci": "*i32", "rows": "*i64", "begin": "*i64", "length": "*i64"}
SINGLE = {"q": "i32", "K": "i32", "n": "i32", "each": "i32", "n_rows": "i32", "steps": "i32"}


def cases():
    """Kernel, constants, and what else is no pointer to numbers of the data."""
    from thirdmoment._array import _triton as rows
    from thirdmoment.likelihood import _triton as likelihood
    from thirdmoment.refinement import _triton as refinement

    thin, wide = {"KP": 4, "PB": 32}, {"KP": 128, "PB": 1}
    for block in (thin, wide):
        for kernel in (rows._dot, rows._tdot, rows._gram):
            yield kernel, block, {}
    yield rows._dot_alike, {"R": 256, "KP": 4}, {}
    for scaled in (False, True):
        yield rows._sums, {"SCALED": scaled, "R": 32, "KP": 32}, {}
    yield likelihood._fold_in, {"KP": 128}, {"tol": "fp32"}
    yield likelihood._log_likelihood, {"KP": 128}, {}
    for add in (False, True):
        yield refinement._sweep, {"KP": 128, "ADD": add}, {"eta": "fp32"}
    yield refinement._sweep_words, {"R": 8, "KP": 128}, {"eta": "fp32", "owner": "*i64"}
    for coded in (False, True):
        shape = {"CODED": coded, "R": 16, "KP": 32}
        for units in (False, True):
            yield likelihood._chain_forward, {**shape, "UNITS": units}, {"code": "*i32"}
        yield likelihood._chain_backward, shape, {"code": "*i32"}


def adds_where_it_belongs(kernel, constants):
    """Whether a kernel adds to what others add to, in an order that changes from run to run."""
    return constants.get("ADD", kernel.__name__ in ("_tdot", "_gram"))


def compile_all():
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    found = []
    for kernel, constants, other in cases():
        for numbers in ("*fp32", "*fp64"):
            kinds = {**WHOLE, **SINGLE, **other, **dict.fromkeys(constants, "constexpr")}
            signature = {name: kinds.get(name, numbers) for name in kernel.arg_names}
            made = triton.compile(
                ASTSource(kernel, signature=signature, constexprs=constants),
                target=GPUTarget("cuda", ARCHITECTURE, 32),
                options={"num_warps": 1, "enable_fp_fusion": True},
            )
            assert made.metadata.shared <= SHARED
            atomic = re.search(r"\b(atom|red)\.[a-z.]*global", made.asm["ptx"]) is not None
            assert atomic == adds_where_it_belongs(kernel, constants)
            found.append(len(made.asm["cubin"]))
    return found


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_every_kernel_compiles_for_a_gpu(tmp_path):
    env = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    script = "from tests._array.test_kernels import compile_all; print(min(compile_all()))"
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0  # bytes of the smallest program


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_no_kernel_is_left_out():
    from thirdmoment._array import _triton as rows
    from thirdmoment.likelihood import _triton as likelihood
    from thirdmoment.refinement import _triton as refinement

    known = {id(kernel) for kernel, *_ in cases()}
    every = [
        value
        for module in (rows, likelihood, refinement)
        for value in vars(module).values()
        if hasattr(value, "arg_names") and value.__module__ == module.__name__
    ]
    assert len(every) == 11
    assert {id(kernel) for kernel in every} == known
