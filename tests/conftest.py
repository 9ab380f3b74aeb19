"""Helpers for all tests."""

import sys
from pathlib import Path

for folder in ("moments", "fuzz"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
