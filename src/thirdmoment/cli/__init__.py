"""The command line; needs the extra ``thirdmoment[cli]``."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the ``thirdmoment`` command."""
    try:
        from thirdmoment.cli.app import app
    except ModuleNotFoundError as error:
        sys.exit(
            f"The command line needs {error.name}, which is not installed. "
            "Install it with: pip install 'thirdmoment[cli,plot]'"
        )
    app(prog_name="thirdmoment")
