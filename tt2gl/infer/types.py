"""The types of run-time parameters, by annotation, value, use and name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tt2gl.infer.evidence import Facts
from tt2gl.infer.kernel import DTYPES, Kernel
from tt2gl.infer.names import (
    FLOAT_NAME,
    INTEGER_NAME,
    LABEL_NAME,
    MASK_NAME,
    OFFSET_NAME,
    SIZE_NAME,
    STRIDE_NAME,
    TRUTH_NAME,
)
from tt2gl.infer.usage import Usage
from tt2gl.jit_functions import Parameter

# The dtype of what is loaded and then reinterpreted as an integer of so many bits.
_OF_BITS: Mapping[int, str] = {8: "fp8e4nv", 16: "bf16", 32: "fp32", 64: "fp64"}

_USUAL = "fp32"
"""What everything is of that nothing is said of."""


def guess_type(
    kernel: Kernel, usage: Usage, parameter: Parameter, dtype: str | None, value: Any, block: Sequence[int]
) -> tuple[str, bool]:
    """The type of a run-time parameter, and whether it is known rather than guessed.

    `dtype` is that of the tensor and `value` the number that a launch call passes, where it says so; `block` that of
    what is a descriptor.
    """
    facts = usage.evidence(parameter.name)
    annotated = _annotation_type(parameter.annotation)
    if annotated is not None and (annotated.startswith("*") or not facts.address):
        return annotated, True
    if facts.address or facts.rank or (annotated is None and parameter.annotation and "Tensor" in parameter.annotation):
        if dtype is not None:
            return _pointer(dtype, facts, block), True
        return _pointer(_element(parameter.name, usage), facts, block), False
    if type(value) is float:
        return "fp32", True
    if type(value) is bool:
        return "i1", True
    if type(value) is int:
        return ("i64" if abs(value) >= 2**31 else "i32"), True
    if re.search(r"(_ptr|_pointer)s?(_?\d+)?$|^ptr", parameter.name, re.I):
        return f"*{_element(parameter.name, usage)}", False
    if isinstance(kernel.default(parameter), float):
        return "fp32", False
    if not (facts.integer or STRIDE_NAME.search(parameter.name)) and (
        facts.float or (FLOAT_NAME.search(parameter.name) and not SIZE_NAME.search(parameter.name))
    ):
        return "fp32", False
    return ("u64" if facts.unsigned else "i64" if facts.wide else "i32"), False


def _pointer(element: str, facts: Facts, block: Sequence[int]) -> str:
    if facts.rank and not facts.address:
        return f"tensordesc<{element}[{', '.join(map(str, block))}]>"
    return f"*{element}"


def _element(name: str, usage: Usage, asked: frozenset[str] = frozenset()) -> str:
    """The dtype that a pointer points to; `asked`: those that it may not be asked of, as they store what it has."""
    facts = usage.evidence(name)
    if facts.element or facts.stored:
        return facts.element or facts.stored
    if (facts.wide or facts.unsigned) and not facts.dot:  # no product takes such operands
        return "u64" if facts.unsigned else "i64"
    if facts.narrow:
        return "i8"
    if facts.bits:
        return _OF_BITS.get(facts.bits, "fp32")
    if facts.index:
        return "i64" if LABEL_NAME.search(name) and not OFFSET_NAME.search(name) else "i32"
    if facts.mask and not facts.dot:
        return "i1" if MASK_NAME.search(name) else "i8"
    if facts.packed or (facts.whole and not facts.dot):
        return "i32"
    operand = usage.operands.get(name)
    if INTEGER_NAME.search(name) and operand is None and not facts.dot and not facts.float:
        return "i64" if LABEL_NAME.search(name) and not OFFSET_NAME.search(name) else "i32"
    if OFFSET_NAME.search(name) and re.search("cu_?seq|seq_?len|block_table|indptr", name, re.I):
        return "i32"
    if operand is not None or facts.dot or facts.rank:
        return operand or ("bf16" if "bfloat16" in usage.casts and "float16" not in usage.casts else "fp16")
    if TRUTH_NAME.search(name):
        return "i1"
    others = [other for other in facts.copies if usage.evidence(other).address and other not in asked]
    elements = (_element(other, usage, asked | {name, *others}) for other in others)
    return next((element for element in elements if element != _USUAL), _USUAL)


def is_divisible(name: str, kind: str, facts: Facts, value: Any) -> bool:
    """Whether an argument of that type is a multiple of 16, or for a pointer of 16 bytes."""
    if kind.startswith("*") or (facts.address and kind == "i64"):
        return True
    if not re.fullmatch(r"[iu]\d+", kind) or kind == "i1":
        return False
    if type(value) is int:
        return value % 16 == 0
    if STRIDE_NAME.search(name):
        return facts.stride or facts.offset
    return (facts.stride and not facts.size) or bool(facts.size and SIZE_NAME.search(name))


def _annotation_type(annotation: str | None) -> str | None:
    """Triton's type for an annotation such as `"*fp16"`, `tl.int32` or `tl.pointer_type(tl.float32)`."""
    if annotation is None:
        return None
    text = annotation.strip().strip("\"'")
    pointer = re.fullmatch(r"(?:\w+\.)*(?:pointer_type|PointerType)\((.*?)\)", text)
    if pointer:
        inner = _annotation_type(pointer.group(1))
        return None if inner is None else f"*{inner}"
    if text.startswith("*"):
        inner = _annotation_type(text[1:].removeprefix("k"))
        return None if inner is None else f"*{inner}"
    name = text.rpartition(".")[2]
    if re.fullmatch(r"(fp|bf|[iu])\d+(e\d\w*)?", name):
        return name
    return DTYPES.get(name)
