"""One kernel, Triton's or Gluon's, in the simulator: its IR before any pass, and where in the author's file it is."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tt2gl import compiler
from tt2gl.failures import explain
from tt2gl.ir.lexer import ParseError
from tt2gl.ir.operations import Location, Module
from tt2gl.ir.parser import parse_module
from tt2gl.isolate import printed_so_far
from tt2gl.results import SimulateFinding
from tt2gl.simulate.api import DEFAULT_LIMIT, Simulation, simulate
from tt2gl.simulate.engine import Schedule
from tt2gl.simulate.findings import Finding, SimulationError, TooLarge, Unsupported
from tt2gl.simulate.memory import Filling
from tt2gl.simulate.ops.dot import SCALE_ENDS
from tt2gl.slicing.slices import Slice, names_of
from tt2gl.targets import Target, get_target
from tt2gl.verify.bind import bind
from tt2gl.verify.combined import with_products_of_sums
from tt2gl.verify.device import Participant, load_kernel
from tt2gl.verify.inputs import Inputs
from tt2gl.verify.precisions import asks_for_float32, with_tf32

Arithmetic = Literal["ieee", "field"]
Dialect = Literal["triton", "gluon"]
TroubleKind = Literal["unknown", "unsupported", "too large", "too long", "failed"]

# Operations whose effect may land later than they stand: a kernel without any runs the same under every schedule.
_ASYNCHRONOUS = re.compile(r"ttng\.|\w+\.(async|warp_specialize|buffer_load_to_local|(arrive|wait)_barrier)")


@dataclass(frozen=True)
class Trouble:
    """Why a simulation, or a part of it, has no result: the message, and where in the author's files.

    `dialect`: of the kernel that it is of, where one ran.
    """

    kind: TroubleKind
    message: str
    file: str = ""
    line: int = 0
    dialect: Dialect | None = None


class Stopped(Exception):
    """A kernel's simulation cannot go on."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class SimulatedKernel:
    """A kernel as the IR of a target, to be simulated on any inputs of a launch.

    Made in a child process only: it compiles. Raises Stopped where there is no IR.
    """

    def __init__(self, dialect: Dialect, participant: Participant, target: str) -> None:
        self.dialect = dialect
        self.what = f"the {dialect.capitalize()} kernel"
        self.launch = participant.launch
        self._kernel = participant.kernel
        function = load_kernel(participant.kernel, Path(tempfile.mkdtemp(prefix=f"{dialect}-")) / "kernel")
        self.names = list(function.arg_names)
        self.module = self._parsed(function, target)
        self.asynchronous = any(_ASYNCHRONOUS.match(each.name) for each in self.module.operation.walk())

    def _parsed(self, function: object, target: str) -> Module:
        try:
            backend, gpu = compiler.backend_for(get_target(target))
            source = compiler.source_for(function, self.launch)
            options = compiler.options_for(backend, self.launch)
            module = parse_module(compiler.generic_text(compiler.build_ir(source, backend, gpu, options)))
            if self.dialect == "triton" and isinstance(self._kernel, Slice):
                module = with_products_of_sums(module, self._kernel, get_target(target))
            if self.dialect == "triton" and get_target(target).has_tensor_memory and asks_for_float32(module):
                compiled = compiler.build_ttgir(source, backend, gpu, options)
                module = with_tf32(module, parse_module(compiler.generic_text(compiled)))
            return _with_scales(module, get_target(target))
        except ParseError as error:
            raise Stopped(Trouble("unsupported", f"{self.what}: {error}")) from error
        except Exception as error:
            sliced = self._kernel if isinstance(self._kernel, Slice) else Slice("", (), ())
            raise Stopped(Trouble("failed", f"{self.what}: {explain(error, sliced, printed_so_far())}")) from error

    @property
    def axes(self) -> int:
        """How many axes of the grid it asks for its place on."""
        operations = self.module.operation.walk()
        asked = (int(each.attributes["axis"]) for each in operations if each.name == "tt.get_program_id")
        return max(asked, default=0) + 1

    def __call__(
        self,
        inputs: Inputs,
        grid: tuple[int, ...],
        arithmetic: Arithmetic = "ieee",
        schedule: Schedule = "late",
        masked_off: Filling = "poison",
        limit: int = DEFAULT_LIMIT,
        in_turn: Sequence[int] | None = None,
    ) -> Simulation:
        """Simulate once, within `limit` bytes, the inputs' included. `masked_off`: see `simulate`.

        `in_turn`: the numbers of all programs, in the order in which they run one after the other.

        Raises Stopped where that cannot be done, UnknownInputsError for inputs that do not fit the kernel.
        """
        x, y, z = (*grid, 1, 1)[:3]
        arguments = bind(self.names, self.launch, inputs, self.module)
        try:
            return simulate(
                self.module,
                arguments,
                (x, y, z),
                arithmetic=arithmetic,
                schedule=schedule,
                masked_off=masked_off,
                limit=limit,
                programs=None if in_turn is None else np.array(in_turn),
                in_turn=in_turn is not None,
            )
        except TooLarge as error:
            raise Stopped(Trouble("too large", f"{self.what}: {error}")) from error
        except SimulationError as error:
            kind: TroubleKind = "unsupported" if isinstance(error, Unsupported) else "failed"
            file, line = self.place(error.location)
            raise Stopped(Trouble(kind, f"{self.what}: {error}", file, line, self.dialect)) from error

    def finding(self, found: Finding) -> SimulateFinding:
        """A fault at the author's places."""
        file, line = self.place(found.location)
        other_file, other_line = self.place(found.other) if found.other is not None else ("", 0)
        return SimulateFinding(
            self.dialect, found.kind, found.message, file, line, found.buffer, other_file, other_line
        )

    def place(self, location: Location) -> tuple[str, int]:
        """The author's file and line of a location; within Triton's own library, of the first call that leads there."""
        modules = names_of(self._kernel) if isinstance(self._kernel, Slice) else {}
        seen: set[str] = set()
        each: Location | None = location
        while each is not None:
            if Path(each.file).stem in modules:
                return str(modules[Path(each.file).stem]), each.line
            each = each.caller or self._call_to(each, seen)
        _, inside, path = location.file.rpartition("/triton/")
        return f"triton/{path}" if inside else location.file, location.line

    def _call_to(self, location: Location, seen: set[str]) -> Location | None:
        """Where the function that holds a location is called; None once all such functions were `seen`."""
        for name, function in self.module.functions.items():
            if name not in seen and any(each.location == location for each in function.walk()):
                seen.add(name)
                calls = (each for each in self.module.operation.walk() if each.name == "tt.call")
                return next((each.location for each in calls if each.attributes["callee"].name == name), None)
        return None


def _with_scales(module: Module, target: Target) -> Module:
    """A module whose scaled products say what the target's compiler makes of the ends of scales."""
    for each in module.operation.walk() if target.writes_scales_out else ():
        if each.name == "tt.dot_scaled":
            # In a hurry (`fast_math`) it looks for no NaN.
            greatest = math.inf if each.attributes.get("fastMath") else math.nan
            each.attributes = {**each.attributes, SCALE_ENDS: (0.0, greatest)}
    return module
