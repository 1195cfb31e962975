"""Asynchronous work and the partitions of a program: when it lands, and what happens before what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tt2gl.simulate.memory import Report
from tt2gl.simulate.programs import Programs

if TYPE_CHECKING:
    from tt2gl.simulate.interpreter import Run

# Asynchronous work lands as late as it may, or as early.
Schedule = Literal["late", "early"]


class Engine:
    """Of one set of programs in step."""

    def __init__(self, schedule: Schedule, report: Report, programs: Programs) -> None:
        self.schedule = schedule
        self.report = report
        self.programs = programs

    def finish(self, run: Run) -> None:
        """The kernel has ended: what is unfinished is told."""
