"""Helpers of other files brought into the one that calls them: which stay, what comes along, and the conversion."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.convert import convert
from tt2gl.launches import Launch
from tt2gl.lowering.imported_helpers import with_helpers
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

TILES = '''"""Tiles of matrices."""

import math

import triton
import triton.language as tl
from triton.language import cdiv

WIDTH: tl.constexpr = tl.constexpr(16)


@triton.jit
def half(i):
    return i // 2


# at its place
@triton.jit
def tile(p, i, B: tl.constexpr):
    """What is at i."""
    return tl.load(p + half(i) + tl.arange(0, B))


@triton.jit
def wide(p):
    return tl.load(p + tl.arange(0, WIDTH) + cdiv(WIDTH, 2))
'''
KERNEL = """

# the kernel
@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    tl.store(y + tl.arange(0, B), tile(x, n, B))
"""
IMPORTS = HEADER.partition("@triton")[0].rstrip() + "\n"

Bring = Callable[..., Lowered]


@pytest.fixture
def bring(tmp_path: Path) -> Bring:
    """A file after the helpers of `tiles.py` named are brought into it."""

    def run(text: str, *names: str, tiles: str = TILES) -> Lowered:
        package = tmp_path / "package"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        (package / "tiles.py").write_text(tiles, "utf-8")
        (package / "ours.py").write_text("def tile(p, i, B):\n    return p\n", "utf-8")
        (package / "more.py").write_text("from .tiles import tile, wide\n", "utf-8")
        (package / "kernel.py").write_text(text, "utf-8")
        functions = read_source(package / "tiles.py").functions
        wanted = {(str((package / "tiles.py").resolve()), each.line) for each in functions if each.name in names}
        done = with_helpers(read_source(package / "kernel.py"), wanted, "sm90", tmp_path)
        ast.parse(done.text)
        return done

    return run


@pytest.mark.parametrize(
    ("imports", "wanted"),
    [
        ("from . import tiles\n", "tile"),
        ("from .tiles import tile as half\n", "tile"),
        ("if True:\n    from .ours import tile\nelse:\n    from .tiles import tile\n", "tile"),
        ("from .tiles import tile\n\nhalf = tiles_half = 2\n", "tile"),
        ("from .more import wide\n", "wide"),
    ],
    ids=[
        "a module whose helper is not called",
        "a name that it reads is its own here, and so is the other one",
        "a condition that does not hold",
        "a name that it reads is another's",
        "a constant of a file that is not named",
    ],
)
def test_a_helper_that_stays(bring: Bring, imports: str, wanted: str) -> None:
    text = f"{IMPORTS}{imports}{KERNEL}"
    done = bring(text, wanted)
    assert (done.text, done.functions) == (text, ())


@pytest.mark.parametrize(
    ("imports", "called", "of"),
    [
        ("from . import tiles\n", "tiles.tile(", ".tiles"),
        ("from . import tiles as t\n", "t.tile(", ".tiles"),
        ("import package.tiles as t\n", "t.tile(", "package.tiles"),
        ("from .tiles import *\n", "tile(", ".tiles"),
        ("from .tiles import tile as block\n", "block(", ".tiles"),
    ],
    ids=["module", "another name of it", "import", "star", "another name"],
)
def test_a_helper_that_is_not_imported_by_its_name_is_called_by_it(
    bring: Bring, imports: str, called: str, of: str
) -> None:
    done = bring(f"{IMPORTS}{imports}{KERNEL.replace('tile(', called)}", "tile")
    assert done.functions == ("tile", "half")
    assert done.text.startswith(f"{IMPORTS}{imports}\n\n# from {of}: ")
    assert "tl.store(y + tl.arange(0, B), tile(x, n, B))" in done.text


def test_what_a_helper_of_a_module_reads_is_imported_beside_that(bring: Bring) -> None:
    done = bring(f"{IMPORTS}from . import tiles\n{KERNEL.replace('tile(x, n, B)', 'tiles.wide(x)')}", "wide")
    assert done.text.startswith(
        f"{IMPORTS}from . import tiles\nfrom .tiles import WIDTH\nfrom triton.language import cdiv\n\n\n# from .tiles"
    )


def test_a_helper_whose_name_is_taken_stays(bring: Bring) -> None:
    text = f"{IMPORTS}from . import tiles\n\ntile = 3\n{KERNEL.replace('tile(', 'tiles.tile(')}"
    assert bring(text, "tile").text == text


def test_what_a_helper_calls_by_a_name_that_is_taken_comes_under_another(bring: Bring) -> None:
    done = bring(f"{IMPORTS}from .tiles import tile\n\nhalf = 2\n{KERNEL}", "tile")
    assert done.functions == ("tile", "tiles_half")
    assert "def tiles_half(i):\n    return i // 2\n" in done.text
    assert "tl.load(p + tiles_half(i) + tl.arange(0, B))" in done.text


def test_helpers_of_two_files_call_their_own_functions_of_one_name(bring: Bring, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "third.py").write_text(TILES.replace("i // 2", "i // 3").replace("def tile", "def rows"))
    called = KERNEL.replace("n, B))", "n, B) + rows(x, n, B))")
    kernel = f"{IMPORTS}from .tiles import tile\nfrom .third import rows\n{called}"
    line = TILES[: TILES.index("def tile")].count("\n") + 1
    places = {(str((tmp_path / "package" / name).resolve()), line) for name in ("tiles.py", "third.py")}
    bring(kernel)
    done = with_helpers(read_source(tmp_path / "package" / "kernel.py"), places, "sm90", tmp_path)
    assert done.functions == ("tile", "half", "rows", "third_half")
    for name, number in ("half", 2), ("third_half", 3):
        assert f"def {name}(i):\n    return i // {number}\n" in done.text
        assert f"tl.load(p + {name}(i) + tl.arange(0, B))" in done.text


def test_a_helper_comes_with_what_it_calls_before_the_first_function(bring: Bring) -> None:
    done = bring(f"{IMPORTS}from .tiles import tile\n{KERNEL}", "tile")
    assert done.functions == ("tile", "half")
    assert ".tiles import" not in done.text
    head, _, rest = done.text.partition("# from .tiles: its tensors")
    assert head == f"{IMPORTS}\n\n"
    assert '@triton.jit\ndef tile(p, i, B: tl.constexpr):\n    """What is at i."""\n' in rest
    assert rest.index("def tile") < rest.index("def half") < rest.index("\n\n\n# the kernel\n@triton.jit\ndef kernel")


def test_of_a_helper_that_branches_define_the_one_that_is_taken_comes(bring: Bring) -> None:
    tiles = """import triton
