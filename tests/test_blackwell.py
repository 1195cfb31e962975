"""Kernels with dots converted for Blackwell: equal to Triton's in the simulator, without fault, with no more memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipelining.suite import CASES, Case
from tests.pipelining.test_proof import compiled, simulated, slices
from tt2gl.convert import convert

WANTED = {
    "matmul_kernel": "mbarrier.wait(mma_bar, mma_phase ^ 1)\n        tcgen05_commit(mma_bar)",
    "attention_kernel": "tcgen05_mma(acc_lhs_tmem, v, acc_tmem)",
}


def case_of(kernel: str) -> Case:
    """A kernel's case with three stages, for Blackwell."""
    return replace(next(case for case in CASES if case.name == f"{kernel}-sm90-3"), target="sm100")


def converted(case: Case) -> str:
    return convert(case.original, target="sm100", launches=[case.launch], root=Path("/"), compile=False).text


@pytest.mark.slow
@pytest.mark.subset
@pytest.mark.parametrize("kernel", WANTED)
def test_equal_to_triton(kernel: str, tmp_path: Path) -> None:
    case = case_of(kernel)
    text = converted(case)
    assert WANTED[kernel] in text
    kernels = slices(case, text, tmp_path)
    triton, gluon = compiled(case, kernels)
    assert triton.metrics is not None
    assert gluon.metrics is not None, gluon.error
    assert gluon.metrics.shared_bytes <= triton.metrics.shared_bytes
    run = simulated(case, kernels)
    assert run.result is not None, run.trouble
    assert (run.result.equal, run.result.bitwise, run.result.findings) == (True, True, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "right", "wrong"),
    [
        # A tile is overwritten while a product reads it.
        ("matmul_kernel", "mbarrier.wait(mma_bar, mma_phase ^ 1)\n        tcgen05_commit", "tcgen05_commit"),
        # The sum is taken out while a product adds to it.
        ("matmul_kernel", "mbarrier.wait(mma_bar, mma_phase ^ 1)\n    mbarrier.invalidate", "mbarrier.invalidate"),
        ("attention_kernel", "mbarrier.wait(mma_bar, mma_phase)\n        mma_phase ^= 1\n", "mma_phase ^= 1\n"),
    ],
)
def test_the_proof_can_fail(kernel: str, right: str, wrong: str, tmp_path: Path) -> None:
    case = case_of(kernel)
    text = converted(case)
    assert right in text
    run = simulated(case, slices(case, text.replace(right, wrong), tmp_path))
    assert run.result is not None, run.trouble
    assert run.result.findings or not run.result.equal
