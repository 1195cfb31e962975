"""One file in, one file out: what is converted works, what is kept works, and all else stays byte for byte."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tt2gl.convert import convert
from tt2gl.diagnostics import DiagnosticError
from tt2gl.launches import Launch, Options
from tt2gl.results import Conversion
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.verify.compile import compile_kernel

HEADER = "import triton\nimport triton.language as tl\n"

GLUON = "from triton.experimental import gluon\nfrom triton.experimental.gluon import language as gl\n"

ADD = """

@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x + 1, mask=offs < n)
"""

SORT = """

@triton.jit
def sort_rows(a_ptr, c_ptr, BLOCK: tl.constexpr):
    \"\"\"A tile with sorted rows: no rule for that.\"\"\"
    r = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + r[:, None] * BLOCK + r[None, :])
    tl.store(c_ptr + r[:, None] * BLOCK + r[None, :], tl.standard.sort_impl(a))
"""

ADD_TYPES = {"x_ptr": "*fp16", "y_ptr": "*fp16", "n": "i32"}
SORT_TYPES = {"a_ptr": "*fp32", "c_ptr": "*fp32"}

File = Callable[..., Path]


def launch(
    kernel: str, types: Mapping[str, str], num_warps: int = 4, file: str = "kernels.py", **values: Any
) -> Launch:
    """A launch with every pointer and integer divisible by 16."""
    signature = {**types, **dict.fromkeys(values, "constexpr")}
    aligned = tuple(name for name, kind in types.items() if kind[0] in "*iu")
    return Launch(file, kernel, signature, values, aligned, Options(num_warps=num_warps))


ADD_LAUNCH = launch("add", ADD_TYPES, BLOCK=1024)
MORE_LAUNCH = launch("more", ADD_TYPES, BLOCK=1024)
SORT_LAUNCH = launch("sort_rows", SORT_TYPES, BLOCK=32)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> File:
    """Writes `kernels.py` into the working directory, bytes as given."""
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "kernels.py") -> Path:
        Path(name).write_bytes(text.encode())
        return Path(name)

    return write


def converted(path: Path, *launches: Launch, target: str = "sm90", **options: Any) -> Conversion:
    """The file converted; every kernel must be, and every port must compile."""
    made = convert(path, target=target, launches=launches or None, **options)
    for report in made.kernels:
        assert report.status == "converted", report.diagnostics
        assert report.gluon is not None
        assert report.gluon.ok, report.gluon.error
    ast.parse(made.text.removeprefix("\ufeff"))
    return made


def codes(made: Conversion) -> set[str]:
    """The diagnostics' codes."""
    return {diagnostic.code for report in made.kernels for diagnostic in report.diagnostics}


class TestRefused:
    """What no conversion is made of."""

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            pytest.param("x = 1\n", "TTG004", id="no kernel"),
            pytest.param(f"{GLUON}\n@gluon.jit\ndef f(x_ptr):\n    gl.store(x_ptr, 1)\n", "TTG004", id="Gluon already"),
            pytest.param("def f(:\n", "TTG003", id="a syntax error"),
        ],
    )
    def test_a_file(self, file: File, text: str, code: str) -> None:
        with pytest.raises(DiagnosticError) as raised:
            convert(file(text), target="sm90")
        assert raised.value.diagnostic.code == code

    def test_helpers_whose_docstring_speaks_of_kernels(self, file: File) -> None:
        with pytest.raises(DiagnosticError, match="has no Triton kernel\\.") as raised:
            convert(file('"""Helpers of `@triton.jit` kernels."""\n'), target="sm90")
        assert raised.value.diagnostic.code == "TTG004"

    def test_kernels_in_strings(self, file: File) -> None:
        with pytest.raises(DiagnosticError, match="strings with kernels") as raised:
            convert(file(f"add = compiled.triton('add', '''{ADD}''')\n"), target="sm90")
        assert raised.value.diagnostic.code == "TTG004"

    @pytest.mark.parametrize(("only", "without"), [(["nonsense"], []), ([], ["nonsense"])])
    def test_a_rule_that_does_not_exist(self, file: File, only: list[str], without: list[str]) -> None:
        with pytest.raises(DiagnosticError) as raised:
            convert(file(HEADER + ADD), target="sm90", only=only, without=without)
        assert raised.value.diagnostic.code == "TTG011"

    def test_a_launch_that_does_not_fit(self, file: File) -> None:
        wrong = launch("add", {**ADD_TYPES, "z_ptr": "*fp16"}, BLOCK=1024)
        with pytest.raises(DiagnosticError) as raised:
            convert(file(HEADER + ADD), target="sm90", launches=[wrong])
        assert raised.value.diagnostic.code == "TTG202"


