"""What TorchInductor writes beside a kernel that it generates: types, alignment and constants, in `triton_meta`.

    @triton_heuristics.pointwise(
        size_hints={"x": 4096},
        triton_meta={"signature": {"in_ptr0": "*bf16", "xnumel": "i32", "XBLOCK": "constexpr"},
                     "constants": {}, "configs": [{(0,): [["tt.divisibility", 16]]}]},
    )

Older versions name parameters by their places, and alignment by `AttrsDescriptor` or `instance_descriptor`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tt2gl.infer.found import OPTIONS, Known
from tt2gl.infer.kernel import MISSING, Kernel

_TYPE = re.compile(r"\*?(?:fp|bf|[iu])\d+\w*|constexpr")
_ELEMENTS = 2048
"""Of a tile of a reduction; of others half as many."""
_SIDE, _LEAST = 32, 4
"""Of a tile whose rows are not reduced where they lie: along what is reduced at most, and elsewhere at least."""


def generated(kernel: Kernel) -> Known:
    """What a generator says of all launches of a kernel; nothing where none wrote it."""
    known = Known()
    for decorator in kernel.node.decorator_list:
        words = {word.arg: word.value for word in decorator.keywords} if isinstance(decorator, ast.Call) else {}
        entries = _entries(words.get("triton_meta"), kernel)
        signature = _by_name(entries.get("signature"), kernel)
        if not signature:
            continue
        known.types = {name: kind for name, kind in signature.items() if _is_type(kind)}
        known.values = _by_name(entries.get("constants"), kernel)
        aligned = [place for node in _listed(entries.get("configs")) for place in _aligned(node, kernel)]
        if "configs" in entries:
            known.aligned = frozenset(kernel.names[place] for place in aligned if place < len(kernel.names))
        options = {name: _value(words[name], kernel) for name in OPTIONS if name in words}
        known.options = {name: value for name, value in options.items() if isinstance(value, int)}
        known.tiles = _tiles(_value(words.get("size_hints"), kernel), words.get("reduction_hint"), kernel.names)
    return known


def _is_type(kind: Any) -> bool:
    return isinstance(kind, str) and _TYPE.fullmatch(kind) is not None


def _value(node: ast.expr | None, kernel: Kernel) -> Any:
    return MISSING if node is None else kernel.value(node, kernel.module.scope)


def _entries(node: ast.expr | None, kernel: Kernel) -> dict[Any, ast.expr]:
    """The entries of a dict display, of which some may say what cannot be told."""
    if not isinstance(node, ast.Dict):
        return {}
    return {_value(key, kernel): value for key, value in zip(node.keys, node.values, strict=True) if key is not None}


def _by_name(node: ast.expr | None, kernel: Kernel) -> dict[str, Any]:
    """A dict by parameters or their places, by parameters."""
    names = kernel.names
    found = {key: _value(value, kernel) for key, value in _entries(node, kernel).items()}
    named = {names[key] if type(key) is int and key < len(names) else key: value for key, value in found.items()}
    return {name: value for name, value in named.items() if name in names and value is not MISSING}


def _listed(node: ast.expr | None) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.List) else []


def _aligned(node: ast.expr, kernel: Kernel) -> Iterator[int]:
    """The places of the parameters that are multiples of 16, as any version writes them."""
    match node:
        case ast.Dict():
            for key, value in _entries(node, kernel).items():
                if isinstance(key, tuple) and any("divisib" in str(attribute) for attribute in _value(value, kernel)):
                    yield key[0]
        case ast.Call(func=ast.Attribute(attr="from_dict"), args=[ast.Dict() as described]):
            properties = _value(_entries(described, kernel).get("arg_properties"), kernel)
            yield from properties.get("tt.divisibility", ()) if isinstance(properties, dict) else ()
        case ast.Call(keywords=words):
            places = [_value(word.value, kernel) for word in words if word.arg == "divisible_by_16"]
            yield from (place for place in places[0] if type(place) is int) if places else ()


def _tiles(extents: Any, hint: ast.expr | None, names: Sequence[str]) -> dict[str, int]:
    """The blocks of a program, by the extents that the kernel was generated for.

    Where a hint says that what is reduced lies side by side, as much of it as goes, else a tile of both.
    """
    if not isinstance(extents, dict) or not all(type(extent) is int for extent in extents.values()):
        return {}
    in_rows = isinstance(hint, ast.Attribute) and hint.attr == "INNER"
    reduced = {f"{axis.upper()}BLOCK": extent for axis, extent in extents.items() if axis.startswith("r")}
    if not in_rows:
        reduced = {name: min(extent, _SIDE) if name in names else extent for name, extent in reduced.items()}
    others = {f"{axis.upper()}BLOCK": extent for axis, extent in extents.items() if not axis.startswith("r")}
    tiles = _shared(reduced, _ELEMENTS)
    left = (_ELEMENTS if reduced else _ELEMENTS // 2) // math.prod(tiles.values())
    return tiles | _shared(others, max(left, 1 if in_rows else _LEAST))


def _shared(extents: Mapping[str, int], elements: int) -> dict[str, int]:
    """So many elements shared out among dimensions, powers of two, the last first."""
    tiles: dict[str, int] = {}
    for place, (name, extent) in enumerate(reversed([*extents.items()])):
        tiles[name] = min(extent, 2 ** round(math.log2(elements) / (len(extents) - place)))
        elements = max(elements // tiles[name], 1)
    return tiles
