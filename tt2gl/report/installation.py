"""What `tt2gl doctor` prints: plain text, as it may be rich that is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def installation_text(facts: Mapping[str, str | None], targets: Mapping[str, bool], missing: Sequence[str]) -> str:
    """Facts one a line, targets by whether the installed Triton compiles for them, then what is missing."""
    rows = {name: value or "none" for name, value in facts.items()}
    rows["targets"] = " ".join(name for name, works in targets.items() if works) or "none"
    without = " ".join(name for name, works in targets.items() if not works)
    if without:
        rows["not here"] = without
    width = max(map(len, rows))
    lines = [f"{name:{width}}  {value}" for name, value in rows.items()]
    return "\n".join([*lines, *([""] if missing else []), *(f"missing: {each}" for each in missing)]) + "\n"
