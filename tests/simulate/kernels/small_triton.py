"""Triton's operations one or two at a time, for tests of each."""

import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=OTHER)
    tl.store(out_ptr + offsets, x)


@triton.jit
def unmasked_kernel(x_ptr, out_ptr, START: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets + START, tl.load(x_ptr + offsets))


@triton.jit
def scalars_kernel(x_ptr, out_ptr, n):
    pid = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    tl.store(out_ptr + pid, tl.load(x_ptr + pid, mask=pid < n, other=-1) + 1)


@triton.jit
def shapes_kernel(x_ptr, out_ptr):
    rows, columns = tl.arange(0, 4), tl.arange(0, 8)
    x = tl.load(x_ptr + rows[:, None] * 8 + columns[None, :])
    turned = tl.trans(x)
    both = tl.join(turned, tl.reshape(x, (8, 4)))
    first, second = tl.split(both)
    moved = tl.permute(both, (2, 0, 1))
    joined = tl.cat(tl.reshape(first, (32,)), tl.reshape(second, (32,)), can_reorder=True)
    tl.store(out_ptr + tl.arange(0, 64), joined)
    tl.store(out_ptr + 64 + tl.arange(0, 64), tl.reshape(moved, (64,)))


@triton.jit
def add_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    places = tl.load(index_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(out_ptr + places, tl.load(x_ptr + offsets, mask=mask, other=0.0), mask=mask)


@triton.jit
def kinds_kernel(x_ptr, index_ptr, out_ptr, before_ptr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pointers = out_ptr + tl.load(index_ptr + offsets)
    x = tl.load(x_ptr + offsets)
    if KIND == "add":
        before = tl.atomic_add(pointers, x)
    elif KIND == "max":
        before = tl.atomic_max(pointers, x)
    elif KIND == "min":
        before = tl.atomic_min(pointers, x)
    elif KIND == "and":
        before = tl.atomic_and(pointers, x)
    elif KIND == "or":
        before = tl.atomic_or(pointers, x)
    elif KIND == "xor":
        before = tl.atomic_xor(pointers, x)
    elif KIND == "xchg":
        before = tl.atomic_xchg(pointers, x)
    else:
        before = tl.atomic_cas(pointers, x - 1, x)
    tl.store(before_ptr + offsets, before)


@triton.jit
def count_kernel(count_ptr, ticket_ptr):
    tl.store(ticket_ptr + tl.program_id(0), tl.atomic_add(count_ptr, 1))


@triton.jit
def lock_kernel(lock_ptr, count_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(count_ptr, tl.load(count_ptr) + 1)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def sums_kernel(x_ptr, rows_ptr, columns_ptr, all_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(rows_ptr + tl.arange(0, M), tl.sum(x, 1))
    tl.store(columns_ptr + tl.arange(0, N), tl.max(x, 0))
    tl.store(all_ptr, tl.min(x))


@triton.jit
def argmax_kernel(x_ptr, value_ptr, index_ptr, M: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    x = tl.load(x_ptr + row[:, None] * N + tl.arange(0, N)[None, :])
    value, index = tl.max(x, 1, return_indices=True)
    tl.store(value_ptr + row, value)
    tl.store(index_ptr + row, index)


@triton.jit
def _pick_first(a, b):
    return a


@triton.jit
def _affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def scans_kernel(x_ptr, sums_ptr, slope_ptr, rest_ptr, REVERSE: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, 2)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(sums_ptr + offsets, tl.cumsum(x, 1, reverse=REVERSE))
    slope, rest = tl.associative_scan((x, x + 1), 1, _affine, reverse=REVERSE)
    tl.store(slope_ptr + offsets, slope)
    tl.store(rest_ptr + offsets, rest)


@triton.jit
def first_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.reduce(x, 0, _pick_first))


@triton.jit
def sort_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offsets)
    tl.store(out_ptr + tl.program_id(0) * BINS + tl.arange(0, BINS), tl.histogram(x, BINS, mask=offsets < n))


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + offsets, tl.gather(tl.load(x_ptr + offsets), tl.load(index_ptr + offsets), 0))


@triton.jit
def dot_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))


@triton.jit
def dot_scaled_kernel(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k, half, group = (
        tl.arange(0, M),
        tl.arange(0, N),
        tl.arange(0, K),
        tl.arange(0, K // 2),
        tl.arange(0, K // 32),
    )
    a = tl.load(a_ptr + m[:, None] * (K // 2) + half[None, :])
    a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + group[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + group[None, :])
    c = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e5m2")
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


@triton.jit
def _branching(a, b):
    if a > b:
        result = a - b
    else:
        result = b * 2
    return result, a


@triton.jit
def map_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    result, same = tl.map_elementwise(_branching, tl.load(x_ptr + offsets), tl.load(y_ptr + offsets))
    tl.store(out_ptr + offsets, result)
    tl.store(out_ptr + N + offsets, same)


@triton.jit
def _two(a, b):
    return b, a


@triton.jit
def pack_kernel(x_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    swapped = tl.map_elementwise(_two, tl.load(x_ptr + offsets), pack=2)
    tl.store(out_ptr + offsets, swapped[0])


@triton.jit
def block_pointer_kernel(x_ptr, out_ptr, m, n, PADDING: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (m, n), (n, 1), (tl.program_id(0) * 4, 0), (4, 8), (1, 0))
    out = tl.make_block_ptr(out_ptr, (m, 16), (16, 1), (tl.program_id(0) * 4, 0), (4, 8), (1, 0))
    for _ in range(2):
        tile = tl.load(x, boundary_check=(0, 1), padding_option=PADDING)
        tl.store(out, tile, boundary_check=(0,))
        x = tl.advance(x, (0, 8))
        out = tl.advance(out, (0, 8))


@triton.jit
def descriptor_kernel(x_ptr, out_ptr, m, n, PADDING: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [4, 8], padding_option=PADDING)
    out = tl.make_tensor_descriptor(out_ptr, [m, 12], [16, 1], [4, 8])
    row = tl.program_id(0) * 4
    for column in range(0, 16, 8):
        out.store([row, column], x.load([row - 1, column]))


@triton.jit
def host_descriptor_kernel(x_desc, out_desc):
    row = tl.program_id(0) * 4
    for column in range(0, x_desc.shape[1], 8):
        out_desc.store([row, column], x_desc.load([row, column]) + x_desc.strides[0].to(tl.float32))


@triton.jit
def rows_kernel(x_ptr, rows_ptr, out_ptr, m, n):
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [1, 8])
    out = tl.make_tensor_descriptor(out_ptr, [m, n], [n, 1], [1, 8])
    rows = tl.load(rows_ptr + tl.arange(0, 8))
    out.scatter(x.gather(rows, 8), tl.arange(0, 8), 0)


@triton.jit
def descriptor_add_kernel(x_ptr, out_ptr, m, n):
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [4, 8])
    out = tl.make_tensor_descriptor(out_ptr, [m, n], [n, 1], [4, 8])
    out.atomic_add([tl.program_id(0), 0], x.load([0, 0]))


@triton.jit
def checks_kernel(x_ptr, n):
    tl.device_assert(tl.load(x_ptr) == n, "they differ")
    tl.assume(n > 3)
    tl.device_print("n", n)
