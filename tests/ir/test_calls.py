"""What Triton leaves as calls is read at each call: a copy of the function there, with its places called from there."""

from __future__ import annotations

import pytest

from tt2gl.ir.calls import with_called
from tt2gl.ir.operations import Operation
from tt2gl.ir.parser import parse_module

pytestmark = pytest.mark.once

_TWO_CALLS = """\
"builtin.module"() ({
  "tt.func"() <{function_type = (i32) -> i32, sym_name = "kernel", sym_visibility = "public"}> ({
  ^bb0(%x: i32 loc("k.py":1:0)):
    %one = "tt.call"(%x) <{callee = @helper}> : (i32) -> i32 loc("k.py":7:4)
    %two = "tt.call"(%one) <{callee = @helper}> : (i32) -> i32 loc("k.py":8:4)
    "tt.return"(%two) : (i32) -> () loc("k.py":9:4)
  }) : () -> () loc("k.py":1:0)
  "tt.func"() <{function_type = (i32) -> i32, sym_name = "helper", sym_visibility = "private"}> ({
  ^bb0(%y: i32 loc("k.py":20:0)):
    "cf.br"(%y)[^bb1] : (i32) -> () loc("k.py":21:4)
  ^bb1(%z: i32 loc("k.py":22:0)):
    %sum = "arith.addi"(%y, %z) : (i32, i32) -> i32 loc("k.py":22:8)
    "tt.return"(%sum) : (i32) -> () loc("k.py":23:4)
  }) : () -> () loc("k.py":20:0)
}) : () -> () loc("k.py":0:0)
"""


def sums(operation: Operation) -> list[Operation]:
    return [each for each in operation.walk() if each.name == "arith.addi"]


def test_each_call_has_a_copy_of_its_own() -> None:
    module = with_called(parse_module(_TWO_CALLS))
    one, two = sums(module.kernel)
    (original,) = sums(module.functions["helper"])
    assert len({id(each) for each in (one, two, original)}) == 3
    assert one.attributes is not two.attributes
    assert {id(value) for value in one.operands}.isdisjoint({id(value) for value in two.operands})
    assert one.operands[0].type is original.operands[0].type


def test_a_copy_is_linked_up_in_itself() -> None:
    module = with_called(parse_module(_TWO_CALLS))
    call = next(each for each in module.kernel.walk() if each.name == "tt.call")
    entry, behind = call.regions[0].blocks
    assert entry.operations[-1].successors == (behind,)
    (added,) = sums(call)
    assert added.operands == (entry.arguments[0], behind.arguments[0])
    assert behind.operations[-1].operands == added.results


def test_places_of_a_copy_are_called_from_the_call() -> None:
    module = with_called(parse_module(_TWO_CALLS))
    assert [each.location.line for each in sums(module.kernel)] == [22, 22]
    callers = [each.location.caller for each in sums(module.kernel)]
    assert [caller.line if caller else None for caller in callers] == [7, 8]
    assert sums(module.functions["helper"])[0].location.caller is None
