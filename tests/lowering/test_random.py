"""Random kernels run in plain Python, before and after lowering: a stand-in for `tl` keeps memory in an array."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tt2gl.lowering.block_pointers import lowered
from tt2gl.source import read_source

HEADER = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

BLOCKS = {"p": ("B", "C"), "q": ("B", "C"), "r": ("C",)}


# ----------------------------------------------------------------------------------------------------- the stand-in


class Vector(np.ndarray[Any, Any]):
    """An array that can be cast."""

    def to(self, _dtype: object) -> Vector:
        return self


@dataclass(frozen=True)
class BlockPointer:
    base: int
    shape: Sequence[int]
    strides: Sequence[int]
    offsets: Sequence[int]
    block: Sequence[int]

    def place(self, checked: Sequence[int]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        address: Any = np.asarray(self.base)
        inside: Any = np.asarray(True)
        for axis, extent in enumerate(self.block):
            shape = [extent if other == axis else 1 for other in range(len(self.block))]
            index = (self.offsets[axis] + np.arange(extent)).reshape(shape)
            address = address + index * self.strides[axis]
            if axis in checked:
                inside = inside & (index >= 0) & (index < self.shape[axis])
        return address, np.broadcast_to(inside, address.shape)


class Language:
    """What the kernels here use of Triton's language."""

    int64 = "int64"

    def __init__(self) -> None:
        self.memory = np.random.default_rng(0).integers(0, 1000, 1 << 16)

    def arange(self, start: int, end: int) -> Vector:
        return np.arange(start, end).view(Vector)

    def cast(self, value: Any, _dtype: object) -> Any:
        return value

    def sum(self, value: Any) -> int:
        return int(np.sum(value)) % 10007

    def make_block_ptr(
        self, base: int, shape: Any, strides: Any, offsets: Any, block: Any, _order: Any
    ) -> BlockPointer:
        return BlockPointer(base, shape, strides, offsets, block)

    def advance(self, pointer: BlockPointer, steps: Sequence[int]) -> BlockPointer:
        return replace(pointer, offsets=[a + b for a, b in zip(pointer.offsets, steps, strict=True)])

    def load(self, pointer: Any, mask: Any = True, other: float = 0.0, boundary_check: Sequence[int] = ()) -> Any:
        if isinstance(pointer, BlockPointer):
            pointer, mask = pointer.place(boundary_check)
        return np.where(mask, self.memory[pointer % len(self.memory)], int(other))

    def store(self, pointer: Any, value: int, mask: Any = True, boundary_check: Sequence[int] = ()) -> None:
        if isinstance(pointer, BlockPointer):
            pointer, mask = pointer.place(boundary_check)
        pointer, mask = np.broadcast_arrays(pointer, mask)
        self.memory[pointer[mask] % len(self.memory)] = value


def memory_after(text: str) -> np.ndarray[Any, Any]:
    language = Language()
    names: dict[str, Any] = {"tl": language}
    exec(text.partition("@triton.jit\n")[2], names)
    names["kernel"](30000, 5, 7, 3, 4, 8)
    return language.memory


# ----------------------------------------------------------------------------------------------------- random kernels


class Writer:
    """Writes one kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def kernel(self) -> str:
        lines = [line for name in BLOCKS for line in self.define(name)]
        lines += self.statements(depth=0, count=8)
        lines += [f"tl.store({name}, acc + {index})" for index, name in enumerate(BLOCKS)]
        body = textwrap.indent("\n".join(["i = 0", "acc = 1", *lines]) + "\n", "    ")
        return f"{HEADER}def kernel(x, n, m, s, B: tl.constexpr, C: tl.constexpr):\n{body}"

    def number(self) -> str:
        return self.random.choice(["0", "1", "3", "-2", "n", "m", "s", "i", "i * B", "n + s", "m - 9", "i - 2", "B"])

    def define(self, name: str) -> list[str]:
        def words(some: Sequence[str]) -> str:
            return f"({', '.join(self.random.choice(some) for _ in BLOCKS[name])},)"

        bounds, strides = words(["n", "m", "6", "n + s", "B", "C"]), words(["1", "s", "m", "n + 1", "20"])
        offsets = words(["0", "0", self.number(), self.number()])
        base = self.random.choice(["x", "x + 64 * n", "x + 512"])
        block = f"({', '.join(BLOCKS[name])},)"
        return [f"{name} = tl.make_block_ptr({base}, {bounds}, {strides}, {offsets}, {block}, (0,))"]

    def check(self, name: str) -> str:
        axes = [axis for axis in range(len(BLOCKS[name])) if self.random.random() < 0.7]
        return f", boundary_check={axes}" if axes else ""

    def statements(self, depth: int, count: int) -> list[str]:
        return ["pass", *(line for _ in range(count) for line in self.statement(depth))]

    def statement(self, depth: int) -> Iterator[str]:
        name = self.random.choice(list(BLOCKS))
        kind = self.random.choice(
            ["load", "load", "store", "advance", "advance", "define", "assign", "assign", "if", "for"]
        )
        if kind == "load":
            yield f"acc += tl.sum(tl.load({name}{self.check(name)}))"
        elif kind == "store":
            yield f"tl.store({name}, acc{self.check(name)})"
        elif kind == "advance":
            source = self.random.choice([other for other in BLOCKS if len(BLOCKS[other]) == len(BLOCKS[name])])
            steps = ", ".join(self.number() for _ in BLOCKS[name])
            yield f"{name} = tl.advance({source}, ({steps},))"
        elif kind == "define":
            yield from self.define(name)
        elif kind == "assign":
            target = self.random.choice(["n", "m", "s"])
            yield f"{target} = {self.number()} + {self.random.randrange(3)}"
        elif depth < 2:
            body = self.statements(depth + 1, self.random.randrange(1, 5))
            yield "for i in range(3):" if kind == "for" else f"if i % 2 == {self.random.randrange(2)}:"
            yield from (f"    {line}" for line in body)
            if kind == "if" and self.random.random() < 0.5:
                yield "else:"
                yield from (f"    {line}" for line in self.statements(depth + 1, 2))


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("at_use", [False, True])
def test_random_kernels_leave_the_same_memory(tmp_path: Path, at_use: bool) -> None:
    for seed in range(60):
        text = Writer(seed).kernel()
        done = lowered(read_source(tmp_path / "kernel.py", text), at_use=at_use)
        assert done.functions == ("kernel",), (seed, text, done.kept)
        assert np.array_equal(memory_after(text), memory_after(done.text)), (seed, text, done.text)
