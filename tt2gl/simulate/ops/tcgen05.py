"""tcgen05 (sm100): products into tensor memory and copies there, asynchronous and in the order of their issue.

What a partition begins is over when an mbarrier says so: that of a `tc_gen5_commit`, which arrives after all before it,
or one that the product itself has as an operand. Without either, too, a product is asynchronous in a Gluon kernel: no
pass of Triton's Gluon pipeline makes it wait (`is_async` is for those of Triton's own).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import IntegerType, Type
from tt2gl.simulate.engine import Engine, View
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.microscaling import F32, FORMATS, scaled_operand
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array, uniform

_GROUP = "tcgen05"

# The values of a product's operands by their names in its definition, and the barriers that it arrives on.
_PLAIN = ("a", "b", "d", "acc_dep", "use_d", "pred")
_SCALED = ("a", "b", "d", "acc_dep", "a_scale", "b_scale", "use_d", "pred")


def _operands(
    operation: Operation, names: Sequence[str], values: Sequence[Any]
) -> tuple[dict[str, Any], list[tuple[View, Array]]]:
    """Operands by name, None for one left out; and barriers, each with its predicate."""
    sizes = operation.attributes["operandSegmentSizes"]
    found: dict[str, Any] = {}
    rest = list(values)
    for name, size in zip(names, sizes, strict=False):
        found[name] = rest.pop(0) if size else None
    barriers = sizes[len(names)]
    return found, list(zip(rest[:barriers], rest[barriers:], strict=True))


# ------------------------------------------------------------------------------------------------- in order


def _begin(
    engine: Engine,
    operation: Operation,
    effect: Callable[[], None],
    reads: Sequence[View],
    writes: Sequence[View],
    *,
    must_end: bool = False,
) -> None:
    """Start work that comes after all that the partition has begun."""
    last = engine.group(_GROUP).works[-1:]
    engine.start(
        operation, effect, group=_GROUP, reads=reads, writes=writes, before=last, in_order=True, must_end=must_end
    )


def _commit(engine: Engine, operation: Operation, view: View) -> None:
    """Arrive on an mbarrier when all that the partition has begun is over."""
    barrier = engine.barrier(operation, view)
    if barrier is None:
        return
    group = engine.group(_GROUP)
    engine.start(operation, lambda: None, group=_GROUP, barrier=barrier, arrivals=1, before=group.works, in_order=True)
    # The commit stands for what it waits for.
    group.closed, group.open = [], group.open[-1:]
    engine.commit(_GROUP)


@handles("ttng.tc_gen5_commit")
def _tc_gen5_commit(run: Run, operation: Operation, barrier: View, *rest: Any) -> None:
    sizes = operation.attributes.get("operandSegmentSizes")
    predicate = rest[0] if rest and (sizes is None or sizes[1]) else None
    if sizes is not None and sizes[2]:
        _one_block(run, operation)
    if run.engine.predicate(run, predicate):
        _commit(run.engine, operation, barrier)


def _one_block(run: Run, operation: Operation) -> None:
    if int(run.module.attributes.get("ttg.num-ctas", 1)) > 1:
        raise Unsupported(operation, "it tells several blocks of a cluster")


# ------------------------------------------------------------------------------------------------- products


@handles("ttng.tc_gen5_mma")
def _mma(run: Run, operation: Operation, *values: Any) -> None:
    named, barriers = _operands(operation, _PLAIN, values)
    a, b = named["a"], named["b"]
    kinds = _kinds(operation, a.kind, b.kind)
    precision = "tf32" if a.kind == F32 else "ieee"

    def product(c: Array | None) -> Array:
        return run.arithmetic.matmul(a.load(operation), b.load(operation), c, (*kinds, named["d"].kind), precision)

    _multiply(run, operation, named, barriers, product, (a, b))


def _kinds(operation: Operation, a: Type, b: Type) -> tuple[Type, Type]:
    unsigned = operation.attributes.get("is_unsigned") or operation.attributes.get("isUnsigned")
    if unsigned and isinstance(a, IntegerType):
        raise Unsupported(operation, "its operands are unsigned")
    return a, b


@handles("ttng.tc_gen5_mma_scaled")
def _mma_scaled(run: Run, operation: Operation, *values: Any) -> None:
    named, barriers = _operands(operation, _SCALED, values)
    views = tuple(named[name] for name in ("a", "b", "a_scale", "b_scale"))
    a_form, b_form = (FORMATS[int(operation.attributes[name])] for name in ("a_type", "b_type"))

    def operand(view: View, form: str, scale: View, axis: int) -> Array:
        elements, scales = view.load(operation), scale.load(operation)
        return scaled_operand(elements, view.kind, form, scales, scale.kind, (axis, axis), run.arithmetic)

    def product(c: Array | None) -> Array:
        left = operand(named["a"], a_form, named["a_scale"], 2)
        right = operand(named["b"], b_form, named["b_scale"], 1)
        return run.arithmetic.matmul(left, right, c, (F32, F32, named["d"].kind), "ieee")

    _multiply(run, operation, named, barriers, product, views)


def _multiply(
    run: Run,
    operation: Operation,
    named: dict[str, Any],
    barriers: Sequence[tuple[View, Array]],
    product: Callable[[Array | None], Array],
    views: Sequence[View],
) -> None:
    """Begin a product of what `views` hold, added to its accumulator where it says so."""
    engine, accumulator, adds = run.engine, named["d"], named["use_d"]
    if operation.attributes.get("multicast"):
        _one_block(run, operation)
    if not engine.predicate(run, named["pred"]):
        return
    never = uniform(adds) is False

    def effect() -> None:
        if never:
            accumulator.store(product(None))
            return
        before = accumulator.load(operation)
        before = np.where(adds.reshape(-1, 1, 1), before, np.zeros((), before.dtype))
        accumulator.store(product(before))

    reads = list(views) if never else [*views, accumulator]
    _begin(engine, operation, effect, reads, [accumulator], must_end=True)
    for view, predicate in barriers:
        if engine.predicate(run, predicate):
            _commit(engine, operation, view)


# --------------------------------------------------------------------------------------------------- copies


@handles("ttng.tmem_copy")
def _tmem_copy(run: Run, operation: Operation, source: View, target: View) -> None:
    def effect() -> None:
        values = source.load(operation)
        if source.shape != target.shape:
            values = _scales_of_chunks(operation, values, target.shape)
        target.store(values)

    _begin(run.engine, operation, effect, [source], [target])


def _scales_of_chunks(operation: Operation, values: Array, shape: tuple[int, ...]) -> Array:
    """Scales (rows, columns) from chunks of 128 rows by 4 columns, in which rows 32 apart lie side by side."""
    rows, columns = shape
    if rows % 128 or columns % 4 or values.size != len(values) * rows * columns:
        raise Unsupported(operation, f"it copies {values.shape[1:]} to {shape}")
    chunks = values.reshape(-1, rows // 128, columns // 4, 32, 4, 4)
    return chunks.transpose(0, 1, 4, 3, 2, 5).reshape(-1, rows, columns)
