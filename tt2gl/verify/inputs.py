"""Arguments for a launch: random content for tensors of the recorded shape, stride, type and alignment, in numpy.

The simulator takes them as they are, `tensors` puts them on a GPU: both compare kernels on the very same inputs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tt2gl.compiler import with_tuples
from tt2gl.descriptor_parts import sizes, strides
from tt2gl.launches import DescriptorArg, Launch, TensorArg

Array = NDArray[Any]

# Random numbers made for one tensor; a larger one repeats them, which costs a copy where each number costs a
# hundredfold. The period is a prime, so that no sum of strides, tiles and powers of two is a multiple of it: a wrong
# index would have to be off by just this many elements to find what it should have found.
PERIOD = 4_194_301


class UnknownInputsError(Exception):
    """The launch does not say enough of its arguments to run it; the message says of which."""


@dataclass(frozen=True, eq=False)
class TensorData:
    """One tensor argument: `elements` are those from its first to its last in memory, whatever lies between.

    `misalignment` is the first one's distance in bytes from an aligned address.
    """

    arg: TensorArg
    elements: Array
    misalignment: int

    def view(self) -> Array:
        """The tensor as the kernel's author sees it: of the launch's shape, over `elements`."""
        strides = tuple(stride * self.elements.itemsize for stride in self.arg.stride)
        return np.lib.stride_tricks.as_strided(self.elements, self.arg.shape, strides)


@dataclass(frozen=True)
class Element:
    """An element of a tuple that is passed at run time: its name among the inputs, `values[1][0]`."""

    name: str


@dataclass(frozen=True)
class Inputs:
    """All that one call of a kernel gets but its constexprs: tensors, other arguments, and descriptors' tiles.

    A tensor that a descriptor covers is among `tensors`, the shape of the tiles in `blocks`, and among `scalars` are
    its other parts, for kernels that take those. `tuples` have each argument that is one as a tuple of tuples, elements
    by their names and constants.
    """

    tensors: Mapping[str, TensorData]
    scalars: Mapping[str, Any]
    blocks: Mapping[str, tuple[int, ...]]
    tuples: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def passed(self, name: str) -> Iterator[str]:
        """The names of what the kernel gets for a parameter: its own, or those of a tuple's elements in order."""
        return _passed(self.tuples[name]) if name in self.tuples else iter((name,))


def _passed(elements: tuple[Any, ...]) -> Iterator[str]:
    for element in elements:
        if isinstance(element, Element):
            yield element.name
        elif isinstance(element, tuple):
            yield from _passed(element)


def unknown_inputs(launch: Launch) -> str:
    """Why a launch cannot be run, or nothing."""
    if launch.origin == "guessed":
        return "the launch was guessed from the source"
    if launch.args is None:
        return "the launch has no arguments recorded"
    if launch.grid is None:
        return "the launch has no grid recorded"
    return ""


def make_inputs(launch: Launch, seed: int) -> Inputs:
    """Random arguments for a launch. The same seed makes the same values.

    Floating-point tensors are normal for even seeds and positive, up to 1, for odd ones, so that a logarithm or a
    square root is reached by numbers too; `range`, where given, bounds them instead. Integers respect `range`;
    without one, bytes and booleans are random and wider integers, which may be indices, are zero. Raises
    UnknownInputsError where `args` lacks something.
    """
    if launch.args is None:
        raise UnknownInputsError("the launch has no arguments recorded")
    maker = _Maker(launch, seed)
    tuples = {}
    for position, (name, kind) in enumerate(launch.signature.items()):
        value = launch.args.get(name)
        kinds = with_tuples(kind)
        if isinstance(kinds, tuple):
            tuples[name] = maker.elements(name, kinds, value, (position,))
        elif kind != "constexpr" or isinstance(value, (TensorArg, DescriptorArg)):
            maker.make(name, kind, value, (position,))
    return Inputs(maker.tensors, maker.scalars, maker.blocks, tuples)


