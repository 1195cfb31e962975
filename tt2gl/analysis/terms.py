"""Layout terms: what propagation reasons about instead of concrete layouts.

A term says how a tensor's layout follows from a named one: the layout itself (`Root`), a slice of one along a
dimension that a reduction removed or an `expand_dims` will add (`Cut`, Gluon's `SliceLayout`), or one with a last
dimension of two elements that one thread holds (`Pair`: what `join` gives and `split` takes), one with more elements
side by side (`Widened`: what interleaving gives) or fewer (`Narrowed`: what parting gives), what one becomes when its
value is reshaped (`Reshaped`), the layout of a dot's operand (`Operand`) that follows from its accumulator's, that of a
dot's transposition (`Turned`) or of its store (`Exchanged`), or a layout of shared memory (`Stored`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Root:
    """A named layout; `name` is the key of its `LayoutClass`."""

    name: str


@dataclass(frozen=True)
class Cut:
    """`gl.SliceLayout(dim, parent)`."""

    dim: int
    parent: Term


@dataclass(frozen=True)
class Pair:
    """`paired(parent)`, the helper that a converted file then carries.

    `dims`: the extents of what has `parent` as source, where that has to be told by its bases:
    `with_pairs(gl.to_linear_layout(parent, dims))`.
    """

    parent: Term
    dims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Widened:
    """`widened(parent, dim, factor)`: `factor` elements side by side along `dim` where `parent` has one.

    A helper that the converted file then carries gives it.
    """

    dim: int
    factor: int
    parent: Term


@dataclass(frozen=True)
class Narrowed:
    """`narrowed(parent, dim, factor)`: one element along `dim` where a thread has `factor` neighbours in `parent`.

    A helper that the converted file then carries gives it.
    """

    dim: int
    factor: int
    parent: Term


@dataclass(frozen=True)
class Reshaped:
    """`reshaped(gl.to_linear_layout(parent, dims), into)`: each thread keeps its elements when a value is reshaped.

    `dims` and `into` are the extents before and after, as source.
    """

    parent: Term
    dims: tuple[str, ...]
    into: tuple[str, ...]


@dataclass(frozen=True)
class Operand:
    """`gl.DotOperandLayout(index, parent, k_width)`: a dot's operand in registers; `k_width` is source."""

    index: int
    parent: Root
    k_width: str


@dataclass(frozen=True)
class Turned:
    """`turned(parent)`: what the transposition of a matrix has, which has `parent`: a dot's, or an operand's of one.

    `dims`: the extents of that matrix as source, where `parent` has to be told by its bases:
    `turned(gl.to_linear_layout(parent, dims))`.
    """

    parent: Term
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Exchanged:
    """`exchanged(parent, gl.to_linear_layout(parent, dims), bits)`: a product's, `parent`, for a store (CDNA4).

    Lanes exchange elements where those have 16 `bits`, which is source as the `dims` are.
    """

    parent: Root
    dims: tuple[str, ...]
    bits: str


@dataclass(frozen=True)
class BlockScale:
    """`block_scale_layout(gl.to_linear_layout(parent, dims), axis)`: scales that serve 32 elements each along `axis`.

    `parent` is the layout of the elements, and `dims` are their extents as source.
    """

    axis: int
    parent: Term
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Stored:
    """In shared memory, in the layout named; `dims` are the extents as source. `IN_RING` where a ring holds the value.

    `in_place`: a dot reads it there, and not from registers that it is loaded into. `turned`: each thread turns what it
    has first, of a blocked layout. `narrow`: the type, as source, of what it is widened from, which is there for it.
    """

    parent: Root
    dims: tuple[str, ...] = ()
    in_place: bool = True
    turned: bool = False
    narrow: str = ""


@dataclass(frozen=True)
class Inferred:
    """The layout that a product's, `parent`, becomes by what is called one after the other, `how`: it has no name.

    `of_shape`: the extents of a value that was reshaped, which is in `parent` again when it has them again.
    """

    parent: Term
    how: str
    of_shape: tuple[int, ...] = ()


IN_RING = Stored(Root(""))
"""A slot of a ring: its layout is the ring's own."""

Term = Root | Cut | Pair | Widened | Narrowed | Reshaped | Operand | Turned | Exchanged | BlockScale | Stored | Inferred


def packed(term: Operand) -> Operand:
    """The layout of bytes with two elements each that unpack to a dot's operand."""
    whole = f"({term.k_width})" if " if " in term.k_width else term.k_width
    width = str(int(whole) // 2) if whole.isdigit() else f"{whole} // 2"
    return replace(term, k_width=width)


def in_words(term: Term, words: Mapping[str, str]) -> Term:
    """The same term where a flag that an operand's `k_width` asks has another name."""
    if isinstance(term, Operand):
        asked = re.search(r" if (\w+) else ", term.k_width)
        name = words.get(asked[1]) if asked else None
        if asked is None or name is None:
            return term
        return replace(term, k_width=term.k_width.replace(asked[0], f" if {name} else "))
    return term if isinstance(term, Root) else replace(term, parent=in_words(term.parent, words))  # type: ignore[arg-type]


def root_of(term: Term) -> Root:
    """The named layout a term is made of."""
    while not isinstance(term, Root):
        term = term.parent
    return term


def names_in(term: Term) -> Iterator[str]:
    """The names in the extents that a term says of registers, which are the kernel's."""
    while not isinstance(term, Root | Stored):
        for text in (*getattr(term, "dims", ()), *getattr(term, "into", ())):
            yield from (node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name))
        term = term.parent


