"""Parameters that get what was loaded from them: what is told apart, and what keeps its name."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.loaded_parameters import loaded_parameters
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source


def lower(body: str) -> Lowered:
    text = f"{HEADER}def kernel(x, y, n, BLOCK):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    return loaded_parameters(read_source(Path("kernel.py"), text))


@pytest.mark.parametrize(
    "body",
    [
        "x = tl.load(x + n)\ntl.store(y, x)\n",
        "p = x + n\na = tl.load(p)\nx = y\nb = tl.load(x)\ntl.store(p, a + b)\n",
        "p = x + n\nif n > 1:\n    x = tl.load(p)\ntl.store(p, x)\n",
        "p = x + n\nq = tl.load(p)\nx += 1\ntl.store(p, tl.load(x) + q)\n",
        "p = x + n\nfor i in range(n):\n    tl.store(p, x)\n    x = tl.load(p)\n",
        "p = x + n\nx, a = tl.load(p), 1\ntl.store(p, x + a)\n",
        "a = tl.load(x + n)\nx = tl.load(y)\ntl.store(y, a + x)\n",
    ],
    ids=["no pointers", "a pointer", "either", "moved", "carried", "unpacked", "loaded from alone"],
)
def test_what_is_one_thing_or_has_no_pointers_behind_it_stays(body: str) -> None:
    assert lower(body).functions == ()


def test_what_was_loaded_gets_a_name() -> None:
    done = lower("""\
        p = x + n
        x = tl.load(p).to(tl.float32)
        x_2 = x * 2
        x += x_2
        tl.store(p, x)
        """)
    assert done.functions == ("kernel",)
    assert done.text.endswith("""\
    p = x + n
    x_2_2 = tl.load(p).to(tl.float32)
    x_2 = x_2_2 * 2
    x_2_2 += x_2
    tl.store(p, x_2_2)
""")


def test_pointers_may_be_made_by_several_names_and_read_in_loops() -> None:
    done = lower("""\
        x += n
        p = x + tl.arange(0, BLOCK)
        q = p + 1
        x = tl.load(p)
        for i in range(n):
            x = x * 2
            tl.store(q, x)
        """)
    assert done.text.endswith("""\
    x += n
    p = x + tl.arange(0, BLOCK)
    q = p + 1
    x_2 = tl.load(p)
    for i in range(n):
        x_2 = x_2 * 2
        tl.store(q, x_2)
""")