class _Maker:
    """Makes arguments one by one, each with numbers of its own: equal ones would hide that one is taken for another."""

    def __init__(self, launch: Launch, seed: int) -> None:
        self._launch, self._seed = launch, seed
        self.tensors: dict[str, TensorData] = {}
        self.scalars: dict[str, Any] = {}
        self.blocks: dict[str, tuple[int, ...]] = {}

    def make(self, name: str, kind: str, value: Any, position: tuple[int, ...]) -> None:
        """One argument. Raises UnknownInputsError where there is no value."""
        if isinstance(value, DescriptorArg):
            self.blocks[name], rank = value.block_shape, len(value.shape)
            self.scalars |= zip(sizes(name, rank), value.shape, strict=True)
            self.scalars |= zip(strides(name, rank), value.stride[:-1], strict=True)
            value = TensorArg(value.dtype, value.shape, value.stride)
        if isinstance(value, TensorArg):
            generator = np.random.default_rng([self._seed, *position])
            aligned = name in self._launch.divisible_by_16 or not kind.startswith("*")
            self.tensors[name] = make_tensor(value, generator, positive=bool(self._seed % 2), aligned=aligned)
        elif value is None:
            raise UnknownInputsError(f"the launch does not say what {name} was")
        else:
            self.scalars[name] = value

    def elements(self, name: str, kinds: tuple[Any, ...], value: Any, position: tuple[int, ...]) -> tuple[Any, ...]:
        """The elements of a tuple, made. Raises UnknownInputsError where the launch has others than its signature."""
        if not isinstance(value, tuple) or len(value) != len(kinds):
            raise UnknownInputsError(f"the launch does not say what {name} was")
        found: list[Any] = []
        for index, (kind, element) in enumerate(zip(kinds, value, strict=True)):
            inner, place = f"{name}[{index}]", (*position, index)
            if isinstance(kind, tuple):
                found.append(self.elements(inner, kind, element, place))
            elif kind == "constexpr":
                found.append(element)
            else:
                self.make(inner, kind, element, place)
                found.append(Element(inner))
        return tuple(found)


def coarse(inputs: Inputs) -> Inputs:
    """The same arguments with floats rounded to integers from -2 to 2.

    Products of two are exact in every format, and so are sums of some hundreds of them, in whatever order: results that
    differ on these differ by more than the order of sums.
    """
    tensors = {}
    for name, data in inputs.tensors.items():
        elements = data.elements
        if is_floating(elements.dtype):
            elements = np.clip(np.round(elements.astype(np.float32)), -2, 2).astype(elements.dtype)
        tensors[name] = replace(data, elements=elements)
    return replace(inputs, tensors=tensors)


def poisoned(inputs: Inputs, names: Collection[str]) -> Inputs:
    """The same arguments with tensors `names` full of bytes 0xFF: NaN in most floating-point formats."""
    tensors = {
        name: replace(data, elements=np.full(data.elements.nbytes, 0xFF, np.uint8).view(data.elements.dtype))
        if name in names
        else data
        for name, data in inputs.tensors.items()
    }
    return replace(inputs, tensors=tensors)


def make_tensor(arg: TensorArg, generator: np.random.Generator, *, positive: bool, aligned: bool) -> TensorData:
    """One random tensor. A tensor that was not 16-byte aligned starts one element off, so Triton specializes alike."""
    dtype = numpy_dtype(arg.dtype)
    if any(stride < 0 for stride in arg.stride):
        raise UnknownInputsError("a tensor has a negative stride")
    last = sum((size - 1) * stride for size, stride in zip(arg.shape, arg.stride, strict=True))
    count = last + 1 if math.prod(arg.shape) else 0
    content = _random(arg, dtype, min(count, PERIOD), generator, positive)
    return TensorData(arg, _repeated(content, count), 0 if aligned else dtype.itemsize)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy or ml_dtypes type that torch calls `name`. Raises UnknownInputsError."""
    found: Any = getattr(ml_dtypes, name, None)
    try:
        dtype: np.dtype[Any] = np.dtype(found if found is not None else name)
    except TypeError:
        raise UnknownInputsError(f"numpy has no type {name}") from None
    if dtype.kind in "biu" or is_floating(dtype):
        return dtype
    raise UnknownInputsError(f"Triton has no type for {name}")


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is floating-point; numpy itself does not count those of ml_dtypes."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.name.startswith(("bfloat", "float")))


def _repeated(content: Array, count: int) -> Array:
    """The content again and again, up to `count` elements."""
    if len(content) == count:
        return content
    whole = np.empty(count, content.dtype)
    for start in range(0, count, len(content)):
        part = whole[start : start + len(content)]
        part[:] = content[: len(part)]
    return whole


def _random(arg: TensorArg, dtype: np.dtype[Any], count: int, generator: np.random.Generator, positive: bool) -> Array:
    if is_floating(dtype):
        return _random_floats(arg, count, generator, positive).astype(dtype)
    if dtype == np.bool_:
        return generator.integers(0, 2, count, np.uint8).astype(dtype)
    if arg.range is not None:
        low, high = map(int, arg.range)
    elif dtype.itemsize == 1:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    else:
        low, high = 0, 0
    return generator.integers(low, min(high, 2**63 - 1), count, np.int64, endpoint=True).astype(dtype)


def _random_floats(arg: TensorArg, count: int, generator: np.random.Generator, positive: bool) -> Array:
    made: Any = np.float64 if arg.dtype == "float64" else np.float32
    if arg.range is not None:
        low, high = arg.range
        within: Array = made(low) + made(high - low) * generator.random(count, made)
        return within
    if positive:
        smallest: Array = np.maximum(generator.random(count, made), made(2**-6))
        return smallest
    return generator.standard_normal(count, made)
