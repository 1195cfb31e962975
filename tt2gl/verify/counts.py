"""Instructions of one kernel, counted."""

from __future__ import annotations

from collections import Counter, defaultdict

from tt2gl.results import Place
from tt2gl.verify.assembly import Assembly, AssemblyLine

# A bulk copy (TMA, AMD's tensor data mover) moves whole lines: no load of one thread is wider than 16 bytes before
# Blackwell, so it counts as one of these.
BULK_BITS = 128


class Counts:
    """Instructions by what they do; loads and stores of global memory by width in bits.

    An asynchronous copy from global memory is a load too, of the bits that one thread copies. `copies` are those of
    threads, by name and bytes (`cp.async.16`); how much a bulk copy moves, assembly does not say. `buffered` are AMD's
    buffer operations, `unbuffered` its other accesses of global memory, `step_waits` where a step waits for memory,
    `step_loops` how many loops deep each of the loops is whose products are those of a step.
    """

    def __init__(self) -> None:
        self.loads: Counter[int] = Counter()
        self.stores: Counter[int] = Counter()
        self.mma: Counter[str] = Counter()
        self.copies: Counter[str] = Counter()
        self.shared_accesses = 0
        self.async_copies = 0
        self.barriers = 0
        self.buffered = 0
        self.unbuffered = 0
        self.step_waits = 0
        self.step_loops: list[int] = []
        self.step_mma: Counter[str] = Counter()
        self.step_copies: Counter[str] = Counter()
        self.places: defaultdict[str, dict[Place, None]] = defaultdict(dict)
        self._mma_by_loop: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._copies_by_loop: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._waits_by_loop: Counter[str] = Counter()
        self._loads_by_loop: Counter[str] = Counter()

    def load(self, bits: int, line: AssemblyLine) -> None:
        """A load of global memory."""
        self.loads[bits] += 1
        self._loads_by_loop[line.loop] += 1
        self._note(f"load.{bits}", line)

    def store(self, bits: int, line: AssemblyLine) -> None:
        """A store to global memory."""
        self.stores[bits] += 1
        self._note(f"store.{bits}", line)

    def bulk_in(self, line: AssemblyLine) -> None:
        """A bulk copy from global to shared memory."""
        self.async_copies += 1
        self.load(BULK_BITS, line)

    def copy_in(self, name: str, bits: int, line: AssemblyLine, *, again: bool = False) -> None:
        """An asynchronous copy from global to shared memory, of every thread.

        `again`: the same was copied before. Where a tile is wanted in two layouts, Triton may copy it for each of them,
        and one copy brings as much.
        """
        self.async_copies += 1
        self.load(bits, line)
        if again:
            return
        kind = f"{name}.{bits // 8}"
        self.copies[kind] += 1
        self._copies_by_loop[line.loop][kind] += 1
        self._note(kind, line)

    def copy_out(self, bits: int, line: AssemblyLine) -> None:
        """An asynchronous copy from shared to global memory."""
        self.async_copies += 1
        self.store(bits, line)

    def product(self, name: str, line: AssemblyLine) -> None:
        """A matrix instruction."""
        self.mma[name] += 1
        self._mma_by_loop[line.loop][name] += 1
        self._note(name, line)

    def wait(self, line: AssemblyLine) -> None:
        """A wait until memory has answered."""
        self._waits_by_loop[line.loop] += 1

    def end(self, assembly: Assembly) -> Counts:
        """All lines were counted: say what one step of the loops has."""
        self.step_mma = assembly.a_step(self._mma_by_loop, self._loads_by_loop)
        self.step_copies = assembly.a_step(self._copies_by_loop, {})
        steps = assembly.steps(self._mma_by_loop, self._loads_by_loop)
        self.step_loops = sorted(1 + len(assembly.parents.get(loop, ())) for loop in steps)
        self.step_waits = sum(self._waits_by_loop[loop] for loop in steps)
        return self

    def _note(self, what: str, line: AssemblyLine) -> None:
        if line.place is not None:
            self.places[what][line.place] = None