class TestKept:
    """Kernels that stay Triton."""

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            pytest.param(
                "a = tl.zeros((32,), tl.float32)\n    tl.store(p, tl.max(tl.standard.sort_impl(a)))", "TTG301", id="it"
            ),
            pytest.param("tl.store(p, undefined)", "TTG401", id="does not compile"),
            pytest.param(
                'x = tl.inline_asm_elementwise("nonsense", "=r", [], tl.int32, True, 1)\n    tl.store(p, x)',
                "TTG401",
                id="does not compile to the end",
            ),
        ],
    )
    def test_a_file_of_kept_kernels_stays_as_it_is(self, file: File, body: str, code: str) -> None:
        text = f"{HEADER}\n\n@triton.jit\ndef k(p):\n    {body}\n"
        made = convert(file(text), target="sm90", launches=[launch("k", {"p": "*fp32"})])
        assert made.text == text
        assert not made.changed
        assert [report.status for report in made.kernels] == ["kept"]
        assert codes(made) == {code}

    def test_what_the_compiler_only_prints_is_told(self, file: File) -> None:
        text = f"{HEADER}\n\n@triton.jit\ndef k(p):\n    tl.store(p.to(tl.pointer_type(tl.float32)), 0.0)\n"
        made = convert(file(text), target="sm90", launches=[launch("k", {"p": "i32"})])
        (told,) = made.kernels[0].diagnostics
        assert told.code == "TTG401"
        assert "'tt.int_to_ptr' op operand #0 must be 64-bit" in told.message

    AGGREGATE = """
@tl.core._aggregate
class Row:
    at: tl.tensor

    def __init__(self, at):
        self.at = at

    @triton.jit
    def offsets(self):
        return {}

@triton.jit
def k(p):
    row = Row(tl.program_id(0) * 64)
    tl.store(p + row.offsets() + tl.arange(0, 64), 1.0)
"""

    @pytest.mark.parametrize(("made", "status"), [("self.at", "converted"), ("self.at + tl.arange(0, 64)", "kept")])
    def test_methods_of_aggregates_make_no_tensors(self, file: File, made: str, status: str) -> None:
        text = HEADER + self.AGGREGATE.format(made)
        (report,) = convert(file(text), target="sm90", launches=[launch("k", {"p": "*fp32"})]).kernels
        told = [each.message for each in report.diagnostics if each.code == "TTG301"]
        assert report.status == status
        assert told == ["It uses `row.offsets`, a method of an aggregate that makes tensors."][: status == "kept"]

    def test_what_triton_itself_cannot_multiply_stays_triton(self, file: File) -> None:
        made = "a = tl.full((64, 64), 1, tl.float8e5)\n    s = tl.full((64, 2), 127, tl.uint8)"
        product = f'{made}\n    tl.store(p, tl.sum(tl.dot_scaled(a, s, "e5m2", a, s, "e5m2")))'
        text = f"{HEADER}\n\n@triton.jit\ndef k(p):\n    {product}\n"
        made_of = convert(file(text), target="gfx942", launches=[launch("k", {"p": "*fp32"})])
        (report,) = made_of.kernels
        # Some Tritons fail before their products have instructions, some after; newer ones do not.
        told = (report.status, [each.code for each in report.diagnostics])
        assert told in (("kept", ["TTG302"]), ("kept", ["TTG401"]), ("converted", []))
        assert (made_of.text == text) == (report.status == "kept")
        assert ("gl.amd.cdna3.mfma" in made_of.text) == (report.status == "converted")

    @pytest.mark.slow
    def test_a_mixed_file_has_one_comment_and_the_kernel_as_it_was(self, file: File) -> None:
        made = convert(file(HEADER + ADD + SORT), target="sm90", launches=[ADD_LAUNCH, SORT_LAUNCH])
        assert {report.kernel: report.status for report in made.kernels} == {"add": "converted", "sort_rows": "kept"}
        before, kernel = made.text.split("\n@triton.jit\n")
        assert before.splitlines()[-1].startswith("# tt2gl: kept as Triton (TTG301).")
        assert "@triton.jit\n" + kernel == SORT.lstrip("\n")

    @pytest.mark.slow
    def test_the_kept_kernel_of_a_mixed_file_still_compiles(self, file: File) -> None:
        made = convert(file(HEADER + ADD + SORT), target="sm90", launches=[ADD_LAUNCH, SORT_LAUNCH])
        port = slice_kernel(read_source("kernels.py", made.text), "sort_rows")
        result = compile_kernel(port, SORT_LAUNCH, "sm90")
        assert result.ok, result.error

    @pytest.mark.slow
    def test_a_helper_that_both_call_stands_twice(self, file: File) -> None:
        helper = "\n\n@triton.jit\ndef offsets(BLOCK: tl.constexpr):\n    return tl.arange(0, BLOCK)\n"
        text = HEADER + helper + ADD.replace("tl.arange(0, BLOCK)", "offsets(BLOCK)")
        text += SORT.replace("tl.arange(0, BLOCK)", "offsets(BLOCK)")
        made = convert(file(text), target="sm90", launches=[ADD_LAUNCH, SORT_LAUNCH])
        assert helper in made.text
        assert "def offsets_gluon(BLOCK: gl.constexpr, layout: gl.constexpr):\n    return gl.arange(" in made.text
        assert "* BLOCK + offsets_gluon(BLOCK, layout=layout)\n" in made.text
        assert "    r = offsets(BLOCK)\n" in made.text
        for kernel, known in (("add", ADD_LAUNCH), ("sort_rows", SORT_LAUNCH)):
            port = slice_kernel(read_source("kernels.py", made.text), kernel)
            result = compile_kernel(port, known, "sm90")
            assert result.ok, result.error

    @pytest.mark.slow
    def test_a_helper_that_only_calls_one_that_stands_twice_stands_twice_too(self, file: File) -> None:
        text = f"{HEADER}\n\n@triton.jit\ndef zero(n):\n    return tl.full(n.shape, 0, tl.int32)\n"
        text += "\n\n@triton.jit\ndef count(n):\n    return zero(n) + n\n"
        text += ADD.replace("offs < n", "offs < count(n)")
        text += SORT.replace("    r = ", "    n = count(tl.program_id(0))\n    r = n + ")
        made = convert(file(text), target="sm90", launches=[ADD_LAUNCH, SORT_LAUNCH])
        assert {report.kernel: report.status for report in made.kernels} == {"add": "converted", "sort_rows": "kept"}
        assert "def count_gluon(n):\n    return zero_gluon(n) + n\n" in made.text
        assert "offs < count_gluon(n)" in made.text
        assert "def count(n):\n    return zero(n) + n\n" in made.text

    @pytest.mark.slow
    def test_a_twin_avoids_names_that_exist(self, file: File) -> None:
        helper = "\n\n@triton.jit\ndef offsets(BLOCK: tl.constexpr):\n    return tl.arange(0, BLOCK)\n"
        other = "\n\n@triton.jit\ndef offsets_gluon(x):\n    return x\n"
        text = HEADER + helper + other + ADD.replace("tl.arange(0, BLOCK)", "offsets_gluon(offsets(BLOCK))")
        text += SORT.replace("tl.arange(0, BLOCK)", "offsets(BLOCK)")
        made = convert(file(text), target="sm90", launches=[ADD_LAUNCH, SORT_LAUNCH])
        assert "offsets_gluon(offsets_gluon_2(BLOCK, layout=layout))" in made.text

    @pytest.mark.slow
    def test_a_launch_that_does_not_compile_fails_alone(self, file: File) -> None:
        wrong = launch("add", ADD_TYPES, BLOCK=1000)
        made = convert(file(HEADER + ADD), target="sm90", launches=[ADD_LAUNCH, wrong])
        assert [report.status for report in made.kernels] == ["converted", "failed"]
        assert [d.code for d in made.kernels[1].diagnostics] == ["TTG401"]


