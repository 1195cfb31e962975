"""References of elementwise kernels, of kernels on rows, and of copies."""

from __future__ import annotations

import torch

from corpus.references.base import Arguments, Expected, Tolerance, given, reference

# ------------------------------------------------------------------------------------------------- copies, transpose


@reference("copies", "copy_kernel")
def _copy(args: Arguments, constexprs: Arguments) -> Expected:
    return {"dst_ptr": args["src_ptr"]}


@reference("copies", "copy_2d_kernel")
def _copy_2d(args: Arguments, constexprs: Arguments) -> Expected:
    return {"dst_ptr": args["src_ptr"].to(args["dst_ptr"].dtype)}


@reference("copies", "strided_rows_kernel")
def _strided_rows(args: Arguments, constexprs: Arguments) -> Expected:
    return {"dst_ptr": args["src_ptr"][:: constexprs["STEP"]]}


@reference("transpose", "transpose_kernel")
def _transpose(args: Arguments, constexprs: Arguments) -> Expected:
    return {"y_ptr": args["x_ptr"].T}


@reference("transpose", "batched_transpose_kernel")
def _batched_transpose(args: Arguments, constexprs: Arguments) -> Expected:
    return {"y_ptr": args["x_ptr"].double().transpose(1, 2) * constexprs["SCALE"]}


# ------------------------------------------------------------------------------------------------------- elementwise


@reference("elementwise", "add_kernel")
def _add(args: Arguments, constexprs: Arguments) -> Expected:
    x, y, alpha = given(args, constexprs, "x_ptr", "y_ptr", "alpha")
    return {"out_ptr": x + alpha * y}


