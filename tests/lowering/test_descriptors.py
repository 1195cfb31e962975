"""Tensor descriptors as pointers: what stays, what each use becomes, and that it computes the same."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.launches import Launch, TensorArg
from tt2gl.lowering.descriptors import lowered_descriptors
from tt2gl.lowering.steps import Lowered
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.verify.device import Participant
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.simulate import SimulationJob, simulate_many

MAKE = "x_desc = tl.make_tensor_descriptor(x_ptr, [n, m], [s, 1], [BLOCK, B])\n"
ARMS = (
    "if B == 1:\n    x_desc = tl.make_tensor_descriptor(x_ptr, [n], [1], [B])\n    x = x_desc.load([m])\n"
    "else:\n    x_desc = tl.make_tensor_descriptor(x_ptr, [n, m], [s, 1], [BLOCK, B])\n    x = x_desc.load([m, n])\n"
)
SIGNATURE = "x_ptr, y_ptr, n, m, s, BLOCK: tl.constexpr, B: tl.constexpr"


def lower(body: str) -> Lowered:
    text = f"{HEADER}def kernel({SIGNATURE}):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    done = lowered_descriptors(read_source(Path("kernel.py"), text))
    ast.parse(done.text)
    return done


def lowered_body(body: str) -> str:
    done = lower(body)
    assert (done.functions, dict(done.kept)) == (("kernel",), {})
    return textwrap.dedent(done.text.partition("):\n")[2])


# ------------------------------------------------------------------------------------------------------- what stays


@pytest.mark.parametrize(
    "body",
    ["tl.store(y_ptr, tl.load(x_ptr))\n", "# no make_tensor_descriptor\nx = x_ptr.load([0, 0])\n"],
    ids=["no descriptor", "made by the host"],
)
def test_a_kernel_that_makes_none_stays_as_it_is(body: str) -> None:
    done = lower(body)
    assert (done.functions, dict(done.kept)) == ((), {})
    assert done.text.endswith(textwrap.indent(body, "    "))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (MAKE + "x = helper(x_desc)\n", "`x_desc` is used for more than loads and stores"),
        (MAKE + "x = x_desc.gather(n)\n", "a gather through it has no `y_offset`"),
        (MAKE + "x_desc.store([0, 0])\n", "a store through it has no `value`"),
        (MAKE + "if x_desc.load([0, 0]):\n    pass\n", "used in the header of a statement"),
        (MAKE + "x = x_desc.load(n)\n", "its `offsets` is not written out as a list"),
        (MAKE + "x = x_desc.load([n])\n", "another number of offsets"),
        (MAKE + MAKE + "x = x_desc.load([0, 0])\n", "`x_desc` is assigned to in several places"),
        (ARMS + "x = x_desc.load([n])\n", "`x_desc` is assigned to in several places"),
        (ARMS + "x_desc = y_ptr\n", "`x_desc` is assigned to in several places"),
        ("d = tl.make_tensor_descriptor(x_ptr, [n], [s, 1], [B])\n", "differ in length"),
        ("x = tl.make_tensor_descriptor(x_ptr, [n], [1], [B]).load([0])\n", "not simply assigned to a name"),
        ("d = tl.make_tensor_descriptor(x_ptr, [n], [1], [B], padding_option=PAD)\n", "not written out"),
    ],
)
def test_what_is_not_understood_keeps_its_descriptors(body: str, reason: str) -> None:
    done = lower(body)
    assert done.functions == ()
    assert done.kept["kernel"].code == "TTG304"
    assert reason in done.kept["kernel"].message
    assert done.text.endswith(textwrap.indent(body, "    "))


# -------------------------------------------------------------------------------------------------- what each becomes


def test_each_arm_has_a_descriptor_of_its_own_under_one_name() -> None:
    assert lowered_body(ARMS) == (
        "if B == 1:\n"
        "    x_offs = m + tl.arange(0, B).to(tl.int64)\n"
        "    x = tl.load(x_ptr + x_offs, mask=(x_offs >= 0) & (x_offs < n), other=0.0)\n"
        "else:\n"
        "    x_rows = m + tl.arange(0, BLOCK).to(tl.int64)\n"
        "    x_cols = n + tl.arange(0, B).to(tl.int64)\n"
        "    x_mask = (x_rows[:, None] >= 0) & (x_rows[:, None] < n) & (x_cols[None, :] >= 0) & (x_cols[None, :] < m)\n"
        "    x = tl.load(x_ptr + x_rows[:, None] * s + x_cols[None, :], mask=x_mask, other=0.0)\n"
    )


def test_a_load_checks_both_ends_of_every_dimension() -> None:
    assert lowered_body(MAKE + "x = x_desc.load([n, tl.program_id(0) * B])\n") == (
        "x_rows = n + tl.arange(0, BLOCK).to(tl.int64)\n"
        "x_cols = tl.program_id(0) * B + tl.arange(0, B).to(tl.int64)\n"
        "x_mask = (x_rows[:, None] >= 0) & (x_rows[:, None] < n) & (x_cols[None, :] < m)\n"
        "x = tl.load(x_ptr + x_rows[:, None] * s + x_cols[None, :], mask=x_mask, other=0.0)\n"
    )


def test_a_store_keeps_its_value_in_place() -> None:
    made = lowered_body("d = tl.make_tensor_descriptor(y_ptr, [n], [1], [B])\nd.store([0], x  # all of it\n)\n")
    assert made == "d_offs = tl.arange(0, B).to(tl.int64)\ntl.store(y_ptr + d_offs, x, mask=d_offs < n)\n"


def test_an_atomic_is_one_of_pointers_in_order_of_release() -> None:
    made = lowered_body("d = tl.make_tensor_descriptor(y_ptr, [n], [1], [B])\nd.atomic_max([0], x)\n")
    assert made.endswith('\ntl.atomic_max(y_ptr + d_offs, x, mask=d_offs < n, sem="release")\n')


def test_rows_that_are_gathered_and_scattered() -> None:
    made = lowered_body(
        "d = tl.make_tensor_descriptor(y_ptr, [n, m], [s, 1], [1, B])\nd.scatter(d.gather(i + 1, n), i, 0)\n"
    )
    assert made == (
        "d_rows = (i + 1).to(tl.int64)\n"
        "d_cols = n + tl.arange(0, B).to(tl.int64)\n"
        "d_mask = (d_rows[:, None] >= 0) & (d_rows[:, None] < n) & (d_cols[None, :] >= 0) & (d_cols[None, :] < m)\n"
        "d_rows_1 = i.to(tl.int64)\n"
        "d_cols_1 = tl.arange(0, B).to(tl.int64)\n"
        "d_mask_1 = (d_rows_1[:, None] >= 0) & (d_rows_1[:, None] < n) & (d_cols_1[None, :] < m)\n"
        "tl.store(y_ptr + d_rows_1[:, None] * s + d_cols_1[None, :], "
        "tl.load(y_ptr + d_rows[:, None] * s + d_cols[None, :], mask=d_mask, other=0.0), mask=d_mask_1)\n"
    )


def test_functions_and_types_of_descriptors() -> None:
    made = lowered_body(
        "d = tl.make_tensor_descriptor(y_ptr + s, [n], [1], [B], padding_option='nan')\n"
        "tl.store_tensor_descriptor(d, [0], tl.load_tensor_descriptor(d, [B]).to(d.dtype))\n"
    )
    assert made == (
        "d_base = y_ptr + s\n"
        "d_offs = B + tl.arange(0, B).to(tl.int64)\n"
        "d_offs_1 = tl.arange(0, B).to(tl.int64)\n"
        'tl.store(d_base + d_offs_1, tl.load(d_base + d_offs, mask=d_offs < n, other=float("nan"))'
        ".to(d_base.dtype.element_ty), mask=d_offs_1 < n)\n"
    )


def test_a_whole_dimension_needs_no_mask() -> None:
    made = lowered_body("d = tl.make_tensor_descriptor(y_ptr, [B], [1], [B])\nx = d.load([0])\n")
    assert made == "d_offs = tl.arange(0, B).to(tl.int64)\nx = tl.load(y_ptr + d_offs)\n"


def test_what_a_loop_leaves_alone_is_indexed_before_it() -> None:
    made = lowered_body(MAKE + "i = 0\nfor k in range(0, m, B):\n    x = x_desc.load([i, k])\n")
    assert made.startswith("i = 0\nx_rows = i + tl.arange(0, BLOCK).to(tl.int64)\nfor k in range(0, m, B):\n")
    assert made.index("for k") < made.index("x_cols = k + ")


def test_what_a_loop_changes_is_not() -> None:
    made = lowered_body(MAKE + "i = 0\nwhile i < n:\n    x = x_desc.load([i, 0])\n    i += BLOCK\n")
    assert "while i < n:\n    x_rows = i + tl.arange(0, BLOCK).to(tl.int64)\n" in made
    assert made.startswith("i = 0\nx_cols = tl.arange(0, B).to(tl.int64)\nwhile")


def test_nothing_is_put_into_a_turn_of_a_flattened_loop() -> None:
    body = "for i in tl.range(0, n, B, flatten=FLAG):\n    for k in range(0, m, B):\n        x = x_desc.load([i, k])\n"
    made = lowered_body(MAKE + body)
    assert made.index("for k") < made.index("x_rows = i + ")
    plain = lowered_body(MAKE + body.replace("FLAG", "False"))
    assert plain.index("x_rows = i + ") < plain.index("for k")
    outside = lowered_body(MAKE + body.replace("[i, k]", "[0, k]"))
    assert outside.startswith("x_rows = tl.arange(0, BLOCK).to(tl.int64)\nfor i")


def test_names_that_change_later_are_held() -> None:
    made = lowered_body("d = tl.make_tensor_descriptor(y_ptr, [n], [1], [B])\nn += 1\nx = d.load([0])\n")
    assert made.startswith("d_offs_bound = n\nn += 1\n")
    assert "mask=d_offs < d_offs_bound" in made


def test_indices_are_made_anew_in_other_branches() -> None:
    made = lowered_body(MAKE + "if s:\n    x = x_desc.load([0, 0])\nelse:\n    x = x_desc.load([0, 0]) * 2\n")
    assert made.count("tl.arange(0, BLOCK)") == 2
    assert "x_rows_1" in made


def test_a_block_of_definitions_keeps_a_statement() -> None:
    made = lowered_body("if s:\n    d = tl.make_tensor_descriptor(y_ptr, [n], [1], [B])\n")
    assert made == "if s:\n    pass\n"


def test_it_computes_the_same(tmp_path: Path) -> None:
    text = (
        f"{HEADER}def kernel(x_ptr, y_ptr, n, m, B: tl.constexpr):\n"
        "    x = tl.make_tensor_descriptor(x_ptr, [n, m], [m, 1], [B, B])\n"
        "    y = tl.make_tensor_descriptor(y_ptr, [n, m], [m, 1], [B, B])\n"
        "    for k in range(-B, m, B):\n"
        "        i = tl.program_id(0) * B - 8\n"
        "        y.store([i, k], x.load([i, k + 8]) * 2)\n"
    )
    shape, name = (40, 72), "kernel"
    launch = Launch(
        file="kernel.py",
        kernel=name,
        signature={"x_ptr": "*fp16", "y_ptr": "*fp16", "n": "i32", "m": "i32", "B": "constexpr"},
        constexprs={"B": 32},
        divisible_by_16=("x_ptr", "y_ptr"),
        grid=(2,),
        args={
            "x_ptr": TensorArg("float16", shape, (72, 1), None),
            "y_ptr": TensorArg("float16", shape, (72, 1), None),
            "n": 40,
            "m": 72,
        },
    )
    path = tmp_path / "kernel.py"
    first = read_source(path, text)
    second = read_source(path, lowered_descriptors(first).text)
    assert "descriptor" not in second.text
    kernels = [Participant(slice_kernel(each, name, target="sm80", root=tmp_path), launch) for each in (first, second)]
    run = simulate_many([SimulationJob(kernels[0], kernels[1], "sm80")], SimulationOptions(seeds=1))[0]
    assert run.result is not None, run.trouble
    assert (run.result.equal, run.result.bitwise, run.result.findings) == (True, True, ())
