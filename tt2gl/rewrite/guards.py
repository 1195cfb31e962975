"""Rule `buffer_ops`, on request: a kernel whose buffer operations assume small tensors is compiled for those alone.

@triton.jit                                                                               # before
def kernel(x_ptr, stride):
    x = f(x_ptr)

@triton.heuristics({"FITS_BUFFERS": fits_buffers(["x_ptr"], ["stride"])})                 # after
@gluon.jit
def kernel(x_ptr, stride, FITS_BUFFERS: gl.constexpr = True):
    gl.static_assert(FITS_BUFFERS, "a tensor is too large for buffer operations, or a stride negative")
    x = f(x_ptr)
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.plan import Guard
from tt2gl.rewrite.build import expression, statement
from tt2gl.words import FITS_BUFFERS

_FLAG = FITS_BUFFERS.upper()

FITS_BUFFERS_SOURCE = f'''def {FITS_BUFFERS}(tensors, counts):
    """Whether a launch is as its kernel's buffer operations assume: tensors below 2 GiB, counts not negative."""

    def fits(args):
        given = [args[name] for name in tensors if args[name] is not None]
        small = all(tensor.untyped_storage().nbytes() <= 2**31 - 2 for tensor in given)
        return small and all(args[name] >= 0 for name in counts)

    return fits
'''


def with_guard(function: cst.FunctionDef, guard: Guard, is_jit: Sequence[bool]) -> tuple[cst.FunctionDef, list[bool]]:
    """The kernel with a flag that each launch gives it, and does not compile without."""
    place = list(is_jit).index(True)
    jit = function.decorators[place]
    chosen = jit.decorator.func if isinstance(jit.decorator, cst.Call) else jit.decorator
    triton = cst.Module([]).code_for_node(chosen.value) if isinstance(chosen, cst.Attribute) else "triton"
    told = ", ".join(str(list(names)).replace("'", '"') for names in (guard.tensors, guard.counts))
    given = cst.Decorator(expression(f'{triton}.heuristics({{"{_FLAG}": {FITS_BUFFERS}({told})}})'))
    decorators = [*function.decorators[:place], given, *function.decorators[place:]]
    flag = cst.Param(cst.Name(_FLAG), cst.Annotation(expression("gl.constexpr")), default=cst.Name("True"))
    params = function.params.with_changes(params=[*function.params.params, flag])
    message = "a tensor is too large for buffer operations, or a stride negative"
    asserted = statement(f'gl.static_assert({_FLAG}, "{message}")')
    start = 1 if function.get_docstring() is not None else 0
    suite = function.body
    if isinstance(suite, cst.SimpleStatementSuite):
        suite = cst.IndentedBlock([cst.SimpleStatementLine(suite.body)])
    made = suite.with_changes(body=[*suite.body[:start], asserted, *suite.body[start:]])
    return function.with_changes(decorators=decorators, params=params, body=made), [
        *is_jit[:place],
        False,
        *is_jit[place:],
    ]
