"""What a kernel says of itself: assertions and assumptions are checked, output and layouts yet to be chosen are not."""

from __future__ import annotations

from typing import Any

from tt2gl.ir.operations import Operation
from tt2gl.simulate.findings import Finding
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("tt.assert")
def _assert(run: Run, operation: Operation, condition: Array) -> None:
    if not condition.all():
        message = str(operation.attributes.get("message", "")) or "an assertion"
        run.memory.report(Finding("assert", f"does not hold: {message}", operation.location))


@handles("llvm.intr.assume")
def _assume(run: Run, operation: Operation, condition: Array) -> None:
    if not condition.all():
        run.memory.report(Finding("assert", "an assumption does not hold", operation.location))


@handles("tt.print")
def _print(_run: Run, _operation: Operation, *_values: Any) -> None:
    """What is printed is not what a kernel computes."""


@handles("tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents")
def _grid_dependency(_run: Run, _operation: Operation) -> None:
    """Orders this kernel with those before and after it; only one runs here."""


@handles("gluon.set_auto_layout")
def _set_auto_layout(_run: Run, _operation: Operation, value: Array) -> Array:
    return value