def is_of_operand(term: Term) -> bool:
    """Whether a term is made of the layout of a product's operand."""
    while not isinstance(term, Root | Operand):
        term = term.parent
    return isinstance(term, Operand)


def base_of(term: Term) -> Root | Reshaped | BlockScale:
    """What a term is made of that stands whole in the text of a helper: of a value reshaped, its layout after that.

    So does that of scales: the extents of what they serve are those of the product, whose words are its function's.
    """
    while not isinstance(term, Root | Reshaped | BlockScale):
        term = term.parent
    return term


def based_on(term: Term, base: Root) -> Term:
    """The same term over another layout in the place of its `base_of`."""
    if isinstance(term, Root | Reshaped | BlockScale):
        return base
    return replace(term, parent=based_on(term.parent, base))  # type: ignore[arg-type]


def renamed(term: Term, names: dict[str, str]) -> Term:
    """The same term over other names."""
    if isinstance(term, Cut):
        return Cut(term.dim, renamed(term.parent, names))
    if isinstance(term, Pair | Widened | Narrowed):
        return replace(term, parent=renamed(term.parent, names))
    if isinstance(term, Operand):
        return Operand(term.index, Root(names.get(term.parent.name, term.parent.name)), term.k_width)
    if isinstance(term, Inferred | Turned | BlockScale | Reshaped):
        return replace(term, parent=renamed(term.parent, names))
    if isinstance(term, Exchanged | Stored):
        return replace(term, parent=Root(names.get(term.parent.name, term.parent.name)))
    return Root(names.get(term.name, term.name))


def doubled(term: Term, dim: int) -> Term | None:
    """The layout of twice as many elements along a dimension, side by side by twos; None where it has no name."""
    match term:
        case Root():
            return Widened(dim, 2, term)
        case Widened(dim=known) if known == dim:
            return replace(term, factor=2 * term.factor)
        case Narrowed(dim=known, factor=factor) if known == dim:
            return term.parent if factor == 2 else replace(term, factor=factor // 2)
        case Cut(dim=gone):
            whole = doubled(term.parent, dim + (gone <= dim))
            return Cut(gone, whole) if whole is not None else None
    return None


def halved(term: Term, dim: int) -> Term | None:
    """The layout whose `doubled` is this one; None where it is no layout's."""
    match term:
        case Widened(dim=known, factor=factor) if known == dim:
            return term.parent if factor == 2 else replace(term, factor=factor // 2)
        case Cut(dim=gone):
            whole = halved(term.parent, dim + (gone <= dim))
            return Cut(gone, whole) if whole is not None else None
    return None


def skeleton(term: Term) -> Term:
    """The term over a layout without a name: two terms of one skeleton differ only in the layout they are made of."""
    return based_on(term, Root(""))


def expanded(term: Term | None, axis: int | None) -> Term | None:
    """The layout of what has `term` with a dimension at `axis` again, which was taken from it there; else None."""
    if isinstance(term, Inferred) and term.how.endswith(said := f", reduce {axis} False"):
        return replace(term, how=term.how.removesuffix(said))
    return term.parent if isinstance(term, Cut) and term.dim == axis else None


def cut(term: Term, missing: int) -> Term:
    """The layout of what has so many leading dimensions less than what has `term`, and is repeated along them."""
    for axis in reversed(range(missing)):
        # `x[None, None, :]` adds the first dimension first: the last added is the outermost slice.
        term = Cut(axis, term)
    return term


def is_inferred(term: Term) -> bool:
    """Whether the compiler infers a layout, or that which this is a slice of."""
    while isinstance(term, Cut):
        term = term.parent
    return isinstance(term, Inferred)


def rendered(term: Term, alias: str = "gl") -> str:
    """The term as Gluon source."""
    if isinstance(term, Inferred) or is_inferred(term):
        return f"{alias}.AutoLayout()"
    if isinstance(term, Cut):
        return f"{alias}.SliceLayout({term.dim}, {rendered(term.parent, alias)})"
    if isinstance(term, Pair):
        parent = rendered(term.parent, alias)
        if not term.dims:
            return f"paired({parent})"
        if not (isinstance(term.parent, Pair) and term.parent.dims):
            parent = f"{alias}.to_linear_layout({parent}, [{', '.join(term.dims)}])"
        return f"with_pairs({parent})"
    if isinstance(term, Widened):
        return f"widened({rendered(term.parent, alias)}, {term.dim}, {term.factor})"
    if isinstance(term, Narrowed):
        return f"narrowed({rendered(term.parent, alias)}, {term.dim}, {term.factor})"
    if isinstance(term, Reshaped):
        bases = f"{alias}.to_linear_layout({rendered(term.parent, alias)}, [{', '.join(term.dims)}])"
        return f"reshaped({bases}, [{', '.join(term.into)}])"
    if isinstance(term, Operand):
        return f"{alias}.DotOperandLayout({term.index}, {rendered(term.parent, alias)}, {term.k_width})"
    if isinstance(term, Turned):
        parent = rendered(term.parent, alias)
        bases = f"{alias}.to_linear_layout({parent}, [{', '.join(term.dims)}])" if term.dims else parent
        return f"turned({bases})"
    if isinstance(term, Exchanged):
        parent = rendered(term.parent, alias)
        return f"exchanged({parent}, {alias}.to_linear_layout({parent}, [{', '.join(term.dims)}]), {term.bits})"
    if isinstance(term, BlockScale):
        bases = f"{alias}.to_linear_layout({rendered(term.parent, alias)}, [{', '.join(term.dims)}])"
        return f"block_scale_layout({bases}, {term.axis})"
    if isinstance(term, Stored):
        return term.parent.name
    return term.name
