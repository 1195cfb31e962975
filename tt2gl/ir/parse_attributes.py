"""Attributes: numbers, strings, arrays, dictionaries, `dense<...>`, symbols, and what dialects define."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any

from tt2gl.ir.attributes import UNIT, Attribute, DialectAttr, Symbol
from tt2gl.ir.constants import DenseText, dense_elements, float_from_bits, float_from_text
from tt2gl.ir.lexer import NAME_TEXT, STRING_TEXT, ParseError, UndefinedError, unescape
from tt2gl.ir.parse_types import TypeParser
from tt2gl.ir.types import FloatType, IntegerType, Type

_NUMBER = re.compile(
    r"(?P<hex>0x[0-9A-Fa-f]++)|(?P<float>-?\d++\.\d*+(?:[eE][-+]?\d++)?|-?\d++[eE][-+]?\d++)|(?P<int>-?\d++)"
)
_WORD = re.compile(r"[A-Za-z_]\w*+")
_KEY = re.compile(rf"({NAME_TEXT}|{STRING_TEXT})")
_NAMED = re.compile(rf"({NAME_TEXT})\s*+=(?!=)")
_BARE = re.compile(r"[A-Za-z_][\w.]*+")
# The words that start a type or a builtin attribute; any other that a dialect prints is its own.
_KNOWN_WORD = re.compile(r"true|false|dense|array|loc|[su]?i\d+|bf16|tf32|f\d+\w*|tensor|vector|tuple")
_HASH = re.compile(r"#([A-Za-z_$][\w$.]*+(?:-(?!>)[\w$.]++)*+)")
_SYMBOL = re.compile(rf"@({STRING_TEXT}|[A-Za-z_$][\w$.-]*+)")
_PAIR = re.compile(r'\s*("(?:[^"\\]|\\.)*"):("(?:[^"\\]|\\.)*")')
_PADDING = re.compile(r"(\d++)\s*+:\s*+\+(\d++)")


def _nested_braces(depth: int) -> str:
    inner = STRING_TEXT if not depth else f"(?:{STRING_TEXT}|{_nested_braces(depth - 1)})"
    return rf'\{{[^{{}}"]*+(?:{inner}[^{{}}"]*+)*+\}}'


# Deeper ones are read each time.
_DICTIONARY = re.compile(_nested_braces(4))


class AttributeParser(TypeParser):
    """Reads attributes. Dictionaries that were read before are found by their text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._dictionaries: dict[str, dict[str, Attribute]] = {}

    @abstractmethod
    def attribute_alias(self, name: str, position: int) -> Attribute:
        """What `#name`, read at `position`, stands for."""

    @abstractmethod
    def location_attribute(self) -> Attribute:
        """A location given as an attribute, from `loc(` on."""

    def dictionary(self) -> dict[str, Attribute]:
        """`{name = value, flag}`; the same object for the same text, so not to be changed."""
        self.skip()
        found = _DICTIONARY.match(self.text, self.position)
        if found is None:
            return dict(self._entries())
        known = self._dictionaries.get(found[0])
        if known is None:
            known = self._dictionaries[found[0]] = dict(self._entries())
        self.position = found.end()
        return known

    def attribute(self) -> Attribute:
        """The attribute that comes next. Raises `ParseError` where none does."""
        self.skip()
        match self.text[self.position : self.position + 1]:
            case '"':
                value = self.string()
                if self.take(":"):
                    self.type()
                return value
            case "[":
                return self._array(self.attribute)
            case "{":
                return self.dictionary()
            case "@":
                return self._symbol()
            case "#":
                return self._dialect_attribute()
            case "(" | "!":
                return self.type()
        return self._word_or_number()

    def _word_or_number(self) -> Attribute:
        if (number := self.match(_NUMBER)) is not None:
            return self._number(number)
        found = _WORD.match(self.text, self.position)
        word = found[0] if found else ""
        if word not in ("true", "false", "unit", "dense", "array", "loc"):
            return self.type()
        start = self.position
        self.position += len(word)
        match word:
            case "true" | "false":
                return word == "true"
            case "unit":
                return UNIT
            case "dense":
                return self._dense()
            case "array":
                return self._typed_array()
        self.position = start
        return self.location_attribute()

    def _number(self, number: re.Match[str]) -> Attribute:
        kind: Type = FloatType("f64") if number["float"] else IntegerType(64)
        if self.text.startswith(" : ", self.position):
            self.position += 3
            kind = self.type()
        return self._constant(number, kind)

    def _constant(self, number: re.Match[str], kind: Type) -> Attribute:
        """A number of a type; the bits of a float are hexadecimal."""
        if isinstance(kind, FloatType):
            if number["hex"]:
                try:
                    return float_from_bits(kind.name, int(number["hex"], 16))
                except KeyError:
                    raise self.error(f"unknown float type `{kind}`", number.start()) from None
            return float_from_text(kind.name, number[0])
        if number["float"]:
            raise self.error(f"a number of type `{kind}` cannot have a fraction", number.start())
        return int(number[0], 0)

    def _array(self, element: Any) -> tuple[Attribute, ...]:
        self.expect("[")
        values: list[Attribute] = []
        while not self.take("]"):
            if values:
                self.expect(",")
            values.append(element())
        return tuple(values)

    def _typed_array(self) -> tuple[Attribute, ...]:
        """`array<i32: 1, 2>`, from behind the word."""
        self.expect("<")
        kind = self.type()
        values: list[Attribute] = []
        if self.take(":"):
            values.append(self._element(kind))
            while self.take(","):
                values.append(self._element(kind))
        self.expect(">")
        return tuple(values)

    def _element(self, kind: Type) -> Attribute:
        if (number := self.match(_NUMBER)) is not None:
            return self._constant(number, kind)
        if self.take("true"):
            return True
        if self.take("false"):
            return False
        raise self.error("expected a number or a truth value")

    def _symbol(self) -> Symbol:
        parts: list[str] = []
        while True:
            found = self.match(_SYMBOL)
            if found is None:
                raise self.error("expected a symbol")
            parts.append(_unquoted(found[1]))
            if not self.text.startswith("::@", self.position):
                return Symbol("::".join(parts))
            self.position += 2

    def _entries(self) -> list[tuple[str, Attribute]]:
        self.expect("{")
        entries: list[tuple[str, Attribute]] = []
        while not self.take("}"):
            if entries:
                self.expect(",")
            found = self.match(_KEY)
            if found is None:
                raise self.error("expected the name of an attribute")
            entries.append((_unquoted(found[1]), self.attribute() if self.take("=") else UNIT))
        return entries

    def _dense(self) -> Attribute:
        """`dense<...> : tensor<...>`, from behind the word."""
        start = self.position
        self.expect("<")
        # The type comes behind the elements, and says what they are.
        texts: list[DenseText] = []
        raw = self.string() if self.at('"') else None
        if raw is None and not self.at(">"):
            self._dense_texts(texts)
        self.expect(">")
        self.expect(":")
        kind = self.type()
        try:
            return dense_elements(kind, texts, raw)
        except (KeyError, ValueError) as error:
            raise self.error(f"cannot read these elements of a `{kind}`: {error}", start) from None

    def _dense_texts(self, texts: list[DenseText]) -> None:
        if self.take("["):
            while not self.take("]"):
                self._dense_texts(texts)
                self.take(",")
        elif (number := self.match(_NUMBER)) is not None:
            texts.append(number[0])
        elif self.at("true") or self.at("false"):
            texts.append(self.name())
        else:
            raise self.error("expected an element")

    def _dialect_attribute(self) -> Attribute:
        start = self.position
        found = self.match(_HASH)
        if found is None:
            raise self.error("expected an attribute")
        name = found[1]
        bracket = self.text.startswith("<", self.position)
        if "." not in name:
            # No alias has a bracket behind it: this is `#rocdl<sched_group_mask none>`, which a dialect prints itself.
            return DialectAttr(name, (("text", self.balanced()),)) if bracket else self.attribute_alias(name, start)
        if not bracket:
            return DialectAttr(name)
        body = self.position
        try:
            return DialectAttr(name, tuple(self._parameters()))
        except UndefinedError:
            raise
        except ParseError:
            # A form of its own: what it means is for those who know the attribute.
            self.position = body
            return DialectAttr(name, (("text", self.balanced()),))

    def _parameters(self) -> list[tuple[str, Attribute]]:
        """`<{a = 1}>`, `<a = 1, b = 2>`, `<none>`, `<[64:+4] {order = [0]}>`: with names or positions."""
        self.expect("<")
        parameters: list[tuple[str, Attribute]] = []
        while not self.take(">"):
            if parameters:
                self.take(",")
            if self.take("{"):
                while not self.take("}"):
                    self.take(",")
                    parameters.append(self._named())
            elif _NAMED.match(self.text, self.position):
                parameters.append(self._named())
            else:
                parameters.append((str(len(parameters)), self._parameter()))
        return parameters

    def _named(self) -> tuple[str, Attribute]:
        name = self.name()
        self.expect("=")
        return name, self._parameter()

    def _parameter(self) -> Attribute:
        """A parameter's value: an attribute, a bare word as a string, `64:+4` as (64, 4), or `"a":"b"` as a pair."""
        if self.at("["):
            return self._array(self._parameter)
        if self.at("{"):
            return tuple(self._entries())
        if (padding := self.match(_PADDING)) is not None:
            return int(padding[1]), int(padding[2])
        if (pair := _PAIR.match(self.text, self.position)) is not None:
            self.position = pair.end()
            return unescape(pair[1]), unescape(pair[2])
        bare = _BARE.match(self.text, self.position)
        if bare is not None and not _KNOWN_WORD.fullmatch(bare[0]):
            self.position = bare.end()
            return bare[0]
        return self.attribute()


def _unquoted(name: str) -> str:
    return name if not name.startswith('"') else unescape(name)
