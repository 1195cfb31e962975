"""References of the kernels with tensor descriptors."""

from __future__ import annotations

import math

from corpus.references.attention import attend
from corpus.references.base import Arguments, Expected, given, reference


@reference("descriptors", "descriptor_matmul_kernel")
def _descriptor_matmul(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = given(args, constexprs, "a_ptr", "b_ptr")
    return {"c_ptr": a @ b.T}


@reference("descriptors", "persistent_descriptor_matmul_kernel")
def _persistent_descriptor_matmul(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = given(args, constexprs, "a_ptr", "b_ptr")
    return {"c_ptr": a @ b.T}


@reference("descriptors", "host_descriptor_matmul_kernel")
def _host_descriptor_matmul(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = given(args, constexprs, "a_desc", "b_desc")
    return {"c_desc": a @ b.T}


@reference("descriptors", "descriptor_attention_kernel")
def _descriptor_attention(args: Arguments, constexprs: Arguments) -> Expected:
    q, k, v, scale = given(args, constexprs, "q_ptr", "k_ptr", "v_ptr", "sm_scale")
    out, lse = attend(q, k, v, scale, constexprs["CAUSAL"])
    return {"o_ptr": out, "lse_ptr": lse / math.log(2)}
