"""References of products of rows that go to different matrices."""

from __future__ import annotations

import torch

from corpus.references.base import Arguments, Expected, given, reference


@reference("grouped_matmul", "experts_up_kernel")
def _experts_up(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, c = given(args, constexprs, "a_ptr", "b_ptr", "c_ptr")
    expected = c.clone()
    blocks = int(args["num_padded_ptr"]) // constexprs["BLOCK_M"]
    for rows, tokens, expert in _blocks(args, constexprs, blocks):
        product = a[tokens // constexprs["TOP_K"]] @ b[expert]
        expected[rows] = product if expert >= 0 else 0.0
    return {"c_ptr": expected}


@reference("grouped_matmul", "experts_down_kernel")
def _experts_down(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, weights, out = given(args, constexprs, "a_ptr", "b_ptr", "weights_ptr", "out_ptr")
    expected = out.clone()
    for rows, tokens, expert in _blocks(args, constexprs, len(args["expert_ids_ptr"])):
        product = a[rows] @ b[expert].T
        if weights is not None:
            product *= weights[tokens, None]
        expected.index_add_(0, tokens // constexprs["TOP_K"], product)
    return {"out_ptr": expected}


def _blocks(args: Arguments, constexprs: Arguments, count: int) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
    """Of each block of rows the positions of those that are no padding, their ids, and the expert."""
    block_m = constexprs["BLOCK_M"]
    found = []
    for block, expert in enumerate(args["expert_ids_ptr"][:count].tolist()):
        ids = args["token_ids_ptr"][block * block_m : (block + 1) * block_m].long()
        valid = (ids < args["num_valid"]).nonzero().flatten()
        found.append((block * block_m + valid, ids[valid], expert))
    return found


@reference("grouped_matmul", "ragged_matmul_kernel")
def _ragged(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, c = given(args, constexprs, "a_ptr", "b_ptr", "c_ptr")
    sizes = args["sizes_ptr"].tolist()
    rows = sum(sizes)
    products = [part @ b[group] for group, part in enumerate(a[:rows].split(sizes))]
    return {"c_ptr": torch.cat([*products, c[rows:]])}


@reference("grouped_matmul", "ragged_weight_grad_kernel")
def _ragged_weight_grad(args: Arguments, constexprs: Arguments) -> Expected:
    x, dy = given(args, constexprs, "x_ptr", "dy_ptr")
    sizes = args["sizes_ptr"].tolist()
    rows = sum(sizes)
    parts = zip(x[:rows].split(sizes), dy[:rows].split(sizes), strict=True)
    return {"dw_ptr": torch.stack([part_x.T @ part_dy for part_x, part_dy in parts])}
