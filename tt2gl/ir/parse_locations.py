"""Locations, and the aliases of locations, attributes and types (`#loc3`, `#blocked`), defined anywhere in the text."""

from __future__ import annotations

import re

from tt2gl.ir.attributes import Attribute
from tt2gl.ir.lexer import UndefinedError
from tt2gl.ir.operations import UNKNOWN, Location
from tt2gl.ir.parse_attributes import AttributeParser
from tt2gl.ir.types import Type

# Definitions start a line, and nothing else with these signs does.
_DEFINITION = re.compile(r"^([#!][A-Za-z_$][\w$.-]*) = ", re.MULTILINE)
_PLACE = re.compile(r":(\d+):(\d+)(?: to (?:\d+)?:\d+(?::\d+)?)?")
# Most locations are of one of two forms: a place in a file, or a name of an alias.
_SIMPLE = re.compile(r'loc\("([^"\\\n]*+)"(?::(\d++):(\d++)\)|\((#[A-Za-z_$][\w$.-]*+)\)\))')
_ALIAS = re.compile(r"#[A-Za-z_$][\w$.-]*+")


class LocationParser(AttributeParser):
    """Reads locations and aliases. An alias is read when it is first used, wherever it is defined."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._definitions = {found[1]: found.end() for found in _DEFINITION.finditer(text)}
        self._aliases: dict[str, Attribute] = {}
        self._open: set[str] = set()

    def finish_aliases(self) -> None:
        """Read those aliases, too, that nothing used."""
        for name in self._definitions:
            self._alias(name, self._definitions[name])

    def attribute_alias(self, name: str, position: int) -> Attribute:
        """What `#name` stands for."""
        return self._alias(f"#{name}", position)

    def type_alias(self, name: str, position: int) -> Type:
        """What `!name` stands for."""
        made: Type = self._alias(f"!{name}", position)
        return made

    def location_attribute(self) -> Attribute:
        """A location given as an attribute."""
        return self.location()

    def location(self) -> Location:
        """`loc(...)`."""
        if (simple := self.match(_SIMPLE)) is not None:
            text, line, column, alias = simple.groups()
            return self._known(alias, simple.start(4))._replace(name=text) if alias else _file(text, line, column)
        self.expect("loc")
        self.expect("(")
        made = self._location()
        self.expect(")")
        return made

    def _alias(self, name: str, position: int) -> Attribute:
        if name in self._aliases:
            return self._aliases[name]
        if name not in self._definitions:
            raise self.error(f"`{name}` is not defined", position, UndefinedError)
        if name in self._open:
            raise self.error(f"`{name}` is defined by itself", position, UndefinedError)
        back = self.position
        self.position = self._definitions[name]
        self._open.add(name)
        self._aliases[name] = made = self.type() if name.startswith("!") else self.attribute()
        self._open.remove(name)
        self.position = back
        return made

    def _location(self) -> Location:
        """What stands between the brackets of `loc(...)`."""
        self.skip()
        start = self.position
        if (alias := self.match(_ALIAS)) is not None:
            return self._known(alias[0], start)
        if self.at('"'):
            return self._named_or_file()
        match self.name("a location"):
            case "unknown":
                return UNKNOWN
            case "callsite":
                return self._call()
            case "fused":
                return self._fused()
        raise self.error("unknown kind of location", start)

    def _known(self, alias: str, position: int) -> Location:
        made = self._alias(alias, position)
        if not isinstance(made, Location):
            raise self.error(f"`{alias}` is no location", position)
        return made

    def _named_or_file(self) -> Location:
        text = self.string()
        if (place := self.match(_PLACE)) is not None:
            return _file(text, place[1], place[2])
        if not self.take("("):
            return Location(name=text)
        inner = self._location()
        self.expect(")")
        return inner._replace(name=text)

    def _call(self) -> Location:
        """`callsite(callee at caller)`: the caller is behind all the callers that the callee has."""
        self.expect("(")
        callee = self._location()
        self.expect("at")
        caller = self._location()
        self.expect(")")
        return _called_from(callee, caller)

    def _fused(self) -> Location:
        """`fused<metadata>[a, b]`: the first that is known."""
        if self.at("<"):
            self.balanced()
        self.expect("[")
        found: list[Location] = []
        while not self.take("]"):
            if found:
                self.expect(",")
            found.append(self._location())
        return next((place for place in found if place.line), found[0] if found else UNKNOWN)


def _file(name: str, line: str, column: str) -> Location:
    return Location(name, int(line), int(column))


def _called_from(callee: Location, caller: Location) -> Location:
    behind = caller if callee.caller is None else _called_from(callee.caller, caller)
    return callee._replace(caller=behind)
