"""What is stored through a pointer tells what it points to: the dtype that it was cast to, or what it was loaded as."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tt2gl.infer.evidence import Facts, Value
from tt2gl.infer.kernel import DTYPES

_USUAL = "float32"
"""What is computed in single precision is stored to halves as often: Triton casts it."""


def stored(node: ast.Call, keywords: Mapping[str, ast.expr]) -> ast.expr | None:
    """What `tl.store(pointer, value)` stores."""
    return keywords.get("value") or (node.args[1] if len(node.args) > 1 else None)


def note_stored(facts: Facts, value: Value) -> None:
    """That a value is stored through the pointer that these facts are of."""
    if value.made in DTYPES and value.made != _USUAL:
        facts.stored = facts.stored or DTYPES[value.made]
        return
    if value.kind == "int" and (value.origins or value.loaded):
        facts.whole = True
    copied = (value.raw or frozenset(value.bases)) if not value.kind and not value.made else frozenset()
    facts.copies.extend(name for name in sorted(value.like or copied) if name not in facts.copies)


def passed_on(kept: Facts, found: Facts, values: Mapping[str, Value], pointers: Mapping[str, Facts]) -> None:
    """What a helper stores through its own parameter, which `found` is of, is stored through its caller's."""
    kept.stored = kept.stored or found.stored
    for name in found.copies:
        value = values.get(name, Value())
        note_stored(kept, Value(value.bases) if pointers[name].address else value)