class TestSecondRun:
    """A converted file is converted already."""

    def test_all_converted(self, file: File) -> None:
        text = converted(file(HEADER + ADD), ADD_LAUNCH).text
        with pytest.raises(DiagnosticError) as raised:
            convert(file(text), target="sm90", launches=[ADD_LAUNCH])
        assert raised.value.diagnostic.code == "TTG004"

    @pytest.mark.slow
    def test_some_kept(self, file: File) -> None:
        launches = [ADD_LAUNCH, SORT_LAUNCH]
        once = convert(file(HEADER + ADD + SORT), target="sm90", launches=launches).text
        assert convert(file(once), target="sm90", launches=launches).text == once

    @pytest.fixture
    def later(self, file: File) -> str:
        """The file converted, with a kernel added, converted again."""
        once = convert(file(HEADER + ADD + SORT), target="sm90", launches=[ADD_LAUNCH, SORT_LAUNCH]).text
        path = file(once + ADD.replace("def add(", "def more("))
        return convert(path, target="sm90", launches=[ADD_LAUNCH, SORT_LAUNCH, MORE_LAUNCH]).text

    @pytest.mark.slow
    def test_a_kernel_added_later_compiles(self, later: str) -> None:
        assert later.count(GLUON) == 1
        result = compile_kernel(slice_kernel(read_source("kernels.py", later), "more"), MORE_LAUNCH, "sm90")
        assert result.ok, result.error

    @pytest.mark.slow
    def test_a_kept_kernel_has_its_comment_once(self, later: str) -> None:
        assert later.count("# tt2gl: kept") == 1

    @pytest.mark.slow
    def test_the_helper_of_the_first_run_serves_the_second(self, later: str) -> None:
        assert later.count("@gluon.constexpr_function") == 1


