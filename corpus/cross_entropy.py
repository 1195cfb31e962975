"""Cross entropy over a large vocabulary: one online pass for the loss, one for the gradient in place."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits_ptr, labels_ptr, loss_ptr, lse_ptr,
    logits_stride, vocab_size, ignore_index,
    label_smoothing: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """loss = logsumexp(x) - x[label], smoothed if asked for; rows with `ignore_index` give zero."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    if label == ignore_index:
        tl.store(loss_ptr + row, 0.0)
        tl.store(lse_ptr + row, 0.0)
        return

    logits_ptr += row * logits_stride
    m = float("-inf")  # running maximum
    d = 0.0  # running sum of exp(x - m)
    total = 0.0  # sum of the logits, for smoothing
    for start in range(0, vocab_size, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + offs, mask=offs < vocab_size, other=float("-inf")).to(tl.float32)
        if label_smoothing > 0:
            total += tl.sum(tl.where(offs < vocab_size, x, 0.0))
        block_max = tl.max(x)
        m_new = tl.maximum(m, block_max)
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new

    lse = m + tl.log(d)
    x_label = tl.load(logits_ptr + label).to(tl.float32)
    loss = lse - x_label
    if label_smoothing > 0:
        smooth = lse - total / vocab_size
        loss = (1 - label_smoothing) * loss + label_smoothing * smooth
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)


@triton.jit
def cross_entropy_backward_kernel(
    logits_ptr, labels_ptr, lse_ptr, grad_ptr,
    logits_stride, vocab_size, ignore_index,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Overwrite logits with grad * (softmax(x) - onehot(label)); a block of a row a program."""
    row = tl.program_id(0).to(tl.int64)
    col_block = tl.program_id(1)
    offs = col_block * BLOCK + tl.arange(0, BLOCK)
    mask = offs < vocab_size
    logits_ptr += row * logits_stride + offs

    label = tl.load(labels_ptr + row)
    if label != ignore_index:
        grad = tl.load(grad_ptr + row)
        lse = tl.load(lse_ptr + row)
    else:
        grad = 0.0
        lse = 0.0

    x = tl.load(logits_ptr, mask=mask, other=0.0).to(tl.float32)
    p = tl.exp(x - lse)
    p = tl.where(offs == label, p - 1.0, p)
    tl.store(logits_ptr, p * grad, mask=mask)


def cross_entropy(
    logits: torch.Tensor,
    labels: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    block: int = 4096,
) -> tuple[torch.Tensor, torch.Tensor]:
    n_rows, vocab_size = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    lse = torch.empty_like(loss)
    cross_entropy_kernel[(n_rows,)](
        logits, labels, loss, lse, logits.stride(0), vocab_size, ignore_index,
        label_smoothing=label_smoothing, BLOCK=block, num_warps=8,
    )  # fmt: skip
    return loss, lse


def cross_entropy_backward(logits, labels, lse, grad, ignore_index: int = -100, block: int = 2048) -> torch.Tensor:
    n_rows, vocab_size = logits.shape
    cross_entropy_backward_kernel[(n_rows, triton.cdiv(vocab_size, block))](
        logits, labels, lse, grad, logits.stride(0), vocab_size, ignore_index, BLOCK=block
    )
    return logits
