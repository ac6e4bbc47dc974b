"""The program tarn, which comes with the module."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def program() -> str:
    """Its path: within the package, or where the libraries are installed that it stands on."""
    here = Path(__file__).parent / "bin"
    carried = here / "tarn"
    return str(carried) if carried.exists() else (here / "path").read_text()


def main() -> None:
    """The command `tarn` of a virtual environment."""
    os.execv(program(), ["tarn", *sys.argv[1:]])
