"""Layout functions that several ports have, moved to one module of the package."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tt2gl.port.shared_helpers import with_shared_helpers

IMPORTS = "import triton\nfrom triton.experimental import gluon\nfrom triton.experimental.gluon import language as gl\n"
HELPER = "@gluon.constexpr_function\ndef coalesced(shape):\n    return gl.BlockedLayout(shape, [1], [1], [0])\n"
OUTER = "@gluon.constexpr_function\ndef outer(shape):\n    return gl.SliceLayout(0, coalesced(shape))\n"
KERNEL = "@gluon.jit\ndef kernel(x):\n    coalesced([1])\n"
ORIGINAL = "import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n"

ROOT = frozenset({PurePosixPath()})
WITH_SUB = ROOT | {PurePosixPath("sub")}


def text(*parts: str, imports: str = IMPORTS) -> str:
    return "\n\n".join([imports, *parts])


def moved(
    ports: dict[str, str],
    *,
    original: str = ORIGINAL,
    folders: frozenset[PurePosixPath] = WITH_SUB,
    taken: frozenset[str] = frozenset(),
) -> dict[str, str]:
    texts = {PurePosixPath(place): (original, port) for place, port in ports.items()}
    return {str(place): port for place, port in with_shared_helpers(texts, folders, taken).items()}


PLAIN = text(HELPER, KERNEL)


@pytest.mark.parametrize(
    "ports",
    [
        pytest.param({"a.py": PLAIN}, id="one file has it"),
        pytest.param({"a.py": PLAIN, "b.py": text(HELPER.replace("[1]", "[2]"), KERNEL)}, id="two functions of a name"),
        pytest.param(
            {name: text(HELPER.replace("shape, [1]", "shape, SIZE"), KERNEL) for name in ("a.py", "b.py")},
            id="reads a name of its file",
        ),
        pytest.param({"a.py": PLAIN, "scripts/b.py": PLAIN}, id="one is in a folder that is no package"),
        pytest.param({name: text(KERNEL) for name in ("a.py", "b.py")}, id="no function"),
    ],
)
def test_stays(ports: dict[str, str]) -> None:
    assert moved(ports) == ports


def test_stays_in_scripts_and_where_the_author_wrote_it() -> None:
    ports = {"a.py": PLAIN, "b.py": PLAIN}
    assert moved(ports, original=f"{ORIGINAL}if __name__ == '__main__':\n    pass\n") == ports
    assert moved(ports, original=f"{ORIGINAL}\n\n{HELPER}") == ports
    assert moved(ports, folders=frozenset()) == ports


def test_moves_to_one_module() -> None:
    found = moved({"a.py": PLAIN, "sub/b.py": PLAIN})
    assert found["a.py"] == text(KERNEL, imports=f"{IMPORTS}\nfrom .gluon_layouts import coalesced\n")
    assert found["sub/b.py"] == text(KERNEL, imports=f"{IMPORTS}\nfrom ..gluon_layouts import coalesced\n")
    assert found["gluon_layouts.py"].startswith('"""Layouts that several modules of this package use."""\n')
    assert found["gluon_layouts.py"].endswith(f"\n\n\n{HELPER}")


def test_a_function_takes_those_along_that_it_calls() -> None:
    ports = {name: text(HELPER, OUTER, KERNEL) for name in ("a.py", "b.py")}
    found = moved(ports)
    assert "from .gluon_layouts import coalesced, outer\n" in found["a.py"]
    assert HELPER in found["gluon_layouts.py"]
    assert OUTER in found["gluon_layouts.py"]


def test_a_function_stays_with_one_that_stays() -> None:
    other = HELPER.replace("[1], [0]", "[2], [0]")
    ports = {"a.py": text(HELPER, OUTER), "b.py": text(HELPER, OUTER), "c.py": text(other, KERNEL)}
    assert moved(ports) == ports


def test_the_module_takes_no_name_that_is_taken() -> None:
    found = moved({"a.py": PLAIN, "b.py": PLAIN}, taken=frozenset({"gluon_layouts"}))
    assert "from .gluon_layouts_shared import coalesced\n" in found["a.py"]
    ports = {"a.py": PLAIN, "b.py": PLAIN}
    assert moved(ports, taken=frozenset({"gluon_layouts", "gluon_layouts_shared"})) == ports


def test_line_ends_stay_the_authors() -> None:
    dos = PLAIN.replace("\n", "\r\n")
    found = moved({"a.py": dos, "b.py": PLAIN})
    assert "\n" not in found["a.py"].replace("\r\n", "")
    assert "from .gluon_layouts import coalesced\r\n" in found["a.py"]
    assert "\r" not in found["b.py"] + found["gluon_layouts.py"]
