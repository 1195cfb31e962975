"""Which operands of matrix products have one type, and which that is where a cast of the other operand says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tt2gl.infer.evidence import SOME_DTYPE, Value

_HALVES: Mapping[str, str] = {"float16": "fp16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Product:
    """The parameters that the operands of one product are read through, as they are, and what the others are made.

    `made`: the dtypes that other operands are cast to. `plain`: one is computed, so that it has Triton's float32.
    """

    names: frozenset[str]
    made: frozenset[str] = frozenset()
    plain: bool = False

    def __or__(self, other: Product) -> Product:
        return Product(self.names | other.names, self.made | other.made, self.plain or other.plain)


def side(value: Value) -> Product:
    """What one operand says of its product."""
    if value.made:
        return Product(value.like, frozenset((value.made,)) - {SOME_DTYPE})
    if value.kind:
        return Product(frozenset(), plain=value.kind == "float")
    names = value.loaded or frozenset(value.bases)
    return Product(names, plain=not names)


def operand_types(products: Iterable[Product]) -> Mapping[str, str]:
    """The dtypes of parameters through which operands are read; empty for those of which nothing is said.

    Where operands are computed and nobody casts, all are float32. Else those that nothing is said of are as the others.
    """
    groups: list[Product] = []
    for product in products:
        joined = [group for group in groups if group.names & product.names]
        groups = [group for group in groups if group not in joined]
        for group in joined:
            product |= group
        groups.append(product)
    cast = [name for group in groups for name in sorted(group.made) if name in _HALVES]
    rest = _HALVES[cast[0]] if cast else "fp32" if any(group.plain for group in groups) else ""
    types: dict[str, str] = {}
    for group in groups:
        own = [name for name in sorted(group.made) if name in _HALVES]
        single = "fp32" if group.plain or "float32" in group.made else rest
        types |= dict.fromkeys(group.names, _HALVES[own[0]] if own else single)
    return types
