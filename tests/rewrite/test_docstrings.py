"""Each rule does what the before and after of its docstring say."""

from __future__ import annotations

import importlib
import pkgutil
import re
import textwrap
from collections.abc import Callable
from typing import Any

import libcst as cst
import pytest

import tt2gl.rewrite
from tt2gl.plan import BufferAccess, Choice, Dispatch, Edits, FilePlan, FunctionPlan, Guard, Hoist, Position
from tt2gl.rewrite.at_once import read_at_once
from tt2gl.rewrite.bounces import settled
from tt2gl.rewrite.carried_operands import stored_first
from tt2gl.rewrite.converted_sums import converted_first
from tt2gl.rewrite.equal_arms import with_equal_arms
from tt2gl.rewrite.file import rewrite
from tt2gl.rewrite.idle_names import without_idle_names
from tt2gl.rewrite.idle_statements import without_idle
from tt2gl.rewrite.imports import with_gluon
from tt2gl.rewrite.late_bounces import put_late
from tt2gl.rewrite.named_casts import with_named_casts
from tt2gl.rewrite.named_sums import with_named_sums
from tt2gl.rewrite.reads import turned_first
from tt2gl.rewrite.sums import summed_first
from tt2gl.rewrite.tile_notes import with_tile_notes
from tt2gl.source import read_source
from tt2gl.stages import Declaration
from tt2gl.words import STORE_AGAIN

Rewritten = Callable[..., str]

LOAD = "tl.load(x_ptr + row * n + cols.to(tl.int64), mask=cols < n, other=0.0)"
STORE = "tl.store(x_ptr + cols, x + 1, mask=cols < n)"

EDITS: dict[str, list[dict[str, Any]]] = {
    "names": [{}],
    "buffer_ops": [
        {
            "buffers": {LOAD: BufferAccess("gl.amd.cdna3.buffer_load", (7, 16, 7, 31), keeps_other=False)},
            "sides": {"x_ptr + row * n + cols.to(tl.int64)": "right"},
            "narrowed": {"cols.to(tl.int64)": "gl.int32"},
        },
        {
            "buffers": {STORE: BufferAccess("gl.amd.cdna3.buffer_store", "x_ptr", element="x_ptr.dtype.element_ty")},
            "sides": {"x_ptr + cols": "right"},
        },
    ],
    "converted_masks": [{"converts": dict.fromkeys(("out_ptr + at", "inside"), "out_layout")}],
    "creations": [
        {"creations": {"tl.arange(0, BLOCK)": "row_layout"}},
        {"creations": {"x.histogram(BINS)": "row_layout"}},
    ],
    "conversions": [{"converts": {"y": "out_layout"}}],
    "expansions": [{"expansions": {"w": (1, 1)}}],
    "fills": [
        {"fills": {"1": (("BLOCK", "count_ptr.dtype.element_ty"), "layout")}},
        {"fills": {"tl.program_id(0)[:, None]": (("1", "1", "gl.int32"), "layout")}},
        {"fills": {"tl.broadcast_to(row_best, (BLOCK,))": (("BLOCK", "gl.float32"), "layout")}},
        {"fills": {"tl.broadcast_to(out_ptr + row, (BLOCK,))": (("BLOCK", "gl.pointer<fp32>"), "layout")}},
        {"fills": {"tl.max(row, axis=0, keep_dims=True)": (("1", "gl.float32"), "layout")}},
    ],
    "index_reductions": [{"indexed": {"tl.argmax(scores, axis=1)": "max index"}}],
    "flips": [{"indexed": {"tl.flip(scores, 1)": "flip"}}],
    "softmaxes": [{"indexed": {"tl.softmax(scores, 0)": "softmax"}}],
    "sorts": [
        {"indexed": {"tl.sort(scores, descending=True)": "sort"}},
        {"indexed": {"tl.topk(scores, 8)": "topk"}},
        {"indexed": {"tl.bitonic_merge(best)": "bitonic_merge"}},
    ],
}
"""The edits of each example that is a statement."""

OTHERS = {
    "at_once",
    "bounces",
    "carried_operands",
    "converted_sums",
    "dispatches",
    "equal_arms",
    "guards",
    "hoists",
    "idle_names",
    "idle_statements",
    "imports",
    "late_bounces",
    "named_casts",
    "named_sums",
    "ranges",
    "reads",
    "repeated_stores",
    "signatures",
    "sums",
    "tile_notes",
    "tiles",
    "tuples",
}

WITHOUT = {"build", "collisions", "dots", "expressions", "file", "host_parts", "masked", "scaled_dots", "statements"}
"""Modules that show no before and after, or several: what they do is not a rule's edit, or has a text between."""


