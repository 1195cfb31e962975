"""Loads and products that a name has already: what becomes of the text, and of the pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.lowering.equal_values import made_once
from tt2gl.plan import EqualValue
from tt2gl.source import read_source

TEXT = f"""{HEADER}def kernel(k_ptr, v_ptr, o_ptr, n, K: tl.constexpr, V: tl.constexpr):
    rows = tl.arange(0, 32)
    keys = tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    more = tl.zeros((32, 32), tl.float32)
    for i in range(0, n):
        at = i * 32 + rows
        k = tl.load(k_ptr + at[:, None] * K + keys[None, :])
        k2 = tl.load(k_ptr + at[:, None] * V + keys[None, :])  # as values
        v = tl.load(v_ptr + at[:, None] * V + keys[None, :])
        acc += tl.dot(tl.trans(k), k2)
        more += tl.dot(tl.trans(k), v)
    tl.store(o_ptr + rows[:, None] * 32 + keys[None, :], acc - more)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"k_ptr": "*fp16", "v_ptr": "*fp16", "o_ptr": "*fp32", "n": "i32", "K": "constexpr", "V": "constexpr"},
    constexprs={"K": 32, "V": 32},
    divisible_by_16=("k_ptr", "v_ptr", "o_ptr"),
    options=Options(num_stages=3),
    grid=(1,),
    args={
        "k_ptr": TensorArg("float16", (96, 32), (32, 1), None),
        "v_ptr": TensorArg("float16", (96, 32), (32, 1), None),
        "o_ptr": TensorArg("float32", (32, 32), (32, 1), None),
        "n": 3,
    },
)


def place(text: str, start: str) -> tuple[int, int]:
    line = next(at for at, each in enumerate(text.splitlines(), 1) if each.lstrip().startswith(start))
    return line, 8


def test_a_name_gets_what_another_has() -> None:
    source = read_source(Path("kernel.py"), TEXT)
    done = made_once(source, [EqualValue(place(TEXT, "k2 ="), "k", "")])
    assert "        k2 = k  # as values\n        v = tl.load(" in done.text
    assert made_once(source, [EqualValue((3, 8), "k", "")]).functions == ()


def test_it_gets_that_where_a_test_of_constants_holds() -> None:
    done = made_once(read_source(Path("kernel.py"), TEXT), [EqualValue(place(TEXT, "k2 ="), "k", "K == V")])
    assert (
        """\
        if K == V:
            k2 = k
        else:
            k2 = tl.load(k_ptr + at[:, None] * V + keys[None, :])  # as values
        v = tl.load("""
        in done.text
    )


@pytest.mark.slow
def test_what_is_made_once_has_one_ring(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(TEXT)
    made = convert(path, target="sm80", launches=[LAUNCH], root=tmp_path, compile=False)
    assert [report.status for report in made.kernels] == ["converted"]
    assert made.text.count("= gl.allocate_shared_memory(") == len(("k", "v"))
    assert "if K == V:" in made.text
    equal(path, TEXT, made.text, LAUNCH, "sm80")
