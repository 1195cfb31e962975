"""What a port lowers worse than Triton's own compiler did: TTG501 to TTG508."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.results import Metrics, Place

# A port may use this many times the registers of Triton's kernel before it is called worse.
REGISTER_TOLERANCE = 1.1
# So with shared memory, of which a block gets pieces of this size.
SHARED_TOLERANCE = 1.05
SHARED_PIECE = 128
# A block that takes no more is never kept waiting for it: so many fit that warps or registers run out first.
SHARED_FREE = 4096


@dataclass(frozen=True)
class _Finding:
    """A sentence, and what it is about, as `Metrics.places` names it in Triton's kernel and in the port."""

    message: str
    about: str = ""
    in_port: str = ""


def compare(triton: Metrics, gluon: Metrics, *, file: str = "", line: int = 0) -> tuple[Diagnostic, ...]:
    """What is worse, as warnings: at the author's line that Triton compiled better, else at `file`:`line`."""
    return tuple(
        _diagnostic(code, hint, finding, triton, gluon, Place(file, line))
        for code, find, hint in _RULES
        for finding in find(triton, gluon)
    )


def _diagnostic(code: str, hint: str, finding: _Finding, triton: Metrics, gluon: Metrics, kernel: Place) -> Diagnostic:
    place = next(iter(triton.places.get(finding.about, ())), kernel)
    lines = sorted({each.line for each in gluon.places.get(finding.in_port, ())})
    message = finding.message
    if lines:
        told = ", ".join(map(str, lines[:4])) + (", ..." if len(lines) > 4 else "")
        message = f"{message.removesuffix('.')}; the port's: line{'s' * (len(lines) > 1)} {told}."
    return Diagnostic(code, Severity.WARNING, place.file, place.line, 0, message, hint)


def widest(accesses: Mapping[str, int]) -> int:
    """The widest access of a table by width, in bits; 0 where there is none."""
    return max((int(bits) for bits, count in accesses.items() if count), default=0)


