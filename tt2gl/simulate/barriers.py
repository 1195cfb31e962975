"""mbarriers: counts of arrivals and bytes, phases, and what the end of a phase makes known."""

from __future__ import annotations

from collections import deque

from tt2gl.ir.operations import Location, Operation
from tt2gl.simulate.clocks import Clock
from tt2gl.simulate.findings import Finding
from tt2gl.simulate.memory import Report
from tt2gl.simulate.works import Work

# How many phases a waiting partition may be behind before what it waited for is no longer told from what came after.
_REMEMBERED = 64


class Barrier:
    """An mbarrier that was initialised: each phase ends when `count` arrivals and all bytes expected have come.

    `phase` counts the phases that are over; a wait for parity p passes while that number's parity is not p. `clock` is
    what all ended phases made known, `lane` the lane whose epochs are the phases (for the work that arrives on them).
    """

    def __init__(self, name: str, count: int, lane: int, operation: Operation, report: Report) -> None:
        self.name = name
        self.count = count
        self.lane = lane
        self.operation = operation
        self.report = report
        # The partition and epoch of the initialisation.
        self.made = (0, 0)
        self.phase = 0
        self.pending = count
        self.bytes = 0
        self.clock = Clock()
        # Works that will arrive here, and the phase in which they must.
        self.attached: deque[tuple[Work, int | None]] = deque()
        self._coming = Clock()
        # Phases that partitions wait for, and what each made known when it ended.
        self._watched: dict[int, Clock | None] = {}

    @property
    def epoch(self) -> int:
        """The epoch of work that arrives in the current phase."""
        return self.phase + 1

    def passed(self, parity: int) -> bool:
        """Whether a wait for the phase of this parity goes on."""
        return self.phase & 1 != parity & 1

    def watch(self) -> int:
        """Be going to wait for the current phase: the number of phases that are over then."""
        self._watched.pop(self.phase - _REMEMBERED, None)
        self._watched[self.phase + 1] = None
        return self.phase + 1

    def known_at(self, target: int) -> Clock:
        """What the end of a watched phase made known; later phases, that may be over too, are not in it."""
        return self._watched.get(target) or self.clock

    def expect(self, size: int) -> None:
        """The current phase needs `size` bytes more."""
        self.bytes += size

    def arrive(self, count: int, clock: Clock, location: Location) -> None:
        """Count arrivals of someone who knows `clock`."""
        self._coming.join(clock)
        if count > self.pending:
            text = f"{count} arrivals on {self.name}, which waits for {self.pending} more in this phase"
            self.report(Finding("barrier", text, location, self.operation.location, self.name))
            count = self.pending
        self.pending -= count
        self._turn()

    def complete(self, size: int, clock: Clock) -> None:
        """Count bytes that have landed."""
        self._coming.join(clock)
        self.bytes -= size
        self._turn()

    def _turn(self) -> None:
        if self.pending or self.bytes:
            return
        self.phase += 1
        self.pending = self.count
        self.clock.join(self._coming)
        self.clock.learn(self.lane, self.phase)
        if self.phase in self._watched:
            self._watched[self.phase] = self.clock.copy()
        self._coming = Clock()
        unlanded = [(work, phase) for work, phase in self.attached if work.effect is not None]
        self.attached = deque(unlanded)
        late = [work for work, phase in unlanded if phase is not None and phase < self.phase]
        if late:
            text = f"a phase of {self.name} ends before a copy that arrives on it: more bytes come than are expected"
            self.report(Finding("barrier", text, late[0].operation.location, self.operation.location, self.name))

    def attach(self, work: Work, counts_bytes: bool) -> None:
        """Remember that a work will arrive here; one whose bytes were expected does so in the current phase."""
        self.attached.append((work, self.phase if counts_bytes else None))

    def land_until(self, target: int) -> bool:
        """Let attached work land, oldest first, until `target` phases are over; whether they are."""
        while self.phase < target and self.attached:
            self.attached.popleft()[0].land()
        return self.phase >= target