HOST = '''#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Größen – a file with odd habits."""
import triton, os
import triton.language as tl
X = {"a" :1,
\t'b':  2}   # two, and a tab
if True:
\tY = (1,
\t     2)
'''

TAIL = '''

class  Holder :
    a=1 ;b = 2

def host( x,y ):
\t"""Ünïcode \\n"""
\tadd [ (1 ,) ] (x, y, 5,BLOCK = 1024)   # trailing blank  \n\treturn x
# the end, without a newline'''


class TestOutsideKernels:
    """Text outside kernels is never touched."""

    @pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
    def test_host_code_is_byte_identical(self, file: File, newline: str) -> None:
        head, tail = (part.replace("\n", newline) for part in (HOST, TAIL))
        made = converted(file((HOST + ADD + TAIL).replace("\n", newline)), ADD_LAUNCH).text
        top = head.partition(f"as tl{newline}")
        assert made.startswith(top[0] + top[1] + GLUON.replace("\n", newline) + top[2])
        assert made.endswith(tail)
        assert made.count("\n") == made.count(newline)

    def test_a_byte_order_mark_stays(self, file: File) -> None:
        assert converted(file("\ufeff" + HEADER + ADD), ADD_LAUNCH).text.startswith("\ufeffimport triton\n")

    def test_between_kernels(self, file: File) -> None:
        middle = "\n\nASSOC = lambda  x : x  # odd\n"
        text = HEADER + ADD + middle + ADD.replace("def add(", "def more(")
        made = converted(file(text), ADD_LAUNCH, MORE_LAUNCH)
        assert middle in made.text

    def test_a_kernel_indented_with_tabs(self, file: File) -> None:
        made = converted(file(HEADER + ADD.replace("    ", "\t")), ADD_LAUNCH).text
        kernel = made[made.index("def add(") :]
        assert all(line.startswith("\t") for line in kernel.splitlines()[1:] if line)

    def test_comments_inside_kernels_stay(self, file: File) -> None:
        text = ADD.replace("    x = ", "    # load a block\n    x = ").replace(
            ", mask=offs < n)", ", mask=offs < n)  # n"
        )
        made = converted(file(HEADER + text), ADD_LAUNCH).text
        assert "    # load a block\n    x = gl.load(x_ptr + offs, mask=offs < n)  # n\n" in made


