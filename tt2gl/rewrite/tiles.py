"""Rule `tiles`: a load or store through a tensor descriptor becomes a copy by TMA or TDM, through shared memory.

q = q_desc.load([start_m, 0])                           # before
o_desc.store([start_m, 0], acc)

q = load_tile(q_desc, [start_m, 0]).load(q_layout)      # after: without `.load(...)` where a product reads it in place
store_tile(o_desc, [start_m, 0], acc)

The converted file carries the two functions that are called. A load in a loop that is pipelined goes through a ring
instead (`pipelining.tma`). A kernel whose descriptors the host makes gets a decorator, since Gluon's have a layout.
"""

from __future__ import annotations

import libcst as cst

from tt2gl.plan import HOST_TILES
from tt2gl.rewrite.build import expression

_TMA_LOAD_SOURCE = '''@gluon.jit
def load_tile(desc, offsets):
    """Shared memory with a tile that TMA has put there."""
    tile = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, desc.block_type.nbytes)
    tma_load(desc, offsets, bar, tile)
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    return tile
'''

_TDM_LOAD_SOURCE = '''@gluon.jit
def load_tile(desc, offsets):
    """LDS with a tile that the data mover has put there."""
    tile = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    tdm.async_load(desc, offsets, tile)
    tdm.async_wait(0)
    return tile
'''

LOAD_TILE_SOURCES = {"tma": _TMA_LOAD_SOURCE, "tdm": _TDM_LOAD_SOURCE, "": ""}
"""`load_tile`, by what copies tiles."""

_TMA_STORE_SOURCE = '''@gluon.jit
def store_tile(desc, offsets, value):
    """Store a tile by TMA, through shared memory."""
    tile = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout, value.to(desc.dtype))
    fence_async_shared()
    tma_store(desc, offsets, tile)
    tma.store_wait(0)
'''

_TDM_STORE_SOURCE = '''@gluon.jit
def store_tile(desc, offsets, value):
    """Store a tile by the data mover, through LDS."""
    tile = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout, value.to(desc.dtype))
    tdm.async_store(desc, offsets, tile)
    tdm.async_wait(0)
'''

STORE_TILE_SOURCES = {"tma": _TMA_STORE_SOURCE, "tdm": _TDM_STORE_SOURCE, "": ""}
"""`store_tile`, by what copies tiles."""


HOST_TILES_SOURCE = f'''def {HOST_TILES}(kernel):
    """The kernel, with descriptors from the host given the layout that their tiles have in shared memory."""

    def given(value):
        if not hasattr(value, "block_shape") or hasattr(value, "layout"):
            return value
        dtype = gl.dtype(f"int{{8 * value.base.element_size()}}")
        layout = gl.NVMMASharedLayout.get_default_for(list(value.block_shape), dtype)
        return TileDescriptor(**vars(value), layout=layout)

    class Kernel(KernelInterface):
        def __init__(self):
            self.fn, self.arg_names = kernel, kernel.arg_names

        def run(self, *args, **kwargs):
            return kernel.run(*map(given, args), **{{name: given(value) for name, value in kwargs.items()}})

    return Kernel()
'''


def with_tile_layouts(function: cst.FunctionDef) -> cst.FunctionDef:
    """A kernel that the host gives descriptors, under the decorator that gives them layouts: innermost but one."""
    *outer, jit = function.decorators
    return function.with_changes(decorators=[*outer, cst.Decorator(expression(f"{HOST_TILES}(x)").func), jit])  # type: ignore[attr-defined]


def through_tile(node: cst.Call, kind: str) -> cst.Call:
    """A load or store by a descriptor's method, or by a function of Triton's, as a call of the file's own function."""
    args = list(node.args)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("load", "store"):
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if args else cst.MaybeSentinel.DEFAULT
        args = [cst.Arg(node.func.value, comma=comma), *args]
    return node.with_changes(func=expression(f"{kind}_tile(x)").func, args=args)  # type: ignore[attr-defined]
