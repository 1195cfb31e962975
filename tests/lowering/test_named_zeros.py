"""Zeros under a name that stand for what is masked out: what becomes a number, and what stays."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.named_zeros import named_zeros
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source


def lower(body: str) -> Lowered:
    text = f"{HEADER}def kernel(x, n):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    return named_zeros(read_source(Path("kernel.py"), text))


def test_a_name_for_zeros_becomes_the_number() -> None:
    done = lower("""\
        none = tl.zeros([1, 1], dtype=x.dtype.element_ty)
        a = tl.load(x, mask=n > 0, other=none)
        b = tl.load(x, n > 1, none)
        """)
    assert done.functions == ("kernel",)
    assert done.text.endswith("""\
    a = tl.load(x, mask=n > 0, other=0)
    b = tl.load(x, n > 1, 0)
""")


@pytest.mark.parametrize(
    "body",
    [
        "acc = tl.zeros([4], tl.float32)\nb = tl.load(x, n > 1, acc)\nc = acc + b\n",
        "acc = tl.zeros([4], tl.float32)\nacc = acc + 1\nb = tl.load(x, n > 1, other=acc)\n",
        "one = tl.full([4], 1, tl.float32)\nb = tl.load(x, n > 1, other=one)\n",
        "none = n.zeros([4])\nb = tl.load(x, n > 1, other=none)\n",
        "none = tl.zeros([4], tl.float32)\n",
    ],
)
def test_what_is_bound_again_or_read_elsewhere_stays(body: str) -> None:
    assert lower(body).functions == ()
