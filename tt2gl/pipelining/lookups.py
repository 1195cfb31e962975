"""Loads that say where tiles are, of page tables and the like: done one iteration before the copies that need them.

    page = gl.load(page_ptr + ahead, mask=more)                                    # else
    copy(x_buf.index(slot), x_ptr + page * 64, mask=more)

    copy(x_buf.index(slot), x_ptr + page_next * 64, mask=more)                     # done one iteration before
    after = p + 3
    page_next = gl.load(page_ptr + after, mask=more_after)

The copies would wait for the first of these loads in every iteration. Where Triton has threads copy what is looked up
to shared memory, too, it takes no registers, and is read from its slot when the copies are to start:

    page = page_buf.index(0).load(page_layout).item()
    copy(x_buf.index(slot), x_ptr + page * 64, mask=more)
    async_copy.commit_group()
    after = p + 2
    copy(page_buf.index(0), page_ptr + after + gl.arange(0, 1, layout=page_layout), mask=more_after)
    async_copy.commit_group()

What the copies need of what was loaded for a lookup, such as the number of a block, is not loaded for them again:

    block = block_next
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.pipelining.flow import NONE, Names, writes
from tt2gl.pipelining.guards import Guarded, Loads
from tt2gl.pipelining.loads import LOADS, Load, as_load, is_marker
from tt2gl.pipelining.scalars import layout_of, pointers_of, value_of
from tt2gl.pipelining.slices import Slice, statements_for
from tt2gl.pipelining.static import called
from tt2gl.pipelining.texts import call, guarded
from tt2gl.pipelining.trees import (
    Replaced,
    Uncommented,
    alone,
    bare,
    calls_in,
    code,
    comments,
    edited,
    lines_of,
    parsed,
    statement,
    under,
)
from tt2gl.pipelining.walking import Lines
from tt2gl.plan import Ring
from tt2gl.syntax import is_name
from tt2gl.trees import blocks, nodes_in
from tt2gl.visitors import Editor
from tt2gl.words import RING_MARK


@dataclass(frozen=True)
class Iteration:
    """One that tiles are looked up for: what the loop's variable is called in it, and whether there is one.

    `comments`: whether the author's comments go there, but for those of statements that are `kept` in the loop.
    """

    variables: Mapping[str, str]
    exists: str
    kept: frozenset[ast.stmt]
    comments: bool


@dataclass(frozen=True)
class LookedUp:
    """A slot of shared memory that says where tiles are, and its `buffer`; `layout`: the name of a scalar's layout."""

    ring: Ring
    buffer: str
    layout: str = ""

    @property
    def read(self) -> str:
        """What stands for a load of it: the slot, or what a scalar in it is."""
        slot = f"{self.buffer}.index(0)"
        return value_of(slot, self.layout) if self.layout else slot

    def made(self) -> Lines:
        """What makes it."""
        shape = ", ".join(["1", *self.ring.dims])
        made = [
            statement(f"{self.buffer} = gl.allocate_shared_memory({self.ring.dtype}, [{shape}], {self.ring.layout})")
        ]
        if self.layout:
            made.insert(0, layout_of(self.layout))
        return [*made]

    def copy(self, call_of: str, load: Load, exists: str, indent: int) -> cst.BaseStatement:
        """What starts its copy."""
        pointers = pointers_of(load.pointers, self.layout) if self.layout else load.pointers
        options = [f"{option}={value}" for option, value in load.options]
        mask = f"mask={guarded(load.mask, exists)}"
        return parsed(call(call_of, [f"{self.buffer}.index(0)", pointers, mask, *options], indent))


