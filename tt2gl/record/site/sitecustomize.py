"""Python runs this at its start where `tt2gl record` put its folder on PYTHONPATH.

It loads the observer by path, as the command's Python may have no tt2gl, and then the `sitecustomize` that this one
hides, if there is one.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

_NAME = "_tt2gl_observer"
_HERE = Path(__file__).resolve().parent


def _start_observer() -> None:
    folder = _HERE.parent / "observer"
    spec = importlib.util.spec_from_file_location(
        _NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None or _NAME in sys.modules:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    spec.loader.exec_module(module)
    module.start(os.environ)


def _run_hidden() -> None:
    """Run the next `sitecustomize` of the path, as if this one were not there."""
    for folder in sys.path:
        place = Path(folder or ".").resolve()
        found = place / "sitecustomize.py"
        if place != _HERE and found.is_file():
            spec = importlib.util.spec_from_file_location("sitecustomize", found)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


_start_observer()
_run_hidden()
