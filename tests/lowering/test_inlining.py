"""Helpers written out at their calls: which stay calls, how the text reads, and that it computes the same."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

import tt2gl.convert
from tests.lowering.conftest import HEADER
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg
from tt2gl.lowering.inlining import inlined
from tt2gl.lowering.steps import Lowered
from tt2gl.pipeline import NotPipelinedError, Place, staged
from tt2gl.plan import FilePlan
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import SourceFile, read_source
from tt2gl.verify.device import Participant
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.simulate import SimulationJob, simulate_many

TILE = "def tile(p, i, B: tl.constexpr):\n    return tl.load(p + i + tl.arange(0, B))\n"
COMMENT = "# tile, written out: its loads run ahead of this loop"


def lower(helper: str, body: str, signature: str = "x, y, n, B: tl.constexpr", decorator: str = "") -> Lowered:
    """A kernel's body with all calls of `tile` written out."""
    text = HEADER.replace("@triton.jit", decorator) if decorator else HEADER
    text += f"{textwrap.dedent(helper)}\n\n@triton.jit\ndef kernel({signature}):\n"
    text += textwrap.indent(textwrap.dedent(body), "    ")
    places = {
        (node.lineno, node.col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tile"
    }
    done = inlined(read_source(Path("kernel.py"), text), places)
    ast.parse(done.text)
    return done


def lowered_body(helper: str, body: str) -> str:
    """What becomes of a kernel's body, without the comment."""
    done = lower(helper, body)
    assert "kernel" in done.functions
    text = textwrap.dedent(done.text.partition("def kernel(")[2].partition("):\n")[2])
    return "".join(line for line in text.splitlines(keepends=True) if line.strip() != COMMENT)


ASSEMBLY = 'tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [p], tl.float32'
"""Inline assembly on `p`, up to whether it is pure."""


# ------------------------------------------------------------------------------------------------------- what stays


@pytest.mark.parametrize(
    ("helper", "body"),
    [
        ("def tile(p):\n    for i in range(p):\n        return p\n    return p + 1\n", "a = tile(x)\n"),
        (
            "def tile(p):\n    if p:\n        p += 1\n        if p:\n            return p\n    return p\n",
            "a = tile(x)\n",
        ),
        ("def tile(p):\n    if p:\n        return\n    tl.store(p, 0)\n", "tile(x)\n"),
        ("def tile(p):\n    return tile(p)\n", "a = tile(x)\n"),
        ("def tile(p, *rest):\n    return p\n", "a = tile(x)\n"),
        ("def tile(p):\n    return p\n", "a = tile(*x)\n"),
        ("def tile(p):\n    return p\n", "a = tile(x) if n else x\n"),
        ("def tile(p):\n    return p\n", "a = n and tile(x)\n"),
        ("def tile(p):\n    return p\n", "if tile(x):\n    pass\n"),
        ("def tile(p):\n    return p\n", "a = tile(x); b = a\n"),
        ("def tile(p):\n    tl.store(p, 0)\n    return p\n", "a = tl.load(x) + tile(y)\n"),
        (f"def tile(p):\n    q = {ASSEMBLY}, False, 1)\n    return q + q\n", "a = tl.load(x) + tile(y)\n"),
        ("def tile(p):\n    return tl.load(p)\n", "a = tl.atomic_add(x, 1) + tile(y)\n"),
        ("def tile(p, B: tl.constexpr):\n    B += 1\n    return p + B\n", "a = tile(x, B)\n"),
        ("def tile(p):\n    return p + n\n", "a = tile(x)\n"),
        ('def tile(p):\n    tl.static_assert(True, """a\nb""")\n    return p\n', "a = tile(x)\n"),
    ],
    ids=[
        "returns in a loop",
        "returns in a branch that may go on",
        "returns nothing early",
        "recursive",
        "any number of parameters",
        "starred argument",
        "in a conditional expression",
        "after and",
        "in a header",
        "beside another statement",
        "writes amid a statement",
        "assembly that is not said to be pure amid a statement",
        "amid a statement that writes",
        "assigns to a constant",
        "reads a global that the caller has a variable of the name of",
        "text of several lines",
    ],
)
def test_a_call_that_stays(helper: str, body: str) -> None:
    done = lower(helper, body)
    assert (done.functions, dict(done.originals)) == ((), {})
    assert done.text.endswith(textwrap.indent(body, "    "))


def test_a_function_that_is_not_inlined_by_triton_stays() -> None:
    assert lower(TILE, "a = tile(x, n, B)\n", decorator="@triton.jit(noinline=True)").functions == ()


@pytest.mark.parametrize("decorator", ["@triton.jit()", "@triton.jit(do_not_specialize=['n'])"])
def test_options_of_launches_say_nothing_to_a_helper(decorator: str) -> None:
    assert lower(TILE, "a = tile(x, n, B)\n", decorator=decorator).functions == ("kernel",)


def test_only_the_calls_asked_for_are_written_out() -> None:
    source = read_source(Path("kernel.py"), f"{HEADER}{TILE}\n\n@triton.jit\ndef kernel(x):\n    a = tile(x, 0, 8)\n")
    assert inlined(source, {(11, 8), (11, 4), (8, 4)}).text == source.text


# --------------------------------------------------------------------------------------------------- how it reads


@pytest.mark.parametrize(
    ("helper", "body", "made"),
    [
        (TILE, "a = tile(x + n, i=4, B=B)\n", "a = tl.load(x + n + 4 + tl.arange(0, B))\n"),
        (TILE, "a = tile(x, n - 1, B)\n", "a = tl.load(x + (n - 1) + tl.arange(0, B))\n"),
        (TILE, "a = tl.sum(tile(x, n, B))\n", "a = tl.sum(tl.load(x + n + tl.arange(0, B)))\n"),
        ("def tile(p):\n    return p + 1\n", "a = tile(x) * tile(y)\n", "a = (x + 1) * (y + 1)\n"),
        ("def tile(p, k=8):\n    return p + k\n", "a = tile(x)\n", "a = x + 8\n"),
        ("def tile(p):\n    v = tl.load(p)\n    return v\n", "a = tile(x)\n", "a = tl.load(x)\n"),
        ("def tile(p):\n    tl.store(p, 0)\n", "tile(x)\n", "tl.store(x, 0)\n"),
        (
            "def tile(p):\n    a = p + 1\n    return a * a\n",
            "a = y\nb = tile(x)\n",
            "a = y\nb_a = x + 1\nb = b_a * b_a\n",
        ),
        ("def tile(p, q):\n    return p * p + q\n", "a = tile(tl.load(x), y)\n", "p = tl.load(x)\na = p * p + y\n"),
        ("def tile(s, v):\n    s += v\n    return s\n", "a = tile(a, y)\n", "a += y\n"),
        ("def tile(s, v):\n    s += v\n    return s\n", "a = tile(x, y)\n", "a = x\na += y\n"),
        ("def tile(s, m):\n    s += m\n    m = s + 1\n    return s, m\n", "a, b = tile(a, b)\n", "a += b\nb = a + 1\n"),
        ("def tile(s, m):\n    s += m\n    return s, s\n", "a, b = tile(a, b)\n", "a += b\nb = a\n"),
        (
            "def tile(p, M):\n    if M is not None:\n        v = tl.load(p, M)\n"
            "    else:\n        v = tl.load(p)\n    return v\n",
            "a = tile(x, None)\n",
            "a = tl.load(x)\n",
        ),
        (
            "def tile(p, FLAG: tl.constexpr):\n    '''What it says.'''\n"
            "    # why\n    if FLAG:\n        p += 1\n    return p\n",
            "a = tile(x, True)\n",
            "a = x\n# why\na += 1\n",
        ),
        (
            "def tile(p, q):\n    if MODE == 1:\n        return p\n    elif MODE == 2: return q\n"
            "    q += 1\n    # more\n    return q\n",
            "a = tile(x, y)\n",
            "q = y\nif MODE == 1:\n    a = x\nelif MODE == 2:\n    a = q\nelse:\n    q += 1\n    # more\n    a = q\n",
        ),
        ("def tile(p, F):\n    if F:\n        return p\n    return p + 1\n", "a = tile(x, True)\n", "a = x\n"),
        (
            "def tile(p):\n    if MODE == 1:\n        return p\n    else:\n        return p + 1\n",
            "a = 2 * tile(x)\n",
            "if MODE == 1:\n    result = x\nelse:\n    result = x + 1\na = 2 * result\n",
        ),
        (
            "def tile(p):\n    if MODE == 1:\n        return p\n    elif MODE == 2:\n        return p + 1\n"
            "    else:\n        tl.static_assert(False)\n",
            "a = tile(x)\n",
            "if MODE == 1:\n    a = x\nelif MODE == 2:\n    a = x + 1\n"
            "else:\n    tl.static_assert(False)\n    a = None\n",
        ),
        (
            "def tile(p):\n    if MODE == 1:\n        return p\n    tl.store(p, 0)\n",
            "a = tile(x)\n",
            "if MODE == 1:\n    a = x\nelse:\n    tl.store(x, 0)\n    a = None\n",
        ),
        (
            f"def tile(p):\n    q = {ASSEMBLY}, True, 1)\n    return q + q\n",
            "a = tl.load(x) + tile(y)\n",
            f"q = {ASSEMBLY}, True, 1)\na = tl.load(x) + (q + q)\n".replace("[p]", "[y]"),
        ),
        (
            f"def tile(p):\n    q = {ASSEMBLY}, pack=1, is_pure=True)\n    return q + q\n",
            "a = tl.load(x) + tile(y)\n",
            f"q = {ASSEMBLY}, pack=1, is_pure=True)\na = tl.load(x) + (q + q)\n".replace("[p]", "[y]"),
        ),
        (
            "def tile(p, F):\n    if MODE == 1:\n        p += 1\n    elif F:\n        # why\n        p += 2\n"
            "        p *= 3\n    else:\n        p += 4\n    return p\n",
            "a = tile(x, True)\n",
            "a = x\nif MODE == 1:\n    a += 1\nelse:\n    # why\n    a += 2\n    a *= 3\n",
        ),
    ],
    ids=[
        "arguments in place",
        "parentheses where they must be",
        "amid an expression",
        "twice in a statement",
        "default",
        "result computed in its variable",
        "no result",
        "name taken",
        "argument computed once",
        "parameter that is changed and returned",
        "parameter that is changed, of another variable",
        "several results",
        "one result twice",
        "branch on None",
        "branch on a flag, comments",
        "returns in branches",
        "returns in a branch on a flag",
        "returns in branches, amid an expression",
        "returns in branches but the last",
        "returns in a branch alone",
        "pure assembly amid a statement",
        "assembly that is said to be pure by name",
        "a later branch on a flag",
    ],
)
def test_how_a_call_reads(helper: str, body: str, made: str) -> None:
    assert lowered_body(helper, body) == made


LOOPS = """
def tile(p, i, B: tl.constexpr):
    H: tl.constexpr = B // 2
    cols = tl.arange(0, H)
    ptrs = p + i * B + cols
    return tl.load(ptrs)
"""


def test_what_is_made_of_constants_is_made_once_and_before_the_loop() -> None:
    body = "for i in range(n):\n    a = tile(x, i, B)\n    b = tile(y, i, B)\n"
    made = (
        "H: tl.constexpr = B // 2\ncols = tl.arange(0, H)\nfor i in range(n):\n"
        "    a_ptrs = x + i * B + cols\n    a = tl.load(a_ptrs)\n"
        "    b_ptrs = y + i * B + cols\n    b = tl.load(b_ptrs)\n"
    )
    assert lowered_body(LOOPS, body) == made


def test_a_variable_of_the_callers_that_holds_the_same_is_taken() -> None:
    helper = "def tile(p, B: tl.constexpr):\n    cols = tl.arange(0, B)\n    return tl.load(p + cols)\n"
    body = "offs = tl.arange(0, B)\nfor i in range(n):\n    a = tile(x, B)\n"
    assert lowered_body(helper, body) == body.replace("tile(x, B)", "tl.load(x + offs)")


def test_names_of_one_loop_are_used_again_in_the_next() -> None:
    helper = "def tile(p):\n    ptrs = p + 1\n    return tl.load(ptrs)\n"
    body = "for i in range(n):\n    a = tile(x)\nfor i in range(n):\n    b = tile(y)\n"
    made = "for i in range(n):\n    ptrs = {} + 1\n    {} = tl.load(ptrs)\n"
    assert lowered_body(helper, body) == made.format("x", "a") + made.format("y", "b")


def test_it_says_once_where_the_lines_are_from() -> None:
    done = lower(TILE, "for i in range(n):\n    a = tile(x, i, B)\n    b = tile(y, i, B)\n")
    assert done.text.count(COMMENT) == 1
    assert done.text.index(COMMENT) < done.text.index("a = tl.load")


def test_a_kept_kernel_gets_its_calls_back() -> None:
    helper = f"{TILE}\n\n@triton.jit\ndef sums(p, n, B: tl.constexpr):\n    a = tile(p, n, B)\n    return tl.sum(a)\n"
    done = lower(helper, "tl.store(y, sums(x, n, B))\n")
    assert done.functions == ("sums",)
    assert done.restored(done.text, ["kernel"]).count("a = tile(p, n, B)") == 1
    assert done.restored(done.text, ["tile"]) == done.text


# ------------------------------------------------------------------------------------------------- what it computes

DOTS = '''
def tile(p, rows, stride, n, B: tl.constexpr):
    """Rows of a matrix; those past the end are zero."""
    cols = tl.arange(0, B)
    return tl.load(p + rows[:, None] * stride + cols[None, :], mask=rows[:, None] < n, other=0.0)


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, n, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros([B, B], tl.float32)
    for start in range(0, n, B):
        x = tile(x_ptr, start + rows, B, n, B)
        acc = tl.dot(x.T, tile(w_ptr, start + rows, B, n, B), acc)
    tl.store(y_ptr + rows[:, None] * B + tl.arange(0, B)[None, :], acc)
'''


def dots_launch() -> Launch:
    matrix = TensorArg("float16", (200, 64), (64, 1), None)
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp16", "w_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32", "B": "constexpr"},
        constexprs={"B": 64},
        divisible_by_16=("x_ptr", "w_ptr", "y_ptr"),
        grid=(1,),
        args={"x_ptr": matrix, "w_ptr": matrix, "y_ptr": TensorArg("float32", (64, 64), (64, 1), None), "n": 200},
    )