def examples(name: str) -> list[tuple[str, str]]:
    """The code before and after, of each example in a rule's docstring."""
    doc = (importlib.import_module(f"tt2gl.rewrite.{name}").__doc__ or "").partition("\n")[2]
    blocks: list[list[str]] = []
    for line in doc.partition("\nDoes not handle")[0].splitlines():
        if found := re.search(r"\s*# (before|after)(:.*|$)", line):
            blocks.append([])
            line = line[: found.start()]
        if blocks:
            blocks[-1].append(line)
    texts = [textwrap.dedent("\n".join(block)).strip("\n") for block in blocks]
    return list(zip(texts[::2], texts[1::2], strict=True))


def test_every_rule_is_tried() -> None:
    modules = {module.name for module in pkgutil.iter_modules(tt2gl.rewrite.__path__)}
    assert modules == EDITS.keys() | OTHERS | WITHOUT


@pytest.mark.parametrize("name", EDITS)
def test_statements(rewritten: Rewritten, name: str) -> None:
    for (before, after), edits in zip(examples(name), EDITS[name], strict=True):
        statement = before.replace("gl.", "tl.")
        made = rewritten(f"@triton.jit\ndef kernel(x_ptr):\n    {statement}\n", **edits)
        assert made.endswith(f"def kernel(x_ptr):\n    {after}\n")


def test_bounces() -> None:
    before, after = (text.replace("gate_ring.", "_tt2gl__tt2gl_ring_gate(p).") for text in examples("bounces")[0])
    function = cst.parse_statement("def kernel():\n" + textwrap.indent(f"x = gl.load(x_ptrs)\n{before}\n", "    "))
    assert isinstance(function, cst.FunctionDef)
    made = cst.Module([settled(function)]).code
    assert made == "def kernel():\n" + textwrap.indent(f"x = gl.load(x_ptrs)\n{after}\n", "    ")


def test_idle_statements() -> None:
    before, after = examples("idle_statements")[0]
    function = cst.parse_statement("def kernel(x, w, acc):\n" + textwrap.indent(f"{before}\n", "    "))
    assert isinstance(function, cst.FunctionDef)
    assert isinstance(function.body, cst.IndentedBlock)
    made = cst.Module([function.with_changes(body=without_idle(function.body))]).code
    assert made == "def kernel(x, w, acc):\n" + textwrap.indent(f"{after}\n", "    ")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("at_once", read_at_once),
        ("equal_arms", with_equal_arms),
        ("late_bounces", put_late),
        ("named_sums", with_named_sums),
    ],
)
def test_rules_of_functions(name: str, rule: Callable[[cst.FunctionDef], cst.FunctionDef]) -> None:
    for before, after in examples(name):
        function = cst.parse_statement("def kernel(x, w, acc):\n" + textwrap.indent(f"{before}\n", "    "))
        assert isinstance(function, cst.FunctionDef)
        made = cst.Module([rule(function)]).code
        assert made == "def kernel(x, w, acc):\n" + textwrap.indent(f"{after}\n", "    ")


def test_rules_of_files() -> None:
    for before, after in examples("named_casts"):
        head = "def kernel(x_ptr, y_ptr, idx, live):\n"
        made = with_named_casts(head + textwrap.indent(f"{before}\n", "    "), "")
        assert made == head + textwrap.indent(f"{after}\n", "    ")
    for before, after in examples("idle_names"):
        head = "from triton.experimental.gluon import language as gl\n\ndef kernel(x_ptr, rows, stride, pid, rest):\n"
        made = without_idle_names(head + textwrap.indent(f"{before}\n", "    "), {"kernel"}, "")
        assert made == head + textwrap.indent(f"{after}\n", "    ")
    for before, after in examples("tile_notes"):
        made = with_tile_notes("def kernel():\n" + textwrap.indent(f"{before}\n", "    "), {"kernel"})
        assert made == "def kernel():\n" + textwrap.indent(f"{after}\n", "    ")


def test_carried_operands() -> None:
    ((before, after),) = examples("carried_operands")
    function = cst.parse_statement("def kernel(q, state):\n" + textwrap.indent(f"{before}\n", "    "))
    assert isinstance(function, cst.FunctionDef)
    made = cst.Module([stored_first(function)]).code
    assert made == "def kernel(q, state):\n" + textwrap.indent(f"{after}\n", "    ")


def test_sums() -> None:
    for before, after in examples("sums"):
        function = cst.parse_statement("def kernel(x, s, q, v, acc):\n" + textwrap.indent(f"{before}\n", "    "))
        assert isinstance(function, cst.FunctionDef)
        made = cst.Module([summed_first(function)]).code
        assert made == "def kernel(x, s, q, v, acc):\n" + textwrap.indent(f"{after}\n", "    ")


