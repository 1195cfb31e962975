"""`python -m tt2gl`."""

from __future__ import annotations

import sys
from pathlib import Path

# Python puts the working directory first, where a user's file may be called `triton.py`: it would be run.
if not sys.flags.safe_path and Path(sys.path[0]).resolve() != Path(__file__).resolve().parents[1]:
    del sys.path[0]

from tt2gl.cli import main

sys.exit(main())
