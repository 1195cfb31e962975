"""References of the backward pass of attention, from the log-sum-exp and the row sums that the kernels are given."""

from __future__ import annotations

import torch

from corpus.references.base import Arguments, Expected, given, reference


@reference("attention_backward", "attention_backward_preprocess_kernel")
def _preprocess(args: Arguments, constexprs: Arguments) -> Expected:
    out, dout = given(args, constexprs, "Out", "DO")
    return {"Delta": (out * dout).sum(-1)}


def _weights(args: Arguments, constexprs: Arguments) -> tuple[torch.Tensor, torch.Tensor]:
    """The attention weights, and the gradient of the scaled scores."""
    names = ("Q", "K", "V", "DO", "Lse", "Delta", "sm_scale")
    q, k, v, dout, lse, delta, scale = given(args, constexprs, *names)
    weights = (q @ k.mT * scale - lse[..., None]).exp()
    if constexprs["CAUSAL"]:
        weights = weights.tril()
    return weights, weights * (dout @ v.mT - delta[..., None]) * scale


@reference("attention_backward", "attention_backward_dkdv_kernel")
def _dkdv(args: Arguments, constexprs: Arguments) -> Expected:
    q, dout = given(args, constexprs, "Q", "DO")
    weights, scores = _weights(args, constexprs)
    return {"DK": scores.mT @ q, "DV": weights.mT @ dout}


@reference("attention_backward", "attention_backward_dq_kernel")
def _dq(args: Arguments, constexprs: Arguments) -> Expected:
    (k,) = given(args, constexprs, "K")
    return {"DQ": _weights(args, constexprs)[1] @ k}
