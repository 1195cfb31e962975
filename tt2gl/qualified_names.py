"""What the names of a parsed file mean: `tl.load` is `triton.language.load` where `tl` was imported as that.

LibCST answers the same from its scopes, but its visitors build every node anew, and its scopes note every access:
a second for a file of some thousand lines. Here nodes are only read, once for each file.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

# Parts of nodes that are spaces, brackets and punctuation.
_PUNCTUATION = frozenset({
    "asynchronous", "colon", "comma", "default_indent", "default_newline", "dot", "encoding", "equal", "footer",
    "has_trailing_newline", "header", "indent", "lbrace", "lbracket", "leading_lines", "lines_after_decorators",
    "lpar", "operator", "rbrace", "rbracket", "rpar", "second_colon", "semicolon", "trailing_whitespace",
})  # fmt: skip
# Those that are written before the fields that dataclasses have first.
_FIRST = {
    "Arg": ("keyword",),
    "ClassDef": ("decorators", "name"),
    "FunctionDef": ("decorators", "name", "params", "returns"),
    "IfExp": ("body",),
}
_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
# What is read in a way of its own: LibCST's classes take their time to say that a node is none of theirs.
_SPECIAL = (
    *_COMPREHENSIONS, cst.AnnAssign, cst.Arg, cst.AsName, cst.Assign, cst.Attribute, cst.AugAssign, cst.ClassDef,
    cst.CompFor, cst.For, cst.FunctionDef, cst.Global, cst.Import, cst.ImportFrom, cst.Lambda, cst.MatchAs,
    cst.MatchMapping, cst.MatchStar, cst.Name, cst.NamedExpr, cst.Nonlocal,
)  # fmt: skip


@functools.cache
def _is_special(kind: type[cst.CSTNode]) -> bool:
    """Whether nodes of a kind bind names, are names, or have those that are none."""
    return issubclass(kind, _SPECIAL)


@functools.cache
def fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """What nodes of a kind hold but spaces and punctuation, in the order of the text."""
    names = [each.name for each in dataclasses.fields(kind)]
    names = [name for name in names if name not in _PUNCTUATION and not name.startswith("whitespace")]
    first = _FIRST.get(kind.__name__, ())
    return (*first, *(name for name in names if name not in first))


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes right below one, without spaces and punctuation, in the order of the text."""
    for name in fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, (list, tuple)):
            yield from (each for each in value if each.__class__ is not str)
        elif hasattr(value, "_visit_and_replace_children"):
            yield value


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it, as `children` has them, those around others first."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed([*children(node)]))


