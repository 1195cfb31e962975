"""Barriers between halves of a program's warps."""

from __future__ import annotations

import numpy as np
import pytest

from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import IntegerType
from tt2gl.simulate.api import TensorInput, simulate
from tt2gl.simulate.findings import SimulationError


def run(body: str) -> list[int]:
    text = f"""
"builtin.module"() ({{
  "tt.func"() <{{function_type = (!tt.ptr<i32>) -> (), sym_name = "kernel", sym_visibility = "public"}}> ({{
  ^bb0(%out: !tt.ptr<i32>):
    %half = "arith.constant"() <{{value = 256 : i32}}> : () -> i32
    %thread = "rocdl.workitem.id.x"() : () -> i32
    %warp = "arith.divsi"(%thread, %half) : (i32, i32) -> i32
    {body}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""
    done = simulate(parse_module(text), [TensorInput("out", IntegerType(32), np.zeros(1, np.int32))], (1, 1, 1))
    return [int(value) for value in done.tensors[0].elements]


def test_a_thread_number_may_choose_who_waits() -> None:
    body = """
    %later = "arith.cmpi"(%warp, %half) <{predicate = 0 : i64}> : (i32, i32) -> i1
    "amdg.cond_barrier"(%later) : (i1) -> ()
    "rocdl.s.barrier"() : () -> ()
    "tt.store"(%out, %half) : (!tt.ptr<i32>, i32) -> ()"""
    assert run(body) == [256]


def test_a_thread_number_may_not_become_a_result() -> None:
    with pytest.raises(SimulationError, match=r"reaches tt\.store"):
        run('"tt.store"(%out, %warp) : (!tt.ptr<i32>, i32) -> ()')
