"""Functions that Triton leaves as calls, where what they do is to be read at each call.

Triton's inliner leaves a function that returns early where it is called in a loop: a loop's body is one block.
"""

from __future__ import annotations

import copy

from tt2gl.ir.operations import Location, Module


def with_called(module: Module) -> Module:
    """The module with a copy of what a call calls as the call's own region, its places as if it were inlined."""
    while calls := [each for each in module.kernel.walk() if each.name == "tt.call" and not each.regions]:
        for call in calls:
            call.regions = copy.deepcopy(module.functions[call.attributes["callee"].name].regions)
            for operation in call.walk():
                if operation is not call:
                    operation.location = _called_from(operation.location, call.location)
    return module


def _called_from(place: Location, call: Location) -> Location:
    """A place in a function that is called at another."""
    return place._replace(caller=call if place.caller is None else _called_from(place.caller, call))
