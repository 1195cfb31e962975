# ruff: noqa: E501 - a program of a table stays on one line
"""Slicing: what a kernel reaches is kept where it was, what it names is decided by reading, and nothing is run."""

from __future__ import annotations

import ast
import os
import pickle
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tt2gl.diagnostics import DiagnosticError
from tt2gl.launch_file import read_launches
from tt2gl.launches import DtypeValue, Launch, launches_for
from tt2gl.slicing.parts import split_lines
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.source import read_source
from tt2gl.trees import python_tree

HEADER = "import triton\nimport triton.language as tl\n"

KERNEL = """
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, {body}, mask=offs < n)
"""

SIGNATURE = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes one file of a package below the test's own directory."""

    def one(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), newline="")
        return path

    return one


def frontend(fn: Any, signature: Mapping[str, str], constexprs: Mapping[str, Any], target: str = "sm90") -> str:
    """Triton's frontend IR of a loaded kernel."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    hip = target.startswith("gfx")
    gpu = GPUTarget("hip", target, 64) if hip else GPUTarget("cuda", int(target[2:]), 32)
    source = ASTSource(fn, dict(signature), dict(constexprs), {})
    backend = make_backend(gpu)
    options = backend.parse_options(source.parse_options())
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        gpu, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    return str(module)


def ir_of(path: Path, tmp_path: Path, *, target: str = "sm90", root: Path | None = None, **constexprs: Any) -> str:
    """Slice `kernel` of a file, load it and run the frontend."""
    sliced = slice_kernel(read_source(path), "kernel", target=target, root=root)
    assert sliced.diagnostics == ()
    fn = load_slice(sliced, tmp_path / "slices")
    return frontend(fn, SIGNATURE, {"BLOCK": 64, **constexprs}, target)


def sliced_text(path: Path, name: str = "kernel") -> str:
    """The entry module's text."""
    return slice_kernel(read_source(path), name).modules[0].text


# ------------------------------------------------------------------------------------- what stays as it is


def test_an_unknown_kernel_is_refused(write: Write) -> None:
    path = write("a.py", HEADER + KERNEL.format(body="x"))
    with pytest.raises(DiagnosticError) as caught:
        slice_kernel(read_source(path), "absent")
    assert caught.value.diagnostic.code == "TTG101"


