"""Defines `Report`: a trace with its diagnostics. Renderers read nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tensorlens.records.model import Span, Trace

Severity = Literal["error", "warning", "note"]
Verdict = Literal["verified", "runs", "untried"]


@dataclass(frozen=True, slots=True)
class Label:
    """A piece of the source, and what it did in a finding. `role` is a key of `diagnostics.shared.role_names`.

    `site` is the position of the call in `trace.sites`, if the label marks a recorded call; `event` is the index of the
    call or backward pass that the label is about, if it is about one.
    """

    role: str
    span: Span
    text: str
    site: int | None = field(default=None, compare=False)
    event: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the source: `text` in the place of `span`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A suggestion: what to change, the line to change, and the edits if it can be applied as it is.

    `verdict` says whether the edits were tried in another run; `differs`, how the program that runs with them differs.
    """

    title: str
    edits: tuple[Edit, ...] = ()
    place: Span | None = None
    verdict: Verdict = "untried"
    differs: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding: what happened, where, why, and what to do. The first label is the primary one.

    `fixes` are ordered from the safest. `detail` has node names, versions and counts, for a reader who knows autograd.
    `also` names other findings about the same event. `confirmed` says whether another run that intervenes at the
    labelled call agrees (None: not tried), and `confirmation` what that run did.
    """

    code: str
    severity: Severity
    title: str
    explanation: str
    labels: tuple[Label, ...]
    notes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    evidence: dict[str, object] = field(default_factory=dict)
    detail: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    confirmed: bool | None = None
    confirmation: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """Says how far the fixes were tried (`--fix`). The fixes themselves have their verdicts."""

    tried: int = 0  # candidates that were run: a fix, or one fix after the other
    failed: int = 0  # of these, those that are not offered
    left_out: int = 0  # candidates that were not run: there are too many
    note: str = ""  # why something could not be tried or judged
    interrupted: bool = False  # Ctrl-C ended the trials


@dataclass(frozen=True, slots=True)
class StandingOut:
    """A sentence about the training that a reader may want to know, with the lines that it is about, the main one
    first. What it says may be intended."""

    text: str
    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Ignored:
    """A finding that a report leaves out: a comment `# tensorlens: ignore[code]` names it (`comment` is its place), or
    a report of an earlier run has it (`comment` is None)."""

    diagnostic: Diagnostic
    comment: Span | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A trace and the diagnostics found in it. `explained` are the indices of PyTorch's warnings that these explain.

    `tried` is set if the fixes were tried, `standing_out` if the training was measured (`--training`). `ignored` are
    the findings that are left out.
    """

    trace: Trace
    diagnostics: tuple[Diagnostic, ...] = ()
    explained: frozenset[int] = frozenset()
    tried: Tried | None = None
    standing_out: tuple[StandingOut, ...] | None = None
    ignored: tuple[Ignored, ...] = ()

    def _repr_html_(self) -> str | None:
        """Returns what a notebook shows; None if no renderer is known (`shown_as`)."""
        return shown_as["text/html"](self) if "text/html" in shown_as else None

    def _repr_mimebundle_(self, **wanted: Any) -> dict[str, str]:  # noqa: ARG002
        """Returns all forms that a notebook can show, by their MIME types."""
        return {form: render(self) for form, render in shown_as.items()}


shown_as: Mapping[str, Callable[[Report], str]] = {}
"""How notebooks show a report. `render.notebook` sets it: this room draws nothing."""
