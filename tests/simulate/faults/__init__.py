"""Faults planted in the kernels of `kernels/`, by the file that they are in."""

from __future__ import annotations

from tests.simulate.faults.amd import AMD
from tests.simulate.faults.cp_async import CP_ASYNC
from tests.simulate.faults.fault import Fault
from tests.simulate.faults.pipelines import PIPELINES
from tests.simulate.faults.shared import SHARED
from tests.simulate.faults.tcgen05 import TCGEN05
from tests.simulate.faults.tma import TMA
from tests.simulate.faults.warp_specialize import WARP_SPECIALIZE
from tests.simulate.faults.wgmma import WGMMA

__all__ = ["FAULTS", "Fault"]

FAULTS = (*CP_ASYNC, *SHARED, *WGMMA, *TMA, *WARP_SPECIALIZE, *TCGEN05, *AMD, *PIPELINES)