@dataclass(frozen=True)
class Lookups:
    """The lookups of a loop.

    `values`: statements with lookups, and the names that carry what comes to registers, none of what is copied to
    slots. `given`: names that are such values
    as they are, by which the copies have them. `found`: statements that lookups need; `used`: those of the copies.
    `renamed`: names of the lookups. `carried`: of those, what the lookups take from one iteration to the next, with
    the names that the copies have for it. `variable`: the loop's variable in the iteration that is looked up; `more`:
    whether there is one. `again`: statements that load what both need, with the names that have it from the lookups.
    `slots`: where it is copied to, by the names of rings; without any, all comes to registers.
    """

    values: Mapping[ast.stmt, Sequence[str]]
    given: Mapping[str, str]
    found: frozenset[ast.stmt]
    used: frozenset[ast.stmt]
    renamed: Mapping[str, str]
    carried: Mapping[str, str]
    variable: str
    more: str
    again: Mapping[ast.stmt, str]
    slots: Mapping[str, LookedUp] = field(default_factory=dict)

    def lines(
        self, statements: Sequence[ast.stmt], block: cst.BaseSuite, here: Iteration, copy: str, indent: int
    ) -> Lines:
        """What is looked up for an iteration that may not be there."""
        renamed = Guarded(here.exists, {**self.renamed, **here.variables})
        made: Lines = []
        told: set[str] = set()
        for line, members, _ in lines_of(statements, block):
            own: Lines = []
            for each, small in members:
                assert isinstance(line, cst.SimpleStatementLine)
                if each in self.found:
                    own.append(bare(alone(line, edited(small, renamed))))
                names = self.values.get(each)
                if names:
                    loads = Loads()
                    small.visit(loads)
                    for name, load in zip(names, loads.found, strict=True):
                        own.append(statement(f"{name} = {code(edited(edited(load, renamed), Uncommented()))}"))
                elif names is not None:
                    own += self.copies(edited(small, renamed), here.exists, told, copy, indent)
            if own and here.comments and not any(each in self.used or each in here.kept for each, _ in members):
                assert isinstance(line, cst.SimpleStatementLine)
                own[0] = own[0].with_changes(trailing_whitespace=line.trailing_whitespace)
                own[0] = under(own[0], comments(line.leading_lines))
            made += own
        return made

    def copies(self, small: cst.BaseSmallStatement, exists: str, told: set[str], copy: str, indent: int) -> Lines:
        """The copies of a statement's lookups, but those in `told`, where they are noted."""
        made: Lines = []
        for marker in calls_in(small, RING_MARK):
            name = code(marker.func).removeprefix(RING_MARK)
            if name in self.slots and name not in told:
                told.add(name)
                made.append(self.slots[name].copy(copy, Load.of(edited(marker, Uncommented())), exists, indent))
        return made

    def read(self, small: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
        """A statement with its lookups read from their slots."""
        return edited(small, Replaced(RING_MARK, {name: slot.read for name, slot in self.slots.items()}))


class PlainLookups(Editor):
    """Markers of lookups as the loads that they stand for, where they have no slot, or theirs is an iteration ahead."""

    def __init__(self, rings: Iterable[Ring]) -> None:
        super().__init__()
        self._markers = {f"{RING_MARK}{ring.name}" for ring in rings if ring.looked_up}

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Replace a marker, or the load from one."""
        match original_node:
            case cst.Call(cst.Attribute(cst.Call(marker), cst.Name("load")), [_]) if is_name(marker, *self._markers):
                assert isinstance(updated_node.func, cst.Attribute)
                loaded, layout = updated_node.func.value, updated_node.args[0].value
                return cst.parse_expression(f"gl.convert_layout({code(loaded)}, {code(layout)})")
            case cst.Call(marker) if is_name(marker, *self._markers):
                return as_load(updated_node)
        return updated_node


class _Within(Editor):
    def __init__(self, rings: Mapping[str, Iterable[Ring]]) -> None:
        super().__init__()
        self.rings = rings

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return edited(updated_node, PlainLookups(self.rings.get(original_node.name.value, ())))


def with_plain_lookups(text: str, rings: Mapping[str, Sequence[Ring]]) -> str:
    """The text with the lookups among these `rings`, by functions that have no stage for them, as loads; lines stay."""
    if not any(ring.looked_up for known in rings.values() for ring in known):
        return text
    return edited(cst.parse_module(text), _Within(rings)).code


def needed_by_lookups(function: ast.FunctionDef, rings: Sequence[Ring]) -> list[Ring]:
    """The lookups of a function that others of the same loop need: those have them beside them, as loads."""
    marked = {f"{RING_MARK}{ring.name}": ring for ring in rings if ring.looked_up}
    needed: list[Ring] = []
    for loop in (each for each in nodes_in(function) if isinstance(each, ast.For) and len(marked) > 1):
        found = {each: [load for load in _markers(each) if called(load) in marked] for each in loop.body}
        places = {each: loads for each, loads in found.items() if loads}
        for place, loads in places.items():
            taken, _ = _around(loop, {place: loads})
            needed += [
                marked[called(load)] for each in places if each in taken and each is not place for load in places[each]
            ]
    return needed


def lookups_of(
    loop: ast.For,
    parts: Slice,
    loads: Mapping[ast.Call, Sequence[ast.expr]],
    renamed: Mapping[str, str],
    fresh: Callable[[str], str],
    slots: Mapping[str, LookedUp],
    also: frozenset[ast.stmt],
) -> Lookups | None:
    """The lookups of a loop's `loads`, None where there are none that can be done earlier.

    They must stand in the loop's own block, as must all that they need. One that needs another has it beside it.
    `slots`: where Triton has them copied to. `also`: what is done with the loads for their iteration to read.
    """
    copied = {each: _markers(each) for each in loop.body} if slots else {}
    ahead = [each for each in loop.body if each in parts.taken - also]
    places = {each: here for each in ahead if (here := copied.get(each) or _loads(each))}
    found, top = _around(loop, places)
    places = {each: loads_here for each, loads_here in places.items() if each not in found}
    found, top = _around(loop, places)
    found -= parts.constants
    if not places or not all(each in loop.body and not list(blocks(each)) for each in found):
        return None
    both = {each: here for each in found & parts.taken if (here := _loads(each)) and _bound_alone(each, found)}
    own = frozenset(load for loads_here in [*places.values(), *both.values()] for load in loads_here)
    used, used_top = statements_for(loop, loads, own, also)
    used -= parts.constants
    shared = NONE.union(*map(writes, used)) & NONE.union(*map(writes, found))
    names = {name: fresh(f"{name}_next") for name in sorted(shared)}
    values = {each: [] if copied.get(each) else [fresh(_named(each)) for _ in here] for each, here in places.items()}
    given = {
        name: values[each][0]
        for each in places
        if values[each] and (name := _given(each)) and _alone(name, used - {each}, used_top)
    }
    return Lookups(
        values,
        given,
        found,
        frozenset(each for each in used if each not in places or _given(each) not in given),
        {**renamed, **names},
        {names[name]: renamed.get(name, name) for name in sorted(names.keys() & top)},
        fresh("after"),
        fresh("more_after"),
        {each: names[name] for each in both if each in used for name in writes(each)},
        slots,
    )


def _around(loop: ast.For, places: Mapping[ast.stmt, Sequence[ast.Call]]) -> tuple[frozenset[ast.stmt], Names]:
    """The statements that lookups need, and the names that those take from before an iteration."""
    arguments = {
        load: [*load.args, *(keyword.value for keyword in load.keywords)] for each in places.values() for load in each
    }
    return statements_for(loop, arguments)


def _loads(node: ast.stmt) -> list[ast.Call]:
    """The loads of a simple statement, none where one is inside another."""
    if list(blocks(node)):
        return []
    found = [each for each in nodes_in(node) if isinstance(each, ast.Call) and called(each) in LOADS]
    nested = any(inner in found for load in found for inner in nodes_in(load) if inner is not load)
    return [] if nested else found


def _markers(node: ast.stmt) -> list[ast.Call]:
    """The loads of a simple statement that go through slots."""
    return [] if list(blocks(node)) else [each for each in nodes_in(node) if is_marker(each)]  # type: ignore[misc]


def _named(node: ast.stmt) -> str:
    """What a name that carries a statement's load is called."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return f"{name}_next"
    return "index_next"


def _given(node: ast.stmt) -> str:
    """The name that a statement gives a load, if it does nothing else."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if called(call) in LOADS:
            return name
    return ""


def _bound_alone(node: ast.stmt, others: frozenset[ast.stmt]) -> bool:
    """Whether a statement alone gives one name its value, among others."""
    bound = writes(node)
    named = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and len(node.targets) == 1
    return named and not any(bound & writes(each) for each in others - {node})


def _alone(name: str, others: frozenset[ast.stmt], top: Names) -> bool:
    """Whether a name has no other value in the statements of the copies."""
    return name not in top and not any(name in writes(each) for each in others)
