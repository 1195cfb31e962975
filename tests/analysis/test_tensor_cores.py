"""How deep rings are, and which of them products are done with at the end of an iteration."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tt2gl.analysis.facts import DotFact, DotOperandFact, Instruction, RingFact
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.uses import DotUse, RingUse
from tt2gl.formulas import Written
from tt2gl.ir.attributes import DialectAttr
from tt2gl.shared_memory import depth
from tt2gl.stages import CHAINED, LOOKED_UP, Fewer, Stages

MATRIX, PLAIN = DialectAttr("ttg.nvmma_shared", ()), DialectAttr("ttg.swizzled_shared", ())
OPERAND = DotOperandFact(True, (64, 64), "f16", MATRIX)


def cores(
    *rings: tuple[int, DialectAttr],
    loops: str = "",
    instruction: Instruction = "tcgen05",
    asked: int = 3,
    looked_up: bool = False,
    said: str = "",
) -> TensorCores:
    """Rings of a kernel with one launch, by buffers and layout, in loops of one letter each; and one more of places.

    `said`: the stages that their loops ask for.
    """
    made: Any = TensorCores.__new__(TensorCores)
    launch = SimpleNamespace(options=SimpleNamespace(num_stages=asked), constexprs={"DEPTH": 2, "BLOCK": 2})
    headers = {name: ast.parse(f"for {name} in tl.range(0, n, {said}): pass").body[0] for name in loops or "a"}
    places = {"places": RingFact(1, (64,), PLAIN, looked_up=True)} if looked_up else {}
    facts = SimpleNamespace(lowered=SimpleNamespace(rings=places))
    made.scenes = [SimpleNamespace(launch=launch, facts=facts, graph=SimpleNamespace(words={}))]
    dot: Any = SimpleNamespace(node=SimpleNamespace(dot=None))
    dot.facts = {0: DotFact(instruction, MATRIX, OPERAND, OPERAND, False, MATRIX if "tcgen" in instruction else None)}
    made.dots = {"dot": dot}
    made.rings = {}
    for place, (buffers, layout) in enumerate(rings):
        site = SimpleNamespace(function="kernel", context=())
        node: Any = SimpleNamespace(loop=headers[(loops or "a" * len(rings))[place]], site=site)
        made.rings[place] = RingUse(node, f"x{place}", {0: RingFact(buffers, (64, 64), layout)})
    assert isinstance(made, TensorCores)
    return made


def ending(of: TensorCores) -> list[bool]:
    return [of.ends_at_once(ring) for ring in of.rings.values()]


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(cores((3, MATRIX), (3, MATRIX)), id="as deep as the others"),
        pytest.param(cores((3, MATRIX), (2, MATRIX), loops="ab"), id="of another loop"),
        pytest.param(cores((3, MATRIX), (3, MATRIX), instruction="wgmma"), id="wgmma reads on"),
        pytest.param(cores((3, MATRIX), (2, PLAIN)), id="read into registers"),
    ],
)
def test_rings_that_are_read_on(kept: TensorCores) -> None:
    assert not any(ending(kept))
    assert not kept.ends_at_once(None)


def test_a_slot_less_than_a_ring_beside_it() -> None:
    assert ending(cores((3, MATRIX), (2, MATRIX))) == [False, True]
    assert ending(cores((3, MATRIX), (2, MATRIX), instruction="wgmma")) == [False, True]


def test_a_slot_less_than_its_loop_has_stages() -> None:
    assert ending(cores((2, MATRIX), (2, PLAIN))) == [True, False]


@pytest.mark.parametrize(("buffers", "instruction", "further"), [(3, "tcgen05", 0), (4, "tcgen05", 1), (3, "wgmma", 0)])
def test_a_slot_more_than_the_launch_asks_for(buffers: int, instruction: Instruction, further: int) -> None:
    stages = cores((buffers, MATRIX), instruction=instruction).stages(set())
    assert stages == Stages("NUM_STAGES", True, 3, False, further=further)


@pytest.mark.parametrize(("asked", "buffers"), [(3, 1), (4, 1), (5, 2)])
def test_stages_that_are_shared_with_what_says_where_tiles_are(asked: int, buffers: int) -> None:
    """Triton's own counts: tiles have half of the stages as slots where places are copied ahead, too."""
    stages = cores((buffers, PLAIN), instruction="mma_v2", asked=asked, looked_up=True).stages(set())
    assert stages == Stages("NUM_STAGES", True, asked, False, schedule=LOOKED_UP, named="stages")
    assert stages.used == "stages"
    assert [declared.source for declared in stages.declared] == ["(NUM_STAGES + 1) // 2 if NUM_STAGES > 2 else 2"]
    launch: Any = SimpleNamespace(options=SimpleNamespace(num_stages=asked), constexprs={})
    assert depth(stages, launch) == buffers + 1


def test_fewer_stages_where_nothing_is_looked_up() -> None:
    assert cores((1, PLAIN), instruction="mma_v2").stages(set()) == Stages("NUM_STAGES", True, 3, False, further=-1)


@pytest.mark.parametrize(
    ("said", "source"), [("num_stages=DEPTH", "DEPTH"), ("num_stages=2", "2"), ("num_stages=MISSING", "2")]
)
def test_stages_that_the_loop_asks_for(said: str, source: str) -> None:
    """Another parameter of that value has nothing to do with it."""
    assert cores((2, MATRIX), instruction="wgmma", asked=5, said=said).stages(set()) == Stages(source)


def test_stages_beyond_those_asked_for() -> None:
    assert Stages("NUM_STAGES", True, 3).used == "NUM_STAGES"
    more = Stages("NUM_STAGES", True, 3, further=1)
    assert more.used == "NUM_STAGES + 1"
    (declared,) = Stages("NUM_STAGES", True, 3, fewer=Fewer("stages", 2), further=1).declared
    assert declared.source == "2 if NUM_STAGES + 1 > 2 else NUM_STAGES + 1"


def test_four_stages_that_two_products_split() -> None:
    stages = Stages("NUM_STAGES", True, 3, True, schedule=CHAINED, named="stages")
    assert stages.used == "stages"
    assert [each.source for each in stages.declared] == ["2 if NUM_STAGES == 4 else NUM_STAGES"]
    crowded = replace(stages, fewer=Fewer("fewer", 2))
    assert [each.source for each in crowded.declared][1:] == ["2 if stages > 2 else stages"]


@pytest.mark.parametrize(("second", "named"), [("rows", "acc_layout"), ("columns", "qk_layout")])
def test_a_sum_that_has_the_layout_of_the_next_of_its_chain_is_written_as_that(
    second: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No formula of the first product's tile gives its layouts; `second`: that of the next under a second launch."""
    monkeypatch.setattr(TensorCores, "dims", lambda _, node, shapes: (node.chain,))
    made: Any = TensorCores.__new__(TensorCores)
    made.scenes, made._accumulators, made._loaded = (), set(), set()
    made.dots = {}
    for name, layouts in (("qk", ("columns", "rows")), ("acc", ("columns", second))):
        facts = {
            index: DotFact("mma_v2", DialectAttr(layout, ()), OPERAND, OPERAND, False, None)
            for index, layout in enumerate(layouts)
        }
        made.dots[name] = DotUse(cast(Any, SimpleNamespace(chain=name)), name, facts)
    made.formulas = SimpleNamespace(written=lambda dims, *_, **__: Written("source", (), dims == ("acc",)))
    made.classes = SimpleNamespace(named=lambda dims, layouts, source, exact, label: label)
    made._inner = lambda node: None
    assert TensorCores.accumulator(made, made.dots["qk"].node).name == named
