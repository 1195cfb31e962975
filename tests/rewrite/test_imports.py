"""Rule `imports`: Gluon is imported beside Triton, helpers stand above the first converted function."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.rewrite.imports import import_lines, is_guarded, top_level_index, with_gluon, with_instructions

BOTH = "from triton.experimental import gluon\nfrom triton.experimental.gluon import language as gl\n"

Code = Callable[[cst.CSTNode], str]


def imported(text: str, first: int, helpers: tuple[str, ...] = (), names: dict[str, str] | None = None) -> str:
    """A module's text with Gluon imported."""
    made = [cst.ensure_type(cst.parse_statement(helper), cst.FunctionDef) for helper in helpers]
    return with_gluon(cst.parse_module(text), made, first, names or {}).code


def test_what_is_imported_already_is_not_imported_again() -> None:
    text = f"import triton\n{BOTH}\n\ndef kernel(): pass\n"
    assert imported(text, 3) == text


@pytest.mark.parametrize(
    ("text", "first", "expected"),
    [
        pytest.param(
            "import triton\nimport triton.language as tl\nimport torch\n\ndef k(): pass\n",
            3,
            f"import triton\nimport triton.language as tl\n{BOTH}import torch\n\ndef k(): pass\n",
            id="after the last import of triton",
        ),
        pytest.param(
            "from triton import jit\n\ndef k(): pass\n",
            1,
            f"from triton import jit\n{BOTH}\ndef k(): pass\n",
            id="a from-import",
        ),
        pytest.param(
            "import triton\nX = 1\ndef k(): pass\nimport triton.testing\n",
            2,
            f"import triton\n{BOTH}X = 1\ndef k(): pass\nimport triton.testing\n",
            id="not after the first converted function",
        ),
        pytest.param(
            "import tritonclient\nimport triton\ndef k(): pass\n",
            2,
            f"import tritonclient\nimport triton\n{BOTH}def k(): pass\n",
            id="another package of a like name",
        ),
        pytest.param(
            '"""Doc."""\ntry:\n    import triton\nexcept ImportError:\n    pass\ndef k(): pass\n',
            2,
            f'"""Doc."""\ntry:\n    import triton\nexcept ImportError:\n    pass\n\n{BOTH}def k(): pass\n',
            id="no import of triton at the top level",
        ),
        pytest.param(
            "def f(): pass\n\n\ndef k(): pass\n",
            1,
            f"def f(): pass\n\n\n{BOTH}\n\ndef k(): pass\n",
            id="after a function",
        ),
    ],
)
def test_where_the_imports_stand(text: str, first: int, expected: str) -> None:
    assert imported(text, first) == expected


def test_a_future_import_stays_first() -> None:
    text = "from __future__ import annotations\nfrom mine import triton\n\n\n@triton.jit\ndef k(): pass\n"
    assert imported(text, 2).startswith("from __future__ import annotations\nfrom mine import triton\nfrom triton.")


def test_names_that_the_author_took_are_imported_under_others() -> None:
    lines = import_lines({"gl": "gl_2", "gluon": "gluon_3"})
    assert lines == (
        "from triton.experimental import gluon as gluon_3",
        "from triton.experimental.gluon import language as gl_2",
    )


def test_helpers_stand_above_the_function_two_lines_apart() -> None:
    made = imported("import triton\n\n\ndef k(): pass\n", 1, ("def coalesced(): pass\n", "def paired(): pass\n"))
    assert made == f"import triton\n{BOTH}\n\ndef coalesced(): pass\n\n\ndef paired(): pass\n\n\ndef k(): pass\n"


def test_the_first_statement_that_holds_a_node() -> None:
    module = cst.parse_module("x = 1\nif x:\n    def k(): pass\ndef k2(): pass\n")
    assert top_level_index(module, lambda node: isinstance(node, cst.FunctionDef)) == 1
    assert top_level_index(module, lambda node: isinstance(node, cst.ClassDef)) == 3


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_instructions_are_imported_in_lines_that_end_as_the_file_s(end: str) -> None:
    text = end.join(["import triton", *BOTH.splitlines(), "acc = mma_v2(a, b, acc)", ""])
    instruction = "from triton.experimental.gluon.language.nvidia.ampere import mma_v2"
    made = with_instructions(text)
    assert made == end.join(["import triton", *BOTH.splitlines(), instruction, "acc = mma_v2(a, b, acc)", ""])
    assert with_instructions(made) == made


