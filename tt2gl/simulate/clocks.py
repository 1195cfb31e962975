"""Vector clocks: what happens before what.

Time passes on lanes. A partition is a lane, and so is each stream of asynchronous work whose parts are waited for in
order: the copy groups of a partition, its wgmma, the phases of an mbarrier. A lane's epochs are numbers that grow; who
knows an epoch of a lane knows all before it, so a clock is one number a lane.
(Lamport 1978; the epochs are those of FastTrack, Flanagan and Freund 2009.)
"""

from __future__ import annotations


class Clock:
    """What someone knows to have happened: by lane, the last epoch seen, and the last seen before a proxy fence."""

    __slots__ = ("fenced", "seen")

    def __init__(self, seen: dict[int, int] | None = None, fenced: dict[int, int] | None = None) -> None:
        self.seen: dict[int, int] = seen or {}
        self.fenced: dict[int, int] = fenced or {}

    def copy(self) -> Clock:
        """The same knowledge, to go its own way."""
        return Clock(dict(self.seen), dict(self.fenced))

    def join(self, other: Clock) -> None:
        """Learn all that another clock knows."""
        _raise(self.seen, other.seen)
        _raise(self.fenced, other.fenced)

    def learn(self, lane: int, epoch: int) -> None:
        """Learn that a lane has come to an epoch."""
        if self.seen.get(lane, 0) < epoch:
            self.seen[lane] = epoch

    def knows(self, lane: int, epoch: int) -> bool:
        """Whether that epoch of a lane happened before."""
        return self.seen.get(lane, 0) >= epoch

    def fence(self) -> None:
        """From here on, the async proxy sees all generic accesses that are known now."""
        self.fenced = dict(self.seen)

    def fenced_at(self, lane: int, epoch: int) -> bool:
        """Whether a fence stands between that epoch of a lane and now."""
        return self.fenced.get(lane, 0) >= epoch


def _raise(mine: dict[int, int], theirs: dict[int, int]) -> None:
    for lane, epoch in theirs.items():
        if mine.get(lane, 0) < epoch:
            mine[lane] = epoch
