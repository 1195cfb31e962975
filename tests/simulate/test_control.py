"""Programs that go different ways: branches, loops, early returns; by kernels written as MLIR text."""

from __future__ import annotations

import numpy as np
import pytest

from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import IntegerType
from tt2gl.simulate.api import TensorInput, simulate
from tt2gl.simulate.findings import SimulationError

COUNT = 7


def run(body: str, *, count: int = COUNT, functions: str = "") -> list[int]:
    """The results of a kernel whose programs each store `%result` (i32) at their id; `%pid` is that id."""
    text = f"""
"builtin.module"() ({{
  "tt.func"() <{{function_type = (!tt.ptr<i32>) -> (), sym_name = "kernel", sym_visibility = "public"}}> ({{
  ^bb0(%out: !tt.ptr<i32>):
    %pid = "tt.get_program_id"() <{{axis = 0 : i32}}> : () -> i32
    %place = "tt.addptr"(%out, %pid) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    %c0 = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %c1 = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %c3 = "arith.constant"() <{{value = 3 : i32}}> : () -> i32
    {body}
  }}) : () -> ()
  {functions}
}}) : () -> ()
"""
    out = TensorInput("out", IntegerType(32), np.full(count, -1, np.int32))
    done = simulate(parse_module(text), [out], (count, 1, 1))
    assert done.findings == ()
    return [int(value) for value in done.tensors[0].elements]


STORE = """"tt.store"(%place, %result) <{cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> ()
    "tt.return"() : () -> ()"""


def test_an_if_on_which_programs_differ_joins_their_results() -> None:
    body = f"""
    %small = "arith.cmpi"(%pid, %c3) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
    %result = "scf.if"(%small) ({{
      %sum = "arith.addi"(%pid, %c3) : (i32, i32) -> i32
      "scf.yield"(%sum) : (i32) -> ()
    }}, {{
      "scf.yield"(%c0) : (i32) -> ()
    }}) : (i1) -> i32
    {STORE}"""
    assert run(body) == [3, 4, 5, 0, 0, 0, 0]


def test_pointers_to_blocks_join_too() -> None:
    block = "!tt.ptr<tensor<1xi32>>"

    def at(offset: str) -> str:
        return f"""
      %count = "arith.constant"() <{{value = 7 : i64}}> : () -> i64
      %one = "arith.constant"() <{{value = 1 : i64}}> : () -> i64
      %made = "tt.make_tensor_ptr"(%out, %count, %one, {offset}) <{{order = array<i32: 0>}}> :
        (!tt.ptr<i32>, i64, i64, i32) -> {block}
      "scf.yield"(%made) : ({block}) -> ()"""

    body = f"""
    %small = "arith.cmpi"(%pid, %c3) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
    %pointer = "scf.if"(%small) ({{{at("%pid")}
    }}, {{
      %next = "arith.subi"(%pid, %c3) : (i32, i32) -> i32
      %there = "arith.addi"(%next, %c3) : (i32, i32) -> i32{at("%there")}
    }}) : (i1) -> {block}
    %tile = "tt.splat"(%pid) : (i32) -> tensor<1xi32>
    "tt.store"(%pointer, %tile) <{{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}}> :
      ({block}, tensor<1xi32>) -> ()
    "tt.return"() : () -> ()"""
    assert run(body) == [0, 1, 2, 3, 4, 5, 6]


def test_only_programs_within_an_if_write() -> None:
    body = """
    %small = "arith.cmpi"(%pid, %c3) <{predicate = 2 : i64}> : (i32, i32) -> i1
    "scf.if"(%small) ({
      "tt.store"(%place, %pid) <{cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> ()
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    "tt.return"() : () -> ()"""
    assert run(body) == [0, 1, 2, -1, -1, -1, -1]


def test_a_loop_that_programs_leave_at_different_times() -> None:
    body = f"""
    %result = "scf.for"(%c0, %pid, %c1, %c0) ({{
    ^bb0(%i: i32, %sum: i32):
      %next = "arith.addi"(%sum, %i) : (i32, i32) -> i32
      "scf.yield"(%next) : (i32) -> ()
    }}) : (i32, i32, i32, i32) -> i32
    {STORE}"""
    assert run(body) == [0, 0, 1, 3, 6, 10, 15]


