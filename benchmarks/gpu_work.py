"""What fits ask of a GPU, counted on one that the host plays: no GPU is needed.

python benchmarks/gpu_work.py

Operations that are started there, and how often the host waits for a number. Both hang on the
number of iterations and hardly on the number of rows; each costs some microseconds. Topics: 10,000
documents of 60 words, 2,000 different ones, k = 100, concentration 1 known; mixtures and chains:
60,000 rows, one EM step.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import triton

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import gpu
from common import write_table

import thirdmoment as tm
from tests._array.test_kernels import ARCHITECTURE, SHARED, SINGLE, WHOLE
from tests.models.test_gpu import LENGTHS, MODELS, counts_there, drawn
from tests.simulated import simulated_gpu
from thirdmoment.refinement import chains, mixture, smooth

TOPICS = ("moments", "weighted moments", "18 sweeps", "default")
STEPS = ((mixture, "expectation"), (chains, "expectation"), (smooth, "fold_sums"))


def topics() -> list[list[Any]]:
    X, rows = gpu.on_host(gpu.drawn(10_000, 2_000, 60, 0, "cpu")[0]), []
    for kind in TOPICS:
        model = tm.LatentDirichletAllocation(gpu.K, concentration=1.0, **gpu.KINDS[kind])
        with simulated_gpu() as there:
            model.fit(counts_there(X))
        rows.append([f"topics, {kind}", sum(there.calls.values()), there.waits])
    return rows


def steps() -> list[list[Any]]:
    """The last EM step of each fit."""
    rows = []
    for name, (model, kind) in MODELS.items():
        given = {"lengths": LENGTHS} if "HMM" in type(model).__name__ else {}
        found: list[tuple[int, int]] = []
        with simulated_gpu() as there, ExitStack() as stack:
            X = torch.as_tensor(drawn(kind), device="cuda")
            for module, function in STEPS:
                counted = partial(_counted, getattr(module, function), there, found)
                stack.enter_context(mock.patch.object(module, function, counted))
            model.set_params(device=None).fit(X, **given)
        rows.append([f"{type(model).__name__}, {name}, one EM step", *found[-1]])
    return rows


def _counted(
    whole: Callable[..., Any], there: Any, found: list[tuple[int, int]], *args: Any, **given: Any
) -> Any:
    operations, waits = sum(there.calls.values()), there.waits
    result = whole(*args, **given)
    if sum(there.calls.values()) > operations:  # else it was on the host
        found.append((sum(there.calls.values()) - operations, there.waits - waits))
    return result


def registers() -> list[list[Any]]:
    """What the compiler says of the recursions of chains, in double precision, for an H200."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import get_ptxas
    from triton.compiler import ASTSource

    from thirdmoment.likelihood import _triton as kernels

    rows = []
    for kernel in (kernels._chain_forward, kernels._chain_backward):
        for k, warps in itertools.product((16, 32, 64), (1, 2, 4, 8)):
            constants = {"CODED": True, "UNITS": False, "R": kernels.SIDE_BY_SIDE, "KP": k}
            constants = {name: constants[name] for name in kernel.arg_names if name in constants}
            kinds = {**WHOLE, **SINGLE, "code": "*i32", **dict.fromkeys(constants, "constexpr")}
            kinds = {name: kinds.get(name, "*fp64") for name in kernel.arg_names}
            made = triton.compile(
                ASTSource(kernel, signature=kinds, constexprs=constants),
                target=GPUTarget("cuda", ARCHITECTURE, 32),
                options={"num_warps": warps, "enable_fp_fusion": True},
            )
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as source:
                source.write(made.asm["ptx"])
                source.flush()
                command = [get_ptxas(ARCHITECTURE).path, "-v", f"--gpu-name=sm_{ARCHITECTURE}a"]
                command += [source.name, "-o", "/dev/null"]
                told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
            used = int(re.search(r"Used (\d+) registers", told)[1])
            spilled = int(re.search(r"(\d+) bytes spill loads", told)[1])
            side_by_side = min(32, 65536 // (used * 32 * warps), SHARED // made.metadata.shared)
            chosen = "yes" if warps == kernels._warps(k) else ""
            rows.append([kernel.__name__[1:], k, warps, chosen, used, spilled, side_by_side])
    return rows


def sums() -> list[list[str]]:
    """What sums lose that are made in single precision of so many numbers at a time."""
    n, rng = 8_200_000, np.random.default_rng(0)
    equal = [np.full(n, value, np.float32) for value in (0.1, 0.3, 1 / 3, 0.7, 0.9)]
    drawn = [rng.gamma(shape, 1, n).astype(np.float32) for shape in (0.1, 0.5)]
    rows = []
    for size in (n, 1_000_000, 250_000):
        found = []
        for numbers in (equal, drawn):
            lost = [abs(_summed(each, size) / each.sum(dtype=np.float64) - 1) for each in numbers]
            found.append(f"{max(lost):.2%}")
        rows.append([f"{size:,}", *found])
    return rows


def _summed(numbers: np.ndarray, size: int) -> float:
    parts = (numbers[a : a + size] for a in range(0, len(numbers), size))
    return sum(float(np.cumsum(part)[-1]) for part in parts)


def main() -> None:
    warnings.filterwarnings("ignore")
    header = ["work", "operations", "waits of the host"]
    write_table("gpu_work", header, topics() + steps(), "Counted on a simulated GPU.")
    header = ["kernel", "states", "warps", "chosen", "registers of a thread",
              "bytes read back from memory in a step", "programs side by side"]  # fmt: skip
    write_table("gpu_registers", header, registers(), "By the compiler, for sm_90.")
    header = ["numbers at a time", "lost of equal ones, the worst of five", "of gamma draws"]
    write_table("gpu_sums", header, sums(), "Sums in single precision of 8,200,000 numbers.")


if __name__ == "__main__":
    main()
