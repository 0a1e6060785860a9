"""Reads the options after the script: `explain train.py --format json`.

As under plain python, the words after a script are the script's own. They are options of `explain` only if all of them
are well-formed options of `explain`; otherwise the script gets all of them. After `--` everything is the script's:
`explain train.py -- --format json` passes `--format json` to the script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tensorlens.cli.report_options import OPTIONS, ReportOption
from tensorlens.errors import UsageError


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
    baseline: Path | None = None
    fail_on: str = ""
    follow: bool = False
    at: str = ""
    writes: bool = False

    def joined_with(self, later: TrailingOptions) -> TrailingOptions:
        """Returns these options, with those of `later` that are given there in their place."""
        given = {each.name: value for each in fields(later) if (value := getattr(later, each.name)) != each.default}
        return replace(self, **given)


def split(words: Sequence[str], options: Mapping[str, ReportOption] = OPTIONS) -> TrailingOptions:
    """Returns the words after the script as options, or as the script's own arguments."""
    if words and words[0] == "--":
        return TrailingOptions(tuple(words[1:]))
    values: dict[str, Any] = {}
    rest = list(words)
    try:
        while rest:
            _take(rest, options, values)
    except (KeyError, IndexError, ValueError):
        return TrailingOptions(tuple(words))
    return TrailingOptions(**values)


def leading(words: Sequence[str], options: Mapping[str, ReportOption]) -> tuple[TrailingOptions, list[str]]:
    """Returns the options that the words begin with, and the rest: the script and its arguments.

    Raises:
        UsageError: an option has no value, or a wrong one.
    """
    values: dict[str, Any] = {}
    rest = list(words)
    flags = {flag for option in options.values() for flag in option.flags}
    while rest and (flag := rest[0].partition("=")[0]) in flags:
        try:
            _take(rest, options, values)
        except (IndexError, ValueError):
            raise UsageError(f"{flag} has no value, or a wrong one") from None
    return TrailingOptions(**values), rest[1:] if rest[:1] == ["--"] else rest


def _take(rest: list[str], options: Mapping[str, ReportOption], values: dict[str, Any]) -> None:
    """Moves an option, with its value, from the front of the words to the values by field.

    Raises:
        KeyError: the first word is no option.
        IndexError: its value is missing.
        ValueError: its value is wrong.
    """
    flag, has_value, value = rest.pop(0).partition("=")
    field = next((name for name, option in options.items() if flag in option.flags), "")
    convert, bare = options[field].convert, options[field].bare
    if convert is not None:
        values[field] = convert(value if has_value else bare or rest.pop(0))
    elif has_value:
        raise ValueError(value)
    else:
        values[field] = True
