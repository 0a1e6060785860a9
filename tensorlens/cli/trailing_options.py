"""Reads the options after the script: `explain train.py --format json`.

As under plain python, the words after a script are the script's own. They are options of `explain` only if all of them
are well-formed options of `explain`; otherwise the script gets all of them. After `--` everything is the script's:
`explain train.py -- --format json` passes `--format json` to the script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorlens.cli.report_options import FIELDS, OPTIONS


@dataclass(frozen=True, slots=True)
class TrailingOptions:
    """The words after SCRIPT: the script's own arguments, or our options (None = not given)."""

    argv: tuple[str, ...] = ()
    format: str | None = None
    output: Path | None = None
    width: int | None = None
    story: bool = False
    tensors: bool = False
    everything: bool = False
    timeout: float | None = None
    every: int | None = None
    steps: tuple[int, int | None] | None = None
    training: bool = False
    reference: str = ""
    attempt: bool = False
    fix: bool = False
    write: bool = False


def split(words: Sequence[str]) -> TrailingOptions:
    """Returns the words after the script as options, or as the script's own arguments."""
    if words and words[0] == "--":
        return TrailingOptions(tuple(words[1:]))
    values: dict[str, Any] = {}
    rest = list(words)
    try:
        while rest:
            flag, has_value, value = rest.pop(0).partition("=")
            field = FIELDS[flag]
            convert, bare = OPTIONS[field].convert, OPTIONS[field].bare
            if convert is not None:
                values[field] = convert(value if has_value else bare or rest.pop(0))
            elif has_value:
                raise ValueError(value)
            else:
                values[field] = True
    except (KeyError, IndexError, ValueError):
        return TrailingOptions(tuple(words))
    return TrailingOptions(**values)
