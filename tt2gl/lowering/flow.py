"""Which definitions of a block pointer reach its uses, and what has been assigned in between.

A forward analysis over the outline, by joining at branches and iterating loops until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from tt2gl.lowering.outline import (
    Branch,
    Define,
    Element,
    Loop,
    Move,
    Node,
    Nothing,
    Pass,
    Replace,
    Step,
    Use,
    assigned,
)
from tt2gl.lowering.pointer_calls import Access, Make, Refused


@dataclass(frozen=True)
class Reach:
    """What a pointer may be at a place.

    `origins`: the calls that made it. `stale`: names assigned since, so that they may no longer have the values that it
    was made with. `crossed`: a loop lies in between. `other`: it may be no block pointer. `absent`: it may be None.
    """

    origins: frozenset[Make]
    stale: frozenset[str] = frozenset()
    crossed: bool = False
    other: bool = False
    absent: bool = False

    def joined(self, more: Reach) -> Reach:
        """What it may be where two ways meet."""
        return Reach(
            self.origins | more.origins,
            self.stale | more.stale,
            self.crossed or more.crossed,
            self.other or more.other,
            self.absent or more.absent,
        )


Reaching = dict[Access | Move | Element | Pass, Reach]
_State = dict[str, Reach]
_Found = dict[Access | Move | Element | Pass | Use, Reach]

_OTHER = Reach(frozenset(), other=True)


def reaching(nodes: Sequence[Node], parameters: Iterable[str], given: Mapping[str, Make]) -> Reaching:
    """What may be seen by each load, store and move of a block pointer, each call given one, each use of its type.

    `given`: the parameters that are block pointers. Uses of variables that are none there are left out, as is None that
    is given. Raises Refused for a use as anything else, and where a variable may be a block pointer or not.
    """
    found: _Found = {}
    start = dict.fromkeys(parameters, _OTHER)
    start |= {name: Reach(frozenset({make}), absent=make.optional) for name, make in given.items()}
    _walk(nodes, start, found)
    lowered: Reaching = {}
    for event, reach in found.items():
        if isinstance(event, Use):
            if reach.origins:
                raise Refused(event.node, f"`{event.name}` is used as more than the pointer of loads and stores")
        elif reach.origins or isinstance(event, Move) or isinstance(event, Access) and event.check:
            if reach.other:
                raise Refused(_node(event), "what it goes through is not always a block pointer made in this function")
            lowered[event] = reach
    return lowered


def _walk(nodes: Sequence[Node], state: _State, found: _Found) -> _State:
    for node in nodes:
        if isinstance(node, Step):
            state = _step(node, state, found)
        elif isinstance(node, Branch):
            ends = [_walk(body, state, found) for body in node.bodies]
            state = ends[0]
            for end in ends[1:]:
                state = _joined(state, end)
            state = _settled(state, ends, assigned([node]))
        else:
            state = _loop(node, state, found)
    return state


def _settled(joined: _State, ends: Sequence[_State], names: frozenset[str]) -> _State:
    """After a branch that gives some variables None: what the others were made with may have been assigned there."""
    absent = {name for end in ends for name, reach in end.items() if reach.absent and not reach.origins}
    return {
        name: replace(reach, stale=reach.stale | names) if name in absent and reach.origins else reach
        for name, reach in joined.items()
    }


def _loop(node: Loop, state: _State, found: _Found) -> _State:
    while True:
        end = _walk(node.body, _assigned(state, node.assigned), found)
        joined = _joined(state, end)
        if joined == state:
            break
        state = joined
    return {name: replace(reach, crossed=True) for name, reach in state.items()}


def _step(step: Step, state: _State, found: _Found) -> _State:
    defined: _State = {}
    for event in step.events:
        if isinstance(event, Define):
            defined[event.name] = Reach(frozenset({event.make}), absent=bool(event.condition))
            continue
        if isinstance(event, Nothing):
            defined[event.name] = Reach(frozenset(), absent=True)
            continue
        if isinstance(event, Replace):
            defined[event.name] = _OTHER
            continue
        if isinstance(event, Access) and isinstance(event.pointer, Make):
            found[event] = Reach(frozenset({event.pointer}))
            continue
        if isinstance(event, Pass) and not event.name:
            continue
        # A variable that no statement has assigned is what the file has under its name.
        reach = state.get(_pointer(event), _OTHER)
        found[event] = reach.joined(found[event]) if event in found else reach
        if isinstance(event, Move):
            defined[event.name] = reach
    return _assigned(state, step.assigned) | defined


def _pointer(event: Access | Move | Element | Pass | Use) -> str:
    if isinstance(event, (Element, Pass, Use)):
        return event.name
    pointer = event.advance.pointer if isinstance(event, Move) else event.pointer
    assert not isinstance(pointer, Make)
    return pointer.value


def _node(event: Access | Move | Element | Pass) -> cst.CSTNode:
    return event.advance.node if isinstance(event, Move) else event.node


def _assigned(state: _State, names: frozenset[str]) -> _State:
    if not names:
        return state
    return {name: replace(reach, stale=reach.stale | names) for name, reach in state.items()}


def _joined(one: _State, other: _State) -> _State:
    joined = dict(other)
    for name, reach in one.items():
        joined[name] = reach.joined(other[name]) if name in other else reach
    return joined
