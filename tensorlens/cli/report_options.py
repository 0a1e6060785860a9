"""The options that `explain` accepts before and after the script: one table for both places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensorlens.records.step_choice import every_from, steps_from
from tensorlens.render import FORMS


def _known_form(text: str) -> str:
    if text not in FORMS:
        raise ValueError(text)
    return text


def _known_reference(text: str) -> str:
    if text not in ("copies", "eager"):
        raise ValueError(text)
    return text


@dataclass(frozen=True, slots=True)
class ReportOption:
    """One option. `convert` reads its value and raises ValueError if that is wrong; a flag has no value.

    With `bare`, the value is optional: `--flag` alone means `--flag=bare`, and the next word is not its value.
    """

    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    convert: Callable[[str], Any] | None = None
    minimum: float | None = None
    bare: str = ""


OPTIONS = {
    "format": ReportOption(("--format", "-f"), "table (the default), json or markdown.", "FORMAT", _known_form),
    "output": ReportOption(
        ("--output", "-o"),
        "Write to FILE, in the form that its suffix names (.json, .md, .txt) unless --format says otherwise; "
        "a script's .json is the trace that `view` reads.",
        "FILE",
        Path,
    ),
    "width": ReportOption(("--width",), "Columns of the report; the terminal's by default.", "COLUMNS", int, 40),
    "story": ReportOption(("--story",), "Show every line of the story, also those that the report leaves out."),
    "tensors": ReportOption(("--tensors",), "Show every tensor, also those that the report leaves out."),
    "everything": ReportOption(("--all",), "Leave nothing out: --story and --tensors."),
    "timeout": ReportOption(("--timeout",), "Stop the script after so many seconds.", "SECONDS", float, 0.01),
    "every": ReportOption(
        ("--every",),
        "Record the first training step and every N-th, and count the others. A step ends with `optimizer.step()`.",
        "N",
        every_from,
    ),
    "steps": ReportOption(
        ("--steps",),
        "Record the first training step and those from A to B; A: and :B have one end.",
        "A:B",
        steps_from,
    ),
    "training": ReportOption(
        ("--training",),
        "Measure what each parameter does: its gradients, its optimizer, how far it moves, and what stands out. "
        "If something becomes NaN or infinite, run it a second time, to find the operation that makes it so.",
    ),
    "reference": ReportOption(
        ("--reference",),
        "Run it a second time, with copies of what autograd saves, and compare every leaf's gradients. The "
        "second run's output is dropped; files that the script writes are written twice. --reference=eager: with "
        "nothing compiled by torch.compile.",
        "[=eager]",
        _known_reference,
        bare="copies",
    ),
    "attempt": ReportOption(
        ("--try",),
        "Confirm each cause: run it again with a copy, a kept graph, recorded gradients or no write at the line that "
        "a finding names, and say what happens then.",
    ),
    "fix": ReportOption(
        ("--fix",),
        "Try the helps that are edits: run it again with each, and say which make the gradients right. The output of "
        "these runs is dropped; files that the script writes are written in each run.",
    ),
    "write": ReportOption(("--write",), "With --fix: write the best fix whose gradients are right to its files."),
}
WHY_OPTIONS = {
    **{name: OPTIONS[name] for name in ("format", "width", "timeout")},
    "output": replace(
        OPTIONS["output"],
        help="Write to FILE, in the form that its suffix names (.json, .md, .txt) unless --format says otherwise.",
    ),
    "at": ReportOption(
        ("--at",), "Answer for the time after the last run of a line: 12, or net.py:12 in another file.", "LINE", str
    ),
    "writes": ReportOption(("--writes",), "List every write to its memory, not only the last three."),
}
"""The options of `why`."""
OPTIONAL_VALUES = {flag: option.bare for option in OPTIONS.values() if option.bare for flag in option.flags}
