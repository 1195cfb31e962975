"""Of what a compiler printed, the first error; the rest of the explanation is tested in verify/test_compile.py."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tt2gl.diagnostics import shown
from tt2gl.failures import PrintedFault, explain, printed_fault
from tt2gl.slicing.slices import Slice, SlicedModule


@pytest.mark.parametrize(
    "printed",
    ["", "warning: something\n", "no error: here\n", "k.py:1:2: note: see current operation\n"],
    ids=["nothing", "a warning", "within a line", "a note"],
)
def test_what_is_no_printed_fault(printed: str) -> None:
    assert printed_fault(printed) is None


@pytest.mark.parametrize(
    ("printed", "fault"),
    [
        ("error: bad\n", PrintedFault("", 0, "bad")),
        ("k.py:3:4: error: bad\n", PrintedFault("k.py", 3, "bad")),
        ('loc("/a/k.py":3:4): error: bad.\n', PrintedFault("/a/k.py", 3, "bad")),
        ("k.py:3:4: error: bad.\nMore on it.\n    x = y\n        ^\n", PrintedFault("k.py", 3, "bad. More on it")),
        ("k.py:3:4: error: bad\nk.py:3:4: note: see current operation: ...\n", PrintedFault("k.py", 3, "bad")),
        ("warn\nk.py:3:4: error: first\nk.py:5:6: error: second\n", PrintedFault("k.py", 3, "first")),
        (
            "k.py:3:4: error: Operand 0 (%1 of type 'tensor<4xf32>' at index: 0) is bad",
            PrintedFault("k.py", 3, "Operand 0 is bad"),
        ),
    ],
    ids=["no place", "place", "location", "sentences", "note", "the first", "operand"],
)
def test_a_printed_fault(printed: str, fault: PrintedFault) -> None:
    assert printed_fault(printed) == fault


def test_messages_have_no_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown(tmp_path / "ops" / "k.py") == "ops/k.py"
    assert shown("ops/k.py") == "ops/k.py"
    assert shown("/elsewhere/ops/k.py") == "k.py"
    kernel = Slice("k", (SlicedModule("_private", Path("/elsewhere/ops/k.py"), "def k():\n    pass\n"),), ())
    error = RuntimeError("PassManager::run failed")
    assert explain(error, kernel, 'loc("/tmp/x/_private.py":2:4): error: bad.\n') == "k.py:2: bad"


class Unsaid(Exception):
    """As Triton's, of an assertion in its own library that has no words."""

    error_message = ""
    src = ""

    def __init__(self, node: ast.AST) -> None:
        super().__init__()
        self.node = node


def test_an_assertion_without_words_says_what_it_asks() -> None:
    error = RuntimeError()
    error.__cause__ = Unsaid(ast.parse("tl.static_assert(seed.dtype.is_int())").body[0])
    assert explain(error, Slice("k", (), ())) == "Unsaid: tl.static_assert(seed.dtype.is_int())"


class Quoting(Exception):
    """As Triton's, with the source that it quotes and a node there."""

    def __init__(self, src: str, node: ast.AST) -> None:
        super().__init__("bad")
        self.src, self.node = src, node


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("def k(a):\n    a += 2\n", ""),
        ("x = 1\ndef k(a):\n    a += 1\n", "k.py:3:4: "),
        ("x = 1\ndef k(a):\n    \n    a += 1\n", "k.py:4:4: "),
        ("if x:\n    x = 1\n\n    def k(a):\n        a += 1\n", "k.py:5:8: "),
    ],
    ids=["another function", "as it is", "blanks on an empty line", "indented"],
)
def test_where_a_quoted_function_stands(text: str, place: str) -> None:
    """Triton quotes a function dedented, and empty lines without their blanks."""
    quoted = "def k(a):\n\n    a += 1\n" if "\n    \n" in text else "def k(a):\n    a += 1\n"
    error = Quoting(quoted, ast.parse(quoted.strip()).body[0].body[0])  # type: ignore[attr-defined]
    kernel = Slice("k", (SlicedModule("_private", Path("k.py"), text),), ())
    assert explain(error, kernel) == f"{place}Quoting: bad"


class PTXASError(Exception):
    """As Triton's, by its name."""


PTXAS = "Internal Triton PTX codegen error\n`ptxas` stderr:\n"


@pytest.mark.parametrize("header", [PTXAS, f"PTXAS error: {PTXAS}"], ids=["plain", "named"])
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ptxas /tmp/k.ptx, line 35; error   : Arguments mismatch for 'cvt'\nptxas fatal   : aborted\n", "Arguments"),
        ("ptxas fatal   : Unresolved extern function 'f'\n", "Unresolved extern function 'f'"),
    ],
    ids=["error", "fatal"],
)
def test_what_ptxas_found(header: str, said: str, told: str) -> None:
    assert explain(PTXASError(header + said), Slice("k", (), ())).startswith(f"ptxas: {told}")


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("error: invalid instruction\n\tfence.sc.sys; s_nop\n\t^\n", "invalid instruction (fence.sc.sys; s_nop)"),
        ("ld.lld: error: undefined symbol: f\n>>> referenced by k.o\n", "undefined symbol: f"),
    ],
    ids=["assembler", "linker"],
)
def test_what_amds_assembler_and_linker_found(printed: str, told: str) -> None:
    error = RuntimeError("LLD failed to link hsaco source /tmp/a into object file /tmp/b because ")
    assert explain(error, Slice("k", (), ()), printed) == f"the assembler or linker says: {told}"
    assert explain(error, Slice("k", (), ()), "").startswith("RuntimeError: LLD failed to link")