class TestNames:
    """Names that the file has taken."""

    @pytest.mark.parametrize(
        ("text", "used"),
        [
            pytest.param("gl = 5\n", "gl_2.load", id="gl"),
            pytest.param("def gluon():\n    pass\n", "@gluon_2.jit", id="gluon"),
            pytest.param("def coalesced(x):\n    return x\n", "= coalesced_2(", id="the layout helper"),
            pytest.param("layout = 3\n", "layout: gl.constexpr", id="a global named as a layout"),
        ],
    )
    def test_a_global(self, file: File, text: str, used: str) -> None:
        made = converted(file(HEADER + text + ADD), ADD_LAUNCH).text
        assert text in made
        assert used in made

    def test_a_variable_of_the_kernel_named_layout(self, file: File) -> None:
        text = ADD.replace("    x = ", "    layout = offs + 16\n    x = ").replace("+ offs, x + 1", "+ layout, x + 1")
        made = converted(file(HEADER + text), ADD_LAUNCH).text
        assert "    layout_2: gl.constexpr = coalesced(" in made
        assert "    layout = offs + 16\n" in made

    @pytest.mark.parametrize(
        ("header", "prefix"),
        [
            ("import triton\nimport triton.language as T\n", "T."),
            ("import triton as tr\nimport triton.language as tl\n", "tl."),
            ("import triton\nfrom triton import language as lang\n", "lang."),
        ],
    )
    def test_other_spellings_of_triton(self, file: File, header: str, prefix: str) -> None:
        decorator = "@tr.jit" if " as tr\n" in header else "@triton.jit"
        text = ADD.replace("tl.", prefix).replace("@triton.jit", decorator)
        made = converted(file(header + text), ADD_LAUNCH).text
        assert "x = gl.load(x_ptr + offs, mask=offs < n)" in made
        assert prefix not in made[made.index("@gluon.jit") :]


class TestPlaces:
    """Where files are, and from where they are named."""

    @pytest.mark.slow
    def test_relative_and_absolute_paths_give_the_same(self, file: File) -> None:
        path = file(HEADER + ADD + SORT)
        launches = [ADD_LAUNCH, SORT_LAUNCH]
        relative = convert(path, target="sm90", launches=launches)
        absolute = convert(path.absolute(), target="sm90", launches=launches)
        assert relative.text == absolute.text

    @pytest.mark.slow
    def test_a_path_through_a_link(self, file: File, tmp_path: Path) -> None:
        path = file(HEADER + ADD + SORT)
        (tmp_path / "link").symlink_to(tmp_path)
        launches = [ADD_LAUNCH, SORT_LAUNCH]
        linked = convert(Path("link") / path, target="sm90", launches=launches)
        assert linked.text == convert(path, target="sm90", launches=launches).text

    def test_launches_relative_to_a_root(self, file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = file(HEADER + ADD).absolute()
        monkeypatch.chdir("/")
        made = convert(path, target="sm90", launches=[ADD_LAUNCH], root=tmp_path)
        assert [report.status for report in made.kernels] == ["converted"]
        assert "TTG210" not in codes(made)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "reason",
        [
            pytest.param("tl.standard.sort_impl(a)", id="a gap"),
            pytest.param("undefined", id="a kernel that does not compile"),
        ],
    )
    def test_no_path_of_this_machine_gets_into_the_text(self, file: File, tmp_path: Path, reason: str) -> None:
        path = file(HEADER + ADD + SORT.replace("tl.standard.sort_impl(a)", reason))
        made = [convert(p, target="sm90", launches=[ADD_LAUNCH, SORT_LAUNCH]) for p in (path, path.absolute())]
        assert made[0].text == made[1].text
        assert "# tt2gl: kept" in made[0].text
        assert str(tmp_path) not in made[0].text