@dataclass
class _Scope:
    """The names that a function, class, comprehension or the module binds, each with what it can mean."""

    prefix: str
    around: _Scope | None
    is_class: bool = False
    bound: dict[str, set[str]] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)

    def bind(self, name: str, meaning: str = "") -> None:
        """Bind a name; without a meaning it is one of this scope's own."""
        home = self
        while name in home.elsewhere and home.around is not None:
            home = home.around
        home.bound.setdefault(name, set()).add(meaning or f"{home.prefix}{name}")

    def meanings(self, name: str) -> set[str]:
        """What a name read in this scope can mean."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.bound and not (scope.is_class and scope is not self):
                return scope.bound[name]
            scope = scope.around
        return {f"builtins.{name}"} if hasattr(builtins, name) else set()


class QualifiedNames:
    """The qualified names of one module's expressions."""

    def __init__(self, module: cst.Module) -> None:
        self._scopes: dict[int, _Scope] = {}
        # Nodes are known by their identity, so they must not go.
        self._nodes: list[cst.Name | cst.Attribute] = []
        self._imported: set[str] = set()
        self._read(module, _Scope("", None))

    def of(self, node: cst.CSTNode) -> set[str]:
        """What a name, or a name with attributes, can mean by its bindings: of several, all; nothing if it has none.

        What is called or indexed on the way counts as itself: `tl.load(x).to` is `triton.language.load.to`.
        """
        scope: _Scope | None = None
        rest: list[str] = []
        while not isinstance(node, cst.Name):
            if isinstance(node, cst.Attribute):
                scope = scope or self._scopes.get(id(node))
                rest.append(node.attr.value)
                node = node.value
            elif isinstance(node, (cst.Call, cst.Subscript)):
                node = node.func if isinstance(node, cst.Call) else node.value
            else:
                return set()
        scope = scope or self._scopes.get(id(node))
        meanings = scope.meanings(node.value) if scope is not None else set()
        if rest:
            # What the file puts in the place of a module that is missing (`tl = None`) has no attributes to speak of.
            meanings = meanings & self._imported or meanings
        return {".".join([meaning, *reversed(rest)]) for meaning in meanings}

    @functools.cached_property
    def every(self) -> frozenset[str]:
        """All that the file imports, and all that its expressions mean."""
        return frozenset(self._imported).union(*(self.of(node) for node in self._nodes))

    # -------------------------------------------------------------------------------------------------- reading

    def _read(self, node: cst.CSTNode, scope: _Scope) -> None:
        """Note the bindings and the names below a node."""
        if not _is_special(type(node)):
            self._all(list(children(node)), scope)
            return
        match node:
            case cst.Name() | cst.Attribute():
                self._scopes[id(node)] = scope
                self._nodes.append(node)
                if isinstance(node, cst.Attribute):
                    self._read(node.value, scope)
                return
            case cst.Import() | cst.ImportFrom():
                self._import(node, scope)
                return
            case cst.FunctionDef() | cst.Lambda():
                self._function(node, scope)
                return
            case cst.ClassDef():
                scope.bind(node.name.value)
                self._all([*node.decorators, *node.bases, *node.keywords], scope)
                self._read(node.body, _Scope(f"{scope.prefix}{node.name.value}.", scope, is_class=True))
                return
            case cst.ListComp() | cst.SetComp() | cst.DictComp() | cst.GeneratorExp():
                scope = _Scope(f"{scope.prefix}<comprehension>.", scope)
                # What the loops bind is read before them in the text.
                self._read(node.for_in, scope)
            case cst.Global() | cst.Nonlocal():
                scope.elsewhere |= {item.name.value for item in node.names}
                return
            case cst.Arg():
                # A keyword is the callee's name.
                self._read(node.value, scope)
                return
            case cst.Assign():
                # Its value says what the names then mean, so it is read before them.
                self._read(node.value, scope)
                for target in node.targets:
                    self._assign(target.target, node.value, scope)
                return
            case cst.AugAssign() | cst.AnnAssign() | cst.For() | cst.CompFor() | cst.NamedExpr():
                self._bind(node.target, scope)
            case cst.AsName():
                self._bind(node.name, scope)
            case cst.MatchAs() | cst.MatchStar() if node.name is not None:
                scope.bind(node.name.value)
            case cst.MatchMapping() if node.rest is not None:
                scope.bind(node.rest.value)
        skipped = node.for_in if isinstance(node, _COMPREHENSIONS) else None
        self._all([child for child in children(node) if child is not skipped], scope)

    def _all(self, nodes: Sequence[cst.CSTNode], scope: _Scope) -> None:
        for node in nodes:
            self._read(node, scope)

    def _function(self, node: cst.FunctionDef | cst.Lambda, scope: _Scope) -> None:
        name = f"{node.name.value}." if isinstance(node, cst.FunctionDef) else ""
        inner = _Scope(f"{scope.prefix}{name}<locals>.", scope)
        if isinstance(node, cst.FunctionDef):
            scope.bind(node.name.value)
            self._all(node.decorators, scope)
            self._all([node.returns] if node.returns is not None else [], scope)
        params = node.params
        stars = [each for each in (params.star_arg, params.star_kwarg) if isinstance(each, cst.Param)]
        for param in [*params.posonly_params, *params.params, *params.kwonly_params, *stars]:
            inner.bind(param.name.value)
            self._all([each for each in (param.annotation, param.default) if each is not None], scope)
        self._read(node.body, inner)

    def _assign(self, target: cst.CSTNode, value: cst.BaseExpression, scope: _Scope) -> None:
        """Bind what is assigned to: a name for one of Triton's modules (`tl = triton.language`) means that module.

        So does one that a call gives for the module's name (`_, tl = safe_import("triton.language")`).
        """
        modules = self.of(value) & MODULES if isinstance(value, (cst.Name, cst.Attribute)) else _asked_for(value)
        if modules and isinstance(target, cst.Name):
            self._name(target.value, modules, scope)
        else:
            self._bind(target, scope)
        for element in target.elements if isinstance(target, cst.Tuple) else ():
            name = element.value.value if isinstance(element.value, cst.Name) else ""
            if known := modules & {REEXPORTED.get(name, "")}:
                self._name(name, known, scope)
        self._read(target, scope)

    def _name(self, name: str, modules: set[str], scope: _Scope) -> None:
        self._imported |= modules
        for meaning in modules:
            scope.bind(name, meaning)

    def _bind(self, target: cst.CSTNode, scope: _Scope) -> None:
        """Bind the names of what is assigned to; an attribute's or an element's are only read."""
        match target:
            case cst.Name():
                scope.bind(target.value)
            case cst.Tuple() | cst.List():
                for element in target.elements:
                    self._bind(element.value, scope)

    def _import(self, node: cst.Import | cst.ImportFrom, scope: _Scope) -> None:
        if isinstance(node.names, cst.ImportStar):
            return
        base = ""
        if isinstance(node, cst.ImportFrom):
            base = "." * len(node.relative) + (_dotted(node.module) if node.module is not None else "")
            base += "." if base.strip(".") else ""
        for alias in node.names:
            meaning = base + _dotted(alias.name)
            if base:
                meaning = REEXPORTED.get(meaning.removeprefix(base), meaning)
            self._imported.add(meaning)
            if alias.asname is not None:
                scope.bind(alias.evaluated_alias or "", meaning)
            elif isinstance(node, cst.ImportFrom):
                scope.bind(alias.evaluated_name, meaning)
            else:
                top = meaning.partition(".")[0]
                scope.bind(top, top)


def _asked_for(value: cst.BaseExpression) -> set[str]:
    """The module of Triton's that a call gets the name of."""
    given = [arg.value for arg in value.args] if isinstance(value, cst.Call) else []
    return {each.raw_value for each in given if isinstance(each, cst.SimpleString)} & MODULES


REEXPORTED = {"triton": "triton", "tl": "triton.language"}
"""Packages import Triton in one place, and from there (`from vllm.triton_utils import tl, triton`)."""

MODULES = frozenset(REEXPORTED.values())
"""What a name that is assigned one of them means: the modules that hold what kernels are written with."""


def _dotted(node: cst.BaseExpression) -> str:
    return (
        f"{_dotted(node.value)}.{node.attr.value}"
        if isinstance(node, cst.Attribute)
        else cst.ensure_type(node, cst.Name).value
    )
