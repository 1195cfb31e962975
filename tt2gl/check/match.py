"""Which block of the lock a kernel is to be held against, where its name or its launches have changed too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.check.lock import Key, Lock
from tt2gl.check.lowering import Lowering, Measured


@dataclass(frozen=True)
class Match:
    """A kernel and what it was; `key` is None for one that the lock does not have.

    `same_work`: it does the same under the launch, options aside, so that all of what it takes can be compared.
    """

    now: Measured
    key: Key | None = None
    before: Lowering | None = None
    same_work: bool = True


def match(
    lock: Lock, measured: Sequence[Measured], triton: str, looked_at: Collection[tuple[str, str]]
) -> tuple[list[Match], list[Key]]:
    """Every kernel with its block, and the blocks that none has of all files and targets that were looked at."""
    blocks = {
        key: lowering
        for key, lowering in lock.kernels.items()
        if key.triton == triton and (key.file, key.target) in looked_at
    }
    left = dict(blocks)
    renamed = _renamed(blocks, measured)
    found: dict[int, Match] = {}

    def names(one: Measured) -> tuple[str, ...]:
        return (one.kernel, *renamed.get((one.file, one.target, one.kernel), ()))

    # The surest pairs first: the same launch, then other options, then other values of the same types.
    for likeness in (_whole, _arguments, _types):
        for place, one in enumerate(measured):
            if place in found:
                continue
            same = (
                key
                for key in left
                if (key.file, key.target) == (one.file, one.target)
                and key.kernel in names(one)
                and likeness(key.launch) == likeness(one.launch)
            )
            key = next(same, None)
            if key is not None:
                found[place] = Match(one, key, left.pop(key), likeness is not _types)
    return [found.get(place, Match(one)) for place, one in enumerate(measured)], list(left)


def _renamed(blocks: Iterable[Key], measured: Sequence[Measured]) -> Mapping[tuple[str, str, str], tuple[str, ...]]:
    """For kernels that are new in a file, those that are gone from it and had the same launches, where one did."""
    now: dict[tuple[str, str], dict[str, set[str]]] = {}
    was: dict[tuple[str, str], dict[str, set[str]]] = {}
    for one in measured:
        now.setdefault((one.file, one.target), {}).setdefault(one.kernel, set()).add(one.launch)
    for key in blocks:
        was.setdefault((key.file, key.target), {}).setdefault(key.kernel, set()).add(key.launch)
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for place, kernels in now.items():
        before = was.get(place, {})
        for kernel, launches in kernels.items():
            gone = [name for name, old in before.items() if name not in kernels and old == launches]
            rivals = [name for name, new in kernels.items() if name not in before and new == launches]
            if kernel not in before and len(gone) == 1 and len(rivals) == 1:
                found[(*place, kernel)] = (gone[0],)
    return found


def _whole(launch: str) -> str:
    return launch


def _arguments(launch: str) -> str:
    return launch.partition("; ")[0]


def _types(launch: str) -> tuple[str, ...]:
    """The types of a launch, without constexprs (which are JSON) and alignment."""
    words = _arguments(launch).split(", ")
    return tuple(word.partition(":")[0] for word in words if word[:1] in "*kfbiut")
