"""Our options after the script: `explain train.py --format json`.

What follows a script belongs to the script, as under plain python. Only where all that follows are options of ours,
well formed, are they taken as ours: a script that is given any word of its own is given everything. `--` ends the
question: `explain train.py -- --format json` hands `--format json` to the script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorlens.render import RENDERERS

_NAMES = {"--format": "format", "-f": "format", "-o": "output", "--output": "output", "--width": "width",
          "--timeout": "timeout"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trailing:
    """What stood behind the script: its own arguments, or options of ours; None for one that was not given."""

    argv: tuple[str, ...] = ()
    format: str | None = None
    output: Path | None = None
    width: int | None = None
    timeout: float | None = None
    reference: bool = False


def split(tail: Sequence[str]) -> Trailing:
    """Read what follows the script."""
    if tail and tail[0] == "--":
        return Trailing(tuple(tail[1:]))
    found: dict[str, str] = {}
    rest = list(tail)
    while rest:
        word = rest.pop(0)
        if word == "--reference":
            found["reference"] = word
            continue
        name, joined, value = word.partition("=")
        if name not in _NAMES or (not joined and not rest):
            return Trailing(tuple(tail))
        found[_NAMES[name]] = value if joined else rest.pop(0)
    try:
        return _typed(found)
    except ValueError:
        return Trailing(tuple(tail))


def _typed(found: dict[str, str]) -> Trailing:
    if found.get("format", "table") not in RENDERERS:
        raise ValueError(found["format"])
    return Trailing(
        format=found.get("format"),
        output=Path(found["output"]) if "output" in found else None,
        width=int(found["width"]) if "width" in found else None,
        timeout=float(found["timeout"]) if "timeout" in found else None,
        reference="reference" in found,
    )
