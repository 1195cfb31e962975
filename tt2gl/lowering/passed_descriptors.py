"""Descriptors that functions give their helpers as their parts, Triton to Triton: for targets that have no TMA.

    acc = inner(acc, k_desc, start)                         # k_desc is of K: [rows, D], [D, 1], [BLOCK, D]

    def inner(acc, desc, start):
        x = desc.load([start, 0])

becomes

    acc = inner(acc, K, rows, D, BLOCK, D, start)

    def inner(acc, desc_base, desc_size_0, desc_stride_0, desc_block_0: tl.constexpr, desc_block_1: tl.constexpr,
              start):
        desc = tl.make_tensor_descriptor(
            desc_base, [desc_size_0, desc_block_1], [desc_stride_0, 1], [desc_block_0, desc_block_1]
        )
        x = desc.load([start, 0])

of which `lowering.descriptors` makes pointers and masks. A size that is the tile's at every call is no part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.descriptor_calls import Descriptor, is_make, read_make
from tt2gl.lowering.descriptor_texts import Assigned
from tt2gl.lowering.host_descriptors import in_parts
from tt2gl.lowering.inlining import File
from tt2gl.lowering.pointer_calls import Refused
from tt2gl.lowering.steps import Lowered, Step
from tt2gl.source import SourceFile


@dataclass
class _Taken:
    """A helper's parameter: what each call gives it, and the names that are assigned where that is."""

    given: list[tuple[cst.Arg, Descriptor]] = field(default_factory=list)
    plain: bool = True


def passed_in_parts(source: SourceFile) -> Lowered:
    """The file with such parameters as parts: those that all calls give a descriptor which is made where they stand."""
    step = Step(source)
    file = File(source, step.spans, ())
    taken: dict[tuple[str, str], _Taken] = {}
    for function in file.functions.values():
        known = _made(function, source)
        for call in file.calls(function):
            helper = file.helper(call)
            names = [parameter.name for parameter in helper.parameters]
            for place, arg in enumerate(call.args):
                name = arg.keyword.value if arg.keyword is not None else names[place] if place < len(names) else ""
                own = taken.setdefault((helper.name, name), _Taken())
                made = known.get(arg.value.value) if isinstance(arg.value, cst.Name) and not arg.star else None
                own.plain = own.plain and made is not None
                if made is not None:
                    own.given.append((arg, made))
    edits: dict[str, list[Edit]] = {}
    for helper in file.functions.values():
        wanted = {name: each for (of, name), each in taken.items() if of == helper.name and _alike(each)}
        if not wanted or helper in source.kernels:
            continue
        whole = {name: _whole(each) for name, each in wanted.items()}
        ranks = {name: len(each.given[0][1].extents) for name, each in wanted.items()}
        try:
            inside = list(in_parts(helper, ranks, source, step.spans, whole))
        except Refused:
            continue
        edits.setdefault(helper.name, []).extend(inside)
        for name, each in wanted.items():
            for arg, made in each.given:
                start, end = step.spans.argument(arg)
                function = next(one for one in file.functions.values() if _stands_in(one, start, step))
                edits.setdefault(function.name, []).append(
                    Edit(start, end, ", ".join(_parts(arg, made, name, whole[name])))
                )
    return step.done([edit for own in edits.values() for edit in own], edits, originals=file.originals(edits))


def _made(function: JitFunction, source: SourceFile) -> dict[str, Descriptor]:
    """The descriptors that a function makes at its top, of what stays the same."""
    assigned = Assigned()
    function.node.body.visit(assigned)
    often = Counter([*assigned.names, *(parameter.name for parameter in function.parameters)])
    found: dict[str, Descriptor] = {}
    for line in function.node.body.body:
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=cst.Call() as call)]
            ) if is_make(source.names.of(call.func)) and often[name] == 1:
                try:
                    made = read_make(call, source.module)
                except Refused:
                    continue
                parts = [made.base, *(part for each in made.extents for part in (each.bound, each.stride, each.block))]
                stays = all(part.pure and all(often[read] <= 1 for read in part.names) for part in parts)
                if stays and made.other == "0.0" and made.extents[-1].stride.literal == 1:
                    found[name] = made
    return found


def _alike(each: _Taken) -> bool:
    return each.plain and bool(each.given) and len({len(made.extents) for _, made in each.given}) == 1


def _whole(each: _Taken) -> frozenset[int]:
    """The dimensions along which every descriptor is as long as its tile."""
    return frozenset(
        dim
        for dim in range(len(each.given[0][1].extents))
        if all(made.extents[dim].bound.text == made.extents[dim].block.text for _, made in each.given)
    )


def _parts(arg: cst.Arg, made: Descriptor, name: str, whole: Collection[int]) -> Iterator[str]:
    """A call's arguments for the parts of a descriptor."""
    sizes = {f"{name}_size_{dim}": each.bound.text for dim, each in enumerate(made.extents) if dim not in whole}
    strides = {f"{name}_stride_{dim}": each.stride.text for dim, each in enumerate(made.extents[:-1])}
    blocks = {f"{name}_block_{dim}": each.block.text for dim, each in enumerate(made.extents)}
    said: Mapping[str, str] = {f"{name}_base": made.base.text, **sizes, **strides, **blocks}
    yield from said.values() if arg.keyword is None else (f"{part}={text}" for part, text in said.items())


def _stands_in(function: JitFunction, place: int, step: Step) -> bool:
    start, end = step.spans.of(function.node)
    return start <= place < end
