"""What is printed in generic form and parsed is what it was: types, attributes and whole modules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.ir import modules
from tests.ir.printer import Printer, print_attribute, print_type
from tt2gl.ir.operations import Location, Operation, Region
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import Type

pytestmark = pytest.mark.once

# How fast examples are made says something of the machine, and nothing of the parser.
_BUSY = [HealthCheck.too_slow, HealthCheck.data_too_large]


def holding(attribute: str) -> str:
    """A module that has one attribute."""
    return f'"builtin.module"() ({{\n}}) {{it = {attribute}}} : () -> ()\n'


@settings(suppress_health_check=_BUSY)
@given(modules.types)
def test_types(kind: Type) -> None:
    assert parse_module(holding(print_type(kind))).attributes == {"it": kind}


@settings(suppress_health_check=_BUSY)
@given(modules.attributes)
def test_attributes(attribute: Any) -> None:
    parsed = parse_module(holding(print_attribute(attribute))).attributes["it"]
    assert (type(parsed), parsed) == (type(attribute), attribute)


@settings(suppress_health_check=_BUSY)
@given(modules.locations)
def test_locations(place: Location) -> None:
    assert (
        parse_module(
            Printer().module(Operation("builtin.module", regions=(Region(),), location=place))
        ).operation.location
        == place
    )


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=_BUSY)
@given(modules.operations())
def test_modules(operation: Operation) -> None:
    text = Printer().module(operation)
    assert modules.described(parse_module(text).operation) == modules.described(operation)
