"""Sphinx configuration."""

import warnings

import thirdmoment

project = "thirdmoment"
author = "The thirdmoment developers"
copyright = "2026, the thirdmoment developers"
version = release = thirdmoment.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "benchmarks/[!i]*.md"]
html_theme = "furo"
html_title = "thirdmoment"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
suppress_warnings = ["config.cache"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "show_memory": False,
    "remove_config_comments": True,
    "download_all_examples": False,
}
warnings.filterwarnings("ignore", category=UserWarning, module="matplotlib")
