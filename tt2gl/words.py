"""What converted code calls things, and what stands in it for others until a later stage writes those."""

from __future__ import annotations

ASYNC_LOAD = "async_load"
"""What converted code calls an asynchronous copy to shared memory, whatever the installed Triton calls it."""

HELPED = {
    "bitonic_merge": "merged_rows",
    "flip": "flipped",
    "softmax": "softmax_along",
    "sort": "sorted_rows",
    "topk": "top_of_rows",
}
"""Functions of Triton's, of several steps, that are helpers in a converted file."""

HOST_TILES = "with_tile_layouts"
"""The decorator of a kernel that the host gives tensor descriptors: Gluon wants the layout of their tiles."""

HOST_PARTS = "with_parts_of"
"""The decorator of a kernel that takes the parts of the host's tensor descriptors in their place."""

FITS_BUFFERS = "fits_buffers"
"""What says of a launch whether its tensors are small enough for buffer operations."""
ATOMIC_ADD = "atomic_add_by_buffer"
"""The function in converted files that adds by buffer operations where those are for the type of element."""

SIGNED_ATOMIC_ADD = "signed_atomic_add"
"""The function in converted files that adds signed integers by buffer operations."""

TMA_LOAD = "tma_load"
"""What converted code calls a copy of a tile by TMA to shared memory."""

TMA_STORE = "tma_store"
"""What it calls one from there."""

AS_OPERAND = "as_operand"
"""What puts a value that is computed into the registers of a product's operand, on AMD."""

STORE_AGAIN = "store_again"
"""The kind of a tile's store in a loop, which goes through shared memory that the loop's stores share."""

STORES_DONE = "tma.store_wait(0)"
"""The statement that waits for all stores of tiles by TMA."""

RING_MARK = "_tt2gl_ring_"
"""Begins the name of a call that stands for a slot of a ring, until the loop it is in is pipelined."""

PARTITIONED = "warp_specialize"
"""The option of a loop's range by which Triton gives parts of it warps of their own, kept until those are written."""

TCGEN05_MARK = "_tt2gl_tcgen05"
"""A call that stands for a product by `tcgen05_mma`, until it is known where its accumulator lives."""
