"""Something done right after the command imports a module, before it can use it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType


def when_imported(actions: Mapping[str, Callable[[], None]]) -> None:
    """Call the action of each module named, once, right after it has been imported; what it raises is shown only."""
    sys.meta_path.insert(0, _Watcher(dict(actions)))


class _Watcher(importlib.abc.MetaPathFinder):
    """Finds modules as the other finders do, and has those watched for tell when they have run."""

    def __init__(self, actions: dict[str, Callable[[], None]]) -> None:
        self._actions = actions

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a watched module, its loader made to tell; None for every other."""
        if name not in self._actions:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    _tell(spec.loader, self._actions.pop(name))
                return spec  # type: ignore[no-any-return]
        return None


def _tell(loader: object, action: Callable[[], None]) -> None:
    execute = loader.exec_module  # type: ignore[attr-defined]

    def exec_module(module: ModuleType) -> None:
        execute(module)
        try:
            action()
        except Exception:  # noqa: BLE001 - the command must run on as it would have
            sys.stderr.write("tt2gl record: cannot observe this module:\n" + traceback.format_exc())

    loader.exec_module = exec_module  # type: ignore[attr-defined]
