"""References of attention: forward, decoding from caches."""

from __future__ import annotations

import math

import torch

from corpus.references.base import Arguments, Expected, Tolerance, given, reference


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * q k^T) v over the last two dimensions, and the log-sum-exp of each row."""
    scores = q @ k.mT * scale
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    lse = scores.logsumexp(-1)
    return (scores - lse[..., None]).exp() @ v, lse


@reference("attention", "attention_kernel")
def _attention(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, v, scale = given(args, constexprs, "q_ptr", "k_ptr", "v_ptr", "sm_scale")
    return {"out_ptr": attend(q, k, v, scale, constexprs["CAUSAL"])[0]}


@reference("attention", "two_phase_attention_kernel")
def _two_phase_attention(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, v, scale = given(args, constexprs, "Q", "K", "V", "sm_scale")
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    k, v = (each.repeat_interleave(constexprs["GROUP"], 1) for each in (k, v))
    out, lse = attend(q, k, v, scale, constexprs["CAUSAL"])
    return {"Out": out.transpose(1, 2), "Lse": lse}


@reference("attention", "paged_decode_kernel")
def _paged_decode(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, v, scale = given(args, constexprs, "q_ptr", "k_cache_ptr", "v_cache_ptr", "scale")
    out = []
    for query, pages, length in zip(q, args["block_table_ptr"], args["seq_lens_ptr"], strict=True):
        # [heads, tokens, head size], once for each query head that shares them
        keys, values = (
            cache[pages].transpose(0, 1).flatten(1, 2)[:, :length].repeat_interleave(constexprs["GROUP"], 0)
            for cache in (k, v)
        )
        out.append(attend(query[:, None], keys, values, scale, causal=False)[0][:, 0])
    return {"out_ptr": torch.stack(out)}


# Weights are rounded to the type of the values before the second dot: the error is theirs, though the output is fp32.
@reference("attention", "split_decode_kernel", partial_ptr=Tolerance(2**-7, 2**-7))
def _split_decode(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, v, scale = given(args, constexprs, "q_ptr", "k_ptr", "v_ptr", "sm_scale")
    partial, lse = args["partial_ptr"].double(), args["lse_ptr"].double()
    for index, length in enumerate(args["seq_lens_ptr"].tolist()):
        for split, tokens in _splits(length, constexprs["SPLITS"]):
            rows = args["req_to_token_ptr"][index, tokens]
            keys, values = (each[rows].transpose(0, 1).repeat_interleave(constexprs["GROUP"], 0) for each in (k, v))
            out, sums = attend(q[index][:, None], keys, values, scale, causal=False)
            partial[index, :, split], lse[index, :, split] = out[:, 0], sums[:, 0]
    return {"partial_ptr": partial, "lse_ptr": lse}


@reference("attention", "combine_splits_kernel")
def _combine_splits(args: Arguments, constexprs: Arguments) -> Expected:
    partial, lse = given(args, constexprs, "partial_ptr", "lse_ptr")
    out = []
    for parts, sums, length in zip(partial, lse, args["seq_lens_ptr"].tolist(), strict=True):
        splits = [split for split, _ in _splits(length, constexprs["SPLITS"])]
        out.append((sums[:, splits].softmax(-1)[..., None] * parts[:, splits]).sum(1))
    return {"out_ptr": torch.stack(out)}


def _splits(length: int, splits: int) -> list[tuple[int, slice]]:
    """The splits of a sequence that are not empty, with the tokens of each."""
    size = -(-length // splits)
    return [
        (split, slice(split * size, min((split + 1) * size, length)))
        for split in range(splits)
        if split * size < length
    ]
