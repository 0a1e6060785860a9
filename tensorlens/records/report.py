"""The frozen records of a report: the diagnostics of a trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tensorlens.records.model import Span, Trace

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Label:
    """What one piece of the source has to do with a finding. `role` is one of the fixed vocabulary."""

    role: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of `span` by `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    title: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: what happened, where, why, and what to do. The first label is the primary one."""

    code: str
    severity: Severity
    title: str
    explanation: str
    labels: tuple[Label, ...]
    notes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    evidence: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """All that a renderer is given."""

    trace: Trace
    diagnostics: tuple[Diagnostic, ...] = ()
