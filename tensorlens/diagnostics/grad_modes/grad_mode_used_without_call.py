"""Finds the cause of `grad-mode-used-without-call`."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import finding, fix, severity_of
from tensorlens.records.report import Diagnostic

CODE = "grad-mode-used-without-call"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        name = next((value.name for value in failure.values if value.type == "type"), None)
        if name is not None:
            yield finding(
                CODE,
                severity_of(failure),
                f"`with torch.{name}:` lacks the parentheses: `{name}` is a class",
                "a block needs an instance, and calling the class makes one",
                [facts.label("rejected_here", failure.site, f"`{name}` is not called here")],
                fixes=(fix(f"call it: `with torch.{name}():`", place=facts.span(failure.site)),),
                evidence={"context_manager": name},
            )
