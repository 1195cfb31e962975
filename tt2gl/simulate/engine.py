"""Asynchronous work and the partitions of a program: when it lands, and what happens before what.

What the operations of every family share. Memory is `shared.View`s; every access to it goes through `read` and `write`
(by the partition itself) or `start` (by asynchronous work), which check it against those before. Work is waited for by
groups (`commit`, `wait`) or arrives on mbarriers (`barrier`, `wait_for`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import MemDescType
from tt2gl.simulate.accesses import Access, Proxy
from tt2gl.simulate.barriers import Barrier
from tt2gl.simulate.clocks import Clock
from tt2gl.simulate.descriptors import Descriptor
from tt2gl.simulate.findings import Finding, SimulationError
from tt2gl.simulate.memory import Report
from tt2gl.simulate.partitions import Agent, Partitions, Wait, group_of
from tt2gl.simulate.programs import Programs
from tt2gl.simulate.shared import Buffer, Storage, View
from tt2gl.simulate.values import Array, byte_size, uniform
from tt2gl.simulate.works import Effect, Groups, Pending, Schedule, Work

if TYPE_CHECKING:
    from tt2gl.simulate.interpreter import Run

__all__ = ["Agent", "Barrier", "Engine", "Groups", "Pending", "Schedule", "Stopped", "View", "Work"]

# Operations that hand values on, and may do so with one that is not there yet.
_HANDING_ON = {
    *("scf.for", "scf.while", "scf.if", "scf.execute_region", "scf.index_switch", "tt.call", "ttg.warp_specialize"),
    *("ttng.warp_group_dot", "ttng.warp_group_dot_wait"),
}


class Stopped(Exception):
    """The programs cannot go on, for a reason that was reported: they wait for ever."""


class Engine:
    """Of one set of programs in step: synchronisation is the same in all of them, data are each one's own."""

    def __init__(self, schedule: Schedule, report: Report, programs: Programs) -> None:
        self.schedule: Schedule = schedule
        self.programs = programs
        self.barriers: dict[tuple[Storage, int], Barrier] = {}
        self.agent = Agent("the kernel", 0, 0, Clock({0: 1}))
        # Whether there are results that no one may compute with yet.
        self.unsettled = False
        # Descriptors in scratch memory by address, and how much of that is taken.
        self.tensor_maps: dict[int, Descriptor] = {}
        self.scratch = 0
        self._told: set[Any] = set()
        self._report = report
        self._lanes = 0
        self._storages: list[Storage] = []
        self._unlanded: dict[Work, None] = {}
        self._must_end: dict[int, Work] = {}
        self._last: list[Effect] = []
        self._partitions: Partitions | None = None

    @property
    def early(self) -> bool:
        """Whether work lands as early as it may."""
        return self.schedule == "early"

    def report(self, finding: Finding) -> None:
        """Report a fault, once for each kind and place."""
        key = finding.kind, finding.location, finding.buffer
        if key not in self._told:
            self._told.add(key)
            self._report(finding)

    def new_lane(self) -> int:
        """A lane of its own, for someone whose epochs are waited for in order."""
        self._lanes += 1
        return self._lanes

    # ------------------------------------------------------------------------------------------------ memory

    def allocate(self, run: Run, operation: Operation, kind: MemDescType) -> View:
        """Memory of the type, poisoned: all of it as one view. Findings call it by the name of the result."""
        result = operation.results[0]
        name = result.location.name or operation.location.name or f"%{result.name}"
        count = int(np.prod(kind.shape, dtype=np.int64))
        size = byte_size(kind.element)
        storage = Storage(name, count * size, operation.location, self.report)
        arithmetic = run.arithmetic
        elements = np.full((run.count, count), arithmetic.poison(kind.element), arithmetic.dtype(kind.element))
        self._storages.append(storage)
        return whole_view(Buffer(storage, elements, kind.element, size), kind.shape)

    def read(self, operation: Operation, view: View, proxy: Proxy = "generic", *, fault: bool = True) -> None:
        """The current partition reads a view, now. What was never written is a fault, unless `fault` is false."""
        self._access(operation, view, False, proxy, self.agent.lane, self.agent.epoch, self.agent.clock)
        if fault:
            self.check_written(operation, view)

    def write(
        self, operation: Operation, view: View, proxy: Proxy = "generic", *, places: tuple[Array, ...] | None = None
    ) -> None:
        """The current partition writes a view, now: all of it, or the elements at `places` (index arrays)."""
        self._access(operation, view, True, proxy, self.agent.lane, self.agent.epoch, self.agent.clock)
        view.mark_written(places)

    def deallocate(self, operation: Operation, view: View) -> None:
        """Give memory back: no one may still use it, or use it again."""
        self._alive(operation, view)
        region = whole_view(view.storage.buffers[0], (view.storage.buffers[0].elements.shape[1],)).region
        access = Access(self.agent.lane, self.agent.epoch, True, "generic", operation)
        view.storage.history.add(access, region, self.agent.clock, "lifetime")
        view.storage.alive = False

    def _access(
        self, operation: Operation, view: View, write: bool, proxy: Proxy, lane: int, epoch: int, clock: Clock
    ) -> None:
        self._alive(operation, view)
        view.storage.history.add(Access(lane, epoch, write, proxy, operation), view.region, clock)

    def _alive(self, operation: Operation, view: View) -> None:
        if not view.storage.alive:
            name = view.storage.name
            view.storage.history.tell("lifetime", f"{name} is used after it was given back", operation.location)
        if view.outside is not None:
            self.report(view.outside)

    def check_written(self, operation: Operation, view: View, places: tuple[Array, ...] | None = None) -> None:
        """Report a read of what was never written, in a view or at places (index arrays) of it."""
        if view.unwritten(places):
            text = f"{operation.name.split('.', 1)[-1]} reads {view.storage.name} where nothing was written yet"
            view.storage.history.tell("uninitialised", text, operation.location)

    # -------------------------------------------------------------------------------------- asynchronous work

    def start(
        self,
        operation: Operation,
        effect: Effect,
        *,
        group: str | None = None,
        barrier: Barrier | None = None,
        reads: Sequence[View] = (),
        writes: Sequence[View] = (),
        proxy: Proxy = "async",
        before: Sequence[Work] = (),
        size: int = 0,
        arrivals: int = 0,
        in_order: bool = False,
        must_end: bool = False,
    ) -> Work:
        """Begin a piece of asynchronous work of the current partition.

        It belongs to the open group of a kind of work (`group`), to be waited for with `wait`; or it is over when it
        arrives on a `barrier`: there it counts as `arrivals`, or as `size` bytes, which must come in the phase in which
        they are expected. `reads` and `writes` are all the views it touches, through `proxy`; `effect` moves the data,
        and runs at once in the early schedule. `before` is work that ends before it. `in_order` says that work of its
        kind is done in the order of its issue, and so does not conflict with its like. Work that `must_end` is a fault
        if the kernel ends without having waited for it.
        """
        lane, epoch = self._place(group, barrier)
        clock = self.agent.release()
        for earlier in before:
            clock.join(earlier.clock)
        if in_order:
            clock.learn(lane, epoch)
        for view in reads:
            self._access(operation, view, False, proxy, lane, epoch, clock)
            self.check_written(operation, view)
        for view in writes:
            self._access(operation, view, True, proxy, lane, epoch, clock)
            view.mark_written()
        clock.learn(lane, epoch)
        work = Work(operation, lane, epoch, clock, None, tuple(before))
        work.effect = lambda: self._land(work, effect, barrier, size, arrivals)
        self._unlanded[work] = None
        if must_end:
            self._must_end[lane] = work
        if group is not None:
            self.group(group).open.append(work)
        if barrier is not None:
            barrier.attach(work, counts_bytes=not arrivals)
        if self.early:
            work.land()
        return work

    def _place(self, group: str | None, barrier: Barrier | None) -> tuple[int, int]:
        """The lane and epoch of new work."""
        if group is not None:
            mine = self.group(group)
            return mine.lane, mine.epoch
        assert barrier is not None
        return barrier.lane, barrier.epoch

    def _land(self, work: Work, effect: Effect, barrier: Barrier | None, size: int, arrivals: int) -> None:
        del self._unlanded[work]
        effect()
        if barrier is not None and size:
            barrier.complete(size, work.clock)
        if barrier is not None and arrivals:
            barrier.arrive(arrivals, work.clock, work.operation.location)

    def group(self, kind: str) -> Groups:
        """The current partition's work of a kind, such as "cp.async"."""
        return group_of(self.agent, kind, self.new_lane)

    def commit(self, kind: str) -> None:
        """Close the open group of a kind."""
        self.group(kind).commit()

    def wait(self, kind: str, pending: int) -> None:
        """Wait until at most `pending` groups of a kind are not over."""
        for work in self.group(kind).finished(pending):
            self.join(work)

    def join(self, work: Work) -> None:
        """The current partition waits for a work."""
        work.land()
        work.joined = True
        self.agent.clock.join(work.clock)

    def at_end(self, effect: Effect) -> None:
        """Do something when the kernel has ended and all work has landed."""
        self._last.append(effect)

    def fence(self) -> None:
        """The async proxy sees all that the current partition knows (`fence_async_shared`)."""
        self.agent.clock.fence()

    # ---------------------------------------------------------------------------------------------- mbarriers

    def init_barrier(self, operation: Operation, view: View, count: int) -> None:
        """Make an mbarrier of the bytes of a view. One that is there already is a fault."""
        self._alive(operation, view)
        view.mark_written()
        key = view.storage, view.region.offset
        if key in self.barriers:
            self._barrier_fault(operation, view, "is initialised again, without having been invalidated")
        name = view.storage.name
        barrier = self.barriers[key] = Barrier(name, count, self.new_lane(), operation, self.report)
        barrier.made = (self.agent.lane, self.agent.epoch)

    def invalidate_barrier(self, operation: Operation, view: View) -> None:
        """The bytes of a view are no mbarrier any more."""
        if self.barrier(operation, view) is not None:
            del self.barriers[view.storage, view.region.offset]

    def barrier(self, operation: Operation, view: View) -> Barrier | None:
        """The mbarrier at a view; None, and a fault, where there is none that the current partition knows of."""
        self._alive(operation, view)
        found = self.barriers.get((view.storage, view.region.offset))
        if found is None:
            self._barrier_fault(operation, view, "is used while it is not initialised")
        elif not self.agent.clock.knows(*found.made):
            self._barrier_fault(operation, view, "is used before its initialisation is known to have happened")
        return found

    def _barrier_fault(self, operation: Operation, view: View, text: str) -> None:
        self.report(Finding("barrier", f"{view.storage.name} {text}", operation.location, buffer=view.storage.name))

    def arrive(self, operation: Operation, barrier: Barrier, count: int = 1) -> None:
        """The current partition arrives."""
        barrier.arrive(count, self.agent.release(), operation.location)
        self.switch()

    def wait_for(self, operation: Operation, barrier: Barrier, parity: int) -> None:
        """Wait for the phase of a parity to end. Reports a deadlock and raises Stopped where nothing can end it."""
        if not barrier.passed(parity):
            target = barrier.epoch
            if not barrier.land_until(target):
                self._block(Wait(operation, barrier.name, lambda: barrier.land_until(target)))
        self.agent.clock.join(barrier.known_to(self.agent.clock, parity))
        self.switch()

    # --------------------------------------------------------------------------------------------- partitions

    def switch(self) -> None:
        """A place where another partition may take over; in the early schedule one does."""
        if self._partitions is not None and self.early:
            self._partitions.pause()

    def run_partitions(self, run: Run, agents: Sequence[Agent], bodies: Sequence[Callable[[], None]]) -> None:
        """Run bodies side by side, each as an agent forked from the current one, which then knows what all did."""
        if self._partitions is not None:
            raise SimulationError("partitions within a partition")
        here = self.agent
        self._partitions = Partitions(run, agents, bodies, self.early)
        try:
            stuck = self._partitions.run()
        finally:
            self._partitions = None
        if stuck:
            self._deadlock(stuck)
        for agent in agents:
            here.clock.join(agent.clock)

    def fork(self, name: str, warps: int) -> Agent:
        """A new partition that knows what the current one knows."""
        lane = self.new_lane()
        clock = self.agent.release()
        clock.learn(lane, 1)
        return Agent(name, lane, warps, clock)

    def _block(self, wait: Wait) -> None:
        if self._partitions is None:
            self._deadlock([wait])
        else:
            self._partitions.pause(wait)

    def _deadlock(self, stuck: Sequence[Wait]) -> None:
        first, *rest = stuck
        others = "".join(f", and line {wait.operation.location.line} for {wait.name}" for wait in rest)
        text = f"waits for ever for {first.name}{others}: nothing that is left can end its phase"
        other = rest[0].operation.location if rest else None
        self.report(Finding("deadlock", text, first.operation.location, other, first.name))
        raise Stopped

    # ---------------------------------------------------------------------------------------------- values

    def common(self, run: Run, value: Array) -> int:
        """The value of a scalar on which synchronisation or a place in memory hangs: one for all programs.

        Raises Divergence where they differ, so that they go apart.
        """
        found = uniform(value)
        if found is None:
            run.diverge(value)
            raise SimulationError("programs that run together differ in a place in shared memory")
        return int(found)

    def predicate(self, run: Run, value: Array | None) -> bool:
        """Whether an operation with a predicate happens, in all programs or none."""
        return value is None or bool(self.common(run, value))

    def settled(self, operation: Operation, operands: list[Any]) -> list[Any]:
        """Operands of an operation that computes: using what was not waited for is a fault."""
        if operation.name in _HANDING_ON:
            return operands
        return [self.settle(operation, value) if isinstance(value, Pending) else value for value in operands]

    def settle(self, operation: Operation, value: Pending) -> Array:
        """The value of a pending result that is computed with; a fault where its work was not waited for."""
        if value.work is not None and not value.joined:
            begun = value.work.operation
            what = begun.name.split(".", 1)[-1]
            text = f"the result of {what} is used before it was waited for"
            name = begun.results[0].location.name if begun.results else ""
            self.report(Finding("missing-wait", text, operation.location, begun.location, name))
        return value.get()

    # ------------------------------------------------------------------------------------------------- the end

    def finish(self, run: Run) -> None:
        """The kernel has ended: what is unfinished lands, and is told where it should not have been."""
        for lane, work in self._must_end.items():
            if not self.agent.clock.knows(lane, work.epoch):
                text = f"{work.operation.name.split('.', 1)[-1]} is never waited for: the kernel may end before it does"
                self.report(Finding("leak", text, work.operation.location))
        for work in list(self._unlanded):
            work.land()
        for effect in self._last:
            effect()


def whole_view(buffer: Buffer, shape: Sequence[int]) -> View:
    """All of a buffer, row by row."""
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return View(buffer, 0, tuple(shape), tuple(strides))
