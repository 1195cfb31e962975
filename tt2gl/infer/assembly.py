"""What inline assembly says of its operands: bits of a register shared out among as many elements as it packs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

_PARTS = ("asm", "constraints", "args", "dtype", "is_pure", "pack")
_REGISTERS: Mapping[str, int] = {"h": 16, "r": 32, "f": 32, "v": 32, "s": 32, "l": 64, "d": 64}


def operands(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """The arguments of `inline_asm_elementwise` whose elements its constraints tell the dtype of, and that.

    Of elements as wide as a register of 32 bits they say nothing: floats lie there, and integers.
    """
    parts = dict(zip(_PARTS, node.args, strict=False)) | {word.arg: word.value for word in node.keywords if word.arg}
    match [parts.get(name) for name in ("asm", "constraints", "args", "pack")]:
        case [ast.Constant(value=str(text)), ast.Constant(value=str(constraints)), arguments, pack]:
            kinds = [each.strip() for each in constraints.split(",")]
        case _:
            return
    taken = [kind for kind in kinds if kind in _REGISTERS]
    elements = arguments.elts if isinstance(arguments, ast.List | ast.Tuple) else []
    packed = pack.value if isinstance(pack, ast.Constant) and isinstance(pack.value, int) else 0
    if not packed or not elements or len(taken) % len(elements):
        return
    each = len(taken) // len(elements)
    for place, argument in enumerate(elements):
        bits = sum(_REGISTERS[kind] for kind in taken[place * each : (place + 1) * each]) // packed
        dtype = {8: "u8", 16: _half(text), 64: "" if "d" in taken else "i64"}.get(bits, "")
        if dtype:
            yield argument, dtype


def _half(text: str) -> str:
    return "bf16" if "bf16" in text else "fp16" if "f16" in text else "i16"
