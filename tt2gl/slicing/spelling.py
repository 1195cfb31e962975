"""Host values as Python expressions."""

from __future__ import annotations

import math
from typing import Any

from tt2gl.host.dtype_limits import limits
from tt2gl.host.externals import PURE_MODULES
from tt2gl.host.facts import Version
from tt2gl.host.values import Constexpr, External, IntMember, Made, Unknown


def spell(value: Any) -> str | None:
    """A value as a Python expression, None where it has none."""
    match value:
        case IntMember():
            return repr(int(value))
        case bool() | int() | str() | bytes() | None:
            return repr(value)
        case float() if not math.isfinite(value):
            return f"float('{value}')"
        case float() | complex() | range():
            return repr(value)
        case Version():
            return repr(str(value))
        case Constexpr(inner):
            text = spell(inner)
            return None if text is None else f"find('triton.language.constexpr')({text})"
        case External(dotted) if value.within("triton") or dotted.partition(".")[0] in PURE_MODULES:
            return f"find({dotted!r})"
        case External(dotted):
            known = limits(dotted)
            return f"inert({dotted!r})" if known is None else f"limits({known!r})"
        case Made("collections.namedtuple", args, kwargs):
            items = [spell(item) for item in args] + [f"{k}={spell(v)}" for k, v in kwargs.items()]
            return None if None in items else f"find('collections.namedtuple')({', '.join(map(str, items))})"
        case Made("triton.constexpr_function", (External() as function,)):
            return f"find('triton.constexpr_function')({spell(function)})"
        case tuple() | list() | set() | frozenset():
            items = [spell(item) for item in value]
            if None in items:
                return None
            inside = ", ".join(map(str, items if isinstance(value, tuple | list) else sorted(map(str, items))))
            if isinstance(value, tuple):
                return f"({inside},)" if items else "()"
            return f"[{inside}]" if isinstance(value, list) else f"{type(value).__name__}([{inside}])"
        case dict():
            pairs = [(spell(key), spell(item)) for key, item in value.items()]
            if any(key is None or item is None for key, item in pairs):
                return None
            return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
        case Unknown():
            return None
    return None
