"""What every number that changes answers is worth: each one halved and doubled, on small cases.

    python benchmarks/constants.py [--data FOLDER] [--only NAME ...] [--seeds 4] [--save FILE]

A copy of the package is changed, one constant at a time, and the cases (`cases.py`) of the families
whose fits pass through its file are run again. Shown for each constant: the case that loses most
and the one that gains most, in standard errors of the mean difference of equal seeds, beside the
change itself.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import DATA, write_table

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "thirdmoment"
HERE = Path(__file__).resolve().parent
KINDS = ("Choice", "Wording", "Limit", "Work", "Floor")
MARKED = re.compile(rf"[A-Z_0-9]+: ({'|'.join(KINDS)})\[")


class Constant(NamedTuple):
    """A number, or numbers, at the top of a file or of a class of limits."""

    path: str  # of the file, in the package
    name: str
    value: Any
    text: str  # its right-hand side
    kind: str  # Choice, Wording, Limit, Work or Floor
    reason: str  # the comment beside or above it

    @property
    def full(self) -> str:
        return f"{self.path.removesuffix('.py').replace('/', '.')}.{self.name}"


def constants(root: Path = PACKAGE) -> list[Constant]:
    """All marked numbers of the source, in the order of their files."""
    found = []
    for path in sorted(root.rglob("*.py")):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
                continue
            mark = ast.unparse(node.annotation).partition("[")[0]
            if mark not in KINDS or node.value is None:
                continue
            found.append(
                Constant(
                    str(path.relative_to(root)),
                    node.target.id,
                    eval(ast.unparse(node.value), {"__builtins__": {}}),
                    ast.get_source_segment(source, node.value) or "",
                    mark,
                    _comment(lines, node.lineno - 1, node.end_lineno - 1),
                )
            )
    return found


def _comment(lines: list[str], first: int, last: int) -> str:
    """The comment after a line, else the lines of comment above it or above its neighbours."""
    beside = lines[last].partition("  # ")[2]
    if beside:
        return beside
    while first and MARKED.match(lines[first - 1]):
        first -= 1
    above = []
    while first and lines[first - 1].startswith("#"):
        first -= 1
        above.insert(0, lines[first].removeprefix("#").strip())
    return " ".join(above)


def scaled(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(scaled(v, factor) for v in value)
    if isinstance(value, int):
        return max(round(value * factor), 1)
    return value * factor


def passed(families: list[str], data: Path) -> dict[str, list[str]]:
    """Files of the package that the fits of each family enter."""
    code = (
        "import sys, json, warnings; warnings.simplefilter('ignore'); seen = set()\n"
        "import cases, thirdmoment; from pathlib import Path\n"
        "[getattr(thirdmoment, name) for name in thirdmoment.__all__]  # classes are made\n"
        "sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_filename))\n"
        f"cases.run([sys.argv[1]], Path({str(data)!r}), 1); sys.setprofile(None)\n"
        "own = {p.split('/thirdmoment/')[-1] for p in seen if '/thirdmoment/' in p}\n"
        "print(json.dumps(sorted(own)))"
    )
    found = {}
    for family in families:
        done = subprocess.run(
            [sys.executable, "-c", code, family],
            cwd=HERE,
            capture_output=True,
            text=True,
            check=True,
        )
        found[family] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(root: Path, families: list[str], data: Path, seeds: int) -> dict[str, Any]:
    """Cases of a changed package, in a process of their own."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "cases.py", "--data", str(data), "--seeds", str(seeds)]
        command += ["--save", file.name, "--families", *families]
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
        if done.returncode:
            return {"error": done.stderr.strip().splitlines()[-1]}
        return json.loads(Path(file.name).read_text())


def extremes(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The case that loses most and the one that gains most."""
    if "error" in after:
        return f"fails: {after['error'][:60]}"
    changes = []
    for name, cells in after.items():
        change = np.array(cells)[:, 0] - np.array(before[name])[: len(cells), 0]
        error = change.std() / np.sqrt(max(len(change) - 1, 1))
        size = change.mean() / max(error, 1e-9) if abs(change.mean()) > 1e-9 else 0.0
        changes.append((size, change.mean(), name))
    low, high = min(changes), max(changes)
    seconds = [sum(np.array(t[name])[: len(after[name]), 1].sum() for name in after)
               for t in (before, after)]  # fmt: skip
    cells = [f"{m:+.4f} ({s:+.1f}) {name}" for s, m, name in (low, high) if abs(m) > 1e-6]
    return f"{'; '.join(cells) or 'nothing'} (time {seconds[1] / seconds[0]:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", nargs="+", help="full names, or parts of them")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    import cases

    families = list(cases.FAMILIES)
    files = passed(families, options.data)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(PACKAGE, root / "thirdmoment", ignore=shutil.ignore_patterns("__pycache__"))
        base = measured(root, families, options.data, options.seeds)
        for constant in constants():
            if constant.kind != "Choice":
                continue
            if options.only and not any(re.search(part, constant.full) for part in options.only):
                continue
            own = [family for family in families if constant.path in files[family]]
            if not own:
                continue
            path = root / "thirdmoment" / constant.path
            text = path.read_text("utf-8")
            row = []
            for factor in (0.5, 2.0):
                new = re.sub(
                    rf"^(\s*{constant.name}\b[^=\n]*= ){re.escape(constant.text)}",
                    lambda m, f=factor, c=constant: m[1] + repr(scaled(c.value, f)),
                    text, count=1, flags=re.MULTILINE,
                )  # fmt: skip
                assert new != text, constant
                path.write_text(new, "utf-8")
                row.append(extremes(base, measured(root, own, options.data, options.seeds)))
            path.write_text(text, "utf-8")
            found[constant.full] = [str(constant.value), ", ".join(own), *row]
            print(constant.full, *found[constant.full], sep="\n    ", flush=True)
            if options.save:
                options.save.write_text(json.dumps(found, indent=1))
    note = f"Change of worth (in standard errors), {options.seeds} seeds."
    rows = [[f"`{name}`", *cells] for name, cells in found.items()]
    write_table("constants", ["constant", "value", "families", "halved", "doubled"], rows, note)


if __name__ == "__main__":
    main()
