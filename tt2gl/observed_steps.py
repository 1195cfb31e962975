"""The file after steps that follow from what is observed of its kernels, each observed anew."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from tt2gl.analysis.cast_products import cast_products
from tt2gl.analysis.constant_quotients import constant_quotients
from tt2gl.analysis.copied_truths import copied_truths
from tt2gl.analysis.equal_values import equal_values
from tt2gl.analysis.facts import LaunchFacts
from tt2gl.analysis.first_turns import first_turns
from tt2gl.analysis.helper_loads import (
    calls_in_between,
    calls_of,
    calls_of_lasting_operands,
    calls_of_products,
)
from tt2gl.analysis.kernel import parsed
from tt2gl.analysis.names_again import names_again
from tt2gl.analysis.scalar_likes import scalar_likes
from tt2gl.analysis.single_turns import single_turns
from tt2gl.analysis.summed_products import summed_products
from tt2gl.analysis.turns_apart import turns_apart
from tt2gl.kernel_state import Calls, Kernel
from tt2gl.lowering.lowered_source import (
    LoweredSource,
    with_arguments_again,
    with_bare_products,
    with_bytes_loaded,
    with_equal_values,
    with_first_turns,
    with_inlined,
    with_loops_written_out,
    with_other_names,
    with_products_of_sums,
    with_quotients_written_out,
    with_scalars_by_type,
    with_single_turns,
)
from tt2gl.observation import Asked, observed
from tt2gl.targets import precision_of_sums

_Place = TypeVar("_Place")
_Found = Callable[[Collection[LaunchFacts], Mapping[str, ast.Module], Path], set[_Place]]
_Step = Callable[[LoweredSource, Collection[_Place]], LoweredSource | None]


def with_quotients_of_constants(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file whose loops count to constants where Triton has quotients of constants as scalars, and its kernels."""
    return _as_long_as(known, kernels, asked, constant_quotients, with_quotients_written_out)


def without_loops_of_one_turn(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file without inner loops that run once, whose loads run ahead of the loop around, and its kernels."""
    return _as_long_as(known, kernels, asked, single_turns, with_single_turns)


def with_turns_apart(
    known: LoweredSource, kernels: list[Kernel], asked: Asked, torn: Collection[str]
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with the loops written out whose turns the compiler writes out with other shapes, and its kernels.

    Of helpers that compute with other shapes in each turn those tell that are `torn`.
    """
    return _as_long_as(known, kernels, asked, partial(turns_apart, torn=torn), with_loops_written_out)


def without_casts_of_products(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file without casts of products that are added to something, which change nothing, and its kernels."""
    return _as_long_as(known, kernels, asked, cast_products, with_bare_products)


def without_likes_of_scalars(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with scalars that are made like others by their type, and its kernels."""
    return _as_long_as(known, kernels, asked, scalar_likes, with_scalars_by_type)


def with_sums_as_products(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with those sums as matrix products that Triton's compiler makes such of, and its kernels."""
    step = partial(with_products_of_sums, precision=precision_of_sums(asked.target))
    return _as_long_as(known, kernels, asked, summed_products, step)


def with_first_turns_alone(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with first turns apart whose loads alone are copied ahead, or whose alone are not, and its kernels."""
    return _as_long_as(known, kernels, asked, first_turns, with_first_turns)


def with_names_of_their_own(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file whose tiles that are copied ahead have no name of what was there before their loop, and its kernels."""
    return _as_long_as(known, kernels, asked, names_again, with_other_names)


def with_equal_values_once(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file without loads and products that make what a name has already, and its kernels.

    What holds under conditions is taken from launches that are known alone: sizes are often guessed to be equal.
    """
    guessed = {each.function.name for each in kernels if any(one.origin == "guessed" for one in each.launches)}
    return _as_long_as(known, kernels, asked, partial(equal_values, guessed=guessed), with_equal_values)


def with_arguments_once_more(
    known: LoweredSource, kernels: list[Kernel], asked: Asked, calls: Calls
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with arguments that helpers are given once more, where other helpers were written out in these."""
    step = with_arguments_again(known, calls.again) if calls.again else None
    return (known, kernels) if step is None else (step, observed(step, asked))


def with_copied_truths_as_bytes(
    known: LoweredSource, kernels: list[Kernel], asked: Asked
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with truth values that Triton copies ahead loaded as the bytes that it copies, and its kernels."""
    return _as_long_as(known, kernels, asked, copied_truths, with_bytes_loaded)


def _as_long_as(
    known: LoweredSource, kernels: list[Kernel], asked: Asked, found: _Found[_Place], step: _Step[_Place]
) -> tuple[LoweredSource, list[Kernel]]:
    """The file after a step as often as there are places for it, by what is observed of its kernels, and these."""
    while True:
        seen = [(list(kernel.facts.values()), parsed(kernel.slice)) for kernel in kernels if kernel.slice is not None]
        places = set[_Place]().union(*(found(facts, trees, known.work.path) for facts, trees in seen))
        made = step(known, places) if places else None
        if made is None:
            return known, kernels
        again = observed(made, asked)
        if any(new.facts.keys() != old.facts.keys() for new, old in zip(again, kernels, strict=True)):
            return known, kernels
        known, kernels = made, again


def inlined(
    known: LoweredSource, kernels: list[Kernel], asked: Asked, calls: Calls
) -> tuple[LoweredSource, list[Kernel]]:
    """The file with helpers written out whose loads run ahead of a loop that calls them, or multiply, and its kernels.

    A call at a time of those that lead to a load, as only what compiles tells where the next one is.
    """
    while True:
        asking = [
            (kernel.function.name, (list(kernel.facts.values()), parsed(kernel.slice), known.work.path))
            for kernel in kernels
            if kernel.slice is not None and kernel.function.name not in calls.plain
        ]
        wanted = {name: calls_in_between(*seen) for name, seen in asking}
        multiplied = {name: calls_of_products(*seen) for name, seen in asking}
        lasting = {name: calls_of_lasting_operands(*seen) for name, seen in asking}
        ahead, products = set().union(*wanted.values()), set().union(*multiplied.values(), *lasting.values())
        facts = [seen for kernel in kernels for seen in kernel.facts.values()]
        torn = calls_of(calls.torn, facts, known.work.path)
        remade = calls_of(calls.converting, facts, known.work.path)
        own = str(known.work.path.absolute())
        reached = {one.line for seen in facts for one in seen.functions.values() if one.path == own}
        asked_for = ahead | torn | products | remade
        step = with_inlined(known, ahead, torn, reached, products, remade) if asked_for else None
        if step is None:
            return known, kernels
        again = observed(step, asked)
        if any(new.facts.keys() != old.facts.keys() for new, old in zip(again, kernels, strict=True)):
            return known, kernels
        for new, old in zip(again, kernels, strict=True):
            name = new.function.name
            new.written_out = old.written_out or bool(wanted.get(name)) or bool(multiplied.get(name))
            new.multiplied_here = old.multiplied_here or bool(lasting.get(name))
        known, kernels = step, again
