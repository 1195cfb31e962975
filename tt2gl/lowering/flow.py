"""Which definitions of a block pointer reach its uses, and what has been assigned in between.

A forward analysis over the outline, by joining at branches and iterating loops until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tt2gl.lowering.outline import Branch, Define, Event, Loop, Move, Node, Step
from tt2gl.lowering.pointer_calls import Access, Make, Refused


@dataclass(frozen=True)
class Reach:
    """What a pointer may be at a place.

    `origins`: the calls that made it. `stale`: names assigned since, whose value there is no longer the one that it
    was made with. `crossed`: a loop lies in between.
    """

    origins: frozenset[Make]
    stale: frozenset[str] = frozenset()
    crossed: bool = False

    def joined(self, other: Reach) -> Reach:
        """What it may be where two ways meet."""
        return Reach(self.origins | other.origins, self.stale | other.stale, self.crossed or other.crossed)


State = dict[str, Reach]


def reaching(nodes: Sequence[Node]) -> dict[Event, Reach]:
    """What each use of a block pointer (a load, store or move) may see. Raises Refused for one never defined."""
    found: dict[Event, Reach] = {}
    _walk(nodes, {}, found)
    return found


def _walk(nodes: Sequence[Node], state: State, found: dict[Event, Reach]) -> State:
    for node in nodes:
        if isinstance(node, Step):
            state = _step(node, state, found)
        elif isinstance(node, Branch):
            ends = [_walk(body, state, found) for body in node.bodies]
            state = ends[0]
            for end in ends[1:]:
                state = _joined(state, end)
        else:
            state = _loop(node, state, found)
    return state


def _loop(node: Loop, state: State, found: dict[Event, Reach]) -> State:
    while True:
        end = _walk(node.body, _assigned(state, node.assigned), found)
        joined = _joined(state, end)
        if joined == state:
            break
        state = joined
    return {name: Reach(reach.origins, reach.stale, crossed=True) for name, reach in state.items()}


def _step(step: Step, state: State, found: dict[Event, Reach]) -> State:
    defined: State = {}
    for event in step.events:
        if isinstance(event, Define):
            defined[event.name] = Reach(frozenset({event.make}))
            continue
        if isinstance(event, Access) and isinstance(event.pointer, Make):
            found[event] = Reach(frozenset({event.pointer}))
            continue
        pointer = event.advance.pointer.value if isinstance(event, Move) else _name(event)
        if pointer not in state:
            raise Refused(step.node, f"no definition of `{pointer}` comes before this use")
        found[event] = state[pointer].joined(found[event]) if event in found else state[pointer]
        if isinstance(event, Move):
            defined[event.name] = state[pointer]
    return _assigned(state, step.assigned) | defined


def _name(access: Access) -> str:
    assert not isinstance(access.pointer, Make)
    return access.pointer.value


def _assigned(state: State, names: frozenset[str]) -> State:
    if not names:
        return state
    return {name: Reach(reach.origins, reach.stale | names, reach.crossed) for name, reach in state.items()}


def _joined(one: State, other: State) -> State:
    joined = dict(other)
    for name, reach in one.items():
        joined[name] = reach.joined(other[name]) if name in other else reach
    return joined
