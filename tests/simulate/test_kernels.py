"""The kernels to simulate, their references and the faults planted in them, before any is simulated."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Sequence

import numpy as np
import pytest

from tests.simulate.faults import FAULTS, Fault
from tests.simulate.kernels import suite
from tests.simulate.kernels.references import REFERENCES, Arguments, Array
from tests.simulate.running import Job, expected, sliced
from tt2gl.children import Outcome
from tt2gl.isolate import map_isolated, preload
from tt2gl.results import CompileResult
from tt2gl.verify.compile import CompiledKernel, CompileJob, compile_job, compile_result
from tt2gl.verify.inputs import make_inputs

CASES = suite.cases()
BY_NAME = {case.name: case for case in CASES}


def compiled(jobs: Sequence[Job]) -> list[CompileResult]:
    """Machine code of every job, or why there is none; slicing is in the children too, as it takes longest."""
    preload()
    outcomes: list[Outcome[CompiledKernel]] = map_isolated(slice_and_compile, [(job,) for job in jobs], timeout=120)
    return [compile_result(outcome, job.case.target) for outcome, job in zip(outcomes, jobs, strict=True)]


def slice_and_compile(job: Job) -> CompiledKernel:
    kernel = sliced(job)
    assert kernel.diagnostics == ()
    return compile_job(CompileJob(kernel, job.case.launch, job.case.target))


def test_every_kernel_has_launches_and_a_reference() -> None:
    launched = {f"{case.file}.{case.kernel}" for case in CASES} | set(suite.NEEDS)
    assert launched == set(REFERENCES)
    for case in CASES:
        names = {node.name for node in ast.parse(case.path.read_text()).body if isinstance(node, ast.FunctionDef)}
        assert case.kernel in names
        assert 2 <= math.prod(case.launch.grid or ()) <= 9, case.name


@pytest.mark.slow
def test_every_kernel_compiles_to_machine_code() -> None:
    results = compiled([Job(case) for case in CASES])
    assert [(case.name, result.error) for case, result in zip(CASES, results, strict=True) if not result.ok] == []


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_references_give_whole_tensors(case: suite.Case, seed: int) -> None:
    inputs = make_inputs(case.launch, seed)
    for name, array in expected(case, inputs).items():
        assert array.shape == inputs.tensors[name].arg.shape
        assert np.isfinite(np.asarray(array, np.float64)).all()


# --------------------------------------------------------------------------------- references, said another way


def product(a: Array, b: Array) -> Array:
    result: Array = np.einsum("mk,kn->mn", a.astype(np.longdouble), b.astype(np.longdouble))
    return result


def matmul(args: Arguments) -> dict[str, Array]:
    total = product(args["a_ptr"], args["b_ptr"])
    return {"c_ptr": total + args.get("bias_ptr", np.zeros(total.shape[1]))}


def matmul_descriptors(args: Arguments) -> dict[str, Array]:
    return {"c_desc": product(args["a_desc"], args["b_desc"])}


def matmul_int8(args: Arguments) -> dict[str, Array]:
    rows = [
        [sum(x * y for x, y in zip(a, w, strict=True)) for w in args["w_ptr"].tolist()] for a in args["a_ptr"].tolist()
    ]
    return {"c_ptr": np.array(rows)}


def softmax(args: Arguments) -> dict[str, Array]:
    x = args["x_ptr"].astype(np.longdouble)
    return {"out_ptr": np.exp(x - np.log(np.exp(x).sum(axis=1, keepdims=True)))}


def attention(args: Arguments) -> dict[str, Array]:
    # Online, as the kernel goes: block by block, with the running maximum taken out.
    q, k, v = (args[name].astype(np.longdouble) for name in ("q_ptr", "k_ptr", "v_ptr"))
    highest, total, out = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros_like(q)
    for first in range(0, len(k), args["BLOCK_N"]):
        scores = q @ k[first : first + args["BLOCK_N"]].T * args["scale"]
        above = np.maximum(highest, scores.max(axis=1))
        weights, shrink = np.exp2(scores - above[:, None]), np.exp2(highest - above)
        total, highest = total * shrink + weights.sum(axis=1), above
        out = out * shrink[:, None] + weights @ v[first : first + args["BLOCK_N"]]
    return {"o_ptr": out / total[:, None]}


def rms_norm(args: Arguments) -> dict[str, Array]:
    x = args["x_ptr"].astype(np.longdouble)
    size = np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True) ** 2 / x.shape[1]
    return {"out_ptr": x * args["weight_ptr"] / np.sqrt(size + args["eps"])}


def histogram(args: Arguments) -> dict[str, Array]:
    return {"counts_ptr": np.array([(args["x_ptr"] == value).sum() for value in range(args["BINS"])])}


def rotate(args: Arguments) -> dict[str, Array]:
    x, block, out = args["x_ptr"], args["BLOCK"], np.zeros_like(args["out_ptr"])
    for place in range(len(out)):
        source = place // block * block + (place + block // 2) % block
        out[place] = sum(x[at] for at in range(source, len(x), block)[: args["STEPS"]])
    return {"out_ptr": out}


def gather_rows(args: Arguments) -> dict[str, Array]:
    rows = [args["table_ptr"][index][::-1] for index in args["index_ptr"]]
    return {"out_ptr": np.stack(rows)}


SECOND = {
    "cp_async.matmul_kernel": matmul,
    "tcgen05.linear_kernel": matmul,
    "wgmma.matmul_kernel": matmul,
    "amd.tdm_matmul_kernel": matmul,
    "tma.matmul_kernel": matmul_descriptors,
    "cp_async.int8_matmul_kernel": matmul_int8,
    "shared.softmax_kernel": softmax,
    "wgmma.attention_kernel": attention,
    "cp_async.rms_norm_kernel": rms_norm,
    "shared.histogram_kernel": histogram,
    "shared.rotate_kernel": rotate,
    "shared.gather_rows_kernel": gather_rows,
}


@pytest.mark.parametrize(
    "case", [case for case in CASES if f"{case.file}.{case.kernel}" in SECOND], ids=lambda c: c.name
)
def test_references_agree_with_a_second_formulation(case: suite.Case) -> None:
    inputs = make_inputs(case.launch, 0)
    tensors = {name: np.array(data.view()) for name, data in inputs.tensors.items()}
    second = SECOND[f"{case.file}.{case.kernel}"]({**tensors, **inputs.scalars, **case.launch.constexprs})
    first = expected(case, inputs)
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_allclose(np.asarray(second[name], np.float64), array, rtol=1e-9, atol=1e-9)


# -------------------------------------------------------------------------------------------------------- faults

ASKED_FOR = {
    "missing wait",
    "wait count off by one",
    "slot overwritten while read",
    "missing arrive",
    "wrong phase",
    "read before write",
    "missing fence",
    "load out of bounds",
    "store out of bounds",
    "wrong other value",
    "wrong layout of an index",
    "off by one in the drain",
    "racing partitions",
}


def test_faults_are_many_and_of_every_category() -> None:
    assert len(FAULTS) >= 48
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {fault.category for fault in FAULTS} >= ASKED_FOR
    assert {fault.file for fault in FAULTS} == {case.file for case in CASES}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_changes_one_line(fault: Fault) -> None:
    correct = fault.case.path.read_text()
    before, after = correct.splitlines(), fault.text(correct).splitlines()
    assert len(before) == len(after)
    changed = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
    assert [line[2:].strip() for line in changed] == [fault.line, fault.fault]


@pytest.mark.slow
def test_every_fault_compiles_to_machine_code() -> None:
    results = compiled([Job(fault.case, fault.text(fault.case.path.read_text())) for fault in FAULTS])
    assert [(fault.name, result.error) for fault, result in zip(FAULTS, results, strict=True) if not result.ok] == []
