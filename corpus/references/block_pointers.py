"""References of the kernels with block pointers."""

from __future__ import annotations

import torch

from corpus.references.attention import attend
from corpus.references.base import Arguments, Expected, given, reference


@reference("block_pointers", "block_matmul_kernel")
def _block_matmul(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = given(args, constexprs, "a_ptr", "b_ptr")
    return {"c_ptr": a @ b}


@reference("block_pointers", "chunk_state_block_kernel")
def _chunk_state_block(args: Arguments, constexprs: Arguments) -> Expected:
    k, v, g, h0 = given(args, constexprs, "k", "v", "g", "h0")
    batch, _, heads, size = k.shape
    state = torch.zeros(batch, heads, size, v.shape[-1], dtype=torch.float64) if h0 is None else h0
    states = []
    for k_c, v_c, g_c in zip(*(each.split(constexprs["BT"], 1) for each in (k, v, g)), strict=True):
        states.append(state)
        decayed = k_c * (g_c[:, -1:] - g_c).exp()
        state = g_c[:, -1].exp()[..., None] * state + torch.einsum("bthk,bthv->bhkv", decayed, v_c)
    return {"h": torch.stack(states, 2)}


@reference("block_pointers", "block_attention_kernel")
def _block_attention(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, v, scale = given(args, constexprs, "q", "k", "v", "scale")
    out, _ = attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), scale, causal=True)
    return {"o": out.transpose(1, 2)}
