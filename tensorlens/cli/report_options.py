"""The options that `explain` accepts before and after the script: one table for both places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tensorlens.cli.gate import SEVERITIES
from tensorlens.records.step_choice import every_from, steps_from
from tensorlens.render import REPORT_FORMS


def _known_form(text: str) -> str:
    if text not in REPORT_FORMS:
        raise ValueError(text)
    return text


def _known_severity(text: str) -> str:
    if text not in SEVERITIES:
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
    "format": ReportOption(
        ("--format", "-f"),
        "table (the default), json, markdown, html (a page to look at); for CI and editors: concise, github, gitlab, "
        "sarif.",
        "FORMAT",
        _known_form,
    ),
    "output": ReportOption(
        ("--output", "-o"),
        "Write to FILE, in the form that its suffix names (.json, .md, .txt, .html, .sarif) unless --format says "
        "otherwise; "
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
        "If something becomes NaN or infinite, or if a loss has several terms, run it a second time, to find the "
        "operation that makes it so and the gradient of each term. That run's output is dropped; files that the script "
        "writes are written twice.",
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
    "follow": ReportOption(
        ("--follow",),
        "Trace the processes that the script starts, too: workers of a DataLoader, `multiprocessing`, forks, and other "
        "programs in Python. The ranks of a distributed run are traced without it.",
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
    "baseline": ReportOption(
        ("--baseline",),
        "Leave out the findings that FILE has: a report that an earlier run wrote with --format json -o FILE.",
        "FILE",
        Path,
    ),
    "fail_on": ReportOption(
        ("--fail-on",),
        "Exit with 1 for a finding of this severity or a worse one: error (the default), warning or note.",
        "SEVERITY",
        _known_severity,
    ),
    "write": ReportOption(("--write",), "With --fix: write the best fix whose gradients are right to its files."),
}
TEXT_OPTIONS = {
    "format": replace(OPTIONS["format"], help="table (the default), json or markdown."),
    "output": replace(
        OPTIONS["output"],
        help="Write to FILE, in the form that its suffix names (.json, .md, .txt) unless --format says otherwise.",
    ),
}
"""The options of what is no report of one run: lists, pages of the manual, answers."""

PAGE_OPTIONS = {
    "format": replace(OPTIONS["format"], help="table (the default), json, markdown or html: a page to look at."),
    "output": replace(
        OPTIONS["output"],
        help="Write to FILE, in the form that its suffix names (.json, .md, .txt, .html) unless --format says "
        "otherwise.",
    ),
}
"""The options of a comparison."""

RANK_OPTIONS = {
    "format": replace(OPTIONS["format"], help=PAGE_OPTIONS["format"].help),
    "output": replace(
        OPTIONS["output"],
        help="Write to FILE, in the form that its suffix names (.json, .md, .txt, .html) unless --format says "
        "otherwise; the .json has the traces of all ranks, and `view` reads it.",
    ),
}
"""The options of the report of several ranks."""

WHY_OPTIONS = {
    **{name: OPTIONS[name] for name in ("width", "timeout")},
    **TEXT_OPTIONS,
    "at": ReportOption(
        ("--at",), "Answer for the time after the last run of a line: 12, or net.py:12 in another file.", "LINE", str
    ),
    "writes": ReportOption(("--writes",), "List every write to its memory, not only the last three."),
}
"""The options of `why`."""
OPTIONAL_VALUES = {flag: option.bare for option in OPTIONS.values() if option.bare for flag in option.flags}
