"""Rule `ranges`: a loop counts through Python's range, without hints to passes that Gluon does not run.

for k in tl.range(0, K, BLOCK_K, num_stages=4, flatten=True):     # before
for k in range(0, K, BLOCK_K):                                    # after

Does not handle `loop_unroll_factor`, which stays as it is said: nothing else in the text would say it.
"""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from tt2gl.words import PARTITIONED

_TRITON = "triton.language.range"
_BOUNDS = ("arg1", "arg2", "step")
_KEPT = "loop_unroll_factor"


def counting(loop: cst.For, called: Collection[str], *, partitioned: bool = False) -> cst.For:
    """The loop, its range Python's where it is Triton's; `called`: what is called there can be.

    `partitioned`: it keeps the option that gives parts of it warps of their own.
    """
    made = loop.iter
    if not isinstance(made, cst.Call) or set(called) != {_TRITON} or any(arg.star for arg in made.args):
        return loop
    if any(arg.keyword is not None and arg.keyword.value == _KEPT for arg in made.args):
        return loop
    named = {arg.keyword.value: arg for arg in made.args if arg.keyword is not None and arg.keyword.value in _BOUNDS}
    bounds = [arg for arg in made.args if arg.keyword is None][: len(_BOUNDS)]
    for name in _BOUNDS[len(bounds) :]:
        if name not in named:
            break
        bounds.append(named.pop(name).with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT))
    if not bounds or named:
        return loop
    if partitioned:
        bounds += [arg for arg in made.args if arg.keyword is not None and arg.keyword.value == PARTITIONED]
    fewer = len(bounds) < len(made.args)
    if fewer:
        # The end of the last argument is that of the call: a line break, where the call had one.
        end = made.args[-1]
        bounds[-1] = bounds[-1].with_changes(comma=end.comma, whitespace_after_arg=end.whitespace_after_arg)
    made = made.with_changes(func=cst.Name("range"), args=bounds)
    return loop.with_changes(iter=_on_one_line(made) if fewer else made)


def _on_one_line(call: cst.Call) -> cst.Call:
    """A call that its author broke for more arguments than it has now; as it is where there are comments in it."""
    if "#" in cst.Module([]).code_for_node(call):
        return call
    none, comma = cst.SimpleWhitespace(""), cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    args = [each.with_changes(comma=comma, whitespace_after_arg=none) for each in call.args]
    args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=args, whitespace_before_args=none)
