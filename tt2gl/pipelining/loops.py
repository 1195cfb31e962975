"""Finds the loops with markers in a file, decides how each is pipelined, and puts what is written in its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from tt2gl.pipelining.branches_below import unwritten_by
from tt2gl.pipelining.conditions import conditions, either
from tt2gl.pipelining.counting import Count, Header, header_of, settled
from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.endings import Ending, Endings
from tt2gl.pipelining.flags import bound_in_any_case, flags_over, lasting_under_flags
from tt2gl.pipelining.flow import NONE, Liveness, Names, reads, takes_attribute, writes
from tt2gl.pipelining.last import has_few_registers, only_computes, products_in, products_in_branches
from tt2gl.pipelining.late_reads import Late, late_reads
from tt2gl.pipelining.loads import is_marker, is_masked, needs, ring_name
from tt2gl.pipelining.lookups import LookedUp, lookups_of
from tt2gl.pipelining.loop_plan import LoopPlan, comes_early
from tt2gl.pipelining.naming import Fresh
from tt2gl.pipelining.rings import Amount, LoopRings, NotPipelinedError, by_threads
from tt2gl.pipelining.slots import Slots, counted_twice, slots_of
from tt2gl.pipelining.static import bound, constants, is_static, parameters
from tt2gl.pipelining.surroundings import Surroundings, home_of
from tt2gl.pipelining.taken_ahead import TakenAhead, taken_ahead
from tt2gl.pipelining.texts import operand, whole
from tt2gl.pipelining.tma import barriers, descriptors
from tt2gl.pipelining.trees import code
from tt2gl.pipelining.turns import Turns, entry_of, loads_by, made_of, needed_around
from tt2gl.pipelining.walking import Lines, with_blocks
from tt2gl.pipelining.writer import LoopWriter
from tt2gl.plan import Ring
from tt2gl.trees import blocks, nodes_in


def markers_of(loop: ast.For) -> list[ast.Call]:
    """The markers of a loop, without those of loops inside it."""
    found: list[ast.Call] = []
    for statement in _own(loop.body):
        parts: Sequence[ast.AST] = [statement] if not list(blocks(statement)) else []
        found += [node for part in parts for node in nodes_in(part) if is_marker(node)]  # type: ignore[misc]
    return found


def _own(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop's body, with those in branches."""
    for statement in statements:
        yield statement
        if isinstance(statement, ast.If):
            yield from _own([*statement.body, *statement.orelse])