@pytest.mark.parametrize("indentation", ["", "    "])
def test_what_is_tried_stands_below_the_author_s_imports(indentation: str) -> None:
    own = ["from x import (", "    y,", ")", "", "import z"]
    rest = "LOG2E = 1.44"
    start = [f"if {x}:" for x in ["triton"] if indentation]
    text = "\n".join([*start, *(f"{indentation}{line}".rstrip() for line in [*BOTH.splitlines(), *own, rest]), ""])
    made = with_instructions(text + f"{indentation}async_load(a)\n")
    assert with_instructions(f"\ufeff{text}{indentation}async_load(a)\n") == f"\ufeff{made}"
    lines = made.replace(indentation, "").splitlines() if indentation else made.splitlines()
    at = lines.index("import z")
    assert lines[at + 1 : at + 3] == ["", "try:"]
    assert lines[at + 4].startswith("except ImportError:")
    assert lines[at + 6 : at + 8] == ["", rest]
    assert with_instructions(made) == made


TRIED = """\
try:
    import triton
except ImportError:
    triton = None
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{TRIED}def k(): pass\n", False, id="no condition"),
        pytest.param("import triton\nif triton:\n    def k(): pass\n", False, id="Triton is there in any case"),
        pytest.param(f"{TRIED}if triton:\n    pass\nelse:\n    def k(): pass\n", False, id="the other branch"),
        pytest.param(f"{TRIED}if triton:\n    def k(): pass\nif X:\n    def k(): pass\n", False, id="two conditions"),
        pytest.param(f"{TRIED}if triton:\n    def k(): pass\nif triton:\n    def k(): pass\n", True, id="one, twice"),
        pytest.param("def f():\n    import triton\n    class K: pass\n", True, id="a function that imports it"),
        pytest.param("import triton\ndef f():\n    import triton\n    class K: pass\n", False, id="one that need not"),
        pytest.param("def f():\n    class K: pass\n", False, id="a function that does not"),
    ],
)
def test_kernels_under_the_condition_that_triton_is_there(text: str, expected: bool) -> None:
    kernels = [cst.ClassDef] if "class" in text else [cst.FunctionDef]
    assert is_guarded(cst.parse_module(text), lambda node: type(node) in kernels) == expected


def test_under_a_condition_all_that_is_new_stands_under_it() -> None:
    module = cst.parse_module(f"{TRIED}if triton:\n    import x\n    # says who\n    def k(): tma.f()\n")
    helper = cst.ensure_type(cst.parse_statement("def helper(): pass"), cst.FunctionDef)
    made = with_instructions(
        with_gluon(module, [helper], 1, {}, True).code.replace("def k(): pass", "def k(): tma.f()")
    )
    assert made == (
        f"{TRIED}if triton:\n    import x\n"
        "    from triton.experimental import gluon\n"
        "    from triton.experimental.gluon import language as gl\n"
        "    from triton.experimental.gluon.language.nvidia.hopper import tma\n"
        "\n    def helper(): pass\n"
        "\n    # says who\n    def k(): tma.f()\n"
    )


def test_in_a_function_that_imports_triton_all_that_is_new_stands_below_that() -> None:
    text = 'def f():\n    """It says."""\n    import triton\n    import x\n    def k(): pass\n'
    helper = cst.ensure_type(cst.parse_statement("def helper(): pass"), cst.FunctionDef)
    assert with_gluon(cst.parse_module(text), [helper], 0, {}, True).code == (
        'def f():\n    """It says."""\n    import triton\n    import x\n'
        "    from triton.experimental import gluon\n"
        "    from triton.experimental.gluon import language as gl\n"
        "\n    def helper(): pass\n"
        "\n    def k(): pass\n"
    )