@reference("elementwise", "swiglu_forward_kernel")
def _swiglu_forward(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = given(args, constexprs, "a_ptr", "b_ptr")
    return {"c_ptr": torch.nn.functional.silu(a) * b}


@reference("elementwise", "swiglu_backward_kernel")
def _swiglu_backward(args: Arguments, constexprs: Arguments) -> Expected:
    dc, a, b = given(args, constexprs, "dc_ptr", "a_ptr", "b_ptr")
    a.requires_grad_()
    b.requires_grad_()
    (torch.nn.functional.silu(a) * b).backward(dc)
    return {"a_ptr": a.grad, "b_ptr": b.grad}


@reference("elementwise", "gelu_tanh_kernel")
def _gelu_tanh(args: Arguments, constexprs: Arguments) -> Expected:
    x, gate = given(args, constexprs, "x_ptr", "gate_ptr")
    y = torch.nn.functional.gelu(x, approximate="tanh")
    return {"y_ptr": y * gate if constexprs["HAS_GATE"] else y}


@reference("dropout", "dropout_kernel")
def _dropout(args: Arguments, constexprs: Arguments) -> Expected:
    x, p, seed = given(args, constexprs, "x_ptr", "p", "seed")
    # the kernel's p is a float, and decides by comparison
    keep = _uniform(seed, x.numel()).double() > torch.tensor(p, dtype=torch.float32).double()
    return {"out_ptr": torch.where(keep.view(x.shape), x / (1 - p), 0.0)}


def _uniform(seed: int, count: int) -> torch.Tensor:
    """`tl.rand(seed, offset)` for offsets 0 to count - 1: the first word of Philox 4x32-10 (Salmon et al. 2011)."""
    low32 = 0xFFFFFFFF
    c0 = torch.arange(count, dtype=torch.int64)
    c1, c2, c3 = (torch.zeros_like(c0) for _ in range(3))
    k0, k1 = seed & low32, seed >> 32 & low32
    for _ in range(10):
        high_a, low_a = _multiply_32(c0, 0xD2511F53)
        high_b, low_b = _multiply_32(c2, 0xCD9E8D57)
        c0, c1, c2, c3 = high_b ^ c1 ^ k0, low_b, high_a ^ c3 ^ k1, low_a
        k0, k1 = k0 + 0x9E3779B9 & low32, k1 + 0xBB67AE85 & low32
    signed = torch.where(c0 >= 2**31, c0 - 2**32, c0)
    magnitude = torch.where(signed < 0, -signed - 1, signed)
    # Triton's factor: the largest float that keeps 2^31 - 1 below one
    return magnitude.float() * 4.6566127342e-10


def _multiply_32(a: torch.Tensor, b: int) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low 32 bits of a product of 32-bit numbers, in halves, as int64 would overflow."""
    low, high = a * (b & 0xFFFF), a * (b >> 16)
    middle = (low >> 16) + high
    return middle >> 16, (middle & 0xFFFF) << 16 | low & 0xFFFF


@reference("adamw", "adamw_kernel")
def _adamw(args: Arguments, constexprs: Arguments) -> Expected:
    param, grad, m, v = given(args, constexprs, "param_ptr", "grad_ptr", "exp_avg_ptr", "exp_avg_sq_ptr")
    lr, beta1, beta2, eps = given(args, constexprs, "lr", "beta1", "beta2", "eps")
    decay, correction1, correction2 = given(args, constexprs, "weight_decay", "bias_correction1", "bias_correction2")
    grad = -grad if constexprs["MAXIMIZE"] else grad
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    param = param * (1 - lr * decay) - lr * (m / correction1) / ((v / correction2).sqrt() + eps)
    return {"param_ptr": param, "exp_avg_ptr": m, "exp_avg_sq_ptr": v}


# ----------------------------------------------------------------------------------------------------------- softmax


@reference("softmax", "softmax_kernel")
def _softmax(args: Arguments, constexprs: Arguments) -> Expected:
    return {"out_ptr": args["in_ptr"].double().softmax(-1)}


@reference("softmax", "online_softmax_kernel")
def _online_softmax(args: Arguments, constexprs: Arguments) -> Expected:
    x, lengths, scale = given(args, constexprs, "in_ptr", "lengths_ptr", "scale")
    if constexprs["HAS_LENGTHS"]:
        x = x.masked_fill(torch.arange(x.shape[1]) >= lengths[:, None], float("-inf"))
    return {"out_ptr": (x * scale).softmax(-1)}


@reference("softmax", "softmax_backward_kernel")
def _softmax_backward(args: Arguments, constexprs: Arguments) -> Expected:
    y, dy = given(args, constexprs, "y_ptr", "dy_ptr")
    return {"dx_ptr": y * (dy - (y * dy).sum(-1, keepdim=True))}


# ------------------------------------------------------------------------------------------------------------- norms


@reference("rms_norm", "rms_norm_kernel")
def _rms_norm(args: Arguments, constexprs: Arguments) -> Expected:
    x, w, eps = given(args, constexprs, "X_ptr", "W_ptr", "eps")
    rstd = (x.square().mean(-1) + eps).rsqrt()
    return {"Y_ptr": x * rstd[:, None] * (constexprs["offset"] + w), "RSTD_ptr": rstd}


@reference("rms_norm", "rms_norm_loop_kernel")
def _rms_norm_loop(args: Arguments, constexprs: Arguments) -> Expected:
    x, w, eps = given(args, constexprs, "x_ptr", "w_ptr", "eps")
    return {"y_ptr": x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * w}


@reference("layer_norm", "layer_norm_forward_kernel")
def _layer_norm_forward(args: Arguments, constexprs: Arguments) -> Expected:
    x, w, b, eps = given(args, constexprs, "x_ptr", "w_ptr", "b_ptr", "eps")
    return {
        "y_ptr": torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, eps),
        "mean_ptr": x.mean(-1),
        "rstd_ptr": (x.var(-1, correction=0) + eps).rsqrt(),
    }


@reference("layer_norm", "layer_norm_loop_kernel")
def _layer_norm_loop(args: Arguments, constexprs: Arguments) -> Expected:
    x, w, b, eps = given(args, constexprs, "X", "W", "B", "eps")
    return {"Y": torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, eps)}


@reference("layer_norm", "layer_norm_backward_kernel")
def _layer_norm_backward(args: Arguments, constexprs: Arguments) -> Expected:
    dy, x, w, mean, rstd = given(args, constexprs, "DY", "X", "W", "MEAN", "RSTD")
    # by the formula rather than by autograd: mean and rstd are inputs here
    x_hat = (x - mean[:, None]) * rstd[:, None]
    wdy = w * dy
    c1 = (x_hat * wdy).mean(-1, keepdim=True)
    c2 = wdy.mean(-1, keepdim=True)
    rows = given(args, constexprs, "rows_per_program")[0]
    return {
        "DX": (wdy - x_hat * c1 - c2) * rstd[:, None],
        "DW_PARTIAL": torch.stack([part.sum(0) for part in (dy * x_hat).split(rows)]),
        "DB_PARTIAL": torch.stack([part.sum(0) for part in dy.split(rows)]),
    }


@reference("group_norm", "group_norm_kernel")
def _group_norm(args: Arguments, constexprs: Arguments) -> Expected:
    x, gamma, beta, eps = given(args, constexprs, "x_ptr", "gamma_ptr", "beta_ptr", "eps")
    groups = x.shape[1] // constexprs["CHANNELS_PER_GROUP"]
    y = torch.nn.functional.group_norm(x, groups, gamma, beta, eps)
    return {"y_ptr": torch.nn.functional.silu(y) if constexprs["ACTIVATION"] == "silu" else y}


# ----------------------------------------------------------------------------------------------------- cross entropy


@reference("cross_entropy", "cross_entropy_kernel")
def _cross_entropy(args: Arguments, constexprs: Arguments) -> Expected:
    x, labels, ignored = given(args, constexprs, "logits_ptr", "labels_ptr", "ignore_index")
    loss = torch.nn.functional.cross_entropy(
        x, labels, ignore_index=ignored, reduction="none", label_smoothing=constexprs["label_smoothing"]
    )
    return {"loss_ptr": loss, "lse_ptr": x.logsumexp(-1).masked_fill(labels == ignored, 0.0)}


@reference("cross_entropy", "cross_entropy_backward_kernel")
def _cross_entropy_backward(args: Arguments, constexprs: Arguments) -> Expected:
    x, lse, grad = given(args, constexprs, "logits_ptr", "lse_ptr", "grad_ptr")
    labels, ignored = given(args, constexprs, "labels_ptr", "ignore_index")
    one_hot = torch.nn.functional.one_hot(labels, x.shape[1])
    scale = grad.masked_fill(labels == ignored, 0.0)
    return {"logits_ptr": ((x - lse[:, None]).exp() - one_hot) * scale[:, None]}


# ------------------------------------------------------------------------------------------- rotary, embedding, sums


@reference("rotary", "rotary_kernel")
def _rotary(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, cos, sin = given(args, constexprs, "q_ptr", "k_ptr", "cos_ptr", "sin_ptr")
    sin = -sin if constexprs["BACKWARD"] else sin
    return {"q_ptr": _rotate(q, cos, sin), "k_ptr": _rotate(k, cos, sin)}


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x: (batch, seq, heads, head dim); cos, sin: (seq, head dim / 2)."""
    first, second = x.chunk(2, dim=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


@reference("embedding", "embedding_forward_kernel")
def _embedding_forward(args: Arguments, constexprs: Arguments) -> Expected:
    return {"out_ptr": args["table_ptr"][args["indices_ptr"].view(-1).long()]}


@reference("embedding", "embedding_backward_kernel")
def _embedding_backward(args: Arguments, constexprs: Arguments) -> Expected:
    table, grad, padding = given(args, constexprs, "grad_table_ptr", "grad_out_ptr", "padding_idx")
    index = args["indices_ptr"].view(-1).long()
    kept = index != padding
    return {"grad_table_ptr": table.index_add(0, index[kept], grad[kept])}


@reference("column_sum", "column_sum_kernel")
def _column_sum(args: Arguments, constexprs: Arguments) -> Expected:
    return {"out_ptr": args["x_ptr"].double().sum(0)}


@reference("column_sum", "column_sum_split_kernel")
def _column_sum_split(args: Arguments, constexprs: Arguments) -> Expected:
    return {"OUT": args["OUT"].double() + args["X"].double().sum(0)}


@reference("jagged", "jagged_mean_kernel")
def _jagged_mean(args: Arguments, constexprs: Arguments) -> Expected:
    values, offsets, out = given(args, constexprs, "values_ptr", "offsets_ptr", "out_ptr")
    expected = torch.zeros_like(out)
    for row, (begin, end) in enumerate(zip(offsets.tolist(), offsets.tolist()[1:], strict=False)):
        if begin < end:
            expected[row] = values[begin:end].mean(0)
    return {"out_ptr": expected}


# --------------------------------------------------------------------------------- scans, argmax, quantisation, conv


# A prefix near zero keeps the error of the far larger ones before it.
@reference("scan", "cumsum_kernel", out_ptr=Tolerance(0, 2e-4))
def _cumsum(args: Arguments, constexprs: Arguments) -> Expected:
    x = args["x_ptr"].double()
    return {"out_ptr": x.flip(-1).cumsum(-1).flip(-1) if constexprs["REVERSE"] else x.cumsum(-1)}


@reference("scan", "linear_recurrence_kernel")
def _linear_recurrence(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, h = given(args, constexprs, "a_ptr", "b_ptr", "h0_ptr")
    h = torch.zeros_like(b[0]) if h is None else h
    states = []
    for a_t, b_t in zip(a, b, strict=True):
        h = a_t * h + b_t
        states.append(h)
    return {"h_ptr": torch.stack(states)}


@reference("argmax", "argmax_kernel")
def _argmax(args: Arguments, constexprs: Arguments) -> Expected:
    return {"index_ptr": _first_maximum(args["x_ptr"])}


@reference("argmax", "max_with_index_kernel")
def _max_with_index(args: Arguments, constexprs: Arguments) -> Expected:
    x = args["x_ptr"]
    return {"values_ptr": x.amax(-1), "indices_ptr": _first_maximum(x)}


def _first_maximum(x: torch.Tensor) -> torch.Tensor:
    """torch.argmax does not say which of equal values it returns."""
    columns = torch.arange(x.shape[-1])
    return torch.where(x == x.amax(-1, keepdim=True), columns, x.shape[-1]).amin(-1)


# A quotient next to a half may round either way: fp32 division is not exact on every target.
@reference("quantize", "quantize_row_kernel", q_ptr=Tolerance(0, 1))
def _quantize_row(args: Arguments, constexprs: Arguments) -> Expected:
    x = args["x_ptr"].double()
    q, scale = _quantize(x)
    return {"q_ptr": q, "scale_ptr": scale[:, 0]}


# A quotient next to a half may round either way: fp32 division is not exact on every target.
@reference("quantize", "quantize_group_kernel", q_ptr=Tolerance(0, 1))
def _quantize_group(args: Arguments, constexprs: Arguments) -> Expected:
    groups = [_quantize(group) for group in args["x_ptr"].double().split(constexprs["GROUP"], dim=1)]
    return {
        "q_ptr": torch.cat([q for q, _ in groups], dim=1),
        "scale_ptr": torch.cat([scale for _, scale in groups], dim=1),
    }


def _quantize(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quotients rounded half away from zero, and the scale of each row as a column."""
    scale = x.abs().amax(1, keepdim=True).clamp(min=1e-10) / 127
    quotient = x / scale
    return quotient.sign() * (quotient.abs() + 0.5).floor(), scale


@reference("conv1d", "causal_conv1d_kernel")
def _causal_conv1d(args: Arguments, constexprs: Arguments) -> Expected:
    x, w, bias = given(args, constexprs, "x_ptr", "w_ptr", "bias_ptr")
    width, seq_len = w.shape[1], x.shape[1]
    y = torch.nn.functional.conv1d(x.transpose(1, 2), w[:, None, :], bias, padding=width - 1, groups=w.shape[0])
    return {"y_ptr": torch.nn.functional.silu(y[..., :seq_len].transpose(1, 2))}