@dataclass
class FunctionWriter:
    """Writes the body of one function anew. `freed`: memory of rings whose tiles products are done with at once.

    `helpers`: the functions of the file, by name.
    """

    spec: LoopRings
    copy: str
    function: ast.FunctionDef
    fresh: Fresh
    liveness: Liveness = field(default_factory=Liveness)
    around: list[Surroundings] = field(default_factory=list)
    freed: set[str] = field(default_factory=set)
    helpers: Mapping[str, ast.FunctionDef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.liveness.before(self.function.body, NONE)
        self.constexprs, self.variables = constants(self.function), bound(self.function)
        self.parameters = parameters(self.function)

    def written(self, node: cst.FunctionDef, indent: int) -> cst.FunctionDef:
        """The function with its loops pipelined."""
        made = with_blocks(self.function, node, self.rebuilt, indent)
        assert isinstance(made, cst.FunctionDef)
        return made

    def rebuilt(self, statement: ast.stmt, line: cst.BaseStatement, indent: int) -> Lines:
        """A compound statement with the loops in it pipelined; itself, where it is such a loop."""
        if not any(is_marker(node) for node in nodes_in(statement)):
            return [line]
        if not isinstance(statement, ast.For | ast.While):
            return [with_blocks(statement, line, self.rebuilt, indent)]
        own, writer = Surroundings(statement, line), None
        if isinstance(statement, ast.For) and isinstance(line, cst.For) and markers_of(statement):
            writer = self._writer(statement, line, indent)
        self.around.append(own)
        if writer is not None:
            assert isinstance(statement, ast.For)
            assert isinstance(line, cst.For)
            made = writer.lines(statement, line)
        else:
            made = [with_blocks(statement, line, self.rebuilt, indent)]
        self.around.pop()
        return own.lines(made)

    def _writer(self, loop: ast.For, node: cst.For, indent: int) -> LoopWriter:
        """What writes a loop; its rings are made before the outermost loop that leaves them as they are."""
        unwritten = unwritten_by(loop, self.function, self.constexprs, self.helpers)
        writer = LoopWriter(self._plan(loop, node), self.rebuilt, indent, unwritten)
        self.freed |= writer.plan.freed
        home = home_of(writer.rings(), self.around) if self.spec.outside else None
        if home is None:
            return writer
        plan = self._through_turns(loop, node, replace(writer.plan, outside=True), home)
        if plan.barriers or plan.turns is not None:
            writer = replace(writer, plan=plan)
            home.before += writer.rings() + (writer.begun(loop, node) if plan.turns is not None else [])
            home.after += writer.ended()
        return writer

    # ---------------------------------------------------------------------------------------------------- decisions

    def _through_turns(self, loop: ast.For, own_node: cst.For, plan: LoopPlan, home: Surroundings) -> LoopPlan:
        """The plan with loads that run on from turn to turn of a flattened loop around, where they may."""
        outer, node = home.loop, home.node
        if len(self.around) > 1 or not isinstance(outer, ast.For) or not isinstance(node, cst.For):
            return plan
        by_tma = bool(plan.barriers) and all(ring.tile for ring in plan.rings)
        plain = (by_tma or by_threads(plan.rings)) and plan.lookups is None and not any(plan.conditions.values())
        if not plain or not writes(outer.target) <= self.spec.flattened or plan.count.wide:
            return plan
        wanted = {marker: needs(marker) for marker in markers_of(loop)}
        found = needed_around(outer, loop, wanted, plan.parts, self.liveness.after[outer], Effects(self.helpers))
        if found is None:
            return plan
        bindings: list[tuple[str, str]] = []
        around = self._count(header_of(outer), node, frozenset().union(*map(writes, outer.body)), bindings)
        bindings += [(name, source) for name, source in plan.bindings if name not in plan.renamed.values()]
        own = frozenset().union(*map(writes, found.taken | plan.parts.taken)) | {around.variable}
        names = {name: plan.renamed.get(name) or self.fresh(f"{name}_ahead") for name in sorted(own)}
        variable = plan.count.variable
        ahead = plan.first if plan.first != variable else self.fresh(f"{variable}_ahead")
        entry = entry_of(outer, node, found, names)
        home.gone, home.count = found.gone, around
        own_loads = by_threads(plan.rings) and loads_by(variable, plan.parts.kept)
        counted_on = own_loads and variable not in self.liveness.after[loop]
        with_it = made_of(variable, loop, own_node, plan.parts.kept, writes(outer)) if counted_on else []
        return replace(
            plan,
            ahead=ahead,
            first=ahead,
            stage=plan.stage if plan.stage != plan.first else self.fresh("s"),
            renamed=names,
            bindings=tuple(bindings),
            turns=Turns(around, plan.count, names[around.variable], ahead, plan.more, entry, counted_on, with_it),
            slots={depth: each.once() for depth, each in plan.slots.items()},
        )

    @property
    def _known(self) -> tuple[Names, Names]:
        """The names of constants of the compilation, and of all that the function binds."""
        return self.constexprs, self.variables

    def _plan(self, loop: ast.For, node: cst.For) -> LoopPlan:
        header = header_of(loop)
        assigned = frozenset().union(*map(writes, loop.body))
        if header.variable in assigned:
            raise NotPipelinedError("the loop's variable is assigned to in its body")
        markers = markers_of(loop)
        looked_up = self._looked_up(markers)
        live_after = self.liveness.after[loop]
        ahead = taken_ahead(self.function, loop, markers, self.spec, live_after, looked_up, self._is_settled)
        parts, rings = ahead.parts, ahead.rings
        bindings: list[tuple[str, str]] = []
        bare = any(self._is_plain(each) and by_threads([self.spec.ring(ring_name(each))]) for each in markers)
        count = self._count(header, node, assigned, bindings, bare=bare)
        if header.variable == "_" and not any("_" in reads(statement) for statement in loop.body):
            # It is read now, and should say what it is.
            count = replace(count, variable=self.fresh("i"))
        renamed = {name: self.fresh(f"{name}_ahead") for name in sorted(parts.renamed | ahead.leaking)}
        # What a branch of the body gives its first value is carried by name alone.
        started = sorted((parts.carried & parts.renamed) - ahead.first_in_branches)
        bindings += [(renamed[name], name) for name in started]
        # What flags alone give values to before the loop has none without them.
        always = bound_in_any_case(self.function, loop)
        stage, first = self._stages(count, ahead.live_after, takes_attribute(loop.body, count.variable))
        tests = conditions(loop, lambda test: is_static(test, *self._known) and not reads(test) & assigned)
        arrivals = barriers(self.spec, loop.body, parts.kept, tests, self.fresh)
        ending = self._ending(ahead, count, tests, always, counted=self._is_counted(header))
        if ending.drain:
            named = [ring.name for ring in rings]
            bindings.append((ending.drain, either(tests, named, count.last(self.spec.ahead), count.upper)))
        plan = LoopPlan(
            self.spec,
            self.copy,
            parts,
            count,
            rings,
            {ring.name: self.fresh(f"{ring.name}_{'held' if ring.held else 'buf'}") for ring in rings},
            self.fresh("ahead"),
            self.fresh("more"),
            stage,
            first,
            renamed,
            tuple(bindings),
            self._slots(loop, rings, [each.depth for each in arrivals]),
            arrivals,
            self.fresh("each") if arrivals else "",
            flagged={renamed[name]: flags_over(loop, name, self._is_settled) for name in started if name not in always},
            drain=ending.drain,
            last=ending.last,
            conditions=tests,
            stops=ahead.stops,
            split=ending.split,
        )
        return self._with_reads(plan, ahead, looked_up)

    def _with_reads(self, plan: LoopPlan, ahead: TakenAhead, looked_up: Mapping[str, LookedUp]) -> LoopPlan:
        """The plan of a loop with what says where tiles are, and how and under which names they are read."""
        loop, parts, rings = ahead.loop, ahead.parts, ahead.rings
        branches = [each.test for each in nodes_in(loop) if isinstance(each, ast.If)]
        lookups = None
        if self.spec.looks_ahead:
            lookups = lookups_of(loop, parts, ahead.wanted, plan.renamed, self.fresh, looked_up, ahead.again)
        return replace(
            plan,
            lookups=lookups,
            coming={ring.name: self.fresh(f"{ring.name}_next") for ring in rings if ring.registers},
            begun=self._begun(rings),
            descriptors=descriptors(self.spec, loop.body),
            late=Late() if comes_early(rings) else late_reads(loop, parts.kept, ahead.live_after),
            decided=frozenset(ast.unparse(test) for test in branches if self._is_settled(test)),
            layouts={ring.name: self.fresh(f"{ring.name}_layout") for ring in rings if ring.scalar},
            carried={each: self.fresh(f"{name}_held") for each, name in ahead.carried.items() if each in parts.kept},
        )

    def _ending(
        self,
        ahead: TakenAhead,
        count: Count,
        tests: Mapping[str, tuple[str, ...]],
        always: Names,
        *,
        counted: bool,
    ) -> Ending:
        """How a loop ends; `tests`: what its rings stand under, `always`: what is bound before it in any case."""
        loop, rings = ahead.loop, ahead.rings
        # Where flags leave no ring, nothing runs ahead, and no iteration is a last one: such stand under those flags.
        under = {tests.get(ring.name, ()) for ring in rings}
        flags = next(iter(under)) if len(under) == 1 and not products_in_branches(loop) else ()
        unrolled = all(ring.registers for ring in rings) and (bool(flags) or () in under)
        # What branches alone bind, under flags, lasts from no turn to the next.
        lasting = ahead.parts.lasting - ahead.first_in_branches
        lasting = lasting_under_flags(loop, lasting, ahead.live_after, self._is_settled)
        if any(tests.values()) and lasting - always:
            unrolled = False
        endings = Endings(self.function, loop, ahead.parts, lasting, count, self.fresh, self._is_settled)
        computing = unrolled and only_computes(endings.kept, Effects(self.helpers), self._known)
        # A load without a mask need not get one where the iterations that it would be for are a loop of their own; to
        # a copy by offsets a mask is nothing. Of a short loop whose length the compiler knows, no iteration loads then.
        apart = any(map(self._is_plain, ahead.wanted)) or counted
        # Of several products, all that is read for one is in registers while the others are computed.
        products = products_in(loop)
        asking = computing
        if unrolled and products > 1:
            # RDNA's few registers do for a loop of them beside one without masks, not for one after the other. Where
            # the compiler knows how many iterations there are, it has the last ones so anyway, and asks for nothing.
            asking = not (counted or (apart and has_few_registers(loop))) and asking
            unrolled = counted or asking
        if not comes_early(rings) or not (apart or unrolled):
            return Ending()
        drain = self.fresh("drain")
        last = replace(endings.plain(rings, self.spec), tests=flags, wanted=ahead.live_after) if unrolled else None
        if last is not None and asking and products:
            last = endings.asked_for(last)
        return Ending(drain, last, endings.split(rings, self.spec, last) if computing else None)

    def _slots(self, loop: ast.For, rings: Sequence[Ring], awaited: Sequence[Amount]) -> dict[Amount, Slots]:
        """Counters of slots of rings in memory, by depth; `awaited`: the depths of rings that mbarriers are for."""
        placed = [ring for ring in rings if not ring.held]
        return slots_of(self.spec, placed, awaited, self.fresh, twice=counted_twice(loop, self.spec, rings))

    def _is_settled(self, test: ast.expr) -> bool:
        """Whether the compiler knows a test, and nothing changes it."""
        return is_static(test, *self._known)

    def _begun(self, rings: Sequence[Ring]) -> dict[str, str]:
        """What a prologue calls the tiles that come to registers, before it stores them: where there are several."""
        if len(rings) < 2 or not all(ring.registers for ring in rings):
            return {}
        return {ring.name: self.fresh(f"{ring.name}_first") for ring in rings if not ring.held}

    def _looked_up(self, markers: Sequence[ast.Call]) -> dict[str, LookedUp]:
        """Where what says where tiles are is copied to, by the names of rings."""
        made: dict[str, LookedUp] = {}
        for name in dict.fromkeys(map(ring_name, markers)):
            ring = self.spec.ring(name)
            if ring.looked_up:
                layout = self.fresh(f"{name}_layout") if ring.scalar else ""
                made[name] = LookedUp(ring, self.fresh(f"{name}_buf"), layout)
        return made

    def _is_counted(self, header: Header) -> bool:
        """Whether the compiler knows how many iterations a loop has."""
        return all(is_static(bound, *self._known) for bound in (header.lower, header.upper, header.step))

    def _is_plain(self, marker: ast.Call) -> bool:
        """Whether a load has no mask, and is not a copy to LDS by a scalar pointer and offsets."""
        ring = self.spec.ring(ring_name(marker))
        by_offsets = bool(ring.direct) and any(each.arg == "offsets" for each in marker.keywords)
        return ring.tile or not (is_masked(marker) or by_offsets)

    def _stages(self, count: Count, live_after: Names, as_tensor: bool) -> tuple[str, str]:
        """What the prologue counts with, and its name for the loop's variable: the variable itself where it may.

        Not where the body takes an attribute of it (`as_tensor`): what the prologue counts with is no tensor.
        """
        free = count.variable not in live_after
        first = count.variable if free else self.fresh(f"{count.variable}_ahead")
        return (first, first) if count.by_slots and not as_tensor else (self.fresh("s"), first)

    def _may_be_constant(self, header: Header) -> bool:
        """Whether a loop of numbers ends at a parameter, which is one, too, where it is given one, as where it is 1."""
        numbers = is_static(header.lower, *self._known) and is_static(header.step, *self._known)
        return numbers and isinstance(header.upper, ast.Name) and header.upper.id in self.parameters

    def _count(
        self,
        header: Header,
        node: cst.For,
        assigned: Names,
        bindings: list[tuple[str, str]],
        *,
        bare: bool = False,
    ) -> Count:
        """How a loop counts; of `bare` copies, whether there is an iteration is all of the mask, so no constant."""
        known = self._known
        assert isinstance(node.iter, cst.Call)
        given = [whole(code(each.value)) for each in node.iter.args if each.keyword is None]
        named = {each.keyword.value: whole(code(each.value)) for each in node.iter.args if each.keyword is not None}
        lower, upper = (given[0], given[1]) if len(given) > 1 else ("0", given[0])
        step = given[2] if len(given) == 3 else named.get("step", "1")
        if not settled(header.lower, assigned, *known, static=True):
            bindings.append((self.fresh("first"), lower))
            lower = bindings[-1][0]
        step_known = is_static(header.step, *known)
        if not step_known and not settled(header.step, assigned, *known, static=True):
            bindings.append((self.fresh("step"), step))
            step = bindings[-1][0]
        constant = bare and self._may_be_constant(header)
        if constant or not settled(header.upper, assigned, *known, static=False):
            bindings.append((self.fresh("steps" if lower == "0" and step == "1" else "end"), upper))
            upper = bindings[-1][0]
        step = step if step == "1" or step_known else operand(step)
        return Count(header.variable, lower, upper, step, step_known, header.variable in self.spec.wide)
