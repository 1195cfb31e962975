"""Rule `tiles`: a load or store through a tensor descriptor becomes a copy by TMA or TDM, through shared memory.

q = q_desc.load([start_m, 0])                           # before
o_desc.store([start_m, 0], acc)

q = load_tile(q_desc, [start_m, 0]).load(q_layout)      # after: without `.load(...)` where a product reads it in place
store_tile(o_desc, [start_m, 0], acc)

The converted file carries the two functions that are called. A load in a loop that is pipelined goes through a ring
instead (`pipelining.tma`). A kernel whose descriptors the host makes gets a decorator, since Gluon's have a layout.
"""

from __future__ import annotations

from collections import Counter

import libcst as cst

from tt2gl.rewrite.build import MARK, expression
from tt2gl.visitors import Reader
from tt2gl.words import HOST_TILES, RING_MARK, STORE_AGAIN

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

STORE_AGAIN_SOURCE = f'''@gluon.jit
def {STORE_AGAIN}_tile(desc, offsets, value, tile):
    """Store a tile by TMA, through shared memory that the store before may still be read from."""
    tma.store_wait(0)
    tile.store(value.to(desc.dtype))
    fence_async_shared()
    tma_store(desc, offsets, tile)
'''
"""The same where stores follow each other: the next one waits for it, or who has made `tile`."""

ATOMIC_TILE_SOURCES = {
    name: f'''@gluon.jit
def {name}_tile(desc, offsets, value):
    """Combine a tile with what memory has, by TMA, through shared memory."""
    tile = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout, value.to(desc.dtype))
    fence_async_shared()
    tma.async_{name}(desc, offsets, tile)
    tma.store_wait(0)
'''
    for name in ("atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor")
}
"""What does an atomic of TMA, by the descriptor's method."""

GATHER_TILE_SOURCE = '''@gluon.jit
def gather_tile(desc, x_offsets, y_offset):
    """Shared memory with rows that TMA has put there."""
    row_layout: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, gl.num_warps()], [1, 0]))
    tile = gl.allocate_shared_memory(desc.dtype, [x_offsets.shape[0], desc.block_shape[1]], desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x_offsets.shape[0] * desc.block_type.nbytes)
    async_gather(desc, gl.convert_layout(x_offsets, row_layout), y_offset, bar, tile)
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    return tile
'''
"""The load of rows by TMA, which wants four offsets a lane."""

SCATTER_TILE_SOURCE = '''@gluon.jit
def scatter_tile(desc, value, x_offsets, y_offset):
    """Store rows by TMA, through shared memory."""
    row_layout: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, gl.num_warps()], [1, 0]))
    tile = gl.allocate_shared_memory(desc.dtype, value.shape, desc.layout, value.to(desc.dtype))
    fence_async_shared()
    async_scatter(desc, gl.convert_layout(x_offsets, row_layout), y_offset, tile)
    tma.store_wait(0)
'''
"""The same for a store of rows."""


_TMA_HOST_TILES_SOURCE = f'''def {HOST_TILES}(kernel):
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

_TDM_HOST_TILES_SOURCE = f'''def {HOST_TILES}(*loaded):
    """What gives a kernel's descriptors from the host the layout of their tiles in LDS.

    A tile that is stored may have padding after each row alone; `loaded` are those that are not.
    """

    def given(name, value):
        if not hasattr(value, "block_shape") or hasattr(value, "layout"):
            return value
        assert getattr(value, "padding", "zero") == "zero", "the data mover has zeros outside"
        shape, bits = list(value.block_shape), 8 * value.base.element_size()
        interval = max(shape[-1], 2048 // bits) if name in loaded else shape[-1]
        order = list(range(len(shape)))[::-1]
        layout = gl.PaddedSharedLayout.with_identity_for([[interval, 128 // bits]], shape, order)
        return TileDescriptor(value.base, value.shape, value.strides, shape, layout)

    class Kernel(KernelInterface):
        def __init__(self, kernel):
            self.fn, self.arg_names = kernel, kernel.arg_names

        def run(self, *args, **kwargs):
            args = [given(name, value) for name, value in zip(self.arg_names, args)]
            return self.fn.run(*args, **{{name: given(name, value) for name, value in kwargs.items()}})

    return Kernel
'''

HOST_TILES_SOURCES = {"tma": _TMA_HOST_TILES_SOURCE, "tdm": _TDM_HOST_TILES_SOURCE, "": ""}
"""The decorator of kernels that the host gives descriptors, by what copies tiles."""


def with_tile_layouts(function: cst.FunctionDef, mover: str = "tma") -> cst.FunctionDef:
    """A kernel that the host gives descriptors, under the decorator that gives them layouts: innermost but one.

    AMD's is told which descriptors are only loaded through.
    """
    *outer, jit = function.decorators
    told = ", ".join(f'"{name}"' for name in _only_loaded(function)) if mover == "tdm" else "x"
    call = expression(f"{HOST_TILES}({told})")
    assert isinstance(call, cst.Call)
    return function.with_changes(decorators=[*outer, cst.Decorator(call if mover == "tdm" else call.func), jit])


def _only_loaded(function: cst.FunctionDef) -> list[str]:
    """The parameters of a converted kernel through which tiles are loaded, and which are used for nothing else."""
    uses = _Uses()
    function.body.visit(uses)
    names = [each.name.value for each in function.params.params]
    return [name for name in names if uses.loads[name] and not uses.others[name]]


# How the functions that load tiles are called until the file is put together.
_LOADS = (f"{MARK}{RING_MARK}", f"{MARK}load_tile")


class _Uses(Reader):
    """How often each name is what a tile is loaded through, and how often it is anything else."""

    def __init__(self) -> None:
        self.loads: Counter[str] = Counter()
        self.others: Counter[str] = Counter()

    def visit_Call(self, node: cst.Call) -> None:
        """Note a load, whose descriptor is not anything else."""
        called = node.func.value if isinstance(node.func, cst.Name) else ""
        if node.args and called.startswith(_LOADS):
            through = node.args[0].value
            if isinstance(through, cst.Name):
                self.loads[through.value] += 1
                self.others[through.value] -= 1

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        """What is asked of a descriptor changes nothing."""
        return not isinstance(node.value, cst.Name)

    def visit_Name(self, node: cst.Name) -> None:
        """Note a use."""
        self.others[node.value] += 1


def through_tile(node: cst.Call, kind: str) -> cst.Call:
    """A load or store by a descriptor's method, or by a function of Triton's, as a call of the file's own function."""
    args = list(node.args)
    if isinstance(node.func, cst.Attribute) and not node.func.attr.value.endswith("_tensor_descriptor"):
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if args else cst.MaybeSentinel.DEFAULT
        args = [cst.Arg(node.func.value, comma=comma), *args]
    return node.with_changes(func=expression(f"{kind}_tile(x)").func, args=args)  # type: ignore[attr-defined]
