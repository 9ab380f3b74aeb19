"""The page that leads through a fit names files that exist, and not too many of them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "way_of_a_fit.md").read_text("utf-8")
WALKS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))


def files(text):
    return re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", text)


def test_there_are_seven_walks():
    assert len(WALKS) == 7


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_passes_few_files(name):
    assert 4 <= len(set(files(WALKS[name]))) <= 15


def test_every_file_is_there():
    for file in files(PAGE):
        assert (ROOT / "src" / "thirdmoment" / file).exists(), file
