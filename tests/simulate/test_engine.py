"""mbarriers, asynchronous work and partitions: what waits for what, and what is told where it goes wrong."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.simulate.lowered import lowered
from tt2gl.ir.operations import Location, Operation
from tt2gl.ir.types import IntegerType
from tt2gl.simulate.api import Simulation, TensorInput, simulate
from tt2gl.simulate.barriers import Barrier
from tt2gl.simulate.clocks import Clock
from tt2gl.simulate.engine import Engine, Pending, Stopped, View, whole_view
from tt2gl.simulate.findings import Finding
from tt2gl.simulate.programs import Programs
from tt2gl.simulate.shared import Buffer, Storage
from tt2gl.simulate.values import Array
from tt2gl.simulate.works import Schedule

kernels: Any = import_module("tests.simulate.kernels.small_shared")
I32 = IntegerType(32)
X = np.random.default_rng(0).integers(-(2**31), 2**31, 1024).astype(np.int32)
both_schedules = pytest.mark.parametrize("schedule", ["late", "early"])


def run(kernel: str, schedule: Any, *tensors: Array, grid: int = 1, **constexprs: Any) -> Simulation:
    function = getattr(kernels, kernel)
    names = [name for name in function.arg_names if name not in constexprs]
    module = lowered(function, "sm90", dict.fromkeys(names, "*i32"), **constexprs)
    arguments = [TensorInput(name, I32, tensor) for name, tensor in zip(names, tensors, strict=True)]
    return simulate(module, arguments, (grid, 1, 1), schedule=schedule)


def kinds(done: Simulation) -> list[str]:
    return [finding.kind for finding in done.findings]


class Bench:
    """An engine on its own, a buffer of two slots, and operations at lines of their own."""

    def __init__(self, schedule: Schedule) -> None:
        self.findings: list[Finding] = []
        self.engine = Engine(schedule, self.findings.append, Programs(np.zeros(1, np.int64), (1, 1, 1)))
        storage = Storage("ring", 32, Location(), self.engine.report)
        self.ring = whole_view(Buffer(storage, np.zeros((1, 8), np.int32), I32, 4), (2, 4))
        self._line = 0

    def at(self, name: str = "ttg.any") -> Operation:
        self._line += 1
        return Operation(name, location=Location("", self._line))

    def copy_in(self, slot: View, value: int) -> None:
        self.engine.start(
            self.at(),
            lambda: slot.store(np.full((1, 4), value, np.int32)),
            group="copies",
            writes=[slot],
            proxy="generic",
        )
        self.engine.commit("copies")

    @property
    def kinds(self) -> list[str]:
        return [finding.kind for finding in self.findings]


# ------------------------------------------------------------------------------------------------------- groups


@both_schedules
def test_a_wait_lets_all_but_the_last_groups_land(schedule: Schedule) -> None:
    bench = Bench(schedule)
    first, second = bench.ring.index(0), bench.ring.index(1)
    bench.copy_in(first, 1)
    bench.copy_in(second, 2)
    bench.engine.wait("copies", 1)
    bench.engine.read(bench.at(), first)
    assert first.load(bench.at()).tolist() == [[1] * 4]
    assert second.load(bench.at()).tolist() == [[2 if schedule == "early" else 0] * 4]
    assert bench.kinds == []
    bench.engine.read(bench.at(), second)
    assert bench.kinds == ["race"]


@both_schedules
def test_work_in_flight_may_not_be_written_under(schedule: Schedule) -> None:
    bench = Bench(schedule)
    slot = bench.ring.index(0)
    bench.engine.write(bench.at(), slot)
    bench.engine.fence()
    bench.engine.start(bench.at(), lambda: None, group="products", reads=[slot])
    bench.engine.commit("products")
    bench.engine.read(bench.at(), slot)
    assert bench.kinds == []
    bench.engine.write(bench.at(), slot)
    assert bench.kinds == ["race"]


@both_schedules
def test_memory_given_back_is_not_used(schedule: Schedule) -> None:
    bench = Bench(schedule)
    bench.copy_in(bench.ring.index(0), 1)
    bench.engine.deallocate(bench.at(), bench.ring)
    assert bench.kinds == ["lifetime"]
    bench = Bench(schedule)
    bench.engine.deallocate(bench.at(), bench.ring)
    bench.engine.write(bench.at(), bench.ring)
    assert bench.kinds == ["lifetime"]


@both_schedules
def test_work_that_must_end_is_a_leak_unless_waited_for(schedule: Schedule) -> None:
    for waited in (True, False):
        bench = Bench(schedule)
        bench.engine.write(bench.at(), bench.ring)
        bench.engine.fence()
        done: list[int] = []
        bench.engine.start(bench.at(), partial(done.append, 1), group="stores", reads=[bench.ring], must_end=True)
        bench.engine.commit("stores")
        if waited:
            bench.engine.wait("stores", 0)
        bench.engine.finish(None)  # type: ignore[arg-type]
        assert (bench.kinds, done) == ([] if waited else ["leak"], [1])


@both_schedules
def test_a_result_not_waited_for_is_not_computed_with(schedule: Schedule) -> None:
    bench = Bench(schedule)
    result = Pending()

    def land() -> None:
        result.value = np.ones(1)

    result.work = bench.engine.start(bench.at(), land, group="products")
    bench.engine.commit("products")
    assert bench.engine.settled(Operation("scf.for"), [result]) == [result]
    bench.engine.wait("products", 0)
    assert bench.engine.settled(bench.at("arith.addf"), [result]) == [np.ones(1)]
    assert bench.kinds == []
    result.work = bench.engine.start(bench.at(), land, group="products")
    bench.engine.settled(bench.at("arith.addf"), [result])
    assert bench.kinds == ["missing-wait"]


# ---------------------------------------------------------------------------------------------------- mbarriers


def test_a_phase_ends_with_its_arrivals_and_bytes() -> None:
    findings: list[Finding] = []
    barrier = Barrier("bar", 2, 7, Operation("ttng.init_barrier"), findings.append)
    assert (barrier.passed(1), barrier.passed(0)) == (True, False)
    barrier.arrive(1, Clock({1: 4}), Location())
    barrier.expect(16)
    barrier.arrive(1, Clock({2: 2}), Location())
    assert not barrier.passed(0)
    barrier.complete(16, Clock({3: 1}))
    assert barrier.passed(0)
    assert barrier.known_to(Clock(), 0).seen == {1: 4, 2: 2, 3: 1, 7: 1}
    assert findings == []
    barrier.arrive(3, Clock(), Location())
    assert [finding.kind for finding in findings] == ["barrier"]


def test_a_wait_teaches_no_phase_that_it_may_have_been_too_early_for() -> None:
    findings: list[Finding] = []
    barrier = Barrier("bar", 1, 7, Operation("ttng.init_barrier"), findings.append)
    for epoch in (1, 2, 3):
        barrier.arrive(1, Clock({1: epoch}), Location())
    assert barrier.known_to(Clock(), 1).seen == {}
    assert barrier.known_to(Clock(), 0).seen == {1: 1, 7: 1}
    assert barrier.known_to(Clock({7: 1}), 0).seen == {1: 1, 7: 1}
    assert barrier.known_to(Clock({7: 1}), 1).seen == {1: 2, 7: 2}
    assert barrier.known_to(Clock({7: 2}), 0).seen == {1: 3, 7: 3}


@both_schedules
def test_the_end_of_copies_says_nothing_of_later_ones_of_their_group(schedule: Schedule) -> None:
    bench = Bench(schedule)
    for slot in (bench.ring.index(0), bench.ring.index(1)):
        bench.engine.start(bench.at(), lambda: None, group="copies", writes=[slot], proxy="generic")
        done = bench.engine.group("copies").so_far()
        if slot.offset == 0:
            first = done
    assert [work.operation.location.line for work in first] == [1]
    for work in first:
        bench.engine.join(work)
    bench.engine.read(bench.at(), bench.ring.index(0))
    assert bench.kinds == []
    bench.engine.read(bench.at(), bench.ring.index(1))
    assert bench.kinds == ["race"]


@both_schedules
def test_a_barrier_passes_when_all_have_arrived(schedule: Any) -> None:
    done = run("barrier_kernel", schedule, np.zeros(1, np.int32), INIT=True, ARRIVALS=1, PHASE=0)
    assert kinds(done) == []
    assert done.tensors[0].elements.tolist() == [1]


@both_schedules
def test_too_many_arrivals_and_no_initialisation_are_told(schedule: Any) -> None:
    out = np.zeros(1, np.int32)
    assert kinds(run("barrier_kernel", schedule, out, INIT=True, ARRIVALS=2, PHASE=0)) == ["barrier"]
    assert "barrier" in kinds(run("barrier_kernel", schedule, out, INIT=False, ARRIVALS=1, PHASE=0))


@both_schedules
def test_a_wait_that_nothing_ends_is_a_deadlock(schedule: Any) -> None:
    done = run("barrier_kernel", schedule, np.zeros(1, np.int32), INIT=True, ARRIVALS=1, PHASE=1)
    assert [(finding.kind, finding.buffer) for finding in done.findings] == [("deadlock", "bar")]
    assert done.tensors[0].elements.tolist() == [0]


@both_schedules
def test_programs_that_synchronise_differently_go_apart(schedule: Any) -> None:
    done = run("wait_by_program_kernel", schedule, np.zeros(4, np.int32), grid=4)
    assert kinds(done) == ["deadlock"]
    assert done.tensors[0].elements.tolist() == [1, 0, 1, 0]


@both_schedules
def test_copies_arrive_on_a_barrier(schedule: Any) -> None:
    done = run("copies_arrive_kernel", schedule, X[:128], np.zeros(128, np.int32), WAIT=True)
    assert kinds(done) == []
    np.testing.assert_array_equal(done.tensors[1].elements, X[:128])
    assert kinds(run("copies_arrive_kernel", schedule, X[:128], np.zeros(128, np.int32), WAIT=False)) == ["race"]


# --------------------------------------------------------------------------------------------------- partitions


@both_schedules
def test_partitions_hand_on_blocks_through_a_ring(schedule: Any) -> None:
    done = run("ring_kernel", schedule, X, np.zeros(128, np.int32), N=8, GIVE=True)
    assert kinds(done) == []
    np.testing.assert_array_equal(done.tensors[1].elements, X.reshape(8, 128).sum(axis=0, dtype=np.int32))


@both_schedules
def test_a_slot_written_before_it_was_given_back_is_a_race(schedule: Any) -> None:
    done = run("ring_kernel", schedule, X, np.zeros(128, np.int32), N=8, GIVE=False)
    assert "race" in kinds(done)
    assert {finding.buffer for finding in done.findings if finding.kind == "race"} == {"ring"}


def test_a_deadlock_outside_of_partitions_stops_the_programs() -> None:
    bench = Bench("late")
    view = whole_view(
        Buffer(Storage("bar", 8, Location(), bench.engine.report), np.zeros((1, 1), np.int64), I32, 8), (1,)
    )
    bench.engine.init_barrier(bench.at(), view, 1)
    barrier = bench.engine.barrier(bench.at(), view)
    assert barrier is not None
    with pytest.raises(Stopped):
        bench.engine.wait_for(bench.at(), barrier, 0)
    assert bench.kinds == ["deadlock"]


@both_schedules
def test_long_runs_stay_cheap(schedule: Schedule) -> None:
    bench = Bench(schedule)
    for step in range(3000):
        slot = bench.ring.index(step % 2)
        bench.copy_in(slot, step)
        bench.engine.wait("copies", 1)
        if step:
            bench.engine.read(bench.at(), bench.ring.index((step - 1) % 2))
    assert bench.kinds == []
    assert bench.ring.storage.history.remembered <= 6
