"""What not every Triton has of what the corpus uses: a family that needs it is skipped where it is missing."""

from __future__ import annotations

from pathlib import Path

from triton.language.semantic import TritonSemantic
from triton.runtime.interpreter import InterpreterBuilder

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
FAMILIES = sorted(path.name.removesuffix(".launches.json") for path in CORPUS.glob("*.launches.json"))

# Named one by one, so that a misspelt function fails in a test rather than skips it. What was removed may keep its name
# in triton.language, to say so, but not the method that did it.
_LANGUAGE = ("make_block_ptr",)
# Functions that Triton does not compile for an architecture: gfx942 has no scaled matrix instruction, and what Triton
# does instead serves products with an operand of 16 bits alone; for gfx1250 its pipeliner stops at descriptors' loads.
_ARCHITECTURES = {"gfx942": ("dot_scaled",), "gfx1250": ("make_tensor_descriptor",)}
# Functions that Triton's interpreter may lack, and the method that does them there.
_INTERPRETER = {"dot_scaled": "create_dot_scaled"}


def lacking(family: str) -> list[str]:
    """Functions of triton.language that a family uses and the installed Triton has not."""
    return [name for name in _LANGUAGE if _uses(family, name) and not hasattr(TritonSemantic, name)]


def available(architecture: str = "") -> list[str]:
    """The families of which the installed Triton has everything, and compiles it for the architecture, if any."""
    missing = _ARCHITECTURES.get(architecture, ())
    return [family for family in FAMILIES if not lacking(family) and not any(_uses(family, name) for name in missing)]


def lacking_in_interpreter(family: str) -> list[str]:
    """As `lacking`, for Triton's interpreter."""
    missing = [name for name, method in _INTERPRETER.items() if not hasattr(InterpreterBuilder, method)]
    return lacking(family) + [name for name in missing if _uses(family, name)]


def _uses(family: str, name: str) -> bool:
    return f"tl.{name}(" in (CORPUS / f"{family}.py").read_text()
