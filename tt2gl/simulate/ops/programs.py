"""Which program of the grid this is (`tt.get_program_id`, `tt.get_num_programs`)."""

from __future__ import annotations

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("tt.get_program_id")
def _get_program_id(run: Run, operation: Operation) -> Array:
    return run.programs.axis(int(operation.attributes["axis"]))


@handles("tt.get_num_programs")
def _get_num_programs(run: Run, operation: Operation) -> Array:
    return np.array([run.programs.grid[int(operation.attributes["axis"])]], np.int32)