def test_host_code_is_never_run(write: Write, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    host = f"open({str(marker)!r}, 'w').close()\nX = open({str(marker)!r}, 'w')\n"
    path = write("a.py", HEADER + host + KERNEL.format(body="x"))
    ir_of(path, tmp_path)
    assert not marker.exists()


def test_lines_and_columns_stay(write: Write) -> None:
    path = write("a.py", HEADER + "import os\n\n\ndef host():\n    return os.getpid()\n\n" + KERNEL.format(body="x"))
    before, after = ast.parse(path.read_text()), ast.parse(sliced_text(path))
    where = [
        [
            (n.lineno, n.col_offset, n.end_lineno)
            for n in ast.walk(tree)
            if isinstance(n, ast.FunctionDef) and n.name == "kernel"
        ]
        for tree in (before, after)
    ]
    assert where[0] == where[1]
    assert "getpid" not in sliced_text(path)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_endings_stay(write: Write, newline: str) -> None:
    path = write("a.py", (HEADER + KERNEL.format(body="x")).replace("\n", newline))
    text = sliced_text(path)
    assert len(split_lines(text)) == len(split_lines(path.read_bytes().decode()))
    if newline == "\r\n":
        assert "\n" not in text.replace("\r\n", "")


def test_a_slice_can_be_pickled(write: Write) -> None:
    sliced = slice_kernel(read_source(write("a.py", HEADER + KERNEL.format(body="x"))), "kernel")
    assert pickle.loads(pickle.dumps(sliced)) == sliced


def test_each_file_is_parsed_by_python_once(write: Write) -> None:
    helper = "import triton\n@triton.jit\ndef helper(x):\n    return x\n"
    write("other.py", helper)
    text = f"from .other import helper\n{HEADER}{KERNEL.format(body='helper(x)')}"
    path = write("kernel.py", f"{text}{KERNEL.format(body='helper(helper(x))').replace('kernel', 'second')}")
    write("__init__.py", "")
    python_tree.cache_clear()
    source = read_source(path)
    assert [kernel.name for kernel in source.kernels] == ["kernel", "second"]
    for kernel in source.kernels:
        assert len(slice_kernel(source, kernel.name).functions) == 2
    assert python_tree.cache_info().misses == 2


def test_an_unresolved_name_stays_unbound(write: Write, tmp_path: Path) -> None:
    path = write("a.py", HEADER + KERNEL.format(body="absent(x)"))
    with pytest.raises(Exception, match="absent is not defined"):
        ir_of(path, tmp_path)


def test_an_unresolved_name_the_compiler_does_not_reach_is_harmless(write: Write, tmp_path: Path) -> None:
    path = write("a.py", HEADER + KERNEL.format(body="absent(x) if BLOCK > 1024 else x"))
    assert "tt.store" in ir_of(path, tmp_path)


# ------------------------------------------------------------------------------------ what a kernel reaches

REACHED = {
    "helper": "@triton.jit\ndef helper(x):\n    return x * 2.0\n",
    "helper_of_helper": "@triton.jit\ndef inner(x):\n    return x * 2.0\n@triton.jit\ndef helper(x):\n    return inner(x)\n",
    "helper_below_others": "def host(): pass\n@triton.jit\ndef helper(x):\n    return x * 2.0\n",
    "alias": "@triton.jit\ndef _helper(x):\n    return x * 2.0\nhelper = _helper\n",
    "jit_as_a_call": "def _helper(x):\n    return x * 2.0\nhelper = triton.jit(_helper)\n",
    "jit_alias": "jit = triton.jit\n@jit\ndef helper(x):\n    return x * 2.0\n",
    "other_decorator": "@other.thing(1)\n@triton.jit\ndef helper(x):\n    return x * 2.0\n",
    "keywords": "@triton.jit(do_not_specialize=['x'])\ndef helper(x):\n    return x * 2.0\n",
    "static_if": "if triton.__version__ >= '2':\n    @triton.jit\n    def helper(x):\n        return x * 2.0\nelse:\n    @triton.jit\n    def helper(x):\n        return absent(x)\n",
    "static_else": "if triton.__version__ < '2':\n    helper = None\nelse:\n    @triton.jit\n    def helper(x):\n        return x * 2.0\n",
    "nested": "def make():\n    @triton.jit\n    def helper(x):\n        return x * 2.0\n    return helper\nhelper = make()\n",
    "try_import": "try:\n    from absent_package import helper\nexcept ImportError:\n    @triton.jit\n    def helper(x):\n        return x * 2.0\n",
}  # fmt: skip


@pytest.mark.parametrize("definition", REACHED.values(), ids=REACHED.keys())
def test_helpers_are_reached(write: Write, tmp_path: Path, definition: str) -> None:
    path = write("a.py", HEADER + definition + KERNEL.format(body="helper(x)"))
    assert "arith.mulf" in ir_of(path, tmp_path)


CONSTANTS = {
    "constexpr": "C = tl.constexpr(3.5)\n",
    "annotated_constexpr": "C: tl.constexpr = tl.constexpr(3.5)\n",
    "computed": "import math\nHALF = math.sqrt(12.25)\nC = tl.constexpr(HALF)\n",
    "from_a_function": "def pick():\n    values = [1.5, 3.5]\n    return max(values)\nC = tl.constexpr(pick())\n",
    "environment": "import os\nC = tl.constexpr(float(os.environ.get('TT2GL_ABSENT', '3.5')))\n",
    "environment_test": "import os\nif os.environ.get('TT2GL_ABSENT') == '1':\n    C = tl.constexpr(1.0)\nelse:\n    C = tl.constexpr(3.5)\n",
    "is_hip": "import torch\ndef is_hip():\n    return torch.version.hip is not None\nC = tl.constexpr(1.0 if is_hip() else 3.5)\n",
    "is_hip_by_triton": "def is_hip():\n    return triton.runtime.driver.active.get_current_target().backend == 'hip'\nC = tl.constexpr(1.0) if is_hip() else tl.constexpr(3.5)\n",
    "capability": "import torch\nC = tl.constexpr(3.5 if torch.cuda.get_device_capability()[0] >= 9 else 1.0)\n",
    "properties": "import torch\np = torch.cuda.get_device_properties(0)\nC = tl.constexpr(3.5 if p.major * 10 + p.minor == 90 else 1.0)\n",
    "version": "from packaging import version\nC = tl.constexpr(3.5 if version.parse(triton.__version__) >= version.parse('3.0.0') else 1.0)\n",
    "version_tuple": "V = tuple(int(v) for v in triton.__version__.split('.')[:2])\nC = tl.constexpr(3.5 if V >= (3, 0) else 1.0)\n",
    "find_spec": "import importlib.util\nHAS = importlib.util.find_spec('absent_package') is not None\nC = tl.constexpr(1.0 if HAS else 3.5)\n",
    "try_flag": "try:\n    import absent_package\n    HAS = True\nexcept ImportError:\n    HAS = False\nC = tl.constexpr(1.0 if HAS else 3.5)\n",
    "signature": "import inspect\nP = inspect.signature(tl.dot).parameters\nQ = inspect.signature(triton.cdiv).parameters\nC = tl.constexpr(3.5 if 'input_precision' in P and 'absent' not in P and len(Q) == 2 else 1.0)\n",
    "hasattr": "C = tl.constexpr(3.5 if hasattr(tl, 'arange') and not hasattr(tl, 'absent') else 1.0)\n",
    "cached_function": "import functools\n@functools.lru_cache(maxsize=None)\ndef value():\n    return 3.5\nC = tl.constexpr(value())\n",
    "unknown_and_false": "import torch\nC = tl.constexpr(1.0 if torch.anything() and torch.version.hip else 3.5)\n",
    "class_constant": "class Config:\n    VALUE = 3.5\nC = tl.constexpr(Config.VALUE)\n",
    "enum": "import enum\nclass Mode(enum.IntEnum):\n    A = 1\n    B = 7\nC = tl.constexpr(Mode.B.value / 2)\n",
    "dict": "TABLE = {'a': 1.0, 'b': 3.5}\nC = tl.constexpr(TABLE['b'])\n",
    "walrus_free_loop": "def total():\n    s = 0.0\n    for i in range(7):\n        s += 0.5\n    return s\nC = tl.constexpr(total())\n",
    "walrus": "def total():\n    if (s := 2.5):\n        return s + 1.0\nC = tl.constexpr(total())\n",
    "finfo": "import torch\nC = tl.constexpr(3.5 if torch.finfo(torch.float16).max == 65504.0 and torch.finfo(torch.bfloat16).eps == 2.0**-7 else 1.0)\n",
    "iinfo": "import torch\nC = tl.constexpr(3.5 if torch.iinfo(torch.int8).min == -128 and torch.iinfo(torch.uint8).max == 255 else 1.0)\n",
    "has_triton": "from torch.utils._triton import has_triton\nC = tl.constexpr(3.5 if has_triton() else 1.0)\n",
    "version_of_another_package": "from absent_package import Version\nC = tl.constexpr(3.5 if Version(triton.__version__) >= Version('3.0.0') else 1.0)\n",
    "template": "T = '{a}00000.5'\nC = tl.constexpr(float(T.format(a=3)) - 300000.5 + 3.5)\n",
    "compare_version": "import importlib, operator\nfrom packaging.version import Version\ndef compare_version(package, op, target):\n    try:\n        pkg = importlib.import_module(package)\n    except ImportError:\n        return False\n    return op(Version(pkg.__version__), Version(target))\nC = tl.constexpr(3.5 if compare_version('triton', operator.ge, '3.0.0') else 1.0)\n",
    "logger_of_another_kind": "from absent_package import logger\ntry:\n    C = tl.constexpr(3.5)\n    logger.debug('is')\nexcept RuntimeError:\n    C = tl.constexpr(1.0)\n",
    "lazy_module": "import importlib\nclass Lazy:\n    def __init__(self, name, hint=''):\n        self.name = name\n    def __getattr__(self, name):\n        return getattr(importlib.import_module(self.name), name)\nC = Lazy('triton.language', hint='pip install triton').constexpr(3.5)\n",
}  # fmt: skip


@pytest.mark.parametrize("definition", CONSTANTS.values(), ids=CONSTANTS.keys())
def test_constants_are_worked_out(write: Write, tmp_path: Path, definition: str) -> None:
    path = write("a.py", HEADER + definition + KERNEL.format(body="x * C"))
    assert "3.5" in ir_of(path, tmp_path)


ALONE = {
    "absolute": ("from absent_package.ops import exp\n", "exp(x)"),
    "renamed": ("from absent_package.ops import exp as e\n", "e(x)"),
    "relative": ("from .absent import exp\n", "exp(x)"),
    "module": ("from absent_package import language as tle\n", "tle.exp(x)"),
    "relative_module": ("from .absent import language as tle\n", "tle.exp(x)"),
    "libdevice": ("from absent_package.ops import libdevice\n", "libdevice.exp(x)"),
    "libdevice_in_its_place": ("from absent_package import language as tle\n", "tle.extra.cuda.libdevice.exp(x)"),
}


@pytest.mark.parametrize(("definition", "body"), [
    pytest.param("from absent_package.ops import helper\n", "helper(x)", id="no_function_of_triton"),
    pytest.param("from .ops import exp\n", "exp(x)", id="unbound_in_a_file_that_is_there"),
    pytest.param("from absent_package import core\n", "core.helper(x)", id="no_function_of_triton_in_a_module"),
])  # fmt: skip
def test_nothing_stands_in(write: Write, tmp_path: Path, definition: str, body: str) -> None:
    write("ops.py", "")
    path = write("a.py", HEADER + definition + KERNEL.format(body=body))
    sliced = slice_kernel(read_source(path), "kernel")
    assert "it is taken for" not in "".join(diagnostic.message for diagnostic in sliced.diagnostics)


@pytest.mark.parametrize(("definition", "body"), ALONE.values(), ids=ALONE.keys())
def test_triton_stands_in_for_what_is_not_at_hand(write: Write, tmp_path: Path, definition: str, body: str) -> None:
    path = write("a.py", HEADER + definition + KERNEL.format(body=body))
    sliced = slice_kernel(read_source(path), "kernel")
    (diagnostic,) = sliced.diagnostics
    assert (diagnostic.code, diagnostic.line) == ("TTG110", 3)
    text = frontend(load_slice(sliced, tmp_path / "slices"), SIGNATURE, {"BLOCK": 64})
    assert "math.exp" in text or "extern_elementwise" in text


def test_triton_stands_in_for_what_helpers_read_too(write: Write, tmp_path: Path) -> None:
    helper = "@triton.jit\ndef helper(x):\n    return tle.sqrt(x)\n"
    definitions = f"from absent_package import language as tle\n{helper}"
    path = write("a.py", HEADER + definitions + KERNEL.format(body="helper(tle.exp(x))"))
    sliced = slice_kernel(read_source(path), "kernel")
    assert [diagnostic.code for diagnostic in sliced.diagnostics] == ["TTG110"]
    text = frontend(load_slice(sliced, tmp_path / "slices"), SIGNATURE, {"BLOCK": 64})
    assert "math.exp" in text
    assert "math.sqrt" in text


def test_triton_stands_in_for_what_a_helper_says_of_its_parameters_alone(write: Write, tmp_path: Path) -> None:
    helper = "@triton.jit\ndef helper(x, n: tle.constexpr):\n    return x + n\n"
    definitions = f"from .absent import tle\n{helper}"
    path = write("a.py", HEADER + definitions + KERNEL.format(body="helper(x, 2)"))
    sliced = slice_kernel(read_source(path), "kernel")
    assert [diagnostic.code for diagnostic in sliced.diagnostics] == ["TTG110"]
    text = frontend(load_slice(sliced, tmp_path / "slices"), SIGNATURE, {"BLOCK": 64})
    assert "arith.addf" in text


def test_the_target_answers(write: Write, tmp_path: Path) -> None:
    definition = "import torch\nIS_HIP = torch.version.hip is not None\nC = tl.constexpr(3.5 if IS_HIP else 1.25)\n"
    path = write("a.py", HEADER + definition + KERNEL.format(body="x * C"))
    assert "3.5" in ir_of(path, tmp_path, target="gfx942")
    assert "1.25" in ir_of(path, tmp_path, target="sm90")


def test_the_target_answers_what_an_object_made_on_demand_is_asked(write: Write, tmp_path: Path) -> None:
    write("platforms.py", "def __getattr__(name):\n    return find_platforms()[name]\n")
    definition = "from .platforms import current\nC = tl.constexpr(3.5 if current.is_rocm() else 1.25)\n"
    path = write("a.py", HEADER + definition + KERNEL.format(body="x * C"))
    write("__init__.py", "")
    assert "3.5" in ir_of(path, tmp_path, target="gfx942")
    assert "1.25" in ir_of(path, tmp_path, target="sm90")
    definition = "import torch\nfrom .platforms import current\n"
    definition += "C = tl.constexpr(torch.finfo(current.fp8_dtype()).max)\n"
    path = write("b.py", HEADER + definition + KERNEL.format(body="x * C"))
    assert "2.400000e+02" in ir_of(path, tmp_path, target="gfx942")
    assert "4.480000e+02" in ir_of(path, tmp_path, target="gfx950")


def test_the_target_answers_a_flag_that_is_found_while_the_program_runs(write: Write, tmp_path: Path) -> None:
    write("__init__.py", "")
    write("found.py", "import torch\nHAS_TRITON = IS_HIP = IS_WIDE = torch.ops.things.found()\n")
    definition = "from .found import HAS_TRITON, IS_HIP\nC = tl.constexpr(3.5 if HAS_TRITON and IS_HIP else 1.25)\n"
    path = write("a.py", HEADER + definition + KERNEL.format(body="x * C"))
    assert "3.5" in ir_of(path, tmp_path, target="gfx942")
    assert "1.25" in ir_of(path, tmp_path, target="sm90")
    text = "from .found import IS_WIDE\nC = tl.constexpr(3.5 if IS_WIDE else 1.25)\n"
    sliced = slice_kernel(read_source(write("b.py", HEADER + text + KERNEL.format(body="x * C"))), "kernel")
    assert [diagnostic.code for diagnostic in sliced.diagnostics] == ["TTG110"]


@pytest.mark.parametrize(
    ("body", "constant"),
    [
        ("x * -torch.finfo(torch.float32).max", "-3.40282347E+38"),
        ("x * torch.finfo(torch.half).max", "6.550400e+04"),
        ("x * (torch.iinfo(torch.int16).max + 0.5)", "3.276750e+04"),
    ],
)
def test_limits_of_dtypes(write: Write, tmp_path: Path, body: str, constant: str) -> None:
    path = write("a.py", HEADER + "import torch\n" + KERNEL.format(body=body))
    fn = load_slice(slice_kernel(read_source(path), "kernel"), tmp_path / "slices")
    assert constant in frontend(fn, SIGNATURE, {"BLOCK": 64}, "sm90")


def test_limits_of_dtypes_in_a_helper(write: Write, tmp_path: Path) -> None:
    helper = (
        "@triton.jit\ndef clamped(x):\n    MOST: tl.constexpr = torch.finfo(torch.half).max\n    return x * MOST\n\n"
    )
    path = write("a.py", HEADER + "import torch\n" + helper + KERNEL.format(body="clamped(x)"))
    assert "6.550400e+04" in ir_of(path, tmp_path, target="sm90")


LIBDEVICE = {
    "language_extra": "from triton.language.extra.libdevice import rsqrt\n",
    "cuda": "from triton.language.extra.cuda.libdevice import rsqrt\n",
    "module": "from triton.language.extra import libdevice\nrsqrt = libdevice.rsqrt\n",
    "math": "from triton.language.math import rsqrt\n",
    "attribute": "rsqrt = tl.extra.libdevice.rsqrt\n",
    "tried": "try:\n    from triton.language.extra.absent import rsqrt\nexcept ModuleNotFoundError:\n    from triton.language.extra.libdevice import rsqrt\n",
    "tried_name": "try:\n    from triton.language.libdevice import rsqrt\nexcept ImportError:\n    from triton.language.extra.libdevice import rsqrt\n",
    "getattr": "rsqrt = getattr(tl, 'absent', None) or tl.math.rsqrt\n",
    "module_from_spec": "import importlib.util\ndef find(name):\n    for place in ('triton.absent', 'triton.language.extra.libdevice'):\n        if spec := importlib.util.find_spec(place):\n            module = importlib.util.module_from_spec(spec)\n            spec.loader.exec_module(module)\n            return getattr(module, name)\nrsqrt = find('rsqrt')\n",
    "inductor": "from torch._inductor.runtime.triton_helpers import libdevice\nrsqrt = libdevice.rsqrt\n",
}  # fmt: skip


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize("definition", LIBDEVICE.values(), ids=LIBDEVICE.keys())
def test_libdevice(write: Write, tmp_path: Path, definition: str, target: str) -> None:
    text = ir_of(write("a.py", HEADER + definition + KERNEL.format(body="rsqrt(x)")), tmp_path, target=target)
    assert "rsqrt" in text
    assert "__nv" not in text or target == "sm90"


# ------------------------------------------------------------------------------------------- across files

PACKAGES = {
    "absolute": ("from pkg.ops.utils import helper\n", {}),
    "relative": ("from .utils import helper\n", {}),
    "relative_up": ("from ..ops.utils import helper\n", {}),
    "renamed": ("from .utils import helper as other\nhelper = other\n", {}),
    "re_exported": ("from pkg.ops import helper\n", {"pkg/ops/__init__.py": "from .utils import helper\n"}),
    "starred": ("from .utils import *\n", {}),
    "starred_twice": ("from .facade import *\n", {"pkg/ops/facade.py": "from .utils import *\n"}),
    "module": ("from . import utils\nhelper = utils.helper\n", {}),
    "tried": ("try:\n    from .utils import helper\nexcept ImportError:\n    helper = None\n", {}),
    "in_a_condition": ("from .flags import ON\nif ON:\n    from .utils import helper\n", {"pkg/ops/flags.py": "ON = not False\n"}),
}  # fmt: skip


@pytest.mark.parametrize(("imports", "files"), PACKAGES.values(), ids=PACKAGES.keys())
def test_helpers_across_files(write: Write, tmp_path: Path, imports: str, files: Mapping[str, str]) -> None:
    write("pkg/__init__.py", "raise RuntimeError('never run')\n")
    write("pkg/ops/__init__.py", "")
    write("pkg/ops/utils.py", HEADER + "import torch\n\n@triton.jit\ndef helper(x):\n    return x * 2.0\n")
    for name, text in files.items():
        write(name, text)
    path = write("pkg/ops/a.py", HEADER + imports + KERNEL.format(body="helper(x)"))
    assert "arith.mulf" in ir_of(path, tmp_path)


MODULES = {
    "from_package": ("from . import utils\n", "utils.helper(x)"),
    "renamed": ("import pkg.ops.utils as u\n", "u.helper(x)"),
    "dotted": ("import pkg.ops.utils\n", "pkg.ops.utils.helper(x)"),
    "constant": ("from . import utils\n", "x * utils.TWO"),
    "both": ("from . import utils\nfrom .utils import helper\n", "helper(utils.helper(x))"),
}


@pytest.mark.parametrize(("imports", "body"), MODULES.values(), ids=MODULES.keys())
def test_attributes_of_modules(write: Write, tmp_path: Path, imports: str, body: str) -> None:
    write("pkg/__init__.py", "")
    write("pkg/ops/__init__.py", "")
    write("pkg/ops/utils.py", HEADER + "TWO = tl.constexpr(2.0)\n@triton.jit\ndef helper(x):\n    return x * 2.0\n")
    path = write("pkg/ops/a.py", HEADER + imports + KERNEL.format(body=body))
    assert "arith.mulf" in ir_of(path, tmp_path)


@pytest.mark.parametrize(
    "there", ['find_spec("triton") is not None or find_spec("absent_triton") is not None', "active_drivers() == 1"]
)
def test_triton_from_a_package_of_ones_own(write: Write, tmp_path: Path, there: str) -> None:
    write("pkg/__init__.py", "")
    write(
        "pkg/triton_utils/__init__.py",
        """\
        from pkg.triton_utils.importing import HAS_TRITON, Placeholder
        if HAS_TRITON:
            import triton
            import triton.language as tl
        else:
            triton = Placeholder()
            tl = Placeholder()
        """,
    )
    write(
        "pkg/triton_utils/importing.py",
        f"""\
        from importlib.util import find_spec
        from absent_package import active_drivers
        HAS_TRITON = {there}
        class Placeholder:
            pass
        """,
    )
    path = write("pkg/a.py", "from pkg.triton_utils import tl, triton\n" + KERNEL.format(body="x * 2.0"))
    assert "arith.mulf" in ir_of(path, tmp_path)


def test_two_files_that_reach_each_other(write: Write, tmp_path: Path) -> None:
    write("pkg/__init__.py", "")
    write("pkg/b.py", HEADER + "from .a import leaf\n@triton.jit\ndef helper(x):\n    return leaf(x)\n")
    path = write(
        "pkg/a.py",
        HEADER
        + "from .b import helper\n@triton.jit\ndef leaf(x):\n    return x * 2.0\n"
        + KERNEL.format(body="helper(x)"),
    )
    assert "arith.mulf" in ir_of(path, tmp_path)


def test_root_finds_other_packages(write: Write, tmp_path: Path) -> None:
    write("site/other/__init__.py", "")
    write("site/other/utils.py", HEADER + "@triton.jit\ndef helper(x):\n    return x * 2.0\n")
    path = write("work/a.py", HEADER + "from other.utils import helper\n" + KERNEL.format(body="helper(x)"))
    assert "arith.mulf" in ir_of(path, tmp_path, root=tmp_path / "site")


def test_a_root_may_be_relative(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--root .` in a checkout whose folder has the name of the package in it, as `other/other/__init__.py`."""
    write("other/other/__init__.py", "from other.scale import SCALE\n")
    write("other/other/scale.py", "SCALE = 2.0\n")
    write("other/other/utils.py", HEADER + "import other\n@triton.jit\ndef helper(x):\n    return x * other.SCALE\n")
    path = write(
        "other/other/kernels/a.py", HEADER + "from other.utils import helper\n" + KERNEL.format(body="helper(x)")
    )
    monkeypatch.chdir(tmp_path)
    assert "arith.mulf" in ir_of(path, tmp_path, root=Path())


# ------------------------------------------------------------------------------------------ other shapes

SHAPES = {
    "autotune": "@triton.autotune(configs=[triton.Config({'BLOCK': 64})], key=['n'])\n@triton.heuristics({'E': lambda a: 1})\n",
    "unknown_decorator": "@torch.library.custom_op('a::b', mutates_args=())\n",
    "multi_line": "@triton.autotune(\n    configs=[\n        triton.Config({'BLOCK': 64}),\n    ],\n    key=[],\n)\n",
}


@pytest.mark.parametrize("decorators", SHAPES.values(), ids=SHAPES.keys())
def test_other_decorators_are_dropped(write: Write, tmp_path: Path, decorators: str) -> None:
    path = write("a.py", HEADER + "import torch\n" + decorators + KERNEL.format(body="x * 2.0").lstrip())
    assert "arith.mulf" in ir_of(path, tmp_path)


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ('args["n"] % 16 == 0', ("n",)),
        ('all(args[name] % 16 == 0 for name in ("n", "x_ptr"))', ("n", "x_ptr")),
        ('all(\n        args[name] % 16 == 0 for name in ("n",)\n    )', ("n",)),
        ('all(\n        args[name] % 16 == 0\n        for name in ("n", "x_ptr")\n    )', ("n", "x_ptr")),
    ],
)
def test_flags_of_alignment_are_read_from_a_decorator(write: Write, asked: str, names: tuple[str, ...]) -> None:
    given = f'@triton.heuristics({{\n    "ALIGNED": lambda args: {asked},\n}})\n'
    path = write("a.py", HEADER + given + KERNEL.format(body="x * 2.0").lstrip())
    assert slice_kernel(read_source(path), "kernel", target="sm90").aligned == (("ALIGNED", names),)


def test_a_kernel_inside_a_class(write: Write, tmp_path: Path) -> None:
    text = (
        HEADER
        + "class Op:\n    '''Text.'''\n    @staticmethod\n"
        + textwrap.indent(KERNEL.format(body="x * 2.0").strip(), "    ")
    )
    assert "arith.mulf" in ir_of(write("a.py", text + "\n"), tmp_path)


def test_a_kernel_inside_a_function_sees_its_locals(write: Write, tmp_path: Path) -> None:
    text = (
        HEADER
        + "def make():\n    C = tl.constexpr(3.5)\n"
        + textwrap.indent(KERNEL.format(body="x * C").strip(), "    ")
    )
    assert "3.5" in ir_of(write("a.py", text + "\n    return kernel\n"), tmp_path)


def test_conditions_around_a_kernel_hold(write: Write, tmp_path: Path) -> None:
    text = "_kernel = None\ndef get():\n    global _kernel\n    if _kernel is None:\n        import triton\n        import triton.language as tl\n"
    text += (
        textwrap.indent(KERNEL.format(body="x * 2.0").strip(), " " * 8)
        + "\n        _kernel = kernel\n    return _kernel\n"
    )
    assert "arith.mulf" in ir_of(write("a.py", text), tmp_path)


def test_annotations_become_inert(write: Write, tmp_path: Path) -> None:
    text = (HEADER + "import torch\n" + KERNEL.format(body="x")).replace(
        "x_ptr, n,", "x_ptr: torch.Tensor, n: torch.nn.Module,"
    )
    assert "tt.store" in ir_of(write("a.py", text), tmp_path)


def test_annotations_become_inert_that_name_what_is_not_at_hand(write: Write, tmp_path: Path) -> None:
    text = (HEADER + "from absent_package import tle\n" + KERNEL.format(body="x")).replace(
        "x_ptr, n,", "x_ptr: tle.const, n,"
    )
    assert "tt.store" in ir_of(write("a.py", text), tmp_path)


def test_a_torch_constant_in_a_body(write: Write, tmp_path: Path) -> None:
    path = write("a.py", HEADER + "import torch\n" + KERNEL.format(body="x + torch.pi"))
    assert "3.14" in ir_of(path, tmp_path)


def test_defaults_are_bound(write: Write, tmp_path: Path) -> None:
    text = (HEADER + "SIZE = 2 ** 6\n" + KERNEL.format(body="x")).replace(
        "BLOCK: tl.constexpr", "BLOCK: tl.constexpr = SIZE"
    )
    assert "tt.store" in ir_of(write("a.py", text), tmp_path)


CONSTEXPR_FUNCTIONS = {
    "constexpr_function": "@triton.constexpr_function\ndef double(x):\n    return x * 2 + 0.25\n",
    "with_globals": "import math\nQ = 0.25\n@triton.constexpr_function\ndef double(x):\n    return int(math.sqrt(4)) * x + Q\n",
    "by_functions_of_the_host": "def half(x):\n    return x * 2\ndef plain(x):\n    return half(x) + 0.25\n@tl.constexpr\ndef double(x):\n    return plain(x)\n",
    "by_a_call": "def plain(x):\n    return x * 2 + 0.25\ndouble = triton.constexpr_function(plain)\n",
    "where_there_is": "def double(x):\n    return x * 2 + 0.25\nif hasattr(triton, 'constexpr_function'):\n    double = triton.constexpr_function(double)\n",
}  # fmt: skip


@pytest.mark.parametrize("definition", CONSTEXPR_FUNCTIONS.values(), ids=CONSTEXPR_FUNCTIONS.keys())
def test_constexpr_functions_are_kept(write: Write, tmp_path: Path, definition: str) -> None:
    path = write("a.py", HEADER + definition + KERNEL.format(body="x * double(1.5)"))
    assert "3.25" in ir_of(path, tmp_path)


def test_a_function_of_triton_that_a_call_has_run_while_it_compiles(write: Write, tmp_path: Path) -> None:
    name = "constexpr_function = getattr(triton.runtime.jit, 'constexpr_function', None)\n"
    text = HEADER + name + "integer = constexpr_function(tl.core.get_int_dtype)\n"
    path = write("a.py", text + KERNEL.format(body="x.to(integer(bitwidth=16, signed=True))"))
    assert "to tensor<64xi16>" in ir_of(path, tmp_path)


def test_a_gluon_kernel(write: Write, tmp_path: Path) -> None:
    path = write(
        "a.py",
        """\
        from triton.experimental import gluon
        from triton.experimental.gluon import language as gl

        LAYOUT = gl.constexpr(gl.BlockedLayout([1], [32], [4], [0]))

        @gluon.jit
        def kernel(x_ptr, BLOCK: gl.constexpr):
            layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
            offs = gl.arange(0, BLOCK, layout=layout)
            gl.store(x_ptr + offs, gl.load(x_ptr + offs))
        """,
    )
    fn = load_slice(slice_kernel(read_source(path), "kernel"), tmp_path / "slices")
    assert type(fn).__name__ == "GluonJITFunction"


# ------------------------------------------------------------------------------------------- undecided

UNDECIDED = {
    "unknown_call": "import torch\nif torch.ops.thing.ready():\n    C = tl.constexpr(1.0)\nelse:\n    C = tl.constexpr(2.0)\n",
    "loop": "for i in range(3):\n    C = i\n",
    "with": "with open('x') as C:\n    pass\n",
    "too_large": "C = tl.constexpr(10 ** 10 ** 10)\n",
    "endless": "def f():\n    while True:\n        pass\nC = tl.constexpr(f())\n",
    "recursive": "def f(n):\n    return f(n + 1)\nC = tl.constexpr(f(0))\n",
    "file": "C = tl.constexpr(float(open('x').read()))\n",
    "parameter": "def make(C):\n    @triton.jit\n    def kernel(x_ptr, n, BLOCK: tl.constexpr):\n        tl.store(x_ptr, C)\n    return kernel\n",
}  # fmt: skip


@pytest.mark.parametrize("definition", UNDECIDED.values(), ids=UNDECIDED.keys())
def test_what_cannot_be_decided_is_said(write: Write, definition: str) -> None:
    text = HEADER + definition + ("" if "def kernel" in definition else KERNEL.format(body="x * C"))
    sliced = slice_kernel(read_source(write("a.py", text)), "kernel")
    assert [diagnostic.code for diagnostic in sliced.diagnostics] == ["TTG110"]
    assert sliced.diagnostics[0].line > 2


def test_an_undecided_condition_nobody_needs_is_silent(write: Write) -> None:
    text = HEADER + "import torch\nif torch.ops.thing.ready():\n    C = 1\nelse:\n    C = 2\n" + KERNEL.format(body="x")
    assert slice_kernel(read_source(write("a.py", text)), "kernel").diagnostics == ()


# ------------------------------------------------------------------------------------------------- a package

LIGER = os.environ.get("TT2GL_LIGER")
LAUNCHES = os.environ.get("TT2GL_LIGER_LAUNCHES")


@pytest.mark.skipif(not (LIGER and LAUNCHES), reason="set TT2GL_LIGER and TT2GL_LIGER_LAUNCHES")
def test_every_kernel_of_liger(tmp_path: Path) -> None:
    assert LIGER is not None
    assert LAUNCHES is not None
    root = Path(LIGER)
    launches = read_launches(LAUNCHES)
    done: dict[tuple[str, str], Slice] = {}
    for launch in launches:
        key = (launch.file, launch.kernel)
        if key not in done:
            done[key] = slice_kernel(read_source(root / launch.file), launch.kernel, root=root)
            assert done[key].diagnostics == ()
        assert launch in launches_for(launches, root / launch.file, launch.kernel, root)
        fn = load_slice(done[key], tmp_path)
        assert "tt.func public" in frontend(fn, launch.signature, _constexprs(launch))
    assert len(done) == 76


def _constexprs(launch: Launch) -> dict[str, Any]:
    import triton.language as tl

    names = {"fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32}
    return {
        name: names[value.name] if isinstance(value, DtypeValue) else value for name, value in launch.constexprs.items()
    }


AGGREGATE = """\
import triton
import triton.language as tl
from triton.language.core import _aggregate as aggregate


@aggregate
class Row:
    start: tl.tensor
    n: tl.tensor

    @triton.constexpr_function
    def __init__(self, start, n):
        self.start = start
        self.n = n

    @staticmethod
    @triton.jit
    def create(n):
        return Row(tl.program_id(0) * n, n)
"""


def test_an_aggregate_of_another_file_stands_in_an_annotation(write: Write, tmp_path: Path) -> None:
    write("rows.py", AGGREGATE)
    helper = "@triton.jit\ndef first(row: Row):\n    return row.start + row.n\n\n"
    kernel = (
        "@triton.jit\ndef kernel(x_ptr, n, BLOCK: tl.constexpr):\n    tl.store(x_ptr + first(Row.create(n)), 1.0)\n"
    )
    path = write("kernel.py", HEADER + "from rows import Row\n\n" + helper + kernel)
    assert "tt.store" in ir_of(path, tmp_path)


def test_a_decorator_imported_under_a_test_that_nothing_decides(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        "from absent_package import platform\n"
        "if platform.is_known():\n"
        "    from triton.experimental import gluon as other\n"
        "    from triton.experimental.gluon import language as gl\n\n"
        "    @other.jit\n"
        "    def kernel(x_ptr):\n"
        "        gl.store(x_ptr, 1)\n"
    )
    assert "    @_tt2gl_gluon_jit\n    def kernel(" in slice_kernel(read_source(path), "kernel").modules[0].text


@pytest.mark.parametrize("package", ["absent_package.ops", ".absent"])
def test_a_constant_is_made_by_triton_of_a_package_that_is_not_at_hand(tmp_path: Path, package: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        f"from {package} import tl, triton\n\nKIND = tl.constexpr(3)\n\n\n"
        "@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, KIND)\n"
    )
    sliced = slice_kernel(read_source(path), "kernel")
    assert "KIND = find('triton.language.constexpr')(3)" in sliced.modules[0].text
    assert not any("KIND" in diagnostic.message for diagnostic in sliced.diagnostics)


def test_a_flag_of_a_package_that_is_not_at_hand_is_as_its_name_asks(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        "import triton\nimport triton.language as tl\nfrom absent_package import HAS_TRITON, IS_HIP\n\n"
        "KIND = tl.constexpr(1 if IS_HIP else 2) if HAS_TRITON else 0\n\n\n"
        "@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, KIND)\n"
    )
    for target, kind in (("sm90", 2), ("gfx942", 1)):
        sliced = slice_kernel(read_source(path), "kernel", target=target)
        assert f"constexpr')({kind})" in sliced.modules[0].text


@pytest.mark.parametrize("package", ["absent_package.ops", ".absent"])
def test_what_several_functions_read_of_a_tl_that_is_not_at_hand_stands_in(tmp_path: Path, package: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        f"from {package} import tl, triton\n\n\n"
        "@triton.jit\ndef ones(x):\n    return tl.full([16], 1, tl.int32)\n\n\n"
        "@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr + tl.arange(0, 16), ones(x_ptr))\n"
    )
    text = slice_kernel(read_source(path), "kernel").modules[0].text
    for name in ("arange", "full", "int32", "store"):
        assert f"{name}=find('triton.language.{name}')" in text
