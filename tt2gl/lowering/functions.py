"""The functions of a file that have block pointers, and those that are given one: lowered together, callers first.

    acc = inner(acc, K_block_ptr, BLOCK_N)

    def inner(acc, K_block_ptr, BLOCK_N: tl.constexpr):

becomes

    acc = inner(acc, K_block_ptr, 0, stride_kn, N_CTX, BLOCK_N)

    def inner(acc, K_block_ptr, K_col, K_col_stride, K_col_bound, BLOCK_N: tl.constexpr):

A part that is one integer at every call is written into the function, and one that a parameter has anyway is that
parameter. Functions linked by such calls are lowered all or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.edits import Edit, apply
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Emission, Given, Part, Spans
from tt2gl.lowering.expressions import Expression, expression
from tt2gl.lowering.flow import Reaching, reaching
from tt2gl.lowering.naming import Names, block_size
from tt2gl.lowering.outline import Define, Node, Pass, assigned, outline, steps
from tt2gl.lowering.pointer_calls import Access, Dimension, Make, Refused, is_make
from tt2gl.lowering.shapes import shapes
from tt2gl.lowering.signs import Signs
from tt2gl.source import SourceFile
from tt2gl.syntax import is_text
from tt2gl.visitors import Reader, within

_PARTS: tuple[Part, ...] = ("offset", "stride", "bound", "block")


@dataclass
class _Function:
    """One function. `given`: the parameters that are block pointers; `passes`: the calls that give one away."""

    function: JitFunction
    names: Names
    given: dict[str, Make] = field(default_factory=dict)
    positive: set[str] = field(default_factory=set)
    nodes: Sequence[Node] = ()
    reach: Reaching = field(default_factory=dict)
    edits: list[Edit] = field(default_factory=list)

    @property
    def passes(self) -> list[Pass]:
        return [event for event in self.reach if isinstance(event, Pass)]

    @property
    def nones(self) -> list[Pass]:
        """The calls that give None."""
        events = [event for step in steps(self.nodes) for event in step.events]
        return [event for event in events if isinstance(event, Pass) and not event.name]


class Functions:
    """The Triton functions of a file. `refused`: why functions stay as they are, by name.

    `at_use`: addresses are made where they are used.
    """

    def __init__(self, source: SourceFile, text: str, spans: Spans, *, at_use: bool = False) -> None:
        self.at_use = at_use
        self.module = source.module
        self.spans = spans
        self.meanings = source.names
        triton = [function for function in source.functions if function.dialect == "triton"]
        self.functions = {function.name: _Function(function, Names.of(text)) for function in triton}
        self.refused: dict[str, Refused] = {}
        self._sites: dict[tuple[str, str], list[Given]] = {}

    def edits(self) -> dict[str, list[Edit]]:
        """The edits of every function that has some."""
        self._find_given()
        for function in self._callers_first():
            name = function.function.name
            if name in self.refused:
                continue
            try:
                self._lower(function)
            except Refused as refused:
                self.refused[name] = refused
                self._spread()
        return {name: one.edits for name, one in self.functions.items() if one.edits and name not in self.refused}

    def before_and_after(self, name: str, edits: Sequence[Edit]) -> tuple[str, str]:
        """A function's text as it becomes with its edits, and as it was."""
        start, end = self.spans.of(self.functions[name].function.node)
        before = self.spans.raw[start:end].decode()
        return apply(before, [Edit(edit.start - start, edit.end - start, edit.text) for edit in edits])[0], before

    # ----------------------------------------------------------------------------------------- who is given pointers

    def _find_given(self) -> None:
        """Read all functions that have block pointers, and those that they call with one, until there are no more."""
        pending = [name for name, one in self.functions.items() if self._makes(one.function)]
        while pending:
            name = pending.pop()
            one = self.functions[name]
            try:
                self._read(one)
            except Refused as refused:
                self.refused[name] = refused
                continue
            for event in one.passes:
                callee = self.functions[event.function.name]
                if event.parameter not in callee.given:
                    callee.given[event.parameter] = Make(self._parameter(event), "tl", _NOTHING, ())
                    pending.append(event.function.name)
        references = _References()
        self.module.visit(references)
        for name, one in self.functions.items():
            for parameter in one.given:
                calls = [
                    event
                    for caller, other in self.functions.items()
                    if caller not in self.refused
                    for event in (*other.passes, *other.nones)
                    if (event.function.name, event.parameter) == (name, parameter)
                ]
                # One reference is the definition's own.
                if len(calls) != references.names[name] - 1:
                    reason = f"not every use of `{name}` is a call that gives it a block pointer as `{parameter}`"
                    self.refused.setdefault(name, Refused(one.function.node.name, reason))
        self._spread()

    def _makes(self, function: JitFunction) -> bool:
        start, end = self.spans.of(function.node)
        return b"make_block_ptr" in self.spans.raw[start:end]

    def _read(self, one: _Function) -> None:
        helpers = {name: other.function for name, other in self.functions.items()}
        one.nodes = outline(one.function.node, self.module, self._is_make, helpers, one.given)
        one.reach = reaching(one.nodes, (parameter.name for parameter in one.function.parameters), one.given)

    def _is_make(self, node: cst.Call) -> bool:
        return is_make(self.meanings.of(node.func))

    def _parameter(self, event: Pass) -> cst.Param:
        params = event.function.node.params
        return next(param for param in (*params.posonly_params, *params.params) if param.name.value == event.parameter)

    def linked(self, names: Iterable[str]) -> set[str]:
        """The functions named, and all that calls with block pointers link to them."""
        links = [{name, event.function.name} for name, one in self.functions.items() for event in one.passes]
        found = set(names)
        while more := {name for link in links if link & found for name in link} - found:
            found |= more
        return found

    def _spread(self) -> None:
        """Who calls what stays, or is called by it, stays too."""
        for name, refused in list(self.refused.items()):
            for other in sorted(self.linked([name])):
                self.refused.setdefault(other, refused)

    def _callers_first(self) -> Iterator[_Function]:
        """Every function after all that give it block pointers; of those that call each other none."""
        left = dict(self.functions)
        while left:
            called = {event.function.name for one in left.values() for event in one.passes}
            ready = [name for name in left if name not in called]
            if not ready:
                for name, one in left.items():
                    if name in called:
                        self.refused.setdefault(name, Refused(one.function.node.name, "its functions call each other"))
                self._spread()
                return
            for name in ready:
                yield left.pop(name)

    # ------------------------------------------------------------------------------------------------- one by one

    def _lower(self, one: _Function) -> None:
        for parameter in one.given:
            one.given[parameter] = self._given(one, parameter)
        if not self._makes(one.function) and not one.given:
            return
        self._read(one)
        for none in one.nones:
            if none.parameter in self.functions[none.function.name].given:
                site = Given(none, "", 0, {}, (), optional=True)
                self._sites.setdefault((none.function.name, none.parameter), []).append(site)
        makes = [*one.given.values()]
        for step in steps(one.nodes):
            for event in step.events:
                if isinstance(event, Define):
                    makes.append(event.make)
                elif isinstance(event, Access) and isinstance(event.pointer, Make):
                    makes.append(event.pointer)
        if not makes:
            return
        sizes = {part.block.text for make in makes for part in make.dimensions if part.block.text.isidentifier()}
        emission = Emission(
            self.spans,
            one.reach,
            shapes(one.nodes, one.reach, one.given, at_use=self.at_use),
            Signs(one.function.node, sizes | one.positive),
            one.names,
            self.module.default_newline,
            self.at_use,
            summed=not self.at_use and not _multiplies(one.function.node),
        )
        emission.run(one.nodes, one.given, self._first(one))
        one.edits += emission.edits
        for given in emission.given:
            self._sites.setdefault((given.event.function.name, given.event.parameter), []).append(given)

    def _first(self, one: _Function) -> cst.CSTNode:
        """The first statement after the docstring."""
        body = one.function.node.body
        if one.given and not isinstance(body, cst.IndentedBlock):
            raise Refused(one.function.node.name, "its body is on the line of its header")
        return next((each for each in body.body if not is_text(each)), body.body[-1])

    def _given(self, one: _Function, parameter: str) -> Make:
        """A parameter as the block pointer that it is given: parts as literals, as other parameters, or as new ones."""
        every = self._sites[one.function.name, parameter]
        sites = [site for site in every if site.parts]
        param = self._parameter(sites[0].event)
        rank = sites[0].rank
        if any(site.rank != rank for site in sites):
            raise Refused(param, "its calls differ in the rank of a block pointer")
        new: dict[tuple[str, ...], str] = {}
        texts: dict[tuple[Part, int], str] = {}
        for dimension in range(rank):
            for part in _PARTS:
                at_sites = tuple(site.parts[part, dimension] for site in sites)
                text = _literal(at_sites) or self._same_argument(one, sites, at_sites) or new.get(at_sites)
                if text is None:
                    text = new[at_sites] = self._name(one, parameter, part, dimension, rank)
                texts[part, dimension] = text
                if part == "offset" and all(site.signs[dimension] for site in sites):
                    one.positive.add(text)
        blocks = {text for (part, _), text in texts.items() if part == "block"}
        language = sites[0].language
        said = "".join(f", {name}{f': {language}.constexpr' if name in blocks else ''}" for name in new.values())
        place = self.spans.of(param)[1]
        one.edits.append(Edit(place, place, said))
        for site in every:
            self._give(site, [(name, key[sites.index(site)] if site.parts else "None") for key, name in new.items()])
        parsed = {key: self._expression(text) for key, text in texts.items()}
        dimensions = tuple(
            Dimension(parsed["bound", d], parsed["stride", d], parsed["offset", d], parsed["block", d])
            for d in range(rank)
        )
        optional = any(site.optional for site in every)
        return Make(param, language, self._expression(parameter), dimensions, optional)

    def _give(self, site: Given, parts: Sequence[tuple[str, str]]) -> None:
        """Add the parts to a call, behind the pointer."""
        place = self.spans.argument(site.event.argument)[1]
        named = site.event.argument.keyword is not None
        said = "".join(f", {name}={text}" if named else f", {text}" for name, text in parts)
        caller = next(one for one in self.functions.values() if site.event in (*one.reach, *one.nones))
        caller.edits.append(Edit(place, place, said))

    def _same_argument(self, one: _Function, sites: Sequence[Given], texts: Sequence[str]) -> str | None:
        """A parameter that has these texts at all calls, and that the function never changes."""
        changed = assigned(one.nodes)
        for parameter in one.function.parameters:
            arguments = [self._argument(site.event, parameter.name) for site in sites]
            if parameter.name not in changed and arguments == list(texts):
                return parameter.name
        return None

    def _argument(self, event: Pass, parameter: str) -> str | None:
        for index, arg in enumerate(event.node.args):
            name = arg.keyword.value if arg.keyword is not None else None
            if name is None and not arg.star and index < len(event.function.parameters):
                name = event.function.parameters[index].name
            if name == parameter:
                return expression(arg.value, self.module).text
        return None

    def _name(self, one: _Function, parameter: str, part: Part, dimension: int, rank: int) -> str:
        if part != "block":
            return one.names.beside(parameter, part, dimension, rank)
        return one.names.fresh(block_size(parameter, dimension, rank))

    def _expression(self, text: str) -> Expression:
        return expression(cst.parse_expression(text), self.module)


_NOTHING = Expression(cst.Name("None"), "None", frozenset(), pure=True)


def _multiplies(function: cst.FunctionDef) -> bool:
    """Whether a function calls a matrix product by name: loops with those are scheduled as a whole."""
    called = (call.func.attr.value for call in within(function, cst.Call) if isinstance(call.func, cst.Attribute))
    return any(name.startswith("dot") for name in called)


def _literal(texts: Sequence[str]) -> str | None:
    return texts[0] if len(set(texts)) == 1 and texts[0].lstrip("-").isdigit() else None


class _References(Reader):
    """How often each name stands in a file."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()

    def visit_Name(self, node: cst.Name) -> None:
        self.names[node.value] += 1
