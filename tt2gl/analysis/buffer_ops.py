"""Rule `buffer_ops`: global accesses on AMD by a scalar base and 32-bit offsets.

A buffer operation takes one pointer for all lanes and adds an unsigned offset below 2 GiB to it; a lane that is masked
off costs no branch, and reads zero. So an access becomes one where it starts from a scalar pointer and

- the offset's interval (`offset_ranges`) lies below 2 GiB, whatever the tensor; or
- the launches say that the tensor ends below 2 GiB, and the offset counts from its start, or from a pointer that has
  not been moved down, with an offset that is not negative. In 32 bits it is then exact, whatever its parts have.

    x = gl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0)                    # before
    x = gl.amd.cdna3.buffer_load(x_ptr + row * stride, cols, mask=cols < n)               # after

Variables that hold tensors of pointers hold offsets then. What is assumed stands in a comment; an access that stays
plain is told (TTG340), with what broke the proof.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tt2gl.analysis.addresses import (
    Address,
    Term,
    address,
    begins_tensor,
    makes_tensor,
    origin,
    scalar_parts,
    signed,
    tensor_terms,
    total,
)
from tt2gl.analysis.buffer_atomics import ATOMICS, atomic_function, elements_taken
from tt2gl.analysis.buffer_edits import Found, Refused
from tt2gl.analysis.buffer_sites import Site, Sites
from tt2gl.analysis.buffer_sizes import BUFFER_BYTES, Sizes
from tt2gl.analysis.current_values import current_values
from tt2gl.analysis.facts import ConstFact, Fact, TensorFact
from tt2gl.analysis.intervals import Interval, union_of
from tt2gl.analysis.moved_arguments import holders, pass_moved, tensors_of
from tt2gl.analysis.moved_pointers import Moved, hold_offsets, made_of_others, moved_beside_products
from tt2gl.analysis.offset_ranges import Body, Reader
from tt2gl.analysis.pointer_arguments import passed_pairs, scalar_of
from tt2gl.analysis.pointer_variables import (
    Variables,
    dtypes_asked,
    is_either,
    is_step,
    pointer_variables,
    reads_of,
    unreached_sum,
    unreached_sums,
)
from tt2gl.analysis.stated_ranges import assumable, constraints_of
from tt2gl.analysis.statics import position_of
from tt2gl.plan import BufferAccess, Position

_SHORT = {"int8", "uint8", "int16", "uint16"}
"""What an index is that costs less to convert than one of 32 bits."""


@dataclass(frozen=True)
class _Proof:
    """How an access was proven: by what assumptions, and whether scalars stay with the base."""

    whole: bool
    tensors: frozenset[tuple[str, str]] = frozenset()
    counts: frozenset[tuple[str, str]] = frozenset()


class BufferOps:
    """Decides for one function, under all launches that reach it."""

    def __init__(self, body: Body, sizes: Sizes, module: str, has_atomics: bool, staged: Collection[Position]) -> None:
        self.body, self.sizes, self.module = body, sizes, module
        self.read = Sites(body, module, has_atomics, staged)
        self.sites, self.unlike = self.read.found, self.read.unlike
        self.found = Found(refused=list(self.read.refused))
        self.candidates: Variables = {}
        self.held: dict[str, Moved] = {}
        self.unproven: set[str] = set()

    def decide(self) -> Found:
        """Every access of the function."""
        variables = self._variables()
        self.held = self._holders(variables)
        variables = self._variables() if self.held else variables
        for site in self.sites:
            proof = self._proven(site, variables)
            if isinstance(proof, str):
                self.found.refused.append(Refused(position_of(site.call), self.body.in_words(proof)))
            else:
                self._accept(site, proof, variables)
        self._keep_pointers(variables)
        self.body.carried = {name: base for name, (base, _) in variables.items()}
        self.found.carried = {name: self._base(base) for name, base in self.body.carried.items() if name != base}
        for name, (base, values) in variables.items():
            self._carry(name, self._base(base), values)
        self._pass_on()
        passed = pass_moved(self.body, self.found)
        for moved in self.held.values():
            values = [value for _, made in variables.values() for value in made]
            given = [address(self.body, value) for value in values]
            every = [*(site.address for site in self.sites), *filter(None, given)]
            starts = [each.start for each in every if not each.is_variable]
            starts += [parts[0] for value in values if (parts := scalar_parts(self.body, value)) is not None]
            starts += [each.base for each in unreached_sums(self.body, variables)]
            starts += [value for each in self.held.values() for value in made_of_others(each)]
            self._narrow(hold_offsets(self.body, moved, starts, passed, self.found))
        bases = {name: self._base(name) for name in self.held} | {
            name: self._base(base) for name, (base, _) in variables.items()
        }
        self.found.pointers = dict(elements_taken(self.body, bases))
        return self.found

    def _holders(self, variables: Variables) -> dict[str, Moved]:
        """The moved scalar pointers that are to hold offsets, as an access that counts from one is not proven."""
        if next(passed_pairs(self.body), None) is not None:
            return {}
        self.unproven = {self._root(site) for site in self.sites if isinstance(self._proven(site, variables), str)}
        return holders(self.body, self.unproven, self.sizes)

    def _root(self, site: Site) -> str:
        """The name of the scalar pointer that an access counts from; empty where there is none."""
        start = site.address.start
        if site.address.is_variable:
            return self.candidates[start.id][0] if isinstance(start, ast.Name) and start.id in self.candidates else ""
        parts = scalar_parts(self.body, start)
        return parts[0].id if parts is not None else ""

    def _keep_pointers(self, variables: Variables) -> None:
        """Note where pointers are made of a variable's offsets again: for what is by no buffer whatever its offsets."""
        for site in self.unlike:
            start = site.address.start
            if isinstance(start, ast.Name) and start.id in variables:
                self.found.rebased[position_of(start)] = self._base(variables[start.id][0])

    def _pass_on(self) -> None:
        """Give helpers the scalar pointers of the offsets that they take."""
        for call, callee, name, argument in passed_pairs(self.body):
            made, start = address(self.body, argument), scalar_of(self.body, argument)
            if made is None or start is None:
                continue  # it is found that this cannot be, and all is decided again
            self._leave_offset(made)
            self.found.passed.setdefault(position_of(call), {})[callee.pairs[name]] = self.body.author(start.id)

    def _variables(self) -> Variables:
        """The variables of pointers that can hold offsets: those all of whose accesses are proven."""
        addresses = [site.address for site in (*self.sites, *self.unlike)]
        names: set[str] | None = None
        while True:
            known = pointer_variables(self.body, addresses, names)
            self.candidates = known if names is None else self.candidates
            kept = {name for name in known if self._accessible(name, known)}
            # Those that the author calls by one name hold offsets together, as layouts go by his names.
            apart = {self.body.author(name) for name in self._tensors() if name not in kept}
            kept = {name for name in kept if self.body.author(name) not in apart}
            if kept == known.keys():
                return known
            names = kept

    def _tensors(self) -> set[str]:
        """The names told apart from others that hold tensors of pointers under some launch."""
        alike = {*self.body.authors, *self.body.authors.values()}
        made = {name: [each.statement for each in self.body.definitions.get(name, ())] for name in alike}
        return {name for name, own in made.items() if any(makes_tensor(self.body, each) for each in own)}

    def _accessible(self, name: str, variables: Variables) -> bool:
        """Whether all accesses by a variable are proven."""
        every = (*self.sites, *self.unlike)
        own = [site for site in every if isinstance(site.address.start, ast.Name) and site.address.is_variable]
        return all(
            not isinstance(self._proven(site, variables), str)
            for site in own
            if ast.unparse(site.address.start) == name
        )

    def _proven(self, site: Site, variables: Variables) -> _Proof | str:
        """Why an access can be by a buffer, or what broke the proof."""
        start = site.address.start
        if site.address.is_variable:
            assert isinstance(start, ast.Name)
            if start.id not in variables:
                return self._why_not(site, start.id, variables)
            base: ast.expr = ast.copy_location(ast.Name(variables[start.id][0], ast.Load()), start)
        else:
            base = start
        if (root := self._root(site)) in self.held:
            return _Proof(whole=True, tensors=tensors_of(self.body, self.held[root]))
        parts = scalar_parts(self.body, base)
        if parts is not None and moved_beside_products(self.body, site.call, base):
            begun = origin(self.body, parts[0])
            if begun.exact and not self.sizes.refused(begun.parameters):
                return _Proof(whole=True, tensors=begun.parameters)
        zero = base if site.address.is_variable else None
        from_base = self._reading(site, zero)
        offset = self._sum(site, from_base)
        size = max((fact.bits for fact in self.body.said(site.pointer) if isinstance(fact, TensorFact)), default=8) // 8
        if offset.low >= 0 and offset.high <= BUFFER_BYTES // max(size, 1) - 1:
            return _Proof(whole=False)
        source = origin(self.body, base)
        if not source.parameters:
            return f"`{ast.unparse(base)}` is no parameter, and " + self._worst(site, from_base)
        if refusal := self.sizes.refused(source.parameters):
            return f"{refusal}, and " + self._worst(site, from_base)
        if source.exact:
            return _Proof(whole=True, tensors=source.parameters)
        if parts is not None and not site.address.is_variable:
            strict = self._reading(site, None)
            if self._sum(site, strict).low >= 0 and strict.value(base).low >= 0:
                return _Proof(whole=False, tensors=source.parameters)
            if origin(self.body, parts[0]).exact:
                return _Proof(whole=True, tensors=source.parameters)
        needed = self._relied(site, zero, base)
        if needed is not None:
            return _Proof(whole=False, tensors=source.parameters, counts=needed)
        assuming = self._reading(site, zero, assumable(self.body))
        return self._worst(site, assuming, base)

    def _why_not(self, site: Site, name: str, variables: Variables) -> str:
        """Why a variable holds no offsets: it could not, or an access by it is not proven."""
        if name not in self.candidates or variables is self.candidates:
            return f"`{name}` is not an offset from one scalar pointer throughout"
        reason = self._proven(site, self.candidates)
        return reason if isinstance(reason, str) else f"another access by `{name}` is by none"

    def _relied(self, site: Site, zero: ast.expr | None, base: ast.expr) -> frozenset[tuple[str, str]] | None:
        """The fewest parameters that must not be negative for offset and base not to be; None where that is no help."""

        def holds(assumed: frozenset[tuple[str, str]]) -> bool:
            moved = Reader(self.body, assumed).value(base)
            return moved.low >= 0 and self._sum(site, self._reading(site, zero, assumed)).low >= 0

        needed = assumable(self.body)
        if not holds(needed):
            return None
        for parameter in sorted(needed):
            if holds(needed - {parameter}):
                needed -= {parameter}
        return needed

    def _reading(self, site: Site, base: ast.expr | None, assume: Collection[tuple[str, str]] = ()) -> Reader:
        """A reader of what an access adds to its scalar pointer, where its mask holds."""
        reader = Reader(self.body, assume, constraints_of(site.given.get("mask"), self.body))
        reader.current = current_values(site.call, self.body)
        if isinstance(base, ast.Name):
            stack: list[tuple[Body, ast.expr]] = [(self.body, base)]
            while stack:
                body, node = stack.pop()
                if isinstance(node, ast.Name) and (id(body), node.id) not in reader.known:
                    reader.known[id(body), node.id] = Interval(0, 0)
                    stack += body.given.get(node.id, ())
        return reader

    def _sum(self, site: Site, reader: Reader) -> Interval:
        """What is added to the scalar pointer of an access."""
        start = site.address.start
        if not site.address.is_variable:
            return total(site.address.terms, reader)
        if (id(self.body), ast.unparse(start)) not in reader.known:
            return reader.value(site.pointer)
        # A name that is a scalar pointer first and then a tensor has no interval of its own.
        made = [total(terms, reader) for terms in tensor_terms(self.body, ast.unparse(start))]
        return union_of(made).plus(total(site.address.terms, reader)) if made else Interval()

    def _worst(self, site: Site, reader: Reader, base: ast.expr | None = None) -> str:
        """The term of an offset that breaks the proof, in words."""
        for term in (*site.address.terms, *([Term(base)] if base is not None else [])):
            if signed(term, reader).low < 0:
                return f"`{ast.unparse(term.node)}` may be {'positive' if term.negative else 'negative'}"
        for term in site.address.terms:
            if reader.value(term.node).high > 2**24:
                return f"`{ast.unparse(term.node)}` may be as large as {_shown(reader.value(term.node))}"
        return f"`{ast.unparse(site.pointer)}` may reach beyond 2 GiB"

    def _accept(self, site: Site, proof: _Proof, variables: Variables) -> None:
        found, start = self.found, site.address.start
        found.tensors |= proof.tensors
        found.counts |= proof.counts
        base: Position | str = position_of(start)
        if site.address.is_variable:
            assert isinstance(start, ast.Name)
            base = self._base(variables[start.id][0])
        elif (root := self._root(site)) in self.held:
            base = self._base(root)
            parts = scalar_parts(self.body, start)
            self._narrow(parts[2] if parts is not None else ())
        elif site.address.dropped is not None:
            place, stays = site.address.dropped
            parts = scalar_parts(self.body, start)
            if proof.whole and parts is not None and parts[1] is not None:
                base, (place, stays) = self.body.author(parts[0].id), parts[1]
                self._narrow(parts[2])
            found.sides[place] = stays
        self._narrow(site.address.terms)
        function = f"{self.module}.buffer_{site.kind}"
        if site.kind in ATOMICS:
            function = atomic_function(site.kind, self.read.elements(site.pointer), self.module)
        found.accesses[position_of(site.call)] = BufferAccess(
            function,
            base,
            keeps_other=self._matters(site.given.get("other")),
            element=self._element(site, variables),
            constant=any(isinstance(fact, ConstFact) for fact in self._value_facts(site)),
            masked=self.read.constant(site.given.get("mask")) not in (None, True),
        )

    def _value_facts(self, site: Site) -> list[Fact]:
        """What was said of the value that an access stores."""
        value = site.given.get("value") or site.given.get("val")
        return [] if value is None else self.body.said(value)

    def _matters(self, other: ast.expr | None) -> bool:
        """Whether what stands for masked elements is anything but zero, which they are anyway."""
        value = self.read.constant(other)
        return other is not None and not (isinstance(value, (int, float)) and value == 0) and value is not None

    def _element(self, site: Site, variables: Variables) -> str:
        """The dtype, as source, that a value is to be stored as: buffers cast none. Empty where nothing is stored.

        Under every launch the value may have it already, but launches of other types run the same text.
        """
        if site.kind == "load":
            return ""
        start = site.address.start
        if site.address.is_variable:
            assert isinstance(start, ast.Name)
            return f"{self._base(variables[start.id][0])}.dtype.element_ty"
        parts = scalar_parts(self.body, start)
        made = self._base(parts[0].id) if parts is not None else f"({self.body.in_words(ast.unparse(start))})"
        return f"{made}.dtype.element_ty"

    def _base(self, root: str) -> str:
        """The author's name of what offsets count from: what a pointer is moved from, where it is held as an offset."""
        return self.body.author(self.held[root].base if root in self.held else root)

    def _narrow(self, terms: Sequence[Term]) -> None:
        """Have terms in 32 bits that are not, for all that launches say."""
        for term in terms:
            kinds = self.read.dtypes(term.node)
            if kinds - {"int32"} or not self.body.said(term.node):
                short = kinds and kinds <= _SHORT
                (self.found.stretched if short else self.found.narrowed)[position_of(term.node)] = "gl.int32"

    def _leave_offset(self, made: Address) -> None:
        """Of a tensor of pointers, have what is added to the name that it starts from."""
        parts = None if made.is_variable else scalar_parts(self.body, made.start)
        if parts is not None and made.dropped is not None:
            if parts[0].id not in self.held:
                place, stays = parts[1] or made.dropped
                self.found.sides[place] = stays
            self._narrow(parts[2])
        self._narrow(made.terms)

    def _carry(self, name: str, base: str, values: Sequence[ast.expr]) -> None:
        """A variable of pointers becomes one of offsets."""
        found, body, author = self.found, self.body, self.body.author(name)
        either = is_either(body, name)
        for value in values:
            if (made := address(body, value)) is not None:
                self._leave_offset(made)
            elif either and (parts := scalar_parts(body, value)) is not None and parts[1] is not None:
                if parts[0].id not in self.held:
                    found.sides[parts[1][0]] = parts[1][1]
                self._narrow(parts[2])
        if name in body.pairs:
            found.paired[name] = base
        for definition in body.definitions.get(name, ()):
            match definition.statement:
                case ast.AugAssign(target=target, value=value) as summed if either or is_step(body, summed):
                    self._narrow([Term(value)])
                    if not either and begins_tensor(body, summed):
                        found.begun[position_of(target)] = author
                    else:
                        found.targets[position_of(target)] = found.reads[position_of(target)] = author
                case ast.Assign(targets=[target], value=given) | ast.AnnAssign(target=target, value=given) as made_of:
                    unreached = unreached_sum(body, made_of)
                    if unreached is not None:
                        self._narrow(unreached.terms)
                        if unreached.base.id not in self.held:
                            found.sides[position_of(unreached.begun)] = "right"
                    if unreached is not None or makes_tensor(body, made_of) or either and given in values:
                        found.targets[position_of(target)] = author
        for node, what in reads_of(body, name):
            if what != "scalar":
                found.reads[position_of(node)] = author
            if what in ("unreached", "either"):
                found.rebased[position_of(node)] = base
        for asked in dtypes_asked(body, name):
            found.reads.pop(position_of(asked), None)
            found.rebased.pop(position_of(asked), None)
            found.bases[position_of(asked)] = base


def _shown(interval: Interval) -> str:
    return "anything" if interval.high == float("inf") else str(int(interval.high))
