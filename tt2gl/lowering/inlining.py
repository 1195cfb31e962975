"""Helpers whose loads are to run ahead, written out at their calls, Triton to Triton: a loop takes its loads apart only
where it has them in its own text.

    @triton.jit
    def row_block(ptr, rows, stride, n, D: tl.constexpr):
        offs_d = tl.arange(0, D)
        return tl.load(ptr + rows[:, None] * stride + offs_d[None, :], mask=rows[:, None] < n, other=0.0)

    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        k = row_block(K + base, rows, stride, n, D)

becomes

    offs_d = tl.arange(0, D)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        # row_block, written out: its loads run ahead of this loop
        k = tl.load(K + base + rows[:, None] * stride + offs_d[None, :], mask=rows[:, None] < n, other=0.0)

So are those whose products take tiles of the loop: as arguments these would come in registers. Triton does the same to
every call, before its pipeliner. Which calls gain is decided by who asks; one whose helper
cannot stand at its call (returns early, say) stays a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.edits import Edit, apply
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.helper_bodies import assigned_names, read_names
from tt2gl.lowering.helper_calls import Caller, Inlined, Site, inline
from tt2gl.lowering.steps import Lowered, Step
from tt2gl.qualified_names import children, walk
from tt2gl.source import SourceFile
from tt2gl.visitors import Reader

# What a call may be part of in a statement: all of it is evaluated once, whatever else is.
_AROUND = (
    cst.Arg,
    cst.Attribute,
    cst.BinaryOperation,
    cst.Call,
    cst.Element,
    cst.Index,
    cst.Subscript,
    cst.SubscriptElement,
    cst.Tuple,
    cst.UnaryOperation,
)


_AHEAD = "its loads run ahead of this loop"
_TORN = "its calls want different layouts"
_REMADE = "what it is given is made for each of its accesses"
_PRODUCTS = "its products take tiles of this loop"


def inlined(
    source: SourceFile,
    ahead: Collection[tuple[int, int]],
    torn: Collection[tuple[int, int]] = (),
    reached: Collection[int] = (),
    products: Collection[tuple[int, int]] = (),
    remade: Collection[tuple[int, int]] = (),
) -> Lowered:
    """Write out the helpers called at these places (line, and column in bytes), where they can be.

    `ahead`: for loads that run ahead of their loop; `torn`: for layouts that one text of the helper cannot say;
    `products`: for those that read what is loaded ahead; `remade`: for arguments that are wanted in several layouts.
    `reached`: the lines of the definitions that are called, which tell those of one name apart.
    """
    places = {**dict.fromkeys(remade, _REMADE), **dict.fromkeys(torn, _TORN)}
    places |= {**dict.fromkeys(products, _PRODUCTS), **dict.fromkeys(ahead, _AHEAD)}
    step = Step(source)
    file = File(source, step.spans, reached)
    edits = {name: list(file.edits(function, places)) for name, function in file.functions.items()}
    edits = {name: own for name, own in edits.items() if own}
    return step.done([edit for own in edits.values() for edit in own], edits, originals=file.originals(edits))


@dataclass
class File:
    """A file and the functions in it that may call each other."""

    source: SourceFile
    spans: Spans
    reached_lines: Collection[int]
    functions: dict[str, JitFunction] = field(init=False)
    _around: dict[JitFunction, Mapping[cst.CSTNode, cst.CSTNode]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        triton = [function for function in self.source.functions if function.dialect == "triton"]
        names = Counter(function.name for function in self.source.functions)
        # Of several under one name, by branches of the file, the one that launches reach.
        reached = Counter(function.name for function in self.source.functions if function.line in self.reached_lines)
        self.functions = {
            one.name: one
            for one in triton
            if not one.nested and (names[one.name] == 1 or (reached[one.name] == 1 and one.line in self.reached_lines))
        }

    def reached(self, name: str) -> set[str]:
        """A function and all of the file that it calls, through others too."""
        found, pending = {name}, [name]
        while pending:
            more = (self.functions[pending.pop()].names_read & self.functions.keys()) - found
            found |= more
            pending += more
        return found

    def originals(self, edits: Mapping[str, Collection[Edit]]) -> dict[str, tuple[tuple[str, str], ...]]:
        """For each function, those that it reaches and that are edited, each as it becomes and as it was."""
        pairs = {name: self._before_and_after(name, own) for name, own in edits.items()}
        changed = {name: sorted(self.reached(name) & pairs.keys()) for name in self.functions}
        return {name: tuple(pairs[other] for other in others) for name, others in changed.items() if others}

    def _before_and_after(self, name: str, edits: Collection[Edit]) -> tuple[str, str]:
        """A function's text as it becomes with its edits, and as it was."""
        start, end = self.spans.of(self.functions[name].node)
        before = self.spans.raw[start:end].decode()
        return apply(before, [Edit(edit.start - start, edit.end - start, edit.text) for edit in edits])[0], before

    def edits(self, function: JitFunction, places: Mapping[tuple[int, int], str]) -> Iterator[Edit]:
        """The edits of one function."""
        calls = [call for call in self.calls(function) if self._place(call) in places]
        if not calls:
            return
        own = frozenset(parameter.name for parameter in function.parameters)
        names = own | read_names([function.node.body]).keys()
        caller = Caller(function, self.source.module, names, assigned_names([function.node.body]), self.functions)
        sites = [(call, self.helper(call), self._site(function, call)) for call in calls]
        often = Counter((helper.name, site.scope) for _, helper, site in sites if site is not None)
        told: set[str] = set()
        for call, helper, site in sites:
            inner = _Calls(self.functions.keys())
            for arg in call.args:
                arg.visit(inner)
            # Calls in arguments first: those are gone when they are asked again for what is left.
            if site is None or helper.name in self.reached_from(helper) or any(other in inner.calls for other in calls):
                continue
            done = inline(caller, helper, site, repeated=often[helper.name, site.scope] > 1)
            if done is not None:
                yield from self._written(done, site, told, f"# {helper.name}, written out: {places[self._place(call)]}")

    def helper(self, call: cst.Call) -> JitFunction:
        """The function that a call is of."""
        assert isinstance(call.func, cst.Name)
        return self.functions[call.func.value]

    def reached_from(self, helper: JitFunction) -> set[str]:
        """All that a helper calls."""
        return {name for callee in helper.names_read & self.functions.keys() for name in self.reached(callee)}

    def _written(self, done: Inlined, site: Site, told: set[str], why: str) -> Iterator[Edit]:
        start, end = self.spans.of(site.statement)
        indent, _ = self.spans.line(start)
        if done.outside:
            place = self.spans.of(site.outermost)[0]
            yield Edit(place, place, self._indented("\n".join([*done.outside, ""]), self.spans.line(place)[0]))
        lines = list(done.lines)
        if why not in told:
            lines.insert(0, why)
            told.add(why)
        if done.whole:
            lines += [done.result] if done.result is not None else []
            yield Edit(start, end, self._indented("\n".join(lines), indent))
            return
        assert done.result is not None
        yield Edit(start, start, self._indented("\n".join([*lines, ""]), indent))
        yield Edit(*self.spans.whole(site.call), self._indented(done.result, indent))

    def _indented(self, text: str, indent: str) -> str:
        """Lines for a place that has its indentation already."""
        first, *rest = text.split("\n")
        newline = self.source.module.default_newline
        # The last line may be empty, and what follows the text is on it.
        ends = [False] * (len(rest) - 1) + [True]
        return first + "".join(
            f"{newline}{indent if line or end else ''}{line}" for line, end in zip(rest, ends, strict=False)
        )

    def calls(self, function: JitFunction) -> list[cst.Call]:
        """A function's calls of the file's functions."""
        found = _Calls(self.functions.keys())
        function.node.body.visit(found)
        return found.calls

    def _place(self, call: cst.Call) -> tuple[int, int]:
        start = self.spans.of(call)[0]
        line = self.spans.raw.rfind(b"\n", 0, start) + 1
        return self.spans.raw.count(b"\n", 0, start) + 1, start - line

    def _parents(self, function: JitFunction) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """What is right around each node of a function; LibCST says it of all nodes of a file, and takes its time."""
        if function not in self._around:
            self._around[function] = {child: node for node in walk(function.node) for child in children(node)}
        return self._around[function]

    def _site(self, function: JitFunction, call: cst.Call) -> Site | None:
        """Where a call stands; None where it may be evaluated never or often."""
        parents = self._parents(function)
        node = parents[call]
        while isinstance(node, _AROUND):
            node = parents[node]
        line = parents[node]
        if not isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr, cst.Return)):
            return None
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return None
        outermost: cst.CSTNode = line
        while isinstance(loop := parents[parents[outermost]], (cst.For, cst.While)) and parents[outermost] is loop.body:
            outermost = loop
        assert isinstance(outermost, cst.BaseStatement)
        start = self.spans.of(call)[0]
        statements = [each for each in function.node.body.body if isinstance(each, cst.BaseStatement)]
        before = [each for each in statements if self.spans.of(each)[1] < start]
        around = next(each for each in statements if self.spans.of(each)[1] > start)
        scope = id(around) if isinstance(around, (cst.For, cst.While)) else 0
        return Site(call, node, outermost, id(parents[outermost]), scope, before)


class _Calls(Reader):
    """The calls of functions by their names, those in arguments before those that take them."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self.calls: list[cst.Call] = []

    def leave_Call(self, original_node: cst.Call) -> None:
        if isinstance(original_node.func, cst.Name) and original_node.func.value in self.names:
            self.calls.append(original_node)
