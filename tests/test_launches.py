"""The launches file: what is read is written back the same, what is malformed is named, and a misfit is refused."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tt2gl.diagnostics import DiagnosticError
from tt2gl.launch_file import decode, encode, read_launches, write_launches
from tt2gl.launches import (
    DescriptorArg,
    DtypeValue,
    JitValue,
    Launch,
    Options,
    TensorArg,
    check_launch,
    descriptor_ranks,
    launches_for,
    parted,
    passed_to,
)
from tt2gl.source import read_source

ENTRY: dict[str, Any] = {
    "file": "softmax.py",
    "kernel": "softmax_kernel",
    "signature": {
        "x_ptr": "*fp16",
        "d": "tensordesc<fp16[64, 64]>",
        "n": "i32",
        "BLOCK": "constexpr",
        "T": "constexpr",
    },
    "constexprs": {"BLOCK": 1024, "T": {"dtype": "bf16"}},
    "divisible_by_16": ["x_ptr", "n"],
    "options": {"num_warps": 8, "num_stages": 2, "num_ctas": 1, "maxnreg": 128},
    "grid": [128, 1, 1],
    "args": {
        "x_ptr": {"dtype": "float16", "shape": [128, 1000], "stride": [1000, 1], "range": None},
        "d": {"descriptor": {"dtype": "float16", "shape": [64, 64], "stride": [64, 1], "block_shape": [64, 64]}},
        "n": 1000,
    },
}


def written(tmp_path: Path, document: Any) -> Path:
    path = tmp_path / "launches.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document, indent=1))
    return path


def entry(**changes: Any) -> dict[str, Any]:
    return {"version": 1, "launches": [{**ENTRY, **changes}]}


def test_an_empty_file_of_launches(tmp_path: Path) -> None:
    assert read_launches(written(tmp_path, {"version": 1, "launches": []})) == ()


def test_reading(tmp_path: Path) -> None:
    (launch,) = read_launches(written(tmp_path, entry()))
    assert launch.options == Options(8, 2, 1, {"maxnreg": 128})
    assert launch.constexprs["T"] == DtypeValue("bf16")
    assert launch.grid == (128, 1, 1)
    assert launch.args is not None
    assert launch.args["x_ptr"] == TensorArg("float16", (128, 1000), (1000, 1), None)
    assert launch.args["d"] == DescriptorArg("float16", (64, 64), (64, 1), (64, 64))
    assert launch.origin == "given"


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    launches = read_launches(written(tmp_path, entry()))
    write_launches(tmp_path / "again.json", launches)
    assert json.loads((tmp_path / "again.json").read_text()) == entry()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path, entry())
    bad = Launch("a.py", "k", {"x": "constexpr"}, {"x": object()})
    with pytest.raises(TypeError):
        write_launches(path, [bad])
    assert json.loads(path.read_text()) == entry()


def test_launches_can_be_pickled(tmp_path: Path) -> None:
    launches = read_launches(written(tmp_path, entry()))
    assert pickle.loads(pickle.dumps(launches)) == launches


@pytest.mark.parametrize("key", ["grid", "args"])
def test_what_is_not_known_may_be_null(tmp_path: Path, key: str) -> None:
    (launch,) = read_launches(written(tmp_path, entry(**{key: None})))
    assert getattr(launch, key) is None


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.builds(DtypeValue, st.sampled_from(["fp16", "i32"]))
    | st.just(JitValue("package.module:name"))
    | st.builds(TensorArg, st.just("int32"), st.just((2, 3)), st.just((3, 1)), st.none() | st.just((0, 7))),
    lambda inner: st.lists(inner).map(tuple) | st.lists(inner),
    max_leaves=8,
)


@given(VALUES)
def test_decoding_inverts_encoding(value: Any) -> None:
    text = json.dumps(encode(value), allow_nan=False)
    assert decode(json.loads(text)) == value


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        "3",
        '{"version": 1}',
        '{"launches": []}',
        '{"version": 2, "launches": []}',
        '{"version": 1, "launches": [1]}',
        '{"version": 1, "launches": [{"kernel": "k"}]}',
        "[" * 100_000,
    ],
)
def test_documents_of_another_shape(tmp_path: Path, document: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read_launches(written(tmp_path, document))
    assert caught.value.diagnostic.code == "TTG201"
    assert caught.value.diagnostic.file.endswith("launches.json")


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"signature": None}, "signature"),
        ({"signature": {"x_ptr": "* fp16;"}}, "signature.x_ptr"),
        ({"constexprs": {"BLOCK": 1}}, "constexprs.T"),
        ({"constexprs": {"BLOCK": {"dtype": 3}, "T": 1}}, "constexprs.BLOCK"),
        ({"constexprs": {"BLOCK": {"unknown": 3}, "T": 1}}, "constexprs.BLOCK"),
        ({"constexprs": {"BLOCK": {"jit": "no colon"}, "T": 1}}, "constexprs.BLOCK"),
        ({"divisible_by_16": ["absent"]}, "divisible_by_16"),
        ({"options": {"num_warps": "four"}}, "options.num_warps"),
        ({"grid": "all"}, "grid"),
        ({"args": {"x_ptr": {"dtype": "float16", "shape": [2], "stride": [1, 1]}}}, "args.x_ptr"),
    ],
)
def test_what_is_malformed_is_named(tmp_path: Path, changes: dict[str, Any], where: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        read_launches(written(tmp_path, entry(**changes)))
    assert caught.value.diagnostic.line == 6
    assert f"at {where}" in caught.value.diagnostic.message


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="TTG201"):
        read_launches(tmp_path / "absent.json")


def launch(**changes: Any) -> Launch:
    values: dict[str, Any] = {"file": "pkg/a.py", "kernel": "kernel", "signature": {"x": "*fp32"}, "constexprs": {}}
    return Launch(**{**values, **changes})


def test_launches_of_another_kernel_or_file_do_not_match(tmp_path: Path) -> None:
    others = [launch(kernel="other"), launch(file="a.py"), launch(file="pkg/b.py")]
    assert launches_for(others, tmp_path / "pkg/a.py", "kernel", tmp_path) == ()


def test_file_is_relative_to_root(tmp_path: Path) -> None:
    assert launches_for([launch()], tmp_path / "pkg/a.py", "kernel", tmp_path) == (launch(),)


def test_file_is_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert launches_for([launch()], Path("pkg/a.py"), "kernel") == (launch(),)


KERNEL = "import triton\n@triton.jit\ndef kernel(x, n, B: triton.language.constexpr = 4): pass\n"


@pytest.mark.parametrize(
    "signature",
    [
        {"x": "*fp32", "n": "i32"},
        {"x": "*fp32", "n": "i32", "B": "constexpr"},
        {"x": "*fp32", "n": "constexpr", "B": "constexpr"},
    ],
)
def test_a_launch_that_fits(signature: dict[str, str]) -> None:
    check_launch(launch(signature=signature), read_source(Path("a.py"), KERNEL).functions[0])


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ({"x": "*fp32", "n": "i32", "m": "i32"}, "'m'"),
        ({"x": "*fp32"}, "'n'"),
        ({"x": "*fp32", "n": "i32", "B": "i32"}, "'B'"),
    ],
    ids=["unknown", "missing", "constexpr"],
)
def test_a_launch_that_does_not_fit(signature: dict[str, str], name: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        check_launch(launch(signature=signature), read_source(Path("a.py"), KERNEL).functions[0])
    assert caught.value.diagnostic.code == "TTG202"
    assert name in caught.value.diagnostic.message


TILE = DescriptorArg("float16", (104, 1), (96, 1), (64, 32))
TILED = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"n": "i32", "a": "tensordesc<fp16[64, 32]>"},
    constexprs={"B": 8},
    divisible_by_16=("n",),
    args={"n": 16, "a": TILE},
)


def test_descriptors_that_a_kernel_has_are_passed_whole() -> None:
    assert passed_to(TILED, ["n", "a", "B"]) == TILED
    assert passed_to(TILED, ["n"]) == TILED


def test_descriptors_of_some_launches_alone_are_not_the_hosts() -> None:
    pointer = replace(TILED, signature={"n": "i32", "a": "*fp16"})
    assert descriptor_ranks([TILED, TILED]) == {"a": 2}
    assert descriptor_ranks([TILED, pointer]) == descriptor_ranks([pointer, TILED]) == descriptor_ranks([]) == {}


def test_parts_of_a_descriptor_are_specialised_as_arguments() -> None:
    made = passed_to(TILED, ["n", "a_base"])
    assert made == parted(TILED, {"a": 2})
    assert list(made.signature.items()) == [
        ("n", "i32"),
        ("a_base", "*fp16"),
        ("a_size_0", "i32"),
        ("a_size_1", "constexpr"),
        ("a_stride_0", "i32"),
        ("a_block_0", "constexpr"),
        ("a_block_1", "constexpr"),
    ]
    assert made.constexprs == {"B": 8, "a_size_1": 1, "a_block_0": 64, "a_block_1": 32}
    assert made.divisible_by_16 == ("n", "a_base", "a_stride_0")
    assert made.args == {
        "n": 16,
        "a_base": TensorArg("float16", (104, 1), (96, 1)),
        "a_size_0": 104,
        "a_stride_0": 96,
    }
    assert made.parted == (("a", 2),)


def test_of_unknown_descriptors_the_types_are_known() -> None:
    made = parted(replace(TILED, args=None), {"a": 2})
    assert (made.args, made.signature["a_size_1"], made.divisible_by_16) == (None, "i32", ("n", "a_base"))