import triton.language as tl

if False:
    @triton.jit
    def tile(p, i, B: tl.constexpr):
        return tl.load(p + tl.arange(0, B), mask=i > 0)
else:
    @triton.jit
    def tile(p, i, B: tl.constexpr):
        return tl.load(p + i + tl.arange(0, B))
"""
    done = bring(f"{IMPORTS}from .tiles import tile\n{KERNEL}", "tile", tiles=tiles)
    assert done.functions == ("tile",)
    assert "@triton.jit\ndef tile(p, i, B: tl.constexpr):\n    return tl.load(p + i + tl.arange(0, B))\n" in done.text


@pytest.mark.parametrize(
    ("imports", "left"),
    [
        ("from .tiles import tile, wide  # both\n", "from .tiles import wide  # both\n"),
        ("from .tiles import wide, tile\n", "from .tiles import wide\n"),
        ("from .tiles import (\n    tile,\n    wide,\n)\n", "from .tiles import (\n    wide,\n)\n"),
    ],
    ids=["first", "last", "lines"],
)
def test_other_names_are_imported_as_before(bring: Bring, imports: str, left: str) -> None:
    done = bring(f"{IMPORTS}{imports}{KERNEL}", "tile")
    assert done.text.startswith(f"{IMPORTS}{left}\n\n# from ")


@pytest.mark.parametrize(
    ("branch", "left"),
    [
        ("if True:\n    from .tiles import tile\n", "if True:\n    pass\n"),
        (
            "try:\n    from .tiles import tile\nexcept ImportError:\n    tile = None\n",
            "try:\n    pass\nexcept ImportError:\n    tile = None\n",
        ),
        (
            "if False:\n    from .ours import tile\nelse:\n    import os\n    from .tiles import tile\n",
            "if False:\n    from .ours import tile\nelse:\n    import os\n",
        ),
    ],
    ids=["if", "try", "else"],
)
def test_a_helper_that_a_branch_of_the_file_imports(bring: Bring, branch: str, left: str) -> None:
    done = bring(f"{IMPORTS}{branch}{KERNEL}", "tile")
    assert done.functions == ("tile", "half")
    assert done.text.startswith(f"{IMPORTS}{left}\n\n# from .tiles: ")


def test_a_helper_comes_to_the_branch_that_has_the_kernels(bring: Bring) -> None:
    inside = f"{IMPORTS}from .tiles import wide\n{KERNEL.replace('tile(x, n, B)', 'wide(x)')}"
    tiles = TILES.replace("def wide(p):\n", 'def wide(p):\n    """Two\nlines."""\n')
    done = bring("if True:\n" + textwrap.indent(inside, "    "), "wide", tiles=tiles)
    assert done.functions == ("wide",)
    told = "    # from .tiles: its tensors take the layouts of its callers\n    @triton.jit\n"
    imported = "    from .tiles import WIDTH\n    from triton.language import cdiv\n\n\n"
    whole = imported + told + '    def wide(p):\n        """Two\nlines."""\n        return tl.load('
    assert whole in done.text
    assert "\n\n    # the kernel\n    @triton.jit\n    def kernel(" in done.text


def test_what_a_helper_reads_is_imported(bring: Bring) -> None:
    done = bring(f"{IMPORTS}from .tiles import wide\n{KERNEL}", "wide")
    assert done.text.startswith(f"{IMPORTS}from .tiles import WIDTH\nfrom triton.language import cdiv\n\n\n# from ")


def test_a_helper_that_calls_the_one_that_is_wanted(bring: Bring) -> None:
    assert bring(f"{IMPORTS}from .tiles import tile\n{KERNEL}", "half").functions == ("tile", "half")


def test_a_helper_through_a_file_that_only_names_it(bring: Bring) -> None:
    assert bring(f"{IMPORTS}from .more import tile\n{KERNEL}", "tile").functions == ("tile", "half")


LAUNCH = Launch(
    file="package/kernel.py",
    kernel="kernel",
    signature={"x": "*fp32", "y": "*fp32", "n": "i32", "B": "constexpr"},
    constexprs={"B": 1024},
    divisible_by_16=("x", "y"),
)


def test_a_kernel_that_calls_one_is_converted(bring: Bring, tmp_path: Path) -> None:
    bring(f"{IMPORTS}from .tiles import tile\n{KERNEL}")
    path = tmp_path / "package" / "kernel.py"
    made = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path)
    assert [(report.status, report.diagnostics) for report in made.kernels] == [("converted", ())]
    assert "@gluon.jit\ndef tile(p, i, B: gl.constexpr, layout: gl.constexpr):" in made.text
    assert "tile(x, n, B, layout=layout)" in made.text


@pytest.mark.parametrize(
    ("third", "rows"),
    [
        ("rows.py", "from .rows import row"),
        ("deep/rows.py", "from .deep.rows import row"),
        ("rows.py", "from package.rows import row"),
    ],
)
def test_what_one_takes_from_a_third_file_comes_with_it(bring: Bring, tmp_path: Path, third: str, rows: str) -> None:
    header = "import triton\nimport triton.language as tl\n"
    tiles = f"{header}{rows}\n\n\n@triton.jit\ndef tile(p, i, B: tl.constexpr):\n    return row(p, B) + i\n"
    bring(f"{IMPORTS}from .tiles import tile\n{KERNEL}", tiles=tiles)
    (tmp_path / "package" / third).parent.mkdir(exist_ok=True)
    (tmp_path / "package" / third).write_text(
        f"{header}\nSTEP = tl.constexpr(2)\n\n\n@triton.jit\ndef row(p, B: tl.constexpr):\n"
        "    return tl.load(p + STEP * tl.arange(0, B))\n"
    )
    made = convert(tmp_path / "package" / "kernel.py", target="sm90", launches=[LAUNCH], root=tmp_path)
    assert [(report.status, report.diagnostics) for report in made.kernels] == [("converted", ())]
    spelled = "." + third.removesuffix(".py").replace("/", ".")
    assert f"# from {spelled}:" in made.text
    assert f"from {spelled} import STEP\n" in made.text


def test_what_one_takes_from_another_package_comes_from_there(bring: Bring, tmp_path: Path) -> None:
    header = "import triton\nimport triton.language as tl\n"
    tiles = f"{header}from other.deep.rows import row\n\n\n@triton.jit\ndef tile(p, i, B: tl.constexpr):\n"
    bring(f"{IMPORTS}from .tiles import tile\n{KERNEL}", tiles=f"{tiles}    return row(p, B) + i\n")
    for folder in "other", "other/deep":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "other" / "deep" / "rows.py").write_text(
        f"{header}\nSTEP = tl.constexpr(2)\n\n\n@triton.jit\ndef row(p, B: tl.constexpr):\n"
        "    return tl.load(p + STEP * tl.arange(0, B))\n"
    )
    made = convert(tmp_path / "package" / "kernel.py", target="sm90", launches=[LAUNCH], root=tmp_path)
    assert [(report.status, report.diagnostics) for report in made.kernels] == [("converted", ())]
    assert "# from other.deep.rows:" in made.text
    assert "from other.deep.rows import STEP\n" in made.text


def test_one_that_cannot_be_brought_keeps_its_kernel(bring: Bring, tmp_path: Path) -> None:
    text = f"{IMPORTS}from .tiles import tile\n\nhalf = tiles_half = 2\n{KERNEL}"
    bring(text)
    made = convert(tmp_path / "package" / "kernel.py", target="sm90", launches=[LAUNCH], root=tmp_path, compile=False)
    assert [diagnostic.code for diagnostic in made.kernels[0].diagnostics] == ["TTG311"]
    assert made.text == text


def test_one_whose_accesses_can_be_by_buffers_comes_on_amd(bring: Bring, tmp_path: Path) -> None:
    tiles = """import triton
