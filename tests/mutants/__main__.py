"""Change formulas on purpose and see whether the tests notice: ``make mutants``.

Mutants are a list by hand (`named.py`) and a seeded draw from all sums, products, powers, signs,
comparisons and constants of the files below. Each runs in a process of its own in which one module
is imported from changed source; it is killed by the first test that fails. Text that is not changed
must survive first. ``--only`` takes numbers.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import os
import signal
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.mutants.named import NAMED

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "thirdmoment"
COUNT, SEED, SECONDS = 200, 0, 240

VIEWS = ["moments/test_views.py", "recovery/test_views.py", "starts/test_views.py",
         "models/test_multiview.py", "models/test_categorical.py"]  # fmt: skip
SEARCH = ["search"]
TOPICS = ["moments/test_words.py", "recovery/test_topics.py", "models/test_single_topic.py",
          "models/test_lda.py"]  # fmt: skip
CHAINS = ["moments/test_sequences.py", "recovery/test_markov.py", "starts/test_chains.py",
          "models/test_hmm.py", "likelihood/test_chains.py"]  # fmt: skip
KERNEL = ["moments/test_features.py", "starts/test_kernel.py", "models/test_kernel.py",
          "models/test_kernel_robust.py", "refinement/test_smooth.py"]  # fmt: skip
GAUSS = ["likelihood/test_mixture.py", "models/test_gaussian.py", "models/test_equivariance.py"]

# The formulas under test, and the tests that are theirs, the quickest first.
FILES: dict[str, list[str]] = {
    "moments/views.py": [*VIEWS, "starts/test_kernel.py"],
    "moments/gaussian.py": ["search/test_exact_search.py", "search/test_gaussian_search.py",
                            "search/test_subspace_search.py", "models/test_subspace.py", *GAUSS],
    "moments/factors.py": ["moments/test_factors.py", "models/test_independent.py"],
    "moments/regression.py": ["search/test_exact_search.py", "search/test_regression_search.py",
                              "models/test_regression.py"],
    "moments/words.py": TOPICS,
    "moments/sequences.py": CHAINS,
    "moments/word_search.py": ["moments/test_word_search.py", *SEARCH],
    "recovery/covariance.py": VIEWS,
    "recovery/dirichlet.py": ["recovery/test_topics.py", "models/test_lda.py",
                              "models/test_topic_defaults.py", "recovery/test_proportions.py",
                              *KERNEL],
    "recovery/markov.py": CHAINS,
    "recovery/search.py": ["recovery/test_search.py", *SEARCH],
    "recovery/spherical.py": GAUSS,
    "recovery/topics.py": TOPICS,
    "recovery/views.py": VIEWS,
    "likelihood/gaussians.py": GAUSS,
    "likelihood/categories.py": ["likelihood/test_mixture.py", "models/test_categorical.py"],
    "refinement/mixture.py": ["likelihood/test_mixture.py", "models/test_categorical.py"],
    "likelihood/regressions.py": ["likelihood/test_mixture.py", "models/test_regression.py"],
    "refinement/subspaces.py": ["models/test_subspace.py"],
    "likelihood/documents.py": ["refinement/test_refinement.py", "models/test_lda.py"],
    "refinement/collapsed.py": ["refinement/test_refinement.py", "refinement/test_topics.py",
                                "models/test_lda.py", "models/test_equivariance.py"],
    "refinement/lattice.py": ["refinement/test_lattice.py", *KERNEL],
    "models/units.py": ["models/test_equivariance.py"],
    "models/rows.py": ["models/test_equivariance.py"],
    "models/mixture.py": ["models/test_categorical.py", "models/test_gaussian.py"],
}  # fmt: skip
MORE = {
    "models/mixtures/categorical.py": ["models/test_categorical.py"],
    "models/kernel/fitted.py": ["models/test_kernel.py", "models/test_kernel_robust.py"],
    "models/factors.py": ["models/test_independent.py"],
    "starts/topic_index.py": ["search/test_topic_search.py", "search/test_exact_search.py"],
    "search/regression.py": ["search/test_regression_search.py", "search/test_exact_search.py"],
    "refinement/chains.py": ["models/test_hmm.py", "likelihood/test_chains.py"],
    "models/codes.py": ["models/test_categorical.py"],
    "search/gaussian.py": ["search/test_gaussian_search.py"],
    "refinement/topics.py": ["refinement/test_topics.py", "models/test_lda.py"],
}


class Mutant(NamedTuple):
    file: str
    text: str  # of the whole changed module
    what: str


def named_mutants() -> list[Mutant]:
    found = []
    for one in NAMED:
        text = (SOURCE / one.file).read_text()
        if one.line not in text:
            raise SystemExit(f"{one.file} has no line {one.line!r} any more")
        changed = text.replace(one.line, one.changed)
        found.append(Mutant(one.file, changed, f"{one.changed}  # {one.why}"))
    return found


SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
         ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.Gt, ast.GtE: ast.Lt}  # fmt: skip


def variants(node: ast.AST) -> list[str]:
    """Names of the changes that can be made to a node."""
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not _text(node):
        return ["operator"]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return ["exponent"]
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        return ["comparison"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ["sign"] if not isinstance(node.operand, ast.Constant) else []
    number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    if number and abs(node.value) >= 0.1 and node.value < 100:
        return ["constant"]
    return []


def _text(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.Constant | ast.JoinedStr) and not isinstance(
        getattr(side, "value", 0), int | float) for side in (node.left, node.right))  # fmt: skip


def change(node: ast.AST, name: str) -> None:
    if name == "operator":
        node.op = SWAPS[type(node.op)]()
    elif name == "exponent":
        node.right = ast.BinOp(node.right, ast.Add(), ast.Constant(1))
    elif name == "comparison":
        node.ops = [SWAPS[type(node.ops[0])]()]
    elif name == "sign":
        node.op = ast.UAdd()
    else:
        node.value = node.value + 1


# These propose starts, of which the likelihood takes the best: no formula to be right or wrong.
PROPOSALS = {"move_components", "_replacements", "_maxima", "_distinct", "_far_apart"}
SPARED = (ast.Raise, ast.Subscript, ast.JoinedStr, ast.keyword, ast.Assert)


def drawn_mutants(count: int) -> list[Mutant]:
    """Changes within functions, in a seeded order; messages, indices and axes are left alone."""
    rng, places = np.random.default_rng(SEED), []
    for file in FILES:
        tree = ast.parse((SOURCE / file).read_text())
        spared = set()
        for node in ast.walk(tree):
            sub = []
            if isinstance(
                node, ast.Raise | ast.Subscript | ast.JoinedStr | ast.keyword | ast.Assert
            ):
                sub = [node.slice] if isinstance(node, ast.Subscript) else [node]
            if isinstance(node, ast.arguments):
                sub = [*node.defaults, *(value for value in node.kw_defaults if value)]
            for part in sub:
                spared |= {id(inner) for inner in ast.walk(part)}
        functions = [
            n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name not in PROPOSALS
        ]
        for n in ast.walk(tree):
            if isinstance(n, ast.FunctionDef) and n.name in PROPOSALS:
                spared |= {id(inner) for inner in ast.walk(n)}
        inside = {id(inner) for f in functions for inner in ast.walk(f)}
        for number, node in enumerate(ast.walk(tree)):
            if id(node) in inside and id(node) not in spared:
                places += [(file, number, name) for name in variants(node)]
    chosen = rng.permutation(len(places))[:count]
    return [_drawn(*places[i]) for i in chosen]


def _drawn(file: str, number: int, name: str) -> Mutant:
    tree = ast.parse((SOURCE / file).read_text())
    node = list(ast.walk(tree))[number]
    before = ast.unparse(node)
    line = getattr(node, "lineno", 0)
    changed = copy.deepcopy(tree)
    other = list(ast.walk(changed))[number]
    change(other, name)
    ast.fix_missing_locations(changed)
    what = f"line {line}: {before}  ->  {ast.unparse(other)}"
    return Mutant(file, ast.unparse(changed), what)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports one module of the library from another text."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = "thirdmoment." + mutant.file.removesuffix(".py").replace("/", ".")
        self.path, self.text = str(SOURCE / mutant.file), mutant.text

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != self.name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=self.path)

    def get_filename(self, fullname: str) -> str:
        return self.path

    def get_data(self, path: str) -> bytes:
        return self.text.encode()


def judged(mutant: Mutant) -> None:
    """Run the tests of a mutant; the exit code of the process says how they ended."""
    signal.alarm(SECONDS)  # a mutant that hangs is dead
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.meta_path.insert(0, Changed(mutant))
    import pytest

    tests = [
        str(TESTS / name) for name in ("models/test_formulas.py", *{**FILES, **MORE}[mutant.file])
    ]
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--rootdir",
        str(TESTS.parent),
    ]
    os._exit(0 if pytest.main([*options, *tests]) == 0 else 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--only", type=int, nargs="*")
    options = parser.parse_args()
    import matplotlib.figure  # noqa: F401  what all of them need is loaded once
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize  # noqa: F401
    import sklearn.mixture  # noqa: F401

    mutants = named_mutants()
    mutants += drawn_mutants(options.count - len(mutants))
    numbers = list(range(len(mutants))) if options.only is None else options.only
    first = mutants[numbers[0]].file
    control = get_context("fork").Process(
        target=judged, args=(Mutant(first, (SOURCE / first).read_text(), "nothing"),)
    )
    control.start()
    control.join()
    if control.exitcode != 0:
        raise SystemExit(f"the tests of {first} fail without any change")
    context, started, survivors = get_context("fork"), time.time(), []
    running: dict[int, object] = {}
    waiting = list(numbers)
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            number = waiting.pop(0)
            running[number] = context.Process(target=judged, args=(mutants[number],))
            running[number].start()
        for number, process in list(running.items()):
            process.join(0.1)
            if process.exitcode is not None:
                del running[number]
                if process.exitcode == 0:
                    survivors.append(number)
                    one = mutants[number]
                    sys.stdout.write(f"{number} survives in {one.file}: {one.what}\n")
                    sys.stdout.flush()
    killed = len(numbers) - len(survivors)
    sys.stdout.write(
        f"{killed} of {len(numbers)} mutants killed ({killed / len(numbers):.1%}) in "
        f"{time.time() - started:.0f} s; survivors: {sorted(survivors)}\n"
    )
    return 0 if killed >= 0.95 * len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