class TestLaunches:
    """One text for all launches."""

    @pytest.mark.parametrize("dtypes", [("*fp16", "*fp32"), ("*i8", "*fp64"), ("*bf16", "*fp16", "*fp32")])
    def test_several_dtypes(self, file: File, dtypes: tuple[str, ...]) -> None:
        launches = [launch("add", {"x_ptr": d, "y_ptr": d, "n": "i32"}, BLOCK=1024) for d in dtypes]
        made = converted(file(HEADER + ADD), *launches)
        assert "coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())" in made.text
        assert len(made.kernels) == len(dtypes)

    @pytest.mark.slow
    def test_several_blocks_and_warps(self, file: File) -> None:
        launches = [launch("add", ADD_TYPES, num_warps=w, BLOCK=b) for w, b in ((1, 64), (4, 1024), (8, 8192))]
        assert "coalesced([BLOCK], [0], " in converted(file(HEADER + ADD), *launches).text

    def test_inferred_from_the_file(self, file: File) -> None:
        host = "\n\ndef host(x, y):\n    add[(8,)](x, y, 100, BLOCK=512)\n"
        made = converted(file(HEADER + ADD + host))
        assert codes(made) == {"TTG210"}

    def test_without_compiling(self, file: File) -> None:
        made = convert(file(HEADER + ADD), target="sm90", launches=[ADD_LAUNCH], compile=False)
        assert [(report.status, report.gluon) for report in made.kernels] == [("converted", None)]
        assert made.text == converted(Path("kernels.py"), ADD_LAUNCH).text

    def test_for_other_lanes(self, file: File) -> None:
        made = converted(file(HEADER + ADD), ADD_LAUNCH, target="gfx942")
        assert "def coalesced(shape, order, bits, num_warps, lanes=64):" in made.text

    def test_a_constexpr_left_to_its_default(self, file: File) -> None:
        text = ADD.replace("BLOCK: tl.constexpr)", "BLOCK: tl.constexpr = 256)")
        converted(file(HEADER + text), launch("add", ADD_TYPES))


class TestBranches:
    """Code that the launches given do not reach."""

    FLAG = ADD.replace("BLOCK:", "FLAG: tl.constexpr, BLOCK:").replace(
        "    tl.store", "    if FLAG:\n        x += tl.full([BLOCK], 2, tl.float16)\n    tl.store"
    )

    @pytest.mark.slow
    def test_a_flag_is_turned(self, file: File) -> None:
        made = converted(file(HEADER + self.FLAG), launch("add", ADD_TYPES, FLAG=False, BLOCK=1024))
        assert "x += gl.full([BLOCK], 2, gl.float16, layout=layout)" in made.text
        assert codes(made) == set()

    @pytest.mark.slow
    def test_what_stays_out_of_reach_is_reported(self, file: File) -> None:
        text = self.FLAG.replace("if FLAG:", "if FLAG is not None:")
        made = converted(file(HEADER + text), launch("add", ADD_TYPES, FLAG=None, BLOCK=1024))
        assert "x += gl.full([BLOCK], 2, gl.float16, layout=gl.AutoLayout())" in made.text
        assert codes(made) == {"TTG330"}

    @pytest.mark.slow
    def test_the_port_takes_the_other_branch_too(self, file: File) -> None:
        made = converted(file(HEADER + self.FLAG), launch("add", ADD_TYPES, FLAG=False, BLOCK=1024))
        port = slice_kernel(read_source("kernels.py", made.text), "add")
        result = compile_kernel(port, launch("add", ADD_TYPES, FLAG=True, BLOCK=1024), "sm90")
        assert result.ok, result.error


