"""Rule `tiles`: a load or store through a tensor descriptor becomes a copy by TMA."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.rewrite.imports import with_instructions
from tt2gl.rewrite.tiles import HOST_TILES_SOURCES, through_tile, with_tile_layouts

Code = Callable[[cst.CSTNode], str]
Body = Callable[..., str]


def test_a_load_that_the_plan_does_not_name_stays(body: Body) -> None:
    assert body("a = a_desc.load([i, 0])\nb = a + 1") == "a = a_desc.load([i, 0])\nb = a + 1"


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        ("a_desc.load([i, 0])", "load", "load_tile(a_desc, [i, 0])"),
        ("a_desc.load(offsets=[i, 0])", "load", "load_tile(a_desc, offsets=[i, 0])"),
        ("tl.load_tensor_descriptor(a_desc, [i, 0])", "load", "load_tile(a_desc, [i, 0])"),
        ("a_desc.store([i, 0], a + 1)", "store", "store_tile(a_desc, [i, 0], a + 1)"),
        ("tl.store_tensor_descriptor(a_desc, [i, 0], a)", "store", "store_tile(a_desc, [i, 0], a)"),
    ],
)
def test_methods_and_functions_become_calls_of_the_files_own(code: Code, before: str, kind: str, after: str) -> None:
    call = cst.parse_expression(before)
    assert isinstance(call, cst.Call)
    assert code(through_tile(call, kind)) == after


@pytest.mark.parametrize(
    ("staged", "after"),
    [
        (("", ""), "a = load_tile(a_desc, [i, 0])"),
        (("", "layout"), "a = load_tile(a_desc, [i, 0]).load(layout)"),
        (("a", ""), "a = _tt2gl_ring_a(a_desc, [i, 0])"),
        (("a", "layout"), "a = _tt2gl_ring_a(a_desc, [i, 0]).load(layout)"),
    ],
    ids=["in place", "in registers", "a ring's", "a ring's, in registers"],
)
def test_where_a_tile_goes(body: Body, staged: tuple[str, str], after: str) -> None:
    at = "a_desc.load([i, 0])"
    assert body(f"a = {at}", tiles={at: "load"}, staged={at: staged}) == after


def test_the_copies_are_imported_as_either_triton_calls_them() -> None:
    made = with_instructions("from triton.experimental.gluon import language as gl\ntma_load(a)\n")
    assert "hopper.tma import async_load as tma_load\n" in made
    assert "hopper.tma import async_copy_global_to_shared as tma_load\n" in made
    assert "tma_store" not in made
    assert with_instructions(made) == made


def test_a_kernel_with_the_hosts_descriptors_has_its_decorator_next_to_jit(code: Code) -> None:
    kernel = cst.parse_statement("@triton.autotune([], [])\n@gluon.jit\ndef kernel(a_desc): pass\n")
    assert isinstance(kernel, cst.FunctionDef)
    made = code(with_tile_layouts(kernel))
    assert made == "@triton.autotune([], [])\n@with_tile_layouts\n@gluon.jit\ndef kernel(a_desc): pass\n"


def test_the_data_movers_decorator_knows_what_is_only_loaded_through(code: Code) -> None:
    kernel = cst.parse_statement(
        "@gluon.jit\n"
        "def kernel(a, b, c, d):\n"
        "    x = _tt2gl__tt2gl_ring_x(a, [0]).load(layout)\n"
        "    y = _tt2gl_load_tile(b, [a.shape[0]])\n"
        "    _tt2gl_store_tile(c, [0], _tt2gl_load_tile(c, [0]).load(layout))\n"
        "    helper(d, _tt2gl_load_tile(d, [0]))\n"
    )
    assert isinstance(kernel, cst.FunctionDef)
    assert code(with_tile_layouts(kernel, "tdm").decorators[0]) == '@with_tile_layouts("a", "b")\n'


@pytest.mark.parametrize("mover", ["tma", "tdm"])
def test_the_decorator_gives_descriptors_a_layout_and_leaves_others(mover: str) -> None:
    from triton.experimental.gluon import language as gl
    from triton.runtime.jit import KernelInterface

    class Tensor:
        def element_size(self) -> int:
            return 2

    class Descriptor:
        def __init__(self, *given: object, **fields: object) -> None:
            vars(self).update(zip(("base", "shape", "strides", "block_shape", "layout"), given, strict=False), **fields)

    class Jit:
        arg_names = ("a", "b", "c")

        def run(self, *args: object, **kwargs: object) -> tuple[object, ...]:
            return (*args, *kwargs.values())

    names: dict[str, object] = {"gl": gl, "KernelInterface": KernelInterface, "TileDescriptor": Descriptor}
    exec(HOST_TILES_SOURCES[mover], names)
    decorate = names["with_tile_layouts"]
    kernel = (decorate if mover == "tma" else decorate("a"))(Jit())  # type: ignore[operator]
    host = Descriptor(base=Tensor(), shape=[100, 90], strides=[90, 1], block_shape=[64, 32])
    laid_out = Descriptor(block_shape=[8], layout="mine")
    first, second, third = kernel.run(host, laid_out, c=7)
    assert (second, third, kernel.arg_names) == (laid_out, 7, Jit.arg_names)
    padded = gl.PaddedSharedLayout.with_identity_for([[128, 8]], [64, 32], [1, 0])
    assert first.layout == (gl.NVMMASharedLayout.get_default_for([64, 32], gl.float16) if mover == "tma" else padded)
    if mover == "tdm":
        stored = kernel.run(7, c=host)[1]
        assert stored.layout == gl.PaddedSharedLayout.with_identity_for([[32, 8]], [64, 32], [1, 0])
    assert first.base is host.base  # type: ignore[attr-defined]
    assert not hasattr(host, "layout")
