"""One AdamW step (Loshchilov and Hutter 2019), in place on parameter and moments."""

import torch
import triton
import triton.language as tl


@triton.jit
def moving_average(old, new, beta):
    return beta * old + (1.0 - beta) * new


@triton.jit
def adamw_kernel(
    param_ptr,
    grad_ptr,
    exp_avg_ptr,
    exp_avg_sq_ptr,
    n,
    lr: tl.float32,
    beta1: tl.float32,
    beta2: tl.float32,
    eps: tl.float32,
    weight_decay: tl.float32,
    bias_correction1: tl.float32,
    bias_correction2: tl.float32,
    MAXIMIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = idx < n
    param = tl.load(param_ptr + idx, mask=live).to(tl.float32)
    grad = tl.load(grad_ptr + idx, mask=live).to(tl.float32)
    if MAXIMIZE:
        grad = -grad
    m = moving_average(tl.load(exp_avg_ptr + idx, mask=live), grad, beta1)
    v = moving_average(tl.load(exp_avg_sq_ptr + idx, mask=live), grad * grad, beta2)

    # decay is decoupled: it does not pass through the moments
    param *= 1.0 - lr * weight_decay
    denom = tl.sqrt(v / bias_correction2) + eps
    param -= lr * (m / bias_correction1) / denom

    tl.store(param_ptr + idx, param.to(param_ptr.dtype.element_ty), mask=live)
    tl.store(exp_avg_ptr + idx, m, mask=live)
    tl.store(exp_avg_sq_ptr + idx, v, mask=live)


def adamw_step(
    param: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    step: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    maximize: bool = False,
    block: int = 1024,
) -> None:
    """Parameter and gradient of any float type; the moments are fp32."""
    n = param.numel()
    adamw_kernel[(triton.cdiv(n, block),)](
        param, grad, exp_avg, exp_avg_sq, n,
        lr, betas[0], betas[1], eps, weight_decay, 1.0 - betas[0] ** step, 1.0 - betas[1] ** step,
        MAXIMIZE=maximize, BLOCK=block,
    )  # fmt: skip
