"""Products that a later statement adds to something: what is joined, and what stays apart."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.later_sums import later_sums
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source


def lower(body: str) -> Lowered:
    text = f"{HEADER}def kernel(p, v, x, y, n):\n{textwrap.indent(body, '    ')}"
    return later_sums(read_source(Path("kernel.py"), text))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("out = tl.dot(p, v)\nout += x * y[:, None]\n", "out = tl.dot(p, v) + x * y[:, None]\n"),
        ("out = tl.dot(p, v)\nout += x + y\n", "out = tl.dot(p, v) + (x + y)\n"),
        ("out = tl.dot(p, v)\n\nout += (x + y)  # why\n", "\nout = tl.dot(p, v) + (x + y)  # why\n"),
        ("out = tl.dot(p, v)\nout += x if n else y\n", "out = tl.dot(p, v) + (x if n else y)\n"),
        (
            "for k in range(n):\n    out = tl.dot(p, v)\n    out += x\n",
            "for k in range(n):\n    out = tl.dot(p, v) + x\n",
        ),
        ('out = tl.dot(p, v, input_precision="ieee")\nout += x\n', 'out = tl.dot(p, v, input_precision="ieee") + x\n'),
        ("out = tl.dot(p, v)\nout += tl.dot(x, v) * y\n", "out = tl.dot(p, v) + tl.dot(x, v) * y\n"),
        ("out = tl.dot(p, v)\nx = y\nout += x\n", "x = y\nout = tl.dot(p, v) + x\n"),
        ("out = tl.dot(p, v)\n# and the rest\nout += x\n", "# and the rest\nout = tl.dot(p, v) + x\n"),
        ("a = tl.dot(p, v)\nb = tl.dot(p, y) * x\nc = a + b\n", "b = tl.dot(p, y) * x\nc = tl.dot(p, v) + b\n"),
        ("a = tl.dot(p.to(y.dtype), v)\nx *= n\nx += a\n", "x *= n\nx += tl.dot(p.to(y.dtype), v)\n"),
        ("a = tl.dot(p, v)\nx = x * n\nx = x + a\n", "x = x * n\nx = x + tl.dot(p, v)\n"),
        ("a = tl.dot(p, v)\ntl.store(p, a + x)\n", "tl.store(p, tl.dot(p, v) + x)\n"),
        ("a = tl.dot(p, v)\nb = tl.dot(v, p)\nc = a + b\n", "a = tl.dot(p, v)\nc = a + tl.dot(v, p)\n"),
        ("a = tl.dot(p, v)\na = x + a\ny = a\n", "a = x + tl.dot(p, v)\ny = a\n"),
    ],
)
def test_what_is_joined(before: str, after: str) -> None:
    done = lower(before)
    assert done.functions == ("kernel",)
    assert done.text.endswith(f"\n{textwrap.indent(after, '    ')}")


@pytest.mark.parametrize(
    "body",
    [
        "out = tl.dot(p, v)\np = y\nout += x\n",
        "out = tl.dot(p, v)\nx = out * 2\nout += x\n",
        "out = tl.dot(p, v)\nif n:\n    x = y\nout += x\n",
        "out = tl.dot(tl.load(p), v)\ntl.store(p, x)\nout += x\n",
        "a = tl.dot(p, v)\nb = a + x\ny = a\n",
        "a = tl.dot(p, v)\nb = a * x + a\n",
        "a = tl.dot(p, v)\nb = a * x + y\n",
        "a = tl.dot(p, v)\nb = x - a\n",
        "y = a\na = tl.dot(p, v)\nb = a + x\n",
        "out = tl.dot(p, v)  # the first\nout += x\n",
        "out = tl.dot(p, v)\nout += out * x\n",
        "out = tl.dot(p, v)\nout -= x\n",
        "out = tl.dot(p, v)\ny += x\n",
        "out = tl.dot(p, v)\nout += tl.dot(x, y)\n",
        "out = tl.dot(p, v, x)\nout += y\n",
        "out = tl.dot(p, v, acc=x)\nout += y\n",
        "out = x + tl.dot(p, v)\nout += y\n",
        "out = dot(p, v)\nout += x\n",
    ],
)
def test_what_stays(body: str) -> None:
    done = lower(body)
    assert done.functions == ()
    assert done.text.endswith(textwrap.indent(body, "    "))
