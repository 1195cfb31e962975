"""The functions that converted files carry along, by the names that their text calls them by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tt2gl.amd_matrix_layouts import (
    EXCHANGED_SOURCE,
    MFMA_SHAPE_SOURCE,
    ROW_WARPS_SOURCE,
    TILE_WARPS_SOURCE,
    WMMA_SOURCE,
)
from tt2gl.amd_shared_layouts import (
    AS_OPERAND_SOURCE,
    BANKED_SOURCE,
    IN_THREADS_SOURCE,
    ROTATING_SOURCE,
    TURNED_TILE,
    TURNED_TILE_SOURCE,
)
from tt2gl.layouts import (
    COALESCED_BLOCKS_SOURCE,
    NARROWED_SOURCE,
    PAIRED_SOURCE,
    RESHAPED_SOURCE,
    WIDENED_SOURCE,
    WITH_PAIRS_SOURCE,
    coalesced_source,
)
from tt2gl.matrix_layouts import (
    BATCHED_MMA_V2_SOURCE,
    CHAINED_WGMMA_SOURCE,
    MMA_V2_SOURCE,
    TURNED_SOURCE,
    WGMMA_SOURCE,
    fma_source,
)
from tt2gl.padded_layouts import DIRECT_SOURCE, LINED_SOURCE, SPACED_SOURCE, STAGGERED_SOURCE
from tt2gl.plan import FunctionPlan
from tt2gl.rewrite.buffer_ops import atomic_add_source, signed_atomic_add_source
from tt2gl.rewrite.dots import MFMA_F8F6F4_SOURCE, MFMA_TF32_SOURCE, MMA_V2_SCALED_SOURCE
from tt2gl.rewrite.flips import FLIPPED_SOURCE, HALVINGS_SOURCE
from tt2gl.rewrite.guards import FITS_BUFFERS_SOURCE
from tt2gl.rewrite.host_parts import HOST_PARTS_SOURCE
from tt2gl.rewrite.index_reductions import combine_sources, helper_source
from tt2gl.rewrite.scaled_dots import BLOCK_SCALE_SOURCE, UPCAST_SOURCES
from tt2gl.rewrite.softmaxes import SOFTMAX_SOURCE
from tt2gl.rewrite.sorts import MERGED_ROWS_SOURCE, SORTED_ROWS_SOURCE, SORTING_SOURCES, TOP_OF_ROWS_SOURCE
from tt2gl.rewrite.tiles import (
    ATOMIC_TILE_SOURCES,
    GATHER_TILE_SOURCE,
    HOST_TILES_SOURCES,
    LOAD_TILE_SOURCES,
    SCATTER_TILE_SOURCE,
    STORE_AGAIN_SOURCE,
    STORE_TILE_SOURCES,
)
from tt2gl.scale_layouts import OPERAND_SCALES_SOURCE
from tt2gl.shared_layouts import SWIZZLED_SOURCE
from tt2gl.targets import Target, mover
from tt2gl.tensor_memory_layouts import (
    LOADED_FOR_ROWS_SOURCE,
    LOADED_IN_PARTS_SOURCE,
    LOADED_SOURCE,
    SCALES_SOURCE,
    TENSOR_MEMORY_SOURCE,
)
from tt2gl.words import AS_OPERAND, ATOMIC_ADD, FITS_BUFFERS, HOST_PARTS, HOST_TILES, SIGNED_ATOMIC_ADD, STORE_AGAIN


def layout_helpers(functions: Sequence[FunctionPlan], target: Target) -> tuple[str, ...]:
    """The sources of the functions that the plans' layouts call."""
    said = [text for function in functions for text in function.layouts()]
    called = {name for text in said for name in re.findall(r"\w+(?=\()", text)}
    needed = [part for name, parts in _HELPERS.items() if name in called for part in parts]
    return tuple(dict.fromkeys(part if isinstance(part, str) else part(target) for part in needed))


def _coalesced(target: Target) -> str:
    return coalesced_source(target.warp_size)


