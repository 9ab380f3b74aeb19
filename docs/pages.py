"""Pages made from the source: every number with its reason, every formula with its functions.

    python docs/pages.py            # write docs/constants.md and docs/theory/where.md

A test compares them with the source.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "thirdmoment"
CODE = re.compile(r"\b(?:MV|SC|TF|SR|K|N)-\d+[a-z]?\b|\bEK?-[A-Z]\d+\b")
KINDS = {
    "Choice": "## Choices\n\nThey change answers. `python benchmarks/constants.py` halves and "
    "doubles each one on small cases of every family and shows what is lost and gained "
    "([its last run](benchmarks/index.md)).",
    "Wording": "## Words of the report\n\nThey change when the report says what, never an answer "
    "(`python benchmarks/alarms.py`).",
    "Limit": "## Limits\n\nInput beyond them is refused with a sentence.",
    "Work": "## Work\n\nThey change time and memory, and answers by rounding only.",
    "Floor": "## Floors\n\nThey keep rounding harmless.",
}


def constants() -> str:
    """All marked numbers of the source, by what they are for."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from constants import constants as marked

    found = marked(PACKAGE)
    lines = [
        "# Every number",
        "",
        "Made from the source by `python docs/pages.py`: each number at the top of a file is "
        "marked with what it is for, and says beside it why it is there.",
    ]
    for kind, text in KINDS.items():
        own = [one for one in found if one.kind == kind]
        lines += [
            "",
            text,
            "",
            f"{len(own)} numbers.",
            "",
            "| number | value | reason |",
            "|---|---|---|",
        ]
        for one in own:
            value = ", ".join(map(str, one.value)) if isinstance(one.value, tuple) else one.value
            reason = one.reason.replace("|", "\\|")
            lines.append(f"| `{one.path}` {one.name} | {value} | {reason} |")
    return "\n".join(lines) + "\n"


def formulas() -> str:
    """Codes of the theory pages, and the functions whose text or comments name them."""
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text("utf-8")
        spans = _functions(ast.parse(source), "")
        for number, line in enumerate(source.splitlines(), start=1):
            for code in CODE.findall(line):
                inside = [name for first, last, name in spans if first <= number <= last]
                name = f" `{inside[-1]}`" if inside else ""
                place = f"`{path.relative_to(PACKAGE)}`{name}"
                if place not in places.setdefault(code, []):
                    places[code].append(place)
    lines = [
        "# Where the formulas are in the code",
        "",
        "Made from the source by `python docs/pages.py`: functions and files that name a formula. "
        "Formulas of these pages that are not here are background, or were not worth their lines.",
        "",
        "| formula | named in |",
        "|---|---|",
    ]
    for code in sorted(places, key=_order):
        lines.append(f"| [{code}](#{code.lower()}) | {', '.join(places[code])} |")
    return "\n".join(lines) + "\n"


def _functions(node: ast.AST, prefix: str) -> list[tuple[int, int, str]]:
    """First and last line and name of all functions and classes, outer ones first."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            found.append((child.lineno, child.end_lineno or child.lineno, name))
            found += _functions(child, f"{name}." if isinstance(child, ast.ClassDef) else prefix)
    return found


def _order(code: str) -> tuple[str, int, str]:
    family, number = code.split("-")
    return family, int(re.sub(r"\D", "", number)), number


PAGES = {ROOT / "docs" / "constants.md": constants, ROOT / "docs" / "theory" / "where.md": formulas}

if __name__ == "__main__":
    for page, make in PAGES.items():
        page.write_text(make(), "utf-8")
