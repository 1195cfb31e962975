"""`python -m tt2gl`."""

from __future__ import annotations

import sys

from tt2gl.cli import main

sys.exit(main())