_HELPERS: Mapping[str, tuple[str | Callable[[Target], str], ...]] = {
    "coalesced": (_coalesced,),
    "tile_warps": (TILE_WARPS_SOURCE,),
    "row_warps": (ROW_WARPS_SOURCE,),
    "mfma_shape": (MFMA_SHAPE_SOURCE,),
    "wmma_layout": (WMMA_SOURCE,),
    "mfma_tf32": (MFMA_TF32_SOURCE,),
    "mfma_f8f6f4": (MFMA_F8F6F4_SOURCE,),
    "mma_v2_scaled": (MMA_V2_SCALED_SOURCE,),
    "operand_scales_layout": (OPERAND_SCALES_SOURCE,),
    "coalesced_blocks": (_coalesced, COALESCED_BLOCKS_SOURCE),
    "paired": (PAIRED_SOURCE,),
    "with_pairs": (WITH_PAIRS_SOURCE,),
    "widened": (WIDENED_SOURCE,),
    "narrowed": (NARROWED_SOURCE,),
    "reshaped": (RESHAPED_SOURCE,),
    "mma_v2_layout": (MMA_V2_SOURCE,),
    "batched_mma_v2_layout": (MMA_V2_SOURCE, BATCHED_MMA_V2_SOURCE),
    "wgmma_layout": (WGMMA_SOURCE,),
    "chained_wgmma_layout": (CHAINED_WGMMA_SOURCE,),
    "fma_layout": (lambda target: fma_source(target.warp_size),),
    "swizzled_layout": (SWIZZLED_SOURCE,),
    "banked_layout": (BANKED_SOURCE,),
    "rotating_layout": (ROTATING_SOURCE,),
    AS_OPERAND: (BANKED_SOURCE, AS_OPERAND_SOURCE),
    TURNED_TILE: (IN_THREADS_SOURCE, TURNED_TILE_SOURCE),
    "staggered_layout": (STAGGERED_SOURCE,),
    "direct_layout": (DIRECT_SOURCE,),
    "spaced_layout": (SPACED_SOURCE,),
    "lined_layout": (LINED_SOURCE,),
    "tensor_memory_layout": (TENSOR_MEMORY_SOURCE,),
    "loaded_layout": (LOADED_SOURCE,),
    "scales_layout": (SCALES_SOURCE,),
    "loaded_for_rows_layout": (LOADED_SOURCE, LOADED_FOR_ROWS_SOURCE),
    "loaded_in_parts_layout": (LOADED_IN_PARTS_SOURCE,),
    "load_tile": (lambda target: LOAD_TILE_SOURCES[mover(target)],),
    "upcast": (lambda target: UPCAST_SOURCES[target.scaling],),
    "block_scale_layout": (BLOCK_SCALE_SOURCE,),
    "flipped": (HALVINGS_SOURCE, FLIPPED_SOURCE),
    "softmax_along": (SOFTMAX_SOURCE,),
    "merged_rows": (*SORTING_SOURCES, MERGED_ROWS_SOURCE),
    "sorted_rows": (*SORTING_SOURCES, SORTED_ROWS_SOURCE),
    "top_of_rows": (*SORTING_SOURCES, TOP_OF_ROWS_SOURCE),
    "turned": (TURNED_SOURCE,),
    "exchanged": (EXCHANGED_SOURCE,),
    "store_tile": (lambda target: STORE_TILE_SOURCES[mover(target)],),
    f"{STORE_AGAIN}_tile": (STORE_AGAIN_SOURCE,),
    "gather_tile": (GATHER_TILE_SOURCE,),
    "scatter_tile": (SCATTER_TILE_SOURCE,),
    **{f"{name}_tile": (source,) for name, source in ATOMIC_TILE_SOURCES.items()},
    HOST_PARTS: (HOST_PARTS_SOURCE,),
    HOST_TILES: (lambda target: HOST_TILES_SOURCES[mover(target)],),
    FITS_BUFFERS: (FITS_BUFFERS_SOURCE,),
    ATOMIC_ADD: (lambda target: atomic_add_source(target.buffers),),
    SIGNED_ATOMIC_ADD: (lambda target: signed_atomic_add_source(target.buffers),),
    **{f"{name}_with_index": (*combine_sources(name), helper_source(name)) for name in ("max", "min")},
}
"""What each needs, itself last: source, or what gives a target's. Files carry them in this order."""
