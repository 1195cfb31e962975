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
        ("out = tl.dot(p, v)\n\nout += (x + y)  # why\n", "out = tl.dot(p, v) + (x + y)  # why\n"),
        ("out = tl.dot(p, v)\nout += x if n else y\n", "out = tl.dot(p, v) + (x if n else y)\n"),
        (
            "for k in range(n):\n    out = tl.dot(p, v)\n    out += x\n",
            "for k in range(n):\n    out = tl.dot(p, v) + x\n",
        ),
        ('out = tl.dot(p, v, input_precision="ieee")\nout += x\n', 'out = tl.dot(p, v, input_precision="ieee") + x\n'),
        ("out = tl.dot(p, v)\nout += tl.dot(x, v) * y\n", "out = tl.dot(p, v) + tl.dot(x, v) * y\n"),
    ],
)
def test_what_is_joined(before: str, after: str) -> None:
    done = lower(before)
    assert done.functions == ("kernel",)
    assert done.text.endswith(f"\n{textwrap.indent(after, '    ')}")


@pytest.mark.parametrize(
    "body",
    [
        "out = tl.dot(p, v)\nx = y\nout += x\n",
        "out = tl.dot(p, v)  # the first\nout += x\n",
        "out = tl.dot(p, v)\n# and the rest\nout += x\n",
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