class TestShapesOfKernels:
    """How kernels may be written."""

    def test_stacked_decorators_stay(self, file: File) -> None:
        decorators = (
            '@triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=2)], key=["n"])\n'
            '@triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})  # pairs\n'
        )
        text = ADD.replace("@triton.jit", f'{decorators}@triton.jit(do_not_specialize=["n"])')
        text = text.replace("BLOCK: tl", "EVEN: tl.constexpr, BLOCK: tl")
        made = converted(file(HEADER + text), launch("add", ADD_TYPES, num_warps=2, EVEN=True, BLOCK=256))
        assert f'{decorators}@gluon.jit(do_not_specialize=["n"])\ndef add(' in made.text

    def test_nested_in_a_function(self, file: File) -> None:
        nested = "def make():\n" + "".join(f"    {line}\n" if line else "\n" for line in ADD.strip().splitlines())
        made = converted(file(f"{HEADER}\n\n{nested}\n    return add\n"), ADD_LAUNCH).text
        assert "def make():\n    @gluon.jit\n    def add(" in made
        assert made.index("def coalesced(") < made.index("def make():")
        assert made.endswith("\n    return add\n")

    def test_with_a_docstring(self, file: File) -> None:
        text = ADD.replace("    offs =", '    """Adds.\n\n    One.\n    """\n    offs =')
        made = converted(file(HEADER + text), ADD_LAUNCH).text
        assert '    """Adds.\n\n    One.\n    """\n\n    # coalesced access to x_ptr and y_ptr\n    layout:' in made

    def test_one_line_bodies(self, file: File) -> None:
        text = ADD.replace("    tl.store", "    if n > 3: x = x * 2\n    for i in range(n): x += i\n    tl.store")
        made = converted(file(HEADER + text), ADD_LAUNCH).text
        assert "    if n > 3: x = x * 2\n    for i in range(n): x += i\n    gl.store" in made

    def test_a_body_on_the_line_of_its_def(self, file: File) -> None:
        text = "\n\n@triton.jit\ndef fill(x_ptr, BLOCK: tl.constexpr): tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)\n"
        converted(file(HEADER + text), launch("fill", {"x_ptr": "*fp32"}, BLOCK=1024))

    def test_annotated_and_default_parameters(self, file: File) -> None:
        text = ADD.replace("x_ptr, y_ptr, n,", "x_ptr: 'torch.Tensor', y_ptr, n: int,")
        assert "def add(x_ptr: 'torch.Tensor', y_ptr, n: int, BLOCK: gl.constexpr):" in (
            converted(file(HEADER + text), ADD_LAUNCH).text
        )

    def test_a_kernel_without_tensors(self, file: File) -> None:
        text = "\n\n@triton.jit\ndef count(x_ptr):\n    tl.atomic_add(x_ptr, 1)\n"
        made = converted(file(HEADER + text), launch("count", {"x_ptr": "*i32"})).text
        assert made.endswith("@gluon.jit\ndef count(x_ptr):\n    gl.atomic_add(x_ptr, 1)\n")
        assert "def coalesced" not in made

    @pytest.mark.slow
    def test_unicode_before_a_call_on_its_line(self, file: File) -> None:
        text = ADD.replace("offs = ", 'tl.static_assert(BLOCK > 0, "größer"); offs = ')
        assert '"größer"); offs = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)' in (
            converted(file(HEADER + text), ADD_LAUNCH).text
        )


class TestRules:
    """Optimising rules by name."""

    LOOP = """

@triton.jit
def total(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(y_ptr, tl.sum(acc, 0))
"""
    LAUNCH = launch("total", {"x_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32"}, BLOCK=1024)

    @pytest.mark.slow
    def test_a_rule_that_applied_is_reported(self, file: File) -> None:
        made = converted(file(HEADER + self.LOOP), self.LAUNCH)
        assert made.kernels[0].rules == ("hoist",)
        assert made.text.index("offs_range = gl.arange(") < made.text.index("for start in")

    @pytest.mark.slow
    def test_a_rule_left_out(self, file: File) -> None:
        made = converted(file(HEADER + self.LOOP), self.LAUNCH, without=["hoist"])
        assert made.kernels[0].rules == ()
        assert "offs = start + gl.arange(0, BLOCK, layout=row_layout)" in made.text

    def test_a_rule_without_work_is_not_reported(self, file: File) -> None:
        assert converted(file(HEADER + ADD), ADD_LAUNCH).kernels[0].rules == ()


def test_launches_are_inferred_from_what_the_author_says(file: File) -> None:
    path = file(
        f"{HEADER}# an extent that the lowered kernel does not read\n\n\n@triton.jit\n"
        "def whole(p, SIZE: tl.constexpr, BLOCK: tl.constexpr):\n"
        "    block = tl.make_block_ptr(p, (SIZE,), (1,), (0,), (BLOCK,), (0,))\n"
        "    tl.store(block, tl.load(block) + 1)\n"
    )
    made = convert(path, target="sm90", compile=False)
    (guess,) = {told for report in made.kernels for told in report.diagnostics if told.code == "TTG210"}
    assert re.search(r"\bSIZE=\d+", guess.message)
    assert path.read_text().splitlines()[guess.line - 1].startswith("def whole")
