"""Defines `Report`: a trace with its diagnostics. Renderers read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tensorlens.records.model import Span, Trace

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Label:
    """A piece of the source, and what it did in a finding. `role` is a key of `diagnostics.shared.role_names`."""

    role: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the source: `text` in the place of `span`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A suggestion, with edits if it can be applied as it is."""

    title: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding: what happened, where, why, and what to do. The first label is the primary one."""

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
    """A trace and the diagnostics found in it."""

    trace: Trace
    diagnostics: tuple[Diagnostic, ...] = ()
