from __future__ import annotations

from dataclasses import replace

from tests.report.page.samples import ORIGINAL, PORT, sides, told
from tt2gl.diagnostics import Severity
from tt2gl.report.page.contents import contents, geometric_mean


def test_a_kernel_is_what_it_is_under_its_worst_launch() -> None:
    file = sides()
    failed = replace(file.kernels[1], status="failed")
    found = contents("t", [replace(file, kernels=(file.kernels[0], failed))])
    assert [(page.name, page.status) for page in found.kernels] == [("add_kernel", "failed")]
    assert (found.with_status("converted"), found.with_status("failed", "sm90")) == (0, 1)


def test_kernels_have_their_part_of_the_difference_and_files_the_rest() -> None:
    found = contents("t", [sides()])
    add, sort = found.kernels
    assert (add.line, add.lines, sort.lines) == (4, 4, 4)
    assert next(row.text for row in add.bodies[0].difference.rows if row.sign == "+") == "@gluon.jit"
    assert sort.bodies == ()
    (file,) = found.files
    assert [(row.sign, row.after, row.text) for row in file.difference.rows if row.sign != " "] == [
        ("+", 2, "from triton.experimental import gluon")
    ]


def test_bodies_that_a_kernel_chooses_from_are_its_own() -> None:
    body = "\n\n\n@gluon.jit\ndef add_kernel_wide(x_ptr):\n    pass\n\n\ndef helper(): ...\n"
    found = contents("t", [replace(sides(), port=PORT + body)])
    wide, chooses = found.kernels[0].bodies
    assert (wide.name, chooses.name) == ("add_kernel_wide", "add_kernel")
    assert (wide.difference.removed, chooses.difference.removed) == (4, 0)
    assert "+def add_kernel_wide(x_ptr):" in found.kernels[0].diff.split("\n")
    assert "+def helper(): ..." in found.files[0].difference.text
    assert "add_kernel_wide" not in found.files[0].difference.text
    # One that the author has is nobody's.
    found = contents("t", [replace(sides(), original=ORIGINAL + body, port=PORT + body)])
    assert "add_kernel_wide" not in found.kernels[0].diff


def test_a_text_that_is_no_python_has_no_places() -> None:
    found = contents("t", [replace(sides(), original="def (", port="def (")])
    assert (found.kernels[0].line, found.kernels[0].bodies) == (0, ())


def test_reasons_say_what_is_held_back_and_how_much_that_is() -> None:
    reasons = {reason.code: reason for reason in contents("t", [sides(), sides("gfx942")]).reasons}
    assert list(reasons) == ["TTG301", "TTG210", "TTG504"]
    kept = reasons["TTG301"]
    assert (kept.count, len(kept.kernels), len(kept.held), kept.alone, kept.lines) == (2, 2, 2, 2, 8)
    # A note beside a warning holds nothing back, and a warning of a kernel that is converted neither.
    assert (len(reasons["TTG210"].held), len(reasons["TTG504"].held)) == (0, 0)


def test_what_two_reasons_hold_neither_holds_alone() -> None:
    file = sides()
    both = replace(file.kernels[2], diagnostics=(told("TTG301"), told("TTG302"), told("TTG210", Severity.NOTE)))
    reasons = contents("t", [replace(file, kernels=(both,))]).reasons
    assert [(reason.code, len(reason.held), reason.alone) for reason in reasons] == [
        ("TTG301", 1, 0),
        ("TTG302", 1, 0),
        ("TTG210", 0, 0),
    ]


def test_equality_and_speed_of_all_launches() -> None:
    add, sort = contents("t", [sides()]).kernels
    assert (add.equal, sort.equal) == (True, None)
    assert add.equality == "bit for bit (GPU, 2 of 2)"
    assert add.speed == 1.25
    assert contents("t", [sides(ran=False)]).kernels[0].equality == "bit for bit (simulated, 2 of 2)"
    assert geometric_mean([]) is None
    assert geometric_mean([2.0, 0.5]) == 1.0
