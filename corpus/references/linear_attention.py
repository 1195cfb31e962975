"""References of linear attention: the recurrence, token by token or as one masked product."""

from __future__ import annotations

import torch

from corpus.references.base import Arguments, Expected, Tolerance, given, reference


def chunk_states(
    k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, h0: torch.Tensor | None, chunk: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The states [batch, heads, keys, values] at the start of each chunk, stacked along axis 2, and after the end."""
    batch, length, heads, size = k.shape
    state = torch.zeros(batch, heads, size, v.shape[-1], dtype=torch.float64) if h0 is None else h0.double()
    starts = []
    for token in range(length):
        if token % chunk == 0:
            starts.append(state)
        decay = g[:, token].exp()[..., None, None]
        state = decay * state + k[:, token, :, :, None] * v[:, token, :, None, :]
    return torch.stack(starts, 2), state


def decayed_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, log_decay: torch.Tensor) -> torch.Tensor:
    """q k^T v without softmax; log_decay [batch, length, heads], summed between two tokens, decays their weight."""
    total = log_decay.cumsum(1).transpose(1, 2)
    decays = (total[..., :, None] - total[..., None, :]).tril().exp()
    weights = (q.transpose(1, 2) @ k.permute(0, 2, 3, 1) * decays).tril()
    return (weights @ v.transpose(1, 2)).transpose(1, 2)


def chunk_outputs(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, h: torch.Tensor, chunk: int
) -> torch.Tensor:
    """What each chunk makes of the state at its start and of its own tokens."""
    outputs = []
    for index, (q_c, k_c, v_c, g_c) in enumerate(zip(*(each.split(chunk, 1) for each in (q, k, v, g)), strict=True)):
        earlier = (q_c.transpose(1, 2) @ h[:, :, index]).transpose(1, 2) * g_c.cumsum(1).exp()[..., None]
        outputs.append(earlier + decayed_attention(q_c, k_c, v_c, g_c))
    return torch.cat(outputs, 1)


# Decayed values are rounded to their type before the dot: the error is theirs, though the state is fp32.
@reference("linear_attention", "chunk_state_kernel", ht=Tolerance(2**-7, 2**-7))
def _chunk_state(args: Arguments, constexprs: Arguments) -> Expected:
    k, v, g, h0 = given(args, constexprs, "k", "v", "g", "h0")
    starts, end = chunk_states(k, v, g, h0, constexprs["BT"])
    return {"h": starts, "ht": end} if constexprs["STORE_FINAL_STATE"] else {"h": starts}


@reference("linear_attention", "chunk_output_kernel")
def _chunk_output(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, v, g, h, scale = given(args, constexprs, "q", "k", "v", "g", "h", "scale")
    return {"o": chunk_outputs(q, k, v, g, h, constexprs["BT"]) * scale}


@reference("linear_attention", "fused_retention_kernel")
def _fused_retention(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, v, scale = given(args, constexprs, "Q", "K", "V", "scale")
    batch, length, heads, _ = q.shape
    log_decay = torch.log1p(-(2.0 ** (-5 - torch.arange(heads, dtype=torch.float64))))
    return {"Out": decayed_attention(q, k, v, log_decay.expand(batch, length, heads)) * scale}