def test_a_loop_with_different_starts_and_steps() -> None:
    body = f"""
    %step = "arith.addi"(%pid, %c1) : (i32, i32) -> i32
    %end = "arith.constant"() <{{value = 20 : i32}}> : () -> i32
    %result = "scf.for"(%pid, %end, %step, %c0) ({{
    ^bb0(%i: i32, %sum: i32):
      %next = "arith.addi"(%sum, %i) : (i32, i32) -> i32
      "scf.yield"(%next) : (i32) -> ()
    }}) : (i32, i32, i32, i32) -> i32
    {STORE}"""
    assert run(body) == [sum(range(pid, 20, pid + 1)) for pid in range(COUNT)]


def test_a_branch_within_a_loop_that_programs_leave() -> None:
    body = f"""
    %result = "scf.for"(%c0, %pid, %c1, %c0) ({{
    ^bb0(%i: i32, %sum: i32):
      %rest = "arith.remsi"(%pid, %c3) : (i32, i32) -> i32
      %odd = "arith.cmpi"(%rest, %c1) <{{predicate = 0 : i64}}> : (i32, i32) -> i1
      %next = "scf.if"(%odd) ({{
        %more = "arith.addi"(%sum, %i) : (i32, i32) -> i32
        "scf.yield"(%more) : (i32) -> ()
      }}, {{
        %one = "arith.addi"(%sum, %c1) : (i32, i32) -> i32
        "scf.yield"(%one) : (i32) -> ()
      }}) : (i1) -> i32
      "scf.yield"(%next) : (i32) -> ()
    }}) : (i32, i32, i32, i32) -> i32
    {STORE}"""
    assert run(body) == [sum(range(pid)) if pid % 3 == 1 else pid for pid in range(COUNT)]


def test_a_while_loop_with_its_own_count_for_each_program() -> None:
    # The steps of 3n + 1 down to 1.
    body = f"""
    %first = "arith.addi"(%pid, %c1) : (i32, i32) -> i32
    %last:2 = "scf.while"(%first, %c0) ({{
    ^bb0(%n: i32, %steps: i32):
      %more = "arith.cmpi"(%n, %c1) <{{predicate = 4 : i64}}> : (i32, i32) -> i1
      "scf.condition"(%more, %n, %steps) : (i1, i32, i32) -> ()
    }}, {{
    ^bb0(%n: i32, %steps: i32):
      %bit = "arith.andi"(%n, %c1) : (i32, i32) -> i32
      %odd = "arith.cmpi"(%bit, %c1) <{{predicate = 0 : i64}}> : (i32, i32) -> i1
      %three = "arith.muli"(%n, %c3) : (i32, i32) -> i32
      %up = "arith.addi"(%three, %c1) : (i32, i32) -> i32
      %half = "arith.shrsi"(%n, %c1) : (i32, i32) -> i32
      %next = "arith.select"(%odd, %up, %half) : (i1, i32, i32) -> i32
      %count = "arith.addi"(%steps, %c1) : (i32, i32) -> i32
      "scf.yield"(%next, %count) : (i32, i32) -> ()
    }}) : (i32, i32) -> (i32, i32)
    %result = "arith.addi"(%last#1, %c0) : (i32, i32) -> i32
    {STORE}"""
    assert run(body) == [0, 1, 7, 2, 5, 8, 16]


def test_an_early_return_of_some_programs() -> None:
    body = f"""
    %small = "arith.cmpi"(%pid, %c3) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
    %twice = "arith.addi"(%pid, %pid) : (i32, i32) -> i32
    "cf.cond_br"(%small)[^bb1, ^bb2] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
  ^bb1:
    "tt.return"() : () -> ()
  ^bb2:
    %result = "arith.addi"(%twice, %c1) : (i32, i32) -> i32
    {STORE}"""
    assert run(body) == [-1, -1, -1, 7, 9, 11, 13]


def test_programs_that_part_at_a_block_meet_again_with_their_own_arguments() -> None:
    body = f"""
    %small = "arith.cmpi"(%pid, %c3) <{{predicate = 2 : i64}}> : (i32, i32) -> i1
    "cf.cond_br"(%small)[^bb1, ^bb2] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
  ^bb1:
    %low = "arith.addi"(%pid, %c1) : (i32, i32) -> i32
    "cf.br"(%low)[^bb3] : (i32) -> ()
  ^bb2:
    %high = "arith.muli"(%pid, %c3) : (i32, i32) -> i32
    "cf.br"(%high)[^bb3] : (i32) -> ()
  ^bb3(%result: i32):
    {STORE}"""
    assert run(body) == [1, 2, 3, 9, 12, 15, 18]


