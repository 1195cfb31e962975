"""Rule `converted_masks`: a converted mask comes after the address and the value that are converted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Body = Callable[..., str]


@pytest.mark.parametrize(
    ("statement", "converts", "expected"),
    [
        pytest.param("tl.store(p, x, mask=m)", "m", "gl.store(p, x, mask=conv(m))", id="alone"),
        pytest.param("tl.store(p, x, mask=m)", "px", "gl.store(conv(p), conv(x), mask=m)", id="not converted"),
        pytest.param("tl.store(p, value=x, mask=m)", "pm", "gl.store(conv(p), value=x, mask=conv(m))", id="by name"),
        pytest.param("tl.load(p, mask=m)", "pm", "gl.load(conv(p), mask=conv(m))", id="a load"),
        pytest.param("store(p, x, mask=m)", "pm", "store(conv(p), x, mask=conv(m))", id="a function of the author's"),
        pytest.param("p.atomic_add(x, mask=m)", "xm", "p.atomic_add(conv(x), mask=conv(m))", id="a method"),
    ],
)
def test_other_masks_keep_their_names(body: Body, statement: str, converts: str, expected: str) -> None:
    assert _said(body, statement, converts) == expected


@pytest.mark.parametrize(
    ("statement", "converts", "expected"),
    [
        ("tl.store(p, x, mask=m)", "pm", "gl.store(conv(p), x, conv(m))"),
        ("tl.store(p, x, mask=m & n)", "xm", "gl.store(p, conv(x), conv(m) & n)"),
        (
            "tl.atomic_add(p, x, sem='relaxed', mask=m)",
            "pxm",
            "gl.atomic_add(conv(p), conv(x), conv(m), sem='relaxed')",
        ),
    ],
)
def test_a_converted_mask_comes_after_what_else_is(body: Body, statement: str, converts: str, expected: str) -> None:
    assert _said(body, statement, converts) == expected


def _said(body: Body, statement: str, converts: str) -> str:
    made = body(statement, converts=dict.fromkeys(converts, "layout"))
    for name in converts:
        made = made.replace(f"gl.convert_layout({name}, layout)", f"conv({name})")
    return made