def _narrower(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    pairs = (
        ("load", triton.global_loads, gluon.global_loads),
        ("store", triton.global_stores, gluon.global_stores),
    )
    for kind, before, after in pairs:
        if after and widest(after) < widest(before):
            yield _Finding(
                f"The widest global {kind} is {widest(after)} bits where Triton's is {widest(before)} bits "
                f"({_table(after)} against {_table(before)}).",
                f"{kind}.{widest(before)}",
            )


def _table(accesses: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {bits}" for bits, count in accesses.items())


def _spills(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    if triton.spills is not None and gluon.spills is not None and gluon.spills > triton.spills:
        message = f"{gluon.spills} registers a thread spill to memory where Triton's kernel spills {triton.spills}."
        yield _Finding(message)


def _conversions(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    if gluon.convert_layouts > triton.convert_layouts:
        message = (
            f"{gluon.convert_layouts} layout conversions remain where Triton's kernel has {triton.convert_layouts}."
        )
        yield _Finding(message, in_port="convert_layout")


def _registers(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    if (triton.spills or 0) > (triton.registers or 0) and (gluon.spills or 0) <= (triton.spills or 0):
        # The assembler gave up on Triton's kernel: it has 32 registers then, and nearly all values are in memory.
        return
    if triton.registers and gluon.registers and gluon.registers > REGISTER_TOLERANCE * triton.registers:
        yield _Finding(f"{gluon.registers} registers a thread where Triton's kernel takes {triton.registers}.")


def _products(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    missing = [name for name in triton.mma if name not in gluon.mma]
    other = [name for name in gluon.mma if name not in triton.mma]
    if missing:
        instead = f"multiplies with {', '.join(other)}" if other else "does not"
        yield _Finding(f"Triton's kernel multiplies with {', '.join(missing)}, and the port {instead}.", missing[0])
        return
    # Pipelines repeat products before and after their loops, so those are compared where neither has a loop.
    in_loops = bool(triton.step_mma or gluon.step_mma) and not _is_written_out(triton, gluon)
    before, after = (triton.step_mma, gluon.step_mma) if in_loops else (triton.mma, gluon.mma)
    if not before:
        before = triton.mma
    for name in sorted(after):
        if after[name] > before.get(name, 0):
            where = "a step of the loops" if in_loops else "in all"
            message = f"{after[name]} instructions {name} {where} where Triton's kernel has {before.get(name, 0)}."
            yield _Finding(message, name)


def _is_written_out(triton: Metrics, gluon: Metrics) -> bool:
    """Whether the compiler wrote out a loop of one of the kernels: a step of the loops left is none of theirs then."""
    return bool(triton.step_loops and gluon.step_loops) and triton.step_loops != gluon.step_loops


def _copies(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    in_loops = bool(triton.step_copies)
    before, after = (triton.step_copies, gluon.step_copies) if in_loops else (triton.copies, gluon.copies)
    if not in_loops and gluon.step_copies:
        # Triton knows that the loop is short, and what it copies ahead of a loop says nothing of a step.
        return
    where = " a step of the loops" if in_loops else ""
    copied = _by_carrier(after)
    moved = {carrier: widths for carrier, widths in _by_carrier(before).items() if not carrier.endswith("_store")}
    for carrier, widths in moved.items():
        theirs, ours = _bytes(widths), _bytes(copied.get(carrier, Counter()))
        about = f"{carrier}.{max(widths)}"
        who = "a thread" if carrier in ("cp.async", "lds") else "a block"
        if ours < theirs and not _is_written_out(triton, gluon):
            yield _Finding(f"{carrier} copies {ours} bytes {who}{where} where Triton's kernel copies {theirs}.", about)
            continue
        # Where the loop is written out, all of its copies may be outside of what is left of it.
        widest = max(copied.get(carrier) or _by_carrier(gluon.copies).get(carrier) or (0,))
        if widest < max(widths):
            message = f"{carrier} copies at most {widest} bytes at once where Triton's copies {max(widths)}."
            yield _Finding(message, about)


def _bulk_stores(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    """Tiles that go out in one piece; in which loop, tells how loops were fused, and not what is copied."""
    ours = _by_carrier(gluon.copies)
    for carrier, widths in _by_carrier(triton.copies).items():
        if carrier.endswith("_store") and max(ours.get(carrier, {0: 0})) < max(widths):
            about = f"{carrier}.{max(widths)}"
            yield _Finding(f"No {carrier} copies {max(widths)} bytes at once, as one of Triton's kernel does.", about)


def _by_carrier(copies: Mapping[str, int]) -> dict[str, Counter[int]]:
    """Copies by what carries them, and then by bytes."""
    found: dict[str, Counter[int]] = {}
    for kind, count in copies.items():
        carrier, _, size = kind.rpartition(".")
        found.setdefault(carrier, Counter())[int(size)] += count
    return found


def _bytes(widths: Counter[int]) -> int:
    return sum(size * count for size, count in widths.items())


def _rings(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    for tile, theirs in triton.rings.items():
        ours = gluon.rings.get(tile, [])
        shallower = [(deep, least) for deep, least in zip(ours, theirs, strict=False) if deep < least]
        if shallower:
            deep, least = shallower[0]
            yield _Finding(f"The ring of {tile} has {deep} slots where Triton's has {least}.", f"ring.{tile}")


def _shared(triton: Metrics, gluon: Metrics) -> Iterator[_Finding]:
    if gluon.shared_bytes > SHARED_FREE and _pieces(gluon) > SHARED_TOLERANCE * _pieces(triton):
        message = (
            f"{gluon.shared_bytes} bytes of shared memory a block where Triton's kernel takes {triton.shared_bytes}."
        )
        yield _Finding(message)


def _pieces(metrics: Metrics) -> int:
    return -(-metrics.shared_bytes // SHARED_PIECE)


_COPY_HINT = "Copy the tile asynchronously, in as wide pieces as its layout and its pointers allow."
_RULES: tuple[tuple[str, Callable[[Metrics, Metrics], Iterator[_Finding]], str], ...] = (
    (
        "TTG501",
        _narrower,
        "Give the access a layout with more contiguous elements a thread, and check the pointer's divisibility hints.",
    ),
    ("TTG502", _spills, "Use more warps, smaller blocks, or fewer values alive across the loop."),
    ("TTG503", _conversions, "Let values that meet share one layout, or compute index arithmetic once in each layout."),
    ("TTG504", _registers, "Fewer registers let more blocks run at once: compare the layouts and what stays alive."),
    ("TTG505", _products, "Compare the layouts of the product's operands and of its sum."),
    ("TTG506", _copies, _COPY_HINT),
    ("TTG506", _bulk_stores, _COPY_HINT),
    ("TTG507", _rings, "Give the ring more slots, so that loads run further ahead."),
    ("TTG508", _shared, "Less shared memory lets more blocks run at once: compare rings, and the layouts of tiles."),
)
