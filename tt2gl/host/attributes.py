"""Attributes: of modules that are read, of external packages (answered from the target), of classes and of data."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

from tt2gl.host import facts
from tt2gl.host.conditions import Conditions
from tt2gl.host.externals import MATH, MODULES
from tt2gl.host.names import SYNONYMS
from tt2gl.host.scopes import Module, Scope
from tt2gl.host.values import (
    Cause,
    Class,
    Constexpr,
    External,
    Function,
    HostRaise,
    IntMember,
    Member,
    Method,
    ModuleValue,
    Undecided,
    is_data,
)

# Triton's modules whose attributes are all bound in their files, so that absence there is absence.
_CHECKED = ("triton.language", "triton.tools", "triton.experimental", "triton.compiler", "triton.testing")


class Attributes(Conditions):
    """Reads attributes."""

    def attribute(self, value: Any, name: str, *, imported: bool = False) -> Any:
        """`value.name`. Raises HostRaise (AttributeError), or Undecided with no place of its own."""
        match value:
            case ModuleValue(module):
                return self._module_attribute(module, name)
            case External():
                return self._external_attribute(value, name, imported)
            case Constexpr(inner) if name == "value":
                return inner
            case Class():
                return self.class_attribute(value, name)
            case Function() if name in ("__name__", "__qualname__"):
                return value.name
            case SimpleNamespace():
                if hasattr(value, name):
                    return getattr(value, name)
                raise HostRaise("AttributeError", name)
            case Member(member_name, member_value) if name in ("name", "value"):
                return member_name if name == "name" else member_value
            case IntMember() if name in ("name", "value"):
                return getattr(value, name)
            case facts.Version() if name in (
                "major",
                "minor",
                "micro",
                "release",
                "base_version",
                "public",
                "local",
            ):
                return getattr(value, name)
            case facts.Version() if name == "is_prerelease":
                return value.is_prerelease
            case tuple() if name in ("major", "minor", "micro"):  # sys.version_info
                return value[("major", "minor", "micro").index(name)]
        if is_data(value):
            if name.startswith("_") or not hasattr(value, name):
                raise HostRaise("AttributeError", name)
            found = getattr(value, name)
            return found if is_data(found) else Method(value, name)
        raise Undecided(Cause("", 0, 0, f"the attribute {name!r} cannot be read"))

    def _module_attribute(self, module: Module, name: str) -> Any:
        key = (module, name, "attribute")
        if key in self.busy:
            raise HostRaise("AttributeError", name)
        self.busy.add(key)
        try:
            value, found = self._in_scope(module.scope, name, None)
        finally:
            self.busy.discard(key)
        if found:
            return value
        if module.path.name == "__init__.py":
            inside = facts.submodule(module.path, name)
            child = self.world.load(inside) if inside is not None and inside.suffix == ".py" else None
            if child is not None:
                return ModuleValue(child)
        if "__getattr__" in module.scope.bindings:
            raise self.undecided(
                module.scope, module.scope.bindings["__getattr__"][0].node, f"{name!r} is made on demand"
            )
        if name == "__name__":
            return module.path.stem
        raise HostRaise("AttributeError", name)

    def _external_attribute(self, value: External, name: str, imported: bool) -> Any:
        dotted = f"{value.dotted}.{name}"
        dotted = SYNONYMS.get(dotted, dotted)
        if dotted in facts.ABSENT:
            raise HostRaise("AttributeError", dotted)
        if dotted in self.facts:
            fact = self.facts[dotted]
            if fact is None and dotted.endswith("__version__"):
                raise Undecided(Cause("", 0, 0, f"{dotted} is not installed"))
            return fact
        if dotted == "os.environ":
            return External("os.environ")
        if value.within("math") and value.dotted == "math":
            found = MATH.get(name)
            if found is not None:
                return found if isinstance(found, float) else External(dotted)
        if any(value.within(package) for package in _CHECKED) or value.dotted == "triton":
            present = facts.has_name(value.dotted, name)
            if present is False and value.module:
                raise HostRaise("ImportError" if imported else "AttributeError", dotted)
        origin = facts.top_level_origin("triton") if value.within("triton") else None
        is_module = value.module and (
            origin is not None and facts.submodule(origin, dotted.partition(".")[2]) is not None
        )
        if not is_module and value.module and not value.within("triton"):
            is_module = dotted in MODULES
        return External(self._backend(dotted), is_module)

    def _backend(self, dotted: str) -> str:
        """Libdevice of the other vendor's backend, named outright, means that of the target."""
        cuda, hip = "triton.language.extra.cuda.libdevice", "triton.language.extra.hip.libdevice"
        if self.device.hip and dotted.startswith(cuda):
            rest = dotted[len(cuda) :]
            if not rest or facts.has_name(hip, rest[1:]):
                return hip + rest
        return dotted

    def class_attribute(self, value: Class, name: str) -> Any:
        """An attribute of a class, its own or inherited; members of enums as such."""
        scope = Scope(value.frame.scope.module, value.node.body, value.frame.scope, value.node)
        if name == "__name__":
            return value.node.name
        binding = self.binding(scope, name)
        if binding is None:
            for base in value.node.bases:
                inherited = self.evaluate(base, value.frame)
                if isinstance(inherited, Class):
                    return self.class_attribute(inherited, name)
            raise HostRaise("AttributeError", name)
        found = self.value(scope, binding)
        bases = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in value.node.bases}
        if bases & {"IntEnum", "IntFlag"} and isinstance(found, int):
            member = IntMember(found)
            member.name = name
            return member
        if bases & {"Enum", "StrEnum", "Flag"} and is_data(found):
            return Member(name, found)
        return found