def test_it_computes_the_same_with_loads_ahead_of_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(HEADER + DOTS.lstrip("\n"), "utf-8")
    made = convert(path, target="sm90", launches=[dots_launch()], root=tmp_path, compile=False)
    loop = made.text[made.text.index("    acc = gl.zeros") :]
    assert made.kernels[0].status == "converted"
    assert loop.count(COMMENT) == 1
    assert loop.count("commit_group()") == 2  # in the prologue and in the loop
    assert "tile(" not in loop
    ports = [read_source(path), read_source(path, made.text)]
    kernels = [Participant(slice_kernel(each, "kernel", target="sm90", root=tmp_path), dots_launch()) for each in ports]
    run = simulate_many([SimulationJob(kernels[0], kernels[1], "sm90")], SimulationOptions(seeds=1))[0]
    assert run.result is not None, run.trouble
    assert (run.result.equal, run.result.findings) == (True, ())


def test_without_pipelining_calls_stay(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(HEADER + DOTS.lstrip("\n"), "utf-8")
    launches = [dots_launch()]
    made = convert(path, target="sm90", launches=launches, root=tmp_path, compile=False, without=["pipeline"])
    assert made.text.count("tile(") == 3


def test_a_kernel_that_is_kept_for_it_is_converted_with_its_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(text: str, source: SourceFile, plan: FilePlan) -> tuple[str, frozenset[Place]]:
        if any(function.rings for function in plan.functions):
            raise NotPipelinedError("some reason")
        return staged(text, source, plan)

    monkeypatch.setattr(tt2gl.convert, "staged", refusing)
    path = tmp_path / "kernel.py"
    path.write_text(HEADER + DOTS.lstrip("\n"), "utf-8")
    made = convert(path, target="sm90", launches=[dots_launch()], root=tmp_path, compile=False)
    assert made.kernels[0].status == "converted"
    assert made.text.count("tile(") == 3


def test_calls_stay_where_loads_may_not_run_ahead(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    # The loop writes what it reads.
    text = DOTS.replace("        acc = tl.dot(", "        tl.store(x_ptr + start + rows, start)\n        acc = tl.dot(")
    path.write_text(HEADER + text.replace("w_ptr, start", "x_ptr, start").lstrip("\n"), "utf-8")
    made = convert(path, target="sm90", launches=[dots_launch()], root=tmp_path, compile=False)
    assert made.kernels[0].status == "converted"
    assert made.text.count("tile(") == 3


PRODUCTS = """
def tile(p, q, rows, B: tl.constexpr):
    cols = tl.arange(0, B)
    x = tl.load(p + rows[:, None] * B + cols[None, :])
    w = tl.load(q + cols[:, None] * B + cols[None, :])
    return tl.dot(x, w)


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, n, B: tl.constexpr):
    cols = tl.arange(0, B)
    few = tl.arange(0, 16)
    tl.store(y_ptr + cols[:, None] * B + cols[None, :], tile(x_ptr, w_ptr, cols, B))
    tl.store(y_ptr + few[:, None] * B + cols[None, :], tile(x_ptr, w_ptr, few, B))
"""


def test_a_helper_whose_calls_become_other_instructions(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(HEADER + PRODUCTS.lstrip("\n"), "utf-8")
    made = convert(path, target="sm90", launches=[dots_launch()], root=tmp_path, compile=False)
    assert made.kernels[0].status == "converted"
    assert "# tile, written out: its calls want different layouts\n" in made.text
    assert (made.text.count("warpgroup_mma("), made.text.count("mma_v2(")) == (1, 1)


STEPS = """
def step(x, B: tl.constexpr, at: tl.constexpr):
    pairs = tl.permute(tl.reshape(x, (4, B // (2 * at), 2, at)), (0, 1, 3, 2))
    low, high = tl.split(pairs)
    return tl.reshape(tl.permute(tl.join(low + high, low - high), (0, 1, 3, 2)), (4, B))


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, n, B: tl.constexpr):
    places = tl.arange(0, 4)[:, None] * B + tl.arange(0, B)[None, :]
    x = step(tl.load(x_ptr + places), B, tl.constexpr(1))
    tl.store(y_ptr + places, step(x, B, tl.constexpr(2)) * 2)
"""


def test_a_helper_one_of_whose_calls_alone_has_to_convert(tmp_path: Path) -> None:
    """Its threads have the pairs of the first step; those of the second are converted to."""
    path = tmp_path / "kernel.py"
    path.write_text(HEADER + STEPS.lstrip("\n"), "utf-8")
    made = convert(path, target="sm90", launches=[dots_launch()], root=tmp_path, compile=False)
    assert made.kernels[0].status == "converted"
    assert "AutoLayout" not in made.text
    assert (made.text.count("gl.split("), made.text.count("gl.split(gl.convert_layout(")) == (2, 1)


def test_of_two_helpers_of_one_name_the_one_that_is_called_is_written_out() -> None:
    text = (
        "import triton\nimport triton.language as tl\n\n"
        "if NEW:\n    @triton.jit\n    def tile(p):\n        return p + 1\n"
        "else:\n    @triton.jit\n    def tile(p):\n        return p + 2\n\n"
        "@triton.jit\ndef kernel(x, y):\n    a = tile(x)\n    tl.store(y, a)\n"
    )
    source = read_source(Path("kernel.py"), text)
    first, second = (function.line for function in source.functions if function.name == "tile")
    place = {(text[: text.index("tile(x)")].count("\n") + 1, 8)}
    assert "    a = x + 1\n" in inlined(source, place, (), {first}).text
    assert "    a = x + 2\n" in inlined(source, (), place, {second}).text
    assert inlined(source, place, (), {first, second}).text == text
    assert inlined(source, place).text == text
