"""GroupNorm over (batch, channels, pixels), with SiLU fused where asked for."""

import torch
import triton
import triton.language as tl


@triton.jit
def group_norm_kernel(
    x_ptr, y_ptr, gamma_ptr, beta_ptr,
    channels, pixels, eps,
    CHANNELS_PER_GROUP: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_P: tl.constexpr,
    ACTIVATION: tl.constexpr = "none",
):  # fmt: skip
    """One group of one image a program: tiles of BLOCK_C channels (all of the group) by BLOCK_P pixels."""
    tl.static_assert(BLOCK_C >= CHANNELS_PER_GROUP)
    group = tl.program_id(0)
    image = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, BLOCK_C)
    p = tl.arange(0, BLOCK_P)
    c_mask = c < CHANNELS_PER_GROUP
    base = (image * channels + group * CHANNELS_PER_GROUP) * pixels

    total = tl.zeros([BLOCK_C, BLOCK_P], dtype=tl.float32)
    squares = tl.zeros([BLOCK_C, BLOCK_P], dtype=tl.float32)
    for start in range(0, pixels, BLOCK_P):
        mask = c_mask[:, None] & (start + p[None, :] < pixels)
        x = tl.load(x_ptr + base + c[:, None] * pixels + start + p[None, :], mask=mask, other=0.0).to(tl.float32)
        total += x
        squares += x * x

    count = CHANNELS_PER_GROUP * pixels
    mean = tl.sum(tl.sum(total, axis=1), axis=0) / count
    var = tl.sum(tl.sum(squares, axis=1), axis=0) / count - mean * mean
    rstd = tl.rsqrt(var + eps)

    # y = x * a + b, a and b by channel
    gamma = tl.load(gamma_ptr + group * CHANNELS_PER_GROUP + c, mask=c_mask, other=0.0).to(tl.float32)
    beta = tl.load(beta_ptr + group * CHANNELS_PER_GROUP + c, mask=c_mask, other=0.0).to(tl.float32)
    a = gamma * rstd
    b = beta - mean * a
    for start in range(0, pixels, BLOCK_P):
        mask = c_mask[:, None] & (start + p[None, :] < pixels)
        offs = base + c[:, None] * pixels + start + p[None, :]
        x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        y = x * a[:, None] + b[:, None]
        if ACTIVATION == "silu":
            y = y * tl.sigmoid(y)
        tl.store(y_ptr + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


def group_norm(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    groups: int,
    eps: float = 1e-5,
    activation: str = "none",
    block_p: int = 512,
    num_warps: int = 4,
) -> torch.Tensor:
    batch, channels, pixels = x.shape
    y = torch.empty_like(x)
    group_norm_kernel[(groups, batch)](
        x, y, gamma, beta, channels, pixels, eps,
        CHANNELS_PER_GROUP=channels // groups,
        BLOCK_C=triton.next_power_of_2(channels // groups),
        BLOCK_P=block_p,
        ACTIVATION=activation,
        num_warps=num_warps,
    )  # fmt: skip
    return y
