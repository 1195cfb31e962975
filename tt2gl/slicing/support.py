"""The module that every slice brings along for its names."""

TEXT = '''\
"""Names for a sliced kernel: what Triton offers, found by name, and inert stand-ins for what is not installed."""

import importlib
import types


class _Inert(type):
    """Answers any attribute and subscript with more of its kind: enough for an annotation."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return inert(f"{cls.__name__}.{name}")

    def __getitem__(cls, item):
        return cls

    def __or__(cls, other):
        return cls

    __ror__ = __or__


def inert(name, **attributes):
    return _Inert(name, (), attributes)


def stub(name, **attributes):
    def missing(attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return inert(f"{name}.{attribute}")

    module = types.ModuleType(name)
    module.__getattr__ = missing
    vars(module).update(attributes)
    return module


def limits(known):
    # A class, as Triton refuses functions that a helper's body names.
    class Limits:
        def __new__(cls, dtype=None):
            name = "float32" if dtype is None else getattr(dtype, "__name__", None) or dtype.name
            return types.SimpleNamespace(**known[name.rpartition(".")[2]])

    return Limits


def find(dotted):
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ImportError(dotted)


def bind(names, **wanted):
    for name, dotted in wanted.items():
        try:
            names[name] = find(dotted)
        except (ImportError, AttributeError):
            pass
'''
