"""What a name of a package that is not at hand most likely is: packages wrap Triton's functions under their own names.

A file given alone lacks the package around it, and its `from package.ops import exp` leads nowhere. Only the text of
the slice relies on the stand-in, to learn types; the converted file keeps the author's import and call.
"""

from __future__ import annotations

from tt2gl.host import facts

_MODULES = ("math", "libdevice", "extra")
_PLACES = ("triton.language", "triton.language.extra.libdevice")


def stand_in(dotted: str) -> str | None:
    """Triton's function, or a module such as `libdevice`, of that last name; None if none, or the package is here."""
    package, _, name = dotted.rpartition(".")
    if package and facts.top_level_origin(package.partition(".")[0]) is not None:
        return None
    if name == "libdevice":
        return "triton.language.extra.libdevice"
    for place in _PLACES:
        if facts.has_name(place, name) and (name in _MODULES or not _is_module(place, name)):
            return f"{place}.{name}"
    return None


def _is_module(place: str, name: str) -> bool:
    origin = facts.top_level_origin("triton")
    return origin is not None and facts.submodule(origin, f"{place.partition('.')[2]}.{name}") is not None
