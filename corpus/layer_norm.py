"""LayerNorm: forward with the row in registers, forward in a loop, backward with partial weight gradients."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_forward_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr,
    row_stride, n_cols, eps,
    BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """A row a program. `b_ptr` may be None."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * row_stride + cols, mask=mask, other=0.0).to(tl.float32)

    mean = tl.sum(x, axis=0) / n_cols
    # masked columns must not count as (0 - mean)
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centred * centred, axis=0) / n_cols
    rstd = tl.rsqrt(var + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)

    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    y = centred * rstd * w
    if b_ptr is not None:
        y += tl.load(b_ptr + cols, mask=mask).to(tl.float32)
    tl.store(y_ptr + row * row_stride + cols, y, mask=mask)


@triton.jit
def welford_update(x, mask, mean, m2, count):
    """One block into the running mean, sum of squared deviations and count of each lane."""
    count_new = count + mask.to(tl.float32)
    delta = tl.where(mask, x - mean, 0.0)
    # a lane that has seen nothing yet divides zero by one
    mean_new = mean + delta / tl.maximum(count_new, 1.0)
    m2_new = m2 + delta * tl.where(mask, x - mean_new, 0.0)
    return mean_new, m2_new, count_new


@triton.jit
def layer_norm_loop_kernel(X, Y, W, B, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    """Rows of any length: Welford's update a lane, the lanes combined once (Chan et al. 1983)."""
    row = tl.program_id(0).to(tl.int64)
    X += row * stride
    Y += row * stride

    mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    m2 = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    count = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, N, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        mean, m2, count = welford_update(x, cols < N, mean, m2, count)

    row_mean = tl.sum(mean * count, axis=0) / N
    shift = mean - row_mean
    var = tl.sum(m2 + shift * shift * count, axis=0) / N
    rstd = 1.0 / tl.sqrt(var + eps)

    for start in range(0, N, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(W + cols, mask=mask).to(tl.float32)
        b = tl.load(B + cols, mask=mask).to(tl.float32)
        tl.store(Y + cols, (x - row_mean) * rstd * w + b, mask=mask)


@triton.jit
def layer_norm_backward_kernel(
    DX, DY, X, W, MEAN, RSTD,
    DW_PARTIAL, DB_PARTIAL,
    stride_row, stride_partial,
    n_rows, n_cols,
    rows_per_program,
    BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    """Each program walks a run of rows and carries its share of dw and db in registers."""
    pid = tl.program_id(0)
    row_start = pid * rows_per_program
    row_end = tl.minimum(row_start + rows_per_program, n_rows)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols

    w = tl.load(W + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    db = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    inv_n = 1.0 / n_cols

    for row in range(row_start, row_end):
        x = tl.load(X + row * stride_row + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(DY + row * stride_row + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(MEAN + row)
        rstd = tl.load(RSTD + row)

        x_hat = tl.where(mask, (x - mean) * rstd, 0.0)
        wdy = w * dy
        c1 = tl.sum(x_hat * wdy, axis=0) * inv_n
        c2 = tl.sum(wdy, axis=0) * inv_n
        dx = (wdy - (x_hat * c1 + c2)) * rstd
        tl.store(DX + row * stride_row + cols, dx.to(DX.dtype.element_ty), mask=mask)

        dw += dy * x_hat
        db += dy

    # fp32 partial sums, one row a program: the host adds them up
    tl.store(DW_PARTIAL + pid * stride_partial + cols, dw, mask=mask)
    tl.store(DB_PARTIAL + pid * stride_partial + cols, db, mask=mask)


def layer_norm_forward(x, weight, bias=None, eps: float = 1e-5):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    mean = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    layer_norm_forward_kernel[(n_rows,)](
        x, y, weight, bias, mean, rstd, x.stride(0), n_cols, eps,
        BLOCK_SIZE=BLOCK_SIZE, num_warps=min(max(BLOCK_SIZE // 256, 1), 16),
    )  # fmt: skip
    return y, mean, rstd


def layer_norm_long(x, weight, bias, eps: float = 1e-5, block_size: int = 4096):
    y = torch.empty_like(x)
    layer_norm_loop_kernel[(x.shape[0],)](
        x, y, weight, bias, x.stride(0), x.shape[1], eps, BLOCK_SIZE=block_size, num_warps=8
    )
    return y


def layer_norm_backward(dy, x, weight, mean, rstd, programs: int = 264):
    n_rows, n_cols = x.shape
    dx = torch.empty_like(x)
    rows_per_program = triton.cdiv(n_rows, programs)
    programs = triton.cdiv(n_rows, rows_per_program)
    dw = torch.empty((programs, n_cols), dtype=torch.float32, device=x.device)
    db = torch.empty_like(dw)
    layer_norm_backward_kernel[(programs,)](
        dx, dy, x, weight, mean, rstd, dw, db, x.stride(0), dw.stride(0), n_rows, n_cols, rows_per_program,
        BLOCK_SIZE=triton.next_power_of_2(n_cols), num_warps=8,
    )  # fmt: skip
    return dx, dw.sum(dim=0).to(weight.dtype), db.sum(dim=0).to(weight.dtype)
