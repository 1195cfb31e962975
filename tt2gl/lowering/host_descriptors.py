"""Descriptors that the host gives a kernel as their parts, Triton to Triton: for targets on which nothing copies tiles.

    def kernel(a_desc, K):
        a = a_desc.load([0, 0])

becomes

    def kernel(a_desc_base, a_desc_size_0, a_desc_size_1, a_desc_stride_0,
               a_desc_block_0: tl.constexpr, a_desc_block_1: tl.constexpr, K):
        a_desc = tl.make_tensor_descriptor(
            a_desc_base, [a_desc_size_0, a_desc_size_1], [a_desc_stride_0, 1], [a_desc_block_0, a_desc_block_1]
        )
        a = a_desc.load([0, 0])

of which `lowering.descriptors` makes pointers and masks. Triton's launcher passes such parts, too. In the converted
file the kernel has a decorator that takes them from the descriptor, so that the host's code stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import libcst as cst
from libcst.metadata import PositionProvider

from tt2gl.descriptor_parts import base, blocks, parts, sizes, strides
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.naming import Names
from tt2gl.lowering.pointer_calls import Refused
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile


def parted_descriptors(source: SourceFile, given: Mapping[str, Mapping[str, int]]) -> Lowered:
    """The file with some kernels' descriptors as parts; `given`: by kernel, the rank of each."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        known = given.get(function.name, {})
        return list(in_parts(function, known, source, spans)) if function in source.kernels and known else []

    def told(refused: Refused) -> Diagnostic:
        start = source.wrapper.resolve(PositionProvider)[refused.node].start
        message = f"The parts of the host's tensor descriptors cannot be passed in their place: {refused.reason}."
        hint = "The kernel stays Triton; see the page of this code."
        return Diagnostic("TTG304", Severity.WARNING, str(source.path), start.line, start.column, message, hint)

    return each_function(source, given, edits, told)


def in_parts(
    function: JitFunction,
    ranks: Mapping[str, int],
    source: SourceFile,
    spans: Spans,
    whole: Mapping[str, Collection[int]] | None = None,
) -> Iterator[Edit]:
    """The edits of one function that takes some parameters' parts. Raises Refused.

    `whole`: by parameter, the dimensions along which it is as long as its tile.
    """
    node = function.node
    language = _language(node, source)
    taken = Names.of(source.module.code_for_node(node)).taken
    if not isinstance(node.body, cst.IndentedBlock):
        raise Refused(node, "its body stands in the line of its `def`")
    first = node.body.body[1 if node.get_docstring() is not None and len(node.body.body) > 1 else 0]
    place = spans.of(first)[0]
    indent = spans.line(place)[0]
    for param in [*node.params.params, *node.params.kwonly_params, *node.params.posonly_params]:
        name = param.name.value
        if name not in ranks:
            continue
        rank, full = ranks[name], (whole or {}).get(name, ())
        wanted = [part for part in parts(name, rank) if part not in {sizes(name, rank)[dim] for dim in full}]
        if param.default is not None or taken & {*wanted}:
            raise Refused(param, f"`{name}` has a default" if param.default is not None else "a name is taken")
        constants = blocks(name, rank)
        given = ", ".join(part for part in wanted if part not in constants)
        tile = ", ".join(f"{part}: {language}.constexpr" for part in constants)
        last = param.annotation.annotation if param.annotation is not None else param.name
        start, end = spans.of(param.name)[0], spans.of(last)[1]
        line, before = spans.line(start)
        spaces = before - len(spans.raw[start - before : start].rstrip())
        if line and spaces < before:
            # The author's are on lines of their own, and another stands before this one.
            yield Edit(start - spaces, end, f"\n{line}{given},\n{line}{tile}")
        else:
            yield Edit(start, end, f"{given},\n{line}{tile}" if line else f"{given}, {tile}")
        reach = [constants[dim] if dim in full else size for dim, size in enumerate(sizes(name, rank))]
        lists = [", ".join(each) for each in (reach, [*strides(name, rank), "1"], constants)]
        made = ", ".join([base(name), *(f"[{each}]" for each in lists)])
        yield Edit(place, place, f"{name} = {language}.make_tensor_descriptor({made})\n{indent}")


def _language(node: cst.FunctionDef, source: SourceFile) -> str:
    """What stands for `triton.language` in a function. Raises Refused where nothing does."""
    for each in walk(node):
        if isinstance(each, cst.Attribute) and source.names.of(each.value) == {"triton.language"}:
            return source.module.code_for_node(each.value)
    raise Refused(node, "it does not name `triton.language`")