import triton.language as tl


@triton.jit
def guarded(ptrs, mask):
    return tl.load(ptrs, mask=mask, other=0.0)
"""
    kernel = KERNEL.replace("tile(x, n, B)", "guarded(x + tl.arange(0, B), tl.arange(0, B) < n)")
    bring(f"{IMPORTS}from .tiles import guarded\n{kernel}", tiles=tiles)
    path = tmp_path / "package" / "kernel.py"
    made, other = (
        convert(path, target=target, launches=[LAUNCH], root=tmp_path, compile=False).text
        for target in ("gfx942", "sm90")
    )
    assert "return gl.amd.cdna3.buffer_load(ptr, offsets, mask=mask)" in made
    assert "from .tiles import guarded" in other


@pytest.mark.slow
def test_one_whose_loads_run_ahead_of_a_loop_comes_and_is_written_out(bring: Bring, tmp_path: Path) -> None:
    tiles = """import triton
import triton.language as tl


@triton.jit
def guarded(ptrs, mask, masked: tl.constexpr):
    if masked:
        return tl.load(ptrs, mask=mask, other=0.0)
    else:
        return tl.load(ptrs)
"""
    kernel = """

@triton.jit
def kernel(x, y, z, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.arange(0, B)
    square = i[:, None] * B + i[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for k in range(n):
        a = guarded(x + k * B * B + square, i[None, :] < n, not EVEN)
        b = guarded(y + k * B * B + square, i[:, None] < n, not EVEN)
        acc = tl.dot(a, b, acc)
    tl.store(z + square, acc)
"""
    launch = Launch(
        file="package/kernel.py",
        kernel="kernel",
        signature={"x": "*fp16", "y": "*fp16", "z": "*fp32", "n": "i32", "B": "constexpr", "EVEN": "constexpr"},
        constexprs={"B": 64, "EVEN": True},
        divisible_by_16=("x", "y", "z"),
    )
    bring(f"{IMPORTS}from .tiles import *\n{kernel}", tiles=tiles)
    made = convert(tmp_path / "package" / "kernel.py", target="sm90", launches=[launch], root=tmp_path)
    assert "TTG331" not in {diagnostic.code for diagnostic in made.kernels[0].diagnostics}
    assert "# guarded, written out: its loads run ahead of this loop" in made.text
    assert "async_copy.wait_group(" in made.text