def test_a_value_made_before_programs_part_in_a_loop_of_blocks() -> None:
    # do n -= 3 while n > 0, by blocks; %seen is of the block that loops and is used after it.
    body = f"""
    "cf.br"(%pid)[^bb1] : (i32) -> ()
  ^bb1(%n: i32):
    %seen = "arith.subi"(%n, %c3) : (i32, i32) -> i32
    %more = "arith.cmpi"(%seen, %c0) <{{predicate = 4 : i64}}> : (i32, i32) -> i1
    "cf.cond_br"(%more, %seen)[^bb1, ^bb2] <{{operandSegmentSizes = array<i32: 1, 1, 0>}}> : (i1, i32) -> ()
  ^bb2:
    %result = "arith.addi"(%seen, %c1) : (i32, i32) -> i32
    {STORE}"""
    assert run(body) == [-2, -1, 0, 1, -1, 0, 1]


def test_a_function_that_returns_early_for_some() -> None:
    function = """
  "tt.func"() <{function_type = (i32) -> i32, sym_name = "clip", sym_visibility = "private"}> ({
  ^bb0(%n: i32):
    %limit = "arith.constant"() <{value = 4 : i32}> : () -> i32
    %large = "arith.cmpi"(%n, %limit) <{predicate = 4 : i64}> : (i32, i32) -> i1
    "cf.cond_br"(%large)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
  ^bb1:
    "tt.return"(%limit) : (i32) -> ()
  ^bb2:
    "tt.return"(%n) : (i32) -> ()
  }) : () -> ()"""
    body = f"""
    %clipped = "tt.call"(%pid) <{{callee = @clip}}> : (i32) -> i32
    %result = "arith.addi"(%clipped, %c1) : (i32, i32) -> i32
    {STORE}"""
    assert run(body, functions=function) == [1, 2, 3, 4, 5, 5, 5]


def test_a_lock_that_programs_take_in_turns() -> None:
    # while cas(lock, 0, 1) != 0: pass; then out[pid] = count++; unlock. The first two elements are lock and count.
    text = """
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %count_place = "tt.addptr"(%out, %one) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    "scf.while"() ({
      %old = "tt.atomic_cas"(%out, %c0, %c1) <{scope = 2 : i32, sem = 4 : i32}> : (!tt.ptr<i32>, i32, i32) -> i32
      %taken = "arith.cmpi"(%old, %c0) <{predicate = 1 : i64}> : (i32, i32) -> i1
      "scf.condition"(%taken) : (i1) -> ()
    }, {
      "scf.yield"() : () -> ()
    }) : () -> ()
    %count = "tt.load"(%count_place) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32, isVolatile = false,
      operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<i32>) -> i32
    %more = "arith.addi"(%count, %c1) : (i32, i32) -> i32
    "tt.store"(%count_place, %more) <{cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<i32>, i32) -> ()
    %old = "tt.atomic_rmw"(%out, %c0) <{atomic_rmw_op = 9 : i32, scope = 2 : i32, sem = 4 : i32,
      operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tt.ptr<i32>, i32) -> i32
    "tt.return"() : () -> ()"""
    module = parse_module(
        f"""
"builtin.module"() ({{
  "tt.func"() <{{function_type = (!tt.ptr<i32>) -> (), sym_name = "kernel", sym_visibility = "public"}}> ({{
  ^bb0(%out: !tt.ptr<i32>):
    %c0 = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %c1 = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    {text}
  }}) : () -> ()
}}) : () -> ()
"""
    )
    state = TensorInput("out", IntegerType(32), np.zeros(2, np.int32))
    done = simulate(module, [state], (5, 1, 1))
    assert [int(value) for value in done.tensors[0].elements] == [0, 5]


def test_an_unknown_operation_is_told_with_its_line() -> None:
    body = f"""
    %result = "other.operation"(%pid) : (i32) -> i32 loc("kernel.py":12:4)
    {STORE}"""
    with pytest.raises(SimulationError, match=r"other\.operation") as raised:
        run(body)
    assert (raised.value.location.file, raised.value.location.line) == ("kernel.py", 12)
