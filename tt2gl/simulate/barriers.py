"""mbarriers: counts of arrivals and bytes, phases, and what the end of a phase makes known."""

from __future__ import annotations

from collections import deque

from tt2gl.ir.operations import Location, Operation
from tt2gl.simulate.clocks import Clock
from tt2gl.simulate.findings import Finding
from tt2gl.simulate.memory import Report
from tt2gl.simulate.works import Work

# How many phases someone may be behind before what a phase made known is no longer told from what the next ones did.
_REMEMBERED = 64


class Barrier:
    """An mbarrier that was initialised: each phase ends when `count` arrivals and all bytes expected have come.

    `phase` counts the phases that are over; a wait for parity p passes while that number's parity is not p. The phases
    are the epochs of `lane`.
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
        self._known = Clock()
        # Works that will arrive here, and the phase in which they must.
        self.attached: deque[tuple[Work, int | None]] = deque()
        self._coming = Clock()
        # What was known when so many phases were over.
        self._ends: dict[int, Clock] = {0: Clock()}

    @property
    def epoch(self) -> int:
        """The epoch of work that arrives in the current phase."""
        return self.phase + 1

    def passed(self, parity: int) -> bool:
        """Whether a wait for the phase of this parity goes on."""
        return self.phase & 1 != parity & 1

    def known_to(self, waiter: Clock, parity: int) -> Clock:
        """What a wait for the phase of a parity teaches someone who knows `waiter`, however the others are timed.

        A wait passes as soon as the parity of the phases that are over says so. The waiter knows of some of them; it
        cannot count on any that came later, even if they have come this time.
        """
        over = waiter.seen.get(self.lane, 0)
        if over & 1 == parity & 1:
            over += 1
        return self._ends[min(max(over, min(self._ends)), self.phase)]

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
        self._known.join(self._coming)
        self._known.learn(self.lane, self.phase)
        self._ends.pop(self.phase - _REMEMBERED, None)
        self._ends[self.phase] = self._known.copy()
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
