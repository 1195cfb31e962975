"""Block pointers given to jit helpers: lowered with all who call them, or not at all."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tt2gl.lowering.block_pointers import lowered
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

HEADER = "import triton\nimport triton.language as tl\n"

MAKE = "tl.make_block_ptr(x, (n, m), (m, 1), (tl.program_id(0) * B, 0), (B, C), (1, 0))"

SIGNATURE = "x, n, m, B: tl.constexpr, C: tl.constexpr"


def functions(**bodies: tuple[str, str]) -> str:
    """A file of jit functions: their parameters and bodies by name."""
    return HEADER + "".join(
        f"\n\n@triton.jit\ndef {name}({parameters}):\n{textwrap.indent(body, '    ')}"
        for name, (parameters, body) in bodies.items()
    )


def done(folder: Path, text: str) -> Lowered:
    return lowered(read_source(folder / "kernels.py", text))


READ = ("p", "return tl.load(p, boundary_check=(0, 1))\n")


@pytest.mark.parametrize(
    "text",
    [
        functions(
            read=("p", "return tl.load(p)\n"),
            one=(SIGNATURE, f"p = {MAKE}\nx = read(p)\n"),
            other=(SIGNATURE, "y = read(x + tl.arange(0, B))\n"),
        ),
        functions(
            read=("p", "return tl.load(p), p\n"),
            one=(SIGNATURE, f"p = {MAKE}\nx, p = read(p)\n"),
        ),
        functions(
            read=("p", "return tl.load(p, boundary_check=CHECKS)\n"),
            one=(SIGNATURE, f"p = {MAKE}\nx = read(p)\n"),
        ),
        functions(
            read=("p, k", "return tl.load(p) if k == 0 else read(p, k - 1)\n"),
            one=(SIGNATURE, f"p = {MAKE}\nx = read(p, 3)\n"),
        ),
        functions(
            read=("*p", "return tl.load(p[0])\n"),
            one=(SIGNATURE, f"p = {MAKE}\nx = read(p)\n"),
        ),
        functions(
            read=READ,
            one=(
                SIGNATURE,
                f"p = {MAKE}\nq = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))\nx = read(p)\ny = read(q)\n",
            ),
        ),
        functions(read=READ, one=(SIGNATURE, f"p = {MAKE}\nx = (read(p), p)\n")),
    ],
    ids=[
        "also given pointers",
        "returned",
        "helper refused",
        "recursive",
        "unpacked",
        "ranks differ",
        "caller refused",
    ],
)
def test_functions_that_call_each_other_stay_together(tmp_path: Path, text: str) -> None:
    made = done(tmp_path, text)
    assert (made.text, made.functions) == (text, ())
    assert "one" in made.kept


def test_a_function_on_its_own_is_lowered_all_the_same(tmp_path: Path) -> None:
    text = functions(
        read=("p", "return tl.load(p), p\n"),
        one=(SIGNATURE, f"p = {MAKE}\nx, p = read(p)\n"),
        alone=(SIGNATURE, f"p = {MAKE}\nx = tl.load(p)\n"),
    )
    assert done(tmp_path, text).functions == ("alone",)


def test_a_helper_takes_what_it_cannot_know(tmp_path: Path) -> None:
    made = done(tmp_path, functions(read=READ, one=(SIGNATURE, f"p = {MAKE}\ny = read(p)\n")))
    assert made.text == functions(
        read=(
            "p, p_row, p_row_stride, p_row_bound, p_row_size: tl.constexpr, p_col_size: tl.constexpr",
            "p_rows = p_row + tl.arange(0, p_row_size).to(tl.int64)\n"
            "p_cols = tl.arange(0, p_col_size).to(tl.int64)\n"
            "p = p + p_rows[:, None] * p_row_stride + p_cols[None, :]\n"
            "return tl.load(p, mask=(p_rows[:, None] < p_row_bound) & (p_cols[None, :] < p_row_stride), other=0.0)\n",
        ),
        one=(SIGNATURE, "p = x\ny = read(p, tl.program_id(0) * B, m, n, B, C)\n"),
    )


def test_what_it_is_given_anyway_is_not_given_again(tmp_path: Path) -> None:
    made = done(
        tmp_path,
        functions(
            total=(
                "p, n, m, B: tl.constexpr, C: tl.constexpr",
                '"""A sum."""\n'
                "s = 0.0\n"
                "for j in range(0, m, C):\n"
                "    s += tl.sum(tl.load(p, boundary_check=(0, 1)))\n"
                "    p = tl.advance(p, (0, C))\n"
                "return s\n",
            ),
            one=(SIGNATURE, f"p = {MAKE}\ns = total(p=p, n=n, m=m, B=B, C=C)\n"),
        ),
    )
    assert "def total(p, p_row, n, m, B: tl.constexpr, C: tl.constexpr):\n" in made.text
    assert "    s = total(p=p, p_row=tl.program_id(0) * B, n=n, m=m, B=B, C=C)\n" in made.text
    assert (
        '    """A sum."""\n'
        "    offs_n = p_row + tl.arange(0, B).to(tl.int64)\n"
        "    p_col = tl.cast(0, tl.int64)\n"
        "    p = p + offs_n[:, None] * m\n"
        "    s = 0.0\n"
    ) in made.text
    assert "p_mask = (offs_n[:, None] < n) & (p_cols[None, :] < m)\n" in made.text


def test_a_parameter_that_the_helper_changes_is_given_again(tmp_path: Path) -> None:
    made = done(
        tmp_path,
        functions(
            read=("p, n", "n += 1\nreturn tl.load(p, boundary_check=(0,)) + n\n"),
            one=("x, n, B: tl.constexpr", "p = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))\ny = read(p, n)\n"),
        ),
    )
    assert "def read(p, p_bound, p_size: tl.constexpr, n):\n" in made.text
    assert "    y = read(p, n, B, n)\n" in made.text


def test_a_pointer_is_given_as_far_as_it_was_moved(tmp_path: Path) -> None:
    made = done(
        tmp_path,
        functions(
            read=("p", "return tl.load(p)\n"),
            one=(
                "x, n, B: tl.constexpr",
                "p = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))\np = tl.advance(p, (B,))\ny = read(p)\n",
            ),
        ),
    )
    assert "    p_start += B\n    y = read(p, p_start, n, B)\n" in made.text


def test_functions_are_put_back_together_as_the_author_has_them(tmp_path: Path) -> None:
    text = functions(
        read=READ,
        one=(SIGNATURE, f"p = {MAKE}\ny = read(p)\n"),
        alone=(SIGNATURE, f"p = {MAKE}\nx = tl.load(p)\n"),
    )
    made = done(tmp_path, text)
    assert set(made.functions) == {"one", "read", "alone"}
    written = f"# a port\n{made.text}"
    assert made.restored(written, []) == written
    assert made.restored(written, ["read", "one", "alone"]) == f"# a port\n{text}"
    assert f"p = {MAKE}\n    y = read(p)\n" in made.restored(written, ["read"])
    assert made.restored(written, ["alone"]).startswith(written.partition("def alone")[0])


def test_none_in_the_place_of_a_pointer(tmp_path: Path) -> None:
    made = done(
        tmp_path,
        functions(
            read=("p, FLAG: tl.constexpr", "if FLAG:\n    return tl.load(p, boundary_check=(0,))\n"),
            one=(
                "x, n, B: tl.constexpr, FLAG: tl.constexpr",
                "p = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))\n"
                "if FLAG:\n    y = read(p, FLAG)\nelse:\n    y = read(None, False)\n",
            ),
        ),
    )
    assert "def read(p, p_bound, p_size: tl.constexpr, FLAG: tl.constexpr):\n" in made.text
    assert "        y = read(p, n, B, FLAG)\n    else:\n        y = read(None, None, None, False)\n" in made.text


def moved_under_a_flag(folder: Path, body: str) -> str:
    """The text where a helper moves and loads through the pointer that it is given, all under a flag."""
    read = "if FLAG:\n    p = tl.advance(p, (n,))\n    return tl.load(p)\n"
    one = ("x, n, s, B: tl.constexpr, FLAG: tl.constexpr", textwrap.dedent(body))
    return done(folder, functions(read=("p, n, FLAG: tl.constexpr", read), one=one)).text


def test_a_pointer_that_is_none_without_a_flag(tmp_path: Path) -> None:
    body = """\
        if FLAG:
            t = s + 1
            p = tl.make_block_ptr(x, (n,), (t,), (0,), (B,), (0,))
        else:
            p = None
        if p is not None:
            y = read(p, n, FLAG)
    """
    text = moved_under_a_flag(tmp_path, body)
    assert "    p_start = tl.cast(0, tl.int64) if p is not None else None\n    if FLAG:\n" in text
    assert "    else:\n        p_stride = None\n        p = None\n    if p is not None:\n" in text


def test_a_pointer_that_is_zero_without_a_flag(tmp_path: Path) -> None:
    body = """\
        if FLAG:
            p = tl.make_block_ptr(x, (n,), (1,), (s,), (B,), (0,))
            p = tl.advance(p, (n,))
        else:
            p = 0
        y = read(p, n, FLAG)
    """
    text = moved_under_a_flag(tmp_path, body)
    # 0 is not None: what tells them apart in the helper is what stands beside the pointer
    assert "    p_start = tl.cast(p_start, tl.int64) if p_start is not None else None\n    if FLAG:\n" in text
    assert "    else:\n        p_start = None\n        p = 0\n    y = read(p, p_start, B, n, FLAG)\n" in text
