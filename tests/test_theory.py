"""Formulas that the source names by a code are on the theory pages, with an anchor."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"\b(?:MV|SC|TF|SR|K|N)-\d+[a-z]?\b|\bEK?-[A-Z]\d+\b|\bE_[A-Z]+\b")


def named():
    for file in sorted((ROOT / "src").rglob("*.py")):
        for code in CODE.findall(file.read_text("utf-8")):
            yield code, file.name


def anchors():
    text = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs" / "theory").glob("*.md"))
    return text, re.findall(r"^\(([a-z0-9-]+)\)=$", text, flags=re.MULTILINE)


def test_every_code_in_the_source_has_its_anchor():
    text, known = anchors()
    found = list(named())
    assert len(found) > 200
    for code, file in found:
        if code.startswith("E_"):
            assert f"| {code} |" in text, f"{code} in {file}"
        else:
            assert code.lower() in known, f"{code} in {file}"


def test_every_anchor_stands_once():
    known = anchors()[1]
    assert len(known) == len(set(known)) > 150