def test_converted_sums() -> None:
    for before, after in examples("converted_sums"):
        function = cst.parse_statement("def kernel(out, alpha):\n" + textwrap.indent(f"{before}\n", "    "))
        assert isinstance(function, cst.FunctionDef)
        made = cst.Module([converted_first(function)]).code
        assert made == "def kernel(out, alpha):\n" + textwrap.indent(f"{after}\n", "    ")


def test_reads() -> None:
    before, after = (
        re.sub(r"\b([ab])_ring\(", r"_tt2gl__tt2gl_ring_\1(", text) + "\n" for text in examples("reads")[0]
    )
    function = cst.parse_statement("def kernel():\n" + textwrap.indent(before, "    "))
    assert isinstance(function, cst.FunctionDef)
    made = cst.Module([turned_first(function)]).code
    assert made == "def kernel():\n" + textwrap.indent(after, "    ")


def test_tuples(rewritten: Rewritten, position: Callable[..., Position]) -> None:
    ((before, after),) = examples("tuples")
    text = f"@triton.jit\ndef kernel(x_ptr):\n    {before}\n"
    whole = f"import triton\nimport triton.language as tl\n\n\n{text}"
    target, read = position(whole, "m_t"), position(whole, "o_t")
    copies = {target: (Edits(), Edits(targets={target: "m_t_k"}, reads={read: "o_t_k"}))}
    made = rewritten(text, plan={"copies": copies})
    assert made.endswith("def kernel(x_ptr):\n" + textwrap.indent(after, "    ") + "\n")


def test_ranges(rewritten: Rewritten) -> None:
    ((before, after),) = examples("ranges")
    header = "@triton.jit\ndef kernel(x_ptr, K, BLOCK_K):\n"
    made = rewritten(header + textwrap.indent(f"{before}\n    pass\n", "    "))
    assert made.endswith(textwrap.indent(f"{after}\n    pass\n", "    "))


def test_hoists(rewritten: Rewritten) -> None:
    ((before, after),) = examples("hoists")
    text = "@triton.jit\ndef kernel(x_ptr):\n" + textwrap.indent(before.replace("gl.", "tl."), "    ").replace(
        ", layout=layout", ""
    )
    hoist = Hoist("cols_range", "gl.arange(0, BLOCK, layout=layout)")
    made = rewritten(f"{text}\n", plan={"hoists": {(7, 4): (hoist,)}}, replaced={"tl.arange(0, BLOCK)": hoist.name})
    assert made.endswith("def kernel(x_ptr):\n" + textwrap.indent(after, "    ") + "\n")


def test_guards(rewritten: Rewritten) -> None:
    ((before, after),) = examples("guards")
    made = rewritten(f"{before}\n", plan={"guard": Guard(("x_ptr",), ("stride",))})
    assert made.endswith(f"\n{after}\n")


def test_signatures(rewritten: Rewritten) -> None:
    ((before, after),) = examples("signatures")
    source = "coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())"
    declaration = Declaration("layout", source, "coalesced access to x_ptr")
    made = rewritten(f"{before}\n    pass\n", plan={"declarations": (declaration,)})
    assert made.endswith(f"{after}\n\n    pass\n")


def test_tiles(rewritten: Rewritten) -> None:
    ((before, rest),) = examples("tiles")
    after = rest.partition("\n\n")[0]
    load, store = "q_desc.load([start_m, 0])", "o_desc.store([start_m, 0], acc)"
    text = "@triton.jit\ndef kernel(q_desc, o_desc):\n" + textwrap.indent(before, "    ")
    made = rewritten(f"{text}\n", staged={load: ("", "q_layout")}, tiles={load: "load", store: "store"})
    assert made.endswith("def kernel(q_desc, o_desc):\n" + textwrap.indent(after, "    ") + "\n")


def test_repeated_stores(body: Rewritten) -> None:
    ((before, rest),) = examples("repeated_stores")
    made = body(before, tiles={"c_desc.store([offs_m, offs_n], acc)": STORE_AGAIN})
    assert made == rest.partition("\n\n")[0]


def test_imports() -> None:
    ((before, after),) = examples("imports")
    assert with_gluon(cst.parse_module(before + "\n"), (), 2, {}).code == after + "\n"


def test_dispatches() -> None:
    ((before, after),) = examples("dispatches")
    source = read_source("kernel.py", f"import triton\nimport triton.language as tl\n\n\n{before}\n")
    line = source.kernel("kernel").line
    names = ("kernel_wgmma", "kernel_mma_v2")
    condition = "gl.num_warps() % 4 == 0 and BLOCK >= 64"
    choice = Choice(condition, *names, "wgmma takes whole warpgroups and 64 rows at least")
    functions = tuple(FunctionPlan("kernel.py", line, True, name=name) for name in names)
    made = rewrite(source, FilePlan(functions, (), dispatches=(Dispatch(line, choice),)))
    assert made.endswith(f"\n\n\n{after}\n")
